"""Where images lie and which class they show: every layout, and the known ways to get it wrong."""

import gzip
import io
import json
import os
import re
import struct
import sys
import tarfile
import unicodedata
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.io import loadmat, savemat
from small_networks import quiet

from bayesrep.errors import PredictionError, PredictionWarning, StudyError
from bayesrep.studies.class_order import find_mistake, refuse_mistake
from bayesrep.studies.imagenet import N_CLASSES, synsets
from bayesrep.vision import gzipped
from bayesrep.vision.images import list_images, select
from bayesrep.vision.labels import read_labels
from bayesrep.vision.meta_mat import read_wnids
from bayesrep.vision.tars import members

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "imagenetv2" / "data"


def touch(root, *names, data=b"pixels"):
    for name in names:
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data + name.encode())
    return root


def archive(path, members):
    pairs = members.items() if isinstance(members, dict) else members
    with tarfile.open(path, "w") as tar:
        for name, data in pairs:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def labelled(images):
    return dict(zip(images.names, images.labels.tolist(), strict=True))


def test_class_order_is_that_of_timm():
    from bayesrep.vision.torch_loading import load_timm

    load_timm()
    from timm.data import ImageNetInfo

    assert list(synsets()) == ImageNetInfo("imagenet-1k").label_names()


@pytest.mark.skipif(not DATA.exists(), reason="the ImageNet-v2 release is not beside the project")
def test_class_order_is_that_of_the_published_predictions():
    info = json.loads((DATA / "metadata" / "class_info.json").read_text())
    assert {row["wnid"]: row["cid"] for row in info} == {
        name: n for n, name in enumerate(synsets())
    }


def test_class_folders_by_wnid(tmp_path):
    first, last = synsets()[0], synsets()[999]
    touch(tmp_path, f"{last}/b.JPEG", f"{first}/a.jpg", f"{first}/notes.txt", ".hidden/x.jpg")
    assert labelled(list_images(tmp_path)) == {f"{first}/a.jpg": 0, f"{last}/b.JPEG": 999}


def test_numeric_folders_are_numbers_never_text(tmp_path):
    touch(tmp_path, *(f"{number}/image.jpeg" for number in range(N_CLASSES)))
    images = list_images(tmp_path)
    assert images.labels.tolist() == list(range(N_CLASSES))
    assert [int(name.split("/")[0]) for name in images.names] == list(range(N_CLASSES))


def test_a_folder_that_is_no_class_is_named(tmp_path):
    touch(tmp_path, "0/a.jpg", "1000/b.jpg")
    with refused(
        PredictionError, "image-label-not-a-class", {"label": "1000", "images": ["1000/b.jpg"]}
    ):
        list_images(tmp_path)
    touch(tmp_path, "misc/c.jpg")
    facts = {"folders": ["misc"], "largest_number": 999}
    with refused(PredictionError, "folders-not-class-numbers", facts):
        list_images(tmp_path)
    touch(tmp_path, "stray.jpg")
    with refused(PredictionError, "images-beside-class-folders", {"images": ["stray.jpg"]}):
        list_images(tmp_path)


@pytest.mark.filterwarnings("ignore:.*counting from 0")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("val.txt", "v_2.JPEG 7\nv_1.JPEG 3\n"),
        ("imagenet_2012_validation_synset_labels.txt", f"{synsets()[3]}\n{synsets()[7]}\n"),
        (
            "LOC_val_solution.csv",
            f"ImageId,PredictionString\nv_1,{synsets()[3]} 1 2 3 4\nv_2,{synsets()[7]} 9 9 9 9\n",
        ),
        ("labels.csv", f"image,label\nv_1.JPEG,{synsets()[3]}\nv_2.JPEG,{synsets()[7]}\n"),
        ("labels.txt", "3\n7\n"),
    ],
)
def test_flat_folder_with_a_published_ground_truth(tmp_path, name, text):
    touch(tmp_path / "val", "v_1.JPEG", "v_2.JPEG")
    (tmp_path / name).write_text(text)
    assert labelled(list_images(tmp_path / "val")) == {"v_1.JPEG": 3, "v_2.JPEG": 7}


def test_the_challenges_own_numbers_are_translated_by_its_kit_only(tmp_path):
    touch(tmp_path / "val", "v_1.JPEG", "v_2.JPEG")
    truth = tmp_path / "ILSVRC2012_validation_ground_truth.txt"
    truth.write_text("2\n1\n")
    with refused(PredictionError, "challenge-numbers-without-devkit", {"path": str(truth)}):
        list_images(tmp_path / "val")
    rows = np.array(
        [(1, synsets()[500]), (2, synsets()[20])], dtype=[("ILSVRC2012_ID", int), ("WNID", "O")]
    )
    savemat(tmp_path / "meta.mat", {"synsets": rows})
    assert labelled(list_images(tmp_path / "val")) == {"v_1.JPEG": 20, "v_2.JPEG": 500}
    numbers = tmp_path / "numbers.txt"  # 1,000 without 0: it cannot count from 0
    numbers.write_text("1000\n1\n")
    (tmp_path / "meta.mat").unlink()
    with refused(PredictionError, "challenge-numbers-without-devkit", {"path": str(numbers)}):
        list_images(tmp_path / "val", labels=numbers)


