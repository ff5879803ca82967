"""Two studies whose truth is known: one simulated, one of real annotators.

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
from dataclasses import dataclass, replace
from pathlib import Path

import bayesrep
from bayesrep.errors import StudyError, reason
from bayesrep.sources.cifar10h import read_cifar10h
from bayesrep.sources.placebo import placebo_replication
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from experiments.papers.study_facts import StudyFacts


def without_workers(study: Study) -> Study:
    """The study with counts alone, of which nobody knows who answered."""
    datasets = {role: replace(data, answers=None) for role, data in study.datasets.items()}
    return replace(study, datasets=datasets)


@dataclass(frozen=True, eq=False, kw_only=True)
class Chosen(StudyFacts):
    """A study whose truth is known, for a page of results.

    Attributes
    ----------
    label
        "simulated" or "placebo", whose true adjusted accuracies are those on the reference.
    command
        What makes the result again.
    """

    label: str
    command: str


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
        study = placebo_study(arguments.cifar10h, arguments.cifar101, arguments.seed)
    except StudyError as error:
        parser.exit(2, f"{parser.prog}: {reason(error)}\n")
    truth = SufficientStatistics.from_study(study).accuracy("reference")
    command += " --cifar10h DIR --cifar10.1 DIR"
    return Chosen(study, truth, 0.0, arguments.seed, label="placebo", command=command)


def simulated(
    seed: int, command: str, *, images: int = 10_000, annotators: int = 36, classifiers: int = 136
) -> Chosen:
    """Simulate the study; smaller ones serve the tests."""
    study = bayesrep.simulate_study(
        seed=seed, images=images, annotators=annotators, classifiers=classifiers
    )
    known = StudyFacts.from_study(study, seed=seed)
    return Chosen(study, known.truth, known.true_gap, seed, label="simulated", command=command)


def placebo_study(cifar10h: Path, cifar101: Path, seed: int) -> Study:
    """Halves of CIFAR-10 with the annotators of CIFAR-10H and the classifiers of CIFAR-10.1."""
    human = read_cifar10h(
        cifar10h / "cifar10h-counts.npy",
        cifar10h / "cifar10_test_set_original_labels.npy",
        cifar101 / "model_predictions" / "original_predictions",
    )
    return placebo_replication(
        human.counts, human.labels, human.correct, human.classifiers, seed=seed
    )
