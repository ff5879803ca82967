"""lm-evaluation-harness: samples_TASK_TIME.jsonl of --log_samples, a line an item and filter.

results_TIME.json beside it has the model; until 0.4.2 they were ARGUMENTS_TASK and results.json.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError
from bayesrep.files import json_stream
from bayesrep.files.json_stream import as_word
from bayesrep.files.names import normalize_name
from bayesrep.sources.evals.records import Log, LogChoices, digest_scores, make_records, unread_log

LM_EVAL_NAME = "lm-evaluation-harness"
_TIME_PATTERN = r"\d{4}-\d\d-\d\dT[\d.:+-]*\d"
_FILE_NAME = re.compile(rf"samples_(?P<task>.+?)(?:_(?P<time>{_TIME_PATTERN}))?\.jsonl?$")
_ID_FIELDS, _HASH_FIELDS = ("doc_id",), ("doc_hash", "prompt_hash")
_NO_METRIC = "bypass"  # of --predict_only: 999 for each item, which is no score
_OTHER_KEYS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics")
}


def is_samples(first: Mapping[str, Any]) -> bool:
    """Test whether the first line of a file is one of samples."""
    return bool({"resps", "filtered_resps"} & set(first)) and bool(
        {*_ID_FIELDS, *_HASH_FIELDS, "doc"} & set(first)
    )


def is_results(keys: Sequence[str]) -> bool:
    """Test whether the first keys of a JSON file are those of results."""
    return "results" in keys[:1] or {"results", "versions"} <= set(keys)


def read(
    path: Path,
    first: Mapping[str, Any],
    choices: LogChoices,
    results: Sequence[Path],
    model: str | None,
    advance: Callable[[int], None],
) -> Log:
    """Read the records of one file; `results` are all files of results."""
    where, named = str(path), _FILE_NAME.search(path.name)
    # The name of the file says its task; a renamed file says it inside.
    task = normalize_name(named["task"] if named else _task(path))
    if not choices.wants(task):
        return unread_log(where, LM_EVAL_NAME, task)
    time = (named["time"] or "") if named else ""
    facts = _results(path, task, time, results)
    metrics = [name for name in _metrics(first, where) if name != _NO_METRIC]
    if not metrics:
        raise StudyError("lm-eval-predictions-only", where=where, metric=_NO_METRIC)
    metric = choices.one_metric(metrics, where)
    # A perplexity or an error rate cannot say which items are solved.
    if _nested_facts(facts, "higher_is_better", task).get(metric) is False:
        raise StudyError("metric-lower-is-better", where=where, metric=metric)
    key, content = _keys(first, choices, where)
    field_keys = {"item": (key,), "score": (metric,)}
    # Only needed fields are read: samples hold whole prompts.
    field_keys |= {
        name: (field,)
        for name, field in (("filter", "filter"), ("content", content))
        if field is not None and field in first and field != key
    }
    table = pl.concat(
        json_stream.fields(path, field_keys, unique=("item", "score"), advance=advance)
    )
    records = make_records(
        table, where, task=task, model=model or _model(facts, path, where), metric=metric
    )
    version, samples = (_nested_facts(facts, *k) for k in (("versions",), ("n-samples", task)))
    whole, run = samples.get("original"), samples.get("effective")
    notes = []
    if isinstance(whole, int) and isinstance(run, int) and run < whole:
        notes = [f"{path.name}: {run:,} of the {whole:,} items of {task} were run"]
    return Log(
        where,
        LM_EVAL_NAME,
        key,
        records,
        {task: f"version {version[task]}"} if version.get(task) is not None else {},
        notes,
        metrics=tuple(metrics),
        marks=frozenset({f"{time} {digest_scores(records)}"} if time else ()),
    )


def known_groups(results: Sequence[Path]) -> dict[str, tuple[str, ...]]:
    """List the tasks of every group in files of results."""
    members_of: dict[str, dict[str, None]] = {}
    for file in results:
        for name, members in _nested_facts(_facts(file), "group_subtasks").items():
            if isinstance(members, list) and members:
                members_of.setdefault(name, {}).update(dict.fromkeys(map(str, members)))

    def tasks(name: str, above: tuple[str, ...]) -> Iterator[str]:
        if name not in members_of or name in above:
            yield name
            return
        for member in members_of[name]:
            yield from tasks(member, (*above, name))

    return {name: tuple(dict.fromkeys(tasks(name, ()))) for name in members_of}


def _task(path: Path) -> str:
    facts = (
        _facts(results_file) if (results_file := path.with_name("results.json")).is_file() else {}
    )
    arguments = _nested_facts(facts, "config").get("model_args")
    if isinstance(arguments, str):
        for odd in ("/|=", "/"):
            before = f"{re.sub(odd, '__', arguments)}_"
            if path.stem.startswith(before) and path.stem != before:
                return path.stem.removeprefix(before)
    ends = [name for name in _nested_facts(facts, "results") if path.stem.endswith(f"_{name}")]
    return max(ends, key=len, default=path.stem)


def _metrics(first: Mapping[str, Any], where: str) -> list[str]:
    """The metrics of a line: those it names, or its keys with a number."""
    named = first.get("metrics")
    if isinstance(named, list) and named:
        words = [str(as_word(name, where)) for name in named]
        return [name for name in words if name in first] or words[:1]
    numbers = (int, float)  # True and False are whole numbers
    metrics = [
        name
        for name, value in first.items()
        if isinstance(value, numbers) and name not in _OTHER_KEYS and not name.endswith("_hash")
    ]
    if not metrics:
        raise StudyError("first-line-without-metric", where=where)
    return [str(as_word(name, where)) for name in metrics]


def _keys(first: Mapping[str, Any], choices: LogChoices, where: str) -> tuple[str, str | None]:
    """Choose the field that identifies items, and the field with a hash of their texts."""
    ids, hashes = (
        [name for name in names if name in first] for names in (_ID_FIELDS, _HASH_FIELDS)
    )
    order = hashes if choices.key == "content" else [*ids, *hashes]
    if not order:
        raise StudyError(
            "lm-eval-items-without-key",
            where=where,
            key_fields=" or ".join((*_ID_FIELDS, *_HASH_FIELDS)),
        )
    return order[0], hashes[0] if hashes else None


def _results(path: Path, task: str, time: str, results: Sequence[Path]) -> dict[str, Any]:
    named = f"results_{time}.json"
    if time and (results_files := sorted(path.parent.glob(f"*{named}"))):
        return _facts(results_files[0])
    of_time = [file for file in results if time and file.name.endswith(named)]
    if len(of_time) == 1:
        return _facts(of_time[0])
    matching = [
        facts for file in results if task in _nested_facts(facts := _facts(file), "results")
    ]
    if len(matching) > 1:
        raise StudyError("several-results-for-data-set", path=path, dataset=task)
    if not matching and not time and (early := path.with_name("results.json")).is_file():
        return _facts(early)
    return matching[0] if matching else {}


def _facts(path: Path) -> dict[str, Any]:
    text = json_stream.read_text(path)
    return {key: value for key, value in json_stream.all_parts(text, str(path)) if key is not None}


def _nested_facts(facts: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    value: Any = facts
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _model(facts: Mapping[str, Any], path: Path, where: str) -> str:
    if name := facts.get("model_name"):
        return str(as_word(name, where))
    config = _nested_facts(facts, "config")
    arguments = config.get("model_args")
    if isinstance(arguments, str):
        pairs = (part.partition("=") for part in arguments.split(","))
        arguments = {key.strip(): value.strip() for key, _, value in pairs}
    if isinstance(arguments, dict):
        for key in ("pretrained", "model", "model_name", "engine", "path"):
            if name := arguments.get(key):
                return str(as_word(name, where))
    if name := config.get("model"):
        return str(as_word(name, where))
    folder = path.absolute().parent.name
    if "__" in folder:
        return folder.replace("__", "/")
    raise StudyError("lm-eval-model-unnamed", where=where, path=path)
