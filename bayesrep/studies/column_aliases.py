"""Columns of tables by other names than ours: item for image, model for classifier, and so on."""

from collections.abc import Collection, Mapping, Sequence

COLUMN_ALIASES: Mapping[str, str] = {
    "item": "image",
    "question": "image",
    "model": "classifier",
    "solved": "correct",
    "judge": "worker",
}
"""Other names of columns, to ours."""
ANSWER_COLUMNS = (
    *("label", "task", "position", "time"),
    *("control", "seconds", "own", "main", "place", "source"),
)
"""Columns that some reader uses, or that `collect` writes with single answers."""

_JOINT_COLUMNS = (("image",), ("classifier", "correct"), ("worker", "selected"))


def in_our_words(
    columns: Sequence[str], *together: Collection[str], others: Mapping[str, str] = COLUMN_ALIASES
) -> dict[str, str]:
    """Map columns of a table to our names.

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
    for group in together or _JOINT_COLUMNS:
        # The first other name wins: a table with an item may have the question's text beside it.
        names = {new: old for old, new in reversed(list(others.items())) if old in columns}
        new = {names[name]: name for name in group if name not in columns and name in names}
        if all(name in columns or name in new.values() for name in group):
            renamed |= new
    return renamed
