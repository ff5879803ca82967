"""How programs are compiled: their options, by version and environment."""

import jax
import jax.numpy as jnp
import pytest

from bayesrep.inference.program import compiler_options


@pytest.mark.parametrize("quick", [False, True])
def test_a_program_compiles_with_its_options_and_gives_the_same(monkeypatch, quick):
    monkeypatch.setenv("XLA_FLAGS", "")  # XLA has read those of the tests; now ours count
    options = compiler_options(quick=quick)
    assert options or not jax.__version__.startswith("0.10.")
    x = jnp.linspace(0, 1, 8)
    ours = jax.jit(lambda x: jnp.sin(x) @ x, compiler_options=options)(x)
    assert jnp.allclose(ours, jax.jit(lambda x: jnp.sin(x) @ x)(x), rtol=1e-6)


def test_the_environments_own_flags_rule(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=3")
    assert "xla_backend_optimization_level" not in compiler_options(quick=True)
    monkeypatch.setenv("XLA_FLAGS", "")
    assert compiler_options(quick=True)["xla_backend_optimization_level"] == 0
