"""Heads with other outputs than the classes in order: classes are matched by name.

Those of larger parts of ImageNet have timm's order of synsets; a class that lacks is no answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from bayesrep.files.digests import digest_parts
from bayesrep.files.names import normalize_name
from bayesrep.studies.imagenet import synsets
from bayesrep.vision.classes import Classes
from bayesrep.vision.torch_loading import load_timm


@dataclass(frozen=True)
class LargeHead:
    """The outputs of a network that include those of the classes."""

    named_by: str  # names of all outputs, such as "wnids of imagenet-21k-goog"
    size: int  # number of outputs
    outputs: tuple[int, ...]  # tuple of K int: output of each class; -1 if it has none

    @property
    def missing_classes(self) -> list[str]:
        """The wnids of the classes that no output has."""
        return [synsets()[number] for number, k in enumerate(self.outputs) if k < 0]

    @property
    def description(self) -> str:
        """Description of the outputs that are used."""
        n_found = len(self.outputs) - len(self.missing_classes)
        return f"{n_found:,} of {self.size:,} outputs, by the {self.named_by}"

    def take_classes(self, outputs: Any) -> Any:
        """Take the outputs [n, K] of the classes from all outputs [n, size], -inf if missing."""
        import torch

        chosen = outputs[:, [max(place, 0) for place in self.outputs]]
        missing = [number for number, place in enumerate(self.outputs) if place < 0]
        places = torch.tensor(missing, dtype=torch.int64).to(outputs.device)
        return chosen.index_fill_(1, places, float("-inf"))


@cache
def find_head(size: int) -> LargeHead | None:
    """Find the head of so many outputs; None if timm has no list of as many synsets."""
    load_timm()
    from timm.data.imagenet_info import ImageNetInfo, infer_imagenet_subset

    subset = infer_imagenet_subset({"num_classes": size})
    if subset is None or size == len(synsets()):
        return None
    places = {wnid: place for place, wnid in enumerate(ImageNetInfo(subset).label_names())}
    outputs = tuple(places.get(wnid, -1) for wnid in synsets())
    return LargeHead(f"wnids of {subset}", len(places), outputs)


def read_label_names(config: Mapping[str, Any], classes: Classes) -> list[str]:
    """Names of a configuration's outputs, in order, or its descriptions if these match classes."""
    described = config.get("label_descriptions") or ()
    listed = config.get("label_names") or list(described)
    if isinstance(listed, Mapping):  # of some of the outputs, by their numbers
        by_number = {int(number): name for number, name in listed.items()}
        listed = [by_number.get(number, "") for number in range(int(config["num_classes"]))]
    names = [str(name) for name in listed]
    description_of = described if isinstance(described, Mapping) else {}
    texts = [str(description_of.get(name, name)) for name in names]
    spelled = [[normalize_name(text) for text in each] for each in (names, texts)]
    class_names = {name.casefold() for name in classes.index}
    like = (each for each in spelled if not class_names.isdisjoint(map(str.casefold, each)))
    return next(like, spelled[0])


def match_names(names: Sequence[str], classes: Classes) -> LargeHead | None:
    """The outputs of the classes by names of all outputs; None if not one to one, or too few."""
    from timm.data.imagenet_info import ImageNetInfo

    if classes.file is None and list(names) == ImageNetInfo().label_descriptions():
        names = classes.names  # in words
    numbers = [classes.index.get(name, -1) for name in names]
    places = {number: place for place, number in enumerate(numbers) if number >= 0}
    is_large = classes.file is None and len(names) > len(classes)
    enough = 2 * len(places) > len(classes) if is_large else len(places) == len(classes)
    if not enough or len(places) < len(numbers) - numbers.count(-1):
        return None
    outputs = tuple(places.get(number, -1) for number in range(len(classes)))
    digest = digest_parts(["\n".join(names).encode()])[:8]
    return LargeHead(f"label_names of its configuration ({digest})", len(names), outputs)
