"""Posteriors of small studies by long chains, kept so that another sampler can be held to them.

    python -m experiments.posteriors [--warmup 1000] [--draws 2000] [--work DIR]
    python -m experiments.posteriors --check

One case for every option that changes the posterior. Of each quantity the file
(`tests/data/posteriors.json`) has mean, sd and quantiles, and the Monte Carlo standard errors of
mean and sd. With --check the same cases are fitted by the sampler of the day and held to it (four
minutes; `tests/statistics/test_posteriors_agree.py` does so with the quickest). All goes through
`bayesrep.fit`, so any version can make the file; make it again only when a model's definition
changes, for the file is the memory of the sampler that made it. Resumable: finished cases are kept
in DIR.
"""

import argparse
import json
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bayesrep
from bayesrep import ConvergenceWarning, Study
from bayesrep.posterior.files import arviz
from bayesrep.posterior.groups import Posterior, need_group
from bayesrep.posterior.verdict import diagnostics
from bayesrep.version import __version__
from experiments.ledger import resume
from experiments.results import machine

Floats = NDArray[np.float64]

STORED = Path(__file__).resolve().parents[1] / "tests" / "data" / "posteriors.json"
CHAINS = 4
LIMIT = 4.5
"""Standard errors, of both sides together. Normal errors exceed it once in 150,000 comparisons: of
the file's means and sds one does for 1 of 100 seeds of all fits."""
PRIORS: Mapping[str, Any] = {"level": (-1.0, 1.5), "slope": (2.0, 1.5), "dependence": 0.0}
"""Of the curves when the file was made: it stays another sampler's memory where defaults move."""
SIZE: Mapping[str, Any] = {"seed": 5, "images": 800, "annotators": 20, "classifiers": 8}
OF_SHARED = (
    "mean_selection_frequency",
    "component_mean",
    "component_concentration",
    "weight_logit",
    "population_curve",
    "group_weight_logit",
    "group_effect",
)
OF_CLASSIFIERS = ("adjusted_accuracy", "accuracy_under")
OF_FIRST_AND_LAST = ("classifier_curve", "classifier_group_effect", "group_adjusted_accuracy")
ON_LOG_SCALE = ("component_concentration",)
"""Long tails would make the standard errors themselves unsure."""
BENDS = re.compile(r"population_curve\[[2-9]\]|classifier_curve\[\d+, [2-9]\]")
"""Student t of 4 degrees of freedom a priori, and still where counts say little: their squares have
no variance, so an sd has no standard error. Their 5 to 95 % range is compared in its place."""
RANGE = 1.36
"""Standard error of that range, in sds over the root of the effective number of draws: that of a
normal (0.91), half as much again for tails that are longer and slower to sample."""


