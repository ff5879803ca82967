"""Plans: their search, their populations, their fits, and what they refuse."""

import json
import warnings

import numpy as np
import pytest

import bayesrep
from bayesrep.cli import main
from bayesrep.errors import ConvergenceWarning, OptionError
from bayesrep.lab import (
    Design,
    Law,
    Limits,
    Prices,
    leniency_of,
    next_batch,
    plan,
    planning,
    published_world,
    worlds_of,
)
from bayesrep.lab.outcomes import Outcome, normal_posterior, outcome
from bayesrep.lab.spreading import spread_over
from bayesrep.lab.worlds import adjusted_accuracies, draw_study
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.planning import batch_text, plan_facts, plan_text
from experiments import plans

PRICES = Prices(answer=0.03, image=0.10)
WORLD = published_world("imagenet-v2", 4)


def invented(task):
    """In place of a fit: width² = (2 + 8 / n) / images + β / workers."""
    _, design, _, seed, way = task
    alone = (2 + 8 / design.answers) / design.images
    beta = {1: 0.002, 2: 0.5}[design.crowds]
    added = 0.0 if design.workers is None or way == "normal" else beta / design.workers
    noise = 1 + 0.01 * np.sin(seed)
    wide = float(np.sqrt(alone + added)) * noise
    return list(Outcome(wide, 1.0, np.sqrt(alone) * noise, 1.2 * wide, 0.95, 0.8 * wide, 0.0, 1.0))


@pytest.fixture
def fits(monkeypatch):
    """No fits: what they would find is invented."""
    monkeypatch.setattr(planning, "_one", invented)
    monkeypatch.setattr(planning, "_many", lambda tasks: [invented(task) for task in tasks])


def planned(**options):
    return plan([WORLD], PRICES, jobs=1, **options)


def test_the_cheapest_design_is_found(fits):
    """A(n) = 2 + 8 / n at 0.06 n + 0.10 an image is cheapest at n = √(8 · 0.10 / (2 · 0.06))."""
    found = planned(width=0.02, answers=(3, *planning.ANSWERS))
    best = np.sqrt(8 * 0.10 / (2 * 0.06))  # 2.6: of 3, 5, 8, ... the first
    assert found.design.answers == 3 > best
    wanted = (2 + 8 / 3) / 0.02**2
    assert found.design.images == pytest.approx(wanted, rel=0.05)
    assert found.cost == pytest.approx(found.design.images * (2 * 3 * 0.03 + 0.10))
    assert found.reached
    assert found.width <= 0.02
    assert found.width == pytest.approx(0.02, rel=0.002)
    costs = [option.cost for option in found.options]
    assert costs == sorted(costs)
    assert costs[0] == found.cost
    assert all(option.width <= 0.02 * 1.0005 for option in found.options)
    assert found.certified == found.studies == 20
    assert found.normal_over_certified == pytest.approx(1)
    moneys = [option.cost for option in found.by_money]
    np.testing.assert_allclose(np.array(moneys) / found.cost, planning.BUDGETS, rtol=0.01)
    widths = [option.width for option in found.by_money]
    assert widths == sorted(widths, reverse=True)
    assert found.power[0.02] > found.power[0.005] > 0.05


def test_dear_images_are_asked_about_more_often(fits):
    cheap = plan([WORLD], Prices(0.03, 0.0), width=0.02, jobs=1)
    dear = plan([WORLD], Prices(0.03, 5.0), width=0.02, jobs=1)
    assert cheap.design.answers < dear.design.answers
    assert cheap.design.images > dear.design.images


def test_workers_leave_a_floor(fits):
    one = planned(width=0.02, workers=200)
    assert one.reached
    widths = {(label, size): width for label, size, width in one.crowds}
    assert widths["one crowd for both", 200] == pytest.approx(one.width, rel=1e-6)
    assert widths["a crowd for each", 200] > widths["one crowd for both", 200]
    floor = np.sqrt(0.5 / 100)
    two = planned(width=0.02, workers=200, crowds=2)
    assert not two.reached
    assert two.width == pytest.approx(floor, rel=0.1)
    text = plan_text(two, PRICES, 200, 2)
    assert "two crowds of 200 workers in all" in text


