"""How many flawed tasks pass a filter by the worst of three, from published shares alone.

    python -m experiments.worst_of_three

SWE-bench Verified kept a task where none of three annotators found a serious flaw (OpenAI,
"Introducing SWE-bench Verified", 2024: of 1,699 tasks 38.3 % were flagged for their statement,
61.1 % for their tests, 68.3 % left out in all). Let s be the chance that an annotator lets a task
pass. The shares say what E[s³] = q is, and nothing else about s. Of the tasks that are kept

    a fourth annotator flags       1 − E[s⁴] / q           from 0 to 1 − q^(1/3)
    three others leave out         1 − E[s⁶] / q           from 0 to 1 − q
    most annotators would flag     E[s³; s < 1/2] / q      from 0 to min(1, (1 − q) / (7 q))

The lower ends are those of annotators who never differ, the upper ones of tasks that are all alike
(by Jensen's inequality), or either plain or just flagged by most. In between, what a beta of s with
a stated intraclass correlation of the annotators says.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc
from scipy.stats import beta as beta_law

from bayesrep.report.table_format import columns, percent
from experiments.results import save

TASKS = 1_699
FLAGGED = {"statement": 0.383, "tests": 0.611, "all": 0.683}
WORST_OF = 3
CORRELATIONS = (0.2, 0.5, 0.8)
QUANTITIES = {
    "fourth": "a fourth annotator flags",
    "again": "three others leave out",
    "most": "most annotators would flag",
}


def bounds(q: float) -> dict[str, tuple[float, float]]:
    """Least and most of every quantity where E[s³] = q."""
    return {
        "fourth": (0.0, 1 - q ** (1 / WORST_OF)),
        "again": (0.0, 1 - q),
        "most": (0.0, min(1.0, (1 - q) / (7 * q))),
    }


def by_beta(q: float, correlation: float) -> dict[str, float]:
    """The quantities of the beta with this intraclass correlation and E[s³] = q."""
    total = 1 / correlation - 1

    def moment(mean: float, power: int) -> float:
        r = np.arange(power)
        return float(np.prod((mean * total + r) / (total + r)))

    mean = brentq(lambda m: moment(m, WORST_OF) - q, 1e-9, 1 - 1e-9, xtol=1e-14)
    a, b = mean * total, (1 - mean) * total
    return {
        "fourth": 1 - moment(mean, 4) / q,
        "again": 1 - moment(mean, 2 * WORST_OF) / q,
        "most": float(betainc(a + WORST_OF, b, 0.5)),  # the density of kept tasks is Beta(a + 3, b)
    }


def numbers() -> dict[str, Any]:
    """Bounds and betas for every published share, and at the ends of its sampling interval."""
    found: dict[str, Any] = {}
    for name, flagged in FLAGGED.items():
        passed = round((1 - flagged) * TASKS)
        ends = beta_law.ppf([0.025, 0.975], passed + 0.5, TASKS - passed + 0.5)
        q = 1 - flagged
        found[name] = {
            "passed": q,
            "interval": [float(each) for each in ends],
            "bounds": bounds(q),
            "widest": {key: value[1] for key, value in bounds(float(ends[0])).items()},
            "beta": {str(rho): by_beta(q, rho) for rho in CORRELATIONS},
        }
    return found


def table(found: Mapping[str, Any]) -> str:
    """A line for each share and quantity."""
    header = ["flagged for", "passed (%)", "of those kept", "least", "most", "most, at the end"]
    header += [f"beta, {rho:g}" for rho in CORRELATIONS]
    rows = [
        [
            name,
            f"{percent(of['passed'], 1)} ({percent(of['interval'][0], 1)} to "
            f"{percent(of['interval'][1], 1)})",
            words,
            *(percent(end, 1) for end in of["bounds"][key]),
            percent(of["widest"][key], 1),
            *(percent(of["beta"][str(rho)][key], 1) for rho in CORRELATIONS),
        ]
        for name, of in found.items()
        for key, words in QUANTITIES.items()
    ]
    return columns(header, rows)


REMARKS = (
    "In percent. 'most, at the end': the largest value at the lower end of the sampling interval "
    "of the share that passed (1,699 tasks, Jeffreys). The shares identify one moment of the "
    "chance s that an annotator lets a task pass, so that everything between least and most fits "
    "them; the betas show what agreement among annotators would decide (intraclass correlation "
    "0.2, 0.5, 0.8). The audit that found 59.4 % flawed looked at tasks that models fail, a part "
    "of those that were kept, and chosen by outcome: it is no estimate of the share of all."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/items.md."""
    argparse.ArgumentParser(
        prog="python -m experiments.worst_of_three", description=__doc__
    ).parse_args(argv)
    found = numbers()
    text = table(found)
    print(text)
    save("worst-of-three", "python -m experiments.worst_of_three", found, text, None, REMARKS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
