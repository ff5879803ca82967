"""What the start and the number of rounds of EM do to mixtures and adjusted accuracies.

    python -m experiments.em_starts [--seeds 5]

The published code follows a random start of a mixture for 200 rounds of EM, five times, and keeps
the fit with the largest likelihood of images in their components, in which the mixing weights have
no part. Here starts like those are followed for 10 to 5,000 rounds and then by Newton's method,
beside the starts of `bayesrep.estimators.mixtures`. The adjusted accuracies that follow from every
fit differ by nothing else: the curves, their loss and the integrals are the same.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.estimators import EMSpline
from bayesrep.estimators.mixtures import CellTable, complete_cells, fit_mixtures
from bayesrep.report.table_format import columns, percent
from experiments.mixture_ends import (
    Ends,
    adjusted_accuracies,
    after_rounds,
    ends_of,
    join,
    published_score,
    published_starts,
)
from experiments.papers.helpers import shades
from experiments.results import save
from experiments.studies import Chosen, simulated
from experiments.style import Color, panels

Floats = NDArray[np.float64]

COMPONENTS = 3
STARTS = 100
ROUNDS = (10, 50, 200, 1000, 5000)
PUBLISHED = 200  # rounds
REACHED = 0.01  # nats below the best optimum within which a fit counts as there
FLOOR = 1e-3  # nats; less is drawn here
DEFAULT = "10 starts + Newton"
STRATEGIES = {
    "published start": Color.RED,
    "best of 5, as published": Color.YELLOW,
    "10 starts": Color.GREEN,
    "1 start + Newton": Color.PURPLE,
    DEFAULT: Color.BLUE,
}


def of_study(chosen: Chosen, seed: int, starts: int = STARTS) -> dict[str, Any]:
    """Nats short of the best optimum after rounds and by strategy, and what that changes."""
    table = complete_cells(chosen.all_cells)
    after = after_rounds(table, published_starts(starts, COMPONENTS, seed), ROUNDS)
    defaults, plain = (
        [
            fit_mixtures(table, components=COMPONENTS, starts=10, seed=s, newton=newton)
            for s in range(starts // 10)
        ]
        for newton in (True, False)
    )
    published, newton = after[str(PUBLISHED)], ends_of(defaults)
    picked = (
        published,
        published.best_of(5, published_score(published, table)),
        ends_of(plain).best_of(10),
        newton,
        newton.best_of(10),
    )
    everything = join([*after.values(), ends_of(plain), newton])
    best = everything.best_of(everything.heights.shape[1])
    fitted = dict(zip(STRATEGIES, picked, strict=True))
    return {
        "best": best.heights[:, 0].tolist(),
        "after": {name: (best.heights - e.heights).round(5).tolist() for name, e in after.items()},
        "strategies": changes(fitted, best, table, chosen.truth),
        "converged": [bool(fit.converged.all()) for fit in defaults],
    }


def changes(
    fitted: Mapping[str, Ends], best: Ends, table: CellTable, truth: Floats
) -> dict[str, Any]:
    """Of every fit: nats short, change of adjusted accuracies from the best's, mean error."""
    adjusted = adjusted_accuracies(
        join([best, *fitted.values()]), table, EMSpline(components=COMPONENTS)
    )
    ends = np.cumsum([1, *(part.heights.shape[1] for part in fitted.values())])
    return {
        name: {
            "short": (best.heights - fitted[name].heights).round(5).tolist(),
            "mean_change": (own - adjusted[0]).mean(axis=1).round(6).tolist(),
            "largest_change": np.abs(own - adjusted[0]).max(axis=1).round(6).tolist(),
            "mean_error": (own - truth).mean(axis=1).round(6).tolist(),
        }
        for name, own in zip(fitted, np.split(adjusted, ends)[1:-1], strict=True)
    }


