"""Answers of outputs that are kept: among other classes, or held against other labels.

Nothing is decoded and no network is loaded; the answers are those that a network would give, to the
bit (`bayesrep.vision.logits`).
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, listing
from bayesrep.studies import folder as folders
from bayesrep.types import Ints
from bayesrep.vision.among import check_few_classes, read_among
from bayesrep.vision.calibration import fit_temperature
from bayesrep.vision.contents import UNKNOWN_CONTENT, Contents
from bayesrep.vision.devices import choose_device
from bayesrep.vision.evaluate import TopFive, choose_outputs, rank_outputs
from bayesrep.vision.images import ImageSet
from bayesrep.vision.imports import load_timm
from bayesrep.vision.labels import class_numbers, read_labels
from bayesrep.vision.logits import LogitsFile, logits_folder, read_logits
from bayesrep.vision.prediction import check_writable
from bayesrep.vision.reports import Report, make_report
from bayesrep.vision.results import Results
from bayesrep.vision.run import DatasetRun
from bayesrep.vision.sets import ImageSource, choose_images

_AT_ONCE = 4096  # images whose outputs are in memory


class KnownContents(Contents):
    """What images held when their outputs were kept, whatever has become of them."""

    def __init__(self, known: NDArray[np.uint64]) -> None:
        self.known = known

    def contents_of(self, rows: Ints) -> NDArray[np.uint64]:
        """The contents of some images."""
        return self.known[rows]

    def save(self) -> None:
        """Nothing is to be remembered."""


def predict_from_logits(
    logits: str | Path,
    dataset: str,
    study: str | Path,
    *,
    classifiers: Sequence[str] | None = None,
    labels: str | Path | None = None,
    among: str | Path | None = None,
    calibrate_on: str | Path | None = None,
    device: str = "auto",
    force: bool = False,
    allow_failures: bool = False,
) -> Report:
    """Write answers into a study that are made of kept outputs.

    Parameters
    ----------
    logits
        A data set's folder of them, STUDY/logits/DATASET of `predict(keep="logits")`.
    dataset, study
        The data set's name in the study that the answers go to, and its folder.
    classifiers
        Those wanted; all that are there by default.
    labels
        A ground-truth file in place of the labels that were kept.
    among
        The classes that answers are among; see `predict`.
    calibrate_on
        A data set's folder of kept outputs, by whose labels each classifier's outputs are divided
        by a temperature (`bayesrep.vision.calibration`); by default they are taken as they are.
    device
        Where outputs are compared; the device that they came from gives its own last digits.
    force
        Forget earlier answers of these classifiers on this data set.
    allow_failures
        Leave the study without images of which no outputs are kept.

    Returns
    -------
    Report
        With a row for each classifier.

    Raises
    ------
    PredictionError
        Where outputs are missing, damaged, of another version, or classifiers' are of different
        images.
    StudyError
        See `predict`.
    """
    load_timm()
    if not dataset:
        raise PredictionError("data-set-name-empty")
    place, target = Path(logits), Path(study)
    check_writable(target)
    chosen_device = choose_device(device)
    kept = {name: read_logits(file) for name, file in _find_kept(place, classifiers).items()}
    first = next(iter(kept.values()))
    if other := [name for name, each in kept.items() if not _is_alike(each, first)]:
        raise PredictionError(
            "logits-of-different-images", folder=place, classifiers=listing(other, "classifier")
        )
    source = ImageSource(place, labels, among)
    listed = choose_images(*_list_kept(source, first), target, dataset)
    rows = listed.images.place[:, 1]
    # Every classifier is finished before the next: what is held is one at a time.
    run = None
    for name, each in kept.items():
        if force:
            Results.forget(target, dataset, name)
        contents = KnownContents(each.contents[rows])
        temperature, identity = 1.0, each.identity
        if calibrate_on is not None:
            fitted_on = read_logits(_find_kept(Path(calibrate_on), [name])[name])
            temperature = _fit_temperature(fitted_on, each, among)
            identity |= {"temperature": f"{temperature:.6g}"}
        results = Results(target, dataset, name, listed.images, contents, identity)
        run = run or _begin_run(
            target, dataset, listed.images, contents, allow_failures=allow_failures
        )
        run.results[name] = results
        earlier = results.is_finished(run.undecodable_images())
        missing = np.flatnonzero(~results.done & ~run.undecodable_images())
        if len(missing):
            parts = [
                _rank(each.values[rows[some]], listed.images, chosen_device.name, temperature)
                for some in (missing[at : at + _AT_ONCE] for at in range(0, len(missing), _AT_ONCE))
            ]
            results.add(missing, contents.known[missing], TopFive.concatenate(parts))
        if not earlier:
            results.finish(run.facts())
            run.status[name] = "done"
    assert run is not None
    run.save_failures()
    full = {name: str(each.identity.get("full_name")) for name, each in kept.items()}
    return make_report(run, list(kept), full, listed)


def _find_kept(place: Path, classifiers: Sequence[str] | None) -> dict[str, Path]:
    """The folders of the classifiers wanted, by name."""
    there = folders.names_in(place, "")
    if not there:
        raise PredictionError("logits-folder-empty", folder=place)
    wanted = there if classifiers is None else list(classifiers)
    if missing := [name for name in wanted if name not in there]:
        raise PredictionError(
            "logits-lack-classifiers",
            folder=place,
            classifiers=listing(missing, "classifier"),
            kept_classifiers=listing(there, "classifier"),
        )
    return {name: place / logits_folder(Path(), "any", name).name for name in wanted}


def _is_alike(one: LogitsFile, other: LogitsFile) -> bool:
    same = one.table["image"].equals(other.table["image"])
    return same and one.facts["outputs"] == other.facts["outputs"]


def _list_kept(source: ImageSource, kept: LogitsFile) -> tuple[ImageSet, Any]:
    """The images of which outputs are kept, with their row as their place, and the choice."""
    names, meant = kept.table["image"].to_list(), kept.classes
    chosen = None if source.among is None else read_among(source.among, meant)
    classes = chosen.labelled if chosen else meant
    numbers = (
        class_numbers(kept.table["label"].to_list(), names, str(kept.place), classes)
        if source.labels is None
        else read_labels(Path(source.labels), names, classes)
    )
    place = np.stack([np.zeros_like(numbers), np.arange(len(names)), np.zeros_like(numbers)], 1)
    images = ImageSet(tuple(names), numbers, (str(kept.place),), place, classes)
    if source.among is None:
        check_few_classes(images, source.images)
    return images, chosen


def _begin_run(
    study: Path, dataset: str, images: ImageSet, contents: KnownContents, *, allow_failures: bool
) -> DatasetRun:
    missing = np.flatnonzero(contents.known == UNKNOWN_CONTENT).tolist()
    failures = dict.fromkeys(missing, "no outputs of it are kept")
    return DatasetRun(study, dataset, images, contents, {}, failures, allow_failures)


def _fit_temperature(fitted_on: LogitsFile, kept: LogitsFile, among: str | Path | None) -> float:
    """The temperature of a classifier by its outputs on another data set, and the labels there."""
    import torch

    same = fitted_on.identity == kept.identity
    if not same or fitted_on.facts["outputs"] != kept.facts["outputs"]:
        raise PredictionError(
            "calibration-of-another-network", folder=fitted_on.place, other=kept.place
        )
    images, chosen = _list_kept(ImageSource(fitted_on.place, None, among), fitted_on)
    taken = chosen.take_chosen(images) if chosen else images
    rows = taken.place[:, 1]
    known = fitted_on.contents[rows] != UNKNOWN_CONTENT
    values = torch.from_numpy(np.ascontiguousarray(fitted_on.values[rows[known]])).float()
    return fit_temperature(choose_outputs(values, taken.classes).numpy(), taken.labels[known])


def _rank(values: NDArray[Any], images: ImageSet, device: str, temperature: float) -> TopFive:
    """The likeliest classes by some rows of outputs; each row's do not depend on the others."""
    import torch

    outputs = torch.from_numpy(np.ascontiguousarray(values)).to(device).float()
    with torch.inference_mode():
        return rank_outputs(outputs / temperature, images.classes, time.perf_counter())
