"""Probability models as plain NumPyro functions; they know no sampler.

``MODELS`` is what :func:`bayesrep.fit` chooses from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jax.typing import ArrayLike

from bayesrep.models.joint import JointOptions, annotations_only, joint, joint_data, joint_start
from bayesrep.statistics import SufficientStatistics


@dataclass(frozen=True)
class Model:
    """What inference needs to know of a model.

    Attributes
    ----------
    function
        NumPyro model ``function(data, options)``. Latent sites have real support; those of a
        classifier lie in the plate "classifier", and classifiers meet only through the others.
    options
        Frozen dataclass of sizes and priors; its defaults are the recommended model.
    data
        From sufficient statistics to the arrays that ``function`` conditions on.
    first_data
        The part of the data to climb on first, in the same shapes.
    start
        ``start(data, options)``: values of all sites where the search for the mode begins.
    dims
        Names of the dimensions of every latent site and reported quantity.
    """

    function: Callable[[Any, Any], None]
    options: Callable[..., Any]
    data: Callable[[SufficientStatistics], Any]
    first_data: Callable[[Any], Any]
    start: Callable[[Any, Any], Mapping[str, ArrayLike]]
    dims: Mapping[str, tuple[str, ...]]


MODELS: Mapping[str, Model] = {
    "joint": Model(
        function=joint,
        options=JointOptions,
        data=joint_data,
        first_data=annotations_only,
        start=joint_start,
        dims={
            "first_location": (),
            "log_step": ("step",),
            "log_concentration": ("component",),
            "location_deviation": ("component",),
            "concentration_deviation": ("component",),
            "weight_logit": ("dataset", "step"),
            "population_curve": ("term",),
            "classifier_curve": ("classifier", "term"),
            "component_mean": ("dataset", "component"),
            "component_concentration": ("dataset", "component"),
            "component_weight": ("dataset", "component"),
            "adjusted_accuracy": ("classifier",),
            "mean_selection_frequency": ("dataset",),
        },
    ),
}
