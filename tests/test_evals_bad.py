"""Logs that are damaged, forged or contradict themselves: one line each, that says what to do."""

import json
import os
import zipfile
from pathlib import Path

import polars as pl
import pytest
import test_evals as makers
from refusals import refused

from bayesrep import OptionError, StudyError
from bayesrep.cli import main
from bayesrep.files import json_stream, strict_json
from bayesrep.sources.evals import inspect_logs, read_evaluations
from bayesrep.sources.evals.inspect_logs import zipfile as zipped
from bayesrep.sources.evals.solved import no_score_codes
from bayesrep.sources.evals.survey import list_contents

BOTH, TASKS = makers.BOTH, makers.TASKS
archive, lines, refuse = makers.archive, makers.json_lines, makers.refuse


def lm_eval(root, **options):
    return [makers.lm_eval(root, "m", task, **options) for task in TASKS]


def changed(file, change):
    """A JSON Lines file, its objects changed one by one."""
    lines(file, [change(json.loads(line)) for line in file.read_text().splitlines()])


def entries(task, **options):
    header, samples = makers.inspect_parts("m", task, **options)
    return [("summaries.json", json.dumps(samples)), ("header.json", json.dumps(header))]


def inspect(root, change, **options):
    """Logs of both data sets, each sample changed."""
    return [makers.inspect_json(root, "m", task, change=change, **options) for task in TASKS]


# JSON Lines


DEEP, LONG = "[" * 20_000 + "]" * 20_000, "9" * 5000
HALF = "\ud800"
ODD_TEXTS = {
    "cut off": (lambda text: text[:-40], {"line": 6}),
    "a key twice": (
        lambda text: text.replace('"exact_match": ', '"exact_match": 1.0, "exact_match": ', 1),
        {"line": 1, "reason": "the key 'exact_match' is given twice"},
    ),
    "deep": (
        lambda text: text.replace('"4", "resps"', f'{DEEP}, "resps"').replace(DEEP, "4", 1),
        {"line": 2, "reason": "lists and objects more than 100 deep"},
    ),
    "a huge number": (
        lambda text: text.replace('"4", "resps"', f'{LONG}, "resps"').replace(LONG, "4", 1),
        {"line": 2},
    ),
}


@pytest.mark.parametrize("odd", ODD_TEXTS)
def test_a_damaged_line_is_named(tmp_path, odd):
    files = lm_eval(tmp_path)
    change, told = ODD_TEXTS[odd]
    files[0].write_text(change(files[0].read_text()))
    assert "samples_old_" in refuse(files, "json-line-damaged", told).facts["where"]


@pytest.mark.parametrize(
    ("odd", "rule", "told"),
    [
        ({"exact_match": float("inf")}, "score-not-a-verdict", {"score": "Infinity"}),
        ({"exact_match": float("-inf")}, "score-not-a-verdict", {"score": "-Infinity"}),
        ({"exact_match": "maybe"}, "score-not-a-verdict", {"score": "maybe", "items": ["2"]}),
        ({"exact_match": {"a": 1}}, "score-not-a-verdict", {"score": '{"a": 1}'}),
        ({"exact_match": [0, 1]}, "score-is-a-list", {"score": "[0, 1]", "items": ["2"]}),
        ({"doc_id": None}, "record-field-missing", {"field": "item", "records": ["3"]}),
        ({"exact_match": HALF}, "text-not-unicode", {}),
        ({"doc_id": HALF}, "text-not-unicode", {}),
        ({"filter": HALF}, "text-not-unicode", {}),
    ],
)
def test_an_odd_value_of_a_line_is_named(tmp_path, odd, rule, told):
    files = lm_eval(tmp_path)
    changed(files[0], lambda row: row | odd if row["doc_id"] == 2 else row)
    assert "samples_old_" in refuse(files, rule, told).facts["where"]


def test_the_number_of_a_line_is_right_in_every_block(tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "JSON_BLOCK_BYTES", 700)
    files = lm_eval(tmp_path, items=40)
    assert read_evaluations(files, **BOTH).answers[0].correct.shape == (1, 40)
    rows = files[0].read_text().splitlines()
    rows[32] = rows[32][:-9]
    files[0].write_text("\n".join(rows))
    refuse(files, "json-line-damaged", {"line": 33})


@pytest.mark.parametrize("block", [10, 100, 2**23])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", ""])
def test_blocks_and_line_ends_change_nothing(tmp_path, monkeypatch, block, end):
    monkeypatch.setattr(json_stream, "JSON_BLOCK_BYTES", block)
    rows = [json.dumps({"a": {"b": number}, "c": "x"}) for number in range(20)]
    text = "\ufeff" + (end or "\n").join(rows) + end
    (tmp_path / "x.jsonl").write_bytes(text.encode())
    wanted = {"number": ("a", "b"), "text": ("c",)}
    table = pl.concat(json_stream.fields(tmp_path / "x.jsonl", wanted, unique=("number",)))
    assert table["number"].to_list() == list(map(str, range(20)))
    assert table["text"].to_list() == ["x"] * 20


def test_long_lines_are_refused(tmp_path, monkeypatch):
    files = lm_eval(tmp_path)
    monkeypatch.setattr(json_stream, "JSON_BLOCK_BYTES", 100)
    monkeypatch.setattr(json_stream, "MAX_LINE_BYTES", 60)
    refuse(files, "json-line-damaged", {"line": 1})


# What is no score

READERS = ("lm_eval", "every", "inspect_json", "inspect_eval", "csv", "parquet", "jsonl", "json")
MISSING = {
    "number": (None, float("nan"), None) * 3,
    "word": ("", "NaN", "N/A", "nan", "None", "null", " ", "NA", "n/a"),
}
FILLED = [1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1] * 3


