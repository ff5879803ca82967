"""Posteriors of long chains, kept by `python -m experiments.posteriors`, and what tells others.

Fits are compared with them in statistics/.
"""

import numpy as np
import pytest

from bayesrep.posterior.verdict import MAX_RHAT
from experiments.posteriors import CASES, Summary, disagreements, stored, summary_of


@pytest.fixture(scope="module")
def kept():
    return stored()


def test_every_case_kept_was_sampled_well(kept):
    assert kept["columns"] == list(Summary._fields)
    assert kept["cases"].keys() == CASES.keys()
    for name, case in kept["cases"].items():
        assert case["largest_rhat"] <= MAX_RHAT, name
        assert case["least_ess"] > 1_000, name
    comparisons = 2 * sum(len(case["quantities"]) for case in kept["cases"].values())
    assert comparisons < 1_500  # as `LIMIT` says


@pytest.mark.parametrize(
    ("shift", "stretch", "noticed"), [(0.0, 1.0, 0), (0.2, 1.0, 8), (0.0, 1.15, 8)]
)
def test_a_slightly_wrong_posterior_is_noticed(shift, stretch, noticed, kept):
    """By a fifth of an sd, or 15 % too wide, in 2,000 draws."""
    rng = np.random.default_rng(0)
    quantities = kept["cases"]["default"]["quantities"]
    theirs = {name: row for name, row in quantities.items() if name.startswith("adjusted")}
    ours = {}
    for name, row in theirs.items():
        mean, sd, *_ = row
        z = rng.standard_normal((4, 500))
        ours[name] = summary_of(mean + sd * (shift + stretch * z))
    assert len(disagreements(ours, theirs)) == noticed
