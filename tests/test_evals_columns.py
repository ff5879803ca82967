"""Tables and JSON whose columns are called anyhow: true formats of tools that have no reader."""

import gzip
import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import polars as pl
import pytest
from refusals import check, refusal, refused

from bayesrep import OptionError, StudyError
from bayesrep.cli import main
from bayesrep.sources.evals import read_evaluations
from bayesrep.sources.evals.contents import list_contents

_spec = spec_from_file_location("makers", Path(__file__).with_name("test_evals.py"))
makers = module_from_spec(_spec)
_spec.loader.exec_module(makers)
BOTH, TASKS, solves = makers.BOTH, makers.TASKS, makers.solves


def expected(model, task, items=6):
    return [solves(model, task, item) for item in range(items)]


def right(found):
    return {
        (data.dataset, model): data.correct[place].tolist()
        for data in found.answers
        for place, model in enumerate(data.classifiers)
    }


def lines(file, rows):
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.mark.parametrize("kind", [pl.Float64, pl.Float32, pl.String])
def test_items_that_are_whole_floats_are_those_of_another_file(tmp_path, kind):
    for task, numbers in (("old", pl.Int64), ("new", pl.Int64 if kind == pl.String else kind)):
        items = pl.Series("item", [1, 2, 3]).cast(numbers)
        items = items.cast(pl.String) if kind == pl.String and task == "new" else items
        table = pl.DataFrame([items]).with_columns(
            model=pl.lit("m"), score=items.cast(pl.Int64) % 2
        )
        table.write_parquet(tmp_path / f"{task}.parquet")
    files = [tmp_path / "old.parquet", tmp_path / "new.parquet"]
    found = read_evaluations(files, reference="old", replication="new")
    assert [list(data.images) for data in found.answers] == [["1", "2", "3"]] * 2


# What a column is, is never guessed


@pytest.mark.parametrize(
    ("beside", "field", "columns", "option"),
    [
        ({"correct": 0}, "score", "'score' and 'correct'", "--score"),
        (
            {"solved": 0, "is_correct": 1},
            "score",
            "'score' and 'solved' and 'is_correct'",
            "--score",
        ),
        ({"sample_id": "s"}, "item", "'item' and 'sample_id'", "--item"),
        ({"question": "why", "id": 3}, "item", "'item' and 'question' and 'id'", "--item"),
        ({"model_id": "n"}, "model", "'model' and 'model_id'", "--model"),
        ({"category": "x"}, "data set", "'task' and 'category'", "--dataset"),
        ({"judge": "x", "scorer": "y"}, "scorer", "'judge' and 'scorer'", "leave all but one"),
    ],
)
def test_of_two_columns_none_is_taken(tmp_path, beside, field, columns, option):
    rows = [
        {"task": task, "item": f"q{n}", "model": "m", "score": int(solves("m", task, n)), **beside}
        for task in TASKS
        for n in range(6)
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "s.csv")
    told = {"field": field, "columns": columns}
    with refused(OptionError, "score-column-ambiguous", told) as error:
        read_evaluations([tmp_path / "s.csv"], **BOTH)
    assert option in str(error.value)
    if option.startswith("--"):
        chosen = {option[2:]: {"data set": "task"}.get(field, field)}
        found = read_evaluations([tmp_path / "s.csv"], **BOTH, **chosen)
        assert right(found) == {(task, "m"): expected("m", task) for task in TASKS}


def test_which_of_two_scores_is_what_the_user_says(tmp_path):
    rows = [(t, f"q{n}", "m", n % 2, n % 3 == 0) for t in TASKS for n in range(6)]
    names = ["dataset", "item", "model", "score", "correct"]
    pl.DataFrame(rows, names, orient="row").write_parquet(tmp_path / "s.parquet")
    by = {
        name: read_evaluations([tmp_path / "s.parquet"], **BOTH, score=name).answers[0]
        for name in ("score", "correct")
    }
    assert by["score"].correct[0].tolist() == [False, True] * 3
    assert by["correct"].correct[0].tolist() == [True, False, False] * 2


