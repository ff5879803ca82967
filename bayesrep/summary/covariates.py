"""Regression on covariates of the classifiers: year, size, family.

    y_c  =  x_cᵀ β  +  u_c,        u_c ~ Normal(0, σ²),

and y is known by joint draws, whose covariance V is that over other images. With
H = (XᵀX)⁻¹ Xᵀ and M = I − X H the posterior means ŷ have the residual square Q = |M ŷ|². Images
contribute v = tr(M V) / f for each of f degrees of freedom, and classifiers the rest. So

    τ²  ~  Q / χ²_f  above v,        β  =  H y + Normal(0, (τ² − v) (XᵀX)⁻¹),

one draw for each of y: the posterior of a hierarchical regression under the usual flat prior
(Tiao and Tan 1965, "Bayesian analysis of random-effect models").

The posterior draws each curve towards the population's, so an effect on the accuracy comes out too
near to zero: by about two percent at 1,000 images (experiments/covariates.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import chi2

from bayesrep.errors import OptionError, StudyError, listing, reason
from bayesrep.files.names import normalize_names
from bayesrep.numerics.constants import SMALLEST_POSITIVE
from bayesrep.numerics.estimands import INTERVAL
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.sources.frames import as_polars
from bayesrep.studies.column_aliases import COLUMN_ALIASES, in_our_words
from bayesrep.studies.study import Study
from bayesrep.types import Float

CLASSIFIER_COLUMN = "classifier"
TERM_SCHEMA = {"covariate": pl.String, "level": pl.String, "against": pl.String}


class Term(NamedTuple):
    """A column of the design matrix: a covariate, or a level of a category and its baseline."""

    covariate: str
    level: str | None
    against: str | None
    values: Float[np.ndarray, "classifier"]


def regress_classifiers(
    study: Study,
    posterior: Posterior,
    covariates: pl.DataFrame | Mapping[str, Sequence[Any]],
    *,
    seed: int = 0,
    allow_unconverged: bool = False,
) -> pl.DataFrame:
    """Regress adjusted accuracies and gaps on covariates of the classifiers, such as the year.

    Parameters
    ----------
    study, posterior
        As `bayesrep.summarize`.
    covariates
        Table with a column `classifier` and one for each covariate: numbers, or words such as
        families of architectures. Other classifiers' rows are ignored.
    seed
        Seed of the random draws of effects.
    allow_unconverged
        As `bayesrep.summarize`.

    Returns
    -------
    polars.DataFrame
        For the `quantity` adjusted_accuracy and for population_gap, as `bayesrep.summarize_gaps`
        has it, one row a covariate, all of them in one regression: its effect (`estimate`, `lower`,
        `upper`, 95 %) for one more of a number; of words one row a `level`, by how much it is
        above `against`, the first in the alphabet. Intervals hold for other images and for other
        classifiers of the same kind, which scatter around the regression. An effect on the gap may
        be one of the accuracy: where the slope of `bayesrep.summarize_gaps` is not 1, the gap goes
        with it.

    Raises
    ------
    OptionError
        If classifiers have no row or several, a value is missing, a covariate tells nothing that
        others do not, or covariates are too many for the classifiers; as `bayesrep.summarize`.
    ConvergenceError, PosteriorError
        As `bayesrep.summarize`.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=0, images=600, annotators=(8, 9), classifiers=4)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> years = {"classifier": study.classifiers, "year": [2012, 2015, 2018, 2021]}
    >>> bayesrep.regress_classifiers(study, posterior, years)["covariate"].unique().to_list()
    ['year']
    """
    fitted = Fitted(study, posterior).require_convergence(allow_unconverged=allow_unconverged)
    classifiers = fitted.statistics.classifiers
    try:
        table = as_polars(covariates, "covariates", (CLASSIFIER_COLUMN, *COLUMN_ALIASES))
    except StudyError as error:
        kind = type(covariates).__name__
        raise OptionError("covariates-not-table", type_name=kind, reason=reason(error)) from error
    terms = make_terms(table, classifiers)
    design = make_design(terms, len(classifiers))
    adjusted, population = fitted.draws_over_crowds, fitted.population_draws
    quantities = {"adjusted_accuracy": adjusted, "population_gap": population - adjusted}
    random = np.random.default_rng(seed)
    tables = [
        pl.DataFrame({"quantity": [quantity] * len(terms)}).hstack(
            _tabulate(terms, design, draws.reshape(-1, len(design)), random)
        )
        for quantity, draws in quantities.items()
    ]
    return pl.concat(tables)


def _tabulate(
    terms: Sequence[Term],
    design: Float[np.ndarray, "classifier term"],
    draws: Float[np.ndarray, "draw classifier"],
    random: np.random.Generator,
) -> pl.DataFrame:
    lower, upper = np.quantile(draw_effects(design, draws, random), INTERVAL, axis=0)
    # With few classifiers draws of an effect have no mean: estimate it from posterior means.
    estimate = np.linalg.lstsq(design, draws.mean(axis=0))[0]
    effects = {"estimate": estimate, "lower": lower, "upper": upper}
    words = pl.DataFrame([term[:3] for term in terms], TERM_SCHEMA, orient="row")
    return words.hstack(pl.DataFrame({name: values[1:] for name, values in effects.items()}))


def make_terms(table: pl.DataFrame, classifiers: Sequence[str]) -> list[Term]:
    """Build the columns of the regression from a table of classifiers."""
    table = table.rename(in_our_words(table.columns, (CLASSIFIER_COLUMN,)))
    if CLASSIFIER_COLUMN not in table.columns:
        raise OptionError("covariates-without-classifier", columns=listing(table.columns, "column"))
    names = normalize_names(table[CLASSIFIER_COLUMN]).to_list()
    counts = {name: names.count(name) for name in classifiers}
    if wrong := [name for name, count in counts.items() if count != 1]:
        raise OptionError("covariates-not-one-row", classifiers=listing(wrong, "classifier"))
    rows = table[[names.index(name) for name in classifiers]].drop(CLASSIFIER_COLUMN)
    if not rows.columns:
        raise OptionError("covariates-without-column")
    terms: list[Term] = []
    for column in rows:
        # Numbers enter as they are; text becomes indicators of all levels but the baseline.
        if column.dtype.is_numeric() or column.dtype == pl.Boolean:
            values = column.cast(pl.Float64)
            _require_values(column.name, classifiers, values.is_finite().fill_null(value=False))
            terms.append(Term(column.name, None, None, values.to_numpy()))
            continue
        categories = normalize_names(column).replace("", None)
        _require_values(column.name, classifiers, categories.is_not_null())
        baseline, *others = sorted(categories.unique())
        terms += [
            Term(column.name, level, baseline, (categories == level).cast(pl.Float64).to_numpy())
            for level in others
        ]
    return terms


def _require_values(column: str, classifiers: Sequence[str], valid: pl.Series) -> None:
    lacking = [name for name, is_valid in zip(classifiers, valid, strict=True) if not is_valid]
    if lacking:
        verb = "has" if len(lacking) == 1 else "have"
        without = listing(lacking, "classifier")
        raise OptionError("covariate-value-missing", column=column, classifiers=without, verb=verb)


def make_design(terms: Sequence[Term], classifiers: int) -> Float[np.ndarray, "classifier term"]:
    """Build the design matrix, an intercept first; refuse one that is not of full rank."""
    design = np.column_stack([np.ones(classifiers), *(term.values for term in terms)])
    columns = list(dict.fromkeys(term.covariate for term in terms))
    if classifiers <= design.shape[1]:
        facts = {"classifiers": classifiers, "effects": len(terms)}
        raise OptionError("covariates-too-many", columns=listing(columns, "covariate"), **facts)
    rank = np.linalg.matrix_rank(design)
    inseparable: list[str] = []
    for name in columns:
        own = [False, *(term.covariate == name for term in terms)]
        # A collinear covariate adds less to the rank than it has columns.
        if rank - np.linalg.matrix_rank(design[:, np.logical_not(own)]) < sum(own):
            inseparable.append(name)
    if inseparable:
        raise OptionError("covariates-not-told-apart", columns=listing(inseparable, "covariate"))
    return design


def draw_effects(
    design: Float[np.ndarray, "classifier term"],
    draws: Float[np.ndarray, "draw classifier"],
    random: np.random.Generator,
) -> Float[np.ndarray, "draw term"]:
    """Draw β, one for each draw of y, by the equations of the module; X is of full rank."""
    # By QR: normal equations would square the condition number of the design.
    basis, triangle = np.linalg.qr(design)
    projected = draws @ basis
    residual = draws - projected @ basis.T
    # Q and v of the module: what the regression leaves of the posterior means, and of the draws.
    degrees = design.shape[0] - design.shape[1]
    total = float(np.square(residual.mean(axis=0)).sum())
    image_variance = float(residual.var(axis=0).sum()) / degrees
    # Draw χ² truncated below Q / v by its inverse distribution function, so that τ² > v.
    max_level = chi2.cdf(total / max(image_variance, SMALLEST_POSITIVE), degrees)
    square = total / chi2.ppf(
        np.maximum(random.random(len(draws)) * max_level, SMALLEST_POSITIVE), degrees
    )
    # One noise vector a draw in coordinates of Q: R⁻¹ turns it into that of β.
    scatter = np.sqrt(np.maximum(square - image_variance, 0.0))
    noise = scatter[:, None] * random.standard_normal(projected.shape)
    return np.linalg.solve(triangle, (projected + noise).T).T
