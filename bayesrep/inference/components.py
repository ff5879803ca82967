"""How many components mixtures have where nobody says: two, or more where the counts insist.

Two betas can be told from ten answers an image, and a third mostly changes the adjusted accuracies
by a fraction of their uncertainty, while chains mix slowly over it. Where many answers an image
show a spike or a third mode, two smooth over it, and intervals are about another density. What the
counts say of K is their evidence, the probability P(counts | K) under the prior of mixtures, by
Laplace's method at the highest mode that a few climbs find. Classifiers have no say: curves that do
not fit would ask for more as well.

`DECISIVE` is more than Kass and Raftery's "very strong", 5 nats, which a hundred thousand answers
reach where two betas are as good as right. Of 72 simulated studies of odd densities and curves (as
those of `experiments.odd_worlds` and not among them) the mean gap's interval missed the truth with
two components in four, and a third had 11, 59, 79 and 194 nats there; with as many as were asked
for it missed in the first alone. Nine with 5 to 20 nats were fitted no better with three. Of the
experiment's own 150 studies 16 asked for more, whose mean was off by 0.9 points instead of 1.2.
Chains of 136 classifiers did not converge within the usual steps at 15 nats, and did at 26 and 47.

Climbs begin at the prior means and around them, and a fit where the best climb ended. Nearly always
that is the mode above the prior means. Of eight placebo studies one had another, 35 nats higher,
which a climb on annotators and classifiers together found from there, and one on the annotators
alone did not.

References
----------
Kass, Raftery (1995), "Bayes factors", JASA 90: the scale of evidence in section 3.2, Laplace's
method in 4.1.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
import numpyro
from jax import Array
from jax.typing import ArrayLike

from bayesrep.inference.arrowhead import SecondOrder, second_order
from bayesrep.inference.density import Position, build_density
from bayesrep.inference.mode import climb, log_mass
from bayesrep.inference.problem import Problem
from bayesrep.inference.program import Program
from bayesrep.models import MODELS
from bayesrep.models.counts import Counts, complete, counts_of, log_likelihood_of, log_pair_masses
from bayesrep.models.mixtures import mixture_offsets, mixture_start, sample_mixtures
from bayesrep.models.options import JointOptions
from bayesrep.types import Floats

MOST = 4
"""Components, beyond which none are added unasked."""
DECISIVE = 20.0
"""Nats of evidence for one more."""
STARTS, AROUND = 4, 0.5
"""Climbs: from the prior means, and from points around them at this sd."""
BETTER = 1.0
"""Nats by which another mode has to be better than that above the prior means."""

Datasets: TypeAlias = tuple[Counts, ...]


class Peak(NamedTuple):
    """The mode of the mixtures given the counts.

    Attributes
    ----------
    log_evidence
        log P(counts | the prior), but for what no mixture changes.
    elsewhere
        Values of its sites where a climb from the prior means does not lead there, else empty.
    """

    log_evidence: float
    elsewhere: Mapping[str, Floats]


def settled_by_counts(problem: Problem, *, choose: bool) -> tuple[Problem, str]:
    """The problem with as many components as its counts ask for, and a start below their mode.

    As many as its options have, and one more as long as that is worth `DECISIVE` of evidence; a
    sentence says why, where there are more. Groups of images count together. Call it with 64-bit
    floats enabled.

    Parameters
    ----------
    problem
        Whose options have the fewest components.
    choose
        Whether there may be more.
    """
    with jax.default_device(jax.local_devices(backend="cpu")[0]):  # a few dozen numbers
        return _choose_components(problem, choose=choose)


def _choose_components(problem: Problem, *, choose: bool) -> tuple[Problem, str]:
    options: JointOptions = problem.options
    cells = [problem.statistics.cells[role] for role in problem.roles]
    datasets = tuple(counts_of(complete([each]), options.dependence) for each in cells)
    fewest = peak = peak_of(datasets, options)
    while choose and options.components < MOST:
        larger = replace(options, components=options.components + 1)
        further = peak_of(datasets, larger)
        if not further.log_evidence > peak.log_evidence + DECISIVE:
            break
        options, peak = larger, further
    settled = replace(problem, options=options, mixtures=peak.elsewhere)
    if options == problem.options:
        return settled, ""
    gain = peak.log_evidence - fewest.log_evidence
    return settled, (
        f"The counts ask for mixtures of {options.components} components: for "
        f"{problem.options.components} their evidence is e^{gain:.0f} times smaller."
    )


def peak_of(datasets: Datasets, options: JointOptions) -> Peak:
    """The mode of the options' mixtures given the counts, the highest that several climbs find."""
    leaves, structure = jax.tree.flatten(datasets)
    tools = _programs(options, structure, tuple(leaf.shape for leaf in leaves))
    middle = mixture_start(options, len(datasets), 1)
    random = np.random.default_rng(0)
    around = [
        {
            name: value + AROUND * random.standard_normal(np.shape(value))
            for name, value in middle.items()
        }
        for _ in range(STARTS - 1)
    ]
    ends = [climb(tools.expand, tools.start(start), datasets) for start in (middle, *around)]
    masses = np.nan_to_num([log_mass(end) for end in ends], nan=-np.inf)
    best = int(np.argmax(masses))
    if not masses[best] > masses[0] + BETTER:
        return Peak(float(masses[0]), {})
    sites = tools.sites(ends[best].position)
    return Peak(float(masses[best]), {name: np.asarray(value) for name, value in sites.items()})


class _Programs(NamedTuple):
    """From sites' values to a position, the potential's expansion there, and back."""

    start: Callable[[Mapping[str, ArrayLike]], Position]
    expand: Callable[[Position, Datasets], SecondOrder]
    sites: Callable[[Position], dict[str, Array]]


@lru_cache(maxsize=16)
def _programs(options: JointOptions, structure: Any, shapes: Any) -> _Programs:
    example = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    density = build_density(
        lambda datasets: counts_alone(datasets, options),
        example,
        offsets=lambda values: mixture_offsets(values, options),
    )

    def expand(position: Position, datasets: Datasets) -> SecondOrder:
        return second_order(lambda at: density.potential(at, datasets), position)

    def keep(function: Callable[..., Any]) -> Program:
        # Options of other code may read the same and mean something else.
        is_own = any(type(options) is model.options for model in MODELS.list_own())
        made_from = f"counts alone {options!r} {structure} {shapes}" if is_own else ""
        return Program(function, function.__name__, made_from, quick=True)

    return _Programs(keep(density.to_position), keep(expand), keep(density.to_sites))


def counts_alone(datasets: Datasets, options: JointOptions) -> None:
    """NumPyro model of the annotations of several data sets, without any classifier."""
    mixtures = sample_mixtures(options, len(datasets), 1)
    for index, (mixture, counts) in enumerate(zip(mixtures, datasets, strict=True)):
        log_mass_of = log_pair_masses(mixture, counts.pairs)
        numpyro.factor(f"counts_{index}", log_likelihood_of(counts, log_mass_of))
