"""A run: one data set's classifiers on their way to being finished, pass by pass."""

import math
import shutil
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PredictionWarning
from bayesrep.progress import Progress, progress_bar
from bayesrep.studies import folder
from bayesrep.types import Bools, Ints
from bayesrep.vision.cluster import Cluster
from bayesrep.vision.contents import Contents
from bayesrep.vision.evaluate import Device, TopFive
from bayesrep.vision.images import ImageSet
from bayesrep.vision.local import Local, in_blocks
from bayesrep.vision.networks import Architecture
from bayesrep.vision.pixels import Preprocessing, decode, explain_failure
from bayesrep.vision.results import (
    Failure,
    Results,
    folder_of_pixels,
    read_failures,
    same_network,
    write_failures,
)
from bayesrep.vision.stages import Spent, Stages

Waiting: TypeAlias = Mapping[str, list[tuple[Ints, NDArray[np.uint64], TopFive]]]

Engine: TypeAlias = Local | Cluster
SAVE_SECONDS = 20.0  # a killed run loses at most about this much work


@dataclass(eq=False)
class DatasetRun:
    """What is known of one data set's classifiers, and what has been found in this run.

    Attributes
    ----------
    study, dataset
        Where results go.
    images, contents
        All images, and what they hold.
    results
        The files of each classifier.
    failures
        Why images could not be decoded, by row.
    allow_failures
        Whether the study is to be left without images that cannot be decoded.
    status
        State of each classifier done or left out: "done", "judged again" where other labels were
        all there was to do, or why not.
    seconds
        Time that each network itself took.
    stages
        Where the time of each pass went.
    compiled
        Reason why a classifier goes uncompiled, where compiling was tried; empty where it does not.
    """

    study: Path
    dataset: str
    images: ImageSet
    contents: Contents
    results: Mapping[str, Results]
    failures: dict[int, str]
    allow_failures: bool = False
    status: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    stages: list[Stages] = field(default_factory=list[Stages])
    compiled: dict[str, str] = field(default_factory=dict[str, str])

    def undecodable_images(self) -> Bools:
        """Which images [N] cannot be decoded."""
        mask = np.zeros(len(self.images), dtype=np.bool_)
        mask[list(self.failures)] = True
        return mask

    def is_finished(self, architecture: Architecture) -> bool:
        """Whether a classifier has its one file, after making it where all rows are there."""
        result = self.results[architecture.name]
        if result.is_finished(self.undecodable_images()):
            return True
        return self._finish(architecture, "judged again" if result.judged_again else "done")

    def named_failures(self) -> dict[str, Failure]:
        """Why images could not be decoded, by name and in the order of the images.

        What the study was once left without stays left out until it can be decoded.
        """
        earlier = read_failures(self.study, self.dataset)
        failures: dict[str, Failure] = {}
        for row, why in sorted(self.failures.items()):
            name = self.images.names[row]
            left_out = self.allow_failures or (name in earlier and earlier[name].left_out)
            failures[name] = Failure(why, left_out=left_out)
        return failures

    def save_failures(self) -> None:
        """Write what could not be decoded, in place of what an earlier run said.

        Images that a study is left without and does not count any more are not among ours, and
        stay in the list.
        """
        ours = set(self.images.names)
        others = {
            name: failure
            for name, failure in read_failures(self.study, self.dataset).items()
            if failure.left_out and name not in ours and (self.study / folder.MANIFEST).exists()
        }
        write_failures(self.study, self.dataset, others | self.named_failures())

    def evaluate(
        self, todo: Sequence[Architecture], engine: Engine, cache: Path | None, *, show: bool
    ) -> None:
        """Go through all images with all classifiers in as few passes as memory allows.

        A classifier that cannot be loaded or has no usable outputs is left out with a warning.

        Parameters
        ----------
        todo
            Classifiers that are not finished.
        engine
            What goes through the images.
        cache
            A folder of pixels for this and later runs, or None.
        show
            Progress on standard error.
        """
        missing = sum(int((~self.results[a.name].done).sum()) for a in todo)
        temporary = self.study / folder_of_pixels(self.dataset)
        # Decoded pixels are kept where the user asked for it.
        if cache is not None:
            engine.keep(cache, _preprocessings(todo))
        with progress_bar(missing, "image", f"of {len(todo)} classifiers", show=show) as bar:
            # Each turn takes as many classifiers as fit into memory, over all images.
            rest, first = todo, True
            while rest:
                begin = time.monotonic()
                bar.stage("loading classifiers")
                loaded, refused, rest = engine.load(rest)
                for name, why in refused.items():
                    self._leave_out(name, why, bar)
                # More passes are to come: decode once and keep the pixels until the run ends.
                if first and rest and cache is None:
                    _keep_for_this_run(engine, temporary, todo, len(self.images), bar)
                first = False
                if loaded:
                    load = time.monotonic() - begin
                    count, spent = self._pass(loaded, engine, bar)
                    total = time.monotonic() - begin
                    taken = Stages.of(len(loaded), count, spent, engine.crew, load, total)
                    self.stages.append(taken)
                    bar.say(_describe_times(loaded, taken))
            # Times of a run of several passes are also given in sum.
            if len(self.stages) > 1:
                bar.say(f"in all {Stages.joined(tuple(self.stages)).line()}")
        shutil.rmtree(temporary, ignore_errors=True)

    def _pass(
        self, loaded: Sequence[Architecture], engine: Engine, bar: Progress
    ) -> tuple[int, Spent]:
        """Go once through all images that any classifier still needs; count what it took."""
        done = np.all([self.results[a.name].done for a in loaded], axis=0)
        rows = np.flatnonzero(~done & ~self.undecodable_images())
        waiting: Waiting = {a.name: [] for a in loaded}
        what = f"{len(loaded)} classifiers at once" if len(loaded) > 1 else loaded[0].name
        bar.stage(f"compiling {what}" if engine.compiles else what)
        saved, spent, count = time.monotonic(), Spent(), 0
        try:
            for results in engine.through_images(in_blocks(rows)):
                if results.compiled:
                    self._take_compiled(results.compiled, bar)
                    bar.stage(what)
                self.failures.update(results.failures)
                self.contents.note(results.rows, results.contents)
                spent += results.spent
                count += len(results.rows)
                for name, answers in results.answers.items():
                    if isinstance(answers, TopFive):
                        waiting[name].append((results.rows, results.contents, answers))
                    elif name not in self.status:
                        self._leave_out(name, answers, bar)
                bar.advance((len(results.rows) + len(results.failures)) * len(loaded))
                if time.monotonic() - saved > SAVE_SECONDS:
                    self._save(waiting)
                    saved = time.monotonic()
        finally:  # also when interrupted
            self._save(waiting)
        for architecture in loaded:
            self._finish(architecture)
            bar.advance(0, 1)
        return count, spent

    def _finish(self, architecture: Architecture, status: str = "done") -> bool:
        """Put the rows of a classifier into its one file, if there is one for every image."""
        result = self.results[architecture.name]
        if not (result.done | self.undecodable_images()).all() or not result.done.any():
            return False
        compiled = {"compiled": "yes"} if self.compiled.get(architecture.name) == "" else {}
        result.finish(_facts() | compiled)
        self.status.setdefault(architecture.name, status)
        return True

    def _save(self, waiting: Waiting) -> None:
        for name, parts in waiting.items():
            if parts:
                rows = np.concatenate([rows for rows, _, _ in parts])
                contents = np.concatenate([contents for _, contents, _ in parts])
                answers = TopFive.concatenate([answers for _, _, answers in parts])
                self.results[name].add(rows, contents, answers)
                self.seconds[name] = self.seconds.get(name, 0.0) + answers.seconds
                parts.clear()
        self.contents.save()
        self.save_failures()

    def _take_compiled(self, compiled: Mapping[str, str], bar: Progress) -> None:
        """Note what came of compiling; say once for which classifiers it is not used."""
        for name, why in compiled.items():
            if why and name not in self.compiled:
                bar.pause()
                text = f"classifier {name!r} goes uncompiled: {why}"
                warnings.warn(text, PredictionWarning, stacklevel=2)
            self.compiled[name] = why

    def _leave_out(self, name: str, why: str, bar: Progress) -> None:
        self.status[name] = why
        bar.pause()
        warnings.warn(f"classifier {name!r} left out: {why}", PredictionWarning, stacklevel=2)


