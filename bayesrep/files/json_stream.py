"""Large JSON files a part at a time, and JSON Lines of any length a block at a time.

What polars finds odd in a block is read again by lines; a list of objects may be called Lines.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, reason
from bayesrep.files import strict_json

MAX_JSON_BYTES = 2**28  # largest size of a JSON file, or of the parts read from an archive
JSON_BLOCK_BYTES = 2**21  # read at once: few enough to stay in a processor's cache
MAX_LINE_BYTES = 2**26  # largest size of one line, in bytes, and of one value, in characters
MAX_JSON_VALUES = 2**22  # largest number of members and elements of a file

_HALF_SURROGATE = re.compile(
    rb"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]", re.DOTALL
)
_MAX_WORD_CHARACTERS = 12  # an error may be reported so many characters before a cut in a word
_WHITE_SPACE = re.compile(r"[ \t\n\r]*")


def read_text(path: str | Path) -> str:
    """The text of a JSON file of bounded size; a StudyError names the file."""
    try:
        with open(path, "rb") as file:
            contents = file.read(MAX_JSON_BYTES + 1)
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error
    return as_text(contents, str(path))


def all_parts(text: str, where: str) -> list[tuple[str | None, Any]]:
    """All that `parts` yields, at once: of a text of no more than `MAX_LINE_BYTES` characters."""
    if len(text) > MAX_LINE_BYTES:
        raise StudyError("json-text-too-large", where=where, most_megabytes=MAX_LINE_BYTES // 2**20)
    return list(parts(text, where))


def as_text(contents: bytes | bytearray, where: str) -> str:
    """Bytes of bounded number as text; a StudyError says where they are from."""
    if len(contents) > MAX_JSON_BYTES:
        raise StudyError("json-text-too-large", where=where, most_megabytes=MAX_JSON_BYTES // 2**20)
    try:
        return contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StudyError("file-not-json", where=where, reason=reason(error)) from None


def parts(text: str, where: str, lists: Collection[str] = ()) -> Iterator[tuple[str | None, Any]]:
    """Yield the members of an object (key, value), or the elements of a list (None, value)."""
    try:
        cursor = _Cursor(text, where)
        if cursor.peek() == "[":
            for element in cursor.elements():
                yield None, element
        else:
            yield from cursor.members(lists)
        if cursor.position != len(text):
            raise ValueError(f"something follows its end at character {cursor.position}")
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError("json-file-damaged", where=where, reason=reason(error)) from None


class _Cursor:
    """A offset in a text, always behind white space, and the piece of text around it."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where, self.position, self.count = text, where, 0, 0
        self._skip()
        self._cut(0)

    def _cut(self, start: int) -> None:
        """Take the piece that begins at a place: all of a short text."""
        self.start, self.end = start, min(len(self.text), start + MAX_LINE_BYTES)
        self.piece = self.text[start : self.end]

    def _skip(self) -> None:
        blanks = _WHITE_SPACE.match(self.text, self.position)
        assert blanks is not None
        self.position = blanks.end()

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def take(self, expected: str) -> str:
        """Read the next character, which must be one of the expected."""
        if (character := self.peek()) not in tuple(expected):
            what = repr(character) if character else "its end"
            raise ValueError(
                f"{what} at character {self.position} where {expected[-1]!r} was expected"
            )
        self.position += 1
        self._skip()
        return character

    def value(self) -> Any:
        self.count += 1
        if self.count > MAX_JSON_VALUES:
            raise StudyError("json-with-many-values", where=self.where, most=MAX_JSON_VALUES)
        item = self._in_piece()
        if item is None and self.start < self.position:
            self._cut(self.position)
            item = self._in_piece()
        if item is None:
            most = MAX_LINE_BYTES // 2**20
            raise StudyError(
                "json-value-too-large", where=self.where, character=self.position, most=most
            )
        value, self.position = item
        self._skip()
        return value

    def _in_piece(self) -> tuple[Any, int] | None:
        """The value and its end; None where it may go on behind the piece."""
        last = self.end == len(self.text)
        if self.position >= self.end and not last:
            return None
        try:
            value, end = strict_json.beginning(self.piece, self.position - self.start)
        except json.JSONDecodeError as error:
            text_ended = error.msg.startswith("Unterminated string")
            if not last and (text_ended or error.pos > len(self.piece) - _MAX_WORD_CHARACTERS):
                return None
            raise ValueError(f"{error.msg} at character {self.start + error.pos}") from None
        return (value, self.start + end) if last or end < len(self.piece) else None

    def elements(self) -> Iterator[Any]:
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        while True:
            yield self.value()
            if self.take(",]") == "]":
                return

    def members(self, lists: Collection[str]) -> Iterator[tuple[str, Any]]:
        """Yield the members of the object that begins here, some lists an element at a time."""
        self.take("{")
        keys: set[str] = set()
        if self.peek() == "}":
            self.take("}")
            return
        while True:
            if self.peek() != '"':
                raise ValueError(f"no key at character {self.position}")
            key = self.value()
            if key in keys:
                raise ValueError(f"the key {key[:50]!r} is given twice")
            keys.add(key)
            self.take(":")
            if key in lists and self.peek() == "[":
                for element in self.elements():
                    yield key, element
            else:
                yield key, self.value()
            if self.take(",}") == "}":
                return


def first_object(path: str | Path) -> dict[str, Any]:
    """Read the first object of JSON Lines, or of a list; a StudyError if there is none."""
    try:
        if _is_list(path):
            for first in _objects(path):
                return first
        else:
            with open(path, "rb") as file:
                for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
                    if line.strip():
                        return _object(line.removeprefix(_UTF8_MARK), number, str(path))
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error
    raise StudyError("json-lines-file-empty", path=path)


