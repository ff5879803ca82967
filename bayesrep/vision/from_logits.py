"""Answers from kept outputs, those of the network to the bit: nothing is decoded or loaded."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, listing
from bayesrep.studies import layout as folders
from bayesrep.types import Ints
from bayesrep.vision.calibration import BATCH_IMAGES, fit_temperature
from bayesrep.vision.class_subset import check_few_classes, read_class_subset
from bayesrep.vision.devices import choose_device
from bayesrep.vision.ensembles import Ensemble, check_ensembles
from bayesrep.vision.evaluation_set import ImageSource, choose_images
from bayesrep.vision.forward import TopFive, choose_outputs
from bayesrep.vision.image_digests import UNKNOWN_CONTENT, Contents
from bayesrep.vision.images import ImageSet
from bayesrep.vision.labels import class_numbers, read_labels
from bayesrep.vision.logits import VALUES_FILE, LogitsFile, logits_folder, read_logits
from bayesrep.vision.prediction import check_writable
from bayesrep.vision.prediction_store import Results
from bayesrep.vision.reports import Report, make_report
from bayesrep.vision.run import DatasetRun
from bayesrep.vision.torch_loading import own_defaults


class KeptContents(Contents):
    """Digests of images at the time when their outputs were kept."""

    def __init__(self, contents: NDArray[np.uint64]) -> None:
        self.known = contents

    def contents_of(self, rows: Ints) -> NDArray[np.uint64]:
        """The contents of some images."""
        return self.known[rows]

    def save(self) -> None:
        """Nothing is to be remembered."""


@own_defaults()
def predict_from_logits(
    logits: str | Path,
    dataset: str,
    study: str | Path,
    *,
    classifiers: Sequence[str] | None = None,
    ensembles: Mapping[str, Sequence[str]] | None = None,
    labels: str | Path | None = None,
    among: str | Path | None = None,
    calibrate_on: str | Path | None = None,
    device: str = "auto",
    force: bool = False,
    allow_failures: bool = False,
) -> Report:
    """Write answers from kept outputs into a study.

    Parameters
    ----------
    logits
        A data set's folder of them, STUDY/logits/DATASET of `predict(keep="logits")`.
    dataset, study
        The data set's name in the study that the answers go to, and its folder.
    classifiers
        Names of classifiers; by default all in the folder.
    ensembles
        The networks of each ensemble, by the name that it gets as one more classifier; its
        probabilities are the mean of theirs (`bayesrep.vision.ensembles`).
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
    if not dataset:
        raise PredictionError("data-set-name-empty")
    place, target = Path(logits), Path(study)
    check_writable(target)
    chosen_device = choose_device(device).name
    names = _list_classifiers(place) if classifiers is None else list(classifiers)
    members_of = {} if ensembles is None else ensembles
    check_ensembles(members_of, names)
    # Refuse faulty outputs before anything is written.
    files = _read_kept(place, chain(names, *members_of.values()))
    _check_same_images(place, files)
    temperatures = dict.fromkeys(files, 1.0)
    if calibrate_on is not None:
        for name, fitted_on in _read_kept(Path(calibrate_on), files).items():
            temperatures[name] = _fit_temperature(fitted_on, files[name], among)
    first = next(iter(files.values()))
    listed = choose_images(*_list_kept(ImageSource(place, labels, among), first), target, dataset)
    rows = listed.images.place[:, 1]
    contents = KeptContents(first.contents[rows])
    missing = np.flatnonzero(contents.known == UNKNOWN_CONTENT).tolist()
    failures = dict.fromkeys(missing, "no outputs of it are kept")
    run = DatasetRun(target, dataset, listed.images, contents, {}, failures, allow_failures)
    # Finish each classifier before the next, so that one at a time is in memory.
    full: dict[str, str] = {}
    for name, members in {**{each: [each] for each in names}, **members_of}.items():
        if force:
            Results.forget(target, dataset, name)
        # A fixed order makes sums independent of the order of the arguments.
        ordered = sorted(members)
        answering = Ensemble(
            tuple(files[each] for each in ordered), tuple(temperatures[each] for each in ordered)
        )
        full[name] = answering.identity["full_name"]
        _answer(run, name, answering, rows, chosen_device)
    run.save_failures()
    return make_report(run, list(full), full, listed)


