"""Study contents, complete or not yet, as readers return them and folders hold them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self, TypeAlias

from bayesrep.errors import StudyError, plain_text
from bayesrep.studies import validation
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.answers import read_predictions
from bayesrep.studies.attempts import Attempts
from bayesrep.studies.leniency import people_violations
from bayesrep.studies.manifest import JSON, Manifest, Truth, selections_of
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.reading import read_study
from bayesrep.studies.study import Study
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.writing import add_counts, write_folder

Need: TypeAlias = Literal["counts", "predictions"]


@dataclass(frozen=True, eq=False)
class StudyContents:
    """Contents of a study, complete or not yet.

    Attributes
    ----------
    datasets : mapping of role to AnnotatedSet
        Data sets with counts; empty while the counts are missing.
    classifiers : tuple of str
        Classifiers whose correctness the data sets hold; empty while it is missing.
    answers : sequence of Predictions
        Classifiers' answers, where known: without counts on every data set, the
        reference first.
    attempts : sequence of Attempts
        Attempts of classifiers that were asked several times.
    name : str or None
        The study's name, where it has one.
    provenance, truth
        As the attributes of `Study`.
    notes : tuple of str
        Sentences on what was left out, counted or taken to be so.
    left_out : mapping of data set to mapping of image to reason
        Images that could not be decoded and are left out.
    """

    datasets: Mapping[str, AnnotatedSet] = field(default_factory=dict[str, AnnotatedSet])
    classifiers: tuple[str, ...] = ()
    answers: Sequence[Predictions] = ()
    attempts: Sequence[Attempts] = ()
    name: str | None = None
    provenance: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    truth: Truth | None = None
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    @classmethod
    def from_study(
        cls,
        study: Study,
        *,
        answers: Sequence[Predictions] = (),
        attempts: Sequence[Attempts] = (),
        notes: tuple[str, ...] = (),
    ) -> Self:
        """The contents of a study that is whole, and what is known beside it."""
        parts = study.datasets, study.classifiers, answers, attempts
        facts = study.name, study.provenance, study.truth, notes, study.left_out
        return cls(*parts, *facts)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Read the contents of a folder.

        Raises
        ------
        StudyError
            With the first broken rule; where the folder has counts and no predictions.
        """
        folder = StudyFolder(Path(path))
        if not folder.awaits_counts:
            return cls.from_study(read_study(path), attempts=folder.attempts)
        return cls(
            answers=[read_predictions(path, (n,), ranks=1)[0] for n in folder.predicted_datasets],
            attempts=folder.attempts,
            provenance=folder.provenance,
            left_out=folder.images_left_out,
        )

    def lacks(self, need: Need) -> bool:
        """Test whether a part that a study needs is missing."""
        return not (self.datasets if need == "counts" else self.classifiers or self.answers)

    def study(self) -> Study:
        """The study.

        Raises
        ------
        StudyError
            Where it lacks counts or predictions, or breaks a rule.
        """
        name = self.name or "study"
        if self.lacks("counts"):
            raise StudyError("study-lacks-counts", where=plain_text(name))
        if self.lacks("predictions"):
            raise StudyError("study-lacks-predictions", where=plain_text(name))
        return Study(self.datasets, self.classifiers, name, self.provenance, self.truth)

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write a folder, whole or not at all; counts are added to answers that await them.

        Parameters
        ----------
        path, force
            As for `Study.write`.

        Raises
        ------
        StudyError
            As `Study.write`.
        """
        datasets = list(self.datasets.values())
        shown = [data.shown for role, data in self.datasets.items() if role in REQUIRED_ROLES]
        where = f"study {self.name or 'study'!r}"
        validation.raise_first(people_violations(where, self.provenance, shown))
        roles: dict[str, str] = {role: data.name for role, data in self.datasets.items()}
        if not datasets and len(self.answers) == len(REQUIRED_ROLES):
            named = (each.dataset for each in self.answers)
            roles |= zip(REQUIRED_ROLES, named, strict=True)
        facts = self.classifiers or None, self.provenance, self.truth, selections_of(datasets)
        manifest = Manifest(self.name or "study", roles, *facts)
        if self.lacks("predictions") and StudyFolder(Path(path)).awaits_counts:
            add_counts(path, manifest, datasets)
        else:
            write_folder(path, manifest, datasets, self.answers, self.attempts, force=force)
