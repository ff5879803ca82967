"""Shortlists: labels of an image that are worth a closer look, and images that need one.

Tsipras et al. (2020), appendix B.1.3: from how often people select each potential label of an image
(the *contains* tasks), in this order,

    1  the data set's own label, however seldom it is selected;
    2  labels that are selected by at least half;
    3  labels that anybody selects and that are more than five steps from the own label in WordNet,
       for they may be another object's;
    4  where these are fewer than five, the others that anybody selects, most often selected first;
    5  of more than six the least often selected are left out, where they are selected less often
       than the own label, or that by no more than an eighth; the own label stays.

Appendix B.2: images go on to the *classify* tasks unless the own label was clearly the most likely
(among the labels that at least two thirds of the annotators were left to judge, 6 of 9, it was
selected more than twice as often as any other), nobody selected it, or no other label is left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from bayesrep.collect import wordnet
from bayesrep.collect.image_outcomes import IMAGE_KEY
from bayesrep.errors import StudyError, listing

MAJORITY_SHARE, FAR_STEPS, MIN_LABELS, MAX_SHORTLIST_LABELS, SELDOM_SHARE = 0.5, 5, 5, 6, 1 / 8
TWICE_RATIO, JUDGED_SHARE = 2.0, 2 / 3


@dataclass(frozen=True, eq=False)
class Shortlist:
    """Remaining labels, and the images' fates.

    Attributes
    ----------
    candidates
        One row a label that is left, of all images: `dataset`, `image`, `label`, `own`,
        `selected`, `shown`, `frequency`, `step` (1 to 4, by which it came in).
    images
        One row an image: `dataset`, `image`, `candidates`, `fate`: "classify", "clear" (the own
        label was), "own label never selected" or "no other label".
    steps
        One row a step: `step`, `labels` that came in by it (of step 5: that went).
    by_wordnet
        Whether step 3 could be done.
    """

    candidates: pl.DataFrame
    images: pl.DataFrame
    steps: pl.DataFrame
    by_wordnet: bool

    @property
    def to_classify(self) -> pl.DataFrame:
        """Candidates of the images to classify."""
        on = self.images.filter(pl.col("fate") == "classify")
        return self.candidates.join(on, on=IMAGE_KEY, how="semi", maintain_order="left")

    @property
    def fates(self) -> pl.DataFrame:
        """One row an image: `dataset`, `image`, `label` (its own), `candidates`, `fate`."""
        own = self.candidates.filter("own").select(*IMAGE_KEY, "label")
        with_own = self.images.join(own, on=IMAGE_KEY, how="left", maintain_order="left")
        return with_own.select(*IMAGE_KEY, "label", "candidates", "fate")


def shortlist(
    counts: pl.DataFrame, wnids: Mapping[str, str] | None = None, *, annotators: int | None = None
) -> Shortlist:
    """Choose the candidate labels of every image.

    Parameters
    ----------
    counts
        One row an image and label: `dataset`, `image`, `label`, `own` (one a image), `selected`,
        `shown`.
    wnids
        WordNet's number of every label. By default labels are their own; where none of them is
        one, step 3 is not done.
    annotators
        Number of annotators intended for each label; by default the most that any has.

    Raises
    ------
    StudyError
        Naming images without an own label or with two, and labels without a known number.
    """
    owns = counts.group_by(IMAGE_KEY, maintain_order=True).agg(pl.col("own").sum())
    if len(wrong := owns.filter(pl.col("own") != 1)):
        raise StudyError("image-without-one-own-label", images=listing(wrong["image"].to_list()))
    if not (counts["shown"].to_numpy() > 0).all():
        raise StudyError("label-shown-to-nobody")
    numbers = _numbers(counts["label"].unique().sort().to_list(), wnids)
    frequency = pl.col("selected") / pl.col("shown")
    table = counts.select(*IMAGE_KEY, "label", "own", "selected", "shown").with_row_index("order")
    table = table.with_columns(frequency=frequency.fill_nan(0.0))
    own = table.filter("own").select(*IMAGE_KEY, own_label="label", own_frequency="frequency")
    table = table.join(own, on=IMAGE_KEY, maintain_order="left")
    far = pl.lit(value=False) if numbers is None else _is_far(table, numbers)
    any_one = pl.col("selected") > 0
    table = table.with_columns(
        step=pl.when("own")
        .then(1)
        .when(frequency >= MAJORITY_SHARE)
        .then(2)
        .when(any_one & far)
        .then(3)
        .when(any_one)
        .then(4)
        .cast(pl.Int64)
    )
    table = table.sort(*IMAGE_KEY, "frequency", "order", descending=[False, False, True, False])
    sure = (pl.col("step") <= 3).sum().over(IMAGE_KEY)
    unsure = (pl.col("step") == 4).cum_sum().over(IMAGE_KEY)
    listed = (pl.col("step") <= 3) | ((pl.col("step") == 4) & (sure + unsure <= MIN_LABELS))
    table = table.filter(listed.fill_null(value=False))
    # The own label first, so that it is never among the excess.
    table = table.sort(
        *IMAGE_KEY, "own", "frequency", "order", descending=[False, False, True, True, False]
    )
    place = pl.int_range(pl.len()).over(IMAGE_KEY)
    seldom = (pl.col("frequency") < pl.col("own_frequency")) | (
        pl.col("own_frequency") <= SELDOM_SHARE
    )
    excess = table.select((place >= MAX_SHORTLIST_LABELS) & seldom).to_series()
    remaining = table.filter(~excess)
    counted = [int((table["step"] == step).sum()) for step in (1, 2, 3, 4)]
    steps = pl.DataFrame({"step": [1, 2, 3, 4, 5], "labels": [*counted, int(excess.sum())]})
    order = counts.select(IMAGE_KEY).unique(maintain_order=True)
    columns = [*IMAGE_KEY, "label", "own", "selected", "shown", "frequency", "step"]
    candidates = order.join(remaining.select(columns), on=IMAGE_KEY, maintain_order="left_right")
    intended = annotators or int(counts["shown"].to_numpy().max())
    return Shortlist(candidates, _fates(counts, candidates, intended), steps, numbers is not None)


def _numbers(labels: Sequence[str], wnids: Mapping[str, str] | None) -> dict[str, str] | None:
    """Look up WordNet's numbers of all labels; None if labels are something else."""
    if wnids is None:
        if not any(wordnet.has_synset(label) for label in labels):
            return None
        wnids = {label: label for label in labels}
    wnid_of = {label: wnids.get(label, "") for label in labels}
    if strange := [label for label, wnid in wnid_of.items() if not wordnet.has_synset(wnid)]:
        raise StudyError("label-without-imagenet-wnid", labels=listing(strange, "label"))
    return wnid_of


