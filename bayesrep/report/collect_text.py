"""Terminal output of the steps of a collection."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from bayesrep.errors import quote_word
from bayesrep.report.table_format import Cell, list_rows

if TYPE_CHECKING:
    from bayesrep.collect import Answered, Collection, Shortlist
    from bayesrep.collect.image_outcomes import WithClear

MOST_WORKERS = 10
BAR_WIDTH = 40


def candidates_text(sizes: pl.DataFrame) -> str:
    """Tabulate images by number of candidate labels: Tsipras et al. (2020), figure 13."""
    images, most = int(sizes["images"].sum()), int(sizes["images"].to_numpy().max())
    mean = float((sizes["len"] * sizes["images"]).sum() / images)
    cells: dict[str, Cell] = {
        "labels": "{len}",
        "images": "{images:,}",
        "": lambda row: "#" * max(1, round(BAR_WIDTH * row["images"] / most)),
    }
    return f"{list_rows(sizes, cells)}\n\n{images:,} images with {mean:.1f} labels each on average."


def tasks_text(kind: str, facts: Mapping[str, Any], where: Mapping[str, Any]) -> str:
    """Report the tasks that were written, and the next step."""
    lines = [
        f"{facts['tasks']:,} tasks about {facts['images']:,} images, to be done "
        f"{facts['assignments']:,} times in all."
    ]
    if kind == "contains" and (same := facts["same_neighbours"]):
        lines.append(
            f"{same:,} images have labels with no more images than a grid holds: they have the "
            "same neighbours in every grid, and what answers share through these no count can show."
        )
    out = where["out"]
    forms = [
        ("label-studio.xml", "Label Studio: label-studio.xml is the labelling configuration, "
         "label-studio.json the tasks"),
        ("mturk.html", "Mechanical Turk: mturk.html is the layout, mturk.csv its input"),
        ("page.html", "no service: open page.html in a browser"),
    ]  # fmt: skip
    lines += [f"  {text}" for name, text in forms if name in where["files"]]
    if "page.html" not in where["files"]:
        lines.append("  (too many tasks for the offline page)")
    if where["is_local"]:
        lines.append("Pictures are on this machine: others see none unless --address says where.")
    lines.append(
        f"Written to {out}; read the answers with: bayesrep collect read {quote_word(out)} FILE "
        "--out answers.csv"
    )
    return "\n".join(lines)


def read_text(collection: "Collection", answers: "Answered", progress: pl.DataFrame) -> str:
    """Report progress, cost and the busiest workers' shares of a collection; no one is named."""
    n_required = collection.tasks["task"].n_unique() * collection.workers
    done = len(answers.assignments)
    lines = [
        f"{done:,} of {n_required:,} assignments are done ({100 * done / n_required:.1f} %), "
        f"{answers.rows():,} answers, by {len(progress):,} workers."
    ]
    hours, pay = (
        float(progress[name].sum()) if progress[name].count() else None for name in ("hours", "pay")
    )
    if hours:
        cost = "" if pay is None else f"; {pay:,.2f} paid, {pay / hours:.2f} an hour"
        lines.append(f"{hours:,.1f} hours of work, {3600 * hours / done:.0f} s a task{cost}.")
    lines += [f"Left out, {why}: {count:,} assignments." for why, count in answers.left_out.items()]
    cells: dict[str, Cell] = {
        "worker": "{number}",
        "tasks": "{assignments:,}",
        "hours": "{hours:.1f}",
        "paid": "{pay:.2f}",
        "per hour": "{per_hour:.2f}",
        "selected %": "{selected:1p}",
        "controls %": "{controls:1p}",
    }
    busiest = progress.head(MOST_WORKERS).with_row_index("number", offset=1)
    more = len(progress) - len(busiest)
    table = list_rows(busiest, cells) + (f"\n... and {more:,} more" if more > 0 else "")
    return "\n".join([*lines, "", table])


