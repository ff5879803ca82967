"""Test for differences in classes between data sets among images selected equally often.

With O_hc images of class c in the reference's part of a stratum h (of equal k/n), and E_hc
expected from both data sets together,

    Q  =  dᵀ V⁺ d  ~  χ²,      d_c = Σ_h (O_hc − E_hc),      V the covariance of d,

the generalized Cochran–Mantel–Haenszel test (Landis, Heyman and Koch, 1978, International
Statistical Review 46, section 3). The effect on the answer follows from ρ_c, the excess accuracy of
classifiers on the replication's images of a class over others that were selected as often:

    shift  =  Σ_c ρ_c Σ_h P_ref(h) (P_ref(c | h) − P_rep(c | h))

If classes correlate with s and the data sets differ much in s, classes differ a little at the same
k/n too, which is why the shift decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from bayesrep.checks.finding import (
    ALPHA,
    ASSUMED,
    MAX_HARMLESS_SHIFT,
    Finding,
    family_wise,
    p_text,
)
from bayesrep.numerics.post_stratification import frequency_strata, post_stratify
from bayesrep.numerics.rounding import write_points
from bayesrep.posterior.fitted import Fitted
from bayesrep.studies.study import Study, shared_classes
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words, words_of
from bayesrep.types import Float, Int

MIN_EXPECTED_IMAGES = 5.0  # expected images of a class in each data set; rarer classes are pooled
MAX_TESTED_CLASSES = 1_000  # the most frequent; the rest are pooled: time grows with the cube
N_FAMILIES = 3  # families in the familywise error rate: counts, answers and classes
IMAGES_CHECK = "images alike at the same frequency"


@dataclass(frozen=True)
class ClassShift:
    """Difference in classes between data sets among images selected equally often."""

    column: str  # "label", or the column of groups
    classes: int  # number of classes compared, the rare ones pooled as one
    p: float  # of the test that the two data sets do not differ in it
    shift: float  # of the mean adjusted accuracy, had the replication the reference's classes


def class_shifts(study: Study) -> list[ClassShift]:
    """Compare labels and every column of groups that both data sets have."""
    one, other = study.reference, study.replication
    stratum = frequency_strata(one.selected / one.shown, other.selected / other.shown)
    right = other.correct.mean(axis=1)
    shifts = (
        _compare_column(name, classes, stratum, right)
        for name, classes in shared_classes(study).items()
    )
    return [each for each in shifts if each is not None]


def judge_classes(fitted: Fitted) -> list[Finding]:
    """Judge differences in known classes but the fit's own groups, and their effect on the gap."""
    if not isinstance(fitted.study, Study):
        return []
    all_shifts, words = class_shifts(fitted.study), words_of(fitted.study)
    shifts = [each for each in all_shifts if each.column != fitted.record.grouping]
    if "class_shift" in fitted.group:
        # What the draws allow for already is told, and asks for no care.
        column = fitted.group.attrs["classes"]
        p = next((p_text(each.p) for each in shifts if each.column == column), "rare classes")
        text = _corrected_sentence(fitted, words)
        corrected = Finding(IMAGES_CHECK, f"{p} ({column})", "corrected", "yes", text)
        others = [each for each in shifts if each.column != column]
        return [corrected, *(_judge_columns(fitted, others, words) if others else [])]
    return _judge_columns(fitted, shifts, words)


def _judge_columns(fitted: Fitted, shifts: Sequence[ClassShift], words: Words) -> list[Finding]:
    """Judge differences in classes that the draws do not allow for."""
    if not shifts:
        text = _unknown_sentence(fitted.record.grouping, words)
        return [Finding(IMAGES_CHECK, ASSUMED, "cannot be seen", "yes", text)]
    adjusted = family_wise([each.p for each in shifts], [IMAGES_CHECK] * len(shifts)) * N_FAMILIES
    p, criterion = min(1.0, float(adjusted.min())), f"p >= {ALPHA}"
    columns = ", ".join(each.column for each in shifts)
    value = f"{p_text(p)} ({columns})"
    if p >= ALPHA:
        text = (
            f"{words.images.title()} with the same selection frequency are assumed to be equally "
            f"hard in both data sets. Their classes do not contradict this ({columns}: "
            f"{p_text(p)}); no check can tell whether they differ in other ways."
        )
        return [Finding(IMAGES_CHECK, value, criterion, "yes", text)]
    differ = [each for each, p_shift in zip(shifts, adjusted, strict=True) if p_shift < ALPHA]
    most = max(differ, key=lambda each: abs(each.shift))
    # The shift moves all classifiers alike, so it is compared with the sd of their mean.
    sd = max(float(fitted.adjusted_draws.mean(axis=-1).std()), 1e-12)
    matters = abs(most.shift) > MAX_HARMLESS_SHIFT * sd
    effect = (
        "Part of the gap comes from the classes: fit with them, or with broader ones, as groups."
        if matters
        else "That hardly matters."
    )
    text = (
        f"{words.images.title()} with the same selection frequency belong to other classes in the "
        f"replication than in the reference ({most.column}, {p_text(p)}). With the reference's "
        f"classes the mean gap would be about {100 * abs(most.shift):.1f} points "
        f"{'smaller' if most.shift > 0 else 'larger'} (posterior sd {100 * sd:.1f}). {effect}"
    )
    return [Finding(IMAGES_CHECK, value, criterion, "with care" if matters else "yes", text)]


