"""Studies from tables in memory: the same study and the same complaints, whoever made them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zoo
from refusals import refused

import bayesrep
from bayesrep import Study, StudyError
from bayesrep.sources.frames import as_polars, read_frames
from bayesrep.sources.tables import read_tables

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
    return read_frames(counts=counts, predictions=predictions, **CALLED)


class HuggingFace:
    """What a data set of that library offers, with a frame inside."""

    def __init__(self, frame):
        self.frame = frame

    def to_polars(self):
        return pl.from_pandas(self.frame)


FORMS = {
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "arrow": pa.Table.from_pandas,
    "hugging face": HuggingFace,
    "columns": lambda frame: {name: frame[name] for name in frame},
    "rows": lambda frame: frame.to_dict("records"),
    "categories": lambda frame: frame.astype({"image": "category", "dataset": "category"}),
    "index": lambda frame: frame.set_index(np.arange(len(frame))[::-1]),
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
    beside = predictions.merge(counts.drop(columns="picture"), on=["dataset", "image"])
    assert read_frames(counts=beside, predictions=beside, **CALLED) == study


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


WRONG = {
    "a path": (
        lambda c, p: ("counts.csv", p),
        ("object-not-a-table", {"where": "counts", "type_name": "str"}),
    ),
    "an array": (
        lambda c, p: (np.zeros((2, 2)), p),
        ("object-not-a-table", {"where": "counts", "type_name": "ndarray"}),
    ),
    "no counts": (
        lambda c, p: (None, p),
        ("table-kind-absent", {"where": "predictions", "kind": "counts or annotations"}),
    ),
    "no predictions": (
        lambda c, p: (c, None),
        ("table-kind-absent", {"where": "counts", "kind": "predictions"}),
    ),
    "column": (
        lambda c, p: (c.drop(columns="shown"), p),
        ("table-lacks-columns", {"where": "counts", "columns": ["shown"]}),
    ),
    "name": (
        lambda c, p: (c, p.rename(columns={"classifier": "net"})),
        ("table-lacks-columns", {"where": "predictions", "columns": ["classifier"]}),
    ),
    "no rows": (lambda c, p: (c.head(0), p), ("table-without-rows", {"where": "counts"})),
    "impossible": (
        lambda c, p: (c.assign(selected=99), p),
        (
            "selected-exceeds-shown-in-rows",
            {"where": "counts", "images": [f"{i:03}" for i in range(20)] * 2},
        ),
    ),
    "not whole": (
        lambda c, p: (c.assign(shown=9.5), p),
        (
            "count-not-whole-in-rows",
            {
                "where": "counts",
                "column": "shown",
                "rows": "rows 1 (9.5), 2 (9.5), 3 (9.5), 4 (9.5), 5 (9.5), ... (40 rows)",
            },
        ),
    ),
    "one lacks": (
        lambda c, p: (c, p.iloc[1:]),
        (
            "prediction-missing",
            {"where": "predictions", "classifier": "resnet", "images": ["000"], "dataset": "v1"},
        ),
    ),
    "neither": (
        lambda c, p: (c, p.assign(correct=2)),
        (
            "flag-given-as-share",
            {
                "where": "predictions",
                "column": "correct",
                "rows": "rows 1 (2), 2 (2), 3 (2), 4 (2), 5 (2), ... (80 rows)",
            },
        ),
    ),
    "nested": (
        lambda c, p: (c, p.assign(image=[[1]] * 80)),
        (
            "column-type-unknown",
            {"where": "predictions", "column": "image", "dtype": "List(Int64)"},
        ),
    ),
    "bytes": (
        lambda c, p: (c.assign(image=[b"\xff"] * 40), p),
        ("column-type-unknown", {"where": "counts", "column": "image", "dtype": "Binary"}),
    ),
    "lengths": (
        lambda c, p: ({"dataset": ["v1", "v2"], "image": ["a"]}, p),
        ("table-object-unreadable", {"where": "counts"}),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_one_line(case, counts, predictions):
    change, broken = WRONG[case]
    first, second = change(counts, predictions)
    with refused(StudyError, *broken):
        read_frames(counts=first, predictions=second, **CALLED)


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
    ("given", "broken"),
    [
        ("nope", ("path-instead-of-study", {"path": "nope"})),
        (3, ("object-not-a-study", {"type_name": "int"})),
        (None, ("object-not-a-study", {"type_name": "NoneType"})),
    ],
)
def test_what_is_no_study_is_refused(given, broken, unannotated):
    with refused(StudyError, *broken):
        bayesrep.estimate(given)
