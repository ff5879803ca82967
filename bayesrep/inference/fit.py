"""The one door to a posterior: data in, ArviZ object out."""

import dataclasses
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray
from numpyro import handlers

from bayesrep import bounds
from bayesrep.errors import ConvergenceWarning, OptionError
from bayesrep.inference.arrowhead import (
    Whitening,
    arrowhead_hessian,
    newton_direction,
    whitening,
)
from bayesrep.inference.assemble import attributes, coordinates, posterior_groups, versions
from bayesrep.inference.checkpoint import Checkpoint, open_checkpoint
from bayesrep.inference.density import Density, Position, build_density
from bayesrep.inference.device import Choice, choose, spread_over
from bayesrep.inference.laplace import laplace, normal_at
from bayesrep.inference.mode import climb
from bayesrep.inference.nuts import (
    BLOCK,
    Sampler,
    Schedule,
    Target,
    Transition,
    build_sampler,
    compiled,
    sample,
    unwhiten,
)
from bayesrep.inference.problem import Problem, Programs, evaluate, find_mode, pose, programs
from bayesrep.inference.svi import STEPS, GuideName, svi
from bayesrep.models import MODELS
from bayesrep.posterior.files import build_posterior
from bayesrep.posterior.groups import need_group
from bayesrep.posterior.verdict import advise, diagnostics, judge, judge_approximation
from bayesrep.progress import Progress, progress_bar
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study

LARGEST_CHAINS = 1_000
STATISTICS = ("diverging", "num_steps", "acceptance_rate", "energy", "step_size", "lp")
Feedback = Literal["full", "cut"]
Method = Literal["nuts", "laplace", "mean-field", "low-rank", "flow"]


