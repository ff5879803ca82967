"""The numbers of the protocols' pages come out again of the published answers and annotations."""

from pathlib import Path

import pytest

from experiments import confusion, multilabel, printed_numbers, results

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
MULTILABEL = DATA / "imagenet-multilabel"
ANSWERS = [DATA / "imagenetv2" / "data", "--labels", DATA / "reassessed-imagenet" / "real.json"]
ANSWERS += ["--classes", MULTILABEL / "superclasses.npy", "--images", MULTILABEL / "image_info.pkl"]
PEOPLE = MULTILABEL / "annotations_classify_task.pkl"


@pytest.mark.skipif(
    not (DATA / "imagenetv2").is_dir(), reason="the published data sets are not beside the project"
)
@pytest.mark.parametrize(
    ("experiment", "name", "arguments"),
    [
        (multilabel, "multi-label", [*ANSWERS, "--objects", PEOPLE]),
        (confusion, "confusion", [*ANSWERS, "--humans", PEOPLE]),
        (printed_numbers, "printed-numbers", [DATA]),
    ],
)
def test_committed_numbers_come_out_again(experiment, name, arguments, tmp_path, monkeypatch):
    told = results.read_numbers(name)
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    assert experiment.main(list(map(str, arguments))) == 0
    page = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert "Made by `python -m experiments." in page
    if experiment is not printed_numbers:
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000
    found = results.read_numbers(name)
    for numbers in (found, told):  # of this machine
        del numbers["machine"], numbers["command"]
    assert found == told
