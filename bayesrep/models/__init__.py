"""Probability models as plain NumPyro functions; they know no sampler.

`MODELS` is what `bayesrep.fit` chooses from. A model is added here and in a file of its own:
nothing above this room asks for its name.
"""

from collections.abc import Mapping

from bayesrep.models import joint, shared_difficulty, workers
from bayesrep.models.model import Model

__all__ = ["MODELS", "Model"]

MODELS: Mapping[str, Model] = {
    "joint": joint.MODEL,
    "shared-difficulty": shared_difficulty.MODEL,
    "workers": workers.MODEL,
}