@dataclass(frozen=True)
class Case:
    """A study and how it is fitted.

    Attributes
    ----------
    options
        Of `bayesrep.fit`, beside `PRIORS`.
    simulate
        Of `bayesrep.simulate_study`.
    change
        What is done to the simulated study, a name of `CHANGES`; empty for nothing.
    longer
        How many times as long its chains are: of long tails draws say less.
    """

    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    simulate: Mapping[str, Any] = field(default_factory=lambda: SIZE)
    change: str = ""
    longer: int = 1

    def study(self) -> Study:
        """The study, the same at every call."""
        study = bayesrep.simulate_study(**self.simulate)
        return CHANGES[self.change](study) if self.change else study

    def fit(self, **schedule: Any) -> Posterior:
        """Its posterior; how far to trust it is in the posterior's attributes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            asked = {"method": "nuts", "progress": False, **PRIORS, **self.options, **schedule}
            return bayesrep.fit(self.study(), **asked)


def in_three_groups(study: Study) -> Study:
    """Groups of different sizes that differ in selection frequency, and so in accuracy."""
    rng = np.random.default_rng(0)

    def divided(data: Any) -> Any:
        score = data.selected / data.shown + 0.3 * rng.standard_normal(len(data.shown))
        names = np.array(["hard", "middle", "easy"])[np.digitize(score, [0.6, 0.9])]
        return replace(data, groups={"kind": names})

    return Study({r: divided(data) for r, data in study.datasets.items()}, study.classifiers)


def with_candidates(study: Study) -> Study:
    """A third data set: images of another simulated replication, which nobody classified right."""
    other = bayesrep.simulate_study(**{**SIZE, "seed": 6}).replication
    candidates = replace(other, name="candidates", correct=np.zeros_like(other.correct))
    return Study({**study.datasets, "candidates": candidates}, study.classifiers)


def with_extremes(study: Study) -> Study:
    """The first two classifiers answer alike, the last but one never right, the last always."""

    def changed(data: Any) -> Any:
        correct = data.correct.copy()
        correct[:, 1], correct[:, -2], correct[:, -1] = correct[:, 0], False, True
        return replace(data, correct=correct)

    return Study({r: changed(data) for r, data in study.datasets.items()}, study.classifiers)


CHANGES = {"groups": in_three_groups, "candidates": with_candidates, "extremes": with_extremes}
CASES: Mapping[str, Case] = {
    "default": Case(),
    "cut": Case({"feedback": "cut"}),
    "groups": Case({"groups": "kind"}, change="groups"),
    "spline": Case({"curve": "spline"}),
    "gp": Case({"curve": "gp"}),
    "one component": Case({"components": 1}),
    "three components": Case({"components": 3}),
    "separate components": Case({"shared_components": False}),
    "monotone": Case({"monotone": True}),
    "three data sets": Case(
        {"datasets": ("reference", "replication", "candidates")}, change="candidates"
    ),
    "ragged annotators": Case(simulate={**SIZE, "annotators": (5, 30)}),
    "two annotators": Case(simulate={**SIZE, "annotators": 2}),
    "fifty images": Case(simulate={**SIZE, "images": 50, "classifiers": 1}),
    "extreme classifiers": Case(change="extremes", longer=4),
}


class Summary(NamedTuple):
    """Of one quantity's draws; `error_*` are Monte Carlo standard errors."""

    mean: float
    sd: float
    lower: float  # the 5 % quantile
    upper: float  # the 95 % quantile
    error_mean: float
    error_sd: float


def scalars(posterior: Posterior) -> dict[str, Floats]:
    """Draws [chain, draw] of every scalar of interest, by name and place."""
    group = posterior["posterior"]
    last = group.sizes["classifier"] - 1
    ends = {name: sorted({0, last}) for name in OF_FIRST_AND_LAST}
    every = {name: range(last + 1) for name in OF_CLASSIFIERS}
    draws: dict[str, Floats] = {}
    for name in (*OF_CLASSIFIERS, *OF_SHARED, *OF_FIRST_AND_LAST):
        if name not in group:
            continue
        values = np.asarray(group[name].values)
        label = f"log {name}" if name in ON_LOG_SCALE else name
        values = np.log(values) if name in ON_LOG_SCALE else values
        chosen = (ends | every).get(name)
        for place in np.ndindex(*values.shape[2:]):
            if chosen is None or place[0] in chosen:
                draws[f"{label}[{', '.join(map(str, place))}]"] = values[(..., *place)]
    return draws


def summary_of(draws: Floats) -> Summary:
    """Mean, sd and quantiles of draws [chain, draw], and how sure they are.

    The error of the sd is by the delta method from that of the mean squared deviation: it holds
    whatever the shape of the posterior.
    """

    def error(values: Floats) -> float:
        return float(arviz().mcse(values, method="mean"))

    mean, sd = float(draws.mean()), float(draws.std(ddof=1))
    lower, upper = np.quantile(draws, [0.05, 0.95])
    error_sd = error((draws - mean) ** 2) / (2 * sd)
    return Summary(mean, sd, float(lower), float(upper), error(draws), error_sd)


def summaries(posterior: Posterior) -> dict[str, Summary]:
    """Of every scalar of interest."""
    return {name: summary_of(draws) for name, draws in scalars(posterior).items()}


