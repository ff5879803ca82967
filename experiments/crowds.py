"""Intervals that know workers, and intervals that do not: coverage where workers differ.

    python -m experiments.crowds [--studies 30] [--images 2000] [--classifiers 10]
                                 [--rows NAME,NAME] [--work DIR] [--finished] [--joint]

Simulated studies: scenarios two-crowds, one-crowd, two-panels, and workers alike (one crowd
without any difference between its workers). 95 % intervals of single classifiers and of their mean:
of the joint model, with the answers by worker, with counts alone, and with counts and what the
study says of who answered; and of the worker model, all by Laplace and as by default; and of
EM + spline, by its bootstrap with workers and without. Resumable: finished studies are kept in DIR,
and `--finished` makes the page of those alone. `--joint` makes the joint model's lines anew and
keeps the page's others, which are of the same studies and more.
"""

import argparse
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bayesrep
from bayesrep import Study, SufficientStatistics, WorkerAnswers
from bayesrep.errors import ConvergenceWarning, EstimateWarning
from bayesrep.estimators import EMSpline, Estimator
from bayesrep.estimators.replicates import bootstrap
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.table_format import columns, percent
from bayesrep.studies.annotated import AnnotatedSet
from experiments.ledger import resume
from experiments.results import read_numbers, save
from experiments.studies import without_workers

ALIKE = "workers alike"
SCENARIOS = ("two-crowds", "one-crowd", "two-panels", ALIKE)
KINDS = {
    "known": "joint, workers known",
    "unknown": "joint, counts alone",
    "told": "joint, people told",
    "model": "worker model",
    "spline": "EM + spline, workers known",
    "spline_unknown": "EM + spline, counts alone",
}
POINTS = ("spline", "spline_unknown")
JOINT = ("known", "unknown", "told")
ESTIMATOR = EMSpline(components=2, loss="binomial", bounds="everywhere")
REPLICATES = 200
WORKERS = 100
QUANTILES = (0.025, 0.975)


def simulated(scenario: str, seed: int, images: int, classifiers: int) -> Study:
    """A study of a scenario; where workers are alike its answers are dealt out to them."""
    if scenario != ALIKE:
        return bayesrep.simulate_study(
            seed=500 + seed, images=images, classifiers=classifiers, scenario=scenario
        )
    study = bayesrep.simulate_study(
        seed=500 + seed, images=images, annotators=10, classifiers=classifiers
    )
    random = np.random.default_rng(seed)
    datasets: dict[str, AnnotatedSet] = {}
    for role, data in study.datasets.items():
        image = np.repeat(np.arange(len(data.images)), data.shown)
        number = np.concatenate([np.arange(n) for n in data.shown])
        dealt = [random.choice(WORKERS, n, replace=False) for n in data.shown]
        answers = WorkerAnswers.of(image, np.concatenate(dealt), number < data.selected[image])
        datasets[role] = replace(data, answers=answers)
    return replace(study, datasets=datasets)


def one_study(key: str, images: int, classifiers: int, *, others: bool = True) -> dict[str, Any]:
    """Compute coverage, widths and errors of the joint model's intervals, or of all kinds."""
    scenario, number = key.rsplit("/", 1)
    seed = int(number)
    study = simulated(scenario, seed, images, classifiers)
    assert study.truth is not None
    truth = study.truth.adjusted_accuracy
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, EstimateWarning):
            warnings.simplefilter("ignore", category)
        nameless = without_workers(study)
        given = {"known": (study, "joint"), "told": (nameless, "joint")}
        given |= {"model": (study, "workers")} if others else {}
        fits = {
            name: Fitted(
                of, bayesrep.fit(of, model=model, method="laplace", seed=seed, progress=False)
            )
            for name, (of, model) in given.items()
        }
        both = (study, nameless) if others else ()
        values = {
            name: bootstrap_estimates(of, ESTIMATOR, seed)[0]
            for name, of in zip(POINTS, both, strict=others)
        }
    draws = {name: each.draws_over_crowds for name, each in fits.items()}
    draws["unknown"] = fits["known"].adjusted_draws
    middle = {name: each.mean(axis=(0, 1)) for name, each in draws.items()}
    middle |= {name: of[0] for name, of in values.items()}
    draws |= {name: of[1:] for name, of in values.items()}
    return {
        name: {
            **held(each.reshape(-1, classifiers), truth),
            "error": float(middle[name].mean() - truth.mean()),
            "sd": float(each.mean(axis=-1).std()),
        }
        for name, each in draws.items()
    }


