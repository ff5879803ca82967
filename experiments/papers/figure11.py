"""Figure 11: the gap that naive matching leaves, by the number of annotators.

Mean over classifiers of reference accuracy less naive estimate for n' = 1..n annotators (exact
thinning), with a 95 % bootstrap over images, the same replicates for every n'. The paper draws it
of the pool of candidates (appendix D.1), here it is of the replication: a gap that still shrinks at
n says that matching on more answers would leave less of it.
"""

from typing import Any

import numpy as np

from bayesrep.choices import PAPER_REPLICATES
from bayesrep.errors import OptionError
from bayesrep.estimators.annotators import gaps_by_annotators
from bayesrep.report.methods import label_of
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME, Words
from experiments.papers.helpers import line_at_truth
from experiments.papers.study_facts import StudyFacts
from experiments.style import Color, legend_below, panels


def numbers(facts: StudyFacts, *, bootstrap: int = PAPER_REPLICATES) -> dict[str, Any]:
    """The mean gap of every n' with its interval, and the gap as measured."""
    if bootstrap < 1:
        raise OptionError("figure11-needs-replicates", bootstrap=bootstrap)
    gaps = gaps_by_annotators(facts.study, bootstrap=bootstrap, seed=facts.seed)
    drop = facts.reference_accuracy - facts.replication_accuracy
    return {
        **gaps.to_dict(as_series=False),
        "raw_gap": float(drop.mean()),
        "true_gap": facts.true_gap,
        "bootstrap": bootstrap,
    }


def draw(data: dict[str, Any], words: Words = VOCABULARY_OF_NAME["images"]) -> Any:
    """The gap as a line of points over its shaded interval."""
    figure, (axes,) = panels(1)
    n = data["annotators"]
    gap, low, high = (100 * np.array(data[name]) for name in ("gap", "lower", "upper"))
    color = Color.YELLOW
    axes.plot(n, gap, "o-", color=color, ms=4, lw=1.4, label=label_of("naive"))
    axes.fill_between(n, low, high, color=color, alpha=0.25, lw=0, label="95 % interval")
    axes.axhline(100 * data["raw_gap"], color=Color.GREY, lw=1, ls="--", label=label_of("raw"))
    line_at_truth(axes, None if data["true_gap"] is None else 100 * data["true_gap"], "true gap")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel=f"{words.annotators} per {words.image}", ylabel="mean gap in accuracy (points)")
    legend_below(figure)
    return figure
