"""Records of a log: a row for each data set, item, model, attempt, scorer and metric."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import polars as pl

from bayesrep.choices import Key
from bayesrep.errors import OptionError, StudyError, listing, plain_text
from bayesrep.files.digests import digest_parts, short_digest
from bayesrep.files.json_stream import as_word
from bayesrep.files.names import normalize_name, normalize_names, warn_of_shortened
from bayesrep.files.values import is_missing

RECORD_SCHEMA: Mapping[str, Any] = {
    "task": pl.String(),  # the data set
    "model": pl.String(),
    "item": pl.String(),
    "attempt": pl.Int64(),  # from 1
    "scorer": pl.String(),
    "metric": pl.String(),
    "filter": pl.String(),
    "score": pl.String(),  # as in the log, or UNSCORED_SCORE; null without an answer
    "said": pl.Boolean(),  # the tool's own verdict, right or wrong; null if it has none
    "content": pl.String(),  # a hash of the item's text; null if unknown
}
_TEXT_COLUMNS = ("task", "model", "scorer", "metric", "filter")
_MAX_KEY_CHARACTERS = 120  # of an item's key; longer ones are texts, and shortened
UNSCORED_SCORE = "NaN"  # score of an item that was not scored, in any spelling
UNANSWERED_SCORE = "\0"  # score from a reader for an item without an answer


@dataclass(frozen=True)
class LogChoices:
    """The user's choices among the contents of logs."""

    # metric, filter, scorer: names, of which each log has to have one
    metric: tuple[str, ...] = ()
    filter: tuple[str, ...] = ()
    scorer: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()  # scorers whose verdicts are counted
    key: Key = "auto"  # takes the id, and refuses if the hash of the content contradicts it
    tasks: tuple[str, ...] = ()  # the data sets; all if empty
    # Tasks of data sets that are groups, by name or pattern.
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    # Columns of tables for "item", "model", "score" and "task".
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    survey: bool = False  # true to list the contents of the logs without any choice

    def wants(self, task: str) -> bool:
        """Test whether a task is one of the data sets, or in a group that is one."""
        members = (self.groups.get(name, ()) for name in self.tasks)
        is_requested = task in self.tasks or any(belongs(task, each) for each in members)
        return not self.tasks or is_requested

    def one_metric(self, present: Sequence[str], where: str) -> str:
        """The metric to read of those that a log holds."""
        return present[0] if self.survey else choose_name(present, self.metric, "metric", where)


def name_columns(
    item: str | None, model: str | None, score: str | None, dataset: str | None
) -> dict[str, str]:
    """Collect a table's named columns, as `LogChoices` has them."""
    columns = {"item": item, "model": model, "score": score, "task": dataset}
    return {field: column for field, column in columns.items() if column is not None}


Names = Sequence[str] | str | None


def list_names(names: Names) -> tuple[str, ...]:
    """Convert one name, several, or none to a tuple."""
    return (names,) if isinstance(names, str) else tuple(names or ())


def belongs(task: str, members: Sequence[str]) -> bool:
    """Test whether a task is in a group, given by names or patterns."""
    return any(task == each or fnmatchcase(task, each) for each in members)


@dataclass(frozen=True, eq=False)
class Log:
    """The records of one file."""

    where: str  # the file
    tool: str  # tool that wrote it
    key: str  # field that identifies items
    records: pl.DataFrame  # with the columns of `RECORD_SCHEMA`
    # Versions of the data sets, where the log knows them.
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: Sequence[str] = ()  # sentences about it
    unread: tuple[str, ...] = ()  # data sets that were not requested
    metrics: tuple[str, ...] = ()  # all metrics of the log, if there are more than in its records
    # The tasks of groups that are known of the logs.
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    marks: frozenset[str] = frozenset()  # unique identifiers of its samples, or of the run


def make_records(table: pl.DataFrame, where: str, **same: str | int | None) -> pl.DataFrame:
    """Complete a table with every column of `RECORD_SCHEMA`, of which `same` are constant."""
    constants = {
        name: each if isinstance(each, int) else as_word(each, where)
        for name, each in same.items()
        if name not in table.columns
    }
    absent = {"attempt": 1, "scorer": "", "metric": "", "filter": "", **constants}
    added = [
        pl.lit(absent.get(name), dtype=kind).alias(name)
        for name, kind in RECORD_SCHEMA.items()
        if name not in table.columns
    ]
    table = table.with_columns(added).with_columns(
        pl.col(name).cast(kind) for name, kind in RECORD_SCHEMA.items()
    )
    score = pl.when(is_missing(table["score"])).then(pl.lit(UNSCORED_SCORE)).otherwise("score")
    table = table.with_columns(
        *(
            _map_distinct(table[name].fill_null(""), lambda text: plain_text(normalize_name(text)))
            for name in _TEXT_COLUMNS
        ),
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
    return table.with_columns(item_keys(table["item"])).select(list(RECORD_SCHEMA))


def digest_scores(records: pl.DataFrame) -> str:
    """The same of records whose items have the same scores, in whatever order."""
    scores = records.select("item", "attempt", "scorer", "metric", "filter", "score")
    return digest_parts([scores.hash_rows().sort().to_numpy().tobytes()])


def unread_log(where: str, tool: str, task: str) -> Log:
    """The log of a data set that nobody asked for."""
    return Log(where, tool, "", pl.DataFrame(schema=RECORD_SCHEMA), unread=(plain_text(task),))


def item_keys(items: pl.Series) -> pl.Series:
    """Keys of items that a terminal and a table can show: no controls, no long texts."""

    def shorten(text: str) -> str:
        """A key that is short, and as unique."""
        if len(text) <= _MAX_KEY_CHARACTERS:
            return plain_text(text)
        return f"{plain_text(text[:60])}... {short_digest(text.encode()).hex()}"

    odd = items.str.contains(r"\p{C}") | (items.str.len_chars() > _MAX_KEY_CHARACTERS)
    if not odd.any():
        return items
    return items.scatter(odd.arg_true(), _map_distinct(items.filter(odd), shorten))


def _map_distinct(column: pl.Series, function: Callable[[str], str]) -> pl.Series:
    names = column.unique().to_list()
    return column.replace(dict(zip(names, map(function, names), strict=True)))


def group_log(log: Log, owner: Mapping[str, str]) -> Log:
    """The log, its tasks called as the groups that own them and its items `task/item`."""
    owned = pl.col("task").is_in(list(owner))
    group = pl.col("task").replace(dict(owner))
    item = pl.when(owned).then(pl.format("{}/{}", "task", "item")).otherwise("item")
    return replace(log, records=log.records.with_columns(task=group, item=item))


def choose_name(
    present: Sequence[str], requested: Sequence[str], noun: str, where: str, holds: str = "holds"
) -> str:
    """Choose the one requested name of several, or the only one; a message lists what is there."""
    chosen = [name for name in present if name in requested]
    if len(chosen) == 1:
        return chosen[0]
    if not requested and len(present) == 1:
        return present[0]
    choices = ", ".join(map(repr, present[:30])) + (", ..." if len(present) > 30 else "")
    if requested and not chosen:
        raise OptionError(
            "unknown-score-choice",
            where=where,
            option=noun,
            asked=" or ".join(map(repr, requested)),
            verb=holds,
            choices=choices,
        )
    raise OptionError(
        "score-choice-ambiguous", where=where, verb=holds, option=noun, choices=choices
    )
