"""What annotation tools export, in the forms in which they write it."""

import json

import pytest
from refusals import refused

from bayesrep import StudyError
from bayesrep.errors import TableWarning
from bayesrep.sources.assignments import read_assignments
from bayesrep.sources.exports.columns import Columns
from bayesrep.sources.raw_answers import EMPTY_ANSWER, read_raw


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
        pytest.warns(TableWarning, match="ground_truth \\(1\\)"),
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
    with pytest.warns(TableWarning, match="column 'box' of answers is not read"):
        assert studio(tmp_path, boxed, answer="note")["answer"].to_list() == ["yes", EMPTY_ANSWER]
    with refused(StudyError, "no-such-control", {"control": "fits", **facts}):
        studio(tmp_path, boxed, answer="fits")


def test_a_choice_that_was_not_made_is_empty_and_other_controls_do_not_stand_in(tmp_path):
    either = [annotation(choice("yes")), annotation(choice("bad", "quality"), who=2)]
    with refused(StudyError, "answer-control-ambiguous", {"controls": ["fits", "quality"]}):
        studio(tmp_path, task(1, "a.jpg", *either))
    with pytest.warns(TableWarning, match="column 'quality' of answers is not read"):
        table = studio(tmp_path, task(1, "a.jpg", *either), answer="fits")
    assert table["answer"].to_list() == ["yes", EMPTY_ANSWER]
    small = {"id": 1, "image": "a.jpg", "annotator": 1, "fits": "yes"}
    with refused(StudyError, "no-such-control", {"control": "choice", "controls": ["fits"]}):
        studio(tmp_path, small)


@pytest.mark.parametrize(
    "mark",
    [
        {"was_cancelled": True},
        {"ground_truth": True},
        {"last_action": "rejected"},
        {
            "reviews": [
                {"accepted": True, "created_at": "1"},
                {"accepted": False, "created_at": "2"},
            ]
        },
    ],
)
def test_what_was_skipped_rejected_or_planted_is_no_workers_answer(tmp_path, mark):
    sound = annotation(choice("yes"), reviews=[{"accepted": False}, {"accepted": True}])
    guessed = task(1, "a.jpg", sound, annotation(choice("no"), **mark)) | {"predictions": [{}]}
    with (
        pytest.warns(TableWarning, match="1 predictions of models"),
        pytest.warns(TableWarning, match=r"1 of 2 answers are left out.* \(1\)"),
    ):
        table = studio(tmp_path, guessed)
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
def test_what_names_no_image_is_refused(tmp_path, image, shown):
    with refused(StudyError, "task-image-without-name", {"value": shown}):
        studio(tmp_path, task(1, image, annotation(choice("yes"))))


def test_a_number_names_an_image(tmp_path):
    tasks = [task(1, image, annotation(choice("yes"))) for image in (1, 1.0, "1")]
    assert [studio(tmp_path, each)["image"].to_list() for each in tasks] == [["1"]] * 3
