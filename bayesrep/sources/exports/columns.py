"""What the readers of exports share: where a file says what, and answers of several choices."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bayesrep.errors import StudyError, TableWarning, plain_text
from bayesrep.files.json_parts import as_word


@dataclass(frozen=True)
class Columns:
    """Where a file says what; None where its source says.

    Attributes
    ----------
    image, worker, answer
        Columns of a table. Of Mechanical Turk image and answer may hold a ``*`` each, for the
        numbers of an assignment's images: `Input.image*` and `Answer.image*`. Of Label Studio
        `image` is a key of the task's data, `answer` the name of a control.
    label
        Column of the label that was asked about.
    separator
        Between answers of which several could be selected: every one that anybody selected becomes
        a label, and each answer a yes or a no to each of them.
    """

    image: str | None = None
    worker: str | None = None
    answer: str | None = None
    label: str | None = None
    separator: str | None = None


def name_image(held: Mapping[str, Any], field: str, where: str) -> str:
    """What a task calls its image: a text, or a number as text.

    Raises
    ------
    StudyError
        If it calls it nothing, names it with a value that can be no name, or holds it itself.
    """
    if field not in held:
        fields = ", ".join(map(plain_text, held))
        raise StudyError("task-without-image", where=where, field=field, fields=fields)
    value = held[field]
    image = as_word(value, where)
    if image is None or isinstance(value, bool | list | dict):
        shown = plain_text(image or "null")
        raise StudyError("task-image-without-name", where=where, field=field, value=shown)
    if image.startswith("data:"):
        raise StudyError("image-contents-for-name", where=where, field=field)
    return image


def join_choices(choices: Sequence[str], asked: Columns, where: str) -> str:
    """Several choices as one answer.

    Raises
    ------
    StudyError
        If one of them holds what is to stand between them.
    """
    separator = asked.separator or "|"
    for choice in choices if asked.separator else ():
        if separator in choice:
            raise StudyError(
                "choice-holds-separator", where=where, choice=choice, separator=separator
            )
    return separator.join(choices)


def tell_anonymous(number: int, where: str, field: str) -> None:
    """Warn of answers that name nobody, if there are any: each counts as another worker's."""
    if number:
        warnings.warn(
            TableWarning(
                f"{where}: {number:,} answers name nobody ({field} is empty); each counts as that "
                "of a worker of its own, so repeats cannot be seen"
            ),
            stacklevel=2,
        )
