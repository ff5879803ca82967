"""Parts of the classes: superclasses, objects and organisms, and your own.

Of ImageNet 590 objects and 410 organisms, 118 breeds of dogs and the 882 other classes (Shankar et
al., 2020), where WordNet has 398 animals, 3 kinds of people, 2 plants and 7 fungi as organisms.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.files.names import normalize_names
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import texts
from bayesrep.protocols.class_names import class_numbers
from bayesrep.sources.pickles.safe_pickle import read_array
from bayesrep.studies.imagenet import N_CLASSES, synsets
from bayesrep.types import Bools

SUPERCLASS_COLUMN = "superclass"
_ANIMAL_CLASSES, _DOG_CLASSES = slice(0, 398), slice(151, 269)
_OTHER_ORGANISMS = [981, 982, 983, 985, 986, *range(991, 998)]  # people, plants, fungi


def imagenet_subsets() -> dict[str, Bools]:
    """The subsets of Shankar et al. (2020), each a mask over ImageNet's classes."""
    organisms, dogs = np.zeros((2, N_CLASSES), dtype=np.bool_)
    organisms[_ANIMAL_CLASSES] = organisms[_OTHER_ORGANISMS] = dogs[_DOG_CLASSES] = True
    return {"objects": ~organisms, "organisms": organisms, "dogs": dogs, "without dogs": ~dogs}


def read_groups(path: str | Path, classes: Sequence[str]) -> dict[str, NDArray[np.str_]]:
    """Read how classes are grouped.

    Parameters
    ----------
    path
        A table (CSV or Parquet) with a row for each class: the column class, and a column for each
        way to group them, empty where a class belongs to no group; or the published
        `superclasses.npy` of Tsipras et al. (2020), a mapping of superclass to class numbers
        (nothing in it is executed).
    classes
        The K names of the classes.

    Returns
    -------
    mapping of column to str [K]
        The group of each class, "" where it has none.

    Raises
    ------
    StudyError
        Naming the file and the classes that are unknown or in two groups.
    """
    file = Path(path)
    if file.suffix.lower() == ".npy":
        content = read_array(file)
        mapping = content.item() if content.shape == () and content.dtype == object else None
        if not isinstance(mapping, Mapping):
            raise StudyError("no-superclass-mapping", file=file)
        pairs = [(str(each), str(name)) for name, members in mapping.items() for each in members]
        rows = pl.DataFrame(pairs, schema=["class", SUPERCLASS_COLUMN], orient="row")
    else:
        table, where = read_only(file, ("class",))
        require(table, ("class",), where)
        if len(table.columns) < 2:
            raise StudyError("no-grouping-column", file=file)
        texts(table["class"], where)
        rows = table.select(normalize_names(pl.all()).fill_null(""))
    # A class may be in one group of each column only.
    group_numbers = class_numbers(rows["class"].to_list(), classes, str(file), "class")
    numbers = [group_numbers[name] for name in rows["class"].to_list()]
    repeated = rows.filter(pl.Series(numbers).is_duplicated())["class"].unique(maintain_order=True)
    if len(repeated):
        raise StudyError("class-grouped-twice", file=file, classes=listing(repeated, "class"))
    # A class that the file leaves out belongs to no group: the empty text.
    groups: dict[str, NDArray[np.str_]] = {}
    for column in rows.columns:
        if column != "class":
            values = np.full(len(classes), "", dtype=object)
            values[numbers] = rows[column].to_list()
            groups[column] = values.astype(np.str_)
    return groups


def read_grouping(
    path: str | Path | None, classes: Sequence[str], column: str | None = None
) -> NDArray[np.str_] | None:
    """One way to group classes, by a column if there are several; without a file, classes."""
    if path is None:
        if column is not None:
            raise OptionError("column-of-no-classes", column=column)
        return None
    groups = read_groups(path, classes)
    if column is None and len(groups) == 1:
        return next(iter(groups.values()))
    if column not in groups:
        known = ", ".join(groups)
        raise OptionError("unknown-grouping-column", column=column, path=path, choices=known)
    return groups[column]


def class_subsets(
    classes: Sequence[str], groups: Mapping[str, NDArray[np.str_]] | None = None
) -> dict[str, Bools]:
    """The subsets to look at: those built in, where they apply, and every group.

    Parameters
    ----------
    classes
        The K names of the classes.
    groups
        From `read_groups`.

    Returns
    -------
    mapping of name to bool [K]
        Two columns that call a group alike have their name put before it.
    """
    subsets = imagenet_subsets() if tuple(classes) == synsets() else {}
    for column, values in (groups or {}).items():
        for name in dict.fromkeys(values.tolist()):
            if name:
                subsets[f"{column}: {name}" if name in subsets else name] = values == name
    return subsets
