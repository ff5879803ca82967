"""The door to the posterior, on studies small enough to fit in seconds.

All fits of one shape share compiled programs, those of other files included; what takes time here
is compiling. Hence the tiny study, or others of 8 annotators and 3 classifiers, and one schedule.
"""

import importlib
import io
import json
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr
import zoo
from fits import hard_study, short_fit, values_of
from refusals import refused
from toys import Toy, counts, following

import bayesrep
import bayesrep.inference.laplace_marginal as laplace_marginal
from bayesrep import (
    ConvergenceError,
    ConvergenceWarning,
    OptionError,
    PosteriorError,
    Study,
    SufficientStatistics,
)
from bayesrep.errors import EstimateWarning
from bayesrep.files.netcdf import Variable
from bayesrep.inference import data_driven, mode
from bayesrep.inference.cells import cell_names
from bayesrep.inference.density import build_density
from bayesrep.inference.prior import prior_predictive
from bayesrep.inference.problem import pose
from bayesrep.inference.schedule import BLOCK, Schedule
from bayesrep.numerics.convergence import divide_chains
from bayesrep.posterior import read_posterior, write_posterior
from bayesrep.posterior.files import arviz
from bayesrep.posterior.groups import cells_along, find_group, place_of_cells
from bayesrep.posterior.verdict import Diagnostics, Verdict, advise, judge, with_modes

SMALL = {"degree": 8, "terms": 3}


@pytest.fixture(scope="module")
def study():
    return zoo.study("tiny")


@pytest.fixture(scope="module")
def posterior():
    return zoo.posterior("tiny", **zoo.SHORT)


