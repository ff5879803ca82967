"""The worker model: the joint model where it is known who answered.

An answer of a lenient worker says less for an image than one of a strict worker:

    P(select | s, w)  =  σ(α(s) + b_w),        b_w ~ Normal(0, τ²),        E_b σ(α(s) + b) = s,

with s the selection frequency in the *population* of workers, so that mixtures, curves and adjusted
accuracies mean what they mean in the joint model (`bayesrep.models.joint`), whose sites and priors
these are. Only the counts' binomial is another:

    P(answers about x | s)  =  Π_{w answered x} F_xw(s)

with F of `bayesrep.numerics.leniency`: what the answer says where the worker's leniency is known
from his other answers alone. Of workers with one answer each F is s or 1 − s, and the model is the
joint one. Data sets of which it is not known who answered have the binomial.

With `panel` the workers of a data set are all there are (the same judges for every image), and s is
the mean over them: Σ_w σ(α(s) + b_w) / W = s, with an α of every data set.

Draws are given the leniencies. What is uncertain about these moves all classifiers together, by
more than anything else where two data sets had different crowds, and is added to the draws'
covariance (`bayesrep.posterior.workers.leniency_covariance`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from jax.typing import ArrayLike
from scipy.special import expit

from bayesrep.errors import OptionError
from bayesrep.models.counts import Counts, DependentPairs, complete, log_nodes, on_pairs
from bayesrep.models.crowds import Alike, count_answers, crowd_of, images_alike, logits
from bayesrep.models.curves import Curves
from bayesrep.models.joint import (
    JointData,
    Known,
    annotations_only,
    given_cells,
    joint_curves,
    joint_data,
    joint_dims,
    joint_start,
    likelihood,
    of_classifiers,
    report_quantities,
)
from bayesrep.models.mixtures import SITES, mixture_offsets
from bayesrep.models.model import Crowd, Model
from bayesrep.models.options import JointOptions
from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.leniency import SMALLEST_POSITIVE, log_counts
from bayesrep.studies.statistics import Cells
from bayesrep.types import Float, Ints, no_type_check

BASIS = 8
"""Functions of s that make up every worker's chance of selecting an image."""


@no_type_check
@dataclass(frozen=True)
class WorkerOptions(JointOptions):
    """Those of the joint model; answers depend on each other through their workers alone.

    Parameters
    ----------
    panel
        What s is a frequency among: all workers there might have been, or (True) the workers of the
        data set, who are then all there are.
    """

    panel: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dependence:
            raise OptionError("workers-model-with-dependence")


class Leaning(NamedTuple):
    """What the known workers' leniencies weigh in a data set.

    P(select | s, w) is `basis @ part`: as a function of s it needs a few numbers a worker. Of a
    panel `less` is by how much α falls with a worker's leniency.
    """

    basis: Float[Array, "node basis"]
    part: Float[Array, "basis known"]
    answered: Float[Array, "alike known"]
    """How many of the images that are alike each known worker answered."""
    selected: Float[Array, "alike"]
    less: Float[Array, "node known"] | None


class WorkerData(NamedTuple):
    """Images as the likelihood knows them, cells as they are reported, and the workers."""

    given: JointData
    cells: JointData
    leaning: tuple[Leaning | None, ...]
    """By data set; None of those of which it is not known who answered."""


def worker_data(
    groups: Sequence[Mapping[str, Cells]],
    distinct: Mapping[str, Any],
    options: WorkerOptions,
) -> WorkerData:
    """The arrays of the likelihood; a prior looks at no image."""
    cells = joint_data(groups)
    if not distinct:
        return WorkerData(cells, cells, ())
    alike: Mapping[str, Alike] = distinct["alike"]
    crowd: Crowd = distinct["crowd"]
    alpha = logits(crowd, panel=options.panel)
    reported_by = [
        Counts(_pairs(role, complete([groups[0][role]])[0], crowd, alpha), counts.images)
        for role, counts in zip(groups[0], cells.datasets, strict=True)
    ]
    images = {role: jnp.asarray(each.images[None].astype(float)) for role, each in alike.items()}
    datasets = tuple(
        Counts(
            DependentPairs(jnp.asarray(each.log_given), jnp.asarray(np.zeros(len(each.images)))),
            images[role],
        )
        for role, each in alike.items()
    )
    correct = alike["replication"].correct.T[:, None].astype(float)
    wrong = alike["replication"].images - correct
    given = JointData(datasets, jnp.asarray(correct), jnp.asarray(wrong), cells.share, cells.weight)
    cells = cells._replace(datasets=tuple(reported_by))
    leaning = tuple(
        _list_chances(crowd, each, alpha[crowd.roles.index(role)], panel=options.panel)
        if role in crowd.roles and len(crowd.leniencies.known)
        else None
        for role, each in alike.items()
    )
    return WorkerData(given, cells, leaning)


