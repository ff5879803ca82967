"""The names of the files of a study on disk, shared by the writer and the inspector."""

from pathlib import Path
from urllib.parse import quote, unquote

FORMAT = 1
MANIFEST = "study.json"
IMAGES = "images.parquet"
COUNTS = "counts.parquet"
ANNOTATIONS = "annotations.parquet"
FAILURES = "failures.parquet"
PREDICTIONS = "predictions"


def prediction_folder(dataset: str) -> Path:
    """The folder of one data set's predictions, relative to the study."""
    return Path(PREDICTIONS) / _file_name(dataset)


def prediction_file(dataset: str, classifier: str) -> Path:
    """The file of one classifier's predictions, relative to the study."""
    return prediction_folder(dataset) / f"{_file_name(classifier)}.parquet"


def names_in(folder: Path, suffix: str) -> list[str]:
    """The names, decoded and sorted, behind the visible entries that end in `suffix`."""
    if not folder.is_dir():
        return []
    entries = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]
    return sorted(unquote(name.removesuffix(suffix)) for name in entries if name.endswith(suffix))


def _file_name(name: str) -> str:
    quoted = quote(name, safe="")
    # quote() leaves dots alone, but "..", "." and hidden files must not arise from a name.
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
