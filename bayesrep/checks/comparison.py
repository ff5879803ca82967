"""Model comparison: leave-one-out cross-validation of fits to the same study.

A unit is one image's annotations, or one classifier's answer on one image of the replication, given
those on the other images of its cell: one importance sampling serves all m_i units of a cell.

    elpd = Σ_i m_i log p(y_i | all data but one unit like i),   se² = Σ_i m_i (elpd_i − mean)²

Vehtari, Gelman and Gabry (2017), "Practical Bayesian model evaluation using leave-one-out
cross-validation and WAIC"; by Pareto smoothed importance sampling (ArviZ's `loo` agrees, a test).
"""

import itertools
from collections.abc import Iterable, Mapping
from typing import LiteralString, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayesrep.errors import PosteriorError
from bayesrep.numerics.pareto import pareto_smooth
from bayesrep.posterior.files import order_alike
from bayesrep.posterior.groups import Posterior, need_group, read_record, right_answers
from bayesrep.posterior.likelihood import decode_some, logit_codes
from bayesrep.posterior.verdict import MAX_PARETO_K
from bayesrep.types import Float


class PsisLoo(NamedTuple):
    """Leave-one-out predictions of distinct units."""

    units: Float[np.ndarray, "unit"]  # multiplicity m
    elpd: Float[np.ndarray, "unit"]  # log p(unit | the others)
    waic: Float[np.ndarray, "unit"]  # the same by the widely applicable information criterion
    lppd: Float[np.ndarray, "unit"]  # log p(unit | all)
    pareto_k: Float[np.ndarray, "unit"]


def psis_loo(
    log_density: Float[np.ndarray, "unit draw"],
    units: Float[np.ndarray, "unit"],  # multiplicity m of each distinct one
) -> PsisLoo:
    """Compute leave-one-out densities by Pareto smoothed importance sampling."""
    # Leaving a unit out weights a draw by 1 / p(unit | θ).
    weights, shape = pareto_smooth(-log_density)
    lppd = logsumexp(log_density, axis=1) - np.log(log_density.shape[1])
    return PsisLoo(
        units,
        np.asarray(logsumexp(weights + log_density, axis=1)),
        lppd - log_density.var(axis=1),
        lppd,
        shape,
    )


def leave_out_predictions(posterior: Posterior) -> dict[str, PsisLoo]:
    """Predict all units that occur: by role, then "answers NAME" by classifier."""
    posterior = order_alike(posterior)
    codes, record = logit_codes(posterior), read_record(posterior)
    likelihood = need_group(posterior, "log_density")
    observed = need_group(posterior, "observed_data", "correct")
    parts: dict[str, PsisLoo] = {}
    for role in record.roles:
        images = observed[f"{role}_images"].values
        some = np.flatnonzero(images > 0)
        density = _by_draw(likelihood[f"{role}_images"].values)[some] / images[some, None]
        parts[role] = psis_loo(density, images[some] * 1.0)
    images, answers = observed["replication_images"].values, right_answers(observed)
    for index, name in enumerate(observed["classifier"].values):
        right = answers[index]
        logit = _by_draw(decode_some(codes, index))
        yes, no = np.flatnonzero(right > 0), np.flatnonzero(images > right)
        # An answer of one kind less among those about the others.
        others = images[:, None] - 1
        log_right = record.answers.log_answers(right[yes, None] - 1, others[yes], logit[yes])[1]
        log_wrong = record.answers.log_answers(right[no, None], others[no], logit[no])[0]
        density = np.concatenate([log_right, log_wrong])
        units = np.concatenate([right[yes], (images - right)[no]]).astype(np.float64)
        parts[f"answers {name}"] = psis_loo(density, units)
    return parts


def _by_draw(values: NDArray[np.floating]) -> Float[np.ndarray, "unit draw"]:
    """Reshape an array [chain, draw, unit] to [unit, S]."""
    return values.reshape(-1, values.shape[-1]).T.astype(np.float64)


