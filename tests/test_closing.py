"""Last lines of commands, tables for papers, commands to paste, completion."""

import re
import subprocess

import numpy as np
import polars as pl
import pytest

from bayesrep import cli
from bayesrep.choices import list_methods
from bayesrep.estimators.annotators import Linearity
from bayesrep.estimators.components import fewest_components
from bayesrep.numerics.rounding import write_points
from bayesrep.report.conclusion import (
    annotators_sentence,
    components_sentence,
    pairs_sentence,
    ranks_sentence,
)
from bayesrep.report.estimates_text import estimates_table, gaps_table, pairs_table, side_by_side
from bayesrep.report.fits_text import remedies
from bayesrep.report.table_format import MISSING_TEXT, TEXT_FORMAT, columns, list_rows


def test_pairs_are_counted_and_the_closest_come_first():
    names = [f"c{i}" for i in range(5)]
    rows = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    probability = np.array([0.5, 0.99, 0.01, 0.6, 0.975, 0.025, 0.9, 0.2, 0.3, 0.4])
    table = pl.DataFrame(rows, schema=["classifier", "other"], orient="row").with_columns(
        raw_difference=pl.Series(np.where(np.arange(10) < 2, -0.01, 0.01)),
        difference=pl.Series(np.full(10, 0.01)),
        lower=0.0,
        upper=0.02,
        probability=probability,
    )
    assert pairs_sentence(table) == (
        "Of 10 pairs of classifiers, 4 have a better one with at least 97.5 % probability; "
        "2 change places once selection is removed."
    )
    text = pairs_table(table, names, 3)
    assert [line.split()[-1] for line in text.splitlines()[2:5]] == ["50.0", "60.0", "40.0"]
    assert text.splitlines()[-1] == "3 of 10 pairs; --top all shows them, --format csv prints them."
    assert "of 10 pairs" not in pairs_table(table, names, 10)


@pytest.mark.parametrize(
    ("best", "replication", "said"),
    [
        ([0.97, 0.03, 0.0], [1.0, 2.0, 3.0], "a is the best with probability 97 %. Removing "
         "selection changes no classifier's place on the replication."),
        ([0.6, 0.4, 0.0], [3.0, 2.0, 1.0], "No clear winner: a (60 %), b (40 %). "
         "Removing selection moves a the most, by 2 places."),
    ],
)  # fmt: skip
def test_ranks_say_who_is_first_as_far_as_that_is_known(best, replication, said):
    table = pl.DataFrame(
        {
            "classifier": ["a", "b", "c"],
            "rank": [1.2, 1.9, 2.9],
            "replication_rank": replication,
            "best": best,
        }
    )
    assert ranks_sentence(table) == said


def test_annotators_say_whether_more_would_help():
    table = pl.DataFrame(
        {
            "annotators": [9, 10],
            "reference_accuracy": [0.8, 0.8],
            "naive": [0.75, 0.76],
            "jackknife": [0.76, 0.79],
        }
    )
    line = Linearity(10, 5, 0.99, 0.79, 0.78, 0.001)
    assert annotators_sentence(table, line).startswith(
        "From 10 to ever more annotators the gap that naive matching leaves would fall from 4.00 "
        "to about 1.00 points: more would change it."
    )
    hardly = table.with_columns(jackknife=pl.col("naive") + 0.001)
    assert ": more would hardly change it. " in annotators_sentence(hardly, line)
    assert "show no curve" in annotators_sentence(table, None)


def test_the_fewest_components_within_an_error_of_the_best():
    table = pl.DataFrame(
        {
            "dataset": ["reference"] * 3 + ["replication"] * 3,
            "components": [1, 2, 3] * 2,
            "held_out_behind": [500.0, 1.0, 0.0, 3.0, 0.0, 2.0],
            "held_out_error": [30.0, 2.0, 0.0, 4.0, 0.0, 1.0],
        }
    )
    assert fewest_components(table) == {"reference": 2, "replication": 1}
    assert "Components needed: reference 2, replication 1 " in components_sentence(table)


def test_minus_signs_are_real_and_zero_has_none():
    assert write_points(-0.0123) == "\N{MINUS SIGN}1.23"
    assert write_points(-0.00001) == "0.00"


@pytest.fixture
def paper_format():
    token = TEXT_FORMAT.set("text")
    yield TEXT_FORMAT.set
    TEXT_FORMAT.reset(token)


def test_tables_for_papers_escape_names(paper_format):
    header, rows = ["name", "95 %"], [["res_net|50&\\", "1 ± \N{MINUS SIGN}2"]]
    paper_format("markdown")
    assert columns(header, rows) == (
        "| name | 95 % |\n| --- | ---: |\n| res_net\\|50&\\\\ | 1 ± \N{MINUS SIGN}2 |"
    )
    assert columns(["-1", "x"], [["vit -b", "-1.5 (-2 to -.5)"], ["2024-05-01", "-"]]) == (
        "| -1 | x |\n| --- | ---: |\n| vit -b | −1.5 (−2 to −.5) |\n| 2024-05-01 | - |"
    )


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a|b", r"a\|b"),
        ("</script><script>x", r"\</script\>\<script\>x"),
        ("[click](javascript:x)", r"\[click\](javascript:x)"),
        ("![x](y)", r"!\[x\](y)"),
        ("*bold* `code` ~~gone~~", r"\*bold\* \`code\` \~\~gone\~\~"),
        ("_soft_ but tf_net", r"\_soft\_ but tf_net"),
        ("&lt; & $x$", r"\&lt; & \$x\$"),
        ("-1", "-1"),
        ("-1 to -2", "-1 to -2"),
    ],
)
def test_a_name_is_text_in_markdown_in_any_column(paper_format, name, written):
    paper_format("markdown")
    shown = {"one": "{one}", "other": "{other}", "by": "{by:.1f}"}
    text = list_rows([{"one": name, "other": name, "by": -1.5}], shown)
    assert text.splitlines()[2] == f"| {written} | {written} | \N{MINUS SIGN}1.5 |"


