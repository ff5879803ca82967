"""The predictions of a study on disk: one file for each data set and classifier."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import StudyError, Violation, listing
from bayesrep.files import parquet
from bayesrep.studies import layout, validation
from bayesrep.studies.manifest import Manifest
from bayesrep.studies.parquet_tables import drop_left_out, in_order, join_violations, key_violations
from bayesrep.studies.violations import Problems
from bayesrep.types import Bools


def listed_or_found(path: Path, manifest: Manifest, problems: Problems) -> list[str]:
    """The classifiers listed, or all that have a file where study.json lists none."""
    if manifest.classifiers is not None:
        return list(manifest.classifiers)
    names = sorted(
        set().union(*(layout.predicted_classifiers(path, n) for n in manifest.roles.values()))
    )
    problems.take(validation.classifier_violations(layout.PREDICTIONS_FOLDER, names))
    return names


def complete_classifiers(path: Path, manifest: Manifest) -> list[str]:
    """Return, sorted, the classifiers with a file in every folder that must have one."""
    predicted = [
        names
        for role, dataset in manifest.roles.items()
        if (names := layout.predicted_classifiers(path, dataset))
        or role in validation.REQUIRED_ROLES
    ]
    return sorted(set.intersection(*predicted))


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and labels that predictions on one data set have to agree with."""

    path: Path  # the study's folder
    # role, name: the data set's
    role: str
    name: str
    order: pl.Series  # str [N]: the images that are counted, without those left out
    labels: NDArray[np.str_] | None  # str [N] or None: their labels in images.parquet
    failures: pl.DataFrame  # image, reason, left_out: images that could not be decoded

    @cached_property
    def images(self) -> NDArray[Any]:
        """The images' names as an array."""
        return self.order.to_numpy()


def read_correctness(
    dataset: Dataset, classifiers: Sequence[str], complete: Collection[str], problems: Problems
) -> Bools | None:
    """Read the classifiers' correctness on each image of a data set, [N, C]."""
    # Files of others belong to evaluations still to be made on another data set.
    where, order = layout.prediction_folder(dataset.name), dataset.order
    present = layout.predicted_classifiers(dataset.path, dataset.name)
    if dataset.role == "candidates" and not present:
        return np.zeros((len(order), 0), dtype=np.bool_)
    sound = problems.take(_file_violations(str(where), present, classifiers, complete))
    correct = np.zeros((len(order), len(classifiers)), dtype=np.bool_)
    agreement, unanswered = _Agreement(dataset), dict[str, None]()
    numbers = {name: column for column, name in enumerate(classifiers) if name in present}
    for name, file in zip(numbers, _predictions(dataset, list(numbers)), strict=True):
        problems += file.violations
        unanswered.update(dict.fromkeys(file.undecoded))
        if file.correct is None:
            sound = False
        else:
            correct[:, numbers[name]] = file.correct
            agreement.compare(name, file.judged)
    if unanswered:
        facts = {"images": listing(unanswered), "failures_file": layout.FAILURES_FILE}
        problems.add("images-not-decoded", where=where, **facts)
    agreed = problems.take(agreement.violations(str(where)))
    return correct if sound and agreed else None


def _file_violations(
    where: str, present: set[str], classifiers: Sequence[str], complete: Collection[str]
) -> Iterator[Violation]:
    if missing := [classifier for classifier in classifiers if classifier not in present]:
        names = listing(missing, "classifier")
        yield Violation("classifier-without-predictions", where=where, classifiers=names)
    if unlisted := sorted((present & set(complete)) - set(classifiers)):
        names = listing(unlisted, "classifier")
        facts = {"classifiers": names, "manifest_file": layout.MANIFEST_FILE}
        yield Violation("predictions-of-unlisted-classifier", where=where, **facts)


@dataclass(frozen=True, eq=False)
class _File:
    """Content of one file, in the order of the counts, and the rules it breaks."""

    violations: Sequence[Violation]
    correct: NDArray[Any] | None = None
    judged: pl.DataFrame = field(default_factory=pl.DataFrame)
    undecoded: Sequence[str] = ()


