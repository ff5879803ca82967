"""Tables as spreadsheets and scripts write them: separators, encodings, compression, workbooks.

Text is read as UTF-8, with a mark or without, as UTF-16 with its mark, and, where it is neither, as
Windows-1252, which holds all of Latin-1 that can be printed; the last is warned of, since nothing
in a file says so. What is compressed may not swell beyond `LARGEST`, and what is in a workbook is
data: no formula is computed.
"""

import codecs
import csv
import gzip
import io
import warnings
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, TableWarning, Violation, plain, reason
from bayesrep.files import parquet
from bayesrep.files.places import Place

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
LARGEST_TEXT, SWELLING = 2**26, 200
"""Bytes that a compressed table may hold in any case, and times those of its file."""

_CHUNK = 2**22
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

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


def read(file: Path, *, text: Collection[str] = (), rename: Rename | None = None) -> list[Sheet]:
    """Read every table of a file whose name ends in one of `TEXTUAL`; a text holds one.

    Parameters
    ----------
    file
        The file.
    text
        Columns that are text whatever they look like, so that the image 007 keeps its zeros.
    rename
        From the names that stand in the header, without blanks around them, to those of the
        columns.

    Raises
    ------
    StudyError
        In one line, what is wrong with the file and what to do.
    OSError
        Where there is none.

    Warns
    -----
    TableWarning
        If it is read as Windows-1252.
    """
    if file.suffix.lower() == ".xlsx":
        return _workbook(file, text, rename)
    where = str(file)
    return [_parsed(_utf_8(_contents(file), where), where, text, rename)]


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
    """Text as UTF-8 without a mark."""
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    if data.startswith(_UTF_16):
        try:
            return data.decode("utf-16").encode()
        except UnicodeError as error:
            raise StudyError("utf16-text-damaged", where=where) from error
    if b"\0" in data:
        raise StudyError("table-text-holds-zeros", where=where)
    if (bad := _first_fault(data)) is None:
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
            f"{plain(value)!r}); if letters are wrong, save it as CSV, UTF-8"
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


