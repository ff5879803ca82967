"""Estimators: generic laws for all in the registry, the formulas by brute force, the bootstrap."""

import itertools
import subprocess
import sys
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
import pytest
import zoo
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused
from scipy import stats

from bayesrep import Study, SufficientStatistics, estimate, estimate_gaps
from bayesrep.errors import EstimateWarning, OptionError
from bayesrep.estimators import (
    ESTIMATORS,
    METHODS,
    EMSpline,
    Estimates,
    Estimator,
    InterpolationWarning,
    Jackknife,
    Naive,
)
from bayesrep.estimators.analysis import analyse
from bayesrep.estimators.methods import label, parse
from bayesrep.estimators.replicates import Replicates
from bayesrep.estimators.tables import MAX_UNWARNED_SHORTFALL, matching_sentences
from bayesrep.numerics.estimands import accuracy_line
from bayesrep.numerics.thinning import thinning_matrix

COLUMNS = [
    "method",
    "classifier",
    "reference_accuracy",
    "replication_accuracy",
    "adjusted_accuracy",
    "lower",
    "upper",
    "bias_corrected_gap",
    "selection_gap",
]

# One component, which even two annotators identify.
VARIANTS = {
    "em-spline, weighted, everywhere": EMSpline(1, 3, loss="weighted", bounds="everywhere"),
    "em-spline, binomial": EMSpline(1, 3, loss="binomial", bounds="everywhere"),
    "em-spline, published sum": EMSpline(1, 3, quadrature="published"),
}


def configured() -> dict[str, Estimator]:
    """Every registered estimator with its defaults, and variants with laws of their own to hold."""
    return {name: kind() for name, kind in ESTIMATORS.items()} | VARIANTS


CLOSED_FORMS = ("raw", "naive", "jackknife")  # they meet some laws exactly
every_estimator = pytest.mark.parametrize("name", configured())
few_counts = pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")


def evaluate(name: str, statistics: SufficientStatistics) -> NDArray[np.float64]:
    return configured()[name](Replicates.from_study(statistics)).value[0]


def naive(statistics: SufficientStatistics, annotators: int | None = None) -> NDArray[np.float64]:
    return Naive(annotators)(Replicates.from_study(statistics)).value[0]


def arrays(
    seed: int, easiness: float, *, images: int = 400, classifiers: int = 3, shown: Any = 5
) -> dict[str, Any]:
    """Images whose selection frequencies follow Beta(easiness, 1), harder ones less often right."""
    rng = np.random.default_rng(seed)
    frequency = rng.beta(easiness, 1, size=images)
    skill = np.linspace(0.6, 0.95, classifiers)
    return {
        "selected": rng.binomial(shown, frequency),
        "shown": np.broadcast_to(shown, images),
        "correct": rng.random((images, classifiers)) < skill * frequency[:, None] ** 2,
    }


def ragged(seed: int, easiness: float, images: int = 400) -> dict[str, Any]:
    shown = np.random.default_rng(seed).integers(4, 9, size=images)
    return arrays(seed, easiness, images=images, shown=shown)


def make_study(reference: dict[str, Any], replication: dict[str, Any]) -> Study:
    classifiers = [f"c{number}" for number in range(reference["correct"].shape[1])]
    return Study.from_arrays(reference=reference, replication=replication, classifiers=classifiers)


def reduced(reference: dict[str, Any], replication: dict[str, Any]) -> SufficientStatistics:
    return SufficientStatistics.from_study(make_study(reference, replication))


def rows(data: dict[str, Any], which: Any) -> dict[str, Any]:
    return {name: np.asarray(values)[which] for name, values in data.items()}


# --- laws of every estimator ------------------------------------------------------------------


@every_estimator
def test_the_order_of_images_does_not_matter(name: str):
    one, other = ragged(0, 5), ragged(1, 3)
    order = np.random.default_rng(2).permutation(400)
    np.testing.assert_array_equal(
        evaluate(name, reduced(one, other)),
        evaluate(name, reduced(rows(one, order), rows(other, order))),
    )


