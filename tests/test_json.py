"""Every command states what it prints as JSON.

What commands print in all tests is held to it by a fixture of `conftest`.
"""

import json
import runpy
from argparse import Namespace
from math import inf, nan
from pathlib import Path

import pytest
import zoo
from json_schema import faults

from bayesrep.cli import COMMANDS, main
from bayesrep.commands import import_command, output
from bayesrep.commands.shapes import schema_of

ROOT = Path(__file__).resolve().parents[1]
stated = runpy.run_path(str(ROOT / "docs" / "stated.py"))
PAGE = stated["tables"]()


def test_every_statement_is_on_the_page_and_in_a_file(tmp_path):
    stated["write_schemas"](tmp_path)
    wrong = []
    for command in COMMANDS:
        form = import_command(command).FORMS
        section = PAGE.partition(f"## {command}\n")[2].partition("\n## ")[0]
        file = stated["file_of"](command)
        rows = [f"| `{name}` | " for names in form.values() for name in names]
        link = f'href="../schemas/{file}"'
        wanted = [*(when[1:] for when in form), *rows, link]
        wrong += [(command, each) for each in wanted if each not in section]
        if json.loads((tmp_path / file).read_text(encoding="utf-8")) != schema_of(command):
            wrong.append((command, file))
    assert wrong == []


def test_one_object_that_says_of_which_command_it_is(tmp_path, capsys):
    zoo.cut(zoo.study("tiny"), images=5, classifiers=1).write(tmp_path / "s")
    assert main(["check", str(tmp_path / "s"), "--json"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    found = json.loads(printed)
    assert found["format"] == "bayesrep check 1"
    assert list(faults(found, schema_of("check"))) == []


def test_what_is_no_number_is_null():
    printed = output.as_json("fit", {"a": nan, "b": [inf, {"c": -inf}], "d": 0.5, "e": (1, True)})
    found = json.loads(printed)
    assert found.pop("format") == "bayesrep fit 1"
    assert found == {"a": None, "b": [None, {"c": None}], "d": 0.5, "e": [1, True]}


RANK = {
    **{"classifier": "vit", "adjusted_accuracy": 0.7, "reference_rank": 1, "replication_rank": 2},
    **{"rank": 1.5, "lower": 1, "upper": 2, "best": 0.6},
}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"best": 1.2}, "$.rows[0].best: 1.2 is out of range"),
        ({"rank": "1"}, "$.rows[0].rank: '1' is no number"),
        ({"rank": True}, "$.rows[0].rank: True is no number"),
        ({"rank": None}, "$.rows[0].rank: None is no number"),
        ({"place": 1}, "$.rows[0]: place is not stated"),
    ],
)
def test_what_is_not_stated_is_found(change, fault):
    facts = {"format": "bayesrep ranks 1", "rows": [RANK | change]}
    assert list(faults(facts, schema_of("ranks"))) == ([fault] if fault else [])
    assert list(faults({**facts, "format": "1"}, schema_of("ranks")))[0].startswith("$.format: '1'")
    del facts["rows"]
    assert list(faults(facts, schema_of("ranks"))) == ["$: rows is missing"]


def test_the_tests_hold_every_command_to_it():
    asked = Namespace(command="ranks", json=True)
    with pytest.raises(AssertionError, match="bayesrep ranks --json is not what its FORMS state"):
        output.emit(asked, "", {"rows": [{}]})
