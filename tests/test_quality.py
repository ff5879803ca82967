"""Rules of quality control: what they leave out, and that every answer is counted."""

import json

import numpy as np
import polars as pl
import pytest
from refusals import check, refusal, refused

from bayesrep import OptionError, StudyError
from bayesrep.answers.quality import RULE_OF_NAME, clean_answers
from bayesrep.cli import main


def _grid(task, worker, selected, controls=(), dataset="v1", seconds=60.0):
    """What a worker did of a task: images by number, the last of them controls."""
    plain = len(selected) - len(controls)
    return pl.DataFrame(
        {
            "dataset": dataset,
            "image": [f"{task}-{i}" for i in range(len(selected))],
            "worker": worker,
            "selected": [bool(each) for each in selected],
            "task": task,
            "control": pl.Series([None] * plain + list(controls), dtype=pl.String),
            "seconds": seconds,
        }
    )


def _left(cleaned):
    return set(cleaned.kept.select("task", "worker").unique().rows())


def test_engstroms_rule_is_of_workers():
    good, few, fooled = [1] * 8 + [0, 0], [1] * 5 + [0] * 5, [1] * 8 + [1, 1]
    controls = ["negative", "negative"]
    tasks = [_grid(f"t{i}", "sound", good, controls) for i in range(10)]
    # 3 of 10 flagged: 30 %; 2 of 10 are not enough.
    tasks += [_grid(f"t{i}", "lazy", few if i < 3 else good, controls) for i in range(10)]
    tasks += [_grid(f"t{i}", "fooled", fooled if i < 3 else good, controls) for i in range(10)]
    tasks += [_grid(f"t{i}", "nearly", few if i < 2 else good, controls) for i in range(10)]
    one = [1] * 8 + [1, 0]  # one negative control is forgiven
    tasks += [_grid(f"t{i}", "once", one, controls) for i in range(10)]
    cleaned = clean_answers(pl.concat(tasks), ["engstrom2020"])
    assert {worker for _, worker in _left(cleaned)} == {"sound", "nearly", "once"}
    assert cleaned.dropped.rows() == [("engstrom2020", 2, 20, 200)]


def test_tsiprass_rule_is_of_workers_and_then_of_tasks():
    controls = ["positive"] * 10

    def task(name, worker, share):
        return _grid(name, worker, [1, 0] + [i < 10 * share for i in range(10)], controls)

    tasks = [task(f"t{i}", "blind", 0.1 if i < 2 else 1.0) for i in range(4)]  # half: out
    tasks += [task(f"t{i}", "poor", 0.1 if i < 1 else 1.0) for i in range(4)]  # one task: out
    tasks += [task("t0", "edge", 0.4), task("t1", "edge", 0.2), task("t2", "edge", 0.3)]
    cleaned = clean_answers(pl.concat(tasks), ["tsipras2020"])
    assert _left(cleaned) == {("t1", "poor"), ("t2", "poor"), ("t3", "poor"), ("t0", "edge")}
    assert cleaned.dropped.rows() == [("tsipras2020", 1, 7, 84)]


def test_controls_repeats_time_and_equal_numbers():
    tasks = [
        _grid("t0", "a", [1, 0, 1], ["positive"]),
        _grid("t0", "b", [1, 1, 1], ["positive"], seconds=3.0),
        _grid("t0", "c", [0, 1, 1], ["positive"]),
        _grid("t0", "d", [0, 1], []),
    ]
    again = tasks[0].with_columns(selected=pl.lit(value=True))
    table = pl.concat([*tasks, again])
    cleaned = clean_answers(table, ["equal=2", "controls", "repeats", "time=10"], seed=4)
    names = cleaned.dropped["rule"].to_list()
    assert names == ["time", "repeats", "controls", "equal"]  # in the order of RULES
    assert cleaned.dropped["answers"].to_list() == [3, 3, 2, 2]
    assert len(table) == len(cleaned.kept) + cleaned.dropped["answers"].sum()
    assert set(cleaned.kept.group_by("image").len()["len"]) == {2}
    assert cleaned.kept.filter(worker="a", image="t0-1")["selected"].to_list() in ([False], [])


def test_equal_numbers_are_the_fewest_at_random_and_repeat():
    rng = np.random.default_rng(0)
    rows = [
        ("v1", f"i{x}", f"w{w}", bool(rng.random() < 0.5))
        for x in range(200)
        for w in range(5 + x % 3)
    ]
    table = pl.DataFrame(rows, ("dataset", "image", "worker", "selected"), orient="row")
    first, same, other = (clean_answers(table, ["equal"], seed=s).kept for s in (1, 1, 2))
    assert set(first.group_by("image").len()["len"]) == {5}
    assert first.equals(same)
    assert not first.equals(other)


