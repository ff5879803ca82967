"""Tables and JSON whose columns are called anyhow: true formats of tools that have no reader."""

import gzip
import json
import re
import shlex
from pathlib import Path

import polars as pl
import pytest
import test_evals as makers
from refusals import check, refusal, refused

from bayesrep import OptionError, StudyError
from bayesrep.cli import main
from bayesrep.sources.evals import read_evaluations
from bayesrep.sources.evals.survey import list_contents

BOTH, TASKS, solves = makers.BOTH, makers.TASKS, makers.solves
refuse = makers.refuse
lines = makers.json_lines


def expected(model, task, items=6):
    return [solves(model, task, item) for item in range(items)]


def right(found):
    return {
        (data.dataset, model): data.correct[place].tolist()
        for data in found.answers
        for place, model in enumerate(data.classifiers)
    }


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
        ({"correct": 0}, "score", "'score' and 'correct'", "=score)"),
        (
            {"solved": 0, "is_correct": 1},
            "score",
            "'score' and 'solved' and 'is_correct'",
            "=score)",
        ),
        ({"sample_id": "s"}, "item", "'item' and 'sample_id'", "=item)"),
        ({"question": "why", "id": 3}, "item", "'item' and 'question' and 'id'", "=item)"),
        ({"model_id": "n"}, "model", "'model' and 'model_id'", "=model)"),
        ({"category": "x"}, "data set", "'task' and 'category'", "=dataset)"),
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
    if option.startswith("="):
        chosen = {option[1:-1]: {"data set": "task"}.get(field, field)}
        found = read_evaluations([tmp_path / "s.csv"], **BOTH, **chosen)
        assert right(found) == {(task, "m"): expected("m", task) for task in TASKS}


def test_which_of_two_scores_is_what_the_user_says(tmp_path):
    rows = [(t, f"q{n}", "m", n % 2, n % 3 == 0) for t in TASKS for n in range(6)]
    names = ["dataset", "item", "model", "score", "correct"]
    pl.DataFrame(rows, names, orient="row").write_parquet(tmp_path / "s.parquet")
    for name, wanted in (("score", [False, True] * 3), ("correct", [True, False, False] * 2)):
        found = read_evaluations([tmp_path / "s.parquet"], **BOTH, score=name)
        assert found.answers[0].correct[0].tolist() == wanted


def test_any_column_may_be_what_the_user_says(tmp_path):
    rows = [
        {"Frage": f"0{n}", "Modell": "m", "Punkte": int(solves("m", t, n)), "Satz": t}
        for t in TASKS
        for n in range(6)
    ]
    chosen = {"item": "Frage", "model": "Modell", "score": "Punkte", "dataset": "Satz"}
    for kind in ("csv", "parquet", "jsonl"):
        file = makers.write_rows(tmp_path / f"t.{kind}", rows)
        found = read_evaluations([file], **BOTH, **chosen)
        assert right(found) == {(t, "m"): expected("m", t) for t in TASKS}
        assert found.answers[0].images.tolist() == [f"0{n}" for n in range(6)]
        refuse([file], "score-table-lacks-column", {"column": "item"}, **{**chosen, "item": None})
    chosen |= {"score": "Noten"}
    refuse([tmp_path / "t.csv"], "table-lacks-columns", {"columns": ["Noten"]}, **chosen)
    refuse([tmp_path / "t.jsonl"], "key-found-nowhere", {"key": "Noten"}, **chosen)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "ndjson", "json", "list.jsonl"])
def test_columns_that_are_known_need_no_option(tmp_path, kind):
    rows = [
        {"dataset": t, "item": f"q{n}", "model": m, "score": solves(m, t, n, a), "attempt": a}
        for m in ("m", "mm")
        for t in TASKS
        for n in range(6)
        for a in (2, 1)
    ]
    file = makers.write_rows(tmp_path / f"s.{kind}", rows)
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
        refuse([file], "score-column-ambiguous", {"columns": "'score' and 'solved'"}, OptionError)
        file.write_text(json.dumps([{**row, "attempt": "first"}]))
        refuse([file], "count-not-whole-in-rows", {"column": "attempt"})
        file.write_text(json.dumps([row]))
        refuse([tmp_path], "no-evaluation-log")
        file.write_text(json.dumps([{"dataset": "old", "item": "q", "score": 1}]))
        refuse([file], "unknown-log-contents")


