"""`bayesrep bench`: whether a GPU is seen, is right, and what it buys."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep.commands import shapes
from bayesrep.commands.options import add_shared, given_options
from bayesrep.commands.output import DONE_STATUS, emit, finding, progress_line

EXAMPLE = "--quick"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("--quick", action="store_true", help="few sizes, in about a minute")
    option("--device", metavar="auto|cpu|gpu", help="the only device to be timed (auto: all)")
    option("--out", type=Path, metavar="DIR", help="write bench.json, bench.md, bench.png here")
    add_shared(parser, "--no-progress")


def run(arguments: Namespace) -> int:
    from bayesrep.bench.output import bench_text, check_folder, write_numbers, write_pages
    from bayesrep.bench.suite import run_bench

    out = arguments.out
    if out:
        check_folder(out)
    tell = None if arguments.no_progress else progress_line
    keep = (lambda measured: write_numbers(measured, out)) if out else None
    measured = run_bench(tell=tell, keep=keep, **given_options(arguments, run_bench))
    text = bench_text(measured)
    if out:
        write_pages(measured, text, out)
        text += f"\n\nWritten to {out}: bench.json, bench.md, bench.png"
    emit(arguments, text, measured)
    match measured["right"].get("verdict"):
        case "right":
            return DONE_STATUS
        case "WRONG":
            return finding("a device does not compute what it should; do not fit on it")
        case _:
            return finding("whether devices compute what they should could not be told")


_DEVICE_FIELD = shapes.text("`cpu`, or another platform of JAX")
_ERROR_KEY = {"error": shapes.conditional_name("where it failed", shapes.text("why, in one line"))}
_MEASURED_WHEN = "where it did not fail"
_COMPILE_FIELDS = {
    "compile_s": shapes.seconds("to compile, beside other programs"),
    "kernels": shapes.count("instructions that launch something; loops as often as they turn"),
    "waits": shapes.count("loops whose end depends on data"),
    "flops": shapes.nullable(shapes.number("operations that the compiler counts")),
    "bytes": shapes.nullable(
        shapes.number("that the compiler counts as read and written", "bytes")
    ),
}
_FACT_FIELDS = {
    name: shapes.conditional_name("where it was compiled", each)
    for name, each in _COMPILE_FIELDS.items()
}
_PEAK_FIELDS = shapes.conditional_name(
    "where the part did not fail",
    shapes.by_name(
        shapes.nullable(shapes.count()),
        "most memory until then in bytes, by device; null where not told",
    ),
)
_GRADIENT_FIELDS = {
    "rows": shapes.rows(
        {
            "device": _DEVICE_FIELD,
            "kind": shapes.word("full", "surrogate"),
            "classifiers": shapes.count(),
            "chains": shapes.count("in one call"),
            "bits": shapes.count(),
            "us": shapes.conditional_name(
                _MEASURED_WHEN,
                shapes.number("a call among others; on a CPU by itself", "microseconds"),
            ),
            "us_alone": shapes.conditional_name(
                _MEASURED_WHEN, shapes.number("a call that is waited for", "microseconds")
            ),
            "bound_us": shapes.conditional_name(
                "with the roofline",
                shapes.nullable(
                    shapes.number("least for its bytes and operations", "microseconds")
                ),
            ),
            **_FACT_FIELDS,
            **_ERROR_KEY,
        }
    ),
    "peak_bytes": _PEAK_FIELDS,
    **_ERROR_KEY,
}

_RATE_FIELDS = {
    "bytes_per_s": shapes.number("copied", "bytes a second"),
    "float64_per_s": shapes.number("of a product of matrices", "operations a second"),
    "float32_per_s": shapes.number("likewise", "operations a second"),
    "call_us": shapes.number("of a program that does nothing", "microseconds"),
    "turn_known_us": shapes.number("of a loop of a known number", "microseconds"),
    "turn_waits_us": shapes.number("of a loop that data end", "microseconds"),
}
FORMS: shapes.Forms = {
    "": {
        "quick": shapes.flag(),
        "machine": shapes.thing(
            {
                "python": shapes.text(),
                "system": shapes.text(),
                "cpu": shapes.text("its maker's name"),
                "cores": shapes.count("that the process may use"),
                "memory_bytes": shapes.nullable(shapes.count()),
                "gpus": shapes.list_of(
                    shapes.by_name(shapes.text()), "what nvidia-smi tells of each"
                ),
                "versions": shapes.by_name(shapes.text(), "by package"),
                "torch": shapes.nullable(
                    shapes.text("its version and whether it sees a GPU; null without either")
                ),
            }
        ),
        "devices": shapes.rows(
            {
                "device": _DEVICE_FIELD,
                "kind": shapes.text("its maker's name"),
                "count": shapes.count(),
                "runtime": shapes.text("such as the version of CUDA"),
            }
        ),
        "seconds": shapes.by_name(shapes.seconds(), "by part"),
        "right": shapes.thing(
            {
                "verdict": shapes.conditional_name(
                    "where the part did not fail", shapes.word(*("right", "WRONG", "NOT KNOWN"))
                ),
                "against": shapes.conditional_name(
                    "likewise", shapes.text("what is compared with")
                ),
                "limit": shapes.conditional_name("likewise", shapes.number("on every difference")),
                "rows": shapes.rows(
                    {
                        "what": shapes.text("is compared"),
                        "device": _DEVICE_FIELD,
                        "difference": shapes.conditional_name(
                            _MEASURED_WHEN,
                            shapes.nullable(shapes.number("largest, relative; null: infinite")),
                        ),
                        "compile_s": shapes.conditional_name("beside the CPU", shapes.seconds()),
                        **_ERROR_KEY,
                    }
                ),
                **_ERROR_KEY,
            }
        ),
        "gradients": shapes.thing(_GRADIENT_FIELDS, "of the joint model, in 64 bits"),
        "draws": shapes.thing(
            {
                "classifiers": shapes.conditional_name(
                    "where the part did not fail", shapes.count()
                ),
                "rows": shapes.rows(
                    {
                        "device": _DEVICE_FIELD,
                        "chains": shapes.count(),
                        "draws_per_s": shapes.conditional_name(
                            _MEASURED_WHEN, shapes.number("of all chains")
                        ),
                        "us_a_step": shapes.conditional_name(
                            _MEASURED_WHEN,
                            shapes.number("of the longest trajectory", "microseconds"),
                        ),
                        "steps_a_draw": shapes.conditional_name(
                            _MEASURED_WHEN, shapes.number("of the longest trajectory")
                        ),
                        **_FACT_FIELDS,
                        **_ERROR_KEY,
                    }
                ),
                "peak_bytes": _PEAK_FIELDS,
                **_ERROR_KEY,
            }
        ),
        "roofline": shapes.thing(
            {
                "rows": shapes.rows(
                    {
                        "device": _DEVICE_FIELD,
                        **{
                            name: shapes.conditional_name(_MEASURED_WHEN, each)
                            for name, each in _RATE_FIELDS.items()
                        },
                        **_ERROR_KEY,
                    },
                    "what devices can do",
                ),
                **_ERROR_KEY,
            }
        ),
        "gradients_32": shapes.thing(_GRADIENT_FIELDS, "of the joint model, in 32 bits"),
        "advice": shapes.text("where to run which fit, by these numbers"),
    }
}