def _corrected_sentence(fitted: Fitted, words: Words) -> str:
    shift = fitted.group["class_shift"].values.ravel()
    lower, upper = (write_points(end, 1) for end in np.quantile(shift, (0.025, 0.975)))
    return (
        f"Accuracies are corrected for the shares of classes ({fitted.group.attrs['classes']}) "
        f"among {words.images} selected as often: with the reference's, {words.classifiers} would "
        f"be {write_points(shift.mean(), 1)} points ({lower} to {upper}) better on the replication."
    )


def class_note(fitted: Fitted) -> str:
    """Say what the correction for classes is worth where it matters; else nothing."""
    if "class_shift" not in fitted.group:
        return ""
    shift = float(fitted.group["class_shift"].values.mean())
    sd = float(fitted.adjusted_draws.mean(axis=-1).std())
    return _corrected_sentence(fitted, fitted.words) if abs(shift) > MAX_HARMLESS_SHIFT * sd else ""


def assumed_of_images(grouping: str | None, words: Words = IMAGE_WORDS) -> str:
    """State the assumption on images, as a clause."""
    within = "" if grouping is None else " and group"
    return (
        f"{words.images} with the same selection frequency{within} are equally hard in both data "
        "sets"
    )


def _unknown_sentence(grouping: str | None, words: Words) -> str:
    """Say that nothing is known of the images but the fit's grouping column, if it has one."""
    if grouping is not None:
        return (
            f"No check can tell whether the replication's {words.images} are harder for another "
            "reason than their selection frequency and group."
        )
    return (
        f"No check can tell whether the replication's {words.images} are harder for another reason "
        "than their selection frequency, such as harder classes. Add a column label, and classes "
        "are compared."
    )


def _compare_column(
    column: str,
    names: NDArray[np.str_],
    stratum: Int[np.ndarray, "image"],
    right: Float[np.ndarray, "replication"],
) -> ClassShift | None:
    """Compute the test and the shift of one column; images of the reference come first."""
    size = len(names) - len(right)
    kinds, code = np.unique(names, return_inverse=True)
    expected = np.bincount(code) * min(size, len(right)) / len(names)
    # Pool classes that are rare, or too many, under the code −1.
    rare = expected < MIN_EXPECTED_IMAGES
    rare[np.argsort(-expected, kind="stable")[MAX_TESTED_CLASSES:]] = True
    code = np.unique(np.where(rare, -1, np.arange(len(kinds)))[code], return_inverse=True)[1]
    classes, strata = int(code.max()) + 1, int(stratum.max()) + 1
    if classes < 2:
        return None

    def table(part: slice) -> Float[np.ndarray, "stratum class"]:
        cells = np.bincount(stratum[part] * classes + code[part], minlength=strata * classes)
        return cells.reshape(strata, classes).astype(np.float64)

    one, other = table(slice(size)), table(slice(size, None))
    p = _test(one, other)
    shift, _ = post_stratify(stratum, code, right[:, None])
    return ClassShift(column, classes, p, float(shift[0]))


def _test(
    one: Float[np.ndarray, "stratum class"], other: Float[np.ndarray, "stratum class"]
) -> float:
    """Compute the p-value of the generalized Cochran-Mantel-Haenszel test."""
    total = one + other
    images, sizes = total.sum(axis=1), one.sum(axis=1)
    # A stratum of one image has no variance.
    several = images > 1
    total, images, sizes = total[several], images[several], sizes[several]
    # Hypergeometric mean and covariance of the reference's classes, given both margins.
    excess = (one[several] - sizes[:, None] / images[:, None] * total).sum(axis=0)
    factor = sizes * (images - sizes) / (images**2 * (images - 1))
    covariance = np.diag((factor * images) @ total) - (factor[:, None] * total).T @ total
    values, vectors = np.linalg.eigh(covariance)
    # Strata fix the totals, so the covariance is singular: use its pseudoinverse.
    nonzero = values > 1e-9 * max(values.max(initial=0.0), 1.0)
    if not nonzero.any():
        return 1.0
    statistic = float(((excess @ vectors[:, nonzero]) ** 2 / values[nonzero]).sum())
    return float(chdtrc(int(nonzero.sum()), statistic))
