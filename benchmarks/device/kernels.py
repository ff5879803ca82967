"""What the programs of a fit launch on a GPU, counted without one.

Each program of a fit of 136 classifiers is compiled for an H100 (compute capability 9.0), for which
the wheels of the extra [cuda13] or [cuda12] are enough. Counted are the kernels of its entry and
those of one turn of every loop, and the loops whose length the data decide: at each of their turns
the host waits to hear whether to go on.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
from jax.experimental import topologies

import bayesrep
from bayesrep.inference import points, problem, program
from bayesrep.inference.marginal_mode import evaluation_program
from bayesrep.inference.nested_laplace import draw_program
from bayesrep.inference.nuts import blank_target, build_sampler
from bayesrep.inference.problem import pose, programs
from bayesrep.inference.schedule import BLOCK, Schedule
from bayesrep.inference.surrogate import surrogate_potential
from benchmarks.device.hlo import read_loops

CHAINS = 4
CARD = """gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84929347584 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 }
runtime_version { major: 12 minor: 9 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A `Program` or a jitted function, and its arguments or their shapes."""


def list_calls(study: bayesrep.Study) -> Iterator[tuple[str, Call]]:
    """Programs of a fit by name, as a GPU runs them: all chains in one batch."""
    posed = pose(study, model="joint", options={})
    data = posed.data()
    tools = programs(posed, data)
    density, values = tools.density, posed.start(data)
    position = tools.start(values)
    many = jax.tree.map(lambda x: jax.ShapeDtypeStruct((CHAINS, *x.shape), x.dtype), position)
    setting, surrogate = target = blank_target(density, data, position)
    standard = jax.ShapeDtypeStruct((CHAINS, density.shared), float)
    full = jax.value_and_grad(density.potential)
    sampled = jax.value_and_grad(partial(surrogate_potential, density), argnums=1)
    yield "gradient", (jax.jit(jax.vmap(full, (0, None))), (many, data))
    yield (
        "surrogate gradient",
        (jax.jit(jax.vmap(sampled, (None, 0))), (surrogate, standard)),
    )
    evaluate, draw = evaluation_program(density), draw_program(density)
    some, words = (
        jax.ShapeDtypeStruct((size, length), kind)
        for size, length, kind in (
            (evaluate.size, density.shared, float),
            (draw.size, 2, "uint32"),
        )
    )
    yield "Laplace marginal", (evaluate.call, (setting, (some,)))
    at = jax.ShapeDtypeStruct((draw.size, density.shared), float)
    yield "weighted draws", (draw.call, (setting, (at, words)))
    yield "expansion", (tools.expand, (position, data))
    schedule = Schedule(CHAINS, warmup=250, draws=750)
    sampler = build_sampler(density, schedule, vectorized=True)
    state = jax.eval_shape(sampler.start, schedule.keys(jax.random.key(0)))
    held = jax.ShapeDtypeStruct((CHAINS, BLOCK, 0), float)
    yield "block of draws", (sampler.block, (state, target, held))
    yield "quantities", (tools.quantities, (many, data))


def count_kernels(study: bayesrep.Study) -> dict[str, Any]:
    """Compile each program of a fit for the card, and count."""
    card = topologies.get_topology_desc(
        platform="cuda", target_config=CARD, topology="1x1x1"
    ).devices[0]
    place = jax.sharding.SingleDeviceSharding(card)

    def placed(leaf: Any) -> Any:
        return jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf), sharding=place)

    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        stack.enter_context(jax.enable_x64(new_val=True))
        for module in (points, problem, program):
            stack.enter_context(mock.patch.object(module, "default_platform", return_value="cuda"))
        for name, (function, arguments) in list_calls(study):
            begin = time.perf_counter()
            jitted: Any = getattr(function, "jitted", function)
            text = jitted.lower(*jax.tree.map(placed, arguments)).compile().as_text()
            took = time.perf_counter() - begin
            rows += [{"what": name, **x._asdict(), "seconds": took} for x in read_loops(text)]
    return {"rows": rows}
