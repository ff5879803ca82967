"""Simulation-based calibration: ranks of prior draws among the joint model's posterior draws.

    python -m experiments.sbc [--studies 640] [--images 500] [--annotators 10] [--work DIR]

Parameters are drawn from the prior and a small study given them; among draws of the posterior the
parameters' ranks must be uniform (Talts et al. 2018, algorithm 1). Resumable: finished studies are
kept in DIR.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from scipy import stats

import bayesrep
from bayesrep import ConvergenceWarning, Study, SufficientStatistics
from bayesrep.inference.prior import prior_predictive
from bayesrep.models import MODELS
from bayesrep.report.table_format import columns
from bayesrep.studies.statistics import Cells
from experiments.ledger import resume
from experiments.results import save
from experiments.style import Color, panels

RANKS = 100  # draws of each posterior that a rank is among
BINS = 20
EDGES = np.linspace(0, RANKS + 1, BINS + 1)
WARMUP, DRAWS = 250, 250  # of each of four chains
FIXED = ("components", "classifier_level", "classifier_slope")
"""Options of the prior that is drawn from; left open, a fit chooses them by the data."""
BATCH = 64  # studies drawn together; the number of the batch is its seed
FREQUENCIES = (0.3, 0.6, 0.9)
PANELS = {
    "mixtures": (
        "mean_selection_frequency",
        "component_mean",
        "component_concentration",
        "component_weight",
    ),
    "accuracy curves": ("population_curve", "curve"),
    "adjusted accuracies": ("adjusted_accuracy",),
}
Floats = NDArray[np.float64]


def template(images: int, annotators: int, classifiers: int) -> SufficientStatistics:
    """A study of the wanted size; its contents do not matter."""
    rng = np.random.default_rng(0)

    def data() -> dict[str, Any]:
        return {
            "selected": rng.integers(0, annotators + 1, images),
            "shown": annotators,
            "correct": rng.random((images, classifiers)) < 0.5,
        }

    names = [f"c{i}" for i in range(classifiers)]
    study = Study.from_arrays(reference=data(), replication=data(), classifiers=names)
    return SufficientStatistics.from_study(study)


def summaries(group: Any) -> dict[str, Floats]:
    """What is ranked, each [draw, ...]: mixture, curves, adjusted accuracies."""
    values = {
        name: np.asarray(group[name]).reshape(-1, *group[name].shape[2:])
        for name in (
            "mean_selection_frequency",
            "component_mean",
            "component_concentration",
            "component_weight",
            "population_curve",
            "adjusted_accuracy",
        )
    }
    values["component_weight"] = values["component_weight"][..., 1:]
    model = MODELS["joint"]
    terms = np.asarray(group["classifier_curve"])
    draws = {
        "classifier_curve": terms.reshape(-1, *terms.shape[2:]),
        "population_curve": values["population_curve"],
    }
    with jax.enable_x64(new_val=True):
        curves = model.curves(draws, model.options(), np.array(FREQUENCIES), np.ones(1))
    values["curve"] = np.asarray(curves)
    return values


@lru_cache(maxsize=1)
def prior_batch(blank: SufficientStatistics, batch: int) -> Any:
    """Parameters, and data given them, of ``BATCH`` studies."""
    return prior_predictive(blank, draws=BATCH, seed=1 + batch)


def one_study(key: str, blank: SufficientStatistics) -> dict[str, Any]:
    """Draw, simulate, fit and rank."""
    batch, index = divmod(int(key), BATCH)
    prior = prior_batch(blank, batch)
    drawn = summaries(prior.prior)
    predicted = prior.prior_predictive
    cells = {}
    for role, old in blank.cells.items():
        images = predicted[f"{role}_images"].values[0, index]
        correct = np.zeros((len(images), len(blank.classifiers)), dtype=np.int64)
        if role == "replication":
            correct = predicted["correct"].values[0, index].T.astype(np.int64)
        size = int(old.shown[0])
        cells[role] = Cells(np.arange(size + 1), np.full(size + 1, size), images, correct)
    statistics = SufficientStatistics(blank.classifiers, cells)
    usual = MODELS["joint"].options()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = bayesrep.fit(
            statistics,
            method="nuts",
            dependence=0.0,
            warmup=WARMUP,
            draws=DRAWS,
            seed=int(key),
            progress=False,
            **{name: getattr(usual, name) for name in FIXED},
        )
    fitted = summaries(posterior.posterior)
    ranks = {}
    for name, values in fitted.items():
        thin = values[np.linspace(0, len(values) - 1, RANKS).round().astype(int)]
        ranks[name] = np.sum(thin < drawn[name][index], axis=0).tolist()
    attributes = posterior.posterior.attrs
    return {
        "ranks": ranks,
        "converged": attributes["converged"],
        "divergences": int(posterior.sample_stats["diverging"].values.sum()),
    }


def histogram(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ranks in every bin."""
    return np.histogram(ranks, bins=EDGES)[0]


