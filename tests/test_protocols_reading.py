"""Answers on disk: what is read, what a study keeps of them, and one line for what is wrong."""

import io
import json

import numpy as np
import polars as pl
import pytest
from own_tables import read_tables
from refusals import check, refusal, refused, run

from bayesrep import Study, StudyError, cli
from bayesrep.protocols import match, read_predictions
from bayesrep.sources import tables
from bayesrep.studies import layout
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.imagenet import synsets
from bayesrep.studies.predictions import NO_ANSWER, Predictions
from bayesrep.studies.reading import check_study, read_study

RANKS = range(1, 6)
IMAGES = {"v1": ["a", "b", "c"], "v2": ["a", "x"]}
NETWORKS = ("resnet", "vgg/16")
WNIDS = synsets()[:6]


def prediction_table(images, seed=0):
    """A file as `bayesrep.predict` writes it: five classes, their probabilities, wnids."""
    rng = np.random.default_rng(seed)
    labels = [WNIDS[number] for number in range(len(images))]
    order = np.array([rng.permutation(5) for _ in images])
    columns = {f"label_{k}": [WNIDS[row[k - 1]] for row in order] for k in RANKS}
    shares = -np.sort(-rng.dirichlet(np.ones(6), len(images)), axis=1)
    columns |= {f"probability_{k}": shares[:, k - 1] for k in RANKS}
    table = pl.DataFrame({"image": images, "label": labels, **columns})
    return table.with_columns(correct=pl.col("label") == pl.col("label_1"))


@pytest.fixture
def root(tmp_path):
    """A folder that `bayesrep.predict` began: predictions, no study.json."""
    path = tmp_path / "begun"
    for place, (dataset, images) in enumerate(IMAGES.items()):
        for number, name in enumerate(NETWORKS):
            put(path, dataset, name, prediction_table(images, 10 * place + number))
    return path


def file(root, dataset="v1", classifier="resnet"):
    return root / layout.prediction_file(dataset, classifier)


def put(root, dataset, classifier, table):
    path = file(root, dataset, classifier)
    path.parent.mkdir(parents=True, exist_ok=True)
    table.write_parquet(path)


def read(root, **options):
    return read_predictions(root, ("v1", "v2"), **options)


# ------------------------------------------------------------------ reading


def test_a_folder_without_study_json_is_read(root):
    for data, (dataset, images) in zip(read(root, confidence=True), IMAGES.items(), strict=True):
        assert data.dataset == dataset
        assert data.images.tolist() == images
        assert data.classifiers == NETWORKS
        assert data.classes == synsets()
        for number, name in enumerate(NETWORKS):
            table = pl.read_parquet(file(root, dataset, name))
            assert [data.classes[label] for label in data.labels] == table["label"].to_list()
            for rank in RANKS:
                named = [data.classes[answer] for answer in data.answers[number, :, rank - 1]]
                assert named == table[f"label_{rank}"].to_list()
            assert data.correct[number].tolist() == table["correct"].to_list()
            assert data.confidence[number].tolist() == table["probability_1"].to_list()


def test_only_what_is_asked_for_is_read(root):
    (data,) = read_predictions(root, ("v2",), ranks=2, classifiers=["vgg/16"])
    assert data.answers.shape == (1, 2, 2)
    assert data.confidence is None
    assert data.classifiers == ("vgg/16",)
    with refused(StudyError, "too-few-ranked-answers", {"known_ranks": 2, "needed_ranks": 5}):
        data.correct_within(5)


def test_rows_in_another_order_are_put_in_that_of_the_first_file(root):
    before = read(root, confidence=True)[0]
    put(root, "v1", "vgg/16", pl.read_parquet(file(root, "v1", "vgg/16")).reverse())
    after = read(root, confidence=True)[0]
    assert np.array_equal(after.answers, before.answers)
    assert np.array_equal(after.confidence, before.confidence)


