"""Questions of tasks: tables of images and labels, image folders, and label descriptions."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from bayesrep.commands.options import named_path
from bayesrep.errors import OptionError


def add_pictures(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "--images",
        type=named_path,
        nargs="+",
        default=[],
        metavar="NAME=FOLDER",
        help="data sets and their images, a folder for each class",
    )
    option("--address", metavar="URL", help="where people find the images: before NAME/class/file")
    option(
        "--labels",
        type=Path,
        metavar="FILE",
        help="what to say of labels: a table with label, name, description, link (WordNet's words "
        "for classes of ImageNet)",
    )


def gather_questions(arguments: Namespace) -> Any:
    """The images and labels of the table, with the folders' pictures, or all of the folders."""
    import polars as pl

    from bayesrep.collect.image_folders import find_pictures, labelled_images
    from bayesrep.sources.collection_tables import read_questions

    base = arguments.address and arguments.address.rstrip("/")
    parts = [
        labelled_images(name, folder, base and f"{base}/{name}")
        for name, folder in arguments.images
    ]
    if arguments.table is None:
        if not parts:
            raise OptionError("nothing-to-ask-about")
        return pl.concat(parts)
    table = read_questions(arguments.table)
    return find_pictures(table, pl.concat(parts)) if parts else table


def read_descriptions(arguments: Namespace, rows: Any) -> Any:
    """Read the descriptions of labels: from the user's table, or WordNet."""
    import polars as pl

    from bayesrep.collect import wordnet
    from bayesrep.files.tables import read_only

    if arguments.labels is not None:
        return read_only(arguments.labels, ("label", "name", "description", "link", "wnid")).frame
    texts = wordnet.descriptions()
    return texts if rows["label"].cast(pl.String).is_in(texts["label"].to_list()).any() else None
