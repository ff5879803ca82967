"""What to believe of a fit and what to change, in sentences.

Checks that a posterior lacks the groups for are named as missing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from bayesrep.checks.agreement import judge_agreement
from bayesrep.checks.chains import check_draws
from bayesrep.checks.classes import assumed_of_images, judge_classes
from bayesrep.checks.crowd import assumed_of_crowds, judge_crowd
from bayesrep.checks.dependence import assumption, judge_dependence
from bayesrep.checks.finding import Finding, Trust
from bayesrep.checks.predictions import judge_predictions
from bayesrep.checks.prior import judge_prior
from bayesrep.errors import PosteriorError
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, find_group, need_group, recorded
from bayesrep.studies.study import Study

RANK: Mapping[Trust, int] = {"yes": 0, "with care": 1, "no": 2}


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What to believe of a fit.

    Attributes
    ----------
    trust
        Whether to use its adjusted accuracies.
    sentences
        What is not as it should be, the worst first.
    checks
        One row a check: `check`, `value`, `wanted`, `trust`.
    predictions
        From `bayesrep.checks.predictions.check_predictions`, or None.
    sensitivity
        From `bayesrep.checks.prior.prior_sensitivity`, or None.
    assumption
        What no check can see and every answer rests on, as a clause.
    dependence
        From `bayesrep.dependence_band`, or None.
    """

    trust: Trust
    sentences: tuple[str, ...]
    checks: pl.DataFrame
    predictions: pl.DataFrame | None
    sensitivity: pl.DataFrame | None
    assumption: str
    dependence: pl.DataFrame | None


def diagnose(posterior: Posterior, study: Study | None = None) -> Diagnosis:
    """Say what to believe of a fit.

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
    """
    group = find_group(posterior, "posterior")
    if group is None or "adjusted_accuracy" not in group:
        raise PosteriorError("this is not a posterior of bayesrep: it has no adjusted_accuracy")
    return examine(posterior, None if study is None else Fitted(study, posterior))


def examine(
    posterior: Posterior, fitted: Fitted | None, *, with_agreement: bool = True
) -> Diagnosis:
    """Say what to believe of a posterior, and of it and its study together where this is given.

    Parameters
    ----------
    posterior
        With adjusted accuracies.
    fitted
        The same with its study.
    with_agreement
        Whether the agreement of classifiers is checked, which takes longest.
    """
    group = need_group(posterior, "posterior", "adjusted_accuracy")
    findings = [*check_draws(posterior), _check_advice(str(group.attrs.get("advice", "")))]
    predictions, misfits = judge_predictions(posterior)
    findings += misfits
    if fitted is not None:
        if with_agreement and fitted.adjusted.shape[-1] > 1:
            findings.append(judge_agreement(fitted))
        findings += [*judge_crowd(fitted), *judge_classes(fitted)]
    of_crowds = "" if fitted is None else assumed_of_crowds(fitted)
    of_images = assumed_of_images(recorded(posterior).grouping)
    sensitivity, on_prior = judge_prior(posterior)
    band, on_dependence = judge_dependence(posterior)
    findings += on_prior, on_dependence
    ordered = sorted(findings, key=lambda finding: -RANK[finding.trust])
    columns = ("check", "value", "wanted", "trust")
    return Diagnosis(
        trust=ordered[0].trust,
        sentences=tuple(finding.sentence for finding in ordered if finding.sentence),
        checks=pl.DataFrame({name: [getattr(f, name) for f in findings] for name in columns}),
        predictions=predictions,
        sensitivity=sensitivity,
        assumption=_all_of(filter(None, [assumption(posterior), of_crowds, of_images])),
        dependence=band,
    )


def _all_of(clauses: Iterable[str]) -> str:
    """Clauses as one."""
    *others, last = clauses
    return f"{', '.join(others)} and {last}" if others else last


def _check_advice(advice: str) -> Finding:
    check = "annotators identify the mixtures"
    if not advice:
        return Finding(check, "yes", "yes")
    sentence = f"{advice} More annotators per image would help; more images or draws would not."
    return Finding(check, "no", "yes", "with care", sentence)
