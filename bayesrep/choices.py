"""The words that options take, where the room that means something by them is slow to import."""

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class Strategy:
    """A sampler of `bayesrep.fit`, and the length of its chains.

    Its function takes a `bayesrep.inference.methods.Run` and returns `MethodDraws`, in the
    coordinates of `run.tools.density`. Chains, as many and as long as `run.schedule` says, begin by
    its `keys` and have the statistic `diverging`; independent draws are one chain with
    `log_weight`, and attributes `pareto_k` and `ess`. All that is random depends on `run.seed`.
    `run.bar` advances by every step of every chain, or once; `run.times` names what `run.folder`
    keeps.
    """

    method: str  # of `fit`; the posterior records it
    draw: str  # "module:function"
    arguments: tuple[str, ...] = ()  # of `fit` that not all take; "chains" if it makes chains
    stages: int = 1  # runs of all chains
    times: int = 1  # length of chains in multiples of the usual one

    @property
    def takes_chains(self) -> bool:
        """True if its draws are chains, not weighted."""
        return "chains" in self.arguments

    @property
    def description(self) -> str:
        """Beginning of a sentence about its draws."""
        if not self.takes_chains:
            return "Weighted draws of the normal approximation"
        return "Chains" if self.times == 1 else f"Chains {self.times} times as long"


CHAIN_ARGUMENTS = ("chains", "warmup", "target_accept", "max_tree_depth", "dense_mass")
_NUTS_ARGUMENTS = (*CHAIN_ARGUMENTS, "devices", "checkpoint")
STRATEGIES = {
    "nuts": Strategy("nuts", "bayesrep.inference.methods:nuts", _NUTS_ARGUMENTS),
    "laplace": Strategy("laplace", "bayesrep.inference.methods:laplace"),
    "cut": Strategy("nuts", "bayesrep.inference.methods:cut", _NUTS_ARGUMENTS, stages=2),
}
"""Samplers; "cut" is that of a cut feedback. A further one is a line here, and its file."""


def list_methods() -> tuple[str, ...]:
    """List the methods of `bayesrep.fit`."""
    return ("auto", *dict.fromkeys(each.method for each in STRATEGIES.values()))


def find_strategy(method: str, feedback: str = "full") -> Strategy:
    """Find the sampler of a method; of "auto" the one that it ends with."""
    return STRATEGIES["cut" if feedback == "cut" else "nuts" if method == "auto" else method]


def makes_chains(method: object) -> bool:
    """Return whether a method makes chains: False of a name that is no method's."""
    strategy = STRATEGIES.get(str(method))
    return strategy is not None and strategy.takes_chains


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

FEW_REPLICATES = 50  # bootstrap replicates of intervals that are shown unasked: quick and rough
PAPER_REPLICATES = 450  # those of Engstrom et al. (2020)
