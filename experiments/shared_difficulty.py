"""Intervals of what combines classifiers: mean gap and slope, by two posteriors.

    python -m experiments.shared_difficulty [--studies 100] [--images 2000] [--classifiers 10]

Over simulated studies whose truth is known, from inside and outside the fitted family, 95 %
intervals of the mean gap and of the slope of adjusted on reference accuracy by

    joint        the joint model
    shared       the shared-difficulty model

each against the measured accuracies on the reference and against those on its population.
Resumable: finished studies are kept in --work.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bayesrep
from bayesrep import ConvergenceWarning
from bayesrep.numerics.estimands import accuracy_line
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.figures import BLUE, RED, legend_below, panels
from bayesrep.report.text import columns, percent
from experiments.ledger import resume
from experiments.results import save

PROCESSES = ("outside", "inside")
METHODS = {
    "joint": "joint model",
    "shared": "shared difficulty",
}
QUANTITIES = {
    "mean gap": "mean gap",
    "slope": "slope",
    "population gap": "mean gap between populations",
    "population slope": "slope between populations",
}
JOINT_SCHEDULE: dict[str, Any] = {"draws": 250}
SHARED_SCHEDULE: dict[str, Any] = {"method": "nuts", "chains": 2, "warmup": 200, "draws": 150}
"""Of one length: by default chains grow longer until they agree."""
NODES = 13


def lines(reference: np.ndarray, population: np.ndarray | None, adjusted: np.ndarray) -> Any:
    """Draws of the quantities from draws [S, C] of accuracies."""
    found = {
        "mean gap": (reference - adjusted).mean(axis=-1),
        "slope": accuracy_line(reference, adjusted)[0],
    }
    if population is not None:
        found["population gap"] = (population - adjusted).mean(axis=-1)
        found["population slope"] = accuracy_line(population, adjusted)[0]
    return found


def one_study(key: str, images: int, classifiers: int) -> dict[str, Any]:
    """Mean, sd and interval of every quantity by every method, and the truth."""
    process, number = key.split("/")
    study = bayesrep.simulate_study(
        seed=5000 + int(number),
        images=images,
        classifiers=classifiers,
        process=process,  # type: ignore[arg-type]
    )
    truth, seed = study.truth, int(number)
    assert truth is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = time.perf_counter()
        joint = bayesrep.fit(study, seed=seed, progress=False, **JOINT_SCHEDULE)
        between = time.perf_counter()
        shared = bayesrep.fit(
            study,
            model="shared-difficulty",
            nodes=NODES,
            seed=seed,
            progress=False,
            **SHARED_SCHEDULE,
        )
        seconds = {"joint": between - begin, "shared": time.perf_counter() - between}
    reference = study.datasets["reference"].correct.mean(axis=0)

    def flat(draws: np.ndarray) -> np.ndarray:
        return draws.reshape(-1, draws.shape[-1])

    found: dict[str, Any] = {}
    for method, posterior in (("joint", joint), ("shared", shared)):
        fitted = Fitted(study, posterior)
        adjusted, population = flat(fitted.adjusted_draws), flat(fitted.population_draws)
        found[method] = lines(reference, population, adjusted)
    true = lines(reference, truth.reference_accuracy, truth.adjusted_accuracy)
    return {
        "truth": {name: float(value) for name, value in true.items()},
        "methods": {
            method: {
                name: [float(draws.mean()), float(draws.std()), *np.quantile(draws, (0.025, 0.975))]
                for name, draws in quantities.items()
            }
            for method, quantities in found.items()
        },
        "loading": float(shared.posterior["loading"].values.mean()),
        "divergences": int(shared.sample_stats["diverging"].values.sum()),
        "least_ess": float(
            bayesrep.summarize(study, shared, allow_unconverged=True)["ess_bulk"].min()
        ),
        "seconds": seconds,
    }


def scores(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """By quantity and method: coverage, its standard error, mean sd, bias and sd of the error."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for quantity in QUANTITIES:
        table[quantity] = {}
        for method in METHODS:
            if quantity not in results[0]["methods"][method]:
                continue
            rows = np.array([r["methods"][method][quantity] for r in results])
            truth = np.array([r["truth"][quantity] for r in results])
            inside = (rows[:, 2] <= truth) & (truth <= rows[:, 3])
            error = rows[:, 0] - truth
            covered = float(inside.mean())
            table[quantity][method] = {
                "coverage": covered,
                "coverage_se": float(np.sqrt(covered * (1 - covered) / len(inside))),
                "posterior_sd": float(rows[:, 1].mean()),
                "error_sd": float(error.std(ddof=1)) if len(error) > 1 else float("nan"),
                "bias": float(error.mean()),
            }
    return table


