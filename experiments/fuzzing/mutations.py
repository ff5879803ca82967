"""What happens to a file: bytes go wrong, or somebody writes a strange one on purpose.

A mutation takes a random number generator and the contents and returns other contents. Those of
`bytewise` are what disks, transfers and fuzzers do; those of `structured` know the format and
write something well-formed that the sound file is not.
"""

import io
import json
import re
import struct
import sys
import tarfile
import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random
from typing import Any

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

import numpy as np
import polars as pl

Mutation = Callable[[Random, bytes], bytes]

HUGE = (2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1, 10**12)


def bytewise(random: Random, data: bytes) -> bytes:
    """One to three accidents, half of them among the first or last 300 bytes."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        data = random.choice(ACCIDENTS)(random, data)
    return data


def place(random: Random, data: bytes) -> int:
    """Where: anywhere, or near either end, where headers and footers are."""
    size = max(len(data), 1)
    near = min(300, size)
    return random.choice(
        (
            random.randrange(size),
            random.randrange(size),
            random.randrange(near),
            size - 1 - random.randrange(near),
        )
    )


def flip(random: Random, data: bytes) -> bytes:
    """One bit."""
    if not data:
        return data
    at = place(random, data)
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def overwrite(random: Random, data: bytes) -> bytes:
    """A few bytes at random."""
    at, size = place(random, data), random.choice((1, 1, 2, 4, 8))
    return data[:at] + random.randbytes(size) + data[at + size :]


def truncate(random: Random, data: bytes) -> bytes:
    """The end is gone."""
    return data[: place(random, data)]


def drop(random: Random, data: bytes) -> bytes:
    """A part is gone."""
    at = place(random, data)
    return data[:at] + data[at + random.choice((1, 4, 16, 512)) :]


def insert(random: Random, data: bytes) -> bytes:
    """A part too much."""
    at = place(random, data)
    return data[:at] + random.randbytes(random.choice((1, 4, 16))) + data[at:]


def duplicate(random: Random, data: bytes) -> bytes:
    """A part twice."""
    at, size = place(random, data), random.choice((1, 16, 512, 4096))
    return data[: at + size] + data[at:]


def blank(random: Random, data: bytes) -> bytes:
    """A run of zeros, as a hole in a sparse file."""
    at, size = place(random, data), random.choice((1, 8, 64, 512, 4096))
    return data[:at] + bytes(len(data[at : at + size])) + data[at + size :]


def enlarge(random: Random, data: bytes) -> bytes:
    """A length or count that is huge."""
    at, size = place(random, data), random.choice((2, 4, 8))
    number = random.choice(HUGE) % 256**size
    return data[:at] + number.to_bytes(size, random.choice(("little", "big"))) + data[at + size :]


ACCIDENTS: tuple[Mutation, ...] = (
    flip,
    flip,
    overwrite,
    truncate,
    drop,
    insert,
    duplicate,
    blank,
    enlarge,
)

# --------------------------------------------------------------------------------------- text

ODD_JSON: tuple[str, ...] = (
    "null",
    "true",
    "-1",
    "1.5",
    "1e999",
    "-1e999",
    "NaN",
    "Infinity",
    "9" * 400,
    "9" * 5000,
    "9223372036854775807",
    "9223372036854775808",
    '""',
    '"\\ud800"',
    '"\\u0000"',
    '"../../x"',
    '"a\\nb"',
    "[]",
    "{}",
    "[[]]",
    '{"": null}',
    "[" * 100 + "]" * 100,
    "[" * 200_000,
    "[" * 100_000 + "]" * 100_000,
    '{"a":' * 50_000 + "1" + "}" * 50_000,
    "[" + "0," * 20_000 + "0]",
)
"""Values, as text: some are nothing that `json` could write."""
MARK = "\x7fodd\x7f"


def json_value(random: Random, data: bytes) -> bytes:
    """A value anywhere replaced by an odd one; or a key renamed, dropped or given twice."""
    root = {"": json.loads(data)}
    parents = list(_containers(root))
    parent = random.choice(parents[: 1 + random.randrange(len(parents))])
    keys: list[Any] = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
    odd = random.choice(ODD_JSON)
    if not keys:
        return odd.encode()
    key, act = random.choice(keys), random.random()
    if isinstance(parent, dict) and parent is not root and act < 0.3:
        value = parent.pop(key)
        if act < 0.1:
            parent[str(key) + "x"] = value
        elif act < 0.2:
            parent[MARK] = value
            return _text(root).replace(MARK, str(key) + f'": {odd}, "{key}').encode()
    else:
        parent[key] = MARK
    return _text(root).replace(f'"{MARK}"', odd).encode("utf-8", "surrogatepass")


def json_lines(random: Random, data: bytes) -> bytes:
    """A value in one of the lines replaced as in `json_value`."""
    lines = data.splitlines(keepends=True)
    at = random.randrange(len(lines))
    lines[at] = json_value(random, lines[at]).replace(b"\n", b" ") + b"\n"
    return b"".join(lines)


def zipped_json(random: Random, data: bytes) -> bytes:
    """A member of an archive of JSON is another, or there is another one; packed as it may be."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    name = random.choice(list(members))
    act = random.randrange(6)
    if act < 3:
        members[name] = json_value(random, members[name])
    elif act == 3:
        members[name] = bytewise(random, members[name])
    elif act == 4:
        members[random.choice(("../x.json", "summaries.json ", "samples/1_epoch_1.json"))] = b"{}"
    else:
        members[name] = members[name][:-1] + b" " * random.choice((10**5, 3 * 10**7)) + b"]"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", random.choice((0, 8, 8, 12, 14, 93))) as file:
        for key, contents in members.items():
            file.writestr(key, contents)
    return stream.getvalue()


