"""What is refused: tests ask for the rule and for who breaks it, never for the sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bayesrep.errors import BayesrepError, Listing, Violation


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
