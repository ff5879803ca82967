"""Files of posteriors: draws in two bytes, what is made of them, and what reading imports."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from refusals import refused
from scipy import stats
from scipy.special import expit

from bayesrep.checks.comparison import compare_fits, psis_loo
from bayesrep.errors import PosteriorError
from bayesrep.files.netcdf import Group
from bayesrep.numerics.codes import MAX_CODE, decode, encode
from bayesrep.numerics.estimands import ranks
from bayesrep.posterior.files import (
    StoredPosterior,
    _build_xarray,
    read_posterior,
    read_tree,
    write_posterior,
)
from bayesrep.posterior.groups import find_group, read_record
from bayesrep.posterior.likelihood import LOGIT_VARS, answer_log_likelihoods, logit_codes
from experiments.fuzzing import samples


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    file = tmp_path_factory.mktemp("codes") / "posterior.nc"
    write_posterior(samples.posterior(), file)
    return file


def test_each_quantity_is_coded_by_its_own_range():
    """One that ranges over a thousand times as much costs the others no digit."""
    random = np.random.default_rng(0)
    draws = random.normal(size=(2, 300, 3)) * [0.01, 10.0, 0.0] + [5.0, -2.0, 1.5]
    coded = encode(draws)
    assert coded.code.dtype == np.int16
    assert np.abs(coded.code).max() <= MAX_CODE
    off = np.abs(coded.middle + coded.step * coded.code - draws).max(axis=(0, 1))
    assert (off <= np.ptp(draws, axis=(0, 1)) / (4 * MAX_CODE) * (1 + 1e-9) + 1e-15).all()
    found = decode(coded)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, draws, rtol=2e-7, atol=float(off.max()) + 1e-6)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_none_afterwards_and_moves_no_other(odd):
    draws = np.linspace(-1, 1, 20).reshape(2, 10, 1)
    broken = draws.copy()
    broken[1, 3] = odd
    found = decode(encode(broken))
    assert np.isnan(found[1, 3, 0])
    rest = ~np.isnan(found)
    np.testing.assert_allclose(found[rest], draws[rest], atol=1e-4)
    assert np.isnan(decode(encode(np.full((1, 2, 1), odd)))).all()


def test_answers_have_the_likelihood_of_binomials(written):
    posterior = read_tree(written)
    observed = find_group(posterior, "observed_data")
    chance = expit(decode(logit_codes(posterior)).astype(float))
    images = observed["replication_images"].values
    for index, found in enumerate(answer_log_likelihoods(posterior)):
        right = np.minimum(observed["correct"].values[index], images)
        wanted = stats.binom.logpmf(right, images, chance[:, :, index])
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_a_file_is_small_and_arviz_finds_what_it_leaves_out(written):
    """The likelihood of the answers follows from the logits, and is not written beside them."""
    with xr.open_datatree(written, engine="h5netcdf") as stored:
        assert "log_likelihood" not in stored.children
        assert stored["log_density/logit_right"].dtype == np.int16
        assert stored["observed_data/correct"].dtype == np.int16
    again = read_posterior(written)
    made = np.stack(list(answer_log_likelihoods(again)), axis=2)
    np.testing.assert_allclose(again["log_likelihood"]["correct"].values, made, rtol=1e-6)
    assert again["log_likelihood"]["correct"].dims[-1] == "answered_cell"
    write_posterior(again, written.with_name("again.nc"))
    assert os.path.getsize(written) == os.path.getsize(written.with_name("again.nc"))


def test_a_file_is_read_as_xarray_reads_it(written):
    found = read_tree(written)
    with xr.open_datatree(written, engine="h5netcdf") as stored:
        assert set(found.children) == {*stored.children}
        for name, group in stored.children.items():
            made = _build_xarray({name: found[name]}, {})[name]
            xr.testing.assert_identical(made.to_dataset(), group.to_dataset().load())


def test_leaving_answers_out_is_the_same_to_three_decimals():
    """Of a classifier with answers in cells of 300 images, whose logits differ by cell."""
    random = np.random.default_rng(1)
    chance = np.linspace(0.2, 0.98, 20)
    right = random.binomial(300, chance)
    exact = random.normal(np.log(right + 1) - np.log(301 - right), 0.15, size=(1, 2000, 20))
    coded = decode(encode(exact)).astype(float)
    found, wanted = (
        psis_loo(stats.binom.logpmf(right, 300, expit(each[0])).T, np.ones(20)).elpd.sum()
        for each in (coded, exact)
    )
    assert found == pytest.approx(wanted, abs=5e-4)


def test_an_older_file_is_told_to_be_fitted_again(tmp_path):
    posterior = samples.posterior()
    names = ("posterior", "observed_data", "log_density")
    older = {name: find_group(posterior, name) for name in names}
    density = older["log_density"]
    older["log_density"] = density.select(*(set(density.data_vars) - set(LOGIT_VARS)))
    groups = {
        name: Group(
            group.data_vars, group.coords, {k: v for k, v in group.attrs.items() if k != "traits"}
        )
        for name, group in older.items()
    }
    write_posterior(StoredPosterior(groups, {}), tmp_path / "older.nc")
    missing = {"plural_ending": "", "attributes": "traits"}
    with refused(PosteriorError, "posterior-attributes-missing", missing):
        read_tree(tmp_path / "older.nc")


def test_ties_share_their_mean_rank():
    accuracy = np.array([[0.5, 0.7, 0.5, 0.9], [0.1, 0.1, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1]])
    wanted = [[3.5, 2, 3.5, 1], [2.5] * 4, [1, 2, 3, 4]]
    np.testing.assert_array_equal(ranks(accuracy), wanted)
    many = np.random.default_rng(0).integers(0, 9, (40, 17)) / 9
    np.testing.assert_array_equal(ranks(many), stats.rankdata(-many, axis=-1))
    assert ranks([0.3]).tolist() == [1.0]


def test_fits_are_compared_from_a_file_as_from_memory(written):
    both = {"memory": samples.posterior(), "file": read_posterior(written)}
    table = compare_fits(both)
    assert table["elpd"][0] == pytest.approx(table["elpd"][1], abs=1e-9)


def test_what_only_reads_imports_no_compiler_of_arrays(tmp_path):
    """One process for all of them: what all together import, each imports less of."""
    samples.study().write(tmp_path / "study")
    write_posterior(samples.posterior(), tmp_path / "posterior.nc")
    code = """
