"""The shared-difficulty model: its likelihood by brute force, its reductions, its hard cases."""

import os
import socket
import subprocess
import sys
import textwrap
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.special import expit, logsumexp

import bayesrep
from bayesrep.cli import main
from bayesrep.errors import OptionError, PosteriorError, StudyError
from bayesrep.inference.device import spread_over
from bayesrep.inference.problem import around_mode, pose, programs
from bayesrep.models.answers import difficulty_nodes, image_moments, lay_out_answers, log_answers
from bayesrep.models.curves import EvenBends
from bayesrep.numerics.conditional_logit import conditional_logit
from bayesrep.posterior.likelihood import logit_codes
from bayesrep.studies.statistics import Patterns, patterns_of

pytestmark = pytest.mark.usefixtures("float64")

X, M = 5, 4
WAYS = "method='nuts' or 'laplace' with feedback='full'"

# Compiled whole, as in every fit: operation by operation each would be compiled alone.
likelihood = jax.jit(log_answers)
marginal_kept = jax.jit(conditional_logit)


def some_answers(classifiers, factors, images=40, seed=0, nodes=9):
    rng = np.random.default_rng(seed)
    patterns = Patterns(
        selected=np.zeros(images, dtype=np.int64),
        shown=np.ones(images, dtype=np.int64),
        correct=rng.random((images, classifiers)) < 0.7,
        images=rng.integers(1, 4, images),
        pattern=np.arange(images),
    )
    cell = rng.integers(0, M, images)
    eta = rng.normal(1.0, 1.5, (classifiers, X))
    loadings = rng.normal(1.5, 1.0, (classifiers, factors))
    table = np.log(rng.dirichlet(np.ones(X), M))
    grid = difficulty_nodes(nodes, factors, classifiers)
    answers = lay_out_answers(patterns, cell, M, X + len(grid.weight))
    return patterns, cell, eta, loadings, table, answers, grid


def brute_force(patterns, cell, eta, loadings, table, grid):
    """Image by image, grid point by grid point."""
    u, w = np.asarray(grid.difficulty), np.asarray(grid.weight)
    u, w = u[w > 0], w[w > 0]
    m = np.asarray(marginal_kept(jnp.asarray(eta), jnp.asarray(loadings @ u.T), jnp.asarray(w)))
    total = 0.0
    for row, k, many in zip(patterns.correct, cell, patterns.images, strict=True):
        terms = []
        for j in range(X):
            for node, weight in zip(u, w, strict=True):
                p = expit(m[:, j] + loadings @ node)
                chance = np.where(row, p, 1 - p).prod()
                terms.append(table[k, j] + np.log(weight) + np.log(chance))
        total += many * logsumexp(terms)
    return total


@pytest.mark.parametrize("factors", [1, 2])
def test_the_likelihood_is_the_sum_over_the_grid(factors):
    patterns, cell, eta, loadings, table, answers, grid = some_answers(4, factors)
    got = likelihood(*map(jnp.asarray, (eta, loadings, table)), answers, grid)
    assert float(got) == pytest.approx(
        brute_force(patterns, cell, eta, loadings, table, grid), rel=1e-12
    )


def direct(eta, loadings, table, answers, grid):
    """The same by automatic differentiation, with an array of images × grid."""
    spread = loadings @ grid.difficulty.T
    logit = conditional_logit(eta, spread, grid.weight)[:, :, None] + spread[:, None, :]
    rows = answers.rows.reshape(-1, answers.rows.shape[2])
    right, cell = rows[:, : len(eta)], rows[:, len(eta) :]
    given = jnp.einsum("nc,cxq->nxq", right, logit) - jax.nn.softplus(logit).sum(axis=0)[None]
    both = given + (cell @ table)[:, :, None] + jnp.log(grid.weight)[None, None, :]
    return answers.images.ravel() @ jax.scipy.special.logsumexp(both, axis=(1, 2))


