"""Every command prints one object, and every name in it has a meaning in the documentation.

What commands print in all tests is held to it by a fixture of `conftest`.
"""

import json
from argparse import Namespace
from math import inf, nan

import pytest
import zoo
from json_names import PAGE, meanings, without_meaning

from bayesrep.cli import main
from bayesrep.commands import output


def test_the_table_says_what_every_name_means():
    names = list(meanings())
    assert names == sorted(names)
    assert PAGE.read_text(encoding="utf-8").count("\n| `") == len(names)
    assert all(kind and meaning for kind, meaning in meanings().values())


def test_one_object_that_says_of_which_command_it_is(tmp_path, capsys):
    zoo.cut(zoo.study("tiny"), images=5, classifiers=1).write(tmp_path / "s")
    assert main(["check", str(tmp_path / "s"), "--json"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    found = json.loads(printed)
    assert found["format"] == "bayesrep check 1"


def test_what_is_no_number_is_null():
    printed = output.as_json("fit", {"a": nan, "b": [inf, {"c": -inf}], "d": 0.5, "e": (1, True)})
    found = json.loads(printed)
    assert found.pop("format") == "bayesrep fit 1"
    assert found == {"a": None, "b": [None, {"c": None}], "d": 0.5, "e": [1, True]}


def test_names_without_a_meaning_are_found():
    row = {"classifier": "vit", "rank": 1.5, "place": 1}
    assert [*without_meaning({"format": "bayesrep summarize 1", "rows": [row]})] == ["place"]
    assert [*without_meaning({"left_out": {"reference": {"a": "no image"}}})] == []
    assert [*without_meaning({"rows": {"reference": 1}, "reference": {"a": 1}})] == ["a"]


def test_the_tests_hold_every_command_to_it():
    asked = Namespace(command="summarize", json=True)
    with pytest.raises(AssertionError, match=r"bayesrep summarize: not in docs/reference/json.md"):
        output.emit(asked, "", {"rows": [{"place": 1}]})
