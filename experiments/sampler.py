"""Which setting of NUTS is worth its gradients: convergence and cost on hard small studies.

    python -m experiments.sampler [--studies 2] [--images 2000] [--classifiers 10] [--work DIR]

The joint model's sampler with other target acceptances, coordinates and thinning, and with K = 3,
on studies of few annotators, whose posteriors are far from normal. Resumable: finished runs are
kept in DIR.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import bayesrep
from bayesrep.inference.arrowhead import Whitening
from bayesrep.inference.density import Density
from bayesrep.inference.laplace import nearest_normal
from bayesrep.inference.nuts import Sampler, Schedule, build_sampler, compiled, sample, unwhiten
from bayesrep.inference.problem import Problem, Programs, evaluate, find_mode, pose, programs
from bayesrep.posterior.verdict import diagnostics, judge
from bayesrep.report.text import columns
from experiments.ledger import resume
from experiments.results import save

CHAINS, WARMUP, DRAWS = 4, 500, 500
PROCESSES = ("inside", "outside")
ANNOTATORS: Mapping[str, int | tuple[int, int]] = {"10": 10, "20": 20, "8-12": (8, 12)}


class Setting(NamedTuple):
    """A row of the table."""

    coordinates: str
    target_accept: float
    thinning: int
    components: int = 2


DEFAULT = Schedule(CHAINS, WARMUP, DRAWS)
SETTINGS: Mapping[str, Setting] = {
    "as fitted": Setting("nearest normal", DEFAULT.target_accept, DEFAULT.thinning),
    "acceptance 0.95": Setting("nearest normal", 0.95, 3),
    "acceptance 0.9": Setting("nearest normal", 0.9, 3),
    "acceptance 0.8": Setting("nearest normal", 0.8, 3),
    "no thinning": Setting("nearest normal", 0.98, 1),
    "whitened at the mode": Setting("mode", 0.98, 3),
    "three components": Setting("nearest normal", 0.98, 3, components=3),
}


def coordinates(name: str, problem: Problem, tools: Programs, data: Any) -> Whitening:
    """The change of variables by its name in the table."""
    mode = find_mode(problem, tools, data).position
    if name == "mode":
        return tools.whiten(mode, data)
    return nearest_normal(tools.density, mode, data, jax.random.key(0))


@lru_cache(maxsize=len(SETTINGS))
def _ready(density: Density, schedule: Schedule, shapes: Any) -> Sampler:
    """The compiled sampler, once for each setting and shape."""
    arguments = [jax.tree.unflatten(structure, leaves) for structure, leaves in shapes]
    return compiled(build_sampler(density.potential, schedule), *arguments)


def _shapes(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(
        jax.ShapeDtypeStruct(jnp.shape(v), jnp.asarray(v).dtype) for v in leaves
    )


def one_run(key: str, images: int, classifiers: int) -> dict[str, Any]:
    """Sample one study with one setting: its verdict, divergences, gradients and ESS."""
    name, process, design, seed = key.split("/")
    setting = SETTINGS[name]
    study = bayesrep.simulate_study(
        seed=7000 + len(ANNOTATORS) * int(seed) + list(ANNOTATORS).index(design),
        images=images,
        annotators=ANNOTATORS[design],
        classifiers=classifiers,
        process=process,  # type: ignore[arg-type]
    )
    schedule = Schedule(CHAINS, WARMUP, DRAWS, setting.thinning, setting.target_accept)
    with jax.enable_x64(new_val=True):
        problem = pose(study, model="joint", options={"components": setting.components})
        data = problem.data()
        tools = programs(problem, data)
        whitening = coordinates(setting.coordinates, problem, tools, data)
        keys = jax.random.split(jax.random.key(int(seed)), CHAINS)
        arguments = (keys[0], data, data, whitening)
        ready = _ready(tools.density, schedule, tuple(map(_shapes, arguments)))
        result = sample(
            ready,
            ready.states(keys, data, whitening),
            lambda *_: data,
            whitening,
            schedule,
            lambda *_: None,
            workers=min(CHAINS, os.cpu_count() or 1),
        )
        values = evaluate(tools, unwhiten(whitening, result.position), data)
    checks = diagnostics(
        xr.Dataset(
            {
                name: (
                    ["chain", "draw", *(f"{name}_{axis}" for axis in range(value.ndim - 2))],
                    value,
                )
                for name, value in values.items()
            }
        )
    )
    return {
        "converged": judge(checks, int(result.diverging.sum()), result.diverging.size).converged,
        "divergences": int(result.diverging.sum()),
        "rhat": max(float(value.max()) for value in checks.rhat.values()),
        "ess": float(checks.ess_bulk["adjusted_accuracy"].min()),
        "gradients": int(result.num_steps.sum()),
    }


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What each setting did, over all studies."""
    found = {}
    for name in SETTINGS:
        runs = [r for r in results if r["key"].startswith(f"{name}/")]
        gradients = np.array([r["gradients"] for r in runs])
        found[name] = {
            "studies": len(runs),
            "converged": float(np.mean([r["converged"] for r in runs])),
            "without_divergence": float(np.mean([r["divergences"] == 0 for r in runs])),
            "divergences": sum(r["divergences"] for r in runs),
            "rhat": max(r["rhat"] for r in runs),
            "gradients": float(np.mean(gradients) / (CHAINS * DRAWS)),
            "ess": float(np.median([r["ess"] for r in runs])),
            "ess_per_1000": float(np.median([1000 * r["ess"] for r in runs] / gradients)),
        }
    return found


