"""What a folder holds of a study: the one place that looks, and no table is read to know it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, listing
from bayesrep.files import strict_json
from bayesrep.studies import folder
from bayesrep.studies.attempts import Attempts, read_attempts
from bayesrep.studies.manifest import (
    JSON,
    Manifest,
    awaits_counts,
    describe_missing_study,
    read_manifest,
)
from bayesrep.studies.problems import value
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.tables import read_failures

_COLUMNS: Mapping[str, Sequence[str]] = {
    "labels": folder.LABELS[:1],
    "top-5": folder.LABELS,
    "probabilities": (folder.LABELS[0], folder.PROBABILITIES[0]),
}


@dataclass(frozen=True, eq=False)
class StudyFolder:
    """A folder of a study, or of answers that await their counts; or one that is still to be.

    Each question looks at the folder when it is asked. What a file says that is broken is a
    `StudyError`.

    Attributes
    ----------
    path : Path
        The folder.
    """

    path: Path

    @property
    def is_study(self) -> bool:
        """Whether it has a study.json."""
        return (self.path / folder.MANIFEST).exists()

    @property
    def awaits_counts(self) -> bool:
        """Whether it holds predictions, as `bayesrep.predict` makes them, but no study yet."""
        return awaits_counts(self.path)

    @cached_property
    def manifest(self) -> Manifest | None:
        """What study.json says; None where there is none yet."""
        return value(partial(read_manifest, self.path), self.path) if self.is_study else None

    @property
    def roles(self) -> Mapping[str, str]:
        """Role to data set; of answers that await their counts, as far as somebody said."""
        if self.manifest is not None:
            return self.manifest.roles
        content = self._object(folder.ROLES)
        if content is None or not all(isinstance(name, str) for name in content.values()):
            raise StudyError("roles-file-not-mapping", file=self.path / folder.ROLES)
        return content

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Where it came from; nothing where nobody said."""
        if self.manifest is not None:
            return self.manifest.provenance
        content = self._object(folder.PROVENANCE)
        if content is None:
            raise StudyError("provenance-file-not-object", file=self.path / folder.PROVENANCE)
        return content

    @property
    def images_left_out(self) -> dict[str, dict[str, str]]:
        """The images that it is left without, and why, by data set."""
        failures = value(partial(read_failures, self.path), self.path)
        left_out: dict[str, dict[str, str]] = {}
        for dataset, image, why in failures.filter("left_out").drop("left_out").iter_rows():
            left_out.setdefault(dataset, {})[image] = why
        return left_out

    @property
    def attempts(self) -> Sequence[Attempts]:
        """The repeated attempts of its classifiers; often none."""
        return read_attempts(self.path) if (self.path / folder.ATTEMPTS).exists() else ()

    @property
    def predicted_datasets(self) -> list[str]:
        """The data sets with predictions, sorted."""
        return folder.names_in(self.path / folder.PREDICTIONS, "")

    def dataset_names(self, datasets: Sequence[str]) -> list[str]:
        """The names of data sets given by name, or by role where it says which they are."""
        if not self.path.is_dir():
            raise StudyError(describe_missing_study(self.path))
        roles = self.roles
        return [roles.get(name, name) for name in datasets]

    def common_classifiers(self, names: Sequence[str]) -> list[str]:
        """The classifiers that it lists, or else those with a file for each of some data sets."""
        listed = self.manifest.classifiers if self.manifest is not None else ()
        predicted = {name: folder.predicted_classifiers(self.path, name) for name in names}
        for name, classifiers in predicted.items():
            if not classifiers and not (listed and name in self.roles.values()):
                known = self.predicted_datasets
                raise StudyError(
                    "data-set-without-predictions",
                    path=self.path,
                    dataset=name,
                    known_datasets=listing(known, "data set") if known else "no data set",
                )
        if listed:
            return list(listed)
        if not (common := sorted(set.intersection(*predicted.values()))):
            among = ", ".join(map(repr, names))
            raise StudyError("no-classifier-in-common", path=self.path, datasets=among)
        return common

    def find_parts(self, datasets: Sequence[str] = REQUIRED_ROLES) -> frozenset[str]:
        """What is there of some data sets, which are given by role or name."""
        names = self.dataset_names(datasets)
        counts = (self.path / file for file in (folder.COUNTS, folder.ANNOTATIONS))
        parts = {"counts"} if self.is_study and any(map(Path.is_file, counts)) else set[str]()
        if common := set.intersection(
            *(folder.predicted_classifiers(self.path, name) for name in names)
        ):
            files = [self.path / folder.prediction_file(name, min(common)) for name in names]
            columns = set.intersection(*map(_columns, files))
            parts |= {part for part, needed in _COLUMNS.items() if columns.issuperset(needed)}
            parts |= {"answers"} | ({"study"} if parts & {"counts"} else set())
        if not parts and not self.predicted_datasets:
            raise StudyError("neither-study-nor-predictions", path=self.path)
        return frozenset(parts)

    def _object(self, name: str) -> dict[str, Any] | None:
        """What a JSON file holds, nothing where there is none; None where it is not an object."""
        file = self.path / name
        content: Any = strict_json.read(file) if file.exists() else {}
        return content if isinstance(content, dict) else None


def _columns(file: Path) -> set[str]:
    try:
        return set(pl.read_parquet_schema(file))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return set()  # who reads it will say what is wrong
