"""The shared-difficulty model: every classifier at once, on the images that they share.

The joint model (`bayesrep.models.joint`) has one classifier's answers at a time. All classifiers
see the same images, though, and miss together what is hard for machines whatever people say of it.
Here every image has a difficulty beside its selection frequency:

    u_x              ~  Normal(0, I)                                 F factors, one by default
    correct_cx | J, u ~  Bernoulli(σ(m_cJ + λ_c · u_x))              both data sets
    m_cj             :  E_u σ(m_cj + λ_c · u) = σ(η_cj)              λ leaves the curve as it is
    λ_c0 ~ Normal(θ_λ, 0.75²),  θ_λ ~ Normal(1.5, 1);   further factors λ_cf ~ Normal(0, 0.75²)

with J, the mixtures, and the curves η and their priors as in the joint model. The virtual
annotators J of an image are the same for all classifiers. Because η is the *marginal* logit, g_c(s)
and A_c are the same functions of the same parameters as there, and for a single classifier the two
posteriors are one.

The reference's answers have curves of their own, with the same priors and no prior on what lies
between: so they tell about the images, and the accuracy on the reference's population and the gap
between the two populations become known with their uncertainty.

Further factors are identified by anchors: of factor f = 1, 2 one classifier has a positive loading,
and none on the factors after it.

The likelihood is designed in `bayesrep.models.answers`. Bock and Aitkin (1981), "Marginal maximum
likelihood estimation of item parameters", for the model of answers without s; Heagerty (1999),
"Marginally specified logistic-normal models", for curves kept marginal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.sharding import Mesh
from jax.typing import ArrayLike
from numpyro import handlers
from numpyro.infer.reparam import Reparam

from bayesrep.bounds import refuse_above
from bayesrep.errors import OptionError
from bayesrep.models.answers import (
    Answers,
    Nodes,
    difficulty_nodes,
    image_moments,
    lay_out_answers,
    log_answers,
)
from bayesrep.models.counts import (
    average_accuracy,
    complete,
    contract,
    log_likelihood_of,
    log_pair_masses,
    log_tables,
    on_pairs,
    pair_of_cells,
    selection_moments,
)
from bayesrep.models.curves import Curves, Evened, evened_offset, sample_curves
from bayesrep.models.joint import (
    JointData,
    annotations_only,
    joint_curves,
    joint_data,
    joint_dims,
    joint_start,
    report_quantities,
)
from bayesrep.models.mixtures import (
    SITES,
    Mixtures,
    mixture_offsets,
    sample_mixtures,
    sample_prior,
)
from bayesrep.models.model import Model
from bayesrep.models.options import JointOptions
from bayesrep.models.priors import Prior, locate, unit_law
from bayesrep.numerics.conditional_logit import conditional_logit
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.statistics import Cells, Patterns, patterns_of
from bayesrep.types import Float, Floats, Ints, no_type_check

LARGEST_F = 3
LARGEST_NODES = 1_000


@no_type_check
@dataclass(frozen=True)
class SharedDifficultyOptions(JointOptions):
    """Structure and priors: those of the joint model, and of the difficulty and its loadings.

    Parameters
    ----------
    factors
        F, dimensions of the difficulty, 1 to 3.
    nodes
        Nodes of the difficulty's grid in each dimension. Default: by the number of classifiers,
        whose answers together narrow an image's difficulty down.
    reference_answers
        Whether to model the answers on the reference too.
    loading
        (mean, sd) of the mean over classifiers of the first factor's loadings.
    classifier_loading
        sd of a classifier's loading around it.
    further_loading
        sd of the loadings on the second and third factor: no distribution, for anchors are
        log-normal.
    """

    factors: int = 1
    nodes: int | None = None
    reference_answers: bool = True
    loading: Prior = (1.5, 1.0)
    classifier_loading: Prior = 0.75
    further_loading: float = 0.75

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.further_loading, str):
            raise OptionError("further-loading-not-sd", prior=self.further_loading)
        if not 1 <= self.factors <= LARGEST_F:
            raise OptionError("factors-out-of-range", most=LARGEST_F, factors=self.factors)
        if self.nodes is not None and self.nodes < 3:
            raise OptionError("difficulty-nodes-too-few", nodes=self.nodes)
        refuse_above("nodes", self.nodes or 0, LARGEST_NODES)


class Sides(NamedTuple):
    """Cells of the reference's answers as the joint model keeps those of the replication."""

    correct: Float[Array, "classifier 1 cell"]
    wrong: Float[Array, "classifier 1 cell"]


