"""Which images naive matching takes, and with how many annotators.

Matching on k of n needs one n for all images, and annotators can be forgotten, not added. With as
many as the image has that was shown to the fewest, one sparse image among thousands would cost all
the others theirs. So n' is the most annotators that at least 99 % of the images of each data set
have, and the few images with fewer are left out of naive matching and of what is made of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index

import numpy as np

from bayesrep.errors import OptionError
from bayesrep.estimators.replicates import CellCounts, Replicates
from bayesrep.studies.rules import REQUIRED_ROLES

SPARSE = 0.01
"""Share of a data set's images that may be left out for their few annotators."""


@dataclass(frozen=True)
class AnnotatorMatch:
    """With how many annotators images are matched, and which are not.

    Attributes
    ----------
    annotators
        n', which every image is thinned to.
    left_out
        How many images of each data set, by role, have fewer and are left out.
    images
        How many images both data sets have, with those left out.
    fewest
        The annotators of the image that has the fewest.
    holding
        How many images of each data set, by role, are why n' is not larger: they have no more,
        where half of the images or more have.
    without
        n' without these images; n' itself where there are none.
    most
        The annotators of the image that has the most.
    """

    annotators: int
    left_out: Mapping[str, int]
    images: int
    fewest: int
    holding: Mapping[str, int]
    without: int
    most: int

    @classmethod
    def from_replicates(
        cls, replicates: Replicates, annotators: int | None = None
    ) -> "AnnotatorMatch":
        """What is kept with the given n', or the most that 99 % of the images have.

        Raises
        ------
        OptionError
            Where `annotators` is less than 1, or more than 99 % of the images have.
        """
        most = usual_annotators(replicates)
        number = most if annotators is None else index(annotators)
        if not 1 <= number <= most:
            raise OptionError("thinned-annotators-out-of-range", annotators=number, fewest=most)
        sets = dict(zip(REQUIRED_ROLES, _both_versions(replicates), strict=True))
        half = min(_usual_annotators(cells, 0.5) for cells in sets.values())
        holds = [
            number == most < half and _usual_annotators(cells) == most for cells in sets.values()
        ]
        reference, replication = (
            cells.keep_shown_to(number + 1) if hold else cells
            for cells, hold in zip(sets.values(), holds, strict=True)
        )
        without = Replicates(reference, replication, replicates.words)
        return cls(
            number,
            {role: _count_with_fewer(cells, number) for role, cells in sets.items()},
            int(sum(cells.images[0].sum() for cells in sets.values())),
            fewest_annotators(replicates),
            {
                role: _count_with_fewer(cells, number + 1) if hold else 0
                for (role, cells), hold in zip(sets.items(), holds, strict=True)
            },
            usual_annotators(without) if any(holds) else number,
            max(int(cells.shown[cells.images[0] > 0].max()) for cells in sets.values()),
        )

    @property
    def thins(self) -> bool:
        """Whether some image has more annotators than n'."""
        return self.most > self.annotators

    @property
    def dropped_images(self) -> int:
        """How many images are left out."""
        return sum(self.left_out.values())

    def take(self, replicates: Replicates) -> Replicates:
        """The same versions without the images that have fewer annotators than n'."""
        return take_annotated(replicates, self.annotators)


def fewest_annotators(replicates: Replicates) -> int:
    """The most annotators that every image of both data sets has."""
    return int(min(replicates.reference.shown.min(), replicates.replication.shown.min()))


def usual_annotators(replicates: Replicates) -> int:
    """The most annotators n' that at least 99 % of the images of each data set have."""
    return min(map(_usual_annotators, _both_versions(replicates)))


def take_annotated(replicates: Replicates, annotators: int) -> Replicates:
    """The versions without the images that have fewer annotators."""
    reference, replication = (
        cells.keep_shown_to(annotators) for cells in _both_versions(replicates)
    )
    return Replicates(reference, replication, replicates.words)


def _both_versions(replicates: Replicates) -> tuple[CellCounts, CellCounts]:
    return replicates.reference, replicates.replication


def _usual_annotators(cells: CellCounts, sparse: float = SPARSE) -> int:
    """The most annotators that all images have but a share of them."""
    images = cells.images[0]
    numbers = np.unique(cells.shown[images > 0])
    fewer = np.array([images[cells.shown < number].sum() for number in numbers])
    return int(numbers[fewer <= sparse * images.sum()][-1])


def _count_with_fewer(cells: CellCounts, annotators: int) -> int:
    return int(cells.images[0][cells.shown < annotators].sum())
