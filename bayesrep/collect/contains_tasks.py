"""Grids of images about one label each: "select all images that show X".

Every image is dealt into several grids with fresh neighbours: answers about it would depend on each
other otherwise, which no count can show (`docs/cannot-tell.md`). Images of all data sets are mixed,
so one crowd rates both (Engstrom et al. 2020, appendix B.1). Controls are images known to show the
label (at least five of 48 in Tsipras et al. 2020, appendix B.1.2), or to show another.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.files.digests import digest_parts
from bayesrep.files.names import normalize_names
from bayesrep.types import Bools, Ints

GRID_IMAGES = 48
CONTROL_KINDS = ("positive", "negative")
CONTROL_DATASET = "control"  # name of the data set of all controls
PLACE_COLUMNS = ("task", "place", "dataset", "image", "label", "own", "control", "source")
"""Columns of the tasks' table, with a row for every place that a worker may select."""
QUESTION_KEY = ("dataset", "image", "label")
Places: TypeAlias = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class GridDesign:
    """Design of the grids.

    Parameters
    ----------
    answers
        Number of answers about every image and label.
    grids
        Number of grids that contain an image; each is answered by `answers / grids` workers.
    size
        Images of a grid, controls among them.
    positive, negative
        Controls of a grid: images that show its label, and images that show another.
    seed
        Seed of the shuffles.

    Raises
    ------
    OptionError
        If the numbers do not go together.
    """

    answers: int = 10
    grids: int = 5
    size: int = GRID_IMAGES
    positive: int = 5
    negative: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.answers < 1 or self.grids < 1 or self.answers % self.grids:
            raise OptionError(
                "answers-not-divisible-by-grids", answers=self.answers, grids=self.grids
            )
        if min(self.positive, self.negative) < 0 or self.images_asked < 1:
            raise OptionError(
                "grid-too-small-for-controls",
                size=self.size,
                positive=self.positive,
                negative=self.negative,
            )

    @property
    def images_asked(self) -> int:
        """Largest number of images of a grid that are not controls."""
        return self.size - self.positive - self.negative

    @property
    def workers(self) -> int:
        """Number of workers who answer each grid."""
        return self.answers // self.grids


def plan_grids(
    asked: pl.DataFrame, controls: pl.DataFrame | None = None, design: GridDesign | None = None
) -> pl.DataFrame:
    """Deal images into grids.

    Parameters
    ----------
    asked
        One row an image and label to ask about: `dataset`, `image`, `label`; `own`, whether it is
        the image's own label, by default true; `source`, the picture's file or address, by default
        dataset/image.
    controls
        Images of which the label is known: `image`, `label`, `source` likewise (by default the
        image). Needed where the design has controls.
    design
        Numbers of everything.

    Returns
    -------
    polars.DataFrame
        One row a place in a grid: `task` (the grid's name, which begins with the fingerprint of
        all of them), `place` (from 1), `dataset`, `image`, `label` (what is asked), `own`,
        `control` ("positive", "negative" or null), `source`. They are `design.grids` rounds of as
        many grids, with every image once in each; within a round they are in random order.

    Raises
    ------
    StudyError
        If an image is asked about twice, or a label lacks controls.

    Notes
    -----
    A label with fewer images than a grid holds has a smaller one, the same neighbours every time.
    """
    how = design or GridDesign()
    asked = check_questions(asked)
    random = np.random.default_rng(how.seed)
    labels, label = np.unique(asked["label"].to_numpy().astype(np.str_), return_inverse=True)
    _, dataset = np.unique(asked["dataset"].to_numpy().astype(np.str_), return_inverse=True)
    row, grid = _deal_rows(label, dataset, how, random)
    label_of = np.zeros(int(grid.max()) + 1, dtype=np.int32)
    label_of[grid] = label[row]
    pool, kind = asked.drop("label"), np.zeros(len(row), dtype=np.int8)
    if how.positive or how.negative:
        labelled = _known_controls(controls, how)
        rows_of_controls, of_controls, kinds = _controls(labelled, labels, label_of, how, random)
        row = np.concatenate([row, len(asked) + rows_of_controls])
        grid, kind = np.concatenate([grid, of_controls]), np.concatenate([kind, kinds])
        pool = pl.concat([pool, labelled.select(pool.columns)])
    # Rounds follow each other: who does one of them meets no image twice. Within a round grids are
    # in random order, and images in random places.
    each = len(label_of) // how.grids
    order = np.concatenate(
        [begin + random.permutation(each) for begin in range(0, len(label_of), each)]
    ).astype(np.int32)
    number = order[grid]
    by_task = np.lexsort((random.random(len(row), dtype=np.float32), number))
    row, grid, kind, number = row[by_task], grid[by_task], kind[by_task], number[by_task]
    place = np.arange(len(row)) - np.searchsorted(number, number) + 1
    controlled = pl.Series("control", [None, *CONTROL_KINDS], dtype=pl.String)[kind]
    table = pool[row].with_columns(
        label=pl.Series(labels)[label_of[grid]], control=controlled, place=pl.Series(place)
    )
    of_control = pl.when(pl.col("control").is_null()).then("own")
    table = table.with_columns(own=of_control.otherwise(pl.col("control") == CONTROL_KINDS[0]))
    return table.with_columns(task=task_names(table, number)).select(PLACE_COLUMNS)


