"""What a report shows, as numbers: one small table or array a figure, none of them drawn here.

Everything is computed once; the page (`bayesrep.report.page`) and the figures take it from here.
What cannot be had, because there is no posterior or it lacks a group, is None, and
`Content.missing` says why.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import betaln
from scipy.stats import beta

from bayesrep.checks import diagnose
from bayesrep.errors import EstimateWarning, PosteriorError, StudyError, reason
from bayesrep.estimators import METHODS, analyse, classifier_table, gap_table
from bayesrep.estimators.analysis import Analysis
from bayesrep.estimators.annotators import compare_annotators
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import cells_along, find_group, need_group, recorded, thinned_draws
from bayesrep.report.answer import Drop, Estimate, drop_of, is_share, measured_drop
from bayesrep.studies.study import Study
from bayesrep.summary.tables import accuracies, gaps

__all__ = [
    "Content",
    "Curves",
    "Frequencies",
    "Image",
    "Trust",
    "curves_of",
    "frequencies_of",
    "gather",
    "image_of",
    "mixture_draws",
]

DRAWS = 200  # of the posterior, for bands
BARS = 40  # of a histogram of selection frequencies, at most
GRID = np.linspace(0, 1, 101)
CURVE_GRID = np.linspace(0, 1, 41)
INTERVAL = (0.025, 0.975)
RANK_BINS = 20

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Selection frequencies of one data set.

    Attributes
    ----------
    edges : float64 [B + 1]
        Of the bars, as fractions k / n.
    observed : float64 [B]
        Shares of images.
    predicted : float64 [3, B] or None
        Mean, lower and upper end (95 %) of the posterior predictive shares.
    density : float64 [3, 101] or None
        The same of p(s) on 0, 0.01, ..., 1.
    """

    edges: Floats
    observed: Floats
    predicted: Floats | None
    density: Floats | None


@dataclass(frozen=True, eq=False)
class Image:
    """What is known of one image's selection frequency once k of n annotators selected it.

    Attributes
    ----------
    annotators
        n, the most that an image of the study has.
    densities : mapping of role to float64 [n + 1, 101]
        p(s | k of n) if the image is one of that data set, on 0, 0.01, ..., 1.
    """

    annotators: int
    densities: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class Curves:
    """Accuracy curves.

    Attributes
    ----------
    bands : float64 [3, C, 41]
        Mean, lower and upper end (95 %) of g(s) on 0, 0.025, ..., 1.
    frequency : float64 [F]
        Observed selection frequencies k / n on the replication.
    images : int [F]
        How many images have each.
    right : int [C, F]
        How many of these each classifier got right.
    """

    bands: Floats
    frequency: Floats
    images: NDArray[np.int64]
    right: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Trust:
    """Whether to believe the fit.

    Attributes
    ----------
    verdict
        "yes", "with care" or "no", as `bayesrep.diagnose` has it.
    sentences
        What is not as it should be.
    checks
        check, value, wanted, trust.
    p_values : float64 [C] or None
        Of each classifier's answers, nearly uniform where the model holds.
    ranks : int [chain, 20] or None
        Histograms of the ranks of each chain's mean adjusted accuracy among all draws'.
    energy : mapping of "marginal" and "transition" to float64 [D], or None
        Energies less their mean, and their changes from draw to draw.
    settings
        Name and value of everything that is needed to do it again.
    command
        That makes the posterior again.
    """

    verdict: str
    sentences: tuple[str, ...]
    checks: pl.DataFrame
    p_values: Floats | None
    ranks: NDArray[np.int64] | None
    energy: Mapping[str, Floats] | None
    settings: Mapping[str, str]
    command: str


@dataclass(frozen=True, eq=False)
class Content:
    """All that a report shows of a study.

    Attributes
    ----------
    study
        Of which it is.
    gaps
        method, gap, lower, upper (mean bias-corrected gap and its 95 % interval), share (of the
        drop that selection explains; null of raw, and where no drop is clear or it is none).
    drop
        The drop as the last of these methods divides it.
    classifiers
        classifier, reference, replication, then for each method METHOD, METHOD_lower and
        METHOD_upper (adjusted accuracies), and rhat and ess of the posterior's.
    naive : float64 [n + 1, C]
        Adjusted accuracy by naive matching with 0 ... n annotators; with none it is as measured.
    model
        Name of the posterior's model, None without one.
    frequencies, image, curves, trust
        By section.
    missing : mapping of section to str
        Why a section cannot be shown.
    """

    study: Study
    gaps: pl.DataFrame
    drop: Drop
    classifiers: pl.DataFrame
    naive: Floats
    model: str | None
    frequencies: Mapping[str, Frequencies]
    image: Image | None
    curves: Curves | None
    trust: Trust | None
    missing: Mapping[str, str] = field(default_factory=dict[str, str])


