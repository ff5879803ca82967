"""The simulated study: facts it imitates and a truth that quadrature confirms."""

from typing import get_args

import numpy as np
import pytest
from refusals import refused
from scipy import integrate, stats

from bayesrep import OptionError, simulate_study
from bayesrep.choices import Process
from bayesrep.studies.populations import (
    PROCESS_OF_NAME,
    _calibrate_curves,
    _set_mean,
    published_accuracies,
)


@pytest.fixture(scope="module")
def study():
    return simulate_study()


def test_shipped_study_is_like_the_papers(study):
    names, reference, replication = published_accuracies()
    assert study.classifiers == names
    assert len(names) == 136
    first, second = study.reference, study.replication
    assert first.selected.shape == second.selected.shape == (10_000,)
    assert set(first.shown) == set(second.shown) == {36}
    assert abs((first.selected / 36).mean() - 0.852) < 0.005
    assert abs((second.selected / 36).mean() - 0.807) < 0.005
    assert np.abs(first.correct.mean(axis=0) - reference).max() < 0.01
    assert np.abs(second.correct.mean(axis=0) - replication).max() < 0.01
    gap = study.truth.reference_accuracy - study.truth.adjusted_accuracy
    assert 0.03 < gap.mean() < 0.05


def test_images_share_difficulty(study):
    """Classifiers agree far more than independent ones would, at the same selection count."""
    sure = study.replication.correct[study.replication.selected == 34]
    correlation = np.corrcoef(sure[:, ::15].T)
    assert np.median(correlation[np.triu_indices_from(correlation, 1)]) > 0.2


def test_adjusted_truth_outside_by_adaptive_quadrature():
    """∫ Φ(a + b s) p_ref(s) ds for a logit-normal mixture, over z instead of s."""
    process = PROCESS_OF_NAME["outside"]
    means = {"reference": 0.852, "replication": 0.807}
    mixtures = {r: _set_mean(process, process.mixtures[r], m) for r, m in means.items()}
    target = np.array([0.74])
    _, curves = _calibrate_curves(process, mixtures, np.array([0.78]), np.array([0.65]), target)
    (a, b), mixture = curves[0], mixtures["reference"]

    def integrand(z, location, spread):
        s = 1 / (1 + np.exp(-(location + spread * z)))
        return stats.norm.cdf(a + b * s) * stats.norm.pdf(z)

    parts = [
        w * integrate.quad(integrand, -12, 12, args=(m, sd), epsabs=1e-12)[0]
        for w, m, sd in zip(mixture.weights, mixture.locations, mixture.spreads, strict=True)
    ]
    assert abs(sum(parts) - target[0]) < 1e-8


def test_same_seed_same_study_and_annotations_independent_of_classifiers():
    one, two, few, other = (
        simulate_study(seed=seed, images=300, classifiers=classifiers)
        for seed, classifiers in ((4, 5), (4, 5), (4, 2), (5, 5))
    )
    assert one.fingerprint() == two.fingerprint()
    assert (few.reference.selected == one.reference.selected).all()
    assert other.fingerprint() != one.fingerprint()


def test_ragged_and_many_classifiers():
    study = simulate_study(images=200, annotators=(10, 40), classifiers=300)
    assert study.reference.shown.min() >= 10
    assert study.reference.shown.max() <= 40
    assert len(set(study.classifiers)) == 300


@pytest.mark.parametrize(
    "arguments",
    [{"process": "elsewhere"}, {"images": 0}, {"annotators": (5, 3)}, {"classifiers": 0}],
)
def test_bad_arguments(arguments):
    rule = "unknown-process" if "process" in arguments else "simulated-sizes-out-of-range"
    told = {name: str(v) if isinstance(v, tuple) else v for name, v in arguments.items()}
    with refused(OptionError, rule, told):
        simulate_study(**arguments)


def test_a_simulated_study_says_by_its_name_how_it_was_made():
    names = {
        process: simulate_study(process=process, images=20, classifiers=2).name
        for process in get_args(Process)
    }
    assert names == {
        "outside": "simulated (outside the fitted family)",
        "non-monotone": "simulated (non-monotone curves, outside the fitted family)",
        "inside": "simulated (inside the fitted family)",
    }
