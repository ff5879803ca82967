"""Items and images, models and classifiers: words to print, by where a study comes from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesrep.studies.study import Study  # which is written with the help of this module

PROVENANCE_ENTRY = "words"
"""The entry of a study's provenance that names its vocabulary."""


@dataclass(frozen=True)
class Words:
    """Printed names of a study's parts.

    Attributes
    ----------
    image, images
        Unit that annotators and classifiers see.
    classifier, classifiers
        System that is evaluated.
    annotator, annotators
        Person who says yes or no about an image.
    annotation, annotations
        Answer of one annotator about one image.
    worker, workers
        Annotator with a known name.
    people
        Annotators in general.
    """

    image: str = "image"
    images: str = "images"
    classifier: str = "classifier"
    classifiers: str = "classifiers"
    annotator: str = "annotator"
    annotators: str = "annotators"
    annotation: str = "annotation"
    annotations: str = "annotations"
    worker: str = "worker"
    workers: str = "workers"
    people: str = "people"

    def fill(self, template: str) -> str:
        """A sentence such as "Which {images} a {classifier} solves"; {Images} has a capital."""
        words = asdict(self)
        return template.format(**words, **{name.title(): words[name].title() for name in words})

    def restate(self, name: str, templates: Mapping[str, str]) -> str:
        """A name in these words, by its template (`templates_by_name`); one without stays."""
        return self.fill(templates[name]) if name in templates else name

    def name_of(self, word: str) -> str:
        """Translate one of the library's words, such as "classifier"; others stay."""
        return asdict(self).get(word, word)


IMAGE_WORDS = Words()


def templates_by_name(*templates: str) -> Mapping[str, str]:
    """Templates of names, by the names that they are of images, which are kept and compared."""
    return {IMAGE_WORDS.fill(each): each for each in templates}


_EVALUATION_WORDS = Words(
    image="item",
    images="items",
    classifier="model",
    classifiers="models",
    annotator="judge",
    annotators="judges",
    annotation="judgement",
    annotations="judgements",
    worker="judge",
    workers="judges",
    people="judges",
)

VOCABULARY_OF_NAME: Mapping[str, Words] = {
    "images": IMAGE_WORDS,
    "evaluation": _EVALUATION_WORDS,
    "solvers": replace(
        _EVALUATION_WORDS,
        annotator="solver",
        annotators="solvers",
        annotation="attempt",
        annotations="attempts",
        worker="solver",
        workers="solvers",
        people="solvers",
    ),
}


def words_of(study: "Study") -> Words:
    """The words to print of a study; those of images where its provenance names no others.

    Parameters
    ----------
    study
        Study from any source.
    """
    return named_words(study.provenance)


def named_words(entries: Mapping[str, object]) -> Words:
    """The words that a provenance names, or the attributes of a posterior do."""
    return VOCABULARY_OF_NAME[vocabulary_of(entries)]


def vocabulary_of(entries: Mapping[str, object]) -> str:
    """The vocabulary that a provenance names, or the attributes of a posterior do."""
    name = entries.get(PROVENANCE_ENTRY)
    return name if isinstance(name, str) and name in VOCABULARY_OF_NAME else "images"
