"""Heads of 11,221 to 21,843 outputs, among which ImageNet's 1,000 classes are found by wnid."""

import shutil

import numpy as np
import polars as pl
import pytest
from refusals import refused
from small_networks import paint, quiet

import bayesrep
from bayesrep.errors import PredictionError, PredictionWarning
from bayesrep.studies import layout
from bayesrep.studies.imagenet import synsets
from bayesrep.vision import predict_from_logits
from bayesrep.vision.architectures import describe
from bayesrep.vision.large_heads import find_head
from bayesrep.vision.logits import read_logits
from bayesrep.vision.torch_loading import load_timm

timm = load_timm()
import torch
from safetensors.torch import save_file
from timm.data.imagenet_info import ImageNetInfo

WNIDS = synsets()
LARGE, SMALL = "vit_tiny_patch16_224.augreg_in21k", "mine"
TEDDY = "n04399382"  # the one class of the 1,000 that ImageNet's 21,841 synsets lack


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Images of three classes, one of them that the head lacks, and weights of two networks."""
    root = tmp_path_factory.mktemp("heads")
    for number in range(6):
        wnid = (WNIDS[5], WNIDS[500], TEDDY)[number % 3]
        paint(root / "images" / wnid / f"{number}.png", number, (60, 50))
    torch.manual_seed(0)
    network = timm.create_model(LARGE, pretrained=False)
    network.head.weight.data *= 20
    (root / "weights").mkdir()
    save_file(network.state_dict(), root / "weights" / f"{LARGE}.safetensors")
    small = timm.create_model("test_resnet", num_classes=11_821)
    timm.models.save_for_hf(small, root / "weights" / SMALL, safe_serialization=True)
    return root


def predict(place, study, names=(LARGE,), dataset="a", **options):
    options = {"weights": place / "weights", "progress": False, "among": "all"} | options
    return bayesrep.predict(place / "images", dataset, names, study, **options)


@quiet()
def quietly(*arguments, **options):
    return predict(*arguments, **options)


def rows_of(study, name, dataset="a"):
    return pl.read_parquet(study / layout.prediction_file(dataset, name))


@pytest.mark.parametrize(
    ("size", "lacking"), [(11_221, 9), (11_821, 7), (21_841, 1), (21_842, 0), (21_843, 1)]
)
def test_classes_are_those_of_the_same_wnid(size, lacking):
    head = find_head(size)
    names = ImageNetInfo(head.named_by.split()[-1]).label_names()
    assert (head.size, len(names), len(head.missing_classes)) == (size, size, lacking)
    assert set(head.missing_classes) == set(WNIDS) - set(names)
    there = [(wnid, names[k]) for wnid, k in zip(WNIDS, head.outputs, strict=True) if k >= 0]
    assert len(there) == 1000 - lacking
    assert all(one == other for one, other in there)
    assert head.description.startswith(f"{1000 - lacking:,} of {size:,} outputs")


def test_other_heads_are_none_of_these():
    assert [find_head(size) for size in (0, 10, 512, 1000, 19_168, 115_217)] == [None] * 6


# timm's data set leaves the files it opens to be collected.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_answers_are_among_the_outputs_of_the_classes(tmp_path, place):
    with pytest.warns(PredictionWarning) as told:
        report = predict(place, tmp_path / "s", (LARGE, SMALL), keep="logits")
    said = [str(each.message) for each in told]
    assert [LARGE in text for text in said if TEDDY in text] == [True]
    assert [SMALL in text for text in said if "993 of 11,821" in text] == [True]
    assert report.table["status"].to_list() == ["done"] * 2
    # By hand: the network on timm's own transform, and the columns of the 999 wnids.
    network = timm.create_model(LARGE, pretrained=False).eval()
    weights = place / "weights" / f"{LARGE}.safetensors"
    network.load_state_dict(timm.models.load_state_dict(str(weights)))
    config = timm.data.resolve_data_config(model=network, use_test_size=True)
    data = timm.data.create_dataset("", root=str(place / "images"))
    data.transform = timm.data.create_transform(**config)
    with torch.inference_mode():
        outputs = network(torch.stack([data[k][0] for k in range(len(data))]))
    names = ImageNetInfo("imagenet-21k-goog").label_names()
    known = [wnid for wnid in WNIDS if wnid in set(names)]
    assert len(known) == 999
    chosen = outputs[:, [names.index(wnid) for wnid in known]]
    probabilities, places = chosen.softmax(-1).topk(5)
    rows = rows_of(tmp_path / "s", LARGE).sort("image")
    assert rows.select("^label_.$").to_numpy().tolist() == np.array(known)[places].tolist()
    found = rows.select("^probability_.$").to_numpy()
    np.testing.assert_allclose(found, probabilities.numpy(), rtol=2e-4)
    assert not rows.filter(label=TEDDY)["correct"].any()
    # What is kept says which output was missing.
    kept = read_logits(tmp_path / "s" / "logits" / "a" / LARGE)
    assert (kept.values[:, WNIDS.index(TEDDY)] == -np.inf).all()
    assert np.isneginf(kept.values).sum() == len(kept.values)
    assert "999 of 21,843" in kept.facts["head"]


def test_kept_outputs_give_the_answers_of_a_run(tmp_path, place):
    quietly(place, tmp_path / "s", keep="logits")
    (tmp_path / "classes.txt").write_text("\n".join([WNIDS[5], WNIDS[500], TEDDY, WNIDS[7]]))
    among = {"among": tmp_path / "classes.txt"}
    logits = tmp_path / "s" / "logits" / "a"
    predict_from_logits(logits, "later", tmp_path / "s", **among)
    quietly(place, tmp_path / "s", dataset="now", **among)
    later, now = (rows_of(tmp_path / "s", LARGE, name) for name in ("later", "now"))
    assert later.equals(now)
    assert TEDDY not in set(now["label_1"])


def test_a_choice_of_classes_that_no_output_has_is_refused(tmp_path, place):
    lacking = find_head(11_821).missing_classes
    (tmp_path / "classes.txt").write_text("\n".join(lacking))
    shutil.copytree(place / "images" / TEDDY, tmp_path / "images" / TEDDY)
    shutil.copytree(place / "weights", tmp_path / "weights")
    with refused(PredictionError, "classifier-fails-on-images"):
        quietly(tmp_path, tmp_path / "s", (SMALL,), among=tmp_path / "classes.txt")
    quietly(tmp_path, tmp_path / "s", (SMALL,), keep="logits")
    with refused(PredictionError, "no-output-of-chosen-classes"):
        logits = tmp_path / "s" / "logits" / "a"
        predict_from_logits(logits, "b", tmp_path / "s", among=tmp_path / "classes.txt")


def test_weights_without_these_outputs_are_refused(tmp_path, place):
    (tmp_path / "weights").mkdir()
    network = timm.create_model(LARGE.split(".")[0], num_classes=1000)
    save_file(network.state_dict(), tmp_path / "weights" / f"{LARGE}.safetensors")
    facts = {"output_count": 1000}
    with refused(PredictionError, "classifier-outputs-not-imagenet", facts):
        quietly(place, tmp_path / "s", weights=tmp_path / "weights")


def test_a_head_is_known_before_anything_is_loaded():
    for name, size in (
        ("convnext_tiny.fb_in22k", 21_841),
        ("convnext_nano.in12k", 11_821),
        ("focalnet_large_fl3.ms_in22k", 21_842),
        (LARGE, 21_843),
    ):
        described = describe(name)
        assert (described.output_count, described.head) == (size, find_head(size))
    assert describe("resnet18").head is None