def check_questions(table: pl.DataFrame) -> pl.DataFrame:
    """Check that images and labels to ask about are unique, and complete their columns."""
    if missing := [name for name in QUESTION_KEY if name not in table.columns]:
        raise StudyError(
            "asked-images-lack-column", column=missing[0], needed=", ".join(QUESTION_KEY)
        )
    if table.is_empty():
        raise StudyError("no-images-to-ask-about")
    texts = table.select(normalize_names(pl.col(QUESTION_KEY)))
    for name in QUESTION_KEY:
        if (empty := int((texts[name].fill_null("") == "").sum())) > 0:
            raise StudyError("asked-images-value-missing", column=name, row_count=empty)
    if (twice := texts.is_duplicated()).any():
        names = listing(texts.filter(twice)["image"].unique(maintain_order=True).to_list())
        raise StudyError("asked-image-label-repeated", images=names)
    extra = {name: table[name] for name in ("own", "source") if name in table.columns}
    own = extra.get("own", pl.repeat(1, len(table), eager=True)).cast(pl.Boolean)
    source = extra.get("source", pl.repeat(None, len(table), eager=True)).cast(pl.String)
    default = pl.format("{}/{}", "dataset", "image")
    return texts.with_columns(own=own, source=source).with_columns(
        pl.col("own").fill_null(value=False),
        source=pl.when(pl.col("source").fill_null("") == "").then(default).otherwise("source"),
    )


