"""What a run has found so far, on disk: parts, finished files and the list of failures.

::

    STUDY/predictions/<dataset>/<classifier>.parquet               finished
    STUDY/predictions/<dataset>/.parts/<classifier>/<n>.parquet    rows of an unfinished run
    STUDY/failures.parquet                                         dataset, image, reason

Every file appears whole or not at all, and rows are joined by the image's name, so that a run that
was killed at any point goes on with neither a row lost nor one doubled. The columns are image,
label, label_1 ... label_5 (wnids), probability_1 ... probability_5 and correct; how the rows were
made is in the file's metadata, under the key bayesrep.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep import folder
from bayesrep.atomic import replaced_file
from bayesrep.errors import PredictionError, reason
from bayesrep.vision.classes import class_index, synsets
from bayesrep.vision.evaluate import TOP, Answers
from bayesrep.vision.images import ImageSet

__all__ = ["Results", "folder_of_pixels", "read_failures", "write_failures"]

FAILURES = "failures.parquet"
_FAILURES = {"dataset": pl.String, "image": pl.String, "reason": pl.String}
_KEY = "bayesrep"
_LABELS = [f"label_{rank}" for rank in range(1, TOP + 1)]
_PROBABILITIES = [f"probability_{rank}" for rank in range(1, TOP + 1)]
_COLUMNS = ["image", "label", *_LABELS, *_PROBABILITIES, "correct"]


class Results:
    """The files of one classifier on one data set.

    Parameters
    ----------
    study
        The study's folder.
    dataset, classifier
        Whose predictions these are.
    images
        All images they should cover.
    identity
        What must agree before rows of two runs may stand in one file: weights, preprocessing,
        precision.

    Raises
    ------
    PredictionError
        Where rows are there that were made otherwise, or a file cannot be read.
    """

    def __init__(
        self,
        study: Path,
        dataset: str,
        classifier: str,
        images: ImageSet,
        identity: Mapping[str, Any],
    ) -> None:
        self.file, self.parts = _places(study, dataset, classifier)
        self.classifier, self._images = classifier, images
        self._identity = json.loads(json.dumps(identity))
        self.done = self._rows_done()

    @staticmethod
    def forget(study: Path, dataset: str, classifier: str) -> None:
        """Remove all that was found so far."""
        file, parts = _places(study, dataset, classifier)
        file.unlink(missing_ok=True)
        shutil.rmtree(parts, ignore_errors=True)

    def add(self, rows: NDArray[np.int64], answers: Answers) -> None:
        """Write the answers on some images (rows of the set) as a part."""
        labels = np.asarray(synsets())
        names = self._images.names
        truth = self._images.labels[rows]
        table = pl.DataFrame(
            {
                "image": [names[row] for row in rows.tolist()],
                "label": labels[truth],
                **{name: labels[answers.labels[:, k]] for k, name in enumerate(_LABELS)},
                **{name: answers.probabilities[:, k] for k, name in enumerate(_PROBABILITIES)},
                "correct": answers.labels[:, 0] == truth,
            }
        )
        self.parts.mkdir(parents=True, exist_ok=True)
        self._write(table, self.parts / f"{self._next():06d}.parquet", self._identity)
        self.done[rows] = True

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Put all rows, in the order of the images, into the one file; drop the parts."""
        table = self._all_rows()
        self._write(table, self.file, {**self._identity, **facts})
        shutil.rmtree(self.parts, ignore_errors=True)
        with suppress(OSError):  # other classifiers still have parts
            self.parts.parent.rmdir()

    def is_finished(self, failing: NDArray[np.bool_]) -> bool:
        """Whether the one file holds every image that can be decoded, and nothing else."""
        if not self.file.exists() or self.parts.exists():
            return False
        held = pl.scan_parquet(self.file, glob=False).select(pl.len()).collect().item()
        return bool((self.done | failing).all()) and held == int(self.done.sum())

    def accuracies(self) -> tuple[int, int, int]:
        """Return the images answered, how many right at first, and how many among five."""
        table = pl.read_parquet(self.file, columns=["label", *_LABELS, "correct"], glob=False)
        within = pl.any_horizontal(pl.col(name) == pl.col("label") for name in _LABELS)
        top5 = int(table.select(within.sum()).item() or 0)
        return len(table), int(table["correct"].sum()), top5

    def predicted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the class numbers [n] that the images show, and the first answers [n]."""
        table = pl.read_parquet(self.file, columns=["label", _LABELS[0]], glob=False)
        known = class_index()
        truth, first = (
            np.array([known[name] for name in table[column].to_list()], dtype=np.int64)
            for column in ("label", _LABELS[0])
        )
        return truth, first

    def _files(self) -> list[Path]:
        parts = sorted(self.parts.glob("[0-9]*.parquet")) if self.parts.is_dir() else []
        return [*([self.file] if self.file.exists() else []), *parts]

    def _next(self) -> int:
        taken = [int(file.stem) for file in self.parts.glob("[0-9]*.parquet")]
        return max(taken, default=-1) + 1

    def _rows_done(self) -> NDArray[np.bool_]:
        done = np.zeros(len(self._images), dtype=np.bool_)
        files = self._files()
        numbers = {name: row for row, name in enumerate(self._images.names)} if files else {}
        for file in files:
            self._check(file)
            names = pl.read_parquet(file, columns=["image"], glob=False)["image"].to_list()
            done[[numbers[name] for name in names if name in numbers]] = True
        return done

    def _check(self, file: Path) -> None:
        try:
            found = json.loads(pl.read_parquet_metadata(file).get(_KEY) or "null")
            columns = pl.read_parquet_schema(file)
        except (pl.exceptions.PolarsError, OSError, ValueError) as error:
            raise PredictionError(f"{file} cannot be read ({reason(error)}); remove it") from error
        if found is None or list(columns) != _COLUMNS:
            raise PredictionError(
                f"{file} holds predictions that were not made here; remove it, or give force "
                "(--force) to replace it"
            )
        for name, value in self._identity.items():
            if found.get(name) != value:
                raise PredictionError(
                    f"{file} was made with {name} {found.get(name)!r}, now it is {value!r}; remove "
                    "it, or give force (--force) to replace it"
                )

    def _all_rows(self) -> pl.DataFrame:
        order = pl.DataFrame({"image": list(self._images.names)})
        tables = [pl.read_parquet(file, columns=_COLUMNS, glob=False) for file in self._files()]
        rows = pl.concat(tables).unique("image", keep="first")
        return order.join(rows, on="image", how="inner", maintain_order="left")

    def _write(self, table: pl.DataFrame, file: Path, facts: Mapping[str, Any]) -> None:
        try:
            with replaced_file(file) as partial:
                table.write_parquet(partial, metadata={_KEY: json.dumps(facts)})
        except (OSError, pl.exceptions.PolarsError) as error:
            raise PredictionError(
                f"{file} cannot be written ({reason(error)}); what was written before is kept"
            ) from error


def folder_of_pixels(dataset: str) -> Path:
    """Return where a run keeps pixels until it ends, relative to the study."""
    return folder.prediction_folder(dataset) / ".pixels"


def _places(study: Path, dataset: str, classifier: str) -> tuple[Path, Path]:
    file = study / folder.prediction_file(dataset, classifier)
    return file, file.parent / ".parts" / file.name.removesuffix(".parquet")


def read_failures(study: Path, dataset: str) -> dict[str, str]:
    """Return the images of a data set that could not be decoded, and why."""
    rows = _all_failures(study).filter(pl.col("dataset") == dataset)
    return dict(zip(rows["image"].to_list(), rows["reason"].to_list(), strict=True))


def write_failures(study: Path, dataset: str, failures: Mapping[str, str]) -> None:
    """Replace the failures of one data set; without any of any set, the file goes."""
    file = study / FAILURES
    columns = {"dataset": dataset, "image": list(failures), "reason": list(failures.values())}
    others = _all_failures(study).filter(pl.col("dataset") != dataset)
    table = pl.concat([others, pl.DataFrame(columns, schema=_FAILURES)])
    if not len(table):
        file.unlink(missing_ok=True)
        return
    study.mkdir(parents=True, exist_ok=True)
    with replaced_file(file) as partial:
        table.write_parquet(partial)


def _all_failures(study: Path) -> pl.DataFrame:
    file = study / FAILURES
    if not file.exists():
        return pl.DataFrame(schema=_FAILURES)
    try:
        return pl.read_parquet(file, columns=list(_FAILURES), glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise PredictionError(f"{file} cannot be read ({reason(error)}); remove it") from error
