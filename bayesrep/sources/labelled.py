"""Answers about labels of images: every label a question, images' own labels, and counts.

Where several labels could be selected at a time, an answer is a yes to those that were and a no to
all others. Of each data set's labels only those are known that somebody selected. The table of all
answers to all of them is as large as both numbers multiplied; answers about own labels, and counts,
are made without it.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from bayesrep.errors import MAX_LISTED, StudyError, TableWarning, listing, plain_text
from bayesrep.files.names import normalize_names, warn_of_numbers
from bayesrep.files.tables import require
from bayesrep.files.values import are_controls, is_missing, texts
from bayesrep.sources.matching import explain_absence, match_image_names
from bayesrep.sources.raw_answers import EMPTY

MOST_ROWS = 10_000_000
"""Rows of a table of all answers, or images, by all labels."""
_IMAGE = ["dataset", "image"]
_KEY = [*_IMAGE, "label"]


def ask_each(answers: pl.DataFrame, separator: str) -> pl.DataFrame:
    """A yes or no to every label that anybody selected in the data set.

    Parameters
    ----------
    answers
        With `dataset`, and `answer`: of several labels with the separator between them.
    separator
        What stands between labels.

    Raises
    ------
    StudyError
        Where that would be more than `MOST_ROWS` rows.

    Warns
    -----
    TableWarning
        If labels differ in nothing but the case of their letters.
    """
    chosen = answers.with_row_index("row")
    pairs = _split_labels(chosen, separator)
    _tell_odd_labels(pairs["label"])
    vocabulary = chosen.select("row", "dataset").join(pairs, on="row").select("dataset", "label")
    vocabulary = vocabulary.unique().sort("dataset", "label")
    _bound(chosen.select("dataset"), vocabulary, "answers")
    rows = chosen.drop("answer", "label", strict=False)
    every = rows.join(vocabulary, on="dataset", maintain_order="left_right")
    said = pairs.with_columns(answer=pl.lit("yes"))
    return every.join(said, on=["row", "label"], how="left", maintain_order="left").select(
        pl.exclude("row", "answer"), pl.col("answer").fill_null("no")
    )


def _split_labels(numbered: pl.DataFrame, separator: str) -> pl.DataFrame:
    """Every `label` that the answer of a `row` holds."""
    words = pl.col("answer").replace(EMPTY, "").str.split(separator)
    pairs = numbered.select("row", label=words).explode("label")
    return (
        pairs.with_columns(normalize_names(pl.col("label"))).filter(pl.col("label") != "").unique()
    )


def _bound(asked: pl.DataFrame, vocabulary: pl.DataFrame, noun: str) -> None:
    """Refuse a table of each of some things by all labels of its data set that is too large."""
    sizes = (
        asked.group_by("dataset")
        .len()
        .join(vocabulary.group_by("dataset").len("labels"), on="dataset")
    )
    rows = int((sizes["len"].cast(pl.Int64) * sizes["labels"].cast(pl.Int64)).sum())
    if rows > MOST_ROWS:
        raise StudyError(
            "too-many-answers-by-labels",
            number=len(asked),
            noun=noun,
            labels=int(vocabulary["label"].n_unique()),
            rows=rows,
            most=MOST_ROWS,
        )


def _tell_odd_labels(labels: pl.Series) -> None:
    names = labels.unique().sort()
    odd = {
        "that differ only in the case of their letters are two questions": (
            names.str.to_lowercase().is_duplicated()
        ),
        "that may be no answer are asked about as others are; leave a cell without answer empty": (
            is_missing(names)
        ),
    }
    for text, are_odd in odd.items():
        if are_odd.any():
            told = f"labels {text}: {listing(names.filter(are_odd), 'label')}"
            warnings.warn(TableWarning(told), stacklevel=3)
    warn_of_numbers(names.rename("label"), "the answers")


@dataclass(frozen=True, eq=False)
class Own:
    """The answers about images' own labels.

    Attributes
    ----------
    answers
        Whose label is the image's own.
    labels
        `dataset`, `image`, `label` of the images that have answers.
    spellings
        Labels as the answers have them, by which case of their letters differs, and as they are.
    left_out
        How many other answers there were, by reason.
    """

    answers: pl.DataFrame
    labels: pl.DataFrame
    spellings: Mapping[str, str]
    left_out: Mapping[str, int]

    def mark(self, counts: pl.DataFrame) -> pl.DataFrame:
        """Counts of these images, with `own`; an own label that nobody selected is 0 of n."""
        counts = counts.with_columns(pl.col("label").replace(self.spellings))
        counts = counts.join(self.labels, on=_IMAGE, how="semi", maintain_order="left")
        shown = counts.group_by(_IMAGE).agg(pl.col("shown").first())
        never = self.labels.join(counts, on=_KEY, how="anti").join(shown, on=_IMAGE)
        never = never.select(*_KEY, pl.lit(0, pl.Int64).alias("selected"), "shown")
        own = self.labels.with_columns(own=pl.lit(value=True))
        table = pl.concat([counts, never]).join(own, on=_KEY, how="left", maintain_order="left")
        return table.select(*_KEY, pl.col("own").fill_null(value=False), "selected", "shown")


def own_labels(
    answers: pl.DataFrame, labels: pl.DataFrame, where: str, separator: str | None = None
) -> Own:
    """Find the answers about images' own labels.

    Parameters
    ----------
    answers
        With `dataset`, `image`, and `label`; or, with a separator, an `answer` of several labels,
        each of which is a no to the own label if that is not among them.
    labels
        `dataset`, `image`, `label`: one row an image.
    where
        The labels' file.
    separator
        What stands between labels of one answer.

    Raises
    ------
    StudyError
        Where the answers have no labels, or there are images nobody was asked about the label of;
        where an image has two own labels, none has both a label and answers, or several spellings
        of a label differ only in the case of their letters; or where images are called otherwise
        than the answers call them, and most are found under other names, but not all.

    Warns
    -----
    TableWarning
        If images are matched under other names (`bayesrep.sources.matching`); naming those that
        have answers and no label, or a label and no answers; labels that are
        spelled in another case; and, with a separator, those that nobody selected of any image.
    """
    own = _one_an_image(labels, where)
    if separator is None and "label" not in answers.columns:
        raise StudyError("answers-name-no-label")
    numbered = answers.with_row_index("row")
    images = numbered.select(_IMAGE).unique(maintain_order=True)
    # Names of images in the table of labels are brought to those of the answers.
    for (dataset,), counted in images.group_by("dataset", maintain_order=True):
        own = match_image_names(
            own,
            counted["image"],
            dataset=str(dataset),
            where=where,
            counts="the answers",
            # Of as many labels as answered images, the images must all be found.
            covers=len(own.join(counted, on="dataset", how="semi")) >= len(counted),
        )
    asked = own.join(images, on=_IMAGE, how="semi", maintain_order="left")
    if asked.is_empty():
        raise StudyError(
            "own-labels-of-other-images",
            where=where,
            labelled=listing(own["image"]),
            answered=listing(images["image"]),
            hint=explain_absence(images["image"], own),
        )
    _tell(where, "have answers and no label; these are left out", images.join(own, _IMAGE, "anti"))
    _tell(where, "have a label and no answers", own.join(images, on=_IMAGE, how="anti"))
    # Answers about images without a label cannot count.
    about = numbered.join(asked.select(_IMAGE), on=_IMAGE, how="semi", maintain_order="left")
    # Either each answer names the one label it is about, or it lists all labels selected.
    if separator is None:
        spellings = _spellings(own["label"], numbered["label"], where)
        named = about.with_columns(pl.col("label").replace(spellings))
        kept = named.join(asked, on=_KEY, how="semi", maintain_order="left")
        if len(never := asked.join(kept, on=_IMAGE, how="anti", maintain_order="left")):
            raise StudyError("label-never-asked-about", where=where, images=listing(never["image"]))
    else:
        pairs = _split_labels(numbered, separator)
        spellings = _spellings(own["label"], pairs["label"], where)
        yes = pairs.with_columns(pl.col("label").replace(spellings), answer=pl.lit("yes"))
        _tell_unselected(where, asked, yes["label"])
        kept = about.drop("answer", "label", strict=False).join(
            asked, on=_IMAGE, maintain_order="left"
        )
        kept = kept.join(yes, on=["row", "label"], how="left", maintain_order="left")
        kept = kept.with_columns(pl.col("answer").fill_null("no"))
    # Whatever does not count is counted here.
    left_out = {
        "about images without a label": len(numbered) - len(about),
        "about another label": len(about) - len(kept),
    }
    return Own(kept.drop("row"), asked, spellings, left_out)


def _one_an_image(labels: pl.DataFrame, where: str) -> pl.DataFrame:
    require(labels, _KEY, where)
    own = labels.select(texts(labels[name], where) for name in _KEY).unique(maintain_order=True)
    if len(twice := own.filter(pl.struct(_IMAGE).is_duplicated())):
        names = listing(twice["image"].unique(maintain_order=True))
        raise StudyError("own-label-twice", where=where, images=names)
    return own


def _spellings(own: pl.Series, said: pl.Series, where: str) -> dict[str, str]:
    """Labels of the answers that are own ones in another case, where that is one to one."""
    mine, theirs = (
        each.unique().sort().to_frame("label").with_columns(key=pl.col("label").str.to_lowercase())
        for each in (own, said)
    )
    strange = theirs.join(mine, on="label", how="anti").join(mine, on="key", suffix="_own")
    if strange.is_empty():
        return {}
    alike = [each.join(strange, on="key", how="semi") for each in (mine, theirs)]
    if any(each["key"].is_duplicated().any() for each in alike):
        names = pl.concat([each["label"] for each in alike]).unique().sort()
        raise StudyError("labels-alike-but-for-case", where=where, labels=listing(names, "label"))
    pairs = strange.sort("label").select("label", "label_own").rows()
    examples = ", ".join(
        f"{plain_text(old)!r} is {plain_text(new)!r}" for old, new in pairs[:MAX_LISTED]
    )
    how = f"labels of the answers are matched with its own whatever their case: {examples}"
    warnings.warn(TableWarning(f"{where}: {len(pairs):,} {how}"), stacklevel=3)
    return dict(pairs)


def _tell(where: str, what: str, rows: pl.DataFrame) -> None:
    if len(rows):
        text = f"{where}: {len(rows):,} images {what}: {listing(rows['image'])}"
        warnings.warn(TableWarning(text), stacklevel=3)


def _tell_unselected(where: str, asked: pl.DataFrame, selected: pl.Series) -> None:
    """Name own labels that nobody selected anywhere: perhaps they are misspelled."""
    never = asked.filter(~pl.col("label").is_in(selected.unique().to_list()))
    if len(never):
        names = listing(never["label"].unique(maintain_order=True), "label")
        count = f"{len(never):,} images have that label, and all answers about them count as a no"
        text = f"{where}: nobody selected {names} of any image; {count}"
        warnings.warn(TableWarning(text), stacklevel=3)


def count_labels(answers: pl.DataFrame) -> pl.DataFrame:
    """How often each label was selected of each image, controls left out."""
    if "label" not in answers.columns:
        raise StudyError("answers-name-no-label")
    _tell_odd_labels(answers["label"])
    return (
        _without_controls(answers)
        .group_by(_KEY, maintain_order=True)
        .agg(pl.col("selected").sum().cast(pl.Int64), shown=pl.len().cast(pl.Int64))
    )


def count_choices(answers: pl.DataFrame, separator: str) -> pl.DataFrame:
    """The same of answers of several labels, each about all that anybody selected in the data set.

    Raises
    ------
    StudyError
        Where images and labels multiplied are more than `MOST_ROWS` rows.
    """
    numbered = _without_controls(answers).with_row_index("row")
    pairs = _split_labels(numbered, separator).join(numbered.select("row", *_IMAGE), on="row")
    vocabulary = pairs.select("dataset", "label").unique().sort("dataset", "label")
    shown = numbered.group_by(_IMAGE, maintain_order=True).agg(shown=pl.len().cast(pl.Int64))
    _bound(shown, vocabulary, "images")
    selected = pairs.group_by(_KEY).agg(selected=pl.len().cast(pl.Int64))
    every = shown.join(vocabulary, on="dataset", maintain_order="left_right")
    every = every.join(selected, on=_KEY, how="left", maintain_order="left")
    return every.select(*_KEY, pl.col("selected").fill_null(0), "shown")


def _without_controls(answers: pl.DataFrame) -> pl.DataFrame:
    given = "control" in answers.columns
    return answers.filter(~are_controls(answers["control"])) if given else answers
