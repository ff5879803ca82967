"""Whether other workers would have moved the answer, where it is known who answered."""

import numpy as np

from bayesrep.answers.crowd import describe_crowd
from bayesrep.checks.finding import Finding
from bayesrep.posterior.fitted import Fitted
from bayesrep.studies.study import Study

NOTICEABLE = 1.1
"""Standard deviation of the mean adjusted accuracy with workers over that without."""


def judge_crowd(fitted: Fitted) -> list[Finding]:
    """By what factor workers who answered many images widen the mean's interval.

    It is no misfit: the intervals of `bayesrep.summarize` allow for it, where the model lets them.
    """
    if not isinstance(fitted.study, Study):
        return []
    if all(data.answers is None for data in fitted.study.datasets.values()):
        return []
    check, wanted = "workers who answered many images", f"< {NOTICEABLE:g} times"
    sentence = describe_crowd(fitted.study).sentence
    if not fitted.knows_workers:
        text = f"{sentence} This model's intervals do not allow for it; the joint model's do."
        return [Finding(check, "not allowed for", wanted, "with care", text)]
    with_workers, without = (
        float(np.std(draws.mean(axis=-1)))
        for draws in (fitted.together, fitted.together_without_workers)
    )
    times = with_workers / max(without, 1e-300)
    if times < NOTICEABLE:
        return [Finding(check, f"{times:.2f} times", wanted)]
    text = (
        f"{sentence} The interval of the mean gap is {times:.1f} times as wide for it in what "
        "summarize says, and more images would not narrow it: more workers would, or the same ones "
        "for both data sets."
    )
    return [Finding(check, f"{times:.2f} times", wanted, "yes", text)]
