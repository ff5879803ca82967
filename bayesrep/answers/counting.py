"""Counts, and standard errors over workers, of more answers than fit into memory.

Tables are streamed in two passes: the first counts every image, the second sums
over every worker what `bayesrep.numerics.crowd` says of the mean selection frequency,

    U_w  =  Σ_x r_xw / (n_x N),        error²  =  Σ_w (U_w² − Σ_x (r_xw / (n_x N))²),

stretched by Student's t. Workers' common images are ignored, which makes the error too large by a
few percent if workers answer grids together.
"""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, LiteralString

import numpy as np
import polars as pl

from bayesrep.errors import StudyError, listing, reason
from bayesrep.files.given_files import refuse_copies
from bayesrep.files.names import (
    normalize_floats,
    normalize_names,
    warn_of_numbers,
    warn_of_shortened,
)
from bayesrep.files.tables import read_only, scan, warn_unread
from bayesrep.files.text_table import UNNAMED_PREFIX
from bayesrep.files.values import lack_names, parse_flags, warn_of_controls, warn_of_nobodies
from bayesrep.numerics.crowd import few_clusters_stretch
from bayesrep.studies.column_aliases import ANSWER_COLUMNS
from bayesrep.studies.parquet_tables import label_violations
from bayesrep.studies.validation import raise_first

_IMAGE_KEY = ["dataset", "image"]
_ANSWER_KEY = [*_IMAGE_KEY, "worker"]
_ANSWER_FIELDS = [*_ANSWER_KEY, "selected"]
ROWS_IN_MEMORY = 2**21  # at a time
HASHES_IN_MEMORY = 2**27  # at a time
MAX_REREAD_BYTES = 2**28  # largest size of a text that is read whole to describe its fault


@dataclass(frozen=True, eq=False)
class Counted:
    """Counts of images, and the standard errors of the means over images and workers.

    Attributes
    ----------
    counts
        One row an image: `dataset`, `image`, `selected`, `shown`.
    datasets
        One row a data set: `dataset`, `images`, `answers`, `workers`, `selection_frequency` (mean
        over images), `error_images` (null of one image) and `error_workers`, its standard errors.
    """

    counts: pl.DataFrame
    datasets: pl.DataFrame


def count_answers(paths: Sequence[str | Path]) -> Counted:
    """Count answers that need not fit into memory.

    Parameters
    ----------
    paths
        Tables with the columns dataset, image, worker and selected (true and false, or 1 and 0):
        one row an answer, of each worker one about an image. CSV that is UTF-8 and Parquet need not
        fit into memory; what is compressed, a workbook or of another encoding is read whole, and
        so is CSV with empty rows, line breaks in cells, or quotes in cells beside quoted cells.

    Raises
    ------
    StudyError
        Naming the tables and what is wrong with them.
    """
    where = ", ".join(map(str, paths))
    try:
        if not paths:
            raise StudyError("no-answer-tables")
        refuse_copies(paths)
        tables = [scan(path, (*_ANSWER_FIELDS, "control")) for path in paths]
        parts = [_select_columns(*each) for each in zip(tables, map(str, paths), strict=True)]
        with _panics_left_out(paths):
            raise_first(
                label_violations(where, (scan(path, [*_IMAGE_KEY, "label"]) for path in paths))
            )
            return _count(pl.concat(parts, how="vertical_relaxed"), where)
    except OSError as error:
        raise StudyError("file-unreadable", path=where, reason=reason(error)) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        for path in paths:
            if Path(path).stat().st_size < MAX_REREAD_BYTES and not str(path).lower().endswith(
                ".parquet"
            ):
                read_only(path)  # which says in which line, where a text is small enough
        raise StudyError("answer-table-damaged", where=where, reason=reason(error)) from None


def count_rows(answers: pl.DataFrame, where: str) -> Counted:
    """Count answers of one table in memory."""
    raise_first(label_violations(where, [answers.lazy()]))
    return _count(_select_columns(answers.lazy(), where), where)


def _count(answers: pl.LazyFrame, where: str) -> Counted:
    sums = answers.group_by(_IMAGE_KEY).agg(
        pl.col("selected").sum(),
        shown=pl.len().cast(pl.Int64),
        strange=pl.col("selected").null_count(),
        nameless=pl.col("worker").null_count(),
    )
    counts = _check_counts(sums.collect(engine="streaming"), where)
    _refuse_repeats(answers, int(counts["shown"].sum()), where)
    workers = _sum_residuals(answers, counts)
    warn_of_nobodies(workers["worker"].cast(pl.String), where)
    for names in (counts["dataset"], workers["worker"]):
        warn_of_numbers(names, where)
    counts, workers = (t.with_columns(pl.col("dataset").cast(pl.String)) for t in (counts, workers))
    return Counted(
        counts.with_columns(pl.col("image").cast(pl.String)), _describe_crowds(counts, workers)
    )


def _sum_residuals(answers: pl.LazyFrame, counts: pl.DataFrame) -> pl.DataFrame:
    """Of every worker and data set the sums of r δ, its square, and δ."""
    of_all = (pl.col("selected").sum() / pl.col("shown").sum()).over("dataset")
    delta = 1 / (pl.col("shown") * pl.len().over("dataset"))
    images = counts.select(*_IMAGE_KEY, delta=delta, mean=of_all, k="selected", n="shown").lazy()
    # An image's only answer is held to the mean of all.
    others = (pl.col("k") - pl.col("selected")) / (pl.col("n") - 1)
    r = pl.col("selected") - pl.when(pl.col("n") > 1).then(others).otherwise(pl.col("mean"))
    moved = (r * pl.col("delta")).alias("moved")
    rows = answers.join(images, on=_IMAGE_KEY).select("dataset", "worker", "delta", moved)
    sums = rows.group_by("dataset", "worker").agg(
        pl.col("moved").sum(), square=pl.col("moved").pow(2).sum(), weight=pl.col("delta").sum()
    )
    return sums.collect(engine="streaming")


