"""Tables as people have them: read, or one line that says what to do, with the value and the line.

Every mistake is a change to one sound pair of tables. `READ` are those that are read, with what is
said of it; `REFUSED` those that are not, with the whole message but for the folder.
"""

import gzip
import warnings

import pytest

from bayesrep import StudyError
from bayesrep.errors import TableWarning
from bayesrep.sources.tables import check_tables, read_tables

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

    openpyxl = pytest.importorskip("openpyxl")
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


INDEXED = [
    ["", *COUNTS[0]],
    *([str(place), *row] for place, row in enumerate(COUNTS[1:])),
]

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
    "decimal points": (sound(c=mapped(COUNTS, "shown", lambda n: f"{n}.0")), None),
    "decimal commas": (sound(c=text(mapped(COUNTS, "shown", lambda n: f"{n},0"), ";")), None),
    "an index column of pandas": (sound(c=INDEXED), None),
    "empty columns and rows at the end": (
        sound(c=text([[*row, "", ""] for row in COUNTS]) + ",,,,,\n" * 3),
        None,
    ),
    "True and FALSE": (
        sound(p=mapped(PREDICTIONS, "correct", lambda n: ("FALSE", "True")[int(n)])),
        None,
    ),
    "Latin-1": (
        {"counts.csv": text(LATIN).encode("latin-1"), "predictions.csv": text(LATIN_P)},
        "counts.csv: is not UTF-8 and was read as Windows-1252 (line 2 begins 'v1,ä1_0.jpg,7,9'); "
        "if letters are wrong, save it as CSV, UTF-8",
    ),
    "names without endings": (
        sound(p=mapped(PREDICTIONS, "image", bare)),
        "predictions.csv: 3 images of 'v1' are matched with counts.csv without endings: "
        "'v1_0' is 'v1_0.jpg'",
    ),
    "names in folders": (
        sound(p=mapped(PREDICTIONS, "image", lambda name: f"images/val/{name}")),
        "predictions.csv: 3 images of 'v1' are matched with counts.csv without folders: "
        "'images/val/v1_0.jpg' is 'v1_0.jpg'",
    ),
    "names in folders of Windows, counts without endings": (
        sound(
            c=mapped(COUNTS, "image", bare),
            p=mapped(PREDICTIONS, "image", lambda name: f"images\\{name}"),
        ),
        "predictions.csv: 3 images of 'v1' are matched with counts.csv without folders and "
        "endings: 'images\\\\v1_0.jpg' is 'v1_0'",
    ),
    "names in capitals": (
        sound(p=mapped(PREDICTIONS, "image", str.upper)),
        "predictions.csv: 3 images of 'v1' are matched with counts.csv whatever their case: "
        "'V1_0.JPG' is 'v1_0.jpg'",
    ),
}


