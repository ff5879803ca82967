"""What each way of choosing images leaves of the gap, on real annotators: it should be nothing.

    python -m experiments.match_images --cifar10h DIR --cifar10.1 DIR
      [--raters raters.npz --imagenetv2 DIR] [--splits 100]

CIFAR-10's test images with the human answers of CIFAR-10H are split at random into a reference, of
which images stay that six of their annotators all select, and a pool. Another 3, 5 or 10 answers of
each image are what matching sees; 2,000 images of the pool are chosen. "adaptive" has as many
answers about the pool on average: two about each image, and then by rounds where they count, ten at
most. The answers that are left, 31 to 47 an image, and 20 classifiers measure what was chosen: a
perfect choice has the reference's mean selection frequency, and classifiers are as right on it.

The same with Reassessed ImageNet: five raters' answers about the original label of 24,889
validation images and 8 classifiers; one yes makes an image of the first half one of the reference,
2 or 3 answers are what matching sees (adaptive begins with one, three at most), 3,000 images are
chosen, and the rest of the answers measure them.
Resumable: finished splits are kept in DIR.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayesrep.errors import EstimateWarning, IdentificationWarning
from bayesrep.planning import MATCHING_METHODS, Matching, match_images, next_answers
from bayesrep.report.table_format import columns, percent
from bayesrep.sources.cifar10h import read_cifar10h
from bayesrep.sources.placebo import deal_answers, selections
from experiments.ledger import resume
from experiments.results import save
from experiments.two_crowds import published


@dataclass(frozen=True, eq=False)
class Annotated:
    """Images whose answers are dealt out.

    `keep` answers, all yes, make an image one of the reference; matching sees `answers`, `first`
    of them before an adaptive choice.
    """

    selected: np.ndarray
    shown: np.ndarray
    correct: np.ndarray
    keep: int
    answers: tuple[int, ...]
    first: int
    size: int


def cifar10h(folder: Path, predictions: Path) -> Annotated:
    """CIFAR-10H with the published classifiers of CIFAR-10.1."""
    human = read_cifar10h(
        folder / "cifar10h-counts.npy",
        folder / "cifar10_test_set_original_labels.npy",
        predictions / "model_predictions" / "original_predictions",
    )
    selected, shown = selections(human.counts, human.labels)
    return Annotated(selected, shown, human.correct, 6, (3, 5, 10), 2, 2_000)


def reassessed(raters: Path, folder: Path) -> Annotated:
    """Reassessed ImageNet: five answers about each image's original label."""
    answers, correct, _ = published(raters, folder)
    place = answers["place"].to_numpy()
    yes = np.bincount(place, answers["yes"].to_numpy(), minlength=len(correct)).astype(np.int64)
    shown = np.bincount(place, minlength=len(correct))
    return Annotated(yes, shown, correct, 1, (2, 3), 1, 3_000)


