"""Assignments: what a worker did of a collection's task, by the numbers of the places selected.

From Mechanical Turk's batches (.csv), Label Studio or the offline page (.json).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, reason
from bayesrep.files import strict_json
from bayesrep.files.row_numbers import Place
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import durations, numbers, people, texts, whole_numbers
from bayesrep.sources.exports.columns import find_marks
from bayesrep.sources.exports.label_studio import Annotation, collect_answers, count_annotations
from bayesrep.sources.exports.mturk import with_task_answers
from bayesrep.sources.raw_answers import name_nobodies

PAGE_FORMAT = "bayesrep answers 1"  # format of the offline page's files
ASSIGNMENT_SCHEMA: Mapping[str, Any] = {
    "task": pl.String,
    "worker": pl.String,
    "selected": pl.List(pl.Int16),
    "main": pl.Int64,
    "seconds": pl.Float64,
    "time": pl.String,
    "pay": pl.Float64,
    "rejected": pl.Boolean,
    "file": pl.String,
}
_MTURK_COLUMNS = ("WorkerId", "Input.task")
_FACT_COLUMNS = ("WorkTimeInSeconds", "SubmitTime", "Reward")


def read_assignments(paths: Sequence[str | Path]) -> pl.DataFrame:
    """Read the assignments of any number of files.

    Parameters
    ----------
    paths
        Files as above, in any order and of any kind.

    Returns
    -------
    polars.DataFrame
        One row an assignment: `task`, `worker`, `selected` (numbers of places), `main` (one, or
        null), `seconds`, `time` (ISO 8601), `pay`, `rejected` (by whoever pays) and `file`.

    Raises
    ------
    StudyError
        In one line, naming the file and what is wrong with it.
    """
    parts: list[pl.DataFrame] = []
    for path in paths:
        kind = Path(path).suffix.lower()
        if kind not in _READER_OF_ENDING:
            raise StudyError("assignments-file-type-unknown", path=path)
        part, place = _READER_OF_ENDING[kind](path), Place(str(path), "assignment")
        lost = part["selected"].is_null() | part["selected"].list.contains(None, nulls_equal=True)
        if lost.any():
            raise StudyError("assignments-without-places", where=path, rows=place.rows(lost))
        part = part.with_columns(texts(part[name], place) for name in ("task", "worker"))
        part = name_nobodies(part, ["task", "worker"], str(path))
        worker, file = people(part["worker"], place), pl.lit(str(path))
        parts.append(part.with_columns(worker, file=file).select(list(ASSIGNMENT_SCHEMA)))
    return pl.concat(parts) if parts else pl.DataFrame(schema=ASSIGNMENT_SCHEMA)


def _mturk(path: str | Path) -> pl.DataFrame:
    table, where = read_only(path)
    require(table, _MTURK_COLUMNS, where)
    if "Answer.taskAnswers" in table.columns:
        table = with_task_answers(table, str(where))
    if "Answer.selected" not in table.columns:
        raise StudyError("no-answer-selected-column", where=where)
    optional = ("Answer.main", "AssignmentStatus", "Reject", *_FACT_COLUMNS)
    absent = [name for name in optional if name not in table.columns]
    table = table.with_columns(pl.lit(None, pl.String).alias(name) for name in absent)
    places_text = table["Answer.selected"].str.strip_chars().fill_null("none")
    if (wrong := ~places_text.str.contains(_PLACES_PATTERN)).any():
        raise StudyError(
            "answer-selected-not-places", where=where, rows=where.rows(wrong, places_text)
        )
    places = places_text.replace("none", "").str.extract_all(r"\d+").cast(pl.List(pl.Int16))
    marks = find_marks(table.select("AssignmentStatus", "Reject"), where)
    pay = table["Reward"].str.strip_chars("$ ")
    # Such as Sat Nov 02 12:44:30 PDT 2019; null where it is none.
    zoned = pl.col("SubmitTime").str.replace(r"^\w+ ", "")
    zoned = zoned.str.replace_many(list(_ZONE_OFFSETS), list(_ZONE_OFFSETS.values()))
    time = zoned.str.to_datetime("%b %d %H:%M:%S %z %Y", time_zone="UTC", strict=False)
    return table.select(
        pl.col("Input.task").alias("task"),
        pl.col("WorkerId").alias("worker"),
        places.alias("selected"),
        whole_numbers(table["Answer.main"], where, missing=True).alias("main"),
        durations(table["WorkTimeInSeconds"], where, missing=True).alias("seconds"),
        time.dt.strftime("%Y-%m-%dT%H:%M:%SZ").alias("time"),
        numbers(pay, where, missing=True).alias("pay"),
        rejected=pl.any_horizontal(*marks.values()).fill_null(value=False),
    )


_PLACES_PATTERN = r"^(none|\d{1,4}(\s*,\s*\d{1,4})*)?$"
_ZONE_OFFSETS = {"PDT": "-0700", "PST": "-0800", "UTC": "+0000", "GMT": "+0000"}


def _json(path: str | Path) -> pl.DataFrame:
    content = strict_json.read(path)
    is_page = isinstance(content, dict) and content.get("format") == PAGE_FORMAT
    if not is_page and not isinstance(content, list):
        raise StudyError("answers-file-not-recognised", path=path)
    try:
        if is_page:
            rows = _of_page(content)
        else:
            rows = [_assignment(each) for each in count_annotations(content, str(path))]
        table = pl.DataFrame(rows, schema=_JSON_SCHEMA, strict=True)
    except (*_DAMAGE_ERRORS, pl.exceptions.PolarsError) as error:
        raise StudyError(
            "answers-file-damaged",
            path=path,
            expected_format=_JSON_FORMATS[is_page],
            error_type=type(error).__name__,
            reason=reason(error),
        ) from None
    place = Place(str(path), "assignment")
    return table.with_columns(durations(table["seconds"], place, missing=True))


_JSON_SCHEMA = {**ASSIGNMENT_SCHEMA, "seconds": pl.String}
_JSON_SCHEMA.pop("file")
_JSON_FORMATS = ("an export of Label Studio", "what the offline page saves")


def _of_page(content: Any) -> list[dict[str, Any]]:
    worker = content["worker"]
    return [
        {
            "task": each["task"],
            "worker": worker,
            "selected": [_place(place) for place in each["selected"]],
            "main": None if each.get("main") is None else _place(each["main"]),
            "seconds": _word(each.get("seconds")),
            "time": _text(each.get("time")),
            "pay": None,
            "rejected": False,
        }
        for each in content["answers"]
    ]


def _assignment(each: Annotation) -> dict[str, Any]:
    values_of, annotation = dict(collect_answers(each, "task")), each.record
    if each.record is not each.task and any(len(words) > 1 for words in values_of.values()):
        raise ValueError("a control was answered twice in one annotation")
    selected, main = (
        values_of.get(name, [("", None)])[0][1] or () for name in ("selected", "main")
    )
    return {
        "task": each.data["task"],
        "worker": each.worker,
        "selected": [int(place) for place in selected],
        "main": int(main[0]) if main else None,
        "seconds": _word(annotation.get("lead_time")),
        "time": _text(annotation.get("created_at")),
        "pay": None,
        "rejected": False,
    }


def _place(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a place")
    return value


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{value!r} is not a time")
    return value


def _word(value: Any) -> str | None:
    return None if value is None else str(value)


_DAMAGE_ERRORS = (TypeError, KeyError, AttributeError, ValueError, OverflowError)
_READER_OF_ENDING = {".csv": _mturk, ".json": _json}
