"""Settings of every test: CPU, no silent broadcasting over ranks, the same examples each time."""

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.metadata import version
from importlib.util import spec_from_loader
from pathlib import Path

import kept

# Before anything imports JAX; the environment also reaches the processes that tests start.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["MPLBACKEND"] = "Agg"
# As many processes run as there are cores: more threads of one only wait for each other.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[threads] = "1"
# Programs are compiled without optimization, and in jaxlib 0.10, the last for Python 3.11, without
# its slow new way to write kernels: of one fit's 30 s of work 12 are left, and it runs for 0.9 s
# instead of 0.7. Demo, benchmarks and experiments run what users run.
flags = ["--xla_backend_optimization_level=0"]
if version("jaxlib").startswith("0.10."):
    flags.append("--xla_cpu_use_fusion_emitters=false")  # later ones do not know the flag
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *flags]).strip()
# Most of the suite's time is compilation: programs are kept in the checkout for later runs, and for
# the other processes of this one.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    programs = kept.mark_used(kept.programs_folder(os.environ["XLA_FLAGS"]))
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(programs)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
# XLA's own caches, of GPUs alone, would lie in that folder, and its path in every program's key: in
# another checkout no program that was copied there would be found.
os.environ["JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES"] = "none"
# Ray's workers give way to whatever else runs: beside other tests they took five times as long.
os.environ["RAY_worker_niceness"] = "0"
# What bayesrep itself keeps between commands goes neither there nor among the user's files.
if MADE_HERE := "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="bayesrep-tests-")

# While tests are collected there is no garbage to speak of, and a million objects to look through.
gc.disable()

import re

import pytest
from hypothesis import settings

# What may be skipped, and why; with --no-unlisted-skips any other skip fails the run.
MAY_SKIP = {
    r"no published files?|are not beside the project|is not beside the project"
    r"|values of the published implementation are missing": "published data are not ours to ship",
    r"in the extra 'bench'": "competitors of the benchmarks, 1 GB of them",
    r"needs a compiler: ": "asked for with --no-compilation",
    r"Label Studio is not installed": "a gigabyte of its own; its exports are kept",
    r"Linux alone limits memory": "elsewhere nothing is promised of it (SECURITY.md)",
    r"the file system takes UTF-8 only": "no such name can be made there",
}

# Files that fit studies of one shape. One process runs them one after the other, so that it alone
# compiles their programs. The longest come first, and then single long files, so that no process
# waits for another at the end.
TOGETHER = (
    ("test_fit", "test_checkpoint", "test_cli", "test_one_classifier"),
    ("test_same_study", "test_dependence"),
    ("test_worker_model",),
    ("test_kept",),
    (
        "test_report",
        "test_report_browser",
        "test_notebook",
        "test_figures",
        "test_run",
        "test_docs",
        "test_examples",
    ),
    ("test_collect_howto",),
    ("test_vision", "test_vision_resume", "test_vision_compile", "test_vision_cluster"),
    ("test_estimators",),
)

STATISTICS = Path(__file__).resolve().parent / "statistics"

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


@pytest.fixture(scope="module", autouse=True)
def programs_end_with_their_module():
    """Each compiled program maps memory; those of the whole suite exceed what Linux allows.

    Linux allows 65,530. 15,000 are two gigabytes or so, and the next module may use them.
    """
    yield
    if "jax" in sys.modules and memory_maps() > 15_000:
        sys.modules["jax"].clear_caches()


@pytest.fixture(scope="session", autouse=True)
def meanings():
    """Every name that a test has a command print as JSON is on the page that says what it means.

    Where the test asks for text, too: the command has gathered the same facts.
    """
    from json_names import without_meaning

    from bayesrep.commands import output

    shown = output._output_text

    def checked(arguments, text, facts):
        printed = json.loads(output.as_json(arguments.command, facts))
        lacking = sorted({*without_meaning(printed)})
        assert lacking == [], f"bayesrep {arguments.command}: not in docs/reference/json.md"
        return shown(arguments, text, facts)

    output._output_text = checked


@pytest.fixture
def unannotated():
    """Arguments that annotations forbid reach the function, as where nothing checks them."""
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def kept_fits(monkeypatch):
    """Commands and pages of which fitting is not the point are given posteriors that are kept."""
    import inspect

    import zoo

    import bayesrep

    zoo.fit.__signature__ = inspect.signature(bayesrep.fit)  # of which commands ask
    monkeypatch.setattr(bayesrep, "fit", zoo.fit)


@pytest.fixture
def own_models():
    """What a page registers is gone afterwards."""
    from bayesrep.models import MODELS

    before = set(MODELS)
    yield MODELS
    for name in set(MODELS) - before:
        del MODELS[name]


