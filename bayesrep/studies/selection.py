"""How the items of a data set were selected, where the counts at hand are those that selected them.

A benchmark keeps an item because a rule on noisy counts fired: all of 6 annotators agreed, at least
3 of 5, the worst of 3 was mild, no model solved it. Who then reads the same counts as a measurement
forgets that items which fell by luck on the other side are not there. The rule is data: with it
the likelihood of a count is that of a count which passes the rule (truncation).

Items selected by one batch of answers and measured by another need no such care, and say so:
`at least 3 of 5 by other answers`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError, Violation, listing
from bayesrep.types import Ints

Accepted: TypeAlias = tuple[tuple[int, int, float], ...]
"""Rows (selected, shown, probability that such an item is kept); what is not listed is not kept."""

BY_OTHERS = " by other answers"
WORDS = (
    "all of N, none of N, at least K of N, at most K of N, exactly K of N (of N may be left out), "
    "at least P %, at most P %, worst of N, "
    f"each with '{BY_OTHERS.strip()}' where the counts were taken afterwards"
)
_RULE = re.compile(
    r"(?:(?P<word>all|none|worst)|(?P<bound>at least|at most|exactly) (?P<number>\d+(?:\.\d+)?)"
    r"(?P<percent> ?%)?)(?: of (?P<shown>\d+))?"
)
_SLACK = 1e-9  # 70 % of 10 is 7, whatever floats make of it


@dataclass(frozen=True)
class Selection:
    """Which counts an item could have and be kept.

    Attributes
    ----------
    rule
        In words, such as "all of 6" (the grammar: `WORDS`); of a table any words.
    table
        The accepted counts with the probability of each, instead of a rule in words.

    Raises
    ------
    StudyError
        Where the words are not a rule, or the table has no probabilities.

    Examples
    --------
    >>> Selection("at least 3 of 5").probability([2, 3, 5], [5, 5, 5]).tolist()
    [0.0, 1.0, 1.0]
    """

    rule: str
    table: Accepted | None = None

    def __post_init__(self) -> None:
        for violation in self._violations():
            raise StudyError(violation.add_place("selection"))

    @classmethod
    def parse(cls, given: Any) -> "Selection":
        """What a user gives: a rule, rows (selected, shown[, probability]), or a selection."""
        if isinstance(given, Selection):
            return given
        if isinstance(given, str):
            return cls(" ".join(given.lower().split()))
        try:
            rows = tuple((int(k), int(n), float(*(p or [1]))) for k, n, *p in given)
            exact = all(row[:2] == tuple(old[:2]) for row, old in zip(rows, given, strict=True))
        except (TypeError, ValueError, OverflowError):
            exact, rows = False, ()
        if not exact:
            raise StudyError("selection-neither-rule-nor-table", given=given, known_rules=WORDS)
        return cls("a table of accepted counts", rows)

    def content(self) -> str | list[list[float]]:
        """What a user could have given for the same selection, as JSON holds it."""
        return self.rule if self.table is None else [list(row) for row in self.table]

    @property
    def is_by_others(self) -> bool:
        """Whether other answers than those at hand selected, so that nothing is to be corrected."""
        return self.table is None and self.rule.endswith(BY_OTHERS)

    @property
    def bare_rule(self) -> str:
        """The rule without who applied it: what the same rule asks of answers given anew."""
        return self.rule.removesuffix(BY_OTHERS)

    def probability(
        self, selected: Ints | Sequence[int], shown: Ints | Sequence[int]
    ) -> NDArray[np.float64]:
        """How likely items with these counts are to be kept, by the rule or the table."""
        k, n = np.broadcast_arrays(np.asarray(selected), np.asarray(shown))
        if self.table is not None:
            known = {row[:2]: row[2] for row in self.table}
            pairs = zip(k.ravel().tolist(), n.ravel().tolist(), strict=True)
            return np.array([known.get(pair, 0.0) for pair in pairs]).reshape(k.shape)
        rule = _parse_rule(self.bare_rule)
        passes = (rule.least * np.where(rule.share, n, 1) - _SLACK <= k) & (
            k <= rule.most * np.where(rule.share, n, 1) + _SLACK
        )
        asked = n if rule.shown is None else rule.shown
        return (passes & (n == asked)).astype(np.float64)

    def count_answers(self, shown: Ints) -> Ints:
        """How many answers the rule is about, of images shown to so many [M]."""
        rule = _parse_rule(self.bare_rule) if self.table is None else None
        return shown if rule is None or rule.shown is None else np.full_like(shown, rule.shown)

    def violations(
        self, where: str, images: NDArray[np.str_], selected: Ints, shown: Ints
    ) -> Iterator[Violation]:
        """Find images that the rule would not have kept."""
        if self.is_by_others:
            return
        never = self.probability(selected, shown) <= 0
        if never.any():
            first = int(np.flatnonzero(never)[0])
            yield Violation(
                "image-not-kept-by-selection",
                where=where,
                selection=self.rule,
                images=listing(images[never].tolist()),
                selected=selected[first],
                shown=shown[first],
                which="" if never.sum() == 1 else " the first",
                addition=BY_OTHERS.strip(),
            )

    def _violations(self) -> Iterator[Violation]:
        if self.table is None:
            if (rule := _parse_rule(self.bare_rule)) is None:
                yield Violation("selection-rule-unknown", selection=self.rule, known_rules=WORDS)
            elif rule.shown is not None and not rule.share and rule.least > rule.shown:
                yield Violation("selection-needs-too-many", selection=self.rule)
            elif rule.share and (rule.least > 1 or rule.most > 1):
                yield Violation("selection-share-above-all", selection=self.rule)
            return
        for k, n, p in self.table:
            if not (0 <= k <= n and n >= 1 and 0 <= p <= 1):
                yield Violation("accepted-count-impossible", selected=k, shown=n, probability=p)
        if len({row[:2] for row in self.table}) < len(self.table):
            yield Violation("accepted-count-repeated")
        if not any(row[2] > 0 for row in self.table):
            yield Violation("no-count-ever-kept")


@dataclass(frozen=True)
class _Rule:
    """Bounds on k, or with `share` on k / n, and the n that they are for."""

    least: float
    most: float
    share: bool
    shown: int | None


def _parse_rule(rule: str) -> Any:
    """The bounds of a rule in words; None where it is none."""
    match = _RULE.fullmatch(rule)
    if match is None:
        return None
    shown = None if match["shown"] is None else int(match["shown"])
    if word := match["word"]:
        # The worst of n answers is good only where all are.
        share = 0.0 if word == "none" else 1.0
        return _Rule(share, share, share=True, shown=shown)
    number, percent = float(match["number"]), match["percent"] is not None
    if percent:
        number /= 100
    elif number != int(number):
        return None
    least = 0.0 if match["bound"] == "at most" else number
    most = np.inf if match["bound"] == "at least" else number
    if percent and most == np.inf:
        most = 1.0
    return _Rule(least, float(most), share=percent, shown=shown)


def truncating(selection: Selection | None) -> Selection | None:
    """The selection, where it is the counts at hand that selected."""
    return None if selection is None or selection.is_by_others else selection
