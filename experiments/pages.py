"""The code of the documentation's pages, for experiments that are about it."""

import runpy
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"


def run_page(page: str, section: str = "", only: str = "") -> dict[str, Any]:
    """Run the Python of a page or of one section, in order; the names that it leaves.

    ``only`` is what a block has to hold to be run.
    """
    execute = runpy.run_path(str(DOCS / "execute.py"))
    text = (DOCS / page).read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for code in execute["blocks"](execute["section"](text, section) if section else text):
        if only in code:
            execute["run"](code, names)
    return names
