"""Published pickles of Tsipras et al.'s (2020) Classify task, of MadryLab/ImageNetMultiLabel.

annotations_classify_task.pkl: answers of annotators; image_info.pkl: what became of all images.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, listing, reason
from bayesrep.sources.pickles.safe_pickle import read_frame

DATASET_NAME = "imagenet"
_FRAME_COLUMNS = ("image", "imagenet_label", "selected", "main")
_FATE_OF_CODE = {
    "fu": "classify",
    "easy": "clear",
    "mis": "own label never selected",
    "amb": "ambiguous",
}


def read_classify_frame(path: str | Path, dataset: str = DATASET_NAME) -> pl.DataFrame:
    """What every annotator said of each label; `worker` numbers those of one image."""
    frame = _read(path, _FRAME_COLUMNS, "annotations_classify_task.pkl")
    try:
        rows = list(_answers(*(frame[name].tolist() for name in _FRAME_COLUMNS)))
    except (TypeError, ValueError) as error:
        raise StudyError("frame-not-as-published", path=path, reason=reason(error)) from None
    kinds = (pl.String, pl.String, pl.Boolean, pl.String, pl.Boolean, pl.Boolean)
    names = ("image", "label", "own", "worker", "selected", "main")
    table = pl.DataFrame(rows, dict(zip(names, kinds, strict=True)), orient="row")
    return table.with_columns(dataset=pl.lit(dataset), task="image")


def read_fates_frame(path: str | Path) -> pl.DataFrame:
    """Read what became of every image before annotators classified some."""
    frame = _read(path, ("image", "annotation"), "image_info.pkl")
    kinds = [str(kind) for kind in frame["annotation"].tolist()]
    if strange := [kind for kind in dict.fromkeys(kinds) if kind not in _FATE_OF_CODE]:
        raise StudyError(
            "unknown-fate-annotation",
            path=path,
            annotations=listing(strange, "annotation"),
            choices=", ".join(_FATE_OF_CODE),
        )
    images = [str(image) for image in frame["image"].tolist()]
    return pl.DataFrame({"image": images, "fate": [_FATE_OF_CODE[kind] for kind in kinds]})


def _read(path: str | Path, columns: Sequence[str], published: str) -> Any:
    frame = read_frame(path)
    if missing := [name for name in columns if name not in frame]:
        raise StudyError(
            "frame-columns-missing",
            path=path,
            columns=listing(missing, "column"),
            published_file=published,
        )
    return frame


def _answers(
    images: list[Any], labels: list[Any], selected: list[Any], main: list[Any]
) -> Iterator[tuple[Any, ...]]:
    for image, own, chosen, first in zip(images, labels, selected, main, strict=True):
        # The own label was always a choice (appendix B.1.3).
        choices = dict.fromkeys([*(int(label) for each in chosen for label in each), int(own)])
        for worker, (labels_chosen, best) in enumerate(zip(chosen, first, strict=True), 1):
            has = {int(label) for label in labels_chosen}
            for label in choices:
                name, is_own, is_best = f"{image} {worker}", label == int(own), label == int(best)
                yield str(image), str(label), is_own, name, label in has, is_best
