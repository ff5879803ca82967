"""`bayesrep collect read`: answers back, of Label Studio, Mechanical Turk or the offline page."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayesrep.commands.options import names
from bayesrep.commands.output import emit, new_table_file, write_batches, write_table
from bayesrep.errors import OptionError

EXAMPLE = "tasks batch.csv --own --out answers.csv --counts counts.csv"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("collection", type=Path, metavar="COLLECTION", help="folder of the tasks")
    option(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="batch results, exports, or what the page saved (.csv, .json), or folders of these",
    )
    option("--own", action="store_true", help="keep answers about images' own labels alone")
    option(
        "--rules",
        type=names,
        metavar="NAME,NAME",
        help="of quality control: engstrom2020, tsipras2020, time, repeats, controls, equal",
    )
    option("--least", type=float, default=0.0, metavar="SECONDS", help="of a task (rule time)")
    option("--pay", type=float, help="of a task, where the file does not say")
    option("--counts", type=Path, metavar="TABLE", help="how often each label was selected, too")
    option("--keep-workers", action="store_true", help="keep workers' names, instead of codes")
    option(
        "--out", type=Path, required=True, metavar="TABLE", help="of the answers, CSV or Parquet"
    )


def run(arguments: Namespace) -> int:
    import polars as pl

    from bayesrep import collect
    from bayesrep.answers.quality import RuleInputs, clean_answers
    from bayesrep.collect.responses import count_selections
    from bayesrep.report.answers_text import cleaned_text
    from bayesrep.report.collect_text import read_text
    from bayesrep.sources.assignments import read_assignments
    from bayesrep.studies.worker_answers import code_workers

    out, counts = arguments.out, arguments.counts
    for path in (out, *([] if counts is None else [counts])):
        new_table_file(path, arguments)
    collection = collect.read_collection(arguments.collection)
    done = read_assignments(_files(arguments.files))
    if arguments.pay is not None:
        done = done.with_columns(pl.col("pay").fill_null(arguments.pay))
    if not arguments.keep_workers:
        done = code_workers(done)
    answers = collect.match_assignments(collection, done)
    progress = answers.progress()
    text = read_text(collection, answers, progress)
    facts: dict[str, Any] = {
        "rows": progress.to_dicts(),
        "not_counted": dict(answers.left_out),
        "out": str(out),
    }
    # With --own only questions about images' own labels are written.
    own_rows = pl.col("own") if arguments.own else pl.lit(value=True)
    # Quality rules look at all answers at once; without them answers are streamed.
    if arguments.rules:
        rules = RuleInputs(arguments.least, None, 0)
        cleaned = clean_answers(answers.table().filter(own_rows), arguments.rules, rules)
        text = f"{text}\n\n{cleaned_text(cleaned)}"
        facts |= {"dropped": cleaned.dropped.to_dicts(), "effect": cleaned.effect.to_dicts()}
        write_table(cleaned.kept, out)
        of_labels = count_selections(cleaned.kept)
    else:
        write_batches((part.filter(own_rows) for part in answers.batches()), out)
        of_labels = answers.counts().filter(own_rows)
    if counts is not None:
        write_table(of_labels, counts)
    return emit(arguments, f"{text}\nWritten to {out}", facts)


def _files(paths: Sequence[Path]) -> list[Path]:
    """Files, those of folders among them."""
    files: list[Path] = []
    for path in paths:
        inside = sorted(each for each in path.glob("*") if each.suffix in (".csv", ".json"))
        if path.is_dir() and not inside:
            raise OptionError("folder-without-answer-files", path=path)
        files += inside if path.is_dir() else [path]
    return files
