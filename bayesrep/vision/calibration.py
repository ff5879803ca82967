"""Temperature scaling: calibration of probabilities by dividing the outputs.

Guo et al. (2017), "On calibration of modern neural networks", section 4.2: one number T for each
network, at which the labels of some images are likeliest. The likelihood is concave in 1 / T, and
highest where the expected outputs equal those of the labels on average,

    mean over images of  sum_k p_k z_k  =  mean of z_label,    p = softmax(z / T).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root_scalar
from scipy.special import softmax

from bayesrep.errors import PredictionError
from bayesrep.types import Ints

MIN_TEMPERATURE, MAX_TEMPERATURE = 0.05, 20.0
BATCH_IMAGES = 4096  # with outputs in memory as float64


def fit_temperature(outputs: NDArray[Any], labels: Ints) -> float:
    """Fit the temperature by maximum likelihood of the labels."""
    counted = np.isfinite(outputs[np.arange(len(labels)), labels])
    outputs, labels = outputs[counted], labels[counted]

    def slope(inverse: float) -> float:
        total = 0.0
        for first in range(0, len(labels), BATCH_IMAGES):
            values = outputs[first : first + BATCH_IMAGES].astype(np.float64)
            shares = softmax(inverse * values, axis=1)
            expected = np.sum(shares * np.where(np.isfinite(values), values, 0), axis=1)
            own = values[np.arange(len(values)), labels[first : first + len(values)]]
            total += float(np.sum(expected - own))
        return total

    ends = 1 / MAX_TEMPERATURE, 1 / MIN_TEMPERATURE
    if not len(labels) or not slope(ends[0]) < 0 < slope(ends[1]):
        raise PredictionError(
            "temperature-not-found", lowest=MIN_TEMPERATURE, highest=MAX_TEMPERATURE
        )
    return 1 / root_scalar(slope, bracket=ends, xtol=1e-9).root
