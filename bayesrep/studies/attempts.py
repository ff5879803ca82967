"""Repeated attempts: each classifier solved each image of a data set k of n times.

The table, of a study's folder or of others, has a row for each data set, image (or item) and
classifier (or model): `solved` of `attempts`, at least 1, were right. Without a column `attempts`
each row is one attempt, and `solved` (or `correct`) is true or false.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.bounds import LARGEST_COUNT
from bayesrep.errors import StudyError, Violation, listing
from bayesrep.files import parquet, tables
from bayesrep.files.row_numbers import Place
from bayesrep.files.values import parse_flags, texts, whole_numbers
from bayesrep.studies import layout, validation
from bayesrep.studies.column_aliases import in_our_words
from bayesrep.studies.input_arrays import align_rows, own_array
from bayesrep.types import Bools, Ints

_ATTEMPT_NAMES = ["dataset", "image", "classifier"]
_ATTEMPT_COUNTS = ["solved", "attempts"]
_KNOWN_COLUMNS = (*_ATTEMPT_NAMES, *_ATTEMPT_COUNTS, "item", "question", "model", "correct")


@dataclass(frozen=True, eq=False)
class Attempts:
    """One classifier's repeated attempts at each image of one data set.

    Attributes
    ----------
    dataset, classifier
        Their names.
    images : str [N]
        Unique names.
    solved, attempts : int64 [N]
        k of n: number of right attempts at each image, and number of attempts.

    Raises
    ------
    StudyError
        Naming the data set, the classifier, the images and the first rule broken.
    """

    dataset: str
    classifier: str
    images: NDArray[np.str_]
    solved: Ints
    attempts: Ints

    def __post_init__(self) -> None:
        arrays = {name: getattr(self, name) for name in ("images", *_ATTEMPT_COUNTS)}
        for name, values in align_rows(arrays, f"attempts of {self.classifier!r}").items():
            object.__setattr__(self, name, values)
        validation.raise_first(self._violations())
        for name, dtype in (("images", np.str_), ("solved", np.int64), ("attempts", np.int64)):
            object.__setattr__(self, name, own_array(getattr(self, name), dtype))

    def _violations(self) -> Iterator[Violation]:
        where = f"attempts of {self.classifier!r} at {self.dataset!r}"
        yield from validation.image_violations(where, self.images)
        for name in _ATTEMPT_COUNTS:
            values = validation.as_numbers(getattr(self, name))
            if values is None or values.shape != (len(self.images),):
                yield Violation("attempts-not-per-image", where=where, column=name)
                return
            whole = np.isfinite(values) & (values == np.floor(values))
            wrong = ~(whole & (values >= 0) & (values <= LARGEST_COUNT))
            if wrong.any():
                images = listing(np.asarray(self.images)[wrong].tolist())
                yield Violation("attempt-column-no-count", where=where, column=name, images=images)
        solved, attempts = np.asarray(self.solved), np.asarray(self.attempts)
        rules: Mapping[LiteralString, Bools] = {
            "no-attempts-at-image": attempts == 0,
            "solved-exceeds-attempts": solved > attempts,
        }
        for rule, broken in rules.items():
            if broken.any():
                images = listing(np.asarray(self.images)[broken].tolist())
                yield Violation(rule, where=where, images=images)


def read_attempts(path: str | Path) -> list[Attempts]:
    """Read the attempts of a study, or of a table.

    Parameters
    ----------
    path
        A study's folder, or a table as `bayesrep.files.tables` reads them.

    Returns
    -------
    list of Attempts
        By data set and then classifier, each in the order in which they are first named. The data
        set of a table without that column is called as its file.

    Raises
    ------
    StudyError
        In one line, naming the file, the data set, the classifier, the images and what to do.

    Examples
    --------
    >>> import polars as pl
    >>> rows = {"dataset": "math", "image": ["a", "b"], "classifier": "solver"}
    >>> table = pl.DataFrame(rows | {"solved": [1, 4], "attempts": [4, 4]})
    >>> table.write_csv("attempts.csv")
    >>> bayesrep.read_attempts("attempts.csv")[0].solved.tolist()
    [1, 4]
    """
    source = Path(path)
    if source.is_dir():
        file = source / layout.ATTEMPTS_FILE
        if not file.exists():
            raise StudyError("study-without-attempts", path=path, attempts_file=file.name)
        names = [*_ATTEMPT_NAMES, *_ATTEMPT_COUNTS]
        return of_table(parquet.read(file, str(file), names), str(file))
    if not source.name.lower().endswith(tables.TABLE_ENDINGS):
        raise StudyError("neither-study-nor-table", path=source)
    sheet = tables.read_only(source, _KNOWN_COLUMNS)
    attempts = of_table(sheet.frame, sheet.place, dataset=source.stem)
    for each in attempts if "attempts" in sheet.frame.columns else ():
        where = f"{source}, {each.classifier!r} at {each.dataset!r}"
        counts = each.solved, each.attempts, validation.ATTEMPT_WORDS
        validation.raise_first(validation.value_violations(where, *counts))
    return attempts


def of_table(
    table: pl.DataFrame, where: str | Place, *, dataset: str | None = None
) -> list[Attempts]:
    """Read the attempts of a table; see `read_attempts`."""
    place = Place.from_name(where)
    # A table may say `solved` or `correct`, and leave its data set to the name of its file.
    table = table.rename(in_our_words(table.columns, ("image",), ("classifier",)))
    if "correct" in table.columns:
        if _ATTEMPT_COUNTS[0] in table.columns:
            both = listing([_ATTEMPT_COUNTS[0], "correct"], "column")
            raise StudyError("attempts-columns-ambiguous", where=place, columns=both)
        table = table.rename({"correct": _ATTEMPT_COUNTS[0]})
    if dataset is not None and "dataset" not in table.columns:
        table = table.with_columns(dataset=pl.lit(dataset))
    needed = [*_ATTEMPT_NAMES, _ATTEMPT_COUNTS[0]]
    if missing := [name for name in needed if name not in table.columns]:
        known = ", ".join([*_ATTEMPT_NAMES, *_ATTEMPT_COUNTS])
        facts = {"columns": listing(missing, "column"), "known_columns": known}
        raise StudyError("attempts-columns-missing", where=place, **facts)
    if not len(table):
        raise StudyError("attempts-table-empty", where=place)
    # Names are what attempts are counted by: a missing one would be a name of its own.
    table = table.with_columns(texts(table[name], place) for name in _ATTEMPT_NAMES)
    if "attempts" in table.columns:
        # A row an image: both counts as whole numbers, each image once for a classifier.
        counted = table.with_columns(whole_numbers(table[name], place) for name in _ATTEMPT_COUNTS)
        repeated = counted.filter(counted.select(_ATTEMPT_NAMES).is_duplicated())
        if len(repeated):
            first = repeated.select("image", "classifier").unique(maintain_order=True)
            names = [f"{image} by {classifier}" for image, classifier in first.iter_rows()]
            raise StudyError("attempts-row-repeated", where=place, items=listing(names, "item"))
    else:
        counted = _count_attempts(table, place)
    try:
        return [
            Attempts(
                str(name),
                str(classifier),
                rows["image"].to_numpy().astype(np.str_),
                rows["solved"].to_numpy(),
                rows["attempts"].to_numpy(),
            )
            for (name,), of_set in counted.group_by("dataset", maintain_order=True)
            for (classifier,), rows in of_set.group_by("classifier", maintain_order=True)
        ]
    except StudyError as error:
        raise error.add_place(place) from None


def write_attempts(attempts: Sequence[Attempts], study: str | Path) -> None:
    """Write the attempts into a study's folder, in place of those that are there.

    Parameters
    ----------
    attempts
        Each data set and classifier once.
    study
        The folder.
    """
    names = [*_ATTEMPT_NAMES, *_ATTEMPT_COUNTS]
    table = pl.concat(
        pl.DataFrame({"image": each.images, "solved": each.solved, "attempts": each.attempts})
        .with_columns(dataset=pl.lit(each.dataset), classifier=pl.lit(each.classifier))
        .select(names)
        for each in attempts
    )
    parquet.write(table, Path(study) / layout.ATTEMPTS_FILE)


def _count_attempts(table: pl.DataFrame, place: Place) -> pl.DataFrame:
    """A row an attempt: counted."""
    solved = parse_flags(table["solved"])
    if (wrong := solved.is_null()).any():
        raise StudyError(
            "solved-not-true-or-false", where=place, rows=place.rows(wrong, table["solved"])
        )
    return (
        table.with_columns(solved)
        .group_by(_ATTEMPT_NAMES, maintain_order=True)
        .agg(pl.col("solved").sum().cast(pl.Int64), pl.len().cast(pl.Int64).alias("attempts"))
    )
