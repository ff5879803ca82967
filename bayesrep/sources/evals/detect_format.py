"""Detection of a log's format by its ending and its beginning."""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import OptionError, StudyError, TableWarning, listing, plain_text
from bayesrep.files import json_stream
from bayesrep.files.given_files import refuse_copies
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
from bayesrep.sources.evals.score_tables import LINES_ENDINGS, SCORE_TABLE_ENDINGS

LOG_FORMATS = (
    "samples_*.jsonl of lm-evaluation-harness, instance-level .jsonl of Every Eval Ever, .eval or "
    ".json of Inspect, a table (.parquet, .csv, .tsv, .xlsx, .jsonl, .json) of item, model, score, "
    "or any table or JSON Lines whose columns --rename COLUMN=item (model, score) calls so; "
    "of HELM and SWE-bench docs/how-to/evaluation-logs.md makes one"
)
MUCH_MEGABYTES = 256  # smallest size with a progress bar
_HEAD_CHARACTERS = 2**16  # characters with the first keys of a file
_LIST_PATTERN = re.compile(r'\s*{\s*"results"\s*:\s*\[')  # of records, of other tools
_KEYS_PATTERN = re.compile(r'"(\w{1,40})"\s*:')


@dataclass(frozen=True)
class _LogFile:
    """A file, the user's name of its model, and `named` if the path is the file's own."""

    path: Path
    model: str | None
    named: bool


def read_logs(
    paths: Sequence[str | Path], choices: LogChoices, *, progress: bool = False
) -> list[Log]:
    """Read every log."""
    files = [file for path in paths for file in _files(path)]
    if not files:
        raise _without_logs(paths)
    # The same file by two names would count its answers twice.
    paths_read: set[Path] = set()
    for file in files:
        if (place := file.path.resolve()) in paths_read:
            raise StudyError("log-given-twice", path=file.path)
        paths_read.add(place)
    # lm-evaluation-harness keeps the facts of a run beside its samples.
    results = [file.path for file in files if file.path.suffix == ".json" and _is_results(file)]
    groups = lm_eval.known_groups(results)
    if strange := [name for name in choices.groups if choices.tasks and name not in choices.tasks]:
        raise OptionError("group-of-no-data-set", groups=listing(strange, "group"))
    known = {name: groups[name] for name in choices.tasks if name in groups}
    choices = replace(choices, groups=known | dict(choices.groups))
    megabytes = sum(file.path.stat().st_size for file in files) >> 20
    with progress_bar(megabytes, "MB", show=progress and megabytes >= MUCH_MEGABYTES) as bar:
        logs, failures = list[Log](), list[inspect_logs.FailedRunError]()
        for file in files:
            try:
                log = None if file.path in results else _log(file, choices, results, bar.advance)
            except inspect_logs.FailedRunError as error:
                failures.append(error)
            else:
                logs += [] if log is None else [log]
    for error in failures:
        logs = _replace_failed_run(logs, error, choices)
    if not logs:
        raise _without_logs(paths)
    # Copies are told by their contents.
    logs = _mark_copies(logs)
    return [replace(log, groups=groups) for log in _in_groups(logs, choices)]


def _replace_failed_run(
    logs: Sequence[Log], failure: inspect_logs.FailedRunError, choices: LogChoices
) -> list[Log]:
    """Replace a failed run by a log of the same model and data set, with a note."""
    (task, model), where = failure.run, str(failure.facts["where"])
    if task and not choices.wants(task):
        return [*logs, unread_log(where, inspect_logs.INSPECT_NAME, task)]
    run = (pl.col("task") == task) & (pl.col("model") == model)
    replacement = next((log for log in logs if len(log.records.filter(run))), None)
    if replacement is None:
        raise failure
    status = failure.facts.get("status", "unknown or invalid")
    note = (
        f"left out: {plain_text(Path(where).name)}, a run that did not end well (status {status}); "
        f"{plain_text(Path(replacement.where).name)} is of the same model and data set"
    )
    noted = replace(replacement, notes=[*replacement.notes, note])
    return [noted if log is replacement else log for log in logs]


