"""Single images: how often people select them, and how hard classifiers find them beyond that."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import PosteriorError
from bayesrep.inference.problem import at_draws, pose_again
from bayesrep.models import MODELS
from bayesrep.numerics.settings import own_settings
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.study import AnnotatedSet, Study
from bayesrep.types import Floats, Ints

DRAWS = 100


def describe_images(study: Study, posterior: Posterior, *, draws: int = DRAWS) -> pl.DataFrame:
    """Selection frequency and difficulty of every image, given annotations and all answers.

    Parameters
    ----------
    study
        The study that was fitted.
    posterior
        From `bayesrep.fit` with a model of single images, such as `model="shared-difficulty"`.
    draws
        Posterior draws to average over, at most.

    Returns
    -------
    polars.DataFrame
        One row an image of every data set whose answers are modelled: dataset, image, label (where
        there are labels), selected, shown, `right` (share of the classifiers that are),
        `selection_frequency` and its `selection_frequency_sd`: posterior mean and standard
        deviation of s; `difficulty` and `difficulty_sd`, of −u: 0 for the average image, 1 for
        one that is harder for classifiers by a standard deviation than s makes it. Further factors
        are `difficulty_2` and `difficulty_3`.

    Raises
    ------
    PosteriorError
        If the posterior is of another study or model.
    """
    fitted = Fitted(study, posterior)
    made = fitted.record
    if made.model.images is None:
        others = " or ".join(name for name, model in MODELS.items() if model.images)
        raise PosteriorError("model-without-image-difficulty", model=made.name, models=others)
    problem = pose_again(fitted)
    with own_settings():
        moments = at_draws(problem, fitted, made.model.images, draws)
    roles = REQUIRED_ROLES[-len(moments) :]
    return pl.concat(
        [
            _table(study.datasets[role], problem.distinct[role].pattern, each)
            for role, each in zip(roles, moments, strict=True)
        ]
    )


def _table(data: AnnotatedSet, pattern: Ints, moments: Sequence[Floats]) -> pl.DataFrame:
    """One data set's rows; moments [draw, mean and square of each, X] of its distinct images X."""
    frequency, difficulty = (each.mean(axis=0)[:, pattern] for each in moments)
    factors = len(difficulty) // 2
    columns: dict[str, Any] = {
        "dataset": [data.name] * len(pattern),
        "image": data.images,
        **({} if data.labels is None else {"label": data.labels}),
        "selected": data.selected,
        "shown": data.shown,
        "right": np.asarray(data.correct).mean(axis=1),
        "selection_frequency": frequency[0],
        "selection_frequency_sd": _sd(*frequency),
    }
    for factor in range(factors):
        suffix = f"_{factor + 1}" if factor else ""
        mean, square = difficulty[factor], difficulty[factors + factor]
        columns[f"difficulty{suffix}"] = -mean
        columns[f"difficulty{suffix}_sd"] = _sd(mean, square)
    return pl.DataFrame(columns)


def _sd(mean: Floats, square: Floats) -> Floats:
    return np.sqrt(np.clip(square - np.square(mean), 0, None))
