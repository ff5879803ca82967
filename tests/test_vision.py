"""Evaluating classifiers: pixels to the bit, answers, resuming, failures, weights, catalogs."""

import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import time
import tracemalloc
import warnings
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile, UnidentifiedImageError
from refusals import check, refusal, refused
from small_networks import evaluate, paint, quiet, save_weights

import bayesrep
from bayesrep.cli import main
from bayesrep.errors import PredictionError, PredictionWarning, StudyError
from bayesrep.studies import layout
from bayesrep.studies.imagenet import synsets
from bayesrep.vision.architectures import describe
from bayesrep.vision.cache import PixelCache
from bayesrep.vision.catalogs import (
    CATALOG_TITLES,
    Entry,
    catalog_names,
    expand_catalogs,
    read_catalog,
)
from bayesrep.vision.devices import Device, choose_device
from bayesrep.vision.forward import in_groups, upload
from bayesrep.vision.image_digests import Contents
from bayesrep.vision.images import list_images
from bayesrep.vision.networks import Network, load_network
from bayesrep.vision.pixels import Preprocessing, decode, explain_failure, read_block
from bayesrep.vision.run import DatasetRun, evaluate_together, open_results
from bayesrep.vision.run_local import Local, in_blocks
from bayesrep.vision.torch_loading import load_timm
from bayesrep.vision.torchvision_networks import data_config, known_names

timm = load_timm()
import torch
from safetensors.torch import save_file

CPU = Device("cpu", "float32", 24)
NAMES = ["test_vit", "test_resnet", "test_byobnet"]
ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT.parent / "shared" / "engstrom2020_table2.csv"


def noise(rng, height, width, channels=3):
    return rng.integers(0, 256, (height, width, channels), dtype=np.uint8)


@pytest.fixture(scope="module")
def odd_images(tmp_path_factory):
    """One image of every kind that loaders stumble over, in one class folder."""
    root = tmp_path_factory.mktemp("odd")
    place = root / synsets()[7]
    place.mkdir()
    rng = np.random.default_rng(3)
    rgb = Image.fromarray(noise(rng, 130, 190))
    rgb.save(place / "plain.jpg", quality=90)
    rgb.save(place / "progressive.JPEG", progressive=True)
    rgb.convert("L").save(place / "grey.jpg")
    rgb.convert("CMYK").save(place / "cmyk.jpg")
    rgb.convert("P").save(place / "palette.png", transparency=bytes(range(256)))
    rgb.convert("1").save(place / "bilevel.png")
    rgb.convert("RGBA").save(place / "alpha.png")
    rgb.convert("L").convert("LA").save(place / "grey-alpha.png")
    deep = rng.integers(0, 65536, (130, 190)).astype(np.uint16)
    Image.fromarray(deep).save(place / "deep.png")
    frames = [Image.fromarray(noise(rng, 60, 50)) for _ in range(3)]
    frames[0].save(place / "animated.gif", save_all=True, append_images=frames[1:])
    exif = Image.Exif()
    exif[0x0112] = 6
    rgb.save(place / "rotated.jpg", exif=exif)
    Image.fromarray(noise(rng, 20, 300)).save(place / "flat.webp")
    Image.fromarray(noise(rng, 1, 1)).save(place / "pixel.bmp")
    return root


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    root = tmp_path_factory.mktemp("weights")
    save_weights(root, NAMES)
    return root


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """50 images in 5 class folders: two whole blocks and a part of one."""
    root = tmp_path_factory.mktemp("pictures")
    for number in range(50):
        paint(root / synsets()[200 * (number % 5)] / f"{number:03d}.JPEG", number, (240, 180))
    return root


@pytest.fixture(scope="module")
def finished(tmp_path_factory, pictures, weights):
    """A study's folder with uninterrupted predictions on v1."""
    study = tmp_path_factory.mktemp("finished") / "study"
    predict(pictures, study, weights)
    return study


@quiet()
def predict(images, study, weights, names=NAMES, dataset="v1", **options):
    return bayesrep.predict(
        images, dataset, names, study, weights=weights, progress=False, **options
    )


def table(study, name, dataset="v1"):
    return pl.read_parquet(study / layout.prediction_file(dataset, name))


def assert_same_predictions(one, other, names=NAMES):
    for name in names:
        assert table(one, name).equals(table(other, name))


def timm_pixels(root, preprocessing):
    """The pixels [N, H, W, 3] by timm's own data set, with the images' names."""
    transform = timm.data.create_transform(
        (3, *preprocessing.size),
        interpolation=preprocessing.interpolation,
        crop_pct=preprocessing.crop_pct,
        crop_mode=preprocessing.crop_mode,
        mean=preprocessing.fill or (0.485, 0.456, 0.406),
        use_prefetcher=True,
    )
    files = sorted(root.glob("*/*"))

    class Reader:
        def __len__(self):
            return len(files)

        def __getitem__(self, number):
            return files[number].open("rb"), 0

    data = timm.data.ImageDataset(str(root), reader=Reader(), transform=transform)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {file.name: data[at][0].permute(1, 2, 0).numpy() for at, file in enumerate(files)}


# Pixels


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
@pytest.mark.parametrize(
    "preprocessing",
    [
        Preprocessing((224, 224), 0.875, "center", "bicubic"),
        Preprocessing((160, 160), 0.95, "center", "bilinear"),
        Preprocessing((96, 96), 1.0, "squash", "bicubic"),
        Preprocessing((64, 64), 0.9, "border", "bicubic", (0.5, 0.25, 0.75)),
        Preprocessing((64, 96), 0.875, "center", "bicubic"),
    ],
    ids=lambda p: f"{p.crop_mode}-{p.interpolation}-{p.size[0]}x{p.size[1]}",
)
def test_pixels_are_timms_to_the_bit(odd_images, preprocessing):
    images = list_images(odd_images)
    rows = np.arange(len(images))
    block = read_block(images, rows, [preprocessing], {})
    assert block.failures == ()
    expected = timm_pixels(odd_images, preprocessing)
    assert len(expected) == 13
    for row, name in enumerate(images.names):
        np.testing.assert_array_equal(block.pixels[preprocessing][row], expected[Path(name).name])


