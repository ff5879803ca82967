"""Every figure that `bayesrep figure` draws, by name."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesrep.errors import OptionError
from bayesrep.posterior import read_posterior
from bayesrep.report import posterior_figures as of_posterior
from bayesrep.report.paper import (
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    figure11,
    figure12,
    figure13,
    figure14,
)
from bayesrep.report.protocol_figures import robustness
from bayesrep.studies.answers import read_predictions
from bayesrep.studies.reading import read_study
from bayesrep.studies.writing import awaits_counts


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes
    ----------
    description
        What it shows, in one line.
    draw
        From the study and the posterior, as far as it needs them, to a matplotlib figure. Of its
        keyword-only arguments the command line knows seed, bootstrap, progress and classifiers
        (names of those to show); what is not among them, it refuses or leaves out.
    needs_study, needs_posterior
        Which of them `draw` is given.
    takes_answers
        Whether the answers to both data sets do where the study has no counts yet.
    """

    description: str
    draw: Callable[..., Any]
    needs_study: bool = True
    needs_posterior: bool = False
    takes_answers: bool = False

    @property
    def options(self) -> frozenset[str]:
        """The options that `draw` takes."""
        parameters = inspect.signature(self.draw).parameters.values()
        return frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


FIGURES: Mapping[str, Figure] = {
    "answer": Figure("mean gaps by method", of_posterior.answer, needs_posterior=True),
    "accuracies": Figure(
        "adjusted against reference accuracy", of_posterior.accuracies, needs_posterior=True
    ),
    "frequencies": Figure(
        "selection frequencies, observed and fitted", of_posterior.frequencies, needs_posterior=True
    ),
    "image": Figure(
        "what one measurement says of an image, by pool", of_posterior.image, needs_posterior=True
    ),
    "curves": Figure("accuracy curves of classifiers", of_posterior.curves, needs_posterior=True),
    "checks": Figure("posterior predictive checks", of_posterior.checks, needs_posterior=True),
    "ranks": Figure("rank plots of the chains", of_posterior.ranks, needs_posterior=True),
    "energy": Figure("energy of the chains", of_posterior.energy, needs_posterior=True),
    "robustness": Figure(
        "reference against replication accuracy with linear and probit fits",
        robustness,
        takes_answers=True,
    ),
    "paper-2": Figure(
        "hypothetical selection frequencies, all and given a noisy reading",
        figure2.figure,
        needs_study=False,
    ),
    "paper-3": Figure(
        "the simple model: replications matched on n noisy answers, equation 1",
        figure3.figure,
        needs_study=False,
    ),
    "paper-4": Figure("observed selection frequencies of both data sets", figure4.figure),
    "paper-5": Figure(
        "bias of matching on observed frequencies, by number of annotators", figure5.figure
    ),
    "paper-6": Figure("accuracies adjusted by the jackknife and by EM + spline", figure6.figure),
    "paper-7": Figure(
        "fitted distributions of the true selection frequency and the counts they explain",
        figure7.figure,
    ),
    "paper-11": Figure(
        "the gap that naive matching leaves, by number of annotators", figure11.figure
    ),
    "paper-12": Figure("whether the naive estimate is a line in 1/n", figure12.figure),
    "paper-13": Figure("EM + spline and naive matching with fewer annotators", figure13.figure),
    "paper-14": Figure("EM + spline with more or fewer mixture components", figure14.figure),
}


def named(name: str) -> Figure:
    """The figure of that name.

    Raises
    ------
    OptionError
        For an unknown name; the message lists the names.
    """
    if name not in FIGURES:
        raise OptionError(f"unknown figure {name!r}; the figures are {', '.join(FIGURES)}")
    return FIGURES[name]


def chosen_options(
    name: str, *, asked: Mapping[str, Any], taken: Mapping[str, Any]
) -> dict[str, Any]:
    """The options that a figure's `draw` is given; those that are None are left to it.

    One that the figure does not take is refused if it was asked for, else left out.
    """
    known = named(name).options
    wanted = {option: value for option, value in asked.items() if value is not None}
    if strange := [option for option in wanted if option not in known]:
        raise OptionError(f"{name} takes no --{strange[0].removesuffix('s')}")
    more = {option: value for option, value in taken.items() if value is not None}
    return wanted | {option: value for option, value in more.items() if option in known}


def read_inputs(
    name: str, study: Path | None, posterior: Path | None, roles: Sequence[str]
) -> list[Any]:
    """What a figure is drawn of; one that is lacking, or not needed, is refused.

    Where a study awaits its counts, the answers to both data sets may stand for it.
    """
    figure = named(name)
    needed = {"study": figure.needs_study, "posterior": figure.needs_posterior}
    for what, path in (("study", study), ("posterior", posterior)):
        if needed[what] and path is None:
            raise OptionError(f"{name} is drawn of a {what}; name one after it")
        if path is not None and not needed[what]:
            raise OptionError(f"{name} takes no {what}; leave out {path}")
    inputs: list[Any] = []
    if study is not None:
        of_answers = figure.takes_answers and awaits_counts(study)
        inputs.append(read_predictions(study, roles, ranks=1) if of_answers else read_study(study))
    return inputs if posterior is None else [*inputs, read_posterior(posterior)]
