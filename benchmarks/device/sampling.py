"""Effective draws per second of the joint model's adjusted accuracies, ours beside others'.

Every row runs in a process of its own, one after the other, on the CPU: ours by `fit` with its
defaults (once more on a GPU where JAX finds one) and by its certified Laplace, three times each;
PyMC with nutpie (Numba), the same collapsed model and priors; NumPyro's NUTS as it comes on the
cells with `gammaln` from the prior means, and on the textbook's model of images in 32 bits with
Dirichlet weights and no start. NumPyro's two are stopped after a limit of seconds of sampling,
between draws. Then the command `bayesrep fit` on the same study from its folder to its posterior's
file, with nothing compiled before and once more.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import bayesrep
from bayesrep import Study, SufficientStatistics
from bayesrep.files.netcdf import Group, Variable
from bayesrep.inference.device import find_devices
from benchmarks._requirements import say
from benchmarks.device.cases import OPTIONS, Sizes

CHAINS, WARMUP, DRAWS = 4, 500, 500  # of others; ours as by default, with a warm-up of 250
SEEDS = 3  # runs of PyMC
TEXTBOOK = 2, 50, 50  # chains, warm-up and draws of the textbook on images
NAMES = {
    "ours": "bayesrep, NUTS",
    "gpu": "bayesrep, NUTS, on the GPU",
    "laplace": "bayesrep, Laplace, certified",
    "pymc": "PyMC, nutpie (Numba)",
    "pymc-low-rank": "PyMC, nutpie, low-rank mass matrix",
    "cells": "NumPyro's NUTS, cells with gammaln, 64 bits",
    "textbook": "NumPyro's NUTS, textbook on images, 32 bits",
}

OURS = ("ours", "laplace")
"""Rows that run three times, the others once."""
OURS_METHODS = ("nuts", "laplace")
SAMPLING = ("looking around", "sampling")
"""Stages of ``fit`` that draw, warm-up and the search for where the mass is among them."""


def diagnosed(draws: Any) -> dict[str, Any]:
    """Convergence, means and sds of adjusted accuracies [chain, draw, classifier]."""
    from bayesrep.posterior.verdict import diagnostics

    values = np.asarray(draws, dtype=float)
    facts = {
        "chains": values.shape[0],
        "draws": values.shape[1],
        "mean": values.mean(axis=(0, 1)).tolist() if values.size else None,
        "sd": values.std(axis=(0, 1)).tolist() if values.size else None,
        "rhat": None,
        "ess": None,
    }
    if values.shape[1] < 4:
        return facts
    names = ("chain", "draw", "classifier")
    checks = diagnostics(Group({"adjusted_accuracy": Variable(names, values)}, {}, {}))
    rhat = checks.rhat["adjusted_accuracy"].values
    return facts | {
        "rhat": float(np.nanmax(rhat)) if np.isfinite(rhat).any() else None,  # weighted draws
        "ess": float(np.nanmin(checks.ess_bulk["adjusted_accuracy"].values)),
    }


def run_ours(device: str, **arguments: Any) -> Callable[[Study, float], dict[str, Any]]:
    """A fit from nothing, by its stages; then another in the same process."""

    def run(study: Study, _: float) -> dict[str, Any]:
        if device not in find_devices():
            return {"missing": f"JAX finds no {device.upper()} here"}
        posterior = quiet_fit(study, device=device, **arguments)
        begin = time.perf_counter()
        quiet_fit(study, seed=1, device=device, **arguments)
        second = time.perf_counter() - begin
        facts, made = posterior["posterior"].attrs, posterior["sample_stats"]
        stages = json.loads(facts["seconds"])
        sampling = sum(stages.get(name, 0.0) for name in SAMPLING)
        found = diagnosed(posterior["posterior"]["adjusted_accuracy"].values)
        if "ess" in facts:  # of the weights: draws of equal weight repeat what weighs much
            found["ess"] = min(found["ess"], float(facts["ess"]))
            found["pareto_k"] = float(facts["pareto_k"])
        return {
            **found,
            "converged": bool(facts["converged"]),
            "verdict": facts["verdict"],
            "divergences": int(made["diverging"].sum()) if "diverging" in made else 0,
            "steps": int(made["num_steps"].sum()) if "num_steps" in made else None,
            "sampling_s": sampling,
            "compile_s": sum(stages.values()) - sampling,
            "stages": stages,
            "second_fit_s": second,
        }

    return run


def quiet_fit(study: Study, **arguments: Any) -> Any:
    """A fit as by default; its verdict is in the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bayesrep.ConvergenceWarning)
        return bayesrep.fit(study, **{"method": "nuts", "progress": False, **arguments})


