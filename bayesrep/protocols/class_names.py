"""Class numbers by the names that users' files give to classes."""

from collections.abc import Iterable, Sequence

from bayesrep.errors import StudyError, listing
from bayesrep.studies.imagenet import synsets


def class_numbers(
    names: Iterable[str], classes: Sequence[str], where: str, noun: str
) -> dict[str, int]:
    """The number of every class named in a file; names that are not classes are refused."""
    numbers = {name: number for number, name in enumerate(classes)}
    if tuple(classes) == synsets():
        numbers |= {str(number): number for number in range(len(classes))}
    number_of = {name: numbers.get(name) for name in dict.fromkeys(names)}
    if unknown := [name for name, number in number_of.items() if number is None]:
        are = "is not a class" if len(unknown) == 1 else "are not classes"
        raise StudyError(
            "classes-not-of-predictions",
            where=where,
            unknown_classes=listing(unknown, noun),
            verb=are,
            class_count=len(classes),
            example=classes[0],
        )
    return {name: number for name, number in number_of.items() if number is not None}
