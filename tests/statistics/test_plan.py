"""Plans of real fits: what worlds, studies, approximations and certified widths are near."""

import json
import warnings
from functools import partial

import numpy as np
import pytest

import bayesrep
from bayesrep.cli import main
from bayesrep.errors import ConvergenceWarning
from bayesrep.planning import Design, leniency_of, plan, published_world, worlds_of
from bayesrep.planning.populations import draw_study
from bayesrep.planning.simulate_design import normal_posterior, outcome
from bayesrep.posterior.fitted import Fitted

WORLD = published_world("imagenet-v2", 4)


@pytest.fixture(scope="module")
def pilot():
    study = draw_study(WORLD, Design(2_000, 10), leniency=0.0, seed=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = bayesrep.fit(study, method="laplace", seed=0, progress=False)
    return Fitted(study, posterior)


def test_worlds_are_near_what_is_true(pilot):
    worlds = worlds_of(pilot, count=40, classifiers=10, seed=1)
    for world in worlds[:5]:
        weights = world.weights[0] * world.a[0] / (world.a[0] + world.b[0])
        assert abs(weights.sum() - pilot.study.reference.selected.mean() / 10) < 0.03
    assert worlds[0].shared_difficulty == pytest.approx(0.8, abs=0.08)


def test_a_study_of_a_world_has_its_accuracies(pilot):
    """Four standard errors of 40,000 images: a false alarm in 800 such tests."""
    (world,) = worlds_of(pilot, count=1, classifiers=4, seed=2)
    study = draw_study(world, Design(40_000, 3), leniency=0.0, seed=0)
    measured = pilot.statistics.accuracy("reference")
    np.testing.assert_allclose(study.reference.correct.mean(axis=0), measured, atol=0.01)


def test_normal_approximations_are_near(pilot):
    normal = Fitted(pilot.study, normal_posterior(pilot.study, seed=0))
    found, other = (each.adjusted_draws.reshape(-1, 4) for each in (normal, pilot))
    for one, two in ((found, other), (found.mean(axis=1), other.mean(axis=1))):
        sd = two.std(axis=0)
        assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 0.5 * sd).all()
        np.testing.assert_allclose(one.std(axis=0), sd, rtol=0.2)
    assert not normal.group.attrs["converged"]


def test_leniency_is_found_and_an_outcome_repeats():
    design = Design(1_000, 10, 100, 2)
    study = draw_study(WORLD, design, leniency=0.6, seed=3)
    fitted = Fitted(study, normal_posterior(study, seed=0))
    assert leniency_of(fitted) == pytest.approx(0.6, abs=0.15)
    found = outcome(WORLD, design, leniency=0.6, seed=3, way="normal")
    assert found.mean_width > found.alone_width > 0
    assert found == outcome(WORLD, design, leniency=0.6, seed=3, way="normal")


def test_a_plan_from_a_tiny_pilot(tmp_path, capsys, monkeypatch):
    """Twenty images, from the command line, with real fits."""
    folder = tmp_path / "pilot"
    quick = partial(plan, answers=[5], studies=2, jobs=1)
    monkeypatch.setattr("bayesrep.planning.plan", quick)
    draw_study(WORLD, Design(20, 5), leniency=0.0, seed=1).write(folder)
    words = [
        "collect",
        "plan",
        "--pilot",
        str(folder),
        "--cost-answer",
        "0.03",
        "--cost-image",
        "0.1",
    ]
    words += ["--quiet"]
    status = main([*words, "--width", "8", "--json"])
    said = capsys.readouterr()
    assert status == 0, said.err
    assert "a pilot of 20 images says little" in said.err
    facts = json.loads(said.out)
    assert facts["answers"] == 5
    assert facts["width"] <= 0.0801


def test_a_batch_from_a_pilot(pilot, tmp_path, capsys):
    folder, posterior = tmp_path / "pilot", tmp_path / "posterior.nc"
    pilot.study.write(folder)
    bayesrep.write_posterior(pilot.posterior, posterior)
    words = ["collect", "plan", "--pilot", str(folder), "--posterior", str(posterior)]
    words += ["--cost-answer", "0.03", "--cost-image", "0.1", "--quiet"]
    assert main([*words, "--width", "50", "--batch", "50"]) == 0
    assert capsys.readouterr().out.startswith("Stop: the interval is")
    assert main([*words, "--width", "2", "--batch", "600", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert not facts["stop"]
    widths = [row["width"] for row in facts["rows"]]
    assert widths == sorted(widths)
    assert widths[0] < facts["width"]
