"""The list of all that is wrong: steps add to it, and the first is what a reading raises."""

from refusals import check, refused

from bayesrep import StudyError
from bayesrep.studies import validation
from bayesrep.studies.violations import Problems, value


def refuse() -> int:
    raise StudyError("manifest-missing", where="b")


def test_steps_add_and_say_whether_they_were_sound():
    problems = Problems()
    assert not problems
    assert problems.take(validation.image_violations("v1", ["a"]))
    assert problems.attempt(lambda: 3) == 3
    assert not problems.take(validation.image_violations("v1", ["a", "a"]))
    assert problems.take(validation.image_violations("v2", ["b"])), (
        "an earlier problem is not this one's"
    )
    assert problems.attempt(refuse) is None
    problems.add("manifest-missing", where="c")
    check(problems[0], "image-repeated", {"where": "v1", "images": ["a"]})
    assert [(each.rule, each.facts["where"]) for each in problems[1:]] == [
        ("manifest-missing", "b"),
        ("manifest-missing", "c"),
    ]


def test_a_reading_raises_the_first_at_its_path():
    def read(problems: Problems) -> int:
        problems.add("manifest-missing", where="study.json")
        problems.add("manifest-not-object", where="study.json")
        return 3

    assert value(lambda problems: 3, "folder") == 3
    with refused(StudyError, "manifest-missing", {"where": "study.json"}) as error:
        value(read, "folder")
    assert str(error.value).startswith("folder: study.json")
