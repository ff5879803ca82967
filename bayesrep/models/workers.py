"""The worker model: the joint model where it is known who answered.

    P(select | s, w)  =  σ(α(s) + b_w),        b_w ~ Normal(0, τ²),        E_b σ(α(s) + b) = s,

with s the selection frequency in the *population* of workers, so that all else is what it is in
`bayesrep.models.joint`. Only the counts' binomial is another:

    P(answers about x | s)  =  Π_{w answered x} F_xw(s)

with F of `bayesrep.numerics.leniency`: s or 1 − s for workers with one answer. Data sets without
known workers have the binomial.

With `panel` the workers of a data set are all there are (the same judges for every image), and s is
the mean over them: Σ_w σ(α(s) + b_w) / W = s, with an α of every data set.

Draws are conditional on the leniencies, whose uncertainty is added to the draws' covariance
(`bayesrep.posterior.workers.leniency_covariance`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from scipy.special import expit

from bayesrep.errors import OptionError
from bayesrep.models.answers import BINOMIAL
from bayesrep.models.counts import Counts, DependentPairs, complete, log_nodes, on_pairs
from bayesrep.models.crowds import ImageClusters, cluster_images, count_answers, crowd_of, logits
from bayesrep.models.curves import Curves
from bayesrep.models.joint import (
    CellPredictions,
    JointData,
    annotations_only,
    joint_curves,
    joint_data,
    joint_dims,
    joint_start,
    of_classifiers,
    predict_cells,
    report_quantities,
    sample_and_condition,
)
from bayesrep.models.mixtures import MIXTURE_SITES, mixture_offsets
from bayesrep.models.model import Crowd, Model
from bayesrep.models.options import JointOptions
from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.leniency import SMALLEST_POSITIVE, log_counts
from bayesrep.studies.statistics import Cells
from bayesrep.types import Float, no_type_check

N_BASIS = 8  # rank of the workers' probabilities of selecting an image, as functions of s


@no_type_check
@dataclass(frozen=True)
class WorkerOptions(JointOptions):
    """Options of the joint model; answers are dependent through their workers alone.

    Parameters
    ----------
    panel
        Population of the frequency s: all workers there might have been, or (True) the workers of
        the data set, who are then all there are.
    """

    panel: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dependence:
            raise OptionError("workers-model-with-dependence")
        # Clusters of images and the score of leniencies take answers for independent given q.
        if self.answer_distribution() != BINOMIAL:
            raise OptionError("workers-answers-not-binomial")


class WorkerDesign(NamedTuple):
    """Design for the leniencies' score: P(select | s, w) is `basis @ coef` of low rank."""

    basis: Float[Array, "node basis"]
    coef: Float[Array, "basis known"]
    answered: Float[Array, "cluster known"]  # images of a cluster that each known worker answered
    selected: Float[Array, "cluster"]
    correction: Float[Array, "node known"] | None


class WorkerData(NamedTuple):
    """Clusters of images for the likelihood, cells for reports, and designs of the workers."""

    images: JointData
    cells: JointData
    designs: tuple[WorkerDesign | None, ...]  # by data set; None of those without known workers


def worker_data(
    groups: Sequence[Mapping[str, Cells]], distinct: Mapping[str, Any], options: WorkerOptions
) -> WorkerData:
    """Build the arrays of the likelihood; a prior depends on no image."""
    cells = joint_data(groups)
    if not distinct:
        return WorkerData(cells, cells, ())
    clusters: Mapping[str, ImageClusters] = distinct["clusters"]
    crowd: Crowd = distinct["crowd"]
    alpha = logits(crowd, panel=options.panel)
    reported_by = [
        Counts(_pairs(role, complete([groups[0][role]])[0], crowd, alpha), counts.images)
        for role, counts in zip(groups[0], cells.datasets, strict=True)
    ]
    sizes = {role: jnp.asarray(each.images[None].astype(float)) for role, each in clusters.items()}
    datasets = tuple(
        Counts(
            DependentPairs(jnp.asarray(each.log_given), jnp.asarray(np.zeros(len(each.images)))),
            sizes[role],
        )
        for role, each in clusters.items()
    )
    correct = clusters["replication"].correct.T[:, None].astype(float)
    wrong = clusters["replication"].images - correct
    correct, wrong = jnp.asarray(correct), jnp.asarray(wrong)
    images = JointData(datasets, correct, wrong, cells.share, cells.weight)
    cells = cells._replace(datasets=tuple(reported_by))
    designs = tuple(
        _build_design(crowd, each, alpha[crowd.roles.index(role)], panel=options.panel)
        if role in crowd.roles and len(crowd.leniencies.known)
        else None
        for role, each in clusters.items()
    )
    return WorkerData(images, cells, designs)


