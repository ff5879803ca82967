"""Verdicts from scores: solved or not."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from bayesrep.errors import Listing, OptionError, StudyError, listing
from bayesrep.files.json_stream import as_word
from bayesrep.files.strict_json import beginning
from bayesrep.files.values import FALSE_WORDS, TRUE_WORDS, parse_numbers
from bayesrep.sources.evals.records import UNSCORED_SCORE

VALUE_OF_LETTER = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # no answer is not right
VALUE_OF_WORD = {
    **dict.fromkeys((*TRUE_WORDS, "pass", "passed"), 1.0),
    **dict.fromkeys((*FALSE_WORDS, "fail", "failed", "timeout", "timed out"), 0.0),
}
_FAR_RATIO, _CODE_RATIO = 50, 5  # of a "no score" code to the next score; of 99, 999


def score_values(score: pl.Series) -> pl.Series:
    """Convert scores, and letters and words of verdicts, to numbers; null if neither."""
    word = score.str.strip_chars()
    lower = word.str.to_lowercase()
    value_of = {**VALUE_OF_LETTER, **VALUE_OF_WORD}
    value = pl.select(
        pl.when(word.is_in(list(VALUE_OF_LETTER)))
        .then(word.replace_strict(value_of, default=None, return_dtype=pl.Float64))
        .when(lower.is_in(list(VALUE_OF_WORD)))
        .then(lower.replace_strict(value_of, default=None, return_dtype=pl.Float64))
        .otherwise(parse_numbers(score))
    ).to_series()
    return value.set(~value.is_finite(), None).rename("value")


def lowest_scores(scores: Sequence[pl.Series]) -> pl.Series:
    """Take the lowest of several scores of each record, or a missing one if there is any."""
    lowest, *others = scores
    for other in others:
        value, next_value = score_values(lowest), score_values(other)
        lower = (next_value < value).fill_null(value=False) | next_value.is_null()
        lowest = other.zip_with(lower & value.is_not_null(), lowest)
    return lowest


def split_panels(records: pl.DataFrame) -> pl.DataFrame:
    """Split scores that are lists, of a panel, into those of its judges panel[1], panel[2], ..."""
    listed = records["score"].str.starts_with("[") & records["score"].str.ends_with("]")
    panels = records.filter(listed)
    if not len(panels):
        return records
    try:
        score_lists = [
            [as_word(each, "") for each in beginning(score)[0]] for score in panels["score"]
        ]
    except (ValueError, StudyError):
        return records  # the list is refused as it stands
    places = [list(range(1, len(each) + 1)) for each in score_lists]
    lists = pl.Series("score", score_lists, pl.List(pl.String)), pl.Series("place", places)
    each = panels.with_columns(lists).explode("score", "place")
    names = each.with_columns(scorer=pl.format("{}[{}]", "scorer", "place")).drop("place")
    return pl.concat([records.filter(~listed), names.filter(pl.col("score") != UNSCORED_SCORE)])


def lacking_judges(judged: pl.DataFrame, judges: Sequence[str]) -> list[str]:
    """List the judges without any score, neither their own nor their panel's."""
    scorers = judged["scorer"].unique().to_list()
    heard = {*scorers, *(name.rpartition("[")[0] for name in scorers)}
    return [name for name in judges if name not in heard]


def no_score_codes(values: pl.Series) -> list[float]:
    """Detect codes for "no score" (-1, 999): whole and negative, or many times the next."""
    distinct = values.drop_nulls().unique().sort().to_numpy()
    if not len(distinct):
        return []
    negative, top = distinct[distinct < 0], distinct[-1]
    two_sided = top > 1 and -distinct[0] == top
    if 0 < len(negative) <= 2 and not two_sided and np.all(negative == np.floor(negative)):
        return negative.tolist()
    next_top = max(distinct[-2], 0.0) if len(distinct) > 1 else 0.0
    nines = top >= 99 and set(f"{top:.0f}") == {"9"} and top > _CODE_RATIO * next_top
    far = next_top > 0 and top > _FAR_RATIO * max(next_top, 1.0)
    return [float(top)] if top == np.floor(top) and (nines or far) else []


def refuse_no_score_codes(records: pl.DataFrame, places: Sequence[str]) -> None:
    """Refuse records, of one metric and scorer, with codes that a threshold would count."""
    values = score_values(records["score"])
    if not (codes := no_score_codes(values)):
        return
    coded = values.is_in(codes).fill_null(value=False)
    others = values.filter(~coded).drop_nulls()
    range_text = (
        f", where all others are from {others.min()} to {others.max()}" if len(others) else ""
    )
    raise StudyError(
        "score-outside-all-others",
        where=places[records["log"].filter(coded)[0]],
        scores=" and ".join(f"{code:g}" for code in codes),
        items=_items(records, coded),
        others=range_text,
    )


def _items(records: pl.DataFrame, rows: pl.Series) -> Listing:
    return listing(records["item"].filter(rows).unique(maintain_order=True), "item")


def add_solved(
    records: pl.DataFrame, threshold: float | None, where: str
) -> tuple[pl.DataFrame, list[str]]:
    """Add to each record whether the item is `solved`: by a threshold, or where scores are 0, 1."""
    score = records["score"]
    value = score_values(score)
    strange = value.is_null()
    if strange.any():
        first = score.filter(strange)[0]
        facts = {"where": where, "score": first, "items": _items(records, strange)}
        if first.startswith("["):
            raise StudyError("score-is-a-list", **facts)
        raise StudyError(
            "score-not-a-verdict", words=", ".join((*VALUE_OF_LETTER, *VALUE_OF_WORD)), **facts
        )
    # No answer is not right, as Inspect counts it, and is noted; beside Y an N is a no.
    word = score.str.strip_chars()
    silent = 0 if word.str.to_lowercase().eq("y").any() else word.eq("N").sum()
    notes = [f"{where}: {silent:,} scores are N, no answer: not solved"] if silent else []
    # With a threshold every number is a verdict.
    if threshold is not None:
        return records.with_columns(solved=value >= threshold), notes
    # Without one only 0 and 1 are, unless the log itself says what is correct.
    verdict = records["said"]
    whole = (value == 0) | (value == 1)
    partly = ~whole & verdict.is_null()
    if partly.any():
        low, high = value.filter(partly).min(), value.filter(partly).max()
        facts = {"low": low, "high": high, "items": _items(records, partly)}
        raise OptionError("score-between-right-and-wrong", where=where, **facts)
    differ = (whole & verdict.is_not_null() & ((value == 1) != verdict)).fill_null(value=False)
    if differ.any():
        items = _items(records, differ)
        raise StudyError("score-contradicts-is-correct", where=where, items=items)
    return records.with_columns(solved=pl.coalesce(verdict, value == 1)), notes
