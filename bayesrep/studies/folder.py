"""A study on disk, a folder of Parquet files that anything can read: its files and columns.

    study.json                                  format, name, roles, classifiers, provenance, truth
    images.parquet                              dataset, image, label, optional group columns
    counts.parquet                              dataset, image, selected, shown
    annotations.parquet                         beside or instead: dataset, image, worker, selected
    predictions/<dataset>/<classifier>.parquet  image, correct; where the answers are known, label,
                                                label_1 ... label_5 and probability_1 ... 5
    attempts.parquet                            where classifiers were asked several times: dataset,
                                                image, classifier, solved, attempts
    roles.json                                  role to data set, of answers that await their counts
    provenance.json                             where answers that await their counts came from
    logits/<dataset>/                           classifiers' outputs, where they were asked for
    failures.parquet                            dataset, image, reason, left_out: where images could
                                                not be decoded

Names of data sets and classifiers are percent-encoded in file names. Images keep the order of
counts.parquet; all other tables are joined to it by name. `classifiers` may be left out of
study.json: then they are the files found, sorted. Images that are left out are passed over in all
tables.
"""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, unquote

FORMAT = 1
MANIFEST = "study.json"
IMAGES = "images.parquet"
COUNTS = "counts.parquet"
ANNOTATIONS = "annotations.parquet"
ATTEMPTS = "attempts.parquet"
FAILURES = "failures.parquet"
PREDICTIONS = "predictions"
LOGITS = "logits"
ROLES = "roles.json"
PROVENANCE = "provenance.json"
TABLES = (MANIFEST, IMAGES, COUNTS, ANNOTATIONS, ATTEMPTS, FAILURES, ROLES, PROVENANCE)
ENTRIES = (*TABLES, PREDICTIONS, LOGITS)
"""All that is in a study's folder; a folder with anything else is not replaced."""

LONGEST_NAME = 220  # as it is encoded; file systems take 255, and a file is written under another
RANKS = 5  # so many classes are kept of an answer, the most probable first
LABELS = tuple(f"label_{rank}" for rank in range(1, RANKS + 1))
PROBABILITIES = tuple(f"probability_{rank}" for rank in range(1, RANKS + 1))


def prediction_folder(dataset: str) -> Path:
    """The folder of one data set's predictions, relative to the study."""
    return Path(PREDICTIONS) / _file_name(dataset)


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
    return [name for name in names if len(_file_name(name)) > LONGEST_NAME]


def _file_name(name: str) -> str:
    quoted = quote(name, safe="")
    # quote() leaves dots alone, but "..", "." and hidden files must not arise from a name.
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
