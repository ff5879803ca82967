"""What to believe of a fit and what to change, in sentences.

Everything is computed again from the draws; what the file says of its own convergence is not
believed. Checks that a posterior lacks the groups for are named as missing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
import xarray as xr

from bayesrep.checks.agreement import agreement
from bayesrep.checks.comparison import WORST_PARETO_K, aligned
from bayesrep.checks.predictions import check_predictions
from bayesrep.checks.sensitivity import (
    CONFLICT,
    MEAN_GAP,
    NOISY,
    WEAK,
    prior_sensitivity,
)
from bayesrep.errors import PosteriorError
from bayesrep.inference.nuts import MAX_TREE_DEPTH
from bayesrep.models import MODELS
from bayesrep.models.options import LARGEST_COMPONENTS
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, find_group
from bayesrep.posterior.verdict import MAX_RHAT, MIN_ESS, diagnostics, judge
from bayesrep.studies.study import Study
from bayesrep.types import Floats

Trust = Literal["yes", "with care", "no"]

REPORTED = ("adjusted_accuracy", "bias_corrected_gap", "selection_gap")
LEAST_ESS = 100.0  # of a reported quantity: its interval's ends are worth nothing below
MANY_DIVERGENCES = 0.01  # share of the draws
LEAST_BFMI = 0.3
ALPHA = 0.05
BEARABLE = 0.25  # of a posterior sd: shifts of all classifiers that an interval can bear
BEARABLE_OWN = 1.0  # the same of one classifier, whose effect is noisy by about half an sd
RUINOUS = 2.0
RANK: Mapping[Trust, int] = {"yes": 0, "with care": 1, "no": 2}
TRUST: Mapping[Trust, str] = {
    "yes": "The adjusted accuracies can be used as they are.",
    "with care": "The adjusted accuracies can be used with care; read on.",
    "no": "Do not use these adjusted accuracies; read on.",
}


@dataclass(frozen=True)
class Finding:
    """Outcome of one check.

    Attributes
    ----------
    check
        What was looked at.
    value
        What was found, as text; "missing" where the posterior does not hold what is needed.
    wanted
        What would be fine.
    trust
        What it means for the adjusted accuracies.
    sentence
        What was found, whether it matters and what to change; empty where all is fine.
    """

    check: str
    value: str
    wanted: str
    trust: Trust
    sentence: str = ""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What to believe of a fit.

    Attributes
    ----------
    trust
        Whether to use its adjusted accuracies.
    sentences
        What is not as it should be, the worst first.
    checks
        One row a check: ``check``, ``value``, ``wanted``, ``trust``.
    predictions
        From :func:`bayesrep.checks.predictions.check_predictions`, or None.
    sensitivity
        From :func:`bayesrep.checks.sensitivity.prior_sensitivity`, or None.
    """

    trust: Trust
    sentences: tuple[str, ...]
    checks: pl.DataFrame
    predictions: pl.DataFrame | None
    sensitivity: pl.DataFrame | None


def diagnose(posterior: Posterior, study: Study | None = None) -> Diagnosis:
    """Say what to believe of a fit.

    Parameters
    ----------
    posterior
        From :func:`bayesrep.fit` or :func:`bayesrep.read_posterior`, of any method.
    study
        The study that was fitted; with it the agreement of classifiers is checked too.

    Raises
    ------
    PosteriorError
        If there are no adjusted accuracies at all, or the posterior is of another study.
    """
    group = find_group(posterior, "posterior")
    if group is None or "adjusted_accuracy" not in group:
        raise PosteriorError("this is not a posterior of bayesrep: it has no adjusted_accuracy")
    stats = find_group(posterior, "sample_stats")
    findings = (
        _check_chains(group, stats)
        if group.attrs.get("method", "nuts") == "nuts"
        else [_check_approximation(group)]
    )
    findings += [_check_advice(group)]
    predictions, told = _check_predictions(posterior, group)
    findings += told
    if study is not None and len(study.classifiers) > 1:
        findings += [_check_shared_images(Fitted(study, posterior))]
    sensitivity, told = _check_prior(posterior)
    findings += told
    ordered = sorted(findings, key=lambda finding: -RANK[finding.trust])
    return Diagnosis(
        trust=ordered[0].trust,
        sentences=tuple(f.sentence for f in ordered if f.sentence),
        checks=pl.DataFrame(
            [
                {"check": f.check, "value": f.value, "wanted": f.wanted, "trust": f.trust}
                for f in findings
            ]
        ),
        predictions=predictions,
        sensitivity=sensitivity,
    )