@pytest.mark.parametrize(
    ("text", "rule", "facts"),
    [
        ("v_1.JPEG 3\n", "images-missing-from-labels-file", {"images": ["v_2.JPEG"]}),
        ("3\n", "unnamed-labels-count-mismatch", {"label_count": 1, "image_count": 2}),
        ("v_1.JPEG 3\nv_2.JPEG\n", "lines-without-label", {"lines": ["v_2.JPEG"]}),
        (
            "v_1.JPEG n999\nv_2.JPEG n01440764\n",
            "image-label-not-a-class",
            {"label": "n999", "images": ["v_1.JPEG"], "known_classes": "1,000 ImageNet classes"},
        ),
        ("", "image-labels-file-empty", {}),
    ],
)
def test_bad_ground_truth_is_one_line(tmp_path, text, rule, facts):
    file = tmp_path / "truth.txt"
    file.write_text(text)
    with refused(PredictionError, rule, facts):
        read_labels(file, ["v_1.JPEG", "v_2.JPEG"])


def test_flat_folder_without_labels_says_what_to_give(tmp_path):
    touch(tmp_path, "a.jpg")
    with refused(PredictionError, "flat-images-without-labels", {"folder": str(tmp_path)}):
        list_images(tmp_path)


def noise(number, size):
    return np.random.default_rng(number).bytes(size)


@pytest.mark.filterwarnings("ignore:.*counting from 0")
def test_tar_gz_is_read_as_published(monkeypatch, tmp_path):
    """From any place, by several threads; unpacked once for each state of its file."""
    unpacked, unpack = [], gzipped._unpack
    monkeypatch.setattr(gzipped, "_unpack", lambda *given: unpacked.append(given) or unpack(*given))
    files = {f"set/{k % 7}/{k}.jpg": noise(k, 900 * k) for k in range(60, 0, -1)}
    plain = archive(tmp_path / "set.tar", files)
    data = plain.read_bytes()
    # Packed in one, by several who put their parts behind one another, and with zeros at the end.
    halves = gzip.compress(data[:100_000]) + gzip.compress(data[100_000:]) + bytes(512)
    for name, packed in (("one.tar.gz", gzip.compress(data, 1)), ("two.TGZ", halves)):
        (tmp_path / name).write_bytes(packed)
        images, expected = list_images(tmp_path / name), list_images(plain)
        assert images.names == expected.names
        assert images.labels.tolist() == expected.labels.tolist()
        order = np.random.default_rng(0).permutation(60).tolist()
        with ThreadPoolExecutor(4) as pool:
            read = list(pool.map(images.read, order))
        assert read == [files[images.names[row]] for row in order]
        list_images(tmp_path / name)
    assert len(unpacked) == 2
    os.utime(tmp_path / "one.tar.gz", (0, 0))
    list_images(tmp_path / "one.tar.gz")
    assert len(unpacked) == 3


def test_archives_that_were_not_used_for_longest_leave_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(gzipped, "_MAX_CACHED_BYTES", 0)
    for number in range(2):
        data = archive(tmp_path / "a.tar", {f"0/{number}.jpg": b"pixels"}).read_bytes()
        (tmp_path / f"{number}.tar.gz").write_bytes(gzip.compress(data))
    first, second = (list_images(tmp_path / f"{number}.tar.gz") for number in range(2))
    assert len(list((tmp_path / "cache" / "bayesrep" / "archives").iterdir())) == 1
    assert first.read(0) == second.read(0) == b"pixels"  # the first is unpacked again
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    with refused(PredictionError, "archive-not-unpacked", {"archive": str(tmp_path / "0.tar.gz")}):
        list_images(tmp_path / "0.tar.gz")


def change_stored(packed, place):
    stored = bytearray(gzip.compress(gzip.decompress(packed), 0))
    stored[place] ^= 1
    return bytes(stored)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda packed: packed[:-2000], "ended before"),
        (lambda packed: packed[:-4], "ended before"),
        (lambda packed: packed[:-6] + bytes(6), "CRC"),
        (lambda packed: change_stored(packed, 1000), "CRC"),
        (lambda packed: packed + b"more", "Not a gzip"),
        (lambda _: b"", "empty file"),
        (lambda _: gzip.compress(FINE + END + FINE), "goes on at byte"),
    ],
)
def test_tar_gz_that_is_not_whole(tmp_path, harm, said):
    plain = archive(tmp_path / "a.tar", {f"{k}/a.jpg": noise(k, 3000) for k in range(5)})
    broken = tmp_path / "a.tar.gz"
    broken.write_bytes(harm(gzip.compress(plain.read_bytes())))
    with refused(PredictionError, "tar-file-unreadable", {"archive": str(broken)}) as error:
        list_images(broken)
    assert said in str(error.value)


def test_a_bomb_of_gzip_is_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr(gzipped, "_ALLOWED_BYTES", 10_000)
    bomb = tmp_path / "a.tar.gz"
    bomb.write_bytes(
        gzip.compress(archive(tmp_path / "a.tar", {"0/a.jpg": bytes(10**7)}).read_bytes())
    )
    with refused(PredictionError, "tar-file-unreadable") as error:
        list_images(bomb)
    assert "bytes are packed in it" in str(error.value)


