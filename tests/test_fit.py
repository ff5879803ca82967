"""The door to the posterior, on studies small enough to fit in seconds.

All fits of one shape share compiled programs, those of other files included; what takes time here
is compiling. Hence 8 annotators, 3 classifiers and one schedule wherever the test allows.
"""

import json
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr

import bayesrep
import bayesrep.inference.marginal as marginals
from bayesrep import (
    ConvergenceError,
    ConvergenceWarning,
    PosteriorError,
    Study,
    SufficientStatistics,
)
from bayesrep.inference.arrowhead import second_order, whitening
from bayesrep.inference.density import build_density
from bayesrep.inference.device import fastest
from bayesrep.inference.marginal import Marginal
from bayesrep.inference.mode import climb
from bayesrep.inference.nuts import (
    BLOCK,
    Schedule,
    build_sampler,
    compiled,
    of_density,
    of_marginal,
    sample,
)
from bayesrep.inference.prior import prior_predictive
from bayesrep.inference.settle import looking, settle
from bayesrep.posterior import read_posterior, write_posterior
from bayesrep.posterior.files import arviz
from bayesrep.posterior.groups import cells_along, find_group, place_of_cells
from bayesrep.posterior.verdict import Diagnostics, advise, judge

SHORT = {"chains": 2, "warmup": 100, "draws": 100, "progress": False}
SMALL = {"degree": 8, "terms": 3}


