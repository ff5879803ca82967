"""Whether other decoders and another resizing give timm's pixels, and whether they are faster.

    python -m benchmarks.decoding [--quick]

JPEG images of ImageNet's typical size of every kind are decoded by Pillow, as `predict` does it,
and by torchvision and torchcodec where these load (published builds are linked to CUDA's libraries
and do not load beside a torch for CPUs). Times are processor time of one thread, from bytes to what
timm's resizing takes.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bayesrep.report.table_format import columns
from bayesrep.vision.pixels import decode
from bayesrep.vision.run_local import single_threaded
from bayesrep.vision.torch_loading import load_timm
from experiments.photographs import make_images


def kinds(count: int) -> dict[str, list[bytes]]:
    """The same images as JPEG files of every kind."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as name:
        make_images(Path(name), count)
        images = [decode(file.read_bytes()) for file in sorted(Path(name).glob("*/*"))]
    turned = Image.Exif()
    turned[0x0112] = 6
    ways: dict[str, tuple[str, dict[str, Any]]] = {
        "4:2:0": ("RGB", {}),
        "4:2:2": ("RGB", {"subsampling": 1}),
        "4:4:4": ("RGB", {"subsampling": 0}),
        "restart markers": ("RGB", {"restart_marker_blocks": 7}),
        "progressive": ("RGB", {"progressive": True}),
        "grey": ("L", {}),
        "CMYK": ("CMYK", {}),
        "stored as RGB": ("RGB", {"keep_rgb": True}),
        "orientation flag": ("RGB", {"exif": turned}),
    }
    found = {
        name: [_jpeg(image.convert(mode), **options) for image in images]
        for name, (mode, options) in ways.items()
    }
    odd = [image.resize((497, 371)) for image in images]
    return found | {"odd sizes": [_jpeg(image) for image in odd]}


def _jpeg(image: Any, **options: Any) -> bytes:
    into = io.BytesIO()
    image.save(into, "JPEG", quality=92, **options)
    return into.getvalue()


def decoders() -> dict[str, Callable[[bytes], Any]]:
    """Pillow, and what else loads; each gives an image that timm's resizing takes."""
    import torch
    from PIL import Image

    load_timm()
    found: dict[str, Callable[[bytes], Any]] = {"Pillow": decode}

    def add(name: str, operator: Callable[[], Any], *arguments: Any) -> None:
        try:
            call = operator()
        except (ImportError, OSError, AttributeError, RuntimeError):
            return

        def other(data: bytes) -> Any:
            pixels = call(torch.frombuffer(bytearray(data), dtype=torch.uint8), *arguments)
            return Image.fromarray(pixels.permute(1, 2, 0).numpy())

        found[name] = other

    add("torchvision", lambda: torch.ops.image.decode_jpeg, 3)
    add("torchcodec", lambda: torch.ops.torchcodec_ns.decode_jpeg, 3)
    return found


def milliseconds(task: Callable[[Any], Any], items: Sequence[Any]) -> float:
    """Processor time of a task on one item, the least of five rounds."""
    rounds: list[float] = []
    for _ in range(5):
        begin = time.process_time()
        for item in items:
            task(item)
        rounds.append(time.process_time() - begin)
    return 1000 * min(rounds) / len(items)


def _same(one: Any, other: Any) -> bool:
    return np.array_equal(np.asarray(one), np.asarray(other))


def resizing(what: str, images: Sequence[Any]) -> list[list[str]]:
    """Pillow's resizing, timm's, beside torch's: values that differ, by how much, and times."""
    import torch

    rows: list[list[str]] = []
    for mode, size in (("bicubic", (256, 341)), ("bilinear", (168, 224))):

        def pillow(image: Any, mode: str = mode, size: tuple[int, int] = size) -> Any:
            return image.resize(size[::-1], 3 if mode == "bicubic" else 2)

        def torchs(image: Any, mode: str = mode, size: tuple[int, int] = size) -> Any:
            pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None]
            resized = torch.nn.functional.interpolate(
                pixels, size, mode=mode, antialias=True, align_corners=False
            )
            return resized[0].permute(1, 2, 0).numpy()

        apart = np.abs([np.asarray(pillow(image), dtype=int) - torchs(image) for image in images])
        times = [f"{milliseconds(task, images):.2f}" for task in (pillow, torchs)]
        rows.append(
            [f"{what}, {mode}", *times, f"{100 * (apart > 0).mean():.1f}", str(apart.max())]
        )
    return rows


def main() -> int:
    """Run the benchmark and write its part of docs/results/speed.md."""
    from PIL import Image

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two images, no page")
    quick = parser.parse_args().quick
    ways, every = decoders(), kinds(2 if quick else 20)
    rows: list[list[str]] = []
    with single_threaded():
        for kind, data in every.items():
            row = [kind]
            for name, way in ways.items():
                row.append(f"{milliseconds(way, data):.2f}")
                if name != "Pillow":
                    same = sum(_same(way(each), decode(each)) for each in data)
                    row.append(f"{same} of {len(data)}")
            rows.append(row)
        drawn = [decode(each) for each in every["4:2:0"]]
        rng = np.random.default_rng(0)
        noise = [
            Image.fromarray(rng.integers(0, 256, (375, 500, 3), dtype=np.uint8)) for _ in drawn
        ]
        resized = [*resizing("drawn", drawn), *resizing("noise", noise)]
    others = [title for name in ways if name != "Pillow" for title in (f"{name} (ms)", "equal")]
    text = "\n\n".join(
        [
            columns(["JPEG", "Pillow (ms)", *others], rows),
            columns(
                ["resizing", "Pillow (ms)", "torch (ms)", "values that differ (%)", "at most"],
                resized,
            ),
        ]
    )
    print(text)
    if not quick:
        from experiments.results import save  # brings JAX

        missing = [name for name in ("torchvision", "torchcodec") if name not in ways]
        remarks = (
            "Images of 500 x 375 pixels, one thread, processor time. Equal: images whose pixels "
            "are Pillow's to the bit. Values are of 0 to 255."
            + (f" Not loaded here: {' and '.join(missing)}." if missing else "")
        )
        numbers = {"decoding": rows, "resizing": resized, "decoders": list(ways)}
        numbers["versions"] = {name: version(name) for name in ("torch", "pillow")}
        save("benchmark-decoding", "python -m benchmarks.decoding", numbers, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
