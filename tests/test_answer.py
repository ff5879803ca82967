"""What is said of a drop is what the intervals say, in every case."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import zoo
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import bayesrep
from bayesrep.numerics.estimands import measured_gap
from bayesrep.report.answer import (
    Drop,
    Estimate,
    answer,
    answer_for,
    drop_of,
    headline,
    measured_drop,
)
from bayesrep.report.estimates_text import explain_missing_shares, gaps_table
from bayesrep.report.study_text import describe_study


def dropped(measured, remaining, selection=None, share=None):
    """Of three (or two) intervals; selection and share follow from a fixed measured drop."""
    d = measured[0]
    if selection is None:
        value, low, high = remaining
        selection = d - value, d - high, d - low
    if share is None:
        share = tuple(part / d for part in selection)
    return Drop(*(Estimate(*three) for three in (measured, remaining, selection, share)))


def said(*intervals, classifiers=3, images=(500, 500)):
    drop = dropped(*intervals)
    return answer(drop, classifiers=classifiers, images=images, names=("v1", "v2"))


CASES = {
    "all clear": (
        ((0.124, 0.117, 0.131), (0.036, 0.029, 0.044)),
        "Classifiers are 12.4 points (11.7 to 13.1) less accurate on v2 than on v1. "
        "Selection accounts for 8.8 (8.0 to 9.5) of these, 71 % (65 to 77) of the drop; "
        "3.6 (2.9 to 4.4) remain.",
    ),
    "nothing is left": (
        ((0.014, 0.005, 0.023), (0.001, -0.005, 0.007)),
        "Classifiers are 1.4 points (0.5 to 2.3) less accurate on v2 than on v1. Selection "
        "accounts for 1.3 (0.7 to 1.9) of these; the rest, 0.1 (\N{MINUS SIGN}0.5 to 0.7), "
        "may be nothing.",
    ),
    "all or nothing": (
        ((0.014, 0.005, 0.023), (0.009, -0.005, 0.023)),
        "At equal selection frequencies 0.9 points (\N{MINUS SIGN}0.5 to 2.3) remain: selection "
        "may explain all of it or none.",
    ),
    "no clear selection": (
        ((0.124, 0.117, 0.131), (0.120, 0.110, 0.130)),
        "The drop is real: 12.0 points (11.0 to 13.0) remain after adjusting for selection.",
    ),
    "selection the other way": (
        ((0.124, 0.117, 0.131), (0.140, 0.130, 0.150)),
        "Selection accounts for none of it: at equal selection frequencies they are 14.0 points "
        "(13.0 to 15.0) less accurate, more than measured.",
    ),
    "more than all": (
        ((0.124, 0.117, 0.131), (-0.010, -0.015, -0.005)),
        "Selection more than explains it: at equal selection frequencies they are 1.0 points "
        "(0.5 to 1.5) more accurate.",
    ),
    "no interval": (
        ((0.124, 0.117, 0.131), (0.036, None, None), (0.088, None, None), (0.71, None, None)),
        "Of these, 3.6 points (no interval) remain at equal selection frequencies.",
    ),
    "no clear drop": (
        ((0.0044, -0.0275, 0.0493), (-0.023, -0.052, 0.008)),
        "No clear drop from v1 to v2: 0.4 points (\N{MINUS SIGN}2.8 to 4.9). With 500 images each, "
        "drops under 3.8 points cannot be seen. At equal selection frequencies there is no clear "
        "difference: \N{MINUS SIGN}2.3 points (\N{MINUS SIGN}5.2 to 0.8).",
    ),
    "a drop hidden": (
        ((-0.0044, -0.0493, 0.0275), (0.030, 0.020, 0.040)),
        "No clear drop from v1 to v2: \N{MINUS SIGN}0.4 points (\N{MINUS SIGN}4.9 to 2.8). With "
        "500 images each, drops under 3.8 points cannot be seen. At equal selection frequencies "
        "they are 3.0 points (2.0 to 4.0) less accurate: selection hides a drop.",
    ),
    "a drop that selection does not hide": (
        ((0.043, -0.002, 0.089), (0.036, 0.001, 0.073), (0.0075, -0.030, 0.043)),
        "No clear drop from v1 to v2: 4.3 points (\N{MINUS SIGN}0.2 to 8.9). With 500 images each, "
        "drops under 4.5 points cannot be seen. At equal selection frequencies they are 3.6 points "
        "(0.1 to 7.3) less accurate.",
    ),
    "more accurate": (
        ((-0.100, -0.120, -0.080), (-0.020, -0.030, -0.010)),
        "Classifiers are 10.0 points (8.0 to 12.0) more accurate on v2 than on v1. At equal "
        "selection frequencies they are 2.0 points (1.0 to 3.0) more accurate.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_sentence_is_that_of_its_case(case):
    numbers, wanted = CASES[case]
    assert said(*numbers).endswith(wanted)
    assert ("of the drop" in said(*numbers)) == (case == "all clear")


HEADLINES = {
    "all clear": "71 % (65 to 77) of the 12.4-point drop comes from how images were selected",
    "nothing is left": "Selection may explain all of the 1.4-point drop",
    "all or nothing": "Cannot tell: the 1.4-point drop may be all selection or none",
    "no clear selection": "The 12.4-point drop is real: at least 11.0 points remain after "
    "adjusting for selection",
    "selection the other way": "None of the 12.4-point drop comes from how images were selected",
    "more than all": "Selection more than explains the 12.4-point drop",
    "no interval": "A 12.4-point drop; by an estimate without interval, 3.6 points remain",
    "no clear drop": "No clear drop in accuracy",
    "a drop hidden": "No clear drop as measured: selection hides one",
    "a drop that selection does not hide": "No clear drop as measured, and one at the same "
    "selection frequency",
    "more accurate": "Classifiers are 10.0 points more accurate on the replication",
}


@pytest.mark.parametrize("case", CASES)
def test_the_headline_is_that_of_its_case(case):
    assert headline(dropped(*CASES[case][0]), classifiers=3) == HEADLINES[case]


def test_one_classifier_is_one():
    (numbers, _) = CASES["more than all"]
    text = said(*numbers, classifiers=1, images=(500, 400))
    assert text.startswith("The classifier is 12.4 points")
    assert "frequencies it is 1.0 points" in text
    (numbers, _) = CASES["no clear drop"]
    assert "With 1,500 and 400 images, drops" in said(*numbers, images=(1500, 400))


def test_too_few_images_have_no_interval():
    drop, rest = Estimate(0.4, None, None), Estimate(0.1, None, None)
    text = answer(Drop(drop, rest, rest, rest), classifiers=2, images=(1, 1))
    assert text == (
        "No clear drop from the reference to the replication: 40.0 points (no interval). "
        "At equal selection frequencies the difference is 10.0 points (no interval)."
    )


def test_small_intervals_have_two_digits_and_nothing_is_minus_zero():
    text = said((0.00031, 0.00001, 0.00061), (-0.00001, -0.0003, 0.0003))
    assert "0.03 points (0.00 to 0.06) less accurate" in text
    assert "0.00 (\N{MINUS SIGN}0.03 to 0.03), may be nothing" in text


numbers = st.floats(-1.5, 1.5)
estimates = st.one_of(
    st.tuples(numbers, st.floats(0, 0.5), st.floats(0, 0.5)).map(
        lambda t: Estimate(t[0], t[0] - t[1], t[0] + t[2])
    ),
    numbers.map(lambda value: Estimate(value, None, None)),
    st.tuples(numbers, numbers, numbers).map(lambda t: Estimate(t[0], *sorted(t[1:]))),
)


@given(st.tuples(estimates, estimates, estimates, estimates), st.integers(1, 3))
def test_whatever_the_numbers_no_sentence_says_more_than_they(parts, classifiers):
    drop = Drop(*parts)
    text = answer(drop, classifiers=classifiers, images=(10, 20), names=("v1", "v2"))
    assert "-" not in text
    assert not re.search(r"None(?! of)", text)  # a number that is missing
    assert "nan" not in text
    shares = re.findall(r"(\d+) % \((\d+) to (\d+)\) of the drop", text)
    assert len(shares) == text.count("%") == (drop.clear_share is not None)
    for ends in shares:
        assert all(0 <= int(end) <= 100 for end in ends)
        assert drop.measured.is_above_zero
        assert drop.selection.is_above_zero
        assert drop.remaining.is_above_zero
    if "less accurate on v2" in text:
        assert drop.measured.lower > 0
    if "more accurate on v2" in text:
        assert drop.measured.upper < 0
    if "may be nothing" in text:
        assert drop.selection.is_above_zero
        assert not drop.remaining.is_above_zero
        assert not drop.remaining.is_below_zero
    assert ("they" in text or "Classifiers" in text) <= (classifiers > 1)
    # A number of points that is said to be more or less is positive.
    assert not re.search(r"(they are|it is) \N{MINUS SIGN}", text)


def test_the_measured_gaps_interval_is_normal_over_images():
    """Of mean answers 1, ½, 0, ½ and ½, 0, 0, ½: variances 1/6 and 1/12, four images each."""
    sides = [[1, 1], [1, 0], [0, 0], [0, 1]], [[1, 0], [0, 0], [0, 0], [0, 1]]
    error = np.sqrt((1 / 6 + 1 / 12) / 4)
    wanted = [0.25, 0.25 - norm.ppf(0.975) * error, 0.25 + norm.ppf(0.975) * error]
    np.testing.assert_allclose(measured_gap(*sides), wanted, rtol=1e-9)
    one = [[True, False]]
    assert np.isnan(measured_gap(one, one)[1:]).all()


@pytest.fixture(scope="module")
def null():
    """Both data sets alike: no drop, so no share of it."""
    made = zoo.cut(zoo.study("tiny"), images=150, classifiers=2)
    rows = np.random.default_rng(0).permutation(300)
    sides = [
        {
            name: np.concatenate([getattr(d, name) for d in made.datasets.values()])[half]
            for name in ("selected", "shown", "correct")
        }
        for half in (rows[:150], rows[150:])
    ]
    return bayesrep.Study.from_arrays(
        reference=sides[0], replication={**sides[1], "name": "v2"}, classifiers=made.classifiers
    )


def test_a_drop_the_other_way_round_asks_about_the_roles():
    study = zoo.study("tiny")
    later, earlier = (
        {name: getattr(data, name) for name in ("selected", "shown", "correct")}
        for data in (study.reference, study.replication)
    )
    swapped = bayesrep.Study.from_arrays(
        reference=earlier, replication={**later, "name": "v1"}, classifiers=study.classifiers
    )
    assert "--reference" in describe_study(swapped)
    assert "--reference" not in describe_study(study)


def test_candidates_without_predictions_are_not_called_wrong():
    study = zoo.study("tiny")
    answers = np.zeros((len(study.replication.images), 0), dtype=bool)
    pool = replace(study.replication, name="pool", correct=answers)
    sets = {**study.datasets, "candidates": pool}
    assert "ever right" not in describe_study(replace(study, datasets=sets))


@pytest.mark.filterwarnings("ignore::bayesrep.errors.InterpolationWarning")
def test_without_a_drop_no_table_has_a_share(null):
    gaps = bayesrep.estimate_gaps(null, ("raw", "naive"), bootstrap=40)
    measured = measured_drop(null)
    assert measured.lower < 0 < measured.upper
    assert gaps.row(0)[-2:] == pytest.approx((measured.lower, measured.upper))  # one interval
    assert measured.value == pytest.approx(gaps["estimate"][0])
    header, _, *lines = gaps_table(gaps, clear=measured.is_above_zero).splitlines()
    assert "share explained (%)" in header
    for line in lines:
        assert re.split(r"\s{2,}", line)[3] == "-"
    assert "not clear" in explain_missing_shares(gaps, clear=measured.is_above_zero)
    (_, naive) = gaps.partition_by("method")
    text = answer_for(null, drop_of(naive, measured))
    assert text.startswith("No clear drop from the reference to v2 (the replication): ")
    assert "With 150 images each" in text


@pytest.mark.parametrize(("share", "shown"), [(1.1, "-"), (-0.2, "-"), (0.7, "70")])
def test_a_share_beyond_the_whole_is_no_share(share, shown):
    names = ["bias_corrected_gap", "selection_gap", "share_explained", "slope", "intercept"]
    table = pl.DataFrame(
        {"method": "naive", "quantity": names, "estimate": [0.1, 0.1, share, 1.0, 0.0]}
    ).with_columns(lower=None, upper=None)
    (line,) = gaps_table(table, clear=True).splitlines()[2:]
    assert re.split(r"\s{2,}", line)[3] == shown
    assert ("100 %" in explain_missing_shares(table, clear=True)) == (shown == "-")
