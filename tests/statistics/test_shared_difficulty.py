"""The shared-difficulty model: what it recovers, beside other samplers and other models."""

import contextlib
import json
import socket
import subprocess
import sys
import textwrap
import warnings

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

import bayesrep
from bayesrep.errors import ConvergenceWarning
from bayesrep.inference.problem import around_mode, pose, programs

pytestmark = pytest.mark.usefixtures("float64")


def ready(study, **options):
    problem = pose(study, model="shared-difficulty", options=options)
    data = problem.data()
    return problem, data, programs(problem, data)


@pytest.fixture(scope="module")
def study():
    return bayesrep.simulate_study(seed=5, images=600, classifiers=4)


def thousand_draws(study):
    """Of chains, nearly converged: their spreads are right to a few percent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fitted(study, method="nuts")


def fitted(study, **options):
    arguments = {"method": "laplace", "chains": 2, "draws": 500, "progress": False, **options}
    with warnings.catch_warnings():
        if arguments["method"] == "laplace":  # refused or not, it is near enough for these tests
            warnings.simplefilter("ignore", ConvergenceWarning)
        return bayesrep.fit(study, model="shared-difficulty", **arguments)


@pytest.fixture(scope="module")
def posterior(study):
    return fitted(study)


@pytest.fixture(scope="module")
def joint(study):
    return bayesrep.fit(study, method="laplace", progress=False)


def test_doubling_the_grid_moves_no_adjusted_accuracy(study):
    """The mode's move is, to first order, H⁻¹ times the change of the gradient."""
    problem, data, tools = ready(study)
    white = around_mode(problem, tools, data)
    gradients = []
    for nodes in (25, 49):
        _, data, finer = ready(study, nodes=nodes)
        gradient = jax.jit(jax.grad(finer.density.potential))(white.center, data)
        gradients.append(jax.flatten_util.ravel_pytree(gradient)[0])
    assert len(data.nodes.weight) == 49
    move = white.root.T @ (gradients[0] - gradients[1])
    _, back = jax.flatten_util.ravel_pytree(white.center)
    _, data, _ = ready(study)
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), white.center, white(back(move)))
    adjusted = np.asarray(tools.quantities(both, data)["adjusted_accuracy"])
    assert np.abs(move).max() > 0
    assert np.abs(adjusted[0] - adjusted[1]).max() < 1e-4


def simulated_from_the_model(loadings, images=600, seed=0):
    """Answers by the model's own law, curves of one level, and the replication's difficulties."""
    rng = np.random.default_rng(seed)
    loadings = np.reshape(loadings, (len(loadings), -1))

    def side(level):
        s = rng.beta(8, 2, images)
        u = rng.normal(size=(images, loadings.shape[1]))
        given_u = level + 3 * (s[:, None] - 0.8) + u @ loadings.T
        correct = rng.random((images, len(loadings))) < expit(given_u)
        return {"selected": rng.binomial(36, s), "shown": 36, "correct": correct}, u

    (reference, _), (replication, u) = side(1.5), side(1.0)
    names = [f"c{i}" for i in range(len(loadings))]
    made = bayesrep.Study.from_arrays(
        reference=reference, replication=replication, classifiers=names
    )
    return made, u


def test_loadings_and_difficulties_are_recovered():
    """Four sd of four loadings: false alarms in 3 of 10,000; the rest is far from its bounds."""
    loadings = np.array([0.3, 1.2, 2.0, 2.5])
    made, u = simulated_from_the_model(loadings)
    found = fitted(made)
    draws = found.posterior["loading"].values.reshape(-1, 4)
    # The curves' own bend is small here, so conditional and marginal loadings are the same.
    assert (np.abs(draws.mean(axis=0) - loadings) < 4 * draws.std(axis=0)).all()
    images = bayesrep.describe_images(made, found)
    assert images.columns[:2] == ["dataset", "image"]
    images = images.tail(600)
    assert np.corrcoef(-u[:, 0], images["difficulty"])[0, 1] > 0.6
    square = images["difficulty"].to_numpy() ** 2 + images["difficulty_sd"].to_numpy() ** 2
    assert 0.85 < square.mean() < 1.15


