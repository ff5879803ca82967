"""Intraclass correlation of annotators' answers about an image, from images in two contexts.

Annotators who saw an image in one grid, or as one task, share what that context did to it: given
its selection frequency s they answer with a frequency s′ ~ Beta(s φ, (1 − s) φ) of the context's
own, φ = 1/ρ − 1 (`dependence` of the joint model). Two answers y, y′ about one image then have

    E[y y′ | s]  =  s² + ρ s (1 − s)    in one context,        s²    in two,

so that over images, with averages over pairs of answers,

    ρ  =  (same − apart) / (mean − apart),      same = E[y y′] in one context,  apart = in two,

whatever the distribution of s. Counts alone have `same` and no `apart`: no spread of s can be told
from a correlation. Images count alike; the interval is the ratio's, by the delta method.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesrep.errors import StudyError
from bayesrep.numerics.estimands import Z_975
from bayesrep.studies.input_arrays import align_rows
from bayesrep.types import Float


@dataclass(frozen=True)
class Intraclass:
    """An intraclass correlation with its 95 % interval."""

    correlation: float  # ρ; below 0 by chance if answers are independent
    lower: float
    upper: float
    images: int  # with at least two contexts, one of them of two answers
    answers: int


def intraclass_correlation(image: Any, context: Any, selected: Any) -> Intraclass:
    """Estimate the intraclass correlation of answers that share an image and a context.

    Parameters
    ----------
    image, context : [A]
        Names or numbers of every answer's image, and of the grid, task or session it was given in.
    selected : bool [A]
        Whether the annotator selected the image.

    Raises
    ------
    StudyError
        If lengths differ, or fewer than two images were answered about in two contexts, one of them
        by two annotators: then nothing tells a correlation from a spread of the frequencies.

    Examples
    --------
    >>> image, context = [0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3]
    >>> selected = [1, 1, 0, 0, 1, 1, 0, 0]
    >>> bayesrep.intraclass_correlation(image, context, selected).correlation
    1.0
    """
    arrays = {"image": image, "context": context, "selected": selected}
    columns = [np.asarray(column) for column in align_rows(arrays, "answers").values()][:3]
    if any(column.shape != (len(columns[0]),) for column in columns):
        raise StudyError("answer-entries-unequal")
    of_image, row = np.unique(columns[0], return_inverse=True)
    of_context = np.unique(columns[1], return_inverse=True)[1]
    pair, place = np.unique(row * (of_context.max(initial=0) + 1) + of_context, return_inverse=True)
    image_of = np.zeros(len(pair), dtype=np.int64)
    image_of[place] = row
    n_answers = np.bincount(place, minlength=len(pair))
    chosen = np.bincount(place, columns[2].astype(np.float64), minlength=len(pair))

    def total(values: Float[np.ndarray, "pair"]) -> Float[np.ndarray, "image"]:
        return np.bincount(image_of, values, minlength=len(of_image))

    n, k = total(n_answers.astype(np.float64)), total(chosen)
    pairs, within = total(n_answers * (n_answers - 1.0)), total(chosen * (chosen - 1))
    across, between = n * n - total(n_answers**2.0), k * k - total(chosen**2)
    valid = (pairs > 0) & (across > 0)
    count = int(valid.sum())
    if count < 2:
        raise StudyError("too-few-images-across-contexts", image_count=count)
    same, cross = within[valid] / pairs[valid], between[valid] / across[valid]
    above, below = same - cross, k[valid] / n[valid] - cross
    if not below.sum() > 0:
        raise StudyError("answers-alike-within-every-image")
    ratio = float(above.sum() / below.sum())
    half = Z_975 * float(np.std(above - ratio * below, ddof=1) / np.sqrt(count) / below.mean())
    return Intraclass(ratio, ratio - half, ratio + half, count, int(n[valid].sum()))
