"""Store of predictions on disk: finished files, parts of unfinished ones, and failures.

Files appear whole and rows join by names: a killed run loses and doubles no row.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, StudyError, Violation, reason
from bayesrep.files import parquet, sandbox, strict_json
from bayesrep.store import find_other
from bayesrep.studies import layout, parquet_tables
from bayesrep.studies.layout import LABEL_COLUMNS, PROBABILITY_COLUMNS
from bayesrep.studies.violations import Problems
from bayesrep.types import Bools, Ints
from bayesrep.vision.forward import TopFive
from bayesrep.vision.image_digests import Contents, write
from bayesrep.vision.images import ImageSet

_FACTS_KEY = "bayesrep"
_IMAGES_FACT = "images"  # number of images, a fact of each classifier
_DEFAULT_FACTS = {  # of files that do not say
    "classes": "those of ImageNet",
    "among": "all classes",
    "temperature": "1",
    "ensemble": "one network",
}


@dataclass(frozen=True)
class Failure:
    """Reason why an image could not be decoded; `left_out` excludes it from the study."""

    reason: str
    left_out: bool = False


class Results:
    """The files of one classifier on one data set, updated to its images."""

    def __init__(
        self,
        study: Path,
        dataset: str,
        classifier: str,
        images: ImageSet,
        contents: Contents,
        identity: Mapping[str, Any],
    ) -> None:
        self.file, self.parts = _places(study, dataset, classifier)
        self.classifier, self._images = classifier, images
        self._identity = json.loads(json.dumps({**identity, **images.classes.identity}))
        self._labels = LABEL_COLUMNS[: images.classes.ranks]
        self._schema = _schema(images.classes.ranks)
        self.done = np.zeros(len(images), dtype=np.bool_)
        self.judged_again = self.changed = self.dropped = 0
        if files := _files(self.file, self.parts):
            self._bring_up_to_date(files, contents)

    @staticmethod
    def forget(study: Path, dataset: str, classifier: str) -> None:
        """Remove all that was found so far."""
        file, parts = _places(study, dataset, classifier)
        file.unlink(missing_ok=True)
        shutil.rmtree(parts, ignore_errors=True)

    def add(self, rows: Ints, contents: NDArray[np.uint64], answers: TopFive) -> None:
        """Write the answers on some images (rows of the set) and their contents as a part."""
        labels = np.asarray(self._images.classes.names)
        names = self._images.names
        truth = self._images.labels[rows]
        table = pl.DataFrame(
            {
                "image": [names[row] for row in rows.tolist()],
                "label": labels[truth],
                "content": contents,
                **dict(zip(LABEL_COLUMNS, labels[answers.labels.T], strict=False)),
                **dict(zip(PROBABILITY_COLUMNS, answers.probabilities.T, strict=False)),
                "correct": answers.labels[:, 0] == truth,
            }
        )
        self._add_part(table)
        self.done[rows] = True

    def finish(self, facts: Mapping[str, str]) -> None:
        """Put all rows, in the order of the images, into the one file; drop the parts."""
        order = pl.DataFrame({"image": list(self._images.names)})
        tables = [_read(file, list(self._schema)) for file in _files(self.file, self.parts)]
        rows = pl.concat(tables).unique("image", keep="first")
        rows = order.join(rows, on="image", how="inner", maintain_order="left")
        self._write(rows, self.file, **facts)
        shutil.rmtree(self.parts, ignore_errors=True)
        with suppress(OSError):  # other classifiers still have parts
            self.parts.parent.rmdir()

    def is_finished(self, failing: Bools) -> bool:
        """Test whether one file holds every image that can be decoded."""
        whole = self.file.exists() and not self.parts.exists()
        return whole and bool((self.done | failing).all())

    def accuracies(self) -> tuple[int, int, int]:
        """The images answered, how many right at first, and how many among five."""
        table = _read(self.file, ["label", *self._labels, "correct"])
        within = pl.any_horizontal(pl.col(name) == pl.col("label") for name in self._labels)
        top5 = int(table.select(within.sum()).item() or 0)
        return len(table), int(table["correct"].sum()), top5

    def labels_and_predictions(self) -> tuple[Ints, Ints]:
        """Read the images' class numbers [n] and the first answers [n]."""
        table = _read(self.file, ["label", LABEL_COLUMNS[0]])
        number_of = self._images.classes.index
        truth, first = (
            np.array([number_of[name] for name in table[column].to_list()], dtype=np.int64)
            for column in ("label", LABEL_COLUMNS[0])
        )
        return truth, first

    def _add_part(self, table: pl.DataFrame) -> None:
        part_numbers = [int(file.stem) for file in self.parts.glob("[0-9]*.parquet")]
        self._write(table, self.parts / f"{max(part_numbers, default=-1) + 1:06d}.parquet")

    def _bring_up_to_date(self, files: Sequence[Path], contents: Contents) -> None:
        """Find the existing rows, and keep those that still agree with the images."""
        for file in files:
            self._check(file)
        table = pl.concat([_read(file, ["image", "label", "content"]) for file in files])
        table = table.join(self._current_labels(), on="image", how="left", maintain_order="left")
        is_present = table["row"].is_not_null().to_numpy()
        rows = table["row"].fill_null(0).to_numpy()
        present_rows = np.unique(rows[is_present])
        contents.contents_of(present_rows)
        same = is_present & (table["content"].to_numpy() == contents.known[rows])
        other = same & table["label"].ne_missing(table["label_now"]).to_numpy()
        self.done[rows[same]] = True
        self.judged_again = len(np.unique(rows[other]))
        self.changed = int((~self.done[present_rows]).sum())
        self.dropped = table["image"].filter(~is_present).n_unique()
        if other.any() or not same.all():
            self._replace(files, contents)

    def _replace(self, files: Sequence[Path], contents: Contents) -> None:
        """Put what is still true into one part, judged by the labels of now, and drop the rest."""
        rows = pl.concat([_read(file, list(self._schema)) for file in files]).drop("label")
        now = self._current_labels().with_columns(content=contents.known)
        table = rows.join(now, on=["image", "content"], how="inner").unique("image", keep="first")
        table = table.rename({"label_now": "label"})
        table = table.with_columns(correct=pl.col(LABEL_COLUMNS[0]) == pl.col("label"))
        if len(table):
            self._add_part(table.select(list(self._schema)))
        for file in files:
            file.unlink()

    def _current_labels(self) -> pl.DataFrame:
        names = pl.Series(self._images.names, dtype=pl.String)
        classes = np.asarray(self._images.classes.names)
        labels = pl.Series(classes[self._images.labels], dtype=pl.String)
        return pl.DataFrame({"image": names, "row": np.arange(len(names)), "label_now": labels})

    def _check(self, file: Path) -> None:
        facts = _facts_of(file)
        schema = pl.read_parquet_schema(file)
        advice = "remove it, or give force (--force) to replace it"
        if facts is not None and list(schema) == [c for c in self._schema if c != "content"]:
            raise PredictionError("predictions-without-image-contents", file=file, advice=advice)
        if facts is not None:
            kept, asked = _DEFAULT_FACTS | facts, _DEFAULT_FACTS | self._identity
            if (name := find_other(kept, asked)) is not None:
                raise PredictionError(
                    "predictions-made-otherwise",
                    file=file,
                    setting=name,
                    earlier_value=kept.get(name),
                    value=asked[name],
                    advice=advice,
                )
        if facts is None or schema != self._schema:
            raise PredictionError("predictions-not-made-here", file=file, advice=advice)

    def _write(self, table: pl.DataFrame, file: Path, **facts: Any) -> None:
        facts = {**self._identity, **facts, _IMAGES_FACT: len(self._images)}
        write(table, file, {_FACTS_KEY: json.dumps(facts)})


