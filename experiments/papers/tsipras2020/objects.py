"""Figures 3 to 6, 18 and 20 to 22: the objects that people see, and which is the main one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import StudyError
from bayesrep.protocols.confusion import co_occurrence
from bayesrep.protocols.intervals import proportion_interval
from bayesrep.protocols.people import People
from bayesrep.protocols.people_shares import (
    TOP_K,
    compare_labels_with_people,
    compare_predictions_with_people,
)
from bayesrep.report.pictures import Pictures
from bayesrep.studies.predictions import Predictions
from bayesrep.types import Bools, Floats
from experiments.papers.tsipras2020.helpers import (
    FIGURE_ROWS,
    MIN_CLASS_IMAGES,
    as_sets,
    escape_dollars,
    in_words,
    objects_of,
)
from experiments.style import Color, legend_below, panels


def _draw_object_numbers(axes: Any, table: pl.DataFrame) -> None:
    """Shares of images with one object, two and more, of `compare_labels_with_people`, as bars."""
    rows = table.filter(figure="3a")
    share, low, high = (100 * rows[name].to_numpy() for name in ("share", "lower", "upper"))
    axes.bar(["1", "2", "3 or more"], share, color=Color.BLUE, width=0.7)
    axes.errorbar(range(3), share, [share - low, high - share], fmt="none", color=Color.INK, lw=1)
    axes.set(xlabel="objects", ylabel="images (%)")


def _draw_against_top1(
    axes: Any, predictions: Predictions, table: pl.DataFrame, columns: Sequence[tuple[str, str]]
) -> None:
    """Statistics of every classifier with intervals, against its top-1 accuracy."""
    right = (predictions.correct & predictions.answered).sum(axis=1)
    top1 = 100 * right / predictions.answered.sum(axis=1).clip(1)
    for text, color in columns:
        rows = table.filter(statistic=text)
        share, low, high = (
            100 * rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
            for name in ("share", "lower", "upper")
        )
        ends = [share - low, high - share]
        axes.errorbar(top1, share, ends, fmt="o", ms=3, lw=0.7, color=color, label=text)
    axes.set(xlabel="top-1 accuracy on all images (%)", ylabel="share (%)")


def objects_and_pairs(predictions: Predictions, people: People) -> Any:
    """Figure 3: objects of an image, and the classes whose images often show another object."""
    figure, (left_axes, right) = panels(2)
    _draw_object_numbers(left_axes, compare_labels_with_people(predictions, people))
    left_axes.set_title("(a)", loc="left", fontsize=10)
    pairs = co_occurrence(predictions, as_sets(predictions, people)).filter(
        pl.col("images") >= MIN_CLASS_IMAGES
    )
    first = pairs.sort("lower", descending=True).unique("label", maintain_order=True)
    words = in_words(predictions.classes)
    named = first.head(FIGURE_ROWS).with_columns(
        pl.col("label", "answer").replace_strict(words), share="rate"
    )
    _bars(right, named, "{label}, with {answer}")
    right.set(xlabel="images of the class that also show it (%)")
    right.set_title("(b)", loc="left", fontsize=10)
    return figure


def _bars(axes: Any, rows: pl.DataFrame, text: str) -> None:
    """Shares with intervals, the largest on top."""
    share, low, high = (100 * rows[name].to_numpy()[::-1] for name in ("share", "lower", "upper"))
    place = np.arange(len(rows))
    ends = [(share - low).clip(0), (high - share).clip(0)]
    axes.barh(place, share, color=Color.BLUE, height=0.6, xerr=ends, ecolor=Color.INK)
    names = [escape_dollars(text.format(**row)) for row in rows.reverse().iter_rows(named=True)]
    axes.set_yticks(place, names, fontsize=6)


def by_objects(predictions: Predictions, people: People) -> Any:
    """Figure 4: (a) top-1 on images of several objects and of one; (b) right by any of several.

    Where there is one object its label is the own one: what most people call it may be another
    name, which is not another object.
    """
    table = compare_predictions_with_people(predictions, people)
    figure, every = panels(2)
    one = "one object: right by the own label", Color.INK
    several = "several objects: right by the own label", "several objects: right by any object"
    for axes, letter, text in zip(every, "ab", several, strict=True):
        _draw_against_top1(
            axes, predictions, table, [(text, Color.RED if letter == "a" else Color.BLUE), one]
        )
        axes.set_title(f"({letter})", loc="left", fontsize=10)
    legend_below(figure, columns=2)
    return figure


def main_objects(
    predictions: Predictions, people: People, pictures: Pictures | None = None, *, seed: int = 0
) -> Any:
    """Figure 5: (a) the share of annotators that choose the label for the main object.

    (b) images of several objects of which the main one is another, where there are pictures.
    """
    _, number = objects_of(people)
    if people.first is None:
        raise StudyError("objects-lack-main-shown")
    assert people.main is not None
    several = number > 1
    share = people.first.values_of(predictions.labels, 0.0)[several]
    other = _another_is_main(predictions, people)
    figure, (axes, *right) = panels(1 if pictures is None else 2)
    weights = np.full(len(share), 100 / max(len(share), 1))
    axes.hist(
        share, bins=np.linspace(0, 1, 11), weights=weights, color=Color.BLUE, edgecolor="white"
    )
    axes.set(
        xlabel="share of annotators who choose the own label for the main object",
        ylabel=f"images of several objects (%; {len(share):,})",
    )
    axes.set_title(f"(a) another is the main one in {int(other.sum()):,}", loc="left", fontsize=10)
    for place in right:
        assert pictures is not None
        place.set_axis_off()
        place.set_title("(b)", loc="left", fontsize=10)
        names, words = predictions.classes, in_words(predictions.classes)
        available = [n for n in np.flatnonzero(other) if pictures.has(str(predictions.images[n]))]
        for spot, n in enumerate(np.random.default_rng(seed).permutation(available)[:4].tolist()):
            inset = place.inset_axes((0.52 * (spot % 2), 0.53 * (1 - spot // 2), 0.46, 0.4))
            inset.imshow(pictures.thumbnail(str(predictions.images[n])))
            inset.set_axis_off()
            own, main = (words[names[k]] for k in (predictions.labels[n], people.main[n]))
            inset.set_title(escape_dollars(f"label {own}\nseen as {main}"), fontsize=6)
    return figure


def _another_is_main(predictions: Predictions, people: People) -> Bools:
    """Images of several objects of which the main one is not the own label's [N]."""
    _, number = objects_of(people)
    assert people.main is not None
    assert people.object is not None
    other = people.object.values_of(people.main, 0) != people.object.values_of(
        predictions.labels, 0
    )
    return other & (number > 1)


