"""The package as a whole: what importing it does, what it exports, how its rooms depend."""

import ast
import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import bayesrep

ROOT = Path(bayesrep.__file__).parents[1]
SOURCES = sorted((ROOT / "bayesrep").rglob("*.py"))

QUICK = ("--no-compilation", "--jaxtyping-packages=")  # checked shapes import JAX
HEAVY = {"arviz", "jax", "matplotlib", "numpyro", "pandas", "polars", "scipy", "torch", "xarray"}

IMPORT_EVERYTHING = """
import importlib, json, os, pkgutil, sys
import arviz, jax, matplotlib, numpyro, optax, polars, scipy  # what they change is theirs

def state():
    return {"config": {k: repr(v) for k, v in jax.config.values.items()}, "env": dict(os.environ)}

before = state()
import bayesrep
extras = {"torch", "torchvision", "timm", "ray", "pymc", "nutpie", "cvxpy"}
names = [m.name for m in pkgutil.walk_packages(bayesrep.__path__, "bayesrep.")]
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in extras:
            raise
after = state()
changed = sorted(
    f"{part}.{key}"
    for part in before
    for key in {*before[part], *after[part]}
    if before[part].get(key) != after[part].get(key)
)
json.dump({"modules": names, "changed": changed}, sys.stdout)
"""


def run_python(code: str) -> str:
    """Standard output of `code` in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


def test_import_is_light():
    loaded = run_python("import bayesrep, json, sys; print(json.dumps(sorted(sys.modules)))")
    assert HEAVY.isdisjoint(json.loads(loaded))


@pytest.mark.parametrize("name", bayesrep.__all__)
def test_public_name_resolves(name: str):
    assert getattr(bayesrep, name) is not None
    assert name in dir(bayesrep)


def test_public_names_are_those_the_type_checker_sees():
    tree = ast.parse(Path(bayesrep.__file__).read_text())
    seen = {
        (alias.name, node.module)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == set(bayesrep._DEFINED_IN.items())
    assert {name for name, _ in seen} | {"__version__"} == set(bayesrep.__all__)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = bayesrep.nonsense


def test_version_is_the_installed_one():
    assert bayesrep.__version__ == version("bayesrep")


@pytest.mark.compiles
def test_importing_every_module_changes_no_global_setting():
    report = json.loads(run_python(IMPORT_EVERYTHING))
    assert "bayesrep.studies.study" in report["modules"]
    assert report["changed"] == []


def test_rooms_import_downwards_only():
    result = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_is_portable_and_silent(path: Path):
    text = path.read_text()
    assert not re.search(r"(?<![\w.])/(work|tmp|root|home)/", text), "names a place on one machine"
    if path.parts[-2:] != ("commands", "output.py"):
        calls = [n.func for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
        assert "print" not in {getattr(call, "id", None) for call in calls}


def test_what_needs_a_compiler_is_left_out_where_that_is_asked():
    """Of two files the one that imports JAX, of the other the one test whose process does."""
    files = ["tests/test_splines.py", "tests/test_package.py"]
    names = "test_splines or test_unknown_name or every_module"
    command = [sys.executable, "-m", "pytest", "-q", *QUICK, *files, "-k", names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^1 passed, 1 skipped, \d+ deselected", done.stdout, flags=re.M), done.stdout
    assert "needs a compiler: jax" in done.stdout


def test_module_runs_as_a_command():
    result = subprocess.run(
        [sys.executable, "-m", "bayesrep", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert "usage: bayesrep" in result.stdout
