"""Answers as annotation tools export them: what is read, and which words are a yes."""

import json
import re
import warnings
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from published import DATA
from refusals import check, refusal, refused

import bayesrep
from bayesrep import OptionError, StudyError
from bayesrep.answers.counting import count_answers
from bayesrep.cli import main
from bayesrep.commands.options import names
from bayesrep.errors import TableWarning
from bayesrep.sources.assignments import read_assignments
from bayesrep.sources.exports.columns import Columns
from bayesrep.sources.label_questions import ask_each
from bayesrep.sources.raw_answers import EMPTY_ANSWER, decide, read_raw
from bayesrep.sources.table_files import read_answers
from bayesrep.sources.tables import check_tables


def _write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def _rows(table, *names):
    return table.select(names or table.columns).rows()


GRID = """HITId,WorkerId,WorkTimeInSeconds,Input.image1,Input.image2,Answer.image1,Answer.image2
H1,W1,12,a,b,on,
H1,W2,30,a,b,on,on
H2,W1,9,c,,,
"""


def test_a_grid_of_mechanical_turk_is_an_answer_an_image(tmp_path):
    file = _write(tmp_path, "b.csv", GRID)
    table = read_raw("mturk", file, Columns(image="Input.image*", answer="Answer.image*"))
    assert sorted(_rows(table, "task", "worker", "image", "answer", "seconds")) == [
        ("H1", "W1", "a", "on", 12.0),
        ("H1", "W1", "b", EMPTY_ANSWER, 12.0),
        ("H1", "W2", "a", "on", 30.0),
        ("H1", "W2", "b", "on", 30.0),
        ("H2", "W1", "c", EMPTY_ANSWER, 9.0),
    ]


def test_a_table_of_several_data_sets_is_not_one(tmp_path):
    text = "dataset,image,worker,answer\nv1,a,w,yes\n{},b,w,no\n"
    assert len(read_raw("table", _write(tmp_path, "one.csv", text.format("v1")))) == 2
    file = _write(tmp_path, "two.csv", text.format("v2"))
    with refused(StudyError, "answers-of-several-data-sets", {"datasets": ["v1", "v2"]}):
        read_raw("table", file)


HEADINGS = {
    "table": "image,worker,answer,task",
    "crowd-kit": "task,worker,label,seconds",
    "mturk": "Input.image,WorkerId,Answer.fits,HITId",
}
MARKS = [
    ("ASSIGNMENT:status", "APPROVED", "REJECTED"),
    ("ASSIGNMENT:status", "SUBMITTED", "SKIPPED"),
    ("ASSIGNMENT:status", "APPROVED", "EXPIRED"),
    ("ACCEPT:verdict", "+", "-"),
    ("ACCEPT:verdict", "", "-"),
    ("GOLDEN:result", "", "yes"),
    ("_golden", "False", "True"),
    ("_tainted", "false", "true"),
    ("AssignmentStatus", "Approved", "Rejected"),
    ("Reject", "", "too fast"),
]


@pytest.mark.parametrize(("column", "sound", "mark"), MARKS)
@pytest.mark.parametrize("source", HEADINGS)
def test_what_the_tool_rejected_or_planted_is_left_out_and_said(
    tmp_path, source, column, sound, mark
):
    rows = "".join(f"i,w{n},yes,9,{said}\n" for n, said in enumerate((sound, mark, sound)))
    file = _write(tmp_path, "t.csv", f"{HEADINGS[source]},{column}\n{rows}")
    with pytest.warns(TableWarning, match=rf"1 of 3 .*{column} \(1\)"):
        assert read_raw(source, file)["worker"].to_list() == ["w0", "w2"]
    unmarked = _write(tmp_path, "s.csv", file.read_text().replace(mark, ""))
    assert len(read_raw(source, unmarked)) == 3
    if source == "table":  # of which it may be what is asked for
        with pytest.warns(TableWarning, match="'answer' of answers is not read"):
            assert len(read_raw(source, file, Columns(answer=column))) == 3


NOBODIES = ["", *"nan NaN None NULL N/A <NA> #N/A #REF! #NV #WERT!".split()]


@pytest.mark.parametrize("word", NOBODIES)
@pytest.mark.parametrize("source", HEADINGS)
def test_nobody_who_answers_twice_is_as_many_people(tmp_path, source, word):
    rows = "".join(f"{i},{who},yes,9\n" for i in "ab" for who in (word, word, "ann"))
    file = _write(tmp_path, "t.csv", f"{HEADINGS[source]}\n{rows}")
    with pytest.warns(TableWarning, match=f"4 answers name nobody .worker '{re.escape(word)}'"):
        assert read_raw(source, file)["worker"].n_unique() == 5


