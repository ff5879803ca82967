"""Evaluating classifiers on images, beside a loop over timm's own loader; and what memory it takes.

    python -m benchmarks.vision [--quick]

2,000 JPEG images of ImageNet's typical size (500 x 375, about 110 kB) are made in a temporary
folder, and eight classifiers small enough that decoding dominates, with random weights (their batch
normalisation set on images, so that answers differ between images). Side by side in one run:

- timm: for each classifier `create_loader` with its data configuration and as many decoding
  processes as there are cores, then the network, in torch's default threading and layout;
- bayesrep: `predict` with all classifiers, from cold and from a warm cache;
- the networks alone on random tensors, threaded as `predict` threads them.

Rounds alternate, the median is taken. Memory is the largest resident set of a process that lists
1,000 classifiers and 60,000 images and evaluates the first classifiers one at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import PredictionWarning
from bayesrep.report.table_format import columns
from bayesrep.studies import layout
from bayesrep.studies.imagenet import synsets
from bayesrep.vision import predict
from bayesrep.vision.architectures import describe
from bayesrep.vision.devices import CPU_BATCH, Device
from bayesrep.vision.forward import in_groups
from bayesrep.vision.networks import load_network
from bayesrep.vision.run_local import single_threaded
from bayesrep.vision.torch_loading import load_timm
from benchmarks._requirements import Requirement, requirement_numbers, requirement_text, say
from experiments.photographs import make_images

SAME = [
    "test_vit",
    "test_vit2",
    "test_byobnet",
    "test_efficientnet",
    "test_efficientnet_gn",
    "test_convnext",
]
OTHER = ["lcnet_035", "mobilenetv3_small_050"]
CLASSIFIERS = [*SAME, *OTHER]
LISTED, IMAGES, EVALUATED = 1000, 60_000, 3
GIGABYTE = 1024**3


def make_weights(root: Path, images: Path) -> None:
    """Write random weights whose answers differ between images."""
    import torch
    from safetensors.torch import save_file

    timm = load_timm()
    root.mkdir()
    for name in CLASSIFIERS:
        torch.manual_seed(0)
        module = timm.create_model(name)
        config = timm.data.resolve_data_config(model=module, use_test_size=True)
        transform = timm.data.create_transform(**config)
        data = timm.data.ImageDataset(str(images), transform=transform)
        batch = torch.stack([data[number][0] for number in range(0, 64)])
        for part in module.modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                part.momentum = None  # the average over the batches seen
        with torch.no_grad():
            module.train()(batch)
        save_file(module.state_dict(), str(root / f"{name}.safetensors"))


def timm_loop(images: Path, weights: Path) -> dict[str, np.ndarray]:
    """Top-1 labels by timm's own loader, one classifier after the other."""
    import torch
    from safetensors.torch import load_file

    timm = load_timm()
    found: dict[str, np.ndarray] = {}
    for name in CLASSIFIERS:
        module = timm.create_model(name)
        module.load_state_dict(load_file(str(weights / f"{name}.safetensors")))
        config = timm.data.resolve_data_config(model=module.eval(), use_test_size=True)
        loader = timm.data.create_loader(
            timm.data.ImageDataset(str(images)),
            input_size=config["input_size"],
            batch_size=64,
            interpolation=config["interpolation"],
            mean=config["mean"],
            std=config["std"],
            crop_pct=config["crop_pct"],
            crop_mode=config["crop_mode"],
            num_workers=os.cpu_count() or 1,
            persistent_workers=False,
            device=torch.device("cpu"),
        )
        with torch.inference_mode():
            found[name] = np.concatenate([module(x).argmax(1).numpy() for x, _ in loader])
    return found


def labels_of(study: Path) -> dict[str, np.ndarray]:
    """Top-1 class numbers in a study, images sorted by name."""
    known = {name: number for number, name in enumerate(synsets())}
    result = {}
    for name in CLASSIFIERS:
        table = pl.read_parquet(study / layout.prediction_file("v1", name)).sort("image")
        result[name] = np.array([known[label] for label in table["label_1"]])
    return result


