"""Random matching: as likely as the published algorithm says, and intervals that cover."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import chisquare
from test_protocols_matching import (
    EPSILON,
    PATHS,
    found,
    published_distribution,
    random_answers,
    small_sets,
)

from bayesrep.protocols import matching
from bayesrep.protocols.matching import match_at_random, neighbours


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("by_class", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_matchings_are_as_likely_as_published(monkeypatch, path, by_class, seed):
    """24 chi-square tests, each with false-alarm probability 1e-5."""
    monkeypatch.setattr(matching, "_FEW_NEIGHBOURS", PATHS[path][0])
    monkeypatch.setattr(matching, "_MAX_TRIES", PATHS[path][1])
    source_labels, source, target_labels, target = small_sets(seed)
    sources = dict(enumerate(zip(source_labels, source, strict=True)))
    targets = list(zip(target_labels, target, strict=True))
    expected = published_distribution(sources, targets, EPSILON, by_class)
    classes = (source_labels, target_labels) if by_class else None
    near = neighbours(source, target, EPSILON, classes)
    counts = dict.fromkeys(expected, 0)
    for number in range(4000):
        counts[tuple(match_at_random(*near, number).tolist())] += 1
    assert len(expected) > 1
    shares = np.array(list(expected.values()))
    assert chisquare(list(counts.values()), 4000 * shares / shares.sum()).pvalue > 1e-5


@pytest.fixture(scope="module")
def replications():
    """Matched gaps of 100 pairs of data sets with a shift, and their intervals."""
    rng = np.random.default_rng(7)
    tables = [
        found(
            random_answers("v1", 1000, rng, 1),
            random_answers("v2", 300, rng, 1, shift=0.08, beta=(4, 2)),
            epsilon=0.02,
        ).accuracies
        for _ in range(100)
    ]
    return pl.concat(tables)


@pytest.mark.parametrize("criterion", ["probability", "label+probability"])
@pytest.mark.parametrize(
    "quantity", ["matched_gap", "matched_reference_accuracy", "matched_replication_accuracy"]
)
def test_matched_intervals_cover_on_new_images(replications, criterion, quantity):
    """Covering 95 %, fewer than 88 of 100 have probability 0.0015, six times below 1 %."""
    rows = replications.filter(pl.col("quantity") == quantity, pl.col("criterion") == criterion)
    truth = rows["estimate"].mean()
    covered = (rows["lower"] <= truth) & (truth <= rows["upper"])
    assert covered.sum() >= 88
    if quantity == "matched_gap":
        assert truth == pytest.approx(0.08, abs=0.02)  # what the shift is; 5 sd of the mean
        width = (rows["upper"] - rows["lower"]).mean()
        assert 0.7 < width / (2 * 1.96 * rows["estimate"].std()) < 1.5  # 100 sds: within 7 % each
