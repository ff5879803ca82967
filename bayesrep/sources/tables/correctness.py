"""Correctness of predictions that are labels: from the table, or by the image's label."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import polars as pl

from bayesrep.errors import StudyError, TableWarning, Violation, listing
from bayesrep.sources.match_names import explain_writing
from bayesrep.sources.tables.recognise import (
    IMAGE_KEY,
    LONG_KIND,
    GivenTables,
    TypedTable,
    name_files,
)
from bayesrep.studies.class_order import MIN_CLASS_IMAGES, refuse_mistake
from bayesrep.studies.layout import LABEL_COLUMNS
from bayesrep.studies.violations import Problems


def grade_predictions(tables: GivenTables, problems: Problems) -> GivenTables | None:
    """The tables with `correct` where predictions are labels, unless one contradicts another."""
    for table in tables.of_kinds(LONG_KIND):
        problems.take(_contradiction_violations(table, tables))
    graded = [problems.attempt(partial(_with_correct, table, tables)) for table in tables.tables]
    sound = [table for table in graded if table is not None]
    return replace(tables, tables=sound) if len(sound) == len(graded) else None


def labels_of_images(tables: GivenTables) -> pl.DataFrame:
    """The labels of all images: dataset, image, label."""
    described = tables.of_kinds("images")
    if not described:
        raise StudyError(
            "answers-without-labels",
            where=name_files([table.where for table in tables.of_kinds(LONG_KIND)]),
        )
    return pl.concat([table.frame.select(*IMAGE_KEY, "label") for table in described]).unique(
        IMAGE_KEY
    )


def _with_correct(table: TypedTable, tables: GivenTables) -> TypedTable:
    if table.kind != LONG_KIND or "correct" in table.frame.columns:
        return table
    frame = _with_labels(table.frame, tables)
    for (dataset, classifier), rows in frame.group_by("dataset", "classifier", maintain_order=True):
        labels, answers = (
            rows[name].fill_null("").to_numpy() for name in ("label", LABEL_COLUMNS[0])
        )
        where = f"{table.where}: labels of {dataset!r} and answers of {classifier!r}"
        refuse_mistake(labels, answers, where=where)
    _warn_of_writing(frame, table.where)
    correct = frame[LABEL_COLUMNS[0]].eq(frame["label"]).fill_null(value=False)
    return replace(table, frame=table.frame.with_columns(correct=correct))


def _warn_of_writing(frame: pl.DataFrame, where: str) -> None:
    """Warn of classifiers whose answers match no label, or match in another writing."""
    labels = frame["label"].drop_nulls().unique(maintain_order=True)
    rows = frame.select("classifier", answer=LABEL_COLUMNS[0]).filter(pl.col("answer") != "")
    is_strange = ~pl.col("answer").is_in(labels.implode())
    strange = rows.filter(is_strange)
    several = pl.len() >= MIN_CLASS_IMAGES // 2
    lost = rows.group_by("classifier").agg(is_strange.all() & several).filter("answer")
    if not (len(lost) or explain_writing(strange["answer"].unique(), labels)):
        return
    classifiers_by_hint: dict[str, list[object]] = {}
    for (name,), own in strange.group_by("classifier", maintain_order=True):
        hint = explain_writing(own["answer"].unique(maintain_order=True), labels)
        if not hint and name in lost["classifier"]:
            hint = f"; none is a label, as {own['answer'][0]!r} is not and {labels.first()!r} is"
        classifiers_by_hint.setdefault(hint, []).append(name)
    classifiers_by_hint.pop("", None)
    for hint, names in classifiers_by_hint.items():
        text = f"{where}: answers of {listing(names, 'classifier')} are not written as labels are"
        warnings.warn(TableWarning(f"{text}, and count as wrong{hint}"), stacklevel=2)


def _with_labels(frame: pl.DataFrame, tables: GivenTables) -> pl.DataFrame:
    """The predictions with the labels of their images, which a table of images may give."""
    if "label" in frame.columns:
        return frame
    return frame.join(labels_of_images(tables), on=IMAGE_KEY, how="left", maintain_order="left")


def _contradiction_violations(table: TypedTable, tables: GivenTables) -> Iterator[Violation]:
    """Check that a table calls right what its answers and labels, where there, say is right."""
    columns = table.frame.columns
    if not {"correct", LABEL_COLUMNS[0]} <= set(columns):
        return
    if "label" not in columns and not tables.of_kinds("images"):
        return
    frame = _with_labels(table.frame, tables)
    is_comparable = (frame[LABEL_COLUMNS[0]] != "") & (frame["label"] != "")
    wrong = is_comparable & (frame["correct"] != (frame[LABEL_COLUMNS[0]] == frame["label"]))
    if not wrong.any():
        return
    broken = frame.filter(wrong)
    dataset, classifier = broken.select("dataset", "classifier").row(0)
    own = wrong & (frame["dataset"] == dataset) & (frame["classifier"] == classifier)
    rest = len(broken) - own.sum()
    yield Violation(
        "correct-contradicts-answers",
        where=table.where,
        classifier=classifier,
        dataset=dataset,
        images=listing(frame["image"].filter(own)),
        lines=table.lines(pl.lit(own)),
        others=f", and {rest:,} predictions more" if rest else "",
    )
