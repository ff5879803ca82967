"""What a user is told of a fit: predictions, comparison, prior sensitivity, diagnosis."""

import json

import numpy as np
import polars as pl
import pytest
import xarray as xr
import zoo
from refusals import refused
from scipy import stats
from scipy.special import logit

from bayesrep import PosteriorError
from bayesrep.checks import (
    chains,
    comparison,
    diagnosis,
    discrepancy,
    misfits,
    predictions,
)
from bayesrep.checks import prior as sensitivity
from bayesrep.checks.finding import UNTESTED, family_wise
from bayesrep.checks.width import judge_width
from bayesrep.numerics import pareto
from bayesrep.numerics.codes import encode
from bayesrep.numerics.pareto import pareto_smooth
from bayesrep.posterior.files import arviz, build_posterior
from bayesrep.posterior.groups import CellNames, find_group, thinned_draws
from bayesrep.posterior.likelihood import LOGIT_VARS, logit_codes
from bayesrep.report.fits_text import fits_text
from bayesrep.report.sections.trust_figures import checks_figure
from bayesrep.studies.vocabulary import Words


@pytest.fixture(scope="module")
def study():
    return zoo.study("tiny")


@pytest.fixture(scope="module")
def posterior():
    return zoo.posterior("tiny", **zoo.SHORT)


def _parts(posterior, *names):
    """Groups and coordinates of a posterior, to build another one of."""
    groups, coordinates = {}, {}
    for name in names:
        group = find_group(posterior, name)
        flat = [c for c in group.coords if len(group[c].dims) == 1]
        variables = {*group.data_vars, *group.coords}.difference(flat)
        groups[name] = {str(v): (group[v].dims, group[v].values) for v in variables}
        coordinates |= {str(c): (group[c].dims[0], group[c].values) for c in flat}
    return groups, {n: c for n, c in coordinates.items() if n not in ("chain", "draw")}


NAMES = (
    "posterior",
    "sample_stats",
    "log_prior",
    "log_likelihood",
    "log_density",
    "observed_data",
)


def _changed(posterior, *, without=(), attributes=None, variables=None):
    """A copy with groups left out, attributes changed or variables replaced."""
    groups, coordinates = _parts(posterior, *(name for name in NAMES if name not in without))
    for name, changes in (variables or {}).items():
        groups[name] |= {key: (groups[name][key][0], value) for key, value in changes.items()}
    facts = {**posterior.posterior.attrs, **(attributes or {})}
    return build_posterior(groups, coordinates, {k: v for k, v in facts.items() if v is not None})


# Predictive checks. That their p-values are uniform where a model holds is in tests/statistics.


def test_x2_of_one_stratum_is_pearsons():
    rng = np.random.default_rng(0)
    mass = rng.dirichlet(np.full(8, 5.0), size=3)
    seen = rng.multinomial(400, mass[0])
    strata = discrepancy.Strata(np.zeros(8, dtype=np.int64), np.arange(8) / 7)
    fit = discrepancy.check_counts(seen, mass, strata)
    assert fit.bins == 8
    pearson = [stats.chisquare(seen, 400 * m).statistic for m in mass]
    np.testing.assert_allclose(fit.discrepancy, np.mean(pearson))


