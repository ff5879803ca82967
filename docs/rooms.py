"""The house as its imports draw it: what docs/architecture.md shows between its marks.

Run from a checkout, `python docs/rooms.py` writes the page's plan, its table of rooms and its
index of equations anew, and docs/images/rooms.svg, and prints what it counted; a test holds them to
the code. Needs Python alone.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "bayesrep"
ROOF = "(the package)"  # `bayesrep/__init__.py`: the public names

Arrow = tuple[str, str]  # from, to: who imports whom


@dataclass(frozen=True)
class House:
    """Modules, by dotted name, with what each imports; and the floors, from the top."""

    trees: dict[str, ast.Module]
    floors: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, root: Path = ROOT) -> "House":
        """The house that stands in a checkout, its floors as the layers of import-linter."""
        trees = {
            module_name(path.relative_to(root)): ast.parse(path.read_text(encoding="utf-8"))
            for path in sorted((root / PACKAGE).rglob("*.py"))
            if path.name != "__main__.py"
        }
        settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
        floors = (tuple(re.findall(r"(?<![\w(])\w+", layer)) for layer in layers)
        return cls(trees, tuple(floor for floor in floors if floor))

    @cached_property
    def imports(self) -> set[Arrow]:
        """Every module with each that it imports, also inside functions and for types alone."""
        return {
            (name, target)
            for name, tree in self.trees.items()
            for target in imported(tree, self.trees)
            if target != name
        }

    @cached_property
    def arrows(self) -> set[Arrow]:
        """The rooms between which there is an import, but for what the package itself hands on."""
        pairs = {(room_of(one), room_of(other)) for one, other in self.imports}
        return {(one, other) for one, other in pairs if one != other and one != ROOF}

    @property
    def rooms(self) -> list[str]:
        """The rooms from the top of the house to its ground."""
        return [room for floor in self.floors for room in floor]

    def floor(self, room: str) -> int:
        """How many floors lie below a room; commands are the first to use the public names."""
        user = "commands" if room == ROOF else room
        places = [user in floor for floor in reversed(self.floors)]
        return places.index(True) - (room == ROOF) if True in places else len(places)

    @property
    def upward(self) -> list[Arrow]:
        """The arrows that lead up, or between rooms of one floor that lead back."""
        return sorted(
            (one, other)
            for one, other in self.arrows
            if self.floor(one) < self.floor(other)
            or (self.floor(one) == self.floor(other) and (other, one) in self.arrows)
        )

    @property
    def circles(self) -> list[list[str]]:
        """The groups of modules each of which needs all the others."""
        return circles(self.imports)

    def words(self, room: str) -> str:
        """The sentence with which a room introduces itself."""
        text = ast.get_docstring(self.trees[f"{PACKAGE}.{room}"]) or ""
        return re.sub(r"\s+", " ", text.split("\n\n")[0]).strip().replace("|", "\\|")


def module_name(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The folder or loose module of the package in which a module is."""
    return module.split(".")[1] if "." in module else ROOF


