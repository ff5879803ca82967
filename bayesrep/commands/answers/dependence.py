"""`bayesrep answers dependence`: how much annotators' answers depend on each other."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

import bayesrep
from bayesrep.commands.output import emit_table

EXAMPLE = "answers.csv --context grid"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "table",
        type=Path,
        help="a table, a row an answer: image, selected, context, and dataset if several",
    )
    option(
        "--context",
        default="grid",
        metavar="COLUMN",
        help="what annotators of an image shared: a grid, a task, a session (grid)",
    )


def run(arguments: Namespace) -> int:
    import polars as pl

    from bayesrep.errors import OptionError, StudyError
    from bayesrep.files.tables import read_only, require
    from bayesrep.files.values import flags, texts
    from bayesrep.report.table_format import rows_table

    context = arguments.context
    names = ("image", context)
    if context in ("dataset", "image", "selected"):
        raise OptionError("context-column-reserved", context=context)
    answers, where = read_only(arguments.table, ("dataset", *names))
    require(answers, (*names, "selected"), where)
    if "dataset" not in answers.columns:
        answers = answers.with_columns(dataset=pl.lit(""))
    selected = flags(answers["selected"], where)
    if selected.null_count():
        raise StudyError("selected-missing-in-answers", where=where)
    columns = [answers["dataset"], *(texts(answers[name], where) for name in names), selected]
    rows = []
    for (dataset,), part in pl.DataFrame(columns).group_by("dataset", maintain_order=True):
        try:
            correlation = bayesrep.intraclass_correlation(*part.drop("dataset"))
        except StudyError as error:
            raise error.add_place(f"{where}: {dataset}" if dataset else where) from None
        rows.append({"dataset": dataset, **asdict(correlation)})
    table = pl.DataFrame(rows)
    return emit_table(arguments, table, rows_table(table))
