"""Coverage, width and bias of every interval over simulated studies, inside and outside the family.

    python -m experiments.coverage [--studies 25] [--images 2000] [--classifiers 10] [--work DIR]
                                   [--posterior]

For each generating process and each design of annotators, that many studies of known truth. 95 %
intervals of the adjusted accuracies: of the posterior, of the bootstraps of EM + spline and of the
jackknife, and the jackknife's own. Resumable: finished studies are kept in DIR. `--posterior` makes
the posterior's anew and keeps the page's lines of the point estimates, which are of the same
studies and take most of the time.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import bayesrep
from bayesrep import ConvergenceWarning
from bayesrep.errors import EstimateWarning
from bayesrep.report.figures import interval_points, legend_below, panels
from bayesrep.report.methods import color_of
from bayesrep.report.text import columns, percent
from experiments.ledger import resume
from experiments.results import RESULTS, save

PROCESSES = {"inside": 2, "outside": 1, "non-monotone": 1}
"""Generating processes, and how many times ``--studies`` each design is simulated from them."""
ANNOTATORS: Mapping[str, int | tuple[int, int]] = {
    "10": 10,
    "20": 20,
    "40": 40,
    "8-12": (8, 12),
}
WARMUP, DRAWS = 250, 250  # of each of four chains: intervals need no more, and studies are many
BEST_EM = "em-spline(components=2, loss=binomial, bounds=everywhere)"
BOOTSTRAPPED = ("naive", "jackknife", "em-spline", BEST_EM)
LABELS = {
    "joint": "joint posterior",
    "naive": "naive, bootstrap",
    "jackknife": "jackknife, bootstrap",
    "jackknife, own": "jackknife, own",
    "em-spline": "EM + spline, bootstrap",
    BEST_EM: "EM + spline (K = 2, binomial), bootstrap",
}


def one_study(key: str, images: int, classifiers: int, bootstrap: int) -> dict[str, Any]:
    """Estimates with intervals of every method, and the truth; no two designs share a seed.

    Without replicates, of the posterior alone.
    """
    process, design, seed = key.split("/")
    study = bayesrep.simulate_study(
        seed=1000 + len(ANNOTATORS) * int(seed) + list(ANNOTATORS).index(design),
        images=images,
        annotators=ANNOTATORS[design],
        classifiers=classifiers,
        process=process,  # type: ignore[arg-type]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", EstimateWarning)
        posterior = bayesrep.fit(study, warmup=WARMUP, draws=DRAWS, seed=int(seed), progress=False)
        rows = bayesrep.summarize(study, posterior, allow_unconverged=True)
        tables = {"joint": rows} | (_points(study, bootstrap, int(seed)) if bootstrap else {})
    attributes = posterior.posterior.attrs
    return {
        "truth": study.truth.adjusted_accuracy.tolist(),
        "methods": {
            name: {
                column: table[column].to_list()
                for column in ("adjusted_accuracy", "lower", "upper")
            }
            for name, table in tables.items()
        },
        "converged": attributes["converged"],
        "divergences": _divergences(posterior),
        "verdict": attributes["verdict"],
    }


def _divergences(posterior: Any) -> int:
    """How many draws of chains diverged; weighted draws have no chains."""
    stats = posterior.sample_stats
    return int(stats["diverging"].values.sum()) if "diverging" in stats else 0


def _points(study: bayesrep.Study, bootstrap: int, seed: int) -> dict[str, pl.DataFrame]:
    """Estimates and intervals of the point estimators, by name."""
    points = bayesrep.estimate(study, BOOTSTRAPPED, bootstrap=bootstrap, seed=seed)
    return {"jackknife, own": bayesrep.estimate(study, "jackknife")} | {
        name: points.filter(points["method"].str.replace_all(" ", "") == name.replace(" ", ""))
        for name in BOOTSTRAPPED
    }


def scores(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Coverage with its standard error over studies, width, bias and rms error by method."""
    truth = np.array([r["truth"] for r in results])  # [study, C]
    table: dict[str, dict[str, float]] = {}
    for name in results[0]["methods"]:
        estimate, lower, upper = (
            np.array([r["methods"][name][column] for r in results], dtype=float)
            for column in ("adjusted_accuracy", "lower", "upper")
        )
        inside = (lower <= truth) & (truth <= upper)
        by_study = inside.mean(axis=1)
        error = estimate - truth
        count = np.sqrt(len(results))
        table[name] = {
            "coverage": float(inside.mean()),
            "coverage_se": float(by_study.std(ddof=1) / count),
            "width": float((upper - lower).mean()),
            "bias": float(error.mean()),
            "bias_se": float(error.mean(axis=1).std(ddof=1) / count),
            "rms": float(np.sqrt((error**2).mean())),
        }
    return table


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Scores by process, and by process and design; how the fits went."""

    def of(start: str) -> dict[str, dict[str, float]]:
        return scores([r for r in results if r["key"].startswith(start)])

    return {
        "by_process": {process: of(f"{process}/") for process in PROCESSES},
        "by_design": {
            f"{process}, n = {design}": of(f"{process}/{design}/")
            for process in PROCESSES
            for design in ANNOTATORS
        },
        "studies": len(results),
        "converged": sum(r["converged"] for r in results),
        "diverged": sum(r["divergences"] > 0 for r in results),
    }


def with_points(found: Mapping[str, Any], page: Mapping[str, Any]) -> dict[str, Any]:
    """Scores of the posterior, and a page's of the point estimates of the same studies."""
    if found["studies"] != page["studies"]:
        raise SystemExit(f"the page has {page['studies']} studies, not {found['studies']}")
    both = {
        by: {group: {**page[by][group], **scored} for group, scored in found[by].items()}
        for by in ("by_process", "by_design")
    }
    return {**found, **both}


