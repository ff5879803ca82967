"""Exports of doccano, Argilla and Prodigy: JSON Lines, or a list in JSON.

doccano writes `{"filename": "a.png", "label": ["dog"]}`, a file an annotator, named after them, or
the zip of all; of a project that annotators share, `all.jsonl` does not say who answered.

Argilla's records are `{"id": ..., "fields": {"image": ...}, "responses": {QUESTION: [{"value": ...,
"user_id": ...}]}}`, or the same flat, with `QUESTION.responses` and `QUESTION.responses.users`.

`prodigy db-out` writes `{"image": ..., "accept": [...], "answer": "accept", "_annotator_id": ...}`
where options were chosen from, and `{"image": ..., "label": ..., "answer": "accept"}`, or "reject",
where it was asked whether one label is right.
"""

import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, TableWarning, listing, reason
from bayesrep.files import json_parts, strict_json
from bayesrep.files.json_parts import as_word
from bayesrep.sources.exports.columns import Columns, join_choices, name_image, tell_anonymous

Record = Mapping[str, Any]
Row = dict[str, str | None]
_POOLED_FILE = "all"
"""The name of doccano's file of a shared project."""


def read_doccano(path: str | Path, asked: Columns) -> pl.DataFrame:
    """The labels that each annotator gave each image.

    Raises
    ------
    StudyError
        If the file is not an export, or does not say who answered.

    Warns
    -----
    TableWarning
        If images are without a label: doccano writes those that are not done yet in the same way.
    """
    rows: list[Row] = []
    for where, worker, text in _files(path):
        if worker == _POOLED_FILE:
            raise StudyError("answers-of-all-together", where=where)
        for record in _records(text, where):
            value = _field(record, asked.answer or "label", where)
            rows.append(
                {
                    "image": name_image(record, asked.image or "filename", where),
                    "worker": worker,
                    "answer": _answer(value, asked, where),
                    "task": as_word(record.get("id"), where),
                }
            )
    if empty := sum(row["answer"] == "" for row in rows):
        _warn(
            f"{path}: {empty:,} answers are without a label; doccano writes images that are not "
            "done yet in the same way, unless only approved ones are exported"
        )
    return _table(rows)


def _files(path: str | Path) -> Iterator[tuple[str, str, str]]:
    """Every file of an export: what messages call it, its annotator and its text."""
    where = str(path)
    if Path(path).suffix.lower() != ".zip":
        yield where, Path(path).stem, json_parts.read_text(path)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            names = {each.filename: each.file_size for each in archive.infolist()}
            if sum(names.values()) > json_parts.LARGEST:
                raise ValueError(f"more than {json_parts.LARGEST // 2**20} MB")
            wanted = [name for name in names if name.lower().endswith((".json", ".jsonl"))]
            held = {name: archive.read(name) for name in wanted}
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error
    except (*_DAMAGE_ERRORS, zipfile.BadZipFile, zlib.error) as error:
        raise StudyError("export-archive-damaged", path=path, reason=reason(error)) from None
    for name, contents in held.items():
        place = f"{where}, {name!r}"
        yield place, PurePosixPath(name).stem, json_parts.as_text(contents, place)


_DAMAGE_ERRORS = (ValueError, EOFError, NotImplementedError, RuntimeError, KeyError)


def read_argilla(path: str | Path, asked: Columns) -> pl.DataFrame:
    """The submitted responses to one question; suggestions are nobody's answers.

    Raises
    ------
    StudyError
        If the file is not an export, or it is not clear which question is meant.

    Warns
    -----
    TableWarning
        If responses are drafts or discarded, which are left out, or name nobody.
    """
    where = str(path)
    records = list(_records(json_parts.read_text(path), where))
    responses = [_responses(record, where) for record in records]
    # Several questions may be asked of one record; one of them is the answer.
    questions = list(dict.fromkeys(name for each in responses for name in each))
    if asked.answer is None and len(questions) > 1:
        listed = listing(questions, "control")
        raise StudyError("answer-control-ambiguous", where=where, controls=listed)
    question = asked.answer or next(iter(questions), "")
    if questions and question not in questions:
        listed = listing(questions, "control")
        raise StudyError("no-such-control", where=where, control=question, controls=listed)
    rows: list[Row] = []
    unfinished = nameless = 0
    for number, (record, each) in enumerate(zip(records, responses, strict=True), 1):
        task = as_word(record.get("id"), where)
        for place, (value, person, status) in enumerate(each.get(question, []), 1):
            # Drafts and discarded responses are not answers.
            if status not in (None, "submitted"):
                unfinished += 1
                continue
            # Responses without a name count as answers of different people.
            worker = None if person in ("", "None") else person
            if worker is None:
                nameless += 1
                worker = f"nobody ({where}: response {place} to record {task or number})"
            rows.append(
                {
                    "image": name_image(_flatten_record(record), asked.image or "image", where),
                    "worker": worker,
                    "answer": _answer(value, asked, where),
                    "task": task,
                }
            )
    if unfinished:
        _warn(f"{where}: {unfinished:,} responses are drafts or discarded, and left out")
    tell_anonymous(nameless, where, "user_id")
    return _table(rows)