def shortlist_text(chosen: "Shortlist") -> str:
    """Report how many labels each step of the shortlist added, and how images fared."""
    steps = {
        1: "the data set's own label",
        2: "selected by at least half",
        3: "selected by anybody, far from the own label in WordNet",
        4: "selected by anybody, while there are fewer than five",
        5: "left out of more than six",
    }
    cells: dict[str, Cell] = {
        "step": lambda row: f"{row['step']}  {steps[row['step']]}",
        "labels": "{labels:,}",
    }
    fates = chosen.images.group_by("fate", maintain_order=True).len("images")
    images: dict[str, Cell] = {"fate": "{fate}", "images": "{images:,}"}
    lines = [list_rows(chosen.steps, cells)]
    if not chosen.by_wordnet:
        lines.append(
            "Step 3 was not done: labels are not WordNet numbers (shortlist takes them, in Python)."
        )
    mean = float(chosen.images["candidates"].mean() or 0)  # type: ignore[arg-type]
    lines += [f"{mean:.2f} labels per image on average.", "", list_rows(fates, images)]
    return "\n".join(lines)


def objects_text(table: pl.DataFrame, left_out: Mapping[str, int]) -> str:
    """Report objects per image, and how often the main label is not the image's own."""
    key = ["dataset", "image"]
    images = table.unique(key, keep="first", maintain_order=True)
    numbers = images.group_by("dataset", "objects").len("images").sort("dataset", "objects")
    cells: dict[str, Cell] = {
        "data set": "{dataset}",
        "objects": "{objects}",
        "images": "{images:,}",
    }
    lines = [f"Left out, {why}: {count:,} assignments." for why, count in left_out.items() if count]
    own = table.filter(pl.col("own").fill_null(value=False)).select(*key, mine="label")
    merged = images.join(own, on=key)
    other = int((merged["main_label"] != merged["mine"]).sum())
    tied = int(images["tied"].is_not_null().sum())
    lines += [list_rows(numbers, cells), ""]
    if len(merged):
        lines.append(
            f"The main label is another than the data set's own on {other:,} of {len(merged):,} "
            "images."
        )
    lines.append(f"A vote or a grouping is a tie on {tied:,} images (column tied).")
    return "\n".join(lines)


def fates_text(every: "WithClear") -> str:
    """Report the outcome of every image, and the clear ones beside the classified."""
    fates = every.fates
    words = {"classify": "went on to be classified"}
    fates_listed = "; ".join(f"{words.get(fate, fate)} {count:,}" for fate, count in fates.items())
    text = f"{sum(fates.values()):,} images: {fates_listed}."
    went, clear = fates.get("classify", 0), fates.get("clear", 0)
    remark = f"Beside the classified images the table has {every.clear:,} clear ones, of one object"
    if every.classified == went:
        return f"{text}\n{remark}."
    return (
        f"{text}\n{every.classified:,} of the {went:,} are classified. {remark}: as large a "
        f"part of the {clear:,}, so that shares are those of all."
    )


def matching_text(
    rows: list[dict[str, Any]], reference: float, pool: float, planned: list[dict[str, Any]]
) -> str:
    """Report the gap that each matching method would leave, before the set exists."""
    cells: dict[str, Cell] = {
        "method": "{method}",
        "images": "{images:,}",
        "bias left (points)": "{gap:2p}",
        "95 % interval": "{lower:2p} to {upper:2p}",
        "distance": "{distance:2p}",
        "from neighbouring bins": "{moved:,}",
    }
    more = ""
    if planned:
        names = [row["method"] for row in rows]
        by_answers: dict[str, Cell] = {
            "answers": "{answers}",
            **{name: f"{{{name}:2p}}" for name in names},
        }
        more = f"\n\nLeft with other numbers of answers:\n\n{list_rows(planned, by_answers)}"
    return (
        f"{list_rows(rows, cells)}{more}\n\nMean selection frequencies, noise taken out: "
        f"reference {100 * reference:.2f} %, pool {100 * pool:.2f} %. What is left is "
        "the reference's minus that of the images chosen, in points; "
        "distance is that of the two distributions. Measure "
        "what is chosen again, by other answers than these."
    )
