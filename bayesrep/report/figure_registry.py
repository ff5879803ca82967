"""Every figure that `bayesrep figure` draws, by name: what draws it, and of what.

What they show and need is in `figure_catalogue`, which imports none of the modules below.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from bayesrep.bounds import is_of_kind
from bayesrep.errors import OptionError
from bayesrep.report import figure_catalogue, gallery
from bayesrep.report.figure_inputs import FigurePaths, Inputs
from bayesrep.report.paper import (
    anzaku2022,
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
    shankar2020,
)
from bayesrep.report.paper.study_facts import StudyFacts
from bayesrep.report.paper.tsipras2020 import confusion, labels, objects
from bayesrep.report.people_figures import judged_figure, people_figure
from bayesrep.report.robustness_figures import robustness
from bayesrep.report.sections import (
    accuracies_figure,
    answer,
    curves,
    frequencies,
    image,
    ranking,
    trust_figures,
)
from bayesrep.report.style import default_style
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import words_of


@dataclass(frozen=True)
class NamedFigure:
    """One figure."""

    # From its inputs to a figure: a chart as Vega-Lite or, of a paper's, one of matplotlib's. Of
    # its keyword-only arguments the command line knows seed, bootstrap, progress, classifiers and
    # classes (names of those to show); `--set` gives the others.
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


def _options(function: Callable[..., Any]) -> frozenset[str]:
    parameters = inspect.signature(function).parameters.values()
    return frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def _make_figure(
    draw: Callable[..., Any], *inputs: str, optional: frozenset[str] = frozenset()
) -> NamedFigure:
    return NamedFigure(default_style()(draw), inputs, _options(draw), optional)


def _of_posterior(draw: Callable[..., Any]) -> NamedFigure:
    return NamedFigure(draw, ("study", "posterior"), _options(draw))


def _of_paper(module: ModuleType, *inputs: str) -> NamedFigure:
    """One whose numbers are of a study, with the truth that it carries, or of none."""
    has_words = "words" in inspect.signature(module.draw).parameters

    @default_style()
    def draw(*studies: Study, seed: int = 0, **options: Any) -> Any:
        facts = (StudyFacts.from_study(study, seed=seed) for study in studies)
        results = module.numbers(*facts, **options)
        return module.draw(results, *(map(words_of, studies) if has_words else ()))

    return NamedFigure(
        draw, inputs, _options(module.numbers) | ({"seed"} if inputs else frozenset())
    )


_BY_PEOPLE = "reference", "people"
_HUMANS_OPTION, _IMAGE_DIR = frozenset({"--humans"}), frozenset({"--images"})
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
    "robustness": _make_figure(robustness, "study_or_answers"),
    "people": _make_figure(people_figure, *_BY_PEOPLE),
    "judged": _make_figure(judged_figure, *_BY_PEOPLE),
    "paper-1": _make_figure(gallery.three_of_a_class, "study", "pictures"),
    "paper-2": _of_paper(figure2),
    "paper-3": _of_paper(figure3),
    "paper-4": _of_paper(figure4, "study"),
    "paper-5": _of_paper(figure5, "study"),
    "paper-6": _of_paper(figure6, "study"),
    "paper-7": _of_paper(figure7, "study"),
    "paper-8": _make_figure(gallery.of_all_frequencies, "study", "pictures"),
    "paper-11": _of_paper(figure11, "study"),
    "paper-12": _of_paper(figure12, "study"),
    "paper-13": _of_paper(figure13, "study"),
    "paper-14": _of_paper(figure14, "study"),
    "anzaku-1": _make_figure(anzaku2022.scatter, "answers_with_confidence"),
    "anzaku-3": _make_figure(anzaku2022.by_label, "answers_with_confidence"),
    "anzaku-4": _make_figure(anzaku2022.by_label, "answers_with_confidence"),
    "anzaku-5": _make_figure(anzaku2022.one_classifier, "answers_with_confidence"),
    "anzaku-6": _make_figure(anzaku2022.by_probability, "answers_with_confidence"),
    "anzaku-7": _make_figure(anzaku2022.by_probability, "answers_with_confidence"),
    "anzaku-8": _make_figure(anzaku2022.one_classifier, "answers_with_confidence"),
    "shankar-1": _make_figure(
        shankar2020.both_sets, "answers_to_both", "both_sets", "humans", optional=_HUMANS_OPTION
    ),
    "shankar-3": _make_figure(gallery.several_labels, "reference", "sets", "pictures"),
    "shankar-4": _make_figure(shankar2020.beside_top, "reference", "sets"),
    "shankar-5": _make_figure(gallery.draw_missed_images, "reference", "sets", "pictures"),
    "tsipras-1": _make_figure(gallery.another_main, *_BY_PEOPLE, "pictures"),
    "tsipras-3": _make_figure(objects.objects_and_pairs, *_BY_PEOPLE),
    "tsipras-4": _make_figure(objects.by_objects, *_BY_PEOPLE),
    "tsipras-5": _make_figure(
        objects.main_objects, *_BY_PEOPLE, "any_pictures", optional=_IMAGE_DIR
    ),
    "tsipras-6": _make_figure(objects.other_main, *_BY_PEOPLE),
    "tsipras-7": _make_figure(labels.labels_selected, *_BY_PEOPLE),
    "tsipras-8": _make_figure(labels.labels_and_objects, *_BY_PEOPLE),
    "tsipras-9": _make_figure(labels.confused_pairs, *_BY_PEOPLE),
    "tsipras-10": _make_figure(labels.draw_assessment, *_BY_PEOPLE),
    "tsipras-11": _make_figure(labels.mistakes, *_BY_PEOPLE),
    "tsipras-12": _make_figure(confusion.superclasses, *_BY_PEOPLE, "groups"),
    "tsipras-13": _make_figure(labels.candidates, "reference"),
    "tsipras-17": _make_figure(gallery.several_objects, *_BY_PEOPLE, "pictures"),
    "tsipras-18": _make_figure(objects.number_agreed, *_BY_PEOPLE),
    "tsipras-19": _make_figure(gallery.another_main, *_BY_PEOPLE, "pictures"),
    "tsipras-20": _make_figure(objects.other_main_classes, *_BY_PEOPLE),
    "tsipras-21": _make_figure(objects.co_occurring_classes, *_BY_PEOPLE),
    "tsipras-22": _make_figure(objects.top5, *_BY_PEOPLE),
    "tsipras-23": _make_figure(labels.draw_with_fewer_annotators, *_BY_PEOPLE),
    "tsipras-24": _make_figure(labels.by_class, *_BY_PEOPLE),
    "tsipras-25": _make_figure(gallery.draw_unselected_labels, *_BY_PEOPLE, "pictures"),
    "tsipras-26": _make_figure(gallery.draw_unchosen_labels, *_BY_PEOPLE, "pictures"),
    "tsipras-27": _make_figure(confusion.classes, *_BY_PEOPLE),
    "tsipras-28": _make_figure(confusion.superclasses_of_several, *_BY_PEOPLE, "groups"),
    "tsipras-31": _make_figure(confusion.within_superclass, *_BY_PEOPLE, "groups"),
}


def find_figure(name: str) -> NamedFigure:
    """The figure of that name."""
    if name in FIGURES_BY_NAME:
        return FIGURES_BY_NAME[name]
    if why := _explain_missing_figure(name):
        raise OptionError("figure-not-drawn", figure=name, explanation=why)
    raise OptionError("unknown-figure", figure=name, choices=", ".join(FIGURES_BY_NAME))


_PAPER_PREFIXES = {
    "paper": "engstrom2020",
    "anzaku": "anzaku2022",
    "shankar": "shankar2020",
    "tsipras": "tsipras2020",
}


def _explain_missing_figure(name: str) -> str:
    """Why nothing draws a figure of a paper; empty where it is none."""
    prefix, _, number = name.partition("-")
    for entry in figure_catalogue.of_paper(_PAPER_PREFIXES.get(prefix, "none")):
        if entry.number == number and entry.why:
            return entry.why
    return ""


def chosen_options(
    name: str, *, requested: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The options that a figure's `draw` is given; those that are None are left to it.

    One that the figure does not take is refused if it was asked for, else left out.
    """
    options = find_figure(name).options
    chosen = {option: value for option, value in requested.items() if value is not None}
    if strange := [option for option in chosen if option not in options]:
        option = {"classifiers": "classifier", "classes": "class"}.get(strange[0], strange[0])
        raise OptionError("figure-takes-no-option", figure=name, option=option)
    more = {option: value for option, value in defaults.items() if value is not None}
    return chosen | {option: value for option, value in more.items() if option in options}


