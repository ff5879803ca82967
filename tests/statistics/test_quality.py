"""Equal numbers of answers: those that stay are drawn at random."""

import numpy as np
import polars as pl

from bayesrep.answers.quality import clean_answers


def test_equal_numbers_are_the_fewest_at_random_and_repeat():
    """Of images with 7 answers each worker stays in 5 of 7: 66 images, within 4.5 sd.

    Seven workers: a false alarm in 20,000 runs.
    """
    rng = np.random.default_rng(0)
    rows = [
        ("v1", f"i{x}", f"w{w}", bool(rng.random() < 0.5))
        for x in range(200)
        for w in range(5 + x % 3)
    ]
    table = pl.DataFrame(rows, ("dataset", "image", "worker", "selected"), orient="row")
    first = clean_answers(table, ["equal"], seed=1).kept
    seven = table.filter(pl.len().over("image") == 7)["image"].unique()
    stays = first.filter(pl.col("image").is_in(seven.implode())).group_by("worker").len()["len"]
    mean, sd = len(seven) * 5 / 7, np.sqrt(len(seven) * 10 / 49)
    assert (np.abs(stays.to_numpy() - mean) < 4.5 * sd).all()
