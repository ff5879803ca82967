"""Sources without counts: arrays of two data sets, and CIFAR-10.1 as published."""

import json

import numpy as np
import pytest
from published import DATA
from refusals import check, refusal, refused

from bayesrep import StudyError, cli, read_study
from bayesrep.protocols import read_predictions
from bayesrep.sources import READERS
from bayesrep.sources.arrays import read

NAMES = ["ant", "bee", "cat"]


def folders(root, *, top=False):
    rng = np.random.default_rng(0)
    for name, size in (("old", 40), ("new", 30)):
        folder = root / name
        folder.mkdir()
        np.save(folder / "labels.npy", rng.integers(0, 3, size).astype(np.uint8))
        for net in ("one", "two"):
            scores = rng.dirichlet(np.ones(3), size).astype(np.float32)
            np.save(folder / f"{net}.npy", np.argsort(-scores, axis=1) if top else scores)
        (folder / "classes.txt").write_text("\n".join(NAMES) + "\n")
    return [root / "old", root / "new"]


def run(capsys, *arguments):
    status = cli.main(["import", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_probabilities_become_answers_with_confidence(tmp_path, capsys):
    paths = folders(tmp_path)
    status, out, _ = run(capsys, "arrays", *paths, "--out", tmp_path / "study")
    assert status == 0
    assert all(part in out for part in ("2 classifiers", "old and new"))
    both = read_predictions(tmp_path / "study", confidence=True)
    for data, path in zip(both, paths, strict=True):
        assert data.dataset == path.name
        assert data.classes == tuple(NAMES)
        scores = np.stack([np.load(path / f"{net}.npy") for net in ("one", "two")])
        np.testing.assert_array_equal(data.first, scores.argmax(axis=2))
        np.testing.assert_allclose(data.confidence, scores.max(axis=2), rtol=1e-6)
        np.testing.assert_array_equal(data.labels, np.load(path / "labels.npy"))
    words = ["papers", "compare", str(tmp_path / "study"), "--table", "matched"]
    assert cli.main([*words, "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]


def test_counts_are_added_without_naming_the_data_sets_again(tmp_path, capsys):
    """The answers that are there say which data set is which."""
    status, out, _ = run(capsys, "arrays", *folders(tmp_path), "--out", tmp_path / "study")
    assert f"import tables counts.csv --out {tmp_path / 'study'}" in out
    assert "--reference" not in out
    rows = [
        f"{name},{image},{image % 5},5"
        for name, size in (("old", 40), ("new", 30))
        for image in range(size)
    ]
    counts = tmp_path / "counts.csv"
    counts.write_text("\n".join(["dataset,image,selected,shown", *rows]) + "\n")
    status, out, _ = run(capsys, "tables", counts, "--out", tmp_path / "study")
    assert status == 0
    assert "2 classifiers" in out
    assert "predict" not in out
    assert read_study(tmp_path / "study").replication.name == "new"


def test_labels_that_count_from_one_are_refused(tmp_path):
    """Not one answer is out of range where there are more answers than labels say: 0 to K."""
    for name, first in (("old", 1), ("new", 0)):
        folder = tmp_path / name
        folder.mkdir()
        labels = np.arange(60) % 6
        np.save(folder / "labels.npy", labels + first)
        np.save(folder / "net.npy", np.where(np.arange(60) < 54, labels, (labels + 3) % 6))
    facts = {"mistake": "the labels count from 1", "accuracy": 0.0, "otherwise": 0.9}
    with refused(StudyError, "class-numbers-not-alike", facts):
        read([tmp_path / "old", tmp_path / "new"])
    np.save(tmp_path / "old" / "labels.npy", labels)
    found = read([tmp_path / "old", tmp_path / "new"]).answers
    assert [len(each.labels) for each in found] == [60, 60]


def test_class_numbers_do_as_well(tmp_path):
    paths = folders(tmp_path, top=True)
    for path in paths:
        (path / "classes.txt").unlink()
    one, other = read(paths, reference="a", replication="b").answers
    assert (one.dataset, other.dataset) == ("a", "b")
    assert one.classes == ("0", "1", "2")
    assert one.confidence is None
    np.testing.assert_array_equal(one.answers[0], np.load(paths[0] / "one.npy"))
    np.save(paths[0] / "one.npy", np.zeros(40, dtype=int))
    assert read(paths).answers[0].answers.shape == (2, 40, 1)


def spoil(name, values):
    return lambda root: np.save(root / "old" / name, values)


ALL = [str(row) for row in range(40)]


def told(text):
    data = text if isinstance(text, bytes) else text.encode()
    return lambda root: (root / "old" / "classes.txt").write_bytes(data)


UNLIKE, BEYOND = "rows-not-probabilities", "label-beyond-counted-labels"
SHAPE = {"shape": "[39, 3]", "image_count": 40}
COUNTS = {"name_count": 2, "probability_count": 3}


@pytest.mark.parametrize(
    ("how", "rule", "facts"),
    [
        (spoil("one.npy", np.ones((40, 3))), UNLIKE, {"rows": ALL}),
        (spoil("one.npy", np.full((40, 3), np.nan)), UNLIKE, {"rows": ALL}),
        (spoil("one.npy", np.full((39, 3), 1 / 3)), "array-shape-mismatch", SHAPE),
        (
            spoil("one.npy", np.full((40, 4), 0.25)),
            "arrays-class-counts-differ",
            {"class_counts": "3 and 4"},
        ),
        (spoil("one.npy", np.full(40, 9)), BEYOND, {"images": ALL}),
        (spoil("one.npy", np.full(40, -1)), "array-numbers-negative", {}),
        (spoil("one.npy", np.full(40, 0.5)), "array-neither-probabilities-nor-classes", {}),
        (spoil("one.npy", np.array([object()] * 40)), "array-unreadable", {}),
        (spoil("labels.npy", np.full(40, 7)), BEYOND, {"images": ALL}),
        (
            spoil("three.npy", np.zeros(40, dtype=int)),
            "classifier-in-one-folder-only",
            {"classifiers": ["three"]},
        ),
        (lambda r: (r / "old" / "labels.npy").unlink(), "array-file-missing", {}),
        (lambda r: (r / "old" / "one.npy").write_bytes(b"\x93NUMPYxx"), "array-unreadable", {}),
        (told("a\nb\n"), "class-names-count-mismatch", COUNTS),
        (told("a\nb\nc\n"), "folders-class-names-differ", {}),
        (told(b"a\0b\nc\n"), "class-names-unreadable", {}),
    ],
)
def test_bad_arrays_are_one_line(tmp_path, how, rule, facts):
    paths = folders(tmp_path)
    how(tmp_path)
    with refused(StudyError, rule, facts):
        read(paths)
    check(refusal(["import", "arrays", *paths, "--out", tmp_path / "s"]), rule, facts)
    assert not (tmp_path / "s").exists()


def test_folders_that_do_not_do(tmp_path):
    old, none = folders(tmp_path)[0], tmp_path / "none"
    for given, rule, facts in (
        ([old], "arrays-folders-not-two", {"folder_count": 1}),
        ([old, old], "arrays-data-sets-share-name", {"dataset": "old"}),
        ([old, none], "arrays-folder-missing", {"folder": str(none)}),
    ):
        with refused(StudyError, rule, facts):
            read(given)


@pytest.mark.skipif(
    not (DATA / "cifar10.1").is_dir(), reason="no published files of CIFAR-10.1; set BAYESREP_DATA"
)
def test_cifar_10_1_is_imported(tmp_path, capsys):
    labels = DATA / "cifar10h" / "cifar10_test_set_original_labels.npy"
    for version, size in (("v4", 2021), ("v6", 2000)):
        out, paths = tmp_path / version, [DATA / "cifar10.1", labels]
        if version == "v6":
            assert run(capsys, "cifar10.1", *paths, "--out", out)[0] == 0
        else:
            READERS["cifar10.1"].read(paths, version=version).write(out)
        one, other = read_predictions(out)
        assert (len(one.images), len(other.images)) == (10_000, size)
        assert len(one.classifiers) == 20
    words = ["import", "cifar10.1", DATA / "cifar10.1", "--out", tmp_path / "none"]
    check(refusal(words), "cifar-folder-or-labels-missing")
