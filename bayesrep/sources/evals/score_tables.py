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
    """The records of one table.

    Parameters
    ----------
    path
        The file.
    model
        Its name, where the user gave one.
    chosen
        Which column is what, as far as the user says.
    advance
        Hears of every MB of JSON Lines that was read.

    Raises
    ------
    OptionError
        Where several columns may be meant.
    StudyError
        Where one is missing.
    """
    where, kind = str(path), path.suffix.lower()
    # Lines of JSON are streamed, one JSON document is read whole, and tables have columns.
    if kind in LINES:
        names = list(json_parts.first_object(path))
        column_of = _columns(names, chosen, model, where)
        wanted = {field: _keys(name, names) for field, name in column_of.items()}
        table = pl.concat(json_parts.fields(path, wanted, advance=advance))
    elif kind == ".json":
        pairs = json_parts.all_parts(json_parts.read_text(path), where)
        key, first = pairs[0] if pairs else (None, None)
        names = list(first) if key is None and isinstance(first, dict) else []
        column_of = _columns(names, chosen, model, where)
        wanted = {field: _keys(name, names) for field, name in column_of.items()}
        table = _of_json(pairs, wanted, where)
    else:
        if kind == ".parquet" and any("." in name for name in chosen.values()):
            table = parquet.read(path, where, list(dict.fromkeys(chosen.values())))
        else:
            table = read_only(path, (*_NAMES, *chosen.values())).frame
        column_of = _columns(table.columns, chosen, model, where)
        require(table, list(column_of.values()), where)
        table = table.select(
            whole_numbers(table[name], where).alias(field)
            if field == "attempt"
            else _words(table[name], field)
            for field, name in column_of.items()
        )
    notes: list[str] = []
    # Values in JSON are as they were written and still have to be checked.
    if kind in (*LINES, ".json"):
        table, notes = _of_items(table, column_of, path)
        if "attempt" in column_of:
            table = table.with_columns(whole_numbers(table["attempt"], where))
    if model is not None:
        table = table.with_columns(model=pl.lit(model))
    name = path.name.removesuffix(".gz").rpartition(".")[0]
    return Log(where, TOOL, column_of["item"], make_records(table, where, task=name), notes=notes)


def _words(column: pl.Series, field: str) -> pl.Series:
    """A column as text; of names, floats that are whole numbers have no decimals."""
    named = column.cast(pl.String) if field == "score" else normalize_names(column)
    return named.alias(field)


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
    if kept["score"].null_count() == len(kept):
        raise StudyError("key-found-nowhere", where=path, key=found["score"])
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
