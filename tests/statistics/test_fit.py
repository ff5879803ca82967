"""Fits against what their studies were made of, and against each other."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
import zoo
from fits import hard_study, short_fit, values_of
from toys import Toy, following

import bayesrep
from bayesrep import ConvergenceWarning, Study
from bayesrep.inference.prior import prior_predictive
from bayesrep.inference.schedule import BLOCK, Schedule


@pytest.fixture(scope="module")
def posterior():
    return zoo.posterior("tiny", **zoo.SHORT)


def test_posterior_predictive_covers_the_observed(posterior):
    """Right in total: every classifier's predicted number correct straddles the observed one."""
    drawn = posterior.posterior_predictive["correct"].values.sum(axis=-1)
    observed = posterior.observed_data["correct"].values.sum(axis=-1)
    assert (drawn.min(axis=(0, 1)) < observed).all()
    assert (drawn.max(axis=(0, 1)) > observed).all()


def test_cut_feedback_keeps_the_answers_out_of_the_mixtures(posterior):
    """Little of them is left there: means within two sds; other answers have other accuracies."""
    study = zoo.study("tiny")
    cut = short_fit(study, feedback="cut")
    rng = np.random.default_rng(0)
    sets = {
        role: replace(data, correct=rng.random(np.shape(data.correct)) < 0.5)
        for role, data in study.datasets.items()
    }
    again = short_fit(replace(study, datasets=sets, truth=None), feedback="cut")
    full = values_of(posterior)
    close = np.abs(values_of(cut).mean(axis=(0, 1)) - full.mean(axis=(0, 1)))
    assert (close < 2 * full.std(axis=(0, 1))).all()
    assert np.abs(values_of(again).mean() - full.mean()) > 0.05


@pytest.mark.parametrize("vectorized", [False, True])
def test_held_coordinates_are_followed_draw_by_draw(vectorized, float64):
    """z, own | m, data are normal, with another m for every draw: what is left is standard.

    The mean of z bends with m, so that no affine coordinates follow it. 1,200 nearly independent
    draws: each bound is 4 standard errors, a false alarm in 10^4.
    """
    seen = np.array([0.5, 1.5])
    toy = Toy(following, jnp.asarray(seen))
    schedule = Schedule(chains=3, warmup=100, draws=400)
    rng = np.random.default_rng(0)
    given = 0.7 * rng.standard_normal((3, 100 + 400 + BLOCK, 1))
    how = {"vectorized": vectorized, "workers": 2, "given": given}
    drawn = toy.draws(schedule, "all units", **how).position
    m, z = drawn["shared"][..., 0], drawn["shared"][..., 1]
    put = np.asarray(toy.white.to_shared)[0, 0] * given[:, 100:500, 0]
    np.testing.assert_allclose(m, np.asarray(toy.white.center["shared"])[0] + put, rtol=1e-9)

    precision = 1 + 2 / (1 + 2**2)  # of z | m: each answer is Normal(z, 1 + 2²)
    mean = (m + 0.3 * m**2 + seen.sum() / 5) / precision
    left_of_z = (z - mean) * np.sqrt(precision)
    own = drawn["units"][..., 0]
    left_of_own = (own - (z[..., None] + seen / 4) / 1.25) * np.sqrt(1.25)
    for left in (left_of_z, *np.moveaxis(left_of_own, 2, 0)):
        assert abs(left.mean()) < 4 / np.sqrt(1_200)
        assert abs(left.var() - 1) < 4 * np.sqrt(2 / 1_200)
        before = given[:, 100:499, 0]
        assert abs(np.corrcoef(left[:, 1:].ravel(), before.ravel())[0, 1]) < 0.12


