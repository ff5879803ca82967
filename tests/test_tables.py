"""One's own tables become a study, or one line says what is wrong with them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from openpyxl import Workbook
from own_tables import read_tables
from refusals import check, refusal, refused

from bayesrep import StudyError, cli, read_frames, read_study
from bayesrep.errors import TableWarning
from bayesrep.sources import READERS
from bayesrep.sources.tables import check_tables

IMAGES = {"v1": ["007", "b", "c"], "v2": ["007", "x"]}
SELECTED = {"v1": [3, 4, 0], "v2": [1, 5]}
SHOWN = {"v1": [4, 4, 2], "v2": [3, 5]}
CORRECT = {
    "v1": np.array([[1, 0], [1, 1], [0, 0]], dtype=bool),
    "v2": np.array([[0, 1], [1, 0]], dtype=bool),
}
CLASSIFIERS = ["resnet", "vgg"]
ROLES = {"reference": "v1", "replication": "v2"}
NAMES = [(d, i) for d, names in IMAGES.items() for i in range(len(names))]


def counts():
    return pl.DataFrame(
        [(d, IMAGES[d][i], SELECTED[d][i], SHOWN[d][i]) for d, i in NAMES],
        schema=["dataset", "image", "selected", "shown"],
        orient="row",
    )


def annotations():
    rows = [
        (d, IMAGES[d][i], f"worker {w}", w < SELECTED[d][i])
        for d, i in NAMES
        for w in range(SHOWN[d][i])
    ]
    return pl.DataFrame(rows, schema=["dataset", "image", "worker", "selected"], orient="row")


def predictions():
    rows = [
        (d, IMAGES[d][i], name, bool(CORRECT[d][i, c]))
        for d, i in NAMES
        for c, name in enumerate(CLASSIFIERS)
    ]
    return pl.DataFrame(rows, schema=["dataset", "image", "classifier", "correct"], orient="row")


def wide():
    rows = [(d, IMAGES[d][i], *CORRECT[d][i].astype(int).tolist()) for d, i in NAMES]
    return pl.DataFrame(rows, schema=["dataset", "image", *CLASSIFIERS], orient="row")


def images():
    rows = [(d, IMAGES[d][i], "01", "dogs" if i else "cats") for d, i in NAMES]
    return pl.DataFrame(rows, schema=["dataset", "image", "label", "superclass"], orient="row")


@pytest.fixture
def write(tmp_path):
    def write(**frames):
        paths = []
        for name, frame in frames.items():
            stem, _, kind = name.rpartition("_")
            path = tmp_path / f"{stem or name}.{kind if stem else 'csv'}"
            getattr(frame, f"write_{path.suffix[1:]}")(path)
            paths.append(path)
        return paths

    return write


def read(paths):
    return read_tables(paths, **ROLES)


def check_study(study):
    assert study.classifiers == tuple(CLASSIFIERS)
    for role, name in ROLES.items():
        data = study.datasets[role]
        assert data.name == name
        assert data.images.tolist() == IMAGES[name]
        assert data.selected.tolist() == SELECTED[name]
        assert data.shown.tolist() == SHOWN[name]
        assert (data.correct == CORRECT[name]).all()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("counted", [counts, annotations])
@pytest.mark.parametrize("predicted", [predictions, wide])
def test_every_combination_of_kinds_gives_the_same_study(write, kind, counted, predicted):
    paths = write(**{f"c_{kind}": counted(), f"p_{kind}": predicted(), f"i_{kind}": images()})
    study = read(paths[::-1])
    check_study(study)
    assert study.reference.labels is not None
    assert study.reference.labels.tolist() == ["01"] * 3
    assert study.replication.groups["superclass"].tolist() == ["cats", "dogs"]


def test_annotations_may_come_without_the_worker(write):
    study = read(write(a=annotations().drop("worker"), p=wide()))
    check_study(study)
    assert study.reference.answers is None
    first, second = annotations().partition_by("dataset")
    study = read(write(a=first, b=second.drop("worker"), p=wide()))
    check_study(study)
    assert study.reference.answers is not None
    assert study.replication.answers is None


def test_answers_of_nobody_in_particular_are_not_counted_twice(write):
    """Neither in another form of the table, nor beside the same answers with workers."""
    nameless = annotations().drop("worker")
    shuffled = nameless.sample(fraction=1.0, shuffle=True, seed=0)
    with refused(StudyError, "same-answers-twice", {"dataset": "v1"}):
        read(write(a=nameless, b_parquet=shuffled, p=wide()))
    with refused(StudyError, "answers-with-and-without-workers", {"dataset": "v1"}):
        read(write(a=nameless, b=annotations(), p=wide()))
    halves = [nameless.gather_every(2, at) for at in (0, 1)]  # those are different answers
    assert read(write(a=halves[0], b=halves[1], p=wide())).reference.shown.sum() == 10


def test_a_column_of_workers_that_is_empty_is_none(write):
    empty = annotations().with_columns(worker=pl.lit(None, pl.String))
    study = read(write(a=empty, p=wide()))
    check_study(study)
    assert study.reference.answers is None


def test_names_of_data_sets_that_are_asked_for_are_names(write):
    study = read_tables(write(c=counts(), p=wide()), reference=" v1\u200b", replication="v2 ")
    check_study(study)


def test_counts_without_shown_are_no_annotations(write):
    """Neither where some were selected more than once, nor where every image stands once."""
    for selected in (pl.col("selected"), pl.col("selected").clip(0, 1)):
        with refused(StudyError, "table-kind-incomplete", {"missing": ["shown"]}):
            read(write(c=counts().select("dataset", "image", selected), p=wide()))


def test_predicted_labels_stand_for_correct(write):
    """The label is the table's own, or that of the images."""
    labels = images().select("dataset", "image", "label")
    said = predictions().with_columns(
        label_1=pl.when("correct").then(pl.lit("01")).otherwise(pl.lit("2"))
    )
    said = said.drop("correct")
    with refused(StudyError, "answers-without-labels"):
        read(write(c=counts(), p=said))
    check_study(read(write(c=counts(), p=said, i=labels)))
    check_study(read(write(c=counts(), p=said.with_columns(label=pl.lit("01")))))
    with pytest.warns(TableWarning, match=r"'resnet' .*'1' and '01' are alike"):
        read(write(c=counts(), p=said.with_columns(pl.col("label_1").replace("2", "1")), i=labels))
    beside = said.join(counts(), on=["dataset", "image"]).with_columns(label=pl.lit("01"))
    check_study(read(write(c=beside)))


