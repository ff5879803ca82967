"""`bayesrep collect contains`: tasks with grids of images, about which of them show a label."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from bayesrep.commands.collect.questions import (
    add_pictures,
    gather_questions,
    read_descriptions,
)
from bayesrep.commands.options import given_options
from bayesrep.commands.output import emit, new_folder

EXAMPLE = "candidates.csv --images v1=val --out tasks"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "table",
        type=Path,
        nargs="?",
        help="what to ask: dataset, image, label, and perhaps own, source (each image's own label)",
    )
    add_pictures(parser)
    option(
        "--controls",
        type=Path,
        metavar="PATH",
        help="images of which the label is known: a folder for each class, or a table with image, "
        "label, source",
    )
    option("--answers", type=int, help="of every image and label (10)")
    option("--grids", type=int, help="in how many different grids every image is (5)")
    option("--size", type=int, help="images of a grid, controls among them (48)")
    option("--positive", type=int, help="controls of a grid that show its label (5)")
    option("--negative", type=int, help="controls of a grid that show another (3)")
    option("--out", type=Path, required=True, metavar="FOLDER", help="of the collection")


def run(arguments: Namespace) -> int:
    import polars as pl

    from bayesrep import collect
    from bayesrep.collect.image_folders import labelled_images
    from bayesrep.files.tables import read_only
    from bayesrep.report.collect_text import tasks_text

    new_folder(arguments.out, arguments)
    design = collect.GridDesign(**given_options(arguments, collect.GridDesign))
    rows, controls = gather_questions(arguments), None
    if arguments.controls is not None and arguments.controls.is_dir():
        address = arguments.address and f"{arguments.address.rstrip('/')}/control"
        controls = labelled_images("control", arguments.controls, address)
    elif arguments.controls is not None:
        controls = read_only(arguments.controls, ("image", "label", "source")).frame
    tasks = collect.plan_grids(rows, controls, design)
    collection = collect.Collection("contains", tasks, design.workers, asdict(design))
    files = collect.write_collection(arguments.out, collection, read_descriptions(arguments, rows))
    facts = {
        "tasks": tasks["task"].n_unique(),
        "assignments": tasks["task"].n_unique() * design.workers,
        "images": len(rows.select("dataset", "image").unique()),
        "answers": int((tasks["control"].is_null()).sum()) * design.workers,
        "same_neighbours": int(
            rows.group_by("label").len().filter(pl.col("len") <= design.images_asked)["len"].sum()
        ),
    }
    where = {"files": files, "out": str(arguments.out)}
    return emit(arguments, tasks_text("contains", facts, where), facts | where)