def test_names_are_the_same_with_blanks_and_in_another_form(tmp_path):
    rows = [
        (f"{t} ", f"cafe\u0301 {n}" if place else f" caf\u00e9 {n}", m, int(solves("m", t, n)))
        for t in TASKS
        for place, m in enumerate(("m", "mm "))
        for n in range(6)
    ]
    names = ("task", "item", "model", "score")
    file = lines(tmp_path / "s.jsonl", [dict(zip(names, row, strict=True)) for row in rows])
    found = read_evaluations([file], reference="old", replication=" new", item="item")
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


# The tools' own files: each recipe of the page against the total that its tool gives

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "evaluation-logs.md"


def recipe(tool):
    """The options of a recipe of the page, as `read_evaluations` takes them."""
    row = re.search(rf"^\| {re.escape(tool)} \| `(.*)` \|$", PAGE.read_text("utf-8"), flags=re.M)
    options, words = {}, iter(shlex.split(row[1]))
    for word in words:
        if word == "--repeats":
            options["repeats"] = True
        elif word == "--rename":
            column, name = next(words).split("=")
            options[name] = f"{options[name]},{column}" if name in options else column
        elif word == "--where":
            kind, options[kind] = next(words).split("=")
        elif word.startswith("--"):
            options[word[2:]] = next(words)
    if "threshold" in options:
        options["threshold"] = float(options["threshold"])
    return options


def openai_evals(file, task, rights):
    """Its first and last lines are no events, and sampling is an event of each sample as well."""
    events = [
        {"run_id": "1", "sample_id": f"{task}.dev.{n}", "type": kind, "data": data}
        for n, right in enumerate(rights)
        for kind, data in (("sampling", {"sampled": "4"}), ("match", {"correct": right}))
    ]
    report = {"final_report": {"accuracy": sum(rights) / len(rights)}}
    lines(file, [{"spec": {"eval_name": task}}, *events, report])
    return report["final_report"]["accuracy"]


def promptfoo_rows(file, rights):
    """A score of 0.5 beside each success, and an error that counts as not passed."""
    return [
        {"promptIdx": 0, "testIdx": n, "provider": {"id": file.parent.name, "label": ""}}
        | {"success": right, "score": 0.5, "failureReason": 0 if right else 1 + n % 2}
        for n, right in enumerate(rights)
    ]


def promptfoo_lines(file, task, rights):
    lines(file, promptfoo_rows(file, rights))
    return sum(rights) / len(rights)


def promptfoo_json(file, task, rights):
    rows = promptfoo_rows(file, rights)
    kinds = [row["failureReason"] for row in rows]
    stats = {name: kinds.count(n) for n, name in enumerate(("successes", "failures", "errors"))}
    whole = {"evalId": "e", "results": {"version": 3, "results": rows, "stats": stats}}
    file.write_text(json.dumps(whole, indent=2))
    return stats["successes"] / sum(stats.values())


def lighteval(file, task, rights):
    """Columns of Parquet that hold objects."""
    rows = [
        {"doc": {"id": str(n), "query": "?", "task_name": task}, "metric": {"em": int(right)}}
        for n, right in enumerate(rights)
    ]
    pl.DataFrame(rows).write_parquet(file)
    return sum(row["metric"]["em"] for row in rows) / len(rows)


def evalplus(file, task, rights):
    """Solved is what passes the base tests and the added ones; some pass one of both."""
    odd = (("fail", "pass"), ("pass", "timeout"), ("timeout", "timeout"), ("pass", "fail"))
    whole = {}
    for n, right in enumerate(rights):
        base, plus = ("pass", "pass") if right else odd[n % 4]
        answer = {"task_id": f"HumanEval/{n}", "base_status": base, "plus_status": plus}
        whole[f"HumanEval/{n}"] = [answer]
    solved = [one["base_status"] == one["plus_status"] == "pass" for (one,) in whole.values()]
    total = {"base": {"pass@1": None}, "plus": {"pass@1": sum(solved) / len(solved)}}
    file.write_text(json.dumps({"hash": "x", "eval": whole, "pass_at_k": total}))
    return total["plus"]["pass@1"]


def human_eval(file, task, rights):
    rows = [
        {"task_id": f"HumanEval/{n}", "passed": right, "result": "passed" if right else "timed out"}
        for n, right in enumerate(rights)
    ]
    lines(file, rows)
    return sum(row["passed"] for row in rows) / len(rows)


