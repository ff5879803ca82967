"""The annotations of Engstrom et al. (2020), MadryLab/dataset-replication-analysis: a row each.

Columns: url, dataset (v1, v2), selected, correct_CLASSIFIER; no licence is named for the data.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, LiteralString

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import StudyError, listing
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import flags, texts
from bayesrep.sources.pickles.safe_pickle import read_frame
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.leniency import PROVENANCE_ENTRY, SAME_CROWD
from bayesrep.studies.study import Study

_ANNOTATION_COLUMNS = ("url", "dataset", "selected")
_CORRECT_PREFIX = "correct_"
_ROLE_OF_DATASET = {"v1": "reference", "v2": "replication"}


def read(paths: Sequence[str | Path]) -> StudyContents:
    """Count the annotations of one published frame into a study.

    Parameters
    ----------
    paths
        One file: a `torch.save` or pickled pandas frame (nothing in it is executed), `.parquet`
        or `.csv`.

    Returns
    -------
    StudyContents
        Data sets "v1" and "v2", images named by url in order of first appearance. A row with a
        missing `selected` is not an answer and is not counted. A missing `correct_` value takes
        the value of the image's other rows.

    Raises
    ------
    StudyError
        Naming the file and the rows, images or classifiers: a data set other than v1 and v2, an
        image in both, correctness that changes between the rows of an image or is missing in all.
    """
    if len(paths) != 1:
        raise StudyError("madrylab-takes-one-file", file_count=len(paths))
    where = str(paths[0])
    images = _per_image(_annotations(Path(paths[0]), where))
    keys = [name for name in images.columns if name.startswith(_CORRECT_PREFIX)]
    _check_datasets(images, where)
    for key in keys:
        rules: Mapping[LiteralString, pl.Series] = {
            "correctness-differs-between-rows": images[f"mixed_{key}"],
            "correctness-missing-in-all-rows": images[f"given_{key}"] == 0,
        }
        for rule, broken in rules.items():
            if broken.any():
                names = listing(images["url"].filter(broken))
                raise StudyError(rule, where=where, column=key, images=names)
    study = Study(
        datasets={
            role: _build_annotated_set(images.filter(pl.col("dataset") == name), name, keys, where)
            for name, role in _ROLE_OF_DATASET.items()
        },
        classifiers=tuple(key.removeprefix(_CORRECT_PREFIX) for key in keys),
        name=Path(where).stem,
        # Every grid held images of both (Engstrom et al. 2020, appendix B).
        provenance={"source": "madrylab", PROVENANCE_ENTRY: SAME_CROWD, "file": Path(where).name},
    )
    return StudyContents.from_study(study)


def _annotations(path: Path, where: str) -> pl.DataFrame:
    """Read the needed columns: url and dataset as text, all others as booleans."""
    table: dict[str, NDArray[Any]] | pl.DataFrame
    if path.suffix.lower() in (".csv", ".parquet"):
        table = read_only(path, _ANNOTATION_COLUMNS).frame
    else:
        table = read_frame(path)
    names = list(table) if isinstance(table, dict) else table.columns
    keys = [name for name in names if name.startswith(_CORRECT_PREFIX)]
    if not keys:
        raise StudyError("no-correctness-column", where=where)
    # Column by column, so that wide types of the file are not all held twice.
    annotations = pl.DataFrame(
        [_series(name, table[name]) for name in names if name in _ANNOTATION_COLUMNS]
    )
    require(annotations, _ANNOTATION_COLUMNS, where)
    columns = [texts(annotations[name], where) for name in _ANNOTATION_COLUMNS[:2]]
    columns.append(flags(annotations["selected"], where))
    columns += [flags(_series(name, table[name]), where) for name in keys]
    return pl.DataFrame(columns)


def _series(name: str, values: NDArray[Any] | pl.Series) -> pl.Series:
    """A column as a polars series; objects that are not texts become numbers or text."""
    if isinstance(values, pl.Series):
        return values
    if values.dtype.kind != "O":
        return pl.Series(name, np.ascontiguousarray(values))
    listed = [None if value is None or value != value else value for value in values.tolist()]
    if any(isinstance(value, str) for value in listed):
        return pl.Series(name, [None if value is None else str(value) for value in listed])
    try:
        return pl.Series(name, [None if value is None else float(value) for value in listed])
    except (TypeError, ValueError):
        return pl.Series(name, [None if value is None else str(value) for value in listed])


def _per_image(annotations: pl.DataFrame) -> pl.DataFrame:
    """One row per url: counts, and each correctness with whether it is the same in all."""
    keys = [name for name in annotations.columns if name.startswith(_CORRECT_PREFIX)]
    return annotations.group_by("url", maintain_order=True).agg(
        pl.col("dataset").min(),
        pl.col("dataset").max().alias("last_dataset"),
        pl.col("selected").sum().cast(pl.Int64),
        pl.col("selected").count().cast(pl.Int64).alias("shown"),
        *(pl.col(key).any().alias(key) for key in keys),
        *(pl.col(key).count().alias(f"given_{key}") for key in keys),
        *((pl.col(key).any() & ~pl.col(key).all()).alias(f"mixed_{key}") for key in keys),
    )


def _check_datasets(images: pl.DataFrame, where: str) -> None:
    names = {*images["dataset"].unique(), *images["last_dataset"].unique()}
    if others := sorted(names - set(_ROLE_OF_DATASET)):
        raise StudyError(
            "unknown-madrylab-data-set", where=where, data_sets=listing(others, "data set")
        )
    both = images.filter(pl.col("dataset") != pl.col("last_dataset"))["url"]
    if both.len():
        raise StudyError("image-in-both-data-sets", where=where, images=listing(both))
    for name in _ROLE_OF_DATASET:
        if name not in names:
            raise StudyError("madrylab-data-set-absent", where=where, dataset=name)


def _build_annotated_set(
    images: pl.DataFrame, name: str, keys: Sequence[str], where: str
) -> AnnotatedSet:
    unseen = images.filter(pl.col("shown") == 0)["url"]
    if unseen.len():
        raise StudyError("image-without-selected-value", where=where, images=listing(unseen))
    return AnnotatedSet(
        name=name,
        images=images["url"].to_numpy().astype(np.str_),
        selected=images["selected"].to_numpy(),
        shown=images["shown"].to_numpy(),
        correct=np.column_stack([images[key].to_numpy() for key in keys]),
    )
