"""One-to-one matching of images that two tables name differently, by the keys of `KEY_OF_WAY`."""

import warnings
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import unquote

import polars as pl

from bayesrep.errors import StudyError, TableWarning, did_you_mean, listing
from bayesrep.files.names import normalize_name, normalize_names

_ENDING_PATTERN = r"(?i)\.(jpe?g|png|webp|bmp|gif|tiff?|ppm|npy)$"
_ZEROS_PATTERN = r"^0+(\d+(?:\.\w+)?)$"
_UPLOAD_DIGITS = r"^[0-9a-f]{8}-(.)"
_FOLDER_COUNTS = ("folder", "two folders", "three folders", "four folders")
_NAME_KEY = pl.col("name")
_NAME_PARTS = _NAME_KEY.str.replace_all("\\", "/", literal=True).str.split("/")
_BARE_KEY = _NAME_PARTS.list.last()
_STEM_KEY = _NAME_KEY.str.replace(_ENDING_PATTERN, "")
_BARE_STEM = _BARE_KEY.str.replace(_ENDING_PATTERN, "")
_LAST_PARTS = {
    text: _NAME_PARTS.list.tail(n).list.join("/") for n, text in enumerate(_FOLDER_COUNTS, 2)
}
KEY_OF_WAY: Mapping[str, pl.Expr] = {
    "in composed letters": _NAME_KEY,
    "without folders": _BARE_KEY,
    "without endings": _STEM_KEY,
    "without folders and endings": _BARE_STEM,
    "whatever their case": _NAME_KEY.str.to_lowercase(),
    "without endings, whatever their case": _STEM_KEY.str.to_lowercase(),
    "without folders and endings, whatever their case": _BARE_STEM.str.to_lowercase(),
    **{f"by name and last {text}": way for text, way in _LAST_PARTS.items()},
    **{
        f"by name without ending and last {text}": way.str.replace(_ENDING_PATTERN, "")
        for text, way in _LAST_PARTS.items()
    },
    "without leading zeros": _NAME_KEY.str.replace(_ZEROS_PATTERN, "$1"),
    "without folders, endings and leading zeros": _BARE_STEM.str.replace(_ZEROS_PATTERN, "$1"),
    "without the eight digits before an upload": _BARE_KEY.str.replace(_UPLOAD_DIGITS, "$1"),
    "without endings and the eight digits before an upload": _BARE_STEM.str.replace(
        _UPLOAD_DIGITS, "$1"
    ),
}
"""Keys to compare names by, with their description."""
_AS_NUMBER = _NAME_KEY.str.replace(r"^\+?0*(\d+(?:\.\d*[1-9])?)\.?0*$", "$1")
_AS_WORDS = _NAME_KEY.str.to_lowercase().str.replace_all(r"[\s_-]+", " ")
_EXPLAINED_KEYS: Mapping[str, pl.Expr] = {
    **KEY_OF_WAY,
    "as decimal numbers": _AS_NUMBER,
    "whatever their case and what parts their words": _AS_WORDS,
}
"""Keys for explanations alone: names that are equal as numbers may be two images."""


