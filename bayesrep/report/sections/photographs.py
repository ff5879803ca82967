"""Some images of the reference by selection frequency: figure 8 of Engstrom et al. (2020)."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError, plain_text
from bayesrep.report.pictures import by_frequency
from bayesrep.report.sections.section import Block, Section, Source, Thumbnail

JPEG_QUALITY = 80  # of JPEG


@dataclass(frozen=True, eq=False, kw_only=True)
class Photographs(Section):
    """Pictures and what is said below them, the least often selected first."""

    thumbnails: Sequence[Thumbnail]

    id, short, takes, optional = "photographs", "{Images}", "images", True
    title = "{Images} by selection frequency"

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Draw some of the pictures; `StudyError` where none are given, or none is of the study."""
        pictures = source.pictures
        if pictures is None:
            raise StudyError("no-folder-of-images")
        images = by_frequency(source.study, pictures)
        return cls(
            thumbnails=[
                Thumbnail(_inline(pictures.thumbnail(name)), plain_text(text))
                for name, text in images
            ],
            words=source.words,
        )

    def blocks(self) -> Iterator[Block]:
        """The pictures in rows."""
        yield self.block(
            lead=f"{self.words.images.title()} of the reference, drawn at random from every fifth "
            "of the selection frequencies, the least often selected first.",
            thumbnails=self.thumbnails,
        )


def _inline(pixels: NDArray[np.uint8]) -> str:
    """Pixels [height, width, 3] as the address of a picture that is in the page; nothing else."""
    from PIL import Image

    file = BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=JPEG_QUALITY)
    return f"data:image/jpeg;base64,{b64encode(file.getvalue()).decode()}"
