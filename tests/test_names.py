"""A name is text, without blanks around it and in NFC, and the same in every reader."""

import unicodedata
import warnings
from argparse import ArgumentTypeError
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal

import openpyxl
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_tables import read_tables
from refusals import refused

from bayesrep import StudyError
from bayesrep.answers import count_answers
from bayesrep.commands.options import names
from bayesrep.errors import TableWarning, listing
from bayesrep.files.names import normalize_name, normalize_names
from bayesrep.files.tables import fold_headings, read_only, read_sheets, scan
from bayesrep.protocols.subsets import read_groups
from bayesrep.sources.raw_answers import read_raw
from bayesrep.sources.table_files import read_answers
from bayesrep.sources.tables import check_tables
from bayesrep.studies.attempts import read_attempts

NAMES = "1 01 001 1.0 1.10 1.1 1e3 1000 true True 1,000 nan +1".split()
"""Names that are one and the same, or nothing, to who takes them for numbers."""
DECOMPOSED = unicodedata.normalize("NFD", "café")


def _write(table, path):
    if path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in (table.columns, *table.iter_rows()):
            book.active.append(row)
        book.save(path)
    else:
        (table.write_parquet if path.suffix == ".parquet" else table.write_csv)(path)
    return path


def _answers(names=NAMES):
    rows = [("v1", name, worker, worker == "w1") for name in names for worker in ("w1", "w2")]
    return pl.DataFrame(rows, ["dataset", "image", "worker", "selected"], orient="row")


def _mturk(table, path):
    names = {"image": "Input.image", "worker": "WorkerId", "selected": "Answer.said"}
    _write(table.rename(names).with_columns(HITId=pl.lit("task")), path)
    return read_raw("mturk", path)["image"]


def _passk(table, path):
    names = {"selected": "solved", "worker": "attempt"}
    _write(table.rename(names).with_columns(model=pl.lit("m")), path)
    (attempts,) = read_attempts(path)
    return pl.Series(attempts.images)


READERS = {
    "answers": lambda table, path: read_answers(_write(table, path))["image"],
    "count": lambda table, path: count_answers([_write(table, path)]).counts["image"],
    "answers table": lambda table, path: read_raw(
        "table", _write(table.rename({"selected": "answer"}), path)
    )["image"],
    "mturk": _mturk,
    "passk": _passk,
}


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx", "parquet"])
@pytest.mark.parametrize("reader", READERS)
def test_what_looks_like_a_number_is_a_name_in_every_reader(reader, kind, tmp_path):
    found = READERS[reader](_answers(), tmp_path / f"a.{kind}")
    assert sorted(found.unique()) == sorted(NAMES)


@pytest.mark.parametrize("reader", READERS)
def test_blanks_and_unicode_forms_make_no_second_name(reader, tmp_path):
    images = ["\ufeff 000", "000\u00a0\u200b", "café", DECOMPOSED]
    table = _answers(["000", "café"]).with_columns(image=pl.Series(images))
    found = READERS[reader](table, tmp_path / "a.csv")
    assert sorted(found.unique()) == ["000", "café"]


@pytest.mark.parametrize("type_", [pl.Float64, pl.Float32, pl.Int16, pl.Categorical])
@pytest.mark.parametrize("reader", READERS)
def test_whole_numbers_are_names_without_decimals_in_every_reader(reader, type_, tmp_path):
    table = _answers(["7", "10"]).with_columns(pl.col("image").cast(type_))
    found = READERS[reader](table, tmp_path / "a.parquet")
    assert sorted(found.unique()) == ["10", "7"]


@pytest.mark.parametrize("reader", READERS)
def test_long_numbers_that_a_spreadsheet_shortened_are_warned_of_in_every_reader(reader, tmp_path):
    names = ["1.23457E+12", "1e+16", "9,87654E+12", "1.5E+3", "E+12"]
    with pytest.warns(TableWarning, match=r"'1.23457E\+12', '1e\+16', '9,87654E\+12'") as caught:
        READERS[reader](_answers(names), tmp_path / "a.csv")
    assert not any("'E+12'" in str(each.message) for each in caught)