def imported(tree: ast.Module, modules: dict[str, ast.Module]) -> Iterator[str]:
    """Every module of the package that a module imports, be it late or for types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module


def below(arrows: set[Arrow]) -> dict[str, set[str]]:
    """Whatever is reached along the arrows, from each."""
    next_to: dict[str, set[str]] = {one: set() for arrow in arrows for one in arrow}
    for one, other in arrows:
        next_to[one].add(other)
    reached: dict[str, set[str]] = {}
    for start in next_to:
        found = reached[start] = set[str]()
        ahead = [start]
        while ahead:
            new = next_to[ahead.pop()] - found
            ahead += new
            found |= new
    return reached


def circles(arrows: set[Arrow]) -> list[list[str]]:
    """Groups of two or more that reach one another."""
    reached = below(arrows)
    caught = [one for one, ways in reached.items() if one in ways]
    groups = {frozenset(b for b in reached[one] if one in reached[b]) for one in caught}
    return sorted(sorted(group) for group in groups)


def direct(arrows: set[Arrow]) -> set[Arrow]:
    """The arrows whose end is reached no other way: all that a drawing needs."""
    reached = below(arrows)
    return {
        (one, other)
        for one, other in arrows
        if not any(other in reached[middle] for a, middle in arrows if a == one and middle != other)
    }


# The drawing. Its colours are legible on a light page and on a dark one.

WIDTH, STOREY, HEIGHT = 620, 62, 30  # of the picture, of a floor and of a room, in pixels


Spot = str | Arrow  # what has a place on a floor: a room, or an arrow on its way past it
Places = dict[tuple[int, Spot], float]  # floor from the top and spot: its middle, from the left


def places(house: House) -> Places:
    """Where rooms stand and arrows pass: each below what leads there, none upon another."""
    found: Places = {}
    depth_of = {room: depth for depth, floor in enumerate(house.floors) for room in floor}
    drawn = sorted(arrow for arrow in direct(house.arrows) if depth_of.keys() >= set(arrow))
    for depth, floor in enumerate(house.floors):
        passing = [arrow for arrow in drawn if depth_of[arrow[0]] < depth < depth_of[arrow[1]]]
        wished: dict[Spot, float] = {}
        for spot in (*floor, *passing):
            arrows = [spot] if isinstance(spot, tuple) else [way for way in drawn if way[1] == spot]
            above = [found.get((depth - 1, way), found.get((depth - 1, way[0]))) for way in arrows]
            known = [x for x in above if x is not None]
            wished[spot] = sum(known) / len(known) if known else WIDTH / 2
        order = sorted(wished, key=lambda spot: (wished[spot], str(spot)))
        found |= {(depth, spot): x for spot, x in apart(order, wished).items()}
    return found


def apart(order: list[Spot], wished: dict[Spot, float]) -> dict[Spot, float]:
    """Places near those wished, in this order, such that none covers another."""
    left, right = dict[Spot, float](), dict[Spot, float]()
    edge = 0.0
    for spot in order:
        left[spot] = max(wished[spot], edge + width(spot) / 2)
        edge = left[spot] + width(spot) / 2
    edge = WIDTH
    for spot in reversed(order):
        right[spot] = min(left[spot], edge - width(spot) / 2)
        edge = right[spot] - width(spot) / 2
    return right


def width(spot: Spot) -> float:
    """What a room, or an arrow that passes, takes of its floor."""
    return 7.8 * len(spot) + 28 if isinstance(spot, str) else 9


def picture(house: House) -> str:
    """The rooms on their floors, with the arrows that a drawing needs, as SVG."""
    spots = places(house)
    height = STOREY * len(house.floors)
    ways: dict[Arrow, list[tuple[float, float]]] = {}
    for arrow in sorted(direct(house.arrows)):
        own = [(x, depth * STOREY) for (depth, spot), x in spots.items() if spot in (*arrow, arrow)]
        if len(own) > 1:
            ways[arrow] = own
    boxes = [
        box(spot, x, (depth + 0.5) * STOREY)
        for (depth, spot), x in spots.items()
        if isinstance(spot, str)
    ]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="760">',
        "<title>The rooms of bayesrep, each entered from above</title>",
        '<g fill="none" stroke="#8097a3" stroke-width="1.4">',
        *(f'<path d="{curve(points)}"/>' for points in ways.values()),
        '</g><g font-family="system-ui, sans-serif" font-size="13" text-anchor="middle">',
        *boxes,
        "</g></svg>\n",
    ])  # fmt: skip


def curve(points: list[tuple[float, float]]) -> str:
    """A path from the bottom of one room, past others, to the top of another."""
    (x, y), *ahead = points
    drawn = [f"M{x:.0f},{y + (STOREY + HEIGHT) / 2:.0f}"]
    for u, v in ahead:
        low = v + (STOREY - HEIGHT) / 2
        drawn.append(f"C{x:.0f},{v:.0f} {u:.0f},{v:.0f} {u:.0f},{low:.0f}")
        if (u, v) != points[-1]:
            drawn.append(f"V{low + HEIGHT:.0f}")
        x = u
    return " ".join(drawn)


def box(room: str, x: float, y: float) -> str:
    """A room with its name in it."""
    wide = width(room) - 8
    return (
        f'<rect x="{x - wide / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{wide:.0f}" '
        f'height="{HEIGHT}" rx="5" fill="#455a64"/>'
        f'<text x="{x:.0f}" y="{y + 4.5:.0f}" fill="#ffffff">{room}</text>'
    )


# The index of equations, from what docstrings say of themselves.

PAPERS = {
    "Engstrom": "Engstrom et al. (2020), *Identifying statistical bias in dataset replication*",
    "M": "[Mathematics](mathematics.md) of this site",
    "Broderick": "Giordano, Broderick (2023), *The Bayesian infinitesimal jackknife for variance*",
    "Cameron": "Cameron, Gelbach and Miller (2011), *Robust inference with multiway clustering*",
    "Opper": "Opper and Archambeau (2009), *The variational Gaussian approximation revisited*",
    "Riutort-Mayol": "Riutort-Mayol et al. (2023), *Practical Hilbert space approximate Bayesian "
    "Gaussian processes*",
}
"""Who is cited, by a word of the citation; a number without one is Engstrom's."""

