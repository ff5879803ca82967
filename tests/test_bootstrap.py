"""The bootstrap over images and its intervals: what is resampled, percentile, BCa.

Wherever em-spline is fitted there are 4 annotators, 2 classifiers and 12 replicates, as many as BCa
leaves out: it is compiled for every shape anew.
"""

import itertools
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from refusals import refused
from scipy import stats

from bayesrep import Study, estimate, estimate_gaps
from bayesrep.estimators import Naive, Raw
from bayesrep.estimators.intervals import acceleration, bca, percentile
from bayesrep.estimators.replicates import Replicates, bootstrap, without_each_image
from bayesrep.numerics.estimands import accuracy_line, measured_gap
from bayesrep.studies.statistics import SufficientStatistics


def study_of(images: int = 200, classifiers: int = 3, annotators: int = 5, seed: int = 0) -> Study:
    rng = np.random.default_rng(seed)
    data = []
    for easiness in (4.0, 2.5):
        frequency = rng.beta(easiness, 1, size=images)
        correct = rng.random((images, classifiers)) < frequency[:, None]
        selected = rng.binomial(annotators, frequency)
        data.append({"selected": selected, "shown": annotators, "correct": correct})
    names = [f"c{number}" for number in range(classifiers)]
    return Study.from_arrays(reference=data[0], replication=data[1], classifiers=names)


def side(data, rows=slice(None), columns=slice(None)):
    """Some images of a data set, and of its classifiers some."""
    correct = data.correct[rows][:, columns]
    return {"selected": data.selected[rows], "shown": data.shown[rows], "correct": correct}


def replicates_of(study: Study, size: int, seed: int = 0) -> Replicates:
    (block,) = bootstrap(study, SufficientStatistics.from_study(study), size=size, seed=seed)
    return block


# --- what is resampled ------------------------------------------------------------------------


def test_row_0_is_the_study():
    study = study_of()
    statistics = SufficientStatistics.from_study(study)
    block = replicates_of(study, 3)
    for role, cells in (("reference", block.reference), ("replication", block.replication)):
        np.testing.assert_array_equal(cells.images[0], statistics.cells[role].images)
        np.testing.assert_array_equal(cells.correct[0], statistics.cells[role].correct)


def test_images_are_drawn_whole():
    """Classifiers that are right on the same images stay so in every replicate."""
    study = study_of(classifiers=1)
    one, other = (side(data, columns=[0, 0]) for data in study.datasets.values())
    other["correct"] = other["correct"] ^ np.array([False, True])
    twins = Study.from_arrays(reference=one, replication=other, classifiers=["same", "opposite"])
    block = replicates_of(twins, 20)
    np.testing.assert_array_equal(block.reference.correct[..., 0], block.reference.correct[..., 1])
    both = block.replication.correct.sum(axis=-1)
    np.testing.assert_array_equal(both, block.replication.images)


def test_draws_are_as_many_as_images_and_whole():
    block = replicates_of(study_of(images=321), 10)
    for cells in (block.reference, block.replication):
        np.testing.assert_array_equal(cells.images.sum(axis=1), 321)
        np.testing.assert_array_equal(cells.correct, np.round(cells.correct))
        assert (cells.correct <= cells.images[..., None]).all()


