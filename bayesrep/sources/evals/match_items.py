"""Items of several models' files: equal, missing and repeated ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from bayesrep.choices import Key
from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.sources.evals import lm_eval
from bayesrep.sources.evals.records import UNSCORED_SCORE, Log, choose_name

FEW_ITEMS_SHARE = 0.05  # of a data set's items, which a model may lack unasked
_ATTEMPT_KEY = ["task", "model", "scorer", "item", "attempt"]


def join_records(logs: Sequence[Log]) -> pl.DataFrame:
    """All records, numbered in `record`, with the number of their log in `log` (UInt32)."""
    return pl.concat(
        log.records.with_columns(log=pl.lit(number, dtype=pl.UInt32))
        for number, log in enumerate(logs)
    ).with_row_index("record")


def check_one_data_set(logs: Sequence[Log], records: pl.DataFrame, task: str, key: Key) -> None:
    """Refuse two data sets under one name: other versions, keys, or contents of one key."""
    used = [logs[number] for number in records["log"].unique().sort()]
    first, versions = used[0], dict[tuple[str, str], tuple[str, str]]()
    for log in used:
        for part, other in log.versions.items():  # a group's tasks have a version each
            one, where = versions.setdefault((log.tool, part), (other, log.where))
            if one != other:
                raise StudyError(
                    "data-set-versions-differ",
                    where=log.where,
                    version=other,
                    dataset=part,
                    other_log=where,
                    other_version=one,
                )
        if (log.tool, log.key) != (first.tool, first.key) and key != "id":
            raise StudyError(
                "item-keys-differ",
                where=log.where,
                dataset=task,
                key=log.key,
                tool=log.tool,
                other_log=first.where,
                other_key=first.key,
                other_tool=first.tool,
            )
    if key != "auto":
        return
    contents = records.filter(pl.col("content").is_not_null())
    kinds = contents.group_by("item", maintain_order=True).agg(
        pl.col("content").n_unique(), pl.col("log").unique()
    )
    if len(differ := kinds.filter(pl.col("content") > 1)):
        files = [Path(logs[each].where).name for each in differ["log"][0].sort()[:2]]
        raise StudyError(
            "item-contents-differ",
            files=", ".join(files),
            items=listing(differ["item"].to_list(), "item"),
            dataset=task,
        )


def select_scores(records: pl.DataFrame, field: str, requested: Sequence[str]) -> pl.DataFrame:
    """Select the records of one metric, filter or scorer for each data set and model."""
    names_by_model = records.group_by("task", "model", maintain_order=True).agg(
        pl.col(field).unique(maintain_order=True)
    )
    choices: list[tuple[str, str, str]] = []
    for task, model, names in names_by_model.iter_rows():
        if names == [""]:
            choices.append((task, model, ""))
            continue
        name = choose_name(names, requested, field, f"{model} on {task}", "has")
        choices.append((task, model, name))
    if requested and not set(requested) & {name for *_, name in choices}:
        raise OptionError(
            "choice-absent-from-logs", field=field, asked_names=" or ".join(requested)
        )
    table = pl.DataFrame(choices, schema=["task", "model", field], orient="row")
    return records.join(table, on=["task", "model", field], how="semi", maintain_order="left")


def attempts_numbered(
    logs: Sequence[Log], records: pl.DataFrame, *, repeats: bool
) -> tuple[pl.DataFrame, list[str]]:
    """Number the attempts of records with `solved`: each once, or with `repeats` each in turn."""
    if repeats:
        of_item = ["task", "model", "scorer", "item"]
        number = pl.int_range(pl.len(), dtype=pl.Int64).over(of_item) + 1
        return records.with_columns(attempt=number), []
    # Copies of a record are harmless; differing ones are refused below.
    repeated = records.filter(pl.struct(_ATTEMPT_KEY).is_duplicated())
    if not len(repeated):
        return records, []
    in_files = repeated.select(pl.col("log").n_unique().over("task", "model") > 1).to_series()
    # Two files of one model on one data set may be two runs: only the user knows.
    if in_files.any():
        _, used, facts = _describe_first(repeated.filter(in_files), logs)
        files = ", ".join(log.where for log in used[:3])
        raise StudyError("model-repeated-on-data-set", files=files, **facts)
    # The same attempt with two scores has no answer.
    differ = repeated.filter(pl.col("score").n_unique().over(_ATTEMPT_KEY) > 1)
    if len(differ):
        mine, (log, *_), facts = _describe_first(differ, logs)
        of_filters = log.tool == lm_eval.LM_EVAL_NAME and set(mine["filter"]) == {""}
        raise StudyError(
            "filters-not-named" if of_filters else "item-scored-several-times",
            file=log.where,
            **facts,
        )
    once = records.unique(_ATTEMPT_KEY, keep="first", maintain_order=True)
    fewer = len(records) - len(once)
    first = Path(logs[int(repeated["log"][0])].where).name
    return once, [f"{first}: {fewer:,} records came again with the same score"]


def _describe_first(
    repeated: pl.DataFrame, logs: Sequence[Log]
) -> tuple[pl.DataFrame, list[Log], Mapping[str, str]]:
    """Of the first model and data set among repeated records: these, their logs, and facts."""
    task, model = repeated["task"][0], repeated["model"][0]
    mine = repeated.filter((pl.col("task") == task) & (pl.col("model") == model))
    items = listing(mine["item"].unique(maintain_order=True), "item")
    facts = {"items": items, "dataset": task, "model": model}
    return mine, [logs[number] for number in mine["log"].unique().sort()], facts


def describe_unscored_firsts(
    records: pl.DataFrame, first: pl.DataFrame, *, repeats: bool
) -> list[str]:
    """Sentences on the items whose first attempt has no score, so that a later one counts."""
    order, of_item = "record" if repeats else "attempt", ["task", "model", "item"]
    unscored = records.filter(pl.col("score").is_null() | (pl.col("score") == UNSCORED_SCORE))
    both = unscored.join(first, on=of_item, suffix="_of", maintain_order="left")
    ways = ("scorer", "metric", "filter")  # of a sample that failed none is known
    same = pl.all_horizontal(pl.col(each) == pl.col(f"{each}_of") for each in ways)
    none = pl.all_horizontal(pl.col(each) == "" for each in ways)
    before = both.filter((same | none) & (pl.col(order) < pl.col(f"{order}_of")))
    notes: list[str] = []
    for (task, model, scorer), rows in before.group_by(
        "task", "model", "scorer_of", maintain_order=True
    ):
        items = rows["item"].unique(maintain_order=True)
        whole = first.filter(
            (pl.col("task") == task) & (pl.col("model") == model) & (pl.col("scorer") == scorer)
        )["item"].n_unique()
        by = f" by {scorer!r}" if scorer else ""
        notes.append(
            f"the first attempt of {model!r} at {listing(items, 'item')} ({len(items):,} of the "
            f"{whole:,} of {task!r}) has no score{by}: the next that has one counts"
        )
    return notes


def common_items(
    answers: pl.DataFrame, items: pl.Series, models: Sequence[str], task: str, *, common: bool
) -> tuple[list[str], list[str]]:
    """List the items that every model has, in order, with notes on the others; few may lack."""
    items = items.unique(maintain_order=True)
    shared, notes = items, list[str]()
    for model in models:
        has = answers.filter(pl.col("model") == model)["item"]
        lacking = items.filter(~items.is_in(has.implode()))
        if not len(lacking):
            continue
        what = listing(lacking, "item")
        # A few missing scores are noted; many need the user's word (--common).
        if len(lacking) > FEW_ITEMS_SHARE * len(items) and not common:
            raise StudyError(
                "model-lacks-scores", model=model, items=what, item_count=len(items), dataset=task
            )
        notes.append(
            f"{model!r} has no score of {what} of the {len(items):,} of {task!r}: left out"
        )
        shared = shared.filter(~shared.is_in(lacking.implode()))
    if not len(shared):
        raise StudyError("no-item-shared-by-models", dataset=task)
    return shared.to_list(), notes
