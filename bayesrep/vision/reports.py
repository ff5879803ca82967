"""Report of a run of classifiers on a data set: a row for each, and suspicious results."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import PredictionError, PredictionWarning, Violation, listing
from bayesrep.studies.class_order import find_mistake
from bayesrep.studies.layout import MAX_RANKS
from bayesrep.vision.evaluation_set import ListedSet
from bayesrep.vision.run import DatasetRun
from bayesrep.vision.study_update import list_complete_classifiers, record_class_subset
from bayesrep.vision.timing import Stages

CHANCE_IMAGES = 200  # fewer images cannot tell a poor classifier from chance
CHANCE_LEVEL = 1e-6  # of as many right answers by chance: rarer ones are better than chance
_DONE_STATES = ("done", "already done", "judged again")


@dataclass(frozen=True, eq=False)
class Report:
    """Result of `predict`.

    Attributes
    ----------
    table
        One row per classifier: classifier, full_name (timm's, with its tag), images, top1, top5
        (fractions of the images answered; no top5 among fewer than five classes), seconds (of the
        network itself in this run, summed over threads), failures (images without an answer), of
        an earlier run's images judged_again (labelled otherwise now), evaluated_again (their files
        hold something else) and dropped (no longer there), status ("done", "already done", "judged
        again" where nothing had to be evaluated, or why there is nothing).
    failures
        image, reason, left_out (true if excluded from the study): images that could not be
        decoded.
    listed
        Classifiers that were added to the study's list, now that they have predictions on every
        data set.
    stages
        Times of each pass over the images; empty if nothing was evaluated.
    among
        Subset of classes for the answers, in words; empty for all.
    outside
        Number of images excluded since they show none of these classes.
    passed_over
        Files that were not evaluated, by reason. Together with the images that a classifier has
        answered and its failures they are `found` files.
    """

    table: pl.DataFrame
    failures: pl.DataFrame
    listed: tuple[str, ...] = ()
    stages: tuple[Stages, ...] = ()
    among: str = ""
    outside: int = 0
    passed_over: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    found: int = 0

    @property
    def left_out(self) -> pl.DataFrame:
        """The rows of classifiers without predictions."""
        return self.table.filter(~pl.col("status").is_in(_DONE_STATES))

    @property
    def refused(self) -> pl.DataFrame:
        """The failures that the study is not left without."""
        return self.failures.filter(~pl.col("left_out"))

    def facts(self) -> dict[str, Any]:
        """List what is known beside the table, as JSON has it."""
        return {
            "failures": self.failures.to_dicts(),
            "listed": list(self.listed),
            "among": self.among or None,
            "outside": self.outside,
            "found": self.found,
            "passed_over": {why: len(names) for why, names in self.passed_over.items()},
            "passes": [each.rounded() for each in self.stages],
            "stages": Stages.joined(self.stages).rounded(),
        }

    def changes(self) -> list[str]:
        """Describe the changes to an earlier run's rows, a line for equal classifiers."""
        kinds = {
            "judged_again": "judged again, labelled otherwise now",
            "evaluated_again": "evaluated again, their files hold something else",
            "dropped": "dropped, no longer there",
        }
        lines: list[str] = []
        groups = self.table.group_by(list(kinds), maintain_order=True).agg("classifier")
        for *counts, names in groups.iter_rows():
            parts = [f"{n:,} {what}" for n, what in zip(counts, kinds.values(), strict=True) if n]
            if parts:
                which = listing(names, "classifier")
                lines.append(f"Images of an earlier run: {'; '.join(parts)} ({which})")
        return lines


def make_report(
    run: DatasetRun, names: Sequence[str], full: Mapping[str, str], listed: ListedSet
) -> Report:
    """Report a run's results; `full` has timm's names of the classifiers."""
    rows = [_row(run, name, full.get(name)) for name in names]
    table = pl.DataFrame(rows, schema=_REPORT_SCHEMA, orient="row")
    if not table["status"].is_in(_DONE_STATES).any():
        if len(run.failures) == len(run.images):
            first = next(iter(run.failures.values()))
            raise PredictionError("no-image-decoded", first=first)
        status_of = dict(table.select("classifier", "status").rows()) | run.status
        # Where its network failed, a status is what that raised.
        reasons = [
            why
            if isinstance(why, Violation)
            else Violation("classifier-fails-on-images", failure=why)
            for why in status_of.values()
        ]
        raise PredictionError(first_reason(reasons))
    _warn_of_chance(run, table)
    failures = [(name, f.reason, f.left_out) for name, f in run.named_failures().items()]
    schema = {"image": pl.String, "reason": pl.String, "left_out": pl.Boolean}
    failed = pl.DataFrame(failures, schema=schema, orient="row")
    record_class_subset(run.study, run.dataset, listed.answer_classes)
    complete = tuple(list_complete_classifiers(run.study))
    passed_over = {why: names for why, names in listed.passed_over.items() if names}
    n_found = len(run.images) + sum(map(len, passed_over.values()))
    stages = tuple(run.stages)
    return Report(
        table, failed, complete, stages, listed.answer_classes, listed.outside, passed_over, n_found
    )


def _row(run: DatasetRun, name: str, full: str | None) -> tuple[Any, ...]:
    status, took = run.status.get(name), run.seconds.get(name, 0.0)
    result = run.results.get(name)
    if status is None:
        is_written = result is not None and result.file.exists()
        status = _DONE_STATES[1] if is_written else "no image can be decoded"
    if result is None or status not in _DONE_STATES:
        return name, full, 0, None, None, took, None, 0, 0, 0, str(status)
    count, top1, top5 = result.accuracies()
    earlier = result.judged_again, result.changed, result.dropped
    missing = len(run.images) - count
    within5 = top5 / count if run.images.classes.ranks == MAX_RANKS else None
    return name, full, count, top1 / count, within5, took, missing, *earlier, status


def _warn_of_chance(run: DatasetRun, table: pl.DataFrame) -> None:
    from scipy.stats import binom

    done = table.filter(pl.col("status").is_in(_DONE_STATES))
    count, right = done["images"].to_numpy(), (done["top1"] * done["images"]).round().to_numpy()
    chance = binom.sf(right - 1, count, 1 / len(run.images.classes)) > CHANCE_LEVEL
    at_chance = done.filter(pl.Series(chance & (count >= CHANCE_IMAGES)))["classifier"].to_list()
    if not at_chance:
        return
    where = f"data set {run.dataset!r}"
    if len(at_chance) < len(done):
        text = (
            f"{where}: {listing(at_chance, 'classifier')} no better than chance, others are; "
            "look at their weights"
        )
    else:
        best = int(np.argmax(right))
        name = done["classifier"][best]
        classes = run.images.classes
        mistake = find_mistake(*run.results[name].labels_and_predictions(), len(classes))
        order = "the sorted wnids" if classes.file is None else str(classes.file)
        cause = (
            f"{mistake.what}: read otherwise, {name} is right on {100 * mistake.otherwise:.1f} %"
            if mistake
            else f"the labels are in another order of classes than that of {order}, or the "
            "weights are untrained"
        )
        text = (
            f"{where}: no classifier is better than chance ({right[best]:.0f} of {count[best]} "
            f"images right at best); most likely {cause}"
        )
    warnings.warn(text, PredictionWarning, stacklevel=3)


def first_reason(reasons: Sequence[Violation]) -> Violation:
    """The first of several reasons, with the number of the others."""
    more = f" ({len(reasons) - 1} more were left out)" if len(reasons) > 1 else ""
    return reasons[0].append_text(more)


_REPORT_SCHEMA = {
    "classifier": pl.String,
    "full_name": pl.String,
    "images": pl.Int64,
    "top1": pl.Float64,
    "top5": pl.Float64,
    "seconds": pl.Float64,
    "failures": pl.Int64,
    "judged_again": pl.Int64,
    "evaluated_again": pl.Int64,
    "dropped": pl.Int64,
    "status": pl.String,
}