@every_estimator
def test_shards_add_up_to_the_whole(name: str):
    one, other = ragged(0, 5), ragged(1, 3)
    shards = [reduced(rows(one, part), rows(other, part)) for part in (np.s_[:150], np.s_[150:])]
    np.testing.assert_array_equal(
        evaluate(name, shards[0] + shards[1]), evaluate(name, reduced(one, other))
    )


@every_estimator
def test_permuting_classifiers_permutes_the_estimates(name: str):
    one, other = ragged(0, 5), ragged(1, 3)
    order = [2, 0, 1]
    permuted = [{**data, "correct": data["correct"][:, order]} for data in (one, other)]
    expected = evaluate(name, reduced(one, other))[order]
    np.testing.assert_allclose(evaluate(name, reduced(*permuted)), expected, rtol=1e-8)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_equal_distributions_need_no_adjustment(name: str):
    """Exactly; smooth curves through mixtures leave residuals."""
    replication = ragged(0, 3)
    reference = {**rows(replication, np.tile(np.arange(400), 3))}
    reference["correct"] = ~reference["correct"]  # what the reference gets right is no business
    adjusted = evaluate(name, reduced(reference, replication))
    np.testing.assert_allclose(adjusted, replication["correct"].mean(axis=0), atol=1e-9)


@every_estimator
def test_always_right_and_always_wrong(name: str):
    one, other = ragged(0, 5, images=4000), ragged(1, 3, images=4000)
    for data in (one, other):
        data["correct"][:, 0], data["correct"][:, 1] = True, False
    adjusted = evaluate(name, reduced(one, other))
    # Equation 8 fits the counts and the answers at once: what the mixture misses of the counts
    # moves its curve off 1. The likelihood given the counts does not.
    exact = name in CLOSED_FORMS or "binomial" in name
    np.testing.assert_allclose(adjusted[0], 1, atol=1e-5 if exact else 0.01)
    np.testing.assert_allclose(adjusted[1], 0, atol=1e-5)


@pytest.mark.parametrize("name", ESTIMATORS)
@few_counts
def test_a_thousand_classifiers(name: str):
    data = [arrays(seed, 4, images=50, classifiers=1000, shown=4) for seed in (0, 1)]
    assert evaluate(name, reduced(*data)).shape == (1000,)


@every_estimator
@few_counts
def test_all_images_in_one_cell(name: str):
    one = {"selected": 3, "shown": 4, "correct": np.array([[1, 1], [0, 1], [1, 0], [1, 1]])}
    expected, tolerance = 0.75, 1e-4
    if name in ("em-spline", "em-spline, published sum"):
        # The mixture shrinks to s = 3/4, under which one count alone is not to be expected: what
        # equation 8 minimises, (3/4 - g p_3)² + Σ (g p_k)² over the other k, it does at
        mass = stats.binom.pmf(np.arange(5), 4, 0.75)
        expected = 0.75 * mass[3] / (mass**2).sum()
        tolerance = 1e-4 if name == "em-spline" else 5e-3
    assert evaluate(name, reduced(one, one)) == pytest.approx([expected] * 2, abs=tolerance)


@every_estimator
@few_counts
def test_one_image(name: str):
    one = {"selected": np.array([3]), "shown": 4, "correct": np.array([[True, False]])}
    study = make_study(one, one)
    # Two replicates: of one image all are the same.
    adjusted = estimate(study, [configured()[name]], bootstrap=2)["adjusted_accuracy"].to_numpy()
    tolerance = 1e-3 if "published" in name else 1e-4
    np.testing.assert_allclose(adjusted, [1, 0], atol=tolerance)


