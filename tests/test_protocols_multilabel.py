"""Multi-label accuracy against loops, label sets and groups of classes from files."""

import io
import json
import warnings

import numpy as np
import polars as pl
import pytest
from published import DATA
from refusals import check, refusal, refused, run

from bayesrep import OptionError, StudyError
from bayesrep.errors import ProtocolWarning
from bayesrep.protocols import (
    INTERVALS,
    LabelSets,
    class_subsets,
    co_occurrence,
    imagenet_subsets,
    multilabel,
    proportion_interval,
    read_groups,
    read_label_sets,
)
from bayesrep.sources import imagenetv2
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.imagenet import synsets
from bayesrep.studies.predictions import NO_ANSWER, Predictions

CLASSES = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu")
NETWORKS = ("one", "two", "three")
NO_FILE = "No such file or directory"


def needs(path):
    return pytest.mark.skipif(
        not path.exists(), reason=f"no published file {path}; set BAYESREP_DATA"
    )


def some_predictions(images=60, seed=0, ranks=5, gaps=0.0):
    """Answers to images of six of the seven classes."""
    rng = np.random.default_rng(seed)
    answers = np.argsort(rng.random((3, images, 7)), axis=2)[:, :, :ranks]
    answers[rng.random((3, images)) < gaps] = NO_ANSWER
    names = np.array([f"i{number:02}" for number in range(images)])
    return Predictions("v1", names, CLASSES, rng.integers(0, 6, images), NETWORKS, answers)


