"""The run of several hundred classifiers: which they are, what they take, and its rehearsal."""

from dataclasses import replace

import pytest

from bayesrep.vision import catalog_names
from bayesrep.vision.architectures import describe
from bayesrep.vision.timing import Crew
from bayesrep.vision.torch_loading import load_timm
from experiments.many_models import imagenet_classifiers, main, saved_classifiers
from experiments.model_costs import ANSWERS, Cost, Machine, costs, estimate, in_same_pixels

timm = load_timm()


def test_the_classifiers_are_of_the_papers_architectures():
    names = imagenet_classifiers()
    named, _ = catalog_names("anzaku2022")
    assert names[: len(named)] == named
    assert len(names) == len(set(names))
    assert 250 <= len(names) <= 310, "the paper has 286; timm comes and goes"
    assert not [name for name in names if "clip" in name or name.startswith("convnext")]
    for name in names:
        describe(name)


def test_operations_are_those_that_are_published():
    """torchvision states 4.09 and 1.81 x 10^9 multiplications with an addition each."""
    resnet, smaller = costs(["resnet50.tv_in1k", "resnet18.tv_in1k"])
    assert resnet.operations == pytest.approx(2 * 4.09e9, rel=0.005)
    assert resnet.parameters == 25_557_032
    assert smaller.operations == pytest.approx(2 * 1.81e9, rel=0.005)
    assert smaller.parameters == 11_689_512


def test_hours_are_those_of_the_slower_side():
    one = describe("resnet50.tv_in1k")
    other = replace(one, name="other", preprocessing=replace(one.preprocessing, size=(384, 384)))
    found = [Cost(one, 8, 1000), Cost(replace(one, name="same"), 8, 10), Cost(other, 80, 100)]
    keys = [one.preprocessing, other.preprocessing]
    assert [len(group) for group in in_same_pixels([c.architecture for c in found])] == [2, 1]
    pre = dict(zip(keys, (0.5, 1.5), strict=True))
    rates = {"dense": 4.0, "depthwise": 1.0, "transformer": 1.0}
    cores = Machine("cpu", Crew(2, 2, one_after_other=True), 0.5, pre, rates)
    numbers = estimate(found, 3600, cores)
    reading, computing = (0.5 + 0.5 + 0.5 + 1.5) / 2, (2 + 2 + 20) / 2
    assert numbers["reading_hours"] == pytest.approx(reading)
    assert numbers["computing_hours"] == pytest.approx(computing)
    assert numbers["hours"] == pytest.approx(reading + computing)
    device = Machine("cuda", Crew(1, 1, one_after_other=False), 5.5, pre, rates)
    # Of the first group (6 and 4 seconds an image) reading is slower, of the second computing.
    assert estimate(found, 3600, device)["hours"] == pytest.approx(6 + 20)
    assert numbers["weights_bytes"] == 4 * 1110
    assert numbers["largest_weights_bytes"] == 4000
    assert numbers["pixels_bytes"] == 3600 * 3 * 384 * 384
    assert numbers["answers_bytes"] == ANSWERS * 3600 * 3


def test_classifiers_that_timm_saved_are_found(tmp_path):
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    (tmp_path / "c.safetensors").touch()
    assert saved_classifiers(tmp_path) == ["a", "b"]


def test_a_rehearsal_goes_all_the_way_and_a_second_evaluates_nothing(capsys, tmp_path):
    assert main(["--rehearse", "--images", "20", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "120 images went by" not in said  # images are counted once a pass, not a classifier
    assert "no classifier left out" in said
    assert "gap narrower when matched" in said
    assert "The same again evaluates 0 images." in said
    made = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"accuracies.csv", "confidence.csv", "confidence.png"} <= made


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--reference, --replication and --study are needed"),
        (["--classes", "classes.csv"], "--classes takes --weights"),
        (["--list", "--classifiers", "@nowhere.txt"], "nowhere.txt"),
        (["--rehearse", "--images", "-5"], "too few"),
        (["--estimate", "--device", "cuda:7"], "device 'cuda:7' is not available here"),
        (
            "--reference nowhere --replication nowhere --study s --classifiers test_vit".split(),
            "nowhere",
        ),
    ],
)
def test_mistakes_are_one_line(capsys, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
