"""The documents tell the truth about what is in the project: tests, files and methods they name."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from bayesrep.estimators import ESTIMATORS

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_are_named_exist(page: Path):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`(tests/[\w./]+\.py)", text):
        assert (ROOT / name).is_file()
    for name, function in re.findall(r"`(tests/\w+\.py)::(\w+)`", text):
        assert f"def {function}(" in (ROOT / name).read_text(encoding="utf-8"), function


def test_every_point_of_the_published_code_is_there():
    text = (ROOT / "docs" / "published-code.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\d+) \|", text, flags=re.MULTILINE) == [str(n) for n in range(1, 14)]


def test_every_method_is_documented():
    text = (ROOT / "docs" / "estimators.md").read_text(encoding="utf-8")
    for name, kind in ESTIMATORS.items():
        (row,) = re.findall(rf"^\| `{name}` \|(.*)$", text, flags=re.MULTILINE)
        assert all(f"`{option.name}`" in row for option in fields(kind))


def test_every_result_has_its_command():
    """A page of results names the module that made it, and the module exists."""
    for page in (ROOT / "docs" / "results").glob("*.md"):
        if page.name == "README.md":
            continue
        command = re.search(r"Made by `python -m ([\w.]+)", page.read_text(encoding="utf-8"))
        assert command is not None, page.name
        assert (ROOT / (command.group(1).replace(".", "/") + ".py")).is_file()


def test_every_result_is_in_the_index():
    index = (ROOT / "docs" / "results" / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs" / "results").glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index, page.name