@settings(max_examples=25)
@given(
    width=st.integers(1, 300),
    height=st.integers(1, 300),
    size=st.integers(8, 64),
    crop=st.sampled_from([0.875, 0.9, 0.95, 1.0]),
    filter_=st.sampled_from(["bicubic", "bilinear"]),
)
def test_center_crop_by_pillow_alone(width, height, size, crop, filter_):
    """Independently of timm: shorter side to floor(size / crop), then the middle."""
    image = Image.fromarray(noise(np.random.default_rng(width), height, width))
    shorter = int(size / crop + 1e-9)
    scale = shorter / min(width, height)
    target = (
        (shorter, int(shorter * height / width))
        if width <= height
        else (int(shorter * width / height), shorter)
    )
    assert max(target) >= size, scale
    resized = image.resize(target, getattr(Image.Resampling, filter_.upper()))
    left, top = (int(round((side - size) / 2.0)) for side in target)
    expected = np.asarray(resized.crop((left, top, left + size, top + size)))
    found = Preprocessing((size, size), crop, "center", filter_).apply(image)
    np.testing.assert_array_equal(found, expected)


# timm's data set leaves the files it opens to be collected.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_normalised_input_is_timms_prefetching_loader_to_the_bit(pictures, weights):
    architecture = describe("test_vit", weights)
    seen = []

    class Record(torch.nn.Module):
        def forward(self, x):
            seen.append(x.clone())
            return torch.zeros(len(x), 1000)

    network = Network(architecture, Record(), 0)
    images = list_images(pictures)
    block = read_block(images, np.arange(16), [architecture.preprocessing], {})
    groups = in_groups([network])
    evaluate(upload([block], [architecture.preprocessing], CPU), groups, CPU)
    config = timm.data.resolve_data_config(model=timm.create_model("test_vit"), use_test_size=True)
    loader = timm.data.create_loader(
        timm.data.ImageDataset(str(pictures)),
        config["input_size"],
        16,
        interpolation=config["interpolation"],
        mean=config["mean"],
        std=config["std"],
        crop_pct=config["crop_pct"],
        num_workers=0,
        device=torch.device("cpu"),
    )
    expected, _ = next(iter(loader))
    assert torch.equal(seen[0], expected)
    assert seen[0].is_contiguous(memory_format=torch.channels_last)


# Answers


def test_answers_are_those_of_the_networks(pictures, weights, finished):
    for name in NAMES:
        module = timm.create_model(name)
        module.load_state_dict(timm.models.load_state_dict(str(weights / f"{name}.safetensors")))
        config = timm.data.resolve_data_config(model=module.eval(), use_test_size=True)
        transform = timm.data.create_transform(**config)
        rows = table(finished, name)
        assert rows["image"].is_unique().all()
        assert len(rows) == 50
        some = rows[::4]  # of all blocks
        batch = torch.stack([transform(decode((pictures / i).read_bytes())) for i in some["image"]])
        with torch.inference_mode():
            top = module(batch).softmax(-1).topk(5)
        found = some.select(f"probability_{k}" for k in range(1, 6)).to_numpy()
        np.testing.assert_allclose(found, top.values.numpy(), rtol=2e-4)
        labels = np.asarray(synsets())[top.indices.numpy()]
        assert some["label_1"].to_list() == labels[:, 0].tolist()
        assert (rows["label"] == rows["image"].str.split("/").list.first()).all()
        assert (rows["correct"] == (rows["label"] == rows["label_1"])).all()
        facts = json.loads(
            pl.read_parquet_metadata(finished / layout.prediction_file("v1", name))["bayesrep"]
        )
        assert facts["weights"].startswith("sha256:")
        assert facts["precision"] == "float32"


def test_the_file_is_read_by_other_tools(finished):
    import pyarrow.parquet as parquet

    rows = parquet.read_table(finished / layout.prediction_file("v1", "test_vit"))
    assert rows.column("label_1").to_pylist()[0] in synsets()
    assert str(rows.schema.field("correct").type) == "bool"


@pytest.mark.parametrize(
    "options", [{"workers": 1}, {"workers": 5}, {"batch_size": 7}, {"device": "cpu:0"}]
)
def test_answers_do_not_depend_on_threads_batches_or_device(
    tmp_path, pictures, weights, finished, options
):
    """The last is the way of accelerators: threads that read, one that uploads, larger batches."""
    predict(pictures, tmp_path / "study", weights, **options)
    for name in NAMES:
        one, other = table(finished, name), table(tmp_path / "study", name)
        assert one.equals(other) or "workers" not in options
        assert one.drop(pl.selectors.float()).equals(other.drop(pl.selectors.float()))
        np.testing.assert_allclose(one["probability_5"], other["probability_5"], rtol=1e-4)


def test_a_cache_is_filled_once_and_used_by_later_runs(monkeypatch, tmp_path, pictures, weights):
    predict(pictures, tmp_path / "one", weights, cache=tmp_path / "cache")
    about = [json.loads(file.read_text()) for file in (tmp_path / "cache").glob("*/about.json")]
    assert sorted(entry["interpolation"] for entry in about) == ["bicubic", "bilinear"]

    def never(_):
        raise AssertionError("decoded again")

    monkeypatch.setattr(sys.modules["bayesrep.vision.pixels"], "decode", never)
    predict(pictures, tmp_path / "two", weights, cache=tmp_path / "cache")
    assert_same_predictions(tmp_path / "one", tmp_path / "two")


SMALL = Preprocessing((4, 4), 1.0, "center", "bicubic")


def small_network(module, name="any"):
    """A network of images of 4 x 4 pixels."""
    return Network(replace(describe("test_vit"), name=name, preprocessing=SMALL), module, 0)


def small_pixels(number):
    return {SMALL: torch.randint(0, 255, (number, 4, 4, 3), dtype=torch.uint8)}


