"""Printed means, accuracies and estimates for other images of the same populations."""

import polars as pl

from bayesrep.report.table_format import percent
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words


def frequencies_text(
    means: pl.DataFrame, gaps: pl.DataFrame | None, words: Words = IMAGE_WORDS
) -> str:
    """Mean selection frequencies with intervals, and the term that equation 2 leaves out."""
    lines = [
        f"  {row['dataset']}: mean selection frequency {percent(row['mean'], 2)} % "
        f"({percent(row['lower'], 2)} to {percent(row['upper'], 2)} for other {words.images})"
        for row in means.iter_rows(named=True)
    ]
    if gaps is not None:
        widest = gaps.filter(pl.col("classifier").is_not_null())["upper"].max()
        mean = gaps.filter(pl.col("classifier").is_null())["upper"].item()
        lines.append(
            f"  the choice of {words.images} alone moves the drop by "
            f"± {percent(widest, 2)} points for a {words.classifier}, "  # type: ignore[arg-type]
            f"± {percent(mean, 2)} for their mean (95 %; the finite-sample term)"
        )
    return "\n".join(lines)
