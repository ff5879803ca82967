"""Convergence diagnostics of a set of draws, and their verdict in words."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.choices import makes_chains
from bayesrep.errors import PosteriorError
from bayesrep.files.netcdf import Group, Variable
from bayesrep.numerics.convergence import convergence
from bayesrep.studies.representation import number
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.validation import REQUIRED_ROLES

DRAW_DIMS = ("chain", "draw")
FIT_ATTRS = ("model", "options", "method", "feedback", "statistics_digest", "study_fingerprint")
MAX_RHAT = 1.01
MIN_ESS = 400.0
MIN_USABLE_ESS = 100.0  # below this, ends of intervals are not reported as reliable
MAX_DIVERGENT_SHARE = 0.01
MIN_BFMI = 0.3
MAX_PARETO_K = 0.7
FEW_ANNOTATORS = 3
MAX_OTHER_MODE_MASS = 0.01  # posterior mass around modes that the draws miss
CONVERGED_TEXT = "The chains agree: {}, effective sizes and divergences are fine."


@dataclass(frozen=True)
class Verdict:
    """Outcome of the convergence checks."""

    converged: bool  # no check failed
    sentence: str  # the checks that failed and a remedy, or that none did


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """R-hat, bulk and tail ESS of every variable of the posterior, by name."""

    rhat: Mapping[str, Variable]
    ess_bulk: Mapping[str, Variable]
    ess_tail: Mapping[str, Variable]
    nested: bool = False  # R-hat compares superchains, groups of chains with one start
    names: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])

    @property
    def agreement(self) -> str:
        """Name of the R-hat in use."""
        return "nested R-hat" if self.nested else "R-hat"


ACCURACY_VAR = "adjusted_accuracy"
SHIFTED_VARS = ("bias_corrected_gap", "selection_gap")  # affine in adjusted_accuracy: same R-hat


def diagnostics(group: Group) -> Diagnostics:
    """Compute R-hat (nested where chains share starts) and ESS of all variables of a group."""
    superchains = int(group.attrs.get("superchains", 0))
    shifted = [name for name in SHIFTED_VARS if name in group and ACCURACY_VAR in group]
    measures = {
        name: _measure_convergence(variable, superchains)
        for name, variable in group.data_vars.items()
        if name not in shifted
    }
    if ACCURACY_VAR in group and not np.ptp(group[ACCURACY_VAR].values, axis=(0, 1)).any():
        rhat, *sizes = measures[ACCURACY_VAR]  # of chains that all stand still at one point
        measures[ACCURACY_VAR] = [rhat, *(Variable(n.dims, 0 * n.values) for n in sizes)]
    measures |= {name: measures[ACCURACY_VAR] for name in shifted}

    return Diagnostics(
        *({name: measures[name][kind] for name in group.data_vars} for kind in range(3)),
        nested=_nests(superchains, group.sizes["chain"]),
        names={name: each.values for name, each in group.coords.items()},
    )


def _nests(superchains: int, chains: int) -> bool:
    return 1 < superchains <= chains


def _measure_convergence(draws: Variable, superchains: int) -> list[Variable]:
    dims, shape = draws.dims[2:], draws.shape[2:]
    values = draws.values.reshape(*draws.shape[:2], math.prod(shape))
    groups = superchains if _nests(superchains, len(values)) else 0
    measures = convergence(values, groups)
    return [Variable(dims, each.reshape(shape)) for each in measures]


def _worst_entry(
    values: Mapping[str, Variable], names: Mapping[str, NDArray[Any]], *, largest: bool
) -> tuple[str, float]:
    """Find the extreme entry: name with coordinates, and value; constants (NaN) do not count."""
    label, extreme = "", -np.inf if largest else np.inf
    for name, array in values.items():
        flat = array.values.ravel()
        if np.all(np.isnan(flat)):
            continue
        index = int(np.nanargmax(flat) if largest else np.nanargmin(flat))
        if (flat[index] > extreme) == largest:
            # Name an entry by its coordinates, or by its index along dimensions without any.
            place = np.unravel_index(index, array.shape)
            where = ", ".join(
                str(names[dim][i]) if dim in names else str(i)
                for dim, i in zip(array.dims, place, strict=True)
            )
            label, extreme = (f"{name}[{where}]" if where else name), float(flat[index])
    return label, extreme


def judge(checks: Diagnostics, divergences: int, draws: int) -> Verdict:
    """Turn diagnostics into a verdict with a remedy."""
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
        return Verdict(converged=True, sentence=CONVERGED_TEXT.format(checks.agreement))
    remedy = "run longer (more warmup and draws)"
    if divergences:
        remedy += ", or use fewer mixture components"
    sentence = f"The fit has not converged: {'; '.join(problems)}. Try to {remedy}."
    return Verdict(converged=False, sentence=sentence)


def judge_weights(pareto_k: float, ess: float) -> Verdict:
    """Judge the draws of an approximation by their importance weights."""
    if pareto_k < MAX_PARETO_K and ess >= MIN_ESS:
        sentence = (
            "The approximation's draws can be trusted: the Pareto k of their importance weights is "
            f"{pareto_k:.2f} (below {MAX_PARETO_K} wanted) and their effective size {ess:.0f} "
            f"(at least {MIN_ESS:.0f} wanted)."
        )
        return Verdict(converged=True, sentence=sentence)
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
    """Judge draws again that are not exactly those judged: a part of a fit's, or several runs'."""
    attrs = group.attrs
    # Labels of chains and draws rise in every fit, and in subsets that keep their order.
    if any((np.diff(group[dim].values) <= 0).any() for dim in DRAW_DIMS if dim in group):
        raise PosteriorError("posterior-draws-disordered")
    planned = json.loads(str(attrs.get("schedule", "{}")))
    chains, draws = group.sizes["chain"], group.sizes["chain"] * group.sizes["draw"]
    certified = int(planned.get("chains", 0)) * int(planned.get("draws", 0))
    method = attrs.get("method")
    is_mcmc = makes_chains(method)
    # Concatenated draws are renumbered, so repeats show in the values alone: neither a sampler that
    # sometimes rejects nor a resample of weighted draws has all of its draws twice, or four times.
    accuracy = group[ACCURACY_VAR].values
    counts = [np.unique(chain, return_counts=True)[1] for chain in accuracy[:, :, 0]]
    is_repeated = any(
        len(each) > 1 and np.gcd.reduce(each) > 1 and (method != "laplace" or np.ptp(each) > 0)
        for each in counts
    )
    longest = int(planned["draws"]) if certified and is_mcmc else certified
    if is_repeated or 0 < longest < group.sizes["draw"]:
        raise PosteriorError("posterior-draws-disordered")
    # As many draws as the fit had, or its number is not recorded: its verdict stands.
    if draws == certified or not certified:
        return group
    # ArviZ's `concat` keeps the first run's attributes, and lists all where they differ.
    combined = {n: each for n, each in attrs.items() if n.startswith("combined_")}
    merged = {**attrs, **{n.removeprefix("combined_"): each for n, each in combined.items()}}
    if differing := [name for name in FIT_ATTRS if f"combined_{name}" in combined]:
        raise PosteriorError("posterior-of-two-fits", setting=differing[0])
    if len(np.unique(accuracy, axis=0)) < chains:
        raise PosteriorError("posterior-chains-repeated")
    # The ESS shrinks in proportion to the draws.
    ess = float(np.min(merged.get("ess", np.inf))) * draws / certified
    if not is_mcmc:
        pareto_k = float(np.max(merged.get("pareto_k", np.inf)))
        verdict = judge_weights(pareto_k, ess)
        if pareto_k < MAX_PARETO_K and ess < MIN_ESS:  # a good approximation, but too few draws
            sentence = f"Their effective size is {ess:.0f} (at least {MIN_ESS:.0f} wanted)."
            verdict = Verdict(converged=False, sentence=sentence)
    else:
        diverging = 0 if stats is None or "diverging" not in stats else stats["diverging"].values
        draws_only = Group(group.data_vars, group.coords, {})
        verdict = judge(diagnostics(draws_only), int(np.sum(diverging)), draws)
    if verdict.converged and draws < MIN_ESS:
        verdict = Verdict(converged=False, sentence=f"At least {MIN_ESS:.0f} draws are wanted.")
    # The mass around other modes concerns the fit, whichever of its draws are left.
    verdict = with_modes(verdict, float(np.max(merged.get("elsewhere", 0.0))))
    sentence = f"Of {draws:,} draws, not of the fit's {certified:,}: {verdict.sentence}"
    planned |= {"chains": chains, "draws": group.sizes["draw"]}  # which this verdict is about
    updated: dict[str, Any] = {"schedule": json.dumps(planned), "superchains": 0}
    updated |= {"converged": int(verdict.converged), "verdict": sentence}
    updated |= {"ess": ess} if "ess" in attrs else {}
    return Group(group.data_vars, group.coords, {**attrs, **updated})


def with_modes(verdict: Verdict, elsewhere: float) -> Verdict:
    """Reject a verdict if a share of the posterior lies around modes that the draws miss."""
    if elsewhere <= MAX_OTHER_MODE_MASS:
        return verdict
    reason = "" if verdict.converged else f" {verdict.sentence}"
    sentence = (
        f"The posterior has several modes: about {100 * elsewhere:.0f} % of it lies elsewhere than "
        "the one from which the draws come, so that no interval is valid. Let data sets share "
        f"their components, or fit with fewer.{reason}"
    )
    return Verdict(converged=False, sentence=sentence)


def advise(statistics: SufficientStatistics) -> tuple[str, ...]:
    """List in sentences what these data cannot identify, however well the chains agree."""
    sentences, words = list[str](), statistics.words
    for role in REQUIRED_ROLES:
        cells = statistics.cells[role]
        # Rounded mean number of annotators of an image.
        typical = int(np.average(cells.shown, weights=cells.images) + 0.5)
        if cells.selection is not None:
            counts = np.arange(typical + 1)
            chances = cells.selection.probability(counts, np.full(typical + 1, typical))
            n_counts = int((chances > 0).sum())
            if n_counts <= FEW_ANNOTATORS:
                text = "1 count" if n_counts == 1 else f"{n_counts} counts"
                sentences.append(
                    f"The rule by which the {role}'s counts selected its {words.images} "
                    f"({cells.selection.rule}) leaves {text}: of its selection frequencies "
                    f"{'nothing' if n_counts < 2 else 'hardly anything'} is identified by that, "
                    "and the adjusted accuracies rest on the prior and on the other data set."
                )
        elif typical < FEW_ANNOTATORS:
            sentences.append(
                f"About {number(typical, words.annotator)} per {words.image} of the {role} "
                f"identify {'the mean' if typical == 1 else 'two moments'} of its selection "
                "frequencies and no more: the adjusted accuracies rest on the prior."
            )
    return tuple(sentences)
