"""A posterior and its study as one value: checked when it is made, reduced once."""

import dataclasses
import itertools

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy.special import expit

from bayesrep import ConvergenceError, PosteriorError, SufficientStatistics
from bayesrep.checks import compare_fits
from bayesrep.errors import StudyError
from bayesrep.numerics.codes import decode
from bayesrep.posterior import joint_draws
from bayesrep.posterior.files import build_posterior, read_posterior, write_posterior
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import CellNames, draws_of, find_group, place_of_cells, read_record
from bayesrep.posterior.influences import BLOCKS, Influences, excess_covariance, leading_excess
from bayesrep.posterior.joint_draws import move_draws, move_draws_along, reference_draws
from bayesrep.posterior.likelihood import logit_codes
from bayesrep.summary.tables import accuracies, gaps
from experiments.fuzzing import samples


@pytest.fixture(scope="module")
def study():
    return samples.study()


def with_attributes(**changes):
    """The sample with attributes changed, or left out where they are None."""
    made = samples.posterior()
    facts = {**made.posterior.attrs, **changes}
    made.posterior.attrs.clear()
    made.posterior.attrs.update({name: value for name, value in facts.items() if value is not None})
    return made


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"statistics_digest": "0"}, ("posterior-of-another-study",)),
        ({"statistics_digest": None}, ("posterior-of-unknown-counts",)),
        ({"study_fingerprint": "0"}, ("posterior-of-other-images",)),
    ],
)
def test_a_foreign_posterior_is_refused_when_they_meet(study, changes, broken):
    with refused(PosteriorError, *broken):
        Fitted(study, with_attributes(**changes))


def test_what_is_no_posterior_is_refused_too(study):
    with refused(
        PosteriorError, "posterior-part-missing", {"missing_part": "posterior (adjusted_accuracy)"}
    ):
        Fitted(study, build_posterior({"posterior": {}}, {}, {}))


def test_statistics_have_no_images(study):
    statistics = SufficientStatistics.from_study(study)
    fitted = Fitted(statistics, with_attributes(study_fingerprint="0"))
    assert fitted.statistics is statistics
    assert len(accuracies(fitted)) == 3
    with refused(StudyError, "statistics-instead-of-study"):
        fitted.joint_draws()


def test_a_verdict_is_asked_for(study):
    fitted = Fitted(study, with_attributes(converged=0, verdict="R-hat is 2."))
    with refused(ConvergenceError, "not-converged", {"verdict": "R-hat is 2."}):
        fitted.require_convergence()
    assert fitted.require_convergence(allow_unconverged=True) is fitted


def test_the_study_is_reduced_once(study, monkeypatch):
    calls, posterior = [], samples.posterior()
    reduce = SufficientStatistics.from_study
    monkeypatch.setattr(SufficientStatistics, "from_study", lambda s: calls.append(s) or reduce(s))
    fitted = Fitted(study, posterior)
    accuracies(fitted)
    gaps(fitted)
    assert len(calls) == 1


