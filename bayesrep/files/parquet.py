"""Parquet files, ours and strangers': the one place where they are read and written.

What is read is a plain table: text, whole numbers, floats, true and false. A file that we write
holds its own SHA-256 in its metadata, under `SEAL`; the digest is that of the file with zeros in
the digest's place. A file that does not fit its digest was changed after it was written, and is
refused. Tables that other programs wrote have none, and there is nothing to compare them with.
"""

import hashlib
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.atomic import replaced_file
from bayesrep.errors import StudyError, Violation, listing, reason
from bayesrep.files import strict_json, trial

SEAL = "bayesrep.sha256"
_MARK = f"{SEAL}:".encode()  # before the digest: a seal of which a part is damaged is still one
_BLANK = b"0" * 64
_WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
_PLAIN = (*_WHOLE, pl.Float32, pl.Float64, pl.Boolean, pl.String, pl.Categorical, pl.Enum)
TOGETHER = 32  # files are read at once: a few million rows at most
_ALWAYS, _RATIO = 2**26, 1000  # a table may take so many bytes, or so many times those of its file


def read(
    file: Path, where: str, columns: Collection[str], *, further: Collection[str] | None = ()
) -> pl.DataFrame:
    """Read a table.

    Parameters
    ----------
    file, where
        The file, and what a message calls it.
    columns
        What the table needs: columns, or `column.field` of what a column is made of.
    further
        Columns to read where they are there; None for all of them.

    Raises
    ------
    StudyError
        In one line: a file that is missing, damaged or needs too much memory, a column that is
        missing or of a type that no table here has.
    """
    if not file.is_file():
        raise StudyError("parquet-file-missing", where=where)
    more = None if further is None else list(further)
    if (line := trial.fault(examine, file, where, list(columns), more)) is not None:
        raise StudyError(line)
    try:
        return _table(file, columns, further)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise StudyError(_unreadable(where, error)) from error


def read_each(
    files: Sequence[tuple[Path, str]], columns: Collection[str], *, further: Collection[str]
) -> Iterator[pl.DataFrame | Violation]:
    """Read tables as `read` does, or say what is wrong with one; files that are alike together."""
    for start in range(0, len(files), TOGETHER):
        some = files[start : start + TOGETHER]
        tables = _read_together([file for file, _ in some], columns, further)
        if tables is not None:
            yield from tables
            continue
        for file, where in some:  # whatever is wrong is told of the file that it is wrong with
            try:
                yield read(file, where, columns, further=further)
            except StudyError as error:
                yield error.violation


def _read_together(
    files: Sequence[Path], columns: Collection[str], further: Collection[str]
) -> list[pl.DataFrame] | None:
    """Tables that are alike, in one go; None where they are not, or should not be read."""
    if len(files) < 2 or not all(file.is_file() for file in files):
        return None
    names = [str(file.absolute()) for file in files]
    asked = list(columns), list(further)
    if trial.fault(examine_together, names[0], "", names, *asked, beside=names[1:]) is not None:
        return None
    try:
        return _tables(names, *asked)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None


def examine_together(
    _: str, where: str, files: Sequence[str], columns: Collection[str], further: Collection[str]
) -> Violation | None:
    """Say something where files should not be read together; called in another process."""
    for file in files:
        if line := _broken_seal(file, where):
            return line
    tables = _tables(files, columns, further)
    if tables is None:
        return Violation("parquet-file-unreadable", where=where, reason="files differ")
    for file, table in zip(files, tables, strict=True):
        size = Path(file).stat().st_size
        line = strange_type(table, columns, where) or _too_long(table, size, where)
        if line or (line := too_wide(table, size, where)):
            return line
    return None


def _tables(
    files: Sequence[str], columns: Collection[str], further: Collection[str]
) -> list[pl.DataFrame] | None:
    """The tables of files with the same columns, none of them empty; None where they are others."""
    first, *others = (pl.read_parquet_schema(file) for file in files)
    read = list(dict.fromkeys((*columns, *(name for name in further if name in first))))
    if any(schema != first for schema in others) or not set(read) <= set(first):
        return None
    from_file = "file" + "_" * max(map(len, first))  # longer than any column's name
    scanned = pl.scan_parquet(list(files), glob=False, include_file_paths=from_file)
    whole = scanned.select(*read, from_file).collect()
    runs = whole[from_file].rle().struct.unnest()
    if runs["value"].to_list() != list(files):
        return None
    starts = runs["len"].cum_sum().to_list()
    table = whole.drop(from_file)
    return [
        table.slice(end - length, length)
        for end, length in zip(starts, runs["len"].to_list(), strict=True)
    ]


