"""`bayesrep images`: say how hard every image is, for people and for classifiers."""

from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.commands.options import add_shared, read_fitted
from bayesrep.commands.output import emit_table
from bayesrep.studies.words import words_of


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study", "posterior", "--csv", "--force", "--allow-unconverged")


def run(arguments: Namespace) -> int:
    from bayesrep.posterior.fitted import Fitted
    from bayesrep.report.estimates_text import images_table

    study, posterior = read_fitted(arguments)
    table = bayesrep.describe_images(study, posterior)
    Fitted(study, posterior).require_convergence(allow_unconverged=arguments.allow_unconverged)
    return emit_table(
        arguments, table, images_table(table, words_of(study)), left_out=study.left_out
    )
