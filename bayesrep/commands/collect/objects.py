"""`bayesrep collect objects`: what each image shows, from what several people said of it."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from bayesrep.commands.output import emit, new_table_file, write_table
from bayesrep.errors import OptionError

EXAMPLE = "objects-answers.csv --out objects.csv"


def add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "table",
        type=Path,
        help="answers, as `collect read` writes them, or annotations_classify_task.pkl",
    )
    option = parser.add_argument
    option(
        "--sets",
        type=Path,
        metavar="TABLE",
        help="each object's label, as `papers compare` takes them",
    )
    option(
        "--fates",
        type=Path,
        metavar="FILE",
        help="of `collect labels --fates`, or image_info.pkl: clear images count too",
    )
    option(
        "--study",
        type=Path,
        help="whose reference the published .pkl are about: its name and its images' labels",
    )
    option("--dataset", metavar="NAME", help="of the images of the published .pkl (imagenet)")
    option(
        "--out",
        type=Path,
        required=True,
        metavar="TABLE",
        help="a row an image and label, CSV or Parquet",
    )


def run(arguments: Namespace) -> int:
    from bayesrep import collect
    from bayesrep.collect.image_outcomes import with_clear
    from bayesrep.collect.object_consensus import keep_sane
    from bayesrep.report.collect_text import fates_text, objects_text

    for path in (arguments.out, arguments.sets):
        if path is not None:
            new_table_file(path, arguments)
    answers, fates = _read_objects(arguments)
    # Assignments that fail the published sanity rules are left out, and counted for the text.
    sane, left_out = keep_sane(answers)
    table = collect.aggregate(sane)
    facts: dict[str, Any] = {"not_counted": left_out}
    outcome_text = ""
    if fates is not None:
        every = with_clear(table, fates)
        table, outcome_text = every.table, f"{fates_text(every)}\n"
        facts["images"] = {
            **every.fates,
            "classified": every.classified,
            "clear_taken": every.clear,
        }
    write_table(table, arguments.out)
    if arguments.sets is not None:
        write_table(table.filter("names").select("dataset", "image", "label"), arguments.sets)
    facts |= {"written": len(table), "out": str(arguments.out)}
    text = f"{objects_text(table, left_out)}\n{outcome_text}Written to {arguments.out}"
    return emit(arguments, text, facts)


def _read_objects(arguments: Namespace) -> tuple[Any, Any]:
    """Read the chosen objects, and the outcome of every image where that is given."""
    import polars as pl

    from bayesrep.collect.image_outcomes import label_fates
    from bayesrep.sources.classify_frame import DATASET_NAME, read_classify_frame, read_fates_frame
    from bayesrep.sources.collection_tables import read_fates, read_object_answers
    from bayesrep.studies.answers import read_predictions

    published, file = arguments.table.suffix.lower() == ".pkl", arguments.fates
    for name in ("dataset", "study"):
        if getattr(arguments, name) is not None and not published:
            raise OptionError("option-only-for-pickle", option=name)
    # The published frames name neither the data set nor its labels; a study does.
    predictions = None
    if arguments.study is not None:
        datasets = (arguments.dataset or "reference",)
        (predictions,) = read_predictions(arguments.study, datasets, ranks=1)
    dataset_name = DATASET_NAME if predictions is None else predictions.dataset
    dataset = arguments.dataset or dataset_name
    answers = (
        read_classify_frame(arguments.table, dataset)
        if published
        else read_object_answers(arguments.table)
    )
    if file is None:
        return answers, None
    if file.suffix.lower() != ".pkl":
        return answers, read_fates(file)
    if predictions is None:
        raise OptionError("fates-without-labels", file=file)
    fates = read_fates_frame(file).with_columns(dataset=pl.lit(dataset))
    return answers, label_fates(fates, predictions)
