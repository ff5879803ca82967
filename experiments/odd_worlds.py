"""Worlds of no family: densities and curves drawn from a hat, with two components and as asked for.

    python -m experiments.odd_worlds [--studies 100] [--images 2000] [--classifiers 136]
                                     [--work DIR] [--finished]

A simulator of its own, that shares nothing with the package's: every study takes one of nine
densities of the selection frequency, one of ten accuracy curves, a number of annotators, how much
harder the replication is, and how much classifiers err together, each at random. Its annotators
answer independently, and fits are told so. It is fitted with as many components as by default, and
where the counts insist on more than two, with two as well. Resumable: finished studies are kept in
DIR, and `--finished` makes the page of those alone.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

import bayesrep
from bayesrep import Study
from bayesrep.errors import ConvergenceWarning
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.table_format import columns, percent
from bayesrep.types import Bools, Floats
from experiments.hostile import of_posterior, score
from experiments.ledger import resume
from experiments.results import save

Density = Callable[[np.random.Generator, int], Floats]
Curve = Callable[[Floats, float], Floats]

TRUTH = 200_000  # images of the reference, for the true adjusted accuracies
LAPSE = 0.005  # no classifier is surer of an image


def _either(random: np.random.Generator, share: float, first: Floats, second: Floats) -> Floats:
    return np.where(random.random(len(first)) < share, first, second)


def _ends(random: np.random.Generator, size: int) -> Floats:
    where = random.random(size)
    return np.select([where < 0.12, where < 0.45], [0.0, 1.0], random.random(size))


def _normal(random: np.random.Generator, middle: float, spread: float, size: int) -> Floats:
    return np.clip(random.normal(middle, spread, size), 0, 1)


DENSITIES: Mapping[str, Density] = {
    "even": lambda random, size: random.random(size),
    "triangle": lambda random, size: random.triangular(0, 0.85, 1, size),
    "two bumps": lambda random, size: _either(
        random, 0.35, _normal(random, 0.25, 0.08, size), _normal(random, 0.85, 0.06, size)
    ),
    "atoms at both ends": _ends,
    "five grades": lambda random, size: random.choice(
        [0.05, 0.3, 0.5, 0.75, 0.97], size=size, p=[0.1, 0.15, 0.2, 0.25, 0.3]
    ),
    "wide logit-normal": lambda random, size: expit(random.normal(1.2, 1.8, size)),
    "narrow logit-normal": lambda random, size: expit(random.normal(1.0, 0.5, size)),
    "step": lambda random, size: _either(
        random, 0.7, random.uniform(0.6, 1, size), random.uniform(0, 0.6, size)
    ),
    "lump near 0": lambda random, size: _either(
        random, 0.1, random.uniform(0, 0.02, size), random.beta(6, 1.5, size)
    ),
}
CURVES: Mapping[str, Curve] = {
    "logistic": lambda s, able: expit(-2 + 4.5 * s + able),
    "step": lambda s, able: np.where(s < 0.5, 0.3, 0.85) + 0.04 * able,
    "plateau": lambda s, able: np.minimum(0.15 + 1.1 * s, 0.8) + 0.05 * able,
    "flat": lambda s, able: 0.7 + 0.05 * able + 0 * s,
    "dip": lambda s, able: 0.8 - 0.45 * np.exp(-(((s - 0.5) / 0.18) ** 2)) + 0.05 * able,
    "falling": lambda s, able: 0.85 - 0.45 * s + 0.05 * able,
    "kink": lambda s, able: 0.2 + np.maximum(1.7 * (s - 0.6), 0) + 0.04 * able,
    "wave": lambda s, able: 0.6 + 0.25 * np.sin(3 * np.pi * s + 0.5) + 0.05 * able,
    "lapse near 1": lambda s, able: expit(-3 + 6 * s + able) * np.where(s > 0.93, 0.75, 1.0),
    "root": lambda s, able: 0.55 + 0.44 * s**0.3 + 0.003 * able,
}
ANNOTATORS = ("5", "10", "20", "40", "8 to 12")
HARDER = (0.0, 1.0, 2.0)
"""The replication's density is the reference's times exp(−this s)."""
TOGETHER = (0.0, 0.5, 0.8)
"""Loadings of classifiers on an image's difficulty, beyond what s says."""


def simulated(
    number: int,
    images: int,
    classifiers: int,
    shown: str | None = None,
    dependence: float = 0.0,
) -> tuple[Study, Floats, list[str]]:
    """A study, the true adjusted accuracies, and what it was made of.

    So many annotators an image are `shown` it, one of `ANNOTATORS` where nobody says how many;
    their answers have the intraclass correlation `dependence`.
    """
    random = np.random.default_rng([4242, number])
    density, curve, annotators = (
        list(each)[random.integers(len(each))] for each in (DENSITIES, CURVES, ANNOTATORS)
    )
    annotators = shown or annotators
    harder, together = random.choice(HARDER), random.choice(TOGETHER)
    able = np.linspace(-1, 1, classifiers)

    def right(s: Floats) -> Floats:
        each = [CURVES[curve](s, float(a)) for a in able]
        return np.clip(np.stack(each, axis=1), LAPSE, 1 - LAPSE)

    def correct(s: Floats, easier: float) -> Bools:
        difficulty = random.standard_normal((len(s), 1))
        own = np.sqrt(1 - together**2) * random.standard_normal((len(s), classifiers))
        return ndtri(right(s)) + easier + together * difficulty + own > 0

    datasets: dict[str, Any] = {}
    for role, tilt, easier in (("reference", 0.0, 0.1), ("replication", harder, 0.0)):
        s = _tilted(random, DENSITIES[density], tilt, images)
        low, _, high = annotators.partition(" to ")
        asked = random.integers(int(low), int(high or low) + 1, images)
        of_grid = s
        if dependence > 0:
            total, inside = 1 / dependence - 1, np.clip(s, 1e-6, 1 - 1e-6)
            of_grid = random.beta(total * inside, total * (1 - inside))
        selected = random.binomial(asked, of_grid)
        datasets[role] = {"selected": selected, "shown": asked, "correct": correct(s, easier)}
    truth = right(DENSITIES[density](random, TRUTH)).mean(axis=0)
    names = [f"classifier {i}" for i in range(classifiers)]
    study = Study.from_arrays(**datasets, classifiers=names, name=f"odd {number}")
    return study, truth, [density, curve, f"{annotators} annotators"]


