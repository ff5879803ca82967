"""What schemas are made of: JSON Schema as plain dictionaries, with the unit and the condition.

Two words of ours stand beside those of JSON Schema, which lets a reader ignore them: `unit` of a
number or text, and `when`, the option or the case in which a name is there at all. A name without
`when` is always there.
"""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def _schema(kind: str, said: str, unit: str = "") -> Schema:
    unit_of = {"unit": unit} if unit else {}
    return {"type": kind, **unit_of, **({"description": said} if said else {})}


def text(said: str = "") -> Schema:
    """Words, or a name."""
    return _schema("string", said)


def file(said: str = "") -> Schema:
    """The path of a file or folder, as it was given."""
    return _schema("string", said, "file")


def flag(said: str = "") -> Schema:
    """True or false."""
    return _schema("boolean", said)


def count(said: str = "") -> Schema:
    """How many: a whole number from 0."""
    return {**_schema("integer", said), "minimum": 0}


def number(said: str = "", unit: str = "") -> Schema:
    """Any number."""
    return _schema("number", said, unit)


def fraction(said: str = "") -> Schema:
    """A share, or a difference of shares: 0.01 is one percent, or one point."""
    return number(said, "fraction")


def probability(said: str = "") -> Schema:
    """From 0 to 1."""
    return {**number(said, "fraction"), "minimum": 0, "maximum": 1}


def seconds(said: str = "") -> Schema:
    """A time."""
    return {**number(said, "seconds"), "minimum": 0}


def nats(said: str = "") -> Schema:
    """A log density or likelihood."""
    return number(said, "nats")


def money(said: str = "") -> Schema:
    """In the currency in which prices were given."""
    return number(said, "money")


def word(*words: str, said: str = "") -> Schema:
    """One of these words."""
    return {**_schema("string", said), "enum": list(words)}


def thing(names: Mapping[str, Schema], said: str = "") -> Schema:
    """An object with these names and no others."""
    return {
        **_schema("object", said),
        "properties": dict(names),
        "required": [name for name, schema in names.items() if "when" not in schema],
        "additionalProperties": False,
    }


def by_name(each: Schema, said: str = "") -> Schema:
    """An object whose names are the data's own."""
    return {**_schema("object", said), "additionalProperties": each}


def list_of(each: Schema, said: str = "") -> Schema:
    """A list."""
    return {**_schema("array", said), "items": each}


def rows(names: Mapping[str, Schema], said: str = "") -> Schema:
    """A table, as a list with an object a row."""
    return list_of(thing(names), said)


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    whole = {**schema, "type": [schema["type"], "null"]}
    return {**whole, "enum": [*schema["enum"], None]} if "enum" in schema else whole


def conditional_name(when: str, schema: Schema) -> Schema:
    """A name that is not always there."""
    return {**schema, "when": when}


def ends(of: str = "95 %", each: Schema | None = None) -> dict[str, Schema]:
    """The columns lower and upper of an interval."""
    end = fraction() if each is None else each
    return {name: {**end, "description": f"{name} end of the {of} interval"} for name in _ENDS}


_ENDS = ("lower", "upper")

OUT_FILE = file("what was written")
COMPONENTS: Mapping[str, Schema] = {
    "components_choice": text("why there are more than two components; empty of two")
}
TRIED_FIELD: Mapping[str, Schema] = {
    "tried": text("what was done before the draws held, and how it failed; empty where nothing")
}
LEFT_OUT_FIELD: Mapping[str, Schema] = {
    "left_out": conditional_name(
        "where the study is left without images that could not be decoded",
        by_name(by_name(text()), "why, by data set and image"),
    )
}
TRUST = word("yes", "with care", "no", said="whether to use the adjusted accuracies")
