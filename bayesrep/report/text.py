"""Tables for a terminal: plain text, percent, one line a row; or Markdown or LaTeX for a paper."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from string import Formatter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from bayesrep.checks.finding import LEGEND
from bayesrep.errors import plain_text, quote_word
from bayesrep.report.answer import Estimate, is_share, measured_drop
from bayesrep.report.methods import label_of
from bayesrep.report.pairs import closest_pairs
from bayesrep.studies.shown import align_rows, number
from bayesrep.studies.study import Study
from bayesrep.studies.words import VOICE, words_of

if TYPE_CHECKING:  # most tables are made without JAX
    from bayesrep.answers.crowd import CrowdDescription
    from bayesrep.answers.quality import Cleaned
    from bayesrep.checks.diagnosis import Diagnosis
    from bayesrep.estimators.annotators import Linearity
    from bayesrep.studies.allows import Allowed
    from bayesrep.studies.selection import Selection

MISSING_TEXT = "-"
FORMAT: ContextVar[str] = ContextVar("FORMAT", default="text")
"""How tables are written: a key of `WRITERS`."""
STEEPEST = 10.0
"""Slope of a line through classifiers, about 1 in every benchmark, beyond which it says nothing."""
SHOWN_ROWS = 10
"""Rows of a long table that are shown unless more are asked for."""


class Name(str):
    """A cell that is somebody's word, of which no part is a number."""


Row: TypeAlias = Mapping[str, Any]
Cell: TypeAlias = str | Callable[[Row], str]
"""What a column shows of a row: a format string of its names (`_CellFormatter`), or a function."""


def percent(value: float | None, digits: int = 1) -> str:
    """A fraction as percent, '-' where there is none."""
    if value is None or not np.isfinite(value):
        return MISSING_TEXT
    text = f"{100 * value:.{digits}f}"
    return text if text.strip("-0.") else text.lstrip("-")


def ends(
    lower: float | None, upper: float | None, digits: int = 1, none: str = MISSING_TEXT
) -> str:
    """An interval as percent."""
    return none if lower is None else f"{percent(lower, digits)} to {percent(upper, digits)}"


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, as `FORMAT` has it; the first column to the left, the others to the right."""
    return WRITERS[FORMAT.get()](_translate_cells((header, *rows)))


def _translate_cells(table: Iterable[Sequence[str]]) -> list[list[str]]:
    """The cells in the words of the study that a command is about, before they are put in line."""
    say = VOICE.get()

    def translate_cell(cell: str) -> str:
        text = say(plain_text(cell))
        return Name(text) if isinstance(cell, Name) else text

    return [list(map(translate_cell, row)) for row in table]


def _align_right(table: Sequence[Sequence[str]]) -> str:
    header = table[0]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join(cells).rstrip()

    return "\n".join([line(table[0]), "  ".join("-" * w for w in widths), *map(line, table[1:])])


_NUMBERS = re.compile(r"(?:to|[\s\d.,()%±*+-])+")
_HYPHEN = re.compile(r"(?<![\w-])-(?=[\d.])")


def _use_minus_signs(row: Sequence[str]) -> list[str]:
    """Numbers with real minus signs, as in a paper; names, which rows begin with, as they are."""
    return [row[0], *map(_with_minus, row[1:])]


def _with_minus(cell: str) -> str:
    is_number = not isinstance(cell, Name) and _NUMBERS.fullmatch(cell)
    return _HYPHEN.sub("\N{MINUS SIGN}", cell) if is_number else cell


_MARKDOWN_SIGNS = re.compile(r"[\\|<>\[\]*`~$]|&(?=#?\w+;)|(?<!\w)_|_(?!\w)")
"""What Markdown may take for marks: an underline within a word is none."""


def _markdown(table: Sequence[Sequence[str]]) -> str:
    header, *rows = [
        [_MARKDOWN_SIGNS.sub(r"\\\g<0>", cell) for cell in _use_minus_signs(row)] for row in table
    ]
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "\N{MINUS SIGN}": "$-$",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def _latex(table: Sequence[Sequence[str]]) -> str:
    """A tabular; its rules take the package booktabs."""
    header, *rows = [
        ["".join(_LATEX.get(c, c) for c in cell) for cell in _use_minus_signs(row)] for row in table
    ]
    body = [" & ".join(row) + r" \\" for row in rows]
    opening = rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}"
    head = " & ".join(header) + r" \\"
    lines = [opening, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines)


WRITERS: Mapping[str, Callable[[Sequence[Sequence[str]]], str]] = {
    "text": _align_right,
    "markdown": _markdown,
    "latex": _latex,
}


class _Missing(Exception):
    """A cell lacks what it shows."""


class _CellFormatter(Formatter):
    """Format strings; ``{name:2p}`` is a share as percent to two digits."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            raise _Missing
        if format_spec.endswith("p"):
            return percent(value, int(format_spec[:-1]))
        return format(value, format_spec)


