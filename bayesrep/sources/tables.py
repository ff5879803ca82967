"""Your own annotations and predictions: tables, recognised by their columns.

    counts        dataset, image, selected, shown
    annotations   dataset, image, worker, selected: one row per answer; without the worker where
                  nobody knows who answered
    predictions   dataset, image, classifier, correct: one row per image and classifier; with the
                  answers themselves, label_1 ... label_5 (the most probable first), probability_1
                  ... probability_5, and label, where no table of images gives it; without correct,
                  label_1 is right where it is the image's label
    predictions   dataset, image and one column of true and false per classifier, where none of the
                  column names above (nor label) occurs
    images        dataset, image, label, and any further columns as groups of images

Files are CSV and its kin, workbooks and Parquet (`bayesrep.files.delimited`). Neither case nor
blanks matter in the names of these columns, nor blanks around any name. A long table of predictions
may have the counts beside each, as the statement of `bayesrep.sources.sql` does. Counts or
annotations, and predictions, are needed; images are optional (`read_answered` makes do without
predictions, which `bayesrep.predict` then adds). Several files of a kind are taken together.
Annotations may use crowd-kit's column names: `task` is read as image and, where there is a `task`
and a `worker`, `label` is read as selected. Tables about language models may say item or question
for image, model and solved for classifier and correct, and judge for worker
(`bayesrep.studies.words`). Columns that a kind does not name are ignored in counts, annotations and
long predictions, but for `position` (a number) or `time` (ISO 8601) of annotations: what a worker
answered first. True and false are written as true, false, 1, 0, yes or
no. The tables hold the two data sets asked for, and perhaps the pool of candidates that the
replication was chosen from, and no other.

Images that predictions, or tables of images, name otherwise than the counts do are matched where
that is one to one (`bayesrep.sources.matching`). What is wrong is found all at once: `check_tables`
lists it, and a reader raises the first.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import LiteralString, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import StudyError, Violation, did_you_mean, listing, nearest
from bayesrep.files import parquet
from bayesrep.files.copies import refuse_copies
from bayesrep.files.delimited import Sheet
from bayesrep.files.names import normalize_name
from bayesrep.files.places import Place
from bayesrep.files.tables import read_sheets
from bayesrep.sources.matching import match_image_names
from bayesrep.sources.table_files import (
    all_flags,
    numbers,
    probabilities,
    require,
    seconds,
    texts,
    whole_numbers,
)
from bayesrep.studies import rules
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.class_order import refuse_mistake
from bayesrep.studies.columns import COLUMNS, in_our_words
from bayesrep.studies.folder import LABELS, PROBABILITIES
from bayesrep.studies.manifest import JSON
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.study import Study
from bayesrep.studies.words import ENTRY
from bayesrep.studies.worker_answers import WorkerAnswers
from bayesrep.types import Bools, Ints

_T = TypeVar("_T")

CANDIDATES = "candidates"
_KEY = ("dataset", "image")
_LONG_KIND, _WIDE = "predictions", "wide predictions"
_COUNTED_KINDS = ("counts", "annotations")
_KINDS = {
    "annotations": (*_KEY, "worker", "selected"),
    "counts": (*_KEY, "selected", "shown"),
    _LONG_KIND: (*_KEY, "classifier", "correct"),
    "images": (*_KEY, "label"),
    _WIDE: _KEY,
}
_NAMES = (
    *(*_KEY, *COLUMNS, "task", "worker", "selected", "shown", "position", "time"),
    *("classifier", "correct", "label", *LABELS, *PROBABILITIES),
)
_INSTEAD = {_LONG_KIND: ("correct", LABELS[0]), "annotations": ("worker", None)}
"""Columns that a kind of table can be without: another takes their place, or none is needed."""
_CROWD_KIT = {"task": "image", "label": "selected"}


@dataclass(frozen=True, eq=False)
class _Table:
    """A table of one kind, or some rows of it, and the files that they came from."""

    kind: str
    frame: pl.DataFrame
    where: str
    place: Place | None = None  # of a whole table, whose rows are numbered as in its file
    others: bool = False  # whether it speaks of items or judges

    def rows_of(self, dataset: str) -> pl.DataFrame:
        """The rows of one data set, without that column."""
        return self.frame.filter(pl.col("dataset") == dataset).drop("dataset")

    def lines(self, rows: pl.Expr) -> str:
        """Lines of some rows, as `(lines 3, 7)`; empty where they are not known."""
        if self.place is None:
            return ""
        return f" ({self.place.rows(self.frame.select(rows).to_series())})"


@dataclass(frozen=True, eq=False)
class _Tables:
    """All tables given, of the data sets that are called so, by role."""

    tables: Sequence[_Table]
    datasets: Mapping[str, str]

    def of_kinds(self, *kinds: str) -> list[_Table]:
        """The tables of some kinds."""
        return [table for table in self.tables if table.kind in kinds]

    def dataset_names(self, *kinds: str) -> list[str]:
        """Names of the data sets of which there are rows, in tables of some kinds or of any."""
        tables = self.of_kinds(*kinds) if kinds else self.tables
        return sorted({name for table in tables for name in table.frame["dataset"].unique()})


def read_tables(
    paths: Sequence[str | Path],
    *,
    reference: str = "reference",
    replication: str = "replication",
    candidates: str | None = None,
    further: Mapping[str, str] | None = None,
    name: str = "study",
) -> Study:
    """Make a study from tables of counts or annotations, predictions and images.

    Parameters
    ----------
    paths
        `.csv`, `.tsv`, `.txt` (each also with `.gz`), `.xlsx` and `.parquet` files in any order;
        see the module's text for their columns.
    reference, replication
        What the column dataset calls the two data sets.
    candidates
        What it calls the pool that the replication was chosen from, where the tables hold it too;
        predictions on it may be left out.
    further
        What it calls further data sets, by the roles that they are to have.
    name
        The study's name.

    Returns
    -------
    Study
        Images in the order of the counts or annotations, classifiers in that of the predictions.

    Raises
    ------
    StudyError
        In one line, naming the files, the lines, images or classifiers, the rule broken and what
        to do; where more is wrong, how much.

    Warns
    -----
    TableWarning
        Where a file's encoding had to be guessed, or images are matched under other names.
    """
    called = _role_names(reference, replication, candidates, further)
    tables, annotated = _sound(_read(paths, called, _LONG_KIND, _WIDE))
    return _study(tables, annotated, _provenance(paths), name)


def read_answered(
    paths: Sequence[str | Path],
    *,
    reference: str = "reference",
    replication: str = "replication",
    candidates: str | None = None,
    further: Mapping[str, str] | None = None,
    name: str = "study",
) -> tuple[Study | dict[str, AnnotatedSet], list[Predictions]]:
    """Read a study, or its annotations where there are no predictions yet, and the answers.

    Parameters
    ----------
    paths, reference, replication, candidates, further, name
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
    tables, annotated = _sound(
        _read(paths, _role_names(reference, replication, candidates, further))
    )
    if tables.of_kinds(_LONG_KIND, _WIDE):
        return _study(tables, annotated, _provenance(paths), name), _read_answers(tables)
    return annotated, []


