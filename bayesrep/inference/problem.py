"""What is to be inferred: a model with its options, the data, and the programs for their shapes.

Every way to the posterior starts from a `Problem`. Data are arguments of the
compiled programs, so problems of the same shape share them.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bayesrep.errors import OptionError, StudyError, did_you_mean, listing
from bayesrep.inference.arrowhead import SecondOrder, Whitening, second_order, whitening
from bayesrep.inference.density import Density, Position, build_density
from bayesrep.inference.device import default_platform
from bayesrep.inference.mode import Climb, climb
from bayesrep.inference.program import Program
from bayesrep.models import MODELS, Model
from bayesrep.models.model import Data, Form, Options
from bayesrep.posterior.fitted import Fitted
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.selection import Selection
from bayesrep.studies.statistics import Cells, SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.studies.subset_statistics import statistics_by_group
from bayesrep.types import no_type_check

PRIOR = "log_prior_"
"""What the names of prior densities among the quantities begin with."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, its options and the data.

    Attributes
    ----------
    name, model, options
        The model by name, itself, and its options.
    statistics
        Counts of all images.
    roles
        Data sets in the model, the reference first, then the replication.
    groups
        Names of the groups of images; one empty name without groups.
    grouping
        The study's column that divides the images into groups, or None.
    cells
        For every group its tables by role.
    distinct
        What the model needs to know of single images; empty where cells are enough.
    fingerprint
        Fingerprint of the study; empty where only its statistics are known.
    study
        The study, where more than its statistics is known.
    mixtures
        Values of the mixtures' sites where climbs begin; empty: at the prior means.
    """

    name: str
    model: Model
    options: Any
    statistics: SufficientStatistics
    roles: tuple[str, ...]
    groups: tuple[str, ...]
    grouping: str | None
    cells: Sequence[Mapping[str, Cells]]
    distinct: Mapping[str, Any]
    fingerprint: str
    study: Study | None = None
    mixtures: Mapping[str, ArrayLike] = field(default_factory=dict)

    @property
    def selections(self) -> dict[str, Selection]:
        """The rules by which the counts at hand selected images, by role."""
        cells = {role: self.statistics.cells[role] for role in self.roles}
        return {role: c.selection for role, c in cells.items() if c.selection is not None}

    def data(self) -> Data:
        """The arrays the model conditions on; call it with 64-bit floats enabled."""
        return self.model.data(self.cells, self.distinct, self.options)

    def start(self, data: Data) -> dict[str, ArrayLike]:
        """Values of all sites where the search for the mode begins."""
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
    """Check what is asked and gather the data for it; see [bayesrep.fit][].

    Raises
    ------
    OptionError
        For an unknown model or option, or an option out of range.
    StudyError
        Where the study lacks a data set or the column of groups.
    """
    # What is asked of the model comes first: it is known without the study.
    chosen = _find_model(model, options, groups)
    statistics = SufficientStatistics.of(study)
    roles = _order_roles(statistics, datasets)
    _refuse_selections(statistics, roles, model, groups)
    # Without groups all images are one part, so that nothing below asks whether there are any.
    parts = {"": statistics}
    if groups is not None:
        if not isinstance(study, Study):
            raise OptionError("groups-need-study")
        parts = statistics_by_group(study, groups, roles)
    cells = [{role: part.cells[role] for role in roles} for part in parts.values()]
    settings = chosen.options(**options)
    # Counts are enough for most models; some need what tells images apart, which a study has.
    distinct: Mapping[str, Any] = {}
    if chosen.distinct is not None:
        if not isinstance(study, Study):
            raise OptionError("model-needs-study", model=model)
        distinct = chosen.distinct(study, roles, settings)
    return Problem(
        model,
        chosen,
        settings,
        statistics,
        roles,
        tuple(parts),
        groups,
        cells,
        distinct,
        study.fingerprint() if isinstance(study, Study) else "",
        study if isinstance(study, Study) else None,
    )


def _find_model(model: str, options: Mapping[str, Any], groups: str | None) -> Model:
    """The model of that name; refused where it does not take what is asked of it."""
    if model not in MODELS:
        raise OptionError("unknown-model", choices=", ".join(MODELS), model=model)
    chosen = MODELS[model]
    if groups is not None and not chosen.takes_groups:
        others = " or ".join(f"model={name!r}" for name, m in MODELS.items() if m.takes_groups)
        raise OptionError("model-takes-no-groups", model=model, other_models=others)
    known = set(chosen.options.__dataclass_fields__)  # type: ignore[attr-defined]
    if unknown := sorted(set(options) - known):
        raise OptionError(
            "unknown-model-option",
            model=model,
            options=listing(unknown, "option"),
            hint=did_you_mean(unknown[0], known),
            choices=", ".join(sorted(known)),
        )
    return chosen


def _order_roles(statistics: SufficientStatistics, datasets: Sequence[str]) -> tuple[str, ...]:
    """The roles of the data sets, in the order in which arrays are stacked."""
    roles = (*REQUIRED_ROLES, *(role for role in datasets if role not in REQUIRED_ROLES))
    if missing := [role for role in roles if role not in statistics.cells]:
        has = ", ".join(statistics.cells)
        raise StudyError(
            "study-lacks-data-sets", data_sets=listing(missing, "data set"), known_data_sets=has
        )
    return roles


def _refuse_selections(
    statistics: SufficientStatistics, roles: Sequence[str], model: str, groups: str | None
) -> None:
    """Refuse counts that chose their images where the model would take them for all images."""
    selected = [role for role in roles if statistics.cells[role].selection is not None]
    if selected and not MODELS[model].takes_selection:
        others = " or ".join(f"model={name!r}" for name, m in MODELS.items() if m.takes_selection)
        raise OptionError(
            "model-ignores-selection", dataset=selected[0], model=model, other_models=others
        )
    if selected and groups is not None:
        raise OptionError("groups-with-selected-data-set", dataset=selected[0])


def pose_again(fitted: Fitted) -> Problem:
    """The problem whose posterior this is.

    Raises
    ------
    PosteriorError
        If the posterior was written by another version.
    """
    made = fitted.record
    return pose(
        fitted.study,
        model=made.name,
        options=dataclasses.asdict(made.options),
        groups=made.grouping,
        datasets=made.roles,
    )


class Programs(NamedTuple):
    """What is compiled for a model, its options and the shapes of the data.

    Attributes
    ----------
    density
        Density of the model.
    start
        `start(values)`: the position of sites' values.
    expand
        `expand(position, data)`: value, gradient and arrowhead Hessian of the potential.
    quantities
        `quantities(draws, data)`: all sites and deterministic quantities of draws [S, ...] of
        positions.
    """

    density: Density
    start: Callable[[Mapping[str, ArrayLike]], Position]
    expand: Program
    quantities: Program


def programs(problem: Problem, data: Data) -> Programs:
    """The programs for a problem, shared with earlier problems of the same shape.

    Compiled for the kind of device that is the default here.
    """
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
    made_from = ""
    if any(model is own for own in MODELS.list_own()):  # of other code no name tells
        made_from = f"{model.function.__qualname__} {options!r} {form!r} {structure} {shapes}"
    density = build_density(
        lambda data: model.function(data, options),
        example,
        offsets=lambda values: model.offsets(values, options),
        select=model.select,
        weight=model.weight,
        identity=made_from,
    )

    def keep(name: str, function: Callable[..., Any], *, quick: bool = False) -> Program:
        return Program(function, name, made_from, quick=quick)

    def expand(position: Position, data: Data) -> SecondOrder:
        weight = density.weight(data)
        return second_order(lambda at: density.potential(at, data), position, weight)

    def quantities(draws: Position, data: Data) -> dict[str, Array]:
        def one(position: Position) -> dict[str, Array]:
            values = density.quantities(position, data)
            latent = {name: values[name] for name in density.sites}
            prior = model.log_prior(latent, options, form)
            values |= {PRIOR + name: value for name, value in prior._asdict().items()}
            return {name: value for name, value in values.items() if jnp.size(value)}

        return jax.vmap(one)(draws)

    return Programs(
        density,
        keep("start", density.to_position),
        keep("expand", expand, quick=True),
        keep("quantities", quantities),
    )


def climb_from_annotations(
    problem: Problem, compiled: Programs, start: Position, data: Data
) -> Climb:
    """Climb from a position on the annotations alone, then on everything, by two ways.

    Of a hundred classifiers the product of likelihoods can have two modes, so far apart in height
    that one has all the mass. One way leads through the curves given the annotators' mixtures; the
    other lets curves that are still far from the answers drive the mixtures, now and then to where
    there is no way back: components so near 1 that their betas are not numbers. The better end
    counts.
    """
    mixtures = climb(compiled.expand, start, problem.model.annotations(data))
    held = mixture_size(compiled.density, problem.model)
    curves = climb(compiled.expand, mixtures.position, data, held=held)
    ends = [climb(compiled.expand, begin.position, data) for begin in (curves, mixtures)]
    return min(ends, key=lambda end: np.nan_to_num(float(end.there.value), nan=np.inf))


def mixture_size(density: Density, model: Model) -> int:
    """How many of the shared parameters are the mixtures', which come first."""
    return sum(site.size for name, site in density.sites.items() if name in model.mixture_sites)


def around_mode(problem: Problem, compiled: Programs, data: Data) -> Whitening:
    """Coordinates in which the normal at the mode above the prior means is standard."""
    start = compiled.start(problem.start(data))
    mode = climb_from_annotations(problem, compiled, start, data)
    return whitening(mode.there.hessian, mode.position)
