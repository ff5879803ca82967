"""Measure a device's limits: copying, multiplying, being called, turning in a loop."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.device.timing import (
    CompiledJob,
    Job,
    Outcome,
    compile_together,
    error_text,
    least_seconds,
)

N_TURNS = 1_000
CPU_SIZES, OTHER_SIZES = (1_024, 2**25), (4_096, 2**28)
"""Rows of the matrices that are multiplied, and numbers that are copied."""


def roofline(devices: Mapping[str, Any]) -> dict[str, Any]:
    """Bandwidth in bytes a second, products in operations a second, the rest in microseconds."""
    jobs = {
        (name, what): job for name, device in devices.items() for what, job in _jobs(device).items()
    }
    compiled = compile_together(jobs)
    return {"rows": [{"device": name, **_measure(compiled, name)} for name in devices]}


def _jobs(device: Any) -> dict[str, Job]:
    rows, numbers = CPU_SIZES if device.platform == "cpu" else OTHER_SIZES

    def product(a: Any) -> Any:
        return a @ a

    def make_ones(*shape: int) -> Any:
        return lambda: (np.ones(shape),)

    return {
        "float64": Job(product, make_ones(rows, rows), device),
        "float32": Job(product, make_ones(rows, rows), device, 32),
        "copy": Job(lambda a: a + 1, make_ones(numbers), device, 32),
        "empty": Job(lambda a: a + 1, make_ones(8), device),
        "known": Job(_static_loop, make_ones(64), device),
        "waits": Job(_dynamic_loop, make_ones(64), device),
    }


def _turn(a: Any) -> Any:
    """A little work that cannot be left out."""
    return jnp.sin(jnp.roll(a, 1)) + 1


def _static_loop(a: Any) -> Any:
    return jax.lax.fori_loop(0, N_TURNS, lambda _, matrix: _turn(matrix), a)


def _dynamic_loop(a: Any) -> Any:
    """Turn a loop whose length is part of the data."""

    def onward(carry: Any) -> Any:
        return carry[0] < carry[2]

    def turn(carry: Any) -> Any:
        return carry[0] + 1, _turn(carry[1]), carry[2]

    return jax.lax.while_loop(onward, turn, (0.0, a, N_TURNS * a[0]))[1]


def _measure(compiled: Mapping[tuple[str, str], Outcome], name: str) -> dict[str, Any]:
    rates: dict[str, Any] = {}
    errors: list[str] = []
    for what, scale, key in (
        ("copy", "bytes", "bytes_per_s"),
        ("float64", "flops", "float64_per_s"),
        ("float32", "flops", "float32_per_s"),
        ("empty", "us", "call_us"),
        ("known", "turn", "turn_known_us"),
        ("waits", "turn", "turn_waits_us"),
    ):
        outcome = compiled[name, what]
        try:
            if isinstance(outcome, Exception):
                raise outcome
            took = least_seconds(outcome)
        except Exception as error:
            errors.append(f"{what}: {error_text(error)}")
            continue
        amounts = {"us": 1e6 * took, "turn": 1e6 * took / N_TURNS, **_rates(outcome, took)}
        rates[key] = amounts[scale]
    return rates | ({"error": "; ".join(errors)} if errors else {})


def _rates(outcome: CompiledJob, took: float) -> dict[str, float]:
    (a,) = outcome.arguments
    rows = a.shape[0]
    return {"bytes": 2 * a.nbytes / took, "flops": 2 * rows**3 / took}


def bound_us(row: Mapping[str, Any], device: Mapping[str, Any]) -> float | None:
    """Least microseconds of a gradient: for its bytes and its operations at the rates measured."""
    rate = device.get("float64_per_s" if row.get("bits") == 64 else "float32_per_s")
    parts = [
        row[amount] / by
        for amount, by in (("bytes", device.get("bytes_per_s")), ("flops", rate))
        if row.get(amount) and by
    ]
    return 1e6 * max(parts) if parts else None
