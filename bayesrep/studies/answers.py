"""Reading the answers of a study's classifiers from its folder.

The files are those of `bayesrep.predict`, or of an import that knows the answers:
`predictions/<dataset>/<classifier>.parquet` with the columns image, label (or the labels of
images.parquet), label_1 ... label_5 and probability_1 ... probability_5, of which a protocol may
need the first alone. Counts of annotators are not needed: a folder that `bayesrep.predict` began
will do.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import StudyError, listing
from bayesrep.files import parquet
from bayesrep.studies import folder, rules
from bayesrep.studies.imagenet import CLASSES, synsets
from bayesrep.studies.manifest import Manifest, read_manifest
from bayesrep.studies.predictions import Predictions, code_type
from bayesrep.studies.storage import images_left_out
from bayesrep.studies.tables import in_order
from bayesrep.types import Floats

RANKS = 5
_SUM = 1e-3  # by how much probabilities may miss their sum: they may come from half precision


def read_predictions(
    path: str | Path,
    datasets: Sequence[str] = ("reference", "replication"),
    *,
    ranks: int = RANKS,
    confidence: bool = False,
    classifiers: Sequence[str] | None = None,
) -> tuple[Predictions, ...]:
    """Read what the classifiers of a study answered.

    Parameters
    ----------
    path
        The study's folder.
    datasets
        Data sets by role, where study.json names one, or by name.
    ranks
        How many of the most probable classes to read, of those that are there.
    confidence
        Whether the probabilities are needed too.
    classifiers
        Which to read; by default those that study.json lists, or all with a file for each of the
        data sets.

    Returns
    -------
    tuple of Predictions
        One for each data set, with the same classifiers and classes: those of ImageNet in their
        order where all labels and answers are among them, else all that occur, sorted.

    Raises
    ------
    StudyError
        In one line naming the file, images, rule and what to do.
    """
    root = Path(path)
    manifest = _manifest(root)
    names = [manifest.roles.get(name, name) if manifest else name for name in datasets]
    chosen = list(classifiers or _classifiers(root, names, manifest))
    columns = _Columns(ranks, confidence)
    read = [_Files(root, name, chosen).read(columns) for name in names]
    classes = _classes([each.names for part in read for each in part.answers])
    return tuple(part.predictions(classes) for part in read)


def _manifest(root: Path) -> Manifest | None:
    if root.is_dir() and not (root / folder.MANIFEST).exists():
        return None
    inspection = read_manifest(root)
    while True:
        try:
            violation = next(inspection)
        except StopIteration as end:
            return end.value
        raise StudyError(violation if str(root) in violation else f"{root}: {violation}")


def _classifiers(root: Path, names: Sequence[str], manifest: Manifest | None) -> list[str]:
    if manifest is not None and manifest.classifiers:
        return list(manifest.classifiers)
    found = [
        set(folder.names_in(root / folder.prediction_folder(name), ".parquet")) for name in names
    ]
    for name, files in zip(names, found, strict=True):
        if not files:
            held = folder.names_in(root / folder.PREDICTIONS, "")
            known = listing(held, "data set") if held else "no data set"
            raise StudyError(
                f"{root}: no predictions on {name!r}, but on {known}; name the data sets, or make "
                f"them with `bayesrep predict --study {root} --dataset {name} --images PATH`"
            )
    if not (common := sorted(set.intersection(*found))):
        raise StudyError(
            f"{root}: no classifier has predictions on all of {', '.join(map(repr, names))}; "
            "predict the same classifiers on each"
        )
    return common


@dataclass(frozen=True)
class _Columns:
    """What to read of every file."""

    ranks: int
    confidence: bool

    @property
    def possible(self) -> list[str]:
        """What a file may hold of it."""
        labels = [f"label_{rank + 1}" for rank in range(self.ranks)]
        probabilities = [f"probability_{rank + 1}" for rank in range(RANKS) if self.confidence]
        return ["label", *labels, *probabilities]

    def choose(
        self, present: Collection[str], where: str, advice: str
    ) -> tuple[list[str], list[str]]:
        """The answer and probability columns of a file that are wanted and there."""
        labels = [n for k in range(self.ranks) if (n := f"label_{k + 1}") in present]
        if "label_1" not in present:
            raise StudyError(
                f"{where}: whether answers are right, but not the answers (no column label_1); "
                + advice
            )
        probabilities = [n for k in range(RANKS) if (n := f"probability_{k + 1}") in present]
        if not self.confidence:
            return labels, []
        if "probability_1" not in present:
            raise StudyError(f"{where}: no probabilities (no column probability_1); {advice}")
        return labels, probabilities


@dataclass(frozen=True, eq=False)
class _Answers:
    """One file: numbers into its own `names`, label first [N, 1 + R]; confidence [N]."""

    names: pl.Series
    numbers: NDArray[np.integer[Any]]
    confidence: Floats | None


@dataclass(frozen=True, eq=False)
class _Dataset:
    """All files of one data set."""

    name: str
    images: pl.Series
    classifiers: Sequence[str]
    answers: Sequence[_Answers]

    def predictions(self, classes: Sequence[str]) -> Predictions:
        """Number the classes alike."""
        known = pl.Series(classes, dtype=pl.String)
        place = dict(zip(known.to_list(), range(len(known)), strict=True))
        shape = (len(self.answers), len(self.images), min(a.numbers.shape[1] for a in self.answers))
        answers = np.empty(shape[:2] + (shape[2] - 1,), dtype=code_type(len(known)))
        labels = np.empty(0, dtype=answers.dtype)
        for number, each in enumerate(self.answers):
            codes = np.array([place[name] for name in each.names.to_list()], dtype=answers.dtype)
            answers[number] = codes[each.numbers[:, 1 : shape[2]]]
            mine = codes[each.numbers[:, 0]]
            if number and not np.array_equal(mine, labels):
                rows = np.flatnonzero(mine != labels)
                raise StudyError(
                    f"data set {self.name!r}: {self.classifiers[number]!r} and "
                    f"{self.classifiers[0]!r} were told different labels of "
                    f"{listing(self.images[rows].to_list())}; predict one of them again"
                )
            labels = mine
        confidence = [each.confidence for each in self.answers if each.confidence is not None]
        return Predictions(
            self.name,
            self.images.to_numpy().astype(np.str_),
            tuple(classes),
            labels,
            tuple(self.classifiers),
            answers,
            np.stack(confidence) if confidence else None,
        )


@dataclass(frozen=True, eq=False)
class _Files:
    """Where the answers on one data set are."""

    root: Path
    name: str
    classifiers: Sequence[str]

    def read(self, columns: _Columns) -> _Dataset:
        """Read all files, in the order of the images of the first."""
        first = self.file(self.classifiers[0])
        order = parquet.read(self.root / first, str(first), ["image"])["image"].cast(pl.String)
        order = order.filter(~order.is_in(self._left_out.implode()))
        rules.raise_first(rules.image_violations(str(first), order.to_list()))
        labels = self._labels(order)
        with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
            read = pool.map(lambda name: self._one(name, order, labels, columns), self.classifiers)
            return _Dataset(self.name, order, self.classifiers, list(read))

    def file(self, classifier: str) -> Path:
        return folder.prediction_file(self.name, classifier)

    @cached_property
    def _left_out(self) -> pl.Series:
        """The images that the study is left without."""
        return pl.Series(list(images_left_out(self.root).get(self.name, {})), dtype=pl.String)

    def _labels(self, order: pl.Series) -> pl.Series | None:
        """The labels of images.parquet, for files that have none."""
        file = self.root / folder.IMAGES
        if not file.exists():
            return None
        table = parquet.read(file, folder.IMAGES, ["dataset", "image"], further=["label"])
        if "label" not in table.columns:
            return None
        mine = table.filter(pl.col("dataset").cast(pl.String) == self.name).select(
            pl.col("image", "label").cast(pl.String)
        )
        images = mine["image"].to_list()
        rules.raise_first(rules.image_violations(f"{folder.IMAGES}, {self.name!r}", images))
        joined = order.to_frame("image").join(mine, on="image", how="left", maintain_order="left")
        return None if joined["label"].null_count() else joined["label"]

    def _one(
        self, classifier: str, order: pl.Series, labels: pl.Series | None, columns: _Columns
    ) -> _Answers:
        where, file = str(self.file(classifier)), self.root / self.file(classifier)
        advice = (
            f"make them with `bayesrep predict --study {self.root} --dataset {self.name} "
            f"--classifiers {classifier} --images PATH --force`"
        )
        table = parquet.read(file, where, ["image"], further=columns.possible)
        answers, probabilities = columns.choose(table.columns, where, advice)
        own = "label" in table.columns
        if not own and labels is None:
            raise StudyError(
                f"{where}: no column label, and no labels in {folder.IMAGES}; {advice}"
            )
        table = table.with_columns(pl.col("image").cast(pl.String))
        table = table.filter(~pl.col("image").is_in(self._left_out.implode()))
        ordered = in_order(table, order)
        if ordered is None:
            raise StudyError(_join_violation(where, table["image"], order, self.classifiers[0]))
        if not own:
            assert labels is not None
            ordered = ordered.with_columns(labels.alias("label"))
        texts = ordered.select(pl.col(["label", *answers]).cast(pl.String))
        for column in texts:
            if column.null_count():
                images = listing(order.filter(column.is_null()))
                raise StudyError(f"{where}: {column.name} is missing for {images}; {advice}")
        names = pl.concat([column.unique() for column in texts], rechunk=True).unique().sort()
        numbers = texts.select(pl.all().cast(pl.Enum(names)).to_physical())
        small = code_type(len(names))
        classes = CLASSES if set(names.to_list()) <= set(synsets()) else None
        confidence = _confidence(where, ordered.select(probabilities), order, classes)
        return _Answers(names, numbers.to_numpy().astype(small), confidence)


def _join_violation(where: str, images: pl.Series, order: pl.Series, first: str) -> str:
    images = images.cast(pl.String)
    if images.n_unique() < len(images):
        return next(rules.image_violations(where, images.to_list()))
    missing = order.filter(~order.is_in(images.implode()))
    strange = images.filter(~images.is_in(order.implode()))
    rule = f"{listing(missing)} missing" if len(missing) else f"{listing(strange)} more"
    return f"{where}: {rule} than in the file of {first!r}; predict both on the same images"


def _confidence(
    where: str, table: pl.DataFrame, order: pl.Series, classes: int | None
) -> Floats | None:
    """The first probability, once all of them can be ones of `classes`, where that is known."""
    if not table.width:
        return None
    rules.raise_first(_probability_violations(where, table, order, classes))
    return table["probability_1"].cast(pl.Float64).to_numpy()


def _probability_violations(
    where: str, table: pl.DataFrame, order: pl.Series, classes: int | None
) -> Iterator[str]:
    if not all(dtype.is_numeric() for dtype in table.dtypes):
        yield f"{where}: probabilities are not numbers; predict again"
        return
    values = table.select(pl.all().cast(pl.Float64)).to_numpy()  # null becomes NaN
    names = order.to_numpy()
    outside = ~((values >= 0) & (values <= 1)).all(axis=1)
    if outside.any():
        yield f"{where}: a probability is not between 0 and 1 for {listing(names[outside])}"
        return
    total = values.sum(axis=1)
    most = total if classes is None else total + (classes - values.shape[1]) * values.min(axis=1)
    wrong = (total > 1 + _SUM) | ((most < 1 - _SUM) & (classes is not None))
    if wrong.any():
        yield (
            f"{where}: probabilities that cannot sum to 1 (these sum to {total[wrong][0]:.3g}) for "
            f"{listing(names[wrong])}; give those of one softmax over all classes"
        )
    unsorted = (values > values[:, :1] + _SUM).any(axis=1)
    if unsorted.any():
        yield (
            f"{where}: a later answer is more probable than the first for "
            f"{listing(names[unsorted])}; sort them, the most probable first"
        )


def _classes(names: Sequence[pl.Series]) -> Sequence[str]:
    found: set[str] = set()
    for each in names:
        found.update(each.to_list())
    return synsets() if found <= set(synsets()) else sorted(found)
