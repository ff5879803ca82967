"""The images of the chain from files to adjusted accuracies; all of it is in tests/statistics."""

import numpy as np
import polars as pl

from experiments import chain


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
    kinds = {path.suffix for path in (tmp_path / "v1").rglob("*.*")}
    assert kinds == {".jpg", ".JPEG", ".png"}