@pytest.fixture(scope="module")
def fresh(study):
    """Fitted in this process, from statistics and with a bar; what was printed and warned of."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        statistics = SufficientStatistics.from_study(study)
        fitted = bayesrep.fit(statistics, **{**zoo.SHORT, "progress": True})
    return SimpleNamespace(posterior=fitted, out=out.getvalue(), err=err.getvalue(), said=said)


def _other(study, seed):
    """A study of the same shape, of the same counts and other answers."""
    rng = np.random.default_rng(seed)
    sets = {
        role: replace(data, correct=rng.random(np.shape(data.correct)) < 0.5)
        for role, data in study.datasets.items()
    }
    return replace(study, datasets=sets, truth=None)


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
    total = values_of(posterior, "bias_corrected_gap") + values_of(posterior, "selection_gap")
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


def test_predicted_counts_are_of_as_many_images(study, posterior):
    for role in study.datasets:
        counts = posterior.posterior_predictive[f"{role}_images"].values
        assert (counts.sum(axis=-1) <= 500).all()
    right = posterior.posterior_predictive["correct"]
    assert right.sizes["classifier"] == 3
    assert ((right.values >= 0) & (right.values <= 500)).all()


def test_same_draws_again_with_bar_and_with_statistics(study, posterior, fresh):
    """Of statistics what all share is the same; of images they know a mean correlation alone."""
    for name in ("population_curve", "component_mean"):
        same = values_of(posterior, name), values_of(fresh.posterior, name)
        np.testing.assert_array_equal(*same)
    assert fresh.out == ""
    assert "draw/s" in fresh.err
    assert "divergences" in fresh.err
    other = short_fit(study, seed=1)
    assert (values_of(posterior) != values_of(other)).any()


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


@pytest.mark.parametrize("chains", [4, 31, 36, 64])
def test_chains_begin_in_the_groups_that_are_compared(chains):
    schedule = Schedule(chains, warmup=100, draws=12)
    keys = np.asarray(jax.random.key_data(schedule.keys(jax.random.key(0))))
    place, own = keys[:, 0], keys[:, 1]
    assert len(np.unique(own, axis=0)) == chains
    groups = divide_chains(chains, schedule.superchains or chains)
    assert [len(np.unique(place[group], axis=0)) for group in groups] == [1] * len(groups)
    assert len(np.unique(place, axis=0)) == (chains if chains < 32 else 8)


@pytest.mark.parametrize("subsample", [2, 3])
def test_workers_do_not_change_draws(subsample, float64, monkeypatch):
    """Chains run one after the other or side by side, or as one batch: the same numbers.

    The surrogate has a subsample of three units.
    """
    monkeypatch.setattr(laplace_marginal, "MIN_SUBSAMPLE", subsample)
    toy = Toy(counts, jnp.asarray([0.0, 2.0, 5.0]))
    schedule = Schedule(chains=3, warmup=100, draws=40)
    one, two, batch = (
        toy.draws(schedule, vectorized=vectorized, workers=workers)
        for vectorized, workers in ((False, 1), (False, 3), (True, 1))
    )
    for name in ("shared", "units"):
        np.testing.assert_array_equal(one.position[name], two.position[name])
        np.testing.assert_allclose(one.position[name], batch.position[name], rtol=1e-6)
    assert one.position["shared"].shape == (3, 40, 1)
    assert one.position["units"].shape == (3, 40, 3, 1)


def test_held_coordinates_are_followed_draw_by_draw(float64):
    """Exactly, whatever the others do; what is left of those is judged in statistics/."""
    toy = Toy(following, jnp.asarray([0.5, 1.5]))
    schedule = Schedule(chains=3, warmup=100, draws=40)
    given = 0.7 * np.random.default_rng(0).standard_normal((3, 100 + 40 + BLOCK, 1))
    put = np.asarray(toy.white.to_shared)[0, 0] * given[:, 100:140, 0]
    wanted = np.asarray(toy.white.center["shared"])[0] + put
    for vectorized in (False, True):
        how = {"vectorized": vectorized, "workers": 2, "given": given}
        drawn = toy.draws(schedule, **how).position
        np.testing.assert_allclose(drawn["shared"][..., 0], wanted, rtol=1e-9)
        assert np.ptp(drawn["shared"][..., 1], axis=1).min() > 0


def test_a_second_fit_of_the_same_shape_compiles_nothing(study, fresh):
    """Its programs take the data as arguments, whatever is seen in them."""
    heard = []

    def hear(event, _, **__):
        heard.append(event)

    images = np.random.default_rng(4).integers(0, 500, 500)  # other counts, too
    sides = {
        role: {
            "selected": data.selected[images],
            "shown": data.shown,
            "correct": np.asarray(data.correct)[images],
        }
        for role, data in study.datasets.items()
    }
    other = Study.from_arrays(**sides, classifiers=["a", "b", "c"])
    jax.monitoring.register_event_duration_secs_listener(hear)
    try:
        short_fit(other, seed=3)
        compiled_by_fit = [event for event in heard if "backend_compile" in event]
        jax.jit(lambda x: x + 0.25)(0.5)
    finally:
        jax.monitoring.unregister_event_duration_listener(hear)
    assert compiled_by_fit == []
    assert any("backend_compile" in event for event in heard)


def test_cut_feedback_keeps_the_answers_out_of_the_mixtures(study):
    both = (study, _other(study, 0))
    cut, again = (zoo.fit(each, feedback="cut", **zoo.SHORT) for each in both)
    for name in ("component_mean", "weight_logit", "mean_selection_frequency"):
        np.testing.assert_array_equal(values_of(cut, name), values_of(again, name))
    assert (values_of(cut) != values_of(again)).all()
    assert cut.posterior.attrs["feedback"] == "cut"


def test_groups_get_their_own_accuracies():
    """Overall accuracies are theirs, by the groups' shares of the reference: three to two."""
    posterior = zoo.posterior("grouped", groups="breed", **zoo.SHORT)
    by_group = posterior.posterior["group_adjusted_accuracy"]
    assert by_group.dims == ("chain", "draw", "classifier", "group")
    assert by_group["group"].values.tolist() == ["cat", "dog"]
    np.testing.assert_allclose(by_group.values @ [0.6, 0.4], values_of(posterior), rtol=1e-9)
    assert np.isfinite(values_of(posterior)).all()
    assert posterior.posterior.attrs["groups"] == "breed"
    group, selected, shown = cells_along(find_group(posterior, "log_density"), "reference")
    assert (group[0], selected[0], shown[0]) == ("cat", 0, 8)
    assert len(group) == 2 * 9


