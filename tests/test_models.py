"""What every model is held to as soon as it is registered; nothing here knows one by name.

The law of its curves is in test_model_curves.py.
"""

import sys
from dataclasses import replace

import jax
import numpy as np
import pytest
import zoo
from numpyro import handlers
from refusals import refused

import bayesrep
from bayesrep.errors import OptionError
from bayesrep.inference.problem import pose, programs
from bayesrep.models import MODELS
from bayesrep.models.model import Form
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.sections import CurvesSection
from bayesrep.report.sections.section import Source

CLASSIFIERS = 3
CELLS = ("log_mass_0", "log_mass_1", "cell_accuracy")
pytestmark = pytest.mark.usefixtures("float64")


def answered(study, workers=8):
    """The study with its answers dealt out to a panel, whatever the order of the images."""
    datasets = {}
    for role, data in study.datasets.items():
        image = np.repeat(np.arange(len(data.shown)), data.shown)
        number = np.concatenate([np.arange(n) for n in data.shown])
        worker = (number + data.selected[image]) % workers
        answers = bayesrep.WorkerAnswers.of(image, worker, number < data.selected[image])
        datasets[role] = replace(data, answers=answers)
    return replace(study, datasets=datasets)


def with_sides(study, change):
    sides = {
        role: change({name: np.asarray(getattr(data, name)) for name in KEPT})
        for role, data in study.datasets.items()
    }
    return answered(bayesrep.Study.from_arrays(**sides, classifiers=study.classifiers))


KEPT = ("selected", "shown", "correct")


class Case:
    """A model, a small study, and one program: its density with the gradient."""

    def __init__(self, name):
        self.name, self.model = name, MODELS[name]
        self.study = answered(zoo.cut(zoo.study("tiny"), images=60, classifiers=CLASSIFIERS))
        self.problem = pose(self.study, model=name, options={})
        self.options, self.data = self.problem.options, self.problem.data()
        self.density = programs(self.problem, self.data).density
        self.program = jax.jit(jax.value_and_grad(self.density.potential))
        self.start = self.model.start(self.data, self.options)
        self.dims = self.model.dims(self.data, self.options)
        random = np.random.default_rng(0)
        self.values = {
            site: np.asarray(value) + 0.2 * random.standard_normal(np.shape(value))
            for site, value in self.start.items()
        }
        self.trace = {}

        def shapes_only(data):
            with handlers.seed(rng_seed=0):
                self.trace.update(handlers.trace(self.model.function).get_trace(data, self.options))

        jax.eval_shape(shapes_only, self.data)

    @property
    def latent(self):
        return {
            name: site
            for name, site in self.trace.items()
            if site["type"] == "sample" and not site["is_observed"]
        }

    def of(self, study):
        return pose(study, model=self.name, options={}).data()

    def at(self, values, data):
        return self.program(self.density.to_position(values), data)


@pytest.fixture(scope="module", params=MODELS)
def case(request):
    with jax.enable_x64(new_val=True):
        return Case(request.param)


def test_facts_go_together(case):
    model = case.model
    shared = {name for name, site in case.latent.items() if not site["cond_indep_stack"]}
    assert set(model.mixture_sites) & set(case.latent) <= shared
    assert set(model.mixture_sites) & set(case.latent)


def test_sites_are_those_of_the_trace_and_all_have_a_start(case):
    form = Form(CLASSIFIERS, case.problem.roles, 1)
    assert set(case.model.sites(case.options, form)) == set(case.latent)
    for name, site in case.latent.items():
        assert np.shape(case.start[name]) == np.shape(site["value"]), name


def test_dims_name_every_site_and_quantity(case):
    quantities = {n: s for n, s in case.trace.items() if s["type"] == "deterministic"}
    assert set(CELLS) <= set(quantities)
    sizes = {"classifier": CLASSIFIERS, "dataset": 2}
    for name, site in {**case.latent, **quantities}.items():
        shape = np.shape(site["value"])
        if name in CELLS or 0 in shape:
            continue
        dims = case.dims[name]
        assert len(dims) == len(shape), name
        for dim, size in zip(dims, shape, strict=True):
            assert sizes.setdefault(dim, size) == size, (name, dim)
    assert set(case.dims) <= set(case.trace)
    assert case.dims["adjusted_accuracy"] == ("classifier",)


def test_the_prior_is_that_of_the_trace(case):
    form = Form(CLASSIFIERS, case.problem.roles, 1)
    prior = jax.jit(lambda values: case.model.log_prior(values, case.options, form))

    def traced(values):
        with handlers.substitute(data=values), handlers.seed(rng_seed=0):
            trace = handlers.trace(case.model.function).get_trace(case.data, case.options)
        return sum(trace[n]["fn"].log_prob(trace[n]["value"]).sum() for n in case.latent)

    found = prior(case.values)
    assert found.own.shape == (CLASSIFIERS,)
    wanted = float(jax.jit(traced)(case.values))
    assert float(found.shared + found.own.sum()) == pytest.approx(wanted, rel=1e-12)


