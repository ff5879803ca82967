"""The studies that tests share, and their posteriors.

Every shape of study and every set of options is a program of its own to compile, so that tests take
what is here: a study by its name, cut down or with parts added where that is what they test. A
posterior is made by whichever process asks first, and is kept for later runs under a name for the
code that makes it.
"""

import copy
import functools
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import kept
import numpy as np
from scipy.special import expit, logit

import bayesrep

PACKAGE = Path(bayesrep.__file__).parent
ROOMS = ("inference", "models", "numerics", "posterior", "studies")
"""What a posterior is made by."""

SHORT = {
    "method": "nuts",
    "chains": 2,
    "warmup": 100,
    "draws": 100,
    "progress": False,
    "degree": 8,
    "terms": 3,
}
"""Options of a fit of seconds, by NUTS; nobody should trust it."""
QUICK = {"method": "laplace", "progress": False}
"""Options of a fit by Laplace's method, otherwise as users fit."""


def _tiny() -> bayesrep.Study:
    return bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)


def _ragged() -> bayesrep.Study:
    return bayesrep.simulate_study(seed=0, images=600, annotators=(8, 9), classifiers=4)


def _grouped() -> bayesrep.Study:
    """The tiny one, whose images are of two breeds, three to two."""
    study = _tiny()
    breed = np.where(np.arange(500) % 5 < 3, "cat", "dog")
    sets = {role: replace(data, groups={"breed": breed}) for role, data in study.datasets.items()}
    return replace(study, datasets=sets, truth=None)


def _workers() -> bayesrep.Study:
    """With every answer of every worker, and two crowds of them."""
    return bayesrep.simulate_study(seed=8, images=600, classifiers=3, scenario="two-crowds")


def _strangers() -> bayesrep.Study:
    """Sixty images of the tiny one, every answer another worker's."""
    few = cut(study("tiny"), images=60)
    image, number = np.divmod(np.arange(480), 8)
    sets = {}
    for role, data in few.datasets.items():
        names = [f"{role}-{place}" for place in range(480)]
        answers = bayesrep.WorkerAnswers.of(image, names, number < data.selected[image])
        sets[role] = replace(data, answers=answers)
    return replace(few, datasets=sets)


def _panels() -> bayesrep.Study:
    """Twelve judges of each data set, of whom ten answer about each image."""
    random, sides = np.random.default_rng(4), {}
    for role in ("reference", "replication"):
        s, leniency = random.beta(4, 2, 80), random.normal(0, 0.7, 12)
        judge = np.argsort(random.random((80, 12)), axis=1)[:, :10].ravel()
        image = np.repeat(np.arange(80), 10)
        yes = random.random(800) < expit(logit(s)[image] + leniency[judge])
        names = [f"{role}-{number}" for number in judge]
        answers = bayesrep.WorkerAnswers.of(image, names, yes)
        selected, shown = answers.counts(80)
        correct = random.random((80, 3)) < (0.3 + 0.6 * s)[:, None]
        sides[role] = {"selected": selected, "shown": shown, "correct": correct, "answers": answers}
    return bayesrep.Study.from_arrays(**sides, classifiers=["a", "b", "c"])


def _kept() -> bayesrep.Study:
    """Images whose own counts of ten answers selected them."""
    return bayesrep.simulate_study(seed=7, images=400, classifiers=3, scenario="kept")


def _one() -> bayesrep.Study:
    """The tiny one's first classifier alone."""
    return cut(study("tiny"), classifiers=1)


def _alike() -> bayesrep.Study:
    """The same three times, under three names."""
    one = study("one")
    sets = {
        role: replace(data, correct=np.repeat(data.correct, 3, axis=1))
        for role, data in one.datasets.items()
    }
    return bayesrep.Study(sets, ("a", "b", "c"))


def _images() -> bayesrep.Study:
    """With 36 annotators."""
    return bayesrep.simulate_study(seed=5, images=600, classifiers=4)


def _exchanged() -> bayesrep.Study:
    """Those with all classifiers' answers exchanged between images of the same count."""
    random, sets = np.random.default_rng(0), {}
    for role, data in study("images").datasets.items():
        correct = np.array(data.correct)
        for selected in np.unique(data.selected):
            rows = np.flatnonzero(data.selected == selected)
            correct[rows] = correct[random.permutation(rows)]
        sets[role] = replace(data, correct=correct)
    return replace(study("images"), datasets=sets, truth=None)


