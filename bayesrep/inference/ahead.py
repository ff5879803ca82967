"""Programs of Laplace's way, made in a thread while a fit is still on its way to them.

A first fit waits for Python, which traces its programs, and for XLA, which compiles them. XLA needs
no Python: while it compiles one program another is traced, and the mode is found meanwhile.
"""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import jax
import numpy as np

from bayesrep.inference.compiling import AHEAD
from bayesrep.inference.laplace import draw_program
from bayesrep.inference.marginal import Marginal
from bayesrep.inference.problem import Problem, programs
from bayesrep.inference.quantities import batch_size
from bayesrep.inference.settle import look_program
from bayesrep.numerics.batches import keep_settings


@contextmanager
def programs_ahead() -> Generator[Callable[[Problem, int], None]]:
    """Yield what begins to make the programs for a problem and so many draws.

    At the end, and where it is called for another problem, those that have not begun are left.
    """
    stops: list[Event] = []

    def leave() -> None:
        for stop in stops:
            stop.set()

    with ThreadPoolExecutor(1, thread_name_prefix=AHEAD) as pool:

        def begin(problem: Problem, draws: int) -> None:
            leave()
            stops.append(Event())
            steps = _make_in_turn(problem, draws)
            next(steps, None)  # here: what the fit will ask for is what the thread makes
            pool.submit(keep_settings(_go_through), steps, stops[-1])

        try:
            yield begin
        finally:
            leave()


def _go_through(steps: Iterator[None], stop: Event) -> None:
    for _ in steps:
        if stop.is_set():
            return


def _make_in_turn(problem: Problem, draws: int) -> Iterator[None]:
    """Make a program at a time, in the order in which the fit asks for them; none at first."""
    data = problem.data()
    tools = programs(problem, data)
    density, marginal = tools.density, Marginal(tools.density)
    position = jax.eval_shape(density.origin)
    setting = jax.eval_shape(lambda data: marginal.first_setting(data, density.origin()), data)
    look, draw = look_program(density), draw_program(density)
    yield
    tools.expand.make_for(position, data)
    yield
    seen = look.call.make_for(setting, (_stack(position["shared"], look.size),))
    yield
    if seen is not None:
        words = jax.ShapeDtypeStruct((draw.size, 2), np.uint32)
        at_points = _stack(seen, draw.size, begin=1)
        draw.call.make_for(setting, (at_points, words))
    yield
    tools.quantities.make_for(_stack(position, batch_size(data, draws)), data)


def _stack(tree: Any, size: int, *, begin: int = 0) -> Any:
    """Shapes of so many of a tree's arrays in one, whose own shapes begin at an axis."""
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((size, *leaf.shape[begin:]), leaf.dtype), tree
    )
