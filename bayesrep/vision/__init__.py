"""The timm companion: from folders of images and names of classifiers to predictions.

`predict` is the door, `predict_sets` that for several data sets, `predict_from_logits` that without
networks. `sets` lists images by `images` and `labels`, also of archives (`tars`, `gzipped`) and of
the `hub`; they are decoded and preprocessed by `pixels` and kept by `cache`. `architectures` knows
classifiers by their names, also those with larger `heads`, and `networks` loads them; `evaluate`
runs them on a block of images and ranks the classes that answers are `among`, `local` and `cluster`
go through all blocks, `results` and `logits` keep what they found, of which `ensembles` answer.

Importing this package loads neither torch nor timm; both come with the extra `[timm]`.
"""

from bayesrep.vision.catalogs import catalog_names, read_catalog
from bayesrep.vision.from_logits import predict_from_logits
from bayesrep.vision.prediction import predict, predict_sets
from bayesrep.vision.reports import Report
from bayesrep.vision.results import describe_kept
from bayesrep.vision.sets import ImageSource
from bayesrep.vision.suite import read_suite
from bayesrep.vision.timm_tables import make_timm_table

__all__ = [
    "ImageSource",
    "Report",
    "catalog_names",
    "describe_kept",
    "make_timm_table",
    "predict",
    "predict_from_logits",
    "predict_sets",
    "read_catalog",
    "read_suite",
]