def compare_fits(posteriors: Mapping[str, Posterior]) -> pl.DataFrame:
    """Compare fits to the same study by leave-one-out cross-validation.

    Parameters
    ----------
    posteriors
        By a name of yours: numbers of components, curve families, feedback.

    Returns
    -------
    polars.DataFrame
        One row a fit, the best first: `model`; `elpd`, expected log predictive density of all units
        left out one at a time (larger is better), and `p_loo`, the effective number of parameters;
        `difference` to the best fit and its `se`, units being independent; `se_shared`, the same
        where a classifier's and a data set's errors all go together (the truth is between the two:
        classifiers answer the same images); `counts_difference`, `answers_difference` and their
        `_se`: the parts of the annotations and of the answers; `pareto_k_high`, units with k > 0.7,
        whose share of elpd is not reliable; `waic`, the same as `elpd` by another formula. A
        difference below two standard errors or below 4 or so decides nothing.

    Raises
    ------
    PosteriorError
        Where the fits are of different studies, data sets or groups.

    Notes
    -----
    With `feedback="cut"` the importance weights are approximate: leaving an answer out does not
    move the mixtures.
    """
    _check_same_study(posteriors)
    parts = {name: leave_out_predictions(posterior) for name, posterior in posteriors.items()}
    # elpd is one sum over images and answers: join the units of data sets and classifiers.
    all_units = {name: _join_parts(fit.values()) for name, fit in parts.items()}
    elpd = {name: float(units.units @ units.elpd) for name, units in all_units.items()}
    best = max(elpd, key=lambda name: elpd[name])
    rows = [
        {
            "model": name,
            "elpd": elpd[name],
            "p_loo": float(units.units @ units.lppd) - elpd[name],
            **_differences(parts[name], parts[best]),
            "pareto_k_high": int(units.units[units.pareto_k > MAX_PARETO_K].sum()),
            "waic": float(units.units @ units.waic),
        }
        for name, units in all_units.items()
    ]
    return pl.DataFrame(rows).sort("elpd", descending=True)


def _check_same_study(posteriors: Mapping[str, Posterior]) -> None:
    if not posteriors:
        raise PosteriorError("no-posterior-to-compare")
    # A difference of elpd is defined for the same units only.
    rules: Mapping[str, LiteralString] = {
        "statistics_digest": "fits-of-different-studies",
        "study_fingerprint": "fits-of-different-studies",
        "datasets": "fits-of-different-data-sets",
        "groups": "fits-of-different-groups",
    }
    facts = {name: need_group(each, "posterior").attrs for name, each in posteriors.items()}
    first, *others = facts
    for (attribute, rule), name in itertools.product(rules.items(), others):
        one, other = facts[first].get(attribute), facts[name].get(attribute)
        # A fit to statistics alone has no fingerprint: compare the statistics' digests only.
        unknown = attribute == "study_fingerprint" and "" in (one, other)
        if one != other and not unknown:
            raise PosteriorError(rule, posterior=first, other_posterior=name)


def _join_parts(parts: Iterable[PsisLoo]) -> PsisLoo:
    return PsisLoo(*map(np.concatenate, zip(*parts, strict=True)))


def _differences(fit: Mapping[str, PsisLoo], best: Mapping[str, PsisLoo]) -> dict[str, float]:
    def difference(names: list[str]) -> tuple[float, float]:
        one, other = (_join_parts(each[name] for name in names) for each in (fit, best))
        gap = one.elpd - other.elpd
        mean = one.units @ gap / one.units.sum()
        return float(one.units @ gap), float(np.sqrt(one.units @ (gap - mean) ** 2))

    answers = [name for name in fit if name.startswith("answers ")]
    counts = [name for name in fit if name not in answers]
    total, error = difference([*fit])
    facts = {"difference": total, "se": error}
    # Standard errors of dependent parts add linearly at most.
    facts["se_shared"] = float(sum(difference([name])[1] for name in fit))
    for label, chosen in (("counts", counts), ("answers", answers)):
        facts[f"{label}_difference"], facts[f"{label}_se"] = difference(chosen)
    return facts
