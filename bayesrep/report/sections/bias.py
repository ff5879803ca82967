"""Why matching on noisy counts is biased: two betas, which the page's script computes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from bayesrep.report import vega
from bayesrep.report.sections.section import Block, Figure, Section, Source, slider

ROLES = {"reference": vega.POSTERIOR, "candidates": vega.SOFT, "replication": vega.RAW_COLOR}


@dataclass(frozen=True, eq=False, kw_only=True)
class Bias(Section):
    """Nothing of the study: the model is the same for all."""

    id, short, takes = "bias", "Why", ""
    title = "Why matching on noisy counts is biased"

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Take nothing."""
        return cls()

    def blocks(self) -> Iterator[Block]:
        """Sliders for the model, and its three densities."""
        roles, colors = zip(*ROLES.items(), strict=True)
        label = "Distributions of selection frequency in the two-beta model"
        yield self.block(
            lead="Where the candidates are harder than the reference, those whose counts match the "
            "reference's make a replication that lies lower: among images with a high count more "
            "were lucky where most are hard. The fewer annotators count, the lower. (Each follows "
            "a Beta(α, β), as in equation 1 of Engstrom et al., 2020; a click on the legend hides "
            "one.)",
            controls=[
                slider("own-alpha", "Reference (α)", 0.5, 9, 3, step=0.5, ends=("hard", "easy")),
                slider("own-beta", "Reference (β)", 0.5, 8, 2, step=0.5, ends=("easy", "hard")),
                slider("alpha", "Candidates (α)", 0.5, 9, 2, step=0.5, ends=("hard", "easy")),
                slider("beta", "Candidates (β)", 0.5, 8, 2, step=0.5, ends=("easy", "hard")),
                slider("toy-annotators", "Annotators", 0, 100, 10, ends=("few", "many")),
            ],
            figures=[Figure("toy", label, vega.densities(roles, colors, hidden=True))],
        )
