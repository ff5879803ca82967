"""Arrays as callers give them: by their labels where they carry any, and each for us alone.

Frames and series of pandas have an index and names of columns, frames of polars names of columns,
arrays of xarray coordinates. What only counts is not a label, and what has none goes by its place.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError, listing


def own_array(values: Any, dtype: type[np.generic]) -> NDArray[Any]:
    """A read-only array that nobody else can change: what somebody could write to is copied."""
    given = np.asarray(values)
    array = given.astype(dtype, copy=given.flags.writeable or given.base is not None)
    array.flags.writeable = False
    return array


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

    Labels that are names go by `images`, numbers of rows by the index of `images` or else the first
    one, which also names the images where nothing else does.

    Raises
    ------
    StudyError
        Where labels are not the same, or stand elsewhere and something without labels is beside.
    """
    given = {n: v.to_pandas() if hasattr(v, "coords") else v for n, v in arrays.items()}
    labels = {name: _row_labels(held) for name, held in given.items() if hasattr(held, "iloc")}
    unlabelled = [name for name, held in given.items() if name not in labels and np.ndim(held)]
    images = None if given.get("images") is None else np.asarray(given["images"], np.str_).tolist()
    # An index of names says whose each row is; one of numbers, what it was before it was moved.
    of_images = {
        name
        for name, rows in labels.items()
        if images is not None and name != "images" and _are_names(given[name].index)
        if set(rows) != set(labels.get("images", ()))
    }
    numbered = {name: rows for name, rows in labels.items() if name not in of_images}
    first = labels.get("images", next(iter(numbered.values()), []))
    counted = all(rows == list(map(str, range(len(rows)))) for rows in numbered.values())
    for name, rows in labels.items():
        wanted = (images or []) if name in of_images else rows if counted else first
        moved = rows != wanted
        # Rows that were moved, or that images have other numbers for, leave open how the rest lies.
        order = given[name].index
        sorted_again = not (_are_names(order) or order.is_monotonic_increasing)
        other = "images" in unlabelled and rows != images and sorted(rows) == sorted(images or [])
        doubtful = moved or (not counted and (sorted_again or other))
        unclear = name in numbered and unlabelled and doubtful
        if unclear or (moved and (set(rows) != set(wanted) or len(set(rows)) < len(rows))):
            others = [label for label in rows if label not in wanted] or rows
            raise StudyError(
                "array-labels-differ", where=where, entry=name, labels=listing(others, "label")
            )
        if moved:
            place = {label: row for row, label in enumerate(rows)}
            given[name] = given[name].iloc[[place[label] for label in wanted]]
    if images is None and not counted and len(set(first)) == len(first):
        given["images"] = first
    return given


def _row_labels(held: Any) -> list[str]:
    """The labels of the rows of a frame or series: of several levels the images', if one is."""
    index = held.index
    index = index.get_level_values("image") if "image" in index.names else index
    return list(map(str, index))


def _are_names(index: Any) -> bool:
    return "image" in index.names or any(isinstance(label, str) for label in index)
