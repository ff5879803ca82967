"""What data allow to say: of studies, answers without counts, attempts and logs."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zoo
from refusals import refused

from bayesrep import Study, StudyError, WorkerAnswers
from bayesrep.cli import main
from bayesrep.sources.data_uses import are_logs, judge_logs
from bayesrep.studies.attempts import Attempts
from bayesrep.studies.capabilities import (
    looks_cut,
    of_attempts,
    of_study,
    panel_of,
    supports_adjustment,
)
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME


def a_study(low=0, shown=5, size=200, selection=None, answers=None, seed=0):
    rng = np.random.default_rng(seed)
    sides = {}
    for role in ("reference", "replication"):
        selected = rng.integers(low, shown + 1, size=size)
        sides[role] = {"selected": selected, "shown": shown, "selection": selection}
        sides[role]["correct"] = rng.random((size, 2)) < 0.7
    return Study.from_arrays(**sides, classifiers=["a", "b"])


def states(study, attempts=()):
    return {each.what: each.state for each in of_study(study, attempts)}


def test_counts_on_both_sides_support_the_comparison():
    found = of_study(a_study())
    assert supports_adjustment(found)
    assert states(a_study())["adjusted comparison"] == "yes"
    assert "5 and 5 answers per image" in found[1].because


def test_few_answers_are_named_with_what_they_lack():
    found = of_study(a_study(shown=3))
    assert [each.state for each in found[1:3]] == ["with care", "with care"]
    assert "400 more answers, for 5 each" in found[1].missing
    assert supports_adjustment(found)
    one = of_study(a_study(shown=1))
    assert not supports_adjustment(one)
    assert "800 more answers" in one[1].missing


def test_counts_that_look_selected_by_themselves_support_nothing_until_the_rule_is_said():
    cut = a_study(low=3)
    assert looks_cut(cut.reference)[:2] == (3, 5)
    found = of_study(cut)
    assert not supports_adjustment(found)
    assert "--selection 'reference=at least 3 of 5'" in found[1].missing
    told = of_study(a_study(low=3, selection="at least 3 of 5"))
    assert supports_adjustment(told)
    assert told[1].state == "with care"
    fresh = of_study(a_study(low=3, selection="at least 3 of 5 by other answers"))
    assert fresh[1].state == "yes"
    assert not supports_adjustment(of_study(a_study(low=5, selection="all of 5")))


def test_a_lowest_count_that_twenty_images_share_looks_cut():
    """Nineteen are too few, none looks cut whose lowest count is 0, and one answer says nothing."""

    def side(lowest, many, shown=5):
        selected = np.r_[np.full(many, lowest), np.full(200 - many, shown)]
        data = {"selected": selected, "shown": shown, "correct": np.ones((200, 1), bool)}
        return Study.from_arrays(reference=data, replication=data, classifiers=["a"]).reference

    assert looks_cut(side(3, 20)) == (3, 5, 20)
    assert looks_cut(side(3, 19)) is None
    assert looks_cut(side(0, 100)) is None
    assert looks_cut(side(1, 100, shown=1)) is None
    for name in ("tiny", "images"):
        assert [looks_cut(each) for each in zoo.study(name).datasets.values()] == [None, None]


def test_a_panel_is_no_crowd():
    image, worker = np.repeat(np.arange(50), 3), np.tile(["x", "y", "z"], 50)
    sides = {}
    for role in ("reference", "replication"):
        answers = WorkerAnswers.of(image, worker, np.random.default_rng(1).random(150) < 0.7)
        selected, shown = answers.counts(50)
        sides[role] = {"selected": selected, "shown": shown, "answers": answers}
        sides[role]["correct"] = np.ones((50, 1), bool)
    study = Study.from_arrays(**sides, classifiers=["a"])
    assert panel_of(study.reference) == 3
    who = next(each for each in of_study(study) if each.what == "who answered")
    assert who.state == "with care"
    assert "panel=true" in who.missing


@pytest.mark.parametrize(("most", "state"), [(1, "no"), (4, "yes")])
def test_attempts(most, state):
    each = Attempts("v1", "m", np.array(["a", "b"]), np.array([0, 1]), np.array([most, most]))
    words = VOCABULARY_OF_NAME["evaluation"]
    assert of_attempts([each], words).state == state
    assert of_attempts([], words).state == "no"


def test_columns_and_sentences_are_in_the_words_of_the_study():
    each = Attempts("v1", "m", np.array(["a", "b"]), np.array([0, 1]), np.array([3, 3]))
    for shown in (1, 3, 5):
        study = a_study(shown=shown)
        study = replace(study, provenance={"words": "evaluation"})
        for attempts in ([], [each]):
            found = of_study(study, attempts)
            said = " ".join(f"{one.because} {one.missing}" for one in found)
            assert "a table of dataset, item, judge, selected" in said
            assert not re.search(r"\b(image|classifier|annotator|worker)s?\b", said)
            found = of_study(replace(study, provenance={}), attempts)
            said = " ".join(f"{one.because} {one.missing}" for one in found)
            assert "a table of dataset, image, worker, selected" in said
            assert not re.search(r"\b(item|model|judge)s?\b", said)


def test_the_command_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    a_study().write("sound")
    assert main(["check", "sound", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["supported"] is True
    a_study(low=3).write("cut")
    assert main(["check", "cut"]) == 0
    said = capsys.readouterr().out
    assert "look kept by these very counts" in said
    assert "cannot tell a real drop" in said
    rows = {"item": ["a", "b"], "model": "m<b>", "solved": [1, 0], "attempts": 3}
    pl.DataFrame(rows).write_csv("attempts.csv")
    assert main(["check", "attempts.csv"]) == 0
    assert "pass@k: yes" in capsys.readouterr().out


def test_a_study_without_its_manifest_is_no_logs(tmp_path, capsys):
    a_study().write(tmp_path / "lost")
    (tmp_path / "lost" / "study.json").unlink()
    assert main(["check", str(tmp_path / "lost")]) == 1
    assert "study.json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("make", "rule", "fact"),
    [
        (lambda path: None, "evaluation-log-not-found", "path"),
        (lambda path: path.mkdir(), "no-evaluation-log", "where"),
        (lambda path: path.write_text("{}"), "unknown-log-ending", "path"),
    ],
)
def test_what_is_nothing_known_is_one_line(make, rule, fact, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "thing")
    with refused(StudyError, rule, {fact: "thing"}):
        judge_logs([Path("thing")])


def test_scores_that_nobody_numbered_are_attempts_where_they_differ(tmp_path):
    for scores, state in (([1, 0, 1], "yes"), ([1, 1, 1], "no")):
        rows = {"item": ["a", "a", "b"], "model": "m", "score": scores, "task": "t"}
        pl.DataFrame(rows).write_csv(tmp_path / "scores.csv")
        _, found = judge_logs([tmp_path / "scores.csv"])
        what = of_attempts([], VOCABULARY_OF_NAME["evaluation"]).what
        (passes,) = (each for each in found if each.what == what)
        assert passes.state == state
        assert ("--repeats" in passes.missing) == (state == "yes")


def test_logs_are_told_from_tables_of_a_study(tmp_path, capsys):
    counts, answers = tmp_path / "c.csv", tmp_path / "p.csv"
    counts.write_text("dataset,image,selected,shown\nv1,a,1,2\n")
    answers.write_text("dataset,image,classifier,correct\nv1,a,m,1\n")
    assert not are_logs([counts])
    assert not are_logs([answers, counts])
    assert not are_logs([tmp_path])  # tables, of which one is read by itself
    lm_eval(tmp_path / "logs", "m", "old")
    lm_eval(tmp_path / "logs", "m", "new")
    assert main(["check", str(tmp_path / "logs")]) == 0
    assert "raw comparison: yes" in capsys.readouterr().out


def lm_eval(root, model, task, items=30, filters=("none",), score=lambda item: item % 2):
    """Samples of lm-evaluation-harness."""
    folder = root / model
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"doc_id": item, "resps": [], "filter": each, "metrics": ["acc"], "acc": float(score(item))}
        for each in filters
        for item in range(items)
    ]
    (folder / f"samples_{task}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "results.json").write_text(json.dumps({"results": {}, "model_name": model}))


def of_logs(*paths):
    what, found = judge_logs(list(paths))
    return {each.what: each for each in found}


def test_models_of_logs_may_be_solvers_which_costs_nothing(tmp_path):
    for model in ("a", "b"):
        for task in ("old", "new"):
            lm_eval(tmp_path, model, task)
    assert "--solvers" not in of_logs(tmp_path)["adjusted comparison"].missing  # one would be left
    lm_eval(tmp_path, "c", "old")
    assert "--solvers" not in of_logs(tmp_path)["adjusted comparison"].missing  # on one set alone
    lm_eval(tmp_path, "c", "new")
    found = of_logs(tmp_path)
    assert "at no cost, import evals --solvers" in found["adjusted comparison"].missing
    assert "up to 2 models" in found["adjusted comparison"].missing
    assert (found["raw comparison"].state, found["raw comparison"].missing) == ("yes", "")


@pytest.mark.parametrize(
    ("odd", "state", "told"),
    [
        ({"filters": ("strict", "flexible")}, "with care", "--where filter"),
        ({"score": lambda item: item / 30}, "with care", "--threshold"),
        ({"score": lambda item: float("inf")}, "no", "'Infinity'"),
        ({"filters": ("none", "none"), "score": None}, "no", "several scores"),
    ],
)
def test_what_import_refuses_is_not_called_comparable(tmp_path, odd, state, told):
    if odd.get("score", 0) is None:  # the second filter says something else
        values = iter([0.0] * 30 + [1.0] * 30)
        odd = {**odd, "score": lambda item: next(values)}
    lm_eval(tmp_path, "m", "old")
    lm_eval(tmp_path, "m", "new", **odd)
    raw = of_logs(tmp_path)["raw comparison"]
    assert raw.state == state
    assert "import evals refuses new" in raw.because
    assert told in raw.because
    lm_eval(tmp_path, "m", "third")
    raw = of_logs(tmp_path)["raw comparison"]  # the two others can be compared
    assert raw.state == "with care"
    assert told in raw.missing


def test_groups_that_logs_know_are_data_sets(tmp_path):
    parts = {"bench": ["b_x", "b_y"], "redux": ["r_x", "r_y"], "b_part": ["b_x"], "gone": ["z"]}
    for tasks in parts.values():
        for task in tasks[: 2 * (tasks != ["z"])]:
            lm_eval(tmp_path, "m", task)
    file = tmp_path / "m" / "results.json"
    file.write_text(json.dumps({"results": {}, "model_name": "m", "group_subtasks": parts}))
    raw = of_logs(tmp_path)["raw comparison"]
    assert raw.because == "1 model; 60 items in bench, 60 items in redux"


def test_a_model_that_lacks_half_is_not_called_comparable(tmp_path):
    for task in ("old", "new"):
        lm_eval(tmp_path, "whole", task)
        lm_eval(tmp_path, "half", task, items=15)
    raw = of_logs(tmp_path)["raw comparison"]
    assert raw.state == "no"
    assert "--common" in raw.because
