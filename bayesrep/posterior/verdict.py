"""Whether to trust a set of draws, in words."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PosteriorError
from bayesrep.files.netcdf import Group, Variable
from bayesrep.numerics.convergence import convergence
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.shown import number
from bayesrep.studies.statistics import SufficientStatistics

EVERY = ("chain", "draw")
SAME = ("model", "options", "method", "feedback", "statistics_digest", "study_fingerprint")
MAX_RHAT = 1.01
MIN_ESS = 400.0
LEAST_ESS = 100.0  # of a reported quantity: its interval's ends are worth nothing below
MANY_DIVERGENCES = 0.01  # share of the draws
LEAST_BFMI = 0.3
MAX_PARETO_K = 0.7
FEW_ANNOTATORS = 3
MUCH_ELSEWHERE = 0.01  # of the posterior, around other modes than that of the draws
GOOD = "The chains agree: {}, effective sizes and divergences are fine."


@dataclass(frozen=True)
class Verdict:
    """Outcome of the convergence checks.

    Attributes
    ----------
    converged
        True when no check failed.
    sentence
        What failed and what to try, or that nothing did.
    """

    converged: bool
    sentence: str


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """R-hat, bulk and tail ESS of every variable of the posterior.

    Attributes
    ----------
    rhat, ess_bulk, ess_tail
        By the variables' names.
    nested
        Whether R-hat compares groups of chains that began together.
    names
        What the places along dimensions are called.
    """

    rhat: Mapping[str, Variable]
    ess_bulk: Mapping[str, Variable]
    ess_tail: Mapping[str, Variable]
    nested: bool = False
    names: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])

    @property
    def agreement(self) -> str:
        """What R-hat is called."""
        return "nested R-hat" if self.nested else "R-hat"


SOURCE = "adjusted_accuracy"
SHIFTED = ("bias_corrected_gap", "selection_gap")
"""What is an adjusted accuracy less a constant, or a constant less it: as well sampled as that."""


def diagnostics(group: Group) -> Diagnostics:
    """R-hat and effective sample sizes of all variables [chain, draw, ...] of a group.

    Where many chains began together, as the group's attribute `superchains` says, R-hat is nested.
    """
    superchains = int(group.attrs.get("superchains", 0))
    same = [name for name in SHIFTED if name in group and SOURCE in group]
    made = {
        name: _measure_convergence(variable, superchains)
        for name, variable in group.data_vars.items()
        if name not in same
    }
    made |= {name: made[SOURCE] for name in same}

    def collect_diagnostic(kind: int) -> Mapping[str, Variable]:
        return {name: made[name][kind] for name in group.data_vars}

    return Diagnostics(
        *map(collect_diagnostic, range(3)),
        nested=_nests(superchains, group.sizes["chain"]),
        names={name: each.values for name, each in group.coords.items()},
    )


def _nests(superchains: int, chains: int) -> bool:
    return 1 < superchains <= chains


def _measure_convergence(draws: Variable, superchains: int) -> list[Variable]:
    """R-hat, bulk and tail ESS of a variable, with its dimensions."""
    dims, shape = draws.dims[2:], draws.shape[2:]
    values = draws.values.reshape(*draws.shape[:2], math.prod(shape))
    told = superchains if _nests(superchains, len(values)) else 0
    measures = convergence(values, told)
    return [Variable(dims, each.reshape(shape)) for each in measures]


def _worst_entry(
    values: Mapping[str, Variable], names: Mapping[str, NDArray[Any]], *, largest: bool
) -> tuple[str, float]:
    """Name with coordinates and value of the extreme entry; constants (NaN) do not count."""
    label, extreme = "", -np.inf if largest else np.inf
    for name, array in values.items():
        flat = array.values.ravel()
        if np.all(np.isnan(flat)):
            continue
        index = int(np.nanargmax(flat) if largest else np.nanargmin(flat))
        if (flat[index] > extreme) == largest:
            place = np.unravel_index(index, array.shape)
            where = ", ".join(
                str(names[dim][i]) if dim in names else str(i)
                for dim, i in zip(array.dims, place, strict=True)
            )
            label, extreme = (f"{name}[{where}]" if where else name), float(flat[index])
    return label, extreme


def judge(checks: Diagnostics, divergences: int, draws: int) -> Verdict:
    """Turn diagnostics into a verdict with a remedy.

    Parameters
    ----------
    checks
        From `diagnostics`.
    divergences, draws
        Number of divergent draws and of all draws, over chains.
    """
    problems: list[str] = []
    name, value = _worst_entry(checks.rhat, checks.names, largest=True)
    if value > MAX_RHAT:
        problems.append(f"{checks.agreement} of {name} is {value:.3f} (at most {MAX_RHAT} wanted)")
    for kind, sizes in (("bulk", checks.ess_bulk), ("tail", checks.ess_tail)):
        name, value = _worst_entry(sizes, checks.names, largest=False)
        if value < MIN_ESS:
            problems.append(f"{kind} ESS of {name} is {value:.0f} (at least {MIN_ESS:.0f} wanted)")
    if divergences:
        problems.append(f"{divergences} of {draws} draws diverged")
    if not problems:
        return Verdict(converged=True, sentence=GOOD.format(checks.agreement))
    remedy = "run longer (more warmup and draws)"
    if divergences:
        remedy += ", or use fewer mixture components"
    sentence = f"The fit has not converged: {'; '.join(problems)}. Try to {remedy}."
    return Verdict(converged=False, sentence=sentence)


def judge_weights(pareto_k: float, ess: float) -> Verdict:
    """What importance weights say of the draws of an approximation.

    Parameters
    ----------
    pareto_k
        Shape of their tail.
    ess
        Their effective number.
    """
    if pareto_k < MAX_PARETO_K and ess >= MIN_ESS:
        said = (
            "The approximation's draws can be trusted: the Pareto k of their importance weights is "
            f"{pareto_k:.2f} (below {MAX_PARETO_K} wanted) and their effective size {ess:.0f} "
            f"(at least {MIN_ESS:.0f} wanted)."
        )
        return Verdict(converged=True, sentence=said)
    problem = (
        f"Pareto k is {pareto_k:.2f} (below {MAX_PARETO_K} wanted)"
        if not pareto_k < MAX_PARETO_K
        else f"their effective size is {ess:.0f} (at least {MIN_ESS:.0f} wanted)"
    )
    sentence = (
        "The normal approximation is too far from the posterior for its weights to mend it: "
        f"{problem}. Fit with method='nuts'."
    )
    return Verdict(converged=False, sentence=sentence)


def certify_draws(group: Group, stats: Group | None) -> Group:
    """The draws with a certificate of their own, where the fit's is of others.

    Of some of a fit's draws, or of those of several runs, what it said of its own says nothing.

    Parameters
    ----------
    group, stats
        The groups "posterior", of draws [chain, draw, ...], and "sample_stats", if it is there.

    Raises
    ------
    PosteriorError
        If a chain or a draw is there twice, or they are out of order.
    """
    made = group.attrs
    if any((np.diff(group[dim].values) <= 0).any() for dim in EVERY if dim in group):
        raise PosteriorError("posterior-draws-disordered")
    planned = json.loads(str(made.get("schedule", "{}")))
    chains, draws = group.sizes["chain"], group.sizes["chain"] * group.sizes["draw"]
    certified = int(planned.get("chains", 0)) * int(planned.get("draws", 0))
    # Numbers of draws are counted anew where draws are put together: a sampler that stays now and
    # then does not have each of its draws twice.
    counts = [np.unique(chain, return_counts=True)[1] for chain in group[SOURCE].values[:, :, 0]]
    is_repeated = any(len(each) > 1 and each.min() > 1 for each in counts)
    longest = int(planned["draws"]) if certified and made.get("method") == "nuts" else certified
    if is_repeated or 0 < longest < group.sizes["draw"]:
        raise PosteriorError("posterior-draws-disordered")
    if draws == certified or not certified:
        return group
    # ArviZ's `concat` keeps the first run's attributes, and tells of all where they differ.
    several = {n: each for n, each in made.items() if n.startswith("combined_")}
    told = {**made, **{n.removeprefix("combined_"): each for n, each in several.items()}}
    if odd := [name for name in SAME if f"combined_{name}" in several]:
        raise PosteriorError("posterior-of-two-fits", setting=odd[0])
    if len(np.unique(group[SOURCE].values, axis=0)) < chains:
        raise PosteriorError("posterior-chains-repeated")
    ess = float(np.min(told.get("ess", np.inf))) * draws / certified
    if made.get("method") != "nuts":
        pareto_k = float(np.max(told.get("pareto_k", np.inf)))
        verdict = judge_weights(pareto_k, ess)
        if pareto_k < MAX_PARETO_K and ess < MIN_ESS:  # of a good approximation too few are left
            few = f"Their effective size is {ess:.0f} (at least {MIN_ESS:.0f} wanted)."
            verdict = Verdict(converged=False, sentence=few)
    else:
        diverging = 0 if stats is None or "diverging" not in stats else stats["diverging"].values
        alone = Group(group.data_vars, group.coords, {})
        verdict = judge(diagnostics(alone), int(np.sum(diverging)), draws)
    if verdict.converged and draws < MIN_ESS:
        verdict = Verdict(converged=False, sentence=f"At least {MIN_ESS:.0f} draws are wanted.")
    verdict = with_modes(verdict, float(np.max(told.get("elsewhere", 0.0))))
    sentence = f"Of {draws:,} draws, not of the fit's {certified:,}: {verdict.sentence}"
    planned |= {"chains": chains, "draws": group.sizes["draw"]}  # which this certificate is about
    renewed = {"schedule": json.dumps(planned), "superchains": 0} | (
        {"ess": ess} if "ess" in made else {}
    )
    renewed |= {"converged": int(verdict.converged), "verdict": sentence}
    return Group(group.data_vars, group.coords, {**made, **renewed})


def with_modes(verdict: Verdict, elsewhere: float) -> Verdict:
    """The verdict, where a share of the posterior lies around other modes than the draws do."""
    if elsewhere <= MUCH_ELSEWHERE:
        return verdict
    said = "" if verdict.converged else f" {verdict.sentence}"
    sentence = (
        f"The posterior has several modes: about {100 * elsewhere:.0f} % of it lies elsewhere than "
        "the one from which the draws come, so that no interval is valid. Let data sets share "
        f"their components, or fit with fewer.{said}"
    )
    return Verdict(converged=False, sentence=sentence)


def advise(statistics: SufficientStatistics) -> tuple[str, ...]:
    """Sentences on what these data cannot say, however well the chains agree."""
    sentences, words = list[str](), statistics.words
    for role in REQUIRED_ROLES:
        cells = statistics.cells[role]
        typical = int(np.average(cells.shown, weights=cells.images) + 0.5)
        if cells.selection is not None:
            counts = np.arange(typical + 1)
            kept = int(
                (cells.selection.probability(counts, np.full(typical + 1, typical)) > 0).sum()
            )
            if kept <= FEW_ANNOTATORS:
                left = "1 count" if kept == 1 else f"{kept} counts"
                sentences.append(
                    f"The rule by which the {role}'s counts selected its {words.images} "
                    f"({cells.selection.rule}) leaves {left}: of its selection frequencies "
                    f"{'nothing' if kept < 2 else 'hardly anything'} is identified by that, and "
                    "the adjusted accuracies rest on the prior and on the other data set."
                )
        elif typical < FEW_ANNOTATORS:
            sentences.append(
                f"About {number(typical, words.annotator)} per {words.image} of the {role} "
                f"identify {'the mean' if typical == 1 else 'two moments'} of its selection "
                "frequencies and no more: the adjusted accuracies rest on the prior."
            )
    return tuple(sentences)
