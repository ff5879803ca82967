"""Read the answers of a study's classifiers from its folder, with or without its counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import StudyError, Violation, listing, quote_word
from bayesrep.files import parquet
from bayesrep.studies import layout, validation
from bayesrep.studies.imagenet import N_CLASSES, synsets
from bayesrep.studies.layout import LABEL_COLUMNS, MAX_RANKS, PROBABILITY_COLUMNS
from bayesrep.studies.parquet_tables import KEYS, drop_left_out, in_order, read_classifiers
from bayesrep.studies.predictions import Predictions, code_type
from bayesrep.studies.reading import read_study
from bayesrep.studies.study import Study
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.types import Floats

SUM_TOLERANCE = 1e-3  # probabilities may come from half precision


def read_predictions(
    path: str | Path,
    datasets: Sequence[str] = validation.REQUIRED_ROLES,
    *,
    ranks: int = MAX_RANKS,
    confidence: bool = False,
    classifiers: Sequence[str] | None = None,
) -> tuple[Predictions, ...]:
    """Read the answers of a study's classifiers.

    Parameters
    ----------
    path
        The study's folder.
    datasets
        Data sets by role, where study.json names one, or by name.
    ranks
        Largest number of most probable classes to read.
    confidence
        True to require the probabilities too.
    classifiers
        Names to read; by default those that study.json lists, or all with a file for each data set.

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
    study = StudyFolder(root)
    names = study.dataset_names(datasets)
    chosen = list(classifiers or study.common_classifiers(names))
    probabilities = PROBABILITY_COLUMNS if confidence else ()
    read = [
        _Files(root, name, chosen, LABEL_COLUMNS[:ranks], probabilities).read() for name in names
    ]
    answered = set[str]().union(*(each.names for dataset in read for each in dataset.answers))
    classes = synsets() if answered <= set(synsets()) else sorted(answered)
    return tuple(dataset.predictions(classes) for dataset in read)


def read_every_answer(path: str | Path, first: Sequence[str]) -> list[Predictions]:
    """Read the first answers to all data sets, or their correctness if no answers are kept."""
    root = Path(path)
    folder = StudyFolder(root)
    names = folder.dataset_names(first)
    names += [each for each in folder.predicted_datasets if each not in names]
    parts = folder.find_parts(names[:1])
    if "study" in parts and "labels" not in parts:
        return sorted(right_or_wrong(read_study(root)), key=lambda a: a.dataset not in names[:1])
    listed = folder.common_classifiers(names)
    common = set.intersection(*(layout.predicted_classifiers(root, name) for name in names))
    shared = [name for name in listed if name in common]
    return list(read_predictions(root, names, ranks=1, classifiers=shared))


def right_or_wrong(study: Study) -> list[Predictions]:
    """Correctness as answers among two classes, "right" and "wrong", of which all are "right"."""
    return [
        Predictions(
            data.name,
            data.images,
            ("right", "wrong"),
            np.zeros(len(data.images), dtype=np.int8),
            study.classifiers,
            np.where(data.correct.T, 0, 1).astype(np.int8)[:, :, None],
        )
        for data in (study.reference, study.replication)
    ]


@dataclass(frozen=True, eq=False)
class _Numbered:
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
    answers: Sequence[_Numbered]

    def predictions(self, classes: Sequence[str]) -> Predictions:
        """Renumber all files' classes by one list."""
        code_of = {name: number for number, name in enumerate(classes)}
        ranks = min(each.numbers.shape[1] for each in self.answers) - 1
        shape = len(self.answers), len(self.images), ranks
        answers = np.empty(shape, dtype=code_type(len(code_of)))
        labels = np.empty(shape[:2], dtype=answers.dtype)
        for number, each in enumerate(self.answers):
            codes = np.array([code_of[name] for name in each.names.to_list()], dtype=answers.dtype)
            labels[number] = codes[each.numbers[:, 0]]
            answers[number] = codes[each.numbers[:, 1 : 1 + ranks]]
            differing = np.flatnonzero(labels[number] != labels[0])
            if len(differing):
                facts = {"dataset": self.name, "other_classifier": self.classifiers[0]}
                images = listing(self.images[differing].to_list())
                name = self.classifiers[number]
                rule = "classifiers-told-different-labels"
                raise StudyError(rule, classifier=name, images=images, **facts)
        confidence = [each.confidence for each in self.answers if each.confidence is not None]
        return Predictions(
            self.name,
            self.images.to_numpy().astype(np.str_),
            tuple(classes),
            labels[0],
            tuple(self.classifiers),
            answers,
            np.stack(confidence) if confidence else None,
        )


