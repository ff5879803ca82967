"""What `bayesrep.predict(compile=True)` wins on a CPU, and what it costs.

    python -m benchmarks.compiling [--quick]

Networks with random weights answer batches as `predict` gives them to a core, as they are and
compiled. Times of batches are processor time of one thread, the least of several; compiling is by
the clock.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from bayesrep.report.table_format import columns
from bayesrep.vision.architectures import describe
from bayesrep.vision.compiling import check_compiler, compile_networks, forget_compiled
from bayesrep.vision.devices import CPU_BATCH, Device
from bayesrep.vision.forward import in_groups, start_evaluation
from bayesrep.vision.networks import Network
from bayesrep.vision.run_local import single_threaded
from bayesrep.vision.torch_loading import load_timm
from benchmarks._requirements import say

CLASSIFIERS = [
    "efficientnet_b0",
    "convnext_atto",
    "resnet50",
    "mobilenetv3_small_100",
    "vit_tiny_patch16_224",
]
DEVICE = Device("cpu", "float32", CPU_BATCH, compiles=True)
CORES = 2  # of the last column


def least(task: Callable[[], Any], times: int) -> float:
    """Processor seconds of a task, the least of several after one."""
    task()
    found: list[float] = []
    for _ in range(times):
        begin = time.process_time()
        task()
        found.append(time.process_time() - begin)
    return min(found)


def measure(name: str, times: int) -> dict[str, Any]:
    """One network, as it is and compiled."""
    import torch

    torch.manual_seed(0)
    module = load_timm().create_model(name).eval().to(memory_format=torch.channels_last)
    architecture = describe(name)
    network = Network(architecture, module, 0)
    key = architecture.preprocessing
    pixels = {key: torch.randint(0, 255, (CPU_BATCH, *key.size, 3), dtype=torch.uint8)}
    groups = in_groups([network])
    plain = least(lambda: start_evaluation(pixels, groups, DEVICE)(), times)
    begin = time.perf_counter()
    why = compile_networks(groups, [pixels], DEVICE)[name]
    took = time.perf_counter() - begin
    compiled = least(lambda: start_evaluation(pixels, groups, DEVICE)(), times)
    forget_compiled()
    saved = (plain - compiled) / CPU_BATCH / CORES
    return {
        "classifier": name,
        "size": key.size[0],
        "plain": plain,
        "compiled": compiled,
        "seconds_compiling": took,
        "why_not": why,
        "pays_from": took / saved if saved > 0 and not why else None,
    }


def main() -> int:
    """Run the benchmark and write its part of docs/results/speed.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small network, no page")
    quick = parser.parse_args().quick
    check_compiler(DEVICE)
    found: list[dict[str, Any]] = []
    with single_threaded():
        for name in ["test_vit"] if quick else CLASSIFIERS:
            say(name)
            found.append(measure(name, 1 if quick else 3))
    from experiments.results import save  # brings JAX

    rows = [
        [
            each["classifier"],
            str(each["size"]),
            f"{each['plain']:.3f}",
            f"{each['compiled']:.3f}",
            f"{each['plain'] / each['compiled']:.2f}",
            f"{each['seconds_compiling']:.0f}",
            "never" if each["pays_from"] is None else f"{each['pays_from']:,.0f}",
        ]
        for each in found
    ]
    header = ["classifier", "pixels", "s a batch", "compiled", "times as fast", "s to compile"]
    text = columns([*header, "pays from images"], rows)
    print(text)
    if not quick:
        remarks = (
            f"Batches of {CPU_BATCH} images, float32, random weights; processor time of one core. "
            "Compiling is by the clock, the answers of one batch looked at included, and slower "
            "the more the machine has to do. The last column is for two cores, of which one "
            "compiles while the other waits."
        )
        numbers = {"classifiers": found, "cores": os.cpu_count()}
        numbers["versions"] = {name: version(name) for name in ("torch", "timm")}
        save(
            "benchmark-compiling", "python -m benchmarks.compiling", numbers, text, remarks=remarks
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
