"""The joint model's prior of curves in many draws, and the search for its mode where it is hard."""

import jax
import numpy as np
import pytest
from fits import hold_better_mode
from scipy import stats

from bayesrep import simulate_study
from bayesrep.models.curves import PopulationLaw
from bayesrep.models.options import JointOptions

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("seed", [7005, 7006])
def test_the_search_for_the_mode_ends_at_the_better_of_two(seed):
    """Studies where other curves' search ended at a poor mode by one of the ways."""
    hold_better_mode(simulate_study(seed=seed, images=2000, classifiers=136))


def test_bends_of_the_population_are_a_student_t():
    """Of 200,000 draws the quantiles of a bend and of two bends' product."""
    options = JointOptions(terms=4, bend=0.3)
    law = PopulationLaw(options.curve_priors())
    keys = jax.random.split(jax.random.key(0), 200_000)
    draws = np.asarray(jax.jit(jax.vmap(law.sample))(keys))
    t = stats.multivariate_t(shape=0.09 * np.diag([1, 1 / 2]), df=4)
    levels = np.array([0.01, 0.2, 0.5, 0.9, 0.999])
    for column, wanted in (
        (0, stats.norm(*options.level)),
        (3, stats.t(4, scale=0.3 / np.sqrt(2))),
    ):
        below = (draws[:, column, None] < wanted.ppf(levels)).mean(axis=0)
        assert (np.abs(below - levels) < 5 * np.sqrt(levels * (1 - levels) / len(draws))).all()
    # One scale for both: their sizes go together, as those of SciPy's t do.
    theirs = t.rvs(200_000, random_state=1)
    both = [np.mean((np.abs(x) > 0.6).all(axis=1)) for x in (draws[:, 2:], theirs)]
    assert abs(both[0] - both[1]) < 5 * np.sqrt(2 * both[0] / 200_000)
