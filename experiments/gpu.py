"""What a GPU buys: the mission's study fitted there and on this machine's processor.

    python -m experiments.gpu

136 classifiers on two data sets of 10,000 images, as `simulate_study` makes them; by Laplace's
draws, by four, 64, 256 and 1,024 chains, each of them twice, so that the second has its programs
compiled; and 10,000 classifiers on 500 images. Seconds by stage, the
verdict, and how far the mean adjusted accuracies are from those of four chains on the processor.
What single gradients take is told by `python -m benchmarks.device`.
"""

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np

import bayesrep
from bayesrep.errors import BayesrepError
from bayesrep.inference.device import find_devices
from bayesrep.report.table_format import columns
from bayesrep.types import Floats
from experiments.results import save

FITS: dict[str, dict[str, Any]] = {
    "laplace": {"method": "laplace"},
    "4 chains": {"method": "nuts"},
    "64 chains": {"method": "nuts", "chains": 64},
    "256 chains": {"method": "nuts", "chains": 256},
    "1,024 chains": {"method": "nuts", "chains": 1024},
}
STAGES = ("finding the mode", "looking around", "compiling", "sampling", "evaluating")


def fit_once(study: bayesrep.Study, device: str, **how: Any) -> tuple[dict[str, Any], Floats]:
    """Seconds, verdict and size of a fit; mean and sd [2, classifier] of adjusted accuracies."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = bayesrep.fit(study, device=device, **how)["posterior"]
    adjusted = group["adjusted_accuracy"]
    found = {
        "seconds": round(time.perf_counter() - begin, 2),
        "stages": json.loads(group.attrs["seconds"]),
        "device": group.attrs["device"],
        "chains": adjusted.sizes["chain"],
        "draws": adjusted.sizes["draw"],
        "verdict": group.attrs["verdict"],
    }
    over = ("chain", "draw")
    return found, np.stack([adjusted.mean(over).values, adjusted.std(over).values])


def main() -> int:
    """Fit everywhere and write the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    devices = [name for name in find_devices() if name != "cpu"]
    if not devices:
        print("no GPU here: nothing to compare")
        return 2
    study = bayesrep.simulate_study(seed=0)
    found: dict[str, dict[str, Any]] = {}
    reference: Floats | None = None
    for device in ("cpu", devices[0]):
        for name, how in FITS.items():
            if device == "cpu" and how.get("chains", 4) > 4:
                continue
            for again in ("", ", again"):
                row, draws = fit_once(study, device, **how)
                if name == "4 chains" and reference is None:
                    reference = draws
                if reference is not None:
                    away = np.abs(draws[0] - reference[0]) / reference[1]
                    row["furthest in sd"] = round(float(away.max()), 4)
                found[f"{name}, {device}{again}"] = row
    large = bayesrep.simulate_study(seed=0, images=500, classifiers=10_000)
    name = f"10,000 classifiers on 500 images, {devices[0]}"
    try:
        found[name], _ = fit_once(large, devices[0])
    except BayesrepError as error:
        found[name] = {"error": str(error)}
    lines = [
        (name, f"{row['seconds']:.1f}", *(f"{row['stages'].get(s, 0):.1f}" for s in STAGES))
        for name, row in found.items()
        if "seconds" in row
    ]
    table = columns(["fit", "seconds", *STAGES], lines)
    save("gpu", "python -m experiments.gpu", found, table)
    print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