def test_a_budget_is_kept(fits):
    found = planned(limits=Limits(budget=1_000))
    assert found.reached
    assert found.cost <= 1_000
    assert found.wanted is None
    both = planned(width=0.02, limits=Limits(budget=100))
    assert not both.reached
    assert both.cost <= 100
    few = planned(width=0.02, limits=Limits(images=500))
    assert few.design.images == 500
    assert few.design.answers == 60  # what is left to buy is answers
    assert not few.reached


def test_nothing_costs_anything(fits):
    found = plan([WORLD], Prices(0, 0), width=0.02, jobs=1)
    assert found.cost == 0
    assert not found.by_money
    assert found.design.answers == 5  # the fewest answers in all
    assert "5 answers about an image tell 5 moments" in plan_text(found, PRICES, None, 1)
    json.dumps(plan_facts(found, Prices(0, 0)), allow_nan=False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give a width, or a budget, or both"),
        ({"width": 0}, "no 0 points"),
        ({"width": 2.0}, "no 200 points"),
        ({"width": 0.02, "answers": [1, 5]}, "must be 2 at least: one tells a mean"),
        ({"width": 0.02, "answers": []}, "must be 2 at least"),
        ({"width": 0.02, "workers": 2}, "nobody is asked twice"),
        ({"width": 0.02, "workers": 5, "crowds": 2}, "nobody is asked twice"),
        ({"limits": Limits(budget=1.0)}, "does not buy 20 images"),
        ({"limits": Limits(budget=-1.0)}, "budget must be above 0"),
        ({"width": 0.02, "limits": Limits(images=3)}, "most images at least 20"),
        ({"width": 0.02, "studies": 1}, "studies must be 2"),
        ({"width": 0.02, "jobs": 0}, "jobs must be 1 at least"),
    ],
)
def test_plans_refuse(fits, options, said):
    with pytest.raises(OptionError, match=said):
        plan([WORLD], PRICES, **{"jobs": 1, **options})


def test_designs_and_prices_refuse():
    with pytest.raises(OptionError, match="2 answers about each"):
        Design(1_000, 1)
    with pytest.raises(OptionError, match="20 images"):
        Design(19, 5)
    with pytest.raises(OptionError, match="nobody is asked twice"):
        Design(100, 5, 4)
    with pytest.raises(OptionError, match="crowds must be 1 or 2"):
        Design(100, 5, 10, 3)
    for prices in ((-1, 0), (0, float("nan"))):
        with pytest.raises(OptionError, match="costs must be 0 or more"):
            Prices(*prices)
    with pytest.raises(OptionError, match="where nothing costs anything"):
        plan([WORLD], Prices(0, 0), limits=Limits(budget=5), jobs=1)
    with pytest.raises(OptionError, match="prior must be one of imagenet-v2"):
        published_world("mnist", 3)


def test_laws_turn_around():
    law = Law(5, 4.0, 0.0001)
    assert law.images(law.width(1_234)) == pytest.approx(1_234)
    assert law.images(0.01) == np.inf
    assert law.alone(100) == pytest.approx(0.2)


def test_kept_work_is_not_done_again(fits, monkeypatch, tmp_path):
    kept = tmp_path / "kept.jsonl"
    first = planned(width=0.02, kept=kept)
    whole = kept.read_text("utf-8")
    kept.write_text(whole[:-20], "utf-8")  # the last line cut short
    made = []
    monkeypatch.setattr(
        planning, "_many", lambda tasks: made.append(1) or [invented(each) for each in tasks]
    )
    monkeypatch.setattr(planning, "_one", None)
    again = planned(width=0.02, kept=kept)
    assert (again.design, again.width, len(made)) == (first.design, first.width, 1)
    with pytest.raises(OptionError, match="holds the work of another plan"):
        planned(width=0.02, kept=kept, seed=1)
    kept.write_text("no JSON\n", "utf-8")
    with pytest.raises(OptionError, match="is no file of kept work"):
        planned(width=0.02, kept=kept)


def double(task):
    return 2 * task


@pytest.mark.parametrize("jobs", [1, 2])
def test_work_is_spread(jobs):
    told = []
    with spread_over(jobs=jobs, told=told.append) as spread:
        assert spread(double, [1, 2, 3], ["a", "b", "c"]) == [2, 4, 6]
        assert spread(double, [2, 5], ["b", "d"]) == [4, 10]
    assert sum(told) == 5


