"""`bayesrep collect candidates`: labels to ask about, of classifiers and of each image itself."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep.commands.options import add_shared, given_options, names
from bayesrep.commands.output import emit, new_table_file, write_table

EXAMPLE = "my-study --out candidates.csv"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_shared(parser, "study", "--datasets")
    option("--classifiers", type=names, metavar="NAME,NAME", help="whose answers count (all)")
    option("--top", type=int, help="how many of each classifier's answers count (5)")
    option("--out", type=Path, required=True, metavar="TABLE", help="CSV or Parquet")


def run(arguments: Namespace) -> int:
    from bayesrep import collect
    from bayesrep.report.collect_text import candidates_text
    from bayesrep.studies.answers import read_predictions

    new_table_file(arguments.out, arguments)
    answers = read_predictions(arguments.study, **given_options(arguments, read_predictions))
    table = collect.candidate_labels(answers, **given_options(arguments, collect.candidate_labels))
    write_table(table, arguments.out)
    sizes = table.group_by("dataset", "image").len().group_by("len").len("images").sort("len")
    facts = {"labels": dict(sizes.iter_rows()), "written": len(table), "out": str(arguments.out)}
    return emit(arguments, f"{candidates_text(sizes)}\nWritten to {arguments.out}", facts)
