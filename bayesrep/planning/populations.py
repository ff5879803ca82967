"""Populations of planned studies, as a pilot or published numbers leave them.

A pilot's posterior has the mixtures and every classifier's curve on the replication.

*The reference's curves* are these with a shift of the logit, by the accuracy that was measured.

*Difficulty* is shared: an answer is right where Φ⁻¹(g_c(s)) + λ u + √(1 − λ²) ε_c > 0 with
u, ε_c ~ N(0, 1), u one for an image; λ is the one at which the mean product of two classifiers'
residuals on an image, given its count, is the pilot's.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from scipy.special import expit, logit, ndtri

from bayesrep.choices import Prior
from bayesrep.errors import OptionError
from bayesrep.numerics.noisy_matching import BetaMixture
from bayesrep.numerics.settings import own_settings
from bayesrep.planning.discretise import S_NODES, given_counts, masses_of
from bayesrep.posterior.fitted import Fitted
from bayesrep.studies.populations import Populations, published_populations
from bayesrep.studies.scenarios import draw_counts, draw_crowds, find_scenario
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Bools, Floats, Ints

DEFAULT_LENIENCY = 0.5  # sd between workers (probit scale) where no pilot estimates it
LOGIT_OVER_PROBIT = 1.7
LOADING_GRID = np.sqrt(np.linspace(0, 0.98, 15))
TRIAL_IMAGES = 20_000


@dataclass(frozen=True)
class Design:
    """Size of a study to be planned.

    Parameters
    ----------
    images
        Images of each of the two data sets.
    answers
        About every image.
    workers
        How many there are in each crowd; None: every answer is another worker's.
    crowds
        1: the same workers answer about both data sets; 2: each has its own.
    """

    images: int
    answers: int
    workers: int | None = None
    crowds: int = 1

    def __post_init__(self) -> None:
        if self.images < 20 or self.answers < 2:
            raise OptionError("study-design-too-small", images=self.images, answers=self.answers)
        if self.crowds not in (1, 2):
            raise OptionError("crowds-not-one-or-two", crowds=self.crowds)
        if self.workers is not None and self.workers < self.answers:
            raise OptionError("workers-below-answers", workers=self.workers, answers=self.answers)

    @property
    def in_all(self) -> int | None:
        """Workers of all crowds."""
        return None if self.workers is None else self.workers * self.crowds


def draw_study(world: Populations, design: Design, *, leniency: float, seed: int) -> Study:
    """A study of this design from these populations."""
    scenario = find_scenario("plain")
    if design.workers is not None:
        crowd = find_scenario("one-crowd" if design.crowds == 1 else "two-crowds")
        scenario = dataclasses.replace(crowd, crowd=design.workers, leniency=leniency)
    *seeds, of_crowds = np.random.SeedSequence(seed).spawn(3)
    crowds = draw_crowds(np.random.default_rng(of_crowds), scenario, design.answers)
    datasets: dict[str, Any] = {}
    for role, name in enumerate(REQUIRED_ROLES):
        rng = np.random.default_rng(seeds[role])
        s = _frequencies(rng, world, role, design.images)
        crowd_of = None if crowds is None else crowds[role]
        selected, n_shown, answers = draw_counts(
            rng, scenario, s, design.answers, design.answers, crowd_of
        )
        correct = _answers(rng, world.curves[role], s, world.shared_difficulty)
        datasets[name] = dict(selected=selected, shown=n_shown, correct=correct, answers=answers)
    return Study.from_arrays(**datasets, classifiers=list(world.classifiers), name="planned")


def adjusted_accuracies(world: Populations) -> Floats:
    """True adjusted accuracies [C]: ∫ g_c(s) p_ref(s) ds."""
    return world.curves[1] @ _masses(world, 0)


def published_world(prior: str, classifiers: int) -> Populations:
    """Populations known without a pilot.

    Raises
    ------
    OptionError
        If there are none of this name.
    """
    if prior not in get_args(Prior):
        raise OptionError("unknown-world-prior", choices=", ".join(get_args(Prior)), prior=prior)
    return published_populations(classifiers, S_NODES)


def worlds_of(fitted: Fitted, *, count: int, classifiers: int, seed: int) -> list[Populations]:
    """Populations as draws of a pilot's posterior.

    Parameters
    ----------
    fitted
        The pilot and its posterior by the joint model, without groups.
    count
        How many draws.
    classifiers
        How many of the pilot's, at most, evenly spread over their accuracies.
    seed
        Seed of the choice of draws, and of the estimate of the difficulty.

    Raises
    ------
    OptionError
        If the posterior is not of the joint model, has groups, or is of images that the counts at
        hand selected.
    """
    record = fitted.record
    # A world is drawn from the mixtures and curves of the joint model, without selection.
    if record.name != "joint" or record.grouping:
        raise OptionError("plan-without-joint-posterior")
    if record.selections:
        raise OptionError("pilot-selected-by-counts", dataset=next(iter(record.selections)))
    group = fitted.need("posterior", "component_weight", "classifier_curve")
    chains, length = fitted.adjusted_draws.shape[:2]
    rng = np.random.default_rng(seed)
    # Draws repeat only where the pilot has fewer than there are worlds.
    chosen = rng.choice(chains * length, size=count, replace=count > chains * length)
    draws = {
        str(name): group[name].values.reshape(-1, *group[name].shape[2:])[chosen]
        for name in group.data_vars
    }
    # Curves of the model at the nodes that worlds are given by.
    with own_settings():
        values = np.asarray(record.model.curves(draws, record.options, S_NODES, np.ones(1)))
    accuracy = fitted.statistics.accuracy("reference")
    # Few classifiers, spread over the pilot's accuracies, stand for all.
    order = np.argsort(accuracy, kind="stable")
    places = np.linspace(0, len(order) - 1, classifiers).round().astype(int)
    rows = np.sort(order[np.unique(places)])
    names = tuple(fitted.statistics.classifiers[row] for row in rows)
    mean, total = draws["component_mean"][:, :2], draws["component_concentration"][:, :2]
    weights = draws["component_weight"][:, :2]
    worlds = [
        _with_reference(
            Populations(names, m * c, (1 - m) * c, w, np.stack([g, g]), 0.0), accuracy[rows]
        )
        for m, c, w, g in zip(mean, total, weights, values[:, rows], strict=True)
    ]
    # One loading for all worlds, found with the first.
    loading = _shared_difficulty(worlds[0], fitted, rows, rng)
    return [world._replace(shared_difficulty=loading) for world in worlds]


def leniency_of(fitted: Fitted) -> float | None:
    """Return the sd between a pilot's workers on the probit scale; None where unknown."""
    study = fitted.images
    if not fitted.knows_workers:
        return None
    from bayesrep.models import MODELS

    crowd = MODELS["workers"].crowd
    assert crowd is not None
    return float(crowd(study, REQUIRED_ROLES).leniencies.spread) / LOGIT_OVER_PROBIT


