"""How fast plans look through designs: a hundred of them, twenty simulated and fitted studies each.

    python -m benchmarks.planning [--designs 100] [--studies 20] [--certified 20]

Designs are all pairs of ten numbers of answers and numbers of images. Their studies, of five
classifiers from the published populations, are drawn and fitted by normal approximations in a
process a core, as `bayesrep collect plan` does, programs compiled within the time. Beside it some
certified fits (Laplace) of one design, and by how much the widths of both ways differ.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesrep.parallel import open_pool
from bayesrep.planning import Design, published_world
from bayesrep.planning.design_widths import SimulatedDesigns
from bayesrep.planning.simulate_design import average_outcomes
from bayesrep.report.table_format import columns
from experiments.results import save

ANSWERS = (5, 8, 10, 12, 15, 20, 25, 30, 40, 60)
IMAGES = tuple(int(each) for each in np.geomspace(500, 10_000, 10))
CLASSIFIERS, LENIENCY = 5, 0.5
CERTIFIED = Design(2_000, 10)


def measured(designs: Sequence[Design], studies: int, certified: int) -> dict[str, Any]:
    """Seconds of both ways, and the ratio of their widths on the same studies."""
    world = published_world("imagenet-v2", CLASSIFIERS)
    with open_pool() as spread:
        studied = SimulatedDesigns(spread, [world], LENIENCY, 0)
        begin = time.perf_counter()
        found = studied(designs, studies)
        normal = time.perf_counter() - begin
        studied([CERTIFIED], 2, "laplace")  # compiled
        begin = time.perf_counter()
        (laplace,) = SimulatedDesigns(spread, [world], LENIENCY, 1_000)(
            [CERTIFIED], certified, "laplace"
        )
        seconds = time.perf_counter() - begin
        (same,) = SimulatedDesigns(spread, [world], LENIENCY, 1_000)([CERTIFIED], certified)
    return {
        "designs": len(designs),
        "studies": studies,
        "normal_seconds": normal,
        "normal_a_fit": normal / (len(designs) * studies),
        "certified_fits": certified,
        "certified_share": average_outcomes(laplace).converged,
        "certified_seconds": seconds,
        "certified_a_fit": seconds / certified,
        "ratio": average_outcomes(same).mean_width / average_outcomes(laplace).mean_width,
        "widths": [
            {"images": d.images, "answers": d.answers, "width": average_outcomes(each).mean_width}
            for d, each in zip(designs, found, strict=True)
        ],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its part of docs/results/speed.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description=__doc__)
    parser.add_argument("--designs", type=int, default=100)
    parser.add_argument("--studies", type=int, default=20)
    parser.add_argument("--certified", type=int, default=20)
    arguments = parser.parse_args(argv)
    if min(arguments.designs, arguments.studies, arguments.certified) < 2:
        parser.error("--designs, --studies and --certified must be 2 at least")
    designs = [Design(images, answers) for answers in ANSWERS for images in IMAGES]
    found = measured(designs[: arguments.designs], arguments.studies, arguments.certified)
    rows = [
        [
            "normal approximation",
            f"{found['designs']} x {found['studies']}",
            f"{found['normal_seconds']:.0f}",
            f"{found['normal_a_fit']:.2f}",
        ],
        [
            "certified (Laplace)",
            f"1 x {found['certified_fits']}",
            f"{found['certified_seconds']:.0f}",
            f"{found['certified_a_fit']:.2f}",
        ],
    ]
    text = columns(["fits", "designs x studies", "seconds", "seconds a fit"], rows)
    print(text)
    remarks = (
        "Wall time of all processes together, the drawing of the studies and, of the first row, "
        "compilation within it. On the same studies normal approximations are "
        f"{found['ratio']:.3f} times as wide; {100 * found['certified_share']:.0f} % of the second "
        "row's fits were certified."
    )
    command = (
        f"python -m benchmarks.planning --designs {arguments.designs} --studies "
        f"{arguments.studies} --certified {arguments.certified}"
    )
    save("benchmark-planning", command, found, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
