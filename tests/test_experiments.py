"""The paper's figures' numbers on a small study, and what experiments write."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zoo

import bayesrep
from experiments import quadrature, results
from experiments.papers import figure4, figure5, figure6, figure7, figure12, figure13, figure14
from experiments.papers.figure5 import fractions
from experiments.papers.study_facts import StudyFacts
from experiments.results import interval_points
from experiments.studies import Chosen, simulated
from experiments.style import panels

ANNOTATORS = 12
REPLICATES = 4  # of every bootstrap: em-spline is compiled for every number anew


@pytest.fixture(scope="module")
def small() -> Chosen:
    return simulated(0, "a test", images=1_500, annotators=ANNOTATORS, classifiers=5)


def adjusted(small: Chosen, method: str) -> np.ndarray:
    with results.recorded():
        return bayesrep.estimate(small.study, method)["adjusted_accuracy"].to_numpy()


def complete(found: dict[str, Any], module: Any) -> None:
    """Numbers survive JSON unchanged, and the figure can be drawn of what is read."""
    read = json.loads(json.dumps(found, allow_nan=False))
    assert read == found
    module.draw(read).savefig(BytesIO(), format="png")


def test_figure4(small: Chosen) -> None:
    found = figure4.numbers(small)
    complete(found, figure4)
    for role in ("reference", "replication"):
        shares, frequency = np.array(found[role]["shares"]), np.arange(ANNOTATORS + 1) / ANNOTATORS
        assert shares.sum() == pytest.approx(1, abs=1e-12)
        assert shares @ frequency == pytest.approx(found[role]["mean"], abs=1e-12)


def test_figure4_thins_to_the_fewest_annotators() -> None:
    found = figure4.numbers(StudyFacts(zoo.study("ragged")))
    shares = found["reference"]["shares"]
    assert found["annotators"] == 8
    assert len(shares) == 9
    assert np.arange(9) / 8 @ shares == pytest.approx(found["reference"]["mean"], abs=1e-12)


def test_figure5(small: Chosen) -> None:
    found = figure5.numbers(small)
    complete(found, figure5)
    whole = found["annotators"][-1]
    assert [series["annotators"] for series in found["annotators"]] == [2, 3, 6, 12]
    np.testing.assert_array_equal(whole["adjusted_accuracy"], adjusted(small, "naive"))
    for series in found["annotators"]:
        assert sum(series["shares"]) == pytest.approx(1, abs=1e-12)
        assert sum(series["images"]) == pytest.approx(1_500, abs=1e-8)


def test_figure6(small: Chosen) -> None:
    found = figure6.numbers(small, bootstrap=REPLICATES)
    complete(found, figure6)
    for method, part in found["methods"].items():
        np.testing.assert_array_equal(part["adjusted_accuracy"], adjusted(small, method))
    raw = found["methods"]["raw"]["quantities"]
    assert raw["share_explained"]["estimate"] == 0
    assert raw["selection_gap"]["estimate"] == 0


def test_figure7(small: Chosen) -> None:
    found = figure7.numbers(small)
    complete(found, figure7)
    for role in ("reference", "replication"):
        part = found[role]
        assert sum(part["weights"]) == pytest.approx(1, abs=1e-9)
        assert sum(part["induced"]) == pytest.approx(1, abs=1e-9)
        assert sum(part["observed"]) == pytest.approx(1, abs=1e-12)


def test_figure12(small: Chosen) -> None:
    found = figure12.numbers(small)
    complete(found, figure12)
    naive, jackknife = adjusted(small, "naive"), adjusted(small, "jackknife")
    assert found["annotators"] == list(range(2, ANNOTATORS + 1))
    assert found["mean"]["naive"][-1] == pytest.approx(naive.mean(), abs=1e-12)
    for name, part in found["classifiers"].items():
        column = small.study.classifiers.index(name)
        assert part["naive"][-1] == naive[column]
        assert part["jackknife"] == pytest.approx(jackknife[column], abs=1e-12)
        assert part["naive"][-1] - part["slope_at_all"] / ANNOTATORS == pytest.approx(
            part["jackknife"], abs=1e-9
        )


def test_figure13(small: Chosen) -> None:
    with results.recorded() as said:
        found = figure13.numbers(small, quarters=(1,), bootstrap=REPLICATES)
    complete(found, figure13)
    assert any("determine at most" in text for text in said)  # 3 annotators
    for method, (part,) in found["methods"].items():
        assert part["annotators"] == 3
        same = adjusted(small, f"{method}(annotators=3)")
        np.testing.assert_allclose(part["adjusted_accuracy"], same, atol=1e-12)


def test_figure14(small: Chosen) -> None:
    found = figure14.numbers(small, components=(2,), bootstrap=REPLICATES)
    complete(found, figure14)
    (part,) = found["series"]
    same = adjusted(small, "em-spline(components=2)")
    np.testing.assert_array_equal(part["adjusted_accuracy"], same)
    assert part["parameters"] == 5


def test_fractions_of_the_annotators() -> None:
    assert fractions(36, 8, 4, 2, 1) == [5, 9, 18, 36]
    assert fractions(3, 8, 4, 2, 1) == [1, 2, 3]


def test_an_interval_is_drawn_that_does_not_contain_its_point() -> None:
    figure, (axes,) = panels(1)
    interval_points(axes, [0.0], [1.0], [2.0], [3.0], color="#000000")
    figure.savefig(BytesIO(), format="png")
    assert axes.dataLim.y0 == 1
    assert axes.dataLim.y1 == 3


def test_save_writes_numbers_table_and_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    figure, _ = panels(1)
    page = results.save("one", "a command", {"x": 1}, "a table", figure, "A remark.")
    assert page.read_text(encoding="utf-8") == (
        "# one\n\n## one\n\nMade by `a command`.\n\n![one](one.png)\n\n"
        "A remark.\n\n```\na table\n```\n"
    )
    assert results.read_numbers("one")["x"] == 1
    assert page.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert "![" not in results.save("two", "", {}, "a table").read_text(encoding="utf-8")


def test_save_leaves_what_is_written_by_hand_and_other_sections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    page = tmp_path / "page.md"
    old = "# Page\n\nWords.\n\n## one\n\nMine.\n\nMade by `old`.\n\n## two\n\nMade by `it`.\n"
    page.write_text(old, encoding="utf-8")
    (tmp_path / "page.json").write_text('{"two": {"x": 2}}', encoding="utf-8")
    assert results.save("one", "new", {"x": 1}, "table") == page
    assert page.read_text("utf-8") == old.replace("`old`.", "`new`.\n\n```\ntable\n```")
    assert [results.read_numbers(name)["x"] for name in ("one", "two")] == [1, 2]


def test_without_the_placebos_data_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, missing = str(tmp_path), str(tmp_path / "missing")
    for options, word in (
        ([], "--cifar10h is missing"),
        (["--cifar10h", missing, "--cifar10.1", folder], "is not a folder"),
        (["--cifar10h", folder, "--cifar10.1", folder], "cifar10h-counts.npy"),
    ):
        with pytest.raises(SystemExit) as stop:
            quadrature.main(["--study", "placebo", *options])
        said = capsys.readouterr().err
        assert stop.value.code == 2
        assert said.count("\n") == 1
        assert word in said
