"""A placebo on ImageNet with real raters: one crowd for both halves, and a crowd for each.

    python -m experiments.two_crowds --raters raters.npz --imagenetv2 DIR [--splits 10]
      [--images 3000,12000] [--work DIR]

Reassessed ImageNet asked five of 85 raters about the original label of 24,889 validation images,
of which 45 classifiers' published answers are known. Images are split in two halves at random,
raters in two crowds. Either one of the crowds rates both halves, or each its own. One answer about
every image of the second half is a noisy measurement: images with a no stay with probability 1/2.
The others are counted (yes only; maybe and no are none). Both the split and the selection look at
annotators alone, so the true gap between the populations is zero for every classifier. Some of the
images, and all classifiers, are fitted as by default, and as if answers about an image were known
to be independent; intervals of the populations' gaps that know who answered are held against those
that take counts alone, and against the point estimates' by bootstrap. Resumable: finished splits
are kept in DIR.
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
from bayesrep import Study, WorkerAnswers
from bayesrep.errors import ConvergenceWarning, EstimateWarning
from bayesrep.estimators import Naive, Raw
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.table_format import columns, percent
from bayesrep.sources.imagenetv2 import VALIDATION_SET, read_test_set
from bayesrep.sources.raw_answers import read_raw
from experiments.crowds import ESTIMATOR, averaged, bootstrap_estimates, held
from experiments.ledger import resume
from experiments.results import save
from experiments.studies import without_workers

KEPT = 0.5
DESIGNS = ("one crowd", "two crowds")
LABELS = {
    "known": "joint, workers known",
    "unknown": "joint, counts alone",
    "independent_known": "joint, rho = 0, workers known",
    "independent_unknown": "joint, rho = 0, counts alone",
    "raw": "as measured",
    "naive": "naive",
    "em-spline": "EM + spline (K = 2, binomial)",
}
REPLICATES = 100


def published(raters: Path, folder: Path) -> tuple[pl.DataFrame, np.ndarray, tuple[str, ...]]:
    """Answers about original labels (image, worker, yes), correctness [image, C], and names."""
    known = read_test_set(folder, VALIDATION_SET)
    images = pl.DataFrame(
        {
            "image": known.images,
            "label": known.labels.astype(str),
            "row": np.arange(len(known.images), dtype=np.int64),
        }
    )
    answers = read_raw("reassessed", raters).join(
        images, on=["image", "label"], maintain_order="left"
    )
    worker = answers["worker"].cast(pl.Categorical).to_physical().cast(pl.Int64)
    asked = answers["row"].unique(maintain_order=True)
    place = pl.DataFrame({"row": asked, "place": np.arange(len(asked))})
    found = answers.select("row", worker=worker, yes=pl.col("answer") == "yes")
    found = found.join(place, on="row", maintain_order="left").drop("row")
    return found, known.correct.T[asked.to_numpy()], known.classifiers


def split(answers: pl.DataFrame, correct: np.ndarray, images: int, design: str, seed: int) -> Study:
    """One placebo study of so many images, or as many as there are, a half."""
    rng = np.random.default_rng(seed)
    place, worker, yes = (answers[name].to_numpy() for name in ("place", "worker", "yes"))
    second = rng.random(len(correct)) < 0.5
    crowd = rng.permutation(worker.max() + 1) % 2
    wanted = second[place].astype(int) if design == "two crowds" else np.zeros(len(place), int)
    of_crowd = np.flatnonzero(crowd[worker] == wanted)
    of_crowd = rng.permutation(of_crowd)
    # The first answer about an image of the second half, in random order, is the measurement.
    _, first = np.unique(place[of_crowd], return_index=True)
    measured = of_crowd[first]
    measured = measured[second[place[measured]]]
    stays = np.zeros(len(correct), dtype=bool)
    stays[place[measured]] = yes[measured] | (rng.random(len(measured)) < KEPT)
    counted = np.setdiff1d(of_crowd, measured)
    sides = {}
    for role, among in (("reference", ~second), ("replication", second & stays)):
        answered = np.intersect1d(np.flatnonzero(among), place[counted])
        some = rng.permutation(answered)[:images]
        rows = counted[np.isin(place[counted], some)]
        _, at = np.unique(place[rows], return_inverse=True)
        given = WorkerAnswers.of(at, worker[rows].astype(str), yes[rows])
        selected, shown = given.counts(len(some))
        sides[role] = {
            "selected": selected,
            "shown": shown,
            "correct": correct[np.sort(some)],
            "answers": given,
        }
    names = [f"c{at}" for at in range(correct.shape[1])]
    return Study.from_arrays(**sides, classifiers=names)


def one_split(study: Study, seed: int) -> dict[str, Any]:
    """Compute gaps of the populations, and whether every kind of intervals holds 0."""
    nameless = without_workers(study)
    count = len(study.classifiers)
    found: dict[str, Any] = {
        "classifiers": count,
        "images": [len(study.reference.images), len(study.replication.images)],
        "annotators": float(np.mean([data.shown.mean() for data in study.datasets.values()])),
        "converged": True,
    }
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, EstimateWarning):
            warnings.simplefilter("ignore", category)
        for prefix, dependence in (("", None), ("independent_", 0.0)):
            posterior = bayesrep.fit(study, seed=seed, progress=False, dependence=dependence)
            found["converged"] &= bool(posterior["posterior"].attrs["converged"])
            for name, given in (("known", study), ("unknown", nameless)):
                fitted = Fitted(given, posterior)
                gaps = fitted.population_draws - fitted.draws_over_crowds
                gaps = gaps.reshape(-1, count)
                found[prefix + name] = coverage_of_zero(gaps, gaps)
        for method in (Raw(), Naive(), ESTIMATOR):
            values, accuracies = bootstrap_estimates(nameless, method, seed, REPLICATES)
            gaps = accuracies - values
            found[method.name] = coverage_of_zero(gaps[:1], gaps[1:])
    return found


def coverage_of_zero(gaps: np.ndarray, draws: np.ndarray) -> dict[str, float]:
    """The mean of gaps, and whether intervals of their draws or replicates [B, C] hold 0."""
    return {"gap": float(gaps.mean()), **held(draws, np.zeros(draws.shape[1]))}


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over splits with standard errors, by design and number of images."""
    found: dict[str, Any] = {}
    for row in dict.fromkeys(result["key"].rsplit("/", 1)[0] for result in results):
        of = [r for r in results if r["key"].startswith(f"{row}/")]
        facts: dict[str, Any] = {
            "splits": len(of),
            "annotators": float(np.mean([r["annotators"] for r in of])),
            "classifiers": of[0]["classifiers"],
            "images": np.mean([r["images"] for r in of], axis=0).tolist(),
            "converged": float(np.mean([r["converged"] for r in of])),
        }
        for name in LABELS:
            gaps = np.array([r[name]["gap"] for r in of])
            facts[f"{name}_gap"] = float(gaps.mean())
            facts[f"{name}_gap_se"] = float(gaps.std(ddof=1) / np.sqrt(len(of)))
            facts[f"{name}_scatter"] = float(gaps.std(ddof=1))
        found[row] = facts | averaged(of, LABELS)
    return {"designs": found}


