"""Which format a file is: by its ending, and by what it begins with.

Each reader takes a path (and the text or first line of the file, where it has been read), what the
user chose, the model's name where the user gave one, and what hears of every MB that was read.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import OptionError, StudyError, TableWarning, listing, plain_text
from bayesrep.files import json_parts
from bayesrep.files.copies import refuse_copies
from bayesrep.progress import progress_bar
from bayesrep.sources.evals import every_eval_ever, inspect_logs, lm_eval, score_tables
from bayesrep.sources.evals.records import (
    Log,
    LogChoices,
    belongs,
    digest_scores,
    group_log,
    unread_log,
)
from bayesrep.sources.evals.score_tables import LINES, TABLES

KNOWN_LOGS = (
    "samples_*.jsonl of lm-evaluation-harness, instance-level .jsonl of Every Eval Ever, .eval or "
    ".json of Inspect, a table (.parquet, .csv, .tsv, .xlsx, .jsonl, .json) of item, model, score, "
    "or any table or JSON Lines with --item, --model and --score to say which column is what; of "
    "HELM and SWE-bench docs/how-to/evaluation-logs.md makes one"
)
MUCH_MEGABYTES = 256
"""Megabytes from which on reading takes a while."""
_BEGIN = 2**16  # characters in which the first keys of a file are looked for
_LISTED = re.compile(r'\s*{\s*"results"\s*:\s*\[')  # of other tools, whose results are records
_KEYS = re.compile(r'"(\w{1,40})"\s*:')


@dataclass(frozen=True)
class _LogFile:
    """A file, how its model is called where the user said so, and whether it was named itself."""

    path: Path
    model: str | None
    named: bool


def read_logs(
    paths: Sequence[str | Path], asked: LogChoices, *, progress: bool = False
) -> list[Log]:
    """Read every log."""
    files = [file for path in paths for file in _files(path)]
    if not files:
        raise _without_logs(paths)
    # The same file by two names would count its answers twice.
    seen: set[Path] = set()
    for file in files:
        if (place := file.path.resolve()) in seen:
            raise StudyError("log-given-twice", path=file.path)
        seen.add(place)
    # lm-evaluation-harness keeps the facts of a run beside its samples.
    results = [file.path for file in files if file.path.suffix == ".json" and _is_results(file)]
    known = lm_eval.known_groups(results)
    asked = replace(asked, groups=_groups(asked, known))
    megabytes = sum(file.path.stat().st_size for file in files) >> 20
    with progress_bar(megabytes, "MB", show=progress and megabytes >= MUCH_MEGABYTES) as bar:
        logs, failures = list[Log](), list[inspect_logs.FailedRunError]()
        for file in files:
            try:
                log = None if file.path in results else _log(file, asked, results, bar.advance)
            except inspect_logs.FailedRunError as error:
                failures.append(error)
            else:
                logs += [] if log is None else [log]
    for error in failures:
        logs = _replace_failed_run(logs, error, asked)
    if not logs:
        raise _without_logs(paths)
    # Copies are told by their contents.
    logs = _mark_copies(logs)
    return [replace(log, groups=known) for log in _in_groups(logs, asked)]


def _replace_failed_run(
    logs: Sequence[Log], failure: inspect_logs.FailedRunError, asked: LogChoices
) -> list[Log]:
    """The logs, of which one takes the place of a run that failed: of its model and data set."""
    (task, model), where = failure.run, str(failure.facts["where"])
    if task and not asked.wants(task):
        return [*logs, unread_log(where, inspect_logs.TOOL, task)]
    run = (pl.col("task") == task) & (pl.col("model") == model)
    again = next((log for log in logs if len(log.records.filter(run))), None)
    if again is None:
        raise failure
    status = failure.facts.get("status", "unknown or invalid")
    told = (
        f"left out: {plain_text(Path(where).name)}, a run that did not end well (status {status}); "
        f"{plain_text(Path(again.where).name)} is of the same model and data set"
    )
    noted = replace(again, notes=[*again.notes, told])
    return [noted if log is again else log for log in logs]


def _without_logs(paths: Sequence[str | Path]) -> StudyError:
    """Why no log is among what was given: nothing is, or tables in a folder."""
    where = ", ".join(map(str, paths)) or "evals"
    folders = [folder for path in paths if (folder := _place_and_model(path)[0]).is_dir()]
    files = (file for folder in folders for file in sorted(folder.glob("*")))
    if tables := [file for file in files if file.name.lower().endswith(TABLES)]:
        told = listing(tables, "table")
        return StudyError("evaluation-tables-not-named", where=where, tables=told, path=tables[0])
    return StudyError("no-evaluation-log", where=where, formats=KNOWN_LOGS)


def _mark_copies(logs: Sequence[Log]) -> list[Log]:
    """The logs, of which none is a copy of another; a note where one may be.

    Two logs of the same models on the same data sets are copies where their bytes are the same, or
    where a scorer judged samples of one identifier (or of one run) in both. Scores that are the
    same prove nothing, since a model may answer the same twice; where one of the two logs has no
    identifiers, it is said.
    """
    alike: dict[frozenset[Any], list[Log]] = {}
    for log in logs:
        if len(log.records):
            of = frozenset(log.records.select("task", "model").unique().iter_rows())
            alike.setdefault(of, []).append(log)
    notes: dict[str, str] = {}
    for same in alike.values():
        refuse_copies(log.where for log in same)
        _refuse_same_samples(same)
        notes |= _note_same_scores(same)
    return [
        replace(log, notes=[*log.notes, notes[log.where]]) if log.where in notes else log
        for log in logs
    ]


def _refuse_same_samples(logs: Sequence[Log]) -> None:
    for other, log in combinations(logs, 2):
        if not log.marks.isdisjoint(other.marks):
            both = log.records["scorer"].is_in(other.records["scorer"].unique().to_list())
            if both.any():
                raise StudyError("same-samples-twice", path=log.where, other=other.where)


def _note_same_scores(logs: Sequence[Log]) -> dict[str, str]:
    """A sentence for each log with the scores of another, where one of both lacks identifiers."""
    notes: dict[str, str] = {}
    seen: dict[str, Log] = {}
    for log in logs if len(logs) > 1 else ():
        other = seen.setdefault(digest_scores(log.records), log)
        if other is not log and not (log.marks and other.marks):
            told = f"has the scores of {plain_text(other.where)}, item by item"
            copy = "if one is a copy of the other, give it once"
            notes[log.where] = f"{plain_text(log.where)}: {told}; {copy}"
    return notes


def _groups(asked: LogChoices, known: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The data sets that are groups: of the user's, and of those that results know."""
    if strange := [name for name in asked.groups if asked.tasks and name not in asked.tasks]:
        raise OptionError("group-of-no-data-set", groups=listing(strange, "group"))
    return {name: known[name] for name in asked.tasks if name in known} | dict(asked.groups)


