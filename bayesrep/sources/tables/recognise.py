"""Recognise the kind of each table by its columns, and convert them to their types."""

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from bayesrep.errors import StudyError, TableWarning, Violation, did_you_mean, find_nearest, listing
from bayesrep.files import parquet
from bayesrep.files.names import normalize_names
from bayesrep.files.row_numbers import Place
from bayesrep.files.tables import fold_heading, require, warn_unread
from bayesrep.files.text_table import Sheet
from bayesrep.files.values import (
    UnreadableError,
    all_flags,
    is_missing,
    numbers,
    parse_flags,
    parse_numbers,
    people,
    probabilities,
    seconds,
    texts,
    warn_of_controls,
    whole_numbers,
)
from bayesrep.studies.column_aliases import (
    ANSWER_COLUMNS,
    COLUMN_ALIASES,
    COLUMN_SYNONYMS,
    find_synonyms,
    in_our_words,
)
from bayesrep.studies.layout import LABEL_COLUMNS, PROBABILITY_COLUMNS
from bayesrep.studies.violations import Problems

CANDIDATES_ROLE = "candidates"
ALONE_ADVICE = (
    "; without a second version there are `bayesrep answers` (how people answered), `bayesrep "
    "papers compare` (all labels that are right) and `bayesrep collect plan` (what one takes)"
)
IMAGE_KEY = ("dataset", "image")
LONG_KIND, WIDE_KIND = PREDICTED_KINDS = ("predictions", "wide predictions")
COUNTED_KINDS = ("counts", "annotations")
KIND_COLUMNS = {
    "annotations": (*IMAGE_KEY, "worker", "selected"),
    "counts": (*IMAGE_KEY, "selected", "shown"),
    LONG_KIND: (*IMAGE_KEY, "classifier", "correct"),
    "images": (*IMAGE_KEY, "label"),
    WIDE_KIND: IMAGE_KEY,
}
KNOWN_COLUMNS = (
    *(*IMAGE_KEY, *COLUMN_ALIASES, "task", "worker", "selected", "shown", "position", "time"),
    *("context", "classifier", "correct", "label", *LABEL_COLUMNS, *PROBABILITY_COLUMNS),
)
_REPLACEABLE_COLUMNS = {LONG_KIND: ("correct", LABEL_COLUMNS[0]), "annotations": ("worker", None)}
"""Optional columns of a kind of table, with the column that may replace them, if any."""
_ORDER_COLUMNS = ("position", "time")
_OPTIONAL_COLUMNS = {
    LONG_KIND: ("label", *LABEL_COLUMNS, *PROBABILITY_COLUMNS),
    "annotations": ("label", "context", *_ORDER_COLUMNS),
}
"""Columns that a kind of table may have besides its needed ones."""
_MEANT_ELSEWHERE = (*KNOWN_COLUMNS, *ANSWER_COLUMNS)
_CROWD_KIT_COLUMNS = {"task": "image", "label": "selected"}
_RATER_PATTERN = re.compile(
    r"(rater|annotator|worker|judge|coder|person|labell?er)[ _.-]?\d+", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)
class TypedTable:
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
class GivenTables:
    """All tables, and the names of their data sets, by role."""

    tables: Sequence[TypedTable]
    datasets: Mapping[str, str]

    def of_kinds(self, *kinds: str) -> list[TypedTable]:
        """The tables of some kinds."""
        return [table for table in self.tables if table.kind in kinds]

    def dataset_names(self, *kinds: str) -> list[str]:
        """Names of the data sets of which there are rows, in tables of some kinds or of any."""
        tables = self.of_kinds(*kinds) if kinds else self.tables
        return sorted({name for table in tables for name in table.frame["dataset"].unique()})