def one_split(key: str, sets: Mapping[str, Annotated]) -> dict[str, Any]:
    """What is left by every method, as measured and as expected beforehand."""
    name, number, split = key.split("/")
    data, answers, seed = sets[name], int(number), int(split)
    most = max(data.answers)
    rng = np.random.default_rng(seed)
    half = rng.permutation(len(data.shown)) < len(data.shown) // 2
    kept, matched = deal_answers(rng, data.selected, data.shown, (data.keep, most))
    rest = data.shown - data.keep - most
    measured = (data.selected - kept - matched) / rest
    reference, pool = np.flatnonzero(half & (kept == data.keep)), np.flatnonzero(~half)
    said = rng.permuted(np.arange(most) < matched[:, None], axis=1)  # one after the other
    first = np.cumsum(np.pad(said, ((0, 0), (1, 0))), axis=1)

    def match(
        asked: np.ndarray, replicates: int = 50
    ) -> tuple[Matching, tuple[np.ndarray, np.ndarray]]:
        known = first[reference, answers], np.full(len(reference), answers)
        counts = first[pool, asked], asked
        options = {"size": data.size, "seed": seed, "replicates": replicates}
        return match_images(known, counts, **options), counts

    with warnings.catch_warnings():
        for category in (EstimateWarning, IdentificationWarning):
            warnings.simplefilter("ignore", category)
        chosen_by = dict(match(np.full(len(pool), answers))[0].chosen)
        if answers < most:
            asked, total = np.full(len(pool), data.first), answers * len(pool)
            while asked.sum() < total:
                count = min(len(pool) // 4, total - int(asked.sum()))
                more = next_answers(*match(asked, 2), count=count, most=most, seed=seed)
                if not len(more):
                    break
                asked[more] += 1
            chosen_by["adaptive"] = match(asked)[0].chosen["posterior"]
    result: dict[str, Any] = {}
    for method, chosen in chosen_by.items():
        rows = pool[chosen.images]
        result[method] = {
            "frequency": float(measured[reference].mean() - measured[rows].mean()),
            "accuracy": float(data.correct[reference].mean() - data.correct[rows].mean()),
            "expected": chosen.gap,
            "lower": chosen.lower,
            "upper": chosen.upper,
        }
    return result


def numbers(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Means over splits with standard errors, a row for each set, number of answers and method."""
    rows: list[dict[str, Any]] = []
    for kind in dict.fromkeys(each["key"].rsplit("/", 1)[0] for each in results):
        of = [each for each in results if each["key"].startswith(f"{kind}/")]
        images, answers = kind.split("/")
        for name in (*MATCHING_METHODS, "adaptive"):
            if name not in of[0]:
                continue
            row: dict[str, Any] = {"images": images, "answers": int(answers), "method": name}
            row["splits"] = len(of)
            for fact in ("frequency", "accuracy", "expected"):
                values = np.array([each[name][fact] for each in of])
                row[fact] = float(values.mean())
                row[f"{fact}_se"] = float(values.std(ddof=1) / np.sqrt(len(values)))
            rows.append(row)
    published = {
        (row["images"], row["answers"]): row["frequency"]
        for row in rows
        if row["method"] == "published"
    }
    for row in rows:
        row["share"] = row["frequency"] / published[row["images"], row["answers"]]
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/matching.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.match_images", description=__doc__)
    parser.add_argument("--cifar10h", type=Path, required=True, metavar="DIR")
    parser.add_argument("--cifar10.1", dest="cifar101", type=Path, required=True, metavar="DIR")
    parser.add_argument("--raters", type=Path)
    parser.add_argument("--imagenetv2", type=Path, metavar="DIR")
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    if arguments.splits < 2:
        parser.error("--splits must be 2 at least")
    if (arguments.raters is None) != (arguments.imagenetv2 is None):
        parser.error("--raters and --imagenetv2 go together")
    sets = {"CIFAR-10H": cifar10h(arguments.cifar10h, arguments.cifar101)}
    command = "python -m experiments.match_images --cifar10h DIR --cifar10.1 DIR"
    if arguments.raters is not None:
        sets["Reassessed ImageNet"] = reassessed(arguments.raters, arguments.imagenetv2)
        command += " --raters FILE --imagenetv2 DIR"
    kinds = [(name, answers) for name, data in sets.items() for answers in data.answers]
    keys = [
        f"{name}/{answers}/{seed}" for seed in range(arguments.splits) for name, answers in kinds
    ]
    ledger = arguments.work / "match-images.jsonl"
    found = resume(ledger, keys, lambda key: one_split(key, sets))
    rows = numbers(sorted(found, key=lambda each: kinds.index(_kind(each["key"]))))
    header = [
        "images",
        "answers",
        "method",
        "frequency",
        "s.e.",
        "of published",
        "accuracy",
        "s.e.",
        "expected",
    ]
    text = columns(
        header,
        [
            [
                row["images"],
                str(row["answers"]),
                row["method"],
                percent(row["frequency"], 2),
                percent(row["frequency_se"], 2),
                percent(row["share"], 0),
                percent(row["accuracy"], 2),
                percent(row["accuracy_se"], 2),
                percent(row["expected"], 2),
            ]
            for row in rows
        ],
    )
    print(text)
    command += f" --splits {arguments.splits}"
    remarks = (
        "The reference's mean minus that of the images chosen, in points, over "
        f"{arguments.splits} random splits: of the selection frequency by held-out answers (and as "
        "a share of what the published way leaves), of the mean accuracy of classifiers, and of "
        "the selection frequency as it was expected before anything was measured again."
    )
    save("match-images", command, {"rows": rows}, text, remarks=remarks)
    return 0


def _kind(key: str) -> tuple[str, int]:
    name, answers, _ = key.split("/")
    return name, int(answers)


if __name__ == "__main__":
    sys.exit(main())