def _text(root: dict[str, Any]) -> str:
    return json.dumps(root[""], ensure_ascii=False)


def _containers(value: Any) -> Any:
    if isinstance(value, dict | list) and value:
        yield value
        for item in value.values() if isinstance(value, dict) else value[:50]:
            yield from _containers(item)


ODD_CELLS: tuple[str, ...] = (
    "",
    "-1",
    "1.5",
    "1e308",
    "1e999",
    "nan",
    "inf",
    "null",
    "9" * 30,
    "9223372036854775807",
    "18446744073709551615",
    "true",
    "no",
    "0x10",
    '"',
    '"a,b"',
    '"a\nb"',
    "\x00",
    "\ufeff",
    "\u202e",
    "²",
    "٣",
    "x" * 100_000,
    "../../etc/passwd",
    "=1+1",
    "n01440764 12 13 14 15",
)


def csv_cell(random: Random, data: bytes) -> bytes:
    """A cell, a row or a column is another."""
    rows = [line.split(",") for line in data.decode("utf-8", "replace").split("\n")]
    row = random.randrange(len(rows))
    column = random.randrange(len(rows[row]))
    odd = random.choice(ODD_CELLS)
    act = random.randrange(8)
    if act < 4:
        rows[row][column] = odd
    elif act == 4:
        rows[0][random.randrange(len(rows[0]))] = odd
    elif act == 5:
        rows.insert(row, list(random.choice(rows)))
    elif act == 6:
        del rows[row][column]
    else:
        rows = [[*cells, odd] for cells in rows]
    return "\n".join(",".join(cells) for cells in rows).encode("utf-8", "surrogatepass")


def line(random: Random, data: bytes) -> bytes:
    """A word or a line is another."""
    lines = [text.split(" ") for text in data.decode("utf-8", "replace").split("\n")]
    at = random.randrange(len(lines))
    act = random.randrange(4)
    if act == 0:
        lines.insert(at, list(random.choice(lines)))
    elif act == 1:
        del lines[at]
    else:
        lines[at][random.randrange(len(lines[at]))] = random.choice(ODD_CELLS)
    return "\n".join(" ".join(words) for words in lines).encode("utf-8", "surrogatepass")


