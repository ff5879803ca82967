"""What a check says: a row of the table, what it means for the answer, and a sentence."""

from dataclasses import dataclass
from typing import Literal

Trust = Literal["yes", "with care", "no"]
ALPHA = 0.05  # of p-values: what is below is a misfit


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


def missing(check: str, needed: str) -> Finding:
    """A finding that says that a check could not be made."""
    sentence = f"The posterior holds no {needed}, so this was not checked: {check}."
    return Finding(check, "missing", needed, "with care", sentence)


def p_text(p: float) -> str:
    """A p-value in words."""
    return f"p = {p:.2g}" if p >= 1e-6 else "p < 1e-6"
