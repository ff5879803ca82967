"""Answers that depend on each other: the likelihood, what it recovers, and the band."""

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from scipy import integrate, stats

import bayesrep
from bayesrep.checks.dependence import LEVELS, dependence_band
from bayesrep.errors import OptionError, PosteriorError
from bayesrep.inference.problem import pose, programs
from bayesrep.models.counts import DependentPairs, lay_out, log_pair_masses, selection_moments
from bayesrep.models.curves import curve_family
from bayesrep.models.mixtures import Mixtures
from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.binomial import log_binomial
from bayesrep.studies.statistics import Cells


def _cells(shown: int) -> Cells:
    k = np.arange(shown + 1)
    return Cells(k, np.full(shown + 1, shown), np.ones_like(k), np.zeros((shown + 1, 1), int))


@pytest.mark.parametrize("rho", [1e-6, 0.05, 0.5])
def test_answers_given_s_are_beta_binomial(rho):
    s, k = np.exp(logit_quadrature.nodes()[0]), np.arange(13)
    some = np.flatnonzero((s > 1e-3) & (s < 0.999))
    table = logit_quadrature.log_dependent(k, 12 - k, rho)[:, some] + log_binomial(12, k)[:, None]
    total = 1 / rho - 1
    wanted = stats.betabinom.logpmf(k[:, None], 12, s[some] * total, (1 - s[some]) * total)
    np.testing.assert_allclose(table, wanted, rtol=1e-6, atol=1e-7)


def test_masses_and_moments_are_integrals_over_s():
    """Two components and ρ = 0.1, held against adaptive quadrature over s."""
    weights, a, b, rho = np.array([0.3, 0.7]), np.array([2.0, 8.0]), np.array([3.0, 1.5]), 0.1
    with jax.enable_x64(new_val=True):
        mixtures = Mixtures(*map(jnp.asarray, (np.log(weights)[None], a, b)))
        pairs = lay_out(_cells(6), rho)
        assert isinstance(pairs, DependentPairs)
        masses = np.exp(np.asarray(log_pair_masses(mixtures, pairs)[0] + pairs.log_choices))
        family = curve_family("bernstein", 4, 3, monotone=False)
        mean, square = np.asarray(selection_moments(mixtures, pairs, family))

    def joint(s: float, k: int, j: int, power: int) -> float:
        density = float(weights @ stats.beta.pdf(s, a, b))
        given = stats.betabinom.pmf(k, 6, 9 * s, 9 * (1 - s)) * stats.binom.pmf(j, 4, s)
        return s**power * density * given

    for k, j in ((0, 0), (3, 4), (6, 2)):
        mass = sum(integrate.quad(joint, 0, 1, args=(k, other, 0))[0] for other in range(5))
        parts = [integrate.quad(joint, 0, 1, args=(k, j, power))[0] for power in range(3)]
        assert abs(masses[k] - mass) < 1e-8
        assert abs(mean[k, j] - parts[1] / parts[0]) < 1e-7
        assert abs(square[k, j] - parts[2] / parts[0]) < 1e-7


@pytest.mark.parametrize("curve", ["bernstein", "spline"])
@pytest.mark.parametrize("annotators", [10, (5, 20)])
def test_independent_answers_are_its_limit(curve, annotators):
    """With ρ = 10⁻⁹ the density is the exact one but for quadrature, whatever the n."""
    study = bayesrep.simulate_study(images=200, classifiers=3, annotators=annotators, seed=1)
    values = []
    with jax.enable_x64(new_val=True):
        for rho in (0.0, 1e-9):
            problem = pose(study, model="joint", options={"curve": curve, "dependence": rho})
            data = problem.data()
            tools = programs(problem, data)
            start = tools.start(problem.model.start(data, problem.options))
            values.append(
                [
                    float(tools.density.potential({n: x + by for n, x in start.items()}, data))
                    for by in (0.0, 0.3, -0.2)
                ]
            )
    np.testing.assert_allclose(values[1], values[0], rtol=1e-6)