def _in_groups(logs: Sequence[Log], asked: LogChoices) -> list[Log]:
    """The logs, of which several tasks are one data set where the user or a group says so."""
    held = dict.fromkeys(task for log in logs for task in log.records["task"].unique())
    owner: dict[str, str] = {}
    for name, members in asked.groups.items():
        mine = [task for task in held if belongs(task, members)]
        if name in held and not mine:
            continue  # a data set of its own
        if lacking := [each for each in members if not any(belongs(t, (each,)) for t in mine)]:
            raise StudyError(
                "group-lacks-tasks", group=name, tasks=listing(lacking, "task"), known=len(members)
            )
        if name in held and name not in mine:
            raise OptionError("group-called-as-task", group=name, tasks=listing(mine, "task"))
        others = {*owner, *asked.tasks} - {name}
        if both := [task for task in mine if task in others]:
            raise OptionError("task-in-two-data-sets", tasks=listing(both, "task"), group=name)
        owner |= dict.fromkeys(mine, name)
    if not owner:
        return list(logs)
    groups = [group_log(log, owner) for log in logs]
    told = [
        f"{name!r} is {listing([task for task in owner if owner[task] == name], 'task')}, whose "
        "items are called task/item and count alike"
        for name in dict.fromkeys(owner.values())
    ]
    return [replace(groups[0], notes=[*told, *groups[0].notes]), *groups[1:]]


