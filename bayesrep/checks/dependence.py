"""What the answer would be if annotators' answers about an image depended on each other.

Counts are taken for binomial: every annotator of an image answers by himself. Where all of them saw
it in the same grid of images, or under the same description, their answers share what that did to
it, and counts scatter more than binomial ones of the image's own frequency. Counts alone cannot
tell such scatter from a spread of the frequencies: every distribution of k that it makes is also
that of independent answers and a wider p(s). (Too large a correlation they may rule out, where no
mixture at hand scatters so little.) So it is an assumption, and here is what follows from it: with
an intraclass correlation ρ of the answers (`JointOptions.dependence`) the mixtures are narrower,
the regression of s towards their means is stronger, and the adjusted accuracies are others.

For every ρ the posterior's mode is found, and a normal put around it. Their means stand for the
posteriors' means *relative to each other*: what a normal misses is about the same at all of them.
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
from bayesrep.studies.words import IMAGES, Words
from bayesrep.types import Float, Floats

if TYPE_CHECKING:  # what the band takes imports JAX; what is assumed is told without it
    from bayesrep.inference.problem import Problem
    from bayesrep.models.model import Data

LEVELS = (0.0, 0.05, 0.1, 0.2)
"""Intraclass correlations; 0.2 is what a fifth of all scatter in a grid of its own would be."""
OF_ONE_GRID = 0.1
"""What is advised where an image's annotators saw it in one grid."""
NONE = 1e-6
"""Correlation that stands for zero: the same program, with answers as good as independent."""
PAIRS = 32
AGAINST = -10.0
"""Support below which the counts speak against a correlation."""
NOTICEABLE = 0.5
"""Smallest shift that is reported, in posterior standard deviations."""


