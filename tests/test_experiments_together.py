"""What the experiments on all classifiers together compute from their results."""

import numpy as np
import pytest

from experiments import shared_difficulty, slope


def _result(key, error):
    row = [0.05 + error, 0.01, 0.03 + error, 0.07 + error]
    methods = {
        method: {name: row for name in shared_difficulty.QUANTITIES}
        for method in shared_difficulty.METHODS
    }
    truth = dict.fromkeys(shared_difficulty.QUANTITIES, 0.05)
    return {"key": key, "methods": methods, "truth": truth}


def test_scores_count_the_truths_inside():
    results = [_result(f"outside/{i}", e) for i, e in enumerate((0.0, 0.01, -0.03, 0.04))]
    score = shared_difficulty.scores(results)["slope"]["shared"]
    assert score["coverage"] == 0.5
    assert score["bias"] == pytest.approx(0.005)
    assert score["error_sd"] == pytest.approx(np.std([0.0, 0.01, -0.03, 0.04], ddof=1))
    found = {"scores": {"outside": shared_difficulty.scores(results)}}
    assert shared_difficulty.table_text(found).count("50.0") == 12
    assert shared_difficulty.draw(results) is not None


def test_lines_are_gaps_and_slopes():
    reference = np.array([0.6, 0.7, 0.8])
    found = shared_difficulty.lines(reference, reference + 0.01, 2 * reference[None] - 0.7)
    np.testing.assert_allclose(found["mean gap"], 0.0, atol=1e-12)
    np.testing.assert_allclose(found["slope"], 2.0)
    np.testing.assert_allclose(found["population gap"], 0.01)
    assert "population slope" not in shared_difficulty.lines(reference, None, reference)


def test_the_table_of_slopes_names_every_method():
    row = {"mean gap": [0.1, None, None], "slope": [1.1, 1.0, 1.2]}
    found = {
        "methods": dict.fromkeys(slope.LABELS, row),
        "truth": dict.fromkeys(shared_difficulty.QUANTITIES, 0.04),
    }
    text = slope.table(found)
    assert all(label in text for label in slope.LABELS.values())
    assert "1.100 (1.000 to 1.200)" in text
    assert slope.draw(found) is not None
