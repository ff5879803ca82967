"""A grid as its TOML file states it: read, checked name by name, and expanded into runs.

docs/how-to/mcmc-experiments.md has its names. No check needs data.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from bayesrep import bounds
from bayesrep.errors import BayesrepError, OptionError, reason
from bayesrep.estimators import ESTIMATORS
from bayesrep.estimators.methods import label, parse
from bayesrep.files import strict_json
from bayesrep.models import MODELS
from bayesrep.plugins import run_plugins
from bayesrep.sweeps import toml
from bayesrep.sweeps.run_spec import FIT_METHODS, MAX_RUNS, StudySpec, SweepRun, Value, expand
from bayesrep.sweeps.study_specs import studies_at
from bayesrep.sweeps.toml import Check, GridPlace

ALL_ANSWERS = "all"  # name in a grid for every answer that there is
NEEDED_KEYS = {"method": "a method or a list of them", "study": "a [[study]]"}


@dataclass(frozen=True)
class Grid:
    """A checked grid: the studies it names, as far as that is known unread, and its axes."""

    file: Path  # where it is stated
    studies: tuple[StudySpec, ...]  # in the order of the file
    # Axes and options as `bayesrep.sweeps.run_spec.expand` takes them.
    axes: Mapping[str, tuple[Value, ...]]
    options: Mapping[str, tuple[Value, ...]]

    def runs(self, studies: Sequence[StudySpec]) -> tuple[SweepRun, ...]:
        """Runs of the grid, each once, with studies whose contents are known."""
        options = {model: frozenset(_options(model)) for model in _models(self.axes)}
        runs: dict[str, SweepRun] = {}
        for number, run in enumerate(expand(studies, self.axes, self.options, options)):
            if number == MAX_RUNS:
                raise OptionError("grid-of-too-many-runs", file=self.file, largest=MAX_RUNS)
            runs.setdefault(run.key, run)
        return tuple(runs.values())


def read_grid(source: Path | Mapping[str, Any]) -> Grid:
    """Read a grid, a file or what one would say, and check all of its names and values."""
    file = source if isinstance(source, Path) else Path("grid")  # paths then start from here
    try:
        if isinstance(source, Path):
            document = strict_json.load(source, strict_json.parse_toml)
        else:
            document = strict_json.parse(json.dumps(dict(source)))
    except OSError as error:
        raise OptionError("input-file-unreadable", file=file, reason=reason(error)) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise OptionError("grid-not-toml", file=file, reason=reason(error)) from error
    top, faults = GridPlace(file), list[BayesrepError]()
    with _note_faults(faults):
        toml.check_names(top, document, (*AXIS_CHECKS, "options", "study"))
    for name, type_name in NEEDED_KEYS.items():
        if name not in document:
            faults.append(OptionError("grid-key-missing", place=top.child(name), wanted=type_name))
    document = {"annotators": ALL_ANSWERS, "seed": 0, **document}
    axes: dict[str, tuple[Value, ...]] = {}
    for name, check in AXIS_CHECKS.items():
        with _note_faults(faults):
            if name in document:
                axes[name] = toml.values(top.child(name), document[name], check)
    studies, options = tuple[StudySpec, ...](), {}
    with _note_faults(faults):
        if "study" in document:
            given = studies_at(top.child("study"), document["study"])
            studies = tuple(islice(given, MAX_RUNS + 1))
    with _note_faults(faults):
        if ("model" in document) == ("model" in axes):  # whose options they are
            given_options = document.get("options", {})
            options = _read_options(top.child("options"), given_options, _models(axes), faults)
    if faults:
        several = {"count": len(faults), "faults": "; ".join(map(str, faults))}
        raise faults[0] if len(faults) == 1 else OptionError("grid-of-several-faults", **several)
    grid = Grid(file, studies, axes, options)
    grid.runs(studies)  # refused before a study is read
    return grid


@contextmanager
def _note_faults(faults: list[BayesrepError]) -> Generator[None]:
    """Go on after a fault, which is noted."""
    try:
        yield
    except BayesrepError as error:
        faults.append(error)


def _models(axes: Mapping[str, tuple[Value, ...]]) -> list[str]:
    return [str(model or "joint") for model in axes.get("model", ("joint",))]


def _method(place: GridPlace, value: Any) -> str:
    """A method under the name that tables have for it."""
    name = toml.text(place, value)
    if name in FIT_METHODS:
        return name
    run_plugins()  # which may register estimators
    if name.partition("(")[0].strip() not in ESTIMATORS:
        raise toml.refuse_value(place, value, f"one of {', '.join((*ESTIMATORS, *FIT_METHODS))}")
    return label(toml.call_at_place(place, parse, name))


def _acceptance(place: GridPlace, value: Any) -> Value:
    """Check a probability that NUTS adapts its step size to: as `fit` takes it, above 0."""
    if value == 0:
        raise toml.refuse_value(place, value, "a number above 0 and below 1")
    return toml.share(place, value)


AXIS_CHECKS: Mapping[str, Check] = {
    "method": _method,
    "annotators": toml.optional(toml.whole_number(1), ALL_ANSWERS),
    "model": toml.optional(toml.word(MODELS)),
    "chains": toml.optional(toml.whole_number(1)),
    "warmup": toml.optional(toml.whole_number(10)),
    "target_accept": toml.optional(_acceptance),
    "max_tree_depth": toml.optional(toml.whole_number(1, 20)),
    "dense_mass": toml.optional(toml.scalar(bool)),
    "draws": toml.optional(toml.whole_number(10)),
    "device": toml.optional(toml.text),
    "bootstrap": toml.whole_number(0),
    "seed": toml.whole_number(0, bounds.MAX_SEED),
    "keep": toml.word(("posterior",)),  # which is no axis: of every fit, or of none
}
"""The axes beside studies and options."""


@cache
def _options(model: str) -> Mapping[str, Field[Any]]:
    return {each.name: each for each in fields(MODELS[model].options())}


def _read_options(
    place: GridPlace, table: Any, models: Sequence[str], faults: list[BayesrepError]
) -> Mapping[str, tuple[Value, ...]]:
    takers: dict[str, list[str]] = {}
    for model in models:
        for name in _options(model):
            takers.setdefault(name, []).append(model)
    toml.check_names(place, table, tuple(takers))
    values: dict[str, tuple[Value, ...]] = {}
    for name in sorted(table):
        with _note_faults(faults):
            values[name] = _values_of(place.child(name), name, table[name], takers[name])
    return values


def _values_of(place: GridPlace, name: str, entry: Any, models: Sequence[str]) -> tuple[Value, ...]:
    """Values of one option: of a prior a pair, or a list of pairs."""
    default = _options(models[0])[name].default
    assert default is not MISSING
    is_pair = isinstance(entry, list) and all(bounds.is_of_kind(each, float) for each in entry)
    listed = [entry] if isinstance(default, tuple) and is_pair and entry else entry

    def check(place: GridPlace, value: Any) -> Value:
        """A value of the kind that the default is; the models' own checks decide."""
        if isinstance(default, tuple) and isinstance(value, list):
            value = tuple(float(n) if bounds.is_of_kind(n, int) else n for n in value)
        elif isinstance(default, float) and bounds.is_of_kind(value, int):
            value = float(value)
        if isinstance(default, str):
            toml.text(place, value)
        if not isinstance(value, str | int | float | tuple):
            raise toml.refuse_value(place, value, "text, a number, true or false")
        for model in models:
            toml.call_at_place(place, MODELS[model].options, **{name: value})
        return value

    return toml.values(place, listed, toml.optional(check))