def test_methods_are_columns_and_some_of_many_are_shown():
    rows = [
        {"method": m, "classifier": f"c{i:02}", "reference_accuracy": 0.8,
         "adjusted_accuracy": 0.7, "lower": 0.6, "upper": 0.75}
        for m in ("raw", "em-spline") for i in range(30)
    ]  # fmt: skip
    text = side_by_side(pl.DataFrame(rows), None)
    assert text.splitlines()[0].split("  ")[-1] == "95 % (EM + spline)"
    assert text.splitlines()[2].split() == ["c00", "80.0", "70.0", "70.0", "60.0", "to", "75.0"]
    assert len(text.splitlines()) == 2 + 10 + 1
    assert text.endswith("10 of 30 classifiers; --top all shows them, --format csv prints them.")


def test_summarize_shows_the_classifiers_that_estimate_shows():
    rows = [
        {"method": "joint", "classifier": f"c{i:02}", "reference_accuracy": 0.8,
         "replication_accuracy": 0.6, "adjusted_accuracy": 0.7, "lower": 0.6, "upper": 0.75,
         "bias_corrected_gap": 0.1, "rhat": 1.0, "ess_bulk": 900.0, "ess_tail": 800.0}
        for i in range(30)
    ]  # fmt: skip
    table = pl.DataFrame(rows)

    def first(text: str) -> list[str]:
        return [line.split()[0] for line in text.splitlines()]

    for top in (None, 3, 30):
        text = estimates_table(table, top)
        assert first(text) == first(side_by_side(table, top))
    assert len(text.splitlines()) == 2 + 30
    text = estimates_table(table, None)
    told = "10 of 30 classifiers; --top all shows them, --format csv prints them."
    assert text.splitlines()[-1] == told


def test_advice_of_settings_becomes_commands():
    said = ["Try components=3, or shared_components=False, and compare."]
    assert remedies(said, "my-study") == [
        "  $ bayesrep fit my-study --out again.nc --set components=3",
        "  $ bayesrep fit my-study --out again.nc --set shared_components=false",
    ]


def complete(script, *words):
    typed = " ".join(f"'{word}'" for word in words)
    code = f"{script}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _shtab_bayesrep\n"
    said = subprocess.run(
        ["bash", "-c", code + 'printf "%s\\n" "${COMPREPLY[@]}"'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return said.stdout.split()


def test_completion_in_bash(capsys):
    assert cli.main(["--print-completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert complete(script, "bayesrep", "summ") == ["summarize"]
    assert set(list_methods()) == set(complete(script, "bayesrep", "fit", "s", "--method", ""))
    assert complete(script, "bayesrep", "fit", "s", "--checkp") == ["--checkpoint"]
    assert set(complete(script, "bayesrep", "import", "")) >= {"tables", "evals"}
    assert complete(script, "bayesrep", "figure", "robust") == ["robustness"]
    assert complete(script, "bayesrep", "pap") == ["papers"]
    assert complete(script, "bayesrep", "collect", "plan", "--pil") == ["--pilot"]
    assert complete(script, "bayesrep", "papers", "--h") == ["--help"]
    assert {"import", "remeasure"} < set(complete(script, "bayesrep", "answers", ""))
    assert complete(script, "bayesrep", "answers", "import", "lab") == ["label-studio"]
    assert complete(script, "bayesrep", "collect", "read", "c", "--fa") == ["--fates"]
    assert complete(script, "bayesrep", "collect", "tasks", "--fa") == []


@pytest.mark.parametrize("shell", cli.SHELL_NAMES)
def test_every_command_is_completed(capsys, shell):
    assert cli.main(["--print-completion", shell]) == 0
    said = capsys.readouterr().out
    assert all(word in said for name in cli.COMMANDS for word in name.split())
    steps = {"bash": "collect_read_option_strings=.* --fates", "fish": "collect read' -l fates"}
    assert re.search(steps.get(shell, r"--fates\["), said)


def test_the_help_lists_every_command_once(capsys):
    cli.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("    ") and line[4] != " "]
    assert sorted(listed) == sorted([*(n for n in cli.COMMANDS if " " not in n), *cli.GROUPS])
    assert all(name in " ".join(lines) for group in cli.GROUPS.values() for name in group.steps)


def test_a_slope_that_means_nothing_is_left_out():
    names = ("bias_corrected_gap", "selection_gap", "share_explained", "slope")
    shown = []
    for slope in (1.25, -3175.0):
        values = pl.Series([0.01, 0.02, 0.5, slope])
        table = pl.DataFrame({"method": "naive", "quantity": names, "estimate": values})
        table = table.with_columns(lower=pl.lit(None, pl.Float64), upper=pl.lit(None, pl.Float64))
        shown.append(gaps_table(table, clear=True).splitlines()[-1].split()[-1])
    assert shown == ["1.250", MISSING_TEXT]
