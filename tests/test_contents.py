"""A study that is whole or not yet, as one value: what it lacks, and that a folder keeps it."""

import numpy as np
import pytest
import zoo
from refusals import refused

from bayesrep import StudyError
from bayesrep.sources import READERS
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.attempts import Attempts
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study_folder import StudyFolder

IMAGES = np.array(["a", "b", "ä c"])


def annotated(name: str, classifiers: int = 0) -> AnnotatedSet:
    correct = np.ones((3, classifiers), dtype=bool)
    return AnnotatedSet(name, IMAGES, np.array([1, 2, 3]), np.full(3, 4), correct)


def answered(name: str) -> Predictions:
    zeros = np.zeros(3, dtype=np.int8)
    return Predictions(name, IMAGES, ("cat", "dog"), zeros, ("net",), zeros[None, :, None])


COUNTS = {"reference": annotated("v1"), "replication": annotated("v2")}
ANSWERS = [answered("v1"), answered("v2")]


@pytest.mark.parametrize(
    ("contents", "lacking", "rule"),
    [
        (StudyContents(COUNTS), ["predictions"], "study-lacks-predictions"),
        (StudyContents(answers=ANSWERS, name="mine\x1b"), ["counts"], "study-lacks-counts"),
        (StudyContents(), ["counts", "predictions"], "study-lacks-counts"),
    ],
)
def test_what_is_still_to_come_is_said(contents, lacking, rule):
    assert [need for need in ("counts", "predictions") if contents.lacks(need)] == lacking
    where = "mine\\x1b" if contents.name else "study"
    with refused(StudyError, rule, {"where": where}):
        contents.study()


def test_a_whole_study_comes_back_from_its_folder(tmp_path):
    study = zoo.study("tiny")
    tried = [Attempts(study.reference.name, "net", study.reference.images[:1], [1], [2])]
    contents = StudyContents.from_study(study, attempts=tried)
    assert not contents.lacks("counts")
    assert not contents.lacks("predictions")
    contents.write(tmp_path / "study")
    again = StudyContents.open(tmp_path / "study")
    assert again.study() == study
    assert [each.solved.tolist() for each in again.attempts] == [[1]]


def test_answers_come_back_and_counts_are_added_to_them(tmp_path):
    """Whichever comes first, both together are the study."""
    told = {"words": "evaluation", "from": "ä"}
    StudyContents(answers=ANSWERS, provenance=told).write(tmp_path / "a")
    waiting = StudyContents.open(tmp_path / "a")
    assert waiting.lacks("counts")
    assert waiting.provenance == told
    assert [each.dataset for each in waiting.answers] == ["v1", "v2"]
    assert waiting.answers[0].correct.all()
    StudyContents(COUNTS, name="mine", provenance={"source": "tables"}).write(tmp_path / "a")
    whole = StudyContents.open(tmp_path / "a").study()
    assert (whole.name, whole.classifiers) == ("mine", ("net",))
    assert whole.provenance == {**told, "counts": {"source": "tables"}}
    assert whole.replication.correct.all()


def test_counts_alone_are_a_folder_that_awaits_its_predictions(tmp_path):
    StudyContents(COUNTS).write(tmp_path / "s")
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == [
        "counts.parquet",
        "images.parquet",
        "study.json",
    ]
    with refused(StudyError, "study-without-classifiers"):
        StudyContents.open(tmp_path / "s")
    with refused(StudyError, "study-path-exists"):
        StudyContents(COUNTS).write(tmp_path / "s")
    StudyContents(COUNTS).write(tmp_path / "s", force=True)


def test_workers_have_new_names_each_time_unless_they_are_kept(tmp_path):
    rows = [
        f"{name},{image},{worker},1" for name in ("v1", "v2") for image in "ab" for worker in "xy"
    ]
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(["dataset,image,worker,selected", *rows]))
    named = {"reference": "v1", "replication": "v2"}

    def workers(**options):
        contents = READERS["tables"].read([path], **named, **options)
        assert contents.lacks("predictions")
        return [data.answers.workers.tolist() for data in contents.datasets.values()]

    assert workers() == [["x", "y"], ["x", "y"]]
    first, again = workers(keep_workers=False), workers(keep_workers=False)
    assert sorted(first[0]) == sorted(first[1]), "a worker of both data sets is one"
    assert {*first[0]}.isdisjoint({*again[0], "x", "y"})


def test_a_folder_says_what_it_holds_before_and_after_its_counts(tmp_path):
    there = tmp_path / "a"
    assert not StudyFolder(there).is_study
    assert not StudyFolder(there).awaits_counts
    with refused(StudyError, "study-path-missing", {"path": str(there)}):
        StudyFolder(there).find_parts()
    StudyContents(answers=ANSWERS, provenance={"from": "ä"}).write(there)
    waiting = StudyFolder(there)
    assert (waiting.is_study, waiting.awaits_counts, waiting.manifest) == (False, True, None)
    assert waiting.roles == {"reference": "v1", "replication": "v2"}
    assert waiting.dataset_names(["replication", "v1"]) == ["v2", "v1"]
    assert waiting.find_parts() == {"answers", "labels"}
    assert waiting.find_parts(["v1", "v9"]) == set()
    StudyContents(COUNTS, name="mine").write(there)
    study = StudyFolder(there)
    assert (study.is_study, study.awaits_counts) == (True, False)
    assert study.find_parts() == {"answers", "labels", "counts", "study"}
    assert study.provenance["from"] == "ä"
    (there / "study.json").unlink()
    assert not study.awaits_counts, "a study that has lost its study.json has its counts"
    (tmp_path / "empty").mkdir()
    with refused(StudyError, "neither-study-nor-predictions"):
        StudyFolder(tmp_path / "empty").find_parts()


@pytest.mark.parametrize(
    ("file", "held", "rule"),
    [
        ("roles.json", '["v1"]', "roles-file-not-mapping"),
        ("roles.json", '{"reference": 1}', "roles-file-not-mapping"),
        ("provenance.json", "1", "provenance-file-not-object"),
    ],
)
def test_a_broken_file_beside_answers_is_named(tmp_path, file, held, rule):
    StudyContents(answers=ANSWERS).write(tmp_path / "a")
    path = tmp_path / "a" / file
    path.write_text(held)
    with refused(StudyError, rule, {"file": str(path)}):
        _ = StudyFolder(tmp_path / "a").roles, StudyFolder(tmp_path / "a").provenance