# --- the registry -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Shrunk(Estimator):
    """The accuracy on the replication, drawn towards a half or a whole."""

    share: float = 0.5
    towards: Literal["half", "whole"] = "half"
    times: int | None = None
    name: ClassVar[str] = "shrunk"

    def __call__(
        self, replicates: Replicates, *, seed: int = 0, progress: bool = False
    ) -> Estimates:
        accuracy = replicates.replication.accuracy()
        goal = 0.5 if self.towards == "half" else 1.0
        value = accuracy + self.share ** (self.times or 1) * (goal - accuracy)
        return Estimates(value, np.full(value.shape[1], 0.01))


def test_a_line_in_the_registry_makes_a_method(monkeypatch: pytest.MonkeyPatch):
    """It gets the laws above, its options from their types, both tables and both intervals."""
    monkeypatch.setitem(ESTIMATORS, Shrunk.name, Shrunk)
    assert "shrunk" in configured()
    method = "shrunk(share=0.25, towards=whole, times=2)"
    assert parse(method) == Shrunk(0.25, "whole", 2)
    assert label(parse(method)) == method
    study = make_study(arrays(0, 5), arrays(1, 3))
    table = estimate(study, [method, "raw"])
    raw, own = (table.filter(method=name) for name in ("raw", method))
    moved = own["adjusted_accuracy"] - raw["adjusted_accuracy"]
    np.testing.assert_allclose(moved, 0.25**2 * (1 - raw["adjusted_accuracy"]), rtol=1e-12)
    np.testing.assert_allclose(own["upper"] - own["lower"], 2 * 1.95996398 * 0.01, rtol=1e-8)
    for interval in ("percentile", "bca"):
        assert (
            estimate_gaps(study, method, bootstrap=5, interval=interval)["upper"][:4]
            .is_finite()
            .all()
        )
    for wrong, rule, facts in (
        ("shrunk(share=much)", "method-option-not-number", {"option": "share", "value": "much"}),
        ("shrunk(times=0.5)", "method-option-not-whole", {"option": "times", "value": "0.5"}),
        ("shrunken", "unknown-method", {"choices": ", ".join(ESTIMATORS)}),
    ):
        with refused(OptionError, rule, facts):
            parse(wrong)


def test_the_methods_by_default_are_all_that_are_registered():
    assert tuple(ESTIMATORS) == METHODS
    for name, kind in ESTIMATORS.items():
        assert isinstance(kind(), Estimator)
        assert label(kind()) == name


# --- the naive estimator ----------------------------------------------------------------------


def equation_4(reference: dict[str, Any], replication: dict[str, Any]) -> NDArray[np.float64]:
    """Equation 4 as the paper writes it, over images that share n."""
    total = np.zeros(replication["correct"].shape[1])
    for k in range(int(replication["shown"][0]) + 1):
        share = (reference["selected"] == k).mean()
        if share:
            total += share * replication["correct"][replication["selected"] == k].mean(axis=0)
    return total


def test_naive_is_equation_4_where_all_images_share_n():
    one, other = arrays(0, 5, images=2000), arrays(1, 2, images=2000)
    np.testing.assert_allclose(naive(reduced(one, other)), equation_4(one, other), rtol=1e-13)


def test_all_annotators_are_the_default_where_all_images_share_n():
    statistics = reduced(arrays(0, 5), arrays(1, 2))
    np.testing.assert_array_equal(naive(statistics, annotators=5), naive(statistics))


