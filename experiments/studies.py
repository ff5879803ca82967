"""The studies on which the paper's figures are made again: one simulated, one of real annotators.

``simulated``
    136 classifiers, 10,000 + 10,000 images, 36 annotators, from a process outside the family that
    any estimator fits (`bayesrep.simulate_study`). The true adjusted accuracies are known.
``placebo``
    CIFAR-10H's annotators and 20 classifiers on a replication of CIFAR-10's test set from itself
    (`bayesrep.sources.placebo`): 20 annotators per image. A classifier behaves alike on both data
    sets at the same selection frequency, so its adjusted accuracy is, in expectation, its accuracy
    on the reference and the true bias-corrected gap is zero.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bayesrep
from bayesrep.errors import StudyError, reason
from bayesrep.estimators.naive import fewest_annotators
from bayesrep.estimators.replicates import Replicates
from bayesrep.sources.cifar10h import read_cifar10h
from bayesrep.sources.placebo import placebo_replication
from bayesrep.statistics import SufficientStatistics
from bayesrep.study import Study
from experiments.results import save


@dataclass(frozen=True, eq=False)
class Chosen:
    """A study and what is known about it.

    Attributes
    ----------
    label
        "simulated" or "placebo".
    study
        The study.
    truth : float64 [C]
        True adjusted accuracies; of the placebo, the accuracies on the reference.
    true_gap
        True bias-corrected gap, mean over classifiers.
    command
        What makes the result again.
    seed
        Of the study and of all that is random in the experiment.
    """

    label: str
    study: Study
    truth: NDArray[np.float64]
    true_gap: float
    command: str
    seed: int = 0

    @property
    def whole(self) -> Replicates:
        """The study's cells, as the estimators take them."""
        return Replicates.of(SufficientStatistics.from_study(self.study))

    @property
    def annotators(self) -> int:
        """The most annotators that every image has."""
        return fewest_annotators(self.whole)

    @property
    def reference_accuracy(self) -> NDArray[np.float64]:
        """Accuracy of each classifier on the reference, [C]."""
        return self.whole.reference.accuracy()[0]

    @property
    def replication_accuracy(self) -> NDArray[np.float64]:
        """Accuracy of each classifier on the replication, [C]."""
        return self.whole.replication.accuracy()[0]


def make_page(
    name: str,
    description: str | None,
    argv: Sequence[str] | None,
    numbers: Callable[[Chosen], dict[str, Any]],
    table: Callable[[dict[str, Any]], str],
    draw: Callable[[dict[str, Any]], Any],
    remarks: Callable[[dict[str, Any]], str],
) -> int:
    """Make docs/results/NAME-STUDY.{md,json,png} of the study that the command line chooses.

    ``numbers`` holds all that the table, the figure and the remarks show.
    """
    module = name.replace("-", "")
    parser = argparse.ArgumentParser(
        prog=f"python -m experiments.{module}", description=description
    )
    add_options(parser)
    chosen = choose(parser, parser.parse_args(argv))
    found = numbers(chosen)
    text = table(found)
    print(text)
    save(f"{name}-{chosen.label}", chosen.command, found, text, draw(found), remarks(found))
    return 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a study."""
    parser.add_argument("--study", choices=("simulated", "placebo"), default="simulated")
    parser.add_argument("--seed", type=int, default=0, help="of the study and all that is random")
    parser.add_argument(
        "--cifar10h", type=Path, metavar="DIR", help="placebo: holds cifar10h-counts.npy and labels"
    )
    parser.add_argument(
        "--cifar10.1",
        dest="cifar101",
        type=Path,
        metavar="DIR",
        help="placebo: the repository with model_predictions/original_predictions",
    )


def choose(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> Chosen:
    """Return the study that the options of `add_options` ask for.

    Where the placebo's data are missing, one line says so and the program ends with status 2.
    """
    command = f"{parser.prog} --study {arguments.study} --seed {arguments.seed}"
    if arguments.study == "simulated":
        return simulated(arguments.seed, command)
    for option, folder in (("--cifar10h", arguments.cifar10h), ("--cifar10.1", arguments.cifar101)):
        if folder is None or not folder.is_dir():
            given = "is missing" if folder is None else f"{folder} is not a folder"
            parser.exit(2, f"{parser.prog}: {option} {given}; give the folder of its data\n")
    try:
        study = _placebo(arguments.cifar10h, arguments.cifar101, arguments.seed)
    except StudyError as error:
        parser.exit(2, f"{parser.prog}: {reason(error)}\n")
    truth = SufficientStatistics.from_study(study).accuracy("reference")
    command += " --cifar10h DIR --cifar10.1 DIR"
    return Chosen("placebo", study, truth, 0.0, command, arguments.seed)


def simulated(
    seed: int, command: str, *, images: int = 10_000, annotators: int = 36, classifiers: int = 136
) -> Chosen:
    """Simulate the study; smaller ones serve the tests."""
    study = bayesrep.simulate_study(
        seed=seed, images=images, annotators=annotators, classifiers=classifiers
    )
    truth = study.truth
    if truth is None:
        raise ValueError("a simulated study has a truth")
    gap = float((truth.reference_accuracy - truth.adjusted_accuracy).mean())
    return Chosen("simulated", study, truth.adjusted_accuracy, gap, command, seed)


def fractions(annotators: int, *parts: int) -> list[int]:
    """Several numbers of annotators: n over each of ``parts``, rounded up; ascending."""
    return sorted({-(-annotators // part) for part in parts})


def _placebo(cifar10h: Path, cifar101: Path, seed: int) -> Study:
    human = read_cifar10h(
        cifar10h / "cifar10h-counts.npy",
        cifar10h / "cifar10_test_set_original_labels.npy",
        cifar101 / "model_predictions" / "original_predictions",
    )
    return placebo_replication(
        human.counts, human.labels, human.correct, human.classifiers, seed=seed
    )
