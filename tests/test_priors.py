"""Priors that are distributions: what is read, refused and recorded, and the densities of them."""

import json
import re
from dataclasses import asdict, dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats
import zoo
from refusals import refused

import bayesrep
from bayesrep.commands.options import setting
from bayesrep.errors import OptionError, sentences
from bayesrep.inference.data_driven import widen_priors
from bayesrep.inference.problem import pose, programs
from bayesrep.models.curves import OwnLaw, PopulationLaw
from bayesrep.models.model import Form
from bayesrep.models.options import JointOptions
from bayesrep.models.priors import Prior, build_prior, locate

SMALL = {"degree": 8, "terms": 4, "components": 2}
pytestmark = pytest.mark.usefixtures("float64")


# By functions: what is computed while tests are collected is compiled by every process at once.
def mixture():
    return dist.MixtureSameFamily(
        dist.Categorical(probs=jnp.array([0.25, 0.75])),
        dist.Normal(jnp.array([0.0, 2.0]), jnp.array([1.0, 0.5])),
    )


def moved():
    return dist.TransformedDistribution(dist.Gumbel(), dist.transforms.AffineTransform(1.0, 2.0))


WRITTEN = [
    (lambda: dist.StudentT(4, 3, 2.5), "StudentT(df=4.0, loc=3.0, scale=2.5)"),
    (lambda: "StudentT(4, loc=3, scale=2.5)", "StudentT(df=4.0, loc=3.0, scale=2.5)"),
    (lambda: dist.Cauchy(0.1, 1 / 3), "Cauchy(loc=0.1, scale=0.3333333333333333)"),
    (
        moved,
        "TransformedDistribution(base_distribution=Gumbel(loc=0.0, scale=1.0), "
        "transforms=[AffineTransform(loc=1.0, scale=2.0)])",
    ),
    (
        mixture,
        "MixtureSameFamily(mixing_distribution=CategoricalProbs(probs=[0.25, 0.75]), "
        "component_distribution=Normal(loc=[0.0, 2.0], scale=[1.0, 0.5]))",
    ),
]


@pytest.mark.parametrize(("make", "text"), WRITTEN)
def test_a_distribution_is_recorded_as_text_and_read_back_exactly(make, text):
    given = make()
    options = JointOptions(slope=given)
    recorded = json.loads(json.dumps(asdict(options)))
    assert recorded["slope"] == text
    again = JointOptions(**{n: tuple(v) if isinstance(v, list) else v for n, v in recorded.items()})
    assert again == options
    assert (hash(again), repr(again)) == (hash(options), repr(options))  # names of programs
    if not isinstance(given, str):
        at = np.linspace(-5, 5, 11)
        with jax.numpy_rank_promotion("allow"):  # NumPyro's mixtures broadcast
            # Those of the mixture are in 32 bits.
            np.testing.assert_allclose(
                build_prior(text).log_prob(at), given.log_prob(at), rtol=1e-6
            )


@pytest.mark.parametrize("rule", ["prior-not-mean-and-sd", "prior-not-readable"])
def test_what_a_refusal_suggests_is_read_as_it_is_printed(rule):
    """By Python, and by the command line, where a shell takes the quotes."""
    suggested = re.findall(r'"(.*?)"', sentences()[rule])
    assert suggested
    for text in suggested:
        name, value = setting(f"slope={text}")
        assert JointOptions(slope=text) == JointOptions(**{name: value})


def test_forms_of_python_are_read_as_text():
    assert JointOptions(slope="(0, 1)").slope == (0.0, 1.0)
    assert JointOptions(slope="dist.Laplace(0, 1)") == JointOptions(slope=dist.Laplace(0, 1))


def test_normals_are_the_short_form():
    assert JointOptions(slope=dist.Normal(1.0, 2.0)).slope == (1.0, 2.0)
    assert JointOptions(weight=dist.Normal(0.0, 2.0)).weight == 2.0
    assert JointOptions(weight=dist.Normal(1.0, 2.0)).weight == "Normal(loc=1.0, scale=2.0)"
    # A scale of bends is that of a Student t of all together.
    assert JointOptions(bend=dist.Normal(0.0, 0.4)).bend == "Normal(loc=0.0, scale=0.4)"