def test_classes_other_than_imagenets_are_sorted_and_shared_by_both_sets(root):
    for dataset, names in (("v1", ["dog", "cat", "cat"]), ("v2", ["owl", "cat"])):
        for number, name in enumerate(NETWORKS):
            table = pl.DataFrame({"image": IMAGES[dataset], "label": names, "label_1": names[::-1]})
            put(root, dataset, name, table.with_columns(probability_1=0.1 * (number + 1)))
    one, other = read(root, confidence=True)
    assert one.classes == other.classes == ("cat", "dog", "owl")
    assert one.labels.tolist() == [1, 0, 0]
    assert other.first.tolist() == [[0, 2]] * 2


def test_labels_of_images_parquet_serve_where_files_have_none(root):
    labels = {d: pl.read_parquet(file(root, d))["label"] for d in IMAGES}
    rows = [pl.DataFrame({"image": IMAGES[d], "label": labels[d]}) for d in IMAGES]
    rows = [
        t.select(pl.lit(d).alias("dataset"), pl.all()) for d, t in zip(IMAGES, rows, strict=True)
    ]
    expected = read(root)
    for dataset in IMAGES:
        for name in NETWORKS:
            path = file(root, dataset, name)
            pl.read_parquet(path).drop("label").write_parquet(path)
    pl.concat(rows[::-1]).reverse().write_parquet(root / layout.IMAGES_FILE)
    for found, known in zip(read(root), expected, strict=True):
        assert np.array_equal(found.labels, known.labels)
        assert np.array_equal(found.correct, known.correct)


def test_roles_of_study_json_name_data_sets(root):
    content = {"format": 1, "roles": {"reference": "v2", "replication": "v1"}}
    (root / layout.MANIFEST_FILE).write_text(json.dumps(content))
    assert [data.dataset for data in read_predictions(root)] == ["v2", "v1"]
    assert [data.dataset for data in read_predictions(root, ("v1",))] == ["v1"]
    (root / layout.MANIFEST_FILE).write_text(json.dumps({**content, "classifiers": ["vgg/16"]}))
    assert read_predictions(root)[0].classifiers == ("vgg/16",)


def test_classifiers_with_files_on_all_data_sets_are_taken(root):
    put(root, "v1", "more", prediction_table(IMAGES["v1"]))
    assert read(root)[0].classifiers == NETWORKS
    assert read_predictions(root, ("v1",))[0].classifiers == ("more", *NETWORKS)


def test_a_chance_prediction_of_a_thousand_classes_is_sound(root):
    for dataset in IMAGES:
        for name in NETWORKS:
            put(root, dataset, name, edited(root, dataset, name, **dict.fromkeys(SHARES, 0.001)))
    assert read(root, confidence=True)[0].confidence.tolist() == [[0.001] * 3] * 2


SHARES = [f"probability_{rank}" for rank in RANKS]


def edited(root, dataset="v1", name="resnet", row=None, **values):
    """The table of one file with columns changed, in one row or in all."""
    table = pl.read_parquet(file(root, dataset, name))
    here = pl.int_range(pl.len()) == row if row is not None else pl.lit(True)
    return table.with_columns(
        pl.when(here).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
        for column, value in values.items()
    )


def shares(*values):
    return dict(zip(SHARES, values, strict=True))


OUT, SUM = "answer-probability-out-of-range", "answer-probabilities-sum-wrong"
MISSING = "label-or-answer-missing"
BAD = [  # the row and what it holds or columns that lack, the rule, and what is told
    ("label_1", "answers-not-recorded", {}),
    (SHARES, "answer-probabilities-missing", {}),
    ("label", "prediction-labels-missing", {"images_file": "images.parquet"}),
    (None, "data-set-without-images", {}),
    (dict(row=1, probability_5=-0.01), OUT, {}),
    (dict(row=1, probability_1=1.01), OUT, {}),
    (dict(row=2, probability_3=float("nan")), OUT, {}),
    (dict(row=0, probability_1=None), OUT, {}),
    (dict(probability_2="much"), "answer-probabilities-not-numbers", {}),
    (dict(row=1, **shares(0.6, 0.5, 0.1, 0, 0)), SUM, {"sum": pytest.approx(1.2)}),
    (dict(row=1, **shares(0.1, *[1e-4] * 4)), SUM, {"sum": pytest.approx(0.1004)}),
    (dict(row=0, **shares(0.2, 0.5, 0.2, 0.05, 0.05)), "answers-not-by-probability", {}),
    (dict(row=2, label_3=None), MISSING, {"column": "label_3"}),
    (dict(row=2, label=None), MISSING, {"column": "label"}),
]


