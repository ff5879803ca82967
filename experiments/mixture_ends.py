"""Where climbs of a mixture's likelihood ended, and what EM + spline makes of them."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom

from bayesrep.estimators.betas import LogBetas
from bayesrep.estimators.em import CellMatrices, ascend
from bayesrep.estimators.em_spline import EMSpline, fit_curves_given
from bayesrep.estimators.mixtures import CellTable, MixtureFit

Floats = NDArray[np.float64]


class Ends(NamedTuple):
    """Where climbs on both data sets ended: fields [2, S, K] and log likelihoods [2, S]."""

    mixture: LogBetas
    heights: Floats

    def choose(self, which: NDArray[np.intp]) -> "Ends":
        """Some of them, by index [2, R]."""
        fields = (np.take_along_axis(field, which[..., None], axis=1) for field in self.mixture)
        return Ends(LogBetas(*fields), np.take_along_axis(self.heights, which, axis=1))

    def best_of(self, size: int, score: Floats | None = None) -> "Ends":
        """The end with the highest score, by default the likelihood, of every ``size`` in a row."""
        ranked = (self.heights if score is None else score).reshape(2, -1, size)
        offsets = np.arange(0, ranked.shape[1] * size, size)
        return self.choose(ranked.argmax(axis=-1) + offsets)


def join(parts: Sequence[Ends]) -> Ends:
    """All ends behind each other."""
    fields = zip(*(part.mixture for part in parts), strict=True)
    return Ends(
        LogBetas(*(np.concatenate(field, axis=1) for field in fields)),
        np.concatenate([part.heights for part in parts], axis=1),
    )


def published_starts(starts: int, components: int, seed: int) -> LogBetas:
    """As the published code draws them: a and b whole numbers from 2 to 9; fields [2, S, K]."""
    rng = np.random.default_rng(seed)
    shape = (2, starts, components)
    a, b = rng.integers(2, 10, size=(2, *shape)).astype(float)
    weights = rng.random(shape)
    return LogBetas(np.log(a), np.log(b), np.log(weights / weights.sum(axis=-1, keepdims=True)))


def follow(table: CellTable, begin: LogBetas, rounds: int, *, newton: bool = False) -> Ends:
    """Climb from ``begin`` [2, S, K]."""
    starts = LogBetas(*(field[:, None] for field in begin))
    with jax.enable_x64(new_val=True):
        cells = CellMatrices.from_cells(table.selected, table.shown)
        result = ascend(starts, table.images[:, :1], cells, rounds=rounds, newton=newton)
        result = jax.tree.map(np.asarray, result)
    return Ends(LogBetas(*(field[:, 0] for field in result.mixture)), result.log_likelihood[:, 0])


def after_rounds(table: CellTable, begin: LogBetas, rounds: Sequence[int]) -> dict[str, Ends]:
    """Climbs from ``begin`` [2, S, K] after ever more rounds, and after Newton's method behind."""
    found: dict[str, Ends] = {}
    done = 0
    for total in rounds:
        found[str(total)] = follow(table, begin, total - done)
        begin, done = found[str(total)].mixture, total
    found["Newton"] = follow(table, begin, 0, newton=True)
    return found


def ends_of(fits: Sequence[MixtureFit]) -> Ends:
    """Where every start of several fits ended."""
    return join(
        [
            Ends(LogBetas(*(f[:, 0] for f in fit.optima)), fit.start_log_likelihoods[:, 0])
            for fit in fits
        ]
    )


def published_score(ends: Ends, table: CellTable) -> Floats:
    """Σ_m images_m Σ_j r_mj log BetaBinomial(k_m; n_m, a_j, b_j), r the memberships; [2, S]."""
    a, b, weights = (np.exp(field)[..., None] for field in ends.mixture)
    log_mass = betabinom.logpmf(table.selected, table.shown, a, b)  # [2, S, K, M]
    joint = weights * np.exp(log_mass)
    members = joint / joint.sum(axis=2, keepdims=True)
    return ((members * log_mass).sum(axis=2) * table.images[:, :1]).sum(axis=-1)


def adjusted_accuracies(ends: Ends, table: CellTable, options: EMSpline) -> Floats:
    """What EM + spline makes of every mixture, [S, C]."""
    count = ends.heights.shape[1]
    a, b, weights = (np.exp(field) for field in ends.mixture)
    unknown = np.zeros(ends.heights.shape, dtype=bool)
    optima = LogBetas(*(field[:, :, None] for field in ends.mixture))
    versions = MixtureFit(a, b, weights, ends.heights, unknown, optima, ends.heights[..., None])
    repeated = CellTable(
        table.selected,
        table.shown,
        np.repeat(table.images[:, :1], count, axis=1),
        np.repeat(table.correct[:1], count, axis=0),
    )
    return fit_curves_given(options, versions, repeated)[0]