def list_rows(rows: pl.DataFrame | Iterable[Row], shown: Mapping[str, Cell]) -> str:
    """Rows of a table under each other: of every column its heading, and what it shows."""
    each = rows.iter_rows(named=True) if isinstance(rows, pl.DataFrame) else rows
    return columns(list(shown), [[_cell(row, cell) for cell in shown.values()] for row in each])


def _cell(row: Row, cell: Cell) -> str:
    try:
        if callable(cell):
            return cell(row)
        value = row.get(cell[1:-1])  # where a name alone is shown
        return Name(value) if isinstance(value, str) else _CellFormatter().vformat(cell, (), row)
    except _Missing:
        return MISSING_TEXT


def describe_study(study: Study) -> str:
    """What a study holds, a line for each data set and the raw gap."""
    words = words_of(study)
    lines = [f"{plain_text(study.name)}: {number(len(study.classifiers), words.classifier)}"]
    for role, data in study.datasets.items():
        low, high = int(data.shown.min()), int(data.shown.max())
        several = f"{low:,} to {high:,} {words.annotators}"
        shown = number(low, words.annotator) if low == high else several
        frequency = percent(float((data.selected / data.shown).mean()), 2)
        lines.append(
            f"  {role} ({plain_text(data.name)}): {number(len(data.images), words.image)}, "
            f"{shown} each, mean selection frequency {frequency} %"
        )
        if data.selection is not None:
            lines.append(f"    {selection_text(data.selection)}")
    if study.classifiers:
        gap = study.reference.correct.mean() - study.replication.correct.mean()
        lines.append(
            f"  mean accuracy drop, reference to replication: {percent(float(gap), 2)} points"
        )
        if measured_drop(study).is_below_zero:
            lines.append(
                f"  {words.classifiers} are clearly more accurate on the replication: look whether "
                "the roles are swapped (--reference, --replication)"
            )
        wrong = [
            plain_text(data.name) for data in study.datasets.values() if not data.correct.any()
        ]
        if wrong:
            lines.append(
                f"  no {words.classifier} is ever right on {' and '.join(wrong)}: check the labels"
            )
    if study.provenance.get("source") == "cifar10h":
        lines.append("  a placebo: both are random parts of one data set, and the true gap is zero")
    return "\n".join(lines)


def allowed_text(what: str, found: "Sequence[Allowed]") -> str:
    """What `bayesrep doctor` found: of each thing that may be wanted, whether it can be had."""
    lines = [f"This is {what}.", ""]
    for each in found:
        lines.append(f"{each.what}: {each.state}")
        lines.append(f"    {plain_text(each.because)}.")
        if each.missing:
            lines.append(f"    Missing: {plain_text(each.missing)}.")
    return "\n".join(lines)


def selection_text(selection: "Selection") -> str:
    """By which rule images were kept, and what follows for the counts at hand."""
    if selection.is_by_others:
        return (
            f"kept by the rule {selection.bare_rule}, on other answers: the counts at hand were "
            "taken afterwards, and nothing about them is to be corrected"
        )
    return (
        f"kept by these very counts ({selection.rule}): fits condition on it, point estimates do "
        "not"
    )


def remeasured_table(table: pl.DataFrame) -> str:
    """Rows of `bayesrep.remeasure`, and in words what they say."""

    def value_with_interval(name: str) -> Callable[[Row], str]:
        def cell(row: Row) -> str:
            if row[name] is None:
                return MISSING_TEXT
            ends = f"{percent(row[f'{name}_lower'], 2)} to {percent(row[f'{name}_upper'], 2)}"
            return f"{percent(row[name], 2)} ({ends})"

        return cell

    shown: dict[str, Cell] = {
        "data set": "{dataset}",
        "kept by": lambda row: row["selection"] or "no rule",
        "items": "{images:,}",
        "measured (%)": "{measured:2p}",
        "truly selected (%)": value_with_interval("frequency"),
        "falls by (points)": lambda row: percent(-row["regression"], 2),
        "would drop (%)": value_with_interval("dropped"),
    }
    lines = [list_rows(table, shown), ""]
    for row in table.iter_rows(named=True):
        if row["selection"] is not None:
            lines.append(
                f"Measured again, {plain_text(row['dataset'])} would be selected "
                f"{value_with_interval('frequency')(row)} % of the time, where "
                f"{percent(row['measured'], 2)} % was measured, and "
                f"{value_with_interval('dropped')(row)} % of its items would not pass the rule "
                "again (95 % intervals, about these very items)."
            )
    if table["selection"].null_count() == len(table):
        lines.append(
            "No data set states by which rule its images were kept: import it with "
            "--selection 'NAME=all of 6'."
        )
    return "\n".join(lines)