def number_agreed(predictions: Predictions, people: People) -> Any:
    """Figure 18: the share of annotators who see so many objects as most do, by their number."""
    _, number = objects_of(people)
    if people.agreement is None:
        raise StudyError("objects-lack-agreed")
    judged = ~np.isnan(people.agreement)
    sizes = np.unique(number[judged])
    parts = [100 * people.agreement[judged & (number == size)] for size in sizes]
    figure, (axes,) = panels(1)
    lines = {"color": Color.INK, "lw": 1}
    axes.boxplot(
        parts,
        positions=sizes,
        widths=0.6,
        patch_artist=True,
        boxprops={"facecolor": Color.BLUE, "edgecolor": Color.INK, "lw": 1},
        medianprops={"color": Color.INK, "lw": 1.5},
        whiskerprops=lines,
        capprops=lines,
        flierprops={"marker": ".", "ms": 3, "markeredgecolor": Color.GREY},
    )
    names = [f"{size}\n({len(part):,})" for size, part in zip(sizes, parts, strict=True)]
    axes.set_xticks(sizes, names)
    axes.set(xlabel="objects (images)", ylabel="annotators who see so many (%)")
    return figure


def other_main(predictions: Predictions, people: People) -> Any:
    """Figure 6: accuracy where another object is the main one, and that of an object at random."""
    _, number = objects_of(people)
    other = _another_is_main(predictions, people)
    if not other.any():
        raise StudyError("no-other-main-object")
    answered = predictions.answered & other
    figure, (axes,) = panels(1)
    x = 100 * predictions.correct.mean(axis=1)
    for right, label, color in (
        (predictions.correct, "right by the own label", Color.BLUE),
        (predictions.first == people.main, "right by the main label", Color.RED),
    ):
        hits, images = (right & answered).sum(axis=1), answered.sum(axis=1)
        low, high = proportion_interval(hits, images)
        share = hits / images
        ends = 100 * np.stack([share - low, high - share]).clip(0)
        axes.errorbar(x, 100 * share, ends, fmt="o", ms=3, lw=0.7, color=color, label=label)
    chance = 100 * float((1 / number[other]).mean())
    axes.axhline(chance, color=Color.GREY, ls="--", lw=1, label="an object's label at random")
    axes.set(
        xlabel="top-1 accuracy on all images (%)",
        ylabel=f"share of images whose main object is another (%; {int(other.sum()):,})",
    )
    legend_below(figure)
    return figure


