"""Two crowds, of which one may be more lenient: its prior, what it does, and what is said of it."""

import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
import zoo
from refusals import refused
from scipy import integrate, stats

import bayesrep
from bayesrep.checks.crowd import judge_people
from bayesrep.errors import OptionError, PosteriorError, StudyError, TableWarning
from bayesrep.inference import annotators
from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.binomial import log_binomial
from bayesrep.posterior.fitted import Fitted
from bayesrep.studies import leniency
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.statistics import SufficientStatistics


def _of_people(people, images=300, classifiers=3):
    """The tiny study, of which nobody knows the workers."""
    study = zoo.cut(zoo.study("tiny"), images=images, classifiers=classifiers)
    return replace(study, provenance=leniency.add_people({}, people))


def _mean_gap(posterior):
    return posterior["posterior"]["bias_corrected_gap"].values.mean(axis=2).ravel()


@pytest.fixture(scope="module")
def two_crowds():
    study = _of_people(40)
    return study, bayesrep.fit(study, method="laplace", progress=False)


def test_a_lenient_crowd_adds_to_the_log_odds_of_a_selection():
    s, k = np.exp(logit_quadrature.nodes()[0]), np.arange(13)
    some = np.flatnonzero((s > 1e-3) & (s < 0.999))
    table = logit_quadrature.log_dependent(k, 12 - k, 1e-9, 0.7)[:, some]
    odds = s[some] / (1 - s[some]) * np.exp(0.7)
    wanted = stats.binom.logpmf(k[:, None], 12, odds / (1 + odds))
    np.testing.assert_allclose(table + log_binomial(12, k)[:, None], wanted, rtol=1e-5, atol=1e-6)


def test_the_prior_is_a_normal_of_a_log_normal_deviation():
    values = np.array([0.0, 0.5, 2.0, 4.0])

    def joint(log_sd: float, value: float) -> float:
        return stats.norm.pdf(log_sd, 0, 0.35) * stats.norm.pdf(value, 0, np.exp(log_sd))

    wanted = [integrate.quad(joint, -3, 3, args=(each,))[0] for each in values]
    np.testing.assert_allclose(leniency.leniency_density(values), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("people", "shown", "workers"), [(100, 10, 30), (10, 10, 10), (400, 2.5, 120)]
)
def test_few_people_give_most_answers_but_no_more_than_one_an_image(people, shown, workers):
    scale = leniency.leniency_scale(people, [shown, shown])
    assert scale == pytest.approx(1.1 * np.sqrt(2 / workers))


def test_the_same_people_leave_the_posterior_as_it_is():
    same, unknown = (
        bayesrep.fit(_of_people(people), method="laplace", progress=False)
        for people in ("same", None)
    )
    assert "leniency" not in same["posterior"]
    np.testing.assert_array_equal(_mean_gap(same), _mean_gap(unknown))
    # What is learnt later of the people needs no other fit, if it changes nothing.
    assert Fitted(_of_people("same"), unknown).statistics.people == "same"


def test_two_crowds_have_the_leniency_of_their_prior(two_crowds):
    """Level by level, within a draw; the sd is that of the mixture, cut at four scales."""
    study, posterior = two_crowds
    draws = posterior["posterior"]["leniency"].values.ravel()
    scale = SufficientStatistics.of(study).leniency_scale
    value = np.r_[annotators.LENIENCY_GRID, -annotators.LENIENCY_GRID[1:]]
    wanted = leniency.leniency_density(value)
    levels, counts = np.unique(draws / scale, return_counts=True)
    expected = dict(zip(np.round(value, 9), wanted / wanted.sum(), strict=True))
    shares = np.array([expected[round(level, 9)] for level in levels])
    copies = np.unique(posterior["posterior"]["adjusted_accuracy"].values[0], axis=0)
    assert np.abs(counts / len(draws) - shares).max() < 20 / len(copies)
    assert abs(draws.mean()) < 0.1 * draws.std()
    assert draws.std() == pytest.approx(scale * np.exp(0.35**2), rel=0.1)


def test_draws_of_a_leniency_are_those_of_a_fit_at_it(monkeypatch):
    """On both sides: means within 0.2 sd, sds within 15 % (alarm < 0.1 %)."""
    monkeypatch.setattr(annotators, "LENIENCY_GRID", np.array([0.0, 1.0]))
    study = _of_people(None)
    fits = {
        each: bayesrep.fit(study, method="laplace", dependence=0.0, progress=False, **options)
        for each, options in {
            "prior": {"leniency_prior": 0.3},
            0.3: {"leniency": 0.3},
            -0.3: {"leniency": -0.3},
        }.items()
    }
    at = fits["prior"]["posterior"]["leniency"].values.ravel()
    for value in (0.3, -0.3):
        fixed, some = _mean_gap(fits[value]), _mean_gap(fits["prior"])[np.isclose(at, value)]
        assert len(some) > 300
        assert abs(some.mean() - fixed.mean()) < 0.2 * fixed.std()
        assert abs(np.log(some.std() / fixed.std())) < 0.15


