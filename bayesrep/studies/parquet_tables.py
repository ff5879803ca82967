"""Tables of a study on disk: reading them and joining them to the counts."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from bayesrep.errors import Violation, listing
from bayesrep.files import parquet
from bayesrep.machine import cores
from bayesrep.studies import layout, validation
from bayesrep.studies.violations import Problems

_File = TypeVar("_File")

KEYS = ["dataset", "image"]
FAILURE_SCHEMA = dict.fromkeys(KEYS, pl.String) | {"reason": pl.String, "left_out": pl.Boolean}


def read_counts(
    path: Path, annotations: pl.DataFrame | None, problems: Problems
) -> pl.DataFrame | None:
    """Read the counts, or count the answers by worker where only these are there."""
    counts = path / layout.COUNTS_FILE
    if counts.exists() or not (path / layout.ANNOTATIONS_FILE).exists():
        return read_keyed(counts, [*KEYS, "selected", "shown"], problems)
    if annotations is None:
        return None
    counted = pl.col("selected").cast(pl.Int64).sum(), pl.len().cast(pl.Int64).alias("shown")
    return annotations.group_by(KEYS, maintain_order=True).agg(counted)


def read_counts_alone(path: Path, problems: Problems) -> pl.DataFrame | None:
    """Read the counts, and the answers by worker only where there are no counts."""
    needed = not (path / layout.COUNTS_FILE).exists()
    return read_counts(path, read_annotations(path, problems) if needed else None, problems)


def read_annotations(path: Path, problems: Problems) -> pl.DataFrame | None:
    """Read the answers by worker: dataset, image, worker, selected[, position][, context]."""
    file = path / layout.ANNOTATIONS_FILE
    if not file.exists():
        return None
    rows = read_keyed(file, [*KEYS, "worker", "selected"], problems)
    if rows is None or not problems.take(key_violations(file.name, rows, ["worker"])):
        return None
    answer = [name for name in (*KEYS, "worker", "task", "time") if name in rows.columns]
    repeated = rows.filter(rows.select(answer).is_duplicated())["image"].unique(maintain_order=True)
    if len(repeated):
        problems.add("worker-answered-twice", where=file.name, images=listing(repeated))
        return None
    values = rows["selected"].to_numpy()
    where = f"{file.name} (each row is shown = 1)"
    names, once = rows["image"].to_numpy(), np.ones(len(rows), dtype=np.int64)
    if not problems.take(validation.count_violations(where, names, values, once)):
        return None
    order = [name for name in ("position",) if name in rows.columns]
    if order and not rows["position"].dtype.is_numeric():
        problems.add("answer-position-not-number", where=file.name)
        return None
    return rows.select(
        *KEYS,
        pl.col("worker").cast(pl.String),
        pl.col("selected").cast(pl.Int64) == 1,
        *(pl.col(name).cast(pl.Float64) for name in order),
        *(pl.col(name).cast(pl.String) for name in ("context",) if name in rows.columns),
    )


def read_keyed(file: Path, columns: list[str], problems: Problems) -> pl.DataFrame | None:
    """Read a table with data set and image names in it, all of its columns."""
    table = problems.attempt(lambda: parquet.read(file, file.name, columns, further=None))
    if table is None or not problems.take(key_violations(file.name, table, KEYS)):
        return None
    # What pandas adds where it writes a file anew.
    return table.with_columns(pl.col(KEYS).cast(pl.String)).select(~cs.matches("^__index_level_"))


def read_failures(path: Path, problems: Problems) -> pl.DataFrame | None:
    """Read the images that could not be decoded: dataset, image, reason, left_out; often none."""
    file = path / layout.FAILURES_FILE
    if not file.exists():
        return pl.DataFrame(schema=FAILURE_SCHEMA)
    columns = [*KEYS, "reason"]
    table = problems.attempt(lambda: parquet.read(file, file.name, columns, further=["left_out"]))
    if table is None:
        return None
    if "left_out" not in table.columns:  # a file from before images could be left out
        table = table.with_columns(left_out=False)
    table = table.select(list(FAILURE_SCHEMA))
    if table.schema != FAILURE_SCHEMA or any(column.null_count() for column in table):
        columns_text = ", ".join(f"{name} ({kind})" for name, kind in FAILURE_SCHEMA.items())
        problems.add("failures-columns-wrong", file=file.name, expected_columns=columns_text)
        return None
    return table


def texts_in_order(
    name: str, images: pl.DataFrame, order: pl.Series, problems: Problems
) -> dict[str, NDArray[np.str_]] | None:
    """The label and group columns of one data set's images, in the order of its counts."""
    where = f"{layout.IMAGES_FILE}, data set {name!r}"
    ordered = in_order(images, order)
    if ordered is None:
        problems.take(join_violations(where, images["image"], order))
        return None
    sound = True
    texts: dict[str, NDArray[np.str_]] = {}
    for column in ordered.drop(KEYS):
        if column.null_count() == len(column):
            continue
        if not _is_textual(column.dtype):
            facts = {"column": column.name, "dtype": column.dtype}
            problems.add("image-column-not-text", where=where, **facts)
            return None
        values = column.cast(pl.String).to_list()
        broken = validation.text_violations(where, order.to_list(), column.name, values)
        sound &= problems.take(broken)
        texts[column.name] = np.asarray(values, dtype=np.str_)
    return texts if sound else None


