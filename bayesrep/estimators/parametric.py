"""The EM + spline estimator at work: mixtures, curves and adjusted accuracies.

Engstrom et al. (2020), section 5.3. Mixtures of betas are fitted to the counts of both data sets
(`mixtures`), then every classifier's accuracy curve g to its correct answers given the
replication's mixture (`spline`), and A = ∫ g(s) p_ref(s) ds (equation 6).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np
from numpy.typing import NDArray

from bayesrep.estimators.em_spline import EMSpline
from bayesrep.estimators.mixtures import (
    CellTable,
    MixtureFit,
    complete_cells,
    fit_mixtures,
    refit_mixtures,
)
from bayesrep.estimators.replicates import Replicates
from bayesrep.estimators.spline import Betas, Cells, adjusted_accuracies, bounded_rows
from bayesrep.numerics.splines import bsplines_in_truncated_powers
from bayesrep.progress import progress_bar

__all__ = ["ParametricFit", "fit_curves_given", "fit_parametric"]

Floats = NDArray[np.float64]

_BLOCK = 75  # versions of the study fitted by one call of the compiled programs


@dataclass(frozen=True, eq=False)
class ParametricFit:
    """What EM + spline found in B versions of a study.

    Attributes
    ----------
    mixtures : MixtureFit
        Of the study itself.
    adjusted_accuracy : float64 [B, C]
    curves : float64 [C, 7]
        B-spline coefficients of the study's own accuracy curves.
    """

    mixtures: MixtureFit
    adjusted_accuracy: Floats
    curves: Floats

    @property
    def truncated_power_coefficients(self) -> Floats:
        """The curves in the paper's basis 1, s, s², s³, (s − t)³₊, [C, 7]."""
        return self.curves @ bsplines_in_truncated_powers().T


def fit_parametric(
    options: EMSpline, replicates: Replicates, *, seed: int = 0, progress: bool = False
) -> ParametricFit:
    """Fit the study, then its other versions from the study's optima.

    Parameters
    ----------
    options
        What to fit.
    replicates
        The study (row 0) and other versions.
    seed
        Of the random starts.
    progress
        Show a bar on standard error where there are other versions.
    """
    table = complete_cells(replicates, options.annotators)
    study = table.rows(slice(1))
    mixtures = fit_mixtures(study, components=options.components, starts=options.starts, seed=seed)
    adjusted, curves = fit_curves_given(options, mixtures, study)
    rows = [adjusted]
    others = len(replicates) - 1
    with progress_bar(others, "fit", show=progress and others > 0) as bar:
        bar.stage("em-spline")
        for block, size in _blocks(table):
            refitted = refit_mixtures(mixtures, block)
            rows.append(fit_curves_given(options, refitted, block)[0][:size])
            bar.advance(size)
    return ParametricFit(mixtures, np.concatenate(rows), curves[0])


def fit_curves_given(
    options: EMSpline, mixtures: MixtureFit, table: CellTable
) -> tuple[Floats, Floats]:
    """Adjusted accuracies [B, C] and curves [B, C, 7] given the mixtures."""
    with jax.enable_x64(new_val=True):
        result = adjusted_accuracies(
            *(Betas(mixtures.a[r], mixtures.b[r], mixtures.weights[r]) for r in range(2)),
            table.images[1],
            table.correct,
            Cells.of(table.selected, table.shown, options.quadrature),
            bounded_rows(options.bounds),
            loss=options.loss,
        )
        return np.asarray(result[0]), np.asarray(result[1])


def _blocks(table: CellTable) -> Iterator[tuple[CellTable, int]]:
    """Yield all versions but the study, in blocks of one size, and how many of each block count."""
    total = len(table.correct)
    size = min(_BLOCK, total - 1)
    for start in range(1, total, max(size, 1)):
        rows = np.minimum(np.arange(start, start + size), total - 1)
        block = CellTable(table.selected, table.shown, table.images[:, rows], table.correct[rows])
        yield block, min(size, total - start)
