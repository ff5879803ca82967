"""Images in folders by class, as tables of what to ask about."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import LiteralString
from urllib.parse import quote

import polars as pl

from bayesrep.errors import StudyError, listing
from bayesrep.files.names import normalize_name, normalize_names

PICTURE_ENDINGS = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp"})
"""Endings of pictures that browsers show and that cannot contain scripts."""


def labelled_images(dataset: str, folder: str | Path, address: str | None = None) -> pl.DataFrame:
    """List the images of a folder with one folder for each class."""
    root = Path(folder)
    if not root.is_dir():
        raise StudyError("class-folders-root-missing", folder=root)
    names: list[str] = []
    for directory, folders, files in os.walk(root):
        # Hidden folders are skipped; sorting makes the walk the same everywhere.
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        inside = Path(directory).relative_to(root)
        if inside.parts:
            names += [
                str(inside / file) for file in files if Path(file).suffix.lower() in PICTURE_ENDINGS
            ]
    if not names:
        raise StudyError(
            "no-images-in-class-folders", folder=root, endings=", ".join(sorted(PICTURE_ENDINGS))
        )
    images = sorted(Path(name).as_posix() for name in names)
    # Pictures are addressed on this machine, or where the user will publish them.
    begin = root.resolve().as_uri() if address is None else address.rstrip("/")
    return pl.DataFrame(
        {
            "dataset": [dataset] * len(images),
            "image": list(map(normalize_name, images)),
            "label": [normalize_name(image.split("/")[0]) for image in images],
            "own": [True] * len(images),
            "source": [f"{begin}/{quote(image)}" for image in images],
        }
    )


def find_pictures(pairs: pl.DataFrame, pictures: pl.DataFrame) -> pl.DataFrame:
    """Look up the pictures' addresses of images to ask about."""
    key = ["dataset", "image"]
    by_name = pictures.with_columns(pl.col("image").str.split("/").list.last())
    either = pl.concat([pictures, by_name]).unique(["dataset", "image", "source"])
    either = either.select(*key, "source").group_by(key).agg("source")
    named = pairs.drop("source", strict=False).with_columns(normalize_names(pl.col(key)))
    questions = named.join(either, on=key, how="left", maintain_order="left")
    rules: Mapping[LiteralString, pl.Expr] = {
        "picture-absent": pl.col("source").is_null(),
        "picture-ambiguous": pl.col("source").list.len() > 1,
    }
    for rule, wrong in rules.items():
        if len(rows := questions.filter(wrong)):
            names = rows["image"].unique(maintain_order=True).to_list()
            raise StudyError(rule, images=listing(names))
    return questions.with_columns(pl.col("source").list.first())
