"""Scenarios of a simulated replication, by name: each one departure from the plain world.

*Collection.* Candidates with the density p are measured once, P_k(s) = Binomial(k; n, s), and so
many are kept of every count as the reference has; the images kept have the density

    p_rep(s)  =  p(s) Σ_k P_k(s) r_k,      r_k = ∫ P_k p_ref / ∫ P_k p        (an endless pool)

(Engstrom et al., 2020, section 3 and appendix B.1: how ImageNet-v2 was made, and why.)

*Annotators.* With an intraclass correlation ρ an image's answers are Bernoulli of
s' ~ Beta(s (1/ρ − 1), (1 − s)(1/ρ − 1)). Worker w selects with probability
Φ(√(1 + σ²) Φ⁻¹(s) + σ z_w), z_w ~ N(0, 1), whose mean over workers is s.

*Selection.* By the counts at hand: s has the density p(s) a(s) / ∫ a p, a(s) the chance to be kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from bayesrep.choices import Process
from bayesrep.errors import OptionError
from bayesrep.studies.leniency import SAME_CROWD, Annotators
from bayesrep.studies.selection import Selection
from bayesrep.studies.worker_answers import WorkerAnswers
from bayesrep.types import Floats, Ints


@dataclass(frozen=True)
class Mixture:
    """A mixture over the selection frequency."""

    weights: tuple[float, ...]
    locations: tuple[float, ...]  # means on the logit scale
    spreads: tuple[float, ...]  # logit standard deviations, or concentrations a + b of betas


@dataclass(frozen=True, eq=False)
class ScenarioCrowd:
    """Workers: names [W] and leniencies z [W]."""

    workers: NDArray[np.str_]
    thresholds: Floats


@dataclass(frozen=True)
class Scenario:
    """Departures from the plain world.

    Attributes
    ----------
    says
        Description, as a clause.
    process
        Process that makes frequencies and curves, where the caller does not choose it.
    frequencies
        Logit-normal mixtures in place of the process's, by role.
    ones
        Share of the images of both data sets that every annotator would select.
    pool
        A logit-normal mixture of candidates, from which the replication is matched.
    dependence
        Intraclass correlation ρ of the answers about one image.
    crowd
        Workers of a data set, of whom every image has as many as annotators, or all, where these
        are more; None: every answer is another worker's.
    one_crowd
        True if both data sets have the same workers.
    leniency
        sd σ of the workers' thresholds.
    adaptive
        True if annotators are asked until the answer is clear.
    annotators
        Per image, or (low, high), if not asked for otherwise; None: the simulation's default.
    class_shift
        Change in the log odds between the first (easiest) and the last (hardest) class.
    selection
        The rule by which the counts at hand keep images of both data sets.
    """

    says: str
    process: Process | None = None
    frequencies: Mapping[str, Mixture] | None = None
    ones: float = 0.0
    pool: Mixture | None = None
    dependence: float = 0.0
    crowd: int | None = None
    one_crowd: bool = False
    leniency: float = 0.0
    adaptive: bool = False
    annotators: int | tuple[int, int] | None = None
    class_shift: float = 0.0
    selection: str | None = None

    def people(self, annotators: int) -> Annotators:
        """Who answers: the same people about both data sets, or how many about each."""
        if self.crowd is None or self.one_crowd:
            return SAME_CROWD
        return max(self.crowd, annotators)

    @property
    def keeps_populations(self) -> bool:
        """True if images and classifiers are as in the plain world, whatever annotators do."""
        changes = self.frequencies, self.ones, self.pool, self.class_shift, self.selection
        return not any(changes)


def _by_role(reference: Mixture, replication: Mixture) -> Mapping[str, Mixture]:
    return {"reference": reference, "replication": replication}


SCENARIOS: Mapping[str, Scenario] = {
    "plain": Scenario("frequencies are mixtures, and every answer is given by itself"),
    "spike": Scenario("15 % of the images would be selected by every annotator", ones=0.15),
    "near-one": Scenario(
        "nearly every image is selected by nearly everybody",
        frequencies=_by_role(
            Mixture((0.9, 0.1), (3.5, 1.0), (0.7, 1.0)), Mixture((0.8, 0.2), (3.2, 1.0), (0.7, 1.0))
        ),
    ),
    "three-modes": Scenario(
        "images are clear, contested or wrong",
        frequencies=_by_role(
            Mixture((0.65, 0.25, 0.10), (2.8, 0.6, -1.5), (0.4, 0.3, 0.4)),
            Mixture((0.50, 0.35, 0.15), (2.8, 0.6, -1.5), (0.4, 0.3, 0.4)),
        ),
    ),
    "unimodal": Scenario(
        "frequencies have one mode, near 0.7",
        frequencies=_by_role(Mixture((1.0,), (1.0,), (0.8,)), Mixture((1.0,), (0.75,), (0.8,))),
    ),
    "u-shaped": Scenario(
        "most images are selected by nearly everybody or by nearly nobody",
        frequencies=_by_role(
            Mixture((0.7, 0.3), (3.5, -2.5), (1.5, 1.5)),
            Mixture((0.6, 0.4), (3.5, -2.5), (1.5, 1.5)),
        ),
    ),
    "ragged": Scenario("images have 5 to 40 annotators each", annotators=(5, 40)),
    "waves": Scenario("accuracy rises and falls with the frequency", process="non-monotone"),
    "pool": Scenario(
        "the replication is matched from a pool of candidates by a noisy measurement",
        pool=Mixture((0.6, 0.4), (2.0, -0.3), (0.9, 1.3)),
    ),
    "crowded-grid": Scenario(
        "answers about an image come from one grid and depend on each other",
        dependence=0.10,
        annotators=10,
    ),
    "two-panels": Scenario(
        "each data set has one panel of ten workers, who answer for all of its images",
        crowd=10,
        leniency=0.5,
        annotators=10,
    ),
    "two-crowds": Scenario(
        "each data set has a hundred workers of its own, who differ",
        crowd=100,
        leniency=0.5,
        annotators=10,
    ),
    "one-crowd": Scenario(
        "a hundred workers, who differ, answer for both data sets",
        crowd=100,
        one_crowd=True,
        leniency=0.5,
        annotators=10,
    ),
    "workers": Scenario(
        "workers differ, and every answer is another worker's", leniency=0.5, annotators=10
    ),
    "adaptive": Scenario(
        "annotators are asked until the answer is clear, 5 to 40 of them",
        adaptive=True,
        annotators=40,
    ),
    "kept": Scenario(
        "images were kept where at least 70 % of the answers at hand selected them",
        selection="at least 70 %",
        annotators=10,
    ),
    "label-shift": Scenario(
        "the replication has more of the hard classes, at the same frequencies", class_shift=1.0
    ),
}
SIMULATED_CLASSES = 10
MAX_EASE = 0.6  # of the easiest class on the probit scale; minus that of the hardest
FIRST_ANSWERS = 5
CHUNK_ENTRIES = 2**24  # entries of a table of images and workers made at a time
CLEAR_SHARE = 0.2  # largest share of dissenters at which no more workers are asked


def find_scenario(name: str) -> Scenario:
    """The scenario of a name."""
    if name not in SCENARIOS:
        raise OptionError("unknown-scenario", choices=", ".join(SCENARIOS), scenario=name)
    return SCENARIOS[name]


def class_shares(shift: float) -> Floats:
    """Shares of the classes, easiest first, whose log odds fall by `shift` from first to last."""
    along = np.exp(-shift * np.linspace(-0.5, 0.5, SIMULATED_CLASSES))
    return along / along.sum()


def class_ease() -> Floats:
    """Return every class's shift of classifiers' scores on the probit scale, easiest first."""
    return np.linspace(MAX_EASE, -MAX_EASE, SIMULATED_CLASSES)


def draw_counts(
    rng: np.random.Generator,
    scenario: Scenario,
    s: Floats,
    low: int,
    high: int,
    crowd: ScenarioCrowd | None = None,
) -> tuple[Ints, Ints, WorkerAnswers | None]:
    """Draw every image's count of selections, number of annotators, and workers if known."""
    if scenario.adaptive:
        return *_until_clear(rng, s, high), None
    annotators = rng.integers(low, high + 1, size=len(s))
    if crowd is not None:
        answers = _by_crowd(rng, scenario.leniency, s, annotators, crowd)
        return *answers.counts(len(s)), answers
    if (rho := scenario.dependence) > 0:
        total = 1 / rho - 1
        inner = (s > 0) & (s < 1)
        mean = np.where(inner, s, 0.5)
        s = np.where(inner, rng.beta(mean * total, (1 - mean) * total), s)
    return rng.binomial(annotators, s), annotators, None


