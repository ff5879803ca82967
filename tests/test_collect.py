"""Collecting a test set: tasks, their forms, answers back, and what they say an image shows."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import check, refusal, refused, run
from simulated_workers import Respondents, answer, write_answers

from bayesrep import StudyError
from bayesrep.cli import main
from bayesrep.collect import (
    Collection,
    GridDesign,
    candidate_labels,
    match_assignments,
    plan_classify,
    plan_grids,
    read_collection,
    wordnet,
    write_collection,
)
from bayesrep.collect.image_folders import find_pictures, labelled_images
from bayesrep.collect.responses import count_selections
from bayesrep.errors import OptionError
from bayesrep.report.collect_text import read_text
from bayesrep.sources.assignments import ASSIGNMENT_SCHEMA, read_assignments
from bayesrep.studies.predictions import Predictions

CATS, DOGS = "n02123045", "n02099601"
EXPORTS = Path(__file__).parent / "data" / "label_studio"


def asked(images=60, datasets=("v1", "v2"), labels=(CATS, DOGS)):
    rows = [(d, f"{i}.jpg", label) for d in datasets for label in labels for i in range(images)]
    table = pl.DataFrame(rows, schema=["dataset", "image", "label"], orient="row")
    return table.with_columns(image=pl.format("{}/{}", "label", "image"))


def controls(number=20, labels=(CATS, DOGS)):
    rows = [(f"c/{label}/{i}.jpg", label) for label in labels for i in range(number)]
    return pl.DataFrame(rows, schema=["image", "label"], orient="row")


def grids(design=None, **of):
    return plan_grids(asked(**of), controls(), design or GridDesign())


def contains(design=None, **of):
    how = design or GridDesign()
    return Collection("contains", grids(how, **of), how.workers, {})


# Candidates.


def test_candidates_are_the_top_answers_and_the_own_label():
    answers = np.array([[[1, 2], [0, 1]], [[2, 0], [0, -1]]])
    predictions = Predictions(
        "v1", ["a", "b"], ("x", "y", "z"), np.array([0, 2]), ("p", "q"), answers
    )
    table = candidate_labels([predictions], top=2)
    for image, labels, counts in (("a", "xzy", (1, 2, 1)), ("b", "zxy", (0, 2, 1))):
        rows = table.filter(image=image).select("label", "classifiers", "own").rows()
        assert rows == [*zip(labels, counts, (True, False, False), strict=True)]
    assert len(candidate_labels([predictions], top=1)) == 5
    facts = {"dataset": "v1", "known_count": 2, "top": 5}
    with refused(OptionError, "top-exceeds-known-answers", facts):
        candidate_labels([predictions])


# Grids.


@given(
    images=st.integers(1, 90),
    size=st.integers(5, 50),
    grids_of=st.sampled_from([(10, 5), (9, 3), (4, 1)]),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=40)
def test_every_image_is_in_as_many_grids_with_all_data_sets_mixed(images, size, grids_of, seed):
    design = GridDesign(*grids_of, size=size, positive=2, negative=1, seed=seed)
    table = grids(design, images=images)
    people = table.filter(pl.col("control").is_null())
    each = people.group_by("dataset", "image").agg(pl.len(), pl.col("task").n_unique())
    assert set(each["len"]) == set(each["task"]) == {design.grids}
    by_grid = table.group_by("task", maintain_order=True).agg(
        pl.len(),
        labels=pl.col("label").n_unique(),
        twice=pl.struct("dataset", "image").is_duplicated().any(),
        positive=(pl.col("control") == "positive").sum(),
        negative=(pl.col("control") == "negative").sum(),
        first=(pl.col("dataset") == "v1").sum().cast(pl.Int64),
        other=(pl.col("dataset") == "v2").sum().cast(pl.Int64),
        places=pl.col("place").sort(),
    )
    assert by_grid["len"].max() <= size
    assert set(by_grid["labels"]) == {1}
    assert not by_grid["twice"].any()
    assert set(by_grid["positive"]) == {2}
    assert set(by_grid["negative"]) == {1}
    assert all(row == list(range(1, len(row) + 1)) for row in by_grid["places"].to_list())
    # As many images of either data set as can be, so that nobody can tell them apart by rarity.
    assert (by_grid["first"] - by_grid["other"]).abs().max() <= 3


def test_neighbours_change_from_grid_to_grid():
    table = grids(GridDesign(size=28)).filter(pl.col("control").is_null())
    met = table.join(table, on="task").filter(
        pl.struct("dataset", "image") != pl.struct("dataset_right", "image_right")
    )
    pairs = met.group_by("dataset", "image", "dataset_right", "image_right").len()
    # 120 images a label in 6 grids a shuffle: two meet in one of five shuffles with 19 of 119.
    assert pairs["len"].mean() < 1.6
    assert pairs["len"].max() <= 5


def test_nobody_meets_an_image_twice_in_a_round():
    table, design = grids(GridDesign(size=28)), GridDesign()
    names = table["task"].unique().sort().to_list()
    size = len(names) // design.grids
    for begin in range(0, len(names), size):
        part = table.filter(
            pl.col("task").is_in(names[begin : begin + size]) & pl.col("control").is_null()
        )
        assert part.select("dataset", "image").is_unique().all()
        assert len(part) == 240


def test_positive_controls_show_the_label_and_negative_ones_do_not():
    table = grids().filter(pl.col("control").is_not_null())
    shows = table["image"].str.split("/").list.get(1) == table["label"]
    assert shows.to_list() == (table["control"] == "positive").to_list()
    assert set(table["dataset"]) == {"control"}


def test_the_same_seed_gives_the_same_tasks_and_names_tell_collections_apart():
    one, again, other = grids(), grids(), grids(GridDesign(seed=1))
    assert one.equals(again)
    assert one["task"][0].split("-")[0] != other["task"][0].split("-")[0]


TWICE = pl.concat([asked(1), asked(1)])


@pytest.mark.parametrize(
    ("rule", "table", "known", "facts"),
    [
        (
            "asked-images-lack-column",
            asked().drop("label"),
            controls(),
            {"column": "label", "needed": "dataset, image, label"},
        ),
        ("no-images-to-ask-about", asked().clear(), controls(), {}),
        (
            "asked-image-label-repeated",
            TWICE,
            controls(),
            {"images": [f"{CATS}/0.jpg", f"{DOGS}/0.jpg"]},
        ),
        ("controls-without-known-images", asked(), None, {"positive": 5, "negative": 3}),
        (
            "too-few-positive-controls",
            asked(),
            controls(3),
            {"positive": 5, "labels": [DOGS, CATS]},
        ),
        (
            "too-few-negative-controls",
            asked(labels=(CATS,)),
            controls(9, (CATS,)),
            {"negative": 3, "label": CATS},
        ),
        ("controls-lack-column", asked(), controls().drop("label"), {"column": "label"}),
    ],
)
def test_grids_that_cannot_be_are_refused_in_one_line(rule, table, known, facts):
    with refused(StudyError, rule, facts):
        plan_grids(table, known, GridDesign())


@pytest.mark.parametrize(
    ("numbers", "rule", "facts"),
    [
        ({"answers": 10, "grids": 4}, "answers-not-divisible-by-grids", {}),
        ({"size": 8}, "grid-too-small-for-controls", {"positive": 5, "negative": 3}),
        ({"positive": -1}, "grid-too-small-for-controls", {"size": 48, "negative": 3}),
    ],
)
def test_designs_that_cannot_be_are_refused(numbers, rule, facts):
    with refused(OptionError, rule, numbers | facts):
        GridDesign(**numbers)


def test_no_controls_where_none_are_asked_for():
    table = plan_grids(asked(), None, GridDesign(positive=0, negative=0))
    assert table["control"].null_count() == len(table) == 2 * 2 * 60 * 5


# The forms.

NASTY = "<script>alert('x')</script>, \"quoted\" & 'emoji' 🐈"


@pytest.fixture
def written(tmp_path):
    table = asked(4).with_columns(
        label=pl.lit(NASTY), image=pl.format("{}/{}", "label", "image"), source=pl.lit('a"b.jpg')
    )
    known = controls(9).with_columns(label=pl.lit(NASTY))
    tasks = plan_grids(table, known, GridDesign(4, 2, negative=0))
    collection = Collection("contains", tasks, 2, {"seed": 0})
    write_collection(tmp_path / "col", collection)
    return tmp_path / "col", collection


def test_a_collection_with_files_of_others_is_never_replaced(written):
    place, collection = written
    write_collection(place, collection)
    (place / "answers-of-monday.csv").touch()
    with refused(OptionError, "folder-holds-other-files", {"names": ["answers-of-monday.csv"]}):
        write_collection(place, collection)
    assert (place / "answers-of-monday.csv").exists()


def test_a_collection_is_read_back(written):
    folder, collection = written
    again = read_collection(folder)
    assert again.tasks.equals(collection.tasks)
    assert (again.kind, again.workers, again.made) == ("contains", 2, {"seed": 0})


def test_no_name_reaches_html_as_it_is(written):
    folder, _ = written
    for name in ("mturk.csv", "mturk.html", "page.html"):
        assert "<script>alert" not in (folder / name).read_text(encoding="utf-8")
    for task in json.loads((folder / "label-studio.json").read_text(encoding="utf-8")):
        assert all('"b.jpg' not in choice["html"] for choice in task["data"]["choices"])
    inputs = pl.read_csv(folder / "mturk.csv")
    assert set(inputs["name"]) == {"&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;, "
                                   "&quot;quoted&quot; &amp; &#x27;emoji&#x27; 🐈"}  # fmt: skip


def test_every_form_has_every_task(written):
    folder, collection = written
    names = collection.tasks["task"].unique(maintain_order=True).to_list()
    exported = json.loads((folder / "label-studio.json").read_text(encoding="utf-8"))
    assert [task["data"]["task"] for task in exported] == names
    inputs = pl.read_csv(folder / "mturk.csv")
    assert inputs["task"].to_list() == names
    layout = (folder / "mturk.html").read_text(encoding="utf-8")
    assert all(f"${{{name}}}" in layout for name in inputs.columns if name != "task")


@pytest.mark.parametrize(
    ("file", "rule"),
    [("collection.json", "not-a-collection"), ("tasks.parquet", "parquet-file-unreadable")],
)
def test_a_damaged_collection_is_refused(written, file, rule):
    folder, _ = written
    (folder / file).write_text("[]", encoding="utf-8")
    with refused(StudyError, rule) as found:
        read_collection(folder)
    assert found.value.facts["where"].endswith(file)


# Answers back.


def said(collection, people=None):
    """What simulated people answer, as assignments."""
    rows = [
        {"worker": each["worker"], "pay": None, "rejected": False, "file": "f.json", "main": None}
        | one
        for each in answer(collection, people)
        for one in each["answers"]
    ]
    return pl.DataFrame(rows, schema_overrides=ASSIGNMENT_SCHEMA).select(list(ASSIGNMENT_SCHEMA))


def test_answers_are_those_that_were_given():
    collection = contains(GridDesign(4, 2))
    found = match_assignments(collection, said(collection))
    table = found.table()
    assert found.rows() == len(table)
    given = {
        (row["task"], row["worker"]): set(row["selected"])
        for row in found.assignments.iter_rows(named=True)
    }
    again = table.group_by("task", "worker").agg(pl.col("place").filter("selected"))
    assert {(task, who): set(places) for task, who, places in again.iter_rows()} == given
    per_image = table.filter(pl.col("control").is_null()).group_by("dataset", "image").len()
    assert set(per_image["len"]) == {4}
    # A few at a time they are the same.
    assert pl.concat(list(found.batches(rows=100))).equals(table)


def test_counts_are_those_of_the_answers():
    collection = contains(GridDesign(4, 2))
    found = match_assignments(collection, said(collection))
    key = ["dataset", "image", "label"]
    assert found.counts().sort(key).equals(count_selections(found.table()).sort(key))
    assert set(found.counts()["shown"]) == {4}


def test_partial_answers_count_what_is_there():
    collection = contains(GridDesign(4, 2))
    some = said(collection).head(3)
    found = match_assignments(collection, some)
    assert len(found.table()["task"].unique()) <= 3
    assert set(found.counts()["shown"]) <= {1, 2, 3}
    assert found.progress()["assignments"].sum() == 3


def test_nothing_answered_yet_is_no_error():
    collection = contains()
    found = match_assignments(collection, said(collection).clear())
    assert found.rows() == 0
    assert found.counts().is_empty()
    assert found.table().is_empty()
    assert found.progress().is_empty()


def test_assignments_that_do_not_count_are_counted():
    collection = contains(GridDesign(4, 2))
    all_of = said(collection)
    first = all_of.head(1)
    second = first.with_columns(
        selected=pl.lit([[1]], dtype=pl.List(pl.List(pl.Int16))).list.first(),
        time=pl.lit("2027-01-01"),
    )
    refused = all_of.slice(1, 1).with_columns(rejected=pl.lit(value=True))
    given = pl.concat([all_of.slice(2), first, second, first, refused])
    found = match_assignments(collection, given)
    assert found.left_out == {
        "the same assignment in two files": 1,
        "rejected": 1,
        "a worker's second of a task": 1,
    }
    kept = found.assignments.filter(task=first["task"][0], worker=first["worker"][0])
    assert kept["selected"].to_list() == first["selected"].to_list()
    assert len(found.assignments) == len(all_of) - 1


PLACES = "answered-places-unknown-or-repeated"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"selected": [0]}, PLACES),
        ({"selected": [999]}, PLACES),
        ({"selected": [1, 1]}, PLACES),
        ({"main": 999}, PLACES),
        ({"task": "00000000-01"}, "answered-tasks-of-another-collection"),
        ({"task": "{}-9999"}, "answered-tasks-unknown"),
    ],
)
def test_answers_to_what_was_not_asked_are_refused(change, rule):
    collection = contains()
    row = said(collection).head(1).to_dicts()[0] | change
    row["task"] = row["task"].format(collection.fingerprint)
    facts = {"file": "f.json", "tasks": [row["task"]]}
    if rule == "answered-tasks-of-another-collection":
        facts |= {"other_collection": "00000000", "collection": collection.fingerprint}
    with refused(StudyError, rule, facts):
        match_assignments(collection, pl.DataFrame([row], schema=ASSIGNMENT_SCHEMA))


def test_progress_knows_time_money_and_controls():
    collection = contains(GridDesign(4, 2))
    given = said(collection, Respondents(spam=0.3, seed=1)).with_columns(pay=0.2)
    table = match_assignments(collection, given).progress()
    assert table["assignments"].sum() == len(given)
    assert table["pay"].sum() == pytest.approx(0.2 * len(given))
    assert table["hours"].sum() == pytest.approx(given["seconds"].sum() / 3600)
    assert table["per_hour"].to_list() == pytest.approx((table["pay"] / table["hours"]).to_list())
    careful = table.filter(pl.col("controls") > 0.75)
    assert 0.5 < len(careful) / len(table) < 1


# What files say.


def test_the_pages_file_is_read(tmp_path):
    collection = contains(GridDesign(4, 2))
    write_answers(tmp_path / "said", collection)
    files = sorted((tmp_path / "said").iterdir())
    table = read_assignments(files)
    expected = said(collection).drop("file")
    key = ["worker", "task"]
    assert table.drop("file").sort(key).equals(expected.sort(key))


def batch(collection, **changes):
    """Batch results of Mechanical Turk."""
    given = said(collection)
    text = given["selected"].cast(pl.List(pl.String)).list.join(",")
    columns = {
        "HITId": given["task"],
        "WorkerId": given["worker"],
        "AssignmentStatus": pl.Series(["Submitted"] * len(given)),
        "WorkTimeInSeconds": given["seconds"],
        "SubmitTime": pl.Series(["Sat Nov 02 12:44:30 PDT 2019"] * len(given)),
        "Reward": pl.Series(["$0.20"] * len(given)),
        "Input.task": given["task"],
        "Input.image1": pl.Series(["x.jpg"] * len(given)),
        "Answer.selected": text.replace("", "none"),
    }
    return pl.DataFrame(columns | changes), given


def test_batch_results_are_read(tmp_path):
    table, given = batch(contains(GridDesign(4, 2)))
    table = table.with_columns(
        AssignmentStatus=pl.Series(["Rejected", *["Approved"] * (len(table) - 1)])
    )
    table.write_csv(tmp_path / "batch.csv")
    read = read_assignments([tmp_path / "batch.csv"])
    same = ["task", "worker", "selected", "seconds"]
    assert read.select(same).equals(given.select(same))
    assert set(read["time"]) == {"2019-11-02T19:44:30Z"}
    assert set(read["pay"]) == {0.2}
    assert read["rejected"].to_list() == [True, *[False] * (len(read) - 1)]


def test_batch_results_with_answers_in_json_are_read(tmp_path):
    table, given = batch(contains(GridDesign(4, 2)))
    answers = [
        json.dumps([{"selected": text, "main": "none"}]) for text in table["Answer.selected"]
    ]
    table = table.drop("Answer.selected").with_columns(pl.Series("Answer.taskAnswers", answers))
    table.write_csv(tmp_path / "batch.csv")
    read = read_assignments([tmp_path / "batch.csv"])
    assert read["selected"].to_list() == given["selected"].to_list()
    assert read["main"].null_count() == len(read)


@pytest.mark.parametrize("small", ["", "-min"])
def test_an_export_of_label_studio_is_read(small):
    """Of a real run, answered in its own page."""
    read = read_assignments([EXPORTS / f"contains{small}.json"])
    assert read["task"].to_list() == ["907f6ee6-01", "907f6ee6-02"]
    assert read["selected"].to_list() == [[1, 2, 5], []]
    assert read["worker"].to_list() == ["1", "1"]
    assert read["seconds"].to_list() == [5.754, 5.453]
    assert read["time"][0] == "2026-11-24T20:30:31.179847Z"
    chosen = read_assignments([EXPORTS / f"classify{small}.json"])
    assert (chosen["selected"].to_list(), chosen["main"].to_list()) == ([[1, 2]], [2])


PAGE = {"format": "bayesrep answers 1", "worker": "w", "answers": []}
ONE = {"task": "t-1", "selected": [1]}


def page(**change):
    return json.dumps(PAGE | {"answers": [ONE | change]})


def test_seconds_are_numbers_as_tables_have_them(tmp_path):
    (tmp_path / "a.json").write_text(page(seconds="9,5"))
    assert read_assignments([tmp_path / "a.json"])["seconds"].to_list() == [9.5]


ROWS = "WorkerId,Input.task,Answer.selected\n"
DAMAGED, PLACELESS = "answers-file-damaged", "assignments-without-places"


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("a.json", '{"format": "bayesrep answers 1", "worker"', "file-not-json"),
        ("a.json", '{"format": "other"}', "answers-file-not-recognised"),
        ("a.json", json.dumps(PAGE | {"answers": [{"task": "t-1"}]}), DAMAGED),
        ("a.json", page(task=None), "value-missing-in-rows"),
        ("a.json", page().replace('"w"', '" "'), "value-missing-in-rows"),
        *(("a.json", page(selected=said), DAMAGED) for said in (None, ["x"], [1.5], [True], "12")),
        *(("a.json", page(seconds=said), "task-seconds-no-time") for said in ("x", -4, True)),
        ("a.json", page(main="1"), DAMAGED),
        ("a.json", page(time=5), DAMAGED),
        ("a.json", page(selected=[70000]), PLACELESS),
        ("a.json", "[1]", DAMAGED),
        ("a.json", '[{"task": "t", "annotator": 1, "selected": [1e300]}]', DAMAGED),
        ("a.json", '[{"data": {}, "annotations": [{"completed_by": 1, "result": []}]}]', DAMAGED),
        ("a.csv", "WorkerId,Answer.selected\nw,1\n", "table-lacks-columns"),
        ("a.csv", "WorkerId,Input.task\nw,t-1\n", "no-answer-selected-column"),
        ("a.csv", f"{ROWS}w,t-1,on\n", "answer-selected-not-places"),
        ("a.csv", "", "table-file-empty"),
        ("a.txt", "", "assignments-file-type-unknown"),
    ],
)
def test_files_that_are_none_are_refused_in_one_line(tmp_path, name, text, rule):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with refused(StudyError, rule) as found:
        read_assignments([tmp_path / name])
    facts = found.value.facts
    assert facts["where" if "where" in facts else "path"] == str(tmp_path / name)
    assert rule != PLACELESS or facts["rows"] == "assignment 1"
    assert rule != "answer-selected-not-places" or "1,5,12" in str(found.value)


# Pictures.


def test_own_labels_and_counts_of_a_table_are_read_as_flags_and_numbers(tmp_path):
    rows = ["v,1.10,x,yes,3,4", "v,1.10,y,no,2,4", "v,1.1,x,1,4,4", "v,1.1,y,0,0,4"]
    text = "dataset,image,label,own,selected,shown\n" + "\n".join(rows) + "\n"
    (tmp_path / "c.csv").write_text(text, encoding="utf-8")
    out = tmp_path / "l.csv"
    words = ["collect", "read", tmp_path / "c.csv", "--table", "labels", "--out", out]
    assert main([*map(str, words)]) == 0
    table = pl.read_csv(out, infer_schema=False)
    assert table.select("image", "label", "own").rows() == [
        ("1.10", "x", "true"), ("1.10", "y", "false"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "link",
    ["javascript:alert(1)", "data:text/html,x", "www.example.org", "https://a b", "file:///a"],
)
def test_links_that_lead_not_to_the_web_are_refused(tmp_path, link):
    asked = pl.DataFrame({"dataset": "v", "image": ["a", "b"], "label": ["x", "y"]})
    tasks = plan_grids(asked, None, GridDesign(positive=0, negative=0))
    collection = Collection("contains", tasks, 2, {})
    labels = pl.DataFrame({"label": ["x", "y"], "link": ["HTTPS://example.org/x?a=1", link]})
    with refused(StudyError, "label-link-not-web", {"labels": ["y"]}):
        write_collection(tmp_path / "c", collection, labels)
    assert not (tmp_path / "c").exists()
    write_collection(tmp_path / "c", collection, labels.with_columns(link=pl.lit(" ")))


def test_images_of_folders_have_the_folders_labels(tmp_path):
    found = ["cat/1.jpg", "dog/1.jpg", "dog/deep/2.PNG"]
    for name in (*found, "dog/evil.svg", "dog/notes.txt", "9.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    table = labelled_images("v1", tmp_path, "https://example.org/a b/")
    assert table["image"].to_list() == found
    assert table["label"].to_list() == ["cat", "dog", "dog"]
    assert table["source"][0] == "https://example.org/a b/cat/1.jpg"
    wanted = pl.DataFrame({"dataset": ["v1"], "image": ["2.PNG"], "label": ["x"]})
    assert find_pictures(wanted, table)["source"].to_list() == [table["source"][2]]
    for image, rule in (("3.jpg", "picture-absent"), ("1.jpg", "picture-ambiguous")):
        with refused(StudyError, rule, {"images": [image]}):
            find_pictures(wanted.with_columns(image=pl.lit(image)), table)
    with refused(StudyError, "no-images-in-class-folders"):
        labelled_images("v1", tmp_path / "dog" / "deep")
    with refused(StudyError, "class-folders-root-missing"):
        labelled_images("v1", tmp_path / "none")


# WordNet.


def test_wordnet_knows_every_class_of_imagenet():
    from bayesrep.studies.imagenet import synsets

    told = wordnet.descriptions()
    assert told["label"].to_list() == list(synsets())
    assert not told.select(pl.all().is_null().any()).row(0)[1]
    steps = wordnet.distances([CATS, DOGS, "n02123159", "n04254680"])
    assert np.array_equal(steps, steps.T)
    assert np.diag(steps).tolist() == [0, 0, 0, 0]
    # Tabby and tiger cat are both domestic cats; a retriever is a dog, a carnivore.
    assert steps[0, 2] == 2
    assert 5 < steps[0, 1] < steps[0, 3]


# Classify.


def test_classify_has_a_task_an_image_with_labels_in_random_places():
    table = asked(40, ("v1",), ("x", "y", "z")).with_columns(
        image=pl.col("image").str.split("/").list.last(), own=pl.col("label") == "x"
    )
    tasks = plan_classify(table)
    by_task = tasks.group_by("task").agg(pl.col("image").n_unique(), pl.col("label").n_unique())
    assert by_task.select("image", "label").unique().rows() == [(1, 3)]
    assert set(tasks.filter("own")["place"]) == {1, 2, 3}
    assert tasks.equals(plan_classify(table))


@pytest.mark.parametrize(
    ("labels", "rule", "facts"),
    [
        ("x", "only-one-label-of-image", {}),
        ("abcdefghijklm", "labels-of-image-exceed-most", {"most_labels": 12}),
    ],
)
def test_images_that_cannot_be_classified_are_refused(labels, rule, facts):
    rows = pl.DataFrame({"dataset": "v1", "image": "1.jpg", "label": list(labels)})
    with refused(StudyError, rule, {"images": ["1.jpg"]} | facts):
        plan_classify(rows)


# The whole way, as it is typed.


@pytest.fixture
def pictures(tmp_path):
    for folder, number in (("v1", 12), ("v2", 12), ("known", 8)):
        for label in (CATS, DOGS):
            place = tmp_path / folder / label
            place.mkdir(parents=True)
            for image in range(number):
                (place / f"{image}.jpg").write_bytes(b"")
    return tmp_path


def test_from_folders_to_answers(pictures, capsys):
    here = pictures
    status, out, err = run(
        capsys, "collect", "tasks", "--images", f"v1={here / 'v1'}", f"v2={here / 'v2'}",
        "--controls", here / "known", "--out", here / "col", "--set", "size=20",
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert "20 tasks about 48 images, to be done 40 times in all." in out
    assert "unless --address" in out
    write_answers(here / "said", read_collection(here / "col"))
    status, out, err = run(
        capsys, "collect", "read", here / "col", here / "said", "--out", here / "a.csv",
        "--rules", "tsipras2020,controls", "--own", "--counts", here / "c.csv",
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert "40 of 40 assignments are done (100.0 %)" in out
    collection = read_collection(here / "col")
    paid = match_assignments(collection, said(collection).with_columns(pay=pl.lit(0.2)))
    assert "8.00 paid" in read_text(collection, paid, paid.progress())
    assert "worker 1" not in out
    answers, counts = pl.read_csv(here / "a.csv"), pl.read_csv(here / "c.csv")
    assert not answers["worker"].str.starts_with("worker").any()
    assert set(answers["dataset"]) == {"v1", "v2"}
    assert counts["shown"].sum() == len(answers)
    assert len(counts) == 48
    # Two folders have images of the same names: they stay apart.
    assert counts.select("dataset", "image").is_unique().all()
    # What stands there is not written over, and a study is made of it.
    words = ["collect", "read", here / "col", here / "said", "--out", here / "a.csv"]
    check(refusal(words), "output-path-exists", {"path": str(here / "a.csv")})
    rows = [(d, i, "net", 1) for d, i in counts.select("dataset", "image").rows()]
    predictions = pl.DataFrame(rows, ["dataset", "image", "classifier", "correct"], orient="row")
    predictions.write_csv(here / "p.csv")
    status, out, err = run(
        capsys, "import", "tables", here / "a.csv", here / "p.csv", "--reference", "v1",
        "--replication", "v2", "--out", here / "study",
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert out.endswith(f"Next: bayesrep fit {here / 'study'} --out posterior.nc\n")


def test_answers_are_the_same_with_and_without_rules(pictures, capsys):
    here = pictures
    words = ("--images", f"v1={here / 'v1'}", "--controls", here / "known", "--out", here / "col")
    assert run(capsys, "collect", "tasks", *words, "--set", "size=20")[0] == 0
    write_answers(here / "said", read_collection(here / "col"))
    for name, rules in (("a.parquet", ()), ("b.parquet", ("--rules", "repeats"))):
        words = ("--out", here / name, *rules)
        assert run(capsys, "collect", "read", here / "col", here / "said", *words)[0] == 0
    plain, ruled = (pl.read_parquet(here / name) for name in ("a.parquet", "b.parquet"))
    # Codes of workers are new ones every time.
    assert plain.drop("worker").equals(ruled.drop("worker"))


def test_what_was_chosen_is_measured_again_beside_all_of_the_reference(pictures, capsys):
    here = pictures
    chosen = [("v2", f"{label}/{n}.jpg", label, 0.5) for label in (CATS, DOGS) for n in range(3)]
    columns = ["dataset", "image", "label", "inclusion"]
    pl.DataFrame(chosen, columns, orient="row").write_csv(here / "chosen.csv")
    images = (f"v1={here / 'v1'}", f"v2={here / 'v2'}")
    status, out, err = run(
        *(capsys, "collect", "tasks", here / "chosen.csv", "--images", *images),
        *("--controls", here / "known", "--out", here / "again", "--address", "https://a.org"),
    )
    assert (status, err) == (0, "")
    assert "about 30 images" in out
    assert "--address" not in out
    tasks = read_collection(here / "again").tasks.filter(pl.col("control").is_null())
    each = tasks.select("dataset", "image").unique()["dataset"].value_counts()
    assert dict(each.iter_rows()) == {"v1": 24, "v2": 6}
    assert tasks["own"].all()


UNREAD = ("file-unreadable", {"path": "nowhere.csv"})
NO_FILES = "answer-files-with-answers-alone"
CLASSIFY = "tasks x --kind classify"


@pytest.mark.parametrize(
    ("words", "rule", "facts"),
    [
        ("tasks --out new", "nothing-to-ask-about", {"kind": "contains"}),
        ("tasks --kind review --out new.csv", "nothing-to-ask-about", {"kind": "review"}),
        (f"{CLASSIFY} --set size=3 --out new", "unknown-task-setting", {"name": "size"}),
        ("tasks x --set size=few --out new", "task-setting-not-whole-number", {"value": "few"}),
        ("tasks x --reviewers y --out new", "option-of-another-table", {"table": "review"}),
        ("tasks --images v=no --out new", "class-folders-root-missing", {"folder": "no"}),
        ("tasks nowhere.csv --kind classify --out new", *UNREAD),
        ("tasks nowhere --kind candidates --out a.csv", "study-path-missing", {"path": "nowhere"}),
        ("read no x.json --out a.csv", "file-unreadable", {"path": "no/collection.json"}),
        ("read no --out a.csv", NO_FILES, {}),
        ("read no x.json --table labels --out a.csv", NO_FILES, {}),
        ("read no --table labels --own --out b.csv", "option-of-another-table", {"option": "own"}),
        ("read no x.json --out a.txt", "output-not-table-file", {"path": "a.txt"}),
        ("read nowhere.csv --table labels --out a.csv", *UNREAD),
        ("read nowhere.csv --table objects --out a.csv", *UNREAD),
    ],
)
def test_mistakes_are_one_line(tmp_path, monkeypatch, capsys, words, rule, facts):
    monkeypatch.chdir(tmp_path)
    check(refusal(["collect", *words.split()]), rule, facts)
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []
