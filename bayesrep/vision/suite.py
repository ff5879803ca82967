"""Data sets that are evaluated together, from a TOML file with a table of each."""

from pathlib import Path
from typing import Any

from bayesrep.errors import PredictionError, did_you_mean, listing, reason
from bayesrep.files import strict_json
from bayesrep.files.names import normalize_name
from bayesrep.vision.class_subset import ALL_CLASSES, SUBSET_NAMES
from bayesrep.vision.evaluation_set import ImageSource
from bayesrep.vision.hub import is_of_hub

SUITE_KEYS = ("images", "labels", "among")


def read_suite(path: str | Path) -> dict[str, ImageSource]:
    """Read the data sets of a suite, in the order of the file.

    Raises
    ------
    PredictionError
        In one line, naming the file, the data set and what is wrong about it.
    """
    file = Path(path)
    try:
        content = strict_json.load(file, strict_json.parse_toml)
    except (OSError, ValueError) as error:  # also what is not UTF-8, not TOML, or a name twice
        raise PredictionError("suite-unreadable", file=file, reason=reason(error)) from error
    if not content:
        raise PredictionError("suite-without-data-sets", file=file)
    sources: dict[str, ImageSource] = {}
    for written, table in content.items():
        name = normalize_name(written)
        if name in sources:
            raise PredictionError("suite-data-set-repeated", file=file, dataset=name)
        sources[name] = _source(file, name, table)
    return sources


def _source(file: Path, dataset: str, table: Any) -> ImageSource:
    if not isinstance(table, dict) or not isinstance(table.get("images"), str):
        raise PredictionError("suite-data-set-without-images", file=file, dataset=dataset)
    if unknown := [key for key in table if key not in SUITE_KEYS]:
        raise PredictionError(
            "suite-option-unknown",
            file=file,
            dataset=dataset,
            options=listing(unknown, "option"),
            hint=did_you_mean(unknown[0], SUITE_KEYS),
            choices=", ".join(SUITE_KEYS),
        )
    if bad := [key for key, value in table.items() if not isinstance(value, str)]:
        raise PredictionError(
            "suite-option-not-text", file=file, dataset=dataset, options=listing(bad, "option")
        )
    labels, subset = table.get("labels"), table.get("among")
    images = table["images"]
    return ImageSource(
        images if is_of_hub(images) else file.parent / images,
        None if labels is None else file.parent / labels,
        subset
        if subset is None or subset in (ALL_CLASSES, *SUBSET_NAMES)
        else file.parent / subset,
    )
