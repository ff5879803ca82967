"""Logs of Inspect: `.eval`, a zip of which the header and the summaries are read, and `.json`.

Letters are C right, I wrong, P partly, N no answer. Nothing of an archive is extracted.
"""

import io
import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 14):
    import zipfile

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError, zipfile

import polars as pl

from bayesrep.errors import StudyError, Violation, plain_text, reason
from bayesrep.files import json_stream
from bayesrep.files.digests import short_digest
from bayesrep.files.json_stream import as_word
from bayesrep.files.names import normalize_name
from bayesrep.sources.evals.records import UNANSWERED_SCORE, Log, LogChoices, make_records

INSPECT_NAME = "Inspect"
HEADER_FILE, SUMMARIES_FILE, START_FILE = "header.json", "summaries.json", "_journal/start.json"
_SUMMARIES_PATTERN = re.compile(r"_journal/summaries/(\d{1,9})\.json")
ALLOWED_BYTES, MAX_EXPANSION = 2**24, 200  # of unpacked parts: at least, or times the packed
MAX_ENTRIES = 2**18  # largest number of an archive's entries, and of a log's samples
MAX_SCORES = 2**22  # largest number of scores of a log
_MAX_DIRECTORY_BYTES = 2**26  # bytes of the list of entries
_SIZE_FIELDS = ("file_size", "compress_size")
_PACKING_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93}  # the last is Zstandard
_OUTSIDE_PATH = re.compile(r"[/\\]|[A-Za-z]:|(?:.*[/\\])?\.\.(?:[/\\]|$)", re.DOTALL)
_BROKEN_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, ZstdError, EOFError, NotImplementedError, RuntimeError),
    *(ValueError, KeyError, IndexError),
)
_SAMPLE_FIELDS = ("id", "uuid", "epoch", "input", "scores", "score")
_INPUT_CHARACTERS = 200  # characters of an input that are compared: summaries shorten it


class FailedRunError(StudyError):
    """The log of a failed run, which one of another run may replace."""

    run: tuple[str, str]  # its data set and model, as records have them; empty if not named


def is_log(keys: Sequence[str]) -> bool:
    """Test whether the first keys of a JSON file are those of a log."""
    return {"status", "eval"} <= set(keys)


def read_archive(path: Path, choices: LogChoices, model: str | None) -> Log:
    """Read the records of a log in a zip."""
    where = str(path)
    try:
        with _Pieces(io.FileIO(path)) as file, zipfile.ZipFile(file) as archive:
            _check_entries(archive, where)
            names = set(archive.namelist())
            if HEADER_FILE not in names:
                _check_sizes([archive.getinfo(name) for name in names & {START_FILE}], where)
                text = _text(archive, START_FILE, where) if START_FILE in names else "{}"
                started = dict(json_stream.all_parts(text, f"{where}, {START_FILE}"))
                broken = Violation("run-not-ended", where=where, header_file=HEADER_FILE)
                raise _failed_run(broken, started, model)
            parts = sorted((int(m[1]), m[0]) for m in map(_SUMMARIES_PATTERN.fullmatch, names) if m)
            entries = [SUMMARIES_FILE] if SUMMARIES_FILE in names else [name for _, name in parts]
            _check_sizes([archive.getinfo(name) for name in (HEADER_FILE, *entries)], where)
            text = _text(archive, HEADER_FILE, where)
            header = dict(json_stream.all_parts(text, f"{where}, {HEADER_FILE}"))
            _check_status(header, where, model)
            if not entries:
                raise StudyError(
                    "log-without-summaries", where=where, summaries_file=SUMMARIES_FILE
                )
            samples = (
                sample
                for name in entries
                for _, sample in json_stream.parts(_text(archive, name, where), f"{where}, {name}")
            )
            return _log(header, samples, where, choices, model)
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error
    except StudyError:
        raise
    except _BROKEN_ERRORS as error:
        raise StudyError("log-archive-damaged", path=path, reason=reason(error)) from None


