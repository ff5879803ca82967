"""`bayesrep answers crowd`: who answered, how workers differ, and what that adds to errors."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

import bayesrep
from bayesrep.commands.output import emit, emit_table, new_table_file, write_table
from bayesrep.errors import OptionError, StudyError
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "my-study"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "study",
        type=Path,
        metavar="STUDY|TABLE",
        help="a study; with --context a table of answers: image, selected, the context, "
        "and dataset if several",
    )
    option("--workers", type=Path, metavar="TABLE", help="also write a row for each worker")
    option(
        "--aggregators",
        action="store_true",
        help="also show what crowd-kit's Dawid-Skene, MACE and GLAD say (extra [crowd])",
    )
    option(
        "--context",
        metavar="COLUMN",
        help="column of what annotators shared, a grid, task or session: how much answers about an "
        "image depend on each other through it",
    )


def run(arguments: Namespace) -> int:
    from bayesrep.report.answers_text import aggregators_text, crowd_text

    if arguments.workers:
        new_table_file(arguments.workers, arguments)
    if arguments.context is not None:
        return _describe_dependence(arguments)
    study = bayesrep.read_study(arguments.study)
    crowd = bayesrep.describe_crowd(study)
    others = None
    if arguments.aggregators:
        from bayesrep.answers import aggregate_answers

        others = aggregate_answers(study, seed=arguments.seed or 0)
    if arguments.workers:
        write_table(crowd.workers, arguments.workers)
    facts = {
        "rows": crowd.datasets.to_dicts(),
        "in_common": crowd.in_common,
        "difference_images": crowd.difference_images,
        "difference_workers": crowd.difference_workers,
        "sentence": crowd.sentence,
        "aggregators": None if others is None else others.to_dicts(),
    }
    words = words_of(study)
    text = crowd_text(crowd, words)
    if others is not None:
        text += f"\n\n{aggregators_text(others, words)}"
    return emit(arguments, text, facts, study.left_out)


def _describe_dependence(arguments: Namespace) -> int:
    import polars as pl

    from bayesrep.files.tables import read_only, require
    from bayesrep.files.values import flags, texts
    from bayesrep.report.table_format import rows_table

    context = arguments.context
    names = ("image", context)
    if context in ("dataset", "image", "selected"):
        raise OptionError("context-column-reserved", context=context)
    if arguments.workers or arguments.aggregators:
        raise OptionError("context-with-crowd-options")
    answers, where = read_only(arguments.study, ("dataset", *names))
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
