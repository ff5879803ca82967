"""Sensitivity to the correlation of annotators' answers about an image.

Counts are taken as binomial: annotators of an image answer independently. If all of them saw it in
the same grid of images, or under the same description, their answers share that effect, and counts
scatter more than binomial ones of the image's own frequency. Counts alone cannot
tell such scatter from a spread of the frequencies: every distribution of k that it makes is also
that of independent answers and a wider p(s). (They may rule out too large a correlation, if no
mixture in the model scatters so little.) So ρ is an assumption, and this module computes its
consequences: with an intraclass correlation ρ of the answers (`JointOptions.dependence`) the
mixtures are narrower, s regresses more towards their means, and adjusted accuracies differ.

The posterior is approximated at every ρ by a normal around its mode. Differences between these
means stand for those between posterior means: a normal's error is about the same at all ρ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bayesrep.checks.assumptions import assumption
from bayesrep.checks.finding import Finding
from bayesrep.errors import PosteriorError
from bayesrep.numerics.rounding import write_points
from bayesrep.numerics.settings import own_settings
from bayesrep.posterior.groups import Posterior, cells_along, need_group, read_record, right_answers
from bayesrep.studies.statistics import Cells, SufficientStatistics
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words
from bayesrep.types import Float, Floats

if TYPE_CHECKING:  # the band needs JAX; the assumption is stated without it
    from bayesrep.inference.problem import Problem
    from bayesrep.models.model import Data

CORRELATION_LEVELS = (0.0, 0.05, 0.1, 0.2)
"""Intraclass correlations ρ; at 0.2 a fifth of the variance is between presentation grids."""
SUGGESTED_RHO = 0.1
"""Correlation suggested if an image's annotators saw it in one grid."""
MIN_RHO = 1e-6
"""Correlation used for zero: one compiled program, with answers practically independent."""
N_ANTITHETIC_PAIRS = 32
MIN_SUPPORT = -10.0
"""Difference in log density below which the counts reject a correlation."""
MIN_SHIFT = 0.5
"""Smallest shift that is reported, in posterior standard deviations."""


def dependence_band(posterior: Posterior, at: Sequence[float] = CORRELATION_LEVELS) -> pl.DataFrame:
    """Compute the mean gap under several correlations of annotators' answers about an image.

    Parameters
    ----------
    posterior
        From `bayesrep.fit`, of any model and method; it is not fitted again. Groups of images are
        taken together, and feedback for full.
    at
        Intraclass correlations, 0 to less than 1.

    Returns
    -------
    polars.DataFrame
        `dependence`, the correlation; `shift` of the mean bias-corrected gap from what the fit
        says, as a fraction; `widening`, the factor by which its interval grows; `support`, the log
        density of the mode less that at the fit's correlation: below −10 the counts speak
        against it, as far as mixtures of so many betas can follow them; null for correlations
        larger than one that they speak against.

    Raises
    ------
    PosteriorError
        If the posterior lacks what it was fitted to.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.dependence_band(posterior, at=(0.0, 0.1)).columns
    ['dependence', 'shift', 'widening', 'support']
    """
    from bayesrep.inference.problem import pose
    from bayesrep.inference.program import kept_programs
    from bayesrep.models.options import JointOptions

    record = read_record(posterior)
    assumed = record.dependence
    options = {f.name: getattr(record.options, f.name) for f in fields(JointOptions)}
    statistics = _observed_statistics(posterior, record.roles)
    # The fit's own level comes first: shifts are differences from it.
    with kept_programs(), own_settings():
        problems = {
            level: pose(
                statistics,
                model="joint",
                options={**options, "dependence": max(level, MIN_RHO)},
                datasets=record.roles,
            )
            for level in (assumed, *sorted(at))
        }
        levels = _scan_levels(problems, record.weight)
    height, base = levels[assumed]
    missing = np.full(len(base), np.nan)
    columns = [(height - low, mean) for low, mean in (levels.get(x, (np.nan, missing)) for x in at)]
    return pl.DataFrame(
        {
            "dependence": [float(level) for level in at],
            # The gap rises as accuracies fall: the reference's own is as measured.
            "shift": [float(base.mean() - mean.mean()) for _, mean in columns],
            "widening": [float(mean.std() / max(base.std(), 1e-300)) for _, mean in columns],
            "support": [float(support) for support, _ in columns],
        }
    ).fill_nan(None)


