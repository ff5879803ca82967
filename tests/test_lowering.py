"""Every program of a fit lowers for a GPU, and none has to be there for that.

A program that is new joins by a line in `PROGRAMS`.
"""

import re
from functools import cache

import jax
import pytest
from jax import export

import bayesrep
from bayesrep.inference.nuts import Schedule, build_sampler
from bayesrep.inference.problem import pose, programs
from bayesrep.models import MODELS

pytestmark = pytest.mark.usefixtures("float64")

CHAINS = 7
"""No other dimension of what is lowered here is as long."""
SOLVERS = {"cusolver_syevd_ffi", "cusolver_potrf_ffi"}
"""Eigenvectors and Cholesky factors, for what sets a fit up: a gradient calls nothing."""
SIDES = {"joint": {}, "shared-difficulty": {"reference_answers": False}}
"""Options with which there is less to trace."""


class Case:
    """A model of a small study, and the shapes of what its programs hand on."""

    def __init__(self, name):
        study = bayesrep.simulate_study(seed=3, images=60, annotators=4, classifiers=3)
        problem = pose(study, model=name, options=SIDES.get(name, {}))
        self.data = problem.data()
        self.tools = programs(problem, self.data)
        self.potential = self.tools.density.potential
        self.values = problem.model.start(self.data, problem.options)
        self.position = jax.eval_shape(self.tools.start, self.values)
        self.positions = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((CHAINS, *leaf.shape), leaf.dtype), self.position
        )
        self.keys = jax.random.split(jax.random.key(0), CHAINS)

    @property
    def gradients(self):
        """Those of all chains, as where chains run as one batch."""
        one = jax.value_and_grad(self.potential)
        return jax.jit(jax.vmap(one, in_axes=(0, None)))

    @property
    def near(self):
        return jax.eval_shape(self.tools.whiten, self.position, self.data)

    @property
    def whole(self):
        return jax.eval_shape(self.tools.whiten_whole, self.position, self.data)

    @property
    def sampler(self):
        schedule = Schedule(CHAINS, warmup=50, draws=50).thrifty()
        return build_sampler(self.potential, schedule, vectorized=True)

    def block(self):
        sampler = self.sampler
        state = jax.eval_shape(sampler.start, self.keys, self.data, self.whole)
        return sampler.block, state, self.data, self.whole


PROGRAMS = {
    ("shared-difficulty", "start"): lambda c: (c.tools.start, c.values),
    ("shared-difficulty", "climb"): lambda c: (c.tools.climb, c.position, c.data),
    ("shared-difficulty", "whiten"): lambda c: (c.tools.whiten, c.position, c.data),
    ("shared-difficulty", "onward"): lambda c: (c.tools.onward, c.near, c.data),
    ("shared-difficulty", "whiten whole"): lambda c: (c.tools.whiten_whole, c.position, c.data),
    ("shared-difficulty", "first states"): lambda c: (c.sampler.start, c.keys, c.data, c.whole),
    ("shared-difficulty", "block of draws"): Case.block,
    ("shared-difficulty", "quantities"): lambda c: (c.tools.quantities, c.positions, c.data),
}
"""By model and name: a compiled function of a case, and arguments or their shapes."""

case = cache(Case)


def lowered(function, *arguments):
    """StableHLO for CUDA."""
    return export.export(function, platforms=["cuda"])(*arguments).mlir_module()


def called(text):
    """What a program leaves to others: solvers, or Python on the host."""
    return set(re.findall(r"custom_call @(\w+)", text))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: "-".join(program))
def test_every_program_lowers_and_calls_no_host(program):
    text = lowered(*PROGRAMS[program](case(program[0])))
    assert called(text) <= SOLVERS
    assert not re.search(r"stablehlo\.(infeed|outfeed|send|recv)\b", text)


@pytest.mark.parametrize("model", MODELS)
def test_a_gradient_of_all_chains_is_products_of_one_batch(model):
    """Neither lookups nor calls; every product has the chains among its dimensions."""
    made = case(model)
    text = lowered(made.gradients, made.positions, made.data)
    assert not called(text)
    assert "scatter" not in text
    assert "gather" not in text
    products = re.findall(r"stablehlo\.dot_general .*: \((.*)\) ->", text)
    assert len(products) > 4
    assert [one for one in products if not re.search(rf"[<x]{CHAINS}x", one)] == []
