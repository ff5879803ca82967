"""`fit`: from data to an ArviZ object with the posterior."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, get_args

import jax
import jax.numpy as jnp
import xarray as xr
from jax import Array
from jax.sharding import Mesh

from bayesrep import bounds
from bayesrep.choices import STRATEGIES, Feedback, Strategy, find_strategy, list_methods
from bayesrep.errors import ConvergenceWarning, OptionError
from bayesrep.inference.annotators import integrate_annotators
from bayesrep.inference.assemble import attributes, coordinates, posterior_groups, versions
from bayesrep.inference.checkpoint import open_checkpoint
from bayesrep.inference.data_driven import choose_components, widen_priors
from bayesrep.inference.device import N_TIMED_STEPS, DeviceChoice, choose, spread_over
from bayesrep.inference.image_weights import class_column
from bayesrep.inference.methods import Run, sample_around_mode
from bayesrep.inference.mode import other_mode_mass
from bayesrep.inference.nuts import blank_target
from bayesrep.inference.problem import Problem, pose, programs
from bayesrep.inference.program import compilation_timed, compiler_options, kept_programs
from bayesrep.inference.schedule import BLOCK, MIN_CHAINS_NESTED, Schedule
from bayesrep.inference.surrogate import Surrogate, surrogate_potential
from bayesrep.numerics.settings import own_settings
from bayesrep.posterior.files import build_tree, in_arviz
from bayesrep.posterior.groups import need_group
from bayesrep.posterior.verdict import (
    Verdict,
    advise,
    diagnostics,
    judge,
    judge_weights,
    with_modes,
)
from bayesrep.progress import Stopwatch, progress_bar
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.vocabulary import vocabulary_of
from bayesrep.types import no_type_check


@no_type_check
@in_arviz
def fit(
    study: Study | SufficientStatistics,
    *,
    model: str = "joint",
    method: str = "auto",
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    target_accept: float | None = None,
    max_tree_depth: int | None = None,
    dense_mass: bool | None = None,
    seed: int = 0,
    progress: bool = True,
    feedback: Feedback = "full",
    groups: str | None = None,
    classes: bool = True,
    datasets: Sequence[str] = REQUIRED_ROLES,
    device: str = "auto",
    devices: int = 1,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> xr.DataTree:
    """Sample the joint posterior of selection frequencies and accuracy curves.

    Time and memory of a step depend on the number of classifiers and of distinct (k, n) pairs, not
    on the number of images. Chains run in threads on a CPU and as one batch on a GPU, in
    float64 either way; JAX's configuration is left as it was. Compiled programs are kept for later
    processes. The same arguments on the same machine give the same draws, with or without the
    progress bar or a checkpoint.

    Parameters
    ----------
    study
        Annotation counts and correctness, or their sufficient statistics.
    model
        "joint": `bayesrep.models.joint`. Draws of all classifiers are joint
        (`bayesrep.inference.image_weights`).
        "workers": `bayesrep.models.workers`, for answers by worker: every answer counts for what
        its worker's leniency makes of it. It needs the study itself. Further variable:
        `leniency_score`, from which summaries know what leniencies add to the spread.
    method
        "laplace": weighted independent draws of normal approximations, in seconds
        (`bayesrep.inference.nested_laplace`), which have converged with `pareto_k` below 0.7 and
        `ess` of at least 400 (both attributes). "nuts": chains. "auto": the former
        where its weights hold, else chains, up to 16 times as long, until they agree. The attribute
        `method` says which made the draws, and `tried` what came before. A cut feedback takes
        chains at once, and so does whoever names `chains`, `warmup` or a setting of NUTS.
    chains, warmup, draws
        Number of chains (4), and of adaptation steps (250, of 32 chains and more 100; rounded up
        to blocks of 25) and kept draws in each (750; of more than four chains 3,000 in all, and 12
        of each at least). Two transitions are made for every kept draw, more with three mixture
        components or more. 32 chains and more begin in eight groups, which nested R-hat compares.
        Laplace makes a third of chains × draws (1,000 at least), or more until their weights hold,
        and returns chains × draws of equal weight as one chain.
    target_accept, max_tree_depth, dense_mass
        Settings of NUTS, as NumPyro has them: the mean acceptance probability that the step size
        is adapted to (0.9), the most doublings of a trajectory (10), and whether the mass matrix
        is dense (where classifiers are 64 or fewer, components more than two, or chains longer
        than usual).
    seed
        Seed of all random numbers.
    progress
        Show a bar on standard error.
    feedback
        "full": annotators and classifiers together determine the mixtures. "cut": the
        annotators alone do, and the curves are fitted given each draw of the mixtures.
    groups
        A column of groups of the study's images, such as "superclass": mixture weights and
        accuracy levels are partially pooled over groups, and `group_adjusted_accuracy`
        (classifier, group) is reported too.
    classes
        Correct adjusted accuracies for classes that differ in the two data sets among images
        selected as often (`bayesrep.numerics.post_stratification`): the labels, or the only column
        of groups, unless `groups` are pooled over. `class_shift` (chain, draw) is the correction's
        mean over classifiers.
    datasets
        Roles of the data sets in the hierarchy. Further ones than the reference and the
        replication inform the mixtures, and `accuracy_under` (classifier, dataset) says what
        the replication's curves predict under each one's selection frequencies.
    device
        "auto" times a few steps on every kind of device that JAX finds and takes the fastest, a
        GPU if it is twice as fast; or a platform, "cpu" or "gpu". The attribute `device_choice`
        says why.
    devices
        Spread chains over this many devices of the kind chosen (`jax.sharding`); they then run as
        one batch, of which each device has a part.
    checkpoint
        A folder for the draws as they are made. After an interruption of any kind the same call
        goes on there and ends with the same draws.
    **options
        Sizes, families and priors: fields of `bayesrep.models.options.JointOptions`, such as
        `curve="gp"` or `slope=(3.0, 2.5)`. Without `components`, mixtures have two, or up to four
        if the counts demand it: the attribute `components_choice` then says so. Without
        `classifier_level` or `classifier_slope`, these are as wide as classifiers differ
        (both: `bayesrep.inference.data_driven`).

    Returns
    -------
    arviz.InferenceData (ArviZ 0.23) or xarray.DataTree (ArviZ 1.x)
        Group `posterior`: `adjusted_accuracy`, `bias_corrected_gap`, `selection_gap`,
        `population_reference_accuracy` and `population_gap` (chain, draw, classifier),
        `mean_selection_frequency` (chain, draw, dataset), `dependence` (chain, draw), the
        correlation ρ of annotators' answers about an image where none was given, mixture and curve
        parameters with named dimensions. Groups `log_likelihood` (`correct` alone, so that ArviZ
        takes it unasked), `log_density`, `posterior_predictive` (some draws where they are many)
        and `observed_data` hold one entry per (k, n) cell; `log_prior` the prior's density at every
        draw.
        `sample_stats`: `diverging`, `num_steps`, `energy`,
        `acceptance_rate` (of the steps that make chains exact), `step_size`, `lp`; of Laplace
        `lp` and `log_weight`. Attributes: versions, device, precision, seed,
        options, the convergence verdict, `seconds` (of every stage of the fit, as JSON),
        `words` (the study's vocabulary), `study_fingerprint` (`bayesrep.Study.fingerprint`; empty
        for a fit of statistics) and `statistics_digest` (`bayesrep.SufficientStatistics.digest`).

    Raises
    ------
    OptionError
        If an argument is out of range.
    StudyError
        If the study lacks what is asked for.
    PosteriorError
        If the checkpoint is another fit's or damaged.

    Warns
    -----
    IdentificationWarning
        If model="workers" and no worker answered twice.
    ConvergenceWarning
        If R-hat > 1.01, an effective sample size < 400 or a draw diverged, or Laplace's weights
        do not hold, or the posterior has further modes (searched for where data sets have
        components of their own); says which quantity and what to try. Also where the data cannot
        identify the mixture.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> posterior["posterior"]["adjusted_accuracy"].dims
    ('chain', 'draw', 'classifier')
    """
    watch = Stopwatch("posing")
    of_nuts = {
        "target_accept": target_accept,
        "max_tree_depth": max_tree_depth,
        "dense_mass": dense_mass,
    }
    settings = {name: value for name, value in of_nuts.items() if value is not None}
    of_chains = chains is not None or warmup is not None or bool(settings) or devices != 1
    chains = 4 if chains is None else chains
    if warmup is None:
        warmup = 100 if chains >= MIN_CHAINS_NESTED else 250  # many chains learn from each other
    if draws is None:  # so many that those of all chains together are enough
        draws = min(max(-(-3000 // max(chains, 1)), 12), 750)
    _check(method, feedback, chains, warmup, draws)
    last = find_strategy(method, feedback)
    _check_settings(last, settings)
    spread = None if devices == 1 else spread_over(device, devices)
    _check_spread(spread and spread.mesh, last, chains)
    if checkpoint is not None and "checkpoint" not in last.arguments:
        raise OptionError("cut-or-checkpoint-without-nuts", method=method)
    problem = pose(study, model=model, options=options, groups=groups, datasets=datasets)
    strategies = _list_strategies(problem, method, feedback, of_chains=of_chains)
    with kept_programs(), compilation_timed(watch), own_settings():
        # Choices by counts and accuracies come first: they decide the shapes of the programs.
        problem = widen_priors(problem, options)
        problem, why_components = choose_components(problem, choose="components" not in options)
        schedule = Schedule(chains, BLOCK * -(-warmup // BLOCK), draws)
        components = problem.options.components
        # Posteriors of few classifiers are far from normal, and those of three components and more,
        # whose weights mix slowly.
        if components > 2 or len(problem.statistics.classifiers) <= 64:
            thinning = max(schedule.thinning, components**2 // 2)
            schedule = replace(schedule, thinning=thinning, dense_mass=True)
        schedule = replace(schedule, **settings)
        chosen = spread or _choose_device(device, chains, problem)
        with jax.default_device(chosen.device):
            data = problem.data()
            tools = programs(problem, data)
            column = class_column(problem) if classes else ""
            facts = attributes(
                problem,
                data,
                method=method,
                seed=seed,
                asked_method=method,
                feedback=feedback,
                classes=column,
                words=vocabulary_of(study.provenance) if isinstance(study, Study) else "images",
                device=chosen.device.device_kind,
                device_choice=chosen.reason,
                components_choice=why_components,
            )
            # What must agree for a checkpoint to be continued.
            names = "study_fingerprint statistics_digest model options datasets groups feedback"
            identity = {name: facts[name] for name in (*names.split(), "seed", "device")}
            identity |= {"schedule": json.dumps(asdict(schedule)), "versions": versions()}
            if checkpoint is not None and Path(checkpoint).exists():
                open_checkpoint(checkpoint, identity)  # refuses at once what is another's
            other_mass = facts["elsewhere"] = other_mode_mass(problem, tools, data, seed)
            marginal, folder, tried = None, None, list[str]()
            # Strategies are tried in turn until one converges; the last one's draws count anyway.
            while True:
                strategy, *strategies = strategies
                times = strategy.times
                longer = replace(schedule.lengthen(times), **settings)
                steps = strategy.stages * chains * (longer.warmup + draws)
                of_chains = steps, "draw", "divergences"
                counted = of_chains if strategy.takes_chains else (1, "fit", "")
                with progress_bar(*counted, show=progress, watch=watch) as bar:
                    # The Laplace marginal serves every strategy: as result and as surrogate.
                    if marginal is None and feedback == "full":
                        bar.stage("finding the mode")
                        marginal = sample_around_mode(problem, tools, data, [seed, 4])
                    if checkpoint is not None and "checkpoint" in strategy.arguments:
                        folder = open_checkpoint(checkpoint, identity)
                    run = Run(
                        problem, tools, data, longer, seed, chosen, bar, marginal, folder, times
                    )
                    verdict, contents, more = _attempt(
                        strategy, run, column, warmup=schedule.warmup, is_last=not strategies
                    )
                if verdict.converged or not strategies:
                    break
                tried.append(f"{strategy.description}: {verdict.sentence}")
    facts |= {"tried": " ".join(tried), **_trust(problem, verdict, other_mass)}
    facts |= {**more, "seconds": json.dumps(watch.seconds())}
    return build_tree(contents, coordinates(problem), facts)


def _attempt(
    strategy: Strategy, run: Run, classes: str, *, warmup: int, is_last: bool
) -> tuple[Verdict, Mapping[str, Any], Mapping[str, Any]]:
    """Draw by a strategy: the verdict, and groups and attributes of draws that may be used."""
    position, stats, facts = resolve_name(strategy.draw)(run)
    own = ("diverging",) if strategy.takes_chains else ("log_weight", "pareto_k", "ess")
    if lacking := [name for name in own if name not in stats and name not in facts]:
        raise OptionError(
            "sampler-without-statistics", draw=strategy.draw, names=", ".join(lacking)
        )
    # Weights are diagnosed as they are, chains by R-hat and ESS of every evaluated quantity.
    verdict = None if strategy.takes_chains else judge_weights(**facts)
    if verdict is not None and not (verdict.converged or is_last):
        return verdict, {}, {}
    run.bar.stage("evaluating")
    mode = None if run.marginal is None else run.marginal.setting.whitening.center
    draws = integrate_annotators(run.problem, run.tools, run.data, position, mode, run.seed)
    contents = posterior_groups(run.problem, run.data, draws, stats, seed=run.seed, classes=classes)
    run.bar.stage("judging")
    schedule = json.dumps(asdict(replace(run.schedule, warmup=warmup)))
    facts = {"method": strategy.method, "schedule": schedule, **facts}
    if draws.crowd_sd is not None:
        facts["crowd_sd"] = draws.crowd_sd
    if verdict is None:
        superchains = {"superchains": run.schedule.superchains}
        facts |= superchains
        tree = build_tree(contents, coordinates(run.problem), superchains)
        diverging = need_group(tree, "sample_stats")["diverging"].values
        checks = diagnostics(need_group(tree, "posterior"))
        verdict = judge(checks, int(diverging.sum()), diverging.size)
    return verdict, contents, facts


def _list_strategies(
    problem: Problem, method: str, feedback: str, *, of_chains: bool
) -> list[Strategy]:
    """List the strategies that are tried until draws are reliable, the quickest first."""
    if feedback == "cut" and not problem.model.takes_cut:
        raise OptionError("model-takes-no-cut", model=problem.name)
    last = find_strategy(method, feedback)
    if method != "auto":
        return [last]
    chains = [replace(last, times=times) for times in (1, 4, 16)]
    return chains if feedback == "cut" or of_chains else [STRATEGIES["laplace"], *chains]


def _check(method: str, feedback: str, chains: int, warmup: int, draws: int) -> None:
    """Refuse arguments that are out of range."""
    if chains < 1 or warmup < 10 or draws < 10:
        raise OptionError("chains-or-draws-too-few", chains=chains, warmup=warmup, draws=draws)
    bounds.refuse_above("chains", chains, 4_096)
    bounds.refuse_above("warmup", warmup, bounds.MAX_TOTAL_DRAWS)
    bounds.refuse_above("draws", draws, bounds.MAX_TOTAL_DRAWS)
    if feedback not in get_args(Feedback):
        raise OptionError("unknown-feedback", feedback=feedback)
    if method not in list_methods():
        allowed = " or ".join(map(repr, list_methods()))
        raise OptionError("unknown-fit-method", allowed=allowed, method=method)
    if feedback == "cut" and method not in ("auto", STRATEGIES["cut"].method):
        raise OptionError("cut-or-checkpoint-without-nuts", method=method)


def _check_settings(strategy: Strategy, settings: Mapping[str, Any]) -> None:
    """Refuse settings of NUTS that are out of range, or that a sampler does not take."""
    if unused := settings.keys() - set(strategy.arguments):
        raise OptionError("nuts-settings-without-nuts", option=min(unused), method=strategy.method)
    accept, depth = settings.get("target_accept", 0.5), settings.get("max_tree_depth", 1)
    if not bounds.is_of_kind(accept, float) or not 0 < accept < 1:
        raise OptionError("target-accept-out-of-range", value=accept)
    if not bounds.is_of_kind(depth, int) or not 1 <= depth <= 20:
        raise OptionError("tree-depth-out-of-range", value=depth)
    dense = settings.get("dense_mass", False)
    if not isinstance(dense, bool):
        raise OptionError("option-not-true-or-false", option="dense_mass", value=dense)


def _check_spread(mesh: Mesh | None, strategy: Strategy, chains: int) -> None:
    """Refuse chains that devices cannot share."""
    if mesh is None:
        return
    if "devices" not in strategy.arguments:
        raise OptionError("devices-without-chains", method=strategy.method)
    if chains % mesh.size:
        raise OptionError("chains-not-shared-evenly", devices=mesh.size, chains=chains)


def _choose_device(device: str, chains: int, problem: Problem) -> DeviceChoice:
    def build_steps(batch: int) -> Callable[[], Any]:
        """Build steps down the surrogate's potential: as much work as leapfrog steps."""
        data = problem.data()
        tools = programs(problem, data)
        _, surrogate = blank_target(tools.density, data, tools.start(problem.start(data)))

        def descend(surrogate: Surrogate, point: Array) -> Array:
            slope = jax.grad(partial(surrogate_potential, tools.density), argnums=1)
            return jax.lax.fori_loop(
                0, N_TIMED_STEPS, lambda _, x: x - 1e-6 * slope(surrogate, x), point
            )

        steps = jax.jit(jax.vmap(descend, (None, 0)), compiler_options=compiler_options())
        points = jnp.zeros((batch, tools.density.shared))
        return lambda: jax.block_until_ready(steps(surrogate, points))

    return choose(device, chains, build_steps)


def _trust(problem: Problem, verdict: Verdict, other_mass: float) -> dict[str, str | int]:
    """Build the attributes of the verdict on the draws, and warn of draws that are not good."""
    verdict = with_modes(verdict, other_mass)
    advice = advise(problem.statistics)
    for sentence in (*(() if verdict.converged else (verdict.sentence,)), *advice):
        warnings.warn(sentence, ConvergenceWarning, stacklevel=4)
    return {
        "converged": int(verdict.converged),
        "verdict": verdict.sentence,
        "advice": " ".join(advice),
    }