def crowd_text(crowd: "CrowdDescription") -> str:
    """What `bayesrep.describe_crowd` found; of single workers only how many answer oddly."""
    shown: dict[str, Cell] = {
        "data set": "{dataset}",
        "images": "{images:,}",
        "answers": "{answers:,}",
        "workers": "{workers:,}",
        "answers each": "{answers_a_worker:,.0f}",
        "selected": "{selection_frequency:2p}",
        "s.e. images": "{error_images:2p}",
        "s.e. workers": "{error_workers:2p}",
        "correlation": "{correlation:.3f}",
        "worth answers": "{effective_answers:,.0f}",
    }
    lines = [list_rows(crowd.datasets, shown), "", plain_text(crowd.sentence)]
    lines += [
        f"{plain_text(row['dataset'])}: workers select {percent(abs(row['drift']), 2)} points "
        f"{'more' if row['drift'] > 0 else 'less'} often at the end of their answers than at the "
        f"beginning (s.e. {percent(row['drift_error'], 2)})."
        for row in crowd.datasets.to_dicts()
        if row["drift"] is not None
    ]
    named = {"always_yes": "always yes", "always_no": "always no", "at_random": "at random"}
    for way, words in named.items():
        odd = crowd.workers.filter(pl.col(way) > 0.5)
        if len(odd):
            share = float(odd["answers"].sum()) / float(crowd.workers["answers"].sum())
            lines.append(
                f"{len(odd)} worker{'s' if len(odd) != 1 else ''} probably "
                f"answer{'s' if len(odd) == 1 else ''} {words}: {percent(share, 1)} % of all "
                "answers."
            )
    return "\n".join(lines)


def aggregators_text(table: pl.DataFrame) -> str:
    """What `bayesrep.answers.aggregate_answers` found."""
    shown: dict[str, Cell] = {
        "data set": "{dataset}",
        "by": "{method}",
        "mean": "{mean:2p}",
        "above 1/2": "{yes:2p}",
        "certain": "{certain:2p}",
        "as k/n": "{agreement:2p}",
    }
    return (
        f"{list_rows(table, shown)}\n\nAggregators look for one true answer per image; the "
        "analysis takes the selection frequency, which has none."
    )


def answers_text(table: pl.DataFrame, left_out: Mapping[str, int]) -> str:
    """What a table of answers holds, what was left out of it, and what is in the way of a study."""
    shown: dict[str, Cell] = {
        "data set": "{dataset}",
        "images": "{images:,}",
        "questions": "{questions:,}",
        "workers": "{workers:,}",
        "answers": "{answers:,}",
        "yes": "{yes:2p}",
    }
    lines = [list_rows(table, shown), ""]
    lines += [f"Left out, {why}: {count:,} answers." for why, count in left_out.items() if count]
    for row in table.iter_rows(named=True):
        if row["repeated"]:
            lines.append(
                f"{plain_text(row['dataset'])}: {row['repeated']:,} answers repeat a worker's "
                "about the same question; keep the first with bayesrep clean --rules repeats."
            )
        if row["questions"] > row["images"]:
            lines.append(
                f"{plain_text(row['dataset'])}: images were asked about several labels; keep the "
                "answers about their own with --labels."
            )
    return "\n".join(lines)


LEAST_ERROR = 1e-4
"""Smallest error of a mean selection frequency that is reported: a hundredth of a point."""


def counted_text(datasets: pl.DataFrame) -> str:
    """What `bayesrep.answers.count_answers` found of every data set."""
    shown: dict[str, Cell] = {
        "data set": "{dataset}",
        "images": "{images:,}",
        "answers": "{answers:,}",
        "workers": "{workers:,}",
        "selected": "{selection_frequency:2p}",
        "s.e. images": "{error_images:2p}",
        "s.e. workers": "{error_workers:2p}",
    }
    text, largest = list_rows(datasets, shown), max(datasets["error_workers"].to_list())
    if largest < LEAST_ERROR:
        return text
    return (
        f"{text}\n\nCounts do not say who answered: if each data set had a crowd of its own, "
        f"state --crowd-sd {largest:.2g} where intervals are asked for."
    )


def cleaned_text(cleaned: "Cleaned") -> str:
    """What rules of quality control left out, and what that did to the mean frequencies."""
    dropped: dict[str, Cell] = {
        "rule": "{rule}",
        "workers": "{workers:,}",
        "assignments": "{assignments:,}",
        "answers left out": "{answers:,}",
    }
    effect: dict[str, Cell] = {
        "data set": "{dataset}",
        "images": "{images:,}",
        "images lost": "{images_lost:,}",
        "selected before": "{before:2p}",
        "after": "{after:2p}",
    }
    return (
        f"{list_rows(cleaned.dropped, dropped)}\n\n{list_rows(cleaned.effect, effect)}\n\n"
        f"{len(cleaned.kept):,} answers are left."
    )