def _schema(ranks: int) -> dict[str, pl.DataType]:
    return {
        "image": pl.String(),
        "label": pl.String(),
        "content": pl.UInt64(),
        **dict.fromkeys(LABEL_COLUMNS[:ranks], pl.String()),
        **dict.fromkeys(PROBABILITY_COLUMNS[:ranks], pl.Float32()),
        "correct": pl.Boolean(),
    }


def folder_of_pixels(dataset: str) -> Path:
    """Return the folder for pixels during a run, relative to the study."""
    return layout.prediction_folder(dataset) / ".pixels"


def _places(study: Path, dataset: str, classifier: str) -> tuple[Path, Path]:
    file = study / layout.prediction_file(dataset, classifier)
    return file, file.parent / ".parts" / file.name.removesuffix(".parquet")


def same_network(
    study: Path, dataset: str, identities: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """Other names under which a data set has the same network's answers, by identities."""
    name_of: dict[tuple[str, str], str] = {}
    for name in sorted(layout.predicted_classifiers(study, dataset) - set(identities)):
        with suppress(PredictionError):
            facts = _facts_of(study / layout.prediction_file(dataset, name)) or {}
            name_of[str(facts.get("full_name")), str(facts.get("weights"))] = name
    firsts = {
        name: name_of.setdefault((identity["full_name"], identity["weights"]), name)
        for name, identity in identities.items()
    }
    return {name: first for name, first in firsts.items() if first != name}


def read_facts(study: Path, dataset: str, classifier: str) -> dict[str, Any]:
    """Read the facts on how a classifier's predictions on a data set were made."""
    return _facts_of(study / layout.prediction_file(dataset, classifier)) or {}


def _facts_of(file: Path) -> dict[str, Any] | None:
    if (line := sandbox.fault(parquet.examine, file, "it", [], [])) is not None:
        raise PredictionError(_explain_kept_file(line, file))
    try:
        facts = strict_json.parse(pl.read_parquet_metadata(file).get(_FACTS_KEY) or "null")
    except ValueError as error:
        raise PredictionError(
            "predictions-origin-unreadable", file=file, reason=reason(error)
        ) from error
    return facts if isinstance(facts, dict) else None


def _files(file: Path, parts: Path) -> list[Path]:
    """The files with rows of a classifier: the one file of a finished run, then the parts."""
    files = sorted(parts.glob("[0-9]*.parquet")) if parts.is_dir() else []
    return [*([file] if file.exists() else []), *files]


def read_failures(study: Path, dataset: str) -> dict[str, Failure]:
    """The images of a data set that could not be decoded."""
    rows = _all_failures(study).filter(pl.col("dataset") == dataset).drop("dataset")
    return {image: Failure(why, left_out=out) for image, why, out in rows.iter_rows()}


def write_failures(study: Path, dataset: str, failures: Mapping[str, Failure]) -> None:
    """Replace the failures of one data set; without any of any set, the file goes."""
    file = study / layout.FAILURES_FILE
    rows = [(dataset, image, each.reason, each.left_out) for image, each in failures.items()]
    others = _all_failures(study).filter(pl.col("dataset") != dataset)
    table = pl.concat(
        [others, pl.DataFrame(rows, schema=parquet_tables.FAILURE_SCHEMA, orient="row")]
    )
    if not len(table):
        file.unlink(missing_ok=True)
        return
    write(table, file)


def _all_failures(study: Path) -> pl.DataFrame:
    problems = Problems()
    failures = parquet_tables.read_failures(study, problems)
    if failures is None:
        broken = problems[0]
        raise PredictionError(
            broken.reword(f"{study / layout.FAILURES_FILE} cannot be read: {broken}")
        )
    return failures


def _read(file: Path, columns: list[str]) -> pl.DataFrame:
    try:
        return parquet.read(file, "it", columns)
    except StudyError as error:
        raise PredictionError(_explain_kept_file(error.violation, file)) from error


def _explain_kept_file(broken: Violation, file: Path) -> Violation:
    """Complete the violation of an earlier run's file, which may be removed."""
    return broken.reword(f"{file} cannot be read: {broken}, or remove it")