def score_file(root, reader, task, scores, model="m"):
    """A file of one model's scores of items 0, 1, ... of a data set, as `paths` name it."""
    folder = root / model
    folder.mkdir(exist_ok=True)
    if reader.startswith("inspect"):
        left, make = iter(scores), getattr(makers, reader)
        put = lambda sample: sample["scores"]["match"].update(value=next(left))  # noqa: E731
        return make(folder, model, task, items=len(scores), change=put)
    rows = [{"item": f"{n}", "score": score} for n, score in enumerate(scores)]
    if reader == "lm_eval":
        kept = {"resps": [], "filter": "none", "metrics": ["acc"]}
        rows = [kept | {"doc_id": row["item"], "acc": row["score"]} for row in rows]
        return f"{model}={lines(folder / f'samples_{task}.jsonl', rows)}"
    if reader == "every":
        said = {"schema_version": "0.3.0", "evaluation_name": task, "model_id": model}
        rows = [
            said
            | {"sample_id": row["item"]}
            | {"evaluation": {"score": row["score"], "is_correct": row["score"] in (1, "1")}}
            for row in rows
        ]
        return lines(folder / f"{task}-every.jsonl", rows)
    rows = [row | {"dataset": task, "model": model} for row in rows]
    return makers.write_rows(folder / f"{task}.{reader}", rows)


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_not_scored_is_missing_however_it_is_written(tmp_path, reader, kind):
    scores = [each if kind == "number" else str(each) for each in FILLED]
    scores[1::4] = MISSING[kind]
    files = [score_file(tmp_path, reader, task, scores) for task in TASKS]
    none, kept = ([n for n in range(36) if (n % 4 == 1) == odd] for odd in (True, False))
    for threshold in (None, 0.5):
        found = read_evaluations(files, **BOTH, threshold=threshold)
        for data in found.answers:
            told = f"(9 items) of the 36 of {data.dataset!r}: scored of no model; left out"
            assert any(note.endswith(told) for note in found.notes)
            assert data.images.tolist() == [str(n) for n in kept]
            assert data.correct[0].tolist() == [FILLED[n] == 1 for n in kept]
    files += [score_file(tmp_path, reader, task, FILLED, "full") for task in TASKS]
    lacking = {"model": "m", "items": [str(n) for n in none], "item_count": 36, "dataset": "old"}
    refuse(files, "model-lacks-scores", lacking)
    found = read_evaluations(files, **BOTH, common=True)
    assert found.answers[0].correct.tolist() == [[FILLED[n] == 1 for n in kept]] * 2
    assert any("'m' has no score of items" in note and "'old'" in note for note in found.notes)


@pytest.mark.parametrize("code", [-1, "999.0"])
@pytest.mark.parametrize("reader", READERS)
def test_codes_for_no_score_are_refused_whatever_the_threshold(tmp_path, reader, code):
    scores = [code if n % 4 == 1 else each for n, each in enumerate(FILLED[:12])]
    if isinstance(code, str):
        scores = list(map(str, scores))
    files = [score_file(tmp_path, reader, task, scores) for task in TASKS]
    for threshold in (0.5, None):
        if reader != "every" or threshold is not None:  # what is correct, it says by itself
            told = {"items": ["1", "5", "9"], "others": ", where all others are from 0.0 to 1.0"}
            refuse(files, "score-outside-all-others", told, threshold=threshold)
    files = [score_file(tmp_path, reader, "old", FILLED[:12]), files[1]]
    told = {"where": str(files[1]).removeprefix("m="), "items": ["1", "5", "9"]}
    refuse(files, "score-outside-all-others", told, threshold=0.5)
    whole = [score_file(tmp_path, reader, task, [code] * 12) for task in TASKS]
    refuse(whole, "score-outside-all-others", {"others": ""}, threshold=0.5)


@pytest.mark.parametrize(
    ("scores", "codes"),
    [
        ([0, 1], []),
        ([0, 0.5, 1, 2], []),
        ([0, 100], []),
        ([0, 20, 99, 100], []),
        (range(1, 11), []),
        ([*range(1, 11), -1], [-1]),
        ([0, 37.5, 80, -1, -2], [-2, -1]),
        ([0, 37.5, 80, 999], [999]),
        ([0, 1, 100], [100]),
        ([1, 7, 10, 99], [99]),
        ([-2, -1, 0, 1, 2], []),
        ([-0.3, -1, 0.2, 1], []),
        ([-4.25, -3.5, -0.25], []),
        ([0.25, 1, -1], [-1]),
        ([999], [999]),
        ([-1], [-1]),
        ([0], []),
        ([], []),
    ],
)
def test_codes_stand_out_of_all_other_scores(scores, codes):
    assert no_score_codes(pl.Series([*scores, None], dtype=pl.Float64)) == codes


def test_only_predictions_are_no_scores(tmp_path):
    files = lm_eval(tmp_path, metrics=("bypass",), bypass=999)
    for options in ({}, {"threshold": 0.5}, {"threshold": 1000}, {"metric": "bypass"}):
        refuse(files, "lm-eval-predictions-only", {"metric": "bypass"}, **options)
    both = lm_eval(tmp_path, metrics=("acc", "bypass"), bypass=999)
    expected = [makers.solves("m", "old", n) for n in range(6)]
    assert read_evaluations(both, **BOTH).answers[0].correct[0].tolist() == expected