def open_results(
    study: Path,
    dataset: str,
    images: ImageSet,
    contents: Contents,
    known: Iterable[Architecture],
    device: Device,
    *,
    force: bool = False,
) -> dict[str, Results]:
    """The files of every classifier, with what is still true of an earlier run in them.

    Where one network goes by two names there is a warning; rows that were made otherwise, also by
    the device's precision, are refused, unless `force` forgets all earlier ones.
    """
    identities = {
        architecture.name: {
            "full_name": architecture.full_name,
            "weights": architecture.weights,
            "preprocessing": str(architecture.preprocessing),
            "precision": device.precision,
        }
        for architecture in known
    }
    for name, other in same_network(study, dataset, identities).items():
        warnings.warn(
            f"classifiers {other!r} and {name!r} are one network with the same weights; a study of "
            "both counts it twice, leave one out",
            PredictionWarning,
            stacklevel=3,
        )
    if force:
        for name in identities:
            Results.forget(study, dataset, name)
    return {
        name: Results(study, dataset, name, images, contents, identity)
        for name, identity in identities.items()
    }


def still_failing(images: ImageSet, failures: Iterable[str]) -> dict[int, str]:
    """Try once more what could not be decoded earlier; it may have been repaired."""
    rows = {name: row for row, name in enumerate(images.names)}
    failing: dict[int, str] = {}
    for name in failures:
        if name in rows:
            try:
                decode(images.read(rows[name]))
            except Exception as error:  # as in `read_block`
                failing[rows[name]] = explain_failure(error)
    return failing


def _describe_times(loaded: Sequence[Architecture], stages: Stages) -> str:
    """Say where the time of a pass went."""
    who = loaded[0].name if len(loaded) == 1 else f"{len(loaded)} classifiers at once"
    return f"{who}, {stages.images:,} images, {stages.line()}"


def _preprocessings(architectures: Iterable[Architecture]) -> list[Preprocessing]:
    return list(dict.fromkeys(a.preprocessing for a in architectures))


def _keep_for_this_run(
    engine: Engine, place: Path, todo: Sequence[Architecture], images: int, bar: Progress
) -> None:
    """Keep pixels until the run ends, so that several passes decode once, where there is room."""
    keys = _preprocessings(todo)
    need = images * sum(3 * math.prod(key.size) for key in keys)
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

    from bayesrep.version import __version__

    return {"bayesrep": __version__, "timm": timm.__version__, "torch": torch.__version__}
