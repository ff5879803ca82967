"""What one evaluation of the joint model costs, and that images do not count.

    python -m benchmarks.likelihood [--large 10000000]

(a) log density with gradient at 136 classifiers, 10,000 + 10,000 images, median of nine repeats
    of 300 calls inside one compiled loop, as the sampler makes them, and called from Python;
(b) whole fits of studies of 10^4 and of ``--large`` images per data set in one process, after a
    first fit that compiles, alternating, median of three. The large study is summed from shards.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import bayesrep
from bayesrep import SufficientStatistics
from bayesrep.inference.density import build_density
from bayesrep.models import MODELS
from bayesrep.report.text import columns
from experiments.results import save


def median_seconds(call: Callable[[], Any], repeats: int) -> float:
    """Median wall time of a call."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def gradient_cost(cells: SufficientStatistics) -> dict[str, float]:
    """Milliseconds of one log density with gradient, inside a compiled loop and from Python."""
    model = MODELS["joint"]
    options = model.options()
    with jax.enable_x64(new_val=True):
        data = model.data(cells)
        density = build_density(lambda d: model.function(d, options), data)
        position = density.to_position(model.start(data, options))
        both = jax.value_and_grad(density.potential)

        @jax.jit
        def loop(position: Any, data: Any) -> Any:
            def step(_: Any, at: Any) -> Any:
                gradient = both(at, data)[1]
                return jax.tree.map(lambda x, g: x - 1e-12 * g, at, gradient)

            return jax.lax.fori_loop(0, 300, step, position)

        single = jax.jit(both)
        for warm in (loop, single):
            jax.block_until_ready(warm(position, data))
        looped = median_seconds(lambda: jax.block_until_ready(loop(position, data)), 9) / 300
        called = median_seconds(lambda: jax.block_until_ready(single(position, data)), 300)
    return {"in_loop_ms": 1e3 * looped, "called_ms": 1e3 * called}


def shards(images: int, size: int = 100_000) -> SufficientStatistics:
    """Statistics of a simulated study of any size, summed from shards."""
    count = max(1, images // size)
    total: SufficientStatistics | None = None
    for seed in range(count):
        study = bayesrep.simulate_study(seed=seed, images=min(images, size), classifiers=20)
        part = SufficientStatistics.from_study(study)
        total = part if total is None else total + part
    if total is None:
        raise ValueError("a study needs images")
    return total


def fit_cost(large: int) -> dict[str, float]:
    """Seconds of a whole fit at 10^4 and at ``large`` images, on the same cells."""
    studies = {"small": shards(10_000), "large": shards(large)}
    studies = {name: on_all_cells(study) for name, study in studies.items()}
    times: dict[str, list[float]] = {name: [] for name in studies}
    for turn in range(4):
        for name, study in studies.items():
            begin = time.perf_counter()
            bayesrep.fit(study, progress=False, draws=200, warmup=200)
            if turn:  # the first turn compiles
                times[name].append(time.perf_counter() - begin)
    return {f"{name}_s": statistics.median(values) for name, values in times.items()}


def on_all_cells(study: SufficientStatistics) -> SufficientStatistics:
    """The same statistics with every count 0..36 present, so that both sizes share a program."""
    cells = {}
    for role, given in study.cells.items():
        images = np.zeros(37, dtype=np.int64)
        correct = np.zeros((37, given.correct.shape[1]), dtype=np.int64)
        images[given.selected], correct[given.selected] = given.images, given.correct
        cells[role] = type(given)(np.arange(37), np.full(37, 36), images, correct)
    return SufficientStatistics(study.classifiers, cells)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and write docs/results/benchmark-likelihood.{md,json}."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likelihood", description=__doc__)
    parser.add_argument("--large", type=int, default=10_000_000)
    arguments = parser.parse_args(argv)
    gradient = gradient_cost(SufficientStatistics.from_study(bayesrep.simulate_study()))
    print(gradient, file=sys.stderr)
    fits = fit_cost(arguments.large)
    rows = [
        ["log density + gradient, in a compiled loop", f"{gradient['in_loop_ms']:.3f} ms"],
        ["log density + gradient, called from Python", f"{gradient['called_ms']:.3f} ms"],
        ["fit, 10,000 + 10,000 images, 20 classifiers", f"{fits['small_s']:.2f} s"],
        [f"fit, {arguments.large:,} + {arguments.large:,} images", f"{fits['large_s']:.2f} s"],
    ]
    text = columns(["what", "median"], rows)
    print(text)
    command = f"python -m benchmarks.likelihood --large {arguments.large}"
    save("benchmark-likelihood", command, {**gradient, **fits}, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
