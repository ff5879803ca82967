"""What `--json` prints, command by command, as JSON Schema (draft 2020-12) in plain data.

The page of the documentation and the files beside it are made from this, and the tests hold what
commands print against it.
"""

from collections.abc import Mapping

from bayesrep.commands.schemas import (
    answers,
    bench,
    collect,
    drop,
    fits,
    models,
    own_data,
    papers,
    start,
)
from bayesrep.commands.schemas.shapes import Schema, text, thing

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_GROUPS = {"collect": collect, "answers": answers, "papers": papers, "models": models}
FORMS: Mapping[str, Mapping[str, Mapping[str, Schema]]] = {
    **start.FORMS,
    **own_data.FORMS,
    **drop.FORMS,
    **fits.FORMS,
    **bench.FORMS,
    "completion": {"": {"shell": text(), "script": text("to be run by the shell")}},
    **{
        f"{group} {step}": forms
        for group, stated in _GROUPS.items()
        for step, forms in stated.FORMS.items()
    },
}
"""What is in the object: by command (its whole name), then by when, where what is asked for
decides about the names. Every object has `format` too, which `schema_of` adds."""


def schema_of(command: str) -> Schema:
    """The schema of all that a command prints with `--json`, as a document of its own."""
    stated = {"format": {"type": "string", "const": f"bayesrep {command} 1"}}
    forms = [thing({**stated, **names}, said) for said, names in FORMS[command].items()]
    whole = forms[0] if len(forms) == 1 else {"anyOf": forms}
    return {"$schema": DRAFT, "title": f"bayesrep {command} --json", **whole}
