"""Values of cells: numbers, yes or no, times, names or missing; one rule for all readers.

Blanks around a value and case do not count; 1,000 is refused, a thousand to some, one to others.
"""

import sys
import warnings
from typing import LiteralString, TypeVar

import polars as pl

from bayesrep.bounds import LARGEST_COUNT
from bayesrep.errors import StudyError, TableWarning, Violation, listing
from bayesrep.files.names import BLANK_CHARACTERS, normalize_names, warn_of_shortened
from bayesrep.files.row_numbers import Place

TRUE_WORDS, FALSE_WORDS = ("true", "t", "yes", "y"), ("false", "f", "no", "n")
"""Words for yes and no besides the numbers 1 and 0, in lower case."""
MISSING_WORDS = ("", "nan", "-nan", "nat", "none", "null", "na", "<na>", "n/a", "#n/a", "#na")
"""Words for a missing value, in lower case; in a column of names these are names."""
_FORMULA_ERROR = r"^#(N/A|N/D|NV|[\p{Lu}/0]+[!?])$"  # shown by a workbook where a formula failed
_NUMBER_PATTERN = r"^[+-]?([0-9]+\.?|[0-9]*[.,][0-9]+)([eE][+-]?[0-9]+)?$"
_GROUPED_DIGITS = r"^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+$"  # 1,000 may be a thousand or one
_GROUPED_COUNT = r"^[1-9][0-9]{0,2}([.,][0-9]{3})+$"  # 1.000 may be a thousand or one, too
_Column = TypeVar("_Column", pl.Series, pl.Expr)


class UnreadableError(StudyError):
    """Values of a column that cannot be read, by one rule."""

    wrong: pl.Series  # mask of their rows


def is_missing(column: pl.Series) -> pl.Series:
    """Mask the missing values of a column."""
    return _fold(column).is_in(MISSING_WORDS).fill_null(value=True)


def parse_numbers(column: pl.Series) -> pl.Series:
    """A column as floats, null where a value is not a number; a comma may part the decimals."""
    if column.dtype.is_numeric():
        return column.cast(pl.Float64, strict=False)
    text = _fold(column)
    number = text.str.contains(_NUMBER_PATTERN) & ~text.str.contains(_GROUPED_DIGITS)
    decimal = text.set(~number, None).str.replace(",", ".", literal=True)
    return decimal.cast(pl.Float64, strict=False)


def parse_flags(column: _Column) -> _Column:
    """A column of yes and no as booleans, null where a value is neither."""
    if isinstance(column, pl.Expr):
        return column.map_batches(parse_flags, return_dtype=pl.Boolean, is_elementwise=True)
    if column.dtype == pl.Boolean:
        return column
    word = column.cast(pl.String)
    yes, no = word.is_in((*TRUE_WORDS, "1")), word.is_in((*FALSE_WORDS, "0"))
    if not (yes | no).all():  # in capitals, or a number such as 1.0
        word, number = _fold(column), parse_numbers(column)
        yes = word.is_in(TRUE_WORDS) | (number == 1).fill_null(value=False)
        no = word.is_in(FALSE_WORDS) | (number == 0).fill_null(value=False)
    return yes.set(~(yes | no).fill_null(value=False), None)


def _fold(column: pl.Series) -> pl.Series:
    return column.cast(pl.String).str.strip_chars(BLANK_CHARACTERS).str.to_lowercase()


def texts(column: pl.Series, where: str | Place) -> pl.Series:
    """Convert a column to text without blanks around it; rows without a value are refused."""
    text = normalize_names(column)
    missing = lack_names(text)
    is_shown = not text.filter(missing).fill_null("").eq("").all()
    _refuse(missing, column, "value-missing-in-rows", where, show_values=is_shown)
    warn_of_shortened(text, where)
    return text


def lack_names(text: pl.Series) -> pl.Series:
    """Mask texts that name nothing: empty ones, and the errors of a workbook's formulas."""
    return (text.fill_null("") == "") | text.str.contains(_FORMULA_ERROR).fill_null(value=False)


def people(column: pl.Series, where: str | Place) -> pl.Series:
    """A column of workers' names as `texts` has it; those that may be nobody's are warned of."""
    text = texts(column, where)
    warn_of_nobodies(text, where)
    return text


def are_controls(column: pl.Series) -> pl.Series:
    """Mask the answers about controls, from a column `control`."""
    return ~(is_missing(column) | (parse_flags(column) == False).fill_null(value=False))  # noqa: E712


def warn_of_controls(counted: pl.DataFrame, where: str | Place) -> None:
    """Say how many answers are about controls: `control`, and `len` of the answers with each."""
    if number := counted.filter(are_controls(counted["control"]))["len"].sum():
        text = (
            f"{where}: {number:,} of {counted['len'].sum():,} answers are about controls (column "
            "'control') and count all the same; `bayesrep answers count --rules controls` leaves "
            "them out"
        )
        warnings.warn(TableWarning(text), stacklevel=3)