def table(found: Mapping[str, Any]) -> str:
    """One line for each group of studies and method."""
    header = ["studies", "method", "covered", "s.e.", "mean width", "bias", "s.e.", "rms error"]
    rows = [
        [
            group,
            LABELS[name],
            *(percent(score[n], 1) for n in ("coverage", "coverage_se")),
            *(percent(score[n], 2) for n in ("width", "bias", "bias_se", "rms")),
        ]
        for group, methods in {**found["by_process"], **found["by_design"]}.items()
        for name, score in methods.items()
    ]
    return columns(header, rows)


def draw(found: Mapping[str, Any]) -> Any:
    """Coverage with two standard errors, by process and method."""
    groups = found["by_process"]
    drawing, axes = panels(len(groups))
    shown = ["joint", BEST_EM, "em-spline", "jackknife", "jackknife, own", "naive"]
    for axis, (process, methods) in zip(axes, groups.items(), strict=True):
        for place, name in enumerate(shown):
            score = methods[name]
            middle, spread = 100 * score["coverage"], 200 * score["coverage_se"]
            color = color_of(name.split(",")[0])
            ends = (middle - spread, middle + spread)
            interval_points(axis, [place], [middle], *([e] for e in ends), color=color)
            axis.annotate(
                f"±{50 * score['width']:.1f}",
                (place, middle),
                (6, -3),
                fontsize=8,
                textcoords="offset points",
            )
        axis.axhline(95, color="0.4", lw=0.8, ls="--", label="95 %")
        axis.set_title(process, fontsize=10)
        axis.set_xticks(
            range(len(shown)), [LABELS[n] for n in shown], rotation=35, ha="right", fontsize=8
        )
        axis.set_xlim(-0.5, len(shown) - 0.2)
        axis.set_ylim(0, 102)
    axes[0].set_ylabel("true values inside (%)")
    legend_below(drawing)
    return drawing


def remarks(found: Mapping[str, Any], arguments: argparse.Namespace) -> str:
    """What the numbers are, in prose."""
    return (
        f"{found['studies']} studies of {arguments.images} + {arguments.images} images and "
        f"{arguments.classifiers} classifiers, {arguments.studies} of each process and design, "
        f"twice as many inside the family (annotators per image: {', '.join(ANNOTATORS)}; "
        "the last drawn per image); "
        f"{arguments.bootstrap} bootstrap replicates; four chains of {WARMUP} + {DRAWS} draws. "
        "All in percent or percent points, over classifiers and studies. Classifiers of a study "
        "share images and miss together, so standard errors are over studies. "
        "Numbers beside the points: half the mean width. "
        f"{found['diverged']} fits had divergent draws, "
        f"{100 * found['converged'] / found['studies']:.1f} % passed every convergence check "
        "(400 effective draws of every variable are much to ask of half as many draws as by "
        "default); all count."
        + " Lines of the point estimates are of an earlier run of the same studies."
        * arguments.posterior
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write docs/results/coverage.{md,json,png}."""
    parser = argparse.ArgumentParser(prog="python -m experiments.coverage", description=__doc__)
    parser.add_argument("--studies", type=int, default=25)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--classifiers", type=int, default=10)
    parser.add_argument("--bootstrap", type=int, default=200)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    parser.add_argument("--posterior", action="store_true", help="keep the page's other lines")
    arguments = parser.parse_args(argv)
    keys = [
        f"{process}/{design}/{seed}"
        for turn in range(arguments.studies)
        for process, repeats in PROCESSES.items()
        for seed in range(turn * repeats, (turn + 1) * repeats)
        for design in ANNOTATORS
    ]
    replicates = 0 if arguments.posterior else arguments.bootstrap
    size = f"{arguments.images}-{arguments.classifiers}-{replicates}"
    results = resume(
        arguments.work / f"coverage-{size}.jsonl",
        keys,
        lambda key: one_study(key, arguments.images, arguments.classifiers, replicates),
    )
    found = numbers(results)
    if arguments.posterior:
        page = (RESULTS / "coverage.json").read_text(encoding="utf-8")
        found = with_points(found, json.loads(page))
    text = table(found)
    print(text)
    command = (
        f"python -m experiments.coverage --studies {arguments.studies} --images "
        f"{arguments.images} --classifiers {arguments.classifiers} --bootstrap "
        f"{arguments.bootstrap}"
    )
    save("coverage", command, found, text, draw(found), remarks(found, arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
