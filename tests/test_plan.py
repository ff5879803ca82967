"""Plans: their search, their populations, their fits, and what they refuse."""

import json
import operator
from functools import partial

import numpy as np
import pytest
import zoo
from refusals import check, refusal, refused

import bayesrep
from bayesrep.cli import main
from bayesrep.errors import ClusterError, OptionError
from bayesrep.parallel import open_pool
from bayesrep.planning import (
    Design,
    Law,
    Limits,
    Prices,
    collection_plan,
    design_widths,
    designs,
    leniency_of,
    next_batch,
    plan,
    published_world,
    worlds_of,
)
from bayesrep.planning.design_widths import SimulatedDesigns
from bayesrep.planning.populations import adjusted_accuracies, draw_study
from bayesrep.planning.simulate_design import Outcome, normal_posterior, outcome
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.plan_text import batch_text, plan_facts, plan_text
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
    monkeypatch.setattr(design_widths, "_simulate_one", invented)
    monkeypatch.setattr(
        design_widths, "_simulate_tasks", lambda tasks: [invented(task) for task in tasks]
    )


def planned(**options):
    return plan([WORLD], PRICES, jobs=1, **options)


def test_the_cheapest_design_is_found(fits):
    """A(n) = 2 + 8 / n at 0.06 n + 0.10 an image is cheapest at n = √(8 · 0.10 / (2 · 0.06))."""
    found = planned(width=0.02, answers=(3, *collection_plan.ANSWER_OPTIONS))
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
    assert found.certified == found.studies == collection_plan.PLAN_STUDIES
    # The parabola through five of nine numbers of answers, where fewest are, and studies' noise.
    assert found.correction == pytest.approx(1, abs=0.05)
    moneys = [option.cost for option in found.by_money]
    np.testing.assert_allclose(np.array(moneys) / found.cost, designs.BUDGET_SHARES, rtol=0.01)
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
    text = plan_text(two, PRICES)
    assert "two crowds of 200 workers in all" in text
    odd = planned(width=0.1, workers=41, crowds=2)  # twenty in each
    assert plan_facts(odd, PRICES)["workers"] == 40
    assert {size for _, size, _ in odd.crowds if size} <= {20, 40, 80}


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
    assert "5 answers per image say little" in plan_text(found, PRICES)
    json.dumps(plan_facts(found, Prices(0, 0)), allow_nan=False)


ANSWERS_OUT = "planned-answers-out-of-range"
TOO_SMALL, NO_STUDY = "budget-or-images-too-small", "budget-below-smallest-study"
TOO_FEW_WORKERS = "crowd-below-answers-per-image"


@pytest.mark.parametrize(
    ("options", "rule", "facts"),
    [
        ({"width": None}, "plan-without-width-or-budget", {}),
        ({"width": 0}, "plan-width-out-of-range", {"width_points": 0}),
        ({"width": 2.0}, "plan-width-out-of-range", {"width_points": 200}),
        ({"answers": [1, 5]}, ANSWERS_OUT, {}),
        ({"answers": []}, ANSWERS_OUT, {}),
        ({"workers": 2}, TOO_FEW_WORKERS, {"workers": 2, "crowds": 1}),
        ({"workers": 5, "crowds": 2}, TOO_FEW_WORKERS, {"workers": 5, "crowds": 2}),
        ({"width": None, "limits": Limits(budget=1.0)}, NO_STUDY, {"budget": 1.0}),
        ({"width": None, "limits": Limits(budget=-1.0)}, TOO_SMALL, {}),
        ({"limits": Limits(budget=float("nan"))}, TOO_SMALL, {}),
        ({"limits": Limits(images=3)}, TOO_SMALL, {}),
        ({"studies": 1}, "planned-studies-below-two", {"studies": 1}),
        ({"jobs": 0}, "jobs-below-one", {"jobs": 0}),
        ({"leniency": -1}, "leniency-out-of-range", {"leniency": -1}),
    ],
)
def test_plans_refuse(fits, options, rule, facts):
    with refused(OptionError, rule, facts):
        plan([WORLD], PRICES, **{"width": 0.02, "jobs": 1, **options})


def test_a_cluster_that_is_not_there_is_named(fits):
    with refused(ClusterError, "ray-cluster-unreachable", {"address": "127.0.0.1:1"}):
        plan([WORLD], PRICES, width=0.02, cluster="127.0.0.1:1")


