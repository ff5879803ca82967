"""Inputs of the papers' figures: the files that a user gives, and the objects read from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bayesrep.protocols.humans import read_humans
from bayesrep.protocols.label_sets import LabelSets, read_label_sets
from bayesrep.protocols.subsets import read_grouping
from bayesrep.report.figure_inputs import FigurePaths, Inputs
from bayesrep.report.pictures import Pictures
from bayesrep.studies.answers import read_predictions
from bayesrep.studies.predictions import Predictions


@dataclass(frozen=True)
class PaperPaths(FigurePaths):
    """Paths that the user gives for a paper's figures; none is read before it is needed."""

    labels: tuple[Path, ...] = ()  # label sets
    humans: Path | None = None  # people's answers
    classes: Path | None = None  # groups of classes, by a column of it
    images: Path | None = None  # a folder of pictures
    by: str | None = None

    def names(self) -> set[str]:
        """Return the inputs that were given, by the names a user types."""
        return super().names() - {"--by"}


class PaperInputs(Inputs):
    """Objects that the papers' figures are drawn from, each read once."""

    given: PaperPaths

    @cached_property
    def answers_to_both(self) -> Sequence[Predictions]:
        """The answers to both data sets."""
        return read_predictions(self.path_of_study, self.given.roles)

    @cached_property
    def answers_with_confidence(self) -> Sequence[Predictions]:
        """Answers to both data sets, with their probabilities."""
        return read_predictions(self.path_of_study, self.given.roles, ranks=1, confidence=True)

    @cached_property
    def sets(self) -> LabelSets:
        """Right labels of the reference's images."""
        return read_label_sets(self.given.labels, self.reference)

    @cached_property
    def both_sets(self) -> Sequence[LabelSets]:
        """Right labels of the images of both data sets."""
        return [read_label_sets(self.given.labels, each) for each in self.answers_to_both]

    @cached_property
    def humans(self) -> Sequence[Predictions] | None:
        """People's answers to both data sets, if they are given."""
        path = self.given.humans
        return None if path is None else read_humans(path, *self.answers_to_both)

    @cached_property
    def groups(self) -> Any:
        """Superclasses."""
        return read_grouping(self.given.classes, self.reference.classes, self.given.by)

    @cached_property
    def pictures(self) -> Pictures:
        """The folder of images."""
        assert self.given.images is not None
        return Pictures.in_folder(self.given.images)

    @property
    def any_pictures(self) -> Pictures | None:
        """Pictures of the reference's images, where a folder is given."""
        return None if self.given.images is None else self.pictures