def test_a_cache_forgets_images_that_changed(tmp_path):
    cache = PixelCache(tmp_path, "first", 5, SMALL)
    pixels = np.full((4, 4, 3), 9, dtype=np.uint8)
    assert cache.get(np.array([1, 2])) is None
    cache.put(1, pixels, 11)
    cache.put(2, pixels + 1, 12)
    found = cache.get(np.array([1, 2]))
    np.testing.assert_array_equal(found.pixels, [pixels, pixels + 1])
    assert found.contents.tolist() == [11, 12]
    # What has not been flushed is not there for a later process; what has, is.
    assert PixelCache(tmp_path, "first", 5, SMALL).get(np.array([1])) is None
    cache.flush()
    found = PixelCache(tmp_path, "first", 5, SMALL).get(np.array([2, 1]))
    np.testing.assert_array_equal(found.pixels, [pixels + 1, pixels])
    assert found.contents.tolist() == [12, 11]
    assert PixelCache(tmp_path, "second", 5, SMALL).get(np.array([1])) is None


def test_a_cache_that_does_not_fit_is_refused_before_it_is_written(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    facts = {"reason": "No space left on device", "gigabytes": 1000 * 224 * 224 * 3 / 1e9}
    with refused(PredictionError, "pixel-cache-not-writable", facts):
        PixelCache(tmp_path, "x", 1000, Preprocessing((224, 224), 1.0, "center", "bicubic"))


def test_out_of_memory_halves_the_batch_and_goes_on():
    sizes = []

    class Small(torch.nn.Module):
        def forward(self, x):
            sizes.append(len(x))
            if len(x) > 3:
                raise torch.OutOfMemoryError("out of memory")
            return x.mean((1, 2, 3))[:, None] * torch.arange(1000.0)

    given = small_pixels(10), in_groups([small_network(Small())]), Device("cpu", "float32", 16)
    assert len(evaluate(*given)["any"].labels) == 10
    assert sizes[:3] == [10, 5, 2]
    assert max(sizes[2:]) == 2
    evaluate(*given)
    assert max(sizes[2:]) == 2  # remembered


def test_outputs_that_are_not_finite_are_done_again_in_full_precision():
    class Overflowing(torch.nn.Module):
        def forward(self, x):
            out = x.mean((1, 2, 3))[:, None] * torch.arange(1000.0)
            return out * (float("inf") if torch.is_autocast_enabled("cpu") else 1.0)

    class Broken(torch.nn.Module):
        def forward(self, x):
            return torch.full((len(x), 1000), float("nan"))

    networks = [small_network(Overflowing()), small_network(Broken(), "bad")]
    found = evaluate(small_pixels(4), in_groups(networks), Device("cpu", "bfloat16", 16))
    assert np.isfinite(found["any"].probabilities).all()
    assert "not finite" in found["bad"]


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_reduced_precision_agrees_nearly(tmp_path, pictures, weights, finished, precision):
    predict(pictures, tmp_path / "study", weights, ["test_vit"], precision=precision)
    one, other = table(finished, "test_vit"), table(tmp_path / "study", "test_vit")
    np.testing.assert_allclose(one["probability_1"], other["probability_1"], rtol=0.05)


# Interrupted, resumed, repaired


def test_rows_that_were_not_made_here_are_never_taken_for_ours(tmp_path, pictures, weights):
    foreign = tmp_path / "study" / layout.prediction_file("v1", "test_resnet")
    foreign.parent.mkdir(parents=True)
    pl.DataFrame({"image": ["a"], "correct": [True]}).write_parquet(foreign)
    with refused(PredictionError, "predictions-not-made-here", {"file": str(foreign)}):
        predict(pictures, tmp_path / "study", weights, ["test_resnet"])
    foreign.write_bytes(b"half a file")
    with refused(PredictionError, "parquet-file-unreadable") as error:
        predict(pictures, tmp_path / "study", weights, ["test_resnet"])
    assert str(error.value).startswith(f"{foreign} ")


def test_what_cannot_be_decoded_is_listed_and_tried_again(
    capsys, tmp_path, odd_images, pictures, weights
):
    place = tmp_path / "images" / synsets()[0]
    place.mkdir(parents=True)
    whole = (odd_images / synsets()[7] / "plain.jpg").read_bytes()
    for number in range(20):
        (place / f"good-{number}.jpg").write_bytes(whole)
    (place / "truncated.jpg").write_bytes(whole[: len(whole) // 2])
    (place / "empty.png").write_bytes(b"")
    (place / "text.gif").write_bytes(b"GIF, honestly")
    study = tmp_path / "study"
    command = [
        *("predict", "--images", f"v1={tmp_path / 'images'}", "--study", str(study)),
        *("--classifiers", "test_vit,test_resnet", "--weights", str(weights), "--quiet"),
    ]
    assert main(command) == 1
    said = capsys.readouterr()
    assert said.err.startswith("bayesrep: 3 images ")
    assert len(said.err.strip().splitlines()) == 1
    failures = pl.read_parquet(study / "failures.parquet")
    assert failures["dataset"].unique().to_list() == ["v1"]
    reasons = dict(zip(failures["image"], failures["reason"], strict=True))
    assert "truncated" in reasons[f"{synsets()[0]}/truncated.jpg"]
    assert len(table(study, "test_vit")) == 20
    assert main([*command, "--allow-failures"]) == 0
    assert "already done" in capsys.readouterr().out
    # Another data set's failures stay; a repaired image is answered by all classifiers.
    predict(pictures, study, weights, ["test_vit"], dataset="v2")
    for name in ("truncated.jpg", "empty.png"):
        (place / name).write_bytes(whole)
    report = predict(tmp_path / "images", study, weights, ["test_vit", "test_resnet"])
    assert report.table["status"].to_list() == ["done", "done"]
    assert report.failures["image"].to_list() == [f"{synsets()[0]}/text.gif"]
    assert len(table(study, "test_resnet")) == 22
    (place / "text.gif").unlink()
    report = predict(tmp_path / "images", study, weights, ["test_vit", "test_resnet"])
    assert report.table["status"].to_list() == ["already done"] * 2
    assert not len(report.failures)


def lay_out(place, whole, kind):
    """Images of one kind of source: seven files of which one is cut off and one no image."""
    wnids = synsets()[:2]
    files = {f"{wnids[n % 2]}/{n}.jpg": whole for n in range(5)}
    files |= {f"{wnids[0]}/cut.jpg": whole[: len(whole) // 2], f"{wnids[1]}/notes.txt": b""}
    for name, data in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    if kind == "folder":
        return place, 7
    if kind == "table":
        rows = [f"{name}\n" for name in files if name.endswith(".jpg")]
        text = "".join(f"{row.strip()},{row.partition('/')[0]}\n" for row in rows)
        (place / "images.csv").write_text(f"path,label\n{text}")
        return place / "images.csv", 6
    archive = place.with_name(f"a.{kind}")
    with tarfile.open(archive, "w:gz" if kind == "tar.gz" else "w") as tar:
        tar.add(place, "val")
    return archive, 7


@pytest.mark.parametrize("kind", ["folder", "table", "tar", "tar.gz"])
def test_what_is_found_is_evaluated_failed_or_passed_over(
    capsys, monkeypatch, tmp_path, odd_images, weights, kind
):
    """Also where somebody in the process has Pillow fill up what is cut off."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    whole = (odd_images / synsets()[7] / "plain.jpg").read_bytes()
    images, found = lay_out(tmp_path / "images", whole, kind)
    options = ("--weights", str(weights), "--classifiers", "test_resnet", "--quiet")
    asked = ("predict", "--images", f"v1={images}", *options, "--json")
    assert main([*asked, "--study", str(tmp_path / "study")]) == 1
    assert ImageFile.LOAD_TRUNCATED_IMAGES
    said = json.loads(capsys.readouterr().out)
    passed_over = {"ending in .txt": 1} if found == 7 else {}
    assert (said["found"], said["passed_over"]) == (found, passed_over)
    assert [row["images"] for row in said["rows"]] == [5]
    assert len(said["failures"]) == 1
    # Of the images of some classes, and of those that a study counts, the others are counted, too.
    among = tmp_path / "among.txt"
    among.write_text("\n".join(synsets()[1:3]))
    report = predict(images, tmp_path / "other", weights, ["test_resnet"], among=among)
    others = passed_over | {"of other classes": 4}
    assert {why: len(names) for why, names in report.passed_over.items()} == others
    assert report.table["images"].to_list() == [found - sum(others.values())]


def test_no_image_at_all(tmp_path, weights):
    place = tmp_path / "images" / "3"
    place.mkdir(parents=True)
    (place / "a.jpg").write_bytes(b"")
    with refused(
        PredictionError,
        "no-image-decoded",
        {"first": "UnidentifiedImageError: cannot identify image file"},
    ):
        predict(tmp_path / "images", tmp_path / "study", weights, ["test_vit"])


# Images of strangers


@pytest.fixture
def pretend(monkeypatch):
    """Any start of another program is an error."""

    def forbidden(*arguments, **_):
        raise AssertionError(f"started {arguments}")

    monkeypatch.setattr(subprocess, "Popen", forbidden)
    monkeypatch.setattr(os, "system", forbidden)


@pytest.mark.usefixtures("pretend")
@pytest.mark.parametrize("suffix", ["eps", "ico", "psd", "pcx", "tga", "xbm", "pdf", "icns"])
def test_only_the_known_formats_are_opened(suffix):
    data = io.BytesIO()
    if suffix in ("eps", "ico", "pcx", "tga", "pdf"):
        Image.new("RGB", (32, 32)).save(data, suffix)
    else:
        data.write({"psd": b"8BPS\0\1", "xbm": b"#define im_width 9\n", "icns": b"icns"}[suffix])
    with pytest.raises(UnidentifiedImageError) as error:
        decode(data.getvalue())
    assert explain_failure(error.value) == "UnidentifiedImageError: cannot identify image file"


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(
    ("size", "kind", "rule", "facts"),
    [
        ((65_000, 65_000), Image.DecompressionBombError, None, {}),
        ((9_460, 9_460), PredictionError, "image-has-too-many-pixels", {"most_pixels": 89_478_485}),
        ((1, 251), PredictionError, "image-too-narrow", {"largest_ratio": 250}),
    ],
)
def test_declared_pixels_are_checked_before_they_are_made(size, kind, rule, facts):
    head = struct.pack(">IIBBBBB", *size, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
    tracemalloc.start()
    try:
        with pytest.raises(kind) as error:
            decode(data)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    if rule is None:  # Pillow's own
        assert explain_failure(error.value).startswith("DecompressionBombError: ")
    else:
        check(error.value.violation, rule, {"width": size[0], "height": size[1], **facts})
        assert explain_failure(error.value) == str(error.value)


def test_reasons_are_the_same_from_run_to_run(tmp_path):
    place = tmp_path / "images" / "0"
    place.mkdir(parents=True)
    whole = io.BytesIO()
    Image.fromarray(noise(np.random.default_rng(0), 40, 50)).save(whole, "png")
    for cut in (0, 10, 40, 500, 3000):
        (place / f"{cut}.png").write_bytes(whole.getvalue()[:cut])
    images, preprocessing = (
        list_images(tmp_path / "images"),
        [Preprocessing((8, 8), 1.0, "center", "bicubic")],
    )
    one, other = (read_block(images, np.arange(5), preprocessing, {}).failures for _ in range(2))
    assert one == other
    assert len(one) == 5
    assert not any("0x" in why or "object at" in why for _, why in one)


# Chance


def test_chance_ends_with_the_likely_cause(tmp_path, weights, monkeypatch):
    """Folders 0 ... 999 whose numbers are positions in a text-sorted list: the classic mistake."""
    right = {}

    class Oracle(torch.nn.Module):
        num_classes = 1000

        def forward(self, x):
            # The class is written into the colour of the image.
            mean, std = (torch.tensor(v)[:, None, None] for v in ((0.5,) * 3, (0.5,) * 3))
            value = (x * std + mean).mean((2, 3)).mul(255).round().long()
            found = value[:, 0] * 100 + value[:, 1] * 10 + value[:, 2]
            return torch.nn.functional.one_hot(found, 1000).float() * 50

    architecture = replace(
        describe("test_vit", weights),
        preprocessing=Preprocessing((8, 8), 1.0, "squash", "bilinear"),
        mean=(0.5,) * 3,
        std=(0.5,) * 3,
    )
    as_text = sorted(range(1000), key=str)
    for label in range(0, 1000, 3):
        digits = [as_text[label] // 100, as_text[label] // 10 % 10, as_text[label] % 10]
        place = tmp_path / "images" / str(label)
        place.mkdir(parents=True)
        pixels = np.broadcast_to(np.array(digits, dtype=np.uint8), (8, 8, 3))
        Image.fromarray(np.ascontiguousarray(pixels)).save(place / "a.png")
        right[label] = as_text[label]
    module = sys.modules["bayesrep.vision.prediction"]
    monkeypatch.setattr(module, "describe", lambda *_: architecture)
    monkeypatch.setattr(
        sys.modules["bayesrep.vision.run_local"],
        "load_network",
        lambda a, _: Network(a, Oracle().eval(), 1),
    )
    with pytest.warns(PredictionWarning, match=r"as text.*test_vit .* 100\.0 %"):
        bayesrep.predict(
            tmp_path / "images", "v2", ["test_vit"], tmp_path / "study", progress=False
        )


# Weights, names, heads, devices


def test_a_pickle_in_a_checkpoint_is_never_executed(tmp_path, pictures):
    import pickle

    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "executed"),))

    folder_ = tmp_path / "weights"
    folder_.mkdir()
    torch.save({"state_dict": Evil()}, folder_ / "test_vit.pth")
    (folder_ / "test_resnet.pt").write_bytes(pickle.dumps(Evil()))
    torch.save(Evil(), folder_ / "test_efficientnet.bin", _use_new_zipfile_serialization=False)
    (folder_ / "test_convnext.safetensors").write_bytes(pickle.dumps(Evil()))
    for file in sorted(each.name for each in folder_.iterdir()):
        name = file.partition(".")[0]
        with refused(PredictionError, "weights-file-unreadable", {"file": str(folder_ / file)}):
            predict(pictures, tmp_path / "study", folder_, [name])
    assert not (tmp_path / "executed").exists()


def averaged(state):
    """Another set of weights of the same names."""
    return {name: 2 * value for name, value in state.items()}


def put_behind(prefix, state):
    return {f"{prefix}{name}": value for name, value in state.items()}


CHECKPOINTS = {  # what holds the weights, and what is said of where they are
    "state_dict": (lambda s: {"state_dict": s, "epoch": 3, "loss": torch.zeros(())}, None),
    "plain": (lambda s: s, None),
    "Lightning": (lambda s: {"state_dict": put_behind("model.", s)}, "'state_dict.model.'"),
    "torch": (
        lambda s: {"model_state_dict": s, "optimizer": {"state": {0: s}}},
        "'model_state_dict.'",
    ),
    "parallel": (lambda s: {"net": put_behind("module.", s)}, "'net.module.'"),
    "compiled": (lambda s: put_behind("module._orig_mod.", s), "'module._orig_mod.'"),
    "averages": (
        lambda s: {"state_dict": averaged(s), "state_dict_ema": s},
        "'state_dict_ema.' are used, not the name 'state_dict.'",
    ),
    "AveragedModel": (
        lambda s: {
            "model": averaged(s),
            "model_ema": {"n_averaged": torch.ones(()), **put_behind("module.", s)},
        },
        "'model_ema.module.' are used, not the name 'model.'",
    ),
    "beside each other": (
        lambda s: put_behind("net.", averaged(s)) | put_behind("ema.", s),
        "'ema.' are used, not the name 'net.'",
    ),
}


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_weights_are_found_by_their_names(tmp_path, kind):
    """Under whatever entry or prefix they stand; which of several is used is said."""
    torch.manual_seed(0)
    state = timm.create_model("test_resnet").state_dict()
    hold, said = CHECKPOINTS[kind]
    torch.save(hold(state), tmp_path / "test_resnet.pt")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loaded = load_network(describe("test_resnet", tmp_path), "cpu").module.state_dict()
    assert all(torch.equal(loaded[name], value) for name, value in state.items())
    texts = [str(each.message) for each in told if each.category is PredictionWarning]
    assert [bool(re.search(said or "nothing", text)) for text in texts] == [True] * bool(said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: {n: v for n, v in s.items() if "fc" not in n}, "it lacks weights 'fc.bias'"),
        (lambda s: s | {"criterion.a": s["fc.bias"]}, "it holds weight 'criterion.a'"),
        (lambda s: put_behind("a", s), "it lacks weights .* and it holds weights 'abn1"),
        (lambda s: s | {"conv1.1.weight": s["fc.bias"]}, "size mismatch for conv1.1.weight"),
    ],
)
def test_weights_that_do_not_fit_say_which(tmp_path, change, said):
    state = timm.create_model("test_resnet").state_dict()
    file = tmp_path / "test_resnet.pth"
    torch.save(change(state), file)
    facts = {"classifier": "test_resnet", "file": str(file)}
    with refused(PredictionError, "weights-misfit-classifier", facts) as error:
        load_network(describe("test_resnet", tmp_path), "cpu")
    assert re.search(said, error.value.facts["reason"])


def test_which_files_of_a_classifier_are_used_is_said(tmp_path):
    """A configuration beside the weights is used, in a folder of the classifier's own."""
    model = timm.create_model("test_resnet")
    model.pretrained_cfg = {**model.pretrained_cfg, "input_size": (3, 96, 96)}
    timm.models.save_for_hf(model, tmp_path / "own" / "test_resnet", safe_serialization=True)
    for name in ("test_resnet", "test_resnet.r160_in1k"):
        assert describe(name, tmp_path / "own").preprocessing.size == (96, 96)
    for place in (tmp_path / "own", tmp_path):
        (place / "test_resnet.pth").write_bytes(b"")
    with pytest.warns(PredictionWarning, match=r"model\.safetensors is used, not .*\.pth"):
        assert describe("test_resnet", tmp_path / "own").preprocessing.size == (96, 96)
    (tmp_path / "config.json").write_text("{}")
    with pytest.warns(PredictionWarning, match=r"\.pth is used, not the file .*config.json"):
        assert describe("test_resnet", tmp_path).preprocessing.size == (160, 160)


def test_one_classifier_that_cannot_be_had_does_not_stop_the_others(
    capsys, tmp_path, pictures, weights
):
    with warnings.catch_warnings():
        warnings.simplefilter("always", PredictionWarning)
        status = main(
            [
                *("predict", "--images", f"v1={pictures}", "--quiet"),
                *("--study", str(tmp_path / "study"), "--weights", str(weights), "--json"),
                *("--classifiers", "test_vit,test_convnext"),
            ]
        )
    said = capsys.readouterr()
    rows = json.loads(said.out)["rows"]
    assert status == 1
    assert [row["classifier"] for row in rows] == ["test_vit", "test_convnext"]
    assert rows[0]["status"] == "done"
    with refused(PredictionError, "weights-folder-lacks-classifier") as lacking:
        describe("test_convnext", weights)
    assert rows[1]["status"] == str(lacking.value)
    assert "PredictionWarning" in said.err
    assert "1 of 2 classifiers" in said.err.splitlines()[-1]


def test_without_network_and_weights_there_is_one_clear_line(monkeypatch, tmp_path, pictures):
    import huggingface_hub
    from huggingface_hub import constants

    def unreachable(*_, **__):
        raise ConnectionError("no network")

    monkeypatch.setattr(huggingface_hub, "get_session", unreachable)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    begin = time.monotonic()
    with refused(
        PredictionError,
        "weights-cannot-be-fetched",
        {"classifier": "resnet18", "weights": "timm/resnet18.a1_in1k"},
    ):
        predict(pictures, tmp_path / "study", None, ["resnet18"])
    assert time.monotonic() - begin < 30  # the hub's own retries take a minute
    assert constants.HF_HUB_OFFLINE is False


@pytest.mark.parametrize(
    ("name", "rule", "facts"),
    [
        ("vit_base_patch16_224.bamboo", "classifier-head-not-imagenet", {"output_count": 115_217}),
        ("vit_base_patch16_clip_224.openai", "classifier-head-not-imagenet", {"output_count": 512}),
        ("seresnet18", "timm-classifier-without-weights", {}),
        ("resnet18.nope", "unknown-weights-tag", {}),
    ],
)
def test_classifiers_that_cannot_answer_are_refused_with_the_reason(name, rule, facts):
    with refused(PredictionError, rule, {"classifier": name, **facts}) as error:
        describe(name)
    if "hint" in error.value.facts:  # another one of the same architecture
        other = error.value.facts["hint"].split()[-1]
        assert other.split(".")[0] == name.split(".")[0]
        assert timm.get_pretrained_cfg(other).num_classes == 1000


def test_renamed_classifiers_are_followed():
    assert describe("gluon_resnet18_v1b").full_name == "resnet18.gluon_in1k"
    assert describe("resnet50.tv_in1k").weights == "hub:timm/resnet50.tv_in1k"


@pytest.mark.parametrize(
    ("options", "rule", "facts"),
    [
        ({"device": "cuda:77"}, "device-not-available", {"device": "cuda:77"}),
        ({"device": "toaster"}, "device-not-available", {"device": "toaster"}),
        ({"precision": "float8"}, "unknown-precision", {"precision": "float8"}),
        ({"batch_size": 0}, "batch-size-below-one", {"batch_size": 0}),
        ({"workers": 0}, "prediction-workers-below-one", {"workers": 0}),
        ({"dataset": ""}, "data-set-name-empty", {}),
        ({"names": ["test_convnext"]}, "weights-folder-lacks-classifier", {}),
        ({"weights": "nowhere"}, "weights-folder-missing", {"folder": "nowhere"}),
        # Names are checked before anything else.
        ({"names": ["resnet81"], "images": "no"}, "classifiers-unknown-to-timm", {}),
        ({"names": ["12345678"], "images": "no"}, "classifiers-like-none-of-timm", {}),
        ({"names": [], "images": "no"}, "study-without-classifiers", {}),
        ({"names": ["test_vit", "test_vit"], "images": "no"}, "classifier-repeated", {}),
        (
            {"names": ["torchvision/alexnett"]},
            "classifier-near-one-of-torchvision",
            {"nearest": "torchvision/alexnet"},
        ),
        (
            {"names": ["torchvision/alexnet.NEW"]},
            "unknown-torchvision-weights",
            {"choices": "IMAGENET1K_V1, DEFAULT"},
        ),
        ({"names": ["torchvision/deeplabv3_resnet50"]}, "classifier-near-one-of-torchvision", {}),
        ({"names": ["torchvision/123456"]}, "classifier-unknown-to-torchvision", {}),
    ],
)
def test_what_cannot_be_asked_for_is_one_line(tmp_path, pictures, weights, options, rule, facts):
    with refused(PredictionError, rule, facts) as error:
        predict(**{"images": pictures, "study": tmp_path / "s", "weights": weights} | options)
    named = {*options.get("names", [])}
    assert {error.value.facts.get("classifier"), *error.value.offenders} >= named
    assert "resnet81" not in named or error.value.facts["nearest"].startswith("resnet")
    assert not (tmp_path / "s").exists()


def test_a_study_that_cannot_be_written_is_refused_before_work(tmp_path, pictures, weights):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "study"):
        facts = {"study": str(place), "folder": str(tmp_path / "file")}
        with refused(PredictionError, "study-folder-not-writable", facts):
            predict(pictures, place, weights)


def test_a_full_disk_keeps_what_was_written(monkeypatch, tmp_path, pictures, weights, finished):
    write, written = pl.DataFrame.write_parquet, []

    def full(self, *arguments, **options):
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        written.append(1)
        return write(self, *arguments, **options)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    monkeypatch.setattr(sys.modules["bayesrep.vision.run"], "SAVE_SECONDS", 0.0)
    with refused(
        PredictionError, "results-file-not-writable", {"reason": "No space left on device"}
    ):
        predict(pictures, tmp_path / "study", weights)
    monkeypatch.setattr(pl.DataFrame, "write_parquet", write)
    assert not list((tmp_path / "study").rglob("*.partial"))
    predict(pictures, tmp_path / "study", weights)
    assert_same_predictions(finished, tmp_path / "study")


@pytest.mark.parametrize("missing", ["torch", "timm"])
def test_without_the_extra_there_is_one_line(monkeypatch, missing):
    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.setitem(sys.modules, name, None)
    load_timm.cache_clear()
    words = ["predict", "--images", "v1=x", "--study", "s", "--classifiers", "tsipras2020"]
    check(refusal(words), "timm-extra-not-installed", {"package": missing})


def test_damaged_files_of_the_study_are_named(tmp_path, pictures, weights):
    (tmp_path / "failures.parquet").write_bytes(b"PAR1")
    facts = {"where": "failures.parquet"}
    with refused(PredictionError, "parquet-file-unreadable", facts) as error:
        predict(pictures, tmp_path, weights, ["test_vit"])
    assert str(error.value).startswith(f"{tmp_path / 'failures.parquet'} ")
    (tmp_path / "study.json").write_text("{")
    with refused(StudyError, "manifest-not-json", {"where": "study.json"}):
        predict(pictures, tmp_path, weights, ["test_vit"])


class Fussy(torch.nn.Module):
    """Fails on whatever image."""

    def forward(self, x):
        raise AssertionError("Input height (4) doesn't match model (224).")


FUSSY = "AssertionError: Input height (4) doesn't match model (224)."


def test_a_network_that_fails_is_left_out_with_its_reason():
    assert evaluate(small_pixels(2), in_groups([small_network(Fussy())]), CPU)["any"] == FUSSY


def test_where_every_classifier_fails_the_first_reason_is_told(
    monkeypatch, tmp_path, pictures, weights
):
    module = sys.modules["bayesrep.vision.run_local"]
    monkeypatch.setattr(module, "load_network", lambda a, _: Network(a, Fussy(), 1))
    with refused(PredictionError, "classifier-fails-on-images", {"failure": FUSSY}):
        predict(pictures, tmp_path / "study", weights, NAMES[:2])


def test_the_device_is_chosen_by_what_is_there():
    device = choose_device()
    assert device.precision == ("float16" if device.is_cuda else "float32")


# Catalogs


def test_catalogs_name_what_timm_has():
    wrong = []
    for name in CATALOG_TITLES:
        here, vanished = catalog_names(name)
        assert len(here) + len(vanished) == len(read_catalog(name)), name
        # A name of timm's among those that vanished: it has renamed something.
        wrong += [(name, each.classifier) for each in vanished if not each.note or each.timm]
        of_timm = [full for full in here if not full.startswith("torchvision/")]
        wrong += [
            (name, full) for full in of_timm if timm.get_pretrained_cfg(full).num_classes != 1000
        ]
    assert wrong == []


def test_the_papers_136_classifiers():
    entries = read_catalog("engstrom2020")
    assert len({entry.classifier for entry in entries}) == 136
    assert len({entry.timm for entry in entries if entry.timm}) == 135


@pytest.mark.skipif(not TABLE.exists(), reason="the paper's table is not beside the project")
def test_the_papers_classifiers_are_in_its_order():
    names = pl.read_csv(TABLE)["classifier"].to_list()
    assert [entry.classifier for entry in read_catalog("engstrom2020")] == names


def test_all_28_classifiers_of_tsipras_can_be_had():
    here, vanished = catalog_names("tsipras2020")
    assert (len(here), vanished) == (28, [])


# ------------------------------------------------------------------ torchvision


def test_what_torchvision_asks_for_is_what_images_go_through():
    """Of all its weights for ImageNet: the pixels of its own transform, to the bit."""
    from torchvision import models

    image = Image.fromarray(noise(np.random.default_rng(0), 300, 417))
    seen = set()
    for name in known_names():
        for weights in models.get_model_weights(name.removeprefix("torchvision/")):
            asked = weights.transforms()
            key = (tuple(asked.crop_size), tuple(asked.resize_size), asked.interpolation)
            if key in seen or asked.crop_size[0] > 300:
                continue
            seen.add(key)
            config = data_config(weights)
            ours = Preprocessing.from_config(config).apply(image)
            theirs = asked(image).permute(1, 2, 0).numpy()
            normalised = (ours / np.float32(255) - np.float32(config["mean"])) / np.float32(
                config["std"]
            )
            np.testing.assert_allclose(normalised, theirs, atol=2e-6)
    assert len(seen) > 5


@pytest.mark.parametrize("name", ["squeezenet1_1", "googlenet"])
def test_torchvisions_classifiers_answer_as_by_themselves(tmp_path, pictures, name):
    from torchvision import models

    torch.manual_seed(1)
    extra = {"init_weights": False, "aux_logits": True} if name == "googlenet" else {}
    theirs = models.get_model(name, weights=None, **extra)
    save_file(theirs.state_dict(), tmp_path / f"{name}.safetensors")
    full = f"torchvision/{name}"
    files = sorted(pictures.rglob("*.JPEG"))[:3]
    few = tmp_path / "images" / synsets()[0]
    few.mkdir(parents=True)
    for path in files:
        shutil.copy(path, few)
    predict(few.parent, tmp_path / "study", tmp_path, names=[full])
    rows = table(tmp_path / "study", full)
    weights = models.get_model_weights(name).IMAGENET1K_V1
    if name == "googlenet":
        theirs.transform_input = True
    theirs.eval()
    images = torch.stack([weights.transforms()(Image.open(path)) for path in files])
    with torch.no_grad():
        scores = theirs(images).softmax(dim=1)
    by = {Path(row["image"]).name: row for row in rows.to_dicts()}
    for path, score in zip(files, scores, strict=True):
        row = by[path.name]
        assert row["label_1"] == synsets()[int(score.argmax())]
        assert row["probability_1"] == pytest.approx(float(score.max()), rel=1e-4)


def test_catalogs_on_the_command_line(capsys):
    first, *_ = read_catalog("tsipras2020")
    assert first == Entry("alexnet", "torchvision/alexnet.IMAGENET1K_V1", "")
    known, vanished = catalog_names("shankar2020")
    with pytest.warns(PredictionWarning) as told:
        named = expand_catalogs(["shankar2020", "test_vit", known[0]])
    assert named == [*known[1:], "test_vit", known[0]]
    assert len(told) == len(vanished)
    assert main(["predict", "--images", "v1=x"]) == 2
    assert "--study, --classifiers" in capsys.readouterr().err


def test_a_file_of_names(capsys, tmp_path, pictures, weights):
    names = tmp_path / "names.txt"
    names.write_text("# small ones\ntest_vit\n\ntest_resnet  # bilinear\n")
    command = [
        *("predict", "--images", f"v1={pictures}", "--quiet", "--json"),
        *("--study", str(tmp_path / "study"), "--weights", str(weights)),
    ]
    assert main([*command, "--classifiers", f"@{names}"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["classifier"] for row in rows] == ["test_vit", "test_resnet"]
    assert main([*command, "--classifiers", f"@{tmp_path}/no.txt"]) == 2


# A study


def counts(path, images):
    rows = "\n".join(f"{dataset},{image},{k % 3},3" for dataset, image, k in images)
    path.write_text(f"dataset,image,selected,shown\n{rows}\n")
    return path


def test_predictions_complete_a_study_of_counts(capsys, tmp_path, pictures, weights):
    images = list_images(pictures)
    stems = [Path(name).stem for name in images.names]
    chosen = [("v1", s, k) for k, s in enumerate(stems[:25])]
    chosen += [("v2", s, k) for k, s in enumerate(stems[25:40])]
    study = tmp_path / "study"
    table_ = str(counts(tmp_path / "counts.csv", chosen))
    begin = ["import", "tables", table_, "--reference", "v1", "--replication", "v2"]
    assert main([*begin, "--out", str(study)]) == 0
    assert "Next: bayesrep predict" in capsys.readouterr().out
    assert bayesrep.predict  # the study has no classifiers yet, and says so
    with refused(StudyError, "study-without-classifiers"):
        bayesrep.read_study(study)
    predict(pictures, study, weights, ["test_vit"], dataset="v1")
    facts = {"classifiers": ["test_vit"]}
    with refused(StudyError, "classifier-without-predictions", facts) as error:
        bayesrep.read_study(study)
    assert error.value.facts["where"].endswith("v2")
    predict(pictures, study, weights, ["test_vit"], dataset="v2")
    read = bayesrep.read_study(study)
    assert read.classifiers == ("test_vit",)
    assert len(read.reference.images) == 25
    with refused(StudyError, "data-set-not-in-study", {"datasets": ["v1", "v2"], "dataset": "v3"}):
        predict(pictures, study, weights, ["test_vit"], dataset="v3")


def test_counts_are_added_to_predictions_that_came_first(tmp_path, pictures, weights):
    study = tmp_path / "study"
    for dataset in ("v1", "v2"):
        predict(pictures, study, weights, ["test_vit"], dataset=dataset)
    names = list_images(pictures).names
    chosen = [(dataset, name, k) for dataset in ("v1", "v2") for k, name in enumerate(names[:30])]
    file = counts(tmp_path / "counts.csv", chosen)
    begin = ["import", "tables", str(file), "--reference", "v1", "--replication", "v2"]
    assert main([*begin, "--out", str(study)]) == 0
    # All 50 images were predicted, 30 are counted: the same command drops the rest, without work.
    facts = {"images": sorted(names[30:]), "counts_file": "counts.parquet"}
    with refused(StudyError, "images-without-counts", facts):
        bayesrep.read_study(study)
    for dataset in ("v1", "v2"):
        report = predict(pictures, study, weights, ["test_vit"], dataset=dataset)
        assert report.table["images"].item() == 30
        assert report.table["seconds"].item() == 0
    assert bayesrep.read_study(study).classifiers == ("test_vit",)


def write_study(folder, names, labels):
    """A study whose two data sets are the same images, of another classifier."""
    data = {"images": list(names), "labels": labels, "selected": 2, "shown": 3}
    data["correct"] = np.ones((50, 1), dtype=bool)
    bayesrep.Study.from_arrays(
        reference={"name": "v1", **data}, replication={"name": "v2", **data}, classifiers=["other"]
    ).write(folder)


def test_classifiers_join_a_listed_study_once_both_sets_have_them(tmp_path, pictures, weights):
    study = tmp_path / "study"
    names = list_images(pictures).names
    write_study(study, names, [name.split("/")[0] for name in names])
    assert predict(pictures, study, weights, ["test_vit"], dataset="v1").listed == ()
    assert bayesrep.read_study(study).classifiers == ("other",)  # not broken meanwhile
    assert predict(pictures, study, weights, ["test_vit"], dataset="v2").listed == ("test_vit",)
    assert bayesrep.read_study(study).classifiers == ("other", "test_vit")


def test_labels_that_contradict_the_study_are_refused(tmp_path, pictures, weights):
    names = list_images(pictures).names
    labels = [name.split("/")[0] for name in names]
    labels[3] = synsets()[999]
    write_study(tmp_path / "study", names, labels)
    facts = {"images": [names[3]], "study_label": synsets()[999], "dataset": "v1"}
    with refused(StudyError, "study-labels-differ-from-disk", facts):
        predict(pictures, tmp_path / "study", weights, ["test_vit"])


def test_memory_is_that_of_one_classifier_at_a_time(tmp_path, pictures, weights):
    held = []

    class Watched(Local):
        def load(self, architectures):
            loaded, refused, rest = super().load(architectures)
            held.append(len(self._networks))
            return loaded, refused, rest

    images, known = list_images(pictures), [describe(name, weights) for name in NAMES]
    contents = Contents(images, tmp_path, "v1")
    results = open_results(tmp_path, "v1", images, contents, known, CPU)
    run = DatasetRun(tmp_path, "v1", images, contents, results, {})
    evaluate_together([run], known, Watched(images, CPU, 2, budget=0), None, show=False)
    assert held == [1, 1, 1]


def test_blocks_do_not_depend_on_who_takes_them():
    blocks = in_blocks(np.arange(100))
    assert [len(block) for block in blocks] == [24] * 4 + [4]
    np.testing.assert_array_equal(np.concatenate(blocks), np.arange(100))


def test_a_network_is_loaded_in_evaluation_mode(weights):
    network = load_network(describe("test_resnet", weights), "cpu")
    assert not network.module.training
    assert network.size == sum(
        t.numel() * t.element_size() for t in network.module.state_dict().values()
    )
    assert "state_dict" not in network.module.pretrained_cfg
