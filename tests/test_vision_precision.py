"""Weights that are shortened once for mixed precision; batches given before others are fetched."""

import numpy as np
import polars as pl
import pytest
from small_networks import evaluate, fill_folder, paint, quiet

import bayesrep
from bayesrep.studies import layout
from bayesrep.vision import run_local
from bayesrep.vision.architectures import describe
from bayesrep.vision.devices import Device, DeviceClock
from bayesrep.vision.forward import in_groups
from bayesrep.vision.networks import halve_weights, load_network, whole_module
from bayesrep.vision.torch_loading import load_timm

timm = load_timm()
import torch

NAMES = (
    *("test_vit", "test_resnet", "test_efficientnet"),
    *("test_byobnet", "test_convnext", "test_nfnet"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("precision")
    fill_folder(root, NAMES, images=0)
    for number in range(12):
        paint(root / "images" / "n01440764" / f"{number}.png", number, (200 + number, 180))
    return root


@pytest.fixture(scope="module")
def networks(place):
    return {name: load_network(describe(name, place / "weights"), "cpu") for name in NAMES}


def some_pixels(network):
    preprocessing = network.architecture.preprocessing
    random = torch.Generator().manual_seed(0)
    shape = (5, *preprocessing.size, 3)
    pixels = torch.randint(0, 255, shape, dtype=torch.uint8, generator=random)
    return {preprocessing: pixels}


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", NAMES)
def test_shortened_weights_give_the_answers_of_mixed_precision_to_the_bit(place, name, precision):
    device = Device("cpu", precision, 24, keeps_logits=True)
    whole, halved = (load_network(describe(name, place / "weights"), "cpu") for _ in range(2))
    halve_weights(halved, precision)
    assert halved.size < 0.95 * whole.size
    one, other = (
        evaluate(some_pixels(whole), in_groups([each]), device)[name] for each in (whole, halved)
    )
    np.testing.assert_array_equal(one.logits, other.logits)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.probabilities, other.probabilities)


def test_in_full_precision_all_digits_are_back(place, networks, monkeypatch):
    """Outputs that are not finite are done again with weights that nobody has shortened."""
    name = "test_vit"
    network = load_network(describe(name, place / "weights"), "cpu")
    pixels = some_pixels(network)
    exact = evaluate(pixels, in_groups([networks[name]]), Device("cpu", "float32", 24))[name]
    halve_weights(network, "bfloat16")
    forward = network.module.forward
    monkeypatch.setattr(network.module, "forward", lambda images: forward(images) * float("inf"))
    found = evaluate(pixels, in_groups([network]), Device("cpu", "bfloat16", 24))[name]
    np.testing.assert_array_equal(found.probabilities, exact.probabilities)
    assert whole_module(network, "cpu") is network.whole is not network.module


@quiet()
def predict(place, study, **options):
    names = ["test_vit", "test_resnet"]
    options = {"weights": place / "weights", "progress": False} | options
    return bayesrep.predict(place / "images", "a", names, study, **options)


def test_a_batch_is_given_before_the_last_is_fetched(monkeypatch, tmp_path, place):
    """On the way of accelerators, here a CPU by another name."""
    monkeypatch.setattr(run_local, "BLOCK_IMAGES", 4)
    order, start = [], run_local.start_evaluation

    def started(*arguments):
        number = sum(what == "given" for what, _ in order)
        order.append(("given", number))
        finish = start(*arguments)

        def finished():
            order.append(("fetched", number))
            return finish()

        return finished

    monkeypatch.setattr(run_local, "start_evaluation", started)
    predict(place, tmp_path / "s", device="cpu:0", batch_size=4)
    events = [("given", 0), ("given", 1), ("fetched", 0), ("given", 2), ("fetched", 1)]
    assert order == [*events, ("fetched", 2)]
    monkeypatch.undo()
    predict(place, tmp_path / "t", device="cpu:0", batch_size=4)
    for name in ("test_vit", "test_resnet"):
        file = layout.prediction_file("a", name)
        one, other = (pl.read_parquet(tmp_path / each / file) for each in ("s", "t"))
        assert one.drop(pl.selectors.float()).equals(other.drop(pl.selectors.float()))


def test_runs_in_mixed_precision_shorten_the_weights(monkeypatch, tmp_path, place):
    halved = []
    monkeypatch.setattr(run_local, "halve_weights", lambda network, kind: halved.append(kind))
    predict(place, tmp_path / "s")
    assert halved == []
    predict(place, tmp_path / "t", precision="bfloat16")
    assert halved == ["bfloat16"] * 2


def test_a_stopwatch_runs_until_it_is_stopped():
    watch = DeviceClock(Device("cpu", "float32", 24))
    watch.stop()
    first = watch.seconds()
    assert 0 <= first == watch.seconds()
