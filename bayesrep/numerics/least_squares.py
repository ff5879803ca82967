"""Batched small least-squares problems under linear bounds.

    minimise ‖D ω − y‖²  subject to  lower ≤ G ω ≤ upper

With D = Q R and z = R ω this is the point of a polytope nearest to Qᵀ y, found exactly by the dual
active-set method of Goldfarb and Idnani (1983, Mathematical Programming 27): start at the
unbounded solution, take the most violated bound, move until it holds, dropping active bounds whose
multiplier falls to zero.

The factors of these small matrices are computed here and not by LAPACK: calls to its
triangular solver, batched inside nested loops, deadlocked XLA's CPU runtime (jaxlib
0.10.2, from 700 problems on), and a call for each 7 × 7 matrix costs more than its arithmetic.
"""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from bayesrep.types import Bool, Float, Int

Bound: TypeAlias = Float[Array, ""] | float

BOUND_TOLERANCE = 1e-9  # largest accepted violation of a bound

_MIN_PROGRESS = 1e-13  # relative squared length, below which a normal depends on the active ones
_MAX_STEPS = 200


class _State(NamedTuple):
    z: Float[Array, "parameter"]  # the point
    active: Float[Array, "slot parameter"]  # normals of the bounds that bind, pointing inwards
    multipliers: Float[Array, "slot"]
    used: Bool[Array, "slot"]
    pending: Float[Array, "parameter"]  # normal of the bound being restored
    bound: Float[Array, ""]  # its right-hand side
    weight: Float[Array, ""]  # its multiplier so far
    busy: Bool[Array, ""]  # is a bound being restored
    done: Bool[Array, ""]
    steps: Int[Array, ""]


def bounded_least_squares(
    design: ArrayLike, targets: ArrayLike, rows: ArrayLike, lower: Bound, upper: Bound
) -> Float[Array, "problem parameter"]:
    """Solve for ω of every y; D has full column rank, and some ω is inside the bounds."""
    q, inverse = _orthonormal(jnp.asarray(design))
    bounded = jnp.asarray(rows)
    nearest = jax.vmap(lambda z: _project(z, inverse, bounded, lower, upper))(
        jnp.asarray(targets) @ q
    )
    return nearest @ inverse.T


def _orthonormal(
    design: Float[Array, "cell parameter"],
) -> tuple[Float[Array, "cell parameter"], Float[Array, "parameter parameter"]]:
    """Compute Q with QᵀQ = 1 and R⁻¹ with Q = D R⁻¹, by repeated Gram–Schmidt."""
    columns: list[Array] = []
    combinations: list[Array] = []
    for column, combination in zip(design.T, jnp.eye(design.shape[1]), strict=True):
        for _ in range(2):  # once leaves the rounding errors of nearly dependent columns
            for other, its_combination in zip(columns, combinations, strict=True):
                share = other @ column
                column = column - share * other
                combination = combination - share * its_combination
        length = jnp.linalg.norm(column)
        columns.append(column / length)
        combinations.append(combination / length)
    return jnp.stack(columns, axis=1), jnp.stack(combinations, axis=1)


def _solve_positive(
    matrix: Float[Array, "slot slot"], right: Float[Array, "slot"]
) -> Float[Array, "slot"]:
    """Solve a positive definite system by elimination without pivots."""
    rows = jnp.concatenate([matrix, right[:, None]], axis=1)
    for i in range(matrix.shape[0]):
        pivot = rows[i] / rows[i, i]
        rows = rows - rows[:, i][:, None] * pivot[None, :]
        rows = rows.at[i].set(pivot)
    return rows[:, -1]


def _project(
    z: Float[Array, "parameter"], inverse: Array, rows: Array, lower: Bound, upper: Bound
) -> Float[Array, "parameter"]:
    """Project `z` onto the polytope lower ≤ rows @ inverse @ point ≤ upper."""
    size = z.shape[0]
    no, zero = jnp.asarray(False), jnp.zeros(())  # noqa: FBT003 - an array's value
    state = _State(
        z, jnp.zeros((size, size)), jnp.zeros(size), jnp.zeros(size, bool),
        jnp.zeros(size), zero, zero, no, no, jnp.zeros((), int),
    )  # fmt: skip

    def step(state: _State) -> _State:
        state = _choose_bound(state, inverse, rows, lower, upper)
        new_state = _restore(state)
        return jax.tree.map(lambda new, old: jnp.where(state.done, old, new), new_state, state)

    # A bound on the steps: rounding might otherwise drop and restore the same bounds for ever.
    return jax.lax.while_loop(lambda now: ~now.done & (now.steps < _MAX_STEPS), step, state).z


def _choose_bound(state: _State, inverse: Array, rows: Array, lower: Bound, upper: Bound) -> _State:
    """Choose the most violated bound unless one is being restored; done where none is violated."""
    # All problems share the rows: applied after each problem's inverse, this is one product.
    value = rows @ (inverse @ state.z)
    low, high = jnp.argmin(value), jnp.argmax(value)
    below, above = lower - value[low], value[high] - upper
    is_low = below >= above
    normal = jnp.where(is_low, rows[low], -rows[high]) @ inverse
    bound = jnp.where(is_low, lower, -upper)
    done = ~state.busy & (jnp.maximum(below, above) <= BOUND_TOLERANCE)
    return state._replace(
        pending=jnp.where(state.busy, state.pending, normal),
        bound=jnp.where(state.busy, state.bound, bound),
        weight=jnp.where(state.busy, state.weight, 0.0),
        done=done,
    )


def _restore(state: _State) -> _State:
    """Move towards the pending bound until it holds or an active one has to be dropped."""
    # Unused slots get a unit diagonal, so that the Gram matrix stays positive definite.
    gram = state.active @ state.active.T + jnp.diag(jnp.where(state.used, 0.0, 1.0))
    ratio = _solve_positive(gram, state.active @ state.pending)
    direction = state.pending - state.active.T @ ratio
    progress = direction @ state.pending
    free = progress > _MIN_PROGRESS * (state.pending @ state.pending)
    # The step at which an active multiplier reaches zero, and the one that restores the bound.
    limits = jnp.where(state.used & (ratio > 0), state.multipliers / ratio, jnp.inf)
    leaving = jnp.argmin(limits)
    missing = state.bound - state.pending @ state.z
    full = jnp.where(free, missing / jnp.where(free, progress, 1.0), jnp.inf)
    length = jnp.minimum(limits[leaving], full)
    length = jnp.where(jnp.isfinite(length), length, 0.0)
    reached = full <= limits[leaving]

    multipliers = jnp.where(state.used, state.multipliers - length * ratio, 0.0)
    weight = state.weight + length
    slot = jnp.argmin(state.used)  # the first free row
    is_slot = jnp.arange(len(multipliers)) == jnp.where(reached, slot, leaving)
    return state._replace(
        z=state.z + jnp.where(free, length, 0.0) * direction,
        active=jnp.where(
            is_slot[:, None], jnp.where(reached, state.pending, 0.0)[None, :], state.active
        ),
        multipliers=jnp.where(is_slot, jnp.where(reached, weight, 0.0), multipliers),
        used=jnp.where(is_slot, reached, state.used),
        weight=weight,
        busy=~reached,
        steps=state.steps + 1,
    )
