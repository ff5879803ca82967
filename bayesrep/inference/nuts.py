"""NUTS on the shared parameters, and exact draws of the classifiers' own: chains in one program.

1. NumPyro's NUTS moves ξ a few times under the surrogate S.
2. Classifiers' own parameters are drawn there (`bayesrep.inference.laplace_marginal`), and the move
   is accepted with probability min(1, exp(−ΔE + ΔS)), E being −log of the unbiased estimate of the
   marginal density: NUTS is reversible under exp(−S), so the pair is under exp(−E) (Christen and
   Fox 2005: delayed acceptance; Andrieu and Roberts 2009: pseudo-marginal).

References
----------
Andrieu, Roberts (2009), Annals of Statistics 37. Christen, Fox (2005), JCGS 14. Hoffman, Gelman
(2014), JMLR 15. Margossian, Hoffman, Sountsov, Riou-Durand, Vehtari, Gelman (2024), Bayesian
Analysis.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, PartitionSpec
from numpyro.infer.hmc import HMCState, hmc
from numpyro.infer.hmc_util import HMCAdaptState
from numpyro.infer.util import ParamInfo

from bayesrep.inference.arrowhead import shift_map
from bayesrep.inference.density import Density, Position
from bayesrep.inference.laplace_marginal import Marginal, MarginalDraw, Setting
from bayesrep.inference.program import Program, storable
from bayesrep.inference.schedule import Schedule
from bayesrep.inference.surrogate import Surrogate, blank_surrogate, surrogate_potential
from bayesrep.models.model import Data
from bayesrep.types import Float, Shaped

storable(HMCState)
storable(HMCAdaptState)
Statistic: TypeAlias = Shaped[Array, "..."] | Shaped[np.ndarray, "..."]
Target: TypeAlias = tuple[Setting, Surrogate]
"""Arrays of the posterior and of the surrogate that chains sample."""


@storable
class Transition(NamedTuple):
    """One draw and the sampler's statistics of it; stacked, [draw, ...]."""

    position: Position
    diverging: Statistic  # any of NUTS's transitions for the draw
    num_steps: Statistic  # gradient evaluations of these
    acceptance_rate: Statistic  # probability at which the draw was accepted
    energy: Statistic  # of the last transition, as the step size
    step_size: Statistic


def blank_target(density: Density, data: Data, center: Position) -> Target:
    """Build the target in unscaled coordinates around a centre, before any regression."""
    setting = Marginal(density).setting(data, shift_map(center))
    return setting, blank_surrogate(density, setting)


@storable
class State(NamedTuple):
    """State of a chain between two blocks: NumPyro's state, the last draw, the next key."""

    hmc: Any  # HMCState
    draw: MarginalDraw
    key: Array


@dataclass(frozen=True, eq=False)
class Sampler:
    """NUTS for one density and schedule; both functions are programs, or compiled ones."""

    start: Any  # (keys [2]) -> State
    # (State, target, values of the first H shared coordinates [draw, H]) -> State, Transition of
    # `BLOCK` draws
    block: Any
    vectorized: bool  # keys, states and fixed values are stacked over chains


def build_sampler(
    density: Density,
    schedule: Schedule,
    *,
    vectorized: bool = False,  # chains run in lock step as one batch
    mesh: Mesh | None = None,  # devices that share the batch
    n_fixed: int = 0,  # first coordinates, not sampled but set anew for every draw
) -> Sampler:
    """Build a sampler of a density from NumPyro's NUTS."""
    one_start, evaluate, draw = build_kernel(density, schedule, n_fixed=n_fixed)
    start = one_start

    def trace_start() -> State:
        keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0)))
        return jax.eval_shape(one_start, keys)

    def block(
        state: State, target: Target, fixed_values: Float[Array, "draw fixed"]
    ) -> tuple[State, Transition]:
        trace_start()  # NumPyro's initialisation sets closure variables of its transitions
        state = evaluate(state, target, fixed_values[0])
        return jax.lax.scan(lambda state, fixed: draw(state, target, fixed), state, fixed_values)

    if vectorized:
        # All chains share the counts of transitions. A condition on these stays a scalar: only one
        # branch runs, and not the adaptation at the end of a window at every transition.
        chains: State = jax.tree.map(lambda _: 0, trace_start())
        adapt = chains.hmc.adapt_state._replace(window_idx=None)
        chains = chains._replace(hmc=chains.hmc._replace(i=None, adapt_state=adapt))
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
    form = f"{schedule!r} {n_fixed} {vectorized}"
    identity = "" if mesh is not None else density.identity  # stored for one device only
    return Sampler(
        Program(start, f"first states {form}", density.identity, quick=True),
        Program(block, f"block of draws {form}", identity),
        vectorized,
    )