@pytest.mark.parametrize(
    ("sizes", "images"), [((5, 8), 90), ((2, 3, 4, 5, 6), 400), (tuple(range(5, 41)), 28)]
)
def test_counts_are_compared_by_their_quadratic_form(sizes, images):
    """Of several numbers of annotators, with known masses: p is that of χ² at the form's rank.

    Bins of many numbers of annotators, most of whose cells are empty, hold whole strata.
    """
    shown = np.repeat(sizes, np.array(sizes) + 1)
    selected = np.concatenate([np.arange(n + 1) for n in sizes])
    strata = discrepancy.strata_of(CellNames(np.full(len(shown), ""), selected, shown))
    mass = stats.betabinom.pmf(selected, shown, 2, 1)
    rng = np.random.default_rng(6)
    seen = np.concatenate([rng.multinomial(images, mass[shown == n]) for n in sizes])
    fit = discrepancy.check_counts(seen, np.tile(mass, (2, 1)), strata)
    order = np.argsort(selected / shown, kind="stable")
    bins = np.empty_like(order)
    bins[order] = discrepancy.merge(images * mass[order], max(5.0, seen.sum() / 160))
    covariance = np.zeros((fit.bins, fit.bins))
    residual = np.bincount(bins, seen - images * mass)
    for n in sizes:
        own = np.bincount(bins, np.where(shown == n, mass, 0))
        covariance += images * (np.diag(own) - np.outer(own, own))
    # A stratum of whole bins leaves one direction without variance; rounding must not give it one.
    statistic = residual @ np.linalg.pinv(covariance, rcond=1e-10) @ residual
    rank = np.linalg.matrix_rank(covariance)
    np.testing.assert_allclose(fit.discrepancy, statistic, rtol=1e-6)
    np.testing.assert_allclose(fit.p, stats.chi2.sf(statistic, rank), rtol=1e-6)
    if images == 400:  # no bin holds counts of 2 and of 3 annotators
        assert fit.bins == len(shown)


def test_p_values_are_uniform_however_much_of_z_the_posterior_leaves():
    """z at the truth is standard normal, and draws of it vary by 0.7 about their mean."""
    random = np.random.default_rng(0)
    center = np.sqrt(0.3) * random.normal(size=(400, 1))
    z = center + np.sqrt(0.7) * random.normal(size=(400, 500))
    x2 = stats.chi2(9).isf(stats.norm.sf(z))
    p = [discrepancy.calibrated_p(each, 9.0, 18.0) for each in x2]
    assert stats.kstest(p, stats.uniform.cdf).pvalue > 0.01


def test_answers_are_compared_by_the_moments_of_binomials():
    """Known accuracies: p is that of the gamma distribution with the mean and variance of X²."""
    images, q = np.array([40, 50, 60, 45]), np.array([0.3, 0.6, 0.7, 0.8])
    right = np.array([14, 33, 38, 39])
    fit = discrepancy.check_answers(right, images, np.tile(q, (2, 1)), np.arange(4) / 3)
    squares = np.square(right - images * q) / (images * q * (1 - q))
    beyond = (1 - 6 * q * (1 - q)) / (images * q * (1 - q))
    variance = 8 + beyond.sum()
    assert fit.bins == 4
    np.testing.assert_allclose(fit.discrepancy, squares.sum())
    wanted = stats.gamma.sf(squares.sum(), 16 / variance, scale=variance / 4)
    np.testing.assert_allclose(fit.p, wanted, rtol=1e-6)


def test_annotators_added_until_it_is_clear_are_no_misfit():
    """By the share of cells that nothing filled; fits of such studies are in tests/statistics."""
    row = {"name": "reference", "p_adjusted": 1e-9, "worst_cell": "3/10", "observed": 9.0}
    row |= {"expected": 30.0, "effect": 0.2, "unfilled": 0.2}
    finding = misfits._judge_counts(row, 0.01, {"components": 2}, curves_fit=True)
    assert (finding.value, finding.trust) == ("not tested", "yes")
    assert "20 %" in finding.sentence
    other = misfits._judge_counts(row | {"unfilled": 0.0}, 0.01, {"components": 2}, curves_fit=True)
    assert other.trust != "yes"