def some_sets(images=60, seed=1):
    """A list of labels for most images, empty for some, None for those nobody looked at."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([-1, 0, 1, 2, 3], images)
    return [
        None if size < 0 else rng.choice(7, size, replace=False).tolist() for size in sizes.tolist()
    ]


def label_sets(sets):
    pairs = [(image, label) for image, labels in enumerate(sets) for label in labels or []]
    image, label = np.array(pairs, dtype=int).reshape(-1, 2).T
    return LabelSets(np.array([each is not None for each in sets]), image, label, len(CLASSES))


MASKS = {
    "flying": np.isin(CLASSES, ["ant", "bee"]),
    "absent": np.isin(CLASSES, ["gnu"]),
    "everything": np.ones(7, dtype=bool),
}


# ------------------------------------------------------------------ against a loop


def counted(data, sets, number, part, metric, empty):
    """(right, images) of one classifier, one image after the other."""
    right = images = 0
    for image, allowed in enumerate(sets):
        label, (first, *others) = int(data.labels[image]), data.answers[number, image].tolist()
        if allowed is None or (empty == "exclude" and not allowed) or first == NO_ANSWER:
            continue
        if part == "one label" and len(allowed) != 1:
            continue
        if part == "several labels" and len(allowed) < 2:
            continue
        if part in MASKS and not MASKS[part][label]:
            continue
        top1, top5, good = first == label, label in (first, *others[:4]), first in allowed
        if metric == "top-5 corrections already right":
            if top5 and not top1:
                images += 1
                right += good
        else:
            images += 1
            right += {"top-1": top1, "top-5": top5, "multi-label": good}[metric]
    return right, images


@pytest.mark.parametrize("empty", ["exclude", "wrong"])
@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_every_metric_of_every_subset_is_counted_by_hand(empty, interval, gaps):
    data, sets = some_predictions(gaps=gaps), some_sets()
    table = multilabel(
        data, label_sets(sets), subsets=MASKS, empty=empty, interval=interval, trials=5
    )
    assert len(table) == 3 * 6 * 4
    overall = {}
    for row in table.iter_rows(named=True):
        number = NETWORKS.index(row["classifier"])
        right, images = counted(data, sets, number, row["subset"], row["metric"], empty)
        assert (row["right"], row["images"]) == (right, images)
        if not images:
            assert row["accuracy"] is row["change"] is None
            continue
        key = row["classifier"], row["metric"]
        overall.setdefault(key, right / images)
        assert row["accuracy"] == pytest.approx(right / images)
        ends = [float(end) for end in proportion_interval(right, images, interval)]
        assert (row["lower"], row["upper"]) == pytest.approx(ends)
        if row["subset"] == "all":
            assert row["change"] is None
        else:
            assert row["change"] == pytest.approx(right / images - overall[key])


def test_top_5_is_left_out_where_only_first_answers_are_known():
    table = multilabel(some_predictions(ranks=1), label_sets(some_sets()), subsets={}, trials=1)
    assert table["metric"].unique(maintain_order=True).to_list() == ["top-1", "multi-label"]
    full = multilabel(some_predictions(), label_sets(some_sets()), subsets={}, trials=1)
    expected = full.filter(pl.col("metric").is_in(["top-1", "multi-label"]))
    assert table.equals(expected)


def test_own_labels_alone_make_multi_label_accuracy_top_1():
    data = some_predictions()
    sets = label_sets([[int(label)] for label in data.labels])
    table = multilabel(data, sets, subsets={}, trials=1).filter(pl.col("subset") == "all")
    by = table.pivot("metric", index="classifier", values="right")
    assert by["multi-label"].to_list() == by["top-1"].to_list()
    assert set(by["top-5 corrections already right"]) == {0}


@pytest.mark.parametrize("interval", ["wilson", "clopper-pearson"])
def test_a_subset_without_images_is_null_and_has_no_p_value(interval):
    given = some_predictions(), label_sets(some_sets())
    table = multilabel(*given, subsets=MASKS, trials=20, interval=interval)
    absent = table.filter(pl.col("subset") == "absent")
    assert absent["images"].to_list() == [0] * 12
    for column in ("accuracy", "lower", "upper", "change", "p_value"):
        assert absent[column].null_count() == 12
    everything = table.filter(pl.col("subset") == "everything")
    assert everything["p_value"].null_count() == 12
    assert everything["change"].to_list() == [0.0] * 12
    assert table.filter(pl.col("subset") == "flying")["p_value"].null_count() == 0


def test_p_values_are_one_where_no_class_differs():
    """Every group of classes then changes the accuracy as much as this one: not at all."""
    data = some_predictions(seed=4)
    sets = label_sets([[*range(7)]] * 60)
    table = multilabel(data, sets, subsets={"mine": MASKS["flying"]}, trials=30)
    rows = table.filter(pl.col("subset") == "mine", pl.col("metric") == "multi-label")
    assert rows["change"].to_list() == [0.0] * 3
    assert rows["p_value"].to_list() == [1.0] * 3


def test_p_values_are_never_zero_and_a_function_of_the_seed():
    data, sets = some_predictions(seed=4), label_sets(some_sets())
    tables = [multilabel(data, sets, subsets=MASKS, trials=30, seed=s) for s in (1, 1, 2)]
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])
    assert tables[0]["p_value"].min() >= 1 / 31
    assert tables[0].drop("p_value").equals(tables[2].drop("p_value"))


@pytest.mark.parametrize(
    ("options", "rule", "facts"),
    [
        (dict(empty="keep"), "unknown-empty-handling", {"choices": "exclude, wrong"}),
        (dict(trials=0), "trials-below-one", {}),
        (dict(interval="wald"), "unknown-proportion-interval", {}),
    ],
)
def test_unknown_options_are_refused(options, rule, facts):
    with refused(OptionError, rule, options | facts):
        multilabel(some_predictions(), label_sets(some_sets()), **{"subsets": {}} | options)


def test_images_without_any_right_label_are_nothing_to_count():
    data = some_predictions(3)
    with refused(StudyError, "no-image-with-right-label", {"dataset": "v1"}):
        multilabel(data, label_sets([[], [], None]), subsets={})
    table = multilabel(data, label_sets([[], [], None]), subsets={}, empty="wrong", trials=1)
    row = table.row(by_predicate=(pl.col("metric") == "multi-label") & (pl.col("subset") == "all")
                    & (pl.col("classifier") == "one"), named=True)  # fmt: skip
    assert (row["right"], row["images"]) == (0, 2)


@pytest.mark.parametrize("name", ["all", "one label"])
def test_a_group_may_not_have_the_name_of_a_built_in_part(name):
    with refused(StudyError, "table-subset-name-taken", {"subsets": [name]}):
        multilabel(some_predictions(), label_sets(some_sets()), subsets={name: MASKS["flying"]})


# ------------------------------------------------------------------ label sets


def contents(found, data):
    names = {image: [] for image, known in zip(data.images, found.known, strict=True) if known}
    for image, label in zip(found.image, found.label, strict=True):
        names[data.images[image]].append(CLASSES[label])
    return names


SETS = {"i00": ["ant", "bee"], "i01": [], "i02": ["gnu"]}


@pytest.fixture
def three():
    return some_predictions(3)


def table_of(sets, **more):
    rows = [(image, label) for image, labels in sets.items() for label in labels or [None]]
    table = pl.DataFrame(rows, schema={"image": pl.String, "label": pl.String}, orient="row")
    return table.with_columns(**{name: pl.lit(value) for name, value in more.items()})


@pytest.mark.parametrize("kind", ["csv", "parquet", "json"])
def test_label_sets_are_read_from_tables_and_mappings(tmp_path, three, kind):
    path = tmp_path / f"sets.{kind}"
    more = {**SETS, "i99": ["no class of ours"]}  # sets of other images are passed over
    if kind == "json":
        path.write_text(json.dumps(more))
    else:
        getattr(table_of(more), f"write_{kind}")(path)
    assert contents(read_label_sets([path], three), three) == SETS


def test_label_sets_of_several_data_sets_and_files(tmp_path, three):
    ours, theirs = table_of(SETS, dataset="v1"), table_of({"i00": ["fox"]}, dataset="v2")
    pl.concat([theirs, ours]).write_csv(tmp_path / "sets.csv")
    assert contents(read_label_sets([tmp_path / "sets.csv"], three), three) == SETS
    table_of(dict(list(SETS.items())[:1])).write_csv(tmp_path / "one.csv")
    (tmp_path / "two.json").write_text(json.dumps(dict(list(SETS.items())[1:])))
    paths = [tmp_path / "one.csv", tmp_path / "two.json"]
    assert contents(read_label_sets(paths, three), three) == SETS


def imagenet_predictions(images):
    labels = np.zeros(len(images), dtype=int)
    return Predictions(
        "val", images, synsets(), labels, ("net",), np.zeros((1, len(images), 1), dtype=int)
    )


def test_a_list_is_in_the_order_of_the_validation_images(tmp_path):
    data = imagenet_predictions(
        ["val/ILSVRC2012_val_00000003.JPEG", "ILSVRC2012_val_00000001", "ILSVRC2012_val_00000002"]
    )
    path = tmp_path / "real.json"
    path.write_text(json.dumps([[970, 795], [], [0]]))
    found = read_label_sets([path], data)
    assert found.known.all()
    assert list(zip(found.image.tolist(), found.label.tolist(), strict=True)) == [
        (0, 0),
        (1, 795),
        (1, 970),
    ]
    path.write_text("[[1], [2]]")
    with refused(StudyError, "image-beyond-label-sets", {"label_set_count": 2}):
        read_label_sets([path], data)


def test_imagenets_classes_go_by_wnid_or_by_number(tmp_path):
    data = imagenet_predictions(["a", "b"])
    path = tmp_path / "sets.json"
    path.write_text(json.dumps({"a": [7, "n01440764"], "b": ["999"]}))
    assert read_label_sets([path], data).label.tolist() == [0, 7, 999]
    path.write_text(json.dumps({"a": [1000], "b": []}))
    facts = {"unknown_classes": ["1000"], "verb": "is not a class", "class_count": 1000}
    with refused(StudyError, "classes-not-of-predictions", facts):
        read_label_sets([path], data)


def test_images_without_a_set_are_left_out_with_a_warning(tmp_path, three):
    path = tmp_path / "sets.csv"
    table_of({"i02": ["gnu"], "other": ["x"]}).write_csv(path)
    with pytest.warns(ProtocolWarning, match=r"'i00', 'i01' of 'v1'; "):
        found = read_label_sets([path], three)
    assert found.known.tolist() == [False, False, True]


OTHERS, UNKNOWN = "label-sets-of-other-images", "classes-not-of-predictions"
NO_CLASS = {"unknown_classes": ["3"], "verb": "is not a class", "class_count": 7}
THERE = {"dataset": "v1", "hint": "; they are there as images of data set 'v9'"}
TWO_ANTS = table_of({**SETS, "i02": ["ant", "ant"]})
BAD = [  # the file's ending and what it holds, the rule, and what is told
    ("json", {**SETS, "i02": [3]}, UNKNOWN, NO_CLASS),
    ("json", {**SETS, "i02": "ant"}, "label-set-not-list", {"image": "i02"}),
    ("json", {"x": ["ant"]}, OTHERS, {"dataset": "v1"}),
    ("json", 3, "label-sets-not-list-mapping", {}),
    ("json", [["ant"]] * 3, OTHERS, {"dataset": "v1"}),
    ("csv", TWO_ANTS, "label-twice-for-image", {"images": ["i02"]}),
    ("csv", table_of(SETS, dataset="v9"), OTHERS, THERE),
    ("doc", SETS, "table-file-type-unknown", {}),
]


@pytest.mark.parametrize(("ending", "content", "rule", "facts"), BAD)
def test_bad_label_sets_are_one_clear_error(tmp_path, three, ending, content, rule, facts):
    path = tmp_path / f"s.{ending}"
    if isinstance(content, pl.DataFrame):
        content.write_csv(path)
    else:
        path.write_text(json.dumps(content))
    with refused(StudyError, rule, facts) as error:
        read_label_sets([path], three)
    assert str(error.value).startswith(f"{path}: ")


def test_second_sets_and_unreadable_files_are_named(tmp_path, three):
    one, two = tmp_path / "one.csv", tmp_path / "two.json"
    table_of(SETS).write_csv(one)
    two.write_text(json.dumps({"i01": ["ant"]}))
    with refused(StudyError, "second-label-set", {"images": ["i01"]}):
        read_label_sets([one, two], three)
    two.write_text("{")
    with refused(StudyError, "file-not-json"):
        read_label_sets([two], three)
    with refused(StudyError, "file-unreadable", {"reason": "No such file or directory"}):
        read_label_sets([tmp_path / "none.json"], three)


def test_contained_answers_are_those_of_the_image():
    sets = some_sets()
    answers = np.random.default_rng(2).integers(-1, 7, (4, 3, 60))
    found = label_sets(sets).contain(answers)
    for place in np.ndindex(answers.shape):
        assert found[place] == (answers[place] in (sets[place[-1]] or []))
    assert not label_sets([[], None]).contain([[0, 1]]).any()
    assert label_sets(sets).sizes.tolist() == [len(each or []) for each in sets]


# ------------------------------------------------------------------ subsets of the classes


def test_the_built_in_subsets_have_the_published_sizes():
    subsets = imagenet_subsets()
    sizes = {name: int(mask.sum()) for name, mask in subsets.items()}
    assert sizes == {"objects": 590, "organisms": 410, "dogs": 118, "without dogs": 882}
    assert not (subsets["dogs"] & subsets["objects"]).any()
    for wnid, name in (
        ("n02085620", "dogs"),  # Chihuahua, the first breed
        ("n02113978", "dogs"),  # Mexican hairless, the last
        ("n01440764", "organisms"),  # tench
        ("n13054560", "organisms"),  # bolete
        ("n10565667", "organisms"),  # scuba diver
        ("n02504458", "organisms"),  # African elephant
        ("n02099601", "dogs"),  # golden retriever
        ("n02672831", "objects"),  # accordion
        ("n07753592", "objects"),  # banana
        ("n09472597", "objects"),  # volcano
        ("n02114367", "without dogs"),  # timber wolf
    ):
        assert subsets[name][synsets().index(wnid)]


def test_built_in_subsets_are_for_imagenet_alone(tmp_path):
    assert class_subsets(CLASSES) == {}
    assert set(class_subsets(synsets())) == set(imagenet_subsets())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_groups_of_classes_are_read_from_tables(tmp_path, kind):
    path = tmp_path / f"groups.{kind}"
    table = pl.DataFrame(
        {
            "class": ["gnu", "ant", "bee"],
            "kind": ["mammal", "insect", "insect"],
            "size": ["big", None, "insect"],
        }
    )
    getattr(table, f"write_{kind}")(path)
    groups = read_groups(path, CLASSES)
    assert groups["kind"].tolist() == ["insect", "insect", "", "", "", "", "mammal"]
    assert groups["size"].tolist() == ["", "insect", "", "", "", "", "big"]
    subsets = class_subsets(CLASSES, groups)
    assert list(subsets) == ["insect", "mammal", "size: insect", "big"]
    assert np.flatnonzero(subsets["insect"]).tolist() == [0, 1]
    assert np.flatnonzero(subsets["size: insect"]).tolist() == [1]


@pytest.mark.parametrize(
    ("classes", "rule", "facts"),
    [
        (["ant", "ant"], "class-grouped-twice", {"classes": ["ant"]}),
        (["ant"], "no-grouping-column", {}),
        (["ant", None], "value-missing-in-rows", {"column": "class", "rows": "line 3"}),
    ],
)
def test_bad_groups_are_one_clear_error(tmp_path, classes, rule, facts):
    path = tmp_path / "groups.csv"
    kinds = {"kind": ["x", "y"]} if len(classes) == 2 else {}
    pl.DataFrame({"class": classes} | kinds).write_csv(path)
    with refused(StudyError, rule, facts) as error:
        read_groups(path, CLASSES)
    assert str(error.value).startswith(f"{path}: ")


def test_superclasses_are_a_mapping_to_class_numbers(tmp_path):
    path = tmp_path / "superclasses.npy"
    np.save(path, np.array({"Dogs": [151, 152], "Fish": [0]}, dtype=object), allow_pickle=True)
    (column,) = read_groups(path, synsets()).values()
    assert np.flatnonzero(column == "Dogs").tolist() == [151, 152]
    assert np.flatnonzero(column == "").size == 997
    np.save(path, np.arange(3))
    with refused(StudyError, "no-superclass-mapping"):
        read_groups(path, synsets())


SUPERCLASSES = DATA / "imagenet-multilabel" / "superclasses.npy"


@needs(SUPERCLASSES)
def test_the_published_superclasses():
    (column,) = read_groups(SUPERCLASSES, synsets()).values()
    assert len(set(column.tolist()) - {""}) == 11
    published = np.load(SUPERCLASSES, allow_pickle=True).item()
    for name, members in published.items():
        assert np.flatnonzero(column == name).tolist() == sorted(members)


# ------------------------------------------------------------------ the published data

REAL = DATA / "reassessed-imagenet" / "real.json"
IMAGENETV2 = DATA / "imagenetv2" / "data"


@pytest.fixture(scope="module")
def published():
    data = imagenetv2.read_test_set(IMAGENETV2, imagenetv2.VALIDATION_SET)
    table = multilabel(data, read_label_sets([REAL], data), trials=2)
    return data, table


@needs(REAL)
@needs(IMAGENETV2)
def test_published_accuracies_are_those_of_a_direct_count(published):
    data, table = published
    assert len(data.classifiers) == 45
    listed = json.loads(
        (IMAGENETV2 / "datasets" / f"{imagenetv2.VALIDATION_SET}.json").read_text()
    )["image_filenames"]
    real = json.loads(REAL.read_text())
    sets = [real[int(name.split("_")[2].split(".")[0]) - 1] for name, _ in listed]
    wnids = sorted({wnid for _, wnid in listed})
    label = np.array([wnids.index(wnid) for _, wnid in listed])
    allowed = np.zeros((50_000, 1000), dtype=bool)
    for row, labels in enumerate(sets):
        allowed[row, labels] = True
    kept = np.array([bool(labels) for labels in sets])
    folder = IMAGENETV2 / "predictions" / imagenetv2.VALIDATION_SET
    overall = table.filter(pl.col("subset") == "all")
    rows = overall.pivot("metric", index="classifier", values="right").rows_by_key(
        "classifier", named=True, unique=True
    )
    whole = overall.filter(pl.col("metric") != "top-5 corrections already right")
    assert set(whole["images"]) == {kept.sum()}
    for name in data.classifiers:
        top5 = np.load(folder / f"{name}.npy")
        first = top5[:, 0]
        expected = {
            "top-1": np.sum((first == label) & kept),
            "top-5": np.sum((top5 == label[:, None]).any(axis=1) & kept),
            "multi-label": np.sum(allowed[np.arange(50_000), first] & kept),
        }
        assert {metric: rows[name][metric] for metric in expected} == expected
    velvet, other = (wnids.index(wnid) for wnid in ("n04525038", "n03709823"))
    own = (label == velvet) & kept
    pairs = co_occurrence(data, read_label_sets([REAL], data)).rows_by_key(["label", "answer"])
    (row,) = pairs[wnids[velvet], wnids[other]]
    assert row[:2] == (own.sum(), allowed[own, other].sum()) == (29, 3)
    assert row[2] == pytest.approx(3 / 29)  # not of 50, with those on which no label is right


@needs(REAL)
@needs(IMAGENETV2)
def test_published_resnet50_has_its_known_real_accuracy(published):
    """82.97 % by timm's published results, whose images were scaled a little otherwise."""
    _, table = published
    row = table.row(
        by_predicate=(pl.col("classifier") == "resnet50")
        & (pl.col("subset") == "all")
        & (pl.col("metric") == "multi-label"),
        named=True,
    )
    assert row["images"] == 50_000 - 3163
    assert row["accuracy"] == pytest.approx(0.8297, abs=0.005)


