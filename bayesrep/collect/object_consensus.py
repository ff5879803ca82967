"""Consensus of several annotators on an image: its objects, their labels, the main one.

Tsipras et al. (2020), section 3.2: the labels are parted into so many groups, one an object, that
as few annotators as possible select two labels of one group: the largest cut of a graph in which
labels are tied by how many select both. All partitions are tried, and the first of equally good
ones is taken, groups being filled in the order of the labels. As in the annotations that the
authors published, of tied votes the value that was given first counts, and labels that nobody
selects together with another are in no group, unless there is one object.

Beside the votes stand probabilities, of what most people *would* say, from Dirichlet posteriors
whose priors are found in all images together.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np
import polars as pl
from scipy import optimize, special, stats

from bayesrep.collect.image_outcomes import IMAGE_KEY
from bayesrep.errors import StudyError, listing
from bayesrep.types import Floats, Ints

MOST_PARTITIONED_LABELS = 12  # most labels of an image: all partitions of them are tried
FLAGGED_SHARE = 1 / 3
_nodes, _weights = np.polynomial.legendre.leggauss(200)
_QUADRATURE_LEVELS, _QUADRATURE_WEIGHTS = (_nodes + 1) / 2, _weights / 2
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Objects:
    """One image's objects by annotators' votes."""

    number: int  # number of objects
    # Labels of every object, in the order in which they were given.
    groups: tuple[tuple[int, ...], ...]
    main: int  # the main object's label
    tied: tuple[str, ...]  # those of "number", "groups", "main" that were ties


def objects_of(
    labels: Sequence[int], selected: Sequence[Sequence[int]], main: Sequence[int]
) -> Objects:
    """Combine several annotators' answers about one image."""
    number, number_tied = plurality([len(set(each)) for each in selected])
    first, main_tied = plurality(main)
    tied = Counter(pair for each in selected for pair in combinations(sorted(set(each)), 2))
    together = {label for pair in tied for label in pair}
    parted = [label for label in labels if number == 1 or label in together]
    groups, groups_tied = partition(parted, tied, number)
    names = {"number": number_tied, "groups": groups_tied, "main": main_tied}
    return Objects(number, groups, first, tuple(name for name, is_so in names.items() if is_so))


def plurality(votes: Sequence[Name]) -> tuple[Name, bool]:
    """Find the most frequent value, the first of those that tie, and whether any do."""
    counted = Counter(votes)
    first, most = counted.most_common(1)[0]  # in the order of first votes
    return first, sum(count == most for count in counted.values()) > 1


def partition(
    labels: Sequence[int], tied: Counter[tuple[int, int]], number: int
) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """Find the grouping with fewest ties within groups, and whether another has as few."""
    size = len(labels)
    ties = np.zeros((size, size))
    for (one, other), count in tied.items():
        if one in labels and other in labels:
            ties[labels.index(one), labels.index(other)] = count
    ties += ties.T
    best, places_of_best, is_tied = np.inf, (), False
    for places in _partitions(size, min(number, size)):
        group_of = np.array(places)
        within = float(ties[group_of[:, None] == group_of].sum())
        if within < best:
            best, places_of_best, is_tied = within, places, False
        elif within == best:
            is_tied = True
    groups = tuple(
        tuple(label for label, place in zip(labels, places_of_best, strict=True) if place == group)
        for group in range(min(number, size))
    )
    return groups, is_tied


def _partitions(size: int, groups: int) -> Iterator[tuple[int, ...]]:
    """Yield all partitions into so many groups, none empty, each once."""

    def extend_partition(begun: tuple[int, ...], used: int) -> Iterator[tuple[int, ...]]:
        remaining = size - len(begun)
        if groups - used > remaining:
            return
        if not remaining:
            yield begun
            return
        for group in range(min(used + 1, groups)):
            yield from extend_partition((*begun, group), max(used, group + 1))

    yield from extend_partition((), 0)


