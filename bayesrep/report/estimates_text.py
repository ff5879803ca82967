"""Tables of estimates: by classifier, over all of them, ranks, pairs, and what they rest on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from bayesrep.errors import plain_text
from bayesrep.report.answer import Estimate, is_share
from bayesrep.report.methods import label_of
from bayesrep.report.select_pairs import closest_pairs
from bayesrep.report.table_format import (
    MISSING_TEXT,
    Cell,
    Row,
    cell_text,
    group_quantities,
    list_rows,
    percent,
)
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words

if TYPE_CHECKING:  # most tables are made without JAX
    from bayesrep.estimators.annotators import Linearity


MAX_SLOPE = 10.0
"""Slope of a line through classifiers, about 1 in every benchmark, beyond which it says nothing."""
TEXT_ROWS = 10
"""Rows of a long table that are shown unless more are asked for."""


def spread(count: int, n_rows: int = 10) -> list[int]:
    """At most ``wanted`` positions spread evenly over ``count``."""
    return sorted(set(np.linspace(0, count - 1, min(count, n_rows)).round().astype(int).tolist()))


def side_by_side(table: pl.DataFrame, top: int | None, words: Words = IMAGE_WORDS) -> str:
    """Rows of `bayesrep.estimate`, a line a classifier and a column a method, in percent."""
    names = table["classifier"].unique(maintain_order=True).to_list()
    methods = table["method"].unique(maintain_order=True).to_list()
    rows: dict[str, dict[str, Any]] = {name: {"classifier": name, "of": {}} for name in names}
    for row in table.iter_rows(named=True):
        rows[row["classifier"]] |= {"reference": row["reference_accuracy"], **row}
        rows[row["classifier"]]["of"][row["method"]] = row

    cells: dict[str, Cell] = {words.classifier: "{classifier}", "reference": "{reference:1p}"}
    cells |= {label_of(each): f"{{of[{each}][adjusted_accuracy]:1p}}" for each in methods}
    last = methods[-1]
    if table.filter(pl.col("method") == last)["lower"].null_count() < len(names):
        cells[f"95 % ({label_of(last)})"] = f"{{of[{last}][lower]:1p}} to {{of[{last}][upper]:1p}}"
    every = list(rows.values())
    chosen = _choose_places(len(every), top)
    more = remaining(len(chosen), len(every), words.classifiers)
    return list_rows([every[i] for i in chosen], cells) + more


def _choose_places(count: int, top: int | None) -> list[int]:
    """Places of the classifiers that are shown: the first so many, or some spread over all."""
    return spread(count, TEXT_ROWS) if top is None else list(range(min(top, count)))


def remaining(n_shown: int, total: int, nouns: str) -> str:
    """Say that not all rows are shown, and how to see them; empty where all are."""
    if n_shown >= total:
        return ""
    return f"\n{n_shown} of {total:,} {nouns}; --top all shows them, --format csv prints them."


def estimates_table(table: pl.DataFrame, top: int | None, words: Words = IMAGE_WORDS) -> str:
    """Rows of `bayesrep.summarize`, accuracies in percent; those that `side_by_side` would show."""
    cells: dict[str, Cell] = {
        words.classifier: "{classifier}",
        "method": _label,
        "reference": "{reference_accuracy:1p}",
        "replication": "{replication_accuracy:1p}",
        "adjusted": "{adjusted_accuracy:1p}",
        "95 % interval": "{lower:1p} to {upper:1p}",
        "gap": "{bias_corrected_gap:1p}",
        "R-hat": "{rhat:.3f}",
        "ESS": lambda row: (
            MISSING_TEXT
            if None in (sizes := (row["ess_bulk"], row["ess_tail"]))
            else f"{min(sizes):.0f}"
        ),
    }
    chosen = _choose_places(len(table), top)
    return list_rows(table[chosen], cells) + remaining(len(chosen), len(table), words.classifiers)


def _label(row: Row) -> str:
    return label_of(row["method"])


def gaps_table(table: pl.DataFrame, *, clear: bool) -> str:
    """Rows of `bayesrep.estimate_gaps`, one line a method; gaps in points, shares in percent."""

    def share(row: Row) -> str:
        value = row["share_explained"]
        return _with_interval(value, "0p") if clear and _tells_share(value) else MISSING_TEXT

    def tells(row: Row) -> bool:
        slope = row["slope"]["estimate"]
        return slope is None or abs(slope) <= MAX_SLOPE

    cells: dict[str, Cell] = {
        "method": _label,
        "bias-corrected gap (points)": lambda row: _with_interval(row["bias_corrected_gap"]),
        "selection gap (points)": lambda row: _with_interval(row["selection_gap"]),
        "share explained (%)": share,
        "slope": lambda row: _with_interval(row["slope"], ".3f") if tells(row) else MISSING_TEXT,
    }
    return list_rows(group_quantities(table, "method"), cells)


def _tells_share(row: Row) -> bool:
    value = row["estimate"]
    return value is not None and is_share(Estimate(value, row["lower"], row["upper"]))


def gaps_text(table: pl.DataFrame, *, clear: bool) -> str:
    """Explain the columns of `gaps_table`, and why a share is missing."""
    missing = explain_missing_shares(table, clear=clear)
    # In Markdown a line right under a table were a row of it.
    return f"{gaps_table(table, clear=clear)}\n" + (f"\n{missing}" if missing else "")


def explain_missing_shares(table: pl.DataFrame, *, clear: bool) -> str:
    """Why `gaps_table` leaves shares out, as a line; empty where it has all of them."""
    if not clear:
        return "No share explained (-): it is not clear that there is a drop.\n"
    if all(map(_tells_share, table.filter(quantity="share_explained").iter_rows(named=True))):
        return ""
    return "No share explained (-) where it, or its interval, goes beyond 0 to 100 %.\n"


def _with_interval(row: Row, form: str = "2p") -> str:
    """An estimate with its interval, if it has one."""
    text = cell_text(row, f"{{estimate:{form}}}")
    interval = cell_text(row, f"({{lower:{form}}} to {{upper:{form}}})")
    return text if interval == MISSING_TEXT else f"{text} {interval}"


def populations_text(table: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """Summarize in one line what `bayesrep.summarize_gaps` finds for the image populations."""
    by = {row["quantity"]: row for row in table.iter_rows(named=True)}
    gap = _with_interval(by["population_gap"])
    text = f"For other {words.images} of the same populations: gap {gap}"
    if by["population_slope"]["estimate"] is not None:
        text += f", slope {_with_interval(by['population_slope'], '.3f')}"
    return f"{text}.".replace("-", "\N{MINUS SIGN}")


def ranks_table(table: pl.DataFrame, top: int | None = None, words: Words = IMAGE_WORDS) -> str:
    """The first rows of `bayesrep.rank_classifiers`; of one classifier, that there are none."""
    if len(table) == 1:
        return _only_classifier_sentence(str(table["classifier"][0]), words)
    cells: dict[str, Cell] = {
        words.classifier: "{classifier}",
        "adjusted": "{adjusted_accuracy:1p}",
        "rank": "{rank:.1f}",
        "95 % interval": "{lower:g} to {upper:g}",
        "on reference": "{reference_rank:g}",
        "on replication": "{replication_rank:g}",
        "first (%)": "{best:0p}",
    }
    size = TEXT_ROWS if top is None else top
    more = remaining(min(size, len(table)), len(table), words.classifiers)
    return list_rows(table.head(size), cells) + more


def _only_classifier_sentence(name: str, words: Words) -> str:
    return f"{plain_text(name)} is the only {words.classifier}: there is none to compare it with."


def pairs_table(
    table: pl.DataFrame,
    classifiers: Sequence[str],
    top: int | None = None,
    words: Words = IMAGE_WORDS,
) -> str:
    """The closest rows of `bayesrep.compare_classifiers`, differences in points."""
    if len(classifiers) == 1:
        return _only_classifier_sentence(classifiers[0], words)
    cells: dict[str, Cell] = {
        words.classifier: "{classifier}",
        "other": "{other}",
        "as measured": "{raw_difference:2p}",
        "adjusted (points)": "{difference:2p}",
        "95 % interval": "{lower:2p} to {upper:2p}",
        "better (%)": "{probability:1p}",
    }
    size = TEXT_ROWS if top is None else top
    closest = closest_pairs(table, size)
    return list_rows(closest, cells) + remaining(len(closest), len(table), "pairs")


def images_table(table: pl.DataFrame, words: Words = IMAGE_WORDS, n_shown: int = 10) -> str:
    """The images of `bayesrep.describe_images` hardest for classifiers, and for people."""
    machines, people = (
        list_rows(
            rows.head(n_shown),
            {
                words.image: "{image}",
                "selected": "{selected}/{shown}",
                "frequency": "{selection_frequency:1p} ± {selection_frequency_sd:1p}",
                f"{words.classifiers} right": "{right:0p}",
                "expected": "{expected:0p}",
                "difficulty": "{difficulty:.2f} ± {difficulty_sd:.2f}",
            },
        )
        for rows in (table.sort("difficulty", descending=True), table.sort("selection_frequency"))
    )
    return (
        f"Hardest for {words.classifiers}, given how {words.people} see them:\n\n{machines}"
        f"\n\nHardest for {words.people}:\n\n{people}"
    )


def components_table(table: pl.DataFrame) -> str:
    """Rows of `compare_components`; the best of each criterion and data set has a star."""
    criteria = {"aic": pl.Expr.min, "bic": pl.Expr.min, "held_out_log_likelihood": pl.Expr.max}
    best = table.with_columns(
        best(pl.col(name)).over("dataset").alias(f"best_{name}") for name, best in criteria.items()
    )

    def starred_value(name: str) -> Cell:
        return lambda row: f"{row[name]:.2f}{'*' if row[name] == row[f'best_{name}'] else ' '}"

    cells: dict[str, Cell] = {
        "data set": "{dataset}",
        "K": "{components}",
        "log likelihood": "{log_likelihood:.2f}",
        "AIC ": starred_value("aic"),
        "BIC ": starred_value("bic"),
        "held out ": starred_value("held_out_log_likelihood"),
        "degenerate": "{degenerate}",
        "converged": lambda row: "yes" if row["converged"] else "no",
    }
    return list_rows(best, cells)


def annotators_table(
    table: pl.DataFrame, line: "Linearity | None", words: Words = IMAGE_WORDS
) -> str:
    """Rows of `compare_annotators` as mean gaps, one line a number of annotators; the verdict."""
    gaps = (
        (pl.col("reference_accuracy") - pl.col(name)).mean().alias(name)
        for name in ("naive", "jackknife")
    )
    cells: dict[str, Cell] = {
        words.annotators: "{annotators}",
        "naive": "{naive:2p}",
        "jackknife": "{jackknife:2p}",
    }
    means = list_rows(table.group_by("annotators", maintain_order=True).agg(*gaps), cells)
    text = [f"Mean bias-corrected gap over {words.classifiers}, in points:", means]
    if line is not None:
        reference = float(table["reference_accuracy"].mean())  # type: ignore[arg-type]
        from_half, from_all = (
            percent(reference - accuracy, 2)
            for accuracy in (line.jackknife_from_half, line.jackknife)
        )
        text += [
            "",
            f"A line in 1/n through the naive estimates of n = {line.half} {words.annotators} or "
            f"more has R² = {line.r_squared:.4f}.",
            f"The jackknife from {line.half} {words.annotators} leaves a gap of {from_half} "
            f"points, from {line.annotators} one of {from_all}.",
            f"If what the line leaves is quadratic in 1/n, the latter is "
            f"{percent(abs(line.left), 2)} points too {'large' if line.left > 0 else 'small'}.",
        ]
    return "\n".join(text)


def forward_table(table: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """Tabulate naive estimates extrapolated to other numbers of annotators."""
    cells: dict[str, Cell] = {
        words.annotators: "{annotators}",
        "naive": "{gap:2p}",
        "too much": "{left:2p}",
    }
    last = table.to_dicts()[-1]
    return (
        f"The naive gap by EM + spline, and by how much it is above the gap without noise:\n"
        f"{list_rows(table, cells)}\n\nWith {last['annotators']:,} {words.annotators} the naive "
        f"estimate would still be {percent(abs(last['left']), 2)} points off."
    )


def method_table(methods: pl.DataFrame) -> str:
    """One row per method of the demo: mean gap beside the truth, and what it is off by."""
    cells: dict[str, Cell] = {
        "method": _label,
        "gap (points)": "{mean_gap:2p}",
        "95 % interval": "{lower:2p} to {upper:2p}",
        "error (points)": "{mean_error:+.2f}",
        "explained (% of the drop)": "{share_explained:0p}",
        "intervals right (%)": "{coverage:0p}",
    }
    return list_rows(methods.with_columns(pl.col("mean_error") * 100), cells)