class SharedData(NamedTuple):
    """Everything the shared-difficulty model conditions on."""

    joint: JointData
    reference: Sides
    answers: tuple[Answers, ...]  # of the reference, if modelled, and of the replication
    nodes: Nodes
    free: Float[Array, "classifier further"]  # 1 where a further factor's loading is anything
    anchor: Float[Array, "classifier further"]  # 1 where it is positive


def default_nodes(classifiers: int, factors: int) -> int:
    """Nodes of the grid in one dimension.

    Spaced by less than two over the largest loading to be expected, 6 for one factor: where nodes
    are steps apart on the logit scale, two classifiers that always agree would tell the grid's
    weights from one another. And the finer the more classifiers narrow an image's difficulty down.
    """
    if factors > 1:
        return {2: 13, 3: 9}[factors]
    return int(np.clip(2 * round(2 * np.sqrt(classifiers)) + 1, 25, 49))


def shared_data(
    groups: Sequence[Mapping[str, Cells]],
    patterns: Mapping[str, Patterns],
    options: SharedDifficultyOptions,
    mesh: Mesh | None = None,
) -> SharedData:
    """The arrays of the likelihood.

    Parameters
    ----------
    groups
        One mapping of role to cells, as `joint_data` takes them.
    patterns
        Distinct images by role, at least of the reference and the replication.
    options
        Options of the model.
    mesh
        Devices over which to spread the images.

    Raises
    ------
    OptionError
        For more factors than classifiers.
    """
    cells = groups[0]
    joint = joint_data(groups, options.dependence)
    classifiers = len(joint.correct)
    if options.factors > classifiers:
        raise OptionError(
            "factors-exceed-classifiers", factors=options.factors, classifiers=classifiers
        )
    # A rule over s and difficulty at once; as many nodes as the likelihood is steep.
    size = options.nodes or default_nodes(classifiers, options.factors)
    nodes = difficulty_nodes(size, options.factors, classifiers)
    grid = options.family().points.size * len(nodes.blocks) + len(nodes.weight)
    roles = REQUIRED_ROLES if options.reference_answers else REQUIRED_ROLES[1:]
    answers = tuple(
        lay_out_answers(patterns[r], *_pair_of_patterns(patterns[r], cells[r]), grid, mesh)
        for r in roles
    )
    (table,) = complete([cells["reference"]])
    correct = jnp.asarray(on_pairs(table.correct.T, table))[:, None]
    free, anchor = _anchors([patterns[role] for role in roles], options.factors)
    return SharedData(
        joint,
        Sides(correct, joint.datasets[0].images[None] - correct),
        answers,
        nodes,
        jnp.asarray(free),
        jnp.asarray(anchor),
    )


def _pair_of_patterns(patterns: Patterns, cells: Cells) -> tuple[Ints, int]:
    """Place of every pattern's (k, n) among the model's pairs, and how many pairs there are."""
    (table,) = complete([cells])
    pair = pair_of_cells(table)[table.find(patterns.selected, patterns.shown)]
    return pair, on_pairs(table.images, table).size


def _anchors(
    datasets: Sequence[Patterns], factors: int
) -> tuple[Float[np.ndarray, "classifier further"], Float[np.ndarray, "classifier further"]]:
    """Which further loadings are free and which positive.

    Anchors are the classifiers that stand out most in the second and third principal components
    of what their answers leave once the annotations are accounted for.
    """
    classifiers = datasets[0].correct.shape[1]
    free = np.ones((classifiers, factors - 1))
    anchor = np.zeros_like(free)
    if factors == 1:
        return free, anchor
    scatter = sum(_residual_scatter(patterns) for patterns in datasets)
    scale = np.sqrt(np.maximum(np.diag(scatter), 1e-12))
    components = np.linalg.eigh(scatter / np.outer(scale, scale))[1][:, ::-1]
    taken: list[int] = []
    for factor in range(factors - 1):
        size = np.abs(components[:, factor + 1])
        size[taken] = -1.0
        chosen = int(size.argmax())
        taken.append(chosen)
        free[chosen, factor:] = 0.0
        anchor[chosen, factor] = 1.0
    return free, anchor


def _residual_scatter(patterns: Patterns) -> Floats:
    """Σ over images of products of two classifiers' answers less their means in the cell."""
    fresh = (np.diff(patterns.shown, prepend=-1) != 0) | (
        np.diff(patterns.selected, prepend=-1) != 0
    )
    start = np.flatnonzero(fresh)
    images = patterns.images.astype(np.float64)
    correct = patterns.correct.astype(np.float64)
    total = np.add.reduceat(images, start)
    mean = np.add.reduceat(correct * images[:, None], start) / total[:, None]
    residual = correct - mean[np.cumsum(fresh) - 1]
    return residual.T @ (residual * images[:, None])


