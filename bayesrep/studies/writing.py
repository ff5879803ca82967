"""Write a study's folder (see `layout`), whole or not at all."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bayesrep.atomic import replaced_folder
from bayesrep.errors import StudyError, listing, reason
from bayesrep.files import parquet
from bayesrep.files.folders import refuse_foreign
from bayesrep.studies import layout, validation
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.attempts import Attempts, write_attempts
from bayesrep.studies.manifest import JSON, Manifest, write_manifest
from bayesrep.studies.parquet_tables import FAILURE_SCHEMA, KEYS, read_failures
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.studies.violations import Problems


def write_folder(
    path: str | Path,
    manifest: Manifest,
    datasets: Sequence[AnnotatedSet],
    answers: Sequence[Predictions] = (),
    attempts: Sequence[Attempts] = (),
    *,
    force: bool = False,
) -> None:
    """Write a study, complete or not yet, as a folder; see `Study.write`."""
    by_dataset = {each.dataset: each for each in answers}
    listed = manifest.classifiers or ()
    tables = {
        data.name: _tables_of_answers(data, listed, by_dataset[data.name])
        if data.name in by_dataset
        else _correctness(data, listed)
        for data in datasets
        if listed
    }
    target = Path(path).resolve()
    with _refused_in_words(path):
        if target.exists():
            _refuse_existing(target, force=force)
        # It takes its place once it is whole.
        with replaced_folder(target) as partial:
            if datasets:
                _write_tables(datasets, partial)
                rows = [
                    (d.name, image, why, True)
                    for d in datasets
                    for image, why in d.left_out.items()
                ]
                if rows:
                    failures = pl.DataFrame(rows, schema=FAILURE_SCHEMA, orient="row")
                    parquet.write(failures, partial / layout.FAILURES_FILE)
                write_manifest(manifest.content(), partial)
            else:
                tables = {name: _answer_tables(each) for name, each in by_dataset.items()}
                _write_facts(manifest.provenance, partial / layout.PROVENANCE_FILE)
                _write_facts(manifest.roles, partial / layout.ROLES_FILE)
            for dataset, files in tables.items():
                named = validation.classifier_violations(
                    f"the answers on {dataset!r}", tuple(files)
                )
                validation.raise_first(
                    each for each in named if each.rule == "name-too-long-for-file"
                )
                (partial / layout.prediction_folder(dataset)).mkdir(parents=True)
                for classifier, table in files.items():
                    parquet.write(table, partial / layout.prediction_file(dataset, classifier))
            if attempts:
                write_attempts(attempts, partial)


def add_counts(path: str | Path, manifest: Manifest, datasets: Sequence[AnnotatedSet]) -> None:
    """Add counts to answers that await them; the study's classifiers are those with answers."""
    target = Path(path).resolve()
    with _refused_in_words(path):
        began = StudyFolder(target).provenance
        facts = {**began, "counts": dict(manifest.provenance)} if began else manifest.provenance
        _write_tables(datasets, target)
        # Of the images left out go those that the counts, which have now come, do not know.
        failures = read_failures(target, Problems())
        if failures is not None and len(failures):
            counted = pl.concat(_of_dataset(data, {}) for data in datasets)
            counted_failures = failures.join(counted, on=KEYS, how="semi")
            parquet.write(counted_failures, target / layout.FAILURES_FILE)
        write_manifest(replace(manifest, provenance=facts).content(), target)