def _predictions(dataset: Dataset, classifiers: Sequence[str]) -> Iterator[_File]:
    places = [layout.prediction_file(dataset.name, each) for each in classifiers]
    columns, further = ["image", "correct"], ["label", layout.LABEL_COLUMNS[0], "content"]
    for place, name in zip(places, classifiers, strict=True):
        try:
            table = parquet.read(dataset.path / place, str(place), columns, further=further)
        except StudyError as error:
            yield _File([error.violation])
        else:
            yield _judge_table(dataset, str(place), name, table)


def _judge_table(dataset: Dataset, where: str, classifier: str, table: pl.DataFrame) -> _File:
    order = dataset.order
    if violations := list(key_violations(where, table, ["image"])):
        return _File(violations)
    table = drop_left_out(table, dataset.failures.filter("left_out")["image"])
    ordered = in_order(table, order)
    if ordered is None:
        missing = order.filter(~order.is_in(table["image"].implode()))
        undecoded = missing.filter(missing.is_in(dataset.failures["image"].implode()))
        rest = order.filter(~order.is_in(undecoded.implode()))
        broken = list(join_violations(where, table["image"], rest))
        return _File(broken, undecoded=undecoded.to_list())
    values = ordered["correct"].to_numpy()
    broken = list(
        validation.correct_violations(where, dataset.images, values[:, None], [classifier])
    )
    if texts := [name for name in ("label", "label_1") if name in ordered.columns]:
        ordered = ordered.with_columns(pl.col(texts).cast(pl.String))
    judged = ordered.select(name for name in ("label", "content") if name in ordered.columns)
    if not broken and {"label", "label_1"} <= set(ordered.columns):
        right = ordered["label"].eq_missing(ordered["label_1"]).to_numpy()
        wrong = right != values.astype(np.bool_)
        if wrong.any():
            images = listing(order.filter(pl.Series(wrong)))
            broken.append(Violation("correct-contradicts-labels", where=where, images=images))
    return _File(broken, None if broken else values, judged)


class _Agreement:
    """Agreement of all classifiers of a data set on the labels and contents of its images."""

    def __init__(self, dataset: Dataset) -> None:
        self._order = dataset.order
        self._labels = None if dataset.labels is None else _wnids(pl.Series(dataset.labels))
        self._first: dict[str, tuple[str, pl.Series]] = {}
        self._differing: dict[str, tuple[list[str], Bools]] = {}

    def compare(self, classifier: str, judged: pl.DataFrame) -> None:
        """Compare one classifier's columns with those of the first that has them."""
        for values in judged:
            _, expected = self._first.setdefault(values.name, (classifier, values))
            self._note(values.name, classifier, values.ne_missing(expected).to_numpy())
            if values.name == "label" and self._labels is not None:
                self._note(layout.IMAGES_FILE, classifier, _other_wnids(values, self._labels))

    def violations(self, where: str) -> Iterator[Violation]:
        """Yield the classifiers that differ, with the images."""
        for kind, (classifiers, mask) in self._differing.items():
            names = listing(classifiers, "classifier")
            facts = {"classifiers": names, "images": listing(self._order.filter(pl.Series(mask)))}
            if kind == layout.IMAGES_FILE:
                rule = "classifiers-judged-by-other-labels-than-study"
                yield Violation(rule, where=where, images_file=kind, **facts)
                continue
            other = self._first[kind][0]
            judged, shown = "classifiers-judged-by-other-labels", "classifiers-shown-something-else"
            rule = judged if kind == "label" else shown
            yield Violation(rule, where=where, other_classifier=other, **facts)

    def _note(self, kind: str, classifier: str, differing: Bools) -> None:
        if differing.any():
            none = np.zeros(len(differing), dtype=np.bool_)
            classifiers, mask = self._differing.setdefault(kind, ([], none))
            classifiers.append(classifier)
            mask |= differing


def _wnids(labels: pl.Series) -> pl.Series | None:
    """The labels that are wnids, the others null; None where none is."""
    wnids = labels.set(~labels.str.contains(r"^n\d{8}$"), None)
    return None if wnids.null_count() == len(wnids) else wnids


def _other_wnids(values: pl.Series, labels: pl.Series) -> Bools:
    """Mask of the pairs in which both are wnids, and not the same."""
    differ = (values != labels).fill_null(value=False)
    if differ.any():
        wnids = _wnids(values)
        differ &= False if wnids is None else wnids.is_not_null()
    return differ.to_numpy()
