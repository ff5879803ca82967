"""Heads of more classes than ImageNet's 1,000: answers are among those of their outputs.

Networks that were trained on all of ImageNet, or on a larger part of it, have an output for each of
11,221 to 21,843 synsets. timm tells their order by their number (`timm.data.ImageNetInfo`), and the
outputs of the 1,000 classes are those of the same wnids. A class that the head lacks is never
answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from bayesrep.studies.imagenet import synsets
from bayesrep.vision.imports import load_timm


@dataclass(frozen=True)
class LargeHead:
    """The outputs of a network among which those of ImageNet's 1,000 classes are.

    Attributes
    ----------
    synset_list
        What timm calls the classes of all outputs, such as "imagenet-21k-goog".
    size
        How many outputs there are.
    outputs : tuple of 1,000 int
        The output of each class; -1 where it has none.
    """

    synset_list: str
    size: int
    outputs: tuple[int, ...]

    @property
    def missing_classes(self) -> list[str]:
        """The wnids of the classes that no output has."""
        return [wnid for wnid, k in zip(synsets(), self.outputs, strict=True) if k < 0]

    @property
    def description(self) -> str:
        """What is taken of its outputs, in words."""
        there = len(self.outputs) - len(self.missing_classes)
        return f"{there:,} of {self.size:,} outputs, by the wnids of {self.synset_list}"

    def take_classes(self, outputs: Any) -> Any:
        """The outputs [n, 1000] of the classes among all outputs [n, size], -inf where it has none.

        It is a tensor on the device of the outputs.
        """
        import torch

        taken = outputs[:, [max(place, 0) for place in self.outputs]]
        missing = [number for number, place in enumerate(self.outputs) if place < 0]
        places = torch.tensor(missing, dtype=torch.int64).to(outputs.device)
        return taken.index_fill_(1, places, float("-inf"))


@cache
def find_head(size: int) -> LargeHead | None:
    """The head of so many outputs; None where timm knows no list of as many synsets."""
    load_timm()
    from timm.data.imagenet_info import ImageNetInfo, infer_imagenet_subset

    known = infer_imagenet_subset({"num_classes": size})
    if known is None or size == len(synsets()):
        return None
    return _match_synsets(known, ImageNetInfo(known).label_names())


def _match_synsets(synset_list: str, names: Sequence[str]) -> LargeHead:
    places = {wnid: place for place, wnid in enumerate(names)}
    return LargeHead(synset_list, len(names), tuple(places.get(wnid, -1) for wnid in synsets()))
