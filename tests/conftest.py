"""Settings of every test: CPU, no silent broadcasting over ranks, the same examples each time."""

import os

# Before anything imports JAX; the environment also reaches the processes that tests start.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["MPLBACKEND"] = "Agg"

from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")
