"""Every figure that `bayesrep figure` draws: what it shows and what it needs.

Reading it imports no numerical library, so that a list is there at once.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

STUDY_NEEDS: Mapping[str, str] = {
    "study": "counts and answers of both data sets",
    "counts": "counts of annotators",
    "answers": "answers to both data sets",
    "labels": "what classifiers answered (label_1)",
    "top-5": "the five first answers (label_1 to label_5)",
    "probabilities": "probabilities of the answers (probability_1)",
    "posterior": "a posterior of `bayesrep fit`",
}
"""Parts of a study that a figure may need; other needs are files beside it, such as --objects."""


@dataclass(frozen=True)
class FigureEntry:
    """One figure."""

    name: str
    shows: str  # what is to be seen, in one line
    # Keys of `STUDY_NEEDS` and files beside it; of "--objects|--counts" one or the other
    needs: tuple[str, ...]

    def lacks(self, available: Collection[str]) -> list[str]:
        """Needs of the figure that the keys of `STUDY_NEEDS` and files at hand do not meet."""
        return [need for need in self.needs if not set(need.split("|")) & set(available)]


def _of_posterior(name: str, shows: str) -> FigureEntry:
    return FigureEntry(name, shows, ("study", "posterior"))


_OF_PEOPLE = ("labels", "--objects|--counts")
FIGURE_ENTRIES: tuple[FigureEntry, ...] = (
    _of_posterior("answer", "mean gaps by method"),
    _of_posterior("accuracies", "adjusted against reference accuracy"),
    _of_posterior("frequencies", "selection frequencies, observed and fitted"),
    _of_posterior("image", "what one measurement says of an image, by pool"),
    _of_posterior("curves", "accuracy curves of classifiers"),
    _of_posterior("checks", "posterior predictive checks"),
    _of_posterior("ranks", "classifiers' ranks, adjusted and as measured"),
    _of_posterior("pairs", "how much better a classifier is than its neighbours"),
    _of_posterior("chains", "rank plots of the chains"),
    _of_posterior("energy", "energy of the chains"),
    FigureEntry(
        "robustness",
        "reference against replication accuracy with linear and probit fits",
        ("answers",),
    ),
    FigureEntry("people", "what people see on the reference's images", _OF_PEOPLE),
    FigureEntry("judged", "what people make of the classifiers' predictions", _OF_PEOPLE),
)


def in_words(need: str) -> str:
    """Name a figure's inputs in a list: files as they are typed."""
    return need.replace("|", " or ").replace("--", "--input ")


def describe_needs(entry: FigureEntry, available: Collection[str] | None) -> str:
    """What a figure needs or, of a study, whether it is there; for the end of a line."""
    if available is None:
        return f"  [{', '.join(map(in_words, entry.needs))}]" if entry.needs else ""
    lacks = entry.lacks(available)
    return f"  [it lacks {', '.join(map(in_words, lacks))}]" if lacks else "  [yes]"
