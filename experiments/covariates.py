"""Effects of covariates of classifiers, in simulated studies where they are known.

    python -m experiments.covariates [--studies 400] [--images 1000] [--classifiers 20] [--work DIR]

Every study has classifiers of its own. Of a classifier of year t and family f

    accuracy on the reference  =  0.62 + 0.015 (t − 2012) + 0.030 z
    gap                        =  0.050 − 0.003 (t − 2012) + 0.015 [f is transformer] + 0.010 z'

with t uniform on 2012..2022, f one of two at random and z, z' standard normal; selection
frequencies and the curves' steepness are those of `bayesrep.simulate_study`. Each study is fitted
by Laplace's method; intervals of `bayesrep.regress_classifiers` are held against the effects above,
beside intervals that know of other images alone, which is how draws by themselves would be
regressed. Resumable: finished studies are kept in DIR.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import brentq

import bayesrep
from bayesrep import Study
from bayesrep.errors import ConvergenceWarning
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.table_format import columns, percent
from bayesrep.studies.populations import PROCESS_OF_NAME, SimulatedWorld, draw_correct, make_world
from bayesrep.studies.scenarios import find_scenario
from experiments.ledger import resume
from experiments.results import save

ANNOTATORS = 36
BEGIN = 2012
FAMILIES = ("convolutional", "transformer")
EFFECTS = {
    "adjusted_accuracy": {"year": 0.018, "family": -0.015},
    "population_gap": {"year": -0.003, "family": 0.015},
}
KINDS = {"others": "images and classifiers", "images": "images alone"}


def draw_covariates(random: np.random.Generator, classifiers: int) -> pl.DataFrame:
    """Years and families, with true accuracies on the reference and after adjusting."""
    year = random.integers(BEGIN, BEGIN + 11, classifiers)
    transformer = random.permutation(classifiers) % 2
    since, (one, other) = year - BEGIN, random.standard_normal((2, classifiers))
    reference = 0.62 + 0.015 * since + 0.03 * one
    gap = 0.05 - 0.003 * since + 0.015 * transformer + 0.01 * other
    return pl.DataFrame(
        {
            "classifier": [f"c{number}" for number in range(classifiers)],
            "year": year,
            "family": [FAMILIES[each] for each in transformer],
            "reference": reference,
            "adjusted": reference - gap,
        }
    )


def make_study(table: pl.DataFrame, images: int, random: np.random.Generator) -> Study:
    """A study of classifiers with these accuracies."""
    world = make_world(PROCESS_OF_NAME["outside"], find_scenario("plain"), len(table), ANNOTATORS)
    wanted = {"reference": table["reference"], "replication": table["adjusted"]}
    curves = {
        role: np.array(
            [shift_curve(world, *pair) for pair in zip(world.curves[role], of, strict=True)]
        )
        for role, of in wanted.items()
    }
    world, sides = replace(world, curves=curves), {}
    for role in wanted:
        s = world.draw(random, role, images, ANNOTATORS)
        seed = np.random.SeedSequence(int(random.integers(2**32)))
        sides[role] = {
            "selected": random.binomial(ANNOTATORS, s),
            "shown": np.full(images, ANNOTATORS),
            "correct": draw_correct(seed, world, role, s, 0.0),
        }
    return Study.from_arrays(**sides, classifiers=table["classifier"].to_list())


def shift_curve(world: SimulatedWorld, curve: np.ndarray, accuracy: float) -> np.ndarray:
    """The curve as steep as before that has this accuracy on the reference's population."""
    s, weight = world.frequencies["reference"]

    def excess(by: float) -> float:
        return float(world.process.curve(s, curve[0] + by, curve[1]) @ weight) - accuracy

    by: Any = brentq(excess, -5.0, 5.0)
    return np.array([curve[0] + by, curve[1]])


