"""Numbers that the four papers print, and what they are of a study."""

import csv
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bayesrep.choices import PAPER_REPLICATES
from bayesrep.errors import BayesrepError, InterpolationWarning, reason
from bayesrep.estimators import analyse
from bayesrep.estimators.analysis import QUANTITIES, Analysis
from bayesrep.estimators.annotator_match import take_annotated, usual_annotators
from bayesrep.estimators.finite_sample import finite_sample_gaps, mean_frequencies
from bayesrep.estimators.naive import matched_accuracy, thinned_counts
from bayesrep.estimators.replicates import Replicates
from bayesrep.protocols.by_subset import ALL_IMAGES, compare_subsets, missed_by_all, of_classes
from bayesrep.protocols.matched import MATCH_ON, match
from bayesrep.protocols.multi_label import multilabel
from bayesrep.protocols.people_shares import (
    compare_labels_with_people,
    compare_predictions_with_people,
)
from bayesrep.protocols.subsets import class_subsets
from bayesrep.report.figure_catalogue import in_words
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.studies.subset_statistics import statistics_on
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Floats
from experiments.papers.inputs import PaperInputs
from experiments.papers.tsipras2020.labels import label_numbers


@dataclass(frozen=True)
class Printed:
    """One number of a paper."""

    paper: str  # one of `PAPER_TITLES`
    key: str
    place: str  # in the paper; then what the number is, and its printed text
    what: str
    printed: str


@cache
def printed_numbers() -> tuple[Printed, ...]:
    """All of them, by paper."""
    text = Path(__file__).with_name("printed.csv").read_text(encoding="utf-8")
    return tuple(Printed(**row) for row in csv.DictReader(text.splitlines()))


Values = Iterator[tuple[str, str]]


def study_numbers(
    paper: str,
    inputs: PaperInputs,
    available: Collection[str],
    *,
    bootstrap: int = PAPER_REPLICATES,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, str]:
    """Compute a paper's printed numbers on a study, as far as the inputs allow."""
    texts: dict[str, str] = {}
    for name, keys, needs, make in _NUMBER_MAKERS:
        if name != paper:
            continue
        # A number whose inputs are missing says what it needs.
        if lacks := [need for need in needs if not set(need.split("|")) & set(available)]:
            why = f"(needs {', '.join(map(in_words, lacks))})"
            texts |= dict.fromkeys(keys, why)
            continue
        try:
            options = {"bootstrap": bootstrap, "seed": seed, "progress": progress}
            texts |= dict(make(inputs, **options))
        except BayesrepError as error:
            texts |= dict.fromkeys(keys, f"(not had: {reason(error)})")
    return texts


def _points(value: float | None, digits: int = 1) -> str:
    return "–" if value is None or not np.isfinite(value) else f"{100 * value:.{digits}f}"


def _with_ends(estimate: float, lower: float, upper: float, scale: float, digits: int) -> str:
    text = f"{scale * estimate:.{digits}f}"
    if np.isfinite(lower) and np.isfinite(upper):
        text += f" ({scale * lower:.{digits}f} to {scale * upper:.{digits}f})"
    return text


def _estimate_numbers(inputs: PaperInputs, *, bootstrap: int, seed: int, progress: bool) -> Values:
    study = inputs.study
    analyses = analyse(study, bootstrap=bootstrap, seed=seed, progress=progress)
    by = {analysis.method: analysis for analysis in analyses}

    def show_estimate(method: str, quantity: str, scale: float = 100, digits: int = 1) -> str:
        analysis: Analysis = by[method]
        place = len(study.classifiers) + QUANTITIES.index(quantity)
        return _with_ends(
            analysis.values[place], *analysis.interval[:, place], scale=scale, digits=digits
        )

    yield "classifiers", f"{len(study.classifiers)}"
    yield "drop", show_estimate("raw", "bias_corrected_gap")
    yield "slope", show_estimate("raw", "slope", 1, 2)
    for method, key in (("naive", "naive"), ("jackknife", "jackknife"), ("em-spline", "em")):
        if method in by:
            yield f"{key}-gap", show_estimate(method, "bias_corrected_gap")
    yield "naive-gain", show_estimate("naive", "selection_gap")
    yield "selection-gap", show_estimate("em-spline", "selection_gap")
    yield "em-slope", show_estimate("em-spline", "slope", 1, 2)


