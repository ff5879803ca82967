"""Printed tables of a benchmark, and its folder: numbers, a page and a picture."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesrep.atomic import replaced_file
from bayesrep.errors import OptionError
from bayesrep.files.strict_json import replace_non_finite
from bayesrep.report.style import default_style, save_figure
from bayesrep.report.table_format import MISSING_TEXT, columns

FILE_NAMES = ("bench.json", "bench.md", "bench.png")
GIB_BYTES = 2**30
FAILED_TEXT = "failed"
PART_HEADINGS = {
    "gradients": "Gradient, 64 bits",
    "gradients_32": "Gradient, 32 bits",
}


def bench_text(results: Mapping[str, Any]) -> str:
    """Everything: the machine, whether it is right, times, bounds, advice."""
    parts = [
        _machine(results),
        _comparison_text(results.get("right", {})),
        *(_gradients(results, name) for name in ("gradients", "gradients_32")),
        _draws(results.get("draws", {})),
        _roofline(results.get("roofline", {})),
        results.get("advice", ""),
    ]
    return "\n\n".join(part for part in parts if part)


def number(value: float | None, digits: int = 3) -> str:
    """A number of so many digits for a table."""
    if value is None:
        return MISSING_TEXT
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def _machine(results: Mapping[str, Any]) -> str:
    facts = results["machine"]
    memory = facts["memory_bytes"]
    rows = [["CPU", facts["cpu"]], ["cores", str(facts["cores"])]]
    rows += [["memory", f"{memory / GIB_BYTES:.1f} GiB"]] if memory else []
    for each in facts["gpus"] or [{}]:
        properties = ", ".join(f"{key} {value}" for key, value in each.items() if key != "name")
        rows.append(["GPU (nvidia-smi)", f"{each['name']}: {properties}" if each else "none"])
    for each in results["devices"]:
        text = f"{each['device']}: {each['count']} x {each['kind']}, {each['runtime']}"
        rows.append(["JAX finds", text])
    rows += [["torch", facts["torch"]]] if facts["torch"] else []
    rows.append(["versions", ", ".join(f"{k} {v}" for k, v in facts["versions"].items())])
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name.ljust(width)}  {text}" for name, text in rows)


def _comparison_text(part: Mapping[str, Any]) -> str:
    if "verdict" not in part:
        return _failure_text("Is it right", part)
    rows = [
        [row["what"], row["device"], FAILED_TEXT if "error" in row else f"{row['difference']:.1e}"]
        for row in part["rows"]
    ]
    table = columns(["compared", "device", "largest relative difference"], rows)
    against = f"compared with {part['against']}, at most {part['limit']:g}"
    alone = "" if part["against"] == "the CPU" else "\nThere is no other device to compare with it."
    table += _errors(part)
    return f"{table}\n{part['verdict']}: {against}.{alone}"


def _failure_text(title: str, part: Mapping[str, Any]) -> str:
    return f"{title}: {part['error']}" if "error" in part else ""


def _gradients(results: Mapping[str, Any], name: str) -> str:
    part = results.get(name, {})
    if not part.get("rows"):
        return _failure_text(PART_HEADINGS[name], part)
    header = ["us a gradient", "device", "classifiers", "chains", "all chains", "waited for"]
    header += ["a chain", "of the bound", "kernels", "compiled, s"]
    table = columns(header, [_row(row) for row in part["rows"]])
    return f"{PART_HEADINGS[name]}\n{table}{_errors(part)}{_peak(part)}"


def _row(row: Mapping[str, Any]) -> list[str]:
    start = [row["kind"], row["device"], f"{row['classifiers']:,}", f"{row['chains']:,}"]
    if "us" not in row:
        return [*start, FAILED_TEXT, *[MISSING_TEXT] * 5]
    bound = row.get("bound_us")
    return [
        *start,
        number(row["us"]),
        number(row["us_alone"]),
        number(row["us"] / row["chains"]),
        MISSING_TEXT if bound is None else f"{number(100 * bound / row['us'], 2)} %",
        f"{row['kernels']:,}{'+' if row['waits'] else ''}",  # loops turn as often as data say
        number(row["compile_s"], 2),
    ]


def _errors(part: Mapping[str, Any]) -> str:
    """List the errors, a line each."""
    failed = [row for row in part["rows"] if "error" in row]
    return "".join(f"\nfailed on {row['device']}: {row['error']}" for row in failed)


def _peak(part: Mapping[str, Any]) -> str:
    peaks = {name: value for name, value in part.get("peak_bytes", {}).items() if value}
    return "".join(f"\nmost memory on {name}: {v / GIB_BYTES:.2f} GiB" for name, v in peaks.items())


def _draws(part: Mapping[str, Any]) -> str:
    if not part.get("rows"):
        return _failure_text("Draws by NUTS", part)
    header = ["draws by NUTS", "chains", "draws a second", "us a step", "steps a draw"]
    header += ["compiled, s"]
    rows = [[row["device"], f"{row['chains']:,}", *_speed_row(row)] for row in part["rows"]]
    return columns(header, rows) + _errors(part) + _peak(part)


def _speed_row(row: Mapping[str, Any]) -> Sequence[str]:
    if "draws_per_s" not in row:
        return [FAILED_TEXT, *[MISSING_TEXT] * 3]
    values = (row["draws_per_s"], row["us_a_step"], row["steps_a_draw"], row["compile_s"])
    return [number(value) for value in values]


def _roofline(part: Mapping[str, Any]) -> str:
    if not part.get("rows"):
        return _failure_text("What the device can do", part)
    header = ["at most", "copies, GB/s", "64 bits, Tflop/s", "32 bits, Tflop/s", "a call, us"]
    header += ["a turn, us", "by data, us"]
    rows = [
        [
            row["device"],
            *(
                number(None if (value := row.get(key)) is None else value / unit)
                for key, unit in (
                    ("bytes_per_s", 1e9),
                    ("float64_per_s", 1e12),
                    ("float32_per_s", 1e12),
                    ("call_us", 1.0),
                    ("turn_known_us", 1.0),
                    ("turn_waits_us", 1.0),
                )
            ),
        ]
        for row in part["rows"]
    ]
    return columns(header, rows) + _errors(part)


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
