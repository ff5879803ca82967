"""Number of annotators n' for naive matching, and the images left out of it.

n' is the most annotators that at least 99 % of the images of each data set have: one sparse image
among thousands discards no answers about the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index

import numpy as np

from bayesrep.errors import OptionError
from bayesrep.estimators.replicates import CellCounts, Replicates
from bayesrep.studies.validation import REQUIRED_ROLES

SPARSE_SHARE = 0.01
"""Largest share of a data set's images that may be left out for too few annotators."""


@dataclass(frozen=True)
class AnnotatorMatch:
    """Number of annotators that images are matched with, and the images left out, by role."""

    annotators: int  # n', to which every image is thinned
    left_out: Mapping[str, int]  # with fewer annotators than n'
    images: int  # of both data sets, including those left out
    fewest: int  # annotators of any image
    limiting_images: Mapping[str, int]  # with exactly n' annotators, where the majority have more
    without: int  # n' without the limiting images
    most: int  # annotators of any image

    @classmethod
    def from_replicates(
        cls, replicates: Replicates, annotators: int | None = None
    ) -> "AnnotatorMatch":
        """Match with the given n', by default the most that 99 % of the images have."""
        usual = usual_annotators(replicates)
        n = usual if annotators is None else index(annotators)
        if not 1 <= n <= usual:
            raise OptionError("thinned-annotators-out-of-range", annotators=n, fewest=usual)
        sets = dict(zip(REQUIRED_ROLES, replicates.datasets, strict=True))
        half = min(_usual_annotators(cells, 0.5) for cells in sets.values())
        # Images limit n' where they are few: half of the images have more annotators.
        few = n == usual < half
        limits = {role: few and _usual_annotators(cells) == usual for role, cells in sets.items()}
        unlimited = (c.with_at_least(n + 1) if limits[role] else c for role, c in sets.items())
        return cls(
            n,
            {role: _count_with_fewer(cells, n) for role, cells in sets.items()},
            int(sum(cells.images[0].sum() for cells in sets.values())),
            int(min(cells.shown.min() for cells in sets.values())),
            {r: _count_with_fewer(cells, n + 1) if limits[r] else 0 for r, cells in sets.items()},
            min(map(_usual_annotators, unlimited)) if any(limits.values()) else n,
            max(int(cells.shown[cells.images[0] > 0].max()) for cells in sets.values()),
        )

    @property
    def thins(self) -> bool:
        """True if some image has more annotators than n'."""
        return self.most > self.annotators

    @property
    def dropped_images(self) -> int:
        """Number of images left out."""
        return sum(self.left_out.values())


def usual_annotators(replicates: Replicates) -> int:
    """Return the most annotators n' that at least 99 % of the images of each data set have."""
    return min(map(_usual_annotators, replicates.datasets))


def take_annotated(replicates: Replicates, annotators: int) -> Replicates:
    """Select the images with at least so many annotators, in every version."""
    reference, replication = (cells.with_at_least(annotators) for cells in replicates.datasets)
    return Replicates(reference, replication, replicates.words)


def _usual_annotators(cells: CellCounts, sparse: float = SPARSE_SHARE) -> int:
    """Return the most annotators that all images but a share `sparse` of them have."""
    images = cells.images[0]
    candidates = np.unique(cells.shown[images > 0])
    # Numbers of annotators are candidates for n', increasing.
    fewer = np.array([images[cells.shown < number].sum() for number in candidates])
    return int(candidates[fewer <= sparse * images.sum()][-1])


def _count_with_fewer(cells: CellCounts, annotators: int) -> int:
    return int(cells.images[0][cells.shown < annotators].sum())
