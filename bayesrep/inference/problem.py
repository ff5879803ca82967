"""The inference problem: a model with its options, the data, and the programs for their shapes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro import handlers

from bayesrep.errors import OptionError, StudyError, did_you_mean, listing, refuse_any
from bayesrep.inference.arrowhead import SecondOrder, second_order
from bayesrep.inference.density import Density, Position, build_density
from bayesrep.inference.device import default_platform
from bayesrep.inference.program import Program
from bayesrep.models import MODELS, Model
from bayesrep.models.model import TRACING_LOCK, Data, Form, Options
from bayesrep.studies.statistics import Cells, SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.studies.subset_statistics import statistics_by_group
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import no_type_check

FOREIGN_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("numchains", "nchains"), "chains"),
    **dict.fromkeys(("tune", "numwarmup", "nwarmup", "burnin", "nburn"), "warmup"),
    **dict.fromkeys(("numsamples", "nsamples", "samples", "numdraws", "ndraws"), "draws"),
    **dict.fromkeys(("targetacceptprob", "targetaccept", "adaptdelta"), "target_accept"),
    **dict.fromkeys(("maxtreedepth", "treedepth"), "max_tree_depth"),
    **dict.fromkeys(("randomseed", "rngkey", "prngkey"), "seed"),
    **dict.fromkeys(("progressbar", "verbose"), "progress"),
    **dict.fromkeys(("sampler", "nutssampler", "kernel"), "method"),
}
"""What NumPyro, PyMC and Stan call arguments of `fit`, without underscores, to ours."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, its options and the data."""

    name: str  # of the model
    model: Model
    options: Any
    statistics: SufficientStatistics  # counts of all images
    roles: tuple[str, ...]  # data sets in the model, the reference first, then the replication
    groups: tuple[str, ...]  # names of the groups of images; one empty name without groups
    grouping: str | None  # the study's column that divides the images into groups
    cells: Sequence[Mapping[str, Cells]]  # for every group its tables by role
    distinct: Mapping[str, Any]  # facts of single images for the model; empty if cells are enough
    study: Study | None = None  # if more than its statistics is known
    # Values of the mixtures' sites where the search for the mode starts, if not the prior means.
    mixtures: Mapping[str, ArrayLike] = field(default_factory=dict)

    def data(self) -> Data:
        """Build the arrays the model conditions on; call it with 64-bit floats enabled."""
        return self.model.data(self.cells, self.distinct, self.options)

    def start(self, data: Data) -> dict[str, ArrayLike]:
        """Choose the values of all sites where the search for the mode begins."""
        start = {**self.model.start(data, self.options), **self.mixtures}
        if self.mixtures and len(self.groups) > 1:
            weight = jnp.asarray(start["weight_logit"])[:, None, :]
            start["group_weight_logit"] = jnp.tile(weight, (1, len(self.groups), 1))
        return start


@no_type_check
def pose(
    study: Study | SufficientStatistics,
    *,
    model: str,
    options: Mapping[str, Any],
    groups: str | None = None,
    datasets: Sequence[str] = REQUIRED_ROLES,
) -> Problem:
    """Check the arguments and build the problem; see [bayesrep.fit][]."""
    # The model's arguments are checked first: they need no study.
    if ".py:" in model:
        model = MODELS.register_file(model)
    chosen = _find_model(model, options, groups)
    statistics = SufficientStatistics.of(study)
    roles = (*REQUIRED_ROLES, *(role for role in datasets if role not in REQUIRED_ROLES))
    if missing := [role for role in roles if role not in statistics.cells]:
        has = ", ".join(statistics.cells)
        raise StudyError(
            "study-lacks-data-sets", data_sets=listing(missing, "data set"), known_data_sets=has
        )
    selected = [role for role in roles if statistics.cells[role].selection is not None]
    if selected and not chosen.takes_selection:
        others = _name_models("takes_selection")
        raise OptionError(
            "model-ignores-selection", dataset=selected[0], model=model, other_models=others
        )
    if selected and groups is not None:
        raise OptionError("groups-with-selected-data-set", dataset=selected[0])
    full_study = study if isinstance(study, Study) else None
    # Without groups all images are one part, so that the code below needs no other case.
    parts = {"": statistics}
    if groups is not None:
        if full_study is None:
            raise OptionError("groups-need-study")
        parts = statistics_by_group(full_study, groups, roles)
    with refuse_any(lambda text: OptionError("model-options-refused", model=model, problem=text)):
        settings = chosen.options(**options)
    # Counts are enough for most models; others need facts of single images from the study.
    distinct: Mapping[str, Any] = {}
    if chosen.distinct is not None:
        if full_study is None:
            raise OptionError("model-needs-study", model=model)
        distinct = chosen.distinct(full_study, roles, settings)
    cells = [{role: part.cells[role] for role in roles} for part in parts.values()]
    facts = statistics, roles, tuple(parts), groups, cells, distinct, full_study
    return Problem(model, chosen, settings, *facts)


