"""Results of crowd-kit's aggregators (extra ``crowd``) next to selection frequencies.

They estimate one true answer about an image and each worker's skill, not a selection frequency.
"""

from typing import Any

import numpy as np
import polars as pl

from bayesrep.answers.crowd import known_answers
from bayesrep.errors import OptionError
from bayesrep.studies.study import Study


def aggregate_answers(study: Study, *, seed: int = 0) -> pl.DataFrame:
    """Aggregate every data set's answers by each method.

    Parameters
    ----------
    study
        With the answers by worker of a data set at least.
    seed
        Seed of MACE's random starts.

    Returns
    -------
    polars.DataFrame
        One row a data set and method: `dataset`, `method` (the first is the selection frequency
        k / n itself), `images`, `mean` of the probabilities of a yes, `yes` (share of images
        where it is above 1/2), `certain` (share where it is below 0.05 or above 0.95) and
        `agreement` (share of images on the same side of 1/2 as k / n; ties agree with both).

    Raises
    ------
    OptionError
        If crowd-kit is not installed.
    StudyError
        If it is not known of any data set who answered.
    """
    answered = known_answers(study)
    try:
        from crowdkit.aggregation import GLAD, MACE, DawidSkene  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise OptionError("crowd-kit-not-installed") from None
    methods = {
        "Dawid-Skene": DawidSkene(n_iter=100),
        "MACE": MACE(random_state=seed),
        "GLAD": GLAD(),
    }
    rows: list[dict[str, Any]] = []
    for data, answers in answered.values():
        frequency = data.selected / data.shown
        frequencies = {"selection frequency": frequency}
        table = pl.DataFrame(
            {"task": answers.image, "worker": answers.worker, "label": answers.selected}
        )
        frame = table.with_columns(pl.col("label").cast(pl.Int64)).to_pandas()
        for name, method in methods.items():
            # A method that never says yes has no column for it.
            chances = method.fit_predict_proba(frame)
            yes = chances[1] if 1 in chances.columns else 0 * chances[0]
            frequencies[name] = yes.reindex(range(len(frequency))).fillna(0.0).to_numpy(dtype=float)
        for name, p in frequencies.items():
            # Do the method and the majority of answers fall on the same side of one half?
            sides = np.sign(np.round(p - 0.5, 12)) * np.sign(np.round(frequency - 0.5, 12))
            rows.append(
                {
                    "dataset": data.name,
                    "method": name,
                    "images": len(p),
                    "mean": float(p.mean()),
                    "yes": float((p > 0.5).mean()),
                    "certain": float(((p < 0.05) | (p > 0.95)).mean()),
                    "agreement": float((sides >= 0).mean()),
                }
            )
    return pl.DataFrame(rows)