def test_ratings_that_failed_are_missing_and_said(tmp_path):
    """FastChat and LiveBench write -1 of these."""
    rows = [
        {"question_id": n, "model": m, "score": -1 if n % 4 == 1 else 5 + n % 3, "turn": 1}
        | {"category": task, "judge": ["gpt-4", "single-v1"]}
        for m in ("m", "mm")
        for task in TASKS
        for n in range(12)
    ]
    file = lines(tmp_path / "gpt-4_single.jsonl", rows)
    found = read_evaluations([file], **BOTH, threshold=6, scorer="gpt-4/single-v1")
    assert found.answers[0].images.tolist() == [str(n) for n in range(12) if n % 4 != 1]
    assert found.answers[0].correct.tolist() == [[n % 3 > 0 for n in range(12) if n % 4 != 1]] * 2
    assert any("12 scores are -1" in note for note in found.notes)
    rows[1]["score"] = 5
    lines(file, rows)
    refuse([file], "model-lacks-scores", {"model": "mm", "items": ["1"]}, threshold=6)


def test_records_of_what_failed_are_missing(tmp_path):
    file = makers.every(tmp_path)
    odd = ("q2", "q4")
    failed = {"error": "timeout", "evaluation": {"score": 0.0, "is_correct": False}}
    changed(file, lambda row: row | failed if row["sample_id"] in odd else row)
    refuse([file], "model-lacks-scores", {"items": list(odd)})
    found = read_evaluations([file], **BOTH, common=True)
    assert found.answers[0].images.tolist() == ["q0", "q1", "q3", "q5"]
    assert any("4 records say that something failed: no score" in note for note in found.notes)


def test_a_model_without_any_score_is_named(tmp_path):
    files = [score_file(tmp_path, "csv", task, FILLED) for task in TASKS]
    files += [score_file(tmp_path, "csv", task, [None] * 36, "none") for task in TASKS]
    notes = read_evaluations(files, **BOTH).notes
    assert "left out: 'none', which has no scores on 'old'" in notes


@pytest.mark.parametrize("reader", ["inspect", "jsonl", "parquet"])
def test_a_list_of_scores_is_a_panel_of_judges(tmp_path, reader):
    """k of n of its judges said yes; one that said nothing is not counted."""
    panels = [[1, n % 2, None if n == 3 else 0, "C"] for n in range(6)]
    put = lambda sample: sample["scores"]["panel"].update(value=panels[sample["id"]])  # noqa: E731
    files = inspect(tmp_path, put, scorers=("match", "panel"))
    for task in TASKS if reader != "inspect" else ():
        _, samples = makers.inspect_parts("m", task, scorers=("match", "panel"), change=put)
        rows = [
            {"dataset": task, "item": str(each["id"]), "model": "m", "scorer": name}
            | {"score": value if isinstance(value, str) else json.dumps(value)}
            for each in samples
            for name, value in ((name, each["scores"][name]["value"]) for name in each["scores"])
        ]
        files = [*files[1:], makers.write_rows(tmp_path / f"{task}.{reader}", rows)]
    refuse(files, "score-is-a-list", {"score": '[1, 0, 0, "C"]'}, scorer="panel")
    data = read_evaluations(files, **BOTH, scorer="match", judges="panel").study().reference
    assert data.selected.tolist() == [2, 3, 2, 3, 2, 3]
    assert data.shown.tolist() == [4, 4, 4, 3, 4, 4]
    assert data.answers.workers.tolist() == [f"panel[{n}]" for n in range(1, 5)]
    assert data.correct[:, 0].tolist() == [makers.solves("m", "old", n) for n in range(6)]
    panels = [[None], [], None, [None, "NaN"], [], []]
    silent = inspect(tmp_path, put, scorers=("match", "panel"))
    told = {"judges": ["panel"]}
    refuse(silent, "judge-without-scores", told, OptionError, scorer="match", judges="panel")


def test_samples_that_failed_are_no_scores_that_were_not_given(tmp_path):
    files = inspect(
        tmp_path, lambda each: each.update(scores=None) if each["id"] % 4 == 2 else None, items=12
    )
    refuse(files, "model-lacks-scores", {"model": "m", "items": ["2", "6", "10"]})
    assert len(read_evaluations(files, **BOTH, common=True).answers[0].images) == 9


def firsts_without_scores(found):
    """What is said of first attempts that have no score."""
    return [note for note in found.notes if "first attempt of" in note]


@pytest.mark.parametrize("none", [{"scores": {"match": {"value": "NaN"}}}, {"scores": None}])
def test_a_first_attempt_without_a_score_is_said(tmp_path, none):
    odd = ("old 3?", 1)
    drop = lambda each: each.update(none if (each["input"], each["epoch"]) == odd else {})  # noqa: E731
    found = read_evaluations(inspect(tmp_path, drop, items=10, epochs=2), **BOTH)
    expected = [makers.solves("m", "old", n, 1 + (n == 3)) for n in range(10)]
    assert found.answers[0].correct[0].tolist() == expected
    told = (
        "the first attempt of 'm' at item '3' (1 of the 10 of 'old') has no score by 'match': "
        "the next that has one counts"
    )
    assert firsts_without_scores(found) == [told]
    tried = dict(zip(found.attempts[0].images, found.attempts[0].attempts, strict=True))
    assert tried == {str(n): 1 + (n != 3) for n in range(10)}


def test_a_first_repeat_without_a_score_is_said(tmp_path):
    one, two = (lm_eval(tmp_path / run) for run in ("one", "two"))
    changed(one[0], lambda row: {**row, "exact_match": None} if row["doc_id"] == 2 else row)
    for file in two:  # of the second run, that item 4 has no score changes no first attempt
        changed(file, lambda row: {**row, "exact_match": None} if row["doc_id"] == 4 else row)
    found = read_evaluations([*one, *two], **BOTH, repeats=True)
    told = (
        "the first attempt of 'm' at item '2' (1 of the 6 of 'old') has no score: "
        "the next that has one counts"
    )
    assert firsts_without_scores(found) == [told]


