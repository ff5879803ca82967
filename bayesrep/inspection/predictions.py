"""The predictions of a study on disk: one file for each data set and classifier."""

from __future__ import annotations

import os
from collections.abc import Collection, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep import folder, parquet, rules
from bayesrep.errors import StudyError
from bayesrep.inspection.manifest import Manifest
from bayesrep.inspection.tables import in_order, join_violations, key_violations

__all__ = ["complete_classifiers", "listed_or_found", "read_predictions"]


def listed_or_found(path: Path, manifest: Manifest) -> Generator[str, None, list[str]]:
    """Return the classifiers listed, or all that have a file where study.json lists none."""
    if manifest.classifiers is not None:
        return list(manifest.classifiers)
    found: set[str] = set()
    for name in manifest.roles.values():
        found.update(folder.names_in(path / folder.prediction_folder(name), ".parquet"))
    yield from rules.classifier_violations(folder.PREDICTIONS, sorted(found))
    return sorted(found)


def complete_classifiers(path: Path, manifest: Manifest) -> list[str]:
    """Return, sorted, the classifiers with a file in every folder of predictions that must have it.

    Candidates may be without predictions altogether; where they have some, they count.
    """
    found = [
        names
        for role, dataset in manifest.roles.items()
        if (names := set(folder.names_in(path / folder.prediction_folder(dataset), ".parquet")))
        or role in rules.REQUIRED_ROLES
    ]
    return sorted(set.intersection(*found))


def read_predictions(
    path: Path,
    role: str,
    name: str,
    order: pl.Series,
    classifiers: Sequence[str],
    complete: Collection[str],
) -> Generator[str, None, NDArray[np.bool_] | None]:
    """Return correct [N, C] of one data set.

    Files of classifiers that are neither listed nor ``complete`` belong to evaluations that are
    still to be made on another data set, and are left alone.
    """
    where = folder.prediction_folder(name)
    found = set(folder.names_in(path / where, ".parquet"))
    if role == "candidates" and not found:
        return np.zeros((len(order), 0), dtype=np.bool_)
    sound = yield from rules.checked(_file_violations(str(where), found, classifiers, complete))
    correct = np.zeros((len(order), len(classifiers)), dtype=np.bool_)

    def column(number: int) -> tuple[list[str], NDArray[Any]]:
        classifier = classifiers[number]
        return _prediction(path, folder.prediction_file(name, classifier), order, classifier)

    present = [number for number, classifier in enumerate(classifiers) if classifier in found]
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        for number, (violations, values) in zip(present, pool.map(column, present), strict=True):
            yield from violations
            if violations:
                sound = False
            else:
                correct[:, number] = values
    return correct if sound else None


def _file_violations(
    where: str, found: set[str], classifiers: Sequence[str], complete: Collection[str]
) -> Iterator[str]:
    if missing := [classifier for classifier in classifiers if classifier not in found]:
        yield (
            f"{where}: no predictions of {rules.listing(missing, 'classifier')}; every classifier "
            "needs predictions on every data set, add the files or drop the classifiers"
        )
    if unlisted := sorted((found & set(complete)) - set(classifiers)):
        yield (
            f"{where}: predictions of {rules.listing(unlisted, 'classifier')} that "
            f"{folder.MANIFEST} does not list; list the classifiers or remove the files"
        )


def _prediction(
    path: Path, file: Path, order: pl.Series, classifier: str
) -> tuple[list[str], NDArray[Any]]:
    """Return the broken rules of one file, and its correctness in the order of the counts."""
    where, none = str(file), np.empty(0)
    try:
        table = parquet.read(path / file, where, ["image", "correct"])
    except StudyError as error:
        return [str(error)], none
    if violations := list(key_violations(where, table, ["image"])):
        return violations, none
    table = table.with_columns(pl.col("image").cast(pl.String))
    ordered = in_order(table, order)
    if ordered is None:
        return list(join_violations(where, table["image"], order)), none
    values = ordered["correct"].to_numpy()
    broken = rules.correct_violations(where, order.to_numpy(), values[:, None], [classifier])
    return list(broken), values