def _answer(run: DatasetRun, name: str, answering: Ensemble, rows: Ints, device: str) -> None:
    """Write the missing answers of an ensemble, from the kept outputs in `rows`."""
    results = Results(run.study, run.dataset, name, run.images, run.contents, answering.identity)
    run.results[name] = results
    earlier = results.is_finished(run.undecodable_images())
    missing = np.flatnonzero(~results.done & ~run.undecodable_images())
    if len(missing):
        batches = (missing[i : i + BATCH_IMAGES] for i in range(0, len(missing), BATCH_IMAGES))
        parts = [answering.rank(rows[some], run.images.classes, device) for some in batches]
        results.add(missing, run.contents.known[missing], TopFive.concatenate(parts))
    if not earlier:
        results.finish(run.facts())
        run.status[name] = "done"


def _list_classifiers(place: Path) -> list[str]:
    if not any(place.glob(f"[!.]*/{VALUES_FILE}")):  # also a folder of several data sets
        raise PredictionError("logits-folder-empty", folder=place)
    return folders.names_in(place, "")


def _read_kept(place: Path, names: Iterable[str]) -> dict[str, LogitsFile]:
    available, requested = _list_classifiers(place), dict.fromkeys(names)
    if missing := [name for name in requested if name not in available]:
        raise PredictionError(
            "logits-lack-classifiers",
            folder=place,
            classifiers=listing(missing, "classifier"),
            kept_classifiers=listing(available, "classifier"),
        )
    return {
        name: read_logits(place / logits_folder(Path(), "any", name).name) for name in requested
    }


def _check_same_images(place: Path, files: Mapping[str, LogitsFile]) -> None:
    """Refuse outputs of other images than the majority's, or of unfinished classifiers."""
    most = max(files, key=lambda name: np.count_nonzero(files[name].contents))
    first = files[most]
    other = [
        name
        for name, each in files.items()
        if not each.table["image"].equals(first.table["image"])
        or each.facts["outputs"] != first.facts["outputs"]
        or not np.array_equal(each.contents, first.contents)
    ]
    if other:
        raise PredictionError(
            "logits-of-different-images",
            folder=place,
            classifiers=listing(other, "classifier"),
            other=most,
        )


def _list_kept(source: ImageSource, file: LogitsFile) -> tuple[ImageSet, Any]:
    names, meant = file.table["image"].to_list(), file.classes
    chosen = None if source.among is None else read_class_subset(source.among, meant)
    classes = chosen.labelled if chosen else meant
    numbers = (
        class_numbers(file.table["label"].to_list(), names, str(file.place), classes)
        if source.labels is None
        else read_labels(Path(source.labels), names, classes)
    )
    place = np.stack([np.zeros_like(numbers), np.arange(len(names)), np.zeros_like(numbers)], 1)
    images = ImageSet(tuple(names), numbers, (str(file.place),), place, classes)
    if source.among is None:
        check_few_classes(images, source.images)
    return images, chosen


def _fit_temperature(fitted_on: LogitsFile, file: LogitsFile, subset: str | Path | None) -> float:
    """Fit a classifier's temperature to its outputs and labels on another data set."""
    import torch

    same = fitted_on.identity == file.identity
    if not same or fitted_on.facts["outputs"] != file.facts["outputs"]:
        raise PredictionError(
            "calibration-of-another-network", folder=fitted_on.place, other=file.place
        )
    images, chosen = _list_kept(ImageSource(fitted_on.place, None, subset), fitted_on)
    images = chosen.take_chosen(images) if chosen else images
    rows = images.place[:, 1]
    has_outputs = fitted_on.contents[rows] != UNKNOWN_CONTENT
    values = torch.from_numpy(np.ascontiguousarray(fitted_on.values[rows[has_outputs]])).float()
    return fit_temperature(
        choose_outputs(values, images.classes).numpy(), images.labels[has_outputs]
    )
