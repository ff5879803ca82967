"""The rule by which counts kept images: its words, its tables, and how a study carries it."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import check, refusal, refused
from scipy import stats

from bayesrep import (
    Study,
    StudyError,
    SufficientStatistics,
    read_study,
)
from bayesrep.cli import main
from bayesrep.studies.reading import check_study
from bayesrep.studies.scenarios import chance_to_be_kept
from bayesrep.studies.selection import Selection, truncating

RULES = {  # what a person would do with the words
    "all": lambda k, n: k == n,
    "all of 6": lambda k, n: k == n == 6,
    "worst of 3": lambda k, n: k == n == 3,
    "none": lambda k, n: k == 0,
    "none of 8": lambda k, n: k == 0 and n == 8,
    "at least 3": lambda k, n: k >= 3,
    "at least 3 of 5": lambda k, n: k >= 3 and n == 5,
    "at most 1 of 4": lambda k, n: k <= 1 and n == 4,
    "exactly 3 of 5": lambda k, n: k == 3 and n == 5,
    "at least 70 %": lambda k, n: 10 * k >= 7 * n,
    "at most 10%": lambda k, n: 10 * k <= n,
    "AT LEAST  70 %": lambda k, n: 10 * k >= 7 * n,
}


@pytest.mark.parametrize("rule", RULES)
@given(n=st.integers(1, 60), data=st.data())
def test_words_mean_what_they_say(rule, n, data):
    k = data.draw(st.integers(0, n))
    assert Selection.parse(rule).probability([k], [n]).tolist() == [float(RULES[rule](k, n))]


def test_a_table_keeps_what_it_lists():
    rows = [(3, 5, 0.5), [4, 5], (5, 5, 1)]
    found = Selection.parse(rows).probability(np.arange(6), np.full(6, 5))
    assert found.tolist() == [0, 0, 0, 0.5, 1, 1]
    assert Selection.parse(Selection.parse(rows).content()) == Selection.parse(rows)


IMPOSSIBLE, NO_TABLE = "accepted-count-impossible", "selection-neither-rule-nor-table"


@pytest.mark.parametrize(
    ("rule", "broken", "facts"),
    [
        *(
            (words, "selection-rule-unknown", {"selection": words})
            for words in ("most", "", "at least", "at least 2.5 of 5", "at least -1")
        ),
        ("at least 7 of 5", "selection-needs-too-many", {"selection": "at least 7 of 5"}),
        ("at least 130 %", "selection-share-above-all", {"selection": "at least 130 %"}),
        (7, NO_TABLE, {"given": 7}),
        *(([row], NO_TABLE, {}) for row in ((1.5, 2, 1), ("a", 2, 1), (1, 2, 1, 1))),
        ([(3, 2, 1)], IMPOSSIBLE, {"selected": 3, "shown": 2}),
        ([(1, 2, float("nan"))], IMPOSSIBLE, {"selected": 1, "shown": 2}),
        ([(1, 2, 1.5)], IMPOSSIBLE, {"probability": 1.5}),
        ([(1, 2), (1, 2, 0.5)], "accepted-count-repeated", {}),
        ([(1, 2, 0.0)], "no-count-ever-kept", {}),
        ([], "no-count-ever-kept", {}),
    ],
)
def test_what_is_no_rule_is_refused(rule, broken, facts):
    with refused(StudyError, broken, facts):
        Selection.parse(rule)


def test_a_rule_on_other_answers_corrects_nothing():
    rule = Selection.parse("at least 3 of 5 by other answers")
    assert rule.is_by_others
    assert truncating(rule) is None
    assert rule.bare_rule == "at least 3 of 5"
    assert rule.count_answers(np.array([100, 90])).tolist() == [5, 5]
    made = study(selection="all of 6 by other answers")  # which was not shown to six
    assert SufficientStatistics.of(made).reference.selection is None


def study(selection=None, selected=(3, 4, 4), shown=4):
    right = {"correct": np.eye(3, 2) > 0}
    return Study.from_arrays(
        reference={"selected": list(selected), "shown": shown, "selection": selection} | right,
        replication={"selected": [2, 0, 4], "shown": 4} | right,
        classifiers=["a", "b"],
    )


NOT_KEPT = "image-not-kept-by-selection"
FIRST = {"images": ["0"], "selected": 3, "shown": 4}


@pytest.mark.parametrize(
    ("rule", "facts"), [("all of 4", FIRST), ("all of 6", {"images": [*"012"]})]
)
def test_images_that_the_rule_would_not_have_kept_are_refused(rule, facts):
    with refused(StudyError, NOT_KEPT, {"selection": rule} | facts):
        study(rule)


def test_a_study_keeps_its_rule_on_disk(tmp_path):
    for rule in ("at least 3", [(3, 4, 0.25), (4, 4, 1.0)], "all of 9 by other answers"):
        made = study(rule)
        made.write(tmp_path / "study", force=True)
        read = read_study(tmp_path / "study")
        assert read.reference.selection == made.reference.selection
        assert read.replication.selection is None
        assert read.fingerprint() == made.fingerprint()


def test_only_a_rule_on_the_counts_at_hand_changes_what_a_fit_is_of():
    plain, told, others = study(), study("at least 3"), study("at least 3 by other answers")
    assert plain.fingerprint() == others.fingerprint() != told.fingerprint()
    digests = [SufficientStatistics.of(each).digest() for each in (plain, others, told)]
    assert digests[0] == digests[1] != digests[2]


def test_shards_by_different_rules_do_not_add_up():
    one, other = (SufficientStatistics.of(study(rule)) for rule in ("at least 3", "at least 2"))
    assert (one + one).reference.selection == Selection("at least 3")
    with refused(StudyError, "shards-selected-differently"):
        _ = one + other


@pytest.mark.parametrize(
    ("given", "rule", "facts"),
    [
        ("all", "manifest-selection-not-mapping", {}),
        ({"elsewhere": "all"}, "manifest-selects-unknown-data-set", {"dataset": "elsewhere"}),
        ({"reference": "most"}, "selection-rule-unknown", {"selection": "most"}),
        ({"reference": "all of 4"}, NOT_KEPT, FIRST),
        ({"reference": [[1, 2, "x"]]}, NO_TABLE, {}),
    ],
)
def test_a_rule_of_a_stranger_is_checked(tmp_path, given, rule, facts):
    study("at least 3").write(tmp_path / "s")
    manifest = tmp_path / "s" / "study.json"
    content = json.loads(manifest.read_text()) | {"selection": given}
    manifest.write_text(json.dumps(content))
    (violation,) = check_study(tmp_path / "s")
    check(violation, rule, facts)
    with refused(StudyError, rule, facts):
        read_study(tmp_path / "s")


def test_chance_to_be_kept_is_the_binomial_tail():
    s = np.array([0.3, 0.7, 0.95])
    wanted = stats.binom.sf(6, 10, s)
    np.testing.assert_allclose(chance_to_be_kept("at least 70 %", 10, s), wanted, rtol=1e-12)


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(d, f"{d}{i}", k, 4) for d in ("v1", "v2") for i, k in enumerate((3, 4, 4))]
    counts = pl.DataFrame(rows, schema=["dataset", "image", "selected", "shown"], orient="row")
    counts.write_csv("counts.csv")
    counts.select("dataset", "image", classifier=pl.lit("a"), correct=pl.lit(1)).write_csv("p.csv")
    return ["import", "tables", "counts.csv", "p.csv", "--reference", "v1", "--replication", "v2"]


def test_import_takes_rules_in_words_and_as_tables(tables, capsys):
    pl.DataFrame({"selected": [3, 4], "shown": 4}).write_csv("rule.csv")
    rules = ["--selection", "v1=at least 3 of 4", "--selection", "v2=rule.csv"]
    assert main([*tables, *rules, "--out", "s"]) == 0
    read = read_study("s")
    assert read.reference.selection == Selection("at least 3 of 4")
    assert read.replication.selection.table == ((3, 4, 1.0), (4, 4, 1.0))
    assert main(["check", "s"]) == 0
    assert "kept by these very counts (at least 3 of 4)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rules", "rule", "facts"),
    [
        ("v1", "selection-not-name-rule", {"argument": "v1"}),
        ("v1=most", "selection-rule-unknown", {"selection": "most"}),
        ("v3=all", "selection-of-unknown-data-set", {"data_sets": ["v3"]}),
        ("v1=all of 4", NOT_KEPT, FIRST | {"images": ["v10"]}),
        ("v1=at least 1|v1=at least 2", "selection-rule-twice", {"dataset": "v1"}),
        ("v1=nowhere.csv", "file-unreadable", {"path": "nowhere.csv"}),
        ("v1=counts.csv", "accepted-count-repeated", {}),
        ("v1=p.csv", "table-lacks-columns", {"columns": ["selected", "shown"]}),
    ],
)
def test_import_refuses_what_is_no_rule(tables, rules, rule, facts):
    asked = [word for each in rules.split("|") for word in ("--selection", each)]
    found = refusal([*tables, *asked, "--out", "s"])
    check(found, rule, facts)
    assert "known_data_sets" not in found.facts or found.facts["known_data_sets"] == "v1, v2"
    assert rule != "selection-rule-unknown" or "'v1'" in found