def recognise_sheet(sheet: Sheet, problems: Problems) -> list[TypedTable]:
    """Find each kind that a table is by its columns, and convert these; none without a kind."""
    worded = problems.attempt(partial(_in_our_words, sheet))
    if worded is None:
        return []
    (frame, place), others = worded
    if "worker" in frame.columns and frame["worker"].null_count() == frame.height:
        frame = frame.drop("worker")  # the workers are unknown
    kind = problems.attempt(partial(_kind, frame, place))
    if kind is None:
        return []
    if kind not in (WIDE_KIND, "images"):  # whose columns are classifiers and groups
        strange = [name for name in frame.columns if name not in _MEANT_ELSEWHERE]
        absent = {*KIND_COLUMNS[kind], *_OPTIONAL_COLUMNS.get(kind, ())}.difference(frame.columns)
        warn_unread(strange, kind, absent, place)
    if kind == "annotations" and "control" in frame.columns:
        warn_of_controls(frame.group_by("control").len(), place)
    if not problems.take(_row_violations(frame, place)):
        named = ~_empty_cells(frame).select(pl.any_horizontal(IMAGE_KEY)).to_series()
        _convert_rows(frame.filter(named), kind, place.select_rows(named), problems)
        return []
    rows = _convert_rows(frame, kind, place, problems)
    if kind != "counts" or lacking_columns(LONG_KIND, frame.columns):
        return [TypedTable(kind, rows, str(place), place, others)]
    # Counts beside each prediction: the same counts come again with every classifier.
    answers = _convert_columns(frame, LONG_KIND, place, problems)
    counts = rows.unique(maintain_order=True)
    return [
        TypedTable(LONG_KIND, answers, str(place), place, others),
        TypedTable(kind, counts, str(place), None, others),
    ]


def recognise_frame(frame: pl.DataFrame, kind: str, problems: Problems) -> list[TypedTable]:
    """A table of a kind that is known, which is also what a message calls it."""
    worded = problems.attempt(
        partial(_in_our_words, Sheet(frame, Place(kind)), stacks=kind == "annotations")
    )
    if worded is None:
        return []
    (rows, place), others = worded
    if kind == LONG_KIND and not {"classifier", "correct", LABEL_COLUMNS[0]} & set(rows.columns):
        kind = WIDE_KIND
    checked = problems.attempt(partial(_with_columns, rows, kind, place))
    if checked is None:
        return []
    converted = _convert_rows(checked, kind, place, problems)
    if kind == "counts" and "classifier" in rows.columns:  # beside each prediction
        converted = converted.unique(maintain_order=True)
        return [TypedTable(kind, converted, str(place), None, others)]
    return [TypedTable(kind, converted, str(place), place, others)]


def warn_of_unnamed_classifiers(tables: GivenTables) -> None:
    """Say what is taken for classifiers by its place, where others are named in a column."""
    if not tables.of_kinds(LONG_KIND):
        return
    for table in tables.of_kinds(WIDE_KIND):
        columns = listing([name for name in table.frame.columns if name not in IMAGE_KEY], "column")
        text = (
            f"{table.where}: taken for classifiers, as answers about images: {columns}; "
            "groups of images stand beside a column 'label'"
        )
        warnings.warn(TableWarning(text), stacklevel=2)


def _convert_rows(frame: pl.DataFrame, kind: str, place: Place, problems: Problems) -> pl.DataFrame:
    rows = _convert_columns(frame, kind, place, problems)
    if kind == "counts":
        problems.take(_count_violations(rows, place))
    return rows


def _with_columns(rows: pl.DataFrame, kind: str, place: Place) -> pl.DataFrame:
    if lacking_columns(kind, rows.columns) or rows.is_empty():
        require(rows, KIND_COLUMNS[kind], str(place))
    if kind not in (WIDE_KIND, "images"):  # whose other columns are classifiers and groups
        names = _OPTIONAL_COLUMNS[kind] if kind == "annotations" else _ORDER_COLUMNS
        further = f"^({'|'.join((*names, *LABEL_COLUMNS, *PROBABILITY_COLUMNS))})$"
        rows = rows.select(pl.col(f"^({'|'.join(KIND_COLUMNS[kind])})$", further))
    if line := parquet.strange_type(rows, rows.columns, str(place)):
        raise StudyError(line)
    return rows


