"""Images that two tables name differently, matched where that is one to one.

One table has `n01/a.JPEG`, the other `a`; one was written on Windows, or on a Mac; a spreadsheet
made 7 of 007, Label Studio put eight digits before what was uploaded, or a store signed its
addresses. Names are compared in the ways of `WAYS`, in this order; the first by which no two images
become one, and every image is found, is taken and said. Where none is, how names differ is told.
"""

import warnings
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import unquote

import polars as pl

from bayesrep.errors import StudyError, TableWarning, did_you_mean, listing
from bayesrep.files.names import normalize_name, normalize_names

_ENDING = r"(?i)\.(jpe?g|png|webp|bmp|gif|tiff?|ppm|npy)$"
_ZEROS = r"^0+(\d+(?:\.\w+)?)$"
_UPLOAD = r"^[0-9a-f]{8}-(.)"
_FOLDERS = ("folder", "two folders", "three folders", "four folders")
_NAME = pl.col("name")
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
_AS_NUMBER = _NAME.str.replace(r"^\+?0*(\d+(?:\.\d*[1-9])?)\.?0*$", "$1")
_AS_WORDS = _NAME.str.to_lowercase().str.replace_all(r"[\s_-]+", " ")
_TOLD: Mapping[str, pl.Expr] = {
    **WAYS,
    "as decimal numbers": _AS_NUMBER,
    "whatever their case and what parts their words": _AS_WORDS,
}
"""What is told of how names differ: those that are alike as numbers may be two, and stay so."""


def match_image_names(
    frame: pl.DataFrame, counted: pl.Series, *, dataset: str, where: str, counts: str, covers: bool
) -> pl.DataFrame:
    """A table whose images of one data set are called as the counts call them.

    It is the frame itself where all are found as they are called, or none can be; most under other
    names, but not all, are refused. `covers` says whether the counted images must all be found in
    the table, rather than the table's among the counted.
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
        raise StudyError(
            "image-names-partly-matched",
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
    for said, mine, other in _compare(own, theirs, WAYS):
        if mine["key"].is_duplicated().any() or other["key"].is_duplicated().any():
            continue
        pairs = mine.join(other.rename({"image": "new"}), on="key").select("image", "new")
        left = needed - pairs.height
        if best is None or left < best[0]:
            best = left, said, pairs
        if not left:
            break
    return best


def _compare(
    own: pl.DataFrame, theirs: pl.DataFrame, ways: Mapping[str, pl.Expr]
) -> Iterator[tuple[str, pl.DataFrame, pl.DataFrame]]:
    """Names with the `key` of each way: as they are, then those of the files of addresses."""
    one, two = (x.select("image", name=normalize_names(pl.col("image"))) for x in (own, theirs))
    for said, way in ways.items():
        yield said, one.with_columns(key=way), two.with_columns(key=way)
    first, second = (each.with_columns(_decode_addresses(each["name"])) for each in (one, two))
    if not (first.equals(one) and second.equals(two)):
        for way, key in WAYS.items():
            said = f"{way}, addresses decoded"
            yield said, first.with_columns(key=key), second.with_columns(key=key)


def _decode_addresses(names: pl.Series) -> pl.Series:
    """The files that addresses mean: of `/local-files/?d=a`, `b/a?X-Amz-...`, `a#t=1`, `%61`."""
    files = names.str.replace(r"^(.*/local-files/?)?\?d=", "")
    files = files.str.replace(r"#\w+=[\w.,:-]*$", "").str.replace(r"\?[\w.~-]+=.*$", "")
    encoded = files.str.contains(r"%[0-9A-Fa-f]{2}").fill_null(value=False).arg_true()
    decoded = [normalize_name(unquote(name)) for name in files.gather(encoded)]
    return files.scatter(encoded, decoded)


def explain_names(names: Collection[str], known: Collection[str]) -> str:
    """How a name differs from the one that is probably meant, as a message ends; or nothing."""
    told = explain_writing(names, known)
    return told or (did_you_mean(next(iter(names)), known) if len(names) == 1 else "")


def explain_writing(names: Collection[str], known: Collection[str]) -> str:
    """The same of a name that is written otherwise, but alike."""
    texts = {"image": pl.String}
    strange, held = (pl.DataFrame({"image": list(each)}, texts) for each in (names, known))
    for said, mine, other in _compare(strange, held, _TOLD):
        pairs = mine.join(other, on="key", suffix="_new", maintain_order="left")
        if pairs.height:
            one, new = pairs["image"][0], pairs["image_new"][0]
            return f"; {one!r} and {new!r} are alike {said}, give them one name"
    return ""


def explain_absence(names: Collection[str], table: pl.DataFrame) -> str:
    """Why a table with the column image, and perhaps dataset, has none of a data set's images."""
    there = table.filter(pl.col("image").is_in(list(names)))
    if "dataset" in table.columns and there.height:
        return f"; they are there as images of {listing(there['dataset'].unique(), 'data set')}"
    return explain_names(names, table["image"].drop_nulls().unique(maintain_order=True))
