"""Cost designs, and find the cheapest one within some limits that reaches a width."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bayesrep.errors import OptionError
from bayesrep.planning.populations import Design

LEAST_IMAGES = 20
MAX_SIMULATED_IMAGES = 20_000  # images of a simulated study, at most; beyond, the law holds
BUDGET_SHARES = (0.25, 0.5, 1.0, 2.0, 4.0)
_ROUNDING_MARGIN = 1.0005


@dataclass(frozen=True)
class Prices:
    """Prices of answers and images, in any currency.

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
        """Return the cost of one more image of each data set."""
        return 2 * answers * self.answer + self.image

    def cost_of(self, design: Design) -> float:
        """Return the cost of a study."""
        return design.images * self.of_image(design.answers)


class Law(NamedTuple):
    """Law of the mean gap's interval width over images, for a fixed number of answers about each.

    width² = A / images + B
    """

    answers: int
    slope: float
    floor: float = 0.0

    def width(self, images: float) -> float:
        """Width of the 95 % interval."""
        return float(np.sqrt(self.slope / images + self.floor))

    def width_without_workers(self, images: float) -> float:
        """Width of the interval without the workers' part."""
        return float(np.sqrt(self.slope / images))

    def images(self, width: float) -> float:
        """Return the number of images with this width; infinite where none reaches it."""
        remainder = np.square(width) - self.floor
        return float(self.slope / remainder) if remainder > 0 else np.inf


class Option(NamedTuple):
    """A design with what it costs, and the width that its law says."""

    design: Design
    cost: float
    width: float


class Limits(NamedTuple):
    """Limits of a plan: most images of each data set, and most money."""

    images: float = np.inf
    budget: float = np.inf

    def images_at(self, prices: Prices, answers: float) -> float:
        """Most images of each data set."""
        price = prices.of_image(answers)
        return min(self.images, self.budget / price if price > 0 else np.inf)


@dataclass(frozen=True)
class Aim:
    """Aim of a plan: a width, or the narrowest interval for the money."""

    prices: Prices  # of answers and images
    limits: Limits
    width: float | None  # width of the mean gap's 95 % interval; None: the narrowest for the money
    like: Design  # design that all others share crowds and workers with

    def is_reached(self, width: float) -> bool:
        """Return whether an interval is as narrow as was asked."""
        return self.width is None or width <= self.width * _ROUNDING_MARGIN

    def option(self, law: Law) -> Option:
        """The cheapest design with so many answers; the largest where none reaches the width."""
        most = self.limits.images_at(self.prices, law.answers)
        number = most if self.width is None else min(law.images(self.width), most)
        if not np.isfinite(number):  # no number of images gives it: what many would
            number = most = MAX_SIMULATED_IMAGES
        images = max(LEAST_IMAGES, int(np.floor(number) if number == most else np.ceil(number)))
        design = replace(self.like, images=images, answers=law.answers)
        return Option(design, self.prices.cost_of(design), law.width(images))

    def cheapest(self, laws: Sequence[Law]) -> Option:
        """The cheapest that reaches the width, with few answers, or else the narrowest."""
        options = [self.option(law) for law in laws]
        reach = [each for each in options if self.width is not None and self.is_reached(each.width)]
        if reach:
            return min(
                reach, key=lambda each: (each.cost, each.design.images * each.design.answers)
            )
        return min(options, key=lambda each: (each.width, each.cost))

    def options(self, laws: Sequence[Law]) -> list[Option]:
        """The cheapest design of every number of answers, by cost, those that reach it first."""
        every = (self.option(law) for law in laws)
        return sorted(every, key=lambda each: (not self.is_reached(each.width), each.cost))

    def by_money(self, laws: Sequence[Law], cost: float) -> list[Option]:
        """The narrowest design for several budgets around a cost."""
        options: list[Option] = []
        for share in BUDGET_SHARES if cost > 0 else ():
            within = Limits(self.limits.images, share * cost)
            affordable = [
                law for law in laws if within.images_at(self.prices, law.answers) >= LEAST_IMAGES
            ]
            if affordable:
                options.append(replace(self, width=None, limits=within).cheapest(affordable))
        return options


def law_of(laws: Sequence[Law], design: Design) -> Law:
    """The law of a design's number of answers."""
    return next(law for law in laws if law.answers == design.answers)