def draw(found: dict[str, Any]) -> Any:
    """Share of starts within so many nats, by rounds; change of the mean accuracy by nats."""
    figure, (share, change) = panels(2)
    names = [*map(str, ROUNDS), "Newton"]
    for name, color in zip(names, [*shades(len(ROUNDS)), Color.RED], strict=True):
        short = np.sort(np.concatenate([np.ravel(s["after"][name]) for s in found["studies"]]))
        height = 100 * np.arange(1, len(short) + 1) / len(short)
        label = f"{int(name):,} rounds" if name.isdigit() else "then Newton"
        share.step(np.maximum(short, FLOOR), height, where="post", color=color, label=label)
    share.set_ylabel("share of single starts (%)")
    share.set_ylim(0, 101)
    share.set_title("(a) mixtures, starts as published", loc="left", fontsize=10)
    share.legend(frameon=False, loc="lower right", fontsize=9)
    for name, color in STRATEGIES.items():
        parts = [study["strategies"][name] for study in found["studies"]]
        short = np.concatenate([np.sum(part["short"], axis=0) for part in parts])
        moved = 100 * np.concatenate([part["mean_change"] for part in parts])
        style = {"color": color, "label": name, "ms": 7 if name == DEFAULT else 3.5}
        change.plot(np.maximum(short, FLOOR), moved, "o", alpha=0.7, mew=0, **style)
    change.set_ylabel("change of mean adjusted accuracy (points)")
    change.set_title("(b) answers, against the best optimum's", loc="left", fontsize=10)
    change.legend(frameon=False, loc="lower left", fontsize=9)
    for axes, ending in ((share, "a data set"), (change, "both data sets together")):
        axes.set(xscale="log", xlabel=f"nats short of the best optimum, {ending}")
    return figure


def table(found: dict[str, Any]) -> str:
    """Nats short by rounds; nats short and changed accuracies by strategy."""
    lines = [
        [name, *_nats(np.ravel([study["after"][name] for study in found["studies"]]))]
        for name in [*map(str, ROUNDS), "Newton"]
    ]
    rows: list[list[str]] = []
    for name in STRATEGIES:
        parts = [study["strategies"][name] for study in found["studies"]]
        short = np.concatenate([part["short"] for part in parts], axis=1)
        moved, largest, error = (
            np.concatenate([part[key] for part in parts])
            for key in ("mean_change", "largest_change", "mean_error")
        )
        values = (np.abs(moved).mean(), np.abs(moved).max(), largest.max())
        cells = [percent(float(value), 2) for value in (*values, np.sqrt((error**2).mean()))]
        both = percent(float((short < REACHED).all(axis=0).mean()), 0)
        rows.append([name, str(short.shape[1]), *_nats(short.ravel())[:3], both, *cells])
    nats = ["median", "90 %", "worst"]
    second = ["fit", "fits", *nats, "both, %", "change", "largest", "classifier", "error"]
    return columns(["rounds", *nats, "reached, %"], lines) + "\n\n" + columns(second, rows)


def _nats(short: Floats) -> list[str]:
    reached = percent(float((short < REACHED).mean()), 0)
    # Rounding puts some of those that reached the best a trifle above it.
    values = np.maximum(np.percentile(short, [50, 90, 100]), 0)
    return [*(f"{value:.3f}" for value in values), reached]


def remarks(found: dict[str, Any]) -> str:
    """How to read the tables, and whether the default holds."""
    settled = np.concatenate([study["converged"] for study in found["studies"]])
    parts = [study["strategies"][DEFAULT]["short"] for study in found["studies"]]
    reached = (np.concatenate(parts, axis=1) < REACHED).all(axis=0)
    return (
        f"The default, {DEFAULT}, reaches the best optimum in {reached.sum()} of {len(reached)} "
        f"fits and calls itself converged in {settled.sum()} of {len(settled)}."
        f"\n\n{len(found['studies'])} simulated studies, {COMPONENTS} components. The best "
        "optimum is the highest likelihood that any climb here found; a fit has reached it within "
        f"{REACHED} nats. First table: single starts as published, after so many rounds of EM and "
        "after Newton's method behind the last; nats short of the best optimum, both data sets "
        f"pooled. Second table: without Newton, {PUBLISHED} rounds; nats as above; then, in points "
        "of accuracy against the answer of the best optimum, the mean size and the largest of the "
        "change of the mean over classifiers, and the largest change of one classifier. The last "
        "column is the root mean square over fits of the mean error against the truth: it holds "
        "the sampling noise of each study's images, and a higher likelihood need not lessen it. "
        "The published code's M-step is L-BFGS-B; here it is two Newton steps. Starts whose "
        "components are equal hardly move at first: whole numbers for a and b make that possible."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Make its part of docs/results/em.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.em_starts", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="simulated studies")
    arguments = parser.parse_args(argv)
    command = f"{parser.prog} --seeds {arguments.seeds}"
    studies: list[dict[str, Any]] = []
    for seed in range(arguments.seeds):
        studies.append(of_study(simulated(seed, command), seed))
        print(f"study {seed} done", file=sys.stderr)
    found = {"starts": STARTS, "studies": studies}
    text = table(found)
    print(text)
    save("em-starts", command, found, text, draw(found), remarks(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