def _fit(study, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return bayesrep.fit(study, **{**SMALL, **SHORT, **changes})


def _values(posterior, name="adjusted_accuracy"):
    return posterior.posterior[name].values


@pytest.fixture(scope="module")
def study():
    return bayesrep.simulate_study(seed=1, images=800, annotators=8, classifiers=3)


@pytest.fixture(scope="module")
def posterior(study):
    return _fit(study)


def test_contents_and_names(study, posterior):
    group = posterior.posterior
    for name in ("adjusted_accuracy", "bias_corrected_gap", "selection_gap"):
        assert group[name].dims == ("chain", "draw", "classifier")
    assert group["mean_selection_frequency"].dims == ("chain", "draw", "dataset")
    assert group["classifier_curve"].dims == ("chain", "draw", "classifier", "term")
    assert tuple(group["classifier"].values) == study.classifiers
    assert tuple(group["dataset"].values) == ("reference", "replication")
    for name in ("diverging", "num_steps", "energy"):
        assert posterior.sample_stats[name].dims == ("chain", "draw")
    assert posterior.log_likelihood["correct"].dims == (
        "chain",
        "draw",
        "classifier",
        "answered_cell",
    )
    attributes = group.attrs
    assert attributes["precision"] == "float64"
    assert attributes["seed"] == 0
    assert json.loads(attributes["versions"])["jax"] == jax.__version__
    assert json.loads(attributes["options"])["degree"] == 8
    assert group["adjusted_accuracy"].dtype == np.float64


def test_gaps_decompose_the_drop(study, posterior):
    statistics = SufficientStatistics.from_study(study)
    drop = statistics.accuracy("reference") - statistics.accuracy("replication")
    total = _values(posterior, "bias_corrected_gap") + _values(posterior, "selection_gap")
    np.testing.assert_allclose(total, np.broadcast_to(drop, total.shape), atol=1e-12)


def test_log_likelihood_is_that_of_the_cells(study, posterior):
    """The count terms by an independent formula: image-weighted beta-binomial mixtures."""
    from scipy import stats

    cells = SufficientStatistics.from_study(study).reference
    group = posterior.posterior.isel(chain=0, draw=3)
    mean, total, weight = (
        group[f"component_{n}"].values[0] for n in ("mean", "concentration", "weight")
    )
    mass = sum(
        w * stats.betabinom(cells.shown, m * t, (1 - m) * t).pmf(cells.selected)
        for m, t, w in zip(mean, total, weight, strict=True)
    )
    variable = posterior.log_density["reference_images"]
    place = place_of_cells(
        cells_along(find_group(posterior, "log_density"), "reference"),
        np.full(len(cells.shown), ""),
        cells.selected,
        cells.shown,
    )
    ours = variable.values[0, 3, place]
    np.testing.assert_allclose(ours, cells.images * np.log(mass), rtol=1e-9)


def test_posterior_predictive_covers_the_observed(posterior):
    """Right in total: every classifier's predicted number correct straddles the observed one."""
    drawn = posterior.posterior_predictive["correct"].values.sum(axis=-1)
    observed = posterior.observed_data["correct"].values.sum(axis=-1)
    assert (drawn.min(axis=(0, 1)) < observed).all()
    assert (drawn.max(axis=(0, 1)) > observed).all()
    counts = posterior.posterior_predictive["reference_images"].values
    assert (counts.sum(axis=-1) <= 800).all()


def test_same_draws_again_with_bar_and_with_statistics(study, posterior, capsys):
    again = _fit(SufficientStatistics.from_study(study), progress=True)
    np.testing.assert_array_equal(_values(posterior), _values(again))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "draw/s" in captured.err
    assert "divergences" in captured.err
    other = _fit(study, seed=1)
    assert (_values(posterior) != _values(other)).any()


def _counts(data):
    """Counts of events at rates exp(own): units with longer left tails around a shared level."""
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("classifier", len(data)):
        own = numpyro.sample("own", dist.Normal(level, 0.5))
        numpyro.factor("counts", data * own - jnp.exp(own))


def _following(data):
    """A site z that bends after the site m, and units around it that are observed."""
    m = numpyro.sample("m", dist.Normal(0.0, 1.0))
    z = numpyro.sample("z", dist.Normal(m + 0.3 * m**2, 1.0))
    with numpyro.plate("classifier", len(data)):
        own = numpyro.sample("own", dist.Normal(z, 1.0))
        numpyro.sample("seen", dist.Normal(own, 2.0), obs=data)


class Toy:
    """A density with the coordinates of the normal at its mode."""

    def __init__(self, model, data):
        self.density = build_density(model, data, select=lambda data, rows: data[rows])
        self.data = data

        @jax.jit
        def expand(at, data):
            return second_order(lambda q: self.density.potential(q, data), at)

        self.mode = climb(expand, self.density.origin(), data)
        self.white = whitening(self.mode.there.hessian, self.mode.position)

    def draws(self, schedule, kind, *, vectorized, workers, given=None):
        """Of chains in coordinates that stay; `given` [chain, draw, held] is held."""
        chains, held = schedule.chains, 0 if given is None else given.shape[2]
        if kind == "density":
            target, setting = of_density(self.density), (self.data, self.white)
        else:
            marginal = Marginal(self.density)
            target = of_marginal(marginal)
            look = looking(self.density)
            setting = settle(self.density, self.white, self.data, look, 0, expand=None).setting

        def feed(chain, begin):
            if given is None:
                return jnp.zeros((chains, BLOCK, 0) if vectorized else (BLOCK, 0))
            block = given[:, begin : begin + BLOCK]
            return jnp.asarray(block if vectorized else block[chain])

        def stay(setting, _):
            return setting

        keys = jax.random.split(jax.random.key(0), chains)
        sampler = build_sampler(target, schedule, vectorized=vectorized, held=held)
        key = keys if vectorized else keys[0]
        ready = compiled(sampler, key, setting, feed(0, 0))
        states = ready.states(keys)
        report = lambda *_: None  # noqa: E731
        return sample(ready, states, setting, feed, schedule, report, tune=stay, workers=workers)


def test_programs_of_one_model_are_traced_side_by_side(float64):
    """A fit compiles its sampler beside the search for the mode; NumPyro's handlers are shared."""

    def slow(data):
        numpyro.sample("first", dist.Normal(data, 1.0))
        time.sleep(0.05)
        numpyro.sample("second", dist.Normal(data, 1.0))

    density = build_density(slow, jnp.zeros(()))

    def value(seed):
        with jax.enable_x64(new_val=True):
            data = jnp.full((), seed, dtype=float if seed % 2 else int)  # another program
            return float(density.potential(density.origin(), data))

    with ThreadPoolExecutor(2) as pool:
        values = list(pool.map(value, range(2)))
    assert values[1] - values[0] == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["all units", "some units", "density"])