def test_predicted_labels_that_count_from_one_are_refused(write):
    """Also where one classifier of several does, and never where labels are names."""
    rng = np.random.default_rng(0)
    rows = []
    for dataset in ("v1", "v2"):
        for image, label in enumerate(rng.integers(0, 10, 200).tolist()):
            for name, shift in (("good", 0), ("bad", 1)):
                said = label if rng.random() < 0.8 else int(rng.integers(10))
                rows.append((dataset, f"i{image}", name, str(label), str(said + shift)))
    columns = ["dataset", "image", "classifier", "label", "label_1"]
    said = pl.DataFrame(rows, columns, orient="row")
    counted = said.select("dataset", "image").unique().with_columns(selected=1, shown=2)
    with refused(StudyError, "class-numbers-not-alike", {"mistake": "the labels are one too low"}):
        read(write(c=counted, p=said))
    study = read(write(c=counted, p=said.filter(classifier="good")))
    assert 0.75 < study.reference.correct.mean() < 0.9
    named = said.with_columns(pl.format("class {}", pl.col("label", "label_1")))
    assert read(write(c=counted, p=named)).reference.correct[:, 1].mean() < 0.3


def test_a_file_given_twice_is_refused(write):
    paths = write(c=counts(), p=predictions())
    copy = paths[1].with_name("copy.csv")
    copy.write_bytes(paths[1].read_bytes())
    for again in (paths[1], copy):
        with refused(StudyError, "same-file-twice", {"other": str(paths[1])}):
            read([*paths, again])


def test_the_registry_reads_tables(write):
    study = READERS["tables"].read(write(c=counts(), p=wide()), **ROLES, name="mine").study()
    check_study(study)
    assert study.name == "mine"


