"""Every figure of the papers that is drawn, by name: what draws it, and of what."""

import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from bayesrep.bounds import is_of_kind
from bayesrep.errors import OptionError
from bayesrep.report.figure_registry import NamedFigure, options_of
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import words_of
from experiments.papers import (
    anzaku2022,
    catalogue,
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
    gallery,
    shankar2020,
)
from experiments.papers.study_facts import StudyFacts
from experiments.papers.tsipras2020 import confusion, labels, objects
from experiments.style import default_style


def _of_paper(module: ModuleType, *inputs: str) -> NamedFigure:
    """One whose numbers are of a study, with the truth that it carries, or of none."""
    has_words = "words" in inspect.signature(module.draw).parameters

    @default_style()
    def draw(*studies: Study, seed: int = 0, **options: Any) -> Any:
        facts = (StudyFacts.from_study(study, seed=seed) for study in studies)
        results = module.numbers(*facts, **options)
        return module.draw(results, *(map(words_of, studies) if has_words else ()))

    return NamedFigure(
        draw, inputs, options_of(module.numbers) | ({"seed"} if inputs else frozenset())
    )


def _of_answers(
    draw: Callable[..., Any], *inputs: str, optional: frozenset[str] = frozenset()
) -> NamedFigure:
    """One that is drawn of what it is given."""
    return NamedFigure(default_style()(draw), inputs, options_of(draw), optional)


_BY_PEOPLE = "reference", "people"
_HUMANS_OPTION, _IMAGE_DIR = frozenset({"--humans"}), frozenset({"--images"})
PAPER_FIGURES: Mapping[str, NamedFigure] = {
    "paper-1": _of_answers(gallery.three_of_a_class, "study", "pictures"),
    "paper-2": _of_paper(figure2),
    "paper-3": _of_paper(figure3),
    "paper-4": _of_paper(figure4, "study"),
    "paper-5": _of_paper(figure5, "study"),
    "paper-6": _of_paper(figure6, "study"),
    "paper-7": _of_paper(figure7, "study"),
    "paper-8": _of_answers(gallery.of_all_frequencies, "study", "pictures"),
    "paper-11": _of_paper(figure11, "study"),
    "paper-12": _of_paper(figure12, "study"),
    "paper-13": _of_paper(figure13, "study"),
    "paper-14": _of_paper(figure14, "study"),
    "anzaku-1": _of_answers(anzaku2022.scatter, "answers_with_confidence"),
    "anzaku-3": _of_answers(anzaku2022.by_label, "answers_with_confidence"),
    "anzaku-4": _of_answers(anzaku2022.by_label, "answers_with_confidence"),
    "anzaku-5": _of_answers(anzaku2022.one_classifier, "answers_with_confidence"),
    "anzaku-6": _of_answers(anzaku2022.by_probability, "answers_with_confidence"),
    "anzaku-7": _of_answers(anzaku2022.by_probability, "answers_with_confidence"),
    "anzaku-8": _of_answers(anzaku2022.one_classifier, "answers_with_confidence"),
    "shankar-1": _of_answers(
        shankar2020.both_sets, "answers_to_both", "both_sets", "humans", optional=_HUMANS_OPTION
    ),
    "shankar-3": _of_answers(gallery.several_labels, "reference", "sets", "pictures"),
    "shankar-4": _of_answers(shankar2020.beside_top, "reference", "sets"),
    "shankar-5": _of_answers(gallery.draw_missed_images, "reference", "sets", "pictures"),
    "tsipras-1": _of_answers(gallery.another_main, *_BY_PEOPLE, "pictures"),
    "tsipras-3": _of_answers(objects.objects_and_pairs, *_BY_PEOPLE),
    "tsipras-4": _of_answers(objects.by_objects, *_BY_PEOPLE),
    "tsipras-5": _of_answers(
        objects.main_objects, *_BY_PEOPLE, "any_pictures", optional=_IMAGE_DIR
    ),
    "tsipras-6": _of_answers(objects.other_main, *_BY_PEOPLE),
    "tsipras-7": _of_answers(labels.labels_selected, *_BY_PEOPLE),
    "tsipras-8": _of_answers(labels.labels_and_objects, *_BY_PEOPLE),
    "tsipras-9": _of_answers(labels.confused_pairs, *_BY_PEOPLE),
    "tsipras-10": _of_answers(labels.draw_assessment, *_BY_PEOPLE),
    "tsipras-11": _of_answers(labels.mistakes, *_BY_PEOPLE),
    "tsipras-12": _of_answers(confusion.superclasses, *_BY_PEOPLE, "groups"),
    "tsipras-13": _of_answers(labels.candidates, "reference"),
    "tsipras-17": _of_answers(gallery.several_objects, *_BY_PEOPLE, "pictures"),
    "tsipras-18": _of_answers(objects.number_agreed, *_BY_PEOPLE),
    "tsipras-19": _of_answers(gallery.another_main, *_BY_PEOPLE, "pictures"),
    "tsipras-20": _of_answers(objects.other_main_classes, *_BY_PEOPLE),
    "tsipras-21": _of_answers(objects.co_occurring_classes, *_BY_PEOPLE),
    "tsipras-22": _of_answers(objects.top5, *_BY_PEOPLE),
    "tsipras-23": _of_answers(labels.draw_with_fewer_annotators, *_BY_PEOPLE),
    "tsipras-24": _of_answers(labels.by_class, *_BY_PEOPLE),
    "tsipras-25": _of_answers(gallery.draw_unselected_labels, *_BY_PEOPLE, "pictures"),
    "tsipras-26": _of_answers(gallery.draw_unchosen_labels, *_BY_PEOPLE, "pictures"),
    "tsipras-27": _of_answers(confusion.classes, *_BY_PEOPLE),
    "tsipras-28": _of_answers(confusion.superclasses_of_several, *_BY_PEOPLE, "groups"),
    "tsipras-31": _of_answers(confusion.within_superclass, *_BY_PEOPLE, "groups"),
}


def find_entry(name: str) -> catalogue.PaperEntry:
    """The entry of a figure that is drawn."""
    entries = {
        entry.name or f"{_prefix(entry)}-{entry.number}": entry for entry in catalogue.entries()
    }
    if name not in entries:
        raise OptionError("unknown-paper", figure=name, choices=", ".join(PAPER_FIGURES))
    if why := entries[name].why:
        raise OptionError("figure-not-drawn", figure=name, explanation=why)
    return entries[name]


def _prefix(entry: catalogue.PaperEntry) -> str:
    """What the names of a paper's figures begin with."""
    return next(e.name for e in catalogue.of_paper(entry.paper) if e.name).partition("-")[0]


_BY_OPTION = frozenset({"seed", "bootstrap", "progress", "points", "classifiers", "classes"})


def chosen_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check the values of `--set` for a figure's `draw`; an unknown name is refused."""
    option_names = sorted(PAPER_FIGURES[name].options - _BY_OPTION)
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
