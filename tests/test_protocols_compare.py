"""Classifiers beside people: accuracies, lines and confusions against other ways to them."""

import io
import json
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zoo
from refusals import check, refusal, refused, run
from scipy.special import expit, logit, ndtr, ndtri
from scipy.stats import linregress
from scipy.stats import t as student

from bayesrep import StudyError, cli
from bayesrep.protocols import (
    LabelSets,
    beside,
    co_occurrence,
    compare,
    compare_pairs,
    confusion,
    confusion_difference,
    fit_lines,
    independent_difference,
    line_band,
    paired_difference,
    proportion_interval,
    read_humans,
    resampled_accuracies,
    shankar2020,
)
from bayesrep.studies.answers import read_predictions
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.imagenet import synsets
from bayesrep.studies.populations import published_accuracies
from bayesrep.studies.predictions import NO_ANSWER, Predictions
from bayesrep.studies.validation import REQUIRED_ROLES

CLASSES = ("ant", "bee", "cat", "dog", "eel")
NETWORKS = ("vgg", "resnet", "alexnet", "vit")
SKILLS = np.array([0.5, 0.65, 0.4, 0.8])


def some_predictions(dataset="v1", images=80, seed=0, drop=0.0, networks=NETWORKS):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, images)
    skills = SKILLS[[NETWORKS.index(name) for name in networks], None] - drop
    right = rng.random((len(networks), images)) < skills
    wrong = (labels + rng.integers(1, 5, right.shape)) % 5
    names = [f"{dataset} {number}" for number in range(images)]
    answers = np.where(right, labels, wrong)[:, :, None]
    return Predictions(dataset, names, CLASSES, labels, networks, answers)


@pytest.fixture
def both():
    return some_predictions(), some_predictions("v2", 50, 1, drop=0.1)


def some_labels(data, seed=2):
    """Right labels of all images but the first: the own one mostly, others now and then."""
    rng = np.random.default_rng(seed)
    allowed = rng.random((len(data.images), 5)) < 0.15
    allowed[np.arange(len(data.images)), data.labels] |= rng.random(len(data.images)) < 0.9
    allowed[0] = False
    known = np.ones(len(data.images), dtype=bool)
    known[0] = False
    return LabelSets(known, *np.nonzero(allowed), 5), allowed, known


# ------------------------------------------------------------------ what people answered

ANSWERS = [
    ("v1 0", "Ann", "ant"),
    ("v1 1", "Ann", "eel"),
    ("v2 0", "Ann", "cat"),
    ("v1 1", "Bob", "bee"),
]


def human_table(rows=ANSWERS, names=("image", "labeler", "answer")):
    return pl.DataFrame(rows, schema=list(names), orient="row")


@pytest.fixture
def write(tmp_path):
    def write(table, name="humans.csv"):
        getattr(table, f"write_{name.rpartition('.')[2]}")(tmp_path / name)
        return tmp_path / name

    return write


@pytest.mark.parametrize("name", ["humans.csv", "humans.parquet"])
@pytest.mark.parametrize("names", [("image", "labeler", "answer"), ("task", "worker", "label")])
def test_answers_of_people_are_placed_by_image(write, both, name, names):
    one, other = read_humans(write(human_table(names=names), name), *both)
    assert one.classifiers == other.classifiers == ("Ann", "Bob")
    assert one.images.tolist() == both[0].images.tolist()
    assert one.first[:, :3].tolist() == [[0, 4, NO_ANSWER], [NO_ANSWER, 1, NO_ANSWER]]
    assert one.answered.sum() == 3
    assert other.first[:, 0].tolist() == [2, NO_ANSWER]
    assert other.answered.sum() == 1
    assert np.array_equal(other.labels, both[1].labels)


def test_people_who_saw_one_data_set_only_are_silent_on_the_other(write, both):
    one, other = read_humans(write(human_table(ANSWERS[:2])), *both)
    assert one.answered.sum() == 2
    assert not other.answered.any()
    with refused(StudyError, "no-human-answers", {"dataset": "v2"}):
        beside(both[1], other)


def test_a_column_dataset_tells_images_of_one_name_apart(write):
    data = [some_predictions(name, 3) for name in ("v1", "v2")]
    data = [
        Predictions(d.dataset, ["a", "b", "c"], CLASSES, d.labels, d.classifiers, d.answers)
        for d in data
    ]
    rows = [("v2", "a", "Ann", "eel"), ("v1", "a", "Ann", "ant"), ("v2", "b", "Ann", "bee")]
    table = human_table(rows, ("dataset", "image", "labeler", "answer"))
    one, other = read_humans(write(table), *data)
    assert one.first.tolist() == [[0, NO_ANSWER, NO_ANSWER]]
    assert other.first.tolist() == [[4, 1, NO_ANSWER]]
    with refused(StudyError, "answered-image-in-both-datasets", {"images": ["a"]}):
        read_humans(write(table[:1].drop("dataset")), *data)