def test_the_derivatives_are_those_of_the_plain_formula(as_shipped):
    *_, eta, loadings, table, answers, grid = some_answers(3, 1)
    at = tuple(map(jnp.asarray, (eta, loadings, table)))
    slopes = jax.jit(jax.grad(log_answers, argnums=(0, 1, 2)), compiler_options=as_shipped)
    ours = slopes(*at, answers, grid)
    theirs = jax.jit(jax.grad(direct, argnums=(0, 1, 2)))(*at, answers, grid)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    rng = np.random.default_rng(1)
    along = tuple(jnp.asarray(rng.normal(size=part.shape)) for part in at)

    def second(function):
        gradient = jax.grad(lambda parts: function(*parts, answers, grid))
        return jax.jit(lambda at, along: jax.jvp(gradient, (at,), (along,))[1])(at, along)

    for one, other in zip(second(log_answers), second(direct), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


def test_blocks_of_nodes_change_nothing_but_the_range_of_numbers():
    *_, eta, loadings, table, answers, grid = some_answers(3, 1, nodes=12)
    at = tuple(map(jnp.asarray, (eta, loadings, table)))
    whole = likelihood(*at, answers, grid)
    for blocks in (2, 3, 4, 12):
        divided = grid._replace(blocks=jnp.zeros(blocks))
        assert float(likelihood(*at, answers, divided)) == pytest.approx(float(whole), rel=1e-13)


def test_hundreds_of_classifiers_stay_within_floating_point():
    *_, eta, loadings, table, answers, grid = some_answers(400, 1, nodes=40)
    at = tuple(map(jnp.asarray, (3 * eta, 2 * loadings, table)))
    value, gradient = jax.jit(jax.value_and_grad(log_answers))(*at, answers, grid)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    assert float(value) == pytest.approx(float(jax.jit(direct)(*at, answers, grid)), rel=1e-10)


@settings(max_examples=30, deadline=None)
@given(
    eta=st.floats(-40, 40),
    loading=st.floats(-6, 6),
    nodes=st.sampled_from([3, 9, 40]),
    rise=st.floats(0, 3),
)
def test_the_marginal_is_kept_whatever_the_loading(eta, loading, nodes, rise):
    with jax.enable_x64(new_val=True):
        grid = difficulty_nodes(nodes, 1, 1)
        spread = jnp.asarray([[loading]]) @ grid.difficulty.T
        wanted = jnp.asarray([[eta, eta + rise]])
        m = marginal_kept(wanted, spread, grid.weight)
    given_u = np.asarray(m)[0][:, None] + np.asarray(spread)
    w = np.asarray(grid.weight)
    np.testing.assert_allclose(
        np.log(expit(given_u) @ w) - np.log(expit(-given_u) @ w), wanted[0], atol=1e-8
    )


def test_the_implicit_derivative_is_that_of_the_solution():
    grid = difficulty_nodes(9, 1, 1)

    def solved(parameters):
        spread = parameters[1][:, None] @ grid.difficulty.T
        return conditional_logit(parameters[0][:, None], spread, grid.weight)[:, 0]

    at = jnp.asarray([[-3.0, 0.5, 8.0], [0.1, 2.0, -1.5]])
    solved = jax.jit(solved)
    slope, step = jax.jit(jax.jacfwd(solved))(at), 1e-5
    for index in np.ndindex(at.shape):
        ends = [
            np.asarray(
                solved(
                    at
                    + sign
                    * step
                    * (
                        jnp.arange(at.size) == jnp.ravel_multi_index(index, at.shape, mode="clip")
                    ).reshape(at.shape)
                )
            )
            for sign in (1, -1)
        ]
        np.testing.assert_allclose(
            slope[(slice(None), *index)], (ends[0] - ends[1]) / (2 * step), atol=1e-7
        )


def test_what_is_said_of_single_images():
    patterns, cell, eta, loadings, table, answers, grid = some_answers(4, 1, images=12)
    values = np.random.default_rng(2).random((2, M, X))
    by_value, by_node = jax.jit(image_moments)(
        *map(jnp.asarray, (eta, loadings, table)), answers.rows[0], grid, jnp.asarray(values)
    )
    u, w = np.asarray(grid.difficulty)[:, 0], np.asarray(grid.weight)
    m = np.asarray(marginal_kept(jnp.asarray(eta), jnp.asarray(loadings * u), jnp.asarray(w)))
    p = expit(m[:, :, None] + (loadings * u)[:, None, :])
    for row in range(12):
        right = patterns.correct[row][:, None, None]
        share = np.where(right, p, 1 - p).prod(axis=0) * np.exp(table[cell[row]])[:, None] * w
        share /= share.sum()
        np.testing.assert_allclose(
            by_value[:, row], values[:, cell[row]] @ share.sum(axis=1), rtol=1e-9
        )
        moments = [share.sum(axis=0) @ u, share.sum(axis=0) @ u**2]
        np.testing.assert_allclose(by_node[:, row], moments, rtol=1e-9, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), classifiers=st.integers(1, 12))