def gather(
    study: Study,
    posterior: Any = None,
    *,
    bootstrap: int = 50,
    seed: int = 0,
    points: Sequence[Analysis] | None = None,
) -> Content:
    """Compute everything a report shows.

    Parameters
    ----------
    study
        The study.
    posterior
        From :func:`bayesrep.fit` or :func:`bayesrep.read_posterior`; None leaves out
        what takes one.
    bootstrap
        Replicates for the intervals of the point estimates; 0 leaves these out.
    seed
        Of the bootstrap.
    points
        The point estimates of all `METHODS`, where they are at hand.

    Raises
    ------
    PosteriorError
        If the posterior belongs to another study.
    """
    missing: dict[str, str] = {}
    model, fitted = None, None
    if posterior is not None:
        fitted = Fitted(study, posterior)
        model = fitted.recorded.name

    def attempt(section: str, make: Callable[[], Any]) -> Any:
        """The section, or None and a note of what is missing."""
        if posterior is None:
            missing[section] = "there is no posterior; `bayesrep fit` makes one"
            return None
        try:
            return make()
        except (StudyError, PosteriorError, KeyError) as error:
            missing[section] = reason(error).strip("'\"")
            return None

    with warnings.catch_warnings(), ThreadPoolExecutor(max_workers=1) as beside:
        # Said in the page's own words: in the section on trust and beside the estimates.
        warnings.simplefilter("ignore", EstimateWarning)
        # The point estimates and what is read off the posterior are two halves of the time.
        estimated = None if points else beside.submit(_points, study, bootstrap, seed)
        bands = attempt("frequencies", lambda: mixture_draws(posterior))
        trust = attempt("trust", lambda: _trust(posterior))
        summaries = attempt("posterior", lambda: _summaries(fitted))
        curves = attempt("curves", lambda: curves_of(study, posterior))
        naive = _naive(study)
        found = points or (estimated.result() if estimated else [])
    summary, divided = summaries or (None, None)
    measured, last = measured_drop(study), gap_table(found[-1:]) if divided is None else divided
    return Content(
        study=study,
        gaps=_gaps(gap_table(found), divided, measured),
        drop=drop_of(last, measured),
        classifiers=_classifiers(study, classifier_table(found), summary),
        naive=naive,
        model=model,
        frequencies={
            role: frequencies_of(data, role, posterior, bands)
            for role, data in study.datasets.items()
        },
        image=None if bands is None else image_of(study, bands),
        curves=curves,
        trust=trust,
        missing=missing,
    )


def _points(study: Study, bootstrap: int, seed: int) -> list[Analysis]:
    return analyse(study, METHODS, bootstrap=bootstrap, seed=seed, progress=False)


