"""Every figure that `bayesrep figure` draws, by name."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from bayesrep.errors import OptionError
from bayesrep.posterior import read_posterior
from bayesrep.protocols.people import read_people
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
from bayesrep.report.paper.known import Known
from bayesrep.report.people import judged_figure, people_figure
from bayesrep.report.robustness import robustness
from bayesrep.report.sections import (
    accuracies,
    answer,
    curves,
    frequencies,
    image,
    ranking,
    trust,
)
from bayesrep.studies.answers import read_predictions
from bayesrep.studies.reading import read_study
from bayesrep.studies.study import Study
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
    options
        Names of these arguments.
    takes_answers
        Whether the answers to both data sets do where the study has no counts yet.
    takes_people
        Whether it is of the answers to the reference, and of what people see on its images.
    """

    description: str
    draw: Callable[..., Any]
    needs_study: bool = True
    needs_posterior: bool = False
    options: frozenset[str] = frozenset()
    takes_answers: bool = False
    takes_people: bool = False


def _options(function: Callable[..., Any]) -> frozenset[str]:
    parameters = inspect.signature(function).parameters.values()
    return frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def _of_posterior(description: str, draw: Callable[..., Any]) -> Figure:
    return Figure(description, draw, needs_posterior=True, options=_options(draw))


def _of_paper(description: str, module: ModuleType, *, needs_study: bool = True) -> Figure:
    """One whose numbers are of a study, with the truth that it carries, or of none."""

    def draw(*studies: Study, seed: int = 0, **options: Any) -> Any:
        known = (Known.of(study, seed=seed) for study in studies)
        return module.draw(module.numbers(*known, **options))

    options = _options(module.numbers) | {"seed"}
    return Figure(description, draw, needs_study=needs_study, options=options)


FIGURES: Mapping[str, Figure] = {
    "answer": _of_posterior("mean gaps by method", answer.figure),
    "accuracies": _of_posterior("adjusted against reference accuracy", accuracies.figure),
    "frequencies": _of_posterior("selection frequencies, observed and fitted", frequencies.figure),
    "image": _of_posterior("what one measurement says of an image, by pool", image.figure),
    "curves": _of_posterior("accuracy curves of classifiers", curves.figure),
    "checks": _of_posterior("posterior predictive checks", trust.checks),
    "ranks": _of_posterior("classifiers' ranks, adjusted and as measured", ranking.rank_figure),
    "pairs": _of_posterior(
        "how much better a classifier is than its neighbours", ranking.pair_figure
    ),
    "chains": _of_posterior("rank plots of the chains", trust.chains),
    "energy": _of_posterior("energy of the chains", trust.energy),
    "robustness": Figure(
        "reference against replication accuracy with linear and probit fits",
        robustness,
        takes_answers=True,
    ),
    "people": Figure(
        "what people see on the reference's images (--objects, --counts)",
        people_figure,
        takes_people=True,
    ),
    "judged": Figure(
        "what people make of the classifiers' predictions (--objects, --counts)",
        judged_figure,
        takes_people=True,
    ),
    "paper-2": _of_paper(
        "hypothetical selection frequencies, all and given a noisy reading",
        figure2,
        needs_study=False,
    ),
    "paper-3": _of_paper(
        "the simple model: replications matched on n noisy answers, equation 1",
        figure3,
        needs_study=False,
    ),
    "paper-4": _of_paper("observed selection frequencies of both data sets", figure4),
    "paper-5": _of_paper(
        "bias of matching on observed frequencies, by number of annotators", figure5
    ),
    "paper-6": _of_paper("accuracies adjusted by the jackknife and by EM + spline", figure6),
    "paper-7": _of_paper(
        "fitted distributions of the true selection frequency and the counts they explain", figure7
    ),
    "paper-11": _of_paper("the gap that naive matching leaves, by number of annotators", figure11),
    "paper-12": _of_paper("whether the naive estimate is a line in 1/n", figure12),
    "paper-13": _of_paper("EM + spline and naive matching with fewer annotators", figure13),
    "paper-14": _of_paper("EM + spline with more or fewer mixture components", figure14),
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
    name: str,
    study: Path | None,
    posterior: Path | None,
    roles: Sequence[str],
    people: Mapping[str, Path | None],
) -> list[Any]:
    """What a figure is drawn of; one that is lacking, or not needed, is refused.

    Where a study awaits its counts, the answers to both data sets may stand for it. What people
    see is in tables of `objects` and `counts`.
    """
    figure = named(name)
    needed = {"study": figure.needs_study, "posterior": figure.needs_posterior}
    for what, path in (("study", study), ("posterior", posterior)):
        if needed[what] and path is None:
            raise OptionError(f"{name} is drawn of a {what}; name one after it")
        if path is not None and not needed[what]:
            raise OptionError(f"{name} takes no {what}; leave out {path}")
    tables = {what: path for what, path in people.items() if path is not None}
    if figure.takes_people and study is not None:
        if not tables:
            raise OptionError(f"{name} is drawn of --objects, --counts or both; give one")
        (answers,) = read_predictions(study, roles[:1])
        return [answers, read_people(answers, **tables)]
    if tables:
        raise OptionError(f"{name} takes no --{next(iter(tables))}")
    inputs: list[Any] = []
    if study is not None:
        of_answers = figure.takes_answers and awaits_counts(study)
        inputs.append(read_predictions(study, roles, ranks=1) if of_answers else read_study(study))
    return inputs if posterior is None else [*inputs, read_posterior(posterior)]
