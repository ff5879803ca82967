"""What Label Studio, doccano, Argilla and Prodigy export, in the forms in which they write it."""

import json
import zipfile

import pytest
from refusals import refused

from bayesrep import StudyError
from bayesrep.errors import TableWarning
from bayesrep.sources.assignments import read_assignments
from bayesrep.sources.exports.columns import Columns
from bayesrep.sources.raw_answers import EMPTY, read_raw


def result(control, kind, value, region="r"):
    return {"id": region, "from_name": control, "to_name": "image", "type": kind, "value": value}


def choice(word, control="fits", **more):
    return result(control, "choices", {"choices": [word], **more})


def annotation(*results, who=1, number=1, **more):
    facts = {"id": number, "completed_by": who, "was_cancelled": False, "lead_time": 2.5}
    return {**facts, "result": list(results), **more}


def task(number, image, *annotations):
    return {"id": number, "data": {"image": image}, "annotations": list(annotations)}


def studio(folder, *tasks, **columns):
    file = folder / "export.json"
    file.write_text(json.dumps(tasks), encoding="utf-8")
    return read_raw("label-studio", file, Columns(**columns))


BOX = {"x": 1, "y": 1, "width": 2, "height": 2}


def test_answers_about_regions_are_no_answer_about_the_image(tmp_path):
    both = annotation(choice("yes", **BOX), choice("no", **BOX))
    facts = {"task": "1", "control": "fits", "answers": ["no", "yes"]}
    with refused(StudyError, "answers-about-regions", facts):
        studio(tmp_path, task(1, "a.jpg", both))
    small = {"id": 4, "image": "a.jpg", "annotator": 1}
    regions = [{**BOX, "choices": ["yes"]}, {**BOX, "choices": ["no"]}]
    with refused(StudyError, "answers-about-regions", facts | {"task": "4", "control": "choice"}):
        studio(tmp_path, {**small, "choice": regions})
    alike = annotation(choice("yes", **BOX), choice("yes", **BOX))
    assert studio(tmp_path, task(1, "a.jpg", alike))["answer"].to_list() == ["yes"]


def test_each_nameless_annotation_is_a_worker_of_its_own(tmp_path):
    said = [annotation(choice("yes"), who=None, number=7), annotation(choice("no"), who=None)]
    tasks = [task(1, "a.jpg", *said), task(2, "b.jpg", *said)]
    with pytest.warns(TableWarning, match="4 answers name nobody"):
        table = studio(tmp_path, *tasks)
    assert table["worker"].n_unique() == 4
    # A task that is exported twice holds the same annotations twice.
    with pytest.warns(TableWarning, match="4 answers name nobody"):
        assert studio(tmp_path, tasks[0], tasks[0])["worker"].n_unique() == 2
    # Annotations may come under one number; they are several all the same.
    with pytest.warns(TableWarning, match="2 answers name nobody"):
        same = studio(tmp_path, task(1, "a.jpg", said[0], said[0]))
    assert same["worker"].n_unique() == 2


def test_a_collections_nameless_annotations_are_workers_of_their_own(tmp_path):
    truth = annotation(choice("1", "selected"), ground_truth=True)
    said = [
        annotation(choice(place, "selected"), who=None, number=n) for n, place in enumerate("12")
    ]
    tasks = [{"data": {"task": "t-1"}, "annotations": [*said, truth]}]
    (tmp_path / "a.json").write_text(json.dumps(tasks), encoding="utf-8")
    with (
        pytest.warns(TableWarning, match="2 answers name nobody"),
        pytest.warns(TableWarning, match="1 annotations are marked as ground truth and left out"),
    ):
        read = read_assignments([tmp_path / "a.json"])
    assert read["selected"].to_list() == [[1], [2]]
    assert read["worker"].n_unique() == 2
    tasks = [{"data": {"task": "t-1"}, "annotations": [annotation(*(2 * [choice("1", "main")]))]}]
    (tmp_path / "a.json").write_text(json.dumps(tasks), encoding="utf-8")
    with refused(StudyError, "answers-file-damaged", {"error_type": "ValueError"}):
        read_assignments([tmp_path / "a.json"])


