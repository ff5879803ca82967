"""Structure, sizes and priors of the joint model, which further models share."""

from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from bayesrep.bounds import is_of_kind, refuse_above
from bayesrep.errors import OptionError
from bayesrep.models.answers import BINOMIAL, AnswerDistribution
from bayesrep.models.curve_bases import CURVE_FAMILIES
from bayesrep.models.curves import Curves, Priors, curve_family, laws_by_term
from bayesrep.models.priors import LARGEST_NUMBER, Prior, locate, parse_prior, shift_prior
from bayesrep.types import no_type_check


@no_type_check
@dataclass(frozen=True)
class JointOptions:
    """Structure, size and priors of the joint model.

    Priors are normal on the scale named, by (mean, sd) or, of differences, by sd; or any
    distribution of NumPyro over real numbers, such as `slope=dist.StudentT(4, 3, 2.5)` or its text
    "StudentT(4, 3, 2.5)", of which the text is kept (`bayesrep.models.priors`).

    Parameters
    ----------
    components
        K, beta components shared by the data sets. `bayesrep.fit` takes more than two, up to four,
        where nobody names a number and the counts insist (`bayesrep.inference.data_driven`).
    shared_components
        False gives every data set components of its own, with the same priors.
    curve
        Family of the accuracy curves: `bernstein`, `spline` or `gp`
        (`bayesrep.models.curves`).
    degree
        d of the Bernstein form. It smooths a curve over about sqrt(s (1 − s) / d).
    terms
        Terms of an accuracy curve on the logit scale: level, slope, bends. Default: 7 for
        `bernstein`, 9 for `spline`, 10 for `gp`.
    monotone
        Only curves that rise with s. Slopes then have log-normal priors of the same median and
        relative spread.
    dependence
        Intraclass correlation ρ of the annotators' answers about one image, where it is known: 0
        where they answer independently, 0.05 to 0.2 where all of them saw the image in one grid
        of images or another context. None: a parameter with a half-normal prior, which a fit
        integrates (`bayesrep.inference.annotators`), and 0 elsewhere.
    dependence_prior
        Scale of this half-normal.
    leniency
        Log odds λ by which the replication's crowd selects images more often than the reference's
        would, where it is known. None: a parameter, which a fit integrates, if the study says that
        two crowds of so many people answered, and 0 elsewhere.
    leniency_prior
        Median of the standard deviation of λ in logits, in place of that of the study's people.
    first_location, log_step
        (mean, sd) of the lowest component's logit mean and of the log steps up to the next ones;
        log √(K − 1) is subtracted from the latter, so that many components stay in reach.
    log_concentration
        (mean, sd) of log(a + b).
    location_deviation, concentration_deviation
        sd of the difference between any two data sets, in logit mean and in log(a + b).
    weight
        sd of a component's log weight relative to the first component's, per data set.
    group_weight
        sd of the same in a group around its data set.
    level, slope
        (mean, sd) of the population curve's first two terms, as benchmarks differ: the terms are
        0.0 and 0.4 for ImageNet's labels by raters, 0.1 and 1.1, 0.5 and 2.5 for two tests of
        inference, −0.2 and 3.5 for CIFAR-10H, −3.0 and 6.1 for simulated studies after ImageNet.
    bend
        Scale of the population curve's bends, which together are a Student t of 4 degrees of
        freedom: how far curves bend is learnt, and most bend little (term r >= 2 of `bernstein`:
        bend / sqrt(r − 1)). A distribution is that of each bend, over the same root.
    classifier_level, classifier_slope, classifier_bend
        sd of a classifier's own terms around the population's, in the same order (term r >= 2 of
        `bernstein`: classifier_bend / (r − 1), up to r = 4; the finer bends all classifiers share).
    group_level, classifier_group_level
        sd of a group's effect on the logit scale, and of a classifier's around it.
    """

    components: int = 2
    shared_components: bool = True
    curve: str = "bernstein"
    degree: int = 32
    terms: int | None = None
    monotone: bool = False
    dependence: float | None = None
    dependence_prior: float = 0.15
    leniency: float | None = None
    leniency_prior: float | None = None
    first_location: Prior = (0.7, 0.5)
    log_step: Prior = (0.4, 0.3)
    log_concentration: Prior = (2.5, 0.6)
    location_deviation: Prior = 0.2
    concentration_deviation: Prior = 0.2
    weight: Prior = 1.0
    group_weight: Prior = 0.5
    level: Prior = (-1.0, 2.0)
    slope: Prior = (3.0, 2.5)
    bend: Prior = 0.4
    classifier_level: Prior = 0.75
    classifier_slope: Prior = 0.5
    classifier_bend: Prior = 0.25
    group_level: Prior = 0.5
    classifier_group_level: Prior = 0.25

    def __post_init__(self) -> None:
        for option in fields(self):
            if option.default is MISSING:  # what a class that adds to these checks itself
                continue
            value = getattr(self, option.name)
            if option.type not in (Prior, "Prior"):
                if option.type != float | None or value is not None:
                    default = 0.0 if option.type == float | None else option.default
                    _check_structure(option.name, value, default)
                continue
            # Bends that are normal are not the Student t that their scale means.
            form = None if option.name == "bend" else option.default
            value = parse_prior(option.name, value, form)
            object.__setattr__(self, option.name, value)
            if not isinstance(value, str):
                _check_prior(option.name, value, option.default)
        if not 1 <= self.components <= LARGEST_COMPONENTS or self.degree < 1:
            raise OptionError(
                "components-or-degree-out-of-range",
                most_components=LARGEST_COMPONENTS,
                components=self.components,
                degree=self.degree,
            )
        if self.dependence is not None and not 0 <= self.dependence < 1:
            raise OptionError("dependence-out-of-range", dependence=self.dependence)
        if not self.dependence_prior > 0:
            raise OptionError("dependence-prior-not-positive", value=self.dependence_prior)
        for name, least in (("leniency", -LARGEST_LENIENCY), ("leniency_prior", 0.0)):
            value = getattr(self, name)
            if value is not None and not least <= value <= LARGEST_LENIENCY:
                between = f"from {least:g} to {LARGEST_LENIENCY:g}"
                raise OptionError(
                    "leniency-option-out-of-range", option=name, range=between, value=value
                )
        refuse_above("degree", self.degree, LARGEST_DEGREE)
        if self.curve not in CURVE_FAMILIES:
            choices = ", ".join(CURVE_FAMILIES)
            raise OptionError("unknown-curve", choices=choices, curve=self.curve)
        least = CURVE_FAMILIES[self.curve].min_terms
        if self.size < least:
            raise OptionError(
                "curve-terms-too-few", curve=self.curve, least=least, terms=self.terms
            )
        refuse_above("terms", self.size, LARGEST_TERMS)
        # A monotone curve's scales are relative to its slope, which a distribution is not.
        if self.monotone:
            for name in RELATIVE_PRIORS:
                if isinstance(getattr(self, name), str):
                    raise OptionError("monotone-prior-not-normal", option=name)
            if locate(self.slope).location <= 0:
                raise OptionError("monotone-slope-not-positive", slope=self.slope)

    @property
    def size(self) -> int:
        """T, terms of a curve."""
        return CURVE_FAMILIES[self.curve].default_terms if self.terms is None else self.terms

    def family(self) -> Curves:
        """The chosen curves' points and basis."""
        return curve_family(self.curve, self.degree, self.size, monotone=self.monotone)

    def answer_distribution(self) -> AnswerDistribution:
        """Distribution of right answers about the images of a cell, for fits and all that reads."""
        return BINOMIAL

    @property
    def log_steps(self) -> Prior:
        """Prior of the log steps between components."""
        return shift_prior(self.log_step, -0.5 * float(np.log(max(self.components - 1, 1))))

    def curve_priors(self) -> Priors:
        """Priors of the curves' terms."""
        family = self.family()
        level, slope, bend = (locate(each) for each in (self.level, self.slope, self.bend))
        mean = np.array([level[0], slope[0], *bend[0] * family.scale])
        population = np.array([level[1], slope[1], *bend[1] * family.scale])
        of_own = (self.classifier_level, self.classifier_slope, self.classifier_bend)
        own_level, own_slope, own_bend = (locate(each).scale for each in of_own)
        own = np.array([own_level, own_slope, *own_bend * family.own_scale])
        if self.monotone:  # relative spreads, and a derivative by s instead of 2 s − 1
            relative = np.where(np.arange(len(mean)) == 0, 1.0, mean[1])
            mean[1] = np.log(2 * mean[1])
            population, own = population / relative, own / relative[: len(own)]
        laws = laws_by_term((self.level, self.slope, self.bend), population)
        return Priors(mean, population, own, laws, laws_by_term(of_own, own))


