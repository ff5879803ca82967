"""Test whether the bias of matching shows in the answers by which a replication was matched.

Engstrom et al. (2020), appendix D: a pool of candidates is matched to the reference again, on fewer
answers than there are, and what was held out says what came of it.

    D.1  with n' answers about each image the candidates, weighted as the reference's counts,
         Σ_k E[f | k of n'] p₁(k of n') (equation 9), are the less accurate the smaller n' is
    D.2  what is matched on some of the answers is selected less often by the others than by these,
         and less often than the reference
    D.3  the same matching from easier candidates, those that held-out answers select, gives images
         of equal observed frequency that classifiers find easier
"""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.choices import PAPER_REPLICATES
from bayesrep.errors import OptionError, StudyError
from bayesrep.estimators.annotators import gaps_by_annotators
from bayesrep.planning.matching import match_published
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.study import Study
from bayesrep.types import Floats, Ints

EASY_RULE = 2, 4  # D.3's easy candidates: that so many of so many held-out answers select
LEAST_ANSWERS = 5  # with so many answers every bin has counts at the same places


@dataclass(frozen=True, eq=False)
class Rematched:
    """Results of matching again; frequencies and accuracies are fractions.

    Attributes
    ----------
    by_answers
        D.1, and figure 11: `annotators`, `gap` of the mean accuracy of all classifiers between
        the reference and the weighted candidates, and its `lower` and `upper` (bootstrap).
    held_out
        D.2, and table 1: `reference_answers` by which the reference was known, and the mean
        frequency `by` the answers matched on ("matched") or the others ("held out"): of the
        `reference` and of the `sampled` images, their `difference`, and its standard error
        `error` over images and deals.
    by_source
        D.3: by `source` ("all candidates", "easy candidates") how many there are, the sampled
        images' `frequency` by the answers matched on, their mean `accuracy` over classifiers, and
        of both the differences to all candidates with standard errors over deals and images. None
        where there are too few answers to hold out.
    """

    by_answers: pl.DataFrame
    held_out: pl.DataFrame
    by_source: pl.DataFrame | None