ODD_TOML: tuple[str, ...] = (
    *(each for each in ODD_JSON if len(each) < 30_000),
    "[" * 2000,
    "[" * 2000 + "]" * 2000,
    "{a = 1}",
    "[[1, 2], [3.0, 4]]",
    '["a", 1, true]',
    "inf",
    "-nan",
    "1979-05-27T07:32:00Z",
    "'Normal(0, 1)'",
    "'GaussianRandomWalk(1.0, 5)'",
    f"'1:{'9' * 5000}'",
    "'3:1'",
    "'default'",
    f"{list(range(1, 1001))}",
    "'../../etc'",
    "'x\\u0000'",
    f"'{'x' * 5000}'",
)
_TOML_VALUES = re.compile(r'"[^"\n]*"|\[[^\[\]\n]*\]|\b\d[\d.]*|\btrue\b')
_TOML_NAMES = re.compile(r"[a-z_]\w*(?= =)")


def toml_value(random: Random, data: bytes) -> bytes:
    """A value is another, a name is another or very long, or a line is lost or is there twice."""
    text = data.decode("utf-8", "replace")
    for _ in range(random.choice((1, 1, 2))):
        act = random.random()
        words = list((_TOML_NAMES if act < 0.15 else _TOML_VALUES).finditer(text))
        lines = text.splitlines(keepends=True)
        if act > 0.9 and lines:
            at = random.randrange(len(lines))
            lines[at : at + 1] = random.choice(([], [lines[at]] * 2, [random.choice(lines)]))
            text = "".join(lines)
        elif words:
            word, other = random.choice(words), random.choice(words)[0]
            long = "a.b" * random.choice((3, 3000))
            odd = random.choice((other, long) if act < 0.15 else (other, *ODD_TOML))
            text = text[: word.start()] + odd + text[word.end() :]
    return text.encode("utf-8", "surrogatepass")


ODD_PARTS: tuple[str, ...] = (
    *(
        "()",
        "[]",
        "[0.5, 0.5]",
        "[[1.0]]",
        "None",
        "True",
        "'a'",
        "b'1'",
        "1j",
        "-1",
        "0",
        "1e-320",
    ),
    *(
        "1e400",
        "9" * 400,
        "1e6",
        "nan",
        "*[0, 1]",
        "x",
        "lambda: 1",
        "__import__('os').system('true')",
    ),
    *("(" * 190, "[" * 190, "-" * 1900 + "1", "\x00", "Normal(0, 1)", "Cauchy()", "ExpTransform()"),
    *("Normal.sample", "dist.util", "[x for x in (1,)]", "f'{1}'", "0, 1", "loc=0, loc=1", "**{}"),
)
_PRIOR_WORDS = re.compile(r"[A-Za-z_]\w*|[\d.]+|\[[^\[\]]*\]")


def prior_text(random: Random, data: bytes) -> bytes:
    """A name, a number or a list is another, such as a distribution of NumPyro's or a part."""
    import numpyro.distributions as dist

    text = data.decode("utf-8", "replace")
    for _ in range(random.choice((1, 1, 2, 3))):
        words = list(_PRIOR_WORDS.finditer(text))
        if not words:
            break
        word, name = random.choice(words), random.choice([*dist.__all__, *dist.transforms.__all__])
        parts = random.choices((*ODD_PARTS[:12], "1", "2.5"), k=random.randrange(4))
        call = f"{name}({', '.join(parts)})"
        odd = random.choice((name, call, random.choice(ODD_PARTS), "0.5", "3"))
        text = text[: word.start()] + odd + text[word.end() :]
    return text.encode("utf-8", "surrogatepass")


# ------------------------------------------------------------------------------------- tables


def parquet(random: Random, data: bytes) -> bytes:
    """A column of another type or with other values, or other rows; written as it should be."""
    frame = pl.read_parquet(io.BytesIO(data))
    act = random.random()
    if act < 0.15:
        frame = _other_rows(random, frame)
    elif act < 0.155:
        frame = pl.concat([frame.head(1)] * 2).select(pl.all().repeat_by(1_500_000).explode())
    elif frame.width:
        name = random.choice(frame.columns)
        frame = random.choice((_retyped, _revalued))(random, frame, name)
    stream = io.BytesIO()
    compression = random.choice(("zstd", "snappy", "lz4", "gzip", "brotli", "uncompressed"))
    frame.write_parquet(stream, compression=compression)
    written = stream.getvalue()
    return _declared(random, written, len(frame)) if random.random() < 0.2 else written


