"""`bayesrep papers passk`: the share of items that k attempts solve, for any k."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import get_args

from bayesrep.choices import PassTarget
from bayesrep.commands.options import given_options, names, whole_numbers
from bayesrep.commands.output import emit_table, new_file

EXAMPLE = "attempts.csv --k 1,10,100"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "path",
        type=Path,
        metavar="STUDY|TABLE",
        help="a study with attempts, or a table of item, model, solved, attempts",
    )
    option("--k", type=whole_numbers, metavar="N,N", help="numbers of attempts (default 1,10,100)")
    option(
        "--target",
        choices=get_args(PassTarget),
        help="pass@k of the population of items, or of these very items (default population)",
    )
    option("--between", type=names, metavar="A,B", help="models whose differences to show")
    option("--figure", type=Path, metavar="FILE", help="file for the curves, .pdf, .svg or .png")


def run(arguments: Namespace) -> int:
    from bayesrep.estimators.pass_at_k import pass_at_k
    from bayesrep.report.figure import check_format, save_picture
    from bayesrep.report.pass_at_k_text import answer, draw_pass_at_k, pass_at_k_text
    from bayesrep.studies.attempts import read_attempts

    if arguments.figure:
        new_file(check_format(arguments.figure), arguments)
    attempts = read_attempts(arguments.path)
    options = given_options(arguments, pass_at_k)
    result = pass_at_k(attempts, **options, progress=not arguments.quiet)
    alone = len(set(result.models["model"])) == 2 and not arguments.between
    differences = result.differences(arguments.between) if arguments.between or alone else None
    if arguments.figure:
        save_picture(draw_pass_at_k(result), arguments.figure)
    facts = {
        "target": result.target,
        "models": result.models.to_dicts(),
        "differences": None if differences is None else differences.to_dicts(),
        "answer": answer(result, differences),
    }
    return emit_table(arguments, result.table, pass_at_k_text(result, differences), facts)
