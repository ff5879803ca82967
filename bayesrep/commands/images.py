"""`bayesrep images`: how hard every image of the replication is, for people and classifiers."""

from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.commands.options import add_shared, read_fitted
from bayesrep.commands.output import emit_table
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "my-study all.nc --format csv > images.csv"


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study", "posterior", "--allow-unconverged")


def run(arguments: Namespace) -> int:
    from bayesrep.posterior.fitted import Fitted
    from bayesrep.report.estimates_text import images_table

    study, posterior = read_fitted(arguments)
    table = bayesrep.describe_images(study, posterior)
    Fitted(study, posterior).require_convergence(allow_unconverged=arguments.allow_unconverged)
    return emit_table(
        arguments, table, images_table(table, words_of(study)), left_out=study.left_out
    )
