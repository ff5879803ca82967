"""Printed description of a study, its capabilities, and its counts measured again."""

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from bayesrep.errors import plain_text
from bayesrep.report.answer import measured_drop
from bayesrep.report.table_format import MISSING_TEXT, Cell, Row, ends, list_rows, percent
from bayesrep.studies.capabilities import Allowed
from bayesrep.studies.representation import number
from bayesrep.studies.selection import Selection
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words, words_of


def describe_study(study: Study) -> str:
    """Describe a study: a line for each data set, and the raw gap."""
    words = words_of(study)
    lines = [f"{plain_text(study.name)}: {number(len(study.classifiers), words.classifier)}"]
    for role, data in study.datasets.items():
        low, high = int(data.shown.min()), int(data.shown.max())
        several = f"{low:,} to {high:,} {words.annotators}"
        n_text = number(low, words.annotator) if low == high else several
        frequency = percent(float((data.selected / data.shown).mean()), 2)
        lines.append(
            f"  {role} ({plain_text(data.name)}): {number(len(data.images), words.image)}, "
            f"{n_text} each, mean selection frequency {frequency} %"
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
            plain_text(data.name)
            for data in study.datasets.values()
            if data.correct.size and not data.correct.any()
        ]
        if wrong:
            lines.append(
                f"  no {words.classifier} is ever right on {' and '.join(wrong)}: check the labels"
            )
    if study.provenance.get("source") == "cifar10h":
        lines.append("  a placebo: both are random parts of one data set, and the true gap is zero")
    return "\n".join(lines)


def selection_text(selection: Selection) -> str:
    """Describe the rule by which images were selected, and its consequence for the counts."""
    if selection.is_by_others:
        return (
            f"kept by the rule {selection.bare_rule}, on other answers: the counts at hand were "
            "taken afterwards, and nothing about them is to be corrected"
        )
    return (
        f"kept by these very counts ({selection.rule}): fits condition on it, point estimates do "
        "not"
    )


def left_out_lines(left_out: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Report how many images each data set lost, a line each."""
    return [
        f"{plain_text(dataset)}: {len(images):,} image{'s' if len(images) != 1 else ''} left out, "
        "which could not be decoded"
        for dataset, images in left_out.items()
    ]


def allowed_text(allowed: Sequence[Allowed]) -> str:
    """Print which analyses the data allow, and what is missing for others."""
    from bayesrep.studies.capabilities import supports_adjustment

    lines: list[str] = []
    for each in allowed:
        lines.append(f"{each.what}: {each.state}")
        lines.append(f"    {plain_text(each.because)}.")
        if each.missing:
            lines.append(f"    Missing: {plain_text(each.missing)}.")
    if not supports_adjustment(allowed):
        lines.append("From these data you cannot tell a real drop from a version that is harder.")
    return "\n".join(lines)


def remeasured_table(table: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """Rows of `bayesrep.remeasure`, and in words what they say."""

    def value_with_interval(name: str) -> Callable[[Row], str]:
        def cell(row: Row) -> str:
            if row[name] is None:
                return MISSING_TEXT
            interval = ends(row[f"{name}_lower"], row[f"{name}_upper"], 2)
            return f"{percent(row[name], 2)} ({interval})"

        return cell

    cells: dict[str, Cell] = {
        "data set": "{dataset}",
        "kept by": lambda row: row["selection"] or "no rule",
        "items": "{images:,}",
        "measured (%)": "{measured:2p}",
        "truly selected (%)": value_with_interval("frequency"),
        "falls by (points)": lambda row: percent(-row["regression"], 2),
        "would drop (%)": value_with_interval("dropped"),
    }
    lines = [list_rows(table, cells), ""]
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
            f"No data set states by which rule its {words.images} were kept: import it with "
            "--selection 'NAME=all of 6'."
        )
    return "\n".join(lines)
