"""Figures of a study and its posterior for notebooks and papers: `bayesrep.plot_*`."""

from collections.abc import Sequence

import polars as pl

from bayesrep.choices import FEW_REPLICATES
from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.estimators import estimate_gaps
from bayesrep.posterior.files import StoredPosterior
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, find_group
from bayesrep.report.estimates_text import TEXT_ROWS
from bayesrep.report.figure import Figure, on_paper
from bayesrep.report.notebook import Plot
from bayesrep.report.sections import answer, curves, frequencies
from bayesrep.report.sections.accuracies_figure import posterior_figure
from bayesrep.report.sections.ranking import pairs_figure, rank_figure, rank_rows
from bayesrep.report.sections.section import quiet
from bayesrep.report.select_pairs import closest_pairs, pairs_between
from bayesrep.studies.study import Study, need_study
from bayesrep.studies.vocabulary import words_of
from bayesrep.summary import compare_classifiers, rank_classifiers, summarize, summarize_gaps


def plot_accuracies(study: Study, posterior: Posterior, *, allow_unconverged: bool = False) -> Plot:
    """Every classifier's accuracy on the replication, as measured and adjusted.

    Parameters
    ----------
    study, posterior, allow_unconverged
        As `bayesrep.summarize`, whose table is shown.

    Raises
    ------
    ConvergenceError, PosteriorError, StudyError
        As `bayesrep.summarize`.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.plot_accuracies(study, posterior)
    <Plot: accuracies; .save(path) writes it, .spec is Vega-Lite>
    """
    summarize(need_study(study), posterior, allow_unconverged=allow_unconverged)  # refuses
    return _plot("accuracies", posterior_figure(Fitted(study, posterior), study))


@quiet()
def plot_gaps(
    study: Study,
    posterior: Posterior,
    *,
    bootstrap: int = FEW_REPLICATES,
    seed: int = 0,
    progress: bool = False,
    allow_unconverged: bool = False,
) -> Plot:
    """The mean accuracy drop: as measured, and what every method leaves of it.

    Parameters
    ----------
    study, posterior, allow_unconverged
        As `bayesrep.summarize_gaps`.
    bootstrap, seed
        Replicates for the intervals of the point estimates, and their seed, as
        `bayesrep.estimate_gaps` takes them; 0 leaves these intervals out.
    progress
        Show a bar on standard error.

    Raises
    ------
    ConvergenceError, OptionError, PosteriorError, StudyError
        As `bayesrep.summarize_gaps` and `bayesrep.estimate_gaps`.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.plot_gaps(study, posterior, bootstrap=0)
    <Plot: gaps; .save(path) writes it, .spec is Vega-Lite>
    """
    gaps = summarize_gaps(need_study(study), posterior, allow_unconverged=allow_unconverged)
    points = estimate_gaps(study, bootstrap=bootstrap, seed=seed, progress=progress)
    rows = answer.gap_rows(answer.drops_of(study, pl.concat([points, gaps])))
    return _plot("gaps", answer.gaps_figure(rows, answer.true_gap(study), words_of(study)))


def plot_ranks(
    study: Study,
    posterior: Posterior,
    *,
    top: int = 40,
    allow_unconverged: bool = False,
) -> Plot:
    """Ranks of classifiers at equal selection frequencies, with 95 % intervals.

    Parameters
    ----------
    study, posterior, allow_unconverged
        As `bayesrep.rank_classifiers`, whose table is shown.
    top
        How many classifiers, from the best, a figure shows.

    Raises
    ------
    ConvergenceError, OptionError, PosteriorError, StudyError
        As `bayesrep.rank_classifiers`.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.plot_ranks(study, posterior)
    <Plot: ranks; .save(path) writes it, .spec is Vega-Lite>
    """
    if top < 1:
        raise OptionError("ranks-shown-below-one", top=top)
    table = rank_classifiers(need_study(study), posterior, allow_unconverged=allow_unconverged)
    columns = ("rank", "lower", "upper", "replication_rank")
    rows = rank_rows(table["classifier"].to_list(), *(table[name].to_numpy() for name in columns))
    return _plot("ranks", rank_figure(rows, min(top, len(rows)), words_of(study)))


def plot_pairs(
    study: Study,
    posterior: Posterior,
    *,
    between: Sequence[str] = (),
    top: int | None = None,
    allow_unconverged: bool = False,
) -> Plot:
    """Differences of two classifiers at equal selection frequencies, with 95 % intervals.

    Parameters
    ----------
    study, posterior, allow_unconverged
        As `bayesrep.compare_classifiers`, whose table is shown.
    between
        Names of two classifiers or more: all pairs of these; without names, of all.
    top
        How many pairs, from the closest, a figure shows; None for all between some names, and for
        ten of all.

    Raises
    ------
    OptionError
        If a name is not a classifier's, or `top` shows nothing.
    StudyError
        If there is only one classifier.
    ConvergenceError, PosteriorError
        As `bayesrep.compare_classifiers`.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.plot_pairs(study, posterior)
    <Plot: pairs; .save(path) writes it, .spec is Vega-Lite>
    """
    if top is not None and top < 1:
        raise OptionError("pairs-shown-below-one", top=top)
    table = compare_classifiers(need_study(study), posterior, allow_unconverged=allow_unconverged)
    if table.is_empty():
        raise StudyError("pair-needs-two-classifiers", classifier=study.classifiers[0])
    # Pairs between two sets are all shown unless a number is asked for.
    if between:
        table = pairs_between(table, between, study.classifiers)
        top = len(table) if top is None else top
    rows = closest_pairs(table, TEXT_ROWS if top is None else top)
    return _plot("pairs", pairs_figure(rows, words_of(study)))


def plot_curves(
    study: Study, posterior: Posterior, classifiers: Sequence[str] | None = None
) -> Plot:
    """Accuracy by selection frequency: curves with 95 % bands, and what was observed.

    Parameters
    ----------
    study
        As `bayesrep.summarize`.
    posterior
        As `bayesrep.summarize`; or draws of the prior, from `bayesrep.prior_predictive`.
    classifiers
        Names of those to show; None for a few over the whole range.

    Raises
    ------
    OptionError
        If the study has no classifier of some name.
    PosteriorError, StudyError
        As `bayesrep.summarize`.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.plot_curves(study, posterior)
    <Plot: curves; .save(path) writes it, .spec is Vega-Lite>
    """
    # A prior's draws have the sites and the facts of a posterior's.
    prior = find_group(posterior, "prior")
    if prior is not None and find_group(posterior, "posterior") is None:
        posterior = StoredPosterior({"posterior": prior}, prior.attrs)
    names = Fitted(need_study(study), posterior).statistics.classifiers
    if strange := [name for name in classifiers or () if name not in names]:
        raise OptionError("study-lacks-classifiers", classifiers=listing(strange, "classifier"))
    options = {} if classifiers is None else {"classifiers": list(classifiers)}
    return Plot("curves", curves.figure(study, posterior, **options))


def plot_frequencies(study: Study, posterior: Posterior) -> Plot:
    """Selection frequencies of both data sets: observed, expected by the fit, and the true ones.

    Parameters
    ----------
    study, posterior
        As `bayesrep.summarize`.

    Raises
    ------
    PosteriorError, StudyError
        As `bayesrep.summarize`.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.plot_frequencies(study, posterior)
    <Plot: frequencies; .save(path) writes it, .spec is Vega-Lite>
    """
    Fitted(need_study(study), posterior)
    return Plot("frequencies", frequencies.figure(study, posterior))


def _plot(name: str, figure: Figure) -> Plot:
    return Plot(name, on_paper(figure))
