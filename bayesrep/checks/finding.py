"""What a check says: a row of the table, what it means for the answer, and a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesrep.studies.words import templates_by_name
from bayesrep.types import Floats

Trust = Literal["yes", "with care", "no"]
BEARABLE = 0.5  # of a posterior sd: shifts of all classifiers that leave intervals 92 % coverage
ALPHA = 0.05  # of p-values: what is below is a misfit
LEAST_P = 1e-6  # of a mixture: what is below is no chance, and not trusted however little it moves
UNTESTED = "not tested"
CHECKS = templates_by_name(
    "{annotators} identify the mixtures",
    "{classifiers} agree as predicted",
    "curves fit the {classifiers}",
    "dependence of {annotators}' answers",
    "{images} alike at the same frequency",
    "{workers} who answered many {images}",
)
"""Names of checks that speak of the study's parts, and how other words say them."""
LEGEND = (
    "p: how often a model that is right would misfit as much; sd: posterior standard deviations by "
    "which the mean gap moves where the prior counts twice."
)


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
    trust: Trust = "yes"
    sentence: str = ""


def missing_finding(check: str, needed: str) -> Finding:
    """A finding that says that a check could not be made."""
    sentence = f"The posterior holds no {needed}, so this was not checked: {check}."
    return Finding(check, "missing", needed, "with care", sentence)


def p_text(p: float | None) -> str:
    """A p-value in words; where there is none, nothing was tested."""
    if p is None:
        return UNTESTED
    return f"p = {p:.2g}" if p >= LEAST_P else "p < 1e-6"


def family_wise(p: Sequence[float], kind: Sequence[str]) -> Floats:
    """P-values of one family of tests: the least is below α in at most α of all sound fits.

    Holm's within each kind, whatever depends on what, times the number of kinds: so thousands of
    classifiers do not drown what the counts of two data sets say.

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6.
    """
    values, kinds = np.asarray(p, dtype=np.float64), np.asarray(kind)
    adjusted = np.ones(len(values))
    names = np.unique(kinds)
    for name in names:
        place = np.flatnonzero(kinds == name)
        place = place[np.argsort(values[place], kind="stable")]
        holm = np.maximum.accumulate(values[place] * np.arange(len(place), 0, -1))
        adjusted[place] = np.minimum(1.0, len(names) * holm)
    return adjusted
