"""Weights of timm's small networks, images of noise, and an evaluation that is killed."""

import signal
import subprocess
import sys
import textwrap
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

from bayesrep.errors import PredictionWarning
from bayesrep.studies.imagenet import synsets
from bayesrep.vision.forward import start_evaluation
from bayesrep.vision.torch_loading import load_timm

timm = load_timm()
import torch
from safetensors.torch import save_file


@contextmanager
def quiet():
    """Random networks are at chance, which is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PredictionWarning)
        yield


def evaluate(pixels, groups, device):
    """The answers of every network on some images, or the reason why it has none."""
    return start_evaluation(pixels, groups, device)()[0]


def save_weights(root, names):
    """Save random weights of classifiers, each with the seed of its place, into a folder."""
    root.mkdir(exist_ok=True)
    for seed, name in enumerate(names):
        torch.manual_seed(seed)
        save_file(timm.create_model(name).state_dict(), root / f"{name}.safetensors")


def paint(file, number, size=(40, 30)):
    """Save an image of so many pixels, another one for each number."""
    file.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(number).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC).save(file)


def fill_folder(root, names, images=60):
    """Fill a folder with images of three classes and the weights of classifiers."""
    for number in range(images):
        wnid = synsets()[300 * (number % 3)]
        paint(root / "images" / wnid / f"{number}.JPEG", number, (240, 180))
    save_weights(root / "weights", names)


def kill_evaluation(*arguments, parts, pause, **options):
    """Kill a process that evaluates once it has kept enough, and return what it has kept.

    Parameters
    ----------
    *arguments, **options
        What `bayesrep.predict` is called with: images, data set, classifiers, study.
    parts
        How many parts of its results it has written by then.
    pause
        Seconds that it waits after each block of images.
    """
    plain = [str(each) if isinstance(each, Path) else each for each in arguments]
    options = {name: str(each) for name, each in options.items()}
    script = f"""
        import time, warnings
        warnings.simplefilter("ignore")
        import bayesrep
        from bayesrep.vision import run, run_local
        run.SAVE_SECONDS = 0.0
        through = run_local.through_images
        def slowly(*arguments):
            for found in through(*arguments):
                yield found
                time.sleep({pause})
        run_local.through_images = slowly
        bayesrep.predict(*{plain!r}, **{options!r}, progress=False)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)])
    _, dataset, _, study = arguments
    place = study / "predictions" / dataset / ".parts"
    deadline = time.monotonic() + 240
    while len(list(place.glob("*/*.parquet"))) < parts and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return place
