"""`bayesrep models mixtures`: compare mixtures of the selection frequency by size."""

import warnings
from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.commands.options import add_shared, ends, given_options, keep_compiled
from bayesrep.commands.output import emit_table
from bayesrep.errors import EstimateWarning
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "my-study --components 1:4"


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study")
    parser.add_argument("--components", type=_sizes, metavar="K|LOW:HIGH", help="(1:6)")
    parser.add_argument("--folds", type=int, help="parts for the held-out likelihood (5)")


def _sizes(text: str) -> range:
    low, high = ends(text)
    return range(low, high + 1)


def run(arguments: Namespace) -> int:
    from bayesrep.estimators.components import compare_components
    from bayesrep.report.conclusion import components_sentence
    from bayesrep.report.estimates_text import components_table

    keep_compiled()
    study = bayesrep.read_study(arguments.study)
    options = given_options(arguments, compare_components)
    with warnings.catch_warnings():  # what they say of em-spline is not asked; the table shows it
        warnings.simplefilter("ignore", EstimateWarning)
        table = compare_components(study, progress=not arguments.quiet, **options)
    text = f"{components_table(table)}\n\n{components_sentence(table, words_of(study))}"
    return emit_table(arguments, table, text, left_out=study.left_out)
