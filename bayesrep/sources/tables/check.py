"""Checks between tables: data sets, images and classifiers that each has, and lacks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import LiteralString

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import Violation, did_you_mean, find_nearest, listing
from bayesrep.files.values import is_missing
from bayesrep.sources.match_names import explain_names, match_image_names
from bayesrep.sources.tables.recognise import (
    ALONE_ADVICE,
    CANDIDATES_ROLE,
    COUNTED_KINDS,
    LONG_KIND,
    PREDICTED_KINDS,
    WIDE_KIND,
    GivenTables,
    TypedTable,
    name_files,
)
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.violations import Problems
from bayesrep.types import Bools, Ints


def dataset_violations(tables: GivenTables) -> Iterator[Violation]:
    """Check that the tables hold the requested data sets, and no others."""
    names, datasets_present = list(tables.datasets.values()), tables.dataset_names()
    where = name_files(dict.fromkeys(table.where for table in tables.tables))
    missing = {role: name for role, name in tables.datasets.items() if name not in datasets_present}
    others = [name for name in datasets_present if name not in names]
    if missing:
        unsaid = {role: name for role, name in missing.items() if role == name}
        if len(unsaid) == 2 and len(datasets_present) == 2:
            yield Violation(
                "data-set-roles-unsaid",
                where=where,
                dataset=datasets_present[0],
                other_dataset=datasets_present[1],
            )
            return
        if len(datasets_present) == 1:
            yield Violation(
                "only-one-data-set",
                where=where,
                dataset=datasets_present[0],
                data_sets=listing(missing.values(), "data set"),
                hint="".join(did_you_mean(name, datasets_present) for name in missing.values()),
                alone=ALONE_ADVICE,
            )
            return
        for role, name in missing.items():
            yield Violation(
                "data-set-of-role-absent",
                where=where,
                dataset=name,
                role=role,
                hint=did_you_mean(name, datasets_present),
                data_sets=listing(datasets_present, "data set"),
                option=f"--{role} NAME" if role in REQUIRED_ROLES else f"--further {role}=NAME",
            )
        return
    if others:  # their rows would be dropped without a word
        where = name_files(
            [t.where for t in tables.tables if t.frame["dataset"].is_in(others).any()]
        )
        close = did_you_mean(others[0], names) or _explain_data_set(others[0], tables)
        yield Violation(
            "rows-of-other-data-sets",
            where=where,
            data_sets=listing(others, "data set"),
            study_data_sets=" and ".join(map(repr, names)),
            hint=close,
        )
    for kinds, noun in ((COUNTED_KINDS, "counts or annotations"), (PREDICTED_KINDS, "predictions")):
        some = tables.dataset_names(*kinds)
        for role, name in tables.datasets.items():
            optional = role == CANDIDATES_ROLE and noun == "predictions"
            if some and name not in some and not optional:
                where = name_files(dict.fromkeys(table.where for table in tables.of_kinds(*kinds)))
                yield Violation(
                    "data-set-lacks-kind",
                    where=where,
                    kind=noun,
                    dataset=name,
                    data_sets=" and ".join(map(repr, some)),
                )


def _explain_data_set(other: str, tables: GivenTables) -> str:
    """Explain an unknown data set whose images are those of a requested one."""
    for table in tables.tables:
        images = table.rows_of(other)["image"]
        for name in set(tables.datasets.values()) - set(table.frame["dataset"]):
            theirs = (each.rows_of(name)["image"] for each in tables.of_kinds(*COUNTED_KINDS))
            if any(images_present.is_in(images.implode()).any() for images_present in theirs):
                return f"; its images in {table.where} are those of {name!r}"
    return ""


def count_answers_of(tables: GivenTables, dataset: str, problems: Problems) -> TypedTable | None:
    """image, selected and shown of one data set, from counts or from annotations."""
    counted = [t for t in tables.of_kinds(*COUNTED_KINDS) if t.rows_of(dataset).height]
    kinds = dict.fromkeys(sorted((table.kind for table in counted), reverse=True))
    where = ", ".join(table.where for kind in kinds for table in counted if table.kind == kind)
    if len(kinds) == 2:
        problems.add("both-counts-and-annotations", where=where, dataset=dataset)
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    key = ["image"] if kind == "counts" else ["worker", "image"]
    named = [t for t in counted if set(key) <= set(t.frame.columns)]
    sound = not named or problems.take(repeat_violations(named, key, where, dataset))
    sound &= problems.take(_nameless_violations(counted, named, dataset))
    rows = pl.concat([table.rows_of(dataset) for table in counted], how="diagonal_relaxed")
    if kind == "annotations":
        rows = rows.group_by("image", maintain_order=True).agg(
            pl.col("selected").sum().cast(pl.Int64), pl.len().cast(pl.Int64).alias("shown")
        )
    rows = rows if sound else rows.unique("image", keep="first", maintain_order=True)
    return TypedTable(kind, rows, where)


def _nameless_violations(
    counted: Sequence[TypedTable], named: Sequence[TypedTable], dataset: str
) -> Iterator[Violation]:
    """Check that answers without workers are not given twice, as far as possible."""
    nameless = [table for table in counted if table not in named]
    if nameless and named:
        yield Violation(
            "answers-with-and-without-workers",
            where=name_files(table.where for table in (*named, *nameless)),
            dataset=dataset,
        )
    earlier_by_size: dict[int, list[tuple[TypedTable, pl.DataFrame]]] = {}
    for table in nameless:
        rows = table.rows_of(dataset).select("image", "selected").sort("image", "selected")
        for other, earlier in earlier_by_size.setdefault(len(rows), []):
            if rows.equals(earlier):
                yield Violation(
                    "same-answers-twice", where=table.where, other=other.where, dataset=dataset
                )
        earlier_by_size[len(rows)].append((table, rows))


def rename_images(
    tables: GivenTables, counts: Mapping[str, TypedTable], problems: Problems
) -> tuple[GivenTables, dict[str, bool]]:
    """Rename images to the counts' names, one to one; with the roles whose names agree."""
    names_agree = dict.fromkeys(counts, True)
    others: list[TypedTable] = []
    for table in tables.tables:
        for role, counted in counts.items():
            if table.kind not in (LONG_KIND, WIDE_KIND, "images"):
                continue
            frame = problems.attempt(
                partial(
                    match_image_names,
                    table.frame,
                    counted.frame["image"],
                    dataset=tables.datasets[role],
                    where=table.where,
                    counts=counted.where,
                    covers=table.kind == "images",
                )
            )
            names_agree[role] &= frame is not None
            table = table if frame is None else replace(table, frame=frame)
        others.append(table)
    return replace(tables, tables=others), names_agree