def test_imagenets_classes_may_be_numbers(write):
    labels = np.zeros(1, dtype=int)
    data = Predictions("v1", ["a"], synsets(), labels, ("net",), labels[:, None, None])
    (found,) = read_humans(write(human_table([("a", "Ann", "7")])), data)
    assert found.first.tolist() == [[7]]
    facts = {"unknown_classes": ["1000"], "verb": "is not a class", "class_count": 1000}
    with refused(StudyError, "classes-not-of-predictions", facts):
        read_humans(write(human_table([("a", "Ann", "1000")])), data)


UNKNOWN = {"images": ["v3 0"], "datasets": "'v1' or 'v2'"}
NO_CLASS = {"unknown_classes": ["yak"], "verb": "is not a class", "class_count": 5}
TWICE = {"labeler": "Bob", "images": ["v1 1"]}


@pytest.mark.parametrize(
    ("image", "answer", "rule", "facts"),
    [
        ("v3 0", "ant", "answers-to-unknown-images", UNKNOWN),
        ("v1 2", "yak", "classes-not-of-predictions", NO_CLASS),
        ("v1 1", "ant", "labeler-answered-twice", TWICE),
        ("v1 2", None, "value-missing-in-rows", {"column": "answer", "rows": "line 6"}),
    ],
)
def test_wrong_answers_of_people_are_one_clear_error(write, both, image, answer, rule, facts):
    with refused(StudyError, rule, facts) as error:
        read_humans(write(human_table([*ANSWERS, (image, "Bob", answer)])), *both)
    assert error.value.facts["where"].endswith("humans.csv")


def test_missing_columns_and_files_of_people_are_named(write, both, tmp_path):
    with refused(StudyError, "table-lacks-columns", {"columns": ["answer"]}):
        read_humans(write(human_table().drop("answer")), *both)
    with refused(StudyError, "file-unreadable", {"reason": "No such file or directory"}):
        read_humans(tmp_path / "none.csv", *both)


def test_beside_people_only_images_count_that_somebody_saw(write, both):
    one, _ = read_humans(write(human_table()), *both)
    joined = beside(both[0], one)
    assert joined.classifiers == (*NETWORKS, "Ann", "Bob")
    assert joined.answered[:4].sum(axis=1).tolist() == [2] * 4
    assert np.array_equal(joined.first[:4, :2], both[0].first[:, :2])
    assert np.array_equal(joined.first[4:], one.first)
    with refused(StudyError, "labeler-named-as-classifier", {"labelers": ["vgg"]}):
        beside(both[0], read_humans(write(human_table([("v1 0", "vgg", "ant")])), both[0])[0])


# ------------------------------------------------------------------ accuracies


def test_accuracies_are_means_with_their_intervals(both):
    found = compare(*both, interval="wilson")
    assert found.accuracies["participant"].to_list() == list(NETWORKS)
    assert set(found.accuracies["kind"]) == {"classifier"}
    assert set(found.accuracies["metric"]) == {"top-1"}
    for number, row in enumerate(found.accuracies.iter_rows(named=True)):
        counts = []
        for role, data in zip(("reference", "replication"), both, strict=True):
            right, images = int(data.correct[number].sum()), len(data.images)
            counts += [right, images]
            assert row[f"{role}_images"] == images
            assert row[f"{role}_accuracy"] == pytest.approx(right / images)
            ends = [float(end) for end in proportion_interval(right, images, "wilson")]
            assert (row[f"{role}_lower"], row[f"{role}_upper"]) == pytest.approx(ends)
        assert row["gap"] == pytest.approx(row["reference_accuracy"] - row["replication_accuracy"])
        ends = [float(end) for end in independent_difference(*counts)[:2]]
        assert (row["gap_lower"], row["gap_upper"]) == pytest.approx(ends, abs=1e-5)


@pytest.mark.parametrize("people", [False, True])
def test_multi_label_accuracies_count_by_hand(write, both, people):
    humans = None
    if people:
        rows = [(f"v1 {i}", "Ann", CLASSES[i % 5]) for i in range(30)]
        rows += [(f"v2 {i}", name, CLASSES[i % 3]) for i in range(20) for name in ("Ann", "Bob")]
        humans = read_humans(write(human_table(rows)), *both)
    labels = [some_labels(data) for data in both]
    table = compare(*both, humans=humans, sets=(labels[0][0], labels[1][0])).accuracies
    assert set(table["metric"]) == {"multi-label"}
    assert len(table) == 6 if people else 4
    for number, row in enumerate(table.iter_rows(named=True)):
        for place, role in enumerate(("reference", "replication")):
            _, allowed, known = labels[place]
            first = both[place].first
            seen = np.ones(len(known), dtype=bool)
            if people:
                seen = np.any(humans[place].answered, axis=0)
                first = np.concatenate([np.where(seen, first, NO_ANSWER), humans[place].first])
            right = images = 0
            for image, answer in enumerate(first[number].tolist()):
                if answer != NO_ANSWER and known[image] and allowed[image].any():
                    images += 1
                    right += allowed[image, answer]
            assert row[f"{role}_images"] == images
            if images:
                assert row[f"{role}_accuracy"] == pytest.approx(right / images)
            else:
                assert (row["participant"], role) == ("Bob", "reference")
                assert row[f"{role}_accuracy"] is row[f"{role}_lower"] is row["gap"] is None
                assert row["gap_lower"] is row["gap_upper"] is None


