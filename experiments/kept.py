"""Studies whose images were kept by the very counts at hand, fitted with and without the rule.

    python -m experiments.kept [--studies 200] [--images 2000] [--classifiers 5] [--work DIR]
                               [--finished]

The simulator's scenario "kept": frequencies and curves outside the fitted family, ten answers an
image, and only images that at least seven of them selected, in both data sets. Every study is
fitted twice by the joint model (Laplace): told the rule, by whose truncation a count's likelihood
is that of a count which passes, and as if the counts were a fresh measurement. What is wanted is
the accuracy under the frequencies of the reference's images as they are, kept ones. Resumable.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import bayesrep
from bayesrep import Study
from bayesrep.errors import ConvergenceWarning
from bayesrep.report.table_format import columns, percent
from experiments.ledger import resume
from experiments.results import save

FIRST_SEED = 70_000
QUANTILES = (0.025, 0.975)
LABELS = {"told": "rule stated", "untold": "counts as if fresh"}


def one_study(key: str, images: int, classifiers: int) -> dict[str, Any]:
    """Intervals of both fits, and the truth."""
    study = bayesrep.simulate_study(
        seed=FIRST_SEED + int(key), images=images, classifiers=classifiers, scenario="kept"
    )
    truth = study.truth
    assert truth is not None
    fits = {"told": study, "untold": without_rule(study)}
    return {
        "truth": truth.adjusted_accuracy.tolist(),
        "frequency": [truth.mean_selection_frequency[role] for role in study.datasets],
        "measured": study.reference.correct.mean(axis=0).tolist(),
        **{name: _intervals(each, int(key)) for name, each in fits.items()},
    }


def without_rule(study: Study) -> Study:
    """The same data, whose selection nobody stated."""
    kept = {role: replace(data, selection=None) for role, data in study.datasets.items()}
    return replace(study, datasets=kept)


def _intervals(study: Study, seed: int) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = bayesrep.fit(study, method="laplace", seed=seed, progress=False, dependence=0.0)
    group = posterior["posterior"]
    draws = group["adjusted_accuracy"].values.reshape(-1, len(study.classifiers))
    frequency = group["mean_selection_frequency"].values.reshape(-1, len(study.datasets))
    gap = (study.reference.correct.mean(axis=0) - draws).mean(axis=1)
    return {
        "converged": bool(group.attrs["converged"]),
        "adjusted": _of(draws),
        "gap": _of(gap[:, None]),
        "frequency": _of(frequency),
    }


def _of(draws: np.ndarray) -> list[list[float]]:
    """Mean and both ends of the interval of every column."""
    return [draws.mean(axis=0).tolist(), *np.quantile(draws, QUANTILES, axis=0).tolist()]


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Coverage, width and bias of both fits, with standard errors over studies."""
    found: dict[str, Any] = {}
    truth = np.array([r["truth"] for r in results])
    gaps = (np.array([r["measured"] for r in results]) - truth).mean(axis=1)[:, None]
    wanted = {
        "adjusted": truth,
        "gap": gaps,
        "frequency": np.array([r["frequency"] for r in results]),
    }
    for name in LABELS:
        of: dict[str, Any] = {}
        for quantity, value in wanted.items():
            middle, lower, upper = np.moveaxis(np.array([r[name][quantity] for r in results]), 1, 0)
            inside = ((lower <= value) & (value <= upper)).mean(axis=1)
            error = (middle - value).mean(axis=1)
            of[quantity] = {
                "coverage": float(inside.mean()),
                "coverage_se": float(inside.std(ddof=1) / np.sqrt(len(results))),
                "width": float((upper - lower).mean()),
                "bias": float(error.mean()),
                "bias_se": float(error.std(ddof=1) / np.sqrt(len(results))),
            }
        of["converged"] = float(np.mean([r[name]["converged"] for r in results]))
        found[name] = of
    return {"studies": len(results), "fits": found}


def table(found: Mapping[str, Any]) -> str:
    """A line for each fit and quantity."""
    header = ["fit", "quantity", "covered", "s.e.", "width", "bias", "s.e.", "certified"]
    said = {
        "adjusted": "adjusted accuracy",
        "gap": "mean gap",
        "frequency": "mean frequency",
    }
    rows = [
        [
            LABELS[name],
            said[quantity],
            *(percent(of[quantity][n], 1) for n in ("coverage", "coverage_se")),
            *(percent(of[quantity][n], 2) for n in ("width", "bias", "bias_se")),
            percent(of["converged"], 0),
        ]
        for name, of in found["fits"].items()
        for quantity in said
    ]
    return columns(header, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/coverage.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.kept", description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--classifiers", type=int, default=5)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    parser.add_argument("--finished", action="store_true", help="fit nothing more")
    arguments = parser.parse_args(argv)
    size = arguments.images, arguments.classifiers
    path = arguments.work / f"kept-{size[0]}-{size[1]}.jsonl"
    keys = [str(seed) for seed in range(arguments.studies)]
    results = resume(path, keys, lambda key: one_study(key, *size), finished=arguments.finished)
    found = numbers(results)
    text = table(found)
    print(text)
    command = (
        f"python -m experiments.kept --studies {arguments.studies} --images {size[0]} "
        f"--classifiers {size[1]}"
    )
    remarks = (
        f"{found['studies']} studies of {size[0]:,} + {size[0]:,} images and {size[1]} "
        "classifiers, "
        "ten answers an image, of which at least seven selected every image that is there. Wanted "
        "is the accuracy, and the frequency, of images that were kept. Laplace draws count where "
        "their certificate was refused too ('certified'). All in percent or points; standard "
        "errors over studies."
    )
    save("kept", command, found, text, None, remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