def _other_rows(random: Random, frame: pl.DataFrame) -> pl.DataFrame:
    name = random.choice(frame.columns)
    return random.choice(
        (
            frame.drop(name),
            frame.clear(),
            frame.head(1),
            frame.reverse(),
            pl.concat([frame, frame.tail(1)]),
            frame.with_columns(pl.col(name).alias(random.choice(("label", "group", "extra", "")))),
            frame.rename({name: name.upper()}),
        )
    )


def _retyped(random: Random, frame: pl.DataFrame, name: str) -> pl.DataFrame:
    column, size = frame[name], len(frame)
    numbers = pl.Series(range(size))
    odd = random.choice(
        (
            lambda: pl.Series([[value] for value in column.to_list()]),
            lambda: pl.Series([{"a": value} for value in column.to_list()]),
            lambda: pl.Series([[[[number]]] for number in range(size)]),
            lambda: numbers.cast(pl.Decimal(38, 2)),
            lambda: numbers.cast(pl.String).cast(pl.Binary),
            lambda: pl.Series([b"\xff\xfe"] * size),
            lambda: pl.Series([None] * size),
            lambda: pl.Series([None] * size, dtype=pl.String),
            lambda: pl.Series([timedelta(number) for number in range(size)]),
            lambda: numbers.cast(pl.Date),
            lambda: numbers.cast(pl.Datetime("ns", "UTC")),
            lambda: numbers.cast(pl.Time),
            lambda: column.cast(pl.String).cast(pl.Categorical),
            lambda: column.cast(pl.String),
            lambda: numbers.cast(pl.Float32),
            lambda: numbers.cast(pl.UInt64),
            lambda: numbers.cast(pl.Int128),
            lambda: numbers.cast(pl.Int8, strict=False),
            lambda: pl.Series([number % 2 == 0 for number in range(size)]),
            lambda: pl.Series([[1, 2]] * size, dtype=pl.Array(pl.Int64, 2)),
        )
    )()
    return frame.with_columns(odd.alias(name))


def _revalued(random: Random, frame: pl.DataFrame, name: str) -> pl.DataFrame:
    values = frame[name].to_list()
    odd = random.choice(
        (None, -1, 2**31, 2**62, 2**63 - 1, -(2**63), 2**64 - 1, 0.5, float("nan"), float("inf"))
        + (-float("inf"), 1e308, "", "odd", "9" * 1000, "a\x00b", "\u202e", True)
    )
    for _ in range(random.choice((1, 1, 3, len(values)))):
        if values:
            values[random.randrange(len(values))] = odd
    try:
        return frame.with_columns(pl.Series(name, values))
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return frame.with_columns(pl.Series(name, values, strict=False))


def _declared(random: Random, data: bytes, rows: int) -> bytes:
    """The number of rows, wherever the footer or a page says it, is another."""
    said = _varint(rows << 1)
    places = [at for at in range(len(data)) if data.startswith(said, at)]
    if not places:
        return data
    number = _varint(random.choice((0, 1, rows + 1, 10**6, 10**9, 10**12, 2**62)) << 1)
    for at in sorted(random.sample(places, min(len(places), random.choice((1, 2, 8)))))[::-1]:
        data = data[:at] + number + data[at + len(said) :]
    footer = struct.unpack("<I", data[-8:-4])[0] + random.choice((0, len(number) - len(said)))
    return data[:-8] + struct.pack("<I", footer % 2**32) + data[-4:]


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


# --------------------------------------------------------------------------------- HDF5, NumPy


def netcdf(random: Random, data: bytes) -> bytes:
    """A variable, dimension, attribute or link is another."""
    import h5py

    stream = io.BytesIO(data)
    with h5py.File(stream, "r+") as file:
        group = file[random.choice(list(file))]
        variables = [name for name, item in group.items() if isinstance(item, h5py.Dataset)]
        name = random.choice(variables)
        random.choice((_other_variable, _other_variable, _other_attribute, _other_link))(
            random, h5py, group, name
        )
    return stream.getvalue()


