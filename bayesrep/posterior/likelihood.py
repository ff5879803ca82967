"""Log likelihood of the classifiers' answers, from the stored logits: no file has both."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesrep.files.netcdf import Variable
from bayesrep.numerics.codes import Codes, decode
from bayesrep.posterior.groups import Posterior, need_group, read_record, thinned_draws
from bayesrep.types import Float

if TYPE_CHECKING:
    import xarray as xr

GROUP_NAME = "log_likelihood"
CODE_VARS = ("logit_middle", "logit_step")
LOGIT_VARS = ("logit_right", *CODE_VARS)  # codes, offsets and steps of logit P(correct | cell)


def logit_codes(posterior: Posterior) -> Codes:
    """Read the codes of logit P(correct | cell) [chain, draw, classifier, replication_cell]."""
    group = need_group(posterior, "log_density", *LOGIT_VARS)
    code, *meanings = (group[name].values for name in LOGIT_VARS)
    # After concatenating several runs each chain has its own offsets and steps.
    return Codes(code, *(each.reshape(-1, 1, *code.shape[2:]) for each in meanings))


def thinned_codes(posterior: Posterior, draws: int) -> Codes:
    """Select the codes of at most so many draws, evenly spaced, as one chain."""
    code, *meanings = logit_codes(posterior)
    chains, length = code.shape[:2]
    places = Variable(("chain", "draw"), np.arange(chains * length).reshape(chains, length))
    chain, draw = np.divmod(thinned_draws(places, draws), length)
    # Draws of one run share offsets and steps; after concatenation each keeps its own.
    thinned = (each[chain if len(each) > 1 else [0], 0][None] for each in meanings)
    return Codes(code[chain, draw][None], *thinned)


def decode_some(codes: Codes, *place: Any) -> Float[np.ndarray, "chain draw *quantity"]:
    """Decode the draws of some quantities, indexed along their dimensions, in float32."""
    return decode(Codes(*(each[:, :, *place] for each in codes)))


def answer_log_likelihoods(posterior: Posterior) -> Iterator[Float[np.ndarray, "chain draw cell"]]:
    """Yield the log likelihood of each classifier's answers by cell, of cells that have images."""
    observed = need_group(posterior, "observed_data", "correct", "replication_images")
    codes, answers = logit_codes(posterior), read_record(posterior).answers
    images = observed["replication_images"].values
    # The answers' likelihood is stored for cells with images only.
    some = np.flatnonzero(images)
    for index, right in enumerate(observed["correct"].values):
        logit = decode_some(codes, index, some).astype(np.float64)
        yield answers.log_prob(right, images[some], logit)


def with_log_likelihood(tree: "xr.DataTree") -> "xr.DataTree":
    """Add the group `log_likelihood`, which ArviZ looks for."""
    import xarray as xr

    groups = {name: each.to_dataset() for name, each in tree.children.items()}
    density, observed = groups.get("log_density"), groups.get("observed_data")
    if density is None or not set(LOGIT_VARS) <= set(density.variables) or GROUP_NAME in groups:
        return tree
    if observed is None or "correct" not in observed:
        return tree
    values = np.stack([each.astype(np.float32) for each in answer_log_likelihoods(tree)], axis=2)
    dims = ("chain", "draw", *map(str, observed["correct"].dims))
    along = {name: density[name] for name in ("chain", "draw")} | dict(observed["correct"].coords)
    group = xr.Dataset({"correct": (dims, values)}, coords=along, attrs=density.attrs)
    return xr.DataTree.from_dict({"/": tree.to_dataset(), **groups, GROUP_NAME: group})
