"""The figures of Tsipras et al. (2020) that rest on tables: of objects, of counts, of answers.

What people see is in the tables of `bayesrep collect objects` and `collect read --counts`; each
figure's number is the paper's. Figures 1, 17, 19, 25 and 26 are photographs: see `gallery`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.collect.wordnet import descriptions
from bayesrep.errors import OptionError, StudyError
from bayesrep.protocols.confusion import co_occurrence, confusion
from bayesrep.protocols.intervals import proportion_interval
from bayesrep.protocols.label_sets import LabelSets
from bayesrep.protocols.people import (
    TOP,
    OfLabels,
    People,
    judged,
    own_and_other,
    people_beside,
    seen,
)
from bayesrep.report.figures import BLUE, GREEN, GREY, INK, RED, legend_below, panels
from bayesrep.report.gallery import Pictures
from bayesrep.report.matrices import matrices_figure
from bayesrep.report.people import top1_accuracy
from bayesrep.studies.imagenet import synsets
from bayesrep.studies.predictions import Predictions
from bayesrep.types import Bools, Floats

SHOWN_ROWS = 15  # pairs or classes, as in figure 3b
FEWEST = 3  # images of a class, so that a share of them says something
_PEOPLE = "people, choosing", "people, selecting"


def objects(predictions: Predictions, people: People) -> Any:
    """Figure 3: objects of an image, and the classes whose images often show another object."""
    rows = seen(predictions, people).filter(figure="3a")
    figure, (left, right) = panels(2)
    share, low, high = (100 * rows[name].to_numpy() for name in ("share", "lower", "upper"))
    left.bar(["1", "2", "3 or more"], share, color=BLUE, width=0.7)
    left.errorbar(range(3), share, [share - low, high - share], fmt="none", color=INK, lw=1)
    left.set(xlabel="objects", ylabel="images (%)")
    left.set_title("(a)", loc="left", fontsize=10)
    pairs = co_occurrence(predictions, _as_sets(predictions, people)).filter(
        pl.col("images") >= FEWEST
    )
    first = pairs.sort("lower", descending=True).unique("label", maintain_order=True)
    words = in_words(predictions.classes)
    named = first.head(SHOWN_ROWS).with_columns(
        pl.col("label", "answer").replace_strict(words), share="rate"
    )
    _bars(right, named, "{label}, with {answer}")
    right.set(xlabel="images of the class that also show it (%)")
    right.set_title("(b)", loc="left", fontsize=10)
    return figure


def _as_sets(predictions: Predictions, people: People) -> LabelSets:
    """The labels of every image's objects as right labels."""
    names, number = _objects_of(people)
    named = names.values.astype(np.bool_)
    return LabelSets(number > 0, names.image[named], names.label[named], len(predictions.classes))


def _objects_of(people: People) -> tuple[OfLabels, NDArray[np.int64]]:
    if people.names is None or people.number is None:
        raise StudyError("figure-needs-objects")
    return people.names, people.number


def _bars(axes: Any, rows: pl.DataFrame, text: str) -> None:
    """Shares with intervals, the largest on top."""
    share, low, high = (100 * rows[name].to_numpy()[::-1] for name in ("share", "lower", "upper"))
    place = np.arange(len(rows))
    ends = [(share - low).clip(0), (high - share).clip(0)]
    axes.barh(place, share, color=BLUE, height=0.6, xerr=ends, ecolor=INK)
    names = [_literal(text.format(**row)) for row in rows.reverse().iter_rows(named=True)]
    axes.set_yticks(place, names, fontsize=6)


def in_words(classes: Sequence[str]) -> dict[str, str]:
    """What to call each class: of ImageNet's numbers the first of WordNet's words."""
    if tuple(classes) != synsets():
        return {name: name for name in classes}
    known = descriptions()
    words = dict(zip(known["label"].to_list(), known["name"].to_list(), strict=True))
    return {name: str(words.get(name, name)).split(",")[0] for name in classes}


def _literal(text: str) -> str:
    """Text in which a dollar is not mathematics."""
    return text.replace("$", r"\$")