def fast_chat(file, task, rights):
    """Its means are of the first turn, without ratings that failed."""
    rows = [
        {"question_id": n, "model": "m", "score": 7 + n % 3 if right else 2 + n % 5, "turn": turn}
        | {"judge": ["gpt-4", "single-v1" + "-multi-turn" * (turn - 1)]}
        for n, right in enumerate([*rights, False])
        for turn in (1, 2)
    ]
    rows[-2]["score"] = -1
    lines(file, rows)
    first = [row["score"] for row in rows if row["turn"] == 1 and row["score"] != -1]
    return sum(score >= 7 for score in first) / len(first)


def lm_eval(file, task, rights):
    made = makers.lm_eval(file.parents[1], file.parent.name, task)
    results = next(made.parent.glob("results_*"))
    facts = json.loads(results.read_text())
    facts["results"][task] = {"exact_match,none": sum(rights) / len(rights)}
    results.write_text(json.dumps(facts))
    made.rename(made.with_suffix(file.suffix))
    return facts["results"][task]["exact_match,none"]


def inspect(file, task, rights):
    """Its accuracy is of the samples that were scored."""
    header, samples = makers.inspect_parts(file.parent.name, task)
    header["results"] = {"scores": [{"metrics": {"accuracy": sum(rights) / len(rights)}}]}
    samples.append({**samples[0], "id": "failed", "scores": None, "error": {"message": "x"}})
    file.write_text(json.dumps({**header, "samples": samples}))
    return header["results"]["scores"][0]["metrics"]["accuracy"]


def live_bench(file, task, rights):
    rows = [
        {"question_id": f"q{n}", "task": "t", "model": file.parent.name, "score": score, "turn": 1}
        | {"category": task}
        for n, score in enumerate([*map(float, rights), -1])
    ]
    lines(file, rows)
    scores = [row["score"] for row in rows if row["score"] != -1]
    return sum(scores) / len(scores)


RECIPES = {
    "OpenAI evals": (openai_evals, "jsonl"),
    "promptfoo, `.jsonl`": (promptfoo_lines, "jsonl"),
    "promptfoo, `.json`": (promptfoo_json, "json"),
    "lighteval, details": (lighteval, "parquet"),
    "EvalPlus": (evalplus, "json"),
    "HumanEval, `_results.jsonl`": (human_eval, "jsonl"),
    "FastChat, MT-Bench": (fast_chat, "jsonl"),
}
KNOWN_LOGS = {
    "lm-evaluation-harness": (lm_eval, "jsonl"),
    "leaderboards of 2024": (lm_eval, "json"),
    "Inspect": (inspect, "json"),
    "LiveBench": (live_bench, "jsonl"),
}


@pytest.mark.parametrize("tool", [*RECIPES, *KNOWN_LOGS])
def test_logs_give_the_totals_of_their_tools(tmp_path, tool):
    write, ending = (RECIPES | KNOWN_LOGS)[tool]
    options = recipe(tool) if tool in RECIPES else {"common": True}
    options |= {"dataset": "category"} if tool == "LiveBench" else {}
    files, totals = [], {}
    for model in ("a", "bb"):
        for task in TASKS:
            file = tmp_path / model / f"{task}.{ending}"
            file.parent.mkdir(exist_ok=True)
            totals[task, model] = write(file, task, expected(model, task))
            (made,) = file.parent.glob(f"*{task}*.{ending}")
            files.append(f"{model}={made}")
    found = read_evaluations(files, **BOTH, **options)
    assert right(found) == {(t, m): expected(m, t) for m in ("a", "bb") for t in TASKS}
    assert {of: sum(each) / len(each) for of, each in right(found).items()} == totals


def test_each_recipe_of_the_page_is_tested():
    section = PAGE.read_text("utf-8").split("## Any other tool")[1].split("###")[0]
    told = re.findall(r"^\| (.*?) \| `.*` \|$", section, flags=re.M)
    assert set(told) == set(RECIPES)