def _summaries(fitted: Fitted | None) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Every classifier and all together; an unconverged fit is shown as what it is."""
    return None if fitted is None else (accuracies(fitted), gaps(fitted))


def _gaps(points: pl.DataFrame, posterior: pl.DataFrame | None, measured: Estimate) -> pl.DataFrame:
    tables = [points] if posterior is None else [points, posterior]
    rows = pl.concat(tables, how="diagonal_relaxed")
    found: list[dict[str, Any]] = []
    for (method,), part in rows.group_by(["method"], maintain_order=True):
        drop = drop_of(part, measured)
        gap = measured if method == "raw" else drop.remaining
        told = method != "raw" and measured.above and is_share(drop.share)
        found.append(
            {
                "method": method,
                "gap": gap.value,
                "lower": gap.lower,
                "upper": gap.upper,
                "share": drop.share.value if told else None,
            }
        )
    numbers = {name: pl.Float64 for name in ("gap", "lower", "upper", "share")}
    return pl.DataFrame(found, {"method": pl.String, **numbers})


def _classifiers(study: Study, points: pl.DataFrame, summary: pl.DataFrame | None) -> pl.DataFrame:
    names = pl.DataFrame({"classifier": study.classifiers})
    table = names.with_columns(
        pl.Series("reference", study.reference.correct.mean(axis=0)),
        pl.Series("replication", study.replication.correct.mean(axis=0)),
    )
    tables = [points] if summary is None else [points, summary]
    for rows in tables:
        for (method,), part in rows.group_by("method", maintain_order=True):
            kept = part.select(
                "classifier",
                pl.col("adjusted_accuracy").alias(f"{method}"),
                *(pl.col(end).alias(f"{method}_{end}") for end in ("lower", "upper")),
                *(
                    [pl.col("rhat"), pl.min_horizontal("ess_bulk", "ess_tail").alias("ess")]
                    if "rhat" in part.columns
                    else []
                ),
            )
            table = table.join(kept, on="classifier", how="left", maintain_order="left")
    return table


def _naive(study: Study) -> Floats:
    size = len(study.classifiers)
    raw = study.replication.correct.mean(axis=0)
    by_annotators = compare_annotators(study)["naive"].to_numpy().reshape(-1, size)
    return np.vstack([raw, by_annotators])


def mixture_draws(posterior: Any) -> dict[str, tuple[Floats, Floats, Floats]]:
    """Parameters a, b and weights [draw, K] of every data set's mixture, by role."""
    names = [f"component_{name}" for name in ("mean", "concentration", "weight")]
    group = need_group(posterior, "posterior", *names)
    mean, total, weight = (thinned_draws(group[name], DRAWS) for name in names)
    roles = json.loads(str(group.attrs["datasets"]))
    return {
        role: (mean[:, d] * total[:, d], (1 - mean[:, d]) * total[:, d], weight[:, d])
        for d, role in enumerate(roles)
    }


def _band(values: Floats) -> Floats:
    """Mean and 95 % interval [3, ...] over draws, the first axis."""
    return np.stack([values.mean(axis=0), *np.quantile(values, INTERVAL, axis=0)])


def _density(parameters: tuple[Floats, Floats, Floats], s: Floats) -> Floats:
    """p(s) of every draw [draw, S]."""
    a, b, weight = (part[:, :, None] for part in parameters)
    return np.sum(weight * beta.pdf(s, a, b), axis=1)


def _inside(values: Floats) -> Floats:
    """A density at 0 and 1 may be infinite; the value beside it is shown there."""
    values = values.copy()
    values[..., 0], values[..., -1] = values[..., 1], values[..., -2]
    return values


def _bins(shown: NDArray[np.int64]) -> Floats:
    """Edges of bars: one for each count where all images have the same n, else equal widths."""
    n = int(shown.max())
    if int(shown.min()) == n and n <= BARS:
        return (np.arange(n + 2) - 0.5) / n
    return np.linspace(0, 1, min(n, BARS) + 1)


def _shares(frequency: Floats, images: Floats, edges: Floats) -> Floats:
    """Share of the images in every bar, [..., B]."""
    place = np.clip(np.searchsorted(edges, frequency, side="right") - 1, 0, len(edges) - 2)
    into = np.zeros((len(frequency), len(edges) - 1))
    into[np.arange(len(frequency)), place] = 1
    return images @ into / images.sum(axis=-1, keepdims=True)


def frequencies_of(data: Any, role: str, posterior: Any, bands: Any) -> Frequencies:
    """Selection frequencies of one data set; ``bands`` of `mixture_draws`, or None."""
    edges = _bins(data.shown)
    observed = _shares(data.selected / data.shown, np.ones(len(data.images)), edges)
    predicted = None
    group = None if posterior is None else find_group(posterior, "posterior_predictive")
    if group is not None and f"{role}_images" in group:
        variable = group[f"{role}_images"]
        cells = cells_along(group, role)
        images = np.asarray(variable.values, dtype=float).reshape(-1, len(cells.shown))
        predicted = _band(_shares(cells.selected / cells.shown, images, edges))
    density = None
    if bands is not None and role in bands:
        density = _band(_inside(_density(bands[role], GRID)))
    return Frequencies(edges, observed, predicted, density)


def image_of(study: Study, bands: Mapping[str, tuple[Floats, Floats, Floats]]) -> Image:
    """Bayes' rule for every k: p(s | k, n) ∝ p(s) s^k (1 − s)^(n − k), a mixture of betas."""
    n = int(max(data.shown.max() for data in study.datasets.values()))
    other = "candidates" if "candidates" in bands else "replication"
    k = np.arange(n + 1)[:, None, None]
    densities: dict[str, Floats] = {}
    for role in ("reference", other):
        a, b, weight = (part[::4] for part in bands[role])  # enough for a mean
        log_weight = np.log(weight) + betaln(a + k, b + n - k) - betaln(a, b)
        updated = np.exp(log_weight - log_weight.max(axis=2, keepdims=True))
        updated /= updated.sum(axis=2, keepdims=True)  # [k, draw, K]
        parts = beta.pdf(GRID, (a + k)[..., None], (b + n - k)[..., None])
        densities[role] = _inside(np.einsum("kdj,kdjs->ks", updated, parts) / len(a))
    return Image(n, densities)


