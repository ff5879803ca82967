"""Logs of evaluation tools, one file a format; start at `reading.py`."""

from bayesrep.sources.evals.reading import read_evaluations
from bayesrep.sources.evals.survey import list_contents

__all__ = ["list_contents", "read_evaluations"]
