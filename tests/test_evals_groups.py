"""Tasks that are one data set, splits, old lists, and what logs hold before anything is chosen."""

import json
import os
from pathlib import Path

import pytest
import test_evals as makers
from refusals import check, refusal, refused

from bayesrep import OptionError, StudyError
from bayesrep.cli import main
from bayesrep.errors import TableWarning
from bayesrep.sources.evals import read_evaluations
from bayesrep.sources.evals.survey import list_contents

BOTH, TASKS, solves = makers.BOTH, makers.TASKS, makers.solves
refuse = makers.refuse
GROUPS = {
    "bench": ["bench_hard", "bench_c"],
    "bench_hard": ["bench_a", "bench_b"],
    "redux": ["redux_a", "redux_b"],
    "redux_a": [],
}
SIZES = {"bench_a": 3, "bench_b": 4, "bench_c": 2, "redux_a": 5, "redux_b": 2}


def group_logs(root, models=("org/m", "org/mm"), groups=GROUPS, **versions):
    """What lm-evaluation-harness leaves of two groups, one of which holds another."""
    for model in models:
        for task, items in SIZES.items():
            file = makers.lm_eval(root, model, task, items=items)
        (results,) = file.parent.glob("results_*.json")
        facts = json.loads(results.read_text())
        facts |= {"versions": {**dict.fromkeys(SIZES, 1), **versions}, "group_subtasks": groups}
        results.write_text(json.dumps(facts))
    return root


def test_a_group_that_results_know_is_one_data_set(tmp_path):
    logs = group_logs(tmp_path, bench_b=7)  # tasks of a group need not be of one version
    found = read_evaluations([logs], reference="bench", replication="redux")
    bench, redux = found.answers
    assert set(bench.images) == {f"{t}/{n}" for t in SIZES if t[0] == "b" for n in range(SIZES[t])}
    assert len(redux.images) == 7
    for place, model in enumerate(bench.classifiers):
        right = dict(zip(bench.images.tolist(), bench.correct[place].tolist(), strict=True))
        for task in ("bench_a", "bench_b", "bench_c"):
            for item in range(SIZES[task]):
                assert right[f"{task}/{item}"] == solves(model, task, item)
    assert any("'bench' is tasks" in note and "'bench_c'" in note for note in found.notes)


def test_two_versions_of_a_task_in_a_group_are_refused(tmp_path):
    group_logs(tmp_path, models=("one",))
    group_logs(tmp_path, models=("other",), bench_b=2)
    told = {"dataset": "bench_b", "version": "version 2", "other_version": "version 1"}
    refuse([tmp_path], "data-set-versions-differ", told, reference="bench", replication="redux")


def test_a_group_is_of_names_or_patterns_where_nothing_says_of_which(tmp_path):
    logs = group_logs(tmp_path, groups={})
    with refused(OptionError, "no-log-of-data-set", {"dataset": "bench"}):
        read_evaluations([logs], reference="bench", replication="redux")
    given = {"bench": ["bench_a", "bench_c"], "redux": ["redux_*"]}
    found = read_evaluations([logs], reference="bench", replication="redux", group=given)
    assert [len(each.images) for each in found.answers] == [5, 7]
    with refused(StudyError, "group-lacks-tasks", {"group": "bench", "tasks": ["bench_z"]}):
        group = {"bench": ["bench_a", "bench_z"]}
        read_evaluations([logs], reference="bench", replication="redux_a", group=group)
    with refused(OptionError, "task-in-two-data-sets", {"tasks": ["redux_a", "redux_b"]}):
        group = {"bench": ["*_a", "*_b"], "redux": ["redux_*"]}
        read_evaluations([logs], reference="bench", replication="redux", group=group)
    with refused(OptionError, "task-in-two-data-sets", {"tasks": ["bench_a"]}):
        group = {"bench": ["bench_*"]}
        read_evaluations([logs], reference="bench", replication="bench_a", group=group)
    with refused(OptionError, "group-of-no-data-set", {"groups": ["other"]}):
        group = {"other": ["bench_a"]}
        read_evaluations([logs], reference="bench_a", replication="redux_a", group=group)
    with refused(OptionError, "group-called-as-task", {"tasks": ["bench_b"]}):
        group = {"bench_a": ["bench_b"]}
        read_evaluations([logs], reference="bench_a", replication="redux_a", group=group)


def test_a_group_that_lacks_a_task_is_refused_and_may_be_cut(tmp_path):
    logs = group_logs(tmp_path)
    for file in tmp_path.rglob("samples_bench_c_*"):
        file.unlink()
    names = {"reference": "bench", "replication": "redux"}
    with refused(StudyError, "group-lacks-tasks", {"tasks": ["bench_c"], "known": 3}):
        read_evaluations([logs], **names)
    found = read_evaluations([logs], **names, group={"bench": ["bench_a", "bench_b"]})
    assert len(found.answers[0].images) == 7


def test_groups_are_of_every_tool(tmp_path):
    for task in ("mmlu:subject=law", "mmlu:subject=art", "new"):
        makers.inspect_json(tmp_path, "m", task, items=3)
    found = read_evaluations(
        [tmp_path], reference="mmlu", replication="new", group={"mmlu": ["mmlu:subject=*"]}
    )
    assert sorted(found.answers[0].images)[0] == "mmlu:subject=art/0"
    assert len(found.answers[0].images) == 6