def test_counts_of_a_few_images_are_not_tested():
    """No p-value, so no verdict by it; and the page says so where others have one."""
    shown, selected = np.full(6, 5), np.arange(6)
    strata = discrepancy.strata_of(CellNames(np.full(6, ""), selected, shown))
    fit = discrepancy.check_counts(np.array([0, 0, 0, 1, 0, 1]), np.full((3, 6), 1 / 6), strata)
    assert (fit.bins, np.isnan(fit.p)) == (1, True)
    row = {"name": "reference", "p_adjusted": None, "bins": fit.bins}
    few = misfits._judge_counts(row, 0.01, {}, curves_fit=True)
    many = misfits._judge_counts(row | {"bins": 0}, 0.01, {}, curves_fit=True)
    assert (few.value, few.trust) == (f"{UNTESTED}: too few images", "yes")
    assert many.value == f"{UNTESTED}: too many distinct counts"
    rows = [("counts", "reference", None), ("counts", "replication", 0.5), ("answers", "a", 0.2)]
    figure = checks_figure(pl.DataFrame(rows, schema=["kind", "name", "p"], orient="row"), Words())
    assert f"{UNTESTED} for the counts of the reference" in figure.reading


def test_cells_are_completed_to_all_counts_of_every_number_of_annotators():
    cells = CellNames(np.array(["a", "a", "b"]), np.array([1, 0, 2]), np.array([2, 3, 2]))
    every, place = predictions._complete(cells)
    assert every.selected.tolist() == [0, 1, 2, 0, 1, 2, 3, 0, 1, 2]
    assert every.shown.tolist() == [2, 2, 2, 3, 3, 3, 3, 2, 2, 2]
    assert every.group.tolist() == ["a"] * 7 + ["b"] * 3
    assert place.tolist() == [1, 3, 9]
    assert predictions._complete(cells._replace(shown=cells.shown * 10**9)) is None


def test_tails_beyond_floating_point():
    z = discrepancy.standardise(np.array([30.0, 900.0, 1e4]), 20.0, 40.0)
    assert (np.diff(z) > 0).all()
    assert np.isfinite(z).all()
    np.testing.assert_allclose(stats.norm.sf(z[0]), stats.chi2.sf(30, 20))


def test_cells_have_names():
    cells = CellNames(np.array(["a: b", "a: b", ""]), np.array([3, 4, 2]), np.array([10, 10, 8]))
    assert predictions.bin_name(cells, [0]) == "a: b: 3/10"
    assert predictions.bin_name(cells, [1, 0]) == "a: b: 3/10 to 4/10"
    assert predictions.bin_name(cells, [2]) == "2/8"
    assert predictions.bin_name(cells, [0, 2]) == "25 % to 30 % selected"
    assert predictions.bin_name(cells, []) == "cells without images"


def test_predictions_of_a_fit(study, posterior):
    table = predictions.check_predictions(posterior)
    assert table["kind"].to_list() == ["counts"] * 2 + ["answers"] * 3
    assert table["name"].to_list() == ["reference", "replication", *study.classifiers]
    assert table.select(pl.col("p").is_between(0, 1).all()).item()
    assert (table["p_adjusted"] >= (1 - 1e-12) * table["p"]).all()
    assert table["effect"].abs().max() < 0.02


def test_cells_without_images_share_what_is_left():
    images, stratum = np.array([0, 4, 0, 3, 3]), np.array([0, 0, 0, 1, 1])
    known = np.log([0.5, 0.4, 0.5])
    likelihood = np.array([[0, 4 * known[0], 0, 3 * known[1], 3 * known[2]]])
    mass = predictions._masses(likelihood, images, stratum, np.array([2, 9, 2, 9, 9]))
    np.testing.assert_allclose(mass, [[0.25, 0.5, 0.25, 0.4, 0.5]])
    mass = predictions._masses(likelihood, images, stratum, np.array([1, 9, 4, 9, 9]))
    np.testing.assert_allclose(mass, [[0.1, 0.5, 0.4, 0.4, 0.5]])


