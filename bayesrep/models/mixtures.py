"""Beta mixtures of the selection frequencies of several data sets, as models sample them.

Data sets share the components but for small deviations, and weigh them each in its own way, groups
of images around that. Components are identified by their order, the lowest logit mean first.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from jax.typing import ArrayLike

from bayesrep.errors import OptionError
from bayesrep.models.options import JointOptions
from bayesrep.models.priors import Prior, build_prior, locate
from bayesrep.types import Float

MIXTURE_SITES = (
    "first_location",
    "log_step",
    "log_concentration",
    "location_deviation",
    "concentration_deviation",
    "weight_logit",
    "group_weight_logit",
)
"""All sites of `sample_mixtures`: those that annotations alone determine."""


class Mixtures(NamedTuple):
    """Beta mixtures of the groups of one data set; groups share the components."""

    log_weights: Float[Array, "group component"]
    a: Float[Array, "component"]
    b: Float[Array, "component"]


def sample_prior(
    name: str, prior: Prior, shape: tuple[int, ...], around: ArrayLike | None = None
) -> Float[Array, "..."]:
    """Sample a site of independent values with a prior, centred at `around` if given."""
    distribution = build_prior(prior, around).expand(shape).to_event(len(shape))
    return jnp.asarray(numpyro.sample(name, distribution))


def contrasts(datasets: int) -> Float[np.ndarray, "dataset contrast"]:
    """Build orthonormal contrasts over √2: unit normals give differences of sd 1."""
    rows = np.linalg.qr(np.column_stack([np.ones(datasets), np.eye(datasets)[:, 1:]]))[0][:, 1:]
    return rows * np.sign(rows[-1]) / np.sqrt(2)


def heights(steps: Float[Array, "*batch step"]) -> Float[Array, "*batch component"]:
    """Compute components' logit means above the lowest one's from the log steps between them."""
    # Products with 0/1 matrices, here and below, become part of what comes before and after them;
    # sums and joined arrays would be programs of their own, in every gradient.
    below = np.triu(np.ones((steps.shape[-1], steps.shape[-1] + 1)), 1)
    return jnp.exp(steps) @ below


def _after_zero(values: Float[Array, "*batch step"]) -> Float[Array, "*batch component"]:
    return values @ np.eye(values.shape[-1], values.shape[-1] + 1, 1)


def sample_mixtures(options: JointOptions, datasets: int, groups: int) -> list[Mixtures]:
    """Sample the mixtures of all data sets."""
    size = options.components
    own = () if options.shared_components else (datasets,)
    first = sample_prior("first_location", options.first_location, own)
    steps = sample_prior("log_step", options.log_steps, (*own, size - 1))
    concentration = sample_prior("log_concentration", options.log_concentration, (*own, size))
    location = first[..., None] + heights(steps)
    # Shared components: deviations of the data sets sum to 0, so that their mean is identified.
    if options.shared_components:
        # Differences of more than two are alike under contrasts that are normal alone.
        for name in ("location_deviation", "concentration_deviation"):
            if datasets > 2 and isinstance(getattr(options, name), str):
                raise OptionError("prior-of-contrasts-not-normal", option=name, datasets=datasets)
        shape, between = (datasets - 1, size), contrasts(datasets)
        location = location[None, :] + between @ sample_prior(
            "location_deviation", options.location_deviation, shape
        )
        concentration = concentration[None, :] + between @ sample_prior(
            "concentration_deviation", options.concentration_deviation, shape
        )
    # Log weights relative to the first component's, which has none of its own.
    weight = sample_prior("weight_logit", options.weight, (datasets, size - 1))[:, None, :]
    if groups > 1:
        around = jnp.tile(weight, (1, groups, 1))
        weight = sample_prior("group_weight_logit", options.group_weight, around.shape, around)
    mean, total = jax.nn.sigmoid(location), jnp.exp(concentration)
    log_weights = jax.nn.log_softmax(_after_zero(weight), axis=-1)
    numpyro.deterministic("component_mean", mean)
    numpyro.deterministic("component_concentration", total)
    return [
        Mixtures(log_weights[i], mean[i] * total[i], (1 - mean[i]) * total[i])
        for i in range(datasets)
    ]


def mixture_start(options: JointOptions, datasets: int, groups: int) -> dict[str, ArrayLike]:
    """Choose start values: the priors' locations, and no differences."""
    size = options.components
    own = () if options.shared_components else (datasets,)
    start: dict[str, ArrayLike] = {
        "first_location": np.full(own, locate(options.first_location).location),
        "log_step": np.full((*own, size - 1), locate(options.log_steps).location),
        "log_concentration": np.full((*own, size), locate(options.log_concentration).location),
        "weight_logit": np.zeros((datasets, size - 1)),
    }
    if options.shared_components:
        start["location_deviation"] = np.zeros((datasets - 1, size))
        start["concentration_deviation"] = np.zeros((datasets - 1, size))
    if groups > 1:
        start["group_weight_logit"] = np.zeros((datasets, groups, size - 1))
    return start


def mixture_dims(options: JointOptions, groups: int) -> dict[str, tuple[str, ...]]:
    """Name the dimensions of every site that is not empty, and of the components."""
    own = () if options.shared_components else ("dataset",)
    dims = {
        "first_location": own,
        "log_concentration": (*own, "component"),
        "component_mean": ("dataset", "component"),
        "component_concentration": ("dataset", "component"),
    }
    if options.components > 1:
        dims |= {"log_step": (*own, "step"), "weight_logit": ("dataset", "step")}
        if groups > 1:
            dims["group_weight_logit"] = ("dataset", "group", "step")
    if options.shared_components:
        dims["location_deviation"] = ("contrast", "component")
        dims["concentration_deviation"] = ("contrast", "component")
    return dims


def mixture_offsets(values: Mapping[str, Array], options: JointOptions) -> dict[str, Array]:
    """Compute the offsets of locations that make the posterior closer to normal.

    The data fix the mean of p_i(s) best: locations are measured from minus the weighted mean height
    of the components. The offsets depend on other sites only: no volume or prior changes.
    """
    logits = values["weight_logit"]
    weight = jax.nn.softmax(_after_zero(logits), axis=1)
    height = jnp.sum(weight * jnp.broadcast_to(heights(values["log_step"]), weight.shape), axis=1)
    if not options.shared_components:
        return {"first_location": -height}
    # Contrasts are orthogonal columns of length 1 / √2: twice their transpose inverts them.
    between = -2 * contrasts(len(logits)).T @ height
    shape = values["location_deviation"].shape
    return {
        "first_location": -height.mean(),
        "location_deviation": jnp.broadcast_to(between[:, None], shape),
    }
