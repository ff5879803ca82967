"""Tables of item, model and score: Parquet, CSV and its kin, JSON Lines or JSON.

A user may name columns, or paths as `data.correct` and `results.*.score` (of each element).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.files import json_stream, parquet
from bayesrep.files.names import normalize_names
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import whole_numbers
from bayesrep.sources.evals.records import Log, make_records
from bayesrep.sources.evals.solved import lowest_scores, score_values

TABLE_NAME = "table of scores"
SCORE_TABLE_ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".xlsx")
LINES_ENDINGS = (".jsonl", ".ndjson")
_KNOWN_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "item": ("item", "question_id", "question", "sample_id", "instance_id", "image", "id"),
    "model": ("model", "model_id", "classifier"),
    "score": ("score", "solved", "correct", "is_correct"),
    "task": ("dataset", "benchmark", "task", "category"),
    "attempt": ("attempt", "epoch", "trial"),
    "scorer": ("judge", "scorer"),
    "metric": ("metric",),
}
_RATING_COLUMNS = {"question_id", "model", "score", "turn"}  # of FastChat, whose -1 is no score
_COLUMN_NAMES = tuple(name for names in _KNOWN_COLUMNS.values() for name in names)
_NEEDED_COLUMNS = ("item", "model", "score")
OPTION_OF_FIELD = {"item": "item", "model": "model", "score": "score", "task": "dataset"}
"""Fields whose column a user may name, with the name of the option."""
_EACH_TASK = "*"


def are_scores(names: Sequence[str], model: str | None) -> bool:
    """Test for the columns of an item, a model (unless the user names it) and a score."""
    needed = [field for field in _NEEDED_COLUMNS if not (field == "model" and model is not None)]
    return all(set(_KNOWN_COLUMNS[field]) & set(names) for field in needed)


def read(
    path: Path, model: str | None, chosen: Mapping[str, str], advance: Callable[[int], None]
) -> Log:
    """Read the records of one table, whose columns `chosen` may name."""
    where, kind = str(path), path.suffix.lower()
    lines, notes = are_lines(path), list[str]()
    # Lines of JSON are streamed, one JSON document is read whole, and tables have columns.
    if lines or kind == ".json":
        pairs = [] if lines else json_stream.all_parts(json_stream.read_text(path), where)
        key, first = pairs[0] if pairs else (None, None)
        first = json_stream.first_object(path) if lines else first
        names = list(first) if key is None and isinstance(first, dict) else []
        chosen = _split_scores(chosen, names)
        column_of = _columns(names, chosen, model, where)
        field_keys = {
            field: [name] if name in names else name.split(".") for field, name in column_of.items()
        }
        parts = json_stream.fields(path, field_keys, advance=advance) if lines else ()
        table = pl.concat(parts) if lines else _of_json(pairs, field_keys, where)
        needed = {field: column_of[field] for field in ("item", "score")}
        table, notes = _of_items(table, {**needed, **chosen}, path)
        if "attempt" in column_of:
            table = table.with_columns(whole_numbers(table["attempt"], where))
    else:
        if kind == ".parquet" and any("." in name for name in chosen.values()):
            chosen = _split_scores(chosen, ())
            table = parquet.read(path, where, list(dict.fromkeys(chosen.values())))
        else:
            table = read_only(path, (*_COLUMN_NAMES, *_split_scores(chosen, ()).values())).frame
            chosen = _split_scores(chosen, table.columns)
        names = table.columns
        column_of = _columns(names, chosen, model, where)
        require(table, list(column_of.values()), where)
        table = table.select(
            (
                whole_numbers(table[name], where)
                if field == "attempt"
                else table[name].cast(pl.String)
                if field.split(" ")[0] == "score"
                else normalize_names(table[name])
            ).alias(field)
            for field, name in column_of.items()
        )
    # Of several scores the lowest counts, and a rating that failed is none.
    table = table.with_columns(
        score=lowest_scores([table[name] for name in column_of if name.split(" ")[0] == "score"])
    )
    failed = score_values(table["score"]) == -1
    if failed.any() and set(names) >= _RATING_COLUMNS:
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
    return Log(
        where, TABLE_NAME, column_of["item"], make_records(table, where, task=name), notes=notes
    )


def are_lines(path: Path) -> bool:
    """Test for JSON Lines, by the ending or, of a JSON file, by its lines."""
    kind = path.suffix.lower()
    return kind in LINES_ENDINGS or (kind == ".json" and json_stream.are_lines(path))


def _split_scores(chosen: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """Split several scores of the user's choice (a,b) into fields of their own."""
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
    column_of = dict(chosen)
    for field, candidates in _KNOWN_COLUMNS.items():
        if field in chosen or (field == "model" and model is not None):
            continue
        present = [name for name in candidates if name in names]
        if len(present) > 1:
            option = OPTION_OF_FIELD.get(field)
            way = f"say which (--rename COLUMN={option})" if option else "leave all but one out"
            columns = " and ".join(map(repr, present))
            noun = OPTION_OF_FIELD.get(field, field).replace("dataset", "data set")
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


def _of_items(
    table: pl.DataFrame, column_of: Mapping[str, str], path: Path
) -> tuple[pl.DataFrame, list[str]]:
    """Keep the objects about an item; logs of events have others, too."""
    with_item = table.filter(pl.col("item").is_not_null())
    if not len(with_item):
        raise StudyError("key-found-nowhere", where=path, key=column_of["item"])
    for field, key in column_of.items():
        if with_item[field].null_count() == len(with_item):
            raise StudyError("key-found-nowhere", where=path, key=key)
    others = len(table) - len(with_item)
    note = f"{path.name}: {others:,} records without {column_of['item']!r} left out"
    return with_item, ([note] if others else [])


def _of_json(
    pairs: Sequence[tuple[str | None, Any]], field_keys: Mapping[str, Sequence[str]], where: str
) -> pl.DataFrame:
    """Read the fields of a JSON file, with paths through the elements of one list."""
    if pairs and pairs[0][0] is None:
        contents: Any = [value for _, value in pairs]
        field_keys = {field: [_EACH_TASK, *keys] for field, keys in field_keys.items()}
    else:
        contents = dict(pairs)
    # How many keys lead to the elements of the last list.
    begins = {
        field: max((place for place, key in enumerate(keys, 1) if key == _EACH_TASK), default=0)
        for field, keys in field_keys.items()
    }
    longest = max(field_keys, key=lambda field: begins[field])
    way = list(field_keys[longest][: begins[longest]])
    for field, keys in field_keys.items():
        if list(keys[: begins[field]]) != way[: begins[field]]:
            paths = listing([".".join(each) for each in (field_keys[longest], keys)], "path")
            raise OptionError("paths-through-different-lists", where=where, paths=paths)
    rows = [
        [
            json_stream.as_word(
                json_stream.dig_value(trail[begins[field]], keys[begins[field] :]), where
            )
            for field, keys in field_keys.items()
        ]
        for trail in _trails(contents, way, ())
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(field_keys, pl.String()), orient="row")


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