def test_likely_cells_are_the_beta_binomial_mixture_of_scipy(posterior):
    cells = CellNames(np.array([""] * 3), np.array([0, 3, 20]), np.array([20, 20, 20]))
    found = predictions._count_probability(posterior, 1, cells)
    mean, total, weight = (
        thinned_draws(posterior.posterior[f"component_{name}"][:, :, 1], predictions.MIXTURE_DRAWS)
        for name in ("mean", "concentration", "weight")
    )
    a, b = (mean * total)[..., None], ((1 - mean) * total)[..., None]
    pmf = stats.betabinom.pmf(cells.selected, cells.shown, a, b)
    np.testing.assert_allclose(found, (weight[..., None] * pmf).sum(1).mean(0), rtol=1e-9)


def test_family_wise_p_values_are_holms_by_kind():
    """By hand; that they keep their level is in tests/statistics."""
    p, kind = [0.01, 0.02, 0.04, 0.9, 0.03], ["a", "b", "b", "b", "a"]
    found = family_wise(p, kind)
    np.testing.assert_allclose(found, [0.04, 0.12, 0.16, 1.0, 0.06])
    assert family_wise([0.04], ["a"])[0] == 0.04
    assert len(family_wise([], [])) == 0


def test_reversed_answers_are_found(posterior):
    """A classifier that is right where the model says it is wrong."""
    observed = posterior.observed_data["correct"].values.copy()
    images = posterior.observed_data["replication_images"].values
    observed[1] = images[images > 0] - observed[1]
    wrong = _changed(posterior, variables={"observed_data": {"correct": observed}})
    table = predictions.check_predictions(wrong).filter(pl.col("kind") == "answers")
    assert (table["p_adjusted"] < 0.05).to_list() == [False, True, False]
    told = diagnosis.diagnose(wrong)
    assert told.trust == "no"
    assert found(told, "curves fit the classifiers") == ("1 of 3 misfit", "no")


# Comparison


def test_pareto_smoothing_is_arvizs(arviz_smooths):
    rng = np.random.default_rng(0)
    ratios = rng.normal(size=(4, 900)) * np.array([0.1, 0.5, 1.0, 3.0])[:, None]
    weights, k = pareto.pareto_smooth(ratios)
    theirs, their_k = arviz_smooths(ratios.copy())
    np.testing.assert_allclose(weights, theirs, atol=1e-6)
    np.testing.assert_allclose(k, their_k, atol=1e-6)
    assert k[:3].max() < 0.5 < 0.7 < k[3]
    flat, none = pareto.pareto_smooth(np.zeros((1, 900)))
    np.testing.assert_allclose(np.exp(flat), 1 / 900)
    assert none[0] == -np.inf


def test_leave_one_out_is_arvizs():
    """Units with multiplicities against the same units one by one."""
    rng = np.random.default_rng(1)
    density = rng.normal(-1, 0.2, size=(3, 400))
    units = np.array([2.0, 1.0, 3.0])
    ours = comparison.psis_loo(density, units)
    module = arviz()
    each = np.repeat(density, units.astype(int), axis=0).T.reshape(1, 400, -1)
    groups = {"posterior": {"x": each[:, :, 0]}, "log_likelihood": {"y": each}}
    if hasattr(module, "waic"):
        data = module.from_dict(**groups)
        theirs = module.loo(data, reff=1.0, pointwise=True)
        elpd, parameters = theirs["elpd_loo"], theirs["p_loo"]
        np.testing.assert_allclose(units @ ours.waic, module.waic(data)["elpd_waic"], rtol=1e-6)
    else:  # ArviZ 1.x has other names, and no waic
        theirs = module.loo(module.from_dict(groups), reff=1.0, pointwise=True)
        elpd, parameters = theirs.elpd, theirs.p
        waic = np.log(np.exp(density).mean(axis=1)) - density.var(axis=1)
        np.testing.assert_allclose(ours.waic, waic, rtol=1e-6)
    np.testing.assert_allclose(units @ ours.elpd, elpd, rtol=1e-6)
    np.testing.assert_allclose(units @ (ours.lppd - ours.elpd), parameters, rtol=1e-4)


