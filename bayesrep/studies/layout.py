"""A study on disk, a folder of Parquet files that anything can read: its files and columns.

Names of data sets and classifiers are percent-encoded in file names. Images keep the order of
counts.parquet; all other tables are joined to it by name.
"""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, unquote

FORMAT_VERSION = 1
MANIFEST_FILE = "study.json"
IMAGES_FILE = "images.parquet"
COUNTS_FILE = "counts.parquet"
ANNOTATIONS_FILE = "annotations.parquet"
ATTEMPTS_FILE = "attempts.parquet"
FAILURES_FILE = "failures.parquet"
PREDICTIONS_FOLDER = "predictions"
LOGITS_FOLDER = "logits"
ROLES_FILE = "roles.json"  # role to data set, of answers that await their counts
PROVENANCE_FILE = "provenance.json"  # where such answers came from
STUDY_FILES = (
    *(MANIFEST_FILE, IMAGES_FILE, COUNTS_FILE, ANNOTATIONS_FILE, ATTEMPTS_FILE, FAILURES_FILE),
    *(ROLES_FILE, PROVENANCE_FILE),
)
STUDY_ENTRIES = (*STUDY_FILES, PREDICTIONS_FOLDER, LOGITS_FOLDER)
"""Names in a study's folder; a folder with any other is not replaced."""

MAX_NAME_BYTES = 220  # encoded; file systems take 255, and temporary names are longer
MAX_RANKS = 5  # classes of an answer, the most probable first
LABEL_COLUMNS = tuple(f"label_{rank}" for rank in range(1, MAX_RANKS + 1))
PROBABILITY_COLUMNS = tuple(f"probability_{rank}" for rank in range(1, MAX_RANKS + 1))


def prediction_folder(dataset: str) -> Path:
    """The folder of one data set's predictions, relative to the study."""
    return Path(PREDICTIONS_FOLDER) / _file_name(dataset)


def prediction_file(dataset: str, classifier: str) -> Path:
    """The file of one classifier's predictions, relative to the study."""
    return prediction_folder(dataset) / f"{_file_name(classifier)}.parquet"


def predicted_classifiers(study: Path, dataset: str) -> set[str]:
    """The classifiers with a file of predictions on a data set of the study."""
    return set(names_in(study / prediction_folder(dataset), ".parquet"))


def names_in(folder: Path, suffix: str) -> list[str]:
    """The names, decoded and sorted, behind the visible entries that end in `suffix`."""
    if not folder.is_dir():
        return []
    entries = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]
    return sorted(unquote(name.removesuffix(suffix)) for name in entries if name.endswith(suffix))


def too_long(names: Iterable[str]) -> list[str]:
    """The names of data sets or classifiers of which no file can be named."""
    return [name for name in names if len(_file_name(name)) > MAX_NAME_BYTES]


def _file_name(name: str) -> str:
    quoted = quote(name, safe="")
    # quote() leaves dots alone, but "..", "." and hidden files must not arise from a name.
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