def read_classifiers(
    read: Callable[[str], _File], classifiers: Iterable[str]
) -> Iterator[tuple[str, _File]]:
    """Each classifier with what is read of its file; several files are read at once."""
    names = list(classifiers)
    with ThreadPoolExecutor(max_workers=min(8, cores())) as pool:
        yield from zip(names, pool.map(read, names), strict=True)


def drop_left_out(table: pl.DataFrame, left_out: pl.Series) -> pl.DataFrame:
    """A classifier's rows, images by name, but for those that the study is left without."""
    if table.schema["image"] != pl.String:
        table = table.with_columns(pl.col("image").cast(pl.String))
    return table.filter(~pl.col("image").is_in(left_out.implode())) if len(left_out) else table


def key_violations(where: str, table: pl.DataFrame, keys: list[str]) -> Iterator[Violation]:
    """Check that names are text or whole numbers, and none is missing."""
    for key in keys:
        column = table[key]
        if not _is_textual(column.dtype) and len(column):
            yield Violation("name-column-not-text", where=where, column=key, dtype=column.dtype)
        elif column.null_count():
            rows = listing(column.is_null().arg_true().to_list(), "row")
            yield Violation("name-column-incomplete", where=where, column=key, rows=rows)


def join_violations(where: str, images: pl.Series, order: pl.Series) -> Iterator[Violation]:
    """Check that a table has the images of counts.parquet: each of them, once, and no other."""
    if len(images):
        yield from validation.image_violations(where, images.to_list())
    counted, names = set(order.to_list()), set(images.to_list())
    facts = {"where": where, "counts_file": layout.COUNTS_FILE}
    if unknown := [image for image in images.unique(maintain_order=True) if image not in counted]:
        yield Violation("images-without-counts", images=listing(unknown), **facts)
    if missing := [image for image in order if image not in names]:
        yield Violation("counted-images-missing", images=listing(missing), **facts)


def in_order(table: pl.DataFrame, order: pl.Series) -> pl.DataFrame | None:
    """Sort rows into the order of the images; None where these are not the same images."""
    if table["image"].equals(order):
        return table
    rows = pl.DataFrame({"image": table["image"], "row": np.arange(len(table))})
    joined = order.to_frame("image").join(rows, on="image", how="left", maintain_order="left")
    # Every image found, and as many rows before as after: neither repeated nor unknown images.
    if joined["row"].null_count() or not len(table) == len(joined) == len(order):
        return None
    return table[joined["row"]]


def _is_textual(dtype: pl.DataType) -> bool:
    return dtype.is_integer() or isinstance(
        dtype, pl.String | pl.Categorical | pl.Enum | pl.Boolean
    )


def label_violations(where: object, tables: Iterable[pl.LazyFrame]) -> Iterator[Violation]:
    """Check that all answers about an image are about one label."""
    key, label = ["dataset", "image"], pl.col("label")
    named = [
        table.select(pl.col(*key, "label").cast(pl.String))
        for table in tables
        if {*key, "label"} <= set(table.collect_schema())
    ]
    if not named:
        return
    several = (
        pl.concat(named)
        .group_by(key)
        .agg(label.min().alias("one"), label.max().alias("other"))
        .filter(pl.col("one") != pl.col("other"))
        .sort(key)
        .collect(engine="streaming")
    )
    if len(several):
        images = listing(several["image"].unique(maintain_order=True))
        yield Violation("answers-about-several-labels", where=where, images=images)
