"""How much classifiers say together: closed forms of the weight, and what is sampled with it."""

import dataclasses
import inspect
import warnings
from functools import partial
from importlib import import_module

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zoo
from scipy import special, stats
from toys import COUNTS, DATA, Normal, expanding, log_own, skewed, some, whitened

import bayesrep
from bayesrep.choices import STRATEGIES
from bayesrep.inference.data_driven import between_classifier_sd, widen_priors
from bayesrep.inference.density import build_density
from bayesrep.inference.laplace_marginal import Marginal
from bayesrep.inference.marginal_mode import evaluation_program, find_marginal_mode
from bayesrep.inference.mode import find_mode, log_mass
from bayesrep.inference.problem import pose
from bayesrep.numerics.estimands import accuracy_line, errors_in_variables_line
from bayesrep.posterior.verdict import Verdict
from bayesrep.report.figure_registry import find_figure
from bayesrep.studies.overlap import overlap_weight
from bayesrep.studies.statistics import Cells, SufficientStatistics

fit_module = import_module("bayesrep.inference.fit")


def cells_of(correct, selected=None, shown=4):
    """The replication's cells of answers [image, classifier]."""
    correct = np.asarray(correct)
    selected = np.full(len(correct), 2) if selected is None else selected
    data = {"selected": selected, "shown": shown, "correct": correct}
    study = bayesrep.Study.from_arrays(
        reference=data,
        replication=data,
        classifiers=[f"c{index}" for index in range(correct.shape[1])],
    )
    return SufficientStatistics.of(study).replication


def test_the_weight_is_the_sum_of_variances_over_the_variance_of_the_sum():
    rng = np.random.default_rng(0)
    selected = rng.integers(0, 5, 400)
    hard = rng.normal(size=(400, 1)) + 0.3 * selected[:, None]
    correct = hard + rng.normal(size=(400, 7)) > 0.5
    alone = together = 0.0
    for k in range(5):
        some_images = correct[selected == k]
        left = some_images - some_images.mean(axis=0)
        alone += np.square(left).sum()
        together += np.square(left.sum(axis=1)).sum()
    cells = cells_of(correct, selected)
    assert overlap_weight([cells]) == pytest.approx(alone / together, rel=1e-12)
    # Tables of groups, or of shards, count together.
    parts = [cells_of(correct[rows], selected[rows]) for rows in (slice(0, 150), slice(150, 400))]
    alone, together = 0.0, 0.0
    for part in parts:
        right = part.correct.sum(axis=1)
        alone += (part.correct - part.correct**2 / part.images[:, None]).sum()
        together += (part.squares - right**2 / part.images).sum()
    assert overlap_weight(parts) == pytest.approx(alone / together, rel=1e-12)


def test_one_counts_in_full_and_copies_as_one():
    rng = np.random.default_rng(1)
    one = rng.random((300, 1)) < 0.7
    assert overlap_weight([cells_of(one)]) == 1.0
    assert overlap_weight([cells_of(np.repeat(one, 5, axis=1))]) == pytest.approx(1 / 5)
    families = np.repeat(rng.random((20_000, 2)) < 0.7, 3, axis=1)
    assert overlap_weight([cells_of(families)]) == pytest.approx(1 / 3, rel=0.05)
    always = np.concatenate([one, np.ones((300, 9), dtype=bool)], axis=1)
    # What never errs says nothing of what all share.
    assert overlap_weight([cells_of(always)]) == pytest.approx(1.0)


def test_where_nothing_tells_it_is_that_of_copies_or_of_strangers():
    alone = cells_of(np.eye(4, 3, dtype=bool), np.arange(4))
    assert overlap_weight([alone]) == pytest.approx(1 / 3)
    cells = cells_of(np.random.default_rng(2).random((50, 3)) < 0.5)
    unknown = Cells(cells.selected, cells.shown, cells.images, cells.correct)
    assert overlap_weight([unknown]) == 1.0
    with pytest.raises(bayesrep.StudyError) as error:
        Cells(*_fields(unknown), squares=cells.squares * 0)
    assert error.value.rule == "cells-squares-too-small"


def _fields(cells):
    return cells.selected, cells.shown, cells.images, cells.correct


def test_statistics_add_up_and_tell_studies_apart_by_it():
    rng = np.random.default_rng(3)
    correct = rng.random((60, 3)) < 0.6
    whole, parts = cells_of(correct), [cells_of(correct[:25]), cells_of(correct[25:])]
    assert sum(int(part.squares.sum()) for part in parts) == int(whole.squares.sum())
    assert int(whole.squares[0]) == int(np.square(correct.sum(axis=1)).sum())
    completed = whole.completed(np.array([4]))
    assert completed.squares.tolist() == [0, 0, int(whole.squares[0]), 0, 0]


# --- what is sampled


