"""The experiments on starts of EM and on the published integration rule, on small inputs."""

import json

import numpy as np
import pytest

from bayesrep.estimators import EMSpline
from bayesrep.estimators.betas import LogBetas
from bayesrep.estimators.mixtures import complete_cells, fit_mixtures
from experiments import em_options, em_starts, quadrature
from experiments.mixture_ends import Ends, ends_of, follow, published_score, published_starts
from experiments.results import recorded
from experiments.studies import Chosen, simulated


@pytest.fixture(scope="module")
def chosen() -> Chosen:
    return simulated(0, "command", images=800, annotators=12, classifiers=3)


@pytest.mark.parametrize(
    ("a", "b", "whole", "total"),
    [(8.0, 1.2, -0.011, 0.998), (5.0, 0.6, -0.12, 0.968), (0.5, 0.5, -0.17, 0.970)],
)
def test_the_rule_misses_what_was_measured_on_the_published_code(a, b, whole, total):
    found = quadrature.of_beta(a, b)
    assert found["selected_by_all"] == pytest.approx(whole, abs=0.006)
    assert 1 + found["total"] == pytest.approx(total, abs=6e-4)


def test_a_smooth_density_loses_the_missing_step():
    found = quadrature.of_beta(5.0, 4.0)
    assert found["total"] == pytest.approx(-1e-3, abs=1e-9)


def test_the_rules_differ_by_little_where_densities_are_smooth(chosen: Chosen):
    found = quadrature.of_study(chosen, components=(1,), losses=("least-squares",))
    json.dumps(found, allow_nan=False)
    (fit,) = found["fits"]
    part = fit["losses"]["least-squares"]
    assert len(part["difference"]) == 3
    gap = part["published_error"] - part["exact_error"]
    assert part["mean_difference"] == pytest.approx(gap, abs=1e-12)
    assert abs(part["worst"]) >= abs(part["mean_difference"])


def test_published_starts_are_whole_numbers_and_repeat():
    first, again = published_starts(20, 3, seed=1), published_starts(20, 3, seed=1)
    np.testing.assert_array_equal(first.log_a, again.log_a)
    parameters = np.exp([first.log_a, first.log_b])
    np.testing.assert_allclose(parameters, parameters.round())
    assert parameters.min().round() >= 2
    assert parameters.max().round() <= 9
    np.testing.assert_allclose(np.exp(first.log_weights).sum(axis=-1), 1)


def test_the_best_of_every_few_is_theirs():
    heights = np.array([[1.0, 5, 2, 3, 9, 8], [4.0, 3, 2, 1, 0, -1]])
    field = np.repeat(heights[..., None], 2, axis=2)
    ends = Ends(LogBetas(field, field, field), heights)
    np.testing.assert_array_equal(ends.best_of(3).heights, [[5, 9], [4, 1]])
    np.testing.assert_array_equal(ends.best_of(3).mixture.log_a[..., 0], [[5, 9], [4, 1]])
    np.testing.assert_array_equal(ends.best_of(3, -heights).heights, [[1, 3], [2, -1]])


def test_with_one_component_the_published_score_is_the_likelihood(chosen: Chosen):
    table = complete_cells(chosen.all_cells)
    ends = ends_of([fit_mixtures(table, components=1, starts=2, newton=False)])
    again = follow(table, ends.mixture, 0)
    np.testing.assert_allclose(published_score(ends, table), again.heights, rtol=1e-10)


def test_no_climb_ends_above_the_best(chosen: Chosen, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(em_starts, "ROUNDS", (10, em_starts.PUBLISHED))
    study = em_starts.of_study(chosen, seed=0, starts=10)
    found = {"starts": 10, "studies": [study]}
    json.dumps(found, allow_nan=False)
    for short in (*study["after"].values(), *(s["short"] for s in study["strategies"].values())):
        assert np.min(short) >= -1e-6
    assert np.all(np.array(study["after"]["10"]) >= np.array(study["after"]["200"]) - 1e-6)
    assert set(study["strategies"]) == set(em_starts.STRATEGIES)
    assert em_starts.DEFAULT in em_starts.remarks(found)
    assert em_starts.remarks(found).count("converged") == 1


def test_every_option_meets_the_same_studies(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(em_options, "COMPONENTS", (1,))
    monkeypatch.setattr(em_options, "CLASSIFIERS", 3)
    found = em_options.numbers((0,), ((800, 12),))
    json.dumps(found, allow_nan=False)
    (size,) = found["sizes"]
    assert len(size["errors"]) == 2 + 2 * len(em_options.CURVES)
    # the same study, given its default options by the estimator itself
    chosen = simulated(0, "", images=800, annotators=12, classifiers=3)
    with recorded():
        adjusted = EMSpline(components=1)(chosen.all_cells).value[0]
    expected = float(adjusted.mean() - chosen.truth.mean())
    assert size["errors"]["K = 1, least-squares, optimum"] == [pytest.approx(expected, abs=1e-9)]
    assert em_options.rms([3.0, -4.0]) == pytest.approx(np.sqrt(12.5))
    assert "1 studies" in em_options.remarks(found)
