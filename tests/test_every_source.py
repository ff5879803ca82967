"""What holds of every registered source: it reads its own files, and one line says what is wrong.

A new source needs its line in `SAMPLES`: files of its form that make a small study.
"""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bayesrep import Study, StudyError, read_study
from bayesrep.sources import READERS
from bayesrep.studies.reading import check_study

COUNTED = {name for name, reader in READERS.items() if reader.has_counts}
ROLES = {"reference": "old", "replication": "new"}
IMAGES = 6000  # of which the placebo takes 2,000


def cifar10h(root: Path):
    counts = np.zeros((IMAGES, 3), dtype=np.int64)
    counts[:, 0] = 30 + np.arange(IMAGES) % 10
    counts[:, 1] = np.arange(IMAGES) % 4
    np.save(root / "counts.npy", counts)
    np.save(root / "labels.npy", np.zeros(IMAGES, dtype=np.int64))
    (root / "net_predictions.json").write_text(json.dumps((np.arange(IMAGES) % 2).tolist()))
    return [root / name for name in ("counts.npy", "labels.npy", "net_predictions.json")], {}


def evals(root: Path):
    rows = [
        (task, f"q{item}", model, float((item + place) % 3 > 0))
        for task in ROLES.values()
        for item in range(4)
        for place, model in enumerate(("a", "b", "c"))
    ]
    schema = ["dataset", "item", "model", "score"]
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(root / "scores.parquet")
    return [root / "scores.parquet"], {**ROLES, "solvers": ["a", "b"]}


def imagenetv2(root: Path):
    data, classes = root / "data", [{"cid": cid, "wnid": f"n{cid:02}"} for cid in range(5)]
    for folder in ("datasets", "metadata", "predictions/old", "predictions/new"):
        (data / folder).mkdir(parents=True)
    (data / "metadata" / "class_info.json").write_text(json.dumps(classes))
    for name in ROLES.values():
        listed = {"image_filenames": [[f"{name}{i}", f"n{i:02}"] for i in range(4)]}
        (data / "datasets" / f"{name}.json").write_text(json.dumps(listed))
        np.save(data / "predictions" / name / "net.npy", np.tile(np.arange(5), (4, 1)))
    counts().write_csv(root / "counts.csv")
    return [data, root / "counts.csv"], ROLES


def madrylab(root: Path):
    rows = [
        (f"{dataset}{i}", dataset, worker > i, i > 1)
        for dataset in ("v1", "v2")
        for i in range(4)
        for worker in range(3)
    ]
    table = pl.DataFrame(rows, schema=["url", "dataset", "selected", "correct_net"], orient="row")
    table.write_parquet(root / "frame.parquet")
    return [root / "frame.parquet"], {}


def tables(root: Path):
    counts().write_csv(root / "counts.csv")
    answers = counts().select("dataset", "image", classifier=pl.lit("net"), label=pl.lit("cat"))
    right = pl.int_range(pl.len()) % 3 > 0
    answers.with_columns(
        label_1=pl.when(right).then(pl.lit("cat")).otherwise(pl.lit("dog")), correct=right
    ).write_parquet(root / "answers.parquet")
    return [root / "counts.csv", root / "answers.parquet"], ROLES


def counts() -> pl.DataFrame:
    rows = [(name, f"{name}{i}", i, 4) for name in ROLES.values() for i in range(4)]
    return pl.DataFrame(rows, schema=["dataset", "image", "selected", "shown"], orient="row")


SAMPLES = {each.__name__: each for each in (cifar10h, evals, imagenetv2, madrylab, tables)}


@pytest.fixture(params=sorted(COUNTED))
def source(request, tmp_path):
    """A source's name, its files and the options that they need."""
    return request.param, *SAMPLES[request.param](tmp_path)


def test_every_source_has_its_sample():
    assert set(SAMPLES) == COUNTED


def test_a_source_makes_the_same_sound_study_each_time(source, tmp_path):
    name, paths, options = source
    study = READERS[name].read(paths, **options).study()
    assert isinstance(study, Study)
    assert study.provenance["source"] == name
    study.write(tmp_path / "study")
    assert check_study(tmp_path / "study") == []
    again = READERS[name].read(paths, **options).study()
    assert read_study(tmp_path / "study").fingerprint() == again.fingerprint()


@pytest.mark.parametrize("name", ["imagenetv2", "tables"])
def test_answers_belong_to_the_study(name, tmp_path):
    paths, options = SAMPLES[name](tmp_path)
    contents = READERS[name].read(paths, **options)
    study = contents.study()
    names = [data.dataset for data in contents.answers]
    assert names == [data.name for data in study.datasets.values()]
    contents.write(tmp_path / "study")
    assert read_study(tmp_path / "study").fingerprint() == study.fingerprint()


@pytest.mark.parametrize("contents", [None, b"", b"\x00\xff" * 40], ids=["gone", "empty", "noise"])
def test_a_bad_file_is_one_clear_error(source, tmp_path, contents):
    name, paths, options = source
    for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
        before = path.read_bytes()
        path.unlink()
        if contents is not None:
            path.write_bytes(contents)
        with pytest.raises(StudyError) as error:
            READERS[name].read(paths, **options)
        assert path.stem in str(error.value) or path.parent.name in str(error.value)
        assert "\n" not in str(error.value)
        path.write_bytes(before)


def test_no_file_is_one_clear_error(source):
    name, _, options = source
    with pytest.raises(StudyError) as error:
        READERS[name].read([], **options)
    assert "\n" not in str(error.value)