def _other_variable(random: Random, h5py: Any, group: Any, name: str) -> None:
    old = group[name]
    shape, values = old.shape, old[...]
    del group[name]
    act = random.randrange(11)
    size = 10 ** random.choice((5, 7, 9, 12, 15))
    if act == 1:
        group.create_dataset(name, shape=(size,), chunks=(1000,), dtype="f8", fillvalue=0.5)
    elif act == 2:
        big = (size, *shape[1:])
        chunks = tuple(min(length, 64) for length in big)
        group.create_dataset(name, shape=big, chunks=chunks, dtype="f8")
    elif act == 3:
        group.create_dataset(name, data=np.array(["x"] * max(1, values.size), dtype="S3"))
    elif act == 4:
        group.create_dataset(name, data=np.array(["x"], dtype=object), dtype=h5py.string_dtype())
    elif act == 5:
        record = np.zeros(shape, dtype=[("a", "i4"), ("b", "f8", 3)])
        group.create_dataset(name, data=record)
    elif act == 6:
        group.create_dataset(name, data=h5py.Empty("f8"))
    elif act == 7:
        group.create_dataset(name, data=values.ravel()[: random.randrange(1 + values.size)])
    elif act == 8:
        group.create_group(name)
    elif act == 9:
        odd = random.choice((np.nan, np.inf, -np.inf, 1e308, -1.0))
        filled = np.full(shape, odd) if values.dtype.kind == "f" else values
        group.create_dataset(name, data=filled)
    elif act == 10:
        group.create_dataset(name, data=np.zeros(shape, random.choice(("c16", "i1", "u8", "f2"))))


def _other_attribute(random: Random, h5py: Any, group: Any, name: str) -> None:
    holder = random.choice((group, group, group[name]))
    keys = list(holder.attrs)
    key = random.choice(keys) if keys else "odd"
    odd = random.choice(
        (
            lambda: 7,
            lambda: -1.5,
            lambda: np.arange(3),
            lambda: np.array([], dtype="f8"),
            lambda: h5py.Empty("S1"),
            lambda: np.bytes_(b"\xff\xfe\x00x"),
            lambda: "",
            lambda: "x" * 60_000,
            lambda: random.choice(ODD_JSON)[:60_000],
            lambda: "[" * 30_000,
            lambda: '["reference"]',
            lambda: '{"components": [[1]], "unknown": NaN}',
            lambda: np.array(["a", "b"], dtype=object),
            lambda: group.ref,
        )
    )()
    if random.random() < 0.15:
        del holder.attrs[key]
    elif isinstance(odd, np.ndarray) and odd.dtype == object:
        holder.attrs.create(key, odd, dtype=h5py.string_dtype())
    else:
        holder.attrs[key] = odd


def _other_link(random: Random, h5py: Any, group: Any, name: str) -> None:
    act = random.randrange(7)
    if act == 0:
        group["itself"] = group
    elif act == 1:
        group["up"] = group.file["/"]
    elif act == 2:
        del group[name]
        group[name] = h5py.SoftLink("/nowhere")
    elif act == 3:
        del group[name]
        group[name] = h5py.ExternalLink("/etc/hostname", "/x")
    elif act == 4:
        del group[name]
        group.create_dataset(name, shape=(2, 20), dtype="u1", external=[("/proc/version", 0, 40)])
    elif act == 5:
        layout = h5py.VirtualLayout(shape=(2, 20), dtype="f8")
        layout[:] = h5py.VirtualSource("/proc/version", "x", shape=(2, 20))
        del group[name]
        group.create_virtual_dataset(name, layout)
    else:
        deep = group
        for _ in range(400):
            deep = deep.create_group("g")


