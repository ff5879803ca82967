"""Figures of photographs: which images, and a grid of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.protocols.by_subset import missed_by_all as by_all
from bayesrep.protocols.label_sets import LabelSets
from bayesrep.protocols.people import People
from bayesrep.report.pictures import (
    MAX_GRID_IMAGES,
    Pictures,
    by_frequency,
    find_available,
    labels_of,
)
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import Study
from bayesrep.types import Bools
from experiments.style import panels

GRID_COLUMNS = 5


def grid(pictures: Pictures, images: Sequence[str], texts: Sequence[str], *, title: str) -> Any:
    """Pictures in rows with a text below each."""
    columns = min(GRID_COLUMNS, len(images))
    figure, every = panels(len(images), rows=-(-len(images) // columns))
    figure.set_size_inches(2.0 * columns + 0.4, 2.3 * -(-len(images) // columns) + 0.4)
    for axes, image, text in zip(every, images, texts, strict=True):
        axes.imshow(pictures.thumbnail(image))
        axes.set_axis_off()
        axes.set_title(text.replace("$", r"\$"), fontsize=7)
    figure.suptitle(title.replace("$", r"\$"), fontsize=10)
    return figure


def three_of_a_class(
    study: Study, pictures: Pictures, *, classes: Sequence[str] = (), seed: int = 0
) -> Any:
    """Figure 1 of Engstrom et al. (2020): least, median and most often selected of a class."""
    data = study.reference
    labels = labels_of(data)
    images = find_available(
        pictures, data.images, np.ones(len(data.images), np.bool_), "of the reference"
    )
    names = sorted({labels[n] for n in images})
    if len(classes) > 1:
        raise OptionError("figure-of-one-class", class_count=len(classes))
    if classes and names == [""]:
        raise StudyError("study-without-image-labels")
    if classes and classes[0] not in names:
        raise StudyError(
            "no-picture-of-class", wanted_class=classes[0], known_classes=listing(names, "class")
        )
    chosen = classes[0] if classes else names[int(np.random.default_rng(seed).integers(len(names)))]
    mine = [n for n in images if labels[n] == chosen]
    frequency = data.selected / data.shown
    order = sorted(mine, key=lambda n: (frequency[n], str(data.images[n])))
    picked = list(dict.fromkeys([order[0], order[(len(order) - 1) // 2], order[-1]]))
    texts = [f"selected by {100 * frequency[n]:.0f} %" for n in picked]
    title = f"{chosen}: least, median, most often selected" if chosen else "by selection frequency"
    return grid(pictures, [str(data.images[n]) for n in picked], texts, title=title)


def of_all_frequencies(study: Study, pictures: Pictures, *, seed: int = 0) -> Any:
    """Figure 8 of Engstrom et al. (2020): images drawn at random, by selection frequency."""
    images = by_frequency(study, pictures, seed=seed)
    return grid(pictures, *zip(*images, strict=True), title="images by selection frequency")


def _random_grid(
    data: Predictions,
    pictures: Pictures,
    mask: Bools,
    what: str,
    seed: int,
    values: NDArray[Any] | None = None,
) -> Any:
    """Some of the wanted images at random, with their labels and what is said instead."""
    images = find_available(pictures, data.images, mask, what)
    picked = np.random.default_rng(seed).permutation(images)[:MAX_GRID_IMAGES]
    classes = data.classes
    texts = [classes[data.labels[n]] for n in picked]
    if values is not None:
        texts = [
            f"label {classes[data.labels[n]]}"
            + (f"\nseen as {classes[values[n]]}" if values[n] >= 0 else "")
            for n in picked
        ]
    title = f"images {what} ({int(mask.sum()):,} in all)"
    return grid(pictures, [str(data.images[n]) for n in picked], texts, title=title)


def several_labels(data: Predictions, sets: LabelSets, pictures: Pictures, *, seed: int = 0) -> Any:
    """Figure 3 of Shankar et al. (2020): images of several right labels."""
    return _random_grid(data, pictures, sets.sizes > 1, "with several right labels", seed)


def draw_missed_images(
    data: Predictions, sets: LabelSets, pictures: Pictures, *, seed: int = 0
) -> Any:
    """Figure 5 of Shankar et al. (2020): images that no classifier gets right."""
    return _random_grid(
        data, pictures, by_all(data, sets), "that every classifier gets wrong", seed
    )


def another_main(data: Predictions, people: People, pictures: Pictures, *, seed: int = 0) -> Any:
    """Figures 1 and 19 of Tsipras et al. (2020): the main object's label is another."""
    number, main = _require_objects(people)
    differs = (number > 0) & (main != data.labels)
    return _random_grid(data, pictures, differs, "with another main label", seed, main)


def several_objects(data: Predictions, people: People, pictures: Pictures, *, seed: int = 0) -> Any:
    """Figure 17 of Tsipras et al. (2020): images of several objects."""
    number, _ = _require_objects(people)
    return _random_grid(data, pictures, number > 1, "of several objects", seed)


def draw_unselected_labels(
    data: Predictions, people: People, pictures: Pictures, *, seed: int = 0
) -> Any:
    """Figure 25 of Tsipras et al. (2020): images whose own label nobody selects."""
    if people.frequency is None:
        raise StudyError("figure-needs-counts")
    unselected = people.frequency.values_of(data.labels, np.nan) == 0
    return _random_grid(data, pictures, unselected, "whose label nobody selects", seed)


def draw_unchosen_labels(
    data: Predictions, people: People, pictures: Pictures, *, seed: int = 0
) -> Any:
    """Figure 26 of Tsipras et al. (2020): images whose own label is chosen for no object."""
    number, main = _require_objects(people)
    assert people.chosen is not None
    unchosen = (number > 0) & (people.chosen.values_of(data.labels, 0) == 0)
    return _random_grid(data, pictures, unchosen, "whose label is chosen for no object", seed, main)


def _require_objects(people: People) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if people.number is None or people.main is None:
        raise StudyError("figure-needs-objects")
    return people.number, people.main