def test_row_order_and_shards_do_not_matter_for_predictions(write):
    shuffled = (
        predictions()
        .sample(fraction=1, shuffle=True, seed=1)
        .sort("classifier", maintain_order=True)
    )
    check_study(read(write(c=counts(), p1=shuffled[:4], p2_parquet=shuffled[4:])))
    # One classifier in a long table, the other in a wide one, which could be of groups too.
    long = predictions().filter(pl.col("classifier") == "resnet")
    with pytest.warns(TableWarning, match="'vgg'"):
        check_study(read(write(c=counts(), p3=long, p4=wide().drop("resnet"))))


def test_crowd_kit_names(write):
    frame = annotations().rename({"image": "task", "selected": "label"})
    check_study(read(write(a=frame, p=wide())))
    check_study(read(write(a=annotations().rename({"image": "task"}), p=wide())))


def test_yes_and_no_in_many_spellings(write):
    words = pl.when("selected").then(pl.lit("Yes")).otherwise(pl.lit("no")).alias("selected")
    correct = pl.when("correct").then(pl.lit("True")).otherwise(pl.lit("False")).alias("correct")
    check_study(
        read(write(a=annotations().with_columns(words), p=predictions().with_columns(correct)))
    )
    floats = pl.col("selected").cast(pl.Float64)
    check_study(read(write(a=annotations().with_columns(floats), p=predictions())))


def test_other_columns_are_ignored(write):
    check_study(read(write(c=counts().with_columns(time=1.5), p=predictions())))


def test_other_data_sets_are_refused_by_name(write):
    other = {"data_sets": ["flickr"], "study_data_sets": "'v1' and 'v2'"}
    third = counts().with_columns(dataset=pl.lit("flickr"))
    paths = write(c=pl.concat([counts(), third]), p=predictions())
    with refused(StudyError, "rows-of-other-data-sets", other):
        read(paths)
    called = predictions().with_columns(pl.col("dataset").replace("v1", "flickr"))
    paths = write(c=counts(), p=called)
    hint = f"; its images in {paths[1]} are those of 'v1'"
    with refused(StudyError, "rows-of-other-data-sets", {"data_sets": ["flickr"], "hint": hint}):
        read(paths)
    more = pl.concat([predictions(), predictions().with_columns(dataset=pl.lit("flickr"))])
    with refused(StudyError, "rows-of-other-data-sets", other):
        read(write(c=counts(), p=more))


@pytest.mark.parametrize("predicted", [False, True])
@pytest.mark.parametrize("table", [predictions, wide])
def test_a_pool_of_candidates_comes_in(write, tmp_path, predicted, table):
    """With predictions or without; as a folder it is what it was."""
    pool = counts().filter(dataset="v1").with_columns(dataset=pl.lit("flickr"))
    answers = table()
    more = answers.filter(dataset="v1").with_columns(dataset=pl.lit("flickr"))
    paths = write(c=pl.concat([counts(), pool]), p=pl.concat([answers, more][: 1 + predicted]))
    study = read_tables(paths, **ROLES, candidates="flickr")
    check_study(study)
    found = study.datasets["candidates"]
    assert found.name == "flickr"
    assert found.selected.tolist() == SELECTED["v1"]
    assert found.correct.shape == (len(IMAGES["v1"]), predicted * len(CLASSIFIERS))
    study.write(tmp_path / "study")
    again = read_study(tmp_path / "study")
    assert again.fingerprint() == study.fingerprint()


def test_candidates_that_are_not_there_or_half_predicted(write):
    paths = write(c=counts(), p=predictions())
    absent = {"dataset": "flickr", "data_sets": ["v1", "v2"]}
    with refused(StudyError, "data-set-of-role-absent", absent):
        read_tables(paths, **ROLES, candidates="flickr")
    pool = counts().filter(dataset="v1").with_columns(dataset=pl.lit("flickr"))
    some = predictions().filter(dataset="v1", classifier=CLASSIFIERS[0])
    some = some.with_columns(dataset=pl.lit("flickr"))
    paths = write(c=pl.concat([counts(), pool]), p=pl.concat([predictions(), some]))
    lacking = {"classifiers": ["vgg"], "other_dataset": "v1", "dataset": "flickr"}
    with refused(StudyError, "classifier-on-one-data-set", lacking):
        read_tables(paths, **ROLES, candidates="flickr")