def _of_classes(predictions: Predictions, is_so: Bools, subset: Bools) -> tuple[Floats, Floats]:
    """Images [K] of each class that count, and of how many of them it is so."""
    size = len(predictions.classes)
    labels = predictions.labels
    return (
        np.bincount(labels[subset], minlength=size).astype(float),
        np.bincount(labels[subset & is_so], minlength=size).astype(float),
    )


def other_main_classes(predictions: Predictions, people: People) -> Any:
    """Figure 20: classes whose main label is often another, and the classifiers' accuracy there."""
    _, number = objects_of(people)
    assert people.main is not None
    judged = number > 0
    images, other = _of_classes(predictions, people.main != predictions.labels, judged)
    return _worst_classes(predictions, images, other, judged, "main label is another")


def co_occurring_classes(predictions: Predictions, people: People) -> Any:
    """Figure 21: classes whose images show several objects, with the classifiers' accuracy."""
    _, number = objects_of(people)
    judged = number > 0
    images, several = _of_classes(predictions, number > 1, judged)
    return _worst_classes(predictions, images, several, judged, "several objects")


def _worst_classes(
    predictions: Predictions, images: Floats, so: Floats, judged: Bools, label: str
) -> Any:
    correct = predictions.correct[:, judged].mean(axis=0)
    right = np.bincount(predictions.labels[judged], correct, minlength=len(predictions.classes))
    with np.errstate(invalid="ignore", divide="ignore"):
        share, accuracy = 100 * so / images, 100 * right / images
    order = np.lexsort((accuracy, -np.where(images >= MIN_CLASS_IMAGES, share, -1)))[:FIGURE_ROWS]
    order = order[images[order] >= MIN_CLASS_IMAGES]
    figure, (axes,) = panels(1)
    y = np.arange(len(order))[::-1]
    axes.barh(y + 0.2, share[order], 0.35, color=Color.BLUE, label=label)
    axes.barh(
        y - 0.2, accuracy[order], 0.35, color=Color.RED, label="accuracy, mean of classifiers"
    )
    words = in_words(predictions.classes)
    names = [escape_dollars(words[predictions.classes[k]]) for k in order]
    axes.set_yticks(y, names, fontsize=6)
    axes.set(xlabel="images of the class (%)")
    legend_below(figure)
    return figure


def top5(predictions: Predictions, people: People) -> Any:
    """Figure 22: top-1, top-5 and any object on images of several, and what top-5 corrects."""
    _, number = objects_of(people)
    table = compare_predictions_with_people(predictions, people)
    figure, (left_axes, right) = panels(2)
    several = number > 1
    x = 100 * predictions.correct.mean(axis=1)
    five = 100 * predictions.correct_within(TOP_K)[:, several].mean(axis=1)
    left_axes.plot(x, five, "o", ms=3, color=Color.GREEN, label="several objects: top-5")
    columns = [
        ("several objects: right by any object", Color.BLUE),
        ("several objects: right by the own label", Color.RED),
    ]
    _draw_against_top1(left_axes, predictions, table, columns)
    _draw_against_top1(
        right, predictions, table, [("top-5 corrections that are two objects", Color.INK)]
    )
    legend_below(figure, columns=2)
    return figure
