"""Sensitivity to the crowd: variance over known workers, or what is known of the people."""

import numpy as np

from bayesrep.checks.finding import ASSUMED, Finding
from bayesrep.numerics.estimands import Z_975
from bayesrep.posterior.fitted import Fitted
from bayesrep.studies.leniency import SAME_CROWD, lacks_workers
from bayesrep.studies.study import Study

MIN_SD_RATIO = 1.1  # least reported ratio of the mean accuracy's sd with workers to without
PLUS_MINUS = "\N{PLUS-MINUS SIGN}"


def judge_crowd(fitted: Fitted) -> list[Finding]:
    """Judge by which factor differing crowds widen the mean gap's interval; it is no misfit."""
    if not isinstance(fitted.study, Study):
        return []
    of_people = [judge_people(fitted)] if lacks_workers(fitted.study.datasets) else []
    if all(data.answers is None for data in fitted.study.datasets.values()):
        return of_people
    from bayesrep.answers.crowd import describe_crowd  # sparse matrices take long to import

    check, criterion = "workers who answered many images", f"< {MIN_SD_RATIO:g} times"
    sentence, words = describe_crowd(fitted.study).sentence, fitted.words
    if not fitted.knows_workers:
        text = f"{sentence} This model's intervals do not allow for it; the joint model's do."
        return [*of_people, Finding(check, "not allowed for", criterion, "with care", text)]
    with_workers, without = (
        float(np.std(draws.mean(axis=-1)))
        for draws in (fitted.draws_over_crowds, fitted.adjusted_draws)
    )
    ratio = with_workers / max(without, 1e-300)
    if ratio < MIN_SD_RATIO:
        return [*of_people, Finding(check, f"{ratio:.2f} times", criterion)]
    text = (
        f"{sentence} The interval of the mean gap is {ratio:.1f} times as wide for it in what "
        f"summarize says, and more {words.images} would not narrow it: more {words.workers} would, "
        "or the same ones for both data sets."
    )
    return [*of_people, Finding(check, f"{ratio:.2f} times", criterion, "yes", text)]


def assumed_of_crowds(fitted: Fitted) -> str:
    """State the assumption on crowds, as a clause; empty where it is known who answered."""
    given = fitted.record.recorded_options.get("leniency")
    if not isinstance(fitted.study, Study):
        return ""
    is_known = fitted.statistics.people is not None or not lacks_workers(fitted.study.datasets)
    if is_known and given is None:
        return ""
    if not given:
        return "both crowds were equally strict"
    return f"the replication's crowd is more lenient by {given:g} in log odds"


def judge_people(fitted: Fitted) -> Finding:
    """Judge what is known of who answered, and how well the mean gap is known if nothing is."""
    words, people = fitted.words, fitted.statistics.people
    who, value = f"{words.annotators} of the two data sets", "not known"
    if people == SAME_CROWD:
        return Finding(who, "the same", "known")
    if fitted.record.recorded_options.get("leniency") is not None:
        text = f"We assume that {assumed_of_crowds(fitted)}; no check can see it."
        return Finding(who, ASSUMED, "known", "yes", text)
    adjusted = fitted.adjusted_draws
    half = Z_975 * float(np.std(adjusted.mean(axis=-1)))
    if people is not None:
        text = (
            f"A crowd of {people:,} {words.annotators} answered about each data set, and intervals "
            "allow for crowds that differ: the mean gap is known to within "
            f"{PLUS_MINUS}{100 * half:.1f} points. With the same {words.annotators} for both, "
            "mixed, crowds do not matter."
        )
        return Finding(who, f"{people:,} each", "known", "yes", text)
    wide = ""
    if (crowd_sd := fitted.group.attrs.get("crowd_sd")) is not None:
        # Independent normal errors add in squares.
        both = float(np.hypot(half, Z_975 * crowd_sd))
        wide = f"; with two crowds of a hundred, to within {PLUS_MINUS}{100 * both:.1f}"
    text = (
        f"It is not known who answered. If the same {words.annotators} answered about both data "
        f"sets, mixed, the mean gap is known to within {PLUS_MINUS}{100 * half:.1f} points{wide}. "
        "Say which: --people same, or how many answered about each."
    )
    return Finding(who, value, "known", "with care", text)
