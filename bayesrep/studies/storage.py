"""A study on disk: a folder of Parquet files that anything can read.

::

    study.json                                  format, name, roles, classifiers, provenance, truth
    images.parquet                              dataset, image, label, optional group columns
    counts.parquet                              dataset, image, selected, shown
    annotations.parquet                         instead of counts: dataset, image, worker, selected
    predictions/<dataset>/<classifier>.parquet  image, correct; where the answers are known, label,
                                                label_1 ... label_5 and probability_1 ... 5
    failures.parquet                            dataset, image, reason, left_out: where images could
                                                not be decoded

Names of data sets and classifiers are percent-encoded in file names. Images keep the order of
counts.parquet; all other tables are joined to it by name. `classifiers` may be left out of
study.json: then they are the files found, sorted. Images that are left out are passed over in all
tables.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from bayesrep.atomic import replaced_file, replaced_folder
from bayesrep.errors import StudyError, listing, reason
from bayesrep.files import parquet
from bayesrep.studies import folder
from bayesrep.studies.inspection import inspect
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import JSON, AnnotatedSet, Study
from bayesrep.studies.tables import read_failures

_Value = TypeVar("_Value")


def read_study(path: str | Path) -> Study:
    """Read a study from its folder.

    Parameters
    ----------
    path
        The folder.

    Raises
    ------
    StudyError
        With the first broken rule, and how many more there are.
    """
    study, lines = _collected(inspect(Path(path)))
    if study is None or lines:
        more = f" ({len(lines) - 1} more: `bayesrep check {path}` lists them)" * (len(lines) > 1)
        raise StudyError(f"{path}: {lines[0]}{more}")
    return study


def check_study(path: str | Path) -> list[str]:
    """Every broken rule of the study at `path`, one line each; empty where it is sound.

    Parameters
    ----------
    path
        The folder.
    """
    return _collected(inspect(Path(path)))[1]


def images_left_out(path: str | Path) -> dict[str, dict[str, str]]:
    """Return, by data set, the images that a study is left without, and why.

    Parameters
    ----------
    path
        The study's folder, or one that `bayesrep.predict` began.

    Raises
    ------
    StudyError
        Where the list cannot be read.
    """
    failures, lines = _collected(read_failures(Path(path)))
    if failures is None:
        raise StudyError(f"{path}: {lines[0]}")
    found: dict[str, dict[str, str]] = {}
    for dataset, image, why, left_out in failures.iter_rows():
        if left_out:
            found.setdefault(dataset, {})[image] = why
    return found


def write_study(
    study: Study, path: str | Path, *, force: bool = False, answers: Sequence[Predictions] = ()
) -> None:
    """Write a study as a folder, whole or not at all.

    Parameters
    ----------
    study
        What to write.
    path
        The folder to create; its parents are created too.
    force
        Replace a study (or an empty folder) that is already there, once the new one is complete.
    answers
        What the classifiers answered, for data sets of which that is known; those to images that
        the study lacks are left out.

    Raises
    ------
    StudyError
        Where the path exists and `force` is not given, or is something else than a study, or
        cannot be written; where answers are missing or contradict the study.
    """
    target = Path(path).resolve()
    known = {each.dataset: each for each in answers}
    tables = {
        data.name: _answered(data, study.classifiers, known[data.name])
        for data in study.datasets.values()
        if data.name in known
    }
    with _refused_in_words(path):
        _refuse_existing(target, force=force)
        with replaced_folder(target) as partial:
            _write_files(study, partial, tables)


def awaits_counts(path: str | Path) -> bool:
    """Whether a folder holds predictions, as `bayesrep.predict` makes them, but no study yet."""
    path = Path(path)
    return (path / folder.PREDICTIONS).is_dir() and not (path / folder.MANIFEST).exists()


def write_annotations(
    datasets: Mapping[str, AnnotatedSet],
    path: str | Path,
    *,
    name: str = "study",
    provenance: Mapping[str, JSON] | None = None,
    force: bool = False,
) -> None:
    """Write a study that has no predictions yet; its classifiers will be those found beside it.

    Parameters
    ----------
    datasets
        Role to data set; predictions in them are left out.
    path
        The folder: a new one, or one that `bayesrep.predict` made, to which counts are added.
    name, provenance
        As those of a `Study`.
    force
        As for `write_study`.

    Raises
    ------
    StudyError
        As `write_study`.
    """
    target = Path(path).resolve()
    content = {
        "format": folder.FORMAT,
        "name": name,
        "roles": {role: data.name for role, data in datasets.items()},
        "provenance": dict(provenance or {}),
    }
    with _refused_in_words(path):
        if awaits_counts(target):
            _write_tables(list(datasets.values()), target)
            _forget_uncounted_failures(list(datasets.values()), target)
            write_manifest(content, target)
            return
        _refuse_existing(target, force=force)
        with replaced_folder(target) as partial:
            _write_tables(list(datasets.values()), partial)
            write_manifest(content, partial)


def _forget_uncounted_failures(datasets: Sequence[AnnotatedSet], path: Path) -> None:
    """Drop from the images left out those that the counts, which have now come, do not know."""
    failures, _ = _collected(read_failures(path))
    if failures is None or not len(failures):
        return
    tables = [_counts_table(data).select("dataset", "image") for data in datasets]
    with replaced_file(path / folder.FAILURES) as partial:
        counted = failures.join(pl.concat(tables), on=["dataset", "image"], how="semi")
        parquet.write(counted, partial)


@contextmanager
def _refused_in_words(path: str | Path) -> Generator[None]:
    """Say in one line that a place cannot be written."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        text = f"{path} cannot be written ({reason(error)}); choose another place"
        raise StudyError(text) from error


