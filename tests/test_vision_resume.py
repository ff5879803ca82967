"""What a later run makes of an earlier one's rows: labels, images, weights that changed."""

import json
import os
import re
import shutil
import sys
import tarfile
import threading
import warnings
from argparse import Namespace
from concurrent.futures import CancelledError
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl
import pytest
from PIL import Image
from refusals import refused
from small_networks import paint, save_weights

import bayesrep
from bayesrep.cli import main
from bayesrep.commands.predict import describe_kept
from bayesrep.errors import PredictionError, PredictionWarning, StudyError
from bayesrep.studies import layout
from bayesrep.studies.imagenet import synsets
from bayesrep.vision.images import ImageSet
from bayesrep.vision.torch_loading import load_timm

timm = load_timm()
import torch
from safetensors.torch import save_file

NAME, ALIAS = "test_vit", "test_vit.r160_in1k"
BLOCK, REST = 24, 8  # an interrupted run keeps the block
IMAGES = BLOCK + REST


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Images in a flat folder, with a file of labels: their place in it is their order."""
    root = tmp_path_factory.mktemp("flat")
    for number in range(IMAGES):
        paint(root / f"{number:02d}.png", number, (90, 80))
    write_labels(root, 0)
    return root


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    root = tmp_path_factory.mktemp("weights")
    save_weights(root, [NAME])
    return root


@pytest.fixture
def place(tmp_path, pictures, weights):
    """Images, weights and a study of this test's own."""
    shutil.copytree(pictures, tmp_path / "images")
    shutil.copytree(weights, tmp_path / "weights")
    return tmp_path


@pytest.fixture
def decoded(monkeypatch):
    """How many images have been decoded."""
    module, calls = sys.modules["bayesrep.vision.pixels"], []
    decode = module.decode
    monkeypatch.setattr(module, "decode", lambda data: calls.append(1) or decode(data))
    return calls


def write_labels(images, first):
    """Give every image a class of its own, so that no other label than its own is right."""
    lines = (f"{number:02d}.png {synsets()[first + number]}" for number in range(IMAGES + 1))
    (images / "labels.txt").write_text("\n".join(lines) + "\n")


def repaint(file):
    Image.new("RGB", (90, 80), "red").save(file)


def predict(place, name=NAME, study="study", **options):
    given = (options.pop("images", place / "images"), "v1", [name], place / study)
    options |= {"weights": place / "weights", "device": "cpu", "progress": False}
    return bayesrep.predict(*given, **options)


def command(place, dataset, *options):
    return [
        *("predict", "--images", f"{dataset}={place / 'images'}", "--quiet"),
        *("--study", str(place / "study"), "--weights", str(place / "weights")),
        *("--classifiers", NAME, "--device", "cpu", *options),
    ]


def table(place, name=NAME, study="study"):
    return pl.read_parquet(place / study / layout.prediction_file("v1", name))


def assert_as_if_fresh(place, name=NAME, **options):
    """The rows are those of a run that never knew an earlier one; batches round differently."""
    predict(place, name, study="fresh", **options)
    found, fresh = table(place, name), table(place, name, "fresh")
    floats = pl.selectors.float()
    assert found.drop(floats).equals(fresh.drop(floats))
    np.testing.assert_allclose(found.select(floats), fresh.select(floats), rtol=1e-4)


def interrupt_after_a_block(monkeypatch, place):
    module = sys.modules["bayesrep.vision.run_local"]
    through = module.through_images

    def interrupted(*arguments):
        yield next(through(*arguments))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "through_images", interrupted)
        with pytest.raises(KeyboardInterrupt):
            predict(place)
    threads_end()


def threads_end():
    """What was under way when nobody waited any more comes to its end."""
    for thread in threading.enumerate():
        if thread.name.startswith("bayesrep"):
            thread.join(60)


def nothing(place):
    return {}


def other_labels(place):
    write_labels(place / "images", 7)
    return {}