ODD_HEADERS: tuple[bytes, ...] = (
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999999999999), }",
    b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
    b"{'descr': '|V1000000000', 'fortran_order': False, 'shape': (1,), }",
    b"{'descr': [('a', '<f8', (100000,100000))], 'fortran_order': False, 'shape': (1,), }",
    b"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (2,), }",
    b"{'descr': '<U1000000000', 'fortran_order': False, 'shape': (1,), }",
    b"{'descr': '<f8', 'fortran_order': 1, 'shape': [3], }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), ",
    b"{'descr': '<f8' 'fortran_order'",
    b"(" * 3000,
    b"-" * 5000 + b"1",
    b"{" * 300,
    b"__import__('os').system('true')",
    b"{'a': 1L, 'shape': (1L,)}",
    b"\xff\xfe{",
    b"1 if 'x' else '''",
    b"    {\n  'a'\n: 1}\n   2",
    b"{**{}}",
    b"9" * 9000,
    b"",
)


def npy(random: Random, data: bytes) -> bytes:
    """Another header, or another pickle where there is one."""
    size = struct.unpack("<H", data[8:10])[0]
    if b"|O" in data[10 : 10 + size] and random.random() < 0.6:
        return data[: 10 + size] + pickled(random, data[10 + size :])
    header = random.choice(ODD_HEADERS) + b"\n"
    magic = data[:6] + bytes((random.choice((1, 1, 1, 2, 3, 9)), 0))
    length = struct.pack("<H" if magic[6] == 1 else "<I", len(header))
    return magic + length + header + data[10 + size :]


