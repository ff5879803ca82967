"""`bayesrep papers annotators`: estimates for every number of annotators."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import Any

import bayesrep
from bayesrep.commands.options import add_shared, given_options, keep_compiled, whole_numbers
from bayesrep.commands.output import emit_table
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "my-study"


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study")
    parser.add_argument(
        "--forward",
        type=whole_numbers,
        metavar="N,N",
        help="say what the naive estimate would be with so many annotators, by EM + spline",
    )
    parser.add_argument(
        "--half",
        action="store_true",
        help="say how the naive estimate changes with a random half of the images",
    )


def run(arguments: Namespace) -> int:
    from bayesrep.estimators import analyse, matching_facts, matching_sentences
    from bayesrep.estimators.annotators import compare_annotators, extrapolate, linearity
    from bayesrep.estimators.finite_sample import half_the_images
    from bayesrep.report.conclusion import annotators_sentence
    from bayesrep.report.estimates_text import annotators_table, forward_table
    from bayesrep.report.other_images import halves_text

    study = bayesrep.read_study(arguments.study)
    table = compare_annotators(study)
    line = linearity(table)
    methods = ("naive",) if table["annotators"].max() == 1 else ("naive", "jackknife")
    analyses = analyse(study, methods, **given_options(arguments, analyse))
    facts: dict[str, Any] = {
        "linearity": asdict(line) if line else None,
        "matching": matching_facts(analyses),
    }
    matching = "".join(f"{sentence}\n" for sentence in matching_sentences(analyses))
    words = words_of(study)
    answer = annotators_sentence(table, line, analyses[-1].gap_error, analyses[-1].match, words)
    text = f"{annotators_table(table, line, words)}\n\n{matching}{answer}"
    if arguments.forward:
        keep_compiled()
        curve = extrapolate(study, arguments.forward, **given_options(arguments, extrapolate))
        text, facts["forward"] = (f"{text}\n\n{forward_table(curve, words)}", curve.to_dicts())
    if arguments.half:
        halves = half_the_images(study, **given_options(arguments, half_the_images))
        text, facts["half"] = f"{text}\n\n{halves_text(halves, words)}", halves.to_dicts()
    return emit_table(arguments, table, text, facts, study.left_out)
