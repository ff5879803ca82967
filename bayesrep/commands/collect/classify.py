"""`bayesrep collect classify`: tasks of one image each, about its objects and the main one."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep.commands.collect.questions import (
    add_pictures,
    gather_questions,
    read_descriptions,
)
from bayesrep.commands.options import given_options
from bayesrep.commands.output import emit, new_folder
from bayesrep.errors import OptionError

EXAMPLE = "labels.csv --images v1=val --out closer"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("table", type=Path, help="dataset, image, label, own, as `collect labels` writes them")
    add_pictures(parser)
    option("--answers", type=int, default=9, help="of every image (9)")
    option("--out", type=Path, required=True, metavar="FOLDER", help="of the collection")


def run(arguments: Namespace) -> int:
    from bayesrep import collect
    from bayesrep.report.collect_text import tasks_text

    new_folder(arguments.out, arguments)
    if arguments.answers < 1:
        raise OptionError("answers-option-below-one", answers=arguments.answers)
    rows = gather_questions(arguments)
    options = given_options(arguments, collect.plan_classify)
    tasks = collect.plan_classify(rows, **options)
    options_used = {"answers": arguments.answers, **options}
    collection = collect.Collection("classify", tasks, arguments.answers, options_used)
    files = collect.write_collection(arguments.out, collection, read_descriptions(arguments, rows))
    number = tasks["task"].n_unique()
    facts = {"tasks": number, "assignments": number * arguments.answers, "images": number}
    where = {"files": files, "out": str(arguments.out)}
    return emit(arguments, tasks_text("classify", facts, where), facts | where)
