"""Planning a replication: how many images, answers and workers an interval of some width takes.

Preposterior analysis by simulation (Raiffa and Schlaifer 1961, part I): populations are drawn from
a pilot's posterior, a study of each design from these, and it is analysed as the real one will be.
For every number of answers n the mean width of the 95 % interval of the mean bias-corrected gap
follows a law

    width² = A_n / images + B,

the first part what a sample of images leaves, with a slope A_n for n answers, the second part what
W workers leave who answer about many images each: B = β / W, with one β for one crowd that answers
about both data sets, whose leniency hardly matters, and another for two. A is found by normal
approximations, β by certified fits. The design that is chosen is simulated again with certified
fits, whose widths correct the law, and whose intervals are held against the truth.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from bayesrep.errors import OptionError
from bayesrep.lab.outcomes import Outcome, average_outcomes, outcome
from bayesrep.lab.spreading import Spread, spread_over
from bayesrep.lab.worlds import LENIENCY, Design
from bayesrep.progress import progress_bar
from bayesrep.studies.simulate import Populations

MOST_ANSWERS = 200
ANSWERS = (5, 8, 10, 15, 20, 30, 40, 60)
"""Numbers of answers to choose from; fewer leave much of p(s) to its assumed shape."""
SIZES = (1_000, 4_000, 16_000)
"""Images of simulated studies: the first size decides at which of the others A is estimated."""
TRIAL = {"images": 4_000, "answers": 10}
"""Images and answers of the simulated studies that β is estimated from."""
LAWS_TO_SMOOTH = 5
STUDIES_PER_SIZE = 6
"""Simulated studies of each size."""
MOST_IMAGES = 20_000
"""Images of a simulated study, at most; beyond, the law holds."""
CROWDS = (50, 200, 1_000)
"""Workers to compare, where it is not said how many there are."""
BUDGETS = (0.25, 0.5, 1.0, 2.0, 4.0)
DIFFERENCES = (0.0025, 0.005, 0.01, 0.02)
Z = float(norm.ppf(0.975))


@dataclass(frozen=True)
class Prices:
    """What things cost, in any currency.

    Parameters
    ----------
    answer
        Price of one answer about an image of either data set.
    image
        Price of an image of the replication, with what it takes to find it.
    """

    answer: float
    image: float

    def __post_init__(self) -> None:
        if not (0 <= self.answer < np.inf and 0 <= self.image < np.inf):
            raise OptionError("negative-cost", answer_cost=self.answer, image_cost=self.image)

    def of_image(self, answers: float) -> float:
        """What one more image of each data set costs."""
        return 2 * answers * self.answer + self.image

    def cost_of(self, design: Design) -> float:
        """What a study costs."""
        return design.images * self.of_image(design.answers)


class Law(NamedTuple):
    """How the width of the mean gap's interval depends on images, given the answers about each.

    width² = A / images + B
    """

    answers: int
    slope: float
    floor: float = 0.0

    def width(self, images: float) -> float:
        """Width of the 95 % interval."""
        return float(np.sqrt(self.slope / images + self.floor))

    def width_without_workers(self, images: float) -> float:
        """The same without what workers leave."""
        return float(np.sqrt(self.slope / images))

    def images(self, width: float) -> float:
        """How many give this width; infinite where none do."""
        left = np.square(width) - self.floor
        return float(self.slope / left) if left > 0 else np.inf


class Option(NamedTuple):
    """A design with what it costs, and the width that its law says."""

    design: Design
    cost: float
    width: float


@dataclass(frozen=True, eq=False)
class Plan:
    """What to collect, and what to expect of it.

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
    normal_over_certified
        Ratio of the widths, without what workers add, by both ways to fit the same studies.
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
    normal_over_certified: float
    laws: Sequence[Law]
    options: Sequence[Option]
    by_money: Sequence[Option]
    crowds: Sequence[tuple[str, int | None, float]]
    power: Mapping[float, float]


class Limits(NamedTuple):
    """What bounds a plan: most images of each data set, and most money."""

    images: float = np.inf
    budget: float = np.inf

    def images_at(self, prices: Prices, answers: float) -> float:
        """Most images of each data set."""
        price = prices.of_image(answers)
        return min(self.images, self.budget / price if price > 0 else np.inf)


