"""Items and images, models and classifiers: the words of a study, chosen by where it comes from.

The library speaks of images, classifiers and annotators. Whoever evaluates language models has
items, models and judges, or solvers; the mathematics is the same. Tables may use either's names of
columns (`bayesrep.studies.columns`), and a study's provenance says which words to print of it
(`words_of`).
Whoever writes a sentence takes these `Words`: of a study, of its statistics, or of a posterior's
record. What programs read (columns, names in JSON, names of checks) is the same for all.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesrep.studies.study import Study  # which is written with the help of this module

ENTRY = "words"
"""The entry of a study's provenance that names its vocabulary."""


@dataclass(frozen=True)
class Words:
    """What a study's parts are called where they are printed.

    Attributes
    ----------
    image, images
        What is shown to annotators and classifiers.
    classifier, classifiers
        What is evaluated.
    annotator, annotators
        Who says yes or no of an image.
    annotation, annotations
        What they say.
    worker, workers
        The same where it is known who each of them is.
    people
        All of them.
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
        """What the study calls one of the library's words, such as "classifier"; others stay."""
        return asdict(self).get(word, word)


IMAGES = Words()


def templates_by_name(*templates: str) -> Mapping[str, str]:
    """Templates of names, by the names that they are of images, which are kept and compared."""
    return {IMAGES.fill(each): each for each in templates}


_EVALUATION = Words(
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

VOCABULARIES: Mapping[str, Words] = {
    "images": IMAGES,
    "evaluation": _EVALUATION,
    "solvers": replace(
        _EVALUATION,
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
    return VOCABULARIES[vocabulary_of(entries)]


def vocabulary_of(entries: Mapping[str, object]) -> str:
    """The vocabulary that a provenance names, or the attributes of a posterior do."""
    name = entries.get(ENTRY)
    return name if isinstance(name, str) and name in VOCABULARIES else "images"
