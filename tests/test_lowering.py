"""Every program of a fit lowers for a GPU, and none has to be there for that.

A program that is new joins by a line in `PROGRAMS`.
"""

import re
from functools import cache, partial

import jax
import pytest
import zoo
from jax import export

from bayesrep.inference import surrogate as surrogates
from bayesrep.inference.marginal_mode import evaluation_program
from bayesrep.inference.nested_laplace import draw_program
from bayesrep.inference.nuts import blank_target, build_sampler
from bayesrep.inference.problem import pose, programs
from bayesrep.inference.schedule import BLOCK, Schedule
from bayesrep.inference.surrogate import surrogate_potential
from bayesrep.models import MODELS

pytestmark = pytest.mark.usefixtures("float64")

CHAINS = 7
"""No other dimension of what is lowered here is as long."""
SOLVERS = {"cusolver_potrf_ffi"}
"""Cholesky factors, for NumPyro's mass matrix: a gradient calls nothing."""


class Case:
    """A model of a small study, and the shapes of what its programs hand on."""

    def __init__(self, name):
        plain = zoo.cut(zoo.study("tiny"), images=60)
        study = zoo.study("panels") if name == "workers" else plain
        problem = pose(study, model=name, options={})
        self.data = problem.data()
        self.tools = programs(problem, self.data)
        self.density = self.tools.density
        self.values = problem.model.start(self.data, problem.options)
        self.position = jax.eval_shape(self.tools.start, self.values)
        self.positions = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((CHAINS, *leaf.shape), leaf.dtype), self.position
        )
        self.keys = Schedule(CHAINS, warmup=50, draws=50).keys(jax.random.key(0))

        self.target = blank_target(self.density, self.data, self.density.origin())

    def gradients(self, *, surrogate=False):
        """Those of all chains, as where chains run as one batch."""
        if not surrogate:
            one = jax.value_and_grad(self.density.potential)
            return jax.jit(jax.vmap(one, in_axes=(0, None))), self.positions, self.data
        one = jax.value_and_grad(partial(surrogate_potential, self.density), argnums=1)
        places = jax.ShapeDtypeStruct((CHAINS, self.density.shared), float)
        return jax.jit(jax.vmap(one, in_axes=(None, 0))), self.target[1], places

    def sampler(self):
        schedule = Schedule(CHAINS, warmup=50, draws=50)
        return build_sampler(self.density, schedule, vectorized=True)

    def first_states(self):
        return self.sampler().start, self.keys

    def block(self):
        sampler = self.sampler()
        state = jax.eval_shape(sampler.start, self.keys)
        held = jax.ShapeDtypeStruct((CHAINS, BLOCK, 0), float)
        return sampler.block, state, self.target, held

    def points(self, program):
        return jax.ShapeDtypeStruct((program.size, self.density.shared), float)

    def evaluation(self):
        program = evaluation_program(self.density)
        return program.call, self.target[0], (self.points(program),)

    def drawing(self):
        program = draw_program(self.density)
        keys = jax.ShapeDtypeStruct((program.size, 2), "uint32")
        return program.call, self.target[0], (self.points(program), keys)

    def subsample(self):
        program = surrogates._subsample_program(self.density)
        return program.call, self.target[1], (self.points(program),)


PROGRAMS = {
    ("joint", "start"): lambda c: (c.tools.start, c.values),
    ("joint", "expand"): lambda c: (c.tools.expand, c.position, c.data),
    ("joint", "Laplace marginal"): Case.evaluation,
    ("joint", "weighted draws"): Case.drawing,
    ("joint", "surrogate"): Case.subsample,
    ("joint", "first states"): Case.first_states,
    ("joint", "block of draws"): Case.block,
    ("joint", "quantities"): lambda c: (c.tools.quantities, c.positions, c.data),
}
"""By model and name: a compiled function of a case, and arguments or their shapes."""

case = cache(Case)


def lowered(function, *arguments):
    """StableHLO for CUDA."""
    jitted = getattr(function, "jitted", function)
    return export.export(jitted, platforms=["cuda"])(*arguments).mlir_module()


def called(text):
    """What a program leaves to others: solvers, or Python on the host."""
    return set(re.findall(r"custom_call @(\w+)", text))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: "-".join(program))
def test_every_program_lowers_and_calls_no_host(program):
    text = lowered(*PROGRAMS[program](case(program[0])))
    assert called(text) <= SOLVERS
    assert not re.search(r"stablehlo\.(infeed|outfeed|send|recv)\b", text)


@pytest.mark.parametrize(
    ("model", "surrogate"),
    [*((model, False) for model in MODELS), ("joint", True)],
)
def test_a_gradient_of_all_chains_is_products_of_one_batch(model, surrogate):
    """Neither lookups nor calls; every product has the chains among its dimensions.

    But for those with a number, that is.
    """
    text = lowered(*case(model).gradients(surrogate=surrogate))
    assert not called(text)
    assert "scatter" not in text
    assert "gather" not in text
    products = re.findall(r"stablehlo\.dot_general .*: \((?!tensor<f64>)(.*)\) ->", text)
    assert len(products) > 4
    assert [one for one in products if not re.search(rf"[<x]{CHAINS}x", one)] == []
