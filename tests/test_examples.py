"""The notebooks of the documentation: executed as a reader gets them, and their code runs."""

import ast
import doctest
import inspect
import json
import re
import runpy
from pathlib import Path

import polars as pl
import pytest
from fits import TUTORIALS

import bayesrep

DOCS = Path(__file__).resolve().parents[1] / "docs"
execute = runpy.run_path(str(DOCS / "execute.py"))
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
UNWANTED = r'(?<![<\w.:/])/(home|root|tmp|usr|work)/|"stderr"|"output_type": "error"'
"""Paths of the machine that ran them, warnings and errors."""


def read_codes(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_notebooks_have_what_their_code_shows():
    assert [path.stem for path in NOTEBOOKS] == ["first-steps", "own-data", "own-model"]
    for path in NOTEBOOKS:
        assert not re.search(UNWANTED, path.read_text(encoding="utf-8")), path
        for number, cell in enumerate(read_codes(path), start=1):
            assert cell["execution_count"] == number, (path, number)
            last = ast.parse("".join(cell["source"])).body[-1]
            shows = isinstance(last, ast.Expr) and not ast.unparse(last).startswith("print(")
            results = [out for out in cell["outputs"] if out["output_type"] == "execute_result"]
            assert len(results) == shows, (path, number)


@pytest.mark.filterwarnings("ignore:em-spline:bayesrep.errors.EstimateWarning")  # few annotators
@pytest.mark.usefixtures("kept_fits", "own_models")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_of_notebooks_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    codes = ["".join(cell["source"]) for cell in read_codes(path)]
    assert TUTORIALS[0] in codes[0]
    names = {}
    shown = [execute["run"](code.replace(*TUTORIALS), names) for code in codes]
    printed = "".join(text for text, _ in shown)
    tables = [value for _, value in shown if isinstance(value, pl.DataFrame)]
    assert {
        "first-steps": "intervals hold the truth" in printed,
        "own-data": len(tables) == 6 and shown[-1][1] is True,
        "own-model": "points apart at most" in printed,
    }[path.stem]


FUNCTIONS = {
    name: inspect.getdoc(getattr(bayesrep, name)) or ""
    for name in bayesrep.__all__
    if inspect.isfunction(getattr(bayesrep, name))
}


@pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")  # few images
@pytest.mark.filterwarnings("ignore::bayesrep.errors.InterpolationWarning")
@pytest.mark.usefixtures("kept_fits")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"bayesrep": bayesrep}
    example = doctest.DocTestParser().get_doctest(FUNCTIONS[name], names, name, name, 0)
    assert example.examples, "the page of a function ends with an example"
    failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example)
    assert not failed
