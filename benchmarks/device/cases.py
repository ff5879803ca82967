"""Cases: posteriors of simulated studies, ways to write their density, and places in them."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

from bayesrep.inference.density import Density, build_density
from bayesrep.inference.methods import build_target, sample_around_mode
from bayesrep.inference.nuts import Target, blank_target
from bayesrep.inference.problem import Problem, Programs, pose, programs
from bayesrep.inference.surrogate import surrogate_potential
from bayesrep.models.options import JointOptions
from bayesrep.numerics.settings import own_settings
from bayesrep.studies.simulate import simulate_study
from bayesrep.studies.statistics import Cells, SufficientStatistics
from bayesrep.studies.study import Study
from benchmarks import _textbook_models as models
from benchmarks.device.timing import Job, Key, Outcome, compile_together

START_SPREAD = 0.01
"""Standard deviation of positions around where climbs begin."""
OPTIONS = JointOptions()
OURS, GAMMALN, TEXTBOOK = "ours on cells", "cells with gammaln", "textbook on images"


@dataclass(frozen=True)
class Case:
    """One gradient of so many classifiers and chains, in 32 or 64 bits.

    Its form is "surrogate" or "full", as a fit has them, or one of those that know nothing of the
    images that classifiers share: ours, GAMMALN and TEXTBOOK.
    """

    form: str
    classifiers: int
    chains: int
    bits: int = 64
    annotators: int = 36

    def __str__(self) -> str:
        chains = "1 chain" if self.chains == 1 else f"{self.chains:,} chains"
        return f"{self.form} gradient, {self.classifiers:,} classifiers, {chains}"


@dataclass(frozen=True)
class Sizes:
    """Sizes of what is measured."""

    images: int  # of each data set of the study
    classifiers: int
    cpu: Sequence[Case]  # gradients timed on the CPU; `other` are those on any other device
    other: Sequence[Case]
    chains: Sequence[int]  # chains of a fit's draws on a device that takes them all as one batch
    alone: Sequence[Case]  # forms of one chain, which are timed without being compiled, too
    forms: Sequence[Case]
    large: int  # images of each data set of the large study
    limit_s: float  # of sampling by NumPyro


def _cases(form: str, classifiers: int, *chains: int, bits: int = 64) -> tuple[Case, ...]:
    return tuple(Case(form, classifiers, each, bits) for each in chains)


def _form_cases() -> tuple[Case, ...]:
    """Over classifiers, annotators and chains; the textbook of more does not finish."""
    both, all_forms = (OURS, GAMMALN), (OURS, GAMMALN, TEXTBOOK)
    return (
        *(Case(form, size, 1) for size in (1, 10, 100, 1_000) for form in all_forms),
        *(Case(form, 10_000, 1) for form in both),
        *(Case(form, 136, 1, 64, size) for size in (10, 100, 200) for form in all_forms),
        *(Case(form, 136, 4) for form in all_forms),
        *(Case(form, 136, chains) for chains in (16, 64, 256, 1_024) for form in both),
    )


FULL_SIZES = Sizes(
    images=10_000,
    classifiers=136,
    cpu=(
        *_cases("surrogate", 136, 1, 4, 64),
        *_cases("full", 136, 4, 64),
        *_cases("surrogate", 10_000, 4),
        *_cases("full", 10_000, 4),
        *_cases("surrogate", 136, 64, bits=32),
    ),
    other=(
        *_cases("surrogate", 136, 1, 4, 64, 256, 1_024),
        *_cases("full", 136, 4, 1_024),
        *_cases("surrogate", 1_000, 64),
        *_cases("surrogate", 10_000, 4, 64),
        *_cases("full", 10_000, 4),
        *_cases("surrogate", 136, 64, bits=32),
    ),
    chains=(4, 64, 256, 1_024),
    alone=tuple(
        Case(form, 136, 1, bits) for bits in (64, 32) for form in (OURS, GAMMALN, TEXTBOOK)
    ),
    forms=_form_cases(),
    large=1_000_000,
    limit_s=300.0,
)
QUICK_SIZES = Sizes(
    images=2_000,
    classifiers=136,
    cpu=(*_cases("surrogate", 136, 4), *_cases("full", 136, 4)),
    other=(*_cases("surrogate", 136, 4, 64, 1_024), *_cases("full", 136, 4)),
    chains=(4, 256),
    alone=(),  # what is not compiled takes a minute to be called first
    forms=tuple(Case(form, 5, 1) for form in (OURS, GAMMALN, TEXTBOOK)),
    large=20_000,
    limit_s=20.0,
)


@dataclass(frozen=True, eq=False)
class Place:
    """A density with its data and a position; all arrays are NumPy's, to go to any device."""

    density: Density
    data: Any
    start: Any
    constant: float = 0.0  # the log density less ours

    def positions(self, chains: int) -> Any:
        """Draw so many positions near the start."""
        random = np.random.default_rng(chains)
        return jax.tree.map(
            lambda x: x + START_SPREAD * random.standard_normal((chains, *x.shape)), self.start
        )

    def gradient(self, case: Case, device: Any) -> Job:
        """Value and gradient of every chain, on a device."""
        one = jax.vmap(jax.value_and_grad(self.density.potential), (0, None))
        return Job(one, lambda: (self.positions(case.chains), self.data), device, case.bits)