READERS = {  # each reads, and may list what is wrong
    "answers import": lambda file: read_raw("table", file, Columns(answer="selected")),
    "import tables": lambda file: check_tables([file], reference="v1", replication="v2")[1],
    "answers count": lambda file: count_answers([file]),
    "answers count --rules": read_answers,
    "collect read": lambda file: read_assignments([file]),
}


@pytest.mark.parametrize("word", NOBODIES)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("column", ["worker", "image"])
def test_who_may_be_nobody_is_warned_of_or_refused(tmp_path, reader, word, column):
    heading = "dataset,image,worker,selected,task,Input.task,WorkerId,Answer.selected"
    image, who = ("a", word) if column == "worker" else (word, "ann")
    rows = f"v1,{image},{who},1,t,{image},{who},1\nv1,b,bob,0,t,b,bob,1\n"
    file = _write(tmp_path, "t.csv", f"{heading}\n{rows}")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            listed = READERS[reader](file)
        except StudyError as error:
            listed = [error]
    told = [each.message for each in warned] + (listed if isinstance(listed, list) else [])
    about = [str(each) for each in told if re.search("(worker|WorkerId|image|task) ", str(each))]
    found = [each for each in about if re.search("nobody|missing", each)]
    if column == "worker" or word == "" or word.startswith("#"):
        assert len(found) == 1
    else:  # an image may be called NA
        assert not found


def test_raters_in_columns_are_workers(tmp_path):
    text = "image,task,rater_1,rater_2,note\na,t,yes,no,x\nb,t,,yes,y\n"
    file = _write(tmp_path, "t.csv", text)
    with refused(StudyError, "answer-columns-missing", {"columns": ["worker", "answer"]}) as found:
        read_raw("table", file)
    assert "'rater_1'" in str(found.value)
    with pytest.warns(TableWarning) as told:
        table = read_raw("table", file, Columns(answer="rater_*"))
    assert sorted(_rows(table, "image", "worker", "answer")) == [
        ("a", "rater_1", "yes"), ("a", "rater_2", "no"), ("b", "rater_2", "yes"),
    ]  # fmt: skip
    assert [str(each.message).split(": ")[1] for each in told] == [
        "1 empty cells of raters are no answers",
        "column 'note' of answers is not read",
    ]
    with refused(StudyError, "no-column-of-pattern", {"column": "judge_*"}):
        read_raw("table", file, Columns(answer="judge_*"))
    with refused(StudyError, "answer-named-like-column", {"column": "note"}):
        read_raw("table", file, Columns(answer="rater_*", worker="note"))


def test_the_pages_tables_of_other_tools(tmp_path, monkeypatch, capsys):
    """Each line of "Bring your own data" makes a table of what a tool exports."""
    monkeypatch.chdir(tmp_path)
    people = {"fits_v1-ann": "accept", "fits_v1-bo-b": "reject", "fits_v1-cyd": "ignore"}
    said = [{"image": "a", "answer": said, "_annotator_id": who} for who, said in people.items()]
    _write(tmp_path, "fits_v1.jsonl", "".join(json.dumps(each) + "\n" for each in said))
    (tmp_path / "doccano").mkdir()
    for who, labels in {"ann": ["A", "B"], "bo-b": ["A"], "unknown": [], "all": ["A"]}.items():
        record = {"id": 1, "filename": "a", "label": labels}
        _write(tmp_path / "doccano", f"{who}.jsonl", json.dumps(record) + "\n")
    states = {"ann": None, "bo-b": "submitted", "cyd": "draft", "dan": "discarded"}
    fits = [{"value": "A", "user_id": who, "status": state} for who, state in states.items()]
    record = {"id": "1", "fields": {"image": "a"}, "responses": {"fits": fits}}
    _write(tmp_path, "records.json", json.dumps([record]))
    page = Path(__file__).parents[1] / "docs" / "how-to" / "own-data.md"
    (block,) = re.findall(r"```python\n(import json.*?)```", page.read_text("utf-8"), flags=re.S)
    held = {}
    exec(block, held)
    answers = {"prodigy": ["accept", "reject"], "doccano": ["A|B", "A"], "argilla": ["A", "A"]}
    for tool, words in answers.items():
        rows = pl.DataFrame(held[tool], ["image", "worker", "answer"], orient="row")
        rows.write_csv(tmp_path / "v1.csv")
        table = read_raw("table", tmp_path / "v1.csv").sort("worker")
        assert table["worker"].to_list() == ["ann", "bo-b"]
        assert table["answer"].to_list() == words
        assert main(["answers", "import", tool, "v=x", "--out", "o"]) == 2
        assert "docs/how-to/own-data.md" in capsys.readouterr().err


