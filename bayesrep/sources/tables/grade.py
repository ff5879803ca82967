"""Whether predictions that are labels are right: said by the table, or by the image's label."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import polars as pl

from bayesrep.errors import StudyError, TableWarning, Violation, listing
from bayesrep.sources.matching import explain_writing
from bayesrep.sources.tables.recognise import KEY, LONG_KIND, GivenTables, TypedTable, name_files
from bayesrep.studies.class_order import FEWEST_IMAGES, refuse_mistake
from bayesrep.studies.folder import LABELS
from bayesrep.studies.problems import Problems


def grade_predictions(tables: GivenTables, problems: Problems) -> GivenTables | None:
    """The tables with `correct` where predictions are labels: whether the first is the image's.

    Where a table has both, they must say the same.
    """
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
    return pl.concat([table.frame.select(*KEY, "label") for table in described]).unique(KEY)


def _with_correct(table: TypedTable, tables: GivenTables) -> TypedTable:
    if table.kind != LONG_KIND or "correct" in table.frame.columns:
        return table
    frame = _with_labels(table.frame, tables)
    for (dataset, classifier), rows in frame.group_by("dataset", "classifier", maintain_order=True):
        labels, answers = (rows[name].fill_null("").to_numpy() for name in ("label", LABELS[0]))
        where = f"{table.where}: labels of {dataset!r} and answers of {classifier!r}"
        refuse_mistake(labels, answers, where=where)
    _warn_of_writing(frame, table.where)
    correct = frame[LABELS[0]].eq(frame["label"]).fill_null(value=False)
    return replace(table, frame=table.frame.with_columns(correct=correct))


def _warn_of_writing(frame: pl.DataFrame, where: str) -> None:
    """Say whose answers are written otherwise than labels, or are none of them: all are wrong."""
    known = frame["label"].drop_nulls().unique(maintain_order=True)
    rows = frame.select("classifier", answer=LABELS[0]).filter(pl.col("answer") != "")
    is_strange = ~pl.col("answer").is_in(known.implode())
    strange = rows.filter(is_strange)
    several = pl.len() >= FEWEST_IMAGES // 2
    lost = rows.group_by("classifier").agg(is_strange.all() & several).filter("answer")
    if not (len(lost) or explain_writing(strange["answer"].unique(), known)):
        return
    told: dict[str, list[object]] = {}
    for (name,), own in strange.group_by("classifier", maintain_order=True):
        hint = explain_writing(own["answer"].unique(maintain_order=True), known)
        if not hint and name in lost["classifier"]:
            hint = f"; none is a label, as {own['answer'][0]!r} is not and {known.first()!r} is"
        told.setdefault(hint, []).append(name)
    told.pop("", None)
    for hint, names in told.items():
        text = f"{where}: answers of {listing(names, 'classifier')} are not written as labels are"
        warnings.warn(TableWarning(f"{text}, and count as wrong{hint}"), stacklevel=2)


def _with_labels(frame: pl.DataFrame, tables: GivenTables) -> pl.DataFrame:
    """The predictions with the labels of their images, which a table of images may give."""
    if "label" in frame.columns:
        return frame
    return frame.join(labels_of_images(tables), on=KEY, how="left", maintain_order="left")


def _contradiction_violations(table: TypedTable, tables: GivenTables) -> Iterator[Violation]:
    """Check that a table calls right what its answers and the labels say is right.

    Rows of which one of the three is not known say nothing.
    """
    columns = table.frame.columns
    if not {"correct", LABELS[0]} <= set(columns):
        return
    if "label" not in columns and not tables.of_kinds("images"):
        return
    frame = _with_labels(table.frame, tables)
    known = (frame[LABELS[0]] != "") & (frame["label"] != "")
    wrong = known & (frame["correct"] != (frame[LABELS[0]] == frame["label"]))
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