def test_any_column_may_be_what_the_user_says(tmp_path):
    rows = [
        {"Frage": f"0{n}", "Modell": "m", "Punkte": int(solves("m", t, n)), "Satz": t}
        for t in TASKS
        for n in range(6)
    ]
    table = pl.DataFrame(rows)
    chosen = {"item": "Frage", "model": "Modell", "score": "Punkte", "dataset": "Satz"}
    for kind in ("csv", "parquet", "jsonl"):
        file = tmp_path / f"t.{kind}"
        {"csv": table.write_csv, "parquet": table.write_parquet, "jsonl": table.write_ndjson}[kind](
            file
        )
        found = read_evaluations([file], **BOTH, **chosen)
        assert right(found) == {(t, "m"): expected("m", t) for t in TASKS}
        assert found.answers[0].images.tolist() == [f"0{n}" for n in range(6)]
        with refused(StudyError, "score-table-lacks-column", {"column": "item"}):
            read_evaluations([file], **BOTH, **{**chosen, "item": None})
    with refused(StudyError, "table-lacks-columns", {"columns": ["Noten"]}):
        read_evaluations([tmp_path / "t.csv"], **BOTH, **{**chosen, "score": "Noten"})
    with refused(StudyError, "key-found-nowhere", {"key": "Noten"}):
        read_evaluations([tmp_path / "t.jsonl"], **BOTH, **{**chosen, "score": "Noten"})


@pytest.mark.parametrize("kind", ["csv", "jsonl", "ndjson", "json", "list.jsonl"])
def test_columns_that_are_known_need_no_option(tmp_path, kind):
    rows = [
        {"dataset": t, "item": f"q{n}", "model": m, "score": solves(m, t, n, a), "attempt": a}
        for m in ("m", "mm")
        for t in TASKS
        for n in range(6)
        for a in (2, 1)
    ]
    file = tmp_path / f"s.{kind}"
    if kind == "csv":
        pl.DataFrame(rows).write_csv(file)
    elif kind in ("json", "list.jsonl"):
        file.write_text(json.dumps(rows, indent=1))
    else:
        lines(file, rows)
    found = read_evaluations([file], **BOTH)
    assert right(found) == {(t, m): expected(m, t) for t in TASKS for m in ("m", "mm")}
    assert {each.attempts.tolist() == [2] * 6 for each in found.attempts} == {True}
    named = read_evaluations([f"n={file}"], **BOTH, repeats=True)
    assert named.answers[0].classifiers == ("n",)


def test_json_of_scores_is_read_as_strictly_as_tables(tmp_path):
    row = {"dataset": "old", "item": "q", "model": "m", "score": 1}
    for kind in ("jsonl", "json"):
        file = tmp_path / f"s.{kind}"
        file.write_text(json.dumps([{**row, "solved": 0}]))
        with refused(OptionError, "score-column-ambiguous", {"columns": "'score' and 'solved'"}):
            read_evaluations([file], **BOTH)
        file.write_text(json.dumps([{**row, "attempt": "first"}]))
        with refused(StudyError, "count-not-whole-in-rows", {"column": "attempt"}):
            read_evaluations([file], **BOTH)
        file.write_text(json.dumps([row]))
        with refused(StudyError, "no-evaluation-log"):  # in a folder it may be anything
            read_evaluations([tmp_path], **BOTH)
        file.write_text(json.dumps([{"dataset": "old", "item": "q", "score": 1}]))
        with refused(StudyError, "unknown-log-contents"):
            read_evaluations([file], **BOTH)


def test_names_are_the_same_with_blanks_and_in_another_form(tmp_path):
    rows = [
        (f"{t} ", f"cafe\u0301 {n}" if place else f" caf\u00e9 {n}", m, int(solves("m", t, n)))
        for t in TASKS
        for place, m in enumerate(("m", "mm "))
        for n in range(6)
    ]
    lines(
        tmp_path / "s.jsonl",
        [dict(zip(("task", "item", "model", "score"), row, strict=True)) for row in rows],
    )
    found = read_evaluations(
        [tmp_path / "s.jsonl"], reference="old", replication=" new", item="item"
    )
    assert found.answers[0].classifiers == ("m", "mm")
    assert found.answers[0].images.tolist() == [f"caf\u00e9 {n}" for n in range(6)]


def test_tables_are_those_that_every_reader_takes(tmp_path):
    rows = [(f"0{n}", "m", int(solves("m", t, n))) for t in TASKS for n in range(6)]
    for kind, separator in (("csv.gz", ","), ("tsv", "\t"), ("csv", ";")):
        for place, task in enumerate(TASKS):
            each = [separator.join(map(str, row)) for row in rows[6 * place : 6 * place + 6]]
            text = "\n".join([separator.join(("Item", "Model", "Score")), *each])
            data = gzip.compress(text.encode()) if kind.endswith("gz") else text.encode()
            (tmp_path / f"{task}.{kind}").write_bytes(data)
        found = read_evaluations([tmp_path / f"{task}.{kind}" for task in TASKS], **BOTH)
        assert right(found) == {(t, "m"): expected("m", t) for t in TASKS}
        assert found.answers[0].images.tolist() == [f"0{n}" for n in range(6)]


# The tools' own files