def _against_top1(
    axes: Any, predictions: Predictions, table: pl.DataFrame, shown: Sequence[tuple[str, str]]
) -> None:
    """Statistics of every classifier with intervals, against its top-1 accuracy."""
    top1 = dict(top1_accuracy(predictions).rows())
    for text, color in shown:
        rows = table.filter(statistic=text)
        x = np.array([100 * top1[name] for name in rows["classifier"]])
        share, low, high = (
            100 * rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
            for name in ("share", "lower", "upper")
        )
        ends = [share - low, high - share]
        axes.errorbar(x, share, ends, fmt="o", ms=3, lw=0.7, color=color, label=text)
    axes.set(xlabel="top-1 accuracy on all images (%)", ylabel="share (%)")


def by_objects(predictions: Predictions, people: People) -> Any:
    """Figure 4: (a) top-1 on images of several objects and of one; (b) right by any of several.

    Where there is one object its label is the own one: what most people call it may be another
    name, which is not another object.
    """
    table = judged(predictions, people)
    figure, every = panels(2)
    one = "one object: right by the own label", INK
    several = "several objects: right by the own label", "several objects: right by any object"
    for axes, letter, text in zip(every, "ab", several, strict=True):
        _against_top1(axes, predictions, table, [(text, RED if letter == "a" else BLUE), one])
        axes.set_title(f"({letter})", loc="left", fontsize=10)
    legend_below(figure, columns=2)
    return figure


