"""The studies that a grid names: simulated, in folders, or read by a source of `import`."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from bayesrep import bounds
from bayesrep.choices import Process
from bayesrep.errors import OptionError
from bayesrep.sources import READERS
from bayesrep.studies.scenarios import find_scenario
from bayesrep.studies.simulate import simulate_study
from bayesrep.sweeps import toml
from bayesrep.sweeps.run_spec import StudySpec, combinations
from bayesrep.sweeps.toml import Check, GridPlace

STUDY_KINDS = ("folder", "simulate", "source")


def studies_at(place: GridPlace, tables: Any) -> Iterator[StudySpec]:
    """The studies of the tables [[study]]."""
    if not isinstance(tables, list) or not tables:
        raise toml.refuse_value(place, tables, "tables [[study]]")
    for number, table in enumerate(tables, 1):
        entry_place = place if len(tables) == 1 else GridPlace(place.file, f"{place.key} {number}")
        if not isinstance(table, dict) or len(STUDY_KINDS & table.keys()) != 1:
            raise OptionError("grid-study-kinds", place=entry_place, kinds=", ".join(STUDY_KINDS))
        name = toml.text(entry_place.child("name"), table["name"]) if "name" in table else ""
        (kind,) = STUDY_KINDS & table.keys()
        find = {"folder": _folders, "simulate": _simulations, "source": _read}[kind]
        yield from find(entry_place, table, name)


def _folders(place: GridPlace, table: Mapping[str, Any], name: str) -> Iterator[StudySpec]:
    toml.check_names(place, table, ("folder", "name"))
    inside = place.child("folder")
    for value in toml.values(inside, table["folder"], toml.text):
        yield StudySpec("folder", name or str(value), files=(toml.path(inside, value),))


def _simulations(place: GridPlace, table: Mapping[str, Any], name: str) -> Iterator[StudySpec]:
    toml.check_names(place, table, ("simulate", "name"))
    inside, arguments = place.child("simulate"), table["simulate"]
    checks: dict[str, Check] = {
        "seed": toml.whole_number(0, bounds.MAX_SEED),
        "images": toml.whole_number(1),
        "annotators": _annotators,
        "classifiers": toml.whole_number(1),
        "process": toml.word(get_args(Process)),
        "scenario": _scenario,
        "dependence": toml.share,
    }
    assert checks.keys() == inspect.signature(simulate_study).parameters.keys()
    toml.check_names(inside, arguments, tuple(checks))
    options = {
        n: toml.values(inside.child(n), arguments[n], toml.optional(checks[n]))
        for n in checks
        if n in arguments
    }
    yield from (StudySpec("simulate", name or "simulated", each) for each in combinations(options))


def _annotators(place: GridPlace, value: Any) -> int | str:
    if isinstance(value, str):
        low, colon, high = value.partition(":")
        if colon and all(each.isdecimal() and len(each) < 10 for each in (low, high)):
            return value
    if not bounds.is_of_kind(value, int) or value < 1:
        raise toml.refuse_value(place, value, 'a whole number from 1 on or "LOW:HIGH"')
    return value


def _scenario(place: GridPlace, value: Any) -> str:
    name = toml.text(place, value)
    toml.call_at_place(place, find_scenario, name)
    return name


_UNUSED_OPTIONS = ("name", "keep_workers")  # options of readers that change no number


def _read(place: GridPlace, table: Mapping[str, Any], name: str) -> Iterator[StudySpec]:
    readers = tuple(name for name, reader in READERS.items() if reader.has_counts)
    source = str(toml.word(readers)(place.child("source"), table["source"]))
    parameters = inspect.signature(READERS[source].read).parameters.values()
    options = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in _UNUSED_OPTIONS]
    # An option says itself which kinds of value it may have.
    takes = {p.name: (p.annotation, *get_args(p.annotation)) for p in options}
    own = {
        name: kinds
        for name, each in takes.items()
        if (kinds := [kind for kind in toml.KIND_NAMES if {kind} & {*each, *map(type, each)}])
    }
    toml.check_names(place, table, ("source", "files", "name", *own))
    inside = place.child("files")
    if "files" not in table:
        raise OptionError(
            "grid-key-missing", place=inside, wanted="the files that the source is read from"
        )
    files = toml.values(inside, table["files"], toml.text)
    paths = tuple(toml.path(inside, each) for each in files)
    import_options = {
        n: toml.values(place.child(n), table[n], toml.optional(toml.scalar(*kinds)))
        for n, kinds in own.items()
        if n in table
    }
    yield from (
        StudySpec("source", name or source, each, paths, source)
        for each in combinations(import_options)
    )
