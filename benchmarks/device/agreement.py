"""Compare a device with the CPU in 64 bits, or the CPU with finite differences."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from bayesrep.inference.laplace_marginal import Marginal
from bayesrep.inference.problem import programs
from bayesrep.numerics.settings import own_settings
from bayesrep.types import Floats
from benchmarks.device.cases import Case, Subject, Subjects
from benchmarks.device.timing import CompiledJob, Job, Outcome, error_text

MAX_DIFFERENCE = 1e-9
"""Largest difference allowed, relative to the largest entry compared."""
PLAIN_LIMIT = 1e-6
"""The same limit for a gradient compared with finite differences of its density."""
N_CHAINS = 4
DIFF_STEP = 1e-3
"""The step of the differences, along a direction of standard normal numbers."""


def compare_devices(subjects: Subjects, devices: Mapping[str, Any]) -> dict[str, Any]:
    """Compare every device with the CPU; where there is no other, the CPU with differences."""
    others = [name for name in devices if name != "cpu"]
    if not others:
        rows = [_differences(subjects, quick=quick) for quick in (False, True)]
        return _verdict(rows, PLAIN_LIMIT, "differences of the density")
    places = {"cpu": jax.devices("cpu")[0], **devices}
    jobs_by_device = {name: _jobs(subjects, device) for name, device in places.items()}
    compiled = subjects.compile_jobs(
        {(name, key): job for name, jobs in jobs_by_device.items() for key, job in jobs.items()}
    )
    rows = [
        {"what": str(key), "device": name, **_compare(compiled[name, key], compiled["cpu", key])}
        for name in others
        for key in jobs_by_device[name]
    ]
    return _verdict(rows, MAX_DIFFERENCE, "the CPU")


def _verdict(rows: list[dict[str, Any]], limit: float, against: str) -> dict[str, Any]:
    """Right only where everything could be compared and is within the limit."""
    differences = [row["difference"] for row in rows if "difference" in row]
    sound = all(each <= limit for each in differences)
    whole = "right" if len(differences) == len(rows) else "NOT KNOWN"
    return {
        "verdict": whole if sound else "WRONG",
        "against": against,
        "limit": limit,
        "rows": rows,
    }


def _jobs(subjects: Subjects, device: Any) -> dict[Case | str, Job]:
    """Build the programs to compare, by name, for a device."""
    whole, size = subjects.joint_subject(), subjects.sizes.classifiers
    with own_settings(), jax.default_device(device):
        tools = programs(whole.problem, whole.data)  # compiled as fits do it there
    cases = [Case("full", size, N_CHAINS), Case("surrogate", size, N_CHAINS)]
    few = whole.positions(N_CHAINS), whole.data
    start = whole.start, whole.data
    return {
        **{case: subjects.job(case, device) for case in cases},
        "marginal at a point": Job(
            _evaluations(whole), lambda: (whole.target[0], whole.standard(N_CHAINS)), device
        ),
        "expansion at a point": Job(tools.expand, lambda: start, device),
        "quantities of draws": Job(tools.quantities, lambda: few, device),
    }


def _evaluations(subject: Subject) -> Callable[..., Any]:
    return jax.vmap(Marginal(subject.tools.density).evaluate, (None, 0))


def _compare(one: Outcome, other: Outcome) -> dict[str, Any]:
    """The difference of two programs' results, or what went wrong."""
    try:
        results, expected = (_results(each) for each in (one, other))
    except Exception as error:
        return {"error": error_text(error)}
    compile_s = one.compile_s if isinstance(one, CompiledJob) else 0.0
    return {"difference": difference(results, expected), "compile_s": round(compile_s, 2)}


def _results(outcome: Outcome, first: Any = None) -> Any:
    """Run a program, with another first argument if given; return NumPy arrays."""
    if isinstance(outcome, Exception):
        raise outcome
    if first is None:
        return jax.tree.map(np.asarray, outcome())
    with outcome.job.settings():
        argument = jax.device_put(first, outcome.job.device)
        return jax.tree.map(np.asarray, outcome.program(argument, *outcome.arguments[1:]))


def difference(actual: Any, expected: Any) -> float:
    """The largest difference of two trees, relative to each array's largest entry.

    An entry that is finite in one of them alone is an infinite difference.
    What is kept in 32 bits may differ in its last one.
    """
    pairs = zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True)
    return max(
        (_largest_difference(np.asarray(a), np.asarray(b)) for a, b in pairs if np.size(b)),
        default=0.0,
    )


def _largest_difference(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    usable = np.isfinite(expected)
    if actual.shape != expected.shape or (np.isfinite(actual) != usable).any():
        return float("inf")
    a, b = (each[usable].astype(float) for each in (actual, expected))
    rounded = np.spacing(np.abs(b).astype(np.float32)) if expected.dtype == np.float32 else 0.0
    gap = np.maximum(np.abs(a - b) - rounded, 0.0)
    return float(gap.max(initial=0.0) / max(np.abs(b).max(initial=0.0), 1e-300))


def _differences(subjects: Subjects, *, quick: bool) -> dict[str, Any]:
    """The gradient in a direction beside differences of the density along it.

    At each level of the compiler that fits use: another level's may be wrong where one is right.
    """
    case = Case("full", subjects.sizes.classifiers, N_CHAINS)
    whole, key = subjects.joint_subject(), ("cpu", case, quick)
    job = replace(subjects.job(case, jax.devices("cpu")[0]), quick=quick)
    outcome = subjects.compile_jobs({key: job})[key]
    row = {"what": f"{case}{' (compiled quickly)' if quick else ''}", "device": "cpu"}
    random = np.random.default_rng(0)
    way = jax.tree.map(lambda x: random.standard_normal(x.shape), whole.start)
    steps = DIFF_STEP * np.array([1.0, -1.0, 2.0, -2.0])
    try:
        _, gradient = _results(outcome, _positions_along(whole.start, way, np.zeros(N_CHAINS)))
        values, _ = _results(outcome, _positions_along(whole.start, way, steps))
    except Exception as error:
        return row | {"error": error_text(error)}
    parts = zip(jax.tree.leaves(gradient), jax.tree.leaves(way), strict=True)
    slope = sum(float((g[0] * w).sum()) for g, w in parts)
    expected = float((8 * (values[0] - values[1]) - (values[2] - values[3])) / (12 * DIFF_STEP))
    return row | {"difference": abs(slope - expected) / abs(expected)}


def _positions_along(start: Any, way: Any, steps: Floats) -> Any:
    """Positions at steps in a direction, one a chain."""
    return jax.tree.map(lambda x, w: x + np.multiply.outer(steps, w), start, way)
