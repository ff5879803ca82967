"""A fit runs on the device that was asked for or found fastest, in all of its threads."""

import os
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import jax
import pytest
from refusals import refused

from bayesrep.choices import STRATEGIES
from bayesrep.errors import OptionError
from bayesrep.inference import device
from bayesrep.inference.device import N_TIMED_STEPS, choose
from bayesrep.inference.fit import _check_spread

ON_THE_SECOND = """
    from concurrent.futures import ThreadPoolExecutor
    from threading import Event

    import jax
    import jax.numpy as jnp
    import numpy as np
    import numpyro
    import numpyro.distributions as dist
    from jax.sharding import Mesh

    from bayesrep.inference import chains, device, nuts, points
    from bayesrep.inference.density import build_density
    from bayesrep.inference.schedule import BLOCK, Schedule

    first, second = jax.devices()
    device.find_devices = lambda: {"cpu": first, "other": second}

    def build_steps(batch):
        return lambda: steps.append((batch, *jnp.ones(batch).devices()))

    def model(data):
        mean = numpyro.sample("mean", dist.Normal())
        with numpyro.plate("classifier", 3):
            numpyro.sample("own", dist.Normal(mean))

    steps = []
    device.choose("auto", 4, build_steps)
    assert set(steps) == {(1, first), (4, second)}, steps
    with jax.enable_x64(True), jax.default_device(second), ThreadPoolExecutor(2) as pool:
        data = jnp.zeros(3)
        density = build_density(model, data, select=lambda data, rows: data[rows])
        setting, _ = nuts.blank_target(density, data, density.origin())
        arrays = [x for x in jax.tree.leaves(setting) if isinstance(x, jax.Array)]
        assert {d for x in arrays for d in x.devices()} == {second}
        program = points.compile_for_points(lambda s, p: s.data + p[0].sum(), density, "sum")
        found = []

        def call(*given):
            found.append(program.call(*given))
            return found[-1]

        places = np.arange(80.0)[:, None]
        sums = program._replace(call=call)(setting, places)
        np.testing.assert_array_equal(sums, np.repeat(places, 3, axis=1))
        assert len(found) == 10 and {d for x in found for d in x.devices()} == {second}
        used = chains._run_jobs(pool, Event(), [(lambda: jnp.ones(1).devices(),)] * 3)
        assert used == [{second}] * 3, used

    # Chains that two devices share are those of one batch.
    schedule = Schedule(chains=4, warmup=25, draws=10)
    given = np.zeros((4, BLOCK, 0))
    with jax.enable_x64(True):
        target = nuts.blank_target(density, data, density.origin())
        keys = schedule.keys(jax.random.key(0))
        made = []
        for mesh in (None, Mesh(jax.devices(), ("devices",))):
            whole = nuts.build_sampler(density, schedule, vectorized=True, mesh=mesh)
            sampler = nuts.compile_sampler(whole, keys, target, given)
            made.append(
                chains.sample(
                    sampler, keys, target, np.zeros((4, 50, 0)), schedule,
                    lambda draws, divergences: None, workers=1,
                )
            )
        assert made[1].position["units"].shape == (4, 10, 3, 1)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), *made)
"""


def test_every_thread_keeps_to_the_device_that_was_chosen():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(ON_THE_SECOND)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "XLA_FLAGS": flags},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("on_gpu", "chosen"), [("0.15", "cpu"), ("0.05", "gpu")])
def test_the_faster_device_is_chosen_and_the_choice_explained(monkeypatch, on_gpu, chosen):
    milliseconds = iter([0.2, float(on_gpu)])
    timed = lambda *_, **__: [next(milliseconds) / 1e3 * N_TIMED_STEPS]  # noqa: E731
    monkeypatch.setattr(device, "repeat", timed)
    monkeypatch.setattr(device, "find_devices", lambda: {"cpu": "cpu", "gpu": jax.devices()[0]})
    choice = choose("auto", 1, lambda batch: lambda: None)
    assert (choice.device == "cpu") == (chosen == "cpu")
    begin = f"{chosen}: one step of all chains takes 0.20 ms on cpu, {on_gpu} ms on gpu; "
    assert choice.reason.startswith(begin)


@pytest.mark.parametrize(
    ("method", "chains", "broken"),
    [
        ("nuts", 8, ("chains-not-shared-evenly", {"devices": 3, "chains": 8})),
        ("laplace", 9, ("devices-without-chains", {"method": "laplace"})),
    ],
)
def test_devices_that_cannot_share_chains(unannotated, method, chains, broken):
    mesh = SimpleNamespace(size=3)
    with refused(OptionError, *broken):
        _check_spread(mesh, STRATEGIES[method], chains)
