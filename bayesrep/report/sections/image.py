"""One image: what k of n annotators say of its true selection frequency, by its pool."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import betaln

from bayesrep.planning.matching import fitted_mixtures
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.report import vega
from bayesrep.report.figure import Figure, Reading, on_paper
from bayesrep.report.sections.frequencies import (
    S_FINE,
    MixtureDraws,
    beta_density,
    mixture_draws,
    replace_infinite_ends,
)
from bayesrep.report.sections.section import Block, Section, Source, numbers, slider
from bayesrep.report.table_format import percent
from bayesrep.report.vega import Css
from bayesrep.studies.study import Study
from bayesrep.types import Floats

DRAW_STRIDE = 4  # draw of a mixture: enough for a mean


@dataclass(frozen=True, eq=False, kw_only=True)
class Image(Section):
    """Posterior of one image's selection frequency once k of n annotators selected it."""

    annotators: int  # n, the most that an image of the study has
    # [n + 1, 101]: p(s | k of n) if the image is one of that data set, on 0, 0.01, ..., 1
    densities: Mapping[str, Floats]
    means: Mapping[str, Floats]  # [n + 1]: E(s | k of n) likewise
    # The count that is shown first: where the pools differ most, times how many images have it
    first: int
    # Whether the pools' distributions are point estimates, for want of a posterior
    estimated: bool = False

    id, short, takes = "image-section", "One {image}", "frequencies"
    title, waits = "One {image}: what its measurement says", True

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Take the fitted distributions of both pools, or without a posterior those of EM."""
        study, fitted = source.study, source.posterior
        if fitted is None:
            source.points()  # whose programs EM shares once they are compiled
        mixtures = _by_em(study) if fitted is None else mixture_draws(fitted)
        n = int(max(data.shown.max() for data in study.datasets.values()))
        other = "candidates" if "candidates" in mixtures else "replication"
        posteriors = {role: posterior_by_count(mixtures[role], n) for role in ("reference", other)}
        one, another = (mean for _, mean in posteriors.values())
        images = np.zeros(n + 1)
        for data in study.datasets.values():
            k = np.round(n * data.selected / data.shown).astype(int)
            images += np.bincount(k, minlength=n + 1) / len(data.images)
        return cls(
            annotators=n,
            densities={role: each for role, (each, _) in posteriors.items()},
            means={role: each for role, (_, each) in posteriors.items()},
            first=int(np.argmax(images * np.abs(one - another))),
            estimated=fitted is None,
            words=source.words,
        )

    def blocks(self) -> Iterator[Block]:
        """A slider for k, and both densities."""
        n, ends = self.annotators, ("hard", "easy")
        label = f"{self.words.annotators.title()} who selected it, of {n}"
        yield self.block(
            lead="The same measurement means different things in different pools: an "
            f"{self.words.image} is more likely to come from where its pool is dense."
            + (" (The pools are estimated by EM from the counts.)" if self.estimated else ""),
            controls=[slider("selected", label, 0, n, self.first, ends=ends)],
            figures=[self.figure()],
        )

    def figure(self, *, on_paper: bool = False) -> Figure:
        """Both densities, by the count; on paper the axis says which, and a line where it is."""
        rows = [
            {"s": round(100 * float(s), 2), "which": role, "by_count": numbers(density[:, place])}
            for role, density in self.densities.items()
            for place, s in enumerate(S_FINE)
        ]
        spec = vega.densities(
            "image",
            list(self.densities),
            [Css.POSTERIOR, Css.RAW],
            transform=[vega.calculate("density", "datum.by_count[selected]")],
            params={"selected": self.first},
        )
        if on_paper:
            n, k = self.annotators, self.first
            measured: vega.Spec = {"type": "rule", "color": Css.GREY, "strokeDash": [5, 4]}
            condition = f"given that {k} of {n} selected the {self.words.image}"
            title = f"true selection frequency s (%), {condition}"
            (layer,) = spec["layer"]
            layer["encoding"]["x"]["title"] = title
            line = vega.at_value(measured, "x", 100 * k / n, {"title": title})
            spec = {**spec, "layer": [layer, line]}
        return Figure(
            "image",
            f"Distribution of one {self.words.image}'s true selection frequency in both pools",
            spec,
            data={"image": rows},
            readings=Reading(("selected",), [self._read(k) for k in range(self.annotators + 1)]),
            columns=("s", "which", "density"),
        )

    def _read(self, k: int) -> str:
        """Describe a count's posterior in a sentence, by pool."""
        text = ", ".join(
            f"{percent(float(means[k]))} % if it is one of the {role}"
            for role, means in self.means.items()
        )
        return (
            f"An {self.words.image} that {k} of {self.annotators} {self.words.annotators} selected "
            f"({100 * k / self.annotators:.0f} %) has a true selection frequency of about {text}."
        )


def _by_em(study: Study) -> dict[str, MixtureDraws]:
    """The most probable mixtures of three betas of the reference and the other pool."""
    other = "candidates" if "candidates" in study.datasets else "replication"
    sets = {role: study.datasets[role] for role in ("reference", other)}
    pairs = ((data.selected, data.shown) for data in sets.values())
    fits = fitted_mixtures(*pairs, components=3)  # as EM + spline has
    return {
        role: MixtureDraws(each.a[None], each.b[None], each.weights[None])
        for role, each in zip(sets, fits, strict=True)
    }


def posterior_by_count(mixture: MixtureDraws, n: int) -> tuple[Floats, Floats]:
    """Bayes' rule for every k: p(s | k, n) ∝ p(s) s^k (1 − s)^(n − k), a mixture of betas."""
    a, b, weight = (part[::DRAW_STRIDE] for part in mixture)
    k = np.arange(n + 1)[:, None, None]
    log_weight = np.log(weight) + betaln(a + k, b + n - k) - betaln(a, b)
    weights = np.exp(log_weight - log_weight.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)  # [k, draw, K]
    parts = beta_density(S_FINE, (a + k)[..., None], (b + n - k)[..., None])
    density = replace_infinite_ends(np.einsum("kdj,kdjs->ks", weights, parts) / len(a))
    return density, (weights * (a + k) / (a + b + n)).sum(axis=2).mean(axis=1)


def figure(study: Study, posterior: Posterior) -> vega.Spec:
    """True selection frequency of an image of the count at which both pools differ most."""
    return on_paper(Image.compute(Source(study, Fitted(study, posterior))).figure(on_paper=True))