def _missing(check: str, needed: str) -> Finding:
    sentence = f"The posterior holds no {needed}, so this was not checked: {check}."
    return Finding(check, "missing", needed, "with care", sentence)


# The chains


def _check_chains(group: xr.Dataset, stats: xr.Dataset | None) -> list[Finding]:
    findings = [_check_agreement(group, stats), _check_stuck(group)]
    if stats is None:
        return [*findings, _missing("divergences, energy and step counts", "sample_stats")]
    steps = (("diverging", _check_divergences), ("energy", _check_energy))
    findings += [
        check(stats) if name in stats else _missing(name, f"sample_stats ({name})")
        for name, check in steps
    ]
    findings.append(
        _check_steps(stats, _thinning(group))
        if "num_steps" in stats
        else _missing("tree depth", "sample_stats (num_steps)")
    )
    return findings


def _reported(values: Mapping[str, xr.DataArray]) -> Floats:
    """Diagnostics of the reported quantities; constants have none."""
    found = np.concatenate([np.ravel(values[name].values) for name in REPORTED if name in values])
    return found[np.isfinite(found)]


def _check_agreement(group: xr.Dataset, stats: xr.Dataset | None) -> Finding:
    """R-hat and effective sizes, of the reported quantities apart from the parameters."""
    tests = diagnostics(group)
    diverging = np.zeros(1) if stats is None or "diverging" not in stats else stats["diverging"]
    verdict = judge(tests, 0, int(np.size(diverging)))
    found = _reported(tests.rhat)
    sizes = np.concatenate([_reported(tests.ess_bulk), _reported(tests.ess_tail)])
    wanted = f"<= {MAX_RHAT}, >= {MIN_ESS:.0f}"
    check = "chains agree on the adjusted accuracies"
    if not len(found) or not len(sizes):
        sentence = (
            "With one chain nothing shows whether another would have found the same adjusted "
            "accuracies. Fit with chains=4."
        )
        return Finding(check, "one chain", wanted, "with care", sentence)
    rhat = float(found.max())
    value = f"R-hat {rhat:.3f}, ESS {sizes.min():.0f}"
    if rhat > MAX_RHAT or sizes.min() < LEAST_ESS:
        sentence = f"{verdict.sentence} This concerns the adjusted accuracies themselves."
        return Finding(check, value, wanted, "no", sentence)
    if sizes.min() < MIN_ESS:
        sentence = (
            f"{verdict.sentence} The chains agree on the adjusted accuracies (R-hat {rhat:.3f}), "
            "but the ends of their intervals are not settled."
        )
        return Finding(check, value, wanted, "with care", sentence)
    if not verdict.converged:
        sentence = (
            f"{verdict.sentence} The adjusted accuracies themselves are settled ({value}): use "
            "them, not the parameters named."
        )
        return Finding(check, value, wanted, "with care", sentence)
    return Finding(check, value, wanted, "yes")


def _check_divergences(stats: xr.Dataset) -> Finding:
    diverging = stats["diverging"].values
    count, total = int(diverging.sum()), diverging.size
    value, check = f"{count} of {total}", "divergent draws"
    if not count:
        return Finding(check, value, "0", "yes")
    sentence = (
        f"{count} of {total} draws diverged: the sampler left out a sharply curved part of the "
        "posterior, and intervals may be too narrow. Fit with more warmup, or with fewer mixture "
        "components."
    )
    trust = "no" if count > MANY_DIVERGENCES * total else "with care"
    return Finding(check, value, "0", trust, sentence)


def energy_fraction(energy: Floats) -> Floats:
    """E-BFMI [chain] of energies [chain, draw] (Betancourt 2016): 1 is good, below 0.3 bad."""
    spread = np.square(energy - energy.mean(axis=1, keepdims=True)).sum(axis=1)
    return np.square(np.diff(energy, axis=1)).sum(axis=1) / np.maximum(spread, 1e-300)


def _check_energy(stats: xr.Dataset) -> Finding:
    fraction = energy_fraction(stats["energy"].values)
    worst, check = float(fraction.min()), "energy (E-BFMI)"
    value, wanted = f"{worst:.2f}", f">= {LEAST_BFMI}"
    if worst >= LEAST_BFMI:
        return Finding(check, value, wanted, "yes")
    sentence = (
        f"Chain {int(fraction.argmin())} explores the tails slowly (E-BFMI {worst:.2f}): intervals "
        "may be too narrow. Fit with more warmup and draws; if that does not help, with fewer "
        "mixture components."
    )
    return Finding(check, value, wanted, "with care", sentence)


