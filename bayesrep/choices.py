"""The words that options take, where the room that means something by them is slow to import.

And how many bootstrap replicates there are where nobody says.
"""

from typing import Literal, TypeAlias

Method: TypeAlias = Literal["auto", "nuts", "laplace"]
Feedback: TypeAlias = Literal["full", "cut"]
BootstrapInterval: TypeAlias = Literal["percentile", "bca"]
AccuracyInterval: TypeAlias = Literal["jeffreys", "wilson", "clopper-pearson"]
Choosing: TypeAlias = Literal["published", "fine", "posterior"]
Prior: TypeAlias = Literal["imagenet-v2"]
Empty: TypeAlias = Literal["exclude", "wrong"]
Process: TypeAlias = Literal["outside", "non-monotone", "inside"]
Precision: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]
Kept: TypeAlias = Literal["logits"]
Key: TypeAlias = Literal["auto", "id", "content"]
Role: TypeAlias = Literal["reference", "replication"]
PassTarget: TypeAlias = Literal["population", "items"]

FEW_REPLICATES = 50
"""Bootstrap replicates of intervals that are shown unasked: quick and rough."""
PAPER_REPLICATES = 450
"""Those of Engstrom et al. (2020)."""
