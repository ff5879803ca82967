"""`bayesrep demo`: simulate, estimate, fit and compare with the truth."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep import process
from bayesrep.commands import shapes
from bayesrep.commands.options import add_shared, given_options
from bayesrep.commands.output import emit, progress_line

EXAMPLE = "--quick --out demo-output"

FITTED_FILES = ("study", "posterior.nc")


def add(parser: ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="DIR", help="write tables and figures here")
    parser.add_argument("--quick", action="store_true", help="a small study, in about a minute")
    add_shared(parser, "--no-progress", "--seed")


def run(arguments: Namespace) -> int:
    from bayesrep.report.demo import check_demo_folder, demo_facts, demo_text, run_demo, write_demo

    if arguments.out:
        check_demo_folder(arguments.out)
    watched = not arguments.no_progress
    tell = progress_line if watched else None
    demo = run_demo(progress=watched, tell=tell, **given_options(arguments, run_demo))
    text = demo_text(demo)
    if arguments.out:
        write_demo(demo, arguments.out)
        text += (
            f"\n\nWritten to {arguments.out}: study/, posterior.nc, estimates.csv, demo.json, "
            "adjusted-accuracy.png and .svg, report.html (open it in a browser)\n"
            f"Next: {process.command('summarize', *(arguments.out / n for n in FITTED_FILES))}"
        )
    return emit(arguments, text, demo_facts(demo))


FORMS: shapes.Forms = {
    "": {
        "study": shapes.thing(
            {
                "name": shapes.text(),
                "simulated": {"type": "object", "description": "the options of `simulate`"},
            }
        ),
        "methods": shapes.rows(
            {
                "method": shapes.text("`truth` is the last"),
                "mean_gap": shapes.fraction("bias-corrected, over classifiers"),
                "mean_error": shapes.nullable(shapes.fraction("of that gap")),
                "share_explained": shapes.nullable(shapes.fraction("of the drop, by selection")),
                "coverage": shapes.nullable(
                    shapes.probability("of the classifiers' 95 % intervals")
                ),
                **shapes.NULLABLE_ENDS,
            }
        ),
        "fitted_by": shapes.word("laplace", "nuts", description="what made the draws"),
        "max_rhat": shapes.nullable(shapes.number("of chains; null of weighted draws")),
        "min_ess_bulk": shapes.number(),
        "min_ess_tail": shapes.number(),
        "verdict": shapes.text("on convergence, as a sentence"),
        "versions": shapes.by_name(shapes.text(), "by package"),
    }
}