def write(table: pl.DataFrame, file: Path, facts: Mapping[str, str] | None = None) -> None:
    """Write a table, sealed and whole, in place of what is there; `facts` go into its metadata."""
    stream = io.BytesIO()
    table.write_parquet(stream, metadata={**(facts or {}), SEAL: (_MARK + _BLANK).decode()})
    before, after = stream.getvalue().rsplit(_MARK + _BLANK, 1)
    digest = _digest(before, after)
    with replaced_file(file) as partial, open(partial, "wb") as target:
        target.writelines((before, _MARK, digest, after))


def examine(
    file: str, where: str, columns: Collection[str], further: Collection[str] | None
) -> Violation | None:
    """Say in one line why `read` should not read a file, or nothing; called in another process."""
    try:
        schema = pl.read_parquet_schema(file)
        if line := _broken_seal(file, where):
            return line
        if missing := [name for name in columns if _column(name, schema) is None]:
            return Violation(
                "parquet-columns-missing",
                where=where,
                columns=listing(missing, "column"),
                needed=", ".join(columns),
            )
        table = _table(Path(file), columns, further)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        return _unreadable(where, error)
    size = Path(file).stat().st_size
    return (
        strange_type(table, columns, where)
        or _too_long(table, size, where)
        or too_wide(table, size, where)
    )


def index_names(metadata: Mapping[Any, Any]) -> list[str]:
    """The columns that are a data frame's index, as pandas says in the metadata of its tables."""
    try:
        told = strict_json.parse(metadata.get("pandas") or metadata[b"pandas"].decode())
        return [name for name in told["index_columns"] if isinstance(name, str)]
    except (KeyError, TypeError, ValueError):
        return []


def _too_long(table: pl.DataFrame, size: int, where: str) -> Violation | None:
    # Of texts, polars estimates the letters, not the 16 bytes that each takes beside them.
    texts = sum(isinstance(kind, pl.String) for kind in table.dtypes)
    if table.estimated_size() + 16 * texts * len(table) > _allowed_bytes(size):
        return Violation(
            "parquet-rows-implausible", where=where, rows=table.height, file_bytes=size
        )
    return None


def too_wide(table: pl.DataFrame, size: int, where: str) -> Violation | None:
    """Say which column of a file of `size` bytes is too wide for an array of its texts."""
    textual = pl.String | pl.Categorical | pl.Enum
    names = [name for name, kind in table.schema.items() if isinstance(kind, textual)]
    lengths = table.select(pl.col(names).cast(pl.String).str.len_chars().max().fill_null(0))
    for name, longest in zip(names, lengths.row(0) if names else (), strict=True):
        if 4 * len(table) * longest > _allowed_bytes(size):
            return Violation("text-implausibly-long", where=where, column=name, characters=longest)
    return None


def _allowed_bytes(size: int) -> int:
    """How many bytes of memory a file of some size may take."""
    return max(_ALWAYS, _RATIO * size)


def _table(file: Path, columns: Collection[str], further: Collection[str] | None) -> pl.DataFrame:
    if further is None:
        return pl.read_parquet(file, glob=False)
    schema = pl.read_parquet_schema(file)
    wanted = dict.fromkeys((*columns, *(name for name in further if name in schema)))
    found = {name: each for name in wanted if (each := _column(name, schema)) is not None}
    read = dict.fromkeys(name if name in schema else name.split(".")[0] for name in found)
    table = pl.read_parquet(file, columns=list(read), glob=False)
    return table if list(read) == list(found) else table.select(**found)


def _column(name: str, schema: Mapping[str, pl.DataType]) -> pl.Expr | None:
    """A column, or a field of one; None where there is none."""
    if name in schema:
        return pl.col(name)
    first, *fields = name.split(".")
    kind, found = schema.get(first), pl.col(first)
    for field in fields:
        inner = dict(kind) if isinstance(kind, pl.Struct) else {}
        kind, found = inner.get(field), found.struct.field(field)
    return None if kind is None else found


def _unreadable(where: str, error: BaseException) -> Violation:
    return Violation("parquet-file-unreadable", where=where, reason=reason(error))


def strange_type(table: pl.DataFrame, columns: Collection[str], where: str) -> Violation | None:
    """Say which column is of a type that no table here has; `columns` are those needed."""
    for name, kind in table.schema.items():
        # A column without any value has no type, and says nothing where it is not needed.
        if not isinstance(kind, _PLAIN) and not (isinstance(kind, pl.Null) and name not in columns):
            return Violation("column-type-unknown", where=where, column=name, dtype=kind)
    return None


def _broken_seal(file: str, where: str) -> Violation | None:
    contents = Path(file).read_bytes()
    if SEAL.encode() not in contents:
        return None
    before, mark, rest = contents.rpartition(_MARK)
    if mark and _digest(before, rest[len(_BLANK) :]) == rest[: len(_BLANK)]:
        return None
    return Violation("parquet-file-altered", where=where, metadata_entry=SEAL)


def _digest(before: bytes, after: bytes) -> bytes:
    made = hashlib.sha256(before)
    for part in (_MARK, _BLANK, after):
        made.update(part)
    return made.hexdigest().encode()