def other_image(place):
    repaint(place / "images" / "03.png")
    return {}


def other_weights(place):
    torch.manual_seed(1)
    save_file(timm.create_model(NAME).state_dict(), place / "weights" / f"{NAME}.safetensors")
    return {}


def other_precision(place):
    return {"precision": "bfloat16"}


def other_name(place):
    return {"name": ALIAS}


def image_added(place):
    repaint(place / "images" / f"{IMAGES}.png")
    return {}


def image_removed(place):
    (place / "images" / "03.png").unlink()
    return {}


# What changed: then, of a finished run and of an interrupted one, the status, how many images are
# evaluated, and of the earlier rows how many are judged again, evaluated again and dropped.
MATRIX = {
    nothing: (("already done", 0, 0, 0, 0), ("done", REST, 0, 0, 0)),
    other_labels: (("judged again", 0, IMAGES, 0, 0), ("done", REST, BLOCK, 0, 0)),
    other_image: (("done", 1, 0, 1, 0), ("done", REST + 1, 0, 1, 0)),
    other_weights: ("weights",) * 2,
    other_precision: ("precision",) * 2,
    other_name: (("done", IMAGES, 0, 0, 0), ("done", IMAGES, 0, 0, 0)),
    image_added: (("done", 1, 0, 0, 0), ("done", REST + 1, 0, 0, 0)),
    image_removed: (("done", 0, 0, 0, 1), ("done", REST, 0, 0, 1)),
}


@pytest.mark.parametrize("finished", [True, False], ids=["finished", "interrupted"])
@pytest.mark.parametrize("change", MATRIX, ids=lambda change: change.__name__)
def test_what_a_later_run_does(monkeypatch, place, decoded, change, finished):
    if finished:
        predict(place)
    else:
        interrupt_after_a_block(monkeypatch, place)
    options = change(place)
    expected = MATRIX[change][not finished]
    decoded.clear()
    if isinstance(expected, str):
        before = contents_of(place / "study")
        facts = {"setting": expected}
        if change is other_precision:
            facts |= {"earlier_value": "float32", "value": "bfloat16"}
        with refused(PredictionError, "predictions-made-otherwise", facts) as error:
            predict(place, **options)
        if change is other_weights:
            before_and_now = [error.value.facts[name] for name in ("earlier_value", "value")]
            assert all(digest.startswith("sha256:") for digest in before_and_now)
        assert contents_of(place / "study") == before
        options["force"] = True
        expected = ("done", IMAGES, 0, 0, 0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PredictionWarning)
        row = predict(place, **options).table.row(0, named=True)
    found = tuple(row[name] for name in ("judged_again", "evaluated_again", "dropped"))
    assert (row["status"], len(decoded), *found) == expected
    assert_as_if_fresh(place, **options)
    aliases = change is other_name and finished
    assert [f"{NAME!r} and {ALIAS!r}" in str(w.message) for w in said] == ([True] * aliases)
    if change is not other_name:  # which leaves the first name's parts for its next run
        assert not list((place / "study" / "predictions" / "v1").glob(".*"))


def contents_of(study):
    return {path: path.read_bytes() for path in sorted(study.rglob("*.parquet"))}


def test_a_change_of_labels_is_said_and_does_not_touch_the_answers(capsys, place):
    assert main(command(place, "v1")) == 0
    assert "judged" not in capsys.readouterr().out
    before = table(place)
    write_labels(place / "images", synsets().index(before["label_1"][0]))
    assert main(command(place, "v1")) == 0
    said = capsys.readouterr().out
    assert "judged again" in said
    assert re.search(rf"{IMAGES} judged again.* \(classifier '{NAME}'\)", said)
    after = table(place)
    assert (after["correct"] == (after["label"] == after["label_1"])).all()
    assert after["correct"][0]
    answers = pl.selectors.matches("_|image|content")
    assert after.select(answers).equals(before.select(answers))


