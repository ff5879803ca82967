"""Printed tables of what was measured, a picture, and advice on where to run a fit."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bayesrep.files.strict_json import replace_non_finite
from bayesrep.report.figure import has_pictures
from bayesrep.report.table_format import MISSING_TEXT, columns
from experiments.style import default_style

GIB_BYTES = 2**30
FAILED_TEXT = "failed"
REMARKS = """Times are medians of calls. A gradient is timed in a compiled loop, as samplers make
it, and called alone. *Of the bound*: the least time for the bytes and operations that the
compiler counts, at the rates that the device reaches. *Differs*: the log density from ours in 64
bits on the CPU, the constant of binomial coefficients aside; *gradient by*, of its largest entry.
JAX's `betaln`, which NumPyro's `BetaBinomial` uses, is good to 1e-6. A form whose gradient is
further from ours than 1e-4 (in 32 bits 1e-2) is not timed. *ESS*: bulk effective sample size of
the adjusted accuracy that has the smallest; of Laplace's draws at most that of their weights.
Ours is `fit` as by default, medians of three runs, before, between and after the others; PyMC's
are medians of three seeds. Sampling is with the warm-up; compilation is all else until there are
draws. Where no draw was kept every transition counts as an independent draw: a bound from above."""


def page_facts(measured: Mapping[str, Any]) -> dict[str, Any]:
    """The page of what was measured so far, for `save`."""
    numbers = replace_non_finite(dict(measured))
    text = bench_text(measured)
    figure = draw(measured) if has_pictures() else None
    return {"numbers": numbers, "text": text, "remarks": REMARKS, "figure": figure}


def bench_text(measured: Mapping[str, Any]) -> str:
    """Everything that was measured, a part after the other."""
    parts = [_machine(measured)]
    for name, describe in PART_TEXTS.items():
        part = measured.get(name, {})
        if part.get("error"):
            parts.append(f"{name}: {part['error']}")
        elif part.get("rows"):
            parts.append(describe(part) + _errors(part) + _peak(part))
    return "\n\n".join([*parts, measured["advice"]])


def number(value: float | None, digits: int = 3) -> str:
    """A number of so many digits for a table."""
    if value is None:
        return MISSING_TEXT
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def _machine(results: Mapping[str, Any]) -> str:
    facts = results["facts"]
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
    rows = [
        [row["what"], row["device"], FAILED_TEXT if "error" in row else f"{row['difference']:.1e}"]
        for row in part["rows"]
    ]
    table = columns(["compared", "device", "largest relative difference"], rows)
    against = f"compared with {part['against']}, at most {part['limit']:g}"
    alone = "" if part["against"] == "the CPU" else "\nThere is no other device to compare with it."
    return f"{table}\n{part['verdict']}: {against}.{alone}"


def _gradients(part: Mapping[str, Any]) -> str:
    header = ["us a gradient", "device", "bits", "classifiers", "annotators", "chains"]
    header += ["all chains", "waited for", "a chain", "x ours", "of the bound", "kernels"]
    return columns([*header, "compiled, s"], [_row(row) for row in part["rows"] if "chains" in row])


def _forms(part: Mapping[str, Any]) -> str:
    timed = [row for row in part["rows"] if "density_python_us" in row]
    header = ["one chain, us", "device", "bits", "density", "not compiled", "+ gradient"]
    names = ("density_us", "density_python_us", "python_us")
    rows = [
        [row["form"], row["device"], str(row["bits"]), *(number(row.get(name)) for name in names)]
        + [
            MISSING_TEXT if row.get(name) is None else f"{row[name]:.1e}"
            for name in ("difference", "gradient_difference")
        ]
        for row in timed
    ]
    alone = columns([*header, "differs by", "gradient by"], rows)
    return f"{_gradients(part)}\n\n{alone}"


def _row(row: Mapping[str, Any]) -> list[str]:
    sizes = [f"{row[name]:,}" for name in ("bits", "classifiers", "annotators", "chains")]
    start = [row["form"], row["device"], *sizes]
    if "us" not in row:
        return [*start, FAILED_TEXT, *[MISSING_TEXT] * 6]
    bound = row.get("bound_us")
    return [
        *start,
        number(row["us"]),
        number(row["us_alone"]),
        number(row["us"] / row["chains"]),
        number(row.get("ratio")),
        MISSING_TEXT if bound is None else f"{number(100 * bound / row['us'], 2)} %",
        number(row["kernels"]) + ("+" if row["waits"] else ""),  # loops turn as often as data say
        number(row["compile_s"], 2),
    ]


def _errors(part: Mapping[str, Any]) -> str:
    """List the errors, a line each."""
    failed = [row for row in part["rows"] if "error" in row]
    return "".join(
        f"\nfailed: {row.get('what', row.get('form', ''))} {row.get('device', '')}: {row['error']}"
        for row in failed
    )


def _peak(part: Mapping[str, Any]) -> str:
    peaks = {name: value for name, value in part.get("peak_bytes", {}).items() if value}
    return "".join(f"\nmost memory on {name}: {v / GIB_BYTES:.2f} GiB" for name, v in peaks.items())


def _draws(part: Mapping[str, Any]) -> str:
    header = ["draws by NUTS", "chains", "draws a second", "us a step", "steps a draw"]
    header += ["compiled, s"]
    rows = [[row["device"], f"{row['chains']:,}", *_speed_row(row)] for row in part["rows"]]
    return columns(header, rows)


def _speed_row(row: Mapping[str, Any]) -> Sequence[str]:
    if "draws_per_s" not in row:
        return [FAILED_TEXT, *[MISSING_TEXT] * 3]
    values = (row["draws_per_s"], row["us_a_step"], row["steps_a_draw"], row["compile_s"])
    return [number(value) for value in values]


def _roofline(part: Mapping[str, Any]) -> str:
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
    return columns(header, rows)


def _images(part: Mapping[str, Any]) -> str:
    rows = [[f"{row['images']:,}", f"{row['seconds']:.2f}"] for row in part["rows"]]
    return columns([f"images, twice ({part['classifiers']} classifiers)", "a fit, s"], rows)


def _kernels(part: Mapping[str, Any]) -> str:
    rows = [
        (
            row["what"] if not row["depth"] else f"{'  ' * row['depth']}loop",
            str(row["kernels"]),
            "" if not row["depth"] else str(row["turns"] or "by the data"),
        )
        for row in part["rows"]
    ]
    return columns(["program on an H100", "kernels a turn", "turns"], rows)


def _sampling(part: Mapping[str, Any]) -> str:
    """A line for each way of sampling, and one for each stage of the command."""
    lines = [
        [row["what"], f"{row['compile_s']:.1f}", f"{row['sampling_s']:.1f}"]
        + [f"{row['chains']} x {row['draws']}", str(row["divergences"])]
        + [MISSING_TEXT if row["rhat"] is None else f"{row['rhat']:.4g}", number(row["ess"], 4)]
        + [number(row[name]) for name in ("ess_per_s", "ess_per_s_whole", "ratio", "ratio_whole")]
        + [number(row["differs_sd"], 2), "yes" if row["converged"] else "no"]
        for row in part["rows"]
        if "error" not in row
    ]
    header = ["sampler", "compile s", "sampling s", "draws", "divergences", "max R-hat", "min ESS"]
    header += ["ESS/s", "with compile", "ours x", "with compile", "differs, sd", "converged"]
    runs = part["stages"]
    stages = dict.fromkeys(stage for seconds in runs.values() for stage in seconds)
    by_stage = [
        [stage, *(f"{s[stage]:.2f}" if stage in s else MISSING_TEXT for s in runs.values())]
        for stage in (*(each for each in stages if each != "whole"), "whole")
    ]
    return f"{columns(header, lines)}\n\n{columns(['bayesrep fit, s', *runs], by_stage)}"


PART_TEXTS = {
    "right": _comparison_text,
    "gradients": _gradients,
    "draws": _draws,
    "roofline": _roofline,
    "forms": _forms,
    "images": _images,
    "kernels": _kernels,
    "sampling": _sampling,
}
"""What tells of each part."""


@default_style()
def draw(results: Mapping[str, Any]) -> Any:
    """Microseconds of a gradient against chains, by device, kind and size; bounds are thin."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot()
    rows = [row for row in results.get("gradients", {}).get("rows", ()) if "us" in row]
    keys = dict.fromkeys((row["device"], row["form"], row["classifiers"]) for row in rows)
    for place, (device, form, size) in enumerate(keys):
        own = sorted(
            (
                row
                for row in rows
                if (row["device"], row["form"], row["classifiers"]) == (device, form, size)
            ),
            key=lambda row: row["chains"],
        )
        chains, color = [row["chains"] for row in own], f"C{place % 10}"
        label = f"{device}, {form}, {size:,} classifiers"
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