def _find_model(model: str, options: Mapping[str, Any], groups: str | None) -> Model:
    """Find the model of that name, and check that it takes these options and groups."""
    if model not in MODELS:
        raise OptionError("unknown-model", choices=", ".join(MODELS), model=model)
    chosen = MODELS[model]
    if groups is not None and not chosen.takes_groups:
        others = _name_models("takes_groups")
        raise OptionError("model-takes-no-groups", model=model, other_models=others)
    names = set(chosen.options.__dataclass_fields__)  # type: ignore[attr-defined]
    if unknown := sorted(set(options) - names):
        foreign = FOREIGN_NAMES.get(unknown[0].lower().replace("_", ""))
        close = did_you_mean(unknown[0], {*names, *FOREIGN_NAMES.values()})
        raise OptionError(
            "unknown-model-option",
            model=model,
            options=listing(unknown, "option"),
            hint=f"; did you mean {foreign!r}?" if foreign else close,
            choices=", ".join(sorted(names)),
        )
    return chosen


def _name_models(trait: str) -> str:
    """Name the models that have a trait, as arguments."""
    return " or ".join(f"model={name!r}" for name, model in MODELS.items() if getattr(model, trait))


class Programs(NamedTuple):
    """Compiled programs of a density."""

    density: Density
    start: Callable[[Mapping[str, ArrayLike]], Position]  # from the values of sites
    expand: Program  # (position, data) -> SecondOrder of the potential
    quantities: Program  # (positions [draw, ...], data) -> all sites and deterministic quantities


def programs(problem: Problem, data: Data) -> Programs:
    """Compile the programs of a problem, or share those of earlier problems of the same shape."""
    leaves, structure = jax.tree.flatten(data)
    shapes = tuple(jnp.shape(leaf) for leaf in leaves)
    form = Form(len(problem.statistics.classifiers), problem.roles, len(problem.groups))
    return _programs(problem.model, problem.options, form, structure, shapes, default_platform())


@lru_cache(maxsize=16)
def _programs(
    model: Model, options: Options, form: Form, structure: Any, shapes: Any, platform: str
) -> Programs:
    del platform  # part of the cache's key: so are the compiler's options
    example = jax.tree.unflatten(structure, [np.zeros(shape) for shape in shapes])
    identity = ""
    if any(model is own for own in MODELS.list_own()):  # other code has no identity
        identity = f"{model.function.__qualname__} {options!r} {form!r} {structure} {shapes}"
    density = build_density(
        lambda data: model.function(data, options),
        example,
        offsets=lambda values: model.offsets(values, options),
        select=model.select,
        weight=model.weight,
        identity=identity,
    )

    def log_prior(latent: Mapping[str, Array]) -> dict[str, Array]:
        prior = model.log_prior(latent, options, form)
        return {f"log_prior_{name}": value for name, value in prior._asdict().items()}

    return compile_programs(density, log_prior)


def compile_programs(
    density: Density,
    more: Callable[[Mapping[str, Array]], Mapping[str, Array]] = lambda latent: {},
) -> Programs:
    """Compile a density's programs; `more` computes further quantities from the latent sites."""

    def expand(position: Position, data: Data) -> SecondOrder:
        weight = density.weight(data)
        return second_order(lambda point: density.potential(point, data), position, weight)

    def quantities(draws: Position, data: Data) -> dict[str, Array]:
        def one(position: Position) -> dict[str, Array]:
            values = density.quantities(position, data)
            values |= more({name: values[name] for name in density.sites})
            parts = density.potentials(position, data)
            values["lp"] = -(parts.shared + parts.units.sum())
            # Sites of size 0, such as the steps of a single component, are not reported.
            return {name: value for name, value in values.items() if jnp.size(value)}

        return jax.vmap(one)(draws)

    return Programs(
        density,
        Program(density.to_position, "start", density.identity),
        Program(expand, "expand", density.identity, quick=True),
        Program(quantities, "quantities", density.identity),
    )


def prior_positions(
    problem: Problem, tools: Programs, data: Data, key: Array, draws: int
) -> Position:
    """Draw positions [1, draws, ...] from the prior."""

    def one(key: Array) -> Position:
        with TRACING_LOCK, handlers.seed(rng_seed=key), handlers.trace() as trace:
            problem.model.function(data, problem.options)
        values = {name: trace[name]["value"] for name in tools.density.sites}
        return tools.density.to_position(values)

    positions = jax.jit(jax.vmap(one))(jax.random.split(key, draws))
    return jax.tree.map(lambda leaf: leaf[None], positions)
