"""Answers about images' own labels, all labels as questions, and counts of labels."""

from unittest import mock

import numpy as np
import polars as pl
import pytest
from refusals import check, refusal, refused

from bayesrep import StudyError
from bayesrep.cli import main
from bayesrep.errors import TableWarning
from bayesrep.protocols import read_people
from bayesrep.sources import label_questions
from bayesrep.sources.label_questions import ask_each, count_choices, own_labels
from bayesrep.studies.predictions import Predictions


def said(*answers, dataset="v"):
    """Answers, "image word", each by a worker of its own."""
    rows = [(dataset, *answer.split(" "), f"w{place}") for place, answer in enumerate(answers)]
    return pl.DataFrame(rows, ["dataset", "image", "answer", "worker"], orient="row")


def own(**labels):
    rows = [("v", image, label) for image, label in labels.items()]
    return pl.DataFrame(rows, ["dataset", "image", "label"], orient="row")


def verdicts(found, column="answer"):
    table = found.group_by("image", maintain_order=True).agg(pl.col(column))
    return {image: words for image, words in table.iter_rows()}


def test_answers_about_images_own_labels_and_a_label_never_asked():
    answers = pl.DataFrame({"dataset": "v", "image": ["x", "x", "y"], "label": ["1", "2", "1"]})
    labels = pl.DataFrame({"dataset": "v", "image": ["x", "y", "z"], "label": [2, 1, 1]})
    with pytest.warns(TableWarning, match="f: 1 images have a label and no answers: image 'z'"):
        found = own_labels(answers, labels, "f")
    assert found.answers.rows() == [("v", "x", "2"), ("v", "y", "1")]
    assert found.left_out == {"about images without a label": 0, "about another label": 1}
    with (
        pytest.warns(TableWarning),
        refused(StudyError, "label-never-asked-about", {"where": "f", "images": ["y"]}),
    ):
        own_labels(answers, labels.with_columns(label=pl.lit("2")), "f")


def test_an_own_label_that_was_not_selected_is_a_no():
    answers = said("a dog", "a dog|fox", "a fox", "b dog", "b (empty)")
    found = own_labels(answers, own(a="fox", b="dog"), "f", "|")
    assert verdicts(found.answers) == {"a": ["no", "yes", "yes"], "b": ["yes", "no"]}
    assert sum(found.left_out.values()) == 0
    with pytest.warns(TableWarning, match="nobody selected label 'wolf' of any image; 1 images"):
        found = own_labels(answers, own(a="wolf", b="dog"), "f", "|")
    assert verdicts(found.answers) == {"a": ["no", "no", "no"], "b": ["yes", "no"]}
    assert found.answers["label"].to_list() == ["wolf"] * 3 + ["dog"] * 2


def test_images_without_a_label_and_labels_without_answers_are_named():
    answers = said("a dog", "b dog", "b cat", "c cat")
    with (
        pytest.warns(TableWarning, match=r"2 images have answers and no label.*'b', 'c'"),
        pytest.warns(TableWarning, match=r"1 images have a label and no answers: image 'd'"),
    ):
        found = own_labels(answers, own(a="dog", d="cat"), "f", "|")
    assert verdicts(found.answers) == {"a": ["yes"]}
    assert found.left_out == {"about images without a label": 3, "about another label": 0}
    facts = {"labelled": ["d"], "answered": ["a", "b", "c"]}
    with refused(StudyError, "own-labels-of-other-images", facts):
        own_labels(answers, own(d="dog"), "f", "|")
    hint = {"hint": "; they are there as images of data set 'w'"}
    with refused(StudyError, "own-labels-of-other-images", hint):
        own_labels(answers, own(a="dog").with_columns(dataset=pl.lit("w")), "f", "|")
    with refused(StudyError, "own-label-twice", {"images": ["a"]}):
        own_labels(answers, pl.concat([own(a="dog"), own(a="cat")]), "f", "|")


@pytest.mark.parametrize(
    ("called", "way"),
    [
        ("{}.png", "without endings"),
        ("val/{}", "without folders"),
        ("val\\{}.PNG", "without folders and endings"),
    ],
)
def test_images_of_labels_are_matched_as_those_of_tables(called, way):
    answers = said("0 dog", "1 cat", "1 dog", "2 fox")
    labels = own(**{called.format(at): word for at, word in enumerate(["dog", "cat", "cat"])})
    with pytest.warns(TableWarning, match=f"3 images of 'v' are matched with the answers {way}: "):
        found = own_labels(answers, labels, "f", "|")
    assert verdicts(found.answers) == {"0": ["yes"], "1": ["yes", "no"], "2": ["no"]}
    assert found.mark(count_choices(answers, "|")).filter("own")["image"].to_list() == [*"012"]


