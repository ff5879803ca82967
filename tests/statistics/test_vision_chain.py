"""The experiment from images to adjusted accuracies: what its networks learn, and the truth."""

import numpy as np
import pytest

import bayesrep
from experiments import chain


def test_what_the_chain_measures_comes_from_the_matching(tmp_path):
    """The seed is fixed: nothing here can fail by chance."""
    found = chain.run(tmp_path, images=240, seed=0, method="laplace")
    study = bayesrep.read_study(tmp_path / "study")
    assert study.classifiers == tuple(sorted(chain.CLASSIFIERS))
    assert [len(data.images) for data in study.datasets.values()] == [240, 240]
    gaps = study.reference.correct.mean(axis=0) - study.replication.correct.mean(axis=0)
    assert found["gaps"]["raw"] == pytest.approx(gaps.mean())
    assert set(found["gaps"]) == {*chain.POINTS, "joint"}
    rows = found["classifiers"]
    assert all(row["lower"] < row["adjusted_accuracy"] < row["upper"] for row in rows)
    text = chain.text_of(found)
    assert "truth" in text
    assert all(name in text for name in chain.CLASSIFIERS)
    # Every network has learned something, and does worse on the replication as measured.
    assert (study.reference.correct.mean(axis=0) > 0.3).all()
    assert found["gaps"]["raw"] > 0.02
    assert abs(found["gaps"]["joint"]) < found["gaps"]["raw"]


def test_matching_leaves_the_replication_less_clear():
    """Means of 20,000 images of known variance below 1/4: six standard errors are below 0.022."""
    reference, replication = chain.matched_pools(np.random.default_rng(0), 20_000)
    assert reference.mean() - replication.mean() > 0.022
