"""Simulated studies of designs: what they say of every design's width, and of the one chosen."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesrep.files.digests import digest_value
from bayesrep.files.strict_json import replace_non_finite
from bayesrep.parallel import MapTasks
from bayesrep.planning.designs import MAX_SIMULATED_IMAGES, Aim, Law, Option
from bayesrep.planning.populations import Design
from bayesrep.planning.simulate_design import Outcome, average_outcomes, outcome
from bayesrep.store import keep, open_store, read_kept
from bayesrep.studies.populations import Populations

N_IMAGES = (1_000, 4_000, 16_000)  # the first size decides at which of the others A is estimated
STUDIES_OF_SIZE = (2, 4)  # simulated studies of the first size, and of the other
MOST_SIMULATED = 5  # numbers of answers that are simulated; others follow from these
WORKER_TRIAL = {"images": 4_000, "answers": 10}  # of the simulated studies behind β
STUDIES_OF_CROWDS = 6  # simulated studies with one crowd, and with two
CROWD_SIZES = (50, 200, 1_000)  # workers to compare, where it is not said how many there are


class SimulatedDesigns:
    """Simulated studies of designs, kept for these worlds, leniency and seed alone."""

    def __init__(
        self,
        map_tasks: MapTasks,
        worlds: Sequence[Populations],
        leniency: float,
        seed: int,
        *,
        kept: Path | None = None,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._map_tasks, self._worlds = map_tasks, worlds
        self._leniency, self._seed = leniency, seed
        parts = [[np.asarray(part).tolist() for part in world] for world in worlds]
        identity = {"worlds": digest_value(parts), "leniency": leniency, "seed": seed}
        self._folder = None if kept is None else open_store(kept, identity)
        self._results: dict[str, Any] = {}
        self._on_progress = on_progress

    def __call__(
        self, designs: Sequence[Design], count: int, way: str = "normal"
    ) -> list[list[Outcome]]:
        """Simulate so many studies of every design."""
        drawn_from = self._worlds, self._leniency, self._seed
        tasks = [_list_tasks(*drawn_from, design, count, way) for design in designs]
        if way == "normal":  # together: a number of answers is a program to compile
            names = [f"{way} {_name(design)} x {count}" for design in designs]
            outcomes = self.results(_simulate_tasks, tasks, names)
        else:
            names = [f"{way} {_name(d)} {number}" for d in designs for number in range(count)]
            flat = self.results(_simulate_one, [task for each in tasks for task in each], names)
            outcomes = [flat[place : place + count] for place in range(0, len(flat), count)]
        # As they are kept: JSON has no number where there is none.
        return [
            [Outcome(*(np.nan if each is None else each for each in kept)) for kept in of_design]
            for of_design in outcomes
        ]

    def results(
        self, work: Callable[[Any], Any], tasks: Sequence[Any], names: Sequence[str]
    ) -> list[Any]:
        """Results of all tasks, in their order; those that are kept are not made again."""
        keys = [digest_value(name)[:16] for name in names]
        if self._folder is not None:
            unread = (key for key in keys if key not in self._results)
            self._results |= read_kept(self._folder, unread)
        missing = [place for place, key in enumerate(keys) if key not in self._results]
        self._on_progress(len(tasks) - len(missing))
        for place, result in self._map_tasks(work, [tasks[place] for place in missing]):
            key = keys[missing[place]]
            self._results[key] = result
            if self._folder is not None:
                keep(self._folder, key, replace_non_finite(result))
            self._on_progress(1)
        return [self._results[key] for key in keys]

    def slopes(self, numbers: Sequence[int], aim: Aim) -> list[float]:
        """A of every number of answers."""
        common = self._worlds, self._leniency, self._seed
        designs = [(n, aim.width, aim.limits.images_at(aim.prices, n)) for n in numbers]
        names = [f"law answers={n} width={width} most={most:g}" for n, width, most in designs]
        return self.results(_find_slope, [(*common, *each) for each in designs], names)


def _list_tasks(
    worlds: Sequence[Populations], leniency: float, seed: int, design: Design, count: int, way: str
) -> list[tuple[Populations, Design, float, int, Any]]:
    """A task for each of so many studies of a design, which take the worlds in turn."""
    return [
        (worlds[number % len(worlds)], design, leniency, seed + number, way)
        for number in range(count)
    ]


def _simulate_one(task: tuple[Populations, Design, float, int, Any]) -> list[float]:
    world, design, leniency, seed, way = task
    return list(outcome(world, design, leniency=leniency, seed=seed, way=way))


def _simulate_tasks(
    tasks: Sequence[tuple[Populations, Design, float, int, Any]],
) -> list[list[float]]:
    return [_simulate_one(task) for task in tasks]


def _find_slope(task: tuple[Sequence[Populations], float, int, int, float | None, float]) -> float:
    """A of a number of answers, at the simulated size nearer to the one a plan will need."""
    worlds, leniency, seed, answers, width, most = task

    def mean_square(images: int, count: int) -> float:
        tasks = _list_tasks(worlds, leniency, seed, Design(images, answers), count, "normal")
        outcomes = [Outcome(*each) for each in _simulate_tasks(tasks)]
        return average_outcomes(outcomes).mean_width ** 2

    needed = most
    if width is not None:
        needed = min(needed, N_IMAGES[0] * mean_square(N_IMAGES[0], STUDIES_OF_SIZE[0]) / width**2)
    images = N_IMAGES[1] if needed < 2 * N_IMAGES[1] else N_IMAGES[2]
    return images * mean_square(images, STUDIES_OF_SIZE[1])


def _name(design: Design) -> str:
    return " ".join(f"{name}={value}" for name, value in asdict(design).items())


def simulated_numbers(numbers: Sequence[int]) -> list[int]:
    """Select the numbers of answers to simulate: few, from the first to the last."""
    places = np.linspace(0, len(numbers) - 1, min(len(numbers), MOST_SIMULATED))
    return [numbers[place] for place in places.round().astype(int)]


def find_laws(studied: SimulatedDesigns, numbers: Sequence[int], aim: Aim) -> list[Law]:
    """The law of each number of answers, workers left out, by normal approximations."""
    simulated = simulated_numbers(numbers)
    slopes = studied.slopes(simulated, aim)
    if len(simulated) == MOST_SIMULATED:
        # A falls smoothly with the answers: a parabola of logarithms says what lies between, and
        # takes out what is of few studies.
        log_images, simulated_at = np.log(numbers), np.log(simulated)
        slopes = np.exp(np.polynomial.Polynomial.fit(simulated_at, np.log(slopes), 2)(log_images))
    return [Law(n, float(slope)) for n, slope in zip(numbers, slopes, strict=True)]


def worker_parts(studied: SimulatedDesigns, workers: int | None) -> dict[int, float]:
    """β of one crowd and of two: what W workers add to the squared width, times W."""
    answers, size = WORKER_TRIAL["answers"], CROWD_SIZES[1] if workers is None else workers
    designs = [
        Design(WORKER_TRIAL["images"], answers, max(size // crowds, answers), crowds)
        for crowds in (1, 2)
    ]
    worker_part: dict[int, float] = {}
    for design, outcomes in zip(
        designs, studied(designs, STUDIES_OF_CROWDS, "laplace"), strict=True
    ):
        converged = [each for each in outcomes if each.converged] or outcomes
        assert design.workers is not None
        added = float(np.mean([each.added for each in converged]))
        worker_part[design.crowds] = max(added, 0.0) * design.workers
    return worker_part


class CertifiedDesign(NamedTuple):
    """Results of certified fits of a design."""

    design: Design  # images, answers and workers of the simulated studies
    # What the studies found: of certified fits, or of normal approximations where hardly any was
    outcomes: list[Outcome]
    certified: int  # how many fits were certified


def certify_option(studied: SimulatedDesigns, option: Option, studies: int) -> CertifiedDesign:
    """Fits of a design that hold; where hardly any does, normal approximations of its studies."""
    design = replace(option.design, images=min(option.design.images, MAX_SIMULATED_IMAGES))
    (outcomes,) = studied([design], studies, "laplace")
    converged = [each for each in outcomes if each.converged]
    if len(converged) > 1:
        return CertifiedDesign(design, converged, len(converged))
    (normal,) = studied([design], studies)
    return CertifiedDesign(design, normal, len(converged))
