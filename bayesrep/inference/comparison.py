"""Which model predicts better: leave-one-out cross-validation of fits to the same study.

What is left out is one image's annotations (of each data set), or one classifier's answer on one
image of the replication. All images in a cell (k, n) have the same density, and so have all right
and all wrong answers of a classifier in a cell. So one importance sampling serves all units of a
cell, however many images there are, and the totals weigh each by its number m_i of units::

    elpd = Σ_i m_i log p(y_i | all data but one unit like i),   se² = Σ_i m_i (elpd_i − mean)²

Computed by Pareto smoothed importance sampling on arrays; ArviZ's own `loo` agrees (a test), but
its results have other names in each version and it wants one entry for each unit.

References: Vehtari, Gelman and Gabry (2017), "Practical Bayesian model evaluation using
leave-one-out cross-validation and WAIC"; Vehtari et al. (2024), "Pareto smoothed importance
sampling", JMLR 25(72); Zhang and Stephens (2009), Technometrics 51, for the Pareto fit.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayesrep.errors import StudyError
from bayesrep.inference.predictive import need_group

Floats = NDArray[np.float64]

WORST_PARETO_K = 0.7
_PRIOR_SIZE = 10  # observations that the weak prior k = 0.5 is worth


def pareto_smooth(log_ratios: Floats) -> tuple[Floats, Floats]:
    """Pareto smoothed importance weights.

    Parameters
    ----------
    log_ratios
        Logarithms of raw weights [R, S]: R problems, S draws.

    Returns
    -------
    tuple
        Logarithms of weights that sum to 1 [R, S], and the Pareto shape k [R]: up to 0.7 an
        average under these weights can be trusted.
    """
    count = log_ratios.shape[1]
    weights = log_ratios - log_ratios.max(axis=1, keepdims=True)
    length = int(np.ceil(min(count / 5, 3 * np.sqrt(count))))
    shape = np.full(len(weights), -np.inf)
    if length >= 5:
        order = np.argsort(weights, axis=1)[:, -length - 1 :]
        tail = np.take_along_axis(weights, order, axis=1)
        cutoff = np.exp(tail[:, :1])
        excess = np.exp(tail[:, 1:]) - cutoff
        # Weights that are all alike have no tail to smooth.
        fitted = excess[:, -1] > 1e-12
        if fitted.any():
            k, sigma = _fit_pareto(np.maximum(excess[fitted], 1e-300))
            steps = (np.arange(length) + 0.5) / length
            quantiles = sigma[:, None] * _pareto_quantiles(steps, k[:, None])
            smooth = np.minimum(np.log(quantiles + cutoff[fitted]), 0)
            rows = np.flatnonzero(fitted)[:, None]
            weights[rows, order[fitted, 1:]] = smooth
            shape[fitted] = k
    return weights - logsumexp(weights, axis=1, keepdims=True), shape


def _pareto_quantiles(p: Floats, k: Floats) -> Floats:
    near = np.abs(k) < 1e-12
    safe = np.where(near, 1.0, k)
    return np.where(near, -np.log1p(-p), np.expm1(-safe * np.log1p(-p)) / safe)


def _fit_pareto(excess: Floats) -> tuple[Floats, Floats]:
    """Shape k and scale σ [R] of generalised Pareto distributions of sorted excesses [R, T]."""
    rows, size = excess.shape
    grid = 30 + int(np.sqrt(size))
    quartile = excess[:, int(size / 4 + 0.5) - 1]
    b = 1 - np.sqrt(grid / (np.arange(grid) + 0.5))
    b = b / (3 * np.maximum(quartile, 1e-300)[:, None]) + 1 / excess[:, -1:]  # [R, grid]
    k = np.empty((rows, grid))
    for column in range(grid):  # not [R, grid, T] at once: R may be thousands
        k[:, column] = np.log1p(-b[:, column, None] * excess).mean(axis=1)
    profile = size * (np.log(-b / k) - k - 1)
    weight = np.exp(profile - logsumexp(profile, axis=1, keepdims=True))
    best = (b * weight).sum(axis=1)
    shape = np.log1p(-best[:, None] * excess).mean(axis=1)
    sigma = -shape / best
    return (size * shape + _PRIOR_SIZE * 0.5) / (size + _PRIOR_SIZE), sigma


class LeftOut(NamedTuple):
    """Predictions of distinct units that were left out, each [U]."""

    units: Floats  # m, how many units are alike
    elpd: Floats  # log p(unit | the others)
    waic: Floats  # the same by the widely applicable information criterion
    lppd: Floats  # log p(unit | all)
    pareto_k: Floats


def leave_one_out(log_density: Floats, units: Floats) -> LeftOut:
    """Leave out one unit at a time.

    Parameters
    ----------
    log_density
        log p(unit | θ) [U, S] of distinct units at posterior draws.
    units
        m [U].
    """
    weights, shape = pareto_smooth(-log_density)
    lppd = logsumexp(log_density, axis=1) - np.log(log_density.shape[1])
    return LeftOut(
        units,
        np.asarray(logsumexp(weights + log_density, axis=1)),
        lppd - log_density.var(axis=1),
        lppd,
        shape,
    )


def left_out(posterior: Any) -> dict[str, LeftOut]:
    """Predictions of all units: by role of the data set, then "answers NAME" by classifier.

    Units without any image or answer are left away, so the same study gives the same units.

    Raises
    ------
    StudyError
        If the posterior lacks a group.
    """
    return dict(_parts(posterior))


def _parts(posterior: Any) -> Iterator[tuple[str, LeftOut]]:
    likelihood = need_group(posterior, "log_likelihood", "log_right", "correct")
    observed = need_group(posterior, "observed_data", "correct")
    for variable in observed.data_vars:
        if variable == "correct":
            continue
        images = observed[variable].values
        some = np.flatnonzero(images > 0)
        total = _by_draw(likelihood[variable].values)[some]
        density = total / images[some, None]
        yield str(variable).removesuffix("_images"), leave_one_out(density, images[some] * 1.0)
    images = observed["replication_images"].values
    log_right = likelihood["log_right"]
    for index, name in enumerate(observed["classifier"].values):
        right = observed["correct"].values[index]
        log_q = _by_draw(log_right.values[:, :, index])
        yes, no = np.flatnonzero(right > 0), np.flatnonzero(images > right)
        with np.errstate(divide="ignore"):
            log_wrong = np.log(-np.expm1(log_q[no]))
        density = np.concatenate([log_q[yes], log_wrong])
        units = np.concatenate([right[yes], (images - right)[no]]).astype(np.float64)
        yield f"answers {name}", leave_one_out(density, units)


def _by_draw(values: NDArray[Any]) -> Floats:
    """[chain, draw, unit] as [unit, S]."""
    return values.reshape(-1, values.shape[-1]).T.astype(np.float64)


def compare(posteriors: Mapping[str, Any]) -> pl.DataFrame:
    """Compare fits to the same study by leave-one-out cross-validation.

    Parameters
    ----------
    posteriors
        By a name of yours: numbers of components, curve families, feedback.

    Returns
    -------
    polars.DataFrame
        One row a fit, the best first: ``model``; ``elpd``, expected log predictive density of all
        units left out one at a time (larger is better), and ``p_loo``, the effective number of
        parameters; ``difference`` to the best fit and its ``se``, units being independent;
        ``se_shared``, the same where a classifier's and a data set's errors all go together (the
        truth is between the two: classifiers answer the same images);
        ``counts_difference``, ``answers_difference`` and their ``_se``: the parts of the
        annotations and of the answers; ``pareto_k_high``, units with k > 0.7, whose share of elpd
        is not reliable; ``waic``, the same as ``elpd`` by another formula. A difference below two
        standard errors or below 4 or so decides nothing.

    Raises
    ------
    StudyError
        Where the fits are of different studies, data sets or groups.

    Notes
    -----
    With ``feedback="cut"`` the importance weights are approximate: leaving an answer out does not
    move the mixtures.
    """
    _check_same_study(posteriors)
    parts = {name: left_out(posterior) for name, posterior in posteriors.items()}
    total = {name: _total(own.values(), "elpd") for name, own in parts.items()}
    best = max(total, key=lambda name: total[name])
    rows = [
        {
            "model": name,
            "elpd": total[name],
            "p_loo": _total(own.values(), "lppd") - total[name],
            **_differences(own, parts[best]),
            "pareto_k_high": int(
                sum(float(p.units[p.pareto_k > WORST_PARETO_K].sum()) for p in own.values())
            ),
            "waic": _total(own.values(), "waic"),
        }
        for name, own in parts.items()
    ]
    return pl.DataFrame(rows).sort("elpd", descending=True)


def _check_same_study(posteriors: Mapping[str, Any]) -> None:
    if not posteriors:
        raise StudyError("compare needs at least one posterior")
    wanted = (
        ("study_fingerprint", "studies"),
        ("datasets", "data sets"),
        ("groups", "groups of images"),
    )
    first, *others = posteriors
    for attribute, what in wanted:
        value = _attribute(posteriors[first], attribute)
        for name in others:
            if _attribute(posteriors[name], attribute) != value:
                raise StudyError(
                    f"{first!r} and {name!r} are fits of different {what}; only fits of the same "
                    "study, data sets and groups can be compared"
                )


def _attribute(posterior: Any, name: str) -> Any:
    return need_group(posterior, "posterior").attrs.get(name)


def _total(parts: Any, field: str) -> float:
    return float(sum(part.units @ getattr(part, field) for part in parts))


def _differences(own: Mapping[str, LeftOut], best: Mapping[str, LeftOut]) -> dict[str, float]:
    """Differences to the best fit with paired standard errors."""
    names = list(own)
    by_part = {name: _difference([name], own, best) for name in names}
    answers = [name for name in names if name.startswith("answers ")]
    counts = [name for name in names if name not in answers]
    facts: dict[str, float] = {}
    facts["difference"], facts["se"] = _difference(names, own, best)
    facts["se_shared"] = float(sum(error for _, error in by_part.values()))
    for label, chosen in (("counts", counts), ("answers", answers)):
        facts[f"{label}_difference"], facts[f"{label}_se"] = _difference(chosen, own, best)
    return facts


def _difference(
    names: list[str], own: Mapping[str, LeftOut], best: Mapping[str, LeftOut]
) -> tuple[float, float]:
    if not names:
        return 0.0, 0.0
    units = np.concatenate([own[name].units for name in names])
    gap = np.concatenate([own[name].elpd - best[name].elpd for name in names])
    mean = units @ gap / units.sum()
    return float(units @ gap), float(np.sqrt(units @ (gap - mean) ** 2))
