"""Items and models in tables: understood where images and classifiers are, and nowhere else."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest
import zoo
from own_tables import read_tables
from refusals import refused

from bayesrep import Study, StudyError, SufficientStatistics, describe_crowd, estimate
from bayesrep.checks.assumptions import assumption
from bayesrep.checks.finding import CHECKS
from bayesrep.checks.width import judge_width
from bayesrep.cli import main
from bayesrep.errors import EstimateWarning
from bayesrep.estimators.annotators import compare_annotators
from bayesrep.sources import READERS
from bayesrep.studies.attempts import Attempts, read_attempts, write_attempts
from bayesrep.studies.column_aliases import in_our_words
from bayesrep.studies.subset_statistics import statistics_on
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME, vocabulary_of, words_of

ROLES = {"reference": "old", "replication": "new"}
OURS = {"item": "image", "model": "classifier", "solved": "correct", "judge": "worker"}


def tables(root, kind, rename):
    """Annotations and predictions, in either's words."""
    said = [
        (t, f"q{i}", f"j{j}", (i + j) % 3 > 0)
        for t in ROLES.values()
        for i in range(4)
        for j in range(3)
    ]
    right = [(t, f"q{i}", m, i % 2 > 0) for t in ROLES.values() for i in range(4) for m in "ab"]
    names = [["dataset", "item", "judge", "selected"], ["dataset", "item", "model", "solved"]]
    files = []
    for place, rows in enumerate((said, right)):
        table = pl.DataFrame(rows, names[place], orient="row")
        table = table.rename(OURS, strict=False) if rename else table
        files.append(root / f"{place}-{rename}.{kind}")
        (table.write_csv if kind == "csv" else table.write_parquet)(files[-1])
    return files


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_in_either_words_are_the_same_study(tmp_path, kind):
    one, other = (read_tables(tables(tmp_path, kind, way), **ROLES) for way in (False, True))
    assert one.fingerprint() == other.fingerprint()
    assert one.reference.answers.workers.tolist() == other.reference.answers.workers.tolist()
    assert words_of(one) == VOCABULARY_OF_NAME["evaluation"]
    assert words_of(other) == VOCABULARY_OF_NAME["images"]


def test_counts_alone_remember_whose_words_they_are_in(tmp_path):
    for way, name in ((False, "evaluation"), (True, "images")):
        contents = READERS["tables"].read(tables(tmp_path, "csv", way)[:1], **ROLES)
        assert contents.lacks("predictions")
        assert vocabulary_of(contents.provenance) == name


@pytest.mark.parametrize(("way", "said"), [(False, "items"), (True, "images")])
def test_tables_are_checked_in_their_own_words(tmp_path, capsys, way, said):
    files = [str(file) for file in tables(tmp_path, "csv", way)]
    named = [word for role, name in ROLES.items() for word in (f"--{role}", name)]
    for given in (files[:1], files):
        assert main(["check", *given, *named]) == 0
        assert f"4 {said}" in capsys.readouterr().out


def test_a_model_of_images_is_a_classifier(tmp_path):
    """`model` is what vision calls its classifiers; what is shown chooses the words."""
    said = [(t, f"{i}.jpg", 1, 2) for t in ROLES.values() for i in range(3)]
    right = [(t, f"{i}.jpg", m, 1) for t in ROLES.values() for i in range(3) for m in "ab"]
    columns = ["dataset", "image", "selected", "shown"], ["dataset", "image", "model", "correct"]
    for place, rows in enumerate((said, right)):
        table = pl.DataFrame(rows, columns[place], orient="row")
        table.write_csv(tmp_path / f"{place}.csv")
    study = read_tables([tmp_path / "0.csv", tmp_path / "1.csv"], **ROLES)
    assert words_of(study) == VOCABULARY_OF_NAME["images"]
    assert study.classifiers == ("a", "b")


def test_items_keep_their_zeros(tmp_path):
    rows = [(t, f"{i:03}", 1, 2) for t in ROLES.values() for i in range(3)]
    table = pl.DataFrame(rows, ["dataset", "item", "selected", "shown"], orient="row")
    table.write_csv(tmp_path / "c.csv")
    datasets = READERS["tables"].read([tmp_path / "c.csv"], **ROLES).datasets
    assert datasets["reference"].images.tolist() == ["000", "001", "002"]


