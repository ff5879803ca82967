"""Runs of a grid: a study, a method and its settings, with the key that names the result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

from bayesrep.choices import CHAIN_ARGUMENTS, STRATEGIES, find_strategy
from bayesrep.files.digests import digest_value

Value: TypeAlias = str | int | float | bool | tuple[float, float] | None
Settings: TypeAlias = tuple[tuple[str, Value], ...]  # values by name, in the order of the names

FIT_METHODS = ("auto", *STRATEGIES)  # "cut" is `bayesrep.fit` by nuts with the feedback cut
OF_FITS = ("model", *CHAIN_ARGUMENTS, "draws", "device")
"""Axes of fits; a sampler has its own of those of chains."""
MAX_RUNS = 10_000  # runs that a grid may state
NO_SEED = ("raw", "naive", "jackknife")  # nothing random, unless they are bootstrapped


@dataclass(frozen=True)
class StudySpec:
    """Specification of a study: simulated, in a folder, or from a source."""

    kind: str  # "simulate", "folder" or "source"
    name: str  # what tables call it
    settings: Settings = ()  # settings of `bayesrep.simulate_study`, or of the source's reader
    files: tuple[str, ...] = ()  # the folder, or what the reader is given
    source: str = ""  # the reader's name
    contents: str = ""  # a digest of what was read; of a simulated study its settings say all

    def identity(self) -> dict[str, Any]:
        """Return the settings that determine the study's contents, whatever its name."""
        if self.kind == "simulate":
            return {"simulate": dict(self.settings)}
        return {"contents": self.contents}


@dataclass(frozen=True)
class SweepRun:
    """One run."""

    study: StudySpec  # where its study comes from
    method: str  # an estimator with its options, or one of `FIT_METHODS`
    annotators: int | None = None  # answers that are kept of every image; None: all
    seed: int | None = None  # seed of the method; None where nothing is random
    settings: Settings = ()  # arguments of the method that were asked for
    options: Settings = ()  # fields of the model's options that were asked for
    keeps_posterior: bool = False  # whether its draws are written, too; it is the same run

    @property
    def fits(self) -> bool:
        """Return whether the run fits a model."""
        return self.method in FIT_METHODS

    @property
    def key(self) -> str:
        """A name for what it is, the same in whatever order a grid lists it."""
        what = {
            "study": self.study.identity(),
            "method": self.method,
            "annotators": self.annotators,
            "seed": self.seed,
            "settings": dict(self.settings),
            "options": dict(self.options),
        }
        return digest_value(what)[:16]

    def axes(self) -> dict[str, Any]:
        """Place of the run in the grid, as columns of a table."""
        of_study = {f"study_{name}": value for name, value in self.study.settings}
        return {
            "study": self.study.name,
            **of_study,
            "annotators": self.annotators,
            "method": self.method,
            **dict(self.settings),
            **dict(self.options),
            "seed": self.seed,
        }


def expand(
    studies: Sequence[StudySpec],
    axes: Mapping[str, tuple[Value, ...]],
    options: Mapping[str, tuple[Value, ...]],
    options_by_model: Mapping[str, frozenset[str]],
) -> Iterator[SweepRun]:
    """Yield the runs of a grid, study by study, each as often as the grid states it."""
    yield from (
        SweepRun(study, method, annotators, seed, settings, chosen, keeps)  # type: ignore[arg-type]
        for study, annotators, method in product(
            studies, axes["annotators"], map(str, axes["method"])
        )
        for keeps in ["keep" in axes and method in FIT_METHODS]
        for settings, chosen in _settings(method, axes, options, options_by_model)
        for is_random in [
            method.partition("(")[0] not in NO_SEED or dict(settings).get("bootstrap")
        ]
        for seed in (axes["seed"] if is_random else (None,))
    )


def _settings(
    method: str,
    axes: Mapping[str, tuple[Value, ...]],
    options: Mapping[str, tuple[Value, ...]],
    options_by_model: Mapping[str, frozenset[str]],
) -> Iterator[tuple[Settings, Settings]]:
    """Settings and options of a method: every combination of those for which it has a use."""
    if method not in FIT_METHODS:
        used = {name: axes[name] for name in ("bootstrap",) if name in axes}
        yield from ((settings, ()) for settings in combinations(used))
        return
    unused = set(CHAIN_ARGUMENTS) - set(find_strategy(method).arguments)
    used = {name: axes[name] for name in OF_FITS if name in axes and name not in unused}
    for settings in combinations(used):
        fields = options_by_model[str(dict(settings).get("model") or "joint")]
        of_model = {name: values for name, values in options.items() if name in fields}
        yield from ((settings, chosen) for chosen in combinations(of_model))


def combinations(values: Mapping[str, tuple[Value, ...]]) -> Iterator[Settings]:
    """Yield every combination, the last name varying fastest; None is left out."""
    if not values:
        yield ()
        return
    (name, first), *others = values.items()
    for value in first:
        for rest in combinations(dict(others)):
            yield rest if value is None else tuple(sorted(((name, value), *rest)))