EQUATIONS = {
    ("Engstrom", "1"): "what matching on noisy counts leaves in the simple model of betas",
    ("Engstrom", "2"): "the drop in accuracy as bias-corrected gap and selection gap",
    ("Engstrom", "3"): "adjusted accuracy, defined (again as 10)",
    ("Engstrom", "4"): "the naive estimate (again as 11)",
    ("Engstrom", "5"): "the naive estimate, its parts as drawn in figure 5",
    ("Engstrom", "6"): "adjusted accuracy from mixtures and a curve",
    ("Engstrom", "7"): "what the curve says of the answers at every count",
    ("Engstrom", "8"): "the squared error that the cubic spline minimises",
    ("Engstrom", "9"): "the naive estimate for the candidate pool",
    ("Engstrom", "12–17"): "steps of the proof that the naive estimate is consistent (appendix E)",
    ("M", "M1"): "the bias of matching on counts",
    ("M", "M2"): "probabilities of counts from rising factorials",
    ("M", "M3"): "the table of virtual annotators",
    ("M", "M4"): "P(right) in a cell",
    ("M", "M5"): "adjusted accuracy from the curve's coefficients",
    ("M", "M6"): "the likelihood in cells",
    ("Broderick", "7"): "an image's influence as a posterior covariance",
    ("Cameron", "2.11"): "variance under clusters of two kinds",
    ("Opper", "6"): "the best normal approximation: its mean",
    ("Opper", "7"): "the best normal approximation: its covariance",
    ("Riutort-Mayol", "8"): "Gaussian processes in Hilbert-space form",
}
"""Every equation of the index; whoever is not mentioned in the code is explained or proved only."""

_MENTION = re.compile(r"\b[Ee]quations?[ \n]+((?:M?\d+(?:\.\d+)?(?:, | and |–)?)+)")


def index(house: House) -> dict[tuple[str, str], list[str]]:
    """Where each equation is, as `file` or `file::function`."""
    found: dict[tuple[str, str], list[str]] = {equation: [] for equation in EQUATIONS}
    for place, text in docstrings(house):
        for mention in _MENTION.finditer(text):
            for number in re.findall(r"M?\d+(?:\.\d+)?", mention[1]):
                where = found[paper_of(text[: mention.start()], number), number]
                where += [place] if place not in where else []
    return found


def paper_of(before: str, number: str) -> str:
    """Whose equation is meant, by the citation of the same sentence or line before it."""
    if number.startswith("M"):
        return "M"
    near = before[-250:]
    place, word = max((near.rfind(word), word) for word in PAPERS if word != "M")
    return word if place >= 0 else "Engstrom"


def docstrings(house: House) -> Iterator[tuple[str, str]]:
    """What every file, class and function says of itself, by `file` or `file::name`."""
    for name, tree in house.trees.items():
        path = file_of(name)
        yield path, ast.get_docstring(tree) or ""
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield f"{path}::{node.name}", ast.get_docstring(node) or ""


def file_of(module: str) -> str:
    """The path of a module, from the package's folder."""
    path = Path(*module.split("."))
    return str(path / "__init__.py" if (ROOT / path).is_dir() else path.with_suffix(".py"))


# The page.


def counts(house: House) -> str:
    """The house in numbers."""
    return (
        f"{len(house.rooms)} rooms on {len(house.floors)} floors, {len(house.arrows)} arrows, "
        f"{len(house.circles)} circles, {len(house.upward)} arrows up"
    )


def rooms_table(house: House) -> str:
    """Every room, what it is and whom it imports."""
    lines = ["| floor | room | what it is | imports |", "|---|---|---|---|"]
    for room in house.rooms:
        entered = sorted((house.floor(b), b) for a, b in house.arrows if a == room)
        names = ", ".join(name for _, name in entered) or "–"
        lines.append(f"| {house.floor(room)} | `{room}` | {house.words(room)} | {names} |")
    return "\n".join(lines)


def equations_table(house: House) -> str:
    """Every equation of every paper, what it is and where."""
    lines, found = [], index(house)
    for paper, title in PAPERS.items():
        lines += [f"{title}:", "", "| equation | what it is | where |", "|---|---|---|"]
        for (of, number), where in found.items():
            if of == paper:
                told = ", ".join(f"`{place}`" for place in where) or "–"
                lines.append(f"| {number} | {EQUATIONS[of, number]} | {told} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def filled(page: str, house: House) -> str:
    """The page with what stands between each pair of marks made anew."""
    parts = {"counts": counts, "rooms": rooms_table, "equations": equations_table}
    for name, make in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = page.partition(begin)
        _, mark, after = rest.partition(end)
        if not mark:
            raise ValueError(f"docs/architecture.md has no pair of marks {begin.strip()}")
        page = before + begin + "\n" + make(house) + "\n\n" + end + after
    return page


PAGE, DRAWING = ROOT / "docs" / "architecture.md", ROOT / "docs" / "images" / "rooms.svg"


def main() -> None:
    """Write the page and its picture, and print what was counted."""
    house = House.read()
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), house), encoding="utf-8")
    DRAWING.write_text(picture(house), encoding="utf-8")
    sys.stdout.write(counts(house) + "\n")
    for one, other in house.upward:
        sys.stdout.write(f"up: {one} imports {other}\n")
    for circle in house.circles:
        sys.stdout.write(f"circle: {', '.join(circle)}\n")


if __name__ == "__main__":
    main()
