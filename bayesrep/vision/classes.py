"""What the outputs of a classifier mean: the 1,000 classes of ImageNet, or those of a table.

A table has a row for each output, with the columns index (from 0, the output's number), name (what
files of predictions call the class) and, where the folders of images are called otherwise, folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import polars as pl

from bayesrep.errors import PredictionError, StudyError, listing
from bayesrep.files import tables
from bayesrep.files.names import normalize_names
from bayesrep.files.values import whole_numbers
from bayesrep.studies.folder import RANKS
from bayesrep.studies.imagenet import synsets

MOST_CLASSES = 2**16  # class numbers are kept in 16 bits
_COLUMNS = ("index", "name", "folder")


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes among which a classifier chooses, in the order of its outputs.

    Attributes
    ----------
    names : tuple of K str
        What files of predictions call them: ImageNet's by their wnids.
    folders : tuple of K str
        What folders of images call them.
    file
        The table that they come from; None for ImageNet's.
    outputs : tuple of K tuples of int
        The outputs that stand for each class, where answers are among some of them
        (`bayesrep.vision.among`); empty where class k is output k.
    """

    names: tuple[str, ...]
    folders: tuple[str, ...]
    file: Path | None = None
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
        """How many answers are kept of an image: five, or as many as there are classes."""
        return min(RANKS, len(self))

    @property
    def description(self) -> str:
        """What they are, for messages."""
        if self.file is None:
            return f"{len(self):,} ImageNet classes"
        return f"{len(self):,} classes of {self.file}"

    @property
    def kind(self) -> str:
        """What their names are, for messages."""
        return "wnids" if self.file is None else "names"

    @property
    def identity(self) -> dict[str, str]:
        """What must agree before answers stand in one file; nothing for all of ImageNet's."""
        if self.file is None and not self.outputs:
            return {}
        shown = f"{len(self)}, {self.names[0]} to {self.names[-1]}, sha256:"
        if not self.outputs:
            return {"classes": shown + _digest("\n".join(self.names))}
        digest = _digest("\n".join([*self.names, str(self.outputs)]))
        return {"among": f"argmax and softmax among {shown}{digest}"}


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


IMAGENET = Classes(synsets(), synsets())


def read_classes(path: str | Path) -> Classes:
    """Read what the outputs of a classifier mean."""
    file = Path(path)
    if not file.is_file():
        raise PredictionError("class-table-missing", file=file)
    try:
        table, place = tables.read_only(file, _COLUMNS)
        if missing := [name for name in _COLUMNS[:2] if name not in table.columns]:
            raise PredictionError(
                "class-table-lacks-columns", file=file, columns=listing(missing, "column")
            )
        indexes = whole_numbers(table["index"], place).to_list()
    except StudyError as error:
        raise PredictionError(error.violation) from error
    table = table.select(
        normalize_names(pl.col(name)).fill_null("") for name in _COLUMNS if name in table.columns
    )
    order = _order(file, indexes)
    names = [table["name"][row] for row in order]
    given = [table["folder"][row] for row in order] if "folder" in table.columns else names
    folders = [folder or name for folder, name in zip(given, names, strict=True)]
    _check_called(file, names, folders)
    return Classes(tuple(names), tuple(folders), file)


def _order(file: Path, written: list[int]) -> list[int]:
    """The row of every index 0, 1, ..., each there once."""
    if not 2 <= len(written) <= MOST_CLASSES:
        raise PredictionError(
            "class-rows-out-of-range", file=file, row_count=len(written), most_rows=MOST_CLASSES
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
    """Refuse names that are empty, and those that two classes share."""
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