def _is_far(table: pl.DataFrame, numbers: Mapping[str, str]) -> pl.Series:
    """Test whether each label is more than `FAR_STEPS` from its image's own."""
    names = sorted(set(numbers.values()))
    steps = wordnet.distances(names)
    place = {label: names.index(wnid) for label, wnid in numbers.items()}
    one, other = (
        table[name].replace_strict(place, return_dtype=pl.Int64).to_numpy()
        for name in ("label", "own_label")
    )
    return pl.Series(steps[one, other] > FAR_STEPS)


def _fates(counts: pl.DataFrame, candidates: pl.DataFrame, intended: int) -> pl.DataFrame:
    frequency = pl.col("selected") / pl.col("shown")
    judged = pl.col("shown") >= np.ceil(JUDGED_SHARE * intended)
    by_image = counts.group_by(IMAGE_KEY, maintain_order=True).agg(
        own=frequency.filter("own").first(),
        own_judged=judged.filter("own").first(),
        other=frequency.filter(judged & ~pl.col("own")).max(),
    )
    sizes = candidates.group_by(IMAGE_KEY).agg(candidates=pl.len().cast(pl.Int64))
    clear = pl.col("own_judged") & (pl.col("own") > TWICE_RATIO * pl.col("other").fill_null(0.0))
    return by_image.join(sizes, on=IMAGE_KEY, maintain_order="left").select(
        *IMAGE_KEY,
        "candidates",
        fate=pl.when(pl.col("own") == 0)
        .then(pl.lit("own label never selected"))
        .when(pl.col("candidates") < 2)
        .then(pl.lit("no other label"))
        .when(clear)
        .then(pl.lit("clear"))
        .otherwise(pl.lit("classify")),
    )
