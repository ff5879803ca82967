"""Items and images, models and classifiers: the words of a study, chosen by where it comes from.

The library speaks of images, classifiers and annotators. Whoever evaluates language models has
items, models and judges; the mathematics is the same. Tables may use either's names of columns
(`in_our_words`), and a study's provenance says which words to print of it (`words_of`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bayesrep.studies.study import Study

ENTRY = "words"
"""The entry of a study's provenance that names its vocabulary."""

COLUMNS: Mapping[str, str] = {
    "item": "image",
    "question": "image",
    "model": "classifier",
    "solved": "correct",
    "judge": "worker",
}
"""Other names of columns, and ours."""

_TOGETHER = (("image",), ("classifier", "correct"), ("worker", "selected"))


@dataclass(frozen=True)
class Words:
    """What a study's parts are called where they are printed.

    Attributes
    ----------
    image, images
        What is shown to annotators and classifiers.
    classifier, classifiers
        What is evaluated.
    correct
        What a classifier's answer is where it is right.
    annotator, annotators
        Who says yes or no of an image.
    annotations
        What they say.
    """

    image: str = "image"
    images: str = "images"
    classifier: str = "classifier"
    classifiers: str = "classifiers"
    correct: str = "correct"
    annotator: str = "annotator"
    annotators: str = "annotators"
    annotations: str = "annotations"


VOCABULARIES: Mapping[str, Words] = {
    "images": Words(),
    "evaluation": Words(
        image="item",
        images="items",
        classifier="model",
        classifiers="models",
        correct="solved",
        annotator="judge",
        annotators="judges",
        annotations="judgements",
    ),
}


def words_of(study: Study) -> Words:
    """The words to print of a study; those of images where its provenance names no others.

    Parameters
    ----------
    study
        Of any source.
    """
    name = study.provenance.get(ENTRY)
    return VOCABULARIES.get(name if isinstance(name, str) else "", VOCABULARIES["images"])


def in_our_words(
    columns: Sequence[str], *together: Collection[str], others: Mapping[str, str] = COLUMNS
) -> dict[str, str]:
    """Which columns of a table are to be renamed, and into what.

    A column is left alone where one of ours is already there, and where those that it belongs with
    are not: `model` is a classifier's name only beside `solved` or `correct`, since a column may
    also be of a classifier that is called so.

    Parameters
    ----------
    columns
        Of the table.
    *together
        Our names that mean something together only: by default those of images, of predictions
        and of annotations.
    others
        Other names, and ours.
    """
    renamed: dict[str, str] = {}
    for wanted in together or _TOGETHER:
        # The first other name wins: a table with an item may have the question's text beside it.
        found = {new: old for old, new in reversed(list(others.items())) if old in columns}
        new = {found[name]: name for name in wanted if name not in columns and name in found}
        if all(name in columns or name in new.values() for name in wanted):
            renamed |= new
    return renamed
