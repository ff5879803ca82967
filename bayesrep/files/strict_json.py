"""Strict JSON and TOML: of bounded size and depth, each key once, only finite numbers."""

import gc
import json
import re
import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from bayesrep.errors import StudyError, reason

MAX_DEPTH = 100
MAX_BYTES = 2**26  # parsed values take up to thirty times as much memory
MAX_TOML_CHARACTERS = 1_000_000
MAX_INTEGER_BITS = 128  # of a whole number, such as a seed
_MANY_CHARACTERS = 2**20  # longer texts may hold lists that slow garbage collection


def replace_non_finite(value: Any) -> Any:
    """A value whose numbers that are not finite are None: JSON has neither NaN nor infinity."""
    match value:
        case float():
            return value if isfinite(value) else None
        case Mapping():
            return {name: replace_non_finite(each) for name, each in value.items()}
        case list() | tuple():
            return [replace_non_finite(each) for each in value]
        case _:
            return value


def parse(text: str) -> Any:
    """The value of a text in JSON; a ValueError says in a few words what is wrong."""
    try:
        with _collector_paused(len(text)):
            value = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
            for each in _values(value):
                _check(each)
    except RecursionError:
        raise ValueError(_DEPTH_MESSAGE) from None
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """The same of a text in TOML; Python takes long for keys of many parts."""
    if len(text) > MAX_TOML_CHARACTERS:
        raise ValueError(f"more than {MAX_TOML_CHARACTERS:,} characters")
    parts = (key.replace("..", "").count(".") for key in re.split("[\n=,#]", text))
    if max(parts) > MAX_DEPTH:
        raise ValueError(_DEPTH_MESSAGE)
    try:
        value = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_DEPTH_MESSAGE) from None
    for each in _values(value):
        _check(each)
    return value


def load(path: str | Path, parse: Callable[[str], Any] = parse) -> Any:
    """Parse a JSON file; a ValueError as of `parse`, or if the file is too large."""
    with open(path, "rb") as file:
        contents = file.read(MAX_BYTES + 1)
    if len(contents) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES // 2**20} MB")
    try:
        return parse(contents.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None


def read(path: str | Path) -> Any:
    """Parse a JSON file; a StudyError in one line naming the file."""
    try:
        return load(path)
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error
    except ValueError as error:
        raise StudyError("file-not-json", where=path, reason=reason(error)) from error


def beginning(text: str, start: int = 0) -> tuple[Any, int]:
    """The value that begins at a place of a text, and where it ends; a ValueError as of `parse`."""
    try:
        with _collector_paused(len(text) - start):
            value, end = _LENIENT_DECODER.raw_decode(text, start)
            if text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH:
                for _ in _levels(value):
                    pass
    except RecursionError:
        raise ValueError(_DEPTH_MESSAGE) from None
    return value, end


@contextmanager
def _collector_paused(characters: int) -> Generator[None]:
    """Without the collector of cycles, which JSON has none of, where millions of lists are made."""
    pause = characters > _MANY_CHARACTERS and gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()


_DEPTH_MESSAGE = f"lists and objects more than {MAX_DEPTH} deep"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"the key {key[:50]!r} is given twice")
        members[key] = value
    return members


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def _levels(value: Any) -> Iterator[list[Any]]:
    """Yield the levels of nested values, outermost first; a ValueError if too many."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        yield level
        containers = [each for each in level if isinstance(each, list | dict)]
        if not containers:
            return
        inside = (each.values() if isinstance(each, dict) else each for each in containers)
        level = [inner for values in inside for inner in values]
    raise ValueError(_DEPTH_MESSAGE)


def _values(value: Any) -> Iterator[Any]:
    """Yield the keys, and the values that hold no others, level by level."""
    for level in _levels(value):
        for each in level:
            if isinstance(each, dict):
                yield from each
            elif not isinstance(each, list):
                yield each


def _check(value: Any) -> None:
    if isinstance(value, str):
        value.encode()  # half a surrogate pair is not text
    elif isinstance(value, float) and not isfinite(value):
        raise ValueError("nan is not a value" if isnan(value) else "a number is too large")
    elif isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
        raise ValueError("a whole number is too large")


_LENIENT_DECODER = json.JSONDecoder(object_pairs_hook=_object)
