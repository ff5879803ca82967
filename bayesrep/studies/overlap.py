"""How much classifiers that answer about the same images say together.

A product of the classifiers' likelihoods counts C classifiers' worth of information about all that
they share. The weight that makes a shared parameter's score vary by the product's information is

    w  =  Σ_x Σ_c r_cx²  /  Σ_x (Σ_c r_cx)²,      r_cx = f_cx − q_c[cell],

1 / (1 + (C − 1) ρ) where all pairs have the correlation ρ. Where Var(y) is v times the binomial's,
a residual counts 1 / v of that in each score.

References
----------
Pauli, Racugno, Ventura (2011), "Bayesian composite marginal likelihoods", Statistica Sinica 21,
section 3. Ribatet, Cooley, Davison (2012), "Bayesian inference from composite likelihoods, with an
application to spatial extremes", Statistica Sinica 22, section 2.3: the magnitude adjustment.
"""

from collections.abc import Callable, Iterable

import numpy as np

from bayesrep.studies.statistics import Cells
from bayesrep.types import Floats, Ints


def overlap_weight(
    tables: Iterable[Cells], overdispersion: Callable[[Ints, Floats], Floats] | None = None
) -> float:
    """Compute w from the cells of groups of images, and v from m and q; without it v is 1.

    1 where `Cells.squares` is unknown, 1 / C where nothing can be told.
    """
    alone = together = 0.0
    classifiers = 1
    for cells in tables:
        if cells.squares is None:
            return 1.0
        classifiers = max(cells.correct.shape[1], 1)
        images = np.maximum(cells.images, 1)
        own = cells.correct - cells.correct**2 / images[:, None]
        right = cells.correct.sum(axis=1)
        whole = cells.squares - right**2 / images
        if overdispersion is not None:
            # At shares that are never 0 or 1; classifiers of a cell have nearly one v.
            share = (cells.correct + 0.5) / (images[:, None] + 1)
            v = overdispersion(np.broadcast_to(images[:, None], share.shape), share)
            mean = v.mean(axis=1)
            whole = (whole - own.sum(axis=1)) / mean**2 + (own / v).sum(axis=1)
            own = own / v
        alone += float(own.sum())
        together += float(whole.sum())
    if not together > 0:
        return 1.0 / classifiers
    return float(np.clip(alone / together, 1.0 / classifiers, 1.0))
