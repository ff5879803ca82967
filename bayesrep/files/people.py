"""Who is nobody: cells that name nothing, and words that programs write where nobody is known."""

import warnings

import polars as pl

from bayesrep.errors import TableWarning, listing
from bayesrep.files.places import Place

_FORMULA_ERROR = r"^#(N/A|N/D|NV|[\p{Lu}/0]+[!?])$"  # what a workbook shows where one failed
_MISSING_WORDS = ["nan", "none", "null", "na", "n/a", "<na>"]


def lack_names(text: pl.Series) -> pl.Series:
    """Which texts name nothing: empty ones, and the errors of a workbook's formulas."""
    return (text == "").fill_null(value=True) | text.str.contains(_FORMULA_ERROR).fill_null(
        value=False
    )


def may_be_nobody(text: pl.Series) -> pl.Series:
    """Which texts may be what a program writes for a name that is missing, or someone's name."""
    return text.str.to_lowercase().is_in(_MISSING_WORDS).fill_null(value=False)


def warn_of_nobodies(text: pl.Series, where: str | Place) -> None:
    """Say which workers may be nobody, whose answers count as those of one person."""
    odd = text.filter(may_be_nobody(text) | lack_names(text))
    if len(odd):
        named = listing(odd.fill_null("").unique(maintain_order=True), "worker")
        told = (
            f"{where}: {named} may be nobody; each such name counts as one person, so give every "
            "answer of nobody a worker of its own"
        )
        warnings.warn(TableWarning(told), stacklevel=3)
