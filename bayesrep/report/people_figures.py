"""Figures of what people see on the images, and of what they make of classifiers' predictions."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from bayesrep.protocols.people import People, own_and_other
from bayesrep.protocols.people_shares import (
    compare_labels_with_people,
    compare_predictions_with_people,
)
from bayesrep.report.style import Color, legend_below, panels
from bayesrep.studies.predictions import Predictions

_DIFF_BINS = np.linspace(-1, 1, 21)
_MOST_MARKED = 4


def people_figure(predictions: Predictions, people: People) -> Any:
    """Draw Tsipras et al. (2020), figures 3a, 7 and 8, as far as the tables go, and all shares."""
    table = compare_labels_with_people(predictions, people)
    several, has_frequency = people.number is not None, people.frequency is not None
    draws = [partial(draw_object_numbers, table=table)] if several else []
    if has_frequency:
        draws.append(partial(_draw_beside_others, predictions=predictions, people=people))
        draws += [partial(_labels, people=people)] if several else []
    draws.append(partial(_shares, table=table))
    figure, axes = panels(len(draws), rows=-(-len(draws) // 2))
    for panel, draw in zip(axes, draws, strict=True):
        draw(panel)
    return figure


def draw_object_numbers(axes: Any, table: pl.DataFrame) -> None:
    """Shares of images with one object, two and more, of `compare_labels_with_people`, as bars."""
    rows = table.filter(figure="3a")
    share, low, high = (100 * rows[name].to_numpy() for name in ("share", "lower", "upper"))
    axes.bar(["1", "2", "3 or more"], share, color=Color.BLUE, width=0.7)
    axes.errorbar(range(3), share, [share - low, high - share], fmt="none", color=Color.INK, lw=1)
    axes.set(xlabel="objects", ylabel="images (%)")


def _draw_beside_others(axes: Any, predictions: Predictions, people: People) -> None:
    freq = people.frequency
    assert freq is not None
    mine, best = own_and_other(freq, predictions.labels)
    less = mine - best
    less = less[~np.isnan(less)]
    weights = np.full(len(less), 100 / max(len(less), 1))
    axes.hist(less, bins=_DIFF_BINS, weights=weights, color=Color.BLUE)
    axes.axvline(0, color=Color.GREY, lw=1)
    axes.set(xlabel="selection frequency: own label's − best other's", ylabel="images (%)")


def _labels(axes: Any, people: People) -> None:
    freq, number = people.frequency, people.number
    assert freq is not None
    assert number is not None
    judged = np.bincount(freq.image, minlength=len(number)) > 0
    labels = np.bincount(freq.image[freq.values > 0], minlength=len(number))
    one = (number == 1, "one object", Color.BLUE)
    for which, name, color in (one, (number > 1, "several", Color.RED)):
        counted = np.bincount(labels[judged & which])
        ticks = np.arange(len(counted))
        axes.plot(ticks, 100 * counted / max(counted.sum(), 1), "o-", ms=3, color=color, label=name)
    axes.set(xlabel="labels that anybody selects", ylabel="images (%)")
    axes.legend(frameon=False)


def _shares(axes: Any, table: pl.DataFrame) -> None:
    rows = table.filter(pl.col("figure") != "3a").reverse()
    share, low, high = (100 * rows[name].to_numpy() for name in ("share", "lower", "upper"))
    ends, places = [share - low, high - share], np.arange(len(rows))
    axes.errorbar(share, places, xerr=ends, fmt="o", ms=3, color=Color.INK, lw=1)
    axes.set_yticks(places, rows["statistic"].to_list(), fontsize=6)
    axes.set(xlabel="images (%)", xlim=(0, None))


def top1_accuracy(predictions: Predictions) -> pl.DataFrame:
    """Share of every classifier's answers that are right: `classifier`, `top-1`."""
    right = (predictions.correct & predictions.answered).sum(axis=1)
    shares = right / predictions.answered.sum(axis=1).clip(1)
    return pl.DataFrame({"classifier": predictions.classifiers, "top-1": shares})


def draw_against_top1(
    axes: Any, predictions: Predictions, table: pl.DataFrame, columns: Sequence[tuple[str, str]]
) -> None:
    """Statistics of every classifier with intervals, against its top-1 accuracy."""
    top1 = dict(top1_accuracy(predictions).rows())
    for text, color in columns:
        rows = table.filter(statistic=text)
        x = np.array([100 * top1[name] for name in rows["classifier"]])
        share, low, high = (
            100 * rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
            for name in ("share", "lower", "upper")
        )
        ends = [share - low, high - share]
        axes.errorbar(x, share, ends, fmt="o", ms=3, lw=0.7, color=color, label=text)
    axes.set(xlabel="top-1 accuracy on all images (%)", ylabel="share (%)")


def judged_figure(predictions: Predictions, people: People) -> Any:
    """Draw every classifier by what people see: Tsipras et al. (2020), figures 4, 10, 11 and 22."""
    table = compare_predictions_with_people(predictions, people)
    parts = [
        [(text, color) for text, color in part if text in set(table["statistic"])]
        for part in (_BY_OBJECTS, _MISTAKE_LABELS)
    ]
    parts = [part for part in parts if part]
    figure, axes = panels(len(parts))
    for panel, part in zip(axes, parts, strict=True):
        draw_against_top1(panel, predictions, table, part[:_MOST_MARKED])
    legend_below(figure, columns=2)
    return figure


_BY_OBJECTS = (
    ("one object: right by the own label", Color.INK),
    ("several objects: right by the own label", Color.RED),
    ("several objects: right by any object", Color.BLUE),
)
_MISTAKE_LABELS = (
    ("mistakes selected as often as the own label", Color.RED),
    ("mistakes selected by half or more", Color.BLUE),
    ("top-5 corrections that are two objects", Color.GREEN),
)