def test_groups_of_images_are_names(tmp_path):
    """1.1 and 1.10 were one group twice as large, and 001, 1 another."""
    images = [f"i{number}" for number in range(8)]
    both = [(name, image) for name in ("v1", "v2") for image in images]
    keys = pl.DataFrame(both, ["dataset", "image"], orient="row")
    version, code = ["1.1", "1.10", "2.0", "2"] * 4, ["001", "010", "100", "1"] * 4
    groups = {"version": pl.Series(version), "code": pl.Series(code)}
    tables = {
        "c": keys.with_columns(selected=3, shown=5),
        "p": keys.with_columns(m=1),
        "i": keys.with_columns(label=pl.lit("x"), **groups),
    }
    files = [_write(table, tmp_path / f"{name}.csv") for name, table in tables.items()]
    study = read_tables(files, reference="v1", replication="v2")
    assert study.reference.groups["version"].tolist() == version[:8]
    assert study.reference.groups["code"].tolist() == code[:8]


def test_subsets_of_classes_are_names(tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text("class,set\n01,1.1\n1,1.10\n10,01\n", encoding="utf-8")
    groups = read_groups(path, ["01", "1", "10", "x"])
    assert groups["set"].tolist() == ["1.1", "1.10", "01", ""]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_a_name_is_the_same_alone_and_in_a_column_and_when_it_is_read_again(name):
    once = normalize_name(name)
    assert normalize_names(pl.Series([name])).item() == once
    assert normalize_name(once) == once
    assert normalize_name(unicodedata.normalize("NFD", name)) == once


@given(st.lists(st.none() | st.text("ab K\u0301é\u200b\x1c\n", max_size=4), max_size=6))
def test_a_column_of_names_is_each_of_them(names):
    wanted = [None if name is None else normalize_name(name) for name in names]
    frame = pl.DataFrame({"name": names}, schema={"name": pl.String})
    assert normalize_names(frame["name"]).to_list() == wanted
    lazy = frame.lazy().select(normalize_names(pl.col("name"))).collect()
    assert lazy["name"].to_list() == wanted
    assert frame["name"].to_list() == names


@given(st.sets(st.text("abc_ -ABC", min_size=1, max_size=6).map(str.strip), max_size=5))
def test_headings_are_found_whatever_their_case_and_blanks(headings):
    known = ("data_a", "b", "HITId")
    found = fold_headings([*headings, "hitid"], known)
    assert found[-1] == "HITId"
    assert all(new in (old, *known) for old, new in zip(headings, found, strict=False))
    assert fold_headings(["b", "B"], known) == ["b", "b"]  # which is refused


def test_two_headings_of_one_column_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("image,score,Score\na,1,0\n")
    with refused(StudyError, "column-name-repeated", {"column": "score"}):
        read_only(path, ("image", "score"))


# ---- workbooks


def _book(path, rows, *, dimension=None, formats=None):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for place, form in (formats or {}).items():
        book.active[place].number_format = form
    book.save(path)
    if dimension:
        stated = f'<dimension ref="{dimension}"'  # a size that is not the sheet's
        _replace(path, rb'<dimension ref="[^"]*"', stated.encode())
    return path


def _replace(path, pattern, new):
    """Change what a sheet says, once."""
    import re
    import zipfile

    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    changed, times = re.subn(pattern, new, held[name])
    assert times == 1
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in held.items():
            archive.writestr(each, changed if each == name else text)


@pytest.mark.parametrize("dimension", [None, "A1:D3", "A1:B2", "A1", "A1:XFD1048576"])
def test_all_rows_and_columns_of_a_workbook_are_read_whatever_size_it_states(dimension, tmp_path):
    rows = [("dataset", "image", "worker", "selected")]
    rows += [
        ("v1", f"{image:03}", f"w{worker}", worker % 2) for image in range(6) for worker in range(4)
    ]
    table = read_answers(_book(tmp_path / "a.xlsx", rows, dimension=dimension))
    assert table.rows() == [(*names, bool(said)) for *names, said in rows[1:]]


def test_a_stray_cell_far_away_costs_nothing_and_one_with_a_name_is_a_column(tmp_path):
    path = _book(tmp_path / "a.xlsx", [("image", "n"), ("a", 1), ("b", 2)])
    book = openpyxl.load_workbook(path)
    book.active["XFD1"] = "far"
    book.save(path)
    found = read_only(path).frame.to_dict(as_series=False)
    assert found == {"image": ["a", "b"], "n": ["1", "2"], "far": [None, None]}
    book.active["XFD1"], book.active["XFC3"] = None, "lost"
    book.save(path)
    with refused(StudyError, "column-without-name", {"column": "column 16383"}):
        read_only(path)


def test_the_number_of_columns_has_a_bound(tmp_path):
    path = tmp_path / "a.csv"
    for columns in (2**16 + 1, 10**6):
        path.write_text("image" + "," * (columns - 1) + "\na" + "," * (columns - 1) + "\n")
        with refused(StudyError, "table-with-many-columns", {"columns": columns}):
            read_only(path)


def test_a_formula_without_a_stored_value_is_no_empty_cell(tmp_path):
    path = _book(tmp_path / "a.xlsx", [("image", "n"), ("a", 1), ("b", "=B2+1")])
    with refused(StudyError, "workbook-formula-without-value", {"cell": "B3"}):
        read_only(path)
    for stored, read in ((b"<v>2</v>", "2"), (b"<v></v>", None)):  # the last is an empty text
        kind = b"" if read else b' t="str"'
        cell = b'<c r="B3"%s>\\1%s</c>' % (kind, stored)
        _replace(path, rb'<c r="B3"[^>]*>(<f>.*?</f>).*?</c>', cell)
        assert read_only(path).frame["n"].to_list() == ["1", read]


TITLED = {
    "My results,\nimage,n\na,1\n": 2,
    "My results\nimage,n\na,1\n": 2,
    "\nMy results;;\n;;\nimage;n;m\na;1;2\n": 4,
}


@pytest.mark.parametrize("text", TITLED)
def test_a_title_above_the_header_is_named(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with refused(StudyError, "title-above-header", {"title": "My results", "header": TITLED[text]}):
        read_only(path)


def test_a_title_in_a_workbook_is_named_and_a_column_without_a_name_is_no_title(tmp_path):
    path = _book(tmp_path / "a.xlsx", [("My results",), (), ("image", "n"), ("a", 1)])
    with refused(StudyError, "title-above-header", {"line": 1, "header": 3}):
        read_only(path)
    path = _book(tmp_path / "b.xlsx", [("image", None), ("a", 1)])
    with refused(StudyError, "column-without-name", {"column": "column 2"}):
        read_only(path)


def test_numbers_are_read_as_a_workbook_shows_them(tmp_path):
    rows = [("image", "n"), (7, 1.0), (12, 2.5), (1234, 3), (1.1, 3), (0.1234, 3)]
    shown = dict.fromkeys(("A2", "A3", "A4"), "000") | {"A5": "0.00", "A6": "0.00", "B2": "0.000"}
    frame = read_only(_book(tmp_path / "a.xlsx", rows, formats=shown)).frame
    assert frame["image"].to_list() == ["007", "012", "1234", "1.10", "0.1234"]
    assert frame["n"].to_list() == ["1", "2.5", "3", "3", "3"]


def test_hidden_sheets_are_left_out_and_said(tmp_path):
    path = _book(tmp_path / "a.xlsx", [("image", "n"), ("a", 1)])
    book = openpyxl.load_workbook(path)
    copy = book.copy_worksheet(book.active)
    copy.title, copy.sheet_state = "old", "hidden"
    book.save(path)
    with pytest.warns(TableWarning, match="hidden sheets are left out: 'old'"):
        assert read_only(path).frame.rows() == [("a", "1")]


def test_percent_of_a_workbook_is_no_count(tmp_path):
    rows = [("dataset", "image", "selected", "shown"), ("v1", "a", 1, 10), ("v1", "b", 0.8, 10)]
    path = _book(tmp_path / "a.xlsx", rows, formats={"C2": "0%", "C3": "0.0%"})
    assert read_only(path).frame["selected"].to_list() == ["100%", "80%"]


def test_whole_numbers_that_pandas_made_floats_are_names_without_decimals():
    whole, parts = pl.Series([7.0, None, 10.0]), pl.Series([7.0, 7.5, float("nan")])
    assert normalize_names(whole).to_list() == ["7", None, "10"]
    assert normalize_names(parts).to_list()[:2] == ["7.0", "7.5"]


def test_dates_among_names_are_warned_of(tmp_path):
    day = datetime(2026, 3, 1)
    path = _book(tmp_path / "a.xlsx", [("image", "time"), ("SEPT", day), (day, day), (None, day)])
    with pytest.warns(TableWarning, match=r"column 'image' .*line 3 \('2026-03-01'\)"):
        frame = read_only(path).frame
    assert frame["image"].to_list() == ["SEPT", "2026-03-01", None]
    assert frame["time"].to_list() == ["2026-03-01"] * 3  # a column of dates is one


# ---- texts


@pytest.mark.parametrize("read", [read_only, scan])
def test_damaged_texts_are_one_line(read, tmp_path):
    path = tmp_path / "a.csv"
    for data, rule in {
        b"\xff\xfe\x00\x00a\x00": "marked-text-damaged",
        b"\xff\xfea\x00,": "marked-text-damaged",
        b"a,b\n1,\x002\n": "table-text-holds-zeros",
        "\ufeffa,\0b\n1,2\n".encode("utf-16"): "table-text-holds-zeros",
        b"\n \r\n\n": "table-file-empty",
        b"sep=;": "table-file-empty",
        b'"' + b"a" * 200_000 + b'",b\n1,2\n': "table-header-unreadable",
        b'a,"b\n1,2\n': "stray-quote",
        b'a,""b\n1,2\n': "stray-quote",
        b'a,b\n"1\n1",2\n3\r,4\n': "line-end-within-row",
        b'a,b\n"1\n' + b"1" * 200_000 + b'",2\n': "table-cell-too-long",
    }.items():
        path.write_bytes(data)
        with refused(StudyError, rule):
            read(path)


def test_many_empty_columns_are_left_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{line}{',' * 16_000}\n" for line in ("image,n", "a,1", "b,2")))
    assert read_only(path).frame.rows() == [("a", "1"), ("b", "2")]


def test_a_file_in_windows_letters_is_scanned_with_a_warning(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("image,n\ncafé,1\n".encode("cp1252"))
    with pytest.warns(TableWarning, match="Windows-1252"):
        assert scan(path).collect().rows() == [("café", "1")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path.write_text("image,n\ncafé,1\n", encoding="utf-8")
        assert read_sheets(path)[0].frame.rows() == [("café", "1")]


def test_a_message_shows_the_beginning_of_a_name_that_is_a_book():
    told = listing(["x" * 100_000, "y"])
    assert len(told) < 300
    assert told.names == ("x" * 100_000, "y")


# ---- Parquet's types

ODD = {
    "decimal": pl.Series([Decimal("1.5"), Decimal(1), Decimal(0), Decimal(1)]),
    "date": pl.Series([date(2026, 3, 1)] * 4),
    "time": pl.Series([timedelta(hours=1)] * 4),
    "list": pl.Series([[1], [2], [3], [4]]),
    "struct": pl.Series([{"a": 1}] * 4),
    "binary": pl.Series([b"a", b"b", b"c", b"d"]),
    "categories": pl.Series(["1", "0", "1", "0"], dtype=pl.Categorical),
    "nothing": pl.Series([None] * 4),
    "large": pl.Series([2**64 - 1, 1, 0, 1], dtype=pl.UInt64),
    "infinite": pl.Series([float("inf"), 1, 0, 1]),
    "array": pl.Series([[1, 2]] * 4, dtype=pl.Array(pl.Int64, 2)),
    "zeros": pl.Series(["a\0b", "c", "d", "e"]),
}
KINDS = {
    "counts": ["dataset", "image", "selected", "shown"],
    "annotations": ["dataset", "image", "worker", "selected"],
    "predictions": ["dataset", "image", "classifier", "correct"],
}
SOUND = {
    "dataset": ["v1", "v1", "v2", "v2"],
    "image": ["a", "b", "a", "b"],
    "selected": [1, 0, 1, 1],
    "shown": [1, 2, 3, 4],
    "worker": ["x"] * 4,
    "classifier": ["m"] * 4,
    "correct": [1, 0, 1, 0],
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_odd_types_are_read_or_one_line(kind, tmp_path):
    path, other = tmp_path / "odd.parquet", tmp_path / "other.parquet"
    rest = KINDS["counts" if kind == "predictions" else "predictions"]
    pl.DataFrame({name: SOUND[name] for name in rest}).write_parquet(other)
    readers = [lambda: check_tables([path, other], reference="v1", replication="v2")]
    if kind == "annotations":
        readers += [lambda: count_answers([path]), lambda: read_answers(path)]
    for column in ODD.values():
        for at in KINDS[kind]:
            columns = {name: SOUND[name] for name in KINDS[kind]} | {at: column}
            pl.DataFrame(columns).write_parquet(path)
            for read in readers:
                with suppress(StudyError):
                    read()


def test_names_on_the_command_line_are_a_line_of_csv():
    assert names("vit, resnet18,") == ["vit", "resnet18"]
    assert names('"res,net ""18""",vit') == ['res,net "18"', "vit"]
    assert names('net "18"') == ['net "18"']
    with pytest.raises(ArgumentTypeError, match="separated by commas"):
        names("two\nlines")
