"""Build data sets, a study, and classifiers' answers from matching tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import StudyError, listing
from bayesrep.files.given_files import split_name
from bayesrep.sources.match_names import explain_names
from bayesrep.sources.tables.check import (
    classifiers_by_dataset,
    count_answers_of,
    dataset_violations,
    fill_correctness,
    find_classifiers,
    is_predicted,
    rename_images,
    repeat_violations,
)
from bayesrep.sources.tables.correctness import grade_predictions, labels_of_images
from bayesrep.sources.tables.recognise import (
    COUNTED_KINDS,
    KIND_COLUMNS,
    LONG_KIND,
    PREDICTED_KINDS,
    GivenTables,
    TypedTable,
    name_files,
)
from bayesrep.studies import validation
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.layout import LABEL_COLUMNS, PROBABILITY_COLUMNS
from bayesrep.studies.manifest import JSON
from bayesrep.studies.parquet_tables import label_violations
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import Study
from bayesrep.studies.violations import Problems
from bayesrep.studies.vocabulary import PROVENANCE_ENTRY
from bayesrep.studies.worker_answers import WorkerAnswers
from bayesrep.types import Bools


@dataclass(frozen=True, eq=False)
class Joined:
    """Matching tables, and their data sets, by role."""

    tables: GivenTables
    datasets: Mapping[str, AnnotatedSet]


def join_tables(
    tables: GivenTables,
    paths: Sequence[str | Path],
    needed: Sequence[str],
    problems: Problems,
    *,
    named: bool,
) -> Joined | None:
    """Join tables; None if there is any problem, of which fewer are sought if not `named`."""
    sound, called = not problems, tables.datasets
    required: dict[str, Sequence[str]] = {
        "counts or annotations": COUNTED_KINDS,
        "predictions": needed,
    }
    for noun, kinds in required.items():
        if kinds and not tables.of_kinds(*kinds) and named:
            named = False
            problems.add(
                "table-kind-absent",
                where=name_files(paths),
                kind=noun,
                columns=" or ".join(", ".join(KIND_COLUMNS[kind]) for kind in kinds),
            )
    # Without tables of each kind, or names of the data sets, nothing below can be checked.
    if not named or not tables.tables or not problems.take(dataset_violations(tables)):
        return None
    # Counts come first: they define the images.
    counts: dict[str, TypedTable] = {}
    for role, dataset in called.items():
        counted = count_answers_of(tables, dataset, problems)
        if counted is None:
            continue
        counts[role] = counted
        if sound and counted.kind == "counts":
            where = f"{counted.where}, data set {dataset!r}"
            selected, shown = (counted.frame[name].to_numpy() for name in ("selected", "shown"))
            problems.take(validation.value_violations(where, selected, shown))
    answered = tables.of_kinds("annotations")
    answer_frames = (table.frame.lazy() for table in answered)
    problems.take(
        label_violations(name_files(dict.fromkeys(t.where for t in answered)), answer_frames)
    )
    # Names of images in other tables are brought to those of the counts.
    tables, names_agree = rename_images(tables, counts, problems)
    graded = grade_predictions(tables, problems)
    if graded is None:
        return None
    classifiers = find_classifiers(graded, problems)
    parts: dict[str, tuple[Bools | None, dict[str, NDArray[np.str_]] | None]] = {}
    for role, counted in counts.items():
        if names_agree[role]:
            arguments = graded, called[role], counted
            correct = fill_correctness(*arguments, classifiers or [], problems)
            parts[role] = correct, problems.attempt(partial(_groups, *arguments))
    # All problems have been found; a study is built only if there are none.
    if problems or classifiers is None or set(parts) != set(called):
        return None
    annotated: dict[str, AnnotatedSet] = {}
    for role, (correct, groups) in parts.items():
        if correct is None or groups is None:
            return None
        build = partial(_build_annotated_set, graded, called[role], counts[role], correct, groups)
        data = problems.attempt(build)
        if data is None:
            return None
        annotated[role] = data
    return Joined(graded, annotated)


def _groups(tables: GivenTables, dataset: str, counts: TypedTable) -> dict[str, NDArray[np.str_]]:
    described = [table for table in tables.of_kinds("images") if table.rows_of(dataset).height]
    if not described:
        return {}
    where = name_files([table.where for table in described])
    if len({tuple(table.frame.columns) for table in described}) > 1:
        raise StudyError("image-tables-differ-in-columns", where=where)
    rows = pl.concat([table.rows_of(dataset) for table in described])
    validation.raise_first(repeat_violations(described, ["image"], where, dataset))
    if (strange := counts.frame.join(rows, on="image", how="anti")).height:
        raise StudyError(
            "counted-image-without-label",
            where=where,
            images=listing(strange["image"]),
            dataset=dataset,
            hint=explain_names(strange["image"], rows["image"]),
        )
    joined = counts.frame.select("image").join(rows, on="image", maintain_order="left")
    return {name: joined[name].to_numpy().astype(np.str_) for name in rows.columns[1:]}


def _build_annotated_set(
    tables: GivenTables,
    dataset: str,
    counts: TypedTable,
    correct: Bools,
    groups: dict[str, NDArray[np.str_]],
) -> AnnotatedSet:
    return AnnotatedSet(
        name=dataset,
        images=counts.frame["image"].to_numpy().astype(np.str_),
        selected=counts.frame["selected"].to_numpy(),
        shown=counts.frame["shown"].to_numpy(),
        correct=correct,
        labels=groups.get("label"),
        groups={name: values for name, values in groups.items() if name != "label"},
        answers=_answers_by_worker(tables, dataset, counts.frame["image"]),
    )


def _answers_by_worker(
    tables: GivenTables, dataset: str, images: pl.Series
) -> WorkerAnswers | None:
    """The annotations of one data set, where it is they that were counted."""
    rows = [t.rows_of(dataset) for t in tables.of_kinds("annotations") if t.rows_of(dataset).height]
    if not rows or any("worker" not in table.columns for table in rows):
        return None
    places = pl.DataFrame({"image": images, "row": np.arange(len(images), dtype=np.int32)})
    answers = pl.concat(rows, how="diagonal")
    placed = answers.join(places, on="image", how="left", maintain_order="left")
    order = [name for name in ("position", "time") if name in placed.columns]
    if len(order) == 2 or (order and placed[order[0]].null_count()):
        where = name_files(
            [t.where for t in tables.of_kinds("annotations") if t.rows_of(dataset).height]
        )
        raise StudyError("order-of-answers-unclear", where=where)
    # Where one file knows grids and another does not, nothing is known of either.
    has_contexts = "context" in placed.columns and not placed["context"].null_count()
    return WorkerAnswers.of(
        *(placed[name].to_numpy() for name in ("row", "worker", "selected")),
        position=placed[order[0]].to_numpy() if order else None,
        context=placed["context"].to_numpy() if has_contexts else None,
    )


def build_study(joined: Joined, provenance: Mapping[str, JSON], name: str) -> Study:
    """The study of tables with predictions."""
    tables = joined.tables
    return Study(
        datasets=joined.datasets,
        classifiers=tuple(classifiers_by_dataset(tables)[tables.datasets["reference"]]),
        name=name,
        provenance={**provenance, **vocabulary_entry(tables)},
    )


def vocabulary_entry(tables: GivenTables) -> dict[str, JSON]:
    """The entry of a provenance that says that tables speak of items or judges, where they do."""
    return {PROVENANCE_ENTRY: "evaluation"} if any(each.others for each in tables.tables) else {}


def build_contents(joined: Joined, paths: Sequence[str | Path], name: str | None) -> StudyContents:
    """Build the contents of tables: the study and the answers, or the counts alone."""
    names = [split_name(path)[1].name for path in paths]
    provenance: dict[str, JSON] = {"source": "tables", "files": names}
    if not joined.tables.of_kinds(*PREDICTED_KINDS):
        words = vocabulary_entry(joined.tables)
        return StudyContents(joined.datasets, name=name, provenance={**provenance, **words})
    answers = build_answers(joined.tables)
    study = build_study(joined, provenance, name or "study")
    return replace(StudyContents.from_study(study, answers=answers), name=name)


def build_answers(tables: GivenTables) -> list[Predictions]:
    """Build the answers on each data set; none if a table of predictions lacks label_1."""
    long = tables.of_kinds(LONG_KIND)
    shared = set.intersection(
        *(set(table.frame.columns) for table in tables.of_kinds(*PREDICTED_KINDS))
    )
    if LABEL_COLUMNS[0] not in shared:
        return []
    columns = [name for name in ("label", *LABEL_COLUMNS, *PROBABILITY_COLUMNS) if name in shared]
    answers: list[Predictions] = []
    for dataset in filter(partial(is_predicted, tables), tables.datasets.values()):
        rows = pl.concat(
            [table.rows_of(dataset).select("image", "classifier", *columns) for table in long]
        )
        if "label" not in columns:
            labels = labels_of_images(tables).filter(pl.col("dataset") == dataset).drop("dataset")
            rows = rows.join(labels, on="image", how="left")
        answers.append(_predictions(rows, dataset))
    return answers


def _predictions(rows: pl.DataFrame, dataset: str) -> Predictions:
    images, classifiers = (
        rows[each].unique(maintain_order=True) for each in ("image", "classifier")
    )
    places = pl.DataFrame({"image": images, "place": np.arange(len(images))})
    numbers = pl.DataFrame({"classifier": classifiers, "number": np.arange(len(classifiers))})
    rows = rows.join(places, on="image").join(numbers, on="classifier").sort("number", "place")
    answers = [name for name in LABEL_COLUMNS if name in rows.columns]
    classes = pl.concat([rows[name] for name in ("label", *answers)]).unique().sort()
    codes = rows.select(pl.col("label", *answers).cast(pl.Enum(classes)).to_physical())
    shape = (len(classifiers), len(images))
    confidence = None
    if "probability_1" in rows.columns:
        confidence = rows["probability_1"].to_numpy().reshape(shape)
    return Predictions(
        dataset,
        images.to_numpy().astype(np.str_),
        tuple(classes.to_list()),
        codes["label"].to_numpy()[: len(images)].astype(np.int32),
        tuple(classifiers.to_list()),
        codes.select(answers).to_numpy().astype(np.int32).reshape(*shape, len(answers)),
        confidence,
    )
