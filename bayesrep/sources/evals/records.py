"""What every log becomes: a row for each data set, item, model, attempt, scorer and metric."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Any

import polars as pl

from bayesrep.choices import Key
from bayesrep.errors import OptionError, StudyError, listing, plain_text
from bayesrep.files.json_parts import as_word
from bayesrep.files.names import normalize_name, normalize_names, warn_of_shortened
from bayesrep.files.values import is_missing

COLUMNS: Mapping[str, Any] = {
    "task": pl.String(),  # the data set
    "model": pl.String(),
    "item": pl.String(),
    "attempt": pl.Int64(),  # from 1
    "scorer": pl.String(),
    "metric": pl.String(),
    "filter": pl.String(),
    "score": pl.String(),  # as the log has it, or UNSCORED; null where nothing was there to score
    "said": pl.Boolean(),  # what the tool itself says: right or wrong; null where it says nothing
    "content": pl.String(),  # a hash of what was asked; null where it is not known
}
_NAMES = ("task", "model", "scorer", "metric", "filter")
_LONGEST = 120  # characters of an item's key; a longer one is a text, and is shortened
UNSCORED_SCORE = "NaN"
"""The score of an item that was not scored, however that is written."""
UNANSWERED_SCORE = "\0"
"""What a reader gives as the score of an item of which nothing was there to score."""


@dataclass(frozen=True)
class LogChoices:
    """What the user chose of logs that hold several.

    Attributes
    ----------
    metric, filter, scorer
        Names, of which each log has to have one.
    judges
        Scorers whose verdicts are counted.
    key
        What tells items apart: "id" or "content" (its hash); "auto" takes the first and lets the
        second contradict.
    tasks
        The data sets; where none is given, all are read.
    groups
        The tasks of data sets that are several, by name or pattern.
    columns
        For tables: which column is the "item", the "model", the "score" and the "task".
    survey
        Whether it is only to be told what the logs hold, so that nothing has to be chosen.
    """

    metric: tuple[str, ...] = ()
    filter: tuple[str, ...] = ()
    scorer: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    key: Key = "auto"
    tasks: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    survey: bool = False

    def wants(self, task: str) -> bool:
        """Whether a task is one of the data sets, or of a group that is one."""
        members = (self.groups.get(name, ()) for name in self.tasks)
        among = task in self.tasks or any(belongs(task, each) for each in members)
        return not self.tasks or among

    def one_metric(self, present: Sequence[str], where: str) -> str:
        """The metric to read of those that a log holds."""
        return present[0] if self.survey else choose_name(present, self.metric, "metric", where)


def name_columns(
    item: str | None, model: str | None, score: str | None, dataset: str | None
) -> dict[str, str]:
    """The columns of a table that are named, as `LogChoices` has them."""
    given = {"item": item, "model": model, "score": score, "task": dataset}
    return {field: column for field, column in given.items() if column is not None}


Names = Sequence[str] | str | None


def list_names(given: Names) -> tuple[str, ...]:
    """One name, several, or none."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def belongs(task: str, members: Sequence[str]) -> bool:
    """Whether a task is one of a group's, of which names or patterns are given."""
    return any(task == each or fnmatchcase(task, each) for each in members)


@dataclass(frozen=True, eq=False)
class Log:
    """The records of one file.

    Attributes
    ----------
    where
        The file.
    tool
        What wrote it.
    key
        The field that tells items apart.
    records
        With `COLUMNS`.
    versions
        Versions of the data sets, where the log knows them.
    notes
        Sentences about it.
    unread
        Data sets that nobody asked for.
    metrics
        All that it holds, where it holds more than its records.
    groups
        The tasks of groups that are known of the logs.
    marks
        What no second run has: identifiers of its samples, or of the run; none where the tool
        gives none.
    """

    where: str
    tool: str
    key: str
    records: pl.DataFrame
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: Sequence[str] = ()
    unread: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    marks: frozenset[str] = frozenset()


