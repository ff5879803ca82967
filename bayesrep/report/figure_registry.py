"""Every figure that `bayesrep figure` draws, by name: what draws it, and of what."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bayesrep.errors import OptionError
from bayesrep.report.figure_catalogue import STUDY_NEEDS, FigureEntry, in_words
from bayesrep.report.figure_inputs import Inputs
from bayesrep.report.robustness_figures import robustness
from bayesrep.report.sections import (
    accuracies_figure,
    answer,
    curves,
    frequencies,
    image,
    people,
    ranking,
    trust_figures,
)


@dataclass(frozen=True)
class NamedFigure:
    """One figure."""

    # From its inputs to a chart as Vega-Lite. Of its keyword-only
    # arguments the command line knows seed, bootstrap, progress and classifiers (names to show).
    draw: Callable[..., Any]
    # What `draw` is given, in order: names of properties of `Inputs`
    inputs: tuple[str, ...] = ("study",)
    options: frozenset[str] = frozenset()  # names of these arguments
    optional: frozenset[str] = frozenset()  # options that it takes and does not need

    @property
    def needs_study(self) -> bool:
        """Return whether `draw` takes a study and nothing beside it."""
        return self.inputs in (("study",), ("study_or_answers",), ("study", "posterior"))

    @property
    def needs_posterior(self) -> bool:
        """Return whether `draw` takes a posterior."""
        return "posterior" in self.inputs


def options_of(function: Callable[..., Any]) -> frozenset[str]:
    """Names of a function's keyword-only arguments."""
    parameters = inspect.signature(function).parameters.values()
    return frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def _of_posterior(draw: Callable[..., Any]) -> NamedFigure:
    return NamedFigure(draw, ("study", "posterior"), options_of(draw))


FIGURES_BY_NAME: Mapping[str, NamedFigure] = {
    "answer": _of_posterior(answer.figure),
    "accuracies": _of_posterior(accuracies_figure.figure),
    "frequencies": _of_posterior(frequencies.figure),
    "image": _of_posterior(image.figure),
    "curves": _of_posterior(curves.figure),
    "checks": _of_posterior(trust_figures.draw_checks),
    "ranks": _of_posterior(ranking.draw_ranks),
    "pairs": _of_posterior(ranking.draw_pairs),
    "chains": _of_posterior(trust_figures.draw_chains),
    "energy": _of_posterior(trust_figures.draw_energy),
    "robustness": NamedFigure(robustness, ("study_or_answers",)),
    "people": NamedFigure(people.draw_people, ("reference", "people")),
    "judged": NamedFigure(people.draw_judged, ("reference", "people")),
}


def find_figure(name: str) -> NamedFigure:
    """The figure of that name."""
    if name not in FIGURES_BY_NAME:
        raise OptionError("unknown-figure", figure=name, choices=", ".join(FIGURES_BY_NAME))
    return FIGURES_BY_NAME[name]


def chosen_options(
    name: str, figure: NamedFigure, *, requested: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The options of a figure's `draw` that are not None; refused if asked for and not taken."""
    chosen = {option: value for option, value in requested.items() if value is not None}
    if strange := [option for option in chosen if option not in figure.options]:
        option = {"classifiers": "classifier", "classes": "class"}.get(strange[0], strange[0])
        raise OptionError("figure-takes-no-option", figure=name, option=option)
    more = {option: value for option, value in defaults.items() if value is not None}
    return chosen | {option: value for option, value in more.items() if option in figure.options}


def read_inputs(entry: FigureEntry, figure: NamedFigure, inputs: Inputs) -> list[Any]:
    """Read the inputs of a figure; refuse a missing or an unneeded one."""
    name, needs, given_inputs = entry.name, entry.needs, inputs.given
    wants_study = bool(set(needs) & set(STUDY_NEEDS) - {"posterior"})
    if wants_study and given_inputs.study is None:
        raise OptionError("figure-needs-study", figure=name)
    if "posterior" in needs and given_inputs.posterior is None:
        raise OptionError("figure-needs-posterior", figure=name)
    available = given_inputs.names()
    for need in needs:
        choices = need.split("|")
        if need.startswith("--") and not available & set(choices):
            several = " or both; give one" if len(choices) > 1 else ""
            needed = f"{', '.join(map(in_words, choices))}{several}"
            raise OptionError("figure-needs-input", figure=name, needed=needed)
    accepted = {part for need in needs for part in need.split("|")} | figure.optional
    accepted |= {"study"} if wants_study else set()
    if "people" in figure.inputs:
        accepted |= {"--objects", "--counts"}
    for what in sorted(available - accepted):
        path = getattr(given_inputs, what.removeprefix("--"))
        rest = f"; leave out {path}" if not what.startswith("--") else ""
        raise OptionError("figure-takes-no-input", figure=name, input=in_words(what), hint=rest)
    return [getattr(inputs, each) for each in figure.inputs]