def left_out_lines(left_out: Mapping[str, Mapping[str, str]]) -> list[str]:
    """How many images each data set is left without, a line each."""
    return [
        f"{plain_text(dataset)}: {len(images):,} image{'s' if len(images) != 1 else ''} left out, "
        "which could not be decoded"
        for dataset, images in left_out.items()
    ]


def spread(count: int, wanted: int = 10) -> list[int]:
    """At most ``wanted`` positions spread evenly over ``count``."""
    return sorted(set(np.linspace(0, count - 1, min(count, wanted)).round().astype(int).tolist()))


def side_by_side(table: pl.DataFrame, top: int | None) -> str:
    """Rows of `bayesrep.estimate`, a line a classifier and a column a method, in percent.

    Of many classifiers some are shown, spread over all, and how many there are is said; with `top`
    the first so many.
    """
    names = table["classifier"].unique(maintain_order=True).to_list()
    methods = table["method"].unique(maintain_order=True).to_list()
    rows: dict[str, dict[str, Any]] = {name: {"classifier": name, "of": {}} for name in names}
    for row in table.iter_rows(named=True):
        rows[row["classifier"]] |= {"reference": row["reference_accuracy"], **row}
        rows[row["classifier"]]["of"][row["method"]] = row

    def accuracy_cell(method: str) -> Cell:
        return lambda row: percent(row["of"][method]["adjusted_accuracy"])

    shown: dict[str, Cell] = {"classifier": "{classifier}", "reference": "{reference:1p}"}
    shown |= {label_of(method): accuracy_cell(method) for method in methods}
    known = table.filter(pl.col("method") == methods[-1])["lower"].null_count() < len(names)
    if known:
        last = methods[-1]
        shown[f"95 % ({label_of(last)})"] = lambda row: ends(
            row["of"][last]["lower"], row["of"][last]["upper"]
        )
    every = list(rows.values())
    chosen = _choose_places(len(every), top)
    return list_rows([every[i] for i in chosen], shown) + remaining(len(chosen), len(every))


def _choose_places(count: int, top: int | None) -> list[int]:
    """Places of the classifiers that are shown: the first so many, or some spread over all."""
    return spread(count, SHOWN_ROWS) if top is None else list(range(min(top, count)))


def remaining(shown: int, total: int, noun: str = "classifier") -> str:
    """Say that not all rows are shown, and how to see them; empty where all are."""
    return (
        ""
        if shown >= total
        else f"\n{shown} of {total:,} {noun}s; --all shows them, --csv writes them."
    )


def estimates_table(table: pl.DataFrame, top: int | None) -> str:
    """Rows of `bayesrep.summarize`, accuracies in percent; those that `side_by_side` would show."""
    shown: dict[str, Cell] = {
        "classifier": "{classifier}",
        "method": _label,
        "reference": "{reference_accuracy:1p}",
        "replication": "{replication_accuracy:1p}",
        "adjusted": "{adjusted_accuracy:1p}",
        "95 % interval": "{lower:1p} to {upper:1p}",
        "gap": "{bias_corrected_gap:1p}",
        "R-hat": "{rhat:.3f}",
        "ESS": _effective,
    }
    chosen = _choose_places(len(table), top)
    return list_rows(table[chosen], shown) + remaining(len(chosen), len(table))


def _label(row: Row) -> str:
    return label_of(row["method"])


def _effective(row: Row) -> str:
    sizes = row["ess_bulk"], row["ess_tail"]
    return MISSING_TEXT if None in sizes else f"{min(sizes):.0f}"


def predictions_table(table: pl.DataFrame) -> str:
    """Rows of `bayesrep.predict`; accuracies in percent."""
    shown: dict[str, Cell] = {
        "classifier": "{classifier}",
        "images": "{images:,}",
        "top-1": "{top1:2p}",
        "top-5": "{top5:2p}",
        "seconds": "{seconds:.1f}",
        "failures": "{failures:,}",
        "status": "{status}",
    }
    return list_rows(table, shown)


def gaps_table(table: pl.DataFrame, *, clear: bool) -> str:
    """Rows of `bayesrep.estimate_gaps`, one line a method; gaps in points, shares in percent.

    Without a ``clear`` drop there is nothing to take a share of, and beyond 0 and 1 it is none. A
    line through classifiers that hardly differ has any slope, and is left out.
    """

    def share(row: Row) -> str:
        told = row["share_explained"]
        return _with_interval(told, "0p") if clear and _tells_share(told) else MISSING_TEXT

    def tells(row: Row) -> bool:
        slope = row["slope"]["estimate"]
        return slope is None or abs(slope) <= STEEPEST

    shown: dict[str, Cell] = {
        "method": _label,
        "bias-corrected gap (points)": lambda row: _with_interval(row["bias_corrected_gap"]),
        "selection gap (points)": lambda row: _with_interval(row["selection_gap"]),
        "share explained (%)": share,
        "slope": lambda row: _with_interval(row["slope"], ".3f") if tells(row) else MISSING_TEXT,
    }
    return list_rows(_by_quantity(table, "method"), shown)


