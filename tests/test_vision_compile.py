"""Compiled networks: used where they answer as the network itself, refused where nothing works.

What torch makes of a network is exchanged for something quick except where compiling itself is the
matter.
"""

import json
import os
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from refusals import check, refused
from small_networks import evaluate, fill_folder

import bayesrep
from bayesrep.errors import PredictionError, PredictionWarning, Violation
from bayesrep.studies import layout
from bayesrep.vision.architectures import describe
from bayesrep.vision.compiling import check_compiler, compile_networks, forget_compiled
from bayesrep.vision.devices import Device
from bayesrep.vision.forward import in_groups
from bayesrep.vision.networks import Network
from bayesrep.vision.pixels import Preprocessing
from bayesrep.vision.torch_loading import load_timm

timm = load_timm()
import torch

TESTS = Path(__file__).resolve().parent
NAMES = ["test_vit", "test_resnet"]
SMALL = Preprocessing((8, 8), 1.0, "center", "bicubic")
CPU = Device("cpu", "float32", 24, compiles=True)


class Tiny(torch.nn.Module):
    """Answers that depend on the image and on the seed."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.layer = torch.nn.Linear(3 * 8 * 8, 1000)
        self.calls = 0

    def forward(self, x):
        return self.layer(x.flatten(1))


def network(name="any", seed=0):
    architecture = replace(describe("test_vit"), name=name, preprocessing=SMALL)
    return Network(architecture, Tiny(seed).eval(), 0)


def batches(*sizes):
    torch.manual_seed(1)
    return [{SMALL: torch.randint(0, 255, (n, 8, 8, 3), dtype=torch.uint8)} for n in sizes]


def answers_of(one):
    """What a network answers on a full batch."""
    return evaluate(batches(24)[0], in_groups([one]), CPU)["any"]


def compiled_as(monkeypatch, change):
    """Let compiled networks be the networks themselves with their outputs changed."""

    def fake(call, **_):
        return lambda images: change(call(images))

    monkeypatch.setattr(torch, "compile", fake)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """60 images, and the weights of two small classifiers."""
    root = tmp_path_factory.mktemp("compile")
    fill_folder(root, NAMES)
    predict(root, "plain")
    return root


def predict(place, study, **options):
    """Predictions, and what was warned of but chance."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PredictionWarning)
        given = (place / "images", "v1", NAMES, place / study)
        options |= {"weights": place / "weights", "progress": False}
        report = bayesrep.predict(*given, **options)
    return report, [str(w.message) for w in caught if "chance" not in str(w.message)]


def read(place, study, name):
    file = place / study / layout.prediction_file("v1", name)
    return pl.read_parquet(file), json.loads(pl.read_parquet_metadata(file)["bayesrep"])


def test_a_network_that_answers_alike_is_used_for_full_batches_alone(monkeypatch):
    shapes = []
    compiled_as(monkeypatch, lambda logits: shapes.append(len(logits)) or logits)
    one = network()
    assert compile_networks(in_groups([one]), batches(24, 24, 7), CPU) == {"any": ""}
    assert shapes == [24, 24]
    expected = answers_of(network())
    found = answers_of(one)
    assert shapes == [24, 24, 24]
    assert (found.labels == expected.labels).all()
    evaluate(batches(7)[0], in_groups([one]), CPU)
    assert len(shapes) == 3
    assert compile_networks(in_groups([one]), batches(24), CPU) == {}, "tried once"


def other_label(logits):
    """The likeliest class of one image is another."""
    changed = logits.clone()
    changed[3, int(changed[3].argmax())] -= 100
    return changed


def fails(logits):
    raise RuntimeError("no kernel for this\nand much more")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (other_label, r"labels .*\b2 of 48\b"),
        (lambda logits: logits * 3, r"probabilities .*\b0\.\d+$"),
        (fails, r"\(RuntimeError: no kernel for this\)$"),
    ],
)
def test_one_that_does_not_is_left_as_it_is(monkeypatch, change, why):
    compiled_as(monkeypatch, change)
    one = network()
    found = compile_networks(in_groups([one]), batches(24, 24), CPU)
    assert re.search(why, found["any"])
    expected = answers_of(network())
    answers = answers_of(one)
    assert (answers.labels == expected.labels).all()
    assert (answers.probabilities == expected.probabilities).all()


def test_outputs_that_are_not_finite_come_from_the_network_itself(monkeypatch):
    """As with mixed precision: a batch is done again, uncompiled and in float32."""
    compiled_as(monkeypatch, lambda logits: logits * float("nan"))
    one = network()
    compile_networks(in_groups([one]), batches(24), CPU)
    expected = answers_of(network())
    answers = answers_of(one)
    assert (answers.labels == expected.labels).all()


def test_a_network_without_answers_is_not_compiled(monkeypatch):
    compiled_as(monkeypatch, lambda logits: logits)
    broken = network("broken")
    broken.module.layer.weight.data *= float("nan")
    found = compile_networks(in_groups([broken, network()]), batches(24), CPU)
    assert found["any"] == ""
    assert "no usable answers" in found["broken"]