def classifiers_by_dataset(tables: GivenTables) -> dict[str, list[str]]:
    """Classifiers with predictions, in order of appearance, by data set."""
    return {
        dataset: list(
            dict.fromkeys(
                name
                for table in tables.tables
                for name in _classifiers_in(table.kind, table.rows_of(dataset))
            )
        )
        for dataset in tables.datasets.values()
    }


def find_classifiers(tables: GivenTables, problems: Problems) -> list[str] | None:
    """All classifiers in order of appearance, each on every data set."""
    predicted = classifiers_by_dataset(tables)
    pool = tables.datasets.get(CANDIDATES_ROLE, "")
    if not predicted.get(pool, True):  # a pool may come without predictions
        del predicted[pool]
    sound = True
    where = name_files([table.where for table in tables.of_kinds(*PREDICTED_KINDS)])
    for dataset, names in predicted.items():
        for other, others in predicted.items():
            if not names or not (extra := [name for name in others if name not in names]):
                continue
            sound = False
            meant = find_nearest(extra[0], [name for name in names if name not in others])
            facts = {
                "where": where,
                "classifiers": listing(extra, "classifier"),
                "other_dataset": other,
                "dataset": dataset,
            }
            if meant:
                rule = "classifier-misnamed-on-one-data-set"
                problems.add(rule, **facts, similar_classifier=meant)
            else:
                problems.add("classifier-on-one-data-set", **facts)
    return predicted[tables.datasets["reference"]] if sound else None


def _classifiers_in(kind: str, rows: pl.DataFrame) -> list[str]:
    if kind == LONG_KIND:
        return rows["classifier"].unique(maintain_order=True).to_list()
    if kind == WIDE_KIND and rows.height:
        return [column for column in rows.columns if column != "image"]
    return []


def fill_correctness(
    tables: GivenTables,
    dataset: str,
    counts: TypedTable,
    classifiers: Sequence[str],
    problems: Problems,
) -> Bools | None:
    """Fill the matrix of correctness [images, classifiers], every entry exactly once."""
    images = counts.frame["image"]
    if dataset == tables.datasets.get(CANDIDATES_ROLE) and not is_predicted(tables, dataset):
        classifiers = ()
    # Rows follow the order of the counts; `times` counts the predictions of every entry.
    rows = pl.DataFrame({"image": images, "row": np.arange(images.len())})
    places = {name: place for place, name in enumerate(classifiers)}
    correct = np.zeros((images.len(), len(classifiers)), dtype=np.bool_)
    times = np.zeros(correct.shape, dtype=np.int32)
    predictions = tables.of_kinds(*PREDICTED_KINDS)
    sound = True
    for table in predictions:
        predicted = table.rows_of(dataset)
        strange = predicted.join(rows, on="image", how="anti")["image"].unique(maintain_order=True)
        # Predictions about images without counts are named, and left out to go on looking.
        if len(strange):
            sound = False
            alone = images.filter(~images.is_in(predicted["image"].implode())).to_list()
            close = explain_names(strange, alone)
            lines = table.lines(
                (pl.col("dataset") == dataset) & pl.col("image").is_in(strange.implode())
            )
            problems.add(
                "predictions-without-counts",
                where=table.where,
                counts_where=counts.where,
                images=listing(strange),
                dataset=dataset,
                lines=lines,
                hint=close,
            )
            predicted = predicted.filter(~pl.col("image").is_in(strange.implode()))
        joined = predicted.join(rows, on="image", maintain_order="left")
        for name, filled_rows, values in _columns(table.kind, joined):
            if name in places:
                np.add.at(times[:, places[name]], filled_rows, 1)
                correct[filled_rows, places[name]] = values
    # Every entry must have been filled exactly once.
    once = problems.take(
        _times_violations(times, dataset, predictions, images.to_numpy(), classifiers)
    )
    return correct if sound and once else None