UNREADABLE = {  # a text, and the reason that is told
    "StudentT(4": None,
    "StudentT(4, 0, -1)": "StudentT distribution got invalid scale parameter",
    "Nromal(0, 1)": "NumPyro has no distribution 'Nromal'; did you mean 'Normal'?",
    "(0, x)": "'x' is not a number",
    "print('here')": None,
    "Normal.sample(0)": None,
    "Normal(True, 1)": "'True' is not a number",
    "spline": None,
    # NumPyro refuses these by exceptions of many types.
    f"Normal(1{'0' * 400}, 1)": None,
    "GaussianRandomWalk(1.0, 5)": None,
    "CAR(0, 0.5, 1, [[0]])": None,
    "EulerMaruyama(0, 1, Normal(0, 1))": None,
    "TransformedDistribution(Normal(0, 1), [ComposeTransform([])])": None,
}
REFUSED = [
    (lambda: {"slope": dist.HalfNormal(1.0)}, "prior-not-of-real-numbers", {"support": "positive"}),
    (lambda: {"level": dist.Poisson(2.0)}, "prior-not-of-real-numbers", {"option": "level"}),
    (
        lambda: {"slope": dist.Normal(jnp.zeros(2), 1.0)},
        "prior-not-of-one-number",
        {"shape": "[2]"},
    ),
    (
        lambda: {"level": dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2))},
        "prior-not-of-one-number",
        {},
    ),
    (
        lambda: {"slope": dist.ImproperUniform(dist.constraints.real, (), ())},
        "prior-not-proper",
        {"prior": "ImproperUniform"},
    ),
    (lambda: {"weight": dist.Delta(0.0)}, "prior-not-proper", {"prior": "Delta"}),
    (lambda: {"slope": "(0, -1)"}, "prior-not-mean-and-sd", {"value": "(0.0, -1.0)"}),
    (lambda: {"weight": "(0, 1)"}, "standard-deviation-not-positive", {"option": "weight"}),
    (lambda: {"components": True}, "model-option-not-whole", {"value": True}),
    (lambda: {"dependence": True}, "option-not-number", {"value": True}),
    (lambda: {"weight": True}, "standard-deviation-not-positive", {"value": True}),
    (lambda: {"level": (True, 1.0)}, "prior-not-mean-and-sd", {}),
    (lambda: {"slope": 3.0}, "prior-not-mean-and-sd", {"value": 3.0}),
    (lambda: {"weight": (0.0, 1.0)}, "standard-deviation-not-positive", {"option": "weight"}),
    (lambda: {"slope": dist.Cauchy(3, 1), "monotone": True}, "monotone-prior-not-normal", {}),
    (lambda: {"classifier_bend": dist.Cauchy(), "monotone": True}, "monotone-prior-not-normal", {}),
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_a_text_that_is_no_prior_is_refused(text):
    told = {"reason": UNREADABLE[text]} if UNREADABLE[text] else {}
    with refused(OptionError, "prior-not-readable", {"option": "slope"} | told) as error:
        JointOptions(slope=text)
    assert error.value.facts["prior"] == text or text != "StudentT(4"


@pytest.mark.parametrize(("options", "rule", "facts"), REFUSED)
def test_what_is_no_prior_is_refused_by_rule(options, rule, facts):
    with refused(OptionError, rule, facts):
        JointOptions(**options())


def test_in_a_class_of_ones_own_the_annotation_says_what_is_a_prior():
    @dataclass(frozen=True)
    class Mine(JointOptions):
        effect: Prior = 0.5
        answer_rho: float = 0.0

    assert Mine().answer_rho == 0.0
    assert Mine(effect="StudentT(4, 0, 1)").effect == "StudentT(df=4.0, loc=0.0, scale=1.0)"
    with refused(OptionError, "standard-deviation-not-positive", {"option": "effect"}):
        Mine(effect=0.0)
    with refused(OptionError, "option-not-number", {"option": "answer_rho"}):
        Mine(answer_rho="StudentT(4, 0, 1)")


def test_a_distribution_of_ones_own_making_cannot_be_recorded():
    class Mine(dist.Normal):
        pass

    with refused(OptionError, "prior-not-writable", {"option": "slope"}):
        JointOptions(slope=Mine(0.0, 1.0))


