"""`bayesrep ranks`: rank classifiers by adjusted accuracy."""

from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.commands.options import add_shared, given, read_fitted
from bayesrep.commands.output import emit_table


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study", "posterior", "--crowd-sd", "--csv", "--force")
    add_shared(parser, "--allow-unconverged")


def run(arguments: Namespace) -> int:
    from bayesrep.report.text import ranks_table

    study, posterior = read_fitted(arguments)
    options = given(arguments, bayesrep.rank_classifiers)
    table = bayesrep.rank_classifiers(study, posterior, **options)
    return emit_table(arguments, table, ranks_table(table), left_out=study.left_out)
