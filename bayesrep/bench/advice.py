"""Advice on where to run a fit, from the numbers just measured."""

from collections.abc import Mapping
from typing import Any


def advice(results: Mapping[str, Any]) -> str:
    """One line: from how many chains another device is faster here."""
    names = [each["device"] for each in results["devices"]]
    others = [name for name in names if name != "cpu"]
    if not others or "cpu" not in names:
        only = ", ".join(names)
        return f"Only {only} was measured: there is nothing to choose between."
    if results.get("right", {}).get("verdict") == "WRONG":
        return f"Use --device cpu: {', '.join(others)} does not compute what the CPU computes."
    return " ".join(_draws_advice(results, name) for name in others)


def _draws_advice(results: Mapping[str, Any], name: str) -> str:
    rows = results.get("draws", {}).get("rows", ())
    speeds = {(r["device"], r["chains"]): r["draws_per_s"] for r in rows if "draws_per_s" in r}
    cpu = max((value for (device, _), value in speeds.items() if device == "cpu"), default=None)
    other = {chains: value for (device, chains), value in speeds.items() if device == name}
    if cpu is None or not other:
        return "Not known: draws could not be measured."
    faster = [chains for chains, value in sorted(other.items()) if value > cpu]
    most = max(other, key=lambda chains: other[chains])
    if not faster:
        return f"The CPU is faster, {cpu / other[most]:.1f} times at {most:,} chains on {name}."
    return (
        f"{name} makes more draws a second than all CPU cores from {faster[0]:,} "
        f"chains on, {other[most] / cpu:.1f} times as many at {most:,}."
    )
