"""Populations that studies are simulated from, set to published means and accuracies."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import brentq, root
from scipy.special import expit, ndtr, ndtri, roots_sh_jacobi

from bayesrep.choices import Process
from bayesrep.studies.manifest import Truth
from bayesrep.studies.scenarios import (
    Mixture,
    Scenario,
    chance_to_be_kept,
    class_ease,
    class_shares,
    draw_logit_normal,
    draw_matched,
    find_scenario,
    matched_weights,
)
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Bools, Float, Floats

Role: TypeAlias = str
Curve = Callable[[Floats, float, float], Floats]

MEAN_SELECTION_FREQUENCY: Mapping[Role, float] = {"reference": 0.852, "replication": 0.807}
REAL_SHARE_OF_GAP = 1 / 3
SHARED_DIFFICULTY = 0.8
DEFAULT_ANNOTATORS = 36


@dataclass(frozen=True)
class _Process:
    """Generating process of selection frequencies and accuracies."""

    mixtures: Mapping[Role, Mixture]
    nodes: Callable[[Mixture], tuple[Floats, Floats]]
    draw: Callable[[np.random.Generator, Mixture, int], Floats]
    curve: Curve


def _logit_normal_nodes(mixture: Mixture) -> tuple[Floats, Floats]:
    """Gauss-Hermite nodes and weights under the mixture, both [K * 101]."""
    z, weight = _hermite_rule()
    s = expit(np.add.outer(mixture.locations, np.zeros_like(z)) + np.outer(mixture.spreads, z))
    return s.ravel(), np.outer(mixture.weights, weight / weight.sum()).ravel()


@cache
def _hermite_rule() -> tuple[Floats, Floats]:
    """101 Gauss-Hermite nodes and weights, which take longer than all that is done with them."""
    return np.polynomial.hermite_e.hermegauss(101)


def _beta_parameters(mixture: Mixture) -> tuple[Floats, Floats]:
    mean, concentration = expit(np.asarray(mixture.locations)), np.asarray(mixture.spreads)
    return mean * concentration, (1 - mean) * concentration


def _beta_nodes(mixture: Mixture) -> tuple[Floats, Floats]:
    """Gauss-Jacobi nodes and weights, exact for polynomials of degree up to 127, both [K * 64]."""
    rules = [
        roots_sh_jacobi(64, a + b - 1, a) for a, b in zip(*_beta_parameters(mixture), strict=True)
    ]
    s = np.concatenate([nodes for nodes, _ in rules])
    weights = [w * q / q.sum() for w, (_, q) in zip(mixture.weights, rules, strict=True)]
    return s, np.concatenate(weights)


def _draw_beta(rng: np.random.Generator, mixture: Mixture, size: int) -> Floats:
    a, b = _beta_parameters(mixture)
    component = rng.choice(len(mixture.weights), size=size, p=mixture.weights)
    return rng.beta(a[component], b[component])


def _probit_curve(s: Floats, a: float | Floats, b: float) -> Floats:
    return ndtr(a + b * s)


def _wavy_curve(s: Floats, a: float | Floats, b: float) -> Floats:
    return ndtr(a + b * s + 0.4 * np.sin(5 * np.pi * s))


BERNSTEIN_DEGREE = 24


def _bernstein_curve(s: Floats, a: float | Floats, b: float) -> Floats:
    """Σ_j Φ(a + b j/d) Binomial(j; d, s) by de Casteljau's recursion, stable on [0, 1]."""
    order = np.arange(BERNSTEIN_DEGREE + 1)[:, None]
    values = np.broadcast_to(ndtr(a + b * order / BERNSTEIN_DEGREE), (len(order), len(s)))
    while len(values) > 1:
        values = values[:-1] + s * (values[1:] - values[:-1])
    return values[0]


