"""How often classes are said to differ where images were selected as often: power, false alarms.

    python -m experiments.classes [--studies 100]

`bayesrep.checks.classes` on simulated studies with ten annotators and ten classes, without a fit.
Sound: P(correct | s) is the same in both data sets, and so is the distribution of classes given s;
classes go along with s not at all, a little or closely (correlation of the score that makes them
with logit s), and the replication's frequencies are lower. Label shift: the simulator's scenario,
whose true effect on the mean gap is that of its classes.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

import bayesrep
from bayesrep.checks.classes import N_FAMILIES, class_shifts
from bayesrep.checks.finding import ALPHA
from bayesrep.report.table_format import columns, percent
from bayesrep.studies.study import Study
from experiments.results import save

ANNOTATORS = 10
CLASSES = 10
SIZES = (500, 2_000, 10_000)
ALONG = (0.0, 0.3, 0.7)
LOGITS = {"reference": 1.2, "replication": 0.9}
SPREAD = 1.3
MATTERS = 0.007


def sound(seed: int, images: int, along: float) -> Study:
    """Five classifiers who find some classes easier, at the same frequencies in both data sets."""
    rng = np.random.default_rng(seed)
    sides: dict[str, dict[str, Any]] = {}
    for role, mean in LOGITS.items():
        logit = rng.normal(mean, SPREAD, images)
        middle = np.mean(list(LOGITS.values()))
        score = along * (logit - middle) / SPREAD
        place = ndtr(score + np.sqrt(1 - along**2) * rng.normal(size=images))
        of = np.minimum((CLASSES * place).astype(int), CLASSES - 1)
        s = expit(logit)
        right = ndtr(-0.5 + 1.5 * s + 0.8 * (place - 0.5))
        sides[role] = {
            "selected": rng.binomial(ANNOTATORS, s),
            "shown": np.full(images, ANNOTATORS),
            "correct": rng.random((images, 5)) < right[:, None],
            "groups": {"class": of.astype(str)},
        }
    return Study.from_arrays(
        reference=sides["reference"], replication=sides["replication"], classifiers=list("abcde")
    )


def shifted(seed: int, images: int) -> Study:
    """The simulator's label shift."""
    return bayesrep.simulate_study(
        seed=seed, images=images, classifiers=10, annotators=ANNOTATORS, scenario="label-shift"
    )


def told(make: Callable[[int], Study], studies: int) -> dict[str, float]:
    """Over studies: how often classes are said to differ, and by how much."""
    found = [class_shifts(make(seed))[0] for seed in range(studies)]
    differ = np.array([N_FAMILIES * each.p < ALPHA for each in found])
    shift = np.array([each.shift for each in found])
    return {
        "studies": studies,
        "differ": float(differ.mean()),
        "matters": float((differ & (np.abs(shift) > MATTERS)).mean()),
        "shift": float(shift.mean()),
        "shift_sd": float(shift.std(ddof=1)),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/worlds.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.classes", description=__doc__)
    parser.add_argument("--studies", type=int, default=100)
    arguments = parser.parse_args(argv)
    rows: dict[str, dict[str, float]] = {}
    for images in SIZES:
        rows[f"label shift, {images:,} images"] = told(
            lambda seed, images=images: shifted(seed, images), arguments.studies
        )
        for along in ALONG:
            rows[f"sound, {along:g} along s, {images:,} images"] = told(
                lambda seed, images=images, along=along: sound(seed, images, along),
                arguments.studies,
            )
    text = columns(
        ["studies of", "studies", "differ (%)", "and matter (%)", "effect", "sd"],
        [
            [
                name,
                str(row["studies"]),
                percent(row["differ"], 1),
                percent(row["matters"], 1),
                percent(row["shift"], 2),
                percent(row["shift_sd"], 2),
            ]
            for name, row in rows.items()
        ],
    )
    print(text)
    note = (
        f"{ANNOTATORS} annotators an image, {CLASSES} classes. 'differ': the test's p, times the "
        f"{N_FAMILIES} kinds of tests of a diagnosis, is below {ALPHA}; 'matter': and the effect "
        f"on the mean gap is above {100 * MATTERS:g} points, about half of a posterior standard "
        "deviation with 2,000 images. 'effect': estimated, in points; 'sd': over studies. "
        "'along s': the correlation of what makes the classes with the logit of s; there the data "
        "sets differ in s alone, which counts of ten show only blurred, and the effect should be 0."
    )
    command = f"python -m experiments.classes --studies {arguments.studies}"
    save("classes", command, {"rows": rows}, text, remarks=note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