def test_workers_do_not_change_draws(kind, float64, monkeypatch):
    """Chains run one after the other or side by side, or as one batch: the same numbers.

    The surrogate looks at all units, or at two of three.
    """
    monkeypatch.setattr(marginals, "sample_size", lambda _: 2 if kind == "some units" else 3)
    toy = Toy(_counts, jnp.asarray([0.0, 2.0, 5.0]))
    schedule = Schedule(chains=3, warmup=100, draws=40)
    one, two, batch = (
        toy.draws(schedule, kind, vectorized=vectorized, workers=workers)
        for vectorized, workers in ((False, 1), (False, 3), (True, 1))
    )
    for name in ("shared", "units"):
        np.testing.assert_array_equal(one.position[name], two.position[name])
        np.testing.assert_allclose(one.position[name], batch.position[name], rtol=1e-6)
    assert one.position["shared"].shape == (3, 40, 1)
    assert one.position["units"].shape == (3, 40, 3, 1)


@pytest.mark.parametrize("vectorized", [False, True])
def test_held_coordinates_are_followed_draw_by_draw(vectorized, float64):
    """z, own | m, data are normal, with another m for every draw: what is left is standard.

    The mean of z bends with m, so that no affine coordinates follow it. 1,200 nearly independent
    draws: each bound is 4 standard errors, a false alarm in 10^4.
    """
    seen = np.array([0.5, 1.5])
    toy = Toy(_following, jnp.asarray(seen))
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


def test_a_second_fit_of_the_same_shape_compiles_nothing(study, posterior):
    """Its programs take the data as arguments, whatever is seen in them."""
    heard = []

    def hear(event, _, **__):
        heard.append(event)

    other = bayesrep.simulate_study(seed=4, images=800, annotators=8, classifiers=3)
    jax.monitoring.register_event_duration_secs_listener(hear)
    try:
        _fit(other, seed=3)
        compiled_by_fit = [event for event in heard if "backend_compile" in event]
        jax.jit(lambda x: x + 0.25)(0.5)
    finally:
        jax.monitoring.unregister_event_duration_listener(hear)
    assert compiled_by_fit == []
    assert any("backend_compile" in event for event in heard)


def test_cut_feedback_keeps_the_answers_out_of_the_mixtures(study, posterior):
    cut = _fit(study, feedback="cut")
    rng = np.random.default_rng(0)
    other = Study.from_arrays(
        **{
            role: {
                "selected": data.selected,
                "shown": data.shown,
                "correct": rng.random(data.correct.shape) < 0.5,
            }
            for role, data in study.datasets.items()
        },
        classifiers=study.classifiers,
    )
    again = _fit(other, feedback="cut")
    for name in ("component_mean", "weight_logit", "mean_selection_frequency"):
        np.testing.assert_array_equal(_values(cut, name), _values(again, name))
    full = _values(posterior)
    close = np.abs(_values(cut).mean(axis=(0, 1)) - full.mean(axis=(0, 1)))
    assert (close < 2 * full.std(axis=(0, 1))).all()
    assert np.abs(_values(again).mean() - full.mean()) > 0.05
    assert cut.posterior.attrs["feedback"] == "cut"


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
    posterior = _fit(study, groups="superclass")
    by_group = posterior.posterior["group_adjusted_accuracy"]
    assert by_group.dims == ("chain", "draw", "classifier", "group")
    means = by_group.mean(("chain", "draw", "classifier"))
    # Partial pooling draws both towards each other; the sd of each is about 0.02.
    assert 0.8 < float(means.sel(group="bird")) < 0.95
    assert 0.45 < float(means.sel(group="dog")) < 0.62
    group, selected, shown = cells_along(find_group(posterior, "log_density"), "reference")
    assert (group[0], selected[0], shown[0]) == ("bird", 0, 3)
    assert len(group) == 2 * sum(range(4, 11))
    assert np.isfinite(_values(posterior)).all()
    assert posterior.posterior.attrs["groups"] == "superclass"


def _hard(**changes):
    rng = np.random.default_rng(0)
    parts = {
        role: {
            "selected": rng.binomial(8, 0.8, 50),
            "shown": 8,
            "correct": rng.random((50, 3)) < [0.0, 0.5, 1.1],
        }
        for role in ("reference", "replication")
    }
    for role in parts:
        parts[role] |= changes
    return Study.from_arrays(**parts, classifiers=["never", "half", "always"])


