"""Checks of the draws, all computed anew: R-hat, ESS, divergences, energy, steps; or weights."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from bayesrep.checks.finding import Finding, missing_finding
from bayesrep.choices import find_strategy
from bayesrep.files.netcdf import Group, Variable
from bayesrep.posterior.groups import Posterior, find_group, need_group, read_record
from bayesrep.posterior.verdict import (
    MAX_DIVERGENT_SHARE,
    MAX_OTHER_MODE_MASS,
    MAX_PARETO_K,
    MAX_RHAT,
    MIN_BFMI,
    MIN_ESS,
    MIN_USABLE_ESS,
    Verdict,
    diagnostics,
    judge,
    judge_weights,
    with_modes,
)
from bayesrep.types import Bool, Float, Floats, Int

REPORTED_VARS = ("adjusted_accuracy", "bias_corrected_gap", "selection_gap")


def check_draws(posterior: Posterior) -> list[Finding]:
    """Check that the draws represent the posterior, by the method that made them."""
    group, record = need_group(posterior, "posterior"), read_record(posterior)
    if not record.is_mcmc:
        return [*_check_modes(group), _check_approximation(record.method, group.attrs)]
    stats = find_group(posterior, "sample_stats")
    findings = [*_check_modes(group), _check_agreement(group), _check_stuck(group)]
    if stats is None:
        return [*findings, missing_finding("divergences, energy and step counts", "sample_stats")]
    has_trees = "max_tree_depth" in find_strategy(record.method).arguments
    checks = {
        "diverging": ("diverging", _check_divergences),
        "energy": ("energy", _check_energy),
        "num_steps": (
            "tree depth",
            partial(_check_steps, thinning=record.thinning, limit=2**record.max_tree_depth - 1),
        ),
    }
    findings += [
        check(stats[name].values)
        if name in stats
        else missing_finding(what, f"sample_stats ({name})")
        for name, (what, check) in checks.items()
        if name == "diverging" or has_trees
    ]
    return findings


def _finite_values(values: Mapping[str, Variable]) -> Floats:
    """Collect diagnostics of the reported quantities; constants have none."""
    parts = [np.ravel(values[name].values) for name in REPORTED_VARS if name in values]
    entries = np.concatenate(parts)
    return entries[np.isfinite(entries)]


def _check_agreement(group: Group) -> Finding:
    """Check R-hat and ESS, separately for reported quantities and for parameters."""
    measures = diagnostics(group)
    # Divergences have a check of their own.
    verdict = judge(measures, 0, 0)
    rhats = _finite_values(measures.rhat)
    sizes = np.concatenate([_finite_values(measures.ess_bulk), _finite_values(measures.ess_tail)])
    check = "chains agree on the adjusted accuracies"
    criterion = f"<= {MAX_RHAT}, >= {MIN_ESS:.0f}"
    if not len(rhats) or not len(sizes):
        sentence = (
            "With one chain nothing shows whether another would have found the same adjusted "
            "accuracies. Fit with chains=4."
        )
        return Finding(check, "one chain", criterion, "with care", sentence)
    rhat, size = float(rhats.max()), float(sizes.min())
    value = f"{measures.agreement} {rhat:.3f}, ESS {size:.0f}"
    if rhat > MAX_RHAT or size < MIN_USABLE_ESS:
        sentence = f"{verdict.sentence} This concerns the adjusted accuracies themselves."
        return Finding(check, value, criterion, "no", sentence)
    if size < MIN_ESS:
        sentence = (
            f"{verdict.sentence} The chains agree on the adjusted accuracies ({measures.agreement} "
            f"{rhat:.3f}), but the ends of their intervals are not settled."
        )
        return Finding(check, value, criterion, "with care", sentence)
    if not verdict.converged:
        sentence = (
            f"{verdict.sentence} The adjusted accuracies themselves are settled ({value}): use "
            "them, not the parameters named."
        )
        return Finding(check, value, criterion, "with care", sentence)
    return Finding(check, value, criterion)


def _check_divergences(diverging: Bool[np.ndarray, "chain draw"]) -> Finding:
    count, total = int(diverging.sum()), diverging.size
    value, check = f"{count} of {total}", "divergent draws"
    if not count:
        return Finding(check, value, "0")
    sentence = (
        f"{count} of {total} draws diverged: the sampler left out a sharply curved part of the "
        "posterior, and intervals may be too narrow. Fit with more warmup, or with fewer mixture "
        "components."
    )
    trust = "no" if count > MAX_DIVERGENT_SHARE * total else "with care"
    return Finding(check, value, "0", trust, sentence)


def energy_fraction(energy: Float[np.ndarray, "chain draw"]) -> Float[np.ndarray, "chain"]:
    """Compute the E-BFMI of every chain (Betancourt 2016): 1 is good, below 0.3 bad."""
    spread = np.square(energy - energy.mean(axis=1, keepdims=True)).sum(axis=1)
    return np.square(np.diff(energy, axis=1)).sum(axis=1) / np.maximum(spread, 1e-300)


def _check_energy(energy: Float[np.ndarray, "chain draw"]) -> Finding:
    fraction = energy_fraction(energy)
    worst, check = float(fraction.min()), "energy (E-BFMI)"
    value, criterion = f"{worst:.2f}", f">= {MIN_BFMI}"
    if worst >= MIN_BFMI:
        return Finding(check, value, criterion)
    sentence = (
        f"Chain {int(fraction.argmin())} explores the tails slowly (E-BFMI {worst:.2f}): intervals "
        "may be too narrow. Fit with more warmup and draws; if that does not help, with fewer "
        "mixture components."
    )
    return Finding(check, value, criterion, "with care", sentence)


def _check_steps(steps: Int[np.ndarray, "chain draw"], *, thinning: int, limit: int) -> Finding:
    """Check steps a transition; thinning sums them, which can hide a single long one."""
    # Trajectories double, so more than half of the limit means a tree of full depth.
    average = steps / thinning
    share, check = float((average > limit / 2).mean()), "steps per transition"
    value, criterion = f"{average.mean():.0f} (limit {limit:,})", f"< {limit // 2}"
    if share <= 0.01:
        return Finding(check, value, criterion)
    sentence = (
        f"In {100 * share:.0f} % of the draws the sampler ran into its limit of {limit:,} steps: "
        "draws are strongly dependent and the fit is slow. Fit with more warmup; then with fewer "
        "components or terms."
    )
    return Finding(check, value, criterion, "with care", sentence)


def stuck_chains(draws: Float[np.ndarray, "chain draw quantity"]) -> list[int]:
    """Find chains of which half the draws repeat the one before, or whose mean is 5 sd apart."""
    stationary = (np.diff(draws, axis=1) == 0).all(axis=2).mean(axis=1) > 0.5
    means = draws.mean(axis=1)
    # Medians: one bad chain must not hide itself by widening the reference.
    sd = np.maximum(np.median(draws.std(axis=1), axis=0), 1e-12)
    distant = (np.abs(means - np.median(means, axis=0)) > 5 * sd).any(axis=1)
    return [int(chain) for chain in np.flatnonzero(stationary | distant)]


def _check_stuck(group: Group) -> Finding:
    stuck = stuck_chains(group["adjusted_accuracy"].values)
    check = "chains that stand still or apart"
    if not stuck:
        return Finding(check, "0", "0")
    chains = ", ".join(map(str, stuck))
    sentence = (
        f"Chain{'s' if len(stuck) > 1 else ''} {chains} stood still or found another mode than "
        "the others: no interval is valid. Fit with another seed and more warmup; if it happens "
        "again, with fewer mixture components."
    )
    return Finding(check, chains, "0", "no", sentence)


def _number(attributes: Mapping[str, Any], name: str) -> float | None:
    """Read an attribute; None if it is missing or no number."""
    value = attributes.get(name)
    return float(value) if isinstance(value, int | float | np.number) else None


def _check_modes(group: Group) -> list[Finding]:
    """Report posterior mass around other modes; no finding if there is none."""
    elsewhere = _number(group.attrs, "elsewhere") or 0.0
    verdict = with_modes(Verdict(converged=True, sentence=""), elsewhere)
    if verdict.converged:
        return []
    value, criterion = f"{100 * elsewhere:.0f} %", f"<= {100 * MAX_OTHER_MODE_MASS:.0f} %"
    return [Finding("posterior around other modes", value, criterion, "no", verdict.sentence)]


def _check_approximation(method: str, attributes: Mapping[str, Any]) -> Finding:
    """Check Pareto k and the effective size of an approximation's importance weights."""
    check = f"Pareto k of the {method.capitalize()} approximation"
    k, ess = _number(attributes, "pareto_k"), _number(attributes, "ess")
    if k is None:
        return missing_finding(check, "attribute pareto_k")
    size = MIN_ESS if ess is None else ess
    verdict = judge_weights(k, size)
    value = f"{k:.2f}" if ess is None else f"{k:.2f}, ESS {ess:.0f}"
    criterion = f"< {MAX_PARETO_K}, >= {MIN_ESS:.0f}"
    if verdict.converged:
        return Finding(check, value, criterion)
    sentence = f"{verdict.sentence} Until then the numbers are good for a quick look only."
    return Finding(check, value, criterion, "with care", sentence)
