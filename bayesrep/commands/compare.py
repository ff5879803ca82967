"""`bayesrep compare`: classifiers beside people and each other on both data sets."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from bayesrep.commands.options import (
    add_datasets,
    add_protocol,
    add_shared,
    given_options,
    names,
    read_draws,
    read_study,
    speak_of_answers,
)
from bayesrep.commands.output import emit_table, new_table
from bayesrep.errors import OptionError
from bayesrep.studies.rules import REQUIRED_ROLES


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_protocol(
        parser, "accuracies", "pairs", "lines", "robustness", "subsets", "missed", "confusion"
    )
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
        "--dataset",
        choices=REQUIRED_ROLES,
        default=REQUIRED_ROLES[0],
        help="of the confusion (reference)",
    )
    option(
        "--baseline",
        type=names,
        metavar="NAME,NAME",
        help="classifiers that the line of --table robustness goes through, or @FILE (all)",
    )
    option(
        "--posterior",
        type=Path,
        metavar="posterior.nc",
        help="with --table robustness: adjusted accuracies in the place of the replication's",
    )
    option("--between", type=names, metavar="A,B", help="the confusion of one less another's")


def run(arguments: Namespace) -> int:
    from bayesrep.protocols import (
        compare,
        read_humans,
        read_label_sets,
        read_predictions,
        read_some_label_sets,
    )
    from bayesrep.protocols.humans import add_published
    from bayesrep.report.subsets import subsets_text
    from bayesrep.report.text import (
        comparison_finding,
        comparison_table,
        lines_table,
        robustness_table,
        rows_table,
        tested_pairs_table,
    )
    from bayesrep.studies.answers import knows_answers, right_or_wrong
    from bayesrep.studies.reading import images_left_out

    new_table(arguments)
    roles = (arguments.reference, arguments.replication)
    simple = arguments.table not in ("confusion", "subsets", "missed") and not (
        arguments.humans or arguments.labels
    )
    _check_options(arguments)
    # A study's own right and wrong answers suffice for the simplest table.
    if simple and roles == REQUIRED_ROLES and not knows_answers(arguments.study):
        both = right_or_wrong(read_study(arguments.study))
    else:
        both = read_predictions(arguments.study, roles, ranks=1)
    speak_of_answers(arguments.study, both)
    # Tables that need more than accuracies are made and returned first.
    humans = read_humans(arguments.humans, *both) if arguments.humans else None
    left_out = images_left_out(arguments.study)
    if arguments.table == "confusion":
        table = _confusion(arguments, both, humans)
        return emit_table(arguments, table, rows_table(table), left_out=left_out)
    if arguments.table in ("subsets", "missed"):
        some = read_some_label_sets(arguments.labels, *both) if arguments.labels else None
        if arguments.table == "subsets":
            table = _subsets(arguments, both, humans, some)
            return emit_table(arguments, table, subsets_text(table), left_out=left_out)
        table = _count_missed(both, humans, some)
        return emit_table(arguments, table, rows_table(table), left_out=left_out)
    # Accuracies, lines and pairs come from one comparison.
    sets = None
    if arguments.labels:
        one, other = (read_label_sets(arguments.labels, data) for data in both)
        sets = one, other
    options = {**given_options(arguments, compare), "humans": humans, "sets": sets}
    comparison = compare(*both, **options)
    if arguments.table == "robustness":
        adjusted = _adjusted_draws(arguments) if arguments.posterior else None
        table = comparison.robustness(arguments.baseline or (), adjusted)
        return emit_table(arguments, table, robustness_table(table), left_out=left_out)
    if arguments.table != "accuracies":
        lines = arguments.table == "lines"
        table = comparison.lines if lines else comparison.pairs()
        shown = lines_table(table) if lines else tested_pairs_table(table)
        return emit_table(arguments, table, shown, left_out=left_out)
    table = comparison.accuracies
    if arguments.published:
        table = add_published(table)
    text, facts = comparison_table(table, comparison.lines), comparison.lines.to_dicts()
    names = [data.dataset for data in both]
    sentence = comparison_finding(comparison.accuracies, comparison.lines, names)
    text = "\n\n".join(
        filter(None, (text, _PUBLISHED_NOTE if arguments.published else "", sentence))
    )
    return emit_table(arguments, table, text, {"lines": facts}, left_out)


_PUBLISHED_NOTE = (
    "Published rows are as printed, of 1,000 images each; their intervals on ImageNet-v2 belong to "
    "other accuracies: docs/papers-disagree.md."
)


def _check_options(arguments: Namespace) -> None:
    """Refuse options of one table elsewhere."""
    for name, table in _ONLY_FOR.items():
        if getattr(arguments, name) is not None and arguments.table != table:
            raise OptionError("option-of-another-table", option=name, table=table)
    if arguments.fast is not None and arguments.humans is None:
        raise OptionError("fast-needs-humans")
    if arguments.table == "missed" and arguments.labels is None:
        raise OptionError("missed-needs-labels")


_ONLY_FOR = {
    "subsets": "subsets",
    "fast": "subsets",
    "baseline": "robustness",
    "posterior": "robustness",
}
"""Options that one table takes."""


def _adjusted_draws(arguments: Namespace) -> Any:
    """Joint draws [S, C] of the adjusted accuracies."""
    from bayesrep.posterior.fitted import Fitted

    fitted = Fitted(read_study(arguments.study), read_draws(arguments.posterior))
    draws = fitted.require_convergence().draws_together
    return draws.reshape(-1, draws.shape[-1])


def _subsets(arguments: Namespace, both: Any, humans: Any, sets: Any) -> Any:
    """Everybody on subsets of classes and of images."""
    from bayesrep.protocols import class_subsets, compare_subsets, read_groups
    from bayesrep.protocols.by_subset import fast_images, of_classes, read_image_subsets

    groups = read_groups(arguments.classes, both[0].classes) if arguments.classes else None
    masks = class_subsets(both[0].classes, groups)
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
    """What is taken for what on one data set, by all or by one less another."""
    from bayesrep.protocols import beside, confusion, confusion_difference
    from bayesrep.protocols.subsets import read_grouping

    place = REQUIRED_ROLES.index(arguments.dataset)
    answers = both[place] if humans is None else beside(both[place], humans[place])
    grouping = read_grouping(arguments.classes, answers.classes, arguments.by)
    if not arguments.between:
        return confusion(answers, grouping, **given_options(arguments, confusion))
    if len(arguments.between) != 2:
        raise OptionError("between-takes-two-names")
    one, other = arguments.between
    return confusion_difference(answers, one, other, grouping)
