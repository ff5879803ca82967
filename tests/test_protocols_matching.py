"""Random matching against the published algorithms, and the accuracies made from it."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from bayesrep import OptionError, StudyError
from bayesrep.protocols import match, matching, paired_difference, proportion_interval
from bayesrep.protocols.matching import UNMATCHED_NUMBER, match_at_random, neighbours
from bayesrep.studies.predictions import Predictions

EPSILON = 0.005
CLASSES = ("cat", "dog", "owl")


# ------------------------------------------------------------------ the published algorithms


def published_candidates(target, sources, epsilon, by_class):
    """The loop of function MATCH: those left in P_src that the tuple (y-hat, p-hat) may take."""
    label_t, probability_t = target
    matched = []
    for number, (label, probability) in sources.items():
        close = probability - epsilon <= probability_t <= probability + epsilon
        if close and (label == label_t or not by_class):
            matched.append(number)
    return matched


def published_distribution(sources, targets, epsilon, by_class):
    """Every outcome of procedure MATCHPREDICTIONS and its probability, by going all ways."""
    if not targets:
        return {(): 1.0}
    matched = published_candidates(targets[0], sources, epsilon, by_class)
    found = {}
    for number in matched or [UNMATCHED_NUMBER]:
        left = {key: value for key, value in sources.items() if key != number}
        rest = published_distribution(left, targets[1:], epsilon, by_class)
        for outcome, share in rest.items():
            found[(number, *outcome)] = share / max(len(matched), 1)
    return found


def small_sets(seed):
    """Five sources and four targets on a grid of probabilities as wide as epsilon: many ties."""
    rng = np.random.default_rng(seed)
    probabilities = 0.9 + EPSILON * rng.integers(0, 3, 9)
    labels = rng.integers(0, 2, 9)
    return labels[:5], probabilities[:5], labels[5:], probabilities[5:]


PATHS = {"few": (24, 12), "tries": (0, 12), "tree": (0, 0), "tries, then tree": (0, 1)}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("by_class", [True, False])
def test_matchings_are_among_those_published(monkeypatch, path, by_class):
    """Whatever way is taken; how likely each is, is for the statistics."""
    monkeypatch.setattr(matching, "_FEW_NEIGHBOURS", PATHS[path][0])
    monkeypatch.setattr(matching, "_MAX_TRIES", PATHS[path][1])
    source_labels, source, target_labels, target = small_sets(0)
    sources = dict(enumerate(zip(source_labels, source, strict=True)))
    targets = list(zip(target_labels, target, strict=True))
    expected = published_distribution(sources, targets, EPSILON, by_class)
    classes = (source_labels, target_labels) if by_class else None
    near = neighbours(source, target, EPSILON, classes)
    drawn = {tuple(match_at_random(*near, number).tolist()) for number in range(200)}
    assert 1 < len(drawn)
    assert drawn <= set(expected)


@pytest.mark.parametrize("epsilon", [0.005, 0.01, 0.1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_differences_of_exactly_epsilon_are_decided_as_published(epsilon, dtype):
    """In floating point 0.03 + 0.005 is less than 0.035, which therefore does not match 0.03."""
    grid = np.round(np.arange(0, 1.0001, 0.005), 3).astype(dtype).astype(float)
    order, low, high = neighbours(grid, grid, epsilon)
    for number, wanted in enumerate(grid):
        expected = published_candidates(
            (0, wanted), dict(enumerate((0, p) for p in grid)), epsilon, False
        )
        assert sorted(order[low[number] : high[number]].tolist()) == expected


PROBABILITIES = st.lists(
    st.integers(0, 40).map(lambda number: number / 40) | st.floats(0, 1), min_size=1, max_size=30
)


@given(
    PROBABILITIES,
    PROBABILITIES,
    st.sampled_from([0.001, 0.025, 0.2, 1.0]),
    st.booleans(),
    st.sampled_from(sorted(PATHS)),
    st.integers(0, 2**64 - 1),
)
def test_what_holds_of_every_matching(source, target, epsilon, by_class, path, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_FEW_NEIGHBOURS", PATHS[path][0])
        patch.setattr(matching, "_MAX_TRIES", PATHS[path][1])
        labels = [np.arange(len(each)) % 3 for each in (source, target)]
        near = neighbours(
            np.array(source), np.array(target), epsilon, tuple(labels) if by_class else None
        )
        found = match_at_random(*near, seed).tolist()
    free = dict(enumerate(zip(labels[0].tolist(), source, strict=True)))
    for number, (label, probability) in zip(
        found, zip(labels[1].tolist(), target, strict=True), strict=True
    ):
        may = published_candidates((label, probability), free, epsilon, by_class)
        assert number in may if may else number == UNMATCHED_NUMBER
        free.pop(number, None)


def test_twenty_thousand_ties_on_either_side_are_matched():
    tied = np.full(20_000, 0.97)
    found = match_at_random(*neighbours(tied, tied, EPSILON), 0)
    assert np.array_equal(np.sort(found), np.arange(20_000))
    more = np.full(30_000, 0.97)
    found = match_at_random(*neighbours(tied, more, EPSILON), 0)
    assert (found[:20_000] != UNMATCHED_NUMBER).all()
    assert (found[20_000:] == UNMATCHED_NUMBER).all()


# ------------------------------------------------------------------ accuracies


def answers(dataset, confidence, right, first=None, classifiers=None, classes=CLASSES):
    """Predictions of given confidence [C, N] and correctness [C, N]; of class 0 by default."""
    confidence, right = np.atleast_2d(confidence), np.atleast_2d(right)
    labels = np.zeros(right.shape[1], dtype=int) if first is None else np.asarray(first)
    given = np.where(right, labels, (labels + 1) % len(classes))
    return Predictions(
        dataset,
        np.array([f"{dataset} {number}" for number in range(len(labels))]),
        classes,
        labels,
        classifiers or tuple(f"c{number}" for number in range(len(right))),
        given[:, :, None],
        confidence,
    )


def random_answers(dataset, images, rng, classifiers=2, shift=0.0, beta=(5, 2)):
    confidence = rng.beta(*beta, (classifiers, images))
    right = rng.random(confidence.shape) < confidence - shift
    return answers(dataset, confidence, right, rng.integers(0, 3, images))


def found(reference, replication, **options):
    return match(reference, replication, progress=False, **options)


def values(table, column="estimate", classifier="c0", criterion="probability"):
    rows = table.filter(pl.col("classifier") == classifier, pl.col("criterion") == criterion)
    return dict(rows.select("quantity", column).iter_rows())


@pytest.mark.parametrize("criterion", ["probability", "label+probability"])
def test_matched_accuracies_by_hand(criterion):
    """Confidences that leave no choice: c and d match b and a, e matches nothing."""
    reference = answers("v1", [0.1, 0.5, 0.7, 0.9], [True, True, False, True])
    replication = answers("v2", [0.503, 0.097, 0.8], [True, False, True])
    result = found(reference, replication, runs=3)
    if criterion == "label+probability":
        # The wrong answer to image 1 is of another class than the right one to its neighbour.
        expected = {
            "matched_reference_accuracy": 1, "matched_replication_accuracy": 1,
            "matched_gap": 0, "unmatched_accuracy": 1 / 2, "fraction_unmatched": 2 / 3,
        }  # fmt: skip
    else:
        expected = {
            "matched_reference_accuracy": 1, "matched_replication_accuracy": 1 / 2,
            "matched_gap": 1 / 2, "unmatched_accuracy": 1, "fraction_unmatched": 1 / 3,
        }  # fmt: skip
    expected |= {
        "reference_accuracy": 3 / 4, "replication_accuracy": 2 / 3, "gap": 3 / 4 - 2 / 3,
    }  # fmt: skip
    assert values(result.accuracies, criterion=criterion) == pytest.approx(expected)
    scatter = values(result.accuracies, "run_sd", criterion=criterion)
    assert list(scatter.values()) == pytest.approx([0] * len(scatter), abs=1e-12)


def test_without_choice_the_intervals_are_those_of_independent_pairs():
    rng = np.random.default_rng(2)
    places = np.linspace(0.05, 0.95, 60)
    right = rng.random((2, 60)) < 0.7
    reference = answers("v1", np.append(places, 0.999), np.append(right[0], True))
    replication = answers("v2", places, right[1])
    table = found(reference, replication, runs=7, epsilon=0.001).accuracies
    lower, upper = values(table, "lower"), values(table, "upper")
    only = [np.sum(right[0] & ~right[1]), np.sum(right[1] & ~right[0])]
    _, *ends, _ = paired_difference(*only, 60 - sum(only))
    assert (lower["matched_gap"], upper["matched_gap"]) == pytest.approx(ends, abs=1e-5)
    for name, hits in zip(("reference", "replication"), right, strict=True):
        ends = [float(end) for end in proportion_interval(hits.sum(), 60)]
        quantity = f"matched_{name}_accuracy"
        assert (lower[quantity], upper[quantity]) == pytest.approx(ends)


def test_the_larger_set_is_the_source_and_the_reference_where_both_are_as_large():
    two = answers("v1", [0.1, 0.9], [False, True])
    three = answers("v2", [0.9, 0.9, 0.9], [True, True, False])
    small_reference = values(found(two, three).accuracies)
    assert small_reference["fraction_unmatched"] == 1 / 2
    assert small_reference["unmatched_accuracy"] == 0
    assert values(found(three, two).accuracies)["unmatched_accuracy"] == 0
    alike = answers("v2", [0.9, 0.3], [True, True])
    assert values(found(two, alike).accuracies)["unmatched_accuracy"] == 1
    assert values(found(alike, two).accuracies)["unmatched_accuracy"] == 0


@pytest.mark.parametrize("sizes", [(3, 5), (5, 3), (4, 4)])
def test_gaps_are_reference_less_replication(sizes):
    reference = answers("v1", np.full(sizes[0], 0.6), np.ones(sizes[0], bool))
    replication = answers("v2", np.full(sizes[1], 0.6), np.zeros(sizes[1], bool))
    table = found(reference, replication).accuracies
    assert values(table)["gap"] == values(table)["matched_gap"] == 1
    assert values(table, "lower")["matched_gap"] > 0


def test_one_image_in_each_set():
    same = found(answers("v1", [0.5], [True]), answers("v2", [0.5], [False]), runs=1)
    assert values(same.accuracies)["matched_gap"] == 1
    assert values(same.accuracies, "run_sd")["matched_gap"] is None
    assert same.confidence["confidence_lower"].to_list() == [None, None]
    other = values(found(answers("v1", [0.5], [True]), answers("v2", [0.9], [True])).accuracies)
    assert other["fraction_unmatched"] == 1
    assert other["matched_gap"] is other["matched_reference_accuracy"] is None
    assert other["unmatched_accuracy"] == 1


@pytest.mark.parametrize("interval", ["jeffreys", "wilson"])
def test_where_nothing_is_matched_there_are_no_ends(interval):
    table = found(
        answers("v1", [0.1, 0.2], [True, False]),
        answers("v2", [0.8, 0.9], [True, True]),
        interval=interval,
    ).accuracies
    empty = table.filter(pl.col("quantity").str.starts_with("matched"))
    assert empty.select("estimate", "lower", "upper").null_count().row(0) == (6, 6, 6)


def test_identical_sets_match_whole_for_the_smallest_epsilon():
    rng = np.random.default_rng(0)
    data = random_answers("v1", 500, rng)
    result = found(data, data, epsilon=1e-12, runs=2)
    for quantity in ("fraction_unmatched", "matched_gap", "gap"):
        rows = result.accuracies.filter(pl.col("quantity") == quantity)
        assert rows["estimate"].to_list() == [0.0] * 4
    accuracy = data.correct.mean(axis=1)
    for number in range(2):
        assert values(result.accuracies, classifier=f"c{number}")[
            "matched_reference_accuracy"
        ] == pytest.approx(accuracy[number])


def test_matchings_are_a_function_of_seed_and_name():
    rng = np.random.default_rng(1)
    one, other = (random_answers(name, size, rng, 3) for name, size in (("v1", 400), ("v2", 150)))
    first, again, changed = (found(one, other, seed=seed) for seed in (4, 4, 5))
    for name in ("accuracies", "curves", "confidence"):
        assert getattr(first, name).equals(getattr(again, name))
    assert not first.accuracies.equals(changed.accuracies)
    # The last classifier alone, and the classifiers of one set in another order.
    alone = [
        answers(d.dataset, d.confidence[2], d.correct[2], d.labels, ("c2",)) for d in (one, other)
    ]
    expected = first.accuracies.filter(pl.col("classifier") == "c2")
    for data in (alone, (one, reordered(other, [2, 0, 1]))):
        rows = found(*data, seed=4).accuracies.filter(pl.col("classifier") == "c2")
        assert rows["estimate"].equals(expected["estimate"], null_equal=True)
        np.testing.assert_allclose(rows["upper"], expected["upper"], atol=1e-5)
    confidence = found(one, reordered(other, [2, 0, 1])).confidence
    assert confidence.equals(first.confidence)


def reordered(data, order):
    return Predictions(
        data.dataset,
        data.images,
        data.classes,
        data.labels,
        tuple(data.classifiers[number] for number in order),
        data.answers[order],
        data.confidence[order],
    )


def test_images_of_both_sets_are_what_the_matched_gap_is_uncertain_by():
    """Where all match all, pairs tell no more than the two sets: widths agree within 10 %."""
    rng = np.random.default_rng(6)
    data = random_answers("v1", 400, rng), random_answers("v2", 400, rng)
    table = found(*data, epsilon=1, runs=20).accuracies
    for number, name in enumerate(data[0].classifiers):
        width = values(table, pl.col("upper") - pl.col("lower"), name)
        assert width["matched_gap"] == pytest.approx(width["gap"], rel=0.1)
        upper = values(table, "upper", name)
        for role, each in zip(("reference", "replication"), data, strict=True):
            end = proportion_interval(each.correct[number].sum(), 400)[1]
            assert upper[f"matched_{role}_accuracy"] == pytest.approx(float(end))


# ------------------------------------------------------------------ curves and confidence


@pytest.fixture(scope="module")
def curves():
    rng = np.random.default_rng(3)
    data = random_answers("v1", 400, rng), random_answers("v2", 150, rng)
    return data, found(*data, epsilon=0.01, runs=4).curves


def test_matched_and_unmatched_images_are_all_in_every_bin(curves):
    data, table = curves
    keys = ["criterion", "classifier", "dataset", "low"]
    by = table.pivot("subset", index=keys, values="images").fill_null(0)
    np.testing.assert_allclose(by["matched"] + by["unmatched"], by["all"])
    edges = np.linspace(0, 1, 21)
    for role, each in zip(("reference", "replication"), data, strict=True):
        for number, name in enumerate(each.classifiers):
            rows = by.filter(
                pl.col("dataset") == role,
                pl.col("classifier") == name,
                pl.col("criterion") == "probability",
            ).sort("low")
            counts = np.histogram(each.confidence[number], edges)[0]
            assert rows["all"].to_list() == counts[counts > 0].tolist()


def test_densities_integrate_to_one(curves):
    _, table = curves
    mass = (pl.col("density") * (pl.col("high") - pl.col("low"))).sum()
    total = table.group_by("criterion", "classifier", "dataset", "subset").agg(mass)
    assert len(total) == 2 * 2 * 2 * 3 - 1  # one classifier's replication is matched whole
    np.testing.assert_allclose(total["density"], 1)


def test_means_of_the_bins_are_those_of_their_images(curves):
    data, table = curves
    for role, each in zip(("reference", "replication"), data, strict=True):
        rows = table.filter(
            pl.col("dataset") == role, pl.col("subset") == "all", pl.col("classifier") == "c1"
        )
        for row in rows.iter_rows(named=True):
            assert row["low"] <= row["confidence"] <= row["high"]
            within = (each.confidence[1] >= row["low"]) & (each.confidence[1] < row["high"])
            assert row["accuracy"] == pytest.approx(each.correct[1, within].mean())
            assert row["confidence"] == pytest.approx(each.confidence[1, within].mean())
            assert row["lower"] <= row["accuracy"] <= row["upper"]


def test_matched_curves_have_as_many_images_of_either_set(curves):
    _, table = curves
    matched = table.filter(pl.col("subset") == "matched")
    totals = matched.group_by("criterion", "classifier").agg(
        pl.col("images").filter(pl.col("dataset") == role).sum().alias(role)
        for role in ("reference", "replication")
    )
    np.testing.assert_allclose(totals["reference"], totals["replication"])


def test_certainty_is_in_the_last_bin_and_zero_in_the_first():
    data = answers("v1", [0.0, 1.0], [False, True])
    rows = found(data, data, runs=1).curves.filter(
        pl.col("subset") == "all", pl.col("dataset") == "reference"
    )
    assert rows["high"].to_list() == [0.05, 1.0] * 2


def test_confidence_is_the_plain_mean():
    rng = np.random.default_rng(8)
    data = random_answers("v1", 300, rng), random_answers("v2", 200, rng)
    table = found(*data, interval="wilson").confidence
    for role, each in zip(("reference", "replication"), data, strict=True):
        rows = table.filter(pl.col("dataset") == role)
        assert rows["classifier"].to_list() == list(each.classifiers)
        np.testing.assert_allclose(rows["accuracy"], each.correct.mean(axis=1))
        np.testing.assert_allclose(rows["confidence"], each.confidence.mean(axis=1))
        ends = proportion_interval(each.correct.sum(axis=1), len(each.images), "wilson")
        np.testing.assert_allclose((rows["lower"], rows["upper"]), ends)
        error = each.confidence.std(axis=1, ddof=1) / np.sqrt(len(each.images))
        np.testing.assert_allclose(
            rows["confidence_upper"] - rows["confidence_lower"], 2 * 1.96 * error
        )


# ------------------------------------------------------------------ what is refused


def bare(data):
    return Predictions(
        data.dataset, data.images, data.classes, data.labels, data.classifiers, data.answers
    )


def unanswered(data):
    gaps = data.answers.copy()
    gaps[0, 1] = -1
    return Predictions(
        data.dataset, data.images, data.classes, data.labels, data.classifiers, gaps,
        data.confidence,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "options", "rule"),
    [
        (bare, {}, "matching-needs-probabilities"),
        (unanswered, {}, "matching-needs-all-answers"),
        *((None, dict(epsilon=value), "epsilon-out-of-range") for value in (0, -0.1, 1.5)),
        (None, dict(epsilon=float("nan")), "epsilon-out-of-range"),
        (None, dict(runs=0), "matching-runs-below-one"),
        (None, dict(interval="wald"), "unknown-proportion-interval"),
    ],
)
def test_what_cannot_be_matched_is_one_clear_error(change, options, rule):
    data = answers("v1", [0.5, 0.6], [True, True]), answers("v2", [0.5, 0.6], [True, True])
    told = {name: value for name, value in options.items() if value == value}  # but for NaN
    kind, told = (OptionError, told) if options else (StudyError, {"dataset": "v2"})
    with refused(kind, rule, told):
        found(data[0], change(data[1]) if change else data[1], **options)


def test_sets_of_other_classifiers_or_classes_are_refused():
    one = answers("v1", [0.5], [True])
    facts = {"classifiers": ["c0", "vgg"], "reference": "v1"}
    with refused(StudyError, "answers-on-one-dataset-only", facts):
        found(one, answers("v2", [0.5], [True], classifiers=("vgg",)))
    with refused(StudyError, "classes-numbered-differently"):
        found(one, answers("v2", [0.5], [True], classes=("dog", "cat", "owl")))
