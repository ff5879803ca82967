"""What the experiments on all classifiers together compute from their results."""

import numpy as np
import polars as pl
import pytest
import zoo

import bayesrep
from experiments import (
    crowds,
    curve_terms,
    headline,
    hostile,
    known_s,
    public_crowds,
    shared_difficulty,
    slope,
    two_crowds,
)


def test_a_model_of_ones_own_agrees_with_the_fit():
    """A single image's difficulty in the likelihood, or images' weights in the draws."""
    study, posterior = zoo.study("tiny"), zoo.posterior("tiny", **zoo.QUICK)
    fitted = posterior.posterior["adjusted_accuracy"].values.reshape(-1, 3)
    own = shared_difficulty.sample(study, draws=60)
    apart = own.mean(axis=0) - fitted.mean(axis=0)
    assert own.shape == (60, 3)
    assert (np.abs(apart) < 1.5 * fitted.std(axis=0)).all()
    assert (own.std(axis=0) > fitted.std(axis=0) / 3).all()


def test_lines_are_gaps_and_slopes():
    reference = np.array([0.6, 0.7, 0.8])
    found = slope.lines(reference, reference + 0.01, 2 * reference[None] - 0.7)
    np.testing.assert_allclose(found["mean gap"], 0.0, atol=1e-12)
    np.testing.assert_allclose(found["slope"], 2.0)
    np.testing.assert_allclose(found["population gap"], 0.01)


def test_the_table_of_slopes_names_every_method():
    row = {"mean gap": [0.1, None, None], "slope": [1.1, 1.0, 1.2]}
    found = {
        "methods": dict.fromkeys(slope.LABELS, row),
        "truth": dict.fromkeys(("mean gap", "slope", "population gap", "population slope"), 0.04),
    }
    text = slope.table(found)
    assert all(label in text for label in slope.LABELS.values())
    assert "1.100 (1.000 to 1.200)" in text
    assert slope.draw(found) is not None


def test_crowds_are_means_over_the_studies_of_a_scenario():
    held = {"single": 0.9, "single_width": 0.05, "mean": 1.0, "mean_width": 0.04, "sd": 0.01}
    results = [
        {
            "key": f"{scenario}/{number}",
            **{kind: {**held, "error": 0.01 * number} for kind in crowds.KINDS},
            "unknown": {**held, "single": 0.5 + 0.1 * number, "error": 0.02},
        }
        for scenario in crowds.SCENARIOS
        for number in range(3)
    ]
    found = crowds.numbers(results)
    facts = found["scenarios"]["one-crowd"]
    assert facts["studies"] == 3
    assert facts["unknown_rmse"] == pytest.approx(0.02)
    assert facts["unknown_z"] == pytest.approx(2)
    assert facts["known_rmse"] == pytest.approx(0.01 * np.sqrt(5 / 3))
    assert facts["unknown_single"] == pytest.approx(0.6)
    assert facts["unknown_single_se"] == pytest.approx(0.1 / np.sqrt(3))
    several = (len(crowds.KINDS) - 1) * len(crowds.SCENARIOS)
    assert crowds.table(found).count("90.0") == several


@pytest.mark.parametrize("scenario", crowds.SCENARIOS)
def test_every_scenario_of_crowds_knows_who_answered(scenario):
    study = crowds.simulated(scenario, 1, 300, 2)
    crowd = bayesrep.describe_crowd(study)
    assert crowd.datasets["workers"].to_list() == [10 if scenario == "two-panels" else 100] * 2
    assert crowd.in_common == {"one-crowd": 100, crowds.ALIKE: 100}.get(scenario, 0)


def _hostile(number, trust):
    part = {"estimate": [0.7, 0.8], "lower": [0.65, 0.75], "upper": [0.75, 0.85 - 0.1 * number]}
    checks = [["Pareto k of the Laplace approximation", "0.8", "< 0.7", "no"]]
    return {
        "key": f"plain 10/{number}",
        "truth": [0.71, 0.79],
        "reference": [0.75, 0.85],
        "measured": [0.76, 0.84],
        "methods": {
            name: {**part, "gap": [0.05, 0.04, 0.06], "slope": [1, 0.9, 1.1]}
            for name in hostile.LABELS
        },
        "converged": True,
        "verdict": {"checks": [*checks, ["curves", "", "", trust]]},
    }


def test_the_battery_counts_what_is_held_and_what_is_said():
    results = [_hostile(0, "yes"), _hostile(1, "with care")]
    found = hostile.numbers(results)["rows"]["plain 10"]
    assert found["scores"]["joint"]["coverage"] == pytest.approx(0.75)
    assert found["scores"]["joint"]["gap_coverage"] == 1
    # The certificate of the draws is no part of the verdict.
    assert found["verdict"] == {"yes": 1, "with care": 1, "no": 0}
    assert found["alarms"] == {"curves": 0.5}
    assert hostile.draw({"rows": {"plain 10": found}}) is not None


def test_a_posterior_made_anew_keeps_the_pages_other_lines():
    results = [_hostile(number, "yes") for number in range(2)]
    page = hostile.numbers(
        [*results, *({**each, "key": f"spike/{i}"} for i, each in enumerate(results))]
    )
    for each in results:
        each["methods"] = {"joint": {**each["methods"]["joint"], "upper": [0.75, 0.7]}}
    found = hostile.with_points(hostile.numbers(results), page)["rows"]
    assert found["spike"] == page["rows"]["spike"]
    ours, before = found["plain 10"]["scores"], page["rows"]["plain 10"]["scores"]
    assert ours["joint"]["coverage"] == pytest.approx(0.5)
    assert {**ours, "joint": None} == {**before, "joint": None}


