"""Logs of evaluation tools: what each format says, and what becomes a study."""

import json
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from published import DATA
from refusals import refused

import bayesrep
from bayesrep import OptionError, StudyError
from bayesrep.cli import main
from bayesrep.sources.evals import read_evaluations
from bayesrep.sources.evals.detect_format import read_logs
from bayesrep.sources.evals.inspect_logs import zipfile as zipped
from bayesrep.sources.evals.records import LogChoices
from bayesrep.sources.evals.solved import add_solved
from bayesrep.studies.attempts import read_attempts
from bayesrep.studies.reading import check_study
from bayesrep.studies.vocabulary import words_of

EVALS = DATA / "evals"
TASKS = ("old", "new")
BOTH = {"reference": "old", "replication": "new"}
TIME = "2026-01-21T03-44-18.458309"


def refuse(files, rule, facts=None, kind=StudyError, **options):
    """The rule by which files are refused."""
    with refused(kind, rule, facts) as error:
        read_evaluations(files, **{**BOTH, **options})
    return error.value.violation


def solves(model, task, item, attempt=1):
    """Some fixed pattern of right and wrong, which every format below writes."""
    return (len(model) + len(task) + 3 * item + attempt * (item % 3)) % 5 > 1


def all_solved(model, task, epochs):
    """How many of its attempts solve each of six items."""
    attempts = range(1, epochs + 1)
    return [sum(solves(model, task, item, each) for each in attempts) for item in range(6)]


def lm_eval(root, model, task, items=6, metrics=("exact_match",), filters=("none",), **more):
    folder = root / model.replace("/", "__")
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"doc_id": item, "doc": {"q": f"{task} {item}"}, "target": "4"}
        | {"resps": [['a "doc_id": 7']], "filtered_resps": ["4"], "filter": each}
        | {"metrics": list(metrics), "doc_hash": f"{task}{item:04}"}
        | {metric: float(solves(model, task, item)) for metric in metrics}
        | more
        for each in filters
        for item in range(items)
    ]
    sizes = {"original": items, "effective": items}
    results = {"results": {name: {} for name in TASKS}, "versions": dict.fromkeys(TASKS, 1.0)}
    results |= {"n-samples": dict.fromkeys(TASKS, sizes)}
    results |= {"config": {"model": "hf", "model_args": f"pretrained={model},dtype=auto"}}
    (folder / f"results_{TIME}.json").write_text(json.dumps(results))
    return json_lines(folder / f"samples_{task}_{TIME}.jsonl", rows)


def json_lines(file, rows):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def write_rows(file, rows):
    """A table in the format of the file's ending; words beside numbers make a column of words."""
    kind = file.name.rpartition(".")[2]
    if kind in ("jsonl", "ndjson") and not file.name.endswith("list.jsonl"):
        return json_lines(file, rows)
    if kind in ("json", "jsonl"):
        file.write_text(json.dumps(rows, indent=1))
    else:
        words = {name for row in rows for name, value in row.items() if isinstance(value, str)}
        table = pl.DataFrame(rows, schema_overrides=dict.fromkeys(words, pl.String), strict=False)
        (table.write_csv if kind == "csv" else table.write_parquet)(file)
    return file


def every(root, models=("a/m",), items=6, name="all_samples.jsonl", **more):
    rows = [
        {"schema_version": "0.3.0", "evaluation_id": f"src/{model}/1", "model_id": model}
        | {"evaluation_name": task, "evaluation_result_id": task}
        | {"sample_id": f"q{item}", "sample_hash": f"{task}{item:04}"}
        | {"interaction_type": "single_turn", "input": {"raw": "2 + 2?", "reference": ["4"]}}
        | {"evaluation": {"score": float(right), "is_correct": right}}
        | more
        for model in models
        for task in TASKS
        for item in range(items)
        for right in [solves(model, task, item)]
    ]
    return json_lines(root / name, rows)


