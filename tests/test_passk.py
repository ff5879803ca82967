"""pass@k: closed forms, the unbiased estimator, recovery, coverage, differences, bad input."""

import io
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import check, refusal, refused
from scipy import stats

from bayesrep import OptionError, StudyError, pass_at_k
from bayesrep.cli import main
from bayesrep.estimators.unbiased import item_passes, item_variances
from bayesrep.numerics.rising import SUMMED_STEPS, log_rising
from bayesrep.numerics.solve_rates import (
    N_COMPONENTS,
    N_PARAMETERS,
    SolveRates,
    log_counts,
    pass_rate,
    passed_items,
    rates_from_normal,
)
from bayesrep.report.pass_at_k_text import draw_pass_at_k
from bayesrep.studies.attempts import Attempts, read_attempts

DRAWS = 1_000  # the fewest


def attempts_of(solved: object, attempts: object, model: str = "m", start: int = 0) -> Attempts:
    counts = np.asarray(solved)
    images = np.arange(start, start + len(counts)).astype(str)
    return Attempts("bench", model, images, counts, np.broadcast_to(attempts, counts.shape))


def one_mixture(a: float, b: float, at_zero: float = 0.0, at_one: float = 0.0) -> SolveRates:
    weights = np.zeros((1, N_COMPONENTS))
    weights[0, 0] = 1 - at_zero - at_one
    ones = np.ones((1, N_COMPONENTS))
    return SolveRates(a * ones, b * ones, weights, np.array([at_zero]), np.array([at_one]))


@pytest.mark.parametrize("x", [1e-8, 0.03, 1.0, 64.5, 1e5])
def test_rising_factorials_are_exact_at_any_length(x: float):
    counts = np.array([0, 1, 2, SUMMED_STEPS, SUMMED_STEPS + 1, 1_000, 10**6])
    with mpmath.workdps(50):
        exact = [float(mpmath.loggamma(x + int(r)) - mpmath.loggamma(x)) for r in counts]
    np.testing.assert_allclose(log_rising(np.array(x), counts), exact, rtol=2e-14, atol=1e-13)


@pytest.mark.parametrize("k", [1, 7, 100, 100_000])
def test_pass_at_k_of_one_beta_with_masses(k: int):
    a, b = 0.3, 2.5
    with mpmath.workdps(40):
        failed = mpmath.beta(a, b + k) / mpmath.beta(a, b)
        exact = float(1 - mpmath.mpf("0.2") - mpmath.mpf("0.7") * failed)
    value = pass_rate(one_mixture(a, b, 0.2, 0.1), np.array([k]))[0, 0]
    assert value == pytest.approx(exact, abs=1e-14)


def test_counts_have_the_probabilities_of_a_beta_binomial_and_its_masses():
    n, c = 9, np.arange(10)
    logs = log_counts(one_mixture(0.7, 1.9, 0.25, 0.15), c, np.full(10, n))[0]
    mass = np.exp(logs) * stats.binom(n, 0.5).pmf(c) * 2.0**n
    expected = 0.6 * stats.betabinom(n, 0.7, 1.9).pmf(c)
    expected[0] += 0.25
    expected[-1] += 0.15
    np.testing.assert_allclose(mass, expected, rtol=1e-12)


def test_items_that_are_never_or_always_solved_are_absent_or_a_beta_share():
    """Absent with probability 0.6, else a Beta(1, 2) share, by SciPy at levels of z."""
    level = (np.arange(50) + 0.5) / 50
    z = np.zeros((50, N_PARAMETERS))
    z[:, :2] = stats.norm.ppf(level)[:, None]
    rates = rates_from_normal(z)
    wanted = stats.beta(1, 2).ppf(np.maximum(level - 0.6, 0) / 0.4)
    np.testing.assert_allclose(rates.at_zero, wanted, atol=1e-12)
    np.testing.assert_allclose(rates.at_one, (1 - wanted) * wanted, atol=1e-12)