def test_thinned_counts_are_the_average_over_who_was_asked():
    """Deal every subset of n' annotators to every image and apply equation 4 to all of them."""
    rng = np.random.default_rng(0)
    kept, sets = 2, []
    for easiness in (0.8, 0.5):
        answers = [rng.random(n) < easiness for n in rng.integers(2, 5, size=40)]
        correct = rng.random((40, 2)) < 0.6
        sets.append((answers, correct))
    observed = [
        {
            "selected": np.array([a.sum() for a in answers]),
            "shown": np.array([len(a) for a in answers]),
            "correct": correct,
        }
        for answers, correct in sets
    ]
    mass, images, hits = np.zeros(kept + 1), np.zeros(kept + 1), np.zeros((kept + 1, 2))
    for answers, _ in sets[:1]:
        for answer in answers:
            subsets = [sum(s) for s in itertools.combinations(answer.astype(int), kept)]
            mass += np.bincount(subsets, minlength=kept + 1) / len(subsets) / len(answers)
    for answer, right in zip(*sets[1], strict=True):
        subsets = [sum(s) for s in itertools.combinations(answer.astype(int), kept)]
        share = np.bincount(subsets, minlength=kept + 1) / len(subsets)
        images += share
        hits += share[:, None] * right
    expected = mass @ (hits / images[:, None])
    np.testing.assert_allclose(naive(reduced(*observed)), expected, rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_equal_distributions_give_the_replication_accuracy_for_any_annotators(seed: int, kept: int):
    replication = ragged(seed, 3, images=60)
    adjusted = naive(reduced(replication, replication), annotators=kept)
    np.testing.assert_allclose(adjusted, replication["correct"].mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("annotators", [0, -1, 5])
def test_annotators_out_of_range(annotators: int):
    statistics = reduced(ragged(0, 5), arrays(1, 3))
    facts = {"annotators": annotators, "fewest": 4}
    with refused(ValueError, "thinned-annotators-out-of-range", facts):
        naive(statistics, annotators=annotators)


def test_annotators_are_a_whole_number():
    unchecked: Any = 2.5
    with pytest.raises(TypeError):
        naive(reduced(ragged(0, 5), arrays(1, 3)), annotators=unchecked)


def at_counts(counts: list[int], accuracy: dict[int, float]) -> dict[str, Any]:
    """Ten images at each count of 6, of which the given share is classified correctly."""
    correct = [np.arange(10) < 10 * accuracy.get(k, 0) for k in counts]
    return {
        "selected": np.repeat(counts, 10),
        "shown": np.full(10 * len(counts), 6),
        "correct": np.concatenate(correct)[:, None],
    }


def test_counts_without_replication_images_are_interpolated_and_reported():
    reference = at_counts([0, 1, 2, 3, 5], {})
    replication = at_counts([1, 4], {1: 0.2, 4: 0.8})
    with pytest.warns(InterpolationWarning, match=r"80\.00 %.* 0, 2, 3, 5 of 6"):
        adjusted = naive(reduced(reference, replication))
    # Beyond the ends the nearest value, between them the straight line.
    expected = np.mean([0.2, 0.2, 0.4, 0.6, 0.8])
    np.testing.assert_allclose(adjusted, [expected], rtol=1e-14)


def test_no_warning_where_nothing_is_interpolated():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        naive(reduced(at_counts([1, 4], {}), at_counts([0, 1, 4], {})))


def test_one_replication_cell_takes_all_the_mass():
    with pytest.warns(InterpolationWarning):
        adjusted = naive(reduced(at_counts([1, 4], {}), at_counts([2], {2: 0.3})))
    np.testing.assert_allclose(adjusted, [0.3], rtol=1e-14)


# --- thinning ---------------------------------------------------------------------------------


@given(st.integers(1, 200), st.data())
def test_thinning_is_exact(shown: int, data: st.DataObject):
    selected = data.draw(st.integers(0, shown))
    kept = data.draw(st.integers(1, shown))
    (row,) = thinning_matrix(np.array([selected]), np.array([shown]), kept).toarray()
    exact = [
        Fraction(comb(selected, k) * comb(shown - selected, kept - k), comb(shown, kept))
        for k in range(kept + 1)
    ]
    np.testing.assert_allclose(row, [float(value) for value in exact], rtol=1e-10, atol=0)
    expected = stats.hypergeom.pmf(np.arange(kept + 1), shown, selected, kept)
    np.testing.assert_allclose(row, expected, rtol=1e-10, atol=1e-300)


def test_keeping_all_annotators_changes_nothing():
    selected = np.arange(41)
    matrix = thinning_matrix(selected, np.full(41, 40), 40)
    np.testing.assert_array_equal(matrix.toarray(), np.eye(41))


def test_thinning_twice_is_thinning_once():
    selected, shown = np.array([0, 3, 9, 12]), np.array([12, 12, 10, 12])
    twice = thinning_matrix(selected, shown, 7) @ thinning_matrix(np.arange(8), np.full(8, 7), 3)
    once = thinning_matrix(selected, shown, 3)
    np.testing.assert_allclose(twice.toarray(), once.toarray(), rtol=1e-12, atol=1e-15)


# --- the table --------------------------------------------------------------------------------

LIGHT = ("raw", "naive", "jackknife")


def test_the_table():
    study = make_study(arrays(0, 5), arrays(1, 3))
    table = estimate(study, ("raw", "naive"))
    assert table.columns == COLUMNS
    assert table["method"].to_list() == ["raw"] * 3 + ["naive"] * 3
    assert table["classifier"].to_list() == ["c0", "c1", "c2"] * 2
    assert table["lower"].null_count() == table["upper"].null_count() == 6
    assert table.schema["lower"] == pl.Float64
    gaps = table["bias_corrected_gap"] + table["selection_gap"]
    raw_gap = table["reference_accuracy"] - table["replication_accuracy"]
    np.testing.assert_allclose(gaps, raw_gap, atol=1e-15)
    assert table["selection_gap"][:3].to_list() == [0, 0, 0]
    np.testing.assert_allclose(
        table["reference_accuracy"][:3], study.reference.correct.mean(axis=0), rtol=1e-14
    )
    assert table.equals(estimate(SufficientStatistics.from_study(study), ("raw", "naive")))


def test_all_methods_are_the_default():
    study = make_study(ragged(0, 5), ragged(1, 3))  # a shape that has been compiled
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterpolationWarning)
        table = estimate(study)
    assert table["method"].unique(maintain_order=True).to_list() == list(METHODS)
    has_interval = table.filter(pl.col("lower").is_not_null())["method"].unique().to_list()
    assert has_interval == ["jackknife"]  # its standard error over annotators


def test_methods_are_taken_in_the_order_given():
    study = make_study(arrays(0, 5), arrays(1, 3))
    assert estimate(study, ("naive", "raw"))["method"].to_list() == ["naive"] * 3 + ["raw"] * 3
    assert estimate(study, "naive")["method"].unique().to_list() == ["naive"]
    several = estimate(study, "jackknife(annotators=4, delete=2),raw")
    assert several["method"].to_list() == ["jackknife(annotators=4, delete=2)"] * 3 + ["raw"] * 3


@pytest.mark.parametrize("estimator", [*configured().values(), Jackknife(9, 2)])
def test_the_label_of_a_method_is_its_name(estimator: Any):
    assert parse(label(estimator)) == estimator


@pytest.mark.usefixtures("unannotated")
def test_estimate_refuses():
    study = make_study(arrays(0, 5), arrays(1, 3))
    known = {"choices": "raw, naive, jackknife, em-spline"}
    no_option, naive_has = "unknown-method-option", {"known_options": "annotators"}
    losses = "least-squares, weighted, binomial"
    square = {"option": "loss", "value": "square", "choices": losses}
    for methods, rule, facts in (
        (("raw", "jackknive"), "unknown-method", {"method": "jackknive", **known}),
        (("raw(x=1)",), "method-without-options", {"method_name": "raw", "option": "x"}),
        (("naive(annotator=1)",), no_option, {"option": "annotator", **naive_has}),
        (("naive(subsets=2)",), no_option, {"option": "subsets", "method_name": "naive"}),
        (("em-spline(loss=square)",), "unknown-method-option-value", square),
        (("naive(annotators=3",), "unknown-method", {"method": "naive(annotators=3", **known}),
        ((), "no-method-given", known),
    ):
        with refused(ValueError, rule, facts):
            estimate(study, methods)
    with refused(ValueError, "bootstrap-too-small", {"bootstrap": -1}):
        estimate(study, "raw", bootstrap=-1)
    wald = {"interval": "wald", "choices": "percentile, bca"}
    with refused(ValueError, "unknown-bootstrap-interval", wald):
        estimate(study, "raw", bootstrap=5, interval="wald")  # type: ignore[arg-type]
    with refused(ValueError, "bootstrap-needs-study"):
        estimate(SufficientStatistics.from_study(study), "raw", bootstrap=10)


@pytest.mark.filterwarnings("ignore::bayesrep.errors.IdentificationWarning")
def test_noise_of_the_counts_that_moves_estimates_is_said():
    """Equation 8 compares joint shares: where mixtures miss these, a perfect classifier errs."""
    study = zoo.study("tiny")
    sets = {
        role: replace(data, correct=np.ones_like(data.correct))
        for role, data in study.datasets.items()
    }
    perfect = replace(study, datasets=sets, truth=None)
    (one,) = analyse(study, "em-spline")
    (other,) = analyse(perfect, "em-spline")
    assert one.always_right == pytest.approx(other.values[0], abs=1e-9)
    assert one.always_right < 1 - MAX_UNWARNED_SHORTFALL
    told = f"{100 * one.always_right:.1f} %"
    assert any(told in sentence for sentence in matching_sentences([one]))
    with pytest.warns(EstimateWarning, match=told):
        estimate(study, "em-spline")
    (binomial,) = analyse(study, "em-spline(loss=binomial)")
    assert binomial.always_right == pytest.approx(1, abs=1e-9)
    assert not matching_sentences([binomial])


def test_few_replicates_are_said():
    study = zoo.study("tiny")
    told = {b: matching_sentences(analyse(study, "raw", bootstrap=b)) for b in (2, 39, 40)}
    assert [len(each) for each in told.values()] == [1, 1, 0]


def test_one_annotator_leaves_nothing_to_leave_out():
    study = make_study(arrays(0, 5, shown=1), arrays(1, 3, shown=1))
    assert len(estimate(study, ("raw", "naive"))) == 6
    with refused(ValueError, "jackknife-of-one-annotator"):
        estimate(study, LIGHT)


# --- all classifiers together -----------------------------------------------------------------


def test_gaps_and_the_line():
    study = make_study(arrays(0, 5), arrays(1, 3))
    gaps = estimate_gaps(study, LIGHT)
    table = estimate(study, LIGHT)
    for method in LIGHT:
        rows_ = table.filter(pl.col("method") == method)
        found = dict(gaps.filter(pl.col("method") == method).select("quantity", "estimate").rows())
        assert found["bias_corrected_gap"] == pytest.approx(rows_["bias_corrected_gap"].mean())
        assert found["selection_gap"] == pytest.approx(rows_["selection_gap"].mean())
        raw = (rows_["reference_accuracy"] - rows_["replication_accuracy"]).mean()
        assert found["share_explained"] == pytest.approx(found["selection_gap"] / raw)
        line = accuracy_line(rows_["reference_accuracy"], rows_["adjusted_accuracy"])
        expected = stats.linregress(rows_["reference_accuracy"], rows_["adjusted_accuracy"])
        assert (found["slope"], found["intercept"]) == pytest.approx(line)
        assert line == pytest.approx((expected.slope, expected.intercept))
    without = gaps.filter(pl.col("lower").is_null())["method"].unique()
    assert set(without) == {"raw", "naive"}  # the jackknife always has its scatter over images


def test_one_classifier_has_no_line():
    study = make_study(arrays(0, 5, classifiers=1), arrays(1, 3, classifiers=1))
    gaps = estimate_gaps(study, "naive", bootstrap=20, interval="bca")
    nothing = gaps.filter(pl.col("quantity").is_in(["slope", "intercept"]))
    assert nothing["estimate"].null_count() == nothing["lower"].null_count() == 2
    assert gaps.filter(quantity="bias_corrected_gap")["lower"].null_count() == 0


def test_estimates_need_no_jax():
    code = "import bayesrep.estimators, sys; assert not {'jax', 'numpyro'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
