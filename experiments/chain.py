"""The whole chain, from image files to adjusted accuracies, with a known answer of zero.

Images of eight classes are drawn, each with a clarity that is its true selection frequency s:
stripes in the class's colours and direction, mixed with those of another class. They are saved in
several formats, modes and sizes. A reference is filtered from one pool of images, a replication is
matched to it on five annotators' answers from another pool of the same kind, and both are annotated
afresh by twenty annotators. Three small networks, their last layer fitted to other such images, are
run over both folders by `bayesrep.predict`. Classifiers see clarity alone, so that given s they do
as well on both: the true bias-corrected gap is zero, and whatever drop is measured comes from the
matching.

    python -m experiments.chain [--images 2000] [--seed 0]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import bayesrep
from bayesrep.report.estimates_text import populations_text
from bayesrep.report.study_text import describe_study
from bayesrep.report.table_format import columns, percent
from bayesrep.sources import tables
from bayesrep.studies.imagenet import synsets
from bayesrep.vision.pixels import Preprocessing
from bayesrep.vision.torch_loading import load_timm
from experiments.results import save

CLASSES = tuple(range(60, 1000, 125))  # eight of the 1,000
CLASSIFIERS = ("test_vit", "test_resnet", "test_byobnet")
FILTER, MATCHED, ANNOTATORS = 6, 5, 20
POINTS = ("raw", "naive", "em-spline")


def draw_image(rng: np.random.Generator, kind: int, clarity: float) -> Any:
    """An RGB image of one of the eight classes, of random size."""
    from PIL import Image

    width, height = rng.integers(90, 220, 2)
    y, x = np.mgrid[0:height, 0:width]
    distractor = (kind + rng.integers(1, len(CLASSES))) % len(CLASSES)
    layers: list[NDArray[np.float64]] = []
    for which in (kind, distractor):
        angle, period = np.pi * which / len(CLASSES), 9.0 + 3 * (which % 3)
        along, phase = x * np.cos(angle) + y * np.sin(angle), rng.uniform(0, 2 * np.pi)
        wave = np.sin(2 * np.pi * along / period + phase)
        hue = 2 * np.pi * which / len(CLASSES) + np.array([0.0, 2.1, 4.2])
        layers.append(wave[..., None] * 70 * np.cos(hue) + 40 * np.sin(hue))
    # Clear images show the class, unclear ones the other: half way they are even.
    share = clarity + rng.normal(0, 0.15)
    noise = rng.normal(0, 25, (height, width, 3))
    pixels = 128 + share * layers[0] + (1 - share) * layers[1] + noise
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def save_image(rng: np.random.Generator, image: Any, stem: Path) -> Path:
    """Write an image as one of the kinds that data sets hold."""
    mode, suffix = [("RGB", ".jpg"), ("RGB", ".JPEG"), ("CMYK", ".jpg"), ("P", ".png")][
        rng.choice(4, p=[0.6, 0.2, 0.1, 0.1])
    ]
    path = stem.with_suffix(suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.convert(mode).save(path)
    return path


def matched_pools(
    rng: np.random.Generator, images: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """True selection frequencies of a reference and of a replication matched to it."""
    pools = rng.beta(2.0, 1.2, (2, 60 * images))
    passed = rng.binomial(FILTER, pools[0]) == FILTER
    reference = pools[0][passed][:images]
    wanted = np.bincount(rng.binomial(MATCHED, reference), minlength=MATCHED + 1)
    measured = rng.binomial(MATCHED, pools[1])
    chosen = [pools[1][measured == k][:count] for k, count in enumerate(wanted)]
    replication = np.concatenate(chosen)
    assert len(reference) == len(replication) == images, "the pools are too small"
    return reference, replication


def make_data(root: Path, images: int, seed: int) -> Path:
    """Draw both data sets and annotate them; return the table of counts."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for dataset, clarities in zip(("v1", "v2"), matched_pools(rng, images), strict=True):
        for number, clarity in enumerate(clarities):
            kind = int(rng.integers(len(CLASSES)))
            stem = root / dataset / synsets()[CLASSES[kind]] / f"{dataset}-{number:05d}"
            path = save_image(rng, draw_image(rng, kind, float(clarity)), stem)
            selected = int(rng.binomial(ANNOTATORS, clarity))
            rows.append({"dataset": dataset, "image": path.name, "selected": selected})
    table = pl.DataFrame(rows).with_columns(pl.lit(ANNOTATORS).alias("shown"))
    table.write_csv(root / "counts.csv")
    return root / "counts.csv"


