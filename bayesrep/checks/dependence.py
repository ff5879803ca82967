"""Effect of the correlation ρ of annotators' answers about an image on the mean gap.

Along a fit's draws of ρ the gap is regressed on it: what it would be, were ρ known, and how well.
"""

import numpy as np
import polars as pl

from bayesrep.checks.finding import ASSUMED, Finding
from bayesrep.numerics.rounding import write_points
from bayesrep.posterior.groups import Posterior, need_group, read_record
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words

DEPENDENCE_CHECK = "dependence of annotators' answers"
MIN_PROBABILITY_SHOWN = 1e-3  # posterior probability of a correlation from which on it has a row


def dependence_table(posterior: Posterior) -> pl.DataFrame | None:
    """Compute the mean gap at every correlation ρ of the annotators' answers about an image.

    Parameters
    ----------
    posterior
        From `bayesrep.fit`.

    Returns
    -------
    polars.DataFrame | None
        `dependence`, the correlation ρ, 0 first; its posterior `probability`; and the mean
        bias-corrected `gap` with the ends `lower` and `upper` of its 95 % interval, as fractions,
        were ρ known. None where ρ was given to the fit.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.dependence_table(posterior).columns
    ['dependence', 'probability', 'gap', 'lower', 'upper']
    """
    group = need_group(posterior, "posterior", "bias_corrected_gap")
    if "dependence" not in group:
        return None
    gap = group["bias_corrected_gap"].values.mean(axis=-1).ravel()
    correlation = group["dependence"].values.ravel()
    levels, count = np.unique(correlation, return_counts=True)
    # Few draws may have ρ = 0, and all say what the gap would be there.
    line = np.polynomial.Polynomial.fit(correlation, gap, min(2, len(levels) - 1))
    lower, upper = np.quantile(gap - line(correlation), (0.025, 0.975))
    shown = np.union1d(0.0, levels[count >= MIN_PROBABILITY_SHOWN * len(correlation)])
    share = dict(zip(levels.tolist(), (count / len(correlation)).tolist(), strict=True))
    return pl.DataFrame(
        {
            "dependence": shown,
            "probability": [share.get(level, 0.0) for level in shown.tolist()],
            "gap": line(shown),
            "lower": line(shown) + lower,
            "upper": line(shown) + upper,
        }
    )


def judge_dependence(
    posterior: Posterior, table: pl.DataFrame | None, words: Words = IMAGE_WORDS
) -> Finding:
    """Say what the correlation is, and what the mean gap would be without, by its table."""
    if table is None:
        rho = f"{read_record(posterior).dependence:g}"
        text = f"We assume that {assumption(posterior, words)}; no check can see it."
        return Finding(DEPENDENCE_CHECK, f"{rho} {ASSUMED}", "cannot be seen", "yes", text)
    correlation = need_group(posterior, "posterior")["dependence"].values
    lower, upper = (f"{end:.3f}" for end in np.quantile(correlation, (0.025, 0.975)))
    estimate = f"{correlation.mean():.3f} ({lower} to {upper})"
    gap, *ends = (write_points(table[name][0], 1) for name in ("gap", "lower", "upper"))
    text = (
        f"The correlation of {words.annotators}' answers about an {words.image} is {estimate}, as "
        "far as its prior and the answers tell; the intervals allow for it. If "
        f"{words.annotators} answered independently, the mean gap would be {gap} points "
        f"({ends[0]} to {ends[1]})."
    )
    return Finding(DEPENDENCE_CHECK, estimate, "learnt", "yes", text)


def independence_note(posterior: Posterior, words: Words = IMAGE_WORDS) -> str:
    """Say what the mean gap's interval is under independent answers; nothing if ρ was given."""
    table = dependence_table(posterior)
    if table is None:
        return ""
    ends = " to ".join(write_points(table[name][0], 1) for name in ("lower", "upper"))
    return f"(With {words.annotators} who answer independently, {ends} points remain.)"


def assumption(posterior: Posterior, words: Words = IMAGE_WORDS) -> str:
    """State what the fit takes as known of the dependence of answers, as a clause, or nothing."""
    if "dependence" in need_group(posterior, "posterior"):
        return ""
    assumed = read_record(posterior).dependence
    if assumed == 0:
        return f"{words.annotators} answered independently"
    return (
        f"{words.annotators}' answers about an {words.image} have an intraclass correlation of "
        f"{assumed:g}"
    )
