"""People's answers to the same images, and those that have been published."""

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl

from bayesrep.errors import StudyError, listing
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import texts
from bayesrep.protocols.class_names import class_numbers
from bayesrep.studies.predictions import NO_ANSWER, Predictions

_LABELER_COLUMNS = ("image", "labeler", "answer")
_CROWD_KIT_NAMES = {"task": "image", "worker": "labeler", "label": "answer"}


def read_humans(path: str | Path, *predictions: Predictions) -> tuple[Predictions, ...]:
    """Read the answers of human labelers.

    Parameters
    ----------
    path
        A table (CSV or Parquet) with a row for each answer: image, labeler, answer and, where an
        image's name occurs in both data sets, dataset. crowd-kit's names task, worker and label
        do as well. Answers are names of classes as in the predictions, or ImageNet's numbers.
    predictions
        The classifiers' answers on each data set, whose images and classes count.

    Returns
    -------
    tuple of Predictions
        The labelers' answers on the same images of each data set, -1 where they gave none; all
        labelers in each.

    Raises
    ------
    StudyError
        Naming the file and the images, labelers or answers: unknown ones, or two answers of one
        labeler to one image.
    """
    table, where = read_only(path, ("dataset", *_LABELER_COLUMNS, *_CROWD_KIT_NAMES))
    # crowd-kit's names of columns are understood, too.
    if "labeler" not in table.columns:
        new = {old: new for old, new in _CROWD_KIT_NAMES.items() if old in table.columns}
        table = table.rename({o: n for o, n in new.items() if n not in table.columns})
    require(table, _LABELER_COLUMNS, where)
    present = [name for name in ("dataset", *_LABELER_COLUMNS) if name in table.columns]
    rows = pl.DataFrame([texts(table[name], where) for name in present])
    rows = rows.with_columns(pl.arange(1, pl.len() + 1).alias("row"))
    labelers = rows["labeler"].unique(maintain_order=True).to_list()
    # Every answer must be about an image of exactly one of the data sets.
    parts: list[pl.DataFrame] = []
    for data in predictions:
        mine = (
            rows.filter(pl.col("dataset") == data.dataset) if "dataset" in table.columns else rows
        )
        places = pl.DataFrame({"image": data.images, "place": np.arange(len(data.images))})
        parts.append(mine.join(places, on="image", how="inner", maintain_order="left"))
    placed = pl.concat([part["row"] for part in parts])
    if (lost := rows.filter(~pl.col("row").is_in(placed.implode()))).height:
        images = listing(lost["image"].unique(maintain_order=True))
        names = " or ".join(repr(data.dataset) for data in predictions)
        raise StudyError("answers-to-unknown-images", where=where, images=images, datasets=names)
    if (unclear := placed.filter(placed.is_duplicated())).len():
        images = listing(rows.filter(pl.col("row").is_in(unclear.implode()))["image"].unique())
        raise StudyError("answered-image-in-both-datasets", where=where, images=images)
    return tuple(
        _answers(part, data, labelers, str(where))
        for part, data in zip(parts, predictions, strict=True)
    )


def _answers(rows: pl.DataFrame, data: Predictions, labelers: list[str], where: str) -> Predictions:
    twice = rows.filter(rows.select("image", "labeler").is_duplicated())
    if twice.height:
        person = twice["labeler"][0]
        images = listing(twice.filter(pl.col("labeler") == person)["image"].unique())
        raise StudyError("labeler-answered-twice", where=where, labeler=person, images=images)
    numbers = class_numbers(rows["answer"].to_list(), data.classes, where, "answer")
    answers = np.full((len(labelers), len(data.images), 1), NO_ANSWER, dtype=data.answers.dtype)
    person = {name: number for number, name in enumerate(labelers)}
    who = [person[name] for name in rows["labeler"].to_list()]
    answers[who, rows["place"].to_numpy(), 0] = [numbers[name] for name in rows["answer"].to_list()]
    return replace(data, classifiers=tuple(labelers), answers=answers, confidence=None)


def beside(predictions: Predictions, humans: Predictions) -> Predictions:
    """Put people beside classifiers, on the images that at least one person answered.

    Parameters
    ----------
    predictions, humans
        Answers to the same images; people's names must differ from classifiers'.

    Returns
    -------
    Predictions
        First answers of the classifiers, then of the people; none (-1) of anybody to the images
        that no person answered.

    Raises
    ------
    StudyError
        Where nobody answered any image of the data set, or a name is taken.
    """
    answered = np.any(humans.answered, axis=0)
    if not answered.any():
        raise StudyError("no-human-answers", dataset=predictions.dataset)
    if duplicates := sorted(set(predictions.classifiers) & set(humans.classifiers)):
        raise StudyError("labeler-named-as-classifier", labelers=listing(duplicates, "labeler"))
    machines = np.where(np.expand_dims(answered, 1), predictions.answers[:, :, :1], NO_ANSWER)
    answers = np.concatenate([machines, humans.answers])
    answers = answers.astype(predictions.answers.dtype, copy=False)
    names = predictions.classifiers + humans.classifiers
    return replace(predictions, classifiers=names, answers=answers, confidence=None)


def shankar2020() -> pl.DataFrame:
    """Multi-label accuracies of five people and three networks, as published.

    Tables 1 and 2 of Shankar et al. (2020), "Evaluating machine accuracy on ImageNet", with their
    Clopper-Pearson intervals. Human E on ImageNet is that of table 1 (97.2 % in table 2).
    """
    table = pl.read_csv(files("bayesrep.protocols").joinpath("shankar2020.csv").read_bytes())
    return table.with_columns(pl.selectors.float() / 100)


def add_published(accuracies: pl.DataFrame) -> pl.DataFrame:
    """Accuracies of a `Comparison`, and below them those of `shankar2020` on all images."""
    published = shankar2020().filter(pl.col("subset") == "all").drop("subset")
    kind = pl.format("{} (published)", "kind").alias("kind")
    rows = published.with_columns(kind, metric=pl.lit("multi-label"))
    return pl.concat([accuracies, rows], how="diagonal")
