"""Cases of the benchmark: posteriors of simulated studies, and positions in them."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

from bayesrep.bench.timing import Job, Key, Outcome, compile_together
from bayesrep.inference.methods import build_target, sample_around_mode
from bayesrep.inference.nuts import Target, blank_target
from bayesrep.inference.problem import Problem, Programs, pose, programs
from bayesrep.inference.surrogate import surrogate_potential
from bayesrep.numerics.settings import own_settings
from bayesrep.studies.simulate import simulate_study
from bayesrep.studies.statistics import Cells, SufficientStatistics
from bayesrep.studies.study import Study

START_SPREAD = 0.01
"""Standard deviation of positions around where climbs begin."""


@dataclass(frozen=True)
class Case:
    """One gradient of so many classifiers and chains, in 32 or 64 bits.

    Its kind is "full" or "surrogate".
    """

    kind: str
    classifiers: int
    chains: int
    bits: int = 64

    def __str__(self) -> str:
        chains = "1 chain" if self.chains == 1 else f"{self.chains:,} chains"
        return f"{self.kind} gradient, {self.classifiers:,} classifiers, {chains}"


@dataclass(frozen=True)
class Sizes:
    """Sizes of the benchmark."""

    images: int  # of each data set of the study
    classifiers: int
    cpu: Sequence[Case]  # gradients timed on the CPU; `other` are those on any other device
    other: Sequence[Case]
    single: Sequence[Case]  # gradients in 32 bits, on every device
    chains: Sequence[int]  # chains of a fit's draws on a device that takes them all as one batch


def _cases(kind: str, classifiers: int, *chains: int, bits: int = 64) -> tuple[Case, ...]:
    return tuple(Case(kind, classifiers, each, bits) for each in chains)


FULL_SIZES = Sizes(
    images=10_000,
    classifiers=136,
    cpu=(
        *_cases("surrogate", 136, 1, 4, 64),
        *_cases("full", 136, 4, 64),
        *_cases("surrogate", 10_000, 4),
        *_cases("full", 10_000, 4),
    ),
    other=(
        *_cases("surrogate", 136, 1, 4, 64, 256, 1_024),
        *_cases("full", 136, 4, 1_024),
        *_cases("surrogate", 1_000, 64),
        *_cases("surrogate", 10_000, 4, 64),
        *_cases("full", 10_000, 4),
    ),
    single=_cases("surrogate", 136, 64, bits=32),
    chains=(4, 64, 256, 1_024),
)
QUICK_SIZES = Sizes(
    images=2_000,
    classifiers=136,
    cpu=(*_cases("surrogate", 136, 4), *_cases("full", 136, 4)),
    other=(*_cases("surrogate", 136, 4, 64, 1_024), *_cases("full", 136, 4)),
    single=(),
    chains=(4, 256),
)


@dataclass(frozen=True, eq=False)
class Subject:
    """A posterior and a place in it; all arrays are NumPy's, to go to any device."""

    problem: Problem  # as inference has it, with tools and data
    tools: Programs
    data: Any
    start: Any  # a position where climbs begin
    target: Target  # arrays that chains sample

    def positions(self, chains: int) -> Any:
        """Draw so many positions near the start."""
        random = np.random.default_rng(chains)
        return jax.tree.map(
            lambda x: x + START_SPREAD * random.standard_normal((chains, *x.shape)), self.start
        )

    def standard(self, chains: int) -> Any:
        """Draw so many values of the surrogate's coordinates."""
        return np.random.default_rng(chains).standard_normal((chains, self.tools.density.shared))

    def gradient(self, case: Case, device: Any) -> Job:
        """Value and gradient of every chain, on a device."""
        density, chains = self.tools.density, case.chains
        if case.kind == "surrogate":
            one: Any = jax.value_and_grad(partial(surrogate_potential, density), argnums=1)
            return Job(
                jax.vmap(one, (None, 0)),
                lambda: (self.target[1], self.standard(chains)),
                device,
                case.bits,
            )
        one = jax.value_and_grad(density.potential)
        return Job(
            jax.vmap(one, (0, None)), lambda: (self.positions(chains), self.data), device, case.bits
        )


@dataclass(frozen=True, eq=False)
class Subjects:
    """Posteriors of one study's classifiers and programs, each made when it is first asked for."""

    sizes: Sizes
    study: Study
    _subjects: dict[Any, Subject] = field(default_factory=dict[Any, Subject])
    _programs: dict[Hashable, Outcome] = field(default_factory=dict[Hashable, Outcome])

    @classmethod
    def of_size(cls, sizes: Sizes) -> "Subjects":
        """The subjects of a simulated study."""
        return cls(sizes, simulate_study(images=sizes.images, classifiers=sizes.classifiers))

    def compile_jobs(self, jobs: Mapping[Key, Job]) -> dict[Key, Outcome]:
        """Programs by name, compiled side by side unless they are at hand."""
        new = {key: job for key, job in jobs.items() if key not in self._programs}
        for key, outcome in compile_together(new).items():
            self._programs[key] = outcome
        return {key: self._programs[key] for key in jobs}

    def release(self, key: Hashable) -> None:
        """Forget a program and its arguments, which fill a device."""
        self._programs.pop(key, None)

    def job(self, case: Case, device: Any) -> Job:
        """A gradient on a device."""
        return self.subject_of_size(case.classifiers).gradient(case, device)

    def joint_subject(self) -> Subject:
        """The study's joint model, its surrogate as a fit has it."""
        return self._made_subject("settled")

    def subject_of_size(self, classifiers: int) -> Subject:
        """The joint model of any number of classifiers; its surrogate has learnt nothing.

        A surrogate costs the same whatever it has learnt.
        """
        return (
            self.joint_subject()
            if classifiers == self.sizes.classifiers
            else self._made_subject(classifiers)
        )

    def _made_subject(self, key: Any) -> Subject:
        if key not in self._subjects:
            with own_settings(), jax.default_device(jax.devices("cpu")[0]):
                self._subjects[key] = self._make(key)
        return self._subjects[key]

    def _make(self, key: Any) -> Subject:
        data_source = repeat_classifiers(self.study, key) if isinstance(key, int) else self.study
        problem = pose(data_source, model="joint", options={})
        data = problem.data()
        tools = programs(problem, data)
        start = tools.start(problem.start(data))
        if key == "settled":
            sample = sample_around_mode(problem, tools, data, [0, 4])
            target = build_target(tools.density, sample)
        else:
            target = blank_target(tools.density, data, start)
        numbers = jax.tree.map(np.asarray, (data, start, target))
        return Subject(problem, tools, *numbers)


def repeat_classifiers(study: Study, classifiers: int) -> SufficientStatistics:
    """A study's statistics with its classifiers repeated up to a number: shapes decide costs."""
    whole = SufficientStatistics.from_study(study)
    index = np.arange(classifiers) % len(whole.classifiers)
    cells = {
        role: Cells(each.selected, each.shown, each.images, each.correct[:, index])
        for role, each in whole.cells.items()
    }
    return SufficientStatistics(tuple(f"c{i}" for i in range(classifiers)), cells)