def _collected(inspection: Generator[str, None, _Value]) -> tuple[_Value, list[str]]:
    """What an inspection ends with, and every broken rule on its way."""
    lines: list[str] = []
    while True:
        try:
            lines.append(next(inspection))
        except StopIteration as end:
            return end.value, lines


def _refuse_existing(target: Path, *, force: bool) -> None:
    if not target.exists():
        return
    if not force:
        raise StudyError(
            f"{target} exists; choose another path, or give force (--force) to replace it"
        )
    if not target.is_dir() or (any(target.iterdir()) and not (target / folder.MANIFEST).exists()):
        raise StudyError(
            f"{target} exists and is not a study, so it is not replaced; remove it first"
        )


def write_answers(answers: Sequence[Predictions], path: str | Path, *, force: bool = False) -> None:
    """Write predictions to which counts are still to be added; see `write_annotations`.

    Parameters
    ----------
    answers
        What classifiers answered on each data set.
    path, force
        As for `write_study`.

    Raises
    ------
    StudyError
        As `write_study`.
    """
    target = Path(path).resolve()
    with _refused_in_words(path):
        _refuse_existing(target, force=force)
        with replaced_folder(target) as partial:
            for each in answers:
                _write_prediction_files(partial, each.dataset, answer_tables(each))


def answer_tables(predictions: Predictions) -> dict[str, pl.DataFrame]:
    """Each classifier's answers as a table with the columns of a file of predictions.

    Raises
    ------
    StudyError
        Where an answer is missing.
    """
    silent = ~predictions.answered
    if silent.any():
        number = int(np.flatnonzero(silent.any(axis=1))[0])
        images = listing(predictions.images[silent[number]].tolist())
        raise StudyError(
            f"data set {predictions.dataset!r}: {predictions.classifiers[number]!r} has no answer "
            f"to {images}; a classifier answers all"
        )
    names = pl.Series(predictions.classes, dtype=pl.String)
    shown = {"image": predictions.images, "label": names[predictions.labels]}
    tables: dict[str, pl.DataFrame] = {}
    for number, classifier in enumerate(predictions.classifiers):
        ranks = enumerate(predictions.answers[number].T, start=1)
        columns: dict[str, Any] = {f"label_{rank}": names[values] for rank, values in ranks}
        if predictions.confidence is not None:
            columns["probability_1"] = predictions.confidence[number]
        correct = predictions.answers[number, :, 0] == predictions.labels
        tables[classifier] = pl.DataFrame({**shown, **columns, "correct": correct})
    return tables