@given(st.lists(st.floats(-6, 6), min_size=N_PARAMETERS, max_size=N_PARAMETERS))
def test_pass_at_k_rises_to_what_is_solvable(z: list[float]):
    rates = rates_from_normal(np.array([z]))
    total = rates.weights.sum() + rates.at_zero + rates.at_one
    assert total[0] == pytest.approx(1.0)
    curve = pass_rate(rates, np.array([1, 2, 5, 50, 10**6]))[0]
    assert (np.diff(curve) >= -1e-12).all()
    assert -1e-12 <= curve[0]
    assert curve[-1] <= 1 - rates.at_zero[0] + 1e-12


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_the_unbiased_estimate_is_the_share_of_choices_with_one_solved(counts: tuple[int, int]):
    n, c = counts
    outcomes = [True] * c + [False] * (n - c)
    for k in range(1, n + 1):
        share = np.mean([any(choice) for choice in combinations(outcomes, k)])
        assert item_passes(np.array([c]), np.array([n]), k)[0] == pytest.approx(share, abs=1e-12)


def test_the_variance_over_attempts_is_unbiased():
    n, k, s = 8, 3, 0.35
    c = np.arange(n + 1)
    mass = stats.binom(n, s).pmf(c)
    passes = item_passes(c, np.full(n + 1, n), k)
    mean = mass @ passes
    assert mean == pytest.approx(1 - (1 - s) ** k)
    estimate = mass @ item_variances(c, np.full(n + 1, n), k)
    assert estimate == pytest.approx(mass @ (passes - mean) ** 2)


@pytest.fixture(scope="module")
def pair() -> list[Attempts]:
    """Two models on the same items, a tenth of which nobody solves."""
    rng = np.random.default_rng(4)
    difficulty = rng.standard_normal(300)
    solvable = rng.random(300) > 0.1
    rates = [1 / (1 + np.exp(1.2 + shift - 1.5 * difficulty)) * solvable for shift in (0, 0.5)]
    return [attempts_of(rng.binomial(10, s), 10, name) for s, name in zip(rates, "ab", strict=True)]


def test_items_that_are_all_or_nothing_have_no_rates_to_draw():
    """Given masses at 0 and 1 alone, an item is solved always or never, as its counts say."""
    rates = one_mixture(1, 1, at_zero=0.3, at_one=0.7)
    c, n, items, k = np.array([0, 5]), np.array([5, 5]), np.array([2, 1]), np.array([1, 6])
    draws = passed_items(rates, c, n, items, k, np.random.default_rng(0))
    np.testing.assert_allclose(draws, 1 / 3, atol=1e-12)


def test_unbiased_differences_are_those_of_pairs_of_items(pair: list[Attempts]):
    (row,) = pass_at_k(pair, (2,), draws=DRAWS).differences().to_dicts()
    a, b = (item_passes(data.solved, data.attempts, 2) for data in pair)
    standard = (a - b).std(ddof=1) / np.sqrt(300)
    assert row["unbiased_upper"] - row["unbiased"] == pytest.approx(
        stats.t(299).ppf(0.975) * standard
    )


def test_unbiased_estimates_end_where_attempts_do(pair: list[Attempts]):
    table = pass_at_k(pair[0], (10, 100), draws=DRAWS).table
    assert table["unbiased"].is_null().to_list() == [False, True]


def test_a_model_less_itself_is_nothing(pair: list[Attempts]):
    twin = attempts_of(pair[0].solved, 10, "twin")
    found = pass_at_k([pair[0], twin], (2,), draws=DRAWS)
    (row,) = found.differences().to_dicts()
    assert abs(row["difference"]) < 1e-12
    own = found.table["upper"][0] - found.table["lower"][0]
    assert row["upper"] - row["lower"] < own / 2
    assert row["unbiased_upper"] == pytest.approx(0, abs=1e-6)