def test_patterns_hold_every_image_once(seed, classifiers):
    rng = np.random.default_rng(seed)
    shown = rng.integers(1, 300, 60)
    data = bayesrep.Study.from_arrays(
        **{
            role: {
                "selected": rng.integers(0, np.minimum(shown, 3) + 1),
                "shown": shown,
                "correct": rng.random((60, classifiers)) < 0.5,
            }
            for role in ("reference", "replication")
        },
        classifiers=[f"c{i}" for i in range(classifiers)],
    ).datasets["replication"]
    found = patterns_of(data)
    assert found.images.sum() == 60
    for name in ("selected", "shown", "correct"):
        np.testing.assert_array_equal(getattr(found, name)[found.pattern], getattr(data, name))
    pairs = list(zip(found.shown, found.selected, strict=True))
    assert pairs == sorted(pairs)
    keys = {(*pair, *row) for pair, row in zip(pairs, found.correct.tolist(), strict=True)}
    assert len(keys) == len(found.images)


def ready(study, **options):
    problem = pose(study, model="shared-difficulty", options=options)
    data = problem.data()
    return problem, data, programs(problem, data)


def test_one_classifier_has_the_joint_models_posterior():
    """Their log densities differ by the loadings' prior alone, wherever one looks."""
    study = zoo.cut(zoo.study("tiny"), images=100, classifiers=1)
    problem, data, tools = ready(study, reference_answers=False)
    joint = pose(study, model="joint", options={})
    joint_data = joint.data()
    joint_tools = programs(joint, joint_data)
    start = problem.model.start(data, problem.options)
    even = EvenBends(problem.options.curve_priors())
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(3):
        values = {
            name: np.asarray(value) + 0.3 * rng.normal(size=np.shape(value))
            for name, value in start.items()
        }
        loading = (values["population_loading"] - 1.5) / 1.0, *values["classifier_loading"]
        prior = 0.5 * np.square(loading).sum()
        shared = jax.jit(tools.density.potential)(tools.density.to_position(values), data)
        base = jnp.asarray(values["population_curve_base"])
        values["population_curve"] = even(base)
        volume = float(even.log_abs_det_jacobian(base, even(base)))
        own = {name: values[name] for name in joint_tools.density.sites}
        at = joint_tools.density.to_position(own)
        alone = jax.jit(joint_tools.density.potential)(at, joint_data)
        differences.append(float(shared - alone) - prior + volume)
    np.testing.assert_allclose(differences, differences[0], atol=1e-7)


@pytest.fixture(scope="module")
def study():
    return zoo.study("images")


def fitted(study, **options):
    return bayesrep.fit(study, model="shared-difficulty", **zoo.QUICK, **options)


@pytest.fixture(scope="module")
def posterior():
    return zoo.posterior("images", model="shared-difficulty", **zoo.QUICK)


@pytest.fixture(scope="module")
def joint():
    return zoo.posterior("images", **zoo.QUICK)


def test_a_grid_of_twice_the_nodes_has_the_same_likelihood():
    """Where loadings are those of classifiers, to a thousandth of a unit an image."""
    values = []
    for nodes in (25, 49):
        *_, eta, loadings, table, answers, grid = some_answers(4, 1, nodes=nodes)
        values.append(float(likelihood(*map(jnp.asarray, (eta, loadings, table)), answers, grid)))
    assert values[0] == pytest.approx(values[1], abs=1e-3 * float(np.sum(answers.images)))


