"""From scores to solved or not."""

import polars as pl

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.files.values import FALSE_WORDS, TRUE_WORDS, parse_numbers

LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Inspect's verdicts: correct, incorrect, partly, and no answer, which counts as not right."""
WORDS = {
    **dict.fromkeys((*TRUE_WORDS, "pass", "passed"), 1.0),
    **dict.fromkeys((*FALSE_WORDS, "fail", "failed", "timeout"), 0.0),
}


def add_solved(
    records: pl.DataFrame, threshold: float | None, where: str
) -> tuple[pl.DataFrame, list[str]]:
    """Say of every record whether the item is solved.

    Parameters
    ----------
    records
        With `item`, `score` (text, not null) and `said`.
    threshold
        The least score of a solved item. None where all scores have to be right or wrong; where a
        log says itself which are right, that counts.
    where
        What a message begins with.

    Returns
    -------
    tuple
        The records with `solved` (bool), and sentences about them.

    Raises
    ------
    StudyError
        Where a score is not a number, or a log contradicts itself.
    OptionError
        Where items are solved in part, and no threshold is given.
    """
    score = records["score"]
    word = score.str.strip_chars()
    lower = word.str.to_lowercase()
    # Letters and words of verdicts become numbers; numbers stay as they are.
    verdicts = (
        column.replace_strict(known, default=None, return_dtype=pl.Float64)
        for column, known in ((word, LETTERS), (lower, WORDS))
    )
    value = pl.select(value=pl.coalesce(*verdicts, parse_numbers(score))).to_series()
    strange = ~value.is_finite().fill_null(value=False)
    if strange.any():
        items = listing(records["item"].filter(strange).unique(maintain_order=True), "item")
        raise StudyError(
            "score-not-a-verdict",
            where=where,
            score=score.filter(strange)[0],
            items=items,
            words=", ".join((*LETTERS, *WORDS)),
        )
    # No answer is not right, as Inspect counts it, and is noted; beside Y an N is a no.
    silent = 0 if (lower == "y").any() else (word == "N").sum()
    notes = [f"{where}: {silent:,} scores are N, no answer: not solved"] if silent else []
    # With a threshold every number is a verdict.
    if threshold is not None:
        return records.with_columns(solved=value >= threshold), notes
    # Without one only 0 and 1 are, unless the log itself says what is correct.
    said = records["said"]
    whole = (value == 0) | (value == 1)
    partly = ~whole & said.is_null()
    if partly.any():
        items = listing(records["item"].filter(partly).unique(maintain_order=True), "item")
        low, high = value.filter(partly).min(), value.filter(partly).max()
        raise OptionError(
            "score-between-right-and-wrong", where=where, low=low, high=high, items=items
        )
    # Score and verdict of the same record must agree.
    differ = (whole & said.is_not_null() & ((value == 1) != said)).fill_null(value=False)
    if differ.any():
        items = listing(records["item"].filter(differ).unique(maintain_order=True), "item")
        raise StudyError("score-contradicts-is-correct", where=where, items=items)
    return records.with_columns(solved=pl.coalesce(said, value == 1)), notes