def test_fifty_images_and_classifiers_at_0_and_100_percent():
    values = _values(_fit(_hard())).reshape(-1, 3).mean(axis=0)
    assert values[0] < 0.15 < values[1] < 0.85 < values[2]


def test_every_annotator_selects_everything():
    posterior = _fit(_hard(selected=np.full(50, 8)))
    assert (_values(posterior, "mean_selection_frequency").mean(axis=(0, 1)) > 0.85).all()
    assert np.isfinite(_values(posterior)).all()


def test_identical_data_sets_have_no_gap():
    study = _hard()
    twice = Study(
        {"reference": study.reference, "replication": replace(study.reference, name="again")},
        study.classifiers,
    )
    gap = _values(_fit(twice), "bias_corrected_gap")
    assert (np.abs(gap.mean(axis=(0, 1))) < 3 * gap.std(axis=(0, 1)) + 0.05).all()


def test_one_or_two_annotators_are_warned_of():
    """One annotator cannot tell two components, let alone the six that are fitted to him."""
    study = _hard(selected=np.arange(50) % 2, shown=1)
    with pytest.warns(ConvergenceWarning) as warned:
        posterior = bayesrep.fit(study, **SMALL, **SHORT, components=6)
    assert posterior.posterior["component_weight"].shape == (2, 100, 2, 6)
    wanted = "identify the mean of its selection frequencies and no more"
    assert any(wanted in str(warning.message) for warning in warned)
    assert wanted in posterior.posterior.attrs["advice"]
    assert np.isfinite(_values(posterior)).all()
    two = SufficientStatistics.from_study(_hard(selected=np.arange(50) % 3, shown=2))
    assert all("identify two moments" in sentence for sentence in advise(two))
    assert len(advise(two)) == 2
    assert advise(SufficientStatistics.from_study(_hard())) == ()


def test_the_prior_predictive_draws_studies():
    study = _hard()
    drawn = prior_predictive(study, draws=200, seed=1, **SMALL)
    again = prior_predictive(study, draws=200, seed=1, **SMALL)
    images = drawn.prior_predictive["reference_images"].values
    assert images.shape == (1, 200, 9)
    assert (images.sum(axis=-1) == 50).all()
    right = drawn.prior_predictive["replication_right"].values
    shown = drawn.prior_predictive["replication_images"].values
    assert (right <= shown[:, :, None]).all()
    np.testing.assert_array_equal(right, again.prior_predictive["replication_right"].values)
    location = drawn.prior["first_location"].values
    # 200 draws of Normal(0.7, 0.5): within 4 standard errors, a false alarm in 10^4.
    assert abs(location.mean() - 0.7) < 4 * 0.5 / np.sqrt(200)
    narrow = prior_predictive(study, draws=50, **SMALL, first_location=(2.0, 0.01))
    assert abs(narrow.prior["first_location"].values.mean() - 2.0) < 0.01
    with pytest.raises(ValueError, match="draws must be at least 1"):
        prior_predictive(study, draws=0)


def test_the_faster_device_is_chosen_and_the_choice_explained(posterior):
    choice = fastest({"cpu": "a", "gpu": "b"}, {"cpu": 2e-4, "gpu": 3e-3})
    assert choice.device == "a"
    assert choice.reason == "cpu: one gradient of all chains takes 0.20 ms on cpu, 3.00 ms on gpu"
    assert fastest({"cpu": "a", "gpu": "b"}, {"cpu": 2e-2, "gpu": 3e-3}).device == "b"
    assert posterior.posterior.attrs["device_choice"].startswith("cpu: the only device")


def test_jax_configuration_is_left_alone(study, posterior):
    assert posterior is not None
    assert jax.numpy.zeros(1).dtype == np.float32


def test_a_thousand_classifiers_fit_in_bounded_memory():
    many = bayesrep.simulate_study(seed=2, images=300, annotators=6, classifiers=1_000)
    values = _values(_fit(many, chains=1, warmup=20, draws=20))
    assert values.shape == (1, 20, 1_000)
    assert np.isfinite(values).all()