def _pairs(
    role: str, cells: Cells, crowd: Crowd, alpha: Float[np.ndarray, "dataset node"]
) -> DependentPairs:
    """Lay out completed cells of a data set, of images that random workers of it answered."""
    log_s, log_rest, _ = logit_quadrature.nodes()
    log_choices = log_binomial(cells.shown, cells.selected)
    if role in crowd.roles:
        number, leniencies = crowd.roles.index(role), crowd.leniencies
        answered = count_answers(crowd)[number]
        rows = np.flatnonzero(answered)
        leniency = leniencies.mean[rows], leniencies.variance[rows]
        log_p = log_counts(cells.selected, cells.shown, alpha[number], *leniency, answered[rows])
    else:
        rejected = cells.shown - cells.selected
        log_p = cells.selected[:, None] * log_s + rejected[:, None] * log_rest
    answers, choices = (jnp.asarray(on_pairs(x, cells).T) for x in (log_p.T, log_choices))
    return DependentPairs(answers, choices)


def _build_design(
    crowd: Crowd, clusters: ImageClusters, alpha: Float[np.ndarray, "node"], *, panel: bool
) -> WorkerDesign:
    """Build the design of one data set from the known workers' probabilities and answers."""
    leniencies = crowd.leniencies
    chance = expit(alpha[:, None] + leniencies.mean[leniencies.known])
    # Smooth functions of s have a low rank: images then meet a few columns, not every worker.
    u, values, v = np.linalg.svd(chance, full_matrices=False)
    rank = min(len(values), N_BASIS)
    correction = None
    if panel:
        slope = chance * (1 - chance) * (clusters.answered.sum(axis=0) > 0)
        slopes = np.maximum(slope.sum(axis=1, keepdims=True), SMALLEST_POSITIVE)
        correction = jnp.asarray(slope / slopes)
    return WorkerDesign(
        jnp.asarray(u[:, :rank] * values[:rank]),
        jnp.asarray(v[:rank]),
        jnp.asarray(clusters.answered.astype(float)),
        jnp.asarray(clusters.selected.astype(float)),
        correction,
    )


def workers(data: WorkerData, options: WorkerOptions) -> None:
    """NumPyro model (module's docstring); cells are of images that random workers answered."""
    cells = sample_and_condition(data.images, options)
    family = options.family()
    report_quantities(
        data.cells, family, *predict_cells(data.cells, family, cells.mixtures, cells.curves)
    )
    if any(data.designs):
        numpyro.deterministic("leniency_score", _score(data, cells, family))


def _score(data: WorkerData, cells: CellPredictions, family: Curves) -> Float[Array, "known"]:
    """Compute the score: d log likelihood / d leniency of the known workers, but for constants.

    An image contributes E[x − p_w | answers about it] for each worker who answered, and for each
    classifier the change of that expectation by its answer. A panel's α falls with a rising
    leniency: minus E[correction_w Σ_v (x_v − p_v)].
    """
    total = jnp.zeros(())
    for index, design in enumerate(data.designs):
        if design is None:
            continue
        counts = data.images.datasets[index]
        pairs = counts.pairs
        assert isinstance(pairs, DependentPairs)
        # Posterior of s given an image's annotations, at the nodes.
        weight = jax.nn.softmax(log_nodes(cells.mixtures[index], pairs)[0], axis=-1)
        if index == 1:
            curves = cells.curves[:, 0]
            if family.is_exact:
                curves = curves @ logit_quadrature.virtual_annotators(family.degree).T
            right = data.images.correct[:, 0] / cells.right[:, 0]
            wrong = data.images.wrong[:, 0] / (1 - cells.right[:, 0])
            # Classifiers' answers reweight the nodes, with the likelihood's weight.
            shift = (right.T @ curves + wrong.T @ (1 - curves)) / counts.images[0][:, None]
            weight = weight * (1 + data.images.weight * (shift - len(curves)))
        inside = (design.answered.T @ (weight @ design.basis)).T
        total = total - jnp.sum(inside * design.coef, axis=0)
        if design.correction is not None:
            rest = design.selected[:, None] - (design.answered @ design.coef.T) @ design.basis.T
            total = total - jnp.sum(weight * rest, axis=0) @ design.correction
    return total


WORKERS_MODEL = Model(
    function=workers,
    options=WorkerOptions,
    data=worker_data,
    annotations=lambda data: data._replace(images=annotations_only(data.images)),
    select=lambda data, rows: data._replace(
        images=of_classifiers(data.images, rows), cells=of_classifiers(data.cells, rows)
    ),
    weight=lambda data: data.images.weight,
    start=lambda data, options: joint_start(data.images, options),
    offsets=mixture_offsets,
    mixture_sites=MIXTURE_SITES,
    dims=lambda data, options: (
        joint_dims(data.cells, options)
        | ({"leniency_score": ("known_worker",)} if any(data.designs) else {})
    ),
    curves=joint_curves,
    takes_cut=True,
    takes_groups=False,
    takes_selection=False,
    distinct=lambda study, roles, options: {
        "crowd": crowd_of(study, tuple(roles)),
        "clusters": cluster_images(study, roles, panel=options.panel),
    },
    crowd=lambda study, roles: crowd_of(study, tuple(roles)),
)