import contextlib, io, json, sys
from bayesrep.cli import main
study, posterior = sys.argv[1:]
with contextlib.redirect_stdout(io.StringIO()):
    codes = [
        main(["summarize", study, posterior]),
        main(["summarize", study, posterior, "--table", "ranks"]),
        main(["check", study]),
        main(["diagnose", posterior, "--against", posterior]),
    ]
json.dump([codes, sorted({"jax", "numpyro", "arviz", "matplotlib"} & set(sys.modules))], sys.stdout)
"""
    words = [sys.executable, "-c", code, str(tmp_path / "study"), str(tmp_path / "posterior.nc")]
    said = subprocess.run(words, check=True, capture_output=True, text=True)
    assert json.loads(said.stdout) == [[0, 0, 0, 0], []]


def test_options_of_another_model_are_told_where_they_are_asked_for(tmp_path):
    """What needs none of them reads the file all the same."""
    posterior = samples.posterior()
    for name in ("posterior", "log_density", "observed_data", "sample_stats"):
        posterior[name].attrs["options"] = json.dumps({"odd": 1, "dependence": 0.1})
    write_posterior(posterior, tmp_path / "odd.nc")
    made = read_record(read_tree(tmp_path / "odd.nc"))
    assert made.dependence == 0.1
    assert made.shared == ("population_curve",)
    with refused(PosteriorError, "posterior-options-of-other-model", {"model": "joint"}):
        _ = made.options