def test_a_verdict_on_a_later_attempt_is_said(tmp_path):
    def drop(sample):
        if (sample["id"], sample["epoch"]) == (5, 1):
            sample["scores"]["judge"]["value"] = None

    files = inspect(tmp_path, drop, epochs=2, scorers=("match", "judge"))
    found = read_evaluations(files, **BOTH, scorer="match", judges="judge")
    assert [note.split(": ")[0] for note in firsts_without_scores(found)] == [
        f"the first attempt of 'm' at item '5' (1 of the 6 of {task!r}) has no score by 'judge'"
        for task in TASKS
    ]


@pytest.mark.parametrize("named", [True, False])
def test_one_item_with_two_scores(tmp_path, named):
    """Filters that are not named are no attempts."""
    files = lm_eval(tmp_path)
    for file in files if not named else ():
        changed(file, lambda row: {k: v for k, v in row.items() if k != "filter"})
    rows = files[0].read_text().splitlines()
    files[0].write_text("\n".join([*rows, rows[3]]))
    again = f"{files[0].name}: 1 records "
    assert any(note.startswith(again) for note in read_evaluations(files, **BOTH).notes)
    row = json.loads(rows[3])
    other = json.dumps({**row, "exact_match": 1 - row["exact_match"]})
    files[0].write_text("\n".join([*rows, other]))
    rule = "item-scored-several-times" if named else "filters-not-named"
    told = refuse(files, rule, {"items": ["3"], "dataset": "old", "model": "m"})
    assert "samples_old_" in told.facts["file"]
    assert ("--repeats" in told) == named


def test_the_model_with_two_scores_is_named_not_one_with_copies(tmp_path):
    rows = [("old", f"o{n}", model, n % 2) for model in ("good", "bad") for n in range(4)]
    rows += [("new", f"n{n}", model, 1) for model in ("good", "bad") for n in range(4)]
    rows += [rows[0], ("new", "n3", "bad", 0)]
    frame = pl.DataFrame(rows, ["dataset", "item", "model", "score"], orient="row")
    frame.write_csv(tmp_path / "log.csv")
    told = {"items": ["n3"], "dataset": "new", "model": "bad"}
    refuse([tmp_path / "log.csv"], "item-scored-several-times", told)
    listed = list_contents([tmp_path / "log.csv"])[0]
    assert dict(listed.select("dataset", "attempts").iter_rows()) == {"old": 1, "new": 2}


# One model beside another


def test_a_model_twice(tmp_path):
    files = [*lm_eval(tmp_path / "one"), *lm_eval(tmp_path / "two")]
    for file in files[2:]:
        changed(file, lambda row: {**row, "exact_match": 1 - row["exact_match"]})
    told = {"model": "m", "dataset": "old", "items": list("012345")}
    where = refuse(files, "model-repeated-on-data-set", told).facts["files"]
    assert str(tmp_path / "two" / "m" / "samples_old_") in where
    assert read_evaluations([*files[:2], *(f"n={file}" for file in files[2:])], **BOTH)
    refuse([files[0], files[0]], "log-given-twice", {"path": str(files[0])})


