"""Survey of logs: data sets with their items, models, metrics, filters and scorers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from bayesrep.sources.evals.detect_format import read_logs
from bayesrep.sources.evals.match_items import join_records
from bayesrep.sources.evals.records import Log, LogChoices, name_columns


def list_contents(
    paths: Sequence[str | Path],
    *,
    group: Mapping[str, Sequence[str]] | None = None,
    item: str | None = None,
    model: str | None = None,
    score: str | None = None,
    dataset: str | None = None,
    progress: bool = False,
) -> tuple[pl.DataFrame, dict[str, tuple[str, ...]]]:
    """List the contents of logs before any choice."""
    choices = LogChoices(
        groups={name: tuple(members) for name, members in (group or {}).items()},
        columns=name_columns(item, model, score, dataset),
        survey=True,
    )
    logs = read_logs(paths, choices, progress=progress)
    records = join_records(logs)
    names = ("model", "metric", "filter", "scorer")
    table = (
        records.with_columns(attempt=count_attempts(records))
        .group_by("task", maintain_order=True)
        .agg(
            pl.col("item").n_unique().alias("items"),
            pl.col("attempt").max().alias("attempts"),
            *(pl.col(name).unique(maintain_order=True).alias(f"{name}s") for name in names),
            pl.col("log").unique(),
        )
    )
    rows = [
        {
            "dataset": row["task"],
            "items": row["items"],
            "attempts": row["attempts"],
            "models": row["models"],
            "metrics": _metrics([logs[number] for number in row["log"]], row["metrics"]),
            "filters": [name for name in row["filters"] if name],
            "scorers": [name for name in row["scorers"] if name],
        }
        for row in table.iter_rows(named=True)
    ]
    # The schema is given so that empty lists keep their type.
    lists = dict.fromkeys(("models", "metrics", "filters", "scorers"), pl.List(pl.String))
    schema = {"dataset": pl.String, "items": pl.Int64, "attempts": pl.Int64, **lists}
    return pl.DataFrame(rows, schema=schema), dict(logs[0].groups)


def count_attempts(records: pl.DataFrame) -> pl.Series:
    """Count the attempts behind each record, by its number or its item's other scores."""
    of_item = ["task", "model", "metric", "filter", "scorer", "item"]
    several = pl.when(pl.col("score").n_unique().over(of_item) > 1).then(pl.len().over(of_item))
    return records.select(pl.max_horizontal("attempt", several)).to_series()


def _metrics(logs: Sequence[Log], read: Sequence[str]) -> list[str]:
    names = [name for log in logs for name in log.metrics]
    return list(dict.fromkeys([*names, *(name for name in read if name)]))
