"""`bayesrep multilabel`: accuracy by all labels that are right on an image."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import get_args

from bayesrep.choices import Empty
from bayesrep.commands.options import add_protocol, add_shared, given
from bayesrep.commands.output import emit_table, lacking, new_table


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_protocol(parser, "accuracies", "co-occurrence", "people", "judged", "confusion")
    option(
        "--labels",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="label sets: real.json, or tables with the columns image and label",
    )
    add_shared(parser, "--objects", "--counts")
    option("--dataset", default="reference", metavar="NAME", help="role or name (reference)")
    add_shared(parser, "--classes", "--by")
    option("--empty", choices=get_args(Empty), help="images on which no label is right (exclude)")
    option("--trials", type=int, help="random sets of classes, for p-values (1000)")


def run(arguments: Namespace) -> int:
    from bayesrep import protocols
    from bayesrep.protocols.subsets import read_grouping
    from bayesrep.report.text import multilabel_table, rows_table
    from bayesrep.studies.reading import images_left_out

    new_table(arguments)
    by_people = arguments.table in ("people", "judged", "confusion")
    if by_people and arguments.objects is None and arguments.counts is None:
        return lacking(f"multilabel --table {arguments.table}", ["--objects or --counts"])
    if not by_people and arguments.labels is None:
        return lacking("multilabel", ["--labels"])
    (answers,) = protocols.read_predictions(arguments.study, (arguments.dataset,))
    if by_people:
        said = protocols.read_people(answers, **given(arguments, protocols.read_people))
        if arguments.table == "confusion":
            every = protocols.people_beside(answers, said)
            grouping = read_grouping(arguments.classes, answers.classes, arguments.by)
            table = protocols.confusion(every, grouping, **given(arguments, protocols.confusion))
        else:
            of = {"people": protocols.seen, "judged": protocols.judged}[arguments.table]
            table = of(answers, said, **given(arguments, of))
        left_out = images_left_out(arguments.study)
        return emit_table(arguments, table, rows_table(table), left_out=left_out)
    sets = protocols.read_label_sets(arguments.labels, answers)
    left_out, file = images_left_out(arguments.study), arguments.classes
    if arguments.table == "co-occurrence":
        grouping = read_grouping(file, answers.classes, arguments.by)
        options = given(arguments, protocols.co_occurrence)
        table = protocols.co_occurrence(answers, sets, grouping, **options)
        return emit_table(arguments, table, rows_table(table), left_out=left_out)
    groups = protocols.read_groups(file, answers.classes) if file else None
    subsets = protocols.class_subsets(answers.classes, groups)
    options = given(arguments, protocols.multilabel)
    table = protocols.multilabel(answers, sets, subsets=subsets, **options)
    return emit_table(arguments, table, multilabel_table(table), left_out=left_out)
