"""Accuracies of every classifier by every method, of which pages and figures are made."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from bayesrep.estimators import classifier_table
from bayesrep.report.answer import Estimate
from bayesrep.report.sections.section import Source, limits, numbers
from bayesrep.report.table_format import percent
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.vocabulary import Words, words_of
from bayesrep.summary.tables import accuracies
from bayesrep.types import Floats


class AccuracyEstimates(NamedTuple):
    """Accuracies of every classifier by every method."""

    methods: tuple[str, ...]  # in order; the posterior is the last, if there is one
    # classifier, reference, replication, then for each method METHOD, METHOD_lower and METHOD_upper
    # (adjusted accuracies), truth where it is known, and rhat and ess of the posterior's
    classifiers: pl.DataFrame
    missing: str  # why there is no posterior's
    words: Words  # words of the study

    def range(self) -> tuple[float, float]:
        """Ends of both axes of the figure of all classifiers, in percent."""
        own = self.methods[-1]
        names = [*REQUIRED_ROLES, own, f"{own}_lower", f"{own}_upper"]
        names += ["truth"] if self.knows_truth else []
        return limits(*(self.classifiers[name].to_numpy() for name in names))

    @property
    def has_intervals(self) -> bool:
        """Return whether the last method's accuracies have intervals."""
        lower = self.classifiers[f"{self.methods[-1]}_lower"]
        return lower.null_count() < len(lower)

    @property
    def knows_truth(self) -> bool:
        """Return whether the study knows its true accuracies."""
        return "truth" in self.classifiers.columns


def estimates(source: Source) -> AccuracyEstimates:
    """Take the point estimates and, where there is one, the posterior."""

    def make() -> AccuracyEstimates:
        summary, missing = source.attempt(accuracies)
        points = classifier_table(source.points())
        return join_tables(source.study, [points, *([] if summary is None else [summary])], missing)

    return source.make_once("estimates", make)


def join_tables(
    study: Study, tables: Sequence[pl.DataFrame], missing: str = ""
) -> AccuracyEstimates:
    """Join the tables of several methods into one, a row per classifier."""
    table = pl.DataFrame({"classifier": study.classifiers}).with_columns(
        reference=study.reference.correct.mean(axis=0),
        replication=study.replication.correct.mean(axis=0),
    )
    if study.truth is not None:
        table = table.with_columns(truth=np.asarray(study.truth.adjusted_accuracy, dtype=float))
    methods: list[str] = []
    for rows in tables:
        for (method,), part in rows.group_by("method", maintain_order=True):
            methods.append(str(method))
            columns = [pl.col("adjusted_accuracy").alias(methods[-1])]
            columns += [pl.col(end).alias(f"{method}_{end}") for end in ("lower", "upper")]
            if "rhat" in part.columns:
                columns += [pl.col("rhat"), pl.min_horizontal("ess_bulk", "ess_tail").alias("ess")]
            own = part.select("classifier", *columns)
            table = table.join(own, on="classifier", how="left", maintain_order="left")
    return AccuracyEstimates(tuple(methods), table, missing, words_of(study))


def classifier_rows(
    measured: AccuracyEstimates, naive: Floats | None = None
) -> list[dict[str, Any]]:
    """A row for every classifier, fractions, of which both figures of all classifiers are drawn."""
    columns = columns_of(measured.classifiers)
    columns["number"] = list(range(len(columns["classifier"])))
    if naive is not None:
        columns["naive_by"] = numbers(naive.T)
    every = zip(*columns.values(), strict=True)
    return [dict(zip(columns, values, strict=True)) for values in every]


def columns_of(table: pl.DataFrame) -> dict[str, Any]:
    """The table by columns, fractions."""
    values = {name: numbers(table[name].to_numpy()) for name in table.columns[1:]}
    return {"classifier": table["classifier"].to_list(), **values}


def interval_text(part: Estimate) -> str:
    """An estimate in percent, with its interval where that is known."""
    text = percent(part.value)
    if part.lower is not None and part.upper is not None:
        text += f" ({percent(part.lower)} to {percent(part.upper)})"
    return text.replace("-", "\N{MINUS SIGN}")
