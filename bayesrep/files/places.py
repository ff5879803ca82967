"""Where in a table something stands, as who opens its file counts."""

from dataclasses import dataclass

import polars as pl

from bayesrep.errors import SHOWN

TEXTUAL = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".xlsx")
"""Endings of tables that have a header and lines, of whatever kind."""


@dataclass(frozen=True)
class Place:
    """A table, and how its rows are numbered where it is opened: `first` is that of the first.

    A CSV file's header counts, so that a number is that of a line in an editor or a spreadsheet.
    """

    name: str
    noun: str = "row"
    first: int = 1

    def __str__(self) -> str:
        """Its name, as messages begin."""
        return self.name

    @classmethod
    def from_name(cls, where: "str | Place") -> "Place":
        """A table that is known by its file's name alone."""
        if isinstance(where, Place):
            return where
        textual = where.lower().endswith(TEXTUAL)
        return cls(where, "line", 2) if textual else cls(where)

    def rows(self, wrong: pl.Series, values: pl.Series | None = None) -> str:
        """The rows that are wrong, the first of them with their values."""
        places = wrong.arg_true().to_list()
        told = [str(place + self.first) for place in places]
        if values is not None:
            held = values.gather(places[:SHOWN]).to_list()
            told[:SHOWN] = [
                f"{number} ({_show_value(value)})"
                for number, value in zip(told[:SHOWN], held, strict=True)
            ]
        if len(told) == 1:
            return f"{self.noun} {told[0]}"
        more = f", ... ({len(told):,} {self.noun}s)" if len(told) > SHOWN else ""
        return f"{self.noun}s {', '.join(told[:SHOWN])}{more}"


def _show_value(value: object) -> str:
    if value is None or value == "":
        return "nothing"
    return repr(value if not isinstance(value, str) or len(value) <= 40 else value[:37] + "...")