def table(found: Mapping[str, Any]) -> str:
    """A line for each design, number of images and kind of interval."""
    header = ["design", "images", "splits", "intervals", "single", "s.e.", "width"]
    header += ["mean", "s.e.", "width", "gap", "s.e.", "sd"]
    lines = [
        [
            row.split("/")[0],
            "+".join(f"{size:,.0f}" for size in facts["images"]),
            str(facts["splits"]),
            label,
            *(percent(facts[f"{name}_single{part}"], 1) for part in ("", "_se")),
            percent(facts[f"{name}_single_width"], 2),
            *(percent(facts[f"{name}_mean{part}"], 1) for part in ("", "_se")),
            percent(facts[f"{name}_mean_width"], 2),
            *(percent(facts[f"{name}_{part}"], 2) for part in ("gap", "gap_se", "scatter")),
        ]
        for row, facts in found["designs"].items()
        for name, label in LABELS.items()
    ]
    return columns(header, lines)


def remarks(found: Mapping[str, Any]) -> str:
    """What the numbers are, in prose."""
    annotators = [facts["annotators"] for facts in found["designs"].values()]
    usable = min(facts["converged"] for facts in found["designs"].values())
    (classifiers,) = {facts["classifiers"] for facts in found["designs"].values()}
    return (
        "Reassessed ImageNet's 85 raters in two random crowds, its 24,889 questions about original "
        f"labels in two random halves, and {classifiers} classifiers. "
        f"{min(annotators):.1f} to {max(annotators):.1f} answers an image are counted. The true "
        "gap of the populations is 0; 'single' is the share of classifiers whose 95 % interval "
        "of it holds 0, 'mean' that of splits whose mean gap's does; joint: of weighted draws, the "
        "correlation of answers integrated or taken to be 0; other methods: by bootstrap, of "
        f"{REPLICATES} replicates; the jackknife takes two answers an image, and some have one. "
        "Widths, gap (mean over splits), its standard error and its scatter over splits (sd) are "
        "in points. Splits are of the same images and raters: drawn anew from those, not from all "
        "that there are. At least "
        f"{percent(usable, 0)} % of the fits of a row ended in draws that hold."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/placebo.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.two_crowds", description=__doc__)
    parser.add_argument("--raters", type=Path, required=True, metavar="raters.npz")
    parser.add_argument("--imagenetv2", type=Path, required=True, metavar="DIR")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--images", default="3000,12000", help="a half, separated by commas")
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    if arguments.splits < 2:
        parser.error("--splits must be 2 at least")
    sizes = [int(size) for size in arguments.images.split(",")]
    answers, correct, _ = published(arguments.raters, arguments.imagenetv2)

    def make(key: str) -> dict[str, Any]:
        design, images, number = key.split("/")
        seed = int(number)
        return one_split(split(answers, correct, int(images), design, seed), seed)

    results = resume(
        arguments.work / "two-crowds.jsonl",
        [
            f"{design}/{images}/{seed}"
            for seed in range(arguments.splits)
            for images in sizes
            for design in DESIGNS
        ],
        make,
    )
    found = numbers(results)
    text = table(found)
    print(text)
    command = (
        "python -m experiments.two_crowds --raters raters.npz --imagenetv2 DIR "
        f"--splits {arguments.splits} --images {arguments.images}"
    )
    save("two-crowds", command, found, text, remarks=remarks(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