def test_a_box_that_nobody_ticked_has_no_column_but_an_answer(tmp_path):
    head = "HITId,WorkerId,Input.image1,Input.image2,Input.image2_label,Answer.image1"
    text = f"{head}\nH,W,a,b,c,on\n"
    file = _write(tmp_path, "b.csv", text)
    with pytest.warns(TableWarning, match="'Input.image2_label' of answers is not read"):
        table = read_raw("mturk", file, Columns(image="Input.image*", answer="Answer.image*"))
    assert sorted(_rows(table, "image", "answer")) == [("a", "on"), ("b", EMPTY_ANSWER)]
    with refused(StudyError, "no-column-of-pattern", {"column": "Answer.box*"}):
        read_raw("mturk", file, Columns(image="Input.image*", answer="Answer.box*"))


def test_forms_of_mechanical_turk_are_columns(tmp_path):
    forms = [[{"fits": {"no": False, "yes": True}}], [{"box": {"on": False}, "fits": "no"}]]
    columns = {"HITId": ["H", "H"], "WorkerId": ["1", "2"], "Input.url": ["x", "x"]}
    columns["Answer.taskAnswers"] = [json.dumps(form) for form in forms]
    table = pl.DataFrame(columns)
    table.write_csv(tmp_path / "b.csv")
    with pytest.warns(TableWarning, match="'Answer.box' of answers is not read"):
        fits = read_raw("mturk", tmp_path / "b.csv", Columns(answer="Answer.fits"))
    assert _rows(fits, "worker", "answer") == [("1", "yes"), ("2", "no")]
    with pytest.warns(TableWarning, match="'Answer.fits' of answers is not read"):
        box = read_raw("mturk", tmp_path / "b.csv", Columns(answer="Answer.box"))
    assert _rows(box, "worker", "answer") == [("1", EMPTY_ANSWER), ("2", "false")]
    several = json.dumps([{"fits": {"dog": True, "cat": True, "fox": False}}])
    table.with_columns(pl.lit(several).alias("Answer.taskAnswers")).write_csv(tmp_path / "b.csv")
    kinds = read_raw("mturk", tmp_path / "b.csv", Columns(answer="Answer.fits", separator=";"))
    assert kinds["answer"].to_list() == ["dog;cat"] * 2


CHOSEN = {"choices": ["A", "B"]}
RESULT = [
    {"from_name": "c", "type": "choices", "value": CHOSEN},
    {"from_name": "note", "type": "textarea", "value": {"text": ["hm"]}},
]
ANNOTATIONS = [
    {"completed_by": {"id": 3, "email": "a@b"}, "lead_time": 3.5, "result": RESULT},
    {"completed_by": 4, "lead_time": 1, "result": []},
]
TASKS = [{"id": 7, "data": {"image": "x.png", "text": "?"}, "annotations": ANNOTATIONS}]
IMAGE = {"id": 7, "image": "x.png"}
SMALL = [
    IMAGE | {"annotator": 3, "choice": CHOSEN, "note": "hm", "lead_time": 3.5},
    IMAGE | {"annotator": 4, "lead_time": 1},
]


@pytest.mark.parametrize("tasks", [TASKS, SMALL])
def test_both_exports_of_label_studio_say_the_same(tmp_path, tasks):
    file = _write(tmp_path, "t.json", json.dumps(tasks))
    with pytest.warns(TableWarning, match="'note' of answers is not read"):
        table = read_raw("label-studio", file)
    assert _rows(table) == [("x.png", "3", "A|B", "7", 3.5), ("x.png", "4", EMPTY_ANSWER, "7", 1.0)]
    each = ask_each(table.with_columns(dataset=pl.lit("v")), "|")
    said = [(who, label, word) for who, word in (("3", "yes"), ("4", "no")) for label in "AB"]
    assert _rows(each, "worker", "label", "answer") == said


