"""The figures of Anzaku et al. (2022): accuracy by confidence, and matched accuracy.

All are drawn of the classifiers' answers with their probabilities on both data sets. Figures 3 and
4, and 6 and 7, differ in the pair of data sets alone, figures 5 and 8 in the classifier.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import OptionError, StudyError
from bayesrep.protocols.matched import MATCH_ON, MatchedAccuracy, match
from bayesrep.studies.predictions import Predictions
from bayesrep.types import Floats
from experiments.style import Color, legend_below, panels

SUBSET_LOOKS = (
    ("all", "-", Color.INK),
    ("matched", "--", Color.BLUE),
    ("unmatched", ":", Color.RED),
)


def scatter(both: Sequence[Predictions]) -> Any:
    """Figure 1: accuracy against mean confidence, a point for each classifier and data set."""
    return confidence_scatter(match(*both, runs=1, progress=False).confidence)


def _over_classifiers(criterion: str) -> Any:
    def draw(
        both: Sequence[Predictions],
        *,
        epsilon: float = 0.005,
        runs: int = 10,
        seed: int = 0,
        progress: bool = False,
    ) -> Any:
        accuracies = match(*both, epsilon=epsilon, runs=runs, seed=seed, progress=progress)
        return matched_accuracy_figure(accuracies.accuracies, criterion)

    return draw


by_label, by_probability = map(_over_classifiers, MATCH_ON)
"""Figures 3 and 4 (algorithm 1), and 6 and 7 (algorithm 2)."""


def one_classifier(
    both: Sequence[Predictions],
    *,
    classifiers: Sequence[str] = (),
    epsilon: float = 0.005,
    runs: int = 10,
    seed: int = 0,
) -> Any:
    """Figures 5 and 8: curves and densities of one classifier, by default the most accurate."""
    if len(classifiers) > 1:
        raise OptionError("figure-of-one-classifier", classifier_count=len(classifiers))
    best = both[0].classifiers[int(both[0].correct.mean(axis=1).argmax())]
    name = classifiers[0] if classifiers else best
    if name not in both[0].classifiers:
        some = ", ".join(both[0].classifiers[:5])
        raise StudyError("figure-classifier-unknown", classifier=name, choices=some)
    alone = [select_classifier(each, name) for each in both]
    accuracies: MatchedAccuracy = match(
        *alone, epsilon=epsilon, runs=runs, seed=seed, progress=False
    )
    return confidence_figure(accuracies.curves, name, MATCH_ON[0])


def select_classifier(data: Predictions, name: str) -> Predictions:
    """The answers of one classifier."""
    row = [data.classifiers.index(name)]
    confidence = None if data.confidence is None else data.confidence[row]
    return Predictions(
        data.dataset, data.images, data.classes, data.labels, (name,), data.answers[row], confidence
    )


def matched_accuracy_figure(accuracies: pl.DataFrame, criterion: str) -> Any:
    """Accuracies on all and on matched images, and their differences, over classifiers."""
    rows = accuracies.filter(pl.col("criterion") == criterion)
    wide = rows.pivot("quantity", index="classifier", values=["estimate", "lower", "upper"])
    wide = wide.sort("estimate_reference_accuracy")
    figure, (left_axes, right) = panels(2)
    place = np.arange(len(wide))
    dots = {"marker": "o", "ms": 3} if len(wide) < 40 else {}

    def column(name: str) -> Floats:
        return 100 * wide[name].to_numpy().astype(float)

    # Left: accuracies on all images and on the matched ones.
    for role, color in (("reference", Color.BLUE), ("replication", Color.RED)):
        left_axes.plot(place, column(f"estimate_{role}_accuracy"), color=color, label=role, **dots)
        matched = column(f"estimate_matched_{role}_accuracy")
        left_axes.plot(place, matched, color=color, ls="--", label=f"{role}, matched", **dots)
    left_axes.set_ylabel("accuracy (%)")
    # Right: the gaps before and after matching, with their intervals.
    for name, color, label in (
        ("gap", Color.INK, "gap"),
        ("matched_gap", Color.GREEN, "matched gap"),
    ):
        right.plot(place, column(f"estimate_{name}"), color=color, label=label, **dots)
        ends = column(f"lower_{name}"), column(f"upper_{name}")
        right.fill_between(place, *ends, color=color, alpha=0.18, lw=0)
    right.axhline(0, color=Color.GREY, lw=0.8)
    right.set_ylabel("difference of accuracies (%)")
    # On an axis of its own: the share of images that found no partner.
    twin = right.twinx()
    unmatched = column("estimate_fraction_unmatched")
    twin.plot(place, unmatched, color=Color.PURPLE, ls=":", label="unmatched", **dots)
    twin.set_ylabel("images without a match (%)")
    twin.set_ylim(0, None)
    twin.spines[["top"]].set_visible(False)
    for axes in (left_axes, right):
        axes.set_xlabel("classifiers by accuracy on the reference")
        axes.xaxis.get_major_locator().set_params(integer=True)
    legend_below(figure)
    return figure


def confidence_figure(curves: pl.DataFrame, classifier: str, criterion: str) -> Any:
    """Accuracy and density by confidence, on all, matched and unmatched images of both sets."""
    chosen = curves.filter(pl.col("classifier") == classifier, pl.col("criterion") == criterion)
    figure, axes = panels(2)
    axes[0].plot([0, 1], [0, 100], color=Color.GREY, lw=1, ls="--", label="calibrated")
    for role, marker in (("reference", "o"), ("replication", "s")):
        for subset, style, color in SUBSET_LOOKS:
            rows = chosen.filter(pl.col("dataset") == role, pl.col("subset") == subset)
            label = f"{role}, {subset}"
            look = {"marker": marker, "ms": 3, "ls": style, "color": color, "lw": 1.2}
            look["mfc"] = color if role == "reference" else "white"
            axes[0].plot(rows["confidence"], 100 * rows["accuracy"], label=label, **look)
            axes[1].plot((rows["low"] + rows["high"]) / 2, rows["density"], label=label, **look)
    for each in axes:
        each.set_xlabel("confidence")
    axes[0].set_ylabel("accuracy (%)")
    axes[1].set_ylabel("density")
    axes[1].set_yscale("log")
    legend_below(figure, columns=4)
    return figure


def confidence_scatter(confidence: pl.DataFrame) -> Any:
    """Accuracy against mean confidence, a point for each classifier and data set."""
    figure, (axes,) = panels(1)
    for role, color in (("reference", Color.BLUE), ("replication", Color.RED)):
        rows = confidence.filter(pl.col("dataset") == role)
        x, y = 100 * rows["confidence"].to_numpy(), 100 * rows["accuracy"].to_numpy()
        axes.plot(x, y, "o", ms=4, color=color, label=role)
    ends = np.array(axes.get_xlim())
    axes.plot(ends, ends, color=Color.GREY, lw=1, ls="--", label="calibrated", zorder=1)
    axes.set(xlabel="mean confidence (%)", ylabel="accuracy (%)")
    legend_below(figure)
    return figure
