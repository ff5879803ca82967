"""Summary tables: by classifier, over all classifiers, by pair, and by rank."""

import numpy as np
import polars as pl

from bayesrep.estimators.analysis import QUANTITIES, gap_quantities
from bayesrep.estimators.tables import classifier_rows, gap_rows
from bayesrep.numerics.estimands import INTERVAL, errors_in_variables_line, ranks
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.posterior.verdict import diagnostics
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.types import Floats


def summarize(
    study: Study | SufficientStatistics,
    posterior: Posterior,
    *,
    allow_unconverged: bool = False,
    all_columns: bool = False,
) -> pl.DataFrame:
    """Summarize adjusted accuracies with 95 % credible intervals and convergence diagnostics.

    Parameters
    ----------
    study
        The study that was fitted.
    posterior
        From `bayesrep.fit` or `bayesrep.read_posterior`.
    allow_unconverged
        Return the table even if the fit did not converge.
    all_columns
        Return the other columns of `bayesrep.estimate`, too, and `rhat`, `ess_bulk`, `ess_tail` of
        the adjusted accuracy: of weighted draws `rhat` is null and the sizes are those of their
        weights.

    Returns
    -------
    polars.DataFrame
        One row a classifier: `classifier`, `adjusted_accuracy` (the posterior mean) with `lower`
        and `upper` (2.5 % and 97.5 % quantiles), `bias_corrected_gap` with `gap_lower` and
        `gap_upper`, and `replication_accuracy` as measured. Means over classifiers and the line
        through them are in `bayesrep.summarize_gaps`.

    Raises
    ------
    ConvergenceError
        If the fit did not converge and `allow_unconverged` is false; carries the verdict.
    PosteriorError
        If the posterior belongs to another study.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> table = bayesrep.summarize(study, posterior)
    >>> (table["lower"] < table["adjusted_accuracy"]).all()
    True
    """
    fitted = Fitted(study, posterior)
    table = accuracies(fitted.require_convergence(allow_unconverged=allow_unconverged))
    ends = {"gap_lower": pl.col("upper"), "gap_upper": pl.col("lower")}
    gaps = {name: pl.col("reference_accuracy") - end for name, end in ends.items()}
    first = ("classifier", "adjusted_accuracy", "lower", "upper", "bias_corrected_gap", *gaps)
    chosen = table.with_columns(**gaps).select(*first, pl.all().exclude(first))
    return chosen if all_columns else chosen.select(*first, "replication_accuracy")


def accuracies(fitted: Fitted) -> pl.DataFrame:
    """Build the table of the command `summarize`."""
    adjusted = fitted.draws_over_crowds
    lower, upper = np.quantile(adjusted, INTERVAL, axis=(0, 1))
    name, statistics = fitted.record.name, fitted.statistics
    table = classifier_rows(name, statistics, adjusted.mean(axis=(0, 1)), lower, upper)
    columns = zip(("rhat", "ess_bulk", "ess_tail"), _convergence(fitted), strict=True)
    return table.hstack(pl.DataFrame(dict(columns)).fill_nan(None))


def _convergence(fitted: Fitted) -> tuple[Floats, Floats, Floats]:
    """Compute R-hat, bulk and tail ESS of adjusted accuracies; weighted draws have no R-hat."""
    if fitted.record.is_mcmc:
        name = "adjusted_accuracy"
        checks = diagnostics(fitted.group.select(name))
        return checks.rhat[name].values, checks.ess_bulk[name].values, checks.ess_tail[name].values
    # Draws of importance sampling: one effective size, that of the weights, for all quantities.
    size = np.full(fitted.group.sizes["classifier"], float(fitted.group.attrs.get("ess", np.nan)))
    return np.full(len(size), np.nan), size, size


def summarize_gaps(
    study: Study | SufficientStatistics, posterior: Posterior, *, allow_unconverged: bool = False
) -> pl.DataFrame:
    """Decompose the mean accuracy drop, and fit the line over classifiers, with 95 % intervals.

    Parameters
    ----------
    study
        The study that was fitted.
    posterior
        From `bayesrep.fit` or `bayesrep.read_posterior`.
    allow_unconverged
        Return the table even if the fit did not converge.

    Returns
    -------
    polars.DataFrame
        The columns of `bayesrep.estimate_gaps`: method, quantity, estimate, lower, upper. Its
        quantities are bias_corrected_gap and selection_gap (means over classifiers),
        share_explained, slope and intercept of adjusted on reference accuracy; they compare with
        the accuracies measured on the reference. Then population_gap, population_slope and
        population_intercept compare with the accuracies on the population that the reference is a
        sample of, and their intervals hold for another sample of images. A line takes two
        classifiers whose reference accuracies differ (on the population by much more than they
        are uncertain), and is null without them. Two lie on their
        line whatever they are: its interval is that of their images, and says nothing of other
        classifiers.

    Raises
    ------
    ConvergenceError, OptionError, PosteriorError
        As `bayesrep.summarize`.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.summarize_gaps(study, posterior)["quantity"].to_list()[:4]
    ['bias_corrected_gap', 'selection_gap', 'share_explained', 'slope']
    """
    fitted = Fitted(study, posterior)
    return gaps(fitted.require_convergence(allow_unconverged=allow_unconverged))