def test_leaving_one_out_of_a_conjugate_model():
    """Right answers with a beta posterior: p(y | others) is known."""
    rng = np.random.default_rng(2)
    right, wrong = 30, 12
    q = rng.beta(1 + right, 1 + wrong, size=20_000)
    ours = comparison.psis_loo(np.log([q, 1 - q]), np.array([30.0, 12.0]))
    exact = np.log([right / (right + wrong + 1), wrong / (right + wrong + 1)])
    np.testing.assert_allclose(ours.elpd, exact, atol=5e-3)


def test_compare_prefers_the_better_model(study, posterior):
    level = logit(posterior.observed_data["correct"].values.sum(axis=1) / 500)
    flat = np.broadcast_to(level[:, None], logit_codes(posterior).code.shape)
    coded = dict(zip(LOGIT_VARS, encode(flat), strict=True))
    constant = _changed(posterior, variables={"log_density": coded})
    table = comparison.compare_fits({"constant": constant, "curves": posterior})
    assert table["model"].to_list() == ["curves", "constant"]
    best, other = table.iter_rows(named=True)
    assert best["difference"] == best["se"] == 0
    assert other["difference"] < -4 * other["se"]
    assert other["counts_difference"] == 0
    np.testing.assert_allclose(other["difference"], other["answers_difference"])
    assert other["se"] <= other["se_shared"]
    assert 2 < best["p_loo"] < 25
    assert "curves predicts better than constant" in fits_text(table)
    assert "nothing to compare" in fits_text(comparison.compare_fits({"a": posterior}))
    np.testing.assert_allclose(best["elpd"], best["waic"], atol=1)


def test_compare_refuses_another_study(posterior):
    other = _changed(posterior, attributes={"study_fingerprint": "another"})
    different = {"posterior": "a", "other_posterior": "b"}
    with refused(PosteriorError, "fits-of-different-studies", different):
        comparison.compare_fits({"a": posterior, "b": other})
    with refused(PosteriorError, "no-posterior-to-compare"):
        comparison.compare_fits({})
    missing = {"missing_part": "log_density (logit_right, logit_middle, logit_step)"}
    with refused(PosteriorError, "posterior-part-missing", missing):
        comparison.compare_fits({"a": _changed(posterior, without=("log_density",))})


# Prior sensitivity. The toy: x ~ N(0, τ²), mean of data ~ N(x, σ²).


def _normal(tau, sigma, mean, seed=0):
    weight = tau**2 / (tau**2 + sigma**2)
    sd = np.sqrt(weight) * sigma
    x = np.random.default_rng(seed).normal(weight * mean, sd, size=(4, 2000))
    prior, likelihood = -0.5 * (x / tau) ** 2, -0.5 * ((x - mean) / sigma) ** 2
    # d E[x] / d log α at α = 1, for the prior's power: −w (1 − w) mean
    shift = -np.log(2) * weight * (1 - weight) * mean / sd
    return x, prior, likelihood, shift


@pytest.mark.parametrize(("tau", "sigma", "mean"), [(1.0, 1.0, 2.0), (2.0, 0.5, -3.0)])
def test_shift_of_a_conjugate_mean(tau, sigma, mean):
    x, prior, likelihood, shift = _normal(tau, sigma, mean)
    by_prior = sensitivity.power_scaling(x, prior)
    np.testing.assert_allclose(by_prior.shift, shift, atol=4 * by_prior.shift_se)
    assert 0 < by_prior.shift_se < 0.05
    by_data = sensitivity.power_scaling(x, likelihood)
    np.testing.assert_allclose(by_data.shift, -shift, atol=4 * by_data.shift_se)