def inspect_parts(
    model, task, items=6, epochs=1, scorers=("match",), status="success", value=None, change=None
):
    """Header and samples of a log; `change` is made of each sample."""
    facts = {"task": task, "task_version": 0, "model": model, "config": {"epochs": epochs}}
    facts |= {"dataset": {"name": task, "samples": items}}
    samples = [
        {"id": item, "epoch": epoch, "input": f"{task} {item}?", "target": "A", "scores": {}}
        for epoch in range(1, epochs + 1)
        for item in range(items)
    ]
    for sample in samples:
        for place, scorer in enumerate(scorers):
            right = solves(model, task, sample["id"] + place, sample["epoch"])
            sample["scores"][scorer] = {"value": value or ("C" if right else "I")}
        if change is not None:
            change(sample)
    return {"version": 2, "status": status, "eval": facts}, samples


def inspect_json(root, model, task, **options):
    header, samples = inspect_parts(model, task, **options)
    file = root / f"{model.replace('/', '_')}_{task}.json"
    file.write_text(json.dumps({**header, "samples": samples, "reductions": []}))
    return file


def inspect_eval(root, model, task, packed=zipfile.ZIP_DEFLATED, **options):
    header, samples = inspect_parts(model, task, **options)
    file = root / f"{model.replace('/', '_')}_{task}.eval"
    parts = {"_journal/start.json": "{}", "samples/0_epoch_1.json": "not JSON, and never read"}
    parts |= {"summaries.json": json.dumps(samples), "header.json": json.dumps(header)}
    return archive(file, parts.items(), packed)


def archive(file, entries, packed=zipfile.ZIP_DEFLATED):
    with zipped.ZipFile(file, "w", packed) as made:
        for name, contents in entries:
            made.writestr(name, contents)
    return file


def scores(root, models=("a/m",), items=6, kind="parquet"):
    rows = [
        {"task": task, "question_id": f"q{item}", "model": model}
        | {"score": float(solves(model, task, item))}
        for model in models
        for task in TASKS
        for item in range(items)
    ]
    return write_rows(root / f"judgements.{kind}", rows)


def of_each(make):
    return lambda root, models: [make(root, model, task) for model in models for task in TASKS]


FORMATS = {
    "lm_eval": of_each(lm_eval),
    "every_eval_ever": lambda root, models: [every(root, models)],
    "inspect_json": of_each(inspect_json),
    "inspect_eval": of_each(inspect_eval),
    "inspect_zstd": of_each(partial(inspect_eval, packed=zipped.ZIP_ZSTANDARD)),
    "parquet": lambda root, models: [scores(root, models)],
    "csv": lambda root, models: [scores(root, models, kind="csv")],
}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_answers(kind, tmp_path):
    models = ("org/one", "org/three")
    found = read_evaluations(FORMATS[kind](tmp_path, models), **BOTH)
    assert found.lacks("counts")
    assert found.attempts == []
    for data in found.answers:
        assert data.classifiers == models
        expected = [[solves(m, data.dataset, item) for item in range(6)] for m in models]
        assert data.correct.tolist() == expected


@pytest.mark.parametrize("kind", FORMATS)
def test_a_folder_of_logs_is_its_files(kind, tmp_path):
    files = FORMATS[kind](tmp_path, ("org/one",))
    if files[0].suffix in (".parquet", ".csv"):  # tables may be anything, and are named
        named = [str(file) for file in sorted(files)]
        refuse([tmp_path], "evaluation-tables-not-named", {"tables": named})
        return
    one, other = (read_evaluations(each, **BOTH).answers for each in (files, [tmp_path]))
    for here, there in zip(one, other, strict=True):
        assert here.correct.tolist() == there.correct.tolist()


def test_formats_are_joined_where_the_user_says_that_ids_are_the_same(tmp_path):
    files = [inspect_eval(tmp_path, "x", "old"), inspect_json(tmp_path, "x", "new")]
    files += [lm_eval(tmp_path, "org/y", task) for task in TASKS]
    refuse(files, "item-keys-differ", {"other_key": "id"})
    found = read_evaluations(files, **BOTH, key="id")
    assert found.answers[0].classifiers == ("x", "org/y")