def test_twins_and_one_that_is_always_right_have_a_finite_slope_alike():
    patterns, cell, eta, loadings, table, _, grid = some_answers(4, 1)
    right = np.array(patterns.correct)
    right[:, 1], right[:, 2] = right[:, 0], True
    eta[1], loadings[1], eta[2] = eta[0], loadings[0], 12.0
    answers = lay_out_answers(replace(patterns, correct=right), cell, M, X + len(grid.weight))
    at = tuple(map(jnp.asarray, (eta, loadings, table)))
    slopes = jax.jit(jax.grad(log_answers, argnums=(0, 1)))(*at, answers, grid)
    for slope in map(np.asarray, slopes):
        assert np.isfinite(slope).all()
        np.testing.assert_allclose(slope[0], slope[1], rtol=1e-12)
    assert (np.asarray(slopes[0])[2] >= 0).all()  # who is always right is never good enough


def test_the_mode_is_one_and_the_whitening_whitens():
    study = zoo.cut(zoo.study("tiny"), images=100, classifiers=2)
    problem, data, tools = ready(study)
    white = around_mode(problem, tools, data)
    gradient = jax.jit(jax.grad(tools.density.potential))(white.center, data)
    hessian = np.asarray(tools.hessian(white.center, data))
    flat = np.concatenate([np.ravel(gradient[name]) for name in ("shared", "units")])
    assert np.abs(white.root.T @ flat).max() < 1e-3
    identity = np.asarray(white.root).T @ hessian @ np.asarray(white.root)
    np.testing.assert_allclose(identity, np.eye(len(flat)), atol=0.02)
    volume = -0.5 * np.linalg.slogdet(hessian)[1]
    assert np.linalg.slogdet(np.asarray(white.root))[1] == pytest.approx(volume, abs=1e-2)


def test_chains_sample_it():
    """A few draws of the other method, with all that a posterior has."""
    study = zoo.cut(zoo.study("tiny"), images=60, classifiers=2)
    short = {"chains": 1, "warmup": 10, "draws": 10, "nodes": 5, "reference_answers": False}
    found = zoo.fit(study, model="shared-difficulty", **short)
    assert found.posterior["loading"].shape == (1, 10, 2, 1)
    assert np.isfinite(found.posterior["adjusted_accuracy"].values).all()
    assert found.posterior.attrs["method"] == "nuts"
    assert {"diverging", "num_steps", "energy"} <= set(found.sample_stats.data_vars)


def test_further_factors_have_columns_of_their_own():
    study = zoo.cut(zoo.study("tiny"), images=60)
    few = {"factors": 2, "nodes": 5, "reference_answers": False, "draws": 20}
    found = zoo.fit(study, model="shared-difficulty", **zoo.QUICK, **few)
    assert found.posterior["loading"].shape[2:] == (3, 2)
    table = bayesrep.describe_images(study, found)
    assert table.columns[:2] == ["dataset", "image"]
    assert {"difficulty", "difficulty_2", "difficulty_2_sd"} <= set(table.columns)


def test_what_a_fit_holds(posterior):
    group = posterior.posterior
    population = group["population_reference_accuracy"].values
    np.testing.assert_allclose(
        group["population_gap"].values, population - group["adjusted_accuracy"].values
    )
    assert group["loading"].dims == ("chain", "draw", "classifier", "factor")
    assert logit_codes(posterior).code.shape[2] == 4
    assert group.attrs["model"] == "shared-difficulty"


def test_agreement_counts_every_image_and_is_told(study, posterior, joint):
    collapsed, shared = (bayesrep.check_agreement(study, p) for p in (joint, posterior))
    assert collapsed.summary["p"].to_list() == [0, 0, 0, 0]
    assert shared.right["observed"].sum() == 600
    for fit, told in ((joint, True), (posterior, False)):
        found = bayesrep.diagnose(fit, study)
        (value,) = found.checks.filter(check="classifiers agree as predicted")["value"]
        observed = f" {value.split(',')[0]} "
        assert any("together" in text and observed in text for text in found.sentences) is told