@pytest.mark.parametrize(("change", "rule", "told"), BAD)
def test_bad_files_are_one_line_that_names_them(root, change, rule, told):
    if isinstance(change, dict):
        wrong = edited(root, **change)
    else:
        wrong = edited(root).drop(change) if change else edited(root).head(0)
    put(root, "v1", "resnet", wrong)
    with refused(StudyError, rule, told) as error:
        read(root, confidence=True)
    if isinstance(change, dict) and "images" in error.value.facts:
        assert error.value.offenders == (IMAGES["v1"][change["row"]],)
    facts = error.value.facts
    assert "resnet.parquet" in facts["where"]
    assert facts.get("advice", MAKE_THEM).startswith(MAKE_THEM)


MAKE_THEM = "make them with `bayesrep predict"
OTHER = {"where": "predictions/v1/vgg%2F16.parquet"}
SECOND = {
    "missing": (
        lambda r: edited(r)[:2],
        ("answered-images-missing", OTHER | {"images": ["c"], "other_classifier": "resnet"}),
    ),
    "more": (
        lambda r: pl.concat([edited(r), edited(r, image="d")[:1]]),
        ("answered-images-too-many", OTHER | {"images": ["d"], "other_classifier": "resnet"}),
    ),
    "twice": (
        lambda r: edited(r)[[0, 1, 2, 2]],
        ("image-repeated", OTHER | {"images": ["c"]}),
    ),
}


@pytest.mark.parametrize("name", SECOND)
def test_all_files_of_a_data_set_hold_the_same_images(root, name):
    change, broken = SECOND[name]
    put(root, "v1", "vgg/16", change(root))
    with refused(StudyError, *broken):
        read(root)


def test_classifiers_that_were_told_different_labels_are_named(root):
    put(root, "v1", "vgg/16", edited(root, name="vgg/16", row=1, label=WNIDS[5]))
    told = {"dataset": "v1", "classifier": "vgg/16", "other_classifier": "resnet", "images": ["b"]}
    with refused(StudyError, "classifiers-told-different-labels", told):
        read(root)


def test_wrong_probabilities_do_not_matter_where_none_are_needed(root):
    put(root, "v1", "resnet", edited(root, row=1, probability_1=7.0))
    assert read(root)[0].confidence is None


def test_missing_data_sets_classifiers_and_folders_are_named(root, tmp_path):
    (tmp_path / "empty").mkdir()
    for name, dataset in zip(NETWORKS, IMAGES, strict=True):
        put(tmp_path / "apart", dataset, name, prediction_table(["a"]))
    both = {"known_datasets": ["v1", "v2"]}
    none, sets = {"dataset": "v1", "known_datasets": "no data set"}, {"datasets": "'v1', 'v2'"}
    for rule, folder, asked, facts in (
        ("data-set-without-predictions", root, (("v1", "v3"),), both | {"dataset": "v3"}),
        ("data-set-without-predictions", root, (), both | {"dataset": "reference"}),
        ("data-set-without-predictions", tmp_path / "empty", (("v1",),), none),
        ("study-path-missing", tmp_path / "nowhere", (("v1",),), {}),
        ("no-classifier-in-common", tmp_path / "apart", (("v1", "v2"),), sets),
    ):
        with refused(StudyError, rule, facts):
            read_predictions(folder, *asked)
    with refused(StudyError, "parquet-file-missing"):
        read(root, classifiers=["none"])


@pytest.mark.parametrize("classifier", NETWORKS)
def test_a_damaged_file_is_named(root, classifier):
    path = file(root, "v2", classifier)
    path.write_bytes(path.read_bytes()[:-20])
    with refused(StudyError, "parquet-file-unreadable") as error:
        read(root)
    assert error.value.facts["where"].endswith(path.name)


def test_a_damaged_study_json_is_named(root):
    (root / layout.MANIFEST_FILE).write_text("{")
    with refused(StudyError, "manifest-not-json", {"where": "study.json"}):
        read(root)


