"""What MkDocs does to the pages beside rendering them; mkdocs.yml names this file."""

import contextlib
import io
import os
import re
from typing import Any
from unittest import mock

from bayesrep.cli import main

_HELP = re.compile(r"<!-- help:? ?([a-z ]*?) -->")
_NAME = re.compile(r'(?<!">)<code>(bayesrep\.[\w.]+)</code>')  # not in a link already
# Where a docstring names several parameters at once, mkdocstrings gives all of them the default of
# the first. The signature above them has every default right.
_DEFAULT = re.compile(r",\s+default:\s+<code>.*?</code>\s*\)", flags=re.DOTALL)
_WIDTH = "88"


def help_text(command: str) -> str:
    """What `bayesrep COMMAND --help` prints; of the program itself where the command is ""."""
    printed = io.StringIO()
    with mock.patch.dict(os.environ, COLUMNS=_WIDTH), contextlib.redirect_stdout(printed):
        status = main([*command.split(), "--help"])
    if status:
        raise ValueError(f"bayesrep has no command {command!r}")
    return printed.getvalue().rstrip()


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the help of a command where its comment is."""
    return _HELP.sub(lambda found: f"```text\n{help_text(found[1])}\n```", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Turn the package's names into links, where there is such an entry."""
    link = r'<autoref identifier="\1" optional><code>\1</code></autoref>'
    return _DEFAULT.sub(")", _NAME.sub(link, html))
