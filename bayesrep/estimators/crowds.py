"""What other workers would have answered: selections that replicates have more or less.

Worker w selected image x by r_xw more often than its other annotators did
(`bayesrep.numerics.crowd`): over all images in proportion to s (1 − s), as a shift on the logit
scale does, by

    b_w v_x,        b_w = Σ_x r_xw / Σ_x v_x,        v = f (1 − f),  f = (k + 1) / (n + 2)

A crowd in which each worker counts e_w ~ Normal(0, 1) times more would have selected the image by
z_x = Σ_w e_w b_w v_x more often. These are scaled so that the mean selection frequency has the
covariance over workers that is added to the one over images. Residuals themselves would do for an
estimate that is linear in the counts, but of the few answers of a worker about a cell most is
chance, of which differences between cells, that jackknife and EM live on, would be made.

Images do not take selections one by one, which would be noise once more, but cell by cell: of the
Z of a cell (k, n), as

    flow from k to k + 1  =  (1 − k/n) Z_k  +  (k + 1)/n Z_{k+1}

images, since of the cell's answers that share was "no" (and may become "yes") or is "yes". Of those
that a classifier gets right the same with their own Z. So an estimator that takes noise out of the
counts sees their distribution moved, and no noisier.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bayesrep.studies.crowds import frequency_covariance, residuals_of
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.statistics import Cells
from bayesrep.studies.study import Study
from bayesrep.types import Float, Ints


@dataclass(frozen=True, eq=False)
class OtherWorkers:
    """How answers would have differed by the workers, by role.

    Attributes
    ----------
    more_often
        b_w v_x of every data set whose workers are known: [image, worker], scaled; the same workers
        in all.
    workers
        How many there are.
    """

    more_often: dict[str, sparse.csr_array]
    workers: int

    @classmethod
    def from_study(cls, study: Study) -> "OtherWorkers":
        """Other workers of a study; nobody where it is not known who answered."""
        known = [role for role in REQUIRED_ROLES if study.datasets[role].answers is not None]
        if not known:
            return cls({}, 0)
        datasets = [study.datasets[role] for role in known]
        residuals = residuals_of(datasets)
        covariance = frequency_covariance(datasets, residuals)
        scaled = {}
        for at, (role, data, each) in enumerate(zip(known, datasets, residuals, strict=True)):
            frequency = (data.selected + 1) / (data.shown + 2)
            middle = frequency * (1 - frequency)
            asked = sparse.csr_array((np.ones(each.nnz), each.indices, each.indptr), each.shape)
            leniency = each.sum(axis=0) / np.maximum(middle @ asked, 1e-300)
            said = asked * middle[:, None] * leniency[None, :]
            mean = (1 / data.shown / len(data.images)) @ said
            scale = np.sqrt(covariance[at, at] / max(float(mean @ mean), 1e-300))
            scaled[role] = sparse.csr_array(said * scale)
        return cls(scaled, len(residuals[0].sum(axis=0)))


def with_neighbours(cells: Cells) -> Cells:
    """The same cells and, without images, those of one selection more and less."""
    shown = np.tile(cells.shown, 3)
    selected = np.concatenate([cells.selected + step for step in (-1, 0, 1)])
    possible = (selected >= 0) & (selected <= shown)
    n, k = np.unique(np.stack([shown[possible], selected[possible]]), axis=1)
    return cells.on(k, n)


def flow(
    selected: Ints,
    shown: Ints,
    more: Float[np.ndarray, "version cell *classifier"],
) -> Float[np.ndarray, "version cell *classifier"]:
    """By how many images each cell grows.

    Parameters
    ----------
    selected, shown : int64 [M]
        The cells, sorted by (shown, selected), neighbours among them.
    more
        Z: how many selections more there are of the images of each cell.
    """
    tail = (1,) * (more.ndim - 2)
    yes = (selected / shown).reshape(-1, *tail)
    beside = (np.diff(shown) == 0) & (np.diff(selected) == 1)
    rising = (1 - yes[:-1]) * more[:, :-1] + yes[1:] * more[:, 1:]
    rising = rising * beside.reshape(-1, *tail)
    grown = np.zeros_like(more)
    grown[:, 1:] += rising
    grown[:, :-1] -= rising
    return grown
