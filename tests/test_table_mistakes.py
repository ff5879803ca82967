"""Tables as people have them: read, or one line that says what to do, with the value and the line.

Every mistake is a change to one sound pair of tables. `READ` are those that are read, with the
file, names and numbers that are said of it; `REFUSED` those that are not, with the rule and all of
its facts, files without their folder; that the changed table is named is asked of all.
"""

import csv
import gzip
import io
import warnings
from contextlib import suppress
from pathlib import Path

import openpyxl
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_tables import read_tables
from refusals import check, refusal, refused

from bayesrep import OptionError, PredictionError, StudyError, read_frames
from bayesrep.answers import count_answers
from bayesrep.cli import main
from bayesrep.errors import Listing, TableWarning
from bayesrep.files import delimited
from bayesrep.files.tables import read_only, scan
from bayesrep.sources.assignments import read_assignments
from bayesrep.sources.collection_tables import read_candidates, read_judgements
from bayesrep.sources.evals import score_tables
from bayesrep.sources.evals.count_source import from_table
from bayesrep.sources.evals.solved import add_solved
from bayesrep.sources.raw_answers import decide, read_raw
from bayesrep.sources.selection_table import read_selection
from bayesrep.sources.table_files import read_answers
from bayesrep.sources.tables import check_tables
from bayesrep.sources.tables.recognise import ALONE_ADVICE
from bayesrep.studies.attempts import read_attempts
from bayesrep.studies.reading import check_study
from bayesrep.vision.classes import read_classes

COUNTS = [
    ["dataset", "image", "selected", "shown"],
    *[["v1", f"v1_{i}.jpg", "7", "9"] for i in range(3)],
    *[["v2", f"v2_{i}.jpg", "8", "10"] for i in range(3)],
]
PREDICTIONS = [
    ["dataset", "image", "classifier", "correct"],
    *[
        [row[0], row[1], name, str((place + len(name)) % 2)]
        for name in ("resnet50", "vit")
        for place, row in enumerate(COUNTS[1:])
    ],
]
ROLES = {"reference": "v1", "replication": "v2"}


def text(rows, separator=",", end="\n"):
    return end.join(separator.join(row) for row in rows) + end


def header(rows, *names):
    return [list(names), *rows[1:]]


def put(rows, line, column, value):
    """The table with one value changed; lines are those of an editor."""
    return [
        [value if (i, rows[0][j]) == (line - 1, column) else cell for j, cell in enumerate(row)]
        for i, row in enumerate(rows)
    ]


def mapped(rows, column, change):
    place = rows[0].index(column)
    return [rows[0], *([*row[:place], change(row[place]), *row[place + 1 :]] for row in rows[1:])]


def without(rows, drop):
    return [rows[0], *(row for row in rows[1:] if not drop(row))]


def files(tmp_path, tables):
    paths = []
    for name, contents in tables.items():
        path = tmp_path / name
        if isinstance(contents, list):
            contents = text(contents)
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        paths.append(path)
    return paths


def sound(**changed):
    """The sound tables, with some replaced; c_tsv is counts.tsv in the place of counts.csv."""
    kinds = {"c": "counts", "p": "predictions"}
    plain = {"c": {"counts.csv": COUNTS}, "p": {"predictions.csv": PREDICTIONS}}
    for key, contents in changed.items():
        kind, _, ending = key.partition("_")
        plain[kind] = {f"{kinds[kind]}.{ending.replace('_', '.') or 'csv'}": contents}
    return {**plain["c"], **plain["p"]}


def workbook(*tables):
    from io import BytesIO

    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(tables):
        sheet = book.create_sheet(f"sheet {number}")
        for row in rows:
            sheet.append([int(cell) if cell.isdecimal() else cell for cell in row])
    stream = BytesIO()
    book.save(stream)
    return stream.getvalue()


EXCEL = text(COUNTS, ";", "\r\n")
LATIN = mapped(COUNTS, "image", lambda name: name.replace("v", "ä"))
LATIN_P = mapped(PREDICTIONS, "image", lambda name: name.replace("v", "ä"))


def bare(name):
    return name.removesuffix(".jpg")


def misspelt(name):
    return name.replace("50", "5O")


def matched(how, name, counted):
    """What is said where three images are found under other names."""
    return "predictions.csv", "3 images", "'v1'", "counts.csv", how, name, counted


