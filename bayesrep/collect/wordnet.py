"""WordNet's descriptions of ImageNet's classes, and distances between them.

wordnet.csv holds facts of WordNet 3.0 (wordnet.LICENSE.txt): of the 1,000 classes words and gloss,
and of them and everything they are kinds of the hypernyms.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np
import polars as pl
from scipy import sparse
from scipy.sparse import csgraph

from bayesrep.types import Ints


@cache
def _facts() -> pl.DataFrame:
    text = files("bayesrep.collect").joinpath("wordnet.csv").read_bytes()
    return pl.read_csv(text, infer_schema=False)


def descriptions() -> pl.DataFrame:
    """Return WordNet's words for ImageNet's classes: `label` (wnid), `name`, `description`."""
    described = _facts().filter(pl.col("words").fill_null("") != "")
    return described.select(label="wnid", name="words", description="gloss")


def has_synset(wnid: str) -> bool:
    """Test whether the table has this synset."""
    return wnid in _places()


@cache
def _places() -> dict[str, int]:
    return {wnid: place for place, wnid in enumerate(_facts()["wnid"].to_list())}


def distances(wnids: Sequence[str]) -> Ints:
    """Compute the steps between all pairs along hypernyms, up and down: [K, K]."""
    edges = _facts().select("wnid", pl.col("hypernyms").str.split(" ")).explode("hypernyms")
    edges = edges.filter(pl.col("hypernyms").fill_null("") != "")
    start, stop = (
        np.array([_places()[name] for name in edges[column].to_list()])
        for column in ("wnid", "hypernyms")
    )
    size = len(_places())
    graph = sparse.coo_array((np.ones(len(start)), (start, stop)), shape=(size, size)).tocsr()
    places = [_places()[wnid] for wnid in wnids]
    steps = csgraph.shortest_path(graph, directed=False, unweighted=True, indices=places)
    return steps[:, places].astype(np.int64)
