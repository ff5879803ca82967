"""Studies from tables in memory: the same study and the same complaints, whoever made them."""

import json
import unicodedata
import warnings
from urllib.parse import quote

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zoo
from own_tables import read_tables
from refusals import refused

import bayesrep
from bayesrep import Study, StudyError
from bayesrep.errors import TableWarning
from bayesrep.files.tables import read_only
from bayesrep.sources.frames import as_polars, read_frames
from bayesrep.sources.raw_answers import read_raw

CALLED = {"reference": "v1", "replication": "v2"}


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    shown = rng.integers(5, 11, 40)
    return pd.DataFrame(
        {
            "dataset": np.repeat(["v1", "v2"], 20),
            "image": [f"{i:03}" for i in range(20)] * 2,
            "selected": rng.binomial(shown, 0.8),
            "shown": shown,
            "picture": [[1, 2]] * 40,  # what no study takes is ignored, whatever it is
        }
    )


@pytest.fixture(scope="module")
def predictions(counts):
    rng = np.random.default_rng(1)
    keys = counts[["dataset", "image"]]
    each = [keys.assign(classifier=c, correct=rng.random(40) < 0.7) for c in ("resnet", "vit")]
    return pd.concat(each, ignore_index=True)


@pytest.fixture(scope="module")
def study(counts, predictions):
    return read_frames(counts, predictions, **CALLED)


class HuggingFace:
    """What a data set of that library offers, with a frame inside."""

    def __init__(self, frame):
        self.frame = frame

    def to_polars(self):
        return pl.DataFrame(self.frame)