def _pairs(
    role: str, cells: Cells, crowd: Crowd, alpha: Float[np.ndarray, "dataset node"]
) -> DependentPairs:
    """Completed cells of a data set, of images about which any of its workers were asked."""
    log_s, log_rest, _ = logit_quadrature.nodes()
    log_choices = log_binomial(cells.shown, cells.selected)
    if role in crowd.roles:
        number, found = crowd.roles.index(role), crowd.leniencies
        asked = count_answers(crowd)[number]
        some = np.flatnonzero(asked)
        leniency = found.mean[some], found.variance[some]
        given = log_counts(cells.selected, cells.shown, alpha[number], *leniency, asked[some])
    else:
        rejected = cells.shown - cells.selected
        given = cells.selected[:, None] * log_s + rejected[:, None] * log_rest
    return DependentPairs(*(jnp.asarray(on_pairs(x, cells).T) for x in (given.T, log_choices)))


def _list_chances(
    crowd: Crowd, alike: Alike, alpha: Float[np.ndarray, "node"], *, panel: bool
) -> Leaning:
    """The known workers' chances of selecting an image of one data set, and what they answered."""
    found = crowd.leniencies
    chance = expit(alpha[:, None] + found.mean[found.known])
    left, size, right = np.linalg.svd(chance, full_matrices=False)
    kept = min(len(size), BASIS)
    less = None
    if panel:
        slope = chance * (1 - chance) * (alike.answered.sum(axis=0) > 0)
        less = jnp.asarray(slope / np.maximum(slope.sum(axis=1, keepdims=True), SMALLEST_POSITIVE))
    return Leaning(
        jnp.asarray(left[:, :kept] * size[:kept]),
        jnp.asarray(right[:kept]),
        jnp.asarray(alike.answered.astype(float)),
        jnp.asarray(alike.selected.astype(float)),
        less,
    )


def workers(data: WorkerData, options: WorkerOptions) -> None:
    """NumPyro model; the module's docstring states it.

    What is reported of cells is of images about which any of the data set's workers were asked.
    """
    known = likelihood(data.given, options)
    family = options.family()
    report_quantities(
        data.cells, family, *given_cells(data.cells, family, known.mixtures, known.curves)
    )
    if any(data.leaning):
        numpyro.deterministic("leniency_score", _score(data, known, family))


def _score(data: WorkerData, known: Known, family: Curves) -> Float[Array, "known"]:
    """Derivative of the log likelihood by the known workers' leniencies, but for constants.

    Of an image it is E[x − p_w | answers about it] of each worker who answered, and of each
    classifier's answer what that moves the expectation by. Of a panel α falls where a leniency
    rises: less the part of it, E[less_w Σ_v (x_v − p_v)]. Images that are alike are taken for each
    other.
    """
    total = jnp.zeros(())
    for index, leaning in enumerate(data.leaning):
        if leaning is None:
            continue
        counts = data.given.datasets[index]
        pairs = counts.pairs
        assert isinstance(pairs, DependentPairs)
        weight = jax.nn.softmax(log_nodes(known.mixtures[index], pairs)[0], axis=-1)
        if index == 1:
            curves = known.curves[:, 0]
            if family.is_exact:
                curves = curves @ logit_quadrature.virtual_annotators(family.degree).T
            right = data.given.correct[:, 0] / known.right[:, 0]
            wrong = data.given.wrong[:, 0] / (1 - known.right[:, 0])
            told = (right.T @ curves + wrong.T @ (1 - curves)) / counts.images[0][:, None]
            weight = weight * (1 + data.given.weight * (told - len(curves)))
        inside = (leaning.answered.T @ (weight @ leaning.basis)).T
        total = total - jnp.sum(inside * leaning.part, axis=0)
        if leaning.less is not None:
            left = leaning.selected[:, None] - (leaning.answered @ leaning.part.T) @ leaning.basis.T
            total = total - jnp.sum(weight * left, axis=0) @ leaning.less
    return total


def _of_classifiers(data: WorkerData, rows: Ints) -> WorkerData:
    given, cells = of_classifiers(data.given, rows), of_classifiers(data.cells, rows)
    return data._replace(given=given, cells=cells)


def _annotations_only(data: WorkerData) -> WorkerData:
    return data._replace(given=annotations_only(data.given))


def _start(data: WorkerData, options: WorkerOptions) -> dict[str, ArrayLike]:
    return joint_start(data.given, options)


def _dims(data: WorkerData, options: WorkerOptions) -> dict[str, tuple[str, ...]]:
    dims = joint_dims(data.cells, options)
    return dims | {"leniency_score": ("known_worker",)} if any(data.leaning) else dims


MODEL = Model(
    function=workers,
    options=WorkerOptions,
    data=worker_data,
    annotations=_annotations_only,
    select=_of_classifiers,
    weight=lambda data: data.given.weight,
    start=_start,
    offsets=mixture_offsets,
    mixture_sites=SITES,
    dims=_dims,
    curves=joint_curves,
    methods=("nuts", "cut", "laplace"),
    takes_groups=False,
    takes_selection=False,
    distinct=lambda study, roles, options: {
        "crowd": crowd_of(study, tuple(roles)),
        "alike": images_alike(study, roles, panel=options.panel),
    },
    crowd=lambda study, roles: crowd_of(study, tuple(roles)),
)
