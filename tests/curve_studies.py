"""A study whose accuracies are a line in the selection frequency."""

import numpy as np

from bayesrep import Study


def small_study(images: int = 800) -> Study:
    rng = np.random.default_rng(0)
    data = []
    for a in (5, 3):
        s = rng.beta(a, 1, size=images)
        correct = rng.random((images, 3)) < (0.2 + 0.7 * s)[:, None]
        data.append({"selected": rng.binomial(12, s), "shown": 12, "correct": correct})
    return Study.from_arrays(reference=data[0], replication=data[1], classifiers=list("abc"))