def test_events_of_openai_evals(tmp_path):
    """Its first and last lines are no events, and sampling is an event of each sample as well."""
    files = []
    for model in ("gpt-a", "gpt-bb"):
        for task in TASKS:
            rows = [{"spec": {"completion_fns": [model], "eval_name": task, "run_id": "1"}}]
            for item in range(6):
                event = {"run_id": "1", "sample_id": f"{task}.dev.{item}", "created_by": ""}
                rows.append({**event, "type": "sampling", "data": {"prompt": "?", "sampled": "4"}})
                told = {"correct": solves(model, task, item), "expected": "4", "picked": "4"}
                rows.append({**event, "type": "match", "data": told})
            rows.append({"final_report": {"accuracy": 0.5}})
            file = lines(tmp_path / model / f"{task}.jsonl", rows)
            files.append(f"{model}={file}")
    found = read_evaluations(files, **BOTH, item="sample_id", score="data.correct")
    assert right(found) == {(t, m): expected(m, t) for m in ("gpt-a", "gpt-bb") for t in TASKS}
    assert found.answers[0].images[0] == "old.dev.0"
    assert "old.jsonl: 2 records without 'sample_id' left out" in found.notes
    with refused(StudyError, "unknown-log-contents"):
        read_evaluations(files, **BOTH)


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_results_of_promptfoo(tmp_path, kind):
    files = []
    for task in TASKS:
        rows = [
            {
                "promptIdx": 0,
                "testIdx": item,
                "provider": {"id": model, "label": ""},
                "vars": {"question": "2 + 2?"},
                "response": {"output": "4"},
                "success": solves(model, task, item),
                "score": 0.5,
                "namedScores": {},
                "gradingResult": {"pass": solves(model, task, item), "score": 0.5},
            }
            for item in range(6)
            for model in ("openai:a", "openai:bb")
        ]
        file = tmp_path / f"{task}.{kind}"
        if kind == "jsonl":
            lines(file, rows)
        else:
            whole = {"evalId": "e", "results": {"version": 3, "results": rows, "stats": {}}}
            file.write_text(json.dumps(whole, indent=2))
        files.append(file)
    way = "" if kind == "jsonl" else "results.results.*."
    chosen = {"item": f"{way}testIdx", "model": f"{way}provider.id", "score": f"{way}success"}
    found = read_evaluations(files, **BOTH, **chosen)
    models = ("openai:a", "openai:bb")
    assert right(found) == {(t, m): expected(m, t) for m in models for t in TASKS}


def test_reports_of_swe_bench(tmp_path):
    """Its ids are lists by what became of them; a file is called by the model and the run."""
    for model in ("org__a.5", "bb"):
        for run in TASKS:
            solved = [f"django__django-{n}" for n in range(6) if solves(model, run, n)]
            others = [f"django__django-{n}" for n in range(6) if not solves(model, run, n)]
            report = {
                "total_instances": 7,
                "submitted_instances": 6,
                "completed_instances": 5,
                "resolved_instances": len(solved),
                "unresolved_instances": len(others),
                "completed_ids": solved + others[1:],
                "incomplete_ids": ["django__django-9"],
                "empty_patch_ids": others[:1],
                "submitted_ids": solved + others,
                "resolved_ids": solved,
                "unresolved_ids": others[2:],
                "error_ids": others[1:2],
                "schema_version": 2,
            }
            (tmp_path / f"{model}.{run}.json").write_text(json.dumps(report, indent=4))
    with refused(StudyError, "model-lacks-scores", {"items": ["django__django-9"]}):
        read_evaluations([tmp_path], **BOTH)
    found = read_evaluations([tmp_path], **BOTH, common=True)
    assert found.answers[0].classifiers == ("bb", "org/a.5")
    for data in found.answers:
        for place, model in enumerate(("bb", "org__a.5")):
            of_item = dict(zip(data.images.tolist(), data.correct[place].tolist(), strict=True))
            assert [of_item[f"django__django-{n}"] for n in range(6)] == expected(
                model, data.dataset
            )
    (tmp_path / "report.json").write_text(json.dumps(report))
    with refused(StudyError, "report-model-unnamed"):
        read_evaluations([tmp_path / "report.json"], **BOTH)
    (tmp_path / "m.old.json").write_text('{"total_instances": 1, "resolved_instances": 1}')
    with refused(StudyError, "report-without-instances"):
        read_evaluations([tmp_path / "m.old.json"], **BOTH)


