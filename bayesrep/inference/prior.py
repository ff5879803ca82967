"""Prior predictive draws."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from bayesrep import bounds
from bayesrep.errors import OptionError
from bayesrep.inference.assemble import attributes, coordinates, posterior_group
from bayesrep.inference.cells import cell_groups, evaluate_cells
from bayesrep.inference.problem import pose, prior_positions, programs
from bayesrep.numerics.settings import own_settings
from bayesrep.posterior.files import build_posterior
from bayesrep.posterior.groups import Posterior
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import no_type_check


@no_type_check
def prior_predictive(
    study: Study | SufficientStatistics,
    *,
    model: str = "joint",
    draws: int = 500,
    seed: int = 0,
    groups: str | None = None,
    datasets: Sequence[str] = REQUIRED_ROLES,
    **options: Any,
) -> Posterior:
    """Draw parameters from the prior, and data of the study's size given them.

    Parameters
    ----------
    study
        Gives the numbers of images, annotators and classifiers; neither its selections nor its
        classifiers' answers are used, except as `observed_data` to compare with.
    draws
        Number of draws.
    model, seed, groups, datasets, options
        As in [bayesrep.fit][].

    Returns
    -------
    arviz.InferenceData or xarray.DataTree
        Groups `prior` (as the posterior of a fit, with one chain), `prior_predictive` (images
        per cell of every data set and correct answers per cell, each draw) and
        `observed_data`, ready for ArviZ's plots.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> prior = bayesrep.prior_predictive(study, draws=100)
    >>> prior["prior"]["adjusted_accuracy"].shape
    (1, 100, 3)
    """
    if draws < 1:
        raise OptionError("prior-draws-below-one", draws=draws)
    bounds.refuse_above("draws", draws, bounds.MAX_TOTAL_DRAWS)
    problem = pose(study, model=model, options=options, groups=groups, datasets=datasets)
    with own_settings():
        data = problem.data()
        tools = programs(problem, data)
        positions = prior_positions(problem, tools, data, jax.random.key(seed), draws)
        every = draws, 1  # one log likelihood, which nobody reads, and predictions of all draws
        parts = [(tools, data, np.arange(draws))]
        values = evaluate_cells(problem, positions, parts, every)
    cells = cell_groups(problem, values, every, seed=seed, new_images=True)
    contents = {
        "prior": posterior_group(problem, data, values),
        "prior_predictive": cells["posterior_predictive"],
        "observed_data": cells["observed_data"],
    }
    facts = attributes(problem, data, method="prior", seed=seed)
    return build_posterior(contents, coordinates(problem), facts)
