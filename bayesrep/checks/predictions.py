"""Does the fitted model look like the data? Posterior predictive checks, and what they mean.

The discrepancies and their p-values are those of `bayesrep.checks.discrepancy`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.special import betaln, expit

from bayesrep.checks.discrepancy import Fit, Strata, check_answers, check_counts, strata_of
from bayesrep.checks.finding import (
    ALPHA,
    BEARABLE,
    UNTESTED,
    Finding,
    Trust,
    family_wise,
    missing_finding,
    p_text,
)
from bayesrep.errors import PosteriorError
from bayesrep.posterior.groups import (
    CellNames,
    Posterior,
    cells_along,
    need_group,
    read_record,
    right_answers,
    thinned_draws,
)
from bayesrep.posterior.likelihood import decode_some, logit_codes
from bayesrep.studies.words import IMAGES, Words
from bayesrep.types import Float, Floats, Int

SMALLEST = 1e-300

DRAWS = 200
LARGEST_GRID = 20_000  # possible cells of a data set, up to which its counts are tested
MIXTURES = 20  # draws of the mixture, for cells without images
BEARABLE_OWN = 1.0  # as BEARABLE, of one classifier, whose effect is noisy by about half an sd
RUINOUS = 2.0
CLEARLY = 10.0  # expected images of a cell that chance does not leave empty: P = e⁻¹⁰
STOPPED = 0.05  # of all images, expected in such cells: who annotates next depended on the answers
NO_FIT = Fit(np.nan, 0, np.nan, np.zeros(0, dtype=np.int64), np.nan, np.nan)
SCHEMA = {
    "kind": pl.String,
    "name": pl.String,
    "discrepancy": pl.Float64,
    "bins": pl.Int64,
    "p": pl.Float64,
    "p_adjusted": pl.Float64,
    "worst_cell": pl.String,
    "observed": pl.Float64,
    "expected": pl.Float64,
    "effect": pl.Float64,
    "unfilled": pl.Float64,
}


def check_predictions(posterior: Posterior, *, draws: int = DRAWS) -> pl.DataFrame:
    """Compare the data with the model, data set by data set and classifier by classifier.

    Parameters
    ----------
    posterior
        From `bayesrep.fit`.
    draws
        Posterior draws to use, at most.

    Returns
    -------
    polars.DataFrame
        One row for the counts of each data set and for the answers of each classifier: `kind`
        ("counts" or "answers"), `name`, `discrepancy` (posterior mean of X²), `bins`, `p` (nearly
        uniform where the model holds), `p_adjusted` (see `family_wise`: in 95 % of the fits of a
        model that holds none is below 0.05),
        `worst_cell` with what is `observed` and `expected` there (images, or share of right
        answers), and `effect`: the difference of observed and fitted cells, weighed as an accuracy.
        For a data set Σ_k (observed − fitted share) · P(correct | k, n), averaged over classifiers;
        for a classifier Σ_k (reference's share) · (observed − fitted accuracy). Both are rough
        guides to what the misfit can do to an adjusted accuracy; null where the reference's cells
        are not the replication's. `unfilled`, of counts: the share of images expected at counts of
        fewer annotators than the most that no image has and chance does not leave empty. There is
        hardly any but where annotators were added until the answer was clear.

    Raises
    ------
    PosteriorError
        If the posterior lacks a group.

    Notes
    -----
    With `feedback="cut"` the draws are not those of a joint posterior and the answers' p-values
    are approximate.
    """
    observed = need_group(posterior, "observed_data", "correct")
    codes, likelihood = logit_codes(posterior), need_group(posterior, "log_density")
    codes = codes._replace(code=thinned_draws(likelihood["logit_right"], draws)[None])
    roles = read_record(posterior).roles
    cells = {role: cells_along(observed, role) for role in roles}
    alike = {role for role in roles if _are_equal(cells[role], cells["replication"])}
    images = {role: observed[f"{role}_images"].values for role in roles}
    fitted_shares: dict[str, Floats] = {}
    rows: list[dict[str, Any]] = []
    for which, role in enumerate(roles):
        log_mass = thinned_draws(likelihood[f"{role}_images"], draws)
        strata, mass = _fitted_masses(posterior, which, cells[role], images[role], log_mass)
        totals = np.bincount(strata.stratum, images[role])[strata.stratum]
        fitted_shares[role] = mass.mean(axis=0) * totals / images[role].sum()
        rows.append(_counts_row(posterior, which, role, cells[role], images[role], log_mass))
    right, shown = right_answers(observed), images["replication"]
    position = strata_of(cells["replication"]).position
    mean_accuracy = np.zeros(len(position))
    for index, name in enumerate(observed["classifier"].values):  # alone: there may be thousands
        accuracy = expit(decode_some(codes, index)[0].astype(np.float64))
        fit = check_answers(right[index], shown, accuracy, position)
        row = _row("answers", str(name), fit, cells["replication"])
        fitted = accuracy.mean(axis=0)
        mean_accuracy += fitted / len(right)
        if "reference" in alike:
            gap = np.where(shown > 0, right[index] / np.maximum(shown, 1) - fitted, 0.0)
            row["effect"] = float(fitted_shares["reference"] @ gap)
        rows.append(row)
    for row, role in zip(rows, roles, strict=False):
        if role in alike:
            shares = images[role] / images[role].sum()
            row["effect"] = float((shares - fitted_shares[role]) @ mean_accuracy)
    tested = [row for row in rows if np.isfinite(row["p"])]
    adjusted = family_wise([row["p"] for row in tested], [row["kind"] for row in tested])
    for row, value in zip(tested, adjusted, strict=True):
        row["p_adjusted"] = float(value)
    return pl.DataFrame(rows, schema=SCHEMA).fill_nan(None)


def _fitted_masses(
    posterior: Posterior,
    which: int,
    cells: CellNames,
    images: Int[np.ndarray, "cell"],
    log_likelihood: Float[np.ndarray, "draw cell"],
) -> tuple[Strata, Float[np.ndarray, "draw cell"]]:
    """The strata of cells, and P(k | n) of each at every draw."""
    strata = strata_of(cells)
    likely = _count_probability(posterior, which, cells)
    return strata, _masses(log_likelihood, images, strata.stratum, likely)


def _counts_row(
    posterior: Posterior,
    which: int,
    role: str,
    cells: CellNames,
    images: Int[np.ndarray, "cell"],
    log_mass: Float[np.ndarray, "draw cell"],
) -> dict[str, Any]:
    """The test of one data set's counts, on all cells that there can be."""
    if (completed := _complete(cells)) is None:
        return _row("counts", role, NO_FIT, cells)
    every, place = completed
    counted = np.zeros(len(every.shown), dtype=np.int64)
    counted[place] = images
    on_all = np.zeros((len(log_mass), len(counted)))
    on_all[:, place] = log_mass
    strata, mass = _fitted_masses(posterior, which, every, counted, on_all)
    expected = np.bincount(strata.stratum, counted)[strata.stratum] * mass.mean(axis=0)
    empty = (counted == 0) & (expected >= CLEARLY) & (every.shown < every.shown.max())
    row = _row("counts", role, check_counts(counted, mass, strata), every)
    return {**row, "unfilled": float(expected[empty].sum() / counted.sum())}


def _complete(cells: CellNames) -> tuple[CellNames, Int[np.ndarray, "cell"]] | None:
    """All k of every n of every group, if they are not too many, and where the cells are there."""
    strata = np.stack([np.unique(cells.group, return_inverse=True)[1], cells.shown])
    kinds, first, stratum = np.unique(strata, axis=1, return_index=True, return_inverse=True)
    sizes = kinds[1] + 1
    if sizes.sum() > LARGEST_GRID:
        return None
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    every = CellNames(
        np.repeat(cells.group[first], sizes),
        np.arange(sizes.sum()) - np.repeat(starts, sizes),
        np.repeat(kinds[1], sizes),
    )
    return every, starts[stratum.ravel()] + cells.selected


def _are_equal(one: CellNames, other: CellNames) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def _masses(
    log_likelihood: Float[np.ndarray, "draw cell"],
    images: Int[np.ndarray, "cell"],
    stratum: Int[np.ndarray, "cell"],
    likely: Float[np.ndarray, "cell"],
) -> Float[np.ndarray, "draw cell"]:
    """P(k | n) from images · log P.

    It is not known of single cells without images; they share what the others leave, as `likely`
    as they are.
    """
    some = images > 0
    mass = np.zeros(log_likelihood.shape)
    mass[:, some] = np.exp(log_likelihood[:, some] / images[some])
    for number in range(int(stratum.max()) + 1):
        empty = ~some & (stratum == number)
        if empty.any():
            left = 1 - mass[:, some & (stratum == number)].sum(axis=1, keepdims=True)
            weight = likely[empty] / max(likely[empty].sum(), SMALLEST)  # 0 where no count is kept
            mass[:, empty] = np.clip(left, 0, None) * weight
    return mass


def _count_probability(
    posterior: Posterior, which: int, cells: CellNames
) -> Float[np.ndarray, "cell"]:
    """P(k | n) by the mixture of a data set, for independent answers; averaged over draws.

    Up to a factor for each n, where the counts selected the images.
    """
    made = read_record(posterior)
    group = need_group(
        posterior, "posterior", "component_mean", "component_concentration", "component_weight"
    )
    mean, total, weight = (
        thinned_draws(group[f"component_{name}"], MIXTURES)[:, which, :, None]
        for name in ("mean", "concentration", "weight")
    )
    k, n, a, b = cells.selected, cells.shown, mean * total, (1 - mean) * total
    log_mass = betaln(a + k, b + n - k) - betaln(a, b)  # [draw, component, cell]
    choices = -np.log1p(n) - betaln(n - k + 1, k + 1)
    likely = np.exp(choices) * (weight * np.exp(log_mass)).sum(axis=1).mean(axis=0)
    rule = made.selections.get(made.roles[which])
    return likely if rule is None else likely * rule.probability(k, n)


def _row(kind: str, name: str, fit: Fit, cells: CellNames) -> dict[str, Any]:
    facts = fit._asdict()
    return {"kind": kind, "name": name, "worst_cell": bin_name(cells, facts.pop("worst")), **facts}


def bin_name(cells: CellNames, members: Sequence[int] | Int[np.ndarray, "member"]) -> str:
    """Readable name of merged cells: "3/36", "0/36 to 5/36" or "0 % to 14 % selected"."""
    if not len(members):
        return "cells without images"
    chosen = list(members)
    group, selected, shown = cells.group[chosen], cells.selected[chosen], cells.shown[chosen]
    frequency = selected / shown
    ends = int(np.argmin(frequency)), len(frequency) - 1 - int(np.argmax(frequency[::-1]))
    if len(set(shown.tolist())) > 1:
        several = " selected"
        low, high = (f"{100 * frequency[i]:.0f} %" for i in ends)
    else:
        several = ""
        low, high = (f"{selected[i]}/{shown[i]}" for i in ends)
    name = (f"{low} to {high}" if low != high else low) + several
    return f"{group[0]}: {name}" if len(set(group.tolist())) == 1 and group[0] else name


def judge_predictions(
    posterior: Posterior, words: Words = IMAGES
) -> tuple[pl.DataFrame | None, list[Finding]]:
    """The table of `check_predictions`, where it can be made, and what it means."""
    try:
        table = check_predictions(posterior)
    except PosteriorError:
        needed = "log likelihood and observations on cells"
        return None, [missing_finding("the model predicts counts and answers", needed)]
    adjusted = need_group(posterior, "posterior", "adjusted_accuracy")["adjusted_accuracy"].values
    observed = need_group(posterior, "observed_data", "correct")
    options = read_record(posterior).given
    sd = np.maximum(adjusted.std(axis=(0, 1)), 1e-12)
    curves = _judge_answers(table.filter(kind="answers"), sd, options, words)
    typical = max(float(adjusted.mean(axis=2).std()), 1e-12)
    mixtures = [
        _judge_counts(
            row,
            typical,
            options,
            words,
            curves_fit=not curves.sentence,
            ragged=len(np.unique(observed[f"{row['name']}_shown"].values)) > 1,
        )
        for row in table.filter(kind="counts").iter_rows(named=True)
    ]
    return table, [_judge_all(table), *mixtures, curves]


def _judge_all(table: pl.DataFrame) -> Finding:
    """Counts and answers as one test; what a misfit means, the single checks say."""
    check, wanted = "counts and answers fit, as one test", f"p >= {ALPHA}"
    p, tests = table["p_adjusted"].min(), table["p_adjusted"].count()
    value = UNTESTED if p is None else f"{p_text(float(str(p)))} ({tests} tests)"
    return Finding(check, value, wanted)


def _judge_counts(
    row: Mapping[str, Any],
    sd: float,
    options: Mapping[str, Any],
    words: Words = IMAGES,
    *,
    curves_fit: bool,
    ragged: bool = False,
) -> Finding:
    name, p = row["name"], row["p_adjusted"]
    check, wanted = f"mixture fits the counts of the {name}", f"adjusted p >= {ALPHA}"
    if p is None:
        why = f"too few {words.images}" if row["bins"] else "too many distinct counts"
        return Finding(check, f"{UNTESTED}: {why}", wanted)
    if p >= ALPHA:
        return Finding(check, p_text(p), wanted)
    change = _better_mixture(options)
    if not curves_fit and name == "replication":
        change = (
            "First change the curves, which do not fit either and pull at this mixture "
            f'(feedback="cut" keeps them apart). {change}'
        )
    # Counts that stopping rules leave empty are no sign of a wrong mixture.
    if row["unfilled"] > STOPPED:
        sentence = (
            f"{words.annotators.title()} of the {name} were added depending on the answers so far: "
            f"{100 * row['unfilled']:.0f} % of its {words.images} would otherwise have counts that "
            "none has. The likelihood allows for that, but the mixture cannot be tested by such "
            "counts."
        )
        return Finding(check, UNTESTED, wanted, "yes", sentence)
    added = ""
    if ragged:
        added = (
            f"If {words.annotators} were added depending on the answers so far, such a misfit is "
            "expected and does no harm."
        )
    # A misfit that moves no accuracy is told, and trusted.
    effect, trust = row["effect"], "with care"
    matters = "How much that matters for the adjusted accuracies is not known."
    if effect is not None:
        trust = _severity(abs(effect) / sd, BEARABLE)
        matters = (
            f"This {'hardly matters' if trust == 'yes' else 'may matter'} for the adjusted "
            f"accuracies (about {100 * abs(effect):.2f} points of accuracy, posterior sd "
            f"{100 * sd:.2f})."
        )
    sentence = (
        f"The mixture does not fit the counts of the {name} ({p_text(p)}): {words.images} selected "
        f"by {row['worst_cell']} number {row['observed']:,.0f} where {row['expected']:,.0f} are "
        f"expected. {matters} {change}, and compare the adjusted accuracies. {added}".rstrip()
    )
    return Finding(check, p_text(p), wanted, trust, sentence)


def _better_mixture(options: Mapping[str, Any]) -> str:
    from bayesrep.models.options import LARGEST_COMPONENTS  # which imports JAX

    more = int(options.get("components", 2)) + 1
    enough = more > LARGEST_COMPONENTS
    change = "Try wider priors of the mixture" if enough else f"Try components={more}"
    shared = options.get("shared_components", True)
    return f"{change}, or shared_components=False" if shared else change


def _severity(size: float, bearable: float) -> Trust:
    """What a shift of that many posterior standard deviations means."""
    return "no" if size > RUINOUS else "yes" if size <= bearable else "with care"


def _judge_answers(
    table: pl.DataFrame, sd: Floats, options: Mapping[str, Any], words: Words
) -> Finding:
    check, wanted = "curves fit the classifiers", f"adjusted p >= {ALPHA}"
    misfits = table.with_columns(sd=pl.Series(sd)).filter(pl.col("p_adjusted") < ALPHA)
    misfits = misfits.sort("p_adjusted", maintain_order=True)
    value = f"{len(misfits)} of {len(table)} misfit"
    if misfits.is_empty():
        return Finding(check, value, wanted)
    worst = misfits.row(0, named=True)
    names = ", ".join(misfits["name"].head(3)) + (", ..." if len(misfits) > 3 else "")
    trust, effect = "with care", "How much that matters for their adjusted accuracies is not known."
    if not misfits["effect"].null_count():
        most = float(np.max(np.abs(misfits["effect"].to_numpy()) / misfits["sd"].to_numpy()))
        trust = _severity(most, BEARABLE_OWN)
        effect = f"Their adjusted accuracies may be off by up to {most:.1f} posterior sd."
    sentence = (
        f"{_which_curves(len(misfits), len(table), names, words)}: on {words.images} "
        f"selected by {worst['worst_cell']} {worst['name']} is right on "
        f"{100 * worst['observed']:.0f} % where {100 * worst['expected']:.0f} % are expected "
        f"({p_text(worst['p_adjusted'])}). {effect} {_better_curves(options)}"
    )
    return Finding(check, value, wanted, trust, sentence)


def _which_curves(misfits: int, classifiers: int, names: str, words: Words) -> str:
    if classifiers == 1:
        return f"The curve does not fit {names}"
    return f"The curves do not fit {misfits} of {classifiers} {words.classifiers} ({names})"


def _better_curves(options: Mapping[str, Any]) -> str:
    if options.get("monotone"):
        return "Try monotone=False: these curves seem to fall somewhere."
    if options.get("curve", "bernstein") == "bernstein":
        from bayesrep.models.options import JointOptions  # which imports JAX

        degree = 2 * int(options.get("degree", JointOptions.degree))
        return f'Try curve="spline", a higher degree (degree={degree}) or more terms.'
    return "Try more terms, or larger classifier_bend."
