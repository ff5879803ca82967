"""NUTS on what units share, and exact steps for the units: chains side by side in one program.

A transition has three parts, each of which leaves the posterior of ξ, extended by the z of all
units' estimates, invariant (`bayesrep.inference.marginal` has the coordinates and estimates):

1. NumPyro's NUTS moves ξ under the surrogate S, which costs a fraction of the posterior.
2. The move is accepted with probability min(1, exp(−ΔE + ΔS)), E being −log of the estimate of the
   marginal density at ξ: NUTS is reversible under exp(−S), so the pair is under exp(−E) (Christen,
   Fox (2005), delayed acceptance, with NUTS for the first stage's proposals).
3. Each unit's z is proposed afresh from its normal or, as often, near where it is by a step
   that leaves the normal alone (pCN: where the normal's tails are too light an independent proposal
   would hardly ever lead out of them), and accepted for itself by the ratio of its estimates.

Of each unit's mirrored z a kept draw has one, by their ratios: estimates are unbiased, so it is a
draw of the posterior (Andrieu, Roberts (2009), pseudo-marginal).

References
----------
Andrieu, Roberts (2009), "The pseudo-marginal approach for efficient Monte Carlo computations",
Annals of Statistics 37. Christen, Fox (2005), "Markov chain Monte Carlo using an approximation",
JCGS 14. Hoffman, Gelman (2014), "The No-U-Turn sampler", JMLR 15. Cotter, Roberts, Stuart, White
(2013), "MCMC methods for functions", Statistical Science 28: pCN. Margossian, Hoffman, Sountsov,
Riou-Durand, Vehtari, Gelman (2024), "Nested R̂: assessing the convergence of Markov chain Monte
Carlo when running many short chains", Bayesian Analysis.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, PartitionSpec
from numpyro.infer.hmc import hmc
from numpyro.infer.util import ParamInfo

from bayesrep.inference.density import Density, Position
from bayesrep.inference.marginal import (
    N_JOINT_STEPS,
    Marginal,
    MarginalTerms,
    Setting,
    UnitNormals,
    Units,
)
from bayesrep.inference.program import Compiled, kept_jit
from bayesrep.inference.schedule import Schedule
from bayesrep.types import Float, Shaped

MAX_TREE_DEPTH = 10
NEAR, KEPT = 0.5, 0.9
"""How often a unit's proposal is near, and how much of where it is is then kept."""
PAIRS = 1
"""Of mirrored z of every unit; more would vary less than the surrogate misses."""

Statistic: TypeAlias = Shaped[Array, "..."] | Shaped[np.ndarray, "..."]


class Transition(NamedTuple):
    """One kept draw and what the sampler did for it; stacked, [draw, ...].

    `diverging` is any of the transitions between two kept draws, `num_steps` are the gradient
    evaluations of all and `acceptance_rate` is the mean of accepting what NUTS proposed; the others
    are of the last one. `lp` is the log density of the unconstrained parameters.
    """

    position: Position
    diverging: Statistic
    num_steps: Statistic
    acceptance_rate: Statistic
    energy: Statistic
    step_size: Statistic
    lp: Statistic


@dataclass(frozen=True)
class Target:
    """What NUTS sees of a posterior in ξ, and what makes a step of it exact.

    Attributes
    ----------
    size
        Length of ξ.
    potential
        `potential(setting, ξ)`: the surrogate.
    position
        `position(setting, ξ)`: parameters at coordinates, where these are all.
    marginal
        What the exact steps need; None where `potential` is the posterior's.
    identity
        As `bayesrep.inference.density.Density` has it.
    """

    size: int
    potential: Callable[[Any, Array], Array]
    position: Callable[[Any, Array], Position]
    marginal: Marginal | None = None
    identity: str = ""


def of_marginal(marginal: Marginal) -> Target:
    """The target of a model whose units meet only through what they share."""

    def position(setting: Setting, shared: Array) -> Position:
        return marginal.position(setting, shared, marginal.density.origin()["units"])

    density = marginal.density
    return Target(density.shared, marginal.surrogate, position, marginal, density.identity)


