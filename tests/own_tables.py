"""Tables of one's own as a study, as `run` reads them."""

from typing import Any

from bayesrep import Study
from bayesrep.sources.tables import read


def read_tables(paths: Any, **options: Any) -> Study:
    return read(paths, **options).study()
