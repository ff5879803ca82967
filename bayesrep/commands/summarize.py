"""`bayesrep summarize`: what a fit says of accuracies, ranks, pairs and images."""

from argparse import ArgumentParser, Namespace
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

import bayesrep
from bayesrep.commands.options import (
    add_length,
    add_shared,
    add_table,
    given_options,
    names,
    read_fitted,
    refuse_foreign,
)
from bayesrep.commands.output import emit_table
from bayesrep.errors import plain_text
from bayesrep.studies.representation import number
from bayesrep.studies.vocabulary import words_of

if TYPE_CHECKING:
    import polars as pl

    from bayesrep.posterior.fitted import Fitted

EXAMPLE = "my-study posterior.nc --format csv > adjusted.csv"
_Printed: TypeAlias = tuple[Any, str, dict[str, Any]]  # a table, its text, what JSON has beside it
ENOUGH_ANNOTATORS = 10  # annotators of an image below which the prior is named


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study", "posterior")
    add_table(parser, "accuracies", "ranks", "pairs", "images")
    option = parser.add_argument
    option("--between", type=names, metavar="A,B,...", help="show only pairs of these classifiers")
    text = "also say what would follow if each assumption were wrong"
    option("--notes", action="store_const", const=True, help=text)
    add_length(parser, "rows")
    add_shared(parser, "--allow-unconverged")


def run(arguments: Namespace) -> int:
    ordered = ("accuracies", "ranks", "pairs")
    only_for = {"between": ("pairs",), "notes": ("accuracies",), "top": ordered}
    refuse_foreign(arguments, only_for)
    makers = dict(accuracies=_summarize, ranks=_rank, pairs=_compare, images=_describe_images)
    make = makers[arguments.table]
    study, posterior = read_fitted(arguments)
    return emit_table(arguments, *make(arguments, study, posterior), study.left_out)


def _rank(arguments: Namespace, study: bayesrep.Study, posterior: Any) -> _Printed:
    from bayesrep.report.conclusion import ranks_sentence
    from bayesrep.report.estimates_text import ranks_table

    options = given_options(arguments, bayesrep.rank_classifiers)
    table, words = bayesrep.rank_classifiers(study, posterior, **options), words_of(study)
    text = ranks_table(table, arguments.top, words)
    return table, f"{text}\n\n{ranks_sentence(table, words)}" if len(table) > 1 else text, {}


def _compare(arguments: Namespace, study: bayesrep.Study, posterior: Any) -> _Printed:
    from bayesrep.report.conclusion import pairs_sentence
    from bayesrep.report.estimates_text import pairs_table
    from bayesrep.report.select_pairs import pairs_between

    options = given_options(arguments, bayesrep.compare_classifiers)
    table, words = bayesrep.compare_classifiers(study, posterior, **options), words_of(study)
    top = arguments.top
    if arguments.between:
        table = pairs_between(table, arguments.between, study.classifiers)
        top = len(table) if top is None else top
    text = pairs_table(table, study.classifiers, top, words)
    several = len(study.classifiers) > 1
    return table, f"{text}\n\n{pairs_sentence(table, words)}" if several else text, {}


def _describe_images(arguments: Namespace, study: bayesrep.Study, posterior: Any) -> _Printed:
    from bayesrep.posterior.fitted import Fitted
    from bayesrep.report.estimates_text import images_table

    table = bayesrep.describe_images(study, posterior)
    Fitted(study, posterior).require_convergence(allow_unconverged=arguments.allow_unconverged)
    return table, images_table(table, words_of(study)), {}


def _summarize(arguments: Namespace, study: bayesrep.Study, posterior: Any) -> _Printed:
    from bayesrep.checks.assumptions import correction_notes, list_assumptions
    from bayesrep.checks.classes import judge_classes
    from bayesrep.checks.dependence import dependence_table
    from bayesrep.posterior.fitted import Fitted
    from bayesrep.report.answer import answer_for, drop_of, measured_drop
    from bayesrep.report.estimates_text import estimates_table, gaps_text, populations_text
    from bayesrep.summary import tables

    words = words_of(study)
    fitted = Fitted(study, posterior)
    fitted = fitted.require_convergence(allow_unconverged=arguments.allow_unconverged)
    table, gaps = tables.accuracies(fitted), tables.gaps(fitted)
    measured = measured_drop(study)
    answer = plain_text(answer_for(study, drop_of(gaps, measured, correction_notes(fitted))))
    # Notes cost time to compute: only where they are shown, or in the JSON.
    with_notes = arguments.notes or arguments.json
    of_classes = judge_classes(fitted)
    dependence = dependence_table(posterior)
    notes = _judge_assumptions(study, fitted, dependence) if with_notes else []
    text = (
        f"{estimates_table(table, arguments.top, words)}\n\n"
        f"Mean over {words.classifiers} and line:\n\n"
        f"{gaps_text(gaps, clear=measured.is_above_zero)}\n"
        f"{answer}\n{populations_text(gaps, words)}\n"
        f"This assumes that {list_assumptions(posterior, fitted)}"
    )
    text += "." if with_notes else "; --notes says more."
    notes += [each.sentence for each in of_classes if with_notes or each.trust != "yes"]
    text += "".join(f"\n{plain_text(note)}" for note in notes)
    # The fit's own advice comes first; few annotators are named only without it.
    if advice := str(fitted.group.attrs.get("advice", "")):
        text += f"\n{plain_text(advice)}"
    elif (
        most := min(int(median(data.shown.tolist())) for data in study.datasets.values())
    ) < ENOUGH_ANNOTATORS:
        text += (
            f"\n{number(most, words.annotator)} per {words.image}, as most have, say little about "
            "the shape of the distribution of selection frequencies: the rest comes from the "
            "prior; diagnose says how much that moves the answer."
        )
    levels = None if dependence is None else dependence.to_dicts()
    return table, text, {"gaps": gaps.to_dicts(), "dependence": levels}


def _judge_assumptions(
    study: "bayesrep.Study", fitted: "Fitted", dependence: "pl.DataFrame | None"
) -> list[str]:
    from bayesrep.checks.crowd import judge_people
    from bayesrep.checks.dependence import judge_dependence
    from bayesrep.studies.leniency import lacks_workers

    notes = [judge_dependence(fitted.posterior, dependence, fitted.words).sentence]
    if fitted.knows_workers:
        notes += [f"{bayesrep.describe_crowd(study).sentence} The intervals above allow for it."]
    if lacks_workers(study.datasets):
        notes += [judge_people(fitted).sentence]
    return [note for note in notes if note]