def test_the_script_for_helm_and_swe_bench_gives_their_totals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    totals = {}
    for task, splits in (("reading", "tttvt"), ("stories:method=x", "tvttv")):
        stats = [
            {"instance_id": f"id{n}", **more}
            | {"stats": [{"name": {"name": name, "split": split}, **stat} for name, stat in held]}
            for n, split in enumerate(splits)
            for more in ({}, {"perturbation": {"name": "typos"}})
            for mean in [1.0 if more else float(n % 3 > 0)]
            for held in [(("f1", {"count": 0}), ("exact_match", {"count": 1, "mean": mean}))]
        ]
        folder = tmp_path / "helm" / "runs" / f"{task},model=x_m"
        folder.mkdir(parents=True)
        (folder / "per_instance_stats.json").write_text(json.dumps(stats))
        own = [each["stats"][1] for each in stats if "perturbation" not in each]
        for split in "tv":
            means = [stat["mean"] for stat in own if stat["name"]["split"] == split]
            totals[f"{task}:{split}", "x_m"] = sum(means) / len(means)
    (tmp_path / "swe-bench").mkdir()
    ids = [f"django__django-{n}" for n in range(10)]
    for model, solved in (("org__a.5", 4), ("other", 6)):
        report = {"total_instances": 10, "submitted_instances": 9, "resolved_instances": solved}
        report |= {"submitted_ids": ids[:9], "resolved_ids": ids[:solved]}
        report |= {"incomplete_ids": ids[9:], "empty_patch_ids": ids[8:9], "error_ids": ids[7:8]}
        for task in TASKS:
            (tmp_path / "swe-bench" / f"{model}.{task}.json").write_text(json.dumps(report))
            (tmp_path / f"{task}-ids.txt").write_text("\n".join(ids))
            file = tmp_path / "evaluation" / f"{task}-ids" / model / "results" / "results.json"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps({"no_generation": ids[9:], "resolved": ids[:solved]}))
            totals[task, model] = report["resolved_instances"] / report["submitted_instances"]
            totals[f"{task}-ids", model] = report["resolved_instances"] / len(ids)
    exec(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.S)[0], {})
    pairs = [TASKS, [f"{task}-ids" for task in TASKS]]
    pairs += [(f"reading:{split}", f"stories:method=x:{split}") for split in "tv"]
    for pair in pairs:
        options = {"metric": "exact_match"} if pair[0].startswith("reading") else {}
        names = dict(zip(BOTH, pair, strict=True))
        found = read_evaluations(["scores.csv"], **names, **options)
        shares = {of: sum(each) / len(each) for of, each in right(found).items()}
        assert shares == {of: total for of, total in totals.items() if of[0] in pair}


def test_events_without_an_item_are_counted_and_left_out(tmp_path):
    files = []
    for task in TASKS:
        openai_evals(tmp_path / f"{task}.jsonl", task, expected("m", task))
        files.append(f"m={tmp_path / task}.jsonl")
    found = read_evaluations(files, **BOTH, **recipe("OpenAI evals"))
    assert found.answers[0].images[0] == "old.dev.0"
    assert "old.jsonl: 2 records without 'sample_id' left out" in found.notes
    refuse(files, "unknown-log-contents")


@pytest.mark.parametrize("write", [promptfoo_lines, promptfoo_json])
@pytest.mark.parametrize("option", ["item", "model", "score", "dataset"])
def test_a_key_that_is_nowhere_is_named(tmp_path, write, option):
    kind, way = ("json", "results.results.*.") if write is promptfoo_json else ("jsonl", "")
    files = [tmp_path / f"{task}.{kind}" for task in TASKS]
    for file, task in zip(files, TASKS, strict=True):
        write(file, task, expected("m", task))
    keys = {"item": "testIdx", "model": "provider.id", "score": "success"} | {option: "nope"}
    chosen = {name: f"{way}{key}" for name, key in keys.items()}
    refuse(files, "key-found-nowhere", {"key": f"{way}nope"}, **chosen)


def test_columns_of_objects_that_are_not_there_are_named(tmp_path):
    files = [f"m={tmp_path / task}.parquet" for task in TASKS]
    for task in TASKS:
        lighteval(tmp_path / f"{task}.parquet", task, expected("m", task))
    for odd in ("metric.precision", "metrics.em", "doc.id.x"):
        with refused(StudyError, "parquet-columns-missing", {"columns": [odd]}):
            read_evaluations(files, **BOTH, **{**recipe("lighteval, details"), "score": odd})
    with refused(StudyError, "column-type-unknown", {"column": "metric"}):
        read_evaluations(files, **BOTH, **{**recipe("lighteval, details"), "score": "metric"})


