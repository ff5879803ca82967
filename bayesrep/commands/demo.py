"""`bayesrep demo`: simulate, estimate, fit and compare with the truth."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep import process
from bayesrep.commands.options import given_options
from bayesrep.commands.output import emit, progress_line

EXAMPLE = "--quick --out demo-output"


def add(parser: ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for tables and figures")
    parser.add_argument("--quick", action="store_true", help="take a smaller study: about a minute")


def run(arguments: Namespace) -> int:
    from bayesrep.errors import Violation
    from bayesrep.report.demo import check_demo_folder, demo_facts, demo_text, run_demo, write_demo
    from bayesrep.report.figure import has_pictures

    if arguments.out:
        check_demo_folder(arguments.out)
    watched = not arguments.quiet
    tell = progress_line if watched else None
    demo = run_demo(progress=watched, tell=tell, **given_options(arguments, run_demo))
    text = demo_text(demo)
    if arguments.out:
        write_demo(demo, arguments.out)
        pictures = "adjusted-accuracy.png and .svg, " if has_pictures() else ""
        lacking = "" if pictures else f"\nNo pictures: {Violation('pictures-not-installed')}"
        made = (arguments.out / name for name in ("study", "posterior.nc"))
        text += (
            f"\n\nWritten to {arguments.out}: study/, posterior.nc, estimates.csv, demo.json, "
            f"{pictures}report.html (open it in a browser){lacking}\n"
            f"Next: {process.command('summarize', *made)}"
        )
    return emit(arguments, text, demo_facts(demo))
