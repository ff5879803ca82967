"""Whole processes: importing the package, the demo and the quick demo.

    python -m benchmarks.package

Each is a fresh interpreter; import is the median of five, the demos run once.
"""

import json
import statistics
import subprocess
import sys
import time
from typing import Any

from bayesrep.report.table_format import columns
from experiments.results import save


def timed(*arguments: str) -> tuple[float, str]:
    """Wall seconds and standard output of a fresh interpreter."""
    begin = time.perf_counter()
    result = subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return time.perf_counter() - begin, result.stdout


def main() -> int:
    """Run the benchmark and write docs/results/benchmark-package.{md,json}."""
    imports = [timed("-c", "import bayesrep")[0] - timed("-c", "pass")[0] for _ in range(5)]
    numbers: dict[str, Any] = {"import_s": statistics.median(imports)}
    rows = [["import bayesrep", f"{numbers['import_s']:.3f} s"]]
    for name, options in (("demo", ()), ("demo --quick", ("--quick",))):
        seconds, text = timed("-m", "bayesrep", "demo", "--json", "--quiet", *options)
        facts = json.loads(text)
        numbers[name] = {"seconds": seconds, **facts}
        rows.append([f"bayesrep {name}, whole process", f"{seconds:.1f} s"])
        smallest = min(facts["min_ess_bulk"], facts["min_ess_tail"])
        rows.append([f"  effective draws, {name}, by {facts['fitted_by']}", f"{smallest:.0f}"])
    text = columns(["what", "measured"], rows)
    print(text)
    save("benchmark-package", "python -m benchmarks.package", numbers, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
