"""Whether a device computes what the CPU computes in 64 bits, or the CPU what SciPy does."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from bayesrep.bench.subjects import Case, Subject, Subjects
from bayesrep.bench.timing import CompiledJob, Job, Outcome, error_text
from bayesrep.inference.laplace_marginal import Marginal
from bayesrep.inference.problem import programs
from bayesrep.numerics.settings import own_settings
from bayesrep.types import Floats

LIMIT = 1e-9
"""On the largest difference, relative to the largest entry of what is compared."""
PLAIN_LIMIT = 1e-6
"""The same where a gradient is compared with differences of its density."""
CHAINS = 4
STEP = 1e-3
"""The step of the differences, along a direction of standard normal numbers."""


def compare_devices(subjects: Subjects, devices: Mapping[str, Any]) -> dict[str, Any]:
    """Compare every device with the CPU; where there is no other, the CPU with differences."""
    others = [name for name in devices if name != "cpu"]
    if not others:
        rows = [_differences(subjects, quick=quick) for quick in (False, True)]
        return _verdict(rows, PLAIN_LIMIT, "differences of the density")
    places = {"cpu": jax.devices("cpu")[0], **devices}
    wanted = {name: _jobs(subjects, device) for name, device in places.items()}
    made = subjects.compile_jobs(
        {(name, key): job for name, jobs in wanted.items() for key, job in jobs.items()}
    )
    rows = [
        {"what": str(key), "device": name, **_compare(made[name, key], made["cpu", key])}
        for name in others
        for key in wanted[name]
    ]
    return _verdict(rows, LIMIT, "the CPU")


def _verdict(rows: list[dict[str, Any]], limit: float, against: str) -> dict[str, Any]:
    """Right only where everything could be compared and is within the limit."""
    known = [row["difference"] for row in rows if "difference" in row]
    sound = all(each <= limit for each in known)
    whole = "right" if len(known) == len(rows) else "NOT KNOWN"
    return {
        "verdict": whole if sound else "WRONG",
        "against": against,
        "limit": limit,
        "rows": rows,
    }


def _jobs(subjects: Subjects, device: Any) -> dict[Case | str, Job]:
    """What is compared, by name: its program for a device."""
    whole, size = subjects.joint_subject(), subjects.sizes.classifiers
    with own_settings(), jax.default_device(device):
        tools = programs(whole.problem, whole.data)  # compiled as fits do it there
    cases = [Case("full", size, CHAINS), Case("surrogate", size, CHAINS)]
    few = whole.positions(CHAINS), whole.data
    here = whole.start, whole.data
    return {
        **{case: subjects.job(case, device) for case in cases},
        "marginal at a point": Job(
            _evaluations(whole), lambda: (whole.target[0], whole.standard(CHAINS)), device
        ),
        "expansion at a point": Job(tools.expand, lambda: here, device),
        "quantities of draws": Job(tools.quantities, lambda: few, device),
    }


def _evaluations(subject: Subject) -> Callable[..., Any]:
    return jax.vmap(Marginal(subject.tools.density).evaluate, (None, 0))


def _compare(one: Outcome, other: Outcome) -> dict[str, Any]:
    """The difference of two programs' results, or what went wrong."""
    try:
        results, wanted = (_results(each) for each in (one, other))
    except Exception as error:
        return {"error": error_text(error)}
    compile_s = one.compile_s if isinstance(one, CompiledJob) else 0.0
    return {"difference": difference(results, wanted), "compile_s": round(compile_s, 2)}


def _results(outcome: Outcome, first: Any = None) -> Any:
    """As NumPy's arrays; of another first argument, where one is given."""
    if isinstance(outcome, Exception):
        raise outcome
    if first is None:
        return jax.tree.map(np.asarray, outcome())
    with outcome.job.settings():
        given = jax.device_put(first, outcome.job.device)
        return jax.tree.map(np.asarray, outcome.program(given, *outcome.arguments[1:]))


def difference(found: Any, wanted: Any) -> float:
    """The largest difference of two trees, relative to each array's largest entry.

    An entry that is finite in one of them alone is an infinite difference.
    What is kept in 32 bits may differ in its last one.
    """
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    return max(
        (_largest_difference(np.asarray(a), np.asarray(b)) for a, b in pairs if np.size(b)),
        default=0.0,
    )


def _largest_difference(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    usable = np.isfinite(wanted)
    if found.shape != wanted.shape or (np.isfinite(found) != usable).any():
        return float("inf")
    a, b = (each[usable].astype(float) for each in (found, wanted))
    rounded = np.spacing(np.abs(b).astype(np.float32)) if wanted.dtype == np.float32 else 0.0
    apart = np.maximum(np.abs(a - b) - rounded, 0.0)
    return float(apart.max(initial=0.0) / max(np.abs(b).max(initial=0.0), 1e-300))


def _differences(subjects: Subjects, *, quick: bool) -> dict[str, Any]:
    """The gradient in a direction beside differences of the density along it.

    At each level of the compiler that fits use: another level's may be wrong where one is right.
    """
    case = Case("full", subjects.sizes.classifiers, CHAINS)
    whole, key = subjects.joint_subject(), ("cpu", case, quick)
    job = replace(subjects.job(case, jax.devices("cpu")[0]), quick=quick)
    made = subjects.compile_jobs({key: job})[key]
    row = {"what": f"{case}{' (compiled quickly)' if quick else ''}", "device": "cpu"}
    random = np.random.default_rng(0)
    way = jax.tree.map(lambda x: random.standard_normal(x.shape), whole.start)
    steps = STEP * np.array([1.0, -1.0, 2.0, -2.0])
    try:
        _, gradient = _results(made, _positions_along(whole.start, way, np.zeros(CHAINS)))
        values, _ = _results(made, _positions_along(whole.start, way, steps))
    except Exception as error:
        return row | {"error": error_text(error)}
    parts = zip(jax.tree.leaves(gradient), jax.tree.leaves(way), strict=True)
    slope = sum(float((g[0] * w).sum()) for g, w in parts)
    wanted = float((8 * (values[0] - values[1]) - (values[2] - values[3])) / (12 * STEP))
    return row | {"difference": abs(slope - wanted) / abs(wanted)}


def _positions_along(start: Any, way: Any, steps: Floats) -> Any:
    """Positions at steps in a direction, one a chain."""
    return jax.tree.map(lambda x, w: x + np.multiply.outer(steps, w), start, way)