def check_tables(
    paths: Sequence[str | Path],
    *,
    reference: str = "reference",
    replication: str = "replication",
    candidates: str | None = None,
    further: Mapping[str, str] | None = None,
) -> tuple[Study | dict[str, AnnotatedSet] | None, list[Violation]]:
    """Find everything that is wrong with tables.

    Parameters
    ----------
    paths, reference, replication, candidates, further
        As for `read_tables`.

    Returns
    -------
    tuple
        What `read_answered` returns first, None where something is wrong; and a line for each
        thing that is.
    """
    called = _role_names(reference, replication, candidates, further)
    contents, problems = rules.collected(_read(paths, called))
    if contents is None or problems:
        return None, problems
    tables, annotated = contents
    try:
        if not tables.of_kinds(_LONG_KIND, _WIDE):
            return annotated, []
        _read_answers(tables)
        return _study(tables, annotated, _provenance(paths), "study"), []
    except StudyError as error:
        return None, [error.violation]


def of_frames(
    frames: Mapping[str, pl.DataFrame],
    *,
    reference: str,
    replication: str,
    candidates: str | None,
    further: Mapping[str, str] | None,
    name: str,
) -> Study:
    """Make a study from tables in memory, as `read_tables` does from files.

    Parameters
    ----------
    frames
        By what they hold: counts, annotations, predictions, images.
    reference, replication, candidates, further, name
        As for `read_tables`.

    Raises
    ------
    StudyError
        As `read_tables`.
    """
    called = _role_names(reference, replication, candidates, further)
    tables, annotated = _sound(_of_frames(frames, called), "")
    return _study(tables, annotated, {"source": "frames"}, name)


def _of_frames(
    frames: Mapping[str, pl.DataFrame], called: Mapping[str, str]
) -> Generator[Violation, None, "_Found | None"]:
    sound, every = True, list[_Table]()
    for kind, frame in frames.items():
        table, whole = yield from _of_kind(frame, kind)
        every += table
        sound &= whole
    tables = _Tables(every, called)
    return (
        yield from _join_tables(tables, [*frames], (_LONG_KIND, _WIDE), sound=sound, named=sound)
    )


def _of_kind(
    frame: pl.DataFrame, kind: str
) -> Generator[Violation, None, tuple[list[_Table], bool]]:
    """A table of a kind that is known, which is also what a message calls it."""
    place, (rows, others) = Place(kind), _in_our_words(frame)
    if kind == _LONG_KIND and not {"classifier", "correct", LABELS[0]} & set(rows.columns):
        kind = _WIDE
    checked = yield from _attempt(partial(_with_columns, rows, kind, place))
    if checked is None:
        return [], False
    counted = kind == "counts" and "classifier" in rows.columns  # beside each prediction
    converted, sound = yield from _convert_columns(checked, kind, place)
    if kind == "counts":
        sound &= yield from rules.checked(_count_violations(converted, place, sound=sound))
    if counted:
        return [
            _Table(kind, converted.unique(maintain_order=True), str(place), None, others)
        ], sound
    return [_Table(kind, converted, str(place), place, others)], sound


def _with_columns(rows: pl.DataFrame, kind: str, place: Place) -> pl.DataFrame:
    """The columns of a kind, if they are there and of types that tables of files have."""
    if _lacks(kind, rows.columns) or rows.is_empty():
        require(rows, _KINDS[kind], str(place))
    if kind not in (_WIDE, "images"):  # whose other columns are classifiers and groups
        further = f"^({'|'.join(('position', 'time', *LABELS, *PROBABILITIES))})$"
        rows = rows.select(pl.col(f"^({'|'.join(_KINDS[kind])})$", further))
    if line := parquet.strange_type(rows, rows.columns, str(place)):
        raise StudyError(line)
    return rows


