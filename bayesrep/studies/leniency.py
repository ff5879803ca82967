"""Who answered: the same people about both data sets, or how many about each, where that is known.

A crowd of W people whose leniencies have the standard deviation τ has one of about τ / √(0.3 W),
and at most τ / √n of n answers about an image; τ had a median of 1.1 in thirteen tasks
(`docs/crowd.md`).
"""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from bayesrep.errors import TableWarning, Violation
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Float, Ints

PROVENANCE_ENTRY = "people"
"""The entry of a study's provenance that says who answered."""
SAME_CROWD = "same"
Annotators: TypeAlias = Literal["same"] | int | None
"""The same people about both data sets, mixed; the number of people about each; not known."""
LENIENCY_SD, LENIENCY_LOG_SD = 1.1, 0.35
"""Median of τ in logits, and standard deviation of log τ."""
EFFECTIVE_SHARE = 0.3
"""Workers who would answer equally often, as a share of those who answer."""


def people_of(provenance: Mapping[str, Any]) -> Annotators:
    """Read who answered from a study's provenance."""
    return provenance.get(PROVENANCE_ENTRY)


def add_people(provenance: Mapping[str, Any], people: Annotators) -> dict[str, Any]:
    """Add to a provenance who answered, where that is said."""
    if people is None:
        return dict(provenance)
    plain = people.item() if isinstance(people, np.generic) else people  # a count of NumPy's
    return {**provenance, PROVENANCE_ENTRY: plain}


def warn_of_people(datasets: Mapping[str, AnnotatedSet], people: Annotators) -> None:
    """Warn where answers by worker say who answered, so that what is stated is not used."""
    if people is not None and not lacks_workers(datasets):
        text = f"people, {people!r}, is not used: the answers by worker say who answered"
        warnings.warn(TableWarning(text), stacklevel=3)


def lacks_workers(datasets: Mapping[str, AnnotatedSet]) -> bool:
    """Return whether answers about the reference or the replication are not by worker."""
    return any(role not in datasets or datasets[role].answers is None for role in REQUIRED_ROLES)


def people_violations(
    where: str, provenance: Mapping[str, Any], counts: Iterable[Ints]
) -> Iterator[Violation]:
    """Find people who are neither "same" nor a number, or fewer than an image's annotators."""
    people = provenance.get(PROVENANCE_ENTRY)
    shown = max((int(each.max(initial=0)) for each in counts), default=0)
    if isinstance(people, int) and not isinstance(people, bool) and people >= 1:
        if people < shown:
            facts = {"people": people, "shown": shown}
            yield Violation("people-fewer-than-annotators", where=where, **facts)
    elif people is not None and people != SAME_CROWD:
        yield Violation("people-not-same-or-number", where=where, people=people)


def leniency_scale(people: Annotators, shown: Sequence[float]) -> float:
    """Compute the median of λ's standard deviation, in logits, from both mean numbers shown."""
    if people is None or people == SAME_CROWD:
        return 0.0
    effective = EFFECTIVE_SHARE * min(people, 1e12)  # more overflow, and spread no less
    return LENIENCY_SD * math.sqrt(sum(1 / max(effective, each) for each in shown))


def leniency_density(
    value: Float[np.ndarray, "level"],  # in medians of its standard deviation
) -> Float[np.ndarray, "level"]:
    """Compute the density of λ: normal of a log-normal standard deviation."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    sd = np.exp(LENIENCY_LOG_SD * nodes)
    normal = np.exp(-np.square(value[:, None] / sd) / 2) / sd
    return normal @ weights / (2 * math.pi)
