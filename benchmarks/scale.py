"""Whole fits of hundreds to thousands of classifiers by the exact sampler and by certified Laplace.

    python -m benchmarks.scale [--sizes 136x10000,2000x10000,10000x500] [--limit 600]

Every fit has its defaults and a process of its own, one after the other on the CPU, with nothing
compiled before; it is stopped after ``--limit`` seconds. A study is already simulated and in memory
when the clock starts.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import bayesrep
from bayesrep.choices import Method
from bayesrep.report.table_format import MISSING_TEXT, columns
from benchmarks._requirements import say
from benchmarks.device.sampling import quiet_fit
from experiments.results import save

SIZES = "136x10000,2000x10000,10000x500"
METHODS: tuple[Method, ...] = ("nuts", "laplace")
NAME = "benchmark-scale"


def one(classifiers: int, images: int, method: Method) -> dict[str, Any]:
    """Fit a simulated study; time, memory, and the worst of every parameter's diagnostics."""
    from bayesrep.posterior.groups import need_group
    from bayesrep.posterior.verdict import diagnostics

    study = bayesrep.simulate_study(classifiers=classifiers, images=images)
    begin = time.perf_counter()
    posterior = quiet_fit(study, method=method)
    seconds = time.perf_counter() - begin
    facts, made = posterior["posterior"].attrs, posterior["sample_stats"]
    found = {
        "seconds": seconds,
        "stages": json.loads(facts["seconds"]),
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2,
        "converged": bool(facts["converged"]),
        "verdict": facts["verdict"],
    }
    if "ess" in facts:
        return found | {"ess": float(facts["ess"]), "pareto_k": float(facts["pareto_k"])}
    checks = diagnostics(need_group(posterior, "posterior"))
    return found | {
        "acceptance": float(made["acceptance_rate"].mean()),
        "rhat": max(float(np.nanmax(each.values)) for each in checks.rhat.values()),
        "ess": min(float(np.nanmin(each.values)) for each in checks.ess_bulk.values()),
        "tail_ess": min(float(np.nanmin(each.values)) for each in checks.ess_tail.values()),
    }


def in_own_process(size: str, method: Method, limit: float) -> dict[str, Any]:
    """The numbers of one fit in a fresh interpreter; without them where it took too long."""
    say(f"running: {size} by {method}")
    with tempfile.TemporaryDirectory() as empty:
        try:
            process = subprocess.run(
                [sys.executable, "-m", "benchmarks.scale", "--only", size, method],
                stdout=subprocess.PIPE,
                text=True,
                timeout=limit,
                env={**os.environ, "JAX_PLATFORMS": "cpu", "XDG_CACHE_HOME": empty},
            )
        except subprocess.TimeoutExpired:
            return {"missing": f"not ended after {limit:g} s"}
    if process.returncode:
        return {"missing": f"its process ended with status {process.returncode}"}
    return json.loads(process.stdout.splitlines()[-1])


def table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """One line for each fit."""

    def cells(name: str, row: Mapping[str, Any]) -> list[str]:
        size, method = name.split(" ")
        classifiers, images = (f"{int(part):,}" for part in size.split("x"))
        if "missing" in row:
            return [classifiers, images, method, row["missing"], *[MISSING_TEXT] * 7]
        shown = {"acceptance": ".2f", "rhat": ".4f", "pareto_k": ".2f", "tail_ess": ",.0f"}
        said = {key: format(row[key], form) for key, form in shown.items() if key in row}
        return [
            classifiers,
            images,
            method,
            f"{row['seconds']:.0f}",
            f"{row['peak_gb']:.1f}",
            said.get("acceptance", MISSING_TEXT),
            said.get("rhat", MISSING_TEXT),
            said.get("pareto_k", MISSING_TEXT),
            f"{row['ess']:,.0f}",
            said.get("tail_ess", MISSING_TEXT),
            "yes" if row["converged"] else "no",
        ]

    header = ["classifiers", "images", "method", "s", "GB at peak", "moves accepted", "R-hat"]
    header += ["Pareto k", "ESS", "tail ESS", "converged"]
    return columns(header, [cells(*item) for item in rows.items()])


REMARKS = """\
Images are those of each of the two data sets. Seconds are of `fit`, compilation with it. R-hat is \
the largest and ESS the smallest of *every* parameter and quantity of the posterior, by NUTS of \
3,000 draws; Laplace's ESS is that of its weights, which hold for all of them where k is below \
0.7. Memory is the whole process's, with the study."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its part of docs/results/sampling.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--sizes", default=SIZES, help="classifiers x images, with commas between")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of a fit, at most")
    parser.add_argument("--only", nargs=2, metavar=("SIZE", "METHOD"), help="print one fit as JSON")
    arguments = parser.parse_args(argv)
    if arguments.only:
        size, method = arguments.only
        classifiers, images = map(int, size.split("x"))
        print(json.dumps(one(classifiers, images, method)))
        return 0
    rows = {
        f"{size} {method}": in_own_process(size, method, arguments.limit)
        for size in arguments.sizes.split(",")
        for method in METHODS
    }
    text = table(rows)
    print(text)
    command = f"python -m benchmarks.scale --sizes {arguments.sizes} --limit {arguments.limit:g}"
    save(NAME, command, {"rows": rows}, text, remarks=REMARKS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
