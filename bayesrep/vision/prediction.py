"""Evaluate classifiers on a data set and write their predictions into a study."""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from bayesrep import bounds
from bayesrep.choices import Kept
from bayesrep.errors import PredictionError, PredictionWarning, Violation, listing
from bayesrep.machine import cores
from bayesrep.vision.architectures import Architecture, check_names, describe
from bayesrep.vision.catalogs import expand_catalogs
from bayesrep.vision.classes import IMAGENET, Classes, read_classes
from bayesrep.vision.compiling import check_compiler
from bayesrep.vision.devices import choose_device
from bayesrep.vision.evaluation_set import ImageSource, list_set
from bayesrep.vision.hub import is_of_hub, offline_without_hub
from bayesrep.vision.image_digests import Contents
from bayesrep.vision.logits import KeptLogits, check_room, open_logits
from bayesrep.vision.pixels import quiet_images
from bayesrep.vision.prediction_store import read_failures
from bayesrep.vision.reports import Report, first_reason, make_report
from bayesrep.vision.run import DatasetRun, Engine, evaluate_together, open_results, still_failing
from bayesrep.vision.run_local import Local
from bayesrep.vision.run_ray import Cluster
from bayesrep.vision.torch_loading import own_defaults

MAX_WORKERS = 1_024


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

    Each image is decoded once for all classifiers. Finished classifiers are skipped, and an
    interrupted run resumes; images that changed since are evaluated again, and if labels changed,
    earlier answers are judged again. If the study counts images already, exactly these are
    evaluated.

    Parameters
    ----------
    images
        A folder of class folders, a flat folder, `.tar` shards or a `.csv` of paths and labels
        (`bayesrep.vision.images.list_images`), or a data set of the hub
        (`bayesrep.vision.hub.locate_images`).
    dataset
        The data set's name in the study.
    classifiers
        timm's names, with or without tags; `torchvision/...`, `hf-hub:user/model`, folders of
        `weights` with a `config.json`, or catalogs (`bayesrep.vision.read_catalog`).
    study
        The study's folder; created where it does not exist.
    labels
        A ground-truth file, for flat folders without a known one.
    classes
        A table of the classifiers' outputs, with the columns index, name and, if folders of images
        have other names, folder; by default they are ImageNet's 1,000 classes.
    among
        The classes that answers are chosen among, and of which images are taken: "imagenet-a",
        "imagenet-r", a file with a class a line, a folder of class folders, or ObjectNet's folder
        `mappings`; see `bayesrep.vision.class_subset`. "all", the default, is all classes of the
        outputs; it has to be said for images of ImageNet-A's or -R's classes.
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
    ClusterError
        Where a Ray cluster cannot be joined, or its workers die again and again.

    Warns
    -----
    PredictionWarning
        For classifiers left out or given twice under two names, for images of few classes, and
        where all classifiers are at chance, with the likely cause.

    Examples
    --------
    >>> bayesrep.predict(  # doctest: +SKIP
    ...     "photographs", "v2", ["resnet18.a1_in1k"], "my-study"
    ... )
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


@own_defaults()
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
    if not all(sets):
        raise PredictionError("data-set-name-empty")
    names, folder = expand_catalogs([str(name) for name in classifiers]), Path(study)
    place = None if weights is None else Path(weights)
    check_names(names, place)
    if workers is not None and workers < 1:
        raise PredictionError("prediction-workers-below-one", workers=workers)
    bounds.refuse_above("workers", workers or 1, MAX_WORKERS)
    # Refuse bad arguments before images are read.
    target = choose_device(
        device, precision, batch_size, compiles=compile, keeps_logits=keep is not None
    )
    check_writable(folder)
    output_classes = IMAGENET if classes is None else read_classes(classes)
    listed = {name: list_set(source, folder, name, output_classes) for name, source in sets.items()}
    # Results of an earlier run are kept unless images, labels or weights changed.
    with quiet_images():
        architectures, status = _describe_classifiers(names, place, output_classes)
        if target.keeps_logits:
            check_room(
                folder, {n: len(each.images) for n, each in listed.items()}, architectures, target
            )
        runs: list[DatasetRun] = []
        for name, each in listed.items():
            given = folder, name, each.images, Contents(each.images, folder, name)
            results = open_results(*given, architectures, target, force=force)
            logits: dict[str, KeptLogits] = {}
            if target.keeps_logits:
                logits = open_logits(*given, architectures, target, force=force)
            failures = still_failing(each.images, read_failures(folder, name))
            kept = results, failures, allow_failures, dict[str, str](status)
            runs.append(DatasetRun(*given, *kept, logits=logits))
        if not all(run.is_finished(each) for run in runs for each in architectures):
            if target.compiles:
                check_compiler(target)
            images = runs[0].images
            engine: Engine = (
                Local(images, target, workers or cores())
                if ray is None
                else Cluster(ray, images, target, workers)
            )
            try:
                pixels = None if cache is None else Path(cache)
                evaluate_together(runs, architectures, engine, pixels, show=progress)
            finally:
                engine.close()
        for run in runs:
            run.contents.save()
            run.save_failures()
    full = {architecture.name: architecture.full_name for architecture in architectures}
    return {run.dataset: make_report(run, names, full, listed[run.dataset]) for run in runs}


def check_writable(study: Path) -> None:
    """Refuse a study whose folder cannot be written or made."""
    place = next(path for path in (study, *study.absolute().parents) if path.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise PredictionError("study-folder-not-writable", study=study, folder=place)


def _describe_classifiers(
    names: Sequence[str], weights: Path | None, classes: Classes
) -> tuple[list[Architecture], dict[str, Violation]]:
    architectures: list[Architecture] = []
    violations: dict[str, Violation] = {}
    with offline_without_hub(needed=any(map(is_of_hub, names))):
        for name in names:
            try:
                architectures.append(describe(name, weights, classes))
            except PredictionError as error:
                violations[name] = error.violation
    if not architectures:
        raise PredictionError(first_reason(list(violations.values())))
    for why in violations.values():
        warnings.warn(why, PredictionWarning, stacklevel=3)
    for head in {
        each.head: None for each in architectures if each.head and each.head.missing_classes
    }:
        have_it = [each.name for each in architectures if each.head == head]
        warnings.warn(
            f"{listing(have_it, 'classifier')}: answers are among {head.description}; images of "
            f"{listing(head.missing_classes, 'class')}, which it lacks, are never right",
            PredictionWarning,
            stacklevel=3,
        )
    return architectures, violations