def of_density(density: Density) -> Target:
    """The target of any density, by plain NUTS, in the coordinates of a whitening."""
    flat, back = ravel_pytree(density.origin())

    def position(setting: Any, shared: Array) -> Position:
        return setting[1](back(shared))

    def potential(setting: Any, shared: Array) -> Array:
        return density.potential(setting[1](back(shared)), setting[0])

    return Target(len(flat), potential, position, identity=density.identity)


class State(NamedTuple):
    """Of a chain between two blocks: NumPyro's, the point, and the key of the exact steps."""

    hmc: Any
    known: UnitNormals | None
    key: Array


class Kernel(NamedTuple):
    """What a sampler does, as functions that JAX can trace.

    Attributes
    ----------
    start : (keys [2]) -> State
        The potential there is not known.
    look : (State, setting, held coordinates) -> State
        The same place, with the potential that the setting says.
    draw : (State, setting, held coordinates) -> State, Transition
        One kept draw; leaves the posterior invariant once the warm-up is over.
    """

    start: Callable[[Array], State]
    look: Callable[[State, Any, Array], State]
    draw: Callable[[State, Any, Array], tuple[State, Transition]]


@dataclass(frozen=True, eq=False)
class Sampler:
    """NUTS for one target and schedule; both functions are programs, or compiled ones.

    Attributes
    ----------
    start : (keys [2]) -> State
    block : (State, setting, given) -> State, Transition of `BLOCK` draws
        `given` [draw, H] are the values of the first H shared coordinates.
    vectorized
        Whether all take keys, states and held values stacked over chains.
    mesh
        Devices that share these.
    shape
        Shapes and types of what a compiled `block` returns.
    """

    start: Callable[..., Any]
    block: Callable[..., Any]
    vectorized: bool
    mesh: Mesh | None = None
    shape: Any = None

    def states(self, keys: Array) -> list[Any]:
        """First states for keys [chain, 2], as `sample` takes them."""
        return [self.start(batch) for batch in ([keys] if self.vectorized else keys)]


def build_sampler(
    target: Target,
    schedule: Schedule,
    *,
    vectorized: bool = False,
    mesh: Mesh | None = None,
    held: int = 0,
) -> Sampler:
    """Put NumPyro's NUTS to work on a target.

    Parameters
    ----------
    target, schedule
        What to sample and how long; both are fixed in the compiled program, the setting is not.
    vectorized
        Run all chains in lock step as one batch, as a GPU likes it.
    mesh
        Devices that share a batch: the chains of each run in a lock step of their own.
    held
        H, how many of the first coordinates are not sampled but given, anew for every draw, which
        then takes one more transition.
    """
    start, look, draw = build_kernel(target, schedule, held=held)
    one_start = start

    def block(
        state: State, setting: Any, given: Float[Array, "draw held"]
    ) -> tuple[State, Transition]:
        # What NumPyro fixed while it started is part of its transitions, where these are traced.
        jax.eval_shape(one_start, jax.eval_shape(lambda: jax.random.split(jax.random.key(0))))
        # The surrogate may have learnt since the last block.
        state = look(state, setting, given[0])
        return jax.lax.scan(lambda state, fixed: draw(state, setting, fixed), state, given)

    if vectorized:
        chains = _chain_axes(start)
        start = jax.vmap(start, out_axes=chains)
        block = jax.vmap(block, in_axes=(chains, None, 0), out_axes=(chains, 0))
        if mesh is not None:
            shared, own = PartitionSpec(), PartitionSpec(*mesh.axis_names)
            places = jax.tree.map(
                lambda axis: shared if axis is None else own, chains, is_leaf=lambda x: x is None
            )
            block = jax.shard_map(
                block,
                mesh=mesh,
                in_specs=(places, shared, own),
                out_specs=(places, own),
                check_vma=False,  # counts of transitions are everywhere the same
            )
    # How many chains and draws there are makes no difference.
    steps = replace(schedule, chains=0, draws=0)
    form = f"{steps!r} {held} {vectorized} {target.marginal is None}"
    identity = "" if mesh is not None else target.identity  # kept are programs of one device
    return Sampler(
        kept_jit(start, f"first states {form}", target.identity, quick=True),
        kept_jit(block, f"block of draws {form}", identity),
        vectorized,
        mesh,
    )