def test_pairs_of_both_data_sets_are_those_of_their_answers(both):
    table = compare(*both).pairs()
    for role, data in zip(("reference", "replication"), both, strict=True):
        expected = compare_pairs(NETWORKS, data.correct, data.answered)
        assert table.filter(pl.col("dataset") == role).drop("dataset").equals(expected)


def test_lines_run_through_classifiers_alone(write, both):
    rows = [(f"{name} {i}", "Ann", "ant") for name in ("v1", "v2") for i in range(40)]
    humans = read_humans(write(human_table(rows)), *both)
    found = compare(*both, humans=humans)
    machines = found.accuracies.filter(pl.col("kind") == "classifier")
    expected = fit_lines(machines["reference_accuracy"], machines["replication_accuracy"])
    columns = ["scale", "quantity", "estimate", "classifiers_lower", "classifiers_upper"]
    assert found.lines.select(columns).equals(expected.select(columns))
    assert found.lines.equals(compare(*both, humans=humans).lines)
    assert not found.lines.equals(compare(*both, humans=humans, seed=1).lines)


def test_a_single_classifier_has_no_line():
    data = [some_predictions(name, 40, networks=("vgg",)) for name in ("v1", "v2")]
    found = compare(*data)
    assert found.lines.is_empty()
    assert found.pairs().is_empty()
    assert len(found.accuracies) == 1


def test_sets_that_differ_or_are_empty_cannot_be_compared(both):
    fewer = some_predictions("v2", 50, networks=NETWORKS[:2])
    with refused(StudyError, "classifiers-or-classes-differ"):
        compare(both[0], fewer)
    nothing = LabelSets(np.zeros(80, bool), np.array([], int), np.array([], int), 5)
    with refused(StudyError, "no-image-to-compare", {"dataset": "v1"}):
        compare(*both, sets=(nothing, some_labels(both[1])[0]))


# ------------------------------------------------------------------ lines

X = np.array([0.55, 0.61, 0.7, 0.74, 0.8, 0.87])
Y = np.array([0.41, 0.52, 0.58, 0.6, 0.71, 0.74])


def by_key(table):
    return {(row["scale"], row["quantity"]): row for row in table.iter_rows(named=True)}


SCALES = [("linear", np.asarray, np.asarray), ("probit", ndtri, ndtr), ("logit", logit, expit)]


@pytest.mark.parametrize(("scale", "change", "_"), SCALES)
def test_lines_are_ordinary_regressions(scale, change, _):
    rows = by_key(fit_lines(X, Y))
    expected = linregress(change(X), change(Y))
    half = student.ppf(0.975, len(X) - 2)
    for quantity, error in (("slope", expected.stderr), ("intercept", expected.intercept_stderr)):
        row, value = rows[scale, quantity], getattr(expected, quantity)
        assert row["estimate"] == pytest.approx(value)
        assert row["classifiers_lower"] == pytest.approx(value - half * error)
        assert row["classifiers_upper"] == pytest.approx(value + half * error)
        assert row["lower"] is row["upper"] is None


def test_the_mean_gap_has_the_interval_of_a_t_test():
    row = by_key(fit_lines(X, Y))["linear", "mean_gap"]
    gap = X - Y
    half = student.ppf(0.975, 5) * gap.std(ddof=1) / np.sqrt(6)
    assert row["estimate"] == pytest.approx(gap.mean())
    assert row["classifiers_upper"] == pytest.approx(gap.mean() + half)


def test_accuracies_of_0_and_1_are_left_out_on_the_probit_scale():
    x, y = np.append(X, [0.9, 1.0]), np.append(Y, [0.0, 0.95])
    rows = by_key(fit_lines(x, y))
    assert rows["probit", "slope"]["estimate"] == pytest.approx(
        linregress(ndtri(X), ndtri(Y)).slope
    )
    assert rows["linear", "slope"]["estimate"] == pytest.approx(linregress(x, y).slope)


@pytest.mark.parametrize("count", [1, 2])
def test_few_classifiers_have_no_interval_for_others(count):
    rows = by_key(fit_lines(X[:count], Y[:count]))
    for quantity in ("slope", "intercept"):
        assert rows["linear", quantity]["classifiers_lower"] is None
    slope = rows["linear", "slope"]["estimate"]
    assert slope is None if count == 1 else slope == pytest.approx((Y[1] - Y[0]) / (X[1] - X[0]))


