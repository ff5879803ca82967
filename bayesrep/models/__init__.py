"""Probability models as plain NumPyro functions; they know no sampler.

``MODELS`` is what :func:`bayesrep.fit` chooses from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jax.typing import ArrayLike

from bayesrep.models.joint import (
    JointOptions,
    annotations_only,
    joint,
    joint_curves,
    joint_data,
    joint_dims,
    joint_offsets,
    joint_start,
)
from bayesrep.models.shared_difficulty import (
    SharedDifficultyOptions,
    shared_annotations_only,
    shared_data,
    shared_difficulty,
    shared_dims,
    shared_start,
    working_independence,
)


@dataclass(frozen=True)
class Model:
    """What inference needs to know of a model.

    Attributes
    ----------
    function
        NumPyro model ``function(data, options)``. Latent sites have real support; those of a
        classifier lie in the plate "classifier". Deterministic sites ``log_mass_i`` [group, cell],
        ``cell_accuracy`` [classifier, group, cell] and ``adjusted_accuracy`` [classifier] are what
        is reported of the cells.
    options
        Frozen dataclass of sizes and priors; its defaults are the recommended model.
    data
        ``data(cells, patterns, options, mesh)``: from the cells of each group of images and the
        distinct images, both by data set, to the arrays that ``function`` conditions on; a mesh of
        devices spreads the images over them.
    annotations
        The same data without any classifier's answers.
    start
        ``start(data, options)``: values of all sites where the search for the mode begins.
    offsets
        ``offsets(values, options)``: shifts of some sites, computed from the others, that
        straighten the posterior; the sampler's coordinate is the value less its shift.
    mixture_sites
        Sites that the annotations alone determine.
    dims
        ``dims(data, options)``: names of the dimensions of every latent site and reported
        quantity.
    curves
        ``curves(values, options, at, share)``: every classifier's accuracy [draw, C, S] at
        selection frequencies ``at`` [S], from draws of sites and quantities; ``share`` [G] is that
        of the reference's images, by group. Its integral against the reference's density of s is
        ``adjusted_accuracy``, draw by draw.
    independent
        A NumPyro model of the same sites in which classifiers meet only through the sites outside
        their plate, and whose mode is near; None where ``function`` is such a model.
    """

    function: Callable[[Any, Any], None]
    options: Callable[..., Any]
    data: Callable[..., Any]
    annotations: Callable[[Any], Any]
    start: Callable[[Any, Any], Mapping[str, ArrayLike]]
    offsets: Callable[[Mapping[str, Any], Any], Mapping[str, Any]]
    mixture_sites: tuple[str, ...]
    dims: Callable[[Any, Any], Mapping[str, tuple[str, ...]]]
    curves: Callable[[Mapping[str, Any], Any, Any, Any], Any]
    independent: Callable[[Any, Any], None] | None = None


_MIXTURE_SITES = (
    "first_location",
    "log_step",
    "log_concentration",
    "location_deviation",
    "concentration_deviation",
    "weight_logit",
    "group_weight_logit",
)


MODELS: Mapping[str, Model] = {
    "joint": Model(
        function=joint,
        options=JointOptions,
        data=lambda cells, *_: joint_data(cells),
        annotations=annotations_only,
        start=joint_start,
        offsets=joint_offsets,
        mixture_sites=_MIXTURE_SITES,
        dims=joint_dims,
        curves=joint_curves,
    ),
    "shared-difficulty": Model(
        function=shared_difficulty,
        options=SharedDifficultyOptions,
        data=shared_data,
        annotations=shared_annotations_only,
        start=shared_start,
        offsets=joint_offsets,
        mixture_sites=_MIXTURE_SITES,
        dims=shared_dims,
        curves=joint_curves,  # of the marginal logit, whatever the difficulty
        independent=working_independence,
    ),
}
