"""Tables as spreadsheets and scripts write them: separators, encodings, compression.

Every cell is text, since digits may be a name; readers convert numbers if they need them.
"""

import codecs
import csv
import gzip
import io
import re
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from operator import and_
from pathlib import Path
from typing import BinaryIO, LiteralString

import numpy as np
import polars as pl

from bayesrep.errors import StudyError, TableWarning, Violation, plain_text, reason
from bayesrep.files.names import normalize_name
from bayesrep.files.row_numbers import Place
from bayesrep.files.text_table import (
    MAX_EXPANSION,
    MAX_LINES_ABOVE,
    MAX_TEXT_BYTES,
    Rename,
    Sheet,
    describe_title,
    has_number,
    name_columns,
    take_only_sheet,
    tidy_sheet,
)
from bayesrep.files.workbooks import read_workbook

SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_CHUNK_BYTES = 2**22
_MAX_HEADER_BYTES = 2**22
_ENCODING_MARKS = {  # the longer ones first, since that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class _Header:
    """The header of a text: column names, and its position in bytes and (`line`) in lines."""

    names: list[str]
    separator: str
    begin: int
    end: int
    line: int


def read(file: Path, rename: Rename) -> list[Sheet]:
    """Read every table of a file whose name ends in one of `TEXT_ENDINGS`, all columns as text."""
    if file.suffix.lower() == ".xlsx":
        return read_workbook(file, rename)
    where = str(file)
    return [_parse_sheet(_utf_8(_contents(file), where), where, rename)]


def scan(file: Path, rename: Rename) -> pl.LazyFrame:
    """Scan the one table of a file, of which not all need be in memory where it is plain UTF-8."""
    with open(file, "rb") as stream:
        head = stream.read(_MAX_HEADER_BYTES) + stream.readline()
        if file.suffix.lower() not in (".gz", ".xlsx") and _is_plain(head):
            header = _header(head, str(file), rename)
            first, _ = _first_record(head[header.end :], header.separator)
            stream.seek(header.end)
            quote = _find_quote(stream, header.separator)
            if quote is not None and len(first) == len(header.names):
                return pl.scan_csv(
                    file,
                    has_header=False,
                    skip_lines=head.count(b"\n", 0, header.end),
                    schema=dict.fromkeys(header.names, pl.String()),
                    separator=header.separator,
                    quote_char=quote or None,
                    glob=False,
                )
    return take_only_sheet(read(file, rename), file).frame.lazy()


def read_lines(file: Path) -> list[str]:
    """The lines of a text that are not blank, in any encoding a table may have, as names are."""
    text = _utf_8(_contents(file), str(file)).decode()
    return [name for line in text.splitlines() if (name := normalize_name(line))]


def _is_plain(lines: bytes) -> bool:
    """Test that lines are UTF-8 text without zeros or lone CR."""
    ends = b"\n" in lines or b"\r" not in lines
    return ends and b"\0" not in lines and _first_fault(lines) is None


def _contents(file: Path) -> bytes:
    """The bytes of a file, decompressed where its name says that it is compressed."""
    if file.suffix.lower() != ".gz":
        return file.read_bytes()
    most = max(MAX_TEXT_BYTES, MAX_EXPANSION * file.stat().st_size)
    try:
        with gzip.open(file) as stream:
            data = stream.read(most + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StudyError("gzip-file-damaged", file=file, reason=reason(error)) from error
    if len(data) > most:
        raise StudyError(
            "compressed-text-too-large", file=file, most_bytes=most, ratio=MAX_EXPANSION
        )
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
    for mark, encoding in _ENCODING_MARKS.items():
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
    """Find where text stops being UTF-8, to within a chunk's decoding; None if it never does."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    view, start = memoryview(data), 0
    try:
        for start in range(0, len(data), _CHUNK_BYTES):
            decoder.decode(view[start : start + _CHUNK_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return min(start + error.start, len(data) - 1)
    return None


def _header(data: bytes, where: str, rename: Rename) -> _Header:
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
    rest = data[begin : begin + _MAX_HEADER_BYTES]
    records = {
        each: _first_record(rest, each) for each in ([stated] if stated else SEPARATOR_NAMES)
    }
    separator = max(records, key=lambda each: len(records[each][0]))
    raw, length = records[separator]
    if not raw:
        raise StudyError("table-header-unreadable", where=where)
    lines = data[begin : begin + length].decode("utf-8", "replace").removesuffix("\n").split("\n")
    broken = any(each in lines[0] and not cells for each, (cells, _) in records.items())
    is_spaced = f"{separator} " in lines[0]
    if (len(raw) == 1 and broken) or _are_rows(lines, separator, len(raw) - 1, is_spaced=is_spaced):
        text = plain_text(lines[0].strip()[:60])
        raise StudyError("stray-quote", where=where, line=line, beginning=text)
    return _Header(name_columns(raw, where, rename), separator, begin, begin + length, line)


def _first_record(data: bytes, separator: str) -> tuple[list[str], int]:
    """The cells of the header, which may hold line breaks within quotes, and its bytes."""
    lines = io.BytesIO(data)
    texts = (line.decode("utf-8", "replace") for line in lines)
    try:
        return next(csv.reader(texts, delimiter=separator, strict=True), []), lines.tell()
    except (csv.Error, TypeError, ValueError):
        return [], 0


def _find_quote(rows: BinaryIO, separator: str) -> str | None:
    """Find the quote that encloses cells, if any; None if rows are empty or irregular."""
    # Only regular quotes, around whole cells and within lines, mean the same to polars.
    starts, edges = (
        np.isin(np.arange(256), [ord(each) for each in f"{separator}{others}"])
        for others in ("\n", '\r\n"')
    )
    blank = re.compile(rb"\n[\s%b]*\n" % re.escape(separator.encode()))
    quote, regular = "", True
    for lines in iter(lambda: rows.read(_CHUNK_BYTES) + rows.readline(), b""):
        padded = b"\n" + lines + b"\n"
        if not _is_plain(lines) or blank.search(padded, 0, len(padded) - 1):
            return None
        if b'"' in lines:
            text = np.frombuffer(padded, np.uint8)
            places, ends = (np.flatnonzero(text == ord(each)) for each in '"\n')
            whole = edges[text[places[::2] - 1]].all() and edges[text[places[1::2] + 1]].all()
            regular &= bool(whole) and not (np.searchsorted(places, ends) % 2).any()
            quote = '"' if starts[text[places - 1]].any() else quote
        if quote and not regular:
            return None
    return quote


def _parse_sheet(data: bytes, where: str, rename: Rename) -> Sheet:
    header = _header(data, where, rename)
    rows = io.BytesIO(data)
    rows.seek(header.end)
    quote = _find_quote(rows, header.separator)
    numbered = header.separator.join(f"c{place}" for place in range(len(header.names)))
    body = data[header.end :] if quote is not None else _write_regular(data, header, where)
    try:
        frame = pl.read_csv(
            numbered.encode() + b"\n" + body,
            separator=header.separator,
            quote_char=None if quote == "" else '"',
            infer_schema=False,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        _write_regular(data, header, where)  # which says in what line
        raise StudyError("text-table-damaged", where=where, reason=reason(error)) from error
    frame.columns = header.names
    return tidy_sheet(frame, Place(where, "line", header.line + 1))


def _write_regular(data: bytes, header: _Header, where: str) -> bytes:
    """Rewrite rows with regular quotes: a quote inside an unquoted cell is part of its text."""
    lines = data[header.end :].decode().split("\n")
    rows = csv.reader((f"{line}\n" for line in lines), delimiter=header.separator, strict=True)
    written, begin, separators = io.StringIO(), 0, len(header.names) - 1
    first = header.line + data.count(b"\n", header.begin, header.end)
    writer = csv.writer(written, delimiter=header.separator, lineterminator="\n")
    is_spaced = f"{header.separator} ".encode() in data[header.begin : header.end]
    try:
        for row in rows:
            record = lines[begin : rows.line_num]
            if _are_rows(record, header.separator, separators, is_spaced=is_spaced):
                raise csv.Error
            if len(row) > len(header.names):
                raise StudyError(_describe_long_row(row, header, where, first + begin))
            writer.writerow(row)
            begin = rows.line_num
    except csv.Error as error:
        message, record = str(error), lines[begin : rows.line_num]
        rule: LiteralString = "stray-quote"
        is_quote = _are_rows(record, header.separator, separators, is_spaced=is_spaced)
        if message.startswith("new-line character") and not is_quote:
            rule = "line-end-within-row"
        elif message.startswith("field larger") and not is_quote:
            rule = "table-cell-too-long"
        text = plain_text(lines[begin].strip()[:60])
        raise StudyError(rule, where=where, line=first + begin, beginning=text) from error
    return written.getvalue().encode()


def _are_rows(lines: Sequence[str], separator: str, separators: int, *, is_spaced: bool) -> bool:
    """Test whether lines that a quote joins are rows by themselves: then the quote is stray."""
    if len(lines) < 2:
        return False
    # Between cells of most rows is no blank, unless in the header; prose has one after a comma.
    between = re.compile(re.escape(separator) + ("" if is_spaced else "(?! )"))
    least = max(separators - 1, min(separators, 2))
    like_rows = [len(between.findall(line)) >= least for line in lines]
    if separators < 2:
        return all(like_rows)
    unquoted = ['"' not in line.replace('""', "") for line in lines]
    return sum(like_rows) > 1 or any(map(and_, like_rows[1:-1], unquoted[1:-1]))


def _describe_long_row(row: list[str], header: _Header, where: str, line: int) -> Violation:
    width, separator = len(header.names), header.separator
    if width == 1 and line <= header.line + MAX_LINES_ABOVE and not has_number(row):
        return describe_title(where, line, header.names[0], header.line)
    facts = {
        "where": where,
        "line": line,
        "values": len(row),
        "columns": width,
        "beginning": plain_text(separator.join(row)[:60]),
    }
    kind = SEPARATOR_NAMES.get(separator, repr(separator))
    if separator == ",":
        broken = Violation("too-many-values-between-commas", **facts)
    else:
        broken = Violation("too-many-values-in-line", **facts, separator=kind)
    if len(row) == width + 1 and row[0] == "1":
        return broken.append_text("; if R wrote names of rows, too, write it with row.names=FALSE")
    return broken