def test_an_archive_of_empty_files_is_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr("bayesrep.vision.tars.MAX_EMPTY_FILES", 99)
    path = archive(tmp_path / "a.tar", {f"0/{number}.jpg": b"" for number in range(100)})
    with refused(PredictionError, "tar-of-empty-files", {"archive": str(path)}):
        list_images(path)


def test_webdataset_shards(tmp_path):
    """Packed by gzip or not."""
    for shard in range(2):
        members = {}
        for number in range(3):
            members[f"{number:05d}.jpg"] = f"{shard}{number}".encode()
            members[f"{number:05d}.cls"] = str(100 * shard + number).encode()
        archive(tmp_path / f"shard-{shard}.tar", members)
    (tmp_path / "shard-1.tgz").write_bytes(gzip.compress((tmp_path / "shard-1.tar").read_bytes()))
    with refused(PredictionError, "cls-file-repeated"):
        list_images(tmp_path)
    (tmp_path / "shard-1.tar").unlink()
    images = list_images(tmp_path)
    assert images.labels.tolist() == [0, 1, 2, 100, 101, 102]
    assert images.read(4) == b"11"
    archive(tmp_path / "shard-2.tar", {"00000.jpg": b"", "00001.cls": b"1"})
    with refused(PredictionError, "images-without-cls-file", {"images": ["shard-2/00000.jpg"]}):
        list_images(tmp_path)


@pytest.mark.filterwarnings("ignore:.*counting from 0")
def test_table_of_paths(tmp_path):
    touch(tmp_path, "x/a.jpg", "b.png")
    table = tmp_path / "images.csv"
    for by in "\\/":
        table.write_text(f"path,label\nx{by}a.jpg,{synsets()[5]}\nb.png,{synsets()[1]}\n")
        images = list_images(table)
        assert labelled(images) == {"x/a.jpg": 5, "b.png": 1}
    assert images.read(1) == b"pixelsb.png"
    for text, rule, facts in (
        ("path,label\nno.jpg,3\n", "image-table-names-missing-files", {"images": ["no.jpg"]}),
        ("file,label\nb.png,3\n", "image-table-lacks-columns", {"columns": ["path"]}),
        ("path,label\nb.png,\n", "image-table-cell-empty", {}),
        ("path,label\n", "image-table-without-images", {}),
        ("path,label\nb.png,1\n./b.png,1\n", "image-repeated", {"images": ["b.png"]}),
    ):
        table.write_text(text)
        with refused(PredictionError, rule, facts):
            list_images(table)


def test_what_is_not_there_or_not_readable(tmp_path):
    nothing = tmp_path / "nothing"
    with refused(PredictionError, "images-path-missing", {"path": str(nothing)}):
        list_images(nothing)
    with refused(PredictionError, "no-images-at-path", {"path": str(tmp_path)}):
        list_images(tmp_path)
    packed, broken = tmp_path / "a.tar.xz", tmp_path / "a.tar"
    packed.write_bytes(b"")
    with refused(PredictionError, "image-archive-compressed", {"path": str(packed)}):
        list_images(packed)
    broken.mkdir()
    with refused(PredictionError, "tar-file-unreadable", {"archive": str(broken)}):
        list(members(broken))


def test_names_that_are_not_text(tmp_path):
    (tmp_path / "0").mkdir()
    try:
        (tmp_path / "0" / "a\udcff.jpg").write_bytes(b"")
    except OSError:
        pytest.skip("the file system takes UTF-8 only")
    with refused(PredictionError, "image-names-not-utf8", {"images": ["0/a\udcff.jpg"]}):
        list_images(tmp_path)


@pytest.mark.parametrize("format_", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_are_read_as_by_the_standard_library(tmp_path, format_):
    path = tmp_path / "a.tar"
    names = ["a/b.jpg", "a/" + "long/" * 40 + "é.jpg", "a/" + "x" * 90 + ".jpg", "empty.jpg"]
    if format_ == tarfile.USTAR_FORMAT:
        names[1] = "a/" + "long/" * 30 + "é.jpg"  # all its prefix can hold
    with tarfile.open(path, "w", format=format_) as tar:
        for number, name in enumerate(names):
            info = tarfile.TarInfo(name)
            info.size = 700 * (number < 3)
            tar.addfile(info, io.BytesIO(bytes([number]) * info.size))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE):
            info = tarfile.TarInfo("link.jpg")
            info.type, info.linkname = kind, "a/b.jpg" * 30 if format_ else "a/b.jpg"
            tar.addfile(info)
    with tarfile.open(path) as tar:
        expected = [(m.name, m.offset_data, m.size) for m in tar if m.isfile()]
    assert [(m.name, m.offset_data, m.size) for m in members(path) if m.isreg()] == expected
    assert [name for name, _, _ in expected] == names


def header(name, size, kind=b"0", **fields):
    """A header of 512 bytes with its right checksum, whatever it declares."""
    block = bytearray(512)
    block[: len(name)] = name
    block[124 : 124 + len(size)] = size
    block[156:157] = kind
    block[257:265] = b"ustar  \0"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


HUGE = b"\x80" + b"\x7f" * 11
RECORD = header(b"x", b"10\0", b"x")
FINE = header(b"0/a.jpg", b"3\0") + b"abc" + bytes(509)
END = bytes(1024)