def _in_our_words(frame: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """The same with our names of columns; whether it speaks of items or judges."""
    if {"task", "worker"} <= set(frame.columns):
        new = {old: new for old, new in _CROWD_KIT.items() if old in frame.columns}
        frame = frame.rename({old: new for old, new in new.items() if new not in frame.columns})
    others = in_our_words(frame.columns)
    shown = "image" not in frame.columns and not {"image", "worker"}.isdisjoint(others.values())
    return frame.rename(others), shown


def _provenance(paths: Sequence[str | Path]) -> dict[str, JSON]:
    return {"source": "tables", "files": [Path(path).name for path in paths]}


def _role_names(
    reference: str,
    replication: str,
    candidates: str | None,
    further: Mapping[str, str] | None,
) -> dict[str, str]:
    """Names of the data sets, by role."""
    names: dict[str, str] = dict(zip(REQUIRED_ROLES, (reference, replication), strict=True))
    if candidates is not None:
        names[CANDIDATES] = candidates
    taken = (*REQUIRED_ROLES, CANDIDATES)
    if known := [role for role in further or () if role in taken]:
        raise StudyError("role-has-own-option", role=known[0])
    names |= further or {}
    names = {role: normalize_name(name) for role, name in names.items()}
    rules.raise_first(rules.role_violations("the tables", list(names.items())))
    return names


_Found = tuple[_Tables, dict[str, AnnotatedSet]]


LISTING_ADVICE = ": `bayesrep check` with the same files lists all"


def _sound(
    steps: Generator[Violation, None, _Found | None], listed: str = LISTING_ADVICE
) -> _Found:
    """What tables hold; `StudyError` with the first thing that is wrong with them."""
    contents, problems = rules.collected(steps)
    if contents is None or problems:
        more = len(problems) - 1
        also = f" ({more} more{listed})" if more else ""
        raise StudyError(problems[0].append_text(also))
    return contents


def _attempt(make: "partial[_T]") -> "Generator[Violation, None, _T | None]":
    """What a step returns; where it refuses, yield why and return None."""
    try:
        return make()
    except StudyError as error:
        yield error.violation
        return None


def _read(
    paths: Sequence[str | Path], called: Mapping[str, str], *needed: str
) -> Generator[Violation, None, _Found | None]:
    """Read every file and set them beside each other; yield what is wrong, whatever of it is."""
    sound, every = True, list[_Table]()
    named = (yield from _attempt(partial(_refuse_copies, paths))) is not None
    for path in paths:
        sheets = yield from _attempt(partial(read_sheets, path, _NAMES))
        named &= sheets is not None
        for sheet in sheets or ():
            parts, whole = yield from _tables(sheet)
            every += parts
            sound &= whole
            named &= bool(parts)
    tables = _Tables(every, called)
    return (yield from _join_tables(tables, paths, needed, sound=sound, named=named))


def _refuse_copies(paths: Sequence[str | Path]) -> bool:
    refuse_copies(paths)
    return True


def _join_tables(
    tables: _Tables,
    paths: Sequence[str | Path],
    needed: Sequence[str],
    *,
    sound: bool,
    named: bool,
) -> Generator[Violation, None, _Found | None]:
    """Set tables beside each other; yield what is wrong, whatever of it is.

    Not all that is wrong is looked for where values were not `sound`, or tables not even `named`.
    """
    called = tables.datasets
    required: dict[str, Sequence[str]] = {
        "counts or annotations": _COUNTED_KINDS,
        "predictions": needed,
    }
    for noun, kinds in required.items():
        if kinds and not tables.of_kinds(*kinds) and named:
            named = False
            yield Violation(
                "table-kind-absent",
                where=_files(paths),
                kind=noun,
                columns=" or ".join(", ".join(_KINDS[kind]) for kind in kinds),
            )
    # Without tables of each kind, or names of the data sets, nothing below can be asked.
    if (
        not named
        or not tables.tables
        or not (yield from rules.checked(_dataset_violations(tables)))
    ):
        return None
    # Counts come first: they say which images there are.
    counts: dict[str, _Table] = {}
    for role, dataset in called.items():
        counted = yield from _counts(tables, dataset)
        if counted is not None:
            counts[role] = counted
    # Names of images in other tables are brought to those of the counts.
    tables, alike = yield from _rename_images(tables, counts)
    graded = yield from _attempt(partial(_grade_predictions, tables))
    if graded is None:
        return None
    tables = graded
    classifiers = yield from _classifiers(tables)
    parts: dict[str, tuple[Bools | None, dict[str, NDArray[np.str_]] | None]] = {}
    for role, counted in counts.items():
        if alike[role]:
            correct = yield from _correct(tables, called[role], counted, classifiers or [])
            groups = yield from _attempt(partial(_groups, tables, called[role], counted))
            parts[role] = correct, groups
    # All violations have been collected; a study is built only if there are none.
    if not sound or classifiers is None or set(parts) != set(called):
        return None
    annotated: dict[str, AnnotatedSet] = {}
    for role, (correct, groups) in parts.items():
        if correct is None or groups is None:
            return None
        made = partial(_build_annotated_set, tables, called[role], counts[role], correct, groups)
        data = yield from _attempt(made)
        if data is None:
            return None
        annotated[role] = data
    return tables, annotated


def _option(role: str) -> str:
    """How the data set of a role is named on the command line."""
    of_its_own = role in (*REQUIRED_ROLES, CANDIDATES)
    return f"--{role} NAME" if of_its_own else f"--further {role}=NAME"


def _dataset_violations(tables: _Tables) -> Iterator[Violation]:
    """Check that the tables hold the data sets asked for, and none beside them."""
    names, held = list(tables.datasets.values()), tables.dataset_names()
    where = _files(dict.fromkeys(table.where for table in tables.tables))
    missing = {role: name for role, name in tables.datasets.items() if name not in held}
    others = [name for name in held if name not in names]
    if missing:
        unsaid = {role: name for role, name in missing.items() if role == name}
        if len(unsaid) == 2 and len(held) == 2:
            yield Violation(
                "data-set-roles-unsaid", where=where, dataset=held[0], other_dataset=held[1]
            )
            return
        if len(held) == 1:
            yield Violation(
                "only-one-data-set",
                where=where,
                dataset=held[0],
                data_sets=listing(missing.values(), "data set"),
                hint="".join(did_you_mean(name, held) for name in missing.values()),
            )
            return
        for role, name in missing.items():
            yield Violation(
                "data-set-of-role-absent",
                where=where,
                dataset=name,
                role=role,
                hint=did_you_mean(name, held),
                data_sets=listing(held, "data set"),
                option=_option(role),
            )
        return
    if others:  # their rows would be dropped without a word
        where = _files([t.where for t in tables.tables if t.frame["dataset"].is_in(others).any()])
        close = "".join(did_you_mean(name, names) for name in others[:1])
        yield Violation(
            "rows-of-other-data-sets",
            where=where,
            data_sets=listing(others, "data set"),
            study_data_sets=" and ".join(map(repr, names)),
            hint=close,
        )
    for kinds, noun in (
        (_COUNTED_KINDS, "counts or annotations"),
        ((_LONG_KIND, _WIDE), "predictions"),
    ):
        some = tables.dataset_names(*kinds)
        for role, name in tables.datasets.items():
            optional = role == CANDIDATES and noun == "predictions"
            if some and name not in some and not optional:
                where = _files(dict.fromkeys(table.where for table in tables.of_kinds(*kinds)))
                yield Violation(
                    "data-set-lacks-kind",
                    where=where,
                    kind=noun,
                    dataset=name,
                    data_sets=" and ".join(map(repr, some)),
                )


def _tables(sheet: Sheet) -> Generator[Violation, None, tuple[list[_Table], bool]]:
    """Find a table's kind by its columns, and convert these; each kind that it is.

    Also whether all of it is sound: a value that cannot be read is replaced, so that what else is
    wrong is found.
    """
    (frame, others), place = _in_our_words(sheet.frame), sheet.place
    if "worker" in frame.columns and frame["worker"].null_count() == frame.height:
        frame = frame.drop("worker")  # nobody says who answered
    kind = yield from _attempt(partial(_kind, frame, place))
    if kind is None:
        return [], False
    if not (yield from rules.checked(_row_violations(frame, place))):
        return [], False
    rows, sound = yield from _convert_columns(frame, kind, place)
    tables: list[_Table] = []
    if kind == "counts":
        sound &= yield from rules.checked(_count_violations(rows, place, sound=sound))
        if _lacks(_LONG_KIND, frame.columns) == []:
            answers, right = yield from _convert_columns(frame, _LONG_KIND, place)
            sound &= right
            tables.append(_Table(_LONG_KIND, answers, str(place), place, others))
            rows = rows.unique(maintain_order=True)
            return [*tables, _Table(kind, rows, str(place), None, others)], sound
    return [*tables, _Table(kind, rows, str(place), place, others)], sound


def _row_violations(frame: pl.DataFrame, place: Place) -> Iterator[Violation]:
    """Check that there are rows, and that each says something, and of which image."""
    if frame.height == 0:
        yield Violation("table-without-rows", where=place)
        return
    empty = pl.all().cast(pl.String).str.strip_chars().fill_null("") == ""
    values = frame.select(empty)
    blank = values.select(pl.all_horizontal(pl.all())).to_series()
    if blank.any():
        verb = "is" if blank.sum() == 1 else "are"
        yield Violation("empty-rows-in-table", where=place, rows=place.rows(blank), verb=verb)
    for name in _KEY:
        missing = values[name] & ~blank
        if missing.any():
            yield Violation(
                "value-missing-in-rows", where=place, column=name, rows=place.rows(missing)
            )


def _lacks(kind: str, columns: Collection[str]) -> list[str]:
    """The columns that a kind needs and are not there."""
    left_out, instead = _INSTEAD.get(kind, (None, None))
    missing = [name for name in _KINDS[kind] if name not in columns]
    return [name for name in missing if name != left_out or (instead and instead not in columns)]


def _kind(frame: pl.DataFrame, place: Place) -> str:
    columns, present = frame.columns, set(frame.columns)
    for kind in ("annotations", "counts", _LONG_KIND):
        if set(_KINDS[kind]) <= present:
            return kind
    if not _lacks(_LONG_KIND, columns) and not present & {"worker", "selected"}:
        return _LONG_KIND
    if not _lacks("annotations", columns) and _are_answers(frame):
        return "annotations"
    named = {column for kind in _KINDS.values() for column in kind} - set(_KEY)
    if set(_KEY) < present:
        if "label" in present and not present & (named - {"label"}):
            return "images"
        if not present & named:
            return _WIDE
    raise StudyError(_explain_unknown_kind(columns, place))


def _are_answers(frame: pl.DataFrame) -> bool:
    """Whether rows are single answers of people without names, and not counts without `shown`."""
    several = frame.select(_KEY).is_duplicated().any()
    if not several or {"shown", *_KINDS[_LONG_KIND]} & set(frame.columns) - set(_KEY):
        return False
    try:
        all_flags(frame["selected"], "")
    except StudyError:
        return False
    return True


def _explain_unknown_kind(columns: Sequence[str], place: Place) -> Violation:
    """Why columns are those of no kind, by the kind that they come closest to."""
    named = {column for kind in _KINDS.values() for column in kind}
    others = [name for name in columns if name not in named]
    close = {name: nearest(name, others) for name in named if name not in columns}

    def lacks(kind: str) -> tuple[int, int]:
        missing = [name for name in _KINDS[kind] if name not in columns]
        return sum(close[name] is None for name in missing), len(missing)

    kinds = [kind for kind in (_LONG_KIND, "counts", "annotations", "images") if lacks(kind)[1]]
    kind = min(kinds, key=lacks)
    missing = [name for name in _KINDS[kind] if name not in columns]
    if not any(name in columns or close[name] for name in named - set(_KEY)):
        keys = [name for name in _KEY if name not in columns]
        if len(keys) == 1 and not close[keys[0]]:
            beside = ", ".join(map(repr, others[:8]))
            rule = "table-key-column-missing"
            return Violation(rule, where=place, column=keys[0], other_columns=beside)
        if len(keys) == 2:
            known = "; ".join(f"{kind}: {', '.join(needed)}" for kind, needed in _KINDS.items())
            shown = ", ".join(map(repr, columns[:8]))
            return Violation("table-columns-unknown", where=place, columns=shown, known_kinds=known)
    facts = {
        "where": place,
        "kind": kind,
        "kind_columns": ", ".join(_KINDS[kind]),
        "missing": listing(missing, "column"),
        "verb": "is" if len(missing) == 1 else "are",
    }
    it = "it" if len(missing) == 1 else "them"
    meant = [f"{other!r} to {name!r}" for name in missing if (other := close[name])]
    others = ", ".join(repr(name) for name in _first_other_columns(columns, kind))
    if meant:
        return Violation("table-columns-misnamed", **facts, renames=" and ".join(meant))
    if others:
        rule = "table-kind-incomplete-or-misnamed"
        return Violation(rule, **facts, pronoun=it, other_columns=others)
    return Violation("table-kind-incomplete", **facts, pronoun=it)


def _first_other_columns(columns: Sequence[str], kind: str) -> Sequence[str]:
    return [name for name in columns if name not in _KINDS[kind]][:8]


def _convert_columns(
    frame: pl.DataFrame, kind: str, place: Place
) -> Generator[Violation, None, tuple[pl.DataFrame, bool]]:
    """The columns that count, each in its type, and whether none has values that are wrong."""
    own = [name for name in _KINDS[kind] if name in frame.columns]
    extra = [column for column in frame.columns if column not in own]
    types = {"shown": whole_numbers, "correct": all_flags}
    types["selected"] = whole_numbers if kind == "counts" else all_flags
    if kind == _WIDE:
        types |= dict.fromkeys(extra, all_flags)
    elif kind == _LONG_KIND:
        extra = [column for column in extra if column in ("label", *LABELS, *PROBABILITIES)]
        types |= dict.fromkeys(PROBABILITIES, probabilities)
    elif kind == "annotations":
        extra = [name for name in ("position", "time") if name in extra][:1]
        types |= {"position": numbers, "time": seconds}
    elif kind != "images":
        extra = []
    columns: list[pl.Series] = []
    sound = True
    for name in (*own, *extra):
        convert = types.get(name, texts)
        column = yield from _attempt(partial(convert, frame[name], place))
        sound &= column is not None
        columns.append(_stand_in(frame[name], convert is texts) if column is None else column)
    return pl.DataFrame(columns), sound


def _stand_in(column: pl.Series, textual: bool) -> pl.Series:  # noqa: FBT001
    """Something in place of a column that cannot be read."""
    if textual:
        return column.cast(pl.String).str.strip_chars().fill_null("")
    return pl.repeat(value=False, n=len(column), eager=True).alias(column.name)


def _count_violations(rows: pl.DataFrame, place: Place, *, sound: bool) -> Iterator[Violation]:
    """Check 0 <= selected <= shown and shown >= 1, naming lines and values."""
    if not sound:
        return
    selected, shown = rows["selected"], rows["shown"]
    for name in ("selected", "shown"):
        if (wrong := rows[name] < 0).any():
            told, noun = place.rows(wrong, rows[name]), _images(rows, wrong)
            yield Violation(
                "negative-count-in-table", where=place, column=name, images=noun, rows=told
            )
    if (unseen := shown == 0).any():
        yield Violation(
            "image-shown-to-nobody",
            where=place,
            images=_images(rows, unseen),
            rows=place.rows(unseen),
        )
    if (excess := (selected > shown) & (shown > 0)).any():
        both = selected.cast(pl.String) + " of " + shown.cast(pl.String)
        yield Violation(
            "selected-exceeds-shown-in-rows",
            where=place,
            images=_images(rows, excess),
            rows=place.rows(excess, both),
        )


def _images(rows: pl.DataFrame, wrong: pl.Series) -> str:
    return listing(rows["image"].filter(wrong))


def _study(
    tables: _Tables,
    annotated: Mapping[str, AnnotatedSet],
    provenance: Mapping[str, JSON],
    name: str,
) -> Study:
    predicted = _classifiers_by_dataset(tables)[tables.datasets["reference"]]
    return Study(
        datasets=annotated,
        classifiers=tuple(predicted),
        name=name,
        provenance={
            **provenance,
            **({ENTRY: "evaluation"} if any(each.others for each in tables.tables) else {}),
        },
    )


def _build_annotated_set(
    tables: _Tables,
    dataset: str,
    counts: _Table,
    correct: Bools,
    groups: dict[str, NDArray[np.str_]],
) -> AnnotatedSet:
    return AnnotatedSet(
        name=dataset,
        images=counts.frame["image"].to_numpy().astype(np.str_),
        selected=counts.frame["selected"].to_numpy(),
        shown=counts.frame["shown"].to_numpy(),
        correct=correct,
        labels=groups.get("label"),
        groups={name: values for name, values in groups.items() if name != "label"},
        answers=_answers_by_worker(tables, dataset, counts.frame["image"]),
    )


def _answers_by_worker(tables: _Tables, dataset: str, images: pl.Series) -> WorkerAnswers | None:
    """The annotations of one data set, where it is they that were counted."""
    rows = [t.rows_of(dataset) for t in tables.of_kinds("annotations") if t.rows_of(dataset).height]
    if not rows or any("worker" not in table.columns for table in rows):
        return None
    places = pl.DataFrame({"image": images, "row": np.arange(len(images), dtype=np.int32)})
    answers = pl.concat(rows, how="diagonal")
    placed = answers.join(places, on="image", how="left", maintain_order="left")
    order = [name for name in ("position", "time") if name in placed.columns]
    if len(order) == 2 or (order and placed[order[0]].null_count()):
        where = _files(
            [t.where for t in tables.of_kinds("annotations") if t.rows_of(dataset).height]
        )
        raise StudyError("order-of-answers-unclear", where=where)
    return WorkerAnswers.of(
        *(placed[name].to_numpy() for name in ("row", "worker", "selected", *order))
    )


def _counts(tables: _Tables, dataset: str) -> Generator[Violation, None, _Table | None]:
    """image, selected and shown of one data set, from counts or from annotations."""
    counted = [t for t in tables.of_kinds(*_COUNTED_KINDS) if t.rows_of(dataset).height]
    kinds = dict.fromkeys(sorted((table.kind for table in counted), reverse=True))
    where = ", ".join(table.where for kind in kinds for table in counted if table.kind == kind)
    if len(kinds) == 2:
        yield Violation("both-counts-and-annotations", where=where, dataset=dataset)
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    key = ["image"] if kind == "counts" else ["worker", "image"]
    named = [t for t in counted if set(key) <= set(t.frame.columns)]
    sound = not named or (yield from rules.checked(_find_repeats(named, key, where, dataset)))
    sound &= yield from rules.checked(_nameless_violations(counted, named, dataset))
    rows = pl.concat([table.rows_of(dataset) for table in counted], how="diagonal_relaxed")
    if kind == "annotations":
        rows = rows.group_by("image", maintain_order=True).agg(
            pl.col("selected").sum().cast(pl.Int64), pl.len().cast(pl.Int64).alias("shown")
        )
    rows = rows if sound else rows.unique("image", keep="first", maintain_order=True)
    return _Table(kind, rows, where)


def _nameless_violations(
    counted: Sequence[_Table], named: Sequence[_Table], dataset: str
) -> Iterator[Violation]:
    """Check that answers of nobody in particular are not given twice, where that can be seen."""
    nameless = [table for table in counted if table not in named]
    if nameless and named:
        yield Violation(
            "answers-with-and-without-workers",
            where=_files(table.where for table in (*named, *nameless)),
            dataset=dataset,
        )
    seen: dict[int, list[tuple[_Table, pl.DataFrame]]] = {}
    for table in nameless:
        rows = table.rows_of(dataset).select("image", "selected").sort("image", "selected")
        for other, held in seen.setdefault(len(rows), []):
            if rows.equals(held):
                yield Violation(
                    "same-answers-twice", where=table.where, other=other.where, dataset=dataset
                )
        seen[len(rows)].append((table, rows))


def _rename_images(
    tables: _Tables, counts: Mapping[str, _Table]
) -> Generator[Violation, None, tuple[_Tables, dict[str, bool]]]:
    """The tables with the counts' names of images, where others mean them one to one.

    Also of which roles the names agree, or may.
    """
    alike = dict.fromkeys(counts, True)
    others: list[_Table] = []
    for table in tables.tables:
        for role, counted in counts.items():
            if table.kind not in (_LONG_KIND, _WIDE, "images"):
                continue
            frame = yield from _attempt(
                partial(
                    match_image_names,
                    table.frame,
                    counted.frame["image"],
                    dataset=tables.datasets[role],
                    where=table.where,
                    counts=counted.where,
                    covers=table.kind == "images",
                )
            )
            alike[role] &= frame is not None
            table = table if frame is None else replace(table, frame=frame)
        others.append(table)
    return replace(tables, tables=others), alike


def _grade_predictions(tables: _Tables) -> _Tables:
    """The tables with `correct` where predictions are labels: whether the first is the image's."""
    return replace(tables, tables=[_with_correct(table, tables) for table in tables.tables])


def _with_correct(table: _Table, tables: _Tables) -> _Table:
    if table.kind != _LONG_KIND or "correct" in table.frame.columns:
        return table
    frame = table.frame
    if "label" not in frame.columns:
        labels = _labels(tables)
        frame = frame.join(labels, on=_KEY, how="left", maintain_order="left")
    for (dataset, classifier), rows in frame.group_by("dataset", "classifier", maintain_order=True):
        labels, answers = (rows[name].fill_null("").to_numpy() for name in ("label", LABELS[0]))
        where = f"{table.where}: labels of {dataset!r} and answers of {classifier!r}"
        refuse_mistake(labels, answers, where=where)
    correct = frame[LABELS[0]].eq(frame["label"]).fill_null(value=False)
    return replace(table, frame=table.frame.with_columns(correct=correct))


def _classifiers_by_dataset(tables: _Tables) -> dict[str, list[str]]:
    """Classifiers with predictions, in order of appearance, by data set."""
    return {
        dataset: list(
            dict.fromkeys(
                name
                for table in tables.tables
                for name in _classifiers_in(table.kind, table.rows_of(dataset))
            )
        )
        for dataset in tables.datasets.values()
    }


def _classifiers(tables: _Tables) -> Generator[Violation, None, list[str] | None]:
    """All classifiers in order of appearance, each on every data set."""
    predicted = _classifiers_by_dataset(tables)
    pool = tables.datasets.get(CANDIDATES, "")
    if not predicted.get(pool, True):  # a pool may come without predictions
        del predicted[pool]
    sound = True
    where = _files([table.where for table in tables.of_kinds(_LONG_KIND, _WIDE)])
    for dataset, names in predicted.items():
        for other, others in predicted.items():
            if not names or not (extra := [name for name in others if name not in names]):
                continue
            sound = False
            alone = [name for name in names if name not in others]
            meant = nearest(extra[0], alone)
            facts = {
                "where": where,
                "classifiers": listing(extra, "classifier"),
                "other_dataset": other,
                "dataset": dataset,
            }
            if meant:
                rule = "classifier-misnamed-on-one-data-set"
                yield Violation(rule, **facts, similar_classifier=meant)
            else:
                yield Violation("classifier-on-one-data-set", **facts)
    return predicted[tables.datasets["reference"]] if sound else None


def _classifiers_in(kind: str, rows: pl.DataFrame) -> list[str]:
    if kind == _LONG_KIND:
        return rows["classifier"].unique(maintain_order=True).to_list()
    if kind == _WIDE and rows.height:
        return [column for column in rows.columns if column != "image"]
    return []


def _correct(
    tables: _Tables, dataset: str, counts: _Table, classifiers: Sequence[str]
) -> Generator[Violation, None, Bools | None]:
    """Fill the matrix of correctness [images, classifiers], every entry exactly once.

    Of a pool of candidates that nobody predicted it has no column.
    """
    images = counts.frame["image"]
    if dataset == tables.datasets.get(CANDIDATES) and not _is_predicted(tables, dataset):
        classifiers = ()
    # Rows follow the order of the counts; `times` counts the predictions of every entry.
    rows = pl.DataFrame({"image": images, "row": np.arange(images.len())})
    places = {name: place for place, name in enumerate(classifiers)}
    correct = np.zeros((images.len(), len(classifiers)), dtype=np.bool_)
    times = np.zeros(correct.shape, dtype=np.int32)
    predictions = tables.of_kinds(_LONG_KIND, _WIDE)
    sound = True
    for table in predictions:
        predicted = table.rows_of(dataset)
        strange = predicted.join(rows, on="image", how="anti")["image"].unique(maintain_order=True)
        # Predictions about images without counts are named, and left out to go on looking.
        if len(strange):
            sound = False
            alone = images.filter(~images.is_in(predicted["image"].implode())).to_list()
            close = did_you_mean(strange[0], alone) if len(strange) == 1 else ""
            at = table.lines(
                (pl.col("dataset") == dataset) & pl.col("image").is_in(strange.implode())
            )
            yield Violation(
                "predictions-without-counts",
                where=table.where,
                counts_where=counts.where,
                images=listing(strange),
                dataset=dataset,
                lines=at,
                hint=close,
            )
            predicted = predicted.filter(~pl.col("image").is_in(strange.implode()))
        joined = predicted.join(rows, on="image", maintain_order="left")
        for name, at, values in _columns(table.kind, joined):
            if name in places:
                np.add.at(times[:, places[name]], at, 1)
                correct[at, places[name]] = values
    # Every entry must have been filled exactly once.
    once = yield from rules.checked(
        _times_violations(times, dataset, predictions, images.to_numpy(), classifiers)
    )
    return correct if sound and once else None


def _is_predicted(tables: _Tables, dataset: str) -> bool:
    """Whether some table has predictions on a data set."""
    return any(table.rows_of(dataset).height for table in tables.of_kinds(_LONG_KIND, _WIDE))


def _columns(kind: str, rows: pl.DataFrame) -> Iterator[tuple[str, Ints, Bools]]:
    """Yield (classifier, row numbers, correctness) of each classifier in a table."""
    if kind == "predictions":
        for (name,), part in rows.group_by("classifier", maintain_order=True):
            yield str(name), part["row"].to_numpy(), part["correct"].to_numpy()
    else:
        for name in _classifiers_in(kind, rows.drop("row")):
            yield name, rows["row"].to_numpy(), rows[name].to_numpy()


def _times_violations(
    times: NDArray[np.int32],
    dataset: str,
    tables: Sequence[_Table],
    images: NDArray[np.object_],
    classifiers: Sequence[str],
) -> Iterator[Violation]:
    where = _files([table.where for table in tables])
    told: Mapping[LiteralString, Bools] = {
        "prediction-missing": times == 0,
        "prediction-repeated": times > 1,
    }
    for rule, broken in told.items():
        columns = np.flatnonzero(broken.any(axis=0)).tolist()
        if not columns:
            continue
        name = str(classifiers[columns[0]])
        offenders = images[broken[:, columns[0]]]
        others = len(columns) - 1
        too = f", and {others} classifier{'s' if others > 1 else ''} more" if others else ""
        at = dict[str, str]()
        if rule == "prediction-repeated":
            these = (pl.col("dataset") == dataset) & pl.col("image").is_in(offenders.tolist())
            long = [table for table in tables if table.kind == _LONG_KIND]
            own = these & (pl.col("classifier") == name)
            at["lines"] = "".join(each.lines(own) for each in long[:1])
        yield Violation(
            rule,
            where=where,
            classifier=name,
            images=listing(offenders),
            dataset=dataset,
            others=too,
            **at,
        )


def _groups(tables: _Tables, dataset: str, counts: _Table) -> dict[str, NDArray[np.str_]]:
    """Label and group columns of the counted images, by column name."""
    described = [table for table in tables.of_kinds("images") if table.rows_of(dataset).height]
    if not described:
        return {}
    where = _files([table.where for table in described])
    if len({tuple(table.frame.columns) for table in described}) > 1:
        raise StudyError("image-tables-differ-in-columns", where=where)
    rows = pl.concat([table.rows_of(dataset) for table in described])
    rules.raise_first(_find_repeats(described, ["image"], where, dataset))
    if (strange := counts.frame.join(rows, on="image", how="anti")).height:
        raise StudyError(
            "counted-image-without-label",
            where=where,
            images=listing(strange["image"]),
            dataset=dataset,
        )
    joined = counts.frame.select("image").join(rows, on="image", maintain_order="left")
    return {name: joined[name].to_numpy().astype(np.str_) for name in rows.columns[1:]}


def _read_answers(tables: _Tables) -> list[Predictions]:
    """The answers on each data set; none where a table of predictions has no column label_1."""
    long = tables.of_kinds(_LONG_KIND)
    shared = set.intersection(
        *(set(table.frame.columns) for table in tables.of_kinds(_LONG_KIND, _WIDE))
    )
    if LABELS[0] not in shared:
        return []
    kept = [name for name in ("label", *LABELS, *PROBABILITIES) if name in shared]
    answers: list[Predictions] = []
    for dataset in filter(partial(_is_predicted, tables), tables.datasets.values()):
        rows = pl.concat(
            [table.rows_of(dataset).select("image", "classifier", *kept) for table in long]
        )
        if "label" not in kept:
            labels = _labels(tables).filter(pl.col("dataset") == dataset).drop("dataset")
            rows = rows.join(labels, on="image", how="left")
        answers.append(_predictions(rows, dataset))
    return answers


def _labels(tables: _Tables) -> pl.DataFrame:
    """The labels of all images: dataset, image, label."""
    described = tables.of_kinds("images")
    if not described:
        raise StudyError(
            "answers-without-labels",
            where=_files([table.where for table in tables.of_kinds(_LONG_KIND)]),
        )
    return pl.concat([table.frame.select(*_KEY, "label") for table in described]).unique(_KEY)


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


def _find_repeats(
    tables: Sequence[_Table], key: Sequence[str], where: str, dataset: str
) -> Iterator[Violation]:
    """Check that no two rows of a data set say the same thing."""
    rows = pl.concat([table.rows_of(dataset).select(key) for table in tables])
    repeated = rows.filter(pl.struct(key).is_duplicated()).unique(maintain_order=True)
    if not repeated.height:
        return
    names = [" on ".join(values) for values in repeated.iter_rows()]
    noun = "image" if len(key) == 1 else "worker"
    how = "" if noun == "image" else ", as bayesrep clean --rules repeats does"
    of_first = [pl.col(name) == value for name, value in repeated.row(0, named=True).items()]
    these = pl.all_horizontal(pl.col("dataset") == dataset, *of_first)
    at = tables[0].lines(these) if len(tables) == 1 else ""
    yield Violation(
        "table-rows-repeated",
        where=where,
        repeated=listing(names, noun),
        dataset=dataset,
        lines=at,
        advice=how,
    )


def _files(paths: Iterable[str | Path]) -> str:
    return ", ".join(str(path) for path in paths) or "tables"