@pytest.fixture(scope="session")
def as_shipped():
    """Compiler options of a user's process, for tests of what the compiler makes of a density."""
    plain = {"xla_backend_optimization_level": 3}
    old = version("jaxlib").startswith("0.10.")
    return plain | ({"xla_cpu_use_fusion_emitters": True} if old else {})


@pytest.fixture
def float64():
    """Double precision in JAX for a whole test, as bayesrep has it inside its own functions."""
    import jax

    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def arviz_smooths():
    """ArviZ's smoothed log weights, and k, of log ratios; 1.x has our tail where 3 √S is whole."""
    from bayesrep.posterior.files import arviz

    if hasattr(arviz(), "psislw"):
        return arviz().psislw
    from arviz_stats.base import array_stats

    return lambda log_ratios: array_stats.psislw(-log_ratios)


def memory_maps():
    """How many this process has; elsewhere than on Linux, too many."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            return sum(1 for _ in maps)
    except OSError:
        return sys.maxsize


def pytest_ignore_collect(collection_path, config):
    """The tests of the second tier run where they are asked for: make statistics."""
    if collection_path == STATISTICS and not any("statistics" in arg for arg in config.args):
        return True
    return None


def pytest_addoption(parser):
    parser.addoption(
        "--no-unlisted-skips",
        action="store_true",
        help="fail where a test is skipped for a reason that tests/conftest.py does not list",
    )
    parser.addoption(
        "--no-compilation",
        action="store_true",
        help="run every test as far as it imports neither JAX nor torch, and skip it there",
    )


class NoCompilers(Loader):
    """Whoever imports a compiler of arrays skips the test that did: make check takes a minute."""

    def find_spec(self, name, path=None, target=None):
        return spec_from_loader(name, self) if name in {"jax", "jaxlib", "torch"} else None

    def exec_module(self, module):
        pytest.skip(f"needs a compiler: {module.__name__}", allow_module_level=True)


@contextmanager
def uncaught(**_):
    yield []


def check_quietly():
    """Functions are checked from the threads that compile, too, and no warning is lost for it.

    beartype catches warnings while it reads a function's annotations, those of an inner function
    whenever the outer one is called. Where two threads do so at once, the state of warnings that
    one of them restores is the other's, and all that comes after is caught by nobody.
    """
    import beartype

    def some(number: int) -> int:
        return number

    beartype.beartype(some)  # imports what reads annotations
    for name, module in list(sys.modules.items()):
        if name.startswith(("beartype._decor", "beartype._check")) and hasattr(
            module, "catch_warnings"
        ):
            module.catch_warnings = uncaught


def pytest_configure(config):
    # A shell that starts this in the background has it ignore interrupts, and so would the children
    # that tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if MADE_HERE:
        kept.forget_old()
    check_quietly()
    if config.getoption("--no-compilation"):
        sys.meta_path.insert(0, NoCompilers())


GROUPS = {name: group[0] for group in TOGETHER for name in group}


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, whose own loadgroup pytest 9.2 has unsettled
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = os.path.basename(nodeid.split("::")[0]).removesuffix(".py")
            return GROUPS.get(file, file)

    return ByGroup(config, log)


def pytest_collection_finish():
    gc.freeze()  # what is imported stays, and is not looked through again
    gc.set_threshold(10_000, 10, 100)
    gc.enable()


def pytest_collection_modifyitems(config, items):
    order = {name: place for place, name in enumerate(GROUPS)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))
    if config.getoption("--no-compilation"):
        left_out = [item for item in items if item.get_closest_marker("compiles")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


SKIPPED = []  # (where, reason) of this run


def pytest_runtest_logreport(report):
    note_skip(report)


def pytest_collectreport(report):
    note_skip(report)


def note_skip(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        *_, reason = report.longrepr if isinstance(report.longrepr, tuple) else (report.longrepr,)
        SKIPPED.append((report.nodeid, str(reason)))


def unlisted_skips():
    return [(where, why) for where, why in SKIPPED if not any(re.search(p, why) for p in MAY_SKIP)]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    asked = session.config.getoption("--no-unlisted-skips")
    if asked and not hasattr(session.config, "workerinput") and unlisted_skips():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("--no-unlisted-skips"):
        for where, why in unlisted_skips():
            terminalreporter.write_line(f"SKIPPED for no listed reason: {where}: {why}", red=True)


def pytest_unconfigure():
    """Once, when the last test is done, forget what this run's commands kept."""
    if MADE_HERE:
        shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)