def _without_logs(paths: Sequence[str | Path]) -> StudyError:
    where = ", ".join(map(str, paths)) or "evals"
    folders = [folder for path in paths if (folder := _place_and_model(path)[0]).is_dir()]
    files = (file for folder in folders for file in sorted(folder.glob("*")))
    if tables := [file for file in files if file.name.lower().endswith(SCORE_TABLE_ENDINGS)]:
        tables_text = listing(tables, "table")
        return StudyError(
            "evaluation-tables-not-named", where=where, tables=tables_text, path=tables[0]
        )
    return StudyError("no-evaluation-log", where=where, formats=LOG_FORMATS)


def _mark_copies(logs: Sequence[Log]) -> list[Log]:
    """Refuse copies among logs of one model and data set, by bytes or samples' identifiers."""
    logs_of_runs: dict[frozenset[Any], list[Log]] = {}
    for log in logs:
        if len(log.records):
            runs = frozenset(log.records.select("task", "model").unique().iter_rows())
            logs_of_runs.setdefault(runs, []).append(log)
    notes: dict[str, str] = {}
    for same in logs_of_runs.values():
        refuse_copies(log.where for log in same)
        for other, log in combinations(same, 2):
            if not log.marks.isdisjoint(other.marks):
                both = log.records["scorer"].is_in(other.records["scorer"].unique().to_list())
                if both.any():
                    raise StudyError("same-samples-twice", path=log.where, other=other.where)
        notes |= _note_same_scores(same)
    return [
        replace(log, notes=[*log.notes, notes[log.where]]) if log.where in notes else log
        for log in logs
    ]


def _note_same_scores(logs: Sequence[Log]) -> dict[str, str]:
    """Note each log with the scores of another, if one of them lacks identifiers."""
    notes: dict[str, str] = {}
    log_of_digest: dict[str, Log] = {}
    for log in logs if len(logs) > 1 else ():
        other = log_of_digest.setdefault(digest_scores(log.records), log)
        if other is not log and not (log.marks and other.marks):
            finding = f"has the scores of {plain_text(other.where)}, item by item"
            copy = "if one is a copy of the other, give it once"
            notes[log.where] = f"{plain_text(log.where)}: {finding}; {copy}"
    return notes


def _in_groups(logs: Sequence[Log], choices: LogChoices) -> list[Log]:
    tasks = dict.fromkeys(task for log in logs for task in log.records["task"].unique())
    owner: dict[str, str] = {}
    for name, members in choices.groups.items():
        mine = [task for task in tasks if belongs(task, members)]
        if name in tasks and not mine:
            continue  # a data set of its own
        if lacking := [each for each in members if not any(belongs(t, (each,)) for t in mine)]:
            raise StudyError(
                "group-lacks-tasks", group=name, tasks=listing(lacking, "task"), known=len(members)
            )
        if name in tasks and name not in mine:
            raise OptionError("group-called-as-task", group=name, tasks=listing(mine, "task"))
        others = {*owner, *choices.tasks} - {name}
        if both := [task for task in mine if task in others]:
            raise OptionError("task-in-two-data-sets", tasks=listing(both, "task"), group=name)
        owner |= dict.fromkeys(mine, name)
    if not owner:
        return list(logs)
    groups = [group_log(log, owner) for log in logs]
    notes = [
        f"{name!r} is {listing([task for task in owner if owner[task] == name], 'task')}, whose "
        "items are called task/item and count alike"
        for name in dict.fromkeys(owner.values())
    ]
    return [replace(groups[0], notes=[*notes, *groups[0].notes]), *groups[1:]]