def test_a_rating_is_an_answer_and_what_cannot_be_one_is_named(tmp_path):
    stars = result("stars", "rating", {"rating": 4})
    assert studio(tmp_path, task(1, "a.jpg", annotation(stars)))["answer"].to_list() == ["4"]
    small = {"id": 1, "image": "a.jpg", "annotator": 1, "stars": 4}
    assert studio(tmp_path, small, answer="stars")["answer"].to_list() == ["4"]
    kinds = result("kind", "taxonomy", {"taxonomy": [["animal", "dog"], ["plant"]]})
    table = studio(tmp_path, task(1, "a.jpg", annotation(kinds)))
    assert table["answer"].to_list() == ["animal/dog|plant"]
    box = result("box", "rectanglelabels", {**BOX, "rectanglelabels": ["dog"]})
    note = result("note", "textarea", {"text": ["yes"]})
    boxed = task(1, "a.jpg", annotation(box, note), annotation(who=2))
    facts = {"controls": ["box (rectanglelabels)", "note (textarea)"]}
    with refused(StudyError, "controls-without-answer", facts):
        studio(tmp_path, boxed)
    with refused(
        StudyError, "control-without-answer", {"control": "box", "kind": "rectanglelabels"}
    ):
        studio(tmp_path, boxed, answer="box")
    assert studio(tmp_path, boxed, answer="note")["answer"].to_list() == ["yes", EMPTY]
    with refused(StudyError, "no-such-control", {"control": "fits", **facts}):
        studio(tmp_path, boxed, answer="fits")


def test_a_choice_that_was_not_made_is_empty_and_other_controls_do_not_stand_in(tmp_path):
    either = [annotation(choice("yes")), annotation(choice("bad", "quality"), who=2)]
    with refused(StudyError, "answer-control-ambiguous", {"controls": ["fits", "quality"]}):
        studio(tmp_path, task(1, "a.jpg", *either))
    table = studio(tmp_path, task(1, "a.jpg", *either), answer="fits")
    assert table["answer"].to_list() == ["yes", EMPTY]
    small = {"id": 1, "image": "a.jpg", "annotator": 1, "fits": "yes"}
    with refused(StudyError, "no-such-control", {"control": "choice", "controls": ["fits"]}):
        studio(tmp_path, small)


def test_ground_truth_is_no_workers_answer(tmp_path):
    truth = annotation(choice("no"), ground_truth=True)
    with pytest.warns(TableWarning, match="1 annotations are marked as ground truth and left out"):
        table = studio(tmp_path, task(1, "a.jpg", annotation(choice("yes")), truth))
    assert table["answer"].to_list() == ["yes"]


@pytest.mark.parametrize("begin", ["/data/upload/3/", "http://localhost:8080/data/upload/3/"])
def test_uploads_are_called_as_before_unless_two_become_one(tmp_path, begin):
    names = [f"{begin}01ab12cd-v1_1.jpg", f"{begin}02ab12cd-v1_2.jpg", "v1_3.jpg"]
    tasks = [task(n, name, annotation(choice("yes"))) for n, name in enumerate(names)]
    with pytest.warns(TableWarning, match="named without the upload's prefix"):
        assert studio(tmp_path, *tasks)["image"].to_list() == ["v1_1.jpg", "v1_2.jpg", "v1_3.jpg"]
    twice = [f"{begin}01ab12cd-a.jpg", f"{begin}02ab12cd-a.jpg"]
    tasks = [task(n, name, annotation(choice("yes"))) for n, name in enumerate(twice)]
    with pytest.warns(TableWarning, match="with the upload's prefix.*would be image 'a.jpg'"):
        assert studio(tmp_path, *tasks)["image"].to_list() == twice
    tasks[1] = task(1, "a.jpg", annotation(choice("yes")))  # as it was called before
    with pytest.warns(TableWarning, match="several would be image 'a.jpg'"):
        assert studio(tmp_path, *tasks)["image"].to_list() == [twice[0], "a.jpg"]


@pytest.mark.parametrize(
    ("image", "shown"), [(None, "null"), ({"url": "x"}, '{"url": "x"}'), (["a.jpg"], '["a.jpg"]')]
)
@pytest.mark.parametrize("source", ["label-studio", "doccano", "argilla", "prodigy"])
def test_what_names_no_image_is_refused(tmp_path, source, image, shown):
    rule, facts = "task-image-without-name", {"value": shown}
    with refused(StudyError, rule, facts):
        read_raw(source, of_image(tmp_path, source, image))


@pytest.mark.parametrize("source", ["label-studio", "doccano", "argilla", "prodigy"])
def test_a_number_names_an_image(tmp_path, source):
    tables = [read_raw(source, of_image(tmp_path, source, image)) for image in (1, 1.0, "1")]
    assert [table["image"].to_list() for table in tables] == [["1"]] * 3


def of_image(folder, source, image):
    """An export of one answer about one image."""
    return lines(
        folder / "ann.jsonl",
        {
            "label-studio": [task(1, image, annotation(choice("yes")))],
            "doccano": {"id": 1, "filename": image, "label": ["yes"]},
            "argilla": argilla(1, response("yes", "u1"), fields={"image": image}),
            "prodigy": prodigy(image, "accept", label="DOG"),
        }[source],
    )


def lines(file, *records):
    file.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return file


