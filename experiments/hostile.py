"""Where intervals hold and where they do not: every method in every scenario of the simulator.

    python -m experiments.hostile [--studies 100] [--images 2000] [--classifiers 10]
                                  [--rows NAME,NAME] [--work DIR] [--finished]
                                  [--posterior]

For each world and design of annotators, that many studies of known truth, fitted as a user would
fit them: nothing tells a method in what world it is, but in the last row, whose fits are told the
correlation of the answers. 95 % intervals of single classifiers and of the mean gap, by the joint
model (Laplace, certified; where its certificate is refused the draws count all the same) and the
bootstraps of the point estimates; and what `bayesrep.diagnose` says of each fit. Resumable:
finished studies are kept in DIR, and `--finished` makes the page of those alone. `--posterior`
makes the posterior's part anew and keeps the page's lines of the point estimates, which are of the
same studies, and its other rows.
"""

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import bayesrep
from bayesrep import Study
from bayesrep.checks.diagnosis import TRUST_RANK, Diagnosis
from bayesrep.checks.finding import Trust
from bayesrep.errors import ConvergenceWarning, EstimateWarning
from bayesrep.numerics.estimands import accuracy_line
from bayesrep.report.methods import look_of
from bayesrep.report.table_format import columns, percent
from bayesrep.studies.leniency import PROVENANCE_ENTRY
from bayesrep.types import Floats
from experiments.ledger import resume
from experiments.results import read_numbers, save
from experiments.studies import without_workers
from experiments.style import legend_below, panels


@dataclass(frozen=True)
class World:
    """A scenario of the simulator and how many annotators there are."""

    scenario: str
    annotators: int | tuple[int, int] | None = 10
    dependence: float | None = None
    identified: bool = True  # whether counts and answers can tell the truth
    told: bool = False  # whether the fit is told the dependence, or the study who answered
    em: bool = True  # whether by EM + spline too, whose bootstrap takes minutes on 400 cells

    def options(self) -> dict[str, Any]:
        """What the scenario does not say by itself."""
        asked = {"annotators": self.annotators, "dependence": self.dependence}
        return {name: value for name, value in asked.items() if value is not None}


ROWS: Mapping[str, World] = {
    "plain 10": World("plain"),
    "plain 40": World("plain", 40),
    "spike": World("spike"),
    "near one": World("near-one"),
    "three modes": World("three-modes"),
    "unimodal": World("unimodal"),
    "U-shaped": World("u-shaped"),
    "ragged": World("ragged", None, em=False),
    "waves 40": World("waves", 40),
    "pool": World("pool"),
    "label shift": World("label-shift", identified=False),
    "adaptive": World("adaptive", None),
    "workers": World("workers", None),
    "two panels": World("two-panels", None, identified=False),
    "dependence 0.05": World("crowded-grid", None, 0.05, identified=False),
    "dependence 0.1": World("crowded-grid", None, 0.1, identified=False),
    "dependence 0.2": World("crowded-grid", None, 0.2, identified=False),
    "told 0.1": World("crowded-grid", None, 0.1, told=True),
    "told panels": World("two-panels", None, told=True, em=False),
}
BEST_EM = "em-spline(components=2, loss=binomial, bounds=everywhere)"
POINTS = ("naive", "jackknife", BEST_EM)
LABELS = {
    "joint": "joint",
    BEST_EM: "EM + spline (K = 2, binomial)",
    "jackknife": "jackknife",
    "naive": "naive",
}
BOOTSTRAP = 200
QUANTILES = (0.025, 0.975)
OF_DRAWS = ("posterior around other modes", "Pareto k")
COVERED = ("coverage", "coverage_se", "gap_coverage", "gap_coverage_se")


def simulated(key: str, images: int, classifiers: int) -> tuple[Study, int]:
    """The study of a row and a number, ``row/number``, and the seed of its fits."""
    row, number = key.rsplit("/", 1)
    world, seed = ROWS[row], int(number)
    study = bayesrep.simulate_study(
        seed=20_000 + 1_000 * list(ROWS).index(row) + seed,
        images=images,
        classifiers=classifiers,
        scenario=world.scenario,
        **world.options(),
    )
    # Of workers only the counts, as where nobody knows who answered: `experiments.crowds` has both.
    facts = study.provenance
    if world.scenario == "two-panels" and not world.told:
        facts = {name: fact for name, fact in facts.items() if name != PROVENANCE_ENTRY}
    return replace(without_workers(study), provenance=facts), seed


