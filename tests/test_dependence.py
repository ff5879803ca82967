"""Answers that depend on each other: the likelihood, what it recovers, and the band."""

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
import zoo
from refusals import refused
from scipy import integrate, stats

import bayesrep
from bayesrep.checks.dependence import (
    CORRELATION_LEVELS,
    MIN_SUPPORT,
    assumption,
    dependence_band,
    judge_dependence,
)
from bayesrep.errors import OptionError, PosteriorError
from bayesrep.inference.problem import pose, programs
from bayesrep.models.counts import DependentPairs, lay_out, log_pair_masses
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


def test_masses_are_integrals_over_s():
    """Two components and ρ = 0.1, held against adaptive quadrature over s."""
    weights, a, b, rho = np.array([0.3, 0.7]), np.array([2.0, 8.0]), np.array([3.0, 1.5]), 0.1
    with jax.enable_x64(new_val=True):
        mixtures = Mixtures(*map(jnp.asarray, (np.log(weights)[None], a, b)))
        pairs = lay_out(_cells(6), rho)
        assert isinstance(pairs, DependentPairs)
        masses = np.exp(np.asarray(log_pair_masses(mixtures, pairs)[0] + pairs.log_choices))

    def joint(s: float, k: int) -> float:
        density = float(weights @ stats.beta.pdf(s, a, b))
        return density * stats.betabinom.pmf(k, 6, 9 * s, 9 * (1 - s))

    for k in (0, 3, 6):
        assert abs(masses[k] - integrate.quad(joint, 0, 1, args=(k,))[0]) < 1e-8


@pytest.mark.parametrize("curve", ["bernstein", "spline"])
@pytest.mark.parametrize("name", ["tiny", "ragged"])
def test_independent_answers_are_its_limit(curve, name):
    """With ρ = 10⁻⁹ the density is the exact one but for quadrature, whatever the n."""
    study = zoo.cut(zoo.study(name), images=200, classifiers=3)
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
def plain():
    return zoo.posterior("tiny", **zoo.QUICK)


def test_the_band_begins_at_the_fit(plain):
    band = dependence_band(plain)
    assert band.columns == ["dependence", "shift", "widening", "support"]
    assert band["dependence"].to_list() == list(CORRELATION_LEVELS)
    assert abs(band["shift"][0]) < 1e-9
    assert abs(band["widening"][0] - 1) < 1e-6
    assert band.equals(dependence_band(plain))
    assert (band["shift"].drop_nulls().to_numpy()[1:] < 0).all()


def test_every_verdict_names_what_it_rests_on(plain):
    diagnosis, rests = bayesrep.diagnose(plain), assumption(plain)
    assert diagnosis.assumption.startswith(rests)
    assert diagnosis.dependence is not None
    (told,) = [sentence for sentence in diagnosis.sentences if rests in sentence]
    gap = plain["posterior"]["bias_corrected_gap"].values.mean()
    assert f"{100 * gap:.1f} points" in told
    for row in diagnosis.dependence.filter(pl.col("dependence") > 0).iter_rows(named=True):
        shown = f"{100 * (gap + (row['shift'] or 0)):.1f} at {row['dependence']:g}"
        assert (shown in told) is (row["support"] is not None and row["support"] > MIN_SUPPORT)
    row = diagnosis.checks.filter(pl.col("check") == "dependence of annotators' answers")
    assert row["trust"].to_list() == ["yes"]
    assert row["value"].to_list() == ["0 assumed"]


def test_a_verdict_rests_on_the_correlation_of_the_fit():
    other = zoo.posterior("tiny", dependence=0.1, **zoo.QUICK)
    diagnosis = bayesrep.diagnose(other)
    assert diagnosis.assumption.startswith(assumption(other))
    assert " 0.1" in assumption(other)
    row = diagnosis.checks.filter(pl.col("check") == "dependence of annotators' answers")
    assert row["value"].to_list() == ["0.1 assumed"]


def test_counts_can_speak_against_a_correlation():
    """Hundreds of images with 36 independent answers each scatter too little for 0.2."""
    posterior = zoo.posterior("images", **zoo.QUICK)
    band = dependence_band(posterior, (0.0, 0.2))
    assert abs(band["support"][0]) < 1e-6
    assert band["support"][1] < -100
    (row,) = judge_dependence(posterior)[0].filter(dependence=0.2).to_dicts()
    assert row["support"] is None or row["support"] < MIN_SUPPORT
    said = judge_dependence(posterior)[1].sentence
    assert "between the answers about an image" in said
    # What the counts rule out is not advised.
    assert "dependence=0.2" not in said


@pytest.mark.parametrize(
    ("value", "broken"),
    [
        (-0.1, ("dependence-out-of-range", {"dependence": -0.1})),
        (1.0, ("dependence-out-of-range", {"dependence": 1.0})),
        (float("nan"), ("option-not-number",)),
        ("much", ("option-not-number", {"value": "much"})),
        (True, ("option-not-number", {"value": True})),
        ((0.1, 0.2), ("option-not-number",)),
    ],
)
def test_impossible_correlations_are_refused(value, broken):
    with refused(OptionError, *broken):
        bayesrep.fit(zoo.study("tiny"), dependence=value, progress=False)


def test_levels_out_of_range_and_posteriors_without_counts(plain):
    with refused(OptionError, "dependence-out-of-range", {"dependence": 1.5}):
        dependence_band(plain, (0.1, 1.5))
    bare = plain.copy()
    del bare["observed_data"]
    missing = {"missing_part": "observed_data (correct)"}
    with refused(PosteriorError, "posterior-part-missing", missing):
        dependence_band(bare)
