"""Tables of predictions and of other protocols."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from bayesrep.errors import listing, plain_text
from bayesrep.report.table_format import (
    Cell,
    Row,
    cell_text,
    columns,
    ends,
    group_quantities,
    list_rows,
    percent,
)
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words

if TYPE_CHECKING:
    from bayesrep.vision.reports import Report


def predictions_text(report: "Report") -> str:
    """A run of `bayesrep.predict` on one data set: accuracies in percent, and its files."""
    cells: dict[str, Cell] = {
        "classifier": "{classifier}",
        "images": "{images:,}",
        "top-1": "{top1:2p}",
        "top-5": "{top5:2p}",
        "seconds": "{seconds:.1f}",
        "failures": "{failures:,}",
        "status": "{status}",
    }
    lines = [list_rows(report.table, cells)]
    if report.among:
        left_out = f"; {report.outside:,} images of other classes are passed over"
        lines.append(f"Answers: {report.among}{left_out if report.outside else ''}")
    passed, answered = report.passed_over, report.table["images"].max()
    kinds = "; ".join(f"{why}: {listing(names, 'file')}" for why, names in passed.items())
    lines.append(
        f"Files: {report.found:,} found, {answered:,} evaluated, {len(report.failures):,} failed, "
        f"{sum(map(len, passed.values())):,} passed over" + (f" ({kinds})" if kinds else "")
    )
    return "\n".join([*lines, *report.changes()])


def matched_table(table: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """Accuracies of `bayesrep.protocols.match`, a line for each classifier and criterion."""
    cells: dict[str, Cell] = {
        words.classifier: "{classifier}",
        "matched by": "{criterion}",
        "gap": "{gap[estimate]:2p}",
        "reference": "{matched_reference_accuracy[estimate]:2p}",
        "replication": "{matched_replication_accuracy[estimate]:2p}",
        "matched gap": "{matched_gap[estimate]:2p}",
        "95 % interval": "{matched_gap[lower]:2p} to {matched_gap[upper]:2p}",
        "unmatched (%)": "{fraction_unmatched[estimate]:1p}",
        "accuracy": "{unmatched_accuracy[estimate]:1p}",
    }
    return list_rows(group_quantities(table, "criterion", "classifier"), cells)


def multilabel_table(table: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """Rows of `bayesrep.protocols.multilabel`: every classifier, then every subset."""
    metrics = [name for name in table["metric"].unique(maintain_order=True) if " " not in name]
    best = f"of[all][{metrics[-1]}]"
    classifiers: dict[str, dict[str, Any]] = {}
    for row in table.iter_rows(named=True):
        every = classifiers.setdefault(
            row["classifier"], {"classifier": row["classifier"], "of": {}}
        )
        every["of"].setdefault(row["subset"], {})[row["metric"]] = row
    cells: dict[str, Cell] = {
        words.classifier: "{classifier}",
        words.images: f"{{{best}[images]:,}}",
        **{metric: f"{{of[all][{metric}][accuracy]:2p}}" for metric in metrics},
        "95 % interval": f"{{{best}[lower]:2p}} to {{{best}[upper]:2p}}",
        "one label": "{of[one label][multi-label][accuracy]:2p}",
        "several": "{of[several labels][multi-label][accuracy]:2p}",
    }
    first = list_rows(classifiers.values(), cells)
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
    cells: dict[str, Cell] = {
        f"mean over {words.classifiers}": "{subset}",
        words.images: "{multi-label[images]:,}",
        **{metric: f"{{{metric}[accuracy]:2p}}" for metric in metrics},
        "change": "{multi-label[change]:2p}",
        "beyond chance": "{multi-label[beyond]}",
    }
    second = list_rows(subsets.values(), cells)
    remark = (
        f"Change: of multi-label accuracy against all {words.images}. Beyond chance: for how many "
        f"of the {len(classifiers)} {words.classifiers} fewer than 5 % of as many random classes "
        "change it as much."
    )
    return f"{first}\n\n{second}\n\n{remark}"


def comparison_table(table: pl.DataFrame, lines: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """Accuracies and lines of `bayesrep.protocols.compare`."""
    header = ["participant", "kind"]
    cells: list[Cell] = ["{participant}", lambda row: words.name_of(row["kind"])]
    for name in ("reference", "replication", "gap"):
        header += [name, "95 %"]
        value = "gap" if name == "gap" else f"{name}_accuracy"
        cells += [f"{{{value}:2p}}", f"{{{name}_lower:2p}} to {{{name}_upper:2p}}"]
    rows = [[cell_text(row, cell) for cell in cells] for row in table.iter_rows(named=True)]
    text = columns(header, rows)
    return f"{text}\n\n{lines_table(lines, words=words)}" if len(lines) else text


def lines_table(
    lines: pl.DataFrame, more: Mapping[str, Cell] | None = None, words: Words = IMAGE_WORDS
) -> str:
    """Lines of `bayesrep.protocols.fit_lines`: what is an accuracy or a gap in percent."""

    def value_with_ends(names: str) -> Callable[[Row], str]:
        def cell(row: Row) -> str:
            share = row["scale"] == "linear" and row["quantity"] != "slope"
            form = "2p" if share else ".3f"
            return cell_text(row, " to ".join(f"{{{name}:{form}}}" for name in names.split()))

        return cell

    return list_rows(
        lines,
        {
            **(more or {}),
            "scale": "{scale}",
            "quantity": lambda row: row["quantity"].replace("_", " "),
            "estimate": value_with_ends("estimate"),
            f"95 %, other {words.images}": value_with_ends("lower upper"),
            f"95 %, other {words.classifiers}": value_with_ends(
                "classifiers_lower classifiers_upper"
            ),
        },
    )


def tested_pairs_table(table: pl.DataFrame, words: Words) -> str:
    """Pairs of `bayesrep.protocols.Comparison`, a line each, differences in percent points."""
    return list_rows(
        table,
        {
            "dataset": "{dataset}",
            "participant": "{participant}",
            "other": "{other}",
            words.images: "{images:,}",
            "only the first": "{only_first:,}",
            "only the other": "{only_second:,}",
            "difference, posterior mean": "{difference:2p}",
            "95 %": "{lower:2p} to {upper:2p}",
            "P(better)": "{probability:.2f}",
            "p": "{p_value:.2g}",
            "p (Holm)": "{p_holm:.2g}",
        },
    )


def comparison_finding(
    table: pl.DataFrame, lines: pl.DataFrame, names: Sequence[str], words: Words = IMAGE_WORDS
) -> str:
    """State the result of `bayesrep.protocols.compare` in a sentence."""
    rows = table.filter(pl.col("kind") == "classifier")
    gaps = rows["gap"].drop_nulls()
    if not len(gaps):
        return ""
    who, mean = plain_text(rows["participant"][0]), rows["gap", "gap_lower", "gap_upper"].row(0)
    if len(rows) > 1:
        who = f"The {len(gaps)} {words.classifiers}"
        mean_gap = lines.filter(scale="linear", quantity="mean_gap")
        mean = mean_gap["estimate", "lower", "upper"].row(0)
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
        alike = f"{who} {are} as accurate on {other} as on {one}"
        finding = f"{alike} (95 % interval of the gap: {span})."
    else:
        on_average = " on average" if len(rows) > 1 else ""
        finding = f"{who} {verb} {size} points{on_average} from {one} to {other} (95 % {span})."
    return f"{finding}{chance} Accuracies alone do not say why."
