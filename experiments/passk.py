"""Intervals of pass@k: coverage on simulated models and on held-out answers, beside other ways.

    python -m experiments.passk [--studies 200] [--data ../shared/data] [--work DIR]

*Simulated*: 300 items with 5, 10 or 20 attempts each, solve rates inside the fitted family (one
beta or two) and outside it (logit-normal, or Kumaraswamy on (0, c)), with 0, 10 or 40 % of the
items unsolvable, each study with parameters of its own. *Differences*: two models on the same 300
items, whose difficulties go together or not. *Held out*: people's answers as attempts, where a
hundred (or forty-odd) were given to each of thousands of images or sentences: 300 of them with 5,
10 or 20 of their answers predict what all answers of all of them say. Beside the posterior: one
beta (a beta-binomial by maximum likelihood, its interval by the normal approximation; it stands for
the distributional forecast of Schaeffer et al., 2025) and a power law −log pass@k = a k^−b through
the unbiased estimates at 1..n (Brown et al., 2024). Resumable: finished studies are kept in DIR.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import minimize
from scipy.special import expit

from bayesrep.estimators.pass_at_k import PassAtK, pass_at_k
from bayesrep.estimators.unbiased import item_passes
from bayesrep.numerics.rising import log_ratio, log_rising
from bayesrep.report.table_format import columns, percent
from bayesrep.studies.attempts import Attempts
from experiments.ledger import resume
from experiments.results import interval_points, save
from experiments.style import Color, legend_below, panels

ITEMS = 300
ATTEMPTS = (5, 10, 20)
UNSOLVABLE = (0, 10, 40)  # percent
FAMILIES = ("inside", "outside")
K = (2, 10, 100)
TOGETHER = (0.0, 0.9)  # correlation of two models' difficulties
HELD_OUT = {"cifar10h": (10, 45), "chaosnli": (10, 100)}
DRAWS = 1_000  # a quarter of the default: studies are many
WAYS = {
    "posterior": "mixture with masses (posterior)",
    "unbiased": "unbiased (k ≤ n)",
    "beta": "one beta",
    "power": "power law",
}
COLORS = dict(zip(WAYS, (Color.BLUE, Color.GREY, Color.YELLOW, Color.RED), strict=True))

Rates = Callable[[np.random.Generator, int], np.ndarray]


def world(family: str, rng: np.random.Generator) -> tuple[Rates, np.ndarray]:
    """Solve rates of items that can be solved, and their true pass@k at `K`."""
    if family == "inside":
        parts = int(rng.integers(1, 3))
        mean, total = rng.uniform(0.05, 0.8, parts), np.exp(rng.uniform(0, np.log(10), parts))
        weights = rng.dirichlet(np.full(parts, 2.0))
        a, b = mean * total, (1 - mean) * total

        def betas(random: np.random.Generator, size: int) -> np.ndarray:
            part = random.choice(parts, size, p=weights)
            return random.beta(a[part], b[part])

        k = np.array(K)
        return betas, 1 - weights @ np.exp(log_ratio(b, a, k))
    if rng.random() < 0.5:
        middle, sd = rng.uniform(-3, 1), rng.uniform(0.8, 2.5)

        def of_uniform(u: np.ndarray) -> np.ndarray:
            from scipy.special import ndtri

            return expit(middle + sd * ndtri(u))
    else:
        a, b = np.exp(rng.uniform(np.log([0.2, 0.5]), np.log([2, 5])))
        top = rng.uniform(0.5, 1)

        def of_uniform(u: np.ndarray) -> np.ndarray:
            return top * (-np.expm1(np.log1p(-u) / b)) ** (1 / a)

    grid = (np.arange(100_000) + 0.5) / 100_000
    truth = 1 - np.array([((1 - of_uniform(grid)) ** k).mean() for k in K])
    return lambda random, size: of_uniform(random.random(size)), truth


def attempts_of(name: str, solved: np.ndarray, attempts: int) -> Attempts:
    """Counts of one model, items by number."""
    items = np.arange(len(solved)).astype(str)
    return Attempts("simulated", name, items, solved, np.full(len(solved), attempts))


def one_study(key: str) -> dict[str, Any]:
    """Every way's pass@k with its interval, and the truth."""
    family, unsolvable, n, turn = key.split("/")
    rng = np.random.default_rng([1, FAMILIES.index(family), int(unsolvable), int(n), int(turn)])
    rates, truth = world(family, rng)
    share = int(unsolvable) / 100
    s = rates(rng, ITEMS) * (rng.random(ITEMS) >= share)
    data = attempts_of("model", rng.binomial(int(n), s), int(n))
    return {"truth": ((1 - share) * truth).tolist(), "ways": every_way(data, K, int(turn))}


