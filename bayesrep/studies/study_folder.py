"""Queries of a study's folder, answered without reading a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, listing
from bayesrep.files import strict_json
from bayesrep.studies import layout
from bayesrep.studies.attempts import Attempts, read_attempts
from bayesrep.studies.manifest import (
    JSON,
    Manifest,
    awaits_counts,
    describe_missing_study,
    read_manifest,
)
from bayesrep.studies.parquet_tables import read_failures
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.violations import value

_COLUMNS_OF_PART: Mapping[str, Sequence[str]] = {
    "labels": layout.LABEL_COLUMNS[:1],
    "top-5": layout.LABEL_COLUMNS,
    "probabilities": (layout.LABEL_COLUMNS[0], layout.PROBABILITY_COLUMNS[0]),
}


@dataclass(frozen=True, eq=False)
class StudyFolder:
    """A folder of a study, or of answers that await their counts; or one that is still to be."""

    path: Path  # path: The folder

    @property
    def is_study(self) -> bool:
        """True if it has a study.json."""
        return (self.path / layout.MANIFEST_FILE).exists()

    @property
    def awaits_counts(self) -> bool:
        """True if it holds predictions, as `bayesrep.predict` makes them, but no study yet."""
        return awaits_counts(self.path)

    @cached_property
    def manifest(self) -> Manifest | None:
        """Content of study.json; None if there is none yet."""
        return value(partial(read_manifest, self.path), self.path) if self.is_study else None

    @property
    def roles(self) -> Mapping[str, str]:
        """Role to data set; of answers that await their counts, as far as somebody said."""
        if self.manifest is not None:
            return self.manifest.roles
        content = self._object(layout.ROLES_FILE)
        if content is None or not all(isinstance(name, str) for name in content.values()):
            raise StudyError("roles-file-not-mapping", file=self.path / layout.ROLES_FILE)
        return content

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Provenance of the data; empty if none is recorded."""
        if self.manifest is not None:
            return self.manifest.provenance
        content = self._object(layout.PROVENANCE_FILE)
        if content is None:
            raise StudyError("provenance-file-not-object", file=self.path / layout.PROVENANCE_FILE)
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
        return read_attempts(self.path) if (self.path / layout.ATTEMPTS_FILE).exists() else ()

    @property
    def predicted_datasets(self) -> list[str]:
        """The data sets with predictions, sorted."""
        return layout.names_in(self.path / layout.PREDICTIONS_FOLDER, "")

    def dataset_names(self, datasets: Sequence[str]) -> list[str]:
        """The names of data sets given by name, or by role where it says which they are."""
        if not self.path.is_dir():
            raise StudyError(describe_missing_study(self.path))
        roles = self.roles
        return [roles.get(name, name) for name in datasets]

    def common_classifiers(self, names: Sequence[str]) -> list[str]:
        """The classifiers that it lists, or else those with a file for each of some data sets."""
        listed = self.manifest.classifiers if self.manifest is not None else ()
        predicted = {name: layout.predicted_classifiers(self.path, name) for name in names}
        for name, classifiers in predicted.items():
            if not classifiers and not (listed and name in self.roles.values()):
                known = self.predicted_datasets
                facts = {"known_datasets": listing(known, "data set") if known else "no data set"}
                raise StudyError(
                    "data-set-without-predictions", path=self.path, dataset=name, **facts
                )
        if listed:
            return list(listed)
        if not (common := sorted(set.intersection(*predicted.values()))):
            listed_names = ", ".join(map(repr, names))
            raise StudyError("no-classifier-in-common", path=self.path, datasets=listed_names)
        return common

    def find_parts(self, datasets: Sequence[str] = REQUIRED_ROLES) -> frozenset[str]:
        """List the parts that exist of some data sets, which are given by role or name."""
        names = self.dataset_names(datasets)
        counts = (self.path / file for file in (layout.COUNTS_FILE, layout.ANNOTATIONS_FILE))
        parts = {"counts"} if self.is_study and any(map(Path.is_file, counts)) else set[str]()
        if common := set.intersection(
            *(layout.predicted_classifiers(self.path, name) for name in names)
        ):
            files = [self.path / layout.prediction_file(name, min(common)) for name in names]
            columns = set.intersection(*map(_columns, files))
            parts |= {
                part for part, needed in _COLUMNS_OF_PART.items() if columns.issuperset(needed)
            }
            parts |= {"answers"} | ({"study"} if parts & {"counts"} else set())
        if not parts and not self.predicted_datasets:
            raise StudyError("neither-study-nor-predictions", path=self.path)
        return frozenset(parts)

    def _object(self, name: str) -> dict[str, Any] | None:
        """Read a JSON object, empty if there is no file; None if it is not an object."""
        file = self.path / name
        content: Any = strict_json.read(file) if file.exists() else {}
        return content if isinstance(content, dict) else None


def _columns(file: Path) -> set[str]:
    try:
        return set(pl.read_parquet_schema(file))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return set()  # who reads it will say what is wrong
