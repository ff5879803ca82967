"""What the steps of a collection say on a terminal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from bayesrep.errors import quote_word
from bayesrep.report.text import Cell, list_rows

if TYPE_CHECKING:
    from bayesrep.collect import Answered, Collection, Shortlist
    from bayesrep.collect.image_outcomes import WithClear

MOST_WORKERS = 10
BAR = 40


def candidates_text(sizes: pl.DataFrame) -> str:
    """How many images have how many labels (`len`, `images`): Tsipras et al. (2020), figure 13."""
    images, most = int(sizes["images"].sum()), int(sizes["images"].to_numpy().max())
    mean = float((sizes["len"] * sizes["images"]).sum() / images)
    shown: dict[str, Cell] = {
        "labels": "{len}",
        "images": "{images:,}",
        "": lambda row: "#" * max(1, round(BAR * row["images"] / most)),
    }
    return f"{list_rows(sizes, shown)}\n\n{images:,} images with {mean:.1f} labels each on average."


def tasks_text(kind: str, facts: Mapping[str, Any], where: Mapping[str, Any]) -> str:
    """What was written, and what to do with it."""
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
    lines.append(
        f"Written to {out}; read the answers with: bayesrep collect read {quote_word(out)} FILE "
        "--out answers.csv"
    )
    return "\n".join(lines)


def read_text(collection: "Collection", found: "Answered", progress: pl.DataFrame) -> str:
    """How far the collection is, what it cost, and what the busiest did; no one is named."""
    wanted = collection.tasks["task"].n_unique() * collection.workers
    done = len(found.assignments)
    lines = [
        f"{done:,} of {wanted:,} assignments are done ({100 * done / wanted:.1f} %), "
        f"{found.rows():,} answers, by {len(progress):,} workers."
    ]
    hours, pay = (
        float(progress[name].sum()) if progress[name].count() else None for name in ("hours", "pay")
    )
    if hours:
        cost = "" if pay is None else f"; {pay:,.2f} paid, {pay / hours:.2f} an hour"
        lines.append(f"{hours:,.1f} hours of work, {3600 * hours / done:.0f} s a task{cost}.")
    lines += [f"Left out, {why}: {count:,} assignments." for why, count in found.left_out.items()]
    shown: dict[str, Cell] = {
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
    table = list_rows(busiest, shown) + (f"\n... and {more:,} more" if more > 0 else "")
    return "\n".join([*lines, "", table])


def shortlist_text(chosen: "Shortlist") -> str:
    """How many labels each step brought, and what becomes of the images."""
    steps = {
        1: "the data set's own label",
        2: "selected by at least half",
        3: "selected by anybody, far from the own label in WordNet",
        4: "selected by anybody, while there are fewer than five",
        5: "left out of more than six",
    }
    shown: dict[str, Cell] = {
        "step": lambda row: f"{row['step']}  {steps[row['step']]}",
        "labels": "{labels:,}",
    }
    fates = chosen.images.group_by("fate", maintain_order=True).len("images")
    images: dict[str, Cell] = {"fate": "{fate}", "images": "{images:,}"}
    lines = [list_rows(chosen.steps, shown)]
    if not chosen.by_wordnet:
        lines.append("Step 3 was not done: labels are not WordNet numbers (--wnids gives them).")
    mean = float(chosen.images["candidates"].mean() or 0)  # type: ignore[arg-type]
    lines += [f"{mean:.2f} labels per image on average.", "", list_rows(fates, images)]
    return "\n".join(lines)


def objects_text(table: pl.DataFrame, left_out: Mapping[str, int]) -> str:
    """How many objects images show, and how often the main label is not the own one."""
    key = ["dataset", "image"]
    images = table.unique(key, keep="first", maintain_order=True)
    numbers = images.group_by("dataset", "objects").len("images").sort("dataset", "objects")
    shown: dict[str, Cell] = {
        "data set": "{dataset}",
        "objects": "{objects}",
        "images": "{images:,}",
    }
    lines = [f"Left out, {why}: {count:,} assignments." for why, count in left_out.items() if count]
    own = table.filter(pl.col("own").fill_null(value=False)).select(*key, mine="label")
    known = images.join(own, on=key)
    other = int((known["main_label"] != known["mine"]).sum())
    tied = int(images["tied"].is_not_null().sum())
    lines += [list_rows(numbers, shown), ""]
    if len(known):
        lines.append(
            f"The main label is another than the data set's own on {other:,} of {len(known):,} "
            "images."
        )
    lines.append(f"A vote or a grouping is a tie on {tied:,} images (column tied).")
    return "\n".join(lines)


def fates_text(every: "WithClear") -> str:
    """What became of all images, and how many of the clear ones stand beside the classified."""
    fates = every.fates
    words = {"classify": "went on to be classified"}
    told = "; ".join(f"{words.get(fate, fate)} {count:,}" for fate, count in fates.items())
    text = f"{sum(fates.values()):,} images: {told}."
    went, clear = fates.get("classify", 0), fates.get("clear", 0)
    beside = f"Beside the classified images the table has {every.clear:,} clear ones, of one object"
    if every.classified < went:
        return (
            f"{text}\n{every.classified:,} of the {went:,} are classified. {beside}: as large a "
            f"part of the {clear:,}, so that shares are those of all."
        )
    return f"{text}\n{beside}."


def matching_text(
    rows: list[dict[str, Any]], reference: float, pool: float, planned: list[dict[str, Any]]
) -> str:
    """What each way of choosing images leaves of the gap, before the set exists."""
    shown: dict[str, Cell] = {
        "method": "{method}",
        "images": "{images:,}",
        "left of the gap": "{gap:2p}",
        "95 % interval": "{lower:2p} to {upper:2p}",
        "distance": "{distance:2p}",
        "from other bins": "{moved:,}",
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
        f"{list_rows(rows, shown)}{more}\n\nMean selection frequencies, noise taken out: reference "
        f"{100 * reference:.2f} %, pool {100 * pool:.2f} %. What is left is the reference's less "
        "that of the images chosen, in points; distance is that of the two distributions. Measure "
        "what is chosen again, by other answers than these."
    )
