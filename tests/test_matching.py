"""Images that two tables name differently: matched where that is one to one, and said."""

import unicodedata

import polars as pl
import pytest
from refusals import refused

from bayesrep.errors import StudyError, TableWarning
from bayesrep.sources.match_names import explain_names, match_image_names

CALLED = [f"{folder}/{at}.jpg" for folder in ("cat", "dog") for at in (1, 2)]
NUMBERS = ["007", "012", "100"]
WAYS = {
    "a folder above": (CALLED, [f"val/{name}" for name in CALLED], "by name and last folder"),
    "a drive of Windows": (
        CALLED,
        ["C:\\data\\" + name.replace("/", "\\") for name in CALLED],
        "by name and last folder",
    ),
    "two levels of folders": (
        [f"{at}/{name}" for name in CALLED for at in (1, 2)],
        [f"x/y/{at}/{name}" for name in CALLED for at in (1, 2)],
        "by name and last two folders",
    ),
    "no endings in a folder above": (
        [name.removesuffix(".jpg") for name in CALLED],
        [f"val/{name}" for name in CALLED],
        "by name without ending and last folder",
    ),
    "zeros that a spreadsheet took": (NUMBERS, ["7", "12", "100"], "without leading zeros"),
    "zeros before an ending": (
        [f"{name}.png" for name in NUMBERS],
        ["a/7.png", "a/12.png", "a/100.png"],
        "without folders, endings and leading zeros",
    ),
    "uploads": (
        ["v1_1.jpg", "v1_2.jpg"],
        ["/data/upload/3/01ab12cd-v1_1.jpg", "/data/upload/3/9f00ee11-v1_2.jpg"],
        "without the eight digits before an upload",
    ),
    "letters in two forms of Unicode": (
        [unicodedata.normalize("NFC", name) for name in ("café.jpg", "naïve.jpg")],
        [unicodedata.normalize("NFD", name) for name in ("café.jpg", "naïve.jpg")],
        "in composed letters",
    ),
    "addresses": (
        ["café 1.jpg", "b.jpg", "set/c.jpg", "d.jpg"],
        [
            "https://s/caf%C3%A9%201.jpg?X-Amz-Signature=a%2F",
            "/data/local-files/?d=b.jpg",
            "/data/local-files/?d=set%2Fc.jpg",
            "s3://b/d.jpg",
        ],
        "without folders, addresses decoded",
    ),
}


def met(counted: list[str], predicted: list[str]) -> list[str]:
    frame = pl.DataFrame({"dataset": "v1", "image": predicted})
    found = match_image_names(
        frame, pl.Series(counted), dataset="v1", where="p.csv", counts="c.csv", covers=False
    )
    return found["image"].to_list()


@pytest.mark.parametrize("name", WAYS)
def test_images_under_other_names_are_matched_aloud(name: str):
    counted, predicted, said = WAYS[name]
    for ours, theirs in ((counted, predicted), (predicted, counted)):
        with pytest.warns(TableWarning) as caught:
            assert met(ours, theirs) == ours
        (warning,) = caught
        assert f"{len(ours)} images of 'v1' are matched with c.csv {said}: " in str(warning.message)


@pytest.mark.parametrize(
    ("counted", "predicted"),
    [
        (["7", "07"], ["007", "7"]),  # two become one
        (["a/1.jpg", "b/1.jpg"], ["x/1.jpg", "y/1.jpg"]),
        (["1.1", "1.10"], ["1.1", "1.100"]),
        (["dog-1.jpg"], ["deadbee-1.jpg"]),  # seven digits are no upload's
    ],
)
def test_names_that_are_not_one_to_one_stay(counted: list[str], predicted: list[str]):
    assert met(counted, predicted) == predicted


@pytest.mark.parametrize(
    ("strange", "known", "said"),
    [
        (["1.0", "2.0"], ["1", "2"], "as decimal numbers"),
        (["1.10"], ["1.1"], "as decimal numbers"),
        (["Ab.png", "aB.png"], ["ab.png"], "whatever their case"),  # two that would become one
        (["x.jpg?sign=1", "x.jpg?sign=2"], ["x.jpg"], "in composed letters, addresses decoded"),
    ],
)
def test_names_that_are_not_matched_are_told_how_they_differ(strange, known, said):
    assert met(known, strange) == strange
    for one, other in ((strange, known), (known, strange)):
        assert f"are alike {said}" in explain_names(one, other)
    assert explain_names(["q", "r"], known) == ""


def test_names_that_match_in_part_are_named():
    facts = {"matching": "by name and last folder", "images": ["val/owl/1.jpg"]}
    with refused(StudyError, "image-names-partly-matched", facts):
        met(CALLED, [*(f"val/{name}" for name in CALLED), "val/owl/1.jpg"])
