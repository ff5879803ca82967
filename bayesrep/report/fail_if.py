"""Conditions on a report's numbers, for pipelines: `bayesrep report --fail-if "adjusted_gap > 2"`.

A condition is one comparison, or several joined by "and"; nothing else is understood or executed:

    comparison = quantity operator number | "trust" ("==" | "!=") verdict
    quantity   = name, or name "[" classifier "]", then nothing, ".lower" or ".upper"
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from bayesrep.checks.finding import Trust
from bayesrep.errors import OptionError, plain_text

JOINT_QUANTITIES: Mapping[str, str] = {
    "measured_gap": "measured",
    "adjusted_gap": "remaining",
    "selection_gap": "selection",
    "share_explained": "share",
}
"""Means over classifiers, and what they are called in `bayesrep.report.page_json`."""
CLASSIFIER_QUANTITIES = (
    "reference_accuracy",
    "replication_accuracy",
    "adjusted_accuracy",
    "adjusted_gap",
    "rank",
)
COMPARE_BY: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_COMPARISON_PATTERN = re.compile(
    r"(?P<name>[a-z_]+)(?:\[(?P<classifier>.+)\])?(?:\.(?P<end>lower|upper))?\s*"
    r"(?P<operator><=|>=|==|!=|<|>)\s*(?P<right>[^<>=!]+)"
)


@dataclass(frozen=True)
class ConditionTerm:
    """One comparison of a quantity with a number, or of the verdict with a word."""

    text: str
    name: str
    classifier: str | None
    end: str
    operator: str
    right: float | str


@dataclass(frozen=True)
class Condition:
    """Comparisons that hold or do not hold together."""

    comparisons: tuple[ConditionTerm, ...]

    def finding(self, numbers: Mapping[str, Any]) -> str:
        """Return the clauses that hold, with their numbers; empty where one does not."""
        values = [(each, _value(each, numbers)) for each in self.comparisons]
        if not all(COMPARE_BY[each.operator](value, each.right) for each, value in values):
            return ""
        shown = (v if isinstance(v, str) else f"{v:.4g}" for _, v in values)
        return " and ".join(f"{e.text} ({v})" for (e, _), v in zip(values, shown, strict=True))


def parse_condition(text: str) -> Condition:
    """Read a condition."""
    parts = re.split(r"\s+and\s+(?![^\[]*\])", text.strip())  # not within a name
    return Condition(tuple(_comparison(part, text) for part in parts))


def _comparison(part: str, whole: str) -> ConditionTerm:
    label, match = plain_text(whole), _COMPARISON_PATTERN.fullmatch(part)
    if match is None:
        raise OptionError("condition-malformed", condition=label)
    name, classifier, end = match["name"], match["classifier"], match["end"] or "value"
    sign, right = match["operator"], match["right"].strip()
    if name == "trust":
        verdict = right.strip("\"'")
        if verdict not in get_args(Trust):
            choices = ", ".join(get_args(Trust))
            raise OptionError("condition-verdict-unknown", condition=label, choices=choices)
        if classifier or match["end"] or sign not in ("==", "!="):
            raise OptionError("condition-trust-misread", condition=label)
        return ConditionTerm(part, name, None, end, sign, verdict)
    if classifier and name not in CLASSIFIER_QUANTITIES:
        choices = ", ".join(CLASSIFIER_QUANTITIES)
        raise OptionError("condition-quantity-of-one-unknown", condition=label, choices=choices)
    if not classifier and name not in JOINT_QUANTITIES:
        choices = ", ".join(JOINT_QUANTITIES)
        raise OptionError("condition-quantity-of-all-unknown", condition=label, choices=choices)
    if classifier and name in CLASSIFIER_QUANTITIES[:2] and match["end"]:
        raise OptionError("condition-quantity-without-interval", condition=label, quantity=name)
    try:
        number = float(right)
    except ValueError:
        facts = {"condition": label, "number": plain_text(right)}
        raise OptionError("condition-number-invalid", **facts) from None
    return ConditionTerm(part, name, classifier, end, sign, number)


def _value(each: ConditionTerm, numbers: Mapping[str, Any]) -> float | str:
    """The left side, in percent or points."""
    if each.name == "trust":
        if numbers["trust"] is None:
            raise OptionError("condition-verdict-not-known", condition=plain_text(each.text))
        return str(numbers["trust"]["verdict"])
    if each.classifier is not None:
        value = _value_of_one(each, each.classifier, numbers)
    else:
        drop = numbers["drop"]
        value = None if drop is None else drop[JOINT_QUANTITIES[each.name]][each.end]
    if value is None:
        raise OptionError("condition-quantity-not-known", condition=plain_text(each.text))
    return value if each.name == "rank" else 100 * value


def _value_of_one(each: ConditionTerm, name: str, numbers: Mapping[str, Any]) -> float | None:
    table, method = numbers["classifiers"], numbers["method"]
    if table is None:
        return None
    if name not in table["classifier"]:
        facts = {"condition": plain_text(each.text), "classifier": plain_text(name)}
        raise OptionError("condition-classifier-unknown", **facts)
    row = table["classifier"].index(name)
    ends = {"value": method, "lower": f"{method}_lower", "upper": f"{method}_upper"}
    match each.name:
        case "rank":
            if (ranks := numbers["ranks"]) is None:
                return None
            return ranks["rank" if each.end == "value" else each.end][row]
        case "adjusted_accuracy":
            return table[ends[each.end]][row]
        case "adjusted_gap":
            other = {"value": "value", "lower": "upper", "upper": "lower"}[each.end]
            adjusted = table[ends[other]][row]
            return None if adjusted is None else table["reference"][row] - adjusted
        case _:
            return table[each.name.removesuffix("_accuracy")][row]
