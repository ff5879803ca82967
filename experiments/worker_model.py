"""The worker model beside the joint model whose intervals know workers: coverage and width.

    python -m experiments.worker_model [--studies 20] [--images 2000] [--classifiers 10]
                                       [--rows NAME,NAME] [--work DIR] [--finished]

Simulated studies whose workers differ, fitted by Laplace: two crowds, one crowd for both data sets,
two panels of ten, and one crowd with no difference at all between its workers. 95 % intervals of
single classifiers and of their mean, by both models. Resumable: finished studies are kept in DIR,
and `--finished` makes the page of those alone.
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
from bayesrep import Study, WorkerAnswers
from bayesrep.errors import ConvergenceWarning
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.text import columns, percent
from bayesrep.studies.annotated import AnnotatedSet
from experiments.crowds import averaged, held
from experiments.ledger import done, resume
from experiments.results import save

MODELS = {"joint": "joint, workers known", "workers": "worker model"}
ALIKE = "workers alike"
SCENARIOS = ("two-crowds", "one-crowd", "two-panels", ALIKE)
WORKERS = 100


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


def one_study(key: str, images: int, classifiers: int) -> dict[str, Any]:
    """What both models' intervals hold, and their widths."""
    scenario, number = key.rsplit("/", 1)
    study = simulated(scenario, int(number), images, classifiers)
    assert study.truth is not None
    truth = study.truth.adjusted_accuracy
    found: dict[str, Any] = {}
    for model in MODELS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            posterior = bayesrep.fit(
                study, model=model, method="laplace", seed=int(number), progress=False
            )
        draws = Fitted(study, posterior).together.reshape(-1, classifiers)
        error = float(draws.mean() - truth.mean())
        found[model] = {**held(draws, truth), "error": error, "sd": float(draws.mean(axis=1).std())}
    return found


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over studies with standard errors, by scenario."""
    found: dict[str, Any] = {}
    for scenario in SCENARIOS:
        of = [r for r in results if r["key"].startswith(f"{scenario}/")]
        if len(of) < 2:
            continue
        facts = averaged(of, MODELS) | {"studies": len(of)}
        for model in MODELS:
            errors = np.array([r[model]["error"] for r in of])
            relative = errors / np.array([r[model]["sd"] for r in of])
            facts[f"{model}_rmse"] = float(np.sqrt(np.mean(np.square(errors))))
            facts[f"{model}_z"] = float(np.sqrt(np.mean(np.square(relative))))
        found[scenario] = facts
    return {"scenarios": found}


def table(found: Mapping[str, Any]) -> str:
    """One line for each scenario and model."""
    header = ["scenario", "studies", "intervals", "single", "s.e.", "width"]
    header += ["mean", "s.e.", "width", "error", "z"]
    return columns(
        header,
        [
            [
                scenario,
                str(facts["studies"]),
                label,
                *(percent(facts[f"{model}_single{part}"], 1) for part in ("", "_se")),
                percent(facts[f"{model}_single_width"], 2),
                *(percent(facts[f"{model}_mean{part}"], 1) for part in ("", "_se")),
                percent(facts[f"{model}_mean_width"], 2),
                percent(facts[f"{model}_rmse"], 2),
                f"{facts[f'{model}_z']:.2f}",
            ]
            for scenario, facts in found["scenarios"].items()
            for model, label in MODELS.items()
        ],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write docs/results/worker-model.{md,json}."""
    parser = argparse.ArgumentParser(prog="python -m experiments.worker_model", description=__doc__)
    parser.add_argument("--studies", type=int, default=20)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--classifiers", type=int, default=10)
    parser.add_argument("--rows", type=lambda text: tuple(text.split(",")), default=SCENARIOS)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    parser.add_argument("--finished", action="store_true")
    arguments = parser.parse_args(argv)
    if unknown := sorted(set(arguments.rows) - set(SCENARIOS)):
        parser.error(f"--rows: {unknown[0]} is none of {', '.join(SCENARIOS)}")
    size = arguments.images, arguments.classifiers
    ledger = arguments.work / f"worker-model-{size[0]}-{size[1]}.jsonl"
    keys = [f"{row}/{seed}" for seed in range(arguments.studies) for row in arguments.rows]
    if arguments.finished:
        kept = done(ledger)
        results = [kept[key] for key in keys if key in kept]
    else:
        results = resume(ledger, keys, lambda key: one_study(key, *size))
    found = numbers(results)
    text = table(found)
    print(text)
    command = (
        f"python -m experiments.worker_model --studies {arguments.studies} --images {size[0]} "
        f"--classifiers {size[1]}"
    )
    remarks = (
        f"{size[0]} + {size[0]} images and {size[1]} classifiers, 10 answers an image, by Laplace "
        "(draws count where the certificate was refused). 'single': true values inside 95 % "
        "intervals of single classifiers; 'mean': of their mean; 'error': root mean square error "
        "of the mean's estimate; 'z': of that error over the posterior's standard deviation, 1 "
        "where intervals are right. All but z in percent or points; standard errors are over "
        "studies."
    )
    save("worker-model", command, found, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
