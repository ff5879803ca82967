"""Classes of a classifier's outputs: the 1,000 of ImageNet, or a table of index, name, folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from bayesrep.errors import PredictionError, StudyError, listing
from bayesrep.files import tables
from bayesrep.files.digests import digest_parts
from bayesrep.files.names import normalize_names
from bayesrep.files.values import whole_numbers
from bayesrep.studies.imagenet import synsets
from bayesrep.studies.layout import MAX_RANKS

MAX_CLASSES = 2**16  # class numbers are kept in 16 bits
_TABLE_COLUMNS = ("index", "name", "folder")


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes among which a classifier chooses, in the order of its outputs."""

    names: tuple[str, ...]  # tuple of K str: names in files of predictions; wnids for ImageNet
    folders: tuple[str, ...]  # tuple of K str: names of folders of images
    file: Path | None = None  # their table; None for ImageNet's
    # [K]: outputs of each class, for a subset; empty if class k is output k.
    outputs: tuple[tuple[int, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The class number of every name, of the class or of its folder."""
        pairs = zip(self.folders, self.names, strict=True)
        return {called: number for number, pair in enumerate(pairs) for called in pair}

    @property
    def ranks(self) -> int:
        """Number of answers kept of an image: five, or all if there are fewer classes."""
        return min(MAX_RANKS, len(self))

    @property
    def description(self) -> str:
        """Description of the classes, for messages."""
        if self.file is None:
            return f"{len(self):,} ImageNet classes"
        return f"{len(self):,} classes of {self.file}"

    @property
    def kind(self) -> str:
        """Description of the classes' names, for messages."""
        return "wnids" if self.file is None else "names"

    @property
    def identity(self) -> dict[str, str]:
        """Facts that must agree for answers to share a file; empty for all of ImageNet's."""
        if self.file is None and not self.outputs:
            return {}
        summary = f"{len(self)}, {self.names[0]} to {self.names[-1]}, sha256:"
        if not self.outputs:
            return {"classes": summary + _digest("\n".join(self.names))}
        digest = _digest("\n".join([*self.names, str(self.outputs)]))
        return {"among": f"argmax and softmax among {summary}{digest}"}


def _digest(text: str) -> str:
    return digest_parts([text.encode()])[:16]


IMAGENET = Classes(synsets(), synsets())


def read_classes(path: str | Path) -> Classes:
    """Read a table of a classifier's classes."""
    file = Path(path)
    if not file.is_file():
        raise PredictionError("class-table-missing", file=file)
    try:
        table, place = tables.read_only(file, _TABLE_COLUMNS)
        if missing := [name for name in _TABLE_COLUMNS[:2] if name not in table.columns]:
            raise PredictionError(
                "class-table-lacks-columns", file=file, columns=listing(missing, "column")
            )
        indexes = whole_numbers(table["index"], place).to_list()
    except StudyError as error:
        raise PredictionError(error.violation) from error
    table = table.select(
        normalize_names(pl.col(name)).fill_null("")
        for name in _TABLE_COLUMNS
        if name in table.columns
    )
    order = _order(file, indexes)
    names = [table["name"][row] for row in order]
    folder_names = [table["folder"][row] for row in order] if "folder" in table.columns else names
    folders = [folder or name for folder, name in zip(folder_names, names, strict=True)]
    _check_called(file, names, folders)
    return Classes(tuple(names), tuple(folders), file)


def _order(file: Path, written: list[int]) -> list[int]:
    if not 2 <= len(written) <= MAX_CLASSES:
        raise PredictionError(
            "class-rows-out-of-range", file=file, row_count=len(written), most_rows=MAX_CLASSES
        )
    rows: dict[int, int] = {}
    for row, number in enumerate(written):
        if number in rows:
            raise PredictionError("class-index-repeated", file=file, index=number)
        rows[number] = row
    if missing := [number for number in range(len(written)) if number not in rows]:
        raise PredictionError(
            "class-indexes-missing",
            file=file,
            indexes=listing(missing, "index"),
            row_count=len(written),
            last_index=len(written) - 1,
        )
    return [rows[number] for number in range(len(written))]


def _check_called(file: Path, names: list[str], folders: list[str]) -> None:
    if "" in names:
        raise PredictionError("class-without-name", file=file, index=names.index(""))
    owner: dict[str, int] = {}
    for called in (names, folders):
        for number, name in enumerate(called):
            other = owner.setdefault(name, number)
            if other != number:
                raise PredictionError(
                    "class-name-shared", file=file, index=other, other_index=number, class_name=name
                )