def test_results_of_code_generation_have_attempts(tmp_path):
    """Keyed by the task, with a list of attempts; passed in words."""
    files = []
    for task in TASKS:
        each = {
            f"HumanEval/{n}": [
                {"task_id": f"HumanEval/{n}", "plus_status": "fail"}
                | {"base_status": "pass" if solves("m", task, n, attempt) else odd}
                for attempt, odd in ((1, "fail"), (2, "timeout"))
            ]
            for n in range(6)
        }
        (tmp_path / f"{task}.json").write_text(json.dumps({"hash": "x", "eval": each}))
        files.append(f"m={tmp_path / task}.json")
    chosen = {"item": "eval.*.*.task_id", "score": "eval.*.*.base_status"}
    refuse(files, "item-scored-several-times", **chosen)
    found = read_evaluations(files, **BOTH, **chosen, repeats=True)
    assert right(found) == {(t, "m"): expected("m", t) for t in TASKS}
    solved = [solves("m", "old", n, 1) + solves("m", "old", n, 2) for n in range(6)]
    assert found.attempts[0].solved.tolist() == solved
    with refused(OptionError, "paths-through-different-lists"):
        read_evaluations(files, **BOTH, **{**chosen, "item": "hash.*.task_id"})
    rows = [{"task_id": n, "passed": False, "result": "timed out"} for n in range(6)]
    listed = {"results": rows}
    for file, whole, way in ("a.json", rows, ""), ("b.jsonl", rows, ""), ("c.json", listed, "*."):
        (tmp_path / file).write_text(json.dumps(whole))
        way = f"results.{way}" if way else ""
        chosen = {"item": f"{way}task_id", "score": f"{way}passed,{way}result"}
        table, _ = list_contents([f"m={tmp_path / file}"], **chosen)
        assert table["items"].to_list() == [6]


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "json"])
def test_of_several_scores_the_lowest_counts(tmp_path, kind):
    """One that is missing is missing, and one that is no verdict is refused."""
    rows = [
        {"dataset": task, "item": f"q{n}", "model": "m", "a": a, "b": b, "a,b": "1"}
        for task in TASKS
        for n, (a, b) in enumerate((("1", "pass"), ("0", "pass"), ("1", "fail"), ("1", None)))
    ]
    file = tmp_path / f"t.{kind}"

    def read(score):
        makers.write_rows(file, rows)
        return read_evaluations([file], **BOTH, score=score).answers[0]

    for order in ("a, b", "b, a"):
        assert read(order).correct[0].tolist() == [True, False, False]
    assert read("a,b").correct.all()  # a column of that very name
    rows[0]["b"] = "perhaps"
    with refused(StudyError, "score-not-a-verdict", {"score": "perhaps", "items": ["q0"]}):
        read("b, a")


def test_what_a_listing_cannot_heed_is_refused(tmp_path, capsys):
    """Without --out files are only listed, by all that says how they are read and nothing else."""
    lines(tmp_path / "a.jsonl", [{"task_id": 1, "passed": True}])
    words = ["import", "evals", f"m={tmp_path / 'a.jsonl'}"]
    words += ["--rename", "task_id=item", "--rename", "passed=score"]
    assert main([str(word) for word in words]) == 0
    *_, following = capsys.readouterr().out.splitlines()
    assert " ".join(str(word) for word in words) in following
    check(refusal([*words, "--threshold", "0.5"]), "option-needs-out", {"option": "threshold"})
    check(refusal([*words, "--where", "metric=acc"]), "option-needs-out", {"option": "metric"})


def test_the_command_takes_columns(tmp_path, capsys):
    for task in TASKS:
        rows = [{"result": {"k=1": True}, "q": {"id": n}, "by": "m"} for n in range(3)]
        lines(tmp_path / f"{task}.jsonl", rows)
    words = ["import", "evals", tmp_path / "old.jsonl", tmp_path / "new.jsonl"]
    columns = ("q.id=item", "by=model", "result.k=1=score")
    names = [word for column in columns for word in ("--rename", column)]
    roles = ["--reference", "old", "--replication", "new", "--out", tmp_path / "out"]
    told = {"path": str(tmp_path / "old.jsonl")}
    check(refusal([*words, *roles]), "unknown-log-contents", told)
    assert main([str(word) for word in [*words, *names]]) == 0
    assert "Models: m" in capsys.readouterr().out
    assert main([str(word) for word in [*words, *names, *roles]]) == 0
    told = {"column": "by", "name": "judge"}
    check(refusal([*words, "--rename", "by=judge"]), "renamed-to-no-log-column", told)
