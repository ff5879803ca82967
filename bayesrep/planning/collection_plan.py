"""Planning a replication: how many images, answers and workers an interval of some width takes.

Populations are drawn from a pilot's posterior, a study of each design from these, and analysed as
the real one will be. The mean width of the mean bias-corrected gap's 95 % interval follows for n
answers

    width² = A_n / images + B,        B = β / W with W workers, one β for one crowd and one for two.

A is found by normal approximations, β by certified fits, which correct the law.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import norm

from bayesrep.errors import OptionError
from bayesrep.parallel import open_pool
from bayesrep.planning.design_widths import (
    CROWD_SIZES,
    STUDIES_OF_CROWDS,
    CertifiedDesign,
    SimulatedDesigns,
    certify_option,
    find_laws,
    simulated_numbers,
    worker_parts,
)
from bayesrep.planning.designs import LEAST_IMAGES, Aim, Law, Limits, Option, Prices, law_of
from bayesrep.planning.populations import DEFAULT_LENIENCY, Design
from bayesrep.planning.simulate_design import Outcome, average_outcomes
from bayesrep.progress import progress_bar
from bayesrep.studies.populations import Populations

MAX_PLAN_ANSWERS = 200
ANSWER_OPTIONS = (5, 8, 10, 15, 20, 30, 40, 60)  # fewer leave much of p(s) to its shape
PLAN_STUDIES = 12  # simulated studies of the design that is chosen
TRUE_DIFFERENCES = (0.0025, 0.005, 0.01, 0.02)
Z_95 = float(norm.ppf(0.975))


@dataclass(frozen=True, eq=False)
class Plan:
    """Plan of a replication, with its expected results.

    Attributes
    ----------
    design, cost
        What is proposed.
    width
        Expected width of the 95 % interval of the mean bias-corrected gap.
    range
        5 % and 95 % quantiles of the width over simulated studies.
    wanted
        The width asked for; None where a budget was all that was given.
    reached
        Whether the design has that width within the limits.
    expected
        Means over the simulated studies of certified fits.
    studies
        How many these are.
    certified
        How many of them were certified.
    correction
        Factor by which widths of these fits, without what workers add, differ from those that
        normal approximations say; all designs are corrected by it.
    laws
        By number of answers, corrected.
    options
        The cheapest design of every number of answers, by cost; those that do not reach the width
        have as many images as the limits allow.
    by_money
        The best design at several budgets.
    crowds
        What other crowds would make of the width: label, workers in all, width.
    power
        Power of a test at 5 % to tell two classifiers apart by their adjusted accuracies.
    """

    design: Design
    cost: float
    width: float
    range: tuple[float, float]
    wanted: float | None
    reached: bool
    expected: Outcome
    studies: int
    certified: int
    correction: float
    laws: Sequence[Law]
    options: Sequence[Option]
    by_money: Sequence[Option]
    crowds: Sequence[tuple[str, int | None, float]]
    power: Mapping[float, float]


def plan(
    worlds: Sequence[Populations],
    prices: Prices,
    *,
    width: float | None = None,
    limits: Limits | None = None,
    workers: int | None = None,
    crowds: int = 1,
    leniency: float = DEFAULT_LENIENCY,
    answers: Sequence[int] = ANSWER_OPTIONS,
    studies: int = PLAN_STUDIES,
    seed: int = 0,
    jobs: int | None = None,
    cluster: str | None = None,
    kept: Path | None = None,
    progress: bool = False,
) -> Plan:
    """The cheapest design whose interval has a width, or the best one for some money.

    Parameters
    ----------
    worlds
        Populations, of a pilot's draws or published: simulated studies take them in turn.
    prices
        Prices of answers and images.
    width
        Wanted of the 95 % interval of the mean bias-corrected gap, a fraction.
    limits
        Most images and most money. Without a width there has to be a budget.
    workers
        How many there are in all; None: every answer is another worker's.
    crowds
        1: the same workers answer about both data sets; 2: half of them about each.
    leniency
        By how much workers differ, an sd on the probit scale.
    answers
        Numbers of answers about an image to choose from.
    studies
        Simulated studies of the design that is chosen.
    seed
        Seed of all that is random.
    jobs, cluster
        Processes (one a core; 1: this one), or in their place a Ray cluster's address: "local",
        "auto" or HOST:PORT.
    kept
        Folder for results as they are made; a stopped plan goes on from there.
    progress
        Show a bar on standard error.

    Returns
    -------
    Plan

    Raises
    ------
    OptionError
        If something is out of range, or what is asked contradicts itself.
    """
    limits = limits or Limits()
    if not 0 <= leniency <= 5:
        raise OptionError("leniency-out-of-range", leniency=leniency)
    numbers = possible_answers(
        prices,
        width=width,
        limits=limits,
        workers=workers,
        crowds=crowds,
        answers=answers,
        studies=studies,
    )
    each = None if workers is None else workers // crowds
    aim = Aim(prices, limits, width, Design(LEAST_IMAGES, numbers[0], each, crowds))
    pieces = len(simulated_numbers(numbers)) + 2 * STUDIES_OF_CROWDS + studies
    with (
        progress_bar(pieces, "piece", show=progress) as bar,
        open_pool(jobs, cluster=cluster) as map_tasks,
    ):
        # First the law of each number of answers, then what workers add, then the plan itself.
        drawn_from = worlds, leniency, seed
        studied = SimulatedDesigns(map_tasks, *drawn_from, kept=kept, on_progress=bar.advance)
        bar.stage("designs")
        laws = find_laws(studied, numbers, aim)
        bar.stage("workers")
        worker_part = worker_parts(studied, workers)
        if each is not None:
            laws = [law._replace(floor=worker_part[crowds] / each) for law in laws]
        bar.stage("the plan")
        certified = certify_option(studied, aim.cheapest(laws), studies)
    return _conclude(aim, laws, worker_part, certified, studies)


def _conclude(
    aim: Aim,
    laws: Sequence[Law],
    worker_part: Mapping[int, float],
    certified: CertifiedDesign,
    studies: int,
) -> Plan:
    """The plan, by laws that fits of the chosen design correct."""
    middle, like = average_outcomes(certified.outcomes), aim.like
    law = law_of(laws, certified.design)
    ratio = (middle.alone_width / law.width_without_workers(certified.design.images)) ** 2
    # What workers add to the squared width does not fall with the images.
    floor = 0.0
    if like.workers is not None:
        # It varies severalfold from study to study, so those of the trial size count, too.
        # Normal approximations cannot tell.
        n_certified = len(certified.outcomes) if certified.certified > 1 else 0
        added = max(float(np.mean([each.added for each in certified.outcomes])), 0.0)
        pooled = np.average(
            [added * like.workers, worker_part[like.crowds]],
            weights=[n_certified, STUDIES_OF_CROWDS],
        )
        floor, worker_part = pooled / like.workers, {**worker_part, like.crowds: float(pooled)}
    laws = [law._replace(slope=ratio * law.slope, floor=floor) for law in laws]
    # The design is chosen again, of as many answers; outcomes were simulated at another size.
    law = law_of(laws, certified.design)
    chosen = aim.option(law)
    images = chosen.design.images
    stretch = law.width(images) / middle.mean_width
    widths = np.array([outcome.mean_width for outcome in certified.outcomes]) * stretch
    alone = law.width_without_workers(images)
    smaller = alone / middle.alone_width
    expected = middle._replace(
        mean_width=chosen.width,
        alone_width=alone,
        single_width=float(np.sqrt(max(middle.single_width**2 - floor, 0.0) * smaller**2 + floor)),
        pair_width=middle.pair_width * smaller,
        error=middle.error * stretch,
    )
    low, high = np.quantile(widths, (0.05, 0.95))
    # With one classifier there are no two to tell apart.
    sd = expected.pair_width / (2 * Z_95)
    differences = TRUE_DIFFERENCES if np.isfinite(sd) else ()
    return Plan(
        design=chosen.design,
        cost=chosen.cost,
        width=chosen.width,
        range=(float(low), float(high)),
        wanted=aim.width,
        reached=aim.is_reached(chosen.width),
        expected=expected,
        studies=studies,
        certified=certified.certified,
        correction=float(np.sqrt(ratio)),
        laws=laws,
        options=aim.options(laws),
        by_money=aim.by_money(laws, chosen.cost),
        crowds=_crowds(alone, worker_part, like.in_all, chosen.design.answers),
        power={d: float(norm.cdf(d / sd - Z_95) + norm.cdf(-d / sd - Z_95)) for d in differences},
    )


def possible_answers(
    prices: Prices,
    *,
    width: float | None,
    limits: Limits,
    workers: int | None = None,
    crowds: int = 1,
    answers: Sequence[int] = ANSWER_OPTIONS,
    studies: int = PLAN_STUDIES,
) -> list[int]:
    """The numbers of answers that a plan may choose from; arguments and errors are `plan`'s."""
    if width is None and not np.isfinite(limits.budget):
        raise OptionError("plan-without-width-or-budget")
    if width is not None and not 0 < width < 1:
        raise OptionError("plan-width-out-of-range", width_points=100 * width)
    if not (limits.budget > 0 and limits.images >= LEAST_IMAGES):
        raise OptionError("budget-or-images-too-small")
    if studies < 2:
        raise OptionError("planned-studies-below-two", studies=studies)
    if not answers or min(answers) < 2 or max(answers) > MAX_PLAN_ANSWERS:
        raise OptionError("planned-answers-out-of-range", most_answers=MAX_PLAN_ANSWERS)
    most = np.inf if workers is None else workers // crowds
    if not (numbers := sorted({n for n in answers if n <= most})):
        raise OptionError(
            "crowd-below-answers-per-image", workers=workers, crowds=crowds, answers=min(answers)
        )
    if prices.answer == prices.image == 0 and np.isfinite(limits.budget):
        raise OptionError("budget-where-all-is-free")
    if possible := [n for n in numbers if limits.images_at(prices, n) >= LEAST_IMAGES]:
        return possible
    raise OptionError(
        "budget-below-smallest-study",
        budget=limits.budget,
        answers=numbers[0],
        cost=LEAST_IMAGES * prices.of_image(numbers[0]),
    )


def _crowds(
    alone: float, worker_part: Mapping[int, float], workers: int | None, answers: int
) -> list[tuple[str, int | None, float]]:
    """Widths with other crowds, of so many workers in all."""
    sizes = CROWD_SIZES if workers is None else (workers // 2, workers, 2 * workers)
    rows: list[tuple[str, int | None, float]] = [("every answer another worker's", None, alone)]
    for size in sizes:
        for crowds, label in ((1, "one crowd for both"), (2, "a crowd for each")):
            if size // crowds >= answers:
                width = np.sqrt(alone**2 + worker_part[crowds] / (size // crowds))
                rows.append((label, size, float(width)))
    return rows
