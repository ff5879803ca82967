"""As much of JSON Schema as `bayesrep.commands.shapes` uses; tests need no other package."""

from collections.abc import Iterator, Mapping
from typing import Any

KINDS = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": (int, float),
    "object": dict,
    "string": str,
}
WORDS = {
    *("$schema", "title", "description", "unit", "when"),  # which allow everything
    *("type", "const", "enum", "minimum", "maximum", "anyOf"),
    *("properties", "required", "additionalProperties", "items"),
}


def faults(value: Any, schema: Mapping[str, Any], where: str = "$") -> Iterator[str]:
    """What is otherwise than the schema says, a line each."""
    if strange := set(schema) - WORDS:
        raise ValueError(f"{where}: the schema says {strange}, which is not checked here")
    if "anyOf" in schema:
        each = [list(faults(value, one, where)) for one in schema["anyOf"]]
        yield from min(each, key=len)
        return
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(is_of(value, kind) for kind in kinds):
        yield f"{where}: {value!r:.60} is no {' or '.join(kinds)}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if isinstance(value, int | float):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{where}: {value} is out of range"
    if isinstance(value, dict):
        yield from of_names(value, schema, where)
    if isinstance(value, list):
        for place, each in enumerate(value):
            yield from faults(each, schema["items"], f"{where}[{place}]")


def of_names(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    """What is wrong with the names of an object and what they name."""
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where}: {name} is missing"
    for name, each in value.items():
        if name in known or isinstance(others, dict):
            yield from faults(each, known.get(name, others), f"{where}.{name}")
        elif not others:
            yield f"{where}: {name} is not stated"


def is_of(value: Any, kind: str) -> bool:
    return isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))
