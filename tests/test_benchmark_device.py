"""What is told of a device: facts of the machine, counted kernels, what is wrong, what fails."""

import json
import os
import stat
from types import SimpleNamespace

import numpy as np
import pytest
import zoo

from benchmarks.device import __main__ as command
from benchmarks.device import agreement, cases, measure, suite, timing
from benchmarks.device.cases import GAMMALN, OURS, Case, Subjects
from benchmarks.device.forms import compare_forms
from benchmarks.device.hlo import Launches, Loop, launches, read_loops
from benchmarks.device.output import advice, bench_text
from benchmarks.device.roofline import bound_us
from experiments import machine

HLO = """HloModule jit_step, is_scheduled=true

%body (p: (s64[], f64[8])) -> (s64[], f64[8]) {
  %p = (s64[], f64[8]{0}) parameter(0)
  %x = f64[8]{0} get-tuple-element(%p), index=1
  %sine = f64[8]{0} fusion(%x), kind=kLoop, calls=%fused_sine
  %sum = f64[] custom-call(%sine), custom_call_target="sum"
  ROOT %out = (s64[], f64[8]{0}) tuple(%i, %sine)
}

%until (p: (s64[], f64[8])) -> pred[] {
  %p.1 = (s64[], f64[8]{0}) parameter(0)
  ROOT %less = pred[] fusion(%p.1), kind=kLoop, calls=%fused_less
}

%graph (q: f64[8]) -> f64[8] {
  %q = f64[8]{0} parameter(0)
  %copy = f64[8]{0} copy(%q)
  ROOT %twice = f64[8]{0} fusion(%copy), kind=kLoop, calls=%fused_twice
}

ENTRY %main (a: f64[8]) -> f64[8] {
  %a = f64[8]{0} parameter(0)
  %zero = s64[] constant(0)
  %called = f64[8]{0} call(%a), to_apply=%graph
  %start = (s64[], f64[8]{0}) tuple(%zero, %called)
  %known = (s64[], f64[8]{0}) while(%start), condition=%until, body=%body, \
backend_config={"known_trip_count":{"n":"25"}}
  %open = (s64[], f64[8]{0}) while(%known), condition=%until, body=%body
  ROOT %last = f64[8]{0} get-tuple-element(%open), index=1
}
"""
SMI = """#!/bin/sh
case "$1" in
  --query-gpu=*) echo "NVIDIA H100, 580.1, 81559 MiB, 1980 MHz, Disabled" ;;
  *) echo "| NVIDIA-SMI 580.1    Driver Version: 580.1    CUDA Version: 13.0     |" ;;
esac
"""
TINY = cases.Sizes(
    images=500,
    classifiers=3,
    cpu=(Case("surrogate", 3, 4), Case("full", 3, 4)),
    other=(Case("full", 3, 4),),
    chains=(2,),
    alone=(),
    forms=(Case(OURS, 3, 1), Case(GAMMALN, 3, 1)),
    large=0,
    limit_s=0.0,
)


