"""`bayesrep images`: how hard every image of the replication is, for people and classifiers."""

from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.commands import shapes
from bayesrep.commands.options import add_shared, read_fitted
from bayesrep.commands.output import emit_table
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "my-study all.nc --csv images.csv"


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


FORMS: shapes.Forms = {
    "": shapes.table(
        {
            "dataset": shapes.text(),
            "image": shapes.text(),
            "label": shapes.conditional_name(
                "where there are labels", shapes.nullable(shapes.text())
            ),
            "selected": shapes.count(),
            "shown": shapes.count(),
            "right": shapes.fraction("classifiers that are"),
            "expected": shapes.fraction("the same, of images with its counts"),
            "selection_frequency": shapes.fraction("posterior mean"),
            "selection_frequency_sd": shapes.fraction("posterior standard deviation"),
            **{
                name: shapes.number("0: average for its counts, 1: a standard deviation harder")
                for name in ("difficulty", "difficulty_sd")
            },
        }
    )
}
