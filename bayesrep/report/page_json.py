"""All numbers of a report as one object for programs: in its page, and of `report --json`.

Fractions throughout; null is unknown. `REPORT_FORMAT` rises when a name changes its meaning.
"""

from typing import Any

import numpy as np

from bayesrep.report.answer import Estimate
from bayesrep.report.sections import Accuracies, Answer, Content, Ranking, Trust
from bayesrep.report.sections.accuracy_estimates import columns_of
from bayesrep.report.sections.section import numbers

REPORT_FORMAT = "bayesrep report 1"


def numbers_of(content: Content) -> dict[str, Any]:
    """Everything that the report says in numbers."""
    study = content.study
    kinds = (Answer, Trust, Accuracies, Ranking)
    answer, trust, accuracies, ranking = (content.sections[kind] for kind in kinds)
    # Every name is there in every report; what cannot be said is null.
    facts: dict[str, Any] = {
        "format": REPORT_FORMAT,
        "study": {
            "name": study.name,
            "classifiers": len(study.classifiers),
            "images": {role: len(data.images) for role, data in study.datasets.items()},
        },
        **dict.fromkeys(("headline", "answer", "method", "drop")),
        "methods": [],
        **dict.fromkeys(("truth", "classifiers", "trust", "ranks")),
        "missing": content.missing_sections,
    }
    # Sections that could not be made are violations instead.
    if isinstance(answer, Answer):
        opening, drop = answer.opening(), answer.drop
        parts = ("measured", "remaining", "selection", "share")
        facts |= {
            "headline": opening.title,
            "answer": opening.sentence,
            "method": answer.accuracies.methods[-1],
            "drop": {name: _with_interval(getattr(drop, name)) for name in parts},
            "methods": answer.gaps.fill_nan(None).to_dicts(),
            "truth": answer.truth,
        }
    if isinstance(accuracies, Accuracies):
        facts["classifiers"] = columns_of(accuracies.classifiers)
    if isinstance(trust, Trust):
        facts["trust"] = {
            "verdict": trust.verdict,
            "assumption": trust.assumption,
            "sentences": list(trust.sentences),
            "checks": trust.checks.to_dicts(),
        }
    if isinstance(ranking, Ranking):
        ranks = {"classifier": list(ranking.classifiers)}
        ranks |= zip(("rank", "lower", "upper"), map(numbers, ranking.rank), strict=True)
        facts["ranks"] = {**ranks, "measured": numbers(ranking.measured)}
    return facts


def _with_interval(estimate: Estimate) -> dict[str, float | None]:
    three = np.array([estimate.value, estimate.lower, estimate.upper], dtype=float)
    return dict(zip(("value", "lower", "upper"), numbers(three), strict=True))