@contextmanager
def _panics_left_out(paths: Sequence[str | Path]) -> Generator[None]:
    """Silence polars' messages on standard error about damaged Parquet: the refusal is one line."""
    try:
        quiet = any(str(path).lower().endswith(".parquet") for path in paths)
        stderr = os.dup(2) if quiet else None
    except OSError:  # it is closed
        stderr = None
    if stderr is None:
        yield
        return
    with TemporaryFile() as file:
        try:
            os.dup2(file.fileno(), 2)
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def _select_columns(every: pl.LazyFrame, where: str) -> pl.LazyFrame:
    """Select one table's columns: dataset, image, worker, selected as 1, 0, or null for neither."""
    schema = every.collect_schema()
    if missing := [name for name in _ANSWER_FIELDS if name not in schema]:
        raise StudyError(
            "answer-table-lacks-columns",
            where=where,
            columns=listing(missing, "column"),
            needed=", ".join(_ANSWER_KEY),  # the sentence has the fourth
        )
    readable = (*_ANSWER_FIELDS, *ANSWER_COLUMNS)
    titled = (name for name in schema if not name.startswith(UNNAMED_PREFIX))
    warn_unread([name for name in titled if name.lower() not in readable], "answers", (), where)
    if "control" in schema:
        warn_of_controls(every.group_by("control").len().collect(engine="streaming"), where)
    chosen = parse_flags(pl.col("selected"))
    names: list[pl.Expr] = []
    for name in _ANSWER_KEY:
        column, kind = pl.col(name), schema[name]
        if kind.is_float():
            column = normalize_floats(column, kind)
        # Whole numbers stay numbers, which takes less time; a scan's texts are names already.
        elif not (kind.is_integer() or kind == pl.String):
            column = normalize_names(column)
        names.append(column)
    return every.select(*names, chosen.cast(pl.Int64).alias("selected"))


def _check_counts(counts: pl.DataFrame, where: str) -> pl.DataFrame:
    """The counts of images that are named, of answers that say yes or no."""
    if counts.is_empty():
        raise StudyError("table-without-rows", where=where)
    rules: Mapping[str, LiteralString] = {
        "strange": "answers-without-verdict",
        "nameless": "answers-without-worker",
    }
    for column, rule in rules.items():
        if len(wrong := counts.filter(pl.col(column) > 0)):
            total, images = wrong[column].sum(), listing(wrong["image"].cast(pl.String).to_list())
            raise StudyError(rule, where=where, answer_count=total, images=images)
    if any(lack_names(counts[name].cast(pl.String)).any() for name in _IMAGE_KEY):
        raise StudyError("answer-without-dataset-or-image", where=where)
    warn_of_shortened(counts["image"], where)
    return counts.select(*_IMAGE_KEY, "selected", "shown").sort(_IMAGE_KEY)


def _refuse_repeats(answers: pl.LazyFrame, rows: int, where: str) -> None:
    """Refuse several answers of one worker about one image: they count as several people's."""
    # Rows are compared by name where their hashes come twice, so many hashes at a time.
    hashed, parts = pl.struct(_ANSWER_KEY).hash().alias("hash"), 1 + rows // HASHES_IN_MEMORY
    for part in range(parts):
        chunks: list[np.ndarray[Any, Any]] = []
        batches = answers.select(hashed).collect_batches(
            chunk_size=ROWS_IN_MEMORY, maintain_order=False, engine="streaming"
        )
        for batch in batches:
            values = batch["hash"].to_numpy()
            chunks.append(values if parts == 1 else values[values % parts == part])
        values = np.sort(np.concatenate(chunks))
        if not (twice := values[1:][values[1:] == values[:-1]]).size:
            continue
        suspects = answers.filter(hashed.is_in(pl.Series(twice).implode())).select(
            pl.col(_ANSWER_KEY).cast(pl.String)
        )
        repeated = (
            suspects.group_by(_ANSWER_KEY).len().filter(pl.col("len") > 1).drop("len").collect()
        )
        if len(repeated):
            names = [
                f"{worker} on {image}"
                for _, image, worker in repeated.sort(_ANSWER_KEY).iter_rows()
            ]
            raise StudyError("answers-repeated", where=where, answers=listing(names, "worker"))


def _describe_crowds(counts: pl.DataFrame, workers: pl.DataFrame) -> pl.DataFrame:
    rows = []
    for (dataset,), images in counts.group_by("dataset", maintain_order=True):
        crowd = workers.filter(pl.col("dataset") == dataset)
        share = (images["selected"] / images["shown"]).to_numpy()
        _, stretch = few_clusters_stretch(crowd["weight"].to_numpy()[:, None])
        between = float((crowd["moved"].pow(2) - crowd["square"]).sum())
        deviation = share.std(ddof=1) if len(share) > 1 else np.nan
        rows.append(
            {
                "dataset": dataset,
                "images": len(images),
                "answers": int(images["shown"].sum()),
                "workers": len(crowd),
                "selection_frequency": float(share.mean()),
                "error_images": float(deviation / np.sqrt(len(share))),
                "error_workers": float(stretch[0] * np.sqrt(max(between, 0.0))),
            }
        )
    return pl.DataFrame(rows).fill_nan(None)
