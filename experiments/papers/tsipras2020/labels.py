"""Figures 7 to 11, 13, 23 and 24: labels that people select, and what classifiers answer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError
from bayesrep.protocols.people import LabelValues, People, own_and_other
from bayesrep.studies.predictions import Predictions
from experiments.papers.tsipras2020.helpers import (
    FIGURE_ROWS,
    MIN_CLASS_IMAGES,
    choose_rows,
    escape_dollars,
    frequency_of,
    in_words,
    name_classifier,
    objects_of,
)
from experiments.style import Color, legend_below, panels


def labels_selected(predictions: Predictions, people: People) -> Any:
    """Figure 7: labels that are selected as often as the own one, or so many times as often."""
    frequency_of(people)
    figure, (axes,) = panels(1)
    _often_selected(axes, predictions, people)
    legend_below(figure, columns=2)
    return figure


def _often_selected(axes: Any, predictions: Predictions, people: People) -> None:
    freq, own = frequency_of(people), predictions.labels
    mine, _ = own_and_other(freq, own)
    judged = np.flatnonzero(mine > 0)
    for share, color in ((0.5, Color.BLUE), (0.75, Color.GREEN), (1.0, Color.RED)):
        often = freq.values >= share * mine[freq.image]
        labels = np.bincount(freq.image[often & (freq.values > 0)], minlength=len(own))[judged]
        counted = np.bincount(labels, minlength=2)[1:]
        place = np.arange(1, len(counted) + 1)
        label = f"at least {100 * share:.0f} % as often as the own label"
        axes.plot(place, 100 * counted / max(len(judged), 1), "o-", ms=3, color=color, label=label)
    axes.set(xlabel="labels that are selected, the own one among them", ylabel="images (%)")
    axes.xaxis.get_major_locator().set_params(integer=True)


def labels_and_objects(predictions: Predictions, people: People) -> Any:
    """Figure 8: (a) labels that two or more annotators select against the objects that they see.

    (b) labels that two or more give to the main object, against how many they could choose from.

    What is published holds the labels that anybody chose, not all that were there to choose from:
    of it (b) cannot be drawn, and its place says so.
    """
    frequency_of(people)
    presented = _count_presented_labels(predictions, people)
    figure, (left_axes, right) = panels(2)
    _selected_against_objects(left_axes, predictions, people, least=2)
    if presented is None:
        right.set_axis_off()
        right.text(
            0.5, 0.5, _NOT_PRESENTED_NOTE, ha="center", va="center", fontsize=8, color=Color.GREY
        )
    else:
        _main_against_presented(right, people, presented)
    for axes, letter in ((left_axes, "a"), (right, "b")):
        axes.set_title(f"({letter})", loc="left", fontsize=10)
    return figure


_NOT_PRESENTED_NOTE = (
    "not drawn: the table of objects\nhas only the labels that somebody chose,\n"
    "not all that there were to choose from"
)


def _count_presented_labels(predictions: Predictions, people: People) -> NDArray[np.int64] | None:
    """Count the labels that annotators could choose from [N]; None if unknown."""
    if people.mains is None or people.chosen is None:
        return None
    mains = people.mains
    chosen = people.chosen.values[np.isin(people.chosen.keys, mains.keys)]
    if not ((chosen == 0) & (mains.label != predictions.labels[mains.image])).any():
        return None
    return np.bincount(mains.image, minlength=len(predictions.images))


def _main_against_presented(axes: Any, people: People, presented: NDArray[np.int64]) -> None:
    assert people.mains is not None
    mains = people.mains
    labels = np.bincount(mains.image[mains.values >= 2], minlength=len(presented))
    judged = presented > 0
    _dots_of_cells(axes, presented[judged], labels[judged])
    axes.set(
        xlabel="labels to choose from", ylabel="labels that two or more give to the main object"
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)


def _selected_against_objects(
    axes: Any, predictions: Predictions, people: People, *, least: int
) -> None:
    """Dots by how many images have so many labels, and objects on average in halves."""
    frequency, size = frequency_of(people), len(predictions.images)
    _, number = objects_of(people)
    assert people.shown is not None
    seen_by = number.astype(float) if people.mean_objects is None else people.mean_objects
    enough = np.rint(frequency.values * people.shown.values) >= least
    labels = np.bincount(frequency.image[enough], minlength=size)
    both = (number > 0) & ~np.isnan(seen_by) & (np.bincount(frequency.image, minlength=size) > 0)
    _dots_of_cells(axes, np.rint(2 * seen_by[both]) / 2, labels[both])
    who = "anybody selects" if least == 1 else "two or more select"
    axes.set(xlabel="objects that annotators see (mean)", ylabel=f"labels that {who}")
    axes.yaxis.get_major_locator().set_params(integer=True)


def _dots_of_cells(axes: Any, x: NDArray[Any], y: NDArray[Any]) -> None:
    cells, sizes = np.unique(np.stack([x, y]), axis=1, return_counts=True)
    area = 300 * sizes / max(sizes.max(initial=1), 1)
    axes.scatter(*cells, s=np.maximum(area, 2), color=Color.BLUE, alpha=0.7, lw=0)


def draw_with_fewer_annotators(
    predictions: Predictions, people: People, *, annotators: int = 5, seed: int = 0
) -> Any:
    """Figure 23: figures 7 and 8a with fewer annotators, drawn at random from each label's.

    (b) takes labels that anybody selects, as the paper does; it is left out without objects.
    """
    frequency_of(people)
    fewer = draw_annotators(people, annotators, seed=seed)
    figure, (left_axes, *right) = panels(1 if people.number is None else 2)
    _often_selected(left_axes, predictions, fewer)
    left_axes.set_title(f"(a) {annotators} annotators", loc="left", fontsize=10)
    for axes in right:
        _selected_against_objects(axes, predictions, fewer, least=1)
        axes.set_title("(b)", loc="left", fontsize=10)
    legend_below(figure, columns=2)
    return figure


def draw_annotators(people: People, annotators: int, *, seed: int) -> People:
    """At most so many annotators of each label, drawn without replacement.

    Annotators of an image's labels are not the same people: labels are asked about in grids of
    their own. So each label's are drawn alone (hypergeometrically); labels that fewer were asked
    about keep all of theirs.
    """
    if people.frequency is None or people.shown is None:
        raise StudyError("drawn-annotators-need-counts")
    if annotators < 1:
        raise StudyError("drawn-annotators-below-one", annotators=annotators)
    frequency, n = people.frequency, people.shown.values
    selected, fewer = np.rint(frequency.values * n).astype(np.int64), np.minimum(n, annotators)
    resampled = np.random.default_rng(seed).hypergeometric(selected, n - selected, fewer)
    return replace(
        people,
        frequency=LabelValues(frequency.keys, resampled / fewer, frequency.classes),
        shown=LabelValues(frequency.keys, fewer, frequency.classes),
    )


def confused_pairs(predictions: Predictions, people: People) -> Any:
    """Figure 9: pairs of classes of which people select both on images of either.

    The share of the images of both classes, about which people were asked for both labels, on which
    half or more select each of them; by its side the accuracy of the most accurate classifier.
    """
    frequency, own = frequency_of(people), predictions.labels
    size = len(predictions.classes)
    mine = frequency.values_of(own, np.nan)[frequency.image]
    other = (frequency.label != own[frequency.image]) & ~np.isnan(mine)
    label, second = own[frequency.image][other].astype(np.int64), frequency.label[other]
    pair = np.minimum(label, second) * size + np.maximum(label, second)
    both = (mine[other] >= 0.5) & (frequency.values[other] >= 0.5)
    keys, place = np.unique(pair, return_inverse=True)
    images, chosen = (np.bincount(place, weights) for weights in (None, both.astype(float)))
    best = int(predictions.correct.mean(axis=1).argmax())
    order = np.lexsort((-images, -chosen / images))
    order = order[images[order] >= MIN_CLASS_IMAGES][:FIGURE_ROWS]
    names = list(in_words(predictions.classes).values())
    rows = [
        (
            f"{names[keys[k] // size]}, {names[keys[k] % size]}",
            chosen[k] / images[k],
            float(predictions.correct[best][np.isin(own, divmod(int(keys[k]), size))].mean()),
        )
        for k in order
    ]
    figure, (axes,) = panels(1)
    y = np.arange(len(rows))[::-1]
    axes.barh(
        y + 0.2, [100 * row[1] for row in rows], 0.35, color=Color.BLUE, label="people select both"
    )
    accuracy = [100 * row[2] for row in rows]
    label = f"right by {escape_dollars(predictions.classifiers[best])}"
    axes.barh(y - 0.2, accuracy, 0.35, color=Color.RED, label=label)
    axes.set_yticks(y, [escape_dollars(row[0]) for row in rows], fontsize=6)
    axes.set(xlabel="images of either class (%)")
    legend_below(figure)
    return figure


def draw_assessment(predictions: Predictions, people: People) -> Any:
    """Figure 10: how often people select the prediction, and the own label, by accuracy."""
    panels_of = [
        (title, values)
        for title, values in (
            ("(a) selected as contained", people.frequency),
            ("(b) chosen for the main object", people.first),
        )
        if values is not None
    ]
    if not panels_of:
        raise StudyError("figure-needs-counts-or-main")
    figure, every = panels(len(panels_of))
    x = 100 * predictions.correct.mean(axis=1)
    for axes, (title, values) in zip(every, panels_of, strict=True):
        judged = np.bincount(values.image, minlength=len(predictions.images)) > 0
        shares = values.values_of(predictions.first, 0.0)[:, judged]
        error = 100 * shares.std(axis=1) / np.sqrt(max(judged.sum(), 1))
        mean = 100 * shares.mean(axis=1)
        axes.errorbar(
            x, mean, 1.96 * error, fmt="o", ms=3, lw=0.7, color=Color.BLUE, label="predictions"
        )
        own = 100 * values.values_of(predictions.labels, 0.0)[judged].mean()
        axes.axhline(own, color=Color.INK, ls="--", lw=1, label="the data set's labels")
        axes.set(xlabel="top-1 accuracy (%)", ylabel="annotators who do (%)")
        axes.set_title(title, loc="left", fontsize=10)
    legend_below(figure)
    return figure


def mistakes(predictions: Predictions, people: People, *, classifiers: Sequence[str] = ()) -> Any:
    """Figure 11: how often people select what classifiers predict and the data set does not say."""
    frequency = frequency_of(people)
    judged = np.bincount(frequency.image, minlength=len(predictions.images)) > 0
    figure, (axes,) = panels(1)
    bins = np.linspace(0, 1, 11)
    for row, color in zip(
        choose_rows(predictions, classifiers, 3), (Color.BLUE, Color.GREEN, Color.RED), strict=False
    ):
        wrong = judged & predictions.answered[row] & ~predictions.correct[row]
        values = frequency.values_of(predictions.first[row], 0.0)[wrong]
        shares = 100 * np.histogram(values, bins)[0] / max(len(values), 1)
        axes.stairs(shares, bins, color=color, lw=1.5, label=name_classifier(predictions, row))
    axes.set(xlabel="selection frequency of the prediction", ylabel="wrong predictions (%)")
    legend_below(figure)
    return figure


def candidates(predictions: Predictions, *, classifiers: Sequence[str] = ()) -> Any:
    """Figure 13: labels of an image among the five first answers of classifiers, with its own."""
    names = classifiers or predictions.classifiers
    rows = choose_rows(predictions, names, len(names))
    labels = label_numbers(predictions, rows)
    figure, (axes,) = panels(1)
    counted = np.bincount(labels)
    axes.bar(np.arange(len(counted)), 100 * counted / len(labels), color=Color.BLUE)
    axes.axvline(labels.mean(), color=Color.INK, ls="--", lw=1, label=f"mean {labels.mean():.1f}")
    axes.set(
        xlabel=f"labels of an image (five first answers of {len(rows)} classifiers, own label)",
        ylabel="images (%)",
    )
    legend_below(figure)
    return figure


def label_numbers(predictions: Predictions, rows: Sequence[int]) -> NDArray[np.int64]:
    """Count each image's [N] labels among the answers of some classifiers, and its own."""
    answers = predictions.answers[np.asarray(rows)].transpose(1, 0, 2)
    every = np.column_stack([answers.reshape(len(answers), -1), predictions.labels])
    every = np.sort(every, axis=1)
    new = np.column_stack([every[:, 0] >= 0, np.diff(every, axis=1) > 0])
    return new.sum(axis=1) - (new[:, 1:] & (every[:, 1:] < 0)).sum(axis=1)


def by_class(predictions: Predictions, people: People, *, classifiers: Sequence[str] = ()) -> Any:
    """Figure 24: accuracy of a classifier on each class by the selection frequency of the class."""
    mine = frequency_of(people).values_of(predictions.labels, np.nan)
    judged = ~np.isnan(mine)
    size = len(predictions.classes)
    (row,) = choose_rows(predictions, classifiers, 1)
    labels = predictions.labels[judged]
    images = np.bincount(labels, minlength=size)
    some = images > 0
    frequency = np.bincount(labels, mine[judged], minlength=size)[some] / images[some]
    right = np.bincount(labels, predictions.correct[row][judged], minlength=size)[some]
    figure, (axes,) = panels(1)
    axes.plot(100 * frequency, 100 * right / images[some], "o", ms=3, color=Color.BLUE, alpha=0.6)
    axes.set(
        xlabel="mean selection frequency of the class's own label (%)",
        ylabel=f"accuracy of {name_classifier(predictions, row)} (%)",
    )
    return figure
