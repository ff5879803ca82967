"""Outputs that are kept, and several data sets together: the answers of one run of each."""

import io
import json
import os
import shutil
import sys
import tarfile
import textwrap
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image
from refusals import check, refusal, refused
from small_networks import kill_evaluation, paint, quiet, save_weights

import bayesrep
from bayesrep.cli import main
from bayesrep.errors import PredictionError
from bayesrep.studies import layout
from bayesrep.studies.imagenet import synsets
from bayesrep.vision import predict_from_logits, predict_sets, read_suite
from bayesrep.vision.class_subset import read_class_subset
from bayesrep.vision.classes import IMAGENET
from bayesrep.vision.evaluation_set import ImageSource
from bayesrep.vision.forward import TopFive, compute_probabilities, rank_probabilities
from bayesrep.vision.logits import KeptLogits, read_logits
from bayesrep.vision.prediction_store import Results
from bayesrep.vision.torch_loading import load_timm

timm = load_timm()
import torch

TIMM = Path(__file__).resolve().parents[2] / "shared" / "data" / "timm-results"
WNIDS = synsets()
NAMES = ["test_vit", "test_resnet"]
CHOICE = [WNIDS[number] for number in (5, 50, 500, 505, 900)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Weights, two sets of images, a list of classes, and the plain study of both sets."""
    root = tmp_path_factory.mktemp("place")
    save_weights(root / "weights", NAMES)
    for number in range(30):
        paint(root / "val" / CHOICE[number % 5] / f"{number}.png", number)
        v2 = root / "v2" / [*CHOICE, WNIDS[8]][number % 6]
        paint(v2 / f"{100 + number}.png", 100 + number)
    (root / "classes.txt").write_text("\n".join(CHOICE))
    suite = f"""
        [val]
        images = "val"

        ["val, few"]
        images = "val"
        among = "classes.txt"

        [v2]
        images = "{root / "v2"}"
        among = "classes.txt"
    """
    (root / "suite.toml").write_text(textwrap.dedent(suite))
    for dataset, images, among in SETS:
        chosen = root / "classes.txt" if among else None
        predict(root, root / "single", dataset, root / images, among=chosen)
    return root


SETS = (("val", "val", False), ("val, few", "val", True), ("v2", "v2", True))


@quiet()
def predict(place, study, dataset="val", images=None, **options):
    return bayesrep.predict(
        *(images or place / "val", dataset, NAMES, study),
        weights=place / "weights",
        progress=False,
        **options,
    )


@quiet()
def from_logits(logits, study, dataset, **options):
    return predict_from_logits(logits, dataset, study, **options)


@quiet()
def together(place, study, **options):
    suite, options = read_suite(place / "suite.toml"), options | {"progress": False}
    return predict_sets(suite, NAMES, study, weights=place / "weights", **options)


def table(study, dataset, name):
    return pl.read_parquet(study / layout.prediction_file(dataset, name))


def assert_same(one, other, datasets=("val", "val, few", "v2"), names=NAMES):
    for dataset in datasets:
        for name in names:
            assert table(one, dataset, name).equals(table(other, dataset, name)), (dataset, name)


@pytest.fixture
def kept(tmp_path, place):
    """A study with the outputs on val."""
    predict(place, tmp_path / "study", keep="logits")
    return tmp_path / "study"


# Kept outputs


def test_answers_of_kept_outputs_are_those_of_the_networks_to_the_bit(monkeypatch, place, kept):
    assert_same(place / "single", kept, ["val"])  # keeping changes nothing
    monkeypatch.setattr(sys.modules["bayesrep.vision.pixels"], "decode", None)
    logits = kept / "logits" / "val"
    report = from_logits(logits, kept, "val, few", among=place / "classes.txt")
    assert report.table["status"].to_list() == ["done"] * 2
    assert report.outside == 0
    assert_same(place / "single", kept, ["val, few"])
    from_logits(logits, kept, "val again")
    for name in NAMES:
        assert table(kept, "val again", name).equals(table(kept, "val", name))
        made = [
            json.loads(pl.read_parquet_metadata(kept / layout.prediction_file(d, name))["bayesrep"])
            for d in ("val", "val again")
        ]
        assert made[0] == made[1]
    # All images of a classifier are one part: fifty thousand are not two thousand files.
    added, add = [], Results.add
    monkeypatch.setattr(Results, "add", lambda *given: added.append(1) or add(*given))
    from_logits(logits, kept, "val once more")
    assert len(added) == 2
    again = from_logits(logits, kept, "val, few", among=place / "classes.txt")
    assert again.table["status"].to_list() == ["already done"] * 2


@pytest.mark.parametrize("rows", [1, 7, 24])
def test_answers_on_an_image_do_not_depend_on_the_other_rows(rows):
    """Also where outputs are equal: so they are those of a run, in whatever numbers they come."""
    outputs = 5 * torch.randn(96, 1000, generator=torch.Generator().manual_seed(0))
    outputs[:40] = outputs[:40].round()
    for classes in (IMAGENET, read_class_subset("imagenet-a").chosen):
        whole, *parts = (
            rank_probabilities(compute_probabilities(part, classes), 0.0)
            for part in (outputs, *outputs.split(rows))
        )
        joined = TopFive.concatenate(parts)
        np.testing.assert_array_equal(joined.labels, whole.labels)
        np.testing.assert_array_equal(joined.probabilities, whole.probabilities)


def test_kept_outputs_of_some_of_the_images(monkeypatch, tmp_path, place, kept):
    """Another run has other batches, and of those networks give other last digits."""
    (tmp_path / "fewer.txt").write_text("\n".join(CHOICE[1:4]))
    report = from_logits(kept / "logits" / "val", kept, "fewer", among=tmp_path / "fewer.txt")
    assert report.outside == 12
    predict(place, tmp_path / "study", "fewer", among=tmp_path / "fewer.txt")
    for name in NAMES:
        one, other = table(kept, "fewer", name), table(tmp_path / "study", "fewer", name)
        assert one.drop(pl.selectors.float()).equals(other.drop(pl.selectors.float()))
        np.testing.assert_allclose(one["probability_1"], other["probability_1"], rtol=1e-4)


def test_other_labels_are_held_against_kept_outputs(tmp_path, place, kept):
    names = table(kept, "val", NAMES[0])["image"].to_list()
    right = dict(zip(names, table(kept, "val", NAMES[0])["label_1"], strict=True))
    lines = "".join(f"{name} {label}\n" for name, label in right.items())
    (tmp_path / "labels.txt").write_text(lines)
    logits, labels = kept / "logits" / "val", tmp_path / "labels.txt"
    report = from_logits(logits, kept, "relabelled", labels=labels)
    assert dict(report.table.select("classifier", "top1").rows())[NAMES[0]] == 1


def test_what_is_kept_is_an_array_that_anything_reads(place, kept):
    folder_ = kept / "logits" / "val" / "test_vit"
    values = np.load(folder_ / "logits.npy", mmap_mode="r")
    assert values.shape == (30, 1000)
    assert values.dtype == np.float32
    rows = pl.read_parquet(folder_ / "images.parquet")
    answers = table(kept, "val", "test_vit")
    assert rows["image"].equals(answers["image"])
    assert [WNIDS[k] for k in values.argmax(1)] == answers["label_1"].to_list()
    assert np.load(folder_ / "contents.npy").tolist() == answers["content"].to_list()


def test_halved_networks_are_kept_in_half_the_room(tmp_path, place):
    study = tmp_path / "study"
    predict(place, study, keep="logits", precision="float16")
    values = np.load(study / "logits" / "val" / "test_vit" / "logits.npy")
    assert values.dtype == np.float16
    few = place / "classes.txt"
    predict(place, study, "direct", precision="float16", among=few)
    from_logits(study / "logits" / "val", study, "few", among=few)
    for name in NAMES:
        assert table(study, "few", name).equals(table(study, "direct", name))


def test_outputs_follow_images_that_come_go_and_change(tmp_path, place):
    """None is kept of an image that has gone, or of what a file held before."""
    images, study = tmp_path / "images", tmp_path / "study"
    shutil.copytree(place / "val", images)
    predict(place, study, images=images)  # first without keeping: answers are there, outputs not
    report = predict(place, study, images=images, keep="logits")
    assert report.table["status"].to_list() == ["done"] * 2
    names = sorted(str(file.relative_to(images)) for file in images.rglob("*.png"))
    (images / names[3]).unlink()
    paint((images / names[4]).with_name("777.png"), 777)
    Image.new("RGB", (30, 30), "red").save(images / names[5])
    predict(place, study, images=images, keep="logits")
    predict(place, tmp_path / "fresh", images=images, keep="logits")
    for name in NAMES:
        fresh, later = table(tmp_path / "fresh", "val", name), table(study, "val", name)
        assert fresh.drop(pl.selectors.float()).equals(later.drop(pl.selectors.float()))
        one, other = (read_logits(s / "logits" / "val" / name) for s in (study, tmp_path / "fresh"))
        assert one.table.equals(other.table)
        np.testing.assert_allclose(one.values, other.values, atol=1e-4)  # of other batches
        np.testing.assert_array_equal(one.contents, other.contents)
    again = predict(place, study, images=images, keep="logits")
    assert again.table["status"].to_list() == ["already done"] * 2


def test_a_run_that_is_killed_while_it_keeps_outputs_goes_on(tmp_path, place):
    study = tmp_path / "study"
    given = (place / "val", "val", NAMES, study)
    kill_evaluation(*given, weights=place / "weights", keep="logits", parts=2, pause=60)
    marks = np.load(study / "logits" / "val" / "test_vit" / "contents.npy")
    assert (marks != 0).sum() == 24
    # What is there is used, what is not is said.
    report = from_logits(study / "logits" / "val", tmp_path / "half", "val", allow_failures=True)
    assert report.failures["reason"].to_list() == ["no outputs of it are kept"] * 6
    predict(place, study, keep="logits")
    assert_same(place / "single", study, ["val"])
    from_logits(study / "logits" / "val", study, "val, few", among=place / "classes.txt")
    assert_same(place / "single", study, ["val, few"])


def test_a_disk_without_the_room_is_refused_before_anything_is_made(monkeypatch, tmp_path, place):
    free = shutil._ntuple_diskusage(10**9, 10**9, 239_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    facts = {"gigabytes": 2 * 30 * 1000 * 4 / 1e9, "free_gigabytes": 0.000239}
    with refused(PredictionError, "no-room-for-logits", facts):
        predict(place, tmp_path / "study", keep="logits")
    assert not (tmp_path / "study").exists()
    # A disk that fills up after all: nothing half made is left.
    monkeypatch.undo()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with refused(PredictionError, "logits-not-writable", {"reason": "No space left on device"}):
        predict(place, tmp_path / "study", keep="logits")
    assert list((tmp_path / "study" / "logits" / "val").iterdir()) == []


def test_a_run_that_ends_while_it_takes_the_room_leaves_no_classifier(monkeypatch, tmp_path, place):
    def stopped(*_):
        raise KeyboardInterrupt

    logits = tmp_path / "study" / "logits" / "val"
    monkeypatch.setattr(sys.modules["bayesrep.vision.logits"], "write", stopped)
    with pytest.raises(KeyboardInterrupt):
        predict(place, tmp_path / "study", keep="logits")
    monkeypatch.undo()
    assert list(logits.iterdir())
    with refused(PredictionError, "logits-folder-empty"):
        predict_from_logits(logits, "again", tmp_path / "study")
    predict(place, tmp_path / "study", keep="logits")
    assert sorted(each.name for each in logits.iterdir()) == sorted(NAMES)


def test_the_room_is_said_before_it_begins(capsys, tmp_path, place):
    given = (place / "val", "val", NAMES[:1], tmp_path / "study")
    with quiet():
        bayesrep.predict(*given, weights=place / "weights", keep="logits")
    said = capsys.readouterr().err
    assert f"logits: 0.00 GB are kept in {tmp_path / 'study' / 'logits'}" in said


def rewrite(place, **changed):
    file = place / "images.parquet"
    facts = json.loads(pl.read_parquet_metadata(file)["bayesrep"]) | changed
    pl.read_parquet(file).write_parquet(file, metadata={"bayesrep": json.dumps(facts)})


def forget(place):
    """What the file says of itself."""
    file = place / "images.parquet"
    pl.read_parquet(file).write_parquet(file)


@pytest.mark.parametrize(
    ("harm", "rule"),
    [
        (lambda place: rewrite(place, logits=2), "logits-of-another-version"),
        (lambda place: rewrite(place, outputs=["a", "b"]), "logits-unreadable"),
        (lambda place: (place / "logits.npy").write_bytes(b"\x93NUMPY"), "logits-unreadable"),
        (lambda place: os.truncate(place / "logits.npy", 5000), "logits-unreadable"),
        (lambda place: (place / "contents.npy").unlink(), "logits-unreadable"),
        (lambda place: (place / "images.parquet").write_bytes(b"PAR1"), "parquet-file-unreadable"),
        (forget, "logits-of-another-version"),
        (lambda place: np.save(place / "contents.npy", np.zeros(30)), "logits-unreadable"),
    ],
)
def test_kept_outputs_of_another_version_or_damaged(place, kept, harm, rule):
    harm(kept / "logits" / "val" / "test_vit")
    with refused(PredictionError, rule):
        predict_from_logits(kept / "logits" / "val", "again", kept)
    with refused(PredictionError, rule):
        predict(place, kept, keep="logits")
    predict(place, kept, keep="logits", force=True)
    assert len(from_logits(kept / "logits" / "val", kept, "again").table) == 2


def test_outputs_made_otherwise_or_of_other_images(place, kept):
    logits = kept / "logits" / "val"
    shutil.rmtree(kept / "predictions")
    with refused(PredictionError, "logits-made-otherwise", {"setting": "precision"}):
        predict(place, kept, keep="logits", precision="bfloat16")
    with refused(PredictionError, "logits-lack-classifiers", {"classifiers": ["resnet50"]}):
        predict_from_logits(logits, "again", kept, classifiers=["resnet50"])
    for other in (logits.parent / "v2", logits.parent, kept):
        with refused(PredictionError, "logits-folder-empty"):
            predict_from_logits(other, "again", kept)
    file = logits / "test_resnet" / "images.parquet"
    facts = pl.read_parquet_metadata(file)["bayesrep"]
    renamed = pl.read_parquet(file).with_columns(image=pl.col("image") + "x")
    renamed.write_parquet(file, metadata={"bayesrep": facts})
    with refused(PredictionError, "logits-of-different-images", {"classifiers": ["test_vit"]}):
        predict_from_logits(logits, "again", kept)


def test_rows_reach_the_disk_before_what_says_so(monkeypatch, place, kept):
    order = []
    flush = np.memmap.flush
    monkeypatch.setattr(np.memmap, "flush", lambda array: order.append(array.ndim) or flush(array))
    through = KeptLogits.flush
    monkeypatch.setattr(KeptLogits, "flush", lambda each: order.append(0) or through(each))
    predict(place, kept, keep="logits", force=True)
    assert [2, 1] * 2 == [n for n in order if n][-4:]


# Several data sets


def test_a_suite_gives_what_single_runs_give_to_the_bit(monkeypatch, tmp_path, place):
    loads = Counter()
    module = sys.modules["bayesrep.vision.run_local"]
    load = module.load_network
    monkeypatch.setattr(module, "load_network", lambda a, d: loads.update([a.name]) or load(a, d))
    decoded = []
    pixels = sys.modules["bayesrep.vision.pixels"]
    decode = pixels.decode
    monkeypatch.setattr(pixels, "decode", lambda data: decoded.append(1) or decode(data))
    reports = together(place, tmp_path / "study")
    assert list(reports) == ["val", "val, few", "v2"]
    assert [report.outside for report in reports.values()] == [0, 0, 5]
    assert loads == dict.fromkeys(NAMES, 1)
    assert len(decoded) == 30 + 30 + 25
    assert_same(place / "single", tmp_path / "study")
    # One classifier in memory at a time: still every image of a set is decoded once.
    monkeypatch.setattr(module, "weights_budget", lambda _: 0)
    together(place, tmp_path / "passes")
    assert len(decoded) == 2 * 85
    assert_same(place / "single", tmp_path / "passes")
    assert not list((tmp_path / "passes").rglob(".pixels"))
    again = together(place, tmp_path / "study")
    for report in again.values():
        assert report.table["status"].to_list() == ["already done"] * 2


def test_images_of_a_tar_gz_get_the_answers_of_its_folder(tmp_path, place):
    packed, study = tmp_path / "v2.tar.gz", tmp_path / "study"
    with tarfile.open(packed, "w:gz") as archive:
        for file in sorted((place / "v2").rglob("*.png"), reverse=True):
            archive.add(file, file.relative_to(place / "v2"))
    predict(place, study, "v2", packed, among=place / "classes.txt")
    assert_same(place / "single", study, ["v2"])
    again = predict(place, study, "v2", packed, among=place / "classes.txt")
    assert again.table["status"].to_list() == ["already done"] * 2


def test_a_suite_goes_on_where_it_was_stopped(monkeypatch, tmp_path, place):
    study = tmp_path / "study"
    predict(place, study, "v2", place / "v2", among=place / "classes.txt")
    shutil.rmtree(study / "predictions")
    module = sys.modules["bayesrep.vision.run_local"]
    through, passed = module.through_images, []

    def interrupted(*arguments):
        for results in through(*arguments):
            passed.append(len(results.rows))
            yield results
            if len(passed) == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(module, "through_images", interrupted)
    with pytest.raises(KeyboardInterrupt):
        together(place, study)
    monkeypatch.setattr(module, "through_images", through)
    # One classifier is done on the first set, the other is to do everywhere.
    done = study / layout.prediction_file("val", NAMES[0])
    assert done.exists()
    (study / layout.prediction_file("val", NAMES[1])).unlink()
    before = done.stat().st_mtime_ns
    reports = together(place, study)
    assert reports["val"].table["status"].to_list() == ["already done", "done"]
    assert done.stat().st_mtime_ns == before
    assert_same(place / "single", study)


def test_a_suite_on_the_command_line(capsys, tmp_path, place):
    words = ["predict", "--suite", place / "suite.toml", "--study", tmp_path / "study"]
    words += ["--classifiers", "test_vit", "--weights", place / "weights"]
    words += ["--keep", "logits", "--results", tmp_path / "results"]
    with quiet():
        assert main([*map(str, words), "--json"]) == 0
        heard = capsys.readouterr()
        said = json.loads(heard.out)
        assert "3 of 3 evaluations" in heard.err
        assert [row["dataset"] for row in said["rows"]] == ["val", "val, few", "v2"]
        assert said["sets"]["v2"]["outside"] == 5
        assert main([*map(str, words)]) == 0
        text = capsys.readouterr().out
        assert main([*map(str, words), "--format", "csv"]) == 0
    assert text.count("already done") == 3
    printed = pl.read_csv(io.StringIO(capsys.readouterr().out))
    assert printed["dataset"].to_list() == ["val", "val, few", "v2"]
    assert_same(place / "single", tmp_path / "study", names=["test_vit"])
    files = sorted(file.name for file in (tmp_path / "results").iterdir())
    assert files == ["results-v2.csv", "results-val%2C%20few.csv", "results-val.csv"]
    logits = tmp_path / "study" / "logits" / "val"
    again = ["predict", "--from-logits", f"again={logits}", "--study"]
    again += [tmp_path / "study", "--among", place / "classes.txt"]
    with quiet():
        assert main([*map(str, again)]) == 0
    assert "argmax and softmax among the 5 classes" in capsys.readouterr().out
    one = table(tmp_path / "study", "again", "test_vit")
    assert one.equals(table(place / "single", "val, few", "test_vit"))


def test_options_that_do_not_go_together(capsys, tmp_path, place):
    suite = ["predict", "--suite", place / "suite.toml", "--study", tmp_path]
    suite += ["--classifiers", "test_vit"]
    both = {"options": "--images and --suite"}
    check(refusal([*suite, "--images", f"a={place / 'val'}"]), "predict-of-several-kinds", both)
    alone = {"options": "--among"}
    check(refusal([*suite, "--among", "all"]), "predict-option-without-use", alone)
    two = ["predict", "--images", *(f"{name}={place / 'val'}" for name in "ab")]
    two += ["--labels", tmp_path, "--study", tmp_path, "--classifiers", "test_vit"]
    check(refusal(two), "labels-of-several-data-sets")
    kept = ["predict", "--from-logits", f"a={tmp_path}", "--study", tmp_path]
    violation = refusal([*kept, "--keep", "logits", "--precision", "float32"])
    assert violation.facts["options"] == "--keep, --precision"


@pytest.mark.parametrize(
    ("text", "rule", "facts"),
    [
        ('[v1]\nimages = "a"\n[v1]\nimages = "b"', "suite-unreadable", {}),
        ('[v1]\nimages = "a"\n["v1 "]\nimages = "b"', "suite-data-set-repeated", {"dataset": "v1"}),
        ('[v1]\nlabels = "a"', "suite-data-set-without-images", {"dataset": "v1"}),
        ('v1 = "a"', "suite-data-set-without-images", {"dataset": "v1"}),
        ('[v1]\nimages = "a"\nlabel = "b"', "suite-option-unknown", {"options": ["label"]}),
        ('[v1]\nimages = "a"\namong = 200', "suite-option-not-text", {"options": ["among"]}),
        ("[v1", "suite-unreadable", {}),
        ("", "suite-without-data-sets", {}),
    ],
)
def test_a_suite_that_cannot_be_read_is_one_line(tmp_path, text, rule, facts):
    file = tmp_path / "suite.toml"
    file.write_text(text)
    with refused(PredictionError, rule, {"file": str(file), **facts}):
        read_suite(file)


def test_a_set_without_labels_is_refused_before_the_first_begins(tmp_path, place):
    (tmp_path / "flat").mkdir()
    Image.new("RGB", (9, 9)).save(tmp_path / "flat" / "a.png")
    sets = {"val": ImageSource(place / "val"), "flat": ImageSource(tmp_path / "flat")}
    with refused(PredictionError, "flat-images-without-labels"):
        predict_sets(sets, NAMES, tmp_path / "study", weights=place / "weights", progress=False)
    assert not (tmp_path / "study").exists()


# Tables as timm has them


def test_columns_are_those_of_timms_results():
    from bayesrep.vision.timm_tables import COLUMNS

    file = TIMM / "results-imagenet.csv"
    if not file.exists():
        pytest.skip("timm's published results are not beside the project")
    published = pl.read_csv(file, infer_schema=False)
    assert sorted(published.columns) == sorted(COLUMNS)
    assert published["top1"].str.contains(r"^\d+\.\d{3}$").all()


def test_results_are_in_timms_columns_and_digits(tmp_path, place):
    from bayesrep.vision import make_timm_table

    study = tmp_path / "study"
    report = predict(place, study)
    made = make_timm_table(report, study, "val")
    made.write_csv(tmp_path / "results.csv")
    header = (tmp_path / "results.csv").read_text().splitlines()[0]
    columns = "model,img_size,top1,top1_err,top5,top5_err,param_count,crop_pct,interpolation"
    assert header == columns
    for row in made.iter_rows(named=True):
        name = row["model"].split(".")[0]
        module = timm.create_model(name)
        config = timm.data.resolve_data_config(model=module, use_test_size=True)
        answers = table(study, "val", name)
        assert row["top1"] == f"{100 * answers['correct'].mean():.3f}"
        assert float(row["top1"]) + float(row["top1_err"]) == pytest.approx(100)
        assert row["img_size"] == str(config["input_size"][-1])
        assert row["crop_pct"] == f"{config['crop_pct']:.3f}"
        assert row["interpolation"] == config["interpolation"]
        parameters = sum(each.numel() for each in module.parameters())
        assert row["param_count"] == f"{parameters / 1e6:.2f}"


def test_a_preprocessing_that_is_none_leaves_its_columns_empty(tmp_path, place):
    from bayesrep.vision import make_timm_table

    study = tmp_path / "study"
    report = predict(place, study)
    file = study / layout.prediction_file("val", NAMES[0])
    facts = json.loads(pl.read_parquet_metadata(file)["bayesrep"])
    sound = facts["preprocessing"]
    columns = ("img_size", "crop_pct", "interpolation")
    for text in (
        "Preprocessing(",
        "x" * 2000,
        "-" * 900 + "1",
        "Preprocessing(size={[]: 1})",
        sound.replace("Preprocessing", "open"),
        sound.replace("crop_pct=", "crop_pct='x', crop="),
        sound.replace("crop_pct=", "crop_pct=1e999, crop="),
        sound.replace("size=(", "size=(*"),
    ):
        assert text != sound
        changed = json.dumps({**facts, "preprocessing": text})
        pl.read_parquet(file).write_parquet(file, metadata={"bayesrep": changed})
        made = make_timm_table(report, study, "val").to_dicts()
        rows = {row["model"].split(".")[0]: row for row in made}
        assert {rows[NAMES[0]][name] for name in columns} == {""}, text
        assert "" not in {rows[NAMES[1]][name] for name in columns}
