"""Selection of items by the very counts at hand: a truncation of their distribution.

Given the rule, the likelihood of a count is conditional on passing it. Items selected by one batch
of answers and measured by another need no such care: `at least 3 of 5 by other answers`.
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
"""Rows (selected, shown, probability to be kept), which is 0 for other counts."""

BY_OTHERS_SUFFIX = " by other answers"
GRAMMAR = (
    "all of N, none of N, at least K of N, at most K of N, exactly K of N (of N may be left out), "
    "at least P %, at most P %, worst of N, "
    f"each with '{BY_OTHERS_SUFFIX.strip()}' where the counts were taken afterwards"
)
_RULE_PATTERN = re.compile(
    r"(?:(?P<word>all|none|worst)|(?P<bound>at least|at most|exactly) (?P<number>\d+(?:\.\d+)?)"
    r"(?P<percent> ?%)?)(?: of (?P<shown>\d+))?"
)
_ROUNDING_SLACK = 1e-9  # 70 % of 10 is 7, despite rounding


@dataclass(frozen=True)
class Selection:
    """Rule that says which counts of an item are kept.

    Examples
    --------
    >>> Selection("at least 3 of 5").probability([2, 3, 5], [5, 5, 5]).tolist()
    [0.0, 1.0, 1.0]
    """

    rule: str  # in words of `GRAMMAR`; of a table any words
    table: Accepted | None = None  # instead of a rule in words

    def __post_init__(self) -> None:
        for violation in self._violations():
            raise StudyError(violation.add_place("selection"))

    @classmethod
    def parse(cls, rule: Any) -> "Selection":
        """Parse a rule in words, rows (selected, shown[, probability]), or a selection."""
        if isinstance(rule, Selection):
            return rule
        if isinstance(rule, str):
            return cls(" ".join(rule.lower().split()))
        try:
            rows = tuple((int(k), int(n), float(*(p or [1]))) for k, n, *p in rule)
            exact = all(row[:2] == tuple(old[:2]) for row, old in zip(rows, rule, strict=True))
        except (TypeError, ValueError, OverflowError):
            exact, rows = False, ()
        if not exact:
            raise StudyError("selection-neither-rule-nor-table", given=rule, known_rules=GRAMMAR)
        return cls("a table of accepted counts", rows)

    def content(self) -> str | list[list[float]]:
        """Return the rule or table that `parse` reads, as JSON holds it."""
        return self.rule if self.table is None else [list(row) for row in self.table]

    @property
    def is_by_others(self) -> bool:
        """True if other answers than those at hand selected, so that there is no truncation."""
        return self.table is None and self.rule.endswith(BY_OTHERS_SUFFIX)

    @property
    def bare_rule(self) -> str:
        """The rule without who applied it: what the same rule asks of answers given anew."""
        return self.rule.removesuffix(BY_OTHERS_SUFFIX)

    def probability(
        self, selected: Ints | Sequence[int], shown: Ints | Sequence[int]
    ) -> NDArray[np.float64]:
        """Return the probability that items with these counts are kept."""
        k, n = np.broadcast_arrays(np.asarray(selected), np.asarray(shown))
        if self.table is not None:
            accepted = {row[:2]: row[2] for row in self.table}
            pairs = zip(k.ravel().tolist(), n.ravel().tolist(), strict=True)
            return np.array([accepted.get(pair, 0.0) for pair in pairs]).reshape(k.shape)
        rule = _parse_rule(self.bare_rule)
        passes = (rule.least * np.where(rule.share, n, 1) - _ROUNDING_SLACK <= k) & (
            k <= rule.most * np.where(rule.share, n, 1) + _ROUNDING_SLACK
        )
        n_required = n if rule.n_answers is None else rule.n_answers
        return (passes & (n == n_required)).astype(np.float64)

    def count_answers(self, annotators: Ints) -> Ints:
        """Return the number of answers that the rule needs of images with so many [M]."""
        rule = _parse_rule(self.bare_rule) if self.table is None else None
        if rule is None or rule.n_answers is None:
            return annotators
        return np.full_like(annotators, rule.n_answers)

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
                addition=BY_OTHERS_SUFFIX.strip(),
            )

    def _violations(self) -> Iterator[Violation]:
        if self.table is None:
            if (rule := _parse_rule(self.bare_rule)) is None:
                yield Violation("selection-rule-unknown", selection=self.rule, known_rules=GRAMMAR)
            elif rule.n_answers is not None and not rule.share and rule.least > rule.n_answers:
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
    n_answers: int | None


def _parse_rule(rule: str) -> Any:
    """The bounds of a rule in words; None where it is none."""
    match = _RULE_PATTERN.fullmatch(rule)
    if match is None:
        return None
    n_answers = None if match["shown"] is None else int(match["shown"])
    if word := match["word"]:
        # The worst of n answers is good only where all are.
        share = 0.0 if word == "none" else 1.0
        return _Rule(share, share, share=True, n_answers=n_answers)
    number, percent = float(match["number"]), match["percent"] is not None
    if percent:
        number /= 100
    elif number != int(number):
        return None
    least = 0.0 if match["bound"] == "at most" else number
    most = np.inf if match["bound"] == "at least" else number
    if percent and most == np.inf:
        most = 1.0
    return _Rule(least, float(most), share=percent, n_answers=n_answers)


def truncating(selection: Selection | None) -> Selection | None:
    """The selection, where it is the counts at hand that selected."""
    return None if selection is None or selection.is_by_others else selection