def are_lines(path: str | Path) -> bool:
    """Test whether a file of any name holds JSON Lines: two objects on successive lines."""
    try:
        with open(path, "rb") as file:
            pieces = iter(lambda: file.readline(MAX_LINE_BYTES), b"")
            lines = (piece.removeprefix(_UTF8_MARK).strip() for piece in pieces)
            first = next(filter(None, lines), b"")
            return first[:1] + first[-1:] == b"{}" and file.read(2**16).lstrip()[:1] == b"{"
    except OSError:
        return False


def _is_list(path: str | Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2**16).removeprefix(_UTF8_MARK).lstrip()[:1] == b"["


def _objects(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the elements of a file's list, which have to be objects."""
    for number, (_, element) in enumerate(parts(read_text(path), str(path)), 1):
        if not isinstance(element, dict):
            raise StudyError("json-element-no-object", where=path, element=number)
        yield element


def fields(
    path: str | Path,
    paths: Mapping[str, Sequence[str]],  # the keys to each column
    *,
    unique: Collection[str] = (),
    advance: Callable[[int], None] | None = None,  # gets the MB of each block, at least 1
) -> Iterator[pl.DataFrame]:
    """Read some fields of every line of JSON Lines, a block at a time, or of a list's objects."""
    try:
        if _is_list(path):
            yield _table(_objects(path), paths, str(path))
            return
        with open(path, "rb") as file:
            while block := file.read(JSON_BLOCK_BYTES):
                start = file.tell() - len(block)
                block += file.readline(MAX_LINE_BYTES)
                if len(block) >= MAX_LINE_BYTES:
                    raise StudyError(
                        "json-line-too-long",
                        path=path,
                        line=_lines_before(path, start) + 1,
                        most_megabytes=MAX_LINE_BYTES // 2**20,
                    )
                if start == 0:
                    block = block.removeprefix(_UTF8_MARK)
                table = _fields_by_polars(block, paths, unique)
                if table is None:
                    # Line by line, to name the faulty one.
                    lines = enumerate(block.split(b"\n"), _lines_before(path, start) + 1)
                    objects = (_object(each, n, str(path)) for n, each in lines if each.strip())
                    table = _table(objects, paths, str(path))
                yield table
                if advance is not None:
                    advance(max(1, len(block) >> 20))
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error


_UTF8_MARK = b"\xef\xbb\xbf"  # of UTF-8, which some editors write


def _lines_before(path: str | Path, end: int) -> int:
    number = 0
    with open(path, "rb") as file:
        while end > 0 and (block := file.read(min(end, JSON_BLOCK_BYTES))):
            number, end = number + block.count(b"\n"), end - len(block)
    return number


def _fields_by_polars(
    block: bytes, paths: Mapping[str, Sequence[str]], unique: Collection[str]
) -> pl.DataFrame | None:
    """Read fields by polars, which takes the first of repeated keys; None if there may be any."""
    # Half a surrogate pair is not text, but polars makes another character of it.
    if (b"\\ud" in block or b"\\uD" in block) and _HALF_SURROGATE.search(block):
        return None
    try:
        table = pl.read_ndjson(block, schema=_schema(list(paths.values())))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    for name in unique:
        key = json.dumps(paths[name][-1], ensure_ascii=False).encode() + b":"
        if block.count(key) != len(table):
            return None
    if all(len(keys) == 1 for keys in paths.values()):  # a query would cost more than the copy
        flat = pl.DataFrame([table[keys[0]].alias(name) for name, keys in paths.items()])
    else:
        columns = {
            name: reduce(lambda column, key: column.struct.field(key), rest, pl.col(first))
            for name, (first, *rest) in paths.items()
        }
        flat = table.select(**columns)
    return None if any(flat[name].null_count() for name in unique) else flat


def _schema(paths: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Build polars' schema of some paths: text, or an object that holds some."""
    schema: dict[str, Any] = {}
    for key in dict.fromkeys(path[0] for path in paths):
        inner = [path[1:] for path in paths if path[0] == key and len(path) > 1]
        schema[key] = pl.Struct(_schema(inner)) if inner else pl.String()
    return schema


def _table(
    objects: Iterable[Mapping[str, Any]], paths: Mapping[str, Sequence[str]], where: str
) -> pl.DataFrame:
    rows = [[as_word(dig_value(each, keys), where) for keys in paths.values()] for each in objects]
    return pl.DataFrame(rows, schema=dict.fromkeys(paths, pl.String()), orient="row")


def _object(line: bytes, number: int, where: str) -> dict[str, Any]:
    try:
        text = line.strip().decode("utf-8")
        value, end = strict_json.beginning(text)
        if end != len(text):
            raise ValueError(f"something follows its end at character {end}")
        if not isinstance(value, dict):
            raise ValueError("no object")
    except ValueError as error:
        raise StudyError(
            "json-line-damaged", where=where, line=number, reason=reason(error)
        ) from None
    return value


def dig_value(value: Any, keys: Sequence[str]) -> Any:
    """Look up a path of keys in nested objects; None if one is missing."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def as_word(value: Any, where: str) -> str | None:
    """A value of JSON as text: a text as it is, else as JSON writes it, None for null."""
    if value is None:
        return None
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise StudyError("text-not-unicode", where=where, text=value[:50]) from None
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return json.dumps(value)