def test_no_image_that_can_be_decoded_compiles_nothing():
    assert compile_networks(in_groups([network()]), [], CPU) == {}


@pytest.mark.parametrize("device", ["cpu", "cpu:0"], ids=["cores", "accelerator"])
def test_a_run_says_in_its_files_what_was_compiled(monkeypatch, place, device):
    calls = []
    monkeypatch.setattr("bayesrep.vision.prediction.check_compiler", calls.append)
    compiled_as(monkeypatch, lambda logits: logits)
    study = f"compiled-{device.replace(':', '')}"
    report, said = predict(place, study, compile=True, device=device, workers=3)
    assert said == []
    assert len(calls) == 1
    assert report.stages[0].compile > 0
    assert report.stages[0].images == 60
    for name in NAMES:
        (plain, before), (rows, facts) = read(place, "plain", name), read(place, study, name)
        assert "compiled" not in before
        assert facts["compiled"] == "yes"
        assert plain.drop(pl.selectors.float()).equals(rows.drop(pl.selectors.float()))
    # A finished run needs no compiler.
    predict(place, study, compile=True, device=device)
    assert len(calls) == 1


def test_a_run_whose_compiled_networks_are_wrong_is_right(monkeypatch, place):
    monkeypatch.setattr("bayesrep.vision.prediction.check_compiler", lambda _: None)
    compiled_as(monkeypatch, other_label)
    _, said = predict(place, "wrong", compile=True)
    assert len(said) == len(NAMES)
    for name, line in zip(sorted(NAMES), sorted(said), strict=True):
        assert re.search(rf"{name!r} goes uncompiled: .* 2 of 48\b", line)
    for name in NAMES:
        (plain, _), (rows, facts) = read(place, "plain", name), read(place, "wrong", name)
        assert plain.equals(rows)
        assert "compiled" not in facts


def test_networks_of_one_class_are_each_compiled(monkeypatch):
    """torch gives up on code that it has compiled eight times; here each has its own."""
    from torch._dynamo.utils import counters

    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda call, **more: real(call, backend="eager", **more))
    forget_compiled()
    counters.clear()
    several = [network(f"number {seed}", seed) for seed in range(10)]
    found = compile_networks(in_groups(several), batches(24), CPU)
    assert set(found.values()) == {""}
    assert counters["frames"]["ok"] == 10
    forget_compiled()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own parts
def test_what_torch_compiles_answers_alike_in_every_thread():
    """Compiled once by one thread, used by four: no thread compiles again."""
    from torch._dynamo.utils import counters

    check_compiler(CPU)
    counters.clear()
    one, plain = network(), network()
    pixels = batches(24)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert compile_networks(in_groups([one]), pixels, CPU) == {"any": ""}
        groups = in_groups([one])
        with ThreadPoolExecutor(4, initializer=lambda: torch.set_num_threads(1)) as pool:
            answers = list(pool.map(lambda _: evaluate(pixels[0], groups, CPU)["any"], range(8)))
    finally:
        torch.set_num_threads(threads)
    assert counters["frames"]["total"] == 1
    with torch.inference_mode():
        images = pixels[0][SMALL]
        expected = evaluate({SMALL: images}, in_groups([plain]), CPU)["any"]
    for found in answers:
        assert (found.labels[:, 0] == expected.labels[:, 0]).all()
        np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-5)
    forget_compiled()


def test_without_a_compiler_there_is_one_line(place):
    """In a process of its own, since torch remembers a compiler that it has found."""
    code = """
import json, sys, bayesrep
images, study, weights, name = sys.argv[1:]
try:
    named = {"weights": weights, "compile": True, "progress": False}
    bayesrep.predict(images, "v1", [name], study, **named)
except bayesrep.BayesrepError as error:
    print(json.dumps(error.violation.to_json()))
"""
    paths = place / "images", place / "refused", place / "weights"
    command = [sys.executable, "-c", code, *paths, NAMES[0]]
    environment = {**os.environ, "CXX": "/nowhere/g++", "PYTHONPATH": str(TESTS.parent)}
    command = [str(each) for each in command]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    broken = Violation.of_json(json.loads(ended.stdout))
    check(broken, "compiling-unavailable", {"device": "cpu"})
    assert "/nowhere/g++" in broken.facts["reason"]
    assert not list((place / "refused").glob("predictions/*/*.parquet"))


def test_another_device_that_cannot_compile_is_named(monkeypatch):
    def refuses(*_, **__):
        raise RuntimeError("Cannot find a working triton installation")

    monkeypatch.setattr(torch, "compile", refuses)
    facts = {"device": "cpu", "reason": "Cannot find a working triton installation"}
    with refused(PredictionError, "compiling-unavailable", facts):
        check_compiler(CPU)
