"""Normalized names: text in Unicode's composed form (NFC), without blanks or zero-widths around.

Nothing else is changed: 1, 01 and 1.0 are three names, and so are dog and Dog.
"""

import unicodedata
import warnings
from typing import TypeVar

import polars as pl

from bayesrep.errors import TableWarning, listing

_INVISIBLE_CHARACTERS = (
    "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
)
BLANK_CHARACTERS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + _INVISIBLE_CHARACTERS
_CHANGEABLE_PATTERN = "[^ -~]|^ | $"  # not printed by ASCII, or with a blank at an end
_Column = TypeVar("_Column", pl.Series, pl.Expr)
_Frame = TypeVar("_Frame", pl.DataFrame, pl.LazyFrame)


def normalize_name(name: str) -> str:
    """A name as every reader has it."""
    return unicodedata.normalize("NFC", name).strip(BLANK_CHARACTERS)


def normalize_names(column: _Column) -> _Column:
    """A column of names as every reader has them; whole numbers held as floats have no decimals."""
    if isinstance(column, pl.Expr):  # its type is known when there is a column
        return column.map_batches(normalize_names, return_dtype=pl.String)
    if column.dtype.is_float():
        return (
            column.to_frame()
            .select(normalize_floats(pl.col(column.name), column.dtype))
            .to_series()
        )
    return _normalize_texts(column.cast(pl.String))


def _normalize_texts(column: pl.Series) -> pl.Series:
    """Normalize the few texts of a column that can change: most are ASCII, which takes no time."""
    places = column.str.contains(_CHANGEABLE_PATTERN).fill_null(value=False).arg_true()
    if not len(places):
        return column
    texts = column.gather(places).str.normalize("NFC").str.strip_chars(BLANK_CHARACTERS)
    return column.clone().scatter(places, texts)


def normalize_floats(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Convert float names to text, without decimals if all are whole; inexact ones as 1.6e+07."""
    exact = 2**24 if dtype == pl.Float32 else 2**53
    values = column.fill_nan(None).cast(pl.Float64)
    whole = ((values == values.floor()) & (values.abs() < exact)).all()
    without = values.cast(pl.Int64, strict=False).cast(pl.String)
    written = column.cast(pl.String)
    if dtype == pl.Float32:
        power = values.abs().log10().floor()
        digits, zeros = (values / 10**power).cast(pl.String), power.cast(pl.Int64, strict=False)
        short = pl.concat_str(digits, pl.lit("e+"), zeros.cast(pl.String).str.zfill(2))
        written = pl.when(values.abs() >= exact).then(short).otherwise(written)
    return pl.when(whole).then(without).otherwise(written)


def warn_of_shortened(names: pl.Series, where: object) -> None:
    """Say which names are numbers that a spreadsheet shortened: several may have become one."""
    texts = names.cast(pl.String).unique().sort()
    short = texts.filter(texts.str.contains(r"^[+-]?\d([.,]\d+)?[eE]\+\d\d+$"))
    long = texts.filter(texts.str.contains(r"^\d{16,}$"))
    # Fifteen digits are kept, and zeros written for the others: six of them are not chance.
    if long.str.contains(r"^\d{15}0+$").all() and (long.str.len_chars() - 15).sum() > 5:
        short = short.append(long)
    if len(short):
        text = (
            f"{where}: {listing(short, names.name)}: long numbers as spreadsheets shorten them, of "
            "which several may have become one; export them anew, from where they are text"
        )
        warnings.warn(TableWarning(text), stacklevel=3)


def warn_of_numbers(names: pl.Series, where: object) -> None:
    """Warn of shortened numbers, and of whole numbers with and without decimals."""
    warn_of_shortened(names, where)
    texts = names.cast(pl.String).unique().sort()
    if len(repeated := texts.filter(texts.str.replace(r"^(\d+)\.0+$", "$1").is_duplicated())):
        text = f"{where}: {listing(repeated, names.name)}: one number in several forms is several"
        warnings.warn(TableWarning(f"{text} names; write it in one"), stacklevel=3)


def normalize_cells(frame: _Frame) -> _Frame:
    """A table all of whose texts are as names are; one that is empty then is missing."""
    text = pl.col(pl.String).map_batches(
        _normalize_texts, return_dtype=pl.String, is_elementwise=True
    )
    return frame.with_columns(pl.when(text != "").then(text))
