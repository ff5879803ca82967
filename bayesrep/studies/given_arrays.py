"""Arrays as callers give them: by their labels where they carry any, and each for us alone.

Frames and series of pandas have an index and names of columns, frames of polars names of columns,
arrays of xarray coordinates. What only counts is not a label, and what has none goes by its place.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError, listing, refuse_any


def own_array(values: Any, dtype: type[np.generic]) -> NDArray[Any]:
    """A read-only array that nobody else can change: what somebody could write to is copied."""
    given = np.asarray(values)
    array = given.astype(dtype, copy=given.flags.writeable or given.base is not None)
    array.flags.writeable = False
    return array


def frame_columns(correct: Any, where: str) -> Any:
    """Correctness by name, as a mapping or an Arrow table has it, as a frame; else as it is."""
    if not (isinstance(correct, Mapping) or hasattr(correct, "column_names")):
        return correct
    with refuse_any(lambda _: StudyError("correctness-not-numbers", where=where)):
        if isinstance(correct, Mapping) and any(hasattr(each, "iloc") for each in correct.values()):
            import pandas as pd

            return pd.DataFrame(correct)
        import polars as pl

        return pl.DataFrame(correct)


def order_columns(correct: Any, classifiers: Sequence[str], where: str) -> Any:
    """Correctness [N, C], the columns of a frame found by the classifiers' names."""
    columns = getattr(correct, "columns", None)
    if columns is None or not classifiers:
        return correct
    place = {str(name): number for number, name in enumerate(columns)}
    if len(columns) == len(classifiers) and set(place) == set(classifiers):
        return np.asarray(correct)[:, [place[name] for name in classifiers]]
    if list(place) not in ([f"{before}{n}" for n in place.values()] for before in ("", "column_")):
        raise StudyError(
            "correctness-columns-differ",
            where=where,
            columns=listing(columns, "column"),
            classifiers=listing(classifiers, "classifier"),
        )
    return correct


def align_rows(arrays: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Arrays of the same rows by name, those that have an index brought into one order.

    Labels that are names go by `images`, numbers of rows by the first index, which also names the
    images where nothing else does. Other labels, and an order that leaves open in which an array
    without labels beside them is, are refused.
    """
    given = {n: v.to_pandas() if hasattr(v, "coords") else v for n, v in arrays.items()}
    index = {name: held.index for name, held in given.items() if hasattr(held, "iloc")}
    index = {n: i.get_level_values("image") if "image" in i.names else i for n, i in index.items()}
    labels = {name: list(map(str, each)) for name, each in index.items()}
    named = {n: each.name == "image" or each.dtype.kind not in "iuf" for n, each in index.items()}
    images = None if given.get("images") is None else np.asarray(given["images"], np.str_).tolist()
    unlabelled = any(np.ndim(held) for name, held in given.items() if name not in labels)
    own = set(labels.get("images", ()))
    by_name = {n for n in labels if images is not None and named[n] and set(labels[n]) != own}
    numbered = [rows for name, rows in labels.items() if name not in by_name]
    counted = all(rows == list(map(str, range(len(rows)))) for rows in numbered)
    for name, rows in labels.items():
        wanted = (images or []) if name in by_name else rows if counted else numbered[0]
        moved = rows != wanted
        # Rows that were moved leave open how those lie that have no labels.
        sorted_again = not (counted or named[name] or index[name].is_monotonic_increasing)
        unclear = name not in by_name and unlabelled and (moved or sorted_again)
        if unclear or (moved and (set(rows) != set(wanted) or len(set(rows)) < len(rows))):
            others = [label for label in rows if label not in wanted] or rows
            raise StudyError(
                "array-labels-differ", where=where, entry=name, labels=listing(others, "label")
            )
        if moved:
            place = {label: row for row, label in enumerate(rows)}
            given[name] = given[name].iloc[[place[label] for label in wanted]]
    if images is None and not counted and len(set(numbered[0])) == len(numbered[0]):
        given["images"] = numbered[0]
    return given
