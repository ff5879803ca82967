"""study.json: the study's name, the roles of its data sets, its classifiers and their truth."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from bayesrep.atomic import find_moved_aside, replaced_file
from bayesrep.errors import StudyError, Violation, reason
from bayesrep.files import strict_json
from bayesrep.studies import layout, validation
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.representation import Compared, brief, number
from bayesrep.studies.selection import Selection
from bayesrep.studies.violations import Problems
from bayesrep.types import Floats

JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | bool | None"


@dataclass(frozen=True, eq=False)
class Truth(Compared):
    """The known truth of a simulated study: population values, not this sample's.

    Attributes
    ----------
    adjusted_accuracy, reference_accuracy, replication_accuracy : float64 [C]
        Expected accuracies of each classifier.
    mean_selection_frequency : mapping of role to float
        Expected selection frequency of each data set.
    """

    adjusted_accuracy: Floats
    reference_accuracy: Floats
    replication_accuracy: Floats
    mean_selection_frequency: Mapping[str, float]

    def __repr__(self) -> str:
        return brief(self, number(len(self.adjusted_accuracy), "classifier"))


@dataclass(frozen=True)
class Manifest:
    """Content of study.json; `classifiers` is None if it leaves them to the folders."""

    name: str
    roles: Mapping[str, str]
    classifiers: Sequence[str] | None
    provenance: Mapping[str, JSON]
    truth: Truth | None
    selections: Mapping[str, Selection] = field(default_factory=dict[str, Selection])

    def content(self) -> dict[str, Any]:
        """The JSON object; what is not known of a study without predictions is left away."""
        content: dict[str, Any] = {"format": layout.FORMAT_VERSION, "name": self.name}
        content |= {"roles": dict(self.roles), "provenance": dict(self.provenance)}
        if self.classifiers is not None:
            truth = None if self.truth is None else asdict(self.truth)
            content |= {"classifiers": list(self.classifiers), "truth": truth}
        if self.selections:
            content["selection"] = {name: s.content() for name, s in self.selections.items()}
        return content


def selections_of(datasets: Iterable[AnnotatedSet]) -> dict[str, Selection]:
    """The rules by which images were kept, by data set."""
    return {data.name: data.selection for data in datasets if data.selection is not None}


def write_manifest(content: Mapping[str, Any], path: Path) -> None:
    """Write the study.json of the study at `path`, whole or not at all."""
    text = json.dumps(content, indent=2, ensure_ascii=False, default=np.ndarray.tolist)
    with replaced_file(path / layout.MANIFEST_FILE) as partial:
        partial.write_text(text + "\n", encoding="utf-8")


def describe_missing_study(path: Path) -> Violation:
    """Why a path is not a folder; what a killed process has left of it is named."""
    if path.is_file() and path.suffix == ".nc":
        return Violation("study-path-is-posterior", path=path)
    if path.exists():
        return Violation("study-path-not-folder", path=path)
    older = find_moved_aside(path)
    if older is None:
        return Violation("study-path-missing", path=path)
    return Violation("study-moved-aside", path=path, older=older)


def awaits_counts(path: Path) -> bool:
    """Test whether a folder holds answers but no study."""
    others = (layout.MANIFEST_FILE, layout.COUNTS_FILE, layout.ANNOTATIONS_FILE)
    return (path / layout.PREDICTIONS_FOLDER).is_dir() and not any(
        (path / o).exists() for o in others
    )


def read_manifest(path: Path, problems: Problems) -> Manifest | None:
    """Read the study.json of the study at `path`."""
    if not path.is_dir():
        problems.append(describe_missing_study(path))
        return None
    where = layout.MANIFEST_FILE
    try:
        content = strict_json.load(path / where)
    except FileNotFoundError:
        within = [file.parent for file in path.glob(f"*/{where}")]
        if awaits_counts(path):
            problems.add("study-awaits-counts", where=where, path=path)
        elif len(within) == 1:  # the folder around a study
            problems.add("manifest-in-folder-within", where=where, study=str(within[0]))
        else:
            problems.add("manifest-missing", where=where)
        return None
    except (OSError, ValueError) as error:
        problems.add("manifest-not-json", where=where, reason=reason(error))
        return None
    if not problems.take(_manifest_violations(where, content)):
        return None
    truth = content.get("truth")
    return Manifest(
        name=content.get("name", path.name),
        roles=content["roles"],
        classifiers=content.get("classifiers"),
        provenance=content.get("provenance") or {},
        truth=None if truth is None else _truth(truth),
        selections={
            n: Selection.parse(rule) for n, rule in (content.get("selection") or {}).items()
        },
    )


def _manifest_violations(where: str, content: Any) -> Iterator[Violation]:
    if not isinstance(content, dict):
        yield Violation("manifest-not-object", where=where)
        return
    if content.get("format", layout.FORMAT_VERSION) != layout.FORMAT_VERSION:
        facts = {"format": content["format"], "known_format": layout.FORMAT_VERSION}
        yield Violation("study-format-unknown", where=where, **facts)
    if not isinstance(content.get("name", ""), str):
        yield Violation("study-name-not-text", where=where)
    if not isinstance(content.get("provenance") or {}, dict):
        yield Violation("manifest-provenance-not-object", where=where)
    roles = content.get("roles")
    if not isinstance(roles, dict) or not _is_text_list([*roles, *roles.values()]):
        yield Violation("manifest-roles-not-mapping", where=where)
    else:
        yield from validation.role_violations(where, list(roles.items()))
    classifiers = content.get("classifiers")
    if classifiers is not None and not _is_text_list(classifiers):
        yield Violation("manifest-classifiers-not-names", where=where)
    elif classifiers is not None:
        yield from validation.classifier_violations(where, classifiers)
    if content.get("truth") is not None and _truth(content["truth"]) is None:
        yield Violation("manifest-truth-without-accuracies", where=where)
    yield from _selection_violations(where, content)


def _selection_violations(where: str, content: Mapping[str, Any]) -> Iterator[Violation]:
    selections = {} if content.get("selection") is None else content["selection"]
    if not isinstance(selections, dict):
        yield Violation("manifest-selection-not-mapping", where=where)
        return
    roles = content.get("roles")
    named = set(roles.values()) if isinstance(roles, dict) else set[str]()
    for name, rule in dict[str, Any](selections).items():
        if name not in named:
            yield Violation("manifest-selects-unknown-data-set", where=where, dataset=name)
        try:
            Selection.parse(rule)
        except StudyError as error:
            yield error.violation.add_place(f"{where}: {name!r}")


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _truth(content: Any) -> Truth | None:
    try:
        names = ("adjusted_accuracy", "reference_accuracy", "replication_accuracy")
        frequencies = content["mean_selection_frequency"].items()
        adjusted, reference, replication = (
            np.asarray(content[name], dtype=np.float64) for name in names
        )
        means = {str(role): float(value) for role, value in frequencies}
        return Truth(adjusted, reference, replication, means)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return None
