"""A posterior and its study as one value: checked when it is made, reduced once."""

import dataclasses

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from bayesrep import ConvergenceError, PosteriorError, SufficientStatistics
from bayesrep.checks import compare_fits
from bayesrep.errors import StudyError
from bayesrep.numerics.codes import decode
from bayesrep.posterior.files import build_posterior, read_posterior, write_posterior
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import (
    CellNames,
    draw_indices,
    find_group,
    place_of_cells,
    read_record,
)
from bayesrep.posterior.likelihood import thinned_codes
from bayesrep.summary.tables import accuracies, compare_classifiers, gaps, rank_classifiers
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


def test_ranks_and_pairs_are_counted_draw_by_draw(study):
    """Below an interval are fewer than 2.5 % of the draws, and with its end more; above, too."""
    posterior = samples.posterior()
    draws = Fitted(study, posterior).adjusted_draws.reshape(-1, 3)
    table, pairs = (
        compute(study, posterior, allow_unconverged=True)
        for compute in (rank_classifiers, compare_classifiers)
    )
    for row, ends in zip(pairs.iter_rows(named=True), [(0, 1), (0, 2), (1, 2)], strict=True):
        apart = draws[:, ends[0]] - draws[:, ends[1]]
        assert row["probability"] == pytest.approx((apart > 0).mean())
        wanted = np.quantile(apart, [0.025, 0.975])
        assert [row["lower"], row["upper"]] == pytest.approx(wanted)
    for row in table.iter_rows(named=True):
        own = draws[:, [study.classifiers.index(row["classifier"])]]
        rank = 1 + (draws > own).sum(axis=1)
        assert row["rank"] == pytest.approx(rank.mean())
        assert row["best"] == pytest.approx((rank == 1).mean())
        assert np.mean(rank < row["lower"]) < 0.025 < np.mean(rank <= row["lower"])
        assert np.mean(rank > row["upper"]) < 0.025 < np.mean(rank >= row["upper"])


def test_statistics_have_no_images(study):
    statistics = SufficientStatistics.from_study(study)
    fitted = Fitted(statistics, with_attributes(study_fingerprint="0"))
    assert fitted.statistics is statistics
    assert len(accuracies(fitted)) == 3
    with refused(StudyError, "statistics-instead-of-study"):
        fitted.cell_of_images("replication")


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


def test_a_thinned_likelihood_is_met_with_its_own_draws(study, tmp_path):
    """What is kept of some draws only is combined with these."""
    thinned = remade(log_density=lambda group: group.isel(draw=slice(0, None, 3)))
    kept = np.arange(0, 20, 3)
    whole = find_group(thinned, "posterior")
    np.testing.assert_array_equal(draw_indices(find_group(thinned, "log_density"), whole), kept)
    write_posterior(thinned, tmp_path / "thinned.nc")
    again = read_posterior(tmp_path / "thinned.nc")
    fitted = Fitted(study, again)
    assert fitted._influences is not None
    assert len(compare_fits({"a": again})) == 1
    other = remade(log_density=lambda group: group.assign_coords(draw=np.arange(20) + 100))
    with refused(PosteriorError, "log-likelihood-draws-differ"):
        draw_indices(find_group(other, "log_density"), whole)


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


@pytest.mark.parametrize("copies", [[2, 3] * 4, [2] * 10, [2, 2, 4] * 2 + [2] * 2])
def test_a_resample_may_hold_every_draw_several_times(study, copies):
    """Weights that are nearly equal give each draw two or three; a part twice has even numbers."""
    facts = {"converged": 1, "method": "laplace", "schedule": '{"chains": 1, "draws": 20}'}
    rows = np.repeat(np.arange(len(copies)), copies)
    change = along("draw", lambda group: group.isel(draw=rows).assign_coords(draw=np.arange(20)))
    other = remade(lambda group: pick("chain", [0])(change(group)).assign_attrs(facts))
    if max(copies) == 4:
        with refused(PosteriorError, DISORDER):
            Fitted(study, other)
    else:
        assert Fitted(study, other).require_convergence()


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
    log_wrong, log_right = runs._log_answers(0)
    first, second = np.split(log_right - log_wrong, 2)
    np.testing.assert_allclose(second, first + 1, atol=1e-4)
    one_of_each = decode(thinned_codes(runs.posterior, 4))[0]
    np.testing.assert_allclose(one_of_each[2:], one_of_each[:2] + 1, atol=1e-4)
    with refused(PosteriorError, "posterior-chains-repeated"):
        Fitted(study, join(lambda group: group))
    with refused(PosteriorError, "posterior-of-two-fits", {"setting": "options"}):
        Fitted(study, join(shift, {"combined_options": ["{}", "{}"]}))
