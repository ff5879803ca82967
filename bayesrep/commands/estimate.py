"""`bayesrep estimate`: point estimates of every classifier and of all together."""

from argparse import ArgumentParser, Namespace
from typing import Any, get_args

import bayesrep
from bayesrep.choices import BootstrapInterval
from bayesrep.commands.options import add_length, add_shared, given_options, keep_compiled, length
from bayesrep.commands.output import emit_table
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "my-study --bootstrap 450"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_shared(parser, "study")
    option(
        "--methods",
        help="comma-separated (raw,naive,jackknife,em-spline), each with options in parentheses: "
        "'naive(annotators=10),em-spline(components=4)'",
    )
    option("--bootstrap", type=int, metavar="B", help="replicates for 95 %% intervals (0)")
    option("--interval", choices=get_args(BootstrapInterval), help="(percentile)")
    add_length(parser, "classifier")


def run(arguments: Namespace) -> int:
    keep_compiled()
    from bayesrep.estimators import (
        METHODS,
        analyse,
        classifier_table,
        gap_table,
        matching_facts,
        matching_sentences,
    )
    from bayesrep.report.answer import measured_drop
    from bayesrep.report.conclusion import estimate_sentence
    from bayesrep.report.estimates_text import gaps_text, side_by_side

    top = length(arguments)
    study = bayesrep.read_study(arguments.study)
    options: dict[str, Any] = {"methods": METHODS, **given_options(arguments, bayesrep.estimate)}
    analyses = analyse(study, progress=not arguments.quiet, **options)
    table, gaps = classifier_table(analyses), gap_table(analyses)
    parts = gaps_text(gaps, clear=measured_drop(study).is_above_zero)
    matching = "".join(f"{sentence}\n" for sentence in matching_sentences(analyses))
    words = words_of(study)
    text = (
        f"Accuracy at the reference's selection frequencies, in percent:\n\n"
        f"{side_by_side(table, top, words)}\n\nMean over {words.classifiers} and "
        f"line:\n\n{parts}\n{matching}{estimate_sentence(study, gaps)}"
    )
    facts = {"gaps": gaps.to_dicts(), "matching": matching_facts(analyses)}
    return emit_table(arguments, table, text, facts, study.left_out)