def test_groups_get_their_own_accuracies_with_ragged_annotators():
    """Classifiers are right on 9 of 10 birds and 5 of 10 dogs, whatever 3 to 9 annotators say."""
    rng = np.random.default_rng(0)

    def data(mean):
        group = rng.choice(["bird", "dog"], 800)
        chance = np.where(group == "bird", 0.9, 0.5)
        shown = rng.integers(3, 10, 800)
        return {
            "selected": rng.binomial(shown, mean),
            "shown": shown,
            "correct": rng.random((800, 2)) < chance[:, None],
            "groups": {"superclass": group},
        }

    study = Study.from_arrays(
        reference=data(0.9), replication=data(0.8), classifiers=["one", "two"]
    )
    posterior = short_fit(study, groups="superclass")
    by_group = posterior.posterior["group_adjusted_accuracy"]
    means = by_group.mean(("chain", "draw", "classifier"))
    # Partial pooling draws both towards each other; the sd of each is about 0.02.
    assert 0.8 < float(means.sel(group="bird")) < 0.95
    assert 0.45 < float(means.sel(group="dog")) < 0.62


def test_fifty_images_and_classifiers_at_0_and_100_percent():
    values = values_of(short_fit(hard_study())).reshape(-1, 3).mean(axis=0)
    assert values[0] < 0.15 < values[1] < 0.85 < values[2]


def test_every_annotator_selects_everything():
    posterior = short_fit(hard_study(selected=np.full(50, 8)))
    assert (values_of(posterior, "mean_selection_frequency").mean(axis=(0, 1)) > 0.85).all()


def test_six_components_of_one_annotator_have_a_posterior():
    """The most components there may be, of counts that identify none but the mean."""
    study = hard_study(selected=np.arange(50) % 2, shown=1)
    posterior = short_fit(study, chains=1, draws=25, components=6)
    assert posterior.posterior["component_weight"].shape == (1, 25, 2, 6)
    assert np.isfinite(values_of(posterior)).all()


def test_identical_data_sets_have_no_gap():
    study = hard_study()
    twice = Study(
        {"reference": study.reference, "replication": replace(study.reference, name="again")},
        study.classifiers,
    )
    gap = values_of(short_fit(twice), "bias_corrected_gap")
    assert (np.abs(gap.mean(axis=(0, 1))) < 3 * gap.std(axis=(0, 1)) + 0.05).all()


def test_the_prior_predictive_draws_of_the_prior():
    location = prior_predictive(hard_study(), draws=200, seed=1, degree=8, terms=3).prior
    # 200 draws of Normal(0.7, 0.5): within 4 standard errors, a false alarm in 10^4.
    assert abs(location["first_location"].values.mean() - 0.7) < 4 * 0.5 / np.sqrt(200)


def test_recovers_the_truth_inside_the_family():
    """Default model and length on 3,000 images; the mean error has an sd of about 0.6 %.

    Wider than 2.5 % is a 4-sd event: false alarm rate about 1e-4, and the seed is fixed.
    """
    known = bayesrep.simulate_study(seed=6, images=3_000, classifiers=6, process="inside")
    fitted = bayesrep.fit(known, chains=4, progress=False)
    rows = bayesrep.summarize(known, fitted, all_columns=True)
    error = rows["adjusted_accuracy"].to_numpy() - known.truth.adjusted_accuracy
    assert abs(error.mean()) < 0.025
    inside = (rows["lower"].to_numpy() <= known.truth.adjusted_accuracy) & (
        known.truth.adjusted_accuracy <= rows["upper"].to_numpy()
    )
    assert inside.sum() >= 4
    assert rows["classifier"].to_list() == list(known.classifiers)
    assert rows["rhat"].max() <= 1.01


@pytest.mark.parametrize("method", ["nuts", "laplace"])
def test_no_method_certifies_one_of_two_modes(method):
    """Three components of each data set's own may be matched to its images in several ways."""
    study = bayesrep.simulate_study(seed=2, images=800, annotators=20, classifiers=8)
    options = {"components": 3, "shared_components": False}
    short = {"warmup": 50, "draws": 100, "progress": False}
    with pytest.warns(ConvergenceWarning, match="several modes"):
        posterior = bayesrep.fit(study, method=method, **short, **options)
    made = posterior.posterior.attrs
    assert made["elsewhere"] > 0.01
    assert not made["converged"]
    assert "lies elsewhere" in made["verdict"]
