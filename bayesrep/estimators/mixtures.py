"""Maximum-likelihood mixtures of the selection frequency, for one study and all its replicates.

n annotators per image identify the first n moments of p(s) and no more: a mixture with more
parameters than there are distinct counts is fitted but not identified, and a warning says so.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from bayesrep import bounds
from bayesrep.errors import EstimateWarning, IdentificationWarning, OptionError
from bayesrep.estimators.annotator_match import AnnotatorMatch, take_annotated
from bayesrep.estimators.betas import MEAN_LIMITS, LogBetas
from bayesrep.estimators.naive import at_every_count, thinned_counts
from bayesrep.estimators.replicates import CellCounts, Replicates
from bayesrep.numerics.noisy_matching import BetaMixture
from bayesrep.numerics.settings import own_settings
from bayesrep.numerics.thinning import thin_correct, thinning_matrix
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Bool, Float, Floats, Int, Ints

EM_ROUNDS = 200  # from every random start; Newton's method follows
_REFIT_ROUNDS = 20  # on a replicate, from the study's optima
_REFIT_STARTS = 4  # optima of the study from which replicates start
_POINT_CONCENTRATION = 1e4  # a + b from which a beta-binomial of tens of annotators is a binomial
_LOST_WEIGHT = 1e-6  # weight below which a component holds no image
_SAME_OPTIMUM_NATS = 1e-3  # log likelihoods this close count as one optimum
_CONVERGED_NATS = 1e-6  # predicted gain of a Newton step below which a fit has converged
_ROUNDING_NATS = 1e-6  # decrease of the likelihood in a round of EM that rounding explains


@dataclass(frozen=True, eq=False)
class CellTable:
    """Both data sets on the cells of all counts 0..n of every n, empty ones too (equation 8)."""

    selected: Int[np.ndarray, "cell"]  # k
    shown: Int[np.ndarray, "cell"]  # n
    images: Float[np.ndarray, "2 version cell"]  # of the reference, of the replication
    correct: Float[np.ndarray, "_ cell classifier"]  # of the replication's

    def rows(self, which: slice | Ints) -> "CellTable":
        """Select versions."""
        return CellTable(self.selected, self.shown, self.images[:, which], self.correct[which])


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """Maximum-likelihood mixtures of the reference and the replication in B versions of a study."""

    a: Float[np.ndarray, "2 version component"]
    b: Float[np.ndarray, "2 version component"]
    weights: Float[np.ndarray, "2 version component"]
    log_likelihood: Float[np.ndarray, "2 version"]  # of the counts, nats
    converged: Bool[np.ndarray, "2 version"]  # by Newton's method
    optima: LogBetas  # of all starts; fields [2, B, S, K]
    start_log_likelihoods: Float[np.ndarray, "2 version start"]

    def mixture(self, role: int, version: int = 0) -> BetaMixture:
        """Return the mixture of the reference (0) or of the replication (1) in one version."""
        return BetaMixture(*(each[role, version] for each in (self.a, self.b, self.weights)))

    @property
    def degenerate_components(self) -> Bool[np.ndarray, "2 version component"]:
        """Components that have shrunk to a point or lost their images."""
        mean = self.a / (self.a + self.b)
        at_an_end = np.minimum(mean, 1 - mean) < 2 * MEAN_LIMITS[0]
        return at_an_end | (self.a + self.b > _POINT_CONCENTRATION) | (self.weights < _LOST_WEIGHT)


MAX_MIXTURE_ANNOTATORS = 500
"""Larger counts are thinned to this n: the cost is quadratic in n and the further information
negligible."""


def complete_cells(replicates: Replicates, annotators: int | None = None) -> CellTable:
    """Bring both data sets onto common cells, thinned in expectation to n' annotators if given."""
    # With a number of annotators: thin all counts to it, in expectation.
    if annotators is not None:
        annotators = AnnotatorMatch.from_replicates(replicates, annotators).annotators
        matched = take_annotated(replicates, annotators)
        counts = at_every_count(thinned_counts(matched, annotators))
        n_annotators = np.full(annotators + 1, annotators)
        images = np.stack([counts.reference, counts.replication])
        return CellTable(counts.selected, n_annotators, images, counts.correct)
    reference, replication = map(_limit_annotators, (replicates.reference, replicates.replication))
    if reference is not replicates.reference or replication is not replicates.replication:
        words = replicates.words
        text = (
            f"em-spline: counts of more than {MAX_MIXTURE_ANNOTATORS} {words.annotators} per "
            f"{words.image} are thinned to {MAX_MIXTURE_ANNOTATORS}, in expectation"
        )
        warnings.warn(EstimateWarning(text), stacklevel=4)
    # Otherwise every count that is possible with any of the numbers of annotators gets a cell.
    selected, n_annotators = all_counts(np.concatenate([reference.shown, replication.shown]))

    def places(cells: CellCounts) -> Ints:
        return np.searchsorted(n_annotators, cells.shown) + cells.selected

    # Scatter both data sets into the common cells.
    images = np.zeros((2, len(replicates), len(n_annotators)))
    images[0][:, places(reference)] = reference.images
    images[1][:, places(replication)] = replication.images
    correct = np.zeros((len(replicates), len(n_annotators), replication.correct.shape[2]))
    correct[:, places(replication)] = replication.correct
    return CellTable(selected, n_annotators, images, correct)