def _rated(images=400, workers=20):
    """Five answers about every image: place, worker, yes."""
    rng = np.random.default_rng(0)
    rows = [
        (image, int(w), bool(rng.random() < 0.6))
        for image in range(images)
        for w in rng.permutation(workers)[:5]
    ]
    return pl.DataFrame(rows, ("place", "worker", "yes"), orient="row")


@pytest.mark.parametrize("design", two_crowds.DESIGNS)
def test_a_split_is_of_images_and_of_raters(design):
    rng = np.random.default_rng(1)
    answers, correct = _rated(), rng.random((400, 8)) < 0.7
    study = two_crowds.split(answers, correct, 150, design, 3)
    asked = [set(data.answers.asked().tolist()) for data in study.datasets.values()]
    if design == "two crowds":
        assert not set.intersection(*asked)
    else:
        assert asked[0] == asked[1]
    assert len(study.reference.images) == 150
    # Of the second half an answer is taken away for the measurement.
    assert study.replication.shown.mean() < study.reference.shown.mean()
    again = two_crowds.split(answers, correct, 150, design, 3)
    assert again.fingerprint() == study.fingerprint()


def test_what_two_crowds_found_is_a_line_a_design():
    part = {"gap": 0.01, "single": 1.0, "single_width": 0.1, "mean": 1.0, "mean_width": 0.05}
    results = [
        {
            "key": f"{design}/3000/{seed}",
            "classifiers": 45,
            "images": [3000, 2000],
            "annotators": 2.2,
            "converged": True,
            **dict.fromkeys(two_crowds.LABELS, part),
            "known": part | {"gap": 0.01 * seed},
        }
        for design in two_crowds.DESIGNS
        for seed in range(4)
    ]
    found = two_crowds.numbers(results)
    assert found["designs"]["one crowd/3000"]["known_gap"] == pytest.approx(0.015)
    lines = len(two_crowds.DESIGNS) * len(two_crowds.LABELS)
    assert two_crowds.table(found).count("3,000+2,000") == lines
    assert "2.2 to 2.2 answers an image" in two_crowds.remarks(found)


def test_sites_are_sampled_with_as_many_answers_each():
    answers = _rated(100, 60).rename({"place": "item"})
    study = known_s.sampled(answers, 30, 4, 1.0, 0)
    assert [len(data.images) for data in study.datasets.values()] == [30, 30]
    assert all((data.shown == 4).all() for data in study.datasets.values())
    side = {
        "items": 30,
        "error": 0.02,
        "counts": True,
        "counts_width": 0.1,
        "workers": True,
        "workers_width": 0.2,
        "shares": [True, False, True],
    }
    found = known_s.numbers([{"key": f"all/4/{at}", "sides": [side, side]} for at in range(3)])
    assert found["rows"]["all/4"]["shares"] == pytest.approx(2 / 3)
    assert known_s.table(found).splitlines()[-1].startswith("all            4     30")


def test_terms_of_curves_and_what_they_lead_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kept posterior; that they are near what is true is in tests/statistics."""
    posterior = zoo.posterior("tiny", **zoo.QUICK)
    asked = []
    monkeypatch.setattr(bayesrep, "fit", lambda *_, **options: asked.append(options) or posterior)
    study = zoo.study("tiny")
    found = {"one": curve_terms.terms(study), "another": curve_terms.terms(study)}
    assert all(options["slope"] == (2.0, 8.0) for options in asked)
    curve = posterior.posterior["population_curve"].values.reshape(-1, 7)
    for name, draws in (("level", curve[:, 0]), ("slope", curve[:, 1])):
        np.testing.assert_allclose(found["one"][name], [draws.mean(), draws.std()], rtol=1e-3)
    assert found["one"]["classifiers"] == 3
    assert curve_terms.table(found).splitlines()[2].startswith("one ")
    assert "a priori 3 ± 2.5" in curve_terms.remarks(found)


def test_a_study_of_the_prior_has_the_truth_of_its_parameters():
    sizes = {"annotators": 8, "classifiers": 3}
    study, truth = headline.draw_from_prior(3, images=20_000, **sizes)
    # The adjusted accuracy is that under the reference's own frequencies: five standard errors.
    assert np.abs(study.reference.correct.mean(axis=0) - truth).max() < 5 * 0.5 / np.sqrt(20_000)
    again, same = headline.draw_from_prior(3, images=20_000, **sizes)
    assert again.fingerprint() == study.fingerprint()
    np.testing.assert_array_equal(same, truth)


def test_halves_of_a_public_crowd_differ_by_what_is_said_of_them():
    rng = np.random.default_rng(2)
    rated = pl.DataFrame(
        {
            "item": [f"i{at}" for at in np.repeat(np.arange(300), 5)],
            "worker": [f"w{at}" for at in rng.integers(0, 30, 1_500)],
            "yes": rng.random(1_500) < 0.6,
        }
    )
    answers = public_crowds.number_answers(rated)
    assert answers["worker"].max() == 29
    assert not answers.select("item", "worker").is_duplicated().any()
    for design in public_crowds.DESIGNS:
        facts = public_crowds.score(answers, design, 20)
        assert (facts["items"], facts["workers"]) == (300, 30)
        assert abs(facts["z"] - 1) < 3 / np.sqrt(2 * 20)  # three standard errors
        assert design in public_crowds.table({f"alike/{design}": facts})
    first = public_crowds.difference(answers, "two crowds", 4)
    assert first == public_crowds.difference(answers, "two crowds", 4)