def test_a_machine_without_nvidia_smi(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = machine.machine_facts(("numpy", "no-such-package"))
    assert facts["gpus"] == []
    assert facts["versions"] == {"numpy": np.__version__}
    assert facts["cpu"]
    assert facts["cores"] == machine.cores()
    assert facts["memory_bytes"] is None or facts["memory_bytes"] > 2**20


@pytest.mark.skipif(os.name == "nt", reason="a script of a shell")
def test_what_nvidia_smi_says(monkeypatch, tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text(SMI, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    wanted = {"name": "NVIDIA H100", "driver": "580.1", "memory": "81559 MiB", "clock": "1980 MHz"}
    assert machine.gpus() == [{**wanted, "mig": "Disabled", "cuda": "13.0"}]
    program.write_text("#!/bin/sh\necho no devices were found\nexit 6\n", encoding="utf-8")
    assert machine.gpus() == []


def test_kernels_are_counted():
    # A copy and a fusion in the graph; two a turn, 25 times; two and a condition, who knows.
    assert launches(HLO) == Launches(2 + 2 * 25 + 3, loops=1, waits=1)
    assert read_loops(HLO) == [Loop(0, 1, 2), Loop(1, 25, 2), Loop(1, 0, 3)]
    assert launches("") == Launches(0)


@pytest.mark.parametrize(
    ("found", "apart"),
    [
        ([np.array([1.0, 2.0])], 0.0),
        ([np.array([1.0, 2.002])], 1e-3),
        ([np.array([1.0, np.nan])], np.inf),
        ([np.array([1.0])], np.inf),
    ],
)
def test_how_far_results_are_apart(found, apart):
    assert agreement.difference(found, [np.array([1.0, 2.0])]) == pytest.approx(apart)


def test_the_last_digit_of_32_bits_is_forgiven():
    wanted = np.array([1.0, 3.0], np.float32)
    assert agreement.difference(np.nextafter(wanted, np.float32(9)), wanted) == 0.0
    assert agreement.difference(wanted + np.float32(1e-5), wanted) > 1e-6


class Made:
    """What stands for a compiled program."""

    def __init__(self, value):
        self.value = value

    def __call__(self):
        return np.asarray(self.value)


def studied(outcomes):
    """Subjects whose programs are these, by platform and name."""
    return SimpleNamespace(compile_jobs=lambda jobs: {key: outcomes[key] for key in jobs})


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Made([1.0, 2.0]), "right"),
        (Made([1.0, 2.1]), "WRONG"),
        (MemoryError("no room"), "NOT KNOWN"),
    ],
)
def test_a_wrong_device_is_noticed(monkeypatch, outcome, verdict):
    monkeypatch.setattr(agreement, "_jobs", lambda subjects, device: {"one": None, "other": None})
    good = Made([1.0, 2.0])
    outcomes = {(name, key): good for name in ("cpu", "gpu") for key in ("one", "other")}
    found = agreement.compare_devices(
        studied({**outcomes, ("gpu", "other"): outcome}), {"cpu": 0, "gpu": 1}
    )
    assert found["verdict"] == verdict
    assert [row["what"] for row in found["rows"]] == ["one", "other"]


def of_parts(monkeypatch, **other):
    """A run whose parts are these, all else empty, of a study that nobody makes."""
    told = {name: other.get(name, lambda *_: {"rows": []}) for name in suite.PARTS}
    monkeypatch.setattr(suite, "PARTS", told)
    monkeypatch.setattr(Subjects, "of_size", lambda sizes: SimpleNamespace(sizes=sizes))


def verdict(word, difference):
    row = {"what": "gradient", "device": "cpu", "difference": difference}
    return {"verdict": word, "against": "the CPU", "limit": 1e-9, "rows": [row]}


@pytest.mark.parametrize(("word", "status"), [("right", 0), ("WRONG", 1), ("NOT KNOWN", 1)])
def test_what_is_wrong_is_the_exit_status(monkeypatch, capsys, word, status):
    of_parts(monkeypatch, right=lambda *_: verdict(word, 0.1))
    assert command.main(["right", "--quick"]) == status
    assert f"{word}: compared with the CPU" in capsys.readouterr().out