def networks_alone(weights: Path, count: int) -> float:
    """Seconds of all networks on random tensors, in as many threads as `predict` takes."""
    import torch

    networks = [load_network(describe(name, weights), "cpu") for name in CLASSIFIERS]
    inputs = {
        key: torch.randn(CPU_BATCH, 3, *key[0].size).to(memory_format=torch.channels_last)
        for key in in_groups(networks)
    }

    def block(_: int) -> None:
        with torch.inference_mode():
            for key, group in in_groups(networks).items():
                for network in group:
                    network.module(inputs[key])

    def one_thread() -> None:
        torch.set_num_threads(1)

    blocks = range(count // CPU_BATCH)
    threads = os.cpu_count() or 1
    with single_threaded(), ThreadPoolExecutor(threads, initializer=one_thread) as pool:
        list(pool.map(block, range(2 * threads)))
        begin = time.perf_counter()
        list(pool.map(block, blocks))
        return time.perf_counter() - begin


def seconds(task: Callable[[], Any]) -> tuple[float, Any]:
    """Wall seconds of a task, and what it returns."""
    begin = time.perf_counter()
    result = task()
    return time.perf_counter() - begin, result


def largest_resident_set() -> int:
    """Bytes, of this process alone; getrusage would count what its parent had."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def memory() -> None:
    """List many classifiers and images, evaluate the first ones, print the resident sets."""
    from dataclasses import replace

    from PIL import Image
    from safetensors.torch import save_file

    from bayesrep.vision.image_digests import Contents
    from bayesrep.vision.images import list_images
    from bayesrep.vision.pixels import Preprocessing
    from bayesrep.vision.run import DatasetRun, evaluate_together, open_results
    from bayesrep.vision.run_local import Local

    timm, peaks = load_timm(), []
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        place = root / "images" / synsets()[0]
        place.mkdir(parents=True)
        Image.new("RGB", (32, 32)).save(place / "0.JPEG")
        for number in range(1, IMAGES):
            os.link(place / "0.JPEG", place / f"{number}.JPEG")
        save_file(timm.create_model("test_resnet").state_dict(), root / "test_resnet.safetensors")
        one = describe("test_resnet", root)
        small = replace(one, preprocessing=Preprocessing((32, 32), 1.0, "center", "bilinear"))
        listed = [replace(small, name=f"classifier-{number}") for number in range(LISTED)]
        images = list_images(root / "images")
        device = Device("cpu", "float32", CPU_BATCH)
        contents = Contents(images, root / "study", "v1")
        results = open_results(root / "study", "v1", images, contents, listed, device)
        engine = Local(images, device, os.cpu_count() or 1, budget=0)

        class Enough(Exception):
            pass

        load = engine.load

        def counted(architectures: Sequence[Any]) -> Any:
            peaks.append(largest_resident_set())
            if len(peaks) > EVALUATED:
                raise Enough
            return load(architectures)

        engine.load = counted  # type: ignore[method-assign]
        try:
            run = DatasetRun(root / "study", "v1", images, contents, results, {})
            evaluate_together([run], listed, engine, None, show=False)
        except Enough:
            print(json.dumps(peaks))


def main() -> int:
    """Run the benchmark and write its part of docs/results/speed.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="320 images, one round, no page")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    # Random weights are at chance, and the many of `memory` are one network.
    warnings.simplefilter("ignore", PredictionWarning)
    if arguments.memory:
        memory()
        return 0
    count, rounds = (320, 1) if arguments.quick else (2000, 3)
    times: dict[str, list[float]] = {"timm": [], "cold": [], "warm": [], "alone": []}
    disagreeing = 0
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        images, weights = root / "images", root / "weights"
        say(f"making {count} images and {len(CLASSIFIERS)} classifiers")
        make_images(images, count)
        make_weights(weights, images)

        def ours(round_: str, cache: Path | None) -> dict[str, np.ndarray]:
            study = root / round_
            predict(images, "v1", CLASSIFIERS, study, weights=weights, cache=cache, progress=False)
            return labels_of(study)

        ours("filling", root / "cache")
        for number in range(rounds):
            took, expected = seconds(lambda: timm_loop(images, weights))
            times["timm"].append(took)
            took, found = seconds(lambda n=number: ours(f"cold-{n}", None))
            times["cold"].append(took)
            took, again = seconds(lambda n=number: ours(f"warm-{n}", root / "cache"))
            times["warm"].append(took)
            times["alone"].append(networks_alone(weights, count))
            for classifier in CLASSIFIERS:
                for labels in (found, again):
                    disagreeing += int((labels[classifier] != expected[classifier]).sum())
            say(f"round {number + 1}: " + ", ".join(f"{k} {v[-1]:.1f} s" for k, v in times.items()))
    say(f"memory with {LISTED:,} classifiers and {IMAGES:,} images listed")
    command = [sys.executable, "-m", "benchmarks.vision", "--memory"]
    peaks = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    # Here, not above: it brings JAX, and the loader's processes are forked, which JAX forbids.
    from experiments.results import save

    medians = {key: statistics.median(values) for key, values in times.items()}
    requirements = [
        Requirement(
            "times faster than looping timm's loader",
            statistics.median(t / c for t, c in zip(times["timm"], times["cold"], strict=True)),
            "at least",
            3,
            "",
        ),
        Requirement("top-1 labels that differ from timm's", disagreeing, "at most", 0, ""),
        Requirement(
            "throughput from a warm cache over that of the networks alone, in percent",
            100
            * statistics.median(a / w for a, w in zip(times["alone"], times["warm"], strict=True)),
            "at least",
            90,
            " %",
        ),
        Requirement("largest resident set", max(peaks) / GIGABYTE, "at most", 2, " GB"),
    ]
    rows = [
        ["timm's loader, one classifier after the other", f"{medians['timm']:.1f}"],
        ["bayesrep predict, cold", f"{medians['cold']:.1f}"],
        ["bayesrep predict, warm cache", f"{medians['warm']:.1f}"],
        ["the networks alone on random tensors", f"{medians['alone']:.1f}"],
    ]
    text = columns([f"{len(CLASSIFIERS)} classifiers, {count:,} images", "seconds"], rows)
    growth = ", ".join(f"{peak / GIGABYTE:.2f}" for peak in peaks)
    remarks = (
        f"{requirement_text(requirements)}\n\nResident set in GB before the first classifier and "
        f"after each of the next {EVALUATED}: {growth}."
    )
    print(f"{text}\n\n{remarks}")
    if not arguments.quick:
        numbers = {"times": times, "peaks": peaks, "classifiers": CLASSIFIERS, "images": count}
        numbers["versions"] = {name: version(name) for name in ("torch", "timm", "pillow")}
        numbers["requirements"] = requirement_numbers(requirements)
        save("benchmark-vision", "python -m benchmarks.vision", numbers, text, remarks=remarks)
    return 0 if all(each.passed for each in requirements) else 1


if __name__ == "__main__":
    sys.exit(main())
