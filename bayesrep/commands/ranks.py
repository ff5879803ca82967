"""`bayesrep ranks`: rank classifiers by adjusted accuracy."""

from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.commands.options import add_length, add_shared, given_options, length, read_fitted
from bayesrep.commands.output import emit_table
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "my-study posterior.nc"


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study", "posterior")
    add_length(parser, "classifier")
    add_shared(parser, "--allow-unconverged")


def run(arguments: Namespace) -> int:
    from bayesrep.report.conclusion import ranks_sentence
    from bayesrep.report.estimates_text import ranks_table

    top = length(arguments)
    study, posterior = read_fitted(arguments)
    options = given_options(arguments, bayesrep.rank_classifiers)
    table = bayesrep.rank_classifiers(study, posterior, **options)
    words = words_of(study)
    text = ranks_table(table, top, words)
    if len(table) > 1:
        text += f"\n\n{ranks_sentence(table, words)}"
    return emit_table(arguments, table, text, left_out=study.left_out)
