"""Accuracy by selection frequency: fitted curves over the cells that they explain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import jax
import numpy as np

from bayesrep.errors import StudyError, listing
from bayesrep.numerics.settings import own_settings
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, cells_along, find_group, thinned_draws
from bayesrep.report import vega
from bayesrep.report.estimates_text import spread
from bayesrep.report.figure import Figure, Reading, beside
from bayesrep.report.sections.frequencies import MAX_BARS
from bayesrep.report.sections.section import (
    MEAN_CI,
    PAGE_DRAWS,
    Block,
    Section,
    Source,
    band,
    chooser,
    numbers,
)
from bayesrep.report.vega import Css
from bayesrep.studies.study import AnnotatedSet, Study
from bayesrep.studies.vocabulary import Words
from bayesrep.types import Floats, Ints

S_COARSE = np.linspace(0, 1, 41)
SHOWN_CURVES = 4  # curves in one figure


@dataclass(frozen=True, eq=False, kw_only=True)
class CurvesSection(Section):
    """Accuracy curves of all classifiers with the cells that they explain."""

    classifiers: tuple[str, ...]  # names
    bands: Floats  # [3, C, 41]: mean, lower and upper end (95 %) of g(s) on 0, 0.025, ..., 1
    frequency: Floats  # [F]: observed selection frequencies k / n on the replication
    images: Ints  # [F]: how many images have each
    right: Ints  # [C, F]: how many of these each classifier got right
    # [3, C, F]: mean, lower and upper end (95 %) of the share of right answers that the fit expects
    # of so many images at each frequency; None where the posterior holds no predictions
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
            words=source.words,
        )

    def blocks(self) -> Iterator[Block]:
        """One classifier's curve, and a field to choose which."""
        words = self.words
        yield self.block(
            lead=f"At each count the ring is the share of {words.images} that the "
            f"{words.classifier} gets right, the bar what the fit expects of so many "
            f"{words.images}: where rings lie in bars, it fits. The "
            "line is accuracy by the true frequency, which is steeper, since counts are noisy.",
            controls=[chooser("curve-classifier", words, self.classifiers[0])],
            figures=[self.figure()],
        )

    def figure(self, number: int | None = None) -> Figure:
        """The curve of the classifier that is chosen, or always that of one."""
        key = [("ring raw", "observed at each count"), ("line", "accuracy by true frequency, 95 %")]
        if self.expected is not None:
            key.insert(1, ("bar", "expected by the fit, 95 %"))
        every = range(len(self.classifiers)) if number is None else [number]
        bands, right = self.bands[:, every], self.right[every]
        lines = [
            {"s": round(100 * float(s), 2)}
            | dict(zip(MEAN_CI, numbers(np.round(bands[:, :, i], 4)), strict=True))
            for i, s in enumerate(S_COARSE)
        ]
        cells: list[dict[str, Any]] = []
        for j, frequency in enumerate(self.frequency):
            cell = {"frequency": 100 * float(frequency), "images": int(self.images[j])}
            cell |= {"rights": right[:, j].tolist()}
            if self.expected is not None:
                expected = numbers(np.round(self.expected[:, every, j], 4))
                cell |= dict(zip(("middles", "lows", "highs"), expected, strict=True))
            cells.append(cell)
        suffix = "" if number is None else f"-{number}"
        title = None if number is None else self.classifiers[number]
        return Figure(
            f"curve{suffix}",
            f"Accuracy of a {self.words.classifier} against selection frequency",
            _chart(suffix, title, self.words, has_expected=self.expected is not None),
            data={f"curve{suffix}": lines, f"cells{suffix}": cells},
            key=key,
            readings=Reading(("chosen",), [self._read(each) for each in every]),
            columns=("frequency", "images", "right", "accuracy", "low", "high")
            + ("s", "mean_percent", "lower_percent", "upper_percent"),
        )

    def _read(self, number: int) -> str:
        """Describe one classifier's curve in a sentence."""
        mean = self.bands[0, number]
        text = (
            f"{self.classifiers[number]} is right on {100 * mean[len(mean) // 2]:.0f} % of the "
            f"replication's {self.words.images} that half of all {self.words.annotators} would "
            f"select, and on {100 * mean[-1]:.0f} % of those that all would."
        )
        if self.expected is None:
            return text
        _, low, high = np.round(self.expected[:, number], 4)
        accuracy = self.right[number] / self.images
        outside = int(((accuracy < low - 1e-8) | (accuracy > high + 1e-8)).sum())
        return (
            f"{text} At {outside} of {len(accuracy)} counts the ring is outside its bar; about one "
            "in twenty would be by chance."
        )


