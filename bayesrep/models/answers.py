"""Distributions of the number y of right answers about the m images of a cell.

Images of a cell are exchangeable, with the mean q of y / m. So with any distribution f(y; m, q)

    P(an image is right | y of m others)  =  f(y + 1; m + 1, q) / f(y; m, q) · (y + 1) / (m + 1).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.special import expit, log_expit, logit

from bayesrep.errors import OptionError, refuse_any
from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.settings import own_settings
from bayesrep.types import Bools, Floats, Int

if TYPE_CHECKING:
    from jax import Array
    from numpyro.distributions import Distribution

CountArray: TypeAlias = Int[np.ndarray, "..."]


@dataclass(frozen=True)
class Binomial:
    """y ~ Binomial(m, q): answers about images of a cell are independent given q."""

    def log_likelihood(self, right: "Array", wrong: "Array", accuracy: "Array") -> "Array":
        """Compute log f(y; m, q) up to a constant; traceable by JAX."""
        import jax.numpy as jnp

        return right * jnp.log(accuracy) + wrong * jnp.log1p(-accuracy)

    def log_prob(self, right: CountArray, images: CountArray, logits: Floats) -> Floats:
        """Compute log f(y; m, q)."""
        choices = log_binomial(images, right)
        return choices + right * logits + images * log_expit(-logits)

    def log_answers(
        self, right: CountArray, images: CountArray, logits: Floats
    ) -> tuple[Floats, Floats]:
        """Compute log P(wrong) and log P(right) of one more image, given y of m others right."""
        return log_expit(-logits), log_expit(logits)

    def sample(self, rng: np.random.Generator, images: CountArray, accuracy: Floats) -> CountArray:
        """Draw y."""
        return rng.binomial(images, accuracy)

    def sample_images(self, rng: np.random.Generator, cell: CountArray, accuracy: Floats) -> Bools:
        """Draw answers [image, classifier] from q [classifier, cell], by the cells of images."""
        chance = accuracy.T[cell]
        return rng.random(chance.shape) < chance

    def variance(self, images: CountArray, accuracy: Floats) -> Floats:
        """Compute Var(y)."""
        return images * (accuracy * (1 - accuracy))

    def fourth_cumulant(self, images: CountArray, accuracy: Floats) -> Floats:
        """Compute the fourth cumulant κ₄(y) = E(y − m q)⁴ − 3 Var(y)²."""
        unit = accuracy * (1 - accuracy)
        return images * unit * (1 - 6 * unit)


@dataclass(frozen=True)
class NumPyroAnswers:
    """Right answers by a distribution of NumPyro, whose mean is m q.

    Parameters
    ----------
    distribution
        `distribution(q, m)`: of y, for arrays q and m that broadcast; any numbers that it has
        besides are options of the model.

    Examples
    --------
    Answers about images of a cell with the intraclass correlation ρ = 0.1:

    >>> import numpyro.distributions as dist
    >>> def beta_binomial(q, m, rho=0.1):
    ...     total = 1 / rho - 1
    ...     return dist.BetaBinomial(q * total, (1 - q) * total, m)
    >>> answers = NumPyroAnswers(beta_binomial)
    >>> answers.variance(np.array([20]), np.array([0.5])).round(2)  # m q (1 − q) (1 + (m − 1) ρ)
    array([14.5])
    """

    distribution: "Callable[[Any, Any], Distribution]"

    def log_likelihood(self, right: "Array", wrong: "Array", accuracy: "Array") -> "Array":
        """Compute log f(y; m, q) up to a constant; traceable by JAX."""
        import jax.numpy as jnp

        images = right + wrong
        density = self._build_law(accuracy, images).log_prob(right)
        return jnp.where(images > 0, density, 0.0)

    def log_prob(self, right: CountArray, images: CountArray, logits: Floats) -> Floats:
        """Compute log f(y; m, q)."""
        with own_settings():
            # Of counts of 16 bits JAX would compute gamma functions of 32.
            distribution = self._build(np.asarray(images, dtype=float), expit(logits))
            right = np.broadcast_to(right, distribution.batch_shape).astype(float)
            return np.asarray(distribution.log_prob(right))

    def log_answers(
        self, right: CountArray, images: CountArray, logits: Floats
    ) -> tuple[Floats, Floats]:
        """Compute log P(wrong) and log P(right) of one more image, given y of m others right."""
        alone = self.log_prob(right, images, logits)
        # Of y right answers among m images every choice of the images is as probable.
        wrong = self.log_prob(right, images + 1, logits) + np.log1p(-right / (images + 1))
        more = self.log_prob(right + 1, images + 1, logits) + np.log((right + 1) / (images + 1))
        return wrong - alone, more - alone

    def sample(self, rng: np.random.Generator, images: CountArray, accuracy: Floats) -> CountArray:
        """Draw y."""
        import jax

        with own_settings():
            key = jax.random.key(int(rng.integers(2**32)))
            return np.asarray(self._build(images, accuracy).sample(key)).astype(np.int64)

    def sample_images(self, rng: np.random.Generator, cell: CountArray, accuracy: Floats) -> Bools:
        """Draw answers [image, classifier] from q [classifier, cell], by the cells of images."""
        images = np.bincount(cell, minlength=accuracy.shape[1])
        right = self.sample(rng, images, accuracy).T
        # Which of a cell's images are right is chosen by ranks of random numbers.
        order = np.argsort(cell[:, None] + rng.random((len(cell), len(accuracy))), axis=0)
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(len(cell))[:, None], axis=0)
        first = np.cumsum(images) - images
        return ranks - first[cell][:, None] < right[cell]

    def variance(self, images: CountArray, accuracy: Floats) -> Floats:
        """Compute Var(y)."""
        with own_settings():
            return np.asarray(self._build(images, accuracy).variance)

    def fourth_cumulant(self, images: CountArray, accuracy: Floats) -> Floats:
        """Compute the fourth cumulant κ₄(y) = E(y − m q)⁴ − 3 Var(y)², at the mean of the draws."""
        mean = accuracy.reshape(-1, accuracy.shape[-1]).mean(axis=0)
        cumulant = np.zeros(len(mean))
        for index, (m, q) in enumerate(zip(images.astype(int), mean, strict=True)):
            y = np.arange(m + 1)
            probability = np.exp(self.log_prob(y, np.full(m + 1, m), np.full(m + 1, logit(q))))
            square = np.square(y - m * q)
            cumulant[index] = probability @ square**2 - 3 * (probability @ square) ** 2
        return cumulant

    def _build(self, images: CountArray | Floats, accuracy: Floats) -> "Distribution":
        # A q of 0 or 1 would have no log probability of the other answer.
        least = np.finfo(np.float64).eps
        images, accuracy = np.broadcast_arrays(images, np.clip(accuracy, least, 1 - least))
        return self._build_law(accuracy, images)

    def _build_law(self, accuracy: Any, images: Any) -> "Distribution":
        with refuse_any(lambda problem: OptionError("answers-without-law", problem=problem)):
            return self.distribution(accuracy, images)


AnswerDistribution: TypeAlias = Binomial | NumPyroAnswers
BINOMIAL = Binomial()


def overdispersion(answers: AnswerDistribution, images: CountArray, accuracy: Floats) -> Floats:
    """Compute v = Var(y) / (m q (1 − q)), a residual's inverse weight; 1 for certain answers."""
    binomial = BINOMIAL.variance(images, accuracy)
    variance = answers.variance(images, accuracy)
    return np.divide(variance, binomial, out=np.ones_like(variance), where=binomial > 0)
