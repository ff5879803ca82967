"""State in words how much of a drop is real; the intervals decide which sentence is true."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from bayesrep.numerics.estimands import measured_gap
from bayesrep.numerics.rounding import write_points
from bayesrep.studies.representation import number
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words, words_of

LEAST_WIDTH = 0.001
"""A narrower interval, a tenth of a point, is told to two digits."""


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval, as fractions; the ends are None where there is none."""

    value: float
    lower: float | None
    upper: float | None

    @property
    def is_above_zero(self) -> bool:
        """Return whether the number and its whole interval are above 0."""
        return self.lower is not None and min(self.lower, self.value) > 0

    @property
    def is_below_zero(self) -> bool:
        """Return whether the number and its whole interval are below 0."""
        return self.upper is not None and max(self.upper, self.value) < 0


@dataclass(frozen=True)
class Drop:
    """A mean accuracy drop divided by one method."""

    # Reference minus replication accuracy. Its interval is over samples of images.
    measured: Estimate
    remaining: Estimate  # what is left at equal selection frequencies, the bias-corrected gap
    selection: Estimate  # what selection explains, the selection gap
    share: Estimate  # ``selection`` relative to ``measured``
    note: str = ""  # what the interval of ``remaining`` would be under a stronger assumption

    @property
    def clear_share(self) -> Estimate | None:
        """The share, where drop, selection and remainder are all clear; it lies in [0, 1]."""
        parts = (self.measured, self.selection, self.remaining)
        clear = all(part.is_above_zero for part in parts)
        told = clear and self.share.lower is not None and is_share(self.share)
        return self.share if told else None


def is_share(estimate: Estimate) -> bool:
    """Return whether a number, with its interval if it has one, lies within 0 and 1."""
    ends = (estimate.lower, estimate.value, estimate.upper)
    return all(0 <= end <= 1 for end in ends if end is not None)


def measured_drop(study: Study) -> Estimate:
    """The mean drop as measured, with an interval over samples of images."""
    gap = measured_gap(study.reference.correct, study.replication.correct)
    value, lower, upper = (float(number) for number in gap)
    return Estimate(value, lower, upper) if np.isfinite(lower) else Estimate(value, None, None)


def drop_of(gaps: pl.DataFrame, measured: Estimate, note: str = "") -> Drop:
    """The division of a drop by the one method of a table of `bayesrep.estimate_gaps`."""
    rows = {row["quantity"]: row for row in gaps.iter_rows(named=True)}
    remaining, selection, share = (
        _estimate(rows[name]) for name in ("bias_corrected_gap", "selection_gap", "share_explained")
    )
    return Drop(measured, remaining, selection, share, note)


def _estimate(row: Mapping[str, Any]) -> Estimate:
    value = row["estimate"]
    return Estimate(np.nan if value is None else value, row["lower"], row["upper"])


def headline(drop: Drop, *, classifiers: int, words: Words = IMAGE_WORDS) -> str:
    """The finding in one short sentence; the same intervals choose it as choose the `answer`."""
    measured, remaining, selection = drop.measured, drop.remaining, drop.selection
    alone = classifiers == 1
    they = f"The {words.classifier} is" if alone else f"{words.classifiers.title()} are"
    if measured.is_below_zero:
        rise = write_points(-measured.value, _digits(measured))
        return f"{they} {rise} points more accurate on the replication"
    if not measured.is_above_zero:
        if remaining.is_above_zero:
            hidden = selection.is_below_zero
            end = ": selection hides one" if hidden else ", and one at the same selection frequency"
            return f"No clear drop as measured{end}"
        if remaining.is_below_zero:
            return "No clear drop as measured, and a rise at the same selection frequency"
        return "No clear drop in accuracy"
    size = f"{write_points(measured.value, _digits(measured))}-point drop"
    if remaining.lower is None:
        left = write_points(remaining.value, 1)
        return f"A {size}; by an estimate without interval, {left} points remain"
    if remaining.is_below_zero:
        return f"Selection more than explains the {size}"
    if not remaining.is_above_zero:
        if selection.is_above_zero:
            return f"Selection may explain all of the {size}"
        return f"Cannot tell: the {size} may be all selection or none"
    how = f"comes from how {words.images} were selected"
    if selection.is_below_zero:
        return f"None of the {size} {how}"
    if not selection.is_above_zero:
        least = write_points(remaining.lower, _digits(remaining))
        return f"The {size} is real: at least {least} points remain after adjusting for selection"
    if (share := drop.clear_share) is None:
        return f"Part of the {size} {how}, and part remains"
    return f"{_interval(share, 0, unit=' %')} of the {size} {how}"


def headline_for(study: Study, drop: Drop) -> str:
    """The `headline` in a study's own words."""
    return headline(drop, classifiers=len(study.classifiers), words=words_of(study))