def test_solvers_are_counted_and_keep_their_names(tmp_path):
    models = ("s1", "s22", "s333", "evaluated")
    study = read_evaluations([scores(tmp_path, models)], **BOTH, solvers=models[:3]).study()
    assert study.classifiers == ("evaluated",)
    assert study.provenance["counts"] == {"solvers": ["s1", "s22", "s333"]}
    for data in study.datasets.values():
        expected = [sum(solves(m, data.name, item) for m in models[:3]) for item in range(6)]
        assert data.selected.tolist() == expected
        assert data.shown.tolist() == [3] * 6
        assert data.answers is not None
        assert data.answers.workers.tolist() == sorted(models[:3])
    assert words_of(study).image == "item"


def test_attempts_of_solvers_are_all_counted_and_are_not_workers(tmp_path):
    files = [inspect_eval(tmp_path, "s", task, epochs=4) for task in TASKS]
    files += [inspect_eval(tmp_path, "mm", task, epochs=3) for task in TASKS]
    found = read_evaluations(files, **BOTH, solvers="s")
    data = found.study().reference
    assert data.shown.tolist() == [4] * 6
    assert data.selected.tolist() == all_solved("s", "old", epochs=4)
    assert data.answers is None
    # An evaluated model's answer is its first attempt; all of them are kept.
    assert data.correct[:, 0].tolist() == [solves("mm", "old", item) for item in range(6)]
    assert any("first counts" in note for note in found.notes)
    kept = {(each.dataset, each.classifier): each for each in found.attempts}
    assert set(kept) == {(task, model) for task in TASKS for model in ("s", "mm")}
    assert kept["new", "mm"].attempts.tolist() == [3] * 6
    assert kept["new", "mm"].solved.tolist() == all_solved("mm", "new", epochs=3)


def test_files_of_one_model_are_repeats_only_when_said_so(tmp_path):
    files = [every(tmp_path, name=f"{run}.jsonl", evaluation_id=run) for run in range(3)]
    told = {"dataset": "old", "items": ["q0", "q1", "q2", "q3", "q4", "q5"]}
    refuse(files, "model-repeated-on-data-set", told)
    attempts = read_evaluations(files, **BOTH, repeats=True).attempts
    assert [each.attempts.tolist() for each in attempts] == [[3] * 6] * 2


def test_several_scorers_are_judges_beside_the_one_that_says_what_is_solved(tmp_path):
    scorers = ("match", "judge1", "judge2", "judge3")
    files = [inspect_eval(tmp_path, "m", task, scorers=scorers) for task in TASKS]
    refuse(files, "score-choice-ambiguous", kind=OptionError)
    study = read_evaluations(files, **BOTH, scorer="match", judges=scorers[1:]).study()
    data = study.replication
    assert data.correct[:, 0].tolist() == [solves("m", "new", item) for item in range(6)]
    assert data.selected.tolist() == [
        sum(solves("m", "new", item + place) for place in (1, 2, 3)) for item in range(6)
    ]
    assert data.answers.workers.tolist() == list(scorers[1:])
    files += [inspect_eval(tmp_path, "other", task, scorers=scorers) for task in TASKS]
    with refused(OptionError, "judged-model-unclear", {"models": ["m", "other"]}):
        read_evaluations(files, **BOTH, scorer="match", judges=scorers[1:])
    one = read_evaluations(files, **BOTH, scorer="match", judges=scorers[1:], solvers="m").study()
    assert one.classifiers == ("other",)
    assert one.replication.selected.tolist() == data.selected.tolist()
    refuse(files, "all-scorers-are-judges", kind=OptionError, judges=scorers)
    told = {"judges": ["nobody"], "scorers": ["match", "judge1", "judge2", "judge3"]}
    refuse(files, "judge-without-scores", told, OptionError, scorer="match", judges="nobody")


