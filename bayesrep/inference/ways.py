"""The ways to a posterior, gone one after the other until the draws of one hold."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from bayesrep.errors import OptionError
from bayesrep.inference.assemble import posterior_groups
from bayesrep.inference.cut import cut
from bayesrep.inference.laplace import laplace
from bayesrep.inference.problem import Problem
from bayesrep.inference.run import Drawn, Run, nuts
from bayesrep.inference.schedule import Schedule
from bayesrep.posterior.files import build_tree
from bayesrep.posterior.groups import need_group
from bayesrep.posterior.verdict import Verdict, diagnostics, judge, judge_weights


class Way(NamedTuple):
    """A way to the posterior.

    Attributes
    ----------
    name
        What a model's `methods` call it.
    method
        What the posterior calls it.
    draw
        Makes the draws.
    stages
        How many chains' lengths the progress bar has; 0 where the draws are not those of chains,
        which have to converge.
    times
        How much longer than usual the chains are.
    """

    name: str
    method: str
    draw: Callable[[Run], Drawn]
    stages: int
    times: int = 1

    @property
    def description(self) -> str:
        """What was done, as a sentence begins."""
        if not self.stages:
            return "Weighted draws of the normal approximation"
        return "Chains" if self.times == 1 else f"Chains {self.times} times as long"

    def steps(self, schedule: Schedule) -> int:
        """Length of the progress bar."""
        return max(1, self.stages * schedule.chains * (schedule.warmup + schedule.draws))


METHODS: Mapping[str, Way] = {
    way.name: way
    for way in (
        Way("nuts", "nuts", nuts, 1),
        Way("cut", "nuts", cut, 2),
        Way("laplace", "laplace", laplace, 0),
    )
}
"""By what a model's `methods` call it; "cut" is the method "nuts" with cut feedback."""
LONGER = 1, 4, 16
"""How long chains are made until they agree, where no method is named."""


class Found(NamedTuple):
    """What a way came to: the verdict on its draws, and their groups and attributes, if made."""

    verdict: Verdict
    contents: Mapping[str, Any] = {}
    facts: Mapping[str, Any] = {}


@runtime_checkable  # the tests check every annotation at every call
class Make(Protocol):
    """Goes a way; of one that is not the last, draws that do not hold need not be evaluated."""

    def __call__(self, way: Way, *, last: bool) -> Found:
        """What it came to."""
        ...


def find_first_that_holds(ways: Sequence[Way], make: Make) -> tuple[Found, list[str]]:
    """What the first way came to whose draws hold, or the last; and how those before it failed."""
    way, *others = ways
    found = make(way, last=not others)
    if found.verdict.converged or not others:
        return found, []
    later, tried = find_first_that_holds(others, make)
    return later, [f"{way.description}: {found.verdict.sentence}", *tried]


def go_way(
    way: Way,
    run: Run,
    names: Mapping[str, Any],
    facts: Mapping[str, Any],
    *,
    warmup: int,
    last: bool,
) -> Found:
    """What a way comes to, of which so much warm-up was asked."""
    drawn = way.draw(run)
    # Weights tell for themselves; chains when everything is known of their draws.
    weighed = None if way.stages else judge_weights(**drawn.facts)
    if weighed is not None and not (weighed.converged or last):
        return Found(weighed)
    run.bar.stage("evaluating")
    contents = posterior_groups(
        run.problem, run.tools, run.data, drawn.position, drawn.stats, seed=run.seed
    )
    run.bar.stage("judging")
    made = json.dumps(asdict(replace(run.schedule, warmup=warmup)))
    more = {"method": way.method, "schedule": made, **drawn.facts}
    if way.stages:
        more["superchains"] = run.schedule.superchains
    del drawn  # of ten thousand classifiers nearly a gigabyte
    return Found(weighed or _judge_chains(contents, names, {**facts, **more}), contents, more)


def list_ways(problem: Problem, method: str, feedback: str, *, of_chains: bool) -> Sequence[Way]:
    """What is done until one of them gives draws that hold, the quickest first."""
    chains = METHODS["cut" if feedback == "cut" else "nuts"]
    if method != "auto":
        return [METHODS["laplace"] if method == "laplace" else chains]
    longer = [chains._replace(times=times) for times in LONGER]
    quick = feedback == "full" and "laplace" in problem.model.methods and not of_chains
    return [METHODS["laplace"], *longer] if quick else longer


def refuse_method(problem: Problem, way: Way, method: str, feedback: str) -> None:
    """Refuse a way that the model does not take."""
    if way.name in (known := problem.model.methods):
        return
    allowed = "method=" + " or ".join(repr(name) for name in known if name != "cut")
    allowed += "" if "cut" in known else " with feedback='full'"
    facts = {"model": problem.name, "allowed": allowed, "method": method, "feedback": feedback}
    raise OptionError("method-not-for-model", **facts)


def _judge_chains(
    contents: Mapping[str, Any], names: Mapping[str, Any], facts: Mapping[str, Any]
) -> Verdict:
    """Whether chains agree, by all that is known of their draws."""
    tree = build_tree(contents, names, facts)
    diverging = need_group(tree, "sample_stats")["diverging"].values
    checks = diagnostics(need_group(tree, "posterior"))
    return judge(checks, int(diverging.sum()), diverging.size)