def is_predicted(tables: GivenTables, dataset: str) -> bool:
    """Test whether some table has predictions on a data set."""
    return any(table.rows_of(dataset).height for table in tables.of_kinds(*PREDICTED_KINDS))


def _columns(kind: str, rows: pl.DataFrame) -> Iterator[tuple[str, Ints, Bools]]:
    """Yield (classifier, row numbers, correctness) of each classifier in a table."""
    if kind == "predictions":
        for (name,), part in rows.group_by("classifier", maintain_order=True):
            yield str(name), part["row"].to_numpy(), part["correct"].to_numpy()
    else:
        for name in _classifiers_in(kind, rows.drop("row")):
            yield name, rows["row"].to_numpy(), rows[name].to_numpy()


def _times_violations(
    times: NDArray[np.int32],
    dataset: str,
    tables: Sequence[TypedTable],
    images: NDArray[np.object_],
    classifiers: Sequence[str],
) -> Iterator[Violation]:
    where = name_files([table.where for table in tables])
    parts: Mapping[LiteralString, Bools] = {
        "prediction-missing": times == 0,
        "prediction-repeated": times > 1,
    }
    for rule, broken in parts.items():
        # Classifiers of whom the same images are missing, or come again, share a line.
        names_agree: dict[bytes, list[int]] = {}
        for column in np.flatnonzero(broken.any(axis=0)).tolist():
            names_agree.setdefault(np.packbits(broken[:, column]).tobytes(), []).append(column)
        for columns in names_agree.values():
            name = str(classifiers[columns[0]])
            offenders = images[broken[:, columns[0]]]
            others = len(columns) - 1
            too = f", and {others} classifier{'s' if others > 1 else ''} more" if others else ""
            lines_fact = dict[str, str]()
            if rule == "prediction-repeated":
                these = (pl.col("dataset") == dataset) & pl.col("image").is_in(offenders.tolist())
                lines_fact["lines"] = _lines_of_classifier(tables, name, these)
            yield Violation(
                rule,
                where=where,
                classifier=name,
                images=listing(offenders),
                dataset=dataset,
                others=too,
                **lines_fact,
            )


def _lines_of_classifier(tables: Sequence[TypedTable], name: str, these: pl.Expr) -> str:
    parts: list[str] = []
    for table in tables:
        if table.kind == LONG_KIND:
            own = these & (pl.col("classifier") == name)
        elif name in table.frame.columns:
            own = these
        else:
            continue
        if table.frame.select(own.any()).item():
            parts.append((f" in {table.where}" if len(tables) > 1 else "") + table.lines(own))
    return ",".join(parts)


def repeat_violations(
    tables: Sequence[TypedTable], key: Sequence[str], where: str, dataset: str
) -> Iterator[Violation]:
    """Check that no two rows of a data set have the same key."""
    rows = pl.concat([table.rows_of(dataset).select(key) for table in tables])
    repeated = rows.filter(pl.struct(key).is_duplicated()).unique(maintain_order=True)
    if not repeated.height:
        return
    names = [" on ".join(values) for values in repeated.iter_rows()]
    noun = "image" if len(key) == 1 else "worker"
    how = "" if noun == "image" else ", as bayesrep answers count --rules repeats does"
    if noun == "worker" and is_missing(repeated["worker"]).any():
        how = ", or where that is nobody's name give every row a worker of its own"
    of_first = [pl.col(name) == value for name, value in repeated.row(0, named=True).items()]
    these = pl.all_horizontal(pl.col("dataset") == dataset, *of_first)
    lines = tables[0].lines(these) if len(tables) == 1 else ""
    yield Violation(
        "table-rows-repeated",
        where=where,
        repeated=listing(names, noun),
        dataset=dataset,
        lines=lines,
        advice=how,
    )