def counts_table(root, items=6, **columns):
    rows = [(task, f"q{item}", item % 4, 4) for task in TASKS for item in range(items)]
    names = {"item": "item", "selected": "selected", "shown": "shown", **columns}
    table = pl.DataFrame(rows, ["dataset", *names.values()], orient="row")
    table.write_csv(root / "counts.csv")
    return root / "counts.csv"


def test_a_table_of_counts(tmp_path):
    log = every(tmp_path)
    study = read_evaluations([log], **BOTH, counts=counts_table(tmp_path)).study()
    assert study.reference.selected.tolist() == [0, 1, 2, 3, 0, 1]
    fewer = read_evaluations([log], **BOTH, counts=counts_table(tmp_path, 4, item="question"))
    assert len(fewer.study().reference.images) == 4
    assert any(note.startswith("2 items of 'old' ") for note in fewer.notes)
    with refused(StudyError, "counts-of-unknown-items", {"items": ["q6", "q7"], "dataset": "old"}):
        read_evaluations([log], **BOTH, counts=counts_table(tmp_path, 8))
    with refused(OptionError, "two-sources-of-counts"):
        read_evaluations([log], **BOTH, counts=tmp_path / "counts.csv", solvers="a/m")


def test_metrics_and_filters_are_named_and_never_guessed(tmp_path):
    files = [
        lm_eval(tmp_path, "m", task, metrics=("acc", "acc_norm"), filters=("strict", "flexible"))
        for task in TASKS
    ]
    told = {"option": "metric", "choices": "'acc', 'acc_norm'"}
    refuse(files, "score-choice-ambiguous", told, OptionError)
    told = {"option": "metric", "asked": "'f1'", "verb": "holds", "choices": "'acc', 'acc_norm'"}
    refuse(files, "unknown-score-choice", told, OptionError, metric="f1")
    told = {"where": "m on old", "verb": "has", "option": "filter"}
    told["choices"] = "'strict', 'flexible'"
    refuse(files, "score-choice-ambiguous", told, OptionError, metric="acc")
    found = read_evaluations(files, **BOTH, metric="acc", filter="strict")
    assert found.answers[0].correct[0].tolist() == [solves("m", "old", item) for item in range(6)]


def test_other_data_sets_need_no_choice_and_are_named(tmp_path):
    files = [lm_eval(tmp_path, "m", task) for task in TASKS]
    files.append(lm_eval(tmp_path, "m", "third", metrics=("acc", "f1")))
    notes = read_evaluations(files, **BOTH).notes
    assert any("left out: " in note and "'third'" in note for note in notes)
    told = {"dataset": "fourth", "datasets": "new (6 items, 1 model), old, third"}
    refuse(files, "no-log-of-data-set", told, OptionError, reference="fourth", replication="new")


def test_results_of_every_eval_ever_are_metrics_without_the_name_of_the_data_set(tmp_path):
    file = every(tmp_path)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    both = [
        {**line, "evaluation_result_id": f"{line['evaluation_name']}/{metric}"}
        for metric in ("strict", "loose")
        for line in lines
    ]
    file.write_text("\n".join(map(json.dumps, both)))
    refuse([file], "score-choice-ambiguous", {"choices": "'strict', 'loose'"}, OptionError)
    assert read_evaluations([file], **BOTH, metric="strict").answers[0].correct.any()


def test_partial_credit_takes_a_stated_threshold(tmp_path):
    rows = [(t, f"q{i}", "m", i / 4) for t in TASKS for i in range(5)]
    table = pl.DataFrame(rows, ["dataset", "item", "model", "score"], orient="row")
    table.write_csv(tmp_path / "s.csv")
    told = {"low": 0.25, "high": 0.75, "items": ["q1", "q2", "q3"]}
    refuse([tmp_path / "s.csv"], "score-between-right-and-wrong", told, OptionError)
    found = read_evaluations([tmp_path / "s.csv"], **BOTH, threshold=0.5)
    assert found.answers[0].correct[0].tolist() == [False, False, True, True, True]
    refuse([tmp_path / "s.csv"], "threshold-not-finite", kind=OptionError, threshold=float("nan"))