def bootstrap_estimates(
    study: Study, estimator: Estimator, seed: int, size: int = REPLICATES
) -> tuple[np.ndarray, np.ndarray]:
    """Estimates, and accuracies on the reference, of the study and of replicates: [1 + B, C]."""
    blocks = list(bootstrap(study, SufficientStatistics.of(study), size=size, seed=seed))
    pairs = [(estimator(block, seed=seed).value, block.reference.accuracy()) for block in blocks]
    values, accuracies = (
        np.concatenate([rows[0][:1], *(row[1:] for row in rows)])  # row 0 of each is the study
        for rows in zip(*pairs, strict=True)
    )
    return values, accuracies


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
        if len(of) < 2:
            continue
        kinds = [kind for kind in KINDS if kind in of[0]]
        found[scenario] = {"studies": len(of), **averaged(of, kinds)}
        for kind in kinds:
            errors = np.array([r[kind]["error"] for r in of])
            relative = errors / np.array([r[kind]["sd"] for r in of])
            found[scenario][f"{kind}_rmse"] = float(np.sqrt(np.mean(np.square(errors))))
            found[scenario][f"{kind}_z"] = float(np.sqrt(np.mean(np.square(relative))))
    return {"scenarios": found}


def add_page_facts(found: Mapping[str, Any], page: Mapping[str, Any]) -> dict[str, Any]:
    """Add a page's facts of the other kinds to those found of the joint model."""
    rows: dict[str, Any] = {}
    for scenario, facts in found["scenarios"].items():
        old = page["scenarios"][scenario]
        others = [kind for kind in KINDS if kind not in JOINT]
        kept = {name: value for name, value in old.items() if name.startswith((*others,))}
        rows[scenario] = facts | {f"{name}_studies": old["studies"] for name in others} | kept
    return {"scenarios": rows}


def averaged(results: Sequence[Mapping[str, Any]], kinds: Iterable[str]) -> dict[str, float]:
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
    header = ["scenario", "studies", "intervals", "single", "s.e.", "width"]
    header += ["mean", "s.e.", "width", "error", "z"]
    return columns(
        header,
        [
            [
                scenario,
                str(facts.get(f"{name}_studies", facts["studies"])),
                label,
                *(percent(facts[f"{name}_single{part}"], 1) for part in ("", "_se")),
                percent(facts[f"{name}_single_width"], 2),
                *(percent(facts[f"{name}_mean{part}"], 1) for part in ("", "_se")),
                percent(facts[f"{name}_mean_width"], 2),
                percent(facts[f"{name}_rmse"], 2),
                f"{facts[f'{name}_z']:.2f}",
            ]
            for scenario, facts in found["scenarios"].items()
            for name, label in KINDS.items()
        ],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/crowds.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.crowds", description=__doc__)
    parser.add_argument("--studies", type=int, default=30)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--classifiers", type=int, default=10)
    parser.add_argument("--rows", type=lambda text: tuple(text.split(",")), default=SCENARIOS)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    parser.add_argument("--finished", action="store_true")
    parser.add_argument("--joint", action="store_true", help="keep the page's other lines")
    arguments = parser.parse_args(argv)
    if arguments.studies < 2:
        parser.error("--studies must be 2 at least")
    if unknown := sorted(set(arguments.rows) - set(SCENARIOS)):
        parser.error(f"--rows: {unknown[0]} is none of {', '.join(SCENARIOS)}")
    size = arguments.images, arguments.classifiers
    kind = "crowds-joint" if arguments.joint else "crowds"
    ledger = arguments.work / f"{kind}-{size[0]}-{size[1]}.jsonl"
    make = partial(one_study, others=not arguments.joint)
    keys = [f"{row}/{seed}" for seed in range(arguments.studies) for row in arguments.rows]
    results = resume(ledger, keys, lambda key: make(key, *size), finished=arguments.finished)
    found = numbers(results)
    if arguments.joint:
        found = add_page_facts(found, read_numbers("crowds"))
    text = table(found)
    print(text)
    command = (
        f"python -m experiments.crowds --studies {arguments.studies} --images {size[0]} "
        f"--classifiers {size[1]}{' --joint' if arguments.joint else ''}"
    )
    remarks = (
        f"{size[0]} + {size[0]} images and {size[1]} classifiers, 10 answers an image; posteriors "
        "by Laplace (draws count where the certificate was refused), bootstraps of "
        f"{REPLICATES} replicates. 'single': true values inside 95 % intervals of single "
        "classifiers; 'mean': of their mean; 'error': root mean square error of the mean's "
        "estimate; 'z': of that error over the standard deviation that its draws have, 1 where "
        "intervals are right. All but z in percent or points; standard errors are over studies."
    )
    save("crowds", command, found, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
