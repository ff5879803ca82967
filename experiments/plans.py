"""Whether plans tell the truth: planned studies, simulated from the world that the pilot was of.

    python -m experiments.plans [--plans 20] [--studies 50] [--work DIR]

A pilot of 1,000 + 1,000 images and 5 classifiers with 5, 10 or 20 answers an image is simulated
from the published populations; every other one is answered by one crowd of 200 workers who differ.
From the pilot alone a replication is planned whose mean gap has an interval of 2.5, 3 or 4 points.
The planned study is then made so many times from the true populations and fitted by Laplace: are
its intervals as wide as promised, and do they hold the truth? Resumable: finished plans and studies
are kept in DIR.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bayesrep
from bayesrep.errors import ConvergenceWarning, EstimateWarning
from bayesrep.planning import Design, Prices, plan, published_world, worlds_of
from bayesrep.planning.collection_plan import PLAN_STUDIES
from bayesrep.planning.populations import DEFAULT_LENIENCY, draw_study
from bayesrep.planning.simulate_design import Outcome, average_outcomes, outcome
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.table_format import columns, percent
from experiments.ledger import resume
from experiments.results import save

CLASSIFIERS, PILOT, WORKERS = 5, 1_000, 200
ANSWERS, WIDTHS = (5, 10, 20), (0.025, 0.03, 0.04)
MANY = 5
"""Answers about an image from which `bayesrep collect plan` looks; here it may take three."""
CHOICES = (3, 5, 8, 10, 15, 20, 30, 40, 60)
PRICES = Prices(answer=0.03, image=0.10)


def planned(number: int) -> dict[str, Any]:
    """The plan that a pilot leads to."""
    workers = WORKERS if number % 2 else None
    pilot = Design(PILOT, ANSWERS[number % 3], workers)
    width = WIDTHS[number // 3 % 3]
    truth = published_world("imagenet-v2", CLASSIFIERS)
    study = draw_study(truth, pilot, leniency=DEFAULT_LENIENCY, seed=9_000 + number)
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, EstimateWarning):
            warnings.simplefilter("ignore", category)
        posterior = bayesrep.fit(study, method="laplace", seed=number, progress=False)
        fitted = Fitted(study, posterior)
        worlds = worlds_of(fitted, count=PLAN_STUDIES, classifiers=CLASSIFIERS, seed=number)
        found = plan(worlds, PRICES, width=width, workers=workers, answers=CHOICES, seed=number)
    return {
        "pilot_answers": pilot.answers,
        "wanted": width,
        "images": found.design.images,
        "answers": found.design.answers,
        "workers": workers,
        "width": found.width,
        "single_width": found.expected.single_width,
        "cost": found.cost,
        "certified": found.certified,
        "correction": found.correction,
    }


def studied(plan_: Mapping[str, Any], number: int, study: int) -> dict[str, Any]:
    """One study as it was planned, of the true populations."""
    design = Design(plan_["images"], plan_["answers"], plan_["workers"])
    truth = published_world("imagenet-v2", CLASSIFIERS)
    seed = 100_000 + 1_000 * number + study
    return {
        "plan": number,
        **outcome(truth, design, leniency=DEFAULT_LENIENCY, seed=seed, way="laplace")._asdict(),
    }


def numbers(plans: Sequence[Mapping[str, Any]], studies: Sequence[Mapping[str, Any]]) -> Any:
    """Promised and found, plan by plan, and coverage over all."""
    rows: list[dict[str, Any]] = []
    for number, each in enumerate(plans):
        of = [
            Outcome(**{name: study[name] for name in Outcome._fields})
            for study in studies
            if study["plan"] == number
        ]
        if not of:
            continue
        certified = [study for study in of if study.converged] or of
        found = average_outcomes(certified)
        rows.append(
            {
                **{k: v for k, v in each.items() if k != "key"},
                "studies": len(of),
                "certified_studies": len(certified),
                "found": found.mean_width,
                "found_single": found.single_width,
                "ratio": found.mean_width / each["width"],
                "held": average_outcomes(of).mean_held,
                "held_certified": found.mean_held,
                "single_held": average_outcomes(of).single_held,
            }
        )
    count = sum(row["studies"] for row in rows)
    held = sum(row["held"] * row["studies"] for row in rows) / count
    single = sum(row["single_held"] * row["studies"] for row in rows) / count
    ratios = np.array([row["ratio"] for row in rows])
    many = ratios[np.array([row["answers"] >= MANY for row in rows])]
    return {
        "plans": rows,
        "studies": count,
        "held": held,
        "held_se": float(np.sqrt(held * (1 - held) / count)),
        "single_held": single,
        "within_tenth": int((np.abs(ratios - 1) <= 0.1).sum()),
        "ratio": float(ratios.mean()),
        "ratio_sd": float(ratios.std()),
        "many": len(many),
        "many_within_tenth": int((np.abs(many - 1) <= 0.1).sum()),
        "many_ratio": float(many.mean()) if len(many) else None,
    }


def table(found: Mapping[str, Any]) -> str:
    """A line a plan."""
    header = ["pilot's answers", "workers", "asked", "images", "answers", "promised", "found"]
    header += ["ratio", "single promised", "found", "studies", "certified", "held", "singles held"]
    return columns(
        header,
        [
            [
                str(row["pilot_answers"]),
                "" if row["workers"] is None else str(row["workers"]),
                percent(row["wanted"], 1),
                f"{row['images']:,}",
                str(row["answers"]),
                percent(row["width"], 2),
                percent(row["found"], 2),
                f"{row['ratio']:.2f}",
                percent(row["single_width"], 2),
                percent(row["found_single"], 2),
                str(row["studies"]),
                str(row["certified_studies"]),
                percent(row["held"], 0),
                percent(row["single_held"], 0),
            ]
            for row in found["plans"]
        ],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/matching.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.plans", description=__doc__)
    parser.add_argument("--plans", type=int, default=20)
    parser.add_argument("--studies", type=int, default=50)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    if min(arguments.plans, arguments.studies) < 2:
        parser.error("--plans and --studies must be 2 at least")
    plans = resume(
        arguments.work / "plans.jsonl",
        [str(number) for number in range(arguments.plans)],
        lambda key: planned(int(key)),
    )
    keys = [
        f"{number}/{study}"
        for study in range(arguments.studies)
        for number in range(arguments.plans)
    ]

    def one(key: str) -> dict[str, Any]:
        number, study = map(int, key.split("/"))
        return studied(plans[number], number, study)

    found = numbers(plans, resume(arguments.work / "plans-studies.jsonl", keys, one))
    text = table(found)
    print(text)
    remarks = (
        f"Widths in points. Over {found['studies']:,} planned studies the mean gap's 95 % "
        f"intervals held the truth in {100 * found['held']:.1f} % (s.e. "
        f"{100 * found['held_se']:.1f}), those of single classifiers in "
        f"{100 * found['single_held']:.1f} %. Found widths are {found['ratio']:.2f} (sd "
        f"{found['ratio_sd']:.2f}) times the promised ones, within a tenth for "
        f"{found['within_tenth']} of {len(found['plans'])} plans. Widths are of certified fits, "
        "coverage of all."
    )
    if found["many"]:
        remarks += (
            f" Of the {found['many']} plans with {MANY} answers about an image or more, which are "
            f"all that the command looks at by itself, {found['many_within_tenth']} are within a "
            f"tenth, {found['many_ratio']:.2f} times as wide on average; with fewer the assumed "
            "shape of p(s) speaks."
        )
    command = f"python -m experiments.plans --plans {arguments.plans} --studies {arguments.studies}"
    save("plans", command, found, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
