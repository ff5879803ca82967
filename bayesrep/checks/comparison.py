"""Which model predicts better: leave-one-out cross-validation of fits to the same study.

What is left out is one image's annotations (of each data set), or one classifier's answer on one
image of the replication. All images in a cell (k, n) have the same density, and so have all right
and all wrong answers of a classifier in a cell. So one importance sampling serves all units of a
cell, however many images there are, and the totals weigh each by its number m_i of units::

    elpd = Σ_i m_i log p(y_i | all data but one unit like i),   se² = Σ_i m_i (elpd_i − mean)²

Computed by Pareto smoothed importance sampling on arrays; ArviZ's own `loo` agrees (a test), but
its results have other names in each version and it wants one entry for each unit.

References: Vehtari, Gelman and Gabry (2017), "Practical Bayesian model evaluation using
leave-one-out cross-validation and WAIC".
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayesrep.errors import PosteriorError
from bayesrep.numerics.pareto import pareto_smooth
from bayesrep.posterior.groups import Posterior, need_group, recorded
from bayesrep.types import Floats

WORST_PARETO_K = 0.7


class LeftOut(NamedTuple):
    """Predictions of distinct units that were left out, each [U]."""

    units: Floats  # m, how many units are alike
    elpd: Floats  # log p(unit | the others)
    waic: Floats  # the same by the widely applicable information criterion
    lppd: Floats  # log p(unit | all)
    pareto_k: Floats


def psis_loo(log_density: Floats, units: Floats) -> LeftOut:
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


def left_out(posterior: Posterior) -> dict[str, LeftOut]:
    """Predictions of all units: by role of the data set, then "answers NAME" by classifier.

    Units without any image or answer are left away, so the same study gives the same units.

    Raises
    ------
    PosteriorError
        If the posterior lacks a group.
    """
    return dict(_parts(posterior))


def _parts(posterior: Posterior) -> Iterator[tuple[str, LeftOut]]:
    likelihood = need_group(posterior, "log_likelihood", "log_right", "correct")
    observed = need_group(posterior, "observed_data", "correct")
    for variable in observed.data_vars:
        if variable == "correct":
            continue
        images = observed[variable].values
        some = np.flatnonzero(images > 0)
        total = _by_draw(likelihood[variable].values)[some]
        density = total / images[some, None]
        yield str(variable).removesuffix("_images"), psis_loo(density, images[some] * 1.0)
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
        yield f"answers {name}", psis_loo(density, units)


def _by_draw(values: NDArray[Any]) -> Floats:
    """[chain, draw, unit] as [unit, S]."""
    return values.reshape(-1, values.shape[-1]).T.astype(np.float64)


def compare(posteriors: Mapping[str, Posterior]) -> pl.DataFrame:
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
    PosteriorError
        Where the fits are of different studies, data sets or groups, or of a model that has all
        classifiers' answers to an image in one likelihood.

    Notes
    -----
    With ``feedback="cut"`` the importance weights are approximate: leaving an answer out does not
    move the mixtures.
    """
    _check_same_study(posteriors)
    for name, posterior in posteriors.items():
        made = recorded(posterior)
        if not made.model.collapsed:
            raise PosteriorError(
                f"{name!r} is a fit of the {made.name} model, in which a classifier's answer "
                "cannot be left out alone; compare its agreement with the data instead "
                "(bayesrep diagnose --study)"
            )
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


def _check_same_study(posteriors: Mapping[str, Posterior]) -> None:
    if not posteriors:
        raise PosteriorError("compare needs at least one posterior")
    wanted = (
        ("statistics_digest", "studies"),
        ("study_fingerprint", "studies"),
        ("datasets", "data sets"),
        ("groups", "groups of images"),
    )
    first, *others = posteriors
    for attribute, what in wanted:
        value = _attribute(posteriors[first], attribute)
        for name in others:
            other = _attribute(posteriors[name], attribute)
            # A fit of statistics alone, which knows no fingerprint, is compared by these.
            unknown = attribute == "study_fingerprint" and "" in (value, other)
            if other != value and not unknown:
                raise PosteriorError(
                    f"{first!r} and {name!r} are fits of different {what}; only fits of the same "
                    "study, data sets and groups can be compared"
                )


def _attribute(posterior: Posterior, name: str) -> Any:
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


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text in columns; nothing in them can steer a terminal."""
    plain = [["".join(c if c.isprintable() else "?" for c in cell) for cell in r] for r in rows]
    widths = [max(len(row[column]) for row in plain) for column in range(len(plain[0]))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in plain]
    return "\n".join(line.rstrip() for line in lines)


def text(table: pl.DataFrame) -> str:
    """Rows of :func:`compare` for a terminal, with what they decide."""
    rows = [("model", "elpd", "p_loo", "difference", "counts", "answers", "k > 0.7")]
    for row in table.iter_rows(named=True):
        rows.append(
            (
                row["model"],
                f"{row['elpd']:.1f}",
                f"{row['p_loo']:.1f}",
                f"{row['difference']:.1f} ± {row['se']:.1f} (to {row['se_shared']:.1f})",
                f"{row['counts_difference']:.1f} ± {row['counts_se']:.1f}",
                f"{row['answers_difference']:.1f} ± {row['answers_se']:.1f}",
                str(row["pareto_k_high"]),
            )
        )
    return f"{aligned(rows)}\n\n{_decision(table)}"


def _decision(table: pl.DataFrame) -> str:
    names = table["model"].to_list()
    if len(names) < 2:
        return "One model only: nothing to compare it with."
    rival = table.row(1, named=True)
    lead = -rival["difference"]
    if lead < max(2 * rival["se"], 4):
        return f"{names[0]} and {rival['model']} predict equally well, as far as these data tell."
    if lead < 2 * rival["se_shared"]:
        return (
            f"{names[0]} predicts better than {rival['model']} if the classifiers' answers are "
            "independent; as they answer the same images, it may be chance."
        )
    return f"{names[0]} predicts better than {rival['model']}."