def test_the_gradient_is_finite_and_neither_gathers_nor_scatters(case):
    value, gradient = case.at(case.start, case.data)
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in gradient.values())
    text = case.program.lower(case.density.to_position(case.start), case.data).as_text()
    assert "scatter" not in text
    assert "gather" not in text


def test_the_order_of_images_does_not_matter(case):
    order = np.random.default_rng(0).permutation(60)
    moved = case.of(with_sides(case.study, lambda side: {n: v[order] for n, v in side.items()}))
    if case.model.crowd is None:
        jax.tree.map(np.testing.assert_array_equal, moved, case.data)
    # Where single images are summed their order is the data's, and sums differ in the last digits.
    here, there = (float(case.at(case.values, data)[0]) for data in (case.data, moved))
    assert here == pytest.approx(there, rel=1e-9)


def test_classifiers_are_told_apart_by_their_answers_alone(case):
    order = np.array([2, 0, 1])
    moved = case.of(
        with_sides(case.study, lambda side: {**side, "correct": side["correct"][:, order]})
    )
    values = {
        name: np.take(value, order, case.dims[name].index("classifier"))
        if "classifier" in case.dims.get(name, ())
        else value
        for name, value in case.values.items()
    }
    assert float(case.at(values, moved)[0]) == pytest.approx(
        float(case.at(case.values, case.data)[0]), rel=1e-12
    )


def test_annotations_are_without_answers(case):
    random = np.random.default_rng(1)
    other = case.of(
        with_sides(
            case.study, lambda side: {**side, "correct": random.random(side["correct"].shape) < 0.5}
        )
    )
    first, second, whole = (
        float(case.at(case.values, data)[0])
        for data in (case.model.annotations(case.data), case.model.annotations(other), case.data)
    )
    assert first == pytest.approx(second, rel=1e-12)
    assert whole > first + 1  # an answer costs log probability


def test_a_further_model_is_registered_and_that_is_all(monkeypatch):
    """Fitted, summarised, diagnosed, checked and drawn by its facts, under a name nobody knows."""
    monkeypatch.setitem(MODELS, "twin", replace(MODELS["joint"]))
    study, joint = zoo.study("tiny"), zoo.posterior("tiny", **zoo.QUICK)
    twin = zoo.posterior("tiny", model="twin", **zoo.QUICK)
    assert twin["posterior"].attrs["model"] == "twin"
    assert bayesrep.diagnose(twin, study).sentences
    one, other = (bayesrep.summarize(study, fit) for fit in (twin, joint))
    assert one.equals(other)
    assert bayesrep.check_agreement(study, twin).summary.height == 4
    drawn = [
        CurvesSection.compute(Source(study, Fitted(study, fit))).bands for fit in (twin, joint)
    ]
    np.testing.assert_array_equal(*drawn)


def test_names_of_our_models_stay_ours():
    with refused(OptionError, "model-name-taken", {"model": "joint"}):
        MODELS["joint"] = replace(MODELS["workers"])
    with pytest.raises(KeyError):
        MODELS["probit"]
    assert len(MODELS) == len(list(MODELS))


def install(folder, package, name):
    """A package with a model as an entry point, as pip leaves it."""
    made = "from bayesrep.models import MODELS\n\nMODEL = MODELS['joint']\n"
    (folder / f"{package}.py").write_text(made)
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[bayesrep.models]\n{name} = {package}:MODEL\n")


def test_an_installed_package_has_models(tmp_path, monkeypatch):
    """Looked for where the name is asked for, and loaded where the model is."""
    install(tmp_path, "modelhouse", "polished")
    install(tmp_path, "jointhouse", "joint")  # ours stays ours
    monkeypatch.syspath_prepend(tmp_path)
    before = set(MODELS)
    try:
        assert "polished" in MODELS
        assert "modelhouse" not in sys.modules
        assert MODELS["polished"] is MODELS["joint"]
        assert set(MODELS) == before | {"polished"}
        assert "jointhouse" not in sys.modules
    finally:
        MODELS.pop("polished", None)
        sys.modules.pop("modelhouse", None)
    install(tmp_path, "otherhouse", "polished")
    with refused(
        OptionError,
        "model-of-two-packages",
        {"model": "polished", "packages": "modelhouse and otherhouse"},
    ):
        bayesrep.numpyro_model(zoo.study("tiny"), model="polished")
    with pytest.raises(KeyError):
        MODELS["unheard-of"]
