"""People's view of the reference images, and of the classifiers' predictions on them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import polars as pl

from bayesrep.errors import StudyError
from bayesrep.protocols.people import People
from bayesrep.protocols.people_shares import (
    compare_labels_with_people,
    compare_predictions_with_people,
)
from bayesrep.report import vega
from bayesrep.report.figure import Figure, beside, on_paper
from bayesrep.report.sections.section import Block, Section, Source, Table
from bayesrep.report.table_format import ends, percent
from bayesrep.report.vega import Css
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words

JUDGED_COLORS: Mapping[str, Mapping[str, str]] = {
    "judged-chart": {
        "one object: right by the own label": Css.INK,
        "several objects: right by the own label": Css.RAW,
        "several objects: right by any object": Css.POSTERIOR,
    },
    "mistakes-chart": {
        "mistakes selected as often as the own label": Css.RAW,
        "mistakes selected by half or more": Css.POSTERIOR,
        "top-5 corrections that are two objects": Css.INK,
    },
}
"""Statistics of a chart of classifiers, and their colours."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PeopleAnswers(Section):
    """Objects per image, judged predictions, and top-1 accuracy by classifier."""

    id, short, takes, optional = "people", "What {people} see", "what people see", True
    title = "What {people} see on the {images}"

    images: pl.DataFrame
    judged: pl.DataFrame
    accuracy: pl.DataFrame

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Both tables; `StudyError` where nothing is known of people."""
        if source.people is None:
            raise StudyError("no-tables-of-people")
        return cls.from_answers(*source.people, source.words)

    @classmethod
    def from_answers(
        cls, predictions: Predictions, people: People, words: Words = IMAGE_WORDS
    ) -> Self:
        """Both tables of answers on one data set."""
        right = (predictions.correct & predictions.answered).sum(axis=1)
        shares = 100 * right / predictions.answered.sum(axis=1).clip(1)
        return cls(
            images=compare_labels_with_people(predictions, people),
            judged=compare_predictions_with_people(predictions, people),
            accuracy=pl.DataFrame({"classifier": predictions.classifiers, "top-1": shares}),
            words=words,
        )

    def labels_figure(self) -> Figure:
        """Draw shares of images with their intervals."""
        words, order = self.words, self.images["statistic"].to_list()
        label = f"Dots of the shares of {words.images} of which something is so, with intervals"
        reading = (
            f"Dots are shares of the {words.images} that {words.people} were asked about; lines "
            "are 95 % intervals."
        )
        rows = {"people-chart": _rows(self.images)}
        return Figure("people-chart", label, _shares(order, words), reading, rows)

    def judged_figures(self) -> list[Figure]:
        """Draw every classifier by what people see, as far as they were asked."""
        words, figures = self.words, list[Figure]()
        label = f"Dots of shares of the {words.classifiers}' answers against their accuracies"
        reading = (
            f"Each dot is a {words.classifier}: a share of its answers, by what {words.people} see."
        )
        rows = self.judged.join(self.accuracy, on="classifier", how="left")
        for name, colors in JUDGED_COLORS.items():
            some = rows.filter(pl.col("statistic").is_in(list(colors)))
            if len(some):
                spec = _classifiers(name, colors, words)
                figures.append(Figure(name, label, spec, reading, {name: _rows(some)}))
        return figures

    def blocks(self) -> Iterator[Block]:
        """Shares of images with their intervals, and every classifier by what people see."""
        words, figures = self.words, [self.labels_figure(), *self.judged_figures()]
        texts = [
            [
                row["statistic"],
                f"{row['images']:,} of {row['of']:,}",
                "–" if row["share"] is None else percent(row["share"], 1),
                ends(row["lower"], row["upper"], 1, none="–"),
            ]
            for row in self.images.iter_rows(named=True)
        ]
        header = ["what is so", words.images, "share (%)", "95 % interval"]
        yield self.block(
            lead=f"{words.people.title()} were asked which labels fit each {words.image} of the "
            "reference and, of some, which objects it shows (Tsipras et al., 2020). Intervals are "
            f"over {words.images}.",
            figures=figures,
            table=Table("people-table", f"What {words.people} see", header, texts),
        )


def _rows(table: pl.DataFrame) -> list[dict[str, object]]:
    """Rows in percent."""
    return table.with_columns((pl.col("share", "lower", "upper") * 100).round(3)).to_dicts()


def _tooltip(**names: str) -> list[vega.Spec]:
    fields = [vega.number(end, format=".1f") for end in ("share", "lower", "upper")]
    return [*(vega.name(field, title=title) for field, title in names.items()), *fields]


def _shares(order: list[str], words: Words) -> vega.Spec:
    y = vega.name("statistic", sort=order, title=None, axis={"labelLimit": 320})
    rule: vega.Spec = {"type": "rule", "color": Css.INK, "strokeWidth": 1.5}
    x = vega.number("lower", title=f"{words.images} (%)")
    rules = vega.mark(rule, y=y, x=x, x2={"field": "upper"})
    dot: vega.Spec = {"type": "circle", "color": Css.POSTERIOR, "size": 70, "opacity": 1}
    dots = vega.mark(dot, y=y, x=vega.number("share"), tooltip=_tooltip(statistic="statistic"))
    return vega.chart("people-chart", rules, dots, height=26 * len(order) + 20)


def _classifiers(name: str, colors: Mapping[str, str], words: Words) -> vega.Spec:
    title = f"top-1 accuracy on all {words.images} (%)"
    x = vega.number("top-1", title=title, scale={"zero": False})
    legend = {"orient": "bottom", "columns": 1, "labelLimit": 400}
    color = vega.colors("statistic", [*colors], [*colors.values()], title=None, legend=legend)
    y = vega.number("lower", title="share (%)", scale={"zero": False})
    thin: vega.Spec = {"type": "rule", "strokeWidth": 0.8}
    rules = vega.mark(thin, x=x, y=y, y2={"field": "upper"}, color=color)
    tooltip = _tooltip(classifier=words.classifier, statistic="statistic")
    circle = {"type": "circle", "size": 40, "opacity": 0.8}
    dots = vega.mark(circle, x=x, y=vega.number("share"), color=color, tooltip=tooltip)
    return vega.chart(name, rules, dots, height=300)


def draw_people(predictions: Predictions, people: People) -> vega.Spec:
    """Shares of images by what people see on them (Tsipras et al., 2020)."""
    return on_paper(PeopleAnswers.from_answers(predictions, people).labels_figure())


def draw_judged(predictions: Predictions, people: People) -> vega.Spec:
    """Every classifier by what people see (Tsipras et al., 2020, figures 4, 11 and 22)."""
    return beside(PeopleAnswers.from_answers(predictions, people).judged_figures())
