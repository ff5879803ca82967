"""The door: evaluate classifiers on a data set and write their predictions into a study."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, PredictionWarning, reason
from bayesrep.vision.cluster import Cluster
from bayesrep.vision.evaluate import Answers, Device, choose_device
from bayesrep.vision.images import ImageSet, list_images
from bayesrep.vision.imports import load_timm
from bayesrep.vision.labels import likely_mistake
from bayesrep.vision.local import Found, Local, in_blocks
from bayesrep.vision.membership import counted_images, list_complete_classifiers
from bayesrep.vision.networks import (
    Architecture,
    check_names,
    describe,
    offline_without_hub,
)
from bayesrep.vision.pixels import Preprocessing, decode
from bayesrep.vision.progress import Progress, progress_bar
from bayesrep.vision.results import Results, folder_of_pixels, read_failures, write_failures

__all__ = ["Report", "predict"]

SAVE_SECONDS = 20.0  # a killed run loses at most about this much work
CHANCE_IMAGES = 200  # fewer images cannot tell a poor classifier from chance


@dataclass(frozen=True, eq=False)
class Report:
    """What `predict` did.

    Attributes
    ----------
    table
        One row per classifier: classifier, full_name (timm's, with its tag), images, top1, top5
        (fractions of the images answered), seconds (of the network itself, in this run), failures
        (images without an answer), status ("done", "already done", or why there is nothing).
    failures
        image, reason: what could not be decoded.
    listed
        Classifiers that were added to the study's list, now that they have predictions on every
        data set.
    """

    table: pl.DataFrame
    failures: pl.DataFrame
    listed: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every classifier has an answer for every image."""
        done = self.table["status"].is_in(["done", "already done"])
        return bool(done.all()) and not len(self.failures)


class Engine(Protocol):
    """Something that holds the classifiers of a pass and goes through images with them."""

    def load(
        self, architectures: Sequence[Architecture]
    ) -> tuple[Sequence[Architecture], dict[str, str], Sequence[Architecture]]:
        """Load what fits; return it, the reasons why some cannot be had, and the rest."""
        ...

    def keep(self, folder: Path, preprocessings: Sequence[Preprocessing]) -> None:
        """Keep the pixels of these preprocessings in a cache folder from now on."""
        ...

    def through_images(self, blocks: Sequence[NDArray[np.int64]]) -> Iterator[Found]:
        """Yield what the loaded classifiers say about all blocks."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


def predict(
    images: str | Path,
    dataset: str,
    classifiers: Sequence[str],
    study: str | Path,
    *,
    labels: str | Path | None = None,
    device: str = "auto",
    batch_size: int | None = None,
    precision: str = "auto",
    workers: int | None = None,
    weights: str | Path | None = None,
    cache: str | Path | None = None,
    ray: str | None = None,
    force: bool = False,
    progress: bool = True,
) -> Report:
    """Evaluate classifiers on a data set and write their predictions into a study.

    Each image is decoded once for all classifiers. Finished classifiers are skipped, and a run that
    was interrupted goes on where it was. Where the study counts images already, exactly these are
    evaluated.

    Parameters
    ----------
    images
        A folder of class folders, a flat folder, ``.tar`` shards or a ``.csv`` of paths and labels;
        see `bayesrep.vision.images.list_images`.
    dataset
        The data set's name in the study.
    classifiers
        timm's names, with or without tags.
    study
        The study's folder; created where it does not exist.
    labels
        A ground-truth file, for flat folders without a known one.
    device, batch_size, precision
        See `bayesrep.vision.evaluate.choose_device`.
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
        For classifiers left out, and where all are at chance, with the likely cause.
    """
    load_timm()
    if not dataset:
        raise PredictionError("the data set has an empty name; give it one (--dataset)")
    names, folder = [str(name) for name in classifiers], Path(study)
    check_names(names)
    if workers is not None and workers < 1:
        raise PredictionError(f"{workers} workers can do nothing; give 1 or more")
    target = choose_device(device, precision, batch_size)
    listed = counted_images(folder, dataset, list_images(images, labels=labels))
    with _quiet_images():
        known, status = _described(names, None if weights is None else Path(weights))
        results = _opened(folder, dataset, listed, known, target, force=force)
        failures = _still_failing(listed, read_failures(folder, dataset))
        run = _Run(folder, dataset, listed, results, failures, status)
        todo = [a for a in known if not results[a.name].is_finished(run.failing())]
        if todo:
            threads = workers or len(os.sched_getaffinity(0))
            engine: Engine = (
                Local(listed, target, threads)
                if ray is None
                else Cluster(ray, listed, target, workers)
            )
            try:
                with offline_without_hub(todo if ray is None else ()):
                    where = None if cache is None else Path(cache)
                    run.evaluate(todo, engine, where, show=progress)
            finally:
                engine.close()
    return run.report(names, known)


@dataclass(frozen=True, eq=False)
class _Run:
    """One data set's classifiers on their way to being finished."""

    study: Path
    dataset: str
    images: ImageSet
    results: Mapping[str, Results]
    failures: dict[int, str]  # row: reason
    status: dict[str, str]
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    def failing(self) -> NDArray[np.bool_]:
        mask = np.zeros(len(self.images), dtype=np.bool_)
        mask[list(self.failures)] = True
        return mask

    def evaluate(
        self, todo: Sequence[Architecture], engine: Engine, cache: Path | None, *, show: bool
    ) -> None:
        missing = sum(int((~self.results[a.name].done).sum()) for a in todo)
        temporary = self.study / folder_of_pixels(self.dataset)
        if cache is not None:
            engine.keep(cache, _preprocessings(todo))
        with progress_bar(missing, len(todo), show=show) as bar:
            rest, first = todo, True
            while rest:
                bar.stage("loading classifiers")
                loaded, refused, rest = engine.load(rest)
                for name, why in refused.items():
                    self._leave_out(name, why, bar)
                if first and rest and cache is None:
                    _keep_for_this_run(engine, temporary, todo, len(self.images), bar)
                first = False
                if loaded:
                    self._pass(loaded, engine, bar)
        shutil.rmtree(temporary, ignore_errors=True)

    def _pass(self, loaded: Sequence[Architecture], engine: Engine, bar: Progress) -> None:
        """Go once through all images that any of the classifiers still needs."""
        done = np.all([self.results[a.name].done for a in loaded], axis=0)
        rows = np.flatnonzero(~done & ~self.failing())
        waiting: dict[str, list[tuple[NDArray[np.int64], Answers]]] = {a.name: [] for a in loaded}
        bar.stage(f"{len(loaded)} classifiers at once" if len(loaded) > 1 else loaded[0].name)
        saved = time.monotonic()
        try:
            for found in engine.through_images(in_blocks(rows)):
                self.failures.update(found.failures)
                for name, answers in found.answers.items():
                    if isinstance(answers, Answers):
                        waiting[name].append((found.rows, answers))
                    elif name not in self.status:
                        self._leave_out(name, answers, bar)
                bar.advance((len(found.rows) + len(found.failures)) * len(loaded))
                if time.monotonic() - saved > SAVE_SECONDS:
                    self._save(waiting)
                    saved = time.monotonic()
        finally:  # also when interrupted
            self._save(waiting)
        for architecture in loaded:
            result = self.results[architecture.name]
            if (result.done | self.failing()).all() and result.done.any():
                result.finish(_facts())
                self.status.setdefault(architecture.name, "done")
            bar.classifier_done()

    def _save(self, waiting: Mapping[str, list[tuple[NDArray[np.int64], Answers]]]) -> None:
        for name, parts in waiting.items():
            if parts:
                rows = np.concatenate([rows for rows, _ in parts])
                labels = np.concatenate([answers.labels for _, answers in parts])
                values = np.concatenate([answers.probabilities for _, answers in parts])
                took = sum(answers.seconds for _, answers in parts)
                self.results[name].add(rows, Answers(labels, values, took))
                self.seconds[name] = self.seconds.get(name, 0.0) + took
                parts.clear()
        names = {self.images.names[row]: why for row, why in sorted(self.failures.items())}
        write_failures(self.study, self.dataset, names)

    def _leave_out(self, name: str, why: str, bar: Progress) -> None:
        self.status[name] = why
        bar.pause()
        warnings.warn(f"classifier {name!r} left out: {why}", PredictionWarning, stacklevel=2)

    def report(self, names: Sequence[str], known: Sequence[Architecture]) -> Report:
        full = {architecture.name: architecture.full_name for architecture in known}
        rows = [self._row(name, full.get(name)) for name in names]
        table = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
        if all(status not in ("done", "already done") for status in table["status"]):
            if len(self.failures) == len(self.images):
                why = f"no image can be decoded, the first: {next(iter(self.failures.values()))}"
                raise PredictionError(why)
            more = f" ({len(names) - 1} more were left out)" if len(names) > 1 else ""
            raise PredictionError(f"{table['status'][0]}{more}")
        self._warn_of_chance(table)
        failures = read_failures(self.study, self.dataset)
        listed = pl.DataFrame(
            {"image": list(failures), "reason": list(failures.values())},
            schema={"image": pl.String, "reason": pl.String},
        )
        return Report(table, listed, tuple(list_complete_classifiers(self.study)))

    def _row(self, name: str, full: str | None) -> tuple[Any, ...]:
        status = self.status.get(name, "already done")
        if status not in ("done", "already done"):
            return name, full, 0, None, None, self.seconds.get(name, 0.0), None, status
        count, top1, top5 = self.results[name].accuracies()
        took, missing = self.seconds.get(name, 0.0), len(self.images) - count
        return name, full, count, top1 / count, top5 / count, took, missing, status

    def _warn_of_chance(self, table: pl.DataFrame) -> None:
        """Say why all classifiers are at chance, if they are: never a finding, always a mistake."""
        from scipy.stats import binom

        best = (
            table.filter(pl.col("top1").is_not_null())
            .sort("top1", descending=True)
            .row(0, named=True)
        )
        answered, right = best["images"], round(best["top1"] * best["images"])
        if answered < CHANCE_IMAGES or binom.sf(right - 1, answered, 1e-3) < 1e-6:
            return
        mistake = likely_mistake(*self.results[best["classifier"]].predicted())
        cause = (
            f"most likely {mistake[0]}: read so, {best['classifier']} is right on {mistake[1]:.1%}"
            if mistake
            else "most likely the labels are in another order of classes (bayesrep's is that of "
            "the sorted wnids), or the weights are untrained"
        )
        warnings.warn(
            f"data set {self.dataset!r}: no classifier is better than chance ({right} of "
            f"{answered} images right); {cause}",
            PredictionWarning,
            stacklevel=3,
        )


_SCHEMA = {
    "classifier": pl.String,
    "full_name": pl.String,
    "images": pl.Int64,
    "top1": pl.Float64,
    "top5": pl.Float64,
    "seconds": pl.Float64,
    "failures": pl.Int64,
    "status": pl.String,
}


def _described(
    names: Sequence[str], weights: Path | None
) -> tuple[list[Architecture], dict[str, str]]:
    """Describe every classifier; those that cannot be evaluated are left out with a warning."""
    known: list[Architecture] = []
    refused: dict[str, str] = {}
    for name in names:
        try:
            known.append(describe(name, weights))
        except PredictionError as error:
            refused[name] = str(error)
    if not known:
        more = f" ({len(refused) - 1} more were left out)" if len(refused) > 1 else ""
        raise PredictionError(f"{next(iter(refused.values()))}{more}")
    for why in refused.values():
        warnings.warn(why, PredictionWarning, stacklevel=3)
    return known, refused


def _opened(
    study: Path,
    dataset: str,
    images: ImageSet,
    known: Iterable[Architecture],
    device: Device,
    *,
    force: bool,
) -> dict[str, Results]:
    results: dict[str, Results] = {}
    for architecture in known:
        if force:
            Results.forget(study, dataset, architecture.name)
        identity = {
            "full_name": architecture.full_name,
            "weights": architecture.weights,
            "preprocessing": str(architecture.preprocessing),
            "precision": device.precision,
        }
        name = architecture.name
        results[name] = Results(study, dataset, name, images, identity)
    return results


def _still_failing(images: ImageSet, failures: Mapping[str, str]) -> dict[int, str]:
    """Try once more what could not be decoded earlier; it may have been repaired."""
    rows = {name: row for row, name in enumerate(images.names)}
    failing: dict[int, str] = {}
    for name in failures:
        if name in rows:
            try:
                decode(images.read(rows[name]))
            except Exception as error:  # as in `read_block`
                failing[rows[name]] = f"{type(error).__name__}: {reason(error)}"
    return failing


def _preprocessings(architectures: Iterable[Architecture]) -> list[Preprocessing]:
    return list(dict.fromkeys(a.preprocessing for a in architectures))


def _keep_for_this_run(
    engine: Engine, place: Path, todo: Sequence[Architecture], images: int, bar: Progress
) -> None:
    """Keep pixels until the run ends, so that several passes decode once, where there is room."""
    keys = _preprocessings(todo)
    need = images * sum(key.image_bytes() for key in keys)
    place.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(place).free > 2 * need:
        engine.keep(place, keys)
    else:
        bar.say(
            f"{place} has no room for {need / 1e9:.0f} GB of preprocessed images: they are decoded "
            "again in every pass (--cache names a larger disk)"
        )


def _facts() -> dict[str, str]:
    import timm
    import torch

    from bayesrep import __version__

    return {"bayesrep": __version__, "timm": timm.__version__, "torch": torch.__version__}


@contextmanager
def _quiet_images() -> Generator[None]:
    """Silence what Pillow says about odd images; set here since it concerns every thread."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\..*")
        yield
