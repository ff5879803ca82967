"""What every approximation of a posterior has: draws, their densities, and how far to trust them.

An approximation q is judged twice. From itself: the ratios p(x) / q(x) at its own draws have a tail
whose Pareto shape k says whether re-weighting could mend it (below 0.7) or not. And, where there is
a NUTS fit of the same study, by the distance of the answers: `distance`.

k speaks of all parameters at once. With hundreds of them the ratios of a q that is close in every
single one still spread over many nats, so a k above 0.7 forbids re-weighting, not reporting.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from jax import Array

from bayesrep.errors import PosteriorError
from bayesrep.inference.density import Density, Position
from bayesrep.models.model import Data
from bayesrep.numerics.pareto import MIN_TAIL, pareto_smooth
from bayesrep.posterior.groups import Posterior, need_group
from bayesrep.types import Float

ROUNDING = 1e-8


class Approximation(NamedTuple):
    """Draws of an approximation q of a posterior.

    Attributes
    ----------
    position
        Draws [chain, draw, ...] in the density's coordinates, independent within a chain. Chains
        are only rows, so that the ArviZ object has its usual dimensions.
    log_density, log_approximation
        Log of the model's (unnormalised) density and of q at the draws.
    pareto_k
        Shape of the tail of their ratios, see `pareto_shape`.
    """

    position: Position
    log_density: Float[np.ndarray, "chain draw"]
    log_approximation: Float[np.ndarray, "chain draw"]
    pareto_k: float


def standard_normal(key: Array, density: Density, draws: int) -> Position:
    """Independent standard normal positions [draw, ...].

    NumPy makes them: XLA takes a second to compile what draws them in milliseconds.
    """
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    return {
        "shared": jnp.asarray(random.standard_normal((draws, density.shared))),
        "units": jnp.asarray(random.standard_normal((draws, density.units, density.per_unit))),
    }


def mirrored(standard: Position) -> Position:
    """Positions [draw, ...] and after them their negatives: odd moments vanish."""
    return jax.tree.map(lambda leaf: jnp.concatenate([leaf, -leaf]), standard)


def log_standard_normal(standard: Position) -> Float[Array, ""]:
    """Log density of independent standard normals at one position."""
    size = sum(leaf.size for leaf in standard.values())
    squares = jnp.asarray(sum(jnp.sum(jnp.square(leaf)) for leaf in standard.values()))
    return -0.5 * (squares + size * jnp.log(2 * jnp.pi))


def log_densities(density: Density, draws: Position, data: Data) -> Float[Array, "draw"]:
    """Log density of the model at positions [draw, ...]; traceable."""
    return jax.lax.map(lambda one: -density.potential(one, data), draws, batch_size=50)


def approximation(
    draws: Position,
    log_density: Float[Array, "draw"],
    log_approximation: Float[Array, "draw"],
    chains: int,
) -> Approximation:
    """Deal draws [chain · draw, ...] into chains and add the Pareto shape."""
    position = jax.tree.map(lambda leaf: leaf.reshape(chains, -1, *leaf.shape[1:]), draws)
    return Approximation(
        position,
        np.asarray(log_density).reshape(chains, -1),
        np.asarray(log_approximation).reshape(chains, -1),
        pareto_shape(log_density - log_approximation),
    )


def pareto_shape(log_ratios: Float[Array, "..."] | Float[np.ndarray, "..."]) -> float:
    """Shape k of the generalised Pareto tail of importance ratios.

    Below 0.5 the ratios have a variance, below 0.7 re-weighting works in practice, above 1 they
    have not even a mean. Ratios that are equal up to rounding have k = 0.

    Parameters
    ----------
    log_ratios
        Log of the ratios, up to a constant, at independent draws [...].

    Returns
    -------
    float
        k; infinite where the draws are too few for a tail, or a ratio is not finite.
    """
    ratios = np.ravel(np.asarray(log_ratios, dtype=float))
    if not np.all(np.isfinite(ratios)):
        return float("inf")
    if np.ptp(ratios) < ROUNDING and ratios.size > 5 * MIN_TAIL:
        return 0.0
    shape = float(pareto_smooth(ratios[None, :])[1][0])
    return shape if np.isfinite(shape) else float("inf")


def distance(reference: Posterior, other: Posterior) -> pl.DataFrame:
    """How far the adjusted accuracies of one posterior lie from those of another.

    Parameters
    ----------
    reference
        ArviZ object to compare with, as a rule of NUTS; its posterior standard deviations are the
        unit.
    other
        ArviZ object of the same study.

    Returns
    -------
    polars.DataFrame
        Per classifier: `mean_difference` (other less reference), `sd_ratio` (other over
        reference) and `wasserstein` (1-Wasserstein distance of the marginals; two samples of S
        independent draws of one normal are about 1.1 / √S apart).
    """
    from scipy.stats import wasserstein_distance  # takes long to import

    ours, theirs = (_by_classifier(one) for one in (reference, other))
    if ours.keys() != theirs.keys():
        raise PosteriorError("the two posteriors are of different classifiers")
    rows = [
        {
            "classifier": name,
            "mean_difference": (theirs[name].mean() - draws.mean()) / draws.std(),
            "sd_ratio": theirs[name].std() / draws.std(),
            "wasserstein": float(wasserstein_distance(draws, theirs[name])) / draws.std(),
        }
        for name, draws in ours.items()
    ]
    return pl.DataFrame(rows)


def _by_classifier(posterior: Posterior) -> dict[str, Float[np.ndarray, "draw"]]:
    """Draws of the adjusted accuracy by classifier."""
    array = need_group(posterior, "posterior", "adjusted_accuracy")["adjusted_accuracy"]
    array = array.transpose("classifier", "chain", "draw")
    names = (str(name) for name in array["classifier"].values)
    return dict(zip(names, array.values.reshape(len(array), -1), strict=True))
