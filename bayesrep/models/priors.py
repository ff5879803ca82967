"""Priors by name: (mean, sd), an sd around zero, or any distribution of NumPyro over real numbers.

Options hold a distribution as text, such as "StudentT(df=4.0, loc=3.0, scale=2.5)", read back to
the same; only distributions, transforms, numbers and lists of them are read.
"""

import ast
import inspect
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.typing import ArrayLike
from numpyro.distributions import constraints, transforms

from bayesrep.bounds import is_of_kind
from bayesrep.errors import OptionError, did_you_mean, refuse_any
from bayesrep.numerics.settings import own_settings
from bayesrep.types import no_type_check

Prior: TypeAlias = tuple[float, float] | float | str  # (mean, sd) or sd of a normal, or text
N_PRIOR_DRAWS = 2_001  # Monte Carlo draws behind a distribution's median and quartiles
MAX_TEXT_LENGTH = 2_000  # most characters of a distribution as text
LARGEST_NUMBER = 1e6  # of a prior on the logit or log scale
_ATTRIBUTE_NAMES = {"base_distribution": "base_dist"}  # argument: attribute of distributions
_SKIPPED = ("self", "validate_args", "domain")


class LocationScale(NamedTuple):
    """Median of a distribution, and the sd of a normal with its quartiles."""

    location: float
    scale: float


@no_type_check
def parse_prior(option: str, value: Any, form: tuple[float, float] | float | None) -> Any:
    """Convert a prior for options: (mean, sd) or an sd, as `form` is, or a distribution's text."""
    # NumPyro's constructors and distributions raise exceptions of any type.
    with warnings.catch_warnings(action="ignore"):
        if isinstance(value, str):
            facts = {"option": option, "prior": value[:50]}
            with refuse_any(
                lambda why: OptionError("prior-not-readable", reason=why.rstrip("."), **facts)
            ):
                value = _read(value)
        if not isinstance(value, dist.Distribution):
            return value
        with refuse_any(lambda why: OptionError("prior-not-writable", option=option, reason=why)):
            return _parse_distribution(option, value, form)


def _parse_distribution(
    option: str, value: dist.Distribution, form: tuple[float, float] | float | None
) -> Any:
    if value.batch_shape or value.event_shape:
        shape = list((*value.batch_shape, *value.event_shape))
        raise OptionError("prior-not-of-one-number", option=option, shape=shape)
    support = getattr(value.support, "base_constraint", value.support)
    if support is not constraints.real:
        named = type(support).__name__.strip("_").lower()
        raise OptionError("prior-not-of-real-numbers", option=option, support=named)
    facts = {"option": option, "prior": type(value).__name__}
    with refuse_any(lambda _: OptionError("prior-not-proper", **facts)):
        if not _is_proper(value):
            raise OptionError("prior-not-proper", **facts)
    if type(value) is dist.Normal and form is not None:
        normal = float(np.asarray(value.loc)), float(np.asarray(value.scale))
        if isinstance(form, tuple):
            return normal
        if normal[0] == 0:
            return normal[1]
    # The text is the record: it has to give the same density when it is read again.
    text = _write(value)
    reread = _read(text)
    with own_settings(), jax.numpy_rank_promotion("allow"):
        points = np.linspace(-3, 3, 7)
        same = [np.asarray(each.log_prob(points)) for each in (value, reread)]
    if not np.allclose(*same, rtol=1e-5) or len(text) > MAX_TEXT_LENGTH:
        raise ValueError("it reads otherwise")
    return text


def locate(prior: Prior) -> LocationScale:
    """Locate a prior: mean and sd of a normal, else from median and quartiles."""
    if isinstance(prior, str):
        return _read_location_scale(prior)
    return LocationScale(*prior) if isinstance(prior, tuple) else LocationScale(0.0, prior)


def build_prior(prior: Prior, around: ArrayLike | None = None) -> dist.Distribution:
    """Build the distribution of a prior, centred at `around` if given."""
    if isinstance(prior, tuple):
        return dist.Normal(*prior)
    if not isinstance(prior, str):
        return dist.Normal(0.0 if around is None else around, prior)
    distribution = _read(prior)
    if around is None:
        return distribution
    shift = transforms.AffineTransform(jnp.asarray(around), 1.0)
    return dist.TransformedDistribution(distribution.expand(np.shape(around)), shift)


