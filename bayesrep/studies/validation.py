"""The rules a study obeys, each a generator of one-line violations.

`where` names the place ("data set 'v1'", or a file and a data set) and starts every line.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, LiteralString, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayesrep.bounds import LARGEST_COUNT
from bayesrep.errors import StudyError, Violation, listing
from bayesrep.numerics.binomial import bound_common_divisor, bound_few_values
from bayesrep.studies import layout
from bayesrep.types import Bools, Floats, Ints

Names: TypeAlias = Sequence[str] | NDArray[np.str_]
Column: TypeAlias = Sequence[object] | NDArray[Any]

RESERVED_COLUMNS = ("dataset", "image", "label")  # columns of images.parquet with another meaning
REQUIRED_ROLES = ("reference", "replication")
MIN_PROBABILITY = 1e-6  # of counts like a data set's; rarer ones are refused
ANSWER_WORDS = {"column": "selected", "total": "shown", "rows": "every answer with its worker"}
ATTEMPT_WORDS = dict(column="solved", total="attempts", rows="every attempt in a row of its own")
"""Words of messages about counts and attempts."""


def raise_first(violations: Iterable[Violation]) -> None:
    """Raise `StudyError` with the first violation, or return when there is none."""
    for violation in violations:
        raise StudyError(violation)


def as_numbers(values: Any) -> Ints | Floats | None:
    """Turn array-like numbers into int64, or float64 with NaN for missing; None if not numbers."""
    if isinstance(values, np.ma.MaskedArray):  # np.asarray would silently uncover masked entries
        return np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biu":
            if array.dtype == np.uint64 and (array > np.iinfo(np.int64).max).any():
                return array.astype(np.float64)  # which the rules find too large, not negative
            return array.astype(np.int64, copy=False)
        if array.dtype.kind == "O" and any(isinstance(value, str) for value in array.flat):
            return None  # "3" would become 3.0
        return array.astype(np.float64) if array.dtype.kind in "fO" else None
    except (TypeError, ValueError):  # ragged lists, objects without a float value
        return None


def image_violations(where: str, images: Names) -> Iterator[Violation]:
    """Check that a data set holds at least one image, and each image once."""
    names: list[str] = np.asarray(images, dtype=np.str_).tolist()
    if not names:
        yield Violation("data-set-without-images", where=where)
    if repeated := _repeated_names(names):
        yield Violation("image-repeated", where=where, images=listing(repeated))


def count_violations(where: str, images: Names, selected: Any, total: Any) -> Iterator[Violation]:
    """Check that counts are whole, 0 <= selected <= shown and shown >= 1, one pair per image."""
    counts = {"selected": as_numbers(selected), "shown": as_numbers(total)}
    broken = [_count_violation(where, images, name, values) for name, values in counts.items()]
    yield from (violation for violation in broken if violation is not None)
    if any(broken) or counts["selected"] is None or counts["shown"] is None:
        return
    names = np.asarray(images)
    unseen = counts["shown"] == 0
    if unseen.any():
        yield (Violation("image-never-shown", where=where, images=listing(names[unseen])))
    excess = (counts["selected"] > counts["shown"]) & ~unseen
    if excess.any():
        yield (Violation("selected-exceeds-shown", where=where, images=listing(names[excess])))


def value_violations(
    where: str, selected: Ints, total: Ints, words: Mapping[str, str] = ANSWER_WORDS
) -> Iterator[Violation]:
    """Check that counts are of answers one by one: no percentages, no answer several times."""
    pairs, images = np.unique((total << 32) | selected, return_counts=True)
    sizes, starts = np.unique(pairs >> 32, return_index=True)
    tests = len(sizes) + (len(sizes) > 1)
    parts = (np.split(each, starts[1:]) for each in (pairs & LARGEST_COUNT, images))
    for size, values, many in zip(sizes.tolist(), *parts, strict=True):
        if tests * np.exp(bound_few_values(size, values, many)) < MIN_PROBABILITY:
            facts = {"where": where, "shown": size, "values": listing(values, "value")}
            yield Violation("counts-of-few-values", **facts, **words)
            return
    if len(sizes) > 1 and tests * np.exp(bound_common_divisor(selected, total)) < MIN_PROBABILITY:
        divisor = int(np.gcd.reduce(np.concatenate([selected, total])))
        yield Violation("counts-with-common-divisor", where=where, divisor=divisor, **words)


def correct_violations(
    where: str, images: Names, correct: Any, classifiers: Sequence[str] | None = None
) -> Iterator[Violation]:
    """Check that correctness [N, C] is true or false (1 or 0) for every image and classifier."""
    boolean = np.asarray(correct).dtype.kind == "b"
    values = np.asarray(correct) if boolean else as_numbers(correct)
    if values is None:
        yield Violation("correctness-not-numbers", where=where)
        return
    told = "C" if classifiers is None else len(classifiers)
    counts = {"image_count": len(images), "classifier_count": told}
    columns = np.shape(values)[1:] if classifiers is None else (len(classifiers),)
    if values.ndim != 2 or values.shape != (len(images), *columns):
        yield Violation("correctness-shape-wrong", where=where, shape=list(values.shape), **counts)
        return
    if boolean:
        return
    bad = (values != 0) & (values != 1)  # NaN differs from both
    for column in np.flatnonzero(bad.any(axis=0)).tolist():
        name = f"column {column}" if classifiers is None else f"classifier {classifiers[column]!r}"
        offenders = listing(np.asarray(images)[bad[:, column]])
        yield Violation("correctness-not-true-or-false", where=where, column=name, images=offenders)


def text_violations(where: str, images: Names, name: str, values: Column) -> Iterator[Violation]:
    """Check that a label or group column has one value per image: not None, NaN or empty."""
    if len(values) != len(images):
        counts = {"value_count": len(values), "image_count": len(images)}
        yield Violation("column-length-not-images", where=where, column=name, **counts)
        return
    pairs = zip(images, values, strict=True)
    # Only NaN differs from itself.
    if missing := [image for image, v in pairs if v is None or v == "" or v != v]:
        facts = {"column": name, "images": listing(missing)}
        yield Violation("column-incomplete-for-images", where=where, **facts)


def classifier_violations(where: str, classifiers: Sequence[str]) -> Iterator[Violation]:
    """Check that there is at least one classifier, and each has a name of its own."""
    if not classifiers:
        yield Violation("study-without-classifiers", where=where)
    if any(not name for name in classifiers):
        yield Violation("classifier-name-empty", where=where)
    if long := layout.too_long(classifiers):
        yield Violation("name-too-long-for-file", where=where, names=listing(long, "classifier"))
    if repeated := _repeated_names(classifiers):
        offenders = listing(repeated, "classifier")
        yield Violation("classifier-repeated", where=where, classifiers=offenders)


def role_violations(where: str, names: Sequence[tuple[str, str]]) -> Iterator[Violation]:
    """Check that (role, data set) pairs have both required roles, and distinct data sets."""
    if long := layout.too_long(name for _, name in names):
        yield Violation("name-too-long-for-file", where=where, names=listing(long, "data set"))
    roles = [role for role, _ in names]
    for role in REQUIRED_ROLES:
        if role not in roles:
            yield Violation("required-role-missing", where=where, role=role)
    if repeated := _repeated_names([name for _, name in names]):
        offenders = listing(repeated, "data set")
        yield Violation("data-set-with-several-roles", where=where, data_sets=offenders)
    if any(not role or not name for role, name in names):
        yield Violation("role-name-empty", where=where)


def label_set_violations(
    where: str, reference: tuple[str, NDArray[np.str_]], replication: tuple[str, NDArray[np.str_]]
) -> Iterator[Violation]:
    """Check that both data sets, given as (name, labels [N]), have the same set of labels."""
    pairs = ((reference, replication), (replication, reference))
    for (name, labels), (other, others) in pairs:
        if extra := np.setdiff1d(labels, others).tolist():
            facts = {"dataset": name, "other_dataset": other, "labels": listing(extra, "label")}
            yield Violation("labels-of-one-data-set", where=where, **facts)


def _count_violation(
    where: str, images: Names, name: str, values: Ints | Floats | None
) -> Violation | None:
    if values is None:
        return Violation("counts-not-numbers", where=where, column=name)
    if values.shape != (len(images),):
        facts = {"shape": list(values.shape), "image_count": len(images)}
        return Violation("counts-shape-wrong", where=where, column=name, **facts)
    names = np.asarray(images)
    rules: Mapping[LiteralString, Bools] = {
        "count-missing": np.isnan(values),
        "count-not-whole": values != np.floor(values),
        "count-infinite": np.isinf(values),
        "count-negative": values < 0,
        "count-too-large": values > LARGEST_COUNT,
    }
    for rule, broken in rules.items():
        if broken.any():
            return Violation(rule, where=where, column=name, images=listing(names[broken]))
    return None


def _repeated_names(names: Sequence[str]) -> list[str]:
    if len(set(names)) == len(names):
        return []
    places = {name: place for place, name in reversed(list(enumerate(names)))}
    return list(dict.fromkeys(name for n, name in enumerate(names) if places[name] != n))
