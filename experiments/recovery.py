"""Simulated studies of known truth: are the adjusted accuracies found, the intervals true.

    python -m experiments.recovery [--seeds 6] [--process outside] [--classifiers 136]

One study per seed, 10,000 + 10,000 images, 36 annotators. Errors are estimate minus truth,
averaged over classifiers; they contain the sampling noise of 10,000 images, which all methods and
all classifiers of a study share.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import bayesrep
from bayesrep.report.table_format import columns, percent
from bayesrep.studies.populations import PROCESS_OF_NAME
from experiments.results import save

POINTS = ("naive", "jackknife", "em-spline")
ERRORS = tuple(f"{name}_error" for name in (*POINTS, "joint"))


def one_study(seed: int, process: str, classifiers: int) -> dict[str, Any]:
    """Mean errors of every method; coverage and convergence of the joint posterior."""
    study = bayesrep.simulate_study(seed=seed, process=process, classifiers=classifiers)
    truth = study.truth.adjusted_accuracy
    posterior = bayesrep.fit(study, seed=seed, progress=False, dependence=0.0)
    rows = bayesrep.summarize(study, posterior, allow_unconverged=True)
    points = bayesrep.estimate(study, POINTS, seed=seed)
    errors = {
        f"{name}_error": float(
            (points.filter(points["method"] == name)["adjusted_accuracy"].to_numpy() - truth).mean()
        )
        for name in POINTS
    }
    lower, upper = rows["lower"].to_numpy(), rows["upper"].to_numpy()
    return {
        "seed": seed,
        **errors,
        "joint_error": float((rows["adjusted_accuracy"].to_numpy() - truth).mean()),
        "coverage": float(((lower <= truth) & (truth <= upper)).mean()),
        "width": float((upper - lower).mean()),
        "converged": bool(posterior.posterior.attrs["converged"]),
        "verdict": posterior.posterior.attrs["verdict"],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/worlds.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.recovery", description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--process", choices=tuple(PROCESS_OF_NAME), default="outside")
    parser.add_argument("--classifiers", type=int, default=136)
    arguments = parser.parse_args(argv)
    results = []
    for seed in range(arguments.seeds):
        results.append(one_study(seed, arguments.process, arguments.classifiers))
        print(results[-1], file=sys.stderr)
    names = (*ERRORS, "coverage", "width")
    mean = {name: float(np.mean([r[name] for r in results])) for name in names}
    rows = [
        [str(r["seed"]), *(percent(r[n], 2) for n in names), "yes" if r["converged"] else "no"]
        for r in results
    ]
    rows.append(["mean", *(percent(mean[n], 2) for n in names), ""])
    errors = [name.replace("_", " ") for name in ERRORS]
    header = ["seed", *errors, "inside 95 %", "interval width", "converged"]
    text = columns(header, rows)
    print(text)
    command = (
        f"python -m experiments.recovery --seeds {arguments.seeds} --process {arguments.process} "
        f"--classifiers {arguments.classifiers}"
    )
    save(f"recovery-{arguments.process}", command, {"mean": mean, "studies": results}, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
