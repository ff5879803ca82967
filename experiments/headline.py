"""The mission at its size: 136 classifiers at once, fitted as by default, and few annotators.

    python -m experiments.headline [--studies 40] [--cells 136x10x2000,...] [--work DIR]
                                   [--finished]

Simulated studies of known truth, as `bayesrep simulate` makes them: so many classifiers, annotators
an image and images in each data set, by cell; and in cells that end in "prior" studies drawn from
the joint model's own prior, image by image, in which classifiers share the images' frequencies and
nothing else: there a posterior that counts all that classifiers say in full is exact. Cells that
end in "odd" are worlds that share nothing with the model (`experiments.odd_worlds`). Every fit is
`bayesrep.fit`'s default, counted whether or not it says that it has converged. 95 % intervals of
single classifiers, of the mean gap and of the slope given the reference accuracies that were
measured, of differences of classifiers and of their ranks, all of the posterior's draws as they
are; the errors of the mean over classifiers and of the slope in standard deviations of the draws.
Resumable: finished studies are kept in DIR, and `--finished` makes the page of those alone.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import bayesrep
from bayesrep import Study
from bayesrep.errors import ConvergenceWarning
from bayesrep.inference.prior import prior_predictive
from bayesrep.models import MODELS
from bayesrep.numerics.estimands import accuracy_line, ranks
from bayesrep.report.table_format import columns, percent
from bayesrep.types import Floats
from experiments.ledger import resume
from experiments.odd_worlds import simulated
from experiments.results import interval_points, save
from experiments.sbc import template
from experiments.style import panels

CELLS = (
    "136x5x10000",
    "136x10x2000",
    "136x10x10000",
    "136x20x2000",
    "136x36x10000",
    "10x10x2000",
    "136x10x2000 prior",
    "10x10x2000 prior",
    "136x10x2000 odd",
    "136x36x10000 odd",
    "10x10x2000 odd",
)
"""Classifiers, annotators an image, images in each data set; of the prior or of odd worlds."""
PAIRS = 500
"""Differences that are looked at in a study, at most."""
QUANTILES = (0.025, 0.975)
COVERED = {
    "single": "singles",
    "gap": "mean gap",
    "slope": "slope",
    "difference": "differences",
    "rank": "ranks",
}


def one_study(key: str) -> dict[str, Any]:
    """How a study of a cell, ``classifiers x annotators x images / seed``, comes out."""
    cell, seed = key.split("/")
    size, _, world = cell.partition(" ")
    classifiers, annotators, images = map(int, size.split("x"))
    sizes = {"images": images, "annotators": annotators, "classifiers": classifiers}
    if world == "prior":
        study, truth = draw_from_prior(40_000 + int(seed), **sizes)
    elif world == "odd":
        study, truth, _ = simulated(40_000 + int(seed), images, classifiers, str(annotators))
    else:
        study = bayesrep.simulate_study(seed=40_000 + int(seed), **sizes)
        assert study.truth is not None
        truth = study.truth.adjusted_accuracy
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = time.perf_counter()
        posterior = bayesrep.fit(study, seed=int(seed), progress=False, dependence=0.0)
        seconds = time.perf_counter() - begin
    made = posterior["posterior"].attrs
    draws = posterior["posterior"]["adjusted_accuracy"].values.reshape(-1, classifiers)
    measured = study.reference.correct.mean(axis=0)
    first, second = _pairs(classifiers)
    slope = np.asarray(accuracy_line(measured, draws)[0])
    error, true_slope = draws.mean(axis=0) - truth, float(accuracy_line(measured, truth)[0])
    return {
        "held": {
            "single": _held(draws, truth),
            "gap": _held(draws.mean(axis=1), truth.mean()),
            "slope": _held(slope, true_slope),
            "difference": _held(draws[:, first] - draws[:, second], truth[first] - truth[second]),
            "rank": _held(ranks(draws), ranks(truth)),
        },
        "error": float(error.mean()),
        "rms": float(np.sqrt(np.square(error).mean())),
        "sd": float(draws.std(axis=0).mean()),
        "mean_sd": float(draws.mean(axis=1).std()),
        "slope_error": float(slope.mean()) - true_slope,
        "slope_sd": float(slope.std()),
        "weight": float(made["classifier_weight"]),
        "converged": int(made["converged"]),
        "method": made["method"],
        "tried": made["tried"],
        "verdict": made["verdict"],
        "seconds": seconds,
    }


def draw_from_prior(
    seed: int, *, images: int, annotators: int, classifiers: int
) -> tuple[Study, Floats]:
    """A study whose parameters are a draw of the joint model's prior, and its adjusted accuracies.

    An image's frequency s is drawn from its data set's mixture, its count and every classifier's
    correctness independently given s.
    """
    model, random = MODELS["joint"], np.random.default_rng(seed)
    blank = template(images, annotators, classifiers)
    prior = prior_predictive(blank, draws=1, seed=seed).prior
    drawn = {name: prior[name].values[0] for name in prior.data_vars}
    datasets: dict[str, Any] = {}
    for place, role in enumerate(blank.cells):
        weight, mean, total = (
            drawn[f"component_{part}"][0, place] for part in ("weight", "mean", "concentration")
        )
        of = random.choice(len(weight), size=images, p=weight / weight.sum())
        s = random.beta((mean * total)[of], ((1 - mean) * total)[of])
        with jax.enable_x64(new_val=True):
            curves = np.asarray(model.curves(drawn, model.options(), s, np.ones(1)))[0]
        datasets[role] = {
            "selected": random.binomial(annotators, s),
            "shown": annotators,
            "correct": random.random((images, classifiers)) < curves.T,
        }
    study = Study.from_arrays(**datasets, classifiers=list(blank.classifiers))
    return study, drawn["adjusted_accuracy"][0]


def _pairs(classifiers: int) -> tuple[np.ndarray, np.ndarray]:
    """Some pairs of classifiers, or all."""
    first, second = np.triu_indices(classifiers, 1)
    size = min(PAIRS, len(first))
    some = np.random.default_rng(0).permutation(len(first))[:size]
    return first[some], second[some]


def _held(draws: Floats, truth: Any) -> float:
    """Share of the 95 % intervals of draws [S, ...] that hold the truth."""
    lower, upper = np.quantile(draws, QUANTILES, axis=0)
    return float(np.mean((lower <= truth) & (truth <= upper)))


def score(found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Coverage, errors and what the fits came to, over the studies of a cell."""
    names = ("error", "mean_sd", "slope_error", "slope_sd")
    error, sd, slope_error, slope_sd = (np.array([r[name] for r in found]) for name in names)
    held = {name: np.array([r["held"][name] for r in found]) for name in COVERED}
    count = np.sqrt(len(found))
    return {
        "studies": len(found),
        "converged": int(sum(r["converged"] for r in found)),
        "laplace": int(sum(r["method"] == "laplace" for r in found)),
        **{name: float(values.mean()) for name, values in held.items()},
        **{f"{name}_se": float(values.std(ddof=1) / count) for name, values in held.items()},
        "bias": float(error.mean()),
        "bias_se": float(error.std(ddof=1) / count),
        "rms_of_mean": float(np.sqrt(np.square(error).mean())),
        "z": float(np.sqrt(np.square(error / sd).mean())),
        "slope_bias": float(slope_error.mean()),
        "slope_bias_se": float(slope_error.std(ddof=1) / count),
        "slope_z": float(np.sqrt(np.square(slope_error / slope_sd).mean())),
        "sd": float(np.mean([r["sd"] for r in found])),
        "weight": float(np.mean([r["weight"] for r in found])),
        "seconds": float(np.median([r["seconds"] for r in found])),
    }