def gaps(fitted: Fitted) -> pl.DataFrame:
    """Build the table of `summarize_gaps`."""
    adjusted, population = fitted.draws_over_crowds, fitted.population_draws
    statistics = fitted.statistics
    # The reference as measured has no error: an ordinary line in every draw.
    reference, replication = statistics.accuracy("reference"), statistics.accuracy("replication")
    measured = gap_quantities(reference, replication, adjusted)
    # Population accuracies have errors of their own: a line with errors in variables.
    slope, intercept = errors_in_variables_line(population, adjusted)
    of_population = np.stack([(population - adjusted).mean(axis=-1), slope, intercept], axis=-1)
    values = np.concatenate([measured, of_population], axis=-1)
    lower, upper = np.quantile(values, INTERVAL, axis=(0, 1))
    names = (*QUANTITIES, "population_gap", "population_slope", "population_intercept")
    return gap_rows(fitted.record.name, names, values.mean(axis=(0, 1)), lower, upper)


def compare_classifiers(
    study: Study | SufficientStatistics, posterior: Posterior, *, allow_unconverged: bool = False
) -> pl.DataFrame:
    """Compare every pair of classifiers by their adjusted accuracies.

    Parameters
    ----------
    study, posterior, allow_unconverged
        As `summarize_gaps`.

    Returns
    -------
    polars.DataFrame
        One row a pair, in the order of the study: classifier, other, `raw_difference` of their
        replication accuracies, `difference` of their adjusted accuracies (classifier minus other)
        with lower and upper (95 %), and `probability`, that the first is the better one. Some of
        many pairs will be far apart by chance: each interval is for one pair.

    Raises
    ------
    ConvergenceError, OptionError, PosteriorError
        As `bayesrep.summarize`.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.compare_classifiers(study, posterior).height  # pairs of three
    3
    """
    fitted = Fitted(study, posterior).require_convergence(allow_unconverged=allow_unconverged)
    adjusted, statistics = fitted.draws_over_crowds, fitted.statistics
    replication, names = statistics.accuracy("replication"), np.array(statistics.classifiers)
    first, second = np.triu_indices(len(names), k=1)
    interval = np.empty((2, len(first)))
    mean, probability = np.empty(len(first)), np.empty(len(first))
    for one in range(len(names) - 1):  # pairs of a row at a time: all at once need too much memory
        row = first == one
        delta = adjusted[..., one, None] - adjusted[..., one + 1 :]
        mean[row], probability[row] = delta.mean(axis=(0, 1)), (delta > 0).mean(axis=(0, 1))
        interval[:, row] = np.quantile(delta, INTERVAL, axis=(0, 1))
    return pl.DataFrame(
        {
            "classifier": names[first],
            "other": names[second],
            "raw_difference": replication[first] - replication[second],
            "difference": mean,
            "lower": interval[0],
            "upper": interval[1],
            "probability": probability,
        }
    )


def rank_classifiers(
    study: Study | SufficientStatistics, posterior: Posterior, *, allow_unconverged: bool = False
) -> pl.DataFrame:
    """Rank classifiers by adjusted accuracy, 1 the best, with 95 % intervals.

    Parameters
    ----------
    study, posterior, allow_unconverged
        As `summarize_gaps`.

    Returns
    -------
    polars.DataFrame
        One row a classifier, the best first: classifier, adjusted_accuracy, `reference_rank` and
        `replication_rank` by the measured accuracies, `rank` (posterior mean), lower and upper,
        and `best`, the probability to be the first.

    Raises
    ------
    ConvergenceError, OptionError, PosteriorError
        As `bayesrep.summarize`.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> (bayesrep.rank_classifiers(study, posterior)["rank"] >= 1).all()
    True
    """
    fitted = Fitted(study, posterior).require_convergence(allow_unconverged=allow_unconverged)
    adjusted, statistics = fitted.draws_over_crowds, fitted.statistics
    # Ranks within every draw: their spread is what the posterior leaves open of the order.
    ranked = ranks(adjusted)
    lower, upper = np.quantile(ranked, INTERVAL, axis=(0, 1), method="nearest")
    # Ties share the first place, so that the probabilities to be the best add up to 1.
    best = ranked == ranked.min(axis=-1, keepdims=True)
    return pl.DataFrame(
        {
            "classifier": list(statistics.classifiers),
            "adjusted_accuracy": adjusted.mean(axis=(0, 1)),
            "reference_rank": ranks(statistics.accuracy("reference")),
            "replication_rank": ranks(statistics.accuracy("replication")),
            "rank": ranked.mean(axis=(0, 1)),
            "lower": lower,
            "upper": upper,
            "best": (best / best.sum(axis=-1, keepdims=True)).mean(axis=(0, 1)),
        }
    ).sort("rank")
