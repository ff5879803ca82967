"""List of all violations, which each step of a reading extends."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, LiteralString, TypeVar

from bayesrep.errors import StudyError, Violation

_Value = TypeVar("_Value")


class Problems(list[Violation]):
    """Violations in the order in which they were found; false if there are none."""

    def add(self, rule: LiteralString, /, **facts: Any) -> None:
        """Add a rule that is broken; `facts` are those of its sentence."""
        self.append(Violation(rule, **facts))

    def take(self, violations: Iterable[Violation]) -> bool:
        """Add all that a check finds; whether that is nothing."""
        before = len(self)
        self.extend(violations)
        return len(self) == before

    def attempt(self, step: Callable[[], _Value]) -> _Value | None:
        """Return a step's result; on a `StudyError`, add its violation and return None."""
        try:
            return step()
        except StudyError as error:
            self.append(error.violation)
            return None

    def describe_first(self, path: str | Path) -> Violation:
        """The first that was found, with the path of what is read unless its line has it."""
        first = self[0]
        # A folder may be called as a word is with which a line begins.
        begins = first.startswith((f"{path}:", f"{path}{os.sep}"))
        return first if begins or first.facts.get("path") == str(path) else first.add_place(path)


def value(read: Callable[[Problems], _Value | None], path: str | Path) -> _Value:
    """Return the result of reading the study at `path`; `StudyError` with the first problem."""
    problems = Problems()
    read_value = read(problems)
    if read_value is None or problems:
        raise StudyError(problems.describe_first(path))
    return read_value
