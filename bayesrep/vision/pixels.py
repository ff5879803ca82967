"""Decode images and preprocess them as timm does, once for all classifiers that agree.

That is timm's evaluation transform without the normalisation: uint8, whatever mean and deviation.
"""

import io
import logging
import re
import time
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, kind_and_reason
from bayesrep.types import Ints
from bayesrep.vision.image_digests import digest
from bayesrep.vision.images import ImageSet
from bayesrep.vision.timing import Spent
from bayesrep.vision.torch_loading import load_timm

# What the known suffixes stand for. Pillow knows more, of which one starts other programs (EPS).
IMAGE_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP", "AVIF")
MAX_PIXELS = 89_478_485  # pixels; where Pillow begins to warn of decompression bombs
MAX_ASPECT_RATIO = 250  # the shorter side grows to some 256 pixels before the crop


@dataclass(frozen=True, order=True)
class Preprocessing:
    """Parameters of timm's evaluation transforms before normalisation."""

    size: tuple[int, int]  # height and width of the result
    crop_pct: float  # side of the crop over the resized image's
    # "center" (rest cut off), "squash" (both sides resized) or "border" (longer side, padded).
    crop_mode: str
    interpolation: str  # "bicubic", "bilinear", ..
    fill: tuple[float, ...] = ()  # colour of the padding in [0, 1]; empty where there is none

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Take what counts from timm's data configuration of a model."""
        height, width = config["input_size"][-2:]
        mode = config["crop_mode"] or "center"
        fill = tuple(config["mean"]) if mode == "border" else ()
        return cls((height, width), config["crop_pct"], mode, config["interpolation"], fill)

    def apply(self, image: Any) -> NDArray[np.uint8]:
        """The pixels [H, W, 3] of a decoded (PIL, RGB) image."""
        return _transform(self)(image).permute(1, 2, 0).numpy()


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
    """A PIL image of mode RGB, decoded as timm's loader does."""
    from PIL import Image

    image = Image.open(io.BytesIO(data), formats=IMAGE_FORMATS)
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise PredictionError(
            "image-has-too-many-pixels", width=width, height=height, most_pixels=MAX_PIXELS
        )
    if max(width, height) > MAX_ASPECT_RATIO * min(width, height):
        raise PredictionError(
            "image-too-narrow", width=width, height=height, largest_ratio=MAX_ASPECT_RATIO
        )
    image.load()
    return image if image.mode == "RGB" else image.convert("RGB")


@contextmanager
def quiet_images() -> Generator[None]:
    """Silence what Pillow says about odd images, and have it refuse those that are cut off."""
    from PIL import ImageFile

    logger = logging.getLogger("PIL")
    level, takes_truncated = logger.level, ImageFile.LOAD_TRUNCATED_IMAGES
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\..*")
        logger.setLevel(logging.CRITICAL + 1)
        ImageFile.LOAD_TRUNCATED_IMAGES = False
        try:
            yield
        finally:
            logger.setLevel(level)
            ImageFile.LOAD_TRUNCATED_IMAGES = takes_truncated


def explain_failure(error: Exception) -> str:
    """Say why an image cannot be decoded, in the same words on every run."""
    if isinstance(error, PredictionError):
        return str(error)
    # Pillow names the object that it reads from, with its place in memory.
    return re.sub(r" *<[^<>]* at 0x[0-9a-fA-F]+>", "", kind_and_reason(error))


@dataclass(frozen=True, eq=False)
class KeptPixels:
    """Preprocessed images of an earlier pass."""

    pixels: NDArray[np.uint8]  # uint8 [n, H, W, 3]: preprocessed pixels
    contents: NDArray[np.uint64]  # [n]: digests of the images


@dataclass(frozen=True, eq=False)
class ImageBlock:
    """Some images, decoded once and preprocessed for every group of classifiers."""

    rows: Ints  # int64 [n]: the images, by number in their set, that could be decoded
    contents: NDArray[np.uint64]  # uint64 [n]: digests of the images when they were decoded
    pixels: Mapping[Preprocessing, NDArray[np.uint8]]  # [n, H, W, 3], before normalisation
    failures: tuple[tuple[int, str], ...] = ()  # (row, reason): images that could not be decoded
    spent: Spent = Spent()  # time of the work


def read_block(
    images: ImageSet,
    rows: Ints,
    preprocessings: Sequence[Preprocessing],
    stores: Mapping[Preprocessing, Any],
) -> ImageBlock:
    """Read, decode and preprocess images [n]; `stores` are caches (`bayesrep.vision.cache`)."""
    decoded = {
        key: pixels
        for key in preprocessings
        if key in stores and (pixels := stores[key].get(rows)) is not None
    }
    earlier = [cached.contents for cached in decoded.values()]
    pixels = {key: cached.pixels for key, cached in decoded.items()}
    if len(decoded) == len(preprocessings) and all((one == earlier[0]).all() for one in earlier):
        return ImageBlock(rows, earlier[0], pixels)
    arrays, contents, failures, spent = _decode_images(
        images, rows, [k for k in preprocessings if k not in decoded]
    )
    if any((one != contents).any() for one in earlier):  # an image changed between two passes
        return read_block(images, rows, preprocessings, {})
    failed = {row for row, _ in failures}
    good = [place for place, row in enumerate(rows.tolist()) if row not in failed]
    for key in (key for key in arrays if key in stores):
        for place in good:
            stores[key].put(int(rows[place]), arrays[key][place], int(contents[place]))
    pixels |= arrays
    if failures:
        pixels = {key: values[good] for key, values in pixels.items()}
    return ImageBlock(rows[good], contents[good], pixels, failures, spent)


def _decode_images(
    images: ImageSet, rows: Ints, preprocessings: Sequence[Preprocessing]
) -> tuple[
    dict[Preprocessing, NDArray[np.uint8]], NDArray[np.uint64], tuple[tuple[int, str], ...], Spent
]:
    """The pixels [n, H, W, 3] of some images, what they held [n], the failures, the time."""
    arrays = {key: np.empty((len(rows), *key.size, 3), dtype=np.uint8) for key in preprocessings}
    contents = np.zeros(len(rows), dtype=np.uint64)
    failures: list[tuple[int, str]] = []
    took, clock = [0.0, 0.0, 0.0], time.perf_counter
    for place, row in enumerate(rows.tolist()):
        try:
            begin = clock()
            data = images.read(row)
            contents[place] = digest(data)
            has_read = clock()
            image = decode(data)
            has_decoded = clock()
            for key, pixels in arrays.items():
                pixels[place] = key.apply(image)
            took[0] += has_read - begin
            took[1] += has_decoded - has_read
            took[2] += clock() - has_decoded
        except Exception as error:  # decoders raise whatever a broken file makes them stumble over
            failures.append((row, explain_failure(error)))
    return arrays, contents, tuple(failures), Spent(*took)
