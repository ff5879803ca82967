"""What a sampler is held to as soon as it is registered."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import zoo
from refusals import refused

import bayesrep
from bayesrep.checks.chains import check_draws
from bayesrep.choices import STRATEGIES, Strategy
from bayesrep.errors import OptionError
from bayesrep.files.netcdf import Group, Variable
from bayesrep.inference.methods import laplace
from bayesrep.models import MODELS
from bayesrep.posterior.groups import read_record
from bayesrep.posterior.verdict import diagnostics, judge


def deal(run):
    """The draws of Laplace's method, dealt out to chains."""
    position, _, _ = laplace(run)
    shape = run.schedule.chains, run.schedule.draws
    order = np.random.default_rng(run.seed).permutation(np.prod(shape))
    position = jax.tree.map(lambda leaf: leaf[0][order].reshape(*shape, *leaf.shape[2:]), position)
    return position, {"diverging": np.zeros(shape, dtype=bool)}, {}


@pytest.fixture
def study(monkeypatch):
    dealt = Strategy("dealt", f"{__name__}:deal", ("chains", "warmup"))
    monkeypatch.setitem(STRATEGIES, "dealt", dealt)
    return zoo.study("tiny")


def test_a_further_sampler_is_registered_and_that_is_all(study):
    """Recorded by its name and judged as chains, without the trees that NUTS alone has."""
    posterior = bayesrep.fit(study, method="dealt", progress=False)
    same = zoo.posterior("tiny", **zoo.QUICK)
    record = read_record(posterior)
    assert (record.method, record.is_mcmc) == ("dealt", True)
    assert posterior["posterior"].attrs["converged"]
    found = {each.check: each.trust for each in check_draws(posterior)}
    assert set(found) == {
        "chains agree on the adjusted accuracies",
        "chains that stand still or apart",
        "divergent draws",
    }
    draws, others = (
        np.sort(fit["posterior"]["adjusted_accuracy"].values.reshape(-1, 3), axis=0)
        for fit in (posterior, same)
    )
    np.testing.assert_array_equal(draws, others)
    assert bayesrep.diagnose(posterior, study).sentences


@pytest.mark.parametrize(
    ("arguments", "names"), [(("chains",), "diverging"), ((), "log_weight, pareto_k, ess")]
)
def test_a_sampler_is_told_which_statistics_its_draws_lack(study, monkeypatch, arguments, names):
    bare = Strategy("bare", f"{__name__}:draw_nothing", arguments)
    monkeypatch.setitem(STRATEGIES, "bare", bare)
    with refused(OptionError, "sampler-without-statistics", {"draw": bare.draw, "names": names}):
        bayesrep.fit(study, method="bare", progress=False)


def draw_nothing(_):
    return {}, {}, {}


def test_chains_that_all_stand_still_at_one_point_have_not_converged():
    still = Variable(("chain", "draw", "classifier"), np.full((4, 500, 2), 0.7))
    assert not judge(diagnostics(Group({"adjusted_accuracy": still}, {}, {})), 0, 2000).converged


@pytest.mark.parametrize(
    ("argument", "rule"),
    [
        ({"max_tree_depth": 5}, "nuts-settings-without-nuts"),
        ({"checkpoint": "folder"}, "cut-or-checkpoint-without-nuts"),
        ({"feedback": "cut"}, "cut-or-checkpoint-without-nuts"),
    ],
)
def test_what_a_sampler_does_not_take_is_refused(study, argument, rule):
    with refused(OptionError, rule, {"method": "dealt"}):
        bayesrep.fit(study, method="dealt", **argument)


@pytest.mark.parametrize("change", [{"takes_cut": False}, {"mixture_sites": ("weight_logit",)}])
def test_a_model_of_one_piece_is_not_cut(study, monkeypatch, change):
    """Nor one whose mixtures, which a cut holds, are not the first of what is sampled."""
    monkeypatch.setitem(MODELS, "whole", replace(MODELS["joint"], **change))
    with refused(OptionError, "model-takes-no-cut", {"model": "whole"}):
        bayesrep.fit(study, model="whole", feedback="cut")
