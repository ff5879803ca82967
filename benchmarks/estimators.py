"""The point estimators beside the textbook's, in one run.

    python -m benchmarks.estimators

The textbook (`benchmarks._textbook`, SciPy and cvxpy) does one bootstrap replicate in full: both
mixtures from one start, then every classifier's curve and adjusted accuracy. Ours does the whole
bootstrap of 450. One simulated study: 10,000 + 10,000 images, 36 annotators, 136 classifiers.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import bayesrep
from bayesrep.estimators import METHODS, EMSpline, InterpolationWarning, analyse
from bayesrep.estimators.annotators import compare_annotators
from bayesrep.estimators.em_spline import fit_parametric
from bayesrep.estimators.mixtures import complete_cells, fit_mixtures
from bayesrep.estimators.replicates import Replicates
from bayesrep.report.table_format import columns
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from experiments.results import save

REPLICATES, ANNOTATORS, COMPONENTS, ROUNDS = 450, 36, 3, 200


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Wall seconds and result."""
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def median(work: Callable[[], Any], times: int) -> float:
    """Median wall seconds of several runs, after the one that compiles."""
    work()
    return statistics.median(timed(work)[0] for _ in range(times))


def say(text: str) -> None:
    """Tell on standard error how far the benchmark is."""
    print(text, file=sys.stderr, flush=True)


def textbook(study: Study) -> dict[str, Any]:
    """One replicate by the textbook: seconds of each step, likelihoods and adjusted accuracies."""
    from benchmarks import _textbook

    seconds: dict[str, float] = {}
    mixtures = []
    for role, data in study.datasets.items():
        say(f"textbook: mixture of the {role}")
        seconds[role], mixture = timed(
            lambda data=data: _textbook.fit_mixture(
                data.selected, ANNOTATORS, components=COMPONENTS, rounds=ROUNDS, seed=0
            )
        )
        mixtures.append(mixture)
    say(f"textbook: {len(study.classifiers)} curves")
    data = study.replication
    seconds["curves"], (_, adjusted) = timed(
        lambda: _textbook.curves_and_accuracies(
            *mixtures, data.selected, ANNOTATORS, data.correct.astype(float)
        )
    )
    return {
        "seconds": seconds,
        "replicate": sum(seconds.values()),
        "log_likelihood": [mixture.log_likelihood for mixture in mixtures],
        "adjusted": adjusted.tolist(),
    }


def ours(study: Study) -> dict[str, Any]:
    """Seconds of the bootstrap and of its parts."""
    say("ours: bootstraps")
    cold, _ = timed(lambda: bayesrep.estimate(study, "em-spline", bootstrap=REPLICATES))
    warm = median(lambda: bayesrep.estimate(study, "em-spline", bootstrap=REPLICATES), 3)
    all_methods = median(lambda: analyse(study, METHODS, bootstrap=REPLICATES, interval="bca"), 1)
    say("ours: mixtures, naive and jackknife")
    table = complete_cells(Replicates.from_study(SufficientStatistics.from_study(study)))

    def mixtures(*, newton: bool) -> Any:
        return fit_mixtures(table, components=COMPONENTS, rounds=ROUNDS, newton=newton)

    fits = {newton: mixtures(newton=newton) for newton in (False, True)}
    published = fit_parametric(
        EMSpline(quadrature="published"),
        Replicates.from_study(SufficientStatistics.from_study(study)),
    )
    return {
        "bootstrap_cold": cold,
        "bootstrap": warm,
        "replicate": warm / REPLICATES,
        "all_methods_bca": all_methods,
        "mixtures": median(lambda: mixtures(newton=False), 7),
        "mixtures_newton": median(lambda: mixtures(newton=True), 7),
        "naive_and_jackknife": median(lambda: compare_annotators(study), 7),
        "log_likelihood": fits[True].log_likelihood[:, 0].tolist(),
        "log_likelihood_without_newton": fits[False].log_likelihood[:, 0].tolist(),
        "adjusted": published.adjusted_accuracy[0].tolist(),
    }


def peak_memory() -> float:
    """GB at the peak of a fresh process that only simulates the study and bootstraps it."""
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.estimators", "--only-bootstrap"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(process.stdout)["peak_gb"]


def report(theirs: dict[str, Any], mine: dict[str, Any]) -> tuple[str, dict[str, float]]:
    """The table and the numbers that compare."""
    both = theirs["seconds"]["reference"] + theirs["seconds"]["replication"]
    difference = np.abs(np.subtract(theirs["adjusted"], mine["adjusted"]))
    facts = {
        "ratio_per_replicate": theirs["replicate"] / mine["replicate"],
        "ratio_mixtures_per_start": both / (mine["mixtures"] / 10),
        "largest_difference_of_adjusted": float(difference.max()),
        "mean_difference_of_adjusted": float(difference.mean()),
    }

    def row(
        what: str, his: float | None, my: float | None, factor: float | None = None
    ) -> list[str]:
        seconds = ["" if his is None else f"{his:.1f} s", "" if my is None else f"{my:.3f} s"]
        return [what, *seconds, "" if factor is None else f"{factor:,.0f}"]

    rows = [
        row(
            "a bootstrap replicate: 2 mixtures, 136 classifiers",
            theirs["replicate"],
            mine["replicate"],
            facts["ratio_per_replicate"],
        ),
        row("both mixtures: textbook 1 start, ours 10; 200 rounds", both, mine["mixtures"]),
        row("the same, per start", both, mine["mixtures"] / 10, facts["ratio_mixtures_per_start"]),
        row("10 starts, then Newton to the optimum", None, mine["mixtures_newton"]),
        row("136 curves of one replicate", theirs["seconds"]["curves"], None),
        row("whole bootstrap of 450, first call", None, mine["bootstrap_cold"]),
        row("whole bootstrap of 450, compiled", None, mine["bootstrap"]),
        row("raw, naive, jackknife, em-spline; 450 replicates, BCa", None, mine["all_methods_bca"]),
        row("naive and jackknife, n' = 1..36, from the study", None, mine["naive_and_jackknife"]),
    ]
    likelihoods = [
        f"Log likelihood of the {role}: textbook {his:.3f}, ours {my:.3f}, without Newton {em:.3f}."
        for role, his, my, em in zip(
            ("reference", "replication"),
            theirs["log_likelihood"],
            mine["log_likelihood"],
            mine["log_likelihood_without_newton"],
            strict=True,
        )
    ]
    text = [
        columns(["what", "textbook", "ours", "ratio"], rows),
        "",
        f"Peak memory of the bootstrap's process: {mine['peak_gb']:.2f} GB.",
        *likelihoods,
        "Adjusted accuracies by the published integration rule differ by "
        f"{100 * facts['mean_difference_of_adjusted']:.2f} points on average, at most "
        f"{100 * facts['largest_difference_of_adjusted']:.2f}.",
    ]
    return "\n".join(text), facts


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its part of docs/results/speed.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimators", description=__doc__)
    parser.add_argument("--only-bootstrap", action="store_true", help="print its peak memory")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore", InterpolationWarning)  # the study's, not news each time
    study = bayesrep.simulate_study(seed=0, annotators=ANNOTATORS)
    if arguments.only_bootstrap:
        bayesrep.estimate(study, "em-spline", bootstrap=REPLICATES)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        print(json.dumps({"peak_gb": peak}))
        return 0
    mine = {**ours(study), "peak_gb": peak_memory()}
    theirs = textbook(study)
    text, facts = report(theirs, mine)
    print(text)
    numbers = {"compared": facts, "ours": mine, "textbook": theirs}
    save("benchmark-estimators", "python -m benchmarks.estimators", numbers, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