def _in_our_words(sheet: Sheet, *, stacks: bool = True) -> tuple[Sheet, bool]:
    """Rename columns to ours and stack raters; with true if it has items or judges."""
    frame, place = sheet
    if {"task", "worker"} <= set(frame.columns):
        new = {old: new for old, new in _CROWD_KIT_COLUMNS.items() if old in frame.columns}
        frame = frame.rename({old: new for old, new in new.items() if new not in frame.columns})
    others = in_our_words(frame.columns)
    frame = frame.rename(others)
    _refuse_totals(frame, place)
    synonyms: dict[str, str] = {}
    for name, candidates in find_synonyms(frame.columns, fold_heading).items():
        if len(candidates) > 1:
            columns = listing(candidates, "column")
            raise StudyError("column-with-candidates", where=place, columns=columns, column=name)
        synonyms |= dict.fromkeys(candidates, name)
    if synonyms:
        read = ", ".join(f"{old!r} is read as {new}" for old, new in synonyms.items())
        text = f"{place}: {read}; --rename COLUMN=NAME if it is not"
        warnings.warn(TableWarning(text), stacklevel=2)
    renamed = {*others, *synonyms}
    frame = frame.rename(synonyms)
    has_items = {"item", "question", "judge"} & renamed and "image" not in sheet.frame.columns
    return _stack_raters(frame, place) if stacks else Sheet(frame, place), bool(has_items)


def _refuse_totals(frame: pl.DataFrame, place: Place) -> None:
    """Refuse accuracies of whole data sets: numbers beside names of classifiers, and no images."""
    names = {name: fold_heading(name) for name in frame.columns}
    of_models = {"classifier", "name", *COLUMN_SYNONYMS["classifier"]}
    of_images = {"image", "selected", "shown", *COLUMN_SYNONYMS["image"]}
    if of_models.isdisjoint(names.values()) or not of_images.isdisjoint(names.values()):
        return
    totals = list[str]()
    for column in frame:
        values = parse_numbers(column.cast(pl.String).str.strip_chars_end("% "))
        is_share = not values.null_count() and values.is_between(0, 100).all()
        totals += [column.name] if is_share and parse_flags(column).null_count() else []
    of_sets = {"dataset", *COLUMN_SYNONYMS["dataset"]}
    has_several = any(frame[name].n_unique() > 1 for name in names if names[name] in of_sets)
    if len(totals) > 1 or (totals and has_several):
        raise StudyError("table-of-totals", where=place, columns=listing(totals, "column"))
    if totals:
        rule, columns = "leaderboard-of-one-data-set", listing(totals, "column")
        raise StudyError(rule, where=place, columns=columns, alone=ALONE_ADVICE)


def _stack_raters(frame: pl.DataFrame, place: Place) -> Sheet:
    """Make a row of each answer where raters have a column each, and nothing else is told."""
    raters = [name for name in frame.columns if _RATER_PATTERN.fullmatch(name)]
    rest = [name for name in frame.columns if name not in raters]
    others = {"worker", "selected", "shown", "correct", "classifier"}
    if len(raters) < 2 or not others.isdisjoint(rest) or not {*rest} <= {*_MEANT_ELSEWHERE}:
        return Sheet(frame, place)
    text = f"{place}: {listing(raters, 'column')} are read as answers of a worker each"
    warnings.warn(TableWarning(text), stacklevel=3)
    texts_of = frame.with_columns(normalize_names(frame[name]) for name in raters)
    rows = pl.concat(
        texts_of.select(*rest, pl.lit(name).alias("worker"), pl.col(name).alias("selected"))
        for name in raters
    )
    answered = ~is_missing(rows["selected"])
    places = [row % frame.height for row in answered.arg_true().to_list()]
    return Sheet(rows.filter(answered), place.gather_rows(places))


def _row_violations(frame: pl.DataFrame, place: Place) -> Iterator[Violation]:
    """Check that there are rows, and that each says of which image."""
    if frame.height == 0:
        yield Violation("table-without-rows", where=place)
        return
    values = _empty_cells(frame)
    for name in IMAGE_KEY:
        if values[name].any():
            yield Violation(
                "value-missing-in-rows", where=place, column=name, rows=place.rows(values[name])
            )


