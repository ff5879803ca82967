"""Inputs of figures: the files that a user gives, and the objects read from them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from bayesrep.posterior import read_posterior
from bayesrep.protocols.humans import read_humans
from bayesrep.protocols.label_sets import LabelSets, read_label_sets
from bayesrep.protocols.people import People, read_people
from bayesrep.protocols.subsets import read_grouping
from bayesrep.report import gallery
from bayesrep.studies.answers import read_every_answer, read_predictions
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.reading import read_study
from bayesrep.studies.study import Study
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.studies.validation import REQUIRED_ROLES


@dataclass(frozen=True)
class FigurePaths:
    """Paths that the user gives for figures; none is read before it is needed."""

    study: Path | None = None  # a study's folder
    posterior: Path | None = None
    # Names of the reference and the replication, where the study does not say
    roles: tuple[str, str] = REQUIRED_ROLES
    # Label sets, people's answers, the objects they see and the labels they select, groups of
    # classes, a folder of images.
    labels: tuple[Path, ...] = ()
    humans: Path | None = None
    objects: Path | None = None
    counts: Path | None = None
    classes: Path | None = None
    images: Path | None = None
    by: str | None = None  # the column of `classes`

    def names(self) -> set[str]:
        """Return the inputs that were given, by the names a user types."""
        positional = {"study", "posterior"}
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        filled = {name for name, value in values.items() if value and name not in ("roles", "by")}
        return {name if name in positional else f"--{name}" for name in filled}


class Inputs:
    """Objects that figures are drawn from, each read once."""

    def __init__(self, given_inputs: FigurePaths) -> None:
        self.given = given_inputs

    @cached_property
    def study(self) -> Study:
        """The study."""
        return read_study(self._path)

    @cached_property
    def posterior(self) -> Any:
        """The posterior."""
        assert self.given.posterior is not None
        return read_posterior(self.given.posterior)

    @cached_property
    def answers_to_both(self) -> Sequence[Predictions]:
        """The answers to both data sets."""
        return read_predictions(self._path, self.given.roles)

    @cached_property
    def answers_with_confidence(self) -> Sequence[Predictions]:
        """Answers to both data sets, with their probabilities."""
        return read_predictions(self._path, self.given.roles, ranks=1, confidence=True)

    @property
    def study_or_answers(self) -> Study | Sequence[Predictions]:
        """The study or, where it awaits counts or others are answered too, all answers."""
        folder = StudyFolder(self._path)
        if folder.awaits_counts or set(folder.predicted_datasets) - set(folder.roles.values()):
            # All are drawn: the replication need not be named.
            names = folder.dataset_names(self.given.roles)
            unnamed = {REQUIRED_ROLES[1]} - set(folder.predicted_datasets)
            return read_every_answer(self._path, [each for each in names if each not in unnamed])
        return self.study

    @cached_property
    def reference(self) -> Predictions:
        """The answers to the reference."""
        return read_predictions(self._path, self.given.roles[:1])[0]

    @cached_property
    def people(self) -> People:
        """Read people's answers: the objects they see and the labels they select."""
        return read_people(self.reference, counts=self.given.counts, objects=self.given.objects)

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
        return (
            None
            if self.given.humans is None
            else read_humans(self.given.humans, *self.answers_to_both)
        )

    @cached_property
    def groups(self) -> Any:
        """Superclasses."""
        return read_grouping(self.given.classes, self.reference.classes, self.given.by)

    @cached_property
    def pictures(self) -> gallery.Pictures:
        """The folder of images."""
        assert self.given.images is not None
        return gallery.Pictures.in_folder(self.given.images)

    @property
    def any_pictures(self) -> gallery.Pictures | None:
        """Pictures of the reference's images, where a folder is given."""
        return None if self.given.images is None else self.pictures

    @property
    def _path(self) -> Path:
        assert self.given.study is not None
        return self.given.study