def test_labels_of_more_or_fewer_images_are_matched_by_the_fewer():
    answers = said("a dog", "b cat")
    more = own(**{f"{image}.png": "dog" for image in "abc"})
    with (
        pytest.warns(TableWarning, match="2 images of 'v' are matched with the answers"),
        pytest.warns(TableWarning, match=r"1 images have a label and no answers: image 'c.png'"),
    ):
        assert verdicts(own_labels(answers, more, "f", "|").answers) == {"a": ["yes"], "b": ["no"]}
    with (
        pytest.warns(TableWarning, match="1 images of 'v' are matched with the answers"),
        pytest.warns(TableWarning, match="1 images have answers and no label.*'b'"),
    ):
        assert verdicts(own_labels(answers, more.head(1), "f", "|").answers) == {"a": ["yes"]}
    partly = own(**{"a.png": "dog", "z.png": "dog"})
    facts = {"matching": "without endings", "images": ["b"]}
    with refused(StudyError, "image-names-partly-matched", facts):
        own_labels(answers, partly, "f", "|")


def test_labels_in_another_case_are_matched_one_to_one_or_refused():
    answers = said("a Dog", "a DOG", "a dog")
    facts = {"labels": ["DOG", "Dog", "dog"]}
    with refused(StudyError, "labels-alike-but-for-case", facts):
        own_labels(answers, own(a="dog"), "f", "|")
    asked = said("a yes", "a no", "b yes").with_columns(label=pl.Series(["Dog", "Cat", "CAT"]))
    with refused(StudyError, "labels-alike-but-for-case", {"labels": ["CAT", "Cat", "cat"]}):
        own_labels(asked, own(a="Dog", b="cat"), "f")
    for answers, separator in ((said("a Dog", "a Cat"), "|"), (asked, None)):
        with pytest.warns(
            TableWarning, match="1 labels of the answers are matched.*'Dog' is 'dog'"
        ):
            found = own_labels(answers.head(2), own(a="dog"), "f", separator)
        assert found.answers["label"].unique().to_list() == ["dog"]
        assert found.answers["answer"][0] == "yes"
    # Where the file has both, they are two.
    table = own_labels(said("a Crane", "b crane"), own(a="Crane", b="crane"), "f", "|").answers
    assert verdicts(table) == {"a": ["yes"], "b": ["yes"]}
    for labels in ("Crane", "crane"), ("1", "1.0"), ("NA", "none"):
        with pytest.warns(TableWarning, match=f"labels '{labels[0]}', '{labels[1]}'"):
            ask_each(said(*(f"a {label}" for label in labels)), "|")


def test_every_label_of_a_data_set_is_a_question_about_all_its_answers():
    answers = pl.concat([said("a dog", "b cat|dog"), said("a fox", dataset="u")])
    table = ask_each(answers, "|")
    assert table.select("dataset", "image", "label", "answer").rows() == [
        ("v", "a", "cat", "no"), ("v", "a", "dog", "yes"),
        ("v", "b", "cat", "yes"), ("v", "b", "dog", "yes"),
        ("u", "a", "fox", "yes"),
    ]  # fmt: skip


def test_a_table_of_too_many_rows_is_refused_before_it_is_made():
    answers = said(*(f"i{n} c{n % 7}" for n in range(70)))
    with mock.patch.object(label_questions, "MAX_ROWS", 489):
        facts = {"number": 70, "noun": "answers", "labels": 7, "rows": 490, "most": 489}
        with refused(StudyError, "too-many-answers-by-labels", facts):
            ask_each(answers, "|")
        with refused(StudyError, "too-many-answers-by-labels", facts | {"noun": "images"}):
            count_choices(answers, "|")
        labels = own(**{f"i{n}": "c1" for n in range(70)})
        assert own_labels(answers, labels, "f", "|").answers["answer"].value_counts(
            sort=True
        ).rows() == [("no", 60), ("yes", 10)]
    assert len(ask_each(answers, "|")) == 490


ANSWERS = """image,worker,answer,control
a,w1,dog,
a,w2,dog|cat,
a,w3,,
b,w1,cat,
b,w2,cat,
k,w1,dog,positive
"""


