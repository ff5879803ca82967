"""Where experiments and benchmarks leave what they found."""

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
PACKAGES = ("jax", "numpyro", "numpy", "arviz", "polars")


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "versions": {name: version(name) for name in PACKAGES},
    }


def save(name: str, command: str, numbers: dict[str, Any], text: str) -> Path:
    """Write NAME.json (numbers, command, machine) and NAME.md (the table) to docs/results."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    facts = {"command": command, "machine": machine(), **numbers}
    (RESULTS / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    page = f"# {name}\n\nMade by `{command}`.\n\n```\n{text}\n```\n"
    target = RESULTS / f"{name}.md"
    target.write_text(page, encoding="utf-8")
    return target