def _limit_annotators(cells: CellCounts) -> CellCounts:
    """Thin cells to `MAX_MIXTURE_ANNOTATORS` per image where some have more."""
    if cells.shown.max() <= MAX_MIXTURE_ANNOTATORS:
        return cells
    many = cells.shown >= MAX_MIXTURE_ANNOTATORS
    matrix = thinning_matrix(cells.selected[many], cells.shown[many], MAX_MIXTURE_ANNOTATORS)
    thinned = thin_correct(matrix, cells.correct[:, many])
    counts = np.arange(MAX_MIXTURE_ANNOTATORS + 1)
    shown = np.full_like(counts, MAX_MIXTURE_ANNOTATORS)
    return CellCounts(
        np.concatenate([cells.selected[~many], counts]),
        np.concatenate([cells.shown[~many], shown]),
        np.concatenate([cells.images[:, ~many], cells.images[:, many] @ matrix], axis=1),
        np.concatenate([cells.correct[:, ~many], thinned], axis=1),
    )


def all_counts(
    sizes: Int[np.ndarray, "some"],
) -> tuple[Int[np.ndarray, "cell"], Int[np.ndarray, "cell"]]:
    """List all counts k of 0..n, increasing in n: (k, n) is at `searchsorted(n's, n) + k`."""
    distinct = np.unique(sizes)
    selected = np.concatenate([np.arange(size + 1) for size in distinct])
    return selected, np.repeat(distinct, distinct + 1)


def random_starts(table: CellTable, components: int, starts: int, seed: int) -> LogBetas:
    """Draw starts: means at observed frequencies, concentrations 2 to 50; fields [2, 1, S, K]."""
    frequency = (table.selected + 0.5) / (table.shown + 1)
    shape = (starts, components)
    fields: list[list[Floats]] = []
    for role in range(2):
        rng = np.random.default_rng([seed, role])
        share = table.images[role, 0] / table.images[role, 0].sum()
        mean = rng.choice(frequency, p=share, size=shape)
        concentration = np.exp(rng.uniform(np.log(2), np.log(50), size=shape))
        weights = rng.dirichlet(np.ones(components), size=starts)
        values = mean * concentration, (1 - mean) * concentration, weights
        fields.append(list(map(np.log, values)))
    return LogBetas(*(np.stack(field)[:, None] for field in zip(*fields, strict=True)))


def fit_mixtures(
    table: CellTable,
    *,
    components: int,
    starts: int = 10,
    seed: int = 0,
    rounds: int = EM_ROUNDS,
    newton: bool = True,
) -> MixtureFit:
    """Fit the study itself (row 0) from random starts; the best optimum wins.

    Algorithm 1 as published is one start, 200 rounds of EM and no Newton.
    """
    check_sizes(components, starts)
    _warn_if_unidentified(table, components)
    begin = random_starts(table, components, starts, seed)
    return _best_fit(begin, table.rows(slice(1)), rounds, newton=newton)


def check_sizes(components: int, starts: int, where: str = "") -> None:
    """Raise OptionError where no mixture has so many components, or no fit so many starts."""
    if components < 1 or starts < 1:
        facts = {"components": components, "starts": starts}
        raise OptionError("components-or-starts-below-one", where=where, **facts)
    bounds.refuse_above(f"{where}components", components, bounds.MAX_COMPONENT_COUNT)
    bounds.refuse_above(f"{where}starts", starts, bounds.MAX_STARTS)