UNREADABLE = {
    "a file larger than the archive": header(b"0/a.jpg", HUGE) + END,
    "a name larger than the archive": header(b"x", HUGE, b"L") + END,
    "a name of megabytes": header(b"x", b"77777770\0", b"x") + bytes(2**24),
    "a record longer than the header's": RECORD + b"999 a=bc" + bytes(504) + END,
    "a record without a value": RECORD + b"8 abcde\n" + bytes(504) + FINE + END,
    "a second one": RECORD + b"6 a=b\n8 abcde\n" + bytes(498) + FINE + END,
    "a size back": RECORD + b"14 size=-1024\n" + bytes(498) + FINE + END,
    "a size of -1": header(b"0/a.jpg", b"\xff" * 12) + END,
    "records within records": RECORD * 3000 + END,
    "no tar file": b"not a tar file" * 100,
    "no mark of the end": FINE,
    "a file that is cut off": FINE + FINE[:700],
    "joined archives": FINE + END + FINE + END,
    "a wrong checksum": FINE[:100] + b"x" + FINE[101:] + END,
    "a wrong checksum of the second": FINE + FINE[:100] + b"x" + FINE[101:] + END,
}


@pytest.mark.parametrize("harm", UNREADABLE)
def test_archives_that_declare_what_they_do_not_hold(tmp_path, harm):
    path = tmp_path / "a.tar"
    path.write_bytes(UNREADABLE[harm])
    with refused(PredictionError, "tar-file-unreadable", {"archive": str(path)}) as error:
        list_images(path)
    assert str(error.value).startswith(f"{path} cannot be read as a tar file (")


def test_sparse_files_and_a_name_twice_are_named(tmp_path):
    sparse, twice = tmp_path / "a.tar", tmp_path / "b.tar"
    sparse.write_bytes(header(b"0/a.jpg", b"0\0", b"S") + END)
    with refused(PredictionError, "tar-holds-sparse-file", {"name": "0/a.jpg"}):
        list_images(sparse)
    twice.write_bytes(FINE + FINE + END)
    with refused(PredictionError, "image-repeated", {"images": ["0/a.jpg"]}):
        list_images(twice)


def test_a_folder_that_leads_back_to_itself(tmp_path):
    touch(tmp_path, "0/a.jpg")
    try:
        (tmp_path / "0" / "up").symlink_to(tmp_path)
    except OSError:
        pytest.skip("no links here")
    link = {"folder": str(tmp_path / "0" / "up")}
    with refused(PredictionError, "folder-link-into-itself", link):
        list_images(tmp_path)
    (tmp_path / "0" / "up").unlink()
    (tmp_path / "1").symlink_to(tmp_path / "0")
    assert labelled(list_images(tmp_path)) == {"0/a.jpg": 0, "1/a.jpg": 1}


def test_what_would_fill_the_memory_is_no_image(monkeypatch, tmp_path):
    touch(tmp_path, "0/a.jpg")
    images = list_images(tmp_path)
    monkeypatch.setattr(sys.modules["bayesrep.vision.images"], "MAX_IMAGE_BYTES", 5)
    with refused(PredictionError, "image-file-too-large", {"byte_count": 13, "most_bytes": 5}):
        images.read(0)


# Every file is accounted for