def test_joint_draws_repeat_by_their_seed(study):
    one, again, other = (Fitted(study, samples.posterior()).joint_draws(seed) for seed in (1, 1, 2))
    assert one.adjusted.shape == one.reference.shape == (2, 20, 3)
    np.testing.assert_array_equal(one.adjusted, other.adjusted)
    np.testing.assert_array_equal(one.reference, again.reference)
    assert (one.reference != other.reference).all()


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_the_excess_is_the_sum_over_images_less_what_the_posterior_has(weight):
    """Image by image, by influences of the whole posterior; products are of different blocks."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(2, 50, 2))
    adjusted = rng.normal(size=(2, 50, 3)) + shared @ rng.normal(size=(2, 3))
    logit = rng.normal(size=(2, 50, 3, 4)) + np.einsum("sdp,pcm->sdcm", shared, np.ones((2, 3, 4)))
    cell, correct = rng.integers(0, 4, 12), rng.random((12, 3)) < 0.6

    def blocks(values):
        half = values.reshape(2, BLOCKS, 10, *values.shape[2:])
        both = np.concatenate([*half], axis=1)
        return both - both.mean(axis=1, keepdims=True)

    parts = [blocks(each) for each in (shared, adjusted, logit)]
    wanted = np.zeros((3, 3))
    for a, b in itertools.permutations(range(BLOCKS), 2):
        for image in range(12):
            phi, one, own, residual = [], [], [], []
            for block in (a, b):
                ours, draws, all_logits = (part[block] for part in parts)
                logits = all_logits[:, :, cell[image]]
                told = [ours @ np.linalg.lstsq(ours, of, rcond=None)[0] for of in (draws, logits)]
                through = told[1].T @ told[0] / len(ours)
                alone = np.sum((logits - told[1]) * (draws - told[0]), axis=0) / len(ours)
                own.append(np.diag(alone))
                phi.append(weight * through + own[-1])
                one.append(through + own[-1])
            mean = expit(logit[:, :, :, cell[image]]).mean(axis=(0, 1))
            residual = correct[image] - mean
            squares = np.diag(residual**2)
            wanted += phi[0].T @ np.outer(residual, residual) @ phi[1]
            wanted -= weight * one[0].T @ squares @ one[1]
            wanted -= (1 - weight) * own[0].T @ squares @ own[1]
    wanted = (wanted + wanted.T) / (2 * BLOCKS * (BLOCKS - 1))
    influences = Influences.from_draws(adjusted, shared, weight)
    found = excess_covariance(influences, of_cell(logit), cell, correct)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def of_cell(logit):
    """Draws [chain, draw, classifier] of a cell."""
    return lambda cell: logit[..., cell]


def test_copies_of_a_classifier_add_nothing_to_what_they_share():
    """With the weight of copies the posterior has the spread of one of them already."""
    rng = np.random.default_rng(1)
    shared = rng.normal(size=(2, 500, 1))
    adjusted = np.repeat(0.01 * shared, 4, axis=2)
    logit = np.repeat(shared[..., None], 4, axis=2)
    cell = np.zeros(200, dtype=np.int64)
    mean = expit(logit).mean()
    correct = np.repeat(np.arange(200)[:, None] < round(200 * mean), 4, axis=1)
    independent = excess_covariance(
        Influences.from_draws(adjusted, shared, 1.0), of_cell(logit), cell, correct
    )
    copies = excess_covariance(
        Influences.from_draws(adjusted, shared, 0.25), of_cell(logit), cell, correct
    )
    assert np.abs(copies).max() < 1e-6 * independent.max()


def test_moved_draws_have_the_correlations_and_their_own_spread():
    rng = np.random.default_rng(0)
    adjusted = 0.7 + 0.01 * rng.normal(size=(2, 500, 3))
    covariance = np.cov(adjusted.reshape(-1, 3).T)
    excess = np.full((3, 3), 5e-5) - np.diag([5e-5] * 3)
    draws = move_draws(adjusted, excess).reshape(-1, 3)
    wanted = covariance + excess
    scale = np.sqrt(np.diag(wanted))
    np.testing.assert_allclose(np.corrcoef(draws.T), wanted / np.outer(scale, scale), atol=1e-10)
    np.testing.assert_allclose(draws.std(axis=0), adjusted.std(axis=(0, 1)), rtol=1e-10)
    np.testing.assert_allclose(draws.mean(axis=0), adjusted.mean(axis=(0, 1)), rtol=1e-10)


def test_images_of_the_study_are_in_their_cells(study):
    fitted = Fitted(study, samples.posterior())
    cells = find_group(fitted.posterior, "log_density")["replication_selected"].values
    place = fitted.cell_of_images("replication")
    np.testing.assert_array_equal(cells[place], study.replication.selected)


some_cells = st.lists(
    st.tuples(st.sampled_from(["", "a", "a: b", "ü"]), st.integers(0, 4), st.integers(1, 4)),
    min_size=1,
    unique=True,
)


def columns(rows):
    group, selected, shown = zip(*rows, strict=True)
    return CellNames(np.array(group), np.array(selected), np.array(shown))


@given(some_cells, st.data())
def test_the_place_of_a_cell_is_that_of_a_dictionary(cells, data):
    places = {cell: place for place, cell in enumerate(cells)}
    images = data.draw(st.lists(st.sampled_from(cells), min_size=1))
    found = place_of_cells(columns(cells), *columns(images))
    assert found.tolist() == [places[image] for image in images]
    other = data.draw(some_cells)
    if set(other) - set(cells):
        with refused(PosteriorError, "posterior-lacks-study-cells"):
            place_of_cells(columns(cells), *columns(other))


def test_large_counts_of_many_groups_are_told_apart():
    """Group, selected and shown in one number would be one of more than 64 bits."""
    cells = [(f"{group}", selected, 2**31 - 1) for group in range(5) for selected in (0, 2**31 - 2)]
    found = place_of_cells(columns(cells), *columns(cells[::-1]))
    assert found.tolist() == list(range(10))[::-1]


def test_what_a_posterior_records():
    made = read_record(with_attributes(feedback="cut", groups="superclass"))
    assert (made.name, made.method, made.roles) == ("joint", "nuts", ("reference", "replication"))
    assert (made.cut, made.grouping, made.thinning) == (True, "superclass", 1)
    assert made.options.components == 2
    other = read_record(with_attributes(options='{"odd": 1}'))
    with refused(PosteriorError, "posterior-options-of-other-model", {"model": "joint"}):
        _ = other.options
    for odd in ({"model": "odd"}, {"schedule": '{"thinning": 1e999}'}):
        with refused(PosteriorError, "posterior-origin-unknown"):
            read_record(with_attributes(**odd))


def test_a_value_does_not_change(study):
    fitted = Fitted(study, samples.posterior())
    with pytest.raises(dataclasses.FrozenInstanceError):
        fitted.study = study


def test_leading_directions_are_those_of_the_whole():
    """One difficulty of images, shared by all: its direction, and what it adds, are found."""
    rng = np.random.default_rng(0)
    classifiers, images = 40, 300
    shared = rng.normal(size=(2, 100, 3))
    logit = 0.5 + 0.2 * rng.normal(size=(2, 100, classifiers, 4))
    logit += np.einsum("sdp,pcm->sdcm", shared, rng.normal(size=(3, classifiers, 4)))
    adjusted = 0.7 + 0.01 * logit.mean(axis=3)
    hard = rng.normal(size=(images, 1)) + 0.5 * rng.normal(size=(images, classifiers))
    cell, correct = rng.integers(0, 4, images), hard < 0.5
    among = (Influences.from_draws(adjusted, shared, 0.2), of_cell(logit), cell, correct)
    whole, ones = excess_covariance(*among), np.ones((classifiers, 1))
    directions, excess = leading_excess(*among, ones)
    np.testing.assert_allclose(directions.T @ directions, np.eye(len(excess)), atol=1e-12)
    np.testing.assert_allclose(excess, directions.T @ whole @ directions, atol=1e-15, rtol=1e-9)
    np.testing.assert_allclose(directions @ (directions.T @ ones), ones)
    top = np.linalg.eigvalsh(whole)[-1]
    assert np.linalg.eigvalsh(excess)[-1] == pytest.approx(top, rel=0.01)
    # In all directions it is the same move, but for how own spreads are kept.
    draws = move_draws_along(adjusted, np.eye(classifiers), whole)
    np.testing.assert_allclose(draws.std(axis=(0, 1)), adjusted.std(axis=(0, 1)), rtol=1e-9)
    np.testing.assert_allclose(draws.mean(axis=(0, 1)), adjusted.mean(axis=(0, 1)), rtol=1e-9)
    np.testing.assert_allclose(
        np.corrcoef(draws.reshape(-1, classifiers).T),
        np.corrcoef(move_draws(adjusted, whole).reshape(-1, classifiers).T),
        atol=1e-9,
    )


def test_population_draws_of_many_have_the_moments_of_few(monkeypatch):
    """With and without a matrix of classifiers by classifiers: units in the place of noise.

    Without noise the draws are the conditional means; what units in the place of it add is a root
    of the conditional covariance.
    """

    class Units:
        def __init__(self, of):
            self.left = of

        def standard_normal(self, shape):
            rows, self.left = self.left[: shape[0], : shape[1]], self.left[shape[0] :]
            return rows

    rng = np.random.default_rng(0)
    adjusted = 0.7 + 0.01 * rng.normal(size=(2, 200, 3))
    log_mass = 2 * (adjusted - 0.7) @ rng.normal(size=(3, 4)) - 2
    cell, correct = rng.integers(0, 4, 400), rng.random((400, 3)) < 0.7
    arguments = adjusted, adjusted, log_mass, cell, correct

    def moments():
        drawn = []
        for units in (np.zeros((400, 400)), np.eye(400)):
            monkeypatch.setattr(np.random, "default_rng", lambda _, units=units: Units(units))
            drawn.append(reference_draws(*arguments, seed=1).reshape(-1, 3))
        added = drawn[1] - drawn[0]
        return drawn[0], added.T @ added

    mean, covariance = moments()
    monkeypatch.setattr(joint_draws, "MOST_WHOLE", 1)
    same_mean, same_covariance = moments()
    np.testing.assert_allclose(same_mean, mean, atol=1e-12)
    np.testing.assert_allclose(same_covariance, covariance, rtol=1e-8, atol=1e-14)


def test_a_thinned_likelihood_is_met_with_its_own_draws(study, tmp_path):
    """What is kept of some draws only is combined with these."""
    thinned = remade(log_density=lambda group: group.isel(draw=slice(0, None, 3)))
    kept = np.arange(0, 20, 3)
    whole = find_group(thinned, "posterior")
    np.testing.assert_array_equal(draws_of(find_group(thinned, "log_density"), whole), kept)
    write_posterior(thinned, tmp_path / "thinned.nc")
    again = read_posterior(tmp_path / "thinned.nc")
    fitted = Fitted(study, again)
    assert fitted.joint_draws().adjusted.shape == fitted.adjusted_draws.shape
    drawn = of_cell(decode(logit_codes(again)))
    among = fitted.cell_of_images("replication"), study.replication.correct
    shared = whole["population_curve"].values[:, kept]
    influences = Influences.from_draws(fitted.adjusted_draws[:, kept], shared, 1.0)
    wanted = move_draws(fitted.adjusted_draws, excess_covariance(influences, drawn, *among))
    np.testing.assert_array_equal(fitted.joint_draws().adjusted, wanted)
    assert len(compare_fits({"a": again})) == 1
    other = remade(log_density=lambda group: group.assign_coords(draw=np.arange(20) + 100))
    with refused(PosteriorError, "log-likelihood-draws-differ"):
        draws_of(find_group(other, "log_density"), whole)


def remade(every=lambda group: group, **changes):
    """The sample with all groups changed, or some, as xarray changes them."""
    posterior = samples.posterior()
    names = ("posterior", "observed_data", "sample_stats", "log_density")
    tree = isinstance(posterior, xr.DataTree)
    some = {name: posterior[name].to_dataset() if tree else posterior[name] for name in names}
    some = {name: changes.get(name, every)(group) for name, group in some.items()}
    return xr.DataTree.from_dict(some) if tree else type(posterior)(**some)


def along(dim, change):
    """Change what lies along a dimension, where it does."""
    return lambda group: change(group) if dim in group.sizes else group


def pick(dim, places):
    return along(dim, lambda group: group.isel({dim: places}))


ORDERS = {
    "sorted": (along("classifier", lambda group: group.sortby("classifier", ascending=False)), {}),
    "permuted": (pick("classifier", [2, 0, 1]), {}),
    "in one group": (lambda group: group, {"posterior": pick("classifier", [1, 2, 0])}),
    "data sets": (pick("dataset", [1, 0]), {}),
}


@pytest.mark.parametrize("kind", ORDERS)
def test_names_are_put_in_the_order_of_the_study(study, tmp_path, kind):
    every, changes = ORDERS[kind]
    other, whole = remade(every, **changes), remade()
    if not changes:
        write_posterior(other, tmp_path / "other.nc")
        other = read_posterior(tmp_path / "other.nc")
    tables = [
        [accuracies(each), gaps(each)] for each in (Fitted(study, whole), Fitted(study, other))
    ]
    for one, same in zip(*tables, strict=True):
        assert one.equals(same)


OTHER_NAMES = "posterior-of-other-names"
DISORDER = "posterior-draws-disordered"
CHANGED = {
    "subset": (pick("classifier", [0, 1]), OTHER_NAMES),
    "twice": (pick("classifier", [0, 1, 1]), OTHER_NAMES),
    "renamed": (
        along("classifier", lambda group: group.assign_coords(classifier=["a", "b", "c"])),
        OTHER_NAMES,
    ),
    "one": (pick("classifier", 0), "posterior-dimensions-changed"),
    "one chain's": (pick("chain", 0), "posterior-dimensions-changed"),
    "without names": (
        along("classifier", lambda group: group.drop_vars("classifier")),
        "posterior-names-missing",
    ),
    "draws twice": (pick("draw", [0] * 20), DISORDER),
    "repeated": (
        along(
            "draw",
            lambda group: xr.concat([group.isel(draw=slice(0, 10))] * 2, "draw").assign_coords(
                draw=np.arange(20)
            ),
        ),
        DISORDER,
    ),
    "shuffled": (pick("draw", [1, 0, *range(2, 20)]), DISORDER),
    "chains twice": (pick("chain", [0, 0]), DISORDER),
}


@pytest.mark.parametrize("kind", CHANGED)
def test_what_is_not_the_posterior_of_the_study_is_refused(study, kind):
    change, rule = CHANGED[kind]
    with refused(PosteriorError, rule):
        Fitted(study, remade(change))


@pytest.mark.parametrize("method", ["nuts", "laplace"])
@pytest.mark.parametrize("part", [pick("draw", slice(0, None, 2)), pick("chain", [1])])
def test_a_certificate_belongs_to_its_draws(study, tmp_path, method, part):
    """Some of them are judged by themselves, from a file as well."""
    facts = {"converged": 1, "method": method, "ess": 673.0, "pareto_k": 0.4, "verdict": "good"}
    facts["schedule"] = '{"chains": 2, "draws": 20}'
    whole = remade(lambda group: group.assign_attrs(facts))
    assert Fitted(study, whole).require_convergence()
    write_posterior(remade(lambda group: part(group).assign_attrs(facts)), tmp_path / "part.nc")
    some = Fitted(study, read_posterior(tmp_path / "part.nc"))
    with pytest.raises(ConvergenceError, match="^Of 20 draws, not of the fit's 40: "):
        some.require_convergence()
    assert method == "nuts" or "effective size is 336 " in some.group.attrs["verdict"]


def test_chains_of_two_runs_have_a_certificate_of_their_own(study):
    """As ArviZ's `concat` puts them together: codes keep what they mean in each."""
    facts = {"converged": 1, "method": "laplace", "ess": 300.0, "pareto_k": 0.4}
    facts["schedule"] = '{"chains": 2, "draws": 20}'

    def join(other, combined=()):
        def both(group):
            group = group.assign_attrs(facts)
            if "chain" not in group.dims:
                return group
            further = other(group)
            joined = xr.concat([group, further], "chain", coords="different", compat="equals")
            joined = joined.assign_coords(chain=np.arange(4))
            return joined.assign_attrs({**facts, **dict(combined)})

        return remade(both)

    def shift(group):
        """Another run: other draws, and codes that mean something else."""
        if "logit_right" in group:
            return group.assign_coords(logit_middle=group["logit_middle"] + 1)
        return group.map(lambda values: values * 0.5)

    runs = Fitted(study, join(shift, {"combined_ess": [300.0, 250.0]}))
    assert runs.group.attrs["ess"] == 500
    first, second = np.split(runs._logit_right(0), 2)
    np.testing.assert_allclose(second, first + 1, atol=1e-4)
    with refused(PosteriorError, "posterior-chains-repeated"):
        Fitted(study, join(lambda group: group))
    with refused(PosteriorError, "posterior-of-two-fits", {"setting": "options"}):
        Fitted(study, join(shift, {"combined_options": ["{}", "{}"]}))
