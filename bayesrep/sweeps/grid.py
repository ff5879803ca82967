"""A grid as its TOML file states it: read, checked name by name, and expanded into runs.

    method = ["naive", "em-spline", "laplace"]
    annotators = ["all", 5, 10]        # kept of every image's answers

    [[study]]
    simulate = { images = 2000, annotators = 20, classifiers = 10, seed = [1, 2, 3] }

    [options]                          # fields of the model's options
    components = ["default", 3]

Every name takes a value or a list of values, and all lists make one grid. Its checks need no data:
what a file of a study holds is for whoever reads it.
"""

import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, get_args

from bayesrep import bounds
from bayesrep.choices import Process
from bayesrep.errors import BayesrepError, OptionError, did_you_mean, reason
from bayesrep.estimators import METHODS
from bayesrep.estimators.methods import label, parse
from bayesrep.models import MODELS
from bayesrep.sources import READERS
from bayesrep.studies.scenarios import find_scenario
from bayesrep.studies.simulate import simulate_study
from bayesrep.sweeps.runs import FITS, Run, StudyOf, Value, combinations, expand

DEFAULT, ALL = "default", "all"
"""How a grid names what is the library's choice, and every answer that there is."""
AXES = ("method", "annotators", "model", "chains", "warmup", "draws", "device", "bootstrap", "seed")
KINDS = ("folder", "simulate", "source")
WHOLE = "a whole number from {} on"


@dataclass(frozen=True)
class Place:
    """A name in a grid file, for messages."""

    file: Path
    key: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.key}"

    def at(self, name: str) -> "Place":
        """A name inside this one."""
        return Place(self.file, f"{self.key}.{name}" if self.key else name)


@dataclass(frozen=True)
class Grid:
    """A checked grid: the studies it names, as far as that is known unread, and its axes.

    Attributes
    ----------
    file
        Where it is stated.
    studies
        In the order of the file.
    axes, options
        As `bayesrep.sweeps.runs.expand` takes them.
    """

    file: Path
    studies: tuple[StudyOf, ...]
    axes: Mapping[str, tuple[Value, ...]]
    options: Mapping[str, tuple[Value, ...]]

    def runs(self, studies: tuple[StudyOf, ...]) -> tuple[Run, ...]:
        """Its runs with studies whose contents are known."""
        return expand(studies, self.axes, self.options, {m: frozenset(_options(m)) for m in MODELS})


def read_grid(file: Path) -> Grid:
    """Read a grid and check all of its names and values.

    Raises
    ------
    OptionError
        In one line with the file, the name and the rule that is broken.
    """
    try:
        stated = tomllib.loads(file.read_bytes().decode("utf-8"))
    except OSError as error:
        raise OptionError("input-file-unreadable", file=file, reason=reason(error)) from error
    except ValueError as error:
        raise OptionError("grid-not-toml", file=file, reason=reason(error)) from error
    top = Place(file)
    _known(top, stated, (*AXES, "options", "study"))
    checks: dict[str, Check] = {
        "method": _method,
        "annotators": lambda place, value: None if value == ALL else _whole(1)(place, value),
        "model": _word(tuple(MODELS)),
        "chains": _whole(1),
        "warmup": _whole(10),
        "draws": _whole(10),
        "device": _text,
        "bootstrap": _whole(0),
        "seed": _whole(0, bounds.SEED),
    }
    stated = {"annotators": ALL, "seed": 0, **stated}
    for name, wanted in (("method", "a method or a list of them"), ("study", "a [[study]]")):
        if name not in stated:
            raise OptionError("grid-key-missing", place=top.at(name), wanted=wanted)
    axes = {
        name: _values(top.at(name), stated[name], checks[name]) for name in AXES & stated.keys()
    }
    models = [str(model or "joint") for model in axes.get("model", ("joint",))]
    return Grid(
        file,
        tuple(_studies(top.at("study"), stated["study"])),
        {name: axes[name] for name in AXES if name in axes},
        _chosen(top.at("options"), stated.get("options", {}), models),
    )


Check = Callable[[Place, Any], Value]
"""Takes the value that stands at a place, or refuses it."""


def _values(place: Place, stated: Any, check: Check) -> tuple[Value, ...]:
    """The values at a place, one or a list of them; "default" is None."""
    if stated == []:
        raise OptionError("grid-axis-empty", place=place)
    listed: list[Any] = stated if isinstance(stated, list) else [stated]
    return tuple(None if each == DEFAULT else check(place, each) for each in listed)


def _known(place: Place, stated: Any, names: Sequence[str]) -> None:
    """Refuse what is no table, and names that nobody asks for."""
    if not isinstance(stated, dict):
        raise _wrong(place, stated, "a table of names and values")
    for name in stated:
        if name not in names:
            hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
            raise OptionError("grid-key-unknown", place=place.at(name), hint=hint)


def _wrong(place: Place, value: Any, wanted: str) -> OptionError:
    return OptionError("grid-value-of-wrong-kind", place=place, value=repr(value), wanted=wanted)


