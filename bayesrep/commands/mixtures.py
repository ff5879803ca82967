"""`bayesrep mixtures`: compare mixtures of the selection frequency by size."""

from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.commands.options import add_shared, ends, given
from bayesrep.commands.output import emit_table, new_table


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study")
    parser.add_argument("--components", type=_sizes, metavar="K|LOW:HIGH", help="(1:6)")
    parser.add_argument("--folds", type=int, help="parts for the held-out likelihood (5)")
    add_shared(parser, "--seed", "--csv", "--force")


def _sizes(text: str) -> range:
    low, high = ends(text)
    return range(low, high + 1)


def run(arguments: Namespace) -> int:
    from bayesrep.estimators.components import compare_components
    from bayesrep.report.text import components_table

    new_table(arguments)
    study = bayesrep.read_study(arguments.study)
    table = compare_components(study, **given(arguments, compare_components))
    return emit_table(arguments, table, components_table(table), left_out=study.left_out)