def plan(
    worlds: Sequence[Populations],
    prices: Prices,
    *,
    width: float | None = None,
    limits: Limits | None = None,
    workers: int | None = None,
    crowds: int = 1,
    leniency: float = LENIENCY,
    answers: Sequence[int] = ANSWERS,
    studies: int = 20,
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
    jobs, cluster, kept
        As `bayesrep.lab.spreading.Spread` takes them.
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
    like = Design(20, numbers[0], each, crowds)
    bound = _identity(worlds, leniency, seed)
    pieces = 2 * len(numbers) + 2 * STUDIES_PER_SIZE + studies + 1
    with progress_bar(pieces, "piece", show=progress) as bar:
        options: dict[str, Any] = {"jobs": jobs, "cluster": cluster, "kept": kept}
        with spread_over(identity=bound, told=bar.advance, **options) as spread:
            # First the law of each number of answers, then what workers add, then the plan itself.
            studied = Studied(spread, worlds, leniency, seed)
            bar.stage("designs")
            laws = _laws(studied, numbers, width, limits, prices)
            bar.stage("workers")
            left = {kind: _left_by_workers(studied, kind, workers) for kind in (1, 2)}
            if each is not None:
                laws = [law._replace(floor=left[crowds] / each) for law in laws]
            bar.stage("the plan")
            certified = _certify_option(
                studied, _cheapest(laws, like, prices, width, limits), studies
            )
    # Fits of the chosen design correct the laws, which rest on normal approximations.
    middle = average_outcomes(certified.trusted_outcomes)
    simulated = certified.design.images
    ratio = (
        middle.alone_width / _law_of(laws, certified.design).width_without_workers(simulated)
    ) ** 2
    # What workers add to the squared width does not fall with the images.
    floor = 0.0
    if each is not None:
        floor = max(float(np.square(middle.mean_width) - np.square(middle.alone_width)), 0.0)
        left[crowds] = floor * each
    laws = [law._replace(slope=ratio * law.slope, floor=floor) for law in laws]
    # The cheapest design is chosen again by the corrected laws.
    law = _law_of(laws, certified.design)
    chosen = _option(law, like, prices, width, limits)
    images = chosen.design.images
    # Outcomes were simulated at another size: scale them to the one chosen.
    stretch = law.width(images) / middle.mean_width
    widths = np.array([outcome.mean_width for outcome in certified.trusted_outcomes]) * stretch
    smaller = law.width_without_workers(images) / middle.alone_width
    expected = middle._replace(
        mean_width=chosen.width,
        alone_width=law.width_without_workers(images),
        single_width=float(np.sqrt(max(middle.single_width**2 - floor, 0.0) * smaller**2 + floor)),
        pair_width=middle.pair_width * smaller,
        error=middle.error * stretch,
    )
    low, high = np.quantile(widths, (0.05, 0.95))
    return Plan(
        design=chosen.design,
        cost=chosen.cost,
        width=chosen.width,
        range=(float(low), float(high)),
        wanted=width,
        reached=width is None or chosen.width <= width * 1.0005,
        expected=expected,
        studies=studies,
        certified=int(sum(each.converged for each in certified.certified)),
        normal_over_certified=certified.normal_over_certified,
        laws=laws,
        options=sorted(
            (_option(law, like, prices, width, limits) for law in laws),
            key=lambda option: (option.width > (width or np.inf) * 1.0005, option.cost),
        ),
        by_money=_by_money(laws, like, prices, chosen.cost, limits),
        crowds=_crowds(law.width_without_workers(images), left, workers, chosen.design.answers),
        power=_power(expected.pair_width),
    )


def possible_answers(
    prices: Prices,
    *,
    width: float | None,
    limits: Limits,
    workers: int | None = None,
    crowds: int = 1,
    answers: Sequence[int] = ANSWERS,
    studies: int = 20,
) -> list[int]:
    """The numbers of answers that a plan may choose from; arguments and errors are `plan`'s."""
    if width is None and not np.isfinite(limits.budget):
        raise OptionError("plan-without-width-or-budget")
    if width is not None and not 0 < width < 1:
        raise OptionError("plan-width-out-of-range", width_points=100 * width)
    if limits.budget <= 0 or limits.images < 20:
        raise OptionError("budget-or-images-too-small")
    if studies < 2:
        raise OptionError("planned-studies-below-two", studies=studies)
    if not answers or min(answers) < 2 or max(answers) > MOST_ANSWERS:
        raise OptionError("planned-answers-out-of-range", most_answers=MOST_ANSWERS)
    most = np.inf if workers is None else workers // crowds
    if not (numbers := sorted({n for n in answers if n <= most})):
        raise OptionError(
            "crowd-below-answers-per-image", workers=workers, crowds=crowds, answers=min(answers)
        )
    if prices.answer == prices.image == 0 and np.isfinite(limits.budget):
        raise OptionError("budget-where-all-is-free")
    if possible := [n for n in numbers if limits.images_at(prices, n) >= 20]:
        return possible
    raise OptionError(
        "budget-below-smallest-study",
        budget=limits.budget,
        answers=numbers[0],
        cost=20 * prices.of_image(numbers[0]),
    )


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


def _laws(
    studied: Studied,
    numbers: Sequence[int],
    width: float | None,
    limits: Limits,
    prices: Prices,
) -> list[Law]:
    """The law of each number of answers, workers left out, by normal approximations."""
    small = [Design(SIZES[0], n) for n in numbers]
    first = [average_outcomes(each).mean_width for each in studied(small, STUDIES_PER_SIZE)]

    def aim_size(design: Design, mean_width: float) -> Design:
        """The design at the simulated size that is nearer to the one the plan will need."""
        wanted = limits.images_at(prices, design.answers)
        if width is not None:
            wanted = min(wanted, design.images * (mean_width / width) ** 2)
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


def _left_by_workers(studied: Studied, crowds: int, workers: int | None) -> float:
    """β of one crowd or of two: what W workers add to the squared width, times W."""
    size = max(TRIAL["answers"], CROWDS[1] if workers is None else workers) // crowds
    design = Design(TRIAL["images"], TRIAL["answers"], max(size, TRIAL["answers"]), crowds)
    (outcomes,) = studied([design], STUDIES_PER_SIZE, "laplace")
    held = [each for each in outcomes if each.converged] or outcomes
    added = [np.square(each.mean_width) - np.square(each.alone_width) for each in held]
    assert design.workers is not None
    return max(float(np.mean(added)), 0.0) * design.workers


def _option(law: Law, like: Design, prices: Prices, width: float | None, limits: Limits) -> Option:
    """The cheapest design with so many answers; the largest where none reaches the width."""
    most = limits.images_at(prices, law.answers)
    wanted = most if width is None else min(law.images(width), most)
    if not np.isfinite(wanted):  # no number of images gives it: what many would
        wanted = most = MOST_IMAGES
    images = max(20, int(np.floor(wanted) if wanted == most else np.ceil(wanted)))
    design = replace(like, images=images, answers=law.answers)
    return Option(design, prices.cost_of(design), law.width(images))


def _cheapest(
    laws: Sequence[Law], like: Design, prices: Prices, width: float | None, limits: Limits
) -> Option:
    """The cheapest that reaches the width, or else the narrowest; of equal cost, few answers."""
    options = [_option(law, like, prices, width, limits) for law in laws]
    if width is not None:
        reach = [option for option in options if option.width <= width * 1.0005]
        if reach:
            return min(reach, key=lambda option: (option.cost, _answers(option)))
    return min(options, key=lambda option: (option.width, option.cost))


def _answers(option: Option) -> int:
    return option.design.images * option.design.answers


class _Certified(NamedTuple):
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


def _law_of(laws: Sequence[Law], design: Design) -> Law:
    """The law of a design's number of answers."""
    return next(law for law in laws if law.answers == design.answers)


def _certify_option(studied: Studied, option: Option, studies: int) -> _Certified:
    """Fits of a design, no larger than can be simulated, in both ways."""
    design = replace(option.design, images=min(option.design.images, MOST_IMAGES))
    (outcomes,) = studied([design], studies, "laplace")
    (normal,) = studied([design], studies)
    return _Certified(design, outcomes, normal)


def _crowds(
    alone: float, left: Mapping[int, float], workers: int | None, answers: int
) -> list[tuple[str, int | None, float]]:
    """Widths with other crowds, of so many workers in all."""
    sizes = CROWDS if workers is None else (workers // 2, workers, 2 * workers)
    rows: list[tuple[str, int | None, float]] = [("every answer another worker's", None, alone)]
    for size in sizes:
        for crowds, label in ((1, "one crowd for both"), (2, "a crowd for each")):
            if size // crowds >= answers:
                width = np.sqrt(alone**2 + left[crowds] / (size // crowds))
                rows.append((label, size, float(width)))
    return rows


def _by_money(
    laws: Sequence[Law], like: Design, prices: Prices, cost: float, limits: Limits
) -> list[Option]:
    """The narrowest design for several budgets around a cost."""
    if not cost > 0:
        return []
    options: list[Option] = []
    for share in BUDGETS:
        within = Limits(limits.images, share * cost)
        affordable = [law for law in laws if within.images_at(prices, law.answers) >= 20]
        if affordable:
            options.append(_cheapest(affordable, like, prices, None, within))
    return options


def _power(pair_width: float) -> dict[float, float]:
    """Power to tell two classifiers apart, by their difference; empty with one classifier."""
    if not np.isfinite(pair_width):
        return {}
    sd = pair_width / (2 * Z)
    return {d: float(norm.cdf(d / sd - Z) + norm.cdf(-d / sd - Z)) for d in DIFFERENCES}


class Purchase(NamedTuple):
    """What money could buy next, and the width that is to be expected of it.

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
    leniency: float = LENIENCY,
    seed: int = 0,
    jobs: int | None = None,
    cluster: str | None = None,
    kept: Path | None = None,
    progress: bool = False,
) -> list[Purchase]:
    """What to buy next: more answers about the images at hand, more images, or some of both.

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
    if not money > 0:
        raise OptionError("batch-money-not-positive", money=money)
    # What the same money buys: answers only, images only, or half of each.
    a_round, an_image = 2 * design.images * prices.answer, prices.of_image(design.answers)
    if a_round == 0 or an_image == 0:
        raise OptionError("batch-answers-cost-nothing")
    bought = {
        "answers about the images at hand": (design.images, design.answers + money / a_round),
        "images": (design.images + int(money / an_image), float(design.answers)),
    }
    half = design.answers + money / 2 / a_round
    more = int(money / 2 / prices.of_image(half))
    bought["some of both"] = (design.images + more, half)
    # A worker answers about an image once, so answers cannot exceed workers.
    workers = design.workers or np.inf
    bought = {label: each for label, each in bought.items() if np.ceil(each[1]) <= workers}
    # Fractional numbers of answers lie between two whole ones, which are simulated.
    ends = sorted(
        {
            (images, int(whole))
            for images, answers in [(design.images, design.answers), *bought.values()]
            for whole in (np.floor(answers), np.ceil(answers))
        }
    )
    designs = [
        replace(design, images=min(images, MOST_IMAGES), answers=answers)
        for images, answers in ends
    ]
    # Simulations that are kept belong to these worlds alone.
    bound = _identity(worlds, leniency, seed)
    with progress_bar(len(ends), "piece", show=progress) as bar:
        options: dict[str, Any] = {"jobs": jobs, "cluster": cluster, "kept": kept}
        with spread_over(identity=bound, told=bar.advance, **options) as spread:
            outcomes = Studied(spread, worlds, leniency, seed)(designs, 2 * STUDIES_PER_SIZE)
    # Squared widths are linear in the share of images with one more answer.
    square = {
        end: np.square(average_outcomes(each).mean_width)
        for end, each in zip(ends, outcomes, strict=True)
    }

    def width(images: int, answers: float) -> float:
        low, high = int(np.floor(answers)), int(np.ceil(answers))
        part = answers - low
        return float(np.sqrt((1 - part) * square[images, low] + part * square[images, high]))

    here = width(design.images, design.answers)
    purchases = [
        Purchase(label, images, answers, money, width_now * width(images, answers) / here)
        for label, (images, answers) in bought.items()
        if (images, answers) != (design.images, design.answers)
    ]
    if not purchases:
        raise OptionError("batch-money-buys-nothing", money=money)
    return sorted(purchases, key=lambda each: each.width)


def _identity(worlds: Sequence[Populations], leniency: float, seed: int) -> str:
    """What simulated studies depend on besides their design."""
    parts = [[np.asarray(part).tolist() for part in world] for world in worlds]
    return json.dumps([parts, leniency, seed])