def curves_of(study: Study, posterior: Any) -> Curves:
    """Accuracy curves of all classifiers with the cells that they explain."""
    group = need_group(posterior, "posterior", "classifier_curve")
    made = recorded(posterior)
    draws = {str(name): thinned_draws(group[name], DRAWS // 2) for name in group.data_vars}
    share = np.ones(1)
    if column := made.grouping:
        share = np.mean(study.reference.groups[column][:, None] == group["group"].values, axis=0)
    with jax.enable_x64(new_val=True):
        values = np.asarray(made.model.curves(draws, made.options, CURVE_GRID, share))
    return Curves(_band(values), *_cells(study))


def _cells(study: Study) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Images and right answers by observed frequency."""
    data = study.replication
    frequency, place = np.unique(data.selected / data.shown, return_inverse=True)
    if len(frequency) > BARS + 1:
        place = np.round(data.selected / data.shown * BARS).astype(int)
        frequency = np.arange(BARS + 1) / BARS
    images = np.bincount(place, minlength=len(frequency))
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(frequency)))
    some = images > 0
    sums = np.add.reduceat(data.correct[order], starts[some], axis=0, dtype=np.int64)  # [cell, C]
    return frequency[some], images[some], sums.T


def _trust(posterior: Any) -> Trust:
    # Without the agreement of classifiers: it takes longer than all the rest.
    found = diagnose(posterior)
    group = posterior.posterior
    chains = group["adjusted_accuracy"].mean("classifier").values  # [chain, draw]
    ranks = None
    if len(chains) > 1:
        order = np.argsort(np.argsort(chains, axis=None)).reshape(chains.shape)
        edges = np.linspace(0, chains.size, RANK_BINS + 1)
        ranks = np.stack([np.histogram(chain, edges)[0] for chain in order])
    stats = find_group(posterior, "sample_stats")
    energy = None
    if stats is not None and "energy" in stats:
        values = np.asarray(stats["energy"].values, dtype=float)
        centered = values - values.mean(axis=1, keepdims=True)
        energy = {"marginal": centered.ravel(), "transition": np.diff(values, axis=1).ravel()}
    p_values = None
    if found.predictions is not None:
        answers = found.predictions.filter(pl.col("kind") == "answers")
        p_values = answers["p"].to_numpy()
    return Trust(
        verdict=found.trust,
        sentences=found.sentences,
        checks=found.checks,
        p_values=p_values,
        ranks=ranks,
        energy=energy,
        settings=_settings(group),
        command=_command(posterior),
    )


def _settings(group: Any) -> dict[str, str]:
    """What the posterior records of how it was made, in words."""
    shown = ("model", "method", "options", "schedule", "feedback", "groups", "datasets", "seed")
    shown += ("precision", "device", "machine", "versions")
    shown += ("study_fingerprint", "statistics_digest")
    given = {name: str(group.attrs[name]) for name in shown if str(group.attrs.get(name, ""))}
    return {name.replace("_", " "): _in_words(text) for name, text in given.items()}


def _in_words(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items() if each is not None)
    return ", ".join(map(str, value)) if isinstance(value, list) else text


def _command(posterior: Any) -> str:
    """The command line that makes this posterior again."""
    attributes, made = posterior["posterior"].attrs, recorded(posterior)
    schedule = json.loads(str(attributes.get("schedule", "{}")))
    words = ["bayesrep fit STUDY --out posterior.nc", f"--model {attributes['model']}"]
    words.append(f"--method {attributes['method']}")
    words += [
        f"--{name} {schedule[name]}" for name in ("chains", "warmup", "draws") if name in schedule
    ]
    words.append(f"--seed {attributes['seed']}")
    if attributes.get("feedback") == "cut":
        words.append("--feedback cut")
    if attributes.get("groups"):
        words.append(f"--groups {attributes['groups']}")
    usual = made.model.options()
    for name, value in vars(made.options).items():
        if value != getattr(usual, name):
            shown = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words.append(f"--set {name}={shown}")
    return " ".join(words)
