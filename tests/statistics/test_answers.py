"""The intraclass correlation of answers in contexts: truth found and covered."""

import numpy as np
import pytest
from contexts import answers_in_contexts

from bayesrep import intraclass_correlation


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.3])
def test_the_truth_is_found_and_covered(rho):
    """200 studies: 95 % intervals hold the truth in 92 % at least (false alarm rate 0.03)."""
    found = [intraclass_correlation(*answers_in_contexts(seed, rho)) for seed in range(200)]
    held = np.mean([each.lower <= rho <= each.upper for each in found])
    error = np.array([each.correlation for each in found]) - rho
    assert abs(error.mean()) < 5 * error.std() / np.sqrt(200)
    assert held >= 0.92