def _thinning(group: xr.Dataset) -> int:
    try:
        return int(json.loads(str(group.attrs["schedule"]))["thinning"])
    except (KeyError, TypeError, ValueError):
        return 1


def _check_steps(stats: xr.Dataset, thinning: int) -> Finding:
    """Steps are summed over the transitions of a kept draw, so a single long one may hide."""
    limit = 2**MAX_TREE_DEPTH - 1
    average = stats["num_steps"].values / thinning
    share, check = float((average > limit / 2).mean()), "steps per transition"
    value, wanted = f"{average.mean():.0f} (limit {limit:,})", f"< {limit // 2}"
    if share <= 0.01:
        return Finding(check, value, wanted, "yes")
    sentence = (
        f"In {100 * share:.0f} % of the draws the sampler ran into its limit of {limit:,} steps: "
        "draws are strongly dependent and the fit is slow. Fit with more warmup; then with fewer "
        "components or terms."
    )
    return Finding(check, value, wanted, "with care", sentence)


def stuck_chains(draws: Floats) -> list[int]:
    """Chains of draws [chain, draw, Q] that stand still or lie apart from the others.

    A chain stands still if half of its draws repeat the one before, and lies apart if for some
    quantity its mean is more than five standard deviations (of the others' median) from the median
    of the means.
    """
    still = (np.diff(draws, axis=1) == 0).all(axis=2).mean(axis=1) > 0.5
    means = draws.mean(axis=1)
    sd = np.maximum(np.median(draws.std(axis=1), axis=0), 1e-12)
    apart = (np.abs(means - np.median(means, axis=0)) > 5 * sd).any(axis=1)
    return [int(chain) for chain in np.flatnonzero(still | apart)]


def _check_stuck(group: xr.Dataset) -> Finding:
    stuck = stuck_chains(group["adjusted_accuracy"].values)
    check = "chains that stand still or apart"
    if not stuck:
        return Finding(check, "0", "0", "yes")
    chains = ", ".join(str(chain) for chain in stuck)
    sentence = (
        f"Chain{'s' if len(stuck) > 1 else ''} {chains} stood still or found another mode than "
        "the others: no interval is valid. Fit with another seed and more warmup; if it happens "
        "again, with fewer mixture components."
    )
    return Finding(check, chains, "0", "no", sentence)


# Approximations


def _check_approximation(group: xr.Dataset) -> Finding:
    """Pareto k of the importance weights of draws that no chain made."""
    method = str(group.attrs["method"])
    check = f"Pareto k of the {method} approximation"
    wanted = f"<= {WORST_PARETO_K}"
    if "pareto_k" not in group.attrs:
        return _missing(check, "attribute pareto_k")
    k = float(group.attrs["pareto_k"])
    if k <= WORST_PARETO_K:
        return Finding(check, f"{k:.2f}", wanted, "yes")
    # In many dimensions k may be large where every single quantity is well approximated.
    sentence = (
        f"The {method} approximation is not close to the posterior in every direction (Pareto k "
        f"{k:.2f}, at most {WORST_PARETO_K} wanted): adjusted accuracies are good for a quick look "
        'only, and their intervals may be too narrow. Confirm what matters with method="nuts".'
    )
    return Finding(check, f"{k:.2f}", wanted, "with care", sentence)


def _check_advice(group: xr.Dataset) -> Finding:
    advice = str(group.attrs.get("advice", ""))
    check = "annotators identify the mixtures"
    if not advice:
        return Finding(check, "yes", "yes", "yes")
    sentence = f"{advice} More annotators per image would help; more images or draws would not."
    return Finding(check, "no", "yes", "with care", sentence)


# Predictions


def _check_predictions(
    posterior: Posterior, group: xr.Dataset
) -> tuple[pl.DataFrame | None, list[Finding]]:
    try:
        table = check_predictions(posterior)
    except PosteriorError:
        needed = "log likelihood and observations on cells"
        return None, [_missing("the model predicts counts and answers", needed)]
    draws = group["adjusted_accuracy"].values
    sd = np.maximum(draws.std(axis=(0, 1)), 1e-12)
    counts = table.filter(pl.col("kind") == "counts")
    answers = table.filter(pl.col("kind") == "answers")
    options = _options(group)
    typical = max(float(draws.mean(axis=2).std()), 1e-12)
    curves = _judge_answers(answers, sd, options)
    mixtures = [
        _judge_counts(row, typical, options, curves_fit=not curves.sentence)
        for row in counts.iter_rows(named=True)
    ]
    return table, [*mixtures, curves]