def written(folder, text, name="t.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.filterwarnings("always::bayesrep.errors.TableWarning")
def test_counts_go_from_foreign_answers_to_what_people_see(tmp_path, capsys):
    files = {name: str(tmp_path / f"{name}.csv") for name in ("out", "counts", "own", "labels")}
    answers = written(tmp_path, ANSWERS)
    words = f"answers import table v={answers} --separator | --out {files['out']}".split()
    assert main([*words, "--counts", files["counts"]]) == 0
    expected = {("a", "cat"): 1, ("a", "dog"): 2, ("b", "cat"): 2, ("b", "dog"): 0}
    table = pl.read_csv(files["counts"])
    assert table.columns == ["dataset", "image", "label", "selected", "shown"]
    rows = table.select("image", "label", "selected", "shown").rows()
    shown = {"a": 3, "b": 2}
    assert rows == [(*key, count, shown[key[0]]) for key, count in expected.items()]
    # The answers as a table of single questions say the same.
    again = f"answers import table v={files['out']} ".split()
    again += ["--rename", "selected=answer", "--rename", "label=label"]
    again += ["--out", str(tmp_path / "b.csv"), "--counts", str(tmp_path / "c.csv")]
    assert main(again) == 0
    assert pl.read_csv(tmp_path / "c.csv").equals(table)
    data = Predictions("v", ["a", "b"], ("dog", "cat"), [0, 0], ("p",), np.array([[[1], [1]]]))
    people = read_people(data, counts=tmp_path / "counts.csv")
    labels = np.array([[0, 0], [1, 1]])
    assert people.frequency.values_of(labels, np.nan).tolist() == [[2 / 3, 0], [1 / 3, 1]]
    # With own labels, whoever selected them.
    labels = written(tmp_path, "dataset,image,label\nv,a,dog\nv,b,wolf\nv,k,dog\n", "labels.csv")
    words += ["--labels", str(labels), "--counts", files["own"], "--force"]
    capsys.readouterr()
    assert main(words) == 0
    assert "nobody selected label 'wolf' of any image" in capsys.readouterr().err
    table = pl.read_csv(files["own"])
    assert table.columns == ["dataset", "image", "label", "own", "selected", "shown"]
    found = {row[:2]: row[2:] for row in table.drop("dataset").rows()}
    assert found == {
        ("a", "cat"): (False, 1, 3), ("a", "dog"): (True, 2, 3),
        ("b", "cat"): (False, 2, 2), ("b", "dog"): (False, 0, 2), ("b", "wolf"): (True, 0, 2),
    }  # fmt: skip
    assert len(pl.read_csv(files["out"])) == 6
    words = ["collect", "read", files["own"], "--table", "labels"]
    assert main([*words, "--out", str(tmp_path / "short.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if "never selected" in line][-1][-1] == "1"


def test_answers_that_name_no_label_are_refused_where_one_is_needed(tmp_path):
    answers = written(tmp_path, "image,worker,answer\na,w,yes\n")
    labels = written(tmp_path, "dataset,image,label\nv,a,dog\n", "l.csv")
    for more in (["--counts", tmp_path / "c.csv"], ["--labels", labels]):
        words = ["answers", "import", "table", f"v={answers}", "--out", tmp_path / "o.csv", *more]
        check(refusal(words), "answers-name-no-label")
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.filterwarnings("always::bayesrep.errors.TableWarning")
def test_the_command_says_which_answers_are_left_out(tmp_path, capsys):
    answers = written(tmp_path, "image,worker,answer\na,w1,dog\na,w2,fox\nb,w1,dog\n")
    labels = written(tmp_path, "dataset,image,label\nv,a,dog\n", "l.csv")
    words = f"answers import table v={answers} --separator | --labels {labels}".split()
    assert main([*words, "--out", str(tmp_path / "o.csv")]) == 0
    out, err = capsys.readouterr()
    assert "1 images have answers and no label; these are left out: image 'b'" in err
    assert "Left out, about images without a label: 1 answer." in out
    assert "about another label" not in out


def test_a_file_that_is_read_is_neither_replaced_nor_counted_twice(tmp_path, capsys):
    text = "dataset,image,worker,selected\nv,a,w1,1\nv,a,w2,0\n"
    given = written(tmp_path, text, "answers.csv")
    again = written(tmp_path, text, "again.csv")
    for words in (
        ["answers", "count", str(given)],
        ["answers", "count", str(given), "--rules", "repeats"],
        ["answers", "import", "table", f"v={given}", "--rename", "selected=answer"],
    ):
        check(refusal([*words, "--out", str(given), "--force"]), "output-is-input")
    twice = ["answers", "import", "table", f"v={given}", f"w={again}"]
    assert main([*twice, "--rename", "selected=answer", "--out", str(tmp_path / "o.csv")]) == 2
    assert given.read_text() == text
    assert not (tmp_path / "o.csv").exists()
