"""Where experiments and benchmarks leave what they found."""

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayesrep.errors import EstimateWarning
from bayesrep.report.style import save_figure
from experiments.machine import machine_facts

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


def save(
    name: str,
    command: str,
    numbers: dict[str, Any],
    text: str,
    figure: Any = None,
    remarks: str = "",
    further: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> Path:
    """Write NAME.json (numbers, command, machine) and NAME.md (the table), to docs/results.

    A figure goes to NAME.png and is shown in NAME.md, as are remarks in prose; further ones go to
    NAME-KEY.png.
    """
    folder = folder or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"command": command, "machine": machine(), **numbers}
    (folder / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    parts = [f"# {name}", f"Made by `{command}`."]
    if figure is not None:
        save_figure(figure, folder / f"{name}.png")
        parts.append(f"![{name}]({name}.png)")
    for key, another in (further or {}).items():
        save_figure(another, folder / f"{name}-{key}.png")
        parts.append(f"![{name}, {key}]({name}-{key}.png)")
    parts += [part for part in (remarks, text and f"```\n{text}\n```") if part]
    target = folder / f"{name}.md"
    target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return target
