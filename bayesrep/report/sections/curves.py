"""Accuracy by selection frequency: fitted curves over the cells that they explain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import jax
import numpy as np

from bayesrep.errors import StudyError, listing
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, cells_along, find_group, thinned_draws
from bayesrep.report import vega
from bayesrep.report.figures import BLUE, RED, legend_below, panels
from bayesrep.report.sections.frequencies import BARS
from bayesrep.report.sections.section import (
    BAND,
    DRAWS,
    Block,
    Figure,
    Section,
    Source,
    band,
    chooser,
    numbers,
)
from bayesrep.studies.study import AnnotatedSet, Study
from bayesrep.types import Floats, Ints

GRID = np.linspace(0, 1, 41)
SHOWN_CURVES = 4  # curves in one figure


@dataclass(frozen=True, eq=False, kw_only=True)
class CurvesSection(Section):
    """Accuracy curves of all classifiers with the cells that they explain.

    Attributes
    ----------
    classifiers
        Names.
    bands : float64 [3, C, 41]
        Mean, lower and upper end (95 %) of g(s) on 0, 0.025, ..., 1.
    frequency : float64 [F]
        Observed selection frequencies k / n on the replication.
    images : int [F]
        How many images have each.
    right : int [C, F]
        How many of these each classifier got right.
    expected : float64 [3, C, F] or None
        Mean, lower and upper end (95 %) of the share of right answers that the fit expects of so
        many images at each frequency; None where the posterior holds no predictions.
    """

    classifiers: tuple[str, ...]
    bands: Floats
    frequency: Floats
    images: Ints
    right: Ints
    expected: Floats | None = None

    id, short, takes = "curves", "Curves", "curves"
    title = "Accuracy by selection frequency"

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Take the model's curves at draws of its posterior."""
        frequency, images, right = _cells(source.study.replication)
        return cls(
            classifiers=source.study.classifiers,
            bands=band(curve_draws(source.need_posterior)),
            frequency=frequency,
            images=images,
            right=right,
            expected=_expected_shares(source.need_posterior, frequency, images),
        )

    def blocks(self) -> Iterator[Block]:
        """One classifier's curve, and a field to choose which."""
        bands = dict(zip(BAND, map(numbers, np.round(self.bands, 4)), strict=True))
        observed: dict[str, Any] = {"images": self.images.tolist(), "right": self.right.tolist()}
        key = [("ring raw", "observed at each count"), ("line", "accuracy by true frequency, 95 %")]
        if self.expected is not None:
            expected = map(numbers, np.round(self.expected, 4))
            observed["expected"] = dict(zip(BAND, expected, strict=True))
            key.insert(1, ("bar", "expected by the fit, 95 %"))
        label = "Accuracy of a classifier against selection frequency"
        yield self.block(
            lead="At each count the ring is the share of images that the classifier gets right, "
            "the bar what the fit expects of so many images: where rings lie in bars, it fits. The "
            "line is accuracy by the true frequency, which is steeper, since counts are noisy.",
            controls=[chooser("curve-classifier", self.classifiers[0])],
            figures=[Figure("curve", label, _chart(), key=key)],
            data={"curves": {**bands, "frequency": numbers(self.frequency), **observed}},
        )


def curve_draws(fitted: Fitted) -> Floats:
    """Every classifier's accuracy [draw, C, 41] at the frequencies of `GRID`."""
    group, made = fitted.need("posterior", "classifier_curve"), fitted.recorded
    draws = {str(name): thinned_draws(group[name], DRAWS // 2) for name in group.data_vars}
    share = np.ones(1)
    if column := made.grouping:
        of_images = fitted.images.reference.groups[column]
        share = np.mean(of_images[:, None] == group["group"].values, axis=0)
    with jax.enable_x64(new_val=True):
        return np.asarray(made.model.curves(draws, made.options, GRID, share))


def _expected_shares(fitted: Fitted, frequency: Floats, images: Ints) -> Floats | None:
    """Right answers that the fit predicts of the images at each frequency, as shares."""
    group = find_group(fitted.posterior, "posterior_predictive")
    if group is None or "correct" not in group:
        return None
    cells = cells_along(group, "answered")
    right = np.asarray(group["correct"].values)
    right = right.reshape(-1, *right.shape[2:])  # [draw, C, cell]
    own = np.asarray(cells.selected) / np.asarray(cells.shown)
    place = np.abs(own[:, None] - frequency).argmin(axis=1)
    into = np.zeros((len(own), len(frequency)))
    into[np.arange(len(own)), place] = 1
    return band(right @ into / images)


def _cells(data: AnnotatedSet) -> tuple[Floats, Ints, Ints]:
    """Observed frequencies, and how many images and right answers there are at each."""
    frequency, place = np.unique(data.selected / data.shown, return_inverse=True)
    if len(frequency) > BARS + 1:
        place = np.round(data.selected / data.shown * BARS).astype(int)
        frequency = np.arange(BARS + 1) / BARS
    images = np.bincount(place, minlength=len(frequency))
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(frequency)))
    some = images > 0
    sums = np.add.reduceat(data.correct[order], starts[some], axis=0, dtype=np.int64)  # [cell, C]
    return frequency[some], images[some], sums.T