def train(root: Path, images: int, seed: int) -> None:
    """Fit the last layers of random networks to other images, by ridge regression."""
    import torch
    from safetensors.torch import save_file

    timm, rng = load_timm(), np.random.default_rng(seed + 1)
    kinds = rng.integers(len(CLASSES), size=images)
    drawn = [draw_image(rng, int(kind), float(rng.uniform(0.4, 1))) for kind in kinds]
    root.mkdir()
    for number, name in enumerate(CLASSIFIERS):
        torch.manual_seed(seed + number)
        module = timm.create_model(name)
        config = timm.data.resolve_data_config(model=module, use_test_size=True)
        transform = timm.data.create_transform(**config)
        assert Preprocessing.from_config(config).size[0] < 200, "small networks, small images"
        batches = torch.stack([transform(image) for image in drawn]).split(64)
        for part in module.modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                part.momentum = None  # the average over the batches seen
        with torch.no_grad():
            for batch in batches[:4]:
                module.train()(batch)
            module.eval()
            features = [
                module.forward_head(module.forward_features(batch), pre_logits=True)
                for batch in batches
            ]
            x = torch.cat(features).double()
            x = torch.cat([x, torch.ones(len(x), 1)], 1)
            targets = torch.eye(len(CLASSES), dtype=torch.float64)[kinds]
            strength = 1e-3 * x.square().mean() * torch.eye(x.shape[1], dtype=torch.float64)
            solved = torch.linalg.solve(x.T @ x / len(x) + strength, x.T @ targets / len(x))
            head = module.get_classifier()
            head.weight.zero_()
            head.bias.fill_(-100)
            head.weight[list(CLASSES)] = 10 * solved[:-1].T.float()
            head.bias[list(CLASSES)] = 10 * solved[-1].float()
        save_file(module.state_dict(), root / f"{name}.safetensors")


def run(
    root: Path, images: int, seed: int, *, method: str = "nuts", progress: bool = False
) -> dict[str, Any]:
    """Make the data, predict, fit (by a method of `bayesrep.fit`), summarize; return it all."""
    counts = make_data(root, images, seed)
    train(root / "weights", min(images, 1000), seed)
    contents = tables.read([counts], reference="v1", replication="v2", name="chain")
    contents.write(root / "study")
    for dataset in ("v1", "v2"):
        report = bayesrep.predict(
            root / dataset,
            dataset,
            CLASSIFIERS,
            root / "study",
            among="all",
            weights=root / "weights",
            progress=progress,
        )
        assert not len(report.left_out), "every classifier has predictions"
    study = bayesrep.read_study(root / "study")
    posterior = bayesrep.fit(study, method=method, seed=seed, progress=progress, dependence=0.0)
    rows = bayesrep.summarize(study, posterior, allow_unconverged=True, all_columns=True)
    points = bayesrep.estimate(study, POINTS, seed=seed)
    gaps = {
        method: float(table["bias_corrected_gap"].mean())
        for (method,), table in points.group_by("method", maintain_order=True)
    }
    divided = bayesrep.summarize_gaps(study, posterior, allow_unconverged=True)
    return {
        "study": describe_study(study),
        "gaps": {**gaps, "joint": float(rows["bias_corrected_gap"].mean())},
        "classifiers": rows.to_dicts(),
        "populations": populations_text(divided),
        "verdict": posterior.posterior.attrs["verdict"],
    }


def text_of(found: dict[str, Any]) -> str:
    """The printed tables."""
    rows = [
        [
            row["classifier"],
            percent(row["reference_accuracy"]),
            percent(row["replication_accuracy"]),
            percent(row["adjusted_accuracy"]),
            f"{percent(row['lower'])} to {percent(row['upper'])}",
        ]
        for row in found["classifiers"]
    ]
    header = ["classifier", "reference", "replication", "adjusted", "95 % interval"]
    gaps = [[method, percent(gap, 2)] for method, gap in found["gaps"].items()]
    gaps.append(["truth", "0.00"])
    return (
        f"{found['study']}\n\n{columns(header, rows)}\n\n"
        f"{columns(['method', 'mean gap left'], gaps)}\n\n{found['populations']}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/placebo.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=2000, help="in each data set")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        found = run(Path(name), options.images, options.seed, progress=True)
    text = text_of(found)
    print(text)
    remarks = (
        "Classifiers do as well on both data sets given s, so the true gap is zero; what a good "
        "method leaves of it is the noise of two samples of images, which the interval of the last "
        f"line counts. {found['verdict']}"
    )
    command = f"python -m experiments.chain --images {options.images} --seed {options.seed}"
    save("chain", command, found, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
