"""The page of the house is what the code's own imports and docstrings say."""

import ast
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
rooms = runpy.run_path(str(ROOT / "docs" / "rooms.py"))


@pytest.fixture(scope="module")
def house():
    return rooms["House"].read()


def test_the_page_and_its_picture_are_up_to_date(house):
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert rooms["filled"](page, house) == page, "run python docs/rooms.py"
    drawn = (ROOT / "docs" / "images" / "rooms.svg").read_text(encoding="utf-8")
    assert rooms["picture"](house) == drawn, "run python docs/rooms.py"


def test_every_room_has_its_floor_and_no_arrow_leads_up_or_in_a_circle(house):
    assert {rooms["room_of"](name) for name in house.trees} == {*house.rooms, rooms["ROOF"]}
    assert (house.upward, house.circles) == ([], [])


def test_rooms_never_lie_upon_one_another(house):
    """Nor do they leave the picture."""
    placed = {}
    for (depth, spot), x in rooms["places"](house).items():
        half = (rooms["width"](spot) - 1) / 2
        placed.setdefault(depth, []).append((x - half, x + half))
    for spans in placed.values():
        ends = [0.0, *(end for span in sorted(spans) for end in span), rooms["WIDTH"]]
        assert ends == sorted(ends)


def test_arrows_and_circles_by_hand():
    """With an import for types only, one inside a function and one of the package's own name."""
    texts = {
        "bayesrep": "",
        "bayesrep.top": "from bayesrep import low, Study",
        "bayesrep.low": "if TYPE_CHECKING:\n    import bayesrep.top",
        "bayesrep.low.one": "def late():\n    from bayesrep.low.two import name",
        "bayesrep.low.two": "import bayesrep.low.one",
    }
    trees = {name: ast.parse(text) for name, text in texts.items()}
    house = rooms["House"](trees, (("top",), ("low",)))
    assert house.arrows == {("top", "low"), ("low", "top"), ("top", rooms["ROOF"])}
    assert house.upward == [("low", "top"), ("top", rooms["ROOF"])]
    one, two = ["bayesrep.low", "bayesrep.top"], ["bayesrep.low.one", "bayesrep.low.two"]
    assert house.circles == [one, two]
    long_way = {("a", "b"), ("b", "c"), ("a", "c")}
    assert rooms["direct"](long_way) == {("a", "b"), ("b", "c")}


@pytest.mark.parametrize(
    ("text", "paper"),
    [
        ("", "Engstrom"),
        ("Cameron, Gelbach and Miller (2011), ", "Cameron"),
        ("As Cameron do. Engstrom et al. (2020), section 5.3, ", "Engstrom"),
    ],
)
def test_an_equation_is_that_of_the_paper_cited_before(text, paper):
    assert rooms["paper_of"](text, "8") == paper
    assert rooms["paper_of"](text, "M2") == "M"