def _chain_axes(start: Callable[[Array], State]) -> State:
    """Axes of a batch of states: all chains have made as many transitions, and count them once.

    A condition that is the same for all stays one: of two ways to go on one is gone, and what the
    warm-up learns at the end of a window is not computed at every transition.
    """
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0)))
    state = jax.eval_shape(start, keys)
    axes: State = jax.tree.map(lambda _: 0, state)
    adapt = axes.hmc.adapt_state._replace(window_idx=None)
    return axes._replace(hmc=axes.hmc._replace(i=None, adapt_state=adapt))


def build_kernel(target: Target, schedule: Schedule, *, held: int = 0) -> Kernel:
    """The functions of `build_sampler`, of one chain."""

    def seen(setting: Any, fixed: Array) -> Callable[[Array], Array]:
        return lambda free: target.potential(setting, jnp.concatenate([fixed, free]))

    initialize, transition = hmc(potential_fn_gen=seen, algo="NUTS")

    def start(keys: Array) -> State:
        """Begin at half a standard deviation around the mode."""
        place, _, _, _ = jax.random.split(keys[0], 4)
        _, of_nuts, of_units, of_steps = jax.random.split(keys[1], 4)
        free = jax.random.normal(place, (target.size - held,)) / 2
        state = initialize(
            ParamInfo(free, jnp.zeros(()), free),
            schedule.warmup,
            step_size=0.3,
            target_accept_prob=schedule.target_accept,
            max_tree_depth=MAX_TREE_DEPTH,
            dense_mass=schedule.dense,
            model_args=(None, jnp.zeros(held)),
            rng_key=of_nuts,
        )
        known = None if target.marginal is None else _make_unlikely(target.marginal, of_units)
        return State(state, known, of_steps)

    def look(state: State, setting: Any, fixed: Array) -> State:
        energy, gradient = jax.value_and_grad(seen(setting, fixed))(state.hmc.z)
        return state._replace(hmc=state.hmc._replace(potential_energy=energy, z_grad=gradient))

    def draw(state: State, setting: Any, fixed: Array) -> tuple[State, Transition]:
        if held:
            # Wherever the last draw was, this one begins where the surrogate has its mass.
            state = look(state, setting, fixed)
            state = state._replace(known=state.known and _forget_place(state.known))

        def again(_: Any, carry: Any) -> Any:
            (state, steps, diverging), accepted = carry
            proposed = transition(state.hmc, (setting, fixed), {})
            steps, diverging = steps + proposed.num_steps, diverging | proposed.diverging
            state, acceptance = _accept(target, setting, fixed, state, proposed)
            return (state, steps, diverging), accepted + acceptance

        count = jnp.where(state.hmc.i < schedule.warmup, 1, schedule.thinning) + bool(held)
        carry = state, jnp.zeros_like(state.hmc.num_steps), jnp.zeros_like(state.hmc.diverging)
        (state, steps, diverging), accepted = jax.lax.fori_loop(
            0, count, again, (carry, jnp.zeros(()))
        )
        state, position, lp = _draw_position(target, state, setting, fixed)
        return state, Transition(
            position=position,
            diverging=diverging,
            num_steps=steps,
            acceptance_rate=accepted / count,
            energy=state.hmc.energy,
            step_size=state.hmc.adapt_state.step_size,
            lp=lp,
        )

    return Kernel(start, look, draw)


def _accept(
    target: Target, setting: Any, fixed: Array, state: State, proposed: Any
) -> tuple[State, Array]:
    """The state after what NUTS proposes, and the probability of its acceptance."""
    if target.marginal is None:
        return state._replace(hmc=proposed), proposed.accept_prob
    return _accept_exactly(target.marginal, setting, fixed, state, proposed)


