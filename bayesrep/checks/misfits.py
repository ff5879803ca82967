"""Findings on misfits of counts and answers, with their effect and remedies."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from bayesrep.checks.finding import (
    ALPHA,
    MAX_HARMLESS_SHIFT,
    MIN_CREDIBLE_P,
    UNTESTED,
    Finding,
    Trust,
    missing_finding,
    p_text,
)
from bayesrep.checks.predictions import check_predictions
from bayesrep.errors import PosteriorError
from bayesrep.posterior.groups import Posterior, need_group, read_record
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words
from bayesrep.types import Floats

MAX_HARMLESS_OWN_SHIFT = 1.0  # of one classifier, whose effect has a noise of about 0.5 sd
MAX_USABLE_SHIFT = 2.0
MAX_UNFILLED_SHARE = 0.05  # of images; above it, annotators were added depending on the answers


def judge_predictions(
    posterior: Posterior, words: Words = IMAGE_WORDS
) -> tuple[pl.DataFrame | None, list[Finding]]:
    """Compute the table of `check_predictions`, if possible, and judge it."""
    try:
        table = check_predictions(posterior)
    except PosteriorError:
        needed = "log likelihood and observations on cells"
        return None, [missing_finding("the model predicts counts and answers", needed)]
    adjusted = need_group(posterior, "posterior", "adjusted_accuracy")["adjusted_accuracy"].values
    observed = need_group(posterior, "observed_data", "correct")
    options = read_record(posterior).recorded_options
    # Effects matter relative to the posterior sd: one per classifier, and that of the mean.
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
    # Counts and answers are one family; the single checks judge their effects.
    p, tests = table["p_adjusted"].min(), table["p_adjusted"].count()
    value = UNTESTED if p is None else f"{p_text(float(str(p)))} ({tests} tests)"
    all_together = Finding("counts and answers fit, as one test", value, f"p >= {ALPHA}")
    return table, [all_together, *mixtures, curves]


def _judge_counts(
    row: Mapping[str, Any],
    sd: float,
    options: Mapping[str, Any],
    words: Words = IMAGE_WORDS,
    *,
    curves_fit: bool,
    ragged: bool = False,
) -> Finding:
    name, p = row["name"], row["p_adjusted"]
    check, criterion = f"mixture fits the counts of the {name}", f"adjusted p >= {ALPHA}"
    if p is None:
        why = f"too few {words.images}" if row["bins"] else "too many distinct counts"
        return Finding(check, f"{UNTESTED}: {why}", criterion)
    if p >= ALPHA:
        return Finding(check, p_text(p), criterion)
    change = _better_mixture(options)
    # Answers inform the replication's mixture too, so wrong curves distort it.
    if not curves_fit and name == "replication":
        change = (
            "First change the curves, which do not fit either and pull at this mixture "
            f'(feedback="cut" keeps them apart). {change}'
        )
    # Stopping rules leave some counts empty, which is no misfit of the mixture.
    if row["unfilled"] > MAX_UNFILLED_SHARE:
        sentence = (
            f"{words.annotators.title()} of the {name} were added depending on the answers so far: "
            f"{100 * row['unfilled']:.0f} % of its {words.images} would otherwise have counts that "
            "none has. The likelihood allows for that, but the mixture cannot be tested by such "
            "counts."
        )
        return Finding(check, UNTESTED, criterion, "yes", sentence)
    added = ""
    if ragged:
        added = (
            f"If {words.annotators} were added depending on the answers so far, such a misfit is "
            "expected and does no harm."
        )
    # A misfit that moves no accuracy is reported, and trusted unless it is extreme.
    effect, trust = row["effect"], "with care"
    matters = "How much that matters for the adjusted accuracies is not known."
    if effect is not None:
        trust = _severity(abs(effect) / sd, MAX_HARMLESS_SHIFT)
        matters = (
            f"This {'hardly matters' if trust == 'yes' else 'may matter'} for the adjusted "
            f"accuracies (about {100 * abs(effect):.2f} points of accuracy, posterior sd "
            f"{100 * sd:.2f})."
        )
    if trust == "yes" and p < MIN_CREDIBLE_P:
        trust = "with care"
        matters += " Yet it is too clear to be chance: are these counts of answers, one by one?"
    sentence = (
        f"The mixture does not fit the counts of the {name} ({p_text(p)}): {words.images} selected "
        f"by {row['worst_cell']} number {row['observed']:,.0f} where {row['expected']:,.0f} are "
        f"expected. {matters} {change}, and compare the adjusted accuracies. {added}".rstrip()
    )
    return Finding(check, p_text(p), criterion, trust, sentence)


def _better_mixture(options: Mapping[str, Any]) -> str:
    from bayesrep.models.options import LARGEST_COMPONENTS  # which imports JAX

    more = int(options.get("components", 2)) + 1
    enough = more > LARGEST_COMPONENTS
    change = "Try wider priors of the mixture" if enough else f"Try components={more}"
    shared = options.get("shared_components", True)
    return f"{change}, or shared_components=False" if shared else change


def _severity(size: float, max_harmless: float) -> Trust:
    return "no" if size > MAX_USABLE_SHIFT else "yes" if size <= max_harmless else "with care"


def _judge_answers(
    table: pl.DataFrame, sd: Floats, options: Mapping[str, Any], words: Words
) -> Finding:
    check, criterion = "curves fit the classifiers", f"adjusted p >= {ALPHA}"
    misfits = table.with_columns(sd=pl.Series(sd)).filter(pl.col("p_adjusted") < ALPHA)
    # Ties keep the order of the study, so that the sentence is reproducible.
    misfits = misfits.sort("p_adjusted", maintain_order=True)
    value = f"{len(misfits)} of {len(table)} misfit"
    if misfits.is_empty():
        return Finding(check, value, criterion)
    worst = misfits.row(0, named=True)
    names = ", ".join(misfits["name"].head(3)) + (", ..." if len(misfits) > 3 else "")
    trust, effect = "with care", "How much that matters for their adjusted accuracies is not known."
    if not misfits["effect"].null_count():
        most = float(np.max(np.abs(misfits["effect"].to_numpy()) / misfits["sd"].to_numpy()))
        trust = _severity(most, MAX_HARMLESS_OWN_SHIFT)
        effect = f"Their adjusted accuracies may be off by up to {most:.1f} posterior sd."
    which = f"curves do not fit {len(misfits)} of {len(table)} {words.classifiers} ({names})"
    if len(table) == 1:
        which = f"curve does not fit {names}"
    sentence = (
        f"The {which}: on {words.images} "
        f"selected by {worst['worst_cell']} {worst['name']} is right on "
        f"{100 * worst['observed']:.0f} % where {100 * worst['expected']:.0f} % are expected "
        f"({p_text(worst['p_adjusted'])}). {effect} {_better_curves(options)}"
    )
    return Finding(check, value, criterion, trust, sentence)


def _better_curves(options: Mapping[str, Any]) -> str:
    if options.get("monotone"):
        return "Try monotone=False: these curves seem to fall somewhere."
    if options.get("curve", "bernstein") == "bernstein":  # whose degree smooths it
        from bayesrep.models.options import JointOptions  # which imports JAX

        degree = 2 * int(options.get("degree", JointOptions.degree))
        return f'Try curve="spline", a higher degree (degree={degree}) or more terms.'
    return "Try more terms, or larger classifier_bend."
