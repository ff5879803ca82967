"""EM + spline, the paper's parametric estimator: Engstrom et al. (2020), section 5.3.

Mixtures of betas are fitted to the counts (`mixtures`), then every classifier's accuracy curve g
(`spline`), and A = ∫ g(s) p_ref(s) ds (equation 6).
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bayesrep.estimators.annotator_match import AnnotatorMatch
from bayesrep.estimators.betas import Betas
from bayesrep.estimators.estimator import Estimates, Estimator, check_words
from bayesrep.estimators.mixtures import (
    CellTable,
    MixtureFit,
    check_sizes,
    complete_cells,
    fit_mixtures,
    refit_mixtures,
)
from bayesrep.estimators.replicates import Replicates
from bayesrep.numerics.settings import own_settings
from bayesrep.progress import progress_bar
from bayesrep.types import Float

Loss = Literal["least-squares", "weighted", "binomial"]
Bounds = Literal["grid", "everywhere"]
Quadrature = Literal["exact", "published"]

_VERSIONS_PER_BLOCK = 75  # fitted between two steps of the progress bar


@dataclass(frozen=True)
class EMSpline(Estimator):
    """Mixtures of betas for s by EM, a cubic spline for g by least squares, A = ∫ g p_ref.

    Engstrom et al. (2020), section 5.3, equations 6 and 8, and algorithm 1. The fitted mixtures are
    plugged in: only the bootstrap propagates their uncertainty to the estimate's interval.

    Attributes
    ----------
    components
        K beta components for each data set.
    starts
        Random starts of the mixtures; each is followed to its optimum, and the best one wins.
    loss
        What the curve minimises: "least-squares" is equation 8; "weighted" divides each squared
        error by the expected share of its count, so that rare counts weigh what they are worth;
        "binomial" maximises the likelihood of the correct answers given the counts.
    bounds
        Where 2e-6 ≤ g ≤ 1 holds: on a "grid" of 1,000 points, as in the published code, or
        "everywhere", by bounding the B-spline coefficients, which allows a little less.
    quadrature
        "exact" integrals in equation 8, or the "published" left sum, which misses mass at the ends.
    annotators
        n': fit the counts that n' annotators per image would have given, in expectation, images
        with fewer being left out; the default is all that each image has, different as they may be,
        but 500 at most.
    """

    components: int = 3
    starts: int = 10
    loss: Loss = "least-squares"
    bounds: Bounds = "grid"
    quadrature: Quadrature = "exact"
    annotators: int | None = None
    name: ClassVar[str] = "em-spline"

    def __post_init__(self) -> None:
        check_words(EMSpline, vars(self))
        check_sizes(self.components, self.starts, "em-spline: ")

    def __call__(
        self, replicates: Replicates, *, seed: int = 0, progress: bool = False
    ) -> Estimates:
        """Estimate every version; row 0 from random starts, the others from its optima."""
        fitted = fit_parametric(self, replicates, seed=seed, progress=progress)
        match = None
        if self.annotators is not None:
            match = AnnotatorMatch.from_replicates(replicates, self.annotators)
        return Estimates(fitted.adjusted_accuracy, match=match, always_right=fitted.always_right)


@dataclass(frozen=True, eq=False)
class ParametricFit:
    """Fit of EM + spline to B versions of a study."""

    mixtures: MixtureFit  # fitted to the study itself
    adjusted_accuracy: Float[np.ndarray, "version classifier"]  # of all versions
    curves: Float[np.ndarray, "classifier basis"]  # the study's B-spline coefficients
    # The study's adjusted accuracy of a classifier that is always right: less than 1 where the
    # fitted share of count k is not the observed one, since equation 8 compares joint shares.
    always_right: float


def fit_parametric(
    options: EMSpline, replicates: Replicates, *, seed: int = 0, progress: bool = False
) -> ParametricFit:
    """Fit the study (row 0) from random starts, then its other versions from its optima."""
    table = complete_cells(replicates, options.annotators)
    # A classifier that is always right shows the bias of equation 8: its estimate should be 1.
    study = table.rows(slice(1))
    always = np.concatenate([study.correct, study.images[1][..., None]], axis=-1)
    study = replace(study, correct=always)
    mixtures = fit_mixtures(study, components=options.components, starts=options.starts, seed=seed)
    adjusted, curves = fit_curves_given(options, mixtures, study)
    rows = [adjusted[:, :-1]]
    # Replicates start from the study's optima and not from random starts, which is faster.
    others = len(replicates) - 1
    with progress_bar(others, "fit", show=progress and others > 0) as bar:
        bar.stage("em-spline")
        for start in range(1, others + 1, _VERSIONS_PER_BLOCK):
            block = table.rows(slice(start, start + _VERSIONS_PER_BLOCK))
            refitted = refit_mixtures(mixtures, block)
            rows.append(fit_curves_given(options, refitted, block)[0])
            bar.advance(len(block.correct))
    return ParametricFit(mixtures, np.concatenate(rows), curves[0, :-1], float(adjusted[0, -1]))


def fit_curves_given(
    options: EMSpline, mixtures: MixtureFit, table: CellTable
) -> tuple[Float[np.ndarray, "version classifier"], Float[np.ndarray, "version classifier basis"]]:
    """Fit adjusted accuracies and curves given the mixtures."""
    # Imported here: JAX is loaded by the first fit.
    from bayesrep.estimators.spline import SplineCells, adjusted_accuracies, bounded_rows

    reference, replication = (
        Betas(mixtures.a[r], mixtures.b[r], mixtures.weights[r]) for r in range(2)
    )
    with own_settings():
        return adjusted_accuracies(
            reference,
            replication,
            table.images[1],
            table.correct,
            SplineCells.from_cells(table.selected, table.shown, options.quadrature),
            bounded_rows(options.bounds),
            loss=options.loss,
        )
