"""The effect of the year in the model of docs/how-to/own-model.md, where it is known.

    python -m experiments.own_model [--studies 200] [--images 1000] [--classifiers 20] [--work DIR]

Registers the model that the page writes, "with-year", from the page itself. Levels of classifiers
of year t are, on the logit scale of the model's curves,

    −1 + 0.3 x + 0.4 z,    x the year in standard deviations from the mean, z standard normal,

and their slopes 3 + 0.5 z'; selection frequencies are those of `bayesrep.simulate_study`. Each
study is fitted by Laplace's method, and the interval of `effect` held against 0.3. Resumable:
finished studies are kept in DIR.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

import bayesrep
from bayesrep import Study
from bayesrep.errors import ConvergenceWarning
from bayesrep.models.curves import complete_terms
from bayesrep.models.options import JointOptions
from bayesrep.numerics.bernstein import bernstein_basis
from bayesrep.report.table_format import columns, percent
from bayesrep.studies.populations import PROCESS_OF_NAME, make_world
from bayesrep.studies.scenarios import find_scenario
from experiments.ledger import resume
from experiments.pages import run_page
from experiments.results import save

ANNOTATORS = 36
BEGIN = 2003
POPULATION, EFFECT, SCATTER, SLOPES = (-1.0, 3.0), 0.3, 0.4, 0.5


@cache
def register_model() -> None:
    """Register what the page's code does."""
    run_page("how-to/own-model.md", only="MODELS[")


def make_study(years: np.ndarray, images: int, random: np.random.Generator) -> Study:
    """A study of classifiers whose curves are the model's."""
    count = len(years)
    one, other = random.standard_normal((2, count))
    x = (years - years.mean()) / years.std()
    own = np.column_stack(
        [POPULATION[0] + EFFECT * x + SCATTER * one, POPULATION[1] + SLOPES * other]
    )
    options = JointOptions()
    family = options.family()
    population = np.zeros(family.basis.shape[1])
    population[:2] = POPULATION
    world = make_world(PROCESS_OF_NAME["outside"], find_scenario("plain"), count, ANNOTATORS)
    sides: dict[str, Any] = {}
    with jax.enable_x64(new_val=True):
        at_nodes = np.asarray(family.probability(complete_terms(own, population)))
    for role in ("reference", "replication"):
        s = world.draw(random, role, images, ANNOTATORS)
        chance = at_nodes @ bernstein_basis(s, family.degree).T
        sides[role] = {
            "selected": random.binomial(ANNOTATORS, s),
            "shown": np.full(images, ANNOTATORS),
            "correct": (random.random(chance.shape) < chance).T,
        }
    return Study.from_arrays(**sides, classifiers=[f"c{number}" for number in range(count)])


def one_study(seed: int, images: int, classifiers: int) -> dict[str, Any]:
    """The effect's posterior mean and the ends of its interval."""
    register_model()
    years = BEGIN + np.arange(classifiers) % (classifiers // 2)
    study = make_study(years, images, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = bayesrep.fit(
            study,
            model="with-year",
            dependence=0.0,
            years=tuple(years.astype(float).tolist()),
            method="laplace",
            seed=seed,
            progress=False,
        )
    group = posterior["posterior"]
    draws = group["effect"].values.ravel()
    return {
        "converged": bool(group.attrs["converged"]),
        "mean": float(draws.mean()),
        "ends": np.quantile(draws, (0.025, 0.975)).tolist(),
    }


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean estimate, coverage and width, with standard errors over studies."""
    means = np.array([result["mean"] for result in results])
    lower, upper = np.array([result["ends"] for result in results]).T
    held = float(((lower <= EFFECT) & (upper >= EFFECT)).mean())
    return {
        "studies": len(results),
        "converged": float(np.mean([result["converged"] for result in results])),
        "mean": float(means.mean()),
        "mean_se": float(means.std(ddof=1) / np.sqrt(len(results))),
        "coverage": held,
        "coverage_se": float(np.sqrt(held * (1 - held) / len(results))),
        "width": float((upper - lower).mean()),
    }


def table_of(found: Mapping[str, float]) -> str:
    """One line."""
    header = ["truth", "mean estimate", "s.e.", "coverage", "s.e.", "width"]
    line = [
        f"{EFFECT:.2f}",
        *(f"{found[name]:.3f}" for name in ("mean", "mean_se")),
        *(percent(found[name], 1) for name in ("coverage", "coverage_se")),
        f"{found['width']:.3f}",
    ]
    return columns(header, [line])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/coverage.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.own_model", description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--classifiers", type=int, default=20)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    if arguments.studies < 2 or arguments.classifiers < 4:
        parser.error("--studies must be 2 at least, --classifiers 4")
    sizes = arguments.images, arguments.classifiers
    results = resume(
        arguments.work / "own-model.jsonl",
        [f"{seed}/{sizes[0]}/{sizes[1]}" for seed in range(arguments.studies)],
        lambda key: one_study(int(key.split("/")[0]), *sizes),
    )
    found = numbers(results)
    text = table_of(found)
    print(text)
    remarks = (
        f"{found['studies']} simulated studies of {sizes[0]:,} + {sizes[0]:,} images, {sizes[1]} "
        f"classifiers and {ANNOTATORS} annotators; the model is the second of [the page on one's "
        "own model](../how-to/own-model.md), as the page writes it. Coverage is the share of "
        "studies whose 95 % interval of the effect, on the logit scale, of one standard deviation "
        "of the years, holds the truth. "
        f"{percent(found['converged'], 0)} % of the fits ended in draws that hold; all are counted."
    )
    command = (
        f"python -m experiments.own_model --studies {arguments.studies} --images {sizes[0]} "
        f"--classifiers {sizes[1]}"
    )
    save("own-model", command, found | {"images": sizes[0]}, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