DOCCANO = [
    {"id": 1, "filename": "1.10.png", "label": ["cat", "dog"], "Comments": []},
    {"id": 2, "filename": "1.1.png", "label": ["dog"], "Comments": ["blurred"]},
]


def test_doccanos_files_are_its_annotators(tmp_path):
    table = read_raw("doccano", lines(tmp_path / "ann.jsonl", *DOCCANO))
    assert table.select("image", "worker", "answer", "task").rows() == [
        ("1.10.png", "ann", "cat|dog", "1"),
        ("1.1.png", "ann", "dog", "2"),
    ]
    bob = lines(tmp_path / "bob.jsonl", {**DOCCANO[0], "label": []}, DOCCANO[1])
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.write(tmp_path / "ann.jsonl", "ann.jsonl")
        archive.write(bob, "bob.jsonl")
    with pytest.warns(TableWarning, match="1 answers are without a label"):
        table = read_raw("doccano", tmp_path / "export.zip")
    assert table.select("worker", "answer").rows() == [
        ("ann", "cat|dog"), ("ann", "dog"), ("bob", EMPTY), ("bob", "dog"),
    ]  # fmt: skip
    with refused(StudyError, "answers-of-all-together"):
        read_raw("doccano", lines(tmp_path / "all.jsonl", *DOCCANO))
    boxes = {"id": 1, "filename": "a.png", "bbox": [{"x": 1, "label": "dog"}]}
    with refused(StudyError, "export-record-lacks-field", {"field": "label"}):
        read_raw("doccano", lines(tmp_path / "ann.jsonl", boxes))
    with refused(StudyError, "control-without-answer", {"control": "bbox", "kind": "regions"}):
        read_raw("doccano", tmp_path / "ann.jsonl", Columns(answer="bbox"))
    text = {"id": 1, "text": "It fits.", "label": ["yes"]}
    by_id = read_raw("doccano", lines(tmp_path / "ann.jsonl", text), Columns(image="id"))
    assert by_id["image"].to_list() == ["1"]
    (tmp_path / "cut.zip").write_bytes((tmp_path / "export.zip").read_bytes()[:-30])
    with refused(StudyError, "export-archive-damaged"):
        read_raw("doccano", tmp_path / "cut.zip")
    (tmp_path / "ann.jsonl").write_text('{"id": 1}\n{"id"\n', encoding="utf-8")
    with refused(StudyError, "export-record-lacks-field", {"field": "label"}):
        read_raw("doccano", tmp_path / "ann.jsonl")


def argilla(number, *responses, **more):
    """A record as `records.to_json` writes it."""
    return {
        "id": f"id-{number}",
        "fields": {"image": f"https://example.org/{number}.jpg"},
        "metadata": {"file": f"{number}.jpg"},
        "suggestions": {"fits": {"value": "no", "score": None, "agent": "model"}},
        "responses": {"fits": list(responses)},
        "vectors": {},
        "_server_id": "s",
        **more,
    }


def response(value, person, **more):
    return {"value": value, "user_id": person, **more}


def test_argillas_responses_count_and_its_suggestions_do_not(tmp_path):
    records = [
        argilla(1, response("yes", "u1"), response(["a", "b"], "u2")),
        argilla(2, response(3, "u1", status="submitted"), response("no", "u2", status="draft")),
        argilla(3),
    ]
    file = tmp_path / "records.json"
    file.write_text(json.dumps(records), encoding="utf-8")
    with pytest.warns(TableWarning, match="1 responses are drafts or discarded"):
        table = read_raw("argilla", file, Columns(image="file"))
    assert table.rows() == [
        ("1.jpg", "u1", "yes", "id-1"),
        ("1.jpg", "u2", "a|b", "id-1"),
        ("2.jpg", "u1", "3", "id-2"),
    ]
    flat = {
        "id": "id-1", "status": "completed", "_server_id": "s", "image": "1.jpg",
        "fits.responses": ["yes", "no"], "fits.responses.users": ["u1", "None"],
        "fits.responses.status": ["submitted", "submitted"], "fits.suggestion": "no",
    }  # fmt: skip
    with pytest.warns(TableWarning, match="1 answers name nobody"):
        table = read_raw("argilla", lines(tmp_path / "r.jsonl", flat))
    assert table.select("image", "answer").rows() == [("1.jpg", "yes"), ("1.jpg", "no")]
    assert table["worker"][0] == "u1"
    two = argilla(1)
    two["responses"] = {"fits": [response("yes", "u")], "also": [response("no", "u")]}
    with refused(StudyError, "answer-control-ambiguous", {"controls": ["fits", "also"]}):
        read_raw("argilla", lines(tmp_path / "r.jsonl", two))
    table = read_raw("argilla", tmp_path / "r.jsonl", Columns(answer="also"))
    assert table["answer"].to_list() == ["no"]
    ranked = argilla(1, response([{"value": "a", "rank": 1}], "u"))
    with refused(StudyError, "control-without-answer"):
        read_raw("argilla", lines(tmp_path / "r.jsonl", ranked))
    held = argilla(1, response("yes", "u"), fields={"image": "data:image/png;base64,AA"})
    with refused(StudyError, "image-contents-for-name", {"field": "image"}):
        read_raw("argilla", lines(tmp_path / "r.jsonl", held))
    with refused(StudyError, "file-without-answers"):
        read_raw("argilla", lines(tmp_path / "r.jsonl", argilla(1)))
    with refused(StudyError, "export-record-damaged"):
        read_raw("argilla", lines(tmp_path / "r.jsonl", argilla(1, "yes")))