def _image_numbers(inputs: PaperInputs, *, bootstrap: int, seed: int, progress: bool) -> Values:
    del progress
    study = inputs.study
    for row in mean_frequencies(study, bootstrap=max(bootstrap, 1), seed=seed).to_dicts():
        text = _with_ends(row["mean"], row["lower"], row["upper"], 100, 1)
        yield f"{row['dataset']}-frequency", text
    widest = (
        finite_sample_gaps(study).filter(pl.col("classifier").is_not_null())["upper"].to_numpy()
    )
    yield "finite-sample", f"± {_points(float(widest.max()), 2)}"
    change = np.abs(half_image_gaps(study, seed=seed) - naive_gap(SufficientStatistics.of(study)))
    yield "half", f"{_points(float(change.mean()), 2)} on average"


def half_image_gaps(study: Study, *, halves: int = 20, seed: int = 0) -> Floats:
    """Estimate the naive mean gap of random halves of the images (Engstrom et al., footnote 12)."""
    # n' of all images, so that halves differ in their images only.
    annotators = usual_annotators(Replicates.from_study(SufficientStatistics.of(study)))
    random, gaps = np.random.default_rng(seed), list[float]()
    for _ in range(halves):
        sizes = {role: len(study.datasets[role].images) for role in REQUIRED_ROLES}
        rows = {r: np.sort(random.permutation(n)[: -(-n // 2)]) for r, n in sizes.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InterpolationWarning)  # raised for all images
            gaps.append(naive_gap(statistics_on(study, rows), annotators))
    return np.array(gaps)


def naive_gap(statistics: SufficientStatistics, annotators: int | None = None) -> float:
    """Estimate the naive mean gap, with as many annotators as most images have if none is given."""
    observed = Replicates.from_study(statistics)
    annotators = annotators or usual_annotators(observed)
    counts = thinned_counts(take_annotated(observed, annotators), annotators)
    adjusted = matched_accuracy(counts, statistics.words)[0]
    return float((statistics.accuracy("reference") - adjusted).mean())


def _confidence_numbers(
    inputs: PaperInputs, *, bootstrap: int, seed: int, progress: bool
) -> Values:
    del bootstrap
    both = inputs.answers_with_confidence
    table = match(*both, seed=seed, progress=progress).accuracies
    rows = table.filter(criterion=MATCH_ON[0]).pivot(
        "quantity", index="classifier", values="estimate"
    )
    yield "models", f"{len(rows)}"
    yield "narrower", f"{int((rows['matched_gap'].abs() < rows['gap'].abs()).sum())} of {len(rows)}"
    best = rows.sort("reference_accuracy")[-1].to_dicts()[0]
    for key, name in (("gap", "gap"), ("matched-gap", "matched_gap")):
        yield key, f"{_points(best[name])} ({best['classifier']})"
    yield "unmatched-accuracy", f"{_points(best['unmatched_accuracy'], 2)} ({best['classifier']})"
    sizes = " and ".join(f"{len(each.images):,}" for each in both)
    for key in ("sizes-imagenet", "sizes-cifar"):
        yield key, sizes
    for key in ("drop-cifar", "drop-imagenet"):
        yield key, f"{_points(rows['gap'].min())} to {_points(rows['gap'].max())}"  # type: ignore[arg-type]


def _subset_numbers(inputs: PaperInputs, **_: Any) -> Values:
    masks = class_subsets(inputs.answers_to_both[0].classes)
    for key, name in (
        ("objects", "objects"),
        ("organisms", "organisms"),
        ("dogs", "dogs"),
        ("without-dogs", "without dogs"),
    ):
        if name in masks:
            yield key, f"{int(masks[name].sum())}"


def _label_set_numbers(inputs: PaperInputs, **_: Any) -> Values:
    both, sets = inputs.answers_to_both, inputs.both_sets
    humans = inputs.humans
    subsets = {"dogs": "without dogs", "objects": "objects"}
    masks = class_subsets(both[0].classes)
    chosen = {name: masks[name] for name in subsets.values() if name in masks}
    # Accuracies on all images and on the subsets that the paper names.
    table = compare_subsets(
        both[0],
        both[1],
        of_classes(chosen, *both),
        humans=None if humans is None else (humans[0], humans[1]),
        sets=(sets[0], sets[1]),
    )
    # Drops of classifiers and of people.
    every = table.filter(subset=ALL_IMAGES)
    machines = every.filter(kind="classifier")
    least, most = machines["gap"].min(), machines["gap"].max()
    yield "machine-drop", f"{_points(least)} to {_points(most)}"  # type: ignore[arg-type]
    people = every.filter(kind="human")
    if len(people):
        yield "human-drop", _points(float(people["gap"].abs().max()))  # type: ignore[arg-type]
    # How people and the best classifier change on the subsets.
    best = machines.sort("reference_accuracy")["participant"][-1]
    for key, name in subsets.items():
        if name not in chosen:
            continue
        rows = table.filter(subset=name)
        for who, part in (
            ("humans", rows.filter(kind="human")),
            ("best", rows.filter(participant=best)),
        ):
            if len(part):
                changes = [part[f"{role}_change"].mean() for role in REQUIRED_ROLES]
                yield f"{key}-{who}", " and ".join(_points(each) for each in changes)  # type: ignore[arg-type]
    # Images that nobody gets right.
    missed = [missed_by_all(data, labels).sum() for data, labels in zip(both, sets, strict=True)]
    yield "missed-classifiers", f"{int(sum(missed)):,}"
    if humans is not None:
        wrong = [missed_by_all(data, labels) for data, labels in zip(humans, sets, strict=True)]
        yield "missed-people", f"{int(sum(each.sum() for each in wrong)):,}"
    # How many predictions there were to judge.
    distinct = sum(len(np.unique(_pairs(each))) for each in both)
    yield "predictions", f"{distinct:,}"
    # How many labels images have.
    reference = sets[0]
    sizes = reference.sizes[reference.select_images()]
    yield "several", _points(float((sizes > 1).mean()))
    if (sizes > 1).any():
        yield "labels", f"{sizes[sizes > 1].mean():.1f}"


def _pairs(data: Any) -> Any:
    return (np.arange(len(data.images)) * len(data.classes) + data.first)[data.answered]


def _top5_numbers(inputs: PaperInputs, **_: Any) -> Values:
    table = multilabel(inputs.reference, inputs.sets, subsets={}, trials=1)
    wide = table.filter(subset="all").pivot("metric", index="classifier", values="accuracy")
    multi = wide["multi-label"].to_numpy()
    yield "above-top1", _points(float(np.median(multi - wide["top-1"].to_numpy())))
    yield "below-top5", _points(float(np.median(wide["top-5"].to_numpy() - multi)))


def _people_numbers(inputs: PaperInputs, **_: Any) -> Values:
    people, data = inputs.people, inputs.reference
    table = compare_labels_with_people(data, people)
    sees = {row["statistic"]: row for row in table.iter_rows(named=True)}
    for key, statistic in (
        ("unselected", "the own label is selected by nobody"),
        ("as-often", "another label is selected as often"),
        ("half-as-often", "another label is selected half as often"),
        ("unchosen", "the own label is chosen for no object"),
        ("other-main", "with several objects, the main one is another"),
    ):
        if statistic in sees:
            row = sees[statistic]
            share = f"{row['images']:,} of {row['of']:,}"
            yield key, _points(row["share"]) if key.endswith("often") else share
    if people.number is None or people.main is None:
        return
    done = people.number > 0
    several = int((people.number > 1).sum())
    # Of images that were clear annotators said nothing.
    judged = np.flatnonzero(done) if people.first is None else np.unique(people.first.image)
    yield "classify", f"{len(judged):,}"
    yield "several-objects", f"{several:,}"
    yield "fifth", _points(several / max(int(done.sum()), 1))
    yield "agree", _points(float((people.main == data.labels)[done].mean()))
    by = {
        row["statistic"]: row["share"]
        for row in compare_predictions_with_people(data, people)
        .group_by("statistic")
        .agg(pl.col("share").mean())
        .to_dicts()
    }
    one, many = (f"{part}: right by the own label" for part in ("one object", "several objects"))
    if by[one] is not None and by[many] is not None:
        yield "top1-drop", _points(by[one] - by[many])
        yield "any-object", _points(by["several objects: right by any object"] - by[one])
    if (corrected := by.get("top-5 corrections that are two objects")) is not None:
        yield "corrections", _points(corrected)


def _candidate_numbers(inputs: PaperInputs, **_: Any) -> Values:
    data = inputs.reference
    numbers = label_numbers(data, range(len(data.classifiers)))
    yield "candidates", f"{numbers.mean():.1f} by {len(data.classifiers)} classifiers"


def _accuracy_numbers(inputs: PaperInputs, **_: Any) -> Values:
    data = inputs.reference
    published = {"alexnet", "vgg13", "vgg16", "resnet50", "inception_v3", "inceptionv3"}
    rows = [
        f"{name} {_points(float(right.mean()), 2)}"
        for name, right in zip(data.classifiers, data.correct, strict=True)
        if name in published
    ]
    yield "accuracies", ", ".join(rows) or "(none of these)"


_NUMBER_MAKERS: tuple[tuple[str, tuple[str, ...], tuple[str, ...], Callable[..., Values]], ...] = (
    (
        "engstrom2020",
        (
            *("classifiers", "drop", "slope", "naive-gain", "naive-gap", "jackknife-gap"),
            *("em-gap", "selection-gap", "em-slope"),
        ),
        ("study",),
        _estimate_numbers,
    ),
    (
        "engstrom2020",
        ("reference-frequency", "replication-frequency", "finite-sample", "half"),
        ("study",),
        _image_numbers,
    ),
    (
        "anzaku2022",
        (
            *("models", "narrower", "gap", "matched-gap", "unmatched-accuracy", "sizes-imagenet"),
            *("sizes-cifar", "drop-cifar", "drop-imagenet"),
        ),
        ("probabilities",),
        _confidence_numbers,
    ),
    ("shankar2020", ("objects", "organisms", "dogs", "without-dogs"), ("labels",), _subset_numbers),
    (
        "shankar2020",
        (
            *("machine-drop", "human-drop", "dogs-humans", "dogs-best", "objects-humans"),
            *("objects-best", "missed-classifiers", "missed-people", "predictions", "several"),
            "labels",
        ),
        ("labels", "--labels"),
        _label_set_numbers,
    ),
    ("shankar2020", ("above-top1", "below-top5"), ("top-5", "--labels"), _top5_numbers),
    (
        "tsipras2020",
        (
            *("unselected", "as-often", "half-as-often", "unchosen", "other-main", "classify"),
            *("several-objects", "fifth", "agree", "top1-drop", "any-object", "corrections"),
        ),
        ("labels", "--objects|--counts"),
        _people_numbers,
    ),
    ("tsipras2020", ("candidates",), ("top-5",), _candidate_numbers),
    ("tsipras2020", ("accuracies",), ("labels",), _accuracy_numbers),
)
