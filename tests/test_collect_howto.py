"""Every command of "From a folder of images to a new test set", typed as the page has it."""

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from simulated_workers import write_answers

from bayesrep.cli import main
from bayesrep.collect import read_collection

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "collect.md"
CLASSES = ("n02123045", "n02123159", "n02124075", "n02099601", "n04254680", "n01440764")


def typed():
    text = PAGE.read_text("utf-8").partition("\n## Plan")[0]
    blocks = re.findall(r"```console\n(.*?)```", text, flags=re.S)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images, and a table of what two classifiers say of them: right of 80 and 60 %."""
    here, rng, rows = tmp_path_factory.mktemp("how-to"), np.random.default_rng(0), []
    for dataset, number in (("v1", 50), ("v2", 50), ("known", 8)):
        for label in CLASSES:
            place = here / "images" / dataset / label
            place.mkdir(parents=True)
            for image in range(number):
                (place / f"{image}.jpg").write_bytes(b"")
                if dataset == "known":
                    continue
                for name, share in (("good", 0.8), ("fair", 0.6)):
                    others = rng.permutation([each for each in CLASSES if each != label]).tolist()
                    if rng.random() < share:
                        said = [label, *others[:4]]
                    else:
                        said = [*others[:2], label, *others[2:4]]
                    rows.append(
                        (dataset, f"{label}/{image}.jpg", name, said[0] == label, label, *said)
                    )
    columns = ["dataset", "image", "classifier", "correct", "label"]
    columns += [f"label_{rank}" for rank in range(1, 6)]
    pl.DataFrame(rows, columns, orient="row").write_csv(here / "predictions.csv")
    return here


@pytest.mark.usefixtures("kept_fits")
@pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")
@pytest.mark.filterwarnings("ignore::bayesrep.errors.ProtocolWarning")
def test_the_page_from_images_to_the_report_and_on(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    printed = []
    for line in typed():
        words = shlex.split(line)
        assert words[0] == "bayesrep"
        if (
            words[1:3] == ["collect", "read"] and "--table" not in words
        ):  # what people saved meanwhile
            write_answers(Path(words[4]), read_collection(words[3]))
        few = ["--bootstrap", "5"] if words[1] == "report" else []  # intervals that nobody reads
        status = main([*words[1:], *few])
        out, err = capsys.readouterr()
        if words[1] == "report":
            assert status in (0, 1), err
        else:
            assert status == 0, (line, err)
        printed.append(out)
    assert (folder / "report.html").stat().st_size > 100_000
    by_labels, seen, judged, *_ = printed[-5:]
    page = (folder / "with-people.html").read_text(encoding="utf-8")
    assert "What people see on the images" in page
    assert "What people see" not in (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "people.pdf").read_bytes().startswith(b"%PDF")
    assert "multi-label" in by_labels
    assert "the main label is another" in seen
    assert "mistakes selected as often as the own label" in judged
    objects = pl.read_csv(folder / "objects.csv")
    assert objects["objects"].max() >= 2
    assert objects["p_valid"].is_between(0, 1).all()
