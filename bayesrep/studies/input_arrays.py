"""Callers' arrays: aligned by their labels if they have any, and protected from later changes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError, listing, refuse_any


def own_array(values: Any, dtype: type[np.generic]) -> NDArray[Any]:
    """Return a read-only array, copied if somebody else could change it."""
    source = np.asarray(values)
    array = source.astype(dtype, copy=source.flags.writeable or source.base is not None)
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
        names, told = listing(columns, "column"), listing(classifiers, "classifier")
        raise StudyError("correctness-columns-differ", where=where, columns=names, classifiers=told)
    return correct


def align_rows(arrays: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Bring arrays of the same rows that have an index into one order; refuse unclear ones."""
    aligned = {n: v.to_pandas() if hasattr(v, "coords") else v for n, v in arrays.items()}
    index = {name: values.index for name, values in aligned.items() if hasattr(values, "iloc")}
    index = {n: i.get_level_values("image") if "image" in i.names else i for n, i in index.items()}
    labels = {name: list(map(str, each)) for name, each in index.items()}
    named = {n: each.name == "image" or each.dtype.kind not in "iuf" for n, each in index.items()}
    images = aligned.get("images")
    images = None if images is None else np.asarray(images, np.str_).tolist()
    unlabelled = any(np.ndim(values) for name, values in aligned.items() if name not in labels)
    own = set(labels.get("images", ()))
    by_name = {n for n in labels if images is not None and named[n] and set(labels[n]) != own}
    numbered = [rows for name, rows in labels.items() if name not in by_name]
    counted = all(rows == list(map(str, range(len(rows)))) for rows in numbered)
    for name, rows in labels.items():
        target = (images or []) if name in by_name else rows if counted else numbered[0]
        moved = rows != target
        # Rows that were moved leave open how those lie that have no labels.
        sorted_again = not (counted or named[name] or index[name].is_monotonic_increasing)
        unclear = name not in by_name and unlabelled and (moved or sorted_again)
        if unclear or (moved and (set(rows) != set(target) or len(set(rows)) < len(rows))):
            others = listing([label for label in rows if label not in target] or rows, "label")
            raise StudyError("array-labels-differ", where=where, entry=name, labels=others)
        if moved:
            place = {label: row for row, label in enumerate(rows)}
            aligned[name] = aligned[name].iloc[[place[label] for label in target]]
    if images is None and not counted and len(set(numbered[0])) == len(numbered[0]):
        aligned["images"] = numbered[0]
    return aligned