def build_kernel(
    density: Density, schedule: Schedule, *, n_fixed: int = 0
) -> tuple[
    Callable[[Array], State],
    Callable[[State, Target, Array], State],
    Callable[[State, Target, Array], tuple[State, Transition]],
]:
    """Build the functions of one chain: its start, the surrogate at a state, and a draw."""
    marginal = Marginal(density)

    def potential(target: Target | None, fixed: Array) -> Callable[[Array], Array]:
        def of_free(free: Array) -> Array:
            assert target is not None  # NumPyro starts without it, and then calls nothing
            coordinates = jnp.concatenate([fixed, free])
            return surrogate_potential(density, target[1], coordinates)

        return of_free

    initialize, transition = hmc(potential_fn_gen=potential, algo="NUTS")

    def start(keys: Array) -> State:
        """Begin a chain."""
        # Around the mode, at a density so low that the first proposal is accepted; neither the
        # surrogate nor the marginal is evaluated.
        place, of_nuts, of_draws = keys[0], *jax.random.split(keys[1])
        free = 0.5 * jax.random.normal(place, (density.shared - n_fixed,))
        state = initialize(
            ParamInfo(free, jnp.zeros(()), free),
            schedule.warmup,
            step_size=0.3,
            target_accept_prob=schedule.target_accept,
            max_tree_depth=schedule.max_tree_depth,
            dense_mass=schedule.dense_mass,
            model_args=(None, jnp.zeros(n_fixed)),
            rng_key=of_nuts,
        )
        no_draw = MarginalDraw(density.origin(), jnp.asarray(-jnp.inf))
        return State(state, no_draw, of_draws)

    def evaluate(state: State, target: Target, fixed: Array) -> State:
        """Compute the surrogate's potential and gradient at a state."""
        energy, gradient = jax.value_and_grad(potential(target, fixed))(state.hmc.z)
        return state._replace(hmc=state.hmc._replace(potential_energy=energy, z_grad=gradient))

    def propose(state: State, target: Target, fixed: Array) -> tuple[State, dict[str, Array]]:
        """Move by NUTS under the surrogate, draw there, and accept or reject both."""

        def move(_: Any, carry: Any) -> Any:
            hmc_state, steps, diverging = carry
            new = transition(hmc_state, (target, fixed), {})
            return new, steps + new.num_steps, diverging | new.diverging

        old, key = state.hmc, state.key
        # Adaptation counts transitions, so that the warm-up is not thinned.
        count = jnp.where(old.i < schedule.warmup, 1, schedule.thinning)
        carry = old, jnp.zeros_like(old.num_steps), jnp.zeros_like(old.diverging)
        new, steps, diverging = jax.lax.fori_loop(0, count, move, carry)

        # Delayed acceptance: the surrogate's error is corrected by an unbiased estimate.
        key, of_draw, of_step = jax.random.split(key, 3)
        new_draw = marginal.draw(target[0], jnp.concatenate([fixed, new.z]), of_draw)
        gain = new_draw.log_marginal + new.potential_energy  # −E + S
        gain -= state.draw.log_marginal + old.potential_energy
        acceptance = jnp.nan_to_num(jnp.exp(jnp.minimum(gain, 0.0)), nan=0.0)
        accepted = jax.random.uniform(of_step) < acceptance

        def chosen(new: Any, old: Any) -> Any:
            return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, old)

        # A rejection restores the position alone: adaptation goes on with what NUTS has learnt.
        names = ("z", "z_grad", "potential_energy")
        place = {name: chosen(getattr(new, name), getattr(old, name)) for name in names}
        state = State(new._replace(**place), chosen(new_draw, state.draw), key)
        return state, {
            "diverging": diverging,
            "num_steps": steps,
            "acceptance_rate": acceptance,
            "energy": new.energy,
            "step_size": new.adapt_state.step_size,
        }

    def draw(state: State, target: Target, fixed: Array) -> tuple[State, Transition]:
        """Make one draw; it leaves the posterior invariant once the warm-up is over."""
        if n_fixed:
            # The last draw has other fixed values: accept the first proposal.
            log_marginal = jnp.full_like(state.draw.log_marginal, -jnp.inf)
            no_draw = state.draw._replace(log_marginal=log_marginal)
            state = evaluate(state._replace(draw=no_draw), target, fixed)
            state, _ = propose(state, target, fixed)
        state, statistics = propose(state, target, fixed)
        return state, Transition(state.draw.position, **statistics)

    return start, evaluate, draw


def compile_sampler(sampler: Sampler, keys: Any, target: Any, fixed_values: Any) -> Sampler:
    """Compile a sampler for arguments of these shapes (arrays or their shapes and types)."""
    start = sampler.start.compile_for(keys)
    states = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), start.out_info)
    block = sampler.block.compile_for(states, target, fixed_values)
    return replace(sampler, start=start, block=block)
