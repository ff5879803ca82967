"""Decoding images and preprocessing them as timm does, once for all classifiers that agree.

Decoding is timm's: the first frame, converted to RGB, whatever the mode (CMYK, palette, 16-bit,
with alpha), with the orientation flag left alone. Preprocessing is timm's evaluation transform up
to, and without, the normalisation, so that its result is uint8 and classifiers that differ only in
mean and standard deviation share it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import kind_and_reason
from bayesrep.vision.images import ImageSet
from bayesrep.vision.imports import load_timm

__all__ = ["Block", "Pixels", "Preprocessing", "decode", "read_block"]


@dataclass(frozen=True, order=True)
class Preprocessing:
    """What makes timm's evaluation transforms differ before normalisation.

    Attributes
    ----------
    size
        Height and width of the result.
    crop_pct
        Side of the crop over the resized image's; the image is resized to size / crop_pct.
    crop_mode
        "center" (shorter side resized, rest cut off), "squash" (both sides resized) or "border"
        (longer side resized, padded).
    interpolation
        "bicubic", "bilinear", ...
    fill
        Colour of the padding, mean of each channel in [0, 1]; empty where nothing is padded.
    """

    size: tuple[int, int]
    crop_pct: float
    crop_mode: str
    interpolation: str
    fill: tuple[float, ...] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Preprocessing:
        """Take what counts from timm's data configuration of a model."""
        height, width = config["input_size"][-2:]
        mode = config["crop_mode"] or "center"
        fill = tuple(config["mean"]) if mode == "border" else ()
        return cls((height, width), config["crop_pct"], mode, config["interpolation"], fill)

    def apply(self, image: Any) -> NDArray[np.uint8]:
        """Return the pixels [H, W, 3] of a decoded (PIL, RGB) image."""
        return _transform(self)(image).permute(1, 2, 0).numpy()

    def image_bytes(self) -> int:
        """Return the size of one preprocessed image."""
        return 3 * math.prod(self.size)


@cache
def _transform(preprocessing: Preprocessing) -> Any:
    fill = {"mean": preprocessing.fill} if preprocessing.fill else {}
    return load_timm().data.create_transform(
        input_size=(3, *preprocessing.size),
        interpolation=preprocessing.interpolation,
        crop_pct=preprocessing.crop_pct,
        crop_mode=preprocessing.crop_mode,
        use_prefetcher=True,  # leaves conversion to float and normalisation to us
        **fill,
    )


def decode(data: bytes) -> Any:
    """Decode an image as timm's loader does.

    Parameters
    ----------
    data
        The encoded image.

    Returns
    -------
    PIL image of mode RGB.
    """
    from PIL import Image

    image = Image.open(io.BytesIO(data))
    image.load()
    return image if image.mode == "RGB" else image.convert("RGB")


class Pixels(Protocol):
    """Where preprocessed images are kept between passes; see `bayesrep.vision.cache`."""

    def get(self, rows: NDArray[np.int64]) -> NDArray[np.uint8] | None:
        """Return the pixels [n, H, W, 3] of these images, or None where some are not kept."""
        ...

    def put(self, row: int, pixels: NDArray[np.uint8]) -> None:
        """Keep the pixels of one image."""
        ...


@dataclass(frozen=True, eq=False)
class Block:
    """Some images, decoded once and preprocessed for every group of classifiers.

    Attributes
    ----------
    rows : int64 [n]
        The images, by number in their set, that could be decoded.
    pixels : mapping of Preprocessing to uint8 [n, H, W, 3]
        What the classifiers see before normalisation.
    failures : tuple of (row, reason)
        Images that could not be decoded.
    """

    rows: NDArray[np.int64]
    pixels: Mapping[Preprocessing, NDArray[np.uint8]]
    failures: tuple[tuple[int, str], ...] = ()


def read_block(
    images: ImageSet,
    rows: NDArray[np.int64],
    preprocessings: Sequence[Preprocessing],
    kept: Mapping[Preprocessing, Pixels],
) -> Block:
    """Read, decode and preprocess some images.

    Parameters
    ----------
    images
        All images.
    rows : int64 [n]
        Those to read.
    preprocessings
        What to make of each.
    kept
        Where pixels of earlier passes are and new ones go; empty to keep none.
    """
    found = {
        key: pixels
        for key in preprocessings
        if key in kept and (pixels := kept[key].get(rows)) is not None
    }
    wanted = [key for key in preprocessings if key not in found]
    if not wanted:
        return Block(rows, found)
    arrays = {key: np.empty((len(rows), *key.size, 3), dtype=np.uint8) for key in wanted}
    good: list[int] = []
    failures: list[tuple[int, str]] = []
    for place, row in enumerate(rows.tolist()):
        try:
            image = decode(images.read(row))
            for key in wanted:
                arrays[key][place] = key.apply(image)
        except Exception as error:  # decoders raise whatever a broken file makes them stumble over
            failures.append((row, kind_and_reason(error)))
            continue
        good.append(place)
        for key in wanted:
            if key in kept:
                kept[key].put(row, arrays[key][place])
    pixels = found | arrays
    if failures:
        pixels = {key: values[good] for key, values in pixels.items()}
    return Block(rows[good], pixels, tuple(failures))
