"""Where the time of a run goes: arithmetic of the stages, and what a run says of them."""

import json
import re

import numpy as np
import pytest
from small_networks import fill_folder, quiet

import bayesrep
from bayesrep.cli import main
from bayesrep.vision import pixels
from bayesrep.vision.images import list_images
from bayesrep.vision.pixels import Preprocessing, read_block
from bayesrep.vision.timing import Crew, Spent, Stages

NAMES = ["test_vit", "test_resnet"]
SPENT = Spent(read=2.0, decode=4.0, preprocess=6.0, compute=12.0, compile=3.0)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """60 images, and the weights of two small classifiers."""
    root = tmp_path_factory.mktemp("stages")
    fill_folder(root, NAMES)
    return root


@quiet()
def predict(place, study, **options):
    return bayesrep.predict(
        place / "images", "v1", NAMES, study, weights=place / "weights", **options
    )


def test_cores_that_read_and_compute_never_overlap_the_two():
    crew = Crew(readers=2, devices=2, one_after_other=True)
    taken = Stages.of(3, 100, SPENT, crew, load=5.0, total=22.0)
    assert (taken.read, taken.decode, taken.preprocess, taken.compute) == (1.0, 2.0, 3.0, 6.0)
    assert taken.ideal == 12.0
    assert taken.compile == 1.5
    assert taken.wait == 22.0 - 5.0 - 1.5 - 12.0


@pytest.mark.parametrize(("readers", "ideal"), [(4, 12.0), (1, 12.0 + 0.0), (8, 12.0)])
def test_a_device_is_read_for_while_it_computes(readers, ideal):
    crew = Crew(readers=readers, devices=1, one_after_other=False)
    taken = Stages.of(1, 100, SPENT, crew, load=0.0, total=20.0)
    assert taken.ideal == max(12.0, 12.0 / readers) == ideal
    assert taken.wait == 20.0 - 3.0 - 12.0


def test_where_reading_is_slower_it_is_the_ideal():
    crew = Crew(readers=2, devices=4, one_after_other=False)
    taken = Stages.of(1, 100, SPENT, crew, load=0.0, total=10.0)
    assert taken.compute == 3.0
    assert taken.ideal == 6.0


def test_passes_add_up():
    crew = Crew(readers=2, devices=2, one_after_other=True)
    one = Stages.of(3, 100, SPENT, crew, load=5.0, total=22.0)
    two = Stages.of(1, 50, Spent(compute=2.0), crew, load=1.0, total=4.0)
    both = Stages.joined((one, two))
    assert (both.classifiers, both.images, both.total) == (4, 150, 26.0)
    assert both.ideal == one.ideal + two.ideal
    assert Stages.joined(()).total == 0


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, "0.00"), (0.004, "0.00"), (0.123, "0.12"), (1.234, "1.23"), (1234.4, "1,234")],
)
def test_seconds_have_three_digits(seconds, shown):
    taken = Stages.of(
        1, 1, Spent(compute=seconds), Crew(1, 1, one_after_other=True), 0.0, total=seconds
    )
    assert f"compute {shown}," in taken.line()
    assert ("compile" in taken.line()) is False


def test_each_stage_is_where_its_time_goes(monkeypatch, place):
    """By a clock that only a decoder and a resizer move: their time is theirs, of nobody else."""
    preprocessing = Preprocessing((32, 32), 1.0, "center", "bilinear")
    decode, apply, now = pixels.decode, Preprocessing.apply, [0.0]

    def slowly(data):
        now[0] += 2
        return decode(data)

    def more_slowly(self, image):
        now[0] += 4
        return apply(self, image)

    monkeypatch.setattr(pixels.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(pixels, "decode", slowly)
    monkeypatch.setattr(Preprocessing, "apply", more_slowly)
    block = read_block(list_images(place / "images"), np.arange(5), [preprocessing], {})
    assert (block.spent.read, block.spent.decode, block.spent.preprocess) == (0, 10, 20)
    assert block.spent.compute == block.spent.compile == 0


@pytest.mark.parametrize("device", ["cpu", "cpu:0"], ids=["cores", "accelerator"])
def test_what_a_run_took_adds_up(tmp_path, place, device):
    report = predict(place, tmp_path / "study", device=device, workers=2, progress=False)
    (taken,) = report.stages
    assert (taken.classifiers, taken.images) == (2, 60)
    for part in (taken.read, taken.decode, taken.preprocess, taken.compute, taken.load):
        assert 0 < part < taken.total
    working = taken.compute
    if device == "cpu":
        working += taken.read + taken.decode + taken.preprocess
    assert taken.load + working + taken.wait == pytest.approx(taken.total)
    # What networks took themselves is within what computing took.
    assert sum(report.table["seconds"]) <= taken.compute * (2 if device == "cpu" else 1)
    again = predict(place, tmp_path / "study", device=device, progress=False)
    assert again.stages == ()


def test_kept_pixels_take_no_decoding(tmp_path, place):
    predict(place, tmp_path / "one", cache=tmp_path / "cache", progress=False)
    (taken,) = predict(place, tmp_path / "two", cache=tmp_path / "cache", progress=False).stages
    assert taken.read == taken.decode == taken.preprocess == 0
    assert taken.compute > 0


def test_a_line_for_each_pass_and_one_for_the_run(monkeypatch, capsys, tmp_path, place):
    monkeypatch.setattr("bayesrep.vision.run_local.weights_budget", lambda _: 0)
    predict(place, tmp_path / "study")
    numbers = r"read [\d.]+, decode [\d.]+, preprocess [\d.]+, compute [\d.]+, wait [\d.]+, load"
    said = capsys.readouterr().err
    for who in (*(f"{name}, 60 images," for name in NAMES), "in all"):
        assert re.search(rf"{who} [\d.]+ s: {numbers} [\d.]+; ideal [\d.]+", said), who


def test_the_stages_in_json(capsys, tmp_path, place):
    command = ["predict", "--images", f"v1={place / 'images'}", "--quiet"]
    command += ["--study", tmp_path / "study", "--weights", place / "weights", "--json"]
    command += ["--classifiers", ",".join(NAMES)]
    for evaluated in (True, False):
        with quiet():
            assert main([str(each) for each in command]) == 0
        printed = capsys.readouterr()
        found = json.loads(printed.out)
        assert len(found["passes"]) == int(evaluated)
        assert found["stages"]["images"] == 60 * evaluated
        assert (found["stages"]["ideal"] > 0) is evaluated
        assert "ideal" not in printed.err
