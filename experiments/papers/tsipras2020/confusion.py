"""Figures 12 and 27 to 31: classes and superclasses that are taken for each other."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.protocols.confusion import co_occurrence, confusion
from bayesrep.protocols.people import People, people_beside
from bayesrep.studies.predictions import Predictions
from experiments.papers.matrices import matrices_figure
from experiments.papers.tsipras2020.helpers import as_sets, choose_rows, escape_dollars
from experiments.style import Color, panels

_PEOPLE_LABELS = "people, choosing", "people, selecting"


def superclasses(
    predictions: Predictions,
    people: People,
    groups: NDArray[np.str_],
    *,
    classifiers: Sequence[str] = (),
) -> Any:
    """Figure 12: superclasses taken for each other, and those found together."""
    names = _group_names(groups)
    confusions = _confusions(predictions, people, groups, classifiers, most=1)
    confusions["found together"] = co_occurrence(predictions, as_sets(predictions, people), groups)
    return matrices_figure(confusions, names)


def superclasses_of_several(
    predictions: Predictions,
    people: People,
    groups: NDArray[np.str_],
    *,
    classifiers: Sequence[str] = (),
) -> Any:
    """Figure 28: superclasses taken for each other by people and by up to three classifiers."""
    confusions = _confusions(predictions, people, groups, classifiers, most=3)
    return matrices_figure(confusions, _group_names(groups))


def within_superclass(
    predictions: Predictions,
    people: People,
    groups: NDArray[np.str_],
    *,
    classifiers: Sequence[str] = (),
) -> Any:
    """Figures 29 to 31: the classes of the superclass that people confuse most."""
    every = people_beside(predictions, people)
    first, own = every.first[every.classifiers.index(_PEOPLE_LABELS[0])], every.labels
    inside = (first >= 0) & (groups[first] == groups[own]) & (groups[own] != "")
    names = _group_names(groups)
    rates = []
    for name in names:
        in_group = (first >= 0) & (groups[own] == name)
        rates.append(float((inside & in_group & (first != own)).sum() / max(in_group.sum(), 1)))
    worst = names[int(np.argmax(rates))]
    members = np.where(groups == worst, np.asarray(predictions.classes), "")
    confusions = _confusions(predictions, people, members, classifiers, most=1)
    return _dots(confusions, [name for name in members.tolist() if name], f"classes of {worst}")


def classes(predictions: Predictions, people: People, *, classifiers: Sequence[str] = ()) -> Any:
    """Figure 27: all classes taken for each other, by a classifier and by people."""
    confusions = _confusions(predictions, people, None, classifiers, most=1)
    return _dots(confusions, predictions.classes, "classes")


def _dots(confusions: Mapping[str, pl.DataFrame], names: Sequence[str], what: str) -> Any:
    """Matrices of many classes: a dot for every cell, as large as its rate."""
    figure, every = panels(len(confusions))
    place, size = {name: number for number, name in enumerate(names)}, len(names)
    for axes, (title, rows) in zip(every, confusions.items(), strict=True):
        x, y = ([place[name] for name in rows[column]] for column in ("answer", "label"))
        axes.scatter(x, y, s=12 * rows["rate"].to_numpy(), color=Color.BLUE, lw=0)
        axes.set(xlim=(-1, size), ylim=(size, -1), xlabel="taken for", ylabel=what)
        axes.set_aspect("equal")
        axes.set_title(escape_dollars(title), loc="left", fontsize=10)
    return figure


def _confusions(
    predictions: Predictions,
    people: People,
    groups: NDArray[np.str_] | None,
    classifiers: Sequence[str],
    *,
    most: int,
) -> dict[str, pl.DataFrame]:
    """The confusions of the people and of some classifiers, on the images people were asked of."""
    chosen = [predictions.classifiers[row] for row in choose_rows(predictions, classifiers, most)]
    every = people_beside(predictions, people)
    columns = [name for name in _PEOPLE_LABELS if name in every.classifiers][:1] + chosen
    table = confusion(every, groups)
    return {name: table.filter(participant=name) for name in columns}


def _group_names(groups: NDArray[np.str_]) -> list[str]:
    return [name for name in dict.fromkeys(groups.tolist()) if name]
