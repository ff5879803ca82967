"""`bayesrep answers count`: counts of answers, of those that rules of quality control leave."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from bayesrep.commands.options import names
from bayesrep.commands.output import emit, new_table_file, write_table
from bayesrep.errors import OptionError

EXAMPLE = "answers.parquet --rules repeats,controls --out counts.csv"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "tables",
        type=Path,
        nargs="+",
        metavar="TABLE",
        help="answers, a row each: dataset, image, worker, selected; for some rules task, control "
        "(positive, negative or nothing), seconds",
    )
    option(
        "--rules",
        type=names,
        metavar="NAME,NAME",
        help="rules of quality control, in this order: engstrom2020, tsipras2020, time=SECONDS, "
        "repeats, controls, equal=N",
    )
    option("--answers", type=Path, metavar="TABLE", help="also write the answers that are kept")
    option("--out", type=Path, required=True, metavar="counts.csv", help="table, CSV or Parquet")


def run(arguments: Namespace) -> int:
    from bayesrep.answers.counting import count_answers, count_rows
    from bayesrep.report.answers_text import counted_text

    out, answers = arguments.out, arguments.answers
    for path in (out, *([] if answers is None else [answers])):
        new_table_file(path, arguments)
    if answers is not None and not arguments.rules:
        raise OptionError("answers-without-rules")
    text, facts = "", dict[str, Any]()
    if arguments.rules:
        cleaned, text, facts = _clean(arguments)
        counted = count_rows(cleaned.kept, ", ".join(map(str, arguments.tables)))
        if answers is not None:
            write_table(cleaned.kept, answers)
    else:
        counted = count_answers(arguments.tables)
    write_table(counted.counts, out)
    text += f"{counted_text(counted.datasets)}\nWritten to {out}"
    return emit(arguments, text, {"rows": counted.datasets.to_dicts(), "out": str(out), **facts})


def _clean(arguments: Namespace) -> tuple[Any, str, dict[str, Any]]:
    """The answers that the rules leave, and what to say of the others."""
    import polars as pl

    from bayesrep.answers.quality import clean_answers
    from bayesrep.files.given_files import refuse_copies
    from bayesrep.report.answers_text import cleaned_text
    from bayesrep.sources.table_files import read_answers

    refuse_copies(arguments.tables)
    table = pl.concat(map(read_answers, arguments.tables), how="diagonal_relaxed")
    cleaned = clean_answers(table, arguments.rules, seed=arguments.seed or 0)
    facts = {"dropped": cleaned.dropped.to_dicts(), "effect": cleaned.effect.to_dicts()}
    return cleaned, f"{cleaned_text(cleaned)}\n\n", facts
