"""Every command of "From a folder of images to a new test set", typed as the page has it."""

import re
import shlex
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from simulated_workers import write_answers

import bayesrep
from bayesrep import SufficientStatistics
from bayesrep.cli import main
from bayesrep.collect import read_collection
from bayesrep.planning import match_images

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "collect.md"
CLASSES = ("n02123045", "n02123159", "n02124075", "n02099601", "n04254680", "n01440764")


BEGINNING, _, CHOICE = re.split("\n## (?:Plan|Choose)", PAGE.read_text("utf-8"))


def typed(text):
    """The commands of a part of the page, as words."""
    blocks = re.findall(r"```console\n(.*?)```", text, flags=re.S)
    lines = "".join(blocks).replace("\\\n", "").splitlines()
    return [shlex.split(line.removeprefix("$ bayesrep ")) for line in lines]


def answer_tasks(words):
    """Save what people say meanwhile, where a command reads it."""
    if words[:2] == ["collect", "read"] and "--table" not in words:
        write_answers(Path(words[3]), read_collection(words[2]))


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
    for words in typed(BEGINNING):
        answer_tasks(words)
        few = ["--bootstrap", "5"] if words[0] == "report" else []  # intervals that nobody reads
        status = main([*words, *few])
        out, err = capsys.readouterr()
        assert status in ((0, 1) if words[0] == "report" else (0,)), (words, err)
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


def test_what_is_chosen_is_measured_again(folder, monkeypatch, capsys):
    """From counts of both to the study of the reference and the chosen, in three commands."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("bayesrep.planning.match_images", partial(match_images, replicates=2))
    Path("images", "candidates").symlink_to("v2")
    of_both = {"v1": "v1", "v2": "candidates"}
    predictions = pl.read_csv("predictions.csv").with_columns(pl.col("dataset").replace(of_both))
    images = predictions.select("dataset", "image", "label").unique(maintain_order=True)
    selected = np.random.default_rng(0).binomial(10, 0.7, len(images))
    images.with_columns(selected=selected, shown=10).write_csv("counts.csv")
    match, tasks, read = typed(CHOICE)[:3]
    assert main(match) == 0
    chosen = pl.read_csv("chosen.csv")
    assert chosen["dataset"].to_list() == ["candidates"] * 60
    asked = pl.concat([images.filter(dataset="v1").select("dataset", "image"), chosen[:, :2]])
    predictions.join(asked, on=["dataset", "image"]).write_csv("chosen-predictions.csv")
    assert main(tasks) == 0
    answer_tasks(read)
    assert main(read) == 0, capsys.readouterr().err
    study = bayesrep.read_study("second-study")
    assert {*study.replication.images} == {*chosen["image"]}
    assert len(study.reference.images) == 300
    assert (study.reference.name, study.replication.name) == ("v1", "candidates")
    assert study.replication.shown.max() == 10
    assert study.replication.answers is not None
    # The grids of a collection are known: every answer about an image is of one.
    contexts = SufficientStatistics.of(study).replication.contexts
    assert contexts is not None
    assert contexts.images.sum() == len(study.replication.images)
