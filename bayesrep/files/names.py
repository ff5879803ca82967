"""What a name is: text without blanks around it, in Unicode's composed form (NFC).

Names of images, labels, classifiers, annotators, items and data sets come out of every kind of
file through here, so that one that is written twice is the same in every reader. Nothing else of a
name is changed: 1, 01 and 1.0 are three names, and so are dog and Dog.
"""

import unicodedata
from typing import TypeVar

import polars as pl

_Column = TypeVar("_Column", pl.Series, pl.Expr)
_Frame = TypeVar("_Frame", pl.DataFrame, pl.LazyFrame)


def normalize_name(name: str) -> str:
    """A name as every reader has it."""
    return unicodedata.normalize("NFC", name).strip()


def normalize_names(column: _Column) -> _Column:
    """A column of names as every reader has them; what is missing stays missing."""
    return column.cast(pl.String).str.normalize("NFC").str.strip_chars()


def normalize_cells(frame: _Frame) -> _Frame:
    """A table all of whose texts are as names are; one that is empty then is missing."""
    text = normalize_names(pl.col(pl.String))
    return frame.with_columns(pl.when(text != "").then(text))