def _whole(least: int, most: int | None = None) -> Check:
    def check(place: Place, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise _wrong(place, value, WHOLE.format(least))
        bounds.at_most(place.key, value, bounds.DRAWS if most is None else most)
        return value

    return check


def _text(place: Place, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(place, value, "text")
    return value


def _word(words: Sequence[str]) -> Check:
    def check(place: Place, value: Any) -> str:
        if value not in words:
            raise _wrong(place, value, f"one of {', '.join(words)}")
        return value

    return check


def _method(place: Place, value: Any) -> str:
    name = _text(place, value)
    if name in FITS:
        return name
    if name.partition("(")[0].strip() not in METHODS:
        raise _wrong(place, value, f"one of {', '.join((*METHODS, *FITS))}")
    return label(_within(place, parse, name))


def _within(place: Place, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What a function says of a value; its refusal names the place."""
    try:
        return function(*given, **named)
    except BayesrepError as error:
        raise error.within(place) from None


# --- studies ----------------------------------------------------------------------------------


def _studies(place: Place, stated: Any) -> Iterator[StudyOf]:
    """The studies that the tables [[study]] name."""
    if not isinstance(stated, list) or not stated:
        raise _wrong(place, stated, "tables [[study]]")
    for number, table in enumerate(stated, 1):
        here = place if len(stated) == 1 else Place(place.file, f"{place.key} {number}")
        if not isinstance(table, dict) or len(KINDS & table.keys()) != 1:
            raise OptionError("grid-study-kinds", place=here, kinds=", ".join(KINDS))
        name = _text(here.at("name"), table["name"]) if "name" in table else ""
        (kind,) = KINDS & table.keys()
        yield from {"folder": _folders, "simulate": _simulated, "source": _imported}[kind](
            here, table, name
        )


def _folders(place: Place, table: Mapping[str, Any], name: str) -> Iterator[StudyOf]:
    _known(place, table, ("folder", "name"))
    for value in _values(place.at("folder"), table["folder"], _text):
        yield StudyOf("folder", name or str(value), files=(_path(place.at("folder"), value),))


def _simulated(place: Place, table: Mapping[str, Any], name: str) -> Iterator[StudyOf]:
    _known(place, table, ("simulate", "name"))
    inside, stated = place.at("simulate"), table["simulate"]
    checks: dict[str, Check] = {
        "seed": _whole(0, bounds.SEED),
        "images": _whole(1),
        "annotators": _annotators,
        "classifiers": _whole(1),
        "process": _word(get_args(Process)),
        "scenario": lambda place, value: _within(place, find_scenario, value) and value,
        "dependence": _share,
    }
    assert checks.keys() == inspect.signature(simulate_study).parameters.keys()
    _known(inside, stated, tuple(checks))
    values = {n: _values(inside.at(n), stated[n], checks[n]) for n in checks if n in stated}
    yield from (StudyOf("simulate", name or "simulated", each) for each in combinations(values))


def _annotators(place: Place, value: Any) -> int | str:
    low, colon, high = str(value).partition(":")
    if isinstance(value, str) and colon and low.isdecimal() and high.isdecimal():
        return value
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _wrong(place, value, 'a whole number from 1 on or "LOW:HIGH"')
    return value


def _share(place: Place, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
        raise _wrong(place, value, "a number from 0 to 1")
    return float(value)


def _imported(place: Place, table: Mapping[str, Any], name: str) -> Iterator[StudyOf]:
    source = str(_word(tuple(READERS))(place.at("source"), table["source"]))
    parameters = list(inspect.signature(READERS[source]).parameters.values())
    names = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    own = [each for each in names if each != "name"]
    _known(place, table, ("source", "files", "name", *own))
    if "files" not in table:
        wanted = "the files that the source is read from"
        raise OptionError("grid-key-missing", place=place.at("files"), wanted=wanted)
    files = _values(place.at("files"), table["files"], _text)
    paths = tuple(_path(place.at("files"), each) for each in files)
    values = {n: _values(place.at(n), table[n], _scalar) for n in own if n in table}
    for each in combinations(values):
        yield StudyOf("source", name or source, each, paths, source)


def _scalar(place: Place, value: Any) -> Value:
    if not isinstance(value, str | int | float):
        raise _wrong(place, value, "text or a number")
    return value


def _path(place: Place, value: Value) -> str:
    """A path as the grid's folder sees it."""
    path = place.file.parent / str(value)
    if not path.exists():
        raise OptionError("grid-path-missing", place=place, path=path)
    return str(path)


# --- options of models ------------------------------------------------------------------------


@cache
def _options(model: str) -> Mapping[str, Field[Any]]:
    """Fields of a model's options."""
    return {each.name: each for each in fields(MODELS[model].options())}


def _chosen(place: Place, stated: Any, models: Sequence[str]) -> Mapping[str, tuple[Value, ...]]:
    """Values of the options, each such as every model takes that has the option."""
    every = {name: each for model in models for name, each in _options(model).items()}
    _known(place, stated, tuple(every))
    chosen: dict[str, tuple[Value, ...]] = {}
    for name in sorted(stated):
        inside, pair = place.at(name), isinstance(every[name].default, tuple)
        listed = [stated[name]] if pair and _is_pair(stated[name]) else stated[name]
        chosen[name] = _values(
            inside, listed, lambda at, value, n=name: _option(at, n, value, models)
        )
    return chosen


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, int | float) for each in value)


def _option(place: Place, name: str, value: Any, models: Sequence[str]) -> Value:
    """A value of an option, as its default is; the models' own checks decide."""
    takers = [model for model in models if name in _options(model)]
    default = _options(takers[0])[name].default
    assert default is not MISSING
    if isinstance(default, tuple) and isinstance(value, list):
        value = tuple(float(each) if isinstance(each, int) else each for each in value)
    elif isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if isinstance(default, str) and not isinstance(value, str):
        raise _wrong(place, value, "text")
    if not isinstance(value, str | int | float | tuple):
        raise _wrong(place, value, "text, a number, true or false")
    for model in takers:
        _within(place, MODELS[model].options, **{name: value})
    return value