FORMS = {
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "arrow": pa.Table.from_pandas,
    "hugging face": HuggingFace,
    "columns": lambda frame: {name: frame[name] for name in frame},
    "rows": lambda frame: frame.to_dict("records"),
    "categories": lambda frame: frame.astype({"image": "category", "dataset": "category"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_table_gives_the_same_study(form, counts, predictions, study):
    made = FORMS[form]
    assert read_frames(counts=made(counts), predictions=made(predictions), **CALLED) == study


def test_it_is_the_study_of_the_same_files(counts, predictions, study, tmp_path):
    frames = {"counts": counts.drop(columns="picture"), "predictions": predictions}
    for name, frame in frames.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    paths = [tmp_path / f"{name}.csv" for name in frames]
    assert read_tables(paths, **CALLED).fingerprint() == study.fingerprint()


def test_wide_predictions_and_counts_beside_them(counts, predictions, study):
    wide = predictions.pivot(index=["dataset", "image"], columns="classifier", values="correct")
    assert read_frames(counts=counts, predictions=wide.reset_index(), **CALLED) == study
    summed = pl.from_pandas(counts).with_columns(pl.col("selected").cast(pl.Decimal(38, 2)))
    assert read_frames(counts=summed, predictions=predictions, **CALLED) == study
    beside = predictions.merge(counts.drop(columns="picture"), on=["dataset", "image"])
    assert read_frames(counts=beside, predictions=beside, **CALLED) == study


INDEXES = {
    "counts from 1": lambda frame: frame.set_index(np.arange(1, len(frame) + 1)),
    "filtered": lambda frame: frame.set_index(3 * np.arange(len(frame)) + 2),
    "concatenated": lambda frame: frame.set_index(np.tile(np.arange(len(frame) // 2), 2)),
    "made a column": lambda frame: frame.set_index(np.arange(len(frame)) % 20).reset_index(),
    "of the images": lambda frame: frame.set_index("image"),
    "of data sets and images": lambda frame: frame.set_index(["dataset", "image"]),
}
STORED = {
    "csv": lambda frame, path: frame.to_csv(path),
    "parquet": lambda frame, path: frame.to_parquet(path),
    "xlsx": lambda frame, path: frame.to_excel(path, merge_cells=False),
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pl.from_pandas(frame, include_index=True),
    "arrow": lambda frame, _: pa.Table.from_pandas(frame),
    "hugging face": lambda frame, _: HuggingFace(pa.Table.from_pandas(frame)),
}


def read_stored(frames, stored, folder):
    paths = {name: folder / f"{name}.{stored}" for name in frames}
    given = {name: STORED[stored](frame, paths[name]) for name, frame in frames.items()}
    if stored in ("csv", "parquet", "xlsx"):
        return read_tables(list(paths.values()), **CALLED)
    return read_frames(**given, **CALLED)


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize("stored", STORED)
def test_an_index_is_no_classifier_and_no_group_and_may_name_images(
    kind, stored, counts, predictions, tmp_path
):
    wide = predictions.pivot(index=["dataset", "image"], columns="classifier", values="correct")
    keys = counts[["dataset", "image"]]
    frames = {
        "counts": counts.drop(columns="picture"),
        "predictions": wide.reset_index().rename_axis(columns=None),
        "images": keys.assign(label="cat", kind=["a", "b"] * 20),
    }
    right = read_frames(**frames, **CALLED)
    made = {name: INDEXES[kind](frame) for name, frame in frames.items()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read_stored(made, stored, tmp_path)
    assert found.fingerprint() == right.fingerprint()
    named = kind == "made a column" or (stored == "polars" and not kind.startswith("of"))
    assert {each.category for each in caught} == ({TableWarning} if named else set())


@pytest.mark.parametrize("stored", sorted(STORED.keys() - {"polars"}))
def test_an_index_of_texts_is_refused_without_a_name_and_else_said(stored, tmp_path):
    frame, path = pd.DataFrame({"image": ["a", "b"]}), tmp_path / f"images.{stored}"

    def read(frame):
        given = STORED[stored](frame, path)
        return as_polars(given, "images") if given is not None else read_only(path, ["image"]).frame

    with refused(StudyError, "column-without-name", {"value": "x"}):
        read(frame.set_index(pd.Index(["x", "y"])))
    if stored in ("parquet", "pandas", "arrow"):  # which know that it is one
        with pytest.warns(TableWarning, match="column 'id' left out"):
            assert read(frame.set_index(pd.Index(["x", "y"], name="id"))).columns == ["image"]


OTHERWISE = {
    "as they are": (["a", "b"], str, "same"),
    "blanks": (["a", "b"], lambda name: f" {name}\u00a0", "same"),
    "letters of two parts": (["é", "ü"], lambda name: unicodedata.normalize("NFD", name), "same"),
    "case": (["a.png", "b.png"], str.upper, "matched"),
    "endings": (["a", "b"], lambda name: f"{name}.JPEG", "matched"),
    "folders": (["a.png", "b.png"], lambda name: f"val/{name}", "matched"),
    "backslashes": (["cat/0.png", "dog/0.png"], lambda n: n.replace("/", "\\"), "matched"),
    "zeros before": (["7", "12"], lambda name: name.zfill(3), "matched"),
    "local files": (["a.jpg", "b.jpg"], lambda name: f"/data/local-files/?d={name}", "matched"),
    "signed": (["a.jpg", "b.jpg"], lambda name: f"https://s/{name}?X-Amz-Date={name}", "matched"),
    "fragments": (["a.jpg", "b#1.jpg"], lambda name: f"{name}#t=1", "matched"),
    "percent": (["é 1.jpg", "b#.jpg"], lambda name: f"https://s/{quote(name)}", "matched"),
    "decimals": (["1", "2"], lambda name: f"{name}.0", "as decimal numbers"),
    "places": (["1.1", "1.2"], lambda name: f"{name}0", "as decimal numbers"),
}


@pytest.mark.parametrize("stored", ["csv", "parquet", "xlsx", "pandas", "polars", "label-studio"])
@pytest.mark.parametrize("kind", OTHERWISE)
def test_names_that_differ_are_matched_aloud_or_told_how(kind, stored, tmp_path):
    names, change, outcome = OTHERWISE[kind]
    keys = pd.DataFrame({"dataset": ["v1", "v1", "v2"], "image": [*names, "z"]})
    strange = keys.assign(image=[*map(change, names), "z"])
    frames = {"counts": keys.assign(selected=1, shown=2), "predictions": strange.assign(m=True)}
    told = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if stored == "label-studio":  # it is the answers that have the other names
            one = {"completed_by": 1, "result": []}
            held = [{"data": {"image": name}, "annotations": [one]} for name in strange["image"]]
            (tmp_path / "export.json").write_text(json.dumps(held))
            counted = read_raw(stored, tmp_path / "export.json")["image"].to_list()
            frames = {"counts": strange.assign(image=counted, selected=1, shown=2)}
            frames["predictions"] = keys.assign(m=True)
        try:
            read_stored(frames, stored.replace("label-studio", "pandas"), tmp_path)
        except StudyError as error:
            told = error.facts["hint"]
    heard = any("are matched with" in str(each.message) for each in caught)
    assert heard == (outcome == "matched")
    assert (told != "") == (outcome not in ("same", "matched"))
    assert outcome in told or not told


def test_annotations_labels_and_candidates(counts, predictions):
    rows = [
        {
            "dataset": row.dataset,
            "image": row.image,
            "worker": f"w{w}",
            "selected": w < row.selected,
        }
        for row in counts.itertuples()
        for w in range(row.shown)
    ]
    images = counts[["dataset", "image"]].assign(label="cat", kind=["a", "b"] * 20)
    made = read_frames(annotations=rows, predictions=predictions, images=images, **CALLED)
    np.testing.assert_array_equal(made.reference.selected, counts["selected"][:20])
    assert made.reference.groups["kind"].tolist() == ["a", "b"] * 10
    assert made.replication.answers is not None
    pool = counts[counts["dataset"] == "v1"].assign(dataset="pool")
    both = pd.concat([counts, pool])
    made = read_frames(counts=both, predictions=predictions, candidates="pool", **CALLED)
    assert made.datasets["candidates"].correct.shape == (20, 0)


def test_a_study_gives_its_tables_back(counts, study):
    assert study.counts.equals(pl.from_pandas(counts.drop(columns="picture")))
    measured = study.accuracies
    assert measured.columns == ["classifier", "reference_accuracy", "replication_accuracy"]
    np.testing.assert_allclose(measured["replication_accuracy"], study.replication.correct.mean(0))
    described = study.describe()
    assert described["dataset"].to_list() == ["v1", "v2"]
    assert described["images"].to_list() == [20, 20]
    np.testing.assert_allclose(described["mean_accuracy"][0], study.reference.correct.mean())


NUMBERS = [f"{i:03}" for i in range(20)]
LACKING = {"classifier": "resnet", "images": ["000"], "dataset": "v1"}


def many(value, rows):
    """The first five rows with a value of so many."""
    return f"rows {', '.join(f'{row} ({value})' for row in range(1, 6))}, ... ({rows} rows)"


WRONG = [  # where it is, what is done to counts or predictions, the rule and its facts
    ("counts", lambda c: "counts.csv", "object-not-a-table", {"type_name": "str"}),
    ("counts", lambda c: np.zeros((2, 2)), "object-not-a-table", {"type_name": "ndarray"}),
    ("counts", lambda c: c.drop(columns="shown"), "table-lacks-columns", {"columns": ["shown"]}),
    (
        "predictions",
        lambda p: p.rename(columns={"classifier": "thing"}),
        "table-lacks-columns",
        {"columns": ["classifier"]},
    ),
    ("counts", lambda c: c.head(0), "table-without-rows", {}),
    (
        "counts",
        lambda c: c.assign(selected=99),
        "selected-exceeds-shown-in-rows",
        {"images": NUMBERS * 2},
    ),
    (
        "counts",
        lambda c: c.assign(shown=9.5),
        "count-not-whole-in-rows",
        {"column": "shown", "rows": many(9.5, 40)},
    ),
    ("predictions", lambda p: p.iloc[1:], "prediction-missing", LACKING),
    (
        "predictions",
        lambda p: p.assign(correct=2),
        "flag-given-as-share",
        {"column": "correct", "rows": many(2, 80)},
    ),
    (
        "predictions",
        lambda p: p.assign(image=[[1]] * 80),
        "column-type-unknown",
        {"column": "image", "dtype": "List(Int64)"},
    ),
    (
        "counts",
        lambda c: c.assign(image=[b"\xff"] * 40),
        "column-type-unknown",
        {"column": "image", "dtype": "Binary"},
    ),
    (
        "counts",
        lambda c: {"dataset": ["v1", "v2"], "image": ["a"]},
        "table-object-unreadable",
        {},
    ),
]


@pytest.mark.parametrize(("where", "change", "rule", "facts"), WRONG)
def test_what_is_wrong_is_one_line(where, change, rule, facts, counts, predictions):
    tables = {"counts": counts, "predictions": predictions}
    with refused(StudyError, rule, {"where": where} | facts):
        read_frames(**tables | {where: change(tables[where])}, **CALLED)


def test_a_kind_that_is_not_given_is_named(counts, predictions):
    for kind, given, lacks in (
        ("counts", counts, "predictions"),
        ("predictions", predictions, "counts or annotations"),
    ):
        with refused(StudyError, "table-kind-absent", {"where": kind, "kind": lacks}):
            read_frames(**{kind: given}, **CALLED)


def test_mixed_columns_of_pandas_are_text():
    frame = pd.DataFrame({"image": [1, "b", None]})
    assert as_polars(frame, "counts")["image"].to_list() == ["1", "b", None]


def test_studies_are_equal_where_all_that_they_hold_is(tmp_path, study):
    study.write(tmp_path / "study")
    one, other = (bayesrep.read_study(tmp_path / "study") for _ in range(2))
    assert one == other == study
    assert hash(one) == hash(other)
    assert len({one, other}) == 1
    assert one.reference == other.reference != one.replication
    statistics = bayesrep.SufficientStatistics
    assert statistics.of(one) == statistics.of(other)
    renamed = Study(one.datasets, one.classifiers, name="other")
    assert renamed != one
    assert renamed.fingerprint() == one.fingerprint()
    assert one != "study"


def test_data_introduce_themselves_in_a_line(study):
    hostile = Study(study.datasets, study.classifiers, name="<b>\x1b[31m")
    statistics = bayesrep.SufficientStatistics.of(study)
    truth = zoo.study("tiny").truth
    every = (hostile, study.reference, statistics, statistics.reference, truth)
    for data in every:
        assert "\n" not in repr(data)
        assert len(repr(data)) < 160
        assert "\x1b" not in repr(data)
        assert "array" not in repr(data)
    assert repr(study).startswith("<Study: 'study', 2 classifiers, reference 'v1' (20 images)")
    page = hostile._repr_html_()
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "&lt;b&gt;" in page


@pytest.mark.parametrize(
    ("given", "rule", "facts"),
    [
        ("nope", "path-instead-of-study", {"path": "nope"}),
        (3, "object-not-a-study", {"type_name": "int"}),
        (None, "object-not-a-study", {"type_name": "NoneType"}),
    ],
)
def test_what_is_no_study_is_refused(given, rule, facts, unannotated):
    with refused(StudyError, rule, facts):
        bayesrep.estimate(given)
