"""The paper's pipeline on two populations of your own: what matching on n answers leaves.

The populations of the reference and of the candidates are mixtures of betas. Candidates are
measured by n answers each and matched to the reference; what is left of the mean selection
frequency is known exactly (`matching_bias`; equation 1 and appendix C of
Engstrom et al., 2020), and sampled beside it. Answers may be careless: a share of them tosses of a
coin, by workers who look at no image. These pull every measured frequency towards one half, alike
for both data sets, and leave less information in as many answers.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from bayesrep.errors import OptionError
from bayesrep.numerics.noisy_matching import BetaMixture, replication_mixture
from bayesrep.planning.discretise import chance_of_counts, masses_of
from bayesrep.planning.matching import MAX_POOL_ANSWERS, remaining_gaps
from bayesrep.report.table_format import Cell, list_rows
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words
from bayesrep.types import Floats

EXPLORED_ANSWERS = (1, 3, 5, 10, 20, 40, 80)
SAMPLED_IMAGES = 200_000
N_TARGET, N_POOL = 10_000, 100_000
"""Images to choose, and candidates, of methods that may run out of these."""


def explore(
    reference: BetaMixture,
    pool: BetaMixture,
    answers: Sequence[int] = EXPLORED_ANSWERS,
    *,
    careless: float = 0.0,
    sampled: int = SAMPLED_IMAGES,
    seed: int = 0,
) -> pl.DataFrame:
    """Compute the gap that matching leaves by every method, over several numbers of answers.

    Parameters
    ----------
    reference, pool
        Distributions of the true selection frequency.
    answers
        Numbers n of answers about an image.
    careless
        Share of the answers that are tosses of a coin.
    sampled
        Candidates of the simulation beside it.
    seed
        Seed of the simulation.

    Returns
    -------
    polars.DataFrame
        One row a number: `answers`; `weight`, of the reference's distribution in the
        replication's, n / (n + α + β), null unless the pool is a single beta and answers are
        careful; `published`, `fine` and `posterior`, the reference's mean selection frequency less
        that of what each method chooses; `simulated` and `error`, of the fine method by sampling,
        with its standard error; `measured_reference` and `measured_replication`, mean frequencies
        that answers of the same kind, given afresh, would show of both.

    Raises
    ------
    OptionError
        If a number is out of range, or a population is not a mixture of betas.
    """
    if not answers or min(answers) < 1 or max(answers) > MAX_POOL_ANSWERS:
        raise OptionError(
            "explored-answers-out-of-range", most_answers=MAX_POOL_ANSWERS, answers=list(answers)
        )
    if not 0 <= careless < 1:
        raise OptionError("careless-share-out-of-range", careless=careless)
    if sampled < 100:
        raise OptionError("sampled-below-hundred", sampled=sampled)
    for name, each in (("reference", reference), ("pool", pool)):
        parameters = np.concatenate([each.a, each.b, each.weights])
        if not (np.isfinite(parameters) & (parameters > 0)).all():
            raise OptionError("beta-parameters-not-positive", role=name)
    single = len(pool.a) == 1 and careless == 0
    rows: list[dict[str, float | None]] = []
    for n in answers:
        gaps = remaining_gaps(
            masses_of(reference), masses_of(pool), n, size=N_TARGET, pool=N_POOL, careless=careless
        )
        if careless == 0:  # exact, and of a pool without end
            gaps["fine"] = matching_bias(reference, pool, n)
        gap, error = simulate_matching(
            reference, pool, n, careless=careless, size=sampled, seed=seed
        )
        means = reference.mean, reference.mean - gaps["fine"]
        measured = [(1 - careless) * mean + careless / 2 for mean in means]
        rows.append(
            {
                "answers": n,
                "weight": n / (n + float(pool.a[0] + pool.b[0])) if single else None,
                **{name: round(value, 9) + 0.0 for name, value in gaps.items()},  # no -0
                "simulated": gap,
                "error": error,
                "measured_reference": measured[0],
                "measured_replication": measured[1],
            }
        )
    return pl.DataFrame(rows)


def matching_bias(reference: BetaMixture, pool: BetaMixture, n: int) -> float:
    """Compute E₁[s] − E₂[s]: by how much images matched on n answers fall short in mean."""
    return reference.mean - replication_mixture(reference, pool, n).mean


def chosen_masses(
    reference: Floats, candidates: Floats, answers: int, *, bins: int | None = None, careless: float
) -> Floats:
    """Compute the density of images chosen from unlimited candidates; masses sum to one."""
    k, p_count = np.arange(answers + 1), chance_of_counts(answers, careless)  # [count, node]
    which = k if bins is None else np.minimum(bins * k // max(answers, 1), bins - 1)
    target, pool = (np.bincount(which, p_count @ masses) for masses in (reference, candidates))
    rate = np.divide(target, pool, out=np.zeros_like(target), where=pool > 1e-300)
    return candidates * (rate[which] @ p_count)


def simulate_matching(
    reference: BetaMixture,
    pool: BetaMixture,
    n: int,
    *,
    careless: float = 0.0,
    size: int = SAMPLED_IMAGES,
    seed: int = 0,
) -> tuple[float, float]:
    """Simulate matching on every count: the remaining gap and its standard error."""
    rng = np.random.default_rng([seed, n])
    s1, k1 = _measure_images(rng, reference, n, careless, size)
    s, k = _measure_images(rng, pool, n, careless, size)
    share = np.bincount(k1, minlength=n + 1) / size
    n_k = np.bincount(k, minlength=n + 1)
    sums = np.bincount(k, s, minlength=n + 1)
    squares = np.bincount(k, np.square(s), minlength=n + 1)
    observed = n_k > 0
    mean = np.where(observed, sums / np.maximum(n_k, 1), 0.0)
    weight = np.where(observed, share, 0.0)
    weight /= weight.sum()
    within = np.maximum(squares / np.maximum(n_k, 1) - np.square(mean), 0) / np.maximum(n_k, 1)
    residual = s1 - mean[k1]
    error = np.sqrt(residual.var() / size + np.square(weight) @ within)
    return float(s1.mean() - weight @ mean), float(error)


def _measure_images(
    rng: np.random.Generator, population: BetaMixture, n: int, careless: float, size: int
) -> tuple[Floats, np.ndarray]:
    """Frequencies of images, and how many of n answers select each."""
    component = rng.choice(
        len(population.a), size=size, p=population.weights / population.weights.sum()
    )
    s = rng.beta(population.a[component], population.b[component])
    return s, rng.binomial(n, (1 - careless) * s + careless / 2)


def lab_text(
    table: pl.DataFrame,
    reference: float,
    pool: float,
    out: Path | None,
    words: Words = IMAGE_WORDS,
) -> str:
    """Tabulate the gap that matching leaves, by number of answers."""
    cells: dict[str, Cell] = {"answers": "{answers}"}
    if table["weight"].null_count() < len(table):
        cells["reference's share %"] = "{weight:1p}"
    cells |= {
        "five bins": "{published:2p}",
        "every count": "{fine:2p}",
        "simulated": "{simulated:2p}",
        "s.e.": "{error:2p}",
        "posterior": "{posterior:2p}",
        "measured again": "{measured_replication:1p} of {measured_reference:1p}",
    }
    lines = [
        f"Mean selection frequency: reference {100 * reference:.1f} %, candidates "
        f"{100 * pool:.1f} %. Bias left after matching, by answers per {words.image}, in points:",
        "",
        list_rows(table, cells),
        "",
        "Reference's share: of the replication's distribution, by equation 1; the rest is like the "
        "candidates. Simulated: every count.",
    ]
    if out is not None:
        lines.append(f"Written to {out}: the same with sliders")
    return "\n".join(lines)