def test_designs_and_prices_refuse():
    with refused(OptionError, "study-design-too-small", {"images": 1_000, "answers": 1}):
        Design(1_000, 1)
    with refused(OptionError, "study-design-too-small", {"images": 19, "answers": 5}):
        Design(19, 5)
    with refused(OptionError, "workers-below-answers", {"workers": 4, "answers": 5}):
        Design(100, 5, 4)
    with refused(OptionError, "crowds-not-one-or-two", {"crowds": 3}):
        Design(100, 5, 10, 3)
    for prices in ((-1, 0), (0, float("nan"))):
        with refused(OptionError, "negative-cost"):
            Prices(*prices)
    with refused(OptionError, "budget-where-all-is-free"):
        plan([WORLD], Prices(0, 0), limits=Limits(budget=5), jobs=1)
    with refused(OptionError, "unknown-world-prior", {"prior": "mnist"}) as error:
        published_world("mnist", 3)
    assert error.value.facts["choices"].startswith("imagenet-v2")


def test_laws_turn_around():
    law = Law(5, 4.0, 0.0001)
    assert law.images(law.width(1_234)) == pytest.approx(1_234)
    assert law.images(0.01) == np.inf
    assert law.width_without_workers(100) == pytest.approx(0.2)


def test_kept_work_is_not_done_again(fits, monkeypatch, tmp_path):
    kept = tmp_path / "kept"
    first = planned(width=0.02, kept=kept)
    fit = next(file for file in kept.iterdir() if file.read_text("utf-8").startswith("["))
    fit.write_text(fit.read_text("utf-8")[:-20], "utf-8")  # cut short
    made = []
    monkeypatch.setattr(
        design_widths, "_simulate_one", lambda task: made.append(task) or invented(task)
    )
    monkeypatch.setattr(design_widths, "_find_slope", None)
    again = planned(width=0.02, kept=kept)
    assert (again.design, again.width, len(made)) == (first.design, first.width, 1)
    other = {"path": str(kept), "setting": "seed", "kept_value": "0", "value": "1"}
    with refused(OptionError, "kept-work-of-another", other):
        planned(width=0.02, kept=kept, seed=1)
    for foreign in ("no JSON\n", "two lines\nof a letter", '{"of": "another"}\n{"key', "[]"):
        for file in (kept / "identity.json", tmp_path / "letter"):
            file.write_text(foreign, "utf-8")
            with refused(OptionError, "kept-work-unreadable"):
                planned(width=0.02, kept=file.parent if file.parent == kept else file)
            assert file.read_text("utf-8") == foreign


@pytest.mark.parametrize("jobs", [1, 2])
def test_work_is_spread(jobs):
    told = []
    with open_pool(jobs) as map_tasks:
        spread = SimulatedDesigns(map_tasks, [WORLD], 0.5, 0, on_progress=told.append).results
        assert spread(operator.neg, [1, 2, 3], ["a", "b", "c"]) == [-1, -2, -3]
        assert spread(operator.neg, [2, 5], ["b", "d"]) == [-2, -5]
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
    with refused(OptionError, "batch-money-not-positive", {"money": 0.0}):
        bought(3, 0.0)
    with refused(OptionError, "batch-answers-cost-nothing"):
        next_batch([WORLD], Prices(0, 1), design=Design(100, 3), width_now=0.1, money=5.0, jobs=1)


# ------------------------------------------------------------------------ populations and fits


@pytest.fixture(scope="module")
def pilot():
    return Fitted(zoo.study("tiny"), zoo.posterior("tiny", **zoo.QUICK))


def test_worlds_are_the_posterior_s_draws(pilot):
    worlds = worlds_of(pilot, count=40, classifiers=10, seed=1)
    draws = pilot.adjusted_draws.reshape(-1, 3)
    for world in worlds[:5]:
        nearest = np.abs(draws - adjusted_accuracies(world)).max(axis=1).min()
        assert nearest < 2e-4  # a curve between nodes
    assert worlds[0].shared_difficulty > 0
    names = pilot.study.classifiers
    assert worlds[0].classifiers == names
    assert len(worlds_of(pilot, count=2, classifiers=2, seed=0)[0].classifiers) == 2
    alone = worlds_of(pilot, count=2, classifiers=1, seed=0)[0]
    assert alone.shared_difficulty == 0


def test_a_study_of_a_world_is_of_its_design(pilot):
    """That its accuracies are the world's is in tests/statistics."""
    (world,) = worlds_of(pilot, count=1, classifiers=3, seed=2)
    drawn = [draw_study(world, Design(200, 3, 20), leniency=0.5, seed=1) for _ in range(2)]
    assert drawn[0].fingerprint() == drawn[1].fingerprint()
    assert drawn[0].reference.correct.shape == (200, 3)
    assert drawn[0].reference.answers is not None
    crowds = draw_study(world, Design(200, 3, 20, 2), leniency=0.5, seed=1)
    names = [set(np.asarray(each.answers.workers)) for each in crowds.datasets.values()]
    assert not names[0] & names[1]


