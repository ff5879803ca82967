"""Probability models as plain NumPyro functions; they know no sampler.

`MODELS` is what `bayesrep.fit` chooses from. A model is added here and in a file of its own:
nothing above this room asks for its name.
"""

from collections.abc import Mapping

from bayesrep.models.joint import (
    annotations_only,
    joint,
    joint_curves,
    joint_data,
    joint_dims,
    joint_offsets,
    joint_start,
)
from bayesrep.models.model import Model
from bayesrep.models.options import JointOptions
from bayesrep.models.shared_difficulty import (
    SharedDifficultyOptions,
    image_posteriors,
    predictive,
    shared_annotations_only,
    shared_data,
    shared_difficulty,
    shared_dims,
    shared_start,
    working_independence,
)

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
        methods=("nuts", "cut", "laplace", "mean-field", "low-rank", "flow"),
        collapsed=True,
        takes_groups=True,
        of_images=False,
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
        methods=("nuts", "laplace"),
        collapsed=False,
        takes_groups=False,
        of_images=True,
        independent=working_independence,
        answers=predictive,
        images=image_posteriors,
    ),
}
