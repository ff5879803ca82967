"""Images of ImageNet's usual size, for whatever measures how fast images are read."""

from pathlib import Path

import numpy as np

from bayesrep.studies.imagenet import synsets


def make_images(root: Path, count: int) -> None:
    """Write JPEG images with structure at every scale, in class folders."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for number in range(count):
        pixels = np.zeros((375, 500, 3))
        for size, strength in ((4, 60.0), (16, 35.0), (64, 22.0), (250, 16.0)):
            noise = rng.normal(128, strength, (size * 3 // 4, size, 3)).clip(0, 255)
            layer = Image.fromarray(noise.astype(np.uint8)).resize((500, 375), 3)
            pixels += np.asarray(layer, dtype=float) - 128
        place = root / synsets()[number % 1000]
        place.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray((pixels + 128).clip(0, 255).astype(np.uint8))
        image.save(place / f"{number:05d}.JPEG", quality=92)