def draw_crowds(
    rng: np.random.Generator, scenario: Scenario, annotators: int
) -> tuple[ScenarioCrowd, ScenarioCrowd] | None:
    """The workers of the reference and of the replication, in scenarios that have a crowd."""
    if scenario.crowd is None:
        return None
    size = max(scenario.crowd, annotators)
    first, second = (
        ScenarioCrowd(
            np.array([f"{name}{number:05d}" for number in range(size)]), rng.standard_normal(size)
        )
        for name in ("a", "b")
    )
    return first, first if scenario.one_crowd else second


def _by_crowd(
    rng: np.random.Generator, leniency: float, s: Floats, annotators: Ints, crowd: ScenarioCrowd
) -> WorkerAnswers:
    """Draw answers of a crowd's workers for every image; all workers if no more are needed."""
    most, size = int(annotators.max()), len(crowd.workers)
    chosen = np.empty((len(s), most), dtype=np.int32)
    for rows in np.array_split(np.arange(len(s)), -(-len(s) * size // CHUNK_ENTRIES)):
        order = rng.random((len(rows), size)).argsort(axis=1) if size > most else np.arange(size)
        chosen[rows] = order[..., :most]
    image, place = np.nonzero(np.arange(most) < annotators[:, None])
    worker = chosen[image, place]
    score = np.sqrt(1 + leniency**2) * ndtri(s)[image]
    selected = rng.random(len(image)) < ndtr(score + leniency * crowd.thresholds[worker])
    return WorkerAnswers(crowd.workers, image.astype(np.int32), worker, selected)


def _until_clear(rng: np.random.Generator, s: Floats, most: int) -> tuple[Ints, Ints]:
    """Draw counts from doubling numbers of annotators, until few dissent."""
    answers = (rng.random((most, len(s))) < s).cumsum(axis=0)
    annotators = np.full(len(s), most, dtype=np.int64)
    n_asked = FIRST_ANSWERS
    while n_asked < most:
        share = answers[n_asked - 1] / n_asked
        clear = np.minimum(share, 1 - share) <= CLEAR_SHARE
        annotators = np.where(clear & (annotators == most), n_asked, annotators)
        n_asked *= 2
    return answers[annotators - 1, np.arange(len(s))], annotators


def chance_to_be_kept(rule: str, annotators: int, s: Floats) -> Floats:
    """Compute a(s) = Σ_k a(k, n) Binomial(k; n, s), the probability to be kept [S]."""
    from scipy.stats import binom

    k = np.arange(annotators + 1)
    keeps = Selection.parse(rule).probability(k, np.full(annotators + 1, annotators))
    return np.asarray(keeps @ binom.pmf(k[:, None], annotators, s[None, :]))


def matched_weights(
    s_pool: Floats, pool: Floats, s_reference: Floats, reference: Floats, annotators: int
) -> Floats:
    """Compute weights of the pool's nodes under the matched density (module docstring)."""
    from scipy.stats import binom

    k = np.arange(annotators + 1)[:, None]
    of_pool, masses = (np.asarray(binom.pmf(k, annotators, s)) for s in (s_pool, s_reference))
    of_reference = masses @ reference
    return pool * (of_reference / np.maximum(of_pool @ pool, 1e-300) @ of_pool)


def draw_logit_normal(rng: np.random.Generator, mixture: Mixture, size: int) -> Floats:
    """Selection frequencies [size] of a logit-normal mixture."""
    component = rng.choice(len(mixture.weights), size=size, p=mixture.weights)
    return expit(
        rng.normal(np.take(mixture.locations, component), np.take(mixture.spreads, component))
    )


def draw_matched(
    rng: np.random.Generator, pool: Mixture, measured: Ints, annotators: int
) -> Floats:
    """Draw a pool image's selection frequency for each measured count [N]."""
    target = np.bincount(measured, minlength=annotators + 1)
    matched: list[list[Floats]] = [[] for _ in target]
    missing = target.copy()
    while missing.any():
        s = draw_logit_normal(rng, pool, 4 * len(measured))
        count = rng.binomial(annotators, s)
        for k in np.flatnonzero(missing):
            frequencies = s[count == k][: missing[k]]
            matched[k].append(frequencies)
            missing[k] -= len(frequencies)
    return rng.permutation(np.concatenate([part for parts in matched for part in parts]))