def test_letters_and_words_of_scores():
    words = ["C", "I", "N", "true", "False", "yes", "NO", "1", "0.0", "1e0"]
    table = pl.DataFrame({"item": [*"0123456789"], "score": words})
    table = table.with_columns(said=pl.lit(None, pl.Boolean))
    solved, notes = add_solved(table, None, "F")
    assert solved["solved"].to_list() == [c in "C true yes 1 1e0".split() for c in words]
    assert [note.startswith("F: 1 scores ") for note in notes] == [True]
    partly = table.with_columns(score=pl.lit("P"))
    with refused(OptionError, "score-between-right-and-wrong", {"items": [*"0123456789"]}):
        add_solved(partly, None, "F")
    assert add_solved(partly, 0.5, "F")[0]["solved"].all()
    assert not add_solved(partly, 0.6, "F")[0]["solved"].any()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0, 1))
def test_a_threshold_is_the_least_score_of_a_solved_item(values, threshold):
    table = pl.DataFrame({"item": list(map(str, range(len(values)))), "score": map(str, values)})
    solved, _ = add_solved(table.with_columns(said=pl.lit(None, pl.Boolean)), threshold, "F")
    assert solved["solved"].to_list() == [value >= threshold for value in values]


def test_what_does_not_match_is_counted_and_named(tmp_path):
    files = [lm_eval(tmp_path, "full", task, items=100) for task in TASKS]
    files += [lm_eval(tmp_path, "less", task, items=97) for task in TASKS]
    found = read_evaluations(files, **BOTH)
    assert len(found.answers[0].images) == 97
    told = "'less' has no score of items '97', '98', '99' of the 100 of 'old': left out"
    assert told in found.notes


def test_sizes_may_differ_between_data_sets(tmp_path):
    files = [lm_eval(tmp_path, "m", "old", items=12), lm_eval(tmp_path, "m", "new", items=7)]
    assert [len(each.images) for each in read_evaluations(files, **BOTH).answers] == [12, 7]


def test_a_model_of_one_data_set_is_left_out_and_named(tmp_path):
    files = [lm_eval(tmp_path, "m", task) for task in TASKS] + [lm_eval(tmp_path, "half", "old")]
    found = read_evaluations(files, **BOTH)
    assert found.answers[0].classifiers == ("m",)
    told = ("left out: 'half'", "'new'")
    assert any(all(each in note for each in told) for note in found.notes)


def test_the_model_is_named_by_results_by_the_folder_or_by_the_user(tmp_path):
    files = [lm_eval(tmp_path, "org/m", task) for task in TASKS]
    next(files[0].parent.glob("results*")).unlink()
    assert read_evaluations(files, **BOTH).answers[0].classifiers == ("org/m",)
    plain = [file.rename(tmp_path / file.name) for file in files]
    refuse(plain, "lm-eval-model-unnamed")
    named = [f"mine={file}" for file in plain]
    assert read_evaluations(named, **BOTH).answers[0].classifiers == ("mine",)


def test_numbers_of_samples_may_come_from_keys_alone(tmp_path):
    """Older harnesses name no metrics: the keys with a number are."""
    files = [lm_eval(tmp_path, "m", task) for task in TASKS]
    for file in files:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        file.write_text("\n".join(json.dumps({**d, "metrics": None}) for d in lines))
    assert read_evaluations(files, **BOTH).answers[0].correct.any()


def test_not_a_number_in_what_is_not_used_is_none_of_our_business(tmp_path):
    files = [lm_eval(tmp_path, "m", task, logprob=float("nan")) for task in TASKS]
    assert read_evaluations(files, **BOTH).answers[0].correct.any()