def join_known_groups(logs: Sequence[Log]) -> list[Log]:
    """The logs, of which the tasks of every whole group that is known are one data set."""
    held = {task for log in logs for task in log.records["task"].unique()}
    groups: dict[str, tuple[str, ...]] = {}
    for name, members in sorted(logs[0].groups.items(), key=lambda each: -len(each[1])):
        if name not in held and held.issuperset(members):
            groups[name] = members
            held.difference_update(members)
    return _in_groups(logs, LogChoices(groups=groups))


def _place_and_model(given: str | Path) -> tuple[Path, str | None]:
    name, equals, rest = str(given).partition("=")
    if equals and name and not Path(given).exists() and Path(rest).exists():
        return Path(rest), name
    return Path(given), None


def _files(given: str | Path) -> Iterator[_LogFile]:
    path, model = _place_and_model(given)
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if any(part.startswith(".") for part in file.relative_to(path).parts):
                continue
            if file.is_dir():
                if file.is_symlink():
                    _warn(file, "a link to a folder, which is not followed")
            elif file.suffix in (*LINES, ".eval", ".json"):
                if file.is_file():
                    yield _LogFile(file, model, named=False)
                else:
                    _warn(file, "no file but a pipe, a device or a link that leads to none")
        return
    if not path.exists():
        raise StudyError("evaluation-log-not-found", path=path)
    if not path.is_file():
        raise StudyError("evaluation-log-no-file", path=path)
    yield _LogFile(path, model, named=True)


def _warn(path: Path, what: str) -> None:
    warnings.warn(f"{path}: is {what}; it is left out", TableWarning, stacklevel=2)


def _log(
    file: _LogFile, asked: LogChoices, results: Sequence[Path], advance: Callable[[int], None]
) -> Log | None:
    """The file's log; None where it is something else, in a folder or beside one."""
    path, kind = file.path, file.path.suffix.lower()
    if kind == ".eval":
        return inspect_logs.read_archive(path, asked, file.model)
    lines = score_tables.are_lines(path)
    if path.name.lower().endswith(TABLES) or (
        asked.columns and (lines or (kind == ".json" and file.named))
    ):
        return score_tables.read(path, file.model, asked.columns, advance)
    if lines:
        first = json_parts.first_object(path)
        if lm_eval.is_samples(first):
            return lm_eval.read(path, first, asked, results, file.model, advance)
        if every_eval_ever.is_instances(first):
            return every_eval_ever.read(path, asked, file.model, advance)
        return _scores(file, list(first), advance)
    if kind != ".json":
        raise StudyError("unknown-log-ending", path=path, formats=KNOWN_LOGS)
    text = json_parts.read_text(path)
    if text[:_BEGIN].lstrip()[:1] == "[":
        first = next((each for _, each in json_parts.parts(text, str(path))), None)
        return _scores(file, list(first) if isinstance(first, dict) else [], advance)
    keys = _KEYS.findall(text[:_BEGIN])
    if inspect_logs.is_log(keys):
        return inspect_logs.read_json(path, text, asked, file.model)
    if lm_eval.is_samples(dict.fromkeys(keys)):  # of one item
        first = json_parts.first_object(path)
        return lm_eval.read(path, first, asked, results, file.model, advance)
    if "evaluation_results" in keys:
        return None  # of Every Eval Ever, beside its records
    return _refuse_unknown_file(
        file, [key for key, _ in json_parts.parts(text, str(path)) if key is not None]
    )


def _scores(file: _LogFile, keys: Sequence[str], advance: Callable[[int], None]) -> Log | None:
    """A table of scores in JSON; as of other tables, one in a folder is not read."""
    if file.named and score_tables.are_scores(keys, file.model):
        return score_tables.read(file.path, file.model, {}, advance)
    return _refuse_unknown_file(file, keys)


def _is_results(file: _LogFile) -> bool:
    try:
        with open(file.path, encoding="utf-8", errors="replace") as stream:
            begin = stream.read(_BEGIN)
        results = lm_eval.is_results(_KEYS.findall(begin)) and not _LISTED.match(begin)
        return results and not score_tables.are_lines(file.path)
    except OSError:
        return False


def _refuse_unknown_file(file: _LogFile, keys: Sequence[str]) -> None:
    if file.named:
        held = f"; it has the {listing(keys, 'key')}" if keys else ""
        raise StudyError("unknown-log-contents", path=file.path, keys=held, formats=KNOWN_LOGS)
