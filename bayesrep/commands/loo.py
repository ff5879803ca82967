"""`bayesrep loo`: compare fits of one study by how well they predict what is left out."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import bayesrep
from bayesrep.commands.options import add_shared
from bayesrep.commands.output import emit_table, new_table


def add(parser: ArgumentParser) -> None:
    parser.add_argument("posteriors", type=Path, nargs="+", metavar="posterior.nc")
    add_shared(parser, "--csv", "--force")


def run(arguments: Namespace) -> int:
    from bayesrep.checks import compare
    from bayesrep.checks.comparison import text

    new_table(arguments)
    table = compare({str(path): bayesrep.read_posterior(path) for path in arguments.posteriors})
    return emit_table(arguments, table, text(table))
