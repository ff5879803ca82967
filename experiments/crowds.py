"""Intervals that know workers, and intervals that do not: coverage where workers differ.

    python -m experiments.crowds [--studies 30] [--images 2000] [--classifiers 10] [--work DIR]

Simulated studies whose workers differ (scenarios two-crowds, one-crowd, two-panels and, where every
answer is another worker's, workers), fitted by the joint model's Laplace approximation: 95 %
intervals of single classifiers and of their mean, with the answers by worker and without.
Resumable: finished studies are kept in DIR.
"""

import argparse
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bayesrep
from bayesrep.errors import ConvergenceWarning
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.text import columns, percent
from experiments.ledger import resume
from experiments.results import save

SCENARIOS = ("two-crowds", "one-crowd", "two-panels", "workers")
LABELS = {"known": "workers known", "unknown": "counts alone"}
QUANTILES = (0.025, 0.975)


def one_study(key: str, images: int, classifiers: int) -> dict[str, Any]:
    """What both kinds of intervals hold, and their widths."""
    scenario, number = key.rsplit("/", 1)
    seed = int(number)
    study = bayesrep.simulate_study(
        seed=500 + seed, images=images, classifiers=classifiers, scenario=scenario
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = bayesrep.fit(study, method="laplace", seed=seed, progress=False)
    fitted, truth = Fitted(study, posterior), study.truth
    assert truth is not None
    draws = {"known": fitted.together, "unknown": fitted.together_of_one_crowd}
    return {
        "error": float(fitted.adjusted.mean() - truth.adjusted_accuracy.mean()),
        **{
            name: held(each.reshape(-1, classifiers), truth.adjusted_accuracy)
            for name, each in draws.items()
        },
    }


def held(draws: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Of draws [S, C] by classifier and of their mean: the share held, and the mean width."""
    lower, upper = np.quantile(draws, QUANTILES, axis=0)
    low, high = np.quantile(draws.mean(axis=1), QUANTILES)
    return {
        "single": float(((lower <= truth) & (truth <= upper)).mean()),
        "single_width": float((upper - lower).mean()),
        "mean": float(low <= truth.mean() <= high),
        "mean_width": float(high - low),
    }


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over studies with standard errors, by scenario."""
    found: dict[str, Any] = {}
    for scenario in SCENARIOS:
        of = [r for r in results if r["key"].startswith(f"{scenario}/")]
        errors = np.array([r["error"] for r in of])
        found[scenario] = {"studies": len(of), "scatter": float(errors.std(ddof=1))}
        found[scenario] |= averaged(of)
    return {"scenarios": found}


def averaged(
    results: Sequence[Mapping[str, Any]], kinds: Iterable[str] = LABELS
) -> dict[str, float]:
    """What each kind of intervals held on average, and its standard errors."""
    facts: dict[str, float] = {}
    for name in kinds:
        for part in ("single", "single_width", "mean", "mean_width"):
            values = np.array([result[name][part] for result in results])
            facts[f"{name}_{part}"] = float(values.mean())
            facts[f"{name}_{part}_se"] = float(values.std(ddof=1) / np.sqrt(len(values)))
    return facts


def table(found: Mapping[str, Any]) -> str:
    """One line for each scenario and kind of interval."""
    header = ["scenario", "intervals", "single", "s.e.", "width", "mean", "s.e.", "width", "sd"]
    return columns(
        header,
        [
            [
                scenario,
                label,
                *(percent(facts[f"{name}_single{part}"], 1) for part in ("", "_se")),
                percent(facts[f"{name}_single_width"], 2),
                *(percent(facts[f"{name}_mean{part}"], 1) for part in ("", "_se")),
                percent(facts[f"{name}_mean_width"], 2),
                percent(facts["scatter"], 2),
            ]
            for scenario, facts in found["scenarios"].items()
            for name, label in LABELS.items()
        ],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write docs/results/crowds.{md,json}."""
    parser = argparse.ArgumentParser(prog="python -m experiments.crowds", description=__doc__)
    parser.add_argument("--studies", type=int, default=30)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--classifiers", type=int, default=10)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    if arguments.studies < 2:
        parser.error("--studies must be 2 at least")
    size = arguments.images, arguments.classifiers
    results = resume(
        arguments.work / f"crowds-{size[0]}-{size[1]}.jsonl",
        [f"{scenario}/{seed}" for seed in range(arguments.studies) for scenario in SCENARIOS],
        lambda key: one_study(key, *size),
    )
    found = numbers(results)
    text = table(found)
    print(text)
    command = (
        f"python -m experiments.crowds --studies {arguments.studies} --images {size[0]} "
        f"--classifiers {size[1]}"
    )
    remarks = (
        f"{arguments.studies} studies a scenario, {size[0]} + {size[0]} images and {size[1]} "
        "classifiers, 10 answers an image, the joint model by Laplace (draws count where the "
        "certificate was refused). 'single': true values inside 95 % intervals of single "
        "classifiers; 'mean': of their mean; 'sd': of the mean's estimate around the truth, over "
        "studies. All in percent or points; standard errors are over studies."
    )
    save("crowds", command, found, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
