"""Standard errors over workers on public crowds, held against differences that are chance alone.

    python -m experiments.public_crowds DIR --raters raters.npz [--splits 60]

DIR holds answers by worker of seven published tasks (CSV: item, worker, answer), `--raters` those
of Reassessed ImageNet. Items are split in two halves at random, and each half is answered by half
of the workers ("two crowds") or by all ("one crowd"): the mean selection frequencies of the halves
are of the same items and workers, so that they differ by chance alone. z is their difference over
its standard error, over images and workers, of `bayesrep.describe_crowd`: 1.96 should hold 95 %.
Splits are of the same answers, so that they tell less than as many studies would.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import bayesrep
from bayesrep import Study, WorkerAnswers
from bayesrep.report.table_format import columns, percent
from bayesrep.sources.raw_answers import read_raw
from experiments.results import save

TASKS: Mapping[str, tuple[str, str, Callable[[pl.Expr], pl.Expr]]] = {
    "sites for adults": ("adultcontent3", "answer", lambda said: said != "G"),
    "spam, MTurk": ("gal-hitspam-usingmturk", "answer", lambda said: said == "YES"),
    "spam, CrowdFlower": ("gal-hitspam-usingcrowdflower", "answer", lambda said: said == "Yes"),
    "medical relations": (
        "crowdtruth-medical-relex",
        "selected",
        lambda said: said.str.contains("CAUSES"),
    ),
    "relations of persons": (
        "crowdtruth-opendomain-relex",
        "selected",
        lambda said: said.str.contains("per:origin"),
    ),
    "birds": ("cubam-bluebirds", "answer", lambda said: said == "1"),
    "faces": ("pvldb2017-faces", "answer", lambda said: said == "0"),
}
"""File, column, and which answers are a yes."""
DESIGNS = ("two crowds", "one crowd")
LIMIT = 1.96


def read_tasks(folder: Path, raters: Path) -> Iterator[tuple[str, pl.DataFrame]]:
    """Answers (item, worker: numbers; yes) of every task, a worker's first about an item."""
    for name, (file, column, is_yes) in TASKS.items():
        table = pl.read_csv(folder / f"{file}.csv.gz", infer_schema=False)
        yield name, number_answers(table.with_columns(yes=is_yes(pl.col(column).fill_null(""))))
    rated = read_raw("reassessed", raters).with_columns(
        item=pl.concat_str("image", "label", separator="|"), yes=pl.col("answer") == "yes"
    )
    yield "ImageNet's labels", number_answers(rated)


def number_answers(table: pl.DataFrame) -> pl.DataFrame:
    """The first answer of every worker about every item, both numbered from 0."""
    first = table.unique(["item", "worker"], keep="first", maintain_order=True)
    ranks = (pl.col(name).rank("dense").cast(pl.Int64) - 1 for name in ("item", "worker"))
    return first.select(*ranks, "yes")


def difference(answers: pl.DataFrame, design: str, seed: int) -> tuple[float, float, float]:
    """Difference of two halves' means, and its standard errors over images and over workers."""
    random = np.random.default_rng(seed)
    item, worker, yes = (answers[name].to_numpy() for name in ("item", "worker", "yes"))
    second_item, second_worker = (random.random(of.max() + 1) < 0.5 for of in (item, worker))
    halves: dict[str, Any] = {}
    for role, second in (("reference", False), ("replication", True)):
        among = second_item[item] == second
        if design == "two crowds":
            among &= second_worker[worker] == second
        places = np.unique(item[among], return_inverse=True)[1]
        given = WorkerAnswers.of(places, worker[among].astype(str), yes[among])
        selected, shown = given.counts(int(places.max()) + 1)
        nobody = np.zeros((len(selected), 1), dtype=bool)
        halves[role] = {"selected": selected, "shown": shown, "correct": nobody, "answers": given}
    crowd = bayesrep.describe_crowd(Study.from_arrays(**halves, classifiers=["none"]))
    one, other = crowd.datasets["selection_frequency"].to_list()
    assert crowd.difference_images is not None
    assert crowd.difference_workers is not None
    return one - other, crowd.difference_images, crowd.difference_workers


def score(answers: pl.DataFrame, design: str, splits: int) -> dict[str, float]:
    """How large differences are, what is said of them, and how often 1.96 errors hold them."""
    made = np.array([difference(answers, design, seed) for seed in range(splits)])
    z = made[:, 0] / np.hypot(made[:, 1], made[:, 2])
    counts = np.sort(answers["worker"].value_counts()["count"].to_numpy())
    return {
        "items": answers["item"].n_unique(),
        "workers": len(counts),
        "answers": len(answers),
        "largest_two": float(counts[-2:].sum() / counts.sum()),
        "difference": float(np.sqrt(np.square(made[:, 0]).mean())),
        "error_images": float(made[:, 1].mean()),
        "error_workers": float(made[:, 2].mean()),
        "z": float(np.sqrt(np.square(z).mean())),
        "held": float((np.abs(z) < LIMIT).mean()),
    }


def table(found: Mapping[str, Mapping[str, float]]) -> str:
    """A line for each task and design."""
    header = ["task", "design", "items", "workers", "answers", "of two workers", "difference"]
    header += ["error, images", "error, workers", "z", "held"]
    rows = [
        [
            *label.split("/"),
            *(f"{facts[name]:,}" for name in ("items", "workers", "answers")),
            percent(facts["largest_two"], 0),
            *(percent(facts[n], 2) for n in ("difference", "error_images", "error_workers")),
            f"{facts['z']:.2f}",
            percent(facts["held"], 0),
        ]
        for label, facts in found.items()
    ]
    return columns(header, rows)


def main() -> int:
    """Run the experiment and write its part of docs/results/crowds.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--raters", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=60)
    arguments = parser.parse_args()
    found = {
        f"{name}/{design}": score(answers, design, arguments.splits)
        for name, answers in read_tasks(arguments.folder, arguments.raters)
        for design in DESIGNS
    }
    text = table(found)
    print(text)
    note = (
        f"{arguments.splits} random splits of items and workers a row. 'of two workers': share of "
        "the answers that the two who answered most gave; 'difference' of the halves' mean "
        "selection frequencies (root mean square) and its standard errors (means over splits) in "
        "points; z their root mean square ratio, 1 where errors are right; 'held': differences "
        "within 1.96 standard errors, in percent."
    )
    command = f"python -m experiments.public_crowds DIR --raters FILE --splits {arguments.splits}"
    save("public-crowds", command, {"rows": found}, text, remarks=note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
