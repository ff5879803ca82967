"""Figure 4: how often images of both data sets were selected.

Histograms of the observed selection frequency and its means. Where images have different numbers of
annotators, all are thinned to the most that 99 % of the images have, in exact expectation, and the
few images with fewer are left out of the histograms; the means use all annotators of all images.
"""

from typing import Any

import numpy as np

from bayesrep.estimators.naive import at_every_count, thinned_counts
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME, Words
from experiments.papers.study_facts import StudyFacts
from experiments.style import Color, panels

ROLE_COLORS = {"reference": Color.BLUE, "replication": Color.RED}
MIN_COUNT_SHARE = 0.001  # where the drawn range begins


def numbers(study_facts: StudyFacts) -> dict[str, Any]:
    """Shares of images by count, mean selection frequencies and their standard errors."""
    counts = at_every_count(thinned_counts(study_facts.matched_cells, study_facts.annotators))
    facts: dict[str, Any] = {"annotators": study_facts.annotators}
    for role, images in (
        ("reference", counts.reference[0]),
        ("replication", counts.replication[0]),
    ):
        data = study_facts.study.datasets[role]
        frequency = data.selected / data.shown
        size = len(frequency)
        error = float(frequency.std(ddof=1) / np.sqrt(size)) if size > 1 else None
        facts[role] = {
            "images": size,
            "shares": (images / images.sum()).tolist(),
            "mean": float(frequency.mean()),
            "standard_error": error,
        }
    return facts


def draw(data: dict[str, Any], words: Words = VOCABULARY_OF_NAME["images"]) -> Any:
    """Both histograms over each other, with lines at the means."""
    figure, (axes,) = panels(1)
    n = data["annotators"]
    edges = 100 * (np.arange(n + 2) - 0.5) / n
    for role, color in ROLE_COLORS.items():
        shares, mean = 100 * np.array(data[role]["shares"]), 100 * data[role]["mean"]
        axes.stairs(shares, edges, color=color, fill=True, alpha=0.25)
        axes.stairs(shares, edges, color=color, lw=1.4, label=f"{role}, mean {mean:.1f} %")
        axes.axvline(mean, color=color, lw=1.2, ls="--")
    largest = np.maximum(*(data[role]["shares"] for role in ROLE_COLORS))
    axes.set_xlim(edges[np.flatnonzero(largest >= MIN_COUNT_SHARE)[0]], edges[-1])
    axes.set(
        xlabel=f"observed selection frequency (%, {n} {words.annotators})",
        ylabel=f"share of {words.images} (%)",
    )
    axes.legend(frameon=False, loc="upper left")
    return figure
