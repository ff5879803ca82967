"""Questions about labels of images: every label a question, images' own labels, and counts."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from bayesrep.errors import MAX_LISTED, StudyError, TableWarning, listing, plain_text
from bayesrep.files.names import normalize_names, warn_of_numbers
from bayesrep.files.tables import require
from bayesrep.files.values import are_controls, is_missing, texts
from bayesrep.sources.match_names import explain_absence, match_image_names
from bayesrep.sources.raw_answers import EMPTY_ANSWER

MAX_ROWS = 10_000_000  # largest number of rows of a table of all answers, or images, by all labels
_IMAGE_ID = ["dataset", "image"]
_LABEL_KEY = [*_IMAGE_ID, "label"]


def ask_each(answers: pl.DataFrame, separator: str) -> pl.DataFrame:
    """Expand answers to a yes or no to every label that anybody selected in the data set.

    Parameters
    ----------
    answers
        With `dataset`, and `answer`: of several labels with the separator between them.
    separator
        Separator of labels.

    Raises
    ------
    StudyError
        If that would be more than `MAX_ROWS` rows.

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
    selected = pairs.with_columns(answer=pl.lit("yes"))
    return every.join(selected, on=["row", "label"], how="left", maintain_order="left").select(
        pl.exclude("row", "answer"), pl.col("answer").fill_null("no")
    )


def _split_labels(numbered: pl.DataFrame, separator: str) -> pl.DataFrame:
    """Every `label` that the answer of a `row` holds."""
    words = pl.col("answer").replace(EMPTY_ANSWER, "").str.split(separator)
    pairs = numbered.select("row", label=words).explode("label")
    return (
        pairs.with_columns(normalize_names(pl.col("label"))).filter(pl.col("label") != "").unique()
    )