def _answered(
    data: AnnotatedSet, classifiers: Sequence[str], predictions: Predictions
) -> dict[str, pl.DataFrame]:
    """The answers to a study's images, in its order."""
    rows = {name: row for row, name in enumerate(predictions.images.tolist())}
    lacking = [name for name in data.images.tolist() if name not in rows]
    absent = sorted(set(classifiers) - set(predictions.classifiers))
    if lacking or absent:
        what = listing(lacking) if lacking else listing(absent, "classifier")
        raise StudyError(f"data set {data.name!r}: no answers for {what}; give all or none")
    mine = predictions.on(np.array([rows[name] for name in data.images.tolist()]))
    order = [mine.classifiers.index(name) for name in classifiers]
    wrong = (mine.correct[order].T != data.correct).any(axis=1)
    if wrong.any():
        images = listing(data.images[wrong].tolist())
        raise StudyError(f"data set {data.name!r}: answers contradict what is right on {images}")
    tables = answer_tables(mine)
    return {name: tables[name] for name in classifiers}


def _write_files(
    study: Study, path: Path, answers: Mapping[str, Mapping[str, pl.DataFrame]]
) -> None:
    datasets = list(study.datasets.values())
    _write_tables(datasets, path)
    _write_left_out(datasets, path)
    for data in datasets:
        tables = answers.get(data.name) or _correctness(data, study.classifiers)
        _write_prediction_files(path, data.name, tables)
    write_manifest(_manifest(study), path)


def _write_tables(datasets: Sequence[AnnotatedSet], path: Path) -> None:
    counts = pl.concat([_counts_table(data) for data in datasets])
    images = pl.concat([_images_table(data) for data in datasets], how="diagonal")
    for table, name in ((counts, folder.COUNTS), (images, folder.IMAGES)):
        with replaced_file(path / name) as partial:
            parquet.write(table, partial)


def _write_left_out(datasets: Sequence[AnnotatedSet], path: Path) -> None:
    rows = [(d.name, image, why, True) for d in datasets for image, why in d.left_out.items()]
    if rows:
        columns = ["dataset", "image", "reason", "left_out"]
        parquet.write(pl.DataFrame(rows, schema=columns, orient="row"), path / folder.FAILURES)


def write_manifest(content: Mapping[str, Any], path: Path) -> None:
    """Write the study.json of the study at `path`, whole or not at all."""
    text = json.dumps(content, indent=2, ensure_ascii=False, default=np.ndarray.tolist)
    with replaced_file(path / folder.MANIFEST) as partial:
        partial.write_text(text + "\n", encoding="utf-8")


def _counts_table(data: AnnotatedSet) -> pl.DataFrame:
    columns = {"image": data.images, "selected": data.selected, "shown": data.shown}
    return pl.DataFrame(columns).select(pl.lit(data.name).alias("dataset"), pl.all())


def _images_table(data: AnnotatedSet) -> pl.DataFrame:
    labels = {} if data.labels is None else {"label": data.labels}
    table = pl.DataFrame({"image": data.images, **labels, **data.groups})
    return table.select(pl.lit(data.name).alias("dataset"), pl.all())


def _correctness(data: AnnotatedSet, classifiers: Sequence[str]) -> dict[str, pl.DataFrame]:
    # A data set of candidates may come without predictions: no columns, no files.
    return {
        name: pl.DataFrame({"image": data.images, "correct": np.ascontiguousarray(correct)})
        for name, correct in zip(classifiers, data.correct.T, strict=False)
    }


def _write_prediction_files(path: Path, dataset: str, tables: Mapping[str, pl.DataFrame]) -> None:
    (path / folder.prediction_folder(dataset)).mkdir(parents=True)
    for classifier, table in tables.items():
        parquet.write(table, path / folder.prediction_file(dataset, classifier))


def _manifest(study: Study) -> dict[str, Any]:
    return {
        "format": folder.FORMAT,
        "name": study.name,
        "roles": {role: data.name for role, data in study.datasets.items()},
        "classifiers": list(study.classifiers),
        "provenance": dict(study.provenance),
        "truth": None if study.truth is None else asdict(study.truth),
    }
