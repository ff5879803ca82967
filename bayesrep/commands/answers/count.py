"""`bayesrep answers count`: counts of more answers than fit into memory."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep.commands.output import emit, new_table_file, write_table

EXAMPLE = "answers.parquet --out counts.csv"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "tables",
        type=Path,
        nargs="+",
        metavar="TABLE",
        help="a table, a row an answer: dataset, image, worker, selected",
    )
    option("--out", type=Path, required=True, metavar="counts.csv", help="CSV or Parquet")


def run(arguments: Namespace) -> int:
    from bayesrep.answers.counting import count_answers
    from bayesrep.report.answers_text import counted_text

    out = arguments.out
    new_table_file(out, arguments)
    counted = count_answers(arguments.tables)
    write_table(counted.counts, out)
    facts = {"rows": counted.datasets.to_dicts(), "out": str(out)}
    return emit(arguments, f"{counted_text(counted.datasets)}\nWritten to {out}", facts)