def test_the_command_writes_answers_that_compare_takes_and_later_counts(tmp_path, capsys):
    files = [inspect_eval(tmp_path, "m", task, epochs=2) for task in TASKS]
    names = ["--reference", "old", "--replication", "new"]
    out = tmp_path / "out"
    assert main(["import", "evals", *map(str, files), *names, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert all(part in said for part in ("1 model", "old and new"))
    assert "awaits counts" in said
    assert "id (Inspect)" in said
    assert read_attempts(out)[0].attempts.tolist() == [2] * 6
    assert main(["papers", "compare", str(out)]) == 0
    capsys.readouterr()
    rows = [(task, str(i), 1, 2) for task in TASKS for i in range(6)]
    table = pl.DataFrame(rows, ["dataset", "item", "selected", "shown"], orient="row")
    table.write_csv(tmp_path / "counts.csv")
    counted = ["import", "tables", str(tmp_path / "counts.csv"), *names, "--out", str(out)]
    assert main(counted) == 0
    assert check_study(out) == []
    study = bayesrep.read_study(out)
    assert study.reference.correct[:, 0].tolist() == [solves("m", "old", i) for i in range(6)]
    assert words_of(study).classifier == "model"


def test_the_command_writes_a_study_with_its_attempts(tmp_path, capsys):
    files = [inspect_eval(tmp_path, m, task, epochs=2) for m in ("m", "s") for task in TASKS]
    options = ["--reference", "old", "--replication", "new", "--solvers", "s"]
    out = tmp_path / "out"
    assert main(["import", "evals", *map(str, files), *options, "--out", str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    study = bayesrep.read_study(out)
    assert facts["fingerprint"] == study.fingerprint()
    assert facts["notes"] == list(study.provenance["notes"])
    assert study.provenance["words"] == "solvers"
    assert {each.classifier for each in read_attempts(out)} == {"m", "s"}
    assert check_study(out) == []
    table = pl.read_parquet(out / "attempts.parquet").with_columns(solved=pl.lit(9))
    table.write_parquet(out / "attempts.parquet")
    assert "solved-exceeds-attempts" in {line.rule for line in check_study(out)}


@pytest.mark.parametrize("option", ["--where", "--solvers", "--threshold"])
def test_other_sources_take_no_options_of_logs(option, tmp_path, capsys):
    words = ["import", "tables", "x.csv", "--out", tmp_path / "o", option, "1"]
    assert main(list(map(str, words))) == 2
    assert f"there is no option {option}" in capsys.readouterr().err


def test_gigabytes_take_little_memory(tmp_path):
    """300 MB of samples are read within 300 MB above what reading 3 MB takes."""
    text = "x" * 20_000
    for name, lines in (("small", 150), ("large", 15_000)):
        with open(tmp_path / f"samples_{name}.jsonl", "w", encoding="utf-8") as file:
            for number in range(lines):
                row = {"doc_id": number, "resps": [[text]], "filter": "none", "acc": 1.0}
                file.write(json.dumps(row) + "\n")
    program = (
        "import sys, resource; from bayesrep.sources.evals.detect_format import read_logs;"
        "from bayesrep.sources.evals.records import LogChoices;"
        "n = len(read_logs([f'm={sys.argv[1]}'], LogChoices())[0].records);"
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = {}
    for name, lines in (("small", 150), ("large", 15_000)):
        command = [sys.executable, "-c", program, str(tmp_path / f"samples_{name}.jsonl")]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert int(said[0]) == lines
        peaks[name] = int(said[1]) / 2**10  # MB, on Linux
    assert peaks["large"] - peaks["small"] < 300 or sys.platform != "linux"


# Files of the tools themselves


@pytest.fixture
def fixtures():
    if not EVALS.is_dir():
        pytest.skip(f"{EVALS}: the logs are not beside the project")
    return EVALS


def only(fixtures, pattern, **options):
    """The records of one fixture."""
    (path,) = fixtures.glob(pattern)
    return read_logs([path], LogChoices(**options))[0]


def test_the_fixture_of_lm_eval(fixtures):
    log = only(fixtures, "eee-lm_eval-samples*")
    assert log.records["task"].unique().to_list() == ["math_perturbed_full"]
    name = "RylanSchaeffer/mem_Qwen3-93M_minerva_math_rep_0_sbst_1.0000_epch_1_ot_1"
    assert log.records["model"].unique().to_list() == [name]
    assert log.records["item"].to_list() == [str(number) for number in range(10)]
    assert log.records["score"].cast(pl.Float64).to_list() == [0.0] * 10
    assert log.versions == {"math_perturbed_full": "version 1.0"}


def test_the_fixtures_of_inspect(fixtures):
    log = only(fixtures, "eee-inspect-data_arc_qwen.json")
    assert log.records["score"].to_list() == ["C", "I", "I"]
    assert log.records["model"].unique().to_list() == ["ollama/qwen2.5:0.5b"]
    assert log.notes == [
        "eee-inspect-data_arc_qwen.json: 3 of the 2,376 items of inspect_evals/arc_easy were run"
    ]
    packed = only(fixtures, "inspect-mmlu-summary-choices.eval")
    assert packed.records.select("task", "model", "item", "score").rows() == [
        ("inspect_evals/mmlu_0_shot", "openai/gpt-4o", "1", "I")
    ]
    with refused(StudyError, "run-not-successful", {"status": "cancelled"}):
        only(fixtures, "inspect-2025*popularity.json")


def test_a_sample_and_its_summary_have_the_same_content(fixtures):
    """One log may be an archive and another JSON: what was asked is compared all the same."""
    from bayesrep.sources.evals.inspect_logs import _digest

    with zipfile.ZipFile(fixtures / "inspect-mmlu-summary-choices.eval") as archive:
        whole = json.loads(archive.read("samples/1_epoch_1.json"))["input"]
        short = json.loads(archive.read("summaries.json"))[0]["input"]
    assert _digest(whole) == _digest(short)


def test_the_fixture_of_helm(fixtures, tmp_path, monkeypatch):
    """By the script of the page."""
    page = Path(__file__).parents[1] / "docs" / "how-to" / "evaluation-logs.md"
    monkeypatch.chdir(tmp_path)
    (stats,) = fixtures.glob("*per_instance_stats.json")
    run = tmp_path / "helm" / "mmlu:x,model=openai_gpt2"
    run.mkdir(parents=True)
    (run / "per_instance_stats.json").write_bytes(stats.read_bytes())
    exec(page.read_text("utf-8").split("```python\n")[1].split("```")[0], {})
    table = pl.read_csv("scores.csv")
    assert table.select("dataset", "model").unique(maintain_order=True).rows() == [
        (f"mmlu:x:{split}", "openai_gpt2") for split in ("test", "valid")
    ]
    by = table.group_by("metric", "dataset", maintain_order=True)
    held = {f"{metric}:{name.split(':')[-1]}": rows for (metric, name), rows in by}
    expected = [
        next(s["mean"] for s in each["stats"] if s["name"]["name"] == "exact_match")
        for each in json.loads(stats.read_text())
        if each["stats"][0]["name"]["split"] == "test"
    ]
    assert held["exact_match:test"]["score"].to_list() == expected
    assert held["quasi_exact_match:test"]["score"].mean() == pytest.approx(1 / 9)  # HELM's own
    assert held["exact_match:valid"]["item"].to_list() == ["id11"]


def test_the_fixture_of_every_eval_ever(fixtures):
    log = only(fixtures, "eee-demo-model*")
    row = log.records.row(0, named=True)
    assert row["task"] == "demo-source.demo_bench"
    assert (row["model"], row["item"], row["said"]) == ("demo-org/demo-model", "demo_0001", True)