def npz(random: Random, data: bytes) -> bytes:
    """An array inside is another, or there is another one."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    name = random.choice(list(members))
    act = random.randrange(6)
    if act < 3:
        members[name] = npy(random, members[name])
    elif act == 3:
        members[name] = bytewise(random, members[name])
    elif act == 4:
        members[random.choice(("../x.npy", "7.npy", "a.txt", "0"))] = members[name]
    else:
        members[name] = members[name][:128] + bytes(random.choice((10**6, 3 * 10**7)))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", random.choice((0, 8, 12, 14))) as file:
        for key, contents in members.items():
            file.writestr(key, contents)
    return stream.getvalue()


# ------------------------------------------------------------------------------------ pickles

NAMES = (
    (b"os", b"system"),
    (b"posix", b"system"),
    (b"subprocess", b"Popen"),
    (b"builtins", b"exec"),
    (b"builtins", b"eval"),
    (b"builtins", b"getattr"),
    (b"builtins", b"set"),
    (b"builtins", b"slice"),
    (b"builtins", b"bytearray"),
    (b"collections", b"OrderedDict"),
    (b"collections", b"Counter"),
    (b"datetime", b"timedelta"),
    (b"datetime", b"datetime"),
    (b"numpy", b"dtype"),
    (b"numpy", b"load"),
    (b"numpy.core.multiarray", b"_reconstruct"),
    (b"numpy._core.multiarray", b"scalar"),
    (b"numpy._core.numeric", b"_frombuffer"),
    (b"pandas.core.frame", b"DataFrame"),
    (b"pandas.core.internals.managers", b"BlockManager"),
    (b"pandas._libs.internals", b"_unpickle_block"),
    (b"functools", b"partial"),
    (b"torch._utils", b"_rebuild_tensor_v2"),
    (b"bayesrep.cli", b"main"),
)
CALL = b"(X\x0b\x00\x00\x00touch FUZZEDtR"


def _global(random: Random) -> bytes:
    module, name = random.choice(NAMES)
    return b"c" + module + b"\n" + name + b"\n"


def _opcode(random: Random) -> bytes:
    """An instruction of the pickle machine with an argument that may be huge."""
    return random.choice(
        (
            lambda: _global(random),
            lambda: _global(random) + CALL,
            lambda: _global(random) + b")R",
            lambda: _global(random) + b"N}b",
            lambda: bytes(
                [random.choice(b"().0123NRQbdeltu}]a\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x94")]
            ),
            lambda: b"r" + struct.pack("<I", random.choice((2**31 - 1, 2**24, 2**32 - 1))),
            lambda: b"p99999999\n",
            lambda: b"j" + struct.pack("<I", random.choice((0, 5, 2**31 - 1))),
            lambda: b"h" + random.randbytes(1),
            lambda: b"\x8b" + struct.pack("<i", random.choice((-1, 2**31 - 1, 10))),
            lambda: b"\x8e" + struct.pack("<Q", random.choice(HUGE) % 2**64),
            lambda: b"\x8d" + struct.pack("<Q", random.choice(HUGE) % 2**64),
            lambda: b"\x96" + struct.pack("<Q", random.choice((2**30, 2**40, 2**62))),
            lambda: b"\x95" + struct.pack("<Q", random.choice(HUGE) % 2**64),
            lambda: b"X" + struct.pack("<I", 2**31 - 1),
            lambda: b"I" + b"9" * random.choice((5, 5000)) + b"\n",
            lambda: b"(" * 5000,
            lambda: b"]" * 3000 + b"a" * 2999,
            lambda: b"]2" + b"(hhtl" * 30,
            lambda: b"N)" + b"\x85" * 20_000,
            lambda: b"K\x01\x85\x94" + b"2\x86" * 40,
            lambda: b"F1e400\n",
            lambda: b"S'x'\n",
            lambda: b"Vx\\ud800\n",
        )
    )()


def pickled(random: Random, data: bytes) -> bytes:
    """Instructions put in, or a program of nothing else."""
    if random.random() < 0.2:
        body = b"".join(_opcode(random) for _ in range(random.randrange(1, 12)))
        return b"\x80\x04" + body + b"."
    for _ in range(random.choice((1, 1, 2, 5))):
        at = place(random, data)
        data = data[:at] + _opcode(random) + data[at + random.choice((0, 0, 1, 4)) :]
    return data


# ---------------------------------------------------------------------------- tars and images

FIELDS = ((0, 100), (100, 8), (124, 12), (136, 12), (148, 8), (156, 1), (257, 6), (345, 155))
ODD_FIELDS: tuple[bytes, ...] = (
    b"77777777777\0",
    b"-1\0",
    b"\x80" + b"\0" * 3 + b"\x7f" + b"\xff" * 7,
    b"\xff" * 12,
    b"99999999999\0",
    b"zzz\0",
    b"",
    b"../../x.jpg\0",
    b"/etc/passwd\0",
    b"\xff\xfe.jpg\0",
    b"a" * 100,
    b"00000001000\0",
)


def tar(random: Random, data: bytes) -> bytes:
    """A field of a header is another, its checksum right; or a member of a strange kind."""
    blocks = [at for at in range(0, len(data) - 511, 512) if data[at + 257 : at + 262] == b"ustar"]
    if not blocks:
        return data
    at = random.choice(blocks)
    header = bytearray(data[at : at + 512])
    for _ in range(random.choice((1, 1, 2))):
        start, size = random.choice(FIELDS)
        kind = bytes([random.choice(b"01234567xgSKLVDMNX\0")])
        odd = kind if size == 1 else random.choice(ODD_FIELDS)[:size].ljust(size, b"\0")
        header[start : start + size] = odd
    if random.random() < 0.9:
        header[148:156] = b" " * 8
        header[148:156] = f"{sum(header):06o}\0 ".encode()
    return data[:at] + bytes(header) + data[at + 512 :]


def sparse_tar(random: Random, data: bytes) -> bytes:
    """A pax header that says strange things about the next member."""
    stream = io.BytesIO()
    key = random.choice(
        ("size", "path", "GNU.sparse.major", "GNU.sparse.map", "mtime", "hdrcharset")
    )
    value = random.choice(("9" * 18, "-5", "1", "x" * 1000, "1,2,3", "BINARY", "\udcff", "1e400"))
    headers = {key: value, "GNU.sparse.size": random.choice(("9" * 15, "4", "-1"))}
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as file:
        info = tarfile.TarInfo("n01440764/odd.jpg")
        info.size, info.pax_headers = 4, headers
        file.addfile(info, io.BytesIO(b"data"))
    written = stream.getvalue().rstrip(b"\0")
    return written + bytes(-len(written) % 512) + data


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 36 36\n%%EndComments\nshowpage\n%%EOF\n"
STRANGERS: tuple[bytes, ...] = (
    POSTSCRIPT,
    b"\xc5\xd0\xd3\xc6" + struct.pack("<II", 30, len(POSTSCRIPT)) + bytes(18) + POSTSCRIPT,
    b"\xd7\xcd\xc6\x9a\x00\x00" + struct.pack("<4hH", 0, 0, 100, 100, 96) + bytes(60),
    b"%PDF-1.4\n1 0 obj<<>>endobj",
    b"P6\n2147483647 2147483647\n255\n" + bytes(10),
    b"P6\n30000 30000\n255\n" + bytes(10),
    b"P5\n99999999999999999999 1\n65535\n",
    b"II*\x00" + struct.pack("<I", 8) + struct.pack("<H", 65535) + bytes(200),
    b"GIF89a\xff\xff\xff\xff\xf7\x00\x00" + bytes(800),
    b"\x00\x00\x01\x00\x01\x00" + bytes(40),
    b"8BPS\x00\x01" + bytes(6) + struct.pack(">HIIHH", 3, 30000, 30000, 8, 3) + bytes(60),
    b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    b"\x59\xa6\x6a\x95" + bytes(100),
    b"SIMPLE  =                    T" + b" " * 50 + b"END",
    b"#FIG 3.2\n",
    b'/* XPM */\nstatic char *x[]={"99999 99999 2 1"};',
)


def picture(random: Random, data: bytes) -> bytes:
    """The size or a chunk that a header declares is another; or another format altogether."""
    if random.random() < 0.15:
        return random.choice(STRANGERS)
    number = random.choice((0, 1, 10**4, 3 * 10**4, 65535, 2**31 - 1))
    if data.startswith(b"\x89PNG"):
        return _png(random, data, number)
    if data.startswith(b"\xff\xd8"):
        at = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
        return data[: at + 5] + struct.pack(">HH", number % 65536, 65535) + data[at + 9 :]
    if data.startswith(b"GIF"):
        return data[:6] + struct.pack("<HH", number % 65536, number % 65536) + data[10:]
    if data.startswith(b"BM"):
        return data[:18] + struct.pack("<ii", number, number) + data[26:]
    if data.startswith(b"P6"):
        return b"P6\n%d %d\n255\n" % (number, number) + data[13:]
    at = random.randrange(max(1, len(data) - 4))
    return data[:at] + struct.pack("<I", number) + data[at + 4 :]


def _png(random: Random, data: bytes, number: int) -> bytes:
    chunks, at = [], 8
    while at + 8 <= len(data):
        size = struct.unpack(">I", data[at : at + 4])[0]
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    act = random.randrange(4)
    if act == 0:
        body = struct.pack(">II", number, number) + chunks[0][1][8:]
        chunks[0] = (chunks[0][0], body)
    elif act == 1:
        bomb = zlib.compress(bytes(3 * 10**7))
        chunks.insert(1, (random.choice((b"zTXt", b"iCCP", b"iTXt")), b"x\0\0" + bomb))
    elif act == 2:
        chunks.insert(random.randrange(len(chunks)), random.choice(chunks))
    else:
        where = random.randrange(len(chunks))
        chunks[where] = (chunks[where][0], bytewise(random, chunks[where][1]))
    return data[:8] + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )


STRUCTURED: dict[str, Sequence[Mutation]] = {
    ".json": (json_value,),
    ".jsonl": (json_lines,),
    ".eval": (zipped_json,),
    ".csv": (csv_cell,),
    ".txt": (line,),
    ".toml": (toml_value,),
    ".prior": (prior_text,),
    ".parquet": (parquet,),
    ".nc": (netcdf,),
    ".npz": (npz,),
    ".npy": (npy,),
    ".pkl": (pickled,),
    ".pt": (pickled,),
    ".tar": (tar, tar, sparse_tar),
    **dict.fromkeys((".jpg", ".png", ".gif", ".bmp", ".tif", ".webp", ".ppm"), (picture,)),
}


def structured(random: Random, name: str, data: bytes) -> bytes | None:
    """Something well-formed and strange; None where there is no way to it."""
    ends = [end for end in STRUCTURED if name.endswith(end)]
    try:
        return random.choice(STRUCTURED[ends[0]])(random, data) if ends else None
    except Exception:  # a library that will not write it
        return None