def test_further_data_sets_come_in_by_role(write, tmp_path, capsys):
    """As many as there are; rows of one that is given no role are told, and not dropped."""
    third, fourth = ("third", "v3"), ("fourth", "v4")
    both = [counts(), predictions()]
    for _, name in (third, fourth):
        like = [each.filter(dataset="v2").with_columns(dataset=pl.lit(name)) for each in both]
        both = [pl.concat(pair) for pair in zip(both, like, strict=True)]
    paths = write(c=both[0], p=both[1])
    study = read_tables(paths, **ROLES, further=dict([third, fourth]))
    names = {role: data.name for role, data in study.datasets.items()}
    assert names == {"reference": "v1", "replication": "v2", "third": "v3", "fourth": "v4"}
    assert study.datasets["fourth"].selected.tolist() == SELECTED["v2"]
    with refused(StudyError, "rows-of-other-data-sets", {"data_sets": ["v4"]}):
        read_tables(paths, **ROLES, further=dict([third]))
    pool = read_tables(paths, **ROLES, further={"candidates": "v3", "fourth": "v4"})
    assert pool.datasets["candidates"].name == "v3"
    with refused(StudyError, "role-has-own-option", {"role": "reference"}):
        read_tables(paths, **ROLES, further={"reference": "v3", "fourth": "v4"})
    with refused(StudyError, "data-set-with-several-roles", {"data_sets": ["v3"]}):
        read_tables(paths, **ROLES, further={"third": "v3", "fourth": "v3"})
    words = ["import", "tables", *paths, "--reference", "v1", "--replication", "v2"]
    words = [*map(str, words), "--out", str(tmp_path / "study")]
    more = [word for role, name in (third, fourth) for word in ("--further", f"{role}={name}")]
    assert cli.main([*words, *more]) == 0
    assert read_study(tmp_path / "study").datasets.keys() == study.datasets.keys()
    assert cli.main(["check", *map(str, paths), *words[-6:-2], *more]) == 0
    assert "run " in capsys.readouterr().out
    words += ["--force", *more, "--further"]
    for wrong in ("v3", "third="):
        facts = {"option": "--further", "argument": wrong, "form": "ROLE=NAME"}
        check(refusal([*words, wrong]), "pair-without-names", facts)
    facts = {"option": "--further", "name": "third"}
    check(refusal([*words, "third=v4"]), "pair-given-twice", facts)


def at(row, table=counts, **values):
    """A table with some values of one row replaced."""
    number = pl.int_range(pl.len())
    return table().with_columns(
        pl.when(number == row).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
        for name, value in values.items()
    )


V1, SOLE = pl.col("dataset") == "v1", pl.col("classifier") == "vgg"
FLAG, COUNT = "flag-given-as-share", "count-not-whole-in-rows"
REPEATED = {"repeated": ["worker 0 on 007"], "dataset": "v1", "lines": " (lines 2, 20)"}
UNCOUNTED = {"images": ["c"], "dataset": "v1", "lines": " (lines 6, 7)"}
UNPREDICTED = {"classifier": "resnet", "images": ["x"], "dataset": "v2"}
ONE_SIDED = {"classifiers": ["resnet"], "other_dataset": "v1", "dataset": "v2"}
LABELS = {"where": "study 'study'", "dataset": "v1", "labels": ["02"], "other_dataset": "v2"}
MISNAMED = counts().rename({"image": "images", "selected": "sel", "shown": "of"})
RENAME = "; rename 'images' to 'image', if that is what it holds"
BAD = [  # and those of tests/test_table_mistakes.py
    (COUNT, dict(c=at(1, selected=1.5)), {"column": "selected", "rows": "line 3 ('1.5')"}),
    (COUNT, dict(c=at(1, selected=None)), {"column": "selected", "rows": "line 3 (nothing)"}),
    (FLAG, dict(p=at(3, wide, vgg=2)), {"column": "vgg", "rows": "line 5 ('2')"}),
    ("table-rows-repeated", dict(c=pl.concat([annotations(), annotations()[[0]]])), REPEATED),
    (
        "answers-about-several-labels",
        dict(c=annotations().with_columns(label=pl.col("worker"))),
        {},
    ),
    ("predictions-without-counts", dict(c=counts()[[0, 1, 3, 4]]), UNCOUNTED),
    (
        "prediction-missing",
        dict(p=wide()[:4]),
        UNPREDICTED | {"others": ", and 1 classifier more"},
    ),
    ("classifier-on-one-data-set", dict(p=predictions().filter(V1 | SOLE)), ONE_SIDED),
    (
        "data-set-lacks-kind",
        dict(c=counts().filter(V1)),
        {"kind": "counts or annotations", "dataset": "v2", "data_sets": "'v1'"},
    ),
    ("both-counts-and-annotations", dict(c=counts(), a=annotations()), {"dataset": "v1"}),
    ("counted-image-without-label", dict(i=images()[1:]), {"images": ["007"], "dataset": "v1"}),
    ("labels-of-one-data-set", dict(i=at(0, images, label="02")), LABELS),
    (
        "table-key-column-missing",
        dict(x=wide().drop("dataset")),
        {"column": "dataset", "other_columns": "'resnet', 'vgg'"},
    ),
    (
        "table-columns-unknown",
        dict(c=MISNAMED),
        {"columns": "'dataset', 'images', 'sel', 'of'", "hint": RENAME},
    ),
]


