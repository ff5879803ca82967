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
            lead="A model of two betas: the reference's selection frequencies follow "
            "Beta(α + 1, β), the candidates' Beta(α, β). Candidates are picked so that their "
            "counts match the reference's; the replication that results (equation 1 of Engstrom "
            "et al., 2020) still lies lower, and lower the fewer annotators count.",
            controls=[
                slider("alpha", "α of the candidates", 0.5, 8, 2, step=0.5),
                slider("beta", "β of both", 0.5, 8, 2, step=0.5),
                slider("toy-annotators", "Annotators", 0, 100, 10),
            ],
            figures=[Figure("toy", label, vega.densities(roles, colors))],
        )