def _tilted(random: np.random.Generator, draw: Density, tilt: float, size: int) -> Floats:
    """Frequencies of a density times exp(−tilt s)."""
    kept: Floats = np.empty(0)
    while len(kept) < size:
        s = draw(random, 4 * size)
        kept = np.concatenate([kept, s[random.random(len(s)) < np.exp(-tilt * s)]])
    return kept[:size]


def one_study(key: str, images: int, classifiers: int) -> dict[str, Any]:
    """Intervals as by default, and with two components where that is something else."""
    study, truth, parts = simulated(int(key), images, classifiers)

    def fitted(**options: int) -> tuple[int, dict[str, Any]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            posterior = bayesrep.fit(
                study, seed=int(key), progress=False, dependence=0.0, **options
            )
        found = of_posterior(study, posterior)
        return Fitted(study, posterior).record.options.components, {
            "usable": bool(posterior["posterior"].attrs["converged"]),
            **{name: found[name] for name in ("estimate", "lower", "upper", "gap")},
        }

    components, asked = fitted()
    return {
        "parts": parts,
        "truth": truth.tolist(),
        "measured": study.reference.correct.mean(axis=0).tolist(),
        "components": components,
        "asked": asked,
        "two": asked if components == 2 else fitted(components=2)[1],
    }


def scores(results: Sequence[Mapping[str, Any]], fit: str) -> dict[str, float]:
    """Of one of the fits of every study."""
    truth, measured = (np.array([r[part] for r in results]) for part in ("truth", "measured"))
    fits = [r[fit] for r in results]
    error = (np.array([each["estimate"] for each in fits]) - truth).mean(axis=1)
    return {
        **score(truth, (measured - truth).mean(axis=1), fits),
        "error": float(np.sqrt(np.square(error).mean())),
        "usable": float(np.mean([each["usable"] for each in fits])),
    }


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Scores of all studies, by what the counts asked for, and by what they were made of."""
    kinds: dict[str, list[Mapping[str, Any]]] = {
        "all": list(results),
        "two asked for": [r for r in results if r["components"] == 2],
        "more asked for": [r for r in results if r["components"] > 2],
    }
    annotators = [f"{each} annotators" for each in ANNOTATORS]
    for place, names in enumerate((DENSITIES, CURVES, annotators)):
        for name in names:
            label = f"curve: {name}" if place == 1 else name
            kinds[label] = [r for r in results if r["parts"][place] == name]
    return {
        "rows": {
            kind: {
                "more": sum(r["components"] > 2 for r in of),
                **{fit: scores(of, fit) for fit in ("asked", "two")},
            }
            for kind, of in kinds.items()
            if len(of) > 1
        }
    }


COVERED = ("coverage", "coverage_se", "gap_coverage", "gap_coverage_se", "usable")
SIZES = ("width", "bias", "error")


def table(found: Mapping[str, Any]) -> str:
    """A line for each kind of study, and one with two components where some asked for more."""
    rows = []
    for kind, facts in found["rows"].items():
        for fit, label in (("asked", "as asked"), ("two", "two")):
            scored = facts[fit]
            if fit == "two" and not facts["more"]:
                continue
            rows.append(
                [
                    kind,
                    label,
                    str(scored["studies"]),
                    str(facts["more"]),
                    *(percent(scored[name], 1) for name in COVERED[:4]),
                    *(percent(scored[name], 2) for name in SIZES),
                    percent(scored["usable"], 0),
                ]
            )
    header = ["studies with", "components", "studies", "more", "covered", "s.e.", "mean gap"]
    return columns([*header, "s.e.", "width", "bias", "error", "ended well"], rows)


def remarks(images: int, classifiers: int) -> str:
    """What the numbers are, in prose."""
    return (
        f"{images} + {images} images and {classifiers} classifiers a study; in percent or points. "
        "'more': studies whose counts insist on more components than two; a second line has the "
        "same studies with two. 'covered' over classifiers, 'mean gap' over studies, "
        "'bias' and 'error' (root mean square over studies) of the mean adjusted "
        "accuracy. 'ended well': fits whose draws hold."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/worlds.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.odd_worlds", description=__doc__)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--classifiers", type=int, default=136)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    parser.add_argument("--finished", action="store_true", help="fit nothing more")
    arguments = parser.parse_args(argv)
    size = arguments.images, arguments.classifiers
    path = arguments.work / f"odd-worlds-{size[0]}-{size[1]}.jsonl"
    keys = list(map(str, range(arguments.studies)))
    results = resume(path, keys, lambda key: one_study(key, *size), finished=arguments.finished)
    found = numbers(results)
    text = table(found)
    print(text)
    command = (
        f"python -m experiments.odd_worlds --studies {len(keys)} --images {size[0]} "
        f"--classifiers {size[1]}"
    )
    save("odd-worlds", command, found, text, remarks=remarks(*size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
