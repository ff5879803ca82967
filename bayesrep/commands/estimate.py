"""`bayesrep estimate`: point estimates of every classifier and of all together."""

import warnings
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import Any, get_args

import bayesrep
from bayesrep.choices import BootstrapInterval
from bayesrep.commands.options import (
    add_length,
    add_shared,
    add_table,
    given_options,
    keep_compiled,
    refuse_foreign,
    whole_numbers,
)
from bayesrep.commands.output import emit_table
from bayesrep.errors import EstimateWarning
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "my-study --bootstrap 450"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_shared(parser, "study")
    add_table(parser, "accuracies", "annotators", "components")
    option(
        "--methods",
        help="estimators, separated by commas, each with options in parentheses, such as "
        "'naive(annotators=10),em-spline(components=4)' (default raw,naive,jackknife,em-spline)",
    )
    option("--bootstrap", type=int, metavar="B", help="replicates for 95 %% intervals (default 0)")
    text = "kind of bootstrap interval (default percentile)"
    option("--interval", choices=get_args(BootstrapInterval), help=text)
    add_length(parser, "classifiers")
    option(
        "--forward",
        type=whole_numbers,
        metavar="N,N",
        help="with --table annotators: numbers of annotators for which EM + spline predicts the "
        "naive estimate",
    )


def run(arguments: Namespace) -> int:
    only_for = dict.fromkeys(("methods", "bootstrap", "interval", "top"), ("accuracies",))
    refuse_foreign(arguments, {**only_for, "forward": ("annotators",)})
    keep_compiled()
    make = {
        "accuracies": _estimate,
        "annotators": _vary_annotators,
        "components": _vary_components,
    }[arguments.table]
    study = bayesrep.read_study(arguments.study)
    return emit_table(arguments, *make(arguments, study), study.left_out)


def _estimate(arguments: Namespace, study: bayesrep.Study) -> tuple[Any, str, dict[str, Any]]:
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

    options: dict[str, Any] = {"methods": METHODS, **given_options(arguments, bayesrep.estimate)}
    analyses = analyse(study, progress=not arguments.quiet, **options)
    table, gaps = classifier_table(analyses), gap_table(analyses)
    parts = gaps_text(gaps, clear=measured_drop(study).is_above_zero)
    matching = "".join(f"{sentence}\n" for sentence in matching_sentences(analyses))
    words = words_of(study)
    text = (
        f"Accuracy at the reference's selection frequencies, in percent:\n\n"
        f"{side_by_side(table, arguments.top, words)}\n\nMean over {words.classifiers} and "
        f"line:\n\n{parts}\n{matching}{estimate_sentence(study, gaps)}"
    )
    return table, text, {"gaps": gaps.to_dicts(), "matching": matching_facts(analyses)}


def _vary_annotators(
    arguments: Namespace, study: bayesrep.Study
) -> tuple[Any, str, dict[str, Any]]:
    from bayesrep.estimators import analyse, matching_facts, matching_sentences
    from bayesrep.estimators.annotators import compare_annotators, extrapolate, linearity
    from bayesrep.report.conclusion import annotators_sentence
    from bayesrep.report.estimates_text import annotators_table, forward_table

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
        curve = extrapolate(study, arguments.forward, **given_options(arguments, extrapolate))
        text, facts["forward"] = f"{text}\n\n{forward_table(curve, words)}", curve.to_dicts()
    return table, text, facts


def _vary_components(
    arguments: Namespace, study: bayesrep.Study
) -> tuple[Any, str, dict[str, Any]]:
    from bayesrep.estimators.components import compare_components
    from bayesrep.report.conclusion import components_sentence
    from bayesrep.report.estimates_text import components_table

    options = given_options(arguments, compare_components)
    with warnings.catch_warnings():  # what they say of em-spline is not asked; the table shows it
        warnings.simplefilter("ignore", EstimateWarning)
        table = compare_components(study, progress=not arguments.quiet, **options)
    text = f"{components_table(table)}\n\n{components_sentence(table, words_of(study))}"
    return table, text, {}
