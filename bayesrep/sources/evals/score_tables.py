"""Tables of item, model and score: Parquet, CSV and its kin, JSON Lines or JSON.

Columns go by these names, where one of them is there: item, question_id, question, sample_id,
instance_id, image, id; model, model_id, classifier; score, solved, correct, is_correct; and
optionally dataset, benchmark, task, category; attempt, epoch, trial; judge, scorer; metric. Of two
that are there none is taken: the user says which column is the item, the model, the score and the
data set. These may be any column, and in JSON (and Parquet) a path: `data.correct` is the member
"correct" of the member "data", and `results.*.score` that of each element of "results". A table
without a data set's name is called as its file.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.files import json_parts, parquet
from bayesrep.files.names import normalize_names
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import whole_numbers
from bayesrep.sources.evals.records import Log, make_records
from bayesrep.sources.evals.verdicts import lowest_scores, score_values

TOOL = "table of scores"
TABLES = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".xlsx")
LINES = (".jsonl", ".ndjson")
_KNOWN_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "item": ("item", "question_id", "question", "sample_id", "instance_id", "image", "id"),
    "model": ("model", "model_id", "classifier"),
    "score": ("score", "solved", "correct", "is_correct"),
    "task": ("dataset", "benchmark", "task", "category"),
    "attempt": ("attempt", "epoch", "trial"),
    "scorer": ("judge", "scorer"),
    "metric": ("metric",),
}
_RATINGS = {"question_id", "model", "score", "turn"}
"""Columns of judgements of FastChat and its kin (MT-Bench, LiveBench), whose -1 is no score."""
_NAMES = tuple(name for names in _KNOWN_COLUMNS.values() for name in names)
_NEEDED_COLUMNS = ("item", "model", "score")
OPTIONS: Mapping[str, str] = {"item": "item", "model": "model", "score": "score", "task": "dataset"}
"""What a user may say which column is, and how the option is called."""
_EACH_TASK = "*"


def are_scores(names: Sequence[str], model: str | None) -> bool:
    """Whether columns are called as an item, a model (if the user names none) and a score are."""
    needed = [field for field in _NEEDED_COLUMNS if not (field == "model" and model is not None)]
    return all(set(_KNOWN_COLUMNS[field]) & set(names) for field in needed)


def read(
    path: Path, model: str | None, chosen: Mapping[str, str], advance: Callable[[int], None]
) -> Log:
    """The records of one table, of which `chosen` says what is which column.

    Raises
    ------
    OptionError
        Where several columns may be meant.
    StudyError
        Where one is missing.
    """
    where, kind = str(path), path.suffix.lower()
    lines, notes = are_lines(path), list[str]()
    # Lines of JSON are streamed, one JSON document is read whole, and tables have columns.
    if lines or kind == ".json":
        pairs = [] if lines else json_parts.all_parts(json_parts.read_text(path), where)
        key, first = pairs[0] if pairs else (None, json_parts.first_object(path) if lines else None)
        names = list(first) if key is None and isinstance(first, dict) else []
        chosen = _split_scores(chosen, names)
        column_of = _columns(names, chosen, model, where)
        wanted = {field: _keys(name, names) for field, name in column_of.items()}
        parts = json_parts.fields(path, wanted, advance=advance) if lines else ()
        table = pl.concat(parts) if lines else _of_json(pairs, wanted, where)
        needed = {field: column_of[field] for field in ("item", "score")}
        table, notes = _of_items(table, {**needed, **chosen}, path)
        if "attempt" in column_of:
            table = table.with_columns(whole_numbers(table["attempt"], where))
    else:
        if kind == ".parquet" and any("." in name for name in chosen.values()):
            chosen = _split_scores(chosen, ())
            table = parquet.read(path, where, list(dict.fromkeys(chosen.values())))
        else:
            table = read_only(path, (*_NAMES, *_split_scores(chosen, ()).values())).frame
            chosen = _split_scores(chosen, table.columns)
        names = table.columns
        column_of = _columns(names, chosen, model, where)
        require(table, list(column_of.values()), where)
        table = table.select(
            whole_numbers(table[name], where).alias(field)
            if field == "attempt"
            else _words(table[name], field)
            for field, name in column_of.items()
        )
    # Of several scores the lowest counts, and a rating that failed is none.
    table = table.with_columns(
        score=lowest_scores([table[name] for name in column_of if name.split(" ")[0] == "score"])
    )
    failed = score_values(table["score"]) == -1
    if failed.any() and set(names) >= _RATINGS:
        table = table.with_columns(score=table["score"].set(failed, None))
        notes.append(f"{path.name}: {failed.sum():,} scores are -1, a rating that failed: no score")
    if "scorer" in column_of:  # FastChat writes a judge as a list
        judge, parts = pl.col("scorer"), pl.col("scorer").str.strip_chars('[]"')
        name = parts.str.replace_all('", "', "/", literal=True)
        named = pl.when(judge.str.starts_with('["')).then(name).otherwise(judge)
        table = table.with_columns(scorer=named)
    if model is not None:
        table = table.with_columns(model=pl.lit(model))
    name = path.name.removesuffix(".gz").rpartition(".")[0]
    return Log(where, TOOL, column_of["item"], make_records(table, where, task=name), notes=notes)


def _words(column: pl.Series, field: str) -> pl.Series:
    """A column as text; of names, floats that are whole numbers have no decimals."""
    named = column.cast(pl.String) if field.split(" ")[0] == "score" else normalize_names(column)
    return named.alias(field)


def are_lines(path: Path) -> bool:
    """Whether a file is of JSON Lines, by its ending or, where that is of JSON, by its lines."""
    kind = path.suffix.lower()
    return kind in LINES or (kind == ".json" and json_parts.are_lines(path))


def _split_scores(chosen: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """What the user chose, where several scores are named (a,b) each a field of its own."""
    score = chosen.get("score", "")
    if "," not in score or score in names:
        return dict(chosen)
    fields = {
        f"score {place}" if place else "score": each.strip()
        for place, each in enumerate(score.split(","))
    }
    return {**chosen, **fields}


def _columns(
    names: Sequence[str], chosen: Mapping[str, str], model: str | None, where: str
) -> dict[str, str]:
    """Which column is what: as the user says, or by its name where one is there."""
    column_of = dict(chosen)
    for field, known in _KNOWN_COLUMNS.items():
        if field in chosen or (field == "model" and model is not None):
            continue
        present = [name for name in known if name in names]
        if len(present) > 1:
            option = OPTIONS.get(field)
            way = f"say which (--{option} COLUMN)" if option else "leave all but one out"
            columns = " and ".join(map(repr, present))
            noun = OPTIONS.get(field, field).replace("dataset", "data set")
            raise OptionError(
                "score-column-ambiguous", where=where, columns=columns, field=noun, way=way
            )
        if present:
            column_of[field] = present[0]
    for field in _NEEDED_COLUMNS:
        if field not in column_of and not (field == "model" and model is not None):
            raise StudyError(
                "score-table-lacks-column",
                where=where,
                column=field,
                columns=", ".join(names) or "that are known",
                known_names=" or ".join(_KNOWN_COLUMNS[field]),
            )
    return column_of


def _keys(name: str, names: Sequence[str]) -> list[str]:
    return [name] if name in names else name.split(".")


def _of_items(
    table: pl.DataFrame, found: Mapping[str, str], path: Path
) -> tuple[pl.DataFrame, list[str]]:
    """Keep the objects that are about an item; logs of events have others, too."""
    kept = table.filter(pl.col("item").is_not_null())
    if not len(kept):
        raise StudyError("key-found-nowhere", where=path, key=found["item"])
    for field, key in found.items():
        if kept[field].null_count() == len(kept):
            raise StudyError("key-found-nowhere", where=path, key=key)
    others = len(table) - len(kept)
    told = f"{path.name}: {others:,} records without {found['item']!r} left out"
    return kept, ([told] if others else [])


def _of_json(
    pairs: Sequence[tuple[str | None, Any]], wanted: Mapping[str, Sequence[str]], where: str
) -> pl.DataFrame:
    """The fields of a JSON file, whose paths go through the elements of one list."""
    if pairs and pairs[0][0] is None:
        contents: Any = [value for _, value in pairs]
        wanted = {field: [_EACH_TASK, *keys] for field, keys in wanted.items()}
    else:
        contents = dict(pairs)
    begins = {field: _length(keys) for field, keys in wanted.items()}
    longest = max(wanted, key=lambda field: begins[field])
    way = list(wanted[longest][: begins[longest]])
    for field, keys in wanted.items():
        if list(keys[: begins[field]]) != way[: begins[field]]:
            paths = listing([".".join(each) for each in (wanted[longest], keys)], "path")
            raise OptionError("paths-through-different-lists", where=where, paths=paths)
    rows = [
        [
            json_parts.as_word(
                json_parts.dig_value(trail[begins[field]], keys[begins[field] :]), where
            )
            for field, keys in wanted.items()
        ]
        for trail in _trails(contents, way, ())
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(wanted, pl.String()), orient="row")


def _length(keys: Sequence[str]) -> int:
    """How many keys lead to the elements of the last list."""
    return max((at + 1 for at, key in enumerate(keys) if key == _EACH_TASK), default=0)


def _trails(value: Any, way: Sequence[str], before: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """For each element that a way leads to: what lies on it, from the whole to the element."""
    trail = (*before, value)
    if not way:
        yield trail
    elif way[0] == _EACH_TASK:
        inside = value.values() if isinstance(value, dict) else value
        for each in inside if isinstance(value, dict | list) else ():
            yield from _trails(each, way[1:], trail)
    elif isinstance(value, dict) and way[0] in value:
        yield from _trails(value[way[0]], way[1:], trail)