def rematch(
    study: Study,
    *,
    pool: str = "candidates",
    answers: int = LEAST_ANSWERS,
    size: int | None = None,
    by_class: bool = False,
    deals: int = 20,
    bootstrap: int = PAPER_REPLICATES,
    seed: int = 0,
) -> Rematched:
    """Match a pool to the reference again, on some of the answers.

    Parameters
    ----------
    study
        With the pool as one of its data sets.
    pool
        Its role.
    answers
        About each candidate that matching sees; the others are held out.
    size
        How many images to choose: in all, or of every class.
    by_class
        Match class by class, as was done for ImageNet-v2.
    deals
        How often the answers are dealt out.
    bootstrap
        Replicates of D.1.
    seed
        Seed of deals, choices and replicates.

    Returns
    -------
    Rematched

    Raises
    ------
    StudyError
        If the study has no such pool, or too few answers to hold any out, or candidates.
    OptionError
        If a number is out of range.
    """
    if pool not in study.datasets:
        raise StudyError("no-data-set-in-role", role=pool, roles=", ".join(study.datasets))
    if min(answers, deals) < 1 or bootstrap < 1 or (size is not None and size < 1):
        raise OptionError("rematch-number-below-one")
    reference, candidates = study.reference, study.datasets[pool]
    # Matching takes some answers; at least one more has to be held out to judge by.
    least = min(int(reference.shown.min()), int(candidates.shown.min()))
    if least <= answers:
        raise StudyError("no-answers-to-hold-out", fewest_answers=least, matched_on=answers)
    classes = None
    if by_class:
        if reference.labels is None or candidates.labels is None:
            raise StudyError("class-matching-without-labels")
        classes = reference.labels, candidates.labels
    # By default a quarter of the pool at most, so that there is something to choose from.
    if size is None:
        size = 10 if by_class else min(len(reference.images), max(1, len(candidates.images) // 4))
    rng = np.random.default_rng(seed)
    dealt = [
        _deal_versions(reference, candidates, answers, size, classes, rng, easy=False)
        for _ in range(deals)
    ]
    # The pool of easy candidates needs answers to select by and others to judge by.
    easy = None
    if least >= answers + EASY_RULE[1]:
        easy = [
            _deal_versions(reference, candidates, answers, size, classes, rng, easy=True)
            for _ in range(deals)
        ]
    return Rematched(
        _by_answers(study, candidates, bootstrap, seed),
        _held_out_table(dealt, reference, answers),
        None if easy is None else _by_source(dealt, easy, candidates),
    )


@dataclass(frozen=True, eq=False)
class _Deal:
    """Results of one random deal: images chosen, and frequencies by both kinds of answers."""

    rows: Ints
    sources: int
    matched: Floats
    held_out: Floats
    reference_matched: Floats
    reference_held: Floats
    full_rows: Ints  # matched on all of the reference's answers, where these are more


def _deal_versions(
    reference: AnnotatedSet,
    candidates: AnnotatedSet,
    answers: int,
    size: int,
    classes: tuple[NDArray[np.str_], NDArray[np.str_]] | None,
    rng: np.random.Generator,
    *,
    easy: bool,
) -> _Deal:
    matched, reference_matched = (
        rng.hypergeometric(data.selected, data.shown - data.selected, answers)
        for data in (candidates, reference)
    )
    rest, reference_rest = (data.shown - answers for data in (candidates, reference))
    rows = np.arange(len(candidates.images))
    if easy:
        yes = candidates.selected - matched
        rows = np.flatnonzero(rng.hypergeometric(yes, rest - yes, EASY_RULE[1]) >= EASY_RULE[0])
    pool = matched[rows], np.full(len(rows), answers)
    class_of = None if classes is None else (classes[0], classes[1][rows])

    def choose_images(selected: Ints, n: Ints) -> Ints:
        seed = int(rng.integers(2**31))
        return rows[match_published((selected, n), pool, size=size, classes=class_of, seed=seed)]

    return _Deal(
        rows=choose_images(reference_matched, np.full(len(reference_matched), answers)),
        sources=len(rows),
        matched=matched / answers,
        held_out=(candidates.selected - matched) / rest,
        reference_matched=reference_matched / answers,
        reference_held=(reference.selected - reference_matched) / reference_rest,
        full_rows=choose_images(reference.selected, reference.shown),
    )


def _by_answers(study: Study, candidates: AnnotatedSet, bootstrap: int, seed: int) -> pl.DataFrame:
    """Equation 9 for every number of answers; without classifiers there is nothing to say."""
    schema = {"annotators": pl.Int64, "gap": pl.Float64, "lower": pl.Float64, "upper": pl.Float64}
    if not candidates.correct.shape[1]:
        return pl.DataFrame(schema=schema)
    datasets = {"reference": study.reference, "replication": candidates}
    weighted = replace(study, datasets=datasets, truth=None)
    return gaps_by_annotators(weighted, bootstrap=bootstrap, seed=seed)


def _held_out_table(deals: list[_Deal], reference: AnnotatedSet, answers: int) -> pl.DataFrame:
    """Table 1: the reference known by all of its answers, and by as many as the candidates."""
    whole = reference.selected / reference.shown
    rows: list[dict[str, object]] = []
    most = int(np.median(reference.shown))
    for label in dict.fromkeys((most, answers)):
        full = label == most
        sides = (
            ("matched", [whole if full else d.reference_matched for d in deals], "matched"),
            ("held out", [whole if full else d.reference_held for d in deals], "held_out"),
        )
        for by, of_reference, name in sides:
            means = np.array([each.mean() for each in of_reference])
            deal_rows = [(d.full_rows if full else d.rows, getattr(d, name)) for d in deals]
            sampled = np.array([values[rows_].mean() for rows_, values in deal_rows])
            spread = np.mean([values[rows_].var() / len(rows_) for rows_, values in deal_rows])
            spread += np.mean([each.var() / len(each) for each in of_reference])
            rows.append(
                {
                    "reference_answers": label,
                    "by": by,
                    "reference": float(means.mean()),
                    "sampled": float(sampled.mean()),
                    "difference": float((sampled - means).mean()),
                    "error": float(np.sqrt(spread)),
                }
            )
    return pl.DataFrame(rows)


def _by_source(deals: list[_Deal], easy: list[_Deal], candidates: AnnotatedSet) -> pl.DataFrame:
    right: Floats | None = None
    if candidates.correct.shape[1]:
        right = candidates.correct.mean(axis=1)
    rows: list[dict[str, object]] = []
    base: dict[str, float] = {}
    for source, source_deals in (("all candidates", deals), ("easy candidates", easy)):
        row: dict[str, object] = {
            "source": source,
            "candidates": float(np.mean([deal.sources for deal in source_deals])),
        }
        for fact in ("frequency", "accuracy"):
            if fact == "accuracy" and right is None:
                row |= {fact: None, f"{fact}_difference": None, f"{fact}_error": None}
                continue
            values = [
                np.asarray(deal.matched if fact == "frequency" else right)[deal.rows]
                for deal in source_deals
            ]
            images = np.mean([each.var() / len(each) for each in values])
            mean = float(np.mean([each.mean() for each in values]))
            base.setdefault(fact, mean)
            row |= {
                fact: mean,
                f"{fact}_difference": mean - base[fact],
                f"{fact}_error": float(np.sqrt(2 * images)) if source_deals is easy else 0.0,
            }
        rows.append(row)
    return pl.DataFrame(rows)
