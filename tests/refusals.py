"""What commands write, and what is refused.

Tests ask for the rule and for who breaks it, never for the sentence.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any
from unittest import mock

import pytest

from bayesrep import cli
from bayesrep.errors import BayesrepError, ConvergenceError, Listing, Violation, plain_text


@contextmanager
def refused(
    kind: type[BayesrepError], rule: str, facts: dict[str, Any] | None = None
) -> Iterator[pytest.ExceptionInfo[BayesrepError]]:
    """The block refuses by a rule; of its facts those that are named are these.

    A fact that lists offenders is compared as the list of their names, and any other as it is.
    """
    with pytest.raises(kind) as found:
        yield found
    check(found.value.violation, rule, facts)


def check(violation: Violation, rule: str, facts: dict[str, Any] | None = None) -> None:
    """Assert which rule is broken, by whom, and that it is told in one line."""
    assert violation.rule == rule, f"{violation.rule}: {violation}"
    wanted = facts or {}
    told = {name: _told(violation.facts[name]) for name in wanted}
    assert told == wanted
    assert "\n" not in violation


def _told(fact: Any) -> Any:
    return list(fact.names) if isinstance(fact, Listing) else fact


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """The exit status of a command, and what it wrote to standard output and error."""
    status = cli.main([str(word) for word in words])
    return status, *capsys.readouterr()


def refusal(words: Sequence[object]) -> Violation:
    """The violation that a command ends with: told in one line at the end, with its exit status."""
    heard: list[Exception] = []
    kept = cli._report_refusal

    def hear(error: Exception) -> int:
        heard.append(error)
        return kept(error)

    said = io.StringIO()
    with mock.patch.object(cli, "_report_refusal", hear), redirect_stderr(said):
        status = cli.main([str(word) for word in words])
    assert len(heard) == 1, f"exit status {status}: {said.getvalue()}"
    (error,) = heard
    assert isinstance(error, BayesrepError), repr(error)
    assert status == (1 if isinstance(error, ConvergenceError) else 2)
    assert said.getvalue().splitlines()[-1] == f"bayesrep: {plain_text(str(error.violation))}"
    return error.violation