def test_a_part_that_fails_leaves_the_others(monkeypatch, capsys, tmp_path):
    def fails(*_):
        raise MemoryError("no room for this\nand more")

    of_parts(monkeypatch, right=lambda *_: verdict("right", 0.0), gradients=fails, draws=fails)
    (tmp_path / "mine.txt").write_text("kept", encoding="utf-8")
    assert command.main(["--out", str(tmp_path)]) == 0
    assert "measuring: roofline" in capsys.readouterr().err
    facts = json.loads((tmp_path / "benchmark-device.json").read_text(encoding="utf-8"))
    written = facts["benchmark-device"]
    assert {*suite.DEVICE_PARTS, "facts", "devices", "advice", "seconds"} <= set(written)
    assert written["gradients"] == {"error": "MemoryError: no room for this", "rows": []}
    page = (tmp_path / "benchmark-device.md").read_text(encoding="utf-8")
    assert "gradients: MemoryError: no room for this" in page
    assert (tmp_path / "benchmark-device.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize("words", [["--out", __file__], ["--device", "tpu"], ["speed"]])
def test_what_there_is_not(words, capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(words)
    assert stopped.value.code == 2
    assert words[-1] in capsys.readouterr().err


def test_a_program_that_cannot_be_compiled_leaves_the_others():
    import jax

    def broken(x):
        raise ValueError("not this one")

    cpu = jax.devices("cpu")[0]
    jobs = {
        "good": timing.Job(lambda x: x + 1, lambda: (np.ones(3),), cpu),
        "bad": timing.Job(broken, lambda: (np.ones(3),), cpu),
    }
    found = timing.compile_together(jobs)
    assert measure.time_program(found["bad"], found["bad"])["error"] == "ValueError: not this one"
    assert measure.time_program(found["good"], found["bad"])["error"] == "ValueError: not this one"
    assert found["good"]().dtype == np.float64


def test_the_bound_is_the_longer_way():
    row = {"bits": 64, "bytes": 3e3, "flops": 1e6}
    rates = {"bytes_per_s": 1e9, "float64_per_s": 1e12, "float32_per_s": 1e13}
    assert bound_us(row, rates) == pytest.approx(3.0)
    assert bound_us({**row, "flops": 1e7}, rates) == pytest.approx(10.0)
    assert bound_us({"bits": 32}, rates) is None


def of_two(draws):
    """What a run on two devices found."""
    return {
        "devices": [{"device": "cpu"}, {"device": "gpu"}],
        "right": {"verdict": "right"},
        "draws": {"rows": [{"device": d, "chains": c, "draws_per_s": v} for d, c, v in draws]},
    }


def test_advice_is_by_the_numbers():
    draws = [("cpu", 2, 100.0), ("gpu", 4, 50.0), ("gpu", 64, 400.0), ("gpu", 256, 1_000.0)]
    said = advice(of_two(draws))
    assert "from 64 chains on, 10.0 times as many at 256" in said
    slow = advice(of_two(draws[:2]))
    assert "The CPU is faster, 2.0 times at 4 chains" in slow
    wrong = {**of_two(draws), "right": {"verdict": "WRONG"}}
    assert advice(wrong).startswith("Use --device cpu")


@pytest.fixture(scope="module")
def small():
    """The tiny study's, whose programs other tests compile."""
    return Subjects(TINY, zoo.study("tiny"))


@pytest.mark.parametrize("batch", [False, True])
def test_a_block_of_draws_is_traced(small, batch):
    """It takes long to compile: a run does."""
    import jax

    cpu = jax.devices("cpu")[0]
    first = measure._first_states(small.joint_subject(), 2)
    job = measure._block_job(small.joint_subject(), 2, first, cpu, batch=batch)
    with job.settings():
        _, made = jax.eval_shape(job.function, *job.arguments())
    assert made.num_steps.shape == ((2, 25) if batch else (25,))


def test_a_small_run(monkeypatch, small):
    """All but what takes long to compile."""
    monkeypatch.setattr(Subjects, "of_size", lambda sizes: small)
    monkeypatch.setattr("benchmarks.device.roofline.CPU_SIZES", (64, 2**12))
    monkeypatch.setattr(timing, "BUDGET_SECONDS", 0.01)
    *_, found = suite.measure_parts(("right", "gradients", "roofline", "forms"), device="cpu")
    assert found["right"]["verdict"] == "right", found["right"]
    assert [row["form"] for row in found["gradients"]["rows"]] == ["surrogate", "full"]
    for row in found["gradients"]["rows"]:
        assert row["us"] > 0
        assert row["bound_us"] > 0
        assert row["kernels"] > 10
    (limits,) = found["roofline"]["rows"]
    assert set(limits) > {"bytes_per_s", "float64_per_s", "turn_known_us", "turn_waits_us"}
    assert "error" not in found["forms"], found["forms"]["error"]
    ours, gammaln, *scipy = found["forms"]["rows"]
    assert ours["ratio"] == 1.0
    assert gammaln["gradient_difference"] < 1e-8
    assert max(row["difference"] for row in (gammaln, *scipy)) < 1e-7
    text = bench_text(found)
    assert "of the bound" in text
    assert "Only cpu was measured" in text


def test_a_form_with_another_gradient_is_not_timed(monkeypatch, small):
    monkeypatch.setattr("benchmarks.device.forms.LIMITS", {64: -1.0})
    row, *_ = compare_forms(small, suite.find_devices())["rows"]
    assert "us" not in row
    assert "its gradient differs by" in row["error"]


def test_shapes_are_those_asked_for():
    wide = cases.repeat_classifiers(zoo.study("tiny"), 7)
    assert len(wide.classifiers) == 7
    for cells in wide.cells.values():
        assert (cells.correct[:, 3:6] == cells.correct[:, :3]).all()