@pytest.mark.usefixtures("float64")
def test_what_units_say_of_what_they_share_is_raised_to_the_weight():
    """The marginal potential of skewed units, by quadrature over each unit."""
    weight, counts = 0.4, jnp.asarray(COUNTS)
    density = build_density(skewed, counts, select=some, weight=lambda data: jnp.asarray(weight))
    mode = whitened(density, counts, density.origin())
    setting = find_marginal_mode(density, mode, counts, expanding(density))
    points = np.linspace(-1.5, 1.5, 7)[:, None]
    white = setting.whitening
    levels = np.asarray(white.center["shared"]) + points @ np.asarray(white.to_shared).T
    grid = np.linspace(-15, 15, 20_001)
    wanted = []
    for (level,) in levels:
        masses = [
            np.log(np.trapezoid(np.exp(log_own(level, count, grid)), grid)) for count in COUNTS
        ]
        wanted.append(-stats.norm.logpdf(level, 0, 3.0) - weight * sum(masses))
    # The units' normals miss a little of each, w of which is left; estimates from draws do not.
    laplace = evaluation_program(density)(setting, points)[0]
    draw = jax.vmap(partial(Marginal(density).draw, setting), (None, 0))
    keys = jax.random.split(jax.random.key(0), 1000)
    drawn = jax.jit(lambda at: jax.lax.map(lambda each: draw(each, keys).log_marginal, at))(points)
    for found, error in ((laplace, 0.2), (-np.asarray(drawn).mean(axis=1), 0.1)):
        np.testing.assert_allclose(found - found[3], np.array(wanted) - wanted[3], atol=error)
    estimate = np.array(wanted) - 0.5 * np.square(points[:, 0])
    assert np.ptp(estimate[1:-1]) < 0.3  # and the coordinates are those of the weighted density


@pytest.mark.usefixtures("float64")
def test_the_mode_and_the_coordinates_of_normal_units_are_by_the_weight():
    """By linear algebra: precision of the mean 1/4 + w Σ 1/(0.49 + 0.25), each unit's as before."""
    toy, weight = Normal(), 0.2
    density = build_density(
        toy.density.model, toy.data, select=some, weight=lambda data: jnp.asarray(weight)
    )
    expand = expanding(density)
    there = expand(density.origin(), toy.data)
    white = whitened(density, toy.data, density.origin())
    spread = np.asarray(white.to_shared @ white.to_shared.T)
    units = len(toy.data)
    np.testing.assert_allclose(spread, np.eye(2) / (1 / 4 + weight * units / 0.74), rtol=1e-9)
    own = np.asarray(white.to_units @ white.to_units.swapaxes(1, 2))
    wanted = np.broadcast_to(np.eye(2) / (1 / 0.49 + 1 / 0.25), own.shape)
    np.testing.assert_allclose(own, wanted, rtol=1e-9)
    assert float(there.hessian.weight) == weight
    # The mass, by quadrature over each mean of what units say of it, raised to the weight.
    grid = np.linspace(-9, 9, 2001)[:, None]
    wanted = 0.0
    for seen in DATA.T:
        said = weight * stats.norm.logpdf(seen, grid, np.sqrt(0.74)).sum(axis=1)
        mass = np.exp(said + stats.norm.logpdf(grid[:, 0], 0, 2.0))
        wanted += np.log(np.trapezoid(mass, grid[:, 0]))
    found = log_mass(find_mode(expand, density.origin(), toy.data))
    assert found == pytest.approx(wanted, rel=1e-9)


# --- how far classifiers differ


def test_priors_are_as_wide_as_classifiers_differ_and_no_narrower():
    accuracy = np.array([0.02, 0.5, 0.98])
    right = np.round(10_000 * accuracy).astype(np.int64)
    cells = Cells(*(np.array([each]) for each in (2, 4, 10_000)), right[None])
    logit = np.log(accuracy / (1 - accuracy))
    assert between_classifier_sd(cells) == pytest.approx(logit.std(ddof=1), rel=0.01)

    tiny = pose(zoo.study("tiny"), model="joint", options={})
    assert widen_priors(tiny, ()) is tiny
    statistics = SufficientStatistics(
        ("a", "b", "c"), dict.fromkeys(("reference", "replication"), cells)
    )
    wide = dataclasses.replace(tiny, statistics=statistics)
    options = widen_priors(wide, ()).options
    ratio = options.classifier_level / 0.75
    assert ratio <= between_classifier_sd(cells) / np.hypot(0.75, 0.25) < ratio * np.sqrt(2)
    assert options.classifier_slope == pytest.approx(0.5 * np.sqrt(ratio))
    kept = widen_priors(wide, ("classifier_level",)).options
    assert (kept.classifier_level, kept.classifier_slope) == (0.75, options.classifier_slope)


def test_what_chance_adds_is_no_difference_of_classifiers():
    """Logits of sd 0.5, counted on 50 images, of which chance would make 0.6."""
    random = np.random.default_rng(0)
    right = random.binomial(50, special.expit(0.8 + 0.5 * random.normal(size=4000)))
    cells = Cells(*(np.array([each]) for each in (2, 4, 50)), right[None])
    assert between_classifier_sd(cells) == pytest.approx(0.5, rel=0.05)


