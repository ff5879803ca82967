"""From image files to adjusted accuracies, in one small run of the experiment."""

import numpy as np
import polars as pl
import pytest

import bayesrep
from experiments import chain


@pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")  # of few images
def test_the_whole_chain(tmp_path):
    """Its files and tables; what it measures is in tests/statistics."""
    found = chain.run(tmp_path, images=80, seed=0, method="laplace")
    study = bayesrep.read_study(tmp_path / "study")
    assert study.classifiers == tuple(sorted(chain.CLASSIFIERS))
    assert [len(data.images) for data in study.datasets.values()] == [80, 80]
    kinds = {path.suffix for path in (tmp_path / "v1").rglob("*.*")}
    assert kinds == {".jpg", ".JPEG", ".png"}
    gaps = study.reference.correct.mean(axis=0) - study.replication.correct.mean(axis=0)
    assert found["gaps"]["raw"] == pytest.approx(gaps.mean())
    assert set(found["gaps"]) == {*chain.POINTS, "joint"}
    rows = found["classifiers"]
    assert all(row["lower"] < row["adjusted_accuracy"] < row["upper"] for row in rows)
    text = chain.text_of(found)
    assert "truth" in text
    assert all(name in text for name in chain.CLASSIFIERS)


def test_pools_are_filtered_and_matched_on_answers():
    """Where every annotator answers by s itself, matching on answers is matching on s."""

    class Certain(np.random.Generator):
        def beta(self, *_, size=None):
            return (np.arange(2 * 60 * 4).reshape(2, 240) % 2).astype(float)

        def binomial(self, n, p):
            return np.rint(n * p).astype(int)

    reference, replication = chain.matched_pools(Certain(np.random.PCG64()), 4)
    assert (reference == 1).all()
    assert (replication == 1).all()


def test_counts_follow_clarity(tmp_path):
    table = pl.read_csv(chain.make_data(tmp_path, 60, seed=1))
    assert table.columns == ["dataset", "image", "selected", "shown"]
    assert table["image"].is_unique().all()
    assert table.group_by("dataset").len()["len"].to_list() == [60, 60]