def uniformity(ranks: NDArray[np.int64]) -> dict[str, float]:
    """p of the χ² test over bins, and of the largest ECDF difference, of ranks in 0..RANKS."""
    counts = histogram(ranks)
    sizes = np.diff(np.ceil(EDGES))
    expected = len(ranks) * sizes / sizes.sum()
    chi2 = float(stats.chisquare(counts, expected).pvalue)
    at = np.arange(RANKS + 1)
    ecdf = np.searchsorted(np.sort(ranks), at, side="right") / len(ranks)
    distance = np.abs(ecdf - (at + 1) / (RANKS + 1)).max()
    return {"chi2_p": chi2, "ecdf_distance": float(distance)}


def ecdf_limit(studies: int, level: float) -> float:
    """The ECDF distance that uniform ranks exceed with probability 1 − level, by simulation."""
    rng = np.random.default_rng(0)
    at = np.arange(RANKS + 1)
    distances = [
        np.abs(
            np.cumsum(np.bincount(rng.integers(0, RANKS + 1, studies), minlength=RANKS + 1))
            / studies
            - (at + 1) / (RANKS + 1)
        ).max()
        for _ in range(20_000)
    ]
    return float(np.quantile(distances, level))


def collect(results: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[np.int64]]:
    """Ranks [study] of every scalar quantity by name."""
    table: dict[str, NDArray[np.int64]] = {}
    for name in results[0]["ranks"]:
        values = np.array([r["ranks"][name] for r in results])
        for place in np.ndindex(*values.shape[1:]):
            label = f"{name}[{', '.join(map(str, place))}]" if place else name
            table[label] = values[(slice(None), *place)]
    return table


def figure(table: Mapping[str, NDArray[np.int64]], limit: float) -> Any:
    """ECDF differences of all quantities, by kind, with the 99 % band."""
    drawing, axes = panels(len(PANELS))
    at = np.arange(RANKS + 1)
    for axis, (title, kinds) in zip(axes, PANELS.items(), strict=True):
        for name, ranks in table.items():
            if name.split("[")[0] in kinds:
                ecdf = np.searchsorted(np.sort(ranks), at, side="right") / len(ranks)
                axis.plot(at, ecdf - (at + 1) / (RANKS + 1), color=Color.BLUE, lw=0.8)
        axis.axhspan(-limit, limit, color="0.9", zorder=0)
        axis.set_title(title, fontsize=10)
        axis.set_ylim(-2 * limit, 2 * limit)
        axis.set_xlabel("rank")
    axes[0].set_ylabel("ECDF less uniform")
    return drawing


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/coverage.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.sbc", description=__doc__)
    parser.add_argument("--studies", type=int, default=640)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--annotators", type=int, default=10)
    parser.add_argument("--classifiers", type=int, default=4)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    blank = template(arguments.images, arguments.annotators, arguments.classifiers)
    size = f"{arguments.images}-{arguments.annotators}-{arguments.classifiers}"
    results = resume(
        arguments.work / f"sbc-{size}.jsonl",
        [str(index) for index in range(arguments.studies)],
        lambda key: one_study(key, blank),
    )
    table = collect(results)
    limit = ecdf_limit(len(results), 0.99)
    tests = {name: uniformity(ranks) for name, ranks in table.items()}
    rows = [
        [name, f"{t['chi2_p']:.3f}", f"{t['ecdf_distance']:.3f}", f"{limit:.3f}"]
        for name, t in sorted(tests.items())
    ]
    outside = [
        name for name, t in tests.items() if t["ecdf_distance"] > limit or t["chi2_p"] < 0.01
    ]
    text = columns(["quantity", "chi2 p", "ECDF distance", "99 % limit"], rows)
    print(text)
    converged = float(np.mean([r["converged"] for r in results]))
    remarks = (
        f"{len(results)} studies of {arguments.images} + {arguments.images} images, "
        f"{arguments.annotators} annotators and {arguments.classifiers} classifiers, drawn from "
        f"the prior; ranks among {RANKS} draws of four chains of {WARMUP} + {DRAWS}. "
        f"Outside a 99 % band of their own (χ² over {BINS} bins, or largest ECDF difference): "
        f"{len(outside)} of {len(tests)} quantities ({', '.join(outside) or 'none'}); up to "
        f"{2 * len(tests) / 100:.1f} are expected of a perfect sampler. {100 * converged:.1f} % of "
        "the fits passed every convergence check, with half the draws that `fit` makes; all count. "
        f"{sum(r['divergences'] > 0 for r in results)} had divergences."
    )
    command = (
        f"python -m experiments.sbc --studies {arguments.studies} --images {arguments.images} "
        f"--annotators {arguments.annotators} --classifiers {arguments.classifiers}"
    )
    numbers = {"limit": limit, "tests": tests, "outside": outside, "converged": converged}
    numbers["counts"] = {name: histogram(ranks).tolist() for name, ranks in table.items()}
    save("sbc", command, numbers, text, figure(table, limit), remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
