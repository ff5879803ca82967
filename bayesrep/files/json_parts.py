"""Large JSON files a part at a time, and JSON Lines of any length a block at a time.

Of logs with gigabytes of text a few fields are used. A file of JSON is text in memory, but its
members, and the elements of its lists, are made into objects one after the other. Of JSON Lines a
block is in memory; polars finds the fields of its lines, and where it finds anything odd the block
is read again line by line, to name the line and the rule. What is called JSON Lines may also be one
list of objects, as some tools write it.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, reason
from bayesrep.files import strict_json

LARGEST = 2**28
"""Bytes of a JSON file, or of all that is read of an archive."""
BLOCK = 2**21
"""Bytes of JSON Lines that are read at once: few enough to stay in a processor's cache."""
LONGEST = 2**26
"""Bytes of one line, and characters of one value: what is made into objects at once."""
VALUES = 2**22
"""Members and elements of a file that are made into objects one after the other."""

_HALF = re.compile(
    rb"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]", re.DOTALL
)
_LONGEST_WORD = 12  # characters behind the place of an error that an end in a word makes
_SPACE = re.compile(r"[ \t\n\r]*")


def read_text(path: str | Path) -> str:
    """The text of a JSON file of bounded size; a StudyError names the file."""
    try:
        with open(path, "rb") as file:
            contents = file.read(LARGEST + 1)
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error
    return as_text(contents, str(path))