def join_known_groups(logs: Sequence[Log]) -> list[Log]:
    """Join the tasks of every complete known group into one data set."""
    tasks = {task for log in logs for task in log.records["task"].unique()}
    groups: dict[str, tuple[str, ...]] = {}
    for name, members in sorted(logs[0].groups.items(), key=lambda each: -len(each[1])):
        if name not in tasks and tasks.issuperset(members):
            groups[name] = members
            tasks.difference_update(members)
    return _in_groups(logs, LogChoices(groups=groups))


def _place_and_model(argument: str | Path) -> tuple[Path, str | None]:
    name, equals, rest = str(argument).partition("=")
    if equals and name and not Path(argument).exists() and Path(rest).exists():
        return Path(rest), name
    return Path(argument), None


def _files(argument: str | Path) -> Iterator[_LogFile]:
    path, model = _place_and_model(argument)
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if any(part.startswith(".") for part in file.relative_to(path).parts):
                continue
            if file.is_dir():
                if file.is_symlink():
                    _warn(file, "a link to a folder, which is not followed")
            elif file.suffix in (*LINES_ENDINGS, ".eval", ".json"):
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
    file: _LogFile, choices: LogChoices, results: Sequence[Path], advance: Callable[[int], None]
) -> Log | None:
    """Read the file's log; None for another file, in a folder or next to a log."""
    path, kind = file.path, file.path.suffix.lower()
    if kind == ".eval":
        return inspect_logs.read_archive(path, choices, file.model)
    lines = score_tables.are_lines(path)
    if path.name.lower().endswith(SCORE_TABLE_ENDINGS) or (
        choices.columns and (lines or (kind == ".json" and file.named))
    ):
        return score_tables.read(path, file.model, choices.columns, advance)
    if lines:
        first = json_stream.first_object(path)
        if lm_eval.is_samples(first):
            return lm_eval.read(path, first, choices, results, file.model, advance)
        if every_eval_ever.is_instances(first):
            return every_eval_ever.read(path, choices, file.model, advance)
        return _scores(file, list(first), advance)
    if kind != ".json":
        raise StudyError("unknown-log-ending", path=path, formats=LOG_FORMATS)
    text = json_stream.read_text(path)
    if text[:_HEAD_CHARACTERS].lstrip()[:1] == "[":
        first = next((each for _, each in json_stream.parts(text, str(path))), None)
        return _scores(file, list(first) if isinstance(first, dict) else [], advance)
    keys = _KEYS_PATTERN.findall(text[:_HEAD_CHARACTERS])
    if inspect_logs.is_log(keys):
        return inspect_logs.read_json(path, text, choices, file.model)
    if lm_eval.is_samples(dict.fromkeys(keys)):  # of one item
        first = json_stream.first_object(path)
        return lm_eval.read(path, first, choices, results, file.model, advance)
    if "evaluation_results" in keys:
        return None  # of Every Eval Ever, beside its records
    return _refuse_unknown_file(
        file, [key for key, _ in json_stream.parts(text, str(path)) if key is not None]
    )


def _scores(file: _LogFile, keys: Sequence[str], advance: Callable[[int], None]) -> Log | None:
    """A table of scores in JSON; as of other tables, one in a folder is not read."""
    if file.named and score_tables.are_scores(keys, file.model):
        return score_tables.read(file.path, file.model, {}, advance)
    return _refuse_unknown_file(file, keys)


def _is_results(file: _LogFile) -> bool:
    try:
        with open(file.path, encoding="utf-8", errors="replace") as stream:
            begin = stream.read(_HEAD_CHARACTERS)
        results = lm_eval.is_results(_KEYS_PATTERN.findall(begin)) and not _LIST_PATTERN.match(
            begin
        )
        return results and not score_tables.are_lines(file.path)
    except OSError:
        return False


def _refuse_unknown_file(file: _LogFile, keys: Sequence[str]) -> None:
    if file.named:
        keys_text = f"; it has the {listing(keys, 'key')}" if keys else ""
        raise StudyError(
            "unknown-log-contents", path=file.path, keys=keys_text, formats=LOG_FORMATS
        )