def one_study(key: str, images: int, classifiers: int, *, points: bool = True) -> dict[str, Any]:
    """Estimates with intervals of every method but one, the verdict, and the truth.

    Without points, of the posterior alone.
    """
    study, seed = simulated(key, images, classifiers)
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, EstimateWarning):
            warnings.simplefilter("ignore", category)
        joint = bayesrep.fit(study, method="laplace", seed=seed, progress=False, **_told(key))
        said = bayesrep.diagnose(joint, study)
        names = POINTS if ROWS[key.rsplit("/", 1)[0]].em else POINTS[:2]
        of_points = _points(study, names, seed) if points else {}
    truth = study.truth
    assert truth is not None
    return {
        "truth": truth.adjusted_accuracy.tolist(),
        "reference": truth.reference_accuracy.tolist(),
        "measured": study.reference.correct.mean(axis=0).tolist(),
        "methods": {"joint": of_posterior(study, joint), **of_points},
        "converged": bool(joint["posterior"].attrs["converged"]),
        "verdict": _verdict(said),
    }


def _told(key: str) -> dict[str, float]:
    """What a fit of this row is told of its world."""
    world = ROWS[key.rsplit("/", 1)[0]]
    return {"dependence": world.dependence} if world.told and world.dependence else {}


def of_posterior(study: Study, posterior: Any) -> dict[str, Any]:
    """Intervals of every classifier, and of the mean gap and the slope given what was measured."""
    draws = posterior["posterior"]["adjusted_accuracy"].values.reshape(-1, len(study.classifiers))
    measured = study.reference.correct.mean(axis=0)
    lower, upper = np.quantile(draws, QUANTILES, axis=0)
    return {
        "estimate": draws.mean(axis=0).tolist(),
        "lower": lower.tolist(),
        "upper": upper.tolist(),
        "gap": _interval((measured - draws).mean(axis=1)),
        "slope": _interval(np.asarray(accuracy_line(measured, draws)[0])),
    }


def _interval(draws: np.ndarray) -> list[float]:
    return [float(draws.mean()), *map(float, np.quantile(draws, QUANTILES))]


def _points(study: Study, names: Sequence[str], seed: int) -> dict[str, Any]:
    """Estimates and bootstrap intervals of every classifier and of the populations' mean gap."""
    rows = bayesrep.estimate(study, names, bootstrap=BOOTSTRAP, seed=seed)
    gaps = bayesrep.estimate_gaps(study, names, bootstrap=BOOTSTRAP, seed=seed)
    found: dict[str, Any] = {}
    for name in names:
        alike = pl.col("method").str.replace_all(" ", "") == name.replace(" ", "")
        of_name, of_gaps = rows.filter(alike), gaps.filter(alike)
        parts = {"estimate": "adjusted_accuracy", "lower": "lower", "upper": "upper"}
        found[name] = {part: of_name[column].to_list() for part, column in parts.items()}
        for key, quantity in (("gap", "bias_corrected_gap"), ("slope", "slope")):
            row = of_gaps.row(by_predicate=pl.col("quantity") == quantity, named=True)
            found[name][key] = [row["estimate"], row["lower"], row["upper"]]
    return found


def _verdict(said: Diagnosis) -> dict[str, Any]:
    """The verdict, the checks that are behind it, and what they rest on."""
    predictions, sensitivity = said.predictions, said.sensitivity
    return {
        "checks": said.checks.rows(),
        "predictions": None
        if predictions is None
        else predictions.select("kind", "name", "p", "effect").rows(),
        "sensitivity": None
        if sensitivity is None
        else sensitivity.select("prior", "likelihood", "noise", "shift", "shift_se").rows(),
    }


