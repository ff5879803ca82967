"""Temperatures, by which outputs are divided so that probabilities say how often answers are right.

Guo et al. (2017), "On calibration of modern neural networks", section 4.2: one number T for each
network, at which the labels of some images are likeliest. The likelihood is concave in 1 / T, and
highest where the outputs that are expected are on average those of the labels,

    mean over images of  sum_k p_k z_k  =  mean of z_label,    p = softmax(z / T).

Answers stay as they are.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root_scalar
from scipy.special import softmax

from bayesrep.errors import PredictionError
from bayesrep.types import Floats, Ints

LOWEST, HIGHEST = 0.05, 20.0
_AT_ONCE = 4096  # images whose outputs are in memory as float64


def fit_temperature(outputs: NDArray[Any], labels: Ints) -> float:
    """The temperature at which labels are likeliest."""
    counted = np.isfinite(outputs[np.arange(len(labels)), labels])
    outputs, labels = outputs[counted], labels[counted]

    def slope(inverse: float) -> float:
        """The derivative of the negative log likelihood in 1 / T, summed over images."""
        return sum(
            float(np.sum(_expected_less_labels(outputs[at : at + _AT_ONCE], labels[at:], inverse)))
            for at in range(0, len(labels), _AT_ONCE)
        )

    ends = 1 / HIGHEST, 1 / LOWEST
    if not len(labels) or not slope(ends[0]) < 0 < slope(ends[1]):
        raise PredictionError("temperature-not-found", lowest=LOWEST, highest=HIGHEST)
    return 1 / root_scalar(slope, bracket=ends, xtol=1e-9).root


def _expected_less_labels(outputs: NDArray[Any], labels: Ints, inverse: float) -> Floats:
    values = outputs.astype(np.float64)
    shares = softmax(inverse * values, axis=1)
    expected = np.sum(shares * np.where(np.isfinite(values), values, 0), axis=1)
    return expected - values[np.arange(len(values)), labels[: len(values)]]