def test_cells_of_groups_with_ragged_annotators(study):
    """Of every group every k of each n from 3 to 9, whatever was seen."""
    shown = np.resize(np.arange(3, 10), 500)
    sets = {
        role: replace(
            data,
            shown=shown,
            selected=np.minimum(data.selected, shown),
            groups={"breed": np.where(np.arange(500) % 5 < 3, "bird", "dog")},
        )
        for role, data in study.datasets.items()
    }
    ragged = replace(study, datasets=sets, truth=None)
    problem = pose(ragged, model="joint", options={}, groups="breed")
    group, selected, shown = cell_names(problem)["reference"]
    assert (group[0], selected[0], shown[0]) == ("bird", 0, 3)
    assert len(group) == 2 * sum(range(4, 11))


def twice(study):
    """Its reference is its replication, too."""
    again = replace(study.reference, name="b")
    return Study({"reference": study.reference, "replication": again}, study.classifiers)


@pytest.mark.parametrize(
    "study",
    [
        hard_study(),
        hard_study(selected=np.full(50, 8)),
        Study(
            {
                "reference": hard_study().reference,
                "replication": replace(hard_study().reference, name="b"),
            },
            hard_study().classifiers,
        ),
    ],
    ids=["classifiers at 0 and 100 percent", "everything is selected", "the same data set twice"],
)
def test_extreme_studies_have_a_posterior(study):
    """Of fifty images; what it is, is judged in statistics/."""
    posterior = zoo.fit(study, **zoo.SHORT)
    for name in ("adjusted_accuracy", "mean_selection_frequency"):
        assert ((values_of(posterior, name) > 0) & (values_of(posterior, name) < 1)).all()


FEW_DRAWS = {**zoo.SHORT, "chains": 1, "warmup": 50, "draws": 25}


def test_the_number_of_components_is_told_where_the_counts_ask_for_it(monkeypatch):
    """As where three are said to be worth e^30 times two."""
    evidence = {2: -100.0, 3: -70.0, 4: -60.0}
    monkeypatch.setattr(
        data_driven, "find_mixture_mode", lambda _, options: (evidence[options.components], {})
    )
    study = hard_study(selected=np.arange(50) % 2, shown=1)
    asked = short_fit(study, **FEW_DRAWS).posterior.attrs
    assert json.loads(asked["options"])["components"] == 3
    small = pose(study, model="joint", options=SMALL)
    why = data_driven.choose_components(small, choose=True)[1]
    assert asked["components_choice"] == why != ""


def test_settings_of_nuts_reach_the_sampler(study):
    """And the checks, which say what the longest trajectory may be."""
    settings = {"target_accept": 0.6, "max_tree_depth": 2, "dense_mass": False}
    short = {"draws": 25, "progress": False, **SMALL}
    posterior = short_fit(study, **short, **settings)
    made = posterior.posterior.attrs
    planned = json.loads(made["schedule"])
    assert made["method"] == "nuts"
    assert {name: planned[name] for name in settings} == settings
    longest = planned["thinning"] * (2 ** settings["max_tree_depth"] - 1)
    assert 0 < posterior.sample_stats["num_steps"].values.max() <= longest
    checks = bayesrep.diagnose(posterior).checks.rows_by_key("check", named=True, unique=True)
    assert checks["steps per transition"]["value"].endswith("(limit 3)")