def test_tables_of_all_classifiers_together(study, posterior, joint):
    for fit in (posterior, joint):
        gaps = bayesrep.summarize_gaps(study, fit)
        by = {row["quantity"]: row for row in gaps.iter_rows(named=True)}
        raw = sum(by[name]["estimate"] for name in ("bias_corrected_gap", "selection_gap"))
        drop = (
            study.datasets["reference"].correct.mean()
            - study.datasets["replication"].correct.mean()
        )
        assert raw == pytest.approx(drop)
        if fit is posterior:  # its slopes are too low, so it tells no lines
            lines = [by.pop(name) for name in by.copy() if name.endswith(("slope", "intercept"))]
            assert len(lines) == 4
            assert all(row[part] is None for row in lines for part in ("estimate", "lower"))
        assert all(row["lower"] < row["estimate"] < row["upper"] for row in by.values())
        table = bayesrep.summarize(study, fit)
        assert table["classifier"].to_list() == list(study.classifiers)
        mean = table["bias_corrected_gap"].mean()
        assert mean == pytest.approx(by["bias_corrected_gap"]["estimate"])
    pairs = bayesrep.compare_classifiers(study, posterior)
    assert len(pairs) == 6
    ranks = bayesrep.rank_classifiers(study, posterior)
    assert ranks["best"].sum() == pytest.approx(1)
    assert ranks["rank"].sum() == pytest.approx(10)
    assert ranks["classifier"][0] == "tf_efficientnet_b7_ap"
    first = pairs.filter(pairs["other"] == ranks["classifier"][0])
    assert (first["probability"] < 0.5).all()


def test_summarize_tells_no_slope(study, posterior, tmp_path, capsys):
    paths = [str(tmp_path / name) for name in ("study", "posterior.nc")]
    study.write(paths[0])
    bayesrep.write_posterior(posterior, paths[1])
    assert main(["summarize", *paths, "--allow-unconverged"]) == 0
    text = capsys.readouterr().out
    (told,) = [line for line in text.splitlines() if line.startswith("No slope")]
    assert "joint model" in told
    (populations,) = [line for line in text.splitlines() if "other images of the same" in line]
    assert "slope" not in populations


def test_statistics_are_enough_for_tables_of_all_classifiers(study, joint, posterior):
    statistics = bayesrep.SufficientStatistics.from_study(study)
    for fit in (joint, posterior):
        assert not any(bayesrep.summarize(statistics, fit).drop("rhat").null_count().row(0))
        assert len(bayesrep.summarize_gaps(statistics, fit)) == 8


@pytest.mark.parametrize(
    ("arguments", "broken"),
    [
        ({"factors": 5}, ("factors-out-of-range", {"factors": 5, "most": 3})),
        ({"nodes": 2}, ("difficulty-nodes-too-few", {"nodes": 2})),
        ({"loading": (1.0, 0.0)}, ("prior-not-mean-and-sd", {"option": "loading"})),
        ({"groups": "superclass"}, ("model-takes-no-groups", {"model": "shared-difficulty"})),
        (
            {"method": "flow"},
            ("unknown-fit-method", {"allowed": "'auto' or 'nuts' or 'laplace'", "method": "flow"}),
        ),
        (
            {"method": "nuts", "feedback": "cut"},
            ("method-not-for-model", {"allowed": WAYS, "method": "nuts", "feedback": "cut"}),
        ),
        ({"devices": 99}, ("device-count-out-of-range", {"least": 1, "count": 99})),
    ],
)
def test_what_is_refused(study, arguments, broken):
    options = {**zoo.QUICK, **arguments}
    with refused(OptionError, *broken):
        bayesrep.fit(study, model="shared-difficulty", **options)


def test_more_is_refused(study, joint):
    two = zoo.cut(zoo.study("tiny"), images=50, classifiers=2)
    with refused(OptionError, "factors-exceed-classifiers", {"factors": 3, "classifiers": 2}):
        fitted(two, factors=3)
    with refused(OptionError, "model-needs-study", {"model": "shared-difficulty"}):
        fitted(bayesrep.SufficientStatistics.from_study(study))
    with refused(PosteriorError, "model-without-image-difficulty", {"model": "joint"}):
        bayesrep.describe_images(study, joint)
    with refused(PosteriorError, "posterior-of-another-study"):
        bayesrep.check_agreement(two, joint)
    with refused(StudyError, "image-never-shown", {"images": ["0"]}):
        bayesrep.Study.from_arrays(
            reference={"selected": [0], "shown": [0], "correct": [[True]]},
            replication={"selected": [0], "shown": [1], "correct": [[True]]},
            classifiers=["a"],
        )