def test_nothing_depends_on_the_order_of_items_or_models(pair: list[Attempts]):
    order = np.random.default_rng(0).permutation(300)
    shuffled = Attempts(
        "bench", "a", pair[0].images[order], pair[0].solved[order], pair[0].attempts[order]
    )
    first = pass_at_k(pair, (3, 30), draws=DRAWS)
    again = pass_at_k([pair[1], shuffled], (3, 30), draws=DRAWS)
    columns = ["estimate", "lower", "upper", "unbiased"]
    one, other = (each.table.filter(model="a").select(columns) for each in (first, again))
    assert one.equals(other)
    forth, back = (each.differences() for each in (first, again))
    width = forth["upper"] - forth["lower"]
    np.testing.assert_allclose(back["upper"] - back["lower"], width, rtol=0.1)  # by other draws


def test_curves_need_no_new_sampling(pair: list[Attempts]):
    found = pass_at_k(pair[0], (2, 9), draws=DRAWS)
    assert found.evaluate_at([9]).table.equals(found.table.filter(k=9))


def test_ragged_attempts_have_an_unbiased_estimate_up_to_the_fewest():
    rng = np.random.default_rng(0)
    n = rng.integers(3, 9, 60)
    table = pass_at_k(attempts_of(rng.binomial(n, 0.4), n), (3, 4), draws=DRAWS).table
    assert table["unbiased"].is_null().to_list() == [False, True]


@pytest.mark.parametrize(
    ("k", "broken"),
    [
        ((), ("pass-k-below-one", {"k": "[]"})),
        ((0,), ("pass-k-below-one", {"k": "[0]"})),
        ((-3, 2), ("pass-k-below-one", {"k": "[-3, 2]"})),
        ((1.5,), ("pass-k-not-whole", {"k": "(1.5,)"})),
        ((10**9,), ("option-above-limit", {"option": "k", "value": 10**9, "largest": 10**6})),
    ],
)
def test_a_bad_k_is_refused(k: tuple[int, ...], broken: tuple[Any, ...]):
    with refused(OptionError, *broken):
        pass_at_k(attempts_of(np.arange(6), 6), k)


def test_single_attempts_say_nothing_beyond_the_first():
    single = attempts_of(np.array([0, 1] * 20), 1)
    with refused(OptionError, "single-attempt-per-item", {"classifier": "m", "largest_k": 10}):
        pass_at_k(single, (1, 10))
    table = pass_at_k(single, (1,), draws=DRAWS).table
    assert table["estimate"][0] == pytest.approx(0.5, abs=0.05)


def test_bad_data_and_options_are_refused(pair: list[Attempts]):
    with refused(StudyError, "model-given-twice"):
        pass_at_k([pair[0], pair[0]], (1,))
    with refused(StudyError, "no-model-attempts"):
        pass_at_k([], (1,))
    with refused(StudyError, "too-few-attempted-items"):
        pass_at_k(attempts_of([1, 2], 3), (1,))
    with refused(StudyError, "solved-exceeds-attempts", {"images": ["0"]}):
        attempts_of([4, 1, 1, 1, 1], 3)
    with refused(OptionError, "unknown-pass-target"):
        pass_at_k(pair[0], (1,), target="everything")  # type: ignore[arg-type]
    found = pass_at_k(pair[0], (1,), draws=DRAWS)
    with refused(OptionError, "difference-needs-two-models"):
        found.differences()
    with refused(OptionError, "model-without-attempts", {"models": ["z"], "known_models": ["a"]}):
        found.differences(["a", "z"])


@pytest.fixture
def table(tmp_path: Path, pair: list[Attempts]) -> Path:
    path = tmp_path / "attempts.csv"
    pl.concat(
        pl.DataFrame(
            {"item": d.images, "model": d.classifier, "solved": d.solved, "attempts": 10}
        ).head(100)
        for d in pair
    ).write_csv(path)
    return path


