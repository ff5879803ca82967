"""The shared-difficulty model's gradient beside its bare matrix products, and whole fits.

    python -m benchmarks.shared_difficulty [--large 136 10000]

Every row runs in a process of its own. Small: 8 classifiers, 2,000 + 2,000 images, 36 annotators.
*Dense products* are those that the likelihood needs where logits do not add: of [images,
classifiers] with [classifiers, points × nodes] and back. *Own products* are those of our form, with
[classifiers, points + factors]. *Plain* is the likelihood as it is written, with one number for
each image and grid point, and its automatic derivative. Times are medians; ratios are of one
process. Where JAX's default device is a GPU everything is measured there, and the large fit is by
NUTS.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import bayesrep
from bayesrep.inference.problem import pose, programs
from bayesrep.models.answers import Answers, Nodes, log_answers
from bayesrep.numerics.conditional_logit import conditional_logit
from bayesrep.report.text import MISSING_TEXT, columns
from benchmarks._requirements import Requirement, requirement_numbers, requirement_text, say
from benchmarks.likelihood import median_seconds
from experiments.results import save

SMALL = (8, 2_000)
POINTS, NODES = 24, 9
"""The grid of 216 points that the small gradient and the products are measured on."""
FIT = {"chains": 2, "warmup": 300, "draws": 300}
LARGE_FIT = {"chains": 4, "warmup": 500, "draws": 500}
REPEATS = 15


def median_ms(function: Callable[..., Any], *arguments: Any) -> float:
    """Median time of a call, compiled and warm."""

    def call() -> Any:
        return jax.block_until_ready(function(*arguments))

    call()
    return 1e3 * median_seconds(call, REPEATS)


def plain(eta: Any, loadings: Any, table: Any, answers: Answers, nodes: Nodes) -> Any:
    """The likelihood with one number for each image and grid point at once."""
    spread = loadings @ nodes.difficulty.T
    logit = conditional_logit(eta, spread, nodes.weight)[:, :, None] + spread[:, None, :]
    rows = answers.rows.reshape(-1, answers.rows.shape[2])
    right, cell = rows[:, : len(eta)], rows[:, len(eta) :]
    given = (right @ logit.reshape(len(eta), -1)).reshape(len(rows), *logit.shape[1:])
    given = given - jax.nn.softplus(logit).sum(axis=0)[None]
    both = given + (cell @ table)[:, :, None] + jnp.log(nodes.weight)[None, None, :]
    return answers.images.ravel() @ jax.scipy.special.logsumexp(both, axis=(1, 2))


def gradients(classifiers: int, images: int) -> dict[str, Any]:
    """Times of the gradient of one data set's answers and of what it is measured against."""
    study = bayesrep.simulate_study(seed=1, images=images, classifiers=classifiers)
    with jax.enable_x64(new_val=True):
        options = {"degree": POINTS - 1, "nodes": NODES}
        problem = pose(study, model="shared-difficulty", options=options)
        data = problem.data()
        answers, nodes = data.answers[-1], data.nodes
        random = np.random.default_rng(0)
        cells = answers.rows.shape[2] - classifiers
        at = (
            jnp.asarray(random.normal(1.0, 1.0, (classifiers, POINTS))),
            jnp.asarray(random.normal(2.0, 0.3, (classifiers, 1))),
            jnp.asarray(np.log(random.dirichlet(np.ones(POINTS), cells))),
        )
        ours = jax.jit(jax.value_and_grad(log_answers, argnums=(0, 1, 2)))
        theirs = jax.jit(jax.value_and_grad(plain, argnums=(0, 1, 2)))
        one, other = ours(*at, answers, nodes), theirs(*at, answers, nodes)
        apart = max(
            float(jnp.abs(a - b).max() / jnp.abs(b).max())
            for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
        )
        f = answers.rows.reshape(-1, answers.rows.shape[2])
        right = jnp.asarray(np.asarray(f[:, :classifiers]))
        grid = jnp.asarray(random.normal(size=(classifiers, POINTS * NODES)))
        small = jnp.asarray(random.normal(size=(f.shape[1], POINTS + 1)))
        there, back = jax.jit(lambda a, b: a @ b), jax.jit(lambda a, b: a.T @ b)
        facts = {
            "patterns": int((np.asarray(answers.images) > 0).sum()),
            "gradient": median_ms(ours, *at, answers, nodes),
            "plain": median_ms(theirs, *at, answers, nodes),
            "dense products": median_ms(there, right, grid)
            + median_ms(back, right, there(right, grid)),
            "own products": median_ms(there, f, small) + median_ms(back, f, there(f, small)),
            "largest difference": apart,
        }
        problem = pose(study, model="shared-difficulty", options={})
        data = problem.data()
        tools = programs(problem, data)
        start = tools.start(problem.model.start(data, problem.options))
        whole = jax.jit(jax.value_and_grad(tools.density.potential))
        return facts | {
            "whole model": median_ms(whole, start, data),
            "nodes": len(data.nodes.weight),
            "device": jax.devices()[0].device_kind,
            "memory": _memory(),
        }


