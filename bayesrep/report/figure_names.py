"""Every figure that `bayesrep figure` draws, by name: what draws it, and of what.

What it shows and needs is in `catalogue`, which is read without any of what is imported here.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from bayesrep.bounds import is_of_kind
from bayesrep.errors import OptionError
from bayesrep.report import catalogue, gallery
from bayesrep.report.figure_inputs import Given, Inputs
from bayesrep.report.figures import default_style
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
from bayesrep.report.paper.known import KnownStudy
from bayesrep.report.paper.tsipras2020 import confusion, labels, objects
from bayesrep.report.people import judged_figure, people_figure
from bayesrep.report.robustness import robustness
from bayesrep.report.sections import (
    accuracies_figure,
    answer,
    curves,
    frequencies,
    image,
    ranking,
    trust_figures,
)
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import words_of


@dataclass(frozen=True)
class NamedFigure:
    """One figure.

    Attributes
    ----------
    draw
        From its inputs to a figure: a chart as Vega-Lite or, of a paper's, one of matplotlib's. Of
        its keyword-only arguments the command line knows
        seed, bootstrap, progress, classifiers and classes (names of those to show); `--set` gives
        the others.
    inputs
        What `draw` is given, in order: names of properties of `Inputs`.
    options
        Names of these arguments.
    optional
        Options that it takes and does not need.
    """

    draw: Callable[..., Any]
    inputs: tuple[str, ...] = ("study",)
    options: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()

    @property
    def needs_study(self) -> bool:
        """Whether `draw` is given a study, and nothing of what is beside it."""
        return self.inputs in (("study",), ("study_or_answers",), ("study", "posterior"))

    @property
    def needs_posterior(self) -> bool:
        """Whether `draw` is given a posterior."""
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
        known = (KnownStudy.from_study(study, seed=seed) for study in studies)
        found = module.numbers(*known, **options)
        return module.draw(found, *(map(words_of, studies) if has_words else ()))

    return NamedFigure(
        draw, inputs, _options(module.numbers) | ({"seed"} if inputs else frozenset())
    )


_PEOPLE = "reference", "people"
_HUMANS, _IMAGES = frozenset({"--humans"}), frozenset({"--images"})
FIGURES: Mapping[str, NamedFigure] = {
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
    "people": _make_figure(people_figure, *_PEOPLE),
    "judged": _make_figure(judged_figure, *_PEOPLE),
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
        shankar2020.both_sets, "answers_to_both", "both_sets", "humans", optional=_HUMANS
    ),
    "shankar-3": _make_figure(gallery.several_labels, "reference", "sets", "pictures"),
    "shankar-4": _make_figure(shankar2020.beside_top, "reference", "sets"),
    "shankar-5": _make_figure(gallery.draw_missed_images, "reference", "sets", "pictures"),
    "tsipras-1": _make_figure(gallery.another_main, *_PEOPLE, "pictures"),
    "tsipras-3": _make_figure(objects.objects_and_pairs, *_PEOPLE),
    "tsipras-4": _make_figure(objects.by_objects, *_PEOPLE),
    "tsipras-5": _make_figure(objects.main_objects, *_PEOPLE, "any_pictures", optional=_IMAGES),
    "tsipras-6": _make_figure(objects.other_main, *_PEOPLE),
    "tsipras-7": _make_figure(labels.labels_selected, *_PEOPLE),
    "tsipras-8": _make_figure(labels.labels_and_objects, *_PEOPLE),
    "tsipras-9": _make_figure(labels.confused_pairs, *_PEOPLE),
    "tsipras-10": _make_figure(labels.draw_assessment, *_PEOPLE),
    "tsipras-11": _make_figure(labels.mistakes, *_PEOPLE),
    "tsipras-12": _make_figure(confusion.superclasses, *_PEOPLE, "groups"),
    "tsipras-13": _make_figure(labels.candidates, "reference"),
    "tsipras-17": _make_figure(gallery.several_objects, *_PEOPLE, "pictures"),
    "tsipras-18": _make_figure(objects.number_agreed, *_PEOPLE),
    "tsipras-19": _make_figure(gallery.another_main, *_PEOPLE, "pictures"),
    "tsipras-20": _make_figure(objects.other_main_classes, *_PEOPLE),
    "tsipras-21": _make_figure(objects.co_occurring_classes, *_PEOPLE),
    "tsipras-22": _make_figure(objects.top5, *_PEOPLE),
    "tsipras-23": _make_figure(labels.draw_with_fewer_annotators, *_PEOPLE),
    "tsipras-24": _make_figure(labels.by_class, *_PEOPLE),
    "tsipras-25": _make_figure(gallery.draw_unselected_labels, *_PEOPLE, "pictures"),
    "tsipras-26": _make_figure(gallery.draw_unchosen_labels, *_PEOPLE, "pictures"),
    "tsipras-27": _make_figure(confusion.classes, *_PEOPLE),
    "tsipras-28": _make_figure(confusion.superclasses_of_several, *_PEOPLE, "groups"),
    "tsipras-31": _make_figure(confusion.within_superclass, *_PEOPLE, "groups"),
}


def find_figure(name: str) -> NamedFigure:
    """The figure of that name."""
    if name in FIGURES:
        return FIGURES[name]
    if why := _explain_missing_figure(name):
        raise OptionError("figure-not-drawn", figure=name, explanation=why)
    raise OptionError("unknown-figure", figure=name, choices=", ".join(FIGURES))


_PREFIXES = {
    "paper": "engstrom2020",
    "anzaku": "anzaku2022",
    "shankar": "shankar2020",
    "tsipras": "tsipras2020",
}


def _explain_missing_figure(name: str) -> str:
    """Why nothing draws a figure of a paper; empty where it is none."""
    prefix, _, number = name.partition("-")
    for entry in catalogue.of_paper(_PREFIXES.get(prefix, "none")):
        if entry.number == number and entry.why:
            return entry.why
    return ""


def chosen_options(
    name: str, *, asked: Mapping[str, Any], taken: Mapping[str, Any]
) -> dict[str, Any]:
    """The options that a figure's `draw` is given; those that are None are left to it.

    One that the figure does not take is refused if it was asked for, else left out.
    """
    known = find_figure(name).options
    wanted = {option: value for option, value in asked.items() if value is not None}
    if strange := [option for option in wanted if option not in known]:
        option = {"classifiers": "classifier", "classes": "class"}.get(strange[0], strange[0])
        raise OptionError("figure-takes-no-option", figure=name, option=option)
    more = {option: value for option, value in taken.items() if value is not None}
    return wanted | {option: value for option, value in more.items() if option in known}


_BY_OPTION = frozenset({"seed", "bootstrap", "progress", "points", "classifiers", "classes"})


def chosen_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What `--set` gives to a figure's `draw`; a name that it does not know is refused."""
    known = sorted(find_figure(name).options - _BY_OPTION)
    if strange := [setting for setting in settings if setting not in known]:
        choices = ", ".join(known) or "none"
        raise OptionError(
            "unknown-figure-setting", figure=name, setting=strange[0], choices=choices
        )
    for setting, value in settings.items():
        numbers = value if isinstance(value, tuple) else (value,)
        if not all(is_of_kind(n, float) for n in numbers):
            raise OptionError("setting-not-number", setting=setting, value=value)
    return dict(settings)