# ------------------------------------------------------------------ the command line


@pytest.fixture
def files(tmp_path):
    data = some_predictions(40)
    StudyContents(answers=[data]).write(tmp_path / "s")
    sets = {
        image: [CLASSES[label] for label in labels or [0]]
        for image, labels in zip(data.images.tolist(), some_sets(40), strict=True)
    }
    (tmp_path / "sets.json").write_text(json.dumps(sets))
    rows = {"class": CLASSES, "kind": ["insect"] * 2 + ["other"] * 5, "odd": list("xyxyxyx")}
    pl.DataFrame(rows).write_csv(tmp_path / "groups.csv")
    return tmp_path


def arguments(files, *more):
    table = [] if "--table" in more else ["--table", "multilabel"]
    fixed = ("papers", "compare", files / "s", "--datasets", "v1", *table)
    return (*fixed, "--input", f"labels={files}/sets.json", *more)


def test_the_command_prints_what_the_function_finds(capsys, files):
    status, text, error = run(
        capsys, *arguments(files, "--json", "--input", f"classes={files}/groups.csv")
    )
    assert (status, error) == (0, "")
    data = some_predictions(40)
    # What is read has only those classes that occur.
    sets = label_sets([labels or [0] for labels in some_sets(40)])
    groups = read_groups(files / "groups.csv", CLASSES)
    expected = multilabel(data, sets, subsets=class_subsets(CLASSES, groups))
    found = json.loads(text)["rows"]
    assert [row["classifier"] for row in found[::28]] == sorted(NETWORKS)
    expected = expected.sort(pl.col("classifier"), maintain_order=True)
    for column in ("classifier", "subset", "metric", "right", "images", "upper"):
        assert [row[column] for row in found] == expected[column].to_list()


