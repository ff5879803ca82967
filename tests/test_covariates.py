"""What goes with covariates of classifiers: closed forms of the regression, and what is refused."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zoo
from refusals import refused
from scipy.stats import t as student

import bayesrep
from bayesrep.errors import OptionError, PosteriorError
from bayesrep.posterior.fitted import Fitted
from bayesrep.summary.covariates import draw_effects, make_design, make_terms

NAMES = ("a", "b", "c", "d")
TABLE = {"classifier": ["d", "c", "b", "a", "z"], "year": [2019, 2015, 2014, 2012, 2000]}


def designed(classifiers, seed=0):
    random = np.random.default_rng(seed)
    return np.column_stack([np.ones(classifiers), random.standard_normal(classifiers)]), random


def test_of_exact_accuracies_it_is_ordinary_regression():
    """Its estimates, and Student's intervals of f degrees of freedom."""
    design, random = designed(12)
    y = 0.7 + 0.03 * design[:, 1] + 0.02 * random.standard_normal(12)
    effects = draw_effects(design, np.tile(y, (200_000, 1)), random)
    estimate, (square,), *_ = np.linalg.lstsq(design, y, rcond=None)
    error = np.sqrt(square / 10 * np.linalg.inv(design.T @ design)[1, 1])
    assert effects[:, 1].mean() == pytest.approx(estimate[1], abs=0.01 * error)
    wanted = estimate[1] + error * student(10).ppf([0.025, 0.975])
    np.testing.assert_allclose(
        np.quantile(effects[:, 1], [0.025, 0.975]), wanted, atol=0.05 * error
    )


def test_what_images_do_to_classifiers_together_is_the_draws_own():
    """Along the regression: all of it, and nothing added where classifiers lie on it exactly."""
    design, random = designed(12)
    along = design @ np.diag([0.02, 0.01]) @ random.standard_normal((2, 50_000))
    y = (design @ [0.7, 0.03])[:, None] + along
    effects = draw_effects(design, y.T, random)
    np.testing.assert_allclose(effects.std(axis=0), [0.02, 0.01], rtol=0.02)
    np.testing.assert_allclose(effects.mean(axis=0), [0.7, 0.03], atol=1e-3)


def test_scatter_of_images_is_not_taken_for_that_of_classifiers():
    """Spreads are those of images and classifiers, of many classifiers."""
    design, random = designed(400)
    for scatter, images in ((0.02, 0.0), (0.02, 0.02), (0.0, 0.02)):
        y = design @ [0.7, 0.03] + np.hypot(scatter, images) * random.standard_normal(400)
        draws = y + images * random.standard_normal((5_000, 400))
        spread = draw_effects(design, draws, random)[:, 1].std() * np.linalg.norm(design[:, 1])
        assert spread == pytest.approx(np.hypot(scatter, images), rel=0.15)


def test_words_are_set_against_the_first_and_rows_found_by_name():
    table = pl.DataFrame(TABLE | {"family": ["vit", "cnn", "mlp", "cnn", "?"], "big": [True] * 5})
    year, mlp, vit, big = make_terms(table, NAMES)
    assert year[:3] == ("year", None, None)
    assert year.values.tolist() == [2012, 2014, 2015, 2019]
    assert (mlp[:3], vit[:3]) == (("family", "mlp", "cnn"), ("family", "vit", "cnn"))
    assert mlp.values.tolist() == [0, 1, 0, 0]
    assert vit.values.tolist() == [0, 0, 0, 1]
    assert big.values.tolist() == [1, 1, 1, 1]


