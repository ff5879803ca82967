"""Your own annotations and predictions: CSV or Parquet tables, recognised by their columns.

    counts        dataset, image, selected, shown
    annotations   dataset, image, worker, selected: one row per answer
    predictions   dataset, image, classifier, correct: one row per image and classifier; with the
                  answers themselves, label_1 ... label_5 (the most probable first), probability_1
                  ... probability_5, and label, where no table of images gives it
    predictions   dataset, image and one column of true and false per classifier, where none of the
                  column names above (nor label) occurs
    images        dataset, image, label, and any further columns as groups of images

A long table of predictions may have the counts beside each, as the statement of
`bayesrep.sources.sql` does. Counts or annotations, and predictions, are needed; images are optional
(`read_answered` makes do without predictions, which `bayesrep.predict` then adds). Several files of
a kind are taken together. Annotations may use crowd-kit's column names: `task` is read as image
and, where there is a `task` and a `worker`, `label` is read as selected. Tables about language
models may say item or question for image, model and solved for classifier and correct, and judge
for worker (`bayesrep.studies.words`). Columns that a kind does
not name are ignored in counts, annotations and long predictions, but for `position` (a number) or
`time` (ISO 8601) of annotations: what a worker answered first. True and false are written as
true, false, 1, 0, yes or no. The tables hold the two data sets asked for, and perhaps the pool of
candidates that the replication was chosen from, and no other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import StudyError, listing
from bayesrep.files.parquet import strange_type
from bayesrep.sources.table_files import (
    all_flags,
    numbers,
    probabilities,
    read_table,
    require,
    seconds,
    texts,
    whole_numbers,
)
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.folder import LABELS, PROBABILITIES
from bayesrep.studies.manifest import JSON
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.study import Study
from bayesrep.studies.words import COLUMNS, ENTRY, in_our_words
from bayesrep.studies.worker_answers import WorkerAnswers
from bayesrep.types import Bools, Ints

CANDIDATES = "candidates"
_KEY = ("dataset", "image")
_LONG, _WIDE = "predictions", "wide predictions"
_KINDS = {
    "annotations": (*_KEY, "worker", "selected"),
    "counts": (*_KEY, "selected", "shown"),
    _LONG: (*_KEY, "classifier", "correct"),
    "images": (*_KEY, "label"),
    _WIDE: _KEY,
}
_TEXT = (*_KEY, *COLUMNS, "task", "worker", "time", "classifier", "label", *LABELS)
_CROWD_KIT = {"task": "image", "label": "selected"}


@dataclass(frozen=True, eq=False)
class _Table:
    """A table of one kind, or some rows of it, and the files that they came from."""

    kind: str
    frame: pl.DataFrame
    where: str
    others: bool = False  # whether it speaks of items, models or judges

    def of(self, dataset: str) -> pl.DataFrame:
        """The rows of one data set, without that column."""
        return self.frame.filter(pl.col("dataset") == dataset).drop("dataset")


@dataclass(frozen=True, eq=False)
class _Tables:
    """All tables given, of the data sets that are called so, by role."""

    tables: Sequence[_Table]
    datasets: Mapping[str, str]

    def of(self, *kinds: str) -> list[_Table]:
        """The tables of some kinds."""
        return [table for table in self.tables if table.kind in kinds]


def read_tables(
    paths: Sequence[str | Path],
    *,
    reference: str = "reference",
    replication: str = "replication",
    candidates: str | None = None,
    name: str = "study",
) -> Study:
    """Make a study from tables of counts or annotations, predictions and images.

    Parameters
    ----------
    paths
        `.csv` and `.parquet` files in any order; see the module's text for their columns.
    reference, replication
        What the column dataset calls the two data sets.
    candidates
        What it calls the pool that the replication was chosen from, where the tables hold it too;
        predictions on it may be left out.
    name
        The study's name.

    Returns
    -------
    Study
        Images in the order of the counts or annotations, classifiers in that of the predictions.

    Raises
    ------
    StudyError
        In one line, naming the files, the rows, images or classifiers, the rule broken and what
        to do.
    """
    tables = _recognised(paths, _called(reference, replication, candidates), _LONG, _WIDE)
    return _study(tables, _provenance(paths), name)


def read_answered(
    paths: Sequence[str | Path],
    *,
    reference: str = "reference",
    replication: str = "replication",
    candidates: str | None = None,
    name: str = "study",
) -> tuple[Study | dict[str, AnnotatedSet], list[Predictions]]:
    """Read a study, or its annotations where there are no predictions yet, and the answers.

    Parameters
    ----------
    paths, reference, replication, candidates, name
        As for `read_tables`.

    Returns
    -------
    tuple
        The study, or its annotations by role (each with no column in `correct`) where no table
        holds predictions; and the answers, where all tables of predictions have a column label_1.

    Raises
    ------
    StudyError
        As `read_tables`; where the labels of answers are missing.
    """
    tables = _recognised(paths, _called(reference, replication, candidates))
    if tables.of(_LONG, _WIDE):
        return _study(tables, _provenance(paths), name), _answered(tables)
    return _annotated_sets(tables, []), []


def _called(reference: str, replication: str, candidates: str | None) -> dict[str, str]:
    """Names of the data sets, by role."""
    names: dict[str, str] = dict(zip(REQUIRED_ROLES, (reference, replication), strict=True))
    if candidates is not None:
        names[CANDIDATES] = candidates
    return names


def _recognised(paths: Sequence[str | Path], datasets: Mapping[str, str], *needed: str) -> _Tables:
    """Read every file; counts or annotations have to be there, and one of the kinds `needed`."""
    read = [table for path in paths for table in _tables(path)]
    return _checked(_Tables(read, datasets), _files(paths), *needed)


def _checked(tables: _Tables, where: str, *needed: str) -> _Tables:
    """The same tables, where none is lacking and none is of another data set."""
    required = {"counts or annotations": ("counts", "annotations"), "predictions": needed}
    for noun, kinds in required.items():
        if kinds and not tables.of(*kinds):
            raise StudyError(
                f"{where}: no table of {noun}; give one with the columns "
                + " or ".join(", ".join(_KINDS[kind]) for kind in kinds)
            )
    _refuse_others(tables)
    return tables


def _refuse_others(tables: _Tables) -> None:
    """Refuse data sets beside the two: their rows would be dropped without a word."""
    names = tables.datasets.values()
    held = {name for table in tables.tables for name in table.frame["dataset"].unique()}
    others = sorted(held - set(names))
    if others and held.issuperset(names):  # one that is missing is said instead, with what is there
        where = _files([t.where for t in tables.tables if t.frame["dataset"].is_in(others).any()])
        raise StudyError(
            f"{where}: rows of {listing(others, 'data set')} beside those of "
            f"{' and '.join(map(repr, names))}; leave the other rows out, or name the pool that "
            "the replication was chosen from (--candidates)"
        )


def of_frames(
    frames: Mapping[str, pl.DataFrame],
    *,
    reference: str,
    replication: str,
    candidates: str | None,
    name: str,
) -> Study:
    """Make a study from tables in memory, as `read_tables` does from files.

    Parameters
    ----------
    frames
        By what they hold: counts, annotations, predictions, images.
    reference, replication, candidates, name
        As for `read_tables`.

    Raises
    ------
    StudyError
        As `read_tables`.
    """
    given = [_of_kind(frame, kind) for kind, frame in frames.items()]
    called = _called(reference, replication, candidates)
    tables = _checked(_Tables(given, called), _files([*frames]), _LONG, _WIDE)
    return _study(tables, {"source": "frames"}, name)


def _of_kind(frame: pl.DataFrame, kind: str) -> _Table:
    """A table of a kind that is known, which is also what a message calls it."""
    where, rows = kind, _renamed(frame)
    others = in_our_words(rows.columns)
    rows = rows.rename(others)
    if kind == _LONG and not {"classifier", "correct"} & set(rows.columns):
        kind = _WIDE
    require(rows, _KINDS[kind], where)
    if kind not in (_WIDE, "images"):  # whose other columns are classifiers and groups
        rows = rows.select(pl.col(*_KINDS[kind], "^(position|time)$"))
    if line := strange_type(rows, rows.columns, where):
        raise StudyError(line)
    rows = _converted(rows, kind, where)
    if kind == "counts" and {"classifier", "model"} & set(
        frame.columns
    ):  # the counts beside each prediction
        rows = rows.unique(maintain_order=True)
    return _Table(kind, rows, where, bool(others))


def _renamed(frame: pl.DataFrame) -> pl.DataFrame:
    """The same with our names of columns, where the table has those of crowd-kit."""
    if not {"task", "worker"} <= set(frame.columns):
        return frame
    new = {old: new for old, new in _CROWD_KIT.items() if old in frame.columns}
    return frame.rename({old: new for old, new in new.items() if new not in frame.columns})


def _tables(path: str | Path) -> Iterator[_Table]:
    """Read a file, find its kind by its columns, and convert those; yield each kind that it is."""
    frame, where = _renamed(read_table(path, text=_TEXT)), str(path)
    others = in_our_words(frame.columns)
    frame = frame.rename(others)
    kind = _kind(frame.columns, where)
    require(frame, _KINDS[kind], where)
    rows = _converted(frame, kind, where)
    if kind == "counts" and set(_KINDS[_LONG]) <= set(frame.columns):
        rows = rows.unique(maintain_order=True)
        yield _Table(_LONG, _converted(frame, _LONG, where), where, bool(others))
    yield _Table(kind, rows, where, bool(others))


def _kind(columns: Sequence[str], where: str) -> str:
    present = set(columns)
    for kind in ("annotations", "counts", _LONG):
        if set(_KINDS[kind]) <= present:
            return kind
    named = {column for kind in _KINDS.values() for column in kind} - set(_KEY)
    if set(_KEY) < present:
        if "label" in present and not present & (named - {"label"}):
            return "images"
        if not present & named:
            return _WIDE
    kinds = "; ".join(f"{kind}: {', '.join(needed)}" for kind, needed in _KINDS.items())
    raise StudyError(
        f"{where}: its columns {', '.join(columns)} are those of no known table; known are "
        f"{kinds} and one column per classifier"
    )


def _converted(frame: pl.DataFrame, kind: str, where: str) -> pl.DataFrame:
    """The columns that count, each in its type, none with missing values."""
    extra = [column for column in frame.columns if column not in _KINDS[kind]]
    types = {"shown": whole_numbers, "correct": all_flags}
    types["selected"] = whole_numbers if kind == "counts" else all_flags
    if kind == _WIDE:
        types |= dict.fromkeys(extra, all_flags)
    elif kind == _LONG:
        extra = [column for column in extra if column in ("label", *LABELS, *PROBABILITIES)]
        types |= dict.fromkeys(PROBABILITIES, probabilities)
    elif kind == "annotations":
        extra = [name for name in ("position", "time") if name in extra][:1]
        types |= {"position": numbers, "time": seconds}
    elif kind != "images":
        extra = []
    kept = [*_KINDS[kind], *extra]
    return pl.DataFrame([types.get(column, texts)(frame[column], where) for column in kept])


def _provenance(paths: Sequence[str | Path]) -> dict[str, JSON]:
    return {"source": "tables", "files": [Path(path).name for path in paths]}


def _study(tables: _Tables, provenance: Mapping[str, JSON], name: str) -> Study:
    classifiers = _classifiers(tables)
    return Study(
        datasets=_annotated_sets(tables, classifiers),
        classifiers=tuple(classifiers),
        name=name,
        provenance={
            **provenance,
            **({ENTRY: "evaluation"} if any(each.others for each in tables.tables) else {}),
        },
    )


def _annotated_sets(tables: _Tables, classifiers: Sequence[str]) -> dict[str, AnnotatedSet]:
    counts = {role: _counts(tables, dataset) for role, dataset in tables.datasets.items()}
    return {
        role: _annotated(tables, dataset, counts[role], classifiers)
        for role, dataset in tables.datasets.items()
    }


def _annotated(
    tables: _Tables, dataset: str, counts: _Table, classifiers: Sequence[str]
) -> AnnotatedSet:
    groups = _groups(tables, dataset, counts)
    return AnnotatedSet(
        name=dataset,
        images=counts.frame["image"].to_numpy().astype(np.str_),
        selected=counts.frame["selected"].to_numpy(),
        shown=counts.frame["shown"].to_numpy(),
        correct=_correct(tables, dataset, counts, classifiers),
        labels=groups.pop("label", None),
        groups=groups,
        answers=_answers_by_worker(tables, dataset, counts.frame["image"]),
    )


def _answers_by_worker(tables: _Tables, dataset: str, images: pl.Series) -> WorkerAnswers | None:
    """The annotations of one data set, where it is they that were counted."""
    rows = [t.of(dataset) for t in tables.of("annotations") if t.of(dataset).height]
    if not rows:
        return None
    places = pl.DataFrame({"image": images, "row": np.arange(len(images), dtype=np.int32)})
    answers = pl.concat(rows, how="diagonal")
    placed = answers.join(places, on="image", how="left", maintain_order="left")
    order = [name for name in ("position", "time") if name in placed.columns]
    if len(order) == 2 or (order and placed[order[0]].null_count()):
        where = _files([t.where for t in tables.of("annotations") if t.of(dataset).height])
        raise StudyError(
            f"{where}: the order of the answers is not known alike in all files; give a column "
            "position (or time) in all of them or in none"
        )
    return WorkerAnswers.of(
        *(placed[name].to_numpy() for name in ("row", "worker", "selected", *order))
    )


def _counts(tables: _Tables, dataset: str) -> _Table:
    """image, selected and shown of one data set, from counts or from annotations."""
    counted = [t for t in tables.of("counts", "annotations") if t.of(dataset).height]
    kinds = dict.fromkeys(sorted((table.kind for table in counted), reverse=True))
    where = ", ".join(table.where for kind in kinds for table in counted if table.kind == kind)
    if len(kinds) == 2:
        raise StudyError(f"{where}: both counts and annotations of {dataset!r}; give one of them")
    if not kinds:
        held = sorted({name for table in tables.tables for name in table.frame["dataset"].unique()})
        raise StudyError(
            f"{_files([table.where for table in tables.tables])}: no counts or annotations of the "
            f"data set {dataset!r}; the tables hold {listing(held, 'data set')}, say which is the "
            "reference and which the replication"
        )
    (kind,) = kinds
    rows = pl.concat([table.of(dataset) for table in counted], how="diagonal")
    _check_unique(rows, ["image"] if kind == "counts" else ["worker", "image"], where, dataset)
    if kind == "annotations":
        rows = rows.group_by("image", maintain_order=True).agg(
            pl.col("selected").sum().cast(pl.Int64), pl.len().cast(pl.Int64).alias("shown")
        )
    return _Table(kind, rows, where)


def _classifiers(tables: _Tables) -> list[str]:
    """All classifiers in order of appearance, each on every data set."""
    predicted = {
        dataset: dict.fromkeys(
            name for table in tables.tables for name in _predicted_by(table.kind, table.of(dataset))
        )
        for dataset in tables.datasets.values()
    }
    pool = tables.datasets.get(CANDIDATES, "")
    if not predicted.get(pool, True):  # a pool may come without predictions
        del predicted[pool]
    for dataset, names in predicted.items():
        for other, others in predicted.items():
            if extra := [name for name in others if name not in names]:
                where = _files([table.where for table in tables.of(_LONG, _WIDE)])
                raise StudyError(
                    f"{where}: predictions of {listing(extra, 'classifier')} on {other!r} "
                    f"but not on {dataset!r}; every classifier needs both data sets"
                )
    return list(predicted[tables.datasets["reference"]])


def _predicted_by(kind: str, rows: pl.DataFrame) -> list[str]:
    if kind == _LONG:
        return rows["classifier"].unique(maintain_order=True).to_list()
    if kind == _WIDE and rows.height:
        return [column for column in rows.columns if column != "image"]
    return []


def _correct(tables: _Tables, dataset: str, counts: _Table, classifiers: Sequence[str]) -> Bools:
    """Fill the matrix of correctness [images, classifiers], every entry exactly once.

    Of a pool of candidates that nobody predicted it has no column.
    """
    images = counts.frame["image"]
    if dataset == tables.datasets.get(CANDIDATES) and not _is_predicted(tables, dataset):
        classifiers = ()
    rows = pl.DataFrame({"image": images, "row": np.arange(images.len())})
    places = {name: place for place, name in enumerate(classifiers)}
    correct = np.zeros((images.len(), len(classifiers)), dtype=np.bool_)
    times = np.zeros(correct.shape, dtype=np.int32)
    predictions = tables.of(_LONG, _WIDE)
    for table in predictions:
        predicted = table.of(dataset)
        if (strange := predicted.join(rows, on="image", how="anti")).height:
            names = listing(strange["image"].unique(maintain_order=True))
            raise StudyError(
                f"{table.where}: predictions but no counts (see {counts.where}) for {names} of "
                f"{dataset!r}; count them or leave their predictions out"
            )
        joined = predicted.join(rows, on="image", maintain_order="left")
        for name, at, values in _columns(table.kind, joined):
            np.add.at(times[:, places[name]], at, 1)
            correct[at, places[name]] = values
    where = _files([table.where for table in predictions])
    _check_once(times, dataset, where, images.to_numpy(), np.asarray(classifiers))
    return correct


def _is_predicted(tables: _Tables, dataset: str) -> bool:
    """Whether some table has predictions on a data set."""
    return any(table.of(dataset).height for table in tables.of(_LONG, _WIDE))


def _columns(kind: str, rows: pl.DataFrame) -> Iterator[tuple[str, Ints, Bools]]:
    """Yield (classifier, row numbers, correctness) of each classifier in a table."""
    if kind == "predictions":
        for (name,), part in rows.group_by("classifier", maintain_order=True):
            yield str(name), part["row"].to_numpy(), part["correct"].to_numpy()
    else:
        for name in _predicted_by(kind, rows.drop("row")):
            yield name, rows["row"].to_numpy(), rows[name].to_numpy()


def _check_once(
    times: NDArray[np.int32],
    dataset: str,
    where: str,
    images: NDArray[np.object_],
    classifiers: NDArray[np.str_],
) -> None:
    for rule, broken, advice in (
        ("no prediction", times == 0, "every classifier needs one on every counted image"),
        ("several predictions", times > 1, "keep one per image and classifier"),
    ):
        if broken.any():
            column = int(np.flatnonzero(broken.any(axis=0))[0])
            raise StudyError(
                f"{where}: {rule} of classifier {str(classifiers[column])!r} for "
                f"{listing(images[broken[:, column]])} of {dataset!r}; {advice}"
            )


def _groups(tables: _Tables, dataset: str, counts: _Table) -> dict[str, NDArray[np.str_]]:
    """Label and group columns of the counted images, by column name."""
    described = [table for table in tables.of("images") if table.of(dataset).height]
    if not described:
        return {}
    where = _files([table.where for table in described])
    if len({tuple(table.frame.columns) for table in described}) > 1:
        raise StudyError(f"{where}: differ in their columns; use the same in all tables of images")
    rows = pl.concat([table.of(dataset) for table in described])
    _check_unique(rows, ["image"], where, dataset)
    if (strange := counts.frame.join(rows, on="image", how="anti")).height:
        raise StudyError(
            f"{where}: no label for {listing(strange['image'])} of {dataset!r}; give one for "
            "every counted image"
        )
    joined = counts.frame.select("image").join(rows, on="image", maintain_order="left")
    return {name: joined[name].to_numpy().astype(np.str_) for name in rows.columns[1:]}


def _answered(tables: _Tables) -> list[Predictions]:
    """The answers on each data set; none where a table of predictions has no column label_1."""
    long = tables.of(_LONG)
    shared = set.intersection(*(set(table.frame.columns) for table in tables.of(_LONG, _WIDE)))
    if LABELS[0] not in shared:
        return []
    kept = [name for name in ("label", *LABELS, *PROBABILITIES) if name in shared]
    answers: list[Predictions] = []
    for dataset in filter(partial(_is_predicted, tables), tables.datasets.values()):
        rows = pl.concat([table.of(dataset).select("image", "classifier", *kept) for table in long])
        if "label" not in kept:
            rows = rows.join(_labels(tables, dataset), on="image", how="left")
        answers.append(_predictions(rows, dataset))
    return answers


def _labels(tables: _Tables, dataset: str) -> pl.DataFrame:
    described = tables.of("images")
    if not described:
        raise StudyError(
            f"{_files([table.where for table in tables.of(_LONG)])}: answers without the labels "
            "they should be; add a column label, or a table of images with one"
        )
    return pl.concat([table.of(dataset).select("image", "label") for table in described])


def _predictions(rows: pl.DataFrame, dataset: str) -> Predictions:
    """Order one data set's answers by classifier and image."""
    images, classifiers = (
        rows[each].unique(maintain_order=True) for each in ("image", "classifier")
    )
    places = pl.DataFrame({"image": images, "place": np.arange(len(images))})
    numbers = pl.DataFrame({"classifier": classifiers, "number": np.arange(len(classifiers))})
    rows = rows.join(places, on="image").join(numbers, on="classifier").sort("number", "place")
    answers = [name for name in LABELS if name in rows.columns]
    classes = pl.concat([rows[name] for name in ("label", *answers)]).unique().sort()
    codes = rows.select(pl.col("label", *answers).cast(pl.Enum(classes)).to_physical())
    shape = (len(classifiers), len(images))
    confidence = None
    if "probability_1" in rows.columns:
        confidence = rows["probability_1"].to_numpy().reshape(shape)
    return Predictions(
        dataset,
        images.to_numpy().astype(np.str_),
        tuple(classes.to_list()),
        codes["label"].to_numpy()[: len(images)].astype(np.int32),
        tuple(classifiers.to_list()),
        codes.select(answers).to_numpy().astype(np.int32).reshape(*shape, len(answers)),
        confidence,
    )


def _check_unique(rows: pl.DataFrame, key: Sequence[str], where: str, dataset: str) -> None:
    repeated = rows.filter(pl.struct(key).is_duplicated()).select(key).unique(maintain_order=True)
    if repeated.height:
        names = [" on ".join(values) for values in repeated.iter_rows()]
        noun = "image" if len(key) == 1 else "worker"
        how = "" if noun == "image" else ", as bayesrep clean --rules repeats does"
        raise StudyError(
            f"{where}: several rows for {listing(names, noun)} of {dataset!r}; keep one each{how}"
        )


def _files(paths: Sequence[str | Path]) -> str:
    return ", ".join(str(path) for path in paths) or "tables"