def shared_annotations_only(data: SharedData) -> SharedData:
    """The same data with every classifier's answers removed (shapes unchanged)."""
    nothing = jax.tree.map(jnp.zeros_like, data.reference)
    silent = tuple(Answers(one.rows, jnp.zeros_like(one.images), one.mesh) for one in data.answers)
    return data._replace(joint=annotations_only(data.joint), reference=nothing, answers=silent)


def shared_start(data: SharedData, options: SharedDifficultyOptions) -> dict[str, ArrayLike]:
    """Values of all sites to begin the search for the mode: the prior means."""
    # Without bends the population's terms are their own coordinates.
    even = {"population_curve": "population_curve_base"}
    start = {even.get(n, n): value for n, value in joint_start(data.joint, options).items()}
    classifiers = len(data.joint.correct)
    start["population_loading"] = np.asarray(locate(options.loading).location)
    start["classifier_loading"] = np.zeros(classifiers)
    if options.factors > 1:
        start["further_loading"] = np.zeros((classifiers, options.factors - 1))
    if options.reference_answers:
        start["reference_population_curve_base"] = start["population_curve_base"]
        start["reference_classifier_curve"] = start["classifier_curve"]
    return start


def shared_offsets(
    values: Mapping[str, Array], options: SharedDifficultyOptions
) -> dict[str, Array]:
    """Where to measure some sites from, so that the sampler meets a straighter posterior."""
    offsets, priors = mixture_offsets(values, options), options.curve_priors()
    offsets["classifier_curve"] = evened_offset(values["population_curve_base"], priors)
    if options.reference_answers:
        base = values["reference_population_curve_base"]
        offsets["reference_classifier_curve"] = evened_offset(base, priors)
    return offsets


def _loadings(
    data: SharedData, options: SharedDifficultyOptions
) -> Float[Array, "classifier factor"]:
    """Sample λ; the sites are what standard deviations multiply."""
    classifiers, further = data.free.shape
    mean = sample_prior("population_loading", options.loading, ())
    with numpyro.plate("classifier", classifiers):
        scale, law = unit_law(options.classifier_loading)
        own = jnp.asarray(numpyro.sample("classifier_loading", law))
        columns = [(mean + scale * own)[:, None]]
        if further:
            law = dist.Normal(jnp.zeros((classifiers, further)), 1.0).to_event(1)
            raw = jnp.asarray(numpyro.sample("further_loading", law))
            scaled = data.free * raw + data.anchor * jnp.exp(0.5 * raw)
            columns.append(options.further_loading * scaled)
    return jnp.concatenate(columns, axis=1)


class _Parts(NamedTuple):
    """What both likelihoods share; by data set whose answers are modelled but for the mixtures."""

    family: Curves
    mixtures: list[Mixtures]
    logits: list[Float[Array, "classifier point"]]
    tables: list[Float[Array, "cell point"]]  # log P(point | k, n)
    loadings: Float[Array, "classifier factor"]


def _sample(data: SharedData, options: SharedDifficultyOptions) -> _Parts:
    """All sites, the likelihood of the counts and what is reported."""
    family, priors, classifiers = options.family(), options.curve_priors(), len(data.joint.correct)
    mixtures = sample_mixtures(options, *data.joint.sizes)
    even: dict[str, Reparam] = dict.fromkeys(
        ("population_curve", "reference_population_curve"), Evened()
    )
    with handlers.reparam(config=even):
        logits = [sample_curves(family, priors, classifiers)]
        if options.reference_answers:
            names = ("reference_population_curve", "reference_classifier_curve")
            logits.insert(0, sample_curves(family, priors, classifiers, names=names))
    loadings = _loadings(data, options)
    log_mass = [
        log_pair_masses(mixture, counts.pairs)
        for mixture, counts in zip(mixtures, data.joint.datasets, strict=True)
    ]
    tables: list[Array] = []
    for index in range(2 - len(logits), 2):
        pairs = data.joint.datasets[index].pairs
        log_mass[index], table = log_tables(mixtures[index], pairs, family)
        tables.append(table[0])
    for index, (counts, masses) in enumerate(zip(data.joint.datasets, log_mass, strict=True)):
        numpyro.factor(f"counts_{index}", log_likelihood_of(counts, masses))
    curves = [jax.nn.sigmoid(logit)[:, None, :] for logit in logits]
    right = contract(curves[-1], jnp.exp(tables[-1])[None])
    report_quantities(data.joint, family, mixtures, curves[-1], log_mass, right)
    numpyro.deterministic("loading", loadings)
    if options.reference_answers:
        reference, adjusted = (
            average_accuracy(curve, mixtures[0], data.joint.datasets[0], family)[:, 0]
            for curve in curves
        )
        numpyro.deterministic("population_reference_accuracy", reference)
        numpyro.deterministic("population_gap", reference - adjusted)
    return _Parts(family, mixtures, logits, tables, loadings)


