"""`bayesrep pairs`: which of two classifiers is better once selection is removed, for every two."""

from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.commands.options import add_shared, given, read_fitted
from bayesrep.commands.output import emit_table


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study", "posterior", "--crowd-sd", "--csv", "--force")
    add_shared(parser, "--allow-unconverged")


def run(arguments: Namespace) -> int:
    from bayesrep.report.text import pairs_table

    study, posterior = read_fitted(arguments)
    options = given(arguments, bayesrep.compare_classifiers)
    table = bayesrep.compare_classifiers(study, posterior, **options)
    text = pairs_table(table, study.classifiers)
    return emit_table(arguments, table, text, left_out=study.left_out)