def dependence_band(posterior: Posterior, at: Sequence[float] = LEVELS) -> pl.DataFrame:
    """How the answer moves with the correlation of the annotators' answers about an image.

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
        against it, as far as mixtures of so many betas can follow them. Of larger correlations
        than one they speak against, null.

    Raises
    ------
    PosteriorError
        If the posterior lacks what it was fitted to.
    """
    from bayesrep.inference.problem import pose
    from bayesrep.inference.program import kept_programs
    from bayesrep.models.options import JointOptions

    made = read_record(posterior)
    assumed = made.dependence
    options = {f.name: getattr(made.options, f.name) for f in fields(JointOptions)}
    statistics = _observed_statistics(posterior, made.roles)
    with kept_programs(), own_settings():
        problems = {
            level: pose(
                statistics,
                model="joint",
                options={**options, "dependence": max(level, NONE)},
                datasets=made.roles,
            )
            for level in (assumed, *sorted(at))
        }
        levels = _scan_levels(problems, made.weight)
    height, base = levels[assumed]
    nothing = np.full(len(base), np.nan)
    columns = [(height - low, mean) for low, mean in (levels.get(x, (np.nan, nothing)) for x in at)]
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
    """By level: the least potential, and mean accuracies of a normal around it, by the same z.

    Of problems that differ in what their data say of the dependence alone, and whose classifiers
    count with the fit's weight, which a posterior's cells do not tell. The first is the fit's; the
    others rise, and end with the first that the counts speak against: there the climb is long and
    leads nowhere.
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
    tools = programs(problem, data)  # of all levels: it is the data that know them
    start = tools.start(problem.start(data))
    position = find_mode_from_annotations(problem, tools, start, data).position
    random = np.random.default_rng(0)
    half = {name: random.standard_normal((PAIRS, *leaf.shape)) for name, leaf in position.items()}
    standard = {name: jnp.asarray(np.concatenate([z, -z])) for name, z in half.items()}
    levels: dict[float, tuple[float, Floats]] = {}
    for level, problem in problems.items():
        data = weighted_data(problem)
        mode = find_mode(tools.expand, position, data)
        position = mode.position
        normal = whitening(mode.expansion.hessian, position)
        draws = jax.tree.map(lambda leaf: leaf[None], jax.vmap(normal)(standard))
        accuracy = evaluate(tools, draws, data)["adjusted_accuracy"][0].mean(axis=1)
        levels[level] = float(mode.expansion.value), accuracy
        if level > assumed and levels[assumed][0] - levels[level][0] <= AGAINST:
            break
    return levels


def _observed_statistics(posterior: Posterior, roles: Sequence[str]) -> SufficientStatistics:
    """What the posterior was fitted to, its groups taken together."""
    group = need_group(posterior, "observed_data", "correct")
    names = tuple(map(str, group["classifier"].values))
    cells: dict[str, Cells] = {}
    selections = read_record(posterior).selections
    for role in roles:
        along = cells_along(group, role)
        pairs, place = np.unique(
            np.stack([along.shown, along.selected], axis=1), axis=0, return_inverse=True
        )
        columns = [group[f"{role}_images"].values[:, None]]
        columns.append(
            right_answers(group).T
            if role == "replication"
            else np.zeros((len(along.shown), len(names)))
        )
        total = np.zeros((len(pairs), 1 + len(names)), dtype=np.int64)
        np.add.at(total, place.ravel(), np.hstack(columns).astype(np.int64))
        kept = total[:, 0] > 0
        shown, selected = pairs[kept].T
        columns = selected, shown, total[kept, 0], total[kept, 1:]
        cells[role] = Cells(*columns, selections.get(role))
    return SufficientStatistics(names, cells)


def judge_dependence(
    posterior: Posterior, words: Words = IMAGES
) -> tuple[pl.DataFrame | None, Finding]:
    """The band, where it can be made, and what it means: never more than an assumption."""
    check, wanted = "dependence of annotators' answers", "cannot be seen"
    assumed = read_record(posterior).dependence
    value = f"{assumed:g} assumed"
    opening = f"We assume that {assumption(posterior, words)}; no check can see it."
    try:
        band = dependence_band(posterior)
    except PosteriorError as error:
        return None, Finding(check, value, wanted, "yes", f"{opening} ({error})")
    others = band.filter(pl.col("dependence") != assumed)
    if not np.isfinite(others.drop_nulls().to_numpy()).all():
        return band, Finding(check, value, wanted, "yes", f"{opening} What if not is not known.")
    gap = need_group(posterior, "posterior", "bias_corrected_gap")["bias_corrected_gap"].values
    mean = gap.mean(axis=2)
    possible = others.filter(pl.col("support") > AGAINST)
    told = ", ".join(
        f"{write_points(mean.mean() + row['shift'], 1)} at {row['dependence']:g}"
        for row in possible.iter_rows(named=True)
    )
    much = float(np.abs(possible["shift"].to_numpy()).max(initial=0.0))
    said = [opening]
    if len(possible):
        effect = f"be {told}" if much > NOTICEABLE * mean.std() else "hardly change"
        said.append(
            f"With another correlation the mean gap, {write_points(mean.mean(), 1)} points, would "
            f"{effect}."
        )
        # What annotators of one grid have, or the nearest to it that the counts allow.
        more = possible.filter(pl.col("dependence") > assumed)["dependence"].to_list()
        if more and assumed < OF_ONE_GRID:
            level = min(more, key=lambda level: abs(level - OF_ONE_GRID))
            said.append(
                f"If an {words.image}'s {words.annotators} saw it in one grid or context, fit with "
                f"dependence={level:g}."
            )
    if len(possible) < len(others):
        against = others.filter(~(pl.col("support") > AGAINST).fill_null(value=False))
        *first, last = (f"{level:g}" for level in against["dependence"])
        levels = f"correlations of {', '.join(first)} and {last}" if first else f"one of {last}"
        said.append(f"The counts rule out {levels} between the answers about an {words.image}.")
    return band, Finding(check, value, wanted, "yes", " ".join(said))