def table(found: Mapping[str, Any]) -> str:
    """One line for each setting."""
    header = ["setting", "converged", "no divergence", "divergences", "max R-hat"]
    header += ["gradients a draw", "min ESS", "ESS per 1,000 gradients"]
    rows = [
        [
            name,
            f"{100 * row['converged']:.0f} %",
            f"{100 * row['without_divergence']:.0f} %",
            str(row["divergences"]),
            f"{row['rhat']:.3f}",
            f"{row['gradients']:.0f}",
            f"{row['ess']:,.0f}",
            f"{row['ess_per_1000']:.1f}",
        ]
        for name, row in found.items()
    ]
    return columns(header, rows)


def remarks(found: Mapping[str, Any], images: int, classifiers: int) -> str:
    """What the numbers are, in prose."""
    default = SETTINGS["as fitted"]
    return (
        f"{found['as fitted']['studies']} studies of {images} + {images} images and {classifiers} "
        f"classifiers ({', '.join(PROCESSES)} the family; annotators per image "
        f"{', '.join(ANNOTATORS)}), {CHAINS} chains of {WARMUP} + {DRAWS} draws. `fit` samples "
        f"in the coordinates of the nearest normal, at acceptance {default.target_accept:g}, "
        f"{default.thinning} transitions for every draw; other rows differ from it in what they "
        "name. Converged: every variable has R-hat <= 1.01 and ESS >= 400, and nothing diverged. "
        "ESS is the smallest bulk ESS of an adjusted accuracy, the median of the studies."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write docs/results/sampler.{md,json}."""
    parser = argparse.ArgumentParser(prog="python -m experiments.sampler", description=__doc__)
    parser.add_argument("--studies", type=int, default=2, help="of each process and design")
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--classifiers", type=int, default=10)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    results = resume(
        arguments.work / f"sampler-{arguments.images}-{arguments.classifiers}.jsonl",
        [
            f"{name}/{process}/{design}/{seed}"
            for name in SETTINGS
            for design in ANNOTATORS
            for process in PROCESSES
            for seed in range(arguments.studies)
        ],
        lambda key: one_run(key, arguments.images, arguments.classifiers),
    )
    found = numbers(results)
    text = table(found)
    print(text)
    command = (
        f"python -m experiments.sampler --studies {arguments.studies} --images {arguments.images} "
        f"--classifiers {arguments.classifiers}"
    )
    said = remarks(found, arguments.images, arguments.classifiers)
    save("sampler", command, found, text, remarks=said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