def _masses(world: Populations, role: int) -> Floats:
    """Masses of a data set's frequencies around `S_NODES`."""
    return masses_of(BetaMixture(world.a[role], world.b[role], world.weights[role]))


def _with_reference(world: Populations, accuracy: Floats) -> Populations:
    """Curves of the reference that give these accuracies: the replication's, shifted."""
    score, mass = logit(np.clip(world.curves[1], 1e-9, 1 - 1e-9)), _masses(world, 0)
    target = np.clip(accuracy, 1e-4, 1 - 1e-4)
    low, high = np.full(len(target), -30.0), np.full(len(target), 30.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = expit(score + middle[:, None]) @ mass < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return world._replace(curves=np.stack([expit(score + high[:, None]), world.curves[1]]))


def _frequencies(rng: np.random.Generator, world: Populations, role: int, size: int) -> Floats:
    weights = world.weights[role] / world.weights[role].sum()
    component = rng.choice(len(weights), size=size, p=weights)
    return rng.beta(world.a[role][component], world.b[role][component])


def _answers(rng: np.random.Generator, curves: Floats, s: Floats, loading: float) -> Bools:
    """Correctness [N, C] whose marginal probabilities are the curves'."""
    shared = loading * rng.standard_normal(len(s))
    own = np.sqrt(1 - loading**2)
    correct = np.empty((len(s), len(curves)), dtype=bool)
    for place, curve in enumerate(curves):
        threshold = ndtri(np.clip(np.interp(s, S_NODES, curve), 1e-12, 1 - 1e-12))
        correct[:, place] = threshold + shared + own * rng.standard_normal(len(s)) > 0
    return correct


def _shared_difficulty(
    world: Populations, fitted: Fitted, rows: Sequence[int] | Ints, rng: np.random.Generator
) -> float:
    """The loading at which classifiers' answers go together as in the pilot."""
    if len(rows) < 2:
        return 0.0
    data = fitted.images.replication
    measured = _residual_product(world, data.selected, data.shown, data.correct[:, rows])
    s = _frequencies(rng, world, 1, TRIAL_IMAGES)
    n_shown = rng.choice(data.shown, TRIAL_IMAGES)
    selected = rng.binomial(n_shown, s)
    seed = int(rng.integers(2**31))
    products = [
        _residual_product(
            world,
            selected,
            n_shown,
            _answers(np.random.default_rng(seed), world.curves[1], s, float(loading)),
        )
        for loading in LOADING_GRID
    ]
    return float(np.interp(measured, np.maximum.accumulate(products), LOADING_GRID))


def _residual_product(world: Populations, selected: Ints, n_shown: Ints, correct: Bools) -> float:
    """Mean product of two different classifiers' residuals on an image, given its count."""
    kinds, place = np.unique(np.stack([selected, n_shown], axis=1), axis=0, return_inverse=True)
    posterior = given_counts(kinds[:, 0], kinds[:, 1], _masses(world, 1))
    residual = correct - (posterior @ world.curves[1].T)[place.ravel()]
    total = np.square(residual.sum(axis=1)) - np.square(residual).sum(axis=1)
    classifiers = correct.shape[1]
    return float(total.mean() / (classifiers * (classifiers - 1)))
