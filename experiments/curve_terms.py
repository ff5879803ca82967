"""Level and slope of accuracy curves on five benchmarks, by which the default priors are chosen.

    python -m experiments.curve_terms --cifar10h DIR --cifar10.1 DIR --chaosnli DIR
                                      --raters raters.npz --imagenetv2 DIR

The joint model with priors of level and slope that have no weight, by the Laplace approximation:
the population's curve on the logit scale, its level and its slope in 2 s - 1.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import bayesrep
from bayesrep import Study
from bayesrep.errors import ConvergenceWarning
from bayesrep.models.options import JointOptions
from bayesrep.report.table_format import columns
from experiments import reannotation, two_crowds
from experiments.results import save
from experiments.studies import placebo_study

WEIGHTLESS: Mapping[str, Any] = {
    "level": (-1.0, 5.0),
    "slope": (2.0, 8.0),
    "dependence": 0.0,
}
IMAGES = 12_000  # a half of ImageNet's


def chaosnli(folder: Path, reference: str, replication: str) -> Study:
    """Items of two tests of inference, by all hundred annotators; the curves are the second's."""
    counts = pl.read_csv(folder / "counts.csv")
    predictions = pl.read_csv(folder / "predictions.csv", infer_schema_length=None)
    sets = [reannotation.Items(counts, predictions, name) for name in (reference, replication)]
    models = sorted(set(sets[0].correct) & set(sets[1].correct))
    first, second = (
        {
            "selected": of.yes[of.predicted],
            "shown": of.total[of.predicted],
            "correct": np.column_stack([of.correct[model][of.predicted] for model in models]),
        }
        for of in sets
    )
    return Study.from_arrays(reference=first, replication=second, classifiers=models)


def imagenet(raters: Path, folder: Path) -> Study:
    """Halves of ImageNet's validation images, labels judged by Reassessed ImageNet's raters."""
    answers, correct, _ = two_crowds.published(raters, folder)
    return two_crowds.split(answers, correct, IMAGES, "one crowd", seed=0)


def terms(study: Study) -> dict[str, Any]:
    """Posterior means and sds of the population's level and slope."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = bayesrep.fit(study, method="laplace", seed=0, progress=False, **WEIGHTLESS)
    draws = np.asarray(posterior["posterior"]["population_curve"])[..., :2].reshape(-1, 2)
    mean, sd = draws.mean(axis=0), draws.std(axis=0, ddof=1)
    return {
        "images": len(study.replication.images),
        "classifiers": len(study.classifiers),
        "level": [float(mean[0]), float(sd[0])],
        "slope": [float(mean[1]), float(sd[1])],
    }


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each benchmark."""
    rows = [
        [
            name,
            f"{row['images']:,}",
            str(row["classifiers"]),
            *(f"{number:.2f}" for term in ("level", "slope") for number in row[term]),
        ]
        for name, row in found.items()
    ]
    header = ["benchmark", "images", "classifiers", "level", "sd", "slope", "sd"]
    return columns(header, rows)


def remarks(found: Mapping[str, Mapping[str, Any]]) -> str:
    """What the numbers lead to."""
    priors = JointOptions()
    said: list[str] = []
    for term in ("level", "slope"):
        middle = np.array([row[term][0] for row in found.values()])
        mean, sd = getattr(priors, term)
        said.append(
            f"the {term} is {middle.mean():.1f} on average with an sd of {middle.std(ddof=1):.1f} "
            f"over the benchmarks, a priori {mean:g} ± {sd:g}"
        )
    return (
        "The population's curve on the replication, on the logit scale: its level at s = ½ and its "
        f"slope in 2 s - 1, with priors of no weight. Together: {' and '.join(said)}."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/published.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.curve_terms", description=__doc__)
    folders = ("cifar10h", "cifar10.1", "chaosnli", "raters", "imagenetv2")
    for name in folders:
        parser.add_argument(f"--{name}", dest=name.replace(".", ""), type=Path, required=True)
    arguments = parser.parse_args(argv)
    studies = {
        "ImageNet's labels by raters": imagenet(arguments.raters, arguments.imagenetv2),
        "MNLI, ChaosNLI's annotators": chaosnli(arguments.chaosnli, "snli", "mnli"),
        "SNLI, ChaosNLI's annotators": chaosnli(arguments.chaosnli, "mnli", "snli"),
        "CIFAR-10H": placebo_study(arguments.cifar10h, arguments.cifar101, 0),
        "simulated after ImageNet": bayesrep.simulate_study(seed=0, classifiers=20),
    }
    found = {name: terms(study) for name, study in studies.items()}
    text = table(found)
    print(text)
    command = "python -m experiments.curve_terms " + " ".join(
        f"--{name} {'raters.npz' if name == 'raters' else 'DIR'}" for name in folders
    )
    save("curve-terms", command, {"benchmarks": found}, text, remarks=remarks(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
