"""`bayesrep compare`: classifiers beside people and each other on both data sets."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import bayesrep
from bayesrep.commands.options import add_datasets, add_protocol, add_shared, given, names
from bayesrep.commands.output import emit_table, new_table
from bayesrep.errors import OptionError
from bayesrep.studies.rules import REQUIRED_ROLES


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_protocol(parser, "accuracies", "pairs", "lines", "confusion")
    add_datasets(parser)
    option("--humans", type=Path, metavar="FILE", help="a table of image, labeler, answer")
    option("--labels", type=Path, nargs="+", metavar="FILE", help="label sets of both data sets")
    option("--published", action="store_true", help="add the people and networks of Shankar et al.")
    add_shared(parser, "--classes", "--by")
    option(
        "--dataset",
        choices=REQUIRED_ROLES,
        default=REQUIRED_ROLES[0],
        help="of the confusion (reference)",
    )
    option("--between", type=names, metavar="A,B", help="the confusion of one less another's")


def run(arguments: Namespace) -> int:
    from bayesrep.protocols import compare, read_humans, read_label_sets, read_predictions
    from bayesrep.protocols.humans import with_published
    from bayesrep.report.text import comparison_table, rows_table
    from bayesrep.studies.answers import knows_answers, right_or_wrong
    from bayesrep.studies.reading import images_left_out

    new_table(arguments)
    roles = (arguments.reference, arguments.replication)
    simple = arguments.table != "confusion" and not (arguments.humans or arguments.labels)
    if simple and roles == REQUIRED_ROLES and not knows_answers(arguments.study):
        both = right_or_wrong(bayesrep.read_study(arguments.study))
    else:
        both = read_predictions(arguments.study, roles, ranks=1)
    humans = read_humans(arguments.humans, *both) if arguments.humans else None
    left_out = images_left_out(arguments.study)
    if arguments.table == "confusion":
        table = _confusion(arguments, both, humans)
        return emit_table(arguments, table, rows_table(table), left_out=left_out)
    sets = None
    if arguments.labels:
        one, other = (read_label_sets(arguments.labels, data) for data in both)
        sets = one, other
    options = {**given(arguments, compare), "humans": humans, "sets": sets}
    comparison = compare(*both, **options)
    if arguments.table != "accuracies":
        table = comparison.lines if arguments.table == "lines" else comparison.pairs()
        return emit_table(arguments, table, rows_table(table), left_out=left_out)
    table = comparison.accuracies
    if arguments.published:
        table = with_published(table)
    text, facts = comparison_table(table, comparison.lines), comparison.lines.to_dicts()
    return emit_table(arguments, table, text, {"lines": facts}, left_out)


def _confusion(arguments: Namespace, both: Any, humans: Any) -> Any:
    """What is taken for what on one data set, by all or by one less another."""
    from bayesrep.protocols import beside, confusion, confusion_difference
    from bayesrep.protocols.subsets import read_grouping

    place = REQUIRED_ROLES.index(arguments.dataset)
    answers = both[place] if humans is None else beside(both[place], humans[place])
    grouping = read_grouping(arguments.classes, answers.classes, arguments.by)
    if not arguments.between:
        return confusion(answers, grouping, **given(arguments, confusion))
    if len(arguments.between) != 2:
        raise OptionError("--between takes two names: --between resnet50,A")
    one, other = arguments.between
    return confusion_difference(answers, one, other, grouping)
