"""Ensembles of networks from kept outputs: the mean of softmax probabilities.

A deep ensemble's probability of a class (Lakshminarayanan et al., 2017, "Simple and scalable
predictive uncertainty estimation using deep ensembles", section 2.4) is the mean over networks of

    softmax(z_m / T_m),    z_m the outputs that answers are among, T_m the network's temperature.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from bayesrep.errors import PredictionError
from bayesrep.studies.validation import classifier_violations
from bayesrep.types import Ints
from bayesrep.vision.classes import Classes
from bayesrep.vision.forward import TopFive, compute_probabilities, rank_probabilities
from bayesrep.vision.logits import LogitsFile


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Networks with kept outputs on the same images; or one network."""

    members: tuple[LogitsFile, ...]  # kept outputs of each network
    temperatures: tuple[float, ...]  # temperature of each network, by which its outputs are divided

    @property
    def identity(self) -> dict[str, str]:
        """Facts on how answers are made; if networks differ, of each in turn."""
        facts: list[dict[str, Any]] = [
            {**member.identity, "temperature": f"{temperature:.6g}"}
            for member, temperature in zip(self.members, self.temperatures, strict=True)
        ]
        joined: dict[str, str] = {}
        for name in dict.fromkeys(chain.from_iterable(facts)):
            values = [str(each.get(name, "none")) for each in facts]
            joined[name] = values[0] if len(set(values)) == 1 else "; ".join(values)
        if joined["temperature"] == "1":
            del joined["temperature"]
        if len(facts) > 1:
            joined["ensemble"] = f"mean of the softmax probabilities of {len(facts)} networks"
        return joined

    def rank(self, rows: Ints, classes: Classes, device: str) -> TopFive:
        """The likeliest classes by some rows of outputs; each row's do not depend on the others."""
        import torch

        begin = time.perf_counter()
        with torch.inference_mode():
            total: Any = 0
            for member, temperature in zip(self.members, self.temperatures, strict=True):
                values = np.ascontiguousarray(member.values[rows])
                outputs = torch.from_numpy(values).to(device).float()
                total = total + compute_probabilities(outputs / temperature, classes)
            return rank_probabilities(total / len(self.members), begin)


def check_ensembles(ensembles: Mapping[str, Sequence[str]], classifiers: Sequence[str]) -> None:
    """Refuse ensembles without a name of their own, or of fewer than two different networks."""
    for violation in classifier_violations("ensembles", [*classifiers, *ensembles]):
        raise PredictionError(violation)
    for name, members in ensembles.items():
        for violation in classifier_violations(f"ensemble {name!r}", members):
            raise PredictionError(violation)
        if len(members) < 2:
            raise PredictionError("ensemble-of-one", ensemble=name, classifier=members[0])
