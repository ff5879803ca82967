"""Settings of every test: CPU, no silent broadcasting over ranks, the same examples each time."""

import os
import sys

# Before anything imports JAX; the environment also reaches the processes that tests start.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["MPLBACKEND"] = "Agg"
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "0"  # of the command line, in the home folder

import pytest
from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


@pytest.fixture(scope="module", autouse=True)
def programs_end_with_their_module():
    """Each compiled program maps memory; those of the whole suite exceed what Linux allows."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
