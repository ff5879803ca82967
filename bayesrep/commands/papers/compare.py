"""`bayesrep papers compare`: classifiers beside people and each other on all data sets."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import bayesrep
from bayesrep.commands.options import (
    ROLE_NAMES,
    add_datasets,
    add_protocol,
    add_shared,
    given_options,
    names,
    read_draws,
    refuse_foreign,
)
from bayesrep.commands.output import emit_table
from bayesrep.errors import OptionError
from bayesrep.studies.vocabulary import named_words

EXAMPLE = "my-study"

_ROBUSTNESS_OPTIONS = ("robustness", "baseline")
_ONLY_FOR = {
    "subsets": ("subsets",),
    "fast": ("subsets",),
    "baseline": _ROBUSTNESS_OPTIONS,
    "posterior": _ROBUSTNESS_OPTIONS,
}
"""Tables that take an option which is not for all."""


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    tables = ("accuracies", "pairs", "lines", "subsets", "missed", "confusion")
    add_protocol(parser, *tables, *_ROBUSTNESS_OPTIONS)
    add_datasets(parser)
    # Who is compared, and by which labels.
    option("--humans", type=Path, metavar="FILE", help="a table of image, labeler, answer")
    option("--labels", type=Path, nargs="+", metavar="FILE", help="label sets of both data sets")
    option("--published", action="store_true", help="add the people and networks of Shankar et al.")
    add_shared(parser, "--classes", "--by")
    # What single tables take: subsets of images, effective robustness, the confusion.
    option(
        "--subsets",
        type=Path,
        metavar="FILE",
        help="images to look at alone: a table of image and columns of true and false or names",
    )
    option(
        "--fast",
        type=float,
        metavar="SECONDS",
        help="look alone at images that people answered so fast in the median (60 in the paper); "
        "--humans with a column seconds",
    )
    option(
        "--dataset", choices=ROLE_NAMES, default=ROLE_NAMES[0], help="of the confusion (reference)"
    )
    option(
        "--baseline",
        type=names,
        metavar="NAMES|@FILE",
        help="classifiers that the line of the robustness goes through (all)",
    )
    option(
        "--posterior",
        type=Path,
        metavar="posterior.nc",
        help="with --table robustness: adjusted accuracies in the place of the replication's",
    )
    option("--between", type=names, metavar="A,B", help="the confusion of one less another's")


def run(arguments: Namespace) -> int:
    from bayesrep.protocols import compare, read_humans, read_label_sets, read_some_label_sets
    from bayesrep.protocols.humans import add_published
    from bayesrep.report.protocols_text import (
        comparison_finding,
        comparison_table,
        lines_table,
        tested_pairs_table,
    )
    from bayesrep.report.subsets_text import subsets_text
    from bayesrep.report.table_format import rows_table
    from bayesrep.studies.study_folder import StudyFolder

    _check_options(arguments)
    if arguments.table in _ROBUSTNESS_OPTIONS:
        return _show_robustness(arguments)
    both = _read_both(arguments)
    folder = StudyFolder(arguments.study)
    left_out, words = folder.images_left_out, named_words(folder.provenance)
    # Tables that need more than accuracies are made and returned first.
    humans = read_humans(arguments.humans, *both) if arguments.humans else None
    if arguments.table == "confusion":
        table = _confusion(arguments, both, humans)
        return emit_table(arguments, table, rows_table(table, words=words), left_out=left_out)
    if arguments.table in ("subsets", "missed"):
        some = read_some_label_sets(arguments.labels, *both) if arguments.labels else None
        if arguments.table == "subsets":
            table = _subsets(arguments, both, humans, some)
            return emit_table(arguments, table, subsets_text(table, words), left_out=left_out)
        table = _count_missed(both, humans, some)
        return emit_table(arguments, table, rows_table(table, words=words), left_out=left_out)
    # Accuracies, lines and pairs come from one comparison.
    sets = None
    if arguments.labels:
        one, other = (read_label_sets(arguments.labels, data) for data in both)
        sets = one, other
    options = {**given_options(arguments, compare), "humans": humans, "sets": sets}
    comparison = compare(*both, **options)
    if arguments.table != "accuracies":
        lines = arguments.table == "lines"
        table = comparison.lines if lines else comparison.pairs()
        table_text = lines_table(table, words=words) if lines else tested_pairs_table(table, words)
        return emit_table(arguments, table, table_text, left_out=left_out)
    table = comparison.accuracies
    if arguments.published:
        table = add_published(table)
    text, facts = comparison_table(table, comparison.lines, words), comparison.lines.to_dicts()
    names = [data.dataset for data in both]
    sentence = comparison_finding(comparison.accuracies, comparison.lines, names, words)
    text = "\n\n".join(
        filter(None, (text, _PUBLISHED_NOTE if arguments.published else "", sentence))
    )
    return emit_table(arguments, table, text, {"lines": facts}, left_out)


def _read_both(arguments: Namespace) -> Any:
    """The answers to both data sets; right and wrong ones, where no more is known or needed."""
    from bayesrep.protocols import read_predictions
    from bayesrep.studies.answers import right_or_wrong
    from bayesrep.studies.study_folder import StudyFolder

    folder, roles = StudyFolder(arguments.study), (arguments.reference, arguments.replication)
    # Right and wrong answers suffice for accuracies, and are read without label files.
    simple = arguments.table not in ("confusion", "subsets", "missed")
    simple &= not (arguments.humans or arguments.labels)
    parts = folder.find_parts(roles)
    if simple and roles == ROLE_NAMES and "study" in parts and "labels" not in parts:
        return right_or_wrong(bayesrep.read_study(arguments.study))
    return read_predictions(arguments.study, roles, ranks=1)


_PUBLISHED_NOTE = (
    "Published rows are as printed, of 1,000 images each; their intervals on ImageNet-v2 belong to "
    "other accuracies: docs/papers-disagree.md."
)


def _check_options(arguments: Namespace) -> None:
    """Refuse options of one table elsewhere, and those that lack another."""
    refuse_foreign(arguments, _ONLY_FOR)
    if arguments.fast is not None and arguments.humans is None:
        raise OptionError("fast-needs-humans")
    if arguments.table == "missed" and arguments.labels is None:
        raise OptionError("missed-needs-labels")


def _show_robustness(arguments: Namespace) -> int:
    """Print classifiers' distances from the baseline's line on every data set, or the lines."""
    from bayesrep.protocols import measure_robustness, measure_shifts
    from bayesrep.report.robustness_figures import baselines_table, robustness_table
    from bayesrep.studies.answers import read_every_answer
    from bayesrep.studies.study_folder import StudyFolder

    folder = StudyFolder(arguments.study)
    answers = read_every_answer(arguments.study, [arguments.reference])
    classifiers = answers[0].classifiers
    shifts = measure_shifts(answers, **given_options(arguments, measure_shifts))
    if arguments.posterior is not None:
        shifts = _adjust_replication(arguments, shifts, answers[0])
    options = given_options(arguments, measure_robustness)
    robustness = measure_robustness(shifts, classifiers, **options)
    left_out, words = folder.images_left_out, named_words(folder.provenance)
    if arguments.table == "baseline":
        text = baselines_table(robustness.lines, words)
        return emit_table(arguments, robustness.lines, text, left_out=left_out)
    facts = {"lines": robustness.lines.to_dicts()}
    text = robustness_table(robustness.classifiers, words)
    return emit_table(arguments, robustness.classifiers, text, facts, left_out)


def _adjust_replication(arguments: Namespace, shifts: Any, reference: Any) -> list[Any]:
    """The accuracies on the replication as a fit of the study adjusts them."""
    from dataclasses import replace

    from bayesrep.posterior.fitted import Fitted

    study = bayesrep.read_study(arguments.study)
    if reference.dataset != study.reference.name:
        raise OptionError("posterior-of-another-reference", reference=study.reference.name)
    fitted = Fitted(study, read_draws(arguments.posterior)).require_convergence()
    # The answers may list classifiers in another order than the study.
    columns = [study.classifiers.index(name) for name in reference.classifiers]
    unadjusted, adjusted = (
        each.reshape(-1, len(study.classifiers))[:, columns]
        for each in (fitted.population_draws, fitted.draws_over_crowds)
    )
    values = {"accuracy": adjusted.mean(axis=0), "draws": (unadjusted, adjusted), "adjusted": True}
    name = study.replication.name
    return [replace(each, **values) if each.dataset == name else each for each in shifts]


def _subsets(arguments: Namespace, both: Any, humans: Any, sets: Any) -> Any:
    """Everybody on subsets of classes and of images."""
    from bayesrep.protocols import class_subsets, compare_subsets, read_groups
    from bayesrep.protocols.by_subset import fast_images, of_classes, read_image_subsets

    groups = read_groups(arguments.classes, both[0].classes) if arguments.classes else None
    masks = class_subsets(both[0].classes, groups)
    # A subset without an image in either data set has no accuracy.
    subsets = {name: each for name, each in of_classes(masks, *both).items() if _have_marks(each)}
    if arguments.subsets is not None:
        subsets |= read_image_subsets(arguments.subsets, *both)
    if arguments.fast is not None:
        fast = fast_images(arguments.humans, *both, seconds=arguments.fast)
        subsets[f"fast images ({arguments.fast:g} s)"] = fast
    options = {**given_options(arguments, compare_subsets), "humans": humans, "sets": sets}
    return compare_subsets(both[0], both[1], subsets, **options)


def _have_marks(masks: Any) -> bool:
    return any(mask.any() for mask in masks)


def _count_missed(both: Any, humans: Any, sets: Any) -> Any:
    """Images that all classifiers, all people, or both get wrong."""
    import polars as pl

    from bayesrep.protocols.by_subset import missed_by_all

    rows = []
    for place, (data, labels) in enumerate(zip(both, sets, strict=True)):
        # Missed images need multi-label sets, which may exist for one data set alone.
        if labels is None:
            continue
        wrong = {"all classifiers": missed_by_all(data, labels)}
        if humans is not None:
            wrong["all people"] = missed_by_all(humans[place], labels)
            wrong["everybody"] = wrong["all classifiers"] & wrong["all people"]
        for who, images in wrong.items():
            rows += [
                (data.dataset, who, str(data.images[n]), data.classes[data.labels[n]])
                for n in images.nonzero()[0]
            ]
    schema = {name: pl.String for name in ("dataset", "missed_by", "image", "label")}
    return pl.DataFrame(rows, schema, orient="row")


def _confusion(arguments: Namespace, both: Any, humans: Any) -> Any:
    """Print confusions on one data set, of all participants or of one less another."""
    from bayesrep.protocols import beside, confusion, confusion_difference
    from bayesrep.protocols.subsets import read_grouping

    place = ROLE_NAMES.index(arguments.dataset)
    answers = both[place] if humans is None else beside(both[place], humans[place])
    grouping = read_grouping(arguments.classes, answers.classes, arguments.by)
    if not arguments.between:
        return confusion(answers, grouping, **given_options(arguments, confusion))
    if len(arguments.between) != 2:
        raise OptionError("between-takes-two-names")
    one, other = arguments.between
    return confusion_difference(answers, one, other, grouping)