def as_text(contents: bytes | bytearray, where: str) -> str:
    """Bytes of bounded number as text; a StudyError says where they are from."""
    if len(contents) > LARGEST:
        raise StudyError("json-text-too-large", where=where, most_megabytes=LARGEST // 2**20)
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
        if cursor.at != len(text):
            raise ValueError(f"something follows its end at character {cursor.at}")
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError("json-file-damaged", where=where, reason=reason(error)) from None


def all_parts(text: str, where: str) -> list[tuple[str | None, Any]]:
    """All that `parts` yields, at once: of a text of no more than `LONGEST` characters."""
    if len(text) > LONGEST:
        raise StudyError("json-text-too-large", where=where, most_megabytes=LONGEST // 2**20)
    return list(parts(text, where))


class _Cursor:
    """A place in a text, always behind white space, and the piece of the text that it is in."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where, self.at, self.count = text, where, 0, 0
        self._skip()
        self._cut(0)

    def _cut(self, start: int) -> None:
        """Take the piece that begins at a place: all of a short text."""
        self.start, self.end = start, min(len(self.text), start + LONGEST)
        self.piece = self.text[start : self.end]

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def peek(self) -> str:
        """The next character, empty at the end."""
        return self.text[self.at : self.at + 1]

    def take(self, expected: str) -> str:
        """The next character, which has to be one of some."""
        if (found := self.peek()) not in tuple(expected):
            what = repr(found) if found else "its end"
            raise ValueError(f"{what} at character {self.at} where {expected[-1]!r} was expected")
        self.at += 1
        self._skip()
        return found

    def value(self) -> Any:
        """The value that begins here."""
        self.count += 1
        if self.count > VALUES:
            raise StudyError("json-with-many-values", where=self.where, most=VALUES)
        found = self._in_piece()
        if found is None and self.start < self.at:
            self._cut(self.at)
            found = self._in_piece()
        if found is None:
            facts = {"where": self.where, "character": self.at, "most": LONGEST // 2**20}
            raise StudyError("json-value-too-large", **facts)
        value, self.at = found
        self._skip()
        return value

    def _in_piece(self) -> tuple[Any, int] | None:
        """The value and its end; None where it may go on behind the piece."""
        last = self.end == len(self.text)
        if self.at >= self.end and not last:
            return None
        try:
            value, end = strict_json.beginning(self.piece, self.at - self.start)
        except json.JSONDecodeError as error:
            text_ended = error.msg.startswith("Unterminated string")
            if not last and (text_ended or error.pos > len(self.piece) - _LONGEST_WORD):
                return None
            raise ValueError(f"{error.msg} at character {self.start + error.pos}") from None
        return (value, self.start + end) if last or end < len(self.piece) else None

    def elements(self) -> Iterator[Any]:
        """The elements of the list that begins here."""
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        while True:
            yield self.value()
            if self.take(",]") == "]":
                return

    def members(self, lists: Collection[str]) -> Iterator[tuple[str, Any]]:
        """The members of the object that begins here, some lists an element at a time."""
        self.take("{")
        seen: set[str] = set()
        if self.peek() == "}":
            self.take("}")
            return
        while True:
            if self.peek() != '"':
                raise ValueError(f"no key at character {self.at}")
            key = self.value()
            if key in seen:
                raise ValueError(f"the key {key[:50]!r} is given twice")
            seen.add(key)
            self.take(":")
            if key in lists and self.peek() == "[":
                for element in self.elements():
                    yield key, element
            else:
                yield key, self.value()
            if self.take(",}") == "}":
                return


def first_object(path: str | Path) -> dict[str, Any]:
    """The first object of JSON Lines, or of a list; a StudyError says why there is none."""
    try:
        if _is_list(path):
            for found in _objects(path):
                return found
        else:
            with open(path, "rb") as file:
                for number, line in enumerate(iter(lambda: file.readline(LONGEST), b""), 1):
                    if line.strip():
                        return _object(line.removeprefix(_MARK), number, str(path))
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error
    raise StudyError("json-lines-file-empty", path=path)


def are_lines(path: str | Path) -> bool:
    """Whether a file holds JSON Lines by any name: two objects, one below the other."""
    try:
        with open(path, "rb") as file:
            pieces = iter(lambda: file.readline(LONGEST), b"")
            lines = (piece.removeprefix(_MARK).strip() for piece in pieces)
            first = next(filter(None, lines), b"")
            return first[:1] + first[-1:] == b"{}" and file.read(2**16).lstrip()[:1] == b"{"
    except OSError:
        return False


def _is_list(path: str | Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2**16).removeprefix(_MARK).lstrip()[:1] == b"["


def _objects(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the elements of a file's list, which have to be objects."""
    for number, (_, element) in enumerate(parts(read_text(path), str(path)), 1):
        if not isinstance(element, dict):
            raise StudyError("json-element-no-object", where=path, element=number)
        yield element


def fields(
    path: str | Path,
    wanted: Mapping[str, Sequence[str]],
    *,
    once: Collection[str] = (),
    advance: Callable[[int], None] | None = None,
) -> Iterator[pl.DataFrame]:
    """Read some fields of every line of JSON Lines, a block at a time, or of a list's objects.

    `wanted` has the keys that lead to the value of every column, `("evaluation", "score")`; in the
    columns of `once`, which nearly every line has, a key given twice is noticed. Columns are text:
    of numbers, true and false and lists what JSON writes, null where a field is missing or null.
    `advance` hears of every block how many MB it has, 1 at least.
    """
    try:
        if _is_list(path):
            yield _table(_objects(path), wanted, str(path))
            return
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                start = file.tell() - len(block)
                block += file.readline(LONGEST)
                if len(block) >= LONGEST:
                    raise StudyError(
                        "json-line-too-long",
                        path=path,
                        line=_lines_before(path, start) + 1,
                        most_megabytes=LONGEST // 2**20,
                    )
                if start == 0:
                    block = block.removeprefix(_MARK)
                table = _fields_by_polars(block, wanted, once)
                if table is None:
                    number = _lines_before(path, start) + 1
                    table = _fields_by_line(block, number, wanted, str(path))
                yield table
                if advance is not None:
                    advance(max(1, len(block) >> 20))
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error


_MARK = b"\xef\xbb\xbf"  # of UTF-8, which some editors write


def _lines_before(path: str | Path, end: int) -> int:
    """How many lines end before a place in a file."""
    number = 0
    with open(path, "rb") as file:
        while end > 0 and (block := file.read(min(end, BLOCK))):
            number, end = number + block.count(b"\n"), end - len(block)
    return number


def _fields_by_polars(
    block: bytes, wanted: Mapping[str, Sequence[str]], once: Collection[str]
) -> pl.DataFrame | None:
    """The fields as polars finds them, which takes the first of a key given twice; None if odd.

    Half a surrogate pair is not text, and polars makes another character of it.
    """
    if (b"\\ud" in block or b"\\uD" in block) and _HALF.search(block):
        return None
    try:
        table = pl.read_ndjson(block, schema=_schema(list(wanted.values())))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    for name in once:
        key = json.dumps(wanted[name][-1], ensure_ascii=False).encode() + b":"
        if block.count(key) != len(table):
            return None
    if all(len(keys) == 1 for keys in wanted.values()):  # a query would cost more than the copy
        flat = pl.DataFrame([table[keys[0]].alias(name) for name, keys in wanted.items()])
    else:
        flat = table.select(_field(keys).alias(name) for name, keys in wanted.items())
    return None if any(flat[name].null_count() for name in once) else flat


def _schema(paths: Sequence[Sequence[str]]) -> dict[str, Any]:
    """What polars is to find: text, or an object that holds some."""
    found: dict[str, Any] = {}
    for key in dict.fromkeys(path[0] for path in paths):
        inner = [path[1:] for path in paths if path[0] == key and len(path) > 1]
        found[key] = pl.Struct(_schema(inner)) if inner else pl.String()
    return found


def _field(keys: Sequence[str]) -> pl.Expr:
    column = pl.col(keys[0])
    for key in keys[1:]:
        column = column.struct.field(key)
    return column


def _fields_by_line(
    block: bytes, number: int, wanted: Mapping[str, Sequence[str]], where: str
) -> pl.DataFrame:
    """The same, line by line."""
    lines = enumerate(block.split(b"\n"), number)
    return _table((_object(line, at, where) for at, line in lines if line.strip()), wanted, where)


def _table(
    objects: Iterable[Mapping[str, Any]], wanted: Mapping[str, Sequence[str]], where: str
) -> pl.DataFrame:
    rows = [[as_word(dig_value(each, keys), where) for keys in wanted.values()] for each in objects]
    return pl.DataFrame(rows, schema=dict.fromkeys(wanted, pl.String()), orient="row")


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
    """What keys, one after the other, lead to in objects; None where one is missing."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def as_word(value: Any, where: str) -> str | None:
    """A value of JSON as text: a text as it is, anything else as JSON writes it, None for null.

    Half a surrogate pair is not text: a StudyError names the file.
    """
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
