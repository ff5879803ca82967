"""Schemas of `--json` output, as JSON Schema (draft 2020-12) in plain dictionaries.

Here is what the `FORMS` of commands are made of, and what several of them share. The page of the
documentation and the files beside it are made from `FORMS`, and the tests hold what commands print
against them. Two words of ours stand beside those of JSON Schema, which lets a reader ignore them:
`unit` of a number or text, and `when`, the option or the case in which a name is there at all. A
name without `when` is always there.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias, get_args

from bayesrep.choices import Role
from bayesrep.commands import import_command

JSON_SCHEMA_DRAFT = "https://json-schema.org/draft/2020-12/schema"
Schema: TypeAlias = Mapping[str, Any]
Forms: TypeAlias = Mapping[str, Mapping[str, Schema]]
"""What is in the object that a command prints, by when: where what is asked for decides about the
names, there are several. Every object has `format` too, which `schema_of` adds."""


def schema_of(command: str) -> Schema:
    """The schema of all that a command prints with `--json`, as a document of its own."""
    fixed = {"format": {"type": "string", "const": f"bayesrep {command} 1"}}
    forms: Forms = import_command(command).FORMS
    each = [thing({**fixed, **names}, description) for description, names in forms.items()]
    whole = each[0] if len(each) == 1 else {"anyOf": each}
    return {"$schema": JSON_SCHEMA_DRAFT, "title": f"bayesrep {command} --json", **whole}


def _schema(kind: str, description: str, unit: str = "") -> Schema:
    unit_of = {"unit": unit} if unit else {}
    return {"type": kind, **unit_of, **({"description": description} if description else {})}


def text(description: str = "") -> Schema:
    """Words, or a name."""
    return _schema("string", description)


def file(description: str = "") -> Schema:
    """The path of a file or folder, as it was given."""
    return _schema("string", description, "file")


def flag(description: str = "") -> Schema:
    """True or false."""
    return _schema("boolean", description)


def count(description: str = "") -> Schema:
    """A count: a whole number from 0."""
    return {**_schema("integer", description), "minimum": 0}


def number(description: str = "", unit: str = "") -> Schema:
    """Any number."""
    return _schema("number", description, unit)


def fraction(description: str = "") -> Schema:
    """A share, or a difference of shares: 0.01 is one percent, or one point."""
    return number(description, "fraction")


def probability(description: str = "") -> Schema:
    """A probability, 0 to 1."""
    return {**number(description, "fraction"), "minimum": 0, "maximum": 1}


def seconds(description: str = "") -> Schema:
    """A time."""
    return {**number(description, "seconds"), "minimum": 0}


def nats(description: str = "") -> Schema:
    """A log density or likelihood."""
    return number(description, "nats")


def money(description: str = "") -> Schema:
    """An amount in the currency of the prices."""
    return number(description, "money")


def word(*words: str, description: str = "") -> Schema:
    """One of these words."""
    return {**_schema("string", description), "enum": list(words)}


def thing(names: Mapping[str, Schema], description: str = "") -> Schema:
    """An object with these names and no others."""
    return {
        **_schema("object", description),
        "properties": dict(names),
        "required": [name for name, schema in names.items() if "when" not in schema],
        "additionalProperties": False,
    }


def by_name(each: Schema, description: str = "") -> Schema:
    """An object whose names are the data's own."""
    return {**_schema("object", description), "additionalProperties": each}


def list_of(each: Schema, description: str = "") -> Schema:
    """A list."""
    return {**_schema("array", description), "items": each}


def rows(names: Mapping[str, Schema], description: str = "") -> Schema:
    """A table, as a list with an object a row."""
    return list_of(thing(names), description)


def nullable(schema: Schema) -> Schema:
    """A schema that also allows null."""
    whole = {**schema, "type": [schema["type"], "null"]}
    return {**whole, "enum": [*schema["enum"], None]} if "enum" in schema else whole


def conditional_name(when: str, schema: Schema) -> Schema:
    """A name that is not always there."""
    return {**schema, "when": when}


def ends(each: Schema | None = None) -> dict[str, Schema]:
    """The columns lower and upper of an interval, of fractions where nothing else is said."""
    end = fraction() if each is None else each
    end_text = "{} end of the 95 % interval"
    return {name: {**end, "description": end_text.format(name)} for name in ("lower", "upper")}


