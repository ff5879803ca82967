"""Processor time of a suite of three data sets, beside timm's loader for each set and classifier.

    python -m benchmarks.suite [--quick]

The images and the eight small classifiers are those of `benchmarks.vision`; the images are parted
into three data sets. Processor time is that of all threads and child processes, so that it is the
same however busy the machine is; torch takes one thread for both. What the networks take on random
tensors is measured for both, in the layout and batches of each. What is left is the way from files
to answers.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bayesrep.errors import PredictionWarning
from bayesrep.report.table_format import columns
from bayesrep.vision import ImageSource, predict_sets
from bayesrep.vision.architectures import describe
from bayesrep.vision.images import list_images
from bayesrep.vision.pixels import Preprocessing, decode, read_block
from bayesrep.vision.run_local import in_blocks, single_threaded
from bayesrep.vision.torch_loading import load_timm
from benchmarks._requirements import Requirement, requirement_numbers, requirement_text, say
from benchmarks.decoding import milliseconds
from benchmarks.vision import CLASSIFIERS, make_weights, networks_alone, timm_loop
from experiments.photographs import make_images

SETS = ("one", "two", "three")
TIMM_BATCH = 64


def processor_seconds(task: Callable[[], Any]) -> float:
    """Processor time of a task in this process and in those that it starts and ends."""

    def now() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    begin = now()
    task()
    return now() - begin


def part_images(root: Path) -> None:
    """Move the images of one folder into those of the three data sets."""
    for number, file in enumerate(sorted((root / "all").rglob("*.JPEG"))):
        place = root / SETS[number % len(SETS)] / file.parent.name
        place.mkdir(parents=True, exist_ok=True)
        file.rename(place / file.name)


def run_timms_networks(weights: Path, count: int) -> None:
    """All networks on random tensors in timm's layout and batches."""
    import torch
    from safetensors.torch import load_file

    timm = load_timm()
    for name in CLASSIFIERS:
        module = timm.create_model(name).eval()
        module.load_state_dict(load_file(str(weights / f"{name}.safetensors")))
        size = timm.data.resolve_data_config(model=module, use_test_size=True)["input_size"]
        images = torch.randn(TIMM_BATCH, *size)
        with torch.inference_mode():
            for first in range(0, count, TIMM_BATCH):
                module(images[: count - first])


def read_everything(root: Path, weights: Path) -> None:
    """Read, decode and preprocess every image for all classifiers, in one thread."""
    kinds = list(dict.fromkeys(describe(name, weights).preprocessing for name in CLASSIFIERS))
    for name in SETS:
        images = list_images(root / name)
        for rows in in_blocks(np.arange(len(images))):
            read_block(images, rows, kinds, {})


def resize_what_is_kept(image: Any, kind: Preprocessing) -> Any:
    """The pixels by a resizing of only what the centre crop leaves."""
    short = math.floor(kind.size[0] / kind.crop_pct)
    scale = short / min(image.size)
    sizes = [short if side == min(image.size) else int(side * scale) for side in image.size]
    begins = [round((side - kind.size[0]) / 2) for side in sizes]
    factors = [side / resized for side, resized in zip(image.size, sizes, strict=True)]
    box = [
        (begin + more) * factor
        for more in (0, kind.size[0])
        for begin, factor in zip(begins, factors, strict=True)
    ]
    filter_ = {"bicubic": 3, "bilinear": 2}[kind.interpolation]
    return np.asarray(image.resize(kind.size, filter_, tuple(box)))


def compare_resizing(root: Path, weights: Path) -> list[list[str]]:
    """What a resizing of only what is kept would save, and how many values it changes."""
    listed = list_images(root / SETS[0])
    images = [decode(listed.read(row)) for row in range(min(40, len(listed)))]
    rows: list[list[str]] = []
    for kind in dict.fromkeys(describe(name, weights).preprocessing for name in CLASSIFIERS):
        other = partial(resize_what_is_kept, kind=kind)
        changed = np.mean([(kind.apply(image) != other(image)).mean() for image in images])
        times = [f"{milliseconds(way, images):.2f}" for way in (kind.apply, other)]
        rows.append([f"{kind.size[0]}, {kind.interpolation}", *times, f"{100 * changed:.2f}"])
    return rows


