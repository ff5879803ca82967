"""Where published data lie: beside the project, unless the environment names another folder."""

import os
from pathlib import Path

DATA = Path(
    os.environ.get("BAYESREP_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)