def shift_prior(prior: Prior, by: float) -> Prior:
    """Shift a prior to that of the same quantity plus a number."""
    if isinstance(prior, tuple):
        return (prior[0] + by, prior[1])
    return f"TransformedDistribution({prior}, [AffineTransform({by!r}, 1.0)])" if by else prior


@lru_cache(maxsize=256)
def _read_location_scale(text: str) -> LocationScale:
    with jax.ensure_compile_time_eval():  # where a model is being traced
        return _estimate_location_scale(_read(text))


def _estimate_location_scale(distribution: dist.Distribution) -> LocationScale:
    with own_settings(), jax.numpy_rank_promotion("allow"):
        # By sampling: not every distribution of NumPyro has quantiles.
        draws = np.asarray(distribution.sample(jax.random.key(0), (N_PRIOR_DRAWS,)))
    low, middle, high = np.quantile(draws, [0.25, 0.5, 0.75])
    return LocationScale(float(middle), float(high - low) / 1.349)


def _is_proper(distribution: dist.Distribution) -> bool:
    """Check that a distribution can be sampled, with finite density and scale at its median."""
    summary = _estimate_location_scale(distribution)
    with own_settings():
        density = float(np.asarray(distribution.log_prob(np.asarray(summary.location))))
    return bool(np.isfinite([density, *summary]).all()) and 0 < summary.scale <= LARGEST_NUMBER


@no_type_check
def _read(text: str) -> Any:
    if len(text) > MAX_TEXT_LENGTH:
        raise ValueError(f"it has more than {MAX_TEXT_LENGTH:,} characters")
    result = _read_part(ast.parse(text, "text", mode="eval").body)
    if isinstance(result, np.ndarray) and result.ndim == 1:
        return tuple(result.tolist())
    if not isinstance(result, dist.Distribution):
        raise ValueError("it is not a distribution")
    return result


def _read_part(node: ast.expr) -> Any:
    if isinstance(node, ast.List | ast.Tuple):
        parts = [_read_part(each) for each in node.elts]
        numbers = all(isinstance(part, float | np.ndarray) for part in parts)
        return np.asarray(parts) if numbers else parts
    if isinstance(node, ast.Call):
        kind = _find_kind(node.func)
        named = {each.arg: _read_part(each.value) for each in node.keywords if each.arg}
        if len(named) == len(node.keywords):
            return kind(*map(_read_part, node.args), **named)
    with suppress(TypeError, ValueError):
        if is_of_kind(value := ast.literal_eval(node), float):
            return float(value)
    raise ValueError(f"{ast.unparse(node)[:50]!r} is not a number")


def _find_kind(named: ast.expr) -> Callable[..., Any]:
    """Find the distribution or transform of NumPyro that is called, also as `dist.Normal`."""
    name = ast.unparse(named).removeprefix("dist.")
    kind = getattr(dist, name, None) or getattr(transforms, name, None)
    if isinstance(kind, type) and issubclass(kind, dist.Distribution | transforms.Transform):
        return kind
    if inspect.isfunction(kind) and name[0].isupper():  # such as Categorical(probs=...)
        return kind
    raise ValueError(f"NumPyro has no distribution {name!r}{did_you_mean(name, dist.__all__)}")


def _write(value: Any) -> str:
    """Write a distribution, or a part of one, as the text that `_read` reads."""
    if isinstance(value, dist.Distribution | transforms.Transform):
        kind = type(value).__name__
        if not hasattr(dist, kind) and not hasattr(transforms, kind):
            raise TypeError(f"{kind} is not a distribution of NumPyro")
        names = [n for n in inspect.signature(type(value).__init__).parameters if n not in _SKIPPED]
        parts = {name: getattr(value, _ATTRIBUTE_NAMES.get(name, name)) for name in names}
        arguments = [f"{n}={_write(part)}" for n, part in parts.items() if part is not None]
        return f"{kind}({', '.join(arguments)})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_write, value))}]"
    numbers = np.asarray(value, dtype=float)
    if not np.isfinite(numbers).all():
        raise ValueError("its parameters are not finite")
    return repr(numbers.tolist())
