"""Inputs of figures: the files that a user gives, and the objects read from them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from bayesrep.posterior import read_posterior
from bayesrep.protocols.people import People, read_people
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
    objects: Path | None = None  # that people see, and labels that they select
    counts: Path | None = None

    def names(self) -> set[str]:
        """Return the inputs that were given, by the names a user types."""
        positional = {"study", "posterior"}
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        filled = {name for name, value in values.items() if value and name != "roles"}
        return {name if name in positional else f"--{name}" for name in filled}


class Inputs:
    """Objects that figures are drawn from, each read once."""

    def __init__(self, given_inputs: FigurePaths) -> None:
        self.given = given_inputs

    @cached_property
    def study(self) -> Study:
        """The study."""
        return read_study(self.path_of_study)

    @cached_property
    def posterior(self) -> Any:
        """The posterior."""
        assert self.given.posterior is not None
        return read_posterior(self.given.posterior)

    @property
    def study_or_answers(self) -> Study | Sequence[Predictions]:
        """The study or, where it awaits counts or others are answered too, all answers."""
        folder = StudyFolder(self.path_of_study)
        if folder.awaits_counts or set(folder.predicted_datasets) - set(folder.roles.values()):
            # All are drawn: the replication need not be named.
            names = folder.dataset_names(self.given.roles)
            unnamed = {REQUIRED_ROLES[1]} - set(folder.predicted_datasets)
            return read_every_answer(
                self.path_of_study, [each for each in names if each not in unnamed]
            )
        return self.study

    @cached_property
    def reference(self) -> Predictions:
        """The answers to the reference."""
        return read_predictions(self.path_of_study, self.given.roles[:1])[0]

    @cached_property
    def people(self) -> People:
        """Read people's answers: the objects they see and the labels they select."""
        return read_people(self.reference, counts=self.given.counts, objects=self.given.objects)

    @property
    def path_of_study(self) -> Path:
        """The study's folder."""
        assert self.given.study is not None
        return self.given.study