@dataclass(frozen=True, eq=False)
class _Files:
    """Files of the answers on one data set, and their columns to read."""

    root: Path
    name: str
    classifiers: Sequence[str]
    labels: Sequence[str]
    probabilities: Sequence[str]

    def read(self) -> _Dataset:
        """Read all files, in the order of the images of the first."""
        passed_over = StudyFolder(self.root).images_left_out.get(self.name, {})
        left_out = pl.Series(list(passed_over), dtype=pl.String)
        first = layout.prediction_file(self.name, self.classifiers[0])
        table = parquet.read(self.root / first, str(first), ["image"])
        order = drop_left_out(table, left_out)["image"]
        validation.raise_first(validation.image_violations(str(first), order.to_list()))
        labels = self._labels(order)
        answers = read_classifiers(
            lambda name: self._read_classifier(name, order, left_out, labels), self.classifiers
        )
        return _Dataset(self.name, order, self.classifiers, [answer for _, answer in answers])

    def _labels(self, order: pl.Series) -> pl.Series | None:
        """The labels of images.parquet, for files that have none."""
        file = self.root / layout.IMAGES_FILE
        if not file.exists():
            return None
        table = parquet.read(file, layout.IMAGES_FILE, KEYS, further=["label"])
        if "label" not in table.columns:
            return None
        texts = table.select(pl.col(*KEYS, "label").cast(pl.String))
        rows = texts.filter(pl.col("dataset") == self.name)
        where = f"{layout.IMAGES_FILE}, {self.name!r}"
        validation.raise_first(validation.image_violations(where, rows["image"].to_list()))
        joined = order.to_frame("image").join(rows, on="image", how="left", maintain_order="left")
        return None if joined["label"].null_count() else joined["label"]

    def _read_classifier(
        self, classifier: str, order: pl.Series, left_out: pl.Series, labels: pl.Series | None
    ) -> _Numbered:
        file = layout.prediction_file(self.name, classifier)
        where = str(file)
        # The option takes several names, separated by commas.
        name = f'"{classifier.replace(chr(34), 2 * chr(34))}"'
        name = quote_word(name if {",", '"'} & set(classifier) else classifier)
        advice = (
            f"make them with `bayesrep predict --study {quote_word(str(self.root))} "
            f"--images {quote_word(self.name)}=PATH --classifiers {name} --force`"
        )
        # Labels are in the data set's table of images, or else in each file of predictions.
        possible = ["label", *self.labels, *self.probabilities]
        table = parquet.read(self.root / file, where, ["image"], further=possible)
        if LABEL_COLUMNS[0] not in table.columns:
            raise StudyError("answers-not-recorded", where=where, advice=advice)
        if self.probabilities and PROBABILITY_COLUMNS[0] not in table.columns:
            raise StudyError("answer-probabilities-missing", where=where, advice=advice)
        requested = self.labels, self.probabilities
        answers, probabilities = ([n for n in names if n in table.columns] for names in requested)
        own = "label" in table.columns
        if not own and labels is None:
            facts = {"images_file": layout.IMAGES_FILE, "advice": advice}
            raise StudyError("prediction-labels-missing", where=where, **facts)
        # Files keep the order in which images were evaluated; what is compared has one order.
        table = drop_left_out(table, left_out)
        ordered = in_order(table, order)
        if ordered is None:
            raise StudyError(_join_violation(where, table["image"], order, self.classifiers[0]))
        if not own and labels is not None:
            ordered = ordered.with_columns(labels.alias("label"))
        texts = ordered.select(pl.col(["label", *answers]).cast(pl.String))
        for column in texts:
            if column.null_count():
                facts = {"column": column.name, "images": listing(order.filter(column.is_null()))}
                raise StudyError("label-or-answer-missing", where=where, advice=advice, **facts)
        # Labels and answers share their numbers, so that equal numbers are right answers.
        names = pl.concat([column.unique() for column in texts], rechunk=True).unique().sort()
        numbers = texts.select(pl.all().cast(pl.Enum(names)).to_physical())
        # How many classes there are is known of ImageNet alone, and bounds a probability below.
        confidence = None
        if probabilities:
            values = ordered.select(probabilities)
            classes = N_CLASSES if set(names.to_list()) <= set(synsets()) else None
            validation.raise_first(_probability_violations(where, values, order, classes))
            confidence = values["probability_1"].cast(pl.Float64).to_numpy()
        return _Numbered(names, numbers.to_numpy().astype(code_type(len(names))), confidence)


def _join_violation(where: str, images: pl.Series, order: pl.Series, first: str) -> Violation:
    if images.n_unique() < len(images):
        return next(validation.image_violations(where, images.to_list()))
    missing = order.filter(~order.is_in(images.implode()))
    strange = images.filter(~images.is_in(order.implode()))
    rule = "answered-images-missing" if len(missing) else "answered-images-too-many"
    differing = listing(missing if len(missing) else strange)
    return Violation(rule, where=where, images=differing, other_classifier=first)


def _probability_violations(
    where: str, table: pl.DataFrame, order: pl.Series, classes: int | None
) -> Iterator[Violation]:
    """Check that the first probabilities can be ones of `classes`, where that is known."""
    if not all(dtype.is_numeric() for dtype in table.dtypes):
        yield Violation("answer-probabilities-not-numbers", where=where)
        return
    values = table.select(pl.all().cast(pl.Float64)).to_numpy()  # null becomes NaN
    names = order.to_numpy()
    outside = ~((values >= 0) & (values <= 1)).all(axis=1)
    if outside.any():
        images = listing(names[outside])
        yield Violation("answer-probability-out-of-range", where=where, images=images)
        return
    total = values.sum(axis=1)
    most = total if classes is None else total + (classes - values.shape[1]) * values.min(axis=1)
    wrong = (total > 1 + SUM_TOLERANCE) | ((most < 1 - SUM_TOLERANCE) & (classes is not None))
    if wrong.any():
        facts = {"sum": total[wrong][0], "images": listing(names[wrong])}
        yield Violation("answer-probabilities-sum-wrong", where=where, **facts)
    unsorted = (values > values[:, :1] + SUM_TOLERANCE).any(axis=1)
    if unsorted.any():
        yield Violation("answers-not-by-probability", where=where, images=listing(names[unsorted]))