_LOGIT_NORMAL = {
    "reference": Mixture((0.80, 0.20), (2.6, 0.8), (0.7, 1.2)),
    "replication": Mixture((0.65, 0.35), (2.2, 1.0), (0.6, 0.8)),
}

PROCESS_OF_NAME: Mapping[Process, _Process] = {
    "outside": _Process(_LOGIT_NORMAL, _logit_normal_nodes, draw_logit_normal, _probit_curve),
    "non-monotone": _Process(_LOGIT_NORMAL, _logit_normal_nodes, draw_logit_normal, _wavy_curve),
    "inside": _Process(
        mixtures={
            "reference": Mixture((0.12, 0.33, 0.55), (0.3, 1.6, 2.8), (4.0, 14.0, 40.0)),
            "replication": Mixture((0.14, 0.56, 0.30), (0.3, 1.6, 2.8), (4.0, 14.0, 40.0)),
        },
        nodes=_beta_nodes,
        draw=_draw_beta,
        curve=_bernstein_curve,
    ),
}


class Populations(NamedTuple):
    """Population of a study: beta mixtures of both data sets, and curves at some frequencies."""

    classifiers: tuple[str, ...]  # names
    # a, b, weights: parameters of the mixtures of selection frequencies: the reference's, then the
    # replication's
    a: Float[np.ndarray, "2 component"]
    b: Float[np.ndarray, "2 component"]
    weights: Float[np.ndarray, "2 component"]
    curves: Float[np.ndarray, "2 classifier frequency"]  # accuracies g_c(s) on both data sets
    # Loading of the difficulty that classifiers share, on the probit scale.
    shared_difficulty: float


def published_populations(
    classifiers: int, frequencies: Float[np.ndarray, "frequency"]
) -> Populations:
    """Build populations of the process "inside", which match ImageNet-v2's published values."""
    process = PROCESS_OF_NAME["inside"]
    world = make_world(process, find_scenario("plain"), classifiers, DEFAULT_ANNOTATORS)
    betas = [_beta_parameters(world.mixtures[role]) for role in REQUIRED_ROLES]
    curves = [
        [process.curve(frequencies, a, b) for a, b in world.curves[role]] for role in REQUIRED_ROLES
    ]
    return Populations(
        classifiers=choose_classifiers(classifiers)[0],
        a=np.stack([a for a, _ in betas]),
        b=np.stack([b for _, b in betas]),
        weights=np.array([world.mixtures[role].weights for role in REQUIRED_ROLES]),
        curves=np.array(curves),
        shared_difficulty=SHARED_DIFFICULTY,
    )