def test_what_quality_control_needs_goes_along(tmp_path):
    text = "site,who,said,task,control,seconds\n1,w,yes,t,,9\n2,w,no,t,negative,9\n"
    file = _write(tmp_path, "t.csv", text)
    columns = ["--rename", "site=image", "--rename", "who=worker", "--rename", "said=answer"]
    out = tmp_path / "a.csv"
    assert main(["answers", "import", "table", f"v={file}", *columns, "--out", str(out)]) == 0
    clean = f"answers count {out} --rules controls,time --out {tmp_path / 'b.csv'}".split()
    assert main(clean) == 0
    assert pl.read_csv(tmp_path / "b.csv")["image"].to_list() == [1]


STAR = {"image": "Input.x*", "answer": "Answer.x*"}
UNKNOWN = {"image": "Input.i", "answer": "Answer.i"}
INPUTS = {"prefix": "Input.", "columns": "Input.image1, Input.image2", "option": "image"}
FIELDS = {"field": "image", "fields": "id, annotator, url"}
OOPS = "HITId,WorkerId,Answer.taskAnswers\nH,W,oops\n"
IMAGELESS = '[{"id": 1, "annotator": 2, "url": "x"}]'


@pytest.mark.parametrize(
    ("source", "text", "columns", "rule", "facts"),
    [
        ("mturk", GRID, {}, "assignment-column-ambiguous", INPUTS),
        ("mturk", GRID, UNKNOWN, "table-lacks-columns", {"columns": [*UNKNOWN.values()]}),
        ("mturk", GRID, STAR, "no-column-of-pattern", {"column": "Input.x*"}),
        ("mturk", OOPS, {}, "task-answers-not-a-list", {"row": 1}),
        ("mturk", "HITId\nH\n", {}, "table-lacks-columns", {"columns": ["WorkerId"]}),
        ("label-studio", "[1]", {}, "not-label-studio-export", {}),
        ("label-studio", "{", {}, "file-not-json", {}),
        ("label-studio", "[]", {}, "file-without-answers", {}),
        ("label-studio", IMAGELESS, {}, "task-without-image", FIELDS),
        ("reassessed", "PK", {}, "not-raters-archive", {}),
    ],
)
def test_files_that_are_not_what_they_should_be(tmp_path, source, text, columns, rule, facts):
    file = _write(tmp_path, "file.csv" if source != "label-studio" else "file.json", text)
    with refused(StudyError, rule, facts) as found:
        read_raw(source, file, Columns(**columns))
    assert str(file) in str(found.value)
    if source == "label-studio":  # as its CSV
        with refused(StudyError, "not-label-studio-export", {"reason": "a table, such as its CSV"}):
            read_raw(source, _write(tmp_path, "file.csv", "annotator,choice\n1,yes\n"))


def _answers(*words):
    places = [str(at) for at in range(len(words))]
    return pl.DataFrame({"image": places, "worker": places, "answer": list(words)})


def test_words_without_a_place_stop_and_are_counted():
    with refused(OptionError, "answer-without-meaning", {"answers": ["R (2 times)", "X (1 time)"]}):
        decide(_answers("R", "R", "X", "G"), no=["g"])
    with refused(OptionError, "answer-without-meaning", {"answers": ["maybe (1 time)"]}):
        decide(_answers("yes", "maybe"))
    with refused(OptionError, "answer-without-meaning") as found:
        decide(_answers("Yes, it fits"), yes=["Yes", "it fits"])
    written = str(found.value).split("--yes ")[-1].strip("'")
    assert decide(_answers("Yes, it fits"), yes=names(written))["selected"].to_list() == [True]


YES, NO, LEFT_OUT = [True, True, True, False], [True, False, False, False], [True, False]


@pytest.mark.parametrize(("rule", "selected"), [("yes", YES), ("no", NO), ("left-out", LEFT_OUT)])
def test_maybe_counts_as_it_is_told(rule, selected):
    table = _answers("Yes", "maybe", "MAYBE", "no")
    found = decide(table, yes=["yes"], no=["no"], maybe=["maybe"], maybe_is=rule)
    assert found["selected"].to_list() == selected
    usual = decide(table, maybe=["maybe"], maybe_is=rule)  # the others mean what they usually do
    assert usual.equals(found)


@given(st.lists(st.sampled_from(["yes", "maybe", "no"]), min_size=1), st.integers(0, 5))
def test_half_of_the_maybes_are_yes(words, seed):
    rule = {"yes": ["yes"], "no": ["no"], "maybe": ["maybe"], "maybe_is": "half", "seed": seed}
    found = decide(_answers(*words), **rule)["selected"]
    assert found.sum() == words.count("yes") + words.count("maybe") // 2
    assert found.equals(decide(_answers(*words), **rule)["selected"])


