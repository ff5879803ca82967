"""The last line of a command: what its table says, in words."""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bayesrep.errors import plain_text
from bayesrep.numerics.rounding import write_points
from bayesrep.report.answer import answer_for, drop_of, measured_drop
from bayesrep.report.methods import label_of
from bayesrep.report.table_format import percent
from bayesrep.studies.representation import number
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words

if TYPE_CHECKING:  # which import JAX
    from bayesrep.estimators.annotator_match import AnnotatorMatch
    from bayesrep.estimators.annotators import Linearity

CLEAR_PROBABILITY = 0.975
"""Probability from which on one of two classifiers is called clearly better."""


def drop_sentence(study: Study, gaps: pl.DataFrame) -> str:
    """State how much of the drop is real, by the last method of a table of gaps."""
    method = gaps["method"][-1]
    drop = drop_of(gaps.filter(pl.col("method") == method), measured_drop(study))
    return plain_text(answer_for(study, drop))


def estimate_sentence(study: Study, gaps: pl.DataFrame) -> str:
    """State how much of the drop is real, with the method's name."""
    return f"By {plain_text(label_of(str(gaps['method'][-1])))}: {drop_sentence(study, gaps)}"


def components_sentence(table: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """State how many mixture components the counts support."""
    from bayesrep.estimators.components import fewest_components

    texts = [f"{name} {size}" for name, size in fewest_components(table).items()]
    legend = (
        "* is the best of its column and data set (AIC, BIC: lowest; held out: highest); "
        "degenerate: components that shrank to a point."
    )
    return (
        f"{legend}\nComponents needed: {', '.join(texts)} (the fewest that predict "
        f"{words.images} left out within a standard error of the best). `bayesrep fit` takes 2 "
        "(--set components=K), em-spline 3 (--methods 'em-spline(components=K)')."
    )


def annotators_sentence(
    table: pl.DataFrame,
    line: "Linearity | None",
    error: float | None = None,
    match: "AnnotatorMatch | None" = None,
    words: Words = IMAGE_WORDS,
) -> str:
    """State whether more annotators would change the answer."""
    last = table.filter(pl.col("annotators") == pl.col("annotators").max())
    count = int(last["annotators"][0])
    naive, jackknife = (
        float(np.mean((last["reference_accuracy"] - last[name]).to_numpy()))
        for name in ("naive", "jackknife")
    )
    # Without a curve nothing can be extrapolated; the reason may be a few images.
    if line is None or last["jackknife"].null_count():
        if match is not None and match.without > count:
            return (
                f"Matched with n' = {count} the naive estimates show no curve, though "
                f"most {words.images} have more {words.annotators}: leave out those that hold "
                f"n' down, and it is {match.without:,}. EM + spline and the joint model take all "
                "as they are."
            )
        return (
            f"With {count} {words.annotators} per {words.image} nothing more can be said: the "
            "naive estimates show no curve. EM + spline and the joint model allow for so few."
        )
    # The jackknife extrapolates the naive gap to infinitely many annotators.
    moved = naive - jackknife
    way = "fall" if moved > 0 else "rise"
    verdict = "more would change it" if abs(moved) >= 0.002 else "more would hardly change it"
    error_text = ""
    if error is not None:
        error_text = f" (standard error over {words.images} {write_points(error)})"
        # A change within two standard errors is noise.
        if abs(moved) < 2 * error:
            verdict = "a change within its noise, so more may not change it"
    return (
        f"From {count} to ever more {words.annotators} the gap that naive matching leaves would "
        f"{way} from {write_points(naive)} to about {write_points(jackknife)} points{error_text}: "
        f"{verdict}. EM + spline and the joint model allow for the noise of as many as there are."
    )


def pairs_sentence(table: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """Count the pairs with a clear winner, and those that change places."""
    probability = table["probability"]
    sure = int(((probability >= CLEAR_PROBABILITY) | (probability <= 1 - CLEAR_PROBABILITY)).sum())
    turned = int((table["raw_difference"] * table["difference"] < 0).sum())
    clear, places = (str(n) if n else "none" for n in (sure, turned))
    have = "has" if sure < 2 else "have"
    return (
        f"Of {number(len(table), 'pair')} of {words.classifiers}, {clear} {have} a better one with "
        f"at least {percent(CLEAR_PROBABILITY)} % probability; {places} "
        f"{'changes' if turned < 2 else 'change'} places once selection is removed."
    )


def ranks_sentence(table: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """Name the best classifier, as far as the posterior decides, and those whose rank moves."""
    first = table.sort("best", descending=True)
    name, best = plain_text(first["classifier"][0]), float(first["best"][0])
    if best >= 0.95:
        text = f"{name} is the best with probability {percent(best, 0)} %"
    else:
        close = first.filter(pl.col("best") >= 0.05).head(5)
        names = ", ".join(
            f"{plain_text(n)} ({percent(b, 0)} %)"
            for n, b in close.select("classifier", "best").iter_rows()
        )
        text = f"No clear winner: {names or name}"
    moved = (table["rank"].rank("average") - table["replication_rank"]).abs()
    most = float(np.max(moved.to_numpy()))
    if most < 1:
        return (
            f"{text}. Removing selection changes no {words.classifier}'s place on the replication."
        )
    who = plain_text(table["classifier"][int(np.argmax(moved.to_numpy()))])
    places = "1 place" if round(most) == 1 else f"{most:.0f} places"
    return f"{text}. Removing selection moves {who} the most, by {places}."