READ = {
    "mark of UTF-8": (sound(c="\ufeff" + text(COUNTS)), None),
    "lines end as on Windows": (sound(c=text(COUNTS, end="\r\n")), None),
    "semicolons": (sound(c=EXCEL), None),
    "semicolons and their announcement": (sound(c="sep=;\r\n" + EXCEL), None),
    "tabs": (sound(c=text(COUNTS, "\t")), None),
    "bars": (sound(c=text(COUNTS, "|")), None),
    ".tsv": (sound(c_tsv=text(COUNTS, "\t")), None),
    ".txt": (sound(c_txt=text(COUNTS, "\t")), None),
    ".csv.gz": (sound(p_csv_gz=gzip.compress(text(PREDICTIONS).encode())), None),
    ".xlsx": (sound(c_xlsx=workbook(COUNTS)), None),
    ".xlsx, both tables as sheets": ({"study.xlsx": workbook(COUNTS, PREDICTIONS)}, None),
    "UTF-16, as Excel's Unicode text": (sound(c_txt=text(COUNTS, "\t").encode("utf-16")), None),
    "capitals in the header": (
        sound(c=header(COUNTS, "Dataset", "IMAGE", "Selected", "Shown")),
        None,
    ),
    "blanks in the header": (
        sound(c=header(COUNTS, "data set", " image", "selected ", "shown")),
        None,
    ),
    "blanks around names": (
        sound(p=mapped(PREDICTIONS, "classifier", lambda name: f"{name} ")),
        None,
    ),
    "empty columns and rows at the end": (
        sound(c=text([[*row, "", ""] for row in COUNTS]) + ",,,,,\n" * 3),
        None,
    ),
    "Latin-1": (
        {"counts.csv": text(LATIN).encode("latin-1"), "predictions.csv": text(LATIN_P)},
        ("counts.csv", "Windows-1252", "line 2", "'v1,ä1_0.jpg,7,9'"),
    ),
    "names without endings": (
        sound(p=mapped(PREDICTIONS, "image", bare)),
        matched("without endings", "'v1_0'", "'v1_0.jpg'"),
    ),
    "names in folders": (
        sound(p=mapped(PREDICTIONS, "image", lambda name: f"images/val/{name}")),
        matched("without folders", "'images/val/v1_0.jpg'", "'v1_0.jpg'"),
    ),
    "names in folders of Windows, counts without endings": (
        sound(
            c=mapped(COUNTS, "image", bare),
            p=mapped(PREDICTIONS, "image", lambda name: f"images\\{name}"),
        ),
        matched("without folders and endings", "'images\\\\v1_0.jpg'", "'v1_0'"),
    ),
    "names in capitals": (
        sound(p=mapped(PREDICTIONS, "image", str.upper)),
        matched("whatever their case", "'V1_0.JPG'", "'v1_0.jpg'"),
    ),
}