def curve_draws(fitted: Fitted) -> Floats:
    """Compute every classifier's accuracy [draw, C, 41] at the frequencies of `S_COARSE`."""
    group, record = fitted.need("posterior", "classifier_curve"), fitted.record
    draws = {str(name): thinned_draws(group[name], PAGE_DRAWS // 2) for name in group.data_vars}
    share = np.ones(1)
    if column := record.grouping:
        of_images = fitted.images.reference.groups[column]
        share = np.mean(of_images[:, None] == group["group"].values, axis=0)
    curves, options = record.model.curves, record.options
    # Compiled as one program: operation by operation each would be compiled for itself.
    evaluate = jax.jit(lambda draws: curves(draws, options, S_COARSE, share))
    with own_settings():
        return np.asarray(evaluate(draws))


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
    if len(frequency) > MAX_BARS + 1:
        place = np.round(data.selected / data.shown * MAX_BARS).astype(int)
        frequency = np.arange(MAX_BARS + 1) / MAX_BARS
    images = np.bincount(place, minlength=len(frequency))
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(frequency)))
    some = images > 0
    sums = np.add.reduceat(data.correct[order], starts[some], axis=0, dtype=np.int64)  # [cell, C]
    return frequency[some], images[some], sums.T


def _chart(suffix: str, title: str | None, words: Words, *, has_expected: bool) -> vega.Spec:
    """A curve and its cells, of the classifier chosen or, with a title, of one alone."""
    # Before anybody has chosen a classifier, the first is shown.
    chosen_row = "max(chosen, 0)" if title is None else "0"
    percent = {"domain": [0, 100]}
    x = vega.number("s", title="selection frequency (%)")
    band = [
        vega.calculate(f"{name}_percent", f"100 * datum.{name}[{chosen_row}]") for name in MEAN_CI
    ]
    lower = vega.number("lower_percent", title="accuracy (%)", scale=percent)
    area: vega.Spec = {"type": "area", "opacity": 0.18, "color": Css.POSTERIOR}
    line: vega.Spec = {"type": "line", "color": Css.POSTERIOR, "strokeWidth": 1.5}
    of_cells = [
        vega.calculate("right", f"datum.rights[{chosen_row}]"),
        vega.calculate("accuracy", "100 * datum.right / datum.images"),
    ]
    tooltip = [
        vega.number("frequency", format=".0f", title="selected (%)"),
        vega.number("images", title=words.images),
        vega.number("right"),
        vega.number("accuracy", format=".1f", title="right (%)"),
    ]
    layers = [
        vega.mark(area, x=x, y=lower, y2={"field": "upper_percent"}),
        vega.mark(line, x=x, y=vega.number("mean_percent", scale=percent)),
    ]
    # What the curve expects of each cell lies behind what was counted, and joins its tooltip.
    if has_expected:
        of_cells += [
            vega.calculate(one, f"100 * datum.{one}s[{chosen_row}]")
            for one in ("middle", "low", "high")
        ]
        titles = {"middle": "expected (%)", "low": "95 % from", "high": "to"}
        tooltip += vega.tooltip(titles, ".1f")
        wide = {"type": "rule", "color": Css.POSTERIOR, "strokeWidth": 5, "opacity": 0.45}
        ends = {"y": vega.number("low", scale=percent), "y2": {"field": "high"}}
        bars = vega.mark(wide, data=f"cells{suffix}", x=vega.number("frequency"), **ends)
        layers.append({**bars, "transform": of_cells})
    cells = vega.mark(
        {"type": "point", "color": Css.RAW, "strokeWidth": 1.6, "opacity": 1},
        data=f"cells{suffix}",
        x=vega.number("frequency"),
        y=vega.number("accuracy", scale=percent),
        size=vega.number("images", legend=None, scale={"range": [12, 120]}),
        tooltip=tooltip,
    )
    layers.append({**cells, "transform": of_cells})
    # A chart with a title stands beside others: no control moves it.
    more: vega.Spec = {"params": {"chosen": -1}} if title is None else {"title": title}
    return vega.chart(f"curve{suffix}", *layers, transform=band, **more)


def figure(study: Study, posterior: Posterior, *, classifiers: Sequence[str] = ()) -> vega.Spec:
    """Accuracy curves with 95 % bands and the observed cells, of the classifiers named."""
    if unknown := [name for name in classifiers if name not in study.classifiers]:
        raise StudyError("classifiers-not-in-study", classifiers=listing(unknown, "classifier"))
    curves = CurvesSection.compute(Source(study, Fitted(study, posterior)))
    # A few from the least to the most accurate, unless some are named.
    order = np.argsort(study.reference.correct.mean(axis=0), kind="stable")
    places = list(map(study.classifiers.index, classifiers))
    places = places or order[spread(len(order), SHOWN_CURVES)].tolist()
    return beside(list(map(curves.figure, places)))