def test_the_next_batch(fits):
    """At n = 3 answers tell more than images; at n = 60 images do."""

    def bought(answers, money=200.0):
        return next_batch(
            [WORLD],
            Prices(0.03, 1.0),
            design=Design(1_000, answers),
            width_now=0.1,
            money=money,
            jobs=1,
        )

    few, many = bought(3), bought(60, 2_000.0)
    assert few[0].label != "images"
    assert many[0].label == "images"
    for found in (few, many):
        assert [each.width for each in found] == sorted(each.width for each in found)
        assert all(each.width <= 0.1 for each in found)
    text = batch_text(few, Design(1_000, 3), 0.1, 0.02)
    assert text.startswith("Go on: the interval is 10.00 points wide")
    with pytest.raises(OptionError, match="a batch takes money"):
        bought(3, 0.0)
    with pytest.raises(OptionError, match="no batch is limited"):
        next_batch([WORLD], Prices(0, 1), design=Design(100, 3), width_now=0.1, money=5.0, jobs=1)


# ------------------------------------------------------------------------ populations and fits


@pytest.fixture(scope="module")
def pilot():
    study = draw_study(WORLD, Design(2_000, 10), leniency=0.0, seed=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = bayesrep.fit(study, method="laplace", seed=0, progress=False)
    return Fitted(study, posterior)


def test_worlds_are_the_posterior_s_draws(pilot):
    worlds = worlds_of(pilot, count=40, classifiers=10, seed=1)
    draws = pilot.adjusted.reshape(-1, 4)
    for world in worlds[:5]:
        nearest = np.abs(draws - adjusted_accuracies(world)).max(axis=1).min()
        assert nearest < 2e-4  # a curve between nodes
        weights = world.weights[0] * world.a[0] / (world.a[0] + world.b[0])
        assert abs(weights.sum() - pilot.study.reference.selected.mean() / 10) < 0.03
    assert worlds[0].shared_difficulty == pytest.approx(0.8, abs=0.08)
    names = pilot.study.classifiers
    assert worlds[0].classifiers == names
    assert len(worlds_of(pilot, count=2, classifiers=2, seed=0)[0].classifiers) == 2
    alone = worlds_of(pilot, count=2, classifiers=1, seed=0)[0]
    assert alone.shared_difficulty == 0


def test_a_study_of_a_world_has_its_accuracies(pilot):
    """Four standard errors of 40,000 images: a false alarm in 800 such tests."""
    (world,) = worlds_of(pilot, count=1, classifiers=4, seed=2)
    study = draw_study(world, Design(40_000, 3), leniency=0.0, seed=0)
    measured = pilot.statistics.accuracy("reference")
    np.testing.assert_allclose(study.reference.correct.mean(axis=0), measured, atol=0.01)
    drawn = [draw_study(world, Design(200, 3, 20), leniency=0.5, seed=1) for _ in range(2)]
    assert drawn[0].fingerprint() == drawn[1].fingerprint()
    assert drawn[0].reference.answers is not None
    crowds = draw_study(world, Design(200, 3, 20, 2), leniency=0.5, seed=1)
    names = [set(np.asarray(each.answers.workers)) for each in crowds.datasets.values()]
    assert not names[0] & names[1]


def test_normal_approximations_are_near(pilot):
    normal = Fitted(pilot.study, normal_posterior(pilot.study, seed=0))
    for name in ("together", "adjusted"):
        found, other = (getattr(each, name).reshape(-1, 4) for each in (normal, pilot))
        sd = other.std(axis=0)
        assert (np.abs(found.mean(axis=0) - other.mean(axis=0)) < 0.5 * sd).all()
        np.testing.assert_allclose(found.std(axis=0), sd, rtol=0.2)
    assert not normal.group.attrs["converged"]


def test_one_outcome_and_leniency(pilot):
    design = Design(1_000, 10, 100, 2)
    study = draw_study(WORLD, design, leniency=0.6, seed=3)
    fitted = Fitted(study, normal_posterior(study, seed=0))
    assert leniency_of(fitted) == pytest.approx(0.6, abs=0.15)
    assert leniency_of(pilot) is None
    found = outcome(WORLD, design, leniency=0.6, seed=3, way="normal")
    assert found.mean_width > found.alone_width > 0
    assert found.converged == 0
    assert found == outcome(WORLD, design, leniency=0.6, seed=3, way="normal")
    (one,) = [WORLD._replace(classifiers=WORLD.classifiers[:1], curves=WORLD.curves[:, :1])]
    alone = outcome(one, Design(500, 5), leniency=0.0, seed=0, way="normal")
    assert np.isnan(alone.pair_width)


def test_a_plan_from_a_tiny_pilot(tmp_path, capsys):
    """Twenty images, from the command line, with real fits."""
    folder = tmp_path / "pilot"
    draw_study(WORLD, Design(20, 5), leniency=0.0, seed=1).write(folder)
    words = ["plan", "--pilot", str(folder), "--cost-answer", "0.03", "--cost-image", "0.1"]
    words += ["--answers", "5", "--studies", "2", "--jobs", "1", "--no-progress"]
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
    words = ["plan", "--pilot", str(folder), "--posterior", str(posterior)]
    words += ["--cost-answer", "0.03", "--cost-image", "0.1", "--jobs", "1", "--no-progress"]
    assert main([*words, "--width", "50", "--batch", "50"]) == 0
    assert capsys.readouterr().out.startswith("Stop: the interval is")
    assert main([*words, "--width", "2", "--batch", "600", "--studies", "2", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert not facts["stop"]
    widths = [row["width"] for row in facts["rows"]]
    assert widths == sorted(widths)
    assert widths[0] < facts["width"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "either --pilot or --prior"),
        (["--prior", "imagenet-v2", "--pilot", "here"], "either --pilot or --prior"),
        (["--prior", "imagenet-v2"], "give a width, or a budget"),
        (["--prior", "mnist", "--width", "1"], "invalid choice: 'mnist'"),
        (["--prior", "imagenet-v2", "--width", "1", "--batch", "5"], "--batch goes on from"),
        (["--prior", "imagenet-v2", "--posterior", "x"], "--posterior is a pilot's"),
        (["--prior", "imagenet-v2", "--width", "1", "--answers", "1"], "one tells a mean"),
        (["--prior", "imagenet-v2", "--width", "1", "--answers", "x"], "'x' is not N,N"),
        (["--prior", "imagenet-v2", "--width", "1", "--leniency", "-1"], "a number from 0 to 5"),
        (["--pilot", "nowhere", "--width", "1"], "nowhere"),
        (
            ["--prior", "imagenet-v2", "--width", "1", "--ray", "127.0.0.1:1"],
            "cannot be reached",
        ),
    ],
)
def test_plan_command_refuses(words, said, capsys):
    words = ["plan", "--cost-answer", "0.03", "--cost-image", "0.1", "--no-progress", *words]
    assert main(words) == 2
    assert said in capsys.readouterr().err


# ------------------------------------------------------------------------ the evidence


def test_promised_and_found_are_put_side_by_side():
    made = {"pilot_answers": 5, "wanted": 0.03, "images": 900, "workers": None}
    made |= {"width": 0.03, "single_width": 0.04, "cost": 1.0, "certified": 20, "normal": 1.0}
    made_plans = [{"key": str(n), "answers": answers, **made} for n, answers in enumerate((3, 8))]
    sure = Outcome(0.03, 1.0, 0.03, 0.04, 0.95, 0.02, 0.001, 1.0)._asdict()
    studies = [
        {"plan": 0, **sure, "mean_width": 0.036},
        {"plan": 0, **sure, "mean_width": 0.9, "converged": 0.0, "mean_held": 0.0},
        {"plan": 1, **sure},
        {"plan": 1, **sure, "mean_held": 0.0},
    ]
    found = plans.numbers(made_plans, studies)
    first, second = found["plans"]
    assert (first["ratio"], second["ratio"]) == (pytest.approx(1.2), pytest.approx(1))
    assert (first["held"], first["held_certified"], first["certified_studies"]) == (0.5, 1, 1)
    assert (found["held"], found["within_tenth"]) == (0.5, 1)
    assert (found["many"], found["many_within_tenth"]) == (1, 1)
    assert "3.60" in plans.table(found)
