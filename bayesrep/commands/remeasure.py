"""`bayesrep remeasure`: what images that were kept would say if they were measured again."""

from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.commands.options import add_shared, read_fitted
from bayesrep.commands.output import emit_table


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study", "posterior", "--seed", "--csv", "--force", "--allow-unconverged")


def run(arguments: Namespace) -> int:
    from bayesrep.posterior.fitted import Fitted
    from bayesrep.report.text import remeasured_table

    study, posterior = read_fitted(arguments)
    Fitted(study, posterior).trusted(allow_unconverged=arguments.allow_unconverged)
    table = bayesrep.remeasure(study, posterior, seed=arguments.seed or 0)
    return emit_table(arguments, table, remeasured_table(table), left_out=study.left_out)