def shared_difficulty(data: SharedData, options: SharedDifficultyOptions) -> None:
    """NumPyro model; the module's docstring states it."""
    parts = _sample(data, options)
    for index, (eta, table, answers) in enumerate(
        zip(parts.logits, parts.tables, data.answers, strict=True)
    ):
        value = log_answers(eta, parts.loadings, table, answers, data.nodes)
        numpyro.factor(f"answers_{index}", value)


def working_independence(data: SharedData, options: SharedDifficultyOptions) -> None:
    """The same model with the joint model's likelihood of answers, a product over classifiers.

    The loadings do not appear in it. Its mode is near and quickly found.
    """
    parts = _sample(data, options)
    sides = [Sides(data.joint.correct, data.joint.wrong)]
    if options.reference_answers:
        sides.insert(0, data.reference)
    for index, (eta, table, side) in enumerate(zip(parts.logits, parts.tables, sides, strict=True)):
        right = contract(jax.nn.sigmoid(eta)[:, None, :], jnp.exp(table)[None])
        numpyro.factor(
            f"answers_{index}",
            jnp.sum(side.correct * jnp.log(right) + side.wrong * jnp.log1p(-right)),
        )


class Images(NamedTuple):
    """What a draw of the parameters says of the images of one data set, pattern by pattern."""

    frequency: Float[Array, "moment pattern"]
    """Mean of s and of s² given annotations and answers."""
    difficulty: Float[Array, "moments pattern"]
    """Means of u, then of u², by factor."""


def image_posteriors(data: SharedData, options: SharedDifficultyOptions) -> list[Images]:
    """Posterior moments of single images; call it with every site's value substituted.

    One entry for each data set whose answers are modelled; patterns include the padding.
    """
    parts, first = _sample(data, options), 2 - len(data.answers)
    images: list[Images] = []
    for index, answers in enumerate(data.answers):
        pairs = data.joint.datasets[first + index].pairs
        values = selection_moments(parts.mixtures[first + index], pairs, parts.family)
        moments = jax.lax.map(
            lambda rows, index=index, values=values: image_moments(
                parts.logits[index], parts.loadings, parts.tables[index], rows, data.nodes, values
            ),
            answers.rows,
        )
        images.append(Images(*(jnp.concatenate(list(part), axis=1) for part in moments)))
    return images


class Predictive(NamedTuple):
    """From which the answers on one data set are drawn: J, u, then every classifier's answer."""

    logit: Float[Array, "classifier point"]  # given u = 0
    loadings: Float[Array, "classifier factor"]
    table: Float[Array, "cell point"]  # P(point | k, n)


def predictive(data: SharedData, options: SharedDifficultyOptions) -> list[Predictive]:
    """Laws of the answers; call it with every site's value substituted."""
    parts = _sample(data, options)
    spread = parts.loadings @ data.nodes.difficulty.T
    return [
        Predictive(
            conditional_logit(eta, spread, data.nodes.weight), parts.loadings, jnp.exp(table)
        )
        for eta, table in zip(parts.logits, parts.tables, strict=True)
    ]


def shared_dims(data: SharedData, options: SharedDifficultyOptions) -> dict[str, tuple[str, ...]]:
    """Names of the dimensions of the joint model's sites and quantities and of what is added."""
    dims = joint_dims(data.joint, options)
    dims |= {
        "population_curve_base": ("population_term",),
        "population_loading": (),
        "classifier_loading": ("classifier",),
        "loading": ("classifier", "factor"),
    }
    if options.factors > 1:
        dims["further_loading"] = ("classifier", "further_factor")
    if options.reference_answers:
        dims |= {
            "reference_population_curve_base": ("population_term",),
            "reference_population_curve": ("population_term",),
            "reference_classifier_curve": ("classifier", "term"),
            "population_reference_accuracy": ("classifier",),
            "population_gap": ("classifier",),
        }
    return dims


MODEL = Model(
    function=shared_difficulty,
    options=SharedDifficultyOptions,
    data=shared_data,
    annotations=shared_annotations_only,
    select=None,
    weight=lambda data: jnp.ones(()),  # it knows that classifiers answer about the same images
    start=shared_start,
    offsets=shared_offsets,
    mixture_sites=SITES,
    dims=shared_dims,
    curves=joint_curves,  # of the marginal logit, whatever the difficulty
    methods=("nuts", "laplace"),
    collapsed=False,
    takes_groups=False,
    of_images=True,
    takes_selection=True,
    distinct=lambda study, *_: {role: patterns_of(study.datasets[role]) for role in REQUIRED_ROLES},
    independent=working_independence,
    answers=predictive,
    images=image_posteriors,
)
