"""Further modes of a posterior, where its mixtures may have some.

Data sets that share their components have had one mode in every study seen; components of their own
may be matched to the data in several ways. Climbs from draws of the prior find the ways, and normal
approximations say how much of the posterior lies around each.
"""

import jax
import numpy as np

from bayesrep.inference.arrowhead import whitening
from bayesrep.inference.mode import Climb, log_mass
from bayesrep.inference.prior import prior_positions
from bayesrep.inference.problem import Problem, Programs, climb_from_annotations
from bayesrep.models.model import Data
from bayesrep.types import Float

STARTS = 12
APART = 0.5
"""Standard deviations between the shared parameters of two modes."""


def mass_elsewhere(problem: Problem, tools: Programs, data: Data, seed: int) -> float:
    """Share of the posterior around other modes than the one that a fit starts from.

    0 where data sets share their components: nothing is searched.
    """
    if problem.options.shared_components:
        return 0.0
    key = jax.random.fold_in(jax.random.key(seed), 5)
    drawn = prior_positions(problem, tools, data, key, STARTS)["shared"][0]
    first = tools.start(problem.start(data))

    def mode_from(shared: Float[jax.Array, "shared"]) -> Climb:
        return climb_from_annotations(problem, tools, {**first, "shared": shared}, data)

    ours, *others = map(mode_from, [first["shared"], *drawn])
    masses = [log_mass(ours)]
    places = [np.asarray(ours.position["shared"])]
    root = np.asarray(whitening(ours.there.hessian, ours.position).to_shared)
    for other in others:
        place = np.asarray(other.position["shared"])
        if all(np.linalg.norm(np.linalg.solve(root, place - known)) > APART for known in places):
            places.append(place)
            masses.append(log_mass(other))
    shares = np.exp(np.array(masses) - np.logaddexp.reduce(masses))
    return float(1 - shares[0])