def keep_sane(answers: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Select the done that pass the sanity rules (Tsipras et al., B.2), and count the others."""
    by = ["task", "worker"]
    done = answers.group_by(by, maintain_order=True).agg(
        any=pl.col("selected").any(), main=(pl.col("main") & pl.col("selected")).sum() == 1
    )
    done = done.with_columns(bad=~(pl.col("any") & pl.col("main")))
    is_flagged = pl.col("bad").mean().over("worker") > FLAGGED_SHARE
    done = done.with_columns(often=is_flagged)
    left_out = {
        "no label selected": int((~done["any"]).sum()),
        "main label not selected": int((done["any"] & ~done["main"]).sum()),
        "others of workers with more than a third of these": int(
            (done["often"] & ~done["bad"]).sum()
        ),
    }
    sane = done.filter(~pl.col("bad") & ~pl.col("often")).select(by)
    return answers.join(sane, on=by, how="semi", maintain_order="left"), left_out


def aggregate(answers: pl.DataFrame) -> pl.DataFrame:
    """Estimate every image's objects and their labels.

    Parameters
    ----------
    answers
        One row an answer about a label of an image: `dataset`, `image`, `label`, `worker`,
        `selected`, `main` (bool), and perhaps `own`. Assignments without any label or main label
        are none: leave them out (`keep_sane`).

    Returns
    -------
    polars.DataFrame
        One row an image and label: `dataset`, `image`, `label`, `own`; `selected`, `main` (how
        many gave it) of `shown`; `object` (the number, from 1, of the object that it is said of,
        null where it is in no group); `names` (whether it is the object's own label, the one that
        is selected most often); of the image `objects`, `agreed` (how many annotators see so many),
        `main_label` and `tied` (what was a tie);
        and the probabilities `p_valid` (that at least half of all people would select it),
        `p_main` (that most would say it is the main one's) and `p_several` (that most would see
        several objects).

    Raises
    ------
    StudyError
        If an image has too many labels, or an annotator gives two main labels or none.
    """
    question = [*IMAGE_KEY, "label"]
    own = pl.col("own").first() if "own" in answers.columns else pl.lit(None, pl.Boolean)
    counted = answers.group_by(question, maintain_order=True).agg(
        own=own,
        selected=pl.col("selected").sum().cast(pl.Int64),
        main=pl.col("main").sum().cast(pl.Int64),
        shown=pl.len().cast(pl.Int64),
    )
    # Labels are numbered within their image; partitions of many cannot all be tried.
    counted = counted.with_columns(number=pl.int_range(pl.len()).over(IMAGE_KEY))
    if len(many := counted.filter(pl.col("number") >= MOST_PARTITIONED_LABELS)):
        raise StudyError(
            "too-many-labels-of-image",
            images=listing(many["image"].unique(maintain_order=True).to_list()),
            most_labels=MOST_PARTITIONED_LABELS,
        )
    numbered = answers.join(counted.select(*question, "number"), on=question, maintain_order="left")
    # One row for each annotator of an image: the labels selected, and the main one.
    people = numbered.group_by([*IMAGE_KEY, "worker"], maintain_order=True).agg(
        chosen=pl.col("number").filter("selected"), first=pl.col("number").filter("main")
    )
    strange = people.filter((pl.col("first").list.len() != 1) | (pl.col("chosen").list.len() == 0))
    if len(strange):
        names = listing(strange["image"].unique(maintain_order=True).to_list())
        raise StudyError("annotator-without-one-main-label", images=names)
    of_images = people.group_by(IMAGE_KEY, maintain_order=True).agg(
        "chosen", pl.col("first").list.first()
    )
    # The objects of each image, by the partition that annotators' answers fit best.
    votes = of_images["chosen"].to_list()
    rows = [
        objects_of(sorted({label for each in chosen for label in each}), chosen, first)
        for chosen, first in zip(votes, of_images["first"].to_list(), strict=True)
    ]
    # How many annotators see as many objects as the vote; how many would see several.
    sizes = [[len(set(each)) for each in chosen] for chosen in votes]
    several = [np.bincount([min(n, 2) - 1 for n in each], minlength=2) for each in sizes]
    agreed = [each.count(row.number) for each, row in zip(sizes, rows, strict=True)]
    facts = of_images.select(IMAGE_KEY).with_columns(
        objects=pl.Series([each.number for each in rows], dtype=pl.Int64),
        agreed=pl.Series(agreed, dtype=pl.Int64),
        first=pl.Series([each.main for each in rows], dtype=pl.Int64),
        tied=pl.Series([", ".join(each.tied) or None for each in rows], dtype=pl.String),
        groups=pl.Series([_group_of(each) for each in rows], dtype=pl.List(pl.Int64)),
        p_several=pl.Series([float(each[1]) for each in most_probable(several)]),
    )
    table = counted.join(facts, on=IMAGE_KEY, maintain_order="left").with_columns(
        object=pl.col("groups").list.get(pl.col("number"), null_on_oob=True).replace(0, None),
        main_label=pl.col("label")
        .filter(pl.col("number") == pl.col("first"))
        .first()
        .over(IMAGE_KEY),
        p_valid=_label_validity(counted),
        p_main=_main(counted),
    )
    # An object is named by its most selected label, the first of equals.
    of_object = [*IMAGE_KEY, "object"]
    first = pl.col("selected") == pl.col("selected").max().over(of_object)
    first &= first.cum_sum().over(of_object) == 1
    table = table.with_columns(names=first & pl.col("object").is_not_null())
    return table.select(*question, *OBJECT_COLUMNS)


OBJECT_COLUMNS = tuple(
    "own selected main shown object names objects agreed main_label tied p_valid p_main p_several"
    "".split()
)


def _group_of(objects: Objects) -> list[int]:
    """Look up the object of every label, by number; 0 where it has none."""
    group_of = {label: n for n, group in enumerate(objects.groups, 1) for label in group}
    return [group_of.get(label, 0) for label in range(max(group_of, default=-1) + 1)]


def _label_validity(counted: pl.DataFrame) -> pl.Series:
    """Compute P(s >= 1/2 | k of n) of every label, with a beta prior by empirical Bayes."""
    k, n = (counted[name].to_numpy().astype(np.float64) for name in ("selected", "shown"))

    def loss(logs: Floats) -> float:
        a, b = np.exp(logs)
        return -float((special.betaln(a + k, b + n - k) - special.betaln(a, b)).sum())

    a, b = np.exp(optimize.minimize(loss, np.zeros(2), method="Nelder-Mead").x)
    return pl.Series(special.betaincc(a + k, b + n - k, 0.5))


def _main(counted: pl.DataFrame) -> pl.Series:
    """Compute P(most people would give this label to the main object), for every row."""
    # An image's rows need not stand together.
    image = counted.select(pl.struct(IMAGE_KEY).rank("dense")).to_series().to_numpy()
    rows = np.argsort(image, kind="stable")
    parts = np.split(counted["main"].to_numpy()[rows], np.flatnonzero(np.diff(image[rows])) + 1)
    probability = np.empty(len(image))
    probability[rows] = np.concatenate(most_probable(parts))
    return pl.Series(probability)


def most_probable(votes: Sequence[Ints]) -> list[Floats]:
    """Compute every answer's probability to be most people's, with one Dirichlet prior for all."""
    padded = np.full((len(votes), max(map(len, votes))), -1)
    for row, each in enumerate(votes):
        padded[row, : len(each)] = each
    is_vote = padded >= 0
    counts, number = np.where(is_vote, padded, 0), is_vote.sum(axis=1)
    total = counts.sum(axis=1)

    def loss(log: float) -> float:
        a = np.exp(log)
        of_questions = special.gammaln(number * a) - special.gammaln(number * a + total)
        of_answers = special.gammaln(a + counts) - special.gammaln(a)
        return -float(of_questions.sum() + of_answers[is_vote].sum())

    a = float(np.exp(optimize.minimize_scalar(loss, bounds=(-7, 4), method="bounded").x))
    # Shares are gamma variables over their sum: the largest is so with probability ∫ f_j Π F_i.
    # Questions with the same votes have the same answer.
    by_votes: dict[tuple[int, ...], Floats] = {}
    posteriors: list[Floats] = []
    for each in votes:
        key = tuple(int(count) for count in each)
        if key not in by_votes:
            by_votes[key] = _chance_to_be_largest(np.asarray(key) + a)
        posteriors.append(by_votes[key])
    return posteriors


def _chance_to_be_largest(shapes: Floats) -> Floats:
    """Compute each gamma variable's probability of being the largest, from their shapes."""
    chances = np.empty(len(shapes))
    for place, shape in enumerate(shapes):
        # By the quantiles of each in turn, so that its own density is flat.
        quantiles = stats.gamma.ppf(_QUADRATURE_LEVELS, shape)
        others = special.gammainc(np.delete(shapes, place)[:, None], quantiles)
        chances[place] = _QUADRATURE_WEIGHTS @ others.prod(axis=0)
    return chances / chances.sum()
