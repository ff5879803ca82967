"""The timm companion: from folders of images and names of classifiers to predictions.

`predict` is the door. Images are listed by `images` and `labels`, decoded and preprocessed by
`pixels`, kept by `cache`; `networks` loads classifiers, `evaluate` runs them on a block of images,
`local` and `cluster` go through all blocks, `results` keeps what they found.

Importing this package loads neither torch nor timm; both come with the extra `[timm]`.
"""

from bayesrep.vision.catalogs import catalog_names, read_catalog
from bayesrep.vision.prediction import Report, predict
from bayesrep.vision.results import describe_kept

__all__ = ["Report", "catalog_names", "describe_kept", "predict", "read_catalog"]