PLACES = {
    "predictions-without-counts": ["p.csv"],
    "both-counts-and-annotations": ["c.csv", "a.csv"],
    "labels-of-one-data-set": ["study 'study'"],
}


@pytest.mark.parametrize(("rule", "changed", "facts"), BAD)
def test_bad_tables_are_one_clear_error(write, rule, changed, facts):
    with refused(StudyError, rule, facts) as error:
        read(write(**({"c": counts(), "p": predictions()} | changed)))
    where = str(error.value).partition(": ")[0]
    named = [Path(file).name for file in where.split(", ")]
    assert error.value.facts.get("counts_where", "c.csv").endswith("c.csv")
    assert named == PLACES.get(rule, [f"{next(iter(changed))}.csv"])


def test_answers_about_an_image_are_about_one_label_wherever_they_stand(write):
    first, second = (annotations().with_columns(label=pl.lit(label)) for label in ("cat", "dog"))
    second = second.with_columns(pl.col("worker") + " of others")
    images = sorted({*IMAGES["v1"], *IMAGES["v2"]})
    with refused(StudyError, "answers-about-several-labels", {"images": images}):
        read(files := write(a=first, b=second, p=predictions()))
    assert len(check_tables(files, **ROLES)[1]) == 1, "a fault of both data sets is one"
    given = {"predictions": predictions(), **ROLES}
    assert read_frames(annotations=first, **given).classifiers == tuple(CLASSIFIERS)
    with refused(StudyError, "answers-about-several-labels", {"images": images}):
        read_frames(annotations=pl.concat([first, second]), **given)
    nothing = pl.lit(None, pl.String)  # of frames of predictions other columns are ignored
    given["predictions"] = predictions().with_columns(label=nothing)
    assert read_frames(annotations=first, **given).classifiers == tuple(CLASSIFIERS)


def test_a_missing_kind_is_named(write):
    with refused(StudyError, "study-lacks-predictions"):
        read(write(c=counts()))
    with refused(StudyError, "table-kind-absent", {"kind": "counts or annotations"}):
        read(write(p=wide()))
    with refused(StudyError, "table-kind-absent", {"kind": "counts or annotations"}):
        read([])


def test_unreadable_files(tmp_path, write):
    (path,) = write(c_parquet=counts())
    path.write_bytes(path.read_bytes()[:-20])
    with refused(StudyError, "parquet-file-unreadable"):
        read([path])
    with refused(StudyError, "file-unreadable", {"reason": "No such file or directory"}):
        read([tmp_path / "none.csv"])
    (tmp_path / "a.xlsx").write_text("x")
    with refused(StudyError, "workbook-damaged"):
        read([tmp_path / "a.xlsx"])
    book = Workbook()
    book.create_chartsheet()
    book.save(tmp_path / "a.xlsx")
    with refused(StudyError, "workbook-damaged") as error:
        read([tmp_path / "a.xlsx"])
    assert error.value.facts["reason"] == "a sheet of it is for a chart that is not there"


def test_a_thousand_classifiers(write):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, (5, 1000))
    columns = [pl.Series(f"c{i}", values[:, i]) for i in range(1000)]
    frame = wide().select("dataset", "image").hstack(columns)
    study = read(write(c=counts(), p=frame))
    assert study.reference.correct.shape == (3, 1000)
    assert (study.replication.correct == values[3:].astype(bool)).all()
