"""Every figure that is drawn here, and every one of the four papers: what it needs, or why not.

Reading it imports no numerical library, so that a list is there at once.
"""

import csv
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

PAPER_TITLES: Mapping[str, str] = {
    "engstrom2020": "Engstrom et al. (2020), Identifying Statistical Bias in Dataset Replication",
    "anzaku2022": "Anzaku et al. (2022), A principled evaluation protocol (matched accuracy)",
    "shankar2020": "Shankar et al. (2020), Evaluating Machine Accuracy on ImageNet",
    "tsipras2020": "Tsipras et al. (2020), From ImageNet to Image Classification",
}

STUDY_NEEDS: Mapping[str, str] = {
    "study": "counts and answers of both data sets",
    "counts": "counts of annotators",
    "answers": "answers to both data sets",
    "labels": "what classifiers answered (label_1)",
    "top-5": "the five first answers (label_1 to label_5)",
    "probabilities": "probabilities of the answers (probability_1)",
    "posterior": "a posterior of `bayesrep fit`",
}
"""Parts of a study that a figure may need; other needs are options of the command line."""


@dataclass(frozen=True)
class FigureEntry:
    """One figure."""

    name: str  # by which `bayesrep figure` draws it; empty where nothing does
    paper: str  # a key of `PAPER_TITLES`, or empty for our own
    number: str  # in the paper
    shows: str  # what is to be seen, in one line
    # Keys of `STUDY_NEEDS` and options; of "--objects|--counts" one or the other
    needs: tuple[str, ...]
    why: str  # why it is not drawn, where it is not

    def lacks(self, available: Collection[str]) -> list[str]:
        """Needs of the figure that the keys of `STUDY_NEEDS` and options at hand do not meet."""
        return [need for need in self.needs if not set(need.split("|")) & set(available)]


@cache
def entries() -> tuple[FigureEntry, ...]:
    """All of them: our own, then the papers' in their order."""
    text = files("bayesrep.report").joinpath("figures.csv").read_text(encoding="utf-8")
    return tuple(
        FigureEntry(name, paper, number, shows, tuple(needs.split()), why)
        for name, paper, number, shows, needs, why in list(csv.reader(text.splitlines()))[1:]
    )


def of_paper(paper: str) -> Iterator[FigureEntry]:
    """The figures of one paper, or with "" our own."""
    return (entry for entry in entries() if entry.paper == paper)


def in_words(need: str) -> str:
    """Name a figure's inputs in a list: options as they are typed."""
    return need.replace("|", " or ")
