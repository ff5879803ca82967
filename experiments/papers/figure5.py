"""Figure 5: why conditioning on observed selection frequencies is biased.

For several numbers of annotators n' (all images thinned to n' in exact expectation): (a) the
reference's distribution of counts, (b) accuracy of one classifier given the count, (c) the naive
estimate of every classifier, which sums the products of (a) and (b).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesrep.errors import OptionError
from bayesrep.estimators.naive import (
    accuracy_by_count,
    at_every_count,
    matched_accuracy,
    thinned_counts,
)
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME, Words
from experiments.papers.helpers import accuracy_axes, mark_truth, shades
from experiments.papers.study_facts import StudyFacts
from experiments.style import legend_below, panels

MIN_POINT_IMAGES = 20  # a point of (b) with fewer, in expectation, is noise and is not drawn


def numbers(facts: StudyFacts, *, classifiers: Sequence[str] = ()) -> dict[str, Any]:
    """The three panels' points for every n'."""
    if len(classifiers) > 1:
        raise OptionError("figure5-takes-one-classifier", classifier_count=len(classifiers))
    reference = facts.reference_accuracy
    median = int(np.argsort(reference, kind="stable")[len(reference) // 2])
    (column,) = facts.columns(classifiers) or [median]
    series = [_series(facts, n, column) for n in fractions(facts.annotators, 8, 4, 2, 1)]
    return {
        "median_classifier": facts.study.classifiers[median],
        "shown_classifier": facts.study.classifiers[column],
        **facts.accuracies(),
        "replication_accuracy": facts.replication_accuracy.tolist(),
        "annotators": series,
    }


def fractions(annotators: int, *parts: int) -> list[int]:
    """Several numbers of annotators: n over each of ``parts``, rounded up; ascending."""
    return sorted({-(-annotators // part) for part in parts})


def _series(facts: StudyFacts, annotators: int, column: int) -> dict[str, Any]:
    counts = at_every_count(thinned_counts(facts.matched_cells, annotators))
    accuracy, observed = accuracy_by_count(counts)
    adjusted = matched_accuracy(counts)[0]
    conditional = np.where(observed[0], accuracy[0, :, column], np.nan)
    return {
        "annotators": annotators,
        "shares": (counts.reference[0] / counts.reference.sum()).tolist(),
        "accuracy": [None if np.isnan(value) else float(value) for value in conditional],
        "images": counts.replication[0].tolist(),
        "adjusted_accuracy": adjusted.tolist(),
        "mean_gap": float((facts.reference_accuracy - adjusted).mean()),
    }


def draw(data: dict[str, Any], words: Words = VOCABULARY_OF_NAME["images"]) -> Any:
    """Three panels, a shade for each n'."""
    figure, (density, curve, scatter) = panels(3)
    reference = np.array(data["reference_accuracy"])
    accuracy_axes(scatter, reference)
    for series, color in zip(data["annotators"], shades(len(data["annotators"])), strict=True):
        n = series["annotators"]
        frequency = 100 * np.arange(n + 1) / n
        line = {
            "color": color,
            "label": f"{n} {words.annotators}",
            "marker": "o",
            "ms": 3,
            "lw": 1.2,
        }
        density.plot(frequency, np.array(series["shares"]) * (n + 1), **line)
        enough = np.array(series["images"]) >= MIN_POINT_IMAGES
        curve.plot(frequency[enough], 100 * np.array(series["accuracy"], float)[enough], **line)
        points = {**line, "lw": 0, "ms": 2.2}
        scatter.plot(100 * reference, 100 * np.array(series["adjusted_accuracy"]), **points)
    mark_truth(scatter, data)
    title = f"(a) reference: share of {words.images} × (n' + 1)"
    density.set_title(title, loc="left", fontsize=10)
    density.set_ylabel("density")
    name = data["shown_classifier"]  # a $ in it is not mathematics
    curve.set_title(f"(b) replication: {name}", loc="left", fontsize=10, parse_math=False)
    curve.set_ylabel("accuracy (%)")
    for axes in (density, curve):
        axes.set_xlabel("observed selection frequency k'/n' (%)")
    title = f"(c) naive estimate, all {words.classifiers}"
    scatter.set_title(title, loc="left", fontsize=10)
    legend_below(figure)
    return figure
