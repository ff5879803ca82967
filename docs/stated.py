"""What `--json` prints, as tables for the page, and as a file of JSON Schema for each command."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from bayesrep.cli import COMMANDS
from bayesrep.commands import import_command
from bayesrep.commands.shapes import Schema, schema_of, thing

KINDS: Mapping[str, str] = {
    "array": "list",
    "boolean": "flag",
    "integer": "count",
    "null": "null",
    "number": "number",
    "object": "names",
    "string": "text",
}


def file_of(command: str) -> str:
    """The name of the file that holds the schema of a command."""
    return f"{command.replace(' ', '-')}.json"


def kind_of(schema: Schema) -> str:
    """What a value is, in a few words."""
    main, *null = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    words = [f"`{each}`" for each in schema.get("enum", ()) if each is not None]
    kind = ", ".join(words) or schema.get("unit", KINDS[main])
    if main == "array":
        inner = schema["items"]
        kind = "rows" if "properties" in inner else f"list of {kind_of(inner)}"
    elif isinstance(each := schema.get("additionalProperties"), Mapping):
        kind = f"{kind_of(each)} by name"
    return f"{kind} or null" if null else kind


def lines_of(schema: Schema, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Name, kind and meaning of all that is inside an object, the outer before the inner."""
    for name, each in schema.get("properties", {}).items():
        said = each.get("description", "")
        when = f"only {each['when']}" if "when" in each else ""
        yield f"{place}{name}", kind_of(each), "; ".join(filter(None, (said, when)))
        inner = each.get("items", each)
        if isinstance(others := inner.get("additionalProperties"), Mapping):
            inner = others.get("items", others)
        rows = each["type"] == "array" or "array" in each["type"] or inner is not each
        yield from lines_of(inner, f"{place}{name}{'[]' if rows else ''}.")


def tables() -> str:
    """A section for every command, as Markdown."""
    parts: list[str] = []
    for command in COMMANDS:
        link = f'<a href="../schemas/{file_of(command)}">{file_of(command)}</a>'
        parts.append(f"## {command}\n\nSchema: {link}")
        for when, names in import_command(command).FORMS.items():
            if when:
                parts.append(f"{when[0].upper()}{when[1:]}:")
            lines = [
                f"| `{name}` | {kind} | {said} |" for name, kind, said in lines_of(thing(names))
            ]
            parts.append("\n".join(["| name | kind | is |", "|---|---|---|", *lines]))
    return "\n\n".join(parts)


def write_schemas(folder: Path) -> None:
    """Write the schema of every command."""
    folder.mkdir(exist_ok=True)
    for command in COMMANDS:
        text = json.dumps(schema_of(command), indent=1, ensure_ascii=False)
        (folder / file_of(command)).write_text(f"{text}\n", encoding="utf-8")