def test_equal_accuracies_have_no_slope():
    rows = by_key(fit_lines([0.5] * 4, [0.4, 0.41, 0.39, 0.4]))
    assert rows["linear", "slope"]["estimate"] is None
    assert rows["linear", "mean_gap"]["estimate"] == pytest.approx(0.1)


def drawn(right, seed):
    return resampled_accuracies(right, np.ones_like(right), seed)


def test_intervals_for_other_images_are_quantiles_of_the_draws(both):
    draws = tuple(drawn(data.correct, seed) for seed, data in enumerate(both))
    x, y = (data.correct.mean(axis=1) for data in both)
    rows = by_key(fit_lines(x, y, draws))
    slopes = [linregress(one, other).slope for one, other in zip(*draws, strict=True)]
    row = rows["linear", "slope"]
    assert (row["lower"], row["upper"]) == pytest.approx(np.quantile(slopes, [0.025, 0.975]))
    row = rows["probit", "intercept"]
    values = [linregress(ndtri(a), ndtri(b)).intercept for a, b in zip(*draws, strict=True)]
    assert (row["lower"], row["upper"]) == pytest.approx(np.quantile(values, [0.025, 0.975]))
    row = rows["linear", "mean_gap"]
    gaps = (draws[0] - draws[1]).mean(axis=1)
    assert (row["lower"], row["upper"]) == pytest.approx(np.quantile(gaps, [0.025, 0.975]))


def test_a_perfect_classifier_does_not_move_the_interval_of_the_probit_line():
    rng = np.random.default_rng(0)
    right = [rng.random((6, 400)) < accuracies[:, None] for accuracies in (X, Y)]
    perfect = [np.concatenate([each, np.ones((1, 400), bool)]) for each in right]

    def slope(answers):
        draws = tuple(drawn(each, seed) for seed, each in enumerate(answers))
        return by_key(fit_lines(*(each.mean(axis=1) for each in answers), draws))["probit", "slope"]

    without, along = slope(right), slope(perfect)
    assert along["estimate"] == pytest.approx(without["estimate"])
    assert (along["lower"], along["upper"]) == pytest.approx(
        (without["lower"], without["upper"]), abs=0.02
    )


def test_resampled_accuracies_are_means_of_answers():
    """Exact where the answers are alike, whichever images are drawn."""
    right = np.array([np.ones(300, bool), np.zeros(300, bool)])
    draws = resampled_accuracies(right, np.ones_like(right), 9)
    assert draws.shape == (1000, 2)
    np.testing.assert_allclose(draws, [[1, 0]] * 1000, atol=1e-6)


def test_resampled_images_are_shared_by_all_participants():
    rng = np.random.default_rng(4)
    right = rng.random(100) < 0.6
    draws = resampled_accuracies(np.stack([right, right, ~right]), np.ones((3, 100), bool), 0)
    assert np.array_equal(draws[:, 0], draws[:, 1])
    np.testing.assert_allclose(draws[:, 0] + draws[:, 2], 1, atol=1e-5)
    silent = resampled_accuracies(np.stack([right, right]), np.array([[True], [False]]) & right, 0)
    assert np.isnan(silent[:, 1]).all()
    assert np.isfinite(silent[:, 0]).all()


@pytest.mark.parametrize(("scale", "change", "back"), SCALES)
def test_the_band_of_a_line_is_that_of_a_regression(scale, change, back):
    at = np.array([0.5, 0.7, 0.95])
    x, y, where = change(X), change(Y), change(at)
    design = np.column_stack([np.ones(6), x])
    beta, residuals, *_ = np.linalg.lstsq(design, y)
    covariance = np.linalg.inv(design.T @ design) * residuals[0] / 4
    points = np.column_stack([np.ones(3), where])
    middle = points @ beta
    half = student.ppf(0.975, 4) * np.sqrt(np.sum(points @ covariance * points, axis=1))
    for found, expected in zip(
        line_band(X, Y, at, scale), (middle, middle - half, middle + half), strict=True
    ):
        np.testing.assert_allclose(found, back(expected), rtol=1e-9)


def test_too_few_accuracies_on_a_scale_have_no_line():
    """0 has no place on the probit scale; accuracies that are all alike leave any slope."""
    for x, scale in (([0, 0, 0.5, 0.6], "probit"), ([0.5] * 4, "linear")):
        for found in line_band(x, [0.1, 0.2, 0.3, 0.4], [0.4, 0.5], scale):
            assert np.isnan(found).all()


# ------------------------------------------------------------------ what has been published