@pytest.mark.parametrize(
    ("words", "rule", "facts"),
    [
        ({"yes": ["a"], "no": ["A"]}, "word-with-two-meanings", {"word": "a", "meaning": "yes"}),
        ({"maybe": ["a"]}, "maybe-half-given", {}),
        ({"maybe_is": "yes"}, "maybe-half-given", {}),
        ({"maybe": ["a"], "maybe_is": "so"}, "unknown-meaning-of-maybe", {"maybe_is": "so"}),
    ],
)
def test_rules_that_say_nothing_are_refused(words, rule, facts):
    with refused(OptionError, rule, facts):
        decide(_answers("a"), **words)


def test_the_command_writes_a_table_that_import_takes(tmp_path, capsys):
    files = _write(tmp_path, "b.csv", GRID), _write(tmp_path, "c.csv", GRID + "\n")
    command = f"answers import mturk v1={files[0]} v2={files[1]} --out {tmp_path / 'a.csv'}".split()
    command += ["--rename", "Input.image*=image", "--rename", "Answer.image*=answer"]
    command += ["--yes", "on"]
    check(refusal(command), "answer-without-meaning", {"answers": ["(empty) (4 times)"]})
    assert not (tmp_path / "a.csv").exists()
    assert main([*command, "--no", "(empty)"]) == 0
    capsys.readouterr()
    table = pl.read_csv(tmp_path / "a.csv")
    assert table.columns == ["dataset", "image", "worker", "selected", "task", "seconds"]
    assert table["worker"].n_unique() == 2  # the same people in both, under one salt
    assert not table["worker"].str.starts_with("W").any()
    right = [(d, i, 1) for d in ("v1", "v2") for i in "abc"]
    pl.DataFrame(right, ("dataset", "image", "c"), orient="row").write_csv(tmp_path / "p.csv")
    tables = [str(tmp_path / name) for name in ("a.csv", "p.csv")]
    names = ["--reference", "v1", "--replication", "v2", "--out", str(tmp_path / "s")]
    assert main(["import", "tables", *tables, *names]) == 0
    study = bayesrep.read_study(tmp_path / "s")
    counted = zip(study.reference.images.tolist(), study.reference.selected.tolist(), strict=True)
    assert sorted(counted) == [("a", 2), ("b", 1), ("c", 0)]


def test_repeats_are_told_and_left_out_by_their_rule(tmp_path, capsys):
    file = _write(tmp_path, "c.csv", "task,worker,label\n1,w,1\n1,w,0\n2,w,1\n")
    out, kept, counts = (str(tmp_path / f"{name}.csv") for name in "abd")
    words = ["answers", "import", "crowd-kit", f"v={file}", "--out", out, "--keep-workers"]
    assert main(words) == 0
    assert "v: 1 answers " in capsys.readouterr().out
    words = "answers count --rules repeats --answers".split()
    assert main([*words, kept, out, "--out", counts]) == 0
    assert pl.read_csv(tmp_path / "b.csv")["selected"].to_list() == [True, True]


RATERS = DATA / "reassessed-imagenet" / "raters.npz"


@pytest.mark.skipif(
    not RATERS.is_file(), reason=f"no published files in {RATERS.parent}; set BAYESREP_DATA"
)
def test_reassessed_imagenet():
    table = read_raw("reassessed", RATERS)
    counts = dict(table["answer"].value_counts().rows())
    assert counts == {"no": 729_424, "maybe": 78_942, "yes": 116_444}
    assert table.select(pl.col("image", "worker").n_unique()).row(0) == (24_889, 85)
    assert set(table.group_by("image", "label").len()["len"]) == {5}


CROWD = DATA / "crowd"


@pytest.mark.skipif(not CROWD.is_dir(), reason=f"no published files in {CROWD}; set BAYESREP_DATA")
def test_sites_rated_by_ninety_workers(tmp_path):
    pl.read_csv(CROWD / "adultcontent3.csv.gz").write_csv(tmp_path / "a.csv")
    table = read_raw("table", tmp_path / "a.csv", Columns(image="item"))
    assert len(table) == 44_373
    decided = decide(table, yes=["R", "X", "B"], no=["G", "P"])
    assert decided["selected"].mean() == pytest.approx(0.4437, abs=1e-4)
