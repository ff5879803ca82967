"""Simulated studies of designs: what they say of every design's width, and of the one chosen."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from bayesrep.lab.designs import MOST_IMAGES, Aim, Law, Option
from bayesrep.lab.outcomes import Outcome, average_outcomes, outcome
from bayesrep.lab.spreading import Spread
from bayesrep.lab.worlds import Design
from bayesrep.studies.populations import Populations

SIZES = (1_000, 4_000, 16_000)
"""Images of simulated studies: the first size decides at which of the others A is estimated."""
TRIAL = {"images": 4_000, "answers": 10}
"""Images and answers of the simulated studies that β is estimated from."""
LAWS_TO_SMOOTH = 5
STUDIES_PER_SIZE = 6
"""Simulated studies of each size."""
CROWDS = (50, 200, 1_000)
"""Workers to compare, where it is not said how many there are."""


class Studied:
    """Simulated studies of designs, each drawn from the next of the worlds."""

    def __init__(
        self, spread: Spread, worlds: Sequence[Populations], leniency: float, seed: int
    ) -> None:
        self._spread, self._worlds = spread, worlds
        self._leniency, self._seed = leniency, seed

    def __call__(
        self, designs: Sequence[Design], count: int, way: str = "normal"
    ) -> list[list[Outcome]]:
        """So many studies of every design."""
        tasks = [
            [
                (self._worlds[number % len(self._worlds)], design, self._leniency)
                + (self._seed + number, way)
                for number in range(count)
            ]
            for design in designs
        ]
        if way == "normal":  # together: a number of answers is a program to compile
            names = [f"{way} {_name(design)} x {count}" for design in designs]
            outcomes = self._spread(_simulate_tasks, tasks, names)
        else:
            names = [f"{way} {_name(d)} {number}" for d in designs for number in range(count)]
            flat = self._spread(_simulate_one, [task for each in tasks for task in each], names)
            outcomes = [flat[place : place + count] for place in range(0, len(flat), count)]
        return [[Outcome(*each) for each in of_design] for of_design in outcomes]


def _simulate_one(task: tuple[Populations, Design, float, int, Any]) -> list[float]:
    world, design, leniency, seed, way = task
    return list(outcome(world, design, leniency=leniency, seed=seed, way=way))


def _simulate_tasks(
    tasks: Sequence[tuple[Populations, Design, float, int, Any]],
) -> list[list[float]]:
    return [_simulate_one(task) for task in tasks]


def _name(design: Design) -> str:
    return " ".join(f"{name}={value}" for name, value in asdict(design).items())


def find_laws(studied: Studied, numbers: Sequence[int], aim: Aim) -> list[Law]:
    """The law of each number of answers, workers left out, by normal approximations."""
    small = [Design(SIZES[0], n) for n in numbers]
    first = [average_outcomes(each).mean_width for each in studied(small, STUDIES_PER_SIZE)]

    def aim_size(design: Design, mean_width: float) -> Design:
        """The design at the simulated size that is nearer to the one the plan will need."""
        wanted = aim.limits.images_at(aim.prices, design.answers)
        if aim.width is not None:
            wanted = min(wanted, design.images * (mean_width / aim.width) ** 2)
        return replace(design, images=SIZES[1] if wanted < 2 * SIZES[1] else SIZES[2])

    larger = [aim_size(*each) for each in zip(small, first, strict=True)]
    laws = [
        Law(design.answers, average_outcomes(each).mean_width ** 2 * design.images)
        for design, each in zip(larger, studied(larger, STUDIES_PER_SIZE), strict=True)
    ]
    if len(laws) < LAWS_TO_SMOOTH:
        return laws
    # A falls smoothly with the answers: a parabola of logarithms takes out what is of few studies.
    at = np.log([law.answers for law in laws])
    line = np.polynomial.Polynomial.fit(at, np.log([law.slope for law in laws]), 2)
    slopes = np.exp(line(at))
    return [law._replace(slope=float(each)) for law, each in zip(laws, slopes, strict=True)]


def left_by_workers(studied: Studied, crowds: int, workers: int | None) -> float:
    """β of one crowd or of two: what W workers add to the squared width, times W."""
    size = max(TRIAL["answers"], CROWDS[1] if workers is None else workers) // crowds
    design = Design(TRIAL["images"], TRIAL["answers"], max(size, TRIAL["answers"]), crowds)
    (outcomes,) = studied([design], STUDIES_PER_SIZE, "laplace")
    held = [each for each in outcomes if each.converged] or outcomes
    added = [np.square(each.mean_width) - np.square(each.alone_width) for each in held]
    assert design.workers is not None
    return max(float(np.mean(added)), 0.0) * design.workers


class Certified(NamedTuple):
    """Fits of the same studies in both ways."""

    design: Design
    certified: list[Outcome]
    normal: list[Outcome]

    @property
    def trusted_outcomes(self) -> list[Outcome]:
        """The certified ones; where hardly any is, the normal ones."""
        held = [each for each in self.certified if each.converged]
        return held if len(held) > 1 else self.normal

    @property
    def normal_over_certified(self) -> float:
        """Ratio of their widths, on the studies whose fit was certified."""
        pairs = [
            (normal.alone_width, other.alone_width)
            for normal, other in zip(self.normal, self.certified, strict=True)
            if other.converged
        ]
        normal, certified = np.mean(pairs, axis=0) if pairs else (np.nan, np.nan)
        return float(normal / certified)


def certify_option(studied: Studied, option: Option, studies: int) -> Certified:
    """Fits of a design, no larger than can be simulated, in both ways."""
    design = replace(option.design, images=min(option.design.images, MOST_IMAGES))
    (outcomes,) = studied([design], studies, "laplace")
    (normal,) = studied([design], studies)
    return Certified(design, outcomes, normal)


def identity_of(worlds: Sequence[Populations], leniency: float, seed: int) -> str:
    """What simulated studies depend on besides their design."""
    parts = [[np.asarray(part).tolist() for part in world] for world in worlds]
    return json.dumps([parts, leniency, seed])