def table_text(found: Mapping[str, Any]) -> str:
    """One line for each process, quantity and method."""
    header = ["studies", "quantity", "method", "covered", "s.e.", "posterior sd", "sd of error"]
    rows = [
        [
            process,
            QUANTITIES[quantity],
            METHODS[method],
            *(percent(score[name], 1) for name in ("coverage", "coverage_se")),
            *(f"{score[name]:.4f}" for name in ("posterior_sd", "error_sd", "bias")),
        ]
        for process, quantities in found["scores"].items()
        for quantity, methods in quantities.items()
        for method, score in methods.items()
    ]
    return columns([*header, "bias"], rows)


def draw(results: Sequence[Mapping[str, Any]]) -> Any:
    """Intervals of the mean gap, study by study, about the truth."""
    drawing, row = panels(len(METHODS))
    shown = [r for r in results if r["key"].startswith(f"{PROCESSES[0]}/")][:50]
    for axes, (method, label) in zip(row, METHODS.items(), strict=True):
        values = np.array([r["methods"][method]["mean gap"] for r in shown])
        errors = 100 * (values - np.array([r["truth"]["mean gap"] for r in shown])[:, None])
        missed = (errors[:, 2] > 0) | (errors[:, 3] < 0)
        for color, those, name in (
            (BLUE, ~missed, "truth inside"),
            (RED, missed, "truth outside"),
        ):
            where = np.flatnonzero(those)
            axes.hlines(where, errors[those, 2], errors[those, 3], color=color, label=name)
        axes.axvline(0, color="0.4", lw=0.8)
        axes.set_title(label, fontsize=10)
        axes.set_xlabel("mean gap less the truth (points)")
        axes.set_xlim(-4, 4)
    row[0].set_ylabel("study")
    legend_below(drawing)
    return drawing


def remarks(found: Mapping[str, Any], arguments: argparse.Namespace) -> str:
    """What the numbers are, in prose."""
    return (
        f"{found['studies']} studies of {arguments.images} + {arguments.images} images, 36 "
        f"annotators and {arguments.classifiers} classifiers with a difficulty that all of them "
        "share. Mean gap and slope are of the true adjusted accuracies against the accuracies "
        "measured on the reference; between populations, against the true ones. Shared "
        "difficulty: two chains of "
        f"{SHARED_SCHEDULE['warmup']} + {SHARED_SCHEDULE['draws']} draws on {NODES} nodes, "
        f"{found['diverged']} fits with divergent draws, least effective size of an adjusted "
        f"accuracy {found['least_ess']:.0f}. The figure shows studies outside the family."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write docs/results/shared-difficulty.{md,json,png}."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.shared_difficulty", description=__doc__
    )
    parser.add_argument("--studies", type=int, default=100, help="of each process")
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--classifiers", type=int, default=10)
    parser.add_argument("--processes", nargs="+", choices=PROCESSES, default=PROCESSES)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    size = f"{arguments.images}-{arguments.classifiers}"
    results: list[Any] = []
    for process in arguments.processes:
        results += resume(
            arguments.work / f"shared-difficulty-{process}-{size}.jsonl",
            [f"{process}/{number}" for number in range(arguments.studies)],
            lambda key: one_study(key, arguments.images, arguments.classifiers),
        )
    found = {
        "scores": {
            process: scores([r for r in results if r["key"].startswith(f"{process}/")])
            for process in arguments.processes
        },
        "studies": len(results),
        "diverged": sum(r["divergences"] > 0 for r in results),
        "least_ess": min(r["least_ess"] for r in results),
    }
    text = table_text(found)
    print(text)
    command = (
        f"python -m experiments.shared_difficulty --studies {arguments.studies} --images "
        f"{arguments.images} --classifiers {arguments.classifiers}"
    )
    save("shared-difficulty", command, found, text, draw(results), remarks(found, arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