def _tells_share(row: Row) -> bool:
    value = row["estimate"]
    return value is not None and is_share(Estimate(value, row["lower"], row["upper"]))


def explain_missing_shares(table: pl.DataFrame, *, clear: bool) -> str:
    """Why `gaps_table` leaves shares out, as a line; empty where it has all of them."""
    if not clear:
        return "No share explained (-): it is not clear that there is a drop.\n"
    rows = table.filter(quantity="share_explained").iter_rows(named=True)
    if all(map(_tells_share, rows)):
        return ""
    return "No share explained (-) where it, or its interval, goes beyond 0 to 100 %.\n"


def _by_quantity(table: pl.DataFrame, *names: str) -> list[dict[str, Any]]:
    """A row for each of what ``names`` tell apart, with the rows of its quantities by name."""
    return [
        {
            **dict(zip(names, each, strict=True)),
            **{row["quantity"]: row for row in rows.iter_rows(named=True)},
        }
        for each, rows in table.group_by(names, maintain_order=True)
    ]


def _with_interval(row: Row, form: str = "2p") -> str:
    """An estimate with its interval, if it has one."""
    told = _cell(row, f"{{estimate:{form}}}")
    interval = _cell(row, f"({{lower:{form}}} to {{upper:{form}}})")
    return told if interval == MISSING_TEXT else f"{told} {interval}"


def populations_text(table: pl.DataFrame) -> str:
    """What `bayesrep.summarize_gaps` says of the reference's population, in one line."""
    by = {row["quantity"]: row for row in table.iter_rows(named=True)}
    gap = _with_interval(by["population_gap"])
    told = f"For other images of the same populations: gap {gap}"
    if by["population_slope"]["estimate"] is not None:
        told += f", slope {_with_interval(by['population_slope'], '.3f')}"
    return f"{told}.".replace("-", "\N{MINUS SIGN}")


def ranks_table(table: pl.DataFrame, top: int | None = None) -> str:
    """The first rows of `bayesrep.rank_classifiers`; of one classifier, that there are none."""
    if len(table) == 1:
        return _only_classifier_sentence(str(table["classifier"][0]))
    shown: dict[str, Cell] = {
        "classifier": "{classifier}",
        "adjusted": "{adjusted_accuracy:1p}",
        "rank": "{rank:.1f}",
        "95 % interval": "{lower:g} to {upper:g}",
        "on reference": "{reference_rank:g}",
        "on replication": "{replication_rank:g}",
        "first (%)": "{best:0p}",
    }
    size = SHOWN_ROWS if top is None else top
    return list_rows(table.head(size), shown) + remaining(min(size, len(table)), len(table))


def _only_classifier_sentence(classifier: str) -> str:
    return f"{plain_text(classifier)} is the only classifier: there is none to compare it with."


def pairs_table(table: pl.DataFrame, classifiers: Sequence[str], top: int | None = None) -> str:
    """The closest rows of `bayesrep.compare_classifiers`, differences in points."""
    if len(classifiers) == 1:
        return _only_classifier_sentence(classifiers[0])
    shown: dict[str, Cell] = {
        "classifier": "{classifier}",
        "other": "{other}",
        "as measured": "{raw_difference:2p}",
        "adjusted (points)": "{difference:2p}",
        "95 % interval": "{lower:2p} to {upper:2p}",
        "better (%)": "{probability:1p}",
    }
    size = SHOWN_ROWS if top is None else top
    closest = closest_pairs(table, size)
    return list_rows(closest, shown) + remaining(len(closest), len(table), "pair")


def images_table(table: pl.DataFrame, shown: int = 10) -> str:
    """The images of `bayesrep.describe_images` hardest for classifiers, and for people."""
    machines, people = (
        list_rows(
            rows.head(shown),
            {
                "image": "{image}",
                "data set": "{dataset}",
                "selected": "{selected}/{shown}",
                "frequency": "{selection_frequency:1p} ± {selection_frequency_sd:1p}",
                "classifiers right": "{right:0p}",
                "difficulty": "{difficulty:.2f} ± {difficulty_sd:.2f}",
            },
        )
        for rows in (table.sort("difficulty", descending=True), table.sort("selection_frequency"))
    )
    return (
        f"Hardest for classifiers, given how people see them:\n\n{machines}"
        f"\n\nHardest for people:\n\n{people}"
    )


