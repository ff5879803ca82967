"""Where in a table something stands, as who opens its file counts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from bayesrep.errors import MAX_LISTED

TEXTUAL = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".xlsx")
"""Endings of tables that have a header and lines, of whatever kind."""


@dataclass(frozen=True)
class Place:
    """A table, and how its rows are numbered where it is opened: `first` is that of the first.

    A CSV file's header counts, so that a number is that of a line in an editor or a spreadsheet.
    Where only some of the rows are looked at, `row_places` are their places among all.
    """

    name: str
    noun: str = "row"
    first: int = 1
    row_places: tuple[int, ...] | None = None

    def __str__(self) -> str:
        """Its name, as messages begin."""
        return self.name

    @classmethod
    def from_name(cls, where: "str | Place") -> "Place":
        """A table that is known by its file's name alone."""
        if isinstance(where, Place):
            return where
        return cls(where, "line", 2) if where.lower().endswith(TEXTUAL) else cls(where)

    def select_rows(self, kept: pl.Series) -> "Place":
        """The same table, of which only some rows are looked at."""
        return replace(self, row_places=tuple(self._number_among_all(kept.arg_true().to_list())))

    def number(self, place: int) -> int:
        """What a row's number is where the table is opened."""
        return self.first + self._number_among_all([place])[0]

    def _number_among_all(self, places: Sequence[int]) -> Sequence[int]:
        return places if self.row_places is None else [self.row_places[place] for place in places]

    def rows(self, wrong: pl.Series, values: pl.Series | None = None) -> str:
        """The rows that are wrong, the first of them with their values."""
        places = wrong.arg_true().to_list()
        told = [str(place + self.first) for place in self._number_among_all(places)]
        if values is not None:
            held = values.gather(places[:MAX_LISTED]).to_list()
            told[:MAX_LISTED] = [
                f"{number} ({_show_value(value)})"
                for number, value in zip(told[:MAX_LISTED], held, strict=True)
            ]
        if len(told) == 1:
            return f"{self.noun} {told[0]}"
        more = f", ... ({len(told):,} {self.noun}s)" if len(told) > MAX_LISTED else ""
        return f"{self.noun}s {', '.join(told[:MAX_LISTED])}{more}"


def _show_value(value: object) -> str:
    if value is None or value == "":
        return "nothing"
    return repr(value if not isinstance(value, str) or len(value) <= 40 else value[:37] + "...")
