"""Where experiments and benchmarks leave what they found."""

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayesrep.errors import EstimateWarning
from experiments.machine import machine_facts
from experiments.style import save_figure

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


def interval_points(
    axes: Any, x: Any, y: Any, low: Any, high: Any, *, color: str, **style: Any
) -> None:
    """Points, and vertical lines from ``low`` to ``high``, which need not contain the points."""
    axes.vlines(x, low, high, color=color, lw=0.9, zorder=style.get("zorder", 2))
    axes.plot(x, y, **{"marker": "o", "lw": 0, "color": color, **style})


def find_page(name: str, folder: Path) -> Path:
    """The page that has a section NAME; a new one of that name where none has."""
    held = (page for page in folder.glob("*.md") if f"\n## {name}\n" in page.read_text("utf-8"))
    return next(held, folder / f"{name}.md")


def read_numbers(name: str) -> dict[str, Any]:
    """What JSON has for the section NAME."""
    page = find_page(name, RESULTS)
    return json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))[name]


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
    """Write the section NAME of its page below docs/results, and its numbers into the page's JSON.

    What stands between its heading and "Made by" is written by hand and stays. A figure goes to
    NAME.png and is shown, as are remarks in prose; further ones go to NAME-KEY.png.
    """
    folder = folder or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    page = find_page(name, folder)
    facts = page.with_suffix(".json")
    held = json.loads(facts.read_text(encoding="utf-8")) if facts.exists() else {}
    held[name] = {"command": command, "machine": machine(), **numbers}
    facts.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    parts = [f"Made by `{command}`."]
    figures = {"": figure} if figure is not None else {}
    for key, each in (figures | dict(further or {})).items():
        file = f"{name}-{key}.png" if key else f"{name}.png"
        save_figure(each, folder / file)
        parts.append(f"![{name}{key and f', {key}'}]({file})")
    parts += [part for part in (remarks, text and f"```\n{text}\n```") if part]
    old = page.read_text(encoding="utf-8") if page.exists() else f"# {name}\n\n## {name}\n"
    before, heading, after = old.partition(f"\n## {name}\n")
    section, following, rest = after.partition("\n## ")
    by_hand = section.partition("Made by `")[0].strip()
    new = "\n\n".join(part for part in (by_hand, *parts) if part)
    page.write_text(f"{before}{heading}\n{new}\n{following}{rest}", encoding="utf-8")
    return page