def _statistics() -> bayesrep.SufficientStatistics:
    """All that the joint model sees of the images, exchanged or not."""
    return bayesrep.SufficientStatistics.of(study("images"))


def _evaluation() -> bayesrep.Study:
    """Items that judges answer about and models solve."""
    study = bayesrep.simulate_study(seed=4, images=150, annotators=4, classifiers=4)
    return replace(study, provenance={"words": "evaluation"})


_STUDIES = {
    "tiny": _tiny,
    "ragged": _ragged,
    "grouped": _grouped,
    "workers": _workers,
    "strangers": _strangers,
    "panels": _panels,
    "kept": _kept,
    "one": _one,
    "alike": _alike,
    "images": _images,
    "exchanged": _exchanged,
    "statistics": _statistics,
    "evaluation": _evaluation,
}


@functools.cache
def study(name: str) -> Any:
    """The study of that name; of "statistics" its sufficient statistics alone."""
    return _STUDIES[name]()


def cut(
    whole: bayesrep.Study, *, images: int | None = None, classifiers: int | None = None
) -> bayesrep.Study:
    """The first images of each data set and the first classifiers; without what is true of all."""
    sides = {}
    for role, data in whole.datasets.items():
        sides[role] = {
            "images": data.images[:images],
            "selected": data.selected[:images],
            "shown": data.shown[:images],
            "correct": np.asarray(data.correct)[:images, :classifiers],
            "name": data.name,
        }
    return bayesrep.Study.from_arrays(**sides, classifiers=whole.classifiers[:classifiers])


def posterior(name: str, **options: Any) -> Any:
    """The posterior of a study by `bayesrep.fit(study(name), **options)`, made once and kept."""
    return copy.deepcopy(_read(posterior_path(name, **options)))


def posterior_path(name: str, **options: Any) -> Path:
    """The file that holds it: to be read, never to be changed."""
    return _made(study(name), name, options)


def fit(
    study: bayesrep.Study, *, progress: bool = False, checkpoint: Any = None, **options: Any
) -> Any:
    """In the place of `bayesrep.fit` (fixture `kept_fits`): any study's posterior, kept too."""
    name = f"{study.provenance.get('words', 'images')}-{study.fingerprint()[-16:]}"
    return copy.deepcopy(_read(_made(study, name, options)))


@functools.lru_cache(maxsize=8)
def _read(path: Path) -> Any:
    """A file's posterior: reading it takes longer than most tests of it."""
    return bayesrep.read_posterior(path)


def _made(study: bayesrep.Study, name: str, options: dict[str, Any]) -> Path:
    asked = json.dumps([name, options], sort_keys=True)
    digest = hashlib.sha256(asked.encode()).hexdigest()[:16]
    file = _folder() / f"{name}-{digest}.nc"
    with _alone(file.with_suffix(".lock")):
        if not file.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", bayesrep.ConvergenceWarning)
                warnings.simplefilter("ignore", bayesrep.errors.EstimateWarning)
                made = import_module("bayesrep.inference").fit(
                    study, **{"progress": False} | options
                )
            bayesrep.write_posterior(made, file)
    return file


@functools.cache
def _folder() -> Path:
    """Named for all that a posterior depends on: studies, models, samplers, JAX and this file."""
    digest = hashlib.sha256()
    code = (path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py")))
    for path in (*code, Path(__file__)):
        digest.update(path.read_bytes())
    digest.update(
        " ".join(version(name) for name in ("jax", "jaxlib", "numpyro", "arviz")).encode()
    )
    # Where pytest runs alone, its plug-ins import NumPy before conftest.py can take OpenBLAS its
    # threads: sums have other last digits.
    digest.update(os.environ.get("PYTEST_XDIST_WORKER", "alone")[:2].encode())
    return kept.mark_used(kept.FOLDER / "posteriors" / digest.hexdigest()[:16])


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a lock among the processes of all runs; the system opens it when a process dies."""
    with open(lock, "w") as held:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(held, fcntl.LOCK_EX)
        yield
