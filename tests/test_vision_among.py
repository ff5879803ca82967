"""Answers among some classes: as the data sets of 200 of ImageNet's are evaluated."""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image
from refusals import refusal, refused
from small_networks import paint, quiet, save_weights

import bayesrep
from bayesrep.cli import main
from bayesrep.errors import PredictionError, PredictionWarning, StudyError
from bayesrep.studies import layout
from bayesrep.studies.imagenet import synsets
from bayesrep.vision.class_subset import check_few_classes, read_class_subset
from bayesrep.vision.images import list_images
from bayesrep.vision.torch_loading import load_timm

timm = load_timm()
import torch

WNIDS = synsets()
NAMES = (
    *("test_vit", "test_resnet", "test_efficientnet"),
    *("test_byobnet", "test_convnext", "test_nfnet"),
)
A_CLASSES = read_class_subset("imagenet-a").chosen
R_CLASSES = read_class_subset("imagenet-r").chosen
OTHERS = sorted(set(WNIDS) - set(A_CLASSES.names))  # none of ImageNet-A's


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    root = tmp_path_factory.mktemp("weights")
    save_weights(root, NAMES)
    return root


def paint_odd(file, number):
    """An image of another mode and size for each number; of CMYK for each twelfth."""
    modes = ("RGB", "L", "P", "1", "RGBA", "LA")
    paint(file, number)
    image = Image.open(file).convert(modes[number % 6]).resize((60 + number, 90))
    image.save(file)
    if number % 12 == 11:
        image.convert("RGB").convert("CMYK").save(file.with_suffix(".jpg"))
        file.unlink()


