"""The slope of the line over classifiers, before and after: the paper's comparison made again.

    python -m experiments.slope [--seed 0] [--images 10000] [--classifiers 136]

Engstrom et al. (2020, section 5.3) find a slope of 1.13 ± 0.05 of replication on reference accuracy
and 1.01 ± 0.09 once selection is removed. Here on the simulated study like theirs, whose true slope
is known: as measured, by EM + spline with a bootstrap over images, and by the joint model.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import bayesrep
from bayesrep import ConvergenceWarning
from bayesrep.errors import EstimateWarning
from bayesrep.numerics.estimands import accuracy_line, slope_standard_error
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.methods import look_of
from bayesrep.report.table_format import MISSING_TEXT, columns, percent
from experiments.results import interval_points, save
from experiments.style import Color, panels

BOOTSTRAP = 200
LABELS = {
    "raw": "as measured (± 2 s.e. of regression)",
    "em-spline": "EM + spline, bootstrap",
    "joint": "joint model",
}


def lines(reference: np.ndarray, population: np.ndarray, adjusted: np.ndarray) -> dict[str, Any]:
    """Draws of gaps and slopes from draws [S, C] of accuracies."""
    return {
        "mean gap": (reference - adjusted).mean(axis=-1),
        "slope": accuracy_line(reference, adjusted)[0],
        "population gap": (population - adjusted).mean(axis=-1),
        "population slope": accuracy_line(population, adjusted)[0],
    }


def _row(draws: np.ndarray) -> list[float]:
    return [float(draws.mean()), *(float(end) for end in np.quantile(draws, (0.025, 0.975)))]


def numbers(seed: int, images: int, classifiers: int) -> dict[str, Any]:
    """Estimate and interval of mean gap and slope by method, and the truth."""
    study = bayesrep.simulate_study(seed=seed, images=images, classifiers=classifiers)
    truth = study.truth
    if truth is None:
        raise ValueError("a simulated study has a truth")
    reference, replication = (
        study.datasets[role].correct.mean(axis=0) for role in ("reference", "replication")
    )
    slope, error = (
        float(f(reference, replication)[0] if f is accuracy_line else f(reference, replication))
        for f in (accuracy_line, slope_standard_error)
    )
    gap = float((reference - replication).mean())
    found: dict[str, dict[str, list[float | None]]] = {
        "raw": {
            "mean gap": [gap, None, None],
            "slope": [slope, slope - 2 * error, slope + 2 * error],
        }
    }
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, EstimateWarning):
            warnings.simplefilter("ignore", category)
        gaps = bayesrep.estimate_gaps(study, "em-spline", bootstrap=BOOTSTRAP, seed=seed)
        by = {row["quantity"]: row for row in gaps.iter_rows(named=True)}
        found["em-spline"] = {
            name: [by[key][column] for column in ("estimate", "lower", "upper")]
            for name, key in (("mean gap", "bias_corrected_gap"), ("slope", "slope"))
        }
        joint = bayesrep.fit(study, seed=seed, dependence=0.0)

    def flat(draws: np.ndarray) -> np.ndarray:
        return draws.reshape(-1, draws.shape[-1])

    fitted = Fitted(study, joint)
    adjusted, population = flat(fitted.adjusted_draws), flat(fitted.population_draws)
    draws = {"joint": lines(reference, population, adjusted)}
    for method, quantities in draws.items():
        found[method] = {name: list(_row(values)) for name, values in quantities.items()}
    true = lines(reference, truth.reference_accuracy, truth.adjusted_accuracy)
    row = bayesrep.check_agreement(study, joint).summary.row(0, named=True)
    return {
        "methods": found,
        "truth": {name: float(value) for name, value in true.items()},
        "agreement": {key: row[key] for key in ("observed", "expected", "p")},
        "seed": seed,
        "images": images,
        "classifiers": classifiers,
    }


def table(found: Mapping[str, Any]) -> str:
    """One line a method."""
    header = ["method", "mean gap", "slope", "gap of populations", "slope of populations"]

    def cell(row: Sequence[float | None] | None, name: str) -> str:
        if row is None:
            return MISSING_TEXT
        show = (lambda x: percent(x, 2)) if "gap" in name else (lambda x: f"{x:.3f}")
        ends = "" if row[1] is None else f" ({show(row[1])} to {show(row[2])})"
        return show(row[0]) + ends

    names = ("mean gap", "slope", "population gap", "population slope")
    rows = [
        [LABELS[method], *(cell(quantities.get(name), name) for name in names)]
        for method, quantities in found["methods"].items()
    ]
    rows.append(["truth", *(cell([found["truth"][name], None, None], name) for name in names)])
    return columns(header, rows)


def draw(found: Mapping[str, Any]) -> Any:
    """Slopes with intervals, one method beside the other."""
    drawing, (axes,) = panels(1)
    shades = {"joint": Color.BLUE}
    for place, (method, quantities) in enumerate(found["methods"].items()):
        value, low, high = quantities["slope"]
        color = shades.get(method, look_of(method).paper)
        interval_points(axes, [place], [value], [low], [high], color=color)
    axes.axhline(found["truth"]["slope"], color="0.4", lw=0.8, ls="--")
    axes.annotate(
        "truth",
        (0.99, found["truth"]["slope"]),
        (0, 3),
        ha="right",
        fontsize=8,
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
    )
    axes.set_xticks(range(len(LABELS)), [*LABELS.values()], rotation=20, ha="right", fontsize=8)
    axes.set_ylabel("slope of accuracy on the reference's")
    return drawing


def remarks(found: Mapping[str, Any]) -> str:
    """What the numbers are, in prose."""
    seen, joint = (percent(found["agreement"][key]) for key in ("observed", "expected"))
    return (
        f"Simulated study of seed {found['seed']}: {found['classifiers']} classifiers, "
        f"{found['images']:,} + {found['images']:,} images, 36 annotators. 95 % intervals; "
        f"{BOOTSTRAP} bootstrap replicates. Mean gap and slope are of adjusted accuracies against "
        "those measured on the reference, between populations against those on its population. "
        f"Two classifiers are right or wrong together on {seen} % of the images; the joint model "
        f"expects {joint} %."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/coverage.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.slope", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--classifiers", type=int, default=136)
    arguments = parser.parse_args(argv)
    found = numbers(arguments.seed, arguments.images, arguments.classifiers)
    text = table(found)
    print(text)
    command = (
        f"python -m experiments.slope --seed {arguments.seed} --images {arguments.images} "
        f"--classifiers {arguments.classifiers}"
    )
    save("slope", command, found, text, draw(found), remarks(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