def test_readings_of_a_conjugate_model():
    def read(tau, sigma, mean):
        x, prior, likelihood, _ = _normal(tau, sigma, mean)
        on_prior = sensitivity.power_scaling(x, prior)
        on_data = sensitivity.power_scaling(x, likelihood)
        assert on_prior.pareto_k < 0.7
        return sensitivity.reading(on_prior.sensitivity, on_data.sensitivity, on_prior.noise)

    assert read(10.0, 0.3, 1.0) == sensitivity.NOT_SENSITIVE
    assert read(1.0, 1.0, 6.0) == sensitivity.PRIOR_DATA_CONFLICT
    assert read(0.3, 10.0, 0.0) == sensitivity.STRONG_PRIOR
    assert sensitivity.reading(0.06, 0.1, 0.055) == sensitivity.TOO_NOISY


def test_noise_is_that_of_a_shuffled_part():
    """Weights are smoothed by their order alone, and so are smoothed once for all shuffles."""
    x, prior, _, _ = _normal(1.0, 1.0, 2.0)
    part = prior.ravel() - prior.mean()
    order = np.random.default_rng(3).permutation(part.size)
    ratios = np.array([[0.01], [-0.01]]) * part
    np.testing.assert_allclose(
        pareto_smooth(ratios[:, order])[0], pareto_smooth(ratios)[0][:, order], atol=1e-12
    )
    full, without = (sensitivity.power_scaling(x, prior, shuffles=n) for n in (4, 0))
    assert np.isnan(without.noise)
    np.testing.assert_allclose(full._replace(noise=0), without._replace(noise=0), rtol=1e-12)
    assert 0 < full.noise < full.sensitivity


def test_distance_is_zero_without_weights():
    x = np.random.default_rng(0).normal(size=500)
    assert sensitivity.jensen_shannon(x, np.ones((1, 500))) == pytest.approx(0, abs=1e-7)
    low, high = sensitivity.jensen_shannon(x, np.exp(np.outer((0.1, 0.5), x)))
    assert 0 < low < high < 1


def test_log_joint_less_log_likelihood_is_the_prior(posterior):
    """The log density at the draws, the likelihood on cells and the model's priors agree."""
    parts = sensitivity.prior_parts(posterior)
    prior = sensitivity.log_joint(posterior) - sensitivity.log_likelihood(posterior)
    assert np.ptp(parts.shared + parts.own.sum(axis=2) - prior) < 1e-3  # of logits in two bytes
    assert np.ptp(parts.shared) > 1


def test_prior_sensitivity_of_a_fit(study, posterior):
    table = sensitivity.prior_sensitivity(posterior)
    assert table["quantity"].to_list() == [sensitivity.MEAN_GAP, *study.classifiers]
    assert table["prior"].is_between(0, 1).all()
    assert (table["shift_se"] > 0).all()
    without = {"missing_part": "log_prior (shared, own)"}
    with refused(PosteriorError, "posterior-part-missing", without):
        sensitivity.prior_sensitivity(_changed(posterior, without=("log_prior",)))
    cut = _changed(posterior, attributes={"feedback": "cut"})
    with refused(PosteriorError, "prior-sensitivity-of-cut-feedback"):
        sensitivity.prior_sensitivity(cut)


# Diagnosis


def found(told, check):
    """Value and trust of one check."""
    return told.checks.row(by_predicate=pl.col("check") == check)[1::2]


def _drawn(group, chosen):
    """Some of the draws of those variables of a group that have draws."""
    of_draws = {v: each for v, each in group.items() if each[0][0] == "chain"}
    return {v: (dims, values[chosen]) for v, (dims, values) in of_draws.items()}


