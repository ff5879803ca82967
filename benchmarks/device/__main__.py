"""Whether a GPU is seen, is right, and what it buys; and what the model costs beside others.

    python -m benchmarks.device --quick             small sizes, in about a minute
    python -m benchmarks.device --out my-machine    all sizes; writes what is known after each part
    python -m benchmarks.device all --out docs/results

By default every kind of device that JAX finds is compared with the CPU in 64 bits and timed: parts
right, gradients, draws and roofline. The others are asked for:

- forms: the log density as cells with `gammaln`, as the textbook on images and in SciPy write it,
  beside ours; over classifiers, annotators and chains;
- images: whole fits of studies of 10^4 and 10^6 images in each data set;
- kernels: what the programs of a fit launch on an H100, counted without one (needs [cuda13]);
- sampling: effective draws a second of `fit`, of PyMC with nutpie and of NumPyro's NUTS as it
  comes, and the stages of `bayesrep fit`.

What fails, as by too little memory, is told in a line, and the rest goes on. Exit status 1: a
device does not compute what it should, or whether it does could not be told.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bayesrep.errors import OptionError, reason
from benchmarks._requirements import say
from benchmarks.device.output import bench_text, page_facts
from benchmarks.device.suite import DEVICE_PARTS, PARTS, measure_parts
from experiments.results import save


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write benchmark-device.{md,json,png} if a folder is named."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.device",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    choices = (*PARTS, "all")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(choices))
    parser.add_argument("--quick", action="store_true", help="few and small sizes")
    parser.add_argument("--device", default="auto", metavar="auto|cpu|gpu", help="only this one")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the page and numbers here")
    given = parser.parse_args(argv)
    if unknown := [name for name in given.parts if name not in choices]:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(choices)}")
    if given.out and given.out.exists() and not given.out.is_dir():
        parser.error(f"{given.out} is a file; name a folder")
    parts = tuple(PARTS) if "all" in given.parts else tuple(given.parts) or DEVICE_PARTS
    words = [*(given.parts or ()), *(["--quick"] if given.quick else [])]
    command = " ".join(["python -m benchmarks.device", *words])
    measured = {}
    try:
        for measured in measure_parts(parts, device=given.device, quick=given.quick):
            if given.out:
                save("benchmark-device", command, folder=given.out, **page_facts(measured))
    except OptionError as error:
        parser.error(reason(error))
    print(bench_text(measured))
    verdict = measured.get("right", {"verdict": "right"}).get("verdict")
    if verdict == "WRONG":
        say("a device does not compute what it should; do not fit on it")
    elif verdict != "right":
        say("whether devices compute what they should could not be told")
    return 0 if verdict == "right" else 1


if __name__ == "__main__":
    sys.exit(main())