def test_where_the_model_rests_on_normals_it_says_so():
    study = zoo.cut(zoo.study("tiny"), images=30)
    other = replace(study.reference, name="other", images=[f"o{i}" for i in range(30)])
    third = replace(study, datasets={**study.datasets, "other": other}, truth=None)
    roles = ("reference", "replication", "other")
    problem = pose(
        third, model="joint", options={"location_deviation": dist.Cauchy(0, 0.1)}, datasets=roles
    )
    with refused(OptionError, "prior-of-contrasts-not-normal", {"datasets": 3}):
        programs(problem, problem.data())


def test_terms_with_laws_have_these_and_the_others_what_they_had():
    at = np.array([0.3, 1.2, -0.4, 0.2])
    usual = JointOptions(**SMALL)
    own = JointOptions(**SMALL, slope=dist.Laplace(2.0, 1.5), bend=dist.Normal(0.0, 0.3))
    found = float(PopulationLaw(own.curve_priors()).log_prob(at))
    scale = 0.3 * usual.family().scale
    wanted = scipy.stats.norm(-1, 2).logpdf(at[0]) + scipy.stats.laplace(2, 1.5).logpdf(at[1])
    wanted += scipy.stats.norm(0, scale).logpdf(at[2:]).sum()
    assert found == pytest.approx(wanted, rel=1e-12)
    only = JointOptions(**SMALL, slope=dist.StudentT(4, 3, 2.5))
    changed = PopulationLaw(only.curve_priors()).log_prob(at)
    before = PopulationLaw(usual.curve_priors()).log_prob(at)
    moved = scipy.stats.t(4, 3, 2.5).logpdf(at[1]) - scipy.stats.norm(3, 2.5).logpdf(at[1])
    assert float(changed - before) == pytest.approx(moved, rel=1e-10)

    around, values = jnp.zeros((2, 4)), np.stack([at, 2 * at])
    heavy = JointOptions(
        **SMALL, classifier_level="StudentT(3, 0, 0.5)", classifier_bend="Laplace()"
    )
    law = OwnLaw(around, heavy.curve_priors())
    wanted = scipy.stats.t(3, 0, 0.5).logpdf(values[:, 0])
    wanted += scipy.stats.norm(0, 0.5).logpdf(values[:, 1])
    wanted += scipy.stats.laplace(0, heavy.family().own_scale).logpdf(values[:, 2:]).sum(axis=1)
    np.testing.assert_allclose(law.log_prob(values), wanted, rtol=1e-12)
    for kind, size in ((law, (500, 2, 4)), (PopulationLaw(own.curve_priors()), (500, 4))):
        draws = np.asarray(kind.sample(jax.random.key(1), (500,)))
        assert draws.shape == size
    spread = np.quantile(draws[:, 1], 0.75) - np.quantile(draws[:, 1], 0.25)
    assert spread == pytest.approx(2 * 1.5 * np.log(2), rel=0.2)  # of a Laplace


def every():
    return {
        "first_location": dist.StudentT(5, 0.7, 0.4),
        "log_step": "Laplace(0.4, 0.2)",
        "location_deviation": dist.Cauchy(0, 0.1),
        "weight": dist.Logistic(0, 0.5),
        "group_weight": dist.Laplace(0, 0.3),
        "level": dist.StudentT(4, -1, 2),
        "bend": dist.Laplace(0, 0.3),
        "classifier_level": dist.StudentT(4, 0, 0.7),
        "classifier_group_level": dist.Laplace(0, 0.2),
    }


