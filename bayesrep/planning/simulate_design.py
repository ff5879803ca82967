"""Outcomes of planned studies: simulated, fitted, and compared with the truth.

"laplace" is `bayesrep.fit`'s, certified. "normal" is the approximation at the mode, a tenth of the
work, for many designs; of what workers add, a small difference, its far ends tell nothing.
"""

import warnings
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from bayesrep.errors import ConvergenceWarning, EstimateWarning, IdentificationWarning
from bayesrep.inference import fit
from bayesrep.inference.annotators import integrate_annotators
from bayesrep.inference.assemble import attributes, coordinates, posterior_groups
from bayesrep.inference.data_driven import choose_components
from bayesrep.inference.image_weights import share_images
from bayesrep.inference.laplace_marginal import Marginal
from bayesrep.inference.mode import around_mode
from bayesrep.inference.problem import pose, programs
from bayesrep.inference.program import kept_programs
from bayesrep.numerics.estimands import INTERVAL
from bayesrep.numerics.settings import own_settings
from bayesrep.planning.populations import Design, adjusted_accuracies, draw_study
from bayesrep.posterior.files import build_tree
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.studies.populations import Populations
from bayesrep.studies.study import Study
from bayesrep.types import Floats

Way: TypeAlias = Literal["laplace", "normal"]
OUTCOME_DRAWS = 2_000


class Outcome(NamedTuple):
    """Outcome of one simulated study; widths are of 95 % intervals.

    Attributes
    ----------
    mean_width, mean_held
        Width and coverage of the mean adjusted accuracy, and so of the mean bias-corrected gap.
    alone_width
        The same without what workers add who answer about many images each.
    single_width, single_held
        Width and coverage of single classifiers' adjusted accuracies: means over these.
    pair_width
        Width of the difference of two classifiers next to each other in accuracy, the mean.
    error
        Error of the estimated mean.
    converged
        Whether the fit was certified; "normal" fits never are.
    """

    mean_width: float
    mean_held: float
    alone_width: float
    single_width: float
    single_held: float
    pair_width: float
    error: float
    converged: float

    @property
    def added(self) -> float:
        """Return the workers' contribution to the squared width of the mean."""
        return self.mean_width**2 - self.alone_width**2


def outcome(world: Populations, design: Design, *, leniency: float, seed: int, way: Way) -> Outcome:
    """Draw a study, fit it and look."""
    study = draw_study(world, design, leniency=leniency, seed=seed)
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, EstimateWarning, IdentificationWarning):
            warnings.simplefilter("ignore", category)
        if way == "normal":
            posterior = normal_posterior(study, seed=seed)
        else:
            posterior = fit(study, method="laplace", seed=seed, progress=False)
        return _compare_with_truth(Fitted(study, posterior), adjusted_accuracies(world))


def normal_posterior(study: Study, *, seed: int, draws: int = OUTCOME_DRAWS) -> Posterior:
    """The joint model's posterior as the normal approximation at its mode: not certified."""
    with kept_programs(), own_settings():
        problem, _ = choose_components(pose(study, model="joint", options={}), choose=True)
        data = problem.data()
        tools = programs(problem, data)
        normal = around_mode(problem, tools, data)
        random = np.random.default_rng(seed)
        half = {
            name: random.standard_normal((draws // 2, *np.shape(leaf)))
            for name, leaf in normal.center.items()
        }
        marginal = Marginal(tools.density)
        setting = share_images(tools.density, marginal.setting(data, normal), problem)
        half["units"] = np.asarray(setting.noise.draw(jax.random.key(seed), draws // 2))
        standard = {name: jnp.asarray(np.concatenate([each, -each])) for name, each in half.items()}
        position = jax.tree.map(lambda leaf: np.asarray(leaf)[None], jax.vmap(normal)(standard))
        dependent = integrate_annotators(problem, tools, data, position, normal.center, seed)
        contents = posterior_groups(problem, data, dependent, {}, seed=seed, classes="")
    facts = attributes(problem, data, method="normal", seed=seed)
    return build_tree(contents, coordinates(problem), {**facts, "converged": 0})


def _compare_with_truth(fitted: Fitted, truth: Floats) -> Outcome:
    joint, alone = (
        draws.reshape(-1, len(truth)) for draws in (fitted.draws_over_crowds, fitted.adjusted_draws)
    )
    mean = joint.mean(axis=1)
    low, high = np.quantile(mean, INTERVAL)
    lower, upper = np.quantile(joint, INTERVAL, axis=0)
    order = np.argsort(truth, kind="stable")
    diffs = np.diff(joint[:, order], axis=1)
    pairs = np.diff(np.quantile(diffs, INTERVAL, axis=0), axis=0) if len(order) > 1 else np.nan
    return Outcome(
        mean_width=float(high - low),
        mean_held=float(low <= truth.mean() <= high),
        alone_width=float(np.diff(np.quantile(alone.mean(axis=1), INTERVAL))[0]),
        single_width=float(np.mean(upper - lower)),
        single_held=float(np.mean((lower <= truth) & (truth <= upper))),
        pair_width=float(np.mean(pairs)),
        error=float(mean.mean() - truth.mean()),
        converged=float(bool(fitted.group.attrs["converged"])),
    )


def average_outcomes(outcomes: Sequence[Outcome]) -> Outcome:
    """Means over simulated studies; of the error its root mean square."""
    rows = np.array(outcomes)
    means = rows.mean(axis=0)
    error = Outcome._fields.index("error")
    means[error] = np.sqrt(np.mean(np.square(rows[:, error])))
    return Outcome(*means.tolist())