def paint_set(root, classes):
    """Twelve of a data set's class folders, with an odd image in each."""
    for number, wnid in enumerate(classes.names[:: 200 // 12][:12]):
        paint_odd(root / wnid / f"{number}.png", number)
    return root


@pytest.fixture(scope="module")
def adversarial(tmp_path_factory):
    return paint_set(tmp_path_factory.mktemp("imagenet-a"), A_CLASSES)


@quiet()
def predict(images, study, weights, names=NAMES, dataset="a", **options):
    return bayesrep.predict(
        images, dataset, names, study, weights=weights, progress=False, **options
    )


def table(study, name, dataset="a"):
    return pl.read_parquet(study / layout.prediction_file(dataset, name))


def timm_outputs(root, weights, name):
    """Outputs [N, 1000] and targets [N] by timm's own data set, loader and network."""
    module = timm.create_model(name).eval()
    module.load_state_dict(timm.models.load_state_dict(str(weights / f"{name}.safetensors")))
    config = timm.data.resolve_data_config(model=module, use_test_size=True)
    data = timm.data.create_dataset("", root=str(root))
    loader = timm.data.create_loader(
        data,
        config["input_size"],
        24,
        use_prefetcher=False,
        interpolation=config["interpolation"],
        mean=config["mean"],
        std=config["std"],
        crop_pct=config["crop_pct"],
        crop_mode=config["crop_mode"],
        num_workers=0,
    )
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = [(module(pixels), target) for pixels, target in loader]
    return torch.cat([part for part, _ in parts]), torch.cat([target for _, target in parts])


# timm's data set leaves the files it opens to be collected.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("among", "classes"), [("imagenet-a", A_CLASSES), ("imagenet-r", R_CLASSES)]
)
def test_answers_are_those_of_timms_loader_and_class_mask(tmp_path, weights, among, classes):
    """`output[:, indices]`, as timm's validation and natural-adv-examples have it."""
    images = paint_set(tmp_path / among, classes)
    report = predict(images, tmp_path / "study", weights, among=among)
    info = Path(timm.__file__).parent / "data" / "_info"
    file = info / f"{among.replace('-', '_')}_indices.txt"
    indices = [int(line) for line in file.read_text().split()]
    assert [WNIDS[number] for number in indices] == list(classes.names)
    for name in NAMES:
        outputs, targets = timm_outputs(images, weights, name)
        probabilities, labels = outputs[:, indices].softmax(-1).topk(5)
        rows = table(tmp_path / "study", name)
        expected = np.asarray(classes.names)[labels.numpy()]
        assert rows.select("^label_.$").to_numpy().tolist() == expected.tolist()
        found = rows.select("^probability_.$").to_numpy()
        np.testing.assert_allclose(found, probabilities.numpy(), rtol=2e-4)
        right = (labels[:, 0] == 16 * targets).float().mean().item()
        row = report.table.row(by_predicate=pl.col("classifier") == name, named=True)
        assert row["top1"] == pytest.approx(right)


def test_the_argmax_of_all_outputs_is_the_other_convention(tmp_path, adversarial, weights):
    """As natural-adv-examples' pull request 15 would have it: right only where it is the label."""
    predict(adversarial, tmp_path / "study", weights, ["test_vit"], among="all")
    outputs, targets = timm_outputs(adversarial, weights, "test_vit")
    rows = table(tmp_path / "study", "test_vit")
    assert rows["label_1"].to_list() == [WNIDS[k] for k in outputs.argmax(1).tolist()]
    numbers = np.array([WNIDS.index(A_CLASSES.names[16 * k]) for k in targets.tolist()])
    assert rows["correct"].to_list() == (outputs.argmax(1).numpy() == numbers).tolist()
    # Neither is taken for the other in a later run.
    facts = {"setting": "among", "earlier_value": "all classes"}
    with refused(PredictionError, "predictions-made-otherwise", facts):
        predict(adversarial, tmp_path / "study", weights, ["test_vit"], among="imagenet-a")
    predict(adversarial, tmp_path / "study", weights, ["test_vit"], among="imagenet-a", force=True)
    with refused(PredictionError, "predictions-made-otherwise", {"value": "all classes"}):
        predict(adversarial, tmp_path / "study", weights, ["test_vit"], among="all")


def test_200_of_the_1000_classes_are_refused_until_it_is_said(tmp_path, weights):
    for name, classes in (("imagenet-a", A_CLASSES), ("imagenet-r", R_CLASSES)):
        for number, wnid in enumerate(classes.names):
            paint(tmp_path / name / wnid / f"{number}.png", number, (4, 4))
        facts = {"seen_count": 200, "image_count": 200, "among": name}
        with refused(PredictionError, "images-of-few-classes", facts):
            predict(tmp_path / name, tmp_path / "study", weights)
    # Without some of them, too; a set with one class more is another.
    for wnid in A_CLASSES.names[:99]:
        shutil.rmtree(tmp_path / "imagenet-a" / wnid)
    with refused(PredictionError, "images-of-few-classes", {"seen_count": 101}):
        predict(tmp_path / "imagenet-a", tmp_path / "study", weights)
    paint(tmp_path / "imagenet-a" / OTHERS[0] / "0.png", 0, (4, 4))
    report = predict(tmp_path / "imagenet-a", tmp_path / "study", weights, ["test_vit"])
    assert (report.among, report.outside, report.table["images"].item()) == ("", 0, 102)


@pytest.mark.parametrize(("count", "classes", "warned"), [(199, 3, 0), (200, 3, 1), (200, 100, 0)])
def test_few_classes_of_anybodys_choice_are_told(tmp_path, count, classes, warned):
    for number in range(count):
        place = tmp_path / "few" / WNIDS[100 + number % classes]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.png").write_bytes(b"")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_few_classes(list_images(tmp_path / "few"), tmp_path / "few")
    assert len(caught) == warned
    for each in caught:
        assert each.category is PredictionWarning
        assert "are of 3 of the 1,000 ImageNet classes, and answers are among all" in str(
            each.message
        )


def test_images_of_other_classes_are_passed_over_and_counted(capsys, tmp_path, weights):
    """The validation images of ImageNet-A's classes, among these: what -A is held against."""
    images, study = tmp_path / "val", tmp_path / "study"
    for number, wnid in enumerate([*A_CLASSES.names[:6], *OTHERS[:3]]):
        paint(images / wnid / f"{number}.png", number)
    command = ["predict", "--images", f"a={images}", "--study", study, "--classifiers"]
    command += ["test_vit", "--weights", weights, "--quiet", "--among", "imagenet-a"]
    with quiet():
        assert main([*map(str, command), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["outside"] == 3
    assert said["among"].startswith("argmax and softmax among the 200 classes of imagenet-a")
    provenance = json.loads((study / layout.PROVENANCE_FILE).read_text())
    assert provenance == {"among": {"a": said["among"]}}
    rows = table(study, "test_vit")
    assert sorted(rows["label"]) == sorted(A_CLASSES.names[:6])
    assert set(rows["label_1"]) <= set(A_CLASSES.names)
    file = study / layout.prediction_file("a", "test_vit")
    facts = json.loads(pl.read_parquet_metadata(file)["bayesrep"])
    assert facts["among"].startswith("argmax and softmax among 200, n01498041 to n12267677, ")
    assert main([*map(str, command)]) == 0
    assert "3 images of other classes are passed over" in capsys.readouterr().out
    (tmp_path / "others.txt").write_text("\n".join(A_CLASSES.names[7:9]))
    violation = refusal([*command[:-1], tmp_path / "others.txt"])
    assert violation.rule == "no-image-of-chosen-classes"


def test_a_study_that_counts_images_of_other_classes(tmp_path, weights):
    """They would be missed; where it counts others alone, its manifest says what answers are."""
    images, study = tmp_path / "val", tmp_path / "study"
    for number, wnid in enumerate([*A_CLASSES.names[:3], OTHERS[0]]):
        paint(images / wnid / f"{number}.png", number)
    names = sorted(str(file.relative_to(images)) for file in images.rglob("*.png"))
    outside = next(name for name in names if name.startswith(OTHERS[0]))
    for counted in (names, [name for name in names if name != outside]):
        ones = np.ones(len(counted), dtype=int)
        data = {"images": counted, "selected": ones, "shown": 2 * ones}
        data["correct"] = np.ones((len(counted), 1), dtype=bool)
        bayesrep.Study.from_arrays(
            reference={"name": "a", **data},
            replication={"name": "b", **data},
            classifiers=["other"],
        ).write(study, force=study.exists())
        if counted == names:
            facts = {"images": [outside], "among": "imagenet-a"}
            with refused(StudyError, "study-counts-images-of-other-classes", facts):
                predict(images, study, weights, ["test_vit"], among="imagenet-a")
    report = predict(images, study, weights, ["test_vit"], among="imagenet-a")
    assert (len(table(study, "test_vit")), report.outside) == (3, 0)
    said = json.loads((study / layout.MANIFEST_FILE).read_text())["provenance"]["among"]
    assert said == {"a": report.among}
    predict(images, study, weights, ["test_vit"], among="all", force=True)
    assert "among" not in json.loads((study / layout.MANIFEST_FILE).read_text())["provenance"]


@pytest.mark.parametrize("by", ["wnids", "numbers", "folder"])
def test_classes_are_given_by_names_numbers_or_folders(tmp_path, by):
    numbers = [7, 1, 999]
    source = tmp_path / "classes"
    if by == "folder":
        for number in numbers:
            (source / WNIDS[number]).mkdir(parents=True)
    else:
        lines = [str(n) if by == "numbers" else WNIDS[n] for n in numbers]
        source.write_text("\ufeff# three\n" + "\n".join(f" {line} " for line in lines))
    among = read_class_subset(source)
    assert among.chosen.names == (WNIDS[1], WNIDS[7], WNIDS[999])
    assert among.chosen.outputs == ((1,), (7,), (999,))
    assert among.numbers[[1, 7, 999]].tolist() == [0, 1, 2]
    assert (among.numbers >= 0).sum() == 3


def test_classes_that_are_none_or_twice_are_refused(tmp_path):
    file = tmp_path / "classes.txt"
    file.write_text(f"{WNIDS[0]}\nn00000000\n{WNIDS[1]}\n12\n")
    with refused(PredictionError, "chosen-class-unknown", {"classes": ["n00000000", "12"]}):
        read_class_subset(file)
    file.write_text("0\n999\n1000\n")
    with refused(PredictionError, "chosen-class-unknown", {"classes": ["1000"]}):
        read_class_subset(file)
    file.write_text(f"{WNIDS[0]}\n{WNIDS[1]}\n{WNIDS[0]}\n")
    with refused(PredictionError, "chosen-class-repeated", {"classes": [WNIDS[0]]}):
        read_class_subset(file)
    file.write_text(f"{WNIDS[0]}\n")
    with refused(PredictionError, "chosen-classes-too-few"):
        read_class_subset(file)
    with refused(PredictionError, "chosen-classes-missing", {"among": "imagenet-b"}):
        read_class_subset("imagenet-b")


def test_200_folders_of_which_3_are_unknown(tmp_path, weights):
    for number, wnid in enumerate(A_CLASSES.names[:197]):
        paint(tmp_path / "images" / wnid / f"{number}.png", number, (4, 4))
    unknown = ["n00000001", "n00000002", "n00000003"]
    for wnid in unknown:
        paint(tmp_path / "images" / wnid / "0.png", 0, (4, 4))
    for among in ("imagenet-a", "all", None):
        with refused(PredictionError, "folders-not-named-by-class", {"folders": unknown}):
            predict(tmp_path / "images", tmp_path / "study", weights, among=among)
    with refused(PredictionError, "chosen-class-unknown", {"classes": unknown}):
        read_class_subset(tmp_path / "images")


# ObjectNet

OBJECTS = {  # as it calls its classes: the words of ImageNet's
    "Alarm clock": "clock of hands; clock of digits",
    "Banana": "banana",
    "Chair": "seat, of a barber; seat, folding",
}
OBJECT_FOLDERS = ("alarm_clock", "banana", "chair")
OTHER_OBJECTS = ("Air freshener", "Tablet / iPad")
COPIES = 4  # images of each class, twelve of the three that ImageNet has


@pytest.fixture
def objects(tmp_path):
    """ObjectNet's folders images and mappings, in its form."""
    wnids = {"clock of hands": 409, "clock of digits": 530, "banana": 954}
    wnids |= {"seat, of a barber": 423, "seat, folding": 559}
    root, order = tmp_path / "objectnet-1.0", np.random.default_rng(0).permutation(1000)
    (root / "mappings").mkdir(parents=True)
    words = [""] * 1000
    for number in range(1000):
        words[order[number]] = f"thing {number}"
    for word, number in wnids.items():
        words[order[number]] = word
    (root / "mappings" / "imagenet_to_label_2012_v2").write_text("\n".join(words) + "\n")
    lines = {str(number): int(line) for number, line in enumerate(order)}
    called = dict(zip(OBJECT_FOLDERS, OBJECTS, strict=True))
    called |= {name.lower().replace(" / ", "_"): name for name in OTHER_OBJECTS}
    for name, content in (
        ("pytorch_to_imagenet_2012_id", lines),
        ("objectnet_to_imagenet_1k", OBJECTS),
        ("folder_to_objectnet_label", called),
    ):
        (root / "mappings" / f"{name}.json").write_text(json.dumps(content))
    for number, place in enumerate(called):
        for copy in range(COPIES):
            file = root / "images" / place / f"{10 * number + copy}.png"
            paint_odd(file, COPIES * number + copy)
    return root


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_classes_of_objectnet_have_the_largest_of_their_outputs(tmp_path, objects, weights):
    study = tmp_path / "study"
    report = predict(objects / "images", study, weights, among=objects / "mappings")
    assert report.outside == 2 * COPIES
    shown = sorted(place.name for place in (objects / "images").iterdir())
    places = [
        COPIES * shown.index(name) + copy for name in OBJECT_FOLDERS for copy in range(COPIES)
    ]
    groups = ([409, 530], [954], [423, 559])
    for name in NAMES:
        outputs, _ = timm_outputs(objects / "images", weights, name)
        merged = torch.stack([outputs[places][:, group].amax(1) for group in groups], 1)
        probabilities, labels = merged.softmax(-1).sort(-1, descending=True)
        read = table(study, name)
        assert read["label"].to_list() == [name for name in OBJECTS for _ in range(COPIES)]
        expected = np.asarray(list(OBJECTS))[labels.numpy()]
        assert read.select("^label_.$").to_numpy().tolist() == expected.tolist()
        found = read.select("^probability_.$").to_numpy()
        np.testing.assert_allclose(found, probabilities.numpy(), rtol=2e-4)


def test_maps_of_objectnet_that_are_not_whole(objects):
    words = objects / "mappings" / "imagenet_to_label_2012_v2"
    words.write_text(words.read_text().replace("banana", "plantain"))
    with refused(PredictionError, "objectnet-map-incomplete", {"classes": ["banana"]}):
        read_class_subset(objects / "mappings")
    words.write_text("\n".join(words.read_text().splitlines()[1:]))
    with refused(PredictionError, "objectnet-lines-disagree", {"line_count": 999}):
        read_class_subset(objects / "mappings")
    (objects / "mappings" / "folder_to_objectnet_label.json").write_text("[]")
    with refused(PredictionError, "objectnet-file-not-map"):
        read_class_subset(objects / "mappings")