def _chart() -> vega.Spec:
    percent = {"domain": [0, 100]}
    x = vega.number("s", title="selection frequency (%)")
    lower = vega.number("lower", title="accuracy (%)", scale=percent)
    area: vega.Spec = {"type": "area", "opacity": 0.18, "color": vega.POSTERIOR}
    line: vega.Spec = {"type": "line", "color": vega.POSTERIOR, "strokeWidth": 1.5}
    bars = vega.mark(
        {"type": "rule", "color": vega.POSTERIOR, "strokeWidth": 5, "opacity": 0.45},
        data="cells",
        x=vega.number("frequency"),
        y=vega.number("low", scale=percent),
        y2={"field": "high"},
    )
    cells = vega.mark(
        {"type": "point", "color": vega.RAW_COLOR, "strokeWidth": 1.6, "opacity": 1},
        data="cells",
        x=vega.number("frequency"),
        y=vega.number("accuracy", scale=percent),
        size=vega.number("images", legend=None, scale={"range": [12, 120]}),
        tooltip=[
            vega.number("frequency", format=".0f", title="selected (%)"),
            vega.number("images", title="images"),
            vega.number("right"),
            vega.number("accuracy", format=".1f", title="right (%)"),
            vega.name("told", title="expected (%)"),
        ],
    )
    return vega.chart(
        vega.mark(area, x=x, y=lower, y2={"field": "upper"}),
        vega.mark(line, x=x, y=vega.number("mean", scale=percent)),
        bars,
        cells,
    )


def figure(study: Study, posterior: Posterior, *, classifiers: Sequence[str] = ()) -> Any:
    """Accuracy curves with 95 % bands and the observed cells, of the classifiers named.

    Raises
    ------
    StudyError
        For a name that is not a classifier's.
    """
    if unknown := [name for name in classifiers if name not in study.classifiers]:
        raise StudyError("classifiers-not-in-study", classifiers=listing(unknown, "classifier"))
    curves = CurvesSection.compute(Source(study, Fitted(study, posterior)))
    chosen = list(classifiers) or _spread(study)
    figure, every = panels(len(chosen), rows=-(-len(chosen) // 2))
    size = 4 + 60 * curves.images / curves.images.max()
    for axes, name in zip(every, chosen, strict=True):
        number = study.classifiers.index(name)
        mean, low, high = 100 * curves.bands[:, number]
        axes.plot(100 * GRID, mean, color=BLUE, lw=1.6)
        axes.fill_between(
            100 * GRID, low, high, color=BLUE, alpha=0.2, lw=0, label="by true frequency, 95 %"
        )
        if curves.expected is not None:
            _, low, high = 100 * curves.expected[:, number]
            style = {"color": BLUE, "lw": 3, "alpha": 0.5, "label": "expected at each count, 95 %"}
            axes.vlines(100 * curves.frequency, low, high, **style)
        seen = 100 * curves.right[number] / curves.images
        style = {"facecolors": "none", "edgecolors": RED, "label": "observed at each count"}
        axes.scatter(100 * curves.frequency, seen, s=size, zorder=3, **style)
        axes.set_title(name, loc="left", fontsize=9)
        axes.set(xlabel="selection frequency (%)", ylabel="accuracy (%)", ylim=(-2, 102))
    legend_below(figure)
    return figure


def _spread(study: Study) -> list[str]:
    """A few classifiers from the least to the most accurate."""
    order = np.argsort(study.reference.correct.mean(axis=0), kind="stable")
    places = np.linspace(0, len(order) - 1, min(SHOWN_CURVES, len(order))).round().astype(int)
    return [study.classifiers[number] for number in order[places]]
