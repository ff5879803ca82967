"""`bayesrep answers import`: what annotators answered, as their tools export it, as one table."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep.commands.options import by_name, named_path, names
from bayesrep.commands.output import emit, new_table_file, write_table
from bayesrep.errors import OptionError

EXAMPLE = "label-studio v1=export.json --yes fits --out answers.csv"

RENAMED = ("image", "worker", "answer", "label")
RAW_COLUMNS = ("dataset", "image", "label", "worker", "selected", "task", "control", "seconds")


def add(parser: ArgumentParser) -> None:
    from bayesrep.sources.raw_answers import MAYBE_RULES, RAW_SOURCES

    option = parser.add_argument
    sources = tuple(RAW_SOURCES)
    option("source", choices=sources, metavar="SOURCE", help=f"format: {', '.join(sources)}")
    option("files", type=named_path, nargs="+", metavar="NAME=FILE", help="data sets and files")
    option("--out", type=Path, required=True, metavar="FILE", help="file to write, CSV or Parquet")
    option(
        "--rename",
        action="append",
        metavar="COLUMN=NAME",
        help="column to read as image, worker, answer, or label (that was asked about), where a * "
        "stands for the images of a grid, or for raters; may be repeated",
    )
    option("--separator", help="what separates answers, where several could be selected")
    option(
        "--labels",
        type=Path,
        metavar="FILE",
        help="images' own labels, the only answers to keep: a table of dataset, image, label",
    )
    option("--counts", type=Path, metavar="TABLE", help="also write how often labels were selected")
    for word in ("yes", "no", "maybe"):
        option(f"--{word}", type=names, default=[], metavar="WORD,WORD", help=f"words for {word}")
    option("--maybe-is", choices=MAYBE_RULES, help="what the words of --maybe count as")
    option("--keep-workers", action="store_true", help="keep workers' names instead of codes")


def run(arguments: Namespace) -> int:
    import polars as pl

    from bayesrep.files.given_files import refuse_copies
    from bayesrep.files.tables import read_only
    from bayesrep.report.answers_text import answers_text
    from bayesrep.sources import label_questions, raw_answers
    from bayesrep.studies.worker_answers import code_workers

    out, counts, separator = arguments.out, arguments.counts, arguments.separator
    files = [file for _, file in arguments.files]
    for path in (out, *([] if counts is None else [counts])):
        new_table_file(path, arguments)
    refuse_copies(files)
    renamed = by_name("--rename", arguments.rename) or {}
    if strange := [name for name in renamed.values() if name not in RENAMED]:
        raise OptionError("unknown-name-of-column", name=strange[0], choices=", ".join(RENAMED))
    called = {name: column for column, name in renamed.items()}
    if len(called) < len(renamed):
        raise OptionError("column-renamed-as-another", names=", ".join(called))
    columns = raw_answers.Columns(**called, separator=separator)
    parts = [
        raw_answers.read_raw(arguments.source, file, columns).with_columns(dataset=pl.lit(name))
        for name, file in arguments.files
    ]
    raw_table = pl.concat(parts, how="diagonal")
    # With labels only answers about an image's own label count as selections of it.
    own, answers, left_out = None, raw_table, dict[str, int]()
    if arguments.labels:
        labels = read_only(arguments.labels, ("dataset", "image", "label")).frame
        own = label_questions.own_labels(raw_table, labels, str(arguments.labels), separator)
        answers, left_out = own.answers, dict(own.left_out)
    elif separator is not None:
        answers = label_questions.ask_each(raw_table, separator)

    def decide(table: pl.DataFrame) -> pl.DataFrame:
        words = {name: getattr(arguments, name) for name in ("yes", "no", "maybe")}
        rule, seed = arguments.maybe_is, arguments.seed
        return raw_answers.decide(table, **words, maybe_is=rule, seed=seed or 0)

    decided = decide(answers)
    left_out["maybe"] = len(answers) - len(decided)
    # Counts of all labels are made before workers' names are replaced.
    of_labels = None
    if counts is not None:
        if separator is None:
            of_labels = label_questions.count_labels(decide(raw_table))
        else:
            of_labels = label_questions.count_choices(raw_table, separator)
        of_labels = of_labels if own is None else own.mark(of_labels)
    if not arguments.keep_workers:
        decided = code_workers(decided)
    decided = decided.select([name for name in RAW_COLUMNS if name in decided.columns])
    write_table(decided, out)
    if counts is not None and of_labels is not None:
        write_table(of_labels, counts)
    table = raw_answers.describe_answers(decided)
    facts = {"rows": table.to_dicts(), "not_counted": left_out, "out": str(out)}
    return emit(arguments, f"{answers_text(table, left_out)}\nWritten to {out}", facts)