@dataclass(frozen=True, eq=False)
class Subject(Place):
    """A posterior as inference has it."""

    problem: Problem = field(kw_only=True)
    tools: Programs = field(kw_only=True)
    target: Target = field(kw_only=True)  # arrays that chains sample

    def standard(self, chains: int) -> Any:
        """Draw so many values of the surrogate's coordinates."""
        return np.random.default_rng(chains).standard_normal((chains, self.density.shared))

    def gradient(self, case: Case, device: Any) -> Job:
        """Value and gradient of every chain, of the density or its surrogate, on a device."""
        if case.form == "full":
            return super().gradient(case, device)
        surrogate = jax.value_and_grad(partial(surrogate_potential, self.density), argnums=1)

        def one(position: Any, target: Any) -> Any:
            return surrogate(target, position)

        arguments = self.standard(case.chains), self.target[1]
        return Job(jax.vmap(one, (0, None)), lambda: arguments, device, case.bits)


@dataclass(frozen=True, eq=False)
class Subjects:
    """Posteriors of one study's classifiers and programs, each made when it is first asked for."""

    sizes: Sizes
    study: Study
    _places: dict[Any, Any] = field(default_factory=dict[Any, Any])
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
        return self.place(case).gradient(case, device)

    def joint_subject(self) -> Subject:
        """The study's joint model, its surrogate as a fit has it."""
        return self._made("settled")

    def place(self, case: Case) -> Place:
        """The form of a case, with its number of classifiers, at a place.

        A surrogate of other classifiers than the study's has learnt nothing: it costs the same.
        """
        if case.form not in ("surrogate", "full"):
            return self._made((case.form, case.classifiers, case.annotators))
        return self._made(
            "settled" if case.classifiers == self.sizes.classifiers else case.classifiers
        )

    def _made(self, key: Any) -> Any:
        if key not in self._places:
            with own_settings(), jax.default_device(jax.devices("cpu")[0]):
                make = self._make_form if isinstance(key, tuple) else self._make
                self._places[key] = make(*key) if isinstance(key, tuple) else make(key)
        return self._places[key]

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
        data, start, target = jax.tree.map(np.asarray, (data, start, target))
        return Subject(tools.density, data, start, problem=problem, tools=tools, target=target)

    def _make_form(self, form: str, classifiers: int, annotators: int) -> Place:
        """One of the forms that know nothing of images that classifiers share."""
        study = self.study
        if annotators != Case.annotators:
            size = self.sizes.images
            study = simulate_study(
                images=size, classifiers=self.sizes.classifiers, annotators=annotators
            )
        statistics = repeat_classifiers(study, classifiers)
        problem = pose(statistics, model="joint", options={})
        sites = draw_sites(problem)
        constant = 0.0
        if form == OURS:
            data: Any = problem.data()
            density = programs(problem, data).density
        elif form == GAMMALN:
            data = models.on_cells(statistics)
            density = build_density(lambda d: models.cells_with_gammaln(d, OPTIONS), data)
        else:
            data = models.on_images(study)
            data = data._replace(correct=data.correct[:, repeated(study, classifiers)])
            density = build_density(lambda d: models.per_image(d, OPTIONS), data)
            constant = models.log_choices(data)
        data, start = jax.tree.map(np.asarray, (data, density.to_position(sites)))
        return Place(density, data, start, constant)


def draw_sites(problem: Problem) -> dict[str, Any]:
    """Values of all of the joint model's sites near where climbs begin."""
    random = np.random.default_rng(0)
    return {
        name: np.asarray(value) + 0.1 * random.standard_normal(np.shape(value))
        for name, value in problem.start(problem.data()).items()
    }


def repeated(study: Study, classifiers: int) -> Any:
    """Indices of a study's classifiers, repeated up to a number."""
    return np.arange(classifiers) % len(study.classifiers)


def repeat_classifiers(study: Study, classifiers: int) -> SufficientStatistics:
    """A study's statistics with its classifiers repeated up to a number: shapes decide costs.

    They do not know that classifiers share images.
    """
    whole, index = SufficientStatistics.from_study(study), repeated(study, classifiers)
    cells = {
        role: Cells(each.selected, each.shown, each.images, each.correct[:, index])
        for role, each in whole.cells.items()
    }
    return SufficientStatistics(tuple(f"c{i}" for i in range(classifiers)), cells)
