"""Which options of EM + spline serve best, by size of the study.

    python -m experiments.em_options [--seeds 16]

Simulated studies of four sizes, outside the family that is fitted. For two and three components,
the paper's curve, the binomial loss and the binomial loss with bounds that hold everywhere, and
mixtures followed to the optimum or left after 200 rounds of EM: the error of the mean adjusted
accuracy over ten classifiers. It contains the sampling noise of the study's images, the same for
every option; naive and jackknife stand beside.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bayesrep.estimators import EMSpline, Jackknife, Naive
from bayesrep.estimators.em_spline import fit_curves_given
from bayesrep.estimators.mixtures import complete_cells, fit_mixtures
from bayesrep.report.table_format import columns, percent
from experiments.results import recorded, save
from experiments.studies import Chosen, simulated
from experiments.style import Color, panels

SIZES = ((1_500, 12), (1_500, 36), (10_000, 12), (10_000, 36))
COMPONENTS = (2, 3)
CURVES = {
    "least-squares": EMSpline(),
    "binomial": EMSpline(loss="binomial"),
    "binomial everywhere": EMSpline(loss="binomial", bounds="everywhere"),
}
CLASSIFIERS = 10


def errors(chosen: Chosen) -> Iterator[tuple[str, float]]:
    """Yield the error of the mean adjusted accuracy by every method, in its own name."""
    whole, truth = chosen.all_cells, chosen.truth.mean()
    for estimator in (Naive(), Jackknife()):
        yield estimator.name, float(estimator(whole).value[0].mean() - truth)
    table = complete_cells(whole)
    for components in COMPONENTS:
        for newton in (False, True):
            fit = fit_mixtures(table, components=components, newton=newton)
            for curve, options in CURVES.items():
                adjusted, _ = fit_curves_given(options, fit, table)
                name = f"K = {components}, {curve}, {'optimum' if newton else '200 rounds'}"
                yield name, float(adjusted[0].mean() - truth)


def numbers(
    seeds: Sequence[int], sizes: Sequence[tuple[int, int]] = SIZES, command: str = ""
) -> dict[str, Any]:
    """Errors by size of the study and method, one for each seed."""
    found: list[dict[str, Any]] = []
    with recorded() as said:
        for images, annotators in sizes:
            by: dict[str, list[float]] = {}
            for seed in seeds:
                shape = {"images": images, "annotators": annotators, "classifiers": CLASSIFIERS}
                for name, error in errors(simulated(seed, command, **shape)):
                    by.setdefault(name, []).append(error)
            found.append({"images": images, "annotators": annotators, "errors": by})
            print(f"{images} images, {annotators} annotators: done", file=sys.stderr)
    return {"seeds": list(seeds), "sizes": found, "warnings": said}


def rms(values: Sequence[float]) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


def draw(found: dict[str, Any]) -> Any:
    """Root mean square error by size, a line of points for each method."""
    figure, (axes,) = panels(1)
    styles = {
        "least-squares": Color.PURPLE,
        "everywhere": Color.BLUE,
        "binomial": Color.RED,
        "naive": Color.YELLOW,
        "jackknife": Color.GREEN,
    }
    places = np.arange(len(found["sizes"]))
    for name in found["sizes"][0]["errors"]:
        if "200 rounds" in name:
            continue
        color = next(color for word, color in styles.items() if word in name)
        y = [100 * rms(size["errors"][name]) for size in found["sizes"]]
        dashes = "--" if "K = 3" in name else "-"
        axes.plot(places, y, dashes, marker="o", ms=4, color=color, label=name.split(", opt")[0])
    labels = [f"{s['images']:,} images\n{s['annotators']} annotators" for s in found["sizes"]]
    axes.set_xticks(places, labels)
    axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("rms error of the mean adjusted accuracy (points)")
    axes.legend(frameon=False, loc="upper right", ncols=2, fontsize=9)
    return figure


def table(found: dict[str, Any]) -> str:
    """Mean, root mean square and largest error by size and method, in points."""
    parts: list[str] = []
    for size in found["sizes"]:
        rows = [
            [
                name,
                f"{100 * np.mean(values):+.2f}",
                percent(rms(values), 2),
                percent(float(np.abs(values).max()), 2),
            ]
            for name, values in size["errors"].items()
        ]
        title = f"{size['images']:,} + {size['images']:,} images, {size['annotators']} annotators"
        parts.append(f"{title}\n{columns(['method', 'mean error', 'rms', 'largest'], rows)}")
    return "\n\n".join(parts)


def remarks(found: dict[str, Any]) -> str:
    """Which option is best where."""
    best = [
        f"{min(size['errors'], key=lambda name: rms(size['errors'][name]))} "
        f"({size['images']:,} images, {size['annotators']} annotators)"
        for size in found["sizes"]
    ]
    return (
        f"Errors in points over {len(found['seeds'])} studies of each size. Smallest root mean "
        f"square error: {'; '.join(best)}. The binomial loss compares answers within each count, "
        "so that a mixture that does not fit the counts harms it less; bounds that hold everywhere "
        "leave a curve less room to follow noise; where the counts say little, the most likely "
        "mixture of more components shrinks some of them to points."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Make its part of docs/results/em.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.em_options", description=__doc__)
    parser.add_argument("--seeds", type=int, default=16, help="studies of each size")
    arguments = parser.parse_args(argv)
    command = f"{parser.prog} --seeds {arguments.seeds}"
    found = numbers(range(arguments.seeds), command=command)
    text = table(found)
    print(text)
    save("em-options", command, found, text, draw(found), remarks(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