@pytest.mark.parametrize("table", ["multilabel", "co-occurrence"])
def test_the_command_writes_csv_and_text(capsys, files, table):
    more = ("--table", table, "--input", f"classes={files}/groups.csv", "--by", "kind")
    status, text, error = run(capsys, *arguments(files, *more))
    assert (status, error) == (0, "")
    assert "insect" in text
    _, printed, _ = run(capsys, *arguments(files, *more, "--format", "csv"))
    assert pl.read_csv(io.StringIO(printed)).height > 0


NO_JSON, NO_CSV = ({"path": f"none.{kind}", "reason": NO_FILE} for kind in ("json", "csv"))
KINDS = {"choices": "kind, odd"}
V9 = {"dataset": "v9", "known_datasets": ["v1"]}
COLUMN = "unknown-grouping-column"


@pytest.mark.parametrize(
    ("more", "rule", "facts"),
    [
        ("--datasets v9", "data-set-without-predictions", V9),
        ("--input labels=none.json", "file-unreadable", NO_JSON),
        ("--input classes=none.csv", "file-unreadable", NO_CSV),
        ("--table people --by kind", "option-of-another-table", {"option": "input labels"}),
        ("--table co-occurrence --input classes=GROUPS", COLUMN, KINDS | {"column": None}),
        ("--input classes=GROUPS --by typo", COLUMN, KINDS | {"column": "typo"}),
        ("--by kind", "column-of-no-classes", {"column": "kind"}),
    ],
)
def test_wrong_use_is_one_line(capsys, files, more, rule, facts):
    path = str(files / "groups.csv")
    more = [each.replace("GROUPS", path) for each in more.split()]
    if rule == COLUMN:
        facts = facts | {"path": path}
    check(refusal(arguments(files, *more)), rule, facts)
    assert capsys.readouterr().out == ""


def test_missing_label_sets_are_warned_of_in_one_line(capsys, files):
    sets = json.loads((files / "sets.json").read_text())
    sets.pop("i07")
    (files / "sets.json").write_text(json.dumps(sets))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        status, out, error = run(capsys, *arguments(files, "--json"))
    assert status == 0
    assert json.loads(out)["rows"][0]["images"] == 39 - sum(not each for each in sets.values())
    assert error.startswith("bayesrep: ProtocolWarning: ")
    assert "'i07'" in error
    assert error.count("\n") == 1


def test_hostile_names_cannot_steer_the_terminal(capsys, files):
    """In a table, and in the line that a grouping column has to be chosen."""
    hostile = {"\x1b[2Jowned": ["x"] * 7}
    for columns, status in (({"kind": ["\x1b[2Jowned"] * 7}, 0), (hostile | {"kind": "x"}, 2)):
        pl.DataFrame({"class": CLASSES} | columns).write_csv(files / "hostile.csv")
        for table in ("multilabel", "co-occurrence")[status // 2 :]:
            more = ("--input", f"classes={files}/hostile.csv", "--table", table)
            found, out, error = run(capsys, *arguments(files, *more))
            assert found == status
            assert "owned" in out + error
            assert "\x1b" not in out + error
