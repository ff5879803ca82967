"""The shared-difficulty model: its likelihood by brute force, its reductions, its hard cases."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import textwrap
import warnings
from typing import NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

import bayesrep
from bayesrep.cli import main
from bayesrep.errors import ConvergenceWarning, PosteriorError, StudyError
from bayesrep.inference.dense import dense_hessian
from bayesrep.inference.device import spread_over
from bayesrep.inference.problem import around_mode, pose, programs
from bayesrep.models.answers import (
    conditional_logit,
    difficulty_nodes,
    image_moments,
    lay_out_answers,
    log_answers,
)
from bayesrep.models.curves import EvenBends
from bayesrep.studies.statistics import Patterns, patterns_of
from bayesrep.summary import joint_draws

pytestmark = pytest.mark.usefixtures("float64")

X, M = 5, 4

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
    study = bayesrep.simulate_study(seed=3, images=300, classifiers=1)
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


def test_the_mode_is_one_and_the_whitening_whitens(study):
    problem, data, tools = ready(study)
    white = around_mode(problem, tools, data)
    gradient = jax.jit(jax.grad(tools.density.potential))(white.center, data)
    hessian = np.asarray(jax.jit(lambda at: dense_hessian(tools.density, at, data))(white.center))
    flat = np.concatenate([np.ravel(gradient[name]) for name in ("shared", "units")])
    assert np.abs(white.root.T @ flat).max() < 1e-3
    identity = np.asarray(white.root).T @ hessian @ np.asarray(white.root)
    np.testing.assert_allclose(identity, np.eye(len(flat)), atol=0.02)
    volume = -0.5 * np.linalg.slogdet(hessian)[1]
    assert np.linalg.slogdet(np.asarray(white.root))[1] == pytest.approx(volume, abs=1e-2)


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
    moved = joint_draws(made, alone).adjusted.mean(axis=2).std()
    assert moved / spreads[1] == pytest.approx(1, abs=0.2)


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


def test_what_a_fit_holds(study, posterior):
    group = posterior.posterior
    population = group["population_reference_accuracy"].values
    np.testing.assert_allclose(
        group["population_gap"].values, population - group["adjusted_accuracy"].values
    )
    assert group["loading"].dims == ("chain", "draw", "classifier", "factor")
    truth = study.truth.reference_accuracy
    sd = population.std(axis=(0, 1))
    assert (np.abs(population.mean(axis=(0, 1)) - truth) < 4 * sd).all()
    assert posterior.log_density["log_right"].shape[2] == 4
    assert group.attrs["model"] == "shared-difficulty"


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


def test_the_sandwich_knows_what_the_model_knows(study, posterior, joint):
    """The collapsed posterior of the mean is too narrow; both remedies widen it alike."""

    def mean_sd(draws):
        return draws.mean(axis=-1).std()

    moved, whole = (joint_draws(study, p) for p in (joint, posterior))
    narrow = mean_sd(joint.posterior["adjusted_accuracy"].values)
    assert mean_sd(moved.adjusted) > 1.15 * narrow
    assert mean_sd(moved.adjusted) / mean_sd(whole.adjusted) == pytest.approx(1, abs=0.15)
    gaps = [mean_sd(both.reference - both.adjusted) for both in (moved, whole)]
    assert gaps[0] / gaps[1] == pytest.approx(1, abs=0.2)
    np.testing.assert_allclose(
        moved.adjusted.std(axis=(0, 1)),
        joint.posterior["adjusted_accuracy"].values.std(axis=(0, 1)),
        rtol=1e-6,
    )
    again = joint_draws(study, joint)
    np.testing.assert_array_equal(moved.reference, again.reference)


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
    (told,) = [line for line in text.splitlines() if line.startswith("No slope is told")]
    assert "Fit the joint model" in told
    (populations,) = [line for line in text.splitlines() if "other images of the same" in line]
    assert "slope" not in populations


def test_statistics_alone_do_not_tell_how_a_collapsed_models_classifiers_go_together(
    study, joint, posterior
):
    statistics = bayesrep.SufficientStatistics.from_study(study)
    for fit in (joint, posterior):
        assert not any(bayesrep.summarize(statistics, fit).null_count().row(0))
    assert len(bayesrep.summarize_gaps(statistics, posterior)) == 8
    with pytest.raises(StudyError, match="takes the study itself"):
        bayesrep.summarize_gaps(statistics, joint)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"factors": 5}, "factors must be from 1 to 3"),
        ({"nodes": 2}, "nodes >= 3"),
        ({"loading": (1.0, 0.0)}, "loading is .mean, sd."),
        ({"groups": "superclass"}, "takes no groups"),
        ({"method": "flow"}, "method='nuts' or 'laplace'"),
        ({"method": "nuts", "feedback": "cut"}, "feedback='full'"),
        ({"devices": 99}, "devices must be from 1 to"),
    ],
)
def test_what_is_refused(study, arguments, message):
    with pytest.raises(ValueError, match=message):
        fitted(study, **arguments)


def test_more_is_refused(study, joint):
    two = bayesrep.simulate_study(images=50, classifiers=2)
    with pytest.raises(ValueError, match="3 factors need as many classifiers; the study has 2"):
        fitted(two, factors=3)
    with pytest.raises(ValueError, match="needs the study itself"):
        fitted(bayesrep.SufficientStatistics.from_study(study))
    with pytest.raises(ValueError, match="does not grow with the images"):
        pose(study, model="joint", options={}, mesh=spread_over("cpu", 1))
    with pytest.raises(PosteriorError, match="knows no difficulty of single images"):
        bayesrep.describe_images(study, joint)
    with pytest.raises(PosteriorError, match="fingerprints differ"):
        bayesrep.check_agreement(two, joint)
    with pytest.raises(StudyError, match="shown is 0 for image"):
        bayesrep.Study.from_arrays(
            reference={"selected": [0], "shown": [0], "correct": [[True]]},
            replication={"selected": [0], "shown": [1], "correct": [[True]]},
            classifiers=["a"],
        )


def test_shared_fits_are_not_compared_answer_by_answer(posterior, joint):
    with pytest.raises(PosteriorError, match="cannot be left out alone"):
        bayesrep.checks.compare_fits({"a": joint, "b": posterior})


def test_images_spread_over_devices_give_the_same_density_and_gradient():
    script = """
        import jax, numpy as np, bayesrep
        from bayesrep.inference.device import spread_over
        from bayesrep.inference.problem import pose, programs
        study = bayesrep.simulate_study(seed=1, images=700, classifiers=5)
        found = []
        with jax.enable_x64(new_val=True):
            for mesh in (None, spread_over("cpu", 2)):
                problem = pose(study, model="shared-difficulty", options={}, mesh=mesh)
                data = problem.data()
                tools = programs(problem, data)
                at = tools.start(problem.model.start(data, problem.options))
                value = jax.jit(jax.value_and_grad(tools.density.potential))(at, data)
                found.append([np.asarray(leaf) for leaf in jax.tree.leaves(value)])
                spread = len(data.answers[0].rows.sharding.device_set)
                assert spread == (1 if mesh is None else 2), spread
        for one, other in zip(*found, strict=True):
            assert np.abs(one - other).max() <= 1e-10 * np.abs(one).max()
        print("same")
    """
    flags = os.environ.get("XLA_FLAGS", "")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XLA_FLAGS": f"{flags} --xla_force_host_platform_device_count=2"},
    )
    assert done.stdout.strip() == "same", done.stderr


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
            process.wait()
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


def test_every_process_has_to_have_a_device(monkeypatch):
    class Device(NamedTuple):
        process_index: int

    monkeypatch.setattr(jax, "devices", lambda *_: [Device(0), Device(0), Device(1), Device(1)])
    with pytest.raises(ValueError, match="devices must be from 3 to 4 .cpu.; got 2"):
        spread_over("cpu", 2)