def _draw_position(
    target: Target, state: State, setting: Any, fixed: Array
) -> tuple[State, Position, Array]:
    """Where a chain is, units included, and the log density there."""
    shared, known = jnp.concatenate([fixed, state.hmc.z]), state.known
    if known is None:
        return state, target.position(setting, shared), -state.hmc.potential_energy
    assert target.marginal is not None
    marginal = target.marginal
    key, pick, noise = jax.random.split(state.key, 3)
    proposals = setting.noise.draw(noise, N_JOINT_STEPS)
    fresh = marginal.estimates(setting, shared, known.units, proposals).log_ratio
    drawn = marginal.draw_units(pick, setting, shared, known, proposals, fresh)
    return state._replace(key=key), *drawn


def _make_unlikely(marginal: Marginal, key: Array) -> UnitNormals:
    """Before the first transition: a point so unlikely that the first proposal is taken."""
    units, own = marginal.density.units, marginal.density.per_unit
    nowhere = Units(jnp.zeros((units, own)), jnp.zeros((units, own, own)))
    half = jax.random.normal(key, (PAIRS, units, own))
    ratios = jnp.zeros((2 * PAIRS, units))
    return UnitNormals(nowhere, half, MarginalTerms(jnp.asarray(jnp.inf), ratios, jnp.ones(())))


def _forget_place(known: UnitNormals) -> UnitNormals:
    nothing = known.estimates._replace(shared=jnp.full_like(known.estimates.shared, jnp.inf))
    return known._replace(estimates=nothing)


def _accept_exactly(
    marginal: Marginal, setting: Setting, fixed: Array, state: State, proposed: Any
) -> tuple[State, Float[Array, ""]]:
    """Accept or refuse what NUTS proposes, then renew the units."""
    key, *keys = jax.random.split(state.key, 5)
    old: Any = state.known

    at = jnp.concatenate([fixed, proposed.z])
    new = marginal.estimate(setting, at, marginal.guess_units(setting, at), old.half)

    # ΔS − ΔE
    gain = proposed.potential_energy - new.estimates.potential
    gain -= state.hmc.potential_energy - old.estimates.potential
    acceptance = jnp.nan_to_num(jnp.exp(jnp.minimum(gain, 0.0)), nan=0.0)
    accepted = jax.random.uniform(keys[0]) < acceptance

    def chosen(new: Any, old: Any) -> Any:
        return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, old)

    names = ("z", "z_grad", "potential_energy")
    place = {n: chosen(getattr(proposed, n), getattr(state.hmc, n)) for n in names}
    known = chosen(new, old)

    near = jax.random.uniform(keys[3], (1, known.half.shape[1], 1)) < NEAR
    kept = jnp.where(near, KEPT, 0.0)
    fresh = jax.random.normal(keys[1], known.half.shape)
    fresh = kept * known.half + jnp.sqrt(1 - jnp.square(kept)) * fresh
    at = jnp.concatenate([fixed, place["z"]])
    known = known.renew_units(keys[2], marginal.estimate(setting, at, known.units, fresh))
    return State(proposed._replace(**place), known, key), acceptance


def compile_sampler(sampler: Sampler, keys: Any, setting: Any, given: Any) -> Sampler:
    """The sampler compiled for arguments of these shapes (arrays or their shapes and types)."""
    start: Compiled = sampler.start.compile_for(keys)  # type: ignore[attr-defined]
    block: Compiled = sampler.block.compile_for(start.shape, setting, given)  # type: ignore[attr-defined]
    call: Any = block.call
    if sampler.mesh is not None:
        # What comes from one device, or from the host, goes to those that share the work.
        places, _ = call.input_shardings
        call = partial(_call_from_anywhere, call, places)
    return replace(sampler, start=start.call, block=call, shape=block.shape)


def _call_from_anywhere(call: Callable[..., Any], places: Any, *arguments: Any) -> Any:
    """Call a program whose arguments have to lie on its devices."""
    return call(*jax.device_put(arguments, places))