def warn_of_nobodies(text: pl.Series, where: str | Place) -> None:
    """Warn of workers' names that may be missing values: each counts as one person."""
    odd = text.filter(is_missing(text) | lack_names(text)).unique(maintain_order=True)
    if len(odd):
        text_of_warning = (
            f"{where}: {listing(odd, 'worker')} may be nobody; each such name counts as one "
            "person, so give every answer of nobody a worker of its own"
        )
        warnings.warn(TableWarning(text_of_warning), stacklevel=3)


def flags(column: pl.Series, where: str | Place) -> pl.Series:
    """Convert a column of yes and no to booleans; missing values stay, others are refused."""
    values = parse_flags(column)
    wrong = values.is_null() & ~is_missing(column)
    _refuse(wrong, column, _flag_rule(column, wrong), where)
    return values


def _flag_rule(column: pl.Series, wrong: pl.Series) -> LiteralString:
    text = column.filter(wrong).cast(pl.String).str.strip_chars()
    values = parse_numbers(text.str.strip_chars_end("% "))
    if len(values) and not values.null_count():
        if values.is_in([0.0, 100.0]).all() and values.eq(100).any():
            return "flag-written-as-hundred"
        if values.is_between(0, 100).all():
            return "flag-given-as-share"
    return "flag-neither-true-nor-false"


def all_flags(column: pl.Series, where: str | Place) -> pl.Series:
    """A column of yes and no as booleans; rows without a value are refused."""
    converted = flags(column, where)
    _refuse(converted.is_null(), column, "flag-missing-in-rows", where, show_values=False)
    return converted


def whole_numbers(column: pl.Series, where: str | Place, *, missing: bool = False) -> pl.Series:
    """A column as int64; rows with anything else than a whole number are refused."""
    numbers = parse_numbers(column)
    whole = (numbers.is_finite() & (numbers == numbers.floor())).fill_null(value=False)
    if not column.dtype.is_numeric():
        whole &= ~_fold(column).str.contains(_GROUPED_COUNT).fill_null(value=False)
    if missing:
        whole |= is_missing(column)
    _refuse(~whole, column, _count_rule(column, ~whole), where)
    large = numbers.abs() > LARGEST_COUNT  # beyond, floats and int64 part company
    _refuse(large, column, "count-too-large-in-rows", where)
    return numbers.fill_nan(None).cast(pl.Int64)


def _count_rule(column: pl.Series, wrong: pl.Series) -> LiteralString:
    text = column.filter(wrong).cast(pl.String).str.strip_chars()
    share = text.str.contains("%", literal=True) | (parse_numbers(text) < 1)
    if len(text) and share.fill_null(value=False).all():
        return "count-given-as-share"
    if len(text) and text.str.contains(_GROUPED_COUNT).any():
        return "count-with-thousands-separated"
    return "count-not-whole-in-rows"


def probabilities(column: pl.Series, where: str | Place) -> pl.Series:
    """A column as float64; rows with anything else than a number in [0, 1] are refused."""
    return numbers(column, where, "probability-out-of-range-in-rows", least=0, most=1)


def numbers(
    column: pl.Series,
    where: str | Place,
    rule: LiteralString = "number-missing-in-rows",
    *,
    least: float = -sys.float_info.max,
    most: float = sys.float_info.max,
    missing: bool = False,
) -> pl.Series:
    """A column as float64; rows without a finite number from `least` to `most` are refused."""
    values = parse_numbers(column).fill_nan(None)
    is_valid = values.is_between(least, most).fill_null(value=False)
    _refuse(~(is_valid | is_missing(column)) if missing else ~is_valid, column, rule, where)
    return values


def durations(column: pl.Series, where: str | Place, *, missing: bool = False) -> pl.Series:
    """A column of seconds that something took; rows with anything else are refused."""
    return numbers(column, where, "task-seconds-no-time", least=0, missing=missing)


def seconds(column: pl.Series, where: str | Place) -> pl.Series:
    """Convert a column of times to seconds since 1970, UTC if they have zones."""
    if not parse_numbers(column).null_count():
        return numbers(column, where)
    text = column.cast(pl.String)
    zoned = text.str.contains(r"(Z|[+-]\d\d:?\d\d)$").fill_null(value=False)
    # Times without a zone share one, but cannot be compared with times that have one.
    if zoned.any() and not zoned.all():
        _refuse(~zoned, column, "time-without-zone", where)
    form = text.str.replace(r"Z$", "+00:00").str.replace(" ", "T")
    if zoned.any():
        times = form.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%:z", time_zone="UTC", strict=False)
    else:
        times = form.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit="us", strict=False)
    _refuse(times.is_null(), column, "time-not-iso-8601", where)
    return times.dt.epoch("us").cast(pl.Float64) / 1e6


def _refuse(
    wrong: pl.Series,
    column: pl.Series,
    rule: LiteralString,
    where: str | Place,
    *,
    show_values: bool = True,
) -> None:
    """Raise if values are wrong, and show them unless all are empty."""
    wrong = wrong.fill_null(value=False)
    if wrong.any():
        rows = Place.from_name(where).rows(wrong, column if show_values else None)
        error = UnreadableError(Violation(rule, where=where, column=column.name, rows=rows))
        error.wrong = wrong
        raise error
