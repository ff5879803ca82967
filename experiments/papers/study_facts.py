"""Inputs of the paper's figures: a study, and the truth where it is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bayesrep.errors import StudyError
from bayesrep.estimators.annotator_match import take_annotated, usual_annotators
from bayesrep.estimators.replicates import Replicates
from bayesrep.numerics.estimands import accuracy_line, bias_corrected_gap
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.types import Floats

_NAMED_CLASSIFIERS = 5  # classifiers that a message lists


@dataclass(frozen=True, eq=False)
class StudyFacts:
    """A study and what is known about it."""

    study: Study  # the study
    # [C]: true adjusted accuracies; of a study of real images, None: nothing about truth is drawn
    truth: Floats | None = None
    # True bias-corrected gap, mean over classifiers. Left out, it is that of ``truth`` below the
    # accuracies on the reference.
    true_gap: float | None = None
    seed: int = 0  # seed of all that is random

    def __post_init__(self) -> None:
        if self.truth is not None and self.true_gap is None:
            gap = bias_corrected_gap(self.reference_accuracy, self.truth).mean()
            object.__setattr__(self, "true_gap", float(gap))

    @classmethod
    def from_study(cls, study: Study, *, seed: int = 0) -> "StudyFacts":
        """A study with the truth that it carries itself, if it does."""
        if study.truth is None:
            return cls(study, seed=seed)
        adjusted = study.truth.adjusted_accuracy
        gap = bias_corrected_gap(study.truth.reference_accuracy, adjusted).mean()
        return cls(study, adjusted, float(gap), seed)

    @property
    def all_cells(self) -> Replicates:
        """The study's cells, as the estimators take them."""
        return Replicates.from_study(SufficientStatistics.from_study(self.study))

    @property
    def annotators(self) -> int:
        """The most annotators that 99 % of the images of each data set have."""
        return usual_annotators(self.all_cells)

    @property
    def matched_cells(self) -> Replicates:
        """The cells of the images that have as many."""
        return take_annotated(self.all_cells, self.annotators)

    @property
    def reference_accuracy(self) -> Floats:
        """Accuracy of each classifier on the reference, [C]."""
        return self.all_cells.reference.accuracy()[0]

    @property
    def replication_accuracy(self) -> Floats:
        """Accuracy of each classifier on the replication, [C]."""
        return self.all_cells.replication.accuracy()[0]

    @property
    def true_slope(self) -> float | None:
        """Slope of the line of true adjusted on reference accuracy."""
        if self.truth is None:
            return None
        return float(accuracy_line(self.reference_accuracy, self.truth)[0])

    def accuracies(self) -> dict[str, Any]:
        """Collect the accuracies that most figures start from, for JSON; unknown truth is None."""
        return {
            "reference_accuracy": self.reference_accuracy.tolist(),
            "true_adjusted_accuracy": None if self.truth is None else self.truth.tolist(),
            "true_gap": self.true_gap,
        }

    def columns(self, classifiers: Sequence[str]) -> list[int]:
        """Return the columns of the named classifiers."""
        place = {name: column for column, name in enumerate(self.study.classifiers)}
        for name in classifiers:
            if name not in place:
                some = ", ".join(self.study.classifiers[:_NAMED_CLASSIFIERS])
                rest = ", ..." if len(place) > _NAMED_CLASSIFIERS else ""
                raise StudyError(
                    "classifier-unknown-to-study", classifier=name, choices=some, ellipsis=rest
                )
        return [place[name] for name in classifiers]
