"""`bayesrep papers compare`: what papers measure of classifiers' answers, a table each."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import bayesrep
from bayesrep.choices import AccuracyInterval
from bayesrep.commands.options import (
    PEOPLE_INPUTS,
    ROLE_NAMES,
    add_inputs,
    add_shared,
    add_table,
    given_inputs,
    given_options,
    names,
    read_draws,
    refuse_foreign,
)
from bayesrep.commands.output import emit_table
from bayesrep.errors import OptionError, StudyError
from bayesrep.studies.vocabulary import Words, named_words

EXAMPLE = "my-study --table pairs"
PUBLISHED_NOTE = (
    "Published rows are as printed, of 1,000 images each; their intervals on ImageNet-v2 belong to "
    "other accuracies: docs/papers-disagree.md."
)

INPUT_TEXTS = {
    "humans": "a table of image, labeler, answer",
    "labels": "label sets, in one file or several: real.json, or tables of image and label "
    "(`collect read` writes them)",
    **PEOPLE_INPUTS,
    "classes": "groups of classes: a table with the column class, or superclasses.npy",
    "subsets": "images to look at alone: a table of image and columns of true and false or names",
    "posterior": "with --table robustness, adjusted accuracies to take for the replication",
}


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_shared(parser, "study")
    add_table(parser, *_TABLES)
    option("--interval", choices=get_args(AccuracyInterval), help="intervals (default jeffreys)")
    option(
        "--datasets",
        type=names,
        metavar="NAME,NAME",
        help="data sets by role or name, the reference first; tables of one data set are of that "
        "(default reference,replication)",
    )
    add_inputs(parser, **INPUT_TEXTS)
    option("--by", metavar="COLUMN", help="column of the classes table to group classes by")
    option(
        "--baseline",
        type=names,
        metavar="NAMES|@FILE",
        help="classifiers to fit the line of robustness to (default all)",
    )
    option("--between", type=names, metavar="A,B", help="two classifiers: A's confusion minus B's")


def run(arguments: Namespace) -> int:
    from bayesrep.studies.study_folder import StudyFolder

    table = _TABLES[arguments.table]
    vars(arguments).update(dict.fromkeys(INPUT_TEXTS) | given_inputs(arguments, "labels"))
    _check_options(arguments, table)
    folder = StudyFolder(arguments.study)
    found, text, *facts = table.make(arguments, named_words(folder.provenance))
    return emit_table(arguments, found, text, *facts, left_out=folder.images_left_out)


def _check_options(arguments: Namespace, table: "_Table") -> None:
    options = dict.fromkeys(name for each in _TABLES.values() for name in each.options)
    refuse_foreign(
        arguments,
        {name: [of for of, each in _TABLES.items() if name in each.options] for name in options},
    )
    if table.needs and not any(getattr(arguments, name) for name in table.needs):
        needed = " or ".join(f"--input {name}=FILE" for name in table.needs)
        raise OptionError("table-needs-file", table=arguments.table, options=needed)


def _two_names(arguments: Namespace) -> Sequence[str]:
    both = tuple(arguments.datasets or ROLE_NAMES)
    if len(both) != 2:
        raise OptionError("table-of-two-data-sets", table=arguments.table)
    return both


def _compare(arguments: Namespace, words: Words) -> tuple[Any, ...]:
    from bayesrep.protocols import compare, read_label_sets
    from bayesrep.protocols.humans import add_published
    from bayesrep.report import protocols_text

    both = _read_both(arguments)
    sets = None
    if arguments.labels:
        one, other = (read_label_sets(arguments.labels, data) for data in both)
        sets = one, other
    humans = _read_humans(arguments, both)
    options = {**given_options(arguments, compare), "humans": humans, "sets": sets}
    comparison = compare(*both, **options)
    accuracies, lines = comparison.accuracies, comparison.lines
    if arguments.table == "lines":
        return lines, protocols_text.lines_table(lines, words=words)
    if arguments.table == "pairs":
        pairs = comparison.pairs()
        return pairs, protocols_text.tested_pairs_table(pairs, words)
    is_published = arguments.table == "published"
    table = add_published(accuracies) if is_published else accuracies
    dataset_names = [data.dataset for data in both]
    texts = (
        protocols_text.comparison_table(table, lines, words),
        PUBLISHED_NOTE if is_published else "",
        protocols_text.comparison_finding(accuracies, lines, dataset_names, words),
    )
    return table, "\n\n".join(filter(None, texts)), {"lines": lines.to_dicts()}


def _read_both(arguments: Namespace) -> Any:
    """The answers to both data sets; right and wrong ones, where no more is known or needed."""
    from bayesrep.protocols import read_predictions
    from bayesrep.studies.answers import right_or_wrong
    from bayesrep.studies.study_folder import StudyFolder

    roles = _two_names(arguments)
    # Right and wrong answers suffice for accuracies, and are read without label files.
    if not (arguments.humans or arguments.labels) and roles == ROLE_NAMES:
        parts = StudyFolder(arguments.study).find_parts(roles)
        if "study" in parts and "labels" not in parts:
            return right_or_wrong(bayesrep.read_study(arguments.study))
    return read_predictions(arguments.study, roles, ranks=1)


def _read_humans(arguments: Namespace, both: Sequence[Any]) -> Any:
    from bayesrep.protocols import read_humans

    return read_humans(arguments.humans, *both) if arguments.humans else None


def _compare_subsets(arguments: Namespace, words: Words) -> tuple[Any, ...]:
    from bayesrep import protocols
    from bayesrep.files.tables import read_only
    from bayesrep.protocols.by_subset import FAST_SECONDS, of_classes
    from bayesrep.report.subsets_text import subsets_text

    both = protocols.read_predictions(arguments.study, _two_names(arguments), ranks=1)
    humans = _read_humans(arguments, both)
    sets = protocols.read_some_label_sets(arguments.labels, *both) if arguments.labels else None
    classes = both[0].classes
    groups = protocols.read_groups(arguments.classes, classes) if arguments.classes else None
    masks = of_classes(protocols.class_subsets(classes, groups), *both)
    # A subset without an image in either data set has no accuracy.
    subsets = {name: each for name, each in masks.items() if any(mask.any() for mask in each)}
    if arguments.subsets is not None:
        subsets |= protocols.read_image_subsets(arguments.subsets, *both)
    if humans and "seconds" in read_only(arguments.humans, ("seconds",)).frame.columns:
        name = f"fast images ({FAST_SECONDS:g} s)"
        subsets[name] = protocols.fast_images(arguments.humans, *both)
    options = given_options(arguments, protocols.compare_subsets)
    options |= {"humans": humans, "sets": sets}
    table = protocols.compare_subsets(both[0], both[1], subsets, **options)
    return table, subsets_text(table, words)


def _list_missed(arguments: Namespace, words: Words) -> tuple[Any, ...]:
    import polars as pl

    from bayesrep import protocols
    from bayesrep.report.table_format import rows_table

    both = protocols.read_predictions(arguments.study, _two_names(arguments), ranks=1)
    humans = _read_humans(arguments, both)
    rows = []
    sets = protocols.read_some_label_sets(arguments.labels, *both)
    for place, (data, labels) in enumerate(zip(both, sets, strict=True)):
        # Missed images need multi-label sets, which may exist for one data set alone.
        if labels is None:
            continue
        wrong = {"all classifiers": protocols.missed_by_all(data, labels)}
        if humans is not None:
            wrong["all people"] = protocols.missed_by_all(humans[place], labels)
            wrong["everybody"] = wrong["all classifiers"] & wrong["all people"]
        for who, images in wrong.items():
            rows += [
                (data.dataset, who, str(data.images[n]), data.classes[data.labels[n]])
                for n in images.nonzero()[0]
            ]
    schema = {name: pl.String for name in ("dataset", "missed_by", "image", "label")}
    table = pl.DataFrame(rows, schema, orient="row")
    return table, rows_table(table, words=words)


def _confusion(arguments: Namespace, words: Words) -> tuple[Any, ...]:
    from bayesrep import protocols
    from bayesrep.protocols.subsets import read_grouping
    from bayesrep.report.table_format import rows_table

    # What people say of objects and labels may be of one data set alone.
    of_people = arguments.objects or arguments.counts
    roles = arguments.datasets or ROLE_NAMES[: 1 if of_people and not arguments.humans else 2]
    data = protocols.read_predictions(arguments.study, roles, ranks=1)
    answers = data[0]
    if humans := _read_humans(arguments, data):
        answers = protocols.beside(answers, humans[0])
    if of_people:
        options = given_options(arguments, protocols.read_people)
        answers = protocols.people_beside(answers, protocols.read_people(answers, **options))
    grouping = read_grouping(arguments.classes, answers.classes, arguments.by)
    if not arguments.between:
        table = protocols.confusion(
            answers, grouping, **given_options(arguments, protocols.confusion)
        )
    elif len(arguments.between) != 2:
        raise OptionError("between-takes-two-names")
    else:
        one, other = arguments.between
        table = protocols.confusion_difference(answers, one, other, grouping)
    return table, rows_table(table, words=words)


def _by_labels(arguments: Namespace, words: Words) -> tuple[Any, ...]:
    from bayesrep import protocols
    from bayesrep.protocols.subsets import read_grouping
    from bayesrep.report.protocols_text import multilabel_table
    from bayesrep.report.table_format import rows_table

    answers, sets = _read_labelled(arguments)
    file, by = arguments.classes, arguments.by
    if arguments.table == "co-occurrence":
        grouping = read_grouping(file, answers.classes, by)
        options = given_options(arguments, protocols.co_occurrence)
        table = protocols.co_occurrence(answers, sets, grouping, **options)
        return table, rows_table(table, words=words)
    groups = protocols.read_groups(file, answers.classes) if file and not by else None
    if by and (chosen := read_grouping(file, answers.classes, by)) is not None:
        groups = {by: chosen}
    options = given_options(arguments, protocols.multilabel)
    options["subsets"] = protocols.class_subsets(answers.classes, groups)
    table = protocols.multilabel(answers, sets, **options)
    return table, multilabel_table(table, words)


def _read_labelled(arguments: Namespace) -> tuple[Any, Any]:
    """The answers and label sets of the data set asked for, or else of that which has any."""
    from bayesrep import protocols

    files = arguments.labels or [arguments.objects]
    roles = arguments.datasets or ROLE_NAMES
    (answers,) = protocols.read_predictions(arguments.study, roles[:1])
    try:
        return answers, protocols.read_label_sets(files, answers)
    except StudyError as error:
        if arguments.datasets or error.violation.rule != "label-sets-of-other-images":
            raise
        # Label sets may be those of the replication; the first error is the one to report.
        try:
            (other,) = protocols.read_predictions(arguments.study, roles[1:])
            _, sets = protocols.read_some_label_sets(files, answers, other)
        except StudyError:
            raise error from None
        return other, sets


def _people(arguments: Namespace, words: Words) -> tuple[Any, ...]:
    from bayesrep import protocols
    from bayesrep.report.table_format import rows_table

    (answers,) = protocols.read_predictions(arguments.study, (arguments.datasets or ROLE_NAMES)[:1])
    people = protocols.read_people(answers, **given_options(arguments, protocols.read_people))
    function = {
        "people": protocols.compare_labels_with_people,
        "judged": protocols.compare_predictions_with_people,
    }[arguments.table]
    table = function(answers, people, **given_options(arguments, function))
    return table, rows_table(table, words=words)


def _match(arguments: Namespace, words: Words) -> tuple[Any, ...]:
    from bayesrep.protocols import match, read_predictions
    from bayesrep.report.protocols_text import matched_table
    from bayesrep.report.table_format import rows_table

    roles = _two_names(arguments)
    both = read_predictions(arguments.study, roles, ranks=1, confidence=True)
    found = match(*both, progress=not arguments.quiet, **given_options(arguments, match))
    if arguments.table == "matched":
        return found.accuracies, matched_table(found.accuracies, words)
    table = getattr(found, arguments.table)
    return table, rows_table(table, words=words)


def _robustness(arguments: Namespace, words: Words) -> tuple[Any, ...]:
    from bayesrep.protocols import measure_robustness, measure_shifts
    from bayesrep.report.robustness_figures import baselines_table, robustness_table
    from bayesrep.studies.answers import read_every_answer

    answers = read_every_answer(arguments.study, (arguments.datasets or ROLE_NAMES)[:1])
    shifts = measure_shifts(answers, **given_options(arguments, measure_shifts))
    if arguments.posterior is not None:
        shifts = _adjust_replication(arguments, shifts, answers[0])
    options = given_options(arguments, measure_robustness)
    found = measure_robustness(shifts, answers[0].classifiers, **options)
    if arguments.table == "baseline":
        return found.lines, baselines_table(found.lines, words)
    text = robustness_table(found.classifiers, words)
    return found.classifiers, text, {"lines": found.lines.to_dicts()}


def _adjust_replication(arguments: Namespace, shifts: Any, reference: Any) -> list[Any]:
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


@dataclass(frozen=True)
class _Table:
    """What makes a table, the options that not all tables take, and those of which it needs one."""

    make: Callable[[Namespace, Words], tuple[Any, ...]]
    options: Sequence[str] = ()
    needs: Sequence[str] = ()


_COMPARED = _Table(_compare, ("humans", "labels"))
_BY_LABELS = _Table(_by_labels, ("labels", "objects", "classes", "by"), ("labels", "objects"))
_PEOPLE = _Table(_people, ("objects", "counts"), ("objects", "counts"))
_TABLES: Mapping[str, _Table] = {
    **dict.fromkeys(("accuracies", "published", "pairs", "lines"), _COMPARED),
    "subsets": _Table(_compare_subsets, ("humans", "labels", "classes", "subsets")),
    "missed": _Table(_list_missed, ("humans", "labels"), ("labels",)),
    "confusion": _Table(_confusion, ("humans", "objects", "counts", "classes", "by", "between")),
    **dict.fromkeys(("robustness", "baseline"), _Table(_robustness, ("baseline", "posterior"))),
    **dict.fromkeys(("multilabel", "co-occurrence"), _BY_LABELS),
    **dict.fromkeys(("people", "judged"), _PEOPLE),
    **dict.fromkeys(("matched", "curves", "confidence"), _Table(_match)),
}
