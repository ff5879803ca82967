"""Selection frequencies of images: observed, expected under the fit, and true."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, cells_along, find_group, thinned_draws
from bayesrep.report import vega
from bayesrep.report.figure import Figure, beside
from bayesrep.report.sections.section import (
    MEAN_CI,
    PAGE_DRAWS,
    Block,
    Section,
    Source,
    band,
    rows_of,
)
from bayesrep.report.table_format import percent
from bayesrep.report.vega import Css
from bayesrep.studies.study import AnnotatedSet, Study
from bayesrep.studies.vocabulary import Words
from bayesrep.summary.remeasured import kept_factor
from bayesrep.types import Floats

MAX_BARS = 40  # of a histogram of selection frequencies, at most
S_FINE = np.linspace(0, 1, 101)
OUTSIDE_SHARE = 0.005  # of the images may lie left of what is shown


class MixtureDraws(NamedTuple):
    """Draws of a data set's mixture of betas."""

    a: Floats  # [draw, K]
    b: Floats
    weight: Floats


class Shares(NamedTuple):
    """Selection frequencies of one data set."""

    edges: Floats  # [B + 1]: edges of the bars, as fractions k / n
    observed: Floats  # [B]: shares of images
    # [3, B]: mean, lower and upper end (95 %) of the posterior predictive shares; NaN where there
    # are none
    predicted: Floats
    density: Floats | None  # [3, 101]: the same of p(s) on 0, 0.01, ..., 1

    def bars(self) -> dict[str, Floats]:
        """The histogram, in percent."""
        ends = {"low": self.edges[:-1], "high": self.edges[1:]}
        _, lower, upper = self.predicted
        bars = {**ends, "observed": self.observed, "lower": lower, "upper": upper}
        return {name: 100 * values for name, values in bars.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Frequencies(Section):
    """Selection frequencies of every data set, by role, and their observed means."""

    means: Mapping[str, float]
    shares: Mapping[str, Shares]

    id, short, takes = "frequencies", "Selection", "frequencies"
    title = "How often {images} were selected"

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Take the counts and, where there is one, the posterior."""
        mixtures, missing = source.attempt(mixture_draws)
        data = source.study.datasets
        return cls(
            means={role: float((each.selected / each.shown).mean()) for role, each in data.items()},
            shares={
                role: _shares_of(each, role, source.posterior, (mixtures or {}).get(role))
                for role, each in data.items()
            },
            missing=missing,
            words=source.words,
        )

    def blocks(self) -> Iterator[Block]:
        """Histograms with what is expected of them, and the fitted distributions."""
        yield self.block(missing=self.missing, figures=self.figures())

    def figures(self) -> list[Figure]:
        """A histogram of each data set and, with a posterior, the fitted distributions."""
        low, high, rows = self.axis_start, self.highest_bar, list[dict[str, Any]]()
        figures: list[Figure] = []
        for place, (role, each) in enumerate(self.shares.items()):
            # Bars are colored by data set, so each has a key of its own.
            key = [(("bar", "bar raw", "bar soft")[min(place, 2)], "observed")]
            if np.isfinite(each.predicted).any():
                key.append(("upright", "expected by the fit, 95 %"))
            reading = f"{role.capitalize()}: on average {percent(self.means[role])} % selected."
            if low > 0:
                left = percent(float(each.observed[100 * each.edges[1:] <= low].sum()))
                reading += f" {left} % of its {self.words.images} lie further left."
            label = (
                f"Histogram of observed selection frequencies of the {role}, with what the fit "
                "expects"
            )
            name, color = f"histogram-{role}", vega.DATASET_COLORS[place % len(vega.DATASET_COLORS)]
            spec = _histogram(role, color, low, high, self.words)
            bars = {name: rows_of(each.bars(), which=role)}
            figures.append(Figure(name, label, spec, reading, bars, key))
            # Densities are there only with a posterior.
            if each.density is not None:
                values = zip(("s", *MEAN_CI), (100 * S_FINE, *each.density), strict=True)
                rows += rows_of(dict(values), which=role)
        if rows:
            reading = (
                "The fitted distributions of the true selection frequency, with 95 % bands. Only "
                "their broad shape is reliable."
            )
            label = "Fitted distributions of the true selection frequency"
            spec = self._density(list(self.shares))
            figures.append(Figure("density", label, spec, reading, {"density": rows}))
        return figures

    @property
    def axis_start(self) -> float:
        """Start of the axes, in percent: nearly all images lie to the right of it."""
        firsts = (
            each.edges[int(np.argmax(np.cumsum(each.observed) > OUTSIDE_SHARE))]
            for each in self.shares.values()
        )
        # The last ten percent below which next to no image lies.
        return min(float(np.clip(np.floor(10 * first) * 10, 0, 90)) for first in firsts)

    @property
    def highest_bar(self) -> float:
        """The highest bar, or what is expected of one, in percent."""
        parts = (np.ravel([each.observed, *each.predicted]) for each in self.shares.values())
        return 100 * float(np.nanmax(np.concatenate(list(parts))))

    @property
    def highest_density(self) -> float:
        """End of the axes of densities, which may be infinite: their bands', or 2 × their means."""
        inner = 100 * S_FINE >= self.axis_start
        densities = (each.density for each in self.shares.values())
        tops = [np.asarray(each)[:, inner].max(axis=1) for each in densities if each is not None]
        return 1.08 * float(max(map(min, ((top.max(), 2 * top[0]) for top in tops)), default=1.0))

    def _density(self, roles: list[str]) -> vega.Spec:
        color = vega.colors("which", roles, vega.DATASET_COLORS[: len(roles)])
        scale = {"domain": [0, self.highest_density], "nice": False}
        across = {"domain": [self.axis_start, 100], "nice": False}
        x = vega.number("s", title="true selection frequency s (%)", scale=across)
        lower = vega.number("lower", title="density p(s)", scale=scale)
        area: vega.Spec = {"type": "area", "opacity": 0.22, "clip": True}
        bands = vega.mark(area, color=color, x=x, y=lower, y2={"field": "upper"})
        line: vega.Spec = {"type": "line", "clip": True}
        return vega.chart(
            "density", bands, vega.mark(line, color=color, x=x, y=vega.number("mean", scale=scale))
        )


def mixture_draws(fitted: Fitted) -> dict[str, MixtureDraws]:
    """Draws of every data set's mixture, by role."""
    names = [f"component_{name}" for name in ("mean", "concentration", "weight")]
    group = fitted.need("posterior", *names)
    mean, total, weight = (thinned_draws(group[name], PAGE_DRAWS) for name in names)
    return {
        role: MixtureDraws(mean[:, d] * total[:, d], (1 - mean[:, d]) * total[:, d], weight[:, d])
        for d, role in enumerate(fitted.record.roles)
    }


def beta_density(s: Floats, a: Floats, b: Floats) -> Floats:
    """Densities of betas; infinite at an end whose parameter is below one."""
    with np.errstate(over="ignore"):
        return np.exp(xlogy(a - 1, s) + xlog1py(b - 1, -s) - betaln(a, b))


def replace_infinite_ends(values: Floats) -> Floats:
    """A density at 0 and 1 may be infinite; the line through the two beside goes on."""
    ends = values[..., [0, -1]]
    line = np.maximum(2 * values[..., [1, -2]] - values[..., [2, -3]], 0.0)
    values = values.copy()
    values[..., [0, -1]] = np.where(np.isfinite(ends), ends, line)
    return values


def _shares_of(
    data: AnnotatedSet, role: str, fitted: Fitted | None, mixture: MixtureDraws | None
) -> Shares:
    # One bar for each count where all images have the same n, else bars of equal widths.
    n = int(data.shown.max())
    edges = np.linspace(0, 1, min(n, MAX_BARS) + 1)
    if int(data.shown.min()) == n and n <= MAX_BARS:
        edges = (np.arange(n + 2) - 0.5) / n
    observed = _into_bars(data.selected / data.shown, np.ones(len(data.images)), edges)
    predicted, density = np.full((3, len(observed)), np.nan), None
    group = None if fitted is None else find_group(fitted.posterior, "posterior_predictive")
    if group is not None and f"{role}_images" in group:
        cells = cells_along(group, role)
        images = np.asarray(group[f"{role}_images"].values, dtype=float)
        images = images.reshape(-1, len(cells.shown))
        predicted = band(_into_bars(cells.selected / cells.shown, images, edges))
    if mixture is not None:
        a, b, weight = (part[:, :, None] for part in mixture)
        density = replace_infinite_ends(np.sum(weight * beta_density(S_FINE, a, b), axis=1))
        density = band(density * kept_factor(*mixture, data, S_FINE))
    return Shares(edges, observed, predicted, density)


def _into_bars(frequency: Floats, images: Floats, edges: Floats) -> Floats:
    """Share of the images in every bar, [..., B]."""
    place = np.clip(np.searchsorted(edges, frequency, side="right") - 1, 0, len(edges) - 2)
    into = np.zeros((len(frequency), len(edges) - 1))
    into[np.arange(len(frequency)), place] = 1
    return images @ into / images.sum(axis=-1, keepdims=True)


def _histogram(role: str, color: str, low: float, high: float, words: Words) -> vega.Spec:
    scale = {"domain": [low, 102], "nice": False}
    y_scale = {"domain": [0, 1.05 * high], "nice": False}
    bars = vega.mark(
        {"type": "bar", "opacity": 0.45, "stroke": None, "color": color, "clip": True},
        x=vega.number("low", title=f"observed selection frequency, {role} (%)", scale=scale),
        x2={"field": "high"},
        y=vega.number("observed", title=f"share of {words.images} (%)", scale=y_scale),
        y2={"datum": 0},
        tooltip=[
            *vega.tooltip({"low": "from (%)", "high": "to (%)"}, ".0f"),
            *vega.tooltip(
                {"observed": "observed (%)", "lower": "expected from", "upper": "to"}, ".2f"
            ),
        ],
    )
    middle = {"calculate": "(datum.low + datum.high) / 2", "as": "middle"}
    rule = {"type": "rule", "strokeWidth": 2, "color": Css.INK, "clip": True}
    low_end, up = vega.number("lower", scale=y_scale), {"field": "upper"}
    bands = vega.mark(rule, x=vega.number("middle"), y=low_end, y2=up)
    return vega.chart(f"histogram-{role}", bars, {**bands, "transform": [middle]}, height=220)


def figure(study: Study, posterior: Posterior) -> vega.Spec:
    """Observed selection frequencies with predictive bands, and the fitted distributions."""
    return beside(Frequencies.compute(Source(study, Fitted(study, posterior))).figures())
