"""Reading a study from disk and finding every broken rule on the way.

`inspect` is a generator of violations that returns the study: collecting its lines is a check,
collecting nothing and taking the return value is a read. The rules of the values themselves live in
`bayesrep.rules`; here are those of files, columns and how the tables join.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep import folder, rules
from bayesrep.errors import StudyError, reason
from bayesrep.study import JSON, AnnotatedSet, Study, Truth

__all__ = ["inspect"]

# Every step yields violations and returns its result, or None where it broke a rule.
_KEYS = ["dataset", "image"]


@dataclass(frozen=True)
class _Manifest:
    """The parsed study.json; ``classifiers`` is None where the file leaves them to the folders."""

    name: str
    roles: Mapping[str, str]
    classifiers: Sequence[str] | None
    provenance: Mapping[str, JSON]
    truth: Truth | None


def inspect(path: Path) -> Generator[str, None, Study | None]:
    """Yield every broken rule of the study at ``path``; return the study if there is none."""
    manifest = yield from _manifest(path)
    if manifest is None:
        return None
    counts = yield from _counts(path)
    images = yield from _table(path / folder.IMAGES, _KEYS)
    classifiers = yield from _classifiers(path, manifest)
    if counts is None:
        return None
    yield from _strangers(path, manifest, counts, images)
    datasets: dict[str, AnnotatedSet] = {}
    for role, name in manifest.roles.items():
        data = yield from _dataset(path, role, name, counts, images, classifiers)
        if data is not None:
            datasets[role] = data
    if len(datasets) < len(manifest.roles):
        return None
    try:
        return Study(
            datasets, tuple(classifiers), manifest.name, manifest.provenance, manifest.truth
        )
    except StudyError as error:
        yield str(error)
        return None


def _checked(violations: Iterator[str]) -> Generator[str, None, bool]:
    """Pass violations on; return whether there was none."""
    sound = True
    for violation in violations:
        sound = False
        yield violation
    return sound


def _manifest(path: Path) -> Generator[str, None, _Manifest | None]:
    if not path.is_dir():
        state = "is not a folder" if path.exists() else "does not exist"
        yield f"{path} {state}; give the folder of a study"
        return None
    where = folder.MANIFEST
    try:
        content = json.loads((path / where).read_text(encoding="utf-8"))
    except FileNotFoundError:
        yield f"{where} is missing; give the folder of a study"
        return None
    except (OSError, ValueError) as error:
        yield f"{where} cannot be read as JSON ({reason(error)}); restore or rewrite it"
        return None
    sound = yield from _checked(_manifest_violations(where, content))
    if not sound:
        return None
    truth = content.get("truth")
    return _Manifest(
        name=content.get("name", path.name),
        roles=content["roles"],
        classifiers=content.get("classifiers"),
        provenance=content.get("provenance") or {},
        truth=None if truth is None else _truth(truth),
    )


def _manifest_violations(where: str, content: Any) -> Iterator[str]:
    if not isinstance(content, dict):
        yield f"{where} does not hold a JSON object; rewrite it"
        return
    if content.get("format", folder.FORMAT) != folder.FORMAT:
        yield (
            f"{where}: format {content['format']!r} is not known, this version reads format "
            f"{folder.FORMAT}; use the version that wrote the study"
        )
    if not isinstance(content.get("name", ""), str):
        yield f"{where}: name is not text; give the study's name"
    if not isinstance(content.get("provenance") or {}, dict):
        yield f"{where}: provenance is not an object; write it as one"
    roles = content.get("roles")
    if not isinstance(roles, dict) or not _is_text_list([*roles, *roles.values()]):
        yield f'{where}: roles does not map roles to data sets; write {{"reference": NAME, ...}}'
    else:
        yield from rules.role_violations(where, list(roles.items()))
    classifiers = content.get("classifiers")
    if classifiers is not None and not _is_text_list(classifiers):
        yield f"{where}: classifiers is not a list of names; write one, or leave it out"
    elif classifiers is not None:
        yield from rules.classifier_violations(where, classifiers)
    if content.get("truth") is not None and _truth(content["truth"]) is None:
        yield f"{where}: truth does not hold the known accuracies; restore it or leave it out"


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _truth(content: Any) -> Truth | None:
    try:
        return Truth(
            adjusted_accuracy=np.asarray(content["adjusted_accuracy"], dtype=np.float64),
            reference_accuracy=np.asarray(content["reference_accuracy"], dtype=np.float64),
            replication_accuracy=np.asarray(content["replication_accuracy"], dtype=np.float64),
            mean_selection_frequency={
                str(role): float(value)
                for role, value in content["mean_selection_frequency"].items()
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _counts(path: Path) -> Generator[str, None, pl.DataFrame | None]:
    """Read the counts, or count the raw annotations where only these are there."""
    counts, annotations = path / folder.COUNTS, path / folder.ANNOTATIONS
    if counts.exists() or not annotations.exists():
        return (yield from _table(counts, [*_KEYS, "selected", "shown"]))
    rows = yield from _table(annotations, [*_KEYS, "worker", "selected"])
    if rows is None:
        return None
    answer = [name for name in (*_KEYS, "worker", "task", "time") if name in rows.columns]
    repeated = rows.filter(rows.select(answer).is_duplicated())["image"].unique(maintain_order=True)
    if len(repeated):
        yield (
            f"{folder.ANNOTATIONS}: a worker answered more than once for "
            f"{rules.listing(repeated)}; keep one row per worker and image"
        )
    values = rows["selected"].to_numpy()
    where = f"{folder.ANNOTATIONS} (each row is shown = 1)"
    names, once = rows["image"].to_numpy(), np.ones(len(rows), dtype=np.int64)
    sound = yield from _checked(rules.count_violations(where, names, values, once))
    if not sound or len(repeated):
        return None
    rows = rows.with_columns(pl.col("selected").cast(pl.Int64))
    groups = rows.group_by(_KEYS, maintain_order=True)
    return groups.agg(pl.col("selected").sum(), pl.len().cast(pl.Int64).alias("shown"))


def _table(file: Path, columns: list[str]) -> Generator[str, None, pl.DataFrame | None]:
    """Read a table with data set and image names in it."""
    try:
        table = _read(file)
    except StudyError as error:
        yield str(error)
        return None
    if missing := [column for column in columns if column not in table.columns]:
        yield f"{file.name}: {rules.listing(missing, 'column')} missing; the table needs {columns}"
        return None
    sound = yield from _checked(_key_violations(file.name, table, _KEYS))
    return table.with_columns(pl.col(_KEYS).cast(pl.String)) if sound else None


def _read(file: Path, shown_as: str | None = None) -> pl.DataFrame:
    name = shown_as or file.name
    if not file.exists():
        raise StudyError(f"{name} is missing; restore it or write the study again")
    try:
        return pl.read_parquet(file, glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise StudyError(
            f"{name} is not a readable Parquet file ({reason(error)}); restore or rewrite it"
        ) from error


def _key_violations(where: str, table: pl.DataFrame, keys: list[str]) -> Iterator[str]:
    for key in keys:
        column = table[key]
        if not _is_textual(column.dtype) and len(column):
            yield f"{where}: column {key!r} is {column.dtype}; give names as text or whole numbers"
        elif column.null_count():
            rows = column.is_null().arg_true().to_list()
            yield f"{where}: column {key!r} is missing in {rules.listing(rows, 'row')}; fill it in"


def _is_textual(dtype: pl.DataType) -> bool:
    return dtype.is_integer() or isinstance(
        dtype, pl.String | pl.Categorical | pl.Enum | pl.Boolean
    )


def _classifiers(path: Path, manifest: _Manifest) -> Generator[str, None, list[str]]:
    """Return the classifiers listed, or all that have a file where study.json lists none."""
    if manifest.classifiers is not None:
        return list(manifest.classifiers)
    found: set[str] = set()
    for name in manifest.roles.values():
        found.update(folder.names_in(path / folder.prediction_folder(name), ".parquet"))
    yield from rules.classifier_violations(folder.PREDICTIONS, sorted(found))
    return sorted(found)


def _strangers(
    path: Path, manifest: _Manifest, counts: pl.DataFrame, images: pl.DataFrame | None
) -> Iterator[str]:
    """Find data sets that no role names: their data would be ignored without a word."""
    holders = {folder.COUNTS: counts["dataset"].unique(maintain_order=True).to_list()}
    if images is not None:
        holders[folder.IMAGES] = images["dataset"].unique(maintain_order=True).to_list()
    holders[folder.PREDICTIONS] = folder.names_in(path / folder.PREDICTIONS, "")
    for where, names in holders.items():
        strangers = [name for name in names if name not in manifest.roles.values()]
        if strangers:
            yield (
                f"{where}: {rules.listing(strangers, 'data set')} without a role in "
                f"{folder.MANIFEST}; give each a role or remove it"
            )


def _dataset(
    path: Path,
    role: str,
    name: str,
    counts: pl.DataFrame,
    images: pl.DataFrame | None,
    classifiers: Sequence[str],
) -> Generator[str, None, AnnotatedSet | None]:
    where = f"{folder.COUNTS}, data set {name!r}"
    rows = counts.filter(pl.col("dataset") == name)
    names = rows["image"].to_numpy().astype(np.str_)
    selected, shown = rows["selected"].to_numpy(), rows["shown"].to_numpy()
    sound = yield from _checked(rules.image_violations(where, names))
    counted = yield from _checked(rules.count_violations(where, names, selected, shown))
    if not sound:
        return None
    texts = None if images is None else (yield from _texts(name, images, rows["image"]))
    correct = yield from _predictions(path, role, name, rows["image"], classifiers)
    if not counted or texts is None or correct is None:
        return None
    labels = texts.pop("label", None)
    return AnnotatedSet(name, names, selected, shown, correct, labels, texts)


def _texts(
    name: str, images: pl.DataFrame, order: pl.Series
) -> Generator[str, None, dict[str, NDArray[np.str_]] | None]:
    """Return the label and group columns of one data set, in the order of its counts."""
    where = f"{folder.IMAGES}, data set {name!r}"
    rows = images.filter(pl.col("dataset") == name)
    ordered = _in_order(rows, order)
    if ordered is None:
        yield from _join_violations(where, rows["image"], order)
        return None
    sound = True
    texts: dict[str, NDArray[np.str_]] = {}
    for column in ordered.drop(_KEYS):
        if column.null_count() == len(column):
            continue
        if not _is_textual(column.dtype):
            yield f"{where}: column {column.name!r} is {column.dtype}; give text or whole numbers"
            return None
        values = column.cast(pl.String).to_list()
        sound &= yield from _checked(
            rules.text_violations(where, order.to_list(), column.name, values)
        )
        texts[column.name] = np.asarray(values, dtype=np.str_)
    return texts if sound else None


def _predictions(
    path: Path, role: str, name: str, order: pl.Series, classifiers: Sequence[str]
) -> Generator[str, None, NDArray[np.bool_] | None]:
    """Return correct [N, C] of one data set."""
    where = folder.prediction_folder(name)
    found = set(folder.names_in(path / where, ".parquet"))
    if role == "candidates" and not found:
        return np.zeros((len(order), 0), dtype=np.bool_)
    sound = yield from _checked(_file_violations(str(where), found, classifiers))
    correct = np.zeros((len(order), len(classifiers)), dtype=np.bool_)

    def column(classifier: str) -> tuple[list[str], NDArray[Any]]:
        return _prediction(path, folder.prediction_file(name, classifier), order, classifier)

    present = [classifier for classifier in classifiers if classifier in found]
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        for classifier, (violations, values) in zip(
            present, pool.map(column, present), strict=True
        ):
            yield from violations
            if violations:
                sound = False
            else:
                correct[:, classifiers.index(classifier)] = values
    return correct if sound else None


def _file_violations(where: str, found: set[str], classifiers: Sequence[str]) -> Iterator[str]:
    if missing := [classifier for classifier in classifiers if classifier not in found]:
        yield (
            f"{where}: no predictions of {rules.listing(missing, 'classifier')}; every classifier "
            "needs predictions on every data set, add the files or drop the classifiers"
        )
    if unlisted := sorted(found - set(classifiers)):
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
        table = _read(path / file, where)
    except StudyError as error:
        return [str(error)], none
    if missing := [column for column in ("image", "correct") if column not in table.columns]:
        return [f"{where}: {rules.listing(missing, 'column')} missing; add it"], none
    if violations := list(_key_violations(where, table, ["image"])):
        return violations, none
    table = table.select(pl.col("image").cast(pl.String), "correct")
    ordered = _in_order(table, order)
    if ordered is None:
        return list(_join_violations(where, table["image"], order)), none
    values = ordered["correct"].to_numpy()
    names = order.to_numpy()
    return list(rules.correct_violations(where, names, values[:, None], [classifier])), values


def _join_violations(where: str, images: pl.Series, order: pl.Series) -> Iterator[str]:
    """Check that a table has the images of counts.parquet: each of them, once, and no other."""
    if len(images):
        yield from rules.image_violations(where, images.to_list())
    known, given = set(order.to_list()), set(images.to_list())
    if unknown := [image for image in images.unique(maintain_order=True) if image not in known]:
        yield (
            f"{where}: {rules.listing(unknown)} not in {folder.COUNTS}; "
            "give their counts or remove the rows"
        )
    if missing := [image for image in order if image not in given]:
        yield (
            f"{where}: {rules.listing(missing)} of {folder.COUNTS} missing; "
            "add the rows or remove the counts"
        )


def _in_order(table: pl.DataFrame, order: pl.Series) -> pl.DataFrame | None:
    """Sort rows into the order of the images; None where these are not the same images."""
    if table["image"].equals(order):
        return table
    rows = pl.DataFrame({"image": table["image"], "row": np.arange(len(table))})
    joined = order.to_frame("image").join(rows, on="image", how="left", maintain_order="left")
    # Every image found, and as many rows before as after: neither repeated nor unknown images.
    if joined["row"].null_count() or not len(table) == len(joined) == len(order):
        return None
    return table[joined["row"]]
