"""From image files to adjusted accuracies, in one small run of the experiment."""

import numpy as np
import polars as pl

import bayesrep
from experiments import chain


def test_the_whole_chain(tmp_path):
    """The seed is fixed: nothing here can fail by chance."""
    found = chain.run(tmp_path, images=240, seed=0, method="laplace")
    study = bayesrep.read_study(tmp_path / "study")
    assert study.classifiers == tuple(sorted(chain.CLASSIFIERS))
    assert [len(data.images) for data in study.datasets.values()] == [240, 240]
    kinds = {path.suffix for path in (tmp_path / "v1").rglob("*.*")}
    assert kinds == {".jpg", ".JPEG", ".png"}
    # Every network has learned something, and does worse on the replication as measured.
    assert (study.reference.correct.mean(axis=0) > 0.3).all()
    assert found["gaps"]["raw"] > 0.02
    assert abs(found["gaps"]["joint"]) < found["gaps"]["raw"]
    rows = found["classifiers"]
    assert all(row["lower"] < row["adjusted_accuracy"] < row["upper"] for row in rows)
    text = chain.text_of(found)
    assert "truth" in text
    assert all(name in text for name in chain.CLASSIFIERS)


def test_matching_leaves_the_replication_less_clear():
    """Means of 20,000 images of known variance below 1/4: six standard errors are below 0.022."""
    reference, replication = chain.matched_pools(np.random.default_rng(0), 20_000)
    assert reference.mean() - replication.mean() > 0.022


def test_counts_follow_clarity(tmp_path):
    table = pl.read_csv(chain.make_data(tmp_path, 60, seed=1))
    assert table.columns == ["dataset", "image", "selected", "shown"]
    assert table["image"].is_unique().all()
    assert table.group_by("dataset").len()["len"].to_list() == [60, 60]