def components_table(table: pl.DataFrame) -> str:
    """Rows of `compare_components`; the best of each criterion and data set has a star."""
    criteria = {"aic": pl.Expr.min, "bic": pl.Expr.min, "held_out_log_likelihood": pl.Expr.max}
    best = table.with_columns(
        best(pl.col(name)).over("dataset").alias(f"best_{name}") for name, best in criteria.items()
    )

    def starred_value(name: str) -> Cell:
        return lambda row: f"{row[name]:.2f}{'*' if row[name] == row[f'best_{name}'] else ' '}"

    shown: dict[str, Cell] = {
        "data set": "{dataset}",
        "K": "{components}",
        "log likelihood": "{log_likelihood:.2f}",
        "AIC ": starred_value("aic"),
        "BIC ": starred_value("bic"),
        "held out ": starred_value("held_out_log_likelihood"),
        "degenerate": "{degenerate}",
        "converged": lambda row: "yes" if row["converged"] else "no",
    }
    return list_rows(best, shown)


def annotators_table(table: pl.DataFrame, line: "Linearity | None") -> str:
    """Rows of `compare_annotators` as mean gaps, one line a number of annotators; the verdict."""
    gaps = (
        (pl.col("reference_accuracy") - pl.col(name)).mean().alias(name)
        for name in ("naive", "jackknife")
    )
    shown: dict[str, Cell] = {
        "annotators": "{annotators}",
        "naive": "{naive:2p}",
        "jackknife": "{jackknife:2p}",
    }
    means = list_rows(table.group_by("annotators", maintain_order=True).agg(*gaps), shown)
    text = ["Mean bias-corrected gap over classifiers, in points:", means]
    if line is not None:
        reference = float(table["reference_accuracy"].mean())  # type: ignore[arg-type]
        from_half, from_all = (
            percent(reference - accuracy, 2)
            for accuracy in (line.jackknife_from_half, line.jackknife)
        )
        text += [
            "",
            f"From {line.half} annotators on, the naive estimates follow a line in 1/n, n their "
            f"number, with R² = {line.r_squared:.4f}.",
            f"The jackknife from {line.half} annotators leaves a gap of {from_half} points, "
            f"from {line.annotators} one of {from_all}.",
            f"If the rest is quadratic in 1/n, that is {percent(abs(line.left), 2)} "
            f"points too {'much' if line.left > 0 else 'little'}.",
        ]
    return "\n".join(text)


def forward_table(told: pl.DataFrame) -> str:
    """What the naive estimate would say with other numbers of annotators."""
    shown: dict[str, Cell] = {
        "annotators": "{annotators}",
        "naive": "{gap:2p}",
        "too much": "{left:2p}",
    }
    last = told.to_dicts()[-1]
    return (
        f"By EM + spline the naive gap would be, and lie above that without noise:\n"
        f"{list_rows(told, shown)}\n\nWith {last['annotators']:,} annotators the naive "
        f"estimate would still be {percent(abs(last['left']), 2)} points off."
    )


def method_table(methods: pl.DataFrame) -> str:
    """One row per method of the demo: mean gap beside the truth, and what it is off by."""
    shown: dict[str, Cell] = {
        "method": _label,
        "gap (points)": "{mean_gap:2p}",
        "95 % interval": "{lower:2p} to {upper:2p}",
        "error (points)": "{mean_error:+.2f}",
        "explained (% of the drop)": "{share_explained:0p}",
        "intervals right (%)": "{coverage:0p}",
    }
    return list_rows(methods.with_columns(pl.col("mean_error") * 100), shown)


def matched_table(table: pl.DataFrame) -> str:
    """Accuracies of `bayesrep.protocols.match`, a line for each classifier and criterion."""
    shown: dict[str, Cell] = {
        "classifier": "{classifier}",
        "matched by": "{criterion}",
        "gap": "{gap[estimate]:2p}",
        "reference": "{matched_reference_accuracy[estimate]:2p}",
        "replication": "{matched_replication_accuracy[estimate]:2p}",
        "matched gap": "{matched_gap[estimate]:2p}",
        "95 % interval": "{matched_gap[lower]:2p} to {matched_gap[upper]:2p}",
        "unmatched (%)": "{fraction_unmatched[estimate]:1p}",
        "accuracy": "{unmatched_accuracy[estimate]:1p}",
    }
    return list_rows(_by_quantity(table, "criterion", "classifier"), shown)


def rows_table(table: pl.DataFrame, digits: int = 3) -> str:
    """Any table as it is, numbers to some digits."""

    def cell(value: Any) -> str:
        if value is None:
            return MISSING_TEXT
        return f"{value:.{digits}f}" if isinstance(value, float) else str(value)

    return columns(table.columns, [[cell(value) for value in row] for row in table.iter_rows()])


