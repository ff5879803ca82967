"""`bayesrep answers`: what annotators answered, as their tools export it, as one table."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from secrets import token_bytes

from bayesrep.commands.options import add_shared, names, seed
from bayesrep.commands.output import emit, new_table_file, write_table

COLUMNS = ("dataset", "image", "label", "worker", "selected", "task", "control", "seconds")


def named_file(text: str) -> tuple[str, Path]:
    """NAME=FILE."""
    name, separator, file = text.partition("=")
    if not (separator and name and file):
        raise ArgumentTypeError(f"{text!r} is not NAME=FILE, the data set's name and its answers")
    return name, Path(file)


def add(parser: ArgumentParser) -> None:
    from bayesrep.sources.raw_answers import MAYBE, SOURCES

    option = parser.add_argument
    option("source", choices=tuple(SOURCES), metavar="SOURCE", help=", ".join(SOURCES))
    option("files", type=named_file, nargs="+", metavar="NAME=FILE", help="data set and its file")
    option("--out", type=Path, required=True, metavar="FILE", help="CSV or Parquet")
    option("--image", metavar="COLUMN", help="of the image; a * stands for the images of a grid")
    option("--worker", metavar="COLUMN", help="of the worker")
    option("--answer", metavar="COLUMN", help="of the answer; a * as in --image")
    option("--label", metavar="COLUMN", help="of the label that was asked about")
    option("--separator", help="between answers, where all that apply were to be selected")
    option(
        "--labels",
        type=Path,
        metavar="FILE",
        help="keep answers about images' own labels: a table with dataset, image, label",
    )
    for word in ("yes", "no", "maybe"):
        option(f"--{word}", type=names, default=[], metavar="WORD,WORD", help=f"that mean {word}")
    option("--maybe-is", choices=MAYBE, help="what the words of --maybe count as")
    option("--seed", type=seed, default=0, help="of a half of the maybes")
    option("--keep-workers", action="store_true", help="keep workers' names, instead of codes")
    add_shared(parser, "--force")


def run(arguments: Namespace) -> int:
    import polars as pl

    from bayesrep.report.text import answers_text
    from bayesrep.sources import raw_answers
    from bayesrep.sources.table_files import read_table, require
    from bayesrep.studies.worker_answers import code

    out = arguments.out
    new_table_file(out, force=arguments.force)
    asked = raw_answers.Columns(
        arguments.image, arguments.worker, arguments.answer, arguments.label, arguments.separator
    )
    parts = [
        raw_answers.read_raw(arguments.source, file, asked).with_columns(dataset=pl.lit(name))
        for name, file in arguments.files
    ]
    answers = pl.concat(parts, how="diagonal")
    read = len(answers)
    if arguments.labels:
        labels = read_table(arguments.labels, ("dataset", "image", "label"))
        require(labels, ("dataset", "image", "label"), str(arguments.labels))
        answers = raw_answers.own_labels(answers, labels, str(arguments.labels))
    about = len(answers)
    decided = raw_answers.decide(
        answers,
        yes=arguments.yes,
        no=arguments.no,
        maybe=arguments.maybe,
        maybe_is=arguments.maybe_is,
        seed=arguments.seed,
    )
    left_out = {"about another label": read - about, "maybe": about - len(decided)}
    if not arguments.keep_workers:
        salt = token_bytes(32)
        coded = {name: code(name, salt) for name in decided["worker"].unique().to_list()}
        decided = decided.with_columns(pl.col("worker").replace_strict(coded))
    decided = decided.select([name for name in COLUMNS if name in decided.columns])
    write_table(decided, out)
    table = raw_answers.described(decided)
    facts = {"rows": table.to_dicts(), "not_counted": left_out, "out": str(out)}
    return emit(arguments, f"{answers_text(table, left_out)}\nWritten to {out}", facts)
