"""Studies whose selection frequencies are near a few values, and their counts."""

import numpy as np

from bayesrep.models.counts import complete, counts_of
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study

ROLES = ("reference", "replication")


def datasets_of(study, options):
    statistics = SufficientStatistics.of(study)
    return tuple(
        counts_of(complete([statistics.cells[role]]), options.dependence) for role in ROLES
    )


def study_of(draws, shown, seed=0):
    """A study of selection frequencies drawn by functions of a generator, one for each data set."""
    random = np.random.default_rng(seed)
    datasets = {}
    for role, draw in zip(ROLES, draws, strict=True):
        s = draw(random)
        datasets[role] = {
            "selected": random.binomial(shown, s),
            "shown": np.full(len(s), shown),
            "correct": random.random((len(s), 2)) < s[:, None],
        }
    return Study.from_arrays(**datasets, classifiers=["a", "b"], name="odd")


def peaks(*means, spread=0.03, images=1_500):
    """Frequencies near some values, each as often."""

    def draw(random):
        middle = random.choice(means, size=images)
        return np.clip(middle + spread * random.standard_normal(images), 0, 1)

    return draw
