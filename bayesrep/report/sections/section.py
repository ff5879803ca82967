"""Sections of the report: their numbers, and the blocks by which the page shows them."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from bayesrep.errors import BayesrepError, EstimateWarning, PosteriorError, reason
from bayesrep.estimators import METHODS, analyse
from bayesrep.estimators.analysis import Analysis
from bayesrep.numerics.estimands import INTERVAL
from bayesrep.posterior.fitted import Fitted
from bayesrep.protocols.people import People
from bayesrep.report.figure import Figure
from bayesrep.report.pictures import Pictures
from bayesrep.report.vega import Spec
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words, words_of
from bayesrep.types import Floats

PAGE_DRAWS = 200  # of the posterior, for bands
MEAN_CI = ("mean", "lower", "upper")
PAGE_DIGITS = 5  # of fractions and densities in the page

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Source:
    """Inputs of the sections: a study, its posterior, and point estimates, maybe in the making."""

    study: Study
    posterior: Fitted | None
    points: Callable[[], Sequence[Analysis]] = list
    people: tuple[Predictions, People] | None = None
    pictures: Pictures | None = None
    cache: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def words(self) -> Words:
        """The study's words."""
        return words_of(self.study)

    def make_once(self, name: str, make: Callable[[], Value]) -> Value:
        """Return a value that several sections share, computed by the first that asks."""
        if name not in self.cache:
            self.cache[name] = make()
        return self.cache[name]

    @property
    def need_posterior(self) -> Fitted:
        """The posterior, which has to be there; `PosteriorError` where it is not."""
        if self.posterior is None:
            raise PosteriorError("no-posterior-given")
        return self.posterior

    def attempt(self, make: Callable[[Fitted], Value]) -> tuple[Value | None, str]:
        """Compute a quantity of the posterior; return None and the reason where that fails."""
        try:
            return make(self.need_posterior), ""
        except BayesrepError as error:
            return None, reason(error)


@contextmanager
def quiet() -> Generator[None]:
    """Without the warnings of estimates: the page says in its own words what they say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)
        yield


def point_estimates(study: Study, bootstrap: int, seed: int) -> list[Analysis]:
    """Compute every method's estimates of a study."""
    return analyse(study, METHODS, bootstrap=bootstrap, seed=seed)


class Table(NamedTuple):
    """A table of the page; the page's script fills one that has no rows."""

    id: str
    label: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    csv: bool = False


class Thumbnail(NamedTuple):
    """A small picture: its address, which holds the picture itself, and what is said below it."""

    source: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Block:
    """A part of the page under one heading: what its template shows, in this order."""

    id: str
    short: str  # in the navigation
    title: str
    long: bool = False  # may be broken over printed pages
    last: bool = False  # comes after the blocks of the other sections
    lead: str = ""
    lead_class: str = ""
    missing: str = ""  # why something is not shown
    controls: Sequence[Mapping[str, Any]] = ()
    figures: Sequence[Figure] = ()
    table: Table | None = None
    has_sentence: bool = False  # whether there is a place for a sentence on the chosen classifier
    sentences: Sequence[str] = ()
    thumbnails: Sequence[Thumbnail] = ()
    settings: Mapping[str, str] | None = None
    repeat: str = ""
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])  # for the script


@dataclass(frozen=True, eq=False, kw_only=True)
class Section(ABC):
    """The numbers of a section of the page: a frozen dataclass in its file, in `SECTION_TYPES`.

    ``takes`` names what it takes of a posterior; one that goes on without keeps in ``missing`` why.
    """

    missing: str = ""
    words: Words = IMAGE_WORDS

    id: ClassVar[str]
    short: ClassVar[str]
    title: ClassVar[str]
    takes: ClassVar[str]
    optional: ClassVar[bool] = False  # not there, and not missed, where nothing is given for it
    waits: ClassVar[bool] = False  # for the point estimates

    @classmethod
    @abstractmethod
    def compute(cls, source: Source) -> Self:
        """Compute the numbers; `BayesrepError` where none can be had."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Return the blocks that show this section on the page."""

    def block(self, **contents: Any) -> Block:
        """The section's own block."""
        short, title = map(self.words.fill, (self.short, self.title))
        return Block(id=self.id, short=short, title=title, **contents)


def slider(
    name: str,
    label: str,
    low: float,
    high: float,
    value: float,
    ends: tuple[str, str] | None = None,
) -> Spec:
    """A control for a number; its ends may say in a word what they mean."""
    numbers = {"low": low, "high": high, "step": 1, "value": value}
    return {"kind": "range", "id": name, "label": label, "ends": ends, **numbers}


def select(name: str, label: str, options: Sequence[tuple[str, str]], value: str) -> Spec:
    """A control that chooses one of some (value, text)."""
    return {"kind": "select", "id": name, "label": label, "value": value, "options": options}


def select_place(name: str, label: str, texts: Sequence[str]) -> Spec:
    """A control that chooses one of some by its place; the first is chosen."""
    return select(name, label, [(str(place), text) for place, text in enumerate(texts)], "0")


def search(name: str, words: Words) -> Spec:
    """A control that looks for a classifier."""
    label = f"Find a {words.classifier}"
    return {"kind": "search", "id": name, "label": label, "placeholder": "part of a name"}


def chooser(name: str, words: Words, value: str = "") -> Spec:
    """A control that chooses one classifier, for every figure that shows one."""
    return {"kind": "list", "id": name, "label": words.classifier.title(), "value": value}


def limits(*values: ArrayLike, least: float = 2.0, pad: float = 0.06) -> tuple[float, float]:
    """Ends of an axis in percent that hold all of some fractions, with room around them."""
    every = np.concatenate([np.ravel(np.asarray(each, dtype=float)) for each in values])
    every = 100 * every[np.isfinite(every)]
    if not len(every):
        return 0.0, 100.0
    middle, half = (every.max() + every.min()) / 2, max(np.ptp(every), least) / 2
    low, high = middle - (1 + 2 * pad) * half, middle + (1 + 2 * pad) * half
    return float(np.round(low, 2)), float(np.round(high, 2))


def band(values: Floats) -> Floats:
    """Mean and 95 % interval [3, ...] over draws, the first axis."""
    return np.stack([values.mean(axis=0), *np.quantile(values, INTERVAL, axis=0)])


def numbers(values: ArrayLike) -> Any:
    """Nested lists of rounded numbers; what is not finite becomes null."""
    array = np.asarray(values, dtype=float)
    rounded = np.round(array, PAGE_DIGITS).astype(object)
    rounded[~np.isfinite(array)] = None
    return rounded.tolist()


def rows_of(columns: Mapping[str, ArrayLike], **names: str) -> list[dict[str, Any]]:
    """Rows of rounded numbers, each with the same names."""
    values = zip(*map(numbers, columns.values()), strict=True)
    return [{**names, **dict(zip(columns, row, strict=True))} for row in values]
