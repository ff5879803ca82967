"""Data sets of the hub, as its own client keeps them and where it cannot be reached."""

import time

import numpy as np
import pytest
from refusals import refusal, refused
from small_networks import paint, quiet, save_weights

import bayesrep
from bayesrep.errors import PredictionError
from bayesrep.studies.imagenet import synsets
from bayesrep.vision import predict_sets, read_suite
from bayesrep.vision.hub import locate_images
from bayesrep.vision.images import list_images

NAME = "test_vit"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A data set of two folders of classes in the cache of the client, and no network."""
    import huggingface_hub
    from huggingface_hub import constants

    place = tmp_path / "hub" / "datasets--me--small"
    snapshot = place / "snapshots" / ("0" * 40)
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    for number in range(6):
        blob = place / "blobs" / f"{number}.png"
        paint(blob, number)
        file = snapshot / "val" / synsets()[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(blob)

    def unreachable(*_, **__):
        raise ConnectionError("no network")

    monkeypatch.setattr(huggingface_hub, "get_session", unreachable)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    return snapshot


def test_what_the_client_has_kept_is_read_like_a_folder(hub):
    assert locate_images("hf-hub:me/small") == hub
    images, folder = list_images(locate_images("hf-hub:me/small/val/*")), list_images(hub)
    assert images.names == folder.names
    assert len(images) == 6
    np.testing.assert_array_equal(images.labels, folder.labels)
    assert images.read(0).startswith(b"\x89PNG")
    assert locate_images(hub) == hub


def test_a_data_set_of_the_hub_is_evaluated(tmp_path, hub):
    save_weights(tmp_path / "weights", [NAME])
    (tmp_path / "suite.toml").write_text('[val]\nimages = "hf-hub:me/small"\nlabels = "l.txt"\n')
    sets = read_suite(tmp_path / "suite.toml")
    assert sets["val"].images == "hf-hub:me/small"
    options = {"weights": tmp_path / "weights", "progress": False}
    with quiet():
        one = bayesrep.predict("hf-hub:me/small", "a", [NAME], tmp_path / "s", **options)
        (tmp_path / "suite.toml").write_text('[a]\nimages = "hf-hub:me/small"\n')
        sets = read_suite(tmp_path / "suite.toml")
        other = predict_sets(sets, [NAME], tmp_path / "t", **options)["a"]
    assert one.table["images"].to_list() == other.table["images"].to_list() == [6]


@pytest.mark.parametrize("name", ["me/nothing", "me/nothing/*.tar", "a b", ""])
def test_without_the_hub_there_is_one_clear_line(tmp_path, hub, name):
    from huggingface_hub import constants

    begin = time.monotonic()
    facts = {"images": f"hf-hub:{name}"}
    with refused(PredictionError, "hub-images-cannot-be-fetched", facts):
        locate_images(f"hf-hub:{name}")
    assert time.monotonic() - begin < 30
    assert constants.HF_HUB_OFFLINE is False
    command = ["predict", "--images", f"a=hf-hub:{name}", "--study"]
    command += [tmp_path / "s", "--classifiers", NAME]
    assert refusal(command).rule == "hub-images-cannot-be-fetched"
    assert not (tmp_path / "s").exists()
