"""The report that the site shows: of a simulated study, fitted when the site is built.

`BAYESREP_LIVE_REPORT=0` leaves it out, where a minute is too long.
"""

import os
from pathlib import Path

import bayesrep


def wanted() -> bool:
    """Whether the report is to be made."""
    return os.environ.get("BAYESREP_LIVE_REPORT", "1") != "0"


def write_report(target: Path, *, images: int = 2000, classifiers: int = 24) -> None:
    """Simulate, fit and write the page."""
    study = bayesrep.simulate_study(images=images, classifiers=classifiers)
    posterior = bayesrep.fit(study, method="laplace", progress=False)
    bayesrep.report(study, posterior).save(target, force=True)