def test_what_rules_do_to_the_frequencies_is_said():
    table = pl.concat(
        [_grid("t0", "a", [1, 1, 1], ["positive"]), _grid("t0", "b", [0, 0, 0], ["positive"])]
    )
    cleaned = clean_answers(table, ["tsipras2020"])
    assert cleaned.effect.rows() == [("v1", 0.5, 1.0, 2, 0)]
    alone = pl.concat([table, _grid("t1", "b", [0, 0, 0], ["positive"])])
    assert clean_answers(alone, ["tsipras2020"]).effect.rows() == [("v1", 0.25, 1.0, 4, 2)]


def test_unknown_rules_missing_columns_and_nothing_left_are_refused():
    table = _grid("t0", "a", [1, 0, 0], ["positive"])
    known = {"choices": "engstrom2020, tsipras2020, time, repeats, controls, equal"}
    numbers = ("time=-1", "time=soon", "equal=0", "equal=1.5", "controls=3", "time=")
    for name, given, rule, facts in (
        ("strict", table, "unknown-cleaning-rule", known),
        *((name, table, "cleaning-rule-number", {}) for name in numbers),
        ("tsipras2020", table.drop("control"), "cleaning-rule-needs-column", {"column": "control"}),
        ("engstrom2020", table, "cleaning-rule-leaves-no-answer", {}),
    ):
        kind = OptionError if given is table and name != "engstrom2020" else StudyError
        with refused(kind, rule, {"cleaning_rule": name} | facts):
            clean_answers(given, [name])
    with refused(StudyError, "no-answer-about-positive-control"):
        clean_answers(_grid("t0", "a", [1, 0]), ["tsipras2020"])


def test_every_rule_is_in_the_docs_and_in_the_help(capsys):
    from pathlib import Path

    page = (Path(__file__).parents[1] / "docs" / "crowd.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in RULE_OF_NAME)
    assert main(["answers", "count", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in RULE_OF_NAME)


def test_command_count_by_rules(tmp_path, capsys):
    source, out = str(tmp_path / "a.csv"), str(tmp_path / "clean.csv")
    counts = str(tmp_path / "counts.csv")
    table = pl.concat([_grid("007", w, [1, 0, 1], ["positive"]) for w in "abc"])
    table.write_csv(source)
    command = f"answers count {source} --answers {out} --out {counts} --rules controls,equal=2"
    command = command.split()
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [row["answers"] for row in facts["dropped"]] == [3, 2]
    assert [row["answers"] for row in facts["rows"]] == [4]
    check(refusal(command), "output-path-exists", {"path": counts})
    assert main([*command, "--force"]) == 0
    assert "Left: 4 answers." in capsys.readouterr().out
    kept = pl.read_csv(out, schema_overrides={"task": pl.String})
    assert kept["task"].unique().to_list() == ["007"]
    again = (
        kept.group_by("image").agg(pl.col("selected").sum().cast(pl.Int64), pl.len()).sort("image")
    )
    assert pl.read_csv(counts).sort("image")["selected"].to_list() == again["selected"].to_list()
    assert pl.read_csv(counts)["shown"].to_list() == [2, 2]
    words = ["answers", "count", source, "--answers", tmp_path / "b.csv"]
    check(refusal([*words, "--out", tmp_path / "d.csv"]), "answers-without-rules")


BROKEN = {
    "control": ("perhaps", "control-unknown", "lines 2 ('perhaps'), 3 ('perhaps')"),
    "seconds": ("fast", "task-seconds-no-time", "lines 2 ('fast'), 3 ('fast')"),
    "selected": ("maybe", "flag-neither-true-nor-false", "lines 2 ('maybe'), 3 ('maybe')"),
    "worker": ("", "value-missing-in-rows", "lines 2, 3"),
}


@pytest.mark.parametrize("column", BROKEN)
def test_broken_tables_of_answers_are_one_line(tmp_path, column):
    value, rule, rows = BROKEN[column]
    table = _grid("t", "a", [1, 0]).with_columns(pl.lit(value).alias(column))
    table.write_csv(tmp_path / "a.csv")
    out = tmp_path / "o.csv"
    found = refusal(["answers", "count", tmp_path / "a.csv", "--out", out, "--rules", "repeats"])
    check(found, rule, {"column": column, "rows": rows})
    assert not out.exists()
