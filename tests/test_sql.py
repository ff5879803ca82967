"""The statement whose result is a study, run by DuckDB."""

import duckdb
import numpy as np
import polars as pl
import pytest
import zoo
from refusals import check, refusal, refused

import bayesrep
from bayesrep import OptionError
from bayesrep.cli import main
from bayesrep.sources.sql import SQL_DIALECTS, statement


@pytest.fixture
def database():
    """Tables of answers and predictions of a study, rows in random order."""
    study = zoo.study("workers")
    rng = np.random.default_rng(0)
    answered, predicted = [], []
    for role, data in study.datasets.items():
        given = data.answers
        rows = zip(given.image, given.worker, given.selected, strict=True)
        answered += [(role, data.images[i], f"w{w}", bool(y)) for i, w, y in rows]
        predicted += [
            (role, image, name, bool(data.correct[row, at]))
            for row, image in enumerate(data.images)
            for at, name in enumerate(study.classifiers)
        ]
    annotations = pl.DataFrame(
        answered, ("dataset", "image", "worker", "selected"), orient="row"
    ).sample(fraction=1, shuffle=True, seed=int(rng.integers(9)))
    predictions = pl.DataFrame(
        predicted, ("dataset", "image", "classifier", "correct"), orient="row"
    )
    return study, annotations, predictions


def _asked(annotations, predictions, **options):
    with duckdb.connect() as connection:
        connection.register("annotations", annotations.to_arrow())
        connection.register("predictions", predictions.to_arrow())
        answer = connection.execute(statement("duckdb", **options))
        names = [column[0] for column in answer.description]
        return pl.DataFrame(answer.fetchall(), names, orient="row", infer_schema_length=None)


def test_duckdbs_result_is_the_study(database, tmp_path):
    study, annotations, predictions = database
    _asked(annotations, predictions).write_parquet(tmp_path / "s.parquet")
    assert (
        main(["import", "tables", str(tmp_path / "s.parquet"), "--out", str(tmp_path / "s")]) == 0
    )
    read = bayesrep.read_study(tmp_path / "s")
    assert read.classifiers == tuple(sorted(study.classifiers))
    columns = np.argsort(study.classifiers)
    for role, data in study.datasets.items():
        order = np.argsort(data.images)
        found = read.datasets[role]
        assert found.images.tolist() == data.images[order].tolist()
        assert found.selected.tolist() == data.selected[order].tolist()
        assert found.shown.tolist() == data.shown[order].tolist()
        assert (found.correct == data.correct[np.ix_(order, columns)]).all()


def test_ones_and_zeros_are_answers_and_other_data_sets_stay_out(database):
    _, annotations, predictions = database
    whole = annotations.with_columns(pl.col("selected").cast(pl.Int8))
    more = whole.with_columns(dataset=pl.lit("third"))
    found = _asked(pl.concat([whole, more]), predictions)
    assert found.equals(_asked(annotations, predictions))
    assert set(found["dataset"]) == {"reference", "replication"}


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (
            lambda a, p: (a.filter(pl.col("image") != a["image"][0]), p),
            ("count-not-whole-in-rows", {"column": "selected"}),
        ),
        (
            lambda a, p: (a, p.filter(pl.col("image") != p["image"][0])),
            ("value-missing-in-rows", {"column": "classifier"}),
        ),
        (
            lambda a, p: (a.with_columns(pl.col("selected").replace(a["selected"][0], None)), p),
            ("count-not-whole-in-rows", {"column": "selected"}),
        ),
    ],
)
def test_what_is_missing_is_in_the_result_and_refused_by_the_import(
    database, tmp_path, change, broken
):
    _, annotations, predictions = database
    _asked(*change(annotations, predictions)).write_parquet(tmp_path / "s.parquet")
    out = tmp_path / "s"
    check(refusal(["import", "tables", tmp_path / "s.parquet", "--out", out]), *broken)
    assert not out.exists()


def test_names_cannot_leave_their_quotes(database):
    _, annotations, predictions = database
    odd = "v'1\"; --"
    renamed = (t.with_columns(pl.col("dataset").replace("reference", odd)) for t in database[1:])
    found = _asked(*renamed, reference=odd)
    assert set(found["dataset"]) == {odd, "replication"}
    assert "'v\\\\\\'1'" in statement("bigquery", reference="v\\'1")
    for name in ('a"b', "", "a..b"):
        with refused(OptionError, "table-name-not-sql", {"dialect": "duckdb"}):
            statement("duckdb", annotations=name)


def test_command_prints_the_statement(capsys):
    for dialect in SQL_DIALECTS:
        command = ["import", "sql", "--dialect", dialect, "--annotations", "lake.answers"]
        assert main(command) == 0
        quote = SQL_DIALECTS[dialect][0]
        assert f"FROM {quote}lake{quote}.{quote}answers{quote}" in capsys.readouterr().out
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("command", "broken"),
    [
        (["sql"], ("sql-dialect-missing", {"choices": "duckdb, spark, bigquery"})),
        (["sql", "a.csv", "--dialect", "duckdb"], ("sql-takes-no-option", {"option": "files"})),
        (["sql", "--dialect", "duckdb", "--out", "s"], ("sql-takes-no-option", {"option": "out"})),
        (["tables", "a.csv"], ("import-needs-file-and-out", {"source": "tables"})),
        (
            ["tables", "a.csv", "--out", "s", "--dialect", "spark"],
            ("option-foreign-to-source", {"source": "tables", "option": "dialect"}),
        ),
    ],
)
def test_options_that_do_not_go_together(command, broken):
    check(refusal(["import", *command]), *broken)