def test_the_published_accuracies_of_people_and_networks():
    table = shankar2020()
    assert len(table) == 8 * 4
    assert table["participant"].n_unique() == 8
    assert table.filter(pl.col("kind") == "human")["participant"].n_unique() == 5
    assert set(table["subset"]) == {"all", "without dogs", "objects", "fast images"}
    rows = {(row["participant"], row["subset"]): row for row in table.iter_rows(named=True)}
    best = rows["Human E", "all"]
    assert best["reference_accuracy"] == pytest.approx(0.973)
    assert best["replication_accuracy"] == pytest.approx(0.965)
    assert best["gap"] == pytest.approx(0.007)
    ends = [round(float(end), 3) for end in proportion_interval(973, 1000, "clopper-pearson")]
    assert ends == pytest.approx([best["reference_lower"], best["reference_upper"]], abs=0.0011)
    assert rows["resnet50", "all"]["gap"] == pytest.approx(0.084)
    assert rows["Human C", "all"]["gap"] == pytest.approx(-0.005)
    others = table.filter(pl.col("subset") != "all")
    assert others["gap"].null_count() == others["reference_lower"].null_count() == 24


def test_published_intervals_surround_their_accuracies_and_gaps_are_differences():
    table = shankar2020().filter(pl.col("subset") == "all")
    for role in ("reference", "replication"):
        accuracy = table[f"{role}_accuracy"]
        assert ((table[f"{role}_lower"] < accuracy) & (accuracy < table[f"{role}_upper"])).all()
    gap = table["reference_accuracy"] - table["replication_accuracy"]
    np.testing.assert_allclose(gap, table["gap"], atol=0.0011)


def test_where_the_papers_disagree_with_themselves():
    """The numbers of docs/papers-disagree.md."""
    page = (Path(__file__).parents[1] / "docs" / "papers-disagree.md").read_text(encoding="utf-8")
    _, reference, replication = published_accuracies()
    assert f"**{100 * (reference - replication).mean():.2f} %**" in page
    assert f"them is {np.polyfit(reference, replication, 1)[0]:.2f}" in page
    rows = shankar2020().filter(pl.col("subset") == "all").to_dicts()
    for row in rows:
        right = {role: round(1_000 * row[f"{role}_accuracy"]) for role in REQUIRED_ROLES}
        printed = {
            role: 100 * np.array([row[f"{role}_lower"], row[f"{role}_upper"]])
            for role in REQUIRED_ROLES
        }

        def of(count):
            ends = proportion_interval(np.array([count]), 1_000, "clopper-pearson")
            return 100 * np.concatenate(ends)

        np.testing.assert_allclose(of(right["reference"]), printed["reference"], atol=0.11)
        own, there = of(right["replication"]), printed["replication"]
        assert (np.abs(own - there) > 0.2).all()
        fit = [np.abs(of(count) - there).max() for count in range(1_001)]
        nearest = int(np.argmin(fit))
        assert fit[nearest] < 0.1
        assert nearest - right["replication"] in (3, 4)
        line = next(line for line in page.splitlines() if f"({right['replication']})" in line)
        assert f"| {own[0]:.1f} to {own[1]:.1f} | {nearest} |" in line


# ------------------------------------------------------------------ confusion

GROUPS = np.array(["insect", "insect", "mammal", "mammal", "fish"])
PARTIAL = np.array(["insect", "insect", "mammal", "mammal", ""])


def name_of(number, groups):
    return CLASSES[number] if groups is None else str(groups[number])


def with_gaps():
    """Predictions of which one classifier lacks every third."""
    data = some_predictions()
    answers = data.answers.copy()
    answers[1, ::3] = NO_ANSWER
    return Predictions("v1", data.images, CLASSES, data.labels, NETWORKS, answers)


def counted(data, number, groups):
    """{(label, answer): count} of one participant, one image after the other."""
    cells = {}
    for label, answer in zip(data.labels.tolist(), data.first[number].tolist(), strict=True):
        key = (name_of(label, groups), name_of(answer, groups))
        if answer != NO_ANSWER and all(key):
            cells[key] = cells.get(key, 0) + 1
    return cells


@pytest.mark.parametrize("groups", [None, GROUPS, PARTIAL], ids=["classes", "all", "partial"])
def test_confusions_are_counted_by_label_and_answer(groups):
    data = with_gaps()
    table = confusion(data, groups, interval="clopper-pearson")
    assert table["participant"].unique(maintain_order=True).to_list() == list(NETWORKS)
    for number, name in enumerate(NETWORKS):
        cells = counted(data, number, groups)
        rows = table.filter(pl.col("participant") == name)
        assert {(r["label"], r["answer"]): r["count"] for r in rows.to_dicts()} == cells
        for row in rows.iter_rows(named=True):
            images = sum(count for (label, _), count in cells.items() if label == row["label"])
            assert row["images"] == images
            assert row["rate"] == pytest.approx(row["count"] / images)
            ends = proportion_interval(row["count"], images, "clopper-pearson")
            assert (row["lower"], row["upper"]) == pytest.approx([float(end) for end in ends])


def test_grouping_adds_up_the_confusions_of_classes():
    data = some_predictions()
    group = dict(zip(CLASSES, GROUPS.tolist(), strict=True))
    single = confusion(data).with_columns(pl.col("label", "answer").replace(group))
    summed = single.group_by("participant", "label", "answer").agg(pl.col("count").sum())
    grouped = confusion(data, GROUPS).select("participant", "label", "answer", "count")
    order = ["participant", "label", "answer"]
    assert summed.sort(order).equals(grouped.sort(order))