def test_one_or_two_annotators_are_warned_of():
    """One annotator cannot tell two components, let alone the three that are fitted here."""
    study = hard_study(selected=np.arange(50) % 2, shown=1)
    with pytest.warns(ConvergenceWarning) as warned:
        posterior = bayesrep.fit(study, **FEW_DRAWS, components=3)
    assert posterior.posterior["component_weight"].shape == (1, 25, 2, 3)
    assert np.isfinite(values_of(posterior)).all()
    one = advise(SufficientStatistics.from_study(study))
    assert {str(warning.message) for warning in warned} >= set(one)
    assert posterior.posterior.attrs["advice"] == " ".join(one)
    two = advise(SufficientStatistics.from_study(hard_study(selected=np.arange(50) % 3, shown=2)))
    for sentences, moments in ((one, "the mean"), (two, "two moments")):
        assert len(sentences) == 2  # of the reference, and of the replication
        assert all(f" identify {moments} of " in sentence for sentence in sentences)
    assert advise(SufficientStatistics.from_study(hard_study())) == ()


def test_the_prior_predictive_draws_studies():
    study = hard_study()
    drawn = prior_predictive(study, draws=50, seed=1, **SMALL)
    again = prior_predictive(study, draws=50, seed=1, **SMALL)
    images = drawn.prior_predictive["reference_images"].values
    assert images.shape == (1, 50, 9)
    assert (images.sum(axis=-1) == 50).all()
    right = drawn.prior_predictive["replication_right"].values
    shown = drawn.prior_predictive["replication_images"].values
    assert (right <= shown[:, :, None]).all()
    np.testing.assert_array_equal(right, again.prior_predictive["replication_right"].values)
    # The same draws in units of the prior: its mean and sd are what the options say.
    location = drawn.prior["first_location"].values
    narrow = prior_predictive(study, draws=50, seed=1, **SMALL, first_location=(2.0, 0.01))
    np.testing.assert_allclose(
        (narrow.prior["first_location"].values - 2.0) / 0.01, (location - 0.7) / 0.5, rtol=1e-6
    )
    with refused(OptionError, "prior-draws-below-one", {"draws": 0}):
        prior_predictive(study, draws=0)


def test_jax_configuration_is_left_alone(study, posterior):
    assert posterior.posterior.attrs["device_choice"].startswith("cpu: the only device")
    assert jax.numpy.zeros(1).dtype == np.float32


def test_a_thousand_classifiers_fit_in_bounded_memory(study):
    many = np.arange(1_000) % 3
    sides = {
        role: {
            "selected": data.selected[:300],
            "shown": data.shown[:300],
            "correct": np.asarray(data.correct)[:300, many],
        }
        for role, data in study.datasets.items()
    }
    study = Study.from_arrays(**sides, classifiers=[f"c{place}" for place in range(1_000)])
    values = values_of(zoo.fit(study, **{**zoo.SHORT, "chains": 1, "warmup": 20, "draws": 20}))
    assert values.shape == (1, 20, 1_000)
    assert np.isfinite(values).all()


def test_summary_refuses_an_unconverged_fit_and_a_foreign_study(study, posterior):
    verdict = posterior.posterior.attrs["verdict"]
    assert not posterior.posterior.attrs["converged"]
    with refused(ConvergenceError, "not-converged") as found:
        bayesrep.summarize(study, posterior)
    assert verdict in found.value.facts["verdict"]
    table = bayesrep.summarize(study, posterior, allow_unconverged=True)
    assert table.width == 8  # as many as polars prints
    assert table.columns[:5] == [
        *("classifier", "adjusted_accuracy", "lower", "upper", "bias_corrected_gap"),
    ]
    gap = table.select("gap_lower", "bias_corrected_gap", "gap_upper").to_numpy()
    assert (np.diff(gap) > 0).all()
    every = bayesrep.summarize(study, posterior, allow_unconverged=True, all_columns=True)
    assert every.select(table.columns).equals(table)
    with pytest.warns(EstimateWarning):
        assert {*bayesrep.estimate(study).columns, "rhat"} < {*every.columns}
    assert table["classifier"].to_list() == list(study.classifiers)
    with refused(PosteriorError, "posterior-of-another-study"):
        bayesrep.summarize(zoo.cut(study, images=100), posterior, allow_unconverged=True)