def test_the_command_takes_groups(tmp_path):
    logs, out = group_logs(tmp_path / "logs", groups={}), tmp_path / "out"
    words = ["import", "evals", logs, "--reference", "bench", "--replication", "redux"]
    words += ["--group", "bench=bench_a,bench_b", "--group", "redux=redux_*", "--out", out]
    assert main([str(word) for word in words]) == 0
    check(
        refusal([*words[:-1], tmp_path / "o", "--key", "content", "--group", "x=bench_c"]),
        "group-of-no-data-set",
    )


# Early releases of lm-evaluation-harness


def early(root, task, items=6):
    """0.4.1 wrote one indented list under .jsonl, called by the model's arguments."""
    root.mkdir(exist_ok=True)
    rows = [
        {
            "doc_id": item,
            "doc": {"q": f"{item}"},
            "resps": [["4"]],
            "filtered_resps": ["4"],
            "acc": float(solves("org/m", task, item)),
            "acc_norm": 0.0,
        }
        for item in range(items)
    ]
    facts = {"results": {"old": {}}, "config": {"model_args": "pretrained=org/m,dtype=auto"}}
    (root / "results.json").write_text(json.dumps(facts))
    file = root / f"pretrained__org__m,dtype__auto_{task}.jsonl"
    file.write_text(json.dumps(rows, indent=2))
    return file


@pytest.mark.parametrize("whole", [True, False])
def test_a_list_under_the_name_of_json_lines(tmp_path, whole):
    files = [early(tmp_path / "run", task) for task in TASKS]
    given = [tmp_path / "run"] if whole else files
    found = read_evaluations(given, **BOTH, metric="acc")
    for data in found.answers:
        assert data.classifiers == ("org/m",)
        assert data.correct[0].tolist() == [solves("org/m", data.dataset, n) for n in range(6)]
    files[0].write_text(files[0].read_text()[:-30])
    refuse(given, "json-file-damaged", {"where": str(files[0])}, metric="acc")
    files[0].write_text('[{"doc_id": 0, "resps": [], "acc": 1.0}, 7]')
    refuse(given, "json-element-no-object", {"element": 2}, metric="acc")


def test_every_eval_ever_may_be_a_list_too(tmp_path):
    file = makers.every(tmp_path)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    expected = read_evaluations([file], **BOTH).answers[0].correct.tolist()
    file.write_text("\ufeff\n" + json.dumps(rows, indent=1))
    assert read_evaluations([file], **BOTH).answers[0].correct.tolist() == expected


# What there is


def test_the_command_lists_what_logs_hold(tmp_path, capsys):
    logs = group_logs(tmp_path / "logs")
    makers.lm_eval(logs, "third", "bench_a", metrics=("acc", "f1"), filters=("x", "y"))
    assert main(["import", "evals", str(logs)]) == 0
    said = capsys.readouterr().out
    assert "Group bench: tasks 'bench_a', 'bench_b', 'bench_c'" in said
    assert "Models: org/m, org/mm, third" in said
    assert main(["import", "evals", str(logs), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    (row,) = (row for row in facts["datasets"] if row["dataset"] == "bench_a")
    assert row["items"] == 6
    assert row["metrics"] == ["exact_match", "acc", "f1"]
    assert row["filters"] == ["none", "x", "y"]
    assert facts["groups"]["redux"] == ["redux_a", "redux_b"]
    check(refusal(["import", "evals"]), "import-needs-file-and-out", {"source": "evals"})
    check(refusal(["import", "tables", "x.csv"]), "import-needs-file-and-out")


def test_scorers_and_attempts_are_told_before_one_is_chosen(tmp_path):
    makers.inspect_eval(tmp_path, "m", "old", epochs=3, scorers=("match", "judge"))
    table, groups = list_contents([tmp_path])
    assert table.row(0, named=True) == {
        "dataset": "old",
        "items": 6,
        "attempts": 3,
        "models": ["m"],
        "metrics": [],
        "filters": [],
        "scorers": ["match", "judge"],
    }
    assert groups == {}


def test_what_is_no_file_in_a_folder_of_logs_is_named(tmp_path):

    files = [makers.lm_eval(tmp_path / "logs", "m", task) for task in TASKS]
    (tmp_path / "logs" / "gone.jsonl").symlink_to(tmp_path / "annexed")
    os.mkfifo(tmp_path / "logs" / "pipe.eval")
    (tmp_path / "logs" / "null.json").symlink_to("/dev/null")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "logs" / "more").symlink_to(tmp_path / "elsewhere")
    with pytest.warns(TableWarning) as warned:
        found = read_evaluations([tmp_path / "logs"], **BOTH)
    assert found.answers[0].correct.shape == (1, 6)
    told = sorted(Path(str(each.message).split(": is ")[0]).name for each in warned)
    assert told == ["gone.jsonl", "more", "null.json", "pipe.eval"]
    refuse([*files, tmp_path / "logs" / "pipe.eval"], "evaluation-log-no-file")
