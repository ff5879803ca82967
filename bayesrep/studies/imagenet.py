"""The 1,000 classes of ImageNet (ILSVRC 2012), numbered by their WordNet numbers sorted as text.

The challenge's own numbers, and folder names "0" to "999" sorted as text, are other orders.
"""

from functools import cache
from importlib.resources import files

N_CLASSES = 1000


@cache
def synsets() -> tuple[str, ...]:
    """The 1,000 wnids in class order."""
    text = files("bayesrep.studies").joinpath("imagenet_classes.txt").read_text(encoding="ascii")
    names = tuple(text.split())
    assert len(set(names)) == N_CLASSES, "imagenet_classes.txt must hold 1,000 distinct wnids"
    assert list(names) == sorted(names), "imagenet_classes.txt must be in class order"
    return names
