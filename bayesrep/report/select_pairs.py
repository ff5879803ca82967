"""Select the pairs of classifiers to show: those between named ones, and the closest."""

from collections.abc import Sequence

import polars as pl

from bayesrep.errors import OptionError, did_you_mean


def pairs_between(
    table: pl.DataFrame, chosen: Sequence[str], classifiers: Sequence[str]
) -> pl.DataFrame:
    """Rows of `bayesrep.compare_classifiers` on pairs of some classifiers."""
    for name in chosen:
        if name not in classifiers:
            close = did_you_mean(name, classifiers)
            raise OptionError("between-unknown-classifier", classifier=name, hint=close)
    if len(set(chosen)) < 2:
        raise OptionError("between-names-one-classifier", classifier=chosen[0])
    return table.filter(pl.col("classifier").is_in(chosen) & pl.col("other").is_in(chosen))


def closest_pairs(table: pl.DataFrame, count: int) -> pl.DataFrame:
    """The rows of `bayesrep.compare_classifiers` in which it is least known who is better."""
    close = (pl.col("probability") - 0.5).abs()
    return table.sort(close, maintain_order=True).head(count)
