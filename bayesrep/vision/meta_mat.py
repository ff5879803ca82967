"""The development kit's `meta.mat`: wnids of the challenge's numbers, by SciPy in a sandbox."""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bayesrep.errors import PredictionError, reason
from bayesrep.files import sandbox
from bayesrep.studies.imagenet import N_CLASSES, synsets

MAX_FILE_BYTES = 2**24  # bytes; the kit's has some hundred thousand


def read_wnids(path: Path) -> dict[int, str]:
    """The wnid of every number in a `meta.mat`, once it is the development kit's and whole."""
    try:
        with TemporaryDirectory() as folder:
            table = Path(folder, "wnids.json")
            if line := sandbox.fault(extract, path, str(path), str(table)):
                raise ValueError(line.facts.get("reason", line))
            wnid_of = dict[int, str](json.loads(table.read_text(encoding="ascii")))
    except (OSError, ValueError) as error:
        raise PredictionError("meta-mat-not-of-devkit", path=path, reason=reason(error)) from error
    classes = {wnid_of.get(number) for number in range(1, N_CLASSES + 1)}
    if len(wnid_of) >= N_CLASSES and classes != set(synsets()):
        raise PredictionError("meta-mat-of-other-classes", path=path, class_count=N_CLASSES)
    return wnid_of


def extract(file: str, where: str, table: str) -> None:
    """Write numbers and wnids as JSON, in another process."""
    from scipy.io import loadmat

    del where
    if Path(file).stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"more than {MAX_FILE_BYTES:,} bytes")
    rows: Any = loadmat(file, variable_names=["synsets"])["synsets"].ravel()
    pairs = [(float(row["ILSVRC2012_ID"].item()), str(row["WNID"].item())) for row in rows]
    wnid_of = {int(number): wnid for number, wnid in pairs if number == int(number)}
    # A damaged file may be read as one without rows.
    if not 0 < len(wnid_of) == len(pairs) == len(set(wnid_of.values())):
        raise ValueError("a number or a wnid is there twice, or there is none")
    if strange := [each for each in wnid_of.values() if not re.fullmatch(r"n[0-9]+", each)]:
        raise ValueError(f"a WNID {strange[0][:20]!r} that is none")
    Path(table).write_text(json.dumps([*wnid_of.items()]), encoding="ascii")
