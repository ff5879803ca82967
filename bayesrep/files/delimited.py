"""Tables as spreadsheets and scripts write them: separators, encodings, compression, workbooks.

Every cell is text, as it is written: what looks like a number may be a name, and a reader asks for
numbers where it means them. Text is read as UTF-8, with a mark or without, as UTF-16 and UTF-32
with their marks, and, where it is none of these, as Windows-1252, which holds all of Latin-1 that
can be printed; the last is warned of, since nothing in a file says so. Lines end in LF, CR LF or
CR. What is compressed may not swell beyond `SWELLING`, and what is in a workbook is data: no
formula is computed, and no size that it states is believed.
"""

import codecs
import csv
import gzip
import io
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, TableWarning, Violation, plain_text, reason
from bayesrep.files import parquet
from bayesrep.files.names import normalize_cells, normalize_name
from bayesrep.files.places import Place

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
LARGEST_TEXT, SWELLING = 2**26, 50
"""Bytes that a compressed table may hold in any case, and times those of its file."""

COLUMNS = 2**16
"""Columns of a table, each of which costs time however short it is."""
_CHUNK = 2**22
_LONGEST_HEADER = 2**22
_ABOVE = 5  # lines below the first among which a header is looked for
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
_MARKS = {  # the longer ones first, since that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_UNNAMED = "\0"
"""How the name of a column begins that has none, and that of no other does."""

Rename = Callable[[list[str]], list[str]]


@dataclass(frozen=True, eq=False)
class Sheet:
    """One table of a file.

    Attributes
    ----------
    place
        What a message calls it and its rows.
    frame
        Its columns by name.
    """

    place: Place
    frame: pl.DataFrame


@dataclass(frozen=True)
class _Header:
    """The header of a text: names of the columns, and where it stands.

    `begin` and `end` are in bytes, `line` the number of its first line.
    """

    names: list[str]
    separator: str
    begin: int
    end: int
    line: int


def read(file: Path, rename: Rename) -> list[Sheet]:
    """Read every table of a file whose name ends in one of `TEXTUAL`; a text holds one.

    Parameters
    ----------
    file
        The file.
    rename
        From the names that stand in the header, without blanks around them, to those of the
        columns.

    Returns
    -------
    list of Sheet
        All columns as text without blanks around it, null where a cell is empty.

    Raises
    ------
    StudyError
        In one line, what is wrong with the file and what to do.
    OSError
        Where there is none.

    Warns
    -----
    TableWarning
        If it is read as Windows-1252; if a workbook has hidden sheets, which are left out, or a
        column of it that is not called a time or a date holds dates.
    """
    if file.suffix.lower() == ".xlsx":
        return _workbook(file, rename)
    where = str(file)
    return [_parse_sheet(_utf_8(_contents(file), where), where, rename)]


def scan(file: Path, rename: Rename) -> pl.LazyFrame:
    """Scan the one table of a file, of which not all need be in memory where it is plain UTF-8.

    Parameters
    ----------
    file, rename
        As for `read`, a workbook of one sheet.

    Raises
    ------
    StudyError, OSError
        As `read`.
    """
    if file.suffix.lower() in (".gz", ".xlsx") or not _is_plain(file):
        return take_only_sheet(read(file, rename), file).frame.lazy()
    with open(file, "rb") as stream:
        header = _header(stream.read(_LONGEST_HEADER), str(file), rename)
        stream.seek(0)
        before = stream.read(header.end).count(b"\n") + 1
    return pl.scan_csv(
        file,
        has_header=False,
        skip_lines=before,
        schema=dict.fromkeys(header.names, pl.String()),
        separator=header.separator,
        glob=False,
    )


def read_lines(file: Path) -> list[str]:
    """The lines of a text that are not blank, in any encoding a table may have, as names are.

    Raises
    ------
    StudyError
        In one line, why the file is not a text.
    OSError
        Where there is none.

    Warns
    -----
    TableWarning
        If it is read as Windows-1252.
    """
    text = _utf_8(_contents(file), str(file)).decode()
    return [name for line in text.splitlines() if (name := normalize_name(line))]


def take_only_sheet(sheets: list[Sheet], path: str | Path) -> Sheet:
    """The one table of a file; a workbook of several is refused."""
    if len(sheets) > 1:
        names = ", ".join(sheet.place.name for sheet in sheets)
        raise StudyError("several-sheets-in-workbook", path=path, sheets=names)
    return sheets[0]


def _is_plain(file: Path) -> bool:
    """Whether a file is UTF-8 text without zeros, of lines that do not end in CR alone."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    returns = lines = False
    with open(file, "rb") as stream:
        for chunk in iter(partial(stream.read, _CHUNK), b""):
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                return False
            if b"\0" in chunk:
                return False
            returns, lines = returns or b"\r" in chunk, lines or b"\n" in chunk
    return lines or not returns


def _contents(file: Path) -> bytes:
    """The bytes of a file, decompressed where its name says that it is compressed."""
    if file.suffix.lower() != ".gz":
        return file.read_bytes()
    most = max(LARGEST_TEXT, SWELLING * file.stat().st_size)
    try:
        with gzip.open(file) as stream:
            data = stream.read(most + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StudyError("gzip-file-damaged", file=file, reason=reason(error)) from error
    if len(data) > most:
        raise StudyError("compressed-text-too-large", file=file, most_bytes=most, ratio=SWELLING)
    return data


def _utf_8(data: bytes, where: str) -> bytes:
    """Text as UTF-8 without a mark, its lines ending in LF."""
    data = _decode_text(data, where)
    if b"\0" in data:
        raise StudyError("table-text-holds-zeros", where=where)
    return data if b"\n" in data else data.replace(b"\r", b"\n")


def _decode_text(data: bytes, where: str) -> bytes:
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            try:
                return data.decode(encoding).encode()
            except UnicodeError as error:
                raise StudyError("marked-text-damaged", where=where, encoding=encoding) from error
    if b"\0" in data or (bad := _first_fault(data)) is None:
        return data
    try:
        decoded = data.decode("cp1252")
    except UnicodeError as error:
        raise StudyError(
            "text-encoding-unknown", where=where, line=data[:bad].count(10) + 1
        ) from error
    line = data.count(b"\n", 0, bad) + 1
    value = decoded.splitlines()[line - 1][:60] if line <= len(decoded.splitlines()) else ""
    warnings.warn(
        TableWarning(
            f"{where}: is not UTF-8 and was read as Windows-1252 (line {line} begins "
            f"{plain_text(value)!r}); if letters are wrong, save it as CSV, UTF-8"
        ),
        stacklevel=2,
    )
    return decoded.encode()


def _first_fault(data: bytes) -> int | None:
    """Where text stops being UTF-8, to within a chunk's decoding; None where it never does."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    view, start = memoryview(data), 0
    try:
        for start in range(0, len(data), _CHUNK):
            decoder.decode(view[start : start + _CHUNK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return min(start + error.start, len(data) - 1)
    return None


def _header(data: bytes, where: str, rename: Rename) -> _Header:
    """Find the header of a text, behind what may stand before it."""
    begin, line, stated = len(codecs.BOM_UTF8) * data.startswith(codecs.BOM_UTF8), 1, None
    while True:  # blank lines, and `sep=;` of some spreadsheets
        end = data.find(b"\n", begin)
        head = data[begin : len(data) if end < 0 else end].strip()
        if head[:4].lower() == b"sep=" and len(head) == 5:
            stated = head[4:].decode("ascii", "replace")
        elif head:
            break
        if end < 0:
            raise StudyError("table-file-empty", where=where)
        begin, line = end + 1, line + 1
    record = _first_record(data[begin:])
    text = record.decode("utf-8", "replace")
    separator = stated or max(SEPARATORS, key=lambda each: len(_fields(text, each) or ()))
    raw = _fields(text, separator)
    if raw is None:
        raise StudyError("table-header-unreadable", where=where)
    return _Header(name_columns(raw, where, rename), separator, begin, begin + len(record), line)


def _fields(record: str, separator: str) -> list[str] | None:
    """What stands between the separators of one record; None where it is none."""
    try:
        return next(csv.reader(io.StringIO(record, newline=""), delimiter=separator), None)
    except (csv.Error, TypeError):
        return None


def _first_record(data: bytes) -> bytes:
    """The header, which may hold line breaks within quotes."""
    begin, end, quotes = 0, data.find(b"\n"), 0
    while end >= 0 and (quotes := quotes + data.count(b'"', begin, end)) % 2:
        begin, end = end, data.find(b"\n", end + 1)
    return data[: len(data) if end < 0 else end].rstrip(b"\r")


def _parse_sheet(data: bytes, where: str, rename: Rename) -> Sheet:
    """The one table of a text."""
    header = _header(data, where, rename)
    numbered = [f"c{place}" for place in range(len(header.names))]
    body = header.separator.join(numbered).encode() + data[header.end :]
    try:
        frame = pl.read_csv(body, separator=header.separator, infer_schema=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise StudyError(_fault(data, header, where, error)) from error
    frame.columns = header.names
    place = Place(where, "line", header.line + 1)
    return Sheet(place, _tidy_frame(frame, place))


def name_columns(raw: Iterable[str], where: str, rename: Rename) -> list[str]:
    """Names of columns, each once; those that have none get one that no header can have."""
    stripped = [normalize_name(name) for name in raw]
    if len(stripped) > COLUMNS:
        raise StudyError(
            "table-with-many-columns", where=where, columns=len(stripped), most=COLUMNS
        )
    names = rename(stripped)
    times = Counter(name for name in names if name)
    if repeated := sorted(name for name, count in times.items() if count > 1):
        said = [old for old, new in zip(stripped, names, strict=True) if new == repeated[0]]
        raise StudyError(
            "column-name-repeated",
            where=where,
            column=repeated[0],
            headings=", ".join(map(repr, said)),
        )
    return [name or f"{_UNNAMED}{place}" for place, name in enumerate(names)]


def _tidy_frame(frame: pl.DataFrame, place: Place) -> pl.DataFrame:
    """Without what spreadsheets and data frames leave: empty columns, an index, empty last rows."""
    # A row of commas is a column each: those that hold nothing go before their texts are looked at.
    nameless = (column for column in frame if column.name.startswith(_UNNAMED))
    frame = frame.drop(column.name for column in nameless if column.null_count() == len(column))
    frame, left = normalize_cells(frame), list[str]()
    for column in frame:
        unnamed = column.name.startswith(_UNNAMED)
        blank = unnamed and column.null_count() == len(column)
        if blank or ((unnamed or column.name == "Unnamed: 0") and _is_index(column)):
            left.append(column.name)
        elif unnamed:
            _refuse_title(frame, place)
            number = int(column.name[1:]) + 1
            raise StudyError("column-without-name", where=place.name, column_number=number)
    frame = frame.drop(left)
    if frame.width and frame.height:
        places = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
        frame = frame.head(int(places[-1]) + 1 if len(places) else 0)
    return frame


def _refuse_title(frame: pl.DataFrame, place: Place) -> None:
    """Refuse a title where a header should be: one cell, the first, above several words."""
    title, *others = frame.columns
    if title.startswith(_UNNAMED) or not all(name.startswith(_UNNAMED) for name in others):
        return
    for row, cells in enumerate(frame.head(_ABOVE).iter_rows()):
        words = [cell for cell in cells if cell is not None]
        if len(words) > 1:
            if not _has_number(words):
                raise StudyError(_title(place.name, place.first + row, title, place.first - 1))
            return


def _has_number(cells: Iterable[str]) -> bool:
    """Whether a row holds a number, as a header rarely does."""
    return any(re.fullmatch(r"\s*[-+]?[\d.,]+%?\s*", cell) for cell in cells)


def _title(where: str, header: int, title: str, line: int) -> Violation:
    facts = {"where": where, "line": line, "title": plain_text(title[:60]), "header": header}
    return Violation("title-above-header", **facts)


def _is_index(column: pl.Series) -> bool:
    """Whether a column only numbers the rows."""
    return column.to_list() == [str(number) for number in range(len(column))]


def _fault(data: bytes, header: _Header, where: str, error: BaseException) -> Violation:
    """In one line, why a text is not a table."""
    width, separator = len(header.names), header.separator
    try:
        body = io.StringIO(data[header.begin :].decode(), newline="")
        rows = csv.reader(body, delimiter=separator)
        for row in rows:
            if len(row) > width:
                line = header.line - 1 + rows.line_num
                if width == 1 and line <= header.line + _ABOVE and not _has_number(row):
                    return _title(where, line, header.names[0], header.line)
                facts = {
                    "where": where,
                    "line": line,
                    "values": len(row),
                    "columns": width,
                    "beginning": plain_text(separator.join(row)[:60]),
                }
                if separator == ",":
                    return Violation("too-many-values-between-commas", **facts)
                kind = SEPARATORS.get(separator, repr(separator))
                return Violation("too-many-values-in-line", **facts, separator=kind)
    except (csv.Error, UnicodeError):
        pass
    return Violation("text-table-damaged", where=where, reason=reason(error))


def _workbook(file: Path, rename: Rename) -> list[Sheet]:
    """Every sheet of a workbook that holds something."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise StudyError("excel-extra-not-installed", file=file) from None
    where, most = str(file), max(LARGEST_TEXT, SWELLING * file.stat().st_size)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if sum(each.file_size for each in entries) > most:
                raise StudyError("workbook-too-large", where=where, most_bytes=most)
            pages = (each for each in entries if each.filename.startswith("xl/worksheets/"))
            computed = any(_FORMULA.search(archive.read(each)) for each in pages)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions that are not read
            book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            hidden = [each.title for each in book.worksheets if each.sheet_state != "visible"]
            shown = [each for each in book.worksheets if each.title not in hidden]
            sheets = [(each.title, _rows(each)) for each in shown or book.worksheets]
            if computed:
                _refuse_formulas(file, book, [title for title, _ in sheets])
            book.close()
    except OSError:
        raise
    except StudyError:
        raise
    except Exception as error:  # whatever a damaged archive makes openpyxl meet
        raise StudyError("workbook-damaged", where=where, reason=reason(error)) from error
    if hidden and shown:
        names = ", ".join(repr(plain_text(title)) for title in hidden)
        warnings.warn(TableWarning(f"{where}: hidden sheets are left out: {names}"), stacklevel=2)
    full = [(title, rows) for title, rows in sheets if any(rows)]
    if not full:
        raise StudyError("table-file-empty", where=where)
    return [
        _sheet(rows, where if len(full) == 1 else f"{where}, sheet {title!r}", rename)
        for title, rows in full
    ]


_Cells = dict[int, tuple[str, bool]]
"""The cells of a row that say something, by column: the text, and whether it is a date."""


def _rows(sheet: Any) -> list[_Cells]:
    """The rows of a sheet, however large it says that it is."""
    sheet.reset_dimensions()
    return [
        {
            place: (text, isinstance(cell.value, date | time))
            for place, cell in enumerate(row)
            if cell.value is not None and (text := _text(cell)).strip()
        }
        for row in sheet.iter_rows()
    ]


def _refuse_formulas(file: Path, book: Any, titles: Iterable[str]) -> None:
    """Refuse formulas whose values were not stored, as programs write them that compute nothing."""
    from openpyxl import load_workbook

    formulas = load_workbook(file, read_only=True, keep_links=False)
    for title in titles:
        formulas[title].reset_dimensions()
        for row, values in zip(formulas[title].iter_rows(), book[title].iter_rows(), strict=True):
            for cell, stored in zip(row, values, strict=True):
                empty_text = stored.data_type == "str"
                if cell.data_type == "f" and stored.value is None and not empty_text:
                    where = f"{file}, sheet {plain_text(title)!r}"
                    raise StudyError(
                        "workbook-formula-without-value", where=where, cell=cell.coordinate
                    )
    formulas.close()


def _text(cell: Any) -> str:
    """A cell as it is shown: whole numbers without decimals, filled up with zeros; percent."""
    value, form = cell.value, cell.number_format or ""
    if isinstance(value, int | float) and not isinstance(value, bool) and "%" in form:
        return f"{100 * value:g}%"
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        filled = re.fullmatch(r"0+", form)
        return str(value).zfill(len(filled[0]) if filled else 1)
    return str(value)


def _sheet(rows: list[_Cells], where: str, rename: Rename) -> Sheet:
    """A sheet's rows as columns."""
    start = next(place for place, row in enumerate(rows) if row)
    body = rows[start + 1 :]
    used = sorted({place for row in rows[start:] for place in row})
    header = [rows[start].get(place, ("", False))[0] for place in used]
    names = name_columns(header, where, rename)
    names = [
        f"{_UNNAMED}{place}" if not title else name
        for place, title, name in zip(used, header, names, strict=True)
    ]
    place = Place(where, "line", start + 2)
    columns: list[pl.Series] = []
    for number, name in zip(used, names, strict=True):
        cells = [row.get(number) for row in body]
        texts = pl.Series(name, [cell and cell[0] for cell in cells], dtype=pl.String)
        dates = pl.Series([cell[1] if cell else None for cell in cells], dtype=pl.Boolean)
        timed = dates.all() and re.search("time|date|_at$", name.lower())
        if dates.any() and not timed:
            warnings.warn(
                TableWarning(
                    f"{where}: column {name!r} holds dates "
                    f"({place.rows(dates.fill_null(value=False), texts)}): Excel makes them of "
                    "names such as MAR1; if these are names, write them anew in cells that are "
                    "formatted as text"
                ),
                stacklevel=2,
            )
        columns.append(texts)
    return Sheet(place, _tidy_frame(pl.DataFrame(columns), place))


def check_width(sheet: Sheet, size: int) -> None:
    """Refuse a text of a length that an array of them would not fit into memory with."""
    if line := parquet.too_wide(sheet.frame, size, sheet.place.name):
        raise StudyError(line)