def published_accuracies() -> tuple[tuple[str, ...], Floats, Floats]:
    """Top-1 accuracies on ImageNet and ImageNet-v2 from Engstrom et al. (2020), table 2."""
    text = resources.files("bayesrep").joinpath("data/engstrom2020_table2.csv").read_text("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    accuracy = np.array([[row["imagenet_v1_top1"], row["imagenet_v2_top1"]] for row in rows], float)
    return tuple(row["classifier"] for row in rows), accuracy[:, 0] / 100, accuracy[:, 1] / 100


def choose_classifiers(count: int) -> tuple[tuple[str, ...], Floats, Floats]:
    """`count` rows spread evenly over the table; beyond 136 its rows repeat as name-2, name-3."""
    names, reference, replication = published_accuracies()
    if count <= len(names):
        rows = np.linspace(0, len(names) - 1, count).round().astype(int)
    else:
        rows = np.arange(count) % len(names)
    copies = np.arange(count) // len(names)
    chosen = (names[r] + (f"-{n + 1}" if n else "") for r, n in zip(rows, copies, strict=True))
    return tuple(chosen), reference[rows], replication[rows]


def _root(function: Callable[[float], float], tolerance: float) -> float:
    """The zero of an increasing function between -5 and 5."""
    crossing: Any = brentq(function, -5.0, 5.0, xtol=tolerance)
    return float(crossing)


def _set_mean(process: _Process, mixture: Mixture, mean: float) -> Mixture:
    """Shift all locations so that the mixture's mean selection frequency is `mean`."""

    def shift_mixture(shift: float) -> Mixture:
        return replace(mixture, locations=tuple(m + shift for m in mixture.locations))

    def excess(shift: float) -> float:
        s, weight = process.nodes(shift_mixture(shift))
        return float(s @ weight) - mean

    return shift_mixture(_root(excess, 1e-14))


def _calibrate_curves(
    process: _Process,
    mixtures: Mapping[Role, Mixture],
    reference: Floats,
    replication: Floats,
    adjusted: Floats,
) -> tuple[Floats, Floats]:
    """Solve for curve parameters [C, 2] of both data sets with the target population accuracies.

    ∫ g p_rep = replication, ∫ g p_ref = adjusted; as steep a curve has ∫ g p_ref = reference.
    """
    s1, w1 = process.nodes(mixtures["reference"])
    s2, w2 = process.nodes(mixtures["replication"])

    def replication_curve(accuracy: float, adjusted: float) -> Floats:
        def excess(ab: Floats) -> Floats:
            a, b = float(ab[0]), float(ab[1])
            got = [process.curve(s2, a, b) @ w2, process.curve(s1, a, b) @ w1]
            return np.array(got) - [accuracy, adjusted]

        solution = root(excess, np.array([-4.0, 5.6]), tol=1e-12)
        if max(abs(np.asarray(excess(solution.x)))) > 1e-9:  # constants are fixed
            raise RuntimeError(f"no curve gives the accuracies {accuracy:.3f} and {adjusted:.3f}")
        return solution.x

    def shift(curve: Floats, accuracy: float) -> float:
        def excess(by: float) -> float:
            return float(process.curve(s1, curve[0] + by, curve[1]) @ w1) - accuracy

        return _root(excess, 1e-13)

    targets = zip(replication, adjusted, strict=True)
    curves2 = np.array([replication_curve(*pair) for pair in targets])
    shifts = np.array([shift(*pair) for pair in zip(curves2, reference, strict=True)])
    return curves2 + np.outer(shifts, [1.0, 0.0]), curves2


@dataclass(frozen=True)
class SimulatedWorld:
    """The populations of a scenario, and their true values."""

    process: _Process
    scenario: Scenario
    mixtures: Mapping[Role, Mixture]
    frequencies: Mapping[Role, tuple[Floats, Floats]]  # nodes and weights of the densities
    curves: Mapping[Role, Floats]
    truth: Truth

    def draw(self, rng: np.random.Generator, role: Role, size: int, annotators: int) -> Floats:
        """Draw selection frequencies of a data set's images."""
        if role == "replication" and self.scenario.pool is not None:
            measured = rng.binomial(annotators, self.draw(rng, "reference", size, annotators))
            return draw_matched(rng, self.scenario.pool, measured, annotators)
        s = self.process.draw(rng, self.mixtures[role], size)
        if self.scenario.ones > 0:
            s[rng.random(size) < self.scenario.ones] = 1.0
        return s

    def shares(self, role: Role) -> Floats:
        """Names of the classes."""
        return class_shares(0.0 if role == "reference" else -self.scenario.class_shift)


def make_world(
    process: _Process, scenario: Scenario, classifiers: int, annotators: int
) -> SimulatedWorld:
    """Set the mixtures' means and the curves so that the truth is as published."""
    _, reference, replication = choose_classifiers(classifiers)
    adjusted = reference - REAL_SHARE_OF_GAP * (reference - replication)
    mixtures = {
        role: _set_mean(process, process.mixtures[role], MEAN_SELECTION_FREQUENCY[role])
        for role in REQUIRED_ROLES
    }
    # Curves are set so that the published mixtures give the published accuracies.
    both = _calibrate_curves(process, mixtures, reference, replication, adjusted)
    curves: dict[Role, Floats] = dict(zip(REQUIRED_ROLES, both, strict=True))
    mixtures = scenario.frequencies or mixtures
    if scenario.frequencies is not None:
        process = replace(process, nodes=_logit_normal_nodes, draw=draw_logit_normal)
    frequencies: dict[Role, tuple[Floats, Floats]] = {}
    for role in REQUIRED_ROLES:
        s, weight = process.nodes(mixtures[role])
        # A share of the images lies at 1.
        with_ones = np.append((1 - scenario.ones) * weight, scenario.ones)
        frequencies[role] = np.append(s, 1.0), with_ones
    # What noisy matching takes from a pool, and what a rule keeps, is harder than it looks.
    if scenario.pool is not None:
        s, weight = _logit_normal_nodes(scenario.pool)
        weight = matched_weights(s, weight, *frequencies["reference"], annotators)
        frequencies["replication"] = s, weight
    if scenario.selection is not None:
        for role, (s, weight) in frequencies.items():
            weight_kept = weight * chance_to_be_kept(scenario.selection, annotators, s)
            frequencies[role] = s, weight_kept / weight_kept.sum()
    means = {role: float(s @ weight) for role, (s, weight) in frequencies.items()}
    truth = Truth(
        adjusted_accuracy=adjusted,
        reference_accuracy=reference,
        replication_accuracy=replication,
        mean_selection_frequency=dict(MEAN_SELECTION_FREQUENCY),
    )
    world = SimulatedWorld(process, scenario, mixtures, frequencies, curves, truth)
    if scenario.keeps_populations:
        return world
    # Other populations give other accuracies: levels move until the truth is as published.
    targets = {"reference": reference, "replication": adjusted}
    curves = {
        role: np.array(
            [_shift_curve(world, curve, target) for curve, target in zip(*pair, strict=True)]
        )
        for role, pair in ((role, (curves[role], targets[role])) for role in REQUIRED_ROLES)
    }
    accuracies = np.array([_accuracy(world, "replication", a, b) for a, b in curves["replication"]])
    truth = replace(truth, replication_accuracy=accuracies, mean_selection_frequency=means)
    return replace(world, curves=curves, truth=truth)


def _accuracy(world: SimulatedWorld, role: Role, a: float, b: float) -> float:
    """Accuracy of a curve, averaged over the frequencies and classes of a data set."""
    s, weight = world.frequencies[role]
    if world.scenario.class_shift == 0:
        return float(world.process.curve(s, a, b) @ weight)
    by_class = [world.process.curve(s, a + ease, b) @ weight for ease in class_ease()]
    return float(np.array(by_class) @ world.shares(role))


def _shift_curve(world: SimulatedWorld, curve: Floats, accuracy: float) -> Floats:
    """The curve as steep as before whose accuracy on the reference's population is this."""
    a, b = float(curve[0]), float(curve[1])
    by = _root(lambda by: _accuracy(world, "reference", a + by, b) - accuracy, 1e-13)
    return np.array([a + by, b])


def draw_correct(
    seed: np.random.SeedSequence, world: SimulatedWorld, role: Role, s: Floats, ease: float | Floats
) -> Bools:
    """Correctness [N, C] of probability g_c(s_x), with `ease` [N] added to g's first parameter."""
    curves = world.curves[role]
    difficulty, noise = (np.random.default_rng(child) for child in seed.spawn(2))
    shared = SHARED_DIFFICULTY * difficulty.standard_normal(len(s))
    own = np.sqrt(1 - SHARED_DIFFICULTY**2)
    correct = np.empty((len(s), len(curves)), dtype=bool)
    for column, (a, b) in enumerate(curves):
        threshold = ndtri(np.clip(world.process.curve(s, a + ease, b), 1e-300, 1.0))
        correct[:, column] = threshold + shared + own * noise.standard_normal(len(s)) > 0
    return correct
