"""Sensitivity to the crowd: variance over known workers, or over assumed crowds."""

import numpy as np

from bayesrep.checks.finding import Finding
from bayesrep.numerics.estimands import Z_975
from bayesrep.posterior.fitted import Fitted
from bayesrep.studies.study import Study

MIN_SD_RATIO = 1.1
"""Smallest reported ratio of the mean adjusted accuracy's sd, with workers over without."""
ONE_POINT = 0.01
"""Standard deviation of mean selection frequencies between crowds, for illustration."""


def judge_crowd(fitted: Fitted) -> list[Finding]:
    """Judge the factor by which differing crowds widen the mean gap's interval.

    It is no misfit: the intervals of `bayesrep.summarize` include it if the model allows.
    """
    if not isinstance(fitted.study, Study):
        return []
    if all(data.answers is None for data in fitted.study.datasets.values()):
        return [judge_unknown_crowd(fitted)]
    from bayesrep.answers.crowd import describe_crowd  # sparse matrices take long to import

    check, criterion = "workers who answered many images", f"< {MIN_SD_RATIO:g} times"
    sentence, words = describe_crowd(fitted.study).sentence, fitted.words
    if not fitted.knows_workers:
        text = f"{sentence} This model's intervals do not allow for it; the joint model's do."
        return [Finding(check, "not allowed for", criterion, "with care", text)]
    with_workers, without = (
        float(np.std(draws.mean(axis=-1)))
        for draws in (fitted.draws_over_crowds, fitted.adjusted_draws)
    )
    ratio = with_workers / max(without, 1e-300)
    if ratio < MIN_SD_RATIO:
        return [Finding(check, f"{ratio:.2f} times", criterion)]
    text = (
        f"{sentence} The interval of the mean gap is {ratio:.1f} times as wide for it in what "
        f"summarize says, and more {words.images} would not narrow it: more {words.workers} would, "
        "or the same ones for both data sets."
    )
    return [Finding(check, f"{ratio:.2f} times", criterion, "yes", text)]


def assumed_of_crowds(fitted: Fitted) -> str:
    """State the assumption on crowds, as a clause; empty if it is known who answered."""
    if not isinstance(fitted.study, Study) or fitted.knows_workers:
        return ""
    if fitted.crowd_sd:
        return f"crowds differ with an sd of {100 * fitted.crowd_sd:g} %"
    return "both crowds were equally strict"


def judge_unknown_crowd(fitted: Fitted) -> Finding:
    """State the assumption on crowds of unknown workers, and the effect if it is wrong."""
    check, criterion = "crowds of the two data sets", "cannot be seen"
    assumed, words = fitted.crowd_sd, fitted.words
    start = (
        f"The two groups of {words.annotators} are assumed to differ by {100 * assumed:g} points "
        "of mean selection frequency (sd), as it is not known who answered"
        if assumed
        else f"Both groups of {words.annotators} are assumed to be equally strict, as it is not "
        "known who answered"
    )
    measure = f". To measure it, give answers by {words.worker}."
    value = f"sd {100 * assumed:g} points assumed" if assumed else "alike, assumed"
    # Independent normal errors add in squares.
    half = Z_975 * float(np.std(fitted.adjusted_draws.mean(axis=-1)))
    # The direction of the mean over classifiers.
    mean = np.full((fitted.adjusted_draws.shape[-1], 1), 1 / fitted.adjusted_draws.shape[-1])
    a_point = Z_975 * ONE_POINT * float(np.linalg.norm(fitted.crowd_effects(mean)))
    text = (
        f"{start}. The mean gap is then known to within \N{PLUS-MINUS SIGN}"
        f"{100 * np.hypot(half, a_point * assumed / ONE_POINT):.1f} points"
    )
    if not assumed:
        text += (
            f", and to \N{PLUS-MINUS SIGN}{100 * np.hypot(half, a_point):.1f} if they may differ "
            "by 1 point of mean selection frequency (crowd_sd=0.01)"
        )
    return Finding(check, value, criterion, "yes", f"{text}{measure}")