@contextmanager
def _refused_in_words(path: str | Path) -> Generator[None]:
    """Say in one line that a place cannot be written."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        raise StudyError("place-not-writable", path=path, reason=reason(error)) from error


def _refuse_existing(target: Path, *, force: bool) -> None:
    if not force:
        raise StudyError("study-path-exists", path=target)
    if not target.is_dir() or (any(target.iterdir()) and not StudyFolder(target).is_study):
        raise StudyError("existing-path-not-study", path=target)
    refuse_foreign(target, layout.STUDY_ENTRIES)


def _write_tables(datasets: Sequence[AnnotatedSet], path: Path) -> None:
    counts = pl.concat(
        _of_dataset(data, {"selected": data.selected, "shown": data.shown}) for data in datasets
    )
    texts = [{} if data.labels is None else {"label": data.labels} for data in datasets]
    images = pl.concat(
        (_of_dataset(d, {**label, **d.groups}) for d, label in zip(datasets, texts, strict=True)),
        how="diagonal",
    )
    parquet.write(counts, path / layout.COUNTS_FILE)
    if answered := [_answers_of(data) for data in datasets if data.answers is not None]:
        parquet.write(pl.concat(answered, how="diagonal"), path / layout.ANNOTATIONS_FILE)
    parquet.write(images, path / layout.IMAGES_FILE)


def _answers_of(data: AnnotatedSet) -> pl.DataFrame:
    """The answers by worker, a row each."""
    answers = data.answers
    assert answers is not None
    columns = {
        "dataset": np.repeat(data.name, len(answers.image)),
        "image": data.images[answers.image],
        "worker": answers.workers[answers.worker],
        "selected": answers.selected,
    }
    optional = {"position": answers.position, "context": answers.context}
    columns |= {name: values for name, values in optional.items() if values is not None}
    return pl.DataFrame(columns)


def _of_dataset(data: AnnotatedSet, columns: Mapping[str, Any]) -> pl.DataFrame:
    table = pl.DataFrame({"image": data.images, **columns})
    return table.select(pl.lit(data.name).alias("dataset"), pl.all())


def _write_facts(facts: Mapping[str, JSON], file: Path) -> None:
    """Write a JSON object, where it says anything."""
    if facts:
        text = json.dumps(dict(facts), ensure_ascii=False, allow_nan=False)
        file.write_text(text + "\n", encoding="utf-8")


def _correctness(data: AnnotatedSet, classifiers: Sequence[str]) -> dict[str, pl.DataFrame]:
    # A data set of candidates may come without predictions: no columns, no files.
    return {
        name: pl.DataFrame({"image": data.images, "correct": np.ascontiguousarray(correct)})
        for name, correct in zip(classifiers, data.correct.T, strict=False)
    }


def _tables_of_answers(
    data: AnnotatedSet, classifiers: Sequence[str], predictions: Predictions
) -> dict[str, pl.DataFrame]:
    """The answers to a study's images, in its order."""
    rows = {name: row for row, name in enumerate(predictions.images.tolist())}
    lacking = [name for name in data.images.tolist() if name not in rows]
    absent = sorted(set(classifiers) - set(predictions.classifiers))
    if lacking or absent:
        what = listing(lacking) if lacking else listing(absent, "classifier")
        raise StudyError("answers-incomplete", dataset=data.name, missing=what)
    counted = predictions.on(np.array([rows[name] for name in data.images.tolist()]))
    order = [counted.classifiers.index(name) for name in classifiers]
    wrong = (counted.correct[order].T != data.correct).any(axis=1)
    if wrong.any():
        images = listing(data.images[wrong].tolist())
        raise StudyError("answers-contradict-correctness", dataset=data.name, images=images)
    tables = _answer_tables(counted)
    return {name: tables[name] for name in classifiers}


def _answer_tables(predictions: Predictions) -> dict[str, pl.DataFrame]:
    """Build each classifier's table of answers, with the columns of a prediction file."""
    silent = ~predictions.answered
    if silent.any():
        number = int(np.flatnonzero(silent.any(axis=1))[0])
        images = listing(predictions.images[silent[number]].tolist())
        facts = {"classifier": predictions.classifiers[number], "images": images}
        raise StudyError(
            "classifier-leaves-images-unanswered", dataset=predictions.dataset, **facts
        )
    names = pl.Series(predictions.classes, dtype=pl.String)
    constant = {"image": predictions.images, "label": names[predictions.labels]}
    tables: dict[str, pl.DataFrame] = {}
    for number, classifier in enumerate(predictions.classifiers):
        ranks = zip(layout.LABEL_COLUMNS, predictions.answers[number].T, strict=False)
        columns: dict[str, Any] = {label: names[values] for label, values in ranks}
        if predictions.confidence is not None:
            columns[layout.PROBABILITY_COLUMNS[0]] = predictions.confidence[number]
        correct = predictions.answers[number, :, 0] == predictions.labels
        tables[classifier] = pl.DataFrame({**constant, **columns, "correct": correct})
    return tables