def advice(results: Mapping[str, Any]) -> str:
    """One line: from how many chains another device is faster here."""
    names = [each["device"] for each in results["devices"]]
    others = [name for name in names if name != "cpu"]
    if not others or "cpu" not in names:
        only = ", ".join(names)
        return f"Only {only} was measured: there is nothing to choose between."
    if results.get("right", {}).get("verdict") == "WRONG":
        return f"Use --device cpu: {', '.join(others)} does not compute what the CPU computes."
    return " ".join(_draws_advice(results, name) for name in others)


def _draws_advice(results: Mapping[str, Any], name: str) -> str:
    rows = results.get("draws", {}).get("rows", ())
    speeds = {(r["device"], r["chains"]): r["draws_per_s"] for r in rows if "draws_per_s" in r}
    cpu = max((value for (device, _), value in speeds.items() if device == "cpu"), default=None)
    other = {chains: value for (device, chains), value in speeds.items() if device == name}
    if cpu is None or not other:
        return "Not known: draws could not be measured."
    faster = [chains for chains, value in sorted(other.items()) if value > cpu]
    most = max(other, key=lambda chains: other[chains])
    if not faster:
        return f"The CPU is faster, {cpu / other[most]:.1f} times at {most:,} chains on {name}."
    return (
        f"{name} makes more draws a second than all CPU cores from {faster[0]:,} "
        f"chains on, {other[most] / cpu:.1f} times as many at {most:,}."
    )