def one_study(seed: int, images: int, classifiers: int) -> dict[str, Any]:
    """Effects by quantity and covariate: estimate, and ends of both kinds of intervals."""
    random = np.random.default_rng(seed)
    table = draw_covariates(random, classifiers)
    study = make_study(table, images, random)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = bayesrep.fit(study, method="laplace", seed=seed, progress=False, dependence=0.0)
    told = bayesrep.regress_classifiers(
        study,
        posterior,
        table[["classifier", "year", "family"]],
        seed=seed,
        allow_unconverged=True,
    )
    fitted = Fitted(study, posterior)
    adjusted, population = fitted.adjusted_draws, fitted.population_draws
    draws = {"adjusted_accuracy": adjusted, "population_gap": population - adjusted}
    transformer = (table["family"] == FAMILIES[1]).to_numpy()
    design = np.column_stack([np.ones(classifiers), table["year"] - BEGIN, transformer])
    found: dict[str, Any] = {"converged": bool(posterior["posterior"].attrs["converged"])}
    for quantity, effects in EFFECTS.items():
        alone = draws[quantity].reshape(-1, classifiers) @ np.linalg.pinv(design).T
        ends = np.quantile(alone, (0.025, 0.975), axis=0)
        for place, covariate in enumerate(effects):
            row = told.filter(quantity=quantity, covariate=covariate).row(0, named=True)
            found[f"{quantity}/{covariate}"] = {
                "estimate": row["estimate"],
                "others": [row["lower"], row["upper"]],
                "images": ends[:, place + 1].tolist(),
            }
    return found


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean estimates and coverage with standard errors, by quantity, covariate and kind."""
    found: dict[str, Any] = {}
    for quantity, effects in EFFECTS.items():
        for covariate, truth in effects.items():
            rows = [result[f"{quantity}/{covariate}"] for result in results]
            estimates = np.array([row["estimate"] for row in rows])
            facts: dict[str, Any] = {
                "truth": truth,
                "mean": float(estimates.mean()),
                "se": float(estimates.std(ddof=1) / np.sqrt(len(rows))),
            }
            for kind in KINDS:
                lower, upper = np.array([row[kind] for row in rows]).T
                held = float(((lower <= truth) & (truth <= upper)).mean())
                facts[kind] = {
                    "coverage": held,
                    "se": float(np.sqrt(held * (1 - held) / len(rows))),
                    "width": float((upper - lower).mean()),
                }
            found[f"{quantity}/{covariate}"] = facts
    converged = float(np.mean([result["converged"] for result in results]))
    return {"studies": len(results), "converged": converged, "effects": found}


def table_of(found: Mapping[str, Any]) -> str:
    """A line for each effect and kind of interval."""
    header = ["effect of", "on", "truth", "mean estimate", "s.e."]
    header += ["interval over other", "coverage", "s.e.", "width"]
    lines = [
        [
            key.split("/")[1],
            key.split("/")[0],
            *(percent(facts[name], 2) for name in ("truth", "mean")),
            percent(facts["se"], 3),
            label,
            *(percent(facts[kind][name], 1) for name in ("coverage", "se")),
            percent(facts[kind]["width"], 2),
        ]
        for key, facts in found["effects"].items()
        for kind, label in KINDS.items()
    ]
    return columns(header, lines)


def remarks(found: Mapping[str, Any]) -> str:
    """What the numbers are, in prose."""
    return (
        f"{found['studies']} simulated studies of {found['images']:,} + {found['images']:,} "
        f"images, {found['classifiers']} classifiers and {ANNOTATORS} annotators, each with a year "
        "and one of two families, which move their accuracy and their gap by what is stated; "
        "classifiers scatter around that by 1 point of gap. Effects are in points, of the year for "
        "one year. Coverage is the share of studies whose 95 % interval holds the truth. Intervals "
        "over other images and classifiers are those of `bayesrep.regress_classifiers`; over "
        "images alone, draws are regressed one by one. "
        f"{percent(found['converged'], 0)} % of the fits ended in draws that hold; all are counted."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/coverage.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.covariates", description=__doc__)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--classifiers", type=int, default=20)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    if arguments.studies < 2:
        parser.error("--studies must be 2 at least")
    sizes = arguments.images, arguments.classifiers
    results = resume(
        arguments.work / "covariates.jsonl",
        [f"{seed}/{sizes[0]}/{sizes[1]}" for seed in range(arguments.studies)],
        lambda key: one_study(int(key.split("/")[0]), *sizes),
    )
    found = numbers(results) | {"images": sizes[0], "classifiers": sizes[1]}
    text = table_of(found)
    print(text)
    command = (
        f"python -m experiments.covariates --studies {arguments.studies} --images {sizes[0]} "
        f"--classifiers {sizes[1]}"
    )
    save("covariates", command, found, text, remarks=remarks(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