@pytest.mark.parametrize(
    ("columns", "renamed"),
    [
        (["dataset", "image", "model", "resnet"], {}),  # a classifier that is called model
        (["dataset", "image", "solved"], {}),
        (["dataset", "image", "judge"], {}),
        (["image", "item", "classifier", "correct"], {}),
        (["question", "item", "selected", "shown"], {"item": "image"}),
        (["item", "model", "correct"], {"item": "image", "model": "classifier"}),
        (["image", "classifier", "solved"], {"solved": "correct"}),
    ],
)
def test_a_column_is_renamed_only_where_it_means_that(columns, renamed):
    assert in_our_words(columns) == renamed


def test_a_study_of_images_speaks_of_images():
    study = zoo.study("tiny")
    assert (words_of(study).image, words_of(study).annotators) == ("image", "annotators")


OF_IMAGES = re.compile(r"(?i)\b(images?|classifiers?|annotators?|annotations?|workers?|people)\b")
"""Of studies of images alone."""
NO_ARTICLE = re.compile(r"(?i)\ba items?\b|\ban (model|judge)")


@pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")
def test_a_studys_names_are_no_words(capsys, tmp_path):
    """What is called by one of our words keeps its name, and what only looks like one is none."""
    simulated = zoo.cut(zoo.study("tiny"), images=200, classifiers=2)
    names = ("an image classifier", "people (v2)")
    parts = {"name": "hard images", "provenance": {"words": "evaluation"}}
    Study(simulated.datasets, names, **parts).write(tmp_path / "workers")
    options = ("--methods", "raw,naive", "--quiet")
    texts = []
    annotators = ("estimate", "--table", "annotators")
    for name, *more in (("check",), ("estimate", *options), annotators, ("papers compare",)):
        assert main([*name.split(), str(tmp_path / "workers"), *more]) == 0
        texts.append(capsys.readouterr().out)
    assert "hard images: 2 models" in texts[0]
    assert all(name in text for text in (texts[1], texts[3]) for name in names)
    for text in texts:
        for name in (*names, "hard images"):
            text = text.replace(name, "")
        assert not OF_IMAGES.search(text), OF_IMAGES.search(text)
        assert not NO_ARTICLE.search(text), NO_ARTICLE.search(text)


def test_those_who_answered_are_judges(capsys, tmp_path):
    study = zoo.study("workers")
    evaluation = replace(study, provenance={"words": "evaluation"})
    evaluation.write(tmp_path / "s")
    assert main(["answers", "crowd", str(tmp_path / "s")]) == 0
    text = capsys.readouterr().out
    assert "s.e. items" in text
    assert "s.e. judges" in text
    assert not OF_IMAGES.search(text), OF_IMAGES.search(text)
    assert not OF_IMAGES.search(describe_crowd(evaluation).sentence)
    assert "points over workers, and of" in describe_crowd(study).sentence


def test_sentences_are_written_in_the_words_of_the_study():
    posterior = zoo.posterior("tiny", dependence=0.1, **zoo.QUICK)
    words = VOCABULARY_OF_NAME["evaluation"]
    said = "answers about an image have an intraclass correlation of 0.1"
    assert assumption(posterior) == f"annotators' {said}"
    assert assumption(posterior, words) == f"judges' {said.replace('image', 'item')}"
    assert judge_width(np.array([[[0.0]], [[1.0]]]), words).sentence.endswith(
        "More items or more judges per item would narrow it; bayesrep collect plan says how many."
    )


def test_words_go_with_the_statistics():
    study = zoo.study("evaluation")
    whole = SufficientStatistics.of(study)
    words = VOCABULARY_OF_NAME["evaluation"]
    rows = {role: np.arange(9) for role in ("reference", "replication")}
    assert whole.words == (whole + whole).words == statistics_on(study, rows).words == words
    assert SufficientStatistics.of(zoo.study("tiny")).words == VOCABULARY_OF_NAME["images"]
    assert whole.digest() == replace(whole, words=VOCABULARY_OF_NAME["images"]).digest()


def test_warnings_are_in_the_words_of_the_study():
    study = replace(zoo.study("tiny"), provenance={"words": "evaluation"})
    steps = (
        partial(estimate, methods="naive"),
        partial(estimate, methods="jackknife"),
        compare_annotators,
    )
    for step in steps:
        with pytest.warns(EstimateWarning) as heard:
            step(study)
        told = [str(each.message) for each in heard]
        assert any("the replication has no item;" in text for text in told)
        assert not any(map(OF_IMAGES.search, told))
    with pytest.warns(EstimateWarning, match=r"'s items were selected by the counts at hand"):
        estimate(replace(zoo.study("kept"), provenance=study.provenance), methods="raw")


