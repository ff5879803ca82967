"""A rule of selection as a table of accepted counts with probabilities."""

from pathlib import Path

import polars as pl

from bayesrep.files.tables import read_only, require
from bayesrep.files.values import probabilities, whole_numbers


def read_selection(path: Path) -> list[tuple[int, int, float]]:
    """The rows of a table of accepted counts, for `bayesrep.studies.selection.Selection.parse`."""
    table, where = read_only(path, ("selected", "shown", "probability"))
    require(table, ("selected", "shown"), where)
    if "probability" not in table.columns:
        table = table.with_columns(probability=pl.lit(1.0))
    columns = [whole_numbers(table[name], where) for name in ("selected", "shown")]
    rows = pl.DataFrame([*columns, probabilities(table["probability"], where)])
    return [(int(k), int(n), float(p)) for k, n, p in rows.iter_rows()]
