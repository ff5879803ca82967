"""`bayesrep pairs`: which of two classifiers is better once selection is removed, for every two."""

from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.commands.options import (
    add_length,
    add_shared,
    given_options,
    length,
    names,
    read_fitted,
)
from bayesrep.commands.output import emit_table
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "my-study posterior.nc --between resnet50,vit_b16"


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study", "posterior")
    parser.add_argument(
        "--between", type=names, metavar="A,B,...", help="these classifiers only, all pairs of them"
    )
    add_length(parser, "pair")
    add_shared(parser, "--allow-unconverged")


def run(arguments: Namespace) -> int:
    from bayesrep.report.conclusion import pairs_sentence
    from bayesrep.report.estimates_text import pairs_table
    from bayesrep.report.select_pairs import pairs_between

    top = length(arguments)
    study, posterior = read_fitted(arguments)
    options = given_options(arguments, bayesrep.compare_classifiers)
    table = bayesrep.compare_classifiers(study, posterior, **options)
    if arguments.between:
        table = pairs_between(table, arguments.between, study.classifiers)
        top = len(table) if top is None else top
    words = words_of(study)
    text = pairs_table(table, study.classifiers, top, words)
    if len(study.classifiers) > 1:
        text += f"\n\n{pairs_sentence(table, words)}"
    return emit_table(arguments, table, text, left_out=study.left_out)
