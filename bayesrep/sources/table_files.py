"""Reading tables, and turning their columns into flags and whole numbers.

Every complaint is one line naming the file, the column, the lines with what stands there, and what
to do. Lines are those of an editor or a spreadsheet; of Parquet, rows from 1.
"""

import warnings
from collections.abc import Collection
from pathlib import Path
from typing import LiteralString

import polars as pl

from bayesrep.errors import StudyError, TableWarning, Violation, did_you_mean, listing
from bayesrep.files import tables
from bayesrep.files.names import normalize_names
from bayesrep.files.people import lack_names, warn_of_nobodies
from bayesrep.files.places import Place
from bayesrep.files.tables import FALSE_WORDS, TRUE_WORDS
from bayesrep.studies import rules
from bayesrep.studies.columns import COLUMNS, in_our_words

_ABSENT = ["", "nan", "none", "null", "na", "n/a"]
_DECIMAL_COMMA, _GROUPED_DIGITS = r"^([+-]?\d+),(\d+)$", r"^[+-]?[1-9]\d{0,2}(,\d{3})+$"
_GROUPED_COUNT = r"^[1-9]\d{0,2}([.,]\d{3})+$"  # 1.000 may be a thousand or one, too


class UnreadableError(StudyError):
    """Values of a column that cannot be read, by one rule.

    Attributes
    ----------
    wrong
        Mask of their rows.
    """

    wrong: pl.Series


def read_table(path: str | Path, columns: Collection[str] = ()) -> pl.DataFrame:
    """Read the one table of a file; see `bayesrep.files.tables`."""
    return tables.read_only(path, columns).frame


def read_answers(path: str | Path) -> pl.DataFrame:
    """Read a table of single answers, all of its columns.

    Parameters
    ----------
    path
        With the columns dataset, image, worker, selected, and any of task, control, seconds.

    Raises
    ------
    StudyError
        Naming the rows and the column.
    """
    where, named = str(path), ("dataset", "image", "worker")
    table = read_table(path, (*named, *COLUMNS, "selected", "task", "control", "seconds"))
    table = table.rename(in_our_words(table.columns))
    require(table, (*named, "selected"), where)
    columns = [texts(table[name], where) for name in ("dataset", "image")]
    columns += [people(table["worker"], where), all_flags(table["selected"], where)]
    if "task" in table.columns:
        columns.append(texts(table["task"], where))
    if "control" in table.columns:
        control = normalize_names(table["control"])
        strange = ~control.is_in(["positive", "negative"]).fill_null(value=True)
        _refuse(strange, control, "control-unknown", where)
        columns.append(control)
    if "seconds" in table.columns:
        seconds = _numbers(table["seconds"])
        wrong = ~(seconds.is_finite() & (seconds >= 0)).fill_null(value=False)
        _refuse(wrong, seconds, "task-seconds-no-time", where)
        columns.append(seconds)
    return table.with_columns(columns)


def warn_unread(
    columns: Collection[str], kind: str, wanted: Collection[str], where: str | Place
) -> None:
    """Say which columns mean nothing to anybody, and what one was perhaps meant to be."""
    if columns:
        hint = next(filter(None, (did_you_mean(name, wanted) for name in columns)), "")
        verb = "is" if len(columns) == 1 else "are"
        text = f"{where}: {listing(columns, 'column')} of {kind} {verb} not read{hint}"
        warnings.warn(TableWarning(text), stacklevel=3)


def require(frame: pl.DataFrame, columns: Collection[str], where: str | Place) -> None:
    """Raise `StudyError` unless the table has the columns and at least one row."""
    if missing := [name for name in columns if name not in frame.columns]:
        raise StudyError(
            "table-lacks-columns",
            where=where,
            columns=listing(missing, "column"),
            needed=", ".join(columns),
        )
    if frame.height == 0:
        raise StudyError("table-without-rows", where=where)


def texts(column: pl.Series, where: str | Place) -> pl.Series:
    """A column as text without blanks around it; rows without a value are refused."""
    text = normalize_names(column)
    missing, nothing = lack_names(text), text.fill_null("") == ""
    shown = not (missing & nothing).equals(missing)
    _refuse(missing, column, "value-missing-in-rows", where, shown=shown)
    return text


def people(column: pl.Series, where: str | Place) -> pl.Series:
    """A column of workers' names as `texts` has it; names that may be nobody's are warned of."""
    text = texts(column, where)
    warn_of_nobodies(text, where)
    return text


def flags(column: pl.Series, where: str | Place) -> pl.Series:
    """A column of yes and no as booleans; missing values stay missing.

    Booleans, the numbers 1 and 0, and the words true, false, yes and no count; rows with anything
    else are refused.
    """
    if column.dtype == pl.Boolean:
        return column
    word = column.cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
    yes, no, absent = (word.is_in(words) for words in (TRUE_WORDS, FALSE_WORDS, _ABSENT))
    if not (yes | no | absent).all():  # 1.00 and 0e0 are numbers, too
        number = _numbers(column)
        yes, no = (each | (number == x).fill_null(value=False) for each, x in ((yes, 1), (no, 0)))
    wrong = ~(yes | no | absent).fill_null(value=True)
    _refuse(wrong, column, _flag_rule(column, wrong), where)
    return yes.set(absent, None)