_BY_OPTION = frozenset({"seed", "bootstrap", "progress", "points", "classifiers", "classes"})


def chosen_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check the values of `--set` for a figure's `draw`; an unknown name is refused."""
    option_names = sorted(find_figure(name).options - _BY_OPTION)
    if strange := [setting for setting in settings if setting not in option_names]:
        choices = ", ".join(option_names) or "none"
        raise OptionError(
            "unknown-figure-setting", figure=name, setting=strange[0], choices=choices
        )
    for setting, value in settings.items():
        numbers = value if isinstance(value, tuple) else (value,)
        if not all(is_of_kind(n, float) for n in numbers):
            raise OptionError("setting-not-number", setting=setting, value=value)
    return dict(settings)


def read_inputs(name: str, given_inputs: FigurePaths, *, inputs: Inputs | None = None) -> list[Any]:
    """Read the inputs of a figure; refuse a missing or an unneeded one."""
    figure, needs = find_figure(name), _needs(name)
    wants_study = bool(set(needs) & set(figure_catalogue.STUDY_NEEDS) - {"posterior"})
    if wants_study and given_inputs.study is None:
        raise OptionError("figure-needs-study", figure=name)
    if "posterior" in needs and given_inputs.posterior is None:
        raise OptionError("figure-needs-posterior", figure=name)
    available = given_inputs.names()
    for need in needs:
        choices = need.split("|")
        if need.startswith("--") and not available & set(choices):
            many = f"{', '.join(choices)} or both; give one" if len(choices) > 1 else need
            raise OptionError("figure-needs-input", figure=name, needed=many)
    accepted = {part for need in needs for part in need.split("|")} | figure.optional
    accepted |= {"study"} if wants_study else set()
    if "people" in figure.inputs:
        accepted |= {"--objects", "--counts"}
    for what in sorted(available - accepted):
        path = getattr(given_inputs, what.removeprefix("--"))
        rest = f"; leave out {path}" if not what.startswith("--") else ""
        raise OptionError("figure-takes-no-input", figure=name, input=what, hint=rest)
    every = inputs or Inputs(given_inputs)
    return [getattr(every, each) for each in figure.inputs]


def _needs(name: str) -> tuple[str, ...]:
    return next(entry.needs for entry in figure_catalogue.entries() if entry.name == name)
