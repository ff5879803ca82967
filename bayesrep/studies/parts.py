"""What a study's folder holds, as far as names of files and columns tell: nothing is read."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from bayesrep.errors import StudyError
from bayesrep.studies import folder
from bayesrep.studies.manifest import describe_missing_study, read_manifest, read_roles
from bayesrep.studies.problems import Problems
from bayesrep.studies.rules import REQUIRED_ROLES


def find_parts(path: str | Path, datasets: Sequence[str] = REQUIRED_ROLES) -> frozenset[str]:
    """What is there of both data sets.

    Parameters
    ----------
    path
        The folder.
    datasets
        The data sets by role, where the study says which they are, or by name.

    Returns
    -------
    frozenset of str
        Any of "counts" (of annotators), "answers" (of a classifier to both data sets), "study"
        (both),
        "labels" (which class was answered), "top-5" and "probabilities".

    Raises
    ------
    StudyError
        Where the folder holds neither a study nor predictions.
    """
    root = Path(path)
    if not root.is_dir():
        raise StudyError(describe_missing_study(root))
    known = (root / folder.MANIFEST).exists()
    manifest = read_manifest(root, Problems()) if known else None
    roles = manifest.roles if manifest is not None else read_roles(root)
    contents = set[str]()
    if manifest is not None and any(
        (root / file).is_file() for file in (folder.COUNTS, folder.ANNOTATIONS)
    ):
        contents.add("counts")
    names = [roles.get(role, role) for role in datasets]
    common = set.intersection(*(folder.predicted_classifiers(root, name) for name in names))
    if common:
        contents.add("answers")
        files = [root / folder.prediction_file(name, min(common)) for name in names]
        columns = set.intersection(*map(_columns, files))
        every = {
            "labels": folder.LABELS[:1],
            "top-5": folder.LABELS,
            "probabilities": (folder.LABELS[0], folder.PROBABILITIES[0]),
        }
        contents |= {what for what, needed in every.items() if columns.issuperset(needed)}
    if not contents:
        raise StudyError("neither-study-nor-predictions", path=root)
    return frozenset(contents | ({"study"} if {"counts", "answers"} <= contents else set()))


def _columns(file: Path) -> set[str]:
    try:
        return set(pl.read_parquet_schema(file))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return set()  # who reads it will say what is wrong