def test_names_and_words_are_read_as_every_table_reads_them():
    table = pl.DataFrame({"model": ["b ", "a", " c", "d"], "kind": ["x", "y ", "y", " x"]})
    (kind,) = make_terms(table, NAMES)
    assert kind[:3] == ("kind", "y", "x")
    assert kind.values.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("table", "rule", "facts"),
    [
        ({"year": [1, 2]}, "covariates-without-classifier", {"columns": ["year"]}),
        (
            {"classifier": ["a", "b", "b", "c"], "year": [1, 2, 3, 4]},
            "covariates-not-one-row",
            {"classifiers": ["b", "d"]},
        ),
        ({"classifier": list("abcd")}, "covariates-without-column", {}),
        (TABLE | {"year": [1, None, 2, 3, 4]}, "covariate-value-missing", {"column": "year"}),
        (TABLE | {"year": [1.0, np.nan, 2, 3, 4]}, "covariate-value-missing", {"column": "year"}),
        (
            TABLE | {"kind": ["x", None, "y", "x", "y"]},
            "covariate-value-missing",
            {"column": "kind"},
        ),
        (
            TABLE | {"kind": ["x", " ", "y", "x", "y"]},
            "covariate-value-missing",
            {"column": "kind"},
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(table, rule, facts):
    with refused(OptionError, rule, facts):
        make_terms(pl.DataFrame(table), NAMES)


def test_effects_of_a_fit():
    """Estimates are the regression of the joint draws' means; the same seed, the same numbers."""
    study, posterior = zoo.study("images"), zoo.posterior("images", **zoo.QUICK)
    table = {"classifier": study.classifiers, "year": [2012, 2014, 2015.5, 2019]}
    found = bayesrep.regress_classifiers(study, posterior, table, seed=3)
    assert found.equals(bayesrep.regress_classifiers(study, posterior, table, seed=3))
    assert found["quantity"].to_list() == ["adjusted_accuracy", "population_gap"]
    fitted = Fitted(study, posterior)
    adjusted, population = fitted.adjusted_draws, fitted.population_draws
    for row, draws in zip(
        found.iter_rows(named=True), (adjusted, population - adjusted), strict=True
    ):
        slope = np.polyfit(table["year"], draws.mean(axis=(0, 1)), 1)[0]
        assert row["lower"] < row["estimate"] < row["upper"]
        assert row["estimate"] == pytest.approx(slope, rel=1e-6)
    for told, more in (
        (["same"], {"same": [1, 1, 1, 1]}),
        (["year", "twice"], {"twice": [24, 28, 31, 38]}),
    ):
        with refused(OptionError, "covariates-not-told-apart", {"columns": told}):
            bayesrep.regress_classifiers(study, posterior, table | more)
    facts = {"columns": ["year", "kind"], "classifiers": 4, "effects": 3}
    with refused(OptionError, "covariates-too-many", facts):
        bayesrep.regress_classifiers(study, posterior, table | {"kind": ["x", "y", "z", "x"]})
    # What is not a table, and arguments in another order.
    for other in ("covariates.csv", Path("covariates.csv"), 3, {"classifier": ["a"], "y": [1, 2]}):
        facts = {"type_name": type(other).__name__}
        with refused(OptionError, "covariates-not-table", facts):
            bayesrep.regress_classifiers(study, posterior, other)
    for given in ((study, table, posterior), (posterior, study, table)):
        with refused(PosteriorError, "object-not-a-posterior"):
            bayesrep.regress_classifiers(*given)


def test_of_covariates_those_are_named_that_others_tell():
    """Also of words, which have several effects."""
    kinds = ["x", "y", "z", "x", "y", "z", "x", "y"]
    table = {
        "classifier": list("abcdefgh"),
        "year": [2012, 2013, 2014, 2016, 2015, 2019, 2011, 2020],
        "kind": kinds,
        "convolves": [kind == "x" for kind in kinds],
    }
    with refused(OptionError, "covariates-not-told-apart", {"columns": ["kind", "convolves"]}):
        make_design(make_terms(pl.DataFrame(table), table["classifier"]), 8)
    del table["convolves"]
    assert make_design(make_terms(pl.DataFrame(table), table["classifier"]), 8).shape == (8, 4)
