"""Every figure of the four papers: what it needs, or why it is not drawn."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bayesrep.report.figure_catalogue import FigureEntry

PAPER_TITLES: Mapping[str, str] = {
    "engstrom2020": "Engstrom et al. (2020), Identifying Statistical Bias in Dataset Replication",
    "anzaku2022": "Anzaku et al. (2022), A principled evaluation protocol (matched accuracy)",
    "shankar2020": "Shankar et al. (2020), Evaluating Machine Accuracy on ImageNet",
    "tsipras2020": "Tsipras et al. (2020), From ImageNet to Image Classification",
}


@dataclass(frozen=True)
class PaperEntry(FigureEntry):
    """One figure of a paper; its name is empty where nothing draws it."""

    paper: str  # a key of `PAPER_TITLES`
    number: str  # in the paper
    why: str  # why it is not drawn, where it is not


@cache
def entries() -> tuple[PaperEntry, ...]:
    """All of them, in the papers' order."""
    text = Path(__file__).with_name("figures.csv").read_text(encoding="utf-8")
    return tuple(
        PaperEntry(name, shows, tuple(needs.split()), paper, number, why)
        for name, paper, number, shows, needs, why in list(csv.reader(text.splitlines()))[1:]
    )


def of_paper(paper: str) -> Iterator[PaperEntry]:
    """The figures of one paper."""
    return (entry for entry in entries() if entry.paper == paper)