def _check_shared_images(fitted: Fitted) -> Finding:
    """Whether classifiers are right and wrong together as often as the model expects."""
    found = agreement(fitted).summary.row(0, named=True)
    observed, expected = (f"{100 * found[name]:.1f} %" for name in ("observed", "expected"))
    check = "classifiers agree as predicted"
    value, wanted = f"{observed}, {expected} expected", "p >= 0.05"
    if found["p"] >= ALPHA:
        return Finding(check, value, wanted, "yes")
    sentence = (
        f"Two classifiers are right or wrong together on {observed} of the images, where the model "
        f"expects {expected}: "
    )
    made = fitted.recorded
    if made.model.collapsed:
        sentence += (
            f"they share what makes an image hard, which the {made.name} model leaves out. Every "
            "single classifier's interval holds all the same, and summarize's means, slopes, "
            f"differences and ranks allow for it; {_together()} has it in the model."
        )
    else:
        sentence += "one difficulty of images is not enough; try factors=2."
    trust: Trust = "yes" if made.model.collapsed else "with care"
    return Finding(check, value, wanted, trust, sentence)


def _together() -> str:
    """The models that have all classifiers' answers to an image in one likelihood."""
    return " or ".join(f'model="{name}"' for name, model in MODELS.items() if not model.collapsed)


def _options(group: xr.Dataset) -> dict[str, Any]:
    try:
        options = json.loads(str(group.attrs["options"]))
    except (KeyError, ValueError):
        return {}
    return options if isinstance(options, dict) else {}


def _judge_counts(
    row: Mapping[str, Any], sd: float, options: Mapping[str, Any], *, curves_fit: bool
) -> Finding:
    name, p = row["name"], row["p_adjusted"]
    check, wanted = f"mixture fits the counts of the {name}", f"p >= {ALPHA}"
    if p is None:
        return Finding(check, "too few images", wanted, "yes")
    if p >= ALPHA:
        return Finding(check, f"{_p(p)}", wanted, "yes")
    change = _better_mixture(options)
    if not curves_fit and name == "replication":
        change = (
            "First change the curves, which do not fit either and pull at this mixture "
            f'(feedback="cut" keeps them apart). {change}'
        )
    size = None if row["effect"] is None else abs(row["effect"]) / sd
    trust = _severity(size, BEARABLE)
    sentence = (
        f"The mixture does not fit the counts of the {name} ({_p(p)}): images selected by "
        f"{row['worst_cell']} number {row['observed']:,.0f} where {row['expected']:,.0f} are "
        "expected. "
        f"{_effect(row['effect'], sd, large=trust != 'yes')} {change}, and compare the adjusted "
        "accuracies."
    )
    return Finding(check, f"{_p(p)}", wanted, trust, sentence)


def _better_mixture(options: Mapping[str, Any]) -> str:
    more = int(options.get("components", 2)) + 1
    change = (
        f"Try components={more}"
        if more <= LARGEST_COMPONENTS
        else "Try wider priors of the mixture"
    )
    return (
        f"{change}, or shared_components=False" if options.get("shared_components", 1) else change
    )


def _p(p: float) -> str:
    return f"p = {p:.2g}" if p >= 1e-6 else "p < 1e-6"


def _severity(size: float | None, bearable: float) -> Trust:
    """What a shift of ``size`` posterior standard deviations means; None: not known."""
    if size is not None and size > RUINOUS:
        return "no"
    return "yes" if size is not None and size <= bearable else "with care"


def _effect(effect: float | None, sd: float, *, large: bool) -> str:
    if effect is None:
        return "How much that matters for the adjusted accuracies is not known."
    size = f"about {100 * abs(effect):.2f} points of accuracy, posterior sd {100 * sd:.2f}"
    matters = "This may matter" if large else "This hardly matters"
    return f"{matters} for the adjusted accuracies ({size})."


