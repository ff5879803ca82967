"""`bayesrep papers multilabel`: accuracy by all labels that are right on an image."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from bayesrep.choices import Empty
from bayesrep.commands.options import add_protocol, add_shared, given_options, refuse_foreign
from bayesrep.commands.output import emit_table, new_table, report_missing_arguments
from bayesrep.errors import StudyError
from bayesrep.studies.vocabulary import named_words

EXAMPLE = "my-study --labels real.json"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_protocol(parser, "accuracies", "co-occurrence", "people", "judged", "confusion")
    option(
        "--labels",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="label sets: real.json, tables of image and label, or those of `collect read`",
    )
    add_shared(parser, "--objects", "--counts")
    option(
        "--dataset",
        metavar="NAME",
        help="role or name (the reference, or the replication where that alone has label sets)",
    )
    add_shared(parser, "--classes", "--by")
    option("--empty", choices=get_args(Empty), help="images on which no label is right (exclude)")
    option("--trials", type=int, help="random sets of classes, for p-values (1000)")


def run(arguments: Namespace) -> int:
    from bayesrep import protocols
    from bayesrep.protocols.subsets import read_grouping
    from bayesrep.report.protocols_text import multilabel_table
    from bayesrep.report.table_format import rows_table
    from bayesrep.studies.study_folder import StudyFolder

    refuse_foreign(arguments, {"empty": ("accuracies", "co-occurrence"), "trials": ("accuracies",)})
    new_table(arguments)
    by_people = arguments.table in ("people", "judged", "confusion")
    if by_people and arguments.objects is None and arguments.counts is None:
        return report_missing_arguments(
            f"papers multilabel --table {arguments.table}", ["--objects or --counts"]
        )
    # Label sets come from their own files, or from the table of objects.
    files: Sequence[Path] = arguments.labels or list(filter(None, [arguments.objects]))
    if not by_people and not files:
        return report_missing_arguments("papers multilabel", ["--labels or --objects"])
    role = arguments.dataset or "reference"
    (answers,) = protocols.read_predictions(arguments.study, (role,))
    folder = StudyFolder(arguments.study)
    left_out, words = folder.images_left_out, named_words(folder.provenance)
    function = {
        "accuracies": protocols.multilabel,
        "co-occurrence": protocols.co_occurrence,
        "people": protocols.compare_labels_with_people,
        "judged": protocols.compare_predictions_with_people,
        "confusion": protocols.confusion,
    }[arguments.table]
    options, file = given_options(arguments, function), arguments.classes
    # Tables about what people say need no label sets; the others hold predictions against them.
    if by_people:
        people = protocols.read_people(answers, **given_options(arguments, protocols.read_people))
        inputs: tuple[Any, ...] = answers, people
    else:
        inputs = _read_labelled(arguments, files, answers)
    classes = inputs[0].classes
    if arguments.table == "accuracies":
        chosen = read_grouping(file, classes, arguments.by) if arguments.by else None
        groups = {} if chosen is None else {arguments.by: chosen}
        groups = groups or (protocols.read_groups(file, classes) if file else None)
        options["subsets"] = protocols.class_subsets(classes, groups)
    elif arguments.table == "confusion":
        inputs = (protocols.people_beside(*inputs), read_grouping(file, classes, arguments.by))
    elif arguments.table == "co-occurrence":
        inputs = *inputs, read_grouping(file, classes, arguments.by)
    table = function(*inputs, **options)
    plain = arguments.table != "accuracies"
    text = rows_table(table, words=words) if plain else multilabel_table(table, words)
    return emit_table(arguments, table, text, left_out=left_out)


def _read_labelled(arguments: Namespace, files: Sequence[Path], answers: Any) -> tuple[Any, Any]:
    """The answers and label sets of the data set asked for, or else of that which has any."""
    from bayesrep import protocols

    try:
        return answers, protocols.read_label_sets(files, answers)
    except StudyError as error:
        if arguments.dataset or error.violation.rule != "label-sets-of-other-images":
            raise
        # Label sets may be those of the replication; the first error is the one to report.
        try:
            (other,) = protocols.read_predictions(arguments.study, ("replication",))
            _, sets = protocols.read_some_label_sets(files, answers, other)
        except StudyError:
            raise error from None
        return other, sets