def make_records(table: pl.DataFrame, where: str, **same: str | int | None) -> pl.DataFrame:
    """A table with every column of `COLUMNS`: those given, those that are the same in all rows.

    Names are normalized; those that could steer a terminal are written with escapes, and long keys
    of items are shortened.
    """
    given = {
        name: each if isinstance(each, int) else as_word(each, where)
        for name, each in same.items()
        if name not in table.columns
    }
    absent = {"attempt": 1, "scorer": "", "metric": "", "filter": "", **given}
    added = [
        pl.lit(absent.get(name), dtype=kind).alias(name)
        for name, kind in COLUMNS.items()
        if name not in table.columns
    ]
    table = table.with_columns(added).with_columns(
        pl.col(name).cast(kind) for name, kind in COLUMNS.items()
    )
    score = pl.when(is_missing(table["score"])).then(pl.lit(UNSCORED_SCORE)).otherwise("score")
    table = table.with_columns(
        *(_map_distinct(table[name].fill_null(""), _clean_name) for name in _NAMES),
        normalize_names(table["item"]),
        pl.when(pl.col("score").ne_missing(UNANSWERED_SCORE)).then(score).alias("score"),
    )
    for name in ("task", "model", "item"):
        missing = table[name].is_null() | (table[name] == "")
        if missing.any():
            rows = listing((missing.arg_true() + 1).to_list(), "record")
            noun = {"task": "data set"}.get(name, name)
            raise StudyError("record-field-missing", where=where, field=noun, records=rows)
        warn_of_shortened(table[name], where)
    return table.with_columns(item_keys(table["item"])).select(list(COLUMNS))


def digest_scores(records: pl.DataFrame) -> str:
    """The same of records whose items have the same scores, in whatever order."""
    scores = records.select("item", "attempt", "scorer", "metric", "filter", "score")
    return blake2b(scores.hash_rows().sort().to_numpy().tobytes(), digest_size=16).hexdigest()


def unread_log(where: str, tool: str, task: str) -> Log:
    """The log of a data set that nobody asked for."""
    return Log(where, tool, "", pl.DataFrame(schema=COLUMNS), unread=(plain_text(task),))


def item_keys(items: pl.Series) -> pl.Series:
    """Keys of items that a terminal and a table can show: no controls, no long texts."""
    odd = items.str.contains(r"\p{C}") | (items.str.len_chars() > _LONGEST)
    if not odd.any():
        return items
    return items.scatter(odd.arg_true(), _map_distinct(items.filter(odd), _shorten_key))


def _map_distinct(column: pl.Series, function: Callable[[str], str]) -> pl.Series:
    names = column.unique().to_list()
    return column.replace(dict(zip(names, map(function, names), strict=True)))


def _clean_name(text: str) -> str:
    """A name as every reader has it, as a terminal may show it."""
    return plain_text(normalize_name(text))


def _shorten_key(text: str) -> str:
    """A key that is short, and as unique."""
    if len(text) <= _LONGEST:
        return plain_text(text)
    return f"{plain_text(text[:60])}... {blake2b(text.encode(), digest_size=8).hexdigest()}"


def group_log(log: Log, owner: Mapping[str, str]) -> Log:
    """The log, its tasks called as the groups that own them and its items `task/item`."""
    owned = pl.col("task").is_in(list(owner))
    group = pl.col("task").replace(dict(owner))
    item = pl.when(owned).then(pl.format("{}/{}", "task", "item")).otherwise("item")
    return replace(log, records=log.records.with_columns(task=group, item=item))


def choose_name(
    present: Sequence[str], asked: Sequence[str], noun: str, where: str, holds: str = "holds"
) -> str:
    """The one of several names that was asked for, or the only one that there is.

    Where that is not one, a message says what `where` holds, by the noun that the option is called.
    """
    chosen = [name for name in present if name in asked]
    if len(chosen) == 1:
        return chosen[0]
    if not asked and len(present) == 1:
        return present[0]
    known = ", ".join(map(repr, present[:30])) + (", ..." if len(present) > 30 else "")
    if asked and not chosen:
        raise OptionError(
            "unknown-score-choice",
            where=where,
            option=noun,
            asked=" or ".join(map(repr, asked)),
            verb=holds,
            choices=known,
        )
    raise OptionError("score-choice-ambiguous", where=where, verb=holds, option=noun, choices=known)