def test_without_a_shared_difficulty_intervals_are_those_of_the_joint_model():
    made, _ = simulated_from_the_model(np.zeros(4))
    found = thousand_draws(made)
    assert np.abs(found.posterior["loading"].values.mean(axis=(0, 1))).max() < 0.8
    alone = bayesrep.fit(made, method="laplace", progress=False)
    spreads = [p.posterior["adjusted_accuracy"].values.mean(axis=2).std() for p in (found, alone)]
    assert spreads[0] / spreads[1] == pytest.approx(1, abs=0.15)


def test_two_identical_classifiers_and_one_that_is_always_right():
    made, _ = simulated_from_the_model(np.array([1.0, 2.0]))
    sides = {}
    for role, data in made.datasets.items():
        one, other = np.asarray(data.correct)[:, :1], np.asarray(data.correct)[:, 1:]
        correct = np.concatenate([one, one, np.ones_like(one), other], axis=1)
        sides[role] = {"selected": data.selected, "shown": data.shown, "correct": correct}
    twins = bayesrep.Study.from_arrays(**sides, classifiers=["a", "twin", "always right", "b"])
    # Who is always right is far from normal.
    found = thousand_draws(twins)
    adjusted = found.posterior["adjusted_accuracy"].values.reshape(-1, 4)
    assert np.isfinite(adjusted).all()
    assert adjusted[:, 2].mean() > 0.98
    alone = bayesrep.fit(twins, progress=False)
    own = adjusted[:, :2].std(axis=0)
    expected = alone.posterior["adjusted_accuracy"].values.std(axis=(0, 1))[:2]
    np.testing.assert_allclose(own, expected, rtol=0.15)  # a coarse grid would say 0.2
    apart = adjusted[:, 0] - adjusted[:, 1]
    assert apart.std() < 0.8 * own.mean()
    assert abs(apart.mean()) < 0.003


def test_further_factors_are_identified_by_their_anchors():
    rng = np.random.default_rng(4)
    loadings = np.column_stack(
        [np.full(6, 1.5), np.repeat([1.5, -1.5], 3) * rng.uniform(0.8, 1, 6)]
    )
    made, _ = simulated_from_the_model(loadings, images=800)
    found = fitted(made, factors=2, nodes=9, reference_answers=False)
    second = found.posterior["loading"].values.mean(axis=(0, 1))[:, 1]
    signs = np.sign(loadings[:, 1])
    assert (np.sign(second) == signs).all() or (np.sign(second) == -signs).all()
    assert (np.abs(second) > 0.4).all()
    table = bayesrep.describe_images(made, found)
    assert {"difficulty", "difficulty_2", "difficulty_2_sd"} <= set(table.columns)
    check = bayesrep.check_agreement(made, found)
    assert check.summary["p"][0] > 0.01


def test_the_references_population_is_recovered(study, posterior):
    """Four sd of four accuracies: false alarms in 3 of 10,000."""
    population = posterior.posterior["population_reference_accuracy"].values
    sd = population.std(axis=(0, 1))
    truth = study.truth.reference_accuracy
    assert (np.abs(population.mean(axis=(0, 1)) - truth) < 4 * sd).all()


def test_nuts_agrees_with_laplace_and_repeats(study, posterior):
    arguments = {"method": "nuts", "warmup": 100, "draws": 100, "seed": 2}
    with pytest.warns(ConvergenceWarning):
        draws = fitted(study, **arguments)
    with pytest.warns(ConvergenceWarning):
        again = fitted(study, **arguments)
    one, other = (
        p.posterior["adjusted_accuracy"].values.reshape(-1, 4) for p in (draws, posterior)
    )
    np.testing.assert_array_equal(one, again.posterior["adjusted_accuracy"].values.reshape(-1, 4))
    # 200 draws: standard error about 0.1 sd; the mode is off by up to 0.4.
    assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < 0.8 * other.std(axis=0)).all()
    assert one.mean(axis=1).std() / other.mean(axis=1).std() == pytest.approx(1, abs=0.3)
    assert not draws.sample_stats["diverging"].values.any()


