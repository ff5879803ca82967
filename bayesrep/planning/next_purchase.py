"""Choose the next purchase for a replication that has begun: answers, images, or both."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayesrep.errors import OptionError
from bayesrep.parallel import open_pool
from bayesrep.planning.design_widths import SimulatedDesigns
from bayesrep.planning.designs import MAX_SIMULATED_IMAGES, Prices
from bayesrep.planning.populations import DEFAULT_LENIENCY, Design
from bayesrep.planning.simulate_design import average_outcomes
from bayesrep.progress import progress_bar
from bayesrep.studies.populations import Populations

BATCH_STUDIES = 12  # simulated studies of every design that money could buy


class Purchase(NamedTuple):
    """Purchase that money allows next, with the interval width expected of it.

    `answers` is a mean: part of the images may have one more.
    """

    label: str
    images: int
    answers: float
    cost: float
    width: float


def next_batch(
    worlds: Sequence[Populations],
    prices: Prices,
    *,
    design: Design,
    width_now: float,
    money: float,
    leniency: float = DEFAULT_LENIENCY,
    seed: int = 0,
    jobs: int | None = None,
    cluster: str | None = None,
    kept: Path | None = None,
    progress: bool = False,
) -> list[Purchase]:
    """Choose the next batch: more answers about the images at hand, more images, or some of both.

    Parameters
    ----------
    worlds, prices, leniency, seed, jobs, cluster, kept, progress
        As `plan` takes them; worlds are of the posterior of what there is.
    design
        What there is.
    width_now
        Width of today's 95 % interval of the mean bias-corrected gap, a fraction.
    money
        For the next batch.

    Returns
    -------
    list of Purchase
        The narrowest first.

    Raises
    ------
    OptionError
        If the money buys nothing, or everything.
    """
    bought = _bought(design, prices, money)
    # Fractional numbers of answers lie between two whole ones, which are simulated.
    ends = sorted(
        {
            (images, int(whole))
            for images, answers in [(design.images, design.answers), *bought.values()]
            for whole in (np.floor(answers), np.ceil(answers))
        }
    )
    designs = [
        replace(design, images=min(images, MAX_SIMULATED_IMAGES), answers=answers)
        for images, answers in ends
    ]
    with (
        progress_bar(len(ends), "piece", show=progress) as bar,
        open_pool(jobs, cluster=cluster) as map_tasks,
    ):
        drawn_from = worlds, leniency, seed
        studied = SimulatedDesigns(map_tasks, *drawn_from, kept=kept, on_progress=bar.advance)
        outcomes = studied(designs, BATCH_STUDIES)
    widths = [average_outcomes(each).mean_width for each in outcomes]
    squares = {end: width**2 for end, width in zip(ends, widths, strict=True)}
    now = design.images, design.answers
    scale = width_now / _width_between(squares, *now)
    purchases = [
        Purchase(label, *each, money, scale * _width_between(squares, *each))
        for label, each in bought.items()
        if each != now
    ]
    if not purchases:
        raise OptionError("batch-money-buys-nothing", money=money)
    return sorted(purchases, key=lambda each: each.width)


def _bought(design: Design, prices: Prices, money: float) -> dict[str, tuple[int, float]]:
    """Images and answers that the same money buys: answers only, images only, or half of each."""
    if not money > 0:
        raise OptionError("batch-money-not-positive", money=money)
    a_round, an_image = 2 * design.images * prices.answer, prices.of_image(design.answers)
    if a_round == 0 or an_image == 0:
        raise OptionError("batch-answers-cost-nothing")
    half = design.answers + money / 2 / a_round
    more = int(money / 2 / prices.of_image(half))
    bought = {
        "answers about the images at hand": (design.images, design.answers + money / a_round),
        "images": (design.images + int(money / an_image), float(design.answers)),
        "some of both": (design.images + more, half),
    }
    # A worker answers about an image once, so answers cannot exceed workers.
    workers = design.workers or np.inf
    return {label: each for label, each in bought.items() if np.ceil(each[1]) <= workers}


def _width_between(squares: Mapping[tuple[int, int], float], images: int, answers: float) -> float:
    """Width at a mean number of answers: its square is linear in the images with one more."""
    low, high = int(np.floor(answers)), int(np.ceil(answers))
    part = answers - low
    return float(np.sqrt((1 - part) * squares[images, low] + part * squares[images, high]))