def main_objects(
    predictions: Predictions, people: People, pictures: Pictures | None = None, *, seed: int = 0
) -> Any:
    """Figure 5: (a) the share of annotators that choose the label for the main object.

    (b) images of several objects of which the main one is another, where there are pictures.

    Raises
    ------
    StudyError
        Where the table of objects lacks the columns main and shown.
    """
    _, number = _objects_of(people)
    if people.first is None:
        raise StudyError("objects-lack-main-shown")
    assert people.main is not None
    several = number > 1
    share = people.first.values_of(predictions.labels, 0.0)[several]
    other = _another_is_main(predictions, people)
    figure, (axes, *right) = panels(1 if pictures is None else 2)
    weights = np.full(len(share), 100 / max(len(share), 1))
    axes.hist(share, bins=np.linspace(0, 1, 11), weights=weights, color=BLUE, edgecolor="white")
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
        shown = [n for n in np.flatnonzero(other) if pictures.has(str(predictions.images[n]))]
        for at, n in enumerate(np.random.default_rng(seed).permutation(shown)[:4].tolist()):
            inset = place.inset_axes((0.52 * (at % 2), 0.53 * (1 - at // 2), 0.46, 0.4))
            inset.imshow(pictures.thumbnail(str(predictions.images[n])))
            inset.set_axis_off()
            own, main = (words[names[k]] for k in (predictions.labels[n], people.main[n]))
            inset.set_title(_literal(f"label {own}\nseen as {main}"), fontsize=6)
    return figure


def _another_is_main(predictions: Predictions, people: People) -> Bools:
    """Images of several objects of which the main one is not the own label's [N]."""
    _, number = _objects_of(people)
    assert people.main is not None
    assert people.object is not None
    other = people.object.values_of(people.main, 0) != people.object.values_of(
        predictions.labels, 0
    )
    return other & (number > 1)


def number_agreed(predictions: Predictions, people: People) -> Any:
    """Figure 18: the share of annotators who see so many objects as most do, by their number.

    Raises
    ------
    StudyError
        Where the table of objects lacks the columns agreed, main and shown.
    """
    _, number = _objects_of(people)
    if people.agreement is None:
        raise StudyError("objects-lack-agreed")
    asked = ~np.isnan(people.agreement)
    sizes = np.unique(number[asked])
    parts = [100 * people.agreement[asked & (number == size)] for size in sizes]
    figure, (axes,) = panels(1)
    lines = {"color": INK, "lw": 1}
    axes.boxplot(
        parts,
        positions=sizes,
        widths=0.6,
        patch_artist=True,
        boxprops={"facecolor": BLUE, "edgecolor": INK, "lw": 1},
        medianprops={"color": INK, "lw": 1.5},
        whiskerprops=lines,
        capprops=lines,
        flierprops={"marker": ".", "ms": 3, "markeredgecolor": GREY},
    )
    names = [f"{size}\n({len(part):,})" for size, part in zip(sizes, parts, strict=True)]
    axes.set_xticks(sizes, names)
    axes.set(xlabel="objects (images)", ylabel="annotators who see so many (%)")
    return figure


def other_main(predictions: Predictions, people: People) -> Any:
    """Figure 6: accuracy where another object is the main one, and that of an object at random.

    Raises
    ------
    StudyError
        Where there is no such image.
    """
    _, number = _objects_of(people)
    other = _another_is_main(predictions, people)
    if not other.any():
        raise StudyError("no-other-main-object")
    answered = predictions.answered & other
    figure, (axes,) = panels(1)
    x = 100 * predictions.correct.mean(axis=1)
    for right, label, color in (
        (predictions.correct, "right by the own label", BLUE),
        (predictions.first == people.main, "right by the main label", RED),
    ):
        hits, images = (right & answered).sum(axis=1), answered.sum(axis=1)
        low, high = proportion_interval(hits, images)
        share = hits / images
        ends = 100 * np.stack([share - low, high - share]).clip(0)
        axes.errorbar(x, 100 * share, ends, fmt="o", ms=3, lw=0.7, color=color, label=label)
    chance = 100 * float((1 / number[other]).mean())
    axes.axhline(chance, color=GREY, ls="--", lw=1, label="an object's label at random")
    axes.set(
        xlabel="top-1 accuracy on all images (%)",
        ylabel=f"share of images whose main object is another (%; {int(other.sum()):,})",
    )
    legend_below(figure)
    return figure


def _frequency_of(people: People) -> OfLabels:
    if people.frequency is None:
        raise StudyError("figure-needs-counts")
    return people.frequency


def labels_selected(predictions: Predictions, people: People) -> Any:
    """Figure 7: labels that are selected as often as the own one, or so many times as often."""
    _frequency_of(people)
    figure, (axes,) = panels(1)
    _often_selected(axes, predictions, people)
    legend_below(figure, columns=2)
    return figure


def _often_selected(axes: Any, predictions: Predictions, people: People) -> None:
    of, own = _frequency_of(people), predictions.labels
    mine, _ = own_and_other(of, own)
    asked = np.flatnonzero(mine > 0)
    for share, color in ((0.5, BLUE), (0.75, GREEN), (1.0, RED)):
        often = of.values >= share * mine[of.image]
        labels = np.bincount(of.image[often & (of.values > 0)], minlength=len(own))[asked]
        counted = np.bincount(labels, minlength=2)[1:]
        place = np.arange(1, len(counted) + 1)
        label = f"at least {100 * share:.0f} % as often as the own label"
        axes.plot(place, 100 * counted / max(len(asked), 1), "o-", ms=3, color=color, label=label)
    axes.set(xlabel="labels that are selected, the own one among them", ylabel="images (%)")
    axes.xaxis.get_major_locator().set_params(integer=True)


def labels_and_objects(predictions: Predictions, people: People) -> Any:
    """Figure 8: (a) labels that two or more annotators select against the objects that they see.

    (b) labels that two or more give to the main object, against how many they could choose from.

    What is published holds the labels that anybody chose, not all that were there to choose from:
    of it (b) cannot be drawn, and its place says so.
    """
    _frequency_of(people)
    presented = _count_presented_labels(predictions, people)
    figure, (left, right) = panels(2)
    _selected_against_objects(left, predictions, people, least=2)
    if presented is None:
        right.set_axis_off()
        right.text(0.5, 0.5, _NOT_PRESENTED_NOTE, ha="center", va="center", fontsize=8, color=GREY)
    else:
        _main_against_presented(right, people, presented)
    for axes, letter in ((left, "a"), (right, "b")):
        axes.set_title(f"({letter})", loc="left", fontsize=10)
    return figure


_NOT_PRESENTED_NOTE = (
    "not drawn: the table of objects\nhas only the labels that somebody chose,\n"
    "not all that there were to choose from"
)


def _count_presented_labels(predictions: Predictions, people: People) -> NDArray[np.int64] | None:
    """How many labels annotators could choose from [N]; None where only chosen ones are known."""
    if people.mains is None or people.chosen is None:
        return None
    of = people.mains
    chosen = people.chosen.values[np.isin(people.chosen.keys, of.keys)]
    if not ((chosen == 0) & (of.label != predictions.labels[of.image])).any():
        return None
    return np.bincount(of.image, minlength=len(predictions.images))


def _main_against_presented(axes: Any, people: People, presented: NDArray[np.int64]) -> None:
    assert people.mains is not None
    of = people.mains
    labels = np.bincount(of.image[of.values >= 2], minlength=len(presented))
    asked = presented > 0
    _dots_of_cells(axes, presented[asked], labels[asked])
    axes.set(
        xlabel="labels to choose from", ylabel="labels that two or more give to the main object"
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)


def _selected_against_objects(
    axes: Any, predictions: Predictions, people: People, *, least: int
) -> None:
    """Dots by how many images have so many labels, and objects on average in halves."""
    of, size = _frequency_of(people), len(predictions.images)
    _, number = _objects_of(people)
    assert people.shown is not None
    seen_by = number.astype(float) if people.mean_objects is None else people.mean_objects
    enough = np.rint(of.values * people.shown.values) >= least
    labels = np.bincount(of.image[enough], minlength=size)
    both = (number > 0) & ~np.isnan(seen_by) & (np.bincount(of.image, minlength=size) > 0)
    _dots_of_cells(axes, np.rint(2 * seen_by[both]) / 2, labels[both])
    who = "anybody selects" if least == 1 else "two or more select"
    axes.set(xlabel="objects that annotators see (mean)", ylabel=f"labels that {who}")
    axes.yaxis.get_major_locator().set_params(integer=True)


def _dots_of_cells(axes: Any, x: NDArray[Any], y: NDArray[Any]) -> None:
    cells, sizes = np.unique(np.stack([x, y]), axis=1, return_counts=True)
    area = 300 * sizes / max(sizes.max(initial=1), 1)
    axes.scatter(*cells, s=np.maximum(area, 2), color=BLUE, alpha=0.7, lw=0)


def draw_with_fewer_annotators(
    predictions: Predictions, people: People, *, annotators: int = 5, seed: int = 0
) -> Any:
    """Figure 23: figures 7 and 8a with fewer annotators, drawn at random from each label's.

    (b) takes labels that anybody selects, as the paper does; it is left out without objects.
    """
    _frequency_of(people)
    fewer = people.with_annotators(annotators, seed=seed)
    figure, (left, *right) = panels(1 if people.number is None else 2)
    _often_selected(left, predictions, fewer)
    left.set_title(f"(a) {annotators} annotators", loc="left", fontsize=10)
    for axes in right:
        _selected_against_objects(axes, predictions, fewer, least=1)
        axes.set_title("(b)", loc="left", fontsize=10)
    legend_below(figure, columns=2)
    return figure


def confused_pairs(predictions: Predictions, people: People) -> Any:
    """Figure 9: pairs of classes of which people select both on images of either.

    The share of the images of both classes, about which people were asked for both labels, on which
    half or more select each of them; by its side the accuracy of the most accurate classifier.
    """
    of, own = _frequency_of(people), predictions.labels
    size = len(predictions.classes)
    mine = of.values_of(own, np.nan)[of.image]
    other = (of.label != own[of.image]) & ~np.isnan(mine)
    label, second = own[of.image][other].astype(np.int64), of.label[other]
    pair = np.minimum(label, second) * size + np.maximum(label, second)
    both = (mine[other] >= 0.5) & (of.values[other] >= 0.5)
    keys, place = np.unique(pair, return_inverse=True)
    images, chosen = (np.bincount(place, weights) for weights in (None, both.astype(float)))
    best = int(predictions.correct.mean(axis=1).argmax())
    order = np.lexsort((-images, -chosen / images))
    order = order[images[order] >= FEWEST][:SHOWN_ROWS]
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
    at = np.arange(len(rows))[::-1]
    axes.barh(
        at + 0.2, [100 * row[1] for row in rows], 0.35, color=BLUE, label="people select both"
    )
    accuracy = [100 * row[2] for row in rows]
    label = f"right by {_literal(predictions.classifiers[best])}"
    axes.barh(at - 0.2, accuracy, 0.35, color=RED, label=label)
    axes.set_yticks(at, [_literal(row[0]) for row in rows], fontsize=6)
    axes.set(xlabel="images of either class (%)")
    legend_below(figure)
    return figure


def draw_assessment(predictions: Predictions, people: People) -> Any:
    """Figure 10: how often people select the prediction, and the own label, by accuracy."""
    said = [
        (title, of)
        for title, of in (
            ("(a) selected as contained", people.frequency),
            ("(b) chosen for the main object", people.first),
        )
        if of is not None
    ]
    if not said:
        raise StudyError("figure-needs-counts-or-main")
    figure, every = panels(len(said))
    x = 100 * predictions.correct.mean(axis=1)
    for axes, (title, of) in zip(every, said, strict=True):
        asked = np.bincount(of.image, minlength=len(predictions.images)) > 0
        shares = of.values_of(predictions.first, 0.0)[:, asked]
        error = 100 * shares.std(axis=1) / np.sqrt(max(asked.sum(), 1))
        mean = 100 * shares.mean(axis=1)
        axes.errorbar(x, mean, 1.96 * error, fmt="o", ms=3, lw=0.7, color=BLUE, label="predictions")
        own = 100 * of.values_of(predictions.labels, 0.0)[asked].mean()
        axes.axhline(own, color=INK, ls="--", lw=1, label="the data set's labels")
        axes.set(xlabel="top-1 accuracy (%)", ylabel="annotators who do (%)")
        axes.set_title(title, loc="left", fontsize=10)
    legend_below(figure)
    return figure


def mistakes(predictions: Predictions, people: People, *, classifiers: Sequence[str] = ()) -> Any:
    """Figure 11: how often people select what classifiers predict and the data set does not say."""
    of = _frequency_of(people)
    asked = np.bincount(of.image, minlength=len(predictions.images)) > 0
    figure, (axes,) = panels(1)
    bins = np.linspace(0, 1, 11)
    for row, color in zip(
        _choose_rows(predictions, classifiers, 3), (BLUE, GREEN, RED), strict=False
    ):
        wrong = asked & predictions.answered[row] & ~predictions.correct[row]
        values = of.values_of(predictions.first[row], 0.0)[wrong]
        shares = 100 * np.histogram(values, bins)[0] / max(len(values), 1)
        axes.stairs(shares, bins, color=color, lw=1.5, label=_name_classifier(predictions, row))
    axes.set(xlabel="selection frequency of the prediction", ylabel="wrong predictions (%)")
    legend_below(figure)
    return figure


def _choose_rows(predictions: Predictions, names: Sequence[str], most: int) -> list[int]:
    """Rows of classifiers: those named, or some spread over the accuracies."""
    if strange := [name for name in names if name not in predictions.classifiers]:
        some = ", ".join(predictions.classifiers[:5])
        raise StudyError("figure-classifier-unknown", classifier=strange[0], choices=some)
    if len(names) > most:
        raise OptionError("too-many-classifiers-shown", most=most, classifier_count=len(names))
    if names:
        return [predictions.classifiers.index(name) for name in names]
    order = np.argsort(predictions.correct.mean(axis=1), kind="stable")
    wanted = np.unique(np.linspace(0, len(order) - 1, most).round().astype(int))
    return [int(order[place]) for place in wanted] if most > 1 else [int(order[-1])]


def _name_classifier(predictions: Predictions, row: int) -> str:
    accuracy = 100 * predictions.correct[row].mean()
    return f"{_literal(predictions.classifiers[row])} ({accuracy:.1f} %)"


def superclasses(
    predictions: Predictions,
    people: People,
    groups: NDArray[np.str_],
    *,
    classifiers: Sequence[str] = (),
) -> Any:
    """Figure 12: superclasses taken for each other, and those found together."""
    names = _group_names(groups)
    _, said = _said_and_matrices(predictions, people, groups, classifiers, most=1)
    said["found together"] = co_occurrence(predictions, _as_sets(predictions, people), groups)
    return matrices_figure(said, names)


def superclasses_of_several(
    predictions: Predictions,
    people: People,
    groups: NDArray[np.str_],
    *,
    classifiers: Sequence[str] = (),
) -> Any:
    """Figure 28: superclasses taken for each other by people and by up to three classifiers."""
    _, said = _said_and_matrices(predictions, people, groups, classifiers, most=3)
    return matrices_figure(said, _group_names(groups))


def within_superclass(
    predictions: Predictions,
    people: People,
    groups: NDArray[np.str_],
    *,
    classifiers: Sequence[str] = (),
) -> Any:
    """Figures 29 to 31: the classes of the superclass that people confuse most."""
    every = people_beside(predictions, people)
    row = every.classifiers.index(_PEOPLE[0])
    first, own = every.first[row], every.labels
    inside = (first >= 0) & (groups[first] == groups[own]) & (groups[own] != "")
    names = _group_names(groups)
    rates = []
    for name in names:
        of = (first >= 0) & (groups[own] == name)
        rates.append(float((inside & of & (first != own)).sum() / max(of.sum(), 1)))
    worst = names[int(np.argmax(rates))]
    members = np.where(groups == worst, np.asarray(predictions.classes), "")
    _, said = _said_and_matrices(predictions, people, members, classifiers, most=1)
    return _dots(said, [name for name in members.tolist() if name], f"classes of {worst}")


def classes(predictions: Predictions, people: People, *, classifiers: Sequence[str] = ()) -> Any:
    """Figure 27: all classes taken for each other, by a classifier and by people."""
    _, said = _said_and_matrices(predictions, people, None, classifiers, most=1)
    return _dots(said, predictions.classes, "classes")


def _dots(said: Mapping[str, pl.DataFrame], names: Sequence[str], what: str) -> Any:
    """Matrices of many classes: a dot for every cell, as large as its rate."""
    figure, every = panels(len(said))
    place, size = {name: number for number, name in enumerate(names)}, len(names)
    for axes, (title, rows) in zip(every, said.items(), strict=True):
        x, y = ([place[name] for name in rows[column]] for column in ("answer", "label"))
        axes.scatter(x, y, s=12 * rows["rate"].to_numpy(), color=BLUE, lw=0)
        axes.set(xlim=(-1, size), ylim=(size, -1), xlabel="taken for", ylabel=what)
        axes.set_aspect("equal")
        axes.set_title(_literal(title), loc="left", fontsize=10)
    return figure


def _said_and_matrices(
    predictions: Predictions,
    people: People,
    groups: NDArray[np.str_] | None,
    classifiers: Sequence[str],
    *,
    most: int,
) -> tuple[list[str], dict[str, pl.DataFrame]]:
    """The confusions of the people and of some classifiers, on the images people were asked of."""
    chosen = [predictions.classifiers[row] for row in _choose_rows(predictions, classifiers, most)]
    every = people_beside(predictions, people)
    shown = [name for name in _PEOPLE if name in every.classifiers][:1] + chosen
    table = confusion(every, groups)
    return shown, {name: table.filter(participant=name) for name in shown}


def _group_names(groups: NDArray[np.str_]) -> list[str]:
    return [name for name in dict.fromkeys(groups.tolist()) if name]


def candidates(predictions: Predictions, *, classifiers: Sequence[str] = ()) -> Any:
    """Figure 13: labels of an image among the five first answers of classifiers, with its own."""
    rows = (
        [
            predictions.classifiers.index(name)
            for name in classifiers
            if _knows_classifier(predictions, name)
        ]
        if classifiers
        else list(range(len(predictions.classifiers)))
    )
    labels = label_numbers(predictions, rows)
    figure, (axes,) = panels(1)
    counted = np.bincount(labels)
    axes.bar(np.arange(len(counted)), 100 * counted / len(labels), color=BLUE)
    axes.axvline(labels.mean(), color=INK, ls="--", lw=1, label=f"mean {labels.mean():.1f}")
    axes.set(
        xlabel=f"labels of an image (five first answers of {len(rows)} classifiers, own label)",
        ylabel="images (%)",
    )
    legend_below(figure)
    return figure


def _knows_classifier(predictions: Predictions, name: str) -> bool:
    return bool(_choose_rows(predictions, [name], 1))


def label_numbers(predictions: Predictions, rows: Sequence[int]) -> NDArray[np.int64]:
    """How many labels each image [N] has among the answers of some classifiers, and its own."""
    answers = predictions.answers[np.asarray(rows)].transpose(1, 0, 2)
    every = np.column_stack([answers.reshape(len(answers), -1), predictions.labels])
    every = np.sort(every, axis=1)
    new = np.column_stack([every[:, 0] >= 0, np.diff(every, axis=1) > 0])
    return new.sum(axis=1) - (new[:, 1:] & (every[:, 1:] < 0)).sum(axis=1)


def _of_classes(predictions: Predictions, is_so: Bools, of: Bools) -> tuple[Floats, Floats]:
    """Images [K] of each class that count, and of how many of them it is so."""
    size = len(predictions.classes)
    labels = predictions.labels
    return (
        np.bincount(labels[of], minlength=size).astype(float),
        np.bincount(labels[of & is_so], minlength=size).astype(float),
    )


def other_main_classes(predictions: Predictions, people: People) -> Any:
    """Figure 20: classes whose main label is often another, and the classifiers' accuracy there."""
    _, number = _objects_of(people)
    assert people.main is not None
    asked = number > 0
    images, other = _of_classes(predictions, people.main != predictions.labels, asked)
    return _worst_classes(predictions, images, other, asked, "main label is another")


def co_occurring_classes(predictions: Predictions, people: People) -> Any:
    """Figure 21: classes whose images show several objects, with the classifiers' accuracy."""
    _, number = _objects_of(people)
    asked = number > 0
    images, several = _of_classes(predictions, number > 1, asked)
    return _worst_classes(predictions, images, several, asked, "several objects")


def _worst_classes(
    predictions: Predictions, images: Floats, so: Floats, asked: Bools, label: str
) -> Any:
    correct = predictions.correct[:, asked].mean(axis=0)
    size = len(predictions.classes)
    right = np.bincount(predictions.labels[asked], correct, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        share, accuracy = 100 * so / images, 100 * right / images
    order = np.lexsort((accuracy, -np.where(images >= FEWEST, share, -1)))[:SHOWN_ROWS]
    order = order[images[order] >= FEWEST]
    figure, (axes,) = panels(1)
    at = np.arange(len(order))[::-1]
    axes.barh(at + 0.2, share[order], 0.35, color=BLUE, label=label)
    axes.barh(at - 0.2, accuracy[order], 0.35, color=RED, label="accuracy, mean of classifiers")
    words = in_words(predictions.classes)
    names = [_literal(words[predictions.classes[k]]) for k in order]
    axes.set_yticks(at, names, fontsize=6)
    axes.set(xlabel="images of the class (%)")
    legend_below(figure)
    return figure


def top5(predictions: Predictions, people: People) -> Any:
    """Figure 22: top-1, top-5 and any object on images of several, and what top-5 corrects."""
    _, number = _objects_of(people)
    table = judged(predictions, people)
    figure, (left, right) = panels(2)
    several = number > 1
    x = 100 * predictions.correct.mean(axis=1)
    five = 100 * predictions.correct_within(TOP)[:, several].mean(axis=1)
    left.plot(x, five, "o", ms=3, color=GREEN, label="several objects: top-5")
    shown = [
        ("several objects: right by any object", BLUE),
        ("several objects: right by the own label", RED),
    ]
    _against_top1(left, predictions, table, shown)
    _against_top1(right, predictions, table, [("top-5 corrections that are two objects", INK)])
    legend_below(figure, columns=2)
    return figure


def by_class(predictions: Predictions, people: People, *, classifiers: Sequence[str] = ()) -> Any:
    """Figure 24: accuracy of a classifier on each class by the selection frequency of the class."""
    of = _frequency_of(people)
    mine = of.values_of(predictions.labels, np.nan)
    asked = ~np.isnan(mine)
    size = len(predictions.classes)
    (row,) = _choose_rows(predictions, classifiers, 1)
    labels = predictions.labels[asked]
    images = np.bincount(labels, minlength=size)
    some = images > 0
    frequency = np.bincount(labels, mine[asked], minlength=size)[some] / images[some]
    right = np.bincount(labels, predictions.correct[row][asked], minlength=size)[some]
    figure, (axes,) = panels(1)
    axes.plot(100 * frequency, 100 * right / images[some], "o", ms=3, color=BLUE, alpha=0.6)
    axes.set(
        xlabel="mean selection frequency of the class's own label (%)",
        ylabel=f"accuracy of {_name_classifier(predictions, row)} (%)",
    )
    return figure
