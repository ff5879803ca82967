"""Answers in a study: judged by the same labels of the same images, or of images left out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from refusals import check, refused

from bayesrep import Study, StudyError, read_study
from bayesrep.protocols import read_predictions
from bayesrep.studies.imagenet import synsets
from bayesrep.studies.reading import check_study
from bayesrep.studies.study_folder import StudyFolder

IMAGES = 8
NAMES = [f"i{number}" for number in range(IMAGES)]
CLASSIFIERS = ("a", "b", "c")
WNIDS = list(synsets()[:4]) * 2  # two images of every class


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study with answers: of every image the right one but for the first."""
    correct = np.ones((IMAGES, 3), dtype=bool)
    correct[0] = False
    data = {"selected": 2, "shown": 3, "correct": correct, "images": NAMES, "labels": WNIDS}
    study = Study.from_arrays(
        reference={"name": "v1", **data},
        replication={"name": "v2", **data},
        classifiers=CLASSIFIERS,
    )
    study.write(tmp_path / "study")
    for file in (tmp_path / "study").glob("predictions/*/*.parquet"):
        answers = {
            "label": WNIDS,
            "label_1": [synsets()[99], *WNIDS[1:]],
            "content": np.arange(IMAGES, dtype=np.uint64),
        }
        pl.read_parquet(file).with_columns(**answers_of(answers)).write_parquet(file)
    return tmp_path / "study"


def answers_of(columns):
    return {name: pl.Series(values) for name, values in columns.items()}


def change(file, **columns):
    pl.read_parquet(file).with_columns(**columns).write_parquet(file)


def prediction(folder, classifier, dataset="v2"):
    return folder / "predictions" / dataset / f"{classifier}.parquet"


def relabelled(image, label):
    return pl.when(pl.col("image") == image).then(pl.lit(label)).otherwise(pl.col("label"))


def test_answers_that_agree_break_no_rule(folder):
    assert check_study(folder) == []
    bare = prediction(folder, "b")  # a file may say no more than what is right
    pl.read_parquet(bare).select("image", "correct").write_parquet(bare)
    assert check_study(folder) == []


def test_labels_are_compared_over_classifiers(folder):
    (folder / "images.parquet").write_bytes(as_numbers(folder / "images.parquet"))
    for classifier in ("b", "c"):
        change(
            prediction(folder, classifier),
            label=relabelled("i5", synsets()[77]),
            correct=pl.col("correct") & (pl.col("image") != "i5"),
        )
    (line,) = check_study(folder)
    told = {"classifiers": ["b", "c"], "other_classifier": "a", "images": ["i5"]}
    told["where"] = "predictions/v2"
    check(line, "classifiers-judged-by-other-labels", told)
    with refused(StudyError, "classifiers-judged-by-other-labels", told):
        read_study(folder)


def as_numbers(file):
    """images.parquet with labels that are no wnids, which nothing is compared with."""
    change(file, label=pl.col("image"))
    return file.read_bytes()


def test_labels_are_compared_with_those_of_the_study(folder):
    for classifier in CLASSIFIERS:
        change(
            prediction(folder, classifier),
            label=pl.col("label").shift(1, fill_value=synsets()[99]),
            correct=pl.col("image") == "i0",
        )
    (line,) = check_study(folder)
    told = {"classifiers": list(CLASSIFIERS), "images_file": "images.parquet", "images": NAMES}
    told["where"] = "predictions/v2"
    check(line, "classifiers-judged-by-other-labels-than-study", told)


def test_contents_are_compared_over_classifiers(folder):
    change(prediction(folder, "c"), content=pl.col("content") + (pl.col("image") == "i2"))
    (line,) = check_study(folder)
    told = {"where": "predictions/v2", "classifiers": ["c"], "other_classifier": "a"}
    check(line, "classifiers-shown-something-else", told | {"images": ["i2"]})


def test_correct_is_whether_the_first_answer_is_the_label(folder):
    change(prediction(folder, "b"), correct=pl.col("image") != "i3")
    (line,) = check_study(folder)
    check(line, "correct-contradicts-labels", {"images": ["i0", "i3"]})
    assert line.facts["where"].endswith("b.parquet")


# Images left out


def fail(folder, *images, dataset="v2", **columns):
    table = {"dataset": dataset, "image": images, "reason": "OSError: truncated", **columns}
    pl.DataFrame(table).write_parquet(folder / "failures.parquet")


def test_images_left_out_are_passed_over_everywhere(folder):
    fail(folder, "i3", "i5", left_out=[True, True])
    file = prediction(folder, "b")  # one classifier has no answer, the others have one
    pl.read_parquet(file).filter(pl.col("image") != "i3").write_parquet(file)
    study = read_study(folder)
    assert study.replication.images.tolist() == [n for n in NAMES if n not in ("i3", "i5")]
    assert study.replication.correct.shape == (6, 3)
    assert study.replication.labels is not None
    assert study.replication.labels.tolist() == [WNIDS[k] for k in (0, 1, 2, 4, 6, 7)]
    assert study.replication.left_out == dict.fromkeys(("i3", "i5"), "OSError: truncated")
    assert not study.reference.left_out
    assert StudyFolder(folder).images_left_out == {"v2": dict(study.replication.left_out)}
    (answers,) = read_predictions(folder, ["replication"])
    assert answers.images.tolist() == study.replication.images.tolist()
    # The fingerprint is that of the data.
    other = folder.parent / "other"
    study.write(other)
    fail(other, "i3", left_out=[True])
    assert read_study(other).fingerprint() == study.fingerprint()


@pytest.mark.parametrize("columns", [{}, {"left_out": [False]}])
def test_images_that_fail_are_named_with_what_to_do(folder, columns):
    fail(folder, "i3", **columns)
    assert check_study(folder) == []  # the classifiers have answers, wherever they came from
    for classifier in ("a", "c"):
        file = prediction(folder, classifier)
        pl.read_parquet(file).filter(pl.col("image") != "i3").write_parquet(file)
    (line,) = check_study(folder)
    check(line, "images-not-decoded", {"where": "predictions/v2", "images": ["i3"]})


@pytest.mark.parametrize(
    ("columns", "broken"),
    [
        ({"left_out": ["yes"]}, ("failures-columns-wrong", {"file": "failures.parquet"})),
        ({"left_out": [None]}, ("failures-columns-wrong", {"file": "failures.parquet"})),
        ({"left_out": [True], "reason": [[1]]}, ("column-type-unknown", {"column": "reason"})),
        ({"left_out": [True], "image": [b"i3"]}, ("column-type-unknown", {"column": "image"})),
    ],
)
def test_a_list_of_failures_that_is_none(folder, columns, broken):
    table = {"dataset": ["v2"], "image": ["i3"], "reason": ["broken"]} | columns
    pl.DataFrame(table).write_parquet(folder / "failures.parquet")
    for reading in (read_study, lambda path: StudyFolder(path).images_left_out):
        with refused(StudyError, *broken) as error:
            reading(folder)
        assert "failures.parquet: " in str(error.value)


def test_an_image_cannot_be_left_out_and_there():
    data = {"selected": 2, "shown": 3, "correct": np.ones((1, 1), dtype=bool), "images": ["i0"]}
    study = Study.from_arrays(reference=data, replication=data, classifiers=["a"])
    with refused(StudyError, "image-kept-and-left-out", {"images": ["i0"]}):
        replace(study.reference, left_out={"i0": "broken"})
