"""Columns of tables by other names than ours: item for image, model for classifier, and so on."""

from collections.abc import Callable, Collection, Mapping, Sequence

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

COLUMN_SYNONYMS: Mapping[str, Collection[str]] = {
    "dataset": ("split", "set", "version", "subset", "benchmark"),
    "image": (
        *("file", "filename", "file_name", "filepath", "path", "img", "image_id", "image_name"),
        *("id", "item_id", "example", "sample"),
    ),
    "classifier": ("model", "model_name", "network", "net", "architecture", "arch", "system"),
    "correct": ("acc", "accuracy", "right", "is_correct", "hit", "solved"),
    "selected": (
        *("k", "yes", "votes", "n_selected", "num_selected", "agree", "agreed", "positive"),
        *("vote", "answer", "response"),
    ),
    "shown": ("n", "total", "votes", "n_shown", "num_shown", "trials", "annotators", "raters"),
    "worker": ("annotator", "rater", "judge", "worker_id", "annotator_id", "user", "participant"),
}
"""What else a column of a study's tables may be called, by our names; the first letters' case and
blanks between words do not matter."""

_JOINT_COLUMNS = (("image",), ("classifier", "correct"), ("worker", "selected"))
_JOINT_SYNONYMS = (
    *(("dataset",), ("image",), ("classifier", "correct"), ("classifier", "label_1")),
    *(("selected", "shown"), ("worker", "selected")),
)


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


def find_synonyms(columns: Sequence[str], fold: Callable[[str], str]) -> dict[str, Collection[str]]:
    """Find the columns that may be ours under a usual name, by ours; `fold` spells names alike."""
    found: dict[str, Collection[str]] = {}
    for group in _JOINT_SYNONYMS:
        if group == ("worker", "selected") and "shown" in {*columns, *found}:
            continue  # counts, whoever made them
        candidates: dict[str, Collection[str]] = {}
        for name in group:
            if name not in columns and name not in found:
                known = COLUMN_SYNONYMS.get(name, ())
                candidates[name] = [column for column in columns if fold(column) in known]
        for name, others in candidates.items():
            own = [c for c in others if sum(c in each for each in candidates.values()) == 1]
            candidates[name] = own or others
        taken = [column for others in candidates.values() for column in others]
        if all(candidates.values()) and len({*taken}) == len(taken):
            found |= candidates
    return found
