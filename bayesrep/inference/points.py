"""Functions of one point ξ as programs of many points, on all cores or as one batch."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from bayesrep.inference.density import Density
from bayesrep.inference.device import default_platform
from bayesrep.inference.program import Program
from bayesrep.machine import cores
from bayesrep.numerics.batches import in_batches


class PointProgram(NamedTuple):
    """Compiled program of `size` points at once, and the number of cores that calls may use."""

    call: Program
    size: int
    workers: int

    def __call__(self, setting: Any, *points: Any) -> Any:
        """Evaluate points [point, ...]: trees of arrays go in, of NumPy's come out."""
        return in_batches(
            lambda *some: self.call(setting, some), points, self.size, workers=self.workers
        )


def compile_for_points(
    function: Callable[..., Any],
    density: Density,
    name: str,
    *,
    size: int = 8,  # points that a core takes at a time
    batch_size: int | None = None,  # of these in one array: larger ones do not fit the cache
) -> PointProgram:
    """Compile a function of a setting and the arrays of one point, for the default device."""
    on_cpu = default_platform() == "cpu"

    def some(setting: Any, points: Any) -> Any:
        def one(point: Any) -> Any:
            return function(setting, *point)

        if on_cpu:
            return jax.lax.map(one, points, batch_size=batch_size)
        return jax.vmap(one)(points)

    most = min(256, 2**20 // max(density.units, 1))  # 2²⁰ classifiers of all points at most
    size = size if on_cpu else max(size, most)
    return PointProgram(Program(some, name, density.identity), size, cores() if on_cpu else 1)
