"""A run: evaluation of one data set's classifiers, pass by pass."""

import math
import shutil
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PredictionWarning
from bayesrep.progress import Progress, progress_bar
from bayesrep.studies import layout
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.types import Bools, Ints
from bayesrep.vision.architectures import Architecture
from bayesrep.vision.devices import Device
from bayesrep.vision.forward import TopFive, identity_of
from bayesrep.vision.image_digests import Contents
from bayesrep.vision.images import ImageSet
from bayesrep.vision.logits import KeptLogits
from bayesrep.vision.pixels import Preprocessing, decode, explain_failure
from bayesrep.vision.prediction_store import (
    Failure,
    Results,
    folder_of_pixels,
    read_failures,
    same_network,
    write_failures,
)
from bayesrep.vision.run_local import ImageResults, Local, in_blocks
from bayesrep.vision.run_ray import Cluster
from bayesrep.vision.timing import Spent, Stages

Waiting: TypeAlias = Mapping[str, list[tuple[Ints, NDArray[np.uint64], TopFive]]]
Engine: TypeAlias = Local | Cluster
SAVE_SECONDS = 20.0  # a killed run loses at most about this much work


@dataclass(eq=False)
class DatasetRun:
    """State of one data set's classifiers, and results of this run."""

    study: Path
    dataset: str
    images: ImageSet
    contents: Contents
    results: dict[str, Results]  # the files of each classifier
    failures: dict[int, str]  # reasons why images could not be decoded, by row
    allow_failures: bool = False  # true to exclude images that cannot be decoded from the study
    # "done", "judged again" if only labels had changed, or the reason against the classifier.
    status: dict[str, str] = field(default_factory=dict[str, str])
    # Time that each network itself took.
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    stages: list[Stages] = field(default_factory=list[Stages])  # times of each pass
    # Reason why a classifier stays uncompiled, if compiling was tried; empty if it is compiled.
    compiled: dict[str, str] = field(default_factory=dict[str, str])
    # Kept outputs of each classifier; empty if they are not requested.
    logits: Mapping[str, KeptLogits] = field(default_factory=dict[str, KeptLogits])

    def undecodable_images(self) -> Bools:
        """Mask of the images [N] that cannot be decoded."""
        mask = np.zeros(len(self.images), dtype=np.bool_)
        mask[list(self.failures)] = True
        return mask

    def answered_images(self, name: str) -> Bools:
        """Mask of the images [N] that a classifier has answered, with kept outputs if requested."""
        done = self.results[name].done
        return done & self.logits[name].kept_rows if name in self.logits else done

    def is_finished(self, architecture: Architecture) -> bool:
        """Test whether a classifier has its one file, after joining complete parts."""
        result = self.results[architecture.name]
        if not (self.answered_images(architecture.name) | self.undecodable_images()).all():
            return False
        if result.is_finished(self.undecodable_images()):
            return True
        return self.finish(architecture, "judged again" if result.judged_again else "done")

    def named_failures(self) -> dict[str, Failure]:
        """Why images could not be decoded, by name and in order; what was left out stays so."""
        earlier = read_failures(self.study, self.dataset)
        failures: dict[str, Failure] = {}
        for row, why in sorted(self.failures.items()):
            name = self.images.names[row]
            left_out = self.allow_failures or (name in earlier and earlier[name].left_out)
            failures[name] = Failure(why, left_out=left_out)
        return failures

    def save_failures(self) -> None:
        """Write what could not be decoded, beside images that the study counts no more."""
        ours, counts_images = set(self.images.names), StudyFolder(self.study).is_study
        others = {
            name: failure
            for name, failure in read_failures(self.study, self.dataset).items()
            if failure.left_out and name not in ours and counts_images
        }
        write_failures(self.study, self.dataset, others | self.named_failures())

    def evaluate_images(
        self, loaded: Sequence[Architecture], engine: Engine, bar: Progress
    ) -> tuple[int, Spent]:
        """Pass once through all images that any classifier still needs; return count and times."""
        done = np.all([self.answered_images(a.name) for a in loaded], axis=0)
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
                        self._take(name, results, answers, waiting)
                    elif name not in self.status:
                        self.leave_out(name, answers, bar)
                bar.advance((len(results.rows) + len(results.failures)) * len(loaded))
                if time.monotonic() - saved > SAVE_SECONDS:
                    self._save(waiting)
                    saved = time.monotonic()
        finally:  # also when interrupted
            self._save(waiting)
        for architecture in loaded:
            self.finish(architecture)
            bar.advance(0, 1)
        return count, spent

    @staticmethod
    def facts() -> dict[str, str]:
        """The versions of what answers are made with."""
        import timm
        import torch

        from bayesrep.version import __version__

        return {"bayesrep": __version__, "timm": timm.__version__, "torch": torch.__version__}

    def finish(self, architecture: Architecture, status: str = "done") -> bool:
        """Put the rows of a classifier into its one file, if there is one for every image."""
        result = self.results[architecture.name]
        if not (result.done | self.undecodable_images()).all() or not result.done.any():
            return False
        compiled = {"compiled": "yes"} if self.compiled.get(architecture.name) == "" else {}
        result.finish(self.facts() | compiled)
        self.status.setdefault(architecture.name, status)
        return True

    def _take(self, name: str, results: ImageResults, answers: TopFive, waiting: Waiting) -> None:
        """Put a classifier's outputs where they are kept, and its answers to those to be saved."""
        if name in self.logits and answers.logits is not None:
            self.logits[name].put(results.rows, results.contents, answers.logits)
            answers = replace(answers, logits=None)
        waiting[name].append((results.rows, results.contents, answers))

    def _save(self, waiting: Waiting) -> None:
        for outputs in self.logits.values():
            outputs.flush()
        for name, parts in waiting.items():
            if parts:
                rows = np.concatenate([rows for rows, _, _ in parts])
                contents = np.concatenate([contents for _, contents, _ in parts])
                answers = TopFive.concatenate([answers for _, _, answers in parts])
                new = ~self.results[name].done[rows]  # others went by for their outputs alone
                if new.any():
                    self.results[name].add(rows[new], contents[new], answers.take(new))
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

    def leave_out(self, name: str, why: str, bar: Progress) -> None:
        """Say that a classifier has no answers, and why."""
        self.status[name] = why
        bar.pause()
        warnings.warn(f"classifier {name!r} left out: {why}", PredictionWarning, stacklevel=2)