@pytest.fixture(scope="module")
def crowded():
    study = bayesrep.simulate_study(
        seed=3, images=2000, classifiers=6, scenario="crowded-grid", dependence=0.1
    )
    return study, bayesrep.fit(study, method="laplace", progress=False)


def test_the_right_correlation_takes_the_bias_away(crowded):
    """One study, seed fixed: at 0.1 the truth is within 2.5 sd of the mean gap, at 0 beyond 3."""
    study, plain = crowded
    informed = bayesrep.fit(study, method="laplace", progress=False, dependence=0.1)
    truth = (study.truth.reference_accuracy - study.truth.adjusted_accuracy).mean()
    off = []
    for posterior in (plain, informed):
        gap = posterior["posterior"]["bias_corrected_gap"].values.mean(axis=2)
        off.append(abs(gap.mean() - truth) / gap.std())
    assert off[0] > 3
    assert off[1] < 2.5
    # The band says from the plain fit what the other one finds, within half its sd.
    shift = dependence_band(plain, (0.1,))["shift"][0]
    means = [p["posterior"]["bias_corrected_gap"].values.mean() for p in (plain, informed)]
    sd = informed["posterior"]["bias_corrected_gap"].values.mean(axis=2).std()
    assert abs(means[0] + shift - means[1]) < 0.5 * sd


def test_the_band_begins_at_the_fit(crowded):
    band = dependence_band(crowded[1])
    assert band.columns == ["dependence", "shift", "widening", "support"]
    assert band["dependence"].to_list() == list(LEVELS)
    assert abs(band["shift"][0]) < 1e-9
    assert abs(band["widening"][0] - 1) < 1e-6
    assert band.equals(dependence_band(crowded[1]))
    assert (band["shift"].to_numpy()[1:] < 0).all()


def test_every_verdict_names_what_it_rests_on(crowded):
    study, posterior = crowded
    diagnosis = bayesrep.diagnose(posterior)
    assert diagnosis.assumption == (
        "annotators answered independently and images of both data sets are alike where they are "
        "selected as often"
    )
    assert diagnosis.dependence is not None
    told = [sentence for sentence in diagnosis.sentences if "No check can see" in sentence]
    assert len(told) == 1
    assert "With another correlation the mean gap, " in told[0]
    assert " at 0.1" in told[0]
    row = diagnosis.checks.filter(pl.col("check") == "dependence of annotators' answers")
    assert row["trust"].to_list() == ["yes"]
    other = bayesrep.fit(study, method="laplace", progress=False, dependence=0.1)
    assert "intraclass correlation of 0.1" in bayesrep.diagnose(other).assumption


def test_counts_can_speak_against_a_correlation():
    """Hundreds of images with 36 independent answers each scatter too little for 0.2."""
    study = bayesrep.simulate_study(seed=1, images=1000, annotators=36, classifiers=2)
    posterior = bayesrep.fit(study, method="laplace", progress=False)
    band = dependence_band(posterior, (0.0, 0.2))
    assert abs(band["support"][0]) < 1e-6
    assert band["support"][1] < -100
    assert "These counts speak against" in bayesrep.diagnose(posterior).sentences[-1]


@pytest.mark.parametrize("value", [-0.1, 1.0, float("nan"), "much", True, (0.1, 0.2)])
def test_impossible_correlations_are_refused(value):
    study = bayesrep.simulate_study(images=20, classifiers=2)
    with pytest.raises(OptionError, match="dependence is a"):
        bayesrep.fit(study, dependence=value, progress=False)


def test_levels_out_of_range_and_posteriors_without_counts(crowded):
    with pytest.raises(OptionError, match="dependence is a correlation"):
        dependence_band(crowded[1], (0.1, 1.5))
    bare = crowded[1].copy()
    del bare["observed_data"]
    with pytest.raises(PosteriorError, match="observed_data"):
        dependence_band(bare)
