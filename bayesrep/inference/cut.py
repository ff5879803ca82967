"""Cut feedback: mixtures from the annotators alone, then curves given each of their draws.

Plummer (2015), "Cuts in Bayesian graphical models", section 4: the curves' own chain goes through
the mixture's draws one by one, with a few transitions at each from where the last one ended. The
mixture's parameters are the first of those that classifiers share and coordinates are lower
triangular, so holding a mixture is holding the first coordinates, and the others move along with
it: they are measured from where it puts the mode, to first order.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.arrowhead import Whitening, lower_root, whitening
from bayesrep.inference.mode import climb
from bayesrep.inference.problem import mixture_size
from bayesrep.inference.run import (
    Drawn,
    Run,
    chains,
    chains_around_mode,
    compiled_meanwhile,
    of_chains,
)
from bayesrep.inference.schedule import BLOCK
from bayesrep.types import Float


def cut(run: Run) -> Drawn:
    """Draws of the mixtures given the annotations, and of the curves given each of them."""
    model, schedule, density = run.problem.model, run.schedule, run.tools.density
    alone = chains_around_mode(run, model.annotations(run.data), part="mixtures", stage=0)
    size = mixture_size(density, model)
    mixture = np.asarray(alone.position["shared"])[:, :, :size]
    run.bar.stage("finding the mode")
    normal = _around_mixtures(run, mixture)
    root = np.asarray(normal.to_shared)[:size, :size]
    center = np.asarray(normal.center["shared"])[:size]
    given = np.linalg.solve(root, (mixture - center)[..., None])[..., 0]

    # The warm-up learns at mixtures in any order; draws past the end fill the last block.
    random = np.random.default_rng([run.seed, 1])
    any_order = random.integers(schedule.draws, size=(schedule.chains, schedule.warmup))
    early = np.take_along_axis(given, any_order[:, :, None], axis=1)
    last = np.broadcast_to(given[:, -1:], (schedule.chains, BLOCK, size))
    held = np.concatenate([early, given, last], axis=1)

    def feed(chain: int, begin: int) -> Float[Array, "*chain draw held"]:
        block = slice(begin, begin + BLOCK)
        return jnp.asarray(held[:, block] if run.vectorized else held[chain, block])

    with compiled_meanwhile(run, run.data, held=size) as ready:
        return of_chains(
            chains(run, run.data, normal, ready, part="curves", stage=1, feed=feed, stay=True)
        )


def _around_mixtures(run: Run, mixture: Float[np.ndarray, "chain draw held"]) -> Whitening:
    """Coordinates in which draws of mixtures, and curves given them, are about standard normal."""
    tools, size = run.tools, mixture.shape[2]
    draws = mixture.reshape(-1, size)
    start = tools.start(run.problem.start(run.data))
    start = start | {"shared": start["shared"].at[:size].set(draws.mean(axis=0))}
    mode = climb(tools.expand, start, run.data, held=size)
    spread = lower_root((draws - draws.mean(axis=0)).T / np.sqrt(len(draws)))
    return whitening(mode.there.hessian, mode.position, held=spread)
