"""Classifiers of other classes than ImageNet's: their table, their heads, and what they answer."""

import json
import warnings
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from PIL import Image
from refusals import refused
from small_networks import paint, quiet

import bayesrep
from bayesrep.cli import main
from bayesrep.errors import PredictionError, PredictionWarning, StudyError
from bayesrep.protocols import read_predictions
from bayesrep.sources.cifar10_1 import CIFAR10_CLASSES
from bayesrep.studies import layout
from bayesrep.vision.architectures import describe
from bayesrep.vision.classes import IMAGENET, read_classes
from bayesrep.vision.images import list_images
from bayesrep.vision.networks import load_network
from bayesrep.vision.torch_loading import load_timm

timm = load_timm()
import torch
from safetensors.torch import save_file
from timm.models import save_for_hf

IMAGES = 30
SMALL = {"input_size": (3, 32, 32), "crop_pct": 1.0, "mean": (0.5,) * 3, "std": (0.25,) * 3}


def write_table(path, names, folders=None):
    columns = {"index": range(len(names)), "name": names}
    pl.DataFrame(columns | ({"folder": folders} if folders else {})).write_csv(path)
    return path


def network(classes, seed=0):
    torch.manual_seed(seed)
    return timm.create_model("test_resnet", num_classes=classes).eval()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("table") / "classes.csv", CIFAR10_CLASSES)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """30 images of 32 by 32 pixels in a folder for each class, named by their place."""
    root = tmp_path_factory.mktemp("cifar")
    for number in range(IMAGES):
        paint(root / CIFAR10_CLASSES[number % 10] / f"{number}.png", number, (32, 32))
    return root


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A checkpoint under timm's name, and one that timm has saved with its configuration."""
    root = tmp_path_factory.mktemp("weights")
    torch.save({"state_dict": network(10).state_dict()}, root / "test_resnet.pth")
    saved = network(10, seed=1)
    saved.pretrained_cfg.update(SMALL)
    save_for_hf(saved, root / "mine", model_config={"num_classes": 10})
    return root


@quiet()
def predict(images, study, weights, table, names=("test_resnet", "mine"), dataset="cifar", **more):
    return bayesrep.predict(
        *(images, dataset, names, study), weights=weights, classes=table, progress=False, **more
    )


def test_answers_are_those_of_the_network(tmp_path, pictures, weights, table):
    report = predict(pictures, tmp_path / "study", weights, table)
    assert report.table["status"].to_list() == ["done", "done"]
    read = pl.read_parquet(tmp_path / "study" / layout.prediction_file("cifar", "mine"))
    assert set(read["label"]) == set(CIFAR10_CLASSES)
    pixels = np.stack(
        [np.asarray(Image.open(pictures / name), dtype=np.float32) for name in read["image"]]
    )
    with torch.inference_mode():
        inputs = torch.from_numpy((pixels / 255 - 0.5) / 0.25).permute(0, 3, 1, 2)
        expected = network(10, seed=1)(inputs).softmax(-1).numpy()
    order = np.argsort(-expected, axis=1)
    for rank in range(5):
        assert read[f"label_{rank + 1}"].to_list() == [CIFAR10_CLASSES[k] for k in order[:, rank]]
        np.testing.assert_allclose(
            read[f"probability_{rank + 1}"],
            np.take_along_axis(expected, order[:, rank : rank + 1], 1)[:, 0],
            rtol=1e-4,
        )
    assert (read["correct"] == (read["label"] == read["label_1"])).all()
    again = predict(pictures, tmp_path / "study", weights, table)
    assert again.table["status"].to_list() == ["already done", "already done"]