def test_details_of_lighteval(tmp_path):
    """Columns of Parquet that hold objects."""
    files = []
    for model in ("a", "bb"):
        for task in TASKS:
            rows = [
                {
                    "doc": {"id": str(n), "query": "?", "choices": ["A", "B"], "task_name": task},
                    "model_response": {"text": ["4"], "logprobs": [0.5]},
                    "metric": {"em": int(solves(model, task, n)), "f1": 0.5},
                }
                for n in range(6)
            ]
            file = tmp_path / model / f"details_{task}|0_2025-01-01T00-00-00.parquet"
            file.parent.mkdir(exist_ok=True)
            pl.DataFrame(rows).write_parquet(file)
            files.append(f"{model}={file}")
    chosen = {"item": "doc.id", "dataset": "doc.task_name", "score": "metric.em"}
    found = read_evaluations(files, **BOTH, **chosen)
    assert right(found) == {(t, m): expected(m, t) for m in ("a", "bb") for t in TASKS}
    for odd in ("metric.precision", "metrics.em", "doc.id.x"):
        with refused(StudyError, "parquet-columns-missing", {"columns": [odd]}):
            read_evaluations(files, **BOTH, **{**chosen, "score": odd})
    with refused(StudyError, "column-type-unknown", {"column": "metric"}):
        read_evaluations(files, **BOTH, **{**chosen, "score": "metric"})


def test_results_of_code_generation(tmp_path):
    """Keyed by the task, with a list of attempts; passed in words."""
    files = []
    for task in TASKS:
        each = {
            f"HumanEval/{n}": [
                {
                    "task_id": f"HumanEval/{n}",
                    "solution": "...",
                    "base_status": "pass" if solves("m", task, n, attempt) else odd,
                    "plus_status": "fail",
                }
                for attempt, odd in ((1, "fail"), (2, "timeout"))
            ]
            for n in range(6)
        }
        (tmp_path / f"{task}.json").write_text(json.dumps({"hash": "x", "eval": each}))
        files.append(f"m={tmp_path / task}.json")
    chosen = {"item": "eval.*.*.task_id", "score": "eval.*.*.base_status"}
    with refused(StudyError, "item-scored-several-times"):
        read_evaluations(files, **BOTH, **chosen)
    found = read_evaluations(files, **BOTH, **chosen, repeats=True)
    assert right(found) == {(t, "m"): expected("m", t) for t in TASKS}
    solved = [solves("m", "old", n, 1) + solves("m", "old", n, 2) for n in range(6)]
    assert found.attempts[0].solved.tolist() == solved
    with refused(OptionError, "paths-through-different-lists"):
        read_evaluations(files, **BOTH, **{**chosen, "item": "hash.*.task_id"})
    rows = [
        {"task_id": f"HumanEval/{n}", "passed": solves("m", "old", n), "result": "passed"}
        for n in range(6)
    ]
    for file, written in (("a.json", json.dumps(rows)), ("a.jsonl", json.dumps(rows))):
        (tmp_path / file).write_text(written)
        table, _ = list_contents_of(tmp_path / file, item="task_id", score="passed")
        assert table["items"].to_list() == [6]


def test_what_a_listing_cannot_heed_is_refused(tmp_path, capsys):
    """Without --out files are only listed, by all that says how they are read and nothing else."""
    lines(tmp_path / "a.jsonl", [{"task_id": 1, "passed": True}])
    words = [
        "import",
        "evals",
        f"m={tmp_path / 'a.jsonl'}",
        "--item",
        "task_id",
        "--score",
        "passed",
    ]
    assert main([str(word) for word in words]) == 0
    *_, following = capsys.readouterr().out.splitlines()
    assert " ".join(str(word) for word in words) in following
    check(refusal([*words, "--threshold", "0.5"]), "option-needs-out", {"option": "threshold"})
    check(refusal([*words, "--metric", "acc"]), "option-needs-out", {"option": "metric"})


def list_contents_of(path, **columns):
    return list_contents([f"m={path}"], **columns)


def test_the_command_takes_columns(tmp_path, capsys):
    for task in TASKS:
        rows = [{"result": {"correct": True}, "q": {"id": n}, "by": "m"} for n in range(3)]
        lines(tmp_path / f"{task}.jsonl", rows)
    words = ["import", "evals", tmp_path / "old.jsonl", tmp_path / "new.jsonl"]
    names = ["--item", "q.id", "--model", "by", "--score", "result.correct"]
    roles = ["--reference", "old", "--replication", "new", "--out", tmp_path / "out"]
    told = {"path": str(tmp_path / "old.jsonl")}
    check(refusal([*words, *roles]), "unknown-log-contents", told)
    assert main([str(word) for word in [*words, *names]]) == 0
    assert "Models: m" in capsys.readouterr().out
    assert main([str(word) for word in [*words, *names, *roles]]) == 0
    other = ["import", "tables", tmp_path / "old.jsonl", "--out", tmp_path / "o", "--score", "x"]
    check(refusal(other), "option-foreign-to-source", {"option": "score"})
