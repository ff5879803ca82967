"""A posterior and a checkpoint belong to one study: its images, answer by answer.

Studies of equal cells and different answers on each image are the hard case: nothing that looks at
cells alone can tell them apart.
"""

import json

import numpy as np
import pytest
import zoo
from refusals import check, refusal, refused

import bayesrep
from bayesrep import PosteriorError, SufficientStatistics
from bayesrep.checks import compare_fits
from bayesrep.cli import main
from bayesrep.inference import methods
from bayesrep.posterior import read_posterior, write_posterior
from bayesrep.report.figure_registry import FIGURES_BY_NAME
from bayesrep.report.sections import gather

pytestmark = pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")

FEW = zoo.cut(zoo.study("tiny"), images=60)


@pytest.fixture(scope="module")
def study():
    return zoo.study("images")


def with_sets(study, change, **more):
    """The same study with its data sets changed."""
    sides = {}
    for role, data in study.datasets.items():
        names = ("selected", "shown", "correct", "images", "labels", "groups", "name")
        sides[role] = change({name: getattr(data, name) for name in names})
    return bayesrep.Study.from_arrays(**sides, classifiers=study.classifiers, **more)


@pytest.fixture(scope="module")
def other(study):
    made = zoo.study("exchanged")
    assert zoo.study("statistics").digest() == SufficientStatistics.from_study(made).digest()
    assert study.fingerprint() != made.fingerprint()
    return made


@pytest.fixture(scope="module")
def posterior():
    return zoo.posterior("images", **zoo.QUICK)


@pytest.fixture(scope="module")
def of_other():
    return zoo.posterior("exchanged", **zoo.QUICK)


USES = {
    "summarize": bayesrep.summarize,
    "summarize_gaps": bayesrep.summarize_gaps,
    "compare_classifiers": bayesrep.compare_classifiers,
    "rank_classifiers": bayesrep.rank_classifiers,
    "describe_images": bayesrep.describe_images,
    "check_agreement": bayesrep.check_agreement,
    "diagnose": lambda study, posterior: bayesrep.diagnose(posterior, study),
    "report": lambda study, posterior: gather(study, posterior, bootstrap=0),
    **{
        f"figure {name}": figure.draw
        for name, figure in FIGURES_BY_NAME.items()
        if figure.needs_posterior
    },
}


@pytest.mark.parametrize("use", USES)
def test_equal_cells_are_not_the_same_study(other, posterior, use):
    with refused(PosteriorError, "posterior-of-other-images"):
        USES[use](other, posterior)


def test_commands_refuse_it(other, posterior, tmp_path):
    other.write(tmp_path / "study")
    write_posterior(posterior, tmp_path / "p.nc")
    paths = [tmp_path / "study", tmp_path / "p.nc"]
    tables = ("accuracies", "ranks", "pairs", "images")
    for words in (
        *(["summarize", *paths, "--table", table] for table in tables),
        ["report", *paths, "--out", tmp_path / "r.html"],
        ["diagnose", paths[1], "--study", paths[0]],
    ):
        check(refusal(words), "posterior-of-other-images")
    assert not (tmp_path / "r.html").exists()


def reversed_images(sides):
    arrays = ("selected", "shown", "correct", "images", "labels")
    turned = {name: sides[name][::-1] for name in arrays if sides[name] is not None}
    return {**sides, **turned, "groups": {n: v[::-1] for n, v in sides["groups"].items()}}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (reversed_images, "posterior-of-other-images"),
        (
            lambda sides: {**sides, "images": [f"x{name}" for name in sides["images"]]},
            "posterior-of-other-images",
        ),
        (
            lambda sides: {**sides, "correct": ~np.asarray(sides["correct"])},
            "posterior-of-another-study",
        ),
    ],
    ids=["order", "names", "answers"],
)
def test_other_images_are_not_the_same_study(study, posterior, change, rule):
    with refused(PosteriorError, rule):
        bayesrep.summarize(with_sets(study, change), posterior)


def test_what_a_study_is_called_and_where_it_is_kept_does_not_matter(study, posterior, tmp_path):
    renamed = with_sets(study, dict, name="another", provenance={"by": "somebody"})
    wanted = bayesrep.summarize(study, posterior)
    assert bayesrep.summarize(renamed, posterior).equals(wanted)
    renamed.write(tmp_path / "study")
    write_posterior(posterior, tmp_path / "p.nc")
    read = bayesrep.read_study(tmp_path / "study")
    assert bayesrep.summarize(read, read_posterior(tmp_path / "p.nc")).equals(wanted)


def test_from_statistics_only_the_counts_can_be_compared(study, other, posterior):
    one, two = map(SufficientStatistics.from_study, (study, other))
    assert bayesrep.summarize(two, posterior).equals(bayesrep.summarize(one, posterior))
    with refused(PosteriorError, "posterior-of-another-study"):
        bayesrep.summarize(SufficientStatistics.from_study(FEW), posterior)


def test_a_fit_of_statistics_is_one_of_every_study_that_has_them(study, other, posterior, of_other):
    """What classifiers share depends on nothing else; of images the mean correlation is known."""
    of_statistics = zoo.posterior("statistics", **zoo.QUICK)
    assert of_statistics.posterior.attrs["study_fingerprint"] == ""
    for each, fit in ((study, posterior), (other, of_other)):
        one, two = (bayesrep.summarize(each, p) for p in (of_statistics, fit))
        np.testing.assert_array_equal(
            *(p.posterior["population_curve"].values for p in (of_statistics, fit))
        )
        for column in ("adjusted_accuracy", "lower", "upper"):
            np.testing.assert_allclose(one[column], two[column], atol=0.01)
    with refused(PosteriorError, "posterior-of-another-study"):
        bayesrep.summarize(FEW, of_statistics)
    assert len(compare_fits({"a": of_statistics, "b": posterior})) == 2


def test_fits_of_equal_cells_are_not_compared(posterior, of_other):
    named = {"posterior": "a", "other_posterior": "b"}
    with refused(PosteriorError, "fits-of-different-studies", named):
        compare_fits({"a": posterior, "b": of_other})


def test_a_file_of_an_earlier_version_is_refused(study, posterior):
    old = posterior.copy()
    attributes = dict(old.posterior.attrs)
    del old.posterior.attrs["statistics_digest"]
    try:
        with refused(PosteriorError, "posterior-of-unknown-counts"):
            bayesrep.summarize(study, old)
    finally:  # copies of ArviZ 0.23 share their groups
        old.posterior.attrs.update(attributes)


class Stopped(Exception):
    """In place of sampling."""


def test_a_checkpoint_goes_on_with_its_own_study_only(study, other, tmp_path, monkeypatch):
    def stopped(*_):
        raise Stopped

    monkeypatch.setattr(methods, "nuts", stopped)

    def fit(study):
        how = {"method": "nuts", "checkpoint": tmp_path / "checkpoint", "progress": False}
        bayesrep.fit(study, **how)

    with pytest.raises(Stopped):
        fit(study)
    with pytest.raises(Stopped):
        fit(with_sets(study, dict, name="another"))
    with refused(PosteriorError, "checkpoint-of-another-fit", {"setting": "study_fingerprint"}):
        fit(other)


def test_simulate_prints_what_a_posterior_holds(study, posterior, tmp_path, capsys):
    out = str(tmp_path / "study")
    assert (
        main(["simulate", out, "--seed", "5", "--images", "600", "--classifiers", "4", "--json"])
        == 0
    )
    printed = json.loads(capsys.readouterr().out)["fingerprint"]
    assert printed == posterior.posterior.attrs["study_fingerprint"] == study.fingerprint()
