"""Every classifier on both data sets: how it moves, what it loses, and all of its estimates."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from bayesrep.estimators import matching_sentences
from bayesrep.estimators.annotators import compare_annotators
from bayesrep.report.answer import Estimate
from bayesrep.report.methods import label_of, title_of
from bayesrep.report.sections.accuracy_estimates import AccuracyEstimates, estimates, interval_text
from bayesrep.report.sections.drops_figure import drops_figure
from bayesrep.report.sections.section import (
    Block,
    Section,
    Source,
    Table,
    chooser,
    limits,
    search,
    select,
    slider,
)
from bayesrep.report.table_format import percent
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Floats

DIAGNOSTIC_COLUMNS = (
    {"name": "rhat", "title": "R-hat", "kind": "number"},
    {"name": "ess", "title": "ESS", "kind": "count"},
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Accuracies(Section):
    """Accuracies of every classifier by every method."""

    methods: tuple[str, ...]  # methods and classifiers as in `AccuracyEstimates`
    classifiers: pl.DataFrame
    # [n + 1, C]: adjusted accuracy by naive matching with 0 ... n annotators; with none it is as
    # measured.
    naive: Floats
    # With how many annotators images were matched, and what that leaves out
    matching: tuple[str, ...]

    id, short, takes = "accuracies", "{Classifiers}", "posterior"
    title = "What every {classifier} loses"
    waits = True

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Take the point estimates and, where there is one, the posterior."""
        estimated = estimates(source)
        by_annotators = compare_annotators(source.study)["naive"].to_numpy()
        raw = estimated.classifiers["replication"].to_numpy()
        return cls(
            methods=estimated.methods,
            classifiers=estimated.classifiers,
            naive=np.vstack([raw, by_annotators.reshape(-1, len(raw))]),
            matching=tuple(matching_sentences(source.points())),
            missing=estimated.missing,
            words=source.words,
        )

    def blocks(self) -> Iterator[Block]:
        """Drops of all classifiers, then the table."""
        words, one, most = self.words, self.words.classifier, len(self.naive) - 1
        own, titles = self.methods[-1], [(method, title_of(method)) for method in self.methods]
        estimated = AccuracyEstimates(self.methods, self.classifiers, self.missing, words)
        truth = "truth" in self.classifiers.columns
        # A single classifier needs neither search nor choice.
        several, ends = len(self.classifiers) > 1, ("none", "all there are")
        yield self.block(
            lead=(f"Choose a {one} by its name, or by touching its point. " if several else "")
            + f"Naive matching with no {words.annotator} is the accuracy as measured; more "
            f"{words.annotators} leave less noise in the matching, never none.",
            controls=[
                select("method", "Adjusted by", titles, own),
                slider("annotators", f"{words.annotators.title()} used", 0, most, most, ends=ends),
                *([search("search", words), chooser("classifier", words)] if several else []),
            ],
            has_sentence=True,
            figures=[drops_figure(estimated, self.naive)],
            data={"own": own, "columns": list(self._columns())},
        )
        yield Block(
            id="table",
            short="Table",
            title="All estimates",
            lead=f"In percent: what each {one} would score on the replication if its "
            f"{words.images} were selected as often as the reference's. In the bars a ring is the "
            "accuracy as measured, the dot the adjusted one with its 95 % interval"
            + (", the upright line the truth" if truth else "")
            + ("; click a heading to sort." if several else ".")
            + "".join(f" {sentence}" for sentence in self.matching),
            long=True,
            controls=[
                *([search("table-search", words)] if several else []),
                {"kind": "check", "id": "all-methods", "label": "Other methods too"},
            ],
            table=Table("classifiers", f"All estimates of every {one}", csv=True),
        )

    def _columns(self) -> Iterator[dict[str, Any]]:
        """The columns of the table, as the script takes them: what matters most comes first."""
        own, *others = reversed(self.methods)
        yield {"name": "classifier", "title": self.words.classifier, "kind": "name"}
        yield {"name": own, "title": title_of(own), "kind": "percent"}
        low, high = limits(
            *(self.classifiers[name].to_numpy() for name in ("replication", own)),
            *(self.classifiers[f"{own}_{end}"].to_numpy() for end in ("lower", "upper")),
            pad=0.02,
        )
        bars = {"name": "bars", "title": f"accuracy, {low:.0f} to {high:.0f} %", "kind": "bars"}
        yield {**bars, "of": own, "low": low / 100, "high": high / 100}
        yield from self._interval(own)
        for name in REQUIRED_ROLES:
            yield {"name": name, "title": name, "kind": "percent"}
        further: list[dict[str, Any]] = []
        for method in others[::-1]:
            if method != "raw":
                further += [{"name": method, "title": title_of(method), "kind": "percent"}]
                further += self._interval(method)
        further += DIAGNOSTIC_COLUMNS if "rhat" in self.classifiers.columns else ()
        yield from ({**each, "other": True} for each in further)

    def _interval(self, method: str) -> Iterator[dict[str, Any]]:
        lower, upper = f"{method}_lower", f"{method}_upper"
        if self.classifiers[lower].null_count() < len(self.classifiers):
            title = f"95 % of {label_of(method)}"
            yield {"name": lower, "upper": upper, "title": title, "kind": "interval"}


def classifier_sentences(
    accuracies: "Accuracies", ranks: tuple[Floats, Floats] | None = None
) -> list[str]:
    """Write the sentence shown for each classifier once it is chosen."""
    own, count = accuracies.methods[-1], len(accuracies.classifiers)
    sentences: list[str] = []
    for number, row in enumerate(accuracies.classifiers.iter_rows(named=True)):
        reference, measured, adjusted = row["reference"], row["replication"], row[own]
        lower, upper = row[f"{own}_lower"], row[f"{own}_upper"]
        ends = (None if end is None else reference - end for end in (upper, lower))
        remaining = Estimate(reference - adjusted, *ends)
        text = (
            f"{row['classifier']}: {percent(reference)} % on the reference, {percent(measured)} % "
            f"on the replication as measured, {interval_text(Estimate(adjusted, lower, upper))} % "
            f"at the same selection frequency. Of {percent(reference - measured)} points, "
            f"{percent(adjusted - measured)} come from selection and "
            f"{interval_text(remaining)} remain."
        )
        if ranks is not None:
            (mean, low, high), measured_rank = ranks[0][:, number], ranks[1][number]
            text += (
                f" By it, it ranks {mean:.0f} of {count} ({low:.0f} to {high:.0f}); as measured "
                f"{measured_rank:g}."
            )
        sentences.append(text)
    return sentences