def differences(data, one, other, groups):
    table = confusion_difference(data, one, other, groups)
    return {(row["label"], row["answer"]): row for row in table.iter_rows(named=True)}


@pytest.mark.parametrize("groups", [None, GROUPS, PARTIAL], ids=["classes", "all", "part"])
def test_differences_of_confusions_are_those_of_pairs(groups):
    data = with_gaps()
    found = differences(data, "vgg", "resnet", groups)
    swapped = differences(data, "resnet", "vgg", groups)
    assert found.keys() == swapped.keys()
    for (label, answer), row in found.items():
        cells = [0, 0, 0]
        for image in np.flatnonzero(data.answered[1]):
            if name_of(data.labels[image], groups) == label:
                given = [name_of(data.first[k, image], groups) for k in (0, 1)]
                if all(given):
                    first, second = (each == answer for each in given)
                    cells[0 if first > second else 1 if second > first else 2] += 1
        assert row["images"] == sum(cells)
        assert row["rate"] - row["other_rate"] == pytest.approx((cells[0] - cells[1]) / sum(cells))
        expected = [float(each) for each in paired_difference(*cells)[:3]]
        given = [row[name] for name in ("difference", "lower", "upper")]
        assert given == pytest.approx(expected, abs=1e-5)
        mirror = swapped[label, answer]
        assert mirror["difference"] == pytest.approx(-row["difference"])
        assert mirror["lower"] == pytest.approx(-row["upper"], abs=1e-5)
        assert mirror["rate"] == row["other_rate"]


def test_an_unknown_participant_is_named():
    with refused(StudyError, "nobody-of-that-name", {"dataset": "v1", "name": "Zoe"}):
        confusion_difference(some_predictions(), "vgg", "Zoe")


@pytest.mark.parametrize("empty", ["exclude", "wrong"])
@pytest.mark.parametrize("groups", [None, GROUPS, PARTIAL], ids=["classes", "all", "partial"])
def test_co_occurrences_are_counted_by_image(groups, empty):
    data = some_predictions()
    sets, allowed, known = some_labels(data)
    cells, images = {}, {}
    for image, label in enumerate(data.labels.tolist()):
        shown = name_of(label, groups)
        if not known[image] or not shown or (empty == "exclude" and not allowed[image].any()):
            continue
        images[shown] = images.get(shown, 0) + 1
        others = {name_of(k, groups) for k in np.flatnonzero(allowed[image]) if k != label} - {""}
        for other in others:
            cells[shown, other] = cells.get((shown, other), 0) + 1
    table = co_occurrence(data, sets, groups, empty=empty)
    assert {(r["label"], r["answer"]): r["count"] for r in table.to_dicts()} == cells
    for row in table.iter_rows(named=True):
        assert row["images"] == images[row["label"]]
        assert row["rate"] == pytest.approx(row["count"] / row["images"])
        ends = proportion_interval(row["count"], row["images"])
        assert (row["lower"], row["upper"]) == pytest.approx([float(end) for end in ends])


# ------------------------------------------------------------------ the command line


@pytest.fixture
def files(tmp_path, write, both):
    StudyContents(answers=both).write(tmp_path / "s")
    rows = [
        (image, name, CLASSES[(place + shift) % 5])
        for data in both
        for place, image in enumerate(data.images.tolist()[:30])
        for shift, name in enumerate(("Ann", "Bob"))
    ]
    write(human_table(rows))
    sets = {
        image: [CLASSES[label]]
        for data in both
        for image, label in zip(data.images.tolist(), data.labels.tolist(), strict=True)
    }
    (tmp_path / "sets.json").write_text(json.dumps(sets))
    write(pl.DataFrame({"class": CLASSES, "kind": GROUPS, "odd": list("xyxyx")}), "groups.csv")
    return tmp_path


def arguments(files, *more):
    return ("papers", "compare", files / "s", "--datasets", "v1,v2", *more)


def test_the_command_prints_what_the_function_finds(capsys, files, both):
    status, text, error = run(
        capsys, *arguments(files, "--json", "--input", f"humans={files}/humans.csv")
    )
    assert (status, error) == (0, "")
    facts = json.loads(text)
    expected = compare(*both, humans=read_humans(files / "humans.csv", *both))
    rows = {row["participant"]: row for row in facts["rows"]}
    assert set(rows) == {*NETWORKS, "Ann", "Bob"}
    for row in expected.accuracies.iter_rows(named=True):
        found = rows[row["participant"]]
        assert found["kind"] == row["kind"]
        for name in ("reference_accuracy", "replication_upper", "gap_lower"):
            assert found[name] == pytest.approx(row[name], abs=1e-5)
    estimates = [row["estimate"] for row in facts["lines"]]
    assert estimates == pytest.approx(expected.lines["estimate"].to_list())