def scores(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """By method: coverage with standard errors over its studies, width and bias."""
    table: dict[str, dict[str, float]] = {}
    for name in LABELS:
        having = [r for r in results if name in r["methods"]]
        if len(having) < 2:
            continue
        truth = np.array([r["truth"] for r in having])
        # A posterior speaks of the gap from what was measured, a bootstrap of the populations'.
        above = "measured" if name == "joint" else "reference"
        wanted = (np.array([r[above] for r in having]) - truth).mean(axis=1)
        of = [r["methods"][name] for r in having]
        table[name] = score(truth, wanted, of)
    return table


def score(truth: Floats, gap: Floats, fits: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Coverage with standard errors, width and bias over two studies or more.

    Parameters
    ----------
    truth
        Adjusted accuracies [study, classifier].
    gap
        Mean gaps [study] that intervals should hold.
    fits
        Of every study, as `of_posterior` has them.
    """
    estimate, lower, upper = (
        np.array([fit[part] for fit in fits], dtype=float)
        for part in ("estimate", "lower", "upper")
    )
    inside = ((lower <= truth) & (truth <= upper)).mean(axis=1)
    mean_gap = np.array([fit["gap"] for fit in fits], dtype=float)
    covers = (mean_gap[:, 1] <= gap) & (gap <= mean_gap[:, 2])
    error = (estimate - truth).mean(axis=1)
    count = np.sqrt(len(fits))
    return {
        "studies": len(fits),
        "coverage": float(inside.mean()),
        "coverage_se": float(inside.std(ddof=1) / count),
        "gap_coverage": float(covers.mean()),
        "gap_coverage_se": float(covers.std(ddof=1) / count),
        "width": float((upper - lower).mean()),
        "bias": float(error.mean()),
        "bias_se": float(error.std(ddof=1) / count),
    }


def said_of(result: Mapping[str, Any]) -> list[tuple[str, Trust]]:
    """Every check and what it means for the answer, but for those of Laplace's draws."""
    return [
        (check, trust)
        for check, _, _, trust in result["verdict"]["checks"]
        if not check.startswith(OF_DRAWS)
    ]


def verdict_of(result: Mapping[str, Any]) -> Trust:
    """The worst that a check said which is not about the draws: those are Laplace's, not NUTS'."""
    said: list[Trust] = [
        trust
        for check, _, _, trust in result["verdict"]["checks"]
        if not check.startswith(OF_DRAWS)
    ]
    return max(said, key=TRUST_RANK.__getitem__)


def alarms(results: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """By check: in what share of the studies it said anything but that all is fine."""
    counted = Counter(
        check for result in results for check, trust in said_of(result) if trust != "yes"
    )
    return {check: count / len(results) for check, count in counted.most_common()}


def numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Scores of every row, what diagnose said, and how the fits went."""
    found: dict[str, Any] = {}
    for row, world in ROWS.items():
        of_row = [r for r in results if r["key"].startswith(f"{row}/")]
        if len(of_row) < 2:
            continue
        trust = [verdict_of(r) for r in of_row]
        found[row] = {
            "world": asdict(world),
            "studies": len(of_row),
            "scores": scores(of_row),
            "verdict": {said: trust.count(said) for said in TRUST_RANK},
            "alarms": alarms(of_row),
            "converged": float(np.mean([r["converged"] for r in of_row])),
        }
    return {"rows": found}


def with_points(found: Mapping[str, Any], page: Mapping[str, Any]) -> dict[str, Any]:
    """A page's rows, those found with its scores of the point estimates of the same studies."""
    rows: dict[str, Any] = {}
    for row, old in page["rows"].items():
        facts = found["rows"].get(row)
        if facts is None:
            rows[row] = old
            continue
        points = {name: old["scores"][name] for name in POINTS if name in old["scores"]}
        rows[row] = {**facts, "scores": facts["scores"] | points}
    return {"rows": rows}


def table(found: Mapping[str, Any]) -> str:
    """A line for each row and method, one for each row's verdict, one for each of its alarms."""
    header = ["world", "method", "studies", "covered", "s.e.", "mean gap", "s.e.", "width", "bias"]
    lines = [
        [
            row,
            LABELS[name],
            str(score["studies"]),
            *(percent(score[n], 1) for n in COVERED),
            *(percent(score[n], 2) for n in ("width", "bias", "bias_se")),
        ]
        for row, facts in found["rows"].items()
        for name, score in facts["scores"].items()
    ]
    verdicts = [
        [
            row,
            str(facts["studies"]),
            *(str(facts["verdict"][said]) for said in TRUST_RANK),
            percent(facts["converged"], 0),
        ]
        for row, facts in found["rows"].items()
    ]
    second = ["world", "studies", *TRUST_RANK, "ok"]
    warned = [
        [row, check, percent(share, 0)]
        for row, facts in found["rows"].items()
        for check, share in facts["alarms"].items()
    ]
    third = ["world", "check that warned", "of studies"]
    return "\n\n".join(
        columns(names, rows)
        for names, rows in (([*header, "s.e."], lines), (second, verdicts), (third, warned))
    )


def draw(found: Mapping[str, Any]) -> Any:
    """Coverage of single classifiers with two standard errors, by world and method."""
    drawing, (axes,) = panels(1)
    drawing.set_size_inches(8.0, 0.45 * len(found["rows"]) + 1.5)
    rows = list(found["rows"])
    for place, (name, label) in enumerate(LABELS.items()):
        of = [
            (at, found["rows"][row]["scores"][name])
            for at, row in enumerate(rows)
            if name in found["rows"][row]["scores"]
        ]
        if not of:
            continue
        middle = 100 * np.array([score["coverage"] for _, score in of])
        spread = 200 * np.array([score["coverage_se"] for _, score in of])
        at = np.array([row for row, _ in of]) + 0.15 * (place - 2)
        color = look_of(name).paper
        axes.hlines(
            at,
            np.maximum(middle - spread, 0),
            np.minimum(middle + spread, 100),
            color=color,
            lw=0.9,
        )
        axes.plot(middle, at, marker="o", lw=0, ms=4, color=color, label=label)
    axes.axvline(95, color="0.4", lw=0.8, ls="--")
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.set_xlim(0, 102)
    axes.set_xlabel("true values inside (%)")
    legend_below(drawing, columns=3)
    return drawing


def remarks(found: Mapping[str, Any], arguments: argparse.Namespace) -> str:
    """What the numbers are, in prose."""
    count = [facts["studies"] for facts in found["rows"].values()]
    ends = " to ".join(map(str, sorted({min(count), max(count)})))
    return (
        f"{ends} studies a world, {arguments.images} + {arguments.images} "
        f"images and {arguments.classifiers} classifiers each, 10 annotators an image where the "
        "world does not say otherwise; fits of 'told' know the correlation. Everything is fitted "
        "as by default, but by the Laplace approximation, whose draws count where its certificate "
        f"was refused too ('ok': given); bootstraps have {BOOTSTRAP} replicates. All in percent or "
        "points; 'covered' over classifiers, 'mean gap' over studies. "
        "Standard errors are over studies. 'yes', 'with care', 'no': what "
        "`bayesrep.diagnose` says, but for the certificate."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/worlds.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.hostile", description=__doc__)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--classifiers", type=int, default=10)
    parser.add_argument("--rows", default=",".join(ROWS), help="worlds, separated by commas")
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    parser.add_argument("--finished", action="store_true", help="fit nothing more")
    parser.add_argument("--posterior", action="store_true", help="keep the page's other lines")
    arguments = parser.parse_args(argv)
    chosen = arguments.rows.split(",")
    if unknown := sorted(set(chosen) - set(ROWS)):
        parser.error(f"no such world: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    size = arguments.images, arguments.classifiers
    of_size = f"--images {size[0]} --classifiers {size[1]}"

    def all_of(
        kind: str, make: Callable[[str, int, int], dict[str, Any]], wanted: Sequence[str]
    ) -> list[Mapping[str, Any]]:
        path = arguments.work / f"{kind}-{size[0]}-{size[1]}.jsonl"
        return resume(path, wanted, lambda key: make(key, *size), finished=arguments.finished)

    command = f"python -m experiments.hostile --studies {arguments.studies} {of_size}"
    keys = [f"{row}/{i}" for i in range(arguments.studies) for row in chosen]
    if arguments.posterior:
        page = read_numbers("hostile")
        if (command := page["command"]) and not command.endswith(of_size):
            parser.error(f"the page has studies of another size: {command}")
        results = all_of("hostile-posterior", partial(one_study, points=False), keys)
        found = with_points(numbers(results), page)
    else:
        found = numbers(all_of("hostile", one_study, keys))
    text = table(found)
    print(text)
    save("hostile", command, found, text, draw(found), remarks(found, arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
