"""Intervals at the size of a benchmark, where annotators' answers correlate and nobody says so.

    python -m experiments.dependence [--studies 12] [--images 2000] [--classifiers 136]
                                     [--work DIR] [--finished]

Studies of two simulators, `bayesrep.simulate_study` and that of `experiments.odd_worlds`, which
shares nothing with the model: 5, 10, 20 and 36 annotators an image, all of one grid, with the
intraclass correlation rho of their answers 0, 0.05, 0.1, or drawn from a half-normal of scale 0.03.
Fitted as by default, and where rho is 0 as if that were known, too; EM + spline stands beside.
Resumable: finished studies are kept in DIR, and `--finished` makes the page of those alone.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import bayesrep
from bayesrep import Study
from bayesrep.errors import ConvergenceWarning, EstimateWarning
from bayesrep.report.table_format import columns, percent
from bayesrep.types import Floats
from experiments import odd_worlds
from experiments.crowds import ESTIMATOR, bootstrap_estimates, held
from experiments.ledger import resume
from experiments.results import save

SIMULATORS = ("simulate", "odd")
CORRELATIONS = ("0", "0.05", "0.1", "drawn")
ANNOTATORS = ("5", "10", "20", "36")
PRIOR_SCALE = 0.03  # of correlations that are drawn
REPLICATES = 50
METHODS = {"joint": "joint", "told": "joint, rho = 0", "spline": "EM + spline"}


def simulated(key: str, images: int, classifiers: int) -> tuple[Study, np.ndarray, float]:
    """A study, its true adjusted accuracies and the correlation of its answers."""
    simulator, asked, annotators, number = key.split("/")
    seed = 50_000 + int(number)
    drawn = abs(np.random.default_rng(seed).normal(0, PRIOR_SCALE))
    rho = float(drawn if asked == "drawn" else asked)
    if simulator == "odd":
        study, truth, _ = odd_worlds.simulated(seed, images, classifiers, annotators, rho)
        return study, truth, rho
    study = bayesrep.simulate_study(
        seed=seed,
        images=images,
        classifiers=classifiers,
        annotators=int(annotators),
        scenario="crowded-grid",
        dependence=rho,
    )
    assert study.truth is not None
    return study, study.truth.adjusted_accuracy, rho


def one_study(key: str, images: int, classifiers: int) -> dict[str, Any]:
    """Every method's intervals against the truth, and the correlation's posterior."""
    study, truth, rho = simulated(key, images, classifiers)
    seed = int(key.rsplit("/", 1)[1])
    told = {"told": 0.0} if rho == 0 else {}
    found: dict[str, Any] = {"rho": rho}
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, EstimateWarning):
            warnings.simplefilter("ignore", category)
        for name, dependence in {"joint": None, **told}.items():
            fit = bayesrep.fit(study, seed=seed, progress=False, dependence=dependence)
            draws = fit["posterior"]["adjusted_accuracy"].values.reshape(-1, classifiers)
            found[name] = of_draws(draws.mean(axis=0), draws, truth)
            if name == "joint":
                found["posterior_rho"] = float(fit["posterior"]["dependence"].mean())
                found["usable"] = bool(fit["posterior"].attrs["converged"])
        values, _ = bootstrap_estimates(study, ESTIMATOR, seed, REPLICATES)
        found["spline"] = of_draws(values[0], values[1:], truth)
    return found


def of_draws(estimate: Floats, draws: np.ndarray, truth: Floats) -> dict[str, float]:
    """What intervals of draws or replicates hold, their widths, and the mean's error."""
    return {**held(draws, truth), "error": float(estimate.mean() - truth.mean())}


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over studies, by simulator, correlation, annotators and method."""
    rows: dict[str, Any] = {}
    for cell in map("/".join, product(SIMULATORS, CORRELATIONS, ANNOTATORS)):
        of = [result for result in results if result["key"].startswith(f"{cell}/")]
        if not of:
            continue
        rows[cell] = {
            "studies": len(of),
            "usable": sum(result["usable"] for result in of),
            "posterior_rho": float(np.mean([result["posterior_rho"] for result in of])),
        }
        for method in METHODS:
            if method in of[0]:
                each = {name: [result[method][name] for result in of] for name in of[0][method]}
                rows[cell][method] = {name: float(np.mean(value)) for name, value in each.items()}
        if "told" in of[0]:
            wider = [
                result["joint"]["single_width"] / result["told"]["single_width"] for result in of
            ]
            rows[cell]["wider"] = [float(np.mean(wider)), max(wider)]
    return {"rows": rows}


def table(found: Mapping[str, Any]) -> str:
    """A line for each simulator, correlation, number of annotators and method."""
    header = ["simulator", "rho", "annotators", "E rho", "method", "single", "width"]
    header += ["mean gap", "width", "error", "wider", "at most"]
    lines = []
    for cell, facts in found["rows"].items():
        for method, label in METHODS.items():
            if method not in facts:
                continue
            of = facts[method]
            wider = [f"{ratio:.2f}" for ratio in facts.get("wider", ())]
            lines.append(
                [
                    *cell.split("/"),
                    f"{facts['posterior_rho']:.3f}" if method == "joint" else "",
                    label,
                    percent(of["single"], 1),
                    percent(of["single_width"], 2),
                    f"{of['mean'] * facts['studies']:.0f} of {facts['studies']}",
                    percent(of["mean_width"], 2),
                    percent(of["error"], 2),
                    *(wider if method == "joint" and wider else ["", ""]),
                ]
            )
    return columns(header, lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/worlds.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.dependence", description=__doc__)
    parser.add_argument("--studies", type=int, default=12)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--classifiers", type=int, default=136)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    parser.add_argument("--finished", action="store_true", help="take the studies that are there")
    arguments = parser.parse_args(argv)
    size = arguments.images, arguments.classifiers
    cells = [*map("/".join, product(SIMULATORS, CORRELATIONS, ANNOTATORS))]
    results = resume(
        arguments.work / f"dependence-{size[0]}-{size[1]}.jsonl",
        [f"{cell}/{number}" for number in range(arguments.studies) for cell in cells],
        lambda key: one_study(key, *size),
        finished=arguments.finished,
    )
    found = numbers(results)
    text = table(found)
    print(text)
    remarks = (
        f"{size[0]:,} + {size[0]:,} images and {size[1]} classifiers a study. 'rho': drawn from a "
        f"half-normal of scale {PRIOR_SCALE}, or as stated; 'E rho': its posterior mean, over "
        "studies. 'single': true adjusted accuracies inside 95 % intervals of single classifiers, "
        "in percent; 'mean gap': studies whose interval of the mean holds; widths, and the error "
        "of the mean's estimate over studies, in points. 'wider', 'at most': single intervals' "
        "width over that of a fit that is told rho = 0, mean and largest of a study. All "
        "classifiers of a study miss together. EM + spline (two components, binomial loss): "
        f"{REPLICATES} bootstrap replicates."
    )
    command = (
        f"python -m experiments.dependence --studies {arguments.studies} --images {size[0]} "
        f"--classifiers {size[1]}"
    )
    save("dependence", command, found, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