def test_import_predict_and_compare_fit_together(capsys, tmp_path, pictures, weights, table):
    """Answers as CIFAR-10.1 publishes them, then ours on the same images, then both compared."""
    rng = np.random.default_rng(0)
    truth = np.arange(IMAGES) % 10
    release = tmp_path / "release"
    (release / "datasets").mkdir(parents=True)
    np.save(release / "datasets" / "cifar10.1_v6_labels.npy", truth)
    np.save(tmp_path / "labels.npy", truth)
    for kind in ("original", "v6"):
        place = release / "model_predictions" / f"{kind}_predictions"
        place.mkdir(parents=True)
        for name in ("nas", "resnext"):
            said = np.where(rng.random(IMAGES) < 0.7, truth, rng.integers(0, 10, IMAGES))
            (place / f"{name}_predictions.json").write_text(json.dumps(said.tolist()))
    study = str(tmp_path / "study")
    source = ("cifar10.1", str(release), str(tmp_path / "labels.npy"))
    assert main(["import", *source, "--out", study]) == 0
    for dataset in ("cifar-10", "cifar-10.1-v6"):
        options = ("--images", f"{dataset}={pictures}", "--study", study)
        choice = ("--weights", str(weights), "--classifiers", "mine", "--classes", str(table))
        assert main(["predict", *options, *choice, "--quiet"]) == 0
    both = read_predictions(study, ranks=1)
    assert both[0].classifiers == ("mine", "nas", "resnext")
    assert set(both[0].classes) == set(CIFAR10_CLASSES)
    capsys.readouterr()
    assert main(["papers", "compare", study, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert "mine" in json.dumps(rows)
    # The labels of what was imported are not to be contradicted.
    swapped = tmp_path / "swapped"
    for one, other in zip(CIFAR10_CLASSES, reversed(CIFAR10_CLASSES), strict=True):
        (swapped / one).mkdir(parents=True)
        for file in (pictures / other).iterdir():
            (swapped / one / file.name).write_bytes(file.read_bytes())
    facts = {"study_label": "airplane", "disk_label": "truck"}
    facts["images"] = [str(number) for number in range(IMAGES)]
    with refused(StudyError, "study-labels-differ-from-disk", facts):
        predict(swapped, study, weights, table, ["mine"], "cifar-10", force=True)


@pytest.mark.parametrize("classes", [2, 5])
def test_there_are_never_more_answers_than_classes(tmp_path, pictures, classes):
    names = [f"kind {number}" for number in range(classes)]
    table = write_table(tmp_path / "few.csv", names, CIFAR10_CLASSES[:classes])
    save_file(network(classes).state_dict(), tmp_path / "test_resnet.safetensors")
    images = tmp_path / "images"
    for name in CIFAR10_CLASSES[:classes]:
        (images / name).mkdir(parents=True)
        for file in (pictures / name).iterdir():
            (images / name / file.name).write_bytes(file.read_bytes())
    report = predict(images, tmp_path / "study", tmp_path, table, ["test_resnet"])
    read = pl.read_parquet(tmp_path / "study" / layout.prediction_file("cifar", "test_resnet"))
    assert [c for c in read.columns if c.startswith("label_")] == [
        f"label_{rank}" for rank in range(1, classes + 1)
    ]
    total = read.select(pl.sum_horizontal(f"probability_{r}" for r in range(1, classes + 1)))
    np.testing.assert_allclose(total.to_numpy(), 1, atol=1e-5)
    assert set(read["label"]) == set(names)
    assert report.table["top5"].to_list() == [None if classes < 5 else 1.0]


def test_a_repository_of_the_hub(monkeypatch, tmp_path, weights, table):
    """As the hub's own client keeps it, without a network."""
    from huggingface_hub import constants

    place = tmp_path / "models--me--tiny"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    snapshot = place / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    for file in (weights / "mine").iterdir():
        (snapshot / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    described = describe("hf-hub:me/tiny", None, read_classes(table))
    assert described.weights == "hub:me/tiny"
    assert described.preprocessing.size == (32, 32)
    loaded = load_network(described, "cpu").module.state_dict()
    assert all(
        torch.equal(loaded[key], value) for key, value in network(10, 1).state_dict().items()
    )
    facts = {"config_place": "config.json of me/nothing on the hub"}
    with refused(PredictionError, "classifier-configuration-unusable", facts):
        describe("hf-hub:me/nothing", None, read_classes(table))


def test_heads_that_disagree_with_the_table_are_refused(tmp_path, pictures, weights, table):
    short = write_table(tmp_path / "short.csv", CIFAR10_CLASSES[:9], None)
    images = tmp_path / "images"
    (images / "cat").mkdir(parents=True)
    (images / "cat" / "0.png").write_bytes((pictures / "cat" / "3.png").read_bytes())
    rule = "classifier-outputs-disagree-with-classes"
    facts = {"output_count": 10, "class_count": 9, "classes_file": str(short)}
    for name in ("mine", "test_resnet"):
        with refused(PredictionError, rule, facts) as error:
            predict(images, tmp_path / "study", weights, short, [name])
        assert error.value.facts["classifier"].startswith(f"{name!r} (")
    facts = {"output_count": 1000, "class_count": 10, "classes_file": str(table)}
    for name, shown in (
        ("resnet18", "'resnet18' (resnet18.a1_in1k)"),
        ("torchvision/alexnet", "'torchvision/alexnet'"),
    ):
        with refused(PredictionError, rule, {"classifier": shown, **facts}):
            describe(name, None, read_classes(table))
    ten = {"output_count": 10}
    with refused(PredictionError, "classifier-outputs-not-imagenet", ten):
        describe("mine", weights)
    with refused(PredictionError, "classifier-outputs-not-imagenet", ten):
        load_network(describe("test_resnet", weights), "cpu")


@pytest.mark.parametrize(
    ("label_names", "order"),
    [
        (["b", "c", "a"], [2, 0, 1]),
        ({"0": "b", "1": "c", "2": "a"}, [2, 0, 1]),
        (["C", "A", "B"], [1, 2, 0]),  # as the folders are called
        (["x", "y", "z"], [2, 0, 1]),  # as they are described
        (["a", "b", "c"], None),
        (["LABEL_0", "LABEL_1", "LABEL_2"], "said"),
        (["b", "c", "d"], "refused"),
        (["a", "a", "b"], "refused"),
        (["a", "b"], "refused"),
    ],
)
def test_names_of_outputs_say_which_is_which(tmp_path, label_names, order):
    table = read_classes(write_table(tmp_path / "abc.csv", list("abc"), list("ABC")))
    save_for_hf(network(3), tmp_path / "mine", {"num_classes": 3}, safe_serialization=True)
    config = json.loads((tmp_path / "mine" / "config.json").read_text())
    config |= {"label_names": label_names, "label_descriptions": {"x": "b", "y": "c", "z": "a"}}
    (tmp_path / "mine" / "config.json").write_text(json.dumps(config))
    if order == "refused":
        with refused(PredictionError, "classifier-names-other-classes", {"classifier": "mine"}):
            describe("mine", tmp_path, table)
    elif order is None:
        assert describe("mine", tmp_path, table).head is None
    else:
        with pytest.warns(PredictionWarning, match="label_names"):
            described = describe("mine", tmp_path, table)
        if order == "said":
            assert described.head is None
        else:
            outputs = torch.arange(3.0)[None]
            assert described.head.take_classes(outputs).tolist() == [order]


@pytest.mark.parametrize("kind", ["wnids", "words", "turned", "others"])
def test_a_thousand_outputs_are_of_imagenet_if_they_say_so(tmp_path, kind):
    from timm.data.imagenet_info import ImageNetInfo

    named = {
        "wnids": list(IMAGENET.names),
        "words": ImageNetInfo().label_descriptions(),
        "turned": [*IMAGENET.names[1:], IMAGENET.names[0]],
        "others": [f"scene {number}" for number in range(1000)],
    }[kind]
    options = {"num_classes": 1000, "label_names": named}
    save_for_hf(network(1000), tmp_path / "mine", options, safe_serialization=True)
    if kind == "others":
        with refused(PredictionError, "classifier-names-other-classes"):
            describe("mine", tmp_path)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if kind == "turned" else "error", PredictionWarning)
        head = describe("mine", tmp_path).head
    assert (head is None) == (kind != "turned")
    assert head is None or head.outputs == (999, *range(999))


def test_torchvisions_networks_with_other_heads(tmp_path, table):
    from torchvision.models import squeezenet1_1

    torch.manual_seed(0)
    state = squeezenet1_1(num_classes=10).state_dict()
    save_file(state, tmp_path / "squeezenet1_1.safetensors")
    name = "torchvision/squeezenet1_1"
    loaded = load_network(describe(name, tmp_path, read_classes(table)), "cpu").module.state_dict()
    assert all(torch.equal(loaded[key], value) for key, value in state.items())
    short = read_classes(write_table(tmp_path / "short.csv", CIFAR10_CLASSES[:9]))
    facts = {"output_count": 10, "class_count": 9}
    with refused(PredictionError, "classifier-outputs-disagree-with-classes", facts):
        load_network(describe(name, tmp_path, short), "cpu")


def test_names_that_change_are_another_classifier(tmp_path, pictures, weights, table):
    predict(pictures, tmp_path / "study", weights, table, ["mine"])
    other = write_table(
        tmp_path / "other.csv", [f"a {name}" for name in CIFAR10_CLASSES], CIFAR10_CLASSES
    )
    facts = {"setting": "classes", "earlier_value": read_classes(table).identity["classes"]}
    assert facts["earlier_value"].startswith("10, airplane to truck, sha256:")
    with refused(PredictionError, "predictions-made-otherwise", facts):
        predict(pictures, tmp_path / "study", weights, other, ["mine"])
    predict(pictures, tmp_path / "study", weights, other, ["mine"], force=True)
    read = pl.read_parquet(tmp_path / "study" / layout.prediction_file("cifar", "mine"))
    assert set(read["label"]) == {f"a {name}" for name in CIFAR10_CLASSES}


LACKING, SHARED = "class-indexes-missing", "class-name-shared"


@pytest.mark.parametrize(
    ("head", "rows", "rule", "facts"),
    [
        ("name", "0,a 1,b 1,c", "class-index-repeated", {"index": 1}),
        ("name", "0,a 1,b 3,c", LACKING, {"indexes": ["2"], "row_count": 3, "last_index": 2}),
        ("name", "1,a 2,b", LACKING, {"indexes": ["0"], "row_count": 2}),
        ("name", "0,a -1,b", LACKING, {"indexes": ["1"]}),
        ("name", "0,a 1,", "class-without-name", {"index": 1}),
        ("name", "0,a 1,a", SHARED, {"index": 0, "other_index": 1, "class_name": "a"}),
        ("name,folder", "0,a,b 1,b,c", SHARED, {"index": 1, "other_index": 0, "class_name": "b"}),
        ("class", "0,a 1,b", "class-table-lacks-columns", {"columns": ["name"]}),
        ("name", "0,a", "class-rows-out-of-range", {"row_count": 1}),
    ],
)
def test_bad_tables_are_one_line(tmp_path, head, rows, rule, facts):
    file = tmp_path / "classes.csv"
    file.write_text("\n".join([f"index,{head}", *rows.split()]) + "\n")
    with refused(PredictionError, rule, {"file": str(file)} | facts):
        read_classes(file)


def test_images_are_matched_to_the_table(tmp_path, pictures, table):
    classes = read_classes(table)
    listed = list_images(pictures, classes=classes)
    assert [CIFAR10_CLASSES[k] for k in listed.labels] == [
        name.split("/")[0] for name in listed.names
    ]
    assert listed.classes is classes
    assert listed.take([0]).classes is classes
    strange = tmp_path / "images"
    for name in ("cat", "plane"):
        (strange / name).mkdir(parents=True)
        (strange / name / f"{name}.png").write_bytes((pictures / "cat" / "3.png").read_bytes())
    facts = {"folders": ["plane"], "label_kind": "names", "known_classes": classes.description}
    with refused(PredictionError, "folders-not-named-by-class", facts):
        list_images(strange, classes=classes)
    facts = {"known_classes": f"10 classes of {table}"}
    with refused(PredictionError, "flat-images-without-labels-of-classes", facts):
        list_images(strange / "cat", classes=classes)
    (tmp_path / "labels.txt").write_text("cat.png cat\nplane.png green snake\n")
    spaced = read_classes(write_table(tmp_path / "t.csv", ["cat", "green snake"]))
    assert list_images(strange, labels=tmp_path / "labels.txt", classes=spaced).labels.tolist() == [
        0,
        1,
    ]
    (tmp_path / "labels.csv").write_text("image,label\ncat,0\nplane,2\n")
    facts = {"label": "2", "images": ["plane/plane.png"], "known_classes": spaced.description}
    with refused(PredictionError, "image-label-not-a-class", facts):
        list_images(strange, labels=tmp_path / "labels.csv", classes=spaced)


def test_numbers_that_name_classes_are_names(tmp_path, pictures):
    digits = read_classes(write_table(tmp_path / "digits.csv", [str(9 - k) for k in range(10)]))
    images = tmp_path / "images"
    for name in "10":
        (images / name).mkdir(parents=True)
        (images / name / f"{name}.png").write_bytes((pictures / "cat" / "3.png").read_bytes())
    assert list_images(images, classes=digits).labels.tolist() == [8, 9]


def test_imagenet_says_nothing_of_its_classes():
    """Files of its answers are what they were before there were tables."""
    assert IMAGENET.identity == {}
    assert IMAGENET.ranks == 5
    assert all(one < other for one, other in pairwise(IMAGENET.names))