@pytest.mark.parametrize("name", READ)
def test_tables_as_people_have_them_are_read(tmp_path, name):
    tables, parts = READ[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        study = read_tables(files(tmp_path, tables), **ROLES)
    assert study.classifiers == ("resnet50", "vit")
    assert study.reference.selected.tolist() == [7, 7, 7]
    assert study.replication.shown.tolist() == [10, 10, 10]
    assert study.reference.correct.tolist() == [[False, True], [True, False], [False, True]]
    assert all(issubclass(each.category, TableWarning) for each in caught)
    assert bool(caught) == (parts is not None)
    for line in [str(each.message) for each in caught[:1]]:
        assert line.startswith(f"{tmp_path}/{parts[0]}: ")
        places = [line.find(part) for part in parts]
        assert -1 not in places
        assert places == sorted(places)


COUNT_COLUMNS, ANSWER_COLUMNS = "dataset,image,selected,shown", "dataset,image,classifier,correct"
HEADERS = [  # usual ones, with what is read as ours
    ("split,file,k,n", COUNT_COLUMNS),
    ("dataset,filename,yes,total", COUNT_COLUMNS),
    ("Version,image id,votes,total", COUNT_COLUMNS),
    ("set,path,yes,votes", COUNT_COLUMNS),
    ("dataset,image,n_selected,annotators", COUNT_COLUMNS),
    ("dataset,Item ID,K,N", COUNT_COLUMNS),
    ("split,file,model,acc", ANSWER_COLUMNS),
    ("dataset,image,network,right", ANSWER_COLUMNS),
    ("dataset,img,Model Name,is_correct", ANSWER_COLUMNS),
    ("version,file-name,arch,accuracy", ANSWER_COLUMNS),
]


@pytest.mark.parametrize(("heading", "ours"), HEADERS)
def test_usual_names_of_columns_are_read_and_told(heading, ours, tmp_path):
    kind, rows = ("c", COUNTS) if ours == COUNT_COLUMNS else ("p", PREDICTIONS)
    with pytest.warns(TableWarning) as caught:
        study = read_tables(
            files(tmp_path, sound(**{kind: header(rows, *heading.split(","))})), **ROLES
        )
    assert study == read_tables(files(tmp_path, sound()), **ROLES)
    (line,) = (str(each.message) for each in caught)
    pairs = zip(heading.split(","), ours.split(","), strict=True)
    for theirs, name in pairs:
        said = f"{theirs!r} is read as {name}" in line
        assert said == (theirs != name)


def test_of_two_columns_that_may_be_one_both_are_named(tmp_path):
    two = [[*row, row[1]] for row in header(COUNTS, "dataset", "file", "k", "shown")]
    two[0][-1] = "id"
    paths = files(tmp_path, sound(c=two))
    with refused(StudyError, "column-with-candidates", {"columns": ["file", "id"]}):
        read_tables(paths, **ROLES)
    with pytest.warns(TableWarning) as caught:
        study = read_tables(paths, **ROLES, rename={"File": "image"})
    assert "'k' is read as selected;" in str(caught[0].message)
    assert study.reference.selected.tolist() == [7, 7, 7]
    with refused(StudyError, "renamed-column-absent", {"column": "fil"}):
        read_tables(files(tmp_path, sound()), **ROLES, rename={"fil": "image"})


def test_one_file_a_data_set_is_named_before_it(tmp_path, capsys):
    tables = {
        f"{kind}{name}.csv": [row[1:] for row in rows if row[0] in ("dataset", name)]
        for kind, rows in (("c", COUNTS), ("p", PREDICTIONS))
        for name in ROLES.values()
    }
    given = [f"{path.stem[1:]}={path}" for path in files(tmp_path, tables)]
    study = read_tables(given, **ROLES)
    counted = files(tmp_path, sound())
    assert study.fingerprint() == read_tables(counted, **ROLES).fingerprint()
    assert study.provenance["files"] == [*tables]
    roles = [word for role, name in ROLES.items() for word in (f"--{role}", name)]
    assert main(["check", *given, *roles]) == 0
    assert given[0] in capsys.readouterr().out
    with refused(StudyError, "data-set-named-twice", {"dataset": "v1"}):
        read_tables([f"v1={counted[0]}", counted[1]], **ROLES)
    with refused(StudyError, "file-unreadable", {"path": "absent.csv"}):
        read_tables(["v1=absent.csv"], **ROLES)


def test_raters_in_columns_are_answers_and_lines_stay_those_of_the_file(tmp_path):
    names = ["rater_1", "rater_2", "Rater 3"]
    rows = [["dataset", "image", *names], *([*r[:2], "Y", "n", ""] for r in COUNTS[1:])]
    with pytest.warns(TableWarning, match="'rater_1', 'rater_2', 'Rater 3' are read as answers"):
        study = read_tables(files(tmp_path, sound(c=rows)), **ROLES)
    assert [*study.reference.selected, *study.reference.shown] == [1, 1, 1, 2, 2, 2]
    assert study.reference.answers is not None
    with pytest.warns(TableWarning), refused(StudyError, "flag-neither-true-nor-false") as error:
        read_tables(files(tmp_path, sound(c=put(rows, 3, "rater_2", "so so"))), **ROLES)
    assert told(error.value, tmp_path)["rows"] == "line 3 ('so so')"


NAMELESS = {
    "kind": "predictions",
    "kind_columns": "dataset, image, classifier, correct",
    "missing": ["classifier"],
    "verb": "is",
}
REFUSED = {
    "another name for a column": (
        sound(p=header(PREDICTIONS, "dataset", "image", "thing", "correct")),
        "table-kind-incomplete-or-misnamed",
        NAMELESS | {"pronoun": "it", "other_columns": "'thing'"},
    ),
    "a column misspelt": (
        sound(p=header(PREDICTIONS, "dataset", "image", "clasifier", "correct")),
        "table-columns-misnamed",
        NAMELESS | {"renames": "'clasifier' to 'classifier'"},
    ),
    "label for classifier": (
        sound(p=header(PREDICTIONS, "dataset", "image", "label", "correct")),
        "table-kind-incomplete-or-misnamed",
        NAMELESS | {"pronoun": "it", "other_columns": "'label'"},
    ),
    "classes for labels": (
        {**sound(), "images.csv": [["dataset", "image", "lable"], ["v1", "v1_0.jpg", "cat"]]},
        "table-columns-hold-texts",
        {"columns": ["lable"], "verb": "holds", "hint": "; did you mean 'label'?"},
    ),
    "no data set": (
        sound(c=[row[1:] for row in COUNTS]),
        "table-kind-incomplete",
        {
            "kind": "counts",
            "kind_columns": "dataset, image, selected, shown",
            "missing": ["dataset"],
            "verb": "is",
            "pronoun": "it, or give the file as NAME=counts.csv",
        },
    ),
    "a column twice": (
        sound(c=header(COUNTS, "dataset", "image", "shown", "shown")),
        "column-name-repeated",
        {"column": "shown", "headings": "'shown', 'shown'"},
    ),
    "decimal commas between commas": (
        sound(c=mapped(COUNTS, "selected", lambda n: f"{n},0")),
        "too-many-values-between-commas",
        {"line": 2, "values": 5, "columns": 4, "beginning": "v1,v1_0.jpg,7,0,9"},
    ),
    "names of rows by R": (
        sound(c=[COUNTS[0], *([str(n), *row] for n, row in enumerate(COUNTS[1:], 1))]),
        "too-many-values-between-commas",
        {"line": 2, "values": 5, "columns": 4} | {"beginning": "1,v1,v1_0.jpg,7,9"},
    ),
    "a comma in a name": (
        sound(c=put(COUNTS, 4, "image", "v1, a.jpg")),
        "too-many-values-between-commas",
        {"line": 4, "values": 5, "columns": 4, "beginning": "v1,v1, a.jpg,7,9"},
    ),
    "100 and 0": (
        sound(p=put(put(PREDICTIONS, 3, "correct", "100"), 13, "correct", "100")),
        "flag-written-as-hundred",
        {"column": "correct", "rows": "lines 3 ('100'), 13 ('100')"},
    ),
    "a share for a count": (
        sound(c=mapped(COUNTS, "selected", lambda n: f"0.{n}")),
        "count-given-as-share",
        {
            "column": "selected",
            "rows": "lines 2 ('0.7'), 3 ('0.7'), 4 ('0.7'), 5 ('0.8'), 6 ('0.8'), ... (6 lines)",
        },
    ),
    "selected exceeds shown": (
        sound(c=put(COUNTS, 3, "selected", "12")),
        "selected-exceeds-shown-in-rows",
        {"images": ["v1_1.jpg"], "rows": "line 3 ('12 of 9')"},
    ),
    "shown is 0": (
        sound(c=put(put(COUNTS, 3, "selected", "0"), 3, "shown", "0")),
        "image-shown-to-nobody",
        {"images": ["v1_1.jpg"], "rows": "line 3"},
    ),
    "a negative count": (
        sound(c=put(COUNTS, 7, "selected", "-1")),
        "negative-count-in-table",
        {"column": "selected", "images": ["v2_2.jpg"], "rows": "line 7 (-1)"},
    ),
    "a missing value": (
        sound(c=put(COUNTS, 5, "image", "")),
        "value-missing-in-rows",
        {"column": "image", "rows": "line 5"},
    ),
    "an image twice": (
        sound(c=[*COUNTS, COUNTS[1]]),
        "table-rows-repeated",
        {"repeated": ["v1_0.jpg"], "dataset": "v1", "lines": " (lines 2, 8)"},
    ),
    "an answer twice": (
        sound(p=[*PREDICTIONS, PREDICTIONS[1]]),
        "prediction-repeated",
        {
            "classifier": "resnet50",
            "images": ["v1_0.jpg"],
            "dataset": "v1",
            "lines": " (lines 2, 14)",
        },
    ),
    "an answer in two files": (
        {**sound(), "more.csv": [PREDICTIONS[0], PREDICTIONS[2]]},
        "prediction-repeated",
        {
            "where": "predictions.csv, more.csv",
            "classifier": PREDICTIONS[2][2],
            "images": [PREDICTIONS[2][1]],
            "dataset": "v1",
            "lines": " in predictions.csv (line 3), in more.csv (line 2)",
        },
    ),
    "an answer missing": (
        sound(p=without(PREDICTIONS, lambda row: row[1] == "v2_1.jpg" and row[2] == "vit")),
        "prediction-missing",
        {"classifier": "vit", "images": ["v2_1.jpg"], "dataset": "v2"},
    ),
    "a classifier misspelt": (
        sound(
            p=PREDICTIONS[:4] + mapped(PREDICTIONS, "classifier", misspelt)[4:7] + PREDICTIONS[7:]
        ),
        "classifier-misnamed-on-one-data-set",
        {
            "classifiers": ["resnet5O"],
            "other_dataset": "v2",
            "dataset": "v1",
            "similar_classifier": "resnet50",
        },
    ),
    "an image misspelt": (
        sound(p=mapped(PREDICTIONS, "image", lambda name: name.replace("v1_0", "v1_O"))),
        "predictions-without-counts",
        {
            "counts_where": "counts.csv",
            "images": ["v1_O.jpg"],
            "dataset": "v1",
            "lines": " (lines 2, 8)",
            "hint": "; did you mean 'v1_0.jpg'?",
        },
    ),
    "names without endings, and one more": (
        sound(p=[*mapped(PREDICTIONS, "image", bare), ["v1", "x", "vit", "1"]]),
        "image-names-partly-matched",
        {
            "dataset": "v1",
            "counts_where": "counts.csv",
            "image": "v1_0",
            "counted_image": "v1_0.jpg",
            "matching": "without endings",
            "images": ["x"],
        },
    ),
    "the replication is missing from the predictions": (
        sound(p=without(PREDICTIONS, lambda row: row[0] == "v2")),
        "data-set-lacks-kind",
        {"kind": "predictions", "dataset": "v2", "data_sets": "'v1'"},
    ),
    "the replication is missing from all tables": (
        sound(
            c=without(COUNTS, lambda row: row[0] == "v2"),
            p=without(PREDICTIONS, lambda row: row[0] == "v2"),
        ),
        "only-one-data-set",
        {"dataset": "v1", "data_sets": ["v2"], "alone": ALONE_ADVICE},
    ),
    "a third data set": (
        sound(c=[*COUNTS, ["V2", "z.jpg", "1", "2"]]),
        "rows-of-other-data-sets",
        {"data_sets": ["V2"], "study_data_sets": "'v1' and 'v2'", "hint": "; did you mean 'v2'?"},
    ),
    "totals, a column a data set": (
        {"boards.csv": [["model", "v1", "v2"], ["vit", "81.0", "70%"], ["b", "79", "66.5"]]},
        "table-of-totals",
        {"columns": ["v1", "v2"]},
    ),
    "totals, a row a data set": (
        {"b.csv": [["Model", "dataset", "top1"], ["vit", "v1", "0.81"], ["vit", "v2", "0.7"]]},
        "table-of-totals",
        {"columns": ["top1"]},
    ),
    "one leaderboard": (
        {"board.csv": [["model", "acc"], ["vit", "0.81"], ["b", "0.79"]]},
        "leaderboard-of-one-data-set",
        {"columns": ["acc"], "alone": ALONE_ADVICE},
    ),
    "one leaderboard of scores": (
        {"board.csv": [["model", "score"], ["vit", "0.81"], ["b", "0.79"]]},
        "leaderboard-of-one-data-set",
        {"columns": ["score"], "alone": ALONE_ADVICE},
    ),
    "an empty file": (sound(c=""), "table-file-empty", {}),
    "a header alone": (sound(c=COUNTS[:1]), "table-without-rows", {}),
    "an older workbook": (
        sound(c_xls=b"\xd0\xcf\x11\xe0"),
        "table-file-type-unknown",
        {"path": "counts.xls", "choices": ".csv, .tsv, .txt, .xlsx, .parquet"},
    ),
    "no text": (
        sound(c=b"PK\x03\x04\x00\x00\x08"),
        "table-text-holds-zeros",
        {},
    ),
    "no encoding at all": (
        sound(c=text(COUNTS).encode() + b"v1,\x81\x9d.jpg,1,2\n"),
        "text-encoding-unknown",
        {"line": 8},
    ),
    "a bomb": (
        sound(c_csv_gz=gzip.compress(b"a,b\n" + b"1,2\n" * 2**25)),
        "compressed-text-too-large",
        {"file": "counts.csv.gz", "most_bytes": 67108864, "ratio": 50},
    ),
    "cut off while it was compressed": (
        sound(c_csv_gz=gzip.compress(text(COUNTS).encode())[:-9]),
        "gzip-file-damaged",
        {
            "file": "counts.csv.gz",
            "reason": "Compressed file ended before the end-of-stream marker was reached",
        },
    ),
}


ONE_CELL = [  # of the sound tables, with semicolons, and the rule that it breaks
    ("p", 3, "correct", "80%", "flag-given-as-share"),
    ("p", 3, "correct", "0.8", "flag-given-as-share"),
    ("p", 3, "correct", "right", "flag-neither-true-nor-false"),
    ("c", 2, "shown", "1,000", "count-with-thousands-separated"),
    # Or three decimals: nothing in a file says so.
    ("c", 2, "shown", "1.000", "count-with-thousands-separated"),
]
REFUSED |= {
    f"{column} {value}": (
        sound(**{kind: text(put({"c": COUNTS, "p": PREDICTIONS}[kind], line, column, value), ";")}),
        rule,
        {"column": column, "rows": f"line {line} ({value!r})"},
    )
    for kind, line, column, value, rule in ONE_CELL
}


@pytest.mark.parametrize("name", REFUSED)
def test_one_line_says_what_to_do(tmp_path, name):
    tables, rule, facts = REFUSED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        with refused(StudyError, rule) as error:
            read_tables(files(tmp_path, tables), **ROLES)
    where = ", ".join(file for file, rows in tables.items() if rows not in (COUNTS, PREDICTIONS))
    named = {} if {"path", "file"} & facts.keys() else {"where": where}
    assert told(error.value, tmp_path) == named | facts
    assert ("(1 more: " in str(error.value)) == (name in TWO_LINES)
    assert ("row.names" in str(error.value)) == (name == "names of rows by R")


@pytest.mark.parametrize("door", ["check", "run", "import tables", "read_frames", "folder"])
def test_percentages_end_every_way_into_a_study(tmp_path, capsys, monkeypatch, door):
    cells = [(name, f"{k}.jpg", f"{k % 10}0") for name in ("v1", "v2") for k in range(99)]
    counts = [COUNTS[0], *([*cell, "100"] for cell in cells)]
    answers = [PREDICTIONS[0], *([*cell[:2], "vit", "1"] for cell in cells)]
    paths = files(tmp_path, sound(c=counts, p=answers))
    roles = [word for role, name in ROLES.items() for word in (f"--{role}", name)]
    if door == "check":
        assert main([door, *map(str, paths), *roles]) == 1
        assert capsys.readouterr().out.count("are these percentages") == 2
    elif door == "read_frames":
        with refused(StudyError, "counts-of-few-values"):
            read_frames(**{path.stem: pl.read_csv(path) for path in paths}, **ROLES)
    elif door == "folder":  # of an earlier release
        with monkeypatch.context() as patched:
            patched.setattr("bayesrep.studies.validation.value_violations", lambda *_: iter(()))
            read_tables(paths, **ROLES).write(tmp_path / "study")
        assert {each.rule for each in check_study(tmp_path / "study")} == {"counts-of-few-values"}
    else:
        broken = refusal([*door.split(), *paths, *roles, "--out", tmp_path / "out"])
        check(broken, "counts-of-few-values", {"where": f"{paths[0]}, data set 'v1'"})


TWO_LINES = ("a classifier misspelt", "an image misspelt")


def told(broken, folder):
    """The facts of a violation, files without their folder; those that say nothing left out."""
    facts = {}
    for name, value in broken.facts.items():
        listed = list(value.names) if isinstance(value, Listing) else value
        plain = listed.replace(f"{folder}/", "") if isinstance(listed, str) else listed
        facts |= {name: plain} if plain != "" else {}
    return facts


def test_roles_that_are_not_given_or_misspelt(tmp_path):
    paths = files(tmp_path, sound())
    both = "counts.csv, predictions.csv"
    with refused(StudyError, "data-set-roles-unsaid") as error:
        read_tables(paths)
    assert told(error.value, tmp_path) == {"where": both, "dataset": "v1", "other_dataset": "v2"}
    with refused(StudyError, "data-set-of-role-absent") as error:
        read_tables(paths, reference="v1", replication="V2")
    assert told(error.value, tmp_path) == {
        "where": both,
        "dataset": "V2",
        "role": "replication",
        "hint": "; did you mean 'v2'?",
        "data_sets": ["v1", "v2"],
        "option": "--replication NAME",
    }


def test_all_problems_are_found_at_once(tmp_path):
    """Five independent mistakes, five lines; what follows from them is not told again."""
    counts = put(put(COUNTS, 3, "selected", "12"), 6, "shown", "0")
    counts = [*put(counts, 6, "selected", "0"), counts[1]]
    wrong = put(PREDICTIONS, 3, "correct", "maybe")
    wrong = [row for row in wrong if row[1:3] != ["v2_1.jpg", "vit"]]
    study, problems = check_tables(files(tmp_path, sound(c=counts, p=wrong)), **ROLES)
    assert study is None
    expected = [
        ("image-shown-to-nobody", {"images": ["v2_1.jpg"], "rows": "line 6"}),
        ("selected-exceeds-shown-in-rows", {"images": ["v1_1.jpg"], "rows": "line 3 ('12 of 9')"}),
        ("flag-neither-true-nor-false", {"column": "correct", "rows": "line 3 ('maybe')"}),
        ("table-rows-repeated", {"repeated": ["v1_0.jpg"], "lines": " (lines 2, 8)"}),
        ("prediction-missing", {"classifier": "vit", "images": ["v2_1.jpg"], "dataset": "v2"}),
    ]
    for problem, broken in zip(problems, expected, strict=True):
        check(problem, *broken)
    places = [Path(problem.facts["where"]).stem for problem in problems]
    assert places == ["counts", "counts", "predictions", "counts", "predictions"]
    study, problems = check_tables(files(tmp_path, sound()), **ROLES)
    assert problems == []
    assert study.classifiers == ("resnet50", "vit")


def test_images_that_other_classifiers_lack_are_named_too(tmp_path):
    lacking = {("resnet50", "v2_0.jpg"), ("vit", "v2_1.jpg")}
    rows = without(PREDICTIONS, lambda row: (row[2], row[1]) in lacking)
    _, problems = check_tables(files(tmp_path, sound(p=rows)), **ROLES)
    assert {(each.facts["classifier"], *each.offenders) for each in problems} == lacking


@pytest.mark.parametrize("nameless", [False, True])
def test_a_cell_that_cannot_be_read_hides_nothing(tmp_path, nameless):
    """Two of them in one column, by two rules; a row without a name ends what needs names."""
    counts = put(put(put(COUNTS, 2, "selected", "x"), 3, "selected", "12"), 4, "shown", "0")
    counts = put(put(put(counts, 4, "selected", "0"), 5, "selected", "1e30"), 6, "selected", "-1")
    counts = put(counts, 7, "image", "") if nameless else [*counts, counts[6]]
    wrong = put(put(PREDICTIONS, 3, "correct", "maybe"), 4, "correct", "")
    _, problems = check_tables(files(tmp_path, sound(c=counts, p=wrong)), **ROLES)
    expected = [
        *([("value-missing-in-rows", {"column": "image", "rows": "line 7"})] if nameless else []),
        ("count-not-whole-in-rows", {"column": "selected", "rows": "line 2 ('x')"}),
        ("count-too-large-in-rows", {"column": "selected", "rows": "line 5 ('1e30')"}),
        ("negative-count-in-table", {"images": ["v2_1.jpg"], "rows": "line 6 (-1)"}),
        ("image-shown-to-nobody", {"images": ["v1_2.jpg"], "rows": "line 4"}),
        ("selected-exceeds-shown-in-rows", {"images": ["v1_1.jpg"], "rows": "line 3 ('12 of 9')"}),
        ("flag-neither-true-nor-false", {"column": "correct", "rows": "line 3 ('maybe')"}),
        ("flag-missing-in-rows", {"column": "correct", "rows": "line 4"}),
    ]
    if not nameless:
        expected.append(("table-rows-repeated", {"repeated": ["v2_2.jpg"]}))
    for problem, broken in zip(problems, expected, strict=True):
        check(problem, *broken)


def test_columns_that_mean_nothing_are_named(tmp_path):
    noted = [[*row, word] for row, word in zip(PREDICTIONS, ["labl_1"] + ["cat"] * 12, strict=True)]
    with pytest.warns(TableWarning) as caught:
        study = read_tables(files(tmp_path, sound(p=noted)), **ROLES)
    assert study.classifiers == ("resnet50", "vit")
    (line,) = (str(each.message) for each in caught)
    assert line.startswith(f"{tmp_path}/predictions.csv: column 'labl_1' ")
    assert line.endswith("did you mean 'label_1'?")


def test_groups_that_would_be_a_classifier_are_named(tmp_path):
    """Without labels beside them; where no other table names classifiers, these are some."""
    indoor = [["dataset", "image", "indoor"], *([*r[:2], "yes"] for r in COUNTS[1:])]
    with pytest.warns(TableWarning) as caught:
        study = read_tables(files(tmp_path, sound() | {"images.csv": indoor}), **ROLES)
    assert study.classifiers == ("resnet50", "vit", "indoor")
    (line,) = (str(each.message) for each in caught)
    assert line.startswith(f"{tmp_path}/images.csv: ")
    assert "'indoor'" in line
    read_tables(files(tmp_path, {"c.csv": COUNTS, "images.csv": indoor}), **ROLES)  # no word


def test_labels_are_matched_by_name_too(tmp_path):
    images = [["dataset", "image", "label"], *([r[0], r[1][:-4], "cat"] for r in COUNTS[1:])]
    with pytest.warns(TableWarning, match="without endings"):
        study = read_tables(files(tmp_path, sound() | {"images.csv": images}), **ROLES)
    assert study.reference.labels.tolist() == ["cat"] * 3


def test_names_that_would_become_one_are_not_matched(tmp_path):
    """a.jpg and b/a.jpg are two images: nothing is guessed."""
    counts = put(COUNTS, 3, "image", "b/v1_0.jpg")
    predictions = mapped(PREDICTIONS, "image", lambda name: f"c/{name}")
    with pytest.warns(TableWarning, match="'v2' are matched"):
        _, problems = check_tables(files(tmp_path, sound(c=counts, p=predictions)), **ROLES)
    told = {"images": [f"c/v1_{i}.jpg" for i in range(3)], "dataset": "v1"}
    check(problems[0], "predictions-without-counts", told)


# One rule for numbers, yes and no, and empty rows: spellings by readers.


def _score(file, threshold=None):
    records = score_tables.read(file, None, {}, lambda _: None).records
    return add_solved(records, threshold, "s")[0]["solved"][0]


def _study(file):
    return read_tables([file], **ROLES).reference


ANSWERS, OTHERS = "dataset image worker selected", "image worker answer"
BATCH = "HITId WorkerId Input.image Answer.a WorkTimeInSeconds"
LONG = "dataset image model correct selected shown"
TASKS = "WorkerId Input.task Answer.selected Answer.main"
NUMBERS = {  # columns, a row (/ and another) with ? where the number stands, how it is read
    "tables": (LONG, "v1 a m 1 ? 1/v2 a m 1 ? 1", lambda file: _study(file).selected[0]),
    "candidates": (
        "dataset image selected shown",
        "v a ? 1",
        lambda file: read_candidates(file, ["v"])[0]["selected"][0],
    ),
    "attempts": (
        "item model solved attempts",
        "a m ? 1",
        lambda file: read_attempts(file)[0].solved[0],
    ),
    "scores": ("item model score", "a m ?", lambda file: _score(file, 1.0)),
    "counts of items": (
        "dataset item selected shown",
        "v a ? 1",
        lambda file: from_table(file, "v", pl.Series(["a"])).selected[0],
    ),
    "selection": ("selected shown probability", "1 1 ?", lambda file: read_selection(file)[0][2]),
    "classes": ("index name", "0 a/? b", lambda file: read_classes(file).names.index("b")),
    "answers": (f"{ANSWERS} seconds", "v a w 1 ?", lambda file: read_answers(file)["seconds"][0]),
    "answers of others": (
        f"{OTHERS} seconds",
        "a w 1 ?",
        lambda file: read_raw("table", file)["seconds"][0],
    ),
    "batch results": (BATCH, "h w a 1 ?", lambda file: read_raw("mturk", file)["seconds"][0]),
    "tasks": (TASKS, "w t 1 ?", lambda file: read_assignments([file])["main"][0]),
}
MAY_BE_MISSING = ("answers of others", "batch results", "tasks")
FLAGS = {
    "tables": (LONG, "v1 a m ? 1 1/v2 a m ? 1 1", lambda file: _study(file).correct[0, 0]),
    "answers": (ANSWERS, "v a w ?", lambda file: read_answers(file)["selected"][0]),
    "count": (ANSWERS, "v a w ?", lambda file: count_answers([file]).counts["selected"][0]),
    "answers of others": (
        OTHERS,
        "a w ?",
        lambda file: decide(read_raw("table", file))["selected"][0],
    ),
    "attempts": ("item model solved", "a m ?", lambda file: read_attempts(file)[0].solved[0]),
    "scores": ("item model score", "a m ?", _score),
    "judgements": (
        "dataset image label right",
        "v a l ?",
        lambda file: read_judgements([file])[0]["right"][0],
    ),
}


def read_cell(tmp_path, columns, rows, read, cell):
    """A value as a reader has it, from a table with semicolons, an empty line and an empty row."""
    lines = [row.replace(" ", ";").replace("?", cell) for row in (columns, *rows.split("/"))]
    (tmp_path / "t.csv").write_text("\n\n;\n".join(lines) + "\n\n", encoding="utf-8")
    return read(tmp_path / "t.csv")


@pytest.mark.parametrize("reader", NUMBERS)
def test_numbers_are_read_by_one_rule(reader, tmp_path):
    for cell in ("1", "1,0", "1.0", " 1 ", "\u00a01\u200b", "+1", "1e0", "01", "1."):
        assert read_cell(tmp_path, *NUMBERS[reader], cell) == 1, cell
    bad = ["1,000", "1'000", "1 000", "1\u00a0000", "1_0", "\uff11", "1 %", "1,0,0", "0x1", "one"]
    missing = ["", "NA", "n/a", "#N/A", "NaN", "null", "None", "<NA>"]
    for cell in bad if reader == "scores" else [*bad, *missing]:
        if reader in MAY_BE_MISSING and cell in missing:
            assert read_cell(tmp_path, *NUMBERS[reader], cell) is None, cell
        else:
            with pytest.raises((StudyError, PredictionError)):
                read_cell(tmp_path, *NUMBERS[reader], cell)


@pytest.mark.parametrize("reader", FLAGS)
def test_yes_and_no_are_read_by_one_rule(reader, tmp_path):
    words = {"1": "0", "1,0": "0.0", "y": "n", "T": "F", " Yes": "NO ", "true": "False"}
    for right, cells in ((True, words), (False, words.values())):
        for cell in cells:
            assert read_cell(tmp_path, *FLAGS[reader], cell) == right, cell
    for cell in ("2", "-1", "1,000", "maybe", "on"):
        with pytest.raises((StudyError, OptionError)):
            read_cell(tmp_path, *FLAGS[reader], cell)


# Quotes: as RFC 4180 has them, or the line.


@given(st.data())
def test_rows_with_quotes_are_those_of_the_csv_module_or_refused(tmp_path_factory, data):
    cells = st.sampled_from(
        ["a", '5" b', '"c, d"', '"e ""f"""', '"', '"g', 'h"', '""', '"i\nj"', ""]
    )
    plain = st.sampled_from(["k", "1"])
    width = data.draw(st.integers(2, 4))
    row = st.lists(st.one_of(plain, plain, plain, cells), min_size=width, max_size=width)
    rows = data.draw(st.lists(row, min_size=1, max_size=12))
    text = "\r\n".join(map(",".join, [[f"c{at}" for at in range(width)], *rows]))
    file = tmp_path_factory.mktemp("quotes") / "t.csv"
    file.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch, suppress(StudyError):
        patch.setattr(delimited, "_CHUNK_BYTES", 16)
        frames = [scan(file).collect(), read_only(file).frame]
        expected = csv.reader(io.StringIO(text, newline=""), strict=True)
        held = [
            [*(cell.strip() or None for cell in row), *[None] * width][:width] for row in expected
        ]
        for frame in frames:
            assert [*map(list, frame.rows())] == [row for row in held[1:] if any(row)]


def test_a_row_may_hold_two_cells_of_several_lines(tmp_path):
    (tmp_path / "a.csv").write_text('a,b,c,d\n"1\n1",2,3,"4\n4"\n1,2,3,4\n')
    assert read_only(tmp_path / "a.csv").frame.rows() == [("1\n1", "2", "3", "4\n4"), (*"1234",)]


@pytest.mark.parametrize("read", [scan, read_only])
def test_no_row_is_lost_between_stray_quotes(read, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_CHUNK_BYTES", 1000)
    for first, second, line in (
        ('looks 5" wide', 'and 7" tall', None),
        ('"looks 5"" wide"', 'and 7" tall', None),
        ('"one\nline"', '"and, ""another"""', None),
        ('"wide', 'tall"', 102),
        ('"wide', "tall", 102),
        ("wide", '"7" tall', 902),
    ):
        rows = [f"v,{row},{row % 2},fine" for row in range(2000)]
        rows[100], rows[900] = f"v,100,0,{first}", f"v,900,0,{second}"
        (tmp_path / "a.csv").write_text("\n".join(["dataset,image,selected,remark", *rows]))
        if line is None:
            table = read(tmp_path / "a.csv")
            images = (table if read is scan else table.frame.lazy()).collect()["image"]
            assert images.to_list() == [*map(str, range(2000))]
        else:
            with refused(StudyError, "stray-quote", {"line": line}):
                read(tmp_path / "a.csv")