@pytest.mark.parametrize(
    ("table", "people"),
    [
        *product(["accuracies", "pairs", "lines", "confusion"], [False, True]),
        ("robustness", False),
    ],
)
def test_every_table_is_text_json_and_csv(capsys, files, table, people):
    more = ("--table", table, *(("--input", f"humans={files}/humans.csv") if people else ()))
    status, text, error = run(capsys, *arguments(files, *more))
    assert (status, error) == (0, "")
    assert "resnet" in text or table == "lines"
    assert ("Ann" in text) == (people and table != "lines")
    status, text, _ = run(capsys, *arguments(files, *more, "--json"))
    assert status == 0
    _, printed, _ = run(capsys, *arguments(files, *more, "--format", "csv"))
    assert len(json.loads(text)["rows"]) == pl.read_csv(io.StringIO(printed)).height > 0


def test_published_people_stand_beside_ones_own(capsys, files):
    more = ("--table", "published", "--input", f"labels={files}/sets.json", "--json")
    status, text, _ = run(capsys, *arguments(files, *more))
    assert status == 0
    rows = json.loads(text)["rows"]
    kinds = {"classifier", "classifier (published)", "human (published)"}
    assert {row["kind"] for row in rows} == kinds
    assert {row["metric"] for row in rows} == {"multi-label"}
    assert len(rows) == 4 + 8


def test_confusions_of_one_less_anothers_by_superclass(capsys, files, both):
    more = ("--table", "confusion", "--between", "vgg,Ann", "--datasets", "v2,v1", "--json")
    inputs = (f"classes={files}/groups.csv", f"humans={files}/humans.csv")
    groups = ("--by", "kind", *(word for each in inputs for word in ("--input", each)))
    status, text, _ = run(capsys, *arguments(files, *more, *groups))
    assert status == 0
    data = beside(both[1], read_humans(files / "humans.csv", *both)[1])
    expected = confusion_difference(data, "vgg", "Ann", GROUPS)
    found = {(row["label"], row["answer"]): row for row in json.loads(text)["rows"]}
    assert set(found) <= set(product(set(GROUPS.tolist()), repeat=2))
    for row in expected.iter_rows(named=True):
        assert found[row["label"], row["answer"]] == pytest.approx(row, abs=1e-5)


NO_FILE = {"reason": "No such file or directory", "path": "none.csv"}


@pytest.mark.parametrize(
    ("more", "rule", "facts"),
    [
        ("--input humans=none.csv", "file-unreadable", NO_FILE),
        ("--datasets v1", "table-of-two-data-sets", {"table": "accuracies"}),
        ("--table confusion --between vgg", "between-takes-two-names", {}),
        ("--table confusion --between vgg,Zoe", "nobody-of-that-name", {"name": "Zoe"}),
    ],
)
def test_wrong_use_is_one_line(capsys, files, more, rule, facts):
    check(refusal(arguments(files, *more.split())), rule, facts)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("table", ["accuracies", "pairs", "confusion"])
def test_hostile_names_of_people_cannot_steer_the_terminal(capsys, files, write, table):
    """Nor their answers, in the line that refuses these."""
    rows = [(f"{name} {i}", "\x1b[2Jowned", "ant") for name in ("v1", "v2") for i in range(9)]
    for said, status in ((rows, 0), ([("v1 0", "Ann", "\x1b[2Jowned")], 2)):
        path = write(human_table(said), "hostile.parquet")
        more = ("--input", f"humans={path}", "--table", table)
        found, out, error = run(capsys, *arguments(files, *more))
        assert found == status
        assert "owned" in (error if status else out)
        assert "\x1b" not in out + error


