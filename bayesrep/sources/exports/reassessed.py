"""raters.npz of Reassessed ImageNet (Beyer et al. 2020): tensor, info, ids."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import StudyError, reason
from bayesrep.files import npy
from bayesrep.sources.exports.columns import Columns

RATING_NAMES = ("no", "maybe", "yes")  # ratings along the last axis of Reassessed ImageNet's tensor
MAX_ARCHIVE_BYTES = 2**32  # largest size of an archive's arrays


def read_reassessed(path: str | Path, _: Columns) -> pl.DataFrame:
    """Read the tensor [rater, question, answer] of google-research/reassessed-imagenet."""
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {each.filename: each.file_size for each in archive.infolist()}
            needed = ("tensor.npy", "info.npy", "ids.npy")
            if missing := [name for name in needed if name not in sizes]:
                raise ValueError(f"it has no {missing[0]}")
            # Sizes are read from the directory, before anything is unpacked.
            if sum(sizes.values()) > MAX_ARCHIVE_BYTES:
                raise ValueError(f"more than {MAX_ARCHIVE_BYTES // 2**30} GB")
            arrays: list[np.ndarray[Any, Any]] = []
            for name in needed:
                with archive.open(name) as stream:
                    arrays.append(npy.read(stream, sizes[name]))
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error
    except (ValueError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise StudyError("not-raters-archive", path=path, reason=reason(error)) from None
    tensor, info, ids = arrays
    # The three arrays describe one another: raters by questions by ratings.
    shape = (len(ids), len(info), len(RATING_NAMES))
    if tensor.shape != shape or info.shape[1:] != (2,) or tensor.dtype.kind not in "fiu":
        raise StudyError(
            "ratings-tensor-misshapen",
            path=path,
            shape=list(tensor.shape),
            ratings=", ".join(RATING_NAMES),
            rater_count=shape[0],
            question_count=shape[1],
        )
    # Every non-zero entry is one answer.
    rater, question, answer = np.nonzero(tensor)
    names = {
        "image": (info[:, 0], question),
        "worker": (ids, rater),
        "label": (info[:, 1], question),
        "answer": (np.array(RATING_NAMES), answer),
    }
    # Each name becomes a text once, not at every answer.
    return pl.DataFrame(
        {
            column: pl.Series(texts.astype(np.str_)).gather(places)
            for column, (texts, places) in names.items()
        }
    )
