"""The calibration experiments: resuming, ranks, scores, and what is written."""

import argparse
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bayesrep.inference.prior import prior_predictive
from experiments import odd_worlds, sbc
from experiments.ledger import resume


def test_a_killed_experiment_goes_on_where_it_was(tmp_path: Path) -> None:
    path, made = tmp_path / "deep" / "results.jsonl", []

    def make(key: str) -> dict[str, Any]:
        made.append(key)
        if key == "c" and made.count("c") == 1:
            raise KeyboardInterrupt
        return {"value": key.upper()}

    with pytest.raises(KeyboardInterrupt):
        resume(path, "abc", make)
    with path.open("a") as stream:
        stream.write('{"key": "c", "val')  # killed while writing
    results = resume(path, "abcd", make)
    assert made == ["a", "b", "c", "c", "d"]
    assert [r["value"] for r in results] == ["A", "B", "C", "D"]
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == list("abcd")
    assert resume(path, "db", make) == [results[3], results[1]]
    assert resume(path, "dxb", make, finished=True) == [results[3], results[1]]


def test_expected_bins_hold_every_rank_once() -> None:
    """Every rank equally often is the most uniform there is."""
    ranks = np.repeat(np.arange(sbc.RANKS + 1), 7)
    found = sbc.uniformity(ranks)
    assert found["chi2_p"] == pytest.approx(1)
    assert found["ecdf_distance"] == pytest.approx(0, abs=1e-12)


def test_uneven_ranks_are_as_far_from_even_as_they_are() -> None:
    """Ranks below 50 twice and the others once."""
    ranks = np.concatenate([np.arange(sbc.RANKS + 1), np.arange(50)])
    found = sbc.uniformity(ranks)
    assert found["ecdf_distance"] == pytest.approx(100 / 151 - 50 / 101)
    sizes = np.array([6, *[5] * 19])  # 101 ranks in 20 bins of 5.05
    seen = np.where(np.arange(20) < 10, 2 * sizes, sizes)
    seen[9] -= 1  # rank 50 is the last of its bin, and seen once
    expected = 151 * sizes / 101
    chi2 = np.square(seen - expected) @ (1 / expected)
    assert found["chi2_p"] == pytest.approx(stats.chi2(19).sf(chi2))
    # The rank of a single study is 0 or 100, farthest from even, in 2 of 101 cases.
    assert sbc.ecdf_limit(1, 0.99) == pytest.approx(100 / 101)


def test_sbc_ranks_what_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The study given to the fit is the drawn one, and every drawn value gets a rank."""
    monkeypatch.setattr(sbc, "BATCH", 200)  # as many draws as below: one program
    blank = sbc.template(images=60, annotators=4, classifiers=2)
    prior = sbc.prior_batch(blank, 1)
    drawn = sbc.summaries(prior.prior)
    seen = []

    def fit(statistics: Any, *, components: int, **settings: Any) -> Any:
        warmup, draws, seed = (settings[name] for name in ("warmup", "draws", "seed"))
        assert not settings["progress"]
        assert components == sbc.MODELS["joint"].options().components  # whatever counts say
        assert warmup
        assert draws
        seen.append(statistics)
        posterior = prior_predictive(blank, draws=200, seed=10 + seed)
        posterior.prior.attrs["converged"] = True
        return argparse.Namespace(
            posterior=posterior.prior,
            sample_stats={"diverging": argparse.Namespace(values=np.zeros((1, 200), bool))},
        )

    monkeypatch.setattr(sbc.bayesrep, "fit", fit)
    result = sbc.one_study("202", blank)
    assert result["converged"]
    assert set(result["ranks"]) == set(drawn)
    for name, ranks in result["ranks"].items():
        assert np.shape(ranks) == drawn[name].shape[1:]
        assert np.min(ranks) >= 0
        assert np.max(ranks) <= sbc.RANKS
    cells = seen[0].cells
    for role in ("reference", "replication"):
        np.testing.assert_array_equal(
            cells[role].images, prior.prior_predictive[f"{role}_images"].values[0, 2]
        )
    correct = prior.prior_predictive["correct"].values[0, 2]
    np.testing.assert_array_equal(cells["replication"].correct.T, correct)
    table = sbc.collect([result, result])
    kinds = {kind for group in sbc.PANELS.values() for kind in group}
    assert {name.split("[")[0] for name in table} == kinds
    sbc.figure(table, 0.1).savefig(BytesIO(), format="png")


def test_odd_worlds_are_what_they_say_and_are_scored_by_what_the_counts_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Truth where all images are selected as often; coverage, widths and errors by hand."""
    with monkeypatch.context() as patched:
        alike = dict.fromkeys(odd_worlds.DENSITIES, lambda _, size: np.full(size, 0.6))
        patched.setattr(odd_worlds, "DENSITIES", alike)
        _, truth, (_, curve, _) = odd_worlds.simulated(7, 400, 3)
    wanted = [odd_worlds.CURVES[curve](np.array(0.6), able) for able in (-1.0, 0.0, 1.0)]
    np.testing.assert_allclose(truth, np.clip(wanted, 0.005, 0.995))
    study, _, parts = odd_worlds.simulated(7, 400, 3)
    density, curve, annotators = parts
    shown = study.reference.shown
    assert annotators.startswith(str(shown.min()))
    again, _, _ = odd_worlds.simulated(7, 400, 3)
    assert again.fingerprint() == study.fingerprint()

    fit = {"estimate": [0.5, 0.6], "lower": [0.4, 0.59], "upper": [0.6, 0.65], "usable": True}
    asked = {**fit, "gap": [0.1, 0.05, 0.2]}
    two = {**fit, "gap": [0.1, 0.09, 0.2], "upper": [0.45, 0.65]}
    known = {"parts": parts, "truth": [0.5, 0.7], "measured": [0.6, 0.76], "components": 3}
    found = odd_worlds.numbers([{**known, "asked": asked, "two": two}] * 2)["rows"]
    assert set(found) == {"all", "more asked for", density, f"curve: {curve}", annotators}
    score = found["more asked for"]["asked"]
    assert (score["coverage"], score["gap_coverage"]) == (0.5, 1)
    assert found["all"]["two"]["coverage"] == 0
    assert found["all"]["two"]["gap_coverage"] == 0
    assert score["bias"] == pytest.approx(-0.05)
    assert score["error"] == pytest.approx(0.05)
    assert score["width"] == pytest.approx((0.2 + 0.06) / 2)
    lines = odd_worlds.table({"rows": found}).splitlines()
    assert len(lines) == 2 + 2 * len(found)
