"""Shared parts of these figures: people's frequencies, class names and selected rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayesrep.collect.wordnet import descriptions
from bayesrep.errors import OptionError, StudyError
from bayesrep.protocols.label_sets import LabelSets
from bayesrep.protocols.people import LabelValues, People
from bayesrep.studies.imagenet import synsets
from bayesrep.studies.predictions import Predictions

FIGURE_ROWS = 15  # pairs or classes, as in figure 3b
MIN_CLASS_IMAGES = 3  # images of a class, so that a share of them says something


def as_sets(predictions: Predictions, people: People) -> LabelSets:
    """The labels of every image's objects as right labels."""
    names, number = objects_of(people)
    named = names.values.astype(np.bool_)
    return LabelSets(number > 0, names.image[named], names.label[named], len(predictions.classes))


def objects_of(people: People) -> tuple[LabelValues, NDArray[np.int64]]:
    """Labels by which people call objects, and how many objects each image [N] has."""
    if people.names is None or people.number is None:
        raise StudyError("figure-needs-objects")
    return people.names, people.number


def in_words(classes: Sequence[str]) -> dict[str, str]:
    """Name each class: for ImageNet's numbers the first of WordNet's words."""
    if tuple(classes) != synsets():
        return {name: name for name in classes}
    texts = descriptions()
    words = dict(zip(texts["label"].to_list(), texts["name"].to_list(), strict=True))
    return {name: str(words.get(name, name)).split(",")[0] for name in classes}


def escape_dollars(text: str) -> str:
    """Text in which a dollar is not mathematics."""
    return text.replace("$", r"\$")


def frequency_of(people: People) -> LabelValues:
    """Return label selection frequencies; refuse people without them."""
    if people.frequency is None:
        raise StudyError("figure-needs-counts")
    return people.frequency


def choose_rows(predictions: Predictions, names: Sequence[str], most: int) -> list[int]:
    """Rows of classifiers: those named, or some spread over the accuracies."""
    if strange := [name for name in names if name not in predictions.classifiers]:
        some = ", ".join(predictions.classifiers[:5])
        raise StudyError("figure-classifier-unknown", classifier=strange[0], choices=some)
    if len(names) > most:
        raise OptionError("too-many-classifiers-shown", most=most, classifier_count=len(names))
    if names:
        return [predictions.classifiers.index(name) for name in names]
    order = np.argsort(predictions.correct.mean(axis=1), kind="stable")
    places = np.unique(np.linspace(0, len(order) - 1, most).round().astype(int))
    return [int(order[place]) for place in places] if most > 1 else [int(order[-1])]


def name_classifier(predictions: Predictions, row: int) -> str:
    """A classifier with its accuracy, for a legend."""
    accuracy = 100 * predictions.correct[row].mean()
    return f"{escape_dollars(predictions.classifiers[row])} ({accuracy:.1f} %)"
