"""Execute the notebooks of the site: `python docs/notebooks.py`, after `pip install nbclient`."""

import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "notebooks"


def execute_notebook(path: Path) -> None:
    """Write what a notebook shows, run in an empty folder, into it."""
    import nbformat
    from nbclient import NotebookClient

    book: Any = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(book, timeout=None, record_timing=False, resources=place).execute()
    del book.metadata["language_info"]  # of the machine that ran it
    nbformat.write(book, path)


if __name__ == "__main__":
    for notebook in sorted(FOLDER.glob("*.ipynb")):
        execute_notebook(notebook)
        sys.stdout.write(f"Written to {notebook.relative_to(FOLDER.parent.parent)}\n")
