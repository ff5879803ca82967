"""`Model`: the facts of a model for inference, checks and summaries, which never ask its name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike
from numpyro import handlers

from bayesrep.numerics.leniency import CrowdAnswers, Leniencies
from bayesrep.studies.statistics import Cells
from bayesrep.studies.study import Study
from bayesrep.types import Float, Ints

Data: TypeAlias = Any  # data of a model: a tree of arrays that only the model reads
Options: TypeAlias = Any  # a model's own options
TRACING_LOCK = RLock()  # all threads share NumPyro's stack of handlers: one at a time may trace


class Form(NamedTuple):
    """Sizes that determine the sites of a model, together with its options."""

    classifiers: int
    roles: Sequence[str]  # of the data sets
    groups: int  # of images, 1 without


class Crowd(NamedTuple):
    """Leniencies and answers of the workers of data sets (`roles`), one after another."""

    roles: tuple[str, ...]
    answers: CrowdAnswers
    leniencies: Leniencies


class LogPrior(NamedTuple):
    """Log prior density of a draw, of shared parameters and of each classifier's own."""

    shared: Float[Array, ""]
    own: Float[Array, "classifier"]


@dataclass(frozen=True)
class Model:
    """A model: its NumPyro function, its data, and facts of both.

    Attributes
    ----------
    function
        NumPyro model `function(data, options)`. Latent sites have real support; those of a
        classifier lie in the plate "classifier". Deterministic sites `log_mass_i` [group, cell],
        `cell_accuracy` [classifier, group, cell] and `adjusted_accuracy` [classifier] report the
        cells.
    options
        Frozen dataclass of sizes and priors; its defaults are the recommended model.
    data
        `data(cells, distinct, options)`: the arrays that `function` conditions on, from the cells
        of each group of images and the facts of single images in `distinct`, both by data set.
    annotations
        The same data without any classifier's answers.
    select
        `select(data, rows)`: the data of some of the classifiers.
    weight
        `weight(data)`: w, the power of each classifier's likelihood in the posterior of the shared
        parameters (composite-likelihood weight, `bayesrep.studies.overlap`).
    start
        `start(data, options)`: values of all sites where the search for the mode begins.
    offsets
        `offsets(values, options)`: shifts of some sites, computed from the others, that
        straighten the posterior; the sampler's coordinate is the value minus its shift.
    mixture_sites
        Sites that the annotations alone determine, sampled before the other shared ones.
    dims
        `dims(data, options)`: names of the dimensions of every latent site and reported
        quantity.
    curves
        `curves(values, options, at, share)`: every classifier's accuracy [draw, C, S] at
        selection frequencies `at` [S], from draws of sites and quantities; `share` [G] is that
        of the reference's images, by group. Its integral against the reference's density of s is
        `adjusted_accuracy`, draw by draw.
    takes_cut
        Whether its mixtures can be fitted to the annotations alone.
    takes_groups
        Whether the images may be divided into groups.
    takes_selection
        Whether the likelihood allows for a rule by which the counts at hand selected the images.
    distinct
        `distinct(study, roles, options)`: facts of single images for the model. None if their cells
        are enough.
    crowd
        `crowd(study, roles)`: the workers' leniencies, if the model knows who answered; draws are
        conditional on these, and their uncertainty is added to the draws'. Else None.
    """

    function: Callable[[Data, Options], None]
    options: Callable[..., Options]
    data: Callable[..., Data]
    annotations: Callable[[Data], Data]
    select: Callable[[Data, Ints], Data]
    weight: Callable[[Data], Float[Array, ""]]
    start: Callable[[Data, Options], Mapping[str, ArrayLike]]
    offsets: Callable[[Mapping[str, Array], Options], Mapping[str, Array]]
    mixture_sites: tuple[str, ...]
    dims: Callable[[Data, Options], Mapping[str, tuple[str, ...]]]
    curves: Callable[[Mapping[str, ArrayLike], Options, np.ndarray, np.ndarray], Array]
    takes_cut: bool
    takes_groups: bool
    takes_selection: bool
    distinct: Callable[[Study, Sequence[str], Options], Mapping[str, Any]] | None = None
    crowd: Callable[[Study, Sequence[str]], Crowd] | None = None

    def sites(self, options: Options, form: Form) -> tuple[str, ...]:
        """List the names of the latent sites for studies of this form."""
        return tuple(self.start(_any_data(self, options, form), options))

    def log_prior(self, values: Mapping[str, Array], options: Options, form: Form) -> LogPrior:
        """Compute the log prior density of one draw of all sites, by name; traceable."""
        data = _any_data(self, options, form)
        substituted = handlers.substitute(self.function, data=dict(values))
        with TRACING_LOCK:
            trace = handlers.trace(substituted).get_trace(data, options)
        shared, own = jnp.zeros(()), jnp.zeros(form.classifiers)
        for name in self.start(data, options):
            density = trace[name]["fn"].log_prob(trace[name]["value"])
            # Sites in the plate are the classifiers' own, all others shared.
            if trace[name]["cond_indep_stack"]:
                own = own + density
            else:
                shared = shared + density.sum()
        return LogPrior(shared, own)


def _any_data(model: Model, options: Options, form: Form) -> Data:
    """Build data of the right form, one image each; a prior does not depend on them."""
    one = np.ones(1, dtype=np.int64)
    cells = Cells(one, one, one, np.ones((1, form.classifiers), dtype=np.int64))
    return model.data([dict.fromkeys(form.roles, cells)] * form.groups, {}, options)


_Tree = TypeVar("_Tree")


def take_rows(tree: _Tree, rows: Ints) -> _Tree:
    """Select rows of every array of a tree."""

    def take(array: Array) -> Array:
        # In NumPy unless traced: JAX would compile a program to index.
        traced = isinstance(array, Tracer)
        return array[rows] if traced else jax.device_put(np.asarray(array)[rows])

    return jax.tree.map(take, tree)