def made_file(place, kind):
    """Make a file, link or pipe whose name says what it is."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to("/nowhere/at/all.jpg")
    else:
        place.write_bytes(kind)


FILES = {  # name: what it is, and why it is passed over; nothing where it is an image
    "a.jfif": (b"pixels", ""),
    "b.jpe": (b"", ""),
    "c.AVIF": (b"pixels", ""),
    "d.jpg": ("link", ""),
    "e.png": ("pipe", ""),
    "picture": (b"\xff\xd8\xff\xe0", ""),
    "notes": (b"P2P is not an image", "no image"),
    "x.d": (b"", "ending in .d"),
    "more.txt": (b"", "ending in .txt"),
    "lost.md": ("link", "no file"),
    "queue.fifo": ("pipe", "no file"),
    ".DS_Store": (b"", "hidden"),
    ".git/index.jpg": (b"", "hidden"),
}


@settings(max_examples=40)
@given(st.lists(st.sets(st.sampled_from(sorted(FILES)), min_size=1), min_size=2, max_size=4))
def test_every_file_is_an_image_or_passed_over(tmp_path_factory, folders):
    root = tmp_path_factory.mktemp("tree")
    touch(root, "0/one.jpg")
    for number, names in enumerate(folders):
        for name in names:
            made_file(root / str(number) / name, FILES[name][0])
    images = list_images(root)
    reasons = dict.fromkeys(images.names, "")
    reasons |= {name: why for why, names in images.passed_over.items() for name in names}
    expected = {
        f"{number}/{name.partition('/')[0]}": FILES[name][1]
        for number, names in enumerate(folders)
        for name in names
    }
    assert reasons == expected | {"0/one.jpg": ""}
    assert len(images) + sum(map(len, images.passed_over.values())) == len(expected) + 1


SEVERAL, MIXED = "images-of-several-sets", "images-beside-archives"


@pytest.mark.filterwarnings("ignore:.*counting from 0")
@pytest.mark.parametrize(
    ("files", "archives", "rule"),
    [
        (["train/0/a.jpg", "val/0/b.jpg"], {}, SEVERAL),
        ([f"{severity}/n01440764/a.jpg" for severity in range(1, 6)], {}, SEVERAL),
        (["0/a.jpg", "more/1/b.jpg"], {}, SEVERAL),
        (["val/0/a.jpg", "val/1/b.jpg"], {}, None),
        (["cats/0/a.jpg", "dogs/1/b.jpg"], {}, None),
        ([], {"train-0": ["a.jpg", "a.cls"], "validation-0": ["b.jpg", "b.cls"]}, SEVERAL),
        ([], {"train-0": ["a.jpg", "a.cls"], "train-1": ["a.jpg", "a.cls"]}, None),
        ([], {"1": ["0/a.jpg"], "2": ["0/a.jpg"]}, SEVERAL),
        ([], {"fog": ["1/0/a.jpg"], "blur": ["2/0/b.jpg"]}, SEVERAL),
        ([], {"n01440764": ["a.jpg"], "n01443537": ["a.jpg"]}, None),
        (["0/a.jpg"], {"backup": ["0/a.jpg"]}, MIXED),
        (["notes.txt"], {"shard": ["a.jpg", "a.cls", "b.cls"]}, None),
        ([], {"train": ["n01440764.tar"]}, "no-images-at-path"),
    ],
)
def test_sets_beside_each_other_are_not_one(tmp_path, files, archives, rule):
    touch(tmp_path, *files)
    for name, held in archives.items():
        archive(tmp_path / f"{name}.tar", {each: b"0" for each in held})
    if rule is not None:
        with refused(PredictionError, rule, {"path": str(tmp_path)}):
            list_images(tmp_path)
        return
    images = list_images(tmp_path)
    listed = sum(each.endswith(".jpg") for each in [*files, *sum(archives.values(), [])])
    others = (files == ["notes.txt"]) * 2  # and the label of nothing
    assert (len(images), sum(map(len, images.passed_over.values()))) == (listed, others)


def test_a_folder_that_nobody_can_see_into_is_refused(monkeypatch, tmp_path):
    touch(tmp_path, "0/a.jpg", "1/b.jpg")
    scan, closed = os.scandir, str(tmp_path / "1")

    def scandir(path):
        if str(path) == closed:
            raise PermissionError(13, "Permission denied", closed)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with refused(PredictionError, "images-folder-unreadable", {"folder": closed}):
        list_images(tmp_path)
    monkeypatch.undo()
    (tmp_path / "2").symlink_to("/nowhere/2")  # as a class folder whose mount is away
    with refused(PredictionError, "images-link-to-nothing", {"link": str(tmp_path / "2")}):
        list_images(tmp_path)


# The development kit's numbers


def kit(path, rows=1010, **options):
    """meta.mat as in the kit, where 1,000 classes are followed by the synsets above them."""
    order = np.random.default_rng(0).permutation(N_CLASSES)
    names = [synsets()[at] for at in order] + [
        f"n{number:08d}" for number in range(rows - N_CLASSES)
    ]
    fields = ["ILSVRC2012_ID", "WNID", "words", "gloss", "num_children", "children"]
    fields += ["wordnet_height", "num_train_images"]
    table = np.zeros((rows, 1), dtype=[(field, "O") for field in fields])
    for row, name in enumerate(names):
        children = np.arange(row % 4, dtype=np.uint16)[None]
        table[row, 0] = (
            *(float(row + 1), name, f"wörds {row}", "gloss, " * (row % 30), float(row % 4)),
            *(children, float(row % 9), 1300.0),
        )
    savemat(path, {"other": np.eye(3), "synsets": table}, **options)
    return {number + 1: name for number, name in enumerate(names)}


@pytest.mark.parametrize("compressed", [True, False])
def test_the_kits_table_is_read_as_by_scipy(tmp_path, compressed):
    path = tmp_path / "meta.mat"
    names = kit(path, do_compression=compressed)
    table = loadmat(path, squeeze_me=True)["synsets"]
    assert read_wnids(path) == names
    assert names == {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in table}


def test_a_damaged_table_of_the_kit_is_one_line_or_unharmed(tmp_path):
    """Of a flipped bit in any byte, and of a file cut anywhere."""
    path = tmp_path / "meta.mat"
    types = [("ILSVRC2012_ID", "O"), ("WNID", "O")]
    savemat(path, {"synsets": np.array([(1, "n00000001"), (2, "n00000002")], dtype=types)})
    data = path.read_bytes()
    wnid = re.compile(r"n\d+")
    for at in range(len(data)):
        for damaged in (data[:at], data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]):
            path.write_bytes(damaged)
            found, violation = outcome(path)
            if violation is None:
                assert len(found) == 2
                assert all(wnid.fullmatch(name) for name in found.values())
            else:
                assert violation.rule == "meta-mat-not-of-devkit"
                assert violation.facts["path"] == str(path)
                assert "\n" not in violation


def outcome(path):
    try:
        return read_wnids(path), None
    except PredictionError as error:
        return {}, error.violation


def test_a_table_of_other_classes_or_that_unpacks_to_too_much_is_not_the_kits(tmp_path):
    path = tmp_path / "meta.mat"
    names = kit(path, do_compression=False)
    path.write_bytes(path.read_bytes().replace(names[7].encode(), b"n99999999", 1))
    with refused(PredictionError, "meta-mat-of-other-classes", {"class_count": 1000}):
        read_wnids(path)
    packed = zlib.compress(bytes(2**25))
    head = b"MATLAB 5.0".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    path.write_bytes(head + struct.pack("<II", 15, len(packed)) + packed)
    with refused(PredictionError, "meta-mat-not-of-devkit", {"path": str(path)}):
        read_wnids(path)


# Numbers without a name


def test_numbers_that_count_from_one_are_refused(tmp_path):
    touch(tmp_path / "folders", *(f"{number}/a.jpg" for number in range(1, N_CLASSES + 1)))
    with refused(PredictionError, "image-labels-count-from-one", {"label": "1000"}):
        list_images(tmp_path / "folders")
    touch(tmp_path / "flat", "a.jpg", "b.jpg")
    (tmp_path / "labels.txt").write_text("a.jpg 1000\nb.jpg 1\n")
    with refused(PredictionError, "image-labels-count-from-one", {"label": "1000"}):
        list_images(tmp_path / "flat")
    (tmp_path / "labels.txt").write_text("a.jpg 0\nb.jpg " + "9" * 5000 + "\n")
    facts = {"label": "9" * 40, "images": ["b.jpg"]}
    with refused(PredictionError, "image-label-not-a-class", facts):
        list_images(tmp_path / "flat")


def test_numbers_that_may_count_from_one_are_read_from_zero_aloud(tmp_path):
    touch(tmp_path / "folders", *(f"{number}/a.jpg" for number in (1, 2, 3)))
    with pytest.warns(PredictionWarning, match=rf"from 0 \(1 is {synsets()[1]}\)"):
        assert list_images(tmp_path / "folders").labels.tolist() == [1, 2, 3]
    touch(tmp_path / "folders", "0/a.jpg")
    assert list_images(tmp_path / "folders").labels.tolist() == [0, 1, 2, 3]


def test_a_file_of_all_labels_for_some_of_the_validation_images(tmp_path):
    names = [f"ILSVRC2012_val_{number:08d}.JPEG" for number in (50_000, 3, 17)]
    lines = [str(number % N_CLASSES) for number in range(50_000)]
    file = tmp_path / "labels.txt"
    file.write_text("\n".join(lines) + "\n")
    assert read_labels(file, names).tolist() == [999, 2, 16]
    wnids = kit(tmp_path / "meta.mat")
    numbers = [number % N_CLASSES + 1 for number in range(50_000)]
    file.write_text("\n".join(map(str, numbers)) + "\n")
    assert read_labels(file, names).tolist() == [
        synsets().index(wnids[numbers[line]]) for line in (49_999, 2, 16)
    ]
    facts = {"label_count": 50000, "image_count": 4}
    for strange in (["ILSVRC2012_val_00050001.JPEG", *names], ["a.JPEG", *names]):
        with refused(PredictionError, "unnamed-labels-count-mismatch", facts):
            read_labels(file, strange)


def test_a_study_names_its_images_by_path_name_or_stem(tmp_path):
    touch(tmp_path, *(f"{number}/i{number}.jpeg" for number in range(12)))
    images = list_images(tmp_path)
    for names in (["3/i3.jpeg", "11/i11.jpeg"], ["i3.jpeg", "i11.jpeg"], ["i3", "i11"]):
        chosen = select(images, names, "v2")
        assert chosen.names == tuple(names)
        assert chosen.labels.tolist() == [3, 11]
        assert chosen.read(1).endswith(b"11/i11.jpeg")
    with refused(PredictionError, "no-file-for-study-image", {"dataset": "v2", "images": ["i99"]}):
        select(images, ["i3", "i99"], "v2")
    touch(tmp_path, "3/i4.jpeg")
    with refused(PredictionError, "image-name-of-several-files", {"images": ["i4"]}):
        select(list_images(tmp_path), ["i4"], "v2")


def test_a_study_names_its_images_by_paths_from_another_folder(tmp_path):
    """Of files of one name in several folders, and never by what fits two."""
    touch(tmp_path / "v1", "3/a.png", "11/a.png", "11/b.png")
    names = ["3/a.png", "11/a.png"]
    for root, called in (
        (tmp_path / "v1", [f"val/{name}" for name in names]),
        (tmp_path / "v1", ["C:\\val\\" + name.replace("/", "\\") for name in names]),
        (tmp_path, names),
        (tmp_path / "v1", ["val/b.png"]),
    ):
        file = tmp_path / "labels.csv"
        rows = [f"{at}/{name}.png,{at}" for at, name in ((3, "a"), (11, "a"), (11, "b"))]
        prefix = "v1/" * (root == tmp_path)
        file.write_text("image,label\n" + "".join(f"{prefix}{row}\n" for row in rows))
        with quiet():
            chosen = select(list_images(root, labels=file), called, "v1")
        assert chosen.names == tuple(called)
        assert chosen.labels.tolist() == ([3, 11] if len(called) > 1 else [11])
    with quiet():
        images = list_images(tmp_path / "v1")
    with refused(PredictionError, "no-file-for-study-image", {"images": ["val/a.png"]}):
        select(images, ["val/a.png"], "v1")


@settings(max_examples=20)
@given(
    st.permutations(range(N_CLASSES)), st.sampled_from(["text", "positions", "from one", "none"])
)
def test_the_mistaken_order_is_found(order, mistake):
    truth = np.array(order[:500])
    predicted = np.where(np.arange(500) % 4 == 0, (truth + 17) % N_CLASSES, truth)
    as_text = np.array(sorted(range(N_CLASSES), key=str))
    wrong = {
        "text": as_text,  # the label is the class's number, its folder sorted as text
        "positions": np.argsort(as_text),
        "from one": np.arange(N_CLASSES) + 1,
        "none": np.roll(np.arange(N_CLASSES), 123),
    }[mistake]
    labels = wrong[truth]
    keep = labels < N_CLASSES
    found = find_mistake(labels[keep], predicted[keep], N_CLASSES)
    if mistake == "none":
        assert found is None
    else:
        assert found is not None
        assert found.otherwise > 0.6 > 3 * found.accuracy


def test_fingerprint_follows_files_and_names(tmp_path):
    touch(tmp_path, "0/a.jpg", "1/b.jpg")
    before = list_images(tmp_path).fingerprint()
    assert list_images(tmp_path).fingerprint() == before
    assert list_images(tmp_path).take([1]).fingerprint() != before
    touch(tmp_path, "1/b.jpg", data=b"other")
    assert list_images(tmp_path).fingerprint() != before


# Labels that could belong to other images


def numbered_labels(path, count):
    path.write_text("".join(f"{at % 7}\n" for at in range(count)))
    return path


@pytest.mark.parametrize(
    ("names", "first", "second"),
    [
        ([f"{at}.png" for at in range(12)], "10.png", "2.png"),
        (["v_9.jpg", "v_10.jpg", "v_0.jpg"], "v_10.jpg", "v_9.jpg"),
        (["B.png", "a.png", "c.png"], "B.png", "a.png"),
        (["x/b.png", "y/a.png"], "y/a.png", "x/b.png"),
    ],
)
def test_labels_by_line_are_refused_where_the_order_of_names_is_open(
    tmp_path, names, first, second
):
    """10.png is before 2.png as text, and behind it for whoever counts; padded it is clear."""
    file = numbered_labels(tmp_path / "labels.txt", len(names))
    facts = {"path": str(file), "image": first, "other_image": second}
    with refused(PredictionError, "unnamed-labels-order-open", facts):
        read_labels(file, names)
    padded = [f"{at:02d}.png" for at in range(len(names))]
    wanted = [at % 7 for at in range(len(names))]
    assert read_labels(file, padded[::-1]).tolist() == wanted[::-1]
    tail = [f"{at}.png" for at in (100, 102, 101)]
    assert read_labels(numbered_labels(file, 3), tail).tolist() == [0, 2, 1]


@pytest.mark.parametrize("name", ["labels.csv", "labels.txt"])
def test_backslashes_in_a_file_of_labels_are_folders(tmp_path, name):
    by = "," if name == "labels.csv" else " "
    file, names = tmp_path / name, ["a/0.png", "a/1.png", "b/0.png"]
    rows = [f"{image}{by}{label}".replace("/", "\\") for label, image in enumerate(names)]
    file.write_text("\n".join([f"image{by}label"] * (by == ",") + rows) + "\n")
    assert read_labels(file, names).tolist() == [0, 1, 2]
    file.write_text("\n".join([f"image{by}label"] * (by == ",") + [*rows, f"a/0.png{by}5"]))
    with refused(PredictionError, "image-labelled-twice", {"image": "a/0.png", "labels": "0, 5"}):
        read_labels(file, names)


@pytest.mark.parametrize("name", ["labels.csv", "labels.txt", "labels.tsv"])
def test_a_label_for_one_of_two_files_of_one_name_is_refused(tmp_path, name):
    names = [f"{folder}/{at}.png" for folder in ("batchA", "batchB") for at in range(2)]
    by = {"labels.csv": ",", "labels.txt": " ", "labels.tsv": "\t"}[name]
    file = tmp_path / name
    head = f"image{by}label\n" * (name != "labels.txt")
    rows = [("0.png", 0), ("1.png", 1), ("0.png", 2)]
    file.write_text(head + "".join(f"{image}{by}{label}\n" for image, label in rows))
    with refused(PredictionError, "image-labelled-twice", {"image": "0.png", "labels": "0, 2"}):
        read_labels(file, names)
    file.write_text(head + "".join(f"{image}{by}{label}\n" for image, label in rows[:2]))
    facts = {"label_name": "0.png", "image": names[0], "other_image": names[2]}
    with refused(PredictionError, "label-of-several-images", facts):
        read_labels(file, names)
    rows = [(image, at) for at, image in enumerate(names)]
    file.write_text(head + "".join(f"{image}{by}{label}\n" for image, label in rows))
    assert read_labels(file, names).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("packed", [True, False])
def test_webdataset_names_with_dots_have_their_own_labels(tmp_path, packed):
    samples = {f"flickr.{at}": at - 100 for at in (100, 101, 102)}
    held = {}
    for stem, label in samples.items():
        held |= {f"{stem}.png": b"pixels", f"{stem}.cls": str(label).encode()}
    place = archive(tmp_path / "a.tar", held)
    if not packed:
        with tarfile.open(place) as tar:
            tar.extractall(tmp_path / "a", filter="data")
        place = tmp_path / "a"
    images = list_images(place)
    assert labelled(images) == {f"{stem}.png": label for stem, label in samples.items()}


def test_one_cls_file_labels_one_image(tmp_path):
    shared = {"a.left.png": b"", "a.right.png": b"", "a.cls": b"0"}
    facts = {"cls_file": "a.cls", "image": "a.left.png", "other_image": "a.right.png"}
    with refused(PredictionError, "images-share-cls-file", facts):
        list_images(archive(tmp_path / "a.tar", shared))
    alone = {"a.left.png": b"", "a.cls": b"0"}
    assert labelled(list_images(archive(tmp_path / "b.tar", alone))) == {"a.left.png": 0}
    twice = archive(tmp_path / "c.tar", [("a.png", b""), ("a.cls", b"0"), ("a.cls", b"1")])
    with refused(PredictionError, "cls-file-repeated", {"cls_file": "a.cls"}):
        list_images(twice)


@pytest.mark.filterwarnings("ignore:.*counting from 0")
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("mark.csv", "\ufeffimage,label\na.png,3\nb.png,7\n".encode()),
        ("semicolons.csv", b"Image;Label\r\na.png;3\r\nb.png;7\r\n"),
        ("wide.csv", "image,label\na.png,3\nb.png,7\n".encode("utf-16")),
        ("tabs.tsv", b"FILENAME\tCLASS\na.png\t3\nb.png\t7\n"),
        ("packed.csv.gz", gzip.compress(b"image,label\na.png,3\nb.png,7\n", mtime=0)),
        ("mark.txt", "\ufeffa.png 3\nb.png 7\n".encode()),
        ("wide.txt", "a.png 3\nb.png 7\n".encode("utf-16")),
        ("returns.txt", b"a.png 3\r\rb.png 7\r"),
        ("table.txt", b"image;label\na.png;3\nb.png;7\n"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_labels_as_spreadsheets_write_them(tmp_path, name, data):
    file = tmp_path / name
    file.write_bytes(data)
    assert read_labels(file, ["b.png", "a.png"]).tolist() == [7, 3]


def test_labels_that_the_system_does_not_give_are_one_line(tmp_path, monkeypatch):
    file = tmp_path / "labels.txt"
    file.write_text("a.png 3\n")

    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    facts = {"path": str(file), "reason": "Permission denied"}
    with refused(PredictionError, "file-unreadable", facts):
        read_labels(file, ["a.png"])


@pytest.mark.filterwarnings("ignore:.*counting from 0")
def test_names_are_the_same_in_both_forms_of_unicode(tmp_path):
    """As macOS writes them and as others do; the files stay what they are called."""
    apart, whole = (unicodedata.normalize(form, "café.png") for form in ("NFD", "NFC"))
    assert apart != whole
    touch(tmp_path / "images" / "3", apart)
    images = list_images(tmp_path / "images")
    assert images.names == (f"3/{whole}",)
    assert images.read(0).endswith(b".png")
    for called in (apart, whole, f"3/{apart}"):
        chosen = select(images, [called], "v1")
        assert chosen.names == (called,)
        assert chosen.read(0) == images.read(0)
    for form in (apart, whole):
        table = tmp_path / "images.csv"
        table.write_text(f"path,label\nimages/3/{form},5\n")
        assert labelled(list_images(table)) == {f"images/3/{whole}": 5}
        assert list_images(table).read(0) == images.read(0)
        (tmp_path / "labels.txt").write_text(f"{form} 4\n")
        assert read_labels(tmp_path / "labels.txt", images.names).tolist() == [4]


# Class numbers that labels and answers do not mean alike


def one_off(size=60, count=10, right=0.8):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, count, size)
    return labels, np.where(rng.random((3, size)) < right, labels, rng.integers(0, count, size))


@pytest.mark.parametrize("kind", [np.int64, np.str_])
@pytest.mark.parametrize("move", [1, -1])
@pytest.mark.parametrize("of", [{}, {"size": 12, "count": 2, "right": 0.9}])
def test_class_numbers_from_one_on_one_side_are_refused(kind, move, of):
    """Of two classes, too: one side holds 1 and 2, the other 0 and 1, on however few images."""
    labels, answers = one_off(**of)
    shifted = (labels + 1, answers) if move == 1 else (labels, answers + 1)
    what = "the labels count from 1" if move == 1 else "the labels are one too low"
    wrong, right = np.mean(shifted[0] == shifted[1]), np.mean(labels == answers)
    assert right > 0.8 > 4 * wrong or of
    facts = {"mistake": what, "accuracy": wrong, "otherwise": right}
    with refused(StudyError, "class-numbers-not-alike", facts):
        refuse_mistake(*(each.astype(kind) for each in shifted), where="here")


def test_classes_numbered_in_the_order_of_text_are_refused():
    labels, answers = one_off(count=30)
    as_text = np.argsort(np.array(sorted(range(30), key=str)))
    with refused(StudyError, "class-numbers-not-alike", {"otherwise": np.mean(labels == answers)}):
        refuse_mistake(as_text[labels], answers, where="here")


def test_what_is_no_mistake_of_numbers_is_left_alone():
    labels, answers = one_off()
    for pair in (
        (labels, answers),
        (labels + 1, answers + 1),
        (labels + 1, one_off(right=0)[1]),  # no reading makes it right
        (labels[:9] + 1, answers[:, :9]),  # too few
        (np.char.add("c", (labels + 1).astype(str)), answers.astype(str)),  # names
    ):
        refuse_mistake(*pair, where="here")