def test_the_robustness_figure_takes_answers_without_counts(both, tmp_path):
    """As compare does: accuracies and their lines need no annotators."""
    StudyContents(answers=both).write(tmp_path / "answers")
    out = tmp_path / "robustness.png"
    names = ("--reference", "v1", "--replication", "v2")
    run = ["figure", "robustness", tmp_path / "answers", *names, "--out", out]
    assert cli.main([str(part) for part in run]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    run[3:7] = ["--reference", "v1", "--replication", "v3"]
    told = {"dataset": "v3", "known_datasets": ["v1", "v2"]}
    check(refusal([*run, "--force"]), "data-set-without-predictions", told)


def test_right_and_wrong_are_enough_to_compare(tmp_path, capsys):
    """Accuracies, their lines and pairs; not what is taken for what."""
    study = zoo.study("evaluation")
    study.write(tmp_path / "s")
    assert cli.main(["papers", "compare", str(tmp_path / "s"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    found = {row["participant"]: row for row in rows}
    for place, name in enumerate(study.classifiers):
        for role in REQUIRED_ROLES:
            mean = study.datasets[role].correct[:, place].mean()
            assert found[name][f"{role}_accuracy"] == pytest.approx(mean)
    words = ["papers", "compare", str(tmp_path / "s"), "--table"]
    assert cli.main([*words, "pairs"]) == 0
    check(refusal([*words, "confusion"]), "answers-not-recorded")


def test_answers_without_counts_know_which_is_the_reference(both, tmp_path, capsys):
    StudyContents(answers=both).write(tmp_path / "answers")
    assert cli.main(["papers", "compare", str(tmp_path / "answers"), "--json"]) == 0
    found = capsys.readouterr().out
    names = ("--datasets", "v1,v2")
    assert cli.main(["papers", "compare", str(tmp_path / "answers"), *names, "--json"]) == 0
    assert capsys.readouterr().out == found
    file = tmp_path / "answers" / "roles.json"
    for text, rule, place in (
        ("[1]", "roles-file-not-mapping", "file"),
        ("{", "file-not-json", "where"),
        ('{"a": 1}', "roles-file-not-mapping", "file"),
    ):
        file.write_text(text, "utf-8")
        check(refusal(["papers", "compare", tmp_path / "answers"]), rule, {place: str(file)})


def few(name, right):
    """Answers of classifiers to a few images; 1 where right."""
    rows = np.array(list(right.values()))
    images = np.array([f"{name} {n}" for n in range(rows.shape[1])])
    labels = np.zeros(rows.shape[1], dtype=np.int8)
    answers = np.where(rows, 0, 1).astype(np.int8)[:, :, None]
    return Predictions(name, images, ("right", "wrong"), labels, tuple(right), answers)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({"m": [1, 1, 1]}, {"m": [1, 1]}, "m is as accurate on new as on old (95 % interval "),
        (
            {"m": [1] * 80},
            {"m": [1] * 20 + [0] * 60},
            "m loses 75.00 points from old to new (95 % ",
        ),
        (
            {"m": [0] * 3, "other": [0, 0, 1]},
            {"m": [1, 1], "other": [1, 1]},
            "The 2 classifiers gain 83.33 points on average from old to new (95 % ",
        ),
    ],
)
def test_small_data_sets_are_compared_without_a_warning_and_in_words(
    tmp_path, capsys, old, new, said
):
    StudyContents(answers=[few("old", old), few("new", new)]).write(tmp_path / "s")
    status, text, error = run(capsys, "papers", "compare", tmp_path / "s")
    assert (status, error) == (0, "")
    last = text.splitlines()[-1]
    assert last.startswith(said)
    assert last.endswith("Accuracies alone do not say why.")
    assert ("It may be chance." in last) == (old == {"m": [1, 1, 1]})
    for table in ("pairs", "lines"):
        status, text, error = run(capsys, "papers", "compare", tmp_path / "s", "--table", table)
        assert (status, error) == (0, "")


def test_what_is_printed_is_in_percent_and_in_plain_names(files, capsys):
    found = compare(*read_predictions(files / "s", ("v1", "v2"), ranks=1))
    status, text, _ = run(capsys, *arguments(files))
    assert status == 0
    lines = found.lines.filter(scale="linear", quantity="mean_gap").row(0, named=True)
    (line,) = (each for each in text.splitlines() if "mean gap" in each)
    assert f"{100 * lines['estimate']:.2f}" in line
    assert f"{100 * lines['lower']:.2f} to {100 * lines['upper']:.2f}" in line
    assert "_" not in text
    status, text, _ = run(capsys, *arguments(files, "--table", "pairs"))
    row = found.pairs().row(0, named=True)
    assert f"{100 * row['lower']:.2f} to {100 * row['upper']:.2f}" in text
    assert "_" not in text


@pytest.mark.parametrize("counted", [False, True])
def test_answers_of_models_are_spoken_of_as_such(tmp_path, capsys, counted):
    both = [few(name, {"classifier 1": [1, 0, 1], "b": [0, 1, 1]}) for name in ("old", "new")]
    StudyContents(answers=both, provenance={"words": "evaluation"}).write(tmp_path / "s")
    if counted:
        rows = [f"{each.dataset},{image},3,4" for each in both for image in each.images]
        counts = tmp_path / "counts.csv"
        counts.write_text("\n".join(["dataset,image,selected,shown", *rows]))
        roles = ("--reference", "old", "--replication", "new")
        command = ("import", "tables", counts, *roles, "--out", tmp_path / "s")
        assert run(capsys, *command)[0] == 0
    _, text, _ = run(capsys, "papers", "compare", tmp_path / "s")
    assert "The 2 models are as accurate" in text
    assert "classifier 1" in text
    assert text.count("classifier") == text.count("classifier 1")


def test_a_folder_of_answers_without_counts_is_sound(both, tmp_path, capsys):
    StudyContents(answers=both).write(tmp_path / "answers")
    assert cli.main(["check", str(tmp_path / "answers")]) == 0
    said = capsys.readouterr().out
    assert all(part in said for part in ("v1: ", "4 classifiers", "80 images", "No counts"))
    (tmp_path / "answers" / "predictions" / "v2" / "vit.parquet").write_bytes(b"PAR1")
    assert cli.main(["check", str(tmp_path / "answers")]) == 1
    assert "vit.parquet" in capsys.readouterr().out
