"""EM + spline, the paper's parametric estimator: its options.

The work is done in `parametric`, which loads JAX; a study can be estimated by the other methods
without it.
"""

from bayesrep.errors import OptionError
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bayesrep.estimators.replicates import Replicates

__all__ = ["EMSpline"]

Loss = Literal["least-squares", "weighted", "binomial"]
Bounds = Literal["grid", "everywhere"]
Quadrature = Literal["exact", "published"]


@dataclass(frozen=True)
class EMSpline:
    """Mixtures of betas for s by EM, a cubic spline for g by least squares, A = ∫ g p_ref.

    Engstrom et al. (2020), section 5.3, equations 6 and 8, and algorithm 1. The fitted mixtures are
    plugged in: that they are uncertain reaches the estimate's interval only through the bootstrap.

    Attributes
    ----------
    components
        K beta components for each data set.
    starts
        Random starts of the mixtures; each is followed to its optimum, and the best one wins.
    loss
        What the curve minimises: "least-squares" is equation 8; "weighted" divides each squared
        error by the expected share of its count, so that rare counts weigh what they are worth;
        "binomial" maximises the likelihood of the correct answers given the counts.
    bounds
        Where 2e-6 ≤ g ≤ 1 holds: on a "grid" of 1,000 points, as in the published code, or
        "everywhere", by bounding the B-spline coefficients, which allows a little less.
    quadrature
        "exact" integrals in equation 8, or the "published" left sum, which misses mass at the ends.
    annotators
        n': fit the counts that n' annotators per image would have given, in expectation; the
        default is all that each image has, different as they may be.
    """

    components: int = 3
    starts: int = 10
    loss: Loss = "least-squares"
    bounds: Bounds = "grid"
    quadrature: Quadrature = "exact"
    annotators: int | None = None
    name: ClassVar[str] = "em-spline"

    def __post_init__(self) -> None:
        for field, words in (("loss", Loss), ("bounds", Bounds), ("quadrature", Quadrature)):
            if getattr(self, field) not in get_args(words):
                raise OptionError(
                    f"em-spline: {field} is {getattr(self, field)!r}; "
                    f"choose from {', '.join(get_args(words))}"
                )
        if self.components < 1 or self.starts < 1:
            raise OptionError(
                f"em-spline: components is {self.components} and starts is {self.starts}; "
                "both must be at least 1"
            )

    def __call__(
        self, replicates: Replicates, *, seed: int = 0, progress: bool = False, **_: Any
    ) -> NDArray[np.float64]:
        """The estimate, [B, C].

        Parameters
        ----------
        replicates
            Row 0, the study itself, is fitted from random starts, the others from its optima.
        seed
            Of the random starts.
        progress
            Show a bar on standard error where there are many versions.

        Raises
        ------
        OptionError
            Where ``annotators`` is less than 1, or more than some image has.

        Warns
        -----
        IdentificationWarning
            Where the counts do not determine a mixture of K components.
        """
        from bayesrep.estimators.parametric import fit_parametric

        return fit_parametric(self, replicates, seed=seed, progress=progress).adjusted_accuracy
