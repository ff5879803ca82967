"""Choices by the data: the number of mixture components, K, and scales of classifiers' priors.

K is chosen by the evidence P(counts | K) under the prior of mixtures, by Laplace's method at the
highest of several modes. Classifiers have no part in it: curves that do not fit would ask for more
components as well.

References
----------
Kass, Raftery (1995), JASA 90: the scale of evidence in section 3.2, Laplace's method in 4.1.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np
import numpyro

from bayesrep.inference.density import build_density
from bayesrep.inference.mode import find_mode, log_mass
from bayesrep.inference.problem import Problem, Programs, compile_programs
from bayesrep.models import MODELS
from bayesrep.models.counts import Counts, complete, counts_of, log_likelihood_of, log_pair_masses
from bayesrep.models.mixtures import mixture_offsets, mixture_start, sample_mixtures
from bayesrep.models.options import JointOptions
from bayesrep.models.priors import locate
from bayesrep.studies.statistics import Cells
from bayesrep.types import Floats

MAX_COMPONENTS = 4
"""Largest number of components chosen automatically."""
MIN_LOG_BAYES_FACTOR = 20.0
"""Nats of evidence that one more component takes.

More than "very strong", 5 nats, which a hundred thousand answers reach where two betas are as good
as right: a third that was worth 5 to 20 made simulated fits no better.
"""
N_STARTS, START_SD = 4, 0.5
"""Searches for the mode, from the prior means and from points around them, of this sd."""
MIN_ADVANTAGE = 1.0
"""Nats by which another mode has to be better than that next to the prior means."""


def choose_components(problem: Problem, *, choose: bool) -> tuple[Problem, str]:
    """Choose start values and, if allowed, the number of components, with a reason for more."""
    options: JointOptions = problem.options
    with jax.default_device(jax.local_devices(backend="cpu")[0]):  # a few dozen numbers
        # Groups of images count together.
        cells = [problem.statistics.cells[role] for role in problem.roles]
        datasets = tuple(counts_of(complete([each]), options.dependence) for each in cells)
        evidence, start = find_mixture_mode(datasets, options)
        fewest = evidence
        while choose and options.components < MAX_COMPONENTS:
            larger = replace(options, components=options.components + 1)
            larger_evidence, larger_start = find_mixture_mode(datasets, larger)
            if not larger_evidence > evidence + MIN_LOG_BAYES_FACTOR:
                break
            options, evidence, start = larger, larger_evidence, larger_start
    chosen = replace(problem, options=options, mixtures=start)
    if options == problem.options:
        return chosen, ""
    return chosen, (
        f"The counts ask for mixtures of {options.components} components: for "
        f"{problem.options.components} their evidence is e^{evidence - fewest:.0f} times smaller."
    )


def find_mixture_mode(
    datasets: tuple[Counts, ...], options: JointOptions
) -> tuple[float, Mapping[str, Floats]]:
    """Find log P(counts) at the mixtures' highest mode, and its sites if these are needed."""
    leaves, structure = jax.tree.flatten(datasets)
    tools = _programs(options, structure, tuple(leaf.shape for leaf in leaves))
    middle = mixture_start(options, len(datasets), 1)
    random = np.random.default_rng(0)
    around = [
        {
            name: value + START_SD * random.standard_normal(np.shape(value))
            for name, value in middle.items()
        }
        for _ in range(N_STARTS - 1)
    ]
    ends = [find_mode(tools.expand, tools.start(start), datasets) for start in (middle, *around)]
    # A mode without finite mass, such as a component at 0 or 1, is never the best.
    masses = np.nan_to_num([log_mass(end) for end in ends], nan=-np.inf)
    best = int(np.argmax(masses))
    if not masses[best] > masses[0] + MIN_ADVANTAGE:  # a search from the prior means leads there
        return float(masses[0]), {}
    sites = jax.jit(tools.density.to_sites)(ends[best].position)
    return float(masses[best]), {name: np.asarray(value) for name, value in sites.items()}


@lru_cache(maxsize=16)
def _programs(options: JointOptions, structure: Any, shapes: Any) -> Programs:
    """Compile the programs of the annotations of several data sets, without any classifier."""

    def counts_model(datasets: tuple[Counts, ...]) -> None:
        mixtures = sample_mixtures(options, len(datasets), 1)
        for index, (mixture, counts) in enumerate(zip(mixtures, datasets, strict=True)):
            log_mass_of = log_pair_masses(mixture, counts.pairs)
            numpyro.factor(f"counts_{index}", log_likelihood_of(counts, log_mass_of, mixture))

    # The text of other code's options does not identify them.
    is_own = any(type(options) is model.options for model in MODELS.list_own())
    density = build_density(
        counts_model,
        jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes]),
        offsets=lambda values: mixture_offsets(values, options),
        identity=f"counts alone {options!r} {structure} {shapes}" if is_own else "",
    )
    return compile_programs(density)


def widen_priors(problem: Problem, named: Collection[str]) -> Problem:
    """Widen the default priors of classifiers' terms to the accuracies' spread, but for `named`."""
    # The default sds suit classifiers of one kind; accuracies from 0.1 % to 99.9 % they would
    # shrink to the middle. They cannot be sampled with the shared parameters, whose data have a
    # weight for the images that all classifiers have in common.
    options = problem.options
    level, slope = (
        locate(each).scale for each in (options.classifier_level, options.classifier_slope)
    )
    # Levels differ as the logits of accuracies do. Most images lie about 2 s − 1 = 0.5: an accuracy
    # is about that of the curve there.
    usual = math.hypot(level, 0.5 * slope)
    ratio = between_classifier_sd(problem.statistics.replication) / usual
    # Levels are multiplied by the largest of 1, √2, 2, 2 √2, … that the ratio reaches, so that
    # studies share programs. Slopes by its square root: a classifier that is nearly always right
    # tells little of its slope.
    steps = max(0, math.floor(2 * math.log2(max(ratio, 1e-3))))
    wider = {
        "classifier_level": level * 2 ** (steps / 2),
        "classifier_slope": slope * 2 ** (steps / 4),
    }
    free = {name: value for name, value in wider.items() if steps and name not in named}
    return replace(problem, options=replace(options, **free)) if free else problem


def between_classifier_sd(cells: Cells) -> float:
    """Estimate the sd of classifiers' logit accuracies, minus the sampling variance."""
    images, right = cells.images.sum(), cells.correct.sum(axis=0)
    if len(right) < 2:
        return 0.0
    accuracy = (right + 0.5) / (images + 1)
    chance = 1 / (images * accuracy * (1 - accuracy))
    logit = np.log(accuracy) - np.log1p(-accuracy)
    return float(np.sqrt(max(logit.var(ddof=1) - chance.mean(), 0.0)))