def one_case(name: str, warmup: int, draws: int) -> dict[str, Any]:
    """What is kept of one case."""
    case = CASES[name]
    posterior = case.fit(chains=CHAINS, warmup=warmup, draws=case.longer * draws, seed=1)
    attributes = posterior["posterior"].attrs
    checks = diagnostics(need_group(posterior, "posterior"))
    return {
        "simulate": dict(case.simulate),
        "change": case.change,
        "options": dict(case.options),
        "fingerprint": attributes["study_fingerprint"],
        "schedule": json.loads(attributes["schedule"]),
        "verdict": attributes["verdict"],
        "largest_rhat": round(max(float(np.nanmax(v.values)) for v in checks.rhat.values()), 4),
        "least_ess": round(min(float(np.nanmin(v.values)) for v in checks.ess_bulk.values())),
        "quantities": {
            label: [float(f"{number:.6g}") for number in summary]
            for label, summary in summaries(posterior).items()
        },
    }


def stored() -> dict[str, Any]:
    """What the file holds."""
    return json.loads(STORED.read_text(encoding="utf-8"))


def disagreements(ours: Mapping[str, Summary], theirs: Mapping[str, Sequence[float]]) -> list[str]:
    """Means and sds that differ by more than `LIMIT` standard errors, in words."""
    assert ours.keys() == theirs.keys()
    said: list[str] = []
    for name, one in ours.items():
        other = Summary(*theirs[name])
        if BENDS.fullmatch(name):
            one, other = by_range(one), by_range(other)
        for what in ("mean", "sd"):
            a, b = getattr(one, what), getattr(other, what)
            error = np.hypot(getattr(one, f"error_{what}"), getattr(other, f"error_{what}"))
            if not abs(a - b) < LIMIT * error:
                z = (a - b) / error
                said.append(f"{what} of {name}: {a:.5g}, kept {b:.5g}, z {z:.1f}")
    return said


def by_range(one: Summary) -> Summary:
    """The same with the sd of a normal of the same 5 to 95 % range."""
    sd = (one.upper - one.lower) / (2 * 1.645)
    return one._replace(sd=sd, error_sd=RANGE * sd * one.error_mean / one.sd)


def check() -> int:
    """Fit all cases as they are fitted by default, and say what differs; the number that do."""
    kept, wrong = stored()["cases"], 0
    for name, case in CASES.items():
        posterior = case.fit(seed=2)
        said = disagreements(summaries(posterior), kept[name]["quantities"])
        print(f"{name}: {'; '.join(said) or 'agrees'}. {posterior['posterior'].attrs['verdict']}")
        wrong += bool(said)
    return wrong


def as_text(contents: Mapping[str, Any]) -> str:
    """JSON with a line for each quantity."""
    text = json.dumps({**contents, "cases": None}, indent=1).replace(
        '"cases": null', '"cases": {\n{}\n }'
    )
    parts = []
    for name, case in contents["cases"].items():
        rows = [f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in case["quantities"].items()]
        facts = [f"   {json.dumps(k)}: {json.dumps(v)}" for k, v in case.items()][:-1]
        body = ",\n".join([*facts, '   "quantities": {\n' + ",\n".join(rows) + "\n   }"])
        parts.append(f"  {json.dumps(name)}: {{\n{body}\n  }}")
    return text.replace("{}", ",\n".join(parts)) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Fit all cases and write tests/data/posteriors.json."""
    parser = argparse.ArgumentParser(prog="python -m experiments.posteriors", description=__doc__)
    parser.add_argument("--warmup", type=int, default=1_000)
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    parser.add_argument("--check", action="store_true", help="hold today's sampler to the file")
    arguments = parser.parse_args(argv)
    if arguments.check:
        return min(check(), 1)
    warmup, draws = arguments.warmup, arguments.draws
    results = resume(
        arguments.work / f"posteriors-{warmup}-{draws}.jsonl",
        CASES,
        lambda name: one_case(name, warmup, draws),
    )
    contents = {
        "command": f"python -m experiments.posteriors --warmup {warmup} --draws {draws}",
        "bayesrep": __version__,
        "machine": machine(),
        "columns": Summary._fields,
        "cases": {result.pop("key"): result for result in results},
    }
    STORED.parent.mkdir(parents=True, exist_ok=True)
    STORED.write_text(as_text(contents), encoding="utf-8")
    for name, case in contents["cases"].items():
        print(f"{name}: R-hat {case['largest_rhat']}, ESS {case['least_ess']}. {case['verdict']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
