"""Can I trust this: the verdict, what it rests on, and how to do it again."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from bayesrep.checks.diagnosis import examine
from bayesrep.checks.finding import CHECKS
from bayesrep.choices import makes_chains
from bayesrep.errors import quote_word
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import find_group
from bayesrep.report.figure import Figure
from bayesrep.report.sections.section import Block, Section, Source, Table
from bayesrep.report.sections.trust_figures import (
    chains_figure,
    checks_figure,
    dependence_figure,
    energy_figure,
)
from bayesrep.studies.validation import REQUIRED_ROLES

BADGE_TEXT = {
    "yes": ("verdict-yes", "Yes, if {assumption}. Every check is fine."),
    "with care": ("verdict-care", "With care: something is not as it should be."),
    "no": ("verdict-no", "No: do not use this fit."),
}
CHECK_COLUMNS = ("check", "value", "wanted", "trust")
RECORDED_NAMES = (
    *("model", "method", "options", "schedule", "feedback", "groups", "datasets", "seed"),
    *("precision", "device", "machine", "versions", "study_fingerprint", "statistics_digest"),
)
AGREEMENT_CHECKS = (
    "To also check how far {classifiers} agree beyond what selection explains, run "
    "bayesrep diagnose posterior.nc --study STUDY."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Trust(Section):
    """Verdict on the fit, with its checks."""

    verdict: str  # "yes", "with care" or "no", as `bayesrep.diagnose` has it
    assumption: str  # what no check can see, as a clause
    caveat: str  # why the fit has no answer, as a clause; empty where it has one
    sentences: tuple[str, ...]  # what is not as it should be, or cannot be seen
    unchecked: str  # which check the page leaves out, and the command that makes it
    checks: pl.DataFrame  # check, value, wanted, trust
    rows: Sequence[tuple[str, str, str, str]]  # the same as they are shown
    # Figures of p-values, ranks and energies, as far as the posterior has them
    figures: Sequence[Figure]
    settings: Mapping[str, str]  # name and value of everything that is needed to do it again
    commands: str  # that make the posterior and the page again

    id, short, title, takes = "trust", "Trust", "Can I trust this?", "trust"

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Diagnose the posterior, but for the classifiers' agreement, which takes longer."""
        fitted, words = source.need_posterior, source.words
        diagnosis = examine(fitted.posterior, fitted, with_agreement=False)
        caveat = "this fit is not to be used" if diagnosis.trust == "no" else ""
        if not fitted.group.attrs.get("converged"):
            caveat = "this fit has not converged"
        stats = find_group(fitted.posterior, "sample_stats")
        figures: list[Figure] = []
        if diagnosis.predictions is not None:
            figures.append(checks_figure(diagnosis.predictions, words))
        if len(fitted.adjusted_draws) > 1:
            figures.append(chains_figure(fitted.adjusted_draws.mean(axis=2)))
        if diagnosis.dependence is not None and len(diagnosis.dependence) > 1:
            figures.append(dependence_figure(diagnosis.dependence, words))
        if stats is not None and "energy" in stats:
            figures.append(energy_figure(np.asarray(stats["energy"].values, dtype=float)))
        return cls(
            verdict=diagnosis.trust,
            assumption=diagnosis.assumption,
            caveat=caveat,
            sentences=diagnosis.sentences,
            unchecked=words.fill(AGREEMENT_CHECKS) if len(source.study.classifiers) > 1 else "",
            checks=diagnosis.checks,
            rows=diagnosis.rows(),
            figures=figures,
            settings=_settings(fitted.group.attrs),
            commands=_commands(fitted),
            words=words,
        )

    def blocks(self) -> Iterator[Block]:
        """The verdict in words; at the end of the page what it rests on, and how to repeat it."""
        style, lead = BADGE_TEXT.get(self.verdict, BADGE_TEXT["with care"])
        checks = [(self.words.restate(check, CHECKS), *others) for check, *others in self.rows]
        yield self.block(
            lead=lead.format(assumption=self.assumption),
            lead_class=f"answer {style}",
            sentences=self.sentences,
        )
        yield Block(
            id="checks-section",
            short="Checks",
            title="What the verdict rests on",
            sentences=[self.unchecked] if self.unchecked else (),
            long=True,
            last=True,
            table=Table("checks", "Checks", CHECK_COLUMNS, checks),
            figures=self.figures,
        )
        yield Block(
            id="again",
            short="Settings",
            title="How it was made",
            long=True,
            last=True,
            settings=self.settings,
            repeat=self.commands,
        )

    @property
    def badge(self) -> tuple[str, str]:
        """The verdict in a word or two, and its style."""
        notes = len(self.sentences)
        many = f", {notes} note{'s' if notes != 1 else ''}" if notes else ""
        return BADGE_TEXT.get(self.verdict, BADGE_TEXT["with care"])[0], f"{self.verdict}{many}"


def _settings(attributes: Mapping[Any, Any]) -> dict[str, str]:
    """List the settings recorded in the posterior, in words."""
    texts = {name: str(attributes.get(name, "")) for name in RECORDED_NAMES}
    if not makes_chains(attributes.get("method")):
        del texts["schedule"]
    return {name.replace("_", " "): _in_words(text) for name, text in texts.items() if text}


def _in_words(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items() if each is not None)
    return ", ".join(map(str, value)) if isinstance(value, list) else text


def _commands(fitted: Fitted) -> str:
    """The command lines that make this posterior and the page again."""
    attributes, made_by = fitted.group.attrs, fitted.record
    schedule = json.loads(str(attributes.get("schedule", "{}")))
    roles = list(map(str, json.loads(str(attributes.get("datasets", "[]")))))
    lengths = ("warmup", "draws") if made_by.is_mcmc else ("draws",)
    options = {
        "model": made_by.name,
        "method": attributes.get("asked_method"),
        "chains": schedule.get("chains") if made_by.is_mcmc else None,
        "seed": attributes.get("seed"),
        "groups": made_by.grouping,
        # Not of every fit, and typed only where they are others.
        "datasets": ",".join(roles) if {*roles} - {*REQUIRED_ROLES} else None,
    }
    values = ((name, str(value)) for name, value in options.items() if value is not None)
    words = [f"--{name} {quote_word(value)}" for name, value in values]
    settings = {name: schedule.get(name) for name in lengths}
    settings["feedback"] = "cut" if attributes.get("feedback") == "cut" else None
    words += [f"--set {name}={value}" for name, value in settings.items() if value is not None]
    usual = made_by.model.options()
    for name, value in vars(made_by.options).items():
        if value != getattr(usual, name):
            word = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words.append(f"--set {quote_word(f'{name}={word}')}")
    allowing = "" if attributes.get("converged") else " --allow-unconverged"
    fit = " ".join(["bayesrep fit STUDY --out posterior.nc", *words])
    return f"{fit}\nbayesrep report STUDY posterior.nc --out report.html{allowing}"
