"""Selection frequencies that are known: web sites rated by 71 workers each.

    python -m experiments.known_s --answers adultcontent3.csv.gz [--studies 25] [--items 150]
      [--work DIR]

Of the first answers of 338 workers about 496 sites (is it for adults?), 71 a site, a
study gets two random sets of sites, with 5, 10 or 20 answers each of all workers, or with 5 of a
tenth of them, another one for either set. The joint model is fitted to these counts (and to a
classifier that guesses). Its 95 % intervals of the mean selection frequency and of the share of
sites below 1/4, 1/2 and 3/4 are held against what all answers about all sites say; the mean's also
with the error over workers of `bayesrep.describe_crowd` added. Resumable: finished studies are kept
in DIR.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import betainc

import bayesrep
from bayesrep import Study, WorkerAnswers
from bayesrep.errors import ConvergenceWarning
from bayesrep.numerics.estimands import Z_975
from bayesrep.report.table_format import columns, percent
from experiments.ledger import resume
from experiments.results import save

ADULT = ("R", "X", "B")
SIZES = (5, 10, 20)
CROWDS = {"all": (1.0, SIZES), "a tenth": (0.1, SIZES[:1])}
BELOW = (0.25, 0.5, 0.75)
QUANTILES = (0.025, 0.975)


def published(path: Path) -> pl.DataFrame:
    """The first answers: item, worker, yes."""
    answers = pl.read_csv(path).unique(["item", "worker"], keep="first", maintain_order=True)
    return answers.select("item", "worker", yes=pl.col("answer").is_in(ADULT))


def sampled(answers: pl.DataFrame, items: int, size: int, share: float, seed: int) -> Study:
    """Two sets of sites, each with as many answers a site by a crowd of its own."""
    rng = np.random.default_rng(seed)
    item, worker, yes = (answers[name].to_numpy() for name in answers.columns)
    everyone, order = rng.permutation(worker.max() + 1), rng.permutation(item.max() + 1)
    sides = {}
    for at, role in enumerate(("reference", "replication")):
        crowd = everyone[at::2][: round(share * len(everyone))] if share < 1 else everyone
        rows = np.flatnonzero(np.isin(worker, crowd) & np.isin(item, order[at::2]))
        rows = rng.permutation(rows)
        enough = np.flatnonzero(np.bincount(item[rows]) >= size)
        chosen = rng.permutation(enough)[:items]
        rows = rows[np.isin(item[rows], chosen)]
        rows = rows[np.argsort(item[rows], kind="stable")]
        names, first = np.unique(item[rows], return_index=True)
        kept = (first[:, None] + np.arange(size)).ravel()
        place = np.repeat(np.arange(len(names)), size)
        given = WorkerAnswers.of(place, worker[rows][kept].astype(str), yes[rows][kept])
        selected, shown = given.counts(len(names))
        right = rng.random((len(names), 1)) < 0.5
        sides[role] = {"selected": selected, "shown": shown, "correct": right, "answers": given}
    return Study.from_arrays(**sides, classifiers=["guesses"])


def one_study(study: Study, truth: np.ndarray, seed: int) -> dict[str, Any]:
    """What intervals hold of the truth: of both sets, whose answers are all that is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = bayesrep.fit(study, method="laplace", seed=seed, progress=False, dependence=0.0)[
            "posterior"
        ]
    weight, mean, total = (
        fit[name].values.reshape(-1, 2, 2)
        for name in ("component_weight", "component_mean", "component_concentration")
    )
    frequency = fit["mean_selection_frequency"].values.reshape(-1, 2)
    errors = bayesrep.describe_crowd(study).datasets["error_workers"].to_numpy()
    below = [
        np.sum(weight * betainc(mean * total, (1 - mean) * total, at), axis=-1) for at in BELOW
    ]
    sides: list[dict[str, Any]] = []
    for at, role in enumerate(("reference", "replication")):
        low, high = np.quantile(frequency[:, at], QUANTILES)
        middle, spread = frequency[:, at].mean(), frequency[:, at].std()
        half = Z_975 * np.hypot(spread, errors[at])
        shares = [np.quantile(each[:, at], QUANTILES) for each in below]
        wanted = [(truth <= level).mean() for level in BELOW]
        sides.append(
            {
                "items": len(study.datasets[role].shown),
                "error": float(middle - truth.mean()),
                "counts": bool(low <= truth.mean() <= high),
                "counts_width": float(high - low),
                "workers": bool(abs(middle - truth.mean()) <= half),
                "workers_width": float(2 * half),
                "shares": [bool(a <= w <= b) for (a, b), w in zip(shares, wanted, strict=True)],
            }
        )
    return {"sides": sides}


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Coverage and widths by crowd and number of answers; standard errors over studies."""
    found: dict[str, Any] = {}
    for row in dict.fromkeys(result["key"].rsplit("/", 1)[0] for result in results):
        of = [r["sides"] for r in results if r["key"].startswith(f"{row}/")]
        facts: dict[str, Any] = {"studies": len(of)}
        for name in ("items", "counts", "counts_width", "workers", "workers_width", "shares"):
            values = np.array([np.mean([side[name] for side in sides]) for sides in of])
            facts[name] = float(values.mean())
            facts[f"{name}_se"] = float(values.std(ddof=1) / np.sqrt(len(of)))
        errors = np.array([side["error"] for sides in of for side in sides])
        facts |= {"bias": float(errors.mean()), "scatter": float(errors.std(ddof=1))}
        found[row] = facts
    return {"rows": found}


def table(found: Mapping[str, Any]) -> str:
    """A line for each crowd and number of answers."""
    header = ["workers", "answers", "items", "studies", "mean, counts", "s.e.", "width"]
    header += ["with workers", "s.e.", "width", "bias", "sd", "p(s)", "s.e."]
    lines = [
        [
            *row.split("/"),
            f"{facts['items']:.0f}",
            str(facts["studies"]),
            *(
                percent(facts[f"{name}{part}"], 1)
                for name in ("counts", "workers")
                for part in ("", "_se", "_width")
            ),
            *(percent(facts[name], 1) for name in ("bias", "scatter", "shares", "shares_se")),
        ]
        for row, facts in found["rows"].items()
    ]
    return columns(header, lines)


REMARKS = (
    "AdultContent3 (Get-Another-Label, HCOMP 2010; Apache-2.0). 'mean, counts' is how often the "
    "95 % interval of the mean selection frequency that takes every answer for another worker's "
    "holds the mean of all answers about all sites, 'with workers' the same with the error over "
    "workers added; width, bias and scatter of the estimate (sd) in points; 'p(s)' how often "
    "intervals of the share of sites with a frequency below 1/4, 1/2 and 3/4 hold that of all "
    "answers. Sites are a sample of 496, so that intervals for a sample of any are a little too "
    "wide; standard errors are over studies, each of two sets of sites. By the Laplace "
    "approximation."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/crowds.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.known_s", description=__doc__)
    parser.add_argument("--answers", type=Path, required=True, metavar="adultcontent3.csv.gz")
    parser.add_argument("--studies", type=int, default=25)
    parser.add_argument("--items", type=int, default=150)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    if arguments.studies < 2:
        parser.error("--studies must be 2 at least")
    answers = published(arguments.answers)
    shares = answers.group_by("item").agg(pl.col("yes").mean())["yes"].to_numpy()

    def make(key: str) -> dict[str, Any]:
        crowd, size, number = key.split("/")
        seed = int(number)
        study = sampled(answers, arguments.items, int(size), CROWDS[crowd][0], seed)
        return one_study(study, shares, seed)

    keys = [
        f"{crowd}/{size}/{seed}"
        for seed in range(arguments.studies)
        for crowd, (_, sizes) in CROWDS.items()
        for size in sizes
    ]
    found = numbers(resume(arguments.work / f"known-s-{arguments.items}.jsonl", keys, make))
    text = table(found)
    print(text)
    command = (
        "python -m experiments.known_s --answers adultcontent3.csv.gz "
        f"--studies {arguments.studies} --items {arguments.items}"
    )
    save("known-s", command, found, text, remarks=REMARKS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