def test_short_fit_warns_in_words(fresh):
    """By its verdict, which says what is wanted and what to try."""
    (told,) = [each for each in fresh.said if issubclass(each.category, ConvergenceWarning)]
    verdict = fresh.posterior.posterior.attrs["verdict"]
    assert str(told.message) == verdict
    assert "wanted" in verdict
    assert "Try to run longer" in verdict


def test_file_round_trip_and_refusals(posterior, tmp_path):
    path = tmp_path / "posterior.nc"
    write_posterior(posterior, path)
    back = read_posterior(path)
    np.testing.assert_array_equal(values_of(back), values_of(posterior))
    assert (
        back.posterior.attrs["study_fingerprint"] == posterior.posterior.attrs["study_fingerprint"]
    )
    with refused(PosteriorError, "posterior-path-exists", {"path": str(path)}):
        write_posterior(posterior, path)
    write_posterior(posterior, path, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["posterior.nc"]
    nothing = tmp_path / "nothing.nc"
    with refused(PosteriorError, "posterior-file-missing", {"path": str(nothing)}):
        read_posterior(nothing)
    whole = path.read_bytes()
    (tmp_path / "cut.nc").write_bytes(whole[: len(whole) // 3])
    with refused(PosteriorError, "posterior-file-unreadable"):
        read_posterior(tmp_path / "cut.nc")
    xr.Dataset({"x": 1}).to_netcdf(tmp_path / "foreign.nc", engine="h5netcdf")
    with refused(PosteriorError, "adjusted-accuracy-missing"):
        read_posterior(tmp_path / "foreign.nc")


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"model": "nonsense"}, ("unknown-model", {"model": "nonsense"})),
        ({"chains": 0}, ("chains-or-draws-too-few", {"chains": 0})),
        ({"draws": 1}, ("chains-or-draws-too-few", {"draws": 1})),
        ({"feedback": "half"}, ("unknown-feedback", {"feedback": "half"})),
        ({"degre": 8}, ("unknown-model-option", {"options": ["degre"], "model": "joint"})),
        ({"num_chains": 2}, ("unknown-model-option", {"hint": "; did you mean 'chains'?"})),
        ({"random_seed": 1}, ("unknown-model-option", {"hint": "; did you mean 'seed'?"})),
        ({"tune": 9}, ("unknown-model-option", {"hint": "; did you mean 'warmup'?"})),
        ({"chans": 4}, ("unknown-model-option", {"hint": "; did you mean 'chains'?"})),
        ({"device": "abacus"}, ("device-not-present", {"device": "abacus", "choices": "cpu"})),
        ({"target_accept": 1.0}, ("target-accept-out-of-range", {"value": 1.0})),
        ({"target_accept": True}, ("target-accept-out-of-range", {"value": True})),
        ({"max_tree_depth": 0}, ("tree-depth-out-of-range", {"value": 0})),
        ({"max_tree_depth": 2.0}, ("tree-depth-out-of-range", {"value": 2.0})),
        ({"dense_mass": 1}, ("option-not-true-or-false", {"option": "dense_mass", "value": 1})),
        (
            {"method": "laplace", "dense_mass": True},
            ("nuts-settings-without-nuts", {"option": "dense_mass", "method": "laplace"}),
        ),
    ],
)
def test_bad_arguments(study, changes, broken):
    with refused(OptionError, *broken) as found:
        bayesrep.fit(study, **changes)
    if "degre" in changes:
        assert found.value.facts["choices"].startswith("bend, classifier_bend")
    if "model" in changes:
        assert found.value.facts["choices"].startswith("joint")


