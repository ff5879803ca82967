"""Answers of outputs that are kept: among other classes, held against other labels, or together.

Nothing is decoded and no network is loaded; the answers are those that a network would give, to the
bit (`bayesrep.vision.logits`).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
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
from bayesrep.vision.ensembles import Ensemble, check_ensembles
from bayesrep.vision.evaluate import TopFive, choose_outputs
from bayesrep.vision.images import ImageSet
from bayesrep.vision.imports import own_defaults
from bayesrep.vision.labels import class_numbers, read_labels
from bayesrep.vision.logits import VALUES, LogitsFile, logits_folder, read_logits
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
    """Write answers into a study that are made of kept outputs.

    Parameters
    ----------
    logits
        A data set's folder of them, STUDY/logits/DATASET of `predict(keep="logits")`.
    dataset, study
        The data set's name in the study that the answers go to, and its folder.
    classifiers
        Those wanted; all that are there by default.
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
    wanted = _list_classifiers(place) if classifiers is None else list(classifiers)
    together = {} if ensembles is None else ensembles
    check_ensembles(together, wanted)
    # What is wrong with what is kept is refused before anything is written.
    kept = _read_kept(place, chain(wanted, *together.values()))
    _check_alike(place, kept)
    temperatures = dict.fromkeys(kept, 1.0)
    if calibrate_on is not None:
        for name, fitted_on in _read_kept(Path(calibrate_on), kept).items():
            temperatures[name] = _fit_temperature(fitted_on, kept[name], among)
    first = next(iter(kept.values()))
    listed = choose_images(*_list_kept(ImageSource(place, labels, among), first), target, dataset)
    rows = listed.images.place[:, 1]
    run = _begin_run(
        *(target, dataset, listed.images, KnownContents(first.contents[rows])),
        allow_failures=allow_failures,
    )
    # Every classifier is finished before the next: what is held is one at a time.
    full: dict[str, str] = {}
    for name, members in {**{each: [each] for each in wanted}, **together}.items():
        if force:
            Results.forget(target, dataset, name)
        # Sums are the same in whatever order networks are given.
        ordered = sorted(members)
        answering = Ensemble(
            tuple(kept[each] for each in ordered), tuple(temperatures[each] for each in ordered)
        )
        full[name] = answering.identity["full_name"]
        _answer(run, name, answering, rows, chosen_device)
    run.save_failures()
    return make_report(run, list(full), full, listed)


def _answer(run: DatasetRun, name: str, answering: Ensemble, rows: Ints, device: str) -> None:
    """Write the answers that are missing of a classifier, or of networks together.

    `rows` are those of the kept outputs, of the run's images in their order.
    """
    results = Results(run.study, run.dataset, name, run.images, run.contents, answering.identity)
    run.results[name] = results
    earlier = results.is_finished(run.undecodable_images())
    missing = np.flatnonzero(~results.done & ~run.undecodable_images())
    if len(missing):
        parts = [
            answering.rank(rows[some], run.images.classes, device)
            for some in (missing[at : at + _AT_ONCE] for at in range(0, len(missing), _AT_ONCE))
        ]
        results.add(missing, run.contents.known[missing], TopFive.concatenate(parts))
    if not earlier:
        results.finish(run.facts())
        run.status[name] = "done"


def _list_classifiers(place: Path) -> list[str]:
    """The classifiers of which outputs are kept in a data set's folder."""
    if not any(place.glob(f"[!.]*/{VALUES}")):  # also where it is the folder of several data sets
        raise PredictionError("logits-folder-empty", folder=place)
    return folders.names_in(place, "")


def _read_kept(place: Path, names: Iterable[str]) -> dict[str, LogitsFile]:
    """What is kept of some classifiers in a data set's folder."""
    there, wanted = _list_classifiers(place), dict.fromkeys(names)
    if missing := [name for name in wanted if name not in there]:
        raise PredictionError(
            "logits-lack-classifiers",
            folder=place,
            classifiers=listing(missing, "classifier"),
            kept_classifiers=listing(there, "classifier"),
        )
    return {name: read_logits(place / logits_folder(Path(), "any", name).name) for name in wanted}


def _check_alike(place: Path, kept: Mapping[str, LogitsFile]) -> None:
    """Refuse outputs of other images than those of most, or of classifiers left half-way."""
    most = max(kept, key=lambda name: np.count_nonzero(kept[name].contents))
    if other := [name for name, each in kept.items() if not _is_alike(each, kept[most])]:
        raise PredictionError(
            "logits-of-different-images",
            folder=place,
            classifiers=listing(other, "classifier"),
            other=most,
        )


def _is_alike(one: LogitsFile, other: LogitsFile) -> bool:
    same = one.table["image"].equals(other.table["image"])
    same = same and one.facts["outputs"] == other.facts["outputs"]
    return same and np.array_equal(one.contents, other.contents)


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
