"""Whether the samplers of the page on one's own sampler agree with `fit`, on three studies.

    python -m experiments.samplers [--work DIR]

Runs the code of docs/how-to/own-model.md, with blackjax and nutpie, which are to be installed
first (`pip install blackjax nutpie numba`). Of every sampler the mean adjusted accuracies are held
against those of `fit`'s chains, in posterior standard deviations and in standard errors of the two
samples, which effective sizes give. Resumable: finished studies are kept in DIR.
"""

import argparse
import contextlib
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import bayesrep
from bayesrep.numerics.convergence import mean_ess
from bayesrep.report.table_format import columns
from bayesrep.types import Floats
from experiments.ledger import resume
from experiments.pages import run_page
from experiments.results import save

STUDIES: Mapping[str, Mapping[str, Any]] = {
    "10 annotators": {"images": 500, "classifiers": 5, "annotators": 10, "seed": 1},
    "2 to 12 annotators": {"images": 500, "classifiers": 3, "annotators": (2, 12), "seed": 2},
    "36 annotators": {"images": 1000, "classifiers": 8, "annotators": 36, "seed": 3},
}


def draw_accuracies(study: bayesrep.Study) -> dict[str, Floats]:
    """Adjusted accuracies [draw, classifier] by sampler, of the page's code."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        study.write("my-study")
        with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
            warnings.simplefilter("ignore")  # of the libraries
            names = run_page("how-to/own-model.md", "Run your own sampler")
    return {name: np.asarray(draws) for name, draws in names["accuracies"].items()}


def one_study(name: str) -> dict[str, Any]:
    """Of each sampler: how far its means lie from those of `fit`, and ratios of their sds."""
    drawn = draw_accuracies(bayesrep.simulate_study(**STUDIES[name]))
    ours = drawn.pop("fit")
    known, found = mean_ess(ours[None]), dict[str, Any]()
    for sampler, draws in drawn.items():
        size = mean_ess(draws[None])
        apart = np.abs(draws.mean(axis=0) - ours.mean(axis=0)) / ours.std(axis=0)
        found[sampler] = {
            "sds": float(apart.max()),
            "errors": float((apart / np.sqrt(1 / size + 1 / known)).max()),
            "ratio": (draws.std(axis=0) / ours.std(axis=0)).tolist(),
            "ess": float(size.min()),
        }
    return {"samplers": found}


def table_of(results: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each study and sampler."""
    header = ["study", "sampler", "means apart, sd", "in standard errors", "sd, of fit's", "ESS"]
    lines = [
        [
            name,
            sampler,
            f"{facts['sds']:.2f}",
            f"{facts['errors']:.1f}",
            f"{min(facts['ratio']):.2f} to {max(facts['ratio']):.2f}",
            f"{facts['ess']:,.0f}",
        ]
        for name, result in results.items()
        for sampler, facts in result["samplers"].items()
    ]
    return columns(header, lines)


REMARKS = (
    "The code of [the page on one's own sampler](../how-to/own-model.md#run-your-own-sampler) as "
    "it stands, on three simulated studies; one chain of a thousand draws by each sampler, beside "
    "the chains of `fit`. "
    "Means of adjusted accuracies apart at most, over classifiers, in posterior standard "
    "deviations and in standard errors of both samples; standard deviations over those of `fit`, "
    "and the least effective size of an accuracy. SVI fits a normal, which no draws make exact."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/sampling.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.samplers", description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    made = resume(arguments.work / "samplers.jsonl", STUDIES, one_study)
    results = dict(zip(STUDIES, made, strict=True))
    text = table_of(results)
    print(text)
    save("samplers", "python -m experiments.samplers", results, text, remarks=REMARKS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