def read_inputs(name: str, given: Given, *, inputs: Inputs | None = None) -> list[Any]:
    """What a figure is drawn of; one that is lacking, or not needed, is refused."""
    figure, needs = find_figure(name), _needs(name)
    wants_study = bool(set(needs) & set(catalogue.NEEDS) - {"posterior"})
    if wants_study and given.study is None:
        raise OptionError("figure-needs-study", figure=name)
    if "posterior" in needs and given.posterior is None:
        raise OptionError("figure-needs-posterior", figure=name)
    there = given.names()
    for need in needs:
        choices = need.split("|")
        if need.startswith("--") and not there & set(choices):
            many = f"{', '.join(choices)} or both; give one" if len(choices) > 1 else need
            raise OptionError("figure-needs-input", figure=name, needed=many)
    taken = {part for need in needs for part in need.split("|")} | figure.optional
    taken |= {"study"} if wants_study else set()
    if "people" in figure.inputs:
        taken |= {"--objects", "--counts"}
    for what in sorted(there - taken):
        path = getattr(given, what.removeprefix("--"))
        rest = f"; leave out {path}" if not what.startswith("--") else ""
        raise OptionError("figure-takes-no-input", figure=name, input=what, hint=rest)
    every = inputs or Inputs(given)
    return [getattr(every, each) for each in figure.inputs]


def _needs(name: str) -> tuple[str, ...]:
    return next(entry.needs for entry in catalogue.entries() if entry.name == name)