def fit(
    study: Study | SufficientStatistics,
    *,
    model: str = "joint",
    method: Method = "nuts",
    chains: int = 4,
    warmup: int = 500,
    draws: int = 500,
    seed: int = 0,
    progress: bool = True,
    feedback: Feedback = "full",
    groups: str | None = None,
    datasets: Sequence[str] = REQUIRED_ROLES,
    device: str = "auto",
    devices: int = 1,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> Any:
    """Sample the joint posterior of selection frequencies and accuracy curves.

    Time and memory depend on the number of classifiers and of distinct (k, n) pairs, never on the
    number of images. Chains run in threads on a CPU and as one batch on a GPU, in float64 either
    way; JAX's configuration is left as it was. The same arguments on the same machine give the
    same draws, with or without the progress bar or a checkpoint.

    Parameters
    ----------
    study
        Annotation counts and correctness, or their sufficient statistics.
    model
        ``"joint"``: :mod:`bayesrep.models.joint`, right about one classifier at a time.
        ``"shared-difficulty"``: :mod:`bayesrep.models.shared_difficulty`, right about all of them
        together. It needs the study itself, and time and memory grow with the number of images
        that differ in counts or answers; chains keep every draw. Further variables: ``loading``,
        ``population_reference_accuracy`` and ``population_gap``.
    method
        ``"nuts"``, the reference; or a quick approximation: ``"laplace"``, a normal by exact
        Hessians (:mod:`bayesrep.inference.laplace`), and ``"mean-field"``, ``"low-rank"`` and
        ``"flow"``, variational (:mod:`bayesrep.inference.svi`). Approximations have independent
        draws, need no warm-up, and carry the attribute ``pareto_k``.
    chains, warmup, draws
        Number of chains, and of adaptation steps and kept draws in each. Three NUTS transitions
        are made for every kept draw.
    seed
        Seed of everything random.
    progress
        Show a bar on standard error.
    feedback
        ``"full"``: annotators and classifiers together determine the mixtures. ``"cut"``: the
        annotators alone do, and the curves are fitted given each draw of the mixtures.
    groups
        A column of groups of the study's images, such as ``"superclass"``: mixture weights and
        accuracy levels are partially pooled over groups, and ``group_adjusted_accuracy``
        (classifier, group) is reported too.
    datasets
        Roles of the data sets in the hierarchy. Further ones than the reference and the
        replication inform the mixtures, and ``accuracy_under`` (classifier, dataset) says what
        the replication's curves predict under each one's selection frequencies.
    device
        ``"auto"`` times one gradient on every kind of device that JAX finds and takes the
        fastest; or a platform, ``"cpu"`` or ``"gpu"``. The attribute ``device_choice`` says why.
    devices
        Spread the images of ``model="shared-difficulty"`` over this many devices of the kind chosen
        (:mod:`jax.sharding`); chains then run as one batch.
    checkpoint
        A folder for the draws as they are made. After an interruption of any kind the same call
        goes on there and ends with the same draws.
    **options
        Sizes, families and priors: fields of :class:`bayesrep.models.options.JointOptions`, such as
        ``components=3`` or ``curve="gp"``, or of
        :class:`bayesrep.models.shared_difficulty.SharedDifficultyOptions`, such as ``factors=2``.

    Returns
    -------
    arviz.InferenceData (ArviZ 0.23) or xarray.DataTree (ArviZ 1.x)
        Group ``posterior``: ``adjusted_accuracy``, ``bias_corrected_gap`` and ``selection_gap``
        (chain, draw, classifier), ``mean_selection_frequency`` (chain, draw, dataset), mixture
        and curve parameters with named dimensions. Groups ``log_likelihood``,
        ``posterior_predictive`` (every tenth draw) and ``observed_data`` hold one entry per
        (k, n) cell. ``sample_stats``: ``diverging``, ``num_steps``, ``energy``,
        ``acceptance_rate``, ``step_size``, ``lp``. Attributes: versions, device, precision, seed,
        options, the convergence verdict, ``study_fingerprint``
        (:meth:`bayesrep.Study.fingerprint`; empty for a fit of statistics) and
        ``statistics_digest`` (:meth:`bayesrep.SufficientStatistics.digest`).

    Raises
    ------
    OptionError
        If an argument is out of range.
    StudyError
        If the study lacks what is asked for, or the checkpoint is another fit's or damaged.

    Warns
    -----
    ConvergenceWarning
        If R-hat > 1.01, an effective sample size < 400 or a draw diverged; says which quantity
        and what to try. Also where the data cannot identify the mixture.
    """
    _check_schedule(chains, warmup, draws)
    if feedback not in get_args(Feedback):
        raise OptionError(f"feedback must be 'full' or 'cut'; got {feedback!r}")
    if method not in get_args(Method):
        raise OptionError(f"method must be one of {', '.join(get_args(Method))}; got {method!r}")
    if method != "nuts" and (feedback == "cut" or checkpoint is not None):
        raise OptionError(f"cut feedback and checkpoints are for method='nuts'; got {method!r}")
    mesh = None if devices == 1 else spread_over(device, devices)
    problem = pose(study, model=model, options=options, groups=groups, datasets=datasets, mesh=mesh)
    schedule = Schedule(chains=chains, warmup=warmup, draws=draws)
    if problem.model.of_images:
        if method not in ("nuts", "laplace") or feedback == "cut":
            raise OptionError(
                f"the {model} model is fitted by method='nuts' or 'laplace' with feedback='full'; "
                f"got {method!r} and {feedback!r}"
            )
        schedule = schedule.thrifty()
    with ExitStack() as stack:
        stack.enter_context(jax.enable_x64(new_val=True))
        work = _work(method, feedback, schedule)
        bar = stack.enter_context(progress_bar(work, "draw", "divergences", show=progress))
        data = problem.data()
        tools = programs(problem, data)
        if mesh is None:
            chosen = _choose_device(device, chains, problem, tools, data)
        else:
            chosen = Choice(mesh.devices[0], f"{devices} devices, as asked", together=True)
        stack.enter_context(jax.default_device(chosen.device))
        facts = attributes(
            problem,
            method=method,
            seed=seed,
            schedule=dataclasses.asdict(schedule),
            feedback=feedback,
            device=chosen.device.device_kind,
            device_choice=chosen.reason,
        )
        folder = None if checkpoint is None else open_checkpoint(checkpoint, _identity(facts))
        run = _Run(schedule, seed, chosen, bar, folder)
        if method == "nuts":
            sampled = (_full if feedback == "full" else _cut)(problem, tools, data, run)
        else:
            sampled = _approximated(problem, tools, data, run, method)
        bar.stage("evaluating")
        values = evaluate(tools, sampled.position, data)
    contents = posterior_groups(problem, data, values, sampled.stats, seed=seed)
    return _judged(problem, contents, {**facts, **sampled.facts})


class _Run(NamedTuple):
    """How to sample."""

    schedule: Schedule
    seed: int
    device: Choice
    bar: Progress
    folder: Path | None

    @property
    def vectorized(self) -> bool:
        return self.device.together or self.device.device.platform != "cpu"

    def keys(self, stage: int) -> Any:
        """One key for each chain of a stage of the fit."""
        key = jax.random.key(self.seed)
        return jax.random.split(
            jax.random.fold_in(key, stage) if stage else key, self.schedule.chains
        )


class _Sampled(NamedTuple):
    """Draws in the density's coordinates, their statistics and what more to record."""

    position: Position
    stats: Mapping[str, Any]
    facts: Mapping[str, Any]


def _work(method: Method, feedback: Feedback, schedule: Schedule) -> int:
    """Length of the progress bar: draws of all chains, or steps of the optimiser."""
    if method == "laplace":
        return 1
    if method != "nuts":
        return STEPS
    stages = 2 if feedback == "cut" else 1
    return stages * schedule.chains * (schedule.warmup + schedule.draws)


def _of_transitions(position: Position, result: Transition) -> _Sampled:
    return _Sampled(position, {name: getattr(result, name) for name in STATISTICS}, {})


def _approximated(
    problem: Problem, tools: Programs, data: Any, run: _Run, method: Method
) -> _Sampled:
    run.bar.stage("finding the mode")
    key, schedule = jax.random.key(run.seed), run.schedule
    size = schedule.chains, schedule.draws
    if method == "laplace":
        found = laplace(problem, tools, data, key, *size)
        run.bar.advance(1)
    else:
        done = 0

        def report(steps: int) -> None:
            nonlocal done
            run.bar.advance(steps - done)
            done = steps

        run.bar.stage("optimising")
        guide = cast(GuideName, method)
        found = svi(problem, tools, data, key, *size, guide=guide, steps=STEPS, report=report)
    stats = {"lp": found.log_density, "log_approximation": found.log_approximation}
    return _Sampled(found.position, stats, {"pareto_k": found.pareto_k})


def _check_schedule(chains: int, warmup: int, draws: int) -> None:
    if chains < 1 or warmup < 10 or draws < 10:
        raise OptionError(
            "a fit needs chains >= 1, warmup >= 10 and draws >= 10; "
            f"got {chains}, {warmup} and {draws}"
        )
    bounds.at_most("chains", chains, LARGEST_CHAINS)
    bounds.at_most("warmup", warmup, bounds.DRAWS)
    bounds.at_most("draws", draws, bounds.DRAWS)


def _identity(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same for a checkpoint to go on."""
    names = ("study_fingerprint", "statistics_digest", "model", "options", "datasets", "groups")
    named = {name: facts[name] for name in (*names, "schedule", "feedback", "seed", "device")}
    return {**named, "versions": versions()}


def _choose_device(
    device: str, chains: int, problem: Problem, tools: Programs, data: Any
) -> Choice:
    start = tools.start(problem.model.start(data, problem.options))
    gradient = jax.jit(jax.vmap(jax.grad(tools.density.potential), in_axes=(0, None)))

    def timed(one: Any, batch: int) -> Any:
        many = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), start)
        return jax.block_until_ready(gradient(*jax.device_put((many, data), one)))

    return choose(device, chains, timed)


@dataclasses.dataclass(frozen=True, eq=False)
class _Following:
    """A density whose coordinates are measured from where the mixture at hand puts its mode.

    Data are pairs of the model's data and what varies: values of the ``mixture`` sites, and the
    ``shift`` of the mode, to first order in them.
    """

    density: Density

    @property
    def shared(self) -> int:
        return self.density.shared

    @property
    def units(self) -> int:
        return self.density.units

    @property
    def per_unit(self) -> int:
        return self.density.per_unit

    def potential(self, position: Position, data: Any) -> Array:
        given, own = data
        moved = jax.tree.map(jnp.add, position, own["shift"])
        return self.density.potential(moved, (given, own["mixture"]))


@lru_cache(maxsize=4)
def _ready(
    density: Target,
    schedule: Schedule,
    structure: Any,
    types: Any,
    *,
    vectorized: bool,
    varies: bool,
    device: Any,
) -> Sampler:
    """The compiled sampler for arguments of these shapes and types on a device."""
    del device  # part of the cache's key: compilation is for the default device
    leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in types]
    key, first, data, transform = jax.tree.unflatten(structure, leaves)
    sampler = build_sampler(density, schedule, vectorized=vectorized, varies=varies)
    return compiled(sampler, key, first, data, transform)


def _full(problem: Problem, tools: Programs, data: Any, run: _Run) -> _Sampled:
    """Draws of the posterior given everything."""
    return _of_transitions(*_around_mode(problem, tools, data, run, part="joint", stage=0))


def _around_mode(
    problem: Problem, tools: Programs, data: Any, run: _Run, *, part: str, stage: int
) -> tuple[Position, Transition]:
    run.bar.stage("finding the mode")
    mode = find_mode(problem, tools, data)
    key = jax.random.fold_in(jax.random.key(run.seed), stage)
    transform = normal_at(tools, mode.position, data, key)
    result = _sampled(tools.density, transform, run, lambda *_: data, data, part=part, stage=stage)
    return unwhiten(transform, result.position), result


def _sampled(
    density: Target,
    transform: Any,
    run: _Run,
    feed: Any,
    first: Any,
    *,
    part: str,
    stage: int,
    varies: bool = False,
) -> Transition:
    run.bar.stage("compiling")
    keys = run.keys(stage)
    vectorized = run.vectorized
    leaves, structure = jax.tree.flatten(
        (keys if vectorized else keys[0], first, feed(0, 0), transform)
    )
    ready = _ready(
        density,
        run.schedule,
        structure,
        tuple((leaf.shape, leaf.dtype) for leaf in map(jnp.asarray, leaves)),
        vectorized=vectorized,
        varies=varies,
        device=run.device.device,
    )
    run.bar.stage("sampling")
    return sample(
        ready,
        ready.states(keys, first, transform),
        feed,
        transform,
        run.schedule,
        run.bar.advance,
        workers=min(len(keys), os.cpu_count() or 1),
        checkpoint=None if run.folder is None else Checkpoint(run.folder, part),
    )


@lru_cache(maxsize=16)
def _given_mixtures(
    name: str, options: Any, structure: Any, shapes: Any
) -> tuple[_Following, Any, Any]:
    """Density of the curves given the mixture, how to prepare for it, and back to sites."""
    model = MODELS[name]

    def conditioned(pair: Any) -> None:
        data, mixture = pair
        handlers.substitute(model.function, data=mixture)(data, options)

    example = jax.tree.unflatten(structure, [jnp.zeros(shape) for shape in shapes])
    density = build_density(conditioned, example)

    def prepare(start: Position, data: Any, center: Any) -> tuple[Whitening, Position]:
        """Whitening at the mode given ``center``, and the mode's derivatives by the mixture."""
        mode = climb(density, start, (data, center)).position
        flat, back = ravel_pytree(center)
        hessian = arrowhead_hessian(lambda q: density.potential(q, (data, center)), mode)

        def gradient(mixture: Array) -> Position:
            return jax.grad(density.potential)(mode, (data, back(mixture)))

        def response(axis: Array) -> Position:
            return newton_direction(hessian, jax.jvp(gradient, (flat,), (axis,))[1])

        return whitening(hessian, mode), jax.lax.map(response, jnp.eye(len(flat)))

    return _Following(density), jax.jit(prepare), jax.jit(jax.vmap(jax.vmap(density.to_sites)))


def _cut(problem: Problem, tools: Programs, data: Any, run: _Run) -> _Sampled:
    """Mixtures from the annotators alone, then curves given each of their draws.

    Plummer (2015), "Cuts in Bayesian graphical models", section 4: the curves' own chain goes
    through the mixture's draws one by one, with a few transitions at each from where the last one
    ended. It begins close to where it should be, because coordinates move with the mixture.
    """
    annotations = problem.model.annotations(data)
    first_stage = _around_mode(problem, tools, annotations, run, part="mixtures", stage=0)[0]
    sites = jax.jit(jax.vmap(jax.vmap(tools.density.to_sites)))(first_stage)
    mixture = {name: sites[name] for name in problem.model.mixture_sites if name in sites}
    center = {name: value.mean(axis=(0, 1)) for name, value in mixture.items()}

    leaves, structure = jax.tree.flatten((data, center))
    shapes = tuple(jnp.shape(leaf) for leaf in leaves)
    following, prepare, to_sites = _given_mixtures(problem.name, problem.options, structure, shapes)
    start = following.density.to_position(problem.model.start(data, problem.options))
    transform, response = prepare(start, data, center)
    change = jax.vmap(jax.vmap(lambda one: ravel_pytree(one)[0]))(mixture)
    change = change - ravel_pytree(center)[0][None, None, :]
    shift = jax.tree.map(lambda leaf: jnp.tensordot(change, leaf, axes=1), response)

    def padded(value: Any, around: Any) -> NDArray[np.float64]:
        """Draws with the centre before them, for warm-up, and after, to fill the last block."""
        chains, rest = value.shape[0], value.shape[2:]
        ends = [
            np.broadcast_to(np.asarray(around), (chains, size, *rest))
            for size in (run.schedule.warmup, BLOCK)
        ]
        return np.concatenate([ends[0], np.asarray(value), ends[1]], axis=1)

    still = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:]), response)
    first = {"mixture": center, "shift": still}
    varying = jax.tree.map(padded, {"mixture": mixture, "shift": shift}, first)

    def feed(chain: int, begin: int) -> Any:
        here = (slice(None) if run.vectorized else chain, slice(begin, begin + BLOCK))
        return data, jax.tree.map(lambda leaf: jnp.asarray(leaf[here]), varying)

    result = _sampled(
        following, transform, run, feed, (data, first), part="curves", stage=1, varies=True
    )
    drawn = jax.tree.map(jnp.add, unwhiten(transform, result.position), shift)
    together = {**to_sites(drawn), **mixture}
    position = jax.jit(jax.vmap(jax.vmap(tools.density.to_position)))(together)
    return _of_transitions(position, result)


def _judged(problem: Problem, contents: dict[str, Any], facts: dict[str, Any]) -> Any:
    """Assemble the object with its verdict, warning if it is not a good one."""
    names = coordinates(problem)
    draft = build_posterior(contents, names, facts)
    if facts["method"] == "nuts":
        diverging = contents["sample_stats"]["diverging"][1]
        verdict = judge(
            diagnostics(need_group(draft, "posterior")), int(diverging.sum()), diverging.size
        )
    else:
        verdict = judge_approximation(facts["method"], facts["pareto_k"])
    advice = advise(problem.statistics)
    for sentence in (*(() if verdict.converged else (verdict.sentence,)), *advice):
        warnings.warn(sentence, ConvergenceWarning, stacklevel=3)
    facts |= {
        "converged": int(verdict.converged),
        "verdict": verdict.sentence,
        "advice": " ".join(advice),
    }
    return build_posterior(contents, names, facts)
