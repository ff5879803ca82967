"""Counting answers some rows at a time: the counts, the error over workers, and bad tables."""

import gzip
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import check, refusal, refused

import bayesrep
from bayesrep import Study, StudyError, WorkerAnswers
from bayesrep.answers import count_answers, counting, describe_crowd
from bayesrep.cli import main
from bayesrep.errors import TableWarning


def _answers(seed, images=200, workers=12, annotators=5, datasets=("a", "b")):
    """Answers of workers who differ, one of each about an image, some images with one alone."""
    rng = np.random.default_rng(seed)
    leniency = rng.normal(0, 1, workers)
    rows = []
    for dataset in datasets:
        for image in range(images):
            asked = rng.permutation(workers)[: 1 if image % 20 == 0 else annotators]
            yes = rng.random(len(asked)) < 1 / (1 + np.exp(-rng.normal() - leniency[asked]))
            rows += [(dataset, image, int(w), bool(y)) for w, y in zip(asked, yes, strict=True)]
    table = pl.DataFrame(rows, ("dataset", "image", "worker", "selected"), orient="row")
    return table.sample(fraction=1, shuffle=True, seed=seed)


def _named(table):
    names = {name: name[0] + pl.col(name).cast(pl.String) for name in ("image", "worker")}
    return table.with_columns(**names)


@pytest.fixture
def few_rows(monkeypatch):
    monkeypatch.setattr(counting, "ROWS_IN_MEMORY", 300)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_counts_are_those_of_all_rows_at_once(tmp_path, few_rows, named, kind):
    table = _named(_answers(0)) if named else _answers(0)
    files = [tmp_path / f"{at}.{kind}" for at in (0, 1)]
    for part, file in zip((table[:700], table[700:]), files, strict=True):
        (part.write_csv if kind == "csv" else part.write_parquet)(file)
    found = count_answers(files)
    expected = table.group_by("dataset", "image").agg(
        pl.col("selected").cast(pl.Int64).sum(), shown=pl.len().cast(pl.Int64)
    )
    expected = expected.with_columns(pl.col("image").cast(pl.String)).sort("dataset", "image")
    assert found.counts.sort("dataset", "image").equals(expected)
    assert found.datasets["workers"].to_list() == [12, 12]
    assert found.datasets["answers"].sum() == len(table)