def _bound(units: pl.DataFrame, vocabulary: pl.DataFrame, noun: str) -> None:
    """Refuse a table of answers, or images, by all labels of their data set that is too large."""
    sizes = (
        units.group_by("dataset")
        .len()
        .join(vocabulary.group_by("dataset").len("labels"), on="dataset")
    )
    rows = int((sizes["len"].cast(pl.Int64) * sizes["labels"].cast(pl.Int64)).sum())
    if rows > MAX_ROWS:
        raise StudyError(
            "too-many-answers-by-labels",
            number=len(units),
            noun=noun,
            labels=int(vocabulary["label"].n_unique()),
            rows=rows,
            most=MAX_ROWS,
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
            text_of_warning = f"labels {text}: {listing(names.filter(are_odd), 'label')}"
            warnings.warn(TableWarning(text_of_warning), stacklevel=3)
    warn_of_numbers(names.rename("label"), "the answers")


@dataclass(frozen=True, eq=False)
class Own:
    """The answers about images' own labels."""

    answers: pl.DataFrame  # answers whose label is the image's own
    labels: pl.DataFrame  # `dataset`, `image`, `label` of the images that have answers
    spellings: Mapping[str, str]  # labels in another case to the own labels
    left_out: Mapping[str, int]  # number of other answers, by reason

    def mark(self, counts: pl.DataFrame) -> pl.DataFrame:
        """Mark own labels in these images' counts; one that nobody selected has 0 of n."""
        counts = counts.with_columns(pl.col("label").replace(self.spellings))
        counts = counts.join(self.labels, on=_IMAGE_ID, how="semi", maintain_order="left")
        n_answers = counts.group_by(_IMAGE_ID).agg(pl.col("shown").first())
        never = self.labels.join(counts, on=_LABEL_KEY, how="anti").join(n_answers, on=_IMAGE_ID)
        never = never.select(*_LABEL_KEY, pl.lit(0, pl.Int64).alias("selected"), "shown")
        own = self.labels.with_columns(own=pl.lit(value=True))
        table = pl.concat([counts, never]).join(
            own, on=_LABEL_KEY, how="left", maintain_order="left"
        )
        return table.select(*_LABEL_KEY, pl.col("own").fill_null(value=False), "selected", "shown")


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
        Separator of the labels of one answer.

    Raises
    ------
    StudyError
        If the answers have no labels, or nobody was asked about some image's label; if an image
        has two own labels, none has both a label and answers, or several spellings of a label
        differ only in the case of their letters; or if most images, but not all, match the
        answers' under other names.

    Warns
    -----
    TableWarning
        If images are matched under other names (`bayesrep.sources.match_names`); naming those that
        have answers and no label, or a label and no answers; labels that are
        spelled in another case; and, with a separator, those that nobody selected of any image.
    """
    require(labels, _LABEL_KEY, where)
    own = labels.select(texts(labels[name], where) for name in _LABEL_KEY)
    own = own.unique(maintain_order=True)
    if len(twice := own.filter(pl.struct(_IMAGE_ID).is_duplicated())):
        names = listing(twice["image"].unique(maintain_order=True))
        raise StudyError("own-label-twice", where=where, images=names)
    if separator is None and "label" not in answers.columns:
        raise StudyError("answers-name-no-label")
    numbered = answers.with_row_index("row")
    images = numbered.select(_IMAGE_ID).unique(maintain_order=True)
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
    labelled = own.join(images, on=_IMAGE_ID, how="semi", maintain_order="left")
    if labelled.is_empty():
        raise StudyError(
            "own-labels-of-other-images",
            where=where,
            labelled=listing(own["image"]),
            answered=listing(images["image"]),
            hint=explain_absence(images["image"], own),
        )
    _tell(
        where, "have answers and no label; these are left out", images.join(own, _IMAGE_ID, "anti")
    )
    _tell(where, "have a label and no answers", own.join(images, on=_IMAGE_ID, how="anti"))
    # Answers about images without a label cannot count.
    about_labelled = numbered.join(
        labelled.select(_IMAGE_ID), on=_IMAGE_ID, how="semi", maintain_order="left"
    )
    # Either each answer names the one label it is about, or it lists all labels selected.
    if separator is None:
        spellings = _spellings(own["label"], numbered["label"], where)
        named = about_labelled.with_columns(pl.col("label").replace(spellings))
        own_answers = named.join(labelled, on=_LABEL_KEY, how="semi", maintain_order="left")
        if len(
            never := labelled.join(own_answers, on=_IMAGE_ID, how="anti", maintain_order="left")
        ):
            raise StudyError("label-never-asked-about", where=where, images=listing(never["image"]))
    else:
        pairs = _split_labels(numbered, separator)
        spellings = _spellings(own["label"], pairs["label"], where)
        yes = pairs.with_columns(pl.col("label").replace(spellings), answer=pl.lit("yes"))
        never = labelled.filter(~pl.col("label").is_in(yes["label"].unique().to_list()))
        if len(never):  # perhaps they are misspelled
            names = listing(never["label"].unique(maintain_order=True), "label")
            count = f"{len(never):,} images have that label, and all answers about them count as"
            text = f"{where}: nobody selected {names} of any image; {count} a no"
            warnings.warn(TableWarning(text), stacklevel=2)
        own_answers = about_labelled.drop("answer", "label", strict=False).join(
            labelled, on=_IMAGE_ID, maintain_order="left"
        )
        own_answers = own_answers.join(yes, on=["row", "label"], how="left", maintain_order="left")
        own_answers = own_answers.with_columns(pl.col("answer").fill_null("no"))
    left_out = {
        "about images without a label": len(numbered) - len(about_labelled),
        "about another label": len(about_labelled) - len(own_answers),
    }
    return Own(own_answers.drop("row"), labelled, spellings, left_out)


def _spellings(own: pl.Series, answered: pl.Series, where: str) -> dict[str, str]:
    """Match labels of the answers to own ones in another case, one to one."""
    mine, theirs = (
        each.unique().sort().to_frame("label").with_columns(key=pl.col("label").str.to_lowercase())
        for each in (own, answered)
    )
    strange = theirs.join(mine, on="label", how="anti").join(mine, on="key", suffix="_own")
    if strange.is_empty():
        return {}
    by_key = [each.join(strange, on="key", how="semi") for each in (mine, theirs)]
    if any(each["key"].is_duplicated().any() for each in by_key):
        names = pl.concat([each["label"] for each in by_key]).unique().sort()
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


def count_labels(answers: pl.DataFrame) -> pl.DataFrame:
    """Count how often each label was selected for each image, without controls."""
    if "label" not in answers.columns:
        raise StudyError("answers-name-no-label")
    _tell_odd_labels(answers["label"])
    return (
        _without_controls(answers)
        .group_by(_LABEL_KEY, maintain_order=True)
        .agg(pl.col("selected").sum().cast(pl.Int64), shown=pl.len().cast(pl.Int64))
    )


def count_choices(answers: pl.DataFrame, separator: str) -> pl.DataFrame:
    """Count selections in answers of several labels, each about all labels of the data set.

    Raises
    ------
    StudyError
        If images times labels are more than `MAX_ROWS` rows.
    """
    numbered = _without_controls(answers).with_row_index("row")
    pairs = _split_labels(numbered, separator).join(numbered.select("row", *_IMAGE_ID), on="row")
    vocabulary = pairs.select("dataset", "label").unique().sort("dataset", "label")
    n_answers = numbered.group_by(_IMAGE_ID, maintain_order=True).agg(shown=pl.len().cast(pl.Int64))
    _bound(n_answers, vocabulary, "images")
    selected = pairs.group_by(_LABEL_KEY).agg(selected=pl.len().cast(pl.Int64))
    every = n_answers.join(vocabulary, on="dataset", maintain_order="left_right")
    every = every.join(selected, on=_LABEL_KEY, how="left", maintain_order="left")
    return every.select(*_LABEL_KEY, pl.col("selected").fill_null(0), "shown")


def _without_controls(answers: pl.DataFrame) -> pl.DataFrame:
    has_controls = "control" in answers.columns
    return answers.filter(~are_controls(answers["control"])) if has_controls else answers