def table(found: Mapping[str, Mapping[str, float]]) -> str:
    """A line a cell; in percent, and points."""
    header = ["classifiers x annotators x images", "studies", "ended well", "by weights"]
    header += [f"{label} (s.e.)" for label in COVERED.values()]
    header += ["bias of the mean (s.e.)", "rms", "over its sd", "sd of a single"]
    header += ["bias of the slope (s.e.)", "over its sd"]
    rows = [
        [
            cell.replace("x", " x "),
            str(of["studies"]),
            str(of["converged"]),
            str(of["laplace"]),
            *(f"{percent(of[n], 1)} ({percent(of[f'{n}_se'], 1)})" for n in COVERED),
            f"{percent(of['bias'], 2)} ({percent(of['bias_se'], 2)})",
            percent(of["rms_of_mean"], 2),
            f"{of['z']:.2f}",
            percent(of["sd"], 2),
            f"{of['slope_bias']:.3f} ({of['slope_bias_se']:.3f})",
            f"{of['slope_z']:.2f}",
        ]
        for cell, of in found.items()
    ]
    return columns(header, rows)


def draw(found: Mapping[str, Mapping[str, float]]) -> Any:
    """Coverage of everything by cell, with two standard errors."""
    drawing, axes = panels(len(COVERED))
    for axis, (name, label) in zip(axes, COVERED.items(), strict=True):
        middle = np.array([100 * of[name] for of in found.values()])
        spread = np.array([200 * of[f"{name}_se"] for of in found.values()])
        places = np.arange(len(found))
        interval_points(axis, places, middle, middle - spread, middle + spread, color="0.2")
        axis.axhline(95, color="0.4", lw=0.8, ls="--")
        axis.set_title(label, fontsize=10)
        axis.set_xticks(places, list(found), rotation=60, ha="right", fontsize=7)
        axis.set_ylim(60, 102)
    axes[0].set_ylabel("true values inside (%)")
    return drawing


def main() -> int:
    """Make or finish the studies asked for, and the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--studies", type=int, default=40)
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--work", type=Path, default=Path("work-headline"))
    parser.add_argument("--finished", action="store_true")
    arguments = parser.parse_args()
    cells = arguments.cells.split(",")
    # By number first, so that an unfinished run has as many studies of every cell.
    keys = [f"{cell}/{seed}" for seed in range(arguments.studies) for cell in cells]
    made = resume(arguments.work / "studies.jsonl", keys, one_study, finished=arguments.finished)
    by_cell = {cell: [r for r in made if r["key"].startswith(f"{cell}/")] for cell in cells}
    found = {cell: score(results) for cell, results in by_cell.items() if len(results) > 1}
    text = table(found)
    print(text)
    note = (
        "Coverage of 95 % intervals in percent, errors and standard deviations in points. 'Ended "
        "well': fits whose verdict is that they converged; 'by weights': those of the Laplace "
        "approximation whose weights held, the others are chains. All classifiers of a study miss "
        "together, so that standard errors are those over studies. 'rms' is the root mean square "
        "error of the mean over classifiers; 'over its sd' that of the same error in standard "
        "deviations of the draws, and so of the slope. "
        "'prior': studies whose parameters are drawn from the joint model's own prior, where "
        "intervals are neither too wide nor too narrow for the prior's sake; 'odd': worlds that "
        "share nothing with the model."
    )
    if len(made) < len(keys):
        note += f" So far {len(made)} of {len(keys)} studies have been made."
    command = f"python -m experiments.headline --studies {arguments.studies}"
    save("headline", command, {"cells": found}, text, draw(found), remarks=note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