def _memory() -> float:
    """Largest memory of this process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def fits(classifiers: int, images: int, *, large: bool) -> dict[str, Any]:
    """A fit from nothing: NUTS, or for the large study on a CPU the normal at the mode."""
    study = bayesrep.simulate_study(seed=1, images=images, classifiers=classifiers)
    gpu = jax.default_backend() != "cpu"
    method = "laplace" if large and not gpu else "nuts"
    how: dict[str, Any] = LARGE_FIT if large else FIT
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = bayesrep.fit(
            study, model="shared-difficulty", method=method, progress=False, **how
        )
    seconds = time.perf_counter() - begin
    table = bayesrep.summarize(study, posterior, allow_unconverged=True)
    facts, stats = posterior.posterior.attrs, posterior.sample_stats
    weighted = "pareto_k" in facts  # draws of weights have no R-hat
    return {
        "seconds": seconds,
        "method": method,
        "least ess": float(facts["ess"] if weighted else table["ess_bulk"].min()),
        "rhat": None if weighted else float(table["rhat"].max()),
        "pareto k": float(facts["pareto_k"]) if weighted else None,
        "diverged": int(stats["diverging"].values.sum()) if "diverging" in stats else 0,
        "memory": _memory(),
        "device": facts["device"],
    }


PARTS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "gradients": gradients,
    "fit": lambda c, n: fits(c, n, large=False),
    "large": lambda c, n: fits(c, n, large=True),
}


def in_process(part: str, classifiers: int, images: int) -> dict[str, Any]:
    """One part in a process of its own."""
    say(f"{part}: {classifiers} classifiers, {images} images")
    command = [sys.executable, "-m", "benchmarks.shared_difficulty", "--part", part]
    done = subprocess.run(
        [*command, "--large", str(classifiers), str(images)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def gradient_table(found: Mapping[str, Any]) -> str:
    """One line for each size."""
    header = ["classifiers × images", "patterns", "gradient", "plain", "dense products"]
    header += ["own products", "to dense", "difference", "whole model", "nodes", "memory (GiB)"]
    rows: list[list[str]] = []
    for name, row in found.items():
        times = ("gradient", "plain", "dense products", "own products")
        rows.append(
            [
                name,
                f"{row['patterns']:,}",
                *(f"{row[key]:.2f} ms" for key in times),
                f"{row['gradient'] / row['dense products']:.2f}",
                f"{row['largest difference']:.0e}",
                f"{row['whole model']:.2f} ms",
                str(row["nodes"]),
                f"{row['memory']:.1f}",
            ]
        )
    return columns(header, rows)


def fit_table(found: Mapping[str, Any]) -> str:
    """One line for each fit."""
    header = ["fit", "method", "seconds", "least ESS", "R-hat", "Pareto k", "diverged"]
    header.append("memory (GiB)")
    rows = [
        [
            name,
            row["method"],
            f"{row['seconds']:.0f}",
            f"{row['least ess']:.0f}",
            MISSING_TEXT if row["rhat"] is None else f"{row['rhat']:.3f}",
            MISSING_TEXT if row["pareto k"] is None else f"{row['pareto k']:.2f}",
            str(row["diverged"]),
            f"{row['memory']:.1f}",
        ]
        for name, row in found.items()
    ]
    return columns(header, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and write docs/results/benchmark-shared-difficulty.{md,json}."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shared_difficulty", description=__doc__
    )
    parser.add_argument("--large", type=int, nargs=2, default=(136, 10_000))
    parser.add_argument("--part", choices=sorted(PARTS), help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.part:
        print(json.dumps(PARTS[arguments.part](*arguments.large)))
        return 0
    sizes = {f"{c} × {n:,}": (c, n) for c, n in (SMALL, tuple(arguments.large))}
    times = {name: in_process("gradients", *size) for name, size in sizes.items()}
    small, large = sizes
    made = {
        f"{small}, 2 × (300 + 300)": in_process("fit", *SMALL),
        large: in_process("large", *arguments.large),
    }
    fast, first = times[small], next(iter(made.values()))
    requirements = [
        Requirement("gradient, 8 × 2,000 × 216", fast["gradient"], "at most", 4.0, " ms"),
        Requirement("2 chains × (300 + 300)", first["seconds"], "at most", 120.0, " s"),
        Requirement(
            "large gradient to its dense products",
            times[large]["gradient"] / times[large]["dense products"],
            "at most",
            2.0,
            "",
        ),
        Requirement("memory, large fit", made[large]["memory"], "at most", 4.0, " GiB"),
    ]
    text = "\n\n".join([gradient_table(times), fit_table(made)])
    print(text)
    remarks = (
        "Times of the gradient are for the answers on one data set and a grid of 24 × 9 points; "
        "the whole model has both data sets and its default grid. Difference: the largest of value "
        "and gradients between ours and the plain form, relative. The large fit on a CPU is the "
        "normal at the mode, whose weights hold where k is below 0.7 (elsewhere `fit` goes on to "
        "NUTS); NUTS there is for a GPU, and none was at hand. "
        "Our form's own products are a small part of its gradient, so that 32 bits for them would "
        "gain little: they are not offered.\n\n" + requirement_text(requirements)
    )
    numbers = {
        "gradients": times,
        "fits": made,
        "requirements": requirement_numbers(requirements),
    }
    command = "python -m benchmarks.shared_difficulty"
    save("benchmark-shared-difficulty", command, numbers, text, None, remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
