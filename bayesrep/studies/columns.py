"""Columns of tables by other names than ours: item for image, model for classifier, and so on."""

from collections.abc import Collection, Mapping, Sequence

COLUMNS: Mapping[str, str] = {
    "item": "image",
    "question": "image",
    "model": "classifier",
    "solved": "correct",
    "judge": "worker",
}
"""Other names of columns, and ours."""
BESIDE_ANSWERS = (
    *("label", "task", "position", "time"),
    *("control", "seconds", "own", "main", "place", "source"),
)
"""Columns that some reader has use for, or that `collect` writes beside single answers."""

_TOGETHER = (("image",), ("classifier", "correct"), ("worker", "selected"))


def in_our_words(
    columns: Sequence[str], *together: Collection[str], others: Mapping[str, str] = COLUMNS
) -> dict[str, str]:
    """Which columns of a table are to be renamed, and into what.

    A column is left alone where one of ours is already there, and where those that it belongs with
    are not: `model` is a classifier's name only beside `solved` or `correct`, since a column may
    also be of a classifier that is called so.

    Parameters
    ----------
    columns
        Columns of the table.
    *together
        Our names that mean something together only: by default those of images, of predictions
        and of annotations.
    others
        Other names, and ours.
    """
    renamed: dict[str, str] = {}
    for wanted in together or _TOGETHER:
        # The first other name wins: a table with an item may have the question's text beside it.
        names = {new: old for old, new in reversed(list(others.items())) if old in columns}
        new = {names[name]: name for name in wanted if name not in columns and name in names}
        if all(name in columns or name in new.values() for name in wanted):
            renamed |= new
    return renamed