def table(names: Mapping[str, Schema], description: str = "") -> dict[str, Schema]:
    """Schema of a command that prints one table of a study."""
    return {"rows": rows(names, description), **LEFT_OUT_FIELD}


# What several commands print.
OUT_FILE = file("what was written")
LEFT_OUT_FIELD = {
    "left_out": conditional_name(
        "where the study is left without images that could not be decoded",
        by_name(by_name(text()), "why, by data set and image"),
    )
}
NULLABLE_ENDS = ends(nullable(fraction()))
TRUST_FIELD = word("yes", "with care", "no", description="whether to use the adjusted accuracies")
FIT_REMARKS = {
    "components_choice": text("why there are more than two components; empty of two"),
    "tried": text("what was done before the draws held, and how it failed; empty where nothing"),
}
STUDY_WRITTEN = {
    "out": OUT_FILE,
    "fingerprint": nullable(text("of the study; null where it still lacks counts or predictions")),
}
ACCURACY_FIELDS = {
    "method": text(),
    "classifier": text(),
    "reference_accuracy": fraction(),
    "replication_accuracy": fraction(),
    "adjusted_accuracy": nullable(fraction("at the reference's selection frequencies")),
    **NULLABLE_ENDS,
    "bias_corrected_gap": nullable(fraction("reference less adjusted accuracy")),
    "selection_gap": nullable(fraction("adjusted less replication accuracy")),
}
GAP_ROWS = rows(
    {
        "method": text(),
        "quantity": text(
            "bias_corrected_gap, selection_gap, share_explained, slope, intercept; of `summarize` "
            "also population_gap, population_slope, population_intercept; slopes are not fractions"
        ),
        "estimate": nullable(number()),
        **ends(nullable(number())),
    },
    "means over classifiers, and the line of adjusted on reference accuracies",
)
MATCHING_ROWS = rows(
    {
        "method": text(),
        "annotators": count("n', to which images were thinned"),
        "images_left_out": thing(
            {role: count() for role in get_args(Role)}, "that have fewer annotators"
        ),
        "fewest_annotators": count("of any image"),
        "images_with_no_more": thing(
            {role: count() for role in get_args(Role)}, "that hold n' down, where most have more"
        ),
        "annotators_without_these": count("n' without the images that hold it down"),
        "gap_of_all_images": nullable(
            fraction("thinned to the fewest; null where none is left out, or it cannot be had")
        ),
        "gap_standard_error": nullable(fraction("of the mean gap, over images, by the bootstrap")),
    },
    "naive matching and the jackknife: which images they take",
)
CHECK_ROWS = rows(
    {
        "check": text(),
        "value": text("what was found"),
        "wanted": text("what would be fine"),
        "trust": TRUST_FIELD,
    }
)
DEPENDENCE_FIELD = nullable(
    rows(
        {
            "dependence": number("correlation of the answers about an image"),
            "probability": fraction("posterior, of this correlation"),
            "gap": fraction("the mean gap, were the correlation known"),
            "lower": fraction("of its 95 % interval"),
            "upper": fraction("of its 95 % interval"),
        },
        "the mean gap by the correlation of answers; null where the correlation was given",
    )
)
DROPPED_ROWS = rows(
    {
        "rule": text(),
        "workers": count("all of whose answers went"),
        "assignments": count("of which all went"),
        "answers": count(),
    },
    "what each rule left out",
)
EFFECT_ROWS = rows(
    {
        "dataset": text(),
        "before": fraction("mean selection frequency over images"),
        "after": nullable(fraction("likewise")),
        "images": count("before"),
        "images_lost": count("all of whose answers went"),
    }
)
COUNT_FIELDS = {
    "dataset": text(),
    "images": count(),
    "answers": count(),
    "workers": count(),
    "selection_frequency": fraction("mean over images"),
    "error_images": nullable(fraction("standard error of that, over images")),
    "error_workers": nullable(fraction("and over workers")),
}
GAP_LEFT = fraction("reference's mean selection frequency less that of the images chosen")
CONFUSION_FIELDS = {
    "participant": text(),
    "label": text(),
    "answer": text(),
    "images": count("of that label, answered"),
    "count": count("with that answer"),
    "rate": fraction(),
    **ends(),
}
