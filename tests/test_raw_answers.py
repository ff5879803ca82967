"""Answers as annotation tools export them: what is read, and which words are a yes."""

import json
import os
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import check, refusal, refused

import bayesrep
from bayesrep import OptionError, StudyError
from bayesrep.cli import main
from bayesrep.errors import TableWarning
from bayesrep.sources.exports.columns import Columns
from bayesrep.sources.labelled import ask_each
from bayesrep.sources.raw_answers import EMPTY, decide, read_raw

DATA = Path(
    os.environ.get("BAYESREP_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


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
        ("H1", "W1", "b", EMPTY, 12.0),
        ("H1", "W2", "a", "on", 30.0),
        ("H1", "W2", "b", "on", 30.0),
        ("H2", "W1", "c", EMPTY, 9.0),
    ]


@pytest.mark.parametrize("names", [("1.1", "1.10"), ("1e3", "1000"), ("001", "1"), ("1", "1.0")])
def test_names_that_look_like_numbers_stay_as_they_are_written(tmp_path, names):
    rows = "".join(f"H{n},W{n},{name},{n}\n" for n, name in enumerate(names))
    file = _write(tmp_path, "b.csv", f"HITId,WorkerId,Input.image_id,Answer.n\n{rows}")
    assert tuple(read_raw("mturk", file)["image"]) == names
    rows = "".join(f"{name},{name},{name},{name},9\n" for name in names)
    file = _write(tmp_path, "t.csv", f"image,worker,answer,about,seconds\n{rows}")
    table = read_raw("table", file, Columns(label="about"))
    for column in ("image", "worker", "answer", "label"):
        assert tuple(table[column]) == names
    assert table["seconds"].to_list() == [9.0, 9.0]


def test_names_are_the_same_in_every_form_of_unicode_and_without_blanks(tmp_path):
    text = "image,worker,answer,about\ncaf\u00e9,w,yes,\u00e9\n cafe\u0301 , w ,yes,e\u0301\n"
    table = read_raw("table", _write(tmp_path, "t.csv", text), Columns(label="about"))
    assert table.select(pl.col("image", "worker", "label").n_unique()).row(0) == (1, 1, 1)


def test_a_table_of_several_data_sets_is_not_one(tmp_path):
    text = "dataset,image,worker,answer\nv1,a,w,yes\n{},b,w,no\n"
    assert len(read_raw("table", _write(tmp_path, "one.csv", text.format("v1")))) == 2
    file = _write(tmp_path, "two.csv", text.format("v2"))
    with refused(StudyError, "answers-of-several-data-sets", {"datasets": ["v1", "v2"]}):
        read_raw("table", file)


def test_rejected_assignments_are_told(tmp_path):
    rows = "H,W,a,yes,Approved\nH,V,a,no,Rejected\n"
    heading = "HITId,WorkerId,Input.image,Answer.fits,AssignmentStatus\n"
    with pytest.warns(TableWarning, match="rejected .* 1$"):
        table = read_raw("mturk", _write(tmp_path, "b.csv", heading + rows))
    assert len(table) == 2


def test_a_box_that_nobody_ticked_has_no_column_but_an_answer(tmp_path):
    text = (
        "HITId,WorkerId,Input.image1,Input.image2,Input.image2_label,Answer.image1\nH,W,a,b,c,on\n"
    )
    file = _write(tmp_path, "b.csv", text)
    table = read_raw("mturk", file, Columns(image="Input.image*", answer="Answer.image*"))
    assert sorted(_rows(table, "image", "answer")) == [("a", "on"), ("b", EMPTY)]
    with refused(StudyError, "no-column-of-pattern", {"column": "Answer.box*"}):
        read_raw("mturk", file, Columns(image="Input.image*", answer="Answer.box*"))


def test_forms_of_mechanical_turk_are_columns(tmp_path):
    forms = [[{"fits": {"no": False, "yes": True}}], [{"box": {"on": False}, "fits": "no"}]]
    table = pl.DataFrame(
        {
            "HITId": ["H", "H"],
            "WorkerId": ["1", "2"],
            "Input.url": ["x", "x"],
            "Answer.taskAnswers": [json.dumps(form) for form in forms],
        }
    )
    table.write_csv(tmp_path / "b.csv")
    fits = read_raw("mturk", tmp_path / "b.csv", Columns(answer="Answer.fits"))
    assert _rows(fits, "worker", "answer") == [("1", "yes"), ("2", "no")]
    box = read_raw("mturk", tmp_path / "b.csv", Columns(answer="Answer.box"))
    assert _rows(box, "worker", "answer") == [("1", EMPTY), ("2", "false")]
    several = json.dumps([{"fits": {"dog": True, "cat": True, "fox": False}}])
    table.with_columns(pl.lit(several).alias("Answer.taskAnswers")).write_csv(tmp_path / "b.csv")
    kinds = read_raw("mturk", tmp_path / "b.csv", Columns(answer="Answer.fits", separator=";"))
    assert kinds["answer"].to_list() == ["dog;cat"] * 2


TASKS = [
    {
        "id": 7,
        "data": {"image": "x.png", "text": "?"},
        "annotations": [
            {
                "completed_by": {"id": 3, "email": "a@b"},
                "lead_time": 3.5,
                "result": [
                    {"from_name": "c", "type": "choices", "value": {"choices": ["A", "B"]}},
                    {"from_name": "note", "type": "textarea", "value": {"text": ["hm"]}},
                ],
            },
            {"completed_by": 4, "lead_time": 1, "result": []},
            {"completed_by": 5, "was_cancelled": True, "result": []},
        ],
    }
]
SMALL = [
    {
        "id": 7,
        "image": "x.png",
        "annotator": 3,
        "choice": {"choices": ["A", "B"]},
        "lead_time": 3.5,
    },
    {"id": 7, "image": "x.png", "annotator": 4, "lead_time": 1},
]


@pytest.mark.parametrize("tasks", [TASKS, SMALL])
def test_both_exports_of_label_studio_say_the_same(tmp_path, tasks):
    file = _write(tmp_path, "t.json", json.dumps(tasks))
    table = read_raw("label-studio", file)
    assert _rows(table) == [
        ("x.png", "3", "A|B", "7", 3.5),
        ("x.png", "4", EMPTY, "7", 1.0),
    ]
    each = ask_each(table.with_columns(dataset=pl.lit("v")), "|")
    assert _rows(each, "worker", "label", "answer") == [
        ("3", "A", "yes"),
        ("3", "B", "yes"),
        ("4", "A", "no"),
        ("4", "B", "no"),
    ]


def test_what_quality_control_needs_goes_along(tmp_path):
    text = "site,who,said,task,control,seconds\n1,w,yes,t,,9\n2,w,no,t,negative,9\n"
    file = _write(tmp_path, "t.csv", text)
    columns = ["--image", "site", "--worker", "who", "--answer", "said", "--keep-workers"]
    out = tmp_path / "a.csv"
    assert main(["answers", "import", "table", f"v={file}", *columns, "--out", str(out)]) == 0
    clean = [
        "answers",
        "clean",
        str(out),
        "--rules",
        "controls,time",
        "--out",
        str(tmp_path / "b.csv"),
    ]
    assert main(clean) == 0
    assert pl.read_csv(tmp_path / "b.csv")["image"].to_list() == [1]


def test_crowd_kits_tasks_are_images(tmp_path):
    file = _write(tmp_path, "c.csv", "task,worker,label\n007,w,1\n")
    assert _rows(read_raw("crowd-kit", file)) == [("007", "w", "1")]


@pytest.mark.parametrize(
    ("source", "text", "columns", "broken"),
    [
        (
            "mturk",
            GRID,
            {},
            (
                "assignment-column-ambiguous",
                {"prefix": "Input.", "columns": "Input.image1, Input.image2", "option": "image"},
            ),
        ),
        (
            "mturk",
            GRID,
            {"image": "Input.i", "answer": "Answer.i"},
            ("table-lacks-columns", {"columns": ["Input.i", "Answer.i"]}),
        ),
        (
            "mturk",
            GRID,
            {"image": "Input.x*", "answer": "Answer.x*"},
            ("no-column-of-pattern", {"column": "Input.x*"}),
        ),
        (
            "mturk",
            "HITId,WorkerId,Answer.taskAnswers\nH,W,oops\n",
            {},
            ("task-answers-not-a-list", {"row": 1}),
        ),
        ("mturk", "HITId\nH\n", {}, ("table-lacks-columns", {"columns": ["WorkerId"]})),
        (
            "crowd-kit",
            "task,worker,label\n1,,1\n",
            {},
            ("value-missing-in-rows", {"column": "worker", "rows": "line 2"}),
        ),
        ("label-studio", "[1]", {}, ("not-label-studio-export",)),
        ("label-studio", "{", {}, ("file-not-json",)),
        ("label-studio", "[]", {}, ("file-without-answers",)),
        (
            "label-studio",
            '[{"id": 1, "annotator": 2, "url": "x"}]',
            {},
            ("task-without-image", {"field": "image", "fields": "id, annotator, url"}),
        ),
        ("reassessed", "PK", {}, ("not-raters-archive",)),
    ],
)
def test_files_that_are_not_what_they_should_be(tmp_path, source, text, columns, broken):
    file = _write(tmp_path, "file.csv" if source != "label-studio" else "file.json", text)
    with refused(StudyError, *broken) as found:
        read_raw(source, file, Columns(**columns))
    assert str(file) in str(found.value)


def _answers(*words):
    places = [str(at) for at in range(len(words))]
    return pl.DataFrame({"image": places, "worker": places, "answer": list(words)})


def test_words_without_a_place_stop_and_are_counted():
    with refused(OptionError, "answer-without-meaning", {"answers": ["R (2 times)", "X (1 time)"]}):
        decide(_answers("R", "R", "X", "G"), no=["g"])
    with refused(OptionError, "answer-without-meaning", {"answers": ["maybe (1 time)"]}):
        decide(_answers("yes", "maybe"))


@pytest.mark.parametrize(
    ("rule", "selected"),
    [
        ("yes", [True, True, True, False]),
        ("no", [True, False, False, False]),
        ("left-out", [True, False]),
    ],
)
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
    ("rule", "broken"),
    [
        (
            {"yes": ["a"], "no": ["A"]},
            ("word-with-two-meanings", {"word": "a", "meaning": "yes", "other_meaning": "no"}),
        ),
        ({"maybe": ["a"]}, ("maybe-half-given",)),
        ({"maybe_is": "yes"}, ("maybe-half-given",)),
        (
            {"maybe": ["a"], "maybe_is": "perhaps"},
            ("unknown-meaning-of-maybe", {"maybe_is": "perhaps"}),
        ),
    ],
)
def test_rules_that_say_nothing_are_refused(rule, broken):
    with refused(OptionError, *broken):
        decide(_answers("a"), **rule)


def test_the_command_writes_a_table_that_import_takes(tmp_path, capsys):
    files = _write(tmp_path, "b.csv", GRID), _write(tmp_path, "c.csv", GRID + "\n")
    command = [
        "answers",
        "import",
        "mturk",
        f"v1={files[0]}",
        f"v2={files[1]}",
        "--out",
        str(tmp_path / "a.csv"),
    ]
    command += ["--image", "Input.image*", "--answer", "Answer.image*", "--yes", "on"]
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
    out = str(tmp_path / "a.csv")
    assert (
        main(["answers", "import", "crowd-kit", f"v={file}", "--out", out, "--keep-workers"]) == 0
    )
    assert "v: 1 answers " in capsys.readouterr().out
    assert (
        main(["answers", "clean", out, "--rules", "repeats", "--out", str(tmp_path / "b.csv")]) == 0
    )
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