def _responses(record: Record, where: str) -> dict[str, list[tuple[Any, str | None, str | None]]]:
    """By question the values of a record, whose they are, and their status."""
    responses: dict[str, list[tuple[Any, str | None, str | None]]] = {}
    try:
        for question, said in (record.get("responses") or {}).items():
            responses[question] = [
                (each["value"], as_word(each.get("user_id"), where), each.get("status"))
                for each in said
            ]
        for key, values in record.items():
            if key.endswith(".responses") and values is not None:
                people = record.get(f"{key}.users") or [None] * len(values)
                states = record.get(f"{key}.status") or [None] * len(values)
                responses[key.removesuffix(".responses")] = [
                    (value, as_word(person, where), status)
                    for value, person, status in zip(values, people, states, strict=True)
                ]
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise StudyError("export-record-damaged", where=where, reason=reason(error)) from None
    return responses


def _flatten_record(record: Record) -> Record:
    """A record with its fields and metadata, those of its own name first."""
    parts = [record.get("metadata"), record.get("fields"), record]
    return {name: value for part in parts if isinstance(part, dict) for name, value in part.items()}


def read_prodigy(path: str | Path, asked: Columns) -> pl.DataFrame:
    """The options that were chosen, or whether a label was accepted.

    Raises
    ------
    StudyError
        If the file is not an export, or holds no answers, as where regions are marked.

    Warns
    -----
    TableWarning
        If tasks were ignored, or rejected where there were options, which are left out; if it is
        not known who answered.
    """
    where = str(path)
    rows: list[Row] = []
    left_out, seen, nameless = Counter[str](), Counter[str](), 0
    for record in _records(json_parts.read_text(path), where):
        verdict = as_word(_field(record, "answer", where), where)
        task = as_word(record.get("_task_hash"), where)
        # Prodigy's choice tasks list options; its binary tasks only accept or reject.
        chosen = asked.answer or ("accept" if {"accept", "options"} & set(record) else None)
        if verdict == "ignore" or (chosen and verdict != "accept"):
            left_out["ignored" if verdict == "ignore" else "rejected"] += 1
            continue
        if chosen is None and "label" not in record and "spans" in record:
            raise StudyError("control-without-answer", where=where, control="spans", kind="regions")
        # Answers without a name count as answers of different people.
        worker = as_word(record.get("_annotator_id") or record.get("_session_id"), where)
        if worker is None:
            nameless += 1
            seen[str(task)] += 1
            worker = f"nobody ({where}: task {task}, {seen[str(task)]})"
        row: Row = {
            "image": name_image(_with_file(record), asked.image or "image", where),
            "worker": worker,
            "answer": verdict if chosen is None else _answer(record.get(chosen), asked, where),
            "task": task,
        }
        if chosen is None and "label" in record:
            row["label"] = as_word(record["label"], where)
        rows.append(row)
    for why, number in left_out.items():
        _warn(f"{where}: {number:,} tasks were {why}, and are left out")
    tell_anonymous(nameless, where, "_annotator_id")
    return _table(rows)


def _with_file(record: Record) -> Record:
    """A record that names the file of an image whose contents stand in it."""
    meta = record.get("meta")
    file = record.get("path") or (meta.get("file") if isinstance(meta, dict) else None)
    held = isinstance(record.get("image"), str) and record["image"].startswith("data:")
    return {**record, "image": file} if held and file else record


def _records(text: str, where: str) -> Iterator[Record]:
    """The objects of a list in JSON, or of JSON Lines."""
    listed = text.lstrip().startswith("[")
    for number, record in enumerate(_parts(text, where), 1) if listed else _lines(text, where):
        if not isinstance(record, dict):
            raise StudyError("json-line-damaged", where=where, line=number, reason="no object")
        yield record


def _parts(text: str, where: str) -> Iterator[Any]:
    return (each for _, each in json_parts.parts(text, where))


def _lines(text: str, where: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, strict_json.parse(line)
            except ValueError as error:
                raise StudyError(
                    "json-line-damaged", where=where, line=number, reason=reason(error)
                ) from None


def _field(record: Record, name: str, where: str) -> Any:
    if name not in record:
        held = listing(record, "field")
        raise StudyError("export-record-lacks-field", where=where, field=name, fields=held)
    return record[name]


def _answer(value: Any, asked: Columns, where: str) -> str:
    """A value as one answer: a text, a number, or several; objects can be none."""
    said: Sequence[Any] = value if isinstance(value, list) else [] if value is None else [value]
    if any(isinstance(each, list | dict) for each in said):
        field = asked.answer or "the answer"
        raise StudyError("control-without-answer", where=where, control=field, kind="regions")
    return join_choices([as_word(each, where) or "" for each in said], asked, where)


def _table(rows: Sequence[Row]) -> pl.DataFrame:
    names = ["image", "worker", "answer", "task"]
    names += ["label"] if any("label" in row for row in rows) else []
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String()))


def _warn(text: str) -> None:
    warnings.warn(TableWarning(text), stacklevel=3)
