"""A study of one classifier, "is my model's drop real?": every command has an answer."""

import csv
import json
import logging

import pytest
import zoo
from refusals import refused

import bayesrep
from bayesrep.cli import main
from bayesrep.report.page import page
from bayesrep.report.sections import gather

pytestmark = pytest.mark.filterwarnings(
    "ignore::bayesrep.errors.EstimateWarning", "ignore::bayesrep.errors.ConvergenceWarning"
)
FITS = {"nuts": zoo.SHORT, "laplace": {**zoo.QUICK, "degree": 8, "terms": 3}}


@pytest.fixture(scope="module")
def study():
    return zoo.study("one")


@pytest.fixture(scope="module", params=FITS)
def posterior_path(request):
    return str(zoo.posterior_path("one", **FITS[request.param]))


@pytest.fixture(scope="module")
def posterior(posterior_path):
    return bayesrep.read_posterior(posterior_path)


@pytest.fixture(scope="module")
def study_path(study, tmp_path_factory):
    path = tmp_path_factory.mktemp("one") / "study"
    study.write(path)
    return str(path)


@pytest.fixture(scope="module")
def paths(study_path, posterior_path):
    return [study_path, posterior_path]


@pytest.fixture(autouse=True)
def _nothing_logged(caplog):
    """ArviZ logs what it cannot compute."""
    with caplog.at_level(logging.WARNING):
        yield
    assert [record.getMessage() for record in caplog.get_records("call")] == []


def test_summarize_has_no_slope(study, posterior):
    table = bayesrep.summarize(study, posterior, allow_unconverged=True)
    assert table["classifier"].to_list() == list(study.classifiers)
    assert not any(table.null_count().row(0))
    gaps = bayesrep.summarize_gaps(study, posterior, allow_unconverged=True)
    by = {row["quantity"]: row for row in gaps.iter_rows(named=True)}
    assert by["slope"]["estimate"] is by["population_slope"]["lower"] is None
    assert by["population_gap"]["lower"] < by["population_gap"]["upper"]
    for end in ("lower", "upper"):
        assert by["selection_gap"][end] == pytest.approx(
            table[end][0] - table["replication_accuracy"][0]
        )


def test_equal_accuracies_have_no_slope_either():
    twins, posterior = zoo.study("alike"), zoo.posterior("alike", **FITS["laplace"])
    table = bayesrep.summarize(twins, posterior, allow_unconverged=True)
    assert table["classifier"].to_list() == ["a", "b", "c"]
    gaps = bayesrep.summarize_gaps(twins, posterior, allow_unconverged=True)
    line = gaps.filter(gaps["quantity"].is_in(["slope", "intercept"]))
    assert line.select("estimate", "lower", "upper").null_count().row(0) == (2, 2, 2)


def test_the_table_its_csv_and_its_json(study, paths, capsys):
    command = ["summarize", *paths, "--allow-unconverged"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "The classifier is" in text or "No clear drop" in text
    assert "For other images of the same populations: gap" in text
    (populations,) = [line for line in text.splitlines() if "other images of the same" in line]
    assert "slope" not in populations
    assert "images with the same selection frequency are equally hard" in text
    assert main([*command, "--format", "csv"]) == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    assert [row["classifier"] for row in rows] == list(study.classifiers)
    assert main([*command, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 1


@pytest.mark.parametrize("table", ["pairs", "ranks"])
def test_there_is_none_to_compare_it_with(study, paths, table, capsys):
    assert main(["summarize", *paths, "--allow-unconverged", "--table", table]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert (
        line == f"{study.classifiers[0]} is the only classifier: there is none to compare it with."
    )


def test_there_is_no_pair_to_draw(study, posterior):
    (only,) = study.classifiers
    with refused(bayesrep.StudyError, "pair-needs-two-classifiers", {"classifier": only}):
        bayesrep.plot_pairs(study, posterior, allow_unconverged=True)


def test_it_is_judged_and_reported(study, posterior, paths, capsys):
    main(["diagnose", paths[1], "--study", paths[0]])
    assert capsys.readouterr().out.startswith("Trust: ")
    content = gather(study, posterior, bootstrap=0)
    assert not content.missing_sections
    assert "lassifiers are" not in page(content)


@pytest.mark.parametrize("more", [[], ["--bootstrap", "3", "--quiet"]])
def test_it_is_estimated(study_path, more, capsys):
    assert main(["estimate", study_path, "--methods", "raw,naive,jackknife", *more]) == 0
    assert "share explained (%)" in capsys.readouterr().out