def test_verdict_names_the_worst_quantity():
    def array(values):
        return {"a": Variable(("classifier",), np.array(values))}

    def checks(*values):
        return Diagnostics(*map(array, values), names={"classifier": np.array(["x", "y"])})

    fine = checks([1.0, 1.001], [900.0, 800.0], [900.0, np.nan])
    assert judge(fine, 0, 100).converged
    bad = checks([1.0, 1.2], [900.0, 80.0], [900.0, 800.0])
    verdict = judge(bad, 3, 100)
    assert not verdict.converged
    nested = replace(bad, nested=True)
    assert "nested R-hat of a[y] is 1.200" in judge(nested, 0, 100).sentence
    assert "The chains agree: R-hat," in judge(fine, 0, 100).sentence
    assert "nested R-hat, effective" in judge(replace(fine, nested=True), 0, 100).sentence
    for words in ("R-hat of a[y] is 1.200", "bulk ESS of a[y] is 80", "3 of 100 draws diverged"):
        assert words in verdict.sentence


def test_the_share_of_other_modes_is_that_of_their_masses(unannotated, monkeypatch):
    """Of 13 climbs on a line whose unit is half a standard deviation; one mode is met twice."""
    ends = [(0.0, 0.6), (3.0, 0.3), (3.9, 0.2), (-4.0, 0.1), *[(0.5, 9.0)] * 9]
    found = [
        SimpleNamespace(
            position={"shared": np.array([at])}, expansion=SimpleNamespace(hessian=None), mass=mass
        )
        for at, mass in ends
    ]
    climbs = iter(found)
    monkeypatch.setattr(mode, "find_mode_from_annotations", lambda *_: next(climbs))
    monkeypatch.setattr(mode, "log_mass", lambda end: np.log(end.mass))
    two = SimpleNamespace(to_shared=np.array([[2.0]]))
    monkeypatch.setattr(mode, "whitening", lambda *_: two)
    drawn = {"shared": np.zeros((1, mode.N_PRIOR_STARTS, 1))}
    monkeypatch.setattr(mode, "prior_positions", lambda *_: drawn)
    tools = SimpleNamespace(start=lambda _: {"shared": np.zeros(1)})
    options = SimpleNamespace(shared_components=False)
    problem = SimpleNamespace(options=options, start=lambda _: None)
    assert mode.other_mode_mass(problem, tools, None, 0) == pytest.approx(0.4)
    assert next(climbs, None) is None
    options.shared_components = True
    assert mode.other_mode_mass(problem, tools, None, 0) == 0.0


@pytest.mark.parametrize("options", [zoo.SHORT, {**zoo.QUICK, **SMALL}], ids=["nuts", "laplace"])
def test_no_method_certifies_one_of_two_modes(study, options, monkeypatch):
    """Where a fifth of the posterior is said to be elsewhere; true ones are in statistics/."""
    door = importlib.import_module("bayesrep.inference.fit")
    monkeypatch.setattr(door, "other_mode_mass", lambda *_: 0.2)
    with pytest.warns(ConvergenceWarning) as warned:
        posterior = bayesrep.fit(study, **options)
    made = posterior.posterior.attrs
    assert made["elsewhere"] == 0.2
    assert not made["converged"]
    assert "20 % of it lies elsewhere" in made["verdict"]
    assert made["verdict"] in {str(warning.message) for warning in warned}


def test_a_verdict_stays_where_hardly_anything_is_elsewhere():
    fine = Verdict(converged=True, sentence="Fine.")
    assert with_modes(fine, 0.01) == fine
    assert not with_modes(fine, 0.011).converged
    assert with_modes(Verdict(converged=False, sentence="Bad."), 0.2).sentence.endswith(" Bad.")


def test_arviz_reads_our_groups(posterior):
    """LOO on the cells of the answers runs through ArviZ, which finds them by itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whole cells are influential, and ArviZ says so
        result = arviz().loo(posterior)
        assert arviz().plot_energy(posterior) is not None
    assert np.isfinite(float(getattr(result, "elpd_loo", getattr(result, "elpd", np.nan))))
