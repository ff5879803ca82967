"""The timm companion: from folders of images and names of classifiers to predictions.

Importing it loads neither torch nor timm; both come with the extra `[timm]`.
"""

from bayesrep.vision.catalogs import catalog_names, read_catalog
from bayesrep.vision.evaluation_set import ImageSource
from bayesrep.vision.from_logits import predict_from_logits
from bayesrep.vision.prediction import predict, predict_sets
from bayesrep.vision.reports import Report
from bayesrep.vision.suite import read_suite
from bayesrep.vision.timm_tables import make_timm_table

__all__ = [
    "ImageSource",
    "Report",
    "catalog_names",
    "make_timm_table",
    "predict",
    "predict_from_logits",
    "predict_sets",
    "read_catalog",
    "read_suite",
]
