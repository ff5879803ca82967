"""Images that two tables name differently, matched where that is one to one.

One table has `n01/a.JPEG`, the other `a`; one was written on Windows, or on a Mac; a spreadsheet
made 7 of 007, and Label Studio put eight digits before what was uploaded. Names are compared in the
ways of `WAYS`, in this order; the first by which no two images become one, and every image is
found, is taken and said.
"""

import warnings
from collections.abc import Mapping

import polars as pl

from bayesrep.errors import StudyError, TableWarning, listing
from bayesrep.files.names import normalize_names

_ENDING = r"(?i)\.(jpe?g|png|webp|bmp|gif|tiff?|ppm|npy)$"
_ZEROS = r"^0+(\d+(?:\.\w+)?)$"
_UPLOAD = r"^[0-9a-f]{8}-(.)"
_FOLDERS = ("folder", "two folders", "three folders", "four folders")
_NAME = normalize_names(pl.col("image"))
_PARTS = _NAME.str.replace_all("\\", "/", literal=True).str.split("/")
_BARE = _PARTS.list.last()
_STEM = _NAME.str.replace(_ENDING, "")
_BARE_STEM = _BARE.str.replace(_ENDING, "")
_LAST_PARTS = {said: _PARTS.list.tail(at).list.join("/") for at, said in enumerate(_FOLDERS, 2)}
WAYS: Mapping[str, pl.Expr] = {
    "in composed letters": _NAME,
    "without folders": _BARE,
    "without endings": _STEM,
    "without folders and endings": _BARE_STEM,
    "whatever their case": _NAME.str.to_lowercase(),
    "without endings, whatever their case": _STEM.str.to_lowercase(),
    "without folders and endings, whatever their case": _BARE_STEM.str.to_lowercase(),
    **{f"by name and last {said}": way for said, way in _LAST_PARTS.items()},
    **{
        f"by name without ending and last {said}": way.str.replace(_ENDING, "")
        for said, way in _LAST_PARTS.items()
    },
    "without leading zeros": _NAME.str.replace(_ZEROS, "$1"),
    "without folders, endings and leading zeros": _BARE_STEM.str.replace(_ZEROS, "$1"),
    "without the eight digits before an upload": _BARE.str.replace(_UPLOAD, "$1"),
    "without endings and the eight digits before an upload": _BARE_STEM.str.replace(_UPLOAD, "$1"),
}
"""What names are compared by where they differ, and how that is said."""


def match_image_names(
    frame: pl.DataFrame,
    counted: pl.Series,
    *,
    dataset: str,
    where: str,
    counts: str,
    covers: bool,
) -> pl.DataFrame:
    """A table whose images of one data set are called as the counts call them.

    Parameters
    ----------
    frame
        With the columns dataset and image.
    counted
        The images of the data set that have counts, each once.
    dataset
        The data set; rows of others are left alone.
    where, counts
        The two tables, in messages.
    covers
        Whether it is the counted images that must all be found in the table, rather than the
        table's among the counted.

    Returns
    -------
    polars.DataFrame
        The frame itself, where all are found as they are called, or cannot be.

    Raises
    ------
    StudyError
        If most are found under other names, but not all: those are then named.

    Warns
    -----
    TableWarning
        If images are matched under other names.
    """
    own = frame.filter(pl.col("dataset") == dataset).select(
        pl.col("image").unique(maintain_order=True)
    )
    theirs = counted.unique(maintain_order=True).to_frame("image")
    needed, held = (theirs, own) if covers else (own, theirs)
    strange = needed.join(held, on="image", how="anti").height
    # Names that agree as they are need no way of reading them.
    if not own.height or not strange:
        return frame
    best = _find_best_way(own, theirs, needed.height)
    if best is None or best[0] >= strange:
        return frame
    left, said, pairs = best
    old, new = next((row for row in pairs.iter_rows() if row[0] != row[1]), pairs.row(0))
    # A way that helps but not for all is refused with examples.
    if left:
        side = "new" if covers else "image"
        lost = needed.join(pairs.select(pl.col(side).alias("image")), on="image", how="anti")
        rule = (
            "counted-image-names-partly-matched"
            if covers
            else "predicted-image-names-partly-matched"
        )
        raise StudyError(
            rule,
            where=where,
            dataset=dataset,
            counts_where=counts,
            image=old,
            counted_image=new,
            matching=said,
            images=listing(lost["image"]),
        )
    warnings.warn(
        TableWarning(
            f"{where}: {pairs.height:,} images of {dataset!r} are matched with {counts} {said}: "
            f"{old!r} is {new!r}"
        ),
        stacklevel=2,
    )
    renamed = frame.join(
        pairs.with_columns(dataset=pl.lit(dataset)),
        on=["dataset", "image"],
        how="left",
        maintain_order="left",
    )
    return renamed.with_columns(image=pl.coalesce("new", "image")).drop("new")


def _find_best_way(
    own: pl.DataFrame, theirs: pl.DataFrame, needed: int
) -> tuple[int, str, pl.DataFrame] | None:
    """Of all one-to-one ways of reading names the one that leaves the fewest of those unmatched.

    How many it leaves, how it is said, and the pairs: image, new.
    """
    best: tuple[int, str, pl.DataFrame] | None = None
    for said, way in WAYS.items():
        mine, other = (names.with_columns(key=way) for names in (own, theirs))
        if mine["key"].is_duplicated().any() or other["key"].is_duplicated().any():
            continue
        pairs = mine.join(other.rename({"image": "new"}), on="key").select("image", "new")
        left = needed - pairs.height
        if best is None or left < best[0]:
            best = left, said, pairs
    return best