def test_recovers_the_truth_inside_the_family():
    """Default model and length on 3,000 images; the mean error has an sd of about 0.6 %.

    Wider than 2.5 % is a 4-sd event: false alarm rate about 1e-4, and the seed is fixed.
    """
    known = bayesrep.simulate_study(seed=6, images=3_000, classifiers=6, process="inside")
    fitted = bayesrep.fit(known, chains=4, progress=False)
    rows = bayesrep.summarize(known, fitted)
    error = rows["adjusted_accuracy"].to_numpy() - known.truth.adjusted_accuracy
    assert abs(error.mean()) < 0.025
    inside = (rows["lower"].to_numpy() <= known.truth.adjusted_accuracy) & (
        known.truth.adjusted_accuracy <= rows["upper"].to_numpy()
    )
    assert inside.sum() >= 4
    assert rows["classifier"].to_list() == list(known.classifiers)
    assert rows["rhat"].max() <= 1.01


def test_summary_refuses_an_unconverged_fit_and_a_foreign_study(study, posterior):
    assert not posterior.posterior.attrs["converged"]
    with pytest.raises(ConvergenceError, match="has not converged"):
        bayesrep.summarize(study, posterior)
    table = bayesrep.summarize(study, posterior, allow_unconverged=True)
    assert table.columns[:9] == bayesrep.estimate(study).columns
    assert table["classifier"].to_list() == list(study.classifiers)
    other = bayesrep.simulate_study(seed=9, images=100, annotators=8, classifiers=3)
    with pytest.raises(PosteriorError, match="another study"):
        bayesrep.summarize(other, posterior, allow_unconverged=True)


def test_short_fit_warns_in_words(study):
    with pytest.warns(ConvergenceWarning, match="wanted.*Try to run longer"):
        bayesrep.fit(study, **SMALL, **SHORT)


def test_file_round_trip_and_refusals(posterior, tmp_path):
    path = tmp_path / "posterior.nc"
    write_posterior(posterior, path)
    back = read_posterior(path)
    np.testing.assert_array_equal(_values(back), _values(posterior))
    assert (
        back.posterior.attrs["study_fingerprint"] == posterior.posterior.attrs["study_fingerprint"]
    )
    with pytest.raises(PosteriorError, match="exists"):
        write_posterior(posterior, path)
    write_posterior(posterior, path, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["posterior.nc"]
    with pytest.raises(PosteriorError, match="no such file"):
        read_posterior(tmp_path / "nothing.nc")
    whole = path.read_bytes()
    (tmp_path / "cut.nc").write_bytes(whole[: len(whole) // 3])
    with pytest.raises(PosteriorError, match="not a posterior of bayesrep"):
        read_posterior(tmp_path / "cut.nc")
    xr.Dataset({"x": 1}).to_netcdf(tmp_path / "foreign.nc", engine="h5netcdf")
    with pytest.raises(PosteriorError, match="not a posterior of bayesrep"):
        read_posterior(tmp_path / "foreign.nc")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "nonsense"}, "must be one of joint"),
        ({"chains": 0}, "chains >= 1"),
        ({"draws": 1}, "draws >= 10"),
        ({"feedback": "half"}, "'full' or 'cut'"),
        ({"degre": 8}, "no option 'degre'; its options are bend, classifier_bend"),
        ({"device": "abacus"}, "device 'abacus' is not here; JAX has cpu"),
    ],
)
def test_bad_arguments(study, changes, message):
    with pytest.raises(ValueError, match=message):
        bayesrep.fit(study, **changes)


def test_verdict_names_the_worst_quantity():
    def array(values):
        return {"a": xr.DataArray(values, dims="classifier", coords={"classifier": ["x", "y"]})}

    fine = Diagnostics(array([1.0, 1.001]), array([900.0, 800.0]), array([900.0, np.nan]))
    assert judge(fine, 0, 100).converged
    bad = Diagnostics(array([1.0, 1.2]), array([900.0, 80.0]), array([900.0, 800.0]))
    verdict = judge(bad, 3, 100)
    assert not verdict.converged
    for words in ("R-hat of a[y] is 1.200", "bulk ESS of a[y] is 80", "3 of 100 draws diverged"):
        assert words in verdict.sentence


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


def test_arviz_reads_our_groups(posterior):
    """LOO on the cells of the answers runs through ArviZ, which finds them by itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whole cells are influential, and ArviZ says so
        result = arviz().loo(posterior)
        assert arviz().plot_energy(posterior) is not None
    assert np.isfinite(float(getattr(result, "elpd_loo", getattr(result, "elpd", np.nan))))
