"""Which format a file is: by its ending, and by what it begins with."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bayesrep.errors import StudyError, listing
from bayesrep.files import json_parts
from bayesrep.progress import progress_bar
from bayesrep.sources.evals import every_eval_ever, helm, inspect_logs, lm_eval, score_tables
from bayesrep.sources.evals.records import Asked, Log

KNOWN = (
    "samples_*.jsonl of lm-evaluation-harness, instance-level .jsonl of Every Eval Ever, .eval or "
    ".json of Inspect, per_instance_stats.json of HELM, or a .parquet or .csv of item, model, score"
)
MUCH = 256
"""Megabytes from which on reading takes a while."""
_LINES, _TABLES = (".jsonl", ".ndjson"), (".parquet", ".csv")
_BEGIN = 2**16  # characters in which the first keys of a file are looked for
_KEYS = re.compile(r'"(\w{1,40})"\s*:')


@dataclass(frozen=True)
class _File:
    """A file, how its model is called where the user said so, and whether it was named itself."""

    path: Path
    model: str | None
    named: bool


def read_logs(paths: Sequence[str | Path], asked: Asked, *, progress: bool = False) -> list[Log]:
    """Read every log.

    Parameters
    ----------
    paths
        Files, folders of them, or `NAME=PATH` to name the model.
    asked
        What the user chose.
    progress
        Whether a bar is shown on standard error, where there is much to read.

    Raises
    ------
    StudyError, OptionError
        In one line, naming the file.
    """
    files = [file for path in paths for file in _files(path)]
    if not files:
        where = ", ".join(map(str, paths)) or "evals"
        raise StudyError("no-evaluation-log", where=where, formats=KNOWN)
    seen: set[Path] = set()
    for file in files:
        if (place := file.path.resolve()) in seen:
            raise StudyError("log-given-twice", path=file.path)
        seen.add(place)
    results = [file.path for file in files if file.path.suffix == ".json" and _is_results(file)]
    megabytes = sum(file.path.stat().st_size for file in files) >> 20
    with progress_bar(megabytes, "MB", show=progress and megabytes >= MUCH) as bar:
        logs = [
            log
            for file in files
            if file.path not in results
            and (log := _log(file, asked, results, bar.advance)) is not None
        ]
    if not logs:
        where = ", ".join(str(path) for path in paths)
        raise StudyError("no-evaluation-log", where=where, formats=KNOWN)
    return logs


def _files(given: str | Path) -> Iterator[_File]:
    path, model = Path(given), None
    name, equals, rest = str(given).partition("=")
    if equals and name and not path.exists() and Path(rest).exists():
        path, model = Path(rest), name
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
            if file.suffix in (*_LINES, ".eval", ".json") and file.is_file() and not hidden:
                yield _File(file, model, named=False)
        return
    if not path.exists():
        raise StudyError("evaluation-log-not-found", path=path)
    yield _File(path, model, named=True)


def _log(
    file: _File, asked: Asked, results: Sequence[Path], advance: Callable[[int], None]
) -> Log | None:
    """The file's log; None where it is something else, in a folder or beside one."""
    path, kind = file.path, file.path.suffix.lower()
    if kind == ".eval":
        return inspect_logs.read_archive(path, asked, file.model)
    if kind in _LINES:
        first = json_parts.first_line(path)
        if lm_eval.is_samples(first):
            return lm_eval.read(path, first, asked, results, file.model, advance)
        if every_eval_ever.is_instances(first):
            return every_eval_ever.read(path, asked, file.model, advance)
        return _unknown(file, list(first))
    if kind in _TABLES:
        return score_tables.read(path, file.model)
    if kind != ".json":
        raise StudyError("unknown-log-ending", path=path, formats=KNOWN)
    text = json_parts.read_text(path)
    if text[:_BEGIN].lstrip()[:1] == "[":
        return _instances(file, text, asked)
    keys = _KEYS.findall(text[:_BEGIN])
    if inspect_logs.is_log(keys):
        return inspect_logs.read_json(path, text, asked, file.model)
    if "adapter_spec" in keys or "evaluation_results" in keys or "scenario_spec" in keys:
        return None  # of HELM or of Every Eval Ever, beside their records
    return _unknown(file, [key for key, _ in json_parts.parts(text, str(path)) if key is not None])


def _instances(file: _File, text: str, asked: Asked) -> Log | None:
    for _, first in json_parts.parts(text, str(file.path)):
        if helm.is_stats(first):
            return helm.read(file.path, text, asked, file.model)
        return _unknown(file, list(first) if isinstance(first, dict) else [])
    return _unknown(file, [])


def _is_results(file: _File) -> bool:
    try:
        with open(file.path, encoding="utf-8", errors="replace") as stream:
            return lm_eval.is_results(_KEYS.findall(stream.read(_BEGIN)))
    except OSError:
        return False


def _unknown(file: _File, keys: Sequence[str]) -> None:
    if file.named:
        held = f"; it has the {listing(keys, 'key')}" if keys else ""
        raise StudyError("unknown-log-contents", path=file.path, keys=held, formats=KNOWN)
