r"""Figure 3: the simple model of a replication that is matched on noisy selection frequencies.

No study is needed. The reference has p₁ = Beta(α + 1, β), the pool of candidates
p_flickr = Beta(α, β), and n annotators select k ~ Binomial(n, s). A candidate is accepted with
probability proportional to p₁(k)/p_flickr(k). Both are beta-binomial, so that

    p₁(k)/p_flickr(k) = (α + k)/(α + β + n) · (α + β)/α.

Its mean over k given s puts n s in place of k, and with p₁(s) = s (α + β)/α · p_flickr(s) the
density of s among the accepted is equation 1 (section 2, appendix C):

    p_flickr(s) · E[p₁(k)/p_flickr(k) | s]
        = n/(n + α + β) · p₁(s) + (α + β)/(n + α + β) · p_flickr(s).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta as beta_distribution

from bayesrep.bounds import is_of_kind
from bayesrep.errors import OptionError
from bayesrep.types import Floats
from experiments.papers.helpers import shades
from experiments.style import Color, legend_below, panels

BETA_ALPHA, BETA_BETA = 2.0, 2.0
ANNOTATOR_NUMBERS = (1, 4, 10, 40)
S_GRID = np.linspace(0, 1, 401)


def replication_density(
    s: ArrayLike, annotators: int, *, alpha: float = BETA_ALPHA, beta: float = BETA_BETA
) -> Floats:
    """Density of the true selection frequency in the replication: equation 1."""
    reference = beta_distribution.pdf(s, alpha + 1, beta)
    candidates = beta_distribution.pdf(s, alpha, beta)
    share = annotators / (annotators + alpha + beta)
    return share * reference + (1 - share) * candidates


def numbers(
    *, annotators: Any = ANNOTATOR_NUMBERS, alpha: Any = BETA_ALPHA, beta: Any = BETA_BETA
) -> dict[str, Any]:
    """Densities of reference, candidates and the replications of every n on a grid of s."""
    annotators = list(annotators) if isinstance(annotators, Iterable) else [annotators]
    if not all(is_of_kind(n, int) and n >= 1 for n in annotators):
        raise OptionError("figure3-annotators-not-whole")
    for name, value in (("alpha", alpha), ("beta", beta)):
        if isinstance(value, tuple) or not value > 0:
            raise OptionError("figure3-setting-not-positive", setting=name, value=value)
    return {
        "s": S_GRID.tolist(),
        "alpha": alpha,
        "beta": beta,
        "reference": beta_distribution.pdf(S_GRID, alpha + 1, beta).tolist(),
        "candidates": beta_distribution.pdf(S_GRID, alpha, beta).tolist(),
        "replications": [
            {
                "annotators": n,
                "density": replication_density(S_GRID, n, alpha=alpha, beta=beta).tolist(),
            }
            for n in annotators
        ],
    }


def draw(data: dict[str, Any]) -> Any:
    """(a) the two distributions; (b) between them, a shade for each n, the replications."""
    figure, both = panels(2)
    alpha, beta = data["alpha"], data["beta"]
    ends = (
        ("reference", "-", f"$p_1$ = Beta({alpha + 1:g}, {beta:g})"),
        ("candidates", "--", rf"$p_\mathrm{{flickr}}$ = Beta({alpha:g}, {beta:g})"),
    )
    for axes in both:
        for name, style, label in ends:
            axes.plot(data["s"], data[name], color=Color.INK, ls=style, lw=1.8, label=label)
        axes.set(xlim=(0, 1), ylim=(0, None), xlabel="true selection frequency s")
    series = data["replications"]
    # The darkest shade is too near the ink of the two ends.
    for part, color in zip(series, shades(len(series) + 1)[:-1], strict=True):
        label = f"replication, n = {part['annotators']}"
        both[1].plot(data["s"], part["density"], color=color, lw=1.4, label=label)
    both[0].set_ylabel("density")
    for axes, letter in zip(both, "ab", strict=True):
        axes.set_title(f"({letter})", loc="left", fontsize=10)
    legend_below(figure, columns=3)
    return figure
