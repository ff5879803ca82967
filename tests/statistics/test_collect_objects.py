"""Main labels: probabilities by draws, and calibrated; the published images' numbers made again."""

import json
from pathlib import Path

import numpy as np
import pytest
from refusals import check, refusal

from bayesrep.cli import main
from bayesrep.collect.object_consensus import most_probable
from bayesrep.protocols import (
    compare_labels_with_people,
    compare_predictions_with_people,
    read_people,
    read_predictions,
)

PUBLISHED = Path(__file__).resolve().parents[3] / "shared/data/imagenet-multilabel"


def test_the_largest_share_is_that_of_draws():
    """Monte Carlo, false alarm below 1e-6."""
    votes = [np.array([5, 3, 1])] * 40 + [np.array([2, 2, 5])] * 30
    found = most_probable(votes)[0]
    rng = np.random.default_rng(0)
    # The concentration, by the same likelihood on a grid.
    from scipy.special import gammaln

    grid = np.exp(np.linspace(-4, 4, 4001))
    loss = sum(
        gammaln(3 * grid) - gammaln(3 * grid + 9)
        + sum(gammaln(grid + k) - gammaln(grid) for k in each)
        for each in votes
    )  # fmt: skip
    best = grid[np.argmax(loss)]
    draws = rng.dirichlet(np.array([5, 3, 1]) + best, 200_000).argmax(axis=1)
    shares = np.bincount(draws, minlength=3) / len(draws)
    assert np.abs(shares - found).max() < 5 * np.sqrt(0.25 / len(draws)) + 1e-3


def test_probabilities_are_calibrated():
    """Main labels of 3,000 simulated images: said with p they are right in a share p of cases.

    Ten bins of at least 300, within 4.5 standard errors: false alarm below 1e-4.
    """
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([0.5, 0.5, 0.5], 3_000)
    votes = np.array([rng.multinomial(9, each) for each in shares])
    found = np.array(most_probable(list(votes)))
    right = shares == shares.max(axis=1, keepdims=True)
    edges = np.quantile(found, np.linspace(0, 1, 11))
    for low, high in zip(edges, edges[1:], strict=False):
        within = (found >= low) & (found <= high)
        said_to_be, were = found[within].mean(), right[within].mean()
        error = np.sqrt(max(said_to_be * (1 - said_to_be), 1e-3) / within.sum())
        assert abs(were - said_to_be) < 4.5 * error


@pytest.fixture(scope="module")
def imagenet(tmp_path_factory):
    """The published answers of 45 classifiers."""
    out = tmp_path_factory.mktemp("imagenet") / "study"
    data = PUBLISHED.parent / "imagenetv2" / "data"
    assert main(["import", "imagenetv2", str(data), "--out", str(out), "--quiet"]) == 0
    return out


@pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="the published annotations are not beside the project"
)
def test_the_published_images_and_what_became_of_them(imagenet, tmp_path, capsys):
    """6,761 images were classified, of 150 nobody selects the label (B.2, C.3)."""
    frame, out = PUBLISHED / "annotations_classify_task.pkl", tmp_path / "objects.csv"
    words = ["collect", "read", frame, "--table", "objects"]
    words += ["--fates", PUBLISHED / "image_info.pkl"]
    facts = {"file": str(PUBLISHED / "image_info.pkl")}
    check(refusal([*words, "--out", out]), "fates-without-labels", facts)
    words += ["--study", imagenet, "--out", out]
    assert main([*map(str, words), "--json"]) == 0
    of = json.loads(capsys.readouterr().out)["images"]
    told = {"classify": 6761, "clear": 2923, "own label never selected": 150, "ambiguous": 166}
    assert {name: of[name] for name in told} == told
    assert of["clear_taken"] == round(2923 * of["classified"] / 6761)
    (answers,) = read_predictions(imagenet, ("reference",))
    people = read_people(answers, objects=out)
    rows = {row["statistic"]: row for row in compare_labels_with_people(answers, people).to_dicts()}
    # Half of the images are at hand: 2,156 and 650 of all, more than a fifth (section 4.1).
    several = rows["with several objects, the main one is another"]
    assert abs(several["of"] - 2156 * of["classified"] / 6761) < 60
    assert several["share"] == pytest.approx(650 / 2156, abs=0.03)
    assert rows["1 object"]["share"] == pytest.approx(1 - 2156 / 9684, abs=0.02)
    share = {
        (row["statistic"], row["classifier"]): row["share"]
        for row in compare_predictions_with_people(answers, people).to_dicts()
    }
    corrections = "top-5 corrections that are two objects"
    assert share[corrections, "resnet50"] == pytest.approx(0.174, abs=0.01)
    assert share[corrections, "nasnet_large_tf"] == pytest.approx(0.207, abs=0.01)
    # Figure 4(b): 75.0 by any of several objects, 76.8 by top-1 of one; 14.1 less by top-1.
    mean = {
        name: np.mean([value for (other, _), value in share.items() if other == name])
        for name, _ in share
    }
    any_of, one, several_top = (
        f"{name} object{'s' * (name != 'one')}: right by {by}"
        for name, by in (
            ("several", "any object"),
            ("one", "the own label"),
            ("several", "the own label"),
        )
    )
    assert mean[any_of] == pytest.approx(0.750, abs=0.015)
    assert mean[one] == pytest.approx(0.768, abs=0.01)
    assert mean[one] - mean[several_top] == pytest.approx(0.141, abs=0.015)
