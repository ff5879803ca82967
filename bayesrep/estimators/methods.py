"""Registry of methods, and parsing of their names and options.

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
from bayesrep.plugins import run_plugins

ESTIMATORS: dict[str, type[Estimator]] = {
    kind.name: kind for kind in (Raw, Naive, Jackknife, EMSpline)
}
"""Every method, in the order of the tables."""

METHODS = tuple(ESTIMATORS)
"""Names of the methods."""

_METHOD_PATTERN = re.compile(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*")


def label(estimator: Estimator) -> str:
    """Write a method's name with the options that differ from their defaults."""
    options = [
        f"{field.name}={getattr(estimator, field.name)}"
        for field in fields(estimator)
        if getattr(estimator, field.name) != field.default
    ]
    return estimator.name + (f"({', '.join(options)})" if options else "")


def parse(method: str | Estimator) -> Estimator:
    """Build the estimator from a method's name and options."""
    if not isinstance(method, str):
        return method
    # A method is a name with options in parentheses: `jackknife(delete=2)`.
    match = _METHOD_PATTERN.fullmatch(method)
    name = match.group(1) if match else method
    if name not in ESTIMATORS:
        run_plugins()
    if match is None or name not in ESTIMATORS:
        raise OptionError("unknown-method", method=name, choices=", ".join(ESTIMATORS))
    kind = ESTIMATORS[name]
    types = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    options: dict[str, Any] = {}
    for option in filter(None, (piece.strip() for piece in (match.group(2) or "").split(","))):
        key, _, text = (piece.strip() for piece in option.partition("="))
        if key not in names:
            facts = {"method": method, "method_name": name, "option": key}
            if not names:
                raise OptionError("method-without-options", **facts)
            raise OptionError("unknown-method-option", **facts, known_options=", ".join(names))
        # The option's type hint decides the type of its value.
        types_taken = {types[key], *get_args(types[key])}
        kinds = [number for number in (int, float) if number in types_taken]
        try:
            options[key] = kinds[0](text) if kinds else text
        except ValueError:
            rule = "method-option-not-whole" if int in types_taken else "method-option-not-number"
            raise OptionError(rule, method=method, option=key, value=text) from None
    check_words(kind, options)
    return kind(**options)


def split(methods: str) -> list[str]:
    """Split at the commas outside parentheses."""
    return [part for part in re.split(r",(?![^(]*\))", methods) if part.strip()]


def resolve(methods: Sequence[str | Estimator] | str) -> dict[str, Estimator]:
    """Build estimators by label, in this order."""
    texts = split(methods) if isinstance(methods, str) else list(methods)
    if not texts:
        raise OptionError("no-method-given", choices=", ".join(ESTIMATORS))
    estimators = [parse(method) for method in texts]
    return {label(estimator): estimator for estimator in estimators}