def _scan_levels(
    problems: "Mapping[float, Problem]", weight: float
) -> dict[float, tuple[float, Float[np.ndarray, "draw"]]]:
    """Compute by level the least potential, and mean accuracies of a normal around the mode.

    The problems differ in their data's dependence alone; classifiers have the fit's weight, which a
    posterior's cells do not record. The first problem is the fit's; the others are in rising order
    and end with the first that the counts reject, since beyond it mode searches are long and fail.
    """
    import jax
    import jax.numpy as jnp

    from bayesrep.inference.arrowhead import whitening
    from bayesrep.inference.cells import evaluate
    from bayesrep.inference.mode import find_mode, find_mode_from_annotations
    from bayesrep.inference.problem import programs

    def weighted_data(problem: "Problem") -> "Data":
        return problem.data()._replace(weight=jnp.asarray(weight))

    assumed, problem = next(iter(problems.items()))
    data = weighted_data(problem)
    tools = programs(problem, data)  # for all levels, which differ in their data only
    start = tools.start(problem.start(data))
    position = find_mode_from_annotations(problem, tools, start, data).position
    random = np.random.default_rng(0)
    # Common, antithetic random numbers: levels differ by their densities, not by chance.
    half = {
        name: random.standard_normal((N_ANTITHETIC_PAIRS, *leaf.shape))
        for name, leaf in position.items()
    }
    standard = {name: jnp.asarray(np.concatenate([z, -z])) for name, z in half.items()}
    levels: dict[float, tuple[float, Floats]] = {}
    for level, problem in problems.items():
        data = weighted_data(problem)
        mode = find_mode(tools.expand, position, data)
        position = mode.position  # the next level starts here
        normal = whitening(mode.expansion.hessian, position)
        draws = jax.tree.map(lambda leaf: leaf[None], jax.vmap(normal)(standard))
        accuracy = evaluate(tools, draws, data)["adjusted_accuracy"][0].mean(axis=1)
        levels[level] = float(mode.expansion.value), accuracy
        if level > assumed and levels[assumed][0] - levels[level][0] <= MIN_SUPPORT:
            break
    return levels


def _observed_statistics(posterior: Posterior, roles: Sequence[str]) -> SufficientStatistics:
    """Rebuild the sufficient statistics of the fit, pooled over groups."""
    group = need_group(posterior, "observed_data", "correct")
    names = tuple(map(str, group["classifier"].values))
    cells: dict[str, Cells] = {}
    selections = read_record(posterior).selections
    for role in roles:
        cell_names = cells_along(group, role)
        # Pool groups: cells with equal counts become one.
        pairs, place = np.unique(
            np.stack([cell_names.shown, cell_names.selected], axis=1), axis=0, return_inverse=True
        )
        columns = [group[f"{role}_images"].values[:, None]]
        columns.append(
            right_answers(group).T
            if role == "replication"
            else np.zeros((len(cell_names.shown), len(names)))
        )
        total = np.zeros((len(pairs), 1 + len(names)), dtype=np.int64)
        np.add.at(total, place.ravel(), np.hstack(columns).astype(np.int64))
        occupied = total[:, 0] > 0
        n_shown, selected = pairs[occupied].T
        columns = selected, n_shown, total[occupied, 0], total[occupied, 1:]
        cells[role] = Cells(*columns, selections.get(role))
    return SufficientStatistics(names, cells)


def judge_dependence(
    posterior: Posterior, words: Words = IMAGE_WORDS
) -> tuple[pl.DataFrame | None, Finding]:
    """Compute the band, if possible, and judge it; it never tests more than an assumption."""
    check, criterion = "dependence of annotators' answers", "cannot be seen"
    assumed = read_record(posterior).dependence
    value = f"{assumed:g} assumed"
    opening = f"We assume that {assumption(posterior, words)}; no check can see it."
    try:
        band = dependence_band(posterior)
    except PosteriorError as error:
        return None, Finding(check, value, criterion, "yes", f"{opening} ({error})")
    others = band.filter(pl.col("dependence") != assumed)
    if not np.isfinite(others.drop_nulls().to_numpy()).all():
        return band, Finding(check, value, criterion, "yes", f"{opening} What if not is not known.")
    gap = need_group(posterior, "posterior", "bias_corrected_gap")["bias_corrected_gap"].values
    mean = gap.mean(axis=2)
    possible = others.filter(pl.col("support") > MIN_SUPPORT)
    gaps = ", ".join(
        f"{write_points(mean.mean() + row['shift'], 1)} at {row['dependence']:g}"
        for row in possible.iter_rows(named=True)
    )
    much = float(np.abs(possible["shift"].to_numpy()).max(initial=0.0))
    texts = [opening]
    if len(possible):
        effect = f"be {gaps}" if much > MIN_SHIFT * mean.std() else "hardly change"
        texts.append(
            f"With another correlation the mean gap, {write_points(mean.mean(), 1)} points, would "
            f"{effect}."
        )
        # Suggest the correlation of one grid, or the nearest that the counts allow.
        more = possible.filter(pl.col("dependence") > assumed)["dependence"].to_list()
        if more and assumed < SUGGESTED_RHO:
            level = min(more, key=lambda level: abs(level - SUGGESTED_RHO))
            texts.append(
                f"If an {words.image}'s {words.annotators} saw it in one grid or context, fit with "
                f"dependence={level:g}."
            )
    if len(possible) < len(others):
        against = others.filter(~(pl.col("support") > MIN_SUPPORT).fill_null(value=False))
        *first, last = (f"{level:g}" for level in against["dependence"])
        levels = f"correlations of {', '.join(first)} and {last}" if first else f"one of {last}"
        texts.append(f"The counts rule out {levels} between the answers about an {words.image}.")
    return band, Finding(check, value, criterion, "yes", " ".join(texts))
