"""What it takes to run many classifiers: operations, weights, pixels, and hours on this machine."""

import math
import os
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayesrep.machine import cores
from bayesrep.progress import progress_bar
from bayesrep.vision.architectures import Architecture, describe
from bayesrep.vision.devices import choose_device
from bayesrep.vision.images import list_images
from bayesrep.vision.networks import Network
from bayesrep.vision.pixels import Preprocessing, read_block
from bayesrep.vision.run_local import in_blocks, through_images
from bayesrep.vision.timing import Crew, Spent
from bayesrep.vision.torch_loading import load_timm
from experiments.photographs import make_images

# A machine's speed depends on what it multiplies: one network for each kind.
KINDS = {
    "transformer": "vit_small_patch16_224",
    "depthwise": "efficientnet_b0",
    "dense": "resnet50",
}
ANSWERS = 94  # bytes of an image's answer, as `many_models --rehearse` measures them


@dataclass(frozen=True)
class Cost:
    """What one classifier takes: floating-point operations an image, and its parameters."""

    architecture: Architecture
    operations: int
    parameters: int

    @property
    def kind(self) -> str:
        """Whose speed is likely its own."""
        name = self.architecture.full_name
        if name.startswith(("vit_", "deit_", "visformer")):
            return "transformer"
        return "depthwise" if "efficientnet" in name else "dense"


def costs(names: Sequence[str]) -> list[Cost]:
    """Build each network without memory for its weights, and count."""
    with progress_bar(len(names), "classifier", show=True) as bar:
        bar.stage("counting operations")
        found: list[Cost] = []
        for name in names:
            found.append(_cost(describe(name)))
            bar.advance(1)
    return found


def _cost(architecture: Architecture) -> Cost:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")
        module = load_timm().create_model(architecture.full_name).eval()
        image = torch.empty(1, 3, *architecture.preprocessing.size)
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        module(image)
    parameters = sum(each.numel() for each in module.parameters())
    return Cost(architecture, int(counter.get_total_flops()), parameters)


@dataclass(frozen=True)
class Machine:
    """How fast a machine reads and computes.

    Attributes
    ----------
    device
        Where networks run.
    crew
        How many read and compute.
    read
        Seconds a thread takes to read and decode an image.
    preprocess
        Seconds a thread takes for each kind of preprocessing of an image.
    rates
        Operations a second of one device (on a CPU: core), by kind of network.
    """

    device: str
    crew: Crew
    read: float
    preprocess: dict[Preprocessing, float]
    rates: dict[str, float]


def measured(preprocessings: Sequence[Preprocessing], device: str, images: int = 96) -> Machine:
    """Measure this machine on images of ImageNet's typical size and networks of each kind.

    On a CPU processor time is counted: as if the machine had nothing else to do.
    """
    target, workers = choose_device(device), cores()
    alone = target.name == "cpu"
    with tempfile.TemporaryDirectory() as name:
        make_images(Path(name), images)
        listed = list_images(name)
        rows = np.arange(len(listed))
        spent = {key: read_block(listed, rows[:24], [key], {}).spent for key in preprocessings}
        rates: dict[str, float] = {}
        for kind, named in KINDS.items():
            network, cost = _random(named, target.name)
            blocks = in_blocks(rows)
            took, share = Spent(), 1.0
            for _ in range(2):  # the first time it also warms up
                begin = time.process_time()
                found = list(through_images(listed, blocks, [network], {}, target, workers))
                took = sum((each.spent for each in found), Spent())
                busy = took.read + took.decode + took.preprocess + took.compute
                share = min(1.0, (time.process_time() - begin) / busy) if alone else 1.0
            rates[kind] = cost.operations * images / (share * took.compute)
    read = sum(each.read + each.decode for each in spent.values()) / (24 * len(spent))
    return Machine(
        target.name,
        Crew(workers, workers if alone else 1, one_after_other=alone),
        read,
        {key: each.preprocess / 24 for key, each in spent.items()},
        rates,
    )


def _random(name: str, device: str) -> tuple[Network, Cost]:
    import torch

    cost = _cost(describe(name))
    module = load_timm().create_model(name).eval()
    module = module.to(device, memory_format=torch.channels_last)
    return Network(cost.architecture, module, 0), cost


def in_same_pixels(architectures: Sequence[Architecture]) -> list[list[Architecture]]:
    """Group classifiers that see the same pixels, small images first."""
    groups: defaultdict[Preprocessing, list[Architecture]] = defaultdict(list)
    for each in architectures:
        groups[each.preprocessing].append(each)
    return [groups[key] for key in sorted(groups, key=lambda p: (math.prod(p.size), p))]


def estimate(found: Sequence[Cost], images: int, machine: Machine) -> dict[str, Any]:
    """Hours and bytes of going through all images with all classifiers, a group at a time."""
    by_name = {cost.architecture.name: cost for cost in found}
    reading, computing, total, largest = 0.0, 0.0, 0.0, 0
    for group in in_same_pixels([cost.architecture for cost in found]):
        key = group[0].preprocessing
        read = images * (machine.read + machine.preprocess[key]) / machine.crew.readers
        compute = sum(
            images * by_name[each.name].operations / machine.rates[by_name[each.name].kind]
            for each in group
        )
        compute /= machine.crew.devices
        reading, computing = reading + read, computing + compute
        total += read + compute if machine.crew.one_after_other else max(read, compute)
        largest = max(largest, images * 3 * math.prod(key.size))
    return {
        "classifiers": len(found),
        "images": images,
        "operations": images * sum(cost.operations for cost in found),
        "reading_hours": reading / 3600,
        "computing_hours": computing / 3600,
        "hours": total / 3600,
        "weights_bytes": 4 * sum(cost.parameters for cost in found),
        "largest_weights_bytes": 4 * max(cost.parameters for cost in found),
        "pixels_bytes": largest,
        "answers_bytes": ANSWERS * images * len(found),
        "cores": os.cpu_count(),
        "device": machine.device,
        "rates": machine.rates,
    }
