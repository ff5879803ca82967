"""A fit while it is made: what every method is given, and what it returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from bayesrep.inference.density import Draws
from bayesrep.inference.device import Choice
from bayesrep.inference.nested_laplace import MarginalSample
from bayesrep.inference.problem import Problem, Programs
from bayesrep.inference.schedule import Schedule
from bayesrep.models.model import Data
from bayesrep.progress import Progress
from bayesrep.types import Shaped


@dataclass(frozen=True, eq=False)
class Run:
    """What to sample and how.

    `marginal` is a sample of the Laplace marginal given everything, None with cut feedback;
    `folder` is that of the checkpoint, if there is one, and `times` how much longer than usual
    chains are.
    """

    problem: Problem
    tools: Programs
    data: Data
    schedule: Schedule
    seed: int
    device: Choice
    bar: Progress
    marginal: MarginalSample | None
    folder: Path | None
    times: int = 1

    @property
    def vectorized(self) -> bool:
        """Whether chains run as one batch."""
        return self.device.mesh is not None or self.device.device.platform != "cpu"

    def keys(self, stage: int) -> Array:
        """Build keys [chain, 2] of a stage of the fit."""
        return self.schedule.keys(jax.random.fold_in(jax.random.key(self.seed), stage))


class Drawn(NamedTuple):
    """Draws [chain, draw, ...] in the density's coordinates, and what more to record of them."""

    position: Draws
    stats: Mapping[str, Shaped[np.ndarray, "chain draw"]]
    facts: Mapping[str, float]
