"""What the numbers just measured say of where to run a fit."""

from collections.abc import Mapping
from typing import Any


def advice(found: Mapping[str, Any]) -> str:
    """One line: from how many chains, and for which model, another device is faster here."""
    names = [each["device"] for each in found["devices"]]
    others = [name for name in names if name != "cpu"]
    if not others or "cpu" not in names:
        only = ", ".join(names)
        return f"Only {only} was measured: there is nothing to choose between."
    if found.get("right", {}).get("verdict") == "WRONG":
        return f"Use --device cpu: {', '.join(others)} does not compute what the CPU computes."
    return " ".join(
        f"{_draws_advice(found, name)} {_images_advice(found, name)}" for name in others
    )


def _draws_advice(found: Mapping[str, Any], name: str) -> str:
    rows = found.get("draws", {}).get("rows", ())
    speeds = {(r["device"], r["chains"]): r["draws_per_s"] for r in rows if "draws_per_s" in r}
    cpu = max((value for (device, _), value in speeds.items() if device == "cpu"), default=None)
    other = {chains: value for (device, chains), value in speeds.items() if device == name}
    if cpu is None or not other:
        return "Joint model: not known, draws could not be measured."
    faster = [chains for chains, value in sorted(other.items()) if value > cpu]
    most = max(other, key=lambda chains: other[chains])
    if not faster:
        return (
            f"Joint model: the CPU is faster, {cpu / other[most]:.1f} times at {most:,} chains "
            f"on {name}."
        )
    return (
        f"Joint model: {name} makes more draws a second than all CPU cores from {faster[0]:,} "
        f"chains on, {other[most] / cpu:.1f} times as many at {most:,}."
    )


def _images_advice(found: Mapping[str, Any], name: str) -> str:
    rows = found.get("images", {}).get("rows", ())
    times = {r["device"]: r["us"] / r["chains"] for r in reversed(rows) if "us" in r}
    if not {"cpu", name} <= set(times):
        return "Shared-difficulty model: not known."
    ratio = times["cpu"] / times[name]
    if ratio > 1:
        return f"Shared-difficulty model: {name}, whose gradient is {ratio:.1f} times as fast."
    return f"Shared-difficulty model: the CPU, whose gradient is {1 / ratio:.1f} times as fast."
