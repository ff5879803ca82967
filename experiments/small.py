"""Coverage on small and poor data: two to ten annotators, a hundred images, one classifier.

    python -m experiments.small [--studies 40] [--work DIR] [--finished]

Simulated studies of known truth, fitted as by default but by the Laplace approximation, whose draws
count where its certificate was refused too. Resumable: finished studies are kept in DIR, and
`--finished` makes the page of those alone.
"""

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bayesrep
from bayesrep.errors import ConvergenceWarning
from bayesrep.report.table_format import columns, percent
from experiments.ledger import resume
from experiments.results import save

ANNOTATORS = (2, 3, 5, 10)
IMAGES = 100
QUANTILES = (0.025, 0.975)


def one_study(key: str) -> dict[str, Any]:
    """The interval, the truth, and what is said of the prior; a key is ``annotators/number``."""
    annotators, seed = map(int, key.split("/"))
    study = bayesrep.simulate_study(
        seed=50_000 + 100 * annotators + seed,
        images=IMAGES,
        annotators=annotators,
        classifiers=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = bayesrep.fit(study, method="laplace", seed=seed, progress=False, dependence=0.0)
    draws = posterior["posterior"]["adjusted_accuracy"].values.ravel()
    truth = study.truth
    assert truth is not None
    attributes = posterior["posterior"].attrs
    return {
        "truth": float(truth.adjusted_accuracy[0]),
        "estimate": float(draws.mean()),
        "interval": np.quantile(draws, QUANTILES).tolist(),
        "converged": bool(attributes["converged"]),
        "advice": str(attributes.get("advice", "")),
    }


def numbers(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Coverage with its standard error, half-width and bias by the number of annotators."""
    rows: dict[str, Any] = {}
    for annotators in ANNOTATORS:
        of = [each for each in results if each["key"].startswith(f"{annotators}/")]
        if len(of) < 2:
            continue
        truth, estimate = (np.array([each[part] for each in of]) for part in ("truth", "estimate"))
        lower, upper = np.array([each["interval"] for each in of]).T
        inside = float(((lower <= truth) & (truth <= upper)).mean())
        rows[str(annotators)] = {
            "studies": len(of),
            "coverage": inside,
            "coverage_se": float(np.sqrt(inside * (1 - inside) / len(of))),
            "half_width": float((upper - lower).mean() / 2),
            "bias": float((estimate - truth).mean()),
            "bias_se": float((estimate - truth).std(ddof=1) / np.sqrt(len(of))),
            "certified": float(np.mean([each["converged"] for each in of])),
            "advised": float(np.mean([bool(each["advice"]) for each in of])),
        }
    return {"rows": rows}


def table(found: dict[str, Any]) -> str:
    """A line for each number of annotators."""
    shares = ("coverage", "coverage_se", "half_width", "bias", "bias_se", "certified", "advised")
    header = ["annotators", "studies", "covered", "s.e.", "half-width", "bias", "s.e."]
    rows = [
        [name, str(row["studies"]), *(percent(row[each], 1) for each in shares)]
        for name, row in found["rows"].items()
    ]
    return columns([*header, "certified", "advised"], rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/coverage.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.small", description=__doc__)
    parser.add_argument("--studies", type=int, default=40)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    parser.add_argument("--finished", action="store_true", help="fit nothing more")
    arguments = parser.parse_args(argv)
    path = arguments.work / "small.jsonl"
    keys = [f"{n}/{seed}" for n in ANNOTATORS for seed in range(arguments.studies)]
    results = resume(path, keys, one_study, finished=arguments.finished)
    found = numbers(results)
    text = table(found)
    print(text)
    note = (
        f"{IMAGES} + {IMAGES} images, one classifier, outside the fitted family. In percent or "
        "points; 'certified': by Laplace's weights; 'advised': the fit says that the adjusted "
        "accuracies rest on the prior."
    )
    save(
        "small",
        f"python -m experiments.small --studies {arguments.studies}",
        found,
        text,
        remarks=note,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