def _parsed(data: bytes, where: str, text: Collection[str], rename: Rename | None) -> Sheet:
    """The one table of a text."""
    begin, line = 0, 1
    stated = None
    while True:  # blank lines, and `sep=;` of some spreadsheets, stand before a header
        end = data.find(b"\n", begin)
        head = data[begin : len(data) if end < 0 else end].strip()
        if head[:4].lower() == b"sep=" and len(head) == 5:
            stated = head[4:].decode("ascii", "replace")
        elif head or end < 0:
            break
        begin, line = end + 1, line + 1
        if end < 0:
            break
    data = data[begin:]
    if not data.strip():
        raise StudyError("table-file-empty", where=where)
    separator = stated or separator_of(head.decode())
    header = _first_record(data)
    try:
        raw = next(csv.reader(io.StringIO(header.decode()), delimiter=separator))
    except (csv.Error, StopIteration, TypeError) as error:
        raise StudyError("table-header-unreadable", where=where) from error
    names = _names(raw, where, rename)
    plain_names = [f"c{place}" for place in range(len(names))]
    types: dict[str, Any] = {
        plain_name: pl.String()
        for plain_name, name in zip(plain_names, names, strict=True)
        if name in text
    }
    body = separator.join(plain_names).encode() + data[len(header) :]
    try:
        frame = pl.read_csv(
            body, separator=separator, schema_overrides=types, infer_schema_length=None
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise StudyError(_fault(data, separator, len(names), where, line, error)) from error
    frame.columns = names
    return Sheet(Place(where, "line", line + 1), _tidy(frame, where))


def separator_of(header: str) -> str:
    """What parts the columns of a header: what makes most of them."""
    return max(SEPARATORS, key=lambda each: len(next(csv.reader([header], delimiter=each), [])))


def _first_record(data: bytes) -> bytes:
    """The header, which may hold line breaks within quotes."""
    end = data.find(b"\n")
    while end >= 0 and data.count(b'"', 0, end) % 2:
        end = data.find(b"\n", end + 1)
    return data[: len(data) if end < 0 else end].rstrip(b"\r")


def _names(raw: Iterable[str], where: str, rename: Rename | None) -> list[str]:
    """Names of columns, each once; those that have none get one that no header can have."""
    stripped = [name.strip() for name in raw]
    names = rename(stripped) if rename else stripped
    named = [name for name in names if name]
    if repeated := sorted({name for name in named if named.count(name) > 1}):
        said = [old for old, new in zip(stripped, names, strict=True) if new == repeated[0]]
        raise StudyError(
            "column-name-repeated",
            where=where,
            column=repeated[0],
            headings=", ".join(map(repr, said)),
        )
    return [name or f"\0{place}" for place, name in enumerate(names)]


def _tidy(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    """Without what spreadsheets and data frames leave: empty columns, an index, empty last rows."""
    for name in frame.columns:
        unnamed = name.startswith("\0")
        if unnamed and _is_blank(frame[name]):
            frame = frame.drop(name)
        elif (unnamed or name == "Unnamed: 0") and _is_index(frame[name]):
            frame = frame.drop(name)
        elif unnamed:
            place = int(name[1:]) + 1
            raise StudyError("column-without-name", where=where, column_number=place)
    if frame.width and frame.height:
        blank = pl.all_horizontal(pl.all().cast(pl.String).fill_null("").str.strip_chars().eq(""))
        last = frame.tail(1).select(blank).item()
        while last:
            frame = frame.head(frame.height - 1)
            last = frame.height and frame.tail(1).select(blank).item()
    return frame


def _is_blank(column: pl.Series) -> bool:
    return column.cast(pl.String).fill_null("").str.strip_chars().eq("").all()


def _is_index(column: pl.Series) -> bool:
    """Whether a column only numbers the rows."""
    return column.dtype.is_integer() and column.to_list() == list(range(len(column)))


def _fault(
    data: bytes, separator: str, width: int, where: str, first: int, error: BaseException
) -> Violation:
    """In one line, why a text is no table."""
    try:
        rows = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator)
        for row in rows:
            if len(row) > width:
                line = first - 1 + rows.line_num
                facts = {
                    "where": where,
                    "line": line,
                    "values": len(row),
                    "columns": width,
                    "beginning": plain(separator.join(row)[:60]),
                }
                if separator == ",":
                    return Violation("too-many-values-between-commas", **facts)
                kind = SEPARATORS.get(separator, repr(separator))
                return Violation("too-many-values-in-line", **facts, separator=kind)
    except (csv.Error, UnicodeError):
        pass
    return Violation("text-table-damaged", where=where, reason=reason(error))


def _workbook(file: Path, text: Collection[str], rename: Rename | None) -> list[Sheet]:
    """Every sheet of a workbook that holds something."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise StudyError("excel-extra-not-installed", file=file) from None
    where, most = str(file), max(LARGEST_TEXT, SWELLING * file.stat().st_size)
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(each.file_size for each in archive.infolist()) > most:
                raise StudyError("workbook-too-large", where=where, most_bytes=most)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions that are not read
            book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            sheets = [
                (each.title, list(each.iter_rows(values_only=True))) for each in book.worksheets
            ]
            book.close()
    except OSError:
        raise
    except StudyError:
        raise
    except Exception as error:  # whatever a damaged archive makes openpyxl meet
        raise StudyError("workbook-damaged", where=where, reason=reason(error)) from error
    full = [(title, rows) for title, rows in sheets if any(any(map(_said, row)) for row in rows)]
    if not full:
        raise StudyError("table-file-empty", where=where)
    return [
        _sheet(rows, where if len(full) == 1 else f"{where}, sheet {title!r}", text, rename)
        for title, rows in full
    ]


def _said(cell: Any) -> bool:
    return cell is not None and str(cell).strip() != ""


def _sheet(
    rows: list[tuple[Any, ...]], where: str, text: Collection[str], rename: Rename | None
) -> Sheet:
    """A sheet's rows as columns; numbers stay numbers where a whole column holds them."""
    start = next(place for place, row in enumerate(rows) if any(map(_said, row)))
    header = ["" if cell is None else str(cell) for cell in rows[start]]
    names = _names(header, where, rename)
    body = rows[start + 1 :]
    columns = {
        name: _column([row[place] if place < len(row) else None for row in body], name in text)
        for place, name in enumerate(names)
    }
    frame = _tidy(pl.DataFrame(columns), where)
    return Sheet(Place(where, "line", start + 2), frame)


def _column(cells: list[Any], as_text: bool) -> pl.Series:  # noqa: FBT001
    held = {type(cell) for cell in cells} - {type(None)}
    if not as_text and held <= {int, float}:
        return pl.Series(cells, dtype=pl.Float64 if float in held else pl.Int64, strict=False)
    if not as_text and held == {bool}:
        return pl.Series(cells, dtype=pl.Boolean)
    return pl.Series([_text(cell) for cell in cells], dtype=pl.String)


def _text(cell: Any) -> str | None:
    """A cell as it is typed: a whole number without decimals."""
    if cell is None:
        return None
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell)) if whole else str(cell)


def check_width(sheet: Sheet, size: int) -> None:
    """Refuse a text of a length that an array of them would not fit into memory with."""
    if line := parquet.too_wide(sheet.frame, size, sheet.place.name):
        raise StudyError(line)