def test_shared_fits_are_not_compared_answer_by_answer(posterior, joint):
    fit = {"posterior": "b", "model": "shared-difficulty"}
    with refused(PosteriorError, "classifiers-not-separable-in-model", fit):
        bayesrep.checks.compare_fits({"a": joint, "b": posterior})


ON_DEVICES = """
    import sys, jax, numpy as np, bayesrep
    from bayesrep.inference.device import spread_over
    from bayesrep.inference.problem import pose, programs

    rank, address, study, target = sys.argv[1:]
    if address:
        patience = {"initialization_timeout": 90, "heartbeat_timeout_seconds": 60}
        jax.distributed.initialize(address, 2, int(rank), shutdown_timeout_seconds=60, **patience)
    assert len(jax.local_devices()) == (1 if address else 2)
    study = bayesrep.read_study(study)
    if address:
        how = {"model": "shared-difficulty", "devices": 2, "progress": False}
        try:
            bayesrep.fit(study, **how, checkpoint=target)
        except bayesrep.OptionError as error:
            assert error.rule == "checkpoint-with-several-processes", error
        else:
            raise AssertionError("a checkpoint of several processes")
    with jax.enable_x64(new_val=True):
        mesh = spread_over("cpu", 2)
        problem = pose(study, model="shared-difficulty", options={}, mesh=mesh)
        data = problem.data()
        assert len(data.answers[0].rows.sharding.device_set) == 2
        tools = programs(problem, data)
        at = tools.start(problem.model.start(data, problem.options))
        value = jax.jit(jax.value_and_grad(tools.density.potential))(at, data)
        np.savez(target, *[np.asarray(leaf) for leaf in jax.tree.leaves(value)])
"""
"""The density at the start, with its gradient, where images are spread over two devices."""


def test_images_spread_over_devices_and_processes_give_the_same_density_and_gradient(tmp_path):
    """Bit by bit in two processes; of one device sums over images are rounded in another order."""
    zoo.cut(zoo.study("tiny"), images=60, classifiers=2).write(tmp_path / "study")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    script, study = textwrap.dedent(ON_DEVICES), str(tmp_path / "study")
    targets = [str(tmp_path / f"{number}.npz") for number in range(3)]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(rank), at, study, targets[number]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **more},
        )
        for number, (rank, at, more) in enumerate(
            [(0, address, {}), (1, address, {}), (0, "", {"XLA_FLAGS": flags})]
        )
    ]
    try:
        problem, data, tools = ready(bayesrep.read_study(study))
        at = tools.start(problem.model.start(data, problem.options))
        value = jax.jit(jax.value_and_grad(tools.density.potential))(at, data)
        assert len(data.answers[0].rows.sharding.device_set) == 1
        said = [process.communicate(timeout=240)[0] for process in running]
    finally:
        for process in running:
            process.kill()
            process.communicate()  # which waits, and closes what it reads from
    assert [process.returncode for process in running] == [0] * 3, "\n".join(said)
    found = [list(np.load(target).values()) for target in targets]
    for one, other, within, alone in zip(*found, jax.tree.leaves(value), strict=True):
        np.testing.assert_array_equal(one, other)
        for spread in (one, within):
            assert np.abs(spread - alone).max() <= 1e-10 * np.abs(alone).max()


def test_every_process_has_to_have_a_device(monkeypatch):
    class Device(NamedTuple):
        process_index: int

    monkeypatch.setattr(jax, "devices", lambda *_: [Device(0), Device(0), Device(1), Device(1)])
    broken = {"least": 3, "most": 4, "platform": "cpu", "count": 2}
    with refused(OptionError, "device-count-out-of-range", broken):
        spread_over("cpu", 2)
