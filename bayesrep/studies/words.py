"""Items and images, models and classifiers: the words of a study, chosen by where it comes from.

The library speaks of images, classifiers and annotators. Whoever evaluates language models has
items, models and judges; the mathematics is the same. Tables may use either's names of columns
(`bayesrep.studies.columns`), and a study's provenance says which words to print of it (`words_of`).
The report's sections and all figures are written with these `Words`. What checks, estimates and the
commands' tables say of images is said of items by a `Voice`.
"""

import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

from bayesrep.errors import plain_text

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

    def others(self) -> dict[str, str]:
        """The library's words that the study replaces, each with its replacement."""
        pairs = {str(each.default): getattr(self, each.name) for each in fields(self)}
        return {ours: other for ours, other in pairs.items() if ours != other}


VOCABULARIES: Mapping[str, Words] = {
    "images": Words(),
    "evaluation": Words(
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
    ),
}


def words_of(study: "Study") -> Words:
    """The words to print of a study; those of images where its provenance names no others.

    Parameters
    ----------
    study
        Study from any source.
    """
    return VOCABULARIES[vocabulary_of(study.provenance)]


def vocabulary_of(entries: Mapping[str, object]) -> str:
    """The vocabulary that a provenance names, or the attributes of a posterior do."""
    name = entries.get(ENTRY)
    return name if isinstance(name, str) and name in VOCABULARIES else "images"


@dataclass(frozen=True)
class Voice:
    """Says what the library says of images, classifiers and annotators in the words of a study.

    Of a study of images it says everything as it is. Of others it leaves alone what are not words:
    names of the study's, `commands`, options, columns in quotes, paths.

    Attributes
    ----------
    words
        Words of the study.
    names
        Names of the study's parts: those that hold one of our words.
    """

    words: Words = VOCABULARIES["images"]
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, study: "Study") -> "Voice":
        """The voice of a study."""
        words = words_of(study)
        if not words.others():
            return cls(words)
        datasets = study.datasets.values()
        images = (str(name) for data in datasets for name in data.images.tolist())
        called = (study.name, *study.classifiers, *(data.name for data in datasets), *images)
        return cls(words).beside(called)

    def beside(self, names: Iterable[str]) -> "Voice":
        """The same voice, which leaves these names alone too."""
        ours = (name for name in names if self(name) != name)
        kept = frozenset(each for name in ours for each in (name, plain_text(name)))
        return replace(self, names=self.names | kept)

    def __call__(self, text: str) -> str:
        """The text in the study's words."""
        return self._pattern.sub(self._replace_word, text) if self._other_words else text

    @cached_property
    def _other_words(self) -> Mapping[str, str]:
        return self.words.others()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        kept = "|".join(map(re.escape, sorted(self.names, key=len, reverse=True)))
        names = rf"(?<!\w)(?:{kept})(?!\w)|" if kept else ""
        ours = "|".join(f"[{word[0].upper()}{word[0]}]{word[1:]}" for word in self._other_words)
        return re.compile(
            rf"{names}`[^`]*`|(?<![\w./:@'\"=-])(?<!bayesrep )"
            rf"(?:([Aa])n?(\s))?({ours})(?![\w/@=\"\\-]|[.:]\w)"
        )

    def _replace_word(self, found: re.Match[str]) -> str:
        article, space, ours = found.groups()
        if ours is None:
            return found[0]
        other = self._other_words[ours.lower()]
        other = other.capitalize() if ours[0].isupper() else other
        if article is None:
            return other
        return f"{article}{'n' if other[0] in 'aeiou' else ''}{space}{other}"


_PLAIN = Voice()
VOICE: ContextVar[Voice] = ContextVar("VOICE", default=_PLAIN)
"""Voice of the study that a command is about: printed tables and texts are in its words."""
