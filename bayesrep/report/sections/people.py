"""People's view of the reference images, and of the classifiers' predictions on them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import polars as pl

from bayesrep.errors import StudyError
from bayesrep.protocols.people_shares import (
    compare_labels_with_people,
    compare_predictions_with_people,
)
from bayesrep.report import vega
from bayesrep.report.figure import Figure
from bayesrep.report.people_figures import top1_accuracy
from bayesrep.report.sections.section import Block, Section, Source, Table
from bayesrep.report.table_format import ends, percent
from bayesrep.report.vega import Css
from bayesrep.studies.vocabulary import Words

PART_TITLES = {
    "one object: right by the own label": Css.INK,
    "several objects: right by the own label": Css.RAW,
    "several objects: right by any object": Css.POSTERIOR,
}


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
        predictions, people = source.people
        return cls(
            images=compare_labels_with_people(predictions, people),
            judged=compare_predictions_with_people(predictions, people),
            accuracy=top1_accuracy(predictions),
            words=source.words,
        )

    def blocks(self) -> Iterator[Block]:
        """Shares of images with their intervals, and every classifier by what people see."""
        words, order = self.words, self.images["statistic"].to_list()
        label = f"Dots of the shares of {words.images} of which something is so, with intervals"
        reading = (
            f"Dots are shares of the {words.images} that {words.people} were asked about; lines "
            "are 95 % intervals."
        )
        rows = {"people-chart": _rows(self.images)}
        figures = [Figure("people-chart", label, _shares(order, words), reading, rows)]
        of_objects = self.judged.filter(pl.col("statistic").is_in(list(PART_TITLES)))
        if len(of_objects):  # where people were asked about objects
            rows = of_objects.join(self.accuracy, on="classifier", how="left").with_columns(
                pl.col("top-1") * 100
            )
            label = (
                f"Dots of the {words.classifiers}' accuracies on {words.images} of one object and "
                "of several"
            )
            reading = (
                f"Each dot is a {words.classifier}: its accuracy where {words.people} see one "
                "object, and where they see several, by the data set's label and by the "
                "labels of all objects."
            )
            data = {"judged-chart": _rows(rows)}
            figures.append(Figure("judged-chart", label, _classifiers(words), reading, data))
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


def _classifiers(words: Words) -> vega.Spec:
    title = f"top-1 accuracy on all {words.images} (%)"
    x = vega.number("top-1", title=title, scale={"zero": False})
    legend = {"orient": "bottom", "columns": 1, "labelLimit": 400}
    parts, each = list(PART_TITLES), list(PART_TITLES.values())
    color = vega.colors("statistic", parts, each, title=None, legend=legend)
    y = vega.number("share", title="right (%)", scale={"zero": False})
    tooltip = _tooltip(classifier=words.classifier, statistic="statistic")
    circle = {"type": "circle", "size": 40, "opacity": 0.8}
    dots = vega.mark(circle, x=x, y=y, color=color, tooltip=tooltip)
    return vega.chart("judged-chart", dots, height=300)