class EveryDraw(np.random.Generator):
    """All ways to draw from 3 images thrice, one after the other."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64())
        self.ways = itertools.product(range(3), repeat=3)

    def integers(self, *_, **__):
        return np.array(next(self.ways))


def test_over_all_draws_the_counts_are_multinomial(monkeypatch: pytest.MonkeyPatch):
    """Two of three images in one cell: variance 3 · 2/3 · 1/3 of both, and minus that together."""
    data = {"selected": np.array([1, 2, 1]), "shown": 2, "correct": np.ones((3, 1), dtype=bool)}
    study = Study.from_arrays(reference=data, replication=data, classifiers=["c"])
    monkeypatch.setattr(np.random, "default_rng", lambda _: EveryDraw())
    counts = replicates_of(study, 27).reference.images[1:]
    np.testing.assert_allclose(counts.mean(axis=0), [2, 1])
    np.testing.assert_allclose(np.cov(counts.T, ddof=0), np.array([[2, -2], [-2, 2]]) / 3)


def test_seeds_and_blocks(monkeypatch: pytest.MonkeyPatch):
    """The same seed gives the same replicates, in however many blocks they come."""
    from bayesrep.estimators import replicates

    study = study_of()
    whole, other = (replicates_of(study, 30, seed=seed) for seed in (4, 5))
    assert not np.array_equal(whole.reference.images[1:], other.reference.images[1:])
    monkeypatch.setattr(replicates, "_MAX_BATCH_NUMBERS", 200)
    blocks = list(bootstrap(study, SufficientStatistics.from_study(study), size=30, seed=4))
    assert len(blocks) > 1
    parts = np.concatenate([block.replication.correct[1:] for block in blocks])
    np.testing.assert_array_equal(parts, whole.replication.correct[1:])


def test_leave_one_out_by_hand():
    study = study_of(images=30, classifiers=2, annotators=3)
    statistics = SufficientStatistics.from_study(study)
    (block,) = without_each_image(statistics)
    m1, m2 = len(statistics.reference.images), len(statistics.replication.images)
    assert len(block) == 1 + m1 + 2 * m2
    for cell in range(m1):
        expected = statistics.reference.images - (np.arange(m1) == cell)
        np.testing.assert_array_equal(block.reference.images[1 + cell], expected)
    naive = Naive()(block).value[1:]
    data = study.replication
    for image in range(0, 30, 5):
        rest = np.arange(30) != image
        sides = {"reference": side(study.reference), "replication": side(data, rest)}
        smaller = Study.from_arrays(**sides, classifiers=["a", "b"])
        cell = int(np.flatnonzero(statistics.replication.selected == data.selected[image])[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = estimate(smaller, "naive")["adjusted_accuracy"].to_numpy()
        for classifier in range(2):
            right = data.correct[image, classifier]
            row = m1 + (0 if right else m2) + cell
            assert naive[row, classifier] == pytest.approx(expected[classifier], abs=1e-12)


# --- intervals --------------------------------------------------------------------------------


def test_percentiles_are_those_of_the_replicates():
    study = study_of()
    table = estimate(study, "naive", bootstrap=40, seed=3)
    values = Naive()(replicates_of(study, 40, seed=3)).value[1:]
    np.testing.assert_allclose(
        table.select("lower", "upper").to_numpy().T, np.quantile(values, [0.025, 0.975], axis=0)
    )


def test_bca_is_scipys():
    """One skewed sample: the same replicates, the same acceleration, the same interval."""
    rng = np.random.default_rng(0)
    sample = rng.exponential(size=60)
    reference = stats.bootstrap(
        (sample,), np.mean, n_resamples=3000, method="BCa", rng=np.random.default_rng(1)
    )
    replicates = reference.bootstrap_distribution[:, None]
    without = ((sample.sum() - sample) / 59)[:, None]
    ours = bca(np.array([sample.mean()]), replicates, acceleration([without]))
    expected = [reference.confidence_interval.low, reference.confidence_interval.high]
    np.testing.assert_allclose(ours[:, 0], expected, rtol=1e-3)


def test_bca_of_two_samples_is_scipys():
    rng = np.random.default_rng(2)
    one, other = rng.exponential(size=40), rng.exponential(2, size=70)

    def difference(x: NDArray, y: NDArray, axis: int = -1) -> NDArray:
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    reference = stats.bootstrap(
        (one, other), difference, n_resamples=3000, method="BCa", rng=np.random.default_rng(3)
    )
    without = [
        ((one.sum() - one) / 39 - other.mean())[:, None],
        (one.mean() - (other.sum() - other) / 69)[:, None],
    ]
    replicates = reference.bootstrap_distribution[:, None]
    ours = bca(np.array([difference(one, other)]), replicates, acceleration(without))
    expected = [reference.confidence_interval.low, reference.confidence_interval.high]
    np.testing.assert_allclose(ours[:, 0], expected, atol=0.005)


def test_bca_without_bias_or_skewness_is_the_percentile_interval():
    replicates = np.linspace(-1, 1, 2001)[:, None]
    np.testing.assert_allclose(
        bca(np.zeros(1), replicates, np.zeros(1)), percentile(replicates), atol=1e-6
    )


def test_bca_where_nothing_varies():
    replicates = np.ones((10, 2))
    np.testing.assert_array_equal(bca(np.ones(2), replicates, np.zeros(2)), np.ones((2, 2)))
    assert acceleration([np.ones((5, 2))]).tolist() == [0, 0]


def test_acceleration_of_a_study_is_that_of_its_images():
    """BCa of raw by leaving out images one by one, for a classifier and for the slope."""
    study = study_of(images=50, classifiers=3)
    size = 400
    table = estimate(study, "raw", bootstrap=size, interval="bca", seed=1)
    block = replicates_of(study, size, seed=1)
    correct = study.replication.correct.astype(float)
    without = (correct.sum(axis=0) - correct) / 49
    constant = np.broadcast_to(correct.mean(axis=0), (50, 3))
    expected = bca(correct.mean(axis=0), Raw()(block).value[1:], acceleration([constant, without]))
    np.testing.assert_allclose(table.select("lower", "upper").to_numpy().T, expected, atol=1e-12)

    gaps = estimate_gaps(study, "raw", bootstrap=size, interval="bca", seed=1)
    rows = {row["quantity"]: (row["lower"], row["upper"]) for row in gaps.iter_rows(named=True)}
    first = study.reference.correct.astype(float)
    before = (first.sum(axis=0) - first) / 49

    def slopes(reference, replication):
        return accuracy_line(reference, np.broadcast_to(replication, np.shape(reference)))[0]

    every = slopes(block.reference.accuracy(), block.replication.accuracy())
    constant = np.broadcast_to(first.mean(axis=0), (50, 3))
    left = [slopes(before, correct.mean(axis=0)), slopes(constant, without)]
    ends = bca(every[:1], every[1:, None], acceleration([one[:, None] for one in left]))[:, 0]
    assert rows["slope"] == pytest.approx(tuple(ends))
    # The drop as measured needs no replicates.
    assert rows["bias_corrected_gap"] == pytest.approx(tuple(measured_gap(first, correct)[1:]))


def test_one_bootstrap_serves_all_methods():
    """Together or alone, a method sees the same replicates."""
    study = study_of()
    together = estimate_gaps(study, "raw,naive,jackknife", bootstrap=25)
    for method in ("raw", "naive", "jackknife"):
        alone = estimate_gaps(study, method, bootstrap=25)
        assert together.filter(pl.col("method") == method).equals(alone)


def test_intervals_of_the_mean_keep_what_classifiers_share():
    """Twenty copies of one classifier: the mean gap is as uncertain as that of one."""
    study = study_of(classifiers=1)
    sides = {role: side(data, columns=[0] * 20) for role, data in study.datasets.items()}
    copies = Study.from_arrays(**sides, classifiers=[f"copy{number}" for number in range(20)])
    one, twenty = (
        estimate_gaps(s, "naive", bootstrap=60).filter(pl.col("quantity") == "bias_corrected_gap")
        for s in (study, copies)
    )
    for column in ("estimate", "lower", "upper"):
        assert one[column][0] == pytest.approx(twenty[column][0], abs=1e-12)


# --- edges ------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_a_bootstrap_that_loses_cells_is_quiet_and_finite(interval: str):
    """Two images at a count that only they have: many replicates have none of them."""
    selected = np.r_[0, 0, np.repeat([2, 3, 4], 10)]
    correct = np.random.default_rng(0).random((32, 2)) < 0.7
    data = {"selected": selected, "shown": 4, "correct": correct}
    study = Study.from_arrays(reference=data, replication=data, classifiers=["a", "b"])
    lost = replicates_of(study, 12).replication.images[:, 0] == 0
    assert lost.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        methods = "raw,naive,jackknife,em-spline(components=1)"
        table = estimate(study, methods, bootstrap=12, interval=interval)
        gaps = estimate_gaps(study, methods, bootstrap=12, interval=interval)
    assert table["lower"].null_count() == 0
    assert (table["lower"] <= table["upper"]).all()
    gaps = gaps.filter(pl.col("quantity").is_in(["bias_corrected_gap", "selection_gap"]))
    assert gaps["lower"].null_count() == 0


def test_replicates_do_not_change_what_the_fewest_annotators_are():
    """The one image with 2 annotators is in few replicates; all are matched on 2 nonetheless."""
    rng = np.random.default_rng(0)
    shown = np.r_[2, np.full(40, 6)]
    data = {"selected": rng.binomial(shown, 0.7), "shown": shown}
    data["correct"] = rng.random((41, 1)) < 0.6
    study = Study.from_arrays(reference=data, replication=data, classifiers=["c"])
    block = replicates_of(study, 20)
    assert np.array_equal(Naive()(block).value, Naive(2)(block).value)


@pytest.mark.usefixtures("unannotated")
def test_wrong_requests():
    study = study_of()
    with refused(ValueError, "bca-with-one-image", {"dataset": "reference"}):
        estimate(study_of(images=1), "raw", bootstrap=3, interval="bca")
    for bad in (-1, -450, 1):
        with refused(ValueError, "bootstrap-too-small", {"bootstrap": bad}):
            estimate(study, bootstrap=bad)


def test_the_whole_bootstrap_repeats():
    study = study_of(images=400, annotators=4, classifiers=2)
    first, again, other = (
        estimate(study, "naive,em-spline(components=1)", bootstrap=12, seed=seed)
        for seed in (0, 0, 1)
    )
    assert first.equals(again)
    assert not first.equals(other)


def test_em_spline_replicates_are_fits_of_their_own():
    """A replicate's estimate is what the estimator finds on the replicate as a study."""
    from bayesrep.estimators import EMSpline

    study = study_of(images=600, annotators=4, classifiers=2)
    block = replicates_of(study, 12)
    estimator = EMSpline(components=1)
    values = estimator(block).value
    for row in range(1, 5):
        one = slice(row, row + 1)
        pair = [
            type(cells)(cells.selected, cells.shown, cells.images[one], cells.correct[one])
            for cells in (block.reference, block.replication)
        ]
        np.testing.assert_allclose(estimator(Replicates(*pair)).value[0], values[row], atol=1e-6)