def prodigy(image, answer, person="d-ann", **more):
    """A line of `prodigy db-out`."""
    facts = {"_input_hash": 5, "_task_hash": 7, "_view_id": "choice", "_timestamp": 1707211049}
    return {"image": image, **more, "answer": answer, **facts, "_annotator_id": person}


OPTIONS = [{"id": "dog", "text": "Dog"}, {"id": 2, "text": "Cat"}]


def test_prodigys_chosen_options_are_answers(tmp_path):
    chosen = {"options": OPTIONS, "config": {"choice_style": "multiple"}}
    file = lines(
        tmp_path / "out.jsonl",
        prodigy("1.jpg", "accept", **chosen, accept=["dog", 2]),
        prodigy("1.jpg", "accept", "d-bob", **chosen, accept=[]),
        prodigy("2.jpg", "ignore", **chosen, accept=[]),
        prodigy("2.jpg", "reject", "d-bob", **chosen, accept=["dog"]),
        prodigy("data:image/png;base64,AA", "accept", **chosen, accept=["dog"], path="in/3.jpg"),
    )
    with (
        pytest.warns(TableWarning, match="1 tasks were ignored"),
        pytest.warns(TableWarning, match="1 tasks were rejected"),
    ):
        table = read_raw("prodigy", file)
    assert table.rows() == [
        ("1.jpg", "d-ann", "dog|2", "7"),
        ("1.jpg", "d-bob", EMPTY, "7"),
        ("in/3.jpg", "d-ann", "dog", "7"),
    ]


def test_prodigys_accepted_labels_are_answers_about_them(tmp_path):
    file = lines(
        tmp_path / "out.jsonl",
        prodigy("1.jpg", "accept", label="DOG"),
        prodigy("1.jpg", "reject", None, label="DOG"),
        prodigy("1.jpg", "reject", None, label="DOG"),
    )
    with pytest.warns(TableWarning, match="2 answers name nobody"):
        table = read_raw("prodigy", file)
    assert table.select("image", "answer", "label").rows() == [
        ("1.jpg", "accept", "DOG"), ("1.jpg", "reject", "DOG"), ("1.jpg", "reject", "DOG"),
    ]  # fmt: skip
    assert table["worker"].n_unique() == 3
    marked = prodigy("1.jpg", "accept", spans=[{"label": "DOG", "points": [[1, 1]]}])
    with refused(StudyError, "control-without-answer", {"control": "spans", "kind": "regions"}):
        read_raw("prodigy", lines(tmp_path / "out.jsonl", marked))
    with refused(StudyError, "image-contents-for-name", {"field": "image"}):
        read_raw("prodigy", lines(file, prodigy("data:image/png;base64,AA", "accept", label="DOG")))


@pytest.mark.parametrize("source", ["doccano", "argilla", "prodigy"])
def test_files_that_are_no_records_are_refused(tmp_path, source):
    for text, rule in (
        ("", "file-without-answers"),
        ("[1]", "json-line-damaged"),
        ("[{]", "json-file-damaged"),
        ('{"id"', "json-line-damaged"),
        ('"a"', "json-line-damaged"),
    ):
        (tmp_path / "ann.jsonl").write_text(text, encoding="utf-8")
        with refused(StudyError, rule):
            read_raw(source, tmp_path / "ann.jsonl")
    with refused(StudyError, "file-unreadable"):
        read_raw(source, tmp_path / "none.jsonl")


def test_a_separator_that_stands_in_a_choice_would_make_two_of_one(tmp_path):
    file = lines(tmp_path / "ann.jsonl", {"filename": "a", "label": ["cup, mug", "spoon"]})
    facts = {"choice": "cup, mug", "separator": ","}
    with refused(StudyError, "choice-holds-separator", facts):
        read_raw("doccano", file, Columns(separator=","))
    assert read_raw("doccano", file)["answer"].to_list() == ["cup, mug|spoon"]
