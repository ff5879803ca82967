"""The jackknife over annotators: closed forms, brute force, random subsets, linearity in 1/n."""

import itertools
import json
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from refusals import refused
from scipy import stats

from bayesrep import Study, SufficientStatistics, estimate
from bayesrep.cli import main
from bayesrep.errors import EstimateWarning, OptionError
from bayesrep.estimators import (
    InterpolationWarning,
    Jackknife,
    Naive,
    analyse,
    estimate_gaps,
    matching_facts,
    matching_sentences,
)
from bayesrep.estimators.annotators import compare_annotators, linearity
from bayesrep.estimators.naive import (
    at_every_count,
    forget_one_annotator,
    matched_accuracy,
    thinned_counts,
)
from bayesrep.estimators.replicates import CellCounts, Replicates


def study_of(images: int = 300, annotators: int = 6, classifiers: int = 3, seed: int = 0) -> Study:
    rng = np.random.default_rng(seed)
    data = []
    for easiness in (4.0, 2.5):
        frequency = rng.beta(easiness, 1, size=images)
        correct = rng.random((images, classifiers)) < frequency[:, None] ** 2
        selected = rng.binomial(annotators, frequency)
        data.append({"selected": selected, "shown": annotators, "correct": correct})
    names = [f"c{number}" for number in range(classifiers)]
    return Study.from_arrays(reference=data[0], replication=data[1], classifiers=names)


def whole(study: Study) -> Replicates:
    return Replicates.from_study(SufficientStatistics.from_study(study))


# --- the estimate -----------------------------------------------------------------------------


@pytest.mark.parametrize("delete", [1, 2, 3])
def test_the_estimate_is_the_line_through_two_naive_estimates(delete: int):
    replicates = whole(study_of())
    full, part = (Naive(n)(replicates).value[0] for n in (6, 6 - delete))
    slope = (part - full) / (1 / (6 - delete) - 1 / 6)
    expected = full - slope / 6
    np.testing.assert_allclose(Jackknife(delete=delete)(replicates).value[0], expected, rtol=1e-12)


def population(annotators: int) -> Replicates:
    """A study without sampling noise: s ~ Beta(5, 1) and Beta(3, 1), g(s) = s."""
    k = np.arange(annotators + 1)
    mass = [stats.betabinom.pmf(k, annotators, a, 1) for a in (5, 3)]
    right = mass[1] * (3 + k) / (4 + annotators)  # E[s | k] under the replication's mixture
    shown = np.full(annotators + 1, annotators)
    cells = [
        CellCounts(k, shown, images[None] * 1e9, correct[None, :, None] * 1e9)
        for images, correct in zip(mass, (mass[0], right), strict=True)
    ]
    return Replicates(*cells)


def test_bias_in_one_over_n_is_removed():
    """Naive: E[(3 + k)/(4 + n) | s ~ Beta(5, 1)] = (3 + 5n/6)/(4 + n); truth 5/6."""
    for n in (10, 20, 40):
        replicates = population(n)
        naive, jackknife = Naive()(replicates).value[0, 0], Jackknife()(replicates).value[0, 0]
        assert naive == pytest.approx((3 + 5 * n / 6) / (4 + n), rel=1e-12)
        # the bias is -c/(n + 4) = -c/n + 4c/n² - ..., of which the first term goes
        c = 4 * 5 / 6 - 3
        expected = -n * c / (n + 4) + (n - 1) * c / (n + 3)
        assert jackknife - 5 / 6 == pytest.approx(expected, rel=1e-9)
        assert abs(jackknife - 5 / 6) < 4 * c / n**2


def test_every_way_to_leave_annotators_out_by_brute_force():
    """Where the replication's accuracy by count is known, θ is linear and averages exactly."""
    answers = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
    n, d = 4, 2
    replicates = whole(study_of(annotators=n, images=60))
    table = np.concatenate([np.repeat(answers, 12, axis=0)])
    reference = CellCounts(
        np.arange(n + 1),
        np.full(n + 1, n),
        np.bincount(table.sum(axis=1), minlength=n + 1)[None].astype(float),
        np.zeros((1, n + 1, 3)),
    )
    replicates = Replicates(reference, replicates.replication)
    ways = list(itertools.combinations(range(n), n - d))
    thinned = [np.bincount(table[:, list(way)].sum(axis=1), minlength=n - d + 1) for way in ways]
    part = np.mean([_theta(counts, replicates, n - d) for counts in thinned], axis=0)
    full = Naive()(replicates).value[0]
    expected = full - (n - d) / d * (part - full)
    np.testing.assert_allclose(Jackknife(delete=d)(replicates).value[0], expected, rtol=1e-12)