def test_two_labellings_never_share_a_file(monkeypatch, place):
    """An interrupted run, corrected labels, another interrupt: what is there is of the new ones."""
    interrupt_after_a_block(monkeypatch, place)
    write_labels(place / "images", 5)
    runs = sys.modules["bayesrep.vision.run"].DatasetRun
    with monkeypatch.context() as patch:
        patch.setattr(runs, "evaluate_images", mock.Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            predict(place)
    parts = list((place / "study").rglob(".parts/*/*.parquet"))
    held = pl.concat([pl.read_parquet(part) for part in parts])
    assert len(held) == BLOCK
    numbers = held["image"].str.head(2).cast(pl.Int64) + 5
    assert held["label"].to_list() == [synsets()[number] for number in numbers]


def test_a_run_that_is_killed_while_it_brings_rows_up_to_date(monkeypatch, place, decoded):
    predict(place)
    other_image(place)
    write_labels(place / "images", 7)
    unlink = Path.unlink

    def killed(path, **options):
        if path.name == f"{NAME}.parquet":
            raise MemoryError
        unlink(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(MemoryError):
            predict(place)
    decoded.clear()
    predict(place)
    assert len(decoded) == 1
    assert_as_if_fresh(place)


def test_what_an_interrupt_keeps_is_said(monkeypatch, place):
    arguments = Namespace(study=place / "study")
    assert describe_kept(arguments) == "nothing was written"
    interrupt_after_a_block(monkeypatch, place)
    assert describe_kept(arguments).endswith(f" {place / 'study' / 'predictions'}")


def test_an_interrupt_does_not_wait_for_the_networks(monkeypatch, place):
    """Nobody waits for what is under way: a thread stops before its next network."""
    module, begun = sys.modules["bayesrep.vision.run_local"], threading.Event()
    told = []

    def endless(pixels, groups, device, classes, stop):
        begun.set()
        told.append(stop.wait(60))
        raise CancelledError

    def interrupted(pool, task, items, ahead):
        for item in items:
            pool.submit(task, item)
        assert begun.wait(60)
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(module, "start_evaluation", endless)
    monkeypatch.setattr(module, "_map_ahead", interrupted)
    with pytest.raises(KeyboardInterrupt):
        predict(place, workers=1)
    threads_end()
    assert told == [True]


def test_unchanged_images_are_not_read_again(monkeypatch, place):
    predict(place)
    with monkeypatch.context() as patch:
        patch.setattr(ImageSet, "read", None)  # a call would be an error
        assert predict(place).table["status"].item() == "already done"
    shutil.rmtree(place / "study" / ".contents")  # without the memory, they are
    assert predict(place).table["status"].item() == "already done"


def test_a_change_that_hides_behind_size_and_time_is_seen(place, decoded):
    file = place / "images" / "03.png"
    predict(place)
    status, data = file.stat(), bytearray(file.read_bytes())
    Image.fromarray(np.asarray(Image.open(file))[::-1]).save(place / "flipped.png")
    data = (place / "flipped.png").read_bytes()
    file.write_bytes(data + b"\0" * (status.st_size - len(data)))
    os.truncate(file, status.st_size)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.stat().st_mtime_ns == status.st_mtime_ns
    decoded.clear()
    assert predict(place).table["evaluated_again"].item() == 1
    assert len(decoded) == 1


def test_kept_pixels_are_those_of_the_content(place):
    predict(place, cache=place / "cache")
    other_image(place)
    report = predict(place, cache=place / "cache")
    assert report.table["evaluated_again"].item() == 1
    assert_as_if_fresh(place)


def test_a_changed_file_in_an_archive_is_found(place, decoded):
    shutil.copy(place / "images" / "labels.txt", place / "labels.txt")

    def pack_and_predict():
        with tarfile.open(place / "images.tar", "w") as tar:
            for file in sorted((place / "images").glob("*.png")):
                tar.add(file, file.name)
        decoded.clear()
        report = predict(place, images=place / "images.tar", labels=place / "labels.txt")
        return report.table["evaluated_again"].item()

    assert pack_and_predict() == 0
    assert pack_and_predict() == 0  # another archive, of the same files
    assert not decoded
    repaint(place / "images" / "03.png")  # of another size: all behind it have moved
    assert pack_and_predict() == 1
    assert len(decoded) == 1


def test_rows_of_unknown_content_are_refused(place):
    predict(place)
    file = place / "study" / layout.prediction_file("v1", NAME)
    facts = pl.read_parquet_metadata(file)["bayesrep"]
    pl.read_parquet(file).drop("content").write_parquet(file, metadata={"bayesrep": facts})
    with refused(PredictionError, "predictions-without-image-contents", {"file": str(file)}):
        predict(place)
    assert predict(place, force=True).table["status"].item() == "done"


# Images that cannot be decoded, and the study


def count_images(place, names):
    rows = [f"{dataset},{name},2,3" for dataset in ("v1", "v2") for name in names]
    file = place / "counts.csv"
    file.write_text("\n".join(["dataset,image,selected,shown", *rows]) + "\n")
    begin = ["import", "tables", str(file), "--reference", "v1", "--replication", "v2"]
    assert main([*begin, "--out", str(place / "study")]) == 0


@pytest.mark.parametrize("counts_first", [True, False])
def test_a_study_is_left_without_what_cannot_be_decoded(capsys, place, counts_first):
    whole = (place / "images" / "03.png").read_bytes()
    (place / "images" / "03.png").write_bytes(whole[:500])
    (place / "images" / f"{IMAGES - 1}.png").write_bytes(b"")  # not counted
    names = [f"{number:02d}.png" for number in range(30)]
    if counts_first:
        count_images(place, names)
    assert main(command(place, "v1")) == 1
    (said,) = capsys.readouterr().err.strip().splitlines()
    assert "--allow-failures" in said
    assert main(command(place, "v2", "--allow-failures")) == 0
    said = capsys.readouterr().out.strip().splitlines()
    left = 1 if counts_first else 2
    assert said[-1].startswith(f"v2: {left} image")
    if not counts_first:
        count_images(place, names)
        for dataset in ("v1", "v2"):
            main(command(place, dataset))  # drops what is not counted
    facts = {"images": ["03.png"], "failures_file": "failures.parquet"}
    with refused(StudyError, "images-not-decoded", facts):
        bayesrep.read_study(place / "study")
    assert main(command(place, "v1", "--allow-failures")) == 0
    study = bayesrep.read_study(place / "study")
    for data in study.datasets.values():
        assert len(data.images) == 29
        assert list(data.left_out) == ["03.png"]
        assert "truncated" in data.left_out["03.png"]
    # What is once left out stays out, also through writing and reading.
    assert main(command(place, "v1")) == 0
    study.write(place / "copy")
    copy = bayesrep.read_study(place / "copy")
    assert copy.fingerprint() == study.fingerprint()
    for one, other in zip(copy.datasets.values(), study.datasets.values(), strict=True):
        assert one.left_out == other.left_out
    # Every output says so.
    for where in ("study", "copy"):
        capsys.readouterr()
        assert main(["check", str(place / where)]) == 0
        said = capsys.readouterr().out
        for dataset in ("v1", "v2"):
            assert f"{dataset}: 1 image left out" in said
        assert main(["estimate", str(place / where), "--methods", "raw", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["left_out"]
        each = {dataset: list(images) for dataset, images in found.items()}
        assert each == {"v1": ["03.png"], "v2": ["03.png"]}
    # A repaired image comes back, in the counts and in the predictions.
    (place / "images" / "03.png").write_bytes(whole)
    for dataset in ("v1", "v2"):
        assert main(command(place, dataset)) == 0
    study = bayesrep.read_study(place / "study")
    assert [len(data.images) for data in study.datasets.values()] == [30, 30]
    assert not any(data.left_out for data in study.datasets.values())
    assert not (place / "study" / "failures.parquet").exists()