def _judge_answers(table: pl.DataFrame, sd: Floats, options: Mapping[str, Any]) -> Finding:
    check, wanted = "curves fit the classifiers", f"adjusted p >= {ALPHA}"
    misfits = [
        (row, own)
        for row, own in zip(table.iter_rows(named=True), sd, strict=True)
        if row["p_adjusted"] is not None and row["p_adjusted"] < ALPHA
    ]
    value = f"{len(misfits)} of {len(table)} misfit"
    if not misfits:
        return Finding(check, value, wanted, "yes")
    misfits.sort(key=lambda pair: pair[0]["p_adjusted"])
    worst = misfits[0][0]
    names = ", ".join(row["name"] for row, _ in misfits[:3]) + (", ..." if misfits[3:] else "")
    unknown = any(row["effect"] is None for row, _ in misfits)
    known = [abs(row["effect"]) / own for row, own in misfits if row["effect"] is not None]
    effect = (
        "How much that matters for their adjusted accuracies is not known."
        if unknown
        else f"Their adjusted accuracies may be off by up to {max(known):.1f} posterior sd."
    )
    sentence = (
        f"The curves do not fit {len(misfits)} of {len(table)} classifiers ({names}): on images "
        f"selected by {worst['worst_cell']} {worst['name']} is right on "
        f"{100 * worst['observed']:.0f} % where {100 * worst['expected']:.0f} % are expected "
        f"({_p(worst['p_adjusted'])}). {effect} {_better_curves(options)}"
    )
    trust = _severity(None if unknown else max(known), BEARABLE_OWN)
    return Finding(check, value, wanted, trust, sentence)


def _better_curves(options: Mapping[str, Any]) -> str:
    if options.get("monotone"):
        return "Try monotone=False: these curves seem to fall somewhere."
    if options.get("curve", "bernstein") == "bernstein":
        degree = 2 * int(options.get("degree", 24))
        return f'Try curve="spline", a higher degree (degree={degree}) or more terms.'
    return "Try more terms, or larger classifier_bend."


# The prior


def _check_prior(posterior: Posterior) -> tuple[pl.DataFrame | None, list[Finding]]:
    check, wanted = "prior sensitivity", "index < 0.05"
    if posterior["posterior"].attrs.get("feedback") == "cut":
        sentence = (
            'How much the prior matters is not known: with feedback="cut" no joint density exists '
            "that could be scaled. To know, fit under another prior."
        )
        return None, [Finding(check, "not available", wanted, "yes", sentence)]
    try:
        table = prior_sensitivity(posterior)
    except PosteriorError as error:
        reason = str(error)
        sentence = f"{reason[0].upper()}{reason[1:]}. How much the prior matters is not known."
        return None, [Finding(check, "missing", wanted, "with care", sentence)]
    mean = table.row(0, named=True)
    value = f"{mean['prior']:.2f} (noise {mean['noise']:.2f})"
    moved = table.filter(pl.col("reading").is_in([CONFLICT, WEAK]))
    if moved.is_empty():
        sentence = ""
        if mean["reading"] == NOISY:
            sentence = (
                "Whether the prior matters cannot be told from these draws (noise of the index "
                f"{mean['noise']:.2f}). If it matters to you, fit with more draws."
            )
        return table, [Finding(check, value, wanted, "yes", sentence)]
    return table, [Finding(check, value, wanted, "with care", _moved(table, moved))]


def _moved(table: pl.DataFrame, moved: pl.DataFrame) -> str:
    mean = table.row(0, named=True)
    most = moved.sort(pl.col("shift").abs(), descending=True).row(0, named=True)
    number = len(moved.filter(pl.col("quantity") != MEAN_GAP))
    why = (
        "prior and data pull in different directions"
        if CONFLICT in moved["reading"].to_list()
        else "the data say little about it"
    )
    return (
        f"The prior matters for {number} of {len(table) - 1} adjusted accuracies ({why}): doubling "
        f"its power moves the mean gap by {_shift(mean)} posterior sd, and {most['quantity']} by "
        f"{_shift(most)}. Report results under another prior beside these, such as wider "
        "first_location, log_step and log_concentration, or get more annotators per image."
    )


def _shift(row: Mapping[str, Any]) -> str:
    return f"{row['shift']:+.2f} ± {row['shift_se']:.2f}"


def text(diagnosis: Diagnosis) -> str:
    """The diagnosis for a terminal: the verdict, sentences, and the table of checks."""
    verdict = f"Trust: {diagnosis.trust}. {TRUST[diagnosis.trust]}"
    sentences = [aligned([[f"- {sentence}"]]) for sentence in diagnosis.sentences]
    table = aligned([("check", "found", "wanted", "trust"), *diagnosis.checks.iter_rows()])
    return "\n".join([verdict, "", *sentences, *[""] * bool(sentences), table])
