"""The folder of a run of `bayesrep bench`: numbers, a page and a picture."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bayesrep.atomic import replaced_file
from bayesrep.errors import OptionError
from bayesrep.files.strict_json import replace_non_finite
from bayesrep.report.figures import default_style, save_figure

FILE_NAMES = ("bench.json", "bench.md", "bench.png")


def check_folder(out: Path) -> None:
    """Refuse, before any work, a place that is not a folder or cannot be one.

    What else a folder holds stays; of an earlier run the three files are replaced.
    """
    if out.exists() and not out.is_dir():
        raise OptionError("bench-folder-is-file", path=out)
    out.mkdir(parents=True, exist_ok=True)


def write_numbers(data: Mapping[str, Any], out: Path) -> None:
    """Write bench.json."""
    with replaced_file(out / FILE_NAMES[0]) as partial:
        partial.write_text(json.dumps(replace_non_finite(data), indent=1) + "\n", encoding="utf-8")


def write_pages(results: Mapping[str, Any], text: str, out: Path) -> None:
    """Write bench.md and bench.png."""
    command = "bayesrep bench" + (" --quick" if results["quick"] else "")
    page = f"# bayesrep bench\n\nMade by `{command}`.\n\n![]({FILE_NAMES[2]})\n\n```\n{text}\n```\n"
    with replaced_file(out / FILE_NAMES[1]) as partial:
        partial.write_text(page, encoding="utf-8")
    save_figure(draw(results), out / FILE_NAMES[2])


@default_style()
def draw(results: Mapping[str, Any]) -> Any:
    """Microseconds of a gradient against chains, by device, kind and size; bounds are thin."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot()
    rows = [row for row in results.get("gradients", {}).get("rows", ()) if "us" in row]
    keys = dict.fromkeys((row["device"], row["kind"], row["classifiers"]) for row in rows)
    for place, (device, kind, size) in enumerate(keys):
        own = sorted(
            (
                row
                for row in rows
                if (row["device"], row["kind"], row["classifiers"]) == (device, kind, size)
            ),
            key=lambda row: row["chains"],
        )
        chains, color = [row["chains"] for row in own], f"C{place % 10}"
        label = f"{device}, {kind}, {size:,} classifiers"
        axes.plot(chains, [row["us"] for row in own], "o-", color=color, label=label)
        bounds = [row.get("bound_us") or math.nan for row in own]
        axes.plot(chains, bounds, ".:", color=color, linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="chains", ylabel="microseconds a gradient")
    axes.set_title(
        "Dotted: bytes and operations that the compiler counts, at measured rates",
        fontsize="medium",
    )
    if rows:
        axes.legend(fontsize="small")
    return figure