def match_image_names(
    frame: pl.DataFrame, counted: pl.Series, *, dataset: str, where: str, counts: str, covers: bool
) -> pl.DataFrame:
    """Rename one data set's images to the counts' names; refuse if most match, but not all."""
    # With `covers` the counted images must all be in the table, rather than the table's counted.
    own = frame.filter(pl.col("dataset") == dataset).select(
        pl.col("image").unique(maintain_order=True)
    )
    theirs = counted.unique(maintain_order=True).to_frame("image")
    needed, available = (theirs, own) if covers else (own, theirs)
    strange = needed.join(available, on="image", how="anti").height
    if not own.height or not strange:
        return frame
    best = _find_best_way(own, theirs, needed.height)
    if best is None or best[0] >= strange:
        return frame
    n_unmatched, description, pairs = best
    old, new = next((row for row in pairs.iter_rows() if row[0] != row[1]), pairs.row(0))
    if n_unmatched:
        side = "new" if covers else "image"
        lost = needed.join(pairs.select(pl.col(side).alias("image")), on="image", how="anti")
        raise StudyError(
            "image-names-partly-matched",
            where=where,
            dataset=dataset,
            counts_where=counts,
            image=old,
            counted_image=new,
            matching=description,
            images=listing(lost["image"]),
        )
    text = (
        f"{where}: {pairs.height:,} images of {dataset!r} are matched with {counts} "
        f"{description}: {old!r} is {new!r}"
    )
    warnings.warn(TableWarning(text), stacklevel=2)
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
    """The one-to-one key that leaves fewest names: their number, its description, the pairs."""
    best: tuple[int, str, pl.DataFrame] | None = None
    for description, mine, other in _compare(own, theirs, KEY_OF_WAY):
        if mine["key"].is_duplicated().any() or other["key"].is_duplicated().any():
            continue
        pairs = mine.join(other.rename({"image": "new"}), on="key").select("image", "new")
        n_unmatched = needed - pairs.height
        if best is None or n_unmatched < best[0]:
            best = n_unmatched, description, pairs
        if not n_unmatched:
            break
    return best


def _compare(
    own: pl.DataFrame, theirs: pl.DataFrame, ways: Mapping[str, pl.Expr]
) -> Iterator[tuple[str, pl.DataFrame, pl.DataFrame]]:
    """Yield names with the `key` of each way: as they are, then with decoded addresses."""
    one, two = (x.select("image", name=normalize_names(pl.col("image"))) for x in (own, theirs))
    for description, way in ways.items():
        yield description, one.with_columns(key=way), two.with_columns(key=way)
    first, second = (each.with_columns(_decode_addresses(each["name"])) for each in (one, two))
    if not (first.equals(one) and second.equals(two)):
        for way, key in KEY_OF_WAY.items():
            description = f"{way}, addresses decoded"
            yield description, first.with_columns(key=key), second.with_columns(key=key)


def _decode_addresses(names: pl.Series) -> pl.Series:
    """The files that addresses mean: of `/local-files/?d=a`, `b/a?X-Amz-...`, `a#t=1`, `%61`."""
    files = names.str.replace(r"^(.*/local-files/?)?\?d=", "")
    files = files.str.replace(r"#\w+=[\w.,:-]*$", "").str.replace(r"\?[\w.~-]+=.*$", "")
    encoded = files.str.contains(r"%[0-9A-Fa-f]{2}").fill_null(value=False).arg_true()
    decoded = [normalize_name(unquote(name)) for name in files.gather(encoded)]
    return files.scatter(encoded, decoded)


def explain_names(names: Collection[str], known_names: Collection[str]) -> str:
    """Explain how a name differs from the probable one, as the end of a message; or nothing."""
    explanation = explain_writing(names, known_names)
    return explanation or (did_you_mean(next(iter(names)), known_names) if len(names) == 1 else "")


def explain_writing(names: Collection[str], known_names: Collection[str]) -> str:
    """Explain how a name differs in writing from a known one; or nothing."""
    texts = {"image": pl.String}
    strange, known_frame = (
        pl.DataFrame({"image": list(each)}, texts) for each in (names, known_names)
    )
    for description, mine, other in _compare(strange, known_frame, _EXPLAINED_KEYS):
        pairs = mine.join(other, on="key", suffix="_new", maintain_order="left")
        if pairs.height:
            one, new = pairs["image"][0], pairs["image_new"][0]
            return f"; {one!r} and {new!r} are alike {description}, give them one name"
    return ""


def explain_absence(names: Collection[str], table: pl.DataFrame) -> str:
    """Explain why a table with the column image, and perhaps dataset, lacks a set's images."""
    present = table.filter(pl.col("image").is_in(list(names)))
    if "dataset" in table.columns and present.height:
        return f"; they are there as images of {listing(present['dataset'].unique(), 'data set')}"
    return explain_names(names, table["image"].drop_nulls().unique(maintain_order=True))
