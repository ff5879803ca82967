"""Row numbers of a table, as a user counts who opens its file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from bayesrep.errors import MAX_LISTED

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".xlsx")
"""Endings of tables that have a header and lines, of whatever kind."""


@dataclass(frozen=True)
class Place:
    """A table, and the numbering of its rows in its file."""

    name: str
    noun: str = "row"
    first: int = 1  # number of the first row; a header counts as a line
    row_places: tuple[int, ...] | None = None  # of some rows among all

    def __str__(self) -> str:
        return self.name

    @classmethod
    def from_name(cls, where: "str | Place") -> "Place":
        """A table that is known by its file's name alone."""
        if isinstance(where, Place):
            return where
        return cls(where, "line", 2) if where.lower().endswith(TEXT_ENDINGS) else cls(where)

    def select_rows(self, mask: pl.Series) -> "Place":
        """Restrict the table to some rows."""
        return self.gather_rows(mask.arg_true().to_list())

    def gather_rows(self, places: Sequence[int]) -> "Place":
        """Rows of the table, of which one may come several times."""
        return replace(self, row_places=tuple(self._number_among_all(places)))

    def number(self, place: int) -> int:
        """Return a row's number in the file."""
        return self.first + self._number_among_all([place])[0]

    def _number_among_all(self, places: Sequence[int]) -> Sequence[int]:
        return places if self.row_places is None else [self.row_places[place] for place in places]

    def rows(self, wrong: pl.Series, values: pl.Series | None = None) -> str:
        """List the wrong rows, the first of them with their values."""
        places = wrong.arg_true().to_list()
        numbers = [str(place + self.first) for place in self._number_among_all(places)]
        if values is not None:
            shown_values = values.gather(places[:MAX_LISTED]).to_list()
            numbers[:MAX_LISTED] = [
                f"{number} ({_show_value(value)})"
                for number, value in zip(numbers[:MAX_LISTED], shown_values, strict=True)
            ]
        if len(numbers) == 1:
            return f"{self.noun} {numbers[0]}"
        more = f", ... ({len(numbers):,} {self.noun}s)" if len(numbers) > MAX_LISTED else ""
        return f"{self.noun}s {', '.join(numbers[:MAX_LISTED])}{more}"


def _show_value(value: object) -> str:
    if value is None or value == "":
        return "nothing"
    return repr(value if not isinstance(value, str) or len(value) <= 40 else value[:37] + "...")
