"""Methods by name: what a user writes, and what the tables say.

A method is a name, "naive", with options where they differ from the default, "naive(annotators=10)"
or "em-spline(components=4, loss=binomial)"; tables label it the same way.
"""

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from bayesrep.errors import OptionError
from bayesrep.estimators.em_spline import EMSpline
from bayesrep.estimators.estimator import Estimator, check_words
from bayesrep.estimators.jackknife import Jackknife
from bayesrep.estimators.naive import Naive
from bayesrep.estimators.raw import Raw

ESTIMATORS: dict[str, type[Estimator]] = {
    kind.name: kind for kind in (Raw, Naive, Jackknife, EMSpline)
}
"""Every method, in the order of the tables."""

METHODS = tuple(ESTIMATORS)
"""Names of the methods."""

_METHOD = re.compile(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*")


def label(estimator: Estimator) -> str:
    """The method's name, with the options that differ from their defaults."""
    given = [
        f"{field.name}={getattr(estimator, field.name)}"
        for field in fields(estimator)
        if getattr(estimator, field.name) != field.default
    ]
    return estimator.name + (f"({', '.join(given)})" if given else "")


def parse(method: str | Estimator) -> Estimator:
    """The estimator that a method's name and options stand for.

    Raises
    ------
    OptionError
        For an unknown name or option, or a value that the option does not take.
    """
    if not isinstance(method, str):
        return method
    # A method is a name with options in brackets: `jackknife(delete=2)`.
    match = _METHOD.fullmatch(method)
    name = match.group(1) if match else method
    if match is None or name not in ESTIMATORS:
        raise OptionError("unknown-method", method=name, choices=", ".join(ESTIMATORS))
    kind = ESTIMATORS[name]
    types = get_type_hints(kind)
    known = [field.name for field in fields(kind)]
    options: dict[str, Any] = {}
    for option in filter(None, (piece.strip() for piece in (match.group(2) or "").split(","))):
        key, _, text = (piece.strip() for piece in option.partition("="))
        if key not in known:
            if not known:
                raise OptionError(
                    "method-without-options", method=method, method_name=name, option=key
                )
            raise OptionError(
                "unknown-method-option",
                method=method,
                method_name=name,
                option=key,
                known_options=", ".join(known),
            )
        # The text becomes a value of the type that the option has.
        takes = {types[key], *get_args(types[key])}
        try:
            options[key] = _value(takes, text)
        except ValueError:
            raise OptionError(
                "method-option-not-whole" if int in takes else "method-option-not-number",
                method=method,
                option=key,
                value=text,
            ) from None
    check_words(kind, options)
    return kind(**options)


def split(methods: str) -> list[str]:
    """Split at the commas outside parentheses."""
    return [part for part in re.split(r",(?![^(]*\))", methods) if part.strip()]


def resolve(methods: Sequence[str | Estimator] | str) -> dict[str, Estimator]:
    """Estimators by label, in the order given."""
    given = split(methods) if isinstance(methods, str) else list(methods)
    if not given:
        raise OptionError("no-method-given", choices=", ".join(ESTIMATORS))
    estimators = [parse(method) for method in given]
    return {label(estimator): estimator for estimator in estimators}


def _value(takes: set[Any], text: str) -> int | float | str:
    """An option that takes one of these types from text; a ValueError where it is not a number."""
    for number in (int, float):
        if number in takes:
            return number(text)
    return text