def _long(posterior):
    """The same fit as if it had run long: independent draws of what was sampled."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, 2, (4, 1000)), rng.integers(0, 100, (4, 1000))
    groups, coordinates = _parts(posterior, *NAMES)
    for name in NAMES[:-1]:
        groups[name] |= _drawn(groups[name], chosen)
    # No draw twice, as in a fit of as many.
    dims, accuracies = groups["posterior"]["adjusted_accuracy"]
    noise = rng.normal(0, 1e-9, accuracies.shape)
    groups["posterior"]["adjusted_accuracy"] = dims, accuracies + noise
    made = {**posterior.posterior.attrs, "schedule": '{"chains": 4, "draws": 1000}'}
    return build_posterior(groups, coordinates, made)


def test_a_good_fit_is_trusted(posterior):
    told = diagnosis.diagnose(_long(posterior))
    for check in (
        "chains agree on the adjusted accuracies",
        "curves fit the classifiers",
        "mixture fits the counts of the reference",
    ):
        assert found(told, check)[1] == "yes"
    lines = str(told).splitlines()
    assert lines[0].startswith(f"Trust: {told.trust}. ")
    assert any(line.startswith("check ") for line in lines)
    assert lines[-1].startswith("p: ")
    assert told.predictions is not None
    assert told.sensitivity is not None


def test_an_interval_that_says_nothing_is_not_trusted():
    """Draws of the mean with a standard deviation of 4 and of 6 points."""
    normal = stats.norm.ppf((np.arange(1000) + 0.5) / 1000).reshape(2, 500, 1)
    narrow, wide = (judge_width(0.7 + sd * normal + np.zeros(3)) for sd in (0.04, 0.06))
    assert (narrow.trust, narrow.sentence) == ("yes", "")
    assert (wide.trust, wide.value) == ("with care", "\N{PLUS-MINUS SIGN}11.8 points")


def test_a_short_fit_is_not_believed_whatever_it_says(posterior):
    """The attributes claim convergence; the second chain is moved away."""
    adjusted = posterior.posterior["adjusted_accuracy"].values.copy()
    adjusted[1] += 0.3
    changes = {"posterior": {"adjusted_accuracy": adjusted}}
    claim = {"converged": 1, "verdict": "fine"}
    told = diagnosis.diagnose(_changed(posterior, attributes=claim, variables=changes))
    assert told.trust == "no"
    assert told.sentences[0].startswith("The fit has not converged: ")
    value, trust = found(told, "chains agree on the adjusted accuracies")
    assert float(value.split(",")[0].removeprefix("R-hat ")) > 1.01
    assert trust == "no"
    stuck, trust = found(told, "chains that stand still or apart")
    assert stuck != "0"
    assert trust == "no"


def test_sampler_statistics_are_judged(posterior):
    stats_ = posterior.sample_stats
    rng = np.random.default_rng(0)
    shape = stats_["energy"].shape
    diverging = np.zeros(shape, dtype=bool)
    diverging[0, :20] = True
    slow = np.cumsum(rng.normal(size=shape), axis=1)
    changes = {
        "diverging": diverging,
        "energy": slow,
        "num_steps": np.full(shape, 3 * 1023),
    }
    told = diagnosis.diagnose(_changed(posterior, variables={"sample_stats": changes}))
    assert told.trust == "no"
    assert found(told, "divergent draws")[0] == "20 of 200"
    assert found(told, "divergent draws")[1] != "yes"
    assert found(told, "energy (E-BFMI)")[1] == "with care"
    steps, trust = found(told, "steps per transition")
    assert steps.endswith("(limit 1,023)")
    assert trust == "with care"


def test_energy_fraction_of_independent_and_slow_energies():
    rng = np.random.default_rng(0)
    independent, slow = rng.normal(size=(1, 4000)), np.cumsum(rng.normal(size=(1, 4000)), axis=1)
    assert chains.energy_fraction(independent)[0] == pytest.approx(2, abs=0.1)
    assert chains.energy_fraction(slow)[0] < 0.1


def test_chains_that_stand_still():
    draws = np.random.default_rng(0).normal(size=(4, 100, 2))
    assert chains.stuck_chains(draws) == []
    draws[2] = draws[2, 0]
    assert chains.stuck_chains(draws) == [2]
    draws[0] += 20
    assert chains.stuck_chains(draws) == [0, 2]


@pytest.mark.parametrize(("k", "trust"), [(0.3, "yes"), (0.9, "with care"), (None, "with care")])
def test_approximations_are_judged_by_their_weights(posterior, k, trust):
    laplace = _changed(posterior, attributes={"method": "laplace", "pareto_k": k})
    told = diagnosis.diagnose(laplace)
    row = told.checks.row(0, named=True)
    assert row["check"] == "Pareto k of the Laplace approximation"
    assert row["trust"] == trust


def test_few_effective_draws_and_other_modes_are_told(posterior):
    made = {"method": "laplace", "pareto_k": 0.3, "ess": 120.0, "elsewhere": 0.2}
    told = diagnosis.diagnose(_changed(posterior, attributes=made))
    assert told.checks["trust"].to_list()[:2] == ["no", "with care"]
    assert found(told, "posterior around other modes") == ("20 %", "no")
    assert found(told, "Pareto k of the Laplace approximation") == ("0.30, ESS 120", "with care")
    forged = _changed(posterior, attributes={"elsewhere": "much"})
    assert "posterior around other modes" not in diagnosis.diagnose(forged).checks["check"]


def test_what_is_missing_is_named(posterior):
    told = diagnosis.diagnose(_changed(posterior, without=NAMES[1:]))
    assert told.predictions is told.sensitivity is None
    assert (told.checks["value"] == "missing").sum() == 3
    assert "sample_stats" in " ".join(told.sentences)
    alone = build_posterior({"posterior": {}}, {}, {})
    with refused(PosteriorError, "posterior-without-adjusted-accuracy"):
        diagnosis.diagnose(alone)


def test_one_chain_cannot_agree(posterior):
    groups, coordinates = _parts(posterior, *NAMES)
    for name in NAMES[:-1]:
        groups[name] |= _drawn(groups[name], slice(1))
    told = diagnosis.diagnose(build_posterior(groups, coordinates, posterior.posterior.attrs))
    assert told.trust == "with care"
    assert found(told, "chains agree on the adjusted accuracies") == ("one chain", "with care")
    assert "chains=4" in " ".join(told.sentences)


def test_cut_feedback_has_no_joint_density(posterior):
    told = diagnosis.diagnose(_changed(posterior, attributes={"feedback": "cut"}))
    assert told.sensitivity is None
    assert found(told, "prior sensitivity") == ("not available", "yes")


def test_advice_of_few_annotators_is_repeated(posterior):
    told = diagnosis.diagnose(_changed(posterior, attributes={"advice": "About 1 annotator."}))
    assert any(sentence.startswith("About 1 annotator.") for sentence in told.sentences)


def test_remedies_name_options_the_fit_did_not_have():
    row = {
        "name": "reference",
        "p_adjusted": 0.001,
        "worst_cell": "3/10",
        "observed": 9.0,
        "expected": 30.0,
        "effect": 0.0,
        "unfilled": 0.0,
    }
    options = {"components": 3, "shared_components": False}
    found = misfits._judge_counts(row, 0.01, options, curves_fit=True)
    beyond_chance = misfits._judge_counts(
        row | {"p_adjusted": 1e-7}, 0.01, options, curves_fit=True
    )
    assert (found.trust, beyond_chance.trust) == ("yes", "with care")
    assert "components=4" in found.sentence
    assert "shared_components" not in found.sentence
    assert "monotone=False" in misfits._better_curves({"monotone": True})
    assert "spline" in misfits._better_curves(json.loads('{"curve": "bernstein"}'))
    assert "spline" not in misfits._better_curves({"curve": "gp"})


def test_names_cannot_steer_a_terminal(posterior):
    told = diagnosis.diagnose(_changed(posterior, attributes={"advice": "\x1b[2Jbad"}))
    assert "\x1b" not in str(told)


def test_draws_are_spread_evenly():
    variable = xr.DataArray(np.arange(20).reshape(2, 10), dims=("chain", "draw"))
    assert thinned_draws(variable, 4).tolist() == [0, 9, 10, 19]
    assert thinned_draws(variable, 1000).shape == (20,)
