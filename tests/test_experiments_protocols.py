"""The experiments and the benchmark of the protocols: what they write, on real files where here."""

from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from refusals import refused

from bayesrep.errors import StudyError
from bayesrep.protocols import confusion, match
from bayesrep.protocols.matched import MATCH_ON
from bayesrep.report.robustness_figures import robustness_figure
from benchmarks import protocols as benchmark
from experiments import cifar10_1, imagenetv2, matched, results, timm_published, timm_results
from experiments import confusion as confusion_experiment

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
IMAGENETV2 = DATA / "imagenetv2" / "data"
real = pytest.mark.skipif(
    not IMAGENETV2.is_dir(), reason="the published data sets are not beside the project"
)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Where results go, and how to read their numbers."""
    monkeypatch.setattr(results, "RESULTS", tmp_path)

    def read(name: str) -> dict:
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000
        assert "Made by `python -m experiments." in (tmp_path / f"{name}.md").read_text()
        return results.read_numbers(name)

    return read


@real
def test_imagenet_v2_has_the_published_accuracies(written, capsys):
    assert imagenetv2.main([str(IMAGENETV2)]) == 0
    numbers = written("imagenet-v2")
    assert len(numbers["accuracies"]) == 45
    # The paper prints one digit after the point.
    assert numbers["largest_difference_from_published_points"] <= 0.05
    assert 0.11 < numbers["lines"]["linear mean_gap"]["estimate"] < 0.14
    assert "resnet50" in capsys.readouterr().out


@real
def test_cifar_10_1_in_both_versions(written):
    labels = DATA / "cifar10h" / "cifar10_test_set_original_labels.npy"
    assert cifar10_1.main([str(DATA / "cifar10.1"), "--labels", str(labels)]) == 0
    numbers = written("cifar-10.1")
    for version in ("v4", "v6"):
        gaps = [row["gap"] for row in numbers[version]["accuracies"]]
        assert len(gaps) == 20
        # Recht et al. (2019): drops of 3 % to 15 %; random features without augmentation lose 15.4.
        assert 0.03 < min(gaps) < max(gaps) < 0.16


def test_multi_label_accuracy_lies_between_top1_and_top5():
    numbers = results.read_numbers("multi-label")
    assert numbers["images_without_a_right_label"] == 3163
    found = numbers["findings"]
    assert found["median_multi_label_less_top1"] > 0 < found["median_top5_less_multi_label"]
    people = {row["statistic"]: row["share"] for row in numbers["people"]}
    judged = {}
    for row in numbers["judged"]:
        judged.setdefault(row["statistic"], []).append(row["share"])
    mean = {name: np.mean(shares) for name, shares in judged.items()}
    # Tsipras et al. (2020), figure 3: more than a fifth; 650 of 2,156 by all of their images.
    assert 0.20 < 1 - people["1 object"] < 0.25
    assert people["with several objects, the main one is another"] == pytest.approx(0.301, abs=0.03)
    # Section 4.1: more than 10 % lower on several objects by top-1, and about as high by objects.
    one, several = (
        f"{which}: right by the own label" for which in ("one object", "several objects")
    )
    assert mean[one] - mean[several] > 0.10
    assert abs(mean["several objects: right by any object"] - mean[one]) < 0.03
    # Appendix C.1: about 20 % for better classifiers.
    best = sorted(judged["top-5 corrections that are two objects"])[-10:]
    assert 0.17 < min(best) < max(best) < 0.24


def test_superclasses_confused_are_those_found_together():
    numbers = results.read_numbers("confusion")
    assert all(value > 0.5 for value in numbers["correlations"].values())
    # Tsipras et al. (2020), section 5.2: about 80 %, of all images and not of the hard ones alone.
    assert 0.75 < numbers["right"]["people, choosing"] < 0.80


@real
@pytest.mark.usefixtures("written")
def test_timms_numbers_are_those_of_published_answers():
    assert timm_published.main([str(DATA / "timm-results"), str(IMAGENETV2)]) == 0
    numbers = results.read_numbers("timm-published")
    rows = numbers["classifiers"]
    assert len(rows) == 26
    assert len(rows) + len(numbers["without"]) == 45
    for row in rows:
        if row["classifier"].startswith(("vgg", "se_")):  # resized alike by both
            assert abs(row["reference_here"] - row["reference_timm"]) < 5e-4
    assert numbers["largest_points"]["reference"] < 0.5


@real
def test_timm_results_are_joined_without_multiplying(written):
    assert timm_results.main([str(DATA / "timm-results")]) == 0
    numbers = written("timm-results")
    assert (numbers["rows"], numbers["models"]) == (1556, 1266)
    residuals = [row["residual"] for row in numbers["families"]]
    assert residuals == sorted(residuals, reverse=True)


@pytest.mark.parametrize(
    ("model", "family", "more"),
    [
        ("tf_efficientnetv2_b3.in21k_ft_in1k", "efficientnetv2", True),
        ("resnet50.a1_in1k", "resnet", False),
        ("eva02_large_patch14_448.mim_m38m_ft_in22k_in1k", "eva", True),
        ("vit_base_patch16_224.augreg_in1k", "vit", False),
        ("tf_efficientnet_l2.ns_jft_in1k", "efficientnet", True),
    ],
)
def test_families_are_read_from_names(model, family, more):
    assert timm_results.family(model) == family
    assert timm_results.trained_on_more(model) is more


def test_a_results_file_with_a_row_twice_is_refused(tmp_path):
    for file in timm_results.FILES.values():
        rows = {"model": ["a", "a"], "img_size": [224, 224], "crop_pct": [0.9, 0.9], "top1": [1, 2]}
        pl.DataFrame(rows).write_csv(tmp_path / file)
    twice = {
        "path": str(tmp_path / "results-imagenet.csv"),
        "reason": "a model at one size and crop is given twice",
    }
    with refused(StudyError, "file-unreadable", twice):
        timm_results.read_results(tmp_path)


def test_the_matched_experiment_on_few_studies(written, monkeypatch):
    monkeypatch.setattr(matched, "one_pair", _small(matched.one_pair))
    assert matched.main(["--classifiers", "3", "--studies", "3"]) == 0
    numbers = written("matched")
    assert {row["criterion"] for row in numbers["coverage"]} == set(MATCH_ON)


def _small(make):
    return lambda seed, sizes, classifiers, classes=10: make(seed, (600, 150), classifiers, 10)


def test_the_transcription_of_the_benchmark_matches_like_ours():
    """Unmatched targets of either have no free neighbour left; here each has at most one."""
    source = [(0, label, p) for label in range(5) for p in (0.1, 0.5, 0.9)]
    target = [(0, label, p + 0.004) for label in range(4) for p in (0.1, 0.9)] + [(0, 4, 0.7)]
    pairs = benchmark.transcription(source, target, 0.005, by_label=True)
    assert len(pairs) == 8
    assert all(one[1] == two[1] and abs(one[2] - two[2]) <= 0.005 for one, two in pairs)


def test_figures_of_matched_accuracy_are_drawn():
    found = match(*matched.one_pair(0, (600, 150), 3, 10), runs=2, progress=False)
    name = found.confidence["classifier"][0]
    for figure in (
        matched.matched_accuracy_figure(found.accuracies, MATCH_ON[0]),
        matched.confidence_figure(found.curves, name, MATCH_ON[1]),
        matched.confidence_scatter(found.confidence),
    ):
        figure.savefig(BytesIO(), format="png")


def test_the_robustness_figure_shows_groups_and_both_fits():
    rng = np.random.default_rng(0)
    x = np.linspace(0.5, 0.9, 8)
    rows = pl.DataFrame(
        {"reference_accuracy": x, "replication_accuracy": x - 0.1 + 0.01 * rng.standard_normal(8)}
    )
    figure = robustness_figure({"classifiers": rows, "people": rows.head(2)}, fitted=rows)
    labels = figure["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert set(labels) == {"y = x", "linear fit", "probit fit", "classifiers", "people"}


def test_matrices_leave_their_diagonals_out():
    one, _ = matched.one_pair(0, (300, 100), 2, 4)
    cells = confusion(one)
    figure = confusion_experiment.matrices_figure({"confusion": cells}, one.classes)
    figure.savefig(BytesIO(), format="png")
    shown = figure.axes[0].images[0].get_array()
    assert np.all(np.ma.getmaskarray(np.ma.masked_invalid(shown)).diagonal())


def test_printed_numbers_beside_ours():
    found = results.read_numbers("printed-numbers")
    rows = {(row["paper"], row["what"]): row for row in found["rows"]}
    assert len(rows) == len(found["rows"]) >= 60
    assert all(row["ours"] and row["agreement"] for row in rows.values())
    assert all(
        row["why"] for row in rows.values() if row["agreement"] in ("differs", "not at hand")
    )
    tsipras = {what: row for (paper, what), row in rows.items() if paper == "tsipras2020"}
    assert tsipras["images of the Classify task, of 10,000"]["ours"] == "6,761"
    assert tsipras["images whose label nobody selects"]["ours"] == "150"
    assert tsipras["images of several objects"]["agreement"] == "half of the data"
    assert tsipras["of these, whose main object is another"]["agreement"] == "half of the data"
    page = (results.RESULTS.parent / "papers-disagree.md").read_text(encoding="utf-8")
    ours = rows["engstrom2020", "widest 95 % interval of a classifier's accuracy for other images "
                "(points)"]["ours"]  # fmt: skip
    assert ours.removeprefix("± ") in page
