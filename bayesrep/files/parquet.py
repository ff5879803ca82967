"""Read and write Parquet files of plain columns, ours and strangers'.

Ours hold their SHA-256 under `SEAL_KEY`, with zeros in its place; an altered one is refused.
"""

import io
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.atomic import replaced_file
from bayesrep.errors import StudyError, Violation, listing, reason
from bayesrep.files import sandbox, strict_json
from bayesrep.files.digests import digest_parts

SEAL_KEY = "bayesrep.sha256"
_SEAL_MARK = f"{SEAL_KEY}:".encode()  # before the digest: a damaged seal is still recognised
_BLANK_DIGEST = b"0" * 64
_PLAIN_TYPES = (
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
    *(pl.Float32, pl.Float64, pl.Boolean, pl.String, pl.Categorical, pl.Enum),
)
_FREE_BYTES, _MEMORY_RATIO = 2**26, 1000  # of a table in memory: at least, or times its file's


def read(
    file: Path, where: str, columns: Collection[str], *, further: Collection[str] | None = ()
) -> pl.DataFrame:
    """Read the needed columns, or `column.field` of one, and the `further` ones there (None: all).

    A message calls the file `where`.
    """
    if not file.is_file():
        raise StudyError("parquet-file-missing", where=where)
    more = None if further is None else list(further)
    if (line := sandbox.fault(examine, file, where, list(columns), more)) is not None:
        raise StudyError(line)
    try:
        return _table(file, columns, further)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise StudyError(_unreadable(where, error)) from error


def write(table: pl.DataFrame, file: Path, facts: Mapping[str, str] | None = None) -> None:
    """Write a table, sealed and whole, in place of what is there; `facts` go into its metadata."""
    stream = io.BytesIO()
    table.write_parquet(
        stream, metadata={**(facts or {}), SEAL_KEY: (_SEAL_MARK + _BLANK_DIGEST).decode()}
    )
    before, after = stream.getvalue().rsplit(_SEAL_MARK + _BLANK_DIGEST, 1)
    digest = _digest(before, after)
    with replaced_file(file) as partial, open(partial, "wb") as target:
        target.writelines((before, _SEAL_MARK, digest, after))


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
    if line := strange_type(table, columns, where):
        return line
    # Of texts, polars estimates the letters, not the 16 bytes that each takes beside them.
    texts = sum(isinstance(kind, pl.String) for kind in table.dtypes)
    if table.estimated_size() + 16 * texts * len(table) > _allowed_bytes(size):
        rows = table.height
        return Violation("parquet-rows-implausible", where=where, rows=rows, file_bytes=size)
    return too_wide(table, size, where)


def index_names(metadata: Mapping[Any, Any]) -> list[str]:
    """List the columns of a data frame's index, from pandas' metadata."""
    try:
        described = strict_json.parse(metadata.get("pandas") or metadata[b"pandas"].decode())
        return [name for name in described["index_columns"] if isinstance(name, str)]
    except (KeyError, TypeError, ValueError):
        return []


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
    return max(_FREE_BYTES, _MEMORY_RATIO * size)


def _table(file: Path, columns: Collection[str], further: Collection[str] | None) -> pl.DataFrame:
    if further is None:
        table = pl.read_parquet(file, glob=False)
        return table if columns else read_decimals(table)  # of a table that is not ours
    schema = pl.read_parquet_schema(file)
    names = dict.fromkeys((*columns, *(name for name in further if name in schema)))
    expressions = {name: each for name in names if (each := _column(name, schema)) is not None}
    read = dict.fromkeys(name if name in schema else name.split(".")[0] for name in expressions)
    table = pl.read_parquet(file, columns=list(read), glob=False)
    return table if list(read) == list(expressions) else table.select(**expressions)


def read_decimals(table: pl.DataFrame) -> pl.DataFrame:
    """The table with its decimals, which sums in databases are, as floats."""
    return table.with_columns(pl.col(pl.Decimal).cast(pl.Float64))


def _column(name: str, schema: Mapping[str, pl.DataType]) -> pl.Expr | None:
    """Select a column, or a field of one; None if there is none."""
    if name in schema:
        return pl.col(name)
    first, *fields = name.split(".")
    kind, expression = schema.get(first), pl.col(first)
    for field in fields:
        inner = dict(kind) if isinstance(kind, pl.Struct) else {}
        kind, expression = inner.get(field), expression.struct.field(field)
    return None if kind is None else expression


def _unreadable(where: str, error: BaseException) -> Violation:
    return Violation("parquet-file-unreadable", where=where, reason=reason(error))


def strange_type(table: pl.DataFrame, columns: Collection[str], where: str) -> Violation | None:
    """Say which column is of a type that no table here has; `columns` are those needed."""
    for name, kind in table.schema.items():
        # A column without any value has no type, and says nothing where it is not needed.
        if not isinstance(kind, _PLAIN_TYPES) and not (
            isinstance(kind, pl.Null) and name not in columns
        ):
            return Violation("column-type-unknown", where=where, column=name, dtype=kind)
    return None


def _broken_seal(file: str, where: str) -> Violation | None:
    contents = Path(file).read_bytes()
    if SEAL_KEY.encode() not in contents:
        return None
    before, mark, rest = contents.rpartition(_SEAL_MARK)
    if mark and _digest(before, rest[len(_BLANK_DIGEST) :]) == rest[: len(_BLANK_DIGEST)]:
        return None
    return Violation("parquet-file-altered", where=where, metadata_entry=SEAL_KEY)


def _digest(before: bytes, after: bytes) -> bytes:
    return digest_parts([before, _SEAL_MARK, _BLANK_DIGEST, after]).encode()