def without_labels(root):
    for dataset in IMAGES:
        for name in NETWORKS:
            put(root, dataset, name, edited(root, dataset, name).drop("label"))


@pytest.mark.parametrize("damage", ["cut", "image twice"])
def test_an_unsound_images_parquet_is_named(root, damage):
    without_labels(root)
    rows = [(d, image, WNIDS[0]) for d, images in IMAGES.items() for image in images]
    table = pl.DataFrame(rows + rows[:1], schema=["dataset", "image", "label"], orient="row")
    path = root / layout.IMAGES_FILE
    table.write_parquet(path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    rule = "parquet-file-unreadable" if damage == "cut" else "image-repeated"
    with refused(StudyError, rule) as error:
        read(root)
    assert error.value.facts["where"].startswith("images.parquet")


# ------------------------------------------------------------------ writing


def some_answers(seed=0, ranks=3, confidence=True):
    """Answers of two classifiers on both data sets, with one image that the study lacks."""
    rng = np.random.default_rng(seed)
    found = []
    for dataset, images in IMAGES.items():
        shape = (2, len(images) + 1)
        found.append(
            Predictions(
                dataset,
                [*images, "not in the study"],
                ("cat", "dog", "owl"),
                np.append(np.arange(len(images)) % 2, 2),
                NETWORKS,
                rng.permuted(np.broadcast_to(np.arange(3), (*shape, 3)), axis=2)[:, :, :ranks],
                rng.uniform(0.4, 1, shape) if confidence else None,
            )
        )
    return found


def study_of(answers):
    """The study that these answers belong to: images in reverse, classifiers swapped."""
    sets = {}
    for role, data in zip(("reference", "replication"), answers, strict=True):
        rows = np.arange(len(data.images) - 1)[::-1]
        sets[role] = dict(
            name=data.dataset,
            images=data.images[rows],
            selected=1,
            shown=2,
            correct=data.correct[::-1, rows].T,
        )
    return Study.from_arrays(**sets, classifiers=NETWORKS[::-1])


def test_a_study_written_with_answers_reads_back_as_both(tmp_path):
    answers = some_answers()
    study = study_of(answers)
    study.write(tmp_path / "s", answers=answers)
    assert check_study(tmp_path / "s") == []
    assert read_study(tmp_path / "s").fingerprint() == study.fingerprint()
    for found, given in zip(
        read_predictions(tmp_path / "s", confidence=True), answers, strict=True
    ):
        rows = np.arange(len(given.images) - 1)[::-1]
        assert found.dataset == given.dataset
        assert found.classifiers == NETWORKS[::-1]
        assert found.images.tolist() == given.images[rows].tolist()
        assert np.array_equal(found.answers, given.answers[::-1][:, rows])
        assert np.array_equal(found.labels, given.labels[rows])
        assert np.array_equal(found.confidence, given.confidence[::-1, rows])


def test_answers_of_one_data_set_alone_are_kept(tmp_path):
    answers = some_answers(confidence=False)
    study_of(answers).write(tmp_path / "s", answers=answers[:1])
    assert check_study(tmp_path / "s") == []
    assert read_predictions(tmp_path / "s", ("v1",))[0].confidence is None
    with refused(StudyError, "answers-not-recorded"):
        read_predictions(tmp_path / "s")


def replaced(data, **values):
    names = ("dataset", "images", "classes", "labels", "classifiers", "answers", "confidence")
    return Predictions(**{name: getattr(data, name) for name in names} | values)


def test_answers_that_contradict_the_study_are_refused(tmp_path):
    answers = some_answers()
    first, study = answers[0], study_of(answers)
    wrong = first.answers.copy()
    wrong[0, 1] = (wrong[0, 1] + 1) % 3
    wrong[0, 1, 0] = first.labels[1] if not first.correct[0, 1] else 2
    others = replaced(first, classifiers=("resnet", "alexnet"))
    for data, rule, facts in (
        (replaced(first, answers=wrong), "answers-contradict-correctness", {"images": ["b"]}),
        (first.on(np.array([0, 1, 3])), "answers-incomplete", {"missing": ["c"]}),
        (others, "answers-incomplete", {"missing": ["vgg/16"]}),
    ):
        with refused(StudyError, rule, {"dataset": "v1"} | facts):
            study.write(tmp_path / "s", answers=[data, answers[1]])
        assert not (tmp_path / "s").exists()


def test_missing_answers_are_not_written_as_a_class(tmp_path):
    data = some_answers(ranks=1)[0]
    gaps = data.answers.copy()
    gaps[1, 0] = NO_ANSWER
    with refused(StudyError, "classifier-leaves-images-unanswered", {"images": ["a"]}):
        StudyContents(answers=[replaced(data, answers=gaps)]).write(tmp_path / "s")


def test_written_answers_do_not_replace_what_is_there(tmp_path):
    answers = some_answers()
    StudyContents(answers=answers).write(tmp_path / "s")
    assert [each.dataset for each in read(tmp_path / "s")] == ["v1", "v2"]
    with refused(StudyError, "study-path-exists"):
        StudyContents(answers=answers).write(tmp_path / "s")


def test_predictions_that_are_none_are_refused():
    data = some_answers()[0]
    all_of = {"classifier": "resnet", "images": data.images.tolist()}
    for rule, values, facts in (
        ("image-repeated", dict(images=["a"] * 4), {"images": ["a"]}),
        ("class-repeated-in-predictions", dict(classes=("cat", "cat", "owl")), {}),
        ("classifier-repeated-in-predictions", dict(classifiers=("vgg", "vgg")), {}),
        ("labels-not-class-numbers", dict(labels=np.zeros(3, int)), {"image_count": 4}),
        ("labels-not-class-numbers", dict(labels=np.zeros(4)), {"image_count": 4}),
        ("label-not-a-class", dict(labels=[0, 1, 3, 0]), {"images": ["c"]}),
        (
            "answers-shape-wrong",
            dict(answers=data.answers[:1]),
            {"shape": "[1, 4, 3]", "expected_shape": "[2, 4, 'R']"},
        ),
        ("answer-not-a-class", dict(answers=data.answers + 1), all_of),
        ("answer-not-a-class", dict(answers=data.answers - 2), all_of),
        (
            "confidence-shape-wrong",
            dict(confidence=np.ones(4)),
            {"shape": "[4]", "expected_shape": "[2, 4]"},
        ),
        ("confidence-out-of-range", dict(confidence=np.full((2, 4), np.nan)), all_of),
    ):
        with refused(StudyError, rule, {"where": "data set 'v1'"} | facts):
            replaced(data, **values)


# ------------------------------------------------------------------ imports


def long_table(answers):
    rows = []
    for data in answers:
        for number, name in enumerate(data.classifiers):
            for place, image in enumerate(data.images[:-1].tolist()):
                given = [data.classes[answer] for answer in data.answers[number, place]]
                rows.append(
                    {
                        "dataset": data.dataset,
                        "image": image,
                        "classifier": name,
                        "correct": bool(data.correct[number, place]),
                        "label": data.classes[data.labels[place]],
                        **{f"label_{rank}": each for rank, each in enumerate(given, start=1)},
                        "probability_1": float(data.confidence[number, place]),
                    }
                )
    return pl.DataFrame(rows)


def counts_table(path, images=IMAGES):
    rows = [(d, image, 1, 4) for d, names in images.items() for image in names]
    table = pl.DataFrame(rows, schema=["dataset", "image", "selected", "shown"], orient="row")
    table.write_csv(path)
    return path


ROLES = ("--reference", "v1", "--replication", "v2")


@pytest.mark.parametrize("labels", ["of the predictions", "of the images"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_imported_tables_keep_the_answers(capsys, tmp_path, labels, kind):
    answers = some_answers()
    table = long_table(answers).sample(fraction=1, shuffle=True, seed=2)
    files = [counts_table(tmp_path / "counts.csv"), tmp_path / f"answers.{kind}"]
    if labels == "of the images":
        images = table.select("dataset", "image", "label").unique(maintain_order=True)
        images.write_csv(tmp_path / "images.csv")
        files.append(tmp_path / "images.csv")
        table = table.drop("label")
    getattr(table, f"write_{kind}")(files[1])
    out = tmp_path / "s"
    assert run(capsys, "import", "tables", *files, *ROLES, "--out", out)[0] == 0
    assert run(capsys, "check", out)[0] == 0
    found = read_predictions(out, confidence=True, classifiers=NETWORKS)
    for data, given in zip(found, answers, strict=True):
        rows = [given.images.tolist().index(image) for image in data.images.tolist()]
        expected = np.array(given.classes)[given.answers[:, rows]]
        assert np.array_equal(np.array(data.classes)[data.answers], expected)
        assert np.array_equal(data.confidence, given.confidence[:, rows])
        assert np.array_equal(data.correct, given.correct[:, rows])


def test_answers_without_labels_are_one_clear_error(tmp_path):
    table = long_table(some_answers())
    counts = counts_table(tmp_path / "counts.csv")
    five = ", ".join(f"{line} ('1.5')" for line in range(2, 7))
    for changed, rule, facts in (
        (table.drop("label"), "answers-without-labels", {}),
        (
            table.with_columns(probability_1=pl.lit("1.5")),
            "probability-out-of-range-in-rows",
            {"column": "probability_1", "rows": f"lines {five}, ... (10 lines)"},
        ),
        (
            table.with_columns(label_1=pl.lit(None, pl.String)),
            "value-missing-in-rows",
            {"column": "label_1", "rows": "lines 2, 3, 4, 5, 6, ... (10 lines)"},
        ),
    ):
        changed.write_csv(tmp_path / "answers.csv")
        with refused(StudyError, rule, facts) as error:
            tables.read([counts, tmp_path / "answers.csv"], reference="v1", replication="v2")
        assert error.value.facts["where"].endswith("answers.csv")


def test_tables_whose_correct_contradicts_their_answers_are_refused(capsys, tmp_path):
    table = long_table(some_answers())
    table.with_columns(pl.col("correct") ^ (pl.int_range(pl.len()) == 0)).write_csv(
        tmp_path / "answers.csv"
    )
    counts, out = counts_table(tmp_path / "counts.csv"), tmp_path / "s"
    given = [counts, tmp_path / "answers.csv", *ROLES]
    for words in (["import", "tables", *given], ["run", *given]):
        violation = refusal([*words, "--out", out])
        check(violation, "correct-contradicts-answers", {"images": ["a"], "lines": " (line 2)"})
        assert violation.facts["where"].endswith("answers.csv")
        assert capsys.readouterr().out == ""
    assert not (out / "study").exists()
    assert cli.main(list(map(str, ["check", *given]))) == 1
    assert capsys.readouterr().out == f"{violation}\n"


def test_tables_of_correctness_alone_have_no_answers(tmp_path):
    counts, path = counts_table(tmp_path / "counts.csv"), tmp_path / "answers.csv"
    table = long_table(some_answers())
    table.select("dataset", "image", "classifier", "correct").write_csv(path)
    assert tables.read([counts, path], reference="v1", replication="v2").answers == []
    assert len(read_tables([counts, path], reference="v1", replication="v2").classifiers) == 2


@pytest.fixture
def upstream(tmp_path):
    """A data folder as ImageNet-v2 publishes it: two test sets of four images."""
    root = tmp_path / "data"
    for sub in ("datasets", "metadata", "predictions/v1", "predictions/v2"):
        (root / sub).mkdir(parents=True)
    classes = [{"cid": cid, "wnid": f"n{10 - cid:02}"} for cid in range(10)]
    (root / "metadata" / "class_info.json").write_text(json.dumps(classes))
    rng = np.random.default_rng(0)
    for name in ("v1", "v2"):
        listed = [[f"{name} {i}", classes[i]["wnid"]] for i in range(4)]
        (root / "datasets" / f"{name}.json").write_text(json.dumps({"image_filenames": listed}))
        for network in ("vgg", "alexnet"):
            top5 = np.array([rng.permutation(10)[:5] for _ in range(4)])
            np.save(root / "predictions" / name / f"{network}.npy", top5)
    return root


def test_published_answers_are_imported_without_counts_and_counted_later(
    capsys, tmp_path, upstream
):
    out = tmp_path / "s"
    status, text, _ = run(capsys, "import", "imagenetv2", upstream, *ROLES, "--out", out)
    assert status == 0
    assert "2 classifiers" in text
    assert not (out / layout.MANIFEST_FILE).exists()
    classes = json.loads((upstream / "metadata" / "class_info.json").read_text())
    wnids = np.array([entry["wnid"] for entry in classes])
    before = read(out)
    for data in before:
        for number, name in enumerate(("alexnet", "vgg")):
            top5 = np.load(upstream / "predictions" / data.dataset / f"{name}.npy")
            assert np.array_equal(np.array(data.classes)[data.answers[number]], wnids[top5])
    images = {name: [f"{name} {i}" for i in range(4)] for name in ("v1", "v2")}
    counts = counts_table(tmp_path / "counts.csv", images)
    assert run(capsys, "import", "tables", counts, *ROLES, "--out", out)[0] == 0
    assert run(capsys, "check", out)[0] == 0
    study = read_study(out)
    assert study.classifiers == ("alexnet", "vgg")
    for data, known in zip(read_predictions(out), before, strict=True):
        assert np.array_equal(data.answers, known.answers)
    assert (study.reference.correct.T == before[0].correct).all()


def test_published_answers_can_be_imported_with_counts_at_once(capsys, tmp_path, upstream):
    images = {name: [f"{name} {i}" for i in (2, 0)] for name in ("v1", "v2")}
    counts, out = counts_table(tmp_path / "counts.csv", images), tmp_path / "s"
    assert run(capsys, "import", "imagenetv2", upstream, counts, *ROLES, "--out", out)[0] == 0
    assert run(capsys, "check", out)[0] == 0
    (data,) = read_predictions(out, ("replication",))
    assert data.images.tolist() == ["v2 0", "v2 2"]
    assert np.array_equal(data.correct.T, read_study(out).replication.correct)


# ------------------------------------------------------------------ the command line


BOTH = ("--datasets", "v1,v2")
MATCHED_TABLES = {"matched": "accuracies", "curves": "curves", "confidence": "confidence"}


def test_matching_by_command_is_matching_by_function(capsys, root):
    one, other = read(root, ranks=1, confidence=True)
    expected = match(one, other, seed=3, progress=False)
    for table, field in MATCHED_TABLES.items():
        words = ("papers", "compare", root, *BOTH, "--table", table, "--seed", 3, "--quiet")
        status, text, error = run(capsys, *words, "--json")
        assert (status, error) == (0, "")
        rows = json.loads(text)["rows"]
        assert rows == getattr(expected, field).to_dicts()
        _, printed, _ = run(capsys, *words, "--format", "csv")
        assert pl.read_csv(io.StringIO(printed)).height == len(rows)
        assert run(capsys, *words)[0] == 0


def test_matching_of_a_data_set_that_there_is_not_is_one_line(capsys, root):
    words = ["papers", "compare", root, "--table", "matched", "--datasets", "v9,v2", "--quiet"]
    told = {"dataset": "v9", "known_datasets": ["v1", "v2"]}
    check(refusal(words), "data-set-without-predictions", told)
    assert capsys.readouterr().out == ""


HOSTILE = "\x1b[2Jowned"


@pytest.fixture
def hostile(root):
    for dataset in IMAGES:
        put(root, dataset, HOSTILE, prediction_table(IMAGES[dataset], 5))
    return root


@pytest.mark.parametrize("table", MATCHED_TABLES)
def test_a_hostile_name_cannot_steer_the_terminal(capsys, hostile, table):
    words = ("papers", "compare", hostile, *BOTH, "--table", table, "--quiet")
    status, out, error = run(capsys, *words)
    assert status == 0
    assert "owned" in out
    assert "\x1b" not in out + error
    put(hostile, "v1", HOSTILE, prediction_table(IMAGES["v1"]).drop("label_1"))
    status, out, error = run(capsys, *words)
    assert status == 2
    assert "owned" in error
    assert "\x1b" not in out + error
