"""A posterior and a checkpoint belong to one study: its images, answer by answer.

Studies of equal cells and different answers on each image are the hard case: nothing that looks at
cells alone can tell them apart. Shapes are those of test_shared_difficulty.py.
"""

import json

import numpy as np
import pytest

import bayesrep
from bayesrep import PosteriorError, SufficientStatistics
from bayesrep.checks import compare_fits
from bayesrep.cli import main
from bayesrep.inference.fit import METHODS
from bayesrep.posterior import read_posterior, write_posterior
from bayesrep.report.content import gather
from bayesrep.report.figure_names import FIGURES
from bayesrep.summary import joint_draws

pytestmark = pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")

OTHER = "fitted to another study"


@pytest.fixture(scope="module")
def study():
    return bayesrep.simulate_study(seed=5, images=600, classifiers=4)


def with_sets(study, change, **more):
    """The same study with its data sets changed."""
    sides = {}
    for role, data in study.datasets.items():
        names = ("selected", "shown", "correct", "images", "labels", "groups", "name")
        sides[role] = change({name: getattr(data, name) for name in names})
    return bayesrep.Study.from_arrays(**sides, classifiers=study.classifiers, **more)


def shuffled(sides, seed=0):
    """Every classifier's answers exchanged between images of the same count."""
    random = np.random.default_rng(seed)
    correct = np.array(sides["correct"])
    for selected in np.unique(sides["selected"]):
        rows = np.flatnonzero(sides["selected"] == selected)
        for classifier in range(correct.shape[1]):
            correct[rows, classifier] = correct[random.permutation(rows), classifier]
    return {**sides, "correct": correct}


@pytest.fixture(scope="module")
def other(study):
    made = with_sets(study, shuffled)
    one, two = map(SufficientStatistics.from_study, (study, made))
    assert one.digest() == two.digest()
    assert study.fingerprint() != made.fingerprint()
    return made


def fitted(study, model):
    return bayesrep.fit(study, model=model, method="laplace", draws=500, progress=False)


@pytest.fixture(scope="module", params=["joint", "shared-difficulty"])
def posterior(study, request):
    return fitted(study, request.param)


@pytest.fixture(scope="module")
def of_statistics(study):
    return fitted(SufficientStatistics.from_study(study), "joint")


USES = {
    "summarize": bayesrep.summarize,
    "summarize_gaps": bayesrep.summarize_gaps,
    "compare_classifiers": bayesrep.compare_classifiers,
    "rank_classifiers": bayesrep.rank_classifiers,
    "describe_images": bayesrep.describe_images,
    "check_agreement": bayesrep.check_agreement,
    "diagnose": lambda study, posterior: bayesrep.diagnose(posterior, study),
    "joint_draws": joint_draws,
    "report": lambda study, posterior: gather(study, posterior, bootstrap=0),
    **{f"figure {name}": figure.draw for name, figure in FIGURES.items() if figure.needs_posterior},
}


@pytest.mark.parametrize("use", USES)
def test_equal_cells_are_not_the_same_study(other, posterior, use):
    with pytest.raises(PosteriorError, match=f"{OTHER} .*the counts are equal, but not the images"):
        USES[use](other, posterior)


@pytest.mark.parametrize("command", ["summarize", "ranks", "pairs", "images", "report", "diagnose"])
def test_commands_refuse_it_in_one_line(other, posterior, command, tmp_path, capsys):
    other.write(tmp_path / "study")
    write_posterior(posterior, tmp_path / "p.nc")
    paths = [str(tmp_path / "study"), str(tmp_path / "p.nc")]
    more = {
        "report": [*paths, "--out", str(tmp_path / "r.html")],
        "diagnose": [paths[1], "--study", paths[0]],
    }
    assert main([command, *more.get(command, paths)]) == 1
    assert OTHER in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "r.html").exists()


def reversed_images(sides):
    arrays = ("selected", "shown", "correct", "images", "labels")
    turned = {name: sides[name][::-1] for name in arrays if sides[name] is not None}
    return {**sides, **turned, "groups": {n: v[::-1] for n, v in sides["groups"].items()}}


@pytest.mark.parametrize(
    "change",
    [
        reversed_images,
        lambda sides: {**sides, "images": [f"x{name}" for name in sides["images"]]},
        lambda sides: {**sides, "correct": ~np.asarray(sides["correct"])},
    ],
    ids=["order", "names", "answers"],
)
def test_other_images_are_not_the_same_study(study, posterior, change):
    with pytest.raises(PosteriorError, match=OTHER):
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
    few = SufficientStatistics.from_study(bayesrep.simulate_study(seed=6, images=60, classifiers=4))
    with pytest.raises(PosteriorError, match=OTHER):
        bayesrep.summarize(few, posterior)


def test_a_fit_of_statistics_is_one_of_every_study_that_has_them(study, other, of_statistics):
    """Its draws depend on nothing else; the images are those of the study given."""
    assert of_statistics.posterior.attrs["study_fingerprint"] == ""
    joint = fitted(study, "joint")
    assert bayesrep.summarize(study, of_statistics).equals(bayesrep.summarize(study, joint))
    wanted = bayesrep.summarize(other, fitted(other, "joint"))
    assert bayesrep.summarize(other, of_statistics).equals(wanted)
    few = bayesrep.simulate_study(seed=6, images=60, classifiers=4)
    with pytest.raises(PosteriorError, match=OTHER):
        bayesrep.summarize(few, of_statistics)
    assert len(compare_fits({"a": of_statistics, "b": joint})) == 2


def test_fits_of_equal_cells_are_not_compared(study, other):
    with pytest.raises(PosteriorError, match="different studies"):
        compare_fits({"a": fitted(study, "joint"), "b": fitted(other, "joint")})


def test_a_file_of_an_earlier_version_is_refused_in_one_line(study, posterior):
    old = posterior.copy()
    attributes = dict(old.posterior.attrs)
    del old.posterior.attrs["statistics_digest"]
    try:
        message = "does not say to which counts .* fit the study again"
        with pytest.raises(PosteriorError, match=message):
            bayesrep.summarize(study, old)
    finally:  # copies of ArviZ 0.23 share their groups
        old.posterior.attrs.update(attributes)


class Stopped(Exception):
    """In place of sampling."""


@pytest.mark.parametrize("model", ["joint", "shared-difficulty"])
def test_a_checkpoint_goes_on_with_its_own_study_only(study, other, model, tmp_path, monkeypatch):
    def stopped(*_):
        raise Stopped

    monkeypatch.setitem(METHODS, "nuts", METHODS["nuts"]._replace(draw=stopped))

    def fit(study):
        bayesrep.fit(study, model=model, checkpoint=tmp_path / "checkpoint", progress=False)

    with pytest.raises(Stopped):
        fit(study)
    with pytest.raises(Stopped):
        fit(with_sets(study, dict, name="another"))
    with pytest.raises(PosteriorError, match="its study_fingerprint is"):
        fit(other)


def test_simulate_prints_what_a_posterior_holds(study, posterior, tmp_path, capsys):
    out = str(tmp_path / "study")
    assert (
        main(["simulate", out, "--seed", "5", "--images", "600", "--classifiers", "4", "--json"])
        == 0
    )
    printed = json.loads(capsys.readouterr().out)["fingerprint"]
    assert printed == posterior.posterior.attrs["study_fingerprint"] == study.fingerprint()
