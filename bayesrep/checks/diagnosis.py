"""Diagnosis of a fit: all checks, or what a posterior lacks for one, a verdict, and remedies."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from bayesrep.checks.agreement import judge_agreement
from bayesrep.checks.assumptions import list_assumptions
from bayesrep.checks.chains import check_draws
from bayesrep.checks.classes import judge_classes
from bayesrep.checks.crowd import judge_crowd
from bayesrep.checks.dependence import dependence_table, judge_dependence
from bayesrep.checks.finding import ASSUMED, LEGEND, Finding, Trust
from bayesrep.checks.misfits import judge_predictions
from bayesrep.checks.prior import judge_prior
from bayesrep.checks.width import judge_width
from bayesrep.errors import PosteriorError, plain_text
from bayesrep.posterior.files import order_alike
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, find_group, need_group, read_record
from bayesrep.studies.representation import align_rows, brief, html_table, number
from bayesrep.studies.study import Study, need_study
from bayesrep.studies.vocabulary import Words

VERDICT_TEXTS: Mapping[Trust, str] = {
    "yes": "The adjusted accuracies can be used as they are, if {assumption}.",
    "with care": "The adjusted accuracies can be used with care; read on.",
    "no": "Do not use these adjusted accuracies; read on.",
}
TRUST_RANK: Mapping[Trust, int] = {"yes": 0, "with care": 1, "no": 2}

HEADER = ("check", "found", "wanted", "trust")


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Findings on a fit and the verdict on its adjusted accuracies.

    Attributes
    ----------
    trust
        "yes", "with care" or "no": use of the adjusted accuracies.
    sentences
        Problems and remedies, the worst first.
    checks
        One row a check: `check`, `value`, `wanted`, `trust`.
    predictions
        From `bayesrep.checks.predictions.check_predictions`, or None.
    sensitivity
        From `bayesrep.checks.prior.prior_sensitivity`, or None.
    assumption
        Assumptions that no check can test, as a clause.
    dependence
        From `bayesrep.dependence_table`, or None where the correlation was given.
    """

    trust: Trust
    sentences: tuple[str, ...]
    checks: pl.DataFrame
    predictions: pl.DataFrame | None
    sensitivity: pl.DataFrame | None
    assumption: str
    dependence: pl.DataFrame | None

    def __str__(self) -> str:
        """Format the diagnosis as `bayesrep diagnose` prints it."""
        sentences = [f"- {plain_text(sentence)}" for sentence in self.sentences]
        table, blank = align_rows([HEADER, *self.rows()]), [""] if sentences else []
        return "\n".join([self.verdict, "", *sentences, *blank, table, LEGEND])

    def __repr__(self) -> str:
        sentences, checks = (
            number(len(self.sentences), "sentence"),
            number(len(self.checks), "check"),
        )
        return brief(self, f"trust {self.trust!r}", sentences, checks)

    def _repr_html_(self) -> str:
        return html_table(self.verdict, HEADER, self.rows(), *self.sentences)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """The checks as they are shown: without a yes where something is assumed, not seen."""
        return [
            (check, value, wanted, "–" if value.endswith(ASSUMED) else trust)
            for check, value, wanted, trust in self.checks.iter_rows()
        ]

    @property
    def verdict(self) -> str:
        """Verdict on the adjusted accuracies, in words."""
        return plain_text(
            f"Trust: {self.trust}. {VERDICT_TEXTS[self.trust].format(assumption=self.assumption)}"
        )


def diagnose(posterior: Posterior, study: Study | None = None) -> Diagnosis:
    """Diagnose a fit: run all checks and judge the adjusted accuracies.

    Parameters
    ----------
    posterior
        From `bayesrep.fit` or `bayesrep.read_posterior`, of any method.
    study
        The study that was fitted; with it the agreement of classifiers is checked too.

    Raises
    ------
    PosteriorError
        If there are no adjusted accuracies at all, the posterior does not say how it was made, or
        it is of another study.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.diagnose(posterior, study).trust
    'yes'
    """
    group = find_group(posterior, "posterior")
    if group is None or "adjusted_accuracy" not in group:
        raise PosteriorError("posterior-without-adjusted-accuracy")
    return examine(posterior, None if study is None else Fitted(need_study(study), posterior))


def examine(
    posterior: Posterior, fitted: Fitted | None, *, with_agreement: bool = True
) -> Diagnosis:
    """Diagnose a posterior, and together with its study if this is given."""
    group = need_group(posterior, "posterior", "adjusted_accuracy")
    words = read_record(posterior).words if fitted is None else fitted.words
    # Checks read several groups side by side: classifiers must be in one order.
    posterior = order_alike(posterior) if fitted is None else fitted.posterior
    adjusted = group["adjusted_accuracy"].values if fitted is None else fitted.draws_over_crowds
    findings = [
        *check_draws(posterior),
        judge_width(adjusted, words),
        _check_advice(str(group.attrs.get("advice", "")), words),
    ]
    predictions, misfits = judge_predictions(posterior, words)
    findings += misfits
    if fitted is not None:
        if with_agreement and fitted.adjusted_draws.shape[-1] > 1:
            findings.append(judge_agreement(fitted))
        findings += [*judge_crowd(fitted), *judge_classes(fitted)]
    sensitivity, on_prior = judge_prior(posterior, words)
    dependence = dependence_table(posterior)
    findings += on_prior, judge_dependence(posterior, dependence, words)
    ordered = sorted(findings, key=lambda finding: -TRUST_RANK[finding.trust])
    columns = ("check", "value", "wanted", "trust")
    return Diagnosis(
        trust=ordered[0].trust,
        sentences=tuple(finding.sentence for finding in ordered if finding.sentence),
        checks=pl.DataFrame({name: [getattr(f, name) for f in findings] for name in columns}),
        predictions=predictions,
        sensitivity=sensitivity,
        assumption=list_assumptions(posterior, fitted),
        dependence=dependence,
    )


def _check_advice(advice: str, words: Words) -> Finding:
    check = "annotators identify the mixtures"
    if not advice:
        return Finding(check, "yes", "yes")
    sentence = (
        f"{advice} More {words.annotators} per {words.image} would help; more {words.images} or "
        "draws would not."
    )
    return Finding(check, "no", "yes", "with care", sentence)