@pytest.mark.parametrize("options", [{}, {"repeats": True}])
@pytest.mark.parametrize("make", [makers.lm_eval, makers.inspect_json, None])
def test_a_copy_of_a_log_is_no_further_attempt(tmp_path, make, options):
    first, again = tmp_path / "one", tmp_path / "two"
    for folder in (first, again):
        folder.mkdir()
    if make is None:
        files = [makers.scores(folder, kind="csv") for folder in (first, again)]
    else:
        files = [make(folder, "m", task) for folder in (first, again) for task in TASKS]
    told = {"path": str(files[len(files) // 2]), "other": str(files[0])}
    refuse(files, "same-file-twice", told, **options)


def _rewritten(file, folder, change=lambda held: None):
    """A log of Inspect in JSON as another program would save it."""
    held = json.loads(file.read_text())
    change(held)
    to = file.parent / folder / file.name
    to.parent.mkdir(exist_ok=True)
    to.write_text(json.dumps(dict(reversed(held.items())), indent=1))
    return to


def test_a_log_that_was_saved_anew_is_no_further_attempt(tmp_path):
    """By the identifiers of its samples, whatever it says of the run; or by those of the run."""

    def marked(held, run="first", sample=""):
        held["eval"] |= {"eval_id": run, "run_id": run, "created": f"2026 {run}"}
        for each in held["samples"]:
            each["uuid"] = f"{held['eval']['task']} {each['id']} {each['epoch']}{sample}"

    def unmarked(held):
        held["eval"] |= {"eval_id": "first"}

    plain = inspect(tmp_path, None)
    first = [_rewritten(file, "first", marked) for file in plain]
    for name, change in (("renamed", lambda held: marked(held, "second")), ("anew", marked)):
        again = [_rewritten(file, name, change) for file in first]
        told = {"path": str(again[0]), "other": str(first[0])}
        refuse([*first, *again], "same-samples-twice", told, repeats=True)
    twice = [_rewritten(file, name, unmarked) for name in ("u1", "u2") for file in plain]
    for file in twice[2:]:
        file.write_text(file.read_text() + "\n")
    refuse(twice, "same-samples-twice", repeats=True)
    # The same answers, of other samples.
    second = [_rewritten(f, "second", lambda held: marked(held, "second", " again")) for f in plain]
    found = read_evaluations([*first, *second], **BOTH, repeats=True)
    assert not any("copy" in note for note in found.notes)
    assert [set(table.attempts.tolist()) for table in found.attempts] == [{2}, {2}]
    # Without identifiers equal scores are said and counted.
    again = [_rewritten(file, "b") for file in plain]
    found = read_evaluations([*plain, *again], **BOTH, repeats=True)
    told = [note for note in found.notes if "give it once" in note]
    assert [str(each) in note for each, note in zip(again, told, strict=True)] == [True, True]


def test_lm_eval_files_of_one_time_are_of_one_run(tmp_path):
    files = [*lm_eval(tmp_path / "one"), *lm_eval(tmp_path / "two")]
    changed(files[2], lambda line: dict(reversed(line.items())))
    told = {"path": str(files[2]), "other": str(files[0])}
    refuse(files, "same-samples-twice", told, repeats=True)


def test_a_value_of_json_and_the_number_of_values_have_bounds(tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "MAX_LINE_BYTES", 40)
    small = '{"a": [1, 22, 333], "b": "' + "x" * 20 + '", "c": -1.5e3, "d": true, "\\u00e9": [{}]}'
    wanted = json.loads(small)
    for blanks in range(60):
        text = small.replace("{", "{" + " " * blanks, 1)
        assert dict(json_stream.parts(text, "f")) == wanted
    for value in ('"' + "x" * 39 + '"', "[" + "1," * 20 + "1]", "1" * 41):
        with refused(StudyError, "json-value-too-large", {"where": "f", "character": 5}):
            list(json_stream.parts(f'{{"a":{value},"b":1}}', "f"))
    with refused(StudyError, "json-file-damaged", {"reason": "Expecting value at character 55"}):
        list(json_stream.parts(" " * 50 + '{"a":x, "b": [1, 2]}', "f"))
    with refused(StudyError, "json-text-too-large", {"where": "f"}):
        json_stream.all_parts(" " * 41 + "{}", "f")
    monkeypatch.setattr(json_stream, "MAX_JSON_VALUES", 4)
    assert len(list(json_stream.parts("[1, 2, 3, 4]", "f"))) == 4
    for text in ("[1, 2, 3, 4, 5]", '{"a": 1, "b": 2, "c": 3}'):
        with refused(StudyError, "json-with-many-values", {"most": 4}):
            list(json_stream.parts(text, "f"))


def test_logs_of_two_models_may_be_equal(tmp_path):
    copies = lm_eval(tmp_path / "one") + [f"n={each}" for each in lm_eval(tmp_path / "two")]
    for options in ({}, {"repeats": True}):
        found = read_evaluations(copies, **BOTH, **options)
        assert found.answers[0].classifiers == ("m", "n")
        assert found.attempts == []


def test_two_data_sets_under_one_name(tmp_path):
    files = [makers.lm_eval(tmp_path, m, task) for m in ("m", "n") for task in TASKS]
    changed(files[2], lambda row: {**row, "doc_hash": f"other{row['doc_id']}"})
    refuse(files, "item-contents-differ", {"items": list("012345"), "dataset": "old"})
    assert read_evaluations(files, **BOTH, key="id").answers[0].correct.shape == (2, 6)
    lacking = {"items": [f"other{item}" for item in range(6)], "item_count": 12}
    refuse(files, "model-lacks-scores", lacking | {"dataset": "old"}, key="content")


def test_two_versions_of_one_data_set(tmp_path):
    files = [makers.lm_eval(tmp_path, m, task) for m in ("m", "n") for task in TASKS]
    (results,) = files[2].parent.glob("results*")
    results.write_text(results.read_text().replace('"old": 1.0', '"old": 2.0'))
    told = {"version": "version 2.0", "dataset": "old", "other_version": "version 1.0"}
    refuse(files, "data-set-versions-differ", told)


def test_items_joined_by_their_contents(tmp_path):
    files = [makers.lm_eval(tmp_path, m, task) for m in ("m", "n") for task in TASKS]
    changed(files[2], lambda row: {**row, "doc_id": 5 - row["doc_id"]})
    refuse(files, "item-contents-differ", {"items": list("012345"), "dataset": "old"})
    found = read_evaluations(files, **BOTH, key="content").answers[0]
    expected = [[makers.solves(m, "old", item) for item in range(6)] for m in ("m", "n")]
    assert found.correct.tolist() == expected


def test_a_model_that_lacks_half_the_items(tmp_path):
    files = lm_eval(tmp_path, items=12)
    files += [makers.lm_eval(tmp_path, "half", task, items=6) for task in TASKS]
    lacking = {"model": "half", "items": ["6", "7", "8", "9", "10", "11"]}
    refuse(files, "model-lacks-scores", lacking | {"item_count": 12, "dataset": "old"})
    found = read_evaluations(files, **BOTH, common=True)
    assert found.answers[0].correct.shape == (2, 6)
    files[2:] = [makers.every(tmp_path)]
    keys = {"key": "sample_id", "other_key": "doc_id", "dataset": "old"}
    tools = {"tool": "Every Eval Ever", "other_tool": "lm-evaluation-harness"}
    refuse(files, "item-keys-differ", keys | tools)
    refuse(files, "no-item-shared-by-models", {"dataset": "old"}, key="id", common=True)


def test_a_metric_of_which_less_is_better(tmp_path):
    files = lm_eval(tmp_path, metrics=("perplexity",))
    (results,) = files[0].parent.glob("results*")
    facts = json.loads(results.read_text())
    facts["higher_is_better"] = {"old": {"perplexity": False}}
    results.write_text(json.dumps(facts))
    refuse(files, "metric-lower-is-better", {"metric": "perplexity"})


# Names


def test_names_that_could_steer_a_terminal_or_a_page(tmp_path, capsys):
    odd = "\x1b[31m<script>alert(1)</script>\x07"
    file = makers.every(tmp_path, models=(odd, "plain", "third"))
    changed(file, lambda row: {**row, "sample_id": f"{row['sample_id']}\x00\u202e"})
    out = tmp_path / "out"
    words = ["import", "evals", str(file), "--reference", "old", "--replication", "new"]
    assert main([*words, "--solvers", "plain,third", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.isprintable() or all(line.isprintable() for line in said.splitlines())
    study = __import__("bayesrep").read_study(out)
    assert study.classifiers == (r"\x1b[31m<script>alert(1)</script>\x07",)
    assert all(name.isprintable() for name in study.reference.images.tolist())


@pytest.mark.parametrize("field", ["task", "model", "id", "scorer", "metric"])
def test_half_a_surrogate_pair_in_a_name(tmp_path, field):
    def put(sample):
        score = sample["scores"]["match"]
        if field == "id":
            sample["id"] = f"{sample['id']}{HALF}"
        if field == "scorer":
            sample["scores"] = {HALF: score}
        if field == "metric":
            score["value"] = {HALF: "C"}

    header, samples = makers.inspect_parts("m", "old", change=put)
    if field in header["eval"]:
        header["eval"][field] += HALF
    (tmp_path / "b.json").write_text(json.dumps({**header, "samples": samples}))
    parts = [("summaries.json", json.dumps(samples)), ("header.json", json.dumps(header))]
    for file in (tmp_path / "b.json", archive(tmp_path / "b.eval", parts)):
        refuse([file], "text-not-unicode", {"where": str(file)})
    files = lm_eval(tmp_path)
    changed(files[0], lambda row: {**row, "metrics": [HALF], HALF: 1.0})
    every = makers.every(tmp_path, model_id=HALF)
    for logs, odd in ((files, files[0]), ([every], every)):
        refuse(logs, "text-not-unicode", {"where": str(odd)})


def test_names_of_files_that_are_no_text(tmp_path):
    """Bytes that are no UTF-8 in a file's name are half surrogate pairs to Python."""
    name = os.fsdecode(b"s\xff.csv")
    try:
        makers.scores(tmp_path, kind="csv").rename(tmp_path / name)
    except OSError:
        return  # a file system that has no such names
    found = read_evaluations([tmp_path / name], **BOTH)
    assert found.provenance["files"] == [r"s\udcff.csv"]
    (tmp_path / name).write_text("item,model,score\nq1,m,1\n")
    refuse([tmp_path / name], "text-not-unicode", {"text": os.fsdecode(b"s\xff")})


def test_half_a_surrogate_pair_where_nothing_is_used_is_none_of_our_business(tmp_path):
    files = lm_eval(tmp_path, target=f"4{HALF}")
    put = lambda each: each.update(messages=[f"4{HALF}"])  # noqa: E731
    files += [makers.inspect_json(tmp_path, "n", task, change=put) for task in TASKS]
    assert read_evaluations(files, **BOTH, key="id").answers[0].correct.any()


def test_a_question_as_a_key_is_shortened_and_stays_unique(tmp_path):
    rows = [(t, "why " * 200 + str(n), "m", n % 2) for t in TASKS for n in range(5)]
    table = pl.DataFrame(rows, ["dataset", "question", "model", "score"], orient="row")
    table.write_parquet(tmp_path / "s.parquet")
    images = read_evaluations([tmp_path / "s.parquet"], **BOTH).answers[0].images.tolist()
    assert len(set(images)) == 5
    assert max(map(len, images)) < 100


# Archives


PACKED = [zipfile.ZIP_DEFLATED, zipped.ZIP_ZSTANDARD]
SUMMARIES, HEADER = entries("old")
OUTSIDE = ("../../etc/passwd", "/etc/passwd", "samples/../../x", "C:\\x", "\\\\host\\x")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("made", "rule", "told"),
    [
        ([SUMMARIES], "run-not-ended", {"header_file": "header.json"}),
        ([HEADER], "log-without-summaries", {"summaries_file": "summaries.json"}),
        ([HEADER, ("summaries.json", "[]")], "log-without-samples", {}),
        ([SUMMARIES, HEADER, HEADER], "log-entry-repeated", {"entry": "header.json"}),
        ([SUMMARIES, HEADER, ("a\\b", "x")], "log-entry-name-forbidden", {"entry": "a\\b"}),
        *(
            ([SUMMARIES, HEADER, (name, "x")], "log-entry-leaves-folder", {"entry": name})
            for name in OUTSIDE
        ),
    ],
)
def test_an_odd_archive_is_refused(tmp_path, made, rule, told):
    refuse([archive(tmp_path / "b.eval", made)], rule, told)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["b.eval"]


@pytest.mark.parametrize("packed", PACKED)
def test_what_is_read_of_an_archive_has_one_bound(tmp_path, packed):
    """One entry that is too large, or many that are each small enough and not all together."""
    blank = "[" + " " * 2**24 + "]"
    parts = [(f"_journal/summaries/{n}.json", blank) for n in range(1, 25)]
    large = [[HEADER, ("summaries.json", 2 * blank)], [("header.json", 2 * blank), SUMMARIES]]
    large.append([("_journal/start.json", 2 * blank), SUMMARIES])
    for made, least in (
        *((each, 2**25) for each in (*large, [HEADER, *parts[:2]])),
        ([HEADER, *parts], 24 * 2**24),
    ):
        bomb = archive(tmp_path / "b.eval", made, packed)
        assert bomb.stat().st_size < 2**16 * len(made)
        told = refuse([bomb], "log-entry-too-large")
        assert told.facts["unpacked_bytes"] > least
        assert made not in large or told.facts["entry"] == max(made, key=lambda e: len(e[1]))[0]


def test_more_entries_or_samples_than_any_log_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(inspect_logs, "MAX_ENTRIES", 5)
    made = [*((f"samples/{n}.json", "") for n in range(4)), SUMMARIES, HEADER]
    told = {"where": str(tmp_path / "b.eval"), "noun": "entries", "most": 5}
    refuse([archive(tmp_path / "b.eval", made)], "log-with-many-samples", told)
    packed = archive(tmp_path / "c.eval", entries("old"))
    for file in (packed, makers.inspect_json(tmp_path, "m", "old")):
        refuse([file], "log-with-many-samples", {"noun": "samples", "most": 5})
    monkeypatch.setattr(inspect_logs, "MAX_ENTRIES", 100)
    monkeypatch.setattr(inspect_logs, "MAX_SCORES", 11)
    file = makers.inspect_json(tmp_path, "m", "old", scorers=("match", "judge"))
    refuse([file], "log-with-many-samples", {"noun": "scores", "most": 11})
    monkeypatch.setattr(inspect_logs, "_MAX_DIRECTORY_BYTES", 100)
    refuse([tmp_path / "c.eval"], "log-archive-damaged")


def test_the_bounds_that_security_md_states_are_those_of_the_code():
    page = (Path(__file__).parents[1] / "SECURITY.md").read_text(encoding="utf-8")
    said = " ".join(page.split())
    for stated in (
        f"JSON may be {strict_json.MAX_BYTES >> 20} MB large",
        f"{strict_json.MAX_DEPTH} lists deep",
        f"{json_stream.MAX_JSON_BYTES >> 20} MB in JSON",
        f"lines of {json_stream.MAX_LINE_BYTES >> 20} MB",
        f"{inspect_logs.ALLOWED_BYTES >> 20} MB or {inspect_logs.MAX_EXPANSION} times what they "
        "are packed",
        f"{inspect_logs.MAX_ENTRIES:,} entries",
        f"{inspect_logs.MAX_SCORES:,} scores",
    ):
        assert stated in said


def test_lists_may_be_as_deep_in_a_log_as_in_any_json(tmp_path):
    files = [makers.inspect_json(tmp_path, "m", task) for task in TASKS]
    log = json.loads(files[0].read_text())
    for depth, deep in ((96, False), (101, True)):
        inner = 0
        for _ in range(depth):
            inner = [inner]
        files[0].write_text(json.dumps({**log, "stats": inner}))
        if deep:
            refuse(files, "json-file-damaged", {"reason": "lists and objects more than 100 deep"})
        else:
            assert read_evaluations(files, **BOTH)


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("odd", ["damaged", "lying", "cut"])
def test_a_damaged_archive_is_one_line(tmp_path, packed, odd):
    file = archive(tmp_path / "b.eval", entries("old"), packed)
    contents = bytearray(file.read_bytes())
    if odd == "damaged":
        start = contents.index(b"summaries.json") + 40
        contents[start : start + 20] = bytes(20)
    elif odd == "lying":  # of the size of an entry
        size = len(SUMMARIES[1])
        contents = contents.replace(size.to_bytes(4, "little"), (size - 7).to_bytes(4, "little"))
    file.write_bytes(contents if odd != "cut" else b"PK\x03\x04 and then nothing")
    refuse([file], "log-archive-damaged", {"path": str(file)})


def test_summaries_in_parts_are_put_together(tmp_path):
    files = []
    for task in TASKS:
        header, samples = makers.inspect_parts("m", task)
        halves = ((2, samples[3:]), (1, samples[:3]))
        parts = [(f"_journal/summaries/{n}.json", json.dumps(half)) for n, half in halves]
        made = [*parts, ("header.json", json.dumps(header))]
        files.append(archive(tmp_path / f"{task}.eval", made))
    assert read_evaluations(files, **BOTH).answers[0].images.tolist() == list("012345")


@pytest.mark.parametrize("status", ["error", "cancelled", "started", "invalidated", "running"])
@pytest.mark.parametrize("make", ["inspect_eval", "inspect_json"])
def test_a_run_that_failed_is_replaced_by_its_retry_or_refused(tmp_path, status, make):
    header, samples = makers.inspect_parts("m", "old", status=status)
    rule, name = "run-not-successful", "header.json"
    if status == "invalidated":
        header |= {"status": "success", "invalidated": True}
        rule = "log-marked-invalid"
    if make == "inspect_json":
        failed = tmp_path / "failed.json"
        failed.write_text(json.dumps({**header, "samples": samples[:2]}))
    else:
        if status == "running":
            rule, name = "run-not-ended", "_journal/start.json"
        parts = [("summaries.json", json.dumps(samples[:2])), (name, json.dumps(header))]
        failed = archive(tmp_path / "failed.eval", parts)
    refuse([failed], rule, {"where": str(failed)})
    refuse([failed, *(makers.inspect_json(tmp_path, "other", task) for task in TASKS)], rule)
    again = [makers.inspect_json(tmp_path, "m", task) for task in (*TASKS, "third")]
    for files in ([failed, *again], [*again, failed], [tmp_path]):
        found = read_evaluations(files, **BOTH)
        expected = [makers.solves("m", "old", item) for item in range(6)]
        assert found.answers[0].correct[0].tolist() == expected
        assert sum(f"left out: {failed.name}" in note for note in found.notes) == 1
    found = read_evaluations([failed, *again[1:]], reference="third", replication="new")
    assert "left out: data set 'old', which the logs hold too" in found.notes


def test_an_odd_sample_of_inspect(tmp_path):
    header, samples = makers.inspect_parts("m", "old")
    for odd, told in (
        ({**samples[0], "epoch": "x"}, ("sample-epoch-not-number", {"epoch": "x", "sample": 0})),
        ("text", ("sample-without-id",)),
        ({"epoch": 1}, ("sample-without-id",)),
    ):
        file = tmp_path / "b.json"
        file.write_text(json.dumps({**header, "samples": [odd]}))
        refuse([file], *told)
    file.write_text(json.dumps({**header, "eval": {}, "samples": samples}))
    refuse([file], "log-without-task-or-model")
    for text in ("", "{", '{"status": "success", "eval": 1', "[" * 5000):
        file.write_text(text)
        refuse([file], "json-file-damaged", {"where": str(file)})


def test_early_logs_have_one_score_without_a_scorer(tmp_path):
    files = inspect(tmp_path, lambda each: each.update(score=each.pop("scores")["match"]))
    expected = [makers.solves("m", "old", item) for item in range(6)]
    assert read_evaluations(files, **BOTH).answers[0].correct[0].tolist() == expected


def test_no_answer_is_not_solved_and_said(tmp_path):
    files = [makers.inspect_eval(tmp_path, "m", task, value="N") for task in TASKS]
    found = read_evaluations(files, **BOTH)
    assert not found.answers[0].correct.any()
    assert sum(": 6 scores " in note for note in found.notes) == 2
    files = [makers.inspect_json(tmp_path, "m", task, value="P") for task in TASKS]
    told = {"low": 0.5, "high": 0.5, "items": list("012345")}
    refuse(files, "score-between-right-and-wrong", told, OptionError)


# Other formats


NEITHER = "correctness-neither-true-nor-false"
EACH = {"records": [str(number) for number in range(1, 13)]}
ITEMS = {"items": [f"q{number}" for number in range(6)]}
WRONG = {"score": 1.0, "is_correct": False}


@pytest.mark.parametrize(
    ("odd", "rule", "told"),
    [
        ({"evaluation": WRONG}, "score-contradicts-is-correct", ITEMS),
        ({"schema_version": "1.0.0"}, "unknown-schema-version", EACH | {"version": "1.0.0"}),
        ({"evaluation": {"score": 1.0}}, NEITHER, EACH),
    ],
)
def test_every_eval_ever_that_contradicts_itself(tmp_path, odd, rule, told):
    refuse([makers.every(tmp_path, **odd)], rule, told)


def test_every_eval_ever_says_itself_what_is_right(tmp_path):
    file = makers.every(tmp_path, evaluation={"score": 1.0, "is_correct": False})
    assert read_evaluations([file], **BOTH, threshold=0.5).answers[0].correct.all()
    file = makers.every(tmp_path, evaluation={"score": 0.4, "is_correct": True})
    assert read_evaluations([file], **BOTH).answers[0].correct.all()


def test_tables_without_what_they_need(tmp_path):
    file = tmp_path / "s.parquet"
    table = pl.DataFrame({"item": ["a"], "model": ["m"], "points": [1.0]})
    table.write_parquet(file)
    known = "score or solved or correct or is_correct"
    names = {"column": "score", "columns": "item, model, points", "known_names": known}
    refuse([file], "score-table-lacks-column", names)
    table.rename({"points": "score"}).with_columns(model=None).write_parquet(file)
    refuse([file], "record-field-missing", {"field": "model", "records": ["1"]})
    none = pl.DataFrame({"item": ["a"] * 2, "model": ["m"] * 2, "score": [float("nan")] * 2})
    none.with_columns(task=pl.Series(TASKS)).write_parquet(file)
    refuse([file], "logs-without-scores")


@pytest.mark.parametrize(
    ("rows", "rule", "told"),
    [
        ("old,q0,5,4\nnew,q0,1,4", "selected-exceeds-shown", {"images": ["q0"]}),
        ("old,q0,x,4\nnew,q0,1,4", "count-not-whole-in-rows", {"rows": "line 2 ('x')"}),
        ("old,q0,1,4\nold,q0,1,4\nnew,q0,1,4", "item-counted-twice", {"items": ["q0"]}),
        ("old,q0,1,4", "no-counts-of-data-set", {"dataset": "new", "datasets": ["old"]}),
    ],
)
def test_more_solved_than_attempted_and_counts_that_are_none(tmp_path, rows, rule, told):
    log, counts = makers.every(tmp_path), tmp_path / "c.csv"
    counts.write_text(f"dataset,item,selected,shown\n{rows}\n")
    assert refuse([log], rule, told, counts=counts).facts["where"].startswith(str(counts))


def test_what_is_no_log(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    (tmp_path / "b.json").write_text('{"x": 1}')
    (tmp_path / "c.txt").write_text("x")
    for name in ("a.jsonl", "b.json", "c.txt"):
        rule = "unknown-log-ending" if name == "c.txt" else "unknown-log-contents"
        refuse([tmp_path / name], rule, {"path": str(tmp_path / name)})
    refuse([tmp_path], "no-evaluation-log")
    refuse([tmp_path / "none.jsonl"], "evaluation-log-not-found")
    refuse([], "no-evaluation-log", {"where": "evals"})
    (tmp_path / "a.jsonl").write_text("")
    refuse([tmp_path / "a.jsonl"], "json-lines-file-empty")


def test_options_that_contradict(tmp_path):
    log = makers.every(tmp_path)
    refuse([log], "reference-is-replication", kind=OptionError, reference="old", replication="old")
    told = {"datasets": "old (6 items, 1 model), new (6 items, 1 model)"}
    with refused(OptionError, "reference-and-replication-unnamed", told):
        read_evaluations([log])
    told = {"choices": "auto, id, content", "key": "name"}
    refuse([log], "unknown-item-key", told, OptionError, key="name")
    refuse([log], "unknown-solver-model", {"models": ["x"]}, OptionError, solvers="x")
    told = {"beside_solvers": " beside the solvers a/m"}
    refuse([log], "no-model-on-both-sets", told, solvers="a/m")
    refuse([log], "scorer-also-judge", {"scorer": "x"}, OptionError, scorer="x", judges="x")