def test_draws_of_the_joint_model_know_of_shared_images(posterior, joint):
    """As the model of the images' difficulty does."""

    def sd(draws, name):
        return draws.posterior[name].values.mean(axis=-1).std()

    assert sd(joint, "adjusted_accuracy") / sd(posterior, "adjusted_accuracy") == pytest.approx(
        1, abs=0.15
    )
    assert sd(joint, "population_gap") / sd(posterior, "population_gap") == pytest.approx(
        1, abs=0.2
    )


def test_agreement_shows_what_the_joint_model_leaves_out(study, posterior, joint):
    collapsed, shared = (bayesrep.check_agreement(study, p) for p in (joint, posterior))
    assert collapsed.summary["p"].to_list() == [0, 0, 0, 0]
    assert (shared.summary["p"] > 0.02).all()
    assert (collapsed.pairs["observed"] > collapsed.pairs["upper"]).all()
    inside = (shared.right["observed"] >= shared.right["lower"]) & (
        shared.right["observed"] <= shared.right["upper"]
    )
    assert inside.sum() >= 4
    assert shared.right["observed"].sum() == 600
    found = bayesrep.diagnose(joint, study)
    assert any("share what makes an image hard" in text for text in found.sentences)
    assert not any(
        "right or wrong together" in t for t in bayesrep.diagnose(posterior, study).sentences
    )


SHORT = {"chains": 2, "warmup": 10, "draws": 10, "reference_answers": False, "progress": False}
"""A fit that compiles what every fit does, and takes few steps of it."""

ONE_OF_TWO = """
    import json, sys, warnings
    import jax
    rank, address, target, short = sys.argv[1:]
    patience = {"initialization_timeout": 90, "heartbeat_timeout_seconds": 60}
    jax.distributed.initialize(address, 2, int(rank), shutdown_timeout_seconds=60, **patience)
    import numpy as np, bayesrep
    from bayesrep.errors import OptionError
    assert len(jax.local_devices()) == 1
    warnings.simplefilter("ignore")
    study = bayesrep.simulate_study(seed=1, images=60, annotators=4, classifiers=2)
    how = {"model": "shared-difficulty", "devices": 2, **json.loads(short)}
    try:
        bayesrep.fit(study, **how, checkpoint=target)
    except OptionError as error:
        assert "keeps no checkpoint" in str(error), error
    made = bayesrep.fit(study, **how).posterior
    np.savez(target, **{name: made[name].values for name in made.data_vars})
"""


def started_together(script, *arguments, processes=2, limit=240):
    """Run one script as several processes that know of each other; what failed is shown."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-c", textwrap.dedent(script)]
    running = [
        subprocess.Popen(
            [*command, str(rank), address, *(one[rank] for one in arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(processes)
    ]
    try:
        yield
        said = [process.communicate(timeout=limit)[0] for process in running]
    finally:
        for process in running:
            process.kill()
            process.communicate()  # which waits, and closes what it reads from
    assert [process.returncode for process in running] == [0] * processes, "\n".join(said)


def test_two_processes_make_the_draws_of_one(tmp_path):
    """Bit by bit between them; of one device sums over images are rounded in another order."""
    targets = [str(tmp_path / f"{rank}.npz") for rank in range(2)]
    together = contextlib.contextmanager(started_together)
    with together(ONE_OF_TWO, targets, [json.dumps(SHORT)] * 2), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        study = bayesrep.simulate_study(seed=1, images=60, annotators=4, classifiers=2)
        alone = bayesrep.fit(study, model="shared-difficulty", **SHORT).posterior
    one, other = ({**np.load(target)} for target in targets)
    assert set(one) == set(other) == set(alone.data_vars)
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)
        np.testing.assert_allclose(values, alone[name], rtol=1e-6, atol=1e-6, err_msg=name)
