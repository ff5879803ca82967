"""Archives packed by gzip, unpacked once into the user's cache for access to single images."""

import gzip
import os
import zlib
from pathlib import Path

from bayesrep.atomic import make_room, replaced_file, user_cache
from bayesrep.errors import PredictionError, reason
from bayesrep.files.digests import digest_parts

GZIPPED_ENDINGS = (".tar.gz", ".tgz")
_UNPACKED_BYTES = 2**20  # bytes unpacked at once
_ALLOWED_BYTES, _MAX_EXPANSION = 2**28, 100  # unpacked bytes: at least, or times the file's
_MAX_CACHED_BYTES = 2**35  # bytes of other archives in the cache


def unpack_archive(file: str) -> str:
    """The path of an archive that can be read anywhere: the unpacked one, or the file itself."""
    if not file.lower().endswith(GZIPPED_ENDINGS):
        return file
    status = os.stat(file)
    state = f"{os.path.abspath(file)}\0{status.st_size}\0{status.st_mtime_ns}"
    try:
        folder = user_cache() / "archives"
        plain = folder / f"{digest_parts([os.fsencode(state)])[:24]}.tar"
        if not plain.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_room(folder.iterdir(), _MAX_CACHED_BYTES)
            with replaced_file(plain) as partial:
                _unpack(file, partial, max(_ALLOWED_BYTES, _MAX_EXPANSION * status.st_size))
    except (EOFError, ValueError, zlib.error, gzip.BadGzipFile) as error:
        raise PredictionError("tar-file-unreadable", archive=file, reason=reason(error)) from error
    except (OSError, RuntimeError) as error:  # the latter of a user without a home
        raise PredictionError("archive-not-unpacked", archive=file, reason=reason(error)) from error
    return str(plain)


def _unpack(file: str, plain: Path, most: int) -> None:
    """Write what is packed in a file, unless it is more than `most` bytes."""
    with gzip.open(file) as packed, plain.open("wb") as target:
        while chunk := packed.read(_UNPACKED_BYTES):
            if target.tell() + len(chunk) > most:
                raise ValueError(f"more than {most:,} bytes are packed in it")
            target.write(chunk)
