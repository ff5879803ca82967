"""Simulated studies whose true adjusted accuracies are known.

All generating processes imitate the study of Engstrom et al. (2020): mean selection frequencies
0.852 and 0.807 (their section 3), the 136 classifiers of their table 2, and a third of every
classifier's accuracy drop real. Their curves are

    outside         g_c(s) = Φ(a_c + b_c s), s a mixture of logit-normals
    non-monotone    g_c(s) = Φ(a_c + b_c s + 0.4 sin 5πs), which falls between 0.5 and 0.7
    inside          g_c(s) = Σ_j Φ(a_c + b_c j/d) Binomial(j; d, s), s a mixture of three betas

The table's numbers are those printed: a mean gap of 12.7 points, where the paper's text says 11.7,
as timm's published results say for the 135 of the classifiers that they have.

A difficulty u_x ~ N(0, 1) of image x, the same for all classifiers, enters each latent score with
weight `populations.SHARED_DIFFICULTY`; g_c remains the exact marginal curve.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bayesrep.bounds import refuse_above
from bayesrep.choices import Process
from bayesrep.errors import OptionError
from bayesrep.studies.populations import (
    DEFAULT_ANNOTATORS,
    PROCESS_OF_NAME,
    Role,
    SimulatedWorld,
    choose_classifiers,
    draw_correct,
    make_world,
)
from bayesrep.studies.scenarios import (
    SIMULATED_CLASSES,
    Scenario,
    class_ease,
    draw_counts,
    draw_crowds,
    find_scenario,
)
from bayesrep.studies.selection import Selection
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Floats, Ints

MAX_CLASSIFIERS = 100_000
MAX_SIMULATED_ANSWERS = 2**31  # images times classifiers of a data set, a byte each
MAX_SIMULATED_ANNOTATORS = 100_000

PROCESS_LABELS: Mapping[Process, str] = {
    "outside": "outside the fitted family",
    "non-monotone": "non-monotone curves, outside the fitted family",
    "inside": "inside the fitted family",
}


def _draw_kept(
    rng: np.random.Generator, world: SimulatedWorld, role: Role, size: int, annotators: int
) -> tuple[Floats, Ints, Ints]:
    """Draw frequencies and counts of images until the rule has kept enough of them."""
    rule = Selection.parse(world.scenario.selection)
    batches: list[tuple[Floats, Ints, Ints]] = []
    while sum(len(s) for s, _, _ in batches) < size:
        s = world.draw(rng, role, size, annotators)
        selected, annotated, _ = draw_counts(rng, world.scenario, s, annotators, annotators)
        is_kept = rng.random(size) < rule.probability(selected, annotated)
        batches.append((s[is_kept], selected[is_kept], annotated[is_kept]))
    s, selected, annotated = (np.concatenate(parts)[:size] for parts in zip(*batches, strict=True))
    return s, selected, annotated


def simulate_study(
    *,
    seed: int = 0,
    images: int = 10_000,
    annotators: int | tuple[int, int] | None = None,
    classifiers: int = 136,
    process: Process = "outside",
    scenario: str = "plain",
    dependence: float | None = None,
) -> Study:
    """Simulate a dataset replication whose true adjusted accuracies are known.

    Parameters
    ----------
    seed
        Seed of all random numbers; the same arguments give the same study, and the annotations are
        the same whatever the classifiers.
    images
        Number of images in each of the two data sets.
    annotators
        Annotators per image, n; a pair (low, high) gives every image its own n, uniform on
        low..high. 36, or what the scenario says.
    classifiers
        Number of classifiers, spread evenly over the 136 of the published table; more than 136
        repeat its rows under new names.
    process
        `"outside"`: logit-normal mixtures and probit curves, which the fitted model can only
        approximate. `"non-monotone"`: the same with curves that rise, fall and rise.
        `"inside"`: beta mixtures and Bernstein curves, a special case of it.
    scenario
        How the world departs from the plain one: a name of `bayesrep.studies.scenarios.SCENARIOS`,
        such as "pool", "crowded-grid" or "label-shift".
    dependence
        Intraclass correlation of the answers about one image, in place of the scenario's.

    Returns
    -------
    Study
        `study.truth` holds the population values: adjusted, reference and replication accuracy
        of every classifier and the mean selection frequency of both data sets.

    Raises
    ------
    OptionError
        If an argument is out of range, or two of them contradict each other.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> study.classifiers
    ('tf_mobilenetv3_small_minimal_100', 'res2net50_14w_8s', 'tf_efficientnet_b7_ap')
    """
    process, world = _choose_world(process, scenario, dependence)
    low, high = _annotator_range(world, annotators, images, classifiers)
    if world.selection is not None and low < high:
        raise OptionError("scenario-takes-one-annotator-number", scenario=scenario)
    drawn_from = make_world(PROCESS_OF_NAME[process], world, classifiers, high)

    def dataset(role: Role, seed: np.random.SeedSequence) -> dict[str, Any]:
        # Two streams: the same images whatever the number of classifiers.
        annotation, correctness = seed.spawn(2)
        rng = np.random.default_rng(annotation)
        if world.selection is not None:
            s, selected, total = _draw_kept(rng, drawn_from, role, images, high)
            answers = None
        else:
            s = drawn_from.draw(rng, role, images, high)
            crowd = crowds[REQUIRED_ROLES.index(role)] if crowds else None
            selected, total, answers = draw_counts(rng, world, s, low, high, crowd)
        ease, groups = 0.0, {}
        if world.class_shift:
            kind = rng.choice(SIMULATED_CLASSES, size=images, p=drawn_from.shares(role))
            ease = class_ease()[kind]
            groups = {"superclass": np.char.add("class-", kind.astype(str))}
        correct = draw_correct(correctness, drawn_from, role, s, ease)
        arrays = {"selected": selected, "shown": total, "correct": correct, "groups": groups}
        return {**arrays, "answers": answers, "selection": world.selection}

    *seeds, of_crowds = np.random.SeedSequence(seed).spawn(3)
    crowds = draw_crowds(np.random.default_rng(of_crowds), world, high)
    options = {
        "seed": seed,
        "images": images,
        "annotators": [low, high],
        "classifiers": classifiers,
        "process": process,
        "scenario": scenario,
        "dependence": world.dependence,
    }
    return Study.from_arrays(
        reference=dataset("reference", seeds[0]),
        replication=dataset("replication", seeds[1]),
        classifiers=choose_classifiers(classifiers)[0],
        name=f"simulated ({PROCESS_LABELS[process]})",
        people=world.people(high),
        provenance={"simulated": options},
        truth=drawn_from.truth,
    )


def _choose_world(
    process: Process, scenario: str, dependence: float | None
) -> tuple[Process, Scenario]:
    """The process and scenario that arguments ask for, which must not contradict each other."""
    if process not in PROCESS_OF_NAME:
        raise OptionError("unknown-process", choices=", ".join(PROCESS_OF_NAME), process=process)
    world = find_scenario(scenario)
    if world.process is not None:
        if process not in ("outside", world.process):
            facts = {"scenario": scenario, "process": world.process}
            raise OptionError("scenario-of-another-process", **facts)
        process = world.process
    if world.frequencies is not None and process != "outside":
        raise OptionError("scenario-fixes-frequencies", scenario=scenario)
    if dependence is None:
        return process, world
    if not 0 <= dependence < 1:
        raise OptionError("dependence-out-of-range", dependence=dependence)
    if dependence > 0 and (world.crowd or world.adaptive):
        raise OptionError("scenario-without-dependence", scenario=scenario)
    return process, replace(world, dependence=dependence)


def _annotator_range(
    world: Scenario, annotators: int | tuple[int, int] | None, images: int, classifiers: int
) -> tuple[int, int]:
    """The fewest and the most annotators of an image, once all sizes are within their bounds."""
    if annotators is None:
        annotators = DEFAULT_ANNOTATORS if world.annotators is None else world.annotators
    low, high = (annotators, annotators) if isinstance(annotators, int) else annotators
    if min(images, low, classifiers) < 1 or high < low:
        sizes = {"images": images, "annotators": annotators, "classifiers": classifiers}
        raise OptionError("simulated-sizes-out-of-range", **sizes)
    refuse_above("classifiers", classifiers, MAX_CLASSIFIERS)
    refuse_above("images", images, MAX_SIMULATED_ANSWERS // classifiers)
    refuse_above("annotators", high, MAX_SIMULATED_ANNOTATORS)
    return low, high