def every_way(data: Attempts, k: Sequence[int], seed: int) -> dict[str, Any]:
    """By way the estimates, lower and upper ends at every k, null where there is none."""
    found = pass_at_k(data, k, draws=DRAWS, seed=seed)
    table = found.table
    return {
        "posterior": [table[name].to_list() for name in ("estimate", "lower", "upper")],
        "unbiased": [
            table[name].to_list() for name in ("unbiased", "unbiased_lower", "unbiased_upper")
        ],
        "beta": one_beta(data, k, seed),
        "power": power_law(data, k),
        "prior_share": table["prior_share"].to_list(),
    }


def one_beta(data: Attempts, k: Sequence[int], seed: int) -> list[list[float]]:
    """A beta-binomial by maximum likelihood, its parameters' logarithms taken as normal."""
    solved, items = np.unique(data.solved, return_counts=True)
    n, counts = int(data.attempts[0]), np.array(k)

    def loss(logs: np.ndarray) -> float:
        a, b = np.exp(np.clip(logs, -12, 12))
        mass = log_rising(a, solved) + log_rising(b, n - solved)
        return -float(items @ (mass - log_rising(a + b, np.array([n]))))

    def passes(logs: np.ndarray) -> np.ndarray:
        a, b = np.exp(np.clip(logs, -12, 12)).T
        return 1 - np.exp(log_ratio(b, a, counts))

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-5}).x
    step = 1e-3 * np.eye(2)
    hessian = np.array(
        [
            [
                (loss(best + i + j) - loss(best + i - j) - loss(best - i + j) + loss(best - i - j))
                / 4e-6
                for j in step
            ]
            for i in step
        ]
    )
    values, vectors = np.linalg.eigh(hessian)
    spread = vectors / np.sqrt(np.maximum(values, 1e-3))
    normal = np.random.default_rng(seed).standard_normal((1_000, 2))
    draws = passes(best + normal @ spread.T)
    return [each.tolist() for each in (passes(best), *np.quantile(draws, [0.025, 0.975], axis=0))]


def power_law(data: Attempts, k: Sequence[int], replicates: int = 200) -> list[list[float | None]]:
    """A line through log(−log pass@j) against log j, j = 1..n, its interval by the bootstrap."""
    j = np.arange(1, int(data.attempts.min()) + 1)
    each = np.stack([item_passes(data.solved, data.attempts, int(i)) for i in j], axis=1)
    rng = np.random.default_rng(0)
    weights = rng.multinomial(len(each), np.full(len(each), 1 / len(each)), size=replicates)
    means = np.concatenate([each.mean(axis=0, keepdims=True), weights @ each / len(each)])
    inside = np.clip(means, 1e-9, 1 - 1e-9)
    y, x = np.log(-np.log(inside)), np.log(j)
    slope = (y - y.mean(axis=1, keepdims=True)) @ (x - x.mean()) / np.square(x - x.mean()).sum()
    level = y.mean(axis=1) - slope * x.mean()
    forecast = np.exp(-np.exp(level[:, None] + slope[:, None] * np.log(k)))
    ends = np.quantile(forecast[1:], [0.025, 0.975], axis=0)
    return [part.tolist() for part in (forecast[0], *ends)]


def one_difference(key: str) -> dict[str, Any]:
    """Differences of two models on the same items, one tenth of them unsolvable for both."""
    together, n, turn = key.split("/")
    rng = np.random.default_rng([2, int(10 * float(together)), int(n), int(turn)])
    levels, sd = rng.uniform(-2.5, 0.5, 2), rng.uniform(1, 2.5)
    rho = float(together)
    both = rng.standard_normal((2, ITEMS))
    both[1] = rho * both[0] + np.sqrt(1 - rho**2) * both[1]
    possible = rng.random(ITEMS) >= 0.1
    solved = rng.binomial(int(n), expit(levels[:, None] + sd * both) * possible)
    data = [attempts_of(name, each, int(n)) for name, each in zip("AB", solved, strict=True)]
    found: PassAtK = pass_at_k(data, K, draws=DRAWS, seed=int(turn))
    grid = np.linspace(-8, 8, 4_001)
    density = np.exp(-(grid**2) / 2)
    density /= density.sum()
    failed = [[density @ expit(-(level + sd * grid)) ** k for k in K] for level in levels]
    truth = 0.9 * (np.array(failed[1]) - np.array(failed[0]))
    table = found.differences()
    alone = found.table
    ends = [alone[name].to_numpy().reshape(2, len(K)) for name in ("lower", "upper")]
    spread = np.sqrt(np.square(ends[1] - ends[0]).sum(axis=0))
    return {
        "truth": truth.tolist(),
        "ways": {
            "posterior": [table[name].to_list() for name in ("difference", "lower", "upper")],
            "unbiased": [
                table[name].to_list() for name in ("unbiased", "unbiased_lower", "unbiased_upper")
            ],
        },
        "width_unpaired": spread.tolist(),
    }


