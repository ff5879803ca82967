"""Reading CSV and Parquet tables, and turning their columns into flags and whole numbers.

Every complaint is one line naming the file, the column, the rows and what to do. Rows are counted
from 1, the header of a CSV file not included.
"""

import os
from collections.abc import Collection
from pathlib import Path

import numpy as np
import polars as pl

from bayesrep.errors import StudyError, listing, reason
from bayesrep.files import parquet
from bayesrep.studies import rules
from bayesrep.studies.words import COLUMNS, in_our_words

TRUE_WORDS, FALSE_WORDS = ["true", "1", "1.0", "yes"], ["false", "0", "0.0", "no"]
_ABSENT = ["", "nan", "none", "null"]


def read_table(path: str | Path, *, text: Collection[str] = ()) -> pl.DataFrame:
    """Read a CSV or Parquet file, which its name says.

    Parameters
    ----------
    path
        A file whose name ends in `.csv` or `.parquet`.
    text
        Columns that are text whatever they look like, so that the image 007 keeps its zeros.
    """
    kind, where = Path(path).suffix.lower(), str(path)
    if kind not in (".csv", ".parquet"):
        raise StudyError(f"{path}: is neither .csv nor .parquet; convert it to one of them")
    try:
        # An open file, so that a missing one is an OSError and not one of polars' own errors.
        with open(path, "rb") as file:
            if kind == ".parquet":
                return parquet.read(Path(path), where, (), further=None)
            header = pl.read_csv(file, n_rows=0).columns
            file.seek(0)
            overrides = {name: pl.String() for name in header if name in text}
            table = pl.read_csv(file, schema_overrides=overrides, infer_schema_length=None)
            size = file.seek(0, os.SEEK_END)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({reason(error)})") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise StudyError(
            f"{path}: is damaged or not a {kind[1:]} table ({reason(error)}); write the file anew"
        ) from error
    if line := parquet.too_wide(table, size, where):
        raise StudyError(line)
    return table


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
    table = read_table(path, text=(*named, *COLUMNS, "task", "control"))
    table = table.rename(in_our_words(table.columns))
    require(table, (*named, "selected"), where)
    columns = [*(texts(table[name], where) for name in named), all_flags(table["selected"], where)]
    if "task" in table.columns:
        columns.append(texts(table["task"], where))
    if "control" in table.columns:
        control = table["control"].cast(pl.String).str.strip_chars().replace("", None)
        strange = ~control.is_in(["positive", "negative"]).fill_null(value=True)
        _refuse(strange, "control", "is unknown", "write positive, negative or nothing", where)
        columns.append(control)
    if "seconds" in table.columns:
        seconds = _numbers(table["seconds"])
        wrong = ~(seconds.is_finite() & (seconds >= 0)).fill_null(value=False)
        _refuse(wrong, "seconds", "is no time", "give the seconds of the task", where)
        columns.append(seconds)
    return table.with_columns(columns)


def require(frame: pl.DataFrame, columns: Collection[str], where: str) -> None:
    """Raise `StudyError` unless the table has the columns and at least one row."""
    if missing := [name for name in columns if name not in frame.columns]:
        raise StudyError(
            f"{where}: {listing(missing, 'column')} missing; it needs {', '.join(columns)}"
        )
    if frame.height == 0:
        raise StudyError(f"{where}: has no rows; give at least one")


def texts(column: pl.Series, where: str) -> pl.Series:
    """A column as text; rows without a value are refused."""
    text = column.cast(pl.String)
    _refuse(text.is_null() | (text == ""), column.name, "is missing", "give it in every row", where)
    return text


def flags(column: pl.Series, where: str) -> pl.Series:
    """A column of yes and no as booleans; missing values stay missing.

    Booleans, the numbers 1 and 0, and the words true, false, yes and no count; rows with anything
    else are refused.
    """
    if column.dtype == pl.Boolean:
        return column
    if column.dtype.is_numeric():
        yes, no = column == 1, column == 0
        absent = column.cast(pl.Float64).is_nan().fill_null(value=True)
    else:
        word = column.cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
        yes, no, absent = (word.is_in(words) for words in (TRUE_WORDS, FALSE_WORDS, _ABSENT))
    wrong = ~(yes | no | absent).fill_null(value=True)
    _refuse(wrong, column.name, "is neither true nor false", "write true, false, 1 or 0", where)
    return yes.set(absent, None)


def all_flags(column: pl.Series, where: str) -> pl.Series:
    """A column of yes and no as booleans; rows without a value are refused."""
    converted = flags(column, where)
    if converted.null_count():
        rows = (np.flatnonzero(converted.is_null().to_numpy()) + 1).tolist()
        raise StudyError(
            f"{where}: {column.name} is missing in {listing(rows, 'row')}; give it in every "
            "row or leave the row out"
        )
    return converted


def whole_numbers(column: pl.Series, where: str) -> pl.Series:
    """A column as int64; rows with anything else than a whole number are refused.

    Sign and size are for the study's rules to judge.
    """
    numbers = _numbers(column)
    whole = (numbers.is_finite() & (numbers == numbers.floor())).fill_null(value=False)
    _refuse(~whole, column.name, "is not a whole number", "counts are whole numbers", where)
    large = numbers.abs() > rules.LARGEST_COUNT  # beyond, floats and int64 part company
    _refuse(large, column.name, "is too large", "correct the counts", where)
    return numbers.cast(pl.Int64)


def probabilities(column: pl.Series, where: str) -> pl.Series:
    """A column as float64; rows with anything else than a number in [0, 1] are refused."""
    numbers = _numbers(column)
    within = numbers.is_between(0, 1).fill_null(value=False)
    rule = "is not a number between 0 and 1"
    _refuse(~within, column.name, rule, "give the probabilities of one softmax", where)
    return numbers


def numbers(column: pl.Series, where: str) -> pl.Series:
    """A column as float64; rows with anything else than a finite number are refused."""
    values = _numbers(column)
    known = values.is_finite().fill_null(value=False)
    _refuse(~known, column.name, "is not a number", "give one for every row", where)
    return values


def seconds(column: pl.Series, where: str) -> pl.Series:
    """A column of times as seconds since 1970; those of different zones are made comparable.

    Times without a zone are taken to be of one, and cannot be compared with others that have one.
    """
    if column.dtype.is_numeric():
        return numbers(column, where)
    given = column.cast(pl.String)
    zoned = given.str.contains(r"(Z|[+-]\d\d:?\d\d)$").fill_null(value=False)
    if zoned.any() and not zoned.all():
        rule = "has no time zone where others have one"
        _refuse(~zoned, column.name, rule, "give all times with a zone or none", where)
    form = given.str.replace(r"Z$", "+00:00").str.replace(" ", "T")
    if zoned.any():
        times = form.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%:z", time_zone="UTC", strict=False)
    else:
        times = form.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit="us", strict=False)
    rule = "is no time such as 2026-01-31T12:00:00+01:00"
    _refuse(times.is_null(), column.name, rule, "give ISO 8601", where)
    return times.dt.epoch("us").cast(pl.Float64) / 1e6


def _numbers(column: pl.Series) -> pl.Series:
    """A column as floats, null where a value is no number."""
    plain = column if column.dtype.is_numeric() else column.cast(pl.String)
    return plain.cast(pl.Float64, strict=False)


def _refuse(wrong: pl.Series, column: str, rule: str, advice: str, where: str) -> None:
    if wrong.any():
        rows = (np.flatnonzero(wrong.to_numpy()) + 1).tolist()
        raise StudyError(f"{where}: {column} {rule} in {listing(rows, 'row')}; {advice}")