def _flag_rule(column: pl.Series, wrong: pl.Series) -> LiteralString:
    """What is wrong with values that are neither, by what they look like."""
    text = column.filter(wrong).cast(pl.String).str.strip_chars()
    values = _numbers(text.str.strip_chars_end("% "))
    if len(values) and not values.null_count():
        if values.eq(100).all():
            return "flag-written-as-hundred"
        if values.is_between(0, 100).all():
            return "flag-given-as-share"
    return "flag-neither-true-nor-false"


def all_flags(column: pl.Series, where: str | Place) -> pl.Series:
    """A column of yes and no as booleans; rows without a value are refused."""
    converted = flags(column, where)
    _refuse(converted.is_null(), column, "flag-missing-in-rows", where, shown=False)
    return converted


def whole_numbers(column: pl.Series, where: str | Place) -> pl.Series:
    """A column as int64; rows with anything else than a whole number are refused.

    Sign and size are for the study's rules to judge.
    """
    numbers = _numbers(column)
    whole = (numbers.is_finite() & (numbers == numbers.floor())).fill_null(value=False)
    if not column.dtype.is_numeric():
        whole &= ~column.cast(pl.String).str.strip_chars().str.contains(_GROUPED_COUNT)
    _refuse(~whole, column, _count_rule(column, ~whole), where)
    large = numbers.abs() > rules.LARGEST_COUNT  # beyond, floats and int64 part company
    _refuse(large, column, "count-too-large-in-rows", where)
    return numbers.cast(pl.Int64)


def _count_rule(column: pl.Series, wrong: pl.Series) -> LiteralString:
    """What is wrong with values that are not counts, by what they look like."""
    text = column.filter(wrong).cast(pl.String).str.strip_chars()
    share = text.str.contains("%", literal=True) | (_numbers(text) < 1)
    if len(text) and share.fill_null(value=False).all():
        return "count-given-as-share"
    if len(text) and text.str.contains(_GROUPED_COUNT).any():
        return "count-with-thousands-separated"
    return "count-not-whole-in-rows"


def probabilities(column: pl.Series, where: str | Place) -> pl.Series:
    """A column as float64; rows with anything else than a number in [0, 1] are refused."""
    numbers = _numbers(column)
    within = numbers.is_between(0, 1).fill_null(value=False)
    _refuse(~within, column, "probability-out-of-range-in-rows", where)
    return numbers


def numbers(column: pl.Series, where: str | Place) -> pl.Series:
    """A column as float64; rows with anything else than a finite number are refused."""
    values = _numbers(column)
    known = values.is_finite().fill_null(value=False)
    _refuse(~known, column, "number-missing-in-rows", where)
    return values


def seconds(column: pl.Series, where: str | Place) -> pl.Series:
    """A column of times as seconds since 1970; those of different zones are made comparable.

    Times without a zone are taken to be of one, and cannot be compared with others that have one.
    """
    if not _numbers(column).null_count():
        return numbers(column, where)
    given = column.cast(pl.String)
    zoned = given.str.contains(r"(Z|[+-]\d\d:?\d\d)$").fill_null(value=False)
    if zoned.any() and not zoned.all():
        _refuse(~zoned, column, "time-without-zone", where)
    form = given.str.replace(r"Z$", "+00:00").str.replace(" ", "T")
    if zoned.any():
        times = form.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%:z", time_zone="UTC", strict=False)
    else:
        times = form.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit="us", strict=False)
    _refuse(times.is_null(), column, "time-not-iso-8601", where)
    return times.dt.epoch("us").cast(pl.Float64) / 1e6


def _numbers(column: pl.Series) -> pl.Series:
    """A column as floats, null where a value is not a number; a comma may part the decimals."""
    if column.dtype.is_numeric():
        return column.cast(pl.Float64, strict=False)
    text = column.cast(pl.String).str.strip_chars()
    grouped = text.str.contains(_GROUPED_DIGITS)  # 1,000 may be a thousand or one
    return (
        text.str.replace(_DECIMAL_COMMA, "$1.$2").set(grouped, None).cast(pl.Float64, strict=False)
    )


def _refuse(
    wrong: pl.Series,
    column: pl.Series,
    rule: LiteralString,
    where: str | Place,
    *,
    shown: bool = True,
) -> None:
    """Raise where values are wrong, showing them where something stands there."""
    wrong = wrong.fill_null(value=False)
    if wrong.any():
        rows = Place.from_name(where).rows(wrong, column if shown else None)
        broken = Violation(rule, where=where, column=column.name, rows=rows)
        error = UnreadableError(broken)
        error.wrong = wrong
        raise error