def pool(name: str, data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Answers that count as solved, and all answers, of every item of a published data set.

    Of CIFAR-10H the answers that are not the commonest, of ChaosNLI the new ones that say
    contradiction.
    """
    if name == "cifar10h":
        counts = np.load(data / "cifar10h" / "cifar10h-counts.npy", allow_pickle=False)
        right = counts.max(axis=1)
        return counts.sum(axis=1) - right, counts.sum(axis=1)
    table = pl.read_csv(data / "chaosnli" / "counts.csv")
    answers = table.select("new_e", "new_n", "new_c").to_numpy()
    return answers[:, 2], answers.sum(axis=1)


def one_held_out(key: str, data: Path) -> dict[str, Any]:
    """Forecasts from some of the answers about 300 items, and what all say about all items."""
    name, n, turn = key.split("/")
    solved, attempts = pool(name, data)
    k = HELD_OUT[name]
    truth = [float(item_passes(solved, attempts, each).mean()) for each in k]
    rng = np.random.default_rng([3, list(HELD_OUT).index(name), int(n), int(turn)])
    chosen = rng.integers(len(solved), size=ITEMS)
    dealt = rng.hypergeometric(solved[chosen], (attempts - solved)[chosen], int(n))
    return {"truth": truth, "ways": every_way(attempts_of(name, dealt, int(n)), k, int(turn))}


def scores(results: Sequence[Mapping[str, Any]], place: int) -> dict[str, dict[str, float]]:
    """Coverage, width, bias and rms error at one k, by way; nothing of a way without estimates."""
    truth = np.array([r["truth"][place] for r in results])
    table: dict[str, dict[str, float]] = {}
    for name in WAYS:
        parts = [r["ways"][name] for r in results if name in r["ways"]]
        if not parts or parts[0][0][place] is None:
            continue
        estimate, lower, upper = np.array([[row[place] for row in part] for part in parts]).T
        table[name] = {
            "coverage": float(((lower <= truth) & (truth <= upper)).mean()),
            "width": float((upper - lower).mean()),
            "bias": float((estimate - truth).mean()),
            "rms": float(np.sqrt(np.square(estimate - truth).mean())),
        }
    return table


def numbers(parts: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Scores by cell (the key less its turn) and k, and by the first word of the key."""
    found: dict[str, Any] = {}
    for part, results in parts.items():
        keys = [r["key"] for r in results]
        wide = dict.fromkeys(key.partition("/")[0] for key in keys)
        cells = wide | dict.fromkeys(key.rpartition("/")[0] for key in keys)
        found[part] = {
            cell: {
                "studies": sum(r["key"].startswith(f"{cell}/") for r in results),
                "k": {
                    str(k): scores([r for r in results if r["key"].startswith(f"{cell}/")], place)
                    for place, k in enumerate(_k_of(part, cell))
                },
            }
            for cell in cells
        }
    return found


def _k_of(part: str, cell: str) -> tuple[int, ...]:
    return HELD_OUT[cell.split("/")[0]] if part == "held out" else K


def table(found: Mapping[str, Any]) -> str:
    """One line a cell, k and way."""
    header = ["studies", "k", "way", "of", "covered", "mean width", "bias", "rms error"]
    rows = [
        [
            f"{part}, {cell}",
            k,
            WAYS[way],
            str(group["studies"]),
            percent(score["coverage"], 1),
            *(percent(score[name], 2) for name in ("width", "bias", "rms")),
        ]
        for part, cells in found.items()
        for cell, group in cells.items()
        for k, ways in group["k"].items()
        for way, score in ways.items()
    ]
    return columns(header, rows)


def draw(found: Mapping[str, Any]) -> Any:
    """Coverage at each k on simulated studies, by attempts and share of unsolvable items."""
    drawing, axes = panels(len(FAMILIES) * len(K), rows=len(FAMILIES))
    cells = found["simulated"]
    for axis, (family, k) in zip(axes, [(f, k) for f in FAMILIES for k in K], strict=True):
        names = [f"{family}/{share}/{n}" for n in ATTEMPTS for share in UNSOLVABLE]
        for shift, way in zip((-0.24, -0.08, 0.08, 0.24), WAYS, strict=True):
            held = [
                (place + shift, score[way]["coverage"], cells[name]["studies"])
                for place, name in enumerate(names)
                if way in (score := cells[name]["k"][str(k)])
            ]
            if held:
                x, y, count = np.array(held).T
                error = 2 * np.sqrt(np.maximum(y * (1 - y), 0.5 / count) / count)
                ends = 100 * np.maximum(y - error, 0), 100 * np.minimum(y + error, 1)
                interval_points(axis, x, 100 * y, *ends, color=COLORS[way], ms=4, label=WAYS[way])
        axis.axhspan(93, 97, color="0.9", zorder=0)
        axis.set_title(f"pass@{k}, {family} the family", fontsize=10)
        labels = [f"{share}" for _ in ATTEMPTS for share in UNSOLVABLE]
        axis.set_xticks(range(len(names)), labels, fontsize=8)
        axis.set_ylim(0, 102)
        axis.set_xlabel("unsolvable (%), for n = 5, 10, 20 attempts", fontsize=9)
        for edge in (2.5, 5.5):
            axis.axvline(edge, color="0.7", lw=0.8)
    for axis in axes[:: len(K)]:
        axis.set_ylabel("true values inside (%)")
    legend_below(drawing)
    return drawing


def remarks(found: Mapping[str, Any]) -> str:
    """What the numbers are, in prose."""
    cells = {name: cell for name, cell in found["simulated"].items() if "/" in name}
    held = [ways["posterior"]["coverage"] for cell in cells.values() for ways in cell["k"].values()]
    least = min(cell["studies"] for cell in cells.values())
    spread = 100 * np.sqrt(0.95 * 0.05 / least)
    return (
        f"{ITEMS} items; at least {least} studies of each kind, each with its own parameters, "
        f"so a coverage of 95 % has a standard error of {spread:.1f} points. All in percent or "
        "percent points; the target is pass@k of the population of items. A name is family/percent "
        "of items unsolvable/attempts where studies are simulated, correlation of the models' "
        "difficulties/attempts for differences, data set/attempts dealt where answers are held out "
        "(people's answers as attempts, never the models' own); a first word alone is all of its "
        "kinds together. Over the "
        f"{len(held)} simulated kinds and k the posterior's intervals hold "
        f"{100 * np.mean(held):.1f} % of the true values on average, {100 * min(held):.1f} at the "
        f"least and {100 * max(held):.1f} at the most, {sum(0.93 <= h <= 0.97 for h in held)} of "
        "them between 93 and 97. The interval is the hull of the equal-tailed and the shortest "
        "one, so it is rather too wide where the posterior leans on a bound."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/items.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.passk", description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    makers: dict[str, Callable[[str], dict[str, Any]]] = {
        "simulated": one_study,
        "differences": one_difference,
        "held out": lambda key: one_held_out(key, arguments.data),
    }
    parts = {
        part: resume(
            arguments.work / f"passk-{part.replace(' ', '-')}.jsonl",
            keys(part, arguments.studies),
            make,
        )
        for part, make in makers.items()
    }
    found = numbers(parts)
    text = table(found)
    print(text)
    command = f"python -m experiments.passk --studies {arguments.studies}"
    save("passk", command, found, text, draw(found), remarks(found))
    return 0


def keys(part: str, studies: int) -> list[str]:
    """The studies of one part, one of every kind before the second of any."""
    kinds = {
        "simulated": [
            f"{family}/{share}/{n}" for family in FAMILIES for share in UNSOLVABLE for n in ATTEMPTS
        ],
        "differences": [f"{rho}/{n}" for rho in TOGETHER for n in (5, 20)],
        "held out": [f"{name}/{n}" for name in HELD_OUT for n in ATTEMPTS],
    }
    return [f"{kind}/{turn}" for turn in range(studies) for kind in kinds[part]]


if __name__ == "__main__":
    sys.exit(main())