def test_chains_and_cut_feedback_know_of_two_crowds():
    """The spread over crowds is the same by every method, within a third."""
    study = _of_people(20, images=200, classifiers=2)
    sds = [
        _mean_gap(bayesrep.fit(study, progress=False, **options)).std()
        for options in ({"method": "laplace"}, {"method": "nuts"}, {"feedback": "cut"})
    ]
    alone = _mean_gap(bayesrep.fit(study, method="laplace", leniency=0.0, progress=False)).std()
    assert min(sds) > 1.5 * alone
    assert max(sds) / min(sds) < 4 / 3


@pytest.mark.parametrize(("people", "trust"), [("same", "yes"), (40, "yes"), (None, "with care")])
def test_a_verdict_rests_on_crowds_only_where_nothing_is_known(people, trust, two_crowds):
    study = _of_people(people)
    known = two_crowds[1] if people == 40 else bayesrep.fit(study, method="laplace", progress=False)
    found = bayesrep.diagnose(known, study)
    row = found.checks.filter(pl.col("check") == "annotators of the two data sets")
    assert row["trust"].item() == trust
    assert ("equally strict" in found.assumption) == (people is None)


def test_what_is_not_known_is_said_with_the_width_of_two_crowds():
    """The number for two crowds of a hundred is near that of a fit told so."""
    study = _of_people(None)
    sentence = judge_people(
        Fitted(study, bayesrep.fit(study, method="laplace", progress=False))
    ).sentence
    narrow, wide = (float(each) for each in re.findall("\N{PLUS-MINUS SIGN}([\\d.]+\\d)", sentence))
    told = bayesrep.fit(_of_people(100), method="laplace", progress=False)
    assert narrow < wide
    assert wide == pytest.approx(196 * _mean_gap(told).std(), rel=0.35)


def test_a_posterior_of_other_people_is_refused(two_crowds):
    study, posterior = two_crowds
    with refused(PosteriorError, "posterior-of-other-people", {"people": 10}):
        bayesrep.summarize(replace(study, provenance={"people": 10}), posterior)
    with refused(PosteriorError, "posterior-of-other-people", {"people": "nothing"}):
        bayesrep.summarize(replace(study, provenance={}), posterior)


@pytest.mark.parametrize("people", [0, -3, 2.5, True, "some", "Same", ["same"], Decimal(50)])
def test_people_are_the_same_or_a_number(people):
    with refused(StudyError, "people-not-same-or-number"):
        _of_people(people)


def test_people_are_no_fewer_than_the_annotators_of_an_image():
    with refused(StudyError, "people-fewer-than-annotators", {"people": 3}):
        _of_people(3)


def test_refused_people_are_not_written(tmp_path):
    contents = StudyContents.from_study(_of_people(40))
    for part in (contents, replace(contents, classifiers=())):
        with refused(StudyError, "people-fewer-than-annotators", {"people": 3}):
            replace(part, provenance={"people": 3}).write(tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_people_beside_answers_by_worker_are_said_not_to_count(recwarn):
    leniency.warn_of_people(_of_people(40).datasets, 40)
    leniency.warn_of_people(zoo.study("workers").datasets, None)
    assert not recwarn
    with pytest.warns(TableWarning, match="40"):
        leniency.warn_of_people(zoo.study("workers").datasets, 40)


def test_people_may_be_counted_by_numpy():
    assert type(_of_people(np.int64(40)).people) is int


def test_shards_agree_on_who_answered():
    one, other = (SufficientStatistics.of(_of_people(people)) for people in (40, None))
    assert (one + one).people == 40
    with refused(StudyError, "shards-people-differ"):
        _ = one + other


def test_workers_of_one_data_set_do_not_say_who_answered_about_the_other():
    of_workers = zoo.study("workers")
    counts = replace(of_workers.replication, answers=None)
    sets = {**of_workers.datasets, "replication": counts}
    study = replace(of_workers, datasets=sets, provenance={})
    found = bayesrep.diagnose(bayesrep.fit(study, method="laplace", progress=False), study)
    trust = dict(found.checks.select("check", "trust").iter_rows())
    assert trust["annotators of the two data sets"] == "with care"
    assert "workers who answered many images" in trust
    assert "equally strict" in found.assumption


@pytest.mark.parametrize(
    ("option", "value"), [("leniency", 11.0), ("leniency_prior", -0.1), ("leniency", float("nan"))]
)
def test_impossible_leniencies_are_refused(option, value):
    with pytest.raises(OptionError):
        bayesrep.fit(zoo.study("tiny"), progress=False, **{option: value})


def test_who_answered_is_kept_with_the_study(tmp_path):
    study = _of_people(40)
    study.write(tmp_path / "study")
    assert bayesrep.read_study(tmp_path / "study").people == 40


def test_a_leniency_that_is_given_is_named_as_an_assumption():
    study = _of_people(40)
    told = bayesrep.fit(study, method="laplace", leniency=0.2, progress=False)
    assert " 0.2 " in bayesrep.diagnose(told, study).assumption
    assert "leniency" not in told["posterior"]