LARGEST_COMPONENTS = 6
LARGEST_DEGREE = 400
LARGEST_TERMS = 100
LARGEST_LENIENCY = 10.0  # logits
RELATIVE_PRIORS = ("slope", "bend", "classifier_slope", "classifier_bend")
"""Priors that a monotone curve takes relative to the slope."""


def _check_prior(name: str, value: Any, default: Any) -> None:
    """Refuse a prior that is not (mean, sd), or not an sd, as its default is."""
    if not isinstance(default, tuple):
        if not is_of_kind(value, float) or not 0 < value <= LARGEST_NUMBER:
            raise OptionError("standard-deviation-not-positive", option=name, value=value)
    elif (
        not isinstance(value, tuple)
        or len(value) != 2
        or not all(is_of_kind(number, float) for number in value)
        or not abs(value[0]) <= LARGEST_NUMBER
        or not 0 < value[1] <= LARGEST_NUMBER
    ):
        raise OptionError("prior-not-mean-and-sd", option=name, value=value)


def _check_structure(name: str, value: Any, default: Any) -> None:
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise OptionError("option-not-true-or-false", option=name, value=value)
    elif isinstance(default, float):
        if not is_of_kind(value, float):
            raise OptionError("option-not-number", option=name, value=value)
    elif not isinstance(default, str) and not (
        is_of_kind(value, int) or (default is None and value is None)
    ):
        raise OptionError("model-option-not-whole", option=name, value=value)
