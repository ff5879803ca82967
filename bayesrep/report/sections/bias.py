"""Why matching on noisy counts is biased: two betas, which the page's script computes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from bayesrep.report import vega
from bayesrep.report.sections.section import Block, Figure, Section, Source, slider

ROLES = {"reference": vega.POSTERIOR, "candidates": vega.SOFT, "replication": vega.RAW}


@dataclass(frozen=True, eq=False, kw_only=True)
class Bias(Section):
    """Nothing of the study: the model is the same for all."""

    id, short, takes = "bias", "Why", ""
    title = "Why matching on noisy counts is biased"

    @classmethod
    def of(cls, source: Source) -> Self:
        """Take nothing."""
        return cls()

    def blocks(self) -> Iterator[Block]:
        """Sliders for the model, and its three densities."""
        roles, colors = zip(*ROLES.items(), strict=True)
        label = "Distributions of selection frequency in the two-beta model"
        yield self.block(
            lead="The candidates are harder than the reference. Those are picked whose counts "
            "match the reference's, and yet the replication that results lies lower: among images "
            "with a high count more were lucky where most are hard. The fewer annotators count, "
            "the lower. (The reference follows Beta(α + 1, β), the candidates Beta(α, β); "
            "equation 1 of Engstrom et al., 2020.)",
            controls=[
                slider("alpha", "Candidates (α)", 0.5, 8, 2, step=0.5, ends=("hard", "easy")),
                slider("beta", "Both (β)", 0.5, 8, 2, step=0.5, ends=("easy", "hard")),
                slider("toy-annotators", "Annotators", 0, 100, 10, ends=("few", "many")),
            ],
            figures=[Figure("toy", label, vega.densities(roles, colors))],
        )
