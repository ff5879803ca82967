"""Other people's surroundings: every command says the same numbers there, or one line."""

import json
import os
import re
import subprocess
import sys

import pytest
from small_networks import fill_folder

from bayesrep.cli import main

PROGRAM = """
import contextlib, io, json, subprocess, sys, traceback
{before}
from bayesrep.cli import main

def run(*words):
    said, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
        try:
            status = main(words)
        except BaseException:
            status = traceback.format_exc()
    return status, said.getvalue(), told.getvalue()

def run_apart(*words):  # matplotlib's settings are those of a process
    command = [sys.executable, "-m", "bayesrep", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr

out = sys.argv[1]
fit = run("fit", "study", "--method", "laplace", "--out", out + "/fit.nc", "--quiet")
results = {{
    "check": run("check", "study"),
    "estimate": run("estimate", "study", "--methods", "naive,em-spline", "--json"),
    "fit": run("summarize", "study", out + "/fit.nc", "--json") if fit[0] == 0 else fit,
    "figure": run_apart("figure", "robustness", "study", "--out", out + "/figure.png"),
    "predict": run("predict", "--images", "v1=images", "--study", out + "/made",
                   "--weights", "weights", "--classifiers", "test_resnet", "--device", "cpu",
                   "--quiet", "--json"),
}}
with open(out + "/results.json", "w") as file:
    json.dump(results, file)
"""
WARNING = re.compile(r"bayesrep: \w+Warning: |Bad value in file")  # and matplotlib's of its own
JAX = "import jax; jax.config.update"
TORCH = "import torch; torch.set_default"
CHANGES = {
    "JAX_PLATFORMS": ["cuda", "cpu", "tpu,cpu"],
    "JAX_DEBUG_NANS": ["1"],
    "JAX_DEBUG_INFS": ["1"],
    "JAX_NUMPY_DTYPE_PROMOTION": ["strict"],
    "JAX_NUMPY_RANK_PROMOTION": ["raise"],
    "JAX_PLATFORM_NAME": ["gpu"],
    "JAX_ENABLE_X64": ["1", "0", "wat"],
    "JAX_DISABLE_JIT": ["1"],
    "JAX_THREEFRY_PARTITIONABLE": ["0"],
    "JAX_CHECK_TRACER_LEAKS": ["1"],
    "JAX_DEFAULT_MATMUL_PRECISION": ["bfloat16"],
    "JAX_LOG_COMPILES": ["1"],
    "JAX_COMPILATION_CACHE_DIR": ["/nowhere/cache"],
    "MPLBACKEND": ["module://matplotlib_inline.backend_inline", "nonsense"],
    "MATPLOTLIBRC": ["."],  # of a folder with oddities
    "HOME": ["/nowhere"],
    "TMPDIR": ["/nowhere", "/proc"],
    "OMP_NUM_THREADS": ["nonsense", "1"],
    "POLARS_MAX_THREADS": ["1", "0"],
    "POLARS_FMT_MAX_ROWS": ["1"],
    "PYTHONOPTIMIZE": ["2"],
    "PYTHONHASHSEED": ["7"],
    "PYTHONWARNINGS": ["error"],
    "PYTHONUTF8": ["0"],
    "LANG": ["C", "tr_TR.UTF-8"],
    "TZ": ["Asia/Kathmandu"],
    "COLUMNS": ["1"],
    "BEFORE": [
        f"{JAX}('jax_debug_nans', True)",
        f"{JAX}('jax_numpy_dtype_promotion', 'strict')",
        f"{JAX}('jax_default_prng_impl', 'rbg')",
        f"{TORCH}_device('meta')",
        f"{TORCH}_dtype(torch.float64)",
        "import numpy; numpy.seterr(all='raise')",
        "import polars; polars.Config.set_tbl_rows(1)",
    ],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("surroundings")
    words = "--images 60 --annotators 5 --classifiers 4 --seed 1".split()
    assert main(["simulate", *words, str(root / "study")]) == 0
    fill_folder(root, ["test_resnet"], images=6)
    (root / "matplotlibrc").write_text("text.usetex: True\naxes.prop_cycle: nonsense\n")
    return root


def results_of(place, out, name="", value=""):
    out.mkdir()
    script = out / "commands.py"
    script.write_text(PROGRAM.format(before=value if name == "BEFORE" else ""))
    plain = {n: v for n, v in os.environ.items() if not n.startswith(("JAX_", "XLA_", "MPL"))}
    changed = {**plain, **({name: value} if name and name != "BEFORE" else {})}
    done = subprocess.run(
        [sys.executable, script, out], cwd=place, env=changed, capture_output=True, text=True
    )
    assert (out / "results.json").exists(), done.stderr
    return json.loads((out / "results.json").read_text())


@pytest.fixture(scope="module")
def wanted(place, tmp_path_factory):
    found = results_of(place, tmp_path_factory.mktemp("plain") / "out")
    assert all(status == 0 for status, _, _ in found.values()), found
    return found


def numbers(text):
    """All numbers of what was printed, but for times."""
    if not text.startswith("{"):
        return [float(each) for each in re.findall(r"-?\d+(?:\.\d+)?", text) if "/" not in text]
    found = []

    def take(name, value):
        if re.search("second|passes|stages", name):
            return
        if isinstance(value, dict):
            for key, each in sorted(value.items()):
                take(key, each)
        elif isinstance(value, list):
            for each in value:
                take(name, each)
        elif isinstance(value, int | float):
            found.append(value)

    take("", json.loads(text))
    return found


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in CHANGES.items() for v in vs])
def test_commands_say_the_same_or_one_line(place, wanted, tmp_path, name, value):
    found = results_of(place, tmp_path / "out", name, value)
    for command, (status, said, told) in found.items():
        assert status in (0, 1, 2), f"{command}: {status}"
        if status:
            refusals = [line for line in told.splitlines() if not WARNING.match(line)]
            assert len(refusals) == 1, f"{command}: {told}"
            assert refusals[0].startswith("bayesrep: ")
            assert len(refusals[0]) < 500
        else:
            same = pytest.approx(numbers(wanted[command][1]), rel=1e-6, nan_ok=True)
            assert numbers(said) == same, command