# --- until it holds


def test_strategies_are_tried_until_one_is_reliable_and_the_last_counts_whatever_it_is(
    monkeypatch,
):
    study = zoo.cut(zoo.study("tiny"), images=60)

    def attempt(reliable):
        tried = []

        def pretend(strategy, run, classes, *, warmup, is_last):
            tried.append((strategy.description, is_last, run.times))
            verdict = Verdict(
                converged=strategy.description in reliable, sentence=f"No, {len(tried)}."
            )
            return verdict, {}, {}

        monkeypatch.setattr(fit_module, "_attempt", pretend)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bayesrep.ConvergenceWarning)
            tree = inspect.unwrap(bayesrep.fit)(study, progress=False)
        return tree.attrs, tried

    first = "Weighted draws of the normal approximation"
    assert attempt([first])[1] == [(first, False, 1)]
    made, tried = attempt(["Chains 4 times as long"])
    assert made["converged"]
    assert made["tried"] == f"{first}: No, 1. Chains: No, 2."
    assert [times for *_, times in tried] == [1, 1, 4]
    made, tried = attempt([])
    assert not made["converged"]
    assert [last for _, last, _ in tried] == [False, False, False, True]


def test_who_names_chains_or_a_warm_up_gets_chains():
    problem = pose(zoo.study("tiny"), model="joint", options={})
    for of_chains, first in ((False, "laplace"), (True, "nuts")):
        every = fit_module._list_strategies(problem, "auto", "full", of_chains=of_chains)
        assert every[0].method == first
        assert [each.times for each in every if each.takes_chains] == [1, 4, 16]
    cut = fit_module._list_strategies(problem, "auto", "cut", of_chains=False)
    assert {dataclasses.replace(each, times=1) for each in cut} == {STRATEGIES["cut"]}
    quick = fit_module._list_strategies(problem, "laplace", "full", of_chains=True)
    assert quick == [STRATEGIES["laplace"]]


def test_by_default_weights_decide_and_tables_speak_of_them():
    study = zoo.study("tiny")
    posterior = zoo.posterior("tiny", progress=False)
    made = posterior.posterior.attrs
    assert (made["method"], made["asked_method"], made["tried"]) == ("laplace", "auto", "")
    assert dict(posterior.posterior.sizes)["chain"] == 1
    assert posterior.posterior.sizes["draw"] == 3_000
    rows = bayesrep.summarize(study, posterior, all_columns=True)
    assert rows["rhat"].null_count() == len(rows)
    assert rows["ess_bulk"].to_list() == [made["ess"]] * len(rows)
    weight = overlap_weight([SufficientStatistics.of(study).replication])
    assert made["classifier_weight"] == pytest.approx(weight)
    with pytest.raises(bayesrep.errors.OptionError) as error:
        find_figure("energy").draw(study, posterior)
    assert error.value.rule == "figure-of-chains"


# --- slopes of what is uncertain


@pytest.mark.parametrize("common", [0.0, 0.8])
def test_a_line_of_draws_is_not_attenuated_by_their_spread(common):
    """Truth on a line, estimates about it, draws about these: slopes are right on average.

    Also where a classifier's two accuracies err together.
    """
    rng = np.random.default_rng(5)
    slopes, plain = [], []
    for _ in range(60):
        x = 0.7 + 0.05 * rng.normal(size=40)
        y = 0.1 + 0.8 * x
        noise = 0.015 * np.linalg.cholesky([[1.0, common], [common, 1.0]])
        means = np.stack([x, y]) + noise @ rng.normal(size=(2, 40))
        draws = means[:, None, None] + np.tensordot(noise, rng.normal(size=(2, 1, 400, 40)), 1)
        slopes.append(errors_in_variables_line(*draws)[0].mean())
        plain.append(np.mean(accuracy_line(*draws)[0]))
    error = np.std(slopes) / np.sqrt(len(slopes))
    assert abs(np.mean(slopes) - 0.8) < 4 * error
    added = 2 * 0.015**2 / 0.05**2  # to the spread of x, and as much in common to both
    assert np.mean(plain) == pytest.approx((0.8 + added * common) / (1 + added), abs=0.04)


def test_classifiers_too_alike_have_no_line():
    rng = np.random.default_rng(6)
    x = 0.7 + 0.01 * rng.normal(size=30)
    draws = x + 0.01 * rng.normal(size=(1, 300, 30))
    slope, intercept = errors_in_variables_line(draws, draws)
    assert np.isnan(slope).all()
    assert np.isnan(intercept).all()
    slope, _ = errors_in_variables_line(*[np.broadcast_to(x, (1, 5, 30))] * 2)
    np.testing.assert_allclose(slope, 1.0)
