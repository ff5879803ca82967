"""Every Eval Ever: instance-level JSON Lines, schema 0.3 (a line an item, a model and a result)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, listing
from bayesrep.files import json_stream
from bayesrep.sources.evals.records import UNANSWERED_SCORE, Log, LogChoices, make_records

EEE_NAME = "Every Eval Ever"
SCHEMA_VERSION = "0.3."
_FIELD_KEYS = {
    "schema": ("schema_version",),
    "task": ("evaluation_name",),
    "model": ("model_id",),
    "metric": ("evaluation_result_id",),
    "item": ("sample_id",),
    "content": ("sample_hash",),
    "score": ("evaluation", "score"),
    "said": ("evaluation", "is_correct"),
    "error": ("error",),
}


def is_instances(first: Mapping[str, Any]) -> bool:
    """Test whether the first line of a file has this format."""
    return {"schema_version", "evaluation"} <= set(first)


def read(path: Path, choices: LogChoices, model: str | None, advance: Callable[[int], None]) -> Log:
    """Read the records of one file."""
    where = str(path)
    once = ("model", "item", "score", "said")
    table = pl.concat(json_stream.fields(path, _FIELD_KEYS, unique=once, advance=advance))
    strange = ~table["schema"].str.starts_with(SCHEMA_VERSION).fill_null(value=False)
    if strange.any():
        version = table["schema"].filter(strange)[0]
        rows = listing((strange.arg_true() + 1).to_list(), "record")
        raise StudyError(
            "unknown-schema-version",
            where=where,
            version=version,
            records=rows,
            known_schema=SCHEMA_VERSION,
        )
    verdict = table["said"]
    unsure = ~verdict.is_in(["true", "false"]).fill_null(value=False)
    if unsure.any():
        rows = listing((unsure.arg_true() + 1).to_list(), "record")
        raise StudyError("correctness-neither-true-nor-false", where=where, records=rows)
    # Without identifiers items are told apart by the hash of their text.
    key = "sample_id"
    if choices.key == "content" or table["item"].null_count() == len(table):
        key = "sample_hash"
        if table["content"].null_count():
            raise StudyError("items-without-sample-hash", where=where)
        table = table.with_columns(item="content")
    # A failed sample was not judged, whatever a converter writes as its score.
    failed = table["error"].is_not_null() & (verdict == "false")
    table = table.with_columns(score=table["score"].set(failed, UNANSWERED_SCORE))
    note = f"{path.name}: {failed.sum():,} records say that something failed: no score"
    notes = [note] if failed.any() else []
    # The name of a metric may begin with the task's, which is cut off.
    result = pl.col("metric").fill_null("").str.strip_prefix(pl.col("task"))
    records = table.with_columns(
        said=verdict == "true", metric=result.str.strip_chars("/.:#@-_ ")
    ).drop("schema", "error")
    if model is not None:
        records = records.with_columns(model=pl.lit(model))
    return Log(where, EEE_NAME, key, make_records(records, where), notes=notes)
