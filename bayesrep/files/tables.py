"""Tables in files of any kind: CSV and its kin, workbooks and Parquet."""

from collections.abc import Collection
from pathlib import Path

from bayesrep.errors import StudyError, reason
from bayesrep.files import delimited, parquet
from bayesrep.files.delimited import Rename, Sheet
from bayesrep.files.places import TEXTUAL, Place

ENDINGS = (*TEXTUAL, ".parquet")
TRUE_WORDS, FALSE_WORDS = ["true", "1", "1.0", "yes"], ["false", "0", "0.0", "no"]
"""What a column of flags may say, in small letters."""


def read_sheets(
    path: str | Path, *, text: Collection[str] = (), rename: Rename | None = None
) -> list[Sheet]:
    """Read every table of a file.

    Parameters
    ----------
    path
        A file whose name ends in one of `ENDINGS`.
    text
        Columns that are text whatever they look like, so that the image 007 keeps its zeros.
    rename
        From the names of a header to those of the columns.

    Raises
    ------
    StudyError
        In one line, naming the file and what to do.
    """
    file, where = Path(path), str(path)
    kind = where.lower()
    try:
        if kind.endswith(".parquet"):
            if not file.is_file():
                open(file, "rb").close()  # the reason why not
            frame = parquet.read(file, where, (), further=None)
            if rename:
                frame.columns = rename(frame.columns)
            return [Sheet(Place(where), frame)]
        if not kind.endswith(TEXTUAL):
            known = ", ".join((*TEXTUAL[:3], ".xlsx", ".parquet"))
            raise StudyError("table-file-type-unknown", path=path, choices=known)
        sheets = delimited.read(file, text=text, rename=rename)
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error
    size = file.stat().st_size
    for sheet in sheets:
        delimited.check_width(sheet, size)
    return sheets


def read_only(
    path: str | Path, *, text: Collection[str] = (), rename: Rename | None = None
) -> Sheet:
    """Read the one table of a file; see `read_sheets`."""
    sheets = read_sheets(path, text=text, rename=rename)
    if len(sheets) > 1:
        names = ", ".join(sheet.place.name for sheet in sheets)
        raise StudyError("several-sheets-in-workbook", path=path, sheets=names)
    return sheets[0]
