"""`bayesrep bench`: whether a GPU is seen, is right, and what it buys."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

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
