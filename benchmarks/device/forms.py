"""The log density as others would write it, beside ours: equal values and gradients, and time.

A form whose compiled gradient is another function's is not timed: XLA of some releases gets the
textbook's wrong on few images.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import _textbook_models as models
from benchmarks._requirements import say
from benchmarks.device.agreement import difference
from benchmarks.device.cases import (
    OPTIONS,
    OURS,
    Case,
    Subjects,
    repeat_classifiers,
    repeated,
)
from benchmarks.device.measure import time_cases
from benchmarks.device.timing import (
    Job,
    blocking_seconds,
    compile_job,
    error_text,
    to_device,
)

LIMITS = {64: 1e-4, 32: 1e-2}
"""Of a gradient's largest difference from ours, by bits: what is further is another function's."""


def compare_forms(subjects: Subjects, devices: Mapping[str, Any]) -> dict[str, Any]:
    """Times of all forms, their differences from ours, and of one chain those not compiled."""
    sizes = subjects.sizes
    rows: list[dict[str, Any]] = []
    for name, device in devices.items():
        for case in (*sizes.alone, *sizes.forms):
            say(f"{case.form}, {case.classifiers} classifiers, {case.chains} chains, {name}")
            row = {"device": name, **vars(case)}
            try:
                row |= _differences(subjects, case, device)
                if row["gradient_difference"] <= LIMITS[case.bits]:
                    row |= time_cases(subjects, {name: device}, lambda _, one=case: [one])[0]
                    row |= _density_times(subjects, case, device) if case in sizes.alone else {}
                else:
                    apart = row["gradient_difference"]
                    row["error"] = f"not timed: its gradient differs by {apart:.1e}"
            except Exception as error:  # the others are still wanted
                row["error"] = error_text(error)
            rows.append(row)
    return {"rows": _with_ratios(rows) + _scipy_rows(subjects)}


def _differences(subjects: Subjects, case: Case, device: Any) -> dict[str, float]:
    """From ours in 64 bits on the CPU, at one position: absolute, and of gradients relative."""
    ours = subjects.place(Case(OURS, case.classifiers, 1, annotators=case.annotators))
    theirs = subjects.place(case)

    def potential(position: Any, data: Any) -> Any:
        values = ours.density.to_sites(position)
        return theirs.density.potential(theirs.density.to_position(values), data)

    def evaluate(function: Callable[..., Any], data: Any, device: Any, bits: int) -> Any:
        job = Job(jax.value_and_grad(function), lambda: (ours.start, data), device, bits)
        return jax.tree.map(np.asarray, compile_job(job)())

    wanted, slope = evaluate(ours.density.potential, ours.data, jax.devices("cpu")[0], 64)
    value, gradient = evaluate(potential, theirs.data, device, case.bits)
    apart = abs(float(value) + theirs.constant - float(wanted))
    return {"difference": apart, "gradient_difference": difference(gradient, slope)}


def _density_times(subjects: Subjects, case: Case, device: Any) -> dict[str, float]:
    """Microseconds of the density alone, and of both operation by operation."""
    place = subjects.place(case)
    job = Job(place.density.potential, lambda: (place.start, place.data), device, case.bits)
    both = jax.value_and_grad(place.density.potential)
    times = {"density_us": blocking_seconds(compile_job(job))}
    with job.settings(), jax.disable_jit():
        arguments = to_device(job)
        times["density_python_us"] = blocking_seconds(lambda: job.function(*arguments))
        times["python_us"] = blocking_seconds(lambda: both(*arguments))
    return {name: 1e6 * took for name, took in times.items()}


def _with_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Times as slow as ours of the same shape on the same device in the same precision."""
    shape = ("device", "classifiers", "chains", "bits", "annotators")
    ours = {tuple(row[s] for s in shape): row.get("us") for row in rows if row["form"] == OURS}
    for row in rows:
        if "us" in row and (one := ours.get(tuple(row[s] for s in shape))):
            row["ratio"] = row["us"] / one
    return rows


def _scipy_rows(subjects: Subjects) -> list[dict[str, Any]]:
    """SciPy's log density on cells and on images; it has no gradient."""
    case = (*subjects.sizes.alone, *subjects.sizes.forms)[0]
    ours = subjects.place(case)
    job = Job(ours.density.potential, lambda: (ours.start, ours.data), jax.devices("cpu")[0])
    wanted = -float(compile_job(job)())
    with job.settings():
        start = jax.tree.map(jnp.asarray, ours.start)
        sites = jax.tree.map(np.asarray, ours.density.to_sites(start))
    images = models.on_images(subjects.study)
    index = repeated(subjects.study, case.classifiers)
    forms = {
        "SciPy on cells": models.on_cells(repeat_classifiers(subjects.study, case.classifiers)),
        "SciPy on images": images._replace(correct=images.correct[:, index]),
    }
    rows: list[dict[str, Any]] = []
    for form, data in forms.items():
        density = partial(models.scipy_log_density, sites, data, OPTIONS)
        apart = abs(density() - models.log_choices(data) - wanted)
        took = {"density_python_us": 1e6 * blocking_seconds(density), "difference": apart}
        rows.append({"device": "cpu", "form": form, "bits": 64, **took})
    return rows
