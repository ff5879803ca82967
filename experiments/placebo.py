"""The placebo replication: real annotators, real classifiers, a known answer of zero.

CIFAR-10's test images with the human answers of CIFAR-10H are split at random into a reference
and a candidate half; the replication is drawn from the candidates by matching noisy selection
frequencies, as ImageNet-v2 was. Halves are random and both steps look at annotators only, so
every classifier behaves alike on both given s: the true bias-corrected gap is zero. What remains
of it after adjustment is the estimator's bias.

    python -m experiments.placebo --cifar10h DIR --cifar10.1 DIR [--seeds 8]

``--cifar10h`` holds cifar10h-counts.npy and the test labels; ``--cifar10.1`` the repository with
model_predictions/original_predictions.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bayesrep
from bayesrep.report.methods import label_of
from bayesrep.report.table_format import columns, percent
from bayesrep.sources.cifar10h import read_cifar10h
from bayesrep.sources.placebo import placebo_replication
from experiments.results import save
from experiments.style import Color, panels

POINTS = ("raw", "naive", "jackknife", "em-spline")
METHODS = (*POINTS, "joint")


def one_seed(human: Any, seed: int) -> dict[str, Any]:
    """Mean gap of each method and the share of reference accuracies inside the 95 % intervals."""
    study = placebo_replication(
        human.counts, human.labels, human.correct, human.classifiers, seed=seed
    )
    points = bayesrep.estimate(study, POINTS, seed=seed)
    posterior = bayesrep.fit(study, seed=seed, progress=False)
    rows = bayesrep.summarize(study, posterior, allow_unconverged=True, all_columns=True)
    inside = rows["reference_accuracy"].is_between(rows["lower"], rows["upper"])
    gaps = {
        name: float(points.filter(points["method"] == name)["bias_corrected_gap"].mean())
        for name in POINTS
    }
    return {
        "seed": seed,
        **gaps,
        "joint": float(rows["bias_corrected_gap"].mean()),
        "inside": float(inside.mean()),
        "width": float((rows["upper"] - rows["lower"]).mean()),
        "converged": bool(posterior.posterior.attrs["converged"]),
        "verdict": posterior.posterior.attrs["verdict"],
    }


def report(results: Sequence[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The printed table and the numbers behind it."""
    summary: dict[str, Any] = {}
    for name in METHODS:
        gaps = np.array([result[name] for result in results])
        error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else float("nan")
        summary[name] = {"mean_gap": float(gaps.mean()), "standard_error": float(error)}
    summary["inside"] = float(np.mean([result["inside"] for result in results]))
    rows = [
        [
            str(r["seed"]),
            *(percent(r[name], 2) for name in METHODS),
            percent(r["inside"], 0),
            "yes" if r["converged"] else "no",
        ]
        for r in results
    ]
    rows.append(
        ["mean", *(percent(summary[n]["mean_gap"], 2) for n in METHODS), percent(summary["inside"])]
        + [""]
    )
    rows.append(["s.e.", *(percent(summary[n]["standard_error"], 2) for n in METHODS), "", ""])
    header = ["seed", *(f"{name} gap" for name in METHODS), "inside 95 %", "converged"]
    return columns(header, rows), summary


def draw(results: Sequence[dict[str, Any]], summary: dict[str, Any]) -> Any:
    """Each split's mean gap by every method, and their mean with two standard errors."""
    figure, (axes,) = panels(1)
    figure.set_size_inches(7.2, 3.2)
    axes.axvline(0, color=Color.INK, lw=1)
    for height, name in enumerate(METHODS):
        gaps = [100 * result[name] for result in results]
        mean, error = (100 * summary[name][key] for key in ("mean_gap", "standard_error"))
        axes.plot(gaps, [height] * len(gaps), "o", color=Color.BLUE, alpha=0.35, ms=6)
        axes.errorbar(mean, height, xerr=2 * error, fmt="o", color=Color.BLUE, ms=8, lw=2)
    axes.set_yticks(range(len(METHODS)), [label_of(name) for name in METHODS])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("mean gap that is left (points); true: 0")
    return figure


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/placebo.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.placebo", description=__doc__)
    parser.add_argument("--cifar10h", type=Path, required=True, metavar="DIR")
    parser.add_argument("--cifar10.1", dest="cifar101", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seeds", type=int, default=8)
    arguments = parser.parse_args(argv)
    human = read_cifar10h(
        arguments.cifar10h / "cifar10h-counts.npy",
        arguments.cifar10h / "cifar10_test_set_original_labels.npy",
        arguments.cifar101 / "model_predictions" / "original_predictions",
    )
    results = []
    for seed in range(arguments.seeds):
        results.append(one_seed(human, seed))
        print(f"seed {seed}: {results[-1]}", file=sys.stderr)
    text, summary = report(results)
    print(text)
    command = f"python -m experiments.placebo --cifar10h DIR --cifar10.1 DIR --seeds {len(results)}"
    numbers = {"summary": summary, "seeds": results}
    save("placebo", command, numbers, text, draw(results, summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
