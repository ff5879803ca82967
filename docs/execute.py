"""Run the tutorial in Python and write what it prints: `python docs/execute.py`.

`blocks` is what the tests run, and `notebook` what the site offers for download.
"""

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "tutorial-python.md"
PICTURES = DOCS / "images" / "tutorial"
_CODE = re.compile(r"^```python\n(.*?)^```\n", flags=re.M | re.S)
_SHOWN = re.compile(r"\n<!-- shown -->.*?<!-- /shown -->\n", flags=re.S)


def blocks(text: str) -> list[str]:
    """The code of a page, block by block."""
    return _CODE.findall(text)


def section(text: str, title: str) -> str:
    """What a page has under a heading of the second level."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def run(code: str, names: dict[str, Any]) -> tuple[str, Any]:
    """What a block prints, and the value of its last line, as at a prompt."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "page", "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "page", "eval"), names)
    return printed.getvalue(), value


def shown(printed: str, value: Any, picture: Callable[[str], Path]) -> str:
    """What stands under a block on the page."""
    if hasattr(value, "spec"):  # a plot
        file = value.save(picture(value.name), force=True)
        inner = f"![{value.name}]({file.relative_to(DOCS).as_posix()})"
    elif text := printed + ("" if value is None or isinstance(value, Path) else repr(value)):
        inner = f"```text\n{text.rstrip()}\n```"
    else:
        return ""
    return f"\n<!-- shown -->\n\n{inner}\n\n<!-- /shown -->\n"


def executed(text: str, names: dict[str, Any]) -> str:
    """The page with what its code shows, run in an empty folder."""
    import polars as pl

    PICTURES.mkdir(parents=True, exist_ok=True)

    def one(found: re.Match[str]) -> str:
        said = shown(*run(found[1], names), lambda name: PICTURES / f"{name}.png")
        return found[0] + said

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with pl.Config(tbl_cols=-1, fmt_str_lengths=40, tbl_width_chars=100):
            return _CODE.sub(one, _SHOWN.sub("", text))


def notebook(text: str) -> dict[str, Any]:
    """The page as a Jupyter notebook, without what it shows."""
    cells: list[dict[str, Any]] = []
    parts = _CODE.split(_SHOWN.sub("", text))
    for number, part in enumerate(parts):
        source = part.strip("\n").splitlines(keepends=True)
        if not source:
            continue
        cell: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": source}
        if number % 2:
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
        else:
            cell |= {"cell_type": "markdown"}
        cells.append(cell)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def write_notebook(target: Path) -> None:
    """Write the tutorial as a notebook."""
    text = json.dumps(notebook(PAGE.read_text(encoding="utf-8")), indent=1)
    target.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    PAGE.write_text(executed(PAGE.read_text(encoding="utf-8"), {}), encoding="utf-8")
    sys.stdout.write(f"Written to {PAGE.relative_to(DOCS.parent)}\n")