def test_the_error_over_workers_is_that_of_the_crowds_description(tmp_path, monkeypatch):
    """But for workers who meet: that correction is taken out of both."""
    monkeypatch.setattr("bayesrep.studies.crowds.overlap_correction", lambda _: 1.0)
    table = _answers(1)
    table.write_parquet(tmp_path / "a.parquet")
    found = count_answers([tmp_path / "a.parquet"]).datasets
    sides = {}
    for role, name in (("reference", "a"), ("replication", "b")):
        of = table.filter(pl.col("dataset") == name)
        # Names of their own: one crowd's covariance is no matter of single data sets.
        worker = name + of["worker"].cast(pl.String)
        answers = WorkerAnswers.of(of["image"].to_numpy(), worker.to_numpy(), of["selected"])
        selected, shown = answers.counts(200)
        right = np.ones((200, 1), dtype=bool)
        sides[role] = {"selected": selected, "shown": shown, "correct": right, "answers": answers}
    described = describe_crowd(Study.from_arrays(**sides, classifiers=["c"])).datasets
    for column in ("error_images", "error_workers", "selection_frequency"):
        assert found[column].to_numpy() == pytest.approx(described[column].to_numpy(), rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_numbers_and_names_have_the_same_sums(tmp_path_factory, seed, annotators):
    folder = tmp_path_factory.mktemp("answers")
    table = _answers(seed, images=30, annotators=annotators, datasets=("a",))
    table.write_parquet(folder / "n.parquet")
    _named(table).write_parquet(folder / "t.parquet")
    numbers, names = (count_answers([folder / f"{kind}.parquet"]) for kind in "nt")
    for column in numbers.datasets.columns[1:]:
        assert numbers.datasets[column].to_numpy() == pytest.approx(
            names.datasets[column].to_numpy(), rel=1e-9, abs=1e-12, nan_ok=True
        )


@pytest.mark.parametrize(
    ("text", "rule", "facts"),
    [
        ("worker,selected", "table-without-rows", {}),
        ("worker a,1,w", "answer-table-lacks-columns", {"columns": ["selected"]}),
        ("worker,selected a,1,w,1 a,1,v,perhaps", "answers-without-verdict", {"images": ["1"]}),
        ("worker,selected a,1,,1", "answers-without-worker", {"images": ["1"]}),
        (
            "worker,selected,label a,1,w,1,cat a,1,v,0,dog a,2,w,1,",
            "answers-about-several-labels",
            {"images": ["1"]},
        ),
        ("worker,selected a,,w,1", "answer-without-dataset-or-image", {}),
        (
            "worker,selected a,1,w,1 a,2,w,1,7,8",
            "too-many-values-between-commas",
            {"line": 3, "values": 6, "columns": 4},
        ),
    ],
)
def test_bad_tables_are_one_line(tmp_path, text, rule, facts):
    (tmp_path / "a.csv").write_text("dataset,image," + text.replace(" ", "\n") + "\n")
    out = tmp_path / "c.csv"
    found = refusal(["answers", "count", tmp_path / "a.csv", "--out", out])
    check(found, rule, facts)
    assert found.facts.get("answer_count", 1) == 1
    assert not out.exists()


def test_names_that_two_files_write_otherwise_are_told(tmp_path):
    for name in ("1", "1.0"):
        rows = f"{name},a,{name},1\n{name},b,1.23457E+12,0\n"
        (tmp_path / f"{name}.csv").write_text(f"dataset,image,worker,selected\n{rows}")
    files = sorted(tmp_path.iterdir())
    with pytest.warns(TableWarning) as told:
        count_answers(files)
    said = {str(each.message).removeprefix(", ".join(map(str, files)))[:24] for each in told}
    odd = ("datasets '1', '1.0': one", "workers '1', '1.0': one", "worker '1.23457E+12': lo")
    assert said == {f": {each}"[:24] for each in odd}


def test_columns_not_read_controls_and_numbers_cut_off_are_told(tmp_path):
    rows = [f"v,12345678901234{k}0000,w,1,positive,Rejected\n" for k in range(9)]
    text = "".join(["dataset,image,worker,selected,control,Status\n", *rows])
    (tmp_path / "a.csv").write_text(text)
    with pytest.warns(TableWarning) as told:
        count_answers([tmp_path / "a.csv"])
    for said in ("'Status' of answers is not read", "9 of 9 answers", "long numbers"):
        assert any(said in str(each.message) for each in told)


def test_a_parquet_table_that_was_cut_off_is_one_line(tmp_path):
    file = tmp_path / "a.parquet"
    _answers(2).write_parquet(file)
    file.write_bytes(file.read_bytes()[:-100])
    with refused(StudyError, "answer-table-damaged"):
        count_answers([file])


def test_no_table_and_one_that_is_not_there_are_refused(tmp_path):
    with refused(StudyError, "no-answer-tables"):
        count_answers([])
    with refused(StudyError, "file-unreadable"):
        count_answers([tmp_path / "none.csv"])
    with refused(StudyError, "table-file-type-unknown"):
        count_answers([tmp_path / "answers.docx"])


FORMS = {
    "commas": lambda text: text.encode(),
    "semicolons.csv": lambda text: text.replace(",", ";").encode(),
    "tabs.tsv": lambda text: text.replace(",", "\t").encode(),
    "capitals": lambda text: text.replace("dataset,image", " DataSet ,IMAGE").encode(),
    "a mark": lambda text: text.encode("utf-8-sig"),
    "sep": lambda text: b"sep=,\r\n\r\n" + text.replace("\n", "\r\n").encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "Macintosh": lambda text: text.replace("\n", "\r").encode(),
    "packed.csv.gz": lambda text: gzip.compress(text.encode()),
    "blanks": lambda text: text.replace("001", " 001  ").encode(),
    "an index": lambda text: "".join(
        f"{number - 1 if number else ''},{line}\n" for number, line in enumerate(text.splitlines())
    ).encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_counts_are_the_same_however_the_table_is_written(form, tmp_path):
    rows = [
        ("v1", image, f"w{worker}", worker < yes)
        for image, yes in (("001", 3), ("1", 4), ("10", 0))
        for worker in range(5)
    ]
    text = pl.DataFrame(rows, ["dataset", "image", "worker", "selected"], orient="row").write_csv()
    file = tmp_path / (form if "." in form else "answers.csv")
    file.write_bytes(FORMS[form](text))
    counts = count_answers([file]).counts
    assert counts["image"].to_list() == ["001", "1", "10"]
    assert counts["selected"].to_list() == [3, 4, 0]
    assert counts["shown"].to_list() == [5, 5, 5]


def test_answers_that_come_twice_are_refused(tmp_path, monkeypatch):
    table = _answers(3)
    one, copy, parquet = (tmp_path / name for name in ("a.csv", "copy.csv", "a.parquet"))
    table.write_csv(one)
    copy.write_bytes(one.read_bytes())
    table.write_parquet(parquet)
    for files in ([one, one], [one, copy]):
        with refused(StudyError, "same-file-twice", {"path": str(files[1]), "other": str(one)}):
            count_answers(files)
    with refused(StudyError, "answers-repeated"):
        count_answers([one, parquet])  # the same answers, in files that differ
    pl.concat([table, table.slice(4, 1)]).write_csv(one)
    again = table.row(4, named=True)
    who = {"answers": [f"{again['worker']} on {again['image']}"]}
    for hashes in (2**27, 5):  # also in several passes
        monkeypatch.setattr("bayesrep.answers.counting.HASHES_IN_MEMORY", hashes)
        with refused(StudyError, "answers-repeated", who):
            count_answers([one])


def test_a_million_workers_with_one_answer_each_add_nothing(tmp_path):
    rng = np.random.default_rng(0)
    size = 1_000_000
    table = pl.DataFrame(
        {
            "dataset": pl.Series(np.repeat("a", size)).cast(pl.Categorical),
            "image": rng.integers(0, 1000, size),
            "worker": np.arange(size),
            "selected": rng.random(size) < 0.6,
        }
    )
    table.write_parquet(tmp_path / "a.parquet")
    (row,) = count_answers([tmp_path / "a.parquet"]).datasets.rows(named=True)
    assert row["error_workers"] < 1e-9
    assert row["workers"] == size


def test_counts_go_into_a_study(tmp_path, capsys):
    _answers(3, datasets=("v1", "v2")).write_csv(tmp_path / "a.csv")
    counts, right = tmp_path / "c.csv", tmp_path / "p.csv"
    assert main(["answers", "count", str(tmp_path / "a.csv"), "--out", str(counts), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [row["dataset"] for row in facts["rows"]] == ["v1", "v2"]
    pl.read_csv(counts).select("dataset", "image", c=pl.lit(value=True)).write_csv(right)
    names = ["--reference", "v1", "--replication", "v2", "--out", str(tmp_path / "s")]
    assert main(["import", "tables", str(counts), str(right), *names]) == 0
    assert bayesrep.read_study(tmp_path / "s").reference.shown.sum() == 190 * 5 + 10
    capsys.readouterr()
    assert main(["answers", "count", str(tmp_path / "a.csv"), "--out", str(counts), "--force"]) == 0
    assert "state --people same" in capsys.readouterr().out