@pytest.mark.parametrize("name", READ)
def test_tables_as_people_have_them_are_read(tmp_path, name):
    tables, said = READ[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        study = read_tables(files(tmp_path, tables), **ROLES)
    assert study.classifiers == ("resnet50", "vit")
    assert study.reference.selected.tolist() == [7, 7, 7]
    assert study.replication.shown.tolist() == [10, 10, 10]
    assert study.reference.correct.tolist() == [[False, True], [True, False], [False, True]]
    lines = [str(each.message).replace(f"{tmp_path}/", "") for each in caught]
    assert all(issubclass(each.category, TableWarning) for each in caught)
    assert lines[:1] == ([] if said is None else [said])


REFUSED = {
    "another name for a column": (
        sound(p=header(PREDICTIONS, "dataset", "image", "network", "correct")),
        "predictions.csv: looks like predictions (dataset, image, classifier, correct), but column "
        "'classifier' is missing; rename what holds it ('network'?), or add it",
    ),
    "a column misspelt": (
        sound(p=header(PREDICTIONS, "dataset", "image", "clasifier", "correct")),
        "predictions.csv: looks like predictions (dataset, image, classifier, correct), but column "
        "'classifier' is missing; rename 'clasifier' to 'classifier', if that is what it holds",
    ),
    "label for classifier": (
        sound(p=header(PREDICTIONS, "dataset", "image", "label", "correct")),
        "predictions.csv: looks like predictions (dataset, image, classifier, correct), but column "
        "'classifier' is missing; rename what holds it ('label'?), or add it",
    ),
    "no data set": (
        sound(c=[row[1:] for row in COUNTS]),
        "counts.csv: looks like counts (dataset, image, selected, shown), but column 'dataset' is "
        "missing; add it",
    ),
    "a column twice": (
        sound(c=header(COUNTS, "dataset", "image", "shown", "shown")),
        "counts.csv: several columns are called 'shown' ('shown', 'shown'); keep one",
    ),
    "decimal commas between commas": (
        sound(c=mapped(COUNTS, "selected", lambda n: f"{n},0")),
        "counts.csv: line 2 has 5 values for 4 columns ('v1,v1_0.jpg,7,0,9'); put quotes "
        "around a value that holds a comma; where commas part decimals, write points, or part the "
        "columns by semicolons",
    ),
    "a comma in a name": (
        sound(c=put(COUNTS, 4, "image", "v1, a.jpg")),
        "counts.csv: line 4 has 5 values for 4 columns ('v1,v1, a.jpg,7,9'); put quotes "
        "around a value that holds a comma; where commas part decimals, write points, or part the "
        "columns by semicolons",
    ),
    "percent": (
        sound(p=put(PREDICTIONS, 3, "correct", "80%")),
        "predictions.csv: correct is neither true nor false in line 3 ('80%'); a share or a score "
        "is no answer: give a row for each image, and write true, false, 1 or 0",
    ),
    "0.8": (
        sound(p=put(PREDICTIONS, 3, "correct", "0.8")),
        "predictions.csv: correct is neither true nor false in line 3 (0.8); a share or a score is "
        "no answer: give a row for each image, and write true, false, 1 or 0",
    ),
    "100 and 0": (
        sound(p=put(put(PREDICTIONS, 3, "correct", "100"), 13, "correct", "100")),
        "predictions.csv: correct is neither true nor false in lines 3 (100), 13 (100); write 1 "
        "for 100, as true, false, 1 or 0",
    ),
    "another word": (
        sound(p=put(PREDICTIONS, 3, "correct", "right")),
        "predictions.csv: correct is neither true nor false in line 3 ('right'); write true, "
        "false, 1 or 0",
    ),
    "a share for a count": (
        sound(c=mapped(COUNTS, "selected", lambda n: f"0.{n}")),
        "counts.csv: selected is not a whole number in lines 2 (0.7), 3 (0.7), 4 (0.7), 5 (0.8), "
        "6 (0.8), ... (6 lines); counts are whole numbers: give how many selected the image and "
        "how many were shown it, not the share",
    ),
    "a separator of thousands": (
        sound(c=text(put(COUNTS, 2, "shown", "1,000"), ";")),
        "counts.csv: shown is not a whole number in line 2 ('1,000'); counts are whole numbers: "
        "write them without a separator of thousands",
    ),
    "selected exceeds shown": (
        sound(c=put(COUNTS, 3, "selected", "12")),
        "counts.csv: selected exceeds shown for image 'v1_1.jpg', line 3 ('12 of 9'); an image "
        "cannot be selected more often than shown, correct the counts",
    ),
    "shown is 0": (
        sound(c=put(put(COUNTS, 3, "selected", "0"), 3, "shown", "0")),
        "counts.csv: shown is 0 for image 'v1_1.jpg', line 3; leave out images that no annotator "
        "was shown",
    ),
    "a negative count": (
        sound(c=put(COUNTS, 7, "selected", "-1")),
        "counts.csv: selected is negative for image 'v2_2.jpg', line 7 (-1); correct the counts",
    ),
    "a missing value": (
        sound(c=put(COUNTS, 5, "image", "")),
        "counts.csv: image is missing in line 5; give it in every row",
    ),
    "an empty line in the middle": (
        sound(c=[*COUNTS[:3], ["", "", "", ""], *COUNTS[3:]]),
        "counts.csv: line 4 is empty; remove what is empty",
    ),
    "an image twice": (
        sound(c=[*COUNTS, COUNTS[1]]),
        "counts.csv: several rows for image 'v1_0.jpg' of 'v1' (lines 2, 8); keep one each",
    ),
    "an answer twice": (
        sound(p=[*PREDICTIONS, PREDICTIONS[1]]),
        "predictions.csv: several predictions of classifier 'resnet50' for image 'v1_0.jpg' of "
        "'v1' (lines 2, 14); keep one per image and classifier",
    ),
    "an answer missing": (
        sound(p=without(PREDICTIONS, lambda row: row[1] == "v2_1.jpg" and row[2] == "vit")),
        "predictions.csv: no prediction of classifier 'vit' for image 'v2_1.jpg' of 'v2'; every "
        "classifier needs one on every counted image",
    ),
    "a classifier misspelt": (
        sound(
            p=PREDICTIONS[:4] + mapped(PREDICTIONS, "classifier", misspelt)[4:7] + PREDICTIONS[7:]
        ),
        "predictions.csv: predictions of classifier 'resnet5O' on 'v2' but not on 'v1'; did you "
        "mean 'resnet50', which is on 'v1' only? (1 more: `bayesrep check` with the same files "
        "lists all)",
    ),
    "an image misspelt": (
        sound(p=mapped(PREDICTIONS, "image", lambda name: name.replace("v1_0", "v1_O"))),
        "predictions.csv: predictions but no counts (see counts.csv) for image 'v1_O.jpg' of 'v1' "
        "(lines 2, 8); did you mean 'v1_0.jpg'?; count them or leave their predictions out (1 "
        "more: `bayesrep check` with the same files lists all)",
    ),
    "names without endings, and one more": (
        sound(p=[*mapped(PREDICTIONS, "image", bare), ["v1", "x", "vit", "1"]]),
        "predictions.csv: names images of 'v1' otherwise than counts.csv ('v1_0' is 'v1_0.jpg'), "
        "and without endings still predictions but no counts for image 'x'; name them alike in "
        "both",
    ),
    "the replication is missing from the predictions": (
        sound(p=without(PREDICTIONS, lambda row: row[0] == "v2")),
        "predictions.csv: no predictions of the data set 'v2'; the tables of predictions hold 'v1' "
        "only, add those of 'v2'",
    ),
    "the replication is missing from all tables": (
        sound(
            c=without(COUNTS, lambda row: row[0] == "v2"),
            p=without(PREDICTIONS, lambda row: row[0] == "v2"),
        ),
        "counts.csv, predictions.csv: hold the data set 'v1' only, and a study compares two; add "
        "the rows of data set 'v2'",
    ),
    "a third data set": (
        sound(c=[*COUNTS, ["V2", "z.jpg", "1", "2"]]),
        "counts.csv: rows of data set 'V2' beside those of 'v1' and 'v2'; did you mean 'v2'?; "
        "leave the other rows out, or name the pool that the replication was chosen from "
        "(--candidates), or give a role (--further ROLE=NAME)",
    ),
    "an empty file": (
        sound(c=""),
        "counts.csv: is empty; give a header and at least one row",
    ),
    "a header alone": (sound(c=COUNTS[:1]), "counts.csv: has no rows; give at least one"),
    "an older workbook": (
        sound(c_xls=b"\xd0\xcf\x11\xe0"),
        "counts.xls: is no table by its name; save it as CSV (UTF-8), or as one of .csv, .tsv, "
        ".txt, .xlsx, .parquet, the text compressed (.gz) or not",
    ),
    "no text": (
        sound(c=b"PK\x03\x04\x00\x00\x08"),
        "counts.csv: is no text (it holds zeros); save the table as CSV, UTF-8",
    ),
    "no encoding at all": (
        sound(c=text(COUNTS).encode() + b"v1,\x81\x9d.jpg,1,2\n"),
        "counts.csv: is neither UTF-8 nor Windows-1252 text (line 8); save it as CSV, UTF-8",
    ),
    "a bomb": (
        sound(c_csv_gz=gzip.compress(b"a,b\n" + b"1,2\n" * 2**25)),
        "counts.csv.gz: holds more than 67,108,864 bytes, 200 times its own; decompress it "
        "yourself if that is right",
    ),
    "cut off while it was compressed": (
        sound(c_csv_gz=gzip.compress(text(COUNTS).encode())[:-9]),
        "counts.csv.gz: is damaged or not gzip (Compressed file ended before the end-of-stream "
        "marker was reached); write it anew",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_one_line_says_what_to_do(tmp_path, name):
    tables, expected = REFUSED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        with pytest.raises(StudyError) as error:
            read_tables(files(tmp_path, tables), **ROLES)
    assert str(error.value).replace(f"{tmp_path}/", "") == expected


def test_roles_that_are_not_given_or_misspelt(tmp_path):
    paths = files(tmp_path, sound())
    with pytest.raises(StudyError) as error:
        read_tables(paths)
    assert str(error.value).replace(f"{tmp_path}/", "") == (
        "counts.csv, predictions.csv: hold the data sets 'v1' and 'v2'; say which is which: "
        "--reference v1 --replication v2, or the other way round"
    )
    with pytest.raises(StudyError) as error:
        read_tables(paths, reference="v1", replication="V2")
    assert str(error.value).replace(f"{tmp_path}/", "") == (
        "counts.csv, predictions.csv: no counts or annotations of the data set 'V2', which is the "
        "replication; did you mean 'v2'?; the tables hold data sets 'v1', 'v2', say which is the "
        "replication (--replication NAME)"
    )


def test_all_problems_are_found_at_once(tmp_path):
    """Five independent mistakes, five lines; what follows from them is not told again."""
    counts = put(put(COUNTS, 3, "selected", "12"), 6, "shown", "0")
    counts = [*put(counts, 6, "selected", "0"), counts[1]]
    wrong = put(PREDICTIONS, 3, "correct", "maybe")
    wrong = [row for row in wrong if row[1:3] != ["v2_1.jpg", "vit"]]
    study, problems = check_tables(files(tmp_path, sound(c=counts, p=wrong)), **ROLES)
    assert study is None
    starts = [
        "counts.csv: shown is 0 for image 'v2_1.jpg', line 6",
        "counts.csv: selected exceeds shown for image 'v1_1.jpg', line 3 ('12 of 9')",
        "predictions.csv: correct is neither true nor false in line 3 ('maybe')",
        "counts.csv: several rows for image 'v1_0.jpg' of 'v1' (lines 2, 8)",
        "predictions.csv: no prediction of classifier 'vit' for image 'v2_1.jpg' of 'v2'",
    ]
    said = [each.replace(f"{tmp_path}/", "") for each in problems]
    assert [each.startswith(start) for each, start in zip(said, starts, strict=True)] == [True] * 5
    study, problems = check_tables(files(tmp_path, sound()), **ROLES)
    assert problems == []
    assert study.classifiers == ("resnet50", "vit")


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
    assert "predictions but no counts" in problems[0]
    assert "'c/v1_0.jpg', 'c/v1_1.jpg', 'c/v1_2.jpg' of 'v1'" in problems[0]