def run_pymc(low_rank: bool) -> Callable[[Study, float], dict[str, Any]]:  # noqa: FBT001
    """PyMC's model, compiled by nutpie through Numba, with nutpie's own settings.

    Of ``SEEDS`` runs the one with the median ESS: some of them have a chain that stays behind.
    """

    def run(study: Study, _: float) -> dict[str, Any]:
        try:
            import nutpie
        except ImportError as reason:
            return {"missing": f"{reason}; it is in the extra 'bench'"}
        from benchmarks import _textbook_models as models

        data = models.on_cells(SufficientStatistics.from_study(study))
        begin = time.perf_counter()
        model = models.pymc_model(data, OPTIONS)
        ready = nutpie.compile_pymc_model(model, backend="numba")
        compiling = time.perf_counter() - begin
        runs: list[dict[str, Any]] = []
        for seed in range(SEEDS):
            begin = time.perf_counter()
            trace = nutpie.sample(
                ready,
                draws=DRAWS,
                tune=WARMUP,
                chains=CHAINS,
                seed=seed,
                progress_bar=False,
                low_rank_modified_mass_matrix=low_rank,
            )
            sampling = time.perf_counter() - begin
            runs.append(
                {
                    **diagnosed(trace["posterior"]["adjusted_accuracy"].values),
                    "divergences": int(trace["sample_stats"]["diverging"].sum()),
                    "steps": int(trace["sample_stats"]["n_steps"].sum()),
                    "sampling_s": sampling,
                    "compile_s": compiling,
                }
            )
        by_ess = sorted(runs, key=lambda one: one["ess"])
        return {**by_ess[SEEDS // 2], "all_ess": [one["ess"] for one in runs]}

    return run


def run_cells(study: Study, limit: float) -> dict[str, Any]:
    """NumPyro's NUTS as it comes, on cells with gammaln, from the prior means."""
    import jax

    from bayesrep.inference.problem import pose
    from benchmarks import _textbook_models as models

    statistics = SufficientStatistics.from_study(study)
    with jax.enable_x64(new_val=True):
        problem = pose(statistics, model="joint", options={})
        start = problem.model.start(problem.data(), problem.options)
    return drive(
        lambda data: models.cells_with_gammaln(data, OPTIONS),
        models.on_cells(statistics),
        (CHAINS, WARMUP, DRAWS),
        limit,
        bits=64,
        start=start,
    )


def run_textbook(study: Study, limit: float) -> dict[str, Any]:
    """NumPyro's NUTS as it comes, on images, with NumPyro's own start."""
    from benchmarks import _textbook_models as models

    return drive(
        lambda data: models.textbook(data, OPTIONS),
        models.on_images(study),
        TEXTBOOK,
        limit,
        bits=32,
    )


def drive(
    model: Callable[[Any], None],
    data: Any,
    lengths: tuple[int, int, int],
    limit: float,
    *,
    bits: int,
    start: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Sample with NumPyro's ``NUTS``, draw by draw in threads, until done or out of time.

    ``MCMC`` cannot be stopped in between; its draws are the same transitions of the same kernel.
    """
    import jax
    import jax.numpy as jnp
    from numpyro.infer import NUTS, init_to_uniform, init_to_value

    chains, warmup, draws = lengths
    begin = time.perf_counter()
    with jax.enable_x64(new_val=bits == 64):
        data = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=f"float{bits}"), data)
        strategy = init_to_uniform() if start is None else init_to_value(values=dict(start))
        kernel = NUTS(model, init_strategy=strategy)
        states = [
            kernel.init(key, warmup, None, (data,), {})
            for key in jax.random.split(jax.random.key(0), chains)
        ]
        step = jax.jit(lambda state, data: kernel.sample(state, (data,), {}))
        ready = step.lower(states[0], data).compile()

        def accuracies(z: Any, data: Any) -> Any:
            return kernel.postprocess_fn((data,), {})(z)["adjusted_accuracy"]

        report = jax.jit(accuracies).lower(states[0].z, data).compile()
    compiling = time.perf_counter() - begin
    begin = time.perf_counter()

    def chain(state: Any) -> tuple[list[Any], int, int, int]:
        kept: list[Any] = []
        made = steps = divergences = 0
        with jax.enable_x64(new_val=bits == 64):  # JAX keeps this setting per thread
            while made < warmup + draws and time.perf_counter() - begin < limit:
                state = ready(state, data)
                steps += int(state.num_steps)
                made += 1
                if made > warmup:
                    kept.append(np.asarray(report(state.z, data)))
                    divergences += int(state.diverging)
        return kept, made, steps, divergences

    with ThreadPoolExecutor(min(chains, os.cpu_count() or 1)) as pool:
        kept, made, steps, divergences = zip(*pool.map(chain, states), strict=True)
    sampling = time.perf_counter() - begin
    whole = min(map(len, kept))
    classifiers = data.correct.shape[1]
    values = np.array([part[:whole] for part in kept]).reshape(chains, whole, classifiers)
    return {
        **diagnosed(values),
        "divergences": sum(divergences),
        "steps": sum(steps),
        "transitions": sum(made),
        "finished": sum(made) == chains * (warmup + draws),
        "sampling_s": sampling,
        "compile_s": compiling,
    }


RUNS: Mapping[str, Callable[[Study, float], dict[str, Any]]] = {
    "ours": run_ours("cpu"),
    "gpu": run_ours("gpu"),
    "laplace": run_ours("cpu", method="laplace"),
    "pymc": run_pymc(low_rank=False),
    "pymc-low-rank": run_pymc(low_rank=True),
    "cells": run_cells,
    "textbook": run_textbook,
}


def in_own_process(name: str, sizes: Sizes) -> dict[str, Any]:
    """Run one row in a fresh interpreter and read its numbers."""
    say(f"running: {NAMES[name]}")
    command = [sys.executable, "-m", "benchmarks.device.sampling", name]
    command += [str(each) for each in (sizes.images, sizes.classifiers, sizes.limit_s)]
    # Chains run side by side; threads of BLAS within each would only get in their way.
    settings = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if name != "gpu":
        settings["JAX_PLATFORMS"] = "cpu"
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as empty:
        # Nobody finds what an earlier run compiled: all keep it on the disk.
        settings |= {"PYTENSOR_FLAGS": f"base_compiledir={empty}", "NUMBA_CACHE_DIR": empty}
        settings |= {"XDG_CACHE_HOME": empty}
        process = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, **settings}
        )
    if process.returncode:
        return {"missing": f"its process ended with status {process.returncode}"}
    facts = json.loads(process.stdout.splitlines()[-1])
    return {**facts, "process_s": time.perf_counter() - begin}


def whole_processes(sizes: Sizes, method: str) -> dict[str, dict[str, float]]:
    """Seconds of ``bayesrep fit`` by its stages, with nothing compiled before and once more."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        study, posterior = Path(place) / "study", Path(place) / "posterior.nc"
        settings = {"JAX_PLATFORMS": "cpu", "XDG_CACHE_HOME": str(Path(place) / "programs")}
        program = [sys.executable, "-m", "bayesrep"]
        bayesrep.simulate_study(images=sizes.images, classifiers=sizes.classifiers).write(study)
        for name in ("cold", "cached"):
            say(f"running: bayesrep fit --method {method}, {name}")
            command = [*program, "fit", str(study), "--out", str(posterior), "--method", method]
            begin = time.perf_counter()
            process = subprocess.run(
                [*command, "--force", "--quiet", "--json"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, **settings},
            )
            whole = time.perf_counter() - begin
            found[name] = {"whole": whole, **json.loads(process.stdout)["seconds"]}
    return found


def rates(row: Mapping[str, Any]) -> tuple[float, float]:
    """Effective draws per second of sampling, and with compilation.

    A chain that was stopped in its warm-up has none. It is credited with a bound from above, all
    its transitions as if each were an independent draw.
    """
    ess = row["transitions"] if row["ess"] is None else row["ess"]
    return ess / row["sampling_s"], ess / (row["sampling_s"] + row["compile_s"])


def middle_run(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The one of several runs whose rate of sampling is the median; one that is missing if any."""
    missing = [row for row in runs if "missing" in row]
    return missing[0] if missing else sorted(runs, key=lambda row: rates(row)[0])[len(runs) // 2]


def converged(row: Mapping[str, Any]) -> bool:
    """Whether draws are what they should be: by our verdict, or because chains ended and agree."""
    if "converged" in row:
        return row["converged"]
    return row.get("finished", True) and row["rhat"] is not None and row["rhat"] <= 1.01


def largest_difference(row: Mapping[str, Any], ours: Mapping[str, Any]) -> float | None:
    """Between means of adjusted accuracies, in our posterior sds."""
    if row["mean"] is None:
        return None
    return float(np.max(np.abs(np.subtract(row["mean"], ours["mean"])) / np.asarray(ours["sd"])))


def describe_row(name: str, row: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """A row for the table, its rates and means beside ours."""
    if "missing" in row:
        return {"what": NAMES[name], "error": row["missing"]}
    rate, whole = rates(row)
    our_rate, our_whole = rates(ours)
    return {
        "what": NAMES[name],
        **{key: value for key, value in row.items() if key not in ("mean", "sd")},
        "ess_per_s": rate,
        "ess_per_s_whole": whole,
        "ratio": our_rate / rate,
        "ratio_whole": our_whole / whole,
        "differs_sd": largest_difference(row, ours),
        "converged": converged(row),
    }


def compare_samplers(sizes: Sizes) -> dict[str, Any]:
    """Rates, differences and convergence of every way to sample; stages of the command."""
    # What else a machine does comes and goes: ours runs before, between and after the others.
    made: dict[str, list[dict[str, Any]]] = {name: [] for name in RUNS}
    for name in (*OURS, "gpu", "pymc", "pymc-low-rank", *OURS, "cells", "textbook", *OURS):
        made[name].append(in_own_process(name, sizes))
    middle = {name: middle_run(runs) for name, runs in made.items()}
    ours = middle["ours"]
    if "missing" in ours:
        raise RuntimeError(ours["missing"])
    rows = [describe_row(name, row, ours) for name, row in middle.items()]
    stages = {
        f"{method}, {name}": seconds
        for method in OURS_METHODS
        for name, seconds in whole_processes(sizes, method).items()
    }
    return {"rows": rows, "stages": stages}


def main() -> None:
    """Print one row's numbers as JSON: its name, images, classifiers and limit are the words."""
    name, images, classifiers, limit = sys.argv[1:]
    study = bayesrep.simulate_study(images=int(images), classifiers=int(classifiers))
    print(json.dumps(RUNS[name](study, float(limit))))


if __name__ == "__main__":
    main()