def test_the_command_answers_in_words(table: Path, capsys: pytest.CaptureFixture[str]):
    figure = table.with_name("curves.svg")
    words = ["papers", "passk", str(table), "--k", "1,50", "--quiet"]
    assert main([*words, "--figure", str(figure)]) == 0
    text = capsys.readouterr().out
    assert "a minus b" in text
    assert "k = 50" in text
    assert "50 attempts" in text  # which solves more is open
    assert "never solved" in text
    assert "pass@k" in figure.read_text(encoding="utf-8")
    assert main([*words, "--format", "csv"]) == 0
    assert pl.read_csv(io.StringIO(capsys.readouterr().out))["k"].to_list() == [1, 50, 1, 50]
    assert main([*words, "--json", "--target", "items"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["target"] == "items"
    assert len(facts["rows"]) == 4
    assert facts["differences"][0]["model"] == "a"


@pytest.mark.parametrize(
    ("words", "rule", "facts"),
    [
        ("--k 0", "pass-k-below-one", {"k": "[0]"}),
        ("--figure curves.txt", "figure-ending-unknown", {"path": "curves.txt"}),
    ],
)
def test_mistakes_of_the_command_are_one_line(
    words: str, rule: str, facts: dict[str, Any], table: Path
):
    check(refusal(["papers", "passk", table, "--quiet", *words.split()]), rule, facts)


def test_rows_of_single_attempts_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "long.csv"
    rng = np.random.default_rng(0)
    rows = {"item": np.repeat(np.arange(30), 4), "model": "m", "correct": rng.random(120) < 0.5}
    pl.DataFrame(rows).write_csv(path)
    assert main(["papers", "passk", str(path), "--k", "1,4", "--json", "--quiet"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["models"][0]["items"] == 30
    assert facts["models"][0]["most"] == 4


def test_names_of_models_are_drawn_as_they_are(pair: list[Attempts]):
    odd = attempts_of(pair[0].solved, 10, "_$x$\x1b")
    figure = draw_pass_at_k(pass_at_k(odd, (1, 20), draws=DRAWS))
    assert figure["layer"][0]["encoding"]["color"]["scale"]["domain"] == [r"_$x$\x1b"]


def test_blanks_and_other_forms_of_a_name_make_no_second_item(tmp_path: Path):
    rows = [
        (f"HumanEval/{n} " if attempt % 2 else f"HumanEval/{n}", model, (n + attempt) % 3 == 0)
        for n in range(5)
        for attempt in range(4)
        for model in ("caf\u00e9", " cafe\u0301")
    ]
    for kind in ("csv", "parquet"):
        path = tmp_path / f"attempts.{kind}"
        table = pl.DataFrame(rows, ["item", "model", "solved"], orient="row")
        (table.write_csv if kind == "csv" else table.write_parquet)(path)
        (found,) = read_attempts(path)
        assert found.classifier == "caf\u00e9"
        assert found.images.tolist() == [f"HumanEval/{n}" for n in range(5)]
        assert found.attempts.tolist() == [8] * 5
        assert found.solved.tolist() == [
            2 * sum((n + attempt) % 3 == 0 for attempt in range(4)) for n in range(5)
        ]


def test_percentages_of_attempts_are_no_counts(tmp_path: Path, pair: list[Attempts]):
    table = tmp_path / "percent.csv"
    frame = pl.DataFrame({"item": pair[0].images, "solved": 10 * pair[0].solved})
    frame.with_columns(model=pl.lit("m"), attempts=100).write_csv(table)
    for command in ("papers passk", "check"):
        check(refusal([*command.split(), table]), "counts-of-few-values", {"total": "attempts"})


def test_rows_of_counts_that_come_twice_are_refused_with_blanks_too(tmp_path: Path):
    path = tmp_path / "attempts.csv"
    path.write_text("item,model,solved,attempts\nq1,m,1,4\nq1 ,m,2,4\n")
    with refused(StudyError, "attempts-row-repeated", {"items": ["q1 by m"]}):
        read_attempts(path)


def test_of_two_columns_of_what_is_solved_none_is_taken(tmp_path: Path):
    path = tmp_path / "attempts.csv"
    path.write_text("item,model,solved,correct\nq1,m,1,0\n")
    with refused(StudyError, "attempts-columns-ambiguous", {"columns": ["solved", "correct"]}):
        read_attempts(path)
