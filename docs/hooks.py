"""What MkDocs does to the pages beside rendering them; mkdocs.yml names this file."""

import contextlib
import html
import io
import logging
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any
from unittest import mock

from bayesrep import errors
from bayesrep.cli import main

DOCS = Path(__file__).resolve().parent
sys.path.append(str(DOCS))  # for the files beside this one

import execute  # noqa: E402
import live  # noqa: E402

_HELP = re.compile(r"<!-- help:? ?([a-z0-9. ]*?) -->")
_NAME = re.compile(r'(?<!">)<code>(bayesrep\.[\w.]+)</code>')  # not in a link already
# Where a docstring names several parameters at once, mkdocstrings gives all of them the default of
# the first. The signature above them has every default right.
_DEFAULT = re.compile(r",\s+default:\s+<code>.*?</code>\s*\)", flags=re.DOTALL)
_WIDTH = "88"
_FOUND_LAST = 0.5
"""How much a page of results counts in the search, where a guide counts 1."""


def help_text(command: str) -> str:
    """What `bayesrep COMMAND --help` prints; of the program itself where the command is ""."""
    printed = io.StringIO()
    with mock.patch.dict(os.environ, COLUMNS=_WIDTH), contextlib.redirect_stdout(printed):
        status = main([*command.split(), "--help"])
    if status:
        raise ValueError(f"bayesrep has no command {command!r}")
    return printed.getvalue().rstrip()


def changelog() -> str:
    """The changelog, whose links lead from the root of the repository."""
    text = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n")[2]
    inside = re.sub(r"\]\(docs/", "](", re.sub(r"^## \[([^]]*)\]", r"## \1", text, flags=re.M))
    return re.sub(r"\[([^]]*)\]\((?!http)[A-Z]\w*\.md\)", r"\1", inside)


def rules_of_refusals() -> str:
    """Every rule with its sentence, in which the names of facts are set apart."""
    table = tomllib.loads(Path(errors.__file__).with_name("rules.toml").read_text("utf-8"))
    parts: list[str] = []
    for room, rules in table.items():
        parts.append(f"### {room}\n\n| rule | sentence |\n|---|---|")
        for rule, sentence in rules.items():
            said = html.escape(sentence, quote=False).replace("|", "&#124;").replace("`", "&#96;")
            said = re.sub(r"[*_\[\]\\]", lambda found: f"&#{ord(found[0])};", said)
            facts = re.sub(r"(?<!{){([a-z_0-9&#;]+)[^}]*}", r"<em>\1</em>", said)
            parts[-1] += f"\n| `{rule}` | {facts.replace('{{', '{').replace('}}', '}')} |"
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put help, the changelog, the rules of refusals and the gallery where they belong."""
    place = page.file.src_uri
    if place.startswith("results/"):
        page.meta.setdefault("search", {"boost": _FOUND_LAST})
    made = {"changelog": changelog, "rules": rules_of_refusals, "gallery": live.gallery}
    for name, make in made.items():
        if f"<!-- {name} -->" in markdown:
            markdown = markdown.replace(f"<!-- {name} -->", make())
    return _HELP.sub(lambda found: f"```text\n{help_text(found[1])}\n```", markdown)


def on_page_content(html: str, **_: Any) -> str:  # MkDocs names it
    """Turn the package's names into links, where there is such an entry."""
    link = r'<autoref identifier="\1" optional><code>\1</code></autoref>'
    return _DEFAULT.sub(")", _NAME.sub(link, html))


def on_post_build(config: Any, **_: Any) -> None:
    """Write what is no page: the tutorial as a notebook, the live report and pictures."""
    site = Path(config.site_dir)
    execute.write_notebook(site / "tutorial-python.ipynb")
    if live.wanted():
        logging.getLogger("mkdocs").info("Fitting the study of the live report and the gallery")
        live.write(site)
