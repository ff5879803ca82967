"""The readers of published data, on small files of the same form and on the real ones."""

import json
import pickle
import zipfile

import numpy as np
import polars as pl
import pytest
from published import DATA
from refusals import refused

from bayesrep import StudyError
from bayesrep.report.study_text import describe_study
from bayesrep.sources import READERS, imagenetv2, madrylab
from bayesrep.sources.cifar10h import read_cifar10h
from bayesrep.sources.placebo import placebo_replication

CIFAR10H, IMAGENETV2 = DATA / "cifar10h", DATA / "imagenetv2" / "data"
PREDICTIONS = DATA / "cifar10.1" / "model_predictions" / "original_predictions"


def needs(folder):
    return pytest.mark.skipif(
        not folder.is_dir(), reason=f"no published files in {folder}; set BAYESREP_DATA"
    )


def test_the_registry_names_every_source():
    counted = {name for name, reader in READERS.items() if reader.has_counts}
    assert counted == {"cifar10h", "evals", "imagenetv2", "madrylab", "tables"}
    assert {*READERS} - counted == {"arrays", "cifar10.1"}


# ------------------------------------------------------------------ the placebo replication


def annotated(images=3000, seed=0):
    """Human counts of varying totals, labels, and classifiers that find agreed images easier."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, images)
    shown = rng.integers(29, 45, images)
    frequency = rng.beta(8, 1, images)
    right = rng.binomial(shown, frequency)
    human = np.zeros((images, 4), dtype=np.int64)
    human[np.arange(images), labels] = right
    human[np.arange(images), (labels + 1) % 4] = shown - right
    correct = rng.random((images, 5)) < frequency[:, None] ** 2
    return human, labels, correct, [f"c{i}" for i in range(5)]


def test_placebo_deals_answers_without_replacement_and_matches_exactly():
    human, labels, correct, names = annotated()
    study = placebo_replication(human, labels, correct, names, seed=3, size=400)
    reference, replication = study.reference, study.replication
    assert len(replication.images) == 400
    assert not set(reference.images) & set(replication.images)
    totals = human.sum(axis=1)
    for data in (reference, replication):
        rows = data.images.astype(int)
        right = human[rows, labels[rows]]
        assert (data.shown == 20).all()
        assert (data.selected <= np.minimum(right, 20)).all()
        # Wrong answers cannot be dealt more often than they were given either.
        assert (20 - data.selected <= totals[rows] - right).all()
        assert (data.correct == correct[rows]).all()
        assert data.labels is not None
        assert (data.labels.astype(int) == labels[rows]).all()
    # A reference image was selected by its whole filter batch.
    rows = reference.images.astype(int)
    assert (human[rows, labels[rows]] >= 6 + reference.selected).all()


def test_placebo_matches_the_histograms_of_the_matching_batch():
    """With all answers dealt, the measuring batch gives the matching batch away."""
    human, labels, correct, names = annotated()
    human = np.minimum(human, 30)
    right = human[np.arange(len(labels)), labels].copy()
    human[:] = 0
    human[np.arange(len(labels)), labels] = right
    human[np.arange(len(labels)), (labels + 1) % 4] = 30 - right
    batches = {"filter_batch": 0, "matching_batch": 4, "measuring_batch": 26}
    study = placebo_replication(human, labels, correct, names, seed=0, size=300, **batches)
    shares = []
    for data in (study.reference, study.replication):
        rows = data.images.astype(int)
        matched = right[rows] - data.selected
        shares.append(np.bincount(matched, minlength=5) / len(rows))
    assert np.abs(shares[0] - shares[1]).max() <= 1 / 300
    # Without a filter there is nothing to regress to: both halves are alike.
    assert len(study.reference.images) == 1500


def test_placebo_is_a_function_of_the_seed():
    data = annotated()
    one, same, other = (
        placebo_replication(*data, seed=seed, size=300).fingerprint() for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


FEW_ANSWERS = [str(row) for row in np.flatnonzero(annotated()[0].sum(axis=1) < 39)]
FEW = {"needed": 39, "images": FEW_ANSWERS}


@pytest.mark.parametrize(
    ("options", "rule", "facts"),
    [
        (dict(measuring_batch=30), "too-few-answers-for-placebo", FEW),
        (dict(size=1600), "too-few-candidates-at-count", {"selections": 3}),
    ],
)
def test_placebo_refuses_what_cannot_be_dealt(options, rule, facts):
    with refused(StudyError, rule, facts):
        placebo_replication(*annotated(), seed=0, **{"size": 300, **options})


def test_placebo_refuses_arrays_that_do_not_fit():
    human, labels, correct, names = annotated()
    counts = {"label_count": 2999, "correct_count": 3000}
    with refused(StudyError, "placebo-array-lengths-differ", counts):
        placebo_replication(human, labels[1:], correct, names, seed=0)


# ------------------------------------------------------------------ CIFAR-10H


@pytest.fixture
def cifar(tmp_path):
    human, labels, correct, names = annotated(5000)
    np.save(tmp_path / "counts.npy", human)
    np.save(tmp_path / "labels.npy", labels.astype("<u2"))
    (tmp_path / "predictions").mkdir()
    for column, name in enumerate(names):
        predicted = np.where(correct[:, column], labels, (labels + 1) % 4)
        path = tmp_path / "predictions" / f"{name}_predictions.json"
        path.write_text(json.dumps(predicted.tolist()))
    return tmp_path


def test_reads_counts_labels_and_predictions(cifar):
    human, labels, correct, names = annotated(5000)
    found = read_cifar10h(cifar / "counts.npy", cifar / "labels.npy", cifar / "predictions")
    assert (found.counts == human).all()
    assert (found.labels == labels).all()
    assert (found.correct == correct).all()
    assert found.classifiers == tuple(names)


def test_the_registry_recognises_the_files_in_any_order(cifar):
    paths = [cifar / "predictions", cifar / "labels.npy", cifar / "counts.npy"]
    study = READERS["cifar10h"].read(paths, seed=4).study()
    assert study.provenance["seed"] == 4
    assert (
        study.fingerprint() == READERS["cifar10h"].read(paths[::-1], seed=4).study().fingerprint()
    )
    found = {"matrix_count": 1, "vector_count": 0, "prediction_count": 1}
    with refused(StudyError, "cifar10h-file-counts-wrong", found):
        READERS["cifar10h"].read([paths[0], paths[2]])


def test_published_folders_are_taken_as_they_are(cifar, tmp_path):
    """Those of two repositories, each with more than is read."""
    human, repository = tmp_path / "cifar-10h", tmp_path / "CIFAR-10.1"
    (human / "data").mkdir(parents=True)
    predictions = repository / "model_predictions" / "original_predictions"
    predictions.parent.mkdir(parents=True)
    (repository / "datasets").mkdir()
    (cifar / "counts.npy").rename(human / "data" / "cifar10h-counts.npy")
    np.save(human / "data" / "cifar10h-probs.npy", np.zeros((3, 10)))
    (cifar / "labels.npy").rename(human / "cifar10_test_set_original_labels.npy")
    (cifar / "predictions").rename(predictions)
    np.save(repository / "datasets" / "cifar10.1_v6_labels.npy", np.zeros(3, int))
    study = READERS["cifar10h"].read([repository, human]).study()
    assert len(study.classifiers) == len(list(predictions.glob("*.json")))
    assert "true gap" in describe_study(study)
    with refused(StudyError, "cifar10h-file-counts-wrong", {"prediction_count": 0}):
        READERS["cifar10h"].read([human])


JSON, LABELS = "predictions/c0_predictions.json", "labels.npy"
NOT_WHOLE, ALL = "array-not-whole-numbers", [str(row) for row in range(5000)]
SHARE = {"dtype": "float64", "shape": "[1]"}


@pytest.mark.parametrize(
    ("name", "contents", "rule", "facts"),
    [
        (JSON, "[1, 2", "file-not-json", {}),
        (JSON, "[1, 2]", "prediction-count-mismatch", {"prediction_count": 2, "image_count": 5000}),
        (JSON, '{"a": 1}', NOT_WHOLE, {"expected_kind": "list"}),
        (JSON, "[[1], [1, 2]]", NOT_WHOLE, {"expected_kind": "list"}),
        (JSON, "[0.5]", NOT_WHOLE, SHARE),
        (LABELS, [0] * 3, "label-count-mismatch", {"label_count": 3, "image_count": 5000}),
        (LABELS, [4] * 5000, "label-beyond-counted-labels", {"label_count": 4, "images": ALL}),
        ("counts.npy", np.zeros((5000, 4)), NOT_WHOLE, {"dtype": "float64"}),
        ("counts.npy", np.full((5000, 4), -1), "array-numbers-negative", {}),
    ],
)
def test_bad_cifar_files_are_one_clear_error(cifar, name, contents, rule, facts):
    if isinstance(contents, str):
        (cifar / name).write_text(contents)
    else:
        np.save(cifar / name, contents)
    with refused(StudyError, rule, facts):
        read_cifar10h(cifar / "counts.npy", cifar / "labels.npy", cifar / "predictions")


@needs(CIFAR10H)
def test_the_published_placebo_has_the_published_bias():
    """Raw gap about 1.25 % and naive about 0.43 % where the truth is zero (means of splits)."""
    data = read_cifar10h(
        CIFAR10H / "cifar10h-counts.npy",
        CIFAR10H / "cifar10_test_set_original_labels.npy",
        PREDICTIONS,
    )
    assert data.correct.shape == (10_000, 20)
    resnet = data.correct[:, data.classifiers.index("resnet_basic_32")]
    assert resnet.mean() == pytest.approx(0.925, abs=1e-3)  # 92.5 % in the CIFAR-10.1 paper
    raw, naive = [], []
    for seed in range(8):
        study = placebo_replication(
            data.counts, data.labels, data.correct, data.classifiers, seed=seed
        )
        reference, replication = study.reference, study.replication
        assert 3900 < len(reference.images) < 4300
        raw.append(reference.correct.mean() - replication.correct.mean())
        cells = np.unique(replication.selected)
        weights = np.array([(reference.selected == k).mean() for k in cells])
        curve = np.array([replication.correct[replication.selected == k].mean() for k in cells])
        naive.append(reference.correct.mean() - weights @ curve / weights.sum())
    assert 0.010 < np.mean(raw) < 0.016
    assert 0.002 < np.mean(naive) < 0.006


# ------------------------------------------------------------------ ImageNet-v2


@pytest.fixture
def imagenet(tmp_path):
    """An upstream folder of two test sets, four images each, and two classifiers."""
    root = tmp_path / "data"
    wnids = ["n03", "n01", "n02", *(f"n{number:02}" for number in range(10, 18))]
    for folder in ("datasets", "metadata", "predictions/old", "predictions/new"):
        (root / folder).mkdir(parents=True)
    classes = [{"cid": cid, "wnid": wnid} for cid, wnid in enumerate(wnids)]
    (root / "metadata" / "class_info.json").write_text(json.dumps(classes))
    for name in ("old", "new"):
        listed = [[f"{name}{i}", wnids[i % 3]] for i in range(4)]
        (root / "datasets" / f"{name}.json").write_text(json.dumps({"image_filenames": listed}))
        right = np.array([0, 1, 2, 0])
        top5 = np.stack([right, right + 5, right + 6, right + 7, right + 8], axis=1)
        np.save(root / "predictions" / name / "good.npy", top5)
        np.save(root / "predictions" / name / "late.npy", top5[:, [1, 2, 0, 3, 4]])
    return root


def counted(path, rows):
    schema = ["dataset", "image", "selected", "shown"]
    pl.DataFrame(rows, schema=schema, orient="row").write_csv(path)
    return path


ROWS = [(name, f"{name}{i}", i, 10) for name in ("old", "new") for i in (3, 1, 0)]
BOTH = {"reference": "old", "replication": "new"}


def test_class_numbers_come_from_class_info(imagenet):
    found = imagenetv2.read_test_set(imagenet, "new")
    assert found.classifiers == ("good", "late")
    assert found.images.tolist() == ["new0", "new1", "new2", "new3"]
    assert [found.classes[label] for label in found.labels] == ["n03", "n01", "n02", "n03"]
    assert found.correct.tolist() == [[True] * 4, [False] * 4]
    assert found.correct_within(5).all()
    assert imagenetv2.read_test_set(imagenet, "new", classifiers=["late"]).classifiers == ("late",)


def test_counts_and_predictions_become_a_study(imagenet, tmp_path):
    table = counted(tmp_path / "counts.csv", ROWS)
    study = READERS["imagenetv2"].read([table, imagenet], **BOTH).study()
    assert study.reference.images.tolist() == ["old0", "old1", "old3"]
    assert study.reference.selected.tolist() == [0, 1, 3]
    assert study.provenance["images_without_counts"] == {"reference": 1, "replication": 1}
    assert study.replication.correct.tolist() == [[True, False]] * 3


def test_without_counts_the_missing_table_is_named(imagenet):
    with refused(StudyError, "study-lacks-counts", {"where": "study"}):
        READERS["imagenetv2"].read([imagenet], **BOTH).study()


def test_counts_that_do_not_fit_are_named(imagenet, tmp_path):
    more, old = [*ROWS, ("old", "old9", 1, 2)], {"dataset": "old"}
    new = {"dataset": "new", "data_sets": ["old"]}
    for rows, rule, facts in (
        (more, "counts-without-predictions", {"images": ["old9"]} | old),
        ([*ROWS, ROWS[0]], "image-counts-repeated", {"images": ["old3"]} | old),
        (ROWS[:3], "no-counts-of-test-set", new),
    ):
        with refused(StudyError, rule, facts):
            READERS["imagenetv2"].read([imagenet, counted(tmp_path / "c.csv", rows)], **BOTH)


def test_bad_imagenet_files_are_one_clear_error(imagenet, tmp_path):
    table = counted(tmp_path / "counts.csv", ROWS)
    more = imagenet / "predictions" / "old" / "more.npy"
    np.save(more, np.zeros((4, 5), dtype=int))
    sides = {"classifiers": ["more"], "dataset": "old", "other_dataset": "new"}
    with refused(StudyError, "classifier-on-one-test-set", sides):
        READERS["imagenetv2"].read([imagenet, table], **BOTH)
    np.save(more, np.zeros((3, 5), dtype=int))
    shape = {"dtype": "int64", "shape": "[3, 5]", "image_count": 4}
    with refused(StudyError, "top5-array-misshapen", shape):
        imagenetv2.read_test_set(imagenet, "old")
    np.save(more, np.full((4, 5), 11))
    with refused(StudyError, "top5-class-out-of-range", {"largest_class": 10}):
        imagenetv2.read_test_set(imagenet, "old")
    with refused(StudyError, "classifier-without-npy-file", {"classifiers": ["vgg"]}):
        imagenetv2.read_test_set(imagenet, "new", classifiers=["vgg"])
    with refused(StudyError, "file-unreadable", {"reason": "No such file or directory"}):
        imagenetv2.read_test_set(imagenet, "none")
    (imagenet / "datasets" / "new.json").write_text("[1, 2]")
    with refused(StudyError, "image-list-malformed"):
        imagenetv2.read_test_set(imagenet, "new")


@needs(IMAGENETV2)
@pytest.mark.parametrize(
    ("dataset", "images", "low", "high"),
    [
        (imagenetv2.VALIDATION_SET, 50_000, 0.75, 0.77),
        (imagenetv2.MATCHED_FREQUENCY_SET, 10_000, 0.62, 0.65),
    ],
)
def test_published_accuracies(dataset, images, low, high):
    found = imagenetv2.read_test_set(IMAGENETV2, dataset, classifiers=["resnet50"])
    assert found.correct.shape == (1, images)
    assert low < found.correct.mean() < high
    # The same, counted directly.
    listed = json.loads((IMAGENETV2 / "datasets" / f"{dataset}.json").read_text())
    classes = json.loads((IMAGENETV2 / "metadata" / "class_info.json").read_text())
    numbers = {entry["wnid"]: entry["cid"] for entry in classes}
    top5 = np.load(IMAGENETV2 / "predictions" / dataset / "resnet50.npy")
    pairs = zip(top5.tolist(), listed["image_filenames"], strict=True)
    hits = [(row.index(numbers[w]) if numbers[w] in row else 5) for row, (_, w) in pairs]
    assert found.correct.sum() == sum(hit == 0 for hit in hits)
    assert found.correct_within(5).sum() == sum(hit < 5 for hit in hits)


# ------------------------------------------------------------------ MadryLab

URLS = ["a", "b", "c", "d"]
DATASETS = ["v1", "v1", "v2", "v2"]
SELECTED = [3, 0, 2, 1]
SHOWN = [4, 3, 2, 5]
RESNET, VGG = [True, False, True, False], [True, True, False, False]


def madry_frame():
    """One row per annotation, shuffled but for the first row of each image."""
    rows = [
        (URLS[i], DATASETS[i], w < SELECTED[i], RESNET[i], VGG[i])
        for i in range(4)
        for w in range(SHOWN[i])
    ]
    names = ["url", "dataset", "selected", "correct_resnet", "correct_vgg"]
    return pl.DataFrame(rows, schema=names, orient="row")


def check_madry(study):
    assert study.classifiers == ("resnet", "vgg")
    for data, rows in ((study.reference, slice(0, 2)), (study.replication, slice(2, 4))):
        assert data.images.tolist() == URLS[rows]
        assert data.selected.tolist() == SELECTED[rows]
        assert data.shown.tolist() == SHOWN[rows]
        assert data.correct.tolist() == list(map(list, zip(RESNET[rows], VGG[rows], strict=True)))
    assert (study.reference.name, study.replication.name) == ("v1", "v2")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_reads_annotations_from_tables(tmp_path, kind):
    path = tmp_path / f"frame.{kind}"
    getattr(madry_frame(), f"write_{kind}")(path)
    check_madry(READERS["madrylab"].read([path]).study())


@pytest.mark.parametrize("as_numbers", [False, True])
def test_reads_annotations_from_pickles_and_torch_files(tmp_path, as_numbers):
    import pandas

    frame = pandas.DataFrame(madry_frame().to_dict(as_series=False))
    if as_numbers:
        frame = frame.astype({name: float for name in frame.columns[2:]})
    frame.to_pickle(tmp_path / "frame.pkl")
    check_madry(READERS["madrylab"].read([tmp_path / "frame.pkl"]).study())
    with zipfile.ZipFile(tmp_path / "frame.pt", "w") as archive:
        archive.writestr("frame/data.pkl", pickle.dumps(frame, 2))
    check_madry(READERS["madrylab"].read([tmp_path / "frame.pt"]).study())


def test_missing_answers_are_not_counted_and_missing_correctness_is_filled(tmp_path):
    frame = madry_frame()
    unanswered = frame[[0, 4]].with_columns(selected=pl.lit(None, dtype=pl.Boolean))
    unsure = pl.int_range(pl.len()) == 1
    frame = frame.with_columns(correct_vgg=pl.when(~unsure).then("correct_vgg"))
    pl.concat([frame, unanswered]).write_parquet(tmp_path / "frame.parquet")
    check_madry(madrylab.read([tmp_path / "frame.parquet"]).study())


ROW = pl.int_range(pl.len())


def only(column, condition):
    """The frame with a column that is empty where a condition does not hold."""
    return madry_frame().with_columns(pl.when(condition).then(column).alias(column))


def first_in(dataset):
    moved = pl.when(ROW > 0).then("dataset").otherwise(pl.lit(dataset)).alias("dataset")
    return madry_frame().with_columns(moved)


CHANGING = madry_frame().with_columns(pl.col("correct_vgg") ^ (ROW == 1))
WHOLE, URL = madry_frame(), pl.col("url")
MANY = "rows 3 (2), 4 (3), 5 (4), 6 (5), 7 (6), ... (12 rows)"
BAD = [
    ("correctness-differs-between-rows", CHANGING, {"column": "correct_vgg", "images": ["a"]}),
    (
        "correctness-missing-in-all-rows",
        only("correct_resnet", URL != "c"),
        {"column": "correct_resnet", "images": ["c"]},
    ),
    ("unknown-madrylab-data-set", first_in("v3"), {"data_sets": ["v3"]}),
    ("image-in-both-data-sets", first_in("v2"), {"images": ["a"]}),
    ("madrylab-data-set-absent", WHOLE.filter(pl.col("dataset") == "v1"), {"dataset": "v2"}),
    ("image-without-selected-value", only("selected", URL != "b"), {"images": ["b"]}),
    ("value-missing-in-rows", only("url", ROW != 2), {"column": "url", "rows": "row 3"}),
    (
        "flag-given-as-share",
        WHOLE.with_columns(selected=ROW),
        {"column": "selected", "rows": MANY},
    ),
    ("no-correctness-column", WHOLE.drop("correct_vgg", "correct_resnet"), {}),
    ("table-lacks-columns", WHOLE.drop("selected"), {"columns": ["selected"]}),
    ("table-without-rows", WHOLE[:0], {}),
]


@pytest.mark.parametrize(("rule", "frame", "facts"), BAD)
def test_bad_frames_are_one_clear_error(tmp_path, rule, frame, facts):
    frame.write_parquet(tmp_path / "frame.parquet")
    with refused(StudyError, rule, facts) as error:
        madrylab.read([tmp_path / "frame.parquet"])
    assert str(error.value).startswith(f"{tmp_path / 'frame.parquet'}: ")
