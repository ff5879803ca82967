"""Where experiments and benchmarks leave what they found."""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from bayesrep.errors import EstimateWarning
from bayesrep.machine import machine_facts
from bayesrep.report.figures import save_figure
from bayesrep.report.text import percent

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
PACKAGES = ("jax", "numpyro", "numpy", "arviz", "polars")


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return machine_facts(PACKAGES)


@contextmanager
def recorded() -> Iterator[list[str]]:
    """Collect what is warned inside, each text once, so that it is saved beside the numbers."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EstimateWarning)
        yield said
    said.extend(dict.fromkeys(str(warning.message) for warning in caught))


def warned(numbers: dict[str, Any]) -> str:
    """What was warned, as a sentence each, for the remarks."""
    return "".join(f" Warned: {text}." for text in numbers["warnings"])


def recording(
    numbers: Callable[..., dict[str, Any]],
) -> Callable[..., dict[str, Any]]:
    """``numbers`` with what it warned of beside them."""

    @wraps(numbers)
    def with_warnings(*data: Any, **options: Any) -> dict[str, Any]:
        with recorded() as said:
            found = numbers(*data, **options)
        return {**found, "warnings": said}

    return with_warnings


def gap_cells(part: dict[str, Any]) -> list[str]:
    """Mean gap in percent and its interval, of an analysis' numbers, for a table."""
    gap = part["quantities"]["bias_corrected_gap"]
    ends = f"{percent(gap['lower'], 2)} to {percent(gap['upper'], 2)}"
    return [percent(gap["estimate"], 2), ends]


def slope_cells(part: dict[str, Any]) -> list[str]:
    """Slope and its interval, of an analysis' numbers, for a table."""
    slope = part["quantities"]["slope"]
    return [f"{slope['estimate']:.3f}", f"{slope['lower']:.3f} to {slope['upper']:.3f}"]


def save(
    name: str,
    command: str,
    numbers: dict[str, Any],
    text: str,
    figure: Any = None,
    remarks: str = "",
    further: Mapping[str, Any] | None = None,
) -> Path:
    """Write NAME.json (numbers, command, machine) and NAME.md (the table) to docs/results.

    A figure goes to NAME.png and is shown in NAME.md, as are remarks in prose; further ones go to
    NAME-KEY.png.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    facts = {"command": command, "machine": machine(), **numbers}
    (RESULTS / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    parts = [f"# {name}", f"Made by `{command}`."]
    if figure is not None:
        save_figure(figure, RESULTS / f"{name}.png")
        parts.append(f"![{name}]({name}.png)")
    for key, another in (further or {}).items():
        save_figure(another, RESULTS / f"{name}-{key}.png")
        parts.append(f"![{name}, {key}]({name}-{key}.png)")
    parts += [part for part in (remarks, text and f"```\n{text}\n```") if part]
    target = RESULTS / f"{name}.md"
    target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return target