def _empty_cells(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(pl.all().cast(pl.String).str.strip_chars().fill_null("") == "")


def lacking_columns(kind: str, columns: Collection[str]) -> list[str]:
    """The columns that a kind needs and are not there."""
    left_out, instead = _REPLACEABLE_COLUMNS.get(kind, (None, None))
    missing = [name for name in KIND_COLUMNS[kind] if name not in columns]
    return [name for name in missing if name != left_out or (instead and instead not in columns)]


def _kind(frame: pl.DataFrame, place: Place) -> str:
    columns, present = frame.columns, set(frame.columns)
    for kind in ("annotations", "counts", LONG_KIND):
        if set(KIND_COLUMNS[kind]) <= present:
            return kind
    if not lacking_columns(LONG_KIND, columns) and not present & {"worker", "selected"}:
        return LONG_KIND
    if not lacking_columns("annotations", columns) and _are_answers(frame):
        return "annotations"
    named = {column for kind in KIND_COLUMNS.values() for column in kind} - set(IMAGE_KEY)
    if set(IMAGE_KEY) < present:
        if "label" in present and not present & (named - {"label"}):
            return "images"
        if not present & named:
            _refuse_texts(frame, place)
            return WIDE_KIND
    raise StudyError(_explain_unknown_kind(columns, place))


def _refuse_texts(frame: pl.DataFrame, place: Place) -> None:
    """Refuse columns that would be classifiers by their names, and hold no answers but texts."""
    texts = [
        column.name
        for column in frame.drop(IMAGE_KEY)
        if parse_flags(column).is_null().all()
        and not is_missing(column).any()
        and not column.cast(pl.String).str.contains(r"^[\d.,%+-]+$").any()
    ]
    if texts:
        raise StudyError(
            "table-columns-hold-texts",
            where=place,
            columns=listing(texts, "column"),
            verb="holds" if len(texts) == 1 else "hold",
            hint=next(filter(None, (did_you_mean(name, ["label"]) for name in texts)), ""),
        )


def _are_answers(frame: pl.DataFrame) -> bool:
    """Test whether rows are single answers without workers, and not counts without `shown`."""
    several = frame.select(IMAGE_KEY).is_duplicated().any()
    if not several or {"shown", *KIND_COLUMNS[LONG_KIND]} & set(frame.columns) - set(IMAGE_KEY):
        return False
    try:
        all_flags(frame["selected"], "")
    except StudyError:
        return False
    return True


def _explain_unknown_kind(columns: Sequence[str], place: Place) -> Violation:
    named = {column for kind in KIND_COLUMNS.values() for column in kind}
    others = [name for name in columns if name not in named]
    close = {name: find_nearest(name, others) for name in named if name not in columns}

    def lacks(kind: str) -> tuple[int, int]:
        missing = [name for name in KIND_COLUMNS[kind] if name not in columns]
        return sum(close[name] is None for name in missing), len(missing)

    kinds = [kind for kind in (LONG_KIND, "counts", "annotations", "images") if lacks(kind)[1]]
    kind = min(kinds, key=lacks)
    missing = [name for name in KIND_COLUMNS[kind] if name not in columns]
    meant = [f"{other!r} to {name!r}" for name in missing if (other := close[name])]
    # Without any of our columns besides the keys, the closest kind is a guess.
    if not any(name in columns or close[name] for name in named - set(IMAGE_KEY)):
        keys = [name for name in IMAGE_KEY if name not in columns]
        if len(keys) == 1 and not close[keys[0]]:
            other_columns = ", ".join(map(repr, others[:8]))
            rule = "table-key-column-missing"
            return Violation(rule, where=place, column=keys[0], other_columns=other_columns)
        if keys:
            kinds_text = "; ".join(
                f"{kind}: {', '.join(needed)}" for kind, needed in KIND_COLUMNS.items()
            )
            columns_text = ", ".join(map(repr, columns[:8]))
            return Violation(
                "table-columns-unknown",
                where=place,
                columns=columns_text,
                known_kinds=kinds_text,
                hint=f"; rename {' and '.join(meant)}, if that is what it holds" if meant else "",
            )
    facts = {
        "where": place,
        "kind": kind,
        "kind_columns": ", ".join(KIND_COLUMNS[kind]),
        "missing": listing(missing, "column"),
        "verb": "is" if len(missing) == 1 else "are",
    }
    it = "it" if len(missing) == 1 else "them"
    if missing == ["dataset"]:
        it = f"it, or give the file as NAME={place}"
    others = ", ".join([repr(name) for name in columns if name not in KIND_COLUMNS[kind]][:8])
    if meant:
        return Violation("table-columns-misnamed", **facts, renames=" and ".join(meant))
    if others:
        rule = "table-kind-incomplete-or-misnamed"
        return Violation(rule, **facts, pronoun=it, other_columns=others)
    return Violation("table-kind-incomplete", **facts, pronoun=it)


def _convert_columns(
    frame: pl.DataFrame, kind: str, place: Place, problems: Problems
) -> pl.DataFrame:
    own = [name for name in KIND_COLUMNS[kind] if name in frame.columns]
    extra = [column for column in frame.columns if column not in own]
    types = {"shown": whole_numbers, "correct": all_flags, "worker": people}
    types["selected"] = whole_numbers if kind == "counts" else all_flags
    if kind == WIDE_KIND:
        types |= dict.fromkeys(extra, all_flags)
    elif kind == LONG_KIND:
        extra = [column for column in extra if column in _OPTIONAL_COLUMNS[kind]]
        types |= dict.fromkeys(PROBABILITY_COLUMNS, probabilities)
    elif kind == "annotations":
        ordered_by = [name for name in _ORDER_COLUMNS if name in extra][:1]
        extra = [*(name for name in extra if name in ("label", "context")), *ordered_by]
        types |= {"position": numbers, "time": seconds}
        types["label"] = lambda column, where: normalize_names(column)
    elif kind != "images":
        extra = []
    columns = [
        _read_column(types.get(name, texts), frame[name], place, problems)
        for name in (*own, *extra)
    ]
    return pl.DataFrame(columns)


def _read_column(
    convert: Callable[[pl.Series, Place], pl.Series],
    column: pl.Series,
    place: Place,
    problems: Problems,
) -> pl.Series:
    """A column in its type; nothing, or an empty text, where a value cannot be read."""
    try:
        return convert(column, place)
    except UnreadableError as error:
        problems.append(error.violation)
        readable = ~error.wrong
    rest = _read_column(convert, column.filter(readable), place.select_rows(readable), problems)
    places = pl.DataFrame({"row": readable.arg_true(), column.name: rest})
    rows = pl.DataFrame({"row": pl.arange(len(column), dtype=pl.UInt32, eager=True)})
    filled = rows.join(places, on="row", how="left", maintain_order="left")[column.name]
    return filled.fill_null("") if filled.dtype == pl.String else filled


def _count_violations(rows: pl.DataFrame, place: Place) -> Iterator[Violation]:
    """Check 0 <= selected <= shown and shown >= 1, naming lines and values."""
    selected, shown = rows["selected"], rows["shown"]
    for name in ("selected", "shown"):
        if (wrong := rows[name] < 0).any():
            facts = {"images": _list_images(rows, wrong), "rows": place.rows(wrong, rows[name])}
            yield Violation("negative-count-in-table", where=place, column=name, **facts)
    if (unseen := shown == 0).any():
        yield Violation(
            "image-shown-to-nobody",
            where=place,
            images=_list_images(rows, unseen),
            rows=place.rows(unseen),
        )
    if (excess := (selected > shown) & (shown > 0)).any():
        both = selected.cast(pl.String) + " of " + shown.cast(pl.String)
        yield Violation(
            "selected-exceeds-shown-in-rows",
            where=place,
            images=_list_images(rows, excess),
            rows=place.rows(excess, both),
        )


def _list_images(rows: pl.DataFrame, wrong: pl.Series) -> str:
    return listing(rows["image"].filter(wrong))


def name_files(paths: Iterable[str | Path]) -> str:
    """Tables, as a message begins."""
    return ", ".join(str(path) for path in paths) or "tables"
