"""P-values of groups of classes against all groups of as many."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from test_protocols_multilabel import CLASSES, label_sets, some_predictions, some_sets

from bayesrep.protocols import multilabel


def enumerated_p_value(data, sets, number, mask):
    """The share of all sets of as many classes that change multi-label accuracy as much."""
    counts = np.zeros((7, 2))
    for image, allowed in enumerate(sets):
        if allowed:
            counts[data.labels[image]] += int(data.first[number, image]) in allowed, 1
    overall = counts[:, 0].sum() / counts[:, 1].sum()

    def change(classes):
        right, images = counts[list(classes)].sum(axis=0)
        return abs(right / images - overall)

    own = change(np.flatnonzero(mask & (np.arange(7) < 6)))
    size = int(mask[:6].sum())
    return np.mean([change(c) >= own - 1e-12 for c in combinations(range(6), size)])


@pytest.mark.parametrize("chosen", [("ant", "bee"), ("fox",), ("cat", "eel", "fox", "gnu")])
def test_p_values_are_those_of_all_subsets_of_classes(chosen):
    """20,000 trials within 5 sd: nine tests, each with false-alarm probability 6e-7."""
    data, sets, trials = some_predictions(seed=4), some_sets(), 20_000
    mask = np.isin(CLASSES, chosen)
    table = multilabel(data, label_sets(sets), subsets={"mine": mask}, trials=trials)
    rows = table.filter(pl.col("subset") == "mine", pl.col("metric") == "multi-label")
    for number, p_value in enumerate(rows["p_value"]):
        expected = enumerated_p_value(data, sets, number, mask)
        error = 5 * np.sqrt(expected * (1 - expected) / trials) + 1 / trials
        assert p_value == pytest.approx(expected, abs=error)
