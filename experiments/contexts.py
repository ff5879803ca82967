"""What some images in two grids tell of the correlation of annotators' answers.

    python -m experiments.contexts [--studies 6] [--images 2000] [--twice 200] [--work DIR]
                                   [--finished]

Studies of a simulator that shares nothing with the model: logit-normal selection frequencies,
logistic curves, ten classifiers and ten answers an image, of one grid with the intraclass
correlation rho; of some images five are of one grid and five of another. Fitted by Laplace and as
by default, with the grids known and without; EM + spline, which knows no grids, stands beside.
Resumable: finished studies are kept in DIR.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import bayesrep
from bayesrep import Study, WorkerAnswers
from bayesrep.errors import ConvergenceWarning, EstimateWarning
from bayesrep.report.table_format import columns, percent
from experiments.crowds import ESTIMATOR, bootstrap_estimates, held
from experiments.ledger import resume
from experiments.results import save
from experiments.studies import without_workers

CORRELATIONS = (0.0, 0.05, 0.1)
LOGITS, SPREAD = {"reference": 1.6, "replication": 1.2}, 1.2
ANSWERS, CLASSIFIERS = 10, 10
RHO_FACTS = ("rho", "rho_sd", "rho_error")
KINDS = {"known": "joint, grids known", "unknown": "joint", "spline": "EM + spline"}


def simulated(seed: int, rho: float, images: int, twice: int) -> tuple[Study, np.ndarray]:
    """A study with some images in two grids, and its true adjusted accuracies."""
    rng = np.random.default_rng(seed)
    levels = rng.normal(-2.2, 0.4, CLASSIFIERS)
    sides: dict[str, dict[str, Any]] = {}
    for role, mean in LOGITS.items():
        s = expit(rng.normal(mean, SPREAD, images))
        grid = np.zeros((images, ANSWERS), dtype=int)
        grid[rng.choice(images, twice, replace=False), ANSWERS // 2 :] = 1
        of_grid = np.stack([s, s], axis=1)
        if rho > 0:
            total = 1 / rho - 1
            of_grid = rng.beta(total * of_grid, total * (1 - of_grid))
        selected = rng.random(grid.shape) < np.take_along_axis(of_grid, grid, axis=1)
        image = np.repeat(np.arange(images), ANSWERS)
        answers = WorkerAnswers.of(
            image, np.arange(len(image)), selected.ravel(), context=2 * image + grid.ravel()
        )
        sides[role] = {
            "selected": selected.sum(axis=1),
            "shown": np.full(images, ANSWERS),
            "correct": rng.random((images, CLASSIFIERS)) < expit(levels + 4 * s[:, None]),
            "answers": answers,
        }
    z, weight = np.polynomial.hermite_e.hermegauss(101)
    s = expit(LOGITS["reference"] + SPREAD * z)
    truth = expit(levels + 4 * s[:, None]).T @ (weight / weight.sum())
    names = [f"c{number}" for number in range(CLASSIFIERS)]
    study = Study.from_arrays(
        reference=sides["reference"], replication=sides["replication"], classifiers=names
    )
    return study, truth


def one_study(key: str, images: int, twice: int) -> dict[str, Any]:
    """Summarise the correlation's posterior, and the intervals of adjusted accuracies."""
    rho, number = key.split("/")
    seed = int(number)
    study, truth = simulated(seed, float(rho), images, twice)
    # Every answer is another worker's: without grids, counts are all there is.
    given = {"known": study, "unknown": without_workers(study)}
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, EstimateWarning):
            warnings.simplefilter("ignore", category)
        for name, each in given.items():
            fit = bayesrep.fit(each, method="laplace", seed=seed, progress=False)["posterior"]
            draws = fit["adjusted_accuracy"].values.reshape(-1, CLASSIFIERS)
            correlation = fit["dependence"].values
            found[name] = {
                "rho": float(correlation.mean()),
                "rho_sd": float(correlation.std()),
                "bias": float(draws.mean() - truth.mean()),
                **held(draws, truth),
            }
        values, _ = bootstrap_estimates(given["unknown"], ESTIMATOR, seed)
    bias = float(values[0].mean() - truth.mean())
    return found | {"spline": {"bias": bias, **held(values[1:], truth)}}


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over studies, by correlation and kind of interval."""
    rows: dict[str, Any] = {}
    for rho in CORRELATIONS:
        of = [result for result in results if result["key"].startswith(f"{rho:g}/")]
        if not of:
            continue
        rows[f"{rho:g}"] = {"studies": len(of)}
        for kind in KINDS:
            facts = {
                part: float(np.mean([result[kind][part] for result in of])) for part in of[0][kind]
            }
            errors = np.array([result[kind]["bias"] for result in of])
            facts["error"] = float(np.sqrt(np.mean(np.square(errors))))
            if "rho" in facts:
                wrong = np.array([result[kind]["rho"] for result in of]) - rho
                facts["rho_error"] = float(np.sqrt(np.mean(np.square(wrong))))
            rows[f"{rho:g}"][kind] = facts
    return {"rows": rows}


def table(found: Mapping[str, Any]) -> str:
    """One line for each correlation and kind of interval."""
    header = ["rho", "studies", "method", "E rho", "sd", "error of rho"]
    header += ["single", "width", "mean", "width", "bias", "error"]

    def write(facts: Mapping[str, float]) -> list[str]:
        of_rho = [f"{facts[name]:.3f}" if name in facts else "" for name in RHO_FACTS]
        parts = ("single_width", "mean", "mean_width", "bias", "error")
        places = (2, 0, 2, 2, 2)
        shares = map(percent, (facts[part] for part in parts), places)
        return [*of_rho, percent(facts["single"], 0), *shares]

    return columns(
        header,
        [
            [rho, str(facts["studies"]), label, *write(facts[kind])]
            for rho, facts in found["rows"].items()
            for kind, label in KINDS.items()
        ],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/crowds.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.contexts", description=__doc__)
    parser.add_argument("--studies", type=int, default=6)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--twice", type=int, default=200, help="images of each in two grids")
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    parser.add_argument("--finished", action="store_true", help="take the studies that are there")
    arguments = parser.parse_args(argv)
    images, twice = arguments.images, arguments.twice
    results = resume(
        arguments.work / f"contexts-{images}-{twice}.jsonl",
        [f"{rho:g}/{seed}" for seed in range(arguments.studies) for rho in CORRELATIONS],
        lambda key: one_study(key, images, twice),
        finished=arguments.finished,
    )
    found = numbers(results)
    text = table(found)
    print(text)
    remarks = (
        f"{images:,} + {images:,} images with {ANSWERS} answers each, {CLASSIFIERS} classifiers; "
        f"{twice} images of each data set have {ANSWERS // 2} answers of one grid and as many of "
        "another. 'E rho', 'sd': mean and standard deviation of the posterior of rho, means over "
        "studies; 'error of rho': root mean square over studies. 'single': true adjusted "
        "accuracies inside 95 % intervals of single classifiers, 'mean': of their mean, in "
        "percent; 'bias' and 'error' (root mean square) of the mean's estimate, and widths, in "
        "points. Draws by Laplace count where the certificate was refused, too; EM + spline (two "
        "components, binomial loss) by bootstrap."
    )
    command = (
        f"python -m experiments.contexts --studies {arguments.studies} --images {images} "
        f"--twice {twice}"
    )
    save("contexts", command, found, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
