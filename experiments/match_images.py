"""What each way of choosing images leaves of the gap, on real annotators: it should be nothing.

    python -m experiments.match_images --cifar10h DIR --cifar10.1 DIR [--splits 100]

CIFAR-10's test images with the human answers of CIFAR-10H are split at random into a reference, of
which images stay that six of their annotators all select, and a pool. Another 3, 5 or 10 answers of
each image are what matching sees; 2,000 images of the pool are chosen. "adaptive" has as many
answers about the pool on average: two about each image, and then by rounds where they count, ten at
most. The answers that are left, 31 to 47 an image, and 20 classifiers measure what was chosen: a
perfect choice has the reference's mean selection frequency, and classifiers are as right on it.
Resumable: finished splits are kept in DIR.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesrep.errors import IdentificationWarning
from bayesrep.lab import METHODS, Matching, match_images, next_answers
from bayesrep.report.text import columns, percent
from bayesrep.sources.cifar10h import Cifar10H, read_cifar10h
from bayesrep.sources.placebo import dealt, selections
from experiments.ledger import resume
from experiments.results import save

SIZE, FILTER, MOST = 2_000, 6, 10
ANSWERS = (3, 5, 10)


def one_split(key: str, human: Cifar10H) -> dict[str, Any]:
    """What is left by every method, as measured and as expected beforehand."""
    answers, seed = (int(part) for part in key.split("/"))
    selected, shown = selections(human.counts, human.labels)
    rng = np.random.default_rng(seed)
    half = rng.permutation(len(shown)) < len(shown) // 2
    kept, matched = dealt(rng, selected, shown, (FILTER, MOST))
    measured = (selected - kept - matched) / (shown - FILTER - MOST)
    reference, pool = np.flatnonzero(half & (kept == FILTER)), np.flatnonzero(~half)
    said = rng.permuted(np.arange(MOST) < matched[:, None], axis=1)  # one after the other
    first = np.cumsum(np.pad(said, ((0, 0), (1, 0))), axis=1)

    def match(asked: np.ndarray) -> tuple[Matching, tuple[np.ndarray, np.ndarray]]:
        known = first[reference, answers], np.full(len(reference), answers)
        counts = first[pool, asked], asked
        return match_images(known, counts, size=SIZE, seed=seed), counts

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        chosen_by = dict(match(np.full(len(pool), answers))[0].chosen)
        if answers < MOST:
            asked, total = np.full(len(pool), 2), answers * len(pool)
            while asked.sum() < total:
                count = min(len(pool) // 4, total - int(asked.sum()))
                asked[next_answers(*match(asked), count=count, most=MOST, seed=seed)] += 1
            chosen_by["adaptive"] = match(asked)[0].chosen["posterior"]
    result: dict[str, Any] = {}
    for name, chosen in chosen_by.items():
        rows = pool[chosen.images]
        result[name] = {
            "frequency": float(measured[reference].mean() - measured[rows].mean()),
            "accuracy": float(human.correct[reference].mean() - human.correct[rows].mean()),
            "expected": chosen.gap,
            "lower": chosen.lower,
            "upper": chosen.upper,
        }
    return result


def numbers(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Means over splits with standard errors, a row for each number of answers and method."""
    rows: list[dict[str, Any]] = []
    for answers in ANSWERS:
        of = [each for each in results if each["key"].startswith(f"{answers}/")]
        for name in (*METHODS, "adaptive"):
            if name not in of[0]:
                continue
            row: dict[str, Any] = {"answers": answers, "method": name, "splits": len(of)}
            for fact in ("frequency", "accuracy", "expected"):
                values = np.array([each[name][fact] for each in of])
                row[fact] = float(values.mean())
                row[f"{fact}_se"] = float(values.std(ddof=1) / np.sqrt(len(values)))
            rows.append(row)
    published = {row["answers"]: row["frequency"] for row in rows if row["method"] == "published"}
    for row in rows:
        row["share"] = row["frequency"] / published[row["answers"]]
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write docs/results/match-images.{md,json}."""
    parser = argparse.ArgumentParser(prog="python -m experiments.match_images", description=__doc__)
    parser.add_argument("--cifar10h", type=Path, required=True, metavar="DIR")
    parser.add_argument("--cifar10.1", dest="cifar101", type=Path, required=True, metavar="DIR")
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    if arguments.splits < 2:
        parser.error("--splits must be 2 at least")
    human = read_cifar10h(
        arguments.cifar10h / "cifar10h-counts.npy",
        arguments.cifar10h / "cifar10_test_set_original_labels.npy",
        arguments.cifar101 / "model_predictions" / "original_predictions",
    )
    keys = [f"{answers}/{seed}" for seed in range(arguments.splits) for answers in ANSWERS]
    ledger = arguments.work / "match-images.jsonl"
    rows = numbers(resume(ledger, keys, lambda key: one_split(key, human)))
    header = [
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
    command = (
        "python -m experiments.match_images --cifar10h DIR --cifar10.1 DIR "
        f"--splits {arguments.splits}"
    )
    remarks = (
        "The reference's mean less that of the 2,000 images chosen, in points, over "
        f"{arguments.splits} random splits: of the selection frequency by held-out answers (and as "
        "a share of what the published way leaves), of the accuracy of 20 classifiers, and of the "
        "selection frequency as it was expected before anything was measured again."
    )
    save("match-images", command, {"rows": rows}, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
