"""Terms of curves beside those of larger studies."""

import bayesrep
from experiments import curve_terms


def test_terms_of_curves_are_near_those_of_larger_studies() -> None:
    study = bayesrep.simulate_study(seed=1, images=2_000, classifiers=4)
    found = curve_terms.terms(study)
    (level, _), (slope, sd) = found["level"], found["slope"]
    # Of a simulated study of 10,000 images and 20 classifiers: -3.0 and 6.1.
    assert -5 < level < -1
    assert abs(slope - 6.1) < 4 * sd
