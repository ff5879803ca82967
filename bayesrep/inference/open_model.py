"""The target of `fit`, as NumPyro code and as functions of a flat vector, for one's own sampler."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.lax.linalg import triangular_solve
from jax.typing import ArrayLike
from numpyro import handlers
from numpyro.infer.util import constrain_fn, log_density

from bayesrep.errors import OptionError
from bayesrep.inference.arrowhead import by_unit
from bayesrep.inference.data_driven import choose_components, widen_priors
from bayesrep.inference.density import Density, Position
from bayesrep.inference.laplace_marginal import Marginal, Setting
from bayesrep.inference.marginal_mode import find_marginal_mode
from bayesrep.inference.mode import around_mode
from bayesrep.inference.problem import Problem, pose, programs
from bayesrep.inference.program import kept_programs
from bayesrep.models.model import TRACING_LOCK, Data
from bayesrep.numerics.settings import own_settings
from bayesrep.studies.representation import brief, number
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Float, no_type_check


@dataclass(frozen=True, eq=False, repr=False)
class NumpyroModel:
    """A model given a study: its density for any sampler.

    Everything is in float64: use it where JAX has 64-bit floats, after `numpyro.enable_x64()` or
    inside `with jax.enable_x64(True):`.

    Attributes
    ----------
    function, arguments
        The NumPyro model and its arguments: `MCMC(NUTS(box.function), ...).run(key,
        *box.arguments)`. Every latent site has real support, so that a flat vector holds the values
        of sites as they are.
    dims, coords
        Names along the dimensions of every site and deterministic quantity, as `az.from_numpyro`
        takes them.
    weight
        w, the power of each classifier's likelihood in the posterior of the shared parameters
        (`classifier_weight` of a fit).
    start
        A flat vector in the middle of the posterior.
    log_density, gradient
        Log of the density that `function` defines, of a flat vector, and its gradient; jitted.
    unravel
        Values of the latent sites, by name, at a flat vector; jitted.
    ravel
        The flat vector of latent sites' values.
    quantities
        The values of `unravel`, and deterministic quantities such as `adjusted_accuracy`; jitted.
    """

    function: Callable[[Data], None]
    arguments: tuple[Data]
    dims: Mapping[str, list[str]]
    coords: Mapping[str, Sequence[str]]
    weight: float
    start: Float[np.ndarray, "parameter"]
    log_density: Callable[[ArrayLike], Array]
    gradient: Callable[[ArrayLike], Array]
    unravel: Callable[[ArrayLike], dict[str, Array]]
    ravel: Callable[[Mapping[str, ArrayLike]], Float[Array, "parameter"]]
    quantities: Callable[[ArrayLike], dict[str, Array]]

    def __repr__(self) -> str:
        return brief(self, number(len(self.start), "parameter"), f"weight {self.weight:.3g}")


@no_type_check
def numpyro_model(
    study: Study | SufficientStatistics,
    *,
    model: str = "joint",
    groups: str | None = None,
    datasets: Sequence[str] = REQUIRED_ROLES,
    **options: Any,
) -> NumpyroModel:
    """Open the model that [bayesrep.fit][] samples, for a sampler of one's own.

    The density is that of the chains of `fit(study, method="nuts", seed=0)`, of the same options;
    numbers of components and widths of priors that are not named are chosen as there. With the
    shared parameters x, a classifier's own y_c, the parts φ_0 and φ_c of the model's negative log
    density, and the weight w,

        log p(x, y) = −φ_0(x) − Σ_c φ_c(y_c | x) − (1 − w) Σ_c log Z_c(x, y_c)

    but for a constant.
    Classifiers answer about the same images, so that their answers count with w for x and in full
    for y_c. Z_c stands for ∫ exp(−φ_c(y_c | x)) dy_c: the mean of two ratios to a normal that is
    near, at y_c and mirrored at the normal's centre. Integrated over y_c the density has Z_c's
    power w, as the chains have it. With w = 1 (one classifier) the density is the NumPyro model's
    own.

    Parameters
    ----------
    study
        As in [bayesrep.fit][].
    model, groups, datasets, options
        As in [bayesrep.fit][]: the arguments of the model, not those of the sampler.

    Raises
    ------
    OptionError
        If an argument is out of range.
    StudyError
        If the study lacks what is asked for.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> box = bayesrep.numpyro_model(study)
    >>> box.dims["adjusted_accuracy"]
    ['classifier']
    """
    problem = pose(study, model=model, options=options, groups=groups, datasets=datasets)
    with kept_programs(), own_settings():
        problem = widen_priors(problem, options)
        problem, _ = choose_components(problem, choose="components" not in options)
        data = problem.data()
        tools = programs(problem, data)
        # In coordinates around the mode the classifiers' integrals Z_c are close to their normals.
        normal = around_mode(problem, tools, data)
        setting = find_marginal_mode(tools.density, normal, data, tools.expand)
        # Sites have real support, so that the flat vector holds them without transforms.
        sites = tools.density.to_sites(setting.whitening.center)
        start, back = ravel_pytree(sites)
        weight = float(problem.model.weight(data))
    function = _weighted(problem, tools.density, setting if weight != 1 else None)

    def unravel(flat: ArrayLike) -> dict[str, Array]:
        return back(_in_float64(flat))

    # NumPyro has one stack of handlers for all threads.
    def log_density_at(flat: ArrayLike) -> Array:
        with TRACING_LOCK:
            return jnp.asarray(log_density(function, (data,), {}, unravel(flat))[0])

    def quantities(flat: ArrayLike) -> dict[str, Array]:
        sites = unravel(flat)
        with TRACING_LOCK:
            return dict(constrain_fn(function, (data,), {}, sites, return_deterministic=True))

    dims = {n: list(names) for n, names in problem.model.dims(data, problem.options).items()}
    dims |= {f"log_mass_{i}": ["group", f"{role}_pair"] for i, role in enumerate(problem.roles)}
    dims["cell_accuracy"] = ["classifier", "group", "replication_pair"]
    return NumpyroModel(
        function,
        (data,),
        dims,
        {
            "classifier": list(problem.statistics.classifiers),
            "dataset": list(problem.roles),
            "group": list(problem.groups),
        },
        weight,
        np.asarray(start),
        jax.jit(log_density_at),
        jax.jit(jax.grad(log_density_at)),
        jax.jit(unravel),
        lambda values: ravel_pytree({name: jnp.asarray(values[name]) for name in sites})[0],
        jax.jit(quantities),
    )


def _weighted(
    problem: Problem, density: Density, setting: Setting | None
) -> Callable[[Data], None]:
    """Build the NumPyro model of the data, with the weight w as a factor if there is a setting."""

    def plain(data: Data) -> None:
        _in_float64(0.0)
        problem.model.function(data, problem.options)

    if setting is None:
        return plain
    white, marginal = setting.whitening, Marginal(density)
    to_shared, to_units = (np.linalg.inv(np.asarray(x)) for x in (white.to_shared, white.to_units))

    @jax.jit  # NumPyro first runs the model several times operation by operation
    def log_factor(position: Position, data: Data) -> Array:
        # ξ and ζ, by the whitening's inverse.
        shared = jnp.asarray(to_shared @ (position["shared"] - white.center["shared"]))
        around = position["units"] - white.center["units"] + white.drag @ shared
        units, current = by_unit(to_units, around), setting._replace(data=data)
        # z = R⁻¹ (ζ − m) of every classifier.
        normals, _ = marginal.conditional_normals(current, shared)
        around = (units - normals.center)[..., None]
        z = triangular_solve(normals.root, around, left_side=True, lower=False)[..., 0]
        # log Z_c from two antithetic ratios, at y_c and mirrored at the centre.
        ratios, _ = marginal.log_ratios(current, shared, normals, jnp.stack([z, -z]))
        log_z = jax.nn.logsumexp(ratios, axis=0) - jnp.log(2)
        return (density.weight(data) - 1) * log_z.sum()

    def weighted(data: Data) -> None:
        with handlers.trace() as trace:
            plain(data)
        values = {name: trace[name]["value"] for name in density.sites}
        with handlers.block(), TRACING_LOCK:  # the density traces the model again
            factor = log_factor(density.to_position(values), data)
        numpyro.factor("shared_images", factor)

    return weighted


def _in_float64(value: ArrayLike) -> Array:
    """Convert a value to float64; refuse JAX without 64-bit floats."""
    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise OptionError("model-needs-float64")
    return jnp.asarray(value, dtype=float)
