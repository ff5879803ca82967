"""Findings of checks: a row of the table, its meaning for the answer, and a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesrep.studies.vocabulary import templates_by_name
from bayesrep.types import Floats

Trust = Literal["yes", "with care", "no"]
MAX_HARMLESS_SHIFT = 0.5  # posterior sd: all shifted by it, intervals still cover 92 %
ALPHA = 0.05  # significance level
MIN_CREDIBLE_P = 1e-6  # below it a mixture's misfit is never trusted, however little it matters
UNTESTED = "not tested"
ASSUMED = "assumed"  # what no data show, and is shown without a trust
CHECKS = templates_by_name(
    "{annotators} identify the mixtures",
    "{classifiers} agree as predicted",
    "curves fit the {classifiers}",
    "dependence of {annotators}' answers",
    "{images} alike at the same frequency",
    "{workers} who answered many {images}",
)
"""Names of checks that mention the study's parts, as templates for other vocabularies."""
LEGEND = (
    "p: how often a correct model would misfit as much; sd: posterior standard deviations by "
    "which the mean gap moves if the prior counts twice."
)


@dataclass(frozen=True)
class Finding:
    """Outcome of one check."""

    check: str  # its name
    value: str  # the result; "missing" if the posterior lacks what the check needs
    wanted: str  # the criterion that the value should meet
    trust: Trust = "yes"  # consequence for the use of the adjusted accuracies
    sentence: str = ""  # the result, its effect and a remedy; empty if all is fine


def missing_finding(check: str, needed: str) -> Finding:
    """Report that a check could not be made."""
    sentence = f"The posterior holds no {needed}, so this was not checked: {check}."
    return Finding(check, "missing", needed, "with care", sentence)


def p_text(p: float | None) -> str:
    """Format a p-value; None means that nothing was tested."""
    if p is None:
        return UNTESTED
    return f"p = {p:.2g}" if p >= MIN_CREDIBLE_P else "p < 1e-6"


def family_wise(p: Sequence[float], kind: Sequence[str]) -> Floats:
    """Adjust p-values of a family by Holm's method (1979) by kind, times the number of kinds."""
    values, kinds = np.asarray(p, dtype=np.float64), np.asarray(kind)
    adjusted = np.ones(len(values))
    names = np.unique(kinds)
    for name in names:
        place = np.flatnonzero(kinds == name)
        place = place[np.argsort(values[place], kind="stable")]
        # The i-th smallest p is multiplied by the number of tests not yet rejected.
        holm = np.maximum.accumulate(values[place] * np.arange(len(place), 0, -1))
        adjusted[place] = np.minimum(1.0, len(names) * holm)
    return adjusted
