"""Numbers that were asked for, and what a benchmark says meanwhile; loads nothing heavy."""

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple


class Requirement(NamedTuple):
    """A number that was asked for."""

    what: str
    value: float
    relation: str  # "at most" or "at least"
    bound: float
    unit: str

    @property
    def passed(self) -> bool:
        """Whether the number is reached; a missing one is not."""
        return self.value <= self.bound if self.relation == "at most" else self.value >= self.bound

    def sentence(self) -> str:
        """The requirement and the number."""
        wanted = f"{self.relation} {self.bound:g}{self.unit}"
        return f"- {self.what} {wanted}: {self.value:,.3g}{self.unit}."


def requirement_text(requirements: Sequence[Requirement]) -> str:
    """A list for the remarks of a page of results."""
    return "\n".join(["Required:", "", *(each.sentence() for each in requirements)])


def requirement_numbers(requirements: Sequence[Requirement]) -> list[dict[str, Any]]:
    """The same for JSON."""
    return [{**each._asdict(), "passed": each.passed} for each in requirements]


def say(text: str) -> None:
    """Tell on standard error how far the benchmark is."""
    print(text, file=sys.stderr, flush=True)