def _theta(counts: NDArray[np.int64], replicates: Replicates, n: int) -> NDArray[np.float64]:
    accuracy = np.zeros((n + 1, 3))
    weight = np.zeros(n + 1)
    cells = replicates.replication
    for k, shown, images, correct in zip(
        cells.selected, cells.shown, cells.images[0], cells.correct[0], strict=True
    ):
        share = stats.hypergeom.pmf(np.arange(n + 1), shown, k, n)
        weight += images * share
        accuracy += share[:, None] * correct
    return counts / counts.sum() @ (accuracy / weight[:, None])


@pytest.mark.parametrize("delete", [0, 6, -1])
def test_impossible_deletions(delete: int):
    facts = {"delete": delete, "most": 5, "annotators": 6}
    with refused(ValueError, "jackknife-delete-out-of-range", facts):
        Jackknife(delete=delete)(whole(study_of()))


# --- standard error ---------------------------------------------------------------------------


def test_standard_error_is_the_spread_over_who_is_left_out_of_each_image():
    """By brute force: all ways to leave 2 of 5 out, θ's derivative in every image of each kind."""
    n, d, step = 5, 2, 1e-4
    study = study_of(images=60, annotators=n, classifiers=2)
    replicates = whole(study)
    part = thinned_counts(replicates, n - d)

    def change(role: str, count: int, correct: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Of θ, for another image at this count."""
        found = []
        for more in (step, -step):
            images, right = (np.zeros_like(field) for field in (part.reference, part.correct))
            images[0, count], right[0, count] = more, more * correct
            if role == "reference":
                counts = part._replace(reference=part.reference + images)
            else:
                replication = part.replication + images
                counts = part._replace(replication=replication, correct=part.correct + right)
            found.append(matched_accuracy(counts)[0])
        return (found[0] - found[1]) / (2 * step)

    variance = np.zeros(2)
    for role, data in study.datasets.items():
        for k, correct in zip(data.selected, data.correct, strict=True):
            kept = [sum(way) for way in itertools.combinations([1] * k + [0] * (n - k), n - d)]
            variance += np.var([change(role, count, correct) for count in kept], axis=0)
    error = np.sqrt((n - d) / d * variance)
    np.testing.assert_allclose(Jackknife(delete=d)(replicates).standard_error, error, rtol=1e-6)


def test_standard_error_without_a_choice_is_zero():
    """Where all annotators agree, leaving some out changes nothing."""
    data = {"selected": np.repeat([0, 8], 20), "shown": 8, "correct": np.eye(40, 2, dtype=bool)}
    study = Study.from_arrays(reference=data, replication=data, classifiers=["a", "b"])
    np.testing.assert_allclose(Jackknife()(whole(study)).standard_error, 0, atol=1e-12)
    jackknife, naive = (
        estimator(whole(study)).value for estimator in (Jackknife(delete=3), Naive())
    )
    np.testing.assert_allclose(jackknife, naive)


def test_the_interval_of_estimate_is_that_of_the_standard_error():
    study = study_of()
    table = estimate(study, "jackknife")
    error = Jackknife()(whole(study)).standard_error
    width = (table["upper"] - table["lower"]).to_numpy()
    np.testing.assert_allclose(width, 2 * stats.norm.ppf(0.975) * error, rtol=1e-9)
    middle = (table["upper"] + table["lower"]).to_numpy() / 2
    np.testing.assert_allclose(middle, table["adjusted_accuracy"].to_numpy(), rtol=1e-9)


# --- the line in 1/n --------------------------------------------------------------------------


def test_all_numbers_of_annotators_in_one_table():
    study = study_of()
    replicates = whole(study)
    table = compare_annotators(study)
    assert table.columns == ["annotators", "classifier", "reference_accuracy", "naive", "jackknife"]
    for n in range(1, 7):
        rows = table.filter(pl.col("annotators") == n)
        np.testing.assert_allclose(
            rows["naive"].to_numpy(), Naive(n)(replicates).value[0], rtol=1e-12
        )
        if n == 1:
            assert rows["jackknife"].null_count() == 3
        else:
            expected = Jackknife(n)(replicates).value[0]
            np.testing.assert_allclose(rows["jackknife"].to_numpy(), expected, rtol=1e-10)


def table_of(naive: NDArray[np.float64]) -> pl.DataFrame:
    n = np.arange(1, len(naive) + 1)
    jackknife = np.append(np.nan, n[1:] * naive[1:] - (n[1:] - 1) * naive[:-1])
    return pl.DataFrame(
        {
            "annotators": n,
            "classifier": ["c"] * len(n),
            "reference_accuracy": [0.9] * len(n),
            "naive": naive,
            "jackknife": jackknife,
        }
    ).fill_nan(None)


def test_a_line_is_a_line():
    line = linearity(table_of(0.8 - 0.5 / np.arange(1, 13)))
    assert line is not None
    assert line.r_squared == pytest.approx(1)
    assert line.jackknife == pytest.approx(0.8)
    assert line.left == pytest.approx(0, abs=1e-12)


def test_what_a_parabola_leaves_is_found():
    n = np.arange(1, 13)
    line = linearity(table_of(0.8 - 0.5 / n + 0.3 / n**2))
    assert line is not None
    assert (line.annotators, line.half) == (12, 6)
    assert line.r_squared < 1
    assert line.jackknife + line.left == pytest.approx(0.8, abs=1e-12)


def test_three_annotators_show_no_curve():
    assert linearity(compare_annotators(study_of(annotators=3))) is None


def test_the_table_warns_once():
    first = {"selected": np.array([0, 4, 4]), "shown": 4, "correct": np.ones((3, 1), bool)}
    other = {"selected": np.array([2, 4, 4]), "shown": 4, "correct": np.ones((3, 1), bool)}
    study = Study.from_arrays(reference=first, replication=other, classifiers=["c"])
    with pytest.warns(InterpolationWarning) as caught:
        compare_annotators(study)
    assert len(caught) == 1


def test_one_annotator_leaves_the_jackknife_out_of_the_default():
    """It cannot be had; asked for by name it is refused."""
    study = study_of(images=200, annotators=1, classifiers=2)
    with pytest.warns(EstimateWarning) as said:
        table = estimate(study)
    assert any(str(warning.message).startswith("jackknife: ") for warning in said)
    assert set(table["method"]) == {"raw", "naive", "em-spline"}
    with refused(OptionError, "jackknife-of-one-annotator"):
        estimate(study, methods="jackknife")


# --- sparse images ----------------------------------------------------------------------------


def ragged_study(few: dict[int, int], images: int = 200, usual: int = 12) -> Study:
    """As many annotators for all reference images, but some (their row: how many)."""
    study = study_of(images=images, annotators=usual)
    data = []
    for role, each in study.datasets.items():
        shown, selected = each.shown.copy(), each.selected.copy()
        if role == "reference":
            for row, number in few.items():
                shown[row], selected[row] = number, min(selected[row], number)
        data.append({"selected": selected, "shown": shown, "correct": each.correct})
    return Study.from_arrays(reference=data[0], replication=data[1], classifiers=["a", "b", "c"])


def matched(study: Study, annotators: int, keep: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Equation 4 on n' annotators by SciPy, of the reference's images that are kept."""
    counts = np.arange(annotators + 1)
    first, other = (
        stats.hypergeom.pmf(
            counts, each.shown[:, None], each.selected[:, None], np.full((1, 1), annotators)
        )
        for each in study.datasets.values()
    )
    mass = first[keep].mean(axis=0)
    accuracy = other.T @ study.replication.correct / other.sum(axis=0)[:, None]
    return mass @ accuracy


@pytest.mark.filterwarnings("ignore::bayesrep.estimators.InterpolationWarning")
@pytest.mark.parametrize("few", [{7: 2}, {3: 1, 90: 5}])
def test_few_sparse_images_are_left_out_of_both(few: dict[int, int]):
    """At most 1 % of 200 images: the others keep their 12 annotators, in both estimates."""
    study = ragged_study(few)
    keep = np.ones(200, dtype=bool)
    keep[list(few)] = False
    full, part = (matched(study, n, keep) for n in (12, 11))
    naive, jackknife = analyse(study, "naive, jackknife")
    count = len(study.classifiers)
    np.testing.assert_allclose(naive.values[:count], full, rtol=1e-10)
    np.testing.assert_allclose(jackknife.values[:count], full - 11 * (part - full), rtol=1e-8)
    assert naive.match is not None
    assert naive.match.annotators == 12
    assert naive.match.left_out == {"reference": len(few), "replication": 0}
    fewest = min(few.values())
    with_all = study.reference.correct.mean(axis=0) - matched(
        study, fewest, np.ones(200, dtype=bool)
    )
    assert naive.gap_of_all == pytest.approx(with_all.mean(), rel=1e-10)
    (sentence,) = matching_sentences([naive])
    assert f"{len(few)} of 400" in sentence
    assert f"naive {100 * with_all.mean():.2f} points" in sentence
    row = matching_facts([jackknife])[0]
    assert (row["annotators"], row["fewest_annotators"]) == (12, fewest)
    assert (row["gap_of_all_images"] is None) == (fewest == 1)
    with pytest.warns(EstimateWarning, match="left out"):
        estimate(study, "naive")


@pytest.mark.filterwarnings("ignore::bayesrep.estimators.InterpolationWarning")
def test_more_than_a_hundredth_are_few_annotators_for_all():
    """Three of 200 images have 4: all are thinned to 4, and none is left out."""
    study = ragged_study({0: 4, 1: 4, 2: 4})
    (naive,) = analyse(study, "naive")
    assert naive.match is not None
    assert (naive.match.annotators, naive.match.dropped_images, naive.gap_of_all) == (4, 0, None)
    expected = matched(study, 4, np.ones(200, dtype=bool))
    np.testing.assert_allclose(naive.values[:3], expected, rtol=1e-10)
    with refused(ValueError, "thinned-annotators-out-of-range", {"annotators": 5, "fewest": 4}):
        estimate(study, "naive(annotators=5)")


@pytest.mark.filterwarnings("ignore::bayesrep.estimators.InterpolationWarning")
def test_images_that_hold_the_number_of_annotators_down_are_said():
    """Of three with two annotators among 200 of 12; of the one more sparse, which is left out."""
    (naive,) = analyse(ragged_study({0: 2, 1: 2, 2: 2, 3: 1}), "naive")
    assert naive.match is not None
    assert (naive.match.annotators, naive.match.without) == (2, 12)
    assert naive.match.limiting_images == {"reference": 4, "replication": 0}
    (sentence,) = matching_sentences([naive])
    assert sentence.startswith(
        "naive: images are thinned to n' = 2 annotators each, since 4 of 400 images have no more "
        "(reference 4), where most do; without them n' would be 12; 1 of 400 has fewer and is left "
        "out."
    )
    (row,) = matching_facts([naive])
    assert row["images_with_no_more"] == {"reference": 4, "replication": 0}
    assert row["annotators_without_these"] == 12
    for given, few in (("naive(annotators=1)", {0: 2, 1: 2, 2: 2}), ("naive", {})):
        (other,) = analyse(ragged_study(few), given)  # as asked for, or as all have
        assert other.match is not None
        assert (sum(other.match.limiting_images.values()), other.match.without) == (
            0,
            other.match.annotators,
        )
        said = matching_sentences([other])  # of nothing that was thinned there is nothing to say
        assert (len(said), "since" in "".join(said)) == (given != "naive", False)


@pytest.mark.filterwarnings("ignore::bayesrep.estimators.InterpolationWarning")
def test_few_images_with_few_annotators_are_why_nothing_can_be_said_of_more(tmp_path, capsys):
    ragged_study({0: 2, 1: 2, 2: 2}).write(tmp_path / "study")
    assert main(["estimate", "--table", "annotators", str(tmp_path / "study")]) == 0
    text = capsys.readouterr().out
    assert "nothing can be said of more" not in text
    assert "Matched with n' = 2 the naive estimates show no curve" in text
    assert "leave out those that hold n' down, and it is 12." in text


@pytest.mark.filterwarnings("ignore::bayesrep.estimators.InterpolationWarning")
def test_all_numbers_of_annotators_are_of_the_same_images():
    study = ragged_study({7: 2})
    keep = np.arange(200) != 7
    table = compare_annotators(study)
    assert table["annotators"].max() == 12
    for n in (1, 2, 12):
        rows = table.filter(pl.col("annotators") == n)["naive"].to_numpy()
        np.testing.assert_allclose(rows, matched(study, n, keep), rtol=1e-10)


@pytest.mark.filterwarnings("ignore::bayesrep.estimators.InterpolationWarning")
@pytest.mark.parametrize("command", ["estimate", "estimate --table annotators"])
def test_commands_say_which_images_they_take(tmp_path, capsys, command: str):
    """And every warning once, whichever method gives it."""
    study = ragged_study({7: 2})
    study.write(tmp_path / "study")
    arguments = [*command.split(), str(tmp_path / "study")]
    if command == "estimate":
        arguments += ["--methods", "naive,jackknife"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(arguments) == 0
        text, error = capsys.readouterr()
        assert main([*arguments, "--json"]) == 0
    lines = error.splitlines()
    assert len(set(lines)) == len(lines)
    assert not any("left out" in line for line in lines)
    analyses = analyse(study, "naive, jackknife")
    (sentence, *_) = matching_sentences(analyses)
    assert text.count(sentence) == 1
    told = json.loads(capsys.readouterr().out)["matching"]
    assert [row["method"] for row in told] == ["naive", "jackknife"]
    assert [row["gap_of_all_images"] for row in told] == [one.gap_of_all for one in analyses]


def test_forgetting_one_after_the_other_is_forgetting_several():
    replicates = whole(study_of(annotators=30))
    counts = at_every_count(thinned_counts(replicates, 30))
    for n in range(29, 0, -1):
        counts = forget_one_annotator(counts)
        at_once = at_every_count(thinned_counts(replicates, n))
        assert counts.annotators == n
        for one, other in zip(counts[1:], at_once[1:], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


# --- its noise --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")
def test_many_annotators_cost_no_more_than_few():
    """A thinning to all but one of 100,000 holds two numbers a cell, and the noise is said."""
    study = study_of(images=50, annotators=100_000)
    replicates = whole(study)
    (one,) = analyse(study, "jackknife")
    assert len(thinned_counts(replicates, 99_999).selected) <= 4 * 50
    k, n = study.reference.selected, 100_000
    counts = thinned_counts(replicates, n - 1)
    mass = np.zeros(n)
    np.add.at(mass, np.maximum(k - 1, 0), k / n)
    np.add.at(mass, np.minimum(k, n - 1), 1 - k / n)
    np.testing.assert_allclose(counts.reference[0], mass[counts.selected], rtol=1e-6)
    assert one.is_noisy
    (sentence,) = matching_sentences([one])
    assert "says nothing here; jackknife(delete=50000) is less noisy" in sentence


def test_the_jackknifes_gap_comes_with_its_scatter_over_images():
    """Of a bootstrap of 50, without one being asked for; of the same seed it is the same."""
    study = study_of(images=400)
    (one,) = analyse(study, "jackknife", seed=3)
    (asked,) = analyse(study, "jackknife", bootstrap=50, seed=3)
    assert one.gap_error == pytest.approx(asked.gap_error)
    gaps = estimate_gaps(study, "jackknife", seed=3).row(0, named=True)
    assert gaps["upper"] - gaps["estimate"] == pytest.approx(stats.norm.ppf(0.975) * one.gap_error)
    (naive,) = analyse(study, "naive")
    assert np.isnan(naive.gap_error)
    (without,) = analyse(SufficientStatistics.of(study), "jackknife")
    assert np.isnan(without.gap_error)
    sides = [each.correct.mean(axis=1) for each in study.datasets.values()]
    assert one.drop == pytest.approx(sides[0].mean() - sides[1].mean())
    error = np.sqrt(sum(side.var() / len(side) for side in sides))
    assert one.drop_error == pytest.approx(error, rel=0.3)  # 50 replicates: to 10 %
    assert not one.is_noisy


def test_a_study_where_nothing_is_right_says_so():
    """And no number of it comes out of a division by nothing, which pytest would refuse."""
    study = study_of()
    right, *wrong = (
        {"selected": each.selected, "shown": 6, "correct": each.correct & keep}
        for each, keep in (
            (study.reference, True),
            (study.reference, False),
            (study.replication, False),
        )
    )
    for reference, where in ((wrong[0], "reference and the replication"), (right, "replication")):
        made = Study.from_arrays(
            reference=reference, replication=wrong[1], classifiers=["a", "b", "c"]
        )
        with pytest.warns(EstimateWarning, match=f"ever right on the {where}: check the labels"):
            table = estimate(made, "raw, naive, jackknife")
        assert not table["adjusted_accuracy"].to_numpy().any()