@pytest.mark.parametrize("groups", [None, "breed"])
def test_the_model_has_the_priors_that_are_named(groups):
    """Its prior at a point is the sum of theirs, by SciPy for those of differences in groups."""
    study = zoo.cut(zoo.study("tiny"), images=60)
    if groups:
        breed = np.where(np.arange(60) % 2, "cat", "dog")
        sets = {r: replace(d, groups={"breed": breed}) for r, d in study.datasets.items()}
        study = replace(study, datasets=sets)
    problem = pose(study, model="joint", options={**SMALL, **every()}, groups=groups)
    data = problem.data()
    density = programs(problem, data).density
    random = np.random.default_rng(0)
    start = problem.model.start(data, problem.options)
    noise = {name: 0.1 * random.standard_normal(np.shape(v)) for name, v in start.items()}
    values = {name: jnp.asarray(value + noise[name]) for name, value in start.items()}
    assert np.isfinite(float(density.potential(density.to_position(values), data)))
    form = Form(3, problem.roles, len(problem.groups))
    usual = pose(study, model="joint", options=SMALL, groups=groups)

    def prior_of(options):
        found = problem.model.log_prior(values, options, form)
        return float(found.shared + found.own.sum())

    less = prior_of(replace(problem.options, location_deviation=0.2))
    deviation = values["location_deviation"]
    moved = scipy.stats.cauchy(0, 0.1).logpdf(deviation) - scipy.stats.norm(0, 0.2).logpdf(
        deviation
    )
    assert prior_of(problem.options) - less == pytest.approx(moved.sum(), rel=1e-9)
    step = prior_of(replace(usual.options, log_step="Laplace(0.4, 0.2)")) - prior_of(usual.options)
    at = values["log_step"]  # of two components, where nothing is taken off
    moved = scipy.stats.laplace(0.4, 0.2).logpdf(at) - scipy.stats.norm(0.4, 0.3).logpdf(at)
    assert step == pytest.approx(moved.sum(), rel=1e-9)
    if groups:
        name = "classifier_group_level"
        shift = values["classifier_group_effect"] - values["group_effect"][None]
        law, normal = scipy.stats.laplace(0, 0.2), scipy.stats.norm(0, 0.25)
        moved = (law.logpdf(shift) - normal.logpdf(shift)).sum()
        found = prior_of(replace(usual.options, **{name: every()[name]})) - prior_of(usual.options)
        assert found == pytest.approx(moved, rel=1e-9)


def test_widths_that_nobody_names_are_told_beside_distributions():
    study = zoo.cut(zoo.study("tiny"), images=60)
    options = {"classifier_level": dist.StudentT(3, 0, 0.01)}
    posed = pose(study, model="joint", options=options)
    widened = widen_priors(posed, options)
    assert widened.options.classifier_level == posed.options.classifier_level
    assert isinstance(widened.options.classifier_slope, float)
    assert locate("Cauchy(2, 3)").location == pytest.approx(2, abs=0.3)
    assert locate("Cauchy(2, 3)").scale == pytest.approx(3 * 2 / 1.349, rel=0.1)


def test_a_distribution_on_the_command_line_is_text():
    assert setting("slope=StudentT(4, 3, 2.5)") == ("slope", "StudentT(4, 3, 2.5)")
    assert setting("slope=3,2.5") == ("slope", (3, 2.5))
    # One that is cut off is still a distribution, and refused as such.
    assert setting("slope=Normal(0, 1") == ("slope", "Normal(0, 1")


def test_a_fit_under_other_priors_is_made_written_and_read(tmp_path):
    study = zoo.study("tiny")
    named = {"slope": dist.StudentT(4, 3, 2.5), "classifier_level": "StudentT(4, 0, 0.75)"}
    prior = bayesrep.prior_predictive(study, draws=200, **SMALL, **named)
    slope = prior["prior"]["population_curve"].values[..., 1].ravel()
    assert np.median(slope) == pytest.approx(3, abs=0.6)
    assert np.abs((slope - 3) / 2.5).max() > 3.3  # tails that 200 normals hardly have
    # Its curves are drawn beside what was observed, and no prediction, as of a posterior.
    drawn = bayesrep.plot_curves(study, prior).spec["datasets"]
    bands = np.array([row["lower"] + row["mean"] + row["upper"] for row in drawn["curve-0"]])
    assert (bands[:, 0] < bands[:, 1]).all()
    assert (bands[:, 1] < bands[:, 2]).all()
    assert (bands[:, 2] - bands[:, 0] > 0.3).all()
    seen = drawn["cells-0"]
    assert sum(row["images"] for row in seen) == len(study.replication.images)
    assert "middles" not in seen[0]
    with pytest.warns(bayesrep.ConvergenceWarning):
        posterior = bayesrep.fit(
            study, method="nuts", chains=1, warmup=25, draws=25, progress=False, **SMALL, **named
        )
    file = tmp_path / "posterior.nc"
    bayesrep.write_posterior(posterior, file)
    recorded = json.loads(bayesrep.read_posterior(file)["posterior"].attrs["options"])
    assert recorded["slope"] == "StudentT(df=4.0, loc=3.0, scale=2.5)"
    again = JointOptions(**{n: tuple(v) if isinstance(v, list) else v for n, v in recorded.items()})
    assert build_prior(again.classifier_level).df == 4.0
