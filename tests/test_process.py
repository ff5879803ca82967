"""Interrupts of a real process: whatever runs when they arrive, it ends cleanly and at once."""

import signal
import subprocess
import sys
import time
import warnings

import pytest
import zoo
from refusals import check, refusal

import bayesrep
from bayesrep import cli, process
from bayesrep.errors import BayesrepError

BOTH = pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
BEGIN = """
import sys, time
from bayesrep import process
def begun(): print("begun", flush=True)
def command():
    {body}
process.run(command)
"""
WAIT = "begun(); time.sleep(60)"
STARTED: list[subprocess.Popen[str]] = []


def start(body: str) -> subprocess.Popen[str]:
    """A process that runs a command with this body, once it has begun."""
    child = subprocess.Popen(
        [sys.executable, "-c", BEGIN.format(body=body.replace("\n", "\n    "))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    STARTED.append(child)
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    return child


@pytest.fixture(autouse=True)
def nothing_is_left_running():
    """Where a test fails its process ends, and no later test is told of pipes left open."""
    yield
    while STARTED:
        with STARTED.pop() as child:
            child.kill()


TIDY = """try:
    {body}
except KeyboardInterrupt:
    print("tidy", flush=True)
    return 130"""
BODIES = {
    "waits": WAIT,
    "a library swallows it": """begun()
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass
    time.sleep(60)""",
    "what tidies up is not interrupted": """try:
        begun(); time.sleep(60)
    except KeyboardInterrupt:
        try:
            time.sleep(0.6)
            raise OSError("no room")
        except OSError:
            time.sleep(0.1)
        raise""",
}


def ends_tidily(child: subprocess.Popen[str], status: int) -> None:
    said, complaint = child.communicate(timeout=30)
    assert (child.returncode, said, complaint) == (status, "tidy\n", "")


@BOTH
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_signal_is_one_interrupt_that_comes_again_where_it_is_swallowed(number, status, body):
    child = start(TIDY.format(body=body))
    child.send_signal(number)
    ends_tidily(child, status)


@BOTH
def test_an_interrupt_that_a_callback_swallows_comes_again(number, status):
    """As JAX's callback of the garbage collector does while JAX is imported."""
    swallowing = f"""class Callback:
    def __del__(self):
        import os
        os.kill(os.getpid(), {int(number)})
        for _ in range(1000): pass
"""
    begin = "begun(); Callback(); time.sleep(60)"
    ends_tidily(start(swallowing + TIDY.format(body=begin)), status)


@BOTH
def test_an_import_is_not_interrupted_in_its_middle(number, status, tmp_path):
    """Some modules in C crash the process when an interrupt is raised inside them."""
    (tmp_path / "slow_module.py").write_text(
        "import time\nprint('begun', flush=True)\n"
        "try:\n    time.sleep(0.5)\nexcept BaseException:\n    print('broken', flush=True)\n"
    )
    child = start(
        f"""sys.path.insert(0, {str(tmp_path)!r})
try:
    import slow_module
    print("imported", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    return 130"""
    )
    child.send_signal(number)
    said, complaint = child.communicate(timeout=30)
    assert child.returncode == status
    assert "broken" not in said


PARTIAL = """from bayesrep import atomic
from pathlib import Path
def describe():
    atomic.remove_partials()
    return "interrupted; nothing was written"
process.on_interrupt(describe)
with atomic.replaced_file(Path({target!r})) as partial, partial.open("w") as file:
    {body}"""
SLOW = {
    "a library in C": "import hashlib; begun(); hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)",
    "a thread that is waited for": """import hashlib
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor() as pool:
        pool.submit(hashlib.pbkdf2_hmac, 'sha256', b'', b'', 10**9)
        begun()""",
    "what tidies up": """try:
        begun(); time.sleep(60)
    except KeyboardInterrupt:
        time.sleep(60)""",
}


@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.parametrize("body", SLOW.values(), ids=SLOW)
def test_whatever_is_slow_to_end_is_ended_and_leaves_no_part(body, signals, tmp_path):
    child = start(PARTIAL.format(target=str(tmp_path / "target"), body=body))
    assert len(list(tmp_path.iterdir())) == 1
    for _ in range(signals):
        child.send_signal(signal.SIGINT)
        time.sleep(0.1)
    _, complaint = child.communicate(timeout=50)  # of a minute at least that it would take
    assert (child.returncode, list(tmp_path.iterdir())) == (130, [])
    assert complaint == "\nbayesrep: interrupted; nothing was written\n"


def test_what_runs_in_other_threads_does_not_keep_the_process():
    """XLA computes on in its own threads; the interpreter's end would wait for these or crash."""
    threads = "import threading\nthreading.Thread(target=time.sleep, args=(60,)).start()\n"
    child = start(threads + TIDY.format(body=WAIT))
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=50)
    assert child.returncode == 130
    assert time.monotonic() - begun < 50  # less than the thread's minute


@pytest.mark.parametrize("status", [0, 1, 2])
def test_without_a_signal_the_status_is_the_commands(status):
    child = start(f"begun(); return {status}")
    child.communicate(timeout=30)
    assert child.returncode == status


@pytest.fixture(scope="module")
def study_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("process") / "study"
    zoo.study("tiny").write(path)
    return path


@pytest.mark.compiles
@pytest.mark.parametrize(
    "command",
    [
        ("estimate", "--bootstrap", "3000", "--methods", "em-spline"),
        ("estimate", "--table", "components"),
    ],
    ids=["estimate", "components"],
)
def test_programs_that_run_when_the_interrupt_comes_crash_nothing(study_path, command):
    """These two ended in a segmentation fault: XLA was still computing when Python ended."""
    name, *options = command
    arguments = [sys.executable, "-m", "bayesrep", *name.split(), study_path, *options]
    with subprocess.Popen(
        list(map(str, arguments)), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stderr is not None
        seen = b""
        while b"%" not in seen:  # its bar shows once it begins to compute
            seen += (piece := child.stderr.read1(4096))
            if not piece:
                break
        child.send_signal(signal.SIGINT)
        said, rest = child.communicate(timeout=60)
    complaint = (seen + rest).decode()
    if child.returncode == 0:  # a fast machine was done before
        return
    assert (child.returncode, said) == (130, b"")
    assert complaint.endswith("bayesrep: interrupted; nothing was written\n")
    assert "Traceback" not in complaint


def test_warnings_are_shown_as_before_once_a_command_is_done(capsys):
    before = warnings.showwarning, list(warnings.filters)
    assert cli.main(["figure", "--list"]) == 0
    assert (warnings.showwarning, list(warnings.filters)) == before


@pytest.mark.parametrize("kind", [ValueError, MemoryError])
def test_a_mistake_of_ours_is_not_the_users_and_too_little_memory_is(
    monkeypatch, study_path, capsys, kind
):
    """A ValueError of NumPy or JAX says nothing to a user, and hid where it came from."""

    def broken(_):
        raise kind("operands could not be broadcast together")

    monkeypatch.setattr("bayesrep.read_study", broken)
    if kind is MemoryError:
        assert cli.main(["estimate", str(study_path)]) == 1
        said = capsys.readouterr().err
        assert said.startswith("bayesrep: not enough memory for this: operands")
        return
    with pytest.raises(ValueError, match="broadcast"):
        cli.main(["estimate", str(study_path)])
    assert capsys.readouterr().err == ""


def test_all_errors_of_ours_have_one_base():
    for cause in ("Option", "Study", "Posterior", "Prediction"):
        kind = getattr(bayesrep, f"{cause}Error")
        assert kind.__bases__ == (BayesrepError, ValueError)  # one cause, one kind
    assert issubclass(bayesrep.ConvergenceError, BayesrepError)


def too_large(option, value, largest):
    return "option-above-limit", {"option": option, "value": value, "largest": largest}


@pytest.mark.parametrize(
    ("arguments", "broken"),
    [
        ("estimate STUDY --bootstrap 1000000000", too_large("bootstrap", 10**9, 100_000)),
        (
            "estimate STUDY --methods em-spline(components=1000000)",
            too_large("em-spline: components", 10**6, 64),
        ),
        ("simulate OUT --images 99999999999", too_large("images", 10**11 - 1, 15_790_320)),
        ("simulate OUT --annotators 99999999999", too_large("annotators", 10**11 - 1, 100_000)),
        ("fit STUDY --out OUT --set degree=1000000000", too_large("degree", 10**9, 400)),
        (
            "fit STUDY --out OUT --set slope=1e400,1",
            ("prior-not-mean-and-sd", {"option": "slope", "value": "(inf, 1)"}),
        ),
        (
            "fit STUDY --out OUT --set bend=" + "9" * 400,
            ("standard-deviation-not-positive", {"option": "bend", "value": 10**400 - 1}),
        ),
        ("fit STUDY --out OUT --set draws=99999999999", too_large("draws", 10**11 - 1, 10**6)),
        ("fit STUDY --out OUT --chains 99999999999", too_large("chains", 10**11 - 1, 4_096)),
    ],
)
def test_sizes_that_no_machine_has_are_refused_by_name(arguments, broken, study_path, tmp_path):
    places = {"STUDY": study_path, "OUT": tmp_path / "out"}
    check(refusal([places.get(part, part) for part in arguments.split()]), *broken)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seed", ["-1", "1.5", "9223372036854775808", "many"])
def test_seeds_are_whole_numbers_that_every_generator_takes(seed, study_path, capsys):
    assert cli.main(["estimate", str(study_path), "--seed", seed]) == 2
    assert "--seed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("called", "typed"),
    [
        ("HERE/bin/bayesrep", "bin/bayesrep"),
        ("ON_PATH/bayesrep", "bayesrep"),
        ("/elsewhere/bin/bayesrep", "/elsewhere/bin/bayesrep"),
        ("HERE/a b/bayesrep", "'a b/bayesrep'"),
        ("/site-packages/bayesrep/__main__.py", f"{sys.executable} -m bayesrep"),
        ("/some/program.py", "bayesrep"),
    ],
)
def test_what_to_type_next_is_found(called, typed, tmp_path, monkeypatch):
    """After `make demo` nothing called bayesrep is on the path."""
    here, on_path = tmp_path / "here", tmp_path / "on path"
    on_path.mkdir()
    here.mkdir()
    (on_path / "bayesrep").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(on_path))
    monkeypatch.chdir(here)
    path = called.replace("HERE", str(here)).replace("ON_PATH", str(on_path))
    monkeypatch.setattr(sys, "argv", [path])
    assert process.program() == typed
