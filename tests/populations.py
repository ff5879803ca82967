"""Two populations of images, an easy and a hard one, and studies of them."""

import numpy as np

from bayesrep import Study
from bayesrep.numerics.noisy_matching import BetaMixture

EASY = BetaMixture(np.array([8.0, 2.0]), np.array([1.0, 3.0]), np.array([0.8, 0.2]))


HARD = BetaMixture(np.array([4.0, 1.0]), np.array([1.5, 2.0]), np.array([0.5, 0.5]))


def drawn(rng, mixture, size, n):
    component = rng.choice(len(mixture.a), size=size, p=mixture.weights)
    s = rng.beta(mixture.a[component], mixture.b[component])
    return s, rng.binomial(n, s)


def study_of(reference, pool, *, n=10, size=6_000, seed=0, classifiers=3, **more):
    rng = np.random.default_rng(seed)
    entries = {}
    for role, mixture in (("reference", reference), ("candidates", pool)):
        s, k = drawn(rng, mixture, size, n)
        correct = rng.random((size, classifiers)) < (0.1 + 0.8 * s)[:, None]
        entries[role] = {"selected": k, "shown": n, "correct": correct, **more}
    names = [f"c{place}" for place in range(classifiers)]
    return Study.from_arrays(replication=entries["candidates"], classifiers=names, **entries)
