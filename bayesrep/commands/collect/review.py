"""`bayesrep collect review`: predictions that nobody has judged, as tasks."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from bayesrep.commands.options import add_shared, given_options, names
from bayesrep.commands.output import emit, new_table_file, write_table
from bayesrep.errors import OptionError

EXAMPLE = "my-study --reviewers ann,bob --out review.csv"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_shared(parser, "study", "--datasets")
    option(
        "--judged",
        type=Path,
        nargs="+",
        default=[],
        metavar="TABLE",
        help="what is judged already: dataset, image, label, right, as this step writes it",
    )
    option(
        "--labels",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="label sets: the labels that are right, as `papers compare` takes them",
    )
    option("--humans", type=Path, metavar="FILE", help="people's answers, to be judged too")
    option("--reviewers", type=names, metavar="NAME,NAME", help="people who share the tasks")
    option("--sets", type=Path, metavar="TABLE", help="write the right labels, as label sets")
    option(
        "--out",
        type=Path,
        required=True,
        metavar="TABLE",
        help="of the tasks, CSV or Parquet; fill in the column right",
    )


def run(arguments: Namespace) -> int:
    from bayesrep.collect.prediction_review import judge_by_sets, review, right_labels
    from bayesrep.protocols import read_humans, read_label_sets
    from bayesrep.report.table_format import rows_table
    from bayesrep.sources.collection_tables import read_judgements
    from bayesrep.studies.answers import read_predictions

    for path in (arguments.out, arguments.sets):
        if path is not None:
            new_table_file(path, arguments)
    if arguments.sets is not None and not (arguments.judged or arguments.labels):
        raise OptionError("sets-without-judgements")
    answers = read_predictions(
        arguments.study, ranks=1, **given_options(arguments, read_predictions)
    )
    judged = read_judgements(arguments.judged)
    # Label sets are judgements, too.
    for data in answers if arguments.labels else ():
        sets = read_label_sets(arguments.labels, data)
        judged = judged.vstack(judge_by_sets(data, sets.image, sets.label))
    humans = read_humans(arguments.humans, *answers) if arguments.humans else None
    options: dict[str, Any] = {
        **given_options(arguments, review),
        "judged": judged,
        "humans": humans,
    }
    tasks = review(answers, **options)
    write_table(tasks.tasks, arguments.out)
    if arguments.sets is not None:
        write_table(right_labels(judged), arguments.sets)
    facts = {"rows": tasks.statistics.to_dicts(), "tasks": len(tasks.tasks)}
    text = f"{rows_table(tasks.statistics)}\n\n{len(tasks.tasks):,} predictions to be judged"
    return emit(
        arguments, f"{text}\nWritten to {arguments.out}", facts | {"out": str(arguments.out)}
    )
