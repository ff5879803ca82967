"""The door: evaluate classifiers on a data set and write their predictions into a study."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bayesrep import bounds
from bayesrep.choices import Kept
from bayesrep.errors import PredictionError, PredictionWarning, StudyError, Violation, listing
from bayesrep.machine import cores
from bayesrep.studies.class_order import find_mistake
from bayesrep.studies.folder import RANKS
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.vision.among import Among, check_few_classes, read_among
from bayesrep.vision.architectures import Architecture, check_names, describe
from bayesrep.vision.classes import IMAGENET, Classes, read_classes
from bayesrep.vision.cluster import Cluster
from bayesrep.vision.compiling import check_compiler
from bayesrep.vision.contents import Contents
from bayesrep.vision.devices import Device, choose_device
from bayesrep.vision.hub import is_of_hub, locate_images, offline_without_hub
from bayesrep.vision.images import ImageSet, list_images
from bayesrep.vision.imports import load_timm
from bayesrep.vision.local import Local
from bayesrep.vision.logits import KeptLogits, check_room, open_logits
from bayesrep.vision.membership import counted_images, list_complete_classifiers, note_among
from bayesrep.vision.pixels import quiet_images
from bayesrep.vision.results import read_failures
from bayesrep.vision.run import (
    DatasetRun,
    Engine,
    evaluate_together,
    open_results,
    still_failing,
)
from bayesrep.vision.stages import Stages

LARGEST_WORKERS = 1_024
CHANCE_IMAGES = 200  # fewer images cannot tell a poor classifier from chance
CHANCE_LEVEL = 1e-6  # as many right answers are rarer by chance: better than chance
_DONE_STATES = ("done", "already done", "judged again")


@dataclass(frozen=True, eq=False)
class Report:
    """What `predict` did.

    Attributes
    ----------
    table
        One row per classifier: classifier, full_name (timm's, with its tag), images, top1, top5
        (fractions of the images answered; no top5 among fewer than five classes), seconds (of the
        network itself in this run, summed over threads), failures (images without an answer), of
        an earlier run's images judged_again (labelled otherwise now), evaluated_again (their files
        hold something else) and dropped (no longer there), status ("done", "already done", "judged
        again" where nothing had to be evaluated, or why there is nothing).
    failures
        image, reason, left_out: what could not be decoded, and whether the study is left without
        it.
    listed
        Classifiers that were added to the study's list, now that they have predictions on every
        data set.
    stages
        Where the time of each pass over the images went; nothing where nothing was evaluated.
    among
        Which classes answers were chosen among, in words; empty where among all.
    outside
        How many images were passed over because they show none of these.
    """

    table: pl.DataFrame
    failures: pl.DataFrame
    listed: tuple[str, ...] = ()
    stages: tuple[Stages, ...] = ()
    among: str = ""
    outside: int = 0

    @property
    def left_out(self) -> pl.DataFrame:
        """The rows of classifiers without predictions."""
        return self.table.filter(~pl.col("status").is_in(_DONE_STATES))

    @property
    def refused(self) -> pl.DataFrame:
        """The failures that the study is not left without."""
        return self.failures.filter(~pl.col("left_out"))

    def changes(self) -> list[str]:
        """Say in words what became of an earlier run's rows, a line for classifiers alike."""
        kinds = {
            "judged_again": "judged again, labelled otherwise now",
            "evaluated_again": "evaluated again, their files hold something else",
            "dropped": "dropped, no longer there",
        }
        lines: list[str] = []
        groups = self.table.group_by(list(kinds), maintain_order=True).agg("classifier")
        for *counts, names in groups.iter_rows():
            told = [f"{n:,} {what}" for n, what in zip(counts, kinds.values(), strict=True) if n]
            if told:
                which = listing(names, "classifier")
                lines.append(f"Images of an earlier run: {'; '.join(told)} ({which})")
        return lines


@dataclass(frozen=True)
class ImageSource:
    """Where a data set's images are, and what is to be known of them; see `predict`."""

    images: str | Path
    labels: str | Path | None = None
    among: str | Path | None = None


def predict(
    images: str | Path,
    dataset: str,
    classifiers: Sequence[str],
    study: str | Path,
    *,
    labels: str | Path | None = None,
    classes: str | Path | None = None,
    among: str | Path | None = None,
    keep: Kept | None = None,
    device: str = "auto",
    batch_size: int | None = None,
    precision: str = "auto",
    compile: bool = False,
    workers: int | None = None,
    weights: str | Path | None = None,
    cache: str | Path | None = None,
    ray: str | None = None,
    force: bool = False,
    allow_failures: bool = False,
    progress: bool = True,
) -> Report:
    """Evaluate classifiers on a data set and write their predictions into a study.

    Each image is decoded once for all classifiers. Finished classifiers are skipped, and a run that
    was interrupted goes on where it was; images that changed since are evaluated again, and where
    labels did, earlier answers are judged again. Where the study counts images already, exactly
    these are evaluated.

    Parameters
    ----------
    images
        A folder of class folders, a flat folder, `.tar` shards or a `.csv` of paths and labels
        (`bayesrep.vision.images.list_images`), or a data set of the hub
        (`bayesrep.vision.hub.locate_images`).
    dataset
        The data set's name in the study.
    classifiers
        timm's names, with or without tags; `torchvision/...`, `hf-hub:user/model`, or folders of
        `weights` with a `config.json`.
    study
        The study's folder; created where it does not exist.
    labels
        A ground-truth file, for flat folders without a known one.
    classes
        A table of what the classifiers' outputs mean, with the columns index, name and, where
        folders of images are called otherwise, folder; by default they are ImageNet's 1,000.
    among
        The classes that answers are chosen among, and of which images are taken: "imagenet-a",
        "imagenet-r", a file with a class a line, a folder of class folders, or ObjectNet's folder
        `mappings`; see `bayesrep.vision.among`. "all", or nothing: among all that outputs mean;
        images of ImageNet-A's or -R's classes are refused until it is said.
    keep
        "logits": also keep every output, for answers among other classes later without inference
        (`bayesrep.vision.predict_from_logits`). What they take is said before it begins.
    device, batch_size, precision
        See `bayesrep.vision.devices.choose_device`.
    compile
        Compile classifiers by `torch.compile`. One that then finds another label on any of the
        first images, or cannot be compiled, goes uncompiled, with a warning.
    workers
        Threads that decode (and compute, on a CPU), or Ray workers; all cores, or all that Ray has,
        by default.
    weights
        A folder of weight files (safetensors; or checkpoints that hold weights alone) instead of
        timm's own from the hub.
    cache
        A folder that keeps preprocessed images, as large as uint8 pixels are, for later runs. A run
        whose classifiers do not fit into memory together keeps them by itself until it ends, where
        the disk has the room.
    ray
        "local", "auto" or the address of a Ray cluster whose machines all see the same files.
    force
        Forget earlier predictions of these classifiers on this data set.
    allow_failures
        Leave the study without images that cannot be decoded, until they can. Without it such a
        study is refused.
    progress
        Show progress on standard error.

    Returns
    -------
    Report
        With a row for each classifier, and the images that could not be decoded.

    Raises
    ------
    PredictionError
        Where nothing can be evaluated: images or labels not understood, classifiers unknown, or
        none of them to be had.
    StudyError
        Where the study does not know the data set, or labels its images otherwise.

    Warns
    -----
    PredictionWarning
        For classifiers left out or given twice under two names, for images of few classes, and
        where all classifiers are at chance, with the likely cause.
    """
    # One data set is a suite of one, so that both are evaluated by the same code.
    reports = predict_sets(
        {dataset: ImageSource(images, labels, among)},
        classifiers,
        study,
        classes=classes,
        keep=keep,
        device=device,
        batch_size=batch_size,
        precision=precision,
        compile=compile,
        workers=workers,
        weights=weights,
        cache=cache,
        ray=ray,
        force=force,
        allow_failures=allow_failures,
        progress=progress,
    )
    return reports[dataset]


def predict_sets(
    sets: Mapping[str, ImageSource],
    classifiers: Sequence[str],
    study: str | Path,
    *,
    classes: str | Path | None = None,
    keep: Kept | None = None,
    device: str = "auto",
    batch_size: int | None = None,
    precision: str = "auto",
    compile: bool = False,
    workers: int | None = None,
    weights: str | Path | None = None,
    cache: str | Path | None = None,
    ray: str | None = None,
    force: bool = False,
    allow_failures: bool = False,
    progress: bool = True,
) -> dict[str, Report]:
    """Evaluate classifiers on several data sets, with every classifier loaded once for all.

    Parameters
    ----------
    sets
        The images of each data set, by its name; see `read_suite`.
    classifiers, study, classes, keep, device, batch_size, precision, compile, workers, weights
        See `predict`; answers are those of a `predict` of each data set, to the bit.
    cache, ray, force, allow_failures, progress
        See `predict`.

    Returns
    -------
    mapping of data set to Report
        In the order of the sets.

    Raises
    ------
    PredictionError, StudyError
        See `predict`. All that can be known of any set is looked at before the first is begun.
    """
    load_timm()
    if not all(sets):
        raise PredictionError("data-set-name-empty")
    names, folder = [str(name) for name in classifiers], Path(study)
    place = None if weights is None else Path(weights)
    check_names(names, place)
    if workers is not None and workers < 1:
        raise PredictionError("prediction-workers-below-one", workers=workers)
    bounds.refuse_above("workers", workers or 1, LARGEST_WORKERS)
    # All that may be refused is refused before images are read.
    target = choose_device(
        device, precision, batch_size, compiles=compile, keeps_logits=keep is not None
    )
    check_writable(folder)
    meant = IMAGENET if classes is None else read_classes(classes)
    listed = {name: _list_set(source, folder, name, meant) for name, source in sets.items()}
    # What an earlier run has found is kept unless images, labels or weights changed.
    with quiet_images():
        known, status = _describe_classifiers(names, place, meant)
        if target.keeps_logits:
            check_room(folder, {n: len(each.images) for n, each in listed.items()}, known, target)
        runs = [
            _begin_run(
                *(folder, name, each.images, known, target, status),
                force=force,
                allow_failures=allow_failures,
            )
            for name, each in listed.items()
        ]
        _evaluate_missing(runs, known, target, workers, cache, ray, show=progress)
    full = {architecture.name: architecture.full_name for architecture in known}
    return {run.dataset: make_report(run, names, full, listed[run.dataset]) for run in runs}


@dataclass(frozen=True, eq=False)
class ListedSet:
    """A data set's images as they are evaluated, and which classes answers are among.

    Attributes
    ----------
    images
        Those that are evaluated.
    among
        Which classes answers are among, in words; empty where among all.
    outside
        How many images were passed over because they show none of these.
    """

    images: ImageSet
    among: str
    outside: int


def choose_images(images: ImageSet, chosen: Among | None, study: Path, dataset: str) -> ListedSet:
    """The images of the chosen classes, which have to be all that a study counts."""
    counted = counted_images(study, dataset, images)
    if chosen is None:
        return ListedSet(counted, "", 0)
    taken = chosen.take_chosen(counted)
    outside = len(counted) - len(taken)
    if outside and StudyFolder(study).is_study:
        other = sorted(set(counted.names) - set(taken.names))
        raise StudyError(
            "study-counts-images-of-other-classes",
            study=study,
            dataset=dataset,
            images=listing(other),
            among=chosen.source,
        )
    return ListedSet(taken, chosen.description, outside)


def _list_set(source: ImageSource, study: Path, dataset: str, meant: Classes) -> ListedSet:
    chosen = None if source.among is None else read_among(source.among, meant)
    labelled = chosen.labelled if chosen else meant
    place = locate_images(source.images)
    images = list_images(place, labels=source.labels, classes=labelled)
    if source.among is None:
        check_few_classes(images, source.images)
    return choose_images(images, chosen, study, dataset)


def _begin_run(
    study: Path,
    dataset: str,
    images: ImageSet,
    known: Sequence[Architecture],
    device: Device,
    status: Mapping[str, str],
    *,
    force: bool,
    allow_failures: bool,
) -> DatasetRun:
    """What earlier runs have left of a data set."""
    contents = Contents(images, study, dataset)
    results = open_results(study, dataset, images, contents, known, device, force=force)
    kept: dict[str, KeptLogits] = {}
    if device.keeps_logits:
        kept = open_logits(study, dataset, images, contents, known, device, force=force)
    failures = still_failing(images, read_failures(study, dataset))
    return DatasetRun(
        *(study, dataset, images, contents, results, failures, allow_failures, {**status}),
        kept=kept,
    )


def _evaluate_missing(
    runs: Sequence[DatasetRun],
    known: Sequence[Architecture],
    device: Device,
    workers: int | None,
    cache: str | Path | None,
    ray: str | None,
    *,
    show: bool,
) -> None:
    """Evaluate what no earlier run has finished."""
    if not all(run.is_finished(architecture) for run in runs for architecture in known):
        if device.compiles:
            check_compiler(device)
        images = runs[0].images
        engine: Engine = (
            Local(images, device, workers or cores())
            if ray is None
            else Cluster(ray, images, device, workers)
        )
        place = None if cache is None else Path(cache)
        try:
            evaluate_together(runs, known, engine, place, show=show)
        finally:
            engine.close()
    for run in runs:
        run.contents.save()
        run.save_failures()


def check_writable(study: Path) -> None:
    """Refuse a study whose folder cannot be written or made."""
    place = next(path for path in (study, *study.absolute().parents) if path.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise PredictionError("study-folder-not-writable", study=study, folder=place)


def make_report(
    run: DatasetRun, names: Sequence[str], full: Mapping[str, str], listed: ListedSet
) -> Report:
    """Say what a run has found; `full` has timm's names of the classifiers."""
    rows = [_row(run, name, full.get(name)) for name in names]
    table = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    if not table["status"].is_in(_DONE_STATES).any():
        if len(run.failures) == len(run.images):
            first = next(iter(run.failures.values()))
            raise PredictionError("no-image-decoded", first=first)
        said = dict(table.select("classifier", "status").rows()) | run.status
        raise PredictionError(_first_reason([_violation(why) for why in said.values()]))
    _warn_of_chance(run, table)
    failures = [(name, f.reason, f.left_out) for name, f in run.named_failures().items()]
    schema = {"image": pl.String, "reason": pl.String, "left_out": pl.Boolean}
    failed = pl.DataFrame(failures, schema=schema, orient="row")
    note_among(run.study, run.dataset, listed.among)
    complete = tuple(list_complete_classifiers(run.study))
    return Report(table, failed, complete, tuple(run.stages), listed.among, listed.outside)


def _row(run: DatasetRun, name: str, full: str | None) -> tuple[Any, ...]:
    status, took = run.status.get(name), run.seconds.get(name, 0.0)
    result = run.results.get(name)
    if status is None:
        there = result is not None and result.file.exists()
        status = _DONE_STATES[1] if there else "no image can be decoded"
    if result is None or status not in _DONE_STATES:
        return name, full, 0, None, None, took, None, 0, 0, 0, str(status)
    count, top1, top5 = result.accuracies()
    earlier = result.judged_again, result.changed, result.dropped
    missing = len(run.images) - count
    within5 = top5 / count if run.images.classes.ranks == RANKS else None
    return name, full, count, top1 / count, within5, took, missing, *earlier, status


def _warn_of_chance(run: DatasetRun, table: pl.DataFrame) -> None:
    """Say what is probably wrong where classifiers are at chance: never a finding."""
    from scipy.stats import binom

    done = table.filter(pl.col("status").is_in(_DONE_STATES))
    count, right = done["images"].to_numpy(), (done["top1"] * done["images"]).round().to_numpy()
    chance = binom.sf(right - 1, count, 1 / len(run.images.classes)) > CHANCE_LEVEL
    at_chance = done.filter(pl.Series(chance & (count >= CHANCE_IMAGES)))["classifier"].to_list()
    if not at_chance:
        return
    where = f"data set {run.dataset!r}"
    if len(at_chance) < len(done):
        text = (
            f"{where}: {listing(at_chance, 'classifier')} no better than chance, others are; "
            "look at their weights"
        )
    else:
        best = int(np.argmax(right))
        name = done["classifier"][best]
        classes = run.images.classes
        mistake = find_mistake(*run.results[name].labels_and_predictions(), len(classes))
        order = "the sorted wnids" if classes.file is None else str(classes.file)
        cause = (
            f"{mistake.what}: read otherwise, {name} is right on {mistake.otherwise:.1%}"
            if mistake
            else f"the labels are in another order of classes than that of {order}, or the "
            "weights are untrained"
        )
        text = (
            f"{where}: no classifier is better than chance ({right[best]:.0f} of {count[best]} "
            f"images right at best); most likely {cause}"
        )
    warnings.warn(text, PredictionWarning, stacklevel=3)


def _violation(why: str) -> Violation:
    """Why a classifier has no answers; where its network failed, that is what it raised."""
    if isinstance(why, Violation):
        return why
    return Violation("classifier-fails-on-images", failure=why)


def _first_reason(reasons: Sequence[Violation]) -> Violation:
    more = f" ({len(reasons) - 1} more were left out)" if len(reasons) > 1 else ""
    return reasons[0].append_text(more)


_SCHEMA = {
    "classifier": pl.String,
    "full_name": pl.String,
    "images": pl.Int64,
    "top1": pl.Float64,
    "top5": pl.Float64,
    "seconds": pl.Float64,
    "failures": pl.Int64,
    "judged_again": pl.Int64,
    "evaluated_again": pl.Int64,
    "dropped": pl.Int64,
    "status": pl.String,
}


def _describe_classifiers(
    names: Sequence[str], weights: Path | None, classes: Classes
) -> tuple[list[Architecture], dict[str, Violation]]:
    """Describe every classifier; those that cannot be evaluated are left out with a warning."""
    known: list[Architecture] = []
    refused: dict[str, Violation] = {}
    with offline_without_hub(needed=any(map(is_of_hub, names))):
        for name in names:
            try:
                known.append(describe(name, weights, classes))
            except PredictionError as error:
                refused[name] = error.violation
    if not known:
        raise PredictionError(_first_reason(list(refused.values())))
    for why in refused.values():
        warnings.warn(why, PredictionWarning, stacklevel=3)
    for head in {each.head: None for each in known if each.head and each.head.missing}:
        have_it = [each.name for each in known if each.head == head]
        warnings.warn(
            f"{listing(have_it, 'classifier')}: answers are among {head.description}; images of "
            f"{listing(head.missing, 'class')}, which it lacks, are never right",
            PredictionWarning,
            stacklevel=3,
        )
    return known, refused
