"""Every classifier on both data sets: a scatter with controls, and a table of all estimates."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import polars as pl

from bayesrep.estimators import classifier_table
from bayesrep.estimators.annotators import compare_annotators
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.report import vega
from bayesrep.report.figures import accuracy_axes, interval_points, legend_below, panels
from bayesrep.report.methods import color_of, label_of, title_of
from bayesrep.report.sections.section import (
    Block,
    Figure,
    Section,
    Source,
    Table,
    numbers,
    point_estimates,
    quiet,
    search,
    slider,
)
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.study import Study
from bayesrep.summary.tables import accuracies
from bayesrep.types import Floats

DIAGNOSED = (
    {"name": "rhat", "title": "R-hat", "kind": "number"},
    {"name": "ess", "title": "ESS", "kind": "count"},
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Accuracies(Section):
    """Accuracies of every classifier by every method.

    Attributes
    ----------
    methods
        In order; the posterior is the last, if there is one.
    classifiers
        classifier, reference, replication, then for each method METHOD, METHOD_lower and
        METHOD_upper (adjusted accuracies), and rhat and ess of the posterior's.
    naive : float64 [n + 1, C]
        Adjusted accuracy by naive matching with 0 ... n annotators; with none it is as measured.
    """

    methods: tuple[str, ...]
    classifiers: pl.DataFrame
    naive: Floats

    id, short, takes = "accuracies", "Accuracies", "posterior"
    title = "Every classifier on both data sets"

    @classmethod
    def of(cls, source: Source) -> Self:
        """Take the point estimates and, where there is one, the posterior."""
        study = source.study
        summary, missing = source.attempt(accuracies)
        by_annotators = compare_annotators(study)["naive"].to_numpy()
        raw = study.replication.correct.mean(axis=0)
        table = pl.DataFrame({"classifier": study.classifiers}).with_columns(
            reference=study.reference.correct.mean(axis=0), replication=raw
        )
        points = classifier_table(source.points())
        methods: list[str] = []
        for rows in (points,) if summary is None else (points, summary):
            for (method,), part in rows.group_by("method", maintain_order=True):
                methods.append(str(method))
                columns = _of_method(part, methods[-1])
                table = table.join(columns, on="classifier", how="left", maintain_order="left")
        return cls(
            methods=tuple(methods),
            classifiers=table,
            naive=np.vstack([raw, by_annotators.reshape(-1, len(raw))]),
            missing=missing,
        )

    def blocks(self) -> Iterator[Block]:
        """The scatter, then the table."""
        most = len(self.naive) - 1
        titles = {method: title_of(method) for method in self.methods}
        chosen = {"value": self.methods[-1], "options": list(titles.items())}
        label = "Accuracy on the replication against accuracy on the reference"
        table, names = self.classifiers, self.classifiers["classifier"].to_list()
        values = {name: numbers(table[name].to_numpy()) for name in table.columns[1:]}
        yield self.block(
            lead="Move over a point for its name. Naive matching with no annotator is the accuracy "
            "as measured; more annotators leave less noise in the matching, never none.",
            missing=self.missing,
            controls=[
                {"kind": "select", "id": "method", "label": "Accuracies", **chosen},
                slider("annotators", "Annotators used", 0, most, most),
                search("search"),
            ],
            figures=[Figure("scatter", label, _scatter())],
            data={
                "labels": titles,
                "classifiers": {"classifier": names, **values},
                "columns": list(self._columns()),
                "naive": numbers(self.naive),
            },
        )
        yield Block(
            id="table",
            short="Table",
            title="All estimates",
            lead="Adjusted accuracies in percent: what each classifier would score on the "
            "replication if its images were selected as often as the reference's. Click a heading "
            "to sort.",
            long=True,
            controls=[search("table-search")],
            table=Table("classifiers", "All estimates of every classifier", csv=True),
        )

    def _columns(self) -> Iterator[dict[str, str]]:
        """The columns of the table, as the script takes them."""
        yield {"name": "classifier", "title": "classifier", "kind": "name"}
        for name in REQUIRED_ROLES:
            yield {"name": name, "title": name, "kind": "percent"}
        for method in self.methods:
            if method == "raw":
                continue
            yield {"name": method, "title": title_of(method), "kind": "percent"}
            lower, upper = f"{method}_lower", f"{method}_upper"
            if self.classifiers[lower].null_count() < len(self.classifiers):
                title = f"95 % of {label_of(method)}"
                yield {"name": lower, "other": upper, "title": title, "kind": "interval"}
        if "rhat" in self.classifiers.columns:
            yield from DIAGNOSED


def _of_method(rows: pl.DataFrame, method: str) -> pl.DataFrame:
    """A method's columns, and what the posterior's are worth."""
    diagnosed = "rhat" in rows.columns
    return rows.select(
        "classifier",
        pl.col("adjusted_accuracy").alias(method),
        *(pl.col(end).alias(f"{method}_{end}") for end in ("lower", "upper")),
        *[pl.col("rhat"), pl.min_horizontal("ess_bulk", "ess_tail").alias("ess")] * diagnosed,
    )


def _scatter() -> vega.Spec:
    free = {"zero": False}
    x = vega.number("reference", title="accuracy on the reference (%)", scale=free)
    kinds = ["no drop", "fitted line"]
    lines = vega.mark(
        {"type": "line"},
        data="lines",
        x={**x, "field": "x"},
        y=vega.number("y", title="accuracy on the replication (%)", scale=free),
        strokeDash=vega.name("which", scale={"domain": kinds, "range": [[5, 4], [1, 0]]}),
        color=vega.colors("which", kinds, [vega.SOFT, vega.POSTERIOR], legend=None),
    )

    def found(this: Any, other: Any) -> vega.Spec:
        """One value for what the search found, another for the rest."""
        return {"condition": {"test": "datum['found']", "value": this}, "value": other}

    rule: vega.Spec = {"type": "rule", "color": vega.POSTERIOR, "opacity": 0.45}
    rules = vega.mark(rule, x=x, y=vega.number("lower"), y2={"field": "upper"})
    points = vega.mark(
        {"type": "circle"},
        x=x,
        y=vega.number("accuracy"),
        color=found(vega.RAW, vega.POSTERIOR),
        size=found(150, 38),
        opacity=found(1, 0.75),
        tooltip=[
            vega.name("classifier"),
            vega.number("reference", format=".1f", title="reference (%)"),
            vega.number("accuracy", format=".1f", title="shown (%)"),
            vega.number("lower", format=".1f"),
            vega.number("upper", format=".1f"),
        ],
    )
    apart = {"scale": {"color": "independent"}}
    return vega.chart(lines, rules, points, height=420, resolve=apart)


@quiet()
def figure(study: Study, posterior: Posterior, *, bootstrap: int = 0, seed: int = 0) -> Any:
    """Adjusted against reference accuracy, as measured, by EM + spline and by the posterior."""
    points = partial(point_estimates, study, bootstrap, seed)
    shown = Accuracies.of(Source(study, Fitted(study, posterior), points))
    rows, own = shown.classifiers, shown.methods[-1]
    figure, (axes,) = panels(1)
    reference = rows["reference"].to_numpy()
    accuracy_axes(axes, reference)
    for method in ("raw", "em-spline"):
        style = {"color": color_of(method), "ms": 3, "label": label_of(method)}
        axes.plot(100 * reference, 100 * rows[method].to_numpy(), "o", **style)
    values = (100 * rows[name].to_numpy() for name in (own, f"{own}_lower", f"{own}_upper"))
    style = {"color": color_of(own), "ms": 3, "label": label_of(own)}
    interval_points(axes, 100 * reference, *values, **style)
    legend_below(figure)
    return figure
