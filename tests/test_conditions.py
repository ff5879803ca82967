"""Conditions that fail a report in a pipeline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from bayesrep.errors import OptionError
from bayesrep.report.fail_if import (
    CLASSIFIER_QUANTITIES,
    COMPARE_BY,
    JOINT_QUANTITIES,
    parse_condition,
)

THREE = {"value": 0.036, "lower": 0.029, "upper": 0.044}
NUMBERS = {
    "method": "joint",
    "drop": {
        "measured": {"value": 0.124, "lower": 0.117, "upper": 0.131},
        "remaining": THREE,
        "selection": {"value": 0.088, "lower": None, "upper": None},
        "share": {"value": 0.71, "lower": 0.65, "upper": 0.77},
    },
    "classifiers": {
        "classifier": ["a > b and c", "resnet50"],
        "reference": [0.9, 0.8],
        "replication": [0.8, 0.7],
        "joint": [0.88, 0.77],
        "joint_lower": [0.87, 0.76],
        "joint_upper": [0.89, 0.78],
    },
    "trust": {"verdict": "with care"},
    "ranks": {"classifier": ["a", "b"], "rank": [1.2, 1.8], "lower": [1, 1], "upper": [2, 2]},
}

HOLD = {
    "adjusted_gap > 2": "adjusted_gap > 2 (3.6)",
    "adjusted_gap.lower>2": "adjusted_gap.lower>2 (2.9)",
    "measured_gap > 12 and trust != no": "measured_gap > 12 (12.4) and trust != no (with care)",
    "adjusted_accuracy[a > b and c] > 80": "adjusted_accuracy[a > b and c] > 80 (88)",
    "share_explained.upper < 80": "share_explained.upper < 80 (77)",
    "trust == with care": "trust == with care (with care)",
    "trust == 'with care'": "trust == 'with care' (with care)",
    "adjusted_gap[resnet50] > 2.9": "adjusted_gap[resnet50] > 2.9 (3)",
    "adjusted_gap[resnet50].lower > 1.9": "adjusted_gap[resnet50].lower > 1.9 (2)",
    "adjusted_accuracy[resnet50] < 80": "adjusted_accuracy[resnet50] < 80 (77)",
    "reference_accuracy[resnet50] <= 80": "reference_accuracy[resnet50] <= 80 (80)",
    "rank[resnet50].upper == 2": "rank[resnet50].upper == 2 (2)",
}


@pytest.mark.parametrize("text", HOLD)
def test_a_condition_that_holds_says_by_which_number(text):
    assert parse_condition(text).finding(NUMBERS) == HOLD[text]


@pytest.mark.parametrize(
    "text",
    ["adjusted_gap > 4", "trust == no", "adjusted_gap > 2 and trust == no", "measured_gap<-1"],
)
def test_a_condition_that_does_not_hold_says_nothing(text):
    assert parse_condition(text).finding(NUMBERS) == ""


ALL, ONE = ", ".join(JOINT_QUANTITIES), ", ".join(CLASSIFIER_QUANTITIES)
MALFORMED = ["", "adjusted_gap", "adjusted_gap > ", "adjusted_gap >> 2", "1 < adjusted_gap < 3"]
MALFORMED += ["__import__('os').system('ls') == 0", "adjusted_gap > 2 or trust == no"]
WIDTHLESS, ACCURACY = "condition-quantity-without-interval", {"quantity": "reference_accuracy"}


@pytest.mark.parametrize(
    ("text", "rule", "facts"),
    [
        *((text, "condition-malformed", {}) for text in MALFORMED),
        ("gap > 2", "condition-quantity-of-all-unknown", {"choices": ALL}),
        ("share_explained[resnet50] > 2", "condition-quantity-of-one-unknown", {"choices": ONE}),
        ("reference_accuracy[resnet50].lower > 2", WIDTHLESS, ACCURACY),
        ("adjusted_gap > two", "condition-number-invalid", {"number": "two"}),
        ("trust == maybe", "condition-verdict-unknown", {"choices": "yes, with care, no"}),
        ("trust > no", "condition-trust-misread", {}),
    ],
)
def test_what_is_no_condition_is_refused_before_any_work(text, rule, facts):
    with refused(OptionError, rule, {"condition": text} | facts):
        parse_condition(text)


def test_what_is_not_known_is_not_taken_for_passed():
    for text, rule, facts in (
        ("selection_gap.lower > 1", "condition-quantity-not-known", {}),
        ("adjusted_gap[vgg] > 1", "condition-classifier-unknown", {"classifier": "vgg"}),
    ):
        with refused(OptionError, rule, facts):
            parse_condition(text).finding(NUMBERS)


def test_a_verdict_takes_a_posterior():
    with refused(OptionError, "condition-verdict-not-known"):
        parse_condition("trust == no").finding({**NUMBERS, "trust": None})


@given(st.floats(-100, 100), st.sampled_from(sorted(COMPARE_BY)))
def test_every_operator_is_its_own(number, sign):
    text = f"adjusted_gap {sign} {number!r}"
    held = bool(parse_condition(text).finding(NUMBERS))
    assert held == COMPARE_BY[sign](100 * THREE["value"], number)


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_refused(text):
    try:
        parse_condition(text)
    except OptionError:
        return