class _Pieces(io.BufferedReader):
    """A file that is read in pieces: the list of an archive's entries is one, and has its bound."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _MAX_DIRECTORY_BYTES:
            raise zipfile.BadZipFile(f"its list of entries has {size:,} bytes")
        return super().read(size)


def read_json(path: Path, text: str, choices: LogChoices, model: str | None) -> Log:
    """Read the records of a log in JSON; as `read_archive`."""
    where = str(path)
    header: dict[Any, Any] = {}
    samples: list[Any] = []
    for key, value in json_stream.parts(text, where, ("samples",)):
        if key == "samples":
            if isinstance(value, dict):  # what is not needed would take memory
                value = {name: value[name] for name in _SAMPLE_FIELDS if name in value}
            if value is not None:
                samples.append(value)
        elif key in ("status", "eval", "error", "invalidated"):
            header[key] = value
    _check_status(header, where, model)
    return _log(header, samples, where, choices, model)


def _check_entries(archive: zipfile.ZipFile, where: str) -> None:
    if len(archive.filelist) > MAX_ENTRIES:
        raise StudyError("log-with-many-samples", where=where, noun="entries", most=MAX_ENTRIES)
    entry_names: set[str] = set()
    for entry in archive.filelist:
        name = entry.orig_filename
        if _OUTSIDE_PATH.match(name):
            raise StudyError("log-entry-leaves-folder", where=where, entry=name[:80])
        if "\\" in name or "\0" in name:
            raise StudyError("log-entry-name-forbidden", where=where, entry=name[:80])
        if name in entry_names and (
            name in (HEADER_FILE, SUMMARIES_FILE) or _SUMMARIES_PATTERN.fullmatch(name)
        ):
            raise StudyError("log-entry-repeated", where=where, entry=name)
        entry_names.add(name)


def _check_sizes(entries: Sequence[zipfile.ZipInfo], where: str) -> None:
    """Refuse what a bomb would unpack to, or is packed otherwise, before anything is unpacked."""
    for entry in entries:
        if entry.compress_type not in _PACKING_METHODS:
            raise StudyError("log-entry-packing-unknown", where=where, entry=entry.filename)
    size, packed = (sum(getattr(each, name) for each in entries) for name in _SIZE_FIELDS)
    if size > json_stream.MAX_JSON_BYTES or size > max(ALLOWED_BYTES, MAX_EXPANSION * packed):
        largest = max(entries, key=lambda each: each.file_size)
        raise StudyError(
            "log-entry-too-large",
            where=where,
            entry=largest.filename,
            packed_bytes=packed,
            unpacked_bytes=size,
        )


def _text(archive: zipfile.ZipFile, name: str, where: str) -> str:
    """An entry's text, unpacked a little at a time so that its size cannot be a lie."""
    contents = bytearray()
    with archive.open(name) as stream:
        while piece := stream.read(2**12):
            contents += piece
    return json_stream.as_text(contents, f"{where}, {name}")


def _failed_run(broken: Violation, header: Mapping[Any, Any], model: str | None) -> FailedRunError:
    error, facts = FailedRunError(broken), header.get("eval")
    facts = facts if isinstance(facts, dict) else {}
    names = (facts.get("task"), model or facts.get("model"))
    task, model = (plain_text(normalize_name(str(name or ""))) for name in names)
    error.run = task, model
    return error


def _check_status(header: Mapping[Any, Any], where: str, model: str | None) -> None:
    status = header.get("status")
    if status == "success" and header.get("invalidated") is not True:
        return
    message = header.get("error")
    message = message.get("message") if isinstance(message, dict) else None
    why = f" ({reason(ValueError(message))[:120]})" if isinstance(message, str) else ""
    broken = Violation("log-marked-invalid", where=where)
    if status != "success":
        broken = Violation("run-not-successful", where=where, status=status, reason=why)
    raise _failed_run(broken, header, model)