def multilabel_table(table: pl.DataFrame) -> str:
    """Rows of `bayesrep.protocols.multilabel`: every classifier, then every subset."""
    metrics = [name for name in table["metric"].unique(maintain_order=True) if " " not in name]
    best = f"of[all][{metrics[-1]}]"
    classifiers: dict[str, dict[str, Any]] = {}
    for row in table.iter_rows(named=True):
        every = classifiers.setdefault(
            row["classifier"], {"classifier": row["classifier"], "of": {}}
        )
        every["of"].setdefault(row["subset"], {})[row["metric"]] = row
    shown: dict[str, Cell] = {
        "classifier": "{classifier}",
        "images": f"{{{best}[images]:,}}",
        **{metric: f"{{of[all][{metric}][accuracy]:2p}}" for metric in metrics},
        "95 % interval": f"{{{best}[lower]:2p}} to {{{best}[upper]:2p}}",
        "one label": "{of[one label][multi-label][accuracy]:2p}",
        "several": "{of[several labels][multi-label][accuracy]:2p}",
    }
    first = list_rows(classifiers.values(), shown)
    means = table.group_by("subset", "metric", maintain_order=True).agg(
        pl.col("images").first(),
        pl.col("accuracy", "change").mean(),
        (pl.col("p_value") < 0.05).sum().alias("beyond"),
    )
    subsets: dict[str, dict[str, Any]] = {}
    for row in means.iter_rows(named=True):
        if row["subset"] in ("all", "one label", "several labels"):  # compared with nothing
            row["beyond"] = None
        subsets.setdefault(row["subset"], {"subset": row["subset"]})[row["metric"]] = row
    shown: dict[str, Cell] = {
        "mean over classifiers": "{subset}",
        "images": "{multi-label[images]:,}",
        **{metric: f"{{{metric}[accuracy]:2p}}" for metric in metrics},
        "change": "{multi-label[change]:2p}",
        "beyond chance": "{multi-label[beyond]}",
    }
    second = list_rows(subsets.values(), shown)
    remark = (
        "Change: of multi-label accuracy against all images. Beyond chance: for how many of the "
        f"{len(classifiers)} classifiers fewer than 5 % of as many random classes change it as "
        "much."
    )
    return f"{first}\n\n{second}\n\n{remark}"


def comparison_table(table: pl.DataFrame, lines: pl.DataFrame) -> str:
    """Accuracies and lines of `bayesrep.protocols.compare`."""
    header = ["participant", "kind"]
    cells = ["{participant}", "{kind}"]
    for name, value in (
        ("reference", "reference_accuracy"),
        ("replication", "replication_accuracy"),
        ("gap", "gap"),
    ):
        header += [name, "95 %"]
        cells += [f"{{{value}:2p}}", f"{{{name}_lower:2p}} to {{{name}_upper:2p}}"]
    rows = [[_cell(row, cell) for cell in cells] for row in table.iter_rows(named=True)]
    text = columns(header, rows)
    return f"{text}\n\n{lines_table(lines)}" if len(lines) else text


def lines_table(lines: pl.DataFrame, more: Mapping[str, Cell] | None = None) -> str:
    """Lines of `bayesrep.protocols.fit_lines`: what is an accuracy or a gap in percent.

    Parameters
    ----------
    lines
        The table.
    more
        Columns that stand before the others.
    """

    def value_with_ends(names: str) -> Callable[[Row], str]:
        def cell(row: Row) -> str:
            share = row["scale"] == "linear" and row["quantity"] != "slope"
            form = "2p" if share else ".3f"
            return _cell(row, " to ".join(f"{{{name}:{form}}}" for name in names.split()))

        return cell

    return list_rows(
        lines,
        {
            **(more or {}),
            "scale": "{scale}",
            "quantity": lambda row: row["quantity"].replace("_", " "),
            "estimate": value_with_ends("estimate"),
            "95 %, other images": value_with_ends("lower upper"),
            "95 %, other classifiers": value_with_ends("classifiers_lower classifiers_upper"),
        },
    )


def tested_pairs_table(table: pl.DataFrame) -> str:
    """Pairs of `bayesrep.protocols.Comparison`, a line each, differences in percent points."""
    return list_rows(
        table,
        {
            "dataset": "{dataset}",
            "participant": "{participant}",
            "other": "{other}",
            "images": "{images:,}",
            "only the first": "{only_first:,}",
            "only the other": "{only_second:,}",
            "difference": "{difference:2p}",
            "95 %": "{lower:2p} to {upper:2p}",
            "P(better)": "{probability:.2f}",
            "p": "{p_value:.2g}",
            "p (Holm)": "{p_holm:.2g}",
        },
    )


