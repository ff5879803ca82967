"""Logs of Inspect: `.eval`, a zip of which the header and the summaries are read, and `.json`.

A sample has an id, an epoch (an attempt) and the scores of one or several scorers: letters (C
right, I wrong, P partly, N no answer), true and false, numbers, or an object of several metrics.
The log of a run that did not end well is refused. Nothing of an archive is extracted, and none of
its samples is read; names that would lead out of a folder are refused all the same.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path, PureWindowsPath
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, reason
from bayesrep.files import json_parts
from bayesrep.files.json_parts import as_word
from bayesrep.sources.evals.records import Asked, Log, recorded

TOOL = "Inspect"
HEADER, SUMMARIES = "header.json", "summaries.json"
_PARTS = re.compile(r"_journal/summaries/(\d{1,9})\.json")
ALWAYS, RATIO = 2**24, 200  # an entry may have so many bytes, or so many times those packed
_PACKED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93}  # the last is Zstandard
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),
    *(ValueError, KeyError, IndexError),
)
_BEGINNING = 200  # characters of an input that are compared: summaries shorten it


def is_log(keys: Sequence[str]) -> bool:
    """Whether the first keys of a JSON file are those of a log."""
    return {"status", "eval"} <= set(keys)


def read_archive(path: Path, asked: Asked, model: str | None) -> Log:
    """The records of a log in a zip.

    Parameters
    ----------
    path
        The file.
    asked
        What tells items apart.
    model
        Its name, where the user gave one.
    """
    where = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_names(archive, where)
            names = set(archive.namelist())
            if HEADER not in names:
                raise StudyError("run-not-ended", where=where, header_file=HEADER)
            header = dict(json_parts.parts(_text(archive, HEADER, where), f"{where}, {HEADER}"))
            _check_status(header, where)
            parts = sorted((int(m[1]), m[0]) for m in map(_PARTS.fullmatch, names) if m)
            entries = [SUMMARIES] if SUMMARIES in names else [name for _, name in parts]
            if not entries:
                raise StudyError("log-without-summaries", where=where, summaries_file=SUMMARIES)
            samples = (
                sample
                for name in entries
                for _, sample in json_parts.parts(_text(archive, name, where), f"{where}, {name}")
            )
            return _log(header, samples, where, asked, model)
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error
    except StudyError:
        raise
    except _BROKEN as error:
        raise StudyError("log-archive-damaged", path=path, reason=reason(error)) from None


def read_json(path: Path, text: str, asked: Asked, model: str | None) -> Log:
    """The records of a log in JSON; as `read_archive`, with what the file holds."""
    where = str(path)
    header: dict[Any, Any] = {}
    samples: list[Any] = []
    for key, value in json_parts.parts(text, where, ("samples",)):
        if key == "samples":
            if value is not None:
                samples.append(_thin(value))
        elif key in ("status", "eval", "error", "invalidated"):
            header[key] = value
    _check_status(header, where)
    return _log(header, samples, where, asked, model)


def _thin(sample: Any) -> Any:
    """What is needed of a sample, so that the rest can be forgotten."""
    if not isinstance(sample, dict):
        return sample
    return {
        key: sample[key] for key in ("id", "epoch", "input", "scores", "score") if key in sample
    }


def _check_names(archive: zipfile.ZipFile, where: str) -> None:
    seen: set[str] = set()
    for entry in archive.infolist():
        name = entry.orig_filename
        windows = PureWindowsPath(name)
        if name.startswith("/") or windows.drive or windows.root or ".." in windows.parts:
            raise StudyError("log-entry-leaves-folder", where=where, entry=name[:80])
        if "\\" in name or "\0" in name:
            raise StudyError("log-entry-name-forbidden", where=where, entry=name[:80])
        if name in seen and (name in (HEADER, SUMMARIES) or _PARTS.fullmatch(name)):
            raise StudyError("log-entry-repeated", where=where, entry=name)
        seen.add(name)


def _text(archive: zipfile.ZipFile, name: str, where: str) -> str:
    """An entry's text, of which neither the size nor the packing may be a bomb's."""
    entry = archive.getinfo(name)
    size, packed = entry.file_size, entry.compress_size
    if size > json_parts.LARGEST or size > max(ALWAYS, RATIO * packed):
        raise StudyError(
            "log-entry-too-large", where=where, entry=name, packed_bytes=packed, unpacked_bytes=size
        )
    if entry.compress_type not in _PACKED:
        raise StudyError("log-entry-packing-unknown", where=where, entry=name)
    with archive.open(entry) as stream:
        return json_parts.as_text(stream.read(size + 1), f"{where}, {name}")


def _check_status(header: Mapping[Any, Any], where: str) -> None:
    status = header.get("status")
    if status != "success":
        error = header.get("error")
        said = error.get("message") if isinstance(error, dict) else None
        why = f" ({reason(ValueError(said))[:120]})" if isinstance(said, str) else ""
        raise StudyError("run-not-successful", where=where, status=status, reason=why)
    if header.get("invalidated") is True:
        raise StudyError("log-marked-invalid", where=where)


def _log(
    header: Mapping[Any, Any], samples: Any, where: str, asked: Asked, model: str | None
) -> Log:
    facts = header.get("eval")
    if not isinstance(facts, dict) or not facts.get("task") or not facts.get("model"):
        raise StudyError("log-without-task-or-model", where=where)
    rows = [row for sample in samples for row in _rows(sample, where)]
    if not rows:
        raise StudyError("log-without-samples", where=where)
    columns = ["item", "attempt", "content", "scorer", "metric", "score"]
    kinds = (pl.String, pl.Int64, pl.String, pl.String, pl.String, pl.String)
    table = pl.DataFrame(rows, schema=dict(zip(columns, kinds, strict=True)), orient="row")
    key = "id"
    if asked.key == "content":
        if table["content"].null_count():
            raise StudyError("sample-input-not-text", where=where)
        key, table = "input", table.with_columns(item="content")
    task = str(facts["task"])
    records = recorded(table, where, task=task, model=model or str(facts["model"]))
    version = facts.get("task_version")
    held, run = _size(facts), records["item"].n_unique()
    notes = [f"{Path(where).name}: {run:,} of the {held:,} items of {task} were run"]
    return Log(
        where,
        TOOL,
        key,
        records,
        {} if version is None else {str(records["task"][0]): f"version {version}"},
        notes * (run < held),
    )


def _size(facts: Mapping[str, Any]) -> int:
    dataset = facts.get("dataset")
    held = dataset.get("samples") if isinstance(dataset, dict) else None
    return held if isinstance(held, int) and not isinstance(held, bool) else 0


def _rows(sample: Any, where: str) -> Iterator[tuple[Any, ...]]:
    """(item, attempt, content, scorer, metric, score) of every score of a sample."""
    if not isinstance(sample, dict) or "id" not in sample:
        raise StudyError("sample-without-id", where=where)
    epoch = sample.get("epoch", 1)
    if not isinstance(epoch, int) or isinstance(epoch, bool) or not 1 <= epoch < 2**31:
        raise StudyError("sample-epoch-not-number", where=where, epoch=epoch, sample=sample["id"])
    asked = sample.get("input")
    content = _digest(asked) if isinstance(asked, str) else None
    key = (as_word(sample["id"]), epoch, content)
    scores = sample.get("scores")
    if scores is None and isinstance(sample.get("score"), dict):
        scores = {"": sample["score"]}  # of early versions, which knew one scorer
    if not isinstance(scores, dict) or not scores:
        yield (*key, None, None, None)  # it failed, or was not scored
        return
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else None
        if isinstance(value, dict):
            for metric, one in value.items():
                yield (*key, scorer, metric, as_word(one))
        else:
            yield (*key, scorer, "", as_word(value))


def _digest(text: str) -> str:
    start = " ".join(text[: 2 * _BEGINNING].split())[:_BEGINNING]
    return blake2b(start.encode("utf-8", "replace"), digest_size=16).hexdigest()
