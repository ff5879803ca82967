"""The studies of a grid: made or read, and left with some of every image's answers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from inspect import unwrap
from pathlib import Path
from typing import Any

import numpy as np

from bayesrep.errors import StudyError
from bayesrep.files.digests import digest_parts
from bayesrep.numerics.thinning import check_annotators
from bayesrep.sources import READERS
from bayesrep.sources.placebo import deal_answers
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.reading import read_study
from bayesrep.studies.selection import truncating
from bayesrep.studies.simulate import simulate_study
from bayesrep.studies.study import Study
from bayesrep.sweeps.run_spec import StudySpec
from bayesrep.types import Floats

ANSWERS_SEED = 0  # decides which answers are kept, in every sweep the same


@lru_cache(maxsize=1)  # runs of one study follow one another
def study_of(spec: StudySpec) -> Study:
    """The study, with all of its answers."""
    settings: dict[str, Any] = dict(spec.settings)
    if spec.kind == "folder":
        return read_study(spec.files[0])
    if spec.kind == "source":
        files = [Path(file) for file in spec.files]
        return READERS[spec.source].read(files, **settings).study()
    if isinstance(text := settings.get("annotators"), str):
        low, _, high = text.partition(":")
        settings["annotators"] = int(low), int(high)
    return simulate_study(**settings)


def add_contents(specs: Sequence[StudySpec]) -> tuple[StudySpec, ...]:
    """Add a digest of contents to each study that is read; an unreadable one is refused."""
    read = unwrap(study_of)  # kept of no earlier time
    return tuple(
        each if each.kind == "simulate" else replace(each, contents=contents(read(each)))
        for each in specs
    )


def contents(study: Study) -> str:
    """A digest of all of a study that a run may look at, whoever answered and its truth too."""
    parts = [study.fingerprint().encode()]
    for role, data in sorted(study.datasets.items()):
        parts.append(role.encode())
        if data.answers is not None:
            parts.append("\0".join(data.answers.workers.tolist()).encode())
            columns = [data.answers.image, data.answers.worker, data.answers.selected]
            columns += [] if data.answers.context is None else [data.answers.context]
            parts += [column.tobytes() for column in columns]
    truth = true_accuracies(study)
    parts.append(b"" if truth is None else truth.tobytes())
    return digest_parts(parts)


def true_accuracies(study: Study) -> Floats | None:
    """True adjusted accuracies [C] of simulations, and of placebos: those of the reference."""
    if study.truth is not None:
        return study.truth.adjusted_accuracy
    if study.provenance.get("source") == "cifar10h":
        return study.reference.correct.mean(axis=0)
    return None


def keep_answers(study: Study, annotators: int) -> Study:
    """The study, had fewer annotators been asked: drawn once, fewer are some of more."""
    sets: dict[str, AnnotatedSet] = {}
    for number, (role, data) in enumerate(study.datasets.items()):
        check_annotators(annotators, data.shown)
        if truncating(data.selection) is not None:
            raise StudyError(
                "annotators-kept-of-selecting-counts", study=study.name, dataset=data.name
            )
        sets[role] = _keep_of_set(data, annotators, np.random.default_rng([ANSWERS_SEED, number]))
    return replace(study, datasets=sets)


def _keep_of_set(data: AnnotatedSet, annotators: int, rng: np.random.Generator) -> AnnotatedSet:
    n = np.full(len(data.images), annotators, dtype=np.int64)
    answers = data.answers
    if answers is None:
        one_by_one = deal_answers(rng, data.selected, data.shown, [1] * annotators)
        return replace(data, selected=np.sum(one_by_one, axis=0), shown=n)
    order = np.lexsort((rng.random(len(answers.image)), answers.image))
    # The place of every answer among those about its image, which stand together.
    _, first, size = np.unique(answers.image[order], return_index=True, return_counts=True)
    place = np.arange(len(order)) - np.repeat(first, size)
    rest = answers.take(np.sort(order[place < annotators]))
    return replace(data, selected=rest.counts(len(n))[0], shown=n, answers=rest)