def test_one_outcome(pilot):
    """That it is near what is true, and leniency found, is in tests/statistics."""
    assert leniency_of(pilot) is None
    one = WORLD._replace(classifiers=WORLD.classifiers[:1], curves=WORLD.curves[:, :1])
    for world in (WORLD, one):
        of = {"leniency": 0.6, "seed": 3, "way": "normal"}
        found = outcome(world, Design(200, 5, 50, 2), **of)
        assert found.mean_width > found.alone_width > 0
        assert found.converged == 0
        assert np.isnan(found.pair_width) == (world is one)
    again = outcome(world, Design(200, 5, 50, 2), **of)
    assert {**again._asdict(), "pair_width": 0} == {**found._asdict(), "pair_width": 0}


def test_planned_studies_are_fitted_as_by_default():
    """Both ways learn the correlation; widths within 20 % of each other, and as a real fit's."""
    design = Design(200, 10)
    of = {"leniency": 0.5, "seed": 2}
    study = draw_study(WORLD, design, **of)
    drawn = normal_posterior(study, seed=2)["posterior"]
    fitted = bayesrep.fit(study, method="laplace", seed=2, progress=False)["posterior"]
    sd = [each["bias_corrected_gap"].values.mean(axis=-1).std() for each in (drawn, fitted)]
    assert abs(np.log(sd[0] / sd[1])) < 0.2
    for each in (drawn, fitted):
        assert each["dependence"].values.std() > 0
    planned_width = outcome(WORLD, design, **of, way="laplace").mean_width
    assert planned_width == pytest.approx(2 * 1.96 * sd[1], rel=0.1)


PILOT_COSTS = ["--cost-answer", "0.03", "--cost-image", "0.1", "--quiet"]


@pytest.fixture
def of_a_pilot(tmp_path, monkeypatch):
    """The words of a command about the pilot and its posterior, planned by two studies."""
    quick = partial(plan, answers=[5], studies=2, jobs=1)
    monkeypatch.setattr("bayesrep.planning.plan", quick)
    monkeypatch.setattr("bayesrep.planning.next_batch", partial(next_batch, jobs=1))
    folder = tmp_path / "pilot"
    zoo.study("tiny").write(folder)
    posterior = zoo.posterior_path("tiny", **zoo.QUICK)
    return ["collect", "plan", "--pilot", str(folder), "--posterior", str(posterior), *PILOT_COSTS]


def test_a_plan_from_a_pilot(fits, of_a_pilot, capsys):
    """With real fits, and the pilot's own, it is in tests/statistics."""
    words = [*of_a_pilot, "--width", "8"]
    status = main([*words, "--json"])
    said = capsys.readouterr()
    assert status == 0, said.err
    assert "says little" not in said.err  # of a pilot of 500 images
    facts = json.loads(said.out)
    assert facts["answers"] == 5
    assert facts["width"] <= 0.0801


def test_a_batch_from_a_pilot(fits, of_a_pilot, capsys):
    assert main([*of_a_pilot, "--width", "50", "--batch", "50"]) == 0
    assert capsys.readouterr().out.startswith("Stop: the interval is")
    assert main([*of_a_pilot, "--width", "2", "--batch", "600", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert not facts["stop"]
    widths = [row["width"] for row in facts["rows"]]
    assert widths == sorted(widths)
    assert widths[0] < facts["width"]


PRIOR = ["--prior", "imagenet-v2"]
WIDTH = [*PRIOR, "--width", "1"]
COSTS = ["collect", "plan", "--cost-answer", "0.03", "--cost-image", "0.1", "--quiet"]


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ([], "one-of-pilot-prior"),
        ([*PRIOR, "--pilot", "here"], "one-of-pilot-prior"),
        (PRIOR, "plan-without-width-or-budget"),
        ([*WIDTH, "--batch", "5"], "batch-without-pilot-width"),
        ([*PRIOR, "--posterior", "x"], "posterior-without-pilot"),
        (["--pilot", "nowhere", "--width", "1"], "study-path-missing"),
    ],
)
def test_plan_command_refuses(words, rule):
    facts = {"path": "nowhere"} if rule == "study-path-missing" else {}
    check(refusal([*COSTS, *words]), rule, facts)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--prior", "mnist", "--width", "1"], "invalid choice: 'mnist'"),
    ],
)
def test_plan_command_cannot_read(words, said, capsys):
    assert main([*COSTS, *words]) == 2
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
