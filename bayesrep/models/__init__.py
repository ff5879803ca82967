"""Probability models as plain NumPyro functions; they know no sampler.

``MODELS`` is what :func:`bayesrep.fit` chooses from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jax.typing import ArrayLike

from bayesrep.models.joint import (
    JointData,
    JointOptions,
    annotations_only,
    joint,
    joint_data,
    joint_offsets,
    joint_start,
)
from bayesrep.statistics import Cells


@dataclass(frozen=True)
class Model:
    """What inference needs to know of a model.

    Attributes
    ----------
    function
        NumPyro model ``function(data, options)``. Latent sites have real support; those of a
        classifier lie in the plate "classifier", and classifiers meet only through the others.
        Deterministic sites ``log_mass_i`` [group, cell], ``cell_accuracy`` [classifier, group,
        cell] and ``adjusted_accuracy`` [classifier] are what is reported of the cells.
    options
        Frozen dataclass of sizes and priors; its defaults are the recommended model.
    data
        From the cells of each group of images, by data set, to the arrays that ``function``
        conditions on.
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
    """

    function: Callable[[Any, Any], None]
    options: Callable[..., Any]
    data: Callable[[Sequence[Mapping[str, Cells]]], Any]
    annotations: Callable[[Any], Any]
    start: Callable[[Any, Any], Mapping[str, ArrayLike]]
    offsets: Callable[[Mapping[str, Any], Any], Mapping[str, Any]]
    mixture_sites: tuple[str, ...]
    dims: Callable[[Any, Any], Mapping[str, tuple[str, ...]]]


_MIXTURE_SITES = (
    "first_location",
    "log_step",
    "log_concentration",
    "location_deviation",
    "concentration_deviation",
    "weight_logit",
    "group_weight_logit",
)


def _joint_dims(data: JointData, options: JointOptions) -> dict[str, tuple[str, ...]]:
    own = () if options.shared_components else ("dataset",)
    dims = {
        "first_location": own,
        "log_step": (*own, "step"),
        "log_concentration": (*own, "component"),
        "weight_logit": ("dataset", "step"),
        "population_curve": ("term",),
        "classifier_curve": ("classifier", "term"),
        "component_mean": ("dataset", "component"),
        "component_concentration": ("dataset", "component"),
        "component_weight": ("dataset", "component"),
        "adjusted_accuracy": ("classifier",),
        "mean_selection_frequency": ("dataset",),
    }
    if options.components == 1:
        del dims["log_step"], dims["weight_logit"]  # they are empty
    if options.shared_components:
        dims["location_deviation"] = ("contrast", "component")
        dims["concentration_deviation"] = ("contrast", "component")
    if len(data.share) > 1:
        if options.components > 1:
            dims["group_weight_logit"] = ("dataset", "group", "step")
        dims["group_effect"] = ("group",)
        dims["classifier_group_effect"] = ("classifier", "group")
        dims["group_adjusted_accuracy"] = ("classifier", "group")
        dims["group_component_weight"] = ("dataset", "group", "component")
    if len(data.datasets) > 2:
        dims["accuracy_under"] = ("classifier", "dataset")
    return dims


MODELS: Mapping[str, Model] = {
    "joint": Model(
        function=joint,
        options=JointOptions,
        data=joint_data,
        annotations=annotations_only,
        start=joint_start,
        offsets=joint_offsets,
        mixture_sites=_MIXTURE_SITES,
        dims=_joint_dims,
    ),
}