def answer_for(study: Study, drop: Drop) -> str:
    """The `answer` in a study's own words."""
    sides = {"reference": study.reference, "replication": study.replication}
    one, other = (
        f"the {role}" if data.name == role else f"{data.name} (the {role})"
        for role, data in sides.items()
    )
    sentences = answer(
        drop,
        classifiers=len(study.classifiers),
        images=(len(study.reference.images), len(study.replication.images)),
        names=(one, other),
        words=words_of(study),
    )
    return f"{sentences} {drop.note}".rstrip()


def answer(
    drop: Drop,
    *,
    classifiers: int,
    images: tuple[int, int],
    names: tuple[str, str] = ("the reference", "the replication"),
    words: Words = IMAGE_WORDS,
) -> str:
    """Say how much of a drop is real, and nothing that the intervals do not say."""
    one, other = names
    alone = classifiers == 1
    they = "it is" if alone else "they are"
    subject = f"The {words.classifier} is" if alone else f"{words.classifiers.title()} are"
    measured = drop.measured
    # The sentence depends on whether the interval of the drop excludes zero, and on which side.
    if measured.is_above_zero:
        return (
            f"{subject} {_points(measured)} less accurate on {other} than on {one}. "
            f"{_division(drop, they)}"
        )
    if measured.is_below_zero:
        return (
            f"{subject} {_points(_negate(measured))} more accurate on {other} than on {one}. "
            f"{_at_equal_frequencies(drop, they)}"
        )
    return (
        f"No clear drop from {one} to {other}: {_points(measured)}. "
        f"{_resolution(measured, images, words)}{_at_equal_frequencies(drop, they)}"
    )


def _resolution(measured: Estimate, images: tuple[int, int], words: Words) -> str:
    """State the smallest drop that so few images can resolve."""
    if measured.lower is None or measured.upper is None:
        return ""
    half = (measured.upper - measured.lower) / 2
    one, other = images
    each, every = f"{number(one, words.image)} each", f"{one:,} and {other:,} {words.images}"
    many = each if one == other else every
    if half >= 1:
        return f"With {many}, no drop at all can be seen. "
    if half == 0:  # no classifier errs, or none is right
        return ""
    least = write_points(half, _digits(measured))
    return f"With {many}, drops under {least} points cannot be seen. "


def _division(drop: Drop, they: str) -> str:
    """The sentence on a clear drop's parts."""
    remaining, selection = drop.remaining, drop.selection
    if remaining.lower is None:
        return f"Of these, {_points(remaining)} remain at equal selection frequencies."
    if remaining.is_below_zero:
        return (
            f"Selection more than explains it: at equal selection frequencies {they} "
            f"{_points(_negate(remaining))} more accurate."
        )
    if not remaining.is_above_zero:
        if selection.is_above_zero:
            return (
                f"Selection accounts for {_interval(selection, _digits(selection))} of these; the "
                f"rest, {_interval(remaining, _digits(remaining))}, may be nothing."
            )
        return (
            f"At equal selection frequencies {_points(remaining)} remain: selection may explain "
            "all of it or none."
        )
    if selection.is_below_zero:
        return (
            f"Selection accounts for none of it: at equal selection frequencies {they} "
            f"{_points(remaining)} less accurate, more than measured."
        )
    if not selection.is_above_zero:
        return f"The drop is real: {_points(remaining)} remain after adjusting for selection."
    share = drop.clear_share
    of_it = "" if share is None else f", {_interval(share, 0, unit=' %')} of the drop"
    return (
        f"Selection accounts for {_interval(selection, _digits(selection))} of these{of_it}; "
        f"{_interval(remaining, _digits(remaining))} remain."
    )


def _at_equal_frequencies(drop: Drop, they: str) -> str:
    """The sentence on what is left where no drop was measured."""
    where, remaining = "At equal selection frequencies", drop.remaining
    if remaining.is_above_zero:
        end = ": selection hides a drop" if drop.selection.is_below_zero else ""
        return f"{where} {they} {_points(remaining)} less accurate{end}."
    if remaining.is_below_zero:
        return f"{where} {they} {_points(_negate(remaining))} more accurate."
    if remaining.lower is None:
        return f"{where} the difference is {_points(remaining)}."
    return f"{where} there is no clear difference: {_points(remaining)}."


def _negate(estimate: Estimate) -> Estimate:
    """Minus the number, with its interval."""
    lower, upper = (None if end is None else -end for end in (estimate.upper, estimate.lower))
    return Estimate(-estimate.value, lower, upper)


def _points(estimate: Estimate) -> str:
    """Format an estimate in percent points, with its interval, or a word on its absence."""
    return _interval(estimate, _digits(estimate), unit=" points", none="(no interval)")


def _interval(estimate: Estimate, digits: int, *, unit: str = "", none: str = "") -> str:
    text = f"{write_points(estimate.value, digits)}{unit}"
    if estimate.lower is None or estimate.upper is None:
        return f"{text} {none}"
    lower, upper = (write_points(end, digits) for end in (estimate.lower, estimate.upper))
    return f"{text} ({lower} to {upper})"


def _digits(estimate: Estimate) -> int:
    if estimate.lower is None or estimate.upper is None:
        return 1
    return 2 if estimate.upper - estimate.lower < LEAST_WIDTH else 1