def refit_mixtures(study: MixtureFit, table: CellTable) -> MixtureFit:
    """Fit replicates (all rows of `table`) from the distinct optima of the study's starts."""
    rows = table.images.shape[1]
    begin = LogBetas(*(np.repeat(field[:, None], rows, axis=1) for field in _optima(study)))
    return _best_fit(begin, table, _REFIT_ROUNDS, newton=True)


def _best_fit(begin: LogBetas, table: CellTable, rounds: int, *, newton: bool) -> MixtureFit:
    import jax

    from bayesrep.estimators.em import CellMatrices, ascend

    with own_settings():
        cells = CellMatrices.from_cells(table.selected, table.shown)
        result = ascend(begin, table.images, cells, rounds=rounds, newton=newton)
        result = jax.tree.map(np.asarray, result)
    # EM never lowers the likelihood; rounding errors grow with its size.
    scale = np.maximum(1.0, np.abs(result.log_likelihood).max(initial=1.0) / 1e4)
    if not (result.drop <= _ROUNDING_NATS * scale).all():
        raise ArithmeticError(
            f"a round of EM lowered the likelihood by {result.drop.max():.2g} nats: a defect of "
            "bayesrep, please report it with the study"
        )
    best = result.log_likelihood.argmax(axis=-1)[..., None]  # [2, B, 1]
    highest = result.log_likelihood, result.gain
    log_likelihood, gain = (np.take_along_axis(e, best, axis=-1)[..., 0] for e in highest)
    fields = [np.take_along_axis(f, best[..., None], axis=2)[:, :, 0] for f in result.mixture]
    a, b, weights = (np.exp(field) for field in fields)
    # Components are exchangeable: sorted by their means, fits can be compared.
    order = np.argsort(a / (a + b), axis=-1)
    a, b, weights = (np.take_along_axis(field, order, axis=-1) for field in (a, b, weights))
    return MixtureFit(
        a=a,
        b=b,
        weights=weights,
        log_likelihood=log_likelihood,
        converged=gain < _CONVERGED_NATS,  # never without Newton's method, whose gain is NaN
        optima=result.mixture,
        start_log_likelihoods=result.log_likelihood,
    )


def _optima(study: MixtureFit) -> LogBetas:
    """Select the best few distinct optima of each data set, [2, T, K], padded with the best."""
    heights = study.start_log_likelihoods[:, 0]
    size = min(_REFIT_STARTS, heights.shape[1])
    chosen = np.empty((2, size), dtype=np.intp)
    for role, height in enumerate(heights):
        order = np.argsort(-height)
        # Optima of equal likelihood are one, up to the order of components.
        fresh = np.diff(height[order], prepend=np.inf) < -_SAME_OPTIMUM_NATS
        distinct = order[fresh][:size]
        chosen[role] = np.pad(distinct, (0, size - len(distinct)), constant_values=order[0])
    rows = np.arange(2)[:, None]
    return LogBetas(*(field[rows, 0, chosen] for field in study.optima))


def _warn_if_unidentified(table: CellTable, components: int) -> None:
    # A mixture of K betas has 2 K shapes and K − 1 free weights.
    parameters = 3 * components - 1
    counts = (table.images[:, 0] > 0).sum(axis=-1)
    too_few = {role: n for role, n in zip(REQUIRED_ROLES, counts, strict=True) if parameters >= n}
    if not too_few:
        return
    few = " and ".join(f"the {role}'s {count}" for role, count in too_few.items())
    fewest = min(too_few.values())
    advice = f"; choose fewer components (components={fewest // 3})" if fewest >= 3 else ""
    text = (
        f"em-spline: {components} components have {parameters} parameters, but {few} distinct "
        f"counts determine at most {fewest - 1}; the estimate rests on the form of the "
        f"mixture{advice}"
    )
    warnings.warn(IdentificationWarning(text), stacklevel=4)


def log_shares(fit: MixtureFit, table: CellTable) -> Float[np.ndarray, "2 version cell"]:
    """Compute log p(k of n) of every cell under every fitted mixture."""
    from scipy.stats import betabinom

    n, k = table.shown[:, None], table.selected[:, None]
    mass = betabinom.pmf(k, n, fit.a[..., None, :], fit.b[..., None, :])
    return np.log((mass * fit.weights[..., None, :]).sum(axis=-1))
