"""Single answers by worker, behind one data set's counts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import Violation, listing
from bayesrep.files.digests import short_digest
from bayesrep.studies import validation
from bayesrep.studies.input_arrays import align_rows, own_array
from bayesrep.studies.representation import Compared, brief, number
from bayesrep.types import Bools, Ints

if TYPE_CHECKING:
    import polars as pl


def code(name: str, salt: bytes) -> str:
    """Encode a worker's name: equal names have equal codes under one salt."""
    return short_digest(name.encode(), key=salt).hex()


def code_workers(answers: "pl.DataFrame") -> "pl.DataFrame":
    """Replace names in the column `worker` by codes that nobody can undo: no salt is kept."""
    import polars as pl

    salt = token_bytes(32)
    coded = {name: code(name, salt) for name in answers["worker"].unique().to_list()}
    return answers.with_columns(pl.col("worker").replace_strict(coded, return_dtype=pl.String))


@dataclass(frozen=True, eq=False)
class WorkerAnswers(Compared):
    """The answers of single annotators about the images of one data set.

    Attributes
    ----------
    workers : str [W]
        Distinct names; the same name in two data sets is the same person.
    image, worker : int32 [A]
        Image (its row in the data set) and worker (its place among `workers`) of every answer.
    selected : bool [A]
        True if the worker selected the image.
    position : float64 [A] or None
        Increases over a worker's answers: an index or seconds; None if unknown.
    context : int32 [A] or None
        Grid, page or session in which an answer was given, the same number for the same one; None
        if unknown.
    """

    workers: NDArray[np.str_]
    image: NDArray[np.int32]
    worker: NDArray[np.int32]
    selected: Bools
    position: NDArray[np.float64] | None = None
    context: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        types: dict[str, type[np.generic]] = {
            "workers": np.str_,
            "image": np.int32,
            "worker": np.int32,
            "selected": np.bool_,
        }
        if self.position is not None:
            types["position"] = np.float64
        if self.context is not None:
            types["context"] = np.int32
        for name, dtype in types.items():
            object.__setattr__(self, name, own_array(getattr(self, name), dtype))

    def __repr__(self) -> str:
        answers = number(len(self.selected), "answer")
        return brief(self, f"{answers} of {number(len(self.workers), 'worker')}")

    @classmethod
    def of(
        cls, image: Ints, worker: Any, selected: Any, position: Any = None, context: Any = None
    ) -> Self:
        """Build from the rows of the images, the workers' names and their answers.

        Parameters
        ----------
        image : int [A]
            Rows of the images.
        worker : [A]
            Names.
        selected : bool [A]
            True if they selected the image.
        position : [A], optional
            Increases over a worker's answers.
        context : [A], optional
            Names or numbers of the grids, pages or sessions in which they were given.
        """
        arrays = {"image": image, "worker": worker, "selected": selected, "position": position}
        arrays["context"] = context
        arrays = align_rows(arrays, "answers by worker")
        names, place = np.unique(np.asarray(arrays["worker"], dtype=np.str_), return_inverse=True)
        rows, places = (np.asarray(each, dtype=np.int32) for each in (arrays["image"], place))
        if context is not None:
            context = np.unique(arrays["context"], return_inverse=True)[1]
        chosen = np.asarray(arrays["selected"], bool)
        return cls(names, rows, places, chosen, arrays["position"], context)

    def coded(self, salt: bytes) -> Self:
        """The same with codes for the workers' names, which only the salt could undo.

        Parameters
        ----------
        salt
            At most 64 bytes; equal names have equal codes under one salt.
        """
        names = np.array([code(name, salt) for name in self.workers.tolist()], dtype=np.str_)
        return replace(self, workers=names)

    def take(self, rows: Ints) -> Self:
        """Select some of the answers, by index."""
        names = ("image", "worker", "selected", "position", "context")
        columns = {name: getattr(self, name) for name in names}
        parts = {name: values[rows] for name, values in columns.items() if values is not None}
        return replace(self, **parts)

    def counts(self, images: int) -> tuple[Ints, Ints]:
        """Count selections and answers of each image: [N], [N]."""
        total = np.bincount(self.image, minlength=images)
        return np.bincount(self.image[self.selected], minlength=images), total

    def asked(self) -> NDArray[np.str_]:
        """Names of the workers with an answer."""
        return self.workers[np.unique(self.worker)]

    def violations(
        self, where: str, images: validation.Names, selected: Ints, total: Ints
    ) -> Iterator[Violation]:
        """Check that these are the answers that were counted.

        Parameters
        ----------
        where
            Start of every message.
        images, selected, total
            Images of the data set, with their counts.
        """
        columns = [self.image, self.worker, self.selected]
        columns += [] if self.context is None else [self.context]
        if len({*map(len, columns)}) > 1:
            yield Violation("worker-answers-lengths-differ", where=where)
            return
        if self.position is not None and (
            len(self.position) != len(self.image) or not np.isfinite(self.position).all()
        ):
            yield Violation("worker-answer-position-missing", where=where)
            return
        for name, size in (("image", len(images)), ("worker", len(self.workers))):
            place = getattr(self, name)
            if len(place) and not (0 <= place.min() and place.max() < size):
                facts = {"kind": name, "index": place.max(), "count": size}
                yield Violation("worker-answer-out-of-range", where=where, **facts)
                return
        if len(set(self.workers.tolist())) < len(self.workers):
            yield Violation("worker-name-repeated", where=where)
        differ = np.any(np.array(self.counts(len(images))) != [selected, total], axis=0)
        if differ.any():
            names = listing(np.asarray(images)[differ].tolist())
            yield Violation("worker-answers-contradict-counts", where=where, images=names)