def comparison_finding(table: pl.DataFrame, lines: pl.DataFrame, names: Sequence[str]) -> str:
    """What accuracies of `bayesrep.protocols.compare` say, in a sentence.

    Parameters
    ----------
    table, lines
        Accuracies, and the lines through those of the classifiers.
    names
        The names of the reference and the replication.
    """
    rows = table.filter(pl.col("kind") == "classifier")
    known = rows["gap"].drop_nulls()
    if not len(known):
        return ""
    who, mean = plain_text(rows["participant"][0]), rows["gap", "gap_lower", "gap_upper"].row(0)
    if len(rows) > 1:
        mean_gap = lines.filter(scale="linear", quantity="mean_gap")
        who, mean = f"The {len(known)} classifiers", mean_gap["estimate", "lower", "upper"].row(0)
    gap, low, high = mean
    if gap is None or low is None or high is None:
        return ""
    verb = ("lose" if gap >= 0 else "gain") + ("s" if len(rows) == 1 else "")
    size = percent(abs(gap), 2)
    span = ends(*((low, high) if gap >= 0 else (-high, -low)), digits=2)
    chance = " It may be chance." if low <= 0 <= high else ""
    one, other = map(plain_text, names)
    if size == "0.00":
        are = "is" if len(rows) == 1 else "are"
        mean_gap = f"{who} {are} as accurate on {other} as on {one} (95 % of the gap {span})."
        return f"{mean_gap}{chance}{_NO_REASON}"
    on_average = " on average" if len(rows) > 1 else ""
    return (
        f"{who} {verb} {size} points{on_average} from {one} to {other} (95 % {span}).{chance}"
        f"{_NO_REASON}"
    )


_NO_REASON = " Accuracies alone do not say why."


def align_columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of words in columns, all to the left."""
    form, table = FORMAT.get(), _translate_cells(rows)
    return align_rows(table) if form == "text" else WRITERS[form](table)


def diagnosis_text(
    diagnosis: "Diagnosis", study: str = "STUDY", posterior: str = "posterior.nc"
) -> str:
    """What `bayesrep.diagnose` says: the verdict, sentences, commands, and the table of checks.

    Parameters
    ----------
    diagnosis
        What it found.
    study, posterior
        Where they are.
    """
    sentences = [f"- {plain_text(sentence)}" for sentence in diagnosis.sentences]
    sentences += remedies(diagnosis.sentences, study, posterior)
    table = align_columns([("check", "found", "wanted", "trust"), *diagnosis.checks.iter_rows()])
    blank = [""] if sentences else []
    return "\n".join([diagnosis.verdict, "", *sentences, *blank, table, LEGEND])


_SETTING = re.compile(r'\b([a-z_]+)=("?)([\w.-]+)\2')
_OPTIONS = ("model", "method", "feedback", "groups", "datasets")


def remedies(
    sentences: Iterable[str], study: str = "STUDY", posterior: str = "posterior.nc"
) -> list[str]:
    """Commands to paste for the settings that sentences advise, a line each.

    Parameters
    ----------
    sentences
        Those of a diagnosis.
    study, posterior
        Where they are.
    """
    study, posterior = quote_word(study), quote_word(posterior)
    commands: dict[str, None] = {}
    for sentence in sentences:
        for name, _, value in _SETTING.findall(plain_text(sentence)):
            value = value.rstrip(".")
            if name == "crowd_sd":
                commands[f"summarize {study} {posterior} --crowd-sd {value}"] = None
            elif name in _OPTIONS:
                commands[f"fit {study} --out again.nc --{name} {value}"] = None
            else:
                commands[f"fit {study} --out again.nc --set {name}={value.lower()}"] = None
    return [f"  $ bayesrep {command}" for command in commands]


def fits_text(table: pl.DataFrame) -> str:
    """Rows of `bayesrep.checks.compare_fits`, with what they decide."""
    head = "difference ± s.e. (s.e. shared)"
    rows = [("model", "elpd", "p_loo", head, "counts", "answers", "k > 0.7")]
    for row in table.iter_rows(named=True):
        rows.append(
            (
                row["model"],
                f"{row['elpd']:.1f}",
                f"{row['p_loo']:.1f}",
                f"{row['difference']:.1f} ± {row['se']:.1f} ({row['se_shared']:.1f})",
                f"{row['counts_difference']:.1f} ± {row['counts_se']:.1f}",
                f"{row['answers_difference']:.1f} ± {row['answers_se']:.1f}",
                str(row["pareto_k_high"]),
            )
        )
    legend = (
        "s.e.: were the classifiers' answers independent; shared: as all answer the same images."
    )
    return f"{align_columns(rows)}\n{legend}\n\n{_decision(table)}"


def _decision(table: pl.DataFrame) -> str:
    names = [plain_text(name) for name in table["model"]]
    if len(names) < 2:
        return "One model only: nothing to compare it with."
    rival = table.row(1, named=True)
    lead = -rival["difference"]
    if lead < max(2 * rival["se"], 4):
        return f"{names[0]} and {names[1]} predict equally well, as far as these data tell."
    if lead < 2 * rival["se_shared"]:
        return (
            f"{names[0]} predicts better than {names[1]} if the classifiers' answers are "
            "independent; as they answer the same images, it may be chance."
        )
    return f"{names[0]} predicts better than {names[1]}."