def _deal_rows(
    label: Ints, dataset: Ints, how: GridDesign, random: np.random.Generator
) -> tuple[Places, Places]:
    """Deal every row into `how.grids` grids: return the rows and their grids' numbers."""
    size = np.bincount(label)
    parts = -(-size // how.images_asked)
    first = np.concatenate([[0], np.cumsum(parts)])
    begins = np.cumsum(size) - size
    rows, grids = [], []
    for shuffle in range(how.grids):
        key = random.random(len(label))
        # Every data set evenly along its label's row, in an order of its own.
        order = np.lexsort((key, dataset, label))
        pair = label[order] * (dataset.max() + 1) + dataset[order]
        start = np.searchsorted(pair, pair)
        count = np.searchsorted(pair, pair, side="right") - start
        along = (np.arange(len(pair)) - start + random.random(len(pair))) / count
        order = order[np.lexsort((along, label[order]))]
        within = np.arange(len(order)) - begins[label[order]]
        part = within * parts[label[order]] // size[label[order]]
        rows.append(order.astype(np.int32))
        grids.append((shuffle * first[-1] + first[label[order]] + part).astype(np.int32))
    return np.concatenate(rows), np.concatenate(grids)


def _known_controls(controls: pl.DataFrame | None, how: GridDesign) -> pl.DataFrame:
    """Bring images of known labels into the columns of the images to ask about."""
    if controls is None:
        raise StudyError(
            "controls-without-known-images", positive=how.positive, negative=how.negative
        )
    if missing := [name for name in ("image", "label") if name not in controls.columns]:
        raise StudyError("controls-lack-column", column=missing[0])
    source = controls["source"] if "source" in controls.columns else controls["image"]
    labelled = controls.select(normalize_names(pl.col("image", "label"))).with_columns(
        dataset=pl.lit(CONTROL_DATASET), own=pl.lit(value=True), source=source.cast(pl.String)
    )
    return labelled.unique(["image", "label"], maintain_order=True)


def _controls(
    labelled: pl.DataFrame,
    labels: np.ndarray,
    label_of: Places,
    how: GridDesign,
    random: np.random.Generator,
) -> tuple[Places, Places, Places]:
    """Draw every grid's controls: row in `labelled`, grid, and kind (from 1)."""
    of_label: Mapping[str, Ints] = {
        str(name): rows["row"].to_numpy()
        for (name,), rows in labelled.with_row_index("row").group_by("label")
    }
    if how.positive:
        few = [each for each in labels.tolist() if len(of_label.get(each, ())) < how.positive]
        if few:
            raise StudyError(
                "too-few-positive-controls", positive=how.positive, labels=listing(few, "label")
            )
    image = labelled["image"].rank("dense").to_numpy()
    sizes = np.bincount(label_of, minlength=len(labels))
    grids_of = np.split(np.argsort(label_of, kind="stable"), np.cumsum(sizes)[:-1])
    parts: list[tuple[Places, Places, Places]] = []
    for kind, (name, number) in enumerate(
        zip(CONTROL_KINDS, (how.positive, how.negative), strict=True), 1
    ):
        if not number:
            continue
        chosen = np.empty((len(label_of), number), dtype=np.int32)
        for place, label in enumerate(labels.tolist()):
            candidates = of_label.get(label, np.empty(0, dtype=np.int64))
            if name == "negative":
                # An image may be known to show several labels.
                candidates = np.flatnonzero(~np.isin(image, image[candidates]))
                if len(candidates) < number:
                    raise StudyError("too-few-negative-controls", negative=number, label=label)
            chosen[grids_of[place]] = _sample_rows(candidates, number, len(grids_of[place]), random)
        grid = np.repeat(np.arange(len(label_of), dtype=np.int32), number)
        parts.append((chosen.ravel(), grid, np.full(len(grid), kind, dtype=np.int8)))
    rows, grids, kinds = (np.concatenate(each) for each in zip(*parts, strict=True))
    return rows, grids, kinds


def _sample_rows(candidates: Ints, number: int, times: int, random: np.random.Generator) -> Ints:
    if len(candidates) > 20 * number:  # repeats are rare: reject them
        samples = random.integers(len(candidates), size=(times, number))
        while (repeated := _has_repeats(samples)).any():
            samples[repeated] = random.integers(len(candidates), size=(int(repeated.sum()), number))
        return candidates[samples]
    return candidates[np.argsort(random.random((times, len(candidates))), axis=1)[:, :number]]


def _has_repeats(samples: Ints) -> Bools:
    ordered = np.sort(samples, axis=1)
    return (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)


def task_names(table: pl.DataFrame, number: Places) -> pl.Series:
    """Name every row's task; the prefix, a digest, tells them from other collections' tasks."""
    text = table.select(*QUESTION_KEY, "control").with_columns(n=pl.Series(number))
    slices = text.iter_slices(2**17)
    begin = digest_parts(part.write_csv(include_header=False).encode() for part in slices)[:8]
    width = len(str(int(number.max()) + 1))
    names = [f"{begin}-{each:0{width}d}" for each in range(1, int(number.max()) + 2)]
    return pl.Series("task", names)[number]
