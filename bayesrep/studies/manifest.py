"""study.json: the study's name, the roles of its data sets, its classifiers and their truth."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayesrep.errors import reason
from bayesrep.files import strict_json
from bayesrep.studies import folder, rules
from bayesrep.studies.study import JSON, Truth


@dataclass(frozen=True)
class Manifest:
    """The parsed study.json; `classifiers` is None where the file leaves them to the folders."""

    name: str
    roles: Mapping[str, str]
    classifiers: Sequence[str] | None
    provenance: Mapping[str, JSON]
    truth: Truth | None


def read_manifest(path: Path) -> Generator[str, None, Manifest | None]:
    """Read the study.json of the study at `path`."""
    if not path.is_dir():
        state = "is not a folder" if path.exists() else "does not exist"
        yield f"{path} {state}; give the folder of a study"
        return None
    where = folder.MANIFEST
    try:
        content = strict_json.load(path / where)
    except FileNotFoundError:
        yield f"{where} is missing; give the folder of a study"
        return None
    except (OSError, ValueError) as error:
        yield f"{where} cannot be read as JSON ({reason(error)}); restore or rewrite it"
        return None
    sound = yield from rules.checked(_manifest_violations(where, content))
    if not sound:
        return None
    truth = content.get("truth")
    return Manifest(
        name=content.get("name", path.name),
        roles=content["roles"],
        classifiers=content.get("classifiers"),
        provenance=content.get("provenance") or {},
        truth=None if truth is None else _truth(truth),
    )


def _manifest_violations(where: str, content: Any) -> Iterator[str]:
    if not isinstance(content, dict):
        yield f"{where} does not hold a JSON object; rewrite it"
        return
    if content.get("format", folder.FORMAT) != folder.FORMAT:
        yield (
            f"{where}: format {content['format']!r} is not known, this version reads format "
            f"{folder.FORMAT}; use the version that wrote the study"
        )
    if not isinstance(content.get("name", ""), str):
        yield f"{where}: name is not text; give the study's name"
    if not isinstance(content.get("provenance") or {}, dict):
        yield f"{where}: provenance is not an object; write it as one"
    roles = content.get("roles")
    if not isinstance(roles, dict) or not _is_text_list([*roles, *roles.values()]):
        yield f'{where}: roles does not map roles to data sets; write {{"reference": NAME, ...}}'
    else:
        yield from rules.role_violations(where, list(roles.items()))
    classifiers = content.get("classifiers")
    if classifiers is not None and not _is_text_list(classifiers):
        yield f"{where}: classifiers is not a list of names; write one, or leave it out"
    elif classifiers is not None:
        yield from rules.classifier_violations(where, classifiers)
    if content.get("truth") is not None and _truth(content["truth"]) is None:
        yield f"{where}: truth does not hold the known accuracies; restore it or leave it out"


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _truth(content: Any) -> Truth | None:
    try:
        return Truth(
            adjusted_accuracy=np.asarray(content["adjusted_accuracy"], dtype=np.float64),
            reference_accuracy=np.asarray(content["reference_accuracy"], dtype=np.float64),
            replication_accuracy=np.asarray(content["replication_accuracy"], dtype=np.float64),
            mean_selection_frequency={
                str(role): float(value)
                for role, value in content["mean_selection_frequency"].items()
            },
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return None