def _log(
    header: Mapping[Any, Any],
    samples: Iterable[Any],
    where: str,
    choices: LogChoices,
    model: str | None,
) -> Log:
    facts = header.get("eval")
    if not isinstance(facts, dict) or not facts.get("task") or not facts.get("model"):
        raise StudyError("log-without-task-or-model", where=where)
    remaining_samples = iter(samples)
    rows: list[tuple[Any, ...]] = []
    marks: set[str] = set()
    # Sizes are bounded while reading, since a log may hold anything.
    for sample in islice(remaining_samples, MAX_ENTRIES):
        rows += _rows(sample, where)
        if isinstance(uuid := sample.get("uuid"), str):
            marks.add(uuid)
        if len(rows) > MAX_SCORES:
            raise StudyError("log-with-many-samples", where=where, noun="scores", most=MAX_SCORES)
    if next(remaining_samples, None) is not None:
        raise StudyError("log-with-many-samples", where=where, noun="samples", most=MAX_ENTRIES)
    if not rows:
        raise StudyError("log-without-samples", where=where)
    columns = ["item", "attempt", "content", "scorer", "metric", "score"]
    kinds = (pl.String, pl.Int64, pl.String, pl.String, pl.String, pl.String)
    table = pl.DataFrame(rows, schema=dict(zip(columns, kinds, strict=True)), orient="row")
    key = "id"
    # Items are told apart by their texts if the user distrusts identifiers.
    if choices.key == "content":
        if table["content"].null_count():
            raise StudyError("sample-input-not-text", where=where)
        key, table = "input", table.with_columns(item="content")
    named = model or as_word(facts["model"], where)
    records = make_records(table, where, task=as_word(facts["task"], where), model=named)
    task = records["task"][0]
    version = facts.get("task_version")
    # A run over a part of the items says so.
    dataset, run = facts.get("dataset"), records["item"].n_unique()
    n_items = dataset.get("samples") if isinstance(dataset, dict) else None
    n_items = n_items if isinstance(n_items, int) and not isinstance(n_items, bool) else 0
    # Samples without identifiers are those of their run.
    parts = [facts.get(key) for key in ("run_id", "task_id", "created")]
    name = json.dumps(parts) if all(parts) else None
    name = facts["eval_id"] if isinstance(facts.get("eval_id"), str) else name
    notes = [f"{Path(where).name}: {run:,} of the {n_items:,} items of {task} were run"]
    return Log(
        where,
        INSPECT_NAME,
        key,
        records,
        {} if version is None else {task: f"version {version}"},
        notes * (run < n_items),
        marks=frozenset(marks or ({name} if name else ())),
    )


def _rows(sample: Any, where: str) -> Iterator[tuple[Any, ...]]:
    """Yield (item, attempt, content, scorer, metric, score) of every score of a sample."""
    if not isinstance(sample, dict) or "id" not in sample:
        raise StudyError("sample-without-id", where=where)
    epoch = sample.get("epoch", 1)
    if not isinstance(epoch, int) or isinstance(epoch, bool) or not 1 <= epoch < 2**31:
        raise StudyError("sample-epoch-not-number", where=where, epoch=epoch, sample=sample["id"])
    text = sample.get("input")
    content = _digest(text) if isinstance(text, str) else None
    key = (as_word(sample["id"], where), epoch, content)
    scores = sample.get("scores")
    if scores is None and isinstance(sample.get("score"), dict):
        scores = {"": sample["score"]}  # of early versions, which knew one scorer
    if not isinstance(scores, dict) or not scores:
        yield (*key, None, None, UNANSWERED_SCORE)  # it failed
        return
    for scorer, score in scores.items():
        name = as_word(scorer, where)
        value = score.get("value") if isinstance(score, dict) else None
        if isinstance(value, dict):
            for metric, one in value.items():
                yield (*key, name, as_word(metric, where), as_word(one, where))
        else:
            yield (*key, name, "", as_word(value, where))


def _digest(text: str) -> str:
    start = " ".join(text[: 2 * _INPUT_CHARACTERS].split())[:_INPUT_CHARACTERS]
    return short_digest(start.encode("utf-8", "replace"), 16).hex()