@pytest.mark.parametrize("check", CHECKS)
def test_names_of_checks_are_shown_in_other_words(check):
    shown = VOCABULARY_OF_NAME["evaluation"].restate(check, CHECKS)
    assert not OF_IMAGES.search(shown)
    assert VOCABULARY_OF_NAME["images"].restate(check, CHECKS) == check
    odd = VOCABULARY_OF_NAME["evaluation"].restate("curves of {odd} roles", CHECKS)
    assert odd.endswith("{odd} roles")


def attempts(root, text):
    (root / "tries.csv").write_text(text)
    return read_attempts(root / "tries.csv")


def test_attempts_are_written_and_read(tmp_path):
    held = [
        Attempts("old", model, ["007", "b"], [solved, 0], [5, 3])
        for model, solved in (("m/1", 5), ("n", 1))
    ]
    write_attempts(held, tmp_path)
    for one, other in zip(held, read_attempts(tmp_path), strict=True):
        assert (one.dataset, one.classifier) == (other.dataset, other.classifier)
        for name in ("images", "solved", "attempts"):
            assert getattr(one, name).tolist() == getattr(other, name).tolist()


def test_a_table_of_attempts_counts_or_lists_them(tmp_path):
    (counted,) = attempts(tmp_path, "item,model,solved,attempts\n007,m,2,3\n8,m,0,3\n")
    listed = "item,model,solved\n007,m,1\n8,m,no\n007,m,true\n007,m,0\n8,m,0\n8,m,false\n"
    (each,) = attempts(tmp_path, listed)
    for one in (counted, each):
        assert one.dataset == "tries"
        assert one.images.tolist() == ["007", "8"]
        assert (one.solved.tolist(), one.attempts.tolist()) == ([2, 0], [3, 3])


def test_counts_of_attempts_may_be_categories(tmp_path):
    row = {"item": ["007"], "model": ["m"], "solved": ["2"], "attempts": ["3"]}
    pl.DataFrame(row).cast(pl.Categorical).write_parquet(tmp_path / "tries.parquet")
    (one,) = read_attempts(tmp_path / "tries.parquet")
    assert (one.solved.tolist(), one.attempts.tolist()) == ([2], [3])


def test_a_table_of_attempts_is_read_as_other_tables_are(tmp_path):
    (tmp_path / "tries.csv").write_text("Item;Model;Solved;Attempts\n007;m;2;3\n")
    (one,) = read_attempts(tmp_path / "tries.csv")
    assert (one.images.tolist(), one.solved.tolist()) == (["007"], [2])


COUNTED, LISTED = "item,model,solved,attempts", "item,model,solved"
LINE_2 = "line 2 ('{}')"


@pytest.mark.parametrize(
    ("head", "rows", "rule", "facts"),
    [
        (COUNTED, "a,m,4,3", "solved-exceeds-attempts", {"images": ["a"]}),
        (COUNTED, "a,m,0,0", "no-attempts-at-image", {"images": ["a"]}),
        (COUNTED, "a,m,-1,3", "attempt-column-no-count", {"column": "solved", "images": ["a"]}),
        (COUNTED, "a,m,0.5,3", "count-given-as-share", {"rows": LINE_2.format(0.5)}),
        (COUNTED, "a,m,1,9e99", "count-too-large-in-rows", {"column": "attempts"}),
        (COUNTED, "a,m,1,2\na,m,1,2", "attempts-row-repeated", {"items": ["a by m"]}),
        (LISTED, "a,m,2", "solved-not-true-or-false", {"rows": LINE_2.format(2)}),
        (COUNTED, ",m,1,2", "value-missing-in-rows", {"column": "image", "rows": "line 2"}),
        ("item,solved,attempts", "a,1,2", "attempts-columns-missing", {"columns": ["classifier"]}),
        (COUNTED, "", "attempts-table-empty", {}),
        ("", "", "table-file-empty", {}),
    ],
)
def test_attempts_that_are_none(tmp_path, head, rows, rule, facts):
    with refused(StudyError, rule, facts) as error:
        attempts(tmp_path, f"{head}\n{rows}\n")
    assert rule != "count-given-as-share" or error.value.facts["column"] == "solved"


def test_a_study_without_attempts_says_so(tmp_path):
    with refused(StudyError, "study-without-attempts", {"attempts_file": "attempts.parquet"}):
        read_attempts(tmp_path)
    with refused(StudyError, "neither-study-nor-table"):
        read_attempts(tmp_path / "x.png")