def main() -> int:
    """Run the benchmark and write its part of docs/results/speed.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="96 images, no page")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", PredictionWarning)  # random weights are at chance
    count = 96 if quick else 480
    took: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        root, weights = Path(name), Path(name) / "weights"
        say(f"making {count} images and {len(CLASSIFIERS)} classifiers")
        make_images(root / "all", count)
        make_weights(weights, root / "all")
        part_images(root)
        sets = {each: ImageSource(root / each) for each in SETS}
        tasks: dict[str, Callable[[], Any]] = {
            "timm": lambda: [timm_loop(root / each, weights) for each in SETS],
            "timm's networks": lambda: run_timms_networks(weights, count),
            "ours": lambda: predict_sets(
                sets, CLASSIFIERS, root / "study", weights=weights, progress=False
            ),
            "our networks": lambda: networks_alone(weights, count),
            "first blocks": lambda: networks_alone(weights, 0),  # which that begins with
            "reading": lambda: read_everything(root, weights),
        }
        for what, task in tasks.items():
            with single_threaded():  # threads that wait for each other would count as work
                took[what] = processor_seconds(task)
            say(f"{what} {took[what]:.1f} s")
        with single_threaded():
            resizing = compare_resizing(root, weights)
    took["our networks"] -= took.pop("first blocks")
    own = took["ours"] - took["our networks"]
    timms = took["timm"] - took["timm's networks"]
    rows = [
        ["all", took["timm"], took["ours"], took["ours"] / took["timm"]],
        ["the networks alone", took["timm's networks"], took["our networks"], None],
        ["the rest", timms, own, own / timms],
    ]
    shown = [
        [what, f"{one:.1f}", f"{other:.1f}", "" if share is None else f"{share:.2f}"]
        for what, one, other, share in rows
    ]
    requirements = [Requirement("of timm's processor time", rows[0][3], "at most", 0.25, "")]
    floor = (took["our networks"] + took["reading"]) / took["timm"]
    head = [f"{len(CLASSIFIERS)} classifiers, {len(SETS)} sets, {count} images"]
    text = "\n\n".join(
        [
            columns([*head, "timm (CPU s)", "bayesrep (CPU s)", "ratio"], shown),
            columns(
                ["resizing", "whole (ms)", "what is kept (ms)", "values changed (%)"], resizing
            ),
        ]
    )
    remarks = (
        f"{requirement_text(requirements)}\n\nThe floor is {floor:.2f}: the networks alone "
        f"({took['our networks']:.1f} s), and reading, decoding and preprocessing every image once "
        f"in {len(resizing)} ways ({took['reading']:.1f} s). Most of the latter is Pillow's "
        "resizing. Two others are faster and change values, so that answers would no longer be "
        "timm's: torch's ([decoding](#benchmark-decoding), where other decoders are no faster), "
        "and a resizing of only what the centre crop leaves, whose corners Pillow takes in float32."
    )
    print(f"{text}\n\n{remarks}")
    if not quick:
        # Here, not above: it brings JAX, and the loader's processes are forked, which JAX forbids.
        from experiments.results import save

        numbers: dict[str, Any] = {"seconds": took, "classifiers": CLASSIFIERS, "images": count}
        numbers["resizing"] = resizing
        numbers["versions"] = {name: version(name) for name in ("torch", "timm", "pillow")}
        numbers["requirements"] = requirement_numbers(requirements)
        save("benchmark-suite", "python -m benchmarks.suite", numbers, text, remarks=remarks)
    return 0 if all(each.passed for each in requirements) else 1


if __name__ == "__main__":
    sys.exit(main())