def evaluate_together(
    runs: Sequence[DatasetRun],
    architectures: Sequence[Architecture],
    engine: Engine,
    cache: Path | None,
    *,
    show: bool,
) -> None:
    """Go through the images of all data sets with all classifiers, in as few passes as fit."""
    todo = [[each for each in architectures if not run.is_finished(each)] for run in runs]
    missing = sum(
        int((~run.answered_images(each.name)).sum())
        for run, waiting in zip(runs, todo, strict=True)
        for each in waiting
    )
    rest: Sequence[Architecture] = [
        a for a in architectures if any(a in waiting for waiting in todo)
    ]
    first = True
    what = "classifiers" if len(runs) == 1 else "evaluations"
    with progress_bar(missing, "image", f"of {sum(map(len, todo))} {what}", show=show) as bar:
        if byte_count := sum(each.byte_count for run in runs for each in run.logits.values()):
            folder = runs[0].study / layout.LOGITS_FOLDER
            bar.say(f"logits: {byte_count / 1e9:,.2f} GB are kept in {folder}")
        # Each turn takes as many classifiers as fit into memory, over all images.
        while rest:
            begin = time.monotonic()
            bar.stage("loading classifiers")
            loaded, refused, rest = engine.load(rest)
            for name, why in refused.items():
                for run in runs:
                    run.status[name] = why
                runs[0].leave_out(name, why, bar)
            for run, waiting in zip(runs, todo, strict=True):
                names = {each.name for each in waiting}
                if not (ready := [each for each in loaded if each.name in names]):
                    continue
                engine.enter(run.images, [each.name for each in ready])
                # With more passes to come, decode once and keep the pixels until the run ends.
                if cache is not None:
                    engine.keep(cache, _preprocessings(waiting))
                elif rest or not first:
                    _keep_for_this_run(engine, run, waiting, bar, first=first)
                load = time.monotonic() - begin
                count, spent = run.evaluate_images(ready, engine, bar)
                total = time.monotonic() - begin
                stages = Stages.of(len(ready), count, spent, engine.crew, load, total)
                run.stages.append(stages)
                where = f"{run.dataset}: " if len(runs) > 1 else ""
                who = ready[0].name if len(ready) == 1 else f"{len(ready)} classifiers at once"
                bar.say(f"{where}{who}, {stages.images:,} images, {stages.line()}")
                begin = time.monotonic()
            first = False
        if len(passes := [each for run in runs for each in run.stages]) > 1:
            bar.say(f"in all {Stages.joined(tuple(passes)).line()}")
    for run in runs:
        shutil.rmtree(run.study / folder_of_pixels(run.dataset), ignore_errors=True)


def open_results(
    study: Path,
    dataset: str,
    images: ImageSet,
    contents: Contents,
    architectures: Iterable[Architecture],
    device: Device,
    *,
    force: bool = False,
) -> dict[str, Results]:
    """Open the files of every classifier, with an earlier run's rows unless `force`."""
    identities = {each.name: identity_of(each, device) for each in architectures}
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


def _preprocessings(architectures: Iterable[Architecture]) -> list[Preprocessing]:
    return list(dict.fromkeys(a.preprocessing for a in architectures))


def _keep_for_this_run(
    engine: Engine, run: DatasetRun, todo: Sequence[Architecture], bar: Progress, *, first: bool
) -> None:
    """Keep pixels until the run ends, so that several passes decode once, where there is room."""
    place, keys = run.study / folder_of_pixels(run.dataset), _preprocessings(todo)
    if not first:  # where there was no room for the first pass, there is none for the others
        if place.exists():
            engine.keep(place, keys)
        return
    need = len(run.images) * sum(3 * math.prod(key.size) for key in keys)
    place.parent.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(place.parent).free > 2 * need:
        engine.keep(place, keys)
    else:
        bar.say(
            f"{place} has no room for {need / 1e9:.0f} GB of preprocessed images: they are decoded "
            "again in every pass (in Python `cache` names a larger disk)"
        )
